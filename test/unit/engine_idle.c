// Signals to runs that nobody owns: decided before the run goes on, and without anything going on (ADR 0013).
#include "support/engine_kit.h"

#define GATED                                                                                                          \
    PLAN(SHELL(                                                                                                        \
        "a", "",                                                                                                       \
        "") ",{\"stepId\":\"g\",\"kind\":\"approval\",\"dependsOn\":[],\"with\":{\"message\":\"?\"}}," SHELL("b",      \
                                                                                                             "\"g\"",  \
                                                                                                             ""))

static void orphan(struct kit *k, const char *text)
{
    kit_open(k, text);
    kit_start(k, "r1");
    kit_crash(k);
    buf_clear(&k->told);
}

static void pause_of_an_orphaned_run_starts_nothing(void)
{
    struct kit k;
    orphan(&k, LINEAR);
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    CHECK(k.decision.accepted);
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 RUN_PAUSED\n");
    CHECK_INT(kit_waiting(&k), 0);
    CHECK_INT(engine_activity(k.engine).parked, 1);
    kit_adopt(&k, "r1"); // a pause is kept by who takes the run over
    CHECK_INT(kit_waiting(&k), 0);
    kit_signal(&k, "r1", SIGNAL_RESUME, "");
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 RUN_RESUMED\nr1 STEP_REDISPATCHED a 1.2\n");
    kit_done(&k, "a", "ok");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void rejected_signal_leaves_an_orphaned_run_as_it_is(void)
{
    struct kit k;
    orphan(&k, LINEAR);
    kit_signal(&k, "r1", SIGNAL_RESUME, "");
    CHECK_TEXT(k.decision_code, "RUN_NOT_PAUSED");
    kit_expect(&k, "r1 SIGNAL_REJECTED RUN_NOT_PAUSED\n");
    CHECK_INT(kit_waiting(&k), 0);
    kit_adopt(&k, "r1");
    CHECK_INT(kit_attempt(&k, "a")->engine, 2);
    kit_close(&k);
}

static void approval_alone_starts_neither_the_lost_step_nor_the_next(void)
{
    struct kit k;
    orphan(&k, GATED);
    kit_signal(&k, "r1", SIGNAL_APPROVE, "g");
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 STEP_COMPLETED g 1.1\n");
    CHECK_INT(kit_waiting(&k), 0);
    kit_crash(&k); // nothing but the log knows
    kit_adopt(&k, "r1");
    kit_expect(&k, "r1 STEP_REDISPATCHED a 1.2\nr1 STEP_STARTED b 1.1\n");
    kit_close(&k);
}

static void adoption_after_a_signal_goes_on_at_once(void)
{
    struct kit k;
    orphan(&k, GATED);
    char id[UUID_SIZE];
    struct signal approve = kit_make_signal(&k, SIGNAL_APPROVE, "g", id);
    kit_send(&k, "r1", &approve);
    kit_adopt(&k, "r1");
    kit_adopt(&k, "r1"); // once more is harmless
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 STEP_COMPLETED g 1.1\nr1 STEP_REDISPATCHED a 1.2\nr1 STEP_STARTED b 1.1\n");
    CHECK_INT(kit_waiting(&k), 2);
    kit_close(&k);
}

static void cancel_of_an_orphaned_run_ends_it_without_running_it(void)
{
    struct kit k;
    orphan(&k, LINEAR);
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 STEP_FAILED a 1.1 CANCELLED\nr1 RUN_CANCELLED\n");
    CHECK_INT(kit_waiting(&k), 0);
    CHECK_INT(engine_activity(k.engine).resident, 0);
    kit_close(&k);
}

static void cancel_of_an_orphaned_parent_ends_its_child_first(void)
{
    struct kit k;
    orphan(&k, PLAN("{\"stepId\":\"s\",\"kind\":\"subrun\",\"with\":{\"document\":\"child\"}}"));
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_CANCELLED);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
    CHECK_INT(kit_waiting(&k), 0);
    kit_close(&k);
}

