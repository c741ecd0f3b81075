// Metrics: what is written, that threads lose nothing, and that labels cannot grow without end.
#include "harness/test.h"

#include "view/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct metrics *metrics;
static struct buf text;

static void begin(void)
{
    arena_release(&arena);
    arena_init(&arena, 1 << 20, 64 << 20);
    metrics = metrics_open(&arena);
    CHECK(metrics);
    buf_init(&text, 16 << 20);
}

static const char *written(enum metrics_format format)
{
    buf_clear(&text);
    metrics_write(metrics, format, true, &text);
    CHECK(buf_ok(&text));
    return text.ptr;
}

static void has(const char *line)
{
    const char *at = strstr(written(METRICS_PROMETHEUS), line);
    if (!at || (at > text.ptr && at[-1] != '\n') || at[strlen(line)] != '\n')
        test_fail(__FILE__, __LINE__, "no line %s in\n%s", line, text.ptr);
}

static void counters_and_gauges_with_labels(void)
{
    begin();
    struct str get[] = {STR("GET"), STR("/v1/runs/{run}"), STR("200")};
    struct str post[] = {STR("POST"), STR("/v1/runs"), STR("201")};
    metric_add(metrics, METRIC_HTTP_REQUESTS, post, 1);
    metric_add(metrics, METRIC_HTTP_REQUESTS, get, 2);
    metric_add(metrics, METRIC_HTTP_REQUESTS, get, 3);
    has("# HELP cairn_http_requests_total Answered requests.");
    has("# TYPE cairn_http_requests_total counter");
    has("cairn_http_requests_total{method=\"GET\",route=\"/v1/runs/{run}\",status=\"200\"} 5");
    CHECK(strstr(text.ptr, "\"GET\"") < strstr(text.ptr, "\"POST\"")); // sorted
    struct str queue = STR("default");
    metric_set(metrics, METRIC_QUEUE_DEPTH, &queue, 7);
    metric_add(metrics, METRIC_QUEUE_DEPTH, &queue, -3);
    has("# TYPE cairn_queue_depth gauge");
    has("cairn_queue_depth{queue=\"default\"} 4");
    has("cairn_events_total 0");                     // without labels: there from the start
    has("# TYPE cairn_system_errors_total counter"); // with labels: the name alone
    metric_set(metrics, METRIC_PROJECTOR_LAG, NULL, 6100000);
    metric_set(metrics, METRIC_WATERMARK_AGE, NULL, 1);
    has("cairn_projector_lag_seconds 6.1");
    has("cairn_projector_watermark_age_seconds 0.000001");
    buf_release(&text);
}

static void histograms_are_cumulative(void)
{
    begin();
    metric_time(metrics, METRIC_APPEND, NULL, 100);
    metric_time(metrics, METRIC_APPEND, NULL, 101);
    metric_time(metrics, METRIC_APPEND, NULL, 2000000);
    metric_time(metrics, METRIC_APPEND, NULL, 7200LL * 1000000);
    metric_time(metrics, METRIC_APPEND, NULL, -5);
    has("# TYPE cairn_append_seconds histogram");
    has("cairn_append_seconds_bucket{le=\"0.0001\"} 2");
    has("cairn_append_seconds_bucket{le=\"0.00025\"} 3");
    has("cairn_append_seconds_bucket{le=\"1\"} 3");
    has("cairn_append_seconds_bucket{le=\"5\"} 4");
    has("cairn_append_seconds_bucket{le=\"3600\"} 4");
    has("cairn_append_seconds_bucket{le=\"+Inf\"} 5");
    has("cairn_append_seconds_sum 7202.000201");
    has("cairn_append_seconds_count 5");
    struct str route = STR("/v1/runs");
    metric_time(metrics, METRIC_HTTP_DURATION, &route, 1500);
    has("cairn_http_request_duration_seconds_bucket{route=\"/v1/runs\",le=\"0.0025\"} 1");
    buf_release(&text);
}

static void labels_are_escaped_and_cut(void)
{
    begin();
    struct str odd = STR("a\"b\\c\nd\x01\xff\xc3\xbc");
    metric_set(metrics, METRIC_QUEUE_DEPTH, &odd, 1);
    has("cairn_queue_depth{queue=\"a\\\"b\\\\c\\nd??\xc3\xbc\"} 1");
    char longest[200];
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + METRIC_LABEL_SIZE - 1, "\xc3\xbc", 2);
    struct str name = {longest, sizeof(longest)};
    metric_set(metrics, METRIC_DEAD_LETTERS, &name, 2);
    char want[256];
    snprintf(want, sizeof(want), "cairn_dlq_size{sink=\"%.*s\"} 2", METRIC_LABEL_SIZE - 1, longest);
    has(want);
    buf_release(&text);
}

