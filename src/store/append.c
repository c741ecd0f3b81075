// A batch is drafted first and committed then. The draft numbers, seals and chains every item on copies of the heads
// of the runs it touches; a run_log changes only after the backend has said OK. The one exception are the key sets, which
// must know the keys of earlier items of the same batch: what was added to them is taken out again when the commit fails.
#include "base/text.h"
#include "store/backend.h"

#include <string.h>

struct added_key {
    struct run_log *log;
    struct digest key;
    uint32_t number;
};

struct draft {
    struct store *store;
    struct store_batch *batch;
    struct arena *turn;
    struct error *err;
    int64_t now_ms;
    struct commit_event *events;
    struct commit_ledger *ledger;
    struct commit_head *heads;
    size_t event_count, ledger_count, head_count;
    bool *changed; // per head
    struct added_key *keys;
    size_t key_count;
};

// ---- the runs of the batch

static enum code pass_over(void *context UNUSED, const struct record *record UNUSED, const struct moment *moment UNUSED,
                           const struct seal *seal UNUSED)
{
    return OK;
}

// Who claims a run folds its log, which collects them. One that was claimed for something else is read now.
static enum code load_keys(struct run_log *log, struct error *err)
{
    return log->keys_loaded ? OK : store_replay_log(log->store, log, pass_over, NULL, err);
}

static void touch(struct draft *draft, struct run_log *log)
{
    INVARIANT(log && log->store == draft->store);
    if (!log->touched) log->touched = (uint32_t)++draft->head_count;
}

static void touch_all(struct draft *draft)
{
    const struct store_batch *batch = draft->batch;
    for (size_t i = 0; i < batch->item_count; i++) touch(draft, batch->items[i].log);
    for (size_t i = 0; i < batch->summary_count; i++) touch(draft, batch->summaries[i].log);
}

static void untouch_all(struct draft *draft)
{
    const struct store_batch *batch = draft->batch;
    for (size_t i = 0; i < batch->item_count; i++) batch->items[i].log->touched = 0;
    for (size_t i = 0; i < batch->summary_count; i++) batch->summaries[i].log->touched = 0;
}

static struct commit_head *head_of(const struct draft *draft, const struct run_log *log)
{
    INVARIANT(log->touched > 0 && log->touched <= draft->head_count);
    return &draft->heads[log->touched - 1];
}

static void copy_head(struct draft *draft, struct run_log *log)
{
    struct commit_head *head = head_of(draft, log);
    if (head->log) return;
    *head = (struct commit_head){
        .log = log,
        .create = !log->created,
        .expect_seq = log->last_seq,
        .expect_ledger_seq = log->ledger_seq,
        .last_seq = log->last_seq,
        .ledger_seq = log->ledger_seq,
        .head = log->head,
        .ledger_head = log->ledger_head,
        .summary = log->summary,
        .terminal = log->terminal,
        // Time may go back, a run's persistedAt may not.
        .updated_ms = draft->now_ms > log->last_persisted_ms ? draft->now_ms : log->last_persisted_ms,
        .backend_id = log->backend_id,
    };
}

static enum code open_draft(struct draft *draft)
{
    const struct store_batch *batch = draft->batch;
    touch_all(draft);
    draft->events = ARENA_ARRAY(draft->turn, batch->item_count, struct commit_event);
    draft->ledger = ARENA_ARRAY(draft->turn, batch->item_count, struct commit_ledger);
    draft->keys = ARENA_ARRAY(draft->turn, batch->item_count, struct added_key);
    draft->heads = ARENA_ARRAY(draft->turn, draft->head_count, struct commit_head);
    draft->changed = ARENA_ARRAY(draft->turn, draft->head_count, bool);
    if (!draft->events || !draft->ledger || !draft->keys || !draft->heads || !draft->changed)
        return error_nomem(draft->err);
    for (size_t i = 0; i < batch->item_count; i++) {
        copy_head(draft, batch->items[i].log);
        enum code rc = load_keys(batch->items[i].log, draft->err);
        if (rc) return rc;
    }
    for (size_t i = 0; i < batch->summary_count; i++) copy_head(draft, batch->summaries[i].log);
    return OK;
}

// ---- what was stored before

static void same_as(struct append_item *item, uint64_t seq, const struct seal *seal)
{
    INVARIANT(!item->idempotent);
    item->seq = seq;
    memcpy(item->event_id, seal->event_id, sizeof(item->event_id));
    item->persisted_ms = seal->persisted_ms;
    item->idempotent = true;
}

static const struct append_item *item_of_event(const struct draft *draft, const struct run_log *log, uint64_t seq)
{
    INVARIANT(seq > log->last_seq);
    for (size_t i = 0; i < draft->batch->item_count; i++) {
        const struct append_item *item = &draft->batch->items[i];
        if (item->log == log && item->in_log && !item->idempotent && item->seq == seq) return item;
    }
    return NULL;
}

