// Hosts that are processes of their own: `cairn serve` in a directory of its own, alone, with its runs on a Temporal server, or with its
// attempts carried by a Conductor. Its clock is ours (pace.h), and attempts come to us as to any worker (arrivals.h): by its interface for
// workers, as activities, as tasks of Conductor. So all of a host is played but the work itself.
#include "equiv/outside.h"

#include "conductor/conductor.h"
#include "equiv/arrivals.h"
#include "equiv/pace.h"
#include "fetch/fetch.h"
#include "json/make.h"
#include "temporal/temporal.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    READY_MS = 60000,  // until a server answers
    SETTLE_MS = 90000, // until nothing moves
    CALL_MS = 60000,
    ANSWERS_MS = 10000,
    LOOK_NS = 1000000,
    SLOTS = 512,
    BEAT_MS = 100, // Temporal tells of a cancellation when it is asked
    WORDS_MAX = 24
};
#define POOL "equiv"
#define LEASE "120s" // a machine may be very busy

struct outside {
    struct equiv_host *host;
    struct arena arena, call; // for good; of one call
    char dir[PATH_MAX];
    struct str queue, site;   // names of this host alone, at Temporal and Conductor
    struct str temporal_at, conductor_at; // at most one of them
    pid_t pid;
    struct pace *pace;
    struct fetch_link *link;
    struct str url, token, worker_token;
    struct store *store;
    struct arrivals arrivals;
    struct temporal_settings temporal;
    struct worker *worker; // of `conductor`, where there is one
    struct conductor *conductor;
    const struct str *functions; // that the worker asks for besides
    size_t function_count;
    struct moment_in_time latest; // that was set
    int64_t past_ms;              // monotonic time before this case
    struct arena *now; // of the case
    struct trial_host trial;
    bool spoiled; // a case broke off: it begins anew
};

static void look_again(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

static const char *path_in(const struct outside *outside, struct arena *arena, const char *name)
{
    return arena_format(arena, "%s/%s", outside->dir, name).ptr;
}

// ---- the process

static void end_process(struct outside *outside)
{
    if (outside->pid > 0) {
        kill(outside->pid, SIGKILL);
        waitpid(outside->pid, NULL, 0);
    }
    outside->pid = 0;
}

static bool has_ended(struct outside *outside)
{
    if (outside->pid > 0 && waitpid(outside->pid, NULL, WNOHANG) != 0) outside->pid = 0;
    return outside->pid == 0;
}

static struct str log_text(const struct outside *outside, struct arena *arena)
{
    struct str text = STR("");
    struct error ignored = {0};
    const char *log = path_in(outside, arena, "log");
    return log && os_read_file(log, 8 << 20, arena, &text, &ignored) == OK ? text : STR("");
}

static struct str last_words(const struct outside *outside, struct arena *arena)
{
    struct str text = log_text(outside, arena), last = STR("it said nothing");
    while (text.len > 0) {
        struct str line = str_trim(str_cut(text, '\n', &text));
        if (line.len) last = line;
    }
    return last;
}

static enum code spawn_words(struct outside *outside, const char *const *words, const char *const *environment, const char *log,
                             struct error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_addchdir_np(&actions, outside->dir);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK); // ^C is for the player
    int rc = posix_spawn(&outside->pid, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)words,
                         (char *const *)(uintptr_t)environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc) outside->pid = 0;
    return rc ? error_set(err, E_LIMIT, "cairn serve cannot be started: %s", strerror(rc)) : OK;
}

