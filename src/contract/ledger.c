// The neutral form: one table for all kinds, every fact that is not zero. What a vocabulary cannot say is kept like this.
#include "contract/internal.h"

static const struct table blob_table = TABLE_OF({
    MOMENT_FIELD("sha256", FIELD_DIGEST, blob, ALWAYS | REQUIRED),
    MOMENT_FIELD("size", FIELD_U64, blob_size, ALWAYS),
});

static const struct table told_counts = TABLE_OF({
    MOMENT_FIELD("completed", FIELD_U32, counts.completed, 0),
    MOMENT_FIELD("failed", FIELD_U32, counts.failed, 0),
    MOMENT_FIELD("skipped", FIELD_U32, counts.skipped, 0),
    MOMENT_FIELD("total", FIELD_U32, counts.total, 0),
});

static const struct table fault_table = TABLE_OF({
    MOMENT_FIELD("category", FIELD_STR, fault.category, 0), MOMENT_FIELD("code", FIELD_STR, fault.code, 0),
    MOMENT_FIELD("detail", FIELD_STR, fault.detail, 0),     EXIT_FIELD("exitCode"),
    MOMENT_FIELD("message", FIELD_STR, fault.message, 0),   MOMENT_FIELD("retryable", FIELD_BOOL, fault.retryable, 0),
});

static const struct table forked_from_table = TABLE_OF({
    START_FIELD("runId", FIELD_STR, forked_run, ALWAYS | REQUIRED),
    START_FIELD("seq", FIELD_U64, forked_seq, ALWAYS | REQUIRED),
});

static const struct table start_table = TABLE_OF_WITH(&start_in_camel, {
    START_FIELD("documentKind", FIELD_STR, document_kind, 0),
    START_FIELD("documentSha256", FIELD_STR, document_sha256, 0),
    START_FIELD("engineType", FIELD_STR, engine_type, 0),
    FORK_FIELD("forkedFrom", forked_from_table),
    START_FIELD("inputs", FIELD_JSON, inputs, 0),
    START_FIELD("planSha256", FIELD_STR, plan_sha256, 0),
    START_FIELD("planUri", FIELD_STR, plan_uri, 0),
    START_FIELD("refusal", FIELD_JSON, refusal, 0),
    START_FIELD("schemaVersion", FIELD_STR, schema_version, 0),
    START_FIELD("triggerSource", FIELD_STR, trigger_source, 0),
    START_FIELD("triggeredBy", FIELD_STR, triggered_by, 0),
});

static const struct table entry_table = TABLE_OF({
    MOMENT_FIELD("actor", FIELD_STR, actor, 0),
    MOMENT_FIELD("artifacts", FIELD_JSON, artifacts, 0),
    MOMENT_FIELD("at", FIELD_TIME, at_ms, ALWAYS | REQUIRED),
    BLOB_FIELD("blob", blob_table),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    OBJECT_FIELD("counts", told_counts, 0),
    MOMENT_FIELD("decisionId", FIELD_STR, decision_id, 0),
    MOMENT_FIELD("detail", FIELD_STR, detail, 0),
    MOMENT_FIELD("dueAt", FIELD_TIME, due_ms, 0),
    MOMENT_FIELD("durationMs", FIELD_MS, duration_ms, 0),
    MOMENT_FIELD("engine", FIELD_U32, engine, 0),
    MOMENT_FIELD("extracted", FIELD_JSON, extracted, 0),
    OBJECT_FIELD("fault", fault_table, 0),
    MOMENT_FIELD("iteration", FIELD_U32, iteration, 0),
    MOMENT_FIELD("logical", FIELD_U32, logical, 0),
    DERIVED_FIELD("moment", FIELD_STR, type, ALWAYS | REQUIRED),
    MOMENT_FIELD("preview", FIELD_JSON, preview, 0),
    MOMENT_FIELD("reason", FIELD_STR, reason, 0),
    MOMENT_FIELD("role", FIELD_STR, role, 0),
    MOMENT_FIELD("runRef", FIELD_STR, run_ref, 0),
    MOMENT_FIELD("signalId", FIELD_STR, signal_id, 0),
    MOMENT_FIELD("signalStep", FIELD_STR, signal_step, 0),
    MOMENT_FIELD("signalType", FIELD_STR, signal_type, 0),
    {.name = {"start", 5}, .type = FIELD_OBJECT, .source = SOURCE_START, .flags = ALWAYS, .table = &start_table},
    MOMENT_FIELD("step", FIELD_STR, step, 0),
    MOMENT_FIELD("task", FIELD_STR, task, 0),
    MOMENT_FIELD("taskRun", FIELD_U32, task_run, 0),
    MOMENT_FIELD("truncated", FIELD_BOOL, truncated, 0),
    MOMENT_FIELD("value", FIELD_JSON, value, 0),
    MOMENT_FIELD("visit", FIELD_U32, visit, 0),
});

enum code contract_encode_ledger(const struct moment *moment, struct arena *arena, struct str *out, struct error *err)
{
    INVARIANT(moment->kind > MOMENT_UNKNOWN && moment->kind < MOMENT_COUNT);
    struct derived derived = {.type = str_from(moment_name(moment->kind))};
    if (moment->by) derived.by = str_from(emitter_name(moment->by));
    bool doubt = false; // an entry has no schema
    const struct facts_in facts = facts_of(NULL, moment, NULL, &derived, &doubt);
    struct json entry;
    enum code rc = fields_encode(&entry_table, &facts, arena, &entry, err);
    if (rc) return rc;
    return record_write(&entry, arena, out, err);
}

enum code contract_decode_ledger(struct str bytes, struct arena *arena, struct moment *out, struct error *err)
{
    *out = (struct moment){0};
    struct json entry;
    enum code rc = record_parse(bytes, arena, &entry, err);
    if (rc) return rc;
    struct derived derived = {0};
    struct facts_out facts = facts_into(NULL, out, NULL, &derived);
    if (json_get(&entry, STR("start"))) rc = facts_start(&facts, arena, out, err);
    if (!rc) rc = fields_decode(&entry_table, &entry, &facts, err);
    if (rc) return rc;
    out->kind = moment_parse(derived.type);
    out->by = emitter_parse(derived.by);
    bool starts = out->kind == MOMENT_RUN_QUEUED || out->kind == MOMENT_RUN_REQUESTED;
    if (starts && !out->start)
        return error_set(err, E_CORRUPT, "ledger entry: %s has no start", moment_name(out->kind));
    return OK;
}

void ledger_verify(void)
{
    table_verify(&entry_table);
}
