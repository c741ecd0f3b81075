#include "view/internal.h"

#include "base/civil.h"

// An object under construction. After the first failure every put does nothing: many puts, one check.
struct maker {
    struct arena *arena;
    struct json object;
    bool ok;
};

static struct maker maker_of(struct arena *arena, uint32_t capacity)
{
    struct maker maker = {.arena = arena};
    maker.ok = json_object_with(arena, capacity, &maker.object);
    return maker;
}

static void put(struct maker *maker, const char *key, struct json value)
{
    maker->ok = maker->ok && json_put(maker->arena, &maker->object, str_from(key), value);
}

static void put_text(struct maker *maker, const char *key, struct str text)
{
    if (text.len) put(maker, key, json_string(text));
}

static void put_time(struct maker *maker, const char *key, int64_t ms)
{
    if (!ms || !maker->ok) return;
    char *text = arena_alloc(maker->arena, CIVIL_SIZE);
    maker->ok = text != NULL;
    if (!text) return;
    civil_format(ms, text);
    put(maker, key, json_string((struct str){text, CIVIL_SIZE - 1}));
}

static void put_digest(struct maker *maker, const char *key, const struct digest *digest)
{
    char *hex = maker->ok ? arena_alloc(maker->arena, SHA256_HEX + 1) : NULL;
    maker->ok = hex != NULL;
    if (!hex) return;
    digest_hex(digest, hex);
    put(maker, key, json_string((struct str){hex, SHA256_HEX}));
}

// Objects inside: closed by `put_maker`, which passes a failure on.
static void put_maker(struct maker *maker, const char *key, const struct maker *inner)
{
    maker->ok = maker->ok && inner->ok;
    put(maker, key, inner->object);
}

static void put_fault(struct maker *maker, const char *key, const struct fault *fault)
{
    if (!fault->code.len) return;
    struct maker inner = maker_of(maker->arena, 6);
    put_text(&inner, "category", fault->category);
    put(&inner, "code", json_string(fault->code));
    put_text(&inner, "detail", fault->detail);
    if (fault->has_exit) put(&inner, "exitCode", json_int(fault->exit_code));
    put(&inner, "message", json_string(fault->message));
    put(&inner, "retryable", json_bool(fault->retryable));
    put_maker(maker, key, &inner);
}

static bool attempts_json(const struct step_view *step, struct arena *arena, struct json *out)
{
    *out = json_array();
    for (size_t i = 0; i < step->attempt_count; i++) {
        const struct attempt_view *attempt = &step->attempts[i];
        struct maker maker = maker_of(arena, 5);
        put_time(&maker, "endedAt", attempt->ended_ms);
        put(&maker, "engineAttemptId", json_int(attempt->engine));
        put_fault(&maker, "error", &attempt->fault);
        put(&maker, "logicalAttemptId", json_int(attempt->logical));
        put_time(&maker, "startedAt", attempt->started_ms);
        if (!maker.ok || !json_push(arena, out, maker.object)) return false;
    }
    return true;
}

static void put_result(struct maker *maker, const struct step_view *step)
{
    if (step->value.type) put(maker, "result", step->value);
    if (!step->has_blob) return;
    struct maker ref = maker_of(maker->arena, 2);
    put_digest(&ref, "sha256", &step->blob);
    put(&ref, "sizeBytes", json_int((int64_t)step->blob_size));
    put_maker(maker, "resultRef", &ref);
}

static bool tasks_json(const struct step_view *step, struct arena *arena, struct json *out)
{
    *out = json_array();
    for (size_t i = 0; i < step->task_count; i++) {
        const struct task_view *task = &step->tasks[i];
        struct maker maker = maker_of(arena, 6);
        put(&maker, "attempts", json_int(task->attempts));
        put(&maker, "done", json_int(task->done));
        put_fault(&maker, "error", &task->fault);
        put(&maker, "failed", json_int(task->failed));
        put(&maker, "label", json_string(task->label));
        put(&maker, "runs", json_int(task->runs));
        if (!maker.ok || !json_push(arena, out, maker.object)) return false;
    }
    return true;
}

