// The times of a schedule: spans of the zone one after the other, and what happens where the clock is set.
#include "schedule/schedule.h"

#include <string.h>

enum { SECOND_MS = 1000 };
#define CENTURY (INT64_C(36525) * 86400) // as far as cron_next looks

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

// ---- cron

// What of a span may fire, in local time: `low` to before `high`. Of a fold it is the first pass, both, or none.
struct window {
    int64_t low, high;
};

static struct window window_of(const struct timing *timing, const struct zone_span *span, const struct zone_span *before,
                               const struct zone_span *after, int64_t from)
{
    struct window window = {from + span->offset, span->to == ZONE_ALWAYS ? INT64_MAX : span->to + span->offset};
    bool once = timing->cron.fixed && timing->fold != FOLD_TWICE;
    if (once && before && before->offset > span->offset) { // shown a second time
        int64_t again = span->from + before->offset;
        if (window.low < again) window.low = again;
    }
    if (once && timing->fold == FOLD_SKIP && after && after->offset < span->offset) {
        int64_t again = span->to + after->offset;
        if (window.high > again) window.high = again;
    }
    return window;
}

static enum fire_mark mark_of(const struct zone_span *span, const struct zone_span *before, const struct zone_span *after,
                              int64_t local)
{
    if (before && before->offset > span->offset && local < span->from + before->offset) return FIRE_SECOND;
    if (after && after->offset < span->offset && local >= span->to + after->offset) return FIRE_FIRST;
    return FIRE_PLAIN;
}

// A fixed time that the clock leaves out between the two spans.
static bool in_gap(const struct timing *timing, const struct zone_span *span, const struct zone_span *after)
{
    int64_t local;
    if (!timing->cron.fixed || timing->gap != GAP_RUN || !after || after->offset <= span->offset) return false;
    return cron_next(&timing->cron, span->to + span->offset, &local) && local < span->to + after->offset;
}

static bool cron_after(const struct timing *timing, int64_t after_ms, struct fire *out)
{
    int64_t from = floor_div(after_ms, SECOND_MS) + 1, begin = from, local;
    struct zone_span span = zone_at(timing->zone, from), before, after;
    bool first = span.from == INT64_MIN;
    if (!first) before = zone_at(timing->zone, span.from - 1);
    // a gap that ends where we begin to look
    if (!first && from == span.from && in_gap(timing, &before, &span)) {
        *out = (struct fire){span.from * SECOND_MS, FIRE_GAP};
        return true;
    }
    for (;;) {
        bool last = span.to == ZONE_ALWAYS;
        if (!last) after = zone_at(timing->zone, span.to);
        struct window window = window_of(timing, &span, first ? NULL : &before, last ? NULL : &after, from);
        if (!cron_next(&timing->cron, window.low, &local)) return false;
        if (local < window.high) {
            *out = (struct fire){(local - span.offset) * SECOND_MS,
                                 mark_of(&span, first ? NULL : &before, last ? NULL : &after, local)};
            return true;
        }
        // All its times may be such that the clock leaves out or shows twice: a zone changes its clock for ever.
        if (last || span.to - begin > CENTURY) return false;
        if (in_gap(timing, &span, &after)) {
            *out = (struct fire){span.to * SECOND_MS, FIRE_GAP};
            return true;
        }
        before = span;
        first = false;
        from = span.to;
        span = after;
    }
}

// ---- all kinds

static bool every_after(const struct timing *timing, int64_t after_ms, struct fire *out)
{
    int64_t n = floor_div(after_ms - timing->offset_ms, timing->every_ms) + 1;
    *out = (struct fire){timing->offset_ms + n * timing->every_ms, FIRE_PLAIN};
    return true;
}

bool timing_next(const struct timing *timing, int64_t after_ms, struct fire *out)
{
    bool found = false;
    if (timing->from_ms && after_ms < timing->from_ms - 1) after_ms = timing->from_ms - 1;
    switch (timing->kind) {
    case TIMING_CRON:
        found = cron_after(timing, after_ms, out);
        break;
    case TIMING_EVERY:
        found = every_after(timing, after_ms, out);
        break;
    case TIMING_AT:
        *out = (struct fire){timing->at_ms, FIRE_PLAIN};
        found = timing->at_ms > after_ms;
        break;
    }
    return found && (!timing->until_ms || out->at_ms <= timing->until_ms);
}

int64_t schedule_jitter(struct str schedule, int64_t at_ms, int64_t jitter_ms)
{
    if (jitter_ms <= 0) return 0;
    struct digest name = sha256(schedule);
    char bytes[sizeof(name.b) + 8];
    memcpy(bytes, name.b, sizeof(name.b));
    for (size_t i = 0; i < 8; i++) bytes[sizeof(name.b) + i] = (char)((uint64_t)at_ms >> (8 * i));
    struct digest digest = sha256((struct str){bytes, sizeof(bytes)});
    uint64_t random = 0;
    for (size_t i = 0; i < 8; i++) random = random << 8 | digest.b[i];
    return (int64_t)(random % (uint64_t)jitter_ms);
}
