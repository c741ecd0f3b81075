// A whole view, copied: snapshots share nothing with the one that they were made of.
#include "view/internal.h"

#include <string.h>

static bool copy_attempts(struct run_view *to, const struct step_view *from, struct step_view *step)
{
    step->attempt_capacity = from->attempt_count;
    step->attempts = NULL;
    if (from->attempt_count == 0) return true;
    step->attempts = ARENA_ARRAY(to->arena, from->attempt_count, struct attempt_view);
    if (!step->attempts) return false;
    for (size_t i = 0; i < from->attempt_count; i++) {
        step->attempts[i] = from->attempts[i];
        if (!fault_keep(to->arena, &step->attempts[i].fault)) return false;
    }
    return true;
}

static bool copy_tasks(struct run_view *to, const struct step_view *from, struct step_view *step)
{
    step->task_capacity = from->task_count;
    step->tasks = NULL;
    if (from->task_count == 0) return true;
    step->tasks = ARENA_ARRAY(to->arena, from->task_count, struct task_view);
    if (!step->tasks) return false;
    for (size_t i = 0; i < from->task_count; i++) {
        step->tasks[i] = from->tasks[i];
        if (!ARENA_KEEP(to->arena, &step->tasks[i].label) || !fault_keep(to->arena, &step->tasks[i].fault)) return false;
    }
    return true;
}

static bool copy_waits(struct run_view *to, const struct step_view *from, struct step_view *step)
{
    step->wait_capacity = from->wait_count;
    step->waits = from->wait_count ? ARENA_ARRAY(to->arena, from->wait_count, uint32_t) : NULL;
    if (step->waits) memcpy(step->waits, from->waits, from->wait_count * sizeof(*step->waits));
    return step->waits || from->wait_count == 0;
}

static bool copy_step(struct run_view *to, const struct step_view *from, struct step_view *step)
{
    *step = *from;
    return ARENA_KEEP(to->arena, &step->id, &step->skip_reason, &step->skip_detail, &step->child_run, &step->event_name,
                      &step->event_correlation, &step->actor, &step->reused_from) &&
           fault_keep(to->arena, &step->fault) && json_keep(to->arena, &step->value) && json_keep(to->arena, &step->artifacts) &&
           copy_attempts(to, from, step) && copy_tasks(to, from, step) && copy_waits(to, from, step);
}

static bool copy_steps(const struct run_view *from, struct run_view *to)
{
    to->step_capacity = from->step_count;
    to->steps = NULL;
    if (from->step_count == 0) return true;
    to->steps = ARENA_ARRAY(to->arena, from->step_count, struct step_view);
    if (!to->steps) return false;
    for (size_t i = 0; i < from->step_count; i++) {
        if (!copy_step(to, &from->steps[i], &to->steps[i]) ||
            !map_put(&to->step_index, to->steps[i].id, (uint32_t)i, NULL))
            return false;
    }
    return true;
}

bool view_copy(const struct run_view *from, struct arena *arena, struct run_view *to)
{
    *to = *from;
    to->arena = arena;
    map_init(&to->step_index, arena);
    return ids_keep(arena, &to->ids) && start_keep(arena, &to->start, NULL, 0) && fault_keep(arena, &to->fault) &&
           ARENA_KEEP(arena, &to->failed_step, &to->cancel_reason, &to->cancel_actor, &to->pause_actor, &to->pause_reason) &&
           copy_steps(from, to);
}
