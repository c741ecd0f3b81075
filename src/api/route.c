// The table of routes, and finding one.
#include "api/inside.h"

#include <stdio.h>
#include <string.h>

static const struct route routes[] = {
    {"GET", "/livez", ROUTE_OPEN, 0, handle_live, "The process lives", "", NULL, NULL, 200},
    {"GET", "/readyz", ROUTE_OPEN, 0, handle_ready, "The store can be written and the engine turns", "verbose", NULL,
     NULL, 200},
    {"GET", "/startupz", ROUTE_OPEN, 0, handle_ready, "It has started", "", NULL, NULL, 200},
    {"GET", "/metrics", 0, 0, handle_metrics, "Prometheus metrics", "", NULL, NULL, 200},
    {"GET", "/openapi.json", 0, 0, handle_openapi, "This description", "", NULL, NULL, 200},
    {"GET", "/schemas/{name}", 0, 0, handle_schema_get, "A JSON Schema of documents, events or signals", "", NULL, NULL,
     200},
    {"GET", "/v1/whoami", 0, 0, handle_whoami, "Who the token stands for", "", NULL, "Principal", 200},
    {"GET", "/v1/capabilities", 0, 0, handle_capabilities, "What this engine can do", "", NULL, "Capabilities", 200},

    {"GET", "/v1/runs", 0, 0, handle_run_list, "Runs, newest first",
     "q status plan tag startedAfter startedBefore sort limit cursor fields count", NULL, "RunPage", 200},
    {"POST", "/v1/runs", ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN, 8u << 20, handle_run_start, "Start a run", "",
     "StartRun", "RunStatus", 202},
    {"GET", "/v1/runs/{run}", 0, 0, handle_run_get, "A run, folded up to a moment", "at fields", NULL, "RunSnapshot",
     200},
    {"GET", "/v1/runs/{run}/status", 0, 0, handle_run_status, "RunStatusSnapshot", "", NULL, "RunStatus", 200},
    {"GET", "/v1/runs/{run}/events", ROUTE_STREAM, 0, handle_run_events, "Events: a page, NDJSON or SSE by Accept",
     "after cursor limit types step as wait", NULL, "EventPage", 200},
    {"GET", "/v1/runs/{run}/why", 0, 0, handle_run_why, "Why the run is in its state", "at", NULL, "Why", 200},
    {"GET", "/v1/runs/{run}/steps", 0, 0, handle_steps_list, "Its steps", "at fields", NULL, "StepPage", 200},
    {"GET", "/v1/runs/{run}/steps/{step}", 0, 0, handle_step_get, "One step with its attempts", "at fields", NULL,
     "Step", 200},
    {"GET", "/v1/runs/{run}/steps/{step}/why", 0, 0, handle_step_why, "Why the step is in its state", "at", NULL, "Why",
     200},
    {"GET", "/v1/runs/{run}/steps/{step}/logs", ROUTE_STREAM, 0, handle_step_logs, "What the step wrote",
     "attempt engineAttempt follow", NULL, NULL, 200},
    {"GET", "/v1/runs/{run}/signals", 0, 0, handle_signal_list, "Decision records", "", NULL, "DecisionPage", 200},
    {"POST", "/v1/runs/{run}/signals", ROUTE_BODY | ROUTE_AGAIN, 64u << 10, handle_signal_post, "Send a signal", "",
     "Signal", "Decision", 202},
    {"GET", "/v1/runs/{run}/signals/{signal}", 0, 0, handle_signal_get,
     "A decision record, by signalId or policyDecisionId", "", NULL, "DecisionRecord", 200},
    {"PUT", "/v1/runs/{run}/signals/{signal}", ROUTE_BODY | ROUTE_AGAIN, 64u << 10, handle_signal_put,
     "Send a signal under an id of the client's", "", "Signal", "Decision", 202},
    {"DELETE", "/v1/runs/{run}", 0, 0, handle_run_delete, "Remove an ended run; two people must ask for it", "reason",
     NULL, NULL, 204},
    {"GET", "/v1/runs/{run}/payload", 0, 0, handle_run_payload, "What the run was given", "", NULL, "Payload", 200},
    {"GET", "/v1/runs/{run}/steps/{step}/output", 0, 0, handle_step_output, "What the step gave", "", NULL,
     "StepOutput", 200},
    {"GET", "/v1/runs/{run}/steps/{step}/attempts", 0, 0, handle_attempt_list, "Its attempts", "", NULL, "AttemptPage",
     200},
    {"GET", "/v1/runs/{run}/steps/{step}/attempts/{n}", 0, 0, handle_attempt_get, "One attempt", "", NULL, "Attempt",
     200},
    {"GET", "/v1/runs/{run}/artifacts", 0, 0, handle_artifact_list, "Files that its steps left", "", NULL,
     "ArtifactPage", 200},
    {"GET", "/v1/runs/{run}/artifacts/content", 0, 0, handle_artifact_get, "The bytes of one; Range is understood",
     "name step", NULL, NULL, 200},
    {"GET", "/v1/runs/{run}/bundle", 0, 0, handle_run_bundle, "The run as a signed file (docs/format/bundle.md)",
     "redact", NULL, NULL, 200},
    {"GET", "/v1/runs/{run}/proof", 0, 0, handle_run_proof, "Where its chains end, signed, and whether they hold", "",
     NULL, "Proof", 200},
    {"POST", "/v1/runs/{run}/forks", ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN, 8u << 20, handle_fork,
     "A new run that goes on from an event of this one", "", "ForkRun", "RunStatus", 202},
    {"POST", "/v1/runs/{run}/forks/preview", ROUTE_BODY, 8u << 20, handle_fork_preview, "What a fork would take over",
     "", "ForkRun", "ForkPreview", 200},
    {"POST", "/v1/runs/{run}/rerun", ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN, 8u << 20, handle_rerun,
     "A new run of the same document", "", "RerunRun", "RunStatus", 202},
    {"POST", "/v1/runs/{run}/rerun/preview", ROUTE_BODY, 8u << 20, handle_rerun_preview, "What a rerun would take over",
     "", "RerunRun", "ForkPreview", 200},
    {"POST", "/v1/runs/{run}/retry", ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN, 8u << 20, handle_retry,
     "A new run that does one step of an ended run again, and everything below it", "", "RetryRun", "RunStatus", 202},
    {"POST", "/v1/runs/{run}/retry/preview", ROUTE_BODY, 8u << 20, handle_retry_preview, "What a retry would take over",
     "", "RetryRun", "ForkPreview", 200},
    {"GET", "/v1/events", ROUTE_STREAM, 0, handle_events_all, "Events of all runs: a page, NDJSON or SSE by Accept",
     "after cursor limit types", NULL, "EventPage", 200},

    {"GET", "/v1/definitions", 0, 0, handle_definition_list, "Definitions", "limit cursor", NULL, "DefinitionPage",
     200},
    {"GET", "/v1/definitions/{name}/versions", 0, 0, handle_definition_list, "Versions of a definition", "limit cursor",
     NULL, "DefinitionPage", 200},
    {"GET", "/v1/definitions/{name}/versions/{sha256}", 0, 0, handle_definition_get, "A version", "", NULL,
     "Definition", 200},
    {"PUT", "/v1/definitions/{name}/versions/{sha256}", ROUTE_AGAIN, 8u << 20, handle_definition_put,
     "Keep a document under the hash of its bytes", "", NULL, "Definition", 201},
    {"GET", "/v1/definitions/{name}/versions/{sha256}/document", 0, 0, handle_definition_document, "Its bytes", "",
     NULL, NULL, 200},
    {"POST", "/v1/definitions/{name}/versions/{sha256}:approve", ROUTE_BODY, 64u << 10, handle_definition_approve,
     "Approve a version, which another person brought", "", "Nothing", "Definition", 200},
    {"GET", "/v1/store/runs", 0, 0, handle_store_list, "Heads of runs as they are stored (docs/format/store-api.md)",
     "limit before status plan prefix since until unfinished roots", NULL, "StoredRuns", 200},
    {"GET", "/v1/store/runs/{run}", 0, 0, handle_store_head, "The head of a run as it is stored", "", NULL, "StoredRun",
     200},
    {"GET", "/v1/store/runs/{run}/records", 0, 0, handle_store_records, "Events as they are stored", "after limit",
     NULL, NULL, 200},
    {"GET", "/v1/store/runs/{run}/ledger", 0, 0, handle_store_ledger, "Ledger entries as they are stored",
     "after limit", NULL, NULL, 200},
    {"GET", "/v1/store/runs/{run}/blobs/{sha256}", 0, 0, handle_store_blob,
     "A document or result that the run refers to", "", NULL, NULL, 200},
    {"GET", "/v1/store/runs/{run}/file", 0, 0, handle_store_file, "A piece of a log or an artifact of the run",
     "what name offset limit tail", NULL, NULL, 200},

    {"POST", "/v1/plans:validate", ROUTE_BODY, 8u << 20, handle_plan_validate, "Check a document", "",
     "ValidateDocument", "ValidationReport", 200},
    {"GET", "/v1/workers", 0, 0, handle_worker_list, "Workers that were heard of lately", "", NULL, "WorkerPage", 200},
    {"POST", "/v1/worker/poll", ROUTE_JSON, 0, handle_worker_poll, "Tasks for a worker (docs/format/worker.md)", "",
     "WorkerCall", "WorkerAnswer", 200},
    {"POST", "/v1/worker/heartbeat", ROUTE_JSON, 0, handle_worker_heartbeat, "A worker lives, and renews its leases",
     "", "WorkerCall", "WorkerAnswer", 200},
    {"POST", "/v1/worker/logs", ROUTE_JSON, 4u << 20, handle_worker_logs, "What steps wrote", "", "WorkerCall",
     "WorkerAnswer", 200},
    {"POST", "/v1/worker/complete", ROUTE_JSON, 64u << 20, handle_worker_complete, "Results of tasks", "", "WorkerCall",
     "WorkerAnswer", 200},
    {"POST", "/v1/worker/fail", ROUTE_JSON, 4u << 20, handle_worker_fail, "Failures of tasks", "", "WorkerCall",
     "WorkerAnswer", 200},
    {"POST", "/v1/executions/{run}/events", ROUTE_JSON, 64u << 20, handle_execution_events,
     "Events of a playbook's run that a worker reports (docs/format/noetl-events.md)", "", "WorkerCall", "WorkerAnswer",
     200},
    {"GET", "/v1/worker/results/{token}", 0, 0, handle_worker_read, "A stored result, by its reference, for a task",
     "ref", NULL, NULL, 200},
    {"PUT", "/v1/worker/artifacts/{token}/{name}", 0, 64u << 20, handle_worker_artifact, "A file that a step declared",
     "", NULL, NULL, 204},
    {"GET", "/v1/tokens", 0, 0, handle_token_list, "Tokens of the tenant, without their secrets", "", NULL, "TokenPage",
     200},
    {"POST", "/v1/tokens", ROUTE_BODY, 0, handle_token_create, "Make a token; its text is told once", "", "NewToken",
     "TokenText", 201},
    {"DELETE", "/v1/tokens/{token}", 0, 0, handle_token_revoke, "Revoke a token", "", NULL, NULL, 204},
    {"POST", "/v1/runs:resolve", ROUTE_BODY, 64u << 10, handle_run_resolve, "The run that an EngineRunRef names", "",
     "RunReference", "ResolvedRun", 200},
    {"GET", "/v1/queues", 0, 0, handle_queue_list, "Queues of the tenant", "", NULL, "QueuePage", 200},
    {"POST", "/v1/queues:reconcile", 0, 0, handle_queue_reconcile, "dequeueAndStart: give places that are free", "",
     NULL, "ReconcilePage", 200},
    {"GET", "/v1/queues/{queue}", 0, 0, handle_queue_get, "A queue", "", NULL, "Queue", 200},
    {"PUT", "/v1/queues/{queue}", ROUTE_BODY, 0, handle_queue_put, "Make or change a queue", "", "QueueConfig", "Queue",
     200},
    {"DELETE", "/v1/queues/{queue}", 0, 0, handle_queue_delete, "Remove a queue in which nothing waits", "", NULL, NULL,
     204},
    {"POST", "/v1/queues/{queue}/pause", 0, 0, handle_queue_pause, "Nothing of it starts any more", "", NULL, "Queue",
     200},
    {"POST", "/v1/queues/{queue}/resume", 0, 0, handle_queue_resume, "Its runs start again", "", NULL, "Queue", 200},
    {"GET", "/v1/limits", 0, 0, handle_limits_get, "Limits of the tenant", "", NULL, "Limits", 200},
    {"PUT", "/v1/limits", ROUTE_BODY, 0, handle_limits_put, "Change them", "", "LimitsConfig", "Limits", 200},
    {"GET", "/v1/alerts", 0, 0, handle_alert_list, "Alerts", "run state", NULL, "AlertPage", 200},
    {"POST", "/v1/alerts/{alert}:ack", ROUTE_BODY, 0, handle_alert_ack, "Somebody has seen it", "", "Nothing", "Alert",
     200},
    {"GET", "/v1/outbox", 0, 0, handle_outbox_list, "Sinks: where they are and what waits", "", NULL, "SinkPage", 200},
    {"POST", "/v1/outbox/{sink}:rewind", ROUTE_BODY, 0, handle_outbox_rewind, "Where a sink goes on", "", "Rewind",
     "Count", 200},
    {"GET", "/v1/dlq", 0, 0, handle_dlq_list, "Dead letters", "sink limit cursor", NULL, "LetterPage", 200},
    {"POST", "/v1/dlq:redrive", ROUTE_BODY, 0, handle_dlq_redrive_all, "Send dead letters of a sink once more", "",
     "Redrive", "Count", 200},
    {"POST", "/v1/dlq/{letter}:redrive", ROUTE_BODY, 0, handle_dlq_redrive, "Send a dead letter once more", "",
     "ReasonOnly", "Count", 200},
    {"DELETE", "/v1/dlq/{letter}", 0, 0, handle_dlq_drop, "Give a dead letter up", "reason", NULL, "Count", 200},
    {"GET", "/v1/audit", 0, 0, handle_audit_list, "Decisions, allowed and denied", "after limit cursor", NULL,
     "AuditPage", 200},
    {"GET", "/v1/audit:verify", 0, 0, handle_audit_verify, "Whether the chain of decisions is whole", "", NULL,
     "AuditReport", 200},
};

