#include "lib/functions.h"

#include "base/civil.h"
#include "base/heap.h"
#include "lib/inside.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FOREVER_MS INT64_C(315360000000) // ten years
enum { MESSAGE_MAX = 4096, STALL_MS = 10 };

struct kind {
    struct kind *next;
    struct cairn_kind given;
    char name[];
};

struct task {
    struct task *next; // of the waiting
    const struct kind *kind;
    uint64_t ticket;
    uint32_t slot;
    bool waiting, running;
    bool over;      // delivered, or nobody wants it: the token is dead
    bool cancelled; // asked to stop
    bool notice;    // not an attempt: tells the kind that a pending one is dead
    int64_t started_ms;
    struct heap_node timer;
    struct step_log log;
    struct cairn_attempt attempt;
    char text[];
};

struct slot {
    struct task *task; // NULL: free
    uint32_t generation, next_free;
};

struct functions { // shared: mutex inside
    struct tools base;
    pthread_mutex_t mutex;
    pthread_cond_t work, clock, idle;
    uint32_t references; // the owner and every thread
    bool closing;
    tool_deliver deliver; // NULL: nowhere
    tool_output output;
    void *context;
    struct kind *kinds;
    struct task *first, **last; // waiting
    struct slot *slots;
    uint32_t slot_count, slot_capacity, free_slot;
    uint32_t waiting_count, worker_count, worker_max, eager_max, idle_workers, running;
    uint64_t taken, taken_before; // by workers; until the last look whether they stand still
    int64_t look_at;              // when to look; 0: nothing to look for
    struct heap timers;
    bool has_clock;
    struct cairn_host host;
    void (*freed)(void *owner);
    void *owner;
};

static struct functions *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct functions, base);
}

static void task_free(struct task *task)
{
    if (!task) return;
    if (!task->notice) step_log_release(&task->log);
    free(task);
}

static void drop(struct functions *f) // unlocks
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
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    f->references++;
    bool started = pthread_create(&thread, &attr, body, f) == 0;
    if (!started) f->references--;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return started;
}

// ---- tokens

static struct task *find(const struct functions *f, uint64_t token)
{
    uint64_t index = token & UINT32_MAX;
    if (index >= f->slot_count || f->slots[index].generation != (uint32_t)(token >> 32)) return NULL;
    return f->slots[index].task;
}

static bool take_slot(struct functions *f, struct task *task)
{
    uint32_t index = f->free_slot;
    if (index != UINT32_MAX) {
        f->free_slot = f->slots[index].next_free;
    } else {
        if (f->slot_count == f->slot_capacity) {
            uint32_t capacity = f->slot_capacity ? f->slot_capacity * 2 : 64;
            struct slot *grown = realloc(f->slots, capacity * sizeof(*grown));
            if (!grown) return false;
            f->slots = grown;
            f->slot_capacity = capacity;
        }
        index = f->slot_count++;
        f->slots[index] = (struct slot){.generation = 1};
    }
    f->slots[index].task = task;
    task->slot = index;
    task->attempt.token = ((uint64_t)f->slots[index].generation << 32) | index;
    return true;
}

static void leave_slot(struct functions *f, struct task *task)
{
    struct slot *slot = &f->slots[task->slot];
    slot->task = NULL;
    slot->generation++;
    slot->next_free = f->free_slot;
    f->free_slot = task->slot;
}

// ---- the end of an attempt

static void set_timer(struct functions *f, struct task *task, int64_t due_ms);
static void look_later(struct functions *f);

// Copies the texts of a fault or an output into memory that the result owns. False: no memory.
static bool fill_result(struct tool_result *out, const struct cairn_result *result)
{
    // A text with a length need not end in NUL.
    bool measured = result->output && result->output_len > 0;
    struct str output = measured ? (struct str){result->output, result->output_len} : str_from(result->output);
    struct str code = str_from(result->code ? result->code : "FUNCTION_FAILED"), message = str_from(result->message);
    while (message.len > MESSAGE_MAX || (message.len > 0 && !str_utf8(message)))
        message.len = message.len > MESSAGE_MAX ? MESSAGE_MAX : message.len - 1; // never half a character
    struct str *texts[] = {&output, &code, &message};
    size_t size = 1;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) size += texts[i]->len + 1;
    char *at = malloc(size);
    if (!at) return false;
    out->memory = at;
    out->release = free;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        if (texts[i]->len > 0) memcpy(at, texts[i]->ptr, texts[i]->len);
        at[texts[i]->len] = '\0';
        texts[i]->ptr = at;
        at += texts[i]->len + 1;
    }
    out->is_json = true;
    out->ok = result->answer == CAIRN_DONE;
    if (out->ok)
        out->output = output;
    else
        out->fault =
            (struct fault){.code = code, .message = message, .category = {"", 0}, .retryable = result->retryable != 0};
    return true;
}

