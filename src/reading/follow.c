// All runs, followed through the feed. A page of the feed is sorted by runs; each run that moved has a projector, which is given
// its part of the page with what the ledger says in between. A run that is not held (it was evicted, or began before) is read
// from its first event on; what a projector wants to have read again is read from the store, run by run.
#include "reading/reading.h"

#include <stdlib.h>
#include <string.h>

enum { RUN_MAX = 1024, PAGE = 512, PROGRAM_MAX = 64, TENANT_MAX = 64, BUCKETS = 4096, TENANT_SIZE = 129 };
#define NOBODY UINT32_MAX

struct followed {
    struct followed *chain;         // of its bucket
    struct followed *newer, *older; // the oldest goes first when there are too many
    struct follower *follower;
    struct str tenant, run; // in bytes
    struct projector *projector;
    struct program *program; // may be NULL
    enum vocabulary vocabulary;
    uint64_t ledger_seq;  // entries up to here were given
    bool owes;            // something must be read again, now or later
    bool lagging;         // reported as late by itself
    uint32_t first, last; // of the page: its items, linked; NOBODY = it did not move
    char bytes[];
};

struct known_program {
    struct digest document;
    struct program *program;
};

struct follower {
    struct follower_options options;
    struct follower_state state;
    int64_t opened_ms;
    struct followed *buckets[BUCKETS];
    struct followed *newest, *oldest;
    size_t owing;
    struct known_program programs[PROGRAM_MAX];
    size_t program_count;
    char late[TENANT_MAX][TENANT_SIZE]; // tenants whose events waited too long
    size_t late_count;
    struct arena page, scratch;
    int64_t now_ms;
};

// ---- runs that are held

static struct followed **bucket_of(struct follower *follower, struct str tenant, struct str run)
{
    uint64_t hash = str_hash(tenant) * UINT64_C(0x9E3779B97F4A7C15) ^ str_hash(run);
    return &follower->buckets[(hash ^ hash >> 32) % BUCKETS];
}

static void take_out(struct followed *one)
{
    struct follower *follower = one->follower;
    *(one->newer ? &one->newer->older : &follower->newest) = one->older;
    *(one->older ? &one->older->newer : &follower->oldest) = one->newer;
}

static void put_in(struct followed *one, bool newest)
{
    struct follower *follower = one->follower;
    one->newer = newest ? NULL : follower->oldest;
    one->older = newest ? follower->newest : NULL;
    *(one->newer ? &one->newer->older : &follower->newest) = one;
    *(one->older ? &one->older->newer : &follower->oldest) = one;
}

static void set_owes(struct followed *one, bool owes)
{
    if (one->owes == owes) return;
    one->owes = owes;
    if (owes)
        one->follower->owing++;
    else
        one->follower->owing--;
}

static void forget(struct followed *one)
{
    struct followed **at = bucket_of(one->follower, one->tenant, one->run);
    while (*at != one) at = &(*at)->chain;
    *at = one->chain;
    take_out(one);
    set_owes(one, false);
    one->follower->state.runs--;
    projector_close(one->projector);
    if (one->program) program_release(one->program);
    free(one);
}

// Room for one more. What is in the page stays; there are more places than items of a page.
static void make_room(struct follower *follower)
{
    struct followed *victim = follower->oldest;
    if (follower->state.runs < follower->options.run_max) return;
    while (victim && victim->first != NOBODY) victim = victim->newer;
    if (victim) forget(victim);
}

static struct followed *find(struct follower *follower, struct str tenant, struct str run)
{
    struct followed *one = *bucket_of(follower, tenant, run);
    while (one && !(str_eq(one->run, run) && str_eq(one->tenant, tenant))) one = one->chain;
    return one;
}

static void forget_programs(struct follower *follower)
{
    while (follower->program_count > 0) program_release(follower->programs[--follower->program_count].program);
}

// Documents are few and runs are many. NULL: it cannot be read; then less is known of what must come before what.
static struct program *program_of(struct follower *follower, struct store *store, const struct run_head *head)
{
    struct error err = {0};
    for (size_t i = 0; i < follower->program_count; i++)
        if (digest_eq(&follower->programs[i].document, &head->document)) return follower->programs[i].program;
    if (follower->program_count == PROGRAM_MAX) forget_programs(follower);
    struct known_program *known = &follower->programs[follower->program_count];
    known->document = head->document;
    if (engine_program(store, head, &known->program, &err)) return NULL;
    follower->program_count++;
    return known->program;
}

