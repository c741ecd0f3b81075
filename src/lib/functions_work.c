// Attempts on their way: tokens, the queue and its workers, the clock, deliveries.
#include "lib/functions_inside.h"

#include "base/civil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STALL_MS = 10 };

void task_free(struct host_call *task)
{
    if (!task) return;
    if (!task->notice) step_log_release(&task->log);
    free(task);
}

void functions_drop(struct functions *f)
{
    bool last = --f->references == 0;
    pthread_mutex_unlock(&f->mutex);
    if (!last) return;
    for (struct kind *kind = f->kinds; kind;) {
        struct kind *next = kind->next;
        if (kind->given.release) kind->given.release(kind->given.context);
        free(kind);
        kind = next;
    }
    heap_release(&f->timers);
    free(f->slots);
    pthread_cond_destroy(&f->work);
    pthread_cond_destroy(&f->clock);
    pthread_cond_destroy(&f->idle);
    pthread_mutex_destroy(&f->mutex);
    void (*freed)(void *owner) = f->freed;
    void *owner = f->owner;
    free(f);
    if (freed) freed(owner);
}

static bool start_thread(struct functions *f, void *(*body)(void *))
{
    pthread_t thread;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    f->references++;
    bool started = os_thread(&thread, &attr, body, f) == 0;
    if (!started) f->references--;
    pthread_attr_destroy(&attr);
    return started;
}

// ---- tokens

struct host_call *slot_find(const struct functions *f, uint64_t token)
{
    uint64_t index = token & UINT32_MAX;
    if (index >= f->slot_count || f->slots[index].generation != (uint32_t)(token >> 32)) return NULL;
    return f->slots[index].task;
}

bool slot_take(struct functions *f, struct host_call *task)
{
    uint32_t index = f->free_slot;
    if (index != UINT32_MAX) {
        f->free_slot = f->slots[index].next_free;
    } else {
        if (!LIST_ROOM(f->slots, f->slot_count, &f->slot_capacity)) return false;
        index = f->slot_count++;
        f->slots[index] = (struct call_slot){.generation = 1};
    }
    f->slots[index].task = task;
    task->slot = index;
    task->attempt.token = ((uint64_t)f->slots[index].generation << 32) | index;
    return true;
}

void slot_leave(struct functions *f, struct host_call *task)
{
    struct call_slot *slot = &f->slots[task->slot];
    slot->task = NULL;
    slot->generation++;
    slot->next_free = f->free_slot;
    f->free_slot = task->slot;
}

// ---- the end of an attempt

static void look_later(struct functions *f);

static void end_log(struct host_call *task, const struct tool_result *result)
{
    struct buf how SCOPED(buf_release) = buf_of(8192);
    if (result->ok)
        buf_text(&how, "done");
    else
        buf_printf(&how, "%.*s: %.*s", STR_ARG(result->fault.code), STR_ARG(result->fault.message));
    step_log_end(&task->log, buf_str(&how));
}

static void deliver(struct functions *f, struct host_call *task, struct tool_result *result)
{
    heap_remove(&f->timers, &task->timer);
    slot_leave(f, task);
    task->over = true;
    result->ticket = task->ticket;
    end_log(task, result);
    result->duration_ms = task->started_ms > 0 ? os_now().mono_ms - task->started_ms : 0;
    if (f->deliver)
        f->deliver(f->context, result);
    else
        tool_result_free(result);
    if (!task->running && !task->waiting) task_free(task);
}

static void deliver_fault(struct functions *f, struct host_call *task, const char *code, bool retryable,
                          const char *message)
{
    struct cairn_result told = {.answer = CAIRN_FAIL, .code = code, .message = message, .retryable = retryable};
    struct tool_result result = {0};
    INVARIANT(result_fill(&result, &told)); // a lost result would leave the run waiting for ever; dying recovers it
    if (strcmp(code, "TIMEOUT") == 0) result.fault.category = STR("timeout");
    deliver(f, task, &result);
}

enum code task_finish(struct functions *f, struct host_call *task, const struct cairn_result *result, struct error *err)
{
    struct tool_result out = {0};
    enum code rc = result_check(result, err);
    if (rc) return rc;
    if (!result_fill(&out, result)) return error_nomem(err);
    deliver(f, task, &out);
    return OK;
}

// ---- workers

static void answer(struct functions *f, struct host_call *task, enum cairn_answer answer, struct cairn_result *result)
{
    task->running = false;
    if (task->over) {
        task_free(task);
    } else if (answer == CAIRN_PENDING) {
        return; // waits in its slot for functions_complete
    } else {
        struct error err = {0};
        result->answer = answer;
        if (task_finish(f, task, result, &err)) deliver_fault(f, task, "RESULT_INVALID", false, err.message);
    }
}

static void tell_cancelled(struct functions *f, struct host_call *task)
{
    pthread_mutex_unlock(&f->mutex);
    if (task->kind->given.cancelled) task->kind->given.cancelled(task->kind->given.context, task->attempt.token);
    task_free(task);
    pthread_mutex_lock(&f->mutex);
}

