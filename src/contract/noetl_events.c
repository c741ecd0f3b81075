// VOCABULARY_NOETL: the canonical event model of playbooks (NX-2, NX-3), 29 types in one envelope.
//
// What is particular to a type is in `payload`: inputs, outcome, result_ref, error as the model names them, decisions flat, and in
// `payload.meta` what Cairn knows besides. Members that would say nothing are left out, so that a record stays small: whose run it is,
// is said once, in playbook.execution.requested. `timestamp` is when it happened; meta.appended_ms, how much later it was stored.
#include "contract/internal.h"

#include <string.h>

#define WORKFLOW_RUN "workflow:run:1"

#define ENVELOPE(attempt_field, duration_how)                                                                          \
    attempt_field MOMENT_FIELD("duration_ms", FIELD_MS, duration_ms, duration_how),                                    \
        DERIVED_FIELD("entity_id", FIELD_STR, entity_id, ALWAYS | DERIVED),                                            \
        DERIVED_FIELD("entity_type", FIELD_STR, entity_type, ALWAYS | DERIVED),                                        \
        DERIVED_FIELD("event_alias", FIELD_STR, alias, ALWAYS | DERIVED),                                              \
        SEAL_FIELD("event_id", FIELD_ID, event_id, ALWAYS),                                                            \
        DERIVED_FIELD("event_type", FIELD_STR, type, ALWAYS | REQUIRED),                                               \
        IDS_FIELD("execution_id", run, ALWAYS | REQUIRED), MOMENT_FIELD("iteration", FIELD_INDEX, iteration, 0),       \
        DERIVED_FIELD("iteration_id", FIELD_STR, iteration_id, DERIVED),                                               \
        DERIVED_FIELD("parent_id", FIELD_STR, parent_id, DERIVED),                                                     \
        DERIVED_FIELD("payload", FIELD_JSON, payload, ALWAYS), SEAL_FIELD("prev_hash", FIELD_DIGEST, previous, 0),     \
        SEAL_FIELD("seq", FIELD_U64, seq, ALWAYS | REQUIRED), DERIVED_FIELD("source", FIELD_STR, source, ALWAYS),      \
        DERIVED_FIELD("status", FIELD_STR, status, ALWAYS), DERIVED_FIELD("step_run_id", FIELD_STR, step_run_id, 0),   \
        DERIVED_FIELD("task_run_id", FIELD_STR, task_run_id, 0),                                                       \
        MOMENT_FIELD("timestamp", FIELD_TIME, at_ms, ALWAYS | REQUIRED),                                               \
        DERIVED_FIELD("workflow_run_id", FIELD_STR, workflow_run_id, DERIVED),

#define NO_ATTEMPT
#define ATTEMPT_FIELD(how) MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, how),

// Of the run; of the ends of the run; of a step; of its ends; of a try of a task; of its ends.
static const struct field run_fields[] = {ENVELOPE(NO_ATTEMPT, 0)};
static const struct field run_end_fields[] = {ENVELOPE(NO_ATTEMPT, ALWAYS)};
static const struct field step_fields[] = {ENVELOPE(ATTEMPT_FIELD(0), 0)};
static const struct field step_end_fields[] = {ENVELOPE(ATTEMPT_FIELD(0), ALWAYS)};
static const struct field try_fields[] = {ENVELOPE(ATTEMPT_FIELD(ALWAYS), 0)};
static const struct field try_end_fields[] = {ENVELOPE(ATTEMPT_FIELD(ALWAYS), ALWAYS)};
static const struct table of_run = TABLE(run_fields);
static const struct table of_run_end = TABLE(run_end_fields);
static const struct table of_step = TABLE(step_fields);
static const struct table of_step_end = TABLE(step_end_fields);
static const struct table of_try = TABLE(try_fields);
static const struct table of_try_end = TABLE(try_end_fields);

// ---- parts of payloads

#define BY_FIELD DERIVED_FIELD("by", FIELD_STR, by, 0)
// The logical attempt of what is not a step counts pauses (C-23).
#define RUN_META_FIELDS                                                                                                \
    MOMENT_FIELD("actor", FIELD_STR, actor, 0), DERIVED_FIELD("appended_ms", FIELD_MS, appended, 0), BY_FIELD,         \
        MOMENT_FIELD("cycle", FIELD_ATTEMPT, logical, 0), MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0)
