// The projector: the three functions of ES-1.5 and its loop, driven by a
// scripted store.
#include "unit/support/project_kit.h"

static void incremental_is_full_at_every_cut_ES_1_5a_ES_1_5b_ES_1_2a(void)
{
    tell_eight();
    add(9, MOMENT_STEP_COMPLETED, "b")->moment.logical = 2;
    add(10, MOMENT_RUN_COMPLETED, "");
    const struct snapshot *full = project_run(&test_ids, NULL, history.events, history.count);
    CHECK(full);
    CHECK_INT(snapshot_seq(full), 10);
    CHECK_TEXT(run_status_name(snapshot_view(full)->status), "COMPLETED");
    for (size_t cut = 0; cut <= history.count; cut++) {
        const struct snapshot *first = project_run(&test_ids, NULL, history.events, cut);
        const struct snapshot *both = project_more(first, history.events + cut, history.count - cut);
        check_same(both, full);
        snapshot_release(first);
        check_same(both, full); // shares nothing with what it was made of
        snapshot_release(both);
    }
    snapshot_release(full);
}

static void a_projection_makes_a_new_snapshot_ES_1_4c(void)
{
    tell_eight();
    const struct snapshot *before = project_run(&test_ids, NULL, history.events, 3);
    const struct snapshot *twin = project_run(&test_ids, NULL, history.events, 3);
    const struct snapshot *after = project_more(before, history.events + 3, 5);
    CHECK(before != after);
    CHECK_INT(snapshot_seq(before), 3);
    CHECK_INT(snapshot_seq(after), 8);
    check_same(before, twin);
    snapshot_release(before);
    snapshot_release(twin);
    snapshot_release(after);
}

static void non_contiguous_is_more_than_one_further_ES_1_5c(void)
{
    CHECK(project_gap(11, 13));
    CHECK(!project_gap(11, 12) && !project_gap(11, 11) && !project_gap(11, 3) && !project_gap(0, 1));
    CHECK(project_gap(0, 2) && project_gap(0, UINT64_MAX) && !project_gap(UINT64_MAX, 0));
}

// ---- the loop

static void a_failed_fetch_is_tried_from_the_watermark_ES_1_5d_ES_1_0c(void)
{
    struct error why = {.code = E_IO, .message = "no answer"};
    tell_eight();
    open_at(NULL);
    CHECK(projector_fetched(projector, history.events, 5, T0));
    int64_t before = 0;
    for (int i = 0; i < 12; i++) {
        projector_failed(projector, &why, T0);
        int64_t wait = projector_next(projector).not_before_ms - T0;
        CHECK(wait >= before && wait >= 100 && wait <= 10000);
        before = wait;
    }
    CHECK_INT(before, 10000);
    check_request(PROJECT_FETCH, 5);
    CHECK_INT(reports(PROJECT_FAILED), 12);
    CHECK_TEXT(heard.texts[heard.count - 1], "no answer");
    CHECK(serve(0));
    CHECK_INT(projector_next(projector).not_before_ms, 0);
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 8);
    projector_close(projector);
}

static void seen_again_and_out_of_order_ES_1_5_4_ES_1_5_1a(void)
{
    tell_eight();
    struct project_event mixed[12];
    for (size_t i = 0; i < 8; i++) mixed[i] = history.events[7 - i];
    for (size_t i = 0; i < 4; i++) mixed[8 + i] = history.events[i * 2];
    open_at(NULL);
    CHECK(projector_fetched(projector, mixed, 12, T0));
    CHECK(projector_fetched(projector, mixed, 12, T0));
    CHECK_INT(heard.published, 1);
    CHECK_INT(heard.count, 0);
    const struct snapshot *full = project_run(&test_ids, NULL, history.events, 8);
    check_same(projector_snapshot(projector), full);
    snapshot_release(full);
    projector_close(projector);
}

