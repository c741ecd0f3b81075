// What becomes of a time that is due: one decision at a time, from what is declared, what has been decided and how many runs go on.
#include "schedule/schedule.h"

#include <string.h>

enum { TOGETHER_MAX = 10000 }; // of times in one decision not to run them

static int64_t due_of(struct str name, const struct schedule_spec *spec, int64_t at_ms)
{
    return at_ms + schedule_jitter(name, at_ms, spec->jitter_ms);
}

static bool is_late(const struct schedule_spec *spec, int64_t at_ms, int64_t now_ms)
{
    return now_ms - at_ms > spec->catchup_ms + spec->jitter_ms;
}

// All that follow and fare the same: one decision, one record.
static struct tick skip_all(struct str name, const struct schedule_spec *spec, bool paused, int64_t at_ms, int64_t now_ms)
{
    struct tick tick = {.kind = TICK_SKIP,
                        .reason = paused ? REASON_PAUSED : REASON_LATE,
                        .at_ms = at_ms,
                        .last_ms = at_ms,
                        .count = 1};
    struct fire fire;
    while (tick.count < TOGETHER_MAX && timing_next(&spec->timing, tick.last_ms, &fire) &&
           due_of(name, spec, fire.at_ms) <= now_ms && (paused || is_late(spec, fire.at_ms, now_ms))) {
        tick.last_ms = fire.at_ms;
        tick.count++;
    }
    return tick;
}

struct tick schedule_decide(struct str name, const struct schedule_spec *spec, bool paused,
                            const struct schedule_state *state, int64_t now_ms, size_t active)
{
    struct fire fire;
    struct tick tick = {.due_ms = INT64_MAX, .count = 1};
    if (state->waiting_count > 0 && active == 0 && !paused) {
        tick.kind = TICK_START;
        tick.at_ms = tick.last_ms = state->waiting[0];
        tick.waited = true;
        return tick;
    }
    if (!timing_next(&spec->timing, state->decided_ms, &fire)) return tick;
    tick.due_ms = due_of(name, spec, fire.at_ms);
    if (tick.due_ms > now_ms) return tick;
    if (paused || is_late(spec, fire.at_ms, now_ms)) return skip_all(name, spec, paused, fire.at_ms, now_ms);
    tick.at_ms = tick.last_ms = fire.at_ms;
    if (spec->overlap == OVERLAP_ALLOW || (active == 0 && state->waiting_count == 0)) {
        tick.kind = TICK_START;
    } else if (spec->overlap == OVERLAP_CANCEL) {
        tick.kind = TICK_CANCEL;
    } else if (spec->overlap == OVERLAP_QUEUE && state->waiting_count < spec->queued) {
        tick.kind = TICK_QUEUE;
    } else {
        tick.kind = TICK_SKIP;
        tick.reason = spec->overlap == OVERLAP_QUEUE ? REASON_FULL : REASON_OVERLAP;
    }
    return tick;
}

void schedule_apply(struct schedule_state *state, const struct tick *tick)
{
    if (tick->kind == TICK_NONE) return;
    if (tick->waited) {
        state->waiting_count--;
        memmove(state->waiting, state->waiting + 1, state->waiting_count * sizeof(state->waiting[0]));
        return;
    }
    if (tick->kind == TICK_CANCEL) state->waiting_count = 0; // the newest takes the place of those that wait
    if (tick->kind == TICK_CANCEL || tick->kind == TICK_QUEUE) state->waiting[state->waiting_count++] = tick->at_ms;
    state->decided_ms = tick->last_ms;
}

const char *tick_reason_name(enum tick_reason reason)
{
    static const char *const names[] = {"", "PAUSED", "OVERLAP", "LATE", "QUEUE_FULL"};
    return names[reason];
}
