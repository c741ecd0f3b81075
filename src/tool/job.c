#include "tool/internal.h"

#include "base/text.h"

#include "base/civil.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_SIZE = 2048, STDERR_MAX = 4096, LAST_LINE_MAX = 400, DETAIL_ROOM = 256, LEFT_MAX = 4096 };

#define MEMORY_MAX ((size_t)1 << 30)
#define REPORT_MAX ((size_t)256 << 20)

void job_list_add(struct job_list *list, struct job *job)
{
    INVARIANT(!job->next && !job->previous);
    job->previous = list->last;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
}

void job_list_add_first(struct job_list *list, struct job *job)
{
    INVARIANT(!job->next && !job->previous);
    job->next = list->first;
    if (list->first)
        list->first->previous = job;
    else
        list->last = job;
    list->first = job;
}

void job_list_remove(struct job_list *list, struct job *job)
{
    if (job->previous)
        job->previous->next = job->next;
    else
        list->first = job->next;
    if (job->next)
        job->next->previous = job->previous;
    else
        list->last = job->previous;
    job->previous = job->next = NULL;
}

static bool holds_nul(struct str s)
{
    return s.len && memchr(s.ptr, '\0', s.len);
}

static struct str keep(struct arena *arena, struct str s, bool *failed)
{
    struct str copy = arena_copy(arena, s);
    if (!copy.ptr) *failed = true;
    return copy;
}

static const char *find_refusal(const struct tool_request *request)
{
    if (request->argc == 0 || request->argv[0].len == 0) return "there is no program to start";
    for (size_t i = 0; i < request->argc; i++) {
        if (holds_nul(request->argv[i])) return "an argument holds a NUL byte";
    }
    for (size_t i = 0; i < request->env_count; i++) {
        const struct tool_env *env = &request->env[i];
        if (!env->name.len || holds_nul(env->name) || str_find(env->name, '=', 0) < env->name.len)
            return "the name of an environment variable is empty or holds = or a NUL byte";
        if (holds_nul(env->value)) return "the value of an environment variable holds a NUL byte";
    }
    for (size_t i = 0; i < request->secret_count; i++) {
        struct str name = request->secrets[i].name;
        if (!name.len || holds_nul(name) || str_find(name, '=', 0) < name.len)
            return "the name of a secret is empty or holds = or a NUL byte";
    }
    if (holds_nul(request->cwd) || holds_nul(request->home) || holds_nul(request->artifacts_dir) || holds_nul(request->run) ||
        holds_nul(request->step))
        return "the working directory or an id holds a NUL byte";
    return NULL;
}

static bool copy_lists(struct job *job, const struct tool_request *request)
{
    bool failed = false;
    struct arena *arena = &job->request;
    char **argv = ARENA_ARRAY(arena, request->argc + 1, char *);
    struct tool_env *env = ARENA_ARRAY(arena, request->env_count, struct tool_env);
    struct secret_ref *secrets = ARENA_ARRAY(arena, request->secret_count, struct secret_ref);
    struct secret_value *hidden = ARENA_ARRAY(arena, request->hidden_count, struct secret_value);
    if (!argv || !env || !secrets || !hidden) return false;
    for (size_t i = 0; i < request->argc; i++) {
        argv[i] = arena_alloc(arena, request->argv[i].len + 1);
        if (!argv[i]) return false;
        if (request->argv[i].len) memcpy(argv[i], request->argv[i].ptr, request->argv[i].len);
    }
    for (size_t i = 0; i < request->env_count; i++) {
        env[i].name = keep(arena, request->env[i].name, &failed);
        env[i].value = keep(arena, request->env[i].value, &failed);
    }
    for (size_t i = 0; i < request->secret_count; i++) {
        secrets[i].name = keep(arena, request->secrets[i].name, &failed);
        secrets[i].ref = keep(arena, request->secrets[i].ref, &failed);
    }
    for (size_t i = 0; i < request->hidden_count; i++) hidden[i].value = keep(arena, request->hidden[i].value, &failed);
    struct str *reads = ARENA_ARRAY(arena, request->read_count + 1, struct str);
    for (size_t i = 0; reads && i < request->read_count; i++) reads[i] = keep(arena, request->reads[i], &failed);
    if (!reads) return false;
    job->reads = reads;
    job->read_count = request->read_count;
    job->network = request->network;
    job->walled = request->walled;
    job->memory_max = request->memory_max;
    job->hidden = hidden;
    job->hidden_count = request->hidden_count;
    job->argv = argv;
    job->env = env;
    job->secrets = secrets;
    return !failed;
}

