// Cron expressions, zones and what becomes of times, as tables.
#include "schedule/schedule.h"
#include "base/civil.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static const struct zone *zone_of(struct arena *arena, const char *file)
{
    const struct zone *zone;
    struct error err = {0};
    char path[128];
    snprintf(path, sizeof(path), "test/golden/zones/%s", file);
    CHECK_OK(zone_parse(str_from(file), test_read_file(path), arena, &zone, &err), &err);
    return zone;
}

static int64_t ms_of(const char *text)
{
    int64_t ms;
    CHECK(civil_parse(str_from(text), &ms));
    return ms;
}

static void expressions_that_mean_nothing_are_refused(void)
{
    static const struct {
        const char *text, *says;
    } table[] = {
        {"", "5 fields"},          {"* * * *", "5 fields"},     {"* * * * * * *", "5 fields"}, {"60 * * * *", "minute"},
        {"* 24 * * *", "hour"},    {"* * 0 * *", "day"},        {"* * 32 * *", "day"},         {"* * * 13 *", "month"},
        {"* * * FOO *", "month"},  {"* * * * 8", "weekday"},    {"* * * * MON#6", "1 to 5"},   {"5-1 * * * *", "ends before"},
        {"*/0 * * * *", "'/'"},    {"1,,2 * * * *", "missing"}, {"0 0 30 2 *", "no date"},     {"0 0 31 4,6,9,11 *", "no date"},
        {"@often", "none of"},     {"0 0 L-31 * *", "1 to 30"}, {"x * * * *", "no value"},     {"-1 * * * *", "missing"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct cron cron;
        struct error err = {0};
        if (cron_parse(str_from(table[i].text), &cron, &err) != E_INVALID || !strstr(err.message, table[i].says))
            test_fail(__FILE__, __LINE__, "\"%s\": %s", table[i].text, err.message);
    }
}

static void next_times(const char *expression, const char *from, const char *const *wanted)
{
    struct timing timing = {.kind = TIMING_CRON, .zone = zone_utc(), .gap = GAP_RUN, .fold = FOLD_ONCE};
    struct error err = {0};
    struct fire fire;
    char text[CIVIL_SIZE];
    int64_t at = ms_of(from);
    CHECK_OK(cron_parse(str_from(expression), &timing.cron, &err), &err);
    for (; *wanted; wanted++) {
        CHECK(timing_next(&timing, at, &fire));
        civil_format(at = fire.at_ms, text);
        text[19] = '\0';
        CHECK_TEXT(text, *wanted);
    }
}

static void special_days_are_found(void)
{
    next_times("0 12 L-2 * *", "2026-02-01T00:00:00Z", (const char *const[]){"2026-02-26T12:00:00", "2026-03-29T12:00:00", NULL});
    next_times("0 12 1W * *", "2026-07-31T13:00:00Z", (const char *const[]){"2026-08-03T12:00:00", "2026-09-01T12:00:00", NULL});
    next_times("0 0 * * friL", "2026-02-01T00:00:00Z", (const char *const[]){"2026-02-27T00:00:00", "2026-03-27T00:00:00", NULL});
    next_times("@weekly", "2026-02-11T00:00:00Z", (const char *const[]){"2026-02-15T00:00:00", NULL});
    next_times("30 0 0 29 2 *", "2026-01-01T00:00:00Z", (const char *const[]){"2028-02-29T00:00:30", "2032-02-29T00:00:30", NULL});
}

static void clocks_that_are_set_follow_the_policy(void)
{
    struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
    const struct zone *berlin = zone_of(&arena, "Europe-Berlin");
    static const struct {
        enum gap_policy gap;
        enum fold_policy fold;
        const char *spring, *autumn, *again;
        enum fire_mark spring_mark, autumn_mark;
    } table[] = {
        {GAP_RUN, FOLD_ONCE, "2026-03-29T01:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", FIRE_GAP, FIRE_FIRST},
        {GAP_SKIP, FOLD_TWICE, "2026-03-30T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", FIRE_PLAIN, FIRE_FIRST},
        {GAP_SKIP, FOLD_SKIP, "2026-03-30T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z", FIRE_PLAIN, FIRE_PLAIN},
    };
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct timing timing = {.kind = TIMING_CRON, .zone = berlin, .gap = table[i].gap, .fold = table[i].fold};
        struct fire fire;
        CHECK_OK(cron_parse(STR("30 2 * * *"), &timing.cron, &err), &err);
        CHECK(timing_next(&timing, ms_of("2026-03-28T12:00:00Z"), &fire));
        CHECK_INT(fire.at_ms, ms_of(table[i].spring));
        CHECK_INT(fire.mark, table[i].spring_mark);
        CHECK(timing_next(&timing, ms_of("2026-10-24T12:00:00Z"), &fire));
        CHECK_INT(fire.at_ms, ms_of(table[i].autumn));
        CHECK_INT(fire.mark, table[i].autumn_mark);
        CHECK(timing_next(&timing, fire.at_ms, &fire));
        CHECK_INT(fire.at_ms, ms_of(table[i].again));
    }
    int64_t ms;
    CHECK(zone_time(berlin, STR("2026-03-29T02:30:00"), &ms));
    CHECK_INT(ms, ms_of("2026-03-29T01:00:00Z")); // in the gap: what follows it
    CHECK(zone_time(berlin, STR("2026-10-25T02:30:00"), &ms));
    CHECK_INT(ms, ms_of("2026-10-25T00:30:00Z")); // the first
    CHECK(zone_time(berlin, STR("2040-07-01T12:00:00"), &ms));
    CHECK_INT(ms, ms_of("2040-07-01T10:00:00Z")); // by the rule at the end of the file
    arena_release(&arena);
}