// Whether event `seq`, stored earlier or drafted in this batch, has this key; fills the item when it has.
static enum code confirm_event(struct draft *draft, struct append_item *item, const struct digest *key, uint32_t seq)
{
    INVARIANT(seq > 0 && !(seq & KEY_LEDGER));
    struct run_log *log = item->log;
    if (seq > log->last_seq) {
        const struct append_item *first = item_of_event(draft, log, seq);
        for (size_t i = 0; i < draft->event_count; i++) {
            const struct commit_event *event = &draft->events[i];
            if (first && event->log == log && event->seq == seq && digest_eq(&event->encoded.key, key)) {
                struct seal seal = {.persisted_ms = first->persisted_ms};
                memcpy(seal.event_id, first->event_id, sizeof(seal.event_id));
                same_as(item, seq, &seal);
            }
        }
        return OK;
    }
    struct records found = {0};
    struct record_range range = {.tenant = log->ids.tenant, .run = log->ids.run, .after = seq - 1, .limit = 1};
    enum code rc = draft->store->ops->log.read(draft->store, &range, draft->turn, &found, draft->err);
    if (rc) return rc;
    if (found.count != 1 || found.items[0].seq != seq)
        return error_set(draft->err, E_CORRUPT, "run %.*s: event %u is missing", STR_ARG(log->ids.run), (unsigned)seq);
    struct moment moment;
    struct seal seal;
    struct digest stored;
    rc = record_key(log->vocabulary, &log->ids, &found.items[0], draft->turn, &moment, &seal, &stored, draft->err);
    if (!rc && digest_eq(&stored, key)) same_as(item, seq, &seal);
    return rc;
}

static enum code find_event(struct draft *draft, struct append_item *item, const struct digest *key)
{
    uint32_t cursor = 0;
    uint32_t number;
    while (!item->idempotent && (number = key_set_next(&item->log->keys, key, &cursor)))
        if (!(number & KEY_LEDGER)) {
            enum code rc = confirm_event(draft, item, key, number);
            if (rc) return rc;
        }
    return OK;
}

// A signal is decided once (I22): the first decision stays, whatever a second one says.
static enum code find_decision(struct draft *draft, struct append_item *item, const struct digest *key)
{
    INVARIANT(item->signal_id.len > 0);
    struct run_log *log = item->log;
    uint32_t cursor = 0;
    uint32_t number;
    while (!item->idempotent && (number = key_set_next(&log->keys, key, &cursor))) {
        uint32_t at = number & ~KEY_LEDGER;
        if (!(number & KEY_LEDGER)) continue;
        for (size_t i = 0; i < draft->ledger_count; i++) {
            const struct commit_ledger *entry = &draft->ledger[i];
            if (entry->log == log && entry->ledger_seq == at && str_eq(entry->signal_id, item->signal_id))
                same_as(item, entry->after_seq, &(struct seal){.persisted_ms = head_of(draft, log)->updated_ms});
        }
        if (at > log->ledger_seq) continue;
        struct records found = {0};
        struct record_range range = {
            .tenant = log->ids.tenant, .run = log->ids.run, .ledger = true, .after = at - 1, .limit = 1};
        enum code rc = draft->store->ops->log.read(draft->store, &range, draft->turn, &found, draft->err);
        if (rc) return rc;
        if (found.count == 1 && str_eq(found.items[0].signal_id, item->signal_id))
            same_as(item, found.items[0].seq, &(struct seal){0});
    }
    return OK;
}

static enum code add_key(struct draft *draft, struct run_log *log, const struct digest *key, uint32_t number)
{
    INVARIANT(number != 0);
    INVARIANT(draft->key_count < draft->batch->item_count);
    if (!key_set_reserve(&log->keys, 1)) return error_nomem(draft->err);
    key_set_add(&log->keys, key, number);
    draft->keys[draft->key_count++] = (struct added_key){log, *key, number};
    return OK;
}

static void take_keys_back(struct draft *draft)
{
    while (draft->key_count > 0) {
        const struct added_key *added = &draft->keys[--draft->key_count];
        key_set_remove(&added->log->keys, &added->key, added->number);
    }
}

// ---- items

// S7. A playbook says "processed" after it said how it finished; that word, in the same batch, is the only one that may
// follow the end.
static bool may_follow(const struct commit_head *head, const struct moment *moment)
{
    INVARIANT(head->log);
    return !head->terminal || (!head->log->terminal && moment->kind == MOMENT_RUN_PROCESSED);
}

