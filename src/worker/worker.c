#include "worker/inside.h"

#include "temporal/temporal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORAL_POLLS = 8 };       // at once: each brings one activity
enum { LOG_HELD_MAX = 16 << 20 }; // of one task, while the server is away

void worker_say(struct worker *worker, bool warning, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    worker->options.say(worker->options.context, warning, text);
}

// ---- attempts
uint64_t attempt_ticket(const struct worker *worker, const struct attempt *attempt)
{
    return ((uint64_t)attempt->generation << 32) | (uint64_t)(attempt - worker->attempts);
}

struct attempt *attempt_with(struct worker *worker, uint64_t ticket)
{
    size_t index = (size_t)(ticket & UINT32_MAX);
    if (index >= worker->options.slots) return NULL;
    struct attempt *attempt = &worker->attempts[index];
    return attempt->state != ATTEMPT_NONE && attempt->generation == (uint32_t)(ticket >> 32) ? attempt : NULL;
}

struct str attempt_token(struct worker *worker, uint64_t ticket, struct arena *arena, uint32_t *server)
{
    LOCKED(&worker->mutex);
    const struct attempt *attempt = attempt_with(worker, ticket);
    struct str token = attempt ? arena_copy(arena, attempt->token) : (struct str){0};
    if (attempt) *server = attempt->channel->server;
    return token;
}

static void attempt_free(struct channel *channel, struct attempt *attempt) // with the lock
{
    channel->done -= attempt->state == ATTEMPT_DONE;
    tool_result_free(&attempt->result);
    for (size_t i = 0; i < 2; i++) buf_release(&attempt->log[i]);
    arena_release(&attempt->arena);
    *attempt = (struct attempt){.channel = channel, .generation = attempt->generation + 1, .next = channel->free};
    channel->free = attempt;
    channel->busy--;
}

void attempts_free(struct channel *channel, struct attempt **attempts, size_t count)
{
    if (count == 0) return;
    for (size_t i = 0; i < count; i++)
        if (attempts[i]->has_dir) os_remove_tree(attempts[i]->dir.ptr);
    LOCKED(&channel->worker->mutex);
    for (size_t i = 0; i < count; i++) attempt_free(channel, attempts[i]);
    pthread_cond_signal(&channel->room);
}

void attempt_ended(struct worker *worker, struct tool_result *result)
{
    LOCKED(&worker->mutex);
    struct attempt *attempt = attempt_with(worker, result->ticket);
    if (attempt && attempt->state == ATTEMPT_RUNNING) {
        if (attempt->losing) {
            tool_result_free(result);
            *result = (struct tool_result){.ticket = result->ticket, .lost = true};
        }
        attempt->result = *result;
        attempt->state = ATTEMPT_DONE;
        if (attempt->channel->done++ == 0) pthread_cond_signal(&attempt->channel->results);
    } else {
        tool_result_free(result);
    }
}

static void on_result(void *context, struct tool_result *result)
{
    attempt_ended(context, result);
}

void worker_hand(struct worker *worker, struct tool_result *result)
{
    attempt_ended(worker, result);
}

static void on_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    struct worker *worker = context;
    LOCKED(&worker->mutex);
    struct attempt *attempt = attempt_with(worker, ticket);
    if (attempt && attempt->log_size + line.len + 1 <= attempt->log_max) {
        buf_add(&attempt->log[is_stderr], line);
        buf_byte(&attempt->log[is_stderr], '\n');
        attempt->log_size += line.len + 1;
    }
}

static void attempt_fail(struct worker *worker, struct attempt *attempt, const struct error *why)
{
    struct str message = arena_copy(&attempt->arena, str_from(why->message));
    struct tool_result result = {.ticket = attempt_ticket(worker, attempt)};
    result.fault = (struct fault){.code = STR("SPAWN_FAILED"),
                                  .message = message.ptr ? message : STR("out of memory"),
                                  .category = STR("infrastructure"),
                                  .retryable = true};
    on_result(worker, &result);
}

// It has not begun, for a reason that is none of its own: the engine orders it again.
static void attempt_lose(struct worker *worker, struct attempt *attempt, const struct error *why)
{
    struct tool_result result = {.ticket = attempt_ticket(worker, attempt), .lost = true};
    worker_say(worker, true, "a step could not begin: %s", why->message);
    on_result(worker, &result);
}

static struct str copy(struct attempt *attempt, struct str text)
{
    struct str kept = arena_copy(&attempt->arena, text);
    return kept.ptr ? kept : (struct str){"", 0};
}

