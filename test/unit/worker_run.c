// A worker (`cairn worker`) against the product's server side over a real socket: engine, task table, HTTP, processes,
// functions.
#include "worker/worker.h"
#include "harness/test.h"
#include "net/net.h"
#include "unit/support/explained_store.h"
#include "unit/support/told.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"
#define SHELL(id, command, more)                                                                                       \
    "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"dependsOn\":[],\"with\":{\"command\":\"" command "\"}" more "}"

#define CALL(id, function, more) "{\"stepId\":\"" id "\",\"kind\":\"" function "\",\"dependsOn\":[]" more "}"

struct site {
    struct arena memory;
    const struct contract *contract;
    struct store *store;
    struct program *program;
    struct engine *engine;
    struct remote *remote;
    struct net_server *server;
    pthread_t net_thread;
    atomic_bool down; // answers 503
    struct buf told;  // engine thread, and read when the engine stands
    char url[64];
    struct worker *worker;
    struct functions *functions; // of the worker; NULL: none
    struct str kinds[16];
    pthread_mutex_t mutex;
    char warned[512];
};

// ---- the server
static void on_answer(void *context, int status, struct str body)
{
    struct http_header type = {STR("Content-Type"), STR("application/json")};
    net_reply(context, status, &type, 1, body);
}

static bool alive(const void *context)
{
    return net_alive(context);
}

static void put_artifact(struct site *site, struct net_exchange *x, struct str path)
{
    struct str name, token = str_cut(str_slice(path, strlen("/v1/worker/artifacts/"), path.len), '/', &name);
    struct error err = {0};
    struct remote_caller caller = {0};
    enum code rc = remote_artifact(site->remote, &caller, token, name, net_request(x)->body, &err);
    net_reply(x, rc ? 404 : 204, NULL, 0, (struct str){0});
}

static void handle(void *context, struct net_exchange *x)
{
    static const char *const names[] = {"", "poll", "heartbeat", "logs", "complete", "fail"};
    struct site *site = context;
    struct remote_caller caller = {.alive = alive};
    struct str path = net_request(x)->path;
    if (atomic_load(&site->down)) {
        net_reply(x, 503, NULL, 0, (struct str){0});
        return;
    }
    if (str_starts(path, STR("/v1/worker/artifacts/"))) {
        put_artifact(site, x, path);
        return;
    }
    CHECK(str_starts(path, STR("/v1/worker/")));
    struct str name = str_slice(path, strlen("/v1/worker/"), path.len);
    for (size_t i = 1; i < ARRAY_COUNT(names); i++)
        if (str_is(name, names[i]))
            remote_serve(site->remote, (enum remote_call)i, &caller, net_request(x)->body, on_answer, x);
}

static void *serve(void *context)
{
    net_run(((struct site *)context)->server);
    return NULL;
}

static void seen(void *context, const struct engine_event *event)
{
    told_moment(&((struct site *)context)->told, event->moment);
}

static bool any_function(void *context, struct str kind)
{
    (void)context;
    (void)kind;
    return true;
}

static void site_open(struct site *site, const char *plan, int64_t lease_ms)
{
    struct error err = {0};
    memset(site, 0, sizeof(*site));
    os_log_level(LOG_ERROR);
    pthread_mutex_init(&site->mutex, NULL);
    arena_init(&site->memory, 4096, (size_t)256 << 20);
    buf_init(&site->told, (size_t)16 << 20);
    CHECK_OK(contract_open(&site->memory, &site->contract, &err), &err);
    struct store_options store = {.mode = STORE_WRITE, .create = true, .contract = site->contract};
    store.entropy = os_entropy();
    char where[512];
    snprintf(where, sizeof(where), "files:%s/store", test_dir());
    CHECK_OK(store_open(str_from(where), &store, &site->store, &err), &err);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &site->memory);
    struct program_loader loader = {.host_kind = any_function};
    CHECK_OK(program_load(str_from(plan), STR("test"), &loader, &diagnostics, &site->program, &err), &err);
    struct remote_options remote = {.lease_ms = lease_ms};
    CHECK_OK(remote_open(&remote, &site->remote, &err), &err);
    struct engine_options engine = {
        .store = site->store,
        .contract = site->contract,
        .entropy = os_entropy(),
        .pools = remote_tools(site->remote),
        .routes = {.only_pools = true},
        .observer = {.context = site, .event = seen}};
    CHECK_OK(engine_open(&engine, &site->engine, &err), &err);
    remote_attach(site->remote, site->engine);
    const char *address = "127.0.0.1:0";
    struct net_options net = {.listen = &address, .listen_count = 1, .handle = handle, .context = site};
    CHECK_OK(net_open(&net, &site->server, &err), &err);
    snprintf(site->url, sizeof(site->url), "http://127.0.0.1:%u", net_port(site->server, 0));
    CHECK(pthread_create(&site->net_thread, NULL, serve, site) == 0);
}

