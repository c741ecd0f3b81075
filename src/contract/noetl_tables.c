// Tables of the vocabulary of playbooks: the members of its records, and a row per type.
#include "contract/noetl_tables.h"

#define ENVELOPE(attempt_field, duration_how)                                                                          \
    attempt_field MOMENT_FIELD("duration_ms", FIELD_SPAN, duration_ms, duration_how),                                    \
        DERIVED_FIELD("entity_id", FIELD_PART, entity_id, ALWAYS | DERIVED),                                           \
        DERIVED_FIELD("entity_type", FIELD_STR, entity_type, ALWAYS | DERIVED),                                        \
        DERIVED_FIELD("event_alias", FIELD_STR, alias, ALWAYS | DERIVED),                                              \
        SEAL_FIELD("event_id", FIELD_ID, event_id, ALWAYS),                                                            \
        DERIVED_FIELD("event_type", FIELD_STR, type, ALWAYS | REQUIRED),                                               \
        RUN_FIELD("execution_id"), MOMENT_FIELD("iteration", FIELD_INDEX, iteration, 0),       \
        DERIVED_FIELD("iteration_id", FIELD_PART, iteration_id, DERIVED),                                              \
        DERIVED_FIELD("parent_id", FIELD_PART, parent_id, DERIVED),                                                    \
        DERIVED_FIELD("payload", FIELD_JSON, payload, ALWAYS), SEAL_FIELD("prev_hash", FIELD_DIGEST, previous, 0),     \
        SEAL_FIELD("seq", FIELD_SEQ, seq, ALWAYS | REQUIRED), DERIVED_FIELD("source", FIELD_STR, source, ALWAYS),      \
        DERIVED_FIELD("status", FIELD_STR, status, ALWAYS), DERIVED_FIELD("step_run_id", FIELD_KEY, step_run_id, 0),   \
        DERIVED_FIELD("task_run_id", FIELD_KEY, task_run_id, 0),                                                       \
        MOMENT_FIELD("timestamp", FIELD_TIME, at_ms, ALWAYS | REQUIRED),                                               \
        DERIVED_FIELD("workflow_run_id", FIELD_STR, workflow_run_id, DERIVED),

#define NO_ATTEMPT
#define ATTEMPT_FIELD(how) MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, how),

// Of the run; of the ends of the run; of a step; of its ends; of a try of a task; of its ends.
static const struct table of_run = TABLE_OF({ENVELOPE(NO_ATTEMPT, 0)});
static const struct table of_run_end = TABLE_OF({ENVELOPE(NO_ATTEMPT, ALWAYS)});
static const struct table of_step = TABLE_OF({ENVELOPE(ATTEMPT_FIELD(0), 0)});
static const struct table of_step_end = TABLE_OF({ENVELOPE(ATTEMPT_FIELD(0), ALWAYS)});
static const struct table of_try = TABLE_OF({ENVELOPE(ATTEMPT_FIELD(ALWAYS), 0)});
static const struct table of_try_end = TABLE_OF({ENVELOPE(ATTEMPT_FIELD(ALWAYS), ALWAYS)});

// ---- parts of payloads

#define BY_FIELD DERIVED_FIELD("by", FIELD_STR, by, 0)
// Whose run it is, in every record; in logs of earlier versions only in the first.
#define ENVIRONMENT_FIELD IDS_FIELD("environment_id", environment, ALWAYS)
#define PROJECT_FIELD IDS_FIELD("project_id", project, ALWAYS)
#define TENANT_FIELD IDS_FIELD("tenant_id", tenant, ALWAYS)
// The logical attempt of what is not a step counts pauses (C-23).
#define RUN_META_FIELDS                                                                                                \
    MOMENT_FIELD("actor", FIELD_STR, actor, 0), DERIVED_FIELD("appended_ms", FIELD_MS, appended, 0), BY_FIELD,         \
        MOMENT_FIELD("cycle", FIELD_ATTEMPT, logical, 0), MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),  \
        ENVIRONMENT_FIELD
#define REASON_FIELD(name) MOMENT_FIELD(name, FIELD_STR, reason, 0)
#define SIGNAL_FIELDS                                                                                                  \
    MOMENT_FIELD("signal_id", FIELD_STR, signal_id, 0), MOMENT_FIELD("signal_type", FIELD_STR, signal_type, 0)

static const struct table run_meta =
    TABLE_OF({RUN_META_FIELDS, PROJECT_FIELD, REASON_FIELD("reason"), SIGNAL_FIELDS, TENANT_FIELD});
