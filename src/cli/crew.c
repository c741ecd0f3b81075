#include "cli/crew_inside.h"
#include "cli/trials.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_HELD_MAX = 16 << 20 }; // of one task, while the server is away

void crew_say(struct crew *crew, bool warning, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    crew->options.say(crew->options.context, warning, text);
}

// ---- jobs
uint64_t crew_job_ticket(const struct crew *crew, const struct job *job)
{
    return ((uint64_t)job->generation << 32) | (uint64_t)(job - crew->jobs);
}

static struct job *job_with(struct crew *crew, uint64_t ticket)
{
    size_t index = (size_t)(ticket & UINT32_MAX);
    if (index >= crew->options.slots) return NULL;
    struct job *job = &crew->jobs[index];
    return job->state != JOB_FREE && job->generation == (uint32_t)(ticket >> 32) ? job : NULL;
}

struct str crew_token(struct crew *crew, uint64_t ticket, struct arena *arena, uint32_t *server)
{
    pthread_mutex_lock(&crew->mutex);
    const struct job *job = job_with(crew, ticket);
    struct str token = job ? arena_copy(arena, job->token) : (struct str){0};
    if (job) *server = job->lane->server;
    pthread_mutex_unlock(&crew->mutex);
    return token;
}

static void job_free(struct lane *lane, struct job *job) // with the lock
{
    lane->done -= job->state == JOB_DONE;
    tool_result_free(&job->result);
    for (size_t i = 0; i < 2; i++) buf_release(&job->log[i]);
    arena_release(&job->arena);
    *job = (struct job){.lane = lane, .generation = job->generation + 1, .next = lane->free};
    lane->free = job;
    lane->busy--;
}

void crew_jobs_free(struct lane *lane, struct job **jobs, size_t count)
{
    if (count == 0) return;
    for (size_t i = 0; i < count; i++)
        if (jobs[i]->has_dir) remove_tree(jobs[i]->dir.ptr);
    pthread_mutex_lock(&lane->crew->mutex);
    for (size_t i = 0; i < count; i++) job_free(lane, jobs[i]);
    pthread_cond_signal(&lane->room);
    pthread_mutex_unlock(&lane->crew->mutex);
}

static void on_result(void *context, struct tool_result *result)
{
    struct crew *crew = context;
    pthread_mutex_lock(&crew->mutex);
    struct job *job = job_with(crew, result->ticket);
    if (job && job->state == JOB_RUNNING) {
        job->result = *result;
        job->state = JOB_DONE;
        if (job->lane->done++ == 0) pthread_cond_signal(&job->lane->results);
    } else {
        tool_result_free(result);
    }
    pthread_mutex_unlock(&crew->mutex);
}

static void on_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    struct crew *crew = context;
    pthread_mutex_lock(&crew->mutex);
    struct job *job = job_with(crew, ticket);
    if (job && job->log_size + line.len + 1 <= job->log_max) {
        buf_add(&job->log[is_stderr], line);
        buf_byte(&job->log[is_stderr], '\n');
        job->log_size += line.len + 1;
    }
    pthread_mutex_unlock(&crew->mutex);
}

static void fail_job(struct crew *crew, struct job *job, const struct error *why)
{
    struct str message = arena_copy(&job->arena, str_from(why->message));
    struct tool_result result = {.ticket = crew_job_ticket(crew, job)};
    result.fault = (struct fault){.code = STR("SPAWN_FAILED"),
                                  .message = message.ptr ? message : STR("out of memory"),
                                  .category = STR("infrastructure"),
                                  .retryable = true};
    on_result(crew, &result);
}

static struct str copy(struct job *job, struct str text)
{
    struct str kept = arena_copy(&job->arena, text);
    return kept.ptr ? kept : (struct str){"", 0};
}

// The step's own directory takes the place of the server's.
static enum code own_directory(struct crew *crew, struct job *job, struct tool_request *request, struct error *err)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%llu", crew->dir, (unsigned long long)request->ticket);
    if (mkdir(path, 0700) != 0) return os_errno(err, "make", path);
    job->dir = copy(job, str_from(path));
    job->has_dir = true;
    struct tool_env *env = ARENA_ARRAY(&job->arena, request->env_count + 1, struct tool_env);
    if (!env || job->dir.len == 0) return error_nomem(err);
    for (size_t i = 0; i < request->env_count; i++) {
        env[i] = request->env[i];
        if (str_is(env[i].name, "ARTIFACTS_DIR")) env[i].value = job->dir;
    }
    request->env = env;
    request->artifacts_dir = job->dir;
    return OK;
}