static void end_log(struct task *task, const struct tool_result *result)
{
    struct buf how;
    buf_init(&how, 8192);
    if (result->ok)
        buf_text(&how, "done");
    else
        buf_printf(&how, "%.*s: %.*s", STR_ARG(result->fault.code), STR_ARG(result->fault.message));
    step_log_end(&task->log, buf_str(&how));
    buf_release(&how);
}

static void deliver(struct functions *f, struct task *task, struct tool_result *result)
{
    heap_remove(&f->timers, &task->timer);
    leave_slot(f, task);
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

static void deliver_fault(struct functions *f, struct task *task, const char *code, bool retryable, const char *message)
{
    struct cairn_result told = {.answer = CAIRN_FAIL, .code = code, .message = message, .retryable = retryable};
    struct tool_result result = {0};
    INVARIANT(fill_result(&result, &told)); // a lost result would leave the run waiting for ever; dying recovers it
    if (strcmp(code, "TIMEOUT") == 0) result.fault.category = STR("timeout");
    deliver(f, task, &result);
}

// Words of ours must stand in events: UTF-8 without control characters, of bounded length.
static enum code check_result(const struct cairn_result *result, struct error *err)
{
    struct str code = str_from(result->code);
    if (result->answer != CAIRN_DONE && result->answer != CAIRN_FAIL)
        return error_set(err, E_INVALID, "a result is CAIRN_DONE or CAIRN_FAIL, not %d", (int)result->answer);
    bool word = code.len <= 64;
    for (size_t i = 0; i < code.len; i++)
        word = word && ((code.ptr[i] >= 'A' && code.ptr[i] <= 'Z') || (code.ptr[i] >= 'a' && code.ptr[i] <= 'z') ||
                        (code.ptr[i] >= '0' && code.ptr[i] <= '9') || strchr("_.-", code.ptr[i]));
    if (!word) return error_set(err, E_INVALID, "the code of a fault has up to 64 letters, digits, '_', '.' and '-'");
    if (!str_utf8(str_from(result->message))) return error_set(err, E_INVALID, "the message of a fault is not UTF-8");
    return OK;
}

static void release_result(const struct cairn_result *result)
{
    if (result->release) result->release(result->memory);
}

static enum code finish(struct functions *f, struct task *task, const struct cairn_result *result, struct error *err)
{
    struct tool_result out = {0};
    enum code rc = check_result(result, err);
    if (rc) return rc;
    if (!fill_result(&out, result)) return error_set(err, E_NOMEM, "out of memory");
    deliver(f, task, &out);
    return OK;
}

// ---- workers

static void answer(struct functions *f, struct task *task, enum cairn_answer answer, struct cairn_result *result)
{
    task->running = false;
    if (task->over) {
        task_free(task);
    } else if (answer == CAIRN_PENDING) {
        return; // waits in its slot for functions_complete
    } else {
        struct error err = {0};
        result->answer = answer;
        if (finish(f, task, result, &err)) deliver_fault(f, task, "RESULT_INVALID", false, err.message);
    }
}

static void tell_cancelled(struct functions *f, struct task *task)
{
    pthread_mutex_unlock(&f->mutex);
    if (task->kind->given.cancelled) task->kind->given.cancelled(task->kind->given.context, task->attempt.token);
    task_free(task);
    pthread_mutex_lock(&f->mutex);
}

static void call(struct functions *f, struct task *task)
{
    task->waiting = false;
    task->running = true;
    task->started_ms = os_now().mono_ms;
    if (task->attempt.timeout_ms > 0) set_timer(f, task, task->started_ms + task->attempt.timeout_ms);
    pthread_mutex_unlock(&f->mutex);
    struct cairn_result result = {.size = sizeof(result)};
    enum cairn_answer got = task->kind->given.run(task->kind->given.context, &task->attempt, &result);
    pthread_mutex_lock(&f->mutex);
    answer(f, task, got, &result);
    pthread_mutex_unlock(&f->mutex);
    release_result(&result);
    pthread_mutex_lock(&f->mutex);
}

static void *worker(void *context)
{
    struct functions *f = context;
    pthread_setname_np(pthread_self(), "cairn-worker");
    pthread_mutex_lock(&f->mutex);
    while (!f->closing) {
        struct task *task = f->first;
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
    drop(f);
    return NULL;
}

static bool more_workers(struct functions *f)
{
    if (f->worker_count >= f->worker_max || !start_thread(f, worker)) return false;
    f->worker_count++;
    return true;
}

static void enqueue(struct functions *f, struct task *task)
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

static void unqueue(struct functions *f, struct task *task)
{
    struct task **at = &f->first;
    while (*at != task) at = &(*at)->next;
    *at = task->next;
    if (!*at) f->last = at;
    f->waiting_count--;
    task->waiting = false;
}

// A pending attempt has died: whoever meant to complete it is told, on a worker, because the caller holds locks.
static void notify(struct functions *f, const struct task *dead)
{
    if (!dead->kind->given.cancelled) return;
    struct task *task = calloc(1, sizeof(*task));
    if (!task) return; // its cairn_complete will be refused all the same
    task->kind = dead->kind;
    task->attempt.token = dead->attempt.token;
    task->notice = true;
    enqueue(f, task);
}

// ---- the clock

static void expire(struct functions *f, struct task *task)
{
    char took[24], message[64];
    bool cancelled = task->cancelled, pending = task->started_ms > 0 && !task->running;
    duration_format(task->attempt.timeout_ms, took);
    snprintf(message, sizeof(message), "%s%s", cancelled ? "cancelled" : "timed out after ", cancelled ? "" : took);
    if (pending) notify(f, task);
    deliver_fault(f, task, cancelled ? "CANCELLED" : "TIMEOUT", !cancelled, message);
}

// Whoever runs may be blocked for long: as many threads more as attempts wait.
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
            expire(f, CONTAINER_OF(node, struct task, timer));
            continue;
        }
        if (f->look_at > 0 && f->look_at <= now) look_for_standstill(f);
        int64_t until = node ? node->due : now + 3600000;
        if (f->look_at > 0 && f->look_at < until) until = f->look_at;
        struct timespec time = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
        pthread_cond_timedwait(&f->clock, &f->mutex, &time);
    }
    drop(f);
    return NULL;
}

