// A run as an OpenTelemetry trace: a function of its log, not something that was measured beside it. Asked twice, before or
// after any crash, it gives the same spans with the same ids; a run of a week is one trace.
//
//   trace id   first 16 bytes of SHA-256(runId)
//   span id    first 8 bytes of SHA-256(runId|step|logicalAttemptId|engineAttemptId); of the run itself SHA-256(runId)'s bytes
//              16 to 23. The path of a step holds the iteration: "poll[2].fetch".
//
// One span for the run, one for each attempt of a step (below the run, or below the loop that it is in), linked to the attempt
// before it, to the run that it started, to the run that it is a fork or a repetition of. What has not ended has no span yet.
#ifndef CAIRN_VIEW_TRACE_H
#define CAIRN_VIEW_TRACE_H

#include "view/view.h"

#define TRACE_ID_HEX 32
#define SPAN_ID_HEX 16
#define TRACEPARENT_SIZE 56 // "00-<trace>-<span>-01" and a NUL

void trace_id(struct str run, char hex[TRACE_ID_HEX + 1]);
void trace_run_span(struct str run, char hex[SPAN_ID_HEX + 1]);
void trace_step_span(struct str run, struct str step, uint32_t logical, uint32_t engine, char hex[SPAN_ID_HEX + 1]);
// W3C Trace Context: what an attempt hands to whatever it calls.
void trace_parent(struct str run, struct str step, uint32_t logical, uint32_t engine, char out[TRACEPARENT_SIZE]);

// Playbooks: attempts of tasks, which a view only counts. Their spans are below that of the visit of their step. The path is that of the
// attempt's traceparent ("each:run:2[3]/fetch:run:2"), the logical attempt counts all of the run.
struct trace_task {
    struct str path, step, task;
    uint32_t visit, iteration, task_run, attempt, logical, engine;
    int64_t started_ms, ended_ms; // 0: it has not
    struct fault fault;
};
struct trace_tasks { // all zero but for the arena
    struct arena *arena;
    struct trace_task *items;
    size_t count, capacity;
};
bool trace_task_fold(struct trace_tasks *tasks, const struct moment *moment) MUST_CHECK; // false: memory ran out

// The body of an OTLP/HTTP request (ExportTraceServiceRequest as JSON); spans in the order of the steps of the view.
// False when memory ran out.
// `tasks` may be NULL.
bool trace_json(const struct run_view *view, const struct trace_tasks *tasks, struct arena *arena,
                struct json *out) MUST_CHECK;

#endif