// ---- what projectors report

// That a page is late is reported once for each tenant (see tell_late), not by every run that is in it.
static void on_report(void *context, const struct project_report *report)
{
    struct followed *one = context;
    const struct follower_options *options = &one->follower->options;
    bool lag = report->kind == PROJECT_LAG_HIGH || report->kind == PROJECT_LAG_NORMAL;
    if (lag && !one->owes && !one->lagging) return;
    if (lag) one->lagging = report->kind == PROJECT_LAG_HIGH;
    if (options->sink.report) options->sink.report(options->sink.context, report);
}

static void on_publish(void *context, const struct snapshot *snapshot)
{
    const struct followed *one = context;
    one->follower->options.sink.publish(one->follower->options.sink.context, snapshot);
}

static void tell_lag(struct follower *follower, struct str tenant, int64_t lag_ms)
{
    struct run_ids ids = {.tenant = tenant};
    struct error text = {0};
    bool high = lag_ms > 0;
    error_set(&text, E_TIMEOUT, high ? "events wait for %lld ms to be projected" : "the projection has caught up",
              (long long)lag_ms);
    struct project_report report = {.kind = high ? PROJECT_LAG_HIGH : PROJECT_LAG_NORMAL,
                                    .ids = &ids,
                                    .at_ms = follower->now_ms,
                                    .lag_ms = lag_ms,
                                    .text = text.message};
    if (follower->options.sink.report) follower->options.sink.report(follower->options.sink.context, &report);
}

// Nothing waits for longer than the follower lives.
static void tell_late(struct follower *follower, struct str tenant, int64_t persisted_ms)
{
    int64_t since = persisted_ms > follower->opened_ms ? persisted_ms : follower->opened_ms;
    int64_t lag = follower->now_ms - since;
    if (project_lag_class(lag) != PROJECT_LAG_BAD || follower->late_count == TENANT_MAX || tenant.len >= TENANT_SIZE)
        return;
    for (size_t i = 0; i < follower->late_count; i++)
        if (str_is(tenant, follower->late[i])) return;
    char *kept = follower->late[follower->late_count++];
    memcpy(kept, tenant.ptr, tenant.len);
    kept[tenant.len] = '\0';
    tell_lag(follower, tenant, lag);
}

static void tell_caught_up(struct follower *follower)
{
    for (size_t i = 0; i < follower->late_count; i++) tell_lag(follower, str_from(follower->late[i]), 0);
    follower->late_count = 0;
}

// ---- opening

// NULL with OK: the run is not there any more.
static enum code open_run(struct follower *follower, struct store *store, const struct feed_item *item,
                          struct followed **out, struct error *err)
{
    struct run_head head;
    *out = NULL;
    arena_reset(&follower->scratch);
    enum code rc = store_head(store, item->tenant, item->run, &follower->scratch, &head, err);
    if (rc) return rc == E_NOT_FOUND ? OK : rc;
    make_room(follower);
    struct followed *one = calloc(1, sizeof(*one) + item->tenant.len + item->run.len + 2);
    if (!one) return error_nomem(err);
    memcpy(one->bytes, item->tenant.ptr, item->tenant.len);
    memcpy(one->bytes + item->tenant.len + 1, item->run.ptr, item->run.len);
    one->tenant = (struct str){one->bytes, item->tenant.len};
    one->run = (struct str){one->bytes + item->tenant.len + 1, item->run.len};
    one->follower = follower;
    one->vocabulary = head.vocabulary;
    one->first = one->last = NOBODY;
    struct program *program = program_of(follower, store, &head);
    if (program) one->program = program_retain(program);
    struct project_sink sink = {one, follower->options.sink.publish ? on_publish : NULL, on_report};
    one->projector = projector_open(&head.ids, one->program, NULL, follower->now_ms, &sink);
    if (!one->projector) {
        if (one->program) program_release(one->program);
        free(one);
        return error_nomem(err);
    }
    struct followed **bucket = bucket_of(follower, one->tenant, one->run);
    one->chain = *bucket;
    *bucket = one;
    put_in(one, true);
    follower->state.runs++;
    *out = one;
    return OK;
}

