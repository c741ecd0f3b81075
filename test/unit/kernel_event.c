// Waiting for an event from outside: what is waited for is recorded, one event ends one wait, nothing is taken twice (ADR 0047).
#include "unit/support/playbook_kit.h"

#define PLAN(steps)                                                                                                    \
    "metadata: {planId: p, planVersion: '1', schemaVersion: v1.2}\ninputs: {order: o-1}\nsteps:\n" steps
#define PAID                                                                                                           \
    "  - {stepId: paid, kind: event, with: {name: payment.received, correlation: $INPUTS.order}, timeout: 10s}\n"      \
    "  - {stepId: ship, kind: echo, dependsOn: [paid], with: {message: $paid.output.data.amount}}\n"

static char id[UUID_SIZE];

static void deliver_as(struct story *s, const char *payload, uint8_t number)
{
    struct arena arena;
    struct error err = {0};
    uint8_t bytes[16] = {number, 7};
    arena_init(&arena, 1024, 1 << 20);
    uuid_format(bytes, id);
    struct signal signal = {
        .type = SIGNAL_DELIVER_EVENT, .id = str_from(id), .actor = STR("shop"), .role = STR("System")};
    CHECK_OK(json_parse(str_from(payload), &json_limits_default, &arena, &signal.payload, &err), &err);
    signal.step = json_text(json_key(&signal.payload, "stepId"));
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-0000000000d1")};
    story_step(s, &input);
    arena_release(&arena);
}

static void deliver(struct story *s, const char *payload)
{
    deliver_as(s, payload, (uint8_t)++s->next_signal);
}

static void begin(struct story *s, const char *text)
{
    story_open(s, text);
    CHECK(json_put(&s->memory, &s->inputs, STR("order"), json_string(STR("o-1"))));
    story_start(s);
}

static void an_event_ends_the_wait_and_is_its_output(void)
{
    struct story s;
    begin(&s, PLAN(PAID));
    story_expect(&s, "[0] RUN_QUEUED\n[0] RUN_STARTED\n[0] STEP_STARTED paid 1.1 due 10000\n"
                     "[0] EVENT_AWAITED paid 1.1\n");
    const struct run_await *wait = kernel_await(s.run, NULL);
    CHECK(wait && str_is(wait->name, "payment.received") && str_is(wait->correlation, "o-1"));
    s.now = 500;
    deliver(&s, "{\"event\":\"payment.received\",\"id\":\"e1\",\"correlation\":\"o-1\",\"data\":{\"amount\":7}}");
    CHECK(s.last_decision.accepted);
    story_expect(&s, "[500] SIGNAL_ACCEPTED DELIVER_EVENT\n[500] STEP_COMPLETED paid 1.1\n[500] STEP_STARTED ship 1.1\n");
    const struct json *value = kernel_value(s.run, 0);
    CHECK(json_integer(json_at(value, STR("data.amount")), 0) == 7 && str_is(json_text(json_key(value, "id")), "e1"));
    CHECK(!kernel_await(s.run, NULL));
    story_close(&s);
}

static void another_name_correlation_or_step_is_not_awaited(void)
{
    struct story s;
    begin(&s, PLAN(PAID));
    story_expect(&s, "[0] RUN_QUEUED\n[0] RUN_STARTED\n[0] STEP_STARTED paid 1.1 due 10000\n"
                     "[0] EVENT_AWAITED paid 1.1\n");
    static const char *const wrong[] = {
        "{\"event\":\"payment.sent\",\"id\":\"e1\",\"correlation\":\"o-1\"}",
        "{\"event\":\"payment.received\",\"id\":\"e1\",\"correlation\":\"o-2\"}",
        "{\"event\":\"payment.received\",\"id\":\"e1\"}",
        "{\"event\":\"payment.received\",\"id\":\"e1\",\"correlation\":\"o-1\",\"stepId\":\"ship\"}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        deliver(&s, wrong[i]);
        CHECK(!s.last_decision.accepted && strcmp(s.last_decision.error_code, "EVENT_NOT_AWAITED") == 0);
        story_expect(&s, "[0] SIGNAL_REJECTED DELIVER_EVENT EVENT_NOT_AWAITED\n");
    }
    CHECK(kernel_state(s.run, 0) == NODE_RUNNING);
    story_close(&s);
}

