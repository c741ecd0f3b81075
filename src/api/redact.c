// What principals see that may know how a run went but not what it was about (the matrix: "redacted"). Every member of an answer has a
// class; one that is not in the table holds what people or programs wrote, or may one day, and is hidden.
#include "api/inside.h"

#include <stdlib.h>
#include <string.h>

enum class {
    OPEN = 1, // ids, states, codes, times, counts, words of documents: shown; what is inside has classes of its own
    CODE,     // shown when it is one of Cairn's own (code_is_ours)
    BOX,      // the object is shown, by the classes of its members; a text of that name is hidden
};

static const struct member {
    const char *name;
    enum class class;
} members[] = { // sorted by their bytes
    {"acknowledgedAt", OPEN}, {"acknowledgedBy", OPEN}, {"action", OPEN}, {"actor", OPEN}, {"actorId", OPEN},
    {"actorRole", OPEN}, {"admission", OPEN}, {"afterSeq", OPEN}, {"alive", OPEN}, {"allow", OPEN}, {"allowed", OPEN},
    {"alwaysRun", OPEN}, {"answer", OPEN}, {"approved", OPEN}, {"arcs", OPEN}, {"at", OPEN}, {"atoms", OPEN},
    {"attempt", OPEN}, {"attempts", OPEN}, {"audit", OPEN}, {"backoff", OPEN}, {"begun", OPEN}, {"brief", OPEN},
    {"broken", OPEN}, {"by", OPEN}, {"catchup", OPEN}, {"category", OPEN}, {"cause", BOX}, {"checked", OPEN},
    {"childRun", OPEN}, {"childRunId", OPEN}, {"class", OPEN}, {"closedAt", OPEN}, {"code", CODE}, {"completed", OPEN},
    {"completedAt", OPEN}, {"completedSteps", OPEN}, {"context", BOX}, {"count", OPEN}, {"counts", OPEN},
    {"createdAt", OPEN}, {"createdBy", OPEN}, {"cron", OPEN}, {"cycle", OPEN}, {"deadline", OPEN}, {"decided", OPEN},
    {"decidedAt", OPEN}, {"decidedUntil", OPEN}, {"decision", OPEN}, {"decisionId", OPEN}, {"decisions", OPEN},
    {"delayMs", OPEN}, {"delivered", OPEN}, {"dependencies", OPEN}, {"dependsOn", OPEN}, {"do", OPEN},
    {"documentKind", OPEN}, {"documentSha256", OPEN}, {"document_kind", OPEN}, {"document_sha256", OPEN}, {"done", OPEN},
    {"drainDeadline", OPEN}, {"dryRun", OPEN}, {"durationMs", OPEN}, {"duration_ms", OPEN}, {"emittedAt", OPEN},
    {"emittedBy", OPEN}, {"endAfterSeq", OPEN}, {"endSeq", OPEN}, {"endedAt", OPEN}, {"endsAtOnce", OPEN},
    {"engineAttemptId", OPEN}, {"engineProcessedAt", OPEN}, {"engineResult", OPEN}, {"engineRunRef", OPEN},
    {"engineType", OPEN}, {"engine_attempt", OPEN}, {"entity_id", OPEN}, {"entity_type", OPEN},
    {"environmentId", OPEN}, {"environment_id", OPEN}, {"epoch", OPEN}, {"error", BOX}, {"errorCode", CODE},
    {"event", OPEN}, {"eventId", OPEN}, {"eventType", OPEN}, {"event_alias", OPEN}, {"event_id", OPEN},
    {"event_type", OPEN}, {"every", OPEN}, {"evidence", OPEN}, {"exception_type", CODE}, {"execution_id", OPEN},
    {"exitCode", OPEN}, {"exit_code", OPEN}, {"expr", OPEN}, {"failed", OPEN}, {"failedStep", OPEN},
    {"failedStepId", OPEN}, {"failedSteps", OPEN}, {"failed_node", OPEN}, {"failed_step", OPEN}, {"firstAt", OPEN},
    {"fold", OPEN}, {"forkedFrom", OPEN}, {"from", OPEN}, {"gap", OPEN}, {"gate", BOX}, {"givenBy", OPEN},
    {"hash", OPEN}, {"head", OPEN}, {"headHash", OPEN}, {"headline", OPEN}, {"held", OPEN}, {"holders", OPEN},
    {"holds", OPEN}, {"id", OPEN}, {"idempotencyKey", OPEN}, {"inFlight", OPEN}, {"inRange", OPEN},
    {"inconsistent", OPEN}, {"intact", OPEN}, {"items", OPEN}, {"iteration", OPEN}, {"iteration_id", OPEN},
    {"jitter", OPEN}, {"jitterPercent", OPEN}, {"joined", OPEN}, {"kind", OPEN}, {"label", OPEN}, {"lastAt", OPEN},
    {"lastEventSeq", OPEN}, {"lastLedgerSeq", OPEN}, {"lastSeq", OPEN}, {"lastTick", OPEN}, {"ledgerHead", OPEN},
    {"ledgerSeq", OPEN}, {"limit", OPEN}, {"limitedBy", OPEN}, {"local", OPEN}, {"logicalAttemptId", OPEN},
    {"loop", OPEN}, {"mark", OPEN}, {"matched", OPEN}, {"matched_rule_index", OPEN}, {"maxAttempts", OPEN},
    {"maxDelayMs", OPEN}, {"maxIterations", OPEN}, {"merged", OPEN}, {"meta", BOX}, {"mode", OPEN}, {"name", OPEN},
    {"needs", OPEN}, {"next", OPEN}, {"nextCursor", OPEN}, {"node_id", OPEN}, {"nonRetryable", OPEN},
    {"notBefore", OPEN}, {"offset", OPEN}, {"on", OPEN}, {"onFailure", OPEN}, {"onStepFailure", OPEN},
    {"onTimeout", OPEN}, {"open", OPEN}, {"operator", OPEN}, {"order", OPEN}, {"originalRunId", OPEN},
    {"others", OPEN}, {"outcome", BOX}, {"outlook", OPEN}, {"overlap", OPEN}, {"owned", OPEN}, {"owner", OPEN},
    {"ownerPid", OPEN}, {"parallel", OPEN}, {"parentRunId", OPEN}, {"parentStepId", OPEN}, {"parent_id", OPEN},
    {"parts", OPEN}, {"passes", OPEN}, {"pause", OPEN}, {"paused", OPEN}, {"pausedBy", OPEN}, {"payload", BOX},
    {"persistedAt", OPEN}, {"pid", OPEN}, {"place", OPEN}, {"plan", OPEN}, {"planId", OPEN}, {"planRef", OPEN},
    {"planVersion", OPEN}, {"plan_id", OPEN}, {"plan_sha256", OPEN}, {"plan_version", OPEN}, {"policy", OPEN}, {"policyDecisionId", OPEN},
    {"pool", OPEN}, {"position", OPEN}, {"prevHash", OPEN}, {"prevSeq", OPEN}, {"prev_hash", OPEN}, {"priority", OPEN},
    {"progress", OPEN}, {"projectId", OPEN}, {"project_id", OPEN}, {"queue", OPEN}, {"queued", OPEN},
    {"queuedAt", OPEN}, {"reasonCode", OPEN}, {"redispatchSeq", OPEN}, {"redispatched", OPEN}, {"redrive", OPEN},
    {"reference", OPEN}, {"reproduced", OPEN}, {"retries", OPEN}, {"retry", OPEN}, {"retryable", OPEN},
    {"retrying", OPEN}, {"reusedFrom", OPEN}, {"right", OPEN}, {"role", OPEN}, {"rootCause", BOX}, {"routes", OPEN},
    {"row", OPEN}, {"rule", OPEN}, {"run", OPEN}, {"runId", OPEN}, {"runSeq", OPEN}, {"runStatus", OPEN},
    {"run_id", OPEN}, {"running", OPEN}, {"runningSteps", OPEN}, {"runs", OPEN}, {"schedule", OPEN},
    {"schemaVersion", OPEN}, {"schema_version", OPEN}, {"segment", OPEN}, {"selected", OPEN}, {"seq", OPEN},
    {"sequence", OPEN}, {"sha256", OPEN}, {"signalDecisionId", OPEN}, {"signalId", OPEN}, {"signalPayload", BOX},
    {"signalType", OPEN}, {"signals", OPEN}, {"since", OPEN}, {"sink", OPEN}, {"skipReason", OPEN}, {"skipped", OPEN},
    {"skippedSteps", OPEN}, {"slots", OPEN}, {"source", OPEN}, {"sourceIp", OPEN}, {"sourceStatus", OPEN},
    {"stale", OPEN}, {"started", OPEN}, {"startedAt", OPEN}, {"startedBy", OPEN}, {"state", OPEN}, {"status", OPEN},
    {"step", OPEN}, {"stepId", OPEN}, {"step_run_id", OPEN}, {"steps", OPEN}, {"stepsLeftOut", OPEN},
    {"streamSeq", OPEN}, {"subject", OPEN}, {"substatus", OPEN}, {"success", OPEN}, {"tags", OPEN}, {"taken", OPEN},
    {"task", OPEN}, {"task_run_id", OPEN}, {"tasks", OPEN}, {"tenantId", OPEN}, {"tenant_id", OPEN},
    {"terminal", OPEN}, {"time", OPEN}, {"timeoutMs", OPEN}, {"times", OPEN}, {"timestamp", OPEN}, {"to", OPEN},
    {"total", OPEN}, {"totalDurationMs", OPEN}, {"totalSteps", OPEN}, {"triggerRule", OPEN}, {"triggerSource", OPEN},
    {"trigger_source", OPEN}, {"triggeredBy", OPEN}, {"triggered_by", OPEN}, {"truncated", OPEN}, {"type", OPEN},
    {"until", OPEN}, {"updatedAt", OPEN}, {"updatedBy", OPEN}, {"uri", OPEN}, {"used", OPEN}, {"verdictParts", OPEN},
    {"verified", OPEN}, {"visit", OPEN}, {"visits", OPEN}, {"vocabulary", OPEN}, {"waiting", OPEN}, {"when", OPEN},
    {"willRetry", OPEN}, {"worker", OPEN}, {"workers", OPEN}, {"workflow", OPEN}, {"workflow_run_id", OPEN},
    {"zone", OPEN},
};

