// The loop around the projection, as a machine: given what happened, it says what to fetch next.
#include "view/project_inside.h"

enum { RETRY_MS = 100, RETRY_MAX_MS = 10 * 1000 };
#define PROJECTOR_MAX ((size_t)64 << 20)

// The numbers between `last` and `next` are not in the log.
struct gap {
    uint64_t last, next;
};

struct gaps {
    struct gap *items;
    size_t count, capacity;
};

struct projector {
    struct arena arena; // holds this struct, too
    struct run_ids ids;
    const struct program *program;
    struct project_sink sink;
    const struct snapshot *current; // NULL: no event yet
    struct snapshot *draft;         // of a resync under way
    enum project_want want;
    uint64_t target;  // of a resync: the watermark that must be reached
    struct gap cause; // of a resync; next 0: a number came late
    struct gaps told; // reported, whatever became of them
    struct gaps open; // accepted: nothing was there when the log was read again
    struct map noticed;
    uint64_t unknown_seq; // unknown types up to here were reported
    uint32_t failures;
    int64_t retry_ms;
    // lag
    int64_t since_ms; // nothing waits for longer than the projector lives
    uint64_t head_seq;
    int64_t wait_ms; // no event that was not applied is older
    bool lagging;
};

static uint64_t watermark(const struct projector *projector)
{
    return projector->current ? projector->current->view.last_seq : 0;
}

static void report(struct projector *projector, struct project_report told)
{
    told.ids = &projector->ids;
    if (projector->sink.report) projector->sink.report(projector->sink.context, &told);
}

static bool add_gap(struct projector *projector, struct gaps *gaps, struct gap gap)
{
    if (!ARENA_ROOM(&projector->arena, gaps->items, gaps->count, &gaps->capacity)) return false;
    gaps->items[gaps->count++] = gap;
    return true;
}

static bool is_within(const struct gaps *gaps, struct gap gap)
{
    for (size_t i = 0; i < gaps->count; i++) {
        if (gaps->items[i].last <= gap.last && gap.next <= gaps->items[i].next) return true;
    }
    return false;
}

// C-14: once per run and range; a piece of a range that was reported is no news.
static bool tell_gap(struct projector *projector, struct gap gap, int64_t now_ms)
{
    if (is_within(&projector->told, gap)) return true;
    struct error text = {0};
    error_set(&text, E_CONFLICT,
              "events %llu and %llu follow each other: the projection lags or the numbers were never used; nothing is "
              "lost, the log is read again",
              (unsigned long long)gap.last, (unsigned long long)gap.next);
    report(projector,
           (struct project_report){
               .kind = PROJECT_GAP, .seq = gap.last, .until = gap.next, .at_ms = now_ms, .text = text.message});
    return add_gap(projector, &projector->told, gap);
}

// Each event is reported once, however often everything is read again.
static bool notice(struct projector *projector, enum project_report_kind kind, const struct project_event *event,
                   const struct applied *applied, int64_t now_ms)
{
    struct error key = {0}, text = {0};
    uint32_t existing;
    error_set(&key, E_CONFLICT, "%d %llu %.*s", (int)kind, (unsigned long long)event->seq, STR_ARG(event->id));
    struct str kept = arena_copy(&projector->arena, str_from(key.message));
    if (!kept.ptr || !map_put(&projector->noticed, kept, 0, &existing)) return false;
    if (existing != MAP_NONE) return true;
    const char *what =
        kind == PROJECT_INVALID ? "is not allowed while the run is" : "came before its cause; the run is";
    error_set(&text, E_CONFLICT, "event %llu (%.*s%s%.*s) %s %s", (unsigned long long)event->seq, STR_ARG(event->type),
              event->moment.step.len ? " of " : "", STR_ARG(event->moment.step), what, run_status_name(applied->prior));
    report(projector, (struct project_report){.kind = kind,
                                              .seq = event->seq,
                                              .event_id = event->id,
                                              .type = event->type,
                                              .step = event->moment.step,
                                              .prior = applied->prior,
                                              .at_ms = now_ms,
                                              .text = text.message});
    return true;
}

