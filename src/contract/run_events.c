// VOCABULARY_RUN: RunEventRecord (C-26), Run Events 1.1. The envelope is the same for all types; what is particular to one
// is in `payload`.
#include "contract/internal.h"
#include "contract/profile.h"

static const struct table envelope = TABLE_OF({
    MOMENT_FIELD("emittedAt", FIELD_TIME, at_ms, ALWAYS),
    DERIVED_FIELD("emittedBy", FIELD_STR, by, 0),
    MOMENT_FIELD("engineAttemptId", FIELD_ATTEMPT, engine, ALWAYS | REQUIRED),
    IDS_FIELD("environmentId", environment, ALWAYS),
    SEAL_FIELD("eventId", FIELD_ID, event_id, ALWAYS),
    DERIVED_FIELD("eventType", FIELD_STR, type, ALWAYS | REQUIRED),
    DERIVED_FIELD("idempotencyKey", FIELD_DIGEST, key, DERIVED),
    MOMENT_FIELD("logicalAttemptId", FIELD_ATTEMPT, logical, ALWAYS | REQUIRED),
    DERIVED_FIELD("payload", FIELD_JSON, payload, ALWAYS),
    SEAL_FIELD("persistedAt", FIELD_TIME, persisted_ms, ALWAYS),
    IDS_FIELD("planId", plan_id, ALWAYS),
    IDS_FIELD("planVersion", plan_version, ALWAYS),
    SEAL_FIELD("prevHash", FIELD_DIGEST, previous, 0),
    IDS_FIELD("projectId", project, ALWAYS),
    RUN_FIELD("runId"),
    SEAL_FIELD("runSeq", FIELD_SEQ, seq, ALWAYS | REQUIRED),
    MOMENT_FIELD("stepId", FIELD_STEP, step, 0),
    IDS_FIELD("tenantId", tenant, ALWAYS),
});

static const struct table context_table = TABLE_OF({
    IDS_FIELD("environmentId", environment, ALWAYS | DERIVED),
    IDS_FIELD("projectId", project, ALWAYS | DERIVED),
    IDS_FIELD("tenantId", tenant, ALWAYS | DERIVED),
    START_CHOICE("triggerSource", trigger_source, 0, TRIGGER_WORDS),
    START_FIELD("triggeredBy", FIELD_STR, triggered_by, 0),
});

static const struct table plan_ref_table = TABLE_OF({
    IDS_FIELD("planId", plan_id, ALWAYS | DERIVED),
    IDS_FIELD("planVersion", plan_version, ALWAYS | DERIVED),
    START_FIELD("schemaVersion", FIELD_STR, schema_version, ALWAYS),
    DERIVED_FIELD("sha256", FIELD_HEX, plan_sha256, ALWAYS),
    DERIVED_FIELD("uri", FIELD_SOME, plan_uri, ALWAYS),
});

static const struct table forked_from_table = TABLE_OF({
    START_FIELD("runId", FIELD_RUN, forked_run, ALWAYS | REQUIRED),
    START_FIELD("runSeq", FIELD_U64, forked_seq, ALWAYS | REQUIRED),
});

static const struct table start_table = TABLE_OF_WITH(&start_in_camel, {
    OBJECT_FIELD("context", context_table, ALWAYS),
    START_CHOICE("documentKind", document_kind, ALWAYS, "plan nodes"),
    DERIVED_FIELD("documentSha256", FIELD_HEX, document_sha256, 0),
    DERIVED_FIELD("engineType", FIELD_STR, engine_type, ALWAYS),
    FORK_FIELD("forkedFrom", forked_from_table),
    START_FIELD("inputs", FIELD_MEMBERS, inputs, ALWAYS),
    OBJECT_FIELD("planRef", plan_ref_table, ALWAYS),
});

static const struct field run_queued_fields[] = {
    START_FIELD("refusal", FIELD_SHAPED, refusal, 0),
};

static const struct field run_started_fields[] = {
    DERIVED_FIELD("engineRunRef", FIELD_SOME, engine_run_ref, ALWAYS | DERIVED),
    MOMENT_FIELD("startedAt", FIELD_TIME, at_ms, ALWAYS | DERIVED),
    WORD_FIELD("status", "RUNNING"),
};

