// Opening and closing an engine, and the way into it.
#include "lib/inside.h"

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

_Static_assert((int)CAIRN_E_UNSUPPORTED == (int)E_UNSUPPORTED && (int)CAIRN_E_IO == (int)E_IO, "one list of codes");
_Static_assert((int)CAIRN_CANCELLED == (int)RUN_STATUS_CANCELLED && (int)CAIRN_RUNNING == (int)RUN_STATUS_RUNNING,
               "one list of statuses");
_Static_assert((int)CAIRN_LOG_DEBUG == (int)LOG_DEBUG && (int)CAIRN_LOG_ERROR == (int)LOG_ERROR, "one list of levels");

const char *cairn_version(void)
{
    return CAIRN_VERSION;
}

const char *cairn_code_name(enum cairn_code code)
{
    return code == CAIRN_END ? "END" : code == CAIRN_OK ? "OK" : code_name((enum code)code);
}

const char *cairn_status_name(enum cairn_status status)
{
    return status >= CAIRN_PENDING_RUN && status <= CAIRN_CANCELLED ? run_status_name((enum run_status)status) : "";
}

void cairn_free(void *memory)
{
    free(memory);
}

// ---- the way in

static void no_log(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static void hook_log(void *context, enum log_level level, const char *line)
{
    const struct cairn *cairn = context;
    cairn->options.log(cairn->options.context, (enum cairn_level)level, line);
}

static void *take_memory(void *context, size_t size)
{
    const struct cairn *cairn = context;
    return cairn->options.allocate(cairn->options.context, size);
}

static void give_memory(void *context, void *memory, size_t size)
{
    const struct cairn *cairn = context;
    cairn->options.release(cairn->options.context, memory, size);
}

void visit_routes(struct cairn *cairn, struct visit *visit)
{
    *visit = (struct visit){.log = os_log_through(cairn->log)};
    visit->source = arena_use(cairn->source.take ? &cairn->source : NULL);
}

void visit_routes_end(const struct visit *visit)
{
    os_log_through(visit->log);
    arena_use(visit->source);
}

static enum code check_process(const struct cairn *cairn, struct error *err)
{
    if (cairn->pid == getpid()) return OK;
    return error_set(err, E_UNSUPPORTED, "the engine belongs to the process that opened it, and this is a fork of it");
}

enum code call_begin(struct cairn *cairn, struct error *err)
{
    enum code rc = check_process(cairn, err);
    if (rc) return rc;
    atomic_fetch_add(&cairn->users, 1); // before the look: cairn_shutdown closes first and counts then
    if (!atomic_load(&cairn->closed)) return OK;
    call_end(cairn);
    return error_set(err, E_CONFLICT, "the engine is closed");
}

void call_end(struct cairn *cairn)
{
    atomic_fetch_sub(&cairn->users, 1);
}

void visit_enter(struct cairn *cairn, struct visit *visit)
{
    visit_routes(cairn, visit);
    pthread_mutex_lock(&cairn->turnstile);
    pthread_mutex_lock(&cairn->mutex);
    pthread_mutex_unlock(&cairn->turnstile);
    atomic_store(&cairn->inside, (unsigned long)pthread_self());
    visit->entered = true;
}

enum code visit_engine(struct cairn *cairn, struct visit *visit, struct error *err)
{
    if (atomic_load(&cairn->inside) == (unsigned long)pthread_self())
        return error_set(err, E_CONFLICT, "called from a hook that runs inside the engine");
    visit_enter(cairn, visit);
    if (cairn->dead.code == OK) return OK;
    if (err) *err = cairn->dead;
    enum code rc = cairn->dead.code;
    visit_end(cairn, visit);
    return rc;
}

void visit_end(struct cairn *cairn, struct visit *visit)
{
    if (!visit->entered) return;
    visit->entered = false;
    atomic_store(&cairn->inside, 0);
    pthread_mutex_unlock(&cairn->mutex);
    visit_routes_end(visit);
}

enum code visit_reader(struct cairn *cairn, struct visit *visit, struct error *err)
{
    if (cairn->memory_store) {
        enum code rc = visit_engine(cairn, visit, err);
        visit->store = cairn->store;
        return rc;
    }
    enum code rc = OK;
    visit_routes(cairn, visit);
    pthread_mutex_lock(&cairn->reader_mutex);
    if (!cairn->reader) {
        struct store_options options = {.mode = STORE_READ, .contract = cairn->contract, .entropy = &cairn->entropy};
        rc = store_open(store_url(cairn->store), &options, &cairn->reader, err);
    }
    visit->store = cairn->reader;
    if (rc) visit_reader_end(cairn, visit);
    return rc;
}

void visit_reader_end(struct cairn *cairn, struct visit *visit)
{
    if (cairn->memory_store) {
        visit_end(cairn, visit);
        return;
    }
    pthread_mutex_unlock(&cairn->reader_mutex);
    visit_routes_end(visit);
}

enum code reader_begin(struct cairn *cairn, struct visit *visit, struct error *err)
{
    enum code rc = call_begin(cairn, err);
    if (rc) return rc;
    rc = visit_reader(cairn, visit, err);
    if (rc) call_end(cairn);
    return rc;
}

void reader_end(struct cairn *cairn, struct visit *visit)
{
    visit_reader_end(cairn, visit);
    call_end(cairn);
}

// ---- opening

// Straight from the system: no buffer that a fork could share.
static void fill_random(struct entropy *entropy, void *bytes, size_t size)
{
    (void)entropy;
    for (size_t have = 0; have < size;) {
        ssize_t got = getrandom((uint8_t *)bytes + have, size - have, 0);
        if (got < 0 && errno == EINTR) continue;
        INVARIANT(got > 0);
        have += (size_t)got;
    }
}

static void on_arrived(void *context)
{
    const struct cairn *cairn = context;
    uint64_t one = 1;
    ssize_t ignored = write(cairn->fd, &one, sizeof(one)); // full means awake
    (void)ignored;
}

static enum code copy_options(struct cairn *cairn, const struct cairn_options *given, struct error *err)
{
    if (given && given->size > 0)
        memcpy(&cairn->options, given, given->size < sizeof(*given) ? given->size : sizeof(*given));
    struct cairn_options *options = &cairn->options;
    if (given && given->size < offsetof(struct cairn_options, workers))
        return error_set(err, E_INVALID, "cairn_options.size is not set");
    if (options->max_steps > PROGRAM_STEPS_MAX)
        return error_set(err, E_INVALID, "cairn_options.max_steps is at most %d", PROGRAM_STEPS_MAX);
    if (!options->allocate != !options->release) return error_set(err, E_INVALID, "allocate and release go together");
    cairn->log = (struct os_log_route){.fn = options->log ? hook_log : no_log, .context = cairn};
    if (options->allocate)
        cairn->source = (struct arena_source){.context = cairn, .take = take_memory, .give = give_memory};
    return OK;
}

static enum code copy_names(struct cairn *cairn, struct error *err)
{
    const struct cairn_options *options = &cairn->options;
    cairn->tenant = arena_copy(&cairn->arena, str_from(options->tenant ? options->tenant : "default"));
    cairn->actor = arena_copy(&cairn->arena, str_from(options->actor ? options->actor : "library"));
    if (!cairn->tenant.ptr || !cairn->actor.ptr) return error_nomem(err);
    if (!name_valid(cairn->tenant) || !name_valid(cairn->actor))
        return error_set(err, E_INVALID, "tenant and actor have 1 to 128 bytes without '|' and control characters");
    cairn->options.tenant = cairn->options.actor = NULL; // the caller's memory
    return OK;
}

static enum code open_store(struct cairn *cairn, const char *url, struct error *err)
{
    struct str given = str_from(url), rest, path;
    struct str word = str_cut(given, ':', &rest);
    bool named = word.len < given.len && (STR_AMONG(word, "sqlite", "files", "memory"));
    if (given.len == 0) return error_set(err, E_INVALID, "no store was named");
    bool address = str_starts(rest, STR("//")) && (str_is(word, "postgres") || str_is(word, "postgresql"));
    cairn->memory_store = named && str_is(word, "memory");
    struct str full = given;
    struct str name = named ? rest : given;
    if (!cairn->memory_store && !address) { // absolute, so that a later chdir changes nothing
        enum code rc = os_absolute(name.ptr, &cairn->arena, &path, err);
        if (rc) return rc;
        full = arena_format(&cairn->arena, "%.*s:%.*s", named ? (int)word.len : 6, named ? word.ptr : "sqlite",
                            STR_ARG(path));
        if (!full.ptr) return error_nomem(err);
    }
    struct store_options options = {.mode = STORE_WRITE,
                                    .create = !(cairn->options.flags & CAIRN_NO_CREATE),
                                    .contract = cairn->contract,
                                    .entropy = &cairn->entropy};
    return store_open(full, &options, &cairn->store, err);
}

static enum code open_engine(struct cairn *cairn, struct error *err)
{
    struct engine_options options = {
        .store = cairn->store,
        .contract = cairn->contract,
        .entropy = &cairn->entropy,
        .no_processes = cairn->options.flags & CAIRN_NO_PROCESS_TOOLS,
        .arrived = cairn->fd >= 0 ? on_arrived : NULL,
        .arrived_context = cairn,
        .host = {.tools = functions_tools(cairn->functions), .context = cairn->functions, .knows = functions_know},
        .limits = engine_limits_default,
        .observer = lib_observer(cairn)};
    options.limits.steps_max = cairn->options.max_steps;
    if (cairn->options.processes > 0) options.limits.process_max = cairn->options.processes;
    enum code rc = engine_open(&options, &cairn->engine, err);
    if (!rc) functions_attach(cairn->functions, cairn->engine);
    return rc;
}

static enum code start_thread(struct cairn *cairn, struct error *err)
{
    if (cairn->options.flags & CAIRN_NO_THREAD) return OK;
    int error = os_thread(&cairn->thread, NULL, lib_thread, cairn);
    if (error) return error_set(err, E_LIMIT, "cannot start the engine's thread: %s", strerror(error));
    cairn->threaded = true;
    return OK;
}

// Everything but the handle, which functions that are still running may ask whether they are cancelled.
static void release(struct cairn *cairn, int64_t timeout_ms)
{
    struct visit visit;
    visit_routes(cairn, &visit);
    functions_close(cairn->functions, timeout_ms);
    engine_close(cairn->engine);
    tell_notes(cairn, take_notes(cairn));
    for (size_t i = 0; i < PROGRAMS_CACHED; i++) program_release(cairn->programs[i]);
    if (cairn->reader) store_close(cairn->reader);
    if (cairn->store) store_close(cairn->store);
    if (cairn->fd >= 0) close(cairn->fd);
    cairn->fd = -1;
    arena_release(&cairn->arena);
    visit_routes_end(&visit);
}

static void free_handle(void *context)
{
    struct cairn *cairn = context;
    pthread_mutex_destroy(&cairn->turnstile);
    pthread_mutex_destroy(&cairn->mutex);
    pthread_mutex_destroy(&cairn->reader_mutex);
    free(cairn);
}

static void give_up_handle(struct cairn *cairn)
{
    if (cairn->functions)
        functions_free(cairn->functions, free_handle, cairn);
    else
        free_handle(cairn);
}

enum cairn_code cairn_open(const char *url, const struct cairn_options *options, struct cairn **out,
                           struct cairn_error *error)
{
    struct error err = {0};
    struct visit visit;
    *out = NULL;
    struct cairn *cairn = calloc(1, sizeof(*cairn));
    if (!cairn) return tell(error, E_NOMEM, NULL, NULL);
    cairn->pid = getpid();
    cairn->fd = -1;
    cairn->entropy.fill = fill_random;
    cairn->last_note = &cairn->notes;
    INVARIANT(pthread_mutex_init(&cairn->turnstile, NULL) == 0 && pthread_mutex_init(&cairn->mutex, NULL) == 0 &&
              pthread_mutex_init(&cairn->reader_mutex, NULL) == 0);
    enum code rc = copy_options(cairn, options, &err);
    visit_routes(cairn, &visit);
    arena_init(&cairn->arena, 4096, (size_t)64 << 20);
    if (!rc) rc = copy_names(cairn, &err);
    if (!rc) rc = contract_open(&cairn->arena, &cairn->contract, &err);
    if (!rc) rc = open_store(cairn, url ? url : "", &err);
    if (!rc) rc = functions_open(cairn->options.workers, 0, &cairn->functions, &err);
    if (!rc && (cairn->options.flags & CAIRN_NO_THREAD)) {
        cairn->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (cairn->fd < 0) rc = os_errno(&err, "make", "an event descriptor");
    }
    if (!rc) rc = open_engine(cairn, &err);
    if (!rc) rc = start_thread(cairn, &err);
    visit_routes_end(&visit);
    if (rc) {
        release(cairn, 0);
        give_up_handle(cairn);
    } else {
        *out = cairn;
    }
    return tell(error, rc, &err, NULL);
}

// ---- closing

// Until nothing is with a tool any more.
static void drain(struct cairn *cairn, int64_t until_ms)
{
    struct visit visit;
    if (visit_engine(cairn, &visit, NULL)) return;
    struct waiter waiter = {0};
    cairn->draining = true;
    engine_hold(cairn->engine);
    waiter_add(cairn, &waiter);
    while (cairn->dead.code == OK && engine_activity(cairn->engine).in_flight > 0 && os_now().mono_ms < until_ms) {
        int64_t look = os_now().mono_ms + 10; // nobody tells when the last one is back
        waiter_wait(cairn, &visit, &waiter, look < until_ms ? look : until_ms);
    }
    // What came back last must be stored too.
    int64_t wait_ms = 0;
    while (cairn->dead.code == OK && wait_ms == 0) lib_turn(cairn, &wait_ms);
    waiter_remove(cairn, &waiter);
    visit_end(cairn, &visit);
}

// Calls that wait come back; then nobody but this one is left.
static void send_all_away(struct cairn *cairn)
{
    struct visit visit;
    atomic_store(&cairn->closed, true);
    if (visit_engine(cairn, &visit, NULL) == OK) {
        error_set(&cairn->dead, E_CONFLICT, "the engine is closed");
        for (struct waiter *waiter = cairn->waiters; waiter; waiter = waiter->next)
            pthread_cond_signal(&waiter->changed);
        visit_end(cairn, &visit);
    }
    while (atomic_load(&cairn->users) > 1) usleep(500);
}

enum cairn_code cairn_shutdown(struct cairn *cairn, enum cairn_how how, int64_t timeout_ms)
{
    enum code rc = call_begin(cairn, NULL);
    if (rc) return rc == E_CONFLICT ? CAIRN_OK : (enum cairn_code)rc; // it has been done
    if (!may_wait(cairn) || atomic_exchange(&cairn->closing, true)) {
        call_end(cairn);
        return CAIRN_E_CONFLICT;
    }
    int64_t until = until_of(timeout_ms);
    if (how == CAIRN_DRAIN) drain(cairn, until);
    atomic_store(&cairn->stop, true);
    if (cairn->threaded) {
        engine_wake(cairn->engine);
        pthread_join(cairn->thread, NULL);
    }
    send_all_away(cairn);
    int64_t left = until - os_now().mono_ms;
    release(cairn, left > 0 ? left : 0);
    call_end(cairn);
    return CAIRN_OK;
}

void cairn_close(struct cairn *cairn, enum cairn_how how, int64_t timeout_ms)
{
    if (!cairn || cairn->pid != getpid() || cairn_shutdown(cairn, how, timeout_ms) != CAIRN_OK) return;
    give_up_handle(cairn);
}

// ---- step functions

enum cairn_code cairn_register(struct cairn *cairn, const struct cairn_kind *kind, struct cairn_error *error)
{
    struct error err = {0};
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = kind ? functions_add(cairn->functions, kind, &err) : error_set(&err, E_INVALID, "no kind");
    call_end(cairn);
    return tell(error, rc, &err, rc == E_EXISTS || rc == E_INVALID ? "" : NULL);
}

enum cairn_code cairn_load_plugin(struct cairn *cairn, const char *file, struct cairn_error *error)
{
    struct error err = {0};
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = file ? functions_load(cairn->functions, file, &err) : error_set(&err, E_INVALID, "no file");
    call_end(cairn);
    return tell(error, rc, &err, rc == E_VERSION ? "the plugin was built for another version" : NULL);
}

enum cairn_code cairn_complete(struct cairn *cairn, uint64_t token, const struct cairn_result *result,
                               struct cairn_error *error)
{
    struct error err = {0};
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = functions_complete(cairn->functions, token, result, &err);
    call_end(cairn);
    return tell(error, rc, &err, NULL);
}

int cairn_cancelled(struct cairn *cairn, uint64_t token)
{
    if (call_begin(cairn, NULL)) return 1;
    int cancelled = functions_cancelled(cairn->functions, token);
    call_end(cairn);
    return cancelled;
}

void cairn_log(struct cairn *cairn, uint64_t token, const char *line)
{
    if (call_begin(cairn, NULL)) return;
    functions_log(cairn->functions, token, str_from(line));
    call_end(cairn);
}