static void lag_classes_ES_1_5_5a(void)
{
    CHECK_INT(project_lag_class(0), PROJECT_LAG_OK);
    CHECK_INT(project_lag_class(1000), PROJECT_LAG_OK);
    CHECK_INT(project_lag_class(1001), PROJECT_LAG_SLOW);
    CHECK_INT(project_lag_class(5000), PROJECT_LAG_SLOW);
    CHECK_INT(project_lag_class(5001), PROJECT_LAG_BAD);
}

static void a_stall_of_six_seconds_is_told_ES_1_4e_ES_1_0e(void)
{
    tell_eight();
    open_at(NULL);
    CHECK(projector_fetched(projector, history.events, 5, T0 + 10));
    CHECK_INT(projector_lag_ms(projector, T0 + 90000), 0); // nothing is waiting
    projector_head(projector, 6, T0 + 100);
    projector_time(projector, T0 + 5100);
    CHECK_INT(reports(PROJECT_LAG_HIGH), 0); // 5 s are not more than 5 s
    CHECK_INT(projector_lag_ms(projector, T0 + 5100), 5000);
    projector_head(projector, 8, T0 + 4000); // younger ones do not hide it
    projector_time(projector, T0 + 6100);
    projector_time(projector, T0 + 7100);
    CHECK_INT(reports(PROJECT_LAG_HIGH), 1);
    CHECK_INT(heard.items[0].lag_ms, 6000);
    CHECK(serve(0));
    CHECK_INT(reports(PROJECT_LAG_NORMAL), 1);
    CHECK_INT(projector_lag_ms(projector, T0 + 99999), 0);
    projector_close(projector);
}

static void an_old_log_is_no_lag_ES_1_4e(void)
{
    tell_eight();
    for (size_t i = 0; i < 8; i++) history.events[i].persisted_ms = 5;
    open_at(NULL);
    CHECK(serve(0));
    CHECK_INT(heard.count, 0);
    projector_close(projector);
}

static void unknown_types_move_the_watermark_and_are_told_ES_1_5_6a_ES_1_5_6b_ES_1_5_6c(void)
{
    tell_eight();
    open_at(NULL);
    CHECK(serve(0));
    struct digest before = snapshot_hash(projector_snapshot(projector));
    add(9, MOMENT_UNKNOWN, "");
    CHECK(serve(0) && serve(0));
    struct digest after = snapshot_hash(projector_snapshot(projector));
    CHECK(digest_eq(&before, &after));
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 9);
    CHECK_INT(reports(PROJECT_UNKNOWN_TYPE), 1);
    CHECK(strstr(heard.texts[0], "FooBar"));
    projector_close(projector);
}

static void a_refused_transition_is_told_once_per_event_C_15(void)
{
    tell_eight();
    add(9, MOMENT_RUN_COMPLETED, "");
    add(10, MOMENT_RUN_FAILED, "");
    add(11, MOMENT_RUN_RESUMED, "");
    add(13, MOMENT_UNKNOWN, "");
    open_at(NULL);
    CHECK(serve(0) && serve(0));
    struct project_event late = *add(12, MOMENT_UNKNOWN, "");
    CHECK(projector_fetched(projector, &late, 1,
                            T0)); // a rebuild sees them all again
    struct project_event swap = history.events[12];
    history.events[12] = history.events[11];
    history.events[11] = swap;
    CHECK(serve(0));
    CHECK_INT(reports(PROJECT_INVALID), 2);
    CHECK_INT(heard.items[0].kind, PROJECT_INVALID);
    CHECK_INT(heard.items[0].seq, 10);
    CHECK_INT(heard.items[0].prior, RUN_STATUS_COMPLETED);
    CHECK_STR(heard.items[0].type, STR("RunFailed"));
    const struct run_view *view = snapshot_view(projector_snapshot(projector));
    CHECK(view->inconsistent);
    CHECK_TEXT(run_status_name(view->status), "COMPLETED");
    projector_close(projector);
}

static uint32_t on_a[] = {0};
static struct program_step two[] = {
    {.id = LITERAL("a"), .kind = STEP_NOOP, .scope = PROGRAM_TOP},
    {.id = LITERAL("b"), .kind = STEP_NOOP, .scope = PROGRAM_TOP, .deps = on_a, .dep_count = 1},
};
static struct program two_steps = {.steps = two, .step_count = 2, .top_count = 2};

