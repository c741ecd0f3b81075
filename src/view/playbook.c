// Steps of playbooks: what is recorded of their tasks and iterations, counted. A loop may have many thousand of them, so a view keeps
// numbers and the last fault of each task, not a list.
#include "view/internal.h"

#include <string.h>

static struct task_view *task_of(struct run_view *view, struct step_view *step, struct str label)
{
    for (size_t i = 0; i < step->task_count; i++) {
        if (str_eq(step->tasks[i].label, label)) return &step->tasks[i];
    }
    if (!ARENA_ROOM(view->arena, step->tasks, step->task_count, &step->task_capacity)) return NULL;
    step->tasks[step->task_count] = (struct task_view){0};
    if (!view_keep(view, label, &step->tasks[step->task_count].label)) return NULL;
    return &step->tasks[step->task_count++];
}

// What of its attempts is under way, or follows by itself. Logs of others may leave something out.
static void fold_attempt(struct task_view *task, const struct moment *moment)
{
    bool begins = moment->kind == MOMENT_ATTEMPT_STARTED;
    bool ends = moment->kind == MOMENT_ATTEMPT_DONE || moment->kind == MOMENT_ATTEMPT_FAILED;
    task->attempts += begins;
    task->in_flight += begins;
    task->in_flight -= ends && task->in_flight > 0;
    task->events += moment->kind == MOMENT_EVENT_AWAITED;
    task->events -= ends && task->events > 0;
}

static bool wait_begins(struct run_view *view, struct step_view *step, uint32_t iteration)
{
    if (!ARENA_ROOM(view->arena, step->waits, step->wait_count, &step->wait_capacity)) return false;
    step->waits[step->wait_count++] = iteration;
    return true;
}

static void wait_ends(struct step_view *step, uint32_t iteration)
{
    for (size_t i = 0; i < step->wait_count; i++) {
        if (step->waits[i] != iteration) continue;
        step->waits[i] = step->waits[--step->wait_count];
        return;
    }
}

// A task tries again, or its time is over before it does: then the iteration ends, or the visit.
static bool fold_wait(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    bool again = moment->kind == MOMENT_TASK_DECIDED &&
                 str_is(json_text(json_key(json_key(&moment->value, "action"), "do")), "retry");
    if (again) return wait_begins(view, step, moment->iteration);
    if (moment->kind == MOMENT_ATTEMPT_STARTED || moment->kind == MOMENT_ITERATION_FAILED)
        wait_ends(step, moment->iteration);
    return true;
}

// The files that a task left, behind those of the tasks and iterations before it.
static bool fold_files(struct run_view *view, struct step_view *step, const struct json *files)
{
    struct json kept;
    if (!json_is(files, JSON_ARRAY)) return true;
    if (step->artifacts.type != JSON_ARRAY) step->artifacts = json_array();
    for (uint32_t i = 0; i < files->count; i++)
        if (!json_copy(view->arena, &files->items[i], &kept) || !json_push(view->arena, &step->artifacts, kept)) return false;
    return true;
}

static bool fold_task(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    struct task_view *task = task_of(view, step, moment->task);
    if (!task) return false;
    task->runs += moment->kind == MOMENT_TASK_STARTED;
    fold_attempt(task, moment);
    task->done += moment->kind == MOMENT_TASK_DONE;
    if (!fold_files(view, step, &moment->artifacts)) return false;
    task->failed += moment->kind == MOMENT_TASK_FAILED;
    bool again = moment->kind == MOMENT_STEP_REDISPATCHED, rests = moment->kind == MOMENT_ATTEMPT_RESTS;
    if (moment->kind == MOMENT_TASK_DECIDED || moment->kind == MOMENT_ATTEMPT_STARTED || again || rests)
        step->due_ms = moment->due_ms;
    if (again && moment->engine > step->engine) step->engine = moment->engine;
    if (moment->kind == MOMENT_ATTEMPT_STARTED && moment->run_ref.len)
        return view_keep(view, moment->run_ref, &step->child_run);
    bool failed = moment->kind == MOMENT_ATTEMPT_FAILED || moment->kind == MOMENT_TASK_FAILED;
    if (failed) task->fault = moment->fault;
    return !failed || fault_keep(view->arena, &task->fault);
}

static void fold_loop(struct step_view *step, const struct moment *moment)
{
    struct loop_view *loop = &step->loop;
    if (moment->kind == MOMENT_LOOP_STARTED) {
        loop->known = true;
        loop->total = moment->counts.total;
    }
    loop->started += moment->kind == MOMENT_ITERATION_STARTED;
    loop->done += moment->kind == MOMENT_ITERATION_DONE;
    loop->failed += moment->kind == MOMENT_ITERATION_FAILED;
}

static bool fold_admitted(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    const struct json *allow = json_get(&moment->value, STR("allow"));
    if (!json_is(allow, JSON_BOOL) || allow->boolean) return true;
    struct moment skipped = {.kind = MOMENT_STEP_SKIPPED,
                             .step = moment->step,
                             .at_ms = moment->at_ms,
                             .reason = STR(SKIP_CONDITION_FALSE),
                             .detail = STR("not admitted")};
    return view_fold_skipped(view, step, &skipped);
}

bool view_fold_playbook(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    step->visit = moment->visit;
    if (!fold_wait(view, step, moment)) return false;
    if (moment->kind == MOMENT_EVENT_AWAITED && !view_fold_awaited(view, step, moment)) return false;
    if (moment->task.len) return fold_task(view, step, moment);
    if (moment->kind == MOMENT_ADMIT_EVALUATED) return fold_admitted(view, step, moment);
    fold_loop(step, moment);
    return true;
}

static const char visit_part[] = ":run:";

// Composed here and not in an arena: a loop tells thousands of moments of one step.
struct str view_visit_id(const struct moment *moment, char text[VIEW_ID_MAX])
{
    enum { PART = sizeof(visit_part) - 1, DIGITS_MAX = 10 };
    size_t len = moment->step.len;
    if (moment->visit <= 1 || len + PART + DIGITS_MAX > VIEW_ID_MAX) return moment->step;
    memcpy(text, moment->step.ptr, len);
    memcpy(text + len, visit_part, PART);
    len += PART;
    size_t digits = 1;
    for (uint32_t n = moment->visit; n >= 10; n /= 10) digits++;
    uint32_t n = moment->visit;
    for (size_t i = digits; i > 0; i--, n /= 10) text[len + i - 1] = (char)('0' + n % 10);
    return (struct str){text, len + digits};
}

struct str view_visit_name(struct str id)
{
    size_t at = id.len;
    while (at > 0 && id.ptr[at - 1] >= '0' && id.ptr[at - 1] <= '9') at--;
    struct str before = str_slice(id, 0, at);
    return at < id.len && str_ends(before, str_from(visit_part)) ? str_slice(id, 0, at - (sizeof(visit_part) - 1)) : id;
}
