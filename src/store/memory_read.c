// Reading from memory, and the inbox: what is returned is copied into the caller's arena.
#include "store/memory.h"

enum code memory_head(struct store *base, struct str tenant, struct str name, struct arena *arena, struct run_head *out,
                      struct error *err)
{
    struct memory_run *run;
    enum code rc = memory_find(memory(base), tenant, name, &run, err);
    if (rc) return rc;
    return memory_copy_head(run, arena, out) ? error_nomem(err) : OK;
}

enum code memory_list(struct store *base, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                      struct error *err)
{
    const struct memory_store *store = memory(base);
    size_t capacity = 0;
    size_t from = store->present_count;
    if (filter->before && filter->before - 1 < from) from = filter->before - 1;
    for (size_t i = from; i > 0; i--) {
        const struct memory_run *run = store->order[i - 1];
        if (run->removed || !run_filter_matches(filter, &run->head)) continue;
        if (out->count == filter->limit) {
            out->next = out->items[out->count - 1].position;
            return OK;
        }
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        if (!out->items || memory_copy_head(run, arena, &out->items[out->count++])) return error_nomem(err);
    }
    return OK;
}

enum code memory_read(struct store *base, const struct record_range *range, struct arena *arena, struct records *out,
                      struct error *err)
{
    struct memory_run *run;
    enum code rc = memory_find(memory(base), range->tenant, range->run, &run, err);
    if (rc) return rc;
    const struct stored_list *list = range->ledger ? &run->ledger : &run->events;
    size_t count = range->after < list->count ? list->count - range->after : 0;
    if (count > range->limit) count = range->limit;
    out->items = ARENA_ARRAY(arena, count, struct record);
    if (!out->items) return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const struct stored *stored = &list->items[range->after + i];
        struct record *record = &out->items[i];
        uint64_t number = range->after + i + 1;
        *record = (struct record){
            .seq = range->ledger ? stored->after_seq : number,
            .ledger_seq = range->ledger ? number : 0,
            .type = stored->type,
            .signal_id = stored->signal_id,
            .bytes = stored->bytes,
            .hash = stored->hash,
        };
        if (!memory_copy(arena, &record->type) || !memory_copy(arena, &record->signal_id) ||
            !memory_copy(arena, &record->bytes))
            return error_nomem(err);
    }
    out->count = count;
    return OK;
}

enum code memory_blob(struct store *base, const struct digest *sha256, struct arena *arena, struct str *out,
                      struct error *err)
{
    const struct memory_store *store = memory(base);
    uint32_t at = map_get(&store->by_hash, memory_blob_key(sha256));
    if (at == MAP_NONE || store->blobs[at].gone) return error_set(err, E_NOT_FOUND, "there is no such blob");
    *out = arena_copy(arena, store->blobs[at].bytes);
    return out->ptr ? OK : error_nomem(err);
}

static bool copy_note(const struct note_node *node, struct arena *arena, struct note *out)
{
    *out = (struct note){.space = node->space, .key = node->key, .value = node->value, .version = node->version};
    return !arena ||
           (memory_copy(arena, &out->space) && memory_copy(arena, &out->key) && memory_copy(arena, &out->value));
}

enum code memory_note(struct store *base, struct str space, struct str key, struct arena *arena, struct note *out,
                      struct error *err)
{
    const struct note_node *node = note_list_find(&memory(base)->notes, space, key);
    if (!node) return note_missing(space, key, err);
    return copy_note(node, arena, out) ? OK : error_nomem(err);
}

enum code memory_notes(struct store *base, struct str space, struct str after, size_t limit, struct arena *arena,
                       struct notes *out, struct error *err)
{
    size_t capacity = 0;
    const struct note_node *node = note_list_above(&memory(base)->notes, space, after);
    for (; node && str_eq(node->space, space) && out->count < limit; node = node->next[0]) {
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        if (!out->items || !copy_note(node, arena, &out->items[out->count++])) return error_nomem(err);
    }
    return OK;
}

enum code memory_next_space(struct store *base, struct str after, struct arena *arena, struct str *out,
                            struct error *err)
{
    const struct note_node *node = note_list_beyond(&memory(base)->notes, after);
    *out = node ? node->space : STR("");
    return !node || memory_copy(arena, out) ? OK : error_nomem(err);
}

enum code memory_feed(struct store *base, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                      struct error *err)
{
    const struct memory_store *store = memory(base);
    size_t capacity = 0;
    for (size_t at = after; at < store->feed_count && out->count < limit; at++) {
        const struct memory_run *run = store->feed[at].run;
        out->next = at + 1;
        if (run->removed) continue;
        const struct stored *stored = &run->events.items[store->feed[at].seq - 1];
        struct feed_item item = {
            .position = at + 1,
            .tenant = arena_copy(arena, run->head.ids.tenant),
            .run = arena_copy(arena, run->head.ids.run),
            .vocabulary = run->head.vocabulary,
            .record = {.seq = store->feed[at].seq,
                       .type = arena_copy(arena, stored->type),
                       .bytes = arena_copy(arena, stored->bytes)},
        };
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        if (!out->items || !item.tenant.ptr || !item.run.ptr || !item.record.type.ptr || !item.record.bytes.ptr)
            return error_nomem(err);
        out->items[out->count++] = item;
    }
    return OK;
}

enum code memory_feed_end(struct store *base, uint64_t *out, struct error *err UNUSED)
{
    *out = memory(base)->feed_count;
    return OK;
}

// ---- inbox

enum code memory_post(struct store *base, struct str tenant, struct str name, struct str signal_id, struct str bytes,
                      struct error *err)
{
    struct memory_store *store = memory(base);
    struct memory_run *run;
    enum code rc = memory_find(store, tenant, name, &run, err);
    if (rc) return rc;
    struct inbox_item item = {.tenant = tenant, .run = name, .signal_id = signal_id, .bytes = bytes};
    if (!ARENA_ROOM(&store->arena, store->inbox, store->inbox_count, &store->inbox_capacity) ||
        !memory_copy(&store->arena, &item.tenant) || !memory_copy(&store->arena, &item.run) ||
        !memory_copy(&store->arena, &item.signal_id) || !memory_copy(&store->arena, &item.bytes))
        return error_nomem(err);
    item.id = ++store->next_inbox;
    store->inbox[store->inbox_count++] = item;
    return OK;
}

enum code memory_inbox(struct store *base, struct arena *arena, struct inbox_item **items, size_t *count,
                       struct error *err)
{
    const struct memory_store *store = memory(base);
    if (store->inbox_count == 0) return OK;
    *items = ARENA_ARRAY(arena, store->inbox_count, struct inbox_item);
    if (!*items) return error_nomem(err);
    for (size_t i = 0; i < store->inbox_count; i++) {
        struct inbox_item *item = &(*items)[i];
        *item = store->inbox[i];
        if (!memory_copy(arena, &item->tenant) || !memory_copy(arena, &item->run) ||
            !memory_copy(arena, &item->signal_id) || !memory_copy(arena, &item->bytes))
            return error_nomem(err);
    }
    *count = store->inbox_count;
    return OK;
}
