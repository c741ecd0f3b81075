// All runs followed through the feed: runs that come and go, numbers that are missing, reads that fail, pages that are late.
#include "support/engine_kit.h"

#include "view/alerts.h"

#define NODES                                                                                                          \
    "name: n\n"                                                                                                        \
    "description: d\n"                                                                                                 \
    "nodes:\n"                                                                                                         \
    "  - id: a\n    bash: do a\n"                                                                                      \
    "  - id: b\n    bash: do b\n    depends_on: [a]\n"

// ---- a store that hides, repeats and breaks

static struct {
    const struct store_ops *real;
    uint64_t hidden_in_feed, hidden_in_log; // numbers of run r1; 0 = none
    uint64_t twin, of;                      // event `twin` of run r1 has the bytes of event `of`; 0 = an unknown type
    int failing;                            // readings that fail
    size_t readings;
} veil;

static enum code disguise(struct store *store, struct record *record, struct arena *arena, struct error *err)
{
    struct records records;
    if (!veil.twin || record->seq != veil.twin) return OK;
    if (veil.of > 0) {
        struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .after = veil.of - 1, .limit = 1};
        enum code rc = veil.real->log.read(store, &range, arena, &records, err);
        if (!rc) record->bytes = records.items[0].bytes;
        return rc;
    }
    static const char before[] = "\"eventType\":\"";
    char *bytes = arena_alloc(arena, record->bytes.len + 1);
    CHECK(bytes);
    memcpy(bytes, record->bytes.ptr, record->bytes.len);
    bytes[record->bytes.len] = '\0';
    char *type = strstr(bytes, before);
    CHECK(type);
    type[sizeof(before) - 1] = 'X';
    record->bytes.ptr = bytes;
    record->type = STR("X");
    return OK;
}

static enum code veil_read(struct store *store, const struct record_range *range, struct arena *arena,
                           struct records *out, struct error *err)
{
    if (range->ledger) return veil.real->log.read(store, range, arena, out, err);
    veil.readings++;
    if (veil.failing > 0 && str_is(range->run, "r1")) {
        veil.failing--;
        return error_set(err, E_IO, "the disk says no");
    }
    enum code rc = veil.real->log.read(store, range, arena, out, err);
    bool mine = str_is(range->run, "r1");
    size_t kept = 0;
    for (size_t i = 0; !rc && i < out->count; i++) {
        if (mine && out->items[i].seq == veil.hidden_in_log) continue;
        out->items[kept] = out->items[i];
        if (mine) rc = disguise(store, &out->items[kept], arena, err);
        kept++;
    }
    if (!rc) out->count = kept;
    return rc;
}

static enum code veil_feed(struct store *store, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                           struct error *err)
{
    enum code rc = veil.real->feed.read(store, after, limit, arena, out, err);
    size_t kept = 0;
    if (!rc && out->count > 0 && out->next < out->items[out->count - 1].position)
        out->next = out->items[out->count - 1].position;
    for (size_t i = 0; !rc && i < out->count; i++) {
        bool mine = str_is(out->items[i].run, "r1");
        if (mine && out->items[i].record.seq == veil.hidden_in_feed) continue;
        out->items[kept] = out->items[i];
        if (mine) rc = disguise(store, &out->items[kept].record, arena, err);
        kept++;
    }
    if (!rc) out->count = kept;
    return rc;
}

static void veil_put(struct kit *k)
{
    memset(&veil, 0, sizeof(veil));
    veil.real = k->real_ops;
    k->ops.log.read = veil_read;
    k->ops.feed.read = veil_feed;
}

static void veil_lift(struct kit *k)
{
    k->ops.log.read = veil.real->log.read;
    k->ops.feed.read = veil.real->feed.read;
}

static void finish(struct kit *k)
{
    kit_done(k, "a", "one");
    kit_done(k, "b", "two");
}

// ---- tests