static void set_timer(struct functions *f, struct task *task, int64_t due_ms)
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

// ---- the tools

static char *put_text(char *at, struct str text, const char **out)
{
    if (text.len > 0) memcpy(at, text.ptr, text.len);
    at[text.len] = '\0';
    *out = at;
    return at + text.len + 1;
}

static struct task *task_new(const struct functions *f, const struct tool_request *request, const struct kind *kind)
{
    struct buf key;
    buf_init(&key, 1024);
    buf_printf(&key, "%.*s:%.*s:%u", STR_ARG(request->run), STR_ARG(request->step), request->logical);
    size_t size = request->run.len + request->step.len + request->input.len + request->artifacts_dir.len + key.len +
                  request->log.len + 6;
    struct task *task = buf_ok(&key) && !f->closing ? calloc(1, sizeof(*task) + size) : NULL;
    if (task) {
        struct cairn_attempt *attempt = &task->attempt;
        *attempt = (struct cairn_attempt){.size = sizeof(*attempt),
                                          .kind = kind->name,
                                          .input_len = request->input.len,
                                          .logical = request->logical,
                                          .engine = request->engine,
                                          .timeout_ms = request->timeout_ms};
        task->kind = kind;
        task->ticket = request->ticket;
        char *at = put_text(task->text, request->run, &attempt->run);
        at = put_text(at, request->step, &attempt->step);
        at = put_text(at, request->input, &attempt->input);
        at = put_text(at, request->artifacts_dir, &attempt->artifacts_dir);
        at = put_text(at, buf_str(&key), &attempt->key);
        const char *log;
        put_text(at, request->log, &log);
        step_log_init(&task->log, str_from(log), request->log_max);
    }
    buf_release(&key);
    return task;
}

