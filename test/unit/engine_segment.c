// A run of a profile that rotates goes on in a new segment where others fail (ES-6a, WE-2.1.2d, RE-5c, ADR 0035).
#include "support/engine_kit.h"

#include "archive/archive.h"
#include "engine/fork.h"
#include "view/view.h"

#include <unistd.h>

#define BESIDE "{\"stepId\":\"slow\",\"kind\":\"shell\",\"with\":{\"command\":\"sleep\"}},"

// A chain of noops: a start and an end each, behind the three events of the beginning.
static void open_chain(struct kit *k, const char *adapter, int steps, const char *beside, uint64_t events)
{
    struct buf text;
    buf_init(&text, 65536);
    buf_printf(&text,
               "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"targetAdapter\":\"%s\"},"
               "\"steps\":[%s",
               adapter, beside);
    for (int i = 0; i < steps; i++) {
        buf_printf(&text, "%s{\"stepId\":\"s%d\",\"kind\":\"noop\",\"dependsOn\":[", i ? "," : "", i);
        if (i > 0) buf_printf(&text, "\"s%d\"", i - 1);
        buf_text(&text, "]}");
    }
    buf_text(&text, "]}");
    buf_byte(&text, '\0');
    kit_open(k, text.ptr);
    buf_release(&text);
    k->limits.events_per_run_max = events;
    k->engine->options.limits = k->limits;
}

static uint32_t told_times(struct kit *k, const char *what)
{
    uint32_t count = 0;
    buf_byte(&k->told, '\0');
    for (const char *at = k->told.ptr; (at = strstr(at, what)); at++) count++;
    k->told.len--;
    return count;
}

static void is_intact(struct kit *k, const char *run)
{
    struct verify_report report = {0};
    struct replay_report replayed;
    struct error err = {0};
    struct run_head head = kit_head(k, run);
    CHECK_OK(store_verify(k->store, STR("default"), str_from(run), &k->memory, &report, &err), &err);
    CHECK_INT(report.fault_count, 0);
    CHECK_OK(archive_replay(k->store, &head, NULL, &replayed, &err), &err);
    if (replayed.differs) test_fail(__FILE__, __LINE__, "%s: replay differs at %llu", run, (unsigned long long)replayed.seq);
    CHECK(!replayed.state_differs);
}

// The events of the run are numbered without a gap, over all its segments.
static uint32_t last_execution(struct kit *k, const char *run)
{
    struct records records;
    struct error err = {0};
    struct record_range range = {.tenant = STR("default"), .run = str_from(run), .limit = 100000};
    CHECK_OK(store_read(k->store, &range, &k->memory, &records, &err), &err);
    for (size_t i = 0; i < records.count; i++) CHECK_INT(records.items[i].seq, i + 1);
    struct moment m;
    struct seal seal;
    CHECK_OK(contract_decode(VOCABULARY_RUN, records.items[records.count - 1].bytes, &k->memory, &m, &seal, NULL, &err), &err);
    return m.engine;
}

static struct run *fold_of(struct kit *k, const char *run)
{
    struct run_ids ids = kit_head(k, run).ids;
    struct run *folded;
    struct error err = {0};
    CHECK_OK(fold_stored(k->store, k->program, &ids, &folded, &err), &err);
    return folded;
}

static void a_run_that_fills_its_segment_goes_on_in_the_next_ES_6a_C_57_RE_5c(void)
{
    struct kit k;
    open_chain(&k, "temporal", 60, "", 20);
    kit_start(&k, "r1");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(kit_head(&k, "r1").last_seq, 3 + 2 * 60);
    uint32_t segments = told_times(&k, "SEGMENT_STARTED");
    CHECK(segments >= 4 && segments <= 6);
    CHECK_INT(told_times(&k, "SEGMENT_FULL"), segments);
    CHECK_INT(last_execution(&k, "r1"), segments + 1); // one logical run, in so many executions
    is_intact(&k, "r1");
    struct run *run = fold_of(&k, "r1");
    CHECK_INT(run->segment, segments + 1);
    CHECK(!run->rotating);
    run_free(run);
    kit_close(&k);
}