static void put_playbook(struct maker *maker, const struct step_view *step)
{
    struct json tasks;
    if (!step->visit) return;
    if (step->loop.told) {
        struct maker loop = maker_of(maker->arena, 4);
        put(&loop, "done", json_int(step->loop.done));
        put(&loop, "failed", json_int(step->loop.failed));
        put(&loop, "started", json_int(step->loop.started));
        put(&loop, "total", json_int(step->loop.total));
        put_maker(maker, "loop", &loop);
    }
    maker->ok = maker->ok && tasks_json(step, maker->arena, &tasks);
    if (maker->ok && step->task_count) put(maker, "tasks", tasks);
    put(maker, "visit", json_int(step->visit));
}

static bool step_json(const struct step_view *step, struct arena *arena, struct json *out)
{
    struct json attempts;
    if (!attempts_json(step, arena, &attempts)) return false;
    struct maker maker = maker_of(arena, 23);
    put_text(&maker, "actor", step->actor);
    put(&maker, "artifacts", step->artifacts.type ? step->artifacts : json_array());
    put(&maker, "attempts", attempts);
    put_text(&maker, "childRunId", step->child_run);
    put_time(&maker, "completedAt", step->ended_ms);
    put_time(&maker, "dueAt", step->due_ms);
    put(&maker, "engineAttemptId", json_int(step->engine));
    put_fault(&maker, "error", &step->fault);
    if (step->held) put(&maker, "held", json_bool(true));
    if (step->iteration) put(&maker, "iteration", json_int(step->iteration));
    put(&maker, "logicalAttemptId", json_int(step->logical));
    put_result(&maker, step);
    if (step->retrying) put(&maker, "retrying", json_bool(true));
    put_text(&maker, "reusedFrom", step->reused_from);
    put_text(&maker, "skipDetail", step->skip_detail);
    put_text(&maker, "skipReason", step->skip_reason);
    put_time(&maker, "startedAt", step->started_ms);
    put(&maker, "status", json_string(str_from(step_status_name(step->status))));
    put(&maker, "stepId", json_string(step->id));
    if (step->truncated) put(&maker, "truncated", json_bool(true));
    put_playbook(&maker, step);
    *out = maker.object;
    return maker.ok;
}

// Artifacts of all steps, the first of each uri (ES-1.5-3g).
static bool artifacts_json(const struct run_view *view, struct arena *arena, struct json *out)
{
    struct map seen;
    map_init(&seen, arena);
    *out = json_array();
    for (size_t i = 0; i < view->step_count; i++) {
        const struct json *artifacts = &view->steps[i].artifacts;
        for (uint32_t k = 0; artifacts->type == JSON_ARRAY && k < artifacts->count; k++) {
            struct str uri = json_text(json_get(&artifacts->items[k], STR("uri")));
            uint32_t existing;
            if (!map_put(&seen, uri, 0, &existing)) return false;
            if (uri.len && existing != MAP_NONE) continue;
            if (!json_push(arena, out, artifacts->items[k])) return false;
        }
    }
    return true;
}

static void put_counts(struct maker *maker, const struct run_view *view)
{
    put(maker, "completedSteps", json_int(view->success_count));
    put(maker, "failedSteps", json_int(view->failed_count));
    put(maker, "runningSteps", json_int(view->running_count));
    put(maker, "skippedSteps", json_int(view->skipped_count));
    put(maker, "totalSteps", json_int((int64_t)view->step_count));
}

static void put_ids(struct maker *maker, const struct run_view *view)
{
    put_text(maker, "environmentId", view->ids.environment);
    if (view->start.forked) {
        struct maker from = maker_of(maker->arena, 2);
        put(&from, "runId", json_string(view->start.forked_run));
        put(&from, "runSeq", json_int((int64_t)view->start.forked_seq));
        put_maker(maker, "forkedFrom", &from);
    }
    put_text(maker, "name", view->start.name);
    put_text(maker, "originalRunId", view->start.original_run);
    put_text(maker, "parentRunId", view->start.parent_run);
    put_text(maker, "parentStepId", view->start.parent_step);
    put_text(maker, "planId", view->ids.plan_id);
    put_text(maker, "planVersion", view->ids.plan_version);
    put_text(maker, "projectId", view->ids.project);
    put(maker, "runId", json_string(view->ids.run));
    put_text(maker, "tenantId", view->ids.tenant);
}

