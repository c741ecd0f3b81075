#include "view/internal.h"

#include "json/make.h"

static struct json fault_json(const struct fault *fault, struct arena *arena)
{
    if (!fault->code.len) return json_none();
    return JSON_OF(arena, {"category", json_some(fault->category)}, {"code", json_string(fault->code)},
                   {"detail", json_some(fault->detail)},
                   {"exitCode", json_when(fault->has_exit, json_int(fault->exit_code))},
                   {"message", json_string(fault->message)}, {"retryable", json_bool(fault->retryable)});
}

static struct json attempts_json(const struct step_view *step, struct arena *arena)
{
    struct json list = json_array();
    for (size_t i = 0; i < step->attempt_count; i++) {
        const struct attempt_view *attempt = &step->attempts[i];
        json_append(arena, &list,
                    JSON_OF(arena, {"durationMs", json_when(attempt->ended, json_int(attempt->ended_ms - attempt->began_ms))},
                            {"endedAt", json_time_some(arena, attempt->ended_ms)},
                            {"engineAttemptId", json_int(attempt->engine)},
                            {"error", fault_json(&attempt->fault, arena)},
                            {"logicalAttemptId", json_int(attempt->logical)},
                            {"startedAt", json_time_some(arena, attempt->started_ms)}));
    }
    return list;
}

static struct json tasks_json(const struct step_view *step, struct arena *arena)
{
    struct json list = json_array();
    for (size_t i = 0; i < step->task_count; i++) {
        const struct task_view *task = &step->tasks[i];
        json_append(arena, &list,
                    JSON_OF(arena, {"attempts", json_int(task->attempts)}, {"done", json_int(task->done)},
                            {"error", fault_json(&task->fault, arena)}, {"failed", json_int(task->failed)},
                            {"label", json_string(task->label)}, {"runs", json_int(task->runs)}));
    }
    return list;
}

static void add_playbook(const struct step_view *step, struct arena *arena, struct json *out)
{
    if (!step->visit) return;
    if (step->loop.known)
        JSON_ADD(arena, out,
                 {"loop", JSON_OF(arena, {"done", json_int(step->loop.done)}, {"failed", json_int(step->loop.failed)},
                                  {"started", json_int(step->loop.started)}, {"total", json_int(step->loop.total)})});
    JSON_ADD(arena, out, {"tasks", json_filled(tasks_json(step, arena))}, {"visit", json_int(step->visit)});
}

// What it waits for now.
static struct json awaited_json(const struct step_view *step, struct arena *arena)
{
    if (step->status != STEP_STATUS_RUNNING || step->event_name.len == 0) return json_none();
    return JSON_OF(arena, {"name", json_string(step->event_name)}, {"correlation", json_some(step->event_correlation)});
}

static struct json step_json(const struct step_view *step, struct arena *arena)
{
    struct json blob = json_none();
    if (step->has_blob)
        blob = JSON_OF(arena, {"sha256", json_digest(arena, &step->blob)}, {"sizeBytes", json_count(step->blob_size)});
    struct json out =
        JSON_OF(arena, {"actor", json_some(step->actor)},
                {"artifacts", step->artifacts.type ? step->artifacts : json_array()},
                {"attempts", attempts_json(step, arena)}, {"childRunId", json_some(step->child_run)},
                {"awaitedEvent", awaited_json(step, arena)},
                {"completedAt", json_time_some(arena, step->ended_ms)}, {"dueAt", json_time_some(arena, step->due_ms)},
                {"durationMs", json_when(step->ended_ms > 0 && step->began_ms > 0, json_int(step->ended_ms - step->began_ms))},
                {"engineAttemptId", json_int(step->engine)}, {"error", fault_json(&step->fault, arena)},
                {"held", json_flag(step->held)}, {"iteration", json_nonzero(step->iteration)},
                {"logicalAttemptId", json_int(step->logical)}, {"result", step->value}, {"resultRef", blob},
                {"place", step->place ? *step->place : json_none()}, {"retrying", json_flag(step->retrying)},
                {"reusedFrom", json_some(step->reused_from)},
                {"skipDetail", json_some(step->skip_detail)}, {"skipReason", json_some(step->skip_reason)},
                {"startedAt", json_time_some(arena, step->started_ms)},
                {"status", json_word(step_status_name(step->status))}, {"stepId", json_string(step->id)},
                {"truncated", json_flag(step->truncated)});
    add_playbook(step, arena, &out);
    return out;
}

// Artifacts of all steps, the first of each uri (ES-1.5-3g).
static struct json artifacts_json(const struct run_view *view, struct arena *arena)
{
    struct map seen;
    map_init(&seen, arena);
    struct json list = json_array();
    for (size_t i = 0; i < view->step_count; i++) {
        const struct json *artifacts = &view->steps[i].artifacts;
        for (uint32_t k = 0; artifacts->type == JSON_ARRAY && k < artifacts->count; k++) {
            struct str uri = json_text(json_get(&artifacts->items[k], STR("uri")));
            uint32_t existing;
            if (!map_put(&seen, uri, 0, &existing)) return json_failed();
            if (uri.len && existing != MAP_NONE) continue;
            json_append(arena, &list, artifacts->items[k]);
        }
    }
    return list;
}

