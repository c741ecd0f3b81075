// Signals that change what a run works with, and signals that wait for a second pair of eyes.
#include "support/story.h"

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"inputs\":{\"mode\":\"slow\"}" \
    ","                                                                                                                \
    "\"steps\":[" steps "]}"
#define TWO                                                                                                            \
    PLAN("{\"stepId\":\"a\",\"kind\":\"echo\",\"with\":{\"message\":\"$INPUTS.mode\"}},"                               \
         "{\"stepId\":\"b\",\"kind\":\"echo\",\"dependsOn\":[\"a\"],\"with\":{\"message\":\"$INPUTS.mode\"},"          \
         "\"retry\":{\"maxAttempts\":3,\"on\":\"all\"}}")

static char last_id[UUID_SIZE];

// A signal with a payload; `waits`: it needs somebody else's approval.
static void send(struct story *s, enum signal_type type, const char *step, const char *payload, bool waits)
{
    struct arena arena;
    struct error err = {0};
    uint8_t bytes[16] = {(uint8_t)++s->next_signal, 1};
    arena_init(&arena, 1024, 1 << 20);
    uuid_format(bytes, last_id);
    struct signal signal = {.type = type,
                            .id = str_from(last_id),
                            .step = str_from(step),
                            .actor = STR("ann"),
                            .role = STR("Admin"),
                            .source_ip = STR("192.0.2.7"),
                            .reason = STR("because"),
                            .requires_approval = waits};
    CHECK_OK(json_parse(str_from(payload), &json_limits_default, &arena, &signal.payload, &err), &err);
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-0000000000d1")};
    story_step(s, &input);
    arena_release(&arena);
}

static void answer(struct story *s, enum signal_type type, const char *waiting, const char *who)
{
    uint8_t bytes[16] = {(uint8_t)++s->next_signal, 2};
    char id[UUID_SIZE];
    uuid_format(bytes, id);
    struct signal signal = {.type = type,
                            .id = str_from(id),
                            .approves = str_from(waiting),
                            .actor = str_from(who),
                            .role = STR("Admin"),
                            .payload = json_object()};
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-0000000000d2")};
    story_step(s, &input);
}

static void start(struct story *s, const char *plan)
{
    story_open(s, plan);
    CHECK(json_put(&s->memory, &s->inputs, STR("mode"), json_string(STR("slow"))));
    story_start(s);
}

static const char *message_of(struct story *s, const char *step)
{
    struct json with;
    struct error err = {0};
    CHECK_OK(kernel_render(s->run, kernel_find(s->run, str_from(step)), &story_env, &s->memory, &with, &err), &err);
    return arena_copy(&s->memory, json_text(json_key(&with, "message"))).ptr;
}

static void params_reach_steps_that_start_later_WE_2_3a(void)
{
    struct story s;
    start(&s, TWO);
    CHECK_TEXT(message_of(&s, "a"), "slow");
    buf_clear(&s.told);
    send(&s, SIGNAL_UPDATE_PARAMS, NULL, "{\"params\":{\"mode\":\"fast\",\"more\":1}}", false);
    story_expect(&s, "[0] SIGNAL_ACCEPTED UPDATE_PARAMS\n");
    story_done(&s, "a", NULL);
    CHECK_TEXT(message_of(&s, "b"), "fast");
    story_crash(&s);
    CHECK_TEXT(message_of(&s, "b"), "fast");
    CHECK_STR(json_text(json_key(&s.run->start.inputs, "mode")), STR("slow")); // what it was started with stays known
    send(&s, SIGNAL_UPDATE_PARAMS, NULL, "{\"params\":{\"mode\":\"medium\"}}", false);
    CHECK_INT(json_integer(kernel_input(s.run, STR("more")), 0), 1);
    CHECK_STR(json_text(kernel_input(s.run, STR("mode"))), STR("medium"));
    story_close(&s);
}

static void params_of_another_type_are_refused(void)
{
    struct story s;
    story_open(&s, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"inputs\":"
                   "{\"rows\":{\"type\":\"integer\",\"default\":1}},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}");
    story_start(&s);
    send(&s, SIGNAL_UPDATE_PARAMS, NULL, "{\"params\":{\"rows\":\"many\"}}", false);
    CHECK_TEXT(s.last_decision.error_code, "SIGNAL_INVALID_PAYLOAD");
    story_close(&s);
}

