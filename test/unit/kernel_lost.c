// Whoever had an attempt is gone and nobody will tell what came out: the same logical attempt runs again.
#include "support/story.h"

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"
#define ONE PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"retry\":{\"maxAttempts\":2,\"delay\":0}}")

static void lose(struct story *s, const char *step)
{
    struct input input = {.lost = true};
    story_answer(s, step, &input);
    if (story_waits(s, EFFECT_TIMER, step)) story_timer(s, step); // it rests
}

static void lost_worker_raises_the_engine_attempt_not_the_logical_C_34_RE_5c_ES_1_3b(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    buf_clear(&s.told);
    lose(&s, "a");
    story_expect(&s, "[0] STEP_REDISPATCHED a 1.2\n");
    lose(&s, "a");
    story_expect(&s, "[0] STEP_REDISPATCHED a 1.3\n"); // two platform retries
    story_done(&s, "a", NULL);
    story_expect(&s, "[0] STEP_COMPLETED a 1.3\n[0] RUN_COMPLETED\n");
    story_close(&s);
}

static void loss_of_an_older_attempt_changes_nothing_I14(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    lose(&s, "a");
    buf_clear(&s.told);
    struct input old = {.kind = INPUT_RESULT, .lost = true, .step = 0, .logical = 1, .engine = 1};
    story_step(&s, &old);
    story_expect(&s, "[0] LATE_RESULT a 1.1\n");
    old.lost = false;
    old.ok = true;
    old.value = json_null();
    story_step(&s, &old);
    story_expect(&s, "[0] LATE_RESULT a 1.1\n");
    story_done(&s, "a", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    COVERED(attempt_late);
    story_close(&s);
}

static void step_that_kills_its_workers_fails_in_the_end_and_the_policy_counts_that(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    int64_t began = s.now;
    for (int i = 1; i < ENGINE_ATTEMPTS_MAX; i++) lose(&s, "a");
    CHECK(s.now - began > 60000); // not twenty workers at once
    s.now = 0;
    buf_clear(&s.told);
    lose(&s, "a");
    story_expect(&s, "[0] ATTEMPT_FAILED a 1.20 WORKER_LOST\n[0] STEP_STARTED a 2.1\n");
    for (int i = 1; i < ENGINE_ATTEMPTS_MAX; i++) lose(&s, "a");
    s.now = 0;
    buf_clear(&s.told);
    lose(&s, "a");
    story_expect(&s, "[0] STEP_FAILED a 2.20 WORKER_LOST\n[0] RUN_FAILED WORKER_LOST\n");
    COVERED(retry_at_once);
    story_close(&s);
}

// However far engines that were killed have raised the number of an attempt: a worker that is killed, too, is one loss.
static void a_worker_that_is_lost_after_many_engines_is_one_loss_C_34(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    for (int k = 1; k < ENGINE_ATTEMPTS_MAX + 5; k++) {
        if (k % 10 == 0) s.now += 120000; // a storm that pauses now and then
        story_crash(&s);
        if (story_waits(&s, EFFECT_TIMER, "a")) story_timer(&s, "a");
    }
    CHECK(told_count(&s, "STEP_REDISPATCHED") > ENGINE_ATTEMPTS_MAX);
    lose(&s, "a");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    story_done(&s, "a", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void nothing_starts_in_a_pause_and_resume_finds_the_lost_I25(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    story_signal(&s, SIGNAL_PAUSE, "");
    buf_clear(&s.told);
    lose(&s, "a");
    story_expect(&s, "");
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "a"));
    story_signal(&s, SIGNAL_RESUME, "");
    story_expect(&s, "[0] SIGNAL_ACCEPTED RESUME\n[0] RUN_RESUMED cycle 1\n[0] STEP_REDISPATCHED a 1.2\n");
    story_done(&s, "a", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void cancelled_run_does_not_wait_for_a_lost_worker(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    story_signal(&s, SIGNAL_CANCEL, "");
    buf_clear(&s.told);
    lose(&s, "a");
    story_expect(&s, "[0] STEP_FAILED a 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    story_close(&s);
}

static const struct poison {
    const char *document, *step;
} poisons[] = {{PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"x\"}}"), "a"},
               {"name: n\nnodes:\n  - {id: a, bash: x}\n", "a"},
               {"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n  - {step: a, tool: "
                "{kind: shell, cmds: x}}\n",
                "a/a_task"}};

// Whatever executes it and whatever document it is of: engines that die of a step within a minute, one after the other, are counted.
static void a_step_that_kills_its_engines_rests_and_fails_in_the_end_C_34(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(poisons); i++) {
        struct story s;
        const char *step = poisons[i].step;
        story_open(&s, poisons[i].document);
        story_start(&s);
        int64_t began = s.now;
        for (int k = 1; k < ENGINE_ATTEMPTS_MAX; k++) {
            int64_t died = s.now;
            story_crash(&s);
            CHECK_INT(story_waits(&s, EFFECT_TIMER, step), k > DEATHS_AT_ONCE);
            if (k > DEATHS_AT_ONCE) story_timer(&s, step);
            CHECK(s.now - died <= REST_MAX_MS);
            CHECK(story_waits(&s, EFFECT_EXECUTE, step));
        }
        CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
        CHECK(s.now - began > 60000); // nobody dies twenty times within a minute
        CHECK_INT(told_count(&s, "ATTEMPT_RESTS"), ENGINE_ATTEMPTS_MAX - 1 - DEATHS_AT_ONCE); // each rest is told once
        story_crash(&s);
        CHECK_INT(s.run->status, RUN_STATUS_FAILED);
        CHECK_STR(s.run->fault.code, STR("WORKER_LOST"));
        CHECK_STR(s.run->failed_step, STR("a"));
        COVERED(attempt_poisoned);
        COVERED(attempt_rests);
        story_close(&s);
    }
}

static void a_step_is_not_blamed_for_engines_that_are_killed_at_once_a_hundred_times(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(poisons); i++) {
        struct story s;
        story_open(&s, poisons[i].document);
        story_start(&s);
        for (int k = 0; k < 100; k++) {
            s.now += 50;
            story_crash(&s);
        }
        CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
        uint32_t losses = 0, step = kernel_find(s.run, STR("a"));
        if (story_waits(&s, EFFECT_TIMER, poisons[i].step)) {
            CHECK(kernel_rests(s.run, step, &losses) > s.now);
            CHECK(losses > DEATHS_AT_ONCE);
            story_timer(&s, poisons[i].step);
        }
        CHECK(story_waits(&s, EFFECT_EXECUTE, poisons[i].step));
        CHECK_INT(kernel_rests(s.run, step, &losses), 0);
        CHECK(told_count(&s, "ATTEMPT_RESTS") < 15); // engines that take it up within its rest say nothing new
        story_close(&s);
    }
}

static void a_rest_does_not_wait_for_a_clock_that_was_set_back(void)
{
    struct story s;
    story_open(&s, poisons[0].document);
    story_start(&s);
    for (int k = 0; k < DEATHS_AT_ONCE; k++) story_crash(&s);
    s.now -= 86400000;
    story_crash(&s);
    CHECK(story_waits(&s, EFFECT_EXECUTE, "a"));
    story_close(&s);
}

static void a_pause_of_an_attempt_that_rests_is_over_when_it_is_resumed(void)
{
    struct story s;
    story_open(&s, poisons[0].document);
    story_start(&s);
    for (int k = 0; k <= DEATHS_AT_ONCE; k++) story_crash(&s);
    CHECK(story_waits(&s, EFFECT_TIMER, "a"));
    story_signal(&s, SIGNAL_PAUSE, "");
    CHECK_INT(s.run->status, RUN_STATUS_PAUSED);
    story_timer(&s, "a");
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "a"));
    story_signal(&s, SIGNAL_RESUME, "");
    CHECK(story_waits(&s, EFFECT_EXECUTE, "a"));
    story_close(&s);
}