#define REASON_FIELD(name) MOMENT_FIELD(name, FIELD_STR, reason, 0)
#define SIGNAL_FIELDS                                                                                                  \
    MOMENT_FIELD("signal_id", FIELD_STR, signal_id, 0), MOMENT_FIELD("signal_type", FIELD_STR, signal_type, 0)

static const struct field run_meta_fields[] = {RUN_META_FIELDS, REASON_FIELD("reason"), SIGNAL_FIELDS};
static const struct field resume_meta_fields[] = {RUN_META_FIELDS, REASON_FIELD("reason"),
                                                  BOOL_FIELD("resume", FIELD_TRUE), SIGNAL_FIELDS};
static const struct field failed_meta_fields[] = {RUN_META_FIELDS, REASON_FIELD("failed_step"), SIGNAL_FIELDS};
// The message of the error is the reason of a cancellation.
static const struct field cancelled_meta_fields[] = {RUN_META_FIELDS, SIGNAL_FIELDS};
static const struct field step_meta_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    DERIVED_FIELD("appended_ms", FIELD_MS, appended, 0),
    BY_FIELD,
    MOMENT_FIELD("child_execution_id", FIELD_STR, run_ref, 0),
    MOMENT_FIELD("detail", FIELD_STR, detail, 0),
    MOMENT_FIELD("due_at", FIELD_TIME, due_ms, 0),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("signal_id", FIELD_STR, signal_id, 0),
    MOMENT_FIELD("truncated", FIELD_BOOL, truncated, 0),
};
static const struct table run_meta = TABLE(run_meta_fields);
static const struct table resume_meta = TABLE(resume_meta_fields);
static const struct table cancelled_meta = TABLE(cancelled_meta_fields);
static const struct table failed_meta = TABLE(failed_meta_fields);
static const struct table step_meta = TABLE(step_meta_fields);

static const struct field error_fields[] = {
    MOMENT_FIELD("code", FIELD_STR, fault.code, ALWAYS),
    MOMENT_FIELD("detail", FIELD_STR, fault.detail, 0),
    EXIT_FIELD("exit_code"),
    MOMENT_FIELD("kind", FIELD_STR, fault.category, 0),
    MOMENT_FIELD("message", FIELD_STR, fault.message, ALWAYS),
    MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, ALWAYS),
};
static const struct table error_table = TABLE(error_fields);

#define CANCELLED "cancelled"
// Without a code: that is what tells it from a failure that is called the same.
static const struct field cancelled_error_fields[] = {
    WORD_FIELD("kind", CANCELLED),
    MOMENT_FIELD("message", FIELD_STR, reason, 0),
};
static const struct table cancelled_error = TABLE(cancelled_error_fields);

static const struct field ref_meta_fields[] = {
    MOMENT_FIELD("bytes", FIELD_U64, blob_size, ALWAYS),
    WORD_FIELD("content_type", "application/json"),
    MOMENT_FIELD("sha256", FIELD_DIGEST, blob, ALWAYS | REQUIRED),
};
static const struct table ref_meta = TABLE(ref_meta_fields);
static const struct field result_ref_fields[] = {
    WORD_FIELD("kind", "result_ref"),
    OBJECT_FIELD("meta", ref_meta, ALWAYS | REQUIRED),
    MOMENT_FIELD("preview", FIELD_JSON, preview, 0),
    DERIVED_FIELD("ref", FIELD_STR, ref, ALWAYS | DERIVED),
    WORD_FIELD("scope", "execution"),
    WORD_FIELD("store", "object"),
};
static const struct table result_ref = TABLE(result_ref_fields);

static const struct field ok_fields[] = {
    MOMENT_FIELD("result", FIELD_JSON, value, 0),
    WORD_FIELD("status", "ok"),
};
static const struct table ok_table = TABLE(ok_fields);

static const struct field forked_from_fields[] = {
    START_FIELD("execution_id", FIELD_STR, forked_run, ALWAYS | REQUIRED),
    START_FIELD("seq", FIELD_U64, forked_seq, ALWAYS | REQUIRED),
};
static const struct table forked_from = TABLE(forked_from_fields);

static const struct field start_meta_fields[] = {
    DERIVED_FIELD("appended_ms", FIELD_MS, appended, 0),
    MOMENT_FIELD("cycle", FIELD_ATTEMPT, logical, 0),
    FORK_FIELD("forked_from", forked_from),
    START_FIELD("name", FIELD_STR, name, 0),
    START_FIELD("original_execution_id", FIELD_STR, original_run, 0),
    START_FIELD("parent_execution_id", FIELD_STR, parent_run, 0),
    START_FIELD("parent_step", FIELD_STR, parent_step, 0),
    START_FIELD("reuse", FIELD_JSON, reuse, 0),
};
static const struct table start_meta = TABLE_WITH(start_meta_fields, &start_in_snake);