// ---- records to events

static uint64_t watermark(const struct followed *one)
{
    const struct snapshot *snapshot = projector_snapshot(one->projector);
    return snapshot ? snapshot_seq(snapshot) : 0;
}

// A record that nobody can read is passed by, like one of an unknown type.
static bool event_of(const struct followed *one, const struct record *record, struct arena *arena,
                     struct project_event *out)
{
    struct seal seal = {0};
    struct error err = {0};
    *out = (struct project_event){.seq = record->seq, .ledger = record->ledger_seq != 0, .type = record->type};
    enum code rc = out->ledger
                       ? contract_decode_ledger(record->bytes, arena, &out->moment, &err)
                       : contract_decode(one->vocabulary, record->bytes, arena, &out->moment, &seal, NULL, &err);
    if (rc == E_NOMEM) return false;
    if (rc) out->moment = (struct moment){.kind = MOMENT_UNKNOWN};
    out->persisted_ms = seal.persisted_ms;
    out->id = arena_copy(arena, str_from(seal.event_id));
    return out->id.ptr != NULL;
}

struct events {
    struct project_event *items;
    size_t count, capacity;
};

static bool push(struct events *events, const struct project_event *event, struct arena *arena)
{
    if (!ARENA_ROOM(arena, events->items, events->count, &events->capacity)) return false;
    events->items[events->count++] = *event;
    return true;
}

// What the ledger says up to event `until`, behind entry *after, which moves on.
static enum code read_ledger(struct followed *one, struct store *store, uint64_t until, uint64_t *after,
                             struct arena *arena, struct events *out, struct error *err)
{
    for (;;) {
        struct records page;
        struct record_range range = {
            .tenant = one->tenant, .run = one->run, .ledger = true, .after = *after, .limit = PAGE};
        enum code rc = store_read(store, &range, arena, &page, err);
        if (rc) return rc;
        for (size_t i = 0; i < page.count; i++) {
            const struct record *record = &page.items[i];
            struct project_event event;
            if (record->seq > until) return OK;
            *after = record->ledger_seq;
            if (!str_is(record->type, "moment")) continue;
            if (!event_of(one, record, arena, &event) || !push(out, &event, arena)) return error_nomem(err);
        }
        if (page.count < PAGE) return OK;
    }
}

// Both lists ascend; an entry stands behind the event of its number.
static enum code merge(const struct events *log, const struct events *ledger, struct arena *arena, struct events *out,
                       struct error *err)
{
    size_t i = 0, k = 0;
    *out = (struct events){0};
    while (i < log->count || k < ledger->count) {
        bool entry = i == log->count || (k < ledger->count && ledger->items[k].seq < log->items[i].seq);
        if (!push(out, entry ? &ledger->items[k++] : &log->items[i++], arena)) return error_nomem(err);
    }
    return OK;
}

// ---- reading a run

// What became of a reading. A run that was removed, and a projector without memory, are let go.
static enum code put_off(struct followed *one, enum code rc, const struct error *err)
{
    if (rc == E_NOMEM || rc == E_CANCELLED || rc == E_NOT_FOUND) {
        forget(one);
        return rc == E_NOT_FOUND ? OK : rc;
    }
    projector_failed(one->projector, err, one->follower->now_ms);
    set_owes(one, true);
    return OK;
}

// Entries that stand behind a gap were read, but not applied: they come again with what is behind it.
static enum code stop_at_gap(struct followed *one, struct store *store, struct error *err)
{
    struct events applied = {0};
    return read_ledger(one, store, watermark(one), &one->ledger_seq, &one->follower->scratch, &applied, err);
}

