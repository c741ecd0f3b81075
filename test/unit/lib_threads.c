// The library under threads: completion from elsewhere, timeouts, cancellation, hooks, loops of the host's own, several
// engines, closing at any moment.
#include "support/lib_kit.h"

#include <poll.h>

// ---- functions that answer later

struct later {
    atomic_int called, cancelled;
    _Atomic uint64_t first, token; // of the first attempt and of the latest
    struct cairn *engine;
};

static enum cairn_answer answer_later(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    struct later *later = context;
    (void)result;
    if (atomic_load(&later->called) == 0) atomic_store(&later->first, attempt->token);
    atomic_store(&later->token, attempt->token);
    atomic_fetch_add(&later->called, 1);
    return CAIRN_PENDING;
}

static void on_cancelled(void *context, uint64_t token)
{
    struct later *later = context;
    if (atomic_load(&later->token) == token) atomic_fetch_add(&later->cancelled, 1);
}

static void register_later(struct cairn *c, struct later *later)
{
    later->engine = c;
    struct cairn_kind kind = {
        .size = sizeof(kind), .name = "later", .run = answer_later, .cancelled = on_cancelled, .context = later};
    LIB_OK(cairn_register(c, &kind, e));
}

static void *complete_it(void *context)
{
    struct later *later = context;
    struct cairn_result result = {.size = sizeof(result), .output = "{\"late\":true}"};
    usleep(2000);
    LIB_OK(cairn_complete(later->engine, later->token, &result, e));
    return NULL;
}

static void completion_comes_from_any_thread_and_only_once(void)
{
    struct later later = {0};
    struct cairn *c = lib_open("memory:", NULL);
    register_later(c, &later);
    lib_start(c, PLAN(CALL("a", "later", "")), "r1", NULL);
    lib_until(&later.called, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, complete_it, &later) == 0);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    pthread_join(thread, NULL);
    lib_expect_output(c, "r1", "a", "{\"late\":true}");
    struct cairn_result result = {.size = sizeof(result), .answer = CAIRN_FAIL};
    CHECK_INT(cairn_complete(c, later.token, &result, NULL), CAIRN_E_CONFLICT);
    CHECK_INT(cairn_complete(c, 12345, &result, NULL), CAIRN_E_CONFLICT);
    CHECK(cairn_cancelled(c, later.token));
    cairn_close(c, CAIRN_NOW, -1);
}

static void a_pending_attempt_times_out_and_its_token_dies(void)
{
    struct later later = {0};
    struct cairn *c = lib_open("memory:", NULL);
    register_later(c, &later);
    lib_start(c, PLAN(CALL_WITH("a", "later", "", "\"timeout\":30")), "r1", NULL);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_FAILED);
    lib_until(&later.cancelled, 1);
    struct cairn_result result = {.size = sizeof(result)};
    CHECK_INT(cairn_complete(c, later.token, &result, NULL), CAIRN_E_CONFLICT);
    char *view = NULL;
    LIB_OK(cairn_view(c, "r1", 0, &view, NULL, e));
    CHECK(strstr(view, "TIMEOUT") && strstr(view, "timed out after 30ms"));
    cairn_free(view);
    cairn_close(c, CAIRN_NOW, -1);
}

static void a_retry_gives_a_new_token_and_the_old_one_is_refused(void)
{
    struct later later = {0};
    struct cairn *c = lib_open("memory:", NULL);
    register_later(c, &later);
    lib_start(c, PLAN(CALL_WITH("a", "later", "", "\"timeout\":30,\"retry\":{\"maxAttempts\":9,\"delay\":1}")), "r1",
              NULL);
    lib_until(&later.called, 2);
    struct cairn_result result = {.size = sizeof(result), .output = "2"};
    CHECK_INT(cairn_complete(c, later.first, &result, NULL), CAIRN_E_CONFLICT);
    while (cairn_complete(c, later.token, &result, NULL) == CAIRN_E_CONFLICT) usleep(500);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    cairn_close(c, CAIRN_NOW, -1);
}

