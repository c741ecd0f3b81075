// Which runs may go is decided on heads alone; then they go batch by batch, each with what lies beside it, and the blobs that nobody
// refers to any more go last. Cut short anywhere, the store is whole, and the next time goes on.
#include "archive/archive.h"

#include "base/map.h"
#include "base/text.h"

#include <stdio.h>

enum { LIST_PAGE = 1000, BATCH_RUNS = 64, NOBODY = -1 };

struct candidate {
    struct run_name name;
    struct str parent, original;
    struct digest document;
    int64_t ended_ms;
    enum run_status status;
    bool terminal;
    bool stays;    // of a root: its family stays
    int32_t above; // index of its parent; NOBODY
};

struct gc {
    struct store *store;
    const struct gc_options *options;
    struct gc_report *report;
    struct arena *kept;
    struct arena scratch;
    struct error *err;
    struct candidate *runs; // newest first
    size_t count, capacity;
    struct map by_name;   // "tenant/run"
    struct digests blobs; // all of the store
    bool *needed;
    struct map by_hash;
    struct kept_note *away; // results that are elsewhere
    bool *away_needed;
    size_t away_count, away_capacity;
    struct map away_by_hash;
};

// ---- who may go

static struct str key_of(struct str tenant, struct str run, struct arena *arena)
{
    return arena_format(arena, "%.*s/%.*s", STR_ARG(tenant), STR_ARG(run));
}

static enum code add(struct gc *gc, const struct run_head *head)
{
    gc->runs = arena_grow(gc->kept, gc->runs, gc->count, gc->count + 1, sizeof(*gc->runs), &gc->capacity);
    struct str key = key_of(head->ids.tenant, head->ids.run, gc->kept);
    if (!gc->runs || !key.ptr || !map_put(&gc->by_name, key, (uint32_t)gc->count, NULL)) return error_nomem(gc->err);
    struct candidate *run = &gc->runs[gc->count++];
    *run = (struct candidate){.name = {head->ids.tenant, head->ids.run},
                              .parent = head->parent_run,
                              .original = head->original_run,
                              .document = head->document,
                              .ended_ms = head->summary.ended_ms ? head->summary.ended_ms : head->updated_ms,
                              .status = head->summary.status,
                              .terminal = head->terminal,
                              .above = NOBODY};
    return ARENA_KEEP(gc->kept, &run->name.tenant, &run->name.run, &run->parent, &run->original) ? OK : error_nomem(gc->err);
}

static enum code list_runs(struct gc *gc)
{
    struct run_filter filter = {.limit = LIST_PAGE}; // of all tenants: they share blobs
    enum code rc;
    do {
        struct run_heads heads;
        arena_reset(&gc->scratch);
        rc = store_list(gc->store, &filter, &gc->scratch, &heads, gc->err);
        for (size_t i = 0; !rc && i < heads.count; i++) rc = add(gc, &heads.items[i]);
        filter.before = heads.next;
    } while (!rc && filter.before);
    return rc;
}

static int32_t find(struct gc *gc, struct str tenant, struct str run)
{
    arena_reset(&gc->scratch);
    struct str key = run.len ? key_of(tenant, run, &gc->scratch) : (struct str){0};
    uint32_t at = key.ptr ? map_get(&gc->by_name, key) : MAP_NONE;
    return at == MAP_NONE ? NOBODY : (int32_t)at;
}

static struct candidate *root_of(struct gc *gc, struct candidate *run)
{
    for (size_t i = 0; run->above != NOBODY && i < gc->count; i++) run = &gc->runs[run->above];
    return run;
}

static bool is_over(const struct gc *gc, const struct candidate *run)
{
    const struct gc_options *options = gc->options;
    if (options->tenant.len && !str_eq(options->tenant, run->name.tenant)) return false;
    if (!run->terminal || run->ended_ms >= options->before_ms) return false;
    return options->status_mask == 0 || (options->status_mask >> run->status & 1);
}

static void decide(struct gc *gc)
{
    size_t families = 0;
    for (size_t i = 0; i < gc->count; i++) gc->runs[i].above = find(gc, gc->runs[i].name.tenant, gc->runs[i].parent);
    for (size_t i = 0; i < gc->count; i++) {
        struct candidate *run = &gc->runs[i], *root = root_of(gc, run);
        if (!is_over(gc, run)) root->stays = true;
        if (run == root && families++ < gc->options->keep_last) root->stays = true;
    }
    // What an unfinished run was made from: its results are looked up there.
    for (size_t i = 0; i < gc->count; i++) {
        struct candidate *run = &gc->runs[i];
        int32_t original = run->terminal ? NOBODY : find(gc, run->name.tenant, run->original);
        if (original == NOBODY) continue;
        struct candidate *root = root_of(gc, &gc->runs[original]);
        gc->report->referred_count += !root->stays;
        root->stays = true;
    }
}

// ---- blobs

static struct str hash_key(const struct digest *digest)
{
    return (struct str){(const char *)digest->b, SHA256_SIZE};
}

