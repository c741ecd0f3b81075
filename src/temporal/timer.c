// What a run waits for by the clock is a timer of its workflow, too: people see it there, and a task comes when it is due. The engine keeps
// the time itself; a timer of Temporal that fires early, late or not at all changes nothing.
#include "temporal/inside.h"

#include "base/civil.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_MS = 5000, MOST = 100 }; // what is over sooner is not worth three events of history; of one run at a time

static const char *kind_name(enum timer_kind kind)
{
    return kind == TIMER_RETRY ? "retry" : "wait";
}

void hosted_timers_free(struct hosted *run)
{
    for (size_t i = 0; i < run->awaited_count; i++) free(run->awaited[i]);
    free(run->awaited);
    run->awaited = NULL;
    run->awaited_count = 0;
}

static struct awaited *awaited_new(const struct engine_timer *timer)
{
    struct buf id = buf_of(TEMPORAL_ID_MAX), summary = buf_of(TEMPORAL_ID_MAX);
    char due[CIVIL_SIZE];
    civil_format(timer->due_ms, due);
    buf_printf(&id, "%s:%.*s:%u@%lld", kind_name(timer->kind), STR_ARG(timer->step), timer->logical, (long long)timer->due_ms);
    buf_printf(&summary, "%.*s: %s until %s", STR_ARG(timer->step), kind_name(timer->kind), due);
    struct awaited *made = buf_ok(&id) && buf_ok(&summary) ? calloc(1, sizeof(*made) + id.len + summary.len + 2) : NULL;
    if (made) {
        memcpy(made->text, id.ptr, id.len);
        memcpy(made->text + id.len + 1, summary.ptr, summary.len);
        made->id = (struct str){made->text, id.len};
        made->summary = (struct str){made->text + id.len + 1, summary.len};
        made->due_ms = timer->due_ms;
    }
    buf_release(&id);
    buf_release(&summary);
    return made;
}

static struct awaited *awaited_as(const struct hosted *run, struct str id)
{
    for (size_t i = 0; i < run->awaited_count; i++)
        if (str_eq(run->awaited[i]->id, id)) return run->awaited[i];
    return NULL;
}

void hosted_timers(struct temporal_host *host, struct hosted *run)
{
    struct arena arena = arena_of(4096, (size_t)8 << 20);
    struct engine_timer *timers = NULL;
    size_t count = 0, used = 0;
    int64_t now = os_now().wall_ms;
    if (!host->engine || !engine_timers(host->engine, run->tenant, run->run, &arena, &timers, &count)) count = 0;
    struct awaited **list = count > 0 ? calloc(count, sizeof(*list)) : NULL;
    for (size_t i = 0; list && i < count && used < MOST; i++) {
        bool shown = timers[i].kind == TIMER_RETRY || timers[i].kind == TIMER_WAKE;
        struct awaited *made = shown && timers[i].due_ms - now >= LEAST_MS ? awaited_new(&timers[i]) : NULL;
        const struct awaited *known = made ? awaited_as(run, made->id) : NULL;
        if (known) made->is_set = known->is_set;
        if (made) list[used++] = made;
    }
    hosted_timers_free(run);
    run->awaited = list;
    run->awaited_count = used;
    arena_release(&arena);
}