static enum code add_event(struct draft *draft, struct append_item *item)
{
    struct run_log *log = item->log;
    struct commit_head *head = head_of(draft, log);
    if (head->last_seq >= RUN_EVENTS_MAX)
        return error_set(draft->err, E_LIMIT, "run %.*s has too many events", STR_ARG(log->ids.run));
    struct seal seal = {.seq = head->last_seq + 1, .persisted_ms = head->updated_ms, .previous = head->head};
    INVARIANT(seal.seq > log->last_seq);                          // S4
    INVARIANT(draft->event_count < draft->batch->item_count);
    struct entropy *entropy = draft->store->options.entropy;
    entropy_uuid(entropy, seal.event_id);
    struct encoded encoded = {0};
    enum code rc = contract_encode(draft->store->options.contract, log->vocabulary, &log->ids, item->moment, &seal,
                                   draft->turn, &encoded, draft->err);
    if (rc) return rc;
    item->in_log = true;
    rc = find_event(draft, item, &encoded.key);
    if (rc || item->idempotent) return rc;
    if (!may_follow(head, item->moment))
        return error_set(draft->err, E_TERMINAL, "run %.*s has ended; %.*s is refused", STR_ARG(log->ids.run),
                         STR_ARG(encoded.type));
    rc = add_key(draft, log, &encoded.key, (uint32_t)seal.seq);
    if (rc) return rc;
    draft->events[draft->event_count++] = (struct commit_event){
        .log = log,
        .seq = seal.seq,
        .encoded = encoded,
        .persisted_ms = seal.persisted_ms,
    };
    head->last_seq = seal.seq;
    head->head = encoded.hash;
    head->terminal = head->terminal || moment_is_terminal(item->moment->kind);
    item->seq = seal.seq;
    item->persisted_ms = seal.persisted_ms;
    item->bytes = encoded.bytes;
    memcpy(item->event_id, seal.event_id, sizeof(item->event_id));
    return OK;
}

static enum code ledger_bytes(struct draft *draft, const struct append_item *item, struct str *out)
{
    if (item->moment) return contract_encode_ledger(item->moment, draft->turn, out, draft->err);
    struct buf text = buf_of(SIZE_MAX / 4);
    json_canon(&text, &item->ledger_body);
    *out = buf_keep(&text, draft->turn);
    return out->ptr ? OK : error_nomem(draft->err);
}

static enum code add_ledger(struct draft *draft, struct append_item *item)
{
    struct run_log *log = item->log;
    struct commit_head *head = head_of(draft, log);
    if (head->ledger_seq >= RUN_EVENTS_MAX)
        return error_set(draft->err, E_LIMIT, "run %.*s has too many ledger entries", STR_ARG(log->ids.run));
    struct digest key = {{0}};
    enum code rc;
    if (item->signal_id.len) {
        key = signal_key(item->signal_id);
        rc = find_decision(draft, item, &key);
        if (rc || item->idempotent) return rc;
    }
    struct str bytes;
    rc = ledger_bytes(draft, item, &bytes);
    if (rc) return rc;
    if (item->signal_id.len) {
        rc = add_key(draft, log, &key, (uint32_t)(head->ledger_seq + 1) | KEY_LEDGER);
        if (rc) return rc;
    }
    const struct str chained[] = {{(const char *)head->ledger_head.b, SHA256_SIZE}, bytes};
    head->ledger_seq++;
    INVARIANT(draft->ledger_count < draft->batch->item_count);
    head->ledger_head = sha256_parts(chained, ARRAY_COUNT(chained));
    draft->ledger[draft->ledger_count++] = (struct commit_ledger){
        .log = log,
        .ledger_seq = head->ledger_seq,
        .after_seq = head->last_seq,
        .kind = item->moment ? STR("moment") : item->ledger_kind,
        .signal_id = item->signal_id,
        .bytes = bytes,
        .hash = head->ledger_head,
    };
    item->seq = head->last_seq;
    item->persisted_ms = head->updated_ms;
    return OK;
}

static enum code add_item(struct draft *draft, struct append_item *item)
{
    item->seq = 0;
    item->persisted_ms = 0;
    item->event_id[0] = '\0';
    item->idempotent = false;
    item->in_log = false;
    item->bytes = (struct str){0};
    INVARIANT(item->moment || item->ledger_kind.len);
    bool event = item->moment && moment_word(item->moment->kind, item->log->vocabulary);
    enum code rc = event ? add_event(draft, item) : add_ledger(draft, item);
    if (!rc && !item->idempotent) draft->changed[item->log->touched - 1] = true;
    return rc;
}

static enum code add_items(struct draft *draft)
{
    const struct store_batch *batch = draft->batch;
    for (size_t i = 0; i < batch->item_count; i++) {
        enum code rc = add_item(draft, &batch->items[i]);
        if (rc) return rc;
    }
    for (size_t i = 0; i < batch->summary_count; i++) {
        const struct append_summary *summary = &batch->summaries[i];
        head_of(draft, summary->log)->summary = summary->summary;
        draft->changed[summary->log->touched - 1] = true;
    }
    return OK;
}

