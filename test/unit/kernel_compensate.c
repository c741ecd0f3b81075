// Undoing what was done (ADR 0050): in the reverse order of the log, after a failure and after CANCEL, once, over crashes.
#include "unit/support/playbook_kit.h"

#define PLAN(steps)                                                                                                    \
    "metadata: {planId: p, planVersion: '1', schemaVersion: v1.2}\nsteps:\n" steps
#define BOOK                                                                                                           \
    "  - stepId: book\n    kind: exec\n    dependsOn: []\n    with: {argv: [book]}\n"                                  \
    "    compensate: {kind: exec, with: {argv: [unbook, $book.output]}, retry: {maxAttempts: 2, delay: 1s}}\n"
#define CHARGE                                                                                                         \
    "  - stepId: charge\n    kind: exec\n    dependsOn: []\n    with: {argv: [charge]}\n"                              \
    "    compensate: {kind: exec, with: {argv: [refund]}}\n"
#define SHIP "  - {stepId: ship, kind: exec, dependsOn: [book, charge], with: {argv: [ship]}}\n"

static void begin(struct story *s)
{
    story_open(s, PLAN(BOOK CHARGE SHIP));
    story_start(s);
    story_done(s, "charge", "\"c\"");
    story_done(s, "book", "\"b\"");
    buf_clear(&s->told);
}

static bool has_told(const struct story *s, const char *text)
{
    struct str told = buf_str(&s->told), want = str_from(text);
    for (size_t i = 0; i + want.len <= told.len; i++)
        if (str_eq(str_slice(told, i, i + want.len), want)) return true;
    return false;
}

static void what_ended_last_is_undone_first_after_a_failure(void)
{
    struct story s;
    begin(&s);
    story_fail(&s, "ship", "EXIT_NONZERO", false);
    story_expect(&s, "[0] STEP_FAILED ship 1.1 EXIT_NONZERO\n[0] STEP_STARTED book.undo 1.1\n");
    CHECK(s.run->undoing == UNDO_FAILED && !story_waits(&s, EFFECT_EXECUTE, "charge.undo"));
    story_done(&s, "book.undo", NULL);
    story_expect(&s, "[0] STEP_COMPLETED book.undo 1.1\n[0] STEP_STARTED charge.undo 1.1\n");
    story_done(&s, "charge.undo", NULL);
    CHECK(s.run->status == RUN_STATUS_FAILED && str_is(s.run->failed_step, "ship"));
    story_close(&s);
}

static void a_cancelled_run_is_undone_when_nothing_is_in_flight(void)
{
    struct story s;
    begin(&s);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    CHECK(!s.run->undoing && !story_waits(&s, EFFECT_EXECUTE, "book.undo"));
    story_fail(&s, "ship", "CANCELLED", false);
    CHECK(s.run->undoing == UNDO_CANCELLED && story_waits(&s, EFFECT_EXECUTE, "book.undo"));
    story_signal(&s, SIGNAL_CANCEL, NULL); // nobody cancels what undoes by asking twice
    CHECK(!s.last_decision.accepted && strcmp(s.last_decision.error_code, "RUN_CANCELLING") == 0);
    story_done(&s, "book.undo", NULL);
    story_done(&s, "charge.undo", NULL);
    CHECK(s.run->status == RUN_STATUS_CANCELLED);
    story_close(&s);
}

static void a_paused_run_that_is_cancelled_is_undone(void)
{
    struct story s;
    begin(&s);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    story_fail(&s, "ship", "CANCELLED", false);
    CHECK(s.run->status == RUN_STATUS_RUNNING && story_waits(&s, EFFECT_EXECUTE, "book.undo"));
    story_done(&s, "book.undo", NULL);
    story_signal(&s, SIGNAL_PAUSE, NULL); // holds it up
    story_done(&s, "charge.undo", NULL);
    CHECK(s.run->status == RUN_STATUS_PAUSED);
    story_signal(&s, SIGNAL_RESUME, NULL);
    CHECK(s.run->status == RUN_STATUS_CANCELLED);
    story_close(&s);
}

static void an_engine_that_dies_leaves_it_to_the_next(void)
{
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct story s;
        begin(&s);
        if (cancelled) story_signal(&s, SIGNAL_CANCEL, NULL);
        story_fail(&s, "ship", cancelled ? "CANCELLED" : "EXIT_NONZERO", false);
        buf_clear(&s.told);
        story_crash(&s);
        story_expect(&s, "[0] STEP_REDISPATCHED book.undo 1.2\n");
        story_done(&s, "book.undo", NULL);
        story_crash(&s);
        story_done(&s, "charge.undo", NULL);
        CHECK(s.run->status == (cancelled ? RUN_STATUS_CANCELLED : RUN_STATUS_FAILED));
        story_close(&s);
    }
}

