// Everything in one arena that lives as long as the handle; "memory:NAME" as long as the last handle of that name in this
// process, which are then the handles of one store (one thread at a time, all of them). A commit first copies and makes
// room for all it brings, which may fail, and then shows it, which cannot: an entry below a count is visible, one above is
// not there.
#include "store/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct str id_of(struct arena *arena, struct str tenant, struct str run)
{
    char *id = arena_alloc(arena, tenant.len + 1 + run.len);
    if (!id) return (struct str){0};
    memcpy(id, tenant.ptr, tenant.len);
    id[tenant.len] = '/';
    memcpy(id + tenant.len + 1, run.ptr, run.len);
    return (struct str){id, tenant.len + 1 + run.len};
}

static struct memory_run *find_run(const struct memory_store *store, struct str tenant, struct str run)
{
    char text[1024];
    if (tenant.len + run.len + 1 > sizeof(text)) return NULL;
    memcpy(text, tenant.ptr ? tenant.ptr : "", tenant.len);
    text[tenant.len] = '/';
    memcpy(text + tenant.len + 1, run.ptr ? run.ptr : "", run.len);
    uint32_t at = map_get(&store->by_id, (struct str){text, tenant.len + 1 + run.len});
    return at == MAP_NONE ? NULL : store->runs[at];
}

enum code memory_find(const struct memory_store *store, struct str tenant, struct str run, struct memory_run **out,
                      struct error *err)
{
    *out = find_run(store, tenant, run);
    if (!*out || !(*out)->present) return run_missing(run, err);
    return OK;
}

// ---- commit

static bool copy_identity(struct arena *arena, struct run_head *head)
{
    struct run_ids *ids = &head->ids;
    return memory_copy(arena, &ids->tenant) && memory_copy(arena, &ids->project) &&
           memory_copy(arena, &ids->environment) && memory_copy(arena, &ids->run) &&
           memory_copy(arena, &ids->plan_id) && memory_copy(arena, &ids->plan_version) &&
           memory_copy(arena, &head->name) && memory_copy(arena, &head->parent_run) &&
           memory_copy(arena, &head->original_run);
}

static enum code draft_run(struct memory_store *store, const struct run_log *log, struct error *err)
{
    struct memory_run *run = find_run(store, log->ids.tenant, log->ids.run);
    if (run && (run->present || run->drafted))
        return error_set(err, E_EXISTS, "run %.*s exists", STR_ARG(log->ids.run));
    if (!run) {
        run = ARENA_NEW(&store->arena, struct memory_run);
        struct str id = id_of(&store->arena, log->ids.tenant, log->ids.run);
        if (!run || !id.ptr || !ARENA_ROOM(&store->arena, store->runs, store->run_count, &store->run_capacity) ||
            !map_put(&store->by_id, id, (uint32_t)store->run_count, NULL))
            return error_nomem(err);
        store->runs[store->run_count++] = run;
    }
    run->head = (struct run_head){
        .ids = log->ids,
        .vocabulary = log->vocabulary,
        .document = log->document,
        .name = log->name,
        .parent_run = log->parent_run,
        .original_run = log->original_run,
        .epoch = log->epoch,
        .shard = log->shard,
    };
    if (!copy_identity(&store->arena, &run->head)) return error_nomem(err);
    run->drafted = true;
    return OK;
}

// Who has lost its shards has lost them as a whole: its number is not known any more.
static enum code check_member(struct store *base, const struct commit *commit, struct error *err)
{
    const struct shard_board *board = &memory(base)->board;
    if (base->member == 0) return OK;
    if (!board_knows(board, base->member)) return shard_fenced(base, err);
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct run_log *log = commit->heads[i].log;
        bool allowed =
            log->member == base->member && (!commit->heads[i].create || board_allows(board, base->member, log->shard));
        if (!allowed) return error_set(err, E_CONFLICT, "run %.*s belongs to another owner now", STR_ARG(log->ids.run));
    }
    return OK;
}

static enum code draft_heads(struct memory_store *store, const struct commit *commit, struct error *err)
{
    size_t created = 0;
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct commit_head *head = &commit->heads[i];
        if (head->create) {
            enum code rc = draft_run(store, head->log, err);
            if (rc) return rc;
            created++;
            continue;
        }
        const struct memory_run *run = find_run(store, head->log->ids.tenant, head->log->ids.run);
        if (!run || !run->present || run->head.epoch != head->log->epoch || run->head.last_seq != head->expect_seq ||
            run->head.last_ledger_seq != head->expect_ledger_seq)
            return error_set(err, E_CONFLICT, "run %.*s belongs to another owner now", STR_ARG(head->log->ids.run));
    }
    void *order = arena_grow(&store->arena, store->order, store->present_count, store->present_count + created,
                             sizeof(*store->order), &store->order_capacity);
    if (!order) return error_nomem(err);
    store->order = order;
    return OK;
}

