// The projector: one short test per rule of the state machines, then the properties that hold for any log: folding again
// changes nothing, folding in two parts equals folding at once, no order of moments breaks the counts.
#include "support/view_kit.h"

// ---- states of the run

static void a_new_run_is_pending_ES_1_2_s1(void)
{
    begin();
    check_status(RUN_STATUS_PENDING);
    CHECK_INT(view.last_seq, 0);
}

static void queued_stays_pending_C_06_ES_3b(void)
{
    begin();
    tell_kind(MOMENT_RUN_QUEUED);
    check_status(RUN_STATUS_PENDING);
    CHECK_INT(view.queued_ms, 1770829201000);
}

static void approved_ES_1_2b_ES_1_2_s2_ES_1_5_3a(void)
{
    begin();
    tell_kind(MOMENT_RUN_QUEUED);
    tell_kind(MOMENT_RUN_APPROVED);
    check_status(RUN_STATUS_APPROVED);
}

// A member of the snapshot, as text; "" without it.
static struct str shown(const char *member)
{
    struct json json;
    CHECK(view_json(&view, &arena, &json));
    return json_text(json_key(&json, member));
}

static void started_after_approval_RE_3a_ES_1_2c_ES_1_2_s3_ES_1_5_3b_ES_A1_r1_ES_A1_r3_ES_A1_r4(void)
{
    begin();
    tell_kind(MOMENT_RUN_APPROVED);
    CHECK_STR(shown("engineRunRef"), STR(""));
    tell_kind(MOMENT_RUN_STARTED);
    check_status(RUN_STATUS_RUNNING);
    CHECK_INT(view.started_ms, 1770829202000);
    CHECK_INT(view.last_seq, 2);
    CHECK_STR(shown("engineRunRef"), STR("cairn://local/plan_xyz/run-001/run-001"));
    CHECK_STR(shown("startedAt"), STR("2026-02-11T17:00:02.000Z"));
}

static void started_without_a_gate_C_15(void)
{
    started();
    check_status(RUN_STATUS_RUNNING);
}

static void gate_holds_until_approval_C_15(void)
{
    begin();
    struct start_facts start = {.document_kind = STR("plan"), .requires_approval = true};
    tell((struct moment){.kind = MOMENT_RUN_QUEUED, .start = &start});
    CHECK_TEXT(view_substatus(&view), "WAITING_APPROVAL");
    check_ignored((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    CHECK_INT(view.status, RUN_STATUS_PENDING);
}

static void paused_and_resumed_RE_3b_RE_3c_ES_1_2j_ES_1_2k_ES_1_2_s4_ES_1_2_s5_ES_1_5_3f(void)
{
    started();
    tell((struct moment){.kind = MOMENT_RUN_PAUSED, .reason = STR("lunch")});
    check_status(RUN_STATUS_PAUSED);
    CHECK_STR(view.pause_reason, STR("lunch"));
    tell_kind(MOMENT_RUN_RESUMED);
    check_status(RUN_STATUS_RUNNING);
    CHECK_INT(view.pause_reason.len, 0);
}

static void second_pause_counts_C_23(void)
{
    started();
    for (uint32_t cycle = 1; cycle <= 3; cycle++) {
        tell((struct moment){.kind = MOMENT_RUN_PAUSED, .logical = cycle});
        check_status(RUN_STATUS_PAUSED);
        tell((struct moment){.kind = MOMENT_RUN_PAUSED, .logical = cycle});
        check_status(RUN_STATUS_PAUSED);
        tell((struct moment){.kind = MOMENT_RUN_RESUMED, .logical = cycle});
        check_status(RUN_STATUS_RUNNING);
        tell((struct moment){.kind = MOMENT_RUN_PAUSED, .logical = cycle});
        check_status(RUN_STATUS_RUNNING);
    }
    CHECK_INT(view.pause_cycle, 3);
}

static void completed_RE_3d_ES_1_2l_ES_1_2_s6_ES_1_5_3g(void)
{
    started();
    tell_kind(MOMENT_RUN_COMPLETED);
    check_status(RUN_STATUS_COMPLETED);
    CHECK_INT(view.ended_ms, 1770829202000);
}

static void failed_with_its_root_cause_RE_3e_ES_1_2m_ES_1_2_s7_ES_1_5_3h(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_FAILED, "a", 1);
    tell((struct moment){.kind = MOMENT_RUN_FAILED,
                         .reason = STR("a"),
                         .fault = {.code = STR("EXIT_NONZERO"), .message = STR("exit 1")}});
    check_status(RUN_STATUS_FAILED);
    CHECK_STR(view.failed_step, STR("a"));
    CHECK_STR(view.fault.code, STR("EXIT_NONZERO"));
}

static void root_cause_is_the_first_fatal_step_when_the_event_does_not_say_ES_1_5_3h(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "z", 1);
    tell_step(MOMENT_STEP_STARTED, "b", 1);
    tell_step(MOMENT_STEP_STARTED, "c", 1);
    tell_step(MOMENT_ATTEMPT_FAILED, "z", 1);
    tell_step(MOMENT_STEP_FAILED, "c", 1);
    tell_step(MOMENT_STEP_FAILED, "b", 1);
    tell_kind(MOMENT_RUN_FAILED);
    CHECK_STR(view.failed_step, STR("c"));
    CHECK_STR(view.fault.code, STR("TIMEOUT"));
}