static void it_is_tried_again_and_a_failure_of_it_stops_no_other(void)
{
    struct story s;
    begin(&s);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    story_fail(&s, "ship", "CANCELLED", false);
    story_fail(&s, "book.undo", "EXIT_NONZERO", true);
    CHECK(s.run->delayed == 1 && !story_waits(&s, EFFECT_EXECUTE, "charge.undo"));
    story_crash(&s);
    story_timer(&s, "book.undo");
    story_fail(&s, "book.undo", "EXIT_NONZERO", true);
    CHECK(story_waits(&s, EFFECT_EXECUTE, "charge.undo"));
    story_done(&s, "charge.undo", NULL);
    CHECK(s.run->status == RUN_STATUS_CANCELLED);
    story_close(&s);
}

static void emergency_stop_undoes_nothing_more(void)
{
    struct story s;
    begin(&s);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    story_fail(&s, "ship", "CANCELLED", false);
    story_signal(&s, SIGNAL_EMERGENCY_STOP, NULL);
    story_fail(&s, "book.undo", "CANCELLED", false);
    CHECK(s.run->status == RUN_STATUS_CANCELLED && !story_waits(&s, EFFECT_EXECUTE, "charge.undo"));
    story_close(&s);
}

static void what_came_out_well_is_left(void)
{
    struct story s;
    begin(&s);
    story_done(&s, "ship", NULL);
    CHECK(s.run->status == RUN_STATUS_COMPLETED && has_told(&s, "STEP_SKIPPED book.undo") && kernel_state(s.run, 4) == NODE_SKIPPED);
    story_close(&s);
}

static void steps_that_a_person_skips_or_that_never_ran_are_not_undone(void)
{
    struct story s;
    story_open(&s, PLAN(BOOK CHARGE SHIP));
    story_start(&s);
    story_done(&s, "book", "\"b\"");
    story_signal(&s, SIGNAL_SKIP_STEP, "book.undo");
    story_fail(&s, "charge", "EXIT_NONZERO", false);
    CHECK(s.run->status == RUN_STATUS_FAILED);
    story_close(&s);
}

static void a_retry_executes_again_what_was_undone(void)
{
    struct story s;
    struct arena arena;
    struct reuse *reuse;
    uint32_t count = 0;
    arena_init(&arena, 4096, 1 << 20);
    begin(&s);
    story_fail(&s, "ship", "EXIT_NONZERO", false);
    story_done(&s, "book.undo", NULL);
    story_fail(&s, "charge.undo", "EXIT_NONZERO", false); // perhaps half of it was
    CHECK(kernel_reusable(s.run, &arena, &reuse, &count) == OK && count == 0);
    story_close(&s);
    arena_release(&arena);
}

static void nothing_else_begins_while_it_undoes(void)
{
    struct story s;
    story_open(&s, PLAN(BOOK "  - {stepId: later, kind: exec, dependsOn: [], with: {argv: [x]}, retry: {maxAttempts: 3, delay: 1h}}\n"));
    story_start(&s);
    story_done(&s, "book", NULL);
    story_fail(&s, "later", "EXIT_NONZERO", true);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    CHECK(story_waits(&s, EFFECT_EXECUTE, "book.undo"));
    story_timer(&s, "later");
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "later"));
    story_signal(&s, SIGNAL_SKIP_STEP, "later");
    CHECK(!s.last_decision.accepted);
    story_done(&s, "book.undo", NULL);
    CHECK(s.run->status == RUN_STATUS_CANCELLED);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(what_ended_last_is_undone_first_after_a_failure),
        TEST(a_cancelled_run_is_undone_when_nothing_is_in_flight),
        TEST(a_paused_run_that_is_cancelled_is_undone),
        TEST(an_engine_that_dies_leaves_it_to_the_next),
        TEST(it_is_tried_again_and_a_failure_of_it_stops_no_other),
        TEST(emergency_stop_undoes_nothing_more),
        TEST(what_came_out_well_is_left),
        TEST(steps_that_a_person_skips_or_that_never_ran_are_not_undone),
        TEST(a_retry_executes_again_what_was_undone),
        TEST(nothing_else_begins_while_it_undoes),
    };
    return test_main("kernel_compensate", tests, ARRAY_COUNT(tests), argc, argv);
}