// Its times are such that the clock leaves out or shows twice, all of them: looking for one of them has an end.
static void times_that_no_clock_shows_once_are_not_looked_for_for_ever(void)
{
    struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
    static const char *const never[] = {"30 2 * 3 7L", "30 2 * 10 7L", "0 30 2 * 3 7L"};
    struct timing timing = {
        .kind = TIMING_CRON, .zone = zone_of(&arena, "Europe-Berlin"), .gap = GAP_SKIP, .fold = FOLD_SKIP};
    struct error err = {0};
    struct fire fire;
    for (size_t i = 0; i < ARRAY_COUNT(never); i++) {
        CHECK_OK(cron_parse(str_from(never[i]), &timing.cron, &err), &err);
        CHECK(!timing_next(&timing, ms_of("2026-03-28T12:00:00Z"), &fire));
    }
    arena_release(&arena);
}

// Every cut and every changed byte of a file is refused or read as some zone; nothing else happens.
static void damaged_zones_do_no_harm(void)
{
    struct str whole = test_read_file("test/golden/zones/Europe-Berlin");
    for (size_t i = 0; i < whole.len; i++) {
        struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
        const struct zone *zone;
        struct error err = {0};
        CHECK(zone_parse(STR("cut"), str_slice(whole, 0, i), &arena, &zone, &err) == E_CORRUPT);
        char *copy = arena_alloc(&arena, whole.len);
        CHECK(copy);
        memcpy(copy, whole.ptr, whole.len);
        copy[i] = (char)(copy[i] ^ 0x55);
        err = (struct error){0};
        if (zone_parse(STR("changed"), (struct str){copy, whole.len}, &arena, &zone, &err) == OK) {
            struct zone_span span = zone_at(zone, 1770829200);
            CHECK(span.from <= 1770829200 && 1770829200 < span.to);
        }
        arena_release(&arena);
    }
}

static struct schedule_spec spec_of(struct arena *arena, const char *text)
{
    struct schedule_spec spec;
    struct json *value = ARENA_NEW(arena, struct json);
    struct error err = {0};
    CHECK_OK(json_parse(str_from(text), NULL, arena, value, &err), &err);
    CHECK_OK(schedule_spec_read(value, arena, &spec, &err), &err);
    return spec;
}