static const struct field run_approved_fields[] = {
    MOMENT_FIELD("approvedBy", FIELD_STR, actor, 0),
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("signalId", FIELD_UUID, signal_id, 0),
};

// RunPaused and RunResumed, and why a run was cancelled.
static const struct field run_signalled_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("signalId", FIELD_UUID, signal_id, 0),
    MOMENT_CHOICE("signalType", signal_type, 0, SIGNAL_WORDS),
};

static const struct field run_ended_fields[] = {
    MOMENT_FIELD("completedSteps", FIELD_U32, counts.completed, ALWAYS),
    MOMENT_FIELD("durationMs", FIELD_SPAN, duration_ms, ALWAYS),
    MOMENT_FIELD("failedSteps", FIELD_U32, counts.failed, ALWAYS),
    MOMENT_FIELD("skippedSteps", FIELD_U32, counts.skipped, ALWAYS),
    MOMENT_FIELD("totalSteps", FIELD_U32, counts.total, ALWAYS),
};
static const struct table run_ended = TABLE(run_ended_fields);

static const struct field run_failed_fields[] = {
    MOMENT_FIELD("category", FIELD_STR, fault.category, 0),
    MOMENT_FIELD("errorCode", FIELD_STR, fault.code, ALWAYS),
    MOMENT_FIELD("errorMessage", FIELD_STR, fault.message, ALWAYS),
    EXIT_FIELD("exitCode"),
    MOMENT_FIELD("failedStepId", FIELD_STEP, reason, 0),
    MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, ALWAYS),
    MOMENT_FIELD("stack", FIELD_STR, fault.detail, 0),
};

// StepStarted and StepRedispatched.
static const struct field step_started_fields[] = {
    MOMENT_FIELD("childRunId", FIELD_RUN, run_ref, 0),
    MOMENT_FIELD("dueAt", FIELD_TIME, due_ms, 0),
};

static const struct field step_delayed_fields[] = {
    MOMENT_FIELD("notBefore", FIELD_TIME, due_ms, ALWAYS),
};

static const struct table result_ref_table = TABLE_OF({
    MOMENT_FIELD("sha256", FIELD_DIGEST, blob, ALWAYS | REQUIRED),
    MOMENT_FIELD("sizeBytes", FIELD_U64, blob_size, ALWAYS),
});

static const struct field step_completed_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("artifacts", FIELD_SHAPED, artifacts, 0),
    MOMENT_FIELD("durationMs", FIELD_SPAN, duration_ms, ALWAYS),
    MOMENT_FIELD("result", FIELD_JSON, value, 0),
    BLOB_FIELD("resultRef", result_ref_table),
    MOMENT_FIELD("reusedFrom", FIELD_RUN, run_ref, 0),
    MOMENT_FIELD("truncated", FIELD_BOOL, truncated, 0),
};

#define STEP_FAILED_FIELDS(will_retry)                                                                                 \
    MOMENT_FIELD("actor", FIELD_STR, actor, 0), MOMENT_FIELD("category", FIELD_STR, fault.category, 0),                \
        MOMENT_FIELD("durationMs", FIELD_SPAN, duration_ms, ALWAYS),                                                     \
        MOMENT_FIELD("errorCode", FIELD_STR, fault.code, ALWAYS),                                                      \
        MOMENT_FIELD("errorMessage", FIELD_STR, fault.message, ALWAYS), EXIT_FIELD("exitCode"),                        \
        MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, ALWAYS),                                                \
        MOMENT_FIELD("stack", FIELD_STR, fault.detail, 0), BOOL_FIELD("willRetry", will_retry),

static const struct field attempt_failed_fields[] = {STEP_FAILED_FIELDS(FIELD_TRUE)};
static const struct field step_failed_fields[] = {STEP_FAILED_FIELDS(FIELD_FALSE)};

static const struct field step_skipped_fields[] = {
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("detail", FIELD_STR, detail, 0),
    MOMENT_FIELD("reason", FIELD_CODE, reason, ALWAYS),
    MOMENT_FIELD("signalId", FIELD_UUID, signal_id, 0),
};