static const struct kind *find_kind(const struct functions *f, struct str name)
{
    for (const struct kind *kind = f->kinds; kind; kind = kind->next)
        if (str_is(name, kind->name)) return kind;
    return NULL;
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct functions *f = of(tools);
    pthread_mutex_lock(&f->mutex);
    const struct kind *kind = find_kind(f, request->function);
    INVARIANT(kind); // engine_supports
    struct task *task = task_new(f, request, kind);
    enum code rc = OK;
    if (task && take_slot(f, task)) {
        enqueue(f, task);
        if (f->worker_count == 0) {
            unqueue(f, task);
            leave_slot(f, task);
            task_free(task);
            rc = error_set(err, E_LIMIT, "no thread can be made for functions");
        }
    } else {
        task_free(task);
        rc = error_set(err, E_NOMEM, "out of memory");
    }
    pthread_mutex_unlock(&f->mutex);
    return rc;
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    struct functions *f = of(tools);
    pthread_mutex_lock(&f->mutex);
    struct task *task = NULL;
    for (uint32_t i = 0; !task && i < f->slot_count; i++)
        if (f->slots[i].task && f->slots[i].task->ticket == ticket) task = f->slots[i].task;
    if (task) {
        task->cancelled = true;
        if (task->waiting) unqueue(f, task);
        if (task->running && grace_ms > 0)
            set_timer(f, task, os_now().mono_ms + grace_ms);
        else
            expire(f, task);
    }
    pthread_mutex_unlock(&f->mutex);
}

static void close_tools(struct tools *tools)
{
    functions_attach(of(tools), NULL);
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .close = close_tools};

// ---- for the owner

enum code functions_open(uint32_t workers, uint32_t eager, struct functions **out, struct error *err)
{
    struct functions *f = calloc(1, sizeof(*f));
    if (!f) return error_set(err, E_NOMEM, "out of memory");
    pthread_condattr_t attr;
    INVARIANT(pthread_mutex_init(&f->mutex, NULL) == 0 && pthread_condattr_init(&attr) == 0);
    INVARIANT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    INVARIANT(pthread_cond_init(&f->work, &attr) == 0 && pthread_cond_init(&f->clock, &attr) == 0 &&
              pthread_cond_init(&f->idle, &attr) == 0);
    pthread_condattr_destroy(&attr);
    f->base.ops = &ops;
    f->references = 1;
    f->last = &f->first;
    f->free_slot = UINT32_MAX;
    f->worker_max = workers > 0 ? workers : 4;
    f->eager_max = eager > 0 && eager < f->worker_max ? eager : f->worker_max;
    heap_init(&f->timers);
    plugin_host(f, &f->host);
    *out = f;
    return OK;
}

void functions_connect(struct functions *f, tool_deliver to, tool_output output, void *context)
{
    pthread_mutex_lock(&f->mutex);
    f->deliver = to;
    f->output = output;
    f->context = context;
    pthread_mutex_unlock(&f->mutex);
}

static void to_engine(void *engine, struct tool_result *result)
{
    engine_deliver(engine, result);
}

static void line_to_engine(void *engine, uint64_t ticket, bool is_stderr, struct str line)
{
    engine_line(engine, ticket, is_stderr, line);
}

void functions_attach(struct functions *f, struct engine *engine)
{
    functions_connect(f, engine ? to_engine : NULL, engine ? line_to_engine : NULL, engine);
}

struct tools *functions_tools(struct functions *f)
{
    return &f->base;
}

const struct cairn_host *functions_host(const struct functions *f)
{
    return &f->host;
}

bool functions_know(void *context, struct str name)
{
    struct functions *f = context;
    pthread_mutex_lock(&f->mutex);
    bool known = find_kind(f, name) != NULL;
    pthread_mutex_unlock(&f->mutex);
    return known;
}