// Nothing of the user's settings: what is compared is the host.
static enum code spawn(struct outside *outside, struct error *err)
{
    struct arena *arena = &outside->call;
    arena_reset(arena);
    const char *path = getenv("PATH"), *tmp = getenv("TMPDIR"), *log = path_in(outside, arena, "log");
    const char *made[] = {arena_format(arena, "sqlite:%s/store.db", outside->dir).ptr,
                          path_in(outside, arena, "token"),
                          arena_format(arena, "HOME=%s", outside->dir).ptr,
                          arena_format(arena, "XDG_CONFIG_HOME=%s", outside->dir).ptr,
                          arena_format(arena, PACE_VARIABLE "=%s/pace", outside->dir).ptr,
                          arena_format(arena, "PATH=%s", path ? path : "/usr/bin:/bin").ptr,
                          arena_format(arena, "TMPDIR=%s", tmp ? tmp : "/tmp").ptr,
                          log};
    for (size_t i = 0; i < ARRAY_COUNT(made); i++)
        if (!made[i]) return error_nomem(err);
    static const char route[] = "*=" POOL; // every step of whatever kind
    const char *words[WORDS_MAX] = {"cairn",   "serve", "--listen", "127.0.0.1:0", "--store", made[0],   "--token-file",
                                    made[1],   "--route", route,   "--lease",     LEASE,     "--drain", "0",
                                    "--no-local-steps"};
    size_t count = 15;
    const char *const there[] = {"--temporal", outside->temporal_at.ptr, "--task-queue", outside->queue.ptr};
    for (size_t i = 0; outside->temporal_at.len && i < ARRAY_COUNT(there); i++) words[count++] = there[i];
    const char *environment[] = {made[2], made[3], made[4], made[5], made[6], NULL};
    return spawn_words(outside, words, environment, log, err);
}

static enum code await_address(struct outside *outside, struct error *err)
{
    int64_t until = os_now().mono_ms + READY_MS;
    for (;; look_again()) {
        arena_reset(&outside->call);
        struct str text = log_text(outside, &outside->call), line;
        while (text.len > 0) {
            line = str_cut(text, '\n', &text);
            size_t at = str_find(line, ':', 0);
            while (at < line.len && !str_starts(str_slice(line, at, line.len), STR("://127.0.0.1:"))) at = str_find(line, ':', at + 1);
            if (at >= line.len || text.len == 0) continue; // the line is whole when another one follows
            outside->url = arena_copy(&outside->arena, str_trim(str_slice(line, at - strlen("http"), line.len)));
            return outside->url.ptr ? OK : error_nomem(err);
        }
        if (has_ended(outside) || os_now().mono_ms > until)
            return error_set(err, E_UNREACHABLE, "its cairn serve does not come up: %.*s",
                             STR_ARG(last_words(outside, &outside->call)));
    }
}

// ---- what is asked of it

static enum code ask(struct outside *outside, const char *path, const struct json *body, struct json *answer, struct error *err)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
    struct http_header type = {STR("Content-Type"), STR("application/json")};
    struct fetch_answer got;
    json_write(&text, body);
    if (!buf_ok(&text)) return error_nomem(err);
    struct fetch_call call = {.method = STR("POST"), .uri = str_from(path), .headers = &type, .header_count = 1, .body = buf_str(&text),
                              .timeout_ms = CALL_MS};
    enum code rc = fetch_link_call(outside->link, &call, &outside->call, &got, err);
    if (!rc) rc = json_parse(got.body, NULL, &outside->call, answer, err);
    if (rc || got.status < 300) return rc;
    struct str why = json_text(json_key(answer, "detail"));
    return error_set(err, E_DENIED, "its cairn serve answers %d: %.*s", got.status, STR_ARG(why));
}

static enum code link_to(struct outside *outside, struct error *err)
{
    struct str text;
    const char *file = path_in(outside, &outside->call, "token");
    enum code rc = file ? os_read_file(file, 4096, &outside->call, &text, err) : error_nomem(err);
    if (rc) return rc;
    outside->token = arena_copy(&outside->arena, str_trim(text));
    fetch_link_close(outside->link);
    outside->link = NULL;
    struct fetch_link_options options = {.url = outside->url, .token = outside->token, .timeout_ms = CALL_MS};
    return outside->token.ptr ? fetch_link_open(&options, &outside->link, err) : error_nomem(err);
}