static struct json ids_json(const struct run_view *view, struct arena *arena)
{
    const struct start_facts *start = &view->start;
    struct json from = json_none();
    if (start->forked)
        from = JSON_OF(arena, {"runId", json_string(start->forked_run)}, {"runSeq", json_count(start->forked_seq)});
    return JSON_OF(arena, {"environmentId", json_some(view->ids.environment)}, {"forkedFrom", from},
                   {"name", json_some(start->name)}, {"originalRunId", json_some(start->original_run)},
                   {"parentRunId", json_some(start->parent_run)}, {"parentStepId", json_some(start->parent_step)},
                   {"planId", json_some(view->ids.plan_id)}, {"planVersion", json_some(view->ids.plan_version)},
                   {"projectId", json_some(view->ids.project)}, {"runId", json_string(view->ids.run)},
                   {"tenantId", json_some(view->ids.tenant)});
}

static void add_status(const struct run_view *view, struct arena *arena, struct json *out)
{
    struct str substatus = str_from(view_substatus(view)), message;
    bool told = view_message(view, substatus, arena, &message);
    if (str_is(substatus, "CANCELLING")) substatus = STR("cairn/CANCELLING"); // the contract has no such word
    struct json cause = json_none();
    if (view->fault.code.len)
        cause = JSON_OF(arena, {"error", fault_json(&view->fault, arena)}, {"stepId", json_some(view->failed_step)});
    JSON_ADD(arena, out, {"status", json_word(run_status_name(view->status))}, {"substatus", json_some(substatus)},
             {"message", told ? json_some(message) : json_failed()}, {"cancelReason", json_some(view->cancel_reason)},
             {"pauseReason", json_some(view->pause_reason)}, {"stale", json_bool(view->stale)},
             {"inconsistent", json_bool(view->inconsistent)}, {"rootCause", cause});
}

// Where its document came from: what the start of the run said (WE-3.1).
static struct json plan_json(const struct run_view *view, struct arena *arena)
{
    const struct start_facts *start = &view->start;
    struct str sha = start->document_sha256, uri = start->plan_uri;
    if (uri.len == 0 && sha.len > 0) uri = arena_format(arena, "cairn://plans/%.*s", STR_ARG(sha));
    if (sha.len > 0 && !uri.ptr) return json_failed();
    return json_filled(JSON_OF(arena, {"planId", json_some(view->ids.plan_id)}, {"planVersion", json_some(view->ids.plan_version)},
                     {"schemaVersion", json_some(start->schema_version)},
                     {"sha256", json_some(start->plan_sha256.len ? start->plan_sha256 : sha)}, {"uri", json_some(uri)}));
}

bool view_json(const struct run_view *view, struct arena *arena, struct json *out)
{
    struct json steps = json_array();
    struct digest hash;
    bool took = view->started_ms && view->ended_ms >= view->started_ms;
    if (!view_hash(view, arena, &hash)) return false;
    for (size_t i = 0; i < view->step_count; i++) json_append(arena, &steps, step_json(&view->steps[i], arena));
    *out = ids_json(view, arena);
    add_status(view, arena, out);
    struct json segment = json_none();
    if (view->segment > 1)
        segment = JSON_OF(arena, {"afterSeq", json_count(view->segment_seq)}, {"number", json_int(view->segment)});
    JSON_ADD(arena, out, {"lastEventSeq", json_count(view->last_seq)}, {"segment", segment},
             {"engineRunRef", view->started_ms ? json_text_made(contract_run_ref(&view->ids, &view->start, arena)) : json_none()},
             {"planRef", plan_json(view, arena)},
             {"documentSha256", json_when(view->start.plan_sha256.len > 0, json_string(view->start.document_sha256))},
             {"queuedAt", json_time_some(arena, view->queued_ms)},
             {"startedAt", json_time_some(arena, view->started_ms)},
             {"completedAt", json_time_some(arena, view->ended_ms)},
             {"updatedAt", json_time_some(arena, view->updated_ms)},
             {"totalDurationMs", json_when(took, json_int(view->ended_ms - view->started_ms))},
             {"completedSteps", json_int(view->success_count)}, {"failedSteps", json_int(view_failed_count(view))},
             {"runningSteps", json_int(view->running_count)}, {"skippedSteps", json_int(view->skipped_count)},
             {"totalSteps", json_count(view->step_count)}, {"artifacts", artifacts_json(view, arena)},
             {"steps", steps}, {"hash", json_digest(arena, &hash)});
    return json_ok(out);
}

static struct json hashed_steps(const struct run_view *view, struct arena *arena)
{
    struct json out;
    if (!json_object_with(arena, (uint32_t)view->step_count, &out)) return json_failed();
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        json_set(arena, &out, step->id,
                 JSON_OF(arena, {"attempts", json_int(step->logical)},
                         {"completedAt", json_time_some(arena, step->ended_ms)},
                         {"startedAt", json_time_some(arena, step->started_ms)},
                         {"status", json_word(step_status_name(step->status))}));
    }
    return out;
}

bool view_hash(const struct run_view *view, struct arena *arena, struct digest *out)
{
    struct json hashed = JSON_OF(arena, {"completedAt", json_time_some(arena, view->ended_ms)},
                                 {"paused", json_bool(view->status == RUN_STATUS_PAUSED)},
                                 {"runId", json_string(view->ids.run)},
                                 {"startedAt", json_time_some(arena, view->started_ms)},
                                 {"status", json_word(run_status_name(view->status))},
                                 {"steps", hashed_steps(view, arena)});
    struct buf buf SCOPED(buf_release) = buf_of(SIZE_MAX / 4);
    json_canon(&buf, &hashed);
    bool ok = buf_ok(&buf);
    if (ok) *out = sha256(buf_str(&buf));
    return ok;
}
