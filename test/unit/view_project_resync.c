// The projector when numbers are missing or come late: it stops, reads again, and has what a reading of everything has.
#include "unit/support/project_kit.h"

static void ten_eleven_thirteen_ES_1_5d_ES_1_1h_ES_1_1i_ES_1_1j_C_14(void)
{
    tell_ten_eleven_thirteen();
    const struct snapshot *nine = project_run(&test_ids, NULL, history.events, 9);
    open_at(nine);
    snapshot_release(nine);
    check_request(PROJECT_FETCH, 9);
    CHECK(serve(0));
    // 10 and 11 were applied; 13 was not; the run is STALE and one resync is
    // asked for
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 11);
    CHECK(is_stale());
    CHECK_INT(reports(PROJECT_GAP), 1);
    CHECK_INT(heard.items[0].seq, 11);
    CHECK_INT(heard.items[0].until, 13);
    check_request(PROJECT_FROM_SNAPSHOT, 11);
    CHECK(serve(0));
    // nothing was inside: the gap is accepted, the watermark is the highest
    // number, STALE is over
    CHECK(!is_stale());
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 13);
    CHECK_TEXT(run_status_name(snapshot_view(projector_snapshot(projector))->status), "COMPLETED");
    CHECK_INT(reports(PROJECT_GAP_CLOSED), 1);
    check_request(PROJECT_FETCH, 13);
    CHECK_INT(heard.published, 2);
    CHECK(heard.stale[0] && !heard.stale[1]);
    CHECK(serve(0)); // and nothing more is told
    CHECK_INT(heard.count, 2);
    const struct snapshot *full = project_run(&test_ids, NULL, history.events, history.count);
    check_same(projector_snapshot(projector), full);
    snapshot_release(full);
    projector_close(projector);
}

static void stale_is_told_by_the_snapshot_ES_1_1h(void)
{
    struct arena arena;
    struct json json;
    tell_ten_eleven_thirteen();
    open_at(NULL);
    CHECK(serve(0));
    arena_init(&arena, 4096, 1 << 20);
    CHECK(view_json(snapshot_view(projector_snapshot(projector)), &arena, &json));
    CHECK(json_key(&json, "stale")->boolean);
    CHECK(!json_key(&json, "inconsistent")->boolean); // ES-1.0b
    arena_release(&arena);
    projector_close(projector);
}

static void projection_stops_until_the_resync_is_through_ES_1_5_1c(void)
{
    tell_ten_eleven_thirteen();
    open_at(NULL);
    CHECK(serve(0));
    CHECK(is_stale());
    struct project_event *more = add(14, MOMENT_UNKNOWN, "");
    CHECK(projector_fetched(projector, more, 1, T0 + 200)); // pushed meanwhile
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 11);
    // an answer that does not reach past the gap is no answer
    CHECK(projector_resynced(projector, NULL, 0, false, T0 + 300));
    CHECK(is_stale());
    CHECK_INT(projector_next(projector).want, PROJECT_FROM_SNAPSHOT);
    CHECK(projector_next(projector).not_before_ms > T0 + 300);
    CHECK(serve(0));
    CHECK(!is_stale());
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 14);
    CHECK_INT(reports(PROJECT_GAP), 1);
    projector_close(projector);
}

static void an_event_in_the_gap_was_only_slow_ES_1_0d_ES_1_5_1b(void)
{
    tell_ten_eleven_thirteen();
    history.events[11].seq = 12; // there it is
    add(13, MOMENT_UNKNOWN, "");
    open_at(NULL);
    CHECK(serve(12));
    CHECK(is_stale());
    CHECK(strstr(heard.texts[0], "lags") && strstr(heard.texts[0], "nothing is lost"));
    CHECK(serve(0));
    CHECK(!is_stale() && !snapshot_view(projector_snapshot(projector))->inconsistent);
    CHECK_TEXT(run_status_name(snapshot_view(projector_snapshot(projector))->status), "COMPLETED");
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 13);
    projector_close(projector);
}

static void a_late_number_rebuilds_everything_C_13_C_14(void)
{
    tell_ten_eleven_thirteen();
    open_at(NULL);
    CHECK(serve(0) && serve(0)); // 12 is accepted as missing
    struct project_event late = *add(12, MOMENT_UNKNOWN, "");
    CHECK(projector_fetched(projector, &late, 1, T0 + 400));
    CHECK_INT(reports(PROJECT_REBUILD), 1);
    CHECK(is_stale());
    check_request(PROJECT_FULL, 0);
    // the store sorts by number
    struct project_event twelve = history.events[12];
    history.events[12] = history.events[11];
    history.events[11] = twelve;
    size_t half = 6;
    CHECK(projector_resynced(projector, history.events, half, true, T0 + 500));
    check_request(PROJECT_FULL, half);
    CHECK(is_stale()); // readers keep the old one until the new one is whole
    CHECK(projector_resynced(projector, history.events + half, history.count - half, false, T0 + 600));
    CHECK(!is_stale());
    CHECK_INT(reports(PROJECT_GAP), 1);                      // of the first time
    CHECK(projector_fetched(projector, &late, 1, T0 + 700)); // seen before: nothing
    check_request(PROJECT_FETCH, 13);
    projector_close(projector);
}