static void cancelled_RE_3f_ES_1_2n_ES_1_2_s8_ES_1_5_3i(void)
{
    started();
    tell((struct moment){.kind = MOMENT_RUN_CANCELLED, .reason = STR("enough")});
    check_status(RUN_STATUS_CANCELLED);
    CHECK_STR(view.cancel_reason, STR("enough"));
}

static void cancelled_while_paused_ES_1_2_s9(void)
{
    started();
    tell_kind(MOMENT_RUN_PAUSED);
    tell_kind(MOMENT_RUN_CANCELLED);
    check_status(RUN_STATUS_CANCELLED);
}

static void ended_before_the_start_C_15(void)
{
    static const enum moment_kind ends[] = {MOMENT_RUN_CANCELLED, MOMENT_RUN_FAILED};
    for (size_t i = 0; i < ARRAY_COUNT(ends) * 2; i++) {
        begin();
        tell_kind(MOMENT_RUN_QUEUED);
        if (i >= ARRAY_COUNT(ends)) tell_kind(MOMENT_RUN_APPROVED);
        tell_kind(ends[i % ARRAY_COUNT(ends)]);
        check_status(i % ARRAY_COUNT(ends) ? RUN_STATUS_FAILED : RUN_STATUS_CANCELLED);
    }
}

static void paused_does_not_complete_or_fail_C_15(void)
{
    static const enum moment_kind ends[] = {MOMENT_RUN_COMPLETED, MOMENT_RUN_FAILED};
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        started();
        tell_kind(MOMENT_RUN_PAUSED);
        check_ignored((struct moment){.kind = ends[i]});
        CHECK_INT(view.status, RUN_STATUS_PAUSED);
    }
}

static void the_end_does_not_change_ES_1_2_s10(void)
{
    static const enum moment_kind ends[] = {MOMENT_RUN_COMPLETED, MOMENT_RUN_FAILED, MOMENT_RUN_CANCELLED};
    for (size_t end = 0; end < ARRAY_COUNT(ends); end++) {
        for (size_t then = 0; then < ARRAY_COUNT(ends); then++) {
            started();
            tell_kind(ends[end]);
            if (then != end) check_ignored((struct moment){.kind = ends[then]});
        }
        started();
        tell_kind(ends[end]);
        check_ignored((struct moment){.kind = MOMENT_RUN_PAUSED});
        started();
        tell_kind(ends[end]);
        check_ignored((struct moment){.kind = MOMENT_RUN_RESUMED});
        begin();
        tell_kind(MOMENT_RUN_CANCELLED);
        check_ignored((struct moment){.kind = MOMENT_RUN_STARTED});
    }
}

static void other_transitions_do_not_exist_RE_3g(void)
{
    begin();
    check_ignored((struct moment){.kind = MOMENT_RUN_PAUSED});
    begin();
    check_ignored((struct moment){.kind = MOMENT_RUN_RESUMED});
    begin();
    check_ignored((struct moment){.kind = MOMENT_RUN_COMPLETED});
    started();
    check_ignored((struct moment){.kind = MOMENT_RUN_APPROVED});
    started();
    check_ignored((struct moment){.kind = MOMENT_RUN_QUEUED});
    started();
    check_ignored((struct moment){.kind = MOMENT_RUN_RESUMED});
}

