// Status, substatus and the message for people of a snapshot. What getRunStatus answers is in service_status.c.
#include "support/view_kit.h"

#include "schema/schema.h"

static struct json status_now(void)
{
    struct json out;
    struct schema_set *set;
    const struct schema *schema;
    struct error err = {0};
    struct schema_fault fault = {0};
    CHECK(view_json(&view, &arena, &out));
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("run-snapshot.json"), &schema, &err), &err);
    if (!schema_valid(schema, &out, &fault)) test_fail(__FILE__, __LINE__, "%s %s", fault.pointer, fault.message);
    return out;
}

static void status_is(const char *status, const char *substatus, const char *message)
{
    struct json out = status_now();
    CHECK_STR(json_text(json_key(&out, "status")), str_from(status));
    CHECK_STR(json_text(json_key(&out, "substatus")), str_from(substatus));
    CHECK_STR(json_text(json_key(&out, "message")), str_from(message));
}

static struct start_facts start_facts = {.document_kind = {"plan", 4}};

static void start_run(void)
{
    begin();
    tell((struct moment){.kind = MOMENT_RUN_QUEUED, .start = &start_facts});
    tell((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start_facts});
}

static void times_are_told_and_completedAt_only_at_the_end_WE_2_1_2a_WE_2_1_2k(void)
{
    begin();
    tell((struct moment){.kind = MOMENT_RUN_QUEUED, .start = &start_facts});
    struct json out = status_now();
    CHECK_STR(json_text(json_key(&out, "status")), STR("PENDING"));
    CHECK(!json_key(&out, "startedAt") && !json_key(&out, "completedAt"));
    tell((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start_facts});
    out = status_now();
    CHECK(json_key(&out, "startedAt") && !json_key(&out, "completedAt"));
    tell_kind(MOMENT_RUN_COMPLETED);
    out = status_now();
    CHECK(json_key(&out, "startedAt") && json_key(&out, "completedAt"));
}

static void draining_names_the_steps_in_flight_ES_6_5_WE_2_1_2b_WE_2_1_2j(void)
{
    start_run();
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        tell_step(MOMENT_STEP_STARTED, names[i], 1);
    }
    tell((struct moment){.kind = MOMENT_RUN_PAUSED, .reason = STR("lunch")});
    status_is("PAUSED", "DRAINING", "waiting for 3 steps in flight");
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    tell_step(MOMENT_STEP_COMPLETED, "b", 1);
    status_is("PAUSED", "DRAINING", "waiting for 1 step in flight");
    tell((struct moment){.kind = MOMENT_DRAIN_TIMEOUT, .logical = 1});
    status_is("PAUSED", "", "lunch");
}

static void backoff_is_retrying_WE_2_1_2c_WE_2_1_2g(void)
{
    start_run();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_ATTEMPT_FAILED, "a", 1);
    status_is("RUNNING", "RETRYING", "step a will be tried again");
    tell_step(MOMENT_STEP_STARTED, "b", 1);
    status_is("RUNNING", "RETRYING", "step a will be tried again");
    tell_step(MOMENT_STEP_STARTED, "a", 2);
    status_is("RUNNING", "", "");
}

static void waiting_before_the_start_is_told_WE_2_1_2e(void)
{
    struct start_facts gated = {.document_kind = {"plan", 4}, .requires_approval = true};
    struct start_facts queued = {.document_kind = {"plan", 4}, .admission = {"QUEUE", 5}};
    begin();
    tell((struct moment){.kind = MOMENT_RUN_QUEUED, .start = &gated});
    status_is("PENDING", "WAITING_APPROVAL", "waiting for the approval of its start");
    begin();
    tell((struct moment){.kind = MOMENT_RUN_QUEUED, .start = &queued});
    status_is("PENDING", "", "in the queue");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(times_are_told_and_completedAt_only_at_the_end_WE_2_1_2a_WE_2_1_2k),
        TEST(draining_names_the_steps_in_flight_ES_6_5_WE_2_1_2b_WE_2_1_2j),
        TEST(backoff_is_retrying_WE_2_1_2c_WE_2_1_2g),
        TEST(waiting_before_the_start_is_told_WE_2_1_2e),
    };
    return test_main("view_status", tests, ARRAY_COUNT(tests), argc, argv);
}