static void an_effect_before_its_cause_is_told_C_56(void)
{
    begin();
    add(1, MOMENT_RUN_STARTED, "");
    add(2, MOMENT_STEP_STARTED, "a");
    add(3, MOMENT_STEP_STARTED, "b"); // a is not over
    add(4, MOMENT_STEP_COMPLETED, "a");
    add(5, MOMENT_STEP_COMPLETED, "c");                                  // never began
    add(6, MOMENT_STEP_COMPLETED, "d")->moment.run_ref = STR("run-000"); // reused: none is needed
    heard = (struct heard){0};
    projector = projector_open(&test_ids, with_ids(&two_steps), NULL, T0, &sink);
    CHECK(serve(0));
    CHECK_INT(reports(PROJECT_CAUSAL), 2);
    CHECK_INT(heard.items[0].seq, 3);
    CHECK_INT(heard.items[1].seq, 5);
    CHECK_INT(reports(PROJECT_INVALID), 0);
    CHECK(!snapshot_view(projector_snapshot(projector))->inconsistent);
    projector_close(projector);
}

// A store of somebody else: numbers with holes, some of them filled late,
// answers cut short or failing, pushes in any order. However it behaves, in the
// end the projector has what a projection of the whole log has, told each gap
// once, and is not STALE.
static struct project_event *whole(struct source *source, size_t *count)
{
    static struct project_event events[48];
    static char ids[48][16];
    uint64_t seq = 0;
    for (size_t i = 0; i < ARRAY_COUNT(events); i++) {
        seq += maybe(source) ? 1 : 1 + pick(source, 3);
        enum moment_kind kind = i == 0 ? MOMENT_RUN_STARTED : (enum moment_kind)pick(source, MOMENT_COUNT);
        if (!moment_word(kind, VOCABULARY_RUN)) kind = MOMENT_UNKNOWN;
        snprintf(ids[i], sizeof(ids[i]), "id-%zu", i);
        events[i] = (struct project_event){.seq = seq, .id = str_from(ids[i]), .persisted_ms = T0 + (int64_t)i};
        if (kind) events[i].moment = pick_moment(source, kind);
        if (kind == MOMENT_RUN_STARTED) events[i].moment.start = NULL;
        events[i].type = str_from(kind ? moment_word(kind, VOCABULARY_RUN) : "FooBar");
    }
    *count = ARRAY_COUNT(events);
    return events;
}

static void answer(struct source *source, const struct project_event *events, size_t count, uint64_t hidden,
                   bool honest)
{
    static const struct error why = {.code = E_IO, .message = "no answer"};
    struct project_request request = projector_next(projector);
    struct project_event page[48];
    size_t size = 0, limit = honest ? count : 1 + pick(source, (uint32_t)count);
    bool more = false;
    if (!honest && pick(source, 5) == 0) {
        projector_failed(projector, &why, T0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool shown = events[i].seq > request.after && (honest || events[i].seq != hidden);
        more = more || (shown && size == limit);
        if (shown && size < limit) page[size++] = events[i];
    }
    if (request.want == PROJECT_FETCH)
        CHECK(projector_fetched(projector, page, size, T0));
    else
        CHECK(projector_resynced(projector, page, size, more, T0));
}

static struct project_report gaps[256];
static size_t gap_count;

// C-14: once per range; a piece of one that was told is none.
static void on_gap(void *context, const struct project_report *report)
{
    (void)context;
    if (report->kind != PROJECT_GAP) return;
    for (size_t i = 0; i < gap_count; i++) CHECK(report->seq < gaps[i].seq || report->until > gaps[i].until);
    CHECK(gap_count < ARRAY_COUNT(gaps));
    gaps[gap_count++] = *report;
}

static void ignore(void *context, const struct snapshot *snapshot)
{
    (void)context, (void)snapshot;
}

static void any_store_gives_the_same_in_the_end_F10_V1_C_14(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct arena arena;
        size_t count;
        arena_init(&arena, 64 * 1024, 64 << 20);
        struct source source = {seed, &arena};
        const struct project_event *events = whole(&source, &count);
        gap_count = 0;
        projector = projector_open(&test_ids, NULL, NULL, T0, &(struct project_sink){NULL, ignore, on_gap});
        CHECK(projector);
        for (size_t turn = 0; turn < 40; turn++) {
            uint64_t hidden = events[pick(&source, (uint32_t)count)].seq;
            if (pick(&source, 4) == 0)
                CHECK(projector_fetched(projector, &events[pick(&source, (uint32_t)count)], 1,
                                        T0)); // pushed
            else
                answer(&source, events, count, hidden, false);
        }
        // Everything is visible at last; what was taken for missing is pushed once
        // more, as its writer would.
        for (size_t i = 0; i < count; i++) {
            CHECK(projector_fetched(projector, &events[i], 1, T0));
            for (size_t k = 0; k < 4 && projector_next(projector).want != PROJECT_FETCH; k++)
                answer(&source, events, count, 0, true);
        }
        answer(&source, events, count, 0, true);
        if (projector_next(projector).want != PROJECT_FETCH) answer(&source, events, count, 0, true);
        CHECK(!is_stale());
        const struct snapshot *full = project_run(&test_ids, NULL, events, count);
        CHECK(full);
        check_same(projector_snapshot(projector), full);
        snapshot_release(full);
        projector_close(projector);
        arena_release(&arena);
    }
}

