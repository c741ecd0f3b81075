#include "temporal/inside.h"

#include "remote/remote.h"
#include "temporal/parcel.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_MS = 30000, HISTORY_MAX = 1000, POLLERS = 4, TEXT_MAX = 4096, LOOK_MS = 3000 };

static struct temporal_host *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct temporal_host, base);
}

// ---- the table

struct hosted *hosted_find(struct temporal_host *host, struct str id)
{
    struct hosted *run = host->table[str_hash(id) % HOST_TABLE];
    while (run && !str_eq(run->id, id)) run = run->next;
    return run;
}

static struct str put(char **at, struct str text)
{
    char *to = *at;
    if (text.len > 0) memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    *at = to + text.len + 1;
    return (struct str){to, text.len};
}

struct hosted *hosted_get(struct temporal_host *host, struct str tenant, struct str name)
{
    size_t size = 2 * (tenant.len + name.len) + 8;
    struct hosted *run = calloc(1, sizeof(*run) + size);
    if (!run) return NULL;
    char *at = run->text;
    run->tenant = put(&at, tenant);
    run->run = put(&at, name);
    run->id = (struct str){at, tenant.len + 1 + name.len};
    snprintf(at, tenant.len + name.len + 2, "%.*s/%.*s", STR_ARG(tenant), STR_ARG(name));
    struct hosted *known = hosted_find(host, run->id);
    if (known) {
        free(run);
        return known;
    }
    buf_init(&run->plan, TEXT_MAX);
    buf_init(&run->reason, TEXT_MAX);
    struct hosted **slot = &host->table[str_hash(run->id) % HOST_TABLE];
    run->next = *slot;
    *slot = run;
    return run;
}

static void wanted_free(struct wanted *wanted)
{
    free(wanted->packed);
    free(wanted);
}

struct wanted *wanted_find(const struct hosted *run, uint64_t ticket)
{
    struct wanted *wanted = run->wanted;
    while (wanted && wanted->ticket != ticket) wanted = wanted->next;
    return wanted;
}

static void hosted_free(struct hosted *run)
{
    while (run->wanted) {
        struct wanted *next = run->wanted->next;
        wanted_free(run->wanted);
        run->wanted = next;
    }
    hosted_task_free(run->task);
    hosted_timers_free(run);
    buf_release(&run->plan);
    buf_release(&run->reason);
    free(run);
}

void hosted_drop(struct temporal_host *host, struct hosted *run)
{
    bool busy = run->wanted || run->unsettled > 0 || run->calls > 0 || run->is_dirty || run->is_moved || run->task;
    if (busy || !run->has_ended || !run->is_closed) return;
    struct hosted **at = &host->table[str_hash(run->id) % HOST_TABLE];
    while (*at != run) at = &(*at)->next;
    *at = run->next;
    hosted_free(run);
}

void hosted_touch(struct temporal_host *host, struct hosted *run)
{
    if (run->is_dirty) return;
    run->is_dirty = true;
    run->next_dirty = host->dirty;
    host->dirty = run;
}

bool hosted_needs_task(const struct hosted *run)
{
    if (run->is_closed) return false;
    if (run->has_ended) return true;
    for (size_t i = 0; i < run->awaited_count; i++)
        if (!run->awaited[i]->is_set) return true;
    for (const struct wanted *wanted = run->wanted; wanted; wanted = wanted->next)
        if ((wanted->is_packed && !wanted->is_sent) || wanted->is_unread || (wanted->is_cancelled && !wanted->is_stopping)) return true;
    return false;
}

void hosted_task_free(struct task *task)
{
    if (!task) return;
    struct arena arena = task->arena;
    arena_release(&arena);
}

// ---- results on their way through the engine

struct handed {
    struct temporal_host *host;
    struct str id; // of the workflow
    bool is_stored;
    struct arena arena; // owns its texts, and this
};

static void settled(struct handed *handed)
{
    struct temporal_host *host = handed->host;
    struct hosted *run = hosted_find(host, handed->id);
    if (!run) return;
    INVARIANT(run->unsettled > 0);
    run->unsettled--;
    hosted_touch(host, run); // what the result has led to is dispatched before the flush of the same turn
}

