// Metrics: counters, gauges and histograms that any thread may touch and one reader writes out as Prometheus text.
//
//   M1 Touching a metric takes no lock and no memory: a hash, a comparison and an atomic addition.
//   M2 Labels are names of plans, queues, sinks, routes and the like; never ids of runs. A metric with more than
//      METRIC_SERIES_MAX combinations counts the rest under the label value "other".
//   M3 What is written is the sum of what was touched before; values of one moment may be from slightly different ones.
//
// The registry lives in an arena and is shared by all threads. Durations are given in microseconds and written in seconds.
#ifndef CAIRN_VIEW_METRICS_H
#define CAIRN_VIEW_METRICS_H

#include "base/arena.h"
#include "base/buf.h"
#include "contract/contract.h"

// X(NAME, kind, name without unit, unit, labels, help). Unit: SECONDS (given in us), BYTES, NONE.
#define METRIC_LIST(X)                                                                                                 \
    X(APPEND, HISTOGRAM, "cairn_append", SECONDS, "", "Time that storing one batch took.")                             \
    X(EVENTS, COUNTER, "cairn_events", NONE, "", "Events appended.")                                                   \
    X(LOG_BYTES, GAUGE, "cairn_log", BYTES, "", "Size of the log in the store.")                                       \
    X(PROJECTOR_LAG, GAUGE, "cairn_projector_lag", SECONDS, "", "Age of the oldest event that is not projected yet.")  \
    X(WATERMARK_AGE, GAUGE, "cairn_projector_watermark_age", SECONDS, "",                                              \
      "How long the watermark has not moved although there is more.")                                                  \
    X(PROJECTOR_WAITING, GAUGE, "cairn_projector_waiting", NONE, "", "Events that are not projected yet.")             \
    X(PROJECTED, COUNTER, "cairn_projected_events", NONE, "", "Events that the projector has seen.")                   \
    X(PROJECTOR_RUNS, GAUGE, "cairn_projector_runs", NONE, "", "Runs that the projector holds.")                       \
    X(PROJECTOR_STALE, GAUGE, "cairn_projector_stale", NONE, "", "Runs that the projector must read again.")           \
    X(ALERTS_OPEN, GAUGE, "cairn_alerts_open", NONE, "priority", "Open alerts.")                                       \
    X(QUEUE_DEPTH, GAUGE, "cairn_queue_depth", NONE, "queue", "Tasks that wait.")                                      \
    X(QUEUE_AGE, GAUGE, "cairn_queue_oldest_age", SECONDS, "queue", "How long the oldest task waits.")                 \
    X(LEASES_EXPIRED, COUNTER, "cairn_lease_expiries", NONE, "queue", "Leases that ran out.")                          \
    X(LEASES, GAUGE, "cairn_leases", NONE, "", "Tasks that workers have.")                                             \
    X(WORKERS, GAUGE, "cairn_workers", NONE, "pool", "Workers that polled lately.")                                    \
    X(OUTBOX_LAG, GAUGE, "cairn_outbox_lag", SECONDS, "sink", "Age of the oldest event that is not delivered.")        \
    X(OUTBOX_WAITING, GAUGE, "cairn_outbox_waiting", NONE, "sink", "Events that are not delivered.")                   \
    X(DEAD_LETTERS, GAUGE, "cairn_dlq_size", NONE, "sink", "Events among the dead letters.")                           \
    X(RUNS_ACTIVE, GAUGE, "cairn_runs_active", NONE, "plan,status", "Runs that have not ended.")                       \
    X(RUNS, COUNTER, "cairn_runs", NONE, "plan,status", "Runs that ended.")                                            \
    X(RUN_DURATION, HISTOGRAM, "cairn_run_duration", SECONDS, "plan", "From the start of a run to its end.")           \
    X(RUN_ERRORS, COUNTER, "cairn_run_errors", NONE, "plan,code",                                                      \
      "Runs that failed, by the code of their root cause.")                                                            \
    X(SYSTEM_ERRORS, COUNTER, "cairn_system_errors", NONE, "component", "Errors of the service itself.")               \
    X(HTTP_REQUESTS, COUNTER, "cairn_http_requests", NONE, "method,route,status", "Answered requests.")                \
    X(HTTP_DURATION, HISTOGRAM, "cairn_http_request_duration", SECONDS, "route",                                       \
      "From the whole request to its answer.")                                                                         \
    X(HTTP_CONNECTIONS, GAUGE, "cairn_http_connections", NONE, "", "Open connections.")                                \
    X(HTTP_STREAMS, GAUGE, "cairn_http_streams", NONE, "", "Open streams of events.")                                  \
    X(CALLS_WAITING, GAUGE, "cairn_calls_waiting", NONE, "", "Calls that wait for the engine.")                        \
    X(UPTIME, GAUGE, "cairn_uptime", SECONDS, "", "Since the service was started.")                                    \
    X(BUILD_INFO, GAUGE, "cairn_build_info", NONE, "version", "1, with the version of the program.")

enum metric {
#define X(name, kind, text, unit, labels, help) METRIC_##name,
    METRIC_LIST(X)
#undef X
        METRIC_COUNT
};

#define METRIC_LABELS_MAX 3
#define METRIC_LABEL_SIZE 64   // longer values are cut
#define METRIC_SERIES_MAX 128  // per metric, "other" included
#define METRIC_BUCKET_COUNT 18 // 100 us to 1 h

struct metrics;
struct metrics *metrics_open(struct arena *arena) MUST_CHECK; // NULL: out of memory

// `labels` are the values, in the order of the list; as many as the metric has. NULL when it has none.
void metric_add(struct metrics *metrics, enum metric metric, const struct str *labels, int64_t by);    // counter, gauge
void metric_set(struct metrics *metrics, enum metric metric, const struct str *labels, int64_t value); // gauge
void metric_time(struct metrics *metrics, enum metric metric, const struct str *labels, int64_t micros); // histogram

// A run went from one status to another; 0 = it was not there, or it was removed. Moves the gauges and counts its end.
struct metric_run {
    struct str plan, code; // code: of the root cause when it failed
    enum run_status from, to;
    int64_t duration_ms; // of a run that ended after it began; -1 = it did not begin
};
void metrics_run(struct metrics *metrics, const struct metric_run *run);

enum metrics_format { METRICS_PROMETHEUS = 1, METRICS_OPENMETRICS };
const char *metrics_content_type(enum metrics_format format);
// Series sorted by their labels, so that equal registries give equal bytes. Everything in one pass; check buf_ok.
// `names` false: without the figures that name documents, queues, pools or sinks, which are of some tenant.
void metrics_write(const struct metrics *metrics, enum metrics_format format, bool names, struct buf *out);

#endif