static void *no_memory(void *context, size_t size)
{
    int64_t *left = context;
    return (*left)-- > 0 ? malloc(size) : NULL;
}

static void give_back(void *context, void *memory, size_t size)
{
    (void)context, (void)size;
    free(memory);
}

// Whatever allocation fails, the answer is NULL or false, and nothing leaks
// (the sanitizers look).
static void running_out_of_memory_is_told(void)
{
    tell_ten_eleven_thirteen();
    bool through = false;
    for (int64_t room = 0; !through && room < 200; room++) {
        int64_t left = room;
        struct arena_source source = {&left, no_memory, give_back};
        const struct arena_source *before = arena_use(&source);
        heard = (struct heard){0};
        projector = projector_open(&test_ids, NULL, NULL, T0, &sink);
        through = projector && serve(0) && serve(0);
        projector_close(projector);
        arena_use(before);
    }
    CHECK(through);
}

static void a_snapshot_lives_as_long_as_it_is_kept(void)
{
    tell_eight();
    const struct snapshot *kept = project_run(&test_ids, NULL, history.events, 8);
    const struct snapshot *again = snapshot_keep(kept);
    snapshot_release(kept);
    CHECK_INT(snapshot_seq(again), 8);
    snapshot_release(again);
    snapshot_release(NULL);
    projector_close(NULL);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(incremental_is_full_at_every_cut_ES_1_5a_ES_1_5b_ES_1_2a),
        TEST(a_projection_makes_a_new_snapshot_ES_1_4c),
        TEST(non_contiguous_is_more_than_one_further_ES_1_5c),
        TEST(a_failed_fetch_is_tried_from_the_watermark_ES_1_5d_ES_1_0c),
        TEST(seen_again_and_out_of_order_ES_1_5_4_ES_1_5_1a),
        TEST(lag_classes_ES_1_5_5a),
        TEST(a_stall_of_six_seconds_is_told_ES_1_4e_ES_1_0e),
        TEST(an_old_log_is_no_lag_ES_1_4e),
        TEST(unknown_types_move_the_watermark_and_are_told_ES_1_5_6a_ES_1_5_6b_ES_1_5_6c),
        TEST(a_refused_transition_is_told_once_per_event_C_15),
        TEST(an_effect_before_its_cause_is_told_C_56),
        TEST(any_store_gives_the_same_in_the_end_F10_V1_C_14),
        TEST(running_out_of_memory_is_told),
        TEST(a_snapshot_lives_as_long_as_it_is_kept),
    };
    return test_main("view_project", tests, ARRAY_COUNT(tests), argc, argv);
}