static void what_overlaps_is_decided(void)
{
    struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
    static const struct {
        const char *overlap;
        enum tick_kind kind;
        enum tick_reason reason;
    } table[] = {{"skip", TICK_SKIP, REASON_OVERLAP},
                 {"queue", TICK_QUEUE, REASON_NONE},
                 {"cancel", TICK_CANCEL, REASON_NONE},
                 {"allow", TICK_START, REASON_NONE}};
    int64_t now = ms_of("2026-02-11T12:00:30Z");
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        char text[128];
        snprintf(text, sizeof(text), "{\"cron\":\"* * * * *\",\"overlap\":\"%s\",\"queued\":1}", table[i].overlap);
        struct schedule_spec spec = spec_of(&arena, text);
        struct schedule_state state = {.decided_ms = ms_of("2026-02-11T11:59:30Z")};
        struct tick tick = schedule_decide(STR("s"), &spec, false, &state, now, 0);
        CHECK_INT(tick.kind, TICK_START); // nobody is in the way
        tick = schedule_decide(STR("s"), &spec, false, &state, now, 1);
        CHECK_INT(tick.kind, table[i].kind);
        CHECK_INT(tick.reason, table[i].reason);
        CHECK_INT(tick.at_ms, ms_of("2026-02-11T12:00:00Z"));
        schedule_apply(&state, &tick);
        CHECK_INT(state.decided_ms, tick.at_ms); // each time is decided once
        tick = schedule_decide(STR("s"), &spec, false, &state, now, 1);
        CHECK_INT(tick.kind, TICK_NONE);
        CHECK_INT(tick.due_ms, ms_of("2026-02-11T12:01:00Z"));
        if (state.waiting_count == 0) continue;
        tick = schedule_decide(STR("s"), &spec, false, &state, ms_of("2026-02-11T12:01:01Z"), 1);
        CHECK_INT(tick.kind == TICK_SKIP && tick.reason == REASON_FULL, spec.overlap == OVERLAP_QUEUE);
        tick = schedule_decide(STR("s"), &spec, false, &state, now, 0); // what waits begins
        CHECK(tick.kind == TICK_START && tick.waited);
        schedule_apply(&state, &tick);
        CHECK_INT(state.waiting_count, 0);
    }
    arena_release(&arena);
}

static void missed_times_run_late_or_are_told_together(void)
{
    struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
    struct schedule_spec spec = spec_of(&arena, "{\"cron\":\"* * * * *\",\"catchup\":\"5m\",\"overlap\":\"allow\"}");
    struct schedule_state state = {.decided_ms = ms_of("2026-02-11T10:00:00Z")};
    int64_t now = ms_of("2026-02-11T12:00:30Z");
    struct tick tick = schedule_decide(STR("s"), &spec, false, &state, now, 0);
    CHECK(tick.kind == TICK_SKIP && tick.reason == REASON_LATE);
    CHECK_INT(tick.at_ms, ms_of("2026-02-11T10:01:00Z"));
    CHECK_INT(tick.last_ms, ms_of("2026-02-11T11:55:00Z"));
    CHECK_INT(tick.count, 115);
    schedule_apply(&state, &tick);
    for (int minute = 56; minute <= 60; minute++) {
        tick = schedule_decide(STR("s"), &spec, false, &state, now, 0);
        CHECK_INT(tick.kind, TICK_START);
        CHECK_INT(tick.at_ms, ms_of("2026-02-11T11:00:00Z") + minute * INT64_C(60000));
        schedule_apply(&state, &tick);
    }
    CHECK_INT(schedule_decide(STR("s"), &spec, false, &state, now, 0).kind, TICK_NONE);
    tick = schedule_decide(STR("s"), &spec, true, &state, now + 120000, 0);
    CHECK(tick.kind == TICK_SKIP && tick.reason == REASON_PAUSED && tick.count == 2);
    arena_release(&arena);
}