// ---- payloads

#define META(of) OBJECT_FIELD("meta", of, 0)

static const struct field requested_fields[] = {
    START_FIELD("inputs", FIELD_JSON, inputs, ALWAYS),
    META(start_meta),
};
static const struct field evaluated_fields[] = {META(run_meta)};
static const struct field refused_fields[] = {OBJECT_FIELD("error", error_table, ALWAYS), META(run_meta)};
static const struct field resumed_fields[] = {META(resume_meta)};
static const struct field started_fields[] = {
    MOMENT_FIELD("inputs", FIELD_JSON, value, 0),
    META(run_meta),
};
static const struct field finished_fields[] = {OBJECT_FIELD("counts", counts_table, ALWAYS), META(run_meta)};
static const struct field finished_badly_fields[] = {
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    OBJECT_FIELD("error", error_table, ALWAYS),
    META(failed_meta),
};
static const struct field cancelled_fields[] = {
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    OBJECT_FIELD("error", cancelled_error, ALWAYS),
    META(cancelled_meta),
};
static const struct field bare_fields[] = {META(step_meta)};
static const struct field inputs_fields[] = {MOMENT_FIELD("inputs", FIELD_JSON, value, 0), META(step_meta)};
static const struct field loop_started_fields[] = {
    MOMENT_FIELD("inputs", FIELD_JSON, value, 0),
    META(step_meta),
    BLOB_FIELD("result_ref", result_ref),
    MOMENT_FIELD("total", FIELD_U32, counts.total, ALWAYS),
};
static const struct field loop_done_fields[] = {OBJECT_FIELD("counts", counts_table, ALWAYS), META(step_meta)};
static const struct field outcome_fields[] = {META(step_meta), MOMENT_FIELD("outcome", FIELD_JSON, value, 0)};
static const struct field failed_fields[] = {
    OBJECT_FIELD("error", error_table, ALWAYS),
    META(step_meta),
    MOMENT_FIELD("outcome", FIELD_JSON, value, 0),
};
static const struct field done_fields[] = {
    MOMENT_FIELD("artifacts", FIELD_JSON, artifacts, 0),
    MOMENT_FIELD("extracted", FIELD_JSON, extracted, 0),
    META(step_meta),
    OBJECT_FIELD("outcome", ok_table, ALWAYS),
    BLOB_FIELD("result_ref", result_ref),
};
static const struct field stored_fields[] = {
    MOMENT_FIELD("extracted", FIELD_JSON, extracted, 0),
    META(step_meta),
    BLOB_FIELD("result_ref", result_ref),
};
static const struct field manifest_fields[] = {MOMENT_FIELD("manifest", FIELD_JSON, value, 0), META(step_meta)};

static const struct table requested = TABLE(requested_fields);
static const struct table evaluated = TABLE(evaluated_fields);
static const struct table refused = TABLE(refused_fields);
static const struct table resumed = TABLE(resumed_fields);
static const struct table started = TABLE(started_fields);
static const struct table finished = TABLE(finished_fields);
static const struct table finished_badly = TABLE(finished_badly_fields);
static const struct table cancelled = TABLE(cancelled_fields);
static const struct table bare = TABLE(bare_fields);
static const struct table inputs = TABLE(inputs_fields);
static const struct table loop_started = TABLE(loop_started_fields);
static const struct table loop_done = TABLE(loop_done_fields);
static const struct table outcome = TABLE(outcome_fields);
static const struct table failed = TABLE(failed_fields);
static const struct table done = TABLE(done_fields);
static const struct table stored = TABLE(stored_fields);
static const struct table manifest = TABLE(manifest_fields);

// ---- types

enum entity {
    ENTITY_PLAYBOOK = 1,
    ENTITY_WORKFLOW,
    ENTITY_STEP,
    ENTITY_TASK,
    ENTITY_LOOP,
    ENTITY_NEXT,
    ENTITY_POLICY,
    ENTITY_RESULT
};
static const struct str entity_words[] = {
    [ENTITY_PLAYBOOK] = STR_INIT("playbook"), [ENTITY_WORKFLOW] = STR_INIT("workflow"),
    [ENTITY_STEP] = STR_INIT("step"),         [ENTITY_TASK] = STR_INIT("task"),
    [ENTITY_LOOP] = STR_INIT("loop"),         [ENTITY_NEXT] = STR_INIT("next"),
    [ENTITY_POLICY] = STR_INIT("policy"),     [ENTITY_RESULT] = STR_INIT("result"),
};

