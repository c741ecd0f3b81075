#include "equiv/arrivals.h"

#include <string.h>

static struct arrivals *arrivals_of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct arrivals, base);
}

// What the player looks at of a request.
static bool keep_request(struct arena *arena, const struct tool_request *from, struct tool_request *out)
{
    *out = (struct tool_request){.ticket = from->ticket,
                                 .run = from->run,
                                 .step = from->step,
                                 .form = from->form,
                                 .kind = from->kind,
                                 .logical = from->logical,
                                 .engine = from->engine,
                                 .function = from->function,
                                 .input = from->input,
                                 .timeout_ms = from->timeout_ms};
    struct tool_env *env = ARENA_ARRAY(arena, from->env_count + 1, struct tool_env);
    bool ok = env && ARENA_KEEP(arena, &out->run, &out->step, &out->kind, &out->function, &out->input);
    for (size_t i = 0; ok && i < from->env_count; i++) {
        env[i] = from->env[i];
        ok = ARENA_KEEP(arena, &env[i].name, &env[i].value);
    }
    out->env = env;
    out->env_count = from->env_count;
    return ok;
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct arrivals *arrivals = arrivals_of(tools);
    LOCKED(&arrivals->mutex);
    if (!ARENA_ROOM(&arrivals->arena, arrivals->requests, arrivals->request_count, &arrivals->request_capacity)) return error_nomem(err);
    if (!keep_request(&arrivals->arena, request, &arrivals->requests[arrivals->request_count])) return error_nomem(err);
    if (!ARENA_ROOM(&arrivals->arena, arrivals->open, arrivals->open_count, &arrivals->open_capacity)) return error_nomem(err);
    arrivals->open[arrivals->open_count++] = request->ticket;
    arrivals->request_count++;
    return OK;
}

static size_t open_at(const struct arrivals *arrivals, uint64_t ticket)
{
    size_t i = 0;
    while (i < arrivals->open_count && arrivals->open[i] != ticket) i++;
    return i;
}

void arrivals_over(struct arrivals *arrivals, uint64_t ticket)
{
    LOCKED(&arrivals->mutex);
    size_t at = open_at(arrivals, ticket);
    if (at < arrivals->open_count) arrivals->open[at] = arrivals->open[--arrivals->open_count];
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    (void)grace_ms;
    struct arrivals *arrivals = arrivals_of(tools);
    LOCKED(&arrivals->mutex);
    if (open_at(arrivals, ticket) == arrivals->open_count) return;
    for (size_t i = 0; i < arrivals->stop_count; i++)
        if (arrivals->stops[i] == ticket) return;
    if (ARENA_ROOM(&arrivals->arena, arrivals->stops, arrivals->stop_count, &arrivals->stop_capacity))
        arrivals->stops[arrivals->stop_count++] = ticket;
}

static void close_nothing(struct tools *tools)
{
    (void)tools;
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .close = close_nothing};

void arrivals_open(struct arrivals *arrivals)
{
    *arrivals = (struct arrivals){.base = {.ops = &ops}};
    INVARIANT(pthread_mutex_init(&arrivals->mutex, NULL) == 0);
    arena_init(&arrivals->arena, 16384, (size_t)1 << 30);
}

void arrivals_close(struct arrivals *arrivals)
{
    arena_release(&arrivals->arena);
    pthread_mutex_destroy(&arrivals->mutex);
}

void arrivals_clear(struct arrivals *arrivals)
{
    LOCKED(&arrivals->mutex);
    arena_reset(&arrivals->arena);
    arrivals->requests = NULL;
    arrivals->stops = arrivals->open = NULL;
    arrivals->open_count = arrivals->open_capacity = 0;
    arrivals->request_count = arrivals->request_capacity = arrivals->stop_count = arrivals->stop_capacity = arrivals->taken = 0;
}

struct arrivals_news arrivals_look(struct arrivals *arrivals)
{
    LOCKED(&arrivals->mutex);
    return (struct arrivals_news){.request_count = arrivals->request_count, .stop_count = arrivals->stop_count - arrivals->taken};
}

bool arrivals_take(struct arrivals *arrivals, struct arena *arena, struct arrivals_news *out)
{
    LOCKED(&arrivals->mutex);
    size_t stops = arrivals->stop_count - arrivals->taken;
    struct tool_request *requests = ARENA_ARRAY(arena, arrivals->request_count + 1, struct tool_request);
    uint64_t *stopped = ARENA_ARRAY(arena, stops + 1, uint64_t);
    bool ok = requests && stopped;
    for (size_t i = 0; ok && i < arrivals->request_count; i++) ok = keep_request(arena, &arrivals->requests[i], &requests[i]);
    if (!ok) return false;
    for (size_t i = 0; i < stops; i++) stopped[i] = arrivals->stops[arrivals->taken + i];
    *out = (struct arrivals_news){requests, stopped, arrivals->request_count, stops};
    arrivals->taken = arrivals->stop_count;
    arrivals->request_count = 0;
    return true;
}