// The step's own directory takes the place of the server's.
static enum code own_directory(struct worker *worker, struct attempt *attempt, struct tool_request *request, struct error *err)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%llu", worker->dir, (unsigned long long)request->ticket);
    if (mkdir(path, 0700) != 0) return os_errno(err, "make", path);
    attempt->dir = copy(attempt, str_from(path));
    attempt->has_dir = true;
    struct tool_env *env = ARENA_ARRAY(&attempt->arena, request->env_count + 1, struct tool_env);
    if (!env || attempt->dir.len == 0) return error_nomem(err);
    for (size_t i = 0; i < request->env_count; i++) {
        env[i] = request->env[i];
        if (str_is(env[i].name, "ARTIFACTS_DIR")) env[i].value = attempt->dir;
    }
    request->env = env;
    request->artifacts_dir = attempt->dir;
    return OK;
}

static bool keep_artifacts(struct attempt *attempt, const struct tool_request *request)
{
    struct artifact_decl *decls = ARENA_ARRAY(&attempt->arena, request->artifact_count + 1, struct artifact_decl);
    for (size_t i = 0; decls && i < request->artifact_count; i++) {
        decls[i].path = arena_copy(&attempt->arena, request->artifacts[i].path);
        if (!decls[i].path.ptr) decls = NULL;
    }
    attempt->artifacts = decls;
    attempt->artifact_count = decls ? request->artifact_count : 0;
    return decls != NULL;
}

// NULL: nobody here executes it.
static struct tools *tools_for(const struct worker *worker, const struct tool_request *request)
{
    const struct worker_options *options = &worker->options;
    if (options->tools) return options->tools;
    bool function = options->functions && functions_know(options->functions, request->kind);
    bool task = worker->tasks && task_kind_known(options->task->plugins, request->kind);
    struct executor_request asked = {.form = request->form, .kind = request->kind};
    if (asked.form == EXECUTOR_NONE) asked.form = function ? EXECUTOR_FUNCTION : EXECUTOR_TASK;
    asked.here = asked.form == EXECUTOR_PROCESS || (asked.form == EXECUTOR_FUNCTION ? function : task);
    switch (executor_choose(&asked, NULL).executor) {
    case EXECUTOR_PROCESS:
        return worker->tools;
    case EXECUTOR_TASK:
        return tasks_tools(worker->tasks);
    case EXECUTOR_FUNCTION:
        return functions_tools(options->functions);
    case EXECUTOR_NONE:
    case EXECUTOR_POOL:
        break;
    }
    return NULL;
}

// Whether the server may have given the task to another worker by now. The machine or this process may have slept since the poll.
static bool is_over(struct worker *worker, struct attempt *attempt, const struct tool_request *request)
{
    pthread_mutex_lock(&worker->mutex);
    bool over = os_boot_ms() >= attempt->lease_until;
    attempt->dropped = attempt->dropped || over;
    pthread_mutex_unlock(&worker->mutex);
    if (over)
        worker_say(worker, true, "the lease of %.*s/%.*s was over before it could begin: it is left to others",
                   STR_ARG(request->run), STR_ARG(request->step));
    return over;
}

void attempt_start(struct worker *worker, struct attempt *attempt, const struct remote_task *task, int64_t asked_ms)
{
    struct tool_request request = task->request;
    struct error err = {0};
    arena_init(&attempt->arena, 1024, (size_t)64 << 20);
    for (size_t i = 0; i < 2; i++) buf_init(&attempt->log[i], LOG_HELD_MAX);
    attempt->token = copy(attempt, task->token);
    attempt->epoch = request.epoch;
    attempt->lease_ms = task->lease_ms;
    attempt->log_max = request.log_max < LOG_HELD_MAX ? request.log_max : LOG_HELD_MAX;
    request.ticket = attempt_ticket(worker, attempt);
    const struct worker_carrier *carrier = worker->options.carrier;
    bool held = carrier && attempt_hold(attempt, task);
    // Before our lock: functions deliver with theirs held.
    struct tools *tools = tools_for(worker, &request);
    pthread_mutex_lock(&worker->mutex);
    attempt->since_ms = os_now().mono_ms;
    attempt->lease_until = (task->waited_ms < 0 ? os_boot_ms() : asked_ms + task->waited_ms) + task->lease_ms;
    attempt->tools = tools ? tools : worker->tools;
    attempt->state = held ? ATTEMPT_HELD : ATTEMPT_RUNNING;
    bool keeps = worker->temporal ? temporal_beats_soon(attempt) : attempt->channel->busy == 1; // else there was nothing to keep
    if (keeps) pthread_cond_signal(&attempt->channel->changed);
    held = held && carrier->taken(carrier->context, request.ticket, task); // before anybody can say that it is over
    if (!held) attempt->state = ATTEMPT_RUNNING;
    pthread_mutex_unlock(&worker->mutex);
    if (carrier && !held) {
        error_nomem(&err);
        attempt_lose(worker, attempt, &err);
    } else if (!carrier) {
        attempt_execute(worker, attempt, &request);
    }
}