static bool keep_artifacts(struct job *job, const struct tool_request *request)
{
    struct artifact_decl *decls = ARENA_ARRAY(&job->arena, request->artifact_count + 1, struct artifact_decl);
    for (size_t i = 0; decls && i < request->artifact_count; i++) {
        decls[i].path = arena_copy(&job->arena, request->artifacts[i].path);
        if (!decls[i].path.ptr) decls = NULL;
    }
    job->artifacts = decls;
    job->artifact_count = decls ? request->artifact_count : 0;
    return decls != NULL;
}

// NULL: nobody here executes it.
static struct tools *tools_for(const struct crew *crew, const struct tool_request *request)
{
    const struct crew_options *options = &crew->options;
    bool function = options->functions && functions_know(options->functions, request->kind);
    bool task = options->tasks && tasks_know(options->tasks, request->kind);
    struct executor_request asked = {.form = request->form, .kind = request->kind};
    if (asked.form == EXECUTOR_NONE) asked.form = function ? EXECUTOR_FUNCTION : EXECUTOR_TASK;
    asked.here = asked.form == EXECUTOR_PROCESS || (asked.form == EXECUTOR_FUNCTION ? function : task);
    switch (executor_choose(&asked, NULL).executor) {
    case EXECUTOR_PROCESS:
        return crew->tools;
    case EXECUTOR_TASK:
        return tasks_tools(options->tasks);
    case EXECUTOR_FUNCTION:
        return functions_tools(options->functions);
    case EXECUTOR_NONE:
    case EXECUTOR_POOL:
        break;
    }
    return NULL;
}

void crew_job_start(struct crew *crew, struct job *job, const struct remote_task *task)
{
    struct tool_request request = task->request;
    struct error err = {0};
    arena_init(&job->arena, 1024, (size_t)64 << 20);
    for (size_t i = 0; i < 2; i++) buf_init(&job->log[i], LOG_HELD_MAX);
    job->token = copy(job, task->token);
    job->epoch = request.epoch;
    job->lease_ms = task->lease_ms;
    job->log_max = request.log_max < LOG_HELD_MAX ? request.log_max : LOG_HELD_MAX;
    request.ticket = crew_job_ticket(crew, job);
    bool function = request.function.len > 0;
    // Before our lock: functions deliver with theirs held.
    struct tools *tools = tools_for(crew, &request);
    pthread_mutex_lock(&crew->mutex);
    job->since_ms = os_now().mono_ms;
    job->lease_until = job->since_ms + task->lease_ms;
    job->tools = tools ? tools : crew->tools;
    job->state = JOB_RUNNING;
    if (job->lane->busy == 1) pthread_cond_signal(&job->lane->changed); // there was nothing to keep
    pthread_mutex_unlock(&crew->mutex);
    if (request.cwd.len > 0 && !os_is_dir(copy(job, request.cwd).ptr))
        request.cwd = (struct str){0}; // the server's own
    enum code rc = OK;
    if (!tools)
        rc = error_set(&err, E_UNSUPPORTED, "this worker has no function %.*s", STR_ARG(request.function));
    else if (!keep_artifacts(job, &request))
        rc = error_nomem(&err);
    else if (!function || request.artifact_count > 0) // a function that declares none has no directory
        rc = own_directory(crew, job, &request, &err);
    if (!rc) rc = job->tools->ops->start(job->tools, &request, &err);
    if (rc) fail_job(crew, job, &err);
}

// ---- from outside
static bool stopped(void *context)
{
    struct crew *crew = context;
    pthread_mutex_lock(&crew->mutex);
    bool stop = crew->stopping;
    pthread_mutex_unlock(&crew->mutex);
    return stop;
}

static bool start_threads(struct crew *crew)
{
    void *(*const bodies[])(void *) = {crew_poll, crew_beat, crew_send};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    size_t wanted = ARRAY_COUNT(bodies) * crew->lane_count;
    for (size_t i = 0; i < wanted && crew->thread_count == i; i++)
        crew->thread_count += pthread_create(&crew->threads[i], NULL, bodies[i % ARRAY_COUNT(bodies)],
                                             &crew->lanes[i / ARRAY_COUNT(bodies)]) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return crew->thread_count == wanted;
}

