// The engine's bookkeeping: residents by (tenant, run), the queue of inputs, opening, closing, starting.
#include "engine/permits.h"

#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_ARENA_BLOCK ((size_t)1 << 20)
#define TURN_ARENA_LIMIT ((size_t)1 << 30)

const struct engine_limits engine_limits_default = {
    .inputs_per_turn_max = 4096,
    .process_max = 64,
    .output_max = (size_t)1 << 20,
    .log_max = (size_t)16 << 20,
    .inline_max = KERNEL_INLINE_MAX,
    .segments_max = 100, // a document names its own profile: without an end it would escape the limits of a run
};

// ---- residents
static size_t bucket(const struct engine *engine, struct str tenant, struct str run)
{
    return (str_hash(run) ^ (str_hash(tenant) << 1)) & (engine->table_size - 1);
}

struct resident *resident_find(const struct engine *engine, struct str tenant, struct str run)
{
    for (struct resident *r = engine->table[bucket(engine, tenant, run)]; r; r = r->next)
        if (!r->gone && str_eq(r->ids.run, run) && str_eq(r->ids.tenant, tenant)) return r;
    return NULL;
}

static bool grow_table(struct engine *engine)
{
    size_t size = engine->table_size * 2;
    struct resident **table = calloc(size, sizeof(struct resident *));
    if (!table) return false;
    struct resident **old = engine->table;
    size_t old_size = engine->table_size;
    engine->table = table;
    engine->table_size = size;
    for (size_t i = 0; i < old_size; i++) {
        for (struct resident *r = old[i]; r;) {
            struct resident *next = r->next;
            struct resident **slot = &table[bucket(engine, r->ids.tenant, r->ids.run)];
            r->next = *slot;
            *slot = r;
            r = next;
        }
    }
    free(old);
    return true;
}

struct resident *resident_add(struct engine *engine, struct run *run, struct run_log *log, struct program_entry *entry)
{
    INVARIANT(!resident_find(engine, run_log_ids(log)->tenant, run_log_ids(log)->run)); // a run is here once
    if (engine->resident_count >= engine->table_size && !grow_table(engine)) return NULL;
    struct resident *r = calloc(1, sizeof(*r));
    if (!r) return NULL;
    r->run = run;
    r->log = log;
    r->entry = entry;
    entry->users++;
    r->ids = *run_log_ids(log);
    struct resident **slot = &engine->table[bucket(engine, r->ids.tenant, r->ids.run)];
    r->next = *slot;
    *slot = r;
    engine->resident_count++;
    return r;
}

void resident_remove(struct engine *engine, struct resident *resident)
{
    struct resident **slot = &engine->table[bucket(engine, resident->ids.tenant, resident->ids.run)];
    while (*slot != resident) slot = &(*slot)->next;
    INVARIANT(engine->resident_count > 0 && resident->entry->users > 0);
    *slot = resident->next;
    engine->resident_count--;
    for (struct timer *timer = resident->timers, *next; timer; timer = next) {
        next = timer->next;
        timer_remove(engine, timer);
    }
    for (size_t i = 0; resident->tickets > 0 && i < engine->ticket_count; i++) {
        if (engine->tickets[i].resident != resident) continue;
        ticket_cancel(engine, i, 0);
        engine->tickets[i].resident = NULL;
        resident->tickets--;
    }
    holds_release(&resident->holds);
    children_forget(engine, resident);
    run_outbox_free(engine, resident);
    run_free(resident->run); // borrows the ids of its log
    store_release_run(engine->store, resident->log);
    resident->entry->users--;
    free(resident);
}

void resident_gone(struct engine *engine, struct resident *resident)
{
    if (resident->gone) return;
    resident->gone = true;
    outbox_lost(engine, resident);
    resident->next_gone = engine->gone;
    engine->gone = resident;
}

// ---- queue
bool queue_reserve(struct engine *engine, size_t more)
{
    struct queue *q = &engine->queue;
    if (q->count + more <= q->capacity) return true;
    size_t capacity = q->capacity ? q->capacity * 2 : 64;
    while (capacity < q->count + more) capacity *= 2;
    struct queued *items = calloc(capacity, sizeof(*items));
    if (!items) return false;
    for (size_t i = 0; i < q->count; i++) items[i] = q->items[(q->head + i) & (q->capacity - 1)];
    free(q->items);
    q->items = items;
    q->head = 0;
    q->capacity = capacity;
    return true;
}