static void notice_unknown(struct projector *projector, const struct project_event *event, int64_t now_ms)
{
    if (event->moment.kind != MOMENT_UNKNOWN || event->seq <= projector->unknown_seq) return;
    projector->unknown_seq = event->seq;
    struct error text = {0};
    error_set(&text, E_UNSUPPORTED, "event %llu has the unknown type %.*s; it changes nothing",
              (unsigned long long)event->seq, STR_ARG(event->type));
    report(projector, (struct project_report){.kind = PROJECT_UNKNOWN_TYPE,
                                              .seq = event->seq,
                                              .event_id = event->id,
                                              .type = event->type,
                                              .at_ms = now_ms,
                                              .text = text.message});
}

static bool apply(struct projector *projector, struct snapshot *draft, const struct project_event *event,
                  int64_t now_ms)
{
    struct applied applied;
    notice_unknown(projector, event, now_ms);
    if (!draft_apply(draft, event, &applied)) return false;
    if (event->persisted_ms > projector->wait_ms) projector->wait_ms = event->persisted_ms;
    if (applied.refused) return notice(projector, PROJECT_INVALID, event, &applied, now_ms);
    return !applied.early || notice(projector, PROJECT_CAUSAL, event, &applied, now_ms);
}

static bool publish(struct projector *projector, struct snapshot *draft, bool stale)
{
    draft->view.stale = stale;
    if (projector->sink.publish && !draft_seal(draft)) { // a hash is for those who get to see it
        snapshot_release(draft);
        return false;
    }
    snapshot_release(projector->current);
    projector->current = draft;
    if (projector->sink.publish) projector->sink.publish(projector->sink.context, draft);
    return true;
}

// ---- lag

void projector_head(struct projector *projector, uint64_t seq, int64_t persisted_ms)
{
    if (projector->head_seq <= watermark(projector) && seq > watermark(projector)) projector->wait_ms = persisted_ms;
    if (seq > projector->head_seq) projector->head_seq = seq;
}

int64_t projector_lag_ms(const struct projector *projector, int64_t now_ms)
{
    if (projector->head_seq <= watermark(projector)) return 0;
    int64_t since = projector->wait_ms > projector->since_ms ? projector->wait_ms : projector->since_ms;
    return now_ms > since ? now_ms - since : 0;
}

void projector_time(struct projector *projector, int64_t now_ms)
{
    int64_t lag = projector_lag_ms(projector, now_ms);
    enum project_lag class = project_lag_class(lag);
    bool raise = class == PROJECT_LAG_BAD && !projector->lagging;
    bool clear = class == PROJECT_LAG_OK && projector->lagging;
    if (!raise && !clear) return;
    struct error text = {0};
    projector->lagging = raise;
    error_set(&text, E_TIMEOUT,
              raise ? "the projection is %lld ms behind at event %llu" : "the projection has caught up", (long long)lag,
              (unsigned long long)watermark(projector));
    report(projector, (struct project_report){.kind = raise ? PROJECT_LAG_HIGH : PROJECT_LAG_NORMAL,
                                              .seq = watermark(projector),
                                              .at_ms = now_ms,
                                              .lag_ms = lag,
                                              .text = text.message});
}

// ---- the loop

struct projector *projector_open(const struct run_ids *ids, const struct program *program, const struct snapshot *from,
                                 int64_t now_ms, const struct project_sink *sink)
{
    struct arena arena = arena_of(4096, PROJECTOR_MAX);
    struct projector *projector = ARENA_NEW(&arena, struct projector);
    if (!projector) return NULL;
    *projector = (struct projector){
        .arena = arena, .program = program, .sink = *sink, .want = PROJECT_FETCH, .since_ms = now_ms};
    map_init(&projector->noticed, &projector->arena);
    projector->ids = *ids;
    if (!ids_keep(&projector->arena, &projector->ids)) {
        projector_close(projector);
        return NULL;
    }
    projector->current = from ? snapshot_keep(from) : NULL;
    projector->head_seq = projector->unknown_seq = watermark(projector);
    return projector;
}

void projector_close(struct projector *projector)
{
    if (!projector) return;
    snapshot_release(projector->current);
    snapshot_release(projector->draft);
    arena_release(&projector->arena); // the struct itself is in it
}