static const struct field signal_accepted_fields[] = {
    MOMENT_FIELD("actorId", FIELD_STR, actor, ALWAYS),          MOMENT_FIELD("actorRole", FIELD_STR, role, ALWAYS),
    MOMENT_FIELD("decisionId", FIELD_STR, decision_id, ALWAYS), MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("signalId", FIELD_UUID, signal_id, ALWAYS),     MOMENT_FIELD("signalPayload", FIELD_MEMBERS, value, 0),
    MOMENT_FIELD("signalType", FIELD_SOME, signal_type, ALWAYS), MOMENT_FIELD("stepId", FIELD_STEP, signal_step, 0),
};

static const struct field signal_rejected_fields[] = {
    MOMENT_FIELD("actorId", FIELD_STR, actor, ALWAYS),
    MOMENT_FIELD("actorRole", FIELD_STR, role, ALWAYS),
    MOMENT_FIELD("decisionId", FIELD_STR, decision_id, ALWAYS),
    MOMENT_FIELD("errorCode", FIELD_STR, fault.code, ALWAYS),
    MOMENT_FIELD("errorMessage", FIELD_STR, fault.message, ALWAYS),
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, 0),
    MOMENT_FIELD("signalId", FIELD_UUID, signal_id, ALWAYS),
    MOMENT_FIELD("signalType", FIELD_SOME, signal_type, ALWAYS),
    MOMENT_FIELD("stepId", FIELD_STEP, signal_step, 0),
};

static const struct table payloads[MOMENT_COUNT] = {
    [MOMENT_RUN_QUEUED] = TABLE_WITH(run_queued_fields, &start_table),
    [MOMENT_RUN_APPROVED] = TABLE(run_approved_fields),
    [MOMENT_RUN_STARTED] = TABLE_WITH(run_started_fields, &start_table),
    [MOMENT_STEP_DELAYED] = TABLE(step_delayed_fields),
    [MOMENT_STEP_STARTED] = TABLE(step_started_fields),
    [MOMENT_STEP_REDISPATCHED] = TABLE(step_started_fields),
    [MOMENT_ATTEMPT_FAILED] = TABLE(attempt_failed_fields),
    [MOMENT_STEP_COMPLETED] = TABLE(step_completed_fields),
    [MOMENT_STEP_FAILED] = TABLE(step_failed_fields),
    [MOMENT_STEP_SKIPPED] = TABLE(step_skipped_fields),
    [MOMENT_SIGNAL_ACCEPTED] = TABLE(signal_accepted_fields),
    [MOMENT_SIGNAL_REJECTED] = TABLE(signal_rejected_fields),
    [MOMENT_RUN_PAUSED] = TABLE(run_signalled_fields),
    [MOMENT_RUN_RESUMED] = TABLE(run_signalled_fields),
    [MOMENT_RUN_CANCELLED] = TABLE_WITH(run_signalled_fields, &run_ended),
    [MOMENT_RUN_COMPLETED] = TABLE(run_ended_fields),
    [MOMENT_RUN_FAILED] = TABLE_WITH(run_failed_fields, &run_ended),
};

struct str contract_run_ref(const struct run_ids *ids, const struct start_facts *start, struct arena *arena)
{
    const struct run_ref ref = run_ref_of(ids, start);
    return run_ref_format(&ref, ids->plan_id, arena);
}

static bool has_start(enum moment_kind kind)
{
    return kind == MOMENT_RUN_STARTED || kind == MOMENT_RUN_QUEUED;
}

static bool derive_start(const struct run_ids *ids, const struct start_facts *start, struct arena *arena,
                         struct derived *derived)
{
    const struct str uri[] = {STR("cairn://plans/"), start->document_sha256};
    derived->plan_uri = start->plan_uri.len ? start->plan_uri : contract_join(arena, uri, ARRAY_COUNT(uri));
    derived->plan_sha256 = start->plan_sha256.len ? start->plan_sha256 : start->document_sha256;
    if (start->plan_sha256.len) derived->document_sha256 = start->document_sha256;
    derived->engine_type = str_from(provider_name(run_ref_of(ids, start).provider));
    derived->engine_run_ref = contract_run_ref(ids, start, arena);
    return derived->plan_uri.ptr && derived->engine_run_ref.ptr;
}

