// The write budget of a service (ES-5, C-18, ADR 0019), with a store that is slow or has no room.
#include "support/engine_kit.h"

#define RETRIED PLAN(SHELL("a", "", ",\"retry\":{\"maxAttempts\":2,\"delay\":\"1ms\"}"))

static void open_with_budget(struct kit *k, const char *plan, int64_t budget_ms)
{
    kit_open(k, plan);
    k->engine->options.limits.write_budget_ms = budget_ms;
}

// The result of a's first attempt comes when there is no room, for so many tries of 200 ms.
static void finish_while_full(struct kit *k, uint32_t tries)
{
    kit_start(k, "r1");
    buf_clear(&k->told);
    k->full_left = tries;
    kit_deliver(k, "a", true, "ok", false);
    kit_turn(k);
    for (uint32_t i = 0; i <= tries; i++) kit_pass(k, 200);
}

static bool is_recorded(struct kit *k, const char *text)
{
    struct records records;
    struct error err = {0};
    bool found = false;
    struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .limit = 1000};
    CHECK_OK(store_read(k->store, &range, &k->memory, &records, &err), &err);
    for (size_t i = 0; i < records.count; i++)
        found |= memmem(records.items[i].bytes.ptr, records.items[i].bytes.len, text, strlen(text)) != NULL;
    return found;
}

static void a_slow_append_is_noticed_and_counts_as_stored_ES_5a_C_18(void)
{
    struct kit k;
    open_with_budget(&k, LINEAR, 50);
    kit_start(&k, "r1");
    uint64_t before = engine_activity(k.engine).slow_writes; // a loaded machine may be slow by itself
    k.slow_ms = 80;
    buf_clear(&k.told);
    kit_done(&k, "a", "ok");
    // Late, but stored: not a failure after a completion.
    kit_expect(&k, "r1 STEP_COMPLETED a 1.1\nr1 STEP_STARTED b 1.1\n");
    CHECK(engine_activity(k.engine).slow_writes > before);
    kit_close(&k);
}

static void the_start_of_a_run_never_outruns_its_event_I11(void)
{
    struct kit k;
    open_with_budget(&k, LINEAR, 300);
    kit_start(&k, "r1");
    kit_done(&k, "a", "ok");
    CHECK_INT(kit_waiting(&k), 1);
    kit_close(&k);

    open_with_budget(&k, LINEAR, 300);
    k.full_left = 5; // a second without room
    kit_start(&k, "r1");
    for (int i = 0; i < 4; i++) {
        kit_pass(&k, 200);
        CHECK_INT(k.attempt_count, 0); // I11: what no event names is not started
    }
    kit_pass(&k, 200);
    kit_expect(&k,
               "r1 RUN_QUEUED\nr1 RUN_STARTED\nr1 STEP_STARTED a 1.1\n"); // appended, once, before anything of the step
    CHECK_INT(k.attempt_count, 1);
    kit_close(&k);
}

