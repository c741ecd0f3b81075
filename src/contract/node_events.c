// VOCABULARY_NODES: exactly eight types, one flat record (C-63). Every record says in its payload whose run it is (WE-2.1.3j); logs of
// earlier versions say it in workflow_started alone.
// A node_started with engine_attempt >= 2 is a node begun again after a crash: StepRedispatched in the other words.
#include "contract/internal.h"

#include <string.h>

static const struct table record_table = TABLE_OF({
    DERIVED_FIELD("event_type", FIELD_STR, type, ALWAYS | REQUIRED),
    DERIVED_FIELD("payload", FIELD_JSON, payload, ALWAYS | REQUIRED),
    SEAL_FIELD("prev_hash", FIELD_DIGEST, previous, 0),
    RUN_FIELD("run_id"),
    SEAL_FIELD("sequence", FIELD_SEQ, seq, ALWAYS | REQUIRED),
    SEAL_FIELD("timestamp", FIELD_TIME, persisted_ms, ALWAYS | REQUIRED),
});

static const struct table error_table = TABLE_OF({
    MOMENT_FIELD("category", FIELD_STR, fault.category, 0),
    MOMENT_FIELD("code", FIELD_STR, fault.code, ALWAYS),
    MOMENT_FIELD("detail", FIELD_STR, fault.detail, 0),
    EXIT_FIELD("exit_code"),
    MOMENT_FIELD("message", FIELD_STR, fault.message, ALWAYS),
    MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, ALWAYS),
});

static const struct table output_ref_table = TABLE_OF({
    MOMENT_FIELD("sha256", FIELD_DIGEST, blob, ALWAYS | REQUIRED),
    MOMENT_FIELD("size", FIELD_U64, blob_size, ALWAYS),
});

static const struct table forked_from_table = TABLE_OF({
    START_FIELD("run_id", FIELD_RUN, forked_run, ALWAYS | REQUIRED),
    START_FIELD("sequence", FIELD_U64, forked_seq, ALWAYS | REQUIRED),
});

// What stands in most records. The attempt of a node is always recorded, that of a workflow from the second on.
#define AT_FIELD MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS)
#define ATTEMPT_FIELD(how) MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, how)
#define ATTEMPTS_FIELD MOMENT_FIELD("attempts", FIELD_U32, logical, ALWAYS | DERIVED)
#define ACTOR_FIELD MOMENT_FIELD("actor", FIELD_STR, actor, 0)
#define BY_FIELD DERIVED_FIELD("by", FIELD_STR, by, 0)
#define DURATION_FIELD MOMENT_FIELD("duration_ms", FIELD_SPAN, duration_ms, ALWAYS)
#define ENVIRONMENT_FIELD IDS_FIELD("environment_id", environment, ALWAYS)
#define PROJECT_FIELD IDS_FIELD("project_id", project, ALWAYS)
#define TENANT_FIELD IDS_FIELD("tenant_id", tenant, ALWAYS)
#define ENGINE_FIELD(how) MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, how)
#define ERROR_FIELD OBJECT_FIELD("error", error_table, ALWAYS)
#define EVENT_ID_FIELD SEAL_FIELD("event_id", FIELD_ID, event_id, 0)
#define NODE_FIELD MOMENT_FIELD("node_id", FIELD_STEP, step, ALWAYS | REQUIRED)
#define SIGNAL_FIELD MOMENT_FIELD("signal_id", FIELD_UUID, signal_id, 0)

static const struct field workflow_started_fields[] = {
    AT_FIELD,
    ATTEMPT_FIELD(0),
    EVENT_ID_FIELD,
    FORK_FIELD("forked_from", forked_from_table),
    START_FIELD("inputs", FIELD_MEMBERS, inputs, ALWAYS),
    START_FIELD("original_run_id", FIELD_RUN, original_run, 0),
    START_FIELD("parent_node_id", FIELD_STEP, parent_step, 0),
    START_FIELD("parent_run_id", FIELD_RUN, parent_run, 0),
    START_FIELD("workflow", FIELD_STR, name, ALWAYS),
};

static const struct field workflow_completed_fields[] = {
    AT_FIELD,       ATTEMPT_FIELD(0), BY_FIELD,       OBJECT_FIELD("counts", counts_table, ALWAYS),
    DURATION_FIELD, ENGINE_FIELD(0),  ENVIRONMENT_FIELD, EVENT_ID_FIELD, PROJECT_FIELD, TENANT_FIELD,
};
static const struct table workflow_ended = TABLE(workflow_completed_fields);

static const struct field workflow_failed_fields[] = {
    ERROR_FIELD,
    MOMENT_FIELD("failed_node", FIELD_STEP, reason, 0),
};

static const struct field workflow_cancelled_fields[] = {
    ACTOR_FIELD,
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    SIGNAL_FIELD,
    MOMENT_CHOICE("signal_type", signal_type, 0, SIGNAL_WORDS),
};