static void override_is_for_the_next_execution_only_WE_2_3a(void)
{
    struct story s;
    start(&s, TWO);
    send(&s, SIGNAL_INJECT_OVERRIDE, "b", "{\"stepId\":\"b\",\"override\":{\"message\":\"other\"}}", false);
    CHECK(s.last_decision.accepted);
    story_done(&s, "a", NULL);
    CHECK_TEXT(message_of(&s, "b"), "other");
    story_crash(&s); // another engine attempt of the same execution
    CHECK_INT(kernel_attempt(s.run, 1).engine, 2);
    CHECK_TEXT(message_of(&s, "b"), "other");
    story_fail(&s, "b", "X", true);
    CHECK_TEXT(message_of(&s, "b"), "slow");
    story_close(&s);
}

static void override_of_a_running_step_is_for_its_next_attempt(void)
{
    struct story s;
    start(&s, TWO);
    story_done(&s, "a", NULL);
    send(&s, SIGNAL_INJECT_OVERRIDE, "b", "{\"stepId\":\"b\",\"override\":{\"message\":\"other\"}}", false);
    CHECK_TEXT(message_of(&s, "b"), "slow");
    story_fail(&s, "b", "X", true);
    story_timer(&s, "b");
    CHECK_INT(kernel_attempt(s.run, 1).logical, 2);
    CHECK_TEXT(message_of(&s, "b"), "other");
    send(&s, SIGNAL_INJECT_OVERRIDE, "a", "{\"stepId\":\"a\",\"override\":{\"message\":\"x\"}}", false);
    CHECK_TEXT(s.last_decision.error_code, "STEP_TERMINAL");
    send(&s, SIGNAL_INJECT_OVERRIDE, "b", "{\"stepId\":\"b\",\"override\":{\"command\":\"rm\"}}", false);
    CHECK_TEXT(s.last_decision.error_code, "INVALID_STEP_SCHEMA");
    send(&s, SIGNAL_INJECT_OVERRIDE, "z", "{\"stepId\":\"z\",\"override\":{\"message\":\"x\"}}", false);
    CHECK_TEXT(s.last_decision.error_code, "STEP_NOT_FOUND");
    story_close(&s);
}

static void target_stays_with_the_step_WE_2_3a(void)
{
    struct story s;
    start(&s, TWO);
    CHECK_INT(kernel_queue(s.run, 1).len, 0);
    send(&s, SIGNAL_UPDATE_TARGET, "b", "{\"stepId\":\"b\",\"newTarget\":{\"queue\":\"big\"}}", false);
    story_crash(&s);
    CHECK_STR(kernel_queue(s.run, 1), STR("big"));
    CHECK_INT(kernel_queue(s.run, 0).len, 0);
    send(&s, SIGNAL_INJECT_OVERRIDE, "b", "{\"stepId\":\"b\",\"override\":{\"message\":\"other\"}}", false);
    CHECK_STR(kernel_queue(s.run, 1), STR("big"));
    story_done(&s, "a", NULL);
    story_fail(&s, "b", "X", true);
    CHECK_STR(kernel_queue(s.run, 1), STR("big"));
    story_close(&s);
}