// ---- functions that take their time

struct slow {
    atomic_int entered, stopped;
    atomic_bool stubborn, release;
    struct cairn *engine;
};

static enum cairn_answer be_slow(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    struct slow *slow = context;
    atomic_fetch_add(&slow->entered, 1);
    while (!atomic_load(&slow->release)) {
        bool cancelled = cairn_cancelled(slow->engine, attempt->token); // also long after cairn_close
        if (!atomic_load(&slow->stubborn) && cancelled) {
            atomic_fetch_add(&slow->stopped, 1);
            result->code = "STOPPED";
            return CAIRN_FAIL;
        }
        usleep(500);
    }
    atomic_fetch_add(&slow->stopped, 1);
    return CAIRN_DONE;
}

static void cancel(struct cairn *c, const char *run, const char *type)
{
    struct cairn_signal signal = {.size = sizeof(signal), .type = type, .reason = "test"};
    struct cairn_decision decision = {.size = sizeof(decision)};
    LIB_OK(cairn_signal(c, run, &signal, &decision, e));
    CHECK(decision.accepted);
}

static void a_function_sees_that_it_is_cancelled(void)
{
    struct slow slow = {0};
    struct cairn *c = lib_open("memory:", NULL);
    slow.engine = c;
    lib_register(c, "slow", be_slow, &slow);
    lib_start(c, PLAN(CALL("a", "slow", "")), "r1", NULL);
    lib_until(&slow.entered, 1);
    cancel(c, "r1", "CANCEL");
    CHECK_INT(lib_wait(c, "r1"), CAIRN_CANCELLED);
    CHECK_INT(slow.stopped, 1);
    cairn_close(c, CAIRN_NOW, -1);
}

static void a_stubborn_function_is_left_behind(void)
{
    struct slow slow = {.stubborn = true};
    struct cairn_options options = {.size = sizeof(options), .workers = 1};
    struct cairn *c = lib_open("memory:", &options);
    slow.engine = c;
    lib_register(c, "slow", be_slow, &slow);
    lib_start(c, PLAN(CALL("a", "slow", "")), "r1", NULL);
    lib_start(c, PLAN(CALL("a", "slow", "")), "r2", NULL); // waits for the only worker
    lib_until(&slow.entered, 1);
    cancel(c, "r1", "EMERGENCY_STOP");
    CHECK_INT(lib_wait(c, "r1"), CAIRN_CANCELLED);
    CHECK_INT(slow.stopped, 0); // still running, and nobody waits for it
    cancel(c, "r2", "CANCEL");  // was never called
    CHECK_INT(lib_wait(c, "r2"), CAIRN_CANCELLED);
    cairn_close(c, CAIRN_NOW, 10);
    usleep(5000); // it asks on, after everything is gone
    atomic_store(&slow.release, true);
    lib_until(&slow.stopped, 1);
    CHECK_INT(slow.entered, 1);
    usleep(5000);
}

static void *drain(void *engine)
{
    cairn_close(engine, CAIRN_DRAIN, 5000);
    return NULL;
}

static void draining_finishes_what_runs_and_begins_nothing(void)
{
    struct slow slow = {.stubborn = true};
    struct cairn *c = lib_open(lib_url(), NULL);
    slow.engine = c;
    lib_register(c, "slow", be_slow, &slow);
    lib_start(c, PLAN(CALL("a", "slow", "") "," CALL_WITH("b", "slow", "", "\"dependsOn\":[\"a\"]")), "r1", NULL);
    lib_until(&slow.entered, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, drain, c) == 0);
    usleep(20000);
    atomic_store(&slow.release, true);
    pthread_join(thread, NULL);
    CHECK_INT(slow.entered, 1);

    c = lib_open(lib_url(), NULL);
    slow.engine = c;
    lib_register(c, "slow", be_slow, &slow);
    char *json = NULL;
    LIB_OK(cairn_output(c, "r1", "a", &json, NULL, e)); // it was stored
    cairn_free(json);
    LIB_OK(cairn_recover(c, "r1", NULL, e));
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    CHECK_INT(slow.entered, 2); // a was not called again
    cairn_close(c, CAIRN_DRAIN, -1);
}