const struct snapshot *projector_snapshot(const struct projector *projector)
{
    return projector->current;
}

struct project_request projector_next(const struct projector *projector)
{
    uint64_t after = projector->want == PROJECT_FULL ? 0 : watermark(projector);
    if (projector->draft) after = projector->draft->view.last_seq;
    return (struct project_request){projector->want, after, projector->retry_ms};
}

// In the order of numbers; what the ledger says stays behind the event that it follows.
static const struct project_event **ordered(const struct project_event *events, size_t count, struct arena *arena)
{
    const struct project_event **order = ARENA_ARRAY(arena, count + 1, const struct project_event *);
    for (size_t i = 0; order && i < count; i++) {
        size_t at = i;
        for (; at > 0 && order[at - 1]->seq > events[i].seq; at--) order[at] = order[at - 1];
        order[at] = &events[i];
    }
    return order;
}

static struct snapshot *draft_next(struct projector *projector)
{
    return projector->current ? draft_of(projector->current) : draft_new(&projector->ids, projector->program);
}

// What comes next after `last`: to be applied, a gap, or a number that was thought missing for good.
enum turn { TURN_APPLY, TURN_GAP, TURN_LATE };

static enum turn turn_of(const struct projector *projector, uint64_t last, const struct project_event *event)
{
    if (event->ledger) return event->seq <= last ? TURN_APPLY : TURN_GAP;
    if (project_gap(last, event->seq)) return TURN_GAP;
    for (size_t i = 0; event->seq <= last && i < projector->open.count; i++) {
        if (projector->open.items[i].last < event->seq && event->seq < projector->open.items[i].next) return TURN_LATE;
    }
    return TURN_APPLY;
}

// P5: nothing that was read so far counts.
static void rebuild(struct projector *projector, uint64_t last, uint64_t seq, int64_t now_ms)
{
    snapshot_release(projector->draft);
    projector->draft = NULL;
    projector->want = PROJECT_FULL;
    if (last > projector->target) projector->target = last;
    struct error text = {0};
    error_set(&text, E_CONFLICT, "event %llu came after %llu; the run is projected from its first event again",
              (unsigned long long)seq, (unsigned long long)last);
    report(projector, (struct project_report){
                          .kind = PROJECT_REBUILD, .seq = seq, .until = last, .at_ms = now_ms, .text = text.message});
}

static bool begin_resync(struct projector *projector, enum turn turn, uint64_t last, uint64_t seq, int64_t now_ms)
{
    bool late = turn == TURN_LATE;
    projector->cause = (struct gap){last, late ? 0 : seq};
    if (late) {
        rebuild(projector, last, seq, now_ms);
        return true;
    }
    projector->want = last == 0 ? PROJECT_FULL : PROJECT_FROM_SNAPSHOT;
    projector->target = seq;
    return tell_gap(projector, projector->cause, now_ms);
}

// While the log is read again, an event that is pushed is usually still to be read. A number in a gap that the reading is
// past is not: the answer would lack it. The cause stays, so that its gap is reported as closed at the end.
static void take_meanwhile(struct projector *projector, const struct project_event **events, size_t count,
                           int64_t now_ms)
{
    uint64_t last = projector_next(projector).after;
    for (size_t i = 0; i < count; i++) {
        if (turn_of(projector, last, events[i]) != TURN_LATE) continue;
        rebuild(projector, last, events[i]->seq, now_ms);
        return;
    }
}

static bool take(struct projector *projector, const struct project_event **events, size_t count, int64_t now_ms)
{
    struct snapshot *draft = NULL;
    uint64_t last = watermark(projector);
    bool ok = true, stale = false;
    for (size_t i = 0; ok && !stale && i < count; i++) {
        enum turn turn = turn_of(projector, last, events[i]);
        bool again = turn == TURN_APPLY && events[i]->seq <= last && !events[i]->ledger;
        if (again) continue;
        if (!draft) draft = draft_next(projector);
        stale = turn != TURN_APPLY;
        if (!draft)
            ok = false;
        else if (stale)
            ok = begin_resync(projector, turn, last, events[i]->seq, now_ms);
        else
            ok = apply(projector, draft, events[i], now_ms);
        if (ok) last = draft->view.last_seq;
    }
    if (ok && draft) return publish(projector, draft, stale);
    snapshot_release(draft);
    return ok;
}