static void mark_escape(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ':' || text.ptr[i] == '%')
            buf_text(out, text.ptr[i] == ':' ? "%3A" : "%25");
        else
            buf_byte(out, text.ptr[i]);
    }
}

void mark_unescape(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        struct str rest = str_slice(text, i, text.len);
        bool colon = str_starts(rest, STR("%3A")), percent = str_starts(rest, STR("%25"));
        buf_byte(out, colon ? ':' : text.ptr[i]);
        i += colon || percent ? 2 : 0;
    }
}

static bool copy_request(struct job *job, const struct tool_request *request, const char *mark, const char *identity)
{
    bool failed = false;
    job->ticket = request->ticket;
    job->logical = request->logical;
    job->engine = request->engine;
    job->env_count = request->env_count;
    job->secret_count = request->secret_count;
    job->report_as = request->report;
    job->timeout_ms = request->timeout_ms;
    job->refused = find_refusal(request);
    job->run = keep(&job->arena, request->run, &failed);
    job->step = keep(&job->arena, request->step, &failed);
    job->input = keep(&job->request, request->input, &failed);
    job->home = keep(&job->request, request->home, &failed);
    job->cwd = keep(&job->request, request->cwd, &failed);
    job->artifacts_dir = keep(&job->request, request->artifacts_dir, &failed);
    job->tenant = keep(&job->arena, request->tenant, &failed);
    job->environment = keep(&job->request, request->environment, &failed);
    job->log.path = keep(&job->arena, request->log, &failed);
    job->declares = request->artifact_count > 0;
    if (request->overflow == OVERFLOW_ARTIFACT && request->artifact_count > 0) {
        job->spill.dir = keep(&job->arena, request->artifacts_dir, &failed);
        job->spill.name = keep(&job->arena, request->artifacts[request->artifact_count - 1].path, &failed);
        job->out.spill = &job->spill;
    }
    struct buf text SCOPED(buf_release) = buf_of(MEMORY_MAX);
    buf_printf(&text, "2:%s:%s:%u:%u:", mark, identity, request->logical, request->engine);
    mark_escape(&text, request->tenant);
    buf_byte(&text, ':');
    mark_escape(&text, request->run);
    buf_byte(&text, ':');
    mark_escape(&text, request->step);
    job->mark = buf_ok(&text) ? keep(&job->arena, buf_str(&text), &failed) : (struct str){0};
    if (failed || !job->mark.ptr) return false;
    return copy_lists(job, request);
}

struct job *job_new(const struct tool_request *request, const char *mark, const char *identity)
{
    struct arena arena SCOPED(arena_release) = arena_of(BLOCK_SIZE, MEMORY_MAX);
    struct job *job = ARENA_NEW(&arena, struct job);
    if (!job) return NULL;
    job->arena = arena_take(&arena);
    job->state = JOB_WAITING;
    job->tag = process_new_tag();
    job->process = (struct process){.pid = 0, .pidfd = -1, .out = -1, .err = -1};
    job->report = -1;
    for (unsigned kind = 0; kind < WATCH_COUNT; kind++) job->watches[kind] = (struct watch){job, (enum watch_kind)kind};
    arena_init(&job->request, BLOCK_SIZE, MEMORY_MAX);
    stream_init(&job->out, false, request->output_max);
    stream_init(&job->err, true, STDERR_MAX);
    job->spill.draft = (struct reach_draft){.dir = -1, .fd = -1};
    step_log_init(&job->log, STR(""), request->log_max);
    if (copy_request(job, request, mark, identity)) return job;
    job_free(job);
    return NULL;
}

// What is needed until the process has started, secrets above all.
static void forget_request(struct job *job)
{
    for (size_t i = 0; job->values && i < job->secret_count; i++) secret_wipe(job->values[i].value);
    for (size_t i = 0; job->request.blocks && i < job->hidden_count; i++) secret_wipe(job->hidden[i].value);
    job->values = NULL;
    arena_release(&job->request);
}