static bool draft_stored(struct memory_store *store, struct stored_list *list, struct stored item)
{
    if (!ARENA_ROOM(&store->arena, list->items, list->count + list->drafted, &list->capacity)) return false;
    if (!memory_copy(&store->arena, &item.bytes) || !memory_copy(&store->arena, &item.type) ||
        !memory_copy(&store->arena, &item.signal_id))
        return false;
    list->items[list->count + list->drafted++] = item;
    return true;
}

static enum code draft_records(struct memory_store *store, const struct commit *commit, struct error *err)
{
    for (size_t i = 0; i < commit->event_count; i++) {
        const struct commit_event *event = &commit->events[i];
        struct memory_run *run = find_run(store, event->log->ids.tenant, event->log->ids.run);
        if (!draft_stored(store, &run->events,
                          (struct stored){.bytes = event->encoded.bytes, .type = event->encoded.type}))
            return error_nomem(err);
    }
    for (size_t i = 0; i < commit->ledger_count; i++) {
        const struct commit_ledger *entry = &commit->ledger[i];
        struct memory_run *run = find_run(store, entry->log->ids.tenant, entry->log->ids.run);
        if (!draft_stored(store, &run->ledger,
                          (struct stored){.after_seq = entry->after_seq,
                                          .bytes = entry->bytes,
                                          .type = entry->kind,
                                          .signal_id = entry->signal_id,
                                          .hash = entry->hash}))
            return error_nomem(err);
    }
    return OK;
}

struct str memory_blob_key(const struct digest *digest)
{
    return (struct str){(const char *)digest->b, SHA256_SIZE};
}

// Blobs are named by their content, so one that a failed commit left behind is no half truth.
static enum code add_blob(struct memory_store *store, const struct append_blob *blob, struct error *err)
{
    uint32_t there = map_get(&store->by_hash, memory_blob_key(&blob->sha256));
    if (there != MAP_NONE) {
        store->blobs[there].gone = false;
        return OK;
    }
    struct str key = arena_copy(&store->arena, memory_blob_key(&blob->sha256));
    struct str bytes = arena_copy(&store->arena, blob->bytes);
    if (!key.ptr || !bytes.ptr || !ARENA_ROOM(&store->arena, store->blobs, store->blob_count, &store->blob_capacity) ||
        !map_put(&store->by_hash, key, (uint32_t)store->blob_count, NULL))
        return error_nomem(err);
    store->blobs[store->blob_count++] = (struct memory_blob){blob->sha256, bytes, false};
    return OK;
}

static void show(struct stored_list *list)
{
    list->count += list->drafted;
    list->drafted = 0;
}

static void show_head(struct memory_store *store, struct commit_head *commit)
{
    struct memory_run *run = find_run(store, commit->log->ids.tenant, commit->log->ids.run);
    show(&run->events);
    show(&run->ledger);
    struct run_head *head = &run->head;
    if (run->drafted) {
        run->drafted = false;
        run->present = true;
        run->held = true;
        store->order[store->present_count++] = run;
        head->position = store->present_count;
        commit->backend_id = (int64_t)head->position;
    }
    head->summary = commit->summary;
    head->last_seq = commit->last_seq;
    head->last_ledger_seq = commit->ledger_seq;
    head->head = commit->head;
    head->ledger_head = commit->ledger_head;
    head->updated_ms = commit->updated_ms;
    head->terminal = commit->terminal;
    INVARIANT(run->events.count == head->last_seq);
    INVARIANT(run->ledger.count == head->last_ledger_seq);
}

static void forget_inbox(struct memory_store *store, const struct commit *commit)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->inbox_count; i++) {
        bool done = false;
        for (size_t k = 0; k < commit->inbox_count; k++) done |= commit->inbox_done[k] == store->inbox[i].id;
        if (!done) store->inbox[kept++] = store->inbox[i];
    }
    store->inbox_count = kept;
}

// ---- notes and the feed