const struct route *route_at(size_t index)
{
    return index < ARRAY_COUNT(routes) ? &routes[index] : NULL;
}

size_t route_index(const struct route *route)
{
    return (size_t)(route - routes);
}

static bool matches(struct str pattern, struct str path, struct str params[PARAMS_MAX])
{
    size_t count = 0;
    while (pattern.len > 0 && path.len > 0) {
        if (pattern.ptr[0] != '{') {
            if (pattern.ptr[0] != path.ptr[0]) return false;
            pattern = str_slice(pattern, 1, pattern.len);
            path = str_slice(path, 1, path.len);
            continue;
        }
        pattern = str_slice(pattern, str_find(pattern, '}', 0) + 1, pattern.len);
        // "{x}:verb": the verb ends the segment.
        size_t end = str_find(path, '/', 0), verb = str_find(pattern, '/', 0);
        if (verb > 0 && end > verb && str_eq(str_slice(path, end - verb, end), str_slice(pattern, 0, verb)))
            end -= verb;
        if (end == 0 || count == PARAMS_MAX) return false;
        params[count++] = str_slice(path, 0, end);
        path = str_slice(path, end, path.len);
    }
    return pattern.len == 0 && path.len == 0;
}

// The next two segments: "/NAME/VALUE".
static bool take_pair(struct str *path, const char *name, struct str *value)
{
    struct str rest = *path, word;
    if (rest.len == 0 || rest.ptr[0] != '/') return false;
    rest = str_slice(rest, 1, rest.len);
    size_t end = str_find(rest, '/', 0);
    word = str_slice(rest, 0, end);
    if (!str_is(word, name) || end + 1 >= rest.len) return false;
    rest = str_slice(rest, end + 1, rest.len);
    end = str_find(rest, '/', 0);
    *value = str_slice(rest, 0, end);
    *path = str_slice(rest, end, rest.len);
    return end > 0;
}