void job_free(struct job *job)
{
    // Of a job that nobody waits for. What is more than that goes when the next engine starts.
    if (job->work_dir.len) (void)workdir_remove(job->work_dir, LEFT_MAX, NULL);
    mask_wipe(job->mask);
    stream_release(&job->out);
    stream_release(&job->err);
    reach_drop(&job->spill.draft);
    if (job->process.pidfd >= 0) close(job->process.pidfd);
    if (job->report >= 0) close(job->report);
    forget_request(job);
    step_log_release(&job->log);
    arena_release(&job->arena);
}

void tool_result_free(struct tool_result *result)
{
    void *memory = result->memory;
    result->memory = NULL;
    if (memory) result->release(memory);
}

static void release_job(void *memory)
{
    job_free(memory);
}

bool job_fault(struct job *job, const char *code, bool retryable, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(job->message, sizeof(job->message), format, arguments);
    va_end(arguments);
    size_t len = used < 0 ? 0 : (size_t)used;
    if (len >= sizeof(job->message)) len = sizeof(job->message) - 1;
    struct str message = {job->message, len};
    // Cut at a whole character; what else is wrong with a name from outside becomes '?'.
    for (size_t i = 0; i < message.len;) {
        size_t size = job->message[i] ? str_utf8_size(message, i) : 0;
        if (!size) job->message[i] = '?';
        i += size ? size : 1;
    }
    job->fault.code = str_from(code);
    job->fault.message = message;
    job->fault.retryable = retryable;
    return false;
}

// Reads the secrets into `scratch`. False: job->fault is set. All that was read so far is in `values`.
static bool read_secrets(struct job *job, const struct tool_secrets *providers, struct arena *scratch,
                         struct secret_value *values)
{
    struct secret_scope scope = {providers, job->tenant, job->environment, false};
    for (size_t i = 0; i < job->secret_count; i++) {
        struct error why = {0};
        values[i].name = job->secrets[i].name;
        if (!secret_read(&scope, &job->secrets[i], scratch, &values[i].value, &why))
            return job_fault(job, "SECRET_NOT_FOUND", false, "%s", why.message);
    }
    for (size_t i = 0; i < job->hidden_count; i++) values[job->secret_count + i] = job->hidden[i];
    job->mask = mask_new(values, job->secret_count + job->hidden_count, &job->arena);
    if (!job->mask) job_fault(job, "SPAWN_FAILED", true, "out of memory");
    return job->mask;
}

static bool launch(struct job *job, const struct environment *with, const struct cage *cage, int cwd_fd,
                   struct arena *scratch)
{
    char **environment = environment_build(with, scratch);
    if (!environment) return job_fault(job, "SPAWN_FAILED", true, "out of memory");
    struct launch launch = {.argv = job->argv,
                            .environment = environment,
                            .cwd = job->cwd.len ? job->cwd.ptr : job->home.len ? job->home.ptr : NULL,
                            .cwd_fd = cwd_fd,
                            .input = job->input,
                            .tag = job->tag,
                            .cage = cage,
                            .report = job->report,
                            .report_as = job->report_as};
    struct error why = {0};
    enum launch_verdict verdict = process_launch(&launch, scratch, &job->process, &why);
    environment_wipe(environment);
    if (verdict == LAUNCH_NOT_FOUND)
        job_fault(job, "COMMAND_NOT_FOUND", false, "%s", why.message);
    else if (verdict == LAUNCH_FAILED)
        job_fault(job, "SPAWN_FAILED", why.code == E_LIMIT || why.code == E_NOMEM, "%s", why.message);
    else if (verdict == LAUNCH_UNCONFINED)
        job_fault(job, "CONFINEMENT_UNAVAILABLE", false, "%s", why.message);
    return verdict == LAUNCH_OK;
}

enum { DIR_HOME, DIR_ARTIFACTS, DIR_CWD, DIR_COUNT };

static enum code open_own(struct job *job, const struct tool_confinement *confinement, int dirs[DIR_COUNT],
                          struct error *why)
{
    enum code rc = OK;
    if (!confinement->trusts_home || !job->home.len) {
        rc = workdir_make(confinement, &job->arena, &job->work_dir, why);
        job->home = job->work_dir;
    }
    // The engine has made it, and it is empty or was filled by steps of this user.
    if (!rc && confinement->run_as && job->artifacts_dir.len) {
        (void)!lchown(job->artifacts_dir.ptr, confinement->uid, confinement->gid);
        job->spill.uid = confinement->uid;
        job->spill.gid = confinement->gid;
    }
    if (!rc) rc = reach_root(job->home.ptr, &dirs[DIR_HOME], why);
    if (!rc && job->artifacts_dir.len && os_is_dir(job->artifacts_dir.ptr))
        rc = reach_root(job->artifacts_dir.ptr, &dirs[DIR_ARTIFACTS], why);
    return rc;
}