// From the store, behind what the projector asks for, to the end. `resync`: as an answer to its wish.
static enum code read_run(struct followed *one, struct store *store, bool resync, struct error *err)
{
    struct follower *follower = one->follower;
    struct arena *arena = &follower->scratch;
    const struct follower_options *options = &follower->options;
    uint64_t after = projector_next(one->projector).after, ledger_seq = after == 0 ? 0 : one->ledger_seq;
    bool more = true;
    while (more) {
        struct records page;
        struct events log = {0}, ledger = {0}, all = {0};
        if (options->stopped && options->stopped(options->sink.context)) return error_set(err, E_CANCELLED, "stopped");
        arena_reset(arena);
        struct record_range range = {.tenant = one->tenant, .run = one->run, .after = after, .limit = PAGE};
        enum code rc = store_read(store, &range, arena, &page, err);
        for (size_t i = 0; !rc && i < page.count; i++) {
            struct project_event event;
            bool ok = event_of(one, &page.items[i], arena, &event) && push(&log, &event, arena);
            if (!ok) rc = error_nomem(err);
            after = page.items[i].seq;
        }
        if (!rc) rc = read_ledger(one, store, after, &ledger_seq, arena, &ledger, err);
        if (!rc) rc = merge(&log, &ledger, arena, &all, err);
        if (rc) return rc;
        more = page.count == PAGE;
        bool ok = resync ? projector_resynced(one->projector, all.items, all.count, more, follower->now_ms)
                         : projector_fetched(one->projector, all.items, all.count, follower->now_ms);
        if (!ok) return error_nomem(err);
        // A gap ends what was begun: the projector asks for it as it wants it.
        if (!resync && projector_next(one->projector).want != PROJECT_FETCH) return stop_at_gap(one, store, err);
    }
    if (projector_next(one->projector).want == PROJECT_FETCH) one->ledger_seq = ledger_seq;
    return OK;
}

// Whatever must be read again, as far as its time has come.
static enum code settle(struct followed *one, struct store *store, struct error *err)
{
    for (int i = 0; i < 3; i++) {
        struct project_request next = projector_next(one->projector);
        if (next.want == PROJECT_FETCH && !one->owes) return OK;
        set_owes(one, true);
        if (next.not_before_ms > one->follower->now_ms) break;
        enum code rc = read_run(one, store, next.want != PROJECT_FETCH, err);
        if (rc) return put_off(one, rc, err);
        next = projector_next(one->projector);
        set_owes(one, next.want != PROJECT_FETCH || next.not_before_ms > 0);
    }
    projector_time(one->projector, one->follower->now_ms);
    return OK;
}

// ---- a page

struct page_item { // an item of the page
    struct project_event event;
    uint32_t next; // of the same run
};

// Its part of the page, with what the ledger says in between.
static enum code give_lines(struct followed *one, struct store *store, const struct page_item *lines, struct error *err)
{
    struct follower *follower = one->follower;
    struct events log = {0}, ledger = {0}, all = {0};
    struct arena *arena = &follower->scratch;
    uint64_t until = 0, ledger_seq = one->ledger_seq;
    arena_reset(arena);
    for (uint32_t i = one->first; i != NOBODY; i = lines[i].next) {
        if (!push(&log, &lines[i].event, arena)) return error_nomem(err);
        if (lines[i].event.seq > until) until = lines[i].event.seq;
    }
    enum code rc = read_ledger(one, store, until, &ledger_seq, arena, &ledger, err);
    if (!rc) rc = merge(&log, &ledger, arena, &all, err);
    if (rc) return rc;
    if (!projector_fetched(one->projector, all.items, all.count, follower->now_ms)) return error_nomem(err);
    if (projector_next(one->projector).want != PROJECT_FETCH) return stop_at_gap(one, store, err);
    one->ledger_seq = ledger_seq;
    return OK;
}

static enum code give(struct followed *one, struct store *store, const struct page_item *lines, struct error *err)
{
    for (uint32_t i = one->first; i != NOBODY; i = lines[i].next)
        projector_head(one->projector, lines[i].event.seq, lines[i].event.persisted_ms);
    if (one->owes) return OK; // what is read again has these, too
    // One that began before is read from its first event on, which may be missing, too.
    bool began_before = watermark(one) == 0 && lines[one->first].event.seq > 1;
    enum code rc = began_before ? read_run(one, store, false, err) : give_lines(one, store, lines, err);
    return rc ? put_off(one, rc, err) : OK;
}

static bool has_ended(const struct followed *one)
{
    const struct snapshot *snapshot = projector_snapshot(one->projector);
    return snapshot && run_status_terminal(snapshot_view(snapshot)->status) && !one->owes;
}

