// Twenty years of fires in five zones, and 500 random expressions, held against another implementation: the table was made by
// test/schedule/vectors.py from cronsim and zoneinfo (make schedule-vectors makes it again).
#include "schedule/schedule.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ZONES_MAX = 8 };
static struct {
    struct str name;
    const struct zone *zone;
} known[ZONES_MAX];

static const struct zone *zone_named(struct arena *arena, struct str name)
{
    struct error err = {0};
    char path[128];
    size_t i = 0;
    for (; known[i].zone; i++)
        if (str_eq(known[i].name, name)) return known[i].zone;
    snprintf(path, sizeof(path), "test/golden/zones/%.*s", STR_ARG(name));
    for (char *c = path + strlen("test/golden/zones/"); *c; c++)
        if (*c == '/') *c = '-';
    CHECK(i + 1 < ZONES_MAX);
    known[i].name = name;
    CHECK_OK(zone_parse(name, test_read_file(path), arena, &known[i].zone, &err), &err);
    return known[i].zone;
}

static struct str column(struct str *line)
{
    return str_cut(*line, '|', line);
}

static int64_t number(struct str *line)
{
    int64_t n;
    struct str text = column(line);
    CHECK(str_int64(text, &n));
    return n;
}

static size_t wrong;

static void check_row(struct arena *arena, struct str line)
{
    struct str name = column(&line), expression = column(&line), gap = column(&line), fold = column(&line);
    struct timing timing = {.kind = TIMING_CRON, .zone = zone_named(arena, name)};
    struct error err = {0};
    struct fire fire;
    struct buf times = buf_of((size_t)64 << 20);
    char hex[SHA256_HEX + 1];
    timing.gap = str_is(gap, "run") ? GAP_RUN : GAP_SKIP;
    timing.fold = str_is(fold, "once") ? FOLD_ONCE : str_is(fold, "twice") ? FOLD_TWICE : FOLD_SKIP;
    CHECK_OK(cron_parse(expression, &timing.cron, &err), &err);
    int64_t at = number(&line) * 1000, limit, count;
    timing.until_ms = number(&line) * 1000;
    limit = number(&line);
    count = number(&line);
    int64_t found = 0;
    for (; found < limit && timing_next(&timing, at, &fire); found++) {
        at = fire.at_ms;
        buf_int(&times, at / 1000);
        buf_byte(&times, '\n');
    }
    CHECK(buf_ok(&times));
    struct digest digest = sha256(buf_str(&times));
    digest_hex(&digest, hex);
    if (found != count || !str_starts(str_from(hex), line) || line.len != 16) {
        const char *keep = getenv("SCHEDULE_TIMES");
        if (keep) test_write_file(keep, buf_str(&times));
        wrong++;
        fprintf(stderr, "%.*s in %.*s (%.*s, %.*s): %lld times, %lld in the table\n", STR_ARG(expression), STR_ARG(name),
                STR_ARG(gap), STR_ARG(fold), (long long)found, (long long)count);
    }
    buf_release(&times);
}

static void fires_of_twenty_years_are_those_of_cronsim(void)
{
    struct arena arena = arena_of(64 * 1024, (size_t)64 << 20);
    struct str text = test_read_file("test/golden/schedule-vectors.txt");
    size_t rows = 0;
    while (text.len > 0) {
        struct str line = str_cut(text, '\n', &text);
        check_row(&arena, line);
        rows++;
    }
    CHECK(rows > 2500);
    CHECK_INT(wrong, 0);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(fires_of_twenty_years_are_those_of_cronsim)};
    return test_main("schedule_years", tests, ARRAY_COUNT(tests), argc, argv);
}