void attempt_execute(struct worker *worker, struct attempt *attempt, struct tool_request *request)
{
    struct error err = {0};
    bool function = request->function.len > 0;
    if (request->home.len > 0 && !os_is_dir(copy(attempt, request->home).ptr))
        request->home = (struct str){0}; // the server's own
    enum code rc = OK;
    if (!tools_for(worker, request))
        rc = error_set(&err, E_UNSUPPORTED, "this worker does not execute \"%.*s\"", STR_ARG(request->kind));
    else if (!keep_artifacts(attempt, request))
        rc = error_nomem(&err);
    else if (!function || request->artifact_count > 0) // a function that declares none has no directory
        rc = own_directory(worker, attempt, request, &err);
    bool laid_out = rc || !worker->temporal || temporal_lay_out(worker, attempt, &err) == OK;
    if (!rc && laid_out && is_over(worker, attempt, request)) rc = error_set(&err, E_CANCELLED, "the lease is over");
    if (!rc && laid_out) rc = attempt->tools->ops->start(attempt->tools, request, &err);
    if (rc)
        attempt_fail(worker, attempt, &err);
    else if (!laid_out)
        attempt_lose(worker, attempt, &err);
}

// ---- from outside
static bool stopped(void *context)
{
    struct worker *worker = context;
    LOCKED(&worker->mutex);
    return worker->stopping;
}

static bool start_threads(struct worker *worker)
{
    void *(*const ours[])(void *) = {worker_poll, worker_beat, worker_send};
    void *(*const theirs[])(void *) = {temporal_poll_main, temporal_beat_main, temporal_send_main};
    void *(*const *bodies)(void *) = worker->temporal ? theirs : ours;
    size_t wanted = ARRAY_COUNT(ours) * worker->channel_count;
    for (size_t i = 0; i < wanted && worker->thread_count == i; i++)
        worker->thread_count += os_thread(&worker->threads[i], NULL, bodies[i % ARRAY_COUNT(ours)],
                                             &worker->channels[i / ARRAY_COUNT(ours)]) == 0;
    return worker->thread_count == wanted;
}

static bool make_channels(struct worker *worker)
{
    uint32_t servers = (uint32_t)worker->options.more_count + 1;
    if (worker->options.slots < servers) worker->options.slots = servers; // one for each at least
    uint32_t slots = worker->options.slots, count = (slots + REMOTE_BATCH_MAX - 1) / REMOTE_BATCH_MAX;
    if (count < servers) count = servers;
    if (worker->temporal && count < TEMPORAL_POLLS) count = slots < TEMPORAL_POLLS ? slots : TEMPORAL_POLLS;
    worker->attempts = calloc(slots, sizeof(*worker->attempts));
    worker->channels = calloc(count, sizeof(*worker->channels));
    if (!worker->attempts || !worker->channels) return false;
    for (uint32_t i = 0, first = 0; i < count; i++) {
        struct channel *channel = &worker->channels[i];
        uint32_t left = slots - first;
        *channel = (struct channel){.worker = worker,
                                    .attempts = worker->attempts + first,
                                    .slots = left / (count - i),
                                    .server = i % servers};
        first += channel->slots;
        pthread_cond_t *conditions[] = {&channel->room, &channel->results, &channel->changed};
        for (size_t k = 0; k < ARRAY_COUNT(conditions); k++) os_condition(conditions[k]);
        for (uint32_t k = channel->slots; k-- > 0; channel->free = &channel->attempts[k])
            channel->attempts[k] = (struct attempt){.channel = channel, .next = channel->free};
    }
    worker->channel_count = count;
    return true;
}

static void wake_channels(struct worker *worker) // with the lock
{
    for (size_t i = 0; i < worker->channel_count; i++) {
        pthread_cond_broadcast(&worker->channels[i].room);
        pthread_cond_broadcast(&worker->channels[i].results);
        pthread_cond_broadcast(&worker->channels[i].changed);
    }
}

