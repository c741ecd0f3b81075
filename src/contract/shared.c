// What the vocabularies say alike, and what reading and writing a record takes in each of them.
#include "contract/internal.h"

const struct table start_in_camel = TABLE_OF({
    START_CHOICE("admission", admission, 0, "QUEUE DELAY"),
    START_FIELD("arguments", FIELD_STR, arguments, 0),
    START_FIELD("artifactsDir", FIELD_STR, artifacts_dir, 0),
    START_FIELD("cancelOnPause", FIELD_BOOL, cancel_on_pause, 0),
    START_FIELD("degraded", FIELD_BOOL, degraded, 0),
    START_FIELD("documentFile", FIELD_STR, document_file, 0),
    START_FIELD("drainTimeoutMs", FIELD_SPAN, drain_timeout_ms, 0),
    START_FIELD("enginePlace", FIELD_STR, engine_place, 0),
    START_FIELD("name", FIELD_STR, name, 0),
    START_FIELD("notBefore", FIELD_TIME, not_before_ms, 0),
    START_FIELD("originalRunId", FIELD_RUN, original_run, 0),
    START_FIELD("parentRunId", FIELD_RUN, parent_run, 0),
    START_FIELD("parentStepId", FIELD_STEP, parent_step, 0),
    START_FIELD("parts", FIELD_SHAPED, parts, 0),
    START_CHOICE("profile", profile, 0, "temporal conductor mock"),
    START_FIELD("queue", FIELD_NAME, queue, 0),
    START_FIELD("requiresApproval", FIELD_BOOL, requires_approval, 0),
    START_FIELD("reuse", FIELD_SHAPED, reuse, 0),
    START_FIELD("validationReport", FIELD_STR, report, 0),
    START_FIELD("warnings", FIELD_SHAPED, warnings, 0),
    START_FIELD("workDir", FIELD_STR, work_dir, 0),
});

// Records without an envelope of their own say here whose run it is.
const struct table start_in_snake = TABLE_OF({
    START_CHOICE("admission", admission, 0, "QUEUE DELAY"),
    START_FIELD("arguments", FIELD_STR, arguments, 0),
    START_FIELD("artifacts_dir", FIELD_STR, artifacts_dir, 0),
    DERIVED_FIELD("by", FIELD_STR, by, 0),
    START_FIELD("cancel_on_pause", FIELD_BOOL, cancel_on_pause, 0),
    START_FIELD("degraded", FIELD_BOOL, degraded, 0),
    START_FIELD("document_file", FIELD_STR, document_file, 0),
    START_CHOICE("document_kind", document_kind, ALWAYS, "plan nodes playbook"),
    START_FIELD("document_sha256", FIELD_HEX, document_sha256, ALWAYS),
    START_FIELD("drain_timeout_ms", FIELD_SPAN, drain_timeout_ms, 0),
    MOMENT_FIELD("engine_attempt", FIELD_ATTEMPT, engine, 0),
    START_FIELD("engine_place", FIELD_STR, engine_place, 0),
    IDS_FIELD("environment_id", environment, ALWAYS),
    START_FIELD("not_before", FIELD_TIME, not_before_ms, 0),
    START_FIELD("parts", FIELD_SHAPED, parts, 0),
    IDS_FIELD("plan_id", plan_id, ALWAYS),
    START_FIELD("plan_sha256", FIELD_HEX, plan_sha256, 0),
    START_FIELD("plan_uri", FIELD_STR, plan_uri, 0),
    IDS_FIELD("plan_version", plan_version, ALWAYS),
    START_CHOICE("profile", profile, 0, "temporal conductor mock"),
    IDS_FIELD("project_id", project, ALWAYS),
    START_FIELD("queue", FIELD_NAME, queue, 0),
    START_FIELD("requires_approval", FIELD_BOOL, requires_approval, 0),
    START_FIELD("schema_version", FIELD_STR, schema_version, 0),
    IDS_FIELD("tenant_id", tenant, ALWAYS),
    START_CHOICE("trigger_source", trigger_source, 0, TRIGGER_WORDS),
    START_FIELD("triggered_by", FIELD_STR, triggered_by, 0),
    START_FIELD("validation_report", FIELD_STR, report, 0),
    START_FIELD("warnings", FIELD_SHAPED, warnings, 0),
    START_FIELD("work_dir", FIELD_STR, work_dir, 0),
});

const struct table counts_table = TABLE_OF({
    MOMENT_FIELD("completed", FIELD_U32, counts.completed, ALWAYS),
    MOMENT_FIELD("failed", FIELD_U32, counts.failed, ALWAYS),
    MOMENT_FIELD("skipped", FIELD_U32, counts.skipped, ALWAYS),
    MOMENT_FIELD("total", FIELD_U32, counts.total, ALWAYS),
});

struct facts_in facts_of(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                         const struct derived *derived, bool *doubt)
{
    return (struct facts_in){.doubt = doubt, .base = {[SOURCE_MOMENT] = moment,
                                      [SOURCE_START] = moment->start,
                                      [SOURCE_IDS] = ids,
                                      [SOURCE_SEAL] = seal,
                                      [SOURCE_DERIVED] = derived}};
}

struct facts_out facts_into(struct run_ids *ids, struct moment *moment, struct seal *seal, struct derived *derived)
{
    return (struct facts_out){
        .base = {[SOURCE_MOMENT] = moment, [SOURCE_IDS] = ids, [SOURCE_SEAL] = seal, [SOURCE_DERIVED] = derived}};
}

enum code facts_start(struct facts_out *facts, struct arena *arena, struct moment *moment, struct error *err)
{
    struct start_facts *start = ARENA_NEW(arena, struct start_facts);
    if (!start) return error_nomem(err);
    facts->base[SOURCE_START] = start;
    moment->start = start;
    return OK;
}

enum code start_missing(struct error *err)
{
    return error_set(err, E_INVALID, "a start of a run without its facts");
}

enum emitter emitter_told(struct str by, enum moment_kind kind)
{
    enum emitter told = emitter_parse(by);
    return told ? told : moment_emitter(kind);
}

void payloads_verify(enum vocabulary vocabulary, const struct table payloads[MOMENT_COUNT])
{
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        table_verify(&payloads[kind]);
        INVARIANT((moment_word((enum moment_kind)kind, vocabulary) != NULL) == (payloads[kind].count > 0));
    }
}
