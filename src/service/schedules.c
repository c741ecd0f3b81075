// Times of schedules that are due, on the engine thread of the engine that has the duty.
//
//   tick     what is declared is read again when it has changed; each schedule whose time has come is asked (schedule_decide)
//   START    reader: document and inputs; engine: one batch of run, state and tick; its answer comes back here
//   else     one batch of state and tick
//
// One decision of a schedule is on its way at a time; after its answer the state is read from the store again.
#include "service/schedules.h"

#include "base/civil.h"

#include <stdio.h>
#include <stdlib.h>

enum { RELOAD_MS = 2000, RETRY_MS = 1000, LOOK_MS = 250, ACTIVE_MAX = 1000, PRUNE_TICKS = 50 };
#define FIRING_MEMORY ((size_t)64 << 20)

// ---- what is declared

static struct schedule_row *find_row(struct service *service, struct str tenant, struct str name)
{
    for (struct schedule_row *row = service->scheduling.rows; row; row = row->next)
        if (str_eq(row->note.tenant, tenant) && str_eq(row->note.name, name)) return row;
    return NULL;
}

const struct schedule_row *schedules_find(struct service *service, struct str tenant, struct str name)
{
    return find_row(service, tenant, name);
}

static void free_row(struct schedule_row *row)
{
    arena_release(&row->arena);
    free(row);
}

struct reloading {
    struct service *service;
    struct schedule_row **at; // rows are in the order of their keys, as notes are
};

static struct str key_of(const struct schedule_row *row)
{
    return (struct str){row->note.tenant.ptr, row->note.tenant.len + 1 + row->note.name.len};
}

// One that cannot be read (its zone is gone from this machine) does not keep the others from their times.
static enum code read_row(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct reloading *reloading = context;
    struct service *service = reloading->service;
    struct error why = {0};
    (void)scratch;
    while (*reloading->at && str_cmp(key_of(*reloading->at), note->key) < 0) reloading->at = &(*reloading->at)->next;
    struct schedule_row *row = *reloading->at;
    if (row && !str_eq(key_of(row), note->key)) row = NULL;
    if (row && (row->note.version == note->version || row->busy)) {
        row->listed = true;
        if (row->note.version != note->version) service->scheduling.changed = true; // read it when its decision is there
        return OK;
    }
    struct schedule_row *made = calloc(1, sizeof(*made));
    if (!made) return error_nomem(err);
    arena_init(&made->arena, 4096, (size_t)16 << 20);
    enum code rc = schedule_note_read(note, &made->arena, &made->note, &why);
    if (rc) {
        os_log(LOG_ERROR, "schedule not read name=%.*s why=\"%s\"", STR_ARG(note->key), why.message);
        free_row(made);
        if (row) row->listed = false; // what was declared before does not hold any more
        return rc == E_NOMEM ? error_nomem(err) : OK;
    }
    if (row) {
        struct schedule_row *next = row->next;
        arena_release(&row->arena);
        *row = *made;
        row->next = next;
        free(made);
    } else {
        made->next = *reloading->at;
        *reloading->at = row = made;
    }
    row->listed = true;
    row->ticks = PRUNE_TICKS; // after a restart they are looked through with the first decision
    return OK;
}

static enum code reload(struct service *service, struct error *err)
{
    struct scheduling *scheduling = &service->scheduling;
    for (struct schedule_row *row = scheduling->rows; row; row = row->next) row->listed = false;
    struct reloading reloading = {service, &scheduling->rows};
    enum code rc = store_each_note(service->store, SCHEDULE_SPACE, STR(""), read_row, &reloading, err);
    if (rc) return rc;
    for (struct schedule_row **at = &scheduling->rows; *at;) {
        struct schedule_row *row = *at;
        if (row->listed || row->busy) {
            at = &row->next;
            continue;
        }
        *at = row->next;
        free_row(row);
    }
    return backfills_reload(service, err);
}

void schedules_changed(struct service *service)
{
    service->scheduling.changed = true;
}

// ---- runs that go on

struct counting_runs {
    struct service *service;
    struct arena *arena;
    struct str *first;
    size_t count;
    struct note_put gone[ACTIVE_MAX];
    size_t gone_count;
};