static enum code ask_for_token(struct outside *outside, struct error *err)
{
    struct json roles = json_array(), answer;
    json_append(&outside->call, &roles, json_word(outside->conductor_at.len ? "Host" : "Worker"));
    struct json body = JSON_OF(&outside->call, {"name", json_word("equiv")}, {"roles", roles}, {"pool", json_word(POOL)});
    enum code rc = outside->worker_token.len ? OK : ask(outside, "/v1/tokens", &body, &answer, err);
    if (rc || outside->worker_token.len) return rc;
    outside->worker_token = arena_copy(&outside->arena, json_text(json_key(&answer, "token")));
    return outside->worker_token.len ? OK : error_set(err, E_DENIED, "its cairn serve gives no token for workers");
}

static enum code open_store(struct outside *outside, struct error *err)
{
    struct store_options options = {.mode = STORE_READ, .contract = outside->host->equiv->options.contract, .entropy = os_entropy()};
    struct str url = arena_format(&outside->call, "sqlite:%s/store.db", outside->dir);
    if (outside->store) return OK;
    return url.ptr ? store_open(url, &options, &outside->store, err) : error_nomem(err);
}

static enum code bring_up(struct outside *outside, struct error *err)
{
    enum code rc = spawn(outside, err);
    if (!rc) rc = await_address(outside, err);
    if (!rc) rc = link_to(outside, err);
    if (!rc && !outside->temporal_at.len) rc = ask_for_token(outside, err);
    return rc ? rc : open_store(outside, err);
}

// ---- who takes its attempts

static void say_nothing(void *context, bool warning, const char *text)
{
    (void)context;
    if (warning) os_log(LOG_WARN, "worker of equiv why=\"%s\"", text);
}

static size_t functions_of(const struct program *program, struct str *out)
{
    size_t count = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct program_step *step = &program->steps[i];
        if (step->kind == STEP_HOST && out) out[count] = step->function;
        count += step->kind == STEP_HOST;
        if (step->child) count += functions_of(step->child, out ? out + count : NULL);
    }
    return count;
}

static bool has_functions(const struct outside *outside, const struct str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool has = false;
        for (size_t k = 0; k < outside->function_count; k++) has = has || str_eq(outside->functions[k], names[i]);
        if (!has) return false;
    }
    return true;
}

static enum code all_kinds(struct outside *outside, struct worker_options *options, struct error *err)
{
    static const struct task_options tasks = {.plugins = NULL}; // what the binary brings
    options->task = &tasks;
    enum code rc = worker_kinds(options, STR(""), &outside->arena, err);
    options->task = NULL;
    struct str *kinds = rc ? NULL : ARENA_ARRAY(&outside->arena, options->kind_count + outside->function_count + 1, struct str);
    if (rc) return rc;
    if (!kinds) return error_nomem(err);
    memcpy(kinds, options->kinds, options->kind_count * sizeof(*kinds));
    for (size_t i = 0; i < outside->function_count; i++) kinds[options->kind_count + i] = outside->functions[i];
    options->kinds = kinds;
    options->kind_count += outside->function_count;
    return OK;
}

static void dismiss(struct outside *outside)
{
    if (outside->conductor)
        conductor_close(outside->conductor);
    else if (outside->worker)
        worker_close(outside->worker);
    outside->conductor = NULL;
    outside->worker = NULL;
    arrivals_clear(&outside->arrivals);
}

static enum code employ(struct outside *outside, struct error *err)
{
    struct worker_options options = {.link = {.url = outside->url, .token = outside->worker_token},
                                     .name = STR("equiv"),
                                     .pool = STR(POOL),
                                     .slots = SLOTS,
                                     .tools = &outside->arrivals.base,
                                     .beat_ms = BEAT_MS,
                                     .secrets = &tool_secrets_none,
                                     .quiet = true,
                                     .say = say_nothing};
    enum code rc = all_kinds(outside, &options, err);
    if (rc) return rc;
    if (!outside->conductor_at.len) {
        outside->temporal = (struct temporal_settings){.address = outside->temporal_at, .queue = outside->queue};
        if (outside->temporal_at.len) options.temporal = &outside->temporal;
        return worker_open(&options, &outside->worker, err);
    }
    struct conductor_options carried = {.link = {.url = outside->conductor_at}, .worker = options, .site = outside->site};
    rc = conductor_open(&carried, &outside->conductor, err);
    if (!rc) outside->worker = conductor_worker(outside->conductor);
    return rc;
}