static void handed_stored(void *memory)
{
    struct handed *handed = memory;
    pthread_mutex_lock(&handed->host->mutex);
    handed->is_stored = true;
    settled(handed);
    pthread_mutex_unlock(&handed->host->mutex);
}

void hosted_flush(struct temporal_host *host)
{
    while (host->dirty) {
        struct hosted *run = host->dirty;
        host->dirty = run->next_dirty;
        run->is_dirty = false;
        hosted_settle(host, run);
    }
}

// Not stored: it came too late, or the engine is ending. There may be no flush after it.
static void handed_release(void *memory)
{
    struct handed *handed = memory;
    struct temporal_host *host = handed->host;
    if (!handed->is_stored) {
        pthread_mutex_lock(&host->mutex);
        settled(handed);
        hosted_flush(host);
        pthread_mutex_unlock(&host->mutex);
    }
    struct arena arena = handed->arena;
    arena_release(&arena);
}

static bool copy_texts(struct arena *arena, struct tool_result *result)
{
    struct str *const texts[] = {&result->output,         &result->fault.code,   &result->fault.message,
                                 &result->fault.category, &result->fault.detail, &result->errors};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        *texts[i] = arena_copy(arena, *texts[i]);
        if (!texts[i]->ptr) return false;
    }
    return true;
}

static void unlink_wanted(struct hosted *run, const struct wanted *wanted)
{
    struct wanted **at = &run->wanted;
    while (*at != wanted) at = &(*at)->next;
    *at = wanted->next;
}

// The attempt is over: the engine hears of it, and the host forgets it. Without memory for the texts it is as good as lost.
void wanted_end(struct temporal_host *host, struct hosted *run, struct wanted *wanted, struct tool_result *result)
{
    uint64_t ticket = wanted->ticket;
    unlink_wanted(run, wanted);
    host->unpacked -= !wanted->is_packed;
    wanted_free(wanted);
    if (!host->engine) return;
    struct arena arena = arena_of(4096, (size_t)64 << 20);
    struct handed *handed = ARENA_NEW(&arena, struct handed);
    struct str id = handed ? arena_copy(&arena, run->id) : (struct str){0};
    struct tool_result out = *result;
    if (handed && id.ptr && copy_texts(&arena, &out)) {
        *handed = (struct handed){.host = host, .id = id, .arena = arena};
        out.memory = handed;
        out.stored = handed_stored;
        out.release = handed_release;
        run->unsettled++;
    } else {
        out = (struct tool_result){.lost = true};
        arena_release(&arena);
    }
    out.ticket = ticket;
    engine_deliver(host->engine, &out);
}

static void end_cancelled(struct temporal_host *host, struct hosted *run, struct wanted *wanted, const char *why)
{
    struct tool_result result = {.fault = {.code = STR("CANCELLED"), .message = str_from(why)}};
    INVARIANT(wanted->is_cancelled);
    wanted_end(host, run, wanted, &result);
}

void hosted_settle(struct temporal_host *host, struct hosted *run)
{
    if (run->is_closed) { // nobody executes anything of it any more
        hosted_task_free(run->task);
        run->task = NULL;
        for (struct wanted *wanted = run->wanted, *next; wanted; wanted = next) {
            next = wanted->next;
            if (wanted->is_cancelled) end_cancelled(host, run, wanted, "cancelled; its workflow has ended");
        }
        hosted_drop(host, run);
        return;
    }
    if (!run->is_started) {
        workflow_start(host, run);
        return;
    }
    if (run->task) {
        if (run->unsettled == 0) hosted_task_answer(host, run);
        return;
    }
    if (hosted_needs_task(run)) workflow_wake(host, run);
}

// ---- the side of the engine