static void call(struct functions *f, struct host_call *task)
{
    task->waiting = false;
    task->running = true;
    task->started_ms = os_now().mono_ms;
    if (task->attempt.timeout_ms > 0) task_timer(f, task, task->started_ms + task->attempt.timeout_ms);
    pthread_mutex_unlock(&f->mutex);
    struct cairn_result result = {.size = sizeof(result)};
    enum cairn_answer got = task->kind->given.run(task->kind->given.context, &task->attempt, &result);
    pthread_mutex_lock(&f->mutex);
    answer(f, task, got, &result);
    pthread_mutex_unlock(&f->mutex);
    result_release(&result);
    pthread_mutex_lock(&f->mutex);
}

static void *worker(void *context)
{
    struct functions *f = context;
    pthread_setname_np(pthread_self(), "cairn-worker");
    pthread_mutex_lock(&f->mutex);
    while (!f->closing) {
        struct host_call *task = f->first;
        if (!task) {
            f->idle_workers++;
            pthread_cond_wait(&f->work, &f->mutex);
            f->idle_workers--;
            continue;
        }
        f->first = task->next;
        if (!f->first) f->last = &f->first;
        f->waiting_count--;
        f->taken++;
        f->running++;
        if (task->notice)
            tell_cancelled(f, task);
        else
            call(f, task);
        f->running--;
        if (f->closing) pthread_cond_broadcast(&f->idle);
    }
    f->worker_count--;
    functions_drop(f);
    return NULL;
}

static bool more_workers(struct functions *f)
{
    if (f->worker_count >= f->worker_max || !start_thread(f, worker)) return false;
    f->worker_count++;
    return true;
}

void task_enqueue(struct functions *f, struct host_call *task)
{
    task->waiting = true;
    task->next = NULL;
    *f->last = task;
    f->last = &task->next;
    f->waiting_count++;
    if (f->idle_workers > 0) pthread_cond_signal(&f->work);
    // An idle worker that was woken counts as idle until it has the lock.
    if (f->waiting_count <= f->idle_workers) return;
    if (f->worker_count < f->eager_max)
        (void)more_workers(f);
    else if (f->worker_count < f->worker_max && f->look_at == 0)
        look_later(f);
}

void task_unqueue(struct functions *f, struct host_call *task)
{
    struct host_call **at = &f->first;
    while (*at != task) at = &(*at)->next;
    *at = task->next;
    if (!*at) f->last = at;
    f->waiting_count--;
    task->waiting = false;
}

// A pending attempt has died: the kind that meant to complete it is called, on a worker, because the caller holds locks.
static void notify(struct functions *f, const struct host_call *dead)
{
    if (!dead->kind->given.cancelled) return;
    struct host_call *task = calloc(1, sizeof(*task));
    if (!task) return; // its cairn_complete will be refused all the same
    task->kind = dead->kind;
    task->attempt.token = dead->attempt.token;
    task->notice = true;
    task_enqueue(f, task);
}

// ---- the clock

void task_expire(struct functions *f, struct host_call *task)
{
    char took[24], message[64];
    bool cancelled = task->cancelled, pending = task->started_ms > 0 && !task->running;
    duration_format(task->attempt.timeout_ms, took);
    if (cancelled)
        snprintf(message, sizeof(message), "cancelled");
    else
        snprintf(message, sizeof(message), FAULT_LATE, took);
    if (pending) notify(f, task);
    deliver_fault(f, task, cancelled ? "CANCELLED" : "TIMEOUT", !cancelled, message);
}

// The threads that run may be blocked for long: as many more as attempts wait.
static void look_for_standstill(struct functions *f)
{
    bool still = f->taken == f->taken_before;
    for (uint32_t i = f->idle_workers; still && i < f->waiting_count && more_workers(f); i++) {
    }
    f->look_at = 0;
    if (f->waiting_count > f->idle_workers && f->worker_count < f->worker_max) look_later(f);
}

static void *clock_thread(void *context)
{
    struct functions *f = context;
    pthread_setname_np(pthread_self(), "cairn-clock");
    pthread_mutex_lock(&f->mutex);
    while (!f->closing) {
        struct heap_node *node = heap_peek(&f->timers);
        int64_t now = os_now().mono_ms;
        if (node && node->due <= now) {
            task_expire(f, CONTAINER_OF(node, struct host_call, timer));
            continue;
        }
        if (f->look_at > 0 && f->look_at <= now) look_for_standstill(f);
        int64_t until = node ? node->due : now + 3600000;
        if (f->look_at > 0 && f->look_at < until) until = f->look_at;
        os_wait_until(&f->clock, &f->mutex, until);
    }
    functions_drop(f);
    return NULL;
}

void task_timer(struct functions *f, struct host_call *task, int64_t due_ms)
{
    heap_remove(&f->timers, &task->timer);
    INVARIANT(heap_push(&f->timers, &task->timer, due_ms));
    if (!f->has_clock) f->has_clock = start_thread(f, clock_thread);
    if (heap_peek(&f->timers) == &task->timer) pthread_cond_signal(&f->clock);
}

static void look_later(struct functions *f)
{
    f->taken_before = f->taken;
    f->look_at = os_now().mono_ms + STALL_MS;
    if (!f->has_clock) f->has_clock = start_thread(f, clock_thread);
    pthread_cond_signal(&f->clock);
}