enum standing { IN_PROGRESS = 1, SUCCESS, FAILURE, SKIPPED, PAUSED };
static const struct str standing_words[] = {
    [IN_PROGRESS] = STR_INIT("in_progress"), [SUCCESS] = STR_INIT("success"), [FAILURE] = STR_INIT("error"),
    [SKIPPED] = STR_INIT("skipped"),         [PAUSED] = STR_INIT("paused"),
};

struct row {
    struct str type, alias;
    uint8_t entity, standing;
    bool flat; // the members of `value` are members of the payload
    const struct table *envelope, *payload;
};

#define ROW(type_word, alias_word, of, how, table, content)                                                            \
    {                                                                                                                  \
        .type = STR_INIT(type_word), .alias = STR_INIT(alias_word), .entity = (of), .standing = (how),                 \
        .envelope = &(table), .payload = &(content)                                                                    \
    }
#define FLAT_ROW(type_word, alias_word, of, table)                                                                     \
    {                                                                                                                  \
        .type = STR_INIT(type_word), .alias = STR_INIT(alias_word), .entity = (of), .standing = SUCCESS, .flat = true, \
        .envelope = &(table), .payload = &bare                                                                         \
    }

static const struct row rows[MOMENT_COUNT] = {
    [MOMENT_RUN_REQUESTED] = ROW("playbook.execution.requested", "PlaybookExecutionRequested", ENTITY_PLAYBOOK,
                                 IN_PROGRESS, of_run, requested),
    [MOMENT_REQUEST_EVALUATED] =
        ROW("playbook.request.evaluated", "PlaybookRequestEvaluated", ENTITY_PLAYBOOK, SUCCESS, of_run, evaluated),
    [MOMENT_RUN_RESUMED] =
        ROW("playbook.request.evaluated", "PlaybookRequestEvaluated", ENTITY_PLAYBOOK, SUCCESS, of_run, resumed),
    [MOMENT_RUN_STARTED] = ROW("playbook.started", "PlaybookStarted", ENTITY_PLAYBOOK, IN_PROGRESS, of_run, started),
    [MOMENT_RUN_PAUSED] = ROW("playbook.paused", "PlaybookPaused", ENTITY_PLAYBOOK, PAUSED, of_run, evaluated),
    [MOMENT_RUN_COMPLETED] =
        ROW("playbook.finished", "PlaybookFinished", ENTITY_PLAYBOOK, SUCCESS, of_run_end, finished),
    [MOMENT_RUN_FAILED] =
        ROW("playbook.finished", "PlaybookFinished", ENTITY_PLAYBOOK, FAILURE, of_run_end, finished_badly),
    [MOMENT_RUN_CANCELLED] =
        ROW("playbook.finished", "PlaybookFinished", ENTITY_PLAYBOOK, FAILURE, of_run_end, cancelled),
    [MOMENT_RUN_PROCESSED] =
        ROW("playbook.processed", "PlaybookProcessed", ENTITY_PLAYBOOK, SUCCESS, of_run, evaluated),
    [MOMENT_WORKFLOW_STARTED] =
        ROW("workflow.started", "WorkflowStarted", ENTITY_WORKFLOW, IN_PROGRESS, of_run, evaluated),
    [MOMENT_WORKFLOW_FINISHED] =
        ROW("workflow.finished", "WorkflowFinished", ENTITY_WORKFLOW, SUCCESS, of_run_end, finished),
    [MOMENT_ADMIT_EVALUATED] = FLAT_ROW("policy.admit.evaluated", "PolicyAdmitEvaluated", ENTITY_POLICY, of_step),
    [MOMENT_STEP_SCHEDULED] = ROW("step.scheduled", "StepScheduled", ENTITY_STEP, IN_PROGRESS, of_step, inputs),
    [MOMENT_STEP_STARTED] = ROW("step.started", "StepStarted", ENTITY_STEP, IN_PROGRESS, of_step, bare),
    [MOMENT_STEP_COMPLETED] = ROW("step.done", "StepDone", ENTITY_STEP, SUCCESS, of_step_end, done),
    [MOMENT_STEP_FAILED] = ROW("step.failed", "StepFailed", ENTITY_STEP, FAILURE, of_step_end, failed),
    [MOMENT_TASK_STARTED] = ROW("task.started", "TaskStarted", ENTITY_TASK, IN_PROGRESS, of_step, inputs),
    [MOMENT_ATTEMPT_STARTED] =
        ROW("task.attempt.started", "TaskAttemptStarted", ENTITY_TASK, IN_PROGRESS, of_try, bare),
    [MOMENT_ATTEMPT_DONE] = ROW("task.attempt.done", "TaskAttemptDone", ENTITY_TASK, SUCCESS, of_try_end, outcome),
    [MOMENT_ATTEMPT_FAILED] = ROW("task.attempt.failed", "TaskAttemptFailed", ENTITY_TASK, FAILURE, of_try_end, failed),
    [MOMENT_TASK_DECIDED] = FLAT_ROW("policy.task.evaluated", "PolicyTaskEvaluated", ENTITY_POLICY, of_try),
    [MOMENT_TASK_DONE] = ROW("task.done", "TaskDone", ENTITY_TASK, SUCCESS, of_step_end, done),
    [MOMENT_TASK_FAILED] = ROW("task.failed", "TaskFailed", ENTITY_TASK, FAILURE, of_step_end, failed),
    [MOMENT_LOOP_STARTED] = ROW("loop.started", "LoopStarted", ENTITY_LOOP, IN_PROGRESS, of_step, loop_started),
    [MOMENT_ITERATION_SCHEDULED] =
        ROW("loop.iteration.scheduled", "LoopIterationScheduled", ENTITY_LOOP, IN_PROGRESS, of_step, bare),
    [MOMENT_ITERATION_STARTED] =
        ROW("loop.iteration.started", "LoopIterationStarted", ENTITY_LOOP, IN_PROGRESS, of_step, bare),
    [MOMENT_ITERATION_DONE] =
        ROW("loop.iteration.done", "LoopIterationDone", ENTITY_LOOP, SUCCESS, of_step_end, outcome),
    [MOMENT_ITERATION_FAILED] =
        ROW("loop.iteration.failed", "LoopIterationFailed", ENTITY_LOOP, FAILURE, of_step_end, failed),
    [MOMENT_LOOP_DONE] = ROW("loop.done", "LoopDone", ENTITY_LOOP, SUCCESS, of_step_end, loop_done),
    [MOMENT_RESULT_STORED] = ROW("result.stored", "ResultStored", ENTITY_RESULT, SUCCESS, of_try, stored),
    [MOMENT_MANIFEST_UPDATED] =
        ROW("result.manifest.updated", "ResultManifestUpdated", ENTITY_RESULT, SUCCESS, of_step, manifest),
    [MOMENT_ROUTED] = FLAT_ROW("next.evaluated", "NextEvaluated", ENTITY_NEXT, of_step),
};

