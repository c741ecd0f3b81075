// Events and ledger are two ascending lists; a ledger entry with number n happened after event n and before n + 1. Both
// are read up to what the head said at the start, so a run that is being written is seen as it was at one moment.
#include "store/backend.h"

#include <string.h>

enum { PAGE = 256 };

struct record_source {
    struct records page;
    size_t at;
    uint64_t after, end; // last number taken, last one to take
    struct arena arena;
};

struct replay {
    struct store *store;
    struct run_head head;
    struct record_source events, ledger;
    struct arena scratch;
    struct replay_cursor *cursor;
    struct run_log *log; // whose keys are collected; or NULL
    struct error *err;
};

// A store that keeps keys in a column keeps their first bytes, which is as much as a set needs.
static enum code collect_key(struct replay *replay, const struct record *record, const struct moment *moment)
{
    struct run_log *log = replay->log;
    struct digest key = {{0}};
    enum code rc = OK;
    if (!log || (record->ledger_seq && record->signal_id.len == 0)) return OK;
    INVARIANT(log->store == replay->store && !log->keys_loaded);
    if (!key_set_reserve(&log->keys, 1)) return error_nomem(replay->err);
    if (record->ledger_seq) {
        key = signal_key(record->signal_id);
    } else if (record->columns && record->columns->key.len <= SHA256_SIZE) {
        memcpy(key.b, record->columns->key.ptr, record->columns->key.len);
    } else {
        rc = recorded_key(log->vocabulary, &log->ids, record, moment, &replay->scratch, &key, replay->err);
    }
    uint32_t number = record->ledger_seq ? (uint32_t)record->ledger_seq | KEY_LEDGER : (uint32_t)record->seq;
    if (!rc) key_set_add(&log->keys, &key, number);
    return rc;
}

// The record that is next of a source; NULL at the end.
static enum code peek(struct replay *replay, struct record_source *source, const struct record **out)
{
    *out = NULL;
    if (source->after >= source->end) return OK;
    INVARIANT(source->at <= source->page.count);
    bool ledger = source == &replay->ledger;
    if (source->at == source->page.count) {
        arena_reset(&source->arena);
        const struct run_ids *ids = &replay->head.ids;
        struct record_range range = {
            .tenant = ids->tenant, .run = ids->run, .ledger = ledger, .after = source->after, .limit = PAGE};
        enum code rc = store_read(replay->store, &range, &source->arena, &source->page, replay->err);
        if (rc) return rc;
        source->at = 0;
    }
    const struct record *record = source->page.count ? &source->page.items[source->at] : NULL;
    if (!record || (ledger ? record->ledger_seq : record->seq) != source->after + 1)
        return error_set(replay->err, E_CORRUPT, "run %.*s: %s %llu is missing", STR_ARG(replay->head.ids.run),
                         ledger ? "ledger entry" : "event", (unsigned long long)source->after + 1);
    *out = record;
    return OK;
}

static void advance(struct record_source *source)
{
    INVARIANT(source->at < source->page.count);
    INVARIANT(source->after < source->end);
    source->at++;
    source->after++;
}

static enum code broken_chain(const struct replay *replay, const char *what, uint64_t number)
{
    INVARIANT(number > 0);
    return error_set(replay->err, E_CORRUPT, "run %.*s: %s %llu does not follow the one before it (its hash differs)",
                     STR_ARG(replay->head.ids.run), what, (unsigned long long)number);
}

bool start_fits(const struct moment *moment, const struct digest *document)
{
    if (!moment->start || moment->start->document_sha256.len == 0) return true;
    char hex[SHA256_HEX + 1];
    digest_hex(document, hex);
    return str_is(moment->start->document_sha256, hex);
}

// The chain says with which document the run was started. A store that keeps another one for it would have that executed instead.
static enum code visit_moment(struct replay *replay, const struct record *record, const struct moment *moment,
                              const struct seal *seal, replay_visit visit, void *context)
{
    if (moment && !start_fits(moment, &replay->head.document))
        return error_set(replay->err, E_CORRUPT,
                         "run %.*s: PLAN_INTEGRITY_VALIDATION_FAILED: the store keeps another document for it than the "
                         "one that it was started with",
                         STR_ARG(replay->head.ids.run));
    enum code rc = visit(context, record, moment, seal);
    return rc ? rc : collect_key(replay, record, moment);
}