static const struct table resume_meta = TABLE_OF({
    RUN_META_FIELDS,
    PROJECT_FIELD,
    REASON_FIELD("reason"),
    BOOL_FIELD("resume", FIELD_TRUE),
    SIGNAL_FIELDS,
    TENANT_FIELD,
});
static const struct table failed_meta =
    TABLE_OF({RUN_META_FIELDS, REASON_FIELD("failed_step"), PROJECT_FIELD, SIGNAL_FIELDS, TENANT_FIELD});
// The message of the error is the reason of a cancellation.
static const struct table cancelled_meta = TABLE_OF({RUN_META_FIELDS, PROJECT_FIELD, SIGNAL_FIELDS, TENANT_FIELD});
static const struct table step_meta = TABLE_OF({
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    DERIVED_FIELD("appended_ms", FIELD_MS, appended, 0),
    BY_FIELD,
    MOMENT_FIELD("child_execution_id", FIELD_RUN, run_ref, 0),
    MOMENT_FIELD("detail", FIELD_STR, detail, 0),
    MOMENT_FIELD("due_at", FIELD_TIME, due_ms, 0),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    ENVIRONMENT_FIELD,
    PROJECT_FIELD,
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("signal_id", FIELD_STR, signal_id, 0),
    TENANT_FIELD,
    MOMENT_FIELD("truncated", FIELD_BOOL, truncated, 0),
});

static const struct table error_table = TABLE_OF({
    MOMENT_FIELD("code", FIELD_STR, fault.code, ALWAYS),
    MOMENT_FIELD("detail", FIELD_STR, fault.detail, 0),
    EXIT_FIELD("exit_code"),
    MOMENT_FIELD("kind", FIELD_STR, fault.category, 0),
    MOMENT_FIELD("message", FIELD_STR, fault.message, ALWAYS),
    MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, ALWAYS),
});

// Without a code: that is what tells it from a failure that is called the same.
static const struct table cancelled_error = TABLE_OF({
    WORD_FIELD("kind", NOETL_CANCELLED),
    MOMENT_FIELD("message", FIELD_STR, reason, 0),
});

static const struct table ref_meta = TABLE_OF({
    MOMENT_FIELD("bytes", FIELD_U64, blob_size, ALWAYS),
    WORD_FIELD("content_type", "application/json"),
    MOMENT_FIELD("sha256", FIELD_DIGEST, blob, ALWAYS | REQUIRED),
});
static const struct table result_ref = TABLE_OF({
    WORD_FIELD("kind", "result_ref"),
    OBJECT_FIELD("meta", ref_meta, ALWAYS | REQUIRED),
    MOMENT_FIELD("preview", FIELD_JSON, preview, 0),
    DERIVED_FIELD("ref", FIELD_STR, ref, ALWAYS | DERIVED),
    WORD_FIELD("scope", "execution"),
    DERIVED_FIELD("store", FIELD_STR, store, ALWAYS),
});

static const struct table ok_table = TABLE_OF({
    MOMENT_FIELD("result", FIELD_JSON, value, 0),
    WORD_FIELD("status", "ok"),
});

static const struct table forked_from = TABLE_OF({
    START_FIELD("execution_id", FIELD_RUN, forked_run, ALWAYS | REQUIRED),
    START_FIELD("seq", FIELD_U64, forked_seq, ALWAYS | REQUIRED),
});

static const struct table start_meta = TABLE_OF_WITH(&start_in_snake, {
    DERIVED_FIELD("appended_ms", FIELD_MS, appended, 0),
    MOMENT_FIELD("cycle", FIELD_ATTEMPT, logical, 0),
    FORK_FIELD("forked_from", forked_from),
    START_FIELD("name", FIELD_STR, name, 0),
    START_FIELD("original_execution_id", FIELD_RUN, original_run, 0),
    START_FIELD("parent_execution_id", FIELD_RUN, parent_run, 0),
    START_FIELD("parent_step", FIELD_STEP, parent_step, 0),
    START_FIELD("reuse", FIELD_SHAPED, reuse, 0),
});

// ---- payloads

#define META(of) OBJECT_FIELD("meta", of, 0)