// The events of the longest segment, from what the engine told.
static uint32_t longest_segment(struct kit *k)
{
    uint32_t events = 0, longest = 0;
    buf_byte(&k->told, '\0');
    for (const char *line = k->told.ptr, *end; (end = strchr(line, '\n')); line = end + 1) {
        struct str text = {line, (size_t)(end - line)};
        if (str_find(text, 'r', 0) != 0) continue;
        bool mark = strstr(line, "SEGMENT_") && strstr(line, "SEGMENT_") < end;
        bool begins = mark && strstr(line, "SEGMENT_STARTED") && strstr(line, "SEGMENT_STARTED") < end;
        events = begins ? 0 : events + !mark;
        if (events > longest) longest = events;
    }
    k->told.len--;
    return longest;
}

// A history that passes its limit is ended by its host: the next segment begins before a turn like those before it might do so.
static void no_segment_holds_more_than_its_limit_ES_6a(void)
{
    struct kit k;
    open_chain(&k, "temporal", 200, BESIDE, 41); // which no turn of two events comes to
    kit_start(&k, "r1");
    kit_done(&k, "slow", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    uint32_t longest = longest_segment(&k);
    CHECK(longest <= 41 && longest >= 36);
    is_intact(&k, "r1");
    kit_close(&k);
}

// Results that wait while a segment is found to be full are of the next one: a hundred steps that end in one turn.
static void what_waits_when_a_segment_is_full_is_of_the_next_ES_6a(void)
{
    struct kit k;
    struct buf text;
    buf_init(&text, 65536);
    buf_text(&text, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\","
                    "\"targetAdapter\":\"temporal\"},\"steps\":[");
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "%s{\"stepId\":\"s%d\",\"kind\":\"noop\",\"dependsOn\":[]}", i ? "," : "", i);
    buf_text(&text, "]}");
    buf_byte(&text, '\0');
    kit_open(&k, text.ptr);
    buf_release(&text);
    k.limits.events_per_run_max = 102; // what its first turn comes to: queued, started, and each step
    k.engine->options.limits = k.limits;
    kit_start(&k, "r1");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(kit_head(&k, "r1").last_seq, 203);
    CHECK_INT(longest_segment(&k), 102);
    is_intact(&k, "r1");
    kit_close(&k);
}

static void the_bounds_of_other_profiles_are_limits_that_name_themselves_ES_6a(void)
{
    static const char *const adapters[] = {"conductor", "any"};
    for (size_t i = 0; i < ARRAY_COUNT(adapters); i++) {
        struct kit k;
        open_chain(&k, adapters[i], 60, "", 20);
        kit_start(&k, "r1");
        CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
        CHECK(strstr(kit_head(&k, "r1").summary.cause, "RUN_LIMIT_EXCEEDED"));
        CHECK(strstr(kit_head(&k, "r1").summary.cause, "limits.events"));
        CHECK_INT(told_times(&k, "SEGMENT_"), 0);
        kit_close(&k);
    }
}

static void bytes_fill_a_segment_too_and_segments_can_be_limited_ES_6a(void)
{
    struct kit k;
    open_chain(&k, "temporal", 60, "", 0);
    k.engine->options.limits.bytes_per_run_max = 16384;
    kit_start(&k, "r1");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK(told_times(&k, "SEGMENT_STARTED") >= 2);
    k.engine->options.limits.segment_events_max = 10; // before what holds for all
    k.engine->options.limits.events_per_run_max = 20;
    k.engine->options.limits.bytes_per_run_max = 0;
    k.engine->options.limits.segments_max = 3;
    buf_clear(&k.told);
    kit_start(&k, "r2");
    CHECK_INT(kit_head(&k, "r2").summary.status, RUN_STATUS_FAILED);
    CHECK(strstr(kit_head(&k, "r2").summary.cause, "limits.segments"));
    CHECK_INT(told_times(&k, "SEGMENT_STARTED"), 2);
    CHECK(kit_head(&k, "r2").last_seq >= 30 && kit_head(&k, "r2").last_seq < 60);
    kit_close(&k);
}