static void a_result_over_budget_fails_its_attempt_ES_5c(void)
{
    struct kit k;
    open_with_budget(&k, RETRIED, 300);
    finish_while_full(&k, 3);
    CHECK(kit_told(&k, "r1 ATTEMPT_FAILED a 1.1 STATE_STORE_WRITE_BUDGET_EXCEEDED"));
    CHECK(!kit_told(&k, "STEP_COMPLETED"));
    CHECK(is_recorded(&k, "STATE_STORE_WRITE_BUDGET_EXCEEDED"));
    // Retryable: the policy of the step gives it another attempt, and one completion is all there is.
    kit_pass(&k, 10);
    CHECK(kit_told(&k, "r1 STEP_STARTED a 2.1"));
    kit_done(&k, "a", "ok");
    CHECK(kit_told(&k, "r1 STEP_COMPLETED a 2.1"));
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

// All of the wait counts: what the append itself waited, and what the result had waited before.
static void an_append_may_wait_for_what_is_left_of_the_budget_ES_5a(void)
{
    struct kit k;
    open_with_budget(&k, RETRIED, 500);
    kit_start(&k, "r1");
    CHECK_INT(k.wait_ms, 500);
    k.full_left = 2;
    kit_deliver(&k, "a", true, "ok", false);
    kit_turn(&k);
    CHECK_INT(k.wait_ms, 500);
    kit_pass(&k, 200);
    CHECK_INT(k.wait_ms, 300);
    kit_pass(&k, 200);
    CHECK_INT(k.wait_ms, 100);
    CHECK(kit_told(&k, "r1 STEP_COMPLETED a 1.1"));
    kit_close(&k);
    open_with_budget(&k, RETRIED, engine_limits_default.write_budget_ms);
    kit_start(&k, "r1");
    CHECK_INT(k.wait_ms, 0); // as long as the store likes
    kit_close(&k);
}

static void an_append_that_waits_over_the_budget_fails_the_attempt_ES_5c(void)
{
    struct kit k;
    open_with_budget(&k, RETRIED, 50);
    kit_start(&k, "r1");
    buf_clear(&k.told);
    k.full_left = 1;
    k.slow_ms = 60; // the append waits for a lock, in vain, before the next try is made
    kit_deliver(&k, "a", true, "ok", false);
    kit_turn(&k);
    k.slow_ms = 0;
    kit_pass(&k, 200);
    CHECK(kit_told(&k, "r1 ATTEMPT_FAILED a 1.1 STATE_STORE_WRITE_BUDGET_EXCEEDED"));
    CHECK(!kit_told(&k, "STEP_COMPLETED"));
    kit_close(&k);
}

static void a_result_within_budget_waits_for_its_store_ES_5c(void)
{
    struct kit k;
    open_with_budget(&k, RETRIED, 1000);
    finish_while_full(&k, 3);
    kit_expect(&k, "r1 STEP_COMPLETED a 1.1\nr1 RUN_COMPLETED\n");
    kit_close(&k);
}

// A run on one's own machine waits for its disk: nothing is done twice because of it.
static void without_a_budget_results_wait_as_long_as_it_takes_I9(void)
{
    struct kit k;
    open_with_budget(&k, RETRIED, engine_limits_default.write_budget_ms);
    finish_while_full(&k, 100);
    kit_expect(&k, "r1 STEP_COMPLETED a 1.1\nr1 RUN_COMPLETED\n");
    kit_close(&k);
}

static char said[512];

static enum code parse(const char *text, struct engine_limits *out)
{
    struct arena arena;
    struct json config;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(json_parse(str_from(text), NULL, &arena, &config, &err), &err);
    enum code rc = engine_write_budget_parse(&config, out, &err);
    CHECK((rc == OK) == (err.message[0] == '\0'));
    snprintf(said, sizeof(said), "%s", err.message);
    arena_release(&arena);
    return rc;
}

static void defaults_and_refusals_of_the_budget_ES_5d(void)
{
    struct engine_limits limits = {0};
    CHECK_INT(engine_write_budget_parse(NULL, &limits, NULL), OK);
    CHECK_INT(limits.write_budget_ms, 3000);
    CHECK(limits.starts_fail_open);
    limits = (struct engine_limits){0};
    CHECK_INT(parse("{}", &limits), OK);
    CHECK_INT(limits.write_budget_ms, 3000);
    CHECK(limits.starts_fail_open);
    // As the contract writes it.
    CHECK_INT(parse("{\"writeLatencyBudgetMs\":500,\"failOpenForEventClass\":[\"StepStarted\"],"
                    "\"neverFailOpen\":[\"StepCompleted\",\"StepFailed\"]}",
                    &limits),
              OK);
    CHECK_INT(limits.write_budget_ms, 500);
    CHECK(limits.starts_fail_open);
    CHECK_INT(parse("{\"failOpenForEventClass\":[],\"neverFailOpen\":[\"StepStarted\",\"StepCompleted\",\"StepFailed\"]}", &limits),
              OK);
    CHECK(!limits.starts_fail_open);
    static const char *const wrong[][2] = {
        {"[]", "must be an object"},
        {"{\"writeLatencyBudgetMs\":0}", "from 1 to 3600000"},
        {"{\"writeLatencyBudgetMs\":\"3s\"}", "from 1 to 3600000"},
        {"{\"failOpenForEventClass\":\"StepStarted\"}", "stateStore.failOpenForEventClass: must be a list"},
        {"{\"failOpenForEventClass\":[\"StepStarted\",\"StepCompleted\"]}", "StepCompleted may not fail open: an outcome"},
        {"{\"failOpenForEventClass\":[\"StepFailed\"]}", "StepFailed may not fail open: an outcome"},
        {"{\"failOpenForEventClass\":[\"SignalAccepted\"]}", "SignalAccepted may not fail open: who has sent a signal"},
        {"{\"failOpenForEventClass\":[\"RunCompleted\"]}", "RunCompleted may not fail open: a run begins and ends"},
        {"{\"failOpenForEventClass\":[\"StepStartd\"]}", "no event class \"StepStartd\""},
        {"{\"failOpenForEventClass\":[7]}", "no event class"},
        {"{\"neverFailOpen\":[\"StepCompleted\"]}", "must hold StepCompleted and StepFailed"},
        {"{\"neverFailOpen\":[\"StepCompleted\",\"StepFailed\",\"Nothing\"]}", "no event class \"Nothing\""},
        {"{\"neverFailOpen\":[\"StepCompleted\",\"StepFailed\",\"StepStarted\"]}", "neverFailOpen: StepStarted is in failOpenFor"},
        {"{\"budget\":1}", "stateStore: there is no setting \"budget\""}};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        CHECK_INT(parse(wrong[i][0], &limits), E_INVALID);
        if (!strstr(said, wrong[i][1])) test_fail(__FILE__, __LINE__, "%s: %s", wrong[i][0], said);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_slow_append_is_noticed_and_counts_as_stored_ES_5a_C_18),
        TEST(the_start_of_a_run_never_outruns_its_event_I11),
        TEST(a_result_over_budget_fails_its_attempt_ES_5c),
        TEST(an_append_may_wait_for_what_is_left_of_the_budget_ES_5a),
        TEST(an_append_that_waits_over_the_budget_fails_the_attempt_ES_5c),
        TEST(a_result_within_budget_waits_for_its_store_ES_5c),
        TEST(without_a_budget_results_wait_as_long_as_it_takes_I9),
        TEST(defaults_and_refusals_of_the_budget_ES_5d),
    };
    return test_main("engine_budget", tests, ARRAY_COUNT(tests), argc, argv);
}
