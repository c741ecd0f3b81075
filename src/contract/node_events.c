// VOCABULARY_NODES: exactly eight types, one flat record (C-63). Who the run belongs to is said once, in workflow_started.
// A node_started with engine_attempt >= 2 is a node begun again after a crash: StepRedispatched in the other words.
#include "contract/internal.h"

static const struct field record_fields[] = {
    DERIVED_FIELD("event_type", FIELD_STR, type, ALWAYS | REQUIRED),
    DERIVED_FIELD("payload", FIELD_JSON, payload, ALWAYS | REQUIRED),
    SEAL_FIELD("prev_hash", FIELD_DIGEST, previous, 0),
    IDS_FIELD("run_id", run, ALWAYS | REQUIRED),
    SEAL_FIELD("sequence", FIELD_U64, seq, ALWAYS | REQUIRED),
    SEAL_FIELD("timestamp", FIELD_TIME, persisted_ms, ALWAYS | REQUIRED),
};

static const struct field counts_fields[] = {
    MOMENT_FIELD("completed", FIELD_U32, counts.completed, ALWAYS),
    MOMENT_FIELD("failed", FIELD_U32, counts.failed, ALWAYS),
    MOMENT_FIELD("skipped", FIELD_U32, counts.skipped, ALWAYS),
    MOMENT_FIELD("total", FIELD_U32, counts.total, ALWAYS),
};
static const struct table counts_table = TABLE(counts_fields);

static const struct field error_fields[] = {
    MOMENT_FIELD("category", FIELD_STR, fault.category, 0),
    MOMENT_FIELD("code", FIELD_STR, fault.code, ALWAYS),
    MOMENT_FIELD("detail", FIELD_STR, fault.detail, 0),
    EXIT_FIELD("exit_code"),
    MOMENT_FIELD("message", FIELD_STR, fault.message, ALWAYS),
    MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, ALWAYS),
};
static const struct table error_table = TABLE(error_fields);

static const struct field output_ref_fields[] = {
    MOMENT_FIELD("sha256", FIELD_DIGEST, blob, ALWAYS | REQUIRED),
    MOMENT_FIELD("size", FIELD_U64, blob_size, ALWAYS),
};
static const struct table output_ref_table = TABLE(output_ref_fields);

static const struct field forked_from_fields[] = {
    START_FIELD("run_id", FIELD_STR, forked_run, ALWAYS | REQUIRED),
    START_FIELD("sequence", FIELD_U64, forked_seq, ALWAYS | REQUIRED),
};
static const struct table forked_from_table = TABLE(forked_from_fields);

static const struct field workflow_started_fields[] = {
    START_FIELD("admission", FIELD_STR, admission, 0),
    START_FIELD("arguments", FIELD_STR, arguments, 0),
    START_FIELD("artifacts_dir", FIELD_STR, artifacts_dir, 0),
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),
    MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, 0),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    START_FIELD("cancel_on_pause", FIELD_BOOL, cancel_on_pause, 0),
    START_FIELD("degraded", FIELD_BOOL, degraded, 0),
    START_FIELD("document_file", FIELD_STR, document_file, 0),
    START_FIELD("document_kind", FIELD_STR, document_kind, ALWAYS),
    START_FIELD("document_sha256", FIELD_STR, document_sha256, ALWAYS),
    START_FIELD("drain_timeout_ms", FIELD_MS, drain_timeout_ms, 0),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    IDS_FIELD("environment_id", environment, ALWAYS),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0),
    FORK_FIELD("forked_from", forked_from_table),
    START_FIELD("inputs", FIELD_JSON, inputs, ALWAYS),
    START_FIELD("not_before", FIELD_TIME, not_before_ms, 0),
    START_FIELD("original_run_id", FIELD_STR, original_run, 0),
    START_FIELD("parent_node_id", FIELD_STR, parent_step, 0),
    START_FIELD("parent_run_id", FIELD_STR, parent_run, 0),
    START_FIELD("parts", FIELD_JSON, parts, 0),
    IDS_FIELD("plan_id", plan_id, ALWAYS),
    IDS_FIELD("plan_version", plan_version, ALWAYS),
    START_FIELD("profile", FIELD_STR, profile, 0),
    IDS_FIELD("project_id", project, ALWAYS),
    START_FIELD("queue", FIELD_STR, queue, 0),
    START_FIELD("requires_approval", FIELD_BOOL, requires_approval, 0),
    START_FIELD("schema_version", FIELD_STR, schema_version, 0),
    IDS_FIELD("tenant_id", tenant, ALWAYS),
    START_FIELD("trigger_source", FIELD_STR, trigger_source, 0),
    START_FIELD("triggered_by", FIELD_STR, triggered_by, 0),
    START_FIELD("validation_report", FIELD_STR, report, 0),
    START_FIELD("warnings", FIELD_JSON, warnings, 0),
    START_FIELD("work_dir", FIELD_STR, work_dir, 0),
    START_FIELD("workflow", FIELD_STR, name, ALWAYS),
};