static void *wait_in_vain(void *context)
{
    struct cairn_error error;
    intptr_t code = cairn_wait(context, "r1", -1, NULL, &error);
    return (void *)code;
}

static void shutting_down_sends_everybody_away(void)
{
    struct cairn *c = lib_open(lib_url(), NULL);
    pthread_t threads[4];
    void *codes[4];
    struct cairn_events *events = NULL;
    struct cairn_event event = {.size = sizeof(event)};
    lib_start(c, PLAN("{\"stepId\":\"gate\",\"kind\":\"approval\"}"), "r1", NULL);
    LIB_OK(cairn_events_open(c, "r1", 0, &events, e));
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, wait_in_vain, c) == 0);
    usleep(10000);
    CHECK_INT(cairn_shutdown(c, CAIRN_DRAIN, 1000), CAIRN_OK);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &codes[i]);
        CHECK_INT((intptr_t)codes[i], CAIRN_E_CONFLICT);
    }
    CHECK_INT(cairn_events_next(events, &event, NULL), CAIRN_E_CONFLICT);
    CHECK_INT(cairn_wait(c, "r1", 0, NULL, NULL), CAIRN_E_CONFLICT);
    CHECK_INT(cairn_recover(c, NULL, NULL, NULL), CAIRN_E_CONFLICT);
    CHECK_INT(cairn_shutdown(c, CAIRN_NOW, 0), CAIRN_OK); // once more harmless
    cairn_events_close(events);
    cairn_close(c, CAIRN_NOW, 0);
}

// ---- hooks

struct told {
    atomic_int ended, lines, logged, taken;
    atomic_long bytes;
    _Atomic int64_t shift_ms;
    struct cairn *engine;
    atomic_int from_hook;
};

static void told_ended(void *context, const char *run, enum cairn_status status)
{
    struct told *told = context;
    CHECK(strcmp(run, "r1") == 0 || strcmp(run, "r2") == 0);
    CHECK_INT(status, CAIRN_COMPLETED);
    // Waiting would never end here; looking is fine.
    if (cairn_wait(told->engine, run, -1, NULL, NULL) == CAIRN_E_CONFLICT) atomic_fetch_add(&told->from_hook, 1);
    char *view = NULL;
    LIB_OK(cairn_view(told->engine, run, 0, &view, NULL, e));
    cairn_free(view);
    atomic_fetch_add(&told->ended, 1);
}

static void told_line(void *context, const char *run, const char *step, int is_stderr, const char *line)
{
    struct told *told = context;
    CHECK(strcmp(run, "r1") == 0 && strcmp(step, "a") == 0 && !is_stderr && strcmp(line, "half way") == 0);
    atomic_fetch_add(&told->lines, 1);
}

static void told_log(void *context, enum cairn_level level, const char *line)
{
    struct told *told = context;
    CHECK(level >= CAIRN_LOG_ERROR && line[0] != '\0');
    atomic_fetch_add(&told->logged, 1);
}

static void *told_allocate(void *context, size_t size)
{
    struct told *told = context;
    atomic_fetch_add(&told->bytes, (long)size);
    atomic_fetch_add(&told->taken, 1);
    return malloc(size);
}

static void told_release(void *context, void *memory, size_t size)
{
    struct told *told = context;
    atomic_fetch_sub(&told->bytes, (long)size);
    free(memory);
}

static void told_now(void *context, int64_t *wall_ms, int64_t *mono_ms)
{
    struct told *told = context;
    *wall_ms = INT64_C(4102444800000) + told->shift_ms; // 2100-01-01
    *mono_ms = 1000 + told->shift_ms;
}