static enum code draft_feed(struct memory_store *store, const struct commit *commit, struct error *err)
{
    void *feed = arena_grow(&store->arena, store->feed, store->feed_count, store->feed_count + commit->event_count,
                            sizeof(*store->feed), &store->feed_capacity);
    if (!feed) return error_nomem(err);
    store->feed = feed;
    return OK;
}

static void show_feed(struct memory_store *store, const struct commit *commit)
{
    for (size_t i = 0; i < commit->event_count; i++) {
        const struct commit_event *event = &commit->events[i];
        store->feed[store->feed_count++] =
            (struct memory_place){find_run(store, event->log->ids.tenant, event->log->ids.run), event->seq};
    }
}

static enum code draft_notes(struct memory_store *store, const struct commit *commit, struct arena *turn,
                             struct note_node ***out, struct error *err)
{
    struct note_node **nodes = ARENA_ARRAY(turn, commit->note_count, struct note_node *);
    enum code rc = nodes ? note_list_check(&store->notes, commit, err) : error_nomem(err);
    for (size_t i = 0; i < commit->note_count && !rc; i++) {
        const struct note_change *note = &commit->notes[i];
        if (note->after == 0) continue;
        nodes[i] = note_node_new(note->space, note->key, note->after, note->value);
        if (!nodes[i]) rc = error_nomem(err);
    }
    for (size_t i = 0; i < commit->note_count && rc && nodes; i++) free(nodes[i]);
    *out = nodes;
    return rc;
}

static void show_notes(struct memory_store *store, const struct commit *commit, struct note_node **nodes)
{
    for (size_t i = 0; i < commit->note_count; i++) {
        if (nodes[i])
            note_list_put(&store->notes, nodes[i]);
        else
            note_list_drop(&store->notes, commit->notes[i].space, commit->notes[i].key);
    }
}

static void forget_draft(struct memory_store *store, const struct commit *commit)
{
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct run_log *log = commit->heads[i].log;
        struct memory_run *run = find_run(store, log->ids.tenant, log->ids.run);
        if (!run) continue;
        run->drafted = false;
        run->events.drafted = 0;
        run->ledger.drafted = 0;
    }
}

static enum code memory_commit(struct store *base, struct commit *commit, struct arena *turn, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct memory_store *store = memory(base);
    enum code rc = check_member(base, commit, err);
    if (!rc) rc = draft_heads(store, commit, err);
    if (!rc) rc = draft_records(store, commit, err);
    for (size_t i = 0; !rc && i < commit->blob_count; i++) rc = add_blob(store, &commit->blobs[i], err);
    struct note_node **notes = NULL;
    if (!rc) rc = draft_feed(store, commit, err);
    if (!rc) rc = draft_notes(store, commit, turn, &notes, err);
    if (rc) {
        forget_draft(store, commit);
        return rc;
    }
    for (size_t i = 0; i < commit->head_count; i++) show_head(store, &commit->heads[i]);
    show_feed(store, commit);
    show_notes(store, commit, notes);
    if (commit->inbox_count) forget_inbox(store, commit);
    return OK;
}

// ---- leases: there is no other process, so a run without a shard is always free to take; who had it before is fenced by the epoch

enum code memory_copy_head(const struct memory_run *run, struct arena *arena, struct run_head *out)
{
    *out = run->head;
    out->owned = run->held;
    out->owner_pid = run->held ? getpid() : 0;
    return copy_identity(arena, out) ? OK : E_NOMEM;
}

static enum code memory_claim(struct store *base, struct str tenant, struct str name, struct run_head *out,
                              struct arena *arena, int64_t *backend_id, struct error *err)
{
    struct memory_run *run;
    enum code rc = memory_find(memory(base), tenant, name, &run, err);
    if (rc) return rc;
    if (base->member && !board_knows(&memory(base)->board, base->member)) return shard_fenced(base, err);
    if (!board_allows(&memory(base)->board, base->member, run->head.shard))
        return error_set(err, E_LOCKED, "run %.*s is owned by engine %llu", STR_ARG(name),
                         (unsigned long long)memory(base)->board.owner[run->head.shard - 1]);
    if (memory_copy_head(run, arena, out)) return error_nomem(err);
    run->held = true;
    out->epoch = ++run->head.epoch;
    *backend_id = (int64_t)run->head.position;
    return OK;
}

static void memory_release(struct store *base, struct run_log *log)
{
    struct memory_run *run = find_run(memory(base), log->ids.tenant, log->ids.run);
    if (run && run->head.epoch == log->epoch) run->held = false;
}