// Turn by turn, until the head says so.
static void until_full(struct kit *k, const char *run)
{
    kit_queue_start(k, run);
    for (int i = 0; i < 1000; i++) {
        kit_turn(k);
        if (strcmp(kit_head(k, run).summary.substatus, "CONTINUE_AS_NEW") == 0) return;
    }
    test_fail(__FILE__, __LINE__, "%s never says CONTINUE_AS_NEW", run);
}

static void between_two_segments_its_status_is_CONTINUE_AS_NEW_WE_2_1_2d(void)
{
    struct kit k;
    open_chain(&k, "temporal", 30, "", 20);
    until_full(&k, "r1");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_RUNNING);
    struct run *run = fold_of(&k, "r1");
    CHECK(run->rotating && run->segment == 1);
    CHECK_TEXT(run_substatus(run), "CONTINUE_AS_NEW");
    run_free(run);
    // The process dies here: who takes the run up begins the next segment, and nothing of it is done twice.
    kit_crash(&k);
    struct error err = {0};
    buf_clear(&k.told);
    CHECK_OK(engine_adopt(k.engine, STR("default"), STR("r1"), &err), &err);
    kit_idle(&k);
    CHECK(kit_told(&k, "r1 SEGMENT_STARTED"));
    CHECK_INT(told_times(&k, "SEGMENT_FULL"), told_times(&k, "SEGMENT_STARTED") - 1);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_TEXT(kit_head(&k, "r1").summary.substatus, "");
    CHECK_INT(kit_head(&k, "r1").last_seq, 3 + 2 * 30 + told_times(&k, "STEP_REDISPATCHED")); // of what died with it
    CHECK(told_times(&k, "STEP_REDISPATCHED") <= 1);
    is_intact(&k, "r1");
    kit_close(&k);
}

static void what_is_in_flight_crosses_into_the_next_segment_I14(void)
{
    struct kit k;
    open_chain(&k, "temporal", 30, BESIDE, 20);
    kit_start(&k, "r1");
    CHECK(told_times(&k, "SEGMENT_STARTED") >= 2);
    CHECK_INT(k.attempt_count, 1); // it was given to its tool once
    kit_done(&k, "slow", "ok");
    CHECK(kit_told(&k, "r1 STEP_COMPLETED slow 1.1"));
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    is_intact(&k, "r1");
    kit_close(&k);
}

static void signals_are_decided_while_a_segment_is_full_I25_K7(void)
{
    static const enum signal_type types[] = {SIGNAL_PAUSE, SIGNAL_CANCEL};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct kit k;
        open_chain(&k, "temporal", 30, "", 20);
        until_full(&k, "r1");
        char id[UUID_SIZE];
        struct signal signal = kit_make_signal(&k, types[i], "", id);
        kit_send(&k, "r1", &signal);
        kit_idle(&k);
        CHECK(k.decision.accepted);
        if (types[i] == SIGNAL_CANCEL) {
            CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
        } else {
            CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_PAUSED);
            kit_signal(&k, "r1", SIGNAL_RESUME, "");
            CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
            CHECK_INT(kit_head(&k, "r1").last_seq, 3 + 2 * 30 + 4);
        }
        is_intact(&k, "r1");
        kit_close(&k);
    }
}

