// Runs that wait before they start: in the queue, for a later time, for their approval.
#include "support/story.h"

#define HEAD "\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\""
#define TWO "{" HEAD "},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"},{\"stepId\":\"b\",\"kind\":\"noop\"}]}"
#define GATED "{" HEAD ",\"requiresApproval\":true},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}"
#define NODES "name: n\nnodes:\n  - id: a\n    bash: echo hi\n"

static void begin(struct story *s, const char *text, const char *admission, int64_t not_before)
{
    story_open(s, text);
    struct start_facts facts = {.document_sha256 = {s->program->sha256_hex, SHA256_HEX},
                                .document_kind = str_from(document_kind_name(s->program->kind)),
                                .inputs = s->inputs,
                                .artifacts_dir = STR("/a"),
                                .trigger_source = STR("manual"),
                                .requires_approval = s->program->requires_approval,
                                .admission = str_from(admission),
                                .not_before_ms = not_before};
    struct input input = {.kind = INPUT_START, .start = &facts};
    story_step(s, &input);
}

static void admit(struct story *s)
{
    struct input input = {.kind = INPUT_ADMIT};
    story_step(s, &input);
}

static void queued_run_stays_pending_until_it_is_admitted_ES_3b_ES_3d_ES_3e_WE_2_2e(void)
{
    struct story s;
    begin(&s, TWO, "QUEUE", 0);
    story_expect(&s, "[0] RUN_QUEUED\n");
    CHECK_INT(s.run->status, RUN_STATUS_PENDING);
    story_crash(&s);
    story_expect(&s, ""); // a restart lets nobody in
    CHECK(run_queued(s.run));
    admit(&s);
    story_expect(&s, "[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n");
    admit(&s); // the second reconciler comes too late
    story_expect(&s, "");
    story_close(&s);
}

static void queued_workflow_begins_when_it_is_admitted(void)
{
    struct story s;
    begin(&s, NODES, "QUEUE", 0);
    story_expect(&s, "[0] RUN_QUEUED\n");
    story_crash(&s);
    admit(&s);
    story_expect(&s, "[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n");
    story_close(&s);
}

static void queued_run_can_be_cancelled_C_15(void)
{
    struct story s;
    begin(&s, TWO, "QUEUE", 0);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
    admit(&s);
    CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
    story_close(&s);
}

static void run_that_needs_approval_and_a_place_needs_both_C_15(void)
{
    struct story s;
    begin(&s, GATED, "QUEUE", 0);
    CHECK(!run_queued(s.run));
    admit(&s);
    CHECK_INT(s.run->status, RUN_STATUS_PENDING);
    CHECK_TEXT(run_substatus(s.run), "WAITING_APPROVAL");
    story_signal(&s, SIGNAL_APPROVE, NULL);
    CHECK_INT(s.run->status, RUN_STATUS_APPROVED);
    story_crash(&s);
    CHECK_INT(s.run->status, RUN_STATUS_APPROVED);
    buf_clear(&s.told);
    admit(&s);
    story_expect(&s, "[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n");
    story_close(&s);
}

static void approved_run_goes_on_to_running_WE_2_1_2e(void)
{
    struct story s;
    begin(&s, GATED, NULL, 0);
    CHECK_TEXT(run_substatus(s.run), "WAITING_APPROVAL");
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_APPROVE, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED APPROVE\n[0] RUN_APPROVED\n[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n");
    CHECK_TEXT(run_substatus(s.run), "");
    story_close(&s);
}

static void delayed_run_starts_and_its_steps_wait_ES_3c(void)
{
    struct story s;
    begin(&s, TWO, "DELAY", 5000);
    story_expect(&s, "[0] RUN_QUEUED\n[0] RUN_STARTED\n[0] STEP_DELAYED a 1.1 due 5000\n");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    CHECK_TEXT(run_substatus(s.run), ""); // nothing has failed: it is not RETRYING
    story_crash(&s);
    CHECK(story_waits(&s, EFFECT_TIMER, "a"));
    story_timer(&s, "a");
    story_expect(&s, "[5000] STEP_STARTED a 1.1\n");
    story_done(&s, "a", NULL);
    story_expect(&s, "[5000] STEP_COMPLETED a 1.1\n[5000] STEP_STARTED b 1.1\n"); // the time has come
    story_close(&s);
}

static void delayed_step_can_be_skipped_or_cancelled(void)
{
    struct story s;
    begin(&s,
          "{" HEAD "},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\",\"dependsOn\":[]},{\"stepId\":\"b\","
          "\"kind\":\"noop\",\"dependsOn\":[]}]}",
          "DELAY", 5000);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_SKIP_STEP, "a");
    story_expect(&s, "[0] SIGNAL_ACCEPTED SKIP_STEP\n[0] STEP_SKIPPED a OPERATOR_SKIP\n");
    story_signal(&s, SIGNAL_CANCEL, NULL);
    CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(queued_run_stays_pending_until_it_is_admitted_ES_3b_ES_3d_ES_3e_WE_2_2e),
        TEST(queued_workflow_begins_when_it_is_admitted),
        TEST(queued_run_can_be_cancelled_C_15),
        TEST(run_that_needs_approval_and_a_place_needs_both_C_15),
        TEST(approved_run_goes_on_to_running_WE_2_1_2e),
        TEST(delayed_run_starts_and_its_steps_wait_ES_3c),
        TEST(delayed_step_can_be_skipped_or_cancelled),
    };
    return test_main("kernel_queue", tests, ARRAY_COUNT(tests), argc, argv);
}