// ---- commit

// Heads that nothing happened to (all their items were there before) are left out.
static void drop_unchanged(struct draft *draft)
{
    INVARIANT(draft->heads || draft->head_count == 0);
    size_t kept = 0;
    for (size_t i = 0; i < draft->head_count; i++) {
        if (draft->changed[i]) draft->heads[kept++] = draft->heads[i];
    }
    draft->head_count = kept;
}

static void apply_heads(const struct draft *draft)
{
    for (size_t i = 0; i < draft->head_count; i++) {
        const struct commit_head *head = &draft->heads[i];
        struct run_log *log = head->log;
        INVARIANT(head->last_seq >= log->last_seq && head->ledger_seq >= log->ledger_seq); // S4
        INVARIANT(head->terminal || !log->terminal);                                      // S7
        log->last_seq = head->last_seq;
        log->ledger_seq = head->ledger_seq;
        log->head = head->head;
        log->ledger_head = head->ledger_head;
        log->last_persisted_ms = head->updated_ms;
        log->summary = head->summary;
        log->terminal = head->terminal;
        if (head->create) log->backend_id = head->backend_id;
        log->created = true;
    }
}

// What every backend may rely on, in each batch.
void commit_check(const struct commit *commit)
{
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct commit_head *head = &commit->heads[i];
        INVARIANT(head->log && head->create == !head->log->created);
        INVARIANT(head->last_seq >= head->expect_seq && head->ledger_seq >= head->expect_ledger_seq); // S4
        INVARIANT(!head->create || (head->expect_seq == 0 && head->expect_ledger_seq == 0));
        INVARIANT(head->last_seq <= RUN_EVENTS_MAX && head->ledger_seq <= RUN_EVENTS_MAX);
    }
    for (size_t i = 0; i < commit->event_count; i++) {
        const struct commit_event *event = &commit->events[i];
        INVARIANT(event->log && event->log->touched);
        INVARIANT(event->seq > event->log->last_seq); // S8: nothing that is stored is written again
        INVARIANT(event->encoded.bytes.len > 0);
    }
    for (size_t i = 0; i < commit->ledger_count; i++) {
        const struct commit_ledger *entry = &commit->ledger[i];
        INVARIANT(entry->log && entry->log->touched);
        INVARIANT(entry->ledger_seq > entry->log->ledger_seq);
    }
    for (size_t i = 0; i < commit->note_count; i++) {
        INVARIANT(commit->notes[i].before || commit->notes[i].after); // S15
        INVARIANT(!commit->notes[i].after || commit->notes[i].after == commit->notes[i].before + 1);
        INVARIANT(commit->notes[i].space.len > 0 && commit->notes[i].key.len > 0);
    }
}

static enum code commit_draft(struct draft *draft)
{
    drop_unchanged(draft);
    const struct store_batch *batch = draft->batch;
    struct note_draft notes;
    note_draft_init(&notes, draft->store, draft->turn);
    enum code rc = OK;
    if (batch->drafted)
        notes = *batch->drafted;
    else
        rc = note_draft_add(&notes, batch->notes, batch->note_count, draft->err);
    if (rc) return rc;
    if (draft->head_count + batch->blob_count + batch->inbox_count + notes.change_count == 0) return OK;
    struct commit commit = {
        .events = draft->events,
        .event_count = draft->event_count,
        .ledger = draft->ledger,
        .ledger_count = draft->ledger_count,
        .heads = draft->heads,
        .head_count = draft->head_count,
        .blobs = batch->blobs,
        .blob_count = batch->blob_count,
        .inbox_done = batch->inbox_done,
        .inbox_count = batch->inbox_count,
        .notes = notes.changes,
        .note_count = notes.change_count,
        .wait_ms = batch->wait_ms,
    };
    commit_check(&commit);
    rc = store_heed(draft->store, draft->store->ops->log.commit(draft->store, &commit, draft->turn, draft->err));
    if (rc == OK) apply_heads(draft);
    return rc;
}

enum code store_append(struct store *store, struct store_batch *batch, int64_t now_ms, struct arena *turn,
                       struct error *err)
{
    enum code rc = store_writable(store, err);
    if (rc) return rc;
    if (store->fenced) return shard_fenced(store, err);
    struct draft draft = {.store = store, .batch = batch, .turn = turn, .err = err, .now_ms = now_ms};
    rc = open_draft(&draft);
    if (!rc) rc = add_items(&draft);
    if (!rc) rc = commit_draft(&draft);
    if (rc) take_keys_back(&draft);
    untouch_all(&draft);
    return rc;
}