static enum code list_away(struct gc *gc)
{
    struct str after = {0};
    for (;;) {
        struct notes notes;
        enum code rc = store_notes(gc->store, KEEP_SPACE, after, LIST_PAGE, gc->kept, &notes, gc->err);
        for (size_t i = 0; !rc && i < notes.count; i++) {
            if (!ARENA_ROOM(gc->kept, gc->away, gc->away_count, &gc->away_capacity)) return error_nomem(gc->err);
            struct kept_note *one = &gc->away[gc->away_count];
            rc = store_kept_read(&notes.items[i], gc->kept, one, gc->err);
            after = notes.items[i].key;
            if (!rc) gc->away_count++;
        }
        if (rc || notes.count < LIST_PAGE) return rc;
    }
}

static enum code keep_blobs(struct gc *gc, struct error *err)
{
    enum code rc = OK;
    gc->needed = ARENA_ARRAY(gc->kept, gc->blobs.count + 1, bool);
    if (!gc->needed) return error_nomem(err);
    gc->away_needed = ARENA_ARRAY(gc->kept, gc->away_count + 1, bool);
    if (!gc->away_needed) return error_nomem(err);
    for (size_t i = 0; i < gc->blobs.count && !rc; i++)
        if (!map_put(&gc->by_hash, hash_key(&gc->blobs.items[i]), (uint32_t)i, NULL)) return error_nomem(err);
    for (size_t i = 0; i < gc->away_count && !rc; i++)
        if (!map_put(&gc->away_by_hash, hash_key(&gc->away[i].sha256), (uint32_t)i, NULL)) return error_nomem(err);
    for (size_t i = 0; i < gc->count && !rc; i++) {
        struct run_image image;
        if (!root_of(gc, &gc->runs[i])->stays) continue;
        arena_reset(&gc->scratch);
        const struct run_name *name = &gc->runs[i].name;
        rc = archive_read(gc->store, name->tenant, name->run, &gc->scratch, &image, err);
        for (size_t k = 0; !rc && k < image.blob_count; k++) {
            uint32_t at = map_get(&gc->by_hash, hash_key(&image.blobs[k].sha256));
            if (at != MAP_NONE) gc->needed[at] = true;
            at = map_get(&gc->away_by_hash, hash_key(&image.blobs[k].sha256));
            if (at != MAP_NONE) gc->away_needed[at] = true;
        }
    }
    return rc;
}

// What is looked at goes while its note is the one that was listed: a writer that puts the same again makes a newer note first,
// and then a newer object. The note goes last, so that nothing is left that nobody knows of.
static enum code drop_one(struct gc *gc, const struct kept_note *one, struct error *why)
{
    struct keep *keep = store_keep(gc->store);
    char hex[SHA256_HEX + 1];
    struct note note;
    uint64_t version = 0;
    digest_hex(&one->sha256, hex);
    if (!keep || !str_is(one->store, keep->ops->name))
        return error_set(why, E_UNREACHABLE, "%.*s is not configured here", STR_ARG(one->store));
    struct error gone = {0};
    enum code rc = keep->ops->look(keep, one->place, &one->sha256, &version, &gone);
    if (rc && rc != E_NOT_FOUND && rc != E_CORRUPT) return error_set(why, rc, "%s", gone.message);
    arena_reset(&gc->scratch);
    if (store_note(gc->store, KEEP_SPACE, str_from(hex), &gc->scratch, &note, NULL) || note.version != one->version)
        return OK;
    if (version) rc = keep->ops->drop(keep, one->place, &one->sha256, version, why);
    if (version && rc) return rc;
    struct note_put put = {.space = KEEP_SPACE, .key = str_from(hex), .remove = true, .expect = one->version};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    rc = store_append(gc->store, &batch, gc->options->now_ms, &gc->scratch, why);
    return rc == E_CONFLICT ? OK : rc;
}

static enum code drop_away(struct gc *gc)
{
    struct gc_report *report = gc->report;
    for (size_t i = 0; i < gc->away_count; i++) {
        struct error why = {0};
        if (gc->away_needed[i]) continue;
        enum code rc = gc->options->dry ? OK : drop_one(gc, &gc->away[i], &why);
        if (rc == E_UNREACHABLE) { // the next time
            snprintf(report->objects_stay, sizeof(report->objects_stay), "%.190s", why.message);
            return OK;
        }
        if (rc) return error_set(gc->err, rc, "%s", why.message);
        report->object_count++;
        report->object_bytes += gc->away[i].bytes;
    }
    return OK;
}

