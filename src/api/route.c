// The table of routes, and finding one.
#include "api/inside.h"

#include <stdio.h>

static const struct route routes[] = {
    {"GET", "/livez", "The process lives", .handle = handle_live, .flags = ROUTE_OPEN},
    {"GET", "/readyz", "The store can be written and the engine turns", .handle = handle_ready, .flags = ROUTE_OPEN,
     .query = "verbose"},
    {"GET", "/startupz", "It has started", .handle = handle_ready, .flags = ROUTE_OPEN},
    {"GET", "/metrics", "Prometheus metrics", .handle = handle_metrics},
    {"GET", "/openapi.json", "This description", .handle = handle_openapi, .flags = ROUTE_OPEN},
    {"GET", "/schemas/{name}", "A JSON Schema of documents, events or signals", .handle = handle_schema_get},
    {"GET", "/v1/whoami", "Who the token stands for", .handle = handle_whoami, .answer = "Principal"},
    {"POST", "/v1/session", "Sign in with a browser: a token or a ticket becomes a cookie and a key",
     .handle = handle_session_open, .flags = ROUTE_OPEN | ROUTE_BODY, .body_max = 16u << 10, .body = "NewSession",
     .answer = "Session", .status = 201},
    {"DELETE", "/v1/session", "Sign out: the session is over everywhere", .handle = handle_session_close, .status = 204},
    {"POST", "/v1/tickets", "A ticket for one sign-in with a browser, within two minutes", .handle = handle_ticket,
     .answer = "Ticket", .status = 201},
    {"GET", "/v1/auth", "Ways to sign in", .handle = handle_sign_in, .flags = ROUTE_OPEN, .answer = "SignIn"},
    {"GET", "/v1/capabilities", "What this engine can do", .handle = handle_capabilities, .answer = "Capabilities"},

    {"GET", "/v1/runs", "Runs, newest first", .handle = handle_run_list,
     .query = "q status plan tag startedAfter startedBefore sort limit cursor fields count", .answer = "RunPage"},
    {"POST", "/v1/runs", "Start a run", .handle = handle_run_start, .flags = ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN,
     .operation = OPERATION_RUN_START, .body_max = DOCUMENT_BODY_MAX, .body = "StartRun", .answer = "RunStatus",
     .status = 202},
    {"GET", "/v1/runs/{run}", "A run, folded up to a moment", .operation = OPERATION_RUN_GET, .tell = tell_run,
     .query = "at fields", .answer = "RunSnapshot"},
    {"GET", "/v1/runs/{run}/status", "RunStatusSnapshot", .handle = handle_run_status, .answer = "RunStatus"},
    {"GET", "/v1/runs/{run}/events", "Events: a page, NDJSON or SSE by Accept", .handle = handle_run_events,
     .flags = ROUTE_STREAM, .query = "after cursor limit types step as wait", .answer = "EventPage"},
    {"GET", "/v1/runs/{run}/why", "Why the run is in its state", .operation = OPERATION_RUN_WHY, .tell = tell_why,
     .query = "at", .answer = "Why"},
    {"GET", "/v1/runs/{run}/places", "Which of its attempts wait for a slot or a worker, and where it stands in its queue",
     .operation = OPERATION_RUN_GET, .tell = tell_places, .answer = "Places"},
    {"GET", "/v1/runs/{run}/steps", "Its steps", .operation = OPERATION_RUN_GET, .tell = tell_steps,
     .query = "at fields", .answer = "StepPage"},
    {"GET", "/v1/runs/{run}/steps/{step}", "One step with its attempts", .operation = OPERATION_RUN_GET,
     .tell = tell_steps, .query = "at fields", .answer = "Step"},
    {"GET", "/v1/runs/{run}/steps/{step}/why", "Why the step is in its state", .operation = OPERATION_RUN_WHY,
     .tell = tell_why, .query = "at", .answer = "Why"},
    {"GET", "/v1/runs/{run}/steps/{step}/logs", "What the step wrote", .operation = OPERATION_STEP_LOGS,
     .tell = tell_logs, .flags = ROUTE_STREAM, .query = "attempt engineAttempt follow"},
    {"GET", "/v1/runs/{run}/signals", "Decision records", .operation = OPERATION_SIGNAL_READ, .tell = tell_decisions,
     .answer = "DecisionPage"},
    {"POST", "/v1/runs/{run}/signals", "Send a signal", .handle = handle_signal_post, .flags = ROUTE_BODY | ROUTE_AGAIN,
     .body_max = 64u << 10, .body = "Signal", .answer = "Decision", .status = 202},
    {"GET", "/v1/runs/{run}/signals/{signal}", "A decision record, by signalId or policyDecisionId",
     .operation = OPERATION_SIGNAL_READ, .tell = tell_decisions, .answer = "DecisionRecord"},
    {"PUT", "/v1/runs/{run}/signals/{signal}", "Send a signal under an id of the client's", .handle = handle_signal_put,
     .flags = ROUTE_BODY | ROUTE_AGAIN, .body_max = 64u << 10, .body = "Signal", .answer = "Decision", .status = 202},
    {"DELETE", "/v1/runs/{run}", "Remove an ended run; two people must ask for it", .handle = handle_run_delete,
     .query = "reason", .status = 204},
    {"GET", "/v1/runs/{run}/payload", "What the run was given", .operation = OPERATION_RUN_PAYLOAD,
     .tell = tell_payload, .answer = "Payload"},
    {"GET", "/v1/runs/{run}/graph", "Steps of its document and the ways between them", .operation = OPERATION_PLAN_GET,
     .tell = tell_graph, .answer = "Graph"},
    {"GET", "/v1/runs/{run}/steps/{step}/output", "What the step gave", .operation = OPERATION_STEP_OUTPUT,
     .tell = tell_output, .answer = "StepOutput"},
    {"GET", "/v1/runs/{run}/steps/{step}/inputs", "What the step was given: as written, and with every reference replaced",
     .operation = OPERATION_RUN_PAYLOAD, .tell = tell_inputs, .query = "attempt at", .answer = "StepInputs"},
    {"GET", "/v1/runs/{run}/steps/{step}/attempts", "Its attempts", .operation = OPERATION_STEP_OUTPUT,
     .tell = tell_attempts, .answer = "AttemptPage"},
    {"GET", "/v1/runs/{run}/steps/{step}/attempts/{n}", "One attempt", .operation = OPERATION_STEP_OUTPUT,
     .tell = tell_attempts, .answer = "Attempt"},
    {"GET", "/v1/runs/{run}/artifacts", "Files that its steps left", .operation = OPERATION_ARTIFACT_GET,
     .tell = tell_artifacts, .answer = "ArtifactPage"},
    {"GET", "/v1/runs/{run}/artifacts/content", "The bytes of one; Range is understood",
     .operation = OPERATION_ARTIFACT_GET, .tell = tell_content, .query = "name step"},
    {"GET", "/v1/runs/{run}/bundle", "The run as a signed file (docs/format/bundle.md)",
     .operation = OPERATION_RUN_BUNDLE, .tell = tell_bundle, .query = "redact"},
    {"GET", "/v1/runs/{run}/proof", "Where its chains end, signed, and whether they hold",
     .operation = OPERATION_RUN_PROOF, .tell = tell_proof, .answer = "Proof"},
    {"POST", "/v1/runs/{run}/forks", "A new run that goes on from an event of this one", .handle = handle_fork,
     .how = "fork", .flags = ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN,
     .operation = OPERATION_RUN_FORK, .body_max = DOCUMENT_BODY_MAX, .body = "ForkRun",
     .answer = "RunStatus", .status = 202},
    {"POST", "/v1/runs/{run}/forks/preview", "What a fork would take over", .handle = handle_fork, .how = "fork",
     .flags = ROUTE_BODY | ROUTE_PREVIEW,
     .operation = OPERATION_RUN_FORK, .body_max = DOCUMENT_BODY_MAX, .body = "ForkRun", .answer = "ForkPreview"},
    {"POST", "/v1/runs/{run}/rerun", "A new run of the same document", .handle = handle_fork, .how = "rerun",
     .flags = ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN,
     .operation = OPERATION_RUN_FORK, .body_max = DOCUMENT_BODY_MAX, .body = "RerunRun", .answer = "RunStatus",
     .status = 202},
    {"POST", "/v1/runs/{run}/rerun/preview", "What a rerun would take over", .handle = handle_fork, .how = "rerun",
     .flags = ROUTE_BODY | ROUTE_PREVIEW,
     .operation = OPERATION_RUN_FORK, .body_max = DOCUMENT_BODY_MAX, .body = "RerunRun", .answer = "ForkPreview"},
    {"POST", "/v1/runs/{run}/retry", "A new run that does one step of an ended run again, and everything below it",
     .handle = handle_fork, .how = "retry", .flags = ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN,
     .operation = OPERATION_RUN_FORK, .body_max = DOCUMENT_BODY_MAX,
     .body = "RetryRun", .answer = "RunStatus", .status = 202},
    {"POST", "/v1/runs/{run}/retry/preview", "What a retry would take over", .handle = handle_fork, .how = "retry",
     .flags = ROUTE_BODY | ROUTE_PREVIEW,
     .operation = OPERATION_RUN_FORK, .body_max = DOCUMENT_BODY_MAX, .body = "RetryRun", .answer = "ForkPreview"},
    {"GET", "/v1/events", "Events of all runs: a page, NDJSON or SSE by Accept", .handle = handle_events_all,
     .flags = ROUTE_STREAM, .query = "after cursor limit types", .answer = "EventPage"},

    {"GET", "/v1/definitions", "Definitions", .handle = handle_definition_list, .query = "limit cursor",
     .answer = "DefinitionPage"},
    {"GET", "/v1/definitions/{name}/versions", "Versions of a definition", .handle = handle_definition_list,
     .query = "limit cursor", .answer = "DefinitionPage"},
    {"GET", "/v1/definitions/{name}/versions/{sha256}", "A version", .handle = handle_definition_get,
     .answer = "Definition"},
    {"PUT", "/v1/definitions/{name}/versions/{sha256}", "Keep a document under the hash of its bytes",
     .handle = handle_definition_put, .flags = ROUTE_AGAIN,
     .operation = OPERATION_PLAN_REGISTER, .body_max = DOCUMENT_BODY_MAX, .answer = "Definition",
     .status = 201},
    {"GET", "/v1/definitions/{name}/versions/{sha256}/document", "Its bytes", .handle = handle_definition_document},
    {"POST", "/v1/definitions/{name}/versions/{sha256}:approve", "Approve a version, which another person brought",
     .handle = handle_definition_approve, .flags = ROUTE_BODY, .body_max = 64u << 10, .body = "Nothing",
     .answer = "Definition"},
    {"GET", "/v1/store/runs", "Heads of runs as they are stored (docs/format/store-api.md)",
     .handle = handle_store_list, .flags = ROUTE_RAW,
     .query = "limit before status plan prefix since until unfinished roots",
     .answer = "StoredRuns"},
    {"GET", "/v1/store/runs/{run}", "The head of a run as it is stored", .operation = OPERATION_RUN_GET,
     .tell = tell_head, .flags = ROUTE_RAW, .answer = "StoredRun"},
    {"GET", "/v1/store/runs/{run}/records", "Events as they are stored", .operation = OPERATION_STORE_READ,
     .tell = tell_stored_events, .query = "after limit"},
    {"GET", "/v1/store/runs/{run}/ledger", "Ledger entries as they are stored", .operation = OPERATION_STORE_READ,
     .tell = tell_ledger, .query = "after limit"},
    {"GET", "/v1/store/runs/{run}/blobs/{sha256}", "A document or result that the run refers to",
     .operation = OPERATION_STORE_READ, .tell = tell_blob},
    {"GET", "/v1/store/runs/{run}/redacted/records", "Events without their values", .operation = OPERATION_RUN_EVENTS,
     .tell = tell_redacted_events, .query = "after limit"},
    {"GET", "/v1/store/runs/{run}/redacted/ledger", "Ledger entries without their values",
     .operation = OPERATION_RUN_EVENTS, .tell = tell_redacted_ledger, .query = "after limit"},
    {"GET", "/v1/store/runs/{run}/redacted/blobs/{sha256}", "The document of the run, or a part of it",
     .operation = OPERATION_PLAN_GET, .tell = tell_run_document},
    {"GET", "/v1/store/runs/{run}/file", "A piece of a log or an artifact of the run",
     .operation = OPERATION_STORE_READ, .tell = tell_file, .query = "what name offset limit tail"},

    {"POST", "/v1/plans:validate", "Check a document", .handle = handle_plan_validate, .flags = ROUTE_BODY,
     .operation = OPERATION_PLAN_VALIDATE, .body_max = DOCUMENT_BODY_MAX, .body = "ValidateDocument",
     .answer = "ValidationReport"},
    {"POST", "/v1/plans:graph", "The steps of a document and the ways between them", .handle = handle_plan_graph,
     .flags = ROUTE_BODY, .operation = OPERATION_PLAN_VALIDATE, .body_max = DOCUMENT_BODY_MAX, .body = "DrawDocument",
     .answer = "Graph"},
    {"GET", "/v1/engines", "Engines that share the store, and what executes attempts", .handle = handle_engine_list,
     .answer = "Engines"},
    {"GET", "/v1/workers", "Workers that were heard of lately", .handle = handle_worker_list, .answer = "WorkerPage"},
    {"POST", "/v1/worker/poll", "Tasks for a worker (docs/format/worker.md)", .handle = handle_worker,
     .operation = OPERATION_WORKER_POLL, .call = REMOTE_POLL, .flags = ROUTE_JSON, .body = "WorkerPoll",
     .answer = "WorkerAnswer"},
    {"POST", "/v1/worker/heartbeat", "A worker lives, and renews its leases", .handle = handle_worker,
     .operation = OPERATION_WORKER_HEARTBEAT, .call = REMOTE_HEARTBEAT, .flags = ROUTE_JSON, .body = "WorkerHeartbeat",
     .answer = "WorkerAnswer"},
    {"POST", "/v1/worker/logs", "What steps wrote", .handle = handle_worker, .operation = OPERATION_WORKER_LOGS,
     .call = REMOTE_LOGS, .flags = ROUTE_JSON, .body_max = 4u << 20, .body = "WorkerLogs", .answer = "WorkerAnswer"},
    {"POST", "/v1/worker/complete", "Results of tasks", .handle = handle_worker, .operation = OPERATION_WORKER_RESULT,
     .call = REMOTE_COMPLETE, .flags = ROUTE_JSON, .body_max = 64u << 20, .body = "WorkerResults",
     .answer = "WorkerAnswer"},
    {"POST", "/v1/worker/fail", "Failures of tasks", .handle = handle_worker, .operation = OPERATION_WORKER_RESULT,
     .call = REMOTE_FAIL, .flags = ROUTE_JSON, .body_max = 4u << 20, .body = "WorkerResults", .answer = "WorkerAnswer"},
    {"POST", "/v1/executions/{run}/events",
     "Events of a playbook's run that a worker reports (docs/format/noetl-events.md)", .handle = handle_worker,
     .operation = OPERATION_WORKER_RESULT, .call = REMOTE_EVENTS, .flags = ROUTE_JSON, .body_max = 64u << 20,
     .body = "WorkerEvents", .answer = "WorkerAnswer"},
    {"GET", "/v1/worker/results/{token}", "A stored result, by its reference, for a task", .handle = handle_worker_read,
     .query = "ref"},
    {"PUT", "/v1/worker/artifacts/{token}/{path}", "A file that a step declared", .handle = handle_worker_artifact,
     .operation = OPERATION_WORKER_RESULT, .body_max = 64u << 20, .status = 204},
    {"GET", "/v1/tokens", "Tokens of the tenant, without their secrets", .handle = handle_token_list,
     .answer = "TokenPage"},
    {"POST", "/v1/tokens", "Make a token; its text is returned once", .handle = handle_token_create,
     .flags = ROUTE_BODY,
     .operation = OPERATION_TOKEN_CREATE, .body = "NewToken", .answer = "TokenText", .status = 201},
    {"DELETE", "/v1/tokens/{token}", "Revoke a token", .handle = handle_token_revoke, .status = 204},
    {"POST", "/v1/runs:resolve", "The run that an EngineRunRef names", .handle = handle_run_resolve,
     .flags = ROUTE_BODY, .body_max = 64u << 10, .body = "RunReference", .answer = "ResolvedRun"},
    {"POST", "/v1/runs:status", "getRunStatus of the run that an EngineRunRef names", .handle = handle_ref_status,
     .flags = ROUTE_BODY, .body_max = 64u << 10, .body = "RunReference", .answer = "RunStatus"},
    {"POST", "/v1/runs:cancel", "cancelRun of the run that an EngineRunRef names", .handle = handle_ref_cancel,
     .flags = ROUTE_BODY, .body_max = 64u << 10, .body = "CancelByReference", .answer = "Decision", .status = 202},
    {"POST", "/v1/runs:signal", "Send a signal to the run that an EngineRunRef names", .handle = handle_ref_signal,
     .flags = ROUTE_BODY, .body_max = 256u << 10, .body = "SignalByReference", .answer = "Decision", .status = 202},
    {"GET", "/v1/schedules", "Schedules of the tenant", .handle = handle_schedule_list, .answer = "SchedulePage"},
    {"GET", "/v1/schedules/{schedule}", "A schedule, with its next times", .handle = handle_schedule_get,
     .answer = "Schedule"},
    {"PUT", "/v1/schedules/{schedule}", "Make or change a schedule", .handle = handle_schedule_put,
     .flags = ROUTE_BODY | ROUTE_AGAIN, .operation = OPERATION_SCHEDULE_CREATE, .body_max = DOCUMENT_BODY_MAX,
     .body = "ScheduleConfig", .answer = "Schedule", .status = 201},
    {"DELETE", "/v1/schedules/{schedule}", "Remove a schedule; its runs stay", .handle = handle_schedule_delete,
     .status = 204},
    {"POST", "/v1/schedules/{schedule}/pause", "Nothing of it fires any more", .handle = handle_schedule_pause,
     .flags = ROUTE_BODY, .body = "ReasonOnly", .answer = "Schedule"},
    {"POST", "/v1/schedules/{schedule}/resume", "It fires again, from now on", .handle = handle_schedule_resume,
     .flags = ROUTE_BODY, .body = "ReasonOnly", .answer = "Schedule"},
    {"POST", "/v1/schedules/{schedule}/trigger", "A run of it now, beside its times", .handle = handle_schedule_trigger,
     .flags = ROUTE_BODY | ROUTE_MAKES | ROUTE_AGAIN, .operation = OPERATION_RUN_START, .body = "ScheduleTrigger",
     .answer = "RunStatus", .status = 202},
    {"GET", "/v1/schedules/{schedule}/next", "Its next times", .handle = handle_schedule_next, .query = "limit from",
     .answer = "FirePage"},
    {"GET", "/v1/schedules/{schedule}/ticks", "What became of its times, newest first", .handle = handle_schedule_ticks,
     .query = "limit", .answer = "TickPage"},
    {"POST", "/v1/schedules/{schedule}/backfills", "Run the times of a range", .handle = handle_schedule_backfill,
     .flags = ROUTE_BODY | ROUTE_AGAIN, .operation = OPERATION_SCHEDULE_CREATE, .body = "NewBackfill",
     .answer = "Backfill", .status = 201},
    {"GET", "/v1/schedules/{schedule}/backfills", "Its backfills", .handle = handle_schedule_backfills,
     .answer = "BackfillPage"},
    {"DELETE", "/v1/schedules/{schedule}/backfills/{backfill}", "No more of its times begin",
     .handle = handle_schedule_backfill_end, .status = 204},
    {"POST", "/v1/events", "Send an event to the steps that wait for it", .handle = handle_event_send,
     .flags = ROUTE_BODY | ROUTE_AGAIN, .operation = OPERATION_EVENT_SEND, .body_max = 96u << 10, .body = "NewEvent",
     .answer = "IncomingEvent", .status = 202},
    {"POST", "/v1/hooks/{hook}", "A webhook that comes in, signed: it becomes an event", .handle = handle_hook,
     .flags = ROUTE_OPEN | ROUTE_JSON | ROUTE_AGAIN, .body_max = 64u << 10, .answer = "IncomingEvent", .status = 202},
    {"GET", "/v1/incoming", "Events from outside, the oldest ids first", .handle = handle_incoming_list,
     .query = "name state limit", .answer = "IncomingEventPage"},
    {"GET", "/v1/incoming/{event}", "An event from outside, and who has taken it", .handle = handle_incoming_get,
     .answer = "IncomingEvent"},
    {"GET", "/v1/queues", "Queues of the tenant", .handle = handle_queue_list, .answer = "QueuePage"},
    {"POST", "/v1/queues:reconcile", "dequeueAndStart: give places that are free", .handle = handle_queue_reconcile,
     .answer = "ReconcilePage"},
    {"GET", "/v1/queues/{queue}", "A queue", .handle = handle_queue_get, .answer = "Queue"},
    {"PUT", "/v1/queues/{queue}", "Make or change a queue", .handle = handle_queue_put, .flags = ROUTE_BODY,
     .operation = OPERATION_QUEUE_CHANGE, .body = "QueueConfig", .answer = "Queue"},
    {"DELETE", "/v1/queues/{queue}", "Remove a queue in which nothing waits", .handle = handle_queue_delete,
     .status = 204},
    {"POST", "/v1/queues/{queue}/pause", "Nothing of it starts any more", .handle = handle_queue_pause,
     .answer = "Queue"},
    {"POST", "/v1/queues/{queue}/resume", "Its runs start again", .handle = handle_queue_resume, .answer = "Queue"},
    {"GET", "/v1/limits", "Limits of the tenant", .handle = handle_limits_get, .answer = "Limits"},
    {"PUT", "/v1/limits", "Change them", .handle = handle_limits_put, .flags = ROUTE_BODY,
     .operation = OPERATION_LIMIT_CHANGE, .body = "LimitsConfig",
     .answer = "Limits"},
    {"GET", "/v1/step-limits", "Limits of steps, and who has their places", .handle = handle_step_limit_list,
     .answer = "StepLimitPage"},
    {"GET", "/v1/step-limits/{limit}", "A limit of steps", .handle = handle_step_limit_get, .answer = "StepLimit"},
    {"PUT", "/v1/step-limits/{limit}", "Say how many attempts work at once, and how many begin in a time",
     .handle = handle_step_limit_put, .flags = ROUTE_BODY, .operation = OPERATION_LIMIT_CHANGE, .body = "StepLimitConfig",
     .answer = "StepLimit"},
    {"DELETE", "/v1/step-limits/{limit}", "Say nothing of a limit any more: documents do", .handle = handle_step_limit_delete,
     .status = 204},
    {"GET", "/v1/alerts", "Alerts", .handle = handle_alert_list, .query = "run state", .answer = "AlertPage"},
    {"POST", "/v1/alerts/{alert}:ack", "A person has seen it", .handle = handle_alert_ack, .flags = ROUTE_BODY,
     .body = "Nothing", .answer = "Alert"},
    {"GET", "/v1/outbox", "Sinks: where they are and what waits", .handle = handle_outbox_list, .answer = "SinkPage"},
    {"POST", "/v1/outbox/{sink}:rewind", "Where a sink goes on", .handle = handle_outbox_rewind, .flags = ROUTE_BODY,
     .body = "Rewind", .answer = "Count"},
    {"GET", "/v1/dlq", "Dead letters", .handle = handle_dlq_list, .query = "sink limit cursor", .answer = "LetterPage"},
    {"POST", "/v1/dlq:redrive", "Send dead letters of a sink once more", .handle = handle_dlq_redrive_all,
     .flags = ROUTE_BODY, .body = "Redrive", .answer = "Count"},
    {"POST", "/v1/dlq/{letter}:redrive", "Send a dead letter once more", .handle = handle_dlq_redrive,
     .flags = ROUTE_BODY, .body = "ReasonOnly", .answer = "Count"},
    {"DELETE", "/v1/dlq/{letter}", "Give a dead letter up", .handle = handle_dlq_drop, .query = "reason",
     .answer = "Count"},
    {"GET", "/v1/audit", "Decisions, allowed and denied", .handle = handle_audit_list, .query = "after limit cursor sort",
     .answer = "AuditPage"},
    {"GET", "/v1/audit:verify", "Whether the chain of decisions is whole", .handle = handle_audit_verify,
     .answer = "AuditReport"},
    {"GET", "/v1/usage", "What is in the store, how it grows and where its bytes are", .handle = handle_store_usage,
     .answer = "StoreUsage"},
};

