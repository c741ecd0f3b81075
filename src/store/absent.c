// Methods of backends that have nothing of a kind, so that no table has a hole: what cannot be written is refused with the words of the
// backend, what is not kept is not there, and what would change nothing is done.
#include "store/backend.h"

static enum code refuse(const struct store *store, struct error *err)
{
    INVARIANT(store->ops->read_only);
    return error_set(err, E_DENIED, "%s", store->ops->read_only);
}

static enum code lacks(const struct store *store, const char *what, struct error *err)
{
    return error_set(err, E_UNSUPPORTED, "a %s store %s", store->ops->kind, what);
}

enum code absent_commit(struct store *store, struct commit *commit UNUSED, struct arena *turn UNUSED, struct error *err)
{
    return refuse(store, err);
}

enum code absent_claim(struct store *store, struct str tenant UNUSED, struct str run UNUSED, struct run_head *out UNUSED,
                       struct arena *arena UNUSED, int64_t *backend_id UNUSED, struct error *err)
{
    return refuse(store, err);
}

enum code absent_claim_ahead(struct store *store UNUSED, const struct run_name *runs UNUSED, size_t count UNUSED,
                             struct error *err UNUSED)
{
    return OK;
}

void absent_release(struct store *store UNUSED, struct run_log *log UNUSED)
{
}

enum code absent_count(struct store *store UNUSED, const struct run_filter *filter UNUSED, uint64_t *out UNUSED,
                       struct error *err UNUSED)
{
    return E_UNSUPPORTED;
}

enum code absent_surplus(struct store *store UNUSED, struct str tenant UNUSED, struct str run UNUSED,
                         struct arena *arena UNUSED, struct surplus *out UNUSED, struct error *err UNUSED)
{
    return OK;
}

enum code absent_post(struct store *store, struct str tenant UNUSED, struct str run UNUSED, struct str signal_id UNUSED,
                      struct str bytes UNUSED, struct error *err)
{
    return refuse(store, err);
}

enum code absent_inbox(struct store *store UNUSED, struct arena *arena UNUSED, struct inbox_item **items UNUSED,
                       size_t *count UNUSED, struct error *err UNUSED)
{
    return OK;
}

enum code absent_shards(struct store *store, int64_t lease_ms UNUSED, int64_t now_ms UNUSED, struct shard_map *out UNUSED,
                        struct error *err)
{
    return lacks(store, "has one engine at a time", err);
}

enum code absent_move(struct store *store, uint64_t take UNUSED, uint64_t give UNUSED, int64_t now_ms UNUSED,
                      struct shard_map *out UNUSED, struct error *err)
{
    return lacks(store, "has one engine at a time", err);
}

bool absent_away(struct store *store UNUSED)
{
    return false;
}

enum code absent_note(struct store *store, struct str space UNUSED, struct str key UNUSED, struct arena *arena UNUSED,
                      struct note *out UNUSED, struct error *err)
{
    return lacks(store, "keeps no notes", err);
}

enum code absent_notes(struct store *store, struct str space UNUSED, struct str after UNUSED, size_t limit UNUSED,
                       struct arena *arena UNUSED, struct notes *out UNUSED, struct error *err)
{
    return lacks(store, "keeps no notes", err);
}

enum code absent_next_space(struct store *store UNUSED, struct str after UNUSED, struct arena *arena UNUSED,
                            struct str *out, struct error *err UNUSED)
{
    *out = STR("");
    return OK;
}

enum code absent_feed(struct store *store, uint64_t after UNUSED, size_t limit UNUSED, struct arena *arena UNUSED,
                      struct feed *out UNUSED, struct error *err)
{
    return lacks(store, "has no feed", err);
}

enum code absent_feed_end(struct store *store, uint64_t *out UNUSED, struct error *err)
{
    return lacks(store, "has no feed", err);
}

enum code absent_freeze(struct store *store, struct error *err)
{
    return lacks(store, "cannot be read as it is at one moment", err);
}

enum code absent_freezing(struct store *store UNUSED, struct error *err UNUSED)
{
    return OK;
}

enum code absent_missing(struct store *store UNUSED, struct arena *arena UNUSED, struct faults *out UNUSED,
                         struct error *err UNUSED)
{
    return OK;
}

enum code absent_remove(struct store *store, const struct run_name *runs UNUSED, size_t count UNUSED,
                        int64_t now_ms UNUSED, struct str reason UNUSED, struct error *err)
{
    return refuse(store, err);
}

enum code absent_tombstones(struct store *store UNUSED, struct arena *arena UNUSED, struct tombstones *out UNUSED,
                            struct error *err UNUSED)
{
    return OK;
}

enum code absent_blobs(struct store *store UNUSED, struct arena *arena UNUSED, struct digests *out UNUSED,
                       struct error *err UNUSED)
{
    return OK;
}

enum code absent_drop_blobs(struct store *store, const struct digest *blobs UNUSED, size_t count UNUSED,
                            uint64_t *bytes UNUSED, struct error *err)
{
    return refuse(store, err);
}

enum code absent_usage(struct store *store UNUSED, struct arena *arena UNUSED, struct usages *out UNUSED,
                       struct error *err UNUSED)
{
    return OK;
}

enum code absent_format(struct store *store UNUSED, struct store_format *out UNUSED, struct error *err UNUSED)
{
    return OK;
}

enum code absent_advise(struct store *store UNUSED, struct arena *arena UNUSED, struct advices *out UNUSED,
                        struct error *err UNUSED)
{
    return OK;
}

enum code absent_restoring(struct store *store UNUSED, bool begun UNUSED, struct error *err UNUSED)
{
    return OK;
}

enum code absent_run_dir(const struct store *store UNUSED, const struct run_ids *ids UNUSED, const char *what UNUSED,
                         struct arena *arena UNUSED, struct str *out)
{
    *out = STR("");
    return OK;
}