static const struct table requested = TABLE_OF({
    START_FIELD("inputs", FIELD_MEMBERS, inputs, ALWAYS),
    META(start_meta),
});
static const struct table evaluated = TABLE_OF({META(run_meta)});
static const struct table refused = TABLE_OF({OBJECT_FIELD("error", error_table, ALWAYS), META(run_meta)});
static const struct table resumed = TABLE_OF({META(resume_meta)});
// A value that is larger than an event is kept beside the log; of a decision, the parts that are large.
#define VALUE_REF BLOB_FIELD("value_ref", ref_meta)
static const struct table started = TABLE_OF({
    MOMENT_FIELD("inputs", FIELD_JSON, value, 0),
    META(run_meta),
    VALUE_REF,
});
static const struct table finished = TABLE_OF({OBJECT_FIELD("counts", counts_table, ALWAYS), META(run_meta)});
static const struct table finished_badly = TABLE_OF({
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    OBJECT_FIELD("error", error_table, ALWAYS),
    META(failed_meta),
});
static const struct table cancelled = TABLE_OF({
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    OBJECT_FIELD("error", cancelled_error, ALWAYS),
    META(cancelled_meta),
});
static const struct table bare = TABLE_OF({META(step_meta)});
static const struct table decided = TABLE_OF({META(step_meta), VALUE_REF});
static const struct table inputs = TABLE_OF({MOMENT_FIELD("inputs", FIELD_JSON, value, 0), META(step_meta), VALUE_REF});
static const struct table loop_started = TABLE_OF({
    MOMENT_FIELD("inputs", FIELD_JSON, value, 0),
    META(step_meta),
    BLOB_FIELD("result_ref", result_ref),
    MOMENT_FIELD("total", FIELD_U32, counts.total, ALWAYS),
});
static const struct table loop_done = TABLE_OF({OBJECT_FIELD("counts", counts_table, ALWAYS), META(step_meta)});
static const struct table outcome = TABLE_OF({META(step_meta), MOMENT_FIELD("outcome", FIELD_OUTCOME, value, 0), VALUE_REF});
static const struct table failed = TABLE_OF({
    OBJECT_FIELD("error", error_table, ALWAYS),
    META(step_meta),
    MOMENT_FIELD("outcome", FIELD_OUTCOME, value, 0),
    VALUE_REF,
});
static const struct table done = TABLE_OF({
    MOMENT_FIELD("artifacts", FIELD_SHAPED, artifacts, 0),
    MOMENT_FIELD("extracted", FIELD_JSON, extracted, 0),
    META(step_meta),
    OBJECT_FIELD("outcome", ok_table, ALWAYS),
    BLOB_FIELD("result_ref", result_ref),
});
static const struct table stored = TABLE_OF({
    MOMENT_FIELD("extracted", FIELD_JSON, extracted, 0),
    META(step_meta),
    BLOB_FIELD("result_ref", result_ref),
});
static const struct table manifest = TABLE_OF({MOMENT_FIELD("manifest", FIELD_SHAPED, value, 0), META(step_meta)});

// ---- types

const struct str noetl_entity_words[] = {
    [ENTITY_PLAYBOOK] = STR_INIT("playbook"), [ENTITY_WORKFLOW] = STR_INIT("workflow"),
    [ENTITY_STEP] = STR_INIT("step"),         [ENTITY_TASK] = STR_INIT("task"),
    [ENTITY_LOOP] = STR_INIT("loop"),         [ENTITY_NEXT] = STR_INIT("next"),
    [ENTITY_POLICY] = STR_INIT("policy"),     [ENTITY_RESULT] = STR_INIT("result"),
};

const struct str noetl_standing_words[] = {
    [IN_PROGRESS] = STR_INIT("in_progress"), [SUCCESS] = STR_INIT("success"), [FAILURE] = STR_INIT("error"),
    [SKIPPED] = STR_INIT("skipped"),         [PAUSED] = STR_INIT("paused"),
};

#define ROW(type_word, alias_word, of, how, table, content)                                                            \
    {                                                                                                                  \
        .type = STR_INIT(type_word), .alias = STR_INIT(alias_word), .entity = (of), .standing = (how),                 \
        .envelope = &(table), .payload = &(content)                                                                    \
    }
#define FLAT_ROW(type_word, alias_word, of, table)                                                                     \
    {                                                                                                                  \
        .type = STR_INIT(type_word), .alias = STR_INIT(alias_word), .entity = (of), .standing = SUCCESS, .flat = true, \
        .envelope = &(table), .payload = &decided                                                                      \
    }

const struct noetl_row noetl_rows[MOMENT_COUNT] = {
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

const struct table *noetl_payload(enum moment_kind kind, bool wrong)
{
    if (wrong && kind == MOMENT_REQUEST_EVALUATED) return &refused;
    if (wrong && kind == MOMENT_WORKFLOW_FINISHED) return &finished_badly;
    return noetl_rows[kind].payload;
}

const struct table *noetl_envelope(void)
{
    return &of_step;
}

void noetl_tables_verify(void)
{
    table_verify(&refused);
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const struct noetl_row *row = &noetl_rows[kind];
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_NOETL);
        INVARIANT(word ? str_is(row->type, word) : !row->payload);
        if (!word) continue;
        table_verify(row->envelope);
        table_verify(row->payload);
    }
}