static enum code memory_run_dir(const struct store *base UNUSED, const struct run_ids *ids, const char *what,
                                struct arena *arena, struct str *out)
{
    *out = STR(""); // no other process could read the logs, and they would outlive the store
    return str_is(STR("logs"), what) ? OK : run_dir_path(STR("/tmp/cairn-memory"), what, ids, arena, out);
}

static pthread_mutex_t named_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct memory_store *named; // shared: named_mutex

static void memory_close(struct store *base)
{
    struct memory_store *store = memory(base);
    free(CONTAINER_OF(base, struct memory_handle, base));
    pthread_mutex_lock(&named_mutex);
    bool last = --store->handles == 0;
    for (struct memory_store **at = &named; last && *at; at = *at ? &(*at)->next : at)
        if (*at == store) *at = store->next;
    pthread_mutex_unlock(&named_mutex);
    if (!last) return;
    note_list_release(&store->notes);
    // The store lives in its own arena, so the arena must outlive it by a moment.
    arena_release(&store->arena);
}

// ---- several engines (S17)

static enum code memory_shards(struct store *base, int64_t lease_ms, int64_t now_ms, struct shard_map *out,
                               struct error *err)
{
    struct memory_store *store = memory(base);
    uint64_t member = base->member;
    if (member && !board_knows(&store->board, member)) return shard_fenced(base, err);
    enum code rc = member ? OK : board_join(&store->board, &store->arena, &member, err);
    if (rc) return rc;
    board_renew(&store->board, member, now_ms + lease_ms);
    board_tell(&store->board, member, now_ms, out);
    return OK;
}

static enum code memory_move(struct store *base, uint64_t take, uint64_t give, int64_t now_ms, struct shard_map *out,
                             struct error *err)
{
    struct memory_store *store = memory(base);
    if (!board_knows(&store->board, base->member)) return shard_fenced(base, err);
    board_move(&store->board, base->member, take, give, now_ms);
    board_tell(&store->board, base->member, now_ms, out);
    return OK;
}

static const struct store_ops memory_ops = {
    .kind = "memory",
    .log =
        {
            .commit = memory_commit,
            .claim = memory_claim,
            .claim_ahead = absent_claim_ahead,
            .release = memory_release,
            .head = memory_head,
            .list = memory_list,
            .count = absent_count,
            .read = memory_read,
            .surplus = absent_surplus,
            .blob = memory_blob,
            .post = memory_post,
            .inbox = memory_inbox,
            .shards = memory_shards,
            .move = memory_move,
            .away = absent_away,
        },
    .notes =
        {
            .note = memory_note,
            .notes = memory_notes,
            .next_space = memory_next_space,
        },
    .feed =
        {
            .read = memory_feed,
            .end = memory_feed_end,
        },
    .admin =
        {
            .freeze = absent_freeze,
            .missing = absent_missing,
            .remove = memory_remove,
            .tombstones = memory_tombstones,
            .blobs = memory_blobs,
            .drop_blobs = memory_drop_blobs,
            .usage = memory_usage,
            .format = absent_format,
            .advise = absent_advise,
            .restoring = absent_restoring,
            .beside = store_beside_url,
            .run_dir = memory_run_dir,
            .file = store_local_file,
            .close = memory_close,
        },
};

static struct memory_store *memory_new(struct str name)
{
    struct arena arena = arena_of(16 * 1024, SIZE_MAX);
    struct memory_store *store = ARENA_NEW(&arena, struct memory_store);
    if (!store) return NULL;
    store->arena = arena;
    store->name = arena_copy(&store->arena, name);
    map_init(&store->by_id, &store->arena);
    map_init(&store->by_hash, &store->arena);
    return store;
}

enum code store_open_memory(struct str name, const struct store_options *options, struct store **out, struct error *err)
{
    struct memory_handle *handle = calloc(1, sizeof(*handle));
    if (!handle) return error_nomem(err);
    handle->base.ops = &memory_ops;
    handle->base.options = *options;
    pthread_mutex_lock(&named_mutex);
    struct memory_store *store = name.len > 0 ? named : NULL;
    while (store && !str_eq(store->name, name)) store = store->next;
    if (!store) {
        store = memory_new(name);
        if (store && name.len > 0) {
            store->next = named;
            named = store;
        }
    }
    if (store) store->handles++;
    pthread_mutex_unlock(&named_mutex);
    if (!store) {
        free(handle);
        return error_nomem(err);
    }
    handle->data = store;
    *out = &handle->base;
    return OK;
}
