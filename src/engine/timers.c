// Timers: of durations, on the monotonic clock, and of moments of the day, on the wall clock wherever it is set to (I18).
#include "engine/inside.h"

#include <stdlib.h>

enum code set_timer(struct engine *engine, struct resident *resident, const struct effect *effect, struct error *err)
{
    struct timer *timer = calloc(1, sizeof(*timer));
    if (!timer) return error_nomem(err);
    *timer = (struct timer){.resident = resident,
                            .step = effect->step,
                            .logical = effect->logical,
                            .kind = effect->timer,
                            .of_day = effect->lasts_ms == 0,
                            .due_ms = effect->due_ms};
    struct heap *heap = timer->of_day ? &engine->alarms : &engine->timers;
    INVARIANT(effect->kind == EFFECT_TIMER && effect->timer && effect->lasts_ms >= 0);
    // A duration: what is left of it is measured on the wall clock once, here; from now on the monotonic clock counts (I18).
    int64_t left = effect->due_ms - engine->now.wall_ms;
    if (left > effect->lasts_ms) left = effect->lasts_ms; // the wall clock was set back since it began
    // Both clocks are cut to milliseconds at different phases: one more, so that nothing is early on either.
    int64_t due = engine->now.mono_ms + (left > 0 ? left + 1 : 0);
    if (!heap_push(heap, &timer->node, timer->of_day ? effect->due_ms : due)) {
        free(timer);
        return error_nomem(err);
    }
    timer->next = resident->timers;
    timer->link = &resident->timers;
    if (timer->next) timer->next->link = &timer->next;
    resident->timers = timer;
    return OK;
}

void timer_remove(struct engine *engine, struct timer *timer)
{
    INVARIANT(timer->link && *timer->link == timer);
    heap_remove(timer->of_day ? &engine->alarms : &engine->timers, &timer->node);
    *timer->link = timer->next;
    if (timer->next) timer->next->link = timer->link;
    free(timer);
}

static enum code take_due(struct engine *engine, const struct heap *heap, int64_t now_ms, struct error *err)
{
    for (struct heap_node *node = heap_peek(heap); node && node->due <= now_ms; node = heap_peek(heap)) {
        struct timer *timer = CONTAINER_OF(node, struct timer, node);
        INVARIANT(timer->resident && timer->of_day == (heap == &engine->alarms));
        struct queued *queued =
            queue_add(engine, timer->resident, timer->kind == TIMER_LOOK ? INPUT_RECOVER : INPUT_TIMER);
        if (!queued) return error_nomem(err);
        queued->input.step = timer->step;
        queued->input.logical = timer->logical;
        queued->input.timer = timer->kind;
        queued->input.due_ms = timer->due_ms;
        if (!timer->of_day) queued->since_mono = node->due; // also while the thread was in an append
        timer_remove(engine, timer);
    }
    return OK;
}

enum code timers_due(struct engine *engine, struct error *err)
{
    enum code rc = take_due(engine, &engine->timers, engine->now.mono_ms, err);
    return rc ? rc : take_due(engine, &engine->alarms, engine->now.wall_ms, err);
}

int64_t timers_deadline(const struct engine *engine)
{
    const struct heap_node *node = heap_peek(&engine->timers);
    int64_t due = node ? node->due : INT64_MAX;
    node = heap_peek(&engine->alarms);
    if (!node) return due;
    // As the clocks were in the last turn: the caller that waits looks into the inbox now and then, and turns, which looks again.
    int64_t left = node->due > engine->now.wall_ms ? node->due - engine->now.wall_ms : 0;
    return left < due - engine->now.mono_ms ? engine->now.mono_ms + left : due;
}

bool engine_is_driven(const struct engine *engine, struct str tenant, struct str run)
{
    const struct resident *resident = resident_find(engine, tenant, run);
    return resident && !resident->idle && !resident->needs_recover;
}

bool engine_timers(const struct engine *engine, struct str tenant, struct str run, struct arena *arena,
                   struct engine_timer **out, size_t *count)
{
    const struct resident *resident = resident_find(engine, tenant, run);
    size_t most = 0;
    *count = 0;
    for (const struct timer *timer = resident ? resident->timers : NULL; timer; timer = timer->next) most++;
    *out = ARENA_ARRAY(arena, most + 1, struct engine_timer);
    for (const struct timer *timer = resident ? resident->timers : NULL; *out && timer; timer = timer->next) {
        bool of_step = timer->kind == TIMER_RETRY || timer->kind == TIMER_WAKE;
        struct str path = of_step ? kernel_path(resident->run, timer->step, arena) : (struct str){"", 0};
        if (!path.ptr) return false;
        (*out)[(*count)++] =
            (struct engine_timer){.step = path, .logical = timer->logical, .kind = timer->kind, .due_ms = timer->due_ms};
    }
    return *out != NULL;
}