static void runs_that_do_not_fit_are_read_again_ES_1_5_4_ES_1_5b(void)
{
    static const char *const texts[] = {LINEAR, NODES};
    for (size_t t = 0; t < ARRAY_COUNT(texts); t++) {
        struct kit k;
        struct following following;
        char run[12][24];
        kit_open(&k, texts[t]);
        struct follower *follower = following_open(&following, 2, 3, k.now.wall_ms);
        veil_put(&k);
        for (size_t i = 0; i < ARRAY_COUNT(run); i++) {
            snprintf(run[i], sizeof(run[i]), "r%zu", i);
            kit_start(&k, run[i]);
            if (i == 3) kit_signal(&k, "r1", SIGNAL_PAUSE, "");
            following_round(follower, k.store, k.now.wall_ms);
        }
        kit_signal(&k, "r1", SIGNAL_RESUME, "");
        for (size_t i = 0; i < ARRAY_COUNT(run); i++) {
            kit_done(&k, "a", "one");
            following_round(follower, k.store, k.now.wall_ms);
        }
        CHECK(veil.readings > 0);
        CHECK(follower_state(follower).runs <= 3);
        for (size_t i = 0; i < ARRAY_COUNT(run); i++) kit_done(&k, "b", "two");
        following_round(follower, k.store, k.now.wall_ms);
        CHECK_TEXT(following.told, "");
        CHECK_INT(follower_state(follower).waiting, 0);
        for (size_t i = 0; i < ARRAY_COUNT(run); i++) {
            struct run_head head = kit_head(&k, run[i]);
            CHECK(head.terminal);
            following_check(&following, k.store, &head);
        }
        following_close(&following, follower);
        veil_lift(&k);
        kit_close(&k);
    }
}

static void a_restart_goes_on_where_it_was_ES_1_5_4(void)
{
    struct kit k;
    struct following following;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    struct follower *follower = following_open(&following, 0, 0, k.now.wall_ms);
    following_round(follower, k.store, k.now.wall_ms);
    struct follower_options options = {.position = follower_state(follower).position,
                                       .sink = {&following, following_publish, following_report}};
    CHECK(options.position > 0);
    CHECK_INT(follower_state(follower).events, kit_head(&k, "r1").last_seq);
    follower_close(follower);
    finish(&k);
    follower = follower_open(&options, k.now.wall_ms);
    CHECK(follower);
    following_round(follower, k.store, k.now.wall_ms);
    struct run_head head = kit_head(&k, "r1");
    following_check(&following, k.store, &head);
    CHECK_TEXT(following.told, "");
    following_close(&following, follower);
    kit_close(&k);
}

// The page has no event 3, but the log has: it is read again, and nothing was lost.
static void a_gap_in_the_feed_is_read_again_ES_1_5_1b_ES_1_5_1c_C_13(void)
{
    struct kit k;
    struct following following;
    kit_open(&k, LINEAR);
    veil_put(&k);
    veil.hidden_in_feed = 3;
    struct follower *follower = following_open(&following, 0, 0, k.now.wall_ms);
    kit_start(&k, "r1");
    finish(&k);
    following_round(follower, k.store, k.now.wall_ms);
    CHECK_TEXT(following.told, "GAP GAP_CLOSED ");
    struct run_head head = kit_head(&k, "r1");
    following_check(&following, k.store, &head);
    CHECK_INT(follower_state(follower).stale, 0);
    following_close(&following, follower);
    veil_lift(&k);
    kit_close(&k);
}

// Neither has the log: the numbers are missing for good, which is one alert that closes by itself (C-14).
static void a_gap_in_the_log_is_taken_once_ES_1_1j_ES_1_5_5b_C_14(void)
{
    for (uint64_t seq = 1; seq <= 4; seq++) {
        struct kit k;
        struct following following;
        kit_open(&k, LINEAR);
        veil_put(&k);
        veil.hidden_in_feed = veil.hidden_in_log = seq;
        struct follower *follower = following_open(&following, 0, 0, k.now.wall_ms);
        kit_start(&k, "r1");
        kit_done(&k, "a", "one");
        following_round(follower, k.store, k.now.wall_ms);
        CHECK(strncmp(following.told, "GAP ", 4) == 0);
        CHECK(strstr(following.told, "GAP_CLOSED "));
        following.told[0] = '\0';
        kit_done(&k, "b", "two");
        following_round(follower, k.store, k.now.wall_ms);
        CHECK(!strstr(following.told, "GAP"));
        const struct run_view *view = snapshot_view(following.latest[0]);
        CHECK(!view->stale);
        CHECK_INT(view->last_seq, kit_head(&k, "r1").last_seq);
        following_close(&following, follower);
        veil_lift(&k);
        kit_close(&k);
    }
}