// Sorts the page by runs. *touched: those that moved, linked by nothing but their places in the array.
static enum code sort_page(struct follower *follower, struct store *store, const struct feed *feed,
                           struct page_item *lines, struct followed **touched, size_t *count, struct error *err)
{
    for (size_t i = 0; i < feed->count; i++) {
        const struct feed_item *item = &feed->items[i];
        struct followed *one = find(follower, item->tenant, item->run);
        enum code rc = one ? OK : open_run(follower, store, item, &one, err);
        if (rc) return rc;
        if (!one) continue;
        if (!event_of(one, &item->record, &follower->page, &lines[i].event)) return error_nomem(err);
        lines[i].next = NOBODY;
        tell_late(follower, item->tenant, lines[i].event.persisted_ms);
        if (one->first == NOBODY)
            one->first = (uint32_t)i;
        else
            lines[one->last].next = (uint32_t)i;
        if (one->last == NOBODY) touched[(*count)++] = one;
        one->last = (uint32_t)i;
    }
    return OK;
}

static enum code take_page(struct follower *follower, struct store *store, const struct feed *feed, struct error *err)
{
    struct page_item *lines = ARENA_ARRAY(&follower->page, feed->count + 1, struct page_item);
    struct followed **touched = ARENA_ARRAY(&follower->page, feed->count + 1, struct followed *);
    size_t count = 0;
    if (!lines || !touched) return error_nomem(err);
    enum code rc = sort_page(follower, store, feed, lines, touched, &count, err);
    for (size_t i = 0; i < count; i++) {
        struct followed *one = touched[i];
        size_t held = follower->state.runs;
        if (!rc) rc = give(one, store, lines, err);
        if (follower->state.runs < held) continue; // it is gone
        one->first = one->last = NOBODY;
        if (rc) continue;
        rc = settle(one, store, err);
        if (follower->state.runs < held) continue;
        take_out(one);
        put_in(one, !has_ended(one)); // an ended one is the first to go
    }
    return rc;
}

static enum code settle_all(struct follower *follower, struct store *store, struct error *err)
{
    enum code rc = OK;
    for (struct followed *one = follower->newest, *next; !rc && one && follower->owing > 0; one = next) {
        next = one->older;
        if (one->owes) rc = settle(one, store, err);
    }
    follower->state.stale = follower->owing;
    return rc;
}

enum code follower_round(struct follower *follower, struct store *store, int64_t now_ms, bool *more, struct error *err)
{
    struct feed feed;
    uint64_t end = 0;
    *more = false;
    follower->now_ms = now_ms;
    arena_reset(&follower->page);
    enum code rc = store_feed(store, follower->state.position, follower->options.page, &follower->page, &feed, err);
    if (!rc) rc = take_page(follower, store, &feed, err);
    if (!rc) rc = settle_all(follower, store, err);
    if (rc) return rc;
    if (feed.count > 0 || feed.next > follower->state.position) follower->state.position = feed.next;
    follower->state.events += feed.count;
    *more = feed.count == follower->options.page;
    if (*more) rc = store_feed_end(store, &end, err);
    if (rc) return rc;
    follower->state.waiting = end > follower->state.position ? end - follower->state.position : 0;
    if (!*more) tell_caught_up(follower);
    return OK;
}

struct follower_state follower_state(const struct follower *follower)
{
    return follower->state;
}

struct follower *follower_open(const struct follower_options *options, int64_t now_ms)
{
    struct follower *follower = calloc(1, sizeof(*follower));
    if (!follower) return NULL;
    follower->options = *options;
    if (!follower->options.page) follower->options.page = PAGE;
    if (!follower->options.run_max) follower->options.run_max = RUN_MAX;
    if (follower->options.run_max <= follower->options.page) follower->options.run_max = follower->options.page + 1;
    follower->state.position = options->position;
    follower->opened_ms = now_ms;
    arena_init(&follower->page, (size_t)256 * 1024, (size_t)1 << 30);
    arena_init(&follower->scratch, 64 * 1024, (size_t)1 << 30);
    return follower;
}

void follower_close(struct follower *follower)
{
    if (!follower) return;
    for (struct followed *one = follower->newest, *next; one; one = next) {
        next = one->older;
        forget(one);
    }
    forget_programs(follower);
    arena_release(&follower->page);
    arena_release(&follower->scratch);
    free(follower);
}