static bool went_wrong(const struct moment *moment)
{
    return moment->fault.code.len > 0;
}

static const struct table *payload_table(const struct moment *moment)
{
    if (moment->kind == MOMENT_REQUEST_EVALUATED && went_wrong(moment)) return &refused;
    if (moment->kind == MOMENT_WORKFLOW_FINISHED && went_wrong(moment)) return &finished_badly;
    return rows[moment->kind].payload;
}

static enum standing standing_of(const struct moment *moment)
{
    bool may_fail = moment->kind == MOMENT_REQUEST_EVALUATED || moment->kind == MOMENT_WORKFLOW_FINISHED;
    if (may_fail && went_wrong(moment)) return FAILURE;
    const struct json *allow = moment->kind == MOMENT_ADMIT_EVALUATED ? json_get(&moment->value, STR("allow")) : NULL;
    if (json_is(allow, JSON_BOOL) && !allow->boolean) return SKIPPED;
    return (enum standing)rows[moment->kind].standing;
}

// ---- ids

enum { DIGITS_MAX = 10 };

// Ids are written for every record: no printf.
struct joining {
    char *at;
};

static size_t digit_count(uint32_t n)
{
    size_t count = 1;
    for (; n >= 10; n /= 10) count++;
    return count;
}

static void join_text(struct joining *j, struct str text)
{
    if (text.len) memcpy(j->at, text.ptr, text.len);
    j->at += text.len;
}

static void join_number(struct joining *j, uint32_t n)
{
    size_t count = digit_count(n);
    for (size_t i = count; i > 0; i--) {
        j->at[i - 1] = (char)('0' + n % 10);
        n /= 10;
    }
    j->at += count;
}

