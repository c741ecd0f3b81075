// A run has an end even if its document has none (I21): past its limits it is stopped, and fails. That is a signal of the engine's own, so
// the log has the limit and what the run had come to: a service that starts with other limits decides nothing of it again.
#include "engine/inside.h"

#include "base/text.h"
#include "json/form.h"

#define EVENTS_MAX UINT64_C(50000)
#define BYTES_MAX (UINT64_C(1) << 30)
#define SEGMENT_BYTES_MAX UINT64_C(50000000) // where the contract has Temporal end a history, as it does at 50,000 events

static uint64_t events_max(const struct engine *engine, const struct run *run)
{
    uint64_t said = engine->options.limits.events_per_run_max;
    uint64_t most = EVENTS_MAX * program_scale(run->program->step_count);
    return said ? said : run->net ? 20 * most : most; // a task of a playbook is four events and more
}

static enum code stop_run(struct engine *engine, struct resident *resident, struct str reason, struct error *err)
{
    char id[UUID_SIZE];
    if (!reason.ptr) return error_nomem(err);
    entropy_uuid(engine->options.entropy, id);
    struct signal signal = {.type = SIGNAL_EMERGENCY_STOP,
                            .id = str_from(id),
                            .reason = reason,
                            .actor = STR(ENGINE_ACTOR),
                            .role = STR(ENGINE_ROLE)};
    resident->limit_hit = true;
    os_log(LOG_WARN, "run stopped run=%.*s why=\"%.*s\"", STR_ARG(resident->ids.run), STR_ARG(reason));
    return queue_signal(engine, resident, &signal, 0, err);
}

static enum code stop_past(struct engine *engine, struct resident *resident, const char *what, uint64_t has,
                           uint64_t most, struct error *err)
{
    struct str reason = arena_format(&engine->turn,
                                     FAULT_RUN_LIMIT ": the run has %llu %s, and the setting limits.%s allows %llu: see that "
                                                     "its loops end, divide it among child runs, or raise the setting",
                                     (unsigned long long)has, what, what, (unsigned long long)most);
    return stop_run(engine, resident, reason, err);
}

enum code stop_too_large(struct engine *engine, struct resident *resident, struct error *err)
{
    return stop_run(engine, resident,
                    STR(FAULT_RUN_LIMIT ": what the run has to decide next takes more memory than a turn has: its values are "
                                        "too large, or too many at once; divide it among child runs"),
                    err);
}

void extent_pass(struct extent *extent, const struct moment *moment, uint64_t seq)
{
    if (moment->kind != MOMENT_SEGMENT_STARTED) return;
    extent->segment_bytes = extent->bytes;
    extent->segment_seq = seq;
    extent->segment = moment->logical;
}