// The projector has what a projection of the whole history has, and asks for nothing more.
static void check_whole(void)
{
    const struct snapshot *full = project_run(&test_ids, NULL, history.events, history.count);
    CHECK(!is_stale());
    check_same(projector_snapshot(projector), full);
    check_request(PROJECT_FETCH, snapshot_seq(full));
    snapshot_release(full);
    projector_close(projector);
}

// 12 is accepted as missing, and can come late.
static void open_without_twelve(void)
{
    tell_ten_eleven_thirteen();
    struct project_event thirteen = history.events[--history.count];
    add(12, MOMENT_STEP_STARTED, "d");
    history.events[history.count++] = thirteen;
    open_at(NULL);
    CHECK(serve(12) && serve(12));
}

static void a_number_that_the_reading_is_past_begins_it_anew_C_13_C_14(void)
{
    open_without_twelve();
    CHECK(projector_fetched(projector, &history.events[11], 1, T0 + 200)); // and comes late
    check_request(PROJECT_FULL, 0);
    CHECK(projector_resynced(projector, history.events + 1, 5, true, T0 + 300)); // now 1 is missing
    check_request(PROJECT_FULL, 6);
    CHECK(projector_fetched(projector, &history.events[7], 1, T0 + 350)); // 8 is still to be read
    check_request(PROJECT_FULL, 6);
    CHECK(projector_fetched(projector, history.events, 1, T0 + 400)); // 1 is not
    CHECK(is_stale());
    check_request(PROJECT_FULL, 0);
    CHECK(projector_fetched(projector, history.events, 1, T0 + 450)); // it will be read
    CHECK_INT(reports(PROJECT_REBUILD), 2);
    CHECK(serve(0));
    check_whole();
}

static void a_number_before_the_snapshot_of_a_resync_makes_it_full_C_13_C_14(void)
{
    open_without_twelve();
    add(15, MOMENT_UNKNOWN, "");
    CHECK(serve(12));
    check_request(PROJECT_FROM_SNAPSHOT, 13);
    CHECK(projector_fetched(projector, &history.events[11], 1, T0 + 200)); // 12 after all
    check_request(PROJECT_FULL, 0);
    CHECK(projector_resynced(projector, history.events, 13, false, T0 + 300)); // ends before 15
    CHECK(is_stale());
    CHECK(serve(0));
    CHECK_INT(last_report(PROJECT_GAP_CLOSED)->seq, 13); // the gap that the resync was for
    CHECK_INT(last_report(PROJECT_GAP_CLOSED)->until, 15);
    check_whole();
}

static void a_gap_is_told_once_ES_1_5_5b_C_56(void)
{
    tell_eight();
    add(20, MOMENT_UNKNOWN, "");
    open_at(NULL);
    CHECK(serve(0) && serve(0));
    CHECK_INT(reports(PROJECT_GAP), 1);
    struct project_event piece = *add(15, MOMENT_UNKNOWN, "");
    CHECK(projector_fetched(projector, &piece, 1, T0));
    struct project_event swap = history.events[9];
    history.events[9] = history.events[8];
    history.events[8] = swap;
    CHECK(serve(0));
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 20);
    CHECK_INT(reports(PROJECT_GAP),
              1); // 8..15 and 15..20 are pieces of what was told
    add(22, MOMENT_UNKNOWN, "");
    CHECK(serve(0) && serve(0));
    CHECK_INT(reports(PROJECT_GAP), 2);
    CHECK_INT(last_report(PROJECT_GAP)->seq, 20);
    projector_close(projector);
}

static void without_a_snapshot_the_resync_is_full_C_13(void)
{
    begin();
    add(3, MOMENT_RUN_STARTED, "");
    open_at(NULL);
    CHECK(serve(0));
    check_request(PROJECT_FULL, 0);
    CHECK(is_stale());
    CHECK(serve(0));
    CHECK(!is_stale());
    CHECK_INT(snapshot_seq(projector_snapshot(projector)), 3);
    projector_close(projector);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(ten_eleven_thirteen_ES_1_5d_ES_1_1h_ES_1_1i_ES_1_1j_C_14),
        TEST(stale_is_told_by_the_snapshot_ES_1_1h),
        TEST(projection_stops_until_the_resync_is_through_ES_1_5_1c),
        TEST(an_event_in_the_gap_was_only_slow_ES_1_0d_ES_1_5_1b),
        TEST(a_late_number_rebuilds_everything_C_13_C_14),
        TEST(a_number_that_the_reading_is_past_begins_it_anew_C_13_C_14),
        TEST(a_number_before_the_snapshot_of_a_resync_makes_it_full_C_13_C_14),
        TEST(a_gap_is_told_once_ES_1_5_5b_C_56),
        TEST(without_a_snapshot_the_resync_is_full_C_13),
    };
    return test_main("view_project_resync", tests, ARRAY_COUNT(tests), argc, argv);
}