static bool make_lanes(struct crew *crew)
{
    uint32_t servers = (uint32_t)crew->options.more_count + 1;
    if (crew->options.slots < servers) crew->options.slots = servers; // one for each at least
    uint32_t slots = crew->options.slots, count = (slots + REMOTE_BATCH_MAX - 1) / REMOTE_BATCH_MAX;
    if (count < servers) count = servers;
    pthread_condattr_t attr;
    crew->jobs = calloc(slots, sizeof(*crew->jobs));
    crew->lanes = calloc(count, sizeof(*crew->lanes));
    if (!crew->jobs || !crew->lanes) return false;
    INVARIANT(pthread_condattr_init(&attr) == 0 && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        struct lane *lane = &crew->lanes[i];
        uint32_t left = slots - first;
        *lane =
            (struct lane){.crew = crew, .jobs = crew->jobs + first, .slots = left / (count - i), .server = i % servers};
        first += lane->slots;
        pthread_cond_t *conditions[] = {&lane->room, &lane->results, &lane->changed};
        for (size_t k = 0; k < ARRAY_COUNT(conditions); k++) INVARIANT(pthread_cond_init(conditions[k], &attr) == 0);
        for (uint32_t k = lane->slots; k-- > 0; lane->free = &lane->jobs[k])
            lane->jobs[k] = (struct job){.lane = lane, .next = lane->free};
    }
    crew->lane_count = count;
    pthread_condattr_destroy(&attr);
    return true;
}

static void wake_lanes(struct crew *crew) // with the lock
{
    for (size_t i = 0; i < crew->lane_count; i++) {
        pthread_cond_broadcast(&crew->lanes[i].room);
        pthread_cond_broadcast(&crew->lanes[i].results);
        pthread_cond_broadcast(&crew->lanes[i].changed);
    }
}

static enum code prepare(struct crew *crew, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || strlen(tmp) > 30) tmp = "/tmp";
    snprintf(crew->dir, sizeof(crew->dir), "%s/cairn-worker.XXXXXX", tmp);
    if (!mkdtemp(crew->dir)) {
        crew->dir[0] = '\0';
        return os_errno(err, "make a directory in", tmp);
    }
    if (!make_lanes(crew)) return error_nomem(err);
    struct tool_options tools = {.mark = crew->dir, // its own: whoever else works here is left alone
                                 .process_max = crew->options.slots,
                                 .deliver = on_result,
                                 .output = on_line,
                                 .context = crew,
                                 .confinement = crew->options.confinement,
                                 .secrets = crew->options.secrets};
    enum code rc = tools_open(&tools, &crew->tools, err);
    if (rc) return rc;
    if (crew->options.functions) functions_connect(crew->options.functions, on_result, on_line, crew);
    if (crew->options.tasks) {
        tasks_connect(crew->options.tasks, on_result, on_line, crew);
        tasks_read_with(crew->options.tasks, (struct task_results){.read = crew_read_result, .context = crew});
    }
    return start_threads(crew) ? OK : error_set(err, E_LIMIT, "no thread can be made");
}

enum code crew_open(const struct crew_options *options, struct crew **out, struct error *err)
{
    struct crew *crew = calloc(1, sizeof(*crew));
    if (!crew) return error_nomem(err);
    crew->options = *options;
    crew->options.link.stopped = stopped;
    crew->options.link.stop_context = crew;
    INVARIANT(pthread_mutex_init(&crew->mutex, NULL) == 0);
    enum code rc = prepare(crew, err);
    if (rc)
        crew_close(crew);
    else
        *out = crew;
    return rc;
}

void crew_drain(struct crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    crew->draining = true;
    wake_lanes(crew);
    pthread_mutex_unlock(&crew->mutex);
}

size_t crew_busy(struct crew *crew, struct error *err)
{
    pthread_mutex_lock(&crew->mutex);
    size_t busy = 0;
    for (size_t i = 0; i < crew->lane_count; i++) busy += crew->lanes[i].busy;
    *err = crew->fatal;
    pthread_mutex_unlock(&crew->mutex);
    return busy;
}

uint64_t crew_count(struct crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    uint64_t count = crew->count;
    pthread_mutex_unlock(&crew->mutex);
    return count;
}

static void end_lane(struct lane *lane)
{
    if (lane->busy > 0) crew_give_back(lane);
    for (uint32_t i = 0; i < lane->slots; i++) {
        struct job *job = &lane->jobs[i];
        if (job->state != JOB_FREE) crew_jobs_free(lane, &job, 1);
    }
    pthread_cond_destroy(&lane->room);
    pthread_cond_destroy(&lane->results);
    pthread_cond_destroy(&lane->changed);
}

void crew_close(struct crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    crew->stopping = true;
    wake_lanes(crew);
    pthread_mutex_unlock(&crew->mutex);
    for (size_t i = 0; i < crew->thread_count; i++) pthread_join(crew->threads[i], NULL);
    if (crew->options.functions) functions_connect(crew->options.functions, NULL, NULL, NULL);
    tasks_close(crew->options.tasks);
    if (crew->tools) crew->tools->ops->close(crew->tools);
    for (size_t i = 0; i < crew->lane_count; i++) end_lane(&crew->lanes[i]);
    if (crew->dir[0]) remove_tree(crew->dir);
    free(crew->lanes);
    free(crew->jobs);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}
