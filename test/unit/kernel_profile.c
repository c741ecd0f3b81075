// Behaviour profiles: what a pause does to steps in flight, and for how long it waits for them.
#include "support/story.h"
#include "view/view.h"

#define PLAN                                                                                                           \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":["                    \
    "{\"stepId\":\"a\",\"kind\":\"noop\",\"dependsOn\":[]},{\"stepId\":\"b\",\"kind\":\"noop\",\"dependsOn\":[]},"     \
    "{\"stepId\":\"c\",\"kind\":\"noop\",\"dependsOn\":[\"a\",\"b\"]}]}"

static void begin(struct story *s, const char *profile, bool cancel_on_pause, int64_t drain_timeout_ms)
{
    story_open(s, PLAN);
    struct start_facts facts = {.document_sha256 = {s->program->sha256_hex, SHA256_HEX},
                                .document_kind = str_from(document_kind_name(s->program->kind)),
                                .inputs = s->inputs,
                                .artifacts_dir = STR("/a"),
                                .trigger_source = STR("manual"),
                                .profile = str_from(profile),
                                .cancel_on_pause = cancel_on_pause,
                                .drain_timeout_ms = drain_timeout_ms};
    struct input input = {.kind = INPUT_START, .start = &facts};
    story_step(s, &input);
    buf_clear(&s->told);
}

static const struct effect *drain_timer_of(const struct story *s)
{
    for (size_t i = 0; i < s->effect_count; i++)
        if (s->effects[i].kind == EFFECT_TIMER && s->effects[i].timer == TIMER_DRAIN) return &s->effects[i];
    return NULL;
}

static void fire_drain_timer(struct story *s)
{
    const struct effect *e = drain_timer_of(s);
    CHECK(e);
    s->now = e->due_ms;
    struct input input = {
        .kind = INPUT_TIMER, .timer = TIMER_DRAIN, .step = e->step, .logical = e->logical, .due_ms = e->due_ms};
    story_step(s, &input);
}

// What readers of the log see.
static const char *shown(struct story *s)
{
    struct run_view view;
    CHECK(view_init(&view, &s->memory, &story_ids));
    for (size_t i = 0; i < s->stored_count; i++) {
        struct moment m;
        struct error err = {0};
        CHECK_OK(contract_decode_ledger(s->stored[i], &s->memory, &m, &err), &err);
        CHECK(view_fold(&view, &m, i + 1));
    }
    return view_substatus(&view);
}

static void pause_of_the_draining_profiles_waits_five_minutes_ES_6_6a_C_44(void)
{
    static const char *const profiles[] = {"", "conductor", "mock"};
    for (size_t i = 0; i < ARRAY_COUNT(profiles); i++) {
        struct story s;
        begin(&s, profiles[i], false, 0);
        story_signal(&s, SIGNAL_PAUSE, NULL);
        CHECK_TEXT(run_substatus(s.run), "DRAINING");
        CHECK_INT(drain_timer_of(&s)->due_ms, 300000);
        story_close(&s);
    }
}

static void drain_timeout_ends_draining_and_not_the_pause_ES_6_6b_ES_6_6c(void)
{
    struct story s;
    begin(&s, "conductor", false, 1000);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    story_done(&s, "a", NULL);
    CHECK_TEXT(shown(&s), "DRAINING");
    buf_clear(&s.told);
    fire_drain_timer(&s);
    story_expect(&s, "[1000] DRAIN_TIMEOUT\n");
    CHECK_INT(s.run->status, RUN_STATUS_PAUSED);
    CHECK_TEXT(run_substatus(s.run), "");
    CHECK_TEXT(shown(&s), "");
    story_done(&s, "b", NULL); // what was left over may still come to its end
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_RESUME, NULL);
    story_expect(&s, "[1000] SIGNAL_ACCEPTED RESUME\n[1000] RUN_RESUMED cycle 1\n[1000] STEP_STARTED c 1.1\n");
    story_close(&s);
}

static void leftovers_of_a_drain_end_after_the_resume_and_once_ES_6_6c(void)
{
    struct story s;
    begin(&s, "conductor", false, 1000);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    story_done(&s, "a", NULL);
    fire_drain_timer(&s);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_RESUME, NULL); // b is still in flight
    story_expect(&s, "[1000] SIGNAL_ACCEPTED RESUME\n[1000] RUN_RESUMED cycle 1\n");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    story_done(&s, "b", NULL);
    story_expect(&s, "[1000] STEP_COMPLETED b 1.1\n[1000] STEP_STARTED c 1.1\n");
    story_done(&s, "c", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(s.run->counts.completed, 3);
    story_close(&s);
}

static void next_pause_drains_anew_ES_6_6b(void)
{
    struct story s;
    begin(&s, "conductor", false, 1000);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    fire_drain_timer(&s);
    story_signal(&s, SIGNAL_RESUME, NULL);
    s.effect_count = 0;
    story_signal(&s, SIGNAL_PAUSE, NULL);
    CHECK_TEXT(run_substatus(s.run), "DRAINING");
    CHECK_INT(drain_timer_of(&s)->logical, 2);
    story_close(&s);
}

static void drain_timer_of_a_drained_or_resumed_run_says_nothing(void)
{
    for (int resumed = 0; resumed < 2; resumed++) {
        struct story s;
        begin(&s, "conductor", false, 1000);
        story_signal(&s, SIGNAL_PAUSE, NULL);
        if (resumed) {
            story_signal(&s, SIGNAL_RESUME, NULL);
        } else {
            story_done(&s, "a", NULL);
            story_done(&s, "b", NULL);
        }
        buf_clear(&s.told);
        fire_drain_timer(&s);
        story_expect(&s, "");
        story_close(&s);
    }
}