static uint64_t said_or(uint64_t said, uint64_t else_said, uint64_t usual)
{
    return said ? said : else_said ? else_said : usual;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// What a turn adds to the run: each is stored whole, and only then counted.
static void measure_turn(const struct engine *engine, struct resident *resident)
{
    struct extent *extent = &resident->extent;
    if (extent->turn != engine->turn_number) {
        extent->turn = engine->turn_number;
        extent->turn_bytes = extent->last_bytes;
        extent->turn_seq = extent->last_seq;
    }
    extent->last_bytes = extent->bytes;
    extent->last_seq = run_log_last_seq(resident->log);
    extent->most_bytes = larger(extent->most_bytes, extent->last_bytes - extent->turn_bytes);
    extent->most_events = larger(extent->most_events, extent->last_seq - extent->turn_seq);
}

// The limit is a hard one: a segment is full when another turn like the largest so far might carry it past it, and never before
// three quarters of it, so that one large turn does not make all segments small.
static bool is_full(uint64_t has, uint64_t most_of_a_turn, uint64_t most)
{
    uint64_t spare = most_of_a_turn < most / 4 ? most_of_a_turn : most / 4;
    return has + spare > most || has >= most;
}

// The profile rotates: the run goes on in a new segment (ADR 0035). Each segment is asked about once.
static enum code bound_segment(struct engine *engine, struct resident *resident, struct error *err)
{
    const struct run *run = resident->run;
    const struct extent *extent = &resident->extent;
    const struct engine_limits *limits = &engine->options.limits;
    measure_turn(engine, resident);
    if (resident->full == run->segment || !run->started_ms) return OK;
    if (run->segment > 1 && extent->segment != run->segment) return OK; // it begins in this batch, further on
    uint64_t events = extent->last_seq - extent->segment_seq, bytes = extent->bytes - extent->segment_bytes;
    bool many = is_full(events, extent->most_events,
                        said_or(limits->segment_events_max, limits->events_per_run_max, EVENTS_MAX));
    bool large = is_full(bytes, extent->most_bytes,
                         said_or(limits->segment_bytes_max, limits->bytes_per_run_max, SEGMENT_BYTES_MAX));
    if (!many && !large) return OK;
    if (limits->segments_max > 0 && run->segment >= limits->segments_max)
        return stop_past(engine, resident, "segments", run->segment, limits->segments_max, err);
    struct queued *queued = queue_add(engine, resident, INPUT_FULL);
    if (!queued) return error_nomem(err);
    queued->input.events = events;
    queued->input.bytes = bytes;
    queued->input.limit = many ? "events" : "bytes";
    resident->full = run->segment;
    return queue_last_first(engine, 1, err); // what waits is of the next segment
}

enum code bound_run(struct engine *engine, struct resident *resident, struct error *err)
{
    const struct run *run = resident->run;
    if (resident->gone || resident->idle || resident->limit_hit || run->cancelling) return OK;
    if (behaviour_of(run->start.profile)->rotates) return bound_segment(engine, resident, err);
    uint64_t said = engine->options.limits.bytes_per_run_max;
    uint64_t events = run_log_last_seq(resident->log), most = events_max(engine, run);
    if (events >= most) return stop_past(engine, resident, "events", events, most, err);
    most = said ? said : BYTES_MAX;
    uint64_t bytes = resident->extent.bytes;
    return bytes >= most ? stop_past(engine, resident, "bytes", bytes, most, err) : OK;
}

// ---- configuration

enum code engine_limits_parse(const struct json *config, struct arena *arena, struct engine_limits *out,
                              uint64_t *sql_bytes, struct error *err)
{
    int64_t events = (int64_t)out->events_per_run_max, bytes = (int64_t)out->bytes_per_run_max;
    int64_t sql = sql_bytes ? (int64_t)*sql_bytes : 0, segments = (int64_t)out->segments_max;
    int64_t segment_events = (int64_t)out->segment_events_max, segment_bytes = (int64_t)out->segment_bytes_max;
    struct form form;
    form_begin(&form, "limits", config, arena, err);
    form_number(&form, "events", 100, 2000000000, &events);
    form_number(&form, "bytes", 65536, INT64_C(1) << 50, &bytes);
    form_number(&form, "segmentEvents", 100, 2000000000, &segment_events);
    form_number(&form, "segmentBytes", 65536, INT64_C(1) << 50, &segment_bytes);
    form_number(&form, "segments", 1, 1000000000, &segments);
    form_count(&form, "iterations", 1, 10000000, &out->iterations_max);
    form_count(&form, "children", 1, 10000000, &out->children_max);
    form_number(&form, "sqlBytes", INT64_C(16) << 20, INT64_C(1) << 40, &sql);
    out->events_per_run_max = (uint64_t)events;
    out->bytes_per_run_max = (uint64_t)bytes;
    out->segment_events_max = (uint64_t)segment_events;
    out->segment_bytes_max = (uint64_t)segment_bytes;
    out->segments_max = (uint64_t)segments;
    if (sql_bytes) *sql_bytes = (uint64_t)sql;
    return form_end(&form);
}