static const struct field workflow_completed_fields[] = {
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),
    MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, 0),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    MOMENT_FIELD("duration_ms", FIELD_MS, duration_ms, ALWAYS),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0),
};

static const struct field workflow_failed_fields[] = {
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),
    MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, 0),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    MOMENT_FIELD("duration_ms", FIELD_MS, duration_ms, ALWAYS),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    OBJECT_FIELD("error", error_table, ALWAYS),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0),
    MOMENT_FIELD("failed_node", FIELD_STR, reason, 0),
};

static const struct field workflow_cancelled_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),
    MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, 0),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    OBJECT_FIELD("counts", counts_table, ALWAYS),
    MOMENT_FIELD("duration_ms", FIELD_MS, duration_ms, ALWAYS),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0),
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("signal_id", FIELD_STR, signal_id, 0),
    MOMENT_FIELD("signal_type", FIELD_STR, signal_type, 0),
};

static const struct field node_started_fields[] = {
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS), MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, ALWAYS),
    DERIVED_FIELD("by", FIELD_STR, by, 0),         MOMENT_FIELD("child_run_id", FIELD_STR, run_ref, 0),
    MOMENT_FIELD("due_at", FIELD_TIME, due_ms, 0), MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, ALWAYS),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0), MOMENT_FIELD("node_id", FIELD_STR, step, ALWAYS | REQUIRED),
};

static const struct field node_completed_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("artifacts", FIELD_JSON, artifacts, 0),
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),
    MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, ALWAYS),
    MOMENT_FIELD("attempts", FIELD_U32, logical, ALWAYS | DERIVED),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    MOMENT_FIELD("duration_ms", FIELD_MS, duration_ms, ALWAYS),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, ALWAYS),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0),
    MOMENT_FIELD("node_id", FIELD_STR, step, ALWAYS | REQUIRED),
    MOMENT_FIELD("output", FIELD_JSON, value, 0),
    BLOB_FIELD("output_ref", output_ref_table),
    MOMENT_FIELD("reused_from", FIELD_STR, run_ref, 0),
    MOMENT_FIELD("truncated", FIELD_BOOL, truncated, 0),
};

static const struct field node_failed_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),
    MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, ALWAYS),
    MOMENT_FIELD("attempts", FIELD_U32, logical, ALWAYS | DERIVED),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    MOMENT_FIELD("duration_ms", FIELD_MS, duration_ms, ALWAYS),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, ALWAYS),
    OBJECT_FIELD("error", error_table, ALWAYS),
    SEAL_FIELD("event_id", FIELD_ID, event_id, 0),
    MOMENT_FIELD("node_id", FIELD_STR, step, ALWAYS | REQUIRED),
};

// `detail` is the condition (expr) or the states of the parents (detail); the other one is absent.
#define NODE_SKIPPED_FIELDS(detail_first, expr_then)                                                                   \
    MOMENT_FIELD("actor", FIELD_STR, actor, 0), MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS),                         \
        MOMENT_FIELD("attempt", FIELD_ATTEMPT, logical, ALWAYS), DERIVED_FIELD("by", FIELD_STR, by, 0),                \
        detail_first MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, ALWAYS),                                    \
        SEAL_FIELD("event_id", FIELD_ID, event_id, 0),                                                                 \
        expr_then MOMENT_FIELD("node_id", FIELD_STR, step, ALWAYS | REQUIRED),                                         \
        DERIVED_FIELD("reason", FIELD_STR, reason, ALWAYS), MOMENT_FIELD("signal_id", FIELD_STR, signal_id, 0),
#define COMMA ,

static const struct field node_skipped_fields[] = {
    NODE_SKIPPED_FIELDS(MOMENT_FIELD("detail", FIELD_STR, detail, 0) COMMA, )};
static const struct field node_skipped_by_condition_fields[] = {
    NODE_SKIPPED_FIELDS(, MOMENT_FIELD("expr", FIELD_STR, detail, 0) COMMA)};

static const struct table record_table = TABLE(record_fields);
static const struct table skipped_by_condition = TABLE(node_skipped_by_condition_fields);