static void drain_timeout_survives_a_crash_ES_6_6a(void)
{
    struct story s;
    begin(&s, "conductor", false, 1000);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    s.now = 400;
    story_crash(&s);
    CHECK_INT(drain_timer_of(&s)->due_ms, 1000); // counted from the pause
    fire_drain_timer(&s);
    story_crash(&s);
    CHECK(!drain_timer_of(&s));
    CHECK_TEXT(run_substatus(s.run), "");
    story_close(&s);
}

static void pause_of_the_temporal_profile_is_immediate_C_17_ES_6_8(void)
{
    struct story s;
    begin(&s, "temporal", false, 0);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    CHECK_INT(s.run->status, RUN_STATUS_PAUSED);
    CHECK_TEXT(run_substatus(s.run), "");
    CHECK_TEXT(shown(&s), "");
    CHECK(!drain_timer_of(&s) && !story_waits(&s, EFFECT_CANCEL, "a"));
    story_close(&s);
}

static void pause_may_stop_what_is_in_flight_and_resume_runs_it_again_C_17(void)
{
    struct story s;
    begin(&s, "temporal", true, 0);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    CHECK(story_waits(&s, EFFECT_CANCEL, "a") && story_waits(&s, EFFECT_CANCEL, "b"));
    buf_clear(&s.told);
    story_fail(&s, "a", "CANCELLED", false);
    story_done(&s, "b", NULL); // it was faster
    story_expect(&s, "[0] STEP_COMPLETED b 1.1\n");
    story_signal(&s, SIGNAL_RESUME, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED RESUME\n[0] RUN_RESUMED cycle 1\n[0] STEP_REDISPATCHED a 1.2\n");
    story_done(&s, "a", NULL);
    story_done(&s, "c", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    COVERED(attempt_interrupted);
    story_close(&s);
}

static void interrupted_attempt_that_comes_back_after_the_resume_runs_again_C_17(void)
{
    struct story s;
    begin(&s, "temporal", true, 0);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    story_signal(&s, SIGNAL_RESUME, NULL);
    buf_clear(&s.told);
    story_fail(&s, "a", "CANCELLED", false);
    story_expect(&s, "[0] STEP_REDISPATCHED a 1.2\n");
    story_fail(&s, "a", "EXIT_NONZERO", false); // a failure of its own is one
    CHECK_INT(kernel_state(s.run, 0), NODE_FAILED);
    story_close(&s);
}

// A host may take its time between the two marks: what ends meanwhile is recorded, what could start waits for the next segment.
static void nothing_starts_while_a_segment_is_full_K8_ES_6a(void)
{
    struct story s;
    begin(&s, "temporal", false, 0);
    struct input full = {.kind = INPUT_FULL, .limit = "events", .events = 4};
    story_step(&s, &full);
    CHECK_TEXT(run_substatus(s.run), "CONTINUE_AS_NEW");
    buf_clear(&s.told);
    story_done(&s, "a", "1");
    story_done(&s, "b", "1");
    story_expect(&s, "[0] STEP_COMPLETED a 1.1\n[0] STEP_COMPLETED b 1.1\n");
    struct input next = {.kind = INPUT_RECOVER};
    story_step(&s, &next);
    story_expect(&s, "[0] SEGMENT_STARTED\n[0] STEP_STARTED c 1.1\n");
    story_close(&s);
}

static void end_is_the_same_in_every_profile_ES_6_8_ES_6b(void)
{
    static const char *const profiles[] = {"", "temporal", "conductor", "mock"};
    for (size_t i = 0; i < ARRAY_COUNT(profiles); i++) {
        struct story s;
        begin(&s, profiles[i], i == 1, 1000);
        story_signal(&s, SIGNAL_PAUSE, NULL);
        CHECK_TEXT(run_substatus(s.run), i == 1 ? "" : "DRAINING"); // the way there differs
        CHECK(i == 1 ? !drain_timer_of(&s) : drain_timer_of(&s)->due_ms == 1000);
        if (i == 1) {
            story_fail(&s, "a", "CANCELLED", false);
            story_signal(&s, SIGNAL_RESUME, NULL);
        }
        story_done(&s, "a", "1");
        story_done(&s, "b", "2");
        if (i != 1) story_signal(&s, SIGNAL_RESUME, NULL);
        story_done(&s, "c", "3");
        CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
        CHECK_INT(s.run->counts.completed, 3);
        story_close(&s);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pause_of_the_draining_profiles_waits_five_minutes_ES_6_6a_C_44),
        TEST(drain_timeout_ends_draining_and_not_the_pause_ES_6_6b_ES_6_6c),
        TEST(leftovers_of_a_drain_end_after_the_resume_and_once_ES_6_6c),
        TEST(next_pause_drains_anew_ES_6_6b),
        TEST(drain_timer_of_a_drained_or_resumed_run_says_nothing),
        TEST(drain_timeout_survives_a_crash_ES_6_6a),
        TEST(pause_of_the_temporal_profile_is_immediate_C_17_ES_6_8),
        TEST(pause_may_stop_what_is_in_flight_and_resume_runs_it_again_C_17),
        TEST(interrupted_attempt_that_comes_back_after_the_resume_runs_again_C_17),
        TEST(nothing_starts_while_a_segment_is_full_K8_ES_6a),
        TEST(end_is_the_same_in_every_profile_ES_6_8_ES_6b),
    };
    return test_main("kernel_profile", tests, ARRAY_COUNT(tests), argc, argv);
}