// "<prefix><name><middle><n>"
static struct str join_id(struct arena *arena, struct str prefix, struct str name, struct str middle, uint32_t n)
{
    size_t size = prefix.len + name.len + middle.len + DIGITS_MAX;
    struct joining j = {arena_alloc(arena, size)};
    if (!j.at) return (struct str){NULL, 0};
    char *start = j.at;
    join_text(&j, prefix);
    join_text(&j, name);
    join_text(&j, middle);
    join_number(&j, n);
    return (struct str){start, (size_t)(j.at - start)};
}

// "<name><middle><digits>" at the end of the text. False: it does not end like that.
static bool cut_id(struct str *text, struct str middle, uint32_t *n)
{
    size_t at = text->len;
    uint64_t value = 0, unit = 1;
    while (at > 0 && text->ptr[at - 1] >= '0' && text->ptr[at - 1] <= '9' && text->len - at < DIGITS_MAX) {
        value += (uint64_t)(text->ptr[--at] - '0') * unit;
        unit *= 10;
    }
    if (at == text->len || value > UINT32_MAX || at < middle.len) return false;
    if (memcmp(text->ptr + at - middle.len, middle.ptr, middle.len) != 0) return false;
    *n = (uint32_t)value;
    text->len = at - middle.len;
    return true;
}

#define STEP_PREFIX "step:"
#define TASK_PREFIX "task:"
#define RUN_PART ":run:"
#define ITERATION_PART ":iteration:"

bool noetl_cut_run(struct str *id, uint32_t *n)
{
    return cut_id(id, STR(RUN_PART), n);
}

static bool derive_step(const struct moment *moment, struct arena *arena, struct derived *d)
{
    d->step_run_id = join_id(arena, STR(STEP_PREFIX), moment->step, STR(RUN_PART), moment->visit);
    bool ok = d->step_run_id.ptr;
    if (moment->iteration) {
        d->iteration_id = join_id(arena, d->step_run_id, STR(""), STR(ITERATION_PART), moment->iteration - 1);
        ok = ok && d->iteration_id.ptr;
    }
    if (!moment->task.len) return ok;
    // Runs of a task are counted in the iteration, and must be told apart in the step run.
    struct str prefix = STR(TASK_PREFIX), name = moment->task;
    if (moment->iteration) {
        prefix = join_id(arena, STR(TASK_PREFIX), moment->task, STR(ITERATION_PART), moment->iteration - 1);
        name = STR("");
        ok = ok && prefix.ptr;
    }
    d->task_run_id = join_id(arena, prefix, name, STR(RUN_PART), moment->task_run);
    return ok && d->task_run_id.ptr;
}

static bool joined(struct arena *arena, struct str prefix, struct str name, struct str *out)
{
    const struct str parts[] = {prefix, name};
    *out = contract_join(arena, parts, ARRAY_COUNT(parts));
    return out->ptr;
}

static bool derive_entity(const struct run_ids *ids, const struct moment *moment, enum entity entity,
                          struct arena *arena, struct derived *d)
{
    bool task = moment->task.len > 0;
    d->workflow_run_id = STR(WORKFLOW_RUN);
    d->parent_id = d->step_run_id;
    switch (entity) {
    case ENTITY_PLAYBOOK:
        d->entity_id = ids->plan_id;
        d->workflow_run_id = d->parent_id = STR("");
        return true;
    case ENTITY_WORKFLOW:
        d->entity_id = ids->plan_id;
        d->parent_id = ids->run;
        return true;
    case ENTITY_STEP:
        d->entity_id = moment->step;
        d->parent_id = STR(WORKFLOW_RUN);
        return true;
    case ENTITY_TASK:
        d->entity_id = moment->task;
        return true;
    case ENTITY_LOOP:
        return joined(arena, STR("loop:"), moment->step, &d->entity_id);
    case ENTITY_NEXT:
    case ENTITY_POLICY:
        if (task) d->parent_id = d->task_run_id;
        return joined(arena, task ? STR(TASK_PREFIX) : STR(STEP_PREFIX), task ? moment->task : moment->step,
                      &d->entity_id);
    case ENTITY_RESULT:
        if (!task) return joined(arena, STR(STEP_PREFIX), moment->step, &d->entity_id);
        d->parent_id = d->task_run_id;
        d->entity_id = join_id(arena, STR(TASK_PREFIX), moment->task, STR(":attempt:"), moment->logical);
        return d->entity_id.ptr;
    }
    INVARIANT(!"an event is about one of the entities");
    return false;
}

// ---- records

