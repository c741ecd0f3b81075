// The write budget (ES-5, C-18): how long a service lets a result wait for its store.
//
// The wait begins when the result has come, and all of it counts: an append may wait for others (a lock, a server that is away) only
// for what is left of the budget of the oldest result in it. One that succeeds has stored all of it, however long the disk took, and
// that is that. One that does not has stored nothing: before the next try the runs are folded from the store again (batch_take_back),
// which is the look whether an event is there after all; a result that has waited too long becomes a failure of its attempt, and the
// retry policy of the step decides. A start that has waited too long may go on without the store (failopen.c).
#include "engine/batch.h"
#include "json/form.h"

// While the store takes nothing, it is asked often and not for long: starts that become due meanwhile have a budget, too.
enum { BUDGET_MS = 3000, BUDGET_MAX_MS = 3600000, STALLED_WAIT_MS = 250 };

void append_took(struct engine *engine, enum code rc, int64_t took_us, size_t items)
{
    int64_t budget_ms = engine->options.limits.write_budget_ms, took_ms = took_us / 1000;
    const struct engine_observer *observer = &engine->options.observer;
    engine->append_ms += took_ms; // by which the clock of the turn is behind
    if (observer->appended) observer->appended(observer->context, rc, took_us, items);
    if (budget_ms == 0 || took_ms <= budget_ms) return;
    engine->slow_writes++;
    os_log(LOG_WARN, "the store is slow code=STATE_STORE_WRITE_BUDGET_EXCEEDED ms=%lld budget=%lld stored=%s",
           (long long)took_ms, (long long)budget_ms, rc == OK ? "true" : "false");
}

void queued_fail(struct queued *queued, struct fault fault)
{
    INVARIANT(queued->input.kind == INPUT_RESULT && fault.code.len > 0);
    queued->input.ok = false;
    queued->input.value = queued->input.artifacts = (struct json){0};
    queued->input.has_blob = queued->input.truncated = false;
    queued->input.fault = fault;
    queued->blob_count = 0;
}

// What a worker did. The end of a child run is stored already, and what the engine does itself costs nothing to do again.
static bool is_attempt(const struct queued *queued)
{
    if (queued->input.kind != INPUT_RESULT) return false;
    const struct run *run = queued->resident->run;
    if (queued->input.step >= run->program->step_count) return true; // the task of a playbook
    enum step_kind kind = run->program->steps[queued->input.step].kind;
    return kind == STEP_EXEC || kind == STEP_SHELL || kind == STEP_SCRIPT || kind == STEP_HOST;
}

static int64_t waited(const struct engine *engine, const struct queued *queued)
{
    return engine->now.mono_ms + engine->append_ms - queued->since_mono;
}

// Nothing but a start may come of it.
static bool may_start_only(const struct queued *queued)
{
    return queued->input.kind == INPUT_TIMER || queued->input.kind == INPUT_RECOVER || queued->input.lost;
}

bool is_over_budget(const struct engine *engine, const struct queued *queued)
{
    int64_t budget_ms = engine->options.limits.write_budget_ms;
    return budget_ms > 0 && waited(engine, queued) >= budget_ms;
}

bool engine_away(struct engine *engine)
{
    return engine->options.limits.write_budget_ms > 0 && store_away(engine->store);
}

bool may_go_on(const struct engine *engine, const struct queued *queued)
{
    return engine->options.limits.starts_fail_open && may_start_only(queued) && is_over_budget(engine, queued);
}

int64_t budget_left(const struct batch *batch)
{
    const struct engine *engine = batch->engine;
    bool open = engine->options.limits.starts_fail_open;
    int64_t budget_ms = engine->options.limits.write_budget_ms, left = budget_ms;
    for (size_t i = 0; budget_ms > 0 && i < batch->count; i++) {
        const struct queued *queued = &batch->decided[i].queued;
        bool counts = is_attempt(queued) || (open && may_start_only(queued));
        int64_t mine = counts ? budget_ms - waited(engine, queued) : budget_ms;
        if (mine > 0 && mine < left) left = mine; // one that is over it has become a failure, which waits like anything else
    }
    return open && engine->stalled_mono != 0 && left > STALLED_WAIT_MS ? STALLED_WAIT_MS : left;
}