static void signals_change_no_status_ES_1_2h_ES_1_2i(void)
{
    static const enum moment_kind kinds[] = {MOMENT_SIGNAL_ACCEPTED, MOMENT_SIGNAL_REJECTED};
    started();
    struct digest before = hash_now();
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        tell((struct moment){.kind = kinds[i], .signal_type = STR("CANCEL"), .signal_id = STR("s")});
    struct digest after = hash_now();
    CHECK(digest_eq(&before, &after));
    check_status(RUN_STATUS_RUNNING);
    CHECK_INT(view.last_seq, 3);
}

// ---- numbers

static void watermark_is_the_highest_number_ES_1_5_2_ES_1_0b(void)
{
    started();
    tell_as((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")}, 12);
    CHECK_INT(view.last_seq, 12);
    CHECK(!view.stale && !view.inconsistent);
    tell_as((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("a")}, 11);
    check_step("a", STEP_STATUS_RUNNING);
    CHECK_INT(view.last_seq, 12);
}

static void gap_is_seen_ES_1_5c(void)
{
    CHECK(view_non_contiguous(11, 13));
    CHECK(!view_non_contiguous(11, 12));
    CHECK(!view_non_contiguous(11, 11));
    CHECK(!view_non_contiguous(11, 10));
    CHECK(!view_non_contiguous(0, 1));
    CHECK(view_non_contiguous(0, 2));
    CHECK(!view_non_contiguous(UINT64_MAX, 0));
}

static void unknown_types_advance_the_watermark_only_ES_1_5_6a_ES_1_5_6b(void)
{
    started();
    struct digest before = hash_now();
    tell_kind(MOMENT_UNKNOWN);
    struct digest after = hash_now();
    CHECK(digest_eq(&before, &after));
    CHECK_INT(view.last_seq, 2);
    CHECK_INT(view.updated_ms, 1770829201000);
    check_status(RUN_STATUS_RUNNING);
}

static void repeat_with_a_higher_number_only_advances_ES_A1_i1_ES_A1_i2_C_10(void)
{
    started();
    int64_t first = view.started_ms;
    tell_kind(MOMENT_RUN_STARTED);
    CHECK_INT(view.started_ms, first);
    CHECK_INT(view.last_seq, 2);
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    int64_t ended = step("a")->ended_ms;
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    CHECK_INT(step("a")->ended_ms, ended);
    CHECK_INT(step("a")->attempt_count, 1);
    CHECK_INT(view.last_seq, 6);
    CHECK(!view.inconsistent);
}

// A node workflow has no word for a pause: it comes from the ledger, with the number of the event before it.
static void entries_of_the_ledger_share_a_number_C_05(void)
{
    begin();
    struct start_facts start = {.document_kind = STR("nodes")};
    tell_as((struct moment){.kind = MOMENT_RUN_QUEUED, .start = &start}, 0);
    CHECK_INT(view.queued_ms, 1770829200000);
    tell_as((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start}, 1);
    CHECK_INT(view_vocabulary(&view), VOCABULARY_NODES);
    tell_as((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")}, 2);
    tell_as((struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("a"), .fault = {.code = STR("X")}}, 2);
    tell_as((struct moment){.kind = MOMENT_STEP_DELAYED, .step = STR("a"), .logical = 2, .due_ms = 5}, 2);
    tell_as((struct moment){.kind = MOMENT_RUN_PAUSED}, 2);
    check_status(RUN_STATUS_PAUSED);
    CHECK(step("a")->retrying);
    CHECK_INT(step("a")->due_ms, 5);
    struct digest before = hash_now();
    tell_as((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("b")}, 2);
    tell_as((struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("a"), .fault = {.code = STR("X")}}, 2);
    tell_as((struct moment){.kind = MOMENT_RUN_PAUSED}, 1);
    struct digest after = hash_now();
    CHECK(digest_eq(&before, &after));
    tell_as((struct moment){.kind = MOMENT_RUN_RESUMED}, 2);
    tell_as((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 2}, 3);
    check_step("a", STEP_STATUS_RUNNING);
}

// ---- properties

// A log that a kernel might write: valid for the most part, with the odd contradiction.
static struct moment next_moment(struct source *source, uint64_t n)
{
    static const enum moment_kind often[] = {
        MOMENT_STEP_STARTED,   MOMENT_STEP_STARTED,    MOMENT_STEP_STARTED,      MOMENT_STEP_COMPLETED,
        MOMENT_STEP_COMPLETED, MOMENT_ATTEMPT_FAILED,  MOMENT_STEP_REDISPATCHED, MOMENT_STEP_FAILED,
        MOMENT_STEP_SKIPPED,   MOMENT_STEP_DELAYED,    MOMENT_RUN_PAUSED,        MOMENT_RUN_RESUMED,
        MOMENT_UNKNOWN,        MOMENT_SIGNAL_ACCEPTED, MOMENT_ITERATION_STARTED,
    };
    enum moment_kind kind = often[pick(source, (uint32_t)ARRAY_COUNT(often))];
    if (n == 1) kind = MOMENT_RUN_STARTED;
    if (n > 1 && pick(source, 60) == 0) kind = (enum moment_kind)(1 + pick(source, MOMENT_COUNT - 1));
    return pick_moment(source, kind);
}

enum { LOG_SIZE = 60 };

static void make_log(uint64_t seed, struct moment *log)
{
    struct source source = {.state = seed, .arena = &arena};
    for (uint64_t i = 0; i < LOG_SIZE; i++) log[i] = next_moment(&source, i + 1);
}

static void check_counts(const struct run_view *got)
{
    uint32_t counts[STEP_STATUS_SKIPPED + 1] = {0};
    for (size_t i = 0; i < got->step_count; i++) counts[got->steps[i].status]++;
    CHECK_INT(got->running_count, counts[STEP_STATUS_RUNNING]);
    CHECK_INT(got->success_count, counts[STEP_STATUS_SUCCESS]);
    CHECK_INT(got->failed_count, counts[STEP_STATUS_FAILED]);
    CHECK_INT(got->skipped_count, counts[STEP_STATUS_SKIPPED]);
}

static struct str text_of(const struct run_view *got)
{
    struct json json;
    CHECK(view_json(got, &arena, &json));
    struct buf text;
    buf_init(&text, 1 << 22);
    json_canon(&text, &json);
    CHECK(buf_ok(&text));
    struct str copy = arena_copy(&arena, buf_str(&text));
    buf_release(&text);
    return copy;
}

static void fold_range(struct run_view *into, const struct moment *log, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) CHECK(view_fold(into, &log[i], i + 1));
}

static void incremental_equals_full_and_repeats_are_harmless_V1_ES_1_5b_ES_1_5_4_RE_2_2a_ES_1_2a(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        begin();
        struct moment log[LOG_SIZE];
        make_log(seed, log);
        struct run_view whole, parts;
        CHECK(view_init(&whole, &arena, &test_ids));
        CHECK(view_init(&parts, &arena, &test_ids));
        fold_range(&whole, log, 0, LOG_SIZE);
        check_counts(&whole);
        for (size_t i = 0; i < LOG_SIZE; i++) {
            fold_range(&parts, log, i, i + 1);
            fold_range(&parts, log, i > 10 ? i - 10 : 0, i); // numbers that were folded before
        }
        CHECK_STR(text_of(&parts), text_of(&whole));
    }
}

// The same moments again under new numbers: ES-A1-i2 for whole logs without contradictions.
static void whole_log_again_under_new_numbers_changes_nothing_ES_A1_i2(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_ATTEMPT_FAILED, "a", 1);
    tell((struct moment){.kind = MOMENT_RUN_PAUSED, .logical = 1});
    tell((struct moment){.kind = MOMENT_RUN_RESUMED, .logical = 1});
    tell_step(MOMENT_STEP_STARTED, "a", 2);
    tell_step(MOMENT_STEP_COMPLETED, "a", 2);
    tell_step(MOMENT_STEP_SKIPPED, "b", 1);
    tell_kind(MOMENT_RUN_COMPLETED);
    struct digest before = hash_now();
    tell_kind(MOMENT_RUN_STARTED);
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_ATTEMPT_FAILED, "a", 1);
    tell((struct moment){.kind = MOMENT_RUN_PAUSED, .logical = 1});
    tell((struct moment){.kind = MOMENT_RUN_RESUMED, .logical = 1});
    tell_step(MOMENT_STEP_STARTED, "a", 2);
    tell_step(MOMENT_STEP_COMPLETED, "a", 2);
    tell_step(MOMENT_STEP_SKIPPED, "b", 1);
    tell_kind(MOMENT_RUN_COMPLETED);
    struct digest after = hash_now();
    CHECK(digest_eq(&before, &after));
    CHECK(!view.inconsistent);
    CHECK_INT(view.last_seq, 18);
}