size_t functions_names(struct functions *f, struct str *names, size_t max)
{
    size_t count = 0;
    pthread_mutex_lock(&f->mutex);
    for (const struct kind *kind = f->kinds; kind; kind = kind->next, count++)
        if (count < max) names[count] = str_from(kind->name);
    pthread_mutex_unlock(&f->mutex);
    return count;
}

enum code functions_add(struct functions *f, const struct cairn_kind *given, struct error *err)
{
    struct str name = str_from(given->name);
    if (!host_kind_valid(name))
        return error_set(err, E_INVALID, "\"%.*s\" cannot be the name of a function",
                         (int)(name.len > 64 ? 64 : name.len), name.ptr);
    if (given->size < offsetof(struct cairn_kind, run) + sizeof(given->run) || !given->run)
        return error_set(err, E_INVALID, "the kind \"%s\" has no function", given->name);
    struct kind *kind = calloc(1, sizeof(*kind) + name.len + 1);
    if (!kind) return error_set(err, E_NOMEM, "out of memory");
    memcpy(&kind->given, given, given->size < sizeof(*given) ? given->size : sizeof(*given));
    memcpy(kind->name, name.ptr, name.len);
    pthread_mutex_lock(&f->mutex);
    if (!find_kind(f, name)) {
        kind->next = f->kinds;
        f->kinds = kind;
        pthread_mutex_unlock(&f->mutex);
        return OK;
    }
    pthread_mutex_unlock(&f->mutex);
    free(kind);
    return error_set(err, E_EXISTS, "the kind \"%s\" is registered already", given->name);
}

enum code functions_complete(struct functions *f, uint64_t token, const struct cairn_result *given, struct error *err)
{
    struct cairn_result result = {0};
    if (!given || given->size < offsetof(struct cairn_result, code)) return error_set(err, E_INVALID, "no result");
    memcpy(&result, given, given->size < sizeof(result) ? given->size : sizeof(result));
    pthread_mutex_lock(&f->mutex);
    struct task *task = find(f, token);
    enum code rc = task ? finish(f, task, &result, err)
                        : error_set(err, E_CONFLICT,
                                    "the attempt is over: completed, timed out, cancelled, or of another process");
    pthread_mutex_unlock(&f->mutex);
    release_result(&result);
    return rc;
}

bool functions_cancelled(struct functions *f, uint64_t token)
{
    pthread_mutex_lock(&f->mutex);
    const struct task *task = find(f, token);
    bool cancelled = !task || task->cancelled || f->closing;
    pthread_mutex_unlock(&f->mutex);
    return cancelled;
}

void functions_log(struct functions *f, uint64_t token, struct str line)
{
    pthread_mutex_lock(&f->mutex);
    struct task *task = find(f, token);
    if (task && f->output) {
        step_log_take(&task->log, false, line);
        step_log_take(&task->log, false, STR("\n"));
        if (str_utf8(line)) f->output(f->context, task->ticket, false, line);
    }
    pthread_mutex_unlock(&f->mutex);
}

void functions_close(struct functions *f, int64_t timeout_ms)
{
    if (!f) return;
    int64_t until = os_now().mono_ms + (timeout_ms >= 0 && timeout_ms < FOREVER_MS ? timeout_ms : FOREVER_MS);
    struct timespec time = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
    pthread_mutex_lock(&f->mutex);
    f->deliver = NULL;
    f->output = NULL;
    f->closing = true;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        struct task *task = f->slots[i].task;
        if (!task) continue;
        heap_remove(&f->timers, &task->timer);
        leave_slot(f, task);
        task->over = true;
        if (!task->running && !task->waiting) task_free(task);
    }
    for (struct task *task = f->first; task;) {
        struct task *next = task->next;
        task_free(task);
        task = next;
    }
    f->first = NULL;
    f->last = &f->first;
    pthread_cond_broadcast(&f->work);
    pthread_cond_broadcast(&f->clock);
    while (f->running > 0 && pthread_cond_timedwait(&f->idle, &f->mutex, &time) == 0) {
    }
    pthread_mutex_unlock(&f->mutex);
}

void functions_free(struct functions *f, void (*freed)(void *owner), void *owner)
{
    if (!f) return;
    pthread_mutex_lock(&f->mutex);
    f->freed = freed;
    f->owner = owner;
    drop(f);
}
