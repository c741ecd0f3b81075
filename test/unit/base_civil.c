// Civil time and durations, as tables.
#include "base/civil.h"
#include "harness/test.h"

#include <inttypes.h>
#include <string.h>

static void formats(void)
{
    static const struct {
        int64_t ms;
        const char *want;
    } table[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868799999, "2000-02-29T23:59:59.999Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {1770829200000, "2026-02-11T17:00:00.000Z"},
        {4107542399000, "2100-02-28T23:59:59.000Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {-2208988800000, "1900-01-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "9999-12-31T23:59:59.999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
        {-62167219200000, "0000-01-01T00:00:00.000Z"},
        {-62167219200001, "0000-01-01T00:00:00.000Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        char text[CIVIL_SIZE];
        civil_format(table[i].ms, text);
        CHECK_TEXT(text, table[i].want);
    }
}

static void parses(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } table[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01 00:00:00Z", 0},
        {"1970-01-01T00:00:00+00:00", 0},
        {"1970-01-01T00:00:00-00:00", 0},
        {"1970-01-01T01:00:00+01:00", 0},
        {"1969-12-31T19:30:00-04:30", 0},
        {"1970-01-01T00:00:00.1Z", 100},
        {"1970-01-01T00:00:00.12Z", 120},
        {"1970-01-01T00:00:00.1239999999999999999999Z", 123},
        {"2026-02-11T17:00:00.000Z", 1770829200000},
        {"2026-02-11T18:00:00+01:00", 1770829200000},
        {"2000-02-29T00:00:00Z", 951782400000},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"2016-12-31T23:59:60.5Z", 1483228800500},
        {"2017-01-01T00:59:60+01:00", 1483228800000},
        {"0000-01-01T00:00:00Z", -62167219200000},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        int64_t ms = 0;
        CHECK(civil_parse(str_from(table[i].text), &ms));
        CHECK_INT(ms, table[i].want);
    }
}

static void refuses(void)
{
    static const char *const table[] = {
        "",
        "2026",
        "2026-02-11",
        "2026-02-11T17:00Z",
        "2026-02-11T17:00:00",
        "2026-02-11T17:00:00.Z",
        "2026-02-11T17:00:00,5Z",
        "2026-2-11T17:00:00Z",
        "26-02-11T17:00:00Z",
        "2026-00-11T17:00:00Z",
        "2026-13-11T17:00:00Z",
        "2026-02-00T17:00:00Z",
        "2026-02-29T17:00:00Z",
        "1900-02-29T17:00:00Z",
        "2026-04-31T17:00:00Z",
        "2026-02-11T24:00:00Z",
        "2026-02-11T17:60:00Z",
        "2026-02-11T17:00:61Z",
        "2026-02-11T17:00:60Z",
        "2016-12-31T23:59:60+01:00",
        "2026-02-11T17:00:00+1:00",
        "2026-02-11T17:00:00+24:00",
        "2026-02-11T17:00:00+01:60",
        "2026-02-11T17:00:00+0100",
        "2026-02-11T17:00:00ZZ",
        " 2026-02-11T17:00:00Z",
        "2026-02-11X17:00:00Z",
        "2026/02/11T17:00:00Z",
        "-026-02-11T17:00:00Z",
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        int64_t ms = 77;
        CHECK(!civil_parse(str_from(table[i]), &ms));
        CHECK_INT(ms, 77);
    }
    int64_t ms;
    CHECK(!civil_parse(STR("1970-01-01\0"
                           "00:00:00Z"),
                       &ms));
}

// Every day of eight centuries, by counting.
static void every_day_round_trips(void)
{
    int64_t day_ms = 86400000;
    for (int64_t day = -135140; day < 157000; day++) { // 1600 to 2399
        char text[CIVIL_SIZE];
        int64_t back;
        int64_t ms = day * day_ms + (day * 7919 % day_ms + day_ms) % day_ms;
        civil_format(ms, text);
        CHECK(civil_parse(str_from(text), &back));
        CHECK_INT(back, ms);
    }
}

static void durations_parse(void)
{
    static const struct {
        const char *text;
        int64_t want; // -1: refused
    } table[] = {
        {"0", 0},
        {"1500", 1500},
        {"5s", 5000},
        {"250ms", 250},
        {"1m30s", 90000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"1d2h3m4s5ms", 93784005},
        {"0.5s", 500},
        {"1.5h", 5400000},
        {"0.0005s", 0},
        {"0.9999ms", 0},
        {"1.2345678901234s", 1234},
        {"90m", 5400000},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775807ms", INT64_MAX},
        {"PT1H30M", 5400000},
        {"PT0.5S", 500},
        {"PT30S", 30000},
        {"P1D", 86400000},
        {"P1DT1S", 86401000},
        {"PT36H", 129600000},
        {"", -1},
        {"s", -1},
        {"1.5", -1},
        {"1.s", -1},
        {".5s", -1},
        {"-5s", -1},
        {"+5s", -1},
        {"5 s", -1},
        {"5s ", -1},
        {"5S", -1},
        {"5sec", -1},
        {"30s1m", -1},
        {"1s1s", -1},
        {"1m30", -1},
        {"9223372036854775808", -1},
        {"9223372036854775808ms", -1},
        {"106751991168d", -1},
        {"P", -1},
        {"PT", -1},
        {"P1H", -1},
        {"P1DT", -1},
        {"PT1M1H", -1},
        {"PT1D", -1},
        {"P1Y", -1},
        {"P1M", -1},
        {"PT5", -1},
        {"PT1H ", -1},
        {"pt1h", -1},
        {"PTT1H", -1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        int64_t ms = -1;
        bool ok = duration_parse(str_from(table[i].text), &ms);
        if (ok != (table[i].want >= 0) || ms != table[i].want)
            test_fail(__FILE__, __LINE__, "\"%s\" gives %" PRId64, table[i].text, ms);
    }
}

static void durations_format(void)
{
    static const struct {
        int64_t ms;
        const char *want;
    } table[] = {
        {0, "0ms"},
        {412, "412ms"},
        {999, "999ms"},
        {1000, "1.0s"},
        {3199, "3.1s"},
        {59999, "59.9s"},
        {60000, "1m00s"},
        {63000, "1m03s"},
        {3599999, "59m59s"},
        {3600000, "1h00m"},
        {7500000, "2h05m"},
        {86399999, "23h59m"},
        {86400000, "1d00h"},
        {93600000, "1d02h"},
        {-1500, "-1.5s"},
        {INT64_MAX, "106751991167d07h"},
        {INT64_MIN, "-106751991167d07h"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        char text[24];
        duration_format(table[i].ms, text);
        CHECK_TEXT(text, table[i].want);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(formats),         TEST(parses),           TEST(refuses), TEST(every_day_round_trips),
        TEST(durations_parse), TEST(durations_format),
    };
    return test_main("base_civil", tests, ARRAY_COUNT(tests), argc, argv);
}