static enum code count_run(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct counting_runs *counting = context;
    struct run_head head;
    struct str rest, run, tenant = str_cut(note->key, '|', &rest);
    str_cut(rest, '|', &run);
    enum code rc = store_head(counting->service->store, tenant, run, scratch, &head, err);
    if (rc && rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    if (rc == OK && !head.terminal) {
        if (counting->count++ == 0 && counting->first) *counting->first = arena_copy(counting->arena, run);
        return OK;
    }
    if (counting->gone_count == ACTIVE_MAX) return OK;
    struct str key = arena_copy(counting->arena, note->key);
    if (!key.ptr) return error_nomem(err);
    counting->gone[counting->gone_count++] =
        (struct note_put){.space = SCHEDULE_RUN_SPACE, .key = key, .remove = true, .expect = NOTE_ANY};
    return OK;
}

enum code schedules_active(struct service *service, struct str key, struct arena *arena, struct str *first, size_t *out,
                           struct error *err)
{
    struct counting_runs *counting = ARENA_NEW(arena, struct counting_runs);
    struct str prefix = arena_format(arena, "%.*s|", STR_ARG(key));
    if (!counting || !prefix.ptr) return error_nomem(err);
    counting->service = service;
    counting->arena = arena;
    counting->first = first;
    enum code rc = store_each_note(service->store, SCHEDULE_RUN_SPACE, prefix, count_run, counting, err);
    if (!rc && counting->gone_count > 0)
        rc = engine_put(service->engine, counting->gone, counting->gone_count, NULL, NULL, err);
    *out = counting->count;
    return rc;
}

// ---- a fire

struct call *schedules_call(struct service *service, const struct schedule_note *note, struct firing **out)
{
    struct call *call = call_new(service, FIRING_MEMORY);
    struct firing *firing = call ? ARENA_NEW(&call->arena, struct firing) : NULL;
    struct error err = {0};
    if (!firing) {
        call_free(call);
        return NULL;
    }
    struct str text = json_canon_kept(&call->arena, &note->value, SCHEDULE_NOTE_MAX);
    struct str key = schedule_key(&call->arena, note->tenant, note->name, "%s", "");
    struct note copy = {.key = key, .value = text, .version = note->version};
    if (!text.ptr || !key.ptr || schedule_note_read(&copy, &call->arena, &firing->note, &err)) {
        call_free(call);
        return NULL;
    }
    call->state = call->context = firing;
    call->who = (struct principal){.id = call_text(call, "schedule:%.*s", STR_ARG(note->name)),
                                   .tenant = firing->note.tenant,
                                   .roles = ROLE_SYSTEM};
    call->decision = (struct decision){
        .allowed = true, .status = 200, .code = "", .audit_code = "", .effective = ROLE_SYSTEM};
    call->project = firing->note.project;
    call->environment = firing->note.environment;
    call->resource = firing->note.name;
    *out = firing;
    return call;
}

// Whichever thread has the answer.
static void answered(struct call *call)
{
    struct scheduling *scheduling = &call->service->scheduling;
    pthread_mutex_lock(&scheduling->mutex);
    call->next = NULL;
    *scheduling->fired_last = call;
    scheduling->fired_last = &call->next;
    pthread_mutex_unlock(&scheduling->mutex);
    engine_wake(call->service->engine);
}

void schedules_start(struct call *call)
{
    call->done = answered;
    service_read(call, firing_start);
}

static bool add_state(struct call *call, struct firing *firing, const struct schedule_row *row)
{
    struct schedule_state state = row->state;
    schedule_apply(&state, &firing->tick);
    struct json value = schedule_state_json(&call->arena, &state);
    struct note_put put = {.space = SCHEDULE_STATE_SPACE,
                           .key = schedule_key(&call->arena, row->note.tenant, row->note.name, "%s", ""),
                           .value = json_canon_kept(&call->arena, &value, SCHEDULE_NOTE_MAX),
                           .expect = row->state_version};
    firing->notes[firing->note_count++] = put;
    return put.key.ptr && put.value.ptr;
}

static bool begin_fire(struct service *service, struct schedule_row *row, const struct tick *tick)
{
    struct firing *firing;
    struct call *call = schedules_call(service, &row->note, &firing);
    if (!call) return false;
    char time[CIVIL_SIZE];
    civil_format(tick->at_ms, time);
    firing->kind = STR("fire");
    firing->tick = *tick;
    firing->at_ms = tick->at_ms;
    firing->run = schedule_run_id(&call->arena, row->note.name, (struct str){0}, tick->at_ms);
    firing->triggered_by = call_text(call, "schedule:%.*s@%s", STR_ARG(row->note.name), time);
    // one that waited has a tick already
    if (!firing->run.ptr || !firing->triggered_by.ptr || !add_state(call, firing, row) ||
        !firing_notes(call, firing, tick->waited ? NOTE_ANY : 0)) {
        call_free(call);
        return false;
    }
    row->busy = true;
    schedules_start(call);
    return true;
}

// ---- other decisions

struct deciding {
    struct service *service;
    struct arena arena;
    struct str tenant, name;
};

static void decided(void *context, enum code rc, const struct error *why)
{
    struct deciding *deciding = context;
    struct schedule_row *row = find_row(deciding->service, deciding->tenant, deciding->name);
    if (rc && rc != E_CONFLICT && rc != E_CANCELLED)
        os_log(LOG_WARN, "decision of a schedule not stored name=%.*s why=\"%s\"", STR_ARG(deciding->name), why->message);
    if (row) {
        row->busy = row->known = false;
        if (rc) row->retry_ms = os_now().mono_ms + RETRY_MS;
    }
    arena_release(&deciding->arena);
    free(deciding);
}

static struct deciding *deciding_new(struct service *service, const struct schedule_row *row)
{
    struct deciding *deciding = calloc(1, sizeof(*deciding));
    if (!deciding) return NULL;
    deciding->service = service;
    arena_init(&deciding->arena, 4096, (size_t)16 << 20);
    deciding->tenant = arena_copy(&deciding->arena, row->note.tenant);
    deciding->name = arena_copy(&deciding->arena, row->note.name);
    if (deciding->tenant.ptr && deciding->name.ptr) return deciding;
    arena_release(&deciding->arena);
    free(deciding);
    return NULL;
}

// The state after the tick, and its record. Times that gave way to a newer one are recorded, too.
static bool put_decision(struct service *service, struct schedule_row *row, const struct tick *tick,
                         const struct tick_fact *fact)
{
    enum { NOTES_MAX = SCHEDULE_QUEUED_MAX + 2 };
    struct deciding *deciding = deciding_new(service, row);
    if (!deciding) return false;
    struct arena *arena = &deciding->arena;
    struct note_put *notes = ARENA_ARRAY(arena, NOTES_MAX, struct note_put);
    struct schedule_state state = row->state;
    struct error err = {0};
    size_t count = 0;
    schedule_apply(&state, tick);
    struct json value = schedule_state_json(arena, &state);
    bool ok = notes != NULL;
    if (ok) {
        notes[count++] = (struct note_put){.space = SCHEDULE_STATE_SPACE,
                                           .key = schedule_key(arena, row->note.tenant, row->note.name, "%s", ""),
                                           .value = json_canon_kept(arena, &value, SCHEDULE_NOTE_MAX),
                                           .expect = row->state_version};
        notes[count++] = tick_note(arena, row->note.tenant, row->note.name, fact, tick->waited ? NOTE_ANY : 0);
        for (uint32_t i = 0; tick->kind == TICK_CANCEL && i < row->state.waiting_count; i++) {
            struct tick_fact gone = {.kind = "fire",
                                     .outcome = "SKIPPED",
                                     .reason = "REPLACED",
                                     .at_ms = row->state.waiting[i],
                                     .count = 1,
                                     .decided_ms = fact->decided_ms};
            notes[count++] = tick_note(arena, row->note.tenant, row->note.name, &gone, NOTE_ANY);
        }
        for (size_t i = 0; i < count; i++) ok = ok && notes[i].key.ptr && notes[i].value.ptr;
    }
    row->busy = true;
    if (ok && engine_put(service->engine, notes, count, decided, deciding, &err) == OK) return true;
    decided(deciding, err.code ? err.code : E_NOMEM, &err);
    return false;
}

static bool tell(struct service *service, struct schedule_row *row, const struct tick *tick, int64_t now_ms,
                 struct str blocker)
{
    struct tick_fact fact = {.kind = "fire",
                             .outcome = tick->kind == TICK_SKIP ? "SKIPPED" : "QUEUED",
                             .reason = tick->kind == TICK_SKIP ? tick_reason_name(tick->reason) : NULL,
                             .at_ms = tick->at_ms,
                             .last_ms = tick->last_ms,
                             .count = tick->count,
                             .decided_ms = now_ms};
    char detail[256];
    snprintf(detail, sizeof(detail), "run %.*s has not ended", STR_ARG(blocker));
    if (blocker.len && (tick->reason == REASON_OVERLAP || tick->kind != TICK_SKIP)) fact.detail = str_from(detail);
    return put_decision(service, row, tick, &fact);
}

// ---- the runs before are ended

// The id of the signal follows from the run and the time: sent again after a crash it is the same one.
static enum code cancel_run(struct service *service, const struct schedule_row *row, struct str run, int64_t at_ms,
                            struct arena *arena, struct error *err)
{
    char id[UUID_SIZE], text[400];
    snprintf(text, sizeof(text), "%.*s|%.*s|%lld", STR_ARG(row->note.tenant), STR_ARG(run), (long long)at_ms);
    uuid_named(str_from(text), id);
    struct signal signal = {.type = SIGNAL_CANCEL,
                            .id = str_from(id),
                            .reason = STR("the next time of its schedule has come"),
                            .actor = arena_format(arena, "schedule:%.*s", STR_ARG(row->note.name)),
                            .role = STR("System"),
                            .payload = json_object()};
    struct str wire;
    JSON_ADD(arena, &signal.payload, {"reason", json_string(signal.reason)});
    enum code rc = engine_signal(service->engine, row->note.tenant, run, &signal, err);
    if (rc != E_LOCKED || !service->members.several) return rc;
    *err = (struct error){0};
    rc = signal_encode(&signal, arena, &wire, err);
    return rc ? rc : store_post(service->store, row->note.tenant, run, signal.id, wire, err);
}

struct cancelling {
    struct service *service;
    const struct schedule_row *row;
    int64_t at_ms;
};

static enum code cancel_note(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    const struct cancelling *cancelling = context;
    struct str rest, run;
    struct error why = {0};
    (void)err;
    str_cut(note->key, '|', &rest);
    str_cut(rest, '|', &run);
    enum code rc = cancel_run(cancelling->service, cancelling->row, run, cancelling->at_ms, scratch, &why);
    if (rc && rc != E_TERMINAL && rc != E_NOT_FOUND)
        os_log(LOG_WARN, "run not cancelled by its schedule run=%.*s why=\"%s\"", STR_ARG(run), why.message);
    return OK;
}

static void cancel_before(struct service *service, struct schedule_row *row, struct str key, struct arena *arena)
{
    struct cancelling cancelling = {service, row, row->state.waiting[0]};
    struct error err = {0};
    struct str prefix = arena_format(arena, "%.*s|", STR_ARG(key));
    if (row->cancelled_ms == cancelling.at_ms || !prefix.ptr) return;
    if (store_each_note(service->store, SCHEDULE_RUN_SPACE, prefix, cancel_note, &cancelling, &err) == OK)
        row->cancelled_ms = cancelling.at_ms;
}

// ---- ticks are kept for a while

static void prune(struct service *service, struct schedule_row *row, struct arena *arena)
{
    struct str prefix = schedule_key(arena, row->note.tenant, row->note.name, "|");
    struct notes notes;
    struct error err = {0};
    row->ticks = 0;
    if (!prefix.ptr || store_notes(service->store, TICK_SPACE, prefix, 2 * TICKS_KEPT, arena, &notes, &err)) return;
    size_t count = 0, gone = 0;
    while (count < notes.count && str_starts(notes.items[count].key, prefix)) count++;
    struct note_put *puts = count > TICKS_KEPT ? ARENA_ARRAY(arena, count, struct note_put) : NULL;
    for (size_t i = 0; puts && i + TICKS_KEPT < count; i++)
        puts[gone++] =
            (struct note_put){.space = TICK_SPACE, .key = notes.items[i].key, .remove = true, .expect = NOTE_ANY};
    if (gone > 0 && engine_put(service->engine, puts, gone, NULL, NULL, &err))
        os_log(LOG_WARN, "ticks not removed why=\"%s\"", err.message);
}

// ---- one schedule

static enum code take_state(struct service *service, struct schedule_row *row, struct arena *arena, struct error *err)
{
    if (row->known) return OK;
    enum code rc = schedule_state_read(service->store, row->note.tenant, row->note.name, arena, &row->state,
                                       &row->state_version, err);
    if (rc) return rc;
    if (row->state.decided_ms < row->note.since_ms) row->state.decided_ms = row->note.since_ms;
    row->known = true;
    row->look_ms = 0;
    return OK;
}

static enum code look(struct service *service, struct schedule_row *row, struct moment_in_time now, struct arena *arena,
                      struct error *err)
{
    size_t active = 0;
    struct str blocker = {0}, key = schedule_key(arena, row->note.tenant, row->note.name, "%s", "");
    enum code rc = key.ptr ? take_state(service, row, arena, err) : error_nomem(err);
    if (rc || now.wall_ms < row->look_ms) return rc;
    // only a time that is due needs to know who goes on
    struct tick tick = schedule_decide(row->note.name, &row->note.spec, row->note.paused, &row->state, now.wall_ms, 1);
    // where they may overlap no time waits for them, and there may be thousands: those that have ended are looked for now and then
    bool asks = row->note.spec.overlap != OVERLAP_ALLOW || row->ticks + 1 >= PRUNE_TICKS;
    if ((tick.kind != TICK_NONE && asks) || row->state.waiting_count > 0) {
        rc = schedules_active(service, key, arena, &blocker, &active, err);
        if (rc) return rc;
        tick = schedule_decide(row->note.name, &row->note.spec, row->note.paused, &row->state, now.wall_ms, active);
    }
    if (tick.kind == TICK_NONE) {
        if (row->state.waiting_count > 0 && row->note.spec.overlap == OVERLAP_CANCEL && !row->note.paused)
            cancel_before(service, row, key, arena);
        bool waits = row->state.waiting_count > 0 && tick.due_ms > now.wall_ms + LOOK_MS;
        row->look_ms = waits ? now.wall_ms + LOOK_MS : tick.due_ms;
        return OK;
    }
    if (++row->ticks >= PRUNE_TICKS) prune(service, row, arena);
    bool begun = tick.kind == TICK_START ? begin_fire(service, row, &tick)
                                         : tell(service, row, &tick, now.wall_ms, blocker);
    return begun ? OK : error_nomem(err);
}

// ---- answers

static bool begun(const struct call *call)
{
    return call->answer.code == NULL && (call->answer.status == 200 || call->answer.status == 202);
}

static void settle(struct service *service, struct call *call)
{
    const struct firing *firing = call->context;
    struct schedule_row *row = find_row(service, firing->note.tenant, firing->note.name);
    int64_t now_ms = os_now().wall_ms, mono_ms = os_now().mono_ms;
    if (!row) return;
    row->busy = false;
    // A run of that id that was made by another request: the time has been decided, its state has not.
    bool taken = (begun(call) && call->answer.replayed) || str_is(str_from(call->answer.code), "RUN_ALREADY_EXISTS") ||
                 str_is(str_from(call->answer.code), "IDEMPOTENCY_KEY_REUSED");
    if (begun(call) && !taken) {
        row->known = false;
        return;
    }
    if (!taken && (call->answer.retryable || call->answer.status == 429 || call->answer.status >= 500 ||
                   str_is(str_from(call->answer.code), "CONFLICT"))) {
        int64_t wait = call->answer.retry_after_ms > RETRY_MS ? call->answer.retry_after_ms : RETRY_MS;
        os_log(LOG_WARN, "time of a schedule not started yet name=%.*s code=%s why=\"%.*s\"", STR_ARG(firing->note.name),
               call->answer.code ? call->answer.code : "", STR_ARG(call->answer.detail));
        row->known = false;
        row->retry_ms = mono_ms + wait;
        return;
    }
    struct error err = {0};
    struct tick_fact fact = {.kind = "fire",
                             .outcome = taken ? "SKIPPED" : "FAILED",
                             .reason = taken ? "STARTED_BEFORE" : call->answer.code,
                             .detail = call->answer.detail,
                             .run = taken ? firing->run : (struct str){0},
                             .at_ms = firing->at_ms,
                             .count = 1,
                             .decided_ms = now_ms};
    // what the store has now: another engine may have decided it meanwhile
    uint64_t version = row->state_version;
    row->known = false;
    if (take_state(service, row, &call->arena, &err) || row->state_version != version) return;
    struct tick tick = firing->tick;
    tick.kind = TICK_SKIP;
    (void)put_decision(service, row, &tick, &fact);
}

static void take_answers(struct service *service)
{
    struct scheduling *scheduling = &service->scheduling;
    pthread_mutex_lock(&scheduling->mutex);
    struct call *calls = scheduling->fired;
    scheduling->fired = NULL;
    scheduling->fired_last = &scheduling->fired;
    pthread_mutex_unlock(&scheduling->mutex);
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        const struct firing *firing = call->context;
        if (firing->backfill.len)
            backfills_fired(service, call);
        else
            settle(service, call);
        call_free(call);
    }
}