static enum code pass(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    (void)context, (void)record, (void)moment, (void)seal;
    return OK;
}

// A number that a feed skips says nothing about the store. One that the log lacks, and whose hash the next record holds, was there.
static void only_the_log_proves_a_loss_ES_1_0b_ES_1_1b(void)
{
    struct kit k;
    struct following following;
    struct error err = {0};
    kit_open(&k, LINEAR);
    veil_put(&k);
    veil.hidden_in_feed = 4;
    struct follower *follower = following_open(&following, 0, 0, k.now.wall_ms);
    kit_start(&k, "r1");
    kit_done(&k, "a", "one");
    following_round(follower, k.store, k.now.wall_ms);
    CHECK(strncmp(following.told, "GAP ", 4) == 0);
    CHECK_OK(store_replay(k.store, STR("default"), STR("r1"), pass, NULL, &err), &err);
    veil.hidden_in_log = 4;
    CHECK_INT(store_replay(k.store, STR("default"), STR("r1"), pass, NULL, &err), E_CORRUPT);
    CHECK(strstr(err.message, "event 4 is missing"));
    following_close(&following, follower);
    veil_lift(&k);
    kit_close(&k);
}

// What the state machine does not allow, a result without a start and a type that nobody knows: told by event, and passed.
static void wrong_events_are_told_and_passed_C_15_ES_1_5_6a(void)
{
    static const struct {
        uint64_t twin, of;
        const char *told;
    } cases[] = {{2, 7, "INVALID INVALID INVALID INVALID INVALID INVALID "},
                 {3, 6, "CAUSAL CAUSAL "},
                 {3, 0, "UNKNOWN_TYPE CAUSAL "}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct kit k;
        struct following following;
        kit_open(&k, LINEAR);
        struct follower *follower = following_open(&following, 0, 0, k.now.wall_ms);
        kit_start(&k, "r1");
        finish(&k);
        uint64_t last = kit_head(&k, "r1").last_seq;
        CHECK_INT(last, 7);
        veil_put(&k);
        veil.twin = cases[i].twin;
        veil.of = cases[i].of;
        following_round(follower, k.store, k.now.wall_ms);
        CHECK_TEXT(following.told, cases[i].told);
        CHECK_INT(snapshot_seq(following.latest[0]), last);
        following_close(&following, follower);
        veil_lift(&k);
        kit_close(&k);
    }
}

static void failed_readings_are_tried_again_and_hold_up_nobody_ES_1_5d(void)
{
    struct kit k;
    struct following following;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_done(&k, "a", "one");
    struct error err = {0};
    uint64_t end;
    CHECK_OK(store_feed_end(k.store, &end, &err), &err);
    veil_put(&k);
    struct follower_options options = {.position = end, .sink = {&following, following_publish, following_report}};
    memset(&following, 0, sizeof(following));
    struct follower *follower = follower_open(&options, k.now.wall_ms);
    CHECK(follower);
    kit_start(&k, "r2");
    following_round(follower, k.store, k.now.wall_ms);
    veil.failing = 3;
    kit_done(&k, "b", "two"); // r1 must be read from its first event, which fails
    kit_done(&k, "a", "one"); // of r2
    following_round(follower, k.store, k.now.wall_ms);
    CHECK_TEXT(following.told, "FAILED ");
    CHECK_INT(follower_state(follower).stale, 1);
    struct run_head head = kit_head(&k, "r2");
    following_check(&following, k.store, &head);
    following_round(follower, k.store, k.now.wall_ms + 50); // too early
    CHECK_INT(veil.failing, 2);
    following_round(follower, k.store, k.now.wall_ms + 100);
    following_round(follower, k.store, k.now.wall_ms + 5100);
    CHECK_INT(veil.failing, 0);
    CHECK_TEXT(following.told, "FAILED FAILED FAILED LAG_HIGH "); // of this run alone
    following_round(follower, k.store, k.now.wall_ms + 10000);
    CHECK_TEXT(following.told, "FAILED FAILED FAILED LAG_HIGH LAG_NORMAL ");
    head = kit_head(&k, "r1");
    following_check(&following, k.store, &head);
    CHECK_INT(follower_state(follower).stale, 0);
    following_close(&following, follower);
    veil_lift(&k);
    kit_close(&k);
}