static enum cairn_answer talk(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    struct told *told = context;
    (void)result;
    cairn_log(told->engine, attempt->token, "half way");
    return CAIRN_DONE;
}

static void hooks_are_told(void)
{
    struct told told = {0};
    struct cairn_options options = {.size = sizeof(options),
                                    .context = &told,
                                    .ended = told_ended,
                                    .output = told_line,
                                    .log = told_log,
                                    .allocate = told_allocate,
                                    .release = told_release,
                                    .now = told_now};
    struct cairn *c = told.engine = lib_open(lib_url(), &options);
    lib_register(c, "talk", talk, &told);
    lib_start(c, PLAN(CALL("a", "talk", "")), "r1", NULL);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    lib_until(&told.ended, 1);
    CHECK_INT(told.lines, 1);
    CHECK_INT(told.from_hook, 1);
    // A day passes when the clock says so.
    lib_start(c, PLAN(CALL("w", "wait", "\"duration\":\"1d\"")), "r2", NULL);
    CHECK_INT(cairn_wait(c, "r2", 20, NULL, NULL), CAIRN_E_TIMEOUT);
    told.shift_ms = 86400001;
    CHECK_INT(lib_wait(c, "r2"), CAIRN_COMPLETED);
    char *view = NULL;
    LIB_OK(cairn_view(c, "r2", 0, &view, NULL, e));
    CHECK(strstr(view, "2100-01-02T"));
    cairn_free(view);
    cairn_close(c, CAIRN_NOW, -1);
    CHECK(told.taken > 10);
    CHECK_INT(told.bytes, 0);
}

// ---- a loop of the host's own

static void the_host_turns_the_engine(void)
{
    struct later later = {0};
    struct cairn_options options = {.size = sizeof(options), .flags = CAIRN_NO_THREAD | CAIRN_NO_PROCESS_TOOLS};
    struct cairn *c = lib_open("memory:", &options);
    register_later(c, &later);
    lib_start(c, PLAN(CALL("a", "later", "") "," CALL_WITH("b", "wait", "\"duration\":20", "\"dependsOn\":[\"a\"]")),
              "r1", NULL);
    CHECK(cairn_fd(c) >= 0);
    enum cairn_status status = 0;
    bool completed = false;
    for (int i = 0; i < 10000 && cairn_wait(c, "r1", 0, &status, NULL) == CAIRN_E_TIMEOUT; i++) {
        int64_t wait_ms = 0;
        LIB_OK(cairn_turn(c, &wait_ms, e));
        struct pollfd fd = {.fd = cairn_fd(c), .events = POLLIN};
        if (wait_ms != 0) poll(&fd, 1, (int)wait_ms);
        struct cairn_result result = {.size = sizeof(result)};
        if (!completed && later.called == 1) completed = cairn_complete(c, later.token, &result, NULL) == CAIRN_OK;
    }
    CHECK(completed);
    CHECK_INT(status, CAIRN_COMPLETED);
    lib_start(c, PLAN(CALL("w", "wait", "\"duration\":20")), "r2", NULL);
    CHECK_INT(lib_wait(c, "r2"), CAIRN_COMPLETED); // whoever waits turns
    struct cairn_error error;
    struct cairn_start start = {.size = sizeof(start), .document = PLAN(CALL("s", "shell", "\"command\":\"true\""))};
    CHECK_INT(cairn_start(c, &start, NULL, &error), CAIRN_E_UNSUPPORTED);
    CHECK(strstr(error.message, "needs a process"));
    cairn_close(c, CAIRN_NOW, -1);
}

// ---- many of everything

struct crowd {
    struct cairn *engine;
    int first;
};