struct queued *queue_add(struct engine *engine, struct resident *resident, enum input_kind kind)
{
    struct queue *q = &engine->queue;
    if (!queue_reserve(engine, 1)) return NULL;
    INVARIANT(resident && q->count < q->capacity && (q->capacity & (q->capacity - 1)) == 0);
    struct queued *queued = &q->items[(q->head + q->count++) & (q->capacity - 1)];
    memset(queued, 0, sizeof(*queued));
    queued->resident = resident;
    queued->input.kind = kind;
    queued->since_mono = engine->now.mono_ms;
    return queued;
}

bool is_recovery(const struct queued *queued)
{
    return queued->input.kind == INPUT_RECOVER && queued->input.timer != TIMER_LOOK;
}

enum code need_recover(struct engine *engine, struct resident *resident, struct error *err)
{
    if (resident->needs_recover) return OK;
    struct queued *queued = queue_add(engine, resident, INPUT_RECOVER);
    if (!queued) return error_nomem(err);
    queued->input.apart = engine->options.pools_apart;
    resident->needs_recover = true;
    return OK;
}

struct queued *queue_last(struct engine *engine)
{
    struct queue *q = &engine->queue;
    INVARIANT(q->count > 0);
    return &q->items[(q->head + q->count - 1) & (q->capacity - 1)];
}

struct queued queue_take_last(struct engine *engine)
{
    struct queued *last = queue_last(engine);
    struct queued taken = *last;
    INVARIANT(taken.resident);
    memset(last, 0, sizeof(*last));
    engine->queue.count--;
    return taken;
}

enum code queue_last_first(struct engine *engine, size_t count, struct error *err)
{
    struct queue *q = &engine->queue;
    INVARIANT(count <= q->count);
    if (!queue_reserve(engine, count)) return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct queued last = queue_take_last(engine);
        q->head = (q->head - 1) & (q->capacity - 1);
        q->items[q->head] = last;
        q->count++;
    }
    return OK;
}

void bury(struct engine *engine)
{
    struct queue *q = &engine->queue;
    size_t kept = 0;
    for (size_t k = 0; k < q->count; k++) {
        struct queued *queued = &q->items[(q->head + k) & (q->capacity - 1)];
        if (queued->resident->gone)
            queued_release(queued);
        else
            q->items[(q->head + kept++) & (q->capacity - 1)] = *queued;
    }
    q->count = kept;
    asides_bury(engine);
    permits_bury(engine);
    while (engine->gone) {
        struct resident *resident = engine->gone;
        engine->gone = resident->next_gone;
        INVARIANT(resident->gone);
        resident_remove(engine, resident);
    }
}

void queued_release(struct queued *queued)
{
    arena_drop(queued->arena);
    tool_result_free(&queued->result);
    memset(queued, 0, sizeof(*queued));
}

struct arena *arena_make(size_t limit)
{
    struct arena *arena = malloc(sizeof(*arena));
    if (arena) arena_init(arena, 1024, limit);
    return arena;
}

void arena_drop(struct arena *arena)
{
    if (!arena) return;
    arena_release(arena);
    free(arena);
}

void new_run_id(struct engine *engine, const struct program *program, char out[UUID_SIZE])
{
    if (!program->net) {
        entropy_uuid(engine->options.entropy, out);
        return;
    }
    int64_t now_ms = engine->now.wall_ms > 0 ? engine->now.wall_ms : os_now().wall_ms; // before the first turn there is none
    engine->last_number = run_number(engine->last_number, now_ms, entropy_number(engine->options.entropy));
    run_number_format(engine->last_number, out);
}

// ---- opening and closing
static enum code read_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    struct engine *engine = context;
    return turn_blob(engine, sha256, out) ? OK : store_blob(engine->store, sha256, arena, out, err);
}

static void mark_of(struct str text, char out[33])
{
    char hex[SHA256_HEX + 1];
    struct digest digest = sha256(text);
    digest_hex(&digest, hex);
    memcpy(out, hex, 32);
    out[32] = '\0';
}

static void mark_file(const struct store *store, struct engine_mark *out)
{
    struct str url = store_url(store), path;
    struct str scheme = str_cut(url, ':', &path);
    char file[PATH_MAX], which[64];
    bool sqlite = str_is(scheme, "sqlite"), files = str_is(scheme, "files");
    mark_of(url, out->url);
    memcpy(out->file, out->url, sizeof(out->file));
    if (!sqlite && !files) return;
    (void)snprintf(file, sizeof(file), "%.*s%s", STR_ARG(path), files ? "/.cairn" : "");
    if (os_file_identity(file, which)) mark_of(str_from(which), out->file);
}

