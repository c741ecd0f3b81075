// RunStatusSnapshot as getRunStatus answers it: what is kept with the head of a run, in the words of the contract.
#include "harness/test.h"

#include "schema/schema.h"
#include "service/service.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct run_head head;

static void begin(enum run_status status, const char *substatus)
{
    head = (struct run_head){.ids = {.tenant = STR("default"), .run = STR("r1"), .plan_id = STR("orders")},
                             .last_seq = 7,
                             .owned = true,
                             .summary = {.status = status, .created_ms = 1000, .started_ms = 2000}};
    if (status == RUN_STATUS_RUNNING) head.summary.running = 1;
    memcpy(head.summary.substatus, substatus, strlen(substatus));
}

static struct json told(void)
{
    struct json out;
    struct schema_set *set;
    const struct schema *schema;
    struct error err = {0};
    struct schema_fault fault = {0};
    summary_read(&head.summary);
    CHECK(service_status(NULL, NULL, &head, &arena, &out));
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("run-status.json"), &schema, &err), &err);
    if (!schema_valid(schema, &out, &fault)) test_fail(__FILE__, __LINE__, "%s %s", fault.pointer, fault.message);
    return out;
}

static void is(const char *substatus, const char *message)
{
    struct json out = told();
    CHECK_STR(json_text(json_key(&out, "status")), str_from(run_status_name(head.summary.status)));
    CHECK_STR(json_text(json_key(&out, "substatus")), str_from(substatus));
    CHECK_STR(json_text(json_key(&out, "message")), str_from(message));
}

static void times_are_told_and_completedAt_only_at_the_end_WE_2_1_2a_WE_2_1_2k(void)
{
    begin(RUN_STATUS_PENDING, "");
    head.summary.started_ms = 0;
    struct json out = told();
    CHECK(!json_key(&out, "startedAt") && !json_key(&out, "completedAt"));
    begin(RUN_STATUS_RUNNING, "");
    out = told();
    CHECK(json_key(&out, "startedAt") && !json_key(&out, "completedAt"));
    begin(RUN_STATUS_COMPLETED, "");
    head.summary.ended_ms = 3000;
    out = told();
    CHECK_STR(json_text(json_key(&out, "completedAt")), STR("1970-01-01T00:00:03.000Z"));
}

static void draining_names_the_steps_in_flight_ES_6_5_WE_2_1_2b_WE_2_1_2j(void)
{
    begin(RUN_STATUS_PAUSED, "DRAINING");
    head.summary.running = 3;
    is("DRAINING", "waiting for 3 steps in flight");
    head.summary.running = 1;
    is("DRAINING", "waiting for 1 step in flight");
}

static void between_two_attempts_a_run_is_retrying_WE_2_1_2c_WE_2_1_2g(void)
{
    begin(RUN_STATUS_RUNNING, "");
    is("", "");
    head.summary.running = 0; // a queue may delay the first attempt
    is("", "");
    begin(RUN_STATUS_RUNNING, "RETRYING"); // also while other steps run
    is("RETRYING", "a step waits for its next attempt");
    begin(RUN_STATUS_PAUSED, "");
    is("", "");
    begin(RUN_STATUS_RUNNING, "RETRYING"); // a failure that is held
    snprintf(head.summary.cause, sizeof(head.summary.cause), "failed at a: X");
    is("RETRYING", "failed at a: X");
}

static void a_run_whose_process_is_gone_is_recovering_until_it_is_taken_up_WE_2_1_2f(void)
{
    begin(RUN_STATUS_RUNNING, "");
    head.owned = false;
    is("RECOVERING", "the process that had it is gone; it waits to be taken up");
    begin(RUN_STATUS_RUNNING, "RETRYING"); // also between two attempts
    head.owned = false;
    is("RECOVERING", "the process that had it is gone; it waits to be taken up");
    snprintf(head.summary.cause, sizeof(head.summary.cause), "failed at a: X"); // it waits for a person, whoever has it
    is("RETRYING", "failed at a: X");
    begin(RUN_STATUS_RUNNING, "WAITING_APPROVAL");
    head.owned = false;
    is("WAITING_APPROVAL", "waiting for an approval");
    begin(RUN_STATUS_PAUSED, "");
    head.owned = false;
    is("", "");
    begin(RUN_STATUS_COMPLETED, "");
    head.owned = false;
    is("", "");
}

static void waiting_before_the_start_is_told_WE_2_1_2e(void)
{
    begin(RUN_STATUS_PENDING, "WAITING_APPROVAL");
    is("WAITING_APPROVAL", "waiting for the approval of its start");
    begin(RUN_STATUS_PENDING, "");
    is("", "in the queue");
}

static void a_word_that_is_not_canonical_says_whose_it_is_WE_2_1_2d_WE_2_1_2h(void)
{
    begin(RUN_STATUS_RUNNING, "CANCELLING");
    is("cairn/CANCELLING", "");
    begin(RUN_STATUS_RUNNING, "IMPORTED");
    is("cairn/IMPORTED", "");
    begin(RUN_STATUS_RUNNING, "CONTINUE_AS_NEW"); // a word of the contract: nobody's own
    is("CONTINUE_AS_NEW", "a segment of its log is full: it goes on in the next");
    begin(RUN_STATUS_RUNNING, "WAITING_APPROVAL");
    is("WAITING_APPROVAL", "waiting for an approval");
}

int main(int argc, char **argv)
{
    arena_init(&arena, 64 * 1024, SIZE_MAX);
    static const struct test tests[] = {
        TEST(times_are_told_and_completedAt_only_at_the_end_WE_2_1_2a_WE_2_1_2k),
        TEST(draining_names_the_steps_in_flight_ES_6_5_WE_2_1_2b_WE_2_1_2j),
        TEST(between_two_attempts_a_run_is_retrying_WE_2_1_2c_WE_2_1_2g),
        TEST(a_run_whose_process_is_gone_is_recovering_until_it_is_taken_up_WE_2_1_2f),
        TEST(waiting_before_the_start_is_told_WE_2_1_2e),
        TEST(a_word_that_is_not_canonical_says_whose_it_is_WE_2_1_2d_WE_2_1_2h),
    };
    return test_main("service_status", tests, ARRAY_COUNT(tests), argc, argv);
}