// However many runs wait in late pages: one report for the tenant, and one when there is nothing left.
static void late_pages_are_one_alert_for_their_tenant_ES_1_5_5a(void)
{
    struct kit k;
    struct following following;
    struct error err = {0};
    bool more;
    kit_open(&k, LINEAR);
    struct follower *follower = following_open(&following, 2, 0, k.now.wall_ms);
    for (int i = 0; i < 5; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        kit_start(&k, run);
    }
    CHECK_OK(follower_round(follower, k.store, k.now.wall_ms + 5000, &more, &err), &err);
    CHECK_TEXT(following.told, "");
    CHECK(more);
    CHECK(follower_state(follower).waiting > 0);
    CHECK_OK(follower_round(follower, k.store, k.now.wall_ms + 5001, &more, &err), &err);
    CHECK_TEXT(following.told, "LAG_HIGH ");
    following_round(follower, k.store, k.now.wall_ms + 5002);
    CHECK_TEXT(following.told, "LAG_HIGH LAG_NORMAL ");
    CHECK_INT(follower_state(follower).waiting, 0);
    following_close(&following, follower);
    kit_close(&k);
}

static void removed_runs_are_passed_by(void)
{
    struct kit k;
    struct following following;
    struct error err = {0};
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    finish(&k);
    kit_start(&k, "r2");
    struct follower *follower = following_open(&following, 0, 0, k.now.wall_ms);
    struct run_name name = {STR("default"), STR("r1")};
    CHECK_OK(store_remove(k.store, &name, 1, k.now.wall_ms, STR("old"), &err), &err);
    following_round(follower, k.store, k.now.wall_ms);
    CHECK_TEXT(following.told, "");
    CHECK_INT(follower_state(follower).runs, 1);
    following_close(&following, follower);
    kit_close(&k);
}

static bool stop_now(void *context)
{
    (void)context;
    return true;
}

static void a_long_reading_can_be_stopped(void)
{
    struct kit k;
    struct following following = {0};
    struct error err = {0};
    uint64_t end;
    bool more;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    CHECK_OK(store_feed_end(k.store, &end, &err), &err);
    struct follower_options options = {
        .position = end, .sink = {&following, following_publish, following_report}, .stopped = stop_now};
    struct follower *follower = follower_open(&options, k.now.wall_ms);
    CHECK(follower);
    kit_done(&k, "a", "one");
    CHECK_INT(follower_round(follower, k.store, k.now.wall_ms, &more, &err), E_CANCELLED);
    CHECK_INT(follower_state(follower).position, end);
    following_close(&following, follower);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(runs_that_do_not_fit_are_read_again_ES_1_5_4_ES_1_5b),
        TEST(a_restart_goes_on_where_it_was_ES_1_5_4),
        TEST(a_gap_in_the_feed_is_read_again_ES_1_5_1b_ES_1_5_1c_C_13),
        TEST(a_gap_in_the_log_is_taken_once_ES_1_1j_ES_1_5_5b_C_14),
        TEST(only_the_log_proves_a_loss_ES_1_0b_ES_1_1b),
        TEST(wrong_events_are_told_and_passed_C_15_ES_1_5_6a),
        TEST(failed_readings_are_tried_again_and_hold_up_nobody_ES_1_5d),
        TEST(late_pages_are_one_alert_for_their_tenant_ES_1_5_5a),
        TEST(removed_runs_are_passed_by),
        TEST(a_long_reading_can_be_stopped),
    };
    return test_main("reading_follow", tests, ARRAY_COUNT(tests), argc, argv);
}