// The whole of a rotated run is a past like any other; the new run counts its own segments.
static void a_fork_of_a_rotated_run_begins_at_any_event_F1(void)
{
    struct kit k;
    open_chain(&k, "temporal", 30, "", 20);
    kit_start(&k, "r1");
    struct fork_request request = {.tenant = STR("default"), .source = STR("r1"), .now_ms = k.now.wall_ms};
    struct fork *fork = NULL;
    struct error err = {0};
    char out[129];
    request.at = kit_head(&k, "r1").last_seq - 7; // in its last segment
    CHECK_OK(fork_open(k.store, &request, &fork, &err), &err);
    struct fork_start start = {.run = STR("f1"), .triggered_by = STR("ann"), .how = "fork"};
    struct run_ids ids = kit_head(&k, "r1").ids;
    struct str dir;
    ids.run = start.run;
    CHECK_OK(store_artifacts_dir(k.store, &ids, &k.memory, &dir), NULL);
    (void)rmdir(dir.ptr);
    CHECK_OK(engine_fork(k.engine, fork, &start, out, &err), &err);
    fork_close(fork);
    kit_idle(&k);
    CHECK_INT(kit_head(&k, "f1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(kit_head(&k, "f1").last_seq, 3 + 2 * 30);
    struct run *run = fold_of(&k, "f1");
    CHECK_INT(run->segment, 2); // all of that past is in its first one
    run_free(run);
    is_intact(&k, "f1");
    kit_close(&k);
}

static enum code add_to_view(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    (void)seal;
    return !moment || view_fold(context, moment, record->seq) ? OK : E_NOMEM;
}

static void a_snapshot_has_the_segment_and_where_it_began_WE_2_1_2d(void)
{
    struct kit k;
    struct run_view view;
    struct json json;
    struct error err = {0};
    open_chain(&k, "temporal", 30, "", 20);
    until_full(&k, "r1");
    struct run_ids ids = kit_head(&k, "r1").ids;
    CHECK(view_init(&view, &k.memory, &ids));
    CHECK_OK(store_replay(k.store, ids.tenant, ids.run, add_to_view, &view, &err), &err);
    CHECK(view_json(&view, &k.memory, &json));
    CHECK_STR(json_text(json_key(&json, "substatus")), STR("CONTINUE_AS_NEW"));
    CHECK_STR(json_text(json_key(&json, "message")), STR("segment 1 of its log is full: it goes on in the next"));
    CHECK(!json_key(&json, "segment"));
    uint64_t before = kit_head(&k, "r1").last_seq;
    kit_turn(&k);
    CHECK_OK(store_replay(k.store, ids.tenant, ids.run, add_to_view, &view, &err), &err);
    CHECK(view_json(&view, &k.memory, &json));
    CHECK(!json_key(&json, "substatus"));
    CHECK_INT(json_integer(json_at(&json, STR("segment.number")), 0), 2);
    int64_t after = json_integer(json_at(&json, STR("segment.afterSeq")), 0);
    CHECK(after >= (int64_t)before && after <= (int64_t)kit_head(&k, "r1").last_seq);
    kit_idle(&k);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_run_that_fills_its_segment_goes_on_in_the_next_ES_6a_C_57_RE_5c),
        TEST(no_segment_holds_more_than_its_limit_ES_6a),
        TEST(what_waits_when_a_segment_is_full_is_of_the_next_ES_6a),
        TEST(the_bounds_of_other_profiles_are_limits_that_name_themselves_ES_6a),
        TEST(bytes_fill_a_segment_too_and_segments_can_be_limited_ES_6a),
        TEST(between_two_segments_its_status_is_CONTINUE_AS_NEW_WE_2_1_2d),
        TEST(what_is_in_flight_crosses_into_the_next_segment_I14),
        TEST(signals_are_decided_while_a_segment_is_full_I25_K7),
        TEST(a_fork_of_a_rotated_run_begins_at_any_event_F1),
        TEST(a_snapshot_has_the_segment_and_where_it_began_WE_2_1_2d),
    };
    return test_main("engine_segment", tests, ARRAY_COUNT(tests), argc, argv);
}
