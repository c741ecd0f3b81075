#include "temporal/inside.h"

#include "remote/remote.h"
#include "temporal/parcel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_MS = 30000, HISTORY_MAX = 1000, READERS = 4, LOOK_MS = 3000 };

static struct temporal_host *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct temporal_host, base);
}

static void end_cancelled(struct temporal_host *host, struct hosted *run, struct wanted *wanted, const char *why)
{
    struct tool_result result = {.fault = {.code = STR("CANCELLED"), .message = str_from(why)}};
    INVARIANT(wanted->is_cancelled);
    wanted_end(host, run, wanted, &result);
}

void hosted_settle(struct temporal_host *host, struct hosted *run)
{
    if (run->has_left) {
        if (run->task) task_hand_back(host, run);
        hosted_forget(host, run);
        hosted_drop(host, run);
        return;
    }
    if (run->is_closed) { // nobody executes anything of it any more
        hosted_task_free(run->task);
        run->task = NULL;
        hosted_forget(host, run);
        pthread_cond_broadcast(&host->settled);
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

void hosted_place(struct temporal_host *host, struct hosted *run)
{
    run->has_left = false;
    if (run->is_placed || !host->engine) return;
    run->shard = engine_shard(host->engine, run->tenant, run->run);
    run->is_placed = true;
    if (run->shard > 0 || host->serves_shardless) return;
    host->keeps_shardless = host->serves_shardless = true; // who has the duty of those without a shard may change, and they stay here
    posts_look(host);
}

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
        wanted->activity = put_text(&at, activity);
        wanted->type = put_text(&at, type);
        wanted->queue = put_text(&at, queue);
        wanted->input = put_text(&at, buf_str(&input));
        wanted->summary = put_text(&at, summary);
        wanted->artifacts_dir = put_text(&at, request->artifacts_dir);
        wanted->log = put_text(&at, request->log);
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
        hosted_place(host, run);
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

// Whether the engine has let go of the run, which has not ended.
static bool has_left(const struct temporal_host *host, const struct hosted *run)
{
    return host->engine && !run->has_ended && !engine_run(host->engine, run->tenant, run->run);
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
                if (has_left(host, run)) { // it is for another engine, which claims it
                    wanted_end(host, run, wanted, &(struct tool_result){.lost = true});
                    continue;
                }
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
        if (!run->has_left) hosted_place(host, run);
        run->is_driven = host->engine && (run->has_ended || engine_is_driven(host->engine, run->tenant, run->run));
        hosted_timers(host, run);
        hosted_touch(host, run);
        if (run->is_driven || run->has_left || !host->engine) continue;
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
                                        : hosted_known(host, state->ids.tenant, state->ids.run);
    if (run) moved(host, run);
    if (run && (begins || ends)) {
        hosted_place(host, run);
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
    if (run) hosted_place(host, run);
    if (run) moved(host, run);
    if (run) hosted_touch(host, run);
    pthread_mutex_unlock(&host->mutex);
}

void temporal_host_left(struct temporal_host *host, struct str tenant, struct str name)
{
    LOCKED(&host->mutex);
    struct hosted *run = hosted_known(host, tenant, name);
    if (!run || !host->engine) return;
    run->has_left = true;
    while (run->wanted) wanted_end(host, run, run->wanted, &(struct tool_result){.lost = true}); // the engine knows none of these any more
    hosted_timers_free(run);
    if (run->task) task_hand_back(host, run);
    hosted_touch(host, run);
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
    host->last_letter = &host->letters;
    host->heartbeat_ms = options->settings.heartbeat_s ? (int64_t)options->settings.heartbeat_s * 1000 : HEARTBEAT_MS;
    host->history_max = options->settings.history_events ? options->settings.history_events : HISTORY_MAX;
    if (host->options.readers == 0) host->options.readers = READERS;
    if (host->options.readers > HOST_READERS_MAX) host->options.readers = HOST_READERS_MAX;
    arena_init(&host->arena, 4096, 1 << 20);
    INVARIANT(pthread_mutex_init(&host->mutex, NULL) == 0 && pthread_mutex_init(&host->store_mutex, NULL) == 0);
    os_condition(&host->changed);
    os_condition(&host->pack);
    os_condition(&host->mailed);
    os_condition(&host->settled);
    struct store_options store = {.mode = STORE_READ, .contract = options->contract, .entropy = os_entropy()};
    enum code rc = store_open(options->store, &store, &host->store, err);
    if (!rc) rc = temporal_open(&options->settings, &host->client, err);
    if (!rc) host->base_queue = temporal_settings_of(host->client)->queue;
    if (!rc) rc = posts_init(host, err);
    if (!rc) rc = check_namespace(host, err);
    if (!rc && options->settings.searchable) rc = temporal_attributes_look(host->client, err);
    if (rc)
        temporal_host_free(host);
    else
        *out = host;
    return rc;
}

enum code temporal_host_attach(struct temporal_host *host, struct engine *engine, struct error *err)
{
    pthread_mutex_lock(&host->mutex);
    host->engine = engine;
    host->is_polling = true;
    pthread_mutex_unlock(&host->mutex);
    size_t wanted = 1 + HOST_PACKERS + host->options.readers;
    for (size_t i = 0; i < wanted && host->thread_count == i; i++) {
        void *(*body)(void *) = i == 0 ? host_keep : i <= HOST_PACKERS ? host_pack : host_read;
        host->thread_count += os_thread(&host->threads[i], NULL, body, host) == 0;
    }
    return host->thread_count == wanted ? OK : error_set(err, E_LIMIT, "no thread can be made");
}

const struct temporal_settings *temporal_host_settings(const struct temporal_host *host)
{
    return temporal_settings_of(host->client);
}

enum code temporal_host_only(struct temporal_host *host, struct str run, struct error *err)
{
    host->queues[0] = arena_format(&host->arena, "%.*s.runs.%.*s", STR_ARG(host->base_queue), STR_ARG(run));
    return host->queues[0].ptr ? OK : error_nomem(err);
}

static bool is_closing(const struct temporal_host *host)
{
    for (size_t i = 0; i < HOST_TABLE; i++)
        for (const struct hosted *run = host->table[i]; run; run = run->next)
            if (run->has_ended && !run->is_closed) return true;
    return false;
}

bool temporal_host_settle(struct temporal_host *host, int64_t most_ms)
{
    int64_t until = os_now().mono_ms + most_ms;
    bool closed;
    {
        LOCKED(&host->mutex);
        while (is_closing(host) && os_wait_until(&host->settled, &host->mutex, until)) continue;
        closed = !is_closing(host);
    }
    if (closed) host_sweep_values(host);
    return closed;
}

void temporal_host_shut(struct temporal_host *host)
{
    pthread_mutex_lock(&host->mutex);
    bool before = atomic_exchange(&host->is_shut, true);
    host->engine = NULL;
    pthread_cond_broadcast(&host->changed);
    pthread_cond_broadcast(&host->pack);
    pthread_cond_broadcast(&host->mailed);
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
    pthread_cond_destroy(&host->mailed);
    pthread_cond_destroy(&host->settled);
    posts_free(host);
    pthread_mutex_destroy(&host->store_mutex);
    pthread_mutex_destroy(&host->mutex);
    arena_release(&host->arena);
    free(host);
}