static enum code visit_event(struct replay *replay, const struct record *record, replay_visit visit, void *context)
{
    struct moment moment = {0};
    struct seal seal = {0};
    enum code rc =
        contract_decode(replay->head.vocabulary, record->bytes, &replay->scratch, &moment, &seal, NULL, replay->err);
    if (rc) {
        error_wrap(replay->err, "run %.*s, event %llu", STR_ARG(replay->head.ids.run), (unsigned long long)record->seq);
        return rc;
    }
    if (!digest_eq(&seal.previous, &replay->cursor->head) || seal.seq != record->seq)
        return broken_chain(replay, "event", record->seq);
    if (record->seq == replay->head.last_seq && !digest_eq(&record->hash, &replay->head.head))
        return broken_chain(replay, "the head after event", record->seq);
    rc = visit_moment(replay, record, &moment, &seal, visit, context);
    if (rc) return rc;
    replay->cursor->seq = record->seq;
    replay->cursor->head = record->hash;
    return OK;
}

static enum code visit_ledger(struct replay *replay, const struct record *record, replay_visit visit, void *context)
{
    const struct str chained[] = {{(const char *)replay->cursor->ledger_head.b, SHA256_SIZE}, record->bytes};
    struct digest hash = record->redacted ? record->hash : sha256_parts(chained, ARRAY_COUNT(chained));
    if (!digest_eq(&hash, &record->hash)) return broken_chain(replay, "ledger entry", record->ledger_seq);
    if (record->ledger_seq == replay->head.last_ledger_seq && !digest_eq(&hash, &replay->head.ledger_head))
        return broken_chain(replay, "the head after ledger entry", record->ledger_seq);
    struct moment moment = {0};
    bool told = str_is(record->type, "moment");
    enum code rc = told ? contract_decode_ledger(record->bytes, &replay->scratch, &moment, replay->err) : OK;
    if (rc) {
        error_wrap(replay->err, "run %.*s, ledger entry %llu", STR_ARG(replay->head.ids.run),
                   (unsigned long long)record->ledger_seq);
        return rc;
    }
    rc = visit_moment(replay, record, told ? &moment : NULL, NULL, visit, context);
    if (rc) return rc;
    replay->cursor->ledger_seq = record->ledger_seq;
    replay->cursor->ledger_head = hash;
    return OK;
}

static enum code merge(struct replay *replay, replay_visit visit, void *context)
{
    for (;;) {
        const struct record *event;
        const struct record *entry;
        enum code rc = peek(replay, &replay->events, &event);
        if (!rc) rc = peek(replay, &replay->ledger, &entry);
        if (rc || (!event && !entry)) return rc;
        arena_reset(&replay->scratch);
        if (entry && (!event || entry->seq < event->seq)) {
            rc = visit_ledger(replay, entry, visit, context);
            advance(&replay->ledger);
        } else {
            rc = visit_event(replay, event, visit, context);
            advance(&replay->events);
        }
        if (rc) return rc;
    }
}

static enum code replay_up_to(struct store *store, const struct run_head *head, struct run_log *log,
                              struct replay_cursor *cursor, replay_visit visit, void *context, struct error *err)
{
    struct replay replay = {.store = store, .head = *head, .cursor = cursor, .log = log, .err = err};
    arena_init(&replay.scratch, 16 * 1024, SIZE_MAX);
    arena_init(&replay.events.arena, 64 * 1024, SIZE_MAX);
    arena_init(&replay.ledger.arena, 4 * 1024, SIZE_MAX);
    replay.events.after = cursor->seq;
    replay.events.end = replay.head.last_seq;
    replay.ledger.after = cursor->ledger_seq;
    replay.ledger.end = replay.head.last_ledger_seq;
    enum code rc = merge(&replay, visit, context);
    arena_release(&replay.ledger.arena);
    arena_release(&replay.events.arena);
    arena_release(&replay.scratch);
    return rc;
}

enum code store_replay_from(struct store *store, struct str tenant, struct str run, struct replay_cursor *cursor,
                            replay_visit visit, void *context, struct error *err)
{
    struct run_head head;
    struct arena kept SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    enum code rc = store_head(store, tenant, run, &kept, &head, err);
    if (!rc) rc = replay_up_to(store, &head, NULL, cursor, visit, context, err);
    return rc;
}

enum code store_replay_log(struct store *store, struct run_log *log, replay_visit visit, void *context,
                           struct error *err)
{
    struct replay_cursor beginning = {0};
    struct run_head head = {.ids = log->ids,
                            .vocabulary = log->vocabulary,
                            .document = log->document,
                            .last_seq = log->last_seq,
                            .last_ledger_seq = log->ledger_seq,
                            .head = log->head,
                            .ledger_head = log->ledger_head};
    bool collect = !log->keys_loaded;
    INVARIANT(!collect || log->keys.count == 0);
    enum code rc = replay_up_to(store, &head, collect ? log : NULL, &beginning, visit, context, err);
    if (collect && rc) key_set_release(&log->keys);
    log->keys_loaded = log->keys_loaded || rc == OK;
    return rc;
}

enum code store_replay(struct store *store, struct str tenant, struct str run, replay_visit visit, void *context,
                       struct error *err)
{
    struct replay_cursor beginning = {0};
    return store_replay_from(store, tenant, run, &beginning, visit, context, err);
}