// Where it starts. A document can choose among what its steps may use anyway, and adds nothing to that.
static enum code open_cwd(struct job *job, const struct tool_confinement *confinement, int *out, struct arena *scratch,
                          struct error *why)
{
    size_t count = 2, max = 2 + confinement->write_count + confinement->read_count;
    struct reach_place *places = ARENA_ARRAY(scratch, max, struct reach_place);
    struct str name, cwd = job->cwd.len ? job->cwd : job->home;
    int root;
    if (!places) return error_nomem(why);
    places[0] = (struct reach_place){job->home, true};
    places[1] = (struct reach_place){job->artifacts_dir, true};
    for (size_t i = 0; i < confinement->write_count; i++) places[count++].path = confinement->write[i];
    for (size_t i = 0; i < confinement->read_count; i++) places[count++].path = confinement->read[i];
    enum code rc = reach_find(places, count, cwd, false, &root, &name, why);
    if (rc) return rc;
    rc = reach_dir(root, name, out, why);
    close(root);
    return rc;
}

// What a step of another user needs of directories that are closed to it.
static struct veil *hide_rest(struct job *job, const struct tool_confinement *confinement, struct arena *scratch)
{
    size_t count = 0;
    struct str *paths = ARENA_ARRAY(scratch, 3 + confinement->read_count + confinement->write_count, struct str);
    if (!paths) return NULL;
    paths[count++] = job->home;
    paths[count++] = job->artifacts_dir;
    paths[count++] = str_from(job->argv[0]);
    for (size_t i = 0; i < confinement->write_count; i++) paths[count++] = confinement->write[i];
    for (size_t i = 0; i < confinement->read_count; i++) paths[count++] = confinement->read[i];
    return veil_make(paths, count, scratch);
}

static bool launch_confined(struct job *job, struct environment *with, const struct tool_confinement *said,
                            struct arena *scratch)
{
    struct error why = {0};
    struct tool_confinement own = *said, *confinement = &own;
    bool searches;
    struct str *reads = ARENA_ARRAY(scratch, said->read_count + job->read_count + 1, struct str);
    if (!reads) return job_fault(job, "SPAWN_FAILED", true, "out of memory");
    if (said->read_count) memcpy(reads, said->read, said->read_count * sizeof(*reads));
    for (size_t i = 0; i < job->read_count; i++) reads[said->read_count + i] = job->reads[i];
    own.read = reads;
    own.read_count += job->read_count;
    own.network = job->network;
    bool lower = job->memory_max && (!own.limits.memory || job->memory_max < own.limits.memory);
    if (lower) own.limits.memory = job->memory_max;
    job->level = tool_level_name(tool_confinement_level(confinement));
    confinement_separate(confinement, job->tenant, job->artifacts_dir, str_from(job->argv[0]), &searches);
    struct cage cage = {.ruleset = -1};
    int dirs[DIR_COUNT] = {-1, -1, -1};
    bool started = false;
    enum code rc = tool_confinement_check(confinement, &why);
    if (!rc) rc = open_own(job, confinement, dirs, &why);
    bool hides = !rc && own.run_as && searches && tool_confinement_level(confinement) >= TOOL_LEVEL_FILES;
    struct veil *veil = hides ? hide_rest(job, confinement, scratch) : NULL;
    if (!rc) rc = cage_make(confinement, dirs, DIR_CWD, searches && !veil, &cage, &why);
    cage.veil = veil;
    enum code asked = rc ? OK : open_cwd(job, confinement, &dirs[DIR_CWD], scratch, &why);
    if (!rc && !asked && veil && !veil_start_in(veil, dirs[DIR_CWD])) rc = error_nomem(&why);
    if (asked) {
        job_fault(job, asked == E_DENIED ? "CWD_NOT_ALLOWED" : "SPAWN_FAILED", asked == E_NOMEM || asked == E_LIMIT,
                  "cannot change to directory %.*s: %s (the step is confined, --confine %s; read and write of the setting "
                  "confinement name what it may use)",
                  STR_ARG(job->cwd), why.message, job->level);
    } else if (rc) {
        bool missing = rc == E_UNSUPPORTED;
        job_fault(job, missing ? "CONFINEMENT_UNAVAILABLE" : "SPAWN_FAILED", !missing, "%s", why.message);
    } else {
        with->clean = true;
        with->home = job->home;
        with->path = confinement->path.len ? confinement->path : str_from(confine_path_default);
        started = launch(job, with, &cage, dirs[DIR_CWD], scratch);
    }
    veil_close(veil);
    cage_close(&cage);
    for (size_t i = 0; i < DIR_COUNT; i++)
        if (dirs[i] >= 0) close(dirs[i]);
    return started;
}