static struct wanted *wanted_new(struct temporal_host *host, const struct tool_request *request, struct error *err)
{
    struct arena arena = arena_of(4096, (size_t)64 << 20);
    struct buf input = buf_of(TEMPORAL_LARGE_MAX);
    bool function = request->form == EXECUTOR_FUNCTION;
    struct str activity = arena_format(&arena, "%.*s:%u:%u", STR_ARG(request->step), request->logical, request->engine);
    struct str type = function ? request->function : arena_format(&arena, TEMPORAL_STEP_PREFIX "%.*s", STR_ARG(request->kind));
    struct str queue = temporal_activity_queue(host->base_queue, request->pool, &arena);
    struct str summary = request->logical > 1 || request->engine > 1
                             ? arena_format(&arena, "%.*s (attempt %u.%u)", STR_ARG(request->step), request->logical, request->engine)
                             : arena_copy(&arena, request->step);
    if (function)
        buf_add(&input, request->input.len > 0 ? request->input : STR("null"));
    else
        remote_task_write(&input, request, activity, host->heartbeat_ms);
    struct wanted *wanted = NULL;
    if (activity.len > TEMPORAL_ID_MAX)
        (void)error_set(err, E_LIMIT, "the path of the step is too long for Temporal: an id has at most %d bytes", TEMPORAL_ID_MAX);
    else if (function && input.len > TEMPORAL_VALUE_MAX) // its worker may be anybody's, who knows of no values
        (void)error_set(err, E_LIMIT, "PAYLOAD_TOO_LARGE: the function's input has more than %d bytes, which Temporal does not carry",
                        TEMPORAL_VALUE_MAX);
    else if (!buf_ok(&input))
        (void)error_set(err, E_LIMIT, "PAYLOAD_TOO_LARGE: the step's input has more than %d bytes", TEMPORAL_LARGE_MAX);
    else if (!activity.ptr || !type.ptr || !queue.ptr || !summary.ptr)
        (void)error_nomem(err);
    else
        wanted = calloc(1, sizeof(*wanted) + activity.len + type.len + queue.len + input.len + summary.len +
                               request->artifacts_dir.len + request->log.len + 7);
    if (wanted) {
        char *at = wanted->text;
        wanted->ticket = request->ticket;
        wanted->timeout_ms = request->timeout_ms;
        wanted->is_function = function;
        wanted->activity = put(&at, activity);
        wanted->step = str_slice(wanted->activity, 0, request->step.len);
        wanted->logical = request->logical;
        wanted->engine = request->engine;
        wanted->type = put(&at, type);
        wanted->queue = put(&at, queue);
        wanted->input = put(&at, buf_str(&input));
        wanted->summary = put(&at, summary);
        wanted->artifacts_dir = put(&at, request->artifacts_dir);
        wanted->log = put(&at, request->log);
        wanted->log_max = request->log_max;
        wanted->is_packed = function || (input.len <= TEMPORAL_INLINE_MAX && parcel_is_empty(wanted->artifacts_dir.ptr));
    } else if (!err->code) {
        (void)error_nomem(err);
    }
    buf_release(&input);
    arena_release(&arena);
    return wanted;
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct temporal_host *host = of(tools);
    struct wanted *wanted = wanted_new(host, request, err);
    if (!wanted) return err->code;
    pthread_mutex_lock(&host->mutex);
    struct hosted *run = atomic_load(&host->is_shut) ? NULL : hosted_get(host, request->tenant, request->run);
    if (run) {
        struct wanted **end = &run->wanted;
        while (*end) end = &(*end)->next;
        *end = wanted;
        if (!wanted->is_packed) {
            host->unpacked++;
            pthread_cond_signal(&host->pack);
        }
        hosted_touch(host, run);
    }
    pthread_mutex_unlock(&host->mutex);
    if (run) return OK;
    wanted_free(wanted);
    return atomic_load(&host->is_shut) ? error_set(err, E_CANCELLED, "closing") : error_nomem(err);
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    (void)grace_ms; // the worker's own
    struct temporal_host *host = of(tools);
    pthread_mutex_lock(&host->mutex);
    for (size_t i = 0; i < HOST_TABLE; i++)
        for (struct hosted *run = host->table[i]; run; run = run->next)
            for (struct wanted *wanted = run->wanted, *next; wanted; wanted = next) {
                next = wanted->next;
                if (wanted->ticket != ticket) continue;
                wanted->is_cancelled = true;
                if (!wanted->is_sent || run->is_closed)
                    end_cancelled(host, run, wanted, "cancelled before a worker took it");
                else
                    hosted_touch(host, run);
            }
    pthread_mutex_unlock(&host->mutex);
}