static const struct field node_started_fields[] = {
    AT_FIELD,
    ATTEMPT_FIELD(ALWAYS),
    BY_FIELD,
    MOMENT_FIELD("child_run_id", FIELD_RUN, run_ref, 0),
    MOMENT_FIELD("due_at", FIELD_TIME, due_ms, 0),
    ENGINE_FIELD(ALWAYS),
    ENVIRONMENT_FIELD,
    EVENT_ID_FIELD,
    NODE_FIELD,
    PROJECT_FIELD,
    TENANT_FIELD,
};

static const struct field node_completed_fields[] = {
    ACTOR_FIELD,
    MOMENT_FIELD("artifacts", FIELD_SHAPED, artifacts, 0),
    AT_FIELD,
    ATTEMPT_FIELD(ALWAYS),
    ATTEMPTS_FIELD,
    BY_FIELD,
    DURATION_FIELD,
    ENGINE_FIELD(ALWAYS),
    ENVIRONMENT_FIELD,
    EVENT_ID_FIELD,
    NODE_FIELD,
    MOMENT_FIELD("output", FIELD_JSON, value, 0),
    BLOB_FIELD("output_ref", output_ref_table),
    PROJECT_FIELD,
    MOMENT_FIELD("reused_from", FIELD_RUN, run_ref, 0),
    TENANT_FIELD,
    MOMENT_FIELD("truncated", FIELD_BOOL, truncated, 0),
};

static const struct field node_failed_fields[] = {
    ACTOR_FIELD,          AT_FIELD,    ATTEMPT_FIELD(ALWAYS), ATTEMPTS_FIELD, BY_FIELD, DURATION_FIELD,
    ENGINE_FIELD(ALWAYS), ENVIRONMENT_FIELD, ERROR_FIELD, EVENT_ID_FIELD, NODE_FIELD, PROJECT_FIELD, TENANT_FIELD,
};

static const struct field node_skipped_fields[] = {
    ACTOR_FIELD,
    AT_FIELD,
    ATTEMPT_FIELD(ALWAYS),
    BY_FIELD,
    DERIVED_FIELD("cause", FIELD_STR, cause, 0),
    DERIVED_FIELD("detail", FIELD_STR, detail, 0),
    ENGINE_FIELD(ALWAYS),
    ENVIRONMENT_FIELD,
    EVENT_ID_FIELD,
    DERIVED_FIELD("expr", FIELD_STR, expr, 0),
    NODE_FIELD,
    PROJECT_FIELD,
    CHOICE_FIELD("reason", SOURCE_DERIVED, struct derived, reason, ALWAYS,
                 "trigger_rule when_condition when_condition_parse_error dependency_failed operator_skip nothing_to_undo"),
    SIGNAL_FIELD,
    TENANT_FIELD,
};

static const struct table payloads[MOMENT_COUNT] = {
    [MOMENT_RUN_STARTED] = TABLE_WITH(workflow_started_fields, &start_in_snake),
    [MOMENT_STEP_STARTED] = TABLE(node_started_fields),
    [MOMENT_STEP_REDISPATCHED] = TABLE(node_started_fields),
    [MOMENT_STEP_COMPLETED] = TABLE(node_completed_fields),
    [MOMENT_STEP_FAILED] = TABLE(node_failed_fields),
    [MOMENT_STEP_SKIPPED] = TABLE(node_skipped_fields),
    [MOMENT_RUN_CANCELLED] = TABLE_WITH(workflow_cancelled_fields, &workflow_ended),
    [MOMENT_RUN_COMPLETED] = TABLE(workflow_completed_fields),
    [MOMENT_RUN_FAILED] = TABLE_WITH(workflow_failed_fields, &workflow_ended),
};

struct skip_reason {
    const char *code, *word, *cause;
    bool condition;
};

// The vocabulary has one word for rules that do not pass; whether a failure was behind it is the cause. The last row is
// how earlier versions wrote that: only read.
static const struct skip_reason skip_reasons[] = {
    {SKIP_TRIGGER_RULE, "trigger_rule", "", false},
    {SKIP_DEPENDENCY_FAILED, "trigger_rule", "dependency_failed", false},
    {SKIP_CONDITION_FALSE, "when_condition", "", true},
    {SKIP_CONDITION_BROKEN, "when_condition_parse_error", "", true},
    {SKIP_OPERATOR, "operator_skip", "", false},
    {SKIP_NOTHING_TO_UNDO, "nothing_to_undo", "", false},
    {SKIP_DEPENDENCY_FAILED, "dependency_failed", "", false},
};

#define VALUES_FOLLOW " with "