static enum code build(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                       const struct digest *key, struct arena *arena, struct json *out, bool *doubt, struct error *err)
{
    const struct table *payload = &payloads[moment->kind];
    INVARIANT(payload->count);
    struct derived derived = {.type = str_from(moment_word(moment->kind, VOCABULARY_RUN)), .key = *key};
    derived.by = str_from(emitter_name(moment->by ? moment->by : moment_emitter(moment->kind)));
    if (has_start(moment->kind)) {
        if (!moment->start) return start_missing(err);
        if (!derive_start(ids, moment->start, arena, &derived)) return error_nomem(err);
    }
    const struct facts_in facts = facts_of(ids, moment, seal, &derived, doubt);
    *doubt |= moment_is_step(moment->kind) != (moment->step.len > 0); // stepId
    enum code rc = fields_encode(payload, &facts, arena, &derived.payload, err);
    if (rc) return rc;
    return fields_encode(&envelope, &facts, arena, out, err);
}

// ATTEMPT_FAILED and STEP_FAILED share a word; willRetry tells them apart.
static enum moment_kind kind_of(struct str type, const struct json *payload)
{
    enum moment_kind kind = moment_of_word(VOCABULARY_RUN, type);
    if (kind != MOMENT_ATTEMPT_FAILED) return kind;
    return json_true(json_get(payload, STR("willRetry"))) ? MOMENT_ATTEMPT_FAILED : MOMENT_STEP_FAILED;
}

// C-03: writers of Run Events 1.1 say occurredAt.
static enum code read_time(const struct json *record, const struct facts_out *facts, struct error *err)
{
    static const struct field alias_fields[] = {MOMENT_FIELD("occurredAt", FIELD_TIME, at_ms, ALWAYS | REQUIRED)};
    static const struct table alias = TABLE(alias_fields);
    if (json_get(record, STR("emittedAt"))) return OK;
    return fields_decode(&alias, record, facts, err);
}

// What a start says of its engine and of where its document came from is kept as it is only when it says more than the other facts do.
static void keep_start(const struct derived *derived, struct start_facts *start)
{
    bool whole = derived->document_sha256.len > 0; // the reference is of more than the document
    start->document_sha256 = whole ? derived->document_sha256 : derived->plan_sha256;
    if (whole) start->plan_sha256 = derived->plan_sha256;
    bool own = str_starts(derived->plan_uri, STR("cairn://plans/")) &&
               str_eq(str_slice(derived->plan_uri, sizeof("cairn://plans/") - 1, derived->plan_uri.len),
                      start->document_sha256);
    struct str profile = start->profile.len ? start->profile : STR("cairn");
    if (!own) start->plan_uri = derived->plan_uri;
    if (!str_eq(derived->engine_type, profile)) start->engine_type = derived->engine_type;
}

static enum code read(const struct json *record, struct arena *arena, struct moment *out, struct seal *seal,
                      struct run_ids *ids, struct error *err)
{
    struct derived derived = {0};
    struct facts_out facts = facts_into(ids, out, seal, &derived);
    const struct json *type = json_get(record, STR("eventType"));
    const struct json *payload = json_get(record, STR("payload"));
    out->kind = kind_of(json_text(type), payload);
    enum code rc = fields_decode(&envelope, record, &facts, err);
    if (!rc) rc = read_time(record, &facts, err);
    if (rc) return rc;
    if (payload && payload->type != JSON_OBJECT) return error_set(err, E_CORRUPT, "record: payload is not an object");
    out->by = emitter_told(derived.by, out->kind);
    if (out->kind == MOMENT_UNKNOWN) return OK;
    if (moment_is_step(out->kind) != (out->step.len > 0))
        return error_set(err, E_CORRUPT, "record: %s %s stepId", moment_word(out->kind, VOCABULARY_RUN),
                         out->step.len ? "must not have a" : "has no");
    if (has_start(out->kind)) rc = facts_start(&facts, arena, out, err);
    if (!rc) rc = fields_decode(&payloads[out->kind], payload, &facts, err);
    if (!rc && has_start(out->kind)) keep_start(&derived, facts.base[SOURCE_START]);
    return rc;
}

static void verify(void)
{
    table_verify(&envelope);
    payloads_verify(VOCABULARY_RUN, payloads);
}

const struct codec run_codec = {
    .vocabulary = VOCABULARY_RUN,
    .folder = "run-events",
    .type_key = {"eventType", 9},
    .payload_start = {",\"payload\":", 11},
    .payload_end = {",\"persistedAt\":", 15},
    .build = build,
    .read = read,
    .verify = verify,
};