// Members of the value and of `payload`, in one object. Canonical order is made when it is written.
static enum code flatten(const struct moment *moment, struct arena *arena, struct json *payload, struct error *err)
{
    const struct json *value = &moment->value;
    if (value->type != JSON_OBJECT || json_get(value, STR("meta")))
        return error_set(err, E_INVALID, "%s needs an object without \"meta\"", moment_name(moment->kind));
    struct json flat;
    bool ok = json_object_with(arena, value->count + payload->count, &flat);
    for (uint32_t i = 0; ok && i < value->count; i++)
        ok = json_put(arena, &flat, value->members[i].key, value->members[i].value);
    for (uint32_t i = 0; ok && i < payload->count; i++)
        ok = json_put(arena, &flat, payload->members[i].key, payload->members[i].value);
    *payload = flat;
    return ok ? OK : record_no_memory(err);
}

static enum code derive(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                        struct arena *arena, struct derived *d, struct error *err)
{
    const struct row *row = &rows[moment->kind];
    if (moment_is_step(moment->kind) && !moment->visit)
        return error_set(err, E_INVALID, "%s of a playbook has no visit", moment_name(moment->kind));
    enum emitter by = moment->by ? moment->by : moment_emitter(moment->kind);
    d->type = row->type;
    d->alias = row->alias;
    d->entity_type = entity_words[row->entity];
    d->status = standing_words[standing_of(moment)];
    d->source = by == EMITTER_WORKER ? STR("worker") : STR("server");
    if (by != EMITTER_WORKER && by != EMITTER_ENGINE) d->by = str_from(emitter_name(by));
    d->appended = seal->persisted_ms - moment->at_ms;
    if (moment->step.len && !derive_step(moment, arena, d)) return record_no_memory(err);
    if (!derive_entity(ids, moment, (enum entity)row->entity, arena, d)) return record_no_memory(err);
    if (!moment->has_blob) return OK;
    const struct result_place place = result_place(ids->run, moment);
    d->ref = result_ref_format(&place, arena);
    return d->ref.ptr ? OK : record_no_memory(err);
}

static enum code build(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                       const struct digest *key, struct arena *arena, struct json *out, struct error *err)
{
    const struct row *row = &rows[moment->kind];
    INVARIANT(row->payload);
    if (moment->kind == MOMENT_RUN_REQUESTED && !moment->start) return start_missing(err);
    struct derived derived = {.key = *key};
    enum code rc = derive(ids, moment, seal, arena, &derived, err);
    if (rc) return rc;
    const struct facts_in facts = facts_of(ids, moment, seal, &derived);
    rc = fields_encode(payload_table(moment), &facts, arena, &derived.payload, err);
    if (!rc && row->flat) rc = flatten(moment, arena, &derived.payload, err);
    if (rc) return rc;
    return fields_encode(row->envelope, &facts, arena, out, err);
}

// Three kinds are playbook.finished and two playbook.request.evaluated.
static enum moment_kind kind_of(struct str type, struct str status, const struct json *payload)
{
    enum moment_kind kind = moment_of_word(VOCABULARY_NOETL, type);
    if (kind == MOMENT_REQUEST_EVALUATED) {
        const struct json *resume = json_get(json_get(payload, STR("meta")), STR("resume"));
        return json_is(resume, JSON_BOOL) && resume->boolean ? MOMENT_RUN_RESUMED : kind;
    }
    if (kind != MOMENT_RUN_CANCELLED) return kind;
    if (str_eq(status, standing_words[SUCCESS])) return MOMENT_RUN_COMPLETED;
    const struct json *error = json_get(payload, STR("error"));
    bool ended = str_is(json_text(json_get(error, STR("kind"))), CANCELLED) && !json_get(error, STR("code"));
    return ended ? MOMENT_RUN_CANCELLED : MOMENT_RUN_FAILED;
}