void engine_mark(struct store *store, bool make, struct engine_mark *out)
{
    struct error err = {0};
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)1 << 20);
    struct str name;
    mark_file(store, out);
    memcpy(out->store, out->file, sizeof(out->file));
    enum code rc = make ? store_give_name(store, os_now().wall_ms, &arena, &name, &err) : store_name(store, &arena, &name, &err);
    if (!rc) {
        INVARIANT(name.len < sizeof(out->store));
        memcpy(out->store, name.ptr, name.len);
        out->store[name.len] = '\0';
    } else if (rc != E_NOT_FOUND && rc != E_UNSUPPORTED) {
        os_log(LOG_WARN, "the store has no name why=\"%s\"", err.message);
    }
}

enum code engine_open(const struct engine_options *options, struct engine **out, struct error *err)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine) return error_nomem(err);
    engine->table_size = 64;
    engine->table = calloc(engine->table_size, sizeof(struct resident *));
    if (!engine->table) {
        free(engine);
        return error_nomem(err);
    }
    engine->options = *options;
    if (engine->options.limits.inputs_per_turn_max == 0) engine->options.limits = engine_limits_default;
    engine->store = options->store;
    engine->tools = options->tools;
    engine->free_ticket = UINT32_MAX;
    engine->env = (struct kernel_env){.context = engine, .blob = read_blob, .inline_max = engine->options.limits.inline_max,
                                      .iterations_max = engine->options.limits.iterations_max,
                                      .spent = &engine->spent};
    mailbox_init(&engine->mailbox, options->arrived, options->arrived_context);
    heap_init(&engine->timers);
    heap_init(&engine->alarms);
    arena_init(&engine->turn, TURN_ARENA_BLOCK / 16, TURN_ARENA_LIMIT);
    enum code rc = outbox_open(&engine->outbox, options->store, options->outbox_disk, err);
    if (rc) engine_close(engine);
    if (rc) return rc;
    *out = engine;
    return OK;
}

void engine_close(struct engine *engine)
{
    if (!engine) return;
    executors_close(engine);
    keeper_close(engine);
    for (size_t i = 0; i < engine->ticket_count; i++) {
        if (engine->tickets[i].resident) engine->tickets[i].resident->tickets = 0;
        engine->tickets[i].resident = NULL;
    }
    for (size_t i = 0; i < engine->table_size; i++)
        while (engine->table[i])
            resident_remove(engine, engine->table[i]); // NOLINT(clang-analyzer-unix.Malloc): it unlinks what it frees
    for (size_t i = 0; i < engine->queue.count; i++)
        queued_release(&engine->queue.items[(engine->queue.head + i) & (engine->queue.capacity - 1)]);
    free(engine->queue.items);
    struct error closed = {0};
    (void)error_set(&closed, E_CANCELLED, "the engine was closed before the notes were stored");
    puts_tell(puts_take(engine), E_CANCELLED, &closed);
    permits_free(engine);
    asides_free(engine);
    while (engine->arrived) {
        struct message *next = engine->arrived->next;
        message_free(engine->arrived);
        engine->arrived = next;
    }
    for (struct program_entry *entry = engine->programs; entry;) {
        struct program_entry *next = entry->next;
        program_release(entry->program);
        free(entry);
        entry = next;
    }
    INVARIANT(!heap_peek(&engine->timers) && !heap_peek(&engine->alarms)); // every timer is a resident's
    heap_release(&engine->timers);
    heap_release(&engine->alarms);
    mailbox_release(&engine->mailbox);
    arena_release(&engine->turn);
    outbox_close(&engine->outbox);
    free(engine->tickets);
    free(engine->table);
    free(engine);
}

void engine_take_back(struct engine *engine)
{
    struct queued queued = queue_take_last(engine);
    struct resident *resident = queued.resident;
    INVARIANT(queued.input.kind == INPUT_START || queued.input.kind == INPUT_SIGNAL);
    queued_release(&queued);
    bool only_for_it = !resident->begun || (resident->terminal && !engine_pending(engine, resident->ids.tenant, resident->ids.run));
    if (only_for_it) resident_remove(engine, resident);
}

const struct run *engine_run(const struct engine *engine, struct str tenant, struct str run)
{
    const struct resident *resident = resident_find(engine, tenant, run);
    return resident ? resident->run : NULL;
}

const char *engine_substatus(const struct engine *engine, struct str tenant, struct str run)
{
    const struct resident *resident = resident_find(engine, tenant, run);
    if (!resident) return "";
    struct standing_in in = run_standing_in(resident->run);
    in.recovering = resident->idle && resident->taken_up;
    return standing_of(&in).substatus;
}