static void flush(struct tools *tools)
{
    struct temporal_host *host = of(tools);
    pthread_mutex_lock(&host->mutex);
    struct hosted *later = NULL;
    while (host->moved) {
        struct hosted *run = host->moved;
        host->moved = run->next_moved;
        run->is_moved = false;
        run->is_driven = host->engine && (run->has_ended || engine_is_driven(host->engine, run->tenant, run->run));
        hosted_timers(host, run);
        hosted_touch(host, run);
        if (run->is_driven || !host->engine) continue;
        run->is_moved = true; // looked at again by the next flush
        run->next_moved = later;
        later = run;
    }
    host->moved = later;
    hosted_flush(host);
    pthread_mutex_unlock(&host->mutex);
}

// With the lock: the turn may have set timers of it.
static void moved(struct temporal_host *host, struct hosted *run)
{
    if (run->is_moved) return;
    run->is_moved = true;
    run->next_moved = host->moved;
    host->moved = run;
}

static void close_tools(struct tools *tools)
{
    temporal_host_shut(of(tools));
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .flush = flush, .close = close_tools};

static struct hosted *known(struct temporal_host *host, struct str tenant, struct str name)
{
    struct buf id = buf_of(1024);
    buf_printf(&id, "%.*s/%.*s", STR_ARG(tenant), STR_ARG(name));
    struct hosted *run = buf_ok(&id) ? hosted_find(host, buf_str(&id)) : NULL;
    buf_release(&id);
    return run;
}

static void note_plan(struct hosted *run, const struct engine_event *event)
{
    const struct run_ids *ids = &event->state->ids;
    buf_clear(&run->plan);
    buf_printf(&run->plan, "%.*s", STR_ARG(ids->plan_id));
}

void temporal_host_event(struct temporal_host *host, const struct engine_event *event)
{
    const struct run *state = event->state;
    enum moment_kind kind = event->moment->kind;
    bool begins = kind == MOMENT_RUN_QUEUED || kind == MOMENT_RUN_STARTED || kind == MOMENT_RUN_REQUESTED;
    bool ends = kind == MOMENT_RUN_COMPLETED || kind == MOMENT_RUN_FAILED || kind == MOMENT_RUN_CANCELLED;
    pthread_mutex_lock(&host->mutex);
    struct hosted *run = begins || ends ? hosted_get(host, state->ids.tenant, state->ids.run)
                                        : known(host, state->ids.tenant, state->ids.run);
    if (run) moved(host, run);
    if (run && (begins || ends)) {
        note_plan(run, event);
        if (ends) {
            run->has_ended = true;
            run->outcome = kind == MOMENT_RUN_COMPLETED ? RUN_STATUS_COMPLETED
                           : kind == MOMENT_RUN_FAILED  ? RUN_STATUS_FAILED
                                                        : RUN_STATUS_CANCELLED;
            buf_clear(&run->reason);
            if (kind == MOMENT_RUN_FAILED) failure_told(&run->reason, event->moment->reason, &event->moment->fault);
        }
        hosted_touch(host, run);
    }
    pthread_mutex_unlock(&host->mutex);
}

void temporal_host_adopted(struct temporal_host *host, struct str tenant, struct str name)
{
    pthread_mutex_lock(&host->mutex);
    struct hosted *run = hosted_get(host, tenant, name);
    if (run) moved(host, run);
    if (run) hosted_touch(host, run);
    pthread_mutex_unlock(&host->mutex);
}

// ---- for the owner

struct tools *temporal_host_tools(struct temporal_host *host)
{
    return &host->base;
}