static void *run_some(void *context)
{
    struct crowd *crowd = context;
    for (int i = 0; i < 25; i++) {
        char run[32], inputs[64];
        snprintf(run, sizeof(run), "r%d", crowd->first + i);
        snprintf(inputs, sizeof(inputs), "{\"n\":%d}", crowd->first + i);
        lib_start(crowd->engine,
                  PLAN(CALL("a", "same", "\"n\":\"$INPUTS.n\"") "," CALL_WITH("b", "same", "\"n\":\"$a.output.n\"",
                                                                              "\"dependsOn\":[\"a\"]")),
                  run, inputs);
        CHECK_INT(lib_wait(crowd->engine, run), CAIRN_COMPLETED);
        lib_expect_output(crowd->engine, run, "b", inputs);
    }
    return NULL;
}

static void many_threads_run_many_runs_on_two_engines_of_one_store(void)
{
    enum { THREADS = 6 };
    atomic_int calls = 0;
    struct cairn *engines[2];
    pthread_t threads[THREADS];
    struct crowd crowds[THREADS];
    for (int i = 0; i < 2; i++) {
        engines[i] = lib_open(lib_url(), NULL);
        lib_register(engines[i], "same", lib_echo, &calls);
    }
    for (int i = 0; i < THREADS; i++) {
        crowds[i] = (struct crowd){.engine = engines[i % 2], .first = i * 25};
        CHECK(pthread_create(&threads[i], NULL, run_some, &crowds[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_INT(calls, THREADS * 25 * 2);
    for (int i = 0; i < 2; i++) cairn_close(engines[i], CAIRN_NOW, -1);
}

static void a_run_of_another_engine_can_be_watched_and_signalled(void)
{
    struct later later = {0};
    struct cairn *a = lib_open(lib_url(), NULL), *b = lib_open(lib_url(), NULL);
    register_later(a, &later);
    lib_start(a, PLAN(CALL("a", "later", "")), "r1", NULL);
    lib_until(&later.called, 1);
    enum cairn_status status = 0;
    CHECK_INT(cairn_wait(b, "r1", 10, &status, NULL), CAIRN_E_TIMEOUT);
    CHECK_INT(status, CAIRN_RUNNING);
    CHECK_INT(cairn_recover(b, "r1", NULL, NULL), CAIRN_E_LOCKED);
    cancel(b, "r1", "CANCEL");
    CHECK_INT(lib_wait(b, "r1"), CAIRN_CANCELLED);
    CHECK_INT(lib_wait(a, "r1"), CAIRN_CANCELLED);
    cairn_close(b, CAIRN_NOW, -1);
    cairn_close(a, CAIRN_NOW, -1);
}

static void processes_run_beside_functions(void)
{
    struct cairn *a = lib_open("memory:", NULL), *b = lib_open("memory:", NULL);
    struct cairn *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        lib_register(both[i], "same", lib_echo, NULL);
        lib_start(both[i],
                  PLAN(CALL("s", "shell", "\"command\":\"sleep 0.05; echo hi\"") "," CALL_WITH(
                      "f", "same", "\"said\":\"$s.output\"", "\"dependsOn\":[\"s\"]")),
                  "r1", NULL);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_INT(lib_wait(both[i], "r1"), CAIRN_COMPLETED);
        lib_expect_output(both[i], "r1", "f", "{\"said\":\"hi\"}");
        cairn_close(both[i], CAIRN_NOW, -1);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(completion_comes_from_any_thread_and_only_once),
        TEST(a_pending_attempt_times_out_and_its_token_dies),
        TEST(a_retry_gives_a_new_token_and_the_old_one_is_refused),
        TEST(a_function_sees_that_it_is_cancelled),
        TEST(a_stubborn_function_is_left_behind),
        TEST(draining_finishes_what_runs_and_begins_nothing),
        TEST(shutting_down_sends_everybody_away),
        TEST(hooks_are_told),
        TEST(the_host_turns_the_engine),
        TEST(many_threads_run_many_runs_on_two_engines_of_one_store),
        TEST(a_run_of_another_engine_can_be_watched_and_signalled),
        TEST(processes_run_beside_functions),
    };
    return test_main("lib_threads", tests, ARRAY_COUNT(tests), argc, argv);
}
