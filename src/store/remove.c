// S14, as far as it is the same for all backends.
#include "store/backend.h"

#include <unistd.h>

enum code store_remove(struct store *store, const struct run_name *runs, size_t count, int64_t now_ms,
                       struct str reason, struct error *err)
{
    enum code rc = store_writable(store, err);
    if (rc || count == 0) return rc;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    for (size_t i = 0; i < count && !rc; i++) {
        struct run_head head;
        arena_reset(&scratch);
        rc = store->ops->log.head(store, runs[i].tenant, runs[i].run, &scratch, &head, err);
        if (!rc && !head.terminal)
            rc = error_set(err, E_CONFLICT, "run %.*s has not ended", STR_ARG(runs[i].run));
        else if (!rc && head.owned && head.owner_pid != getpid()) // a lease of our own is given back lazily
            rc = error_set(err, E_LOCKED, "run %.*s is owned by process %lld", STR_ARG(runs[i].run),
                           (long long)head.owner_pid);
    }
    return rc ? rc : store_heed(store, store->ops->admin.remove(store, runs, count, now_ms, reason, err));
}

enum code store_tombstones(struct store *store, struct arena *arena, struct tombstones *out, struct error *err)
{
    *out = (struct tombstones){0};
    return store->ops->admin.tombstones(store, arena, out, err);
}

enum code store_blobs(struct store *store, struct arena *arena, struct digests *out, struct error *err)
{
    *out = (struct digests){0};
    return store->ops->admin.blobs(store, arena, out, err);
}

bool digest_add(struct digests *digests, struct arena *arena, const struct digest *one)
{
    if (!ARENA_ROOM(arena, digests->items, digests->count, &digests->capacity)) return false;
    digests->items[digests->count++] = *one;
    return true;
}

enum code store_drop_blobs(struct store *store, const struct digest *blobs, size_t count, uint64_t *bytes,
                           struct error *err)
{
    *bytes = 0;
    enum code rc = store_writable(store, err);
    return rc || count == 0 ? rc : store_heed(store, store->ops->admin.drop_blobs(store, blobs, count, bytes, err));
}

enum code store_usage(struct store *store, struct arena *arena, struct usages *out, struct error *err)
{
    *out = (struct usages){0};
    return store->ops->admin.usage(store, arena, out, err);
}

bool usage_add(struct usages *usages, struct arena *arena, const char *what, uint64_t bytes, uint64_t count)
{
    struct str name = arena_copy(arena, str_from(what));
    if (!name.ptr || !ARENA_ROOM(arena, usages->items, usages->count, &usages->capacity)) return false;
    usages->items[usages->count++] = (struct usage){name, bytes, count};
    return true;
}

bool tombstone_add(struct tombstones *tombstones, size_t *capacity, struct arena *arena, const struct tombstone *one)
{
    if (!ARENA_ROOM(arena, tombstones->items, tombstones->count, capacity)) return false;
    struct tombstone kept = *one;
    if (!ARENA_KEEP(arena, &kept.tenant, &kept.run, &kept.reason)) return false;
    tombstones->items[tombstones->count++] = kept;
    return true;
}