bool route_place(struct str path, struct auth_object *place, struct str *rest)
{
    struct auth_object found = {0};
    if (!str_starts(path, STR("/v1/t/"))) return false;
    path = str_slice(path, 3, path.len);
    if (!take_pair(&path, "t", &found.tenant) || !take_pair(&path, "p", &found.project) ||
        !take_pair(&path, "e", &found.environment))
        return false;
    if (place) *place = found;
    *rest = path;
    return true;
}

const struct route *route_find(struct str method, struct str path, struct str params[PARAMS_MAX], int *status,
                               char allow[64])
{
    size_t used = 0;
    struct str rest;
    bool placed = route_place(path, NULL, &rest);
    allow[0] = '\0';
    if (str_is(method, "HEAD")) method = STR("GET");
    for (size_t i = 0; i < ARRAY_COUNT(routes); i++) {
        const struct route *route = &routes[i];
        struct str pattern = str_from(route->pattern);
        if (placed && !str_starts(pattern, STR("/v1/"))) continue;
        if (placed) pattern = str_slice(pattern, 3, pattern.len);
        if (!matches(pattern, placed ? rest : path, params)) continue;
        if (str_is(method, route->method)) return route;
        used += (size_t)snprintf(allow + used, 64 - used, "%s%s", used > 0 ? ", " : "",
                                 str_is(str_from(route->method), "GET") ? "GET, HEAD" : route->method);
        INVARIANT(used < 64); // a path has one route for each method
    }
    *status = used > 0 ? 405 : 404;
    return NULL;
}
