// Attempts that another system carries: they are held until it brings them, or says what came of them.
#include "worker/inside.h"

enum { TASK_MAX = 64 << 20 };

bool attempt_hold(struct attempt *attempt, const struct remote_task *task)
{
    struct buf text SCOPED(buf_release) = buf_of(TASK_MAX);
    remote_task_write(&text, &task->request, task->token, task->lease_ms);
    attempt->task = buf_ok(&text) ? arena_copy(&attempt->arena, buf_str(&text)) : (struct str){0};
    return attempt->task.ptr != NULL;
}

// From now on it is as any other that runs, and nobody else can begin it. NULL: it is not held.
static struct attempt *take_held(struct worker *worker, uint64_t ticket)
{
    LOCKED(&worker->mutex);
    struct attempt *attempt = attempt_with(worker, ticket);
    if (!attempt || attempt->state != ATTEMPT_HELD) return NULL;
    attempt->state = ATTEMPT_RUNNING;
    return attempt;
}

bool worker_begin(struct worker *worker, uint64_t ticket)
{
    struct attempt *attempt = take_held(worker, ticket);
    if (!attempt) return false;
    struct remote_task task;
    struct error err = {0};
    if (remote_task_read(attempt->task, &attempt->arena, &task, &err)) {
        worker_say(worker, true, "a step could not begin: %s", err.message);
        attempt_ended(worker, &(struct tool_result){.ticket = ticket, .lost = true});
        return true;
    }
    task.request.ticket = ticket;
    attempt_execute(worker, attempt, &task.request);
    return true;
}

bool worker_end(struct worker *worker, uint64_t ticket, struct tool_result *result)
{
    if (!take_held(worker, ticket)) {
        tool_result_free(result);
        return false;
    }
    result->ticket = ticket;
    attempt_ended(worker, result);
    return true;
}

bool worker_lose(struct worker *worker, uint64_t ticket)
{
    if (take_held(worker, ticket)) {
        attempt_ended(worker, &(struct tool_result){.ticket = ticket, .lost = true});
        return true;
    }
    pthread_mutex_lock(&worker->mutex);
    struct attempt *attempt = attempt_with(worker, ticket);
    bool running = attempt && attempt->state == ATTEMPT_RUNNING && !attempt->stopping;
    struct tools *tools = running ? attempt->tools : NULL;
    if (running) attempt->losing = attempt->stopping = true;
    pthread_mutex_unlock(&worker->mutex);
    if (tools) tools->ops->cancel(tools, ticket, 0);
    return running;
}

void worker_hold(struct worker *worker, bool hold)
{
    LOCKED(&worker->mutex);
    if (worker->holding == hold) return;
    worker->holding = hold;
    for (size_t i = 0; i < worker->channel_count; i++) pthread_cond_broadcast(&worker->channels[i].room);
}

void held_cancel(struct worker *worker, uint64_t ticket)
{
    struct tool_result result = {.ticket = ticket};
    result.fault = (struct fault){.code = STR("CANCELLED"), .message = STR("cancelled before it began")};
    if (take_held(worker, ticket)) attempt_ended(worker, &result);
}

void attempt_over(const struct worker *worker, const struct attempt *attempt, enum remote_state state)
{
    const struct worker_carrier *carrier = worker->options.carrier;
    if (carrier) carrier->over(carrier->context, attempt_ticket(worker, attempt), &attempt->result, state);
}