bool projector_fetched(struct projector *projector, const struct project_event *events, size_t count, int64_t now_ms)
{
    projector->retry_ms = 0;
    projector->failures = 0;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, PROJECTOR_MAX);
    const struct project_event **order = ordered(events, count, &scratch);
    bool ok = order != NULL;
    for (size_t i = 0; ok && i < count; i++) projector_head(projector, order[i]->seq, order[i]->persisted_ms);
    projector_time(projector, now_ms);
    if (ok && projector->want == PROJECT_FETCH)
        ok = take(projector, order, count, now_ms);
    else if (ok)
        take_meanwhile(projector, order, count, now_ms);
    if (ok) projector_time(projector, now_ms);
    return ok;
}

static void put_off(struct projector *projector, int64_t now_ms)
{
    int64_t wait = RETRY_MS;
    for (uint32_t i = 0; i < projector->failures && wait < RETRY_MAX_MS; i++) wait *= 2;
    projector->failures++;
    projector->retry_ms = now_ms + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
    snapshot_release(projector->draft);
    projector->draft = NULL;
}

void projector_failed(struct projector *projector, const struct error *why, int64_t now_ms)
{
    put_off(projector, now_ms);
    report(projector, (struct project_report){
                          .kind = PROJECT_FAILED, .seq = watermark(projector), .at_ms = now_ms, .text = why->message});
    projector_time(projector, now_ms);
}

// What the log says when it is read again is what there is: gaps in it stay.
static bool take_again(struct projector *projector, const struct project_event *event, int64_t now_ms)
{
    struct gap gap = {projector->draft->view.last_seq, event->seq};
    if (!event->ledger && project_gap(gap.last, gap.next)) {
        if (!tell_gap(projector, gap, now_ms) || !add_gap(projector, &projector->open, gap)) return false;
    }
    return apply(projector, projector->draft, event, now_ms);
}

// ES-1.1j: over when the answer came and the watermark is past what caused it. An answer that ends before is asked for again.
static bool end_resync(struct projector *projector, int64_t now_ms)
{
    struct snapshot *draft = projector->draft;
    if (draft->view.last_seq < projector->target) {
        put_off(projector, now_ms);
        return true;
    }
    projector->draft = NULL;
    projector->want = PROJECT_FETCH;
    projector->retry_ms = 0;
    projector->failures = 0;
    if (!publish(projector, draft, false)) return false;
    struct error text = {0};
    error_set(&text, E_CONFLICT, "the log was read again; the watermark is at %llu",
              (unsigned long long)watermark(projector));
    report(projector, (struct project_report){.kind = PROJECT_GAP_CLOSED,
                                              .seq = projector->cause.last,
                                              .until = projector->cause.next,
                                              .at_ms = now_ms,
                                              .text = text.message});
    projector_time(projector, now_ms);
    return true;
}

// What is read again decides anew which numbers are missing.
static void forget_open(struct projector *projector, uint64_t after)
{
    struct gaps *open = &projector->open;
    size_t kept = 0;
    for (size_t i = 0; i < open->count; i++) {
        if (open->items[i].next <= after) open->items[kept++] = open->items[i];
    }
    open->count = kept;
}

bool projector_resynced(struct projector *projector, const struct project_event *events, size_t count, bool more,
                        int64_t now_ms)
{
    if (projector->want == PROJECT_FETCH) return projector_fetched(projector, events, count, now_ms);
    bool full = projector->want == PROJECT_FULL;
    if (!projector->draft) {
        projector->draft = full ? draft_new(&projector->ids, projector->program) : draft_next(projector);
        forget_open(projector, full ? 0 : watermark(projector));
    }
    bool ok = projector->draft != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        projector_head(projector, events[i].seq, events[i].persisted_ms);
        ok = take_again(projector, &events[i], now_ms);
    }
    return ok && (more || end_resync(projector, now_ms));
}