const struct route *route_at(size_t index)
{
    return index < ARRAY_COUNT(routes) ? &routes[index] : NULL;
}

size_t route_index(const struct route *route)
{
    return (size_t)(route - routes);
}

// Names of plans and steps of playbooks may hold slashes, so they may be several segments.
static bool is_wide(struct str pattern)
{
    return str_starts(pattern, STR("{step}")) || str_starts(pattern, STR("{name}/versions"));
}

static bool matches(struct str pattern, struct str path, bool wide, size_t count, struct str params[PARAMS_MAX])
{
    while (pattern.len > 0 && path.len > 0) {
        if (pattern.ptr[0] != '{') {
            if (pattern.ptr[0] != path.ptr[0]) return false;
            pattern = str_slice(pattern, 1, pattern.len);
            path = str_slice(path, 1, path.len);
            continue;
        }
        bool rest = str_starts(pattern, STR("{path}")), several = wide && is_wide(pattern); // what is left, borders and all
        pattern = str_slice(pattern, str_find(pattern, '}', 0) + 1, pattern.len);
        // "{x}:verb": the verb ends the segment.
        size_t end = rest ? path.len : str_find(path, '/', 0), verb = str_find(pattern, '/', 0);
        if (verb > 0 && end > verb && str_eq(str_slice(path, end - verb, end), str_slice(pattern, 0, verb)))
            end -= verb;
        if (end == 0 || count == PARAMS_MAX) return false;
        for (size_t far = path.len; several && far > end; far--) { // as many segments as leave the rest its own
            if (far < path.len && path.ptr[far] != '/') continue;
            params[count] = str_slice(path, 0, far);
            if (matches(pattern, str_slice(path, far, path.len), wide, count + 1, params)) return true;
        }
        params[count++] = str_slice(path, 0, end);
        path = str_slice(path, end, path.len);
    }
    return pattern.len == 0 && path.len == 0;
}