// Length of the condition in "CONDITION with VALUES"; in a condition that could be read the words stand in quotes at most.
static size_t condition_len(struct str told)
{
    const struct str mark = STR(VALUES_FOLLOW);
    bool quoted = false;
    for (size_t i = 0; i + mark.len <= told.len; i++) {
        if (told.ptr[i] == '\'') quoted = !quoted;
        if (!quoted && str_eq(str_slice(told, i, i + mark.len), mark)) return i;
    }
    return told.len;
}

static void skip_written(const struct moment *moment, struct derived *out)
{
    const struct skip_reason *reason = NULL;
    for (size_t i = 0; !reason && i < ARRAY_COUNT(skip_reasons); i++)
        if (str_is(moment->reason, skip_reasons[i].code)) reason = &skip_reasons[i];
    out->reason = reason ? str_from(reason->word) : moment->reason;
    out->cause = reason ? str_from(reason->cause) : STR("");
    out->detail = moment->detail;
    if (!reason || !reason->condition) return;
    bool read = !str_is(moment->reason, SKIP_CONDITION_BROKEN);
    size_t len = read ? condition_len(moment->detail) : moment->detail.len;
    out->expr = str_slice(moment->detail, 0, len);
    out->detail =
        len < moment->detail.len ? str_slice(moment->detail, len + strlen(VALUES_FOLLOW), moment->detail.len) : STR("");
}

static enum code skip_read(const struct derived *derived, struct arena *arena, struct moment *out, struct error *err)
{
    out->reason = derived->reason;
    for (size_t i = 0; i < ARRAY_COUNT(skip_reasons); i++)
        if (str_is(derived->reason, skip_reasons[i].word) && str_is(derived->cause, skip_reasons[i].cause))
            out->reason = str_from(skip_reasons[i].code);
    out->detail = derived->expr.len ? derived->expr : derived->detail;
    if (derived->expr.len == 0 || derived->detail.len == 0) return OK;
    const struct str parts[] = {derived->expr, STR(VALUES_FOLLOW), derived->detail};
    out->detail = contract_join(arena, parts, ARRAY_COUNT(parts));
    return out->detail.ptr ? OK : error_nomem(err);
}

static enum code build(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                       const struct digest *key, struct arena *arena, struct json *out, bool *doubt, struct error *err)
{
    const struct table *payload = &payloads[moment->kind];
    INVARIANT(payload->count);
    if (moment->kind == MOMENT_RUN_STARTED && !moment->start) return start_missing(err);
    struct derived derived = {.type = str_from(moment_word(moment->kind, VOCABULARY_NODES)), .key = *key};
    if (moment->by && moment->by != moment_emitter(moment->kind)) derived.by = str_from(emitter_name(moment->by));
    if (moment->kind == MOMENT_STEP_SKIPPED) skip_written(moment, &derived);
    const struct facts_in facts = facts_of(ids, moment, seal, &derived, doubt);
    enum code rc = fields_encode(payload, &facts, arena, &derived.payload, err);
    if (rc) return rc;
    return fields_encode(&record_table, &facts, arena, out, err);
}

static enum moment_kind kind_of(struct str type, const struct json *payload)
{
    enum moment_kind kind = moment_of_word(VOCABULARY_NODES, type);
    if (kind == MOMENT_STEP_STARTED && json_integer(json_get(payload, STR("engine_attempt")), 1) >= 2)
        return MOMENT_STEP_REDISPATCHED;
    return kind;
}

static enum code read(const struct json *record, struct arena *arena, struct moment *out, struct seal *seal,
                      struct run_ids *ids, struct error *err)
{
    struct derived derived = {0};
    struct facts_out facts = facts_into(ids, out, seal, &derived);
    enum code rc = fields_decode(&record_table, record, &facts, err);
    if (rc) return rc;
    if (derived.payload.type != JSON_OBJECT) return error_set(err, E_CORRUPT, "record: payload is not an object");
    out->kind = kind_of(derived.type, &derived.payload);
    if (out->kind == MOMENT_UNKNOWN) {
        out->at_ms = seal->persisted_ms;
        return OK;
    }
    if (out->kind == MOMENT_RUN_STARTED) rc = facts_start(&facts, arena, out, err);
    out->at_ms = seal->persisted_ms; // until the payload says otherwise
    if (!rc) rc = fields_decode(&payloads[out->kind], &derived.payload, &facts, err);
    if (rc) return rc;
    if (out->kind == MOMENT_STEP_SKIPPED) rc = skip_read(&derived, arena, out, err);
    if (rc) return rc;
    out->by = emitter_told(derived.by, out->kind);
    return OK;
}

static void verify(void)
{
    table_verify(&record_table);
    payloads_verify(VOCABULARY_NODES, payloads);
}

const struct codec node_codec = {
    .vocabulary = VOCABULARY_NODES,
    .folder = "node-events",
    .type_key = {"event_type", 10},
    .payload_start = {",\"payload\":", 11},
    .payload_end = {",\"prev_hash\":", 13},
    .build = build,
    .read = read,
    .verify = verify,
};