// ---- all of them

static bool reload_due(struct service *service, int64_t mono_ms)
{
    struct scheduling *scheduling = &service->scheduling;
    bool duty = members_have_duty(service), first = duty && !scheduling->had_duty;
    scheduling->had_duty = duty;
    if (first) // another engine has decided until now
        for (struct schedule_row *row = scheduling->rows; row; row = row->next) row->known = false;
    if (!first && !scheduling->changed && (!service->members.several || mono_ms < scheduling->next_reload_ms)) return false;
    scheduling->changed = false; // reading may find that it has to be done again
    scheduling->next_reload_ms = mono_ms + RELOAD_MS;
    return true;
}

void schedules_tick(struct service *service, struct moment_in_time now)
{
    struct scheduling *scheduling = &service->scheduling;
    take_answers(service);
    if (service_draining(service) || !members_have_duty(service)) {
        scheduling->had_duty = false;
        return;
    }
    struct error err = {0};
    if (reload_due(service, now.mono_ms) && reload(service, &err)) {
        os_log(LOG_WARN, "schedules not read why=\"%s\"", err.message);
        scheduling->changed = true;
        return;
    }
    for (struct schedule_row *row = scheduling->rows; row; row = row->next) {
        if (row->busy || now.mono_ms < row->retry_ms || (row->known && now.wall_ms < row->look_ms)) continue;
        struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, (size_t)64 << 20);
        struct error why = {0};
        if (look(service, row, now, &arena, &why)) {
            os_log(LOG_WARN, "schedule not looked at name=%.*s why=\"%s\"", STR_ARG(row->note.name), why.message);
            row->retry_ms = now.mono_ms + RETRY_MS;
        }
    }
    backfills_tick(service, now);
}

void schedules_open(struct service *service)
{
    struct scheduling *scheduling = &service->scheduling;
    pthread_mutex_init(&scheduling->mutex, NULL);
    scheduling->fired_last = &scheduling->fired;
}

void schedules_close(struct service *service)
{
    struct scheduling *scheduling = &service->scheduling;
    while (scheduling->fired) {
        struct call *call = scheduling->fired;
        scheduling->fired = call->next;
        call_free(call);
    }
    while (scheduling->rows) {
        struct schedule_row *row = scheduling->rows;
        scheduling->rows = row->next;
        free_row(row);
    }
    backfills_release(service);
    pthread_mutex_destroy(&scheduling->mutex);
}