// How much of a path the pattern says itself.
static size_t literal_of(struct str pattern)
{
    size_t count = 0;
    for (bool inside = false; pattern.len > 0; pattern = str_slice(pattern, 1, pattern.len)) {
        inside = pattern.ptr[0] == '{' || (inside && pattern.ptr[0] != '}');
        count += !inside;
    }
    return count;
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

// Without /v1 where a place stands before it; empty: the route is not there.
static struct str pattern_of(const struct route *route, bool placed)
{
    struct str pattern = str_from(route->pattern);
    if (!placed) return pattern;
    return str_starts(pattern, STR("/v1/")) ? str_slice(pattern, 3, pattern.len) : (struct str){0};
}

// What of a path the route says itself that says most.
static size_t best_fit(struct str path, bool placed, struct str params[PARAMS_MAX])
{
    size_t best = 0;
    for (size_t i = 0; i < ARRAY_COUNT(routes); i++) {
        struct str pattern = pattern_of(&routes[i], placed);
        size_t literal = literal_of(pattern);
        if (literal > best && matches(pattern, path, true, 0, params)) best = literal;
    }
    return best;
}

const struct route *route_find(struct str method, struct str path, struct str params[PARAMS_MAX], int *status,
                               char allow[64])
{
    size_t used = 0;
    struct str rest = path;
    bool placed = route_place(path, NULL, &rest);
    allow[0] = '\0';
    if (str_is(method, "HEAD")) method = STR("GET");
    // A name of several segments only where nothing fits without one, and then for the route that says most.
    for (int wide = 0; wide < 2 && used == 0; wide++) {
        size_t least = wide ? best_fit(rest, placed, params) : 0;
        for (size_t i = 0; i < ARRAY_COUNT(routes); i++) {
            const struct route *route = &routes[i];
            struct str pattern = pattern_of(route, placed);
            if (pattern.len == 0 || (least && literal_of(pattern) < least)) continue;
            if (!matches(pattern, rest, wide, 0, params)) continue;
            if (str_is(method, route->method)) return route;
            used += (size_t)snprintf(allow + used, 64 - used, "%s%s", used > 0 ? ", " : "",
                                     str_is(str_from(route->method), "GET") ? "GET, HEAD" : route->method);
            INVARIANT(used < 64); // a path has one route for each method
        }
    }
    *status = used > 0 ? 405 : 404;
    return NULL;
}