// Names that mean something else elsewhere: the word of a policy is none of a step.
static const struct {
    const char *in, *name;
} exceptions[] = {
    {"", "reason"},      {"dependencies", "reason"}, {"steps", "reason"}, // codes; elsewhere what a person or a document said
    {"headline", "text"}, {"verdictParts", "text"},
    {"atoms", "result"}, {"atoms", "text"},    {"attempts", "result"}, {"loop", "verdict"},
    {"retry", "left"},   {"retry", "verdict"}, {"when", "result"},     {"when", "text"},
};

static int by_name(const void *key, const void *member)
{
    return str_cmp(*(const struct str *)key, str_from(((const struct member *)member)->name));
}

static bool is_shown(struct str in, const struct json_member *member)
{
    const struct member *found = bsearch(&member->key, members, ARRAY_COUNT(members), sizeof(members[0]), by_name);
    bool container = member->value.type == JSON_OBJECT || member->value.type == JSON_ARRAY;
    if (found && found->class == CODE && member->value.type == JSON_STRING) return code_is_ours(member->value.text);
    if (found) return found->class == OPEN || container;
    for (size_t i = 0; !container && i < ARRAY_COUNT(exceptions); i++)
        if (str_is(in, exceptions[i].in) && str_is(member->key, exceptions[i].name)) return true;
    return false;
}

static void redact_in(struct str in, struct json *value)
{
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++) {
        struct json_member *member = &value->members[i];
        if (is_shown(in, member))
            redact_in(member->key, &member->value);
        else if (member->value.type != JSON_NULL)
            member->value = json_string(STR("(redacted)"));
    }
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++) redact_in(in, &value->items[i]);
}

void redact(struct json *value)
{
#ifdef CAIRN_VERIFY
    for (size_t i = 1; i < ARRAY_COUNT(members); i++) INVARIANT(strcmp(members[i - 1].name, members[i].name) < 0);
#endif
    redact_in((struct str){0}, value);
}

enum code redact_event(struct str *text, struct arena *arena, struct error *err)
{
    struct json event;
    struct buf out = buf_of(RECORD_SIZE_MAX * 2);
    enum code rc = json_parse(*text, NULL, arena, &event, err);
    if (rc) return rc;
    redact(&event);
    json_write(&out, &event);
    struct str copy = buf_keep(&out, arena);
    *text = copy;
    return copy.ptr ? OK : error_nomem(err);
}