static void held_step_is_retried_when_somebody_drives_the_run(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", ",\"onStepFailure\":\"hold\"") "," SHELL("b", "\"a\"", "")));
    kit_start(&k, "r1");
    kit_fail(&k, "a", "EXIT_NONZERO", false);
    kit_crash(&k);
    buf_clear(&k.told);
    kit_signal(&k, "r1", SIGNAL_RETRY_STEP, "a");
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 STEP_DELAYED a 2.1\n");
    kit_signal(&k, "r1", SIGNAL_RETRY_STEP, "a");
    CHECK_TEXT(k.decision_code, "STEP_NOT_TERMINAL");
    kit_crash(&k);
    kit_adopt(&k, "r1");
    CHECK_INT(kit_attempt(&k, "a")->logical, 2);
    kit_done(&k, "a", "ok");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void last_step_skipped_by_hand_ends_the_run(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", ",\"onStepFailure\":\"hold\"")));
    kit_start(&k, "r1");
    kit_done(&k, "a", "ok");
    kit_fail(&k, "b", "EXIT_NONZERO", false);
    kit_crash(&k);
    kit_signal(&k, "r1", SIGNAL_SKIP_STEP, "b");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void signals_posted_to_an_orphan_are_decided_before_it_goes_on_I23(void)
{
    struct kit k;
    orphan(&k, LINEAR);
    char id[UUID_SIZE];
    struct signal pause = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
    struct str bytes;
    struct error err = {0};
    CHECK_OK(signal_encode(&pause, &k.memory, &bytes, &err), &err);
    CHECK_OK(store_post(k.store, STR("default"), STR("r1"), pause.id, bytes, &err), &err);
    kit_adopt(&k, "r1");
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 RUN_PAUSED\n");
    CHECK_INT(kit_waiting(&k), 0);
    kit_close(&k);
}

static void full_disk_does_not_wake_an_idle_run(void)
{
    struct kit k;
    orphan(&k, LINEAR);
    k.full_left = 1;
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    kit_pass(&k, 300);
    CHECK(k.decision.accepted);
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 RUN_PAUSED\n");
    char id[UUID_SIZE];
    struct signal resume = kit_make_signal(&k, SIGNAL_RESUME, "", id);
    struct error err = {0};
    kit_send(&k, "r1", &resume);
    CHECK_OK(engine_adopt(k.engine, STR("default"), STR("r1"), &err), &err);
    k.full_left = 1; // signal and recovery are taken back together
    kit_idle(&k);
    kit_pass(&k, 300);
    kit_expect(&k, "r1 SIGNAL_ACCEPTED\nr1 RUN_RESUMED\nr1 STEP_REDISPATCHED a 1.2\n");
    kit_close(&k);
}

static void retried_run_waits_for_a_driver_when_only_signals_are_decided(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_done(&k, "a", "kept");
    kit_fail(&k, "b", "EXIT_NONZERO", false);
    k.engine->options.only_signals = true;
    kit_signal(&k, "r1", SIGNAL_RETRY_RUN, "");
    CHECK(k.decision.accepted);
    CHECK_INT(kit_waiting(&k), 0);
    CHECK_INT(kit_head(&k, k.new_run).summary.status, RUN_STATUS_RUNNING);
    kit_adopt(&k, k.new_run);
    CHECK_TEXT(kit_attempt(&k, "b")->run, k.new_run);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pause_of_an_orphaned_run_starts_nothing),
        TEST(rejected_signal_leaves_an_orphaned_run_as_it_is),
        TEST(approval_alone_starts_neither_the_lost_step_nor_the_next),
        TEST(adoption_after_a_signal_goes_on_at_once),
        TEST(cancel_of_an_orphaned_run_ends_it_without_running_it),
        TEST(cancel_of_an_orphaned_parent_ends_its_child_first),
        TEST(held_step_is_retried_when_somebody_drives_the_run),
        TEST(last_step_skipped_by_hand_ends_the_run),
        TEST(signals_posted_to_an_orphan_are_decided_before_it_goes_on_I23),
        TEST(full_disk_does_not_wake_an_idle_run),
        TEST(retried_run_waits_for_a_driver_when_only_signals_are_decided),
    };
    return test_main("engine_idle", tests, ARRAY_COUNT(tests), argc, argv);
}