void check_budget(const struct engine *engine, struct queued *queued)
{
    static const struct str code = {"STATE_STORE_WRITE_BUDGET_EXCEEDED", 33};
    int64_t budget_ms = engine->options.limits.write_budget_ms;
    if (!is_over_budget(engine, queued) || !is_attempt(queued) || queued->input.lost) return;
    if (str_eq(queued->input.fault.code, code)) return;
    os_log(LOG_WARN, "a result was not stored in time code=%.*s mode=closed run=%.*s ms=%lld budget=%lld", STR_ARG(code),
           STR_ARG(queued->resident->ids.run), (long long)waited(engine, queued), (long long)budget_ms);
    queued_fail(queued, (struct fault){.code = code,
                                       .message = STR("the result could not be stored in time"),
                                       .category = STR("infrastructure"),
                                       .retryable = true});
}

// ---- configuration

// The event class of that name: the word of a plan's log. MOMENT_UNKNOWN: there is none.
static enum moment_kind class_of(struct str name)
{
    for (int kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_RUN);
        if (word && str_is(name, word)) return (enum moment_kind)kind;
    }
    return MOMENT_UNKNOWN;
}

// Why the class must be in the store before anything comes of it.
static const char *why_closed(enum moment_kind kind)
{
    if (kind == MOMENT_STEP_REDISPATCHED) return "it goes with StepStarted, and is not named beside it";
    if (kind == MOMENT_SIGNAL_ACCEPTED || kind == MOMENT_SIGNAL_REJECTED || kind == MOMENT_RUN_PAUSED ||
        kind == MOMENT_RUN_RESUMED || kind == MOMENT_RUN_APPROVED || kind == MOMENT_RUN_CANCELLED)
        return "who has sent a signal was promised that it survives";
    if (moment_is_step(kind)) return "an outcome that is not in the store has not happened, and what follows from it would be wrong";
    return "a run begins and ends in the store";
}

static enum code class_refused(struct form *form, const struct json *item, const char *member, enum moment_kind kind)
{
    struct str name = json_text(item);
    if (form->rc) return form->rc;
    if (kind == MOMENT_UNKNOWN)
        form->rc = error_at(form->err, E_INVALID, item->line, item->column,
                            "%s.%s: there is no event class \"%.*s\"; StepStarted is the one that may fail open", form->what,
                            member, STR_ARG(str_slice(name, 0, 64)));
    else
        form->rc = error_at(form->err, E_INVALID, item->line, item->column, "%s.%s: %.*s may not fail open: %s", form->what,
                            member, STR_ARG(name), why_closed(kind));
    return form->rc;
}

static void read_open(struct form *form, struct engine_limits *out)
{
    static const char member[] = "failOpenForEventClass";
    const struct json *open = form_take(form, member, JSON_ARRAY);
    if (!open) return;
    out->starts_fail_open = false;
    for (uint32_t i = 0; i < open->count; i++) {
        enum moment_kind kind = class_of(json_text(&open->items[i]));
        if (kind == MOMENT_STEP_STARTED)
            out->starts_fail_open = true;
        else
            class_refused(form, &open->items[i], member, kind);
    }
}

static void read_never(struct form *form, const struct engine_limits *out)
{
    static const char member[] = "neverFailOpen";
    bool completed = false, failed = false;
    const struct json *never = form_take(form, member, JSON_ARRAY);
    if (!never) return;
    for (uint32_t i = 0; i < never->count; i++) {
        enum moment_kind kind = class_of(json_text(&never->items[i]));
        if (kind == MOMENT_UNKNOWN) class_refused(form, &never->items[i], member, kind);
        if (kind == MOMENT_STEP_STARTED && out->starts_fail_open)
            form_fail(form, member, "StepStarted is in failOpenForEventClass as well");
        completed = completed || kind == MOMENT_STEP_COMPLETED;
        failed = failed || str_is(json_text(&never->items[i]), "StepFailed");
    }
    if (!completed || !failed) form_fail(form, member, "must hold StepCompleted and StepFailed");
}

enum code engine_write_budget_parse(const struct json *config, struct engine_limits *out, struct error *err)
{
    struct form form;
    out->write_budget_ms = BUDGET_MS;
    out->starts_fail_open = true;
    if (!config) return OK;
    form_begin(&form, "stateStore", config, NULL, err);
    form_number(&form, "writeLatencyBudgetMs", 1, BUDGET_MAX_MS, &out->write_budget_ms);
    read_open(&form, out);
    read_never(&form, out);
    return form_end(&form);
}