static bool start_process(struct job *job, const struct tool_confinement *confinement,
                          const struct secret_value *values, struct arena *scratch)
{
    struct environment with = {.env = job->env,
                               .env_count = job->env_count,
                               .secrets = values,
                               .secret_count = job->secret_count,
                               .run = job->run,
                               .step = job->step,
                               .mark = job->mark,
                               .logical = job->logical,
                               .engine = job->engine};
    if (confinement && confinement->level != TOOL_LEVEL_NONE && !job->walled) return launch_confined(job, &with, confinement, scratch);
    return launch(job, &with, NULL, -1, scratch);
}

// An array for the values, filled with what they are as long as all is well.
static bool make_values(struct job *job, const struct tool_secrets *providers)
{
    job->values = ARENA_ARRAY(&job->request, job->secret_count + job->hidden_count, struct secret_value);
    return job->values ? read_secrets(job, providers, &job->request, job->values) : job_fault(job, "SPAWN_FAILED", true, "out of memory");
}

bool job_asks_a_provider(const struct job *job)
{
    for (size_t i = 0; i < job->secret_count && !job->refused; i++)
        if (str_starts(job->secrets[i].ref, STR("secret://"))) return true;
    return false;
}

void job_read_secrets(struct job *job, const struct tool_options *options)
{
    job->refuses = !make_values(job, options->secrets);
    job->has_values = true;
}

bool job_launch(struct job *job, const struct tool_options *options, struct arena *scratch)
{
    if (job->refused) return job_fault(job, "SPAWN_FAILED", false, "%s", job->refused);
    if (job->report_as) job->report = process_report();
    if (job->report_as && job->report < 0) return job_fault(job, "SPAWN_FAILED", true, "out of memory");
    if (!job->has_values) job_read_secrets(job, options);
    bool started = !job->refuses && start_process(job, options->confinement, job->values, scratch);
    forget_request(job);
    if (!started) return false;
    stream_open(&job->out, job->process.out, job->mask);
    stream_open(&job->err, job->process.err, job->mask);
    return true;
}

static struct str last_line(struct str text)
{
    text = str_trim(text);
    size_t from = text.len;
    while (from > 0 && text.ptr[from - 1] != '\n') from--;
    return str_slice(str_trim(str_slice(text, from, text.len)), 0, LAST_LINE_MAX);
}

#define CONFINED "the step is confined, --confine %s; the setting confinement says %s"

// What a confined step was probably kept from, in the words of the setting that would let it. The kernel tells only the step.
static const char *refused_by(const struct job *job, struct str line)
{
    static const struct {
        const char *said, *rule;
    } known[] = {
        {"Permission denied", "which files it may use: read, write"},
        {"Read-only file system", "which files it may use: read, write"},
        {"Operation not permitted", "which system calls it may make: level"},
        {"Network is unreachable", "whether it has a network: level"},
        {"Could not resolve host", "whether it has a network: level"},
        {"Temporary failure in name resolution", "whether it has a network: level"},
    };
    for (size_t i = 0; job->level && i < ARRAY_COUNT(known); i++)
        for (size_t at = 0; at < line.len; at++)
            if (str_starts(str_slice(line, at, line.len), str_from(known[i].said))) return known[i].rule;
    return NULL;
}