static void escalation_changes_nothing_and_passes_after_the_end_WE_2_3a(void)
{
    struct story s;
    start(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"));
    buf_clear(&s.told);
    send(&s, SIGNAL_ESCALATE_ALERT, NULL, "{\"level\":\"CRITICAL\",\"note\":\"look\"}", false);
    story_expect(&s, "[0] SIGNAL_ACCEPTED ESCALATE_ALERT\n");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    story_done(&s, "a", NULL);
    buf_clear(&s.told);
    send(&s, SIGNAL_ESCALATE_ALERT, NULL, "{\"level\":\"INFO\"}", false);
    CHECK(s.last_decision.accepted);
    story_expect(&s, ""); // the log is closed
    story_close(&s);
}

static void signal_that_needs_approval_waits_and_is_applied_once_approved_WE_2_3a(void)
{
    struct story s;
    char waiting[UUID_SIZE];
    start(&s, TWO);
    buf_clear(&s.told);
    send(&s, SIGNAL_UPDATE_PARAMS, NULL, "{\"params\":{\"mode\":\"fast\"}}", true);
    memcpy(waiting, last_id, sizeof(waiting));
    story_expect(&s, "[0] SIGNAL_DEFERRED UPDATE_PARAMS\n");
    CHECK(s.last_decision.deferred && !s.last_decision.accepted);
    CHECK_STR(json_text(kernel_input(s.run, STR("mode"))), STR("slow"));
    story_crash(&s);
    CHECK(s.run->deferred);
    CHECK_STR(s.run->deferred->signal.source_ip, STR("192.0.2.7"));
    answer(&s, SIGNAL_APPROVE, waiting, "ann");
    CHECK_TEXT(s.last_decision.error_code, "AUTHZ_DENIED"); // not by who asked
    buf_clear(&s.told);
    answer(&s, SIGNAL_APPROVE, waiting, "bob");
    story_expect(&s, "[0] SIGNAL_ACCEPTED APPROVE\n[0] SIGNAL_SETTLED\n[0] SIGNAL_ACCEPTED UPDATE_PARAMS\n");
    CHECK(s.last_decision.settled && s.last_decision.accepted);
    CHECK_STR(s.last_decision.decision_id,
              STR("00000000-0000-4000-8000-0000000000d1")); // one decision, made in two steps
    CHECK_STR(json_text(kernel_input(s.run, STR("mode"))), STR("fast"));
    answer(&s, SIGNAL_APPROVE, waiting, "bob");
    CHECK_TEXT(s.last_decision.error_code, "SIGNAL_NOT_FOUND");
    story_close(&s);
}

static void refused_approval_refuses_the_signal(void)
{
    struct story s;
    start(&s, TWO);
    send(&s, SIGNAL_CANCEL, NULL, "{}", true);
    CHECK(!s.run->cancelling);
    buf_clear(&s.told);
    answer(&s, SIGNAL_REJECT, last_id, "bob");
    story_expect(&s, "[0] SIGNAL_ACCEPTED REJECT\n[0] SIGNAL_SETTLED\n[0] SIGNAL_REJECTED CANCEL APPROVAL_REJECTED\n");
    CHECK(!s.run->cancelling);
    story_close(&s);
}

static void approved_signal_is_judged_by_the_state_of_now(void)
{
    struct story s;
    start(&s, TWO);
    send(&s, SIGNAL_SKIP_STEP, "b", "{\"stepId\":\"b\"}", true);
    story_done(&s, "a", NULL);
    story_done(&s, "b", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    answer(&s, SIGNAL_APPROVE, last_id, "bob");
    CHECK_TEXT(s.last_decision.error_code, "RUN_TERMINAL");
    CHECK(!s.run->deferred);
    story_close(&s);
}

static void retry_of_an_ended_run_may_wait_too(void)
{
    struct story s;
    start(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"));
    story_done(&s, "a", NULL);
    send(&s, SIGNAL_RETRY_RUN, NULL, "{}", true);
    CHECK(s.last_decision.deferred);
    story_crash(&s);
    answer(&s, SIGNAL_APPROVE, last_id, "bob");
    CHECK(s.last_decision.accepted && s.last_decision.settled);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(params_reach_steps_that_start_later_WE_2_3a),
        TEST(params_of_another_type_are_refused),
        TEST(override_is_for_the_next_execution_only_WE_2_3a),
        TEST(override_of_a_running_step_is_for_its_next_attempt),
        TEST(target_stays_with_the_step_WE_2_3a),
        TEST(escalation_changes_nothing_and_passes_after_the_end_WE_2_3a),
        TEST(signal_that_needs_approval_waits_and_is_applied_once_approved_WE_2_3a),
        TEST(refused_approval_refuses_the_signal),
        TEST(approved_signal_is_judged_by_the_state_of_now),
        TEST(retry_of_an_ended_run_may_wait_too),
    };
    return test_main("kernel_change", tests, ARRAY_COUNT(tests), argc, argv);
}