// A worker asks for the same kinds as long as it lives.
static enum code employ_for(struct outside *outside, const struct program *program, struct error *err)
{
    size_t count = functions_of(program, NULL);
    struct str *names = ARENA_ARRAY(&outside->arena, count + 1, struct str);
    if (!names) return error_nomem(err);
    functions_of(program, names);
    if (outside->worker && has_functions(outside, names, count)) return OK;
    dismiss(outside);
    for (size_t i = 0; i < count; i++) {
        names[i] = arena_copy(&outside->arena, names[i]);
        if (!names[i].ptr) return error_nomem(err);
    }
    outside->functions = names;
    outside->function_count = count;
    return employ(outside, err);
}

// ---- as the player sees it

// Its time goes on from case to case, as that of any machine; the wall clock is the script's.
static void set_time(struct outside *outside, struct trial_now now)
{
    outside->latest = (struct moment_in_time){.wall_ms = now.wall_ms, .mono_ms = outside->past_ms + now.mono_ms};
    pace_set(outside->pace, outside->latest);
}

static enum code start(void *context, const struct start_request *request, struct trial_now now, struct error *err)
{
    struct outside *outside = context;
    const struct program *program = request->program;
    struct arena *arena = &outside->call;
    struct json parts = json_array(), answer;
    arena_reset(arena);
    for (uint32_t i = 0; i < program->part_count; i++) {
        const struct program_part *part = &program->parts[i];
        json_append(arena, &parts,
                    JSON_OF(arena, {"from", json_string(part->from)}, {"request", json_string(part->request)},
                            {"file", json_string(part->file)}, {"text", json_string(part->text)}));
    }
    struct json body = JSON_OF(arena, {"document", json_string(program->text)}, {"file", json_some(program->file)},
                               {"parts", json_filled(parts)}, {"runId", json_string(request->run)},
                               {"inputs", request->inputs}, {"arguments", json_some(request->arguments)},
                               {"targetAdapter", json_some(request->target_adapter)});
    set_time(outside, now);
    return ask(outside, "/v1/runs", &body, &answer, err);
}

static void read_decision(const struct json *record, struct engine_decision *out)
{
    out->accepted = str_is(json_text(json_key(record, "decision")), "ACCEPTED");
    out->deferred = str_is(json_text(json_key(record, "decision")), "REVISION_REQUIRED");
    out->error_code = json_text(json_at(record, STR("engineResult.errorCode")));
    out->error_message = json_text(json_key(record, "reason"));
}

// By the inbox of the store, as `cairn signal` on the same machine: the sender is who the script says, and what the world outside
// delivers has no other door.
static enum code send(void *context, struct str run, const struct signal *signal, struct trial_now now, struct arena *arena,
                      struct engine_decision *out, struct error *err)
{
    struct outside *outside = context;
    struct str bytes;
    struct json record;
    enum code rc = signal_encode(signal, arena, &bytes, err);
    set_time(outside, now);
    if (!rc) rc = store_post(outside->store, STR("default"), run, signal->id, bytes, err);
    int64_t until = os_now().mono_ms + SETTLE_MS;
    while (!rc) {
        rc = engine_find_decision(outside->store, STR("default"), run, signal->id, arena, &record, NULL, err);
        if (rc != E_NOT_FOUND) break;
        *err = (struct error){0};
        rc = OK;
        if (has_ended(outside)) return error_set(err, E_UNREACHABLE, "its cairn serve has ended: %.*s",
                                                 STR_ARG(last_words(outside, arena)));
        if (os_now().mono_ms > until) return error_set(err, E_TIMEOUT, "it was not decided");
        look_again();
    }
    if (!rc) read_decision(&record, out);
    return rc;
}

struct handed {
    struct arena arena; // owns its texts, and this
};