bool engine_pending(const struct engine *engine, struct str tenant, struct str run)
{
    const struct queue *queue = &engine->queue;
    const struct resident *resident = resident_find(engine, tenant, run);
    for (size_t i = 0; resident && i < queue->count; i++)
        if (queue->items[(queue->head + i) & (queue->capacity - 1)].resident == resident) return true;
    return false;
}

// Besides the one that ends the patience of a pause: nothing goes on when it is due.
static bool has_timer(const struct resident *resident)
{
    const struct timer *timer = resident->timers;
    while (timer && timer->kind == TIMER_DRAIN) timer = timer->next;
    return timer != NULL;
}

struct engine_activity engine_activity(const struct engine *engine)
{
    struct engine_activity activity = {.resident = engine->resident_count,
                                       .in_flight = engine->live_tickets,
                                       .stopping = engine->stopping_tickets,
                                       .queued = engine->queue.count,
                                       .slow_writes = engine->slow_writes};
    activity.stalled_ms = engine_stalled(engine, &activity.outboxed);
    const struct aside *at = NULL;
    for (const struct queued *queued = aside_next(engine, &at); queued; queued = aside_next(engine, &at))
        activity.in_flight += queued->resident && queued->input.kind == INPUT_RESULT;
    for (size_t i = 0; i < engine->table_size; i++) {
        for (const struct resident *r = engine->table[i]; r; r = r->next) {
            enum run_status status = r->run->status;
            if (r->tickets > 0 || has_timer(r) || aside_of(engine, r) || permit_waits(engine, r, NULL)) continue;
            bool waits = status == RUN_STATUS_PAUSED || status == RUN_STATUS_PENDING;
            activity.parked += waits || r->idle || run_standing(r->run).need == NEED_PERSON;
        }
    }
    return activity;
}

bool engine_awaiting(const struct engine *engine, bool (*visit)(void *context, const struct run *run), void *context)
{
    for (size_t i = 0; i < engine->table_size; i++)
        for (const struct resident *r = engine->table[i]; r; r = r->next)
            if (r->run->events > 0 && !r->idle && !visit(context, r->run)) return false;
    return true;
}

int64_t engine_stalled(const struct engine *engine, size_t *outboxed)
{
    *outboxed = engine->outboxed;
    return engine->stalled_mono == 0 ? 0 : engine->now.mono_ms - engine->stalled_mono;
}

size_t engine_resident(const struct engine *engine)
{
    return engine->resident_count;
}

static struct str held_step(const struct run *run)
{
    for (uint32_t i = 0; i < run->program->step_count; i++)
        if (kernel_state(run, i) == NODE_HELD) return run->program->steps[i].id;
    return STR("a step");
}

void engine_summary(const struct run *run, struct run_summary *out)
{
    memset(out, 0, sizeof(*out));
    out->status = run->status;
    struct standing_in in = run_standing_in(run);
    struct standing standing = standing_of(&in);
    struct str sub = str_from(standing.substatus);
    out->goes_on = standing.goes_on;
    memcpy(out->substatus, sub.ptr, sub.len < sizeof(out->substatus) ? sub.len : sizeof(out->substatus) - 1);
    out->counts = run->counts;
    if (run->status == RUN_STATUS_CANCELLED) out->counts.failed -= run->stopped; // by its end: nothing went wrong with them
    out->running = run->in_flight;
    out->created_ms = run->queued_ms ? run->queued_ms : run->started_ms;
    out->started_ms = run->started_ms;
    out->ended_ms = run->ended_ms;
    struct buf cause SCOPED(buf_release) = buf_of(4096);
    bool again = run->status == RUN_STATUS_RUNNING && in.retrying > 0; // standing_stored reads that off the missing cause
    if (run->status == RUN_STATUS_CANCELLED || run->cancelling)
        buf_add(&cause, run->cancel_reason);
    else if (run->fault.code.len > 0 && run->status != RUN_STATUS_COMPLETED &&
             !again) // a held step may have been helped
        failure_told(&cause, run->failed_step, &run->fault);
    else if (standing.need == NEED_PERSON && in.held > 0) // the one that it began with was helped, and another waits
        buf_printf(&cause, "failed at %.*s", STR_ARG(held_step(run)));
    struct buf line SCOPED(buf_release) =
        buf_of(4096); // what a program wrote may be coloured, and nobody who reads a list wants that
    buf_unstyled(&line, buf_str(&cause));
    size_t len = str_head(buf_str(&line), sizeof(out->cause) - 1).len;
    if (len > 0) memcpy(out->cause, line.ptr, len);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)out->cause[i] < 0x20) out->cause[i] = ' ';
}
