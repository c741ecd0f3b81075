// The write budget (ES-5, C-18): how long a service lets a result wait for its store.
//
// The wait begins when the result has come, and all of it counts: an append may wait for others (a lock, a server that is away) only
// for what is left of the budget of the oldest result in it. One that succeeds has stored all of it, however long the disk took, and
// that is that. One that does not has stored nothing: before the next try the runs are folded from the store again (batch_take_back),
// which is the look whether an event is there after all; a result that has waited too long becomes a failure of its attempt, and the
// retry policy of the step decides.
#include "engine/batch.h"

enum { BUDGET_MS = 3000, BUDGET_MAX_MS = 3600000 };

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

int64_t budget_left(const struct batch *batch)
{
    int64_t budget_ms = batch->engine->options.limits.write_budget_ms, left = budget_ms;
    for (size_t i = 0; budget_ms > 0 && i < batch->count; i++) {
        const struct queued *queued = &batch->decided[i].queued;
        int64_t mine = is_attempt(queued) ? budget_ms - waited(batch->engine, queued) : budget_ms;
        if (mine > 0 && mine < left) left = mine; // one that is over it has become a failure, which waits like anything else
    }
    return left;
}

void check_budget(const struct engine *engine, struct queued *queued)
{
    static const struct str code = {"STATE_STORE_WRITE_BUDGET_EXCEEDED", 33};
    int64_t budget_ms = engine->options.limits.write_budget_ms;
    if (budget_ms == 0 || !is_attempt(queued) || waited(engine, queued) < budget_ms) return;
    if (str_eq(queued->input.fault.code, code)) return;
    os_log(LOG_WARN, "a result was not stored in time code=%.*s run=%.*s ms=%lld budget=%lld", STR_ARG(code),
           STR_ARG(queued->resident->ids.run), (long long)waited(engine, queued), (long long)budget_ms);
    queued_fail(queued, (struct fault){.code = code,
                                       .message = STR("the result could not be stored in time"),
                                       .category = STR("infrastructure"),
                                       .retryable = true});
}

// ---- configuration

static bool names(const struct json *list, const char *name)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->count; i++)
        if (str_is(json_text(&list->items[i]), name)) return true;
    return false;
}

enum code engine_write_budget_parse(const struct json *config, int64_t *budget_ms, struct error *err)
{
    *budget_ms = BUDGET_MS;
    if (!config) return OK;
    if (!json_is(config, JSON_OBJECT)) return error_set(err, E_INVALID, "stateStore must be an object");
    const struct json *budget = json_key(config, "writeLatencyBudgetMs");
    const struct json *open = json_key(config, "failOpenForEventClass"), *never = json_key(config, "neverFailOpen");
    if (config->count > (uint32_t)((budget != NULL) + (open != NULL) + (never != NULL)))
        return error_set(err, E_INVALID, "stateStore has a member that is not known");
    if (budget && (!json_is(budget, JSON_INT) || budget->integer < 1 || budget->integer > BUDGET_MAX_MS))
        return error_set(err, E_INVALID, "writeLatencyBudgetMs must be a number of milliseconds from 1 to 3600000");
    if (open && (!json_is(open, JSON_ARRAY) || open->count > 0))
        return error_set(err, E_INVALID,
                         "failOpenForEventClass must be empty: what is not recorded is not started, and what ended is "
                         "not forgotten");
    if (never && !(names(never, "StepCompleted") && names(never, "StepFailed")))
        return error_set(err, E_INVALID, "neverFailOpen must hold StepCompleted and StepFailed");
    if (budget) *budget_ms = budget->integer;
    return OK;
}