static void the_same_event_is_decided_once_also_after_a_crash(void)
{
    struct story s;
    begin(&s, PLAN("  - {stepId: a, kind: event, with: {name: x}}\n  - {stepId: b, kind: event, with: {name: x}}\n"));
    deliver_as(&s, "{\"event\":\"x\",\"id\":\"e1\"}", 9);
    CHECK(s.last_decision.accepted && kernel_state(s.run, 0) == NODE_SUCCESS);
    story_crash(&s);
    deliver_as(&s, "{\"event\":\"x\",\"id\":\"e1\"}", 9);
    CHECK(s.last_decision.duplicate && kernel_state(s.run, 1) == NODE_RUNNING);
    deliver_as(&s, "{\"event\":\"x\",\"id\":\"e2\"}", 10); // what waits is known after the crash, too
    CHECK(s.last_decision.accepted && kernel_state(s.run, 1) == NODE_SUCCESS);
    story_close(&s);
}

static void a_wait_that_is_over_fails_and_names_its_field(void)
{
    struct story s;
    begin(&s, PLAN(PAID));
    s.now = 10000;
    story_timer(&s, "paid");
    CHECK(str_is(s.run->fault.code, "TIMEOUT"));
    CHECK(str_ends(s.run->fault.message, STR("(its field timeout)")));
    CHECK(s.run->status == RUN_STATUS_FAILED);
    story_close(&s);
}

static void a_pause_does_not_drain_a_wait_and_what_comes_is_recorded(void)
{
    struct story s;
    begin(&s, PLAN(PAID));
    story_signal(&s, SIGNAL_PAUSE, NULL);
    CHECK(run_draining(s.run) == 0 && strcmp(run_substatus(s.run), "") == 0);
    deliver(&s, "{\"event\":\"payment.received\",\"id\":\"e1\",\"correlation\":\"o-1\",\"data\":{\"amount\":7}}");
    CHECK(s.last_decision.accepted && kernel_state(s.run, 0) == NODE_SUCCESS);
    CHECK(kernel_state(s.run, 1) == NODE_WAITING); // I25
    story_signal(&s, SIGNAL_RESUME, NULL);
    CHECK(kernel_state(s.run, 1) == NODE_RUNNING);
    story_close(&s);
}

static void a_wait_can_be_skipped_and_cancelled(void)
{
    struct story s;
    begin(&s, PLAN(PAID));
    story_signal(&s, SIGNAL_SKIP_STEP, "paid");
    CHECK(kernel_state(s.run, 0) == NODE_SKIPPED);
    story_close(&s);
    begin(&s, PLAN(PAID));
    story_signal(&s, SIGNAL_CANCEL, NULL);
    CHECK(s.run->status == RUN_STATUS_CANCELLED);
    story_close(&s);
}

static void a_name_that_is_none_fails_the_step(void)
{
    struct story s;
    begin(&s, PLAN("  - {stepId: a, kind: echo, with: {message: 'no name'}}\n"
                   "  - {stepId: b, kind: event, dependsOn: [a], with: {name: $a.output}}\n"));
    story_done(&s, "a", "\"no name\"");
    CHECK(str_is(s.run->fault.code, "EVENT_INVALID"));
    story_close(&s);
}

static void a_task_of_a_playbook_waits_as_well(void)
{
    struct story s;
    begin(&s, NET_HEAD "workload: {order: o-1}\nworkflow:\n  - step: paid\n"
                       "    tool: {name: t, kind: event, event: payment, correlation: \"{{ order }}\"}\n"
                       "    next: {arcs: [{step: end}]}\n  - step: end\n    tool: {kind: noop}\n");
    const struct run_await *wait = kernel_await(s.run, NULL);
    CHECK(wait && str_is(wait->name, "payment") && str_is(wait->correlation, "o-1"));
    story_crash(&s);
    CHECK(kernel_await(s.run, NULL));
    deliver(&s, "{\"event\":\"payment\",\"id\":\"e1\",\"correlation\":\"o-1\",\"data\":{\"amount\":7}}");
    CHECK(s.last_decision.accepted && s.run->status == RUN_STATUS_COMPLETED);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(an_event_ends_the_wait_and_is_its_output),
        TEST(another_name_correlation_or_step_is_not_awaited),
        TEST(the_same_event_is_decided_once_also_after_a_crash),
        TEST(a_wait_that_is_over_fails_and_names_its_field),
        TEST(a_pause_does_not_drain_a_wait_and_what_comes_is_recorded),
        TEST(a_wait_can_be_skipped_and_cancelled),
        TEST(a_name_that_is_none_fails_the_step),
        TEST(a_task_of_a_playbook_waits_as_well),
    };
    return test_main("kernel_event", tests, ARRAY_COUNT(tests), argc, argv);
}