static void put_times(struct maker *maker, const struct run_view *view)
{
    put_time(maker, "queuedAt", view->queued_ms);
    put_time(maker, "startedAt", view->started_ms);
    put_time(maker, "completedAt", view->ended_ms);
    put_time(maker, "updatedAt", view->updated_ms);
    if (view->started_ms && view->ended_ms >= view->started_ms)
        put(maker, "totalDurationMs", json_int(view->ended_ms - view->started_ms));
}

static void put_status(struct maker *maker, const struct run_view *view)
{
    put(maker, "status", json_string(str_from(run_status_name(view->status))));
    struct str substatus = str_from(view_substatus(view)), message;
    put_text(maker, "substatus", substatus);
    if (view_message(view, substatus, maker->arena, &message))
        put_text(maker, "message", message);
    else
        maker->ok = false;
    put_text(maker, "cancelReason", view->cancel_reason);
    put_text(maker, "pauseReason", view->pause_reason);
    put(maker, "stale", json_bool(view->stale));
    put(maker, "inconsistent", json_bool(view->inconsistent));
    if (view->fault.code.len) {
        struct maker cause = maker_of(maker->arena, 2);
        put_fault(&cause, "error", &view->fault);
        put_text(&cause, "stepId", view->failed_step);
        put_maker(maker, "rootCause", &cause);
    }
}

bool view_json(const struct run_view *view, struct arena *arena, struct json *out)
{
    struct json steps = json_array();
    for (size_t i = 0; i < view->step_count; i++) {
        struct json step;
        if (!step_json(&view->steps[i], arena, &step) || !json_push(arena, &steps, step)) return false;
    }
    struct json artifacts;
    struct digest hash;
    if (!artifacts_json(view, arena, &artifacts) || !view_hash(view, arena, &hash)) return false;
    struct maker maker = maker_of(arena, 40);
    put_ids(&maker, view);
    put_status(&maker, view);
    put(&maker, "lastEventSeq", json_int((int64_t)view->last_seq));
    if (view->started_ms) {
        struct str ref = contract_run_ref(&view->ids, arena);
        if (!ref.ptr) return false;
        put(&maker, "engineRunRef", json_string(ref));
    }
    put_times(&maker, view);
    put_counts(&maker, view);
    put(&maker, "artifacts", artifacts);
    put(&maker, "steps", steps);
    put_digest(&maker, "hash", &hash);
    *out = maker.object;
    return maker.ok;
}

static bool hashed_steps(const struct run_view *view, struct arena *arena, struct json *out)
{
    if (!json_object_with(arena, (uint32_t)view->step_count, out)) return false;
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        struct maker maker = maker_of(arena, 4);
        put(&maker, "attempts", json_int(step->logical));
        put_time(&maker, "completedAt", step->ended_ms);
        put_time(&maker, "startedAt", step->started_ms);
        put(&maker, "status", json_string(str_from(step_status_name(step->status))));
        if (!maker.ok || !json_put(arena, out, step->id, maker.object)) return false;
    }
    return true;
}

bool view_hash(const struct run_view *view, struct arena *arena, struct digest *out)
{
    struct json steps;
    if (!hashed_steps(view, arena, &steps)) return false;
    struct maker maker = maker_of(arena, 6);
    put_time(&maker, "completedAt", view->ended_ms);
    put(&maker, "paused", json_bool(view->status == RUN_STATUS_PAUSED));
    put(&maker, "runId", json_string(view->ids.run));
    put_time(&maker, "startedAt", view->started_ms);
    put(&maker, "status", json_string(str_from(run_status_name(view->status))));
    put(&maker, "steps", steps);
    if (!maker.ok) return false;
    struct buf buf;
    buf_init(&buf, SIZE_MAX / 4);
    json_canon(&buf, &maker.object);
    bool ok = buf_ok(&buf);
    if (ok) *out = sha256(buf_str(&buf));
    buf_release(&buf);
    return ok;
}