static enum code read_ids(const struct derived *derived, struct moment *moment, struct error *err)
{
    struct str step = derived->step_run_id, task = derived->task_run_id;
    if (moment_is_step(moment->kind) != (step.len > 0))
        return error_set(err, E_CORRUPT, "record: %.*s %s step_run_id", STR_ARG(derived->type),
                         step.len ? "must not have a" : "has no");
    uint32_t iteration = 0;
    bool ok = true;
    if (step.len) {
        ok = str_starts(step, STR(STEP_PREFIX)) && cut_id(&step, STR(RUN_PART), &moment->visit);
        if (ok) moment->step = str_slice(step, sizeof(STEP_PREFIX) - 1, step.len);
        ok = ok && moment->step.len && moment->visit;
    }
    if (ok && task.len) {
        ok = str_starts(task, STR(TASK_PREFIX)) && cut_id(&task, STR(RUN_PART), &moment->task_run);
        if (ok && moment->iteration)
            ok = cut_id(&task, STR(ITERATION_PART), &iteration) && iteration == moment->iteration - 1;
        if (ok) moment->task = str_slice(task, sizeof(TASK_PREFIX) - 1, task.len);
        ok = ok && moment->task.len && moment->task_run;
    }
    return ok ? OK : error_set(err, E_CORRUPT, "record: step_run_id or task_run_id is none");
}

// What the payload has besides meta.
static enum code read_flat(const struct json *payload, struct arena *arena, struct json *out, struct error *err)
{
    if (!json_object_with(arena, payload->count, out)) return record_no_memory(err);
    for (uint32_t i = 0; i < payload->count; i++) {
        const struct json_member *member = &payload->members[i];
        if (str_is(member->key, "meta")) continue;
        if (!json_put(arena, out, member->key, member->value)) return record_no_memory(err);
    }
    return OK;
}

static enum code read_payload(const struct json *payload, struct facts_out *facts, struct arena *arena,
                              struct moment *moment, struct error *err)
{
    enum code rc = OK;
    if (moment->kind == MOMENT_RUN_REQUESTED) rc = facts_start(facts, arena, moment, err);
    const struct table *table = rows[moment->kind].payload;
    bool bad = json_get(payload, STR("error")) != NULL;
    if (bad && moment->kind == MOMENT_REQUEST_EVALUATED) table = &refused;
    if (bad && moment->kind == MOMENT_WORKFLOW_FINISHED) table = &finished_badly;
    if (!rc) rc = fields_decode(table, payload, facts, err);
    if (!rc && rows[moment->kind].flat) rc = read_flat(payload, arena, &moment->value, err);
    return rc;
}

static enum code read(const struct json *record, struct arena *arena, struct moment *out, struct seal *seal,
                      struct run_ids *ids, struct error *err)
{
    struct derived derived = {0};
    struct facts_out facts = facts_into(ids, out, seal, &derived);
    out->logical = out->engine = 1; // until the record says otherwise
    enum code rc = fields_decode(&of_step, record, &facts, err);
    if (rc) return rc;
    if (derived.payload.type != JSON_OBJECT) return error_set(err, E_CORRUPT, "record: payload is not an object");
    out->kind = kind_of(derived.type, derived.status, &derived.payload);
    if (out->kind != MOMENT_UNKNOWN) {
        rc = read_ids(&derived, out, err);
        if (!rc) rc = read_payload(&derived.payload, &facts, arena, out, err);
        if (rc) return rc;
    }
    seal->persisted_ms = out->at_ms + derived.appended;
    out->by = emitter_parse(derived.by);
    if (!out->by) out->by = str_is(derived.source, "worker") ? EMITTER_WORKER : EMITTER_ENGINE;
    return OK;
}

bool noetl_shown(const struct moment *moment, struct arena *arena, struct moment *out)
{
    *out = *moment;
    if (out->kind == MOMENT_RUN_STARTED && out->start && !out->value.type) out->value = out->start->inputs;
    if (!moment_is_step(out->kind) || out->visit) return true;
    out->visit = 1;
    if (out->kind == MOMENT_ATTEMPT_FAILED) { // the step is its own task
        out->task = out->step;
        out->task_run = 1;
    }
    if (out->kind != MOMENT_STEP_SKIPPED) return true;
    out->kind = MOMENT_ADMIT_EVALUATED;
    return json_object_with(arena, 1, &out->value) && json_put(arena, &out->value, STR("allow"), json_bool(false));
}

static void verify(void)
{
    static const struct table *const others[] = {&refused, &finished_badly};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) table_verify(others[i]);
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const struct row *row = &rows[kind];
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_NOETL);
        INVARIANT(word ? str_is(row->type, word) : !row->payload);
        if (!word) continue;
        table_verify(row->envelope);
        table_verify(row->payload);
    }
}

const struct codec noetl_codec = {
    .vocabulary = VOCABULARY_NOETL,
    .folder = "noetl-events",
    .type_key = {"event_type", 10},
    .payload_start = {",\"payload\":", 11},
    .payload_end = {",\"prev_hash\":", 13},
    .build = build,
    .read = read,
    .verify = verify,
};
