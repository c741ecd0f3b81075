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

void crew_job_free(struct crew *crew, struct job *job)
{
    if (job->has_dir) remove_tree(job->dir.ptr);
    pthread_mutex_lock(&crew->mutex);
    tool_result_free(&job->result);
    for (size_t i = 0; i < 2; i++) buf_release(&job->log[i]);
    arena_release(&job->arena);
    uint32_t generation = job->generation + 1;
    memset(job, 0, sizeof(*job));
    job->generation = generation;
    crew->busy--;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
}

static void on_result(void *context, struct tool_result *result)
{
    struct crew *crew = context;
    pthread_mutex_lock(&crew->mutex);
    struct job *job = job_with(crew, result->ticket);
    if (job && job->state == JOB_RUNNING) {
        job->result = *result;
        job->state = JOB_DONE;
        pthread_cond_broadcast(&crew->changed);
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
    if (!env || job->dir.len == 0) return error_set(err, E_NOMEM, "out of memory");
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
    pthread_mutex_lock(&crew->mutex);
    job->lease_until = os_now().mono_ms + task->lease_ms;
    job->state = JOB_RUNNING;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
    if (request.cwd.len > 0 && !os_is_dir(copy(job, request.cwd).ptr))
        request.cwd = (struct str){0}; // the server's own
    enum code rc = OK;
    if (request.function.len > 0)
        rc = error_set(&err, E_UNSUPPORTED, "this worker has no function %.*s", STR_ARG(request.function));
    else
        rc = keep_artifacts(job, &request) ? own_directory(crew, job, &request, &err)
                                           : error_set(&err, E_NOMEM, "out of memory");
    if (!rc) rc = crew->tools->ops->start(crew->tools, &request, &err);
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
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++)
        if (pthread_create(&crew->threads[i], NULL, bodies[i], crew) == 0)
            crew->thread_count++;
        else
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return crew->thread_count == ARRAY_COUNT(bodies);
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
    crew->jobs = calloc(crew->options.slots, sizeof(*crew->jobs));
    if (!crew->jobs) return error_set(err, E_NOMEM, "out of memory");
    struct tool_options tools = {.mark = crew->dir, // its own: whoever else works here is left alone
                                 .process_max = crew->options.slots,
                                 .deliver = on_result,
                                 .output = on_line,
                                 .context = crew,
                                 .confinement = crew->options.confinement,
                                 .secrets = crew->options.secrets};
    enum code rc = tools_open(&tools, &crew->tools, err);
    if (rc) return rc;
    return start_threads(crew) ? OK : error_set(err, E_LIMIT, "no thread can be made");
}

enum code crew_open(const struct crew_options *options, struct crew **out, struct error *err)
{
    struct crew *crew = calloc(1, sizeof(*crew));
    if (!crew) return error_set(err, E_NOMEM, "out of memory");
    crew->options = *options;
    crew->options.link.stopped = stopped;
    crew->options.link.stop_context = crew;
    pthread_condattr_t attr;
    INVARIANT(pthread_mutex_init(&crew->mutex, NULL) == 0 && pthread_condattr_init(&attr) == 0);
    INVARIANT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    INVARIANT(pthread_cond_init(&crew->changed, &attr) == 0);
    pthread_condattr_destroy(&attr);
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
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
}

size_t crew_busy(struct crew *crew, struct error *err)
{
    pthread_mutex_lock(&crew->mutex);
    size_t busy = crew->busy;
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

void crew_close(struct crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    crew->stopping = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
    for (size_t i = 0; i < crew->thread_count; i++) pthread_join(crew->threads[i], NULL);
    if (crew->tools) crew->tools->ops->close(crew->tools);
    if (crew->busy > 0) crew_give_back(crew);
    for (uint32_t i = 0; crew->jobs && i < crew->options.slots; i++)
        if (crew->jobs[i].state != JOB_FREE) crew_job_free(crew, &crew->jobs[i]);
    if (crew->dir[0]) remove_tree(crew->dir);
    free(crew->jobs);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}