static void handed_free(void *memory)
{
    struct arena arena = ((struct handed *)memory)->arena;
    arena_release(&arena);
}

static void deliver(void *context, const struct tool_result *result, struct trial_now now)
{
    struct outside *outside = context;
    set_time(outside, now);
    arrivals_over(&outside->arrivals, result->ticket);
    struct tool_result out = *result;
    struct arena arena = arena_of(4096, (size_t)256 << 20);
    struct handed *handed = ARENA_NEW(&arena, struct handed);
    if (!handed || !ARENA_KEEP(&arena, &out.output) || !fault_keep(&arena, &out.fault)) { // then nobody knows what came out
        arena_release(&arena);
        worker_hand(outside->worker, &(struct tool_result){.ticket = result->ticket, .lost = true});
        return;
    }
    *handed = (struct handed){.arena = arena};
    out.memory = handed;
    out.release = handed_free;
    worker_hand(outside->worker, &out);
}

// The engine has done what there is to do, what it ordered has reached us, and what we gave has reached it. An attempt that the engine gave
// up without waiting for it is one that we hold and are asked to stop, and that it does not count.
static bool has_settled(struct outside *outside, size_t held, size_t stopping, struct pace_rest *rest)
{
    struct pace_rest after;
    if (!pace_rests(outside->pace, rest)) return false;
    struct arrivals_news news = arrivals_look(&outside->arrivals);
    if (!pace_rests(outside->pace, &after) || after.pass != rest->pass) return false; // it has worked meanwhile
    int64_t given_up = (int64_t)(held + news.request_count) - (int64_t)rest->in_flight;
    int64_t stopped = (int64_t)(stopping + news.stop_count) - (int64_t)rest->stopping;
    return given_up >= 0 && given_up == stopped;
}

static enum code settle(void *context, struct trial_now now, size_t held, size_t stopping, struct trial_news *out, struct error *err)
{
    struct outside *outside = context;
    struct arrivals_news news;
    struct pace_rest rest;
    int64_t until = os_now().mono_ms + SETTLE_MS;
    set_time(outside, now);
    for (uint32_t looks = 0; !has_settled(outside, held, stopping, &rest); look_again()) {
        if (++looks % 100) continue;
        if (has_ended(outside))
            return error_set(err, E_UNREACHABLE, "its cairn serve has ended: %.*s", STR_ARG(last_words(outside, outside->now)));
        if (os_now().mono_ms < until) continue;
        bool rests = pace_rests(outside->pace, &rest);
        news = arrivals_look(&outside->arrivals);
        return error_set(err, E_TIMEOUT, "nothing came to rest: %s, attempts %llu (%llu stopping), here %zu and %zu new (%zu and %zu)",
                         rests ? "the engine waits" : "the engine works", (unsigned long long)rest.in_flight,
                         (unsigned long long)rest.stopping, held, news.request_count, stopping, news.stop_count);
    }
    if (!arrivals_take(&outside->arrivals, outside->now, &news)) return error_nomem(err);
    *out = (struct trial_news){.requests = news.requests,
                               .request_count = news.request_count,
                               .stops = news.stops,
                               .stop_count = news.stop_count,
                               .deadline_ms = rest.deadline_ms == INT64_MAX ? INT64_MAX : rest.deadline_ms - outside->past_ms};
    return OK;
}

static enum code kill_it(void *context, struct error *err)
{
    struct outside *outside = context;
    end_process(outside);
    dismiss(outside);
    enum code rc = bring_up(outside, err);
    return rc ? rc : employ(outside, err);
}

static struct store *store_of(void *context)
{
    return ((struct outside *)context)->store;
}

// ---- rows

static void take_down(struct outside *outside)
{
    end_process(outside);
    dismiss(outside);
    if (outside->store) store_close(outside->store);
    outside->store = NULL;
    fetch_link_close(outside->link);
    outside->link = NULL;
    outside->worker_token = (struct str){0};
    pace_free(outside->pace);
    outside->pace = NULL;
    os_remove_tree(outside->dir);
}