static void site_close(struct site *site)
{
    remote_shut(site->remote);
    engine_close(site->engine);
    net_stop(site->server);
    pthread_join(site->net_thread, NULL);
    net_close(site->server);
    remote_free(site->remote);
    program_release(site->program);
    explained_store(site->store);
    store_close(site->store);
    buf_release(&site->told);
    arena_release(&site->memory);
}

// ---- the worker
static void say(void *context, bool warning, const char *text)
{
    struct site *site = context;
    pthread_mutex_lock(&site->mutex);
    if (warning) snprintf(site->warned, sizeof(site->warned), "%s", text);
    pthread_mutex_unlock(&site->mutex);
}

static void start_worker(struct site *site, uint32_t slots)
{
    struct str kinds[16] = {STR("shell")};
    size_t more = site->functions ? functions_names(site->functions, kinds + 1, ARRAY_COUNT(kinds) - 1) : 0;
    struct worker_options options = {.link = {.url = str_from(site->url)},
                                   .name = STR("w1"),
                                   .pool = STR("default"),
                                   .kinds = kinds,
                                   .kind_count = 1 + more,
                                   .slots = slots,
                                   .functions = site->functions,
                                   .say = say,
                                   .context = site};
    struct error err = {0};
    memcpy(site->kinds, kinds, sizeof(kinds)); // they live as long as the worker
    options.kinds = site->kinds;
    CHECK_OK(worker_open(&options, &site->worker, &err), &err);
}