static const struct table payloads[MOMENT_COUNT] = {
    [MOMENT_RUN_STARTED] = TABLE(workflow_started_fields),
    [MOMENT_STEP_STARTED] = TABLE(node_started_fields),
    [MOMENT_STEP_REDISPATCHED] = TABLE(node_started_fields),
    [MOMENT_STEP_COMPLETED] = TABLE(node_completed_fields),
    [MOMENT_STEP_FAILED] = TABLE(node_failed_fields),
    [MOMENT_STEP_SKIPPED] = TABLE(node_skipped_fields),
    [MOMENT_RUN_CANCELLED] = TABLE(workflow_cancelled_fields),
    [MOMENT_RUN_COMPLETED] = TABLE(workflow_completed_fields),
    [MOMENT_RUN_FAILED] = TABLE(workflow_failed_fields),
};

struct skip_reason {
    const char *code, *word;
    bool condition;
};

static const struct skip_reason skip_reasons[] = {
    {SKIP_TRIGGER_RULE, "trigger_rule", false},
    {SKIP_CONDITION_FALSE, "when_condition", true},
    {SKIP_CONDITION_BROKEN, "when_condition_parse_error", true},
    {SKIP_DEPENDENCY_FAILED, "dependency_failed", false},
    {SKIP_OPERATOR, "operator_skip", false},
};

static const struct skip_reason *reason_by_code(struct str code)
{
    for (size_t i = 0; i < ARRAY_COUNT(skip_reasons); i++) {
        if (str_is(code, skip_reasons[i].code)) return &skip_reasons[i];
    }
    return NULL;
}

static const struct skip_reason *reason_by_word(struct str word)
{
    for (size_t i = 0; i < ARRAY_COUNT(skip_reasons); i++) {
        if (str_is(word, skip_reasons[i].word)) return &skip_reasons[i];
    }
    return NULL;
}

static enum code build(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                       const struct digest *key, struct arena *arena, struct json *out, struct error *err)
{
    const struct table *payload = &payloads[moment->kind];
    INVARIANT(payload->count);
    if (moment->kind == MOMENT_RUN_STARTED && !moment->start)
        return error_set(err, E_INVALID, "a start of a run without its facts");
    struct derived derived = {.type = str_from(moment_word(moment->kind, VOCABULARY_NODES)), .key = *key};
    if (moment->by && moment->by != moment_emitter(moment->kind)) derived.by = str_from(emitter_name(moment->by));
    if (moment->kind == MOMENT_STEP_SKIPPED) {
        const struct skip_reason *reason = reason_by_code(moment->reason);
        derived.reason = reason ? str_from(reason->word) : moment->reason;
        if (reason && reason->condition) payload = &skipped_by_condition;
    }
    const struct facts_in facts = {.base = {[SOURCE_MOMENT] = moment,
                                            [SOURCE_START] = moment->start,
                                            [SOURCE_IDS] = ids,
                                            [SOURCE_SEAL] = seal,
                                            [SOURCE_DERIVED] = &derived}};
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

static const struct table *payload_table(enum moment_kind kind, const struct json *payload)
{
    if (kind == MOMENT_STEP_SKIPPED && json_get(payload, STR("expr"))) return &skipped_by_condition;
    return &payloads[kind];
}

static enum code read(const struct json *record, struct arena *arena, struct moment *out, struct seal *seal,
                      struct run_ids *ids, struct error *err)
{
    struct derived derived = {0};
    struct facts_out facts = {
        .base = {[SOURCE_MOMENT] = out, [SOURCE_IDS] = ids, [SOURCE_SEAL] = seal, [SOURCE_DERIVED] = &derived}};
    enum code rc = fields_decode(&record_table, record, &facts, err);
    if (rc) return rc;
    if (derived.payload.type != JSON_OBJECT) return error_set(err, E_CORRUPT, "record: payload is not an object");
    out->kind = kind_of(derived.type, &derived.payload);
    if (out->kind == MOMENT_UNKNOWN) {
        out->at_ms = seal->persisted_ms;
        return OK;
    }
    if (out->kind == MOMENT_RUN_STARTED) {
        struct start_facts *start = ARENA_NEW(arena, struct start_facts);
        if (!start) return error_set(err, E_NOMEM, "out of memory for a record");
        facts.base[SOURCE_START] = start;
        out->start = start;
    }
    out->at_ms = seal->persisted_ms; // until the payload says otherwise
    rc = fields_decode(payload_table(out->kind, &derived.payload), &derived.payload, &facts, err);
    if (rc) return rc;
    const struct skip_reason *reason = reason_by_word(derived.reason);
    if (out->kind == MOMENT_STEP_SKIPPED) out->reason = reason ? str_from(reason->code) : derived.reason;
    out->by = emitter_parse(derived.by);
    if (!out->by) out->by = moment_emitter(out->kind);
    return OK;
}

static void verify(void)
{
    table_verify(&record_table);
    table_verify(&skipped_by_condition);
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        table_verify(&payloads[kind]);
        INVARIANT((moment_word((enum moment_kind)kind, VOCABULARY_NODES) != NULL) == (payloads[kind].count > 0));
    }
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