static enum code set_up(struct outside *outside, struct error *err)
{
    const char *file = path_in(outside, &outside->arena, "pace");
    if (!file) return error_nomem(err);
    if (mkdir(outside->dir, 0700) != 0) return os_errno(err, "make", outside->dir);
    enum code rc = pace_make(file, &outside->pace, err);
    outside->past_ms = 0;
    if (!rc) set_time(outside, (struct trial_now){.mono_ms = 1, .wall_ms = TRIAL_START_MS});
    return rc ? rc : bring_up(outside, err);
}

static enum code open_outside(struct equiv_host *host, struct str temporal, struct str conductor, struct error *err)
{
    struct outside *outside = host->outside = calloc(1, sizeof(*outside));
    char id[UUID_SIZE];
    if (!outside) return error_nomem(err);
    arena_init(&outside->arena, 4096, (size_t)64 << 20);
    arena_init(&outside->call, 65536, (size_t)512 << 20);
    arrivals_open(&outside->arrivals);
    entropy_uuid(os_entropy(), id);
    outside->host = host;
    outside->queue = outside->site = arena_format(&outside->arena, "equiv-%s", id);
    outside->temporal_at = arena_format(&outside->arena, "%.*s", STR_ARG(temporal));
    outside->conductor_at = conductor;
    outside->trial = (struct trial_host){outside, start, send, deliver, settle, kill_it, store_of};
    int len = snprintf(outside->dir, sizeof(outside->dir), "%s/%s", host->equiv->options.scratch, host->row->kind.name);
    bool fits = len > 0 && (size_t)len < sizeof(outside->dir) - 64 && outside->queue.ptr && outside->temporal_at.ptr;
    return fits ? set_up(outside, err) : error_nomem(err);
}

static void close_link(struct fetch_link **link)
{
    fetch_link_close(*link);
}

enum code server_play_open(struct equiv_host *host, struct error *err)
{
    return open_outside(host, STR(""), STR(""), err);
}

enum code temporal_play_open(struct equiv_host *host, struct error *err)
{
    return open_outside(host, host->place, STR(""), err);
}

enum code conductor_play_open(struct equiv_host *host, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    struct fetch_link *link SCOPED(close_link) = NULL;
    struct fetch_link_options options = {.url = host->place, .timeout_ms = ANSWERS_MS};
    struct fetch_call call = {.uri = STR("/metadata/taskdefs/" CONDUCTOR_ATTEMPT)};
    struct fetch_answer answer;
    struct error why = {0};
    enum code rc = fetch_link_open(&options, &link, &why);
    if (!rc) rc = fetch_link_call(link, &call, &arena, &answer, &why);
    if (rc) return error_set(err, E_UNREACHABLE, "Conductor at %.*s: %s", STR_ARG(host->place), why.message);
    return open_outside(host, STR(""), host->place, err);
}

void outside_close(struct equiv_host *host)
{
    struct outside *outside = host->outside;
    if (!outside) return;
    take_down(outside);
    arrivals_close(&outside->arrivals);
    arena_release(&outside->arena);
    arena_release(&outside->call);
    free(outside);
    host->outside = NULL;
}

enum code outside_play(struct equiv_host *host, struct equiv_playing *playing, struct error *err)
{
    struct outside *outside = host->outside;
    enum code rc = OK;
    for (size_t i = 0; i < playing->script->mock_count; i++)
        if (playing->script->mocks[i].real)
            return error_set(err, E_UNSUPPORTED, "steps that really run (real: true) are for hosts of this process");
    if (outside->spoiled) {
        take_down(outside);
        rc = set_up(outside, err);
    }
    outside->spoiled = true;
    outside->now = playing->arena;
    outside->past_ms = outside->latest.mono_ms;
    arrivals_clear(&outside->arrivals);
    if (!rc) rc = employ_for(outside, playing->program, err);
    playing->options.host = &outside->trial;
    if (!rc) rc = trial_stay(&playing->options, playing->arena, &playing->log->result, &host->world, err);
    if (!rc) playing->log->store = trial_store(host->world);
    outside->spoiled = rc != OK;
    return rc;
}