static void view_keeps_no_borrowed_bytes(void)
{
    started();
    char text[8] = "load";
    struct moment moment = {
        .kind = MOMENT_STEP_FAILED, .step = {text, 4}, .logical = 1, .engine = 1, .fault = {.code = {text, 4}}};
    CHECK(view_fold(&view, &moment, 2));
    memset(text, 'x', sizeof(text));
    CHECK(view_step(&view, STR("load")) != NULL);
    CHECK_STR(step("load")->fault.code, STR("load"));
}

static void every_allocation_may_fail(void)
{
    begin();
    struct moment log[LOG_SIZE];
    make_log(7, log);
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        struct arena scarce;
        struct run_view small;
        struct json json;
        arena_init(&scarce, 4096, 64 << 20);
        scarce.fail_in = n;
        done = view_init(&small, &scarce, &test_ids) && view_plan(&small, with_ids(&test_program));
        for (size_t i = 0; i < LOG_SIZE && done; i++) done = view_fold(&small, &log[i], i + 1);
        done = done && view_json(&small, &scarce, &json);
        arena_release(&scarce);
        CHECK(n < 20000);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_new_run_is_pending_ES_1_2_s1),
        TEST(queued_stays_pending_C_06_ES_3b),
        TEST(approved_ES_1_2b_ES_1_2_s2_ES_1_5_3a),
        TEST(started_after_approval_RE_3a_ES_1_2c_ES_1_2_s3_ES_1_5_3b_ES_A1_r1_ES_A1_r3_ES_A1_r4),
        TEST(started_without_a_gate_C_15),
        TEST(gate_holds_until_approval_C_15),
        TEST(paused_and_resumed_RE_3b_RE_3c_ES_1_2j_ES_1_2k_ES_1_2_s4_ES_1_2_s5_ES_1_5_3f),
        TEST(second_pause_counts_C_23),
        TEST(completed_RE_3d_ES_1_2l_ES_1_2_s6_ES_1_5_3g),
        TEST(failed_with_its_root_cause_RE_3e_ES_1_2m_ES_1_2_s7_ES_1_5_3h),
        TEST(root_cause_is_the_first_fatal_step_when_the_event_does_not_say_ES_1_5_3h),
        TEST(cancelled_RE_3f_ES_1_2n_ES_1_2_s8_ES_1_5_3i),
        TEST(cancelled_while_paused_ES_1_2_s9),
        TEST(ended_before_the_start_C_15),
        TEST(paused_does_not_complete_or_fail_C_15),
        TEST(the_end_does_not_change_ES_1_2_s10),
        TEST(other_transitions_do_not_exist_RE_3g),
        TEST(signals_change_no_status_ES_1_2h_ES_1_2i),
        TEST(watermark_is_the_highest_number_ES_1_5_2_ES_1_0b),
        TEST(gap_is_seen_ES_1_5c),
        TEST(unknown_types_advance_the_watermark_only_ES_1_5_6a_ES_1_5_6b),
        TEST(repeat_with_a_higher_number_only_advances_ES_A1_i1_ES_A1_i2_C_10),
        TEST(entries_of_the_ledger_share_a_number_C_05),
        TEST(incremental_equals_full_and_repeats_are_harmless_V1_ES_1_5b_ES_1_5_4_RE_2_2a_ES_1_2a),
        TEST(whole_log_again_under_new_numbers_changes_nothing_ES_A1_i2),
        TEST(view_keeps_no_borrowed_bytes),
        TEST(every_allocation_may_fail),
    };
    return test_main("view_fold", tests, ARRAY_COUNT(tests), argc, argv);
}