static void jitter_is_the_same_every_time(void)
{
    int64_t at = ms_of("2026-02-11T12:00:00Z"), sum = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t one = schedule_jitter(STR("a"), at + i * INT64_C(60000), 30000);
        CHECK(one >= 0 && one < 30000);
        CHECK_INT(one, schedule_jitter(STR("a"), at + i * INT64_C(60000), 30000));
        sum += one;
    }
    CHECK(sum / 1000 > 14000 && sum / 1000 < 16000);
    CHECK(schedule_jitter(STR("a"), at, 30000) != schedule_jitter(STR("b"), at, 30000));
    CHECK_INT(schedule_jitter(STR("a"), at, 0), 0);
}

static void declarations_are_checked(void)
{
    static const struct {
        const char *text, *says;
    } table[] = {
        {"{}", "exactly one"},
        {"{\"cron\":\"@daily\",\"every\":\"1h\"}", "exactly one"},
        {"{\"cron\":\"61 * * * *\"}", "minute"},
        {"{\"every\":\"10ms\"}", "every"},
        {"{\"every\":\"1h\",\"offset\":\"2h\"}", "below every"},
        {"{\"at\":\"tomorrow\"}", "must be a time"},
        {"{\"cron\":\"@daily\",\"zone\":\"../etc/passwd\"}", "zone"},
        {"{\"cron\":\"@daily\",\"overlap\":\"maybe\"}", "overlap"},
        {"{\"cron\":\"@daily\",\"timezone\":\"UTC\"}", "timezone"},
        {"{\"cron\":\"@daily\",\"inputs\":{\"a\":\"${schedule.tiem}\"}}", "tiem"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
        struct schedule_spec spec;
        struct json value;
        struct error err = {0};
        CHECK_OK(json_parse(str_from(table[i].text), NULL, &arena, &value, &err), &err);
        if (schedule_spec_read(&value, &arena, &spec, &err) != E_INVALID || !strstr(err.message, table[i].says))
            test_fail(__FILE__, __LINE__, "%s: %s", table[i].text, err.message);
        arena_release(&arena);
    }
}

static void inputs_tell_the_time(void)
{
    struct arena arena = arena_of(16 * 1024, (size_t)1 << 20);
    struct schedule_facts facts = {.name = STR("nightly"),
                                   .kind = STR("fire"),
                                   .at_ms = ms_of("2026-07-01T22:30:00Z"),
                                   .zone = zone_of(&arena, "Europe-Berlin")};
    struct json value, made;
    struct error err = {0};
    struct buf text = buf_of(1024);
    struct str given = STR("{\"a\":[\"${schedule.date}|${schedule.local}\",7],"
                           "\"b\":\"${schedule.time}${schedule.previous} ${other}\"}");
    CHECK_OK(json_parse(given, NULL, &arena, &value, &err), &err);
    CHECK_OK(schedule_inputs(&value, &facts, &arena, &made, &err), &err);
    json_write(&text, &made);
    CHECK_TEXT(text.ptr, "{\"a\":[\"2026-07-02|2026-07-02T00:30:00+02:00\",7],\"b\":\"2026-07-01T22:30:00.000Z ${other}\"}");
    buf_release(&text);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(expressions_that_mean_nothing_are_refused),
        TEST(special_days_are_found),
        TEST(clocks_that_are_set_follow_the_policy),
        TEST(times_that_no_clock_shows_once_are_not_looked_for_for_ever),
        TEST(damaged_zones_do_no_harm),
        TEST(what_overlaps_is_decided),
        TEST(missed_times_run_late_or_are_told_together),
        TEST(jitter_is_the_same_every_time),
        TEST(declarations_are_checked),
        TEST(inputs_tell_the_time),
    };
    return test_main("schedule_rules", tests, ARRAY_COUNT(tests), argc, argv);
}