static void too_many_labels_are_other(void)
{
    begin();
    for (int i = 0; i < 5000; i++) {
        char plan[24];
        snprintf(plan, sizeof(plan), "plan-%d", i);
        struct str labels[] = {str_from(plan), STR("COMPLETED")};
        metric_add(metrics, METRIC_RUNS, labels, 1);
    }
    size_t lines = 0;
    int64_t sum = 0;
    for (const char *at = written(METRICS_PROMETHEUS); (at = strstr(at, "\ncairn_runs_total{")); at++) {
        lines++;
        sum += atoll(strstr(at, "} ") + 2);
    }
    CHECK_INT(lines, METRIC_SERIES_MAX);
    CHECK_INT(sum, 5000); // nothing is lost
    has("cairn_runs_total{plan=\"plan-0\",status=\"COMPLETED\"} 1");
    has("cairn_runs_total{plan=\"other\",status=\"other\"} 4873");
    buf_release(&text);
}

static void a_run_moves_from_status_to_status(void)
{
    begin();
    struct metric_run run = {.plan = STR("etl"), .to = RUN_STATUS_PENDING, .duration_ms = -1};
    metrics_run(metrics, &run);
    run.from = RUN_STATUS_PENDING;
    run.to = RUN_STATUS_RUNNING;
    metrics_run(metrics, &run);
    has("cairn_runs_active{plan=\"etl\",status=\"PENDING\"} 0");
    has("cairn_runs_active{plan=\"etl\",status=\"RUNNING\"} 1");
    run = (struct metric_run){STR("etl"), STR("TIMEOUT"), RUN_STATUS_RUNNING, RUN_STATUS_FAILED, 2500};
    metrics_run(metrics, &run);
    run.from = RUN_STATUS_FAILED;
    metrics_run(metrics, &run); // no change: nothing
    has("cairn_runs_active{plan=\"etl\",status=\"RUNNING\"} 0");
    has("cairn_runs_total{plan=\"etl\",status=\"FAILED\"} 1");
    has("cairn_run_errors_total{plan=\"etl\",code=\"TIMEOUT\"} 1");
    has("cairn_run_duration_seconds_sum{plan=\"etl\"} 2.5");
    buf_release(&text);
}

// ES-1.0e: what is watched is the watermark.
static void the_watermark_has_a_metric_ES_1_0e(void)
{
    begin();
    has("cairn_projector_watermark_age_seconds 0");
    has("cairn_projector_lag_seconds 0");
    buf_release(&text);
}

static void openmetrics_differ_in_heads_and_end(void)
{
    begin();
    metric_add(metrics, METRIC_EVENTS, NULL, 1);
    const char *all = written(METRICS_OPENMETRICS);
    CHECK(strstr(all, "# TYPE cairn_events counter\n"));
    CHECK(strstr(all, "\ncairn_events_total 1\n"));
    CHECK(strstr(all, "# UNIT cairn_append_seconds seconds\n"));
    CHECK_TEXT(all + strlen(all) - 6, "# EOF\n");
    CHECK(!strstr(written(METRICS_PROMETHEUS), "# EOF"));
    CHECK(!strcmp(metrics_content_type(METRICS_PROMETHEUS), "text/plain; version=0.0.4; charset=utf-8"));
    buf_release(&text);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *busy(void *context)
{
    unsigned seed = (unsigned)(uintptr_t)context;
    for (int i = 0; i < ROUNDS; i++) {
        char name[24];
        snprintf(name, sizeof(name), "s%u", (unsigned)(i + (int)seed * 7) % 200);
        struct str label = str_from(name);
        metric_add(metrics, METRIC_LEASES_EXPIRED, &label, 1);
        metric_time(metrics, METRIC_RUN_DURATION, &label, i);
    }
    return NULL;
}

static void threads_lose_nothing(void)
{
    pthread_t threads[THREADS];
    begin();
    for (size_t i = 0; i < THREADS; i++) CHECK_INT(pthread_create(&threads[i], NULL, busy, (void *)(i + 1)), 0);
    for (size_t i = 0; i < 20; i++) written(METRICS_PROMETHEUS);
    for (size_t i = 0; i < THREADS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
    int64_t counted = 0, timed = 0;
    for (const char *at = written(METRICS_PROMETHEUS); (at = strstr(at, "\ncairn_lease_expiries_total{")); at++)
        counted += atoll(strstr(at, "} ") + 2);
    for (const char *at = text.ptr; (at = strstr(at, "\ncairn_run_duration_seconds_count{")); at++)
        timed += atoll(strstr(at, "} ") + 2);
    CHECK_INT(counted, THREADS * ROUNDS);
    CHECK_INT(timed, THREADS * ROUNDS);
    buf_release(&text);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(counters_and_gauges_with_labels),     TEST(histograms_are_cumulative),
        TEST(labels_are_escaped_and_cut),          TEST(too_many_labels_are_other),
        TEST(a_run_moves_from_status_to_status),   TEST(the_watermark_has_a_metric_ES_1_0e),
        TEST(openmetrics_differ_in_heads_and_end), TEST(threads_lose_nothing),
    };
    return test_main("view_metrics", tests, ARRAY_COUNT(tests), argc, argv);
}