static void judge(struct job *job, struct str stderr_text)
{
    char duration[24];
    if (job->stop == STOP_TIMEOUT) {
        duration_format(job->timeout_ms, duration);
        job_fault(job, "TIMEOUT", true, FAULT_LATE, duration);
    } else if (job->stop == STOP_CANCEL) {
        job_fault(job, "CANCELLED", false, "cancelled");
    } else if (job->exit_signal) {
        const char *name = sigabbrev_np(job->exit_signal);
        job_fault(job, "KILLED_BY_SIGNAL", true, "killed by SIG%s (signal %d)", name ? name : "?", job->exit_signal);
    } else if (job->exit_code) {
        struct str line = last_line(stderr_text);
        job->rule = refused_by(job, line);
        if (job->rule)
            job_fault(job, FAULT_EXIT, true, "exit %d: %.*s (" CONFINED ")", job->exit_code, STR_ARG(line), job->level,
                      job->rule);
        else
            job_fault(job, FAULT_EXIT, true, "exit %d%s%.*s", job->exit_code, line.len ? ": " : "", STR_ARG(line));
        job->fault.has_exit = true;
        job->fault.exit_code = job->exit_code;
    }
}

void job_end_log(struct job *job)
{
    char how[256];
    const struct fault *fault = &job->fault;
    if (fault->code.len)
        snprintf(how, sizeof(how), "%.*s %.*s", STR_ARG(fault->code), STR_ARG(fault->message));
    else
        snprintf(how, sizeof(how), "exit 0");
    step_log_end(&job->log, str_from(how));
}

static struct str category_of(struct str code)
{
    if (str_is(code, "TIMEOUT")) return STR("timeout");
    bool ours = str_is(code, "SPAWN_FAILED") || str_is(code, "CONFINEMENT_UNAVAILABLE");
    return ours ? STR("infrastructure") : STR("");
}

// What a process has reported, up to what a result may hold. ptr NULL: it is larger, or there is no memory.
static struct str take_report(struct job *job)
{
    struct stat stat;
    if (job->report < 0 || fstat(job->report, &stat) < 0) return (struct str){"", 0};
    size_t size = (size_t)stat.st_size, done = 0;
    char *bytes = size <= REPORT_MAX ? arena_alloc(&job->arena, size + 1) : NULL;
    if (!bytes) {
        job_fault(job, "PAYLOAD_TOO_LARGE", false, "what it reported (%zu bytes) is too large", size);
        return (struct str){"", 0};
    }
    while (done < size) {
        ssize_t got = pread(job->report, bytes + done, size - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return (struct str){bytes, done};
}

// A long output is of use only when it is there; one of a failed attempt is nobody's.
static bool keep_spilled(struct job *job)
{
    if (!job->spill.begun || job->fault.code.len) return false;
    if (spill_keep(&job->spill)) return true;
    bool again = job->spill.why.code == E_FULL || job->spill.why.code == E_NOMEM || job->spill.why.code == E_IO;
    job_fault(job, "PAYLOAD_TOO_LARGE", again, FAULT_OVERFLOW ", and it could not be kept as an artifact: %s",
              (unsigned long long)job->out.size, job->out.max, job->spill.why.message);
    return false;
}

struct tool_result job_result(struct job *job, int64_t now_ms)
{
    struct str output = stream_text(&job->out);
    struct str errors = stream_text(&job->err);
    struct str report = take_report(job);
    if (!job->fault.code.len) judge(job, errors);
    bool spilled = keep_spilled(job);
    if (job->fault.code.len) {
        job->fault.category = category_of(job->fault.code);
        job->fault.detail = errors;
        // Beside what the step wrote, where `why` and `get` show it.
        struct str told = {0};
        if (job->rule && errors.len < STDERR_MAX - DETAIL_ROOM)
            told = arena_format(&job->arena, "%.*s\n" CONFINED, STR_ARG(errors), job->level, job->rule);
        if (told.ptr) job->fault.detail = told;
    }
    mask_wipe(job->mask);
    job->mask = NULL;
    return (struct tool_result){.ticket = job->ticket,
                                .ok = !job->fault.code.len,
                                .output = output,
                                .truncated = job->out.truncated,
                                .spilled = spilled,
                                .output_size = job->out.size,
                                .errors = errors,
                                .report = report,
                                .fault = job->fault,
                                .duration_ms = job->started_ms ? now_ms - job->started_ms : 0,
                                .memory = job,
                                .release = release_job};
}
