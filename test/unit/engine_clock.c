// Timers and the two clocks: durations go by the monotonic one, moments of the day by the wall clock, and neither hangs (I18).
#include "base/civil.h"
#include "support/engine_kit.h"

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"
#define PLAYBOOK(task)                                                                                                 \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n  - {step: start, tool: " task "}\n"

enum { DAY_MS = 86400000 };

// The same wait in each kind of document. @: what it waits for.
static const char *const waits_until[] = {
    PLAN("{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"until\":\"@\"}}"),
    "name: n\nnodes:\n  - {id: nap, wait: {until: '@'}}\n",
    PLAYBOOK("{kind: wait, until: '@'}"),
};
static const char *const waits_long[] = {
    PLAN("{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"duration\":\"@\"}}"),
    "name: n\nnodes:\n  - {id: nap, wait: {duration: @}}\n",
    PLAYBOOK("{kind: wait, duration: @}"),
    PLAN("{\"stepId\":\"a\",\"kind\":\"approval\",\"with\":{\"timeout\":\"@\",\"onTimeout\":\"approve\"}}"),
};

static void open_with(struct kit *k, const char *form, const char *what)
{
    char text[1024];
    const char *at = strchr(form, '@');
    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - form), form, what, at + 1);
    kit_open(k, text);
}

static bool ended(struct kit *k)
{
    struct run_head head = kit_head(k, "r1");
    if (!head.terminal) return false;
    CHECK_INT(head.summary.status, RUN_STATUS_COMPLETED);
    return true;
}

static void waits_for_a_moment_long_ago_are_over_at_once(void)
{
    static const char *const moments[] = {"1970-01-01T00:00:00Z", "1969-07-20T20:17:40Z", "0001-01-01T00:00:00Z",
                                          "1970-01-01T00:00:00.001Z", "2001-09-09T01:46:40Z"};
    for (size_t i = 0; i < ARRAY_COUNT(waits_until) * ARRAY_COUNT(moments); i++) {
        struct kit k;
        open_with(&k, waits_until[i % ARRAY_COUNT(waits_until)], moments[i / ARRAY_COUNT(waits_until)]);
        kit_queue_start(&k, "r1");
        (void)kit_turn(&k);
        CHECK(!ended(&k)); // the wait has begun, and that is stored
        kit_crash(&k);
        kit_adopt(&k, "r1");
        CHECK(ended(&k)); // after a crash
        kit_start(&k, "r2");
        CHECK(kit_head(&k, "r2").terminal); // and without one
        kit_close(&k);
    }
}

static void a_wait_until_ends_when_the_wall_clock_says_so(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(waits_until); i++) {
        struct kit k;
        char when[CIVIL_SIZE];
        kit_open(&k, PLAN("{\"stepId\":\"n\",\"kind\":\"noop\"}"));
        int64_t due = k.now.wall_ms + 2 * (int64_t)DAY_MS;
        civil_format(due, when);
        kit_close(&k);
        open_with(&k, waits_until[i], when);
        kit_start(&k, "r1");
        CHECK_INT(engine_deadline(k.engine) - k.now.mono_ms, 2 * (int64_t)DAY_MS);
        k.now.wall_ms -= DAY_MS; // set back: later by as much
        kit_pass(&k, 2 * (int64_t)DAY_MS);
        CHECK(!ended(&k));
        k.now.wall_ms = due - 1;
        kit_idle(&k);
        CHECK(!ended(&k));
        k.now.wall_ms = due; // set forward: at once
        kit_idle(&k);
        CHECK(ended(&k));
        kit_close(&k);
    }
}

static void a_clock_that_was_set_back_makes_no_wait_longer(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(waits_long); i++) {
        struct kit k;
        open_with(&k, waits_long[i], "3s");
        kit_start(&k, "r1");
        kit_pass(&k, 1000);
        kit_crash(&k);
        k.now.wall_ms -= DAY_MS;
        kit_adopt(&k, "r1");
        CHECK_INT(engine_deadline(k.engine) - k.now.mono_ms, 3001); // how much of it has passed, nobody knows
        kit_pass(&k, 3001);
        CHECK(ended(&k));
        kit_close(&k);
    }
}

static void a_clock_that_was_set_back_makes_no_delay_between_attempts_longer(void)
{
    static const char *const retries[] = {
        PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"x\"},\"retry\":{\"maxAttempts\":2,"
             "\"delay\":\"@\"}}"),
        "name: n\nnodes:\n  - {id: a, bash: x, retry: {max_attempts: 2, delay_ms: @}}\n",
    };
    static const char *const delays[] = {"3s", "3000"};
    for (size_t i = 0; i < ARRAY_COUNT(retries); i++) {
        struct kit k;
        open_with(&k, retries[i], delays[i]);
        kit_start(&k, "r1");
        kit_pass(&k, 20000); // an attempt that took longer than the delay does not count
        kit_fail(&k, "a", "EXIT_NONZERO", true);
        kit_crash(&k);
        k.now.wall_ms -= DAY_MS;
        kit_adopt(&k, "r1");
        CHECK_INT(engine_deadline(k.engine) - k.now.mono_ms, 3001);
        kit_pass(&k, 3001);
        kit_done(&k, "a", "ok");
        CHECK(ended(&k));
        kit_close(&k);
    }
}

// The first attempt of a delayed start is for a moment that the caller named.
static void a_delayed_start_goes_by_the_wall_clock(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"n\",\"kind\":\"noop\"}"));
    char run[129];
    struct error err = {0};
    struct start_request request = {.program = k.program, .run = STR("r1"), .mode = MODE_DELAY, .not_before_ms = k.now.wall_ms + DAY_MS};
    CHECK_OK(engine_start(k.engine, &request, run, &err), &err);
    kit_idle(&k);
    kit_crash(&k);
    k.now.wall_ms -= DAY_MS;
    kit_adopt(&k, "r1");
    CHECK_INT(engine_deadline(k.engine) - k.now.mono_ms, 2 * (int64_t)DAY_MS);
    k.now.wall_ms += 2 * (int64_t)DAY_MS;
    kit_idle(&k);
    CHECK(ended(&k));
    kit_close(&k);
}

// A timeout that is shorter than the wait counts from the start, whatever the wait is for.
static void a_timeout_of_a_wait_until_is_a_duration(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"until\":\"2999-01-01T00:00:00Z\"},"
                      "\"timeoutMs\":3000}"));
    kit_start(&k, "r1");
    kit_crash(&k);
    k.now.wall_ms -= DAY_MS;
    kit_adopt(&k, "r1");
    kit_pass(&k, 3000);
    CHECK(!kit_head(&k, "r1").terminal);
    kit_pass(&k, 1);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(waits_for_a_moment_long_ago_are_over_at_once),
        TEST(a_wait_until_ends_when_the_wall_clock_says_so),
        TEST(a_clock_that_was_set_back_makes_no_wait_longer),
        TEST(a_clock_that_was_set_back_makes_no_delay_between_attempts_longer),
        TEST(a_delayed_start_goes_by_the_wall_clock),
        TEST(a_timeout_of_a_wait_until_is_a_duration),
    };
    return test_main("engine_clock", tests, ARRAY_COUNT(tests), argc, argv);
}