// All that no run that stays refers to, also what an earlier time had to leave.
static enum code drop_blobs(struct gc *gc)
{
    struct digests loose = {0};
    struct error why = {0};
    enum code rc = keep_blobs(gc, &why);
    gc->report->blobs_unsure = rc == E_CORRUPT;
    if (rc) return rc == E_CORRUPT ? OK : error_set(gc->err, rc, "%s", why.message);
    for (size_t i = 0; i < gc->blobs.count && !rc; i++) {
        if (gc->needed[i]) continue;
        if (!ARENA_ROOM(gc->kept, loose.items, loose.count, &loose.capacity)) return error_nomem(gc->err);
        loose.items[loose.count++] = gc->blobs.items[i];
    }
    gc->report->blob_count = loose.count;
    for (size_t i = 0; i < loose.count && !rc && gc->options->dry; i++) {
        struct str bytes;
        arena_reset(&gc->scratch);
        if (store_blob(gc->store, &loose.items[i], &gc->scratch, &bytes, NULL) == OK)
            gc->report->blob_bytes += bytes.len;
    }
    if (rc || gc->options->dry) return rc ? rc : drop_away(gc);
    rc = store_drop_blobs(gc->store, loose.items, loose.count, &gc->report->blob_bytes, &why);
    gc->report->blobs_locked = rc == E_LOCKED;
    if (rc == E_LOCKED) return OK;
    return rc ? error_set(gc->err, rc, "%s", why.message) : drop_away(gc);
}

// ---- bodies of plans, which are apart

static bool body_needed(void *context, const struct digest *sha256)
{
    struct gc *gc = context;
    for (size_t i = 0; i < gc->count; i++)
        if (digest_eq(&gc->runs[i].document, sha256) && root_of(gc, &gc->runs[i])->stays) return true;
    return false;
}

// One that a start has kept and not yet named in a log may go with them: it is fetched again when it is needed.
static enum code drop_bodies(struct gc *gc)
{
    struct plan_sweep sweep = {.needed = body_needed, .context = gc, .dry = gc->options->dry};
    enum code rc = store_plan_sweep(gc->store, &sweep, gc->err);
    gc->report->blob_count += sweep.count;
    gc->report->blob_bytes += sweep.bytes;
    return rc;
}

// ---- runs

typedef enum code (*run_dir)(const struct store *, const struct run_ids *, struct arena *, struct str *);

static enum code forget_files(struct gc *gc, const struct run_ids *ids)
{
    static const run_dir dirs[] = {store_artifacts_dir, store_logs_dir};
    struct gc_report *report = gc->report;
    enum code rc = OK;
    for (size_t i = 0; i < ARRAY_COUNT(dirs) && !rc; i++) {
        struct str path = {0};
        rc = dirs[i](gc->store, ids, &gc->scratch, &path);
        if (!rc && path.len)
            rc = gc->options->dry ? tree_size(path.ptr, &report->file_count, &report->file_bytes, gc->err)
                                  : tree_remove(path.ptr, &report->file_count, &report->file_bytes, gc->err);
    }
    return rc;
}

// What is lost with a damaged run is not known; the run goes all the same.
static enum code look_at(struct gc *gc, const struct run_name *name)
{
    struct run_image image;
    struct error why = {0};
    arena_reset(&gc->scratch);
    enum code rc = archive_read(gc->store, name->tenant, name->run, &gc->scratch, &image, &why);
    if (rc && rc != E_CORRUPT) return error_set(gc->err, rc, "%s", why.message);
    gc->report->run_count++;
    gc->report->event_count += image.events.count;
    gc->report->byte_count += image.size;
    return forget_files(gc, &image.head.ids);
}

static enum code remove_batch(struct gc *gc, const struct run_name *names, size_t count)
{
    enum code rc = OK;
    for (size_t i = 0; i < count && !rc; i++) rc = look_at(gc, &names[i]);
    if (rc || gc->options->dry) return rc;
    return store_remove(gc->store, names, count, gc->options->now_ms, gc->options->reason, gc->err);
}

enum code archive_gc(struct store *store, const struct gc_options *options, struct arena *arena, struct gc_report *out,
                     struct error *err)
{
    *out = (struct gc_report){0};
    struct gc gc = {.store = store, .options = options, .report = out, .kept = arena, .err = err};
    struct run_name batch[BATCH_RUNS];
    size_t count = 0;
    arena_init(&gc.scratch, 64 * 1024, SIZE_MAX);
    map_init(&gc.by_name, arena);
    map_init(&gc.by_hash, arena);
    map_init(&gc.away_by_hash, arena);
    // The blobs first: what is stored from here on belongs to runs that we do not see.
    enum code rc = store_blobs(store, gc.kept, &gc.blobs, err);
    if (!rc) rc = list_away(&gc);
    if (!rc) rc = list_runs(&gc);
    if (!rc) decide(&gc);
    for (size_t i = gc.count; i > 0 && !rc; i--) {
        struct candidate *run = &gc.runs[i - 1];
        bool stays = root_of(&gc, run)->stays;
        out->kept_count += stays;
        if (!stays) batch[count++] = run->name;
        if (count == BATCH_RUNS || (i == 1 && count > 0)) {
            rc = remove_batch(&gc, batch, count);
            count = 0;
        }
    }
    if (!rc) rc = drop_blobs(&gc);
    if (!rc) rc = drop_bodies(&gc);
    arena_release(&gc.scratch);
    return rc;
}