static enum code check_namespace(struct temporal_host *host, struct error *err)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct temporal_describe_namespace request = {.namespace = temporal_settings_of(host->client)->namespace};
    struct temporal_namespace answer;
    struct temporal_call call = {.method = TEMPORAL_METHOD("DescribeNamespace"),
                                 .in = &temporal_describe_namespace,
                                 .request = &request,
                                 .out = &temporal_namespace,
                                 .answer = &answer,
                                 .timeout_ms = LOOK_MS,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = TEMPORAL_CALL_MS};
    enum code rc = temporal_ask(host->client, &call, &arena, NULL, err);
    if (rc)
        error_wrap(err, "Temporal at %.*s, namespace %.*s", STR_ARG(temporal_settings_of(host->client)->address),
                   STR_ARG(request.namespace));
    arena_release(&arena);
    return rc;
}

enum code temporal_host_open(const struct temporal_host_options *options, struct temporal_host **out,
                             struct error *err)
{
    struct temporal_host *host = calloc(1, sizeof(*host));
    if (!host) return error_nomem(err);
    host->base.ops = &ops;
    host->options = *options;
    host->heartbeat_ms = options->settings.heartbeat_s ? (int64_t)options->settings.heartbeat_s * 1000 : HEARTBEAT_MS;
    host->history_max = options->settings.history_events ? options->settings.history_events : HISTORY_MAX;
    if (host->options.pollers == 0) host->options.pollers = POLLERS;
    if (host->options.pollers > HOST_POLLERS_MAX) host->options.pollers = HOST_POLLERS_MAX;
    arena_init(&host->arena, 1024, 1 << 20);
    INVARIANT(pthread_mutex_init(&host->mutex, NULL) == 0 && pthread_mutex_init(&host->store_mutex, NULL) == 0);
    os_condition(&host->changed);
    os_condition(&host->pack);
    struct store_options store = {.mode = STORE_READ, .contract = options->contract, .entropy = os_entropy()};
    enum code rc = store_open(options->store, &store, &host->store, err);
    if (!rc) rc = temporal_open(&options->settings, &host->client, err);
    if (!rc) host->base_queue = temporal_settings_of(host->client)->queue;
    if (!rc) host->runs_queue = temporal_runs_queue(host->base_queue, &host->arena);
    if (!rc && !host->runs_queue.ptr) rc = error_nomem(err);
    if (!rc) rc = check_namespace(host, err);
    if (rc)
        temporal_host_free(host);
    else
        *out = host;
    return rc;
}

enum code temporal_host_attach(struct temporal_host *host, struct engine *engine, struct error *err)
{
    sigset_t all, before;
    pthread_mutex_lock(&host->mutex);
    host->engine = engine;
    host->is_polling = true;
    pthread_mutex_unlock(&host->mutex);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    size_t wanted = 1 + HOST_PACKERS + host->options.pollers;
    for (size_t i = 0; i < wanted && host->thread_count == i; i++) {
        void *(*body)(void *) = i == 0 ? host_keep : i <= HOST_PACKERS ? host_pack : host_poll;
        host->thread_count += pthread_create(&host->threads[i], NULL, body, host) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return host->thread_count == wanted ? OK : error_set(err, E_LIMIT, "no thread can be made");
}

void temporal_host_shut(struct temporal_host *host)
{
    pthread_mutex_lock(&host->mutex);
    bool before = atomic_exchange(&host->is_shut, true);
    host->engine = NULL;
    pthread_cond_broadcast(&host->changed);
    pthread_cond_broadcast(&host->pack);
    pthread_mutex_unlock(&host->mutex);
    if (before) return;
    if (host->client) temporal_shut(host->client);
    for (size_t i = 0; i < host->thread_count; i++) pthread_join(host->threads[i], NULL);
}

void temporal_host_free(struct temporal_host *host)
{
    if (!host) return;
    temporal_host_shut(host);
    temporal_close(host->client);
    for (size_t i = 0; i < HOST_TABLE; i++)
        while (host->table[i]) {
            struct hosted *next = host->table[i]->next;
            hosted_free(host->table[i]);
            host->table[i] = next;
        }
    if (host->store) store_close(host->store);
    pthread_cond_destroy(&host->changed);
    pthread_cond_destroy(&host->pack);
    pthread_mutex_destroy(&host->store_mutex);
    pthread_mutex_destroy(&host->mutex);
    arena_release(&host->arena);
    free(host);
}