static void a_service_may_be_restarted_any_number_of_times_during_a_long_step(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(poisons); i++) {
        struct story s;
        story_open(&s, poisons[i].document);
        story_start(&s);
        for (int k = 0; k < 3 * ENGINE_ATTEMPTS_MAX; k++) {
            s.now += 60000;
            story_crash(&s);
        }
        CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
        CHECK(story_waits(&s, EFFECT_EXECUTE, poisons[i].step));
        story_close(&s);
    }
}

static void crash_after_a_loss_goes_on_counting(void)
{
    struct story s;
    story_open(&s, ONE);
    story_start(&s);
    lose(&s, "a");
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED a 1.3\n");
    story_done(&s, "a", NULL);
    story_close(&s);
}

// Its executor is apart from the engine and knows it by its number: however many engines die, it is the same attempt.
static void an_attempt_that_is_executed_apart_is_claimed_under_its_number(void)
{
    struct story s;
    struct input claim = {.kind = INPUT_RECOVER, .apart = true};
    story_open(&s, ONE);
    story_start(&s);
    lose(&s, "a");
    buf_clear(&s.told);
    for (int i = 0; i < 2 * ENGINE_ATTEMPTS_MAX; i++) {
        story_crash_as(&s, claim);
        story_expect(&s, "");
        CHECK_INT(s.effect_count, 1);
        CHECK_INT(s.effects[0].kind, EFFECT_EXECUTE);
        CHECK_INT(s.effects[0].engine, 2);
    }
    COVERED(attempt_claimed);
    lose(&s, "a"); // a loss is one all the same
    story_expect(&s, "[0] STEP_REDISPATCHED a 1.3\n");
    story_signal(&s, SIGNAL_PAUSE, "");
    buf_clear(&s.told);
    story_crash_as(&s, claim);
    story_expect(&s, ""); // a pause starts nothing
    for (size_t i = 0; i < s.effect_count; i++) CHECK(s.effects[i].kind != EFFECT_EXECUTE);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(lost_worker_raises_the_engine_attempt_not_the_logical_C_34_RE_5c_ES_1_3b),
        TEST(loss_of_an_older_attempt_changes_nothing_I14),
        TEST(step_that_kills_its_workers_fails_in_the_end_and_the_policy_counts_that),
        TEST(a_worker_that_is_lost_after_many_engines_is_one_loss_C_34),
        TEST(nothing_starts_in_a_pause_and_resume_finds_the_lost_I25),
        TEST(cancelled_run_does_not_wait_for_a_lost_worker),
        TEST(a_step_that_kills_its_engines_rests_and_fails_in_the_end_C_34),
        TEST(a_step_is_not_blamed_for_engines_that_are_killed_at_once_a_hundred_times),
        TEST(a_rest_does_not_wait_for_a_clock_that_was_set_back),
        TEST(a_pause_of_an_attempt_that_rests_is_over_when_it_is_resumed),
        TEST(a_service_may_be_restarted_any_number_of_times_during_a_long_step),
        TEST(crash_after_a_loss_goes_on_counting),
        TEST(an_attempt_that_is_executed_apart_is_claimed_under_its_number),
    };
    return test_main("kernel_lost", tests, ARRAY_COUNT(tests), argc, argv);
}
