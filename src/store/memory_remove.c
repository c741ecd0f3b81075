// Removing runs and blobs from memory, and what is left of them.
#include "store/memory.h"

// The entry of a removed run stays in the order of creation; a new run of that id gets a new one.
enum code memory_remove(struct store *base, const struct run_name *runs, size_t count, int64_t now_ms,
                        struct str reason, struct error *err)
{
    INVARIANT(count > 0);
    struct memory_store *store = memory(base);
    struct memory_run **fresh = ARENA_ARRAY(&store->arena, count, struct memory_run *);
    if (!fresh) return error_nomem(err);
    size_t before = store->tombstones.count;
    for (size_t i = 0; i < count; i++) {
        struct memory_run *run;
        enum code rc = memory_find(store, runs[i].tenant, runs[i].run, &run, err);
        struct tombstone one = {.tenant = runs[i].tenant, .run = runs[i].run, .reason = reason, .removed_ms = now_ms};
        if (!rc) {
            one.position = run->head.position;
            one.last_seq = run->head.last_seq;
            one.last_ledger_seq = run->head.last_ledger_seq;
            one.head = run->head.head;
            one.ledger_head = run->head.ledger_head;
            fresh[i] = ARENA_NEW(&store->arena, struct memory_run);
            bool added = tombstone_add(&store->tombstones, &store->tombstone_capacity, &store->arena, &one);
            if (!fresh[i] || !added) rc = error_nomem(err);
        }
        if (rc) {
            store->tombstones.count = before;
            return rc;
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < store->run_count; k++) {
            struct memory_run *run = store->runs[k];
            if (!run->present || !str_eq(run->head.ids.run, runs[i].run) ||
                !str_eq(run->head.ids.tenant, runs[i].tenant))
                continue;
            run->removed = true;
            store->runs[k] = fresh[i];
        }
    return OK;
}

enum code memory_tombstones(struct store *base, struct arena *arena, struct tombstones *out, struct error *err)
{
    const struct memory_store *store = memory(base);
    size_t capacity = 0;
    for (size_t i = 0; i < store->tombstones.count; i++)
        if (!tombstone_add(out, &capacity, arena, &store->tombstones.items[i])) return error_nomem(err);
    return OK;
}

enum code memory_blobs(struct store *base, struct arena *arena, struct digests *out, struct error *err)
{
    const struct memory_store *store = memory(base);
    for (size_t i = 0; i < store->blob_count; i++)
        if (!store->blobs[i].gone && !digest_add(out, arena, &store->blobs[i].sha256)) return error_nomem(err);
    return OK;
}

enum code memory_drop_blobs(struct store *base, const struct digest *blobs, size_t count, uint64_t *bytes,
                            struct error *err UNUSED)
{
    struct memory_store *store = memory(base);
    for (size_t i = 0; i < count; i++) {
        uint32_t at = map_get(&store->by_hash, memory_blob_key(&blobs[i]));
        bool used = at == MAP_NONE || store->blobs[at].gone;
        for (size_t k = 0; !used && k < store->present_count; k++)
            used = !store->order[k]->removed && digest_eq(&store->order[k]->head.document, &blobs[i]);
        if (used) continue;
        store->blobs[at].gone = true;
        *bytes += store->blobs[at].bytes.len;
    }
    return OK;
}

enum code memory_usage(struct store *base, struct arena *arena, struct usages *out, struct error *err)
{
    const struct memory_store *store = memory(base);
    return usage_add(out, arena, "memory", store->arena.size, store->run_count) ? OK : error_nomem(err);
}