static void end_worker(struct site *site, uint64_t results)
{
    struct error err;
    worker_drain(site->worker);
    for (int i = 0; worker_busy(site->worker, &err) > 0; i++) {
        CHECK(i < 3000);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    CHECK_INT(err.code, OK);
    CHECK_INT(worker_count(site->worker), results);
    worker_close(site->worker);
}

static void start(struct site *site, const char *run)
{
    struct start_request request = {.program = site->program, .run = str_from(run), .triggered_by = STR("test")};
    char id[129];
    struct error err = {0};
    CHECK_OK(engine_start(site->engine, &request, id, &err), &err);
}

// Turns until `what` was told, or all runs have ended.
static void run_until(struct site *site, const char *what)
{
    struct error err = {0};
    int64_t until = os_now().mono_ms + 30000;
    while (what ? !strstr(site->told.ptr, what) : engine_activity(site->engine).resident > 0) {
        bool worked;
        if (os_now().mono_ms > until) test_fail(__FILE__, __LINE__, "too slow; so far: %s", site->told.ptr);
        CHECK_OK(engine_turn(site->engine, os_now(), &worked, &err), &err);
        if (!worked && !(what && strstr(site->told.ptr, what))) engine_wait(site->engine, os_now().mono_ms + 20);
    }
}

static bool told(const struct site *site, const char *text)
{
    return strstr(site->told.ptr, text) != NULL;
}

// Run r1, of whose steps so many are in the hands of the worker.
static void start_and_lease(struct site *site, uint32_t slots, uint32_t leases)
{
    start_worker(site, slots);
    start(site, "r1");
    run_until(site, "STEP_STARTED");
    int64_t until = os_now().mono_ms + 20000;
    while (remote_counts(site->remote).leased < leases) {
        CHECK(os_now().mono_ms < until);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void run_many(struct site *site, int count)
{
    for (int i = 0; i < count; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        start(site, run);
    }
    run_until(site, NULL);
    CHECK(!told(site, "REDISPATCHED") && !told(site, "FAILED"));
}

static void emergency_stop(struct site *site)
{
    struct signal signal = {.type = SIGNAL_EMERGENCY_STOP,
                            .id = STR("11111111-1111-4111-8111-111111111111"),
                            .reason = STR("fire"),
                            .actor = STR("ann"),
                            .role = STR("Admin"),
                            .payload = json_object()};
    struct error err = {0};
    CHECK_OK(engine_signal(site->engine, STR("default"), STR("r1"), &signal, &err), &err);
    run_until(site, NULL);
}

static struct str file(struct site *site, const char *name)
{
    struct str text = {0};
    struct error err = {0};
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    CHECK_OK(os_read_file(path, 65536, &site->memory, &text, &err), &err);
    return text;
}

static bool holds(struct str text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

// ---- the tests
static void steps_run_at_a_worker_with_logs_outputs_faults_and_artifacts(void)
{
    struct site site;
    site_open(
        &site,
        PLAN(SHELL("good", "echo out; echo err >&2; echo $CAIRN_STEP_ID", "") "," SHELL("bad", "exit 7", "") "," SHELL(
            "file", "mkdir $ARTIFACTS_DIR/d; echo 42 > $ARTIFACTS_DIR/d/r.txt; echo $ARTIFACTS_DIR",
            ",\"artifacts\":[{\"path\":\"d/r.txt\"}]") "," SHELL("late", "sleep 60", ",\"timeout\":\"200ms\"")),
        0);
    start_worker(&site, 4);
    start(&site, "r1");
    run_until(&site, NULL);
    CHECK(told(&site, "STEP_COMPLETED good 1.1"));
    CHECK(told(&site, "STEP_FAILED bad 1.1 EXIT_NONZERO"));
    CHECK(told(&site, "STEP_COMPLETED file 1.1"));
    CHECK(told(&site, "STEP_FAILED late 1.1 TIMEOUT"));
    end_worker(&site, 4);
    struct str log = file(&site, "store/r1/logs/good.1.1.log");
    CHECK(holds(log, " out out\n") && holds(log, " out good\n") && holds(log, " err err\n") &&
          holds(log, " end exit 0\n"));
    CHECK_STR(file(&site, "store/r1/artifacts/d/r.txt"), STR("42\n"));
    site_close(&site);
}

static void many_steps_pass_through_few_slots(void)
{
    enum { RUNS = 20 };
    struct site site;
    site_open(&site, PLAN(SHELL("a", "true", "") "," SHELL("b", "true", "") "," SHELL("c", "true", "")), 0);
    start_worker(&site, 3);
    run_many(&site, RUNS);
    end_worker(&site, 3 * RUNS);
    site_close(&site);
}

static void cancelled_run_kills_the_process_at_the_worker(void)
{
    struct site site;
    site_open(&site, PLAN(SHELL("a", "trap '' TERM; sleep 60; sleep 60", "")), 0);
    start_and_lease(&site, 1, 1);
    int64_t began = os_now().mono_ms;
    emergency_stop(&site);
    CHECK(told(&site, "STEP_FAILED a 1.1 CANCELLED\nRUN_CANCELLED"));
    CHECK(os_now().mono_ms - began < 8000); // by the notice, not by the end of the lease
    end_worker(&site, 1);
    site_close(&site);
}

static void server_that_is_away_is_waited_for_and_nothing_is_lost(void)
{
    struct site site;
    site_open(&site, PLAN(SHELL("a", "sleep 0.3; echo done", "")), 0);
    start_and_lease(&site, 1, 1);
    atomic_store(&site.down, true);
    for (bool warned = false; !warned;) { // it has ended meanwhile, and cannot say so
        pthread_mutex_lock(&site.mutex);
        warned = strstr(site.warned, "does not answer") != NULL;
        pthread_mutex_unlock(&site.mutex);
    }
    atomic_store(&site.down, false);
    run_until(&site, NULL);
    CHECK(told(&site, "STEP_COMPLETED a 1.1\nRUN_COMPLETED"));
    end_worker(&site, 1);
    site_close(&site);
}

static void attempt_whose_lease_cannot_be_renewed_is_stopped_and_runs_elsewhere_I14(void)
{
    enum { LEASE_MS = 600 };
    struct site site;
    site_open(&site, PLAN(SHELL("a", "if [ $CAIRN_ENGINE_ATTEMPT = 1 ]; then sleep 60; fi; echo done", "")), LEASE_MS);
    start_and_lease(&site, 2, 1);
    atomic_store(&site.down, true);
    run_until(&site, "STEP_REDISPATCHED a 1.2");
    atomic_store(&site.down, false);
    run_until(&site, NULL);
    CHECK(told(&site, "STEP_COMPLETED a 1.2\nRUN_COMPLETED") || told(&site, "STEP_COMPLETED a 1.3\nRUN_COMPLETED"));
    CHECK(!told(&site, "LATE_RESULT"));
    end_worker(&site, 1); // at once: the sleep was killed
    site_close(&site);
}

static void stopped_worker_gives_its_steps_back(void)
{
    struct site site;
    site_open(&site, PLAN(SHELL("a", "if [ $CAIRN_ENGINE_ATTEMPT = 1 ]; then sleep 60; fi; echo done", "")), 0);
    start_and_lease(&site, 1, 1);
    // The last call is answered when it is durable, so somebody has to turn the engine meanwhile.
    pthread_t closing;
    CHECK(pthread_create(&closing, NULL, (void *(*)(void *))(void (*)(void))worker_close, site.worker) == 0);
    run_until(&site, "STEP_REDISPATCHED a 1.2");
    pthread_join(closing, NULL);
    start_worker(&site, 1);
    run_until(&site, NULL);
    CHECK(told(&site, "STEP_COMPLETED a 1.2\nRUN_COMPLETED"));
    end_worker(&site, 1);
    site_close(&site);
}

// ---- functions
enum { PENDING_MAX = 600 };
static struct {
    pthread_mutex_t mutex;
    struct functions *functions;
    uint64_t tokens[PENDING_MAX];
    size_t count, enough;
    atomic_int told;
} later = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static enum cairn_answer bounce(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    functions_log(context, attempt->token, STR("bouncing"));
    result->output = attempt->input;
    return CAIRN_DONE;
}

static enum cairn_answer refuse(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)context;
    (void)attempt;
    result->code = "CARD_DECLINED";
    result->message = "no money";
    return CAIRN_FAIL;
}

// Pending until so many of them are: whoever is the last one completes them all.
static enum cairn_answer gather(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    struct functions *functions = context;
    struct error err = {0};
    struct cairn_result done = {.size = sizeof(done), .output = "1"};
    pthread_mutex_lock(&later.mutex);
    later.tokens[later.count++] = attempt->token;
    bool last = later.count == later.enough;
    pthread_mutex_unlock(&later.mutex);
    for (size_t i = 0; last && i + 1 < later.count; i++)
        while (functions_complete(functions, later.tokens[i], &done, &err)) // its function may not have returned yet
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (!last) return CAIRN_PENDING;
    result->output = "1";
    return CAIRN_DONE;
}

static void told_cancelled(void *context, uint64_t token)
{
    (void)context;
    (void)token;
    atomic_fetch_add(&later.told, 1);
}

static enum cairn_answer block(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)result;
    while (!functions_cancelled(context, attempt->token)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_fetch_add(&later.told, 1);
    return CAIRN_FAIL;
}

static void functions_start(struct site *site)
{
    struct error err = {0};
    const struct cairn_kind kinds[] = {
        {.name = "bounce", .run = bounce},
        {.name = "refuse", .run = refuse},
        {.name = "gather", .run = gather, .cancelled = told_cancelled},
        {.name = "block", .run = block},
    };
    later.count = later.enough = 0;
    atomic_store(&later.told, 0);
    CHECK_OK(functions_open(8, 2, &site->functions, &err), &err);
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        struct cairn_kind kind = kinds[i];
        kind.size = sizeof(kind);
        kind.context = site->functions;
        CHECK_OK(functions_add(site->functions, &kind, &err), &err);
    }
}

static void functions_end(struct site *site)
{
    functions_close(site->functions, -1);
    functions_free(site->functions, NULL, NULL);
}

static void functions_of_plugins_run_at_a_worker_beside_processes(void)
{
    struct site site;
    site_open(&site,
              PLAN(CALL("good", "bounce", ",\"with\":{\"n\":[1,{\"a\":\"b\"}]}") "," CALL("bad", "refuse", "") "," CALL(
                  "late", "block", ",\"timeout\":\"100ms\"") "," SHELL("process", "echo hello", "")),
              0);
    functions_start(&site);
    start_worker(&site, 4);
    start(&site, "r1");
    run_until(&site, NULL);
    CHECK(told(&site, "STEP_COMPLETED good 1.1"));
    CHECK(told(&site, "STEP_FAILED bad 1.1 CARD_DECLINED"));
    CHECK(told(&site, "STEP_FAILED late 1.1 TIMEOUT"));
    CHECK(told(&site, "STEP_COMPLETED process 1.1"));
    end_worker(&site, 4);
    struct str log = file(&site, "store/r1/logs/good.1.1.log"), events = file(&site, "store/r1/events.jsonl");
    CHECK(holds(log, " out bouncing\n") && holds(log, " end done\n"));
    CHECK(holds(events, "{\"n\":[1,{\"a\":\"b\"}]}") && holds(events, "no money"));
    functions_end(&site);
    CHECK_INT(atomic_load(&later.told), 1); // the one that was abandoned
    site_close(&site);
}

// More than one call has room for, none of which can end before all have begun.
static void functions_by_the_hundred_are_at_hand_at_once(void)
{
    enum { RUNS = 300 };
    struct site site;
    site_open(&site, PLAN(CALL("a", "gather", "")), 0);
    functions_start(&site);
    later.enough = RUNS;
    start_worker(&site, RUNS);
    run_many(&site, RUNS);
    end_worker(&site, RUNS);
    functions_end(&site);
    site_close(&site);
}

static void cancelled_function_is_told_wherever_it_waits(void)
{
    struct site site;
    site_open(&site, PLAN(CALL("a", "gather", "") "," CALL("b", "block", "")), 0);
    functions_start(&site);
    later.enough = PENDING_MAX;
    start_and_lease(&site, 2, 2);
    emergency_stop(&site);
    CHECK(told(&site, "STEP_FAILED a 1.1 CANCELLED") && told(&site, "STEP_FAILED b 1.1"));
    CHECK(told(&site, "RUN_CANCELLED"));
    end_worker(&site, 2);
    functions_end(&site);
    CHECK_INT(atomic_load(&later.told), 2);
    site_close(&site);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(steps_run_at_a_worker_with_logs_outputs_faults_and_artifacts),
        TEST(many_steps_pass_through_few_slots),
        TEST(cancelled_run_kills_the_process_at_the_worker),
        TEST(server_that_is_away_is_waited_for_and_nothing_is_lost),
        TEST(attempt_whose_lease_cannot_be_renewed_is_stopped_and_runs_elsewhere_I14),
        TEST(stopped_worker_gives_its_steps_back),
        TEST(functions_of_plugins_run_at_a_worker_beside_processes),
        TEST(functions_by_the_hundred_are_at_hand_at_once),
        TEST(cancelled_function_is_told_wherever_it_waits),
    };
    return test_main("worker_run", tests, ARRAY_COUNT(tests), argc, argv);
}