static enum code open_tasks(struct worker *worker, struct error *err)
{
    struct task_options options = *worker->options.task;
    options.mark = worker->dir;
    options.process_max = worker->options.slots;
    options.confinement = worker->options.confinement;
    options.secrets = worker->options.secrets;
    options.results = (struct task_results){.read = worker->temporal ? temporal_no_result : worker_read_result, .context = worker};
    enum code rc = tasks_open(&options, &worker->tasks, err);
    if (!rc) tasks_connect(worker->tasks, on_result, on_line, worker);
    return rc;
}

static enum code prepare(struct worker *worker, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || strlen(tmp) > 30) tmp = "/tmp";
    snprintf(worker->dir, sizeof(worker->dir), "%s/cairn-worker.XXXXXX", tmp);
    if (!mkdtemp(worker->dir)) {
        worker->dir[0] = '\0';
        return os_errno(err, "make a directory in", tmp);
    }
    enum code rc = worker->options.temporal ? temporal_worker_open(worker, err) : OK;
    if (rc) return rc;
    if (!make_channels(worker)) return error_nomem(err);
    struct tool_options tools = {.mark = worker->dir, // its own: other workers of this machine are left alone
                                 .process_max = worker->options.slots,
                                 .deliver = on_result,
                                 .output = on_line,
                                 .context = worker,
                                 .confinement = worker->options.confinement,
                                 .secrets = worker->options.secrets};
    worker->tools = worker->options.tools;
    if (!worker->tools) rc = tools_open(&tools, &worker->tools, err);
    if (rc) return rc;
    if (worker->options.functions) functions_connect(worker->options.functions, on_result, on_line, worker);
    rc = worker->options.task ? open_tasks(worker, err) : OK;
    if (rc) return rc;
    return start_threads(worker) ? OK : error_set(err, E_LIMIT, "no thread can be made");
}

enum code worker_open(const struct worker_options *options, struct worker **out, struct error *err)
{
    struct worker *worker = calloc(1, sizeof(*worker));
    if (!worker) return error_nomem(err);
    worker->options = *options;
    worker->options.link.stopped = stopped;
    worker->options.link.stop_context = worker;
    INVARIANT(pthread_mutex_init(&worker->mutex, NULL) == 0);
    enum code rc = prepare(worker, err);
    if (rc)
        worker_close(worker);
    else
        *out = worker;
    return rc;
}

void worker_drain(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->draining = true;
    wake_channels(worker);
    pthread_mutex_unlock(&worker->mutex);
    if (worker->temporal) temporal_shut_polls(worker->temporal);
}

size_t worker_busy(struct worker *worker, struct error *err)
{
    LOCKED(&worker->mutex);
    size_t busy = 0;
    for (size_t i = 0; i < worker->channel_count; i++) busy += worker->channels[i].busy;
    *err = worker->fatal;
    return busy;
}

uint64_t worker_count(struct worker *worker)
{
    LOCKED(&worker->mutex);
    return worker->count;
}

static void end_channel(struct channel *channel)
{
    if (channel->busy > 0 && channel->worker->temporal)
        temporal_give_back(channel);
    else if (channel->busy > 0)
        worker_give_back(channel);
    for (uint32_t i = 0; i < channel->slots; i++) {
        struct attempt *attempt = &channel->attempts[i];
        if (attempt->state != ATTEMPT_NONE) attempts_free(channel, &attempt, 1);
    }
    pthread_cond_destroy(&channel->room);
    pthread_cond_destroy(&channel->results);
    pthread_cond_destroy(&channel->changed);
}

void worker_close(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    wake_channels(worker);
    pthread_mutex_unlock(&worker->mutex);
    if (worker->temporal) temporal_shut_polls(worker->temporal);
    for (size_t i = 0; i < worker->thread_count; i++) pthread_join(worker->threads[i], NULL);
    if (worker->options.functions) functions_connect(worker->options.functions, NULL, NULL, NULL);
    tasks_close(worker->tasks);
    if (worker->tools) worker->tools->ops->close(worker->tools);
    for (size_t i = 0; i < worker->channel_count; i++) end_channel(&worker->channels[i]);
    if (worker->dir[0]) os_remove_tree(worker->dir);
    temporal_close(worker->temporal);
    if (worker->temporal) arena_release(&worker->arena);
    free(worker->channels);
    free(worker->attempts);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}
