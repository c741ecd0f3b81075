// Waiting for an event from outside (ADR 0047). What is waited for is recorded when the attempt begins (EVENT_AWAITED), because it may
// hang on what steps have given; the event itself comes as the signal DELIVER_EVENT, which is decided once (step_signal.c).
#include "kernel/route.h"

#include "json/make.h"

static bool waits(const struct run *run, const struct run_await *a)
{
    const struct run_lane *s = lane_ref(run, a->lane);
    return s->state == NODE_RUNNING && s->logical == a->logical;
}

const struct run_await *kernel_await(const struct run *run, const struct run_await *after)
{
    const struct run_await *a = after ? after->next : run->awaits;
    while (a && !waits(run, a)) a = a->next;
    return a;
}

static enum code no_event(struct decide *d, uint32_t lane, struct str message)
{
    struct fault fault = {.code = STR("EVENT_INVALID"), .message = message, .category = STR("validation")};
    return d->run->route->fail(d, lane, &fault);
}

// A number is as good as its text: ids are often numbers.
static bool correlation_of(const struct json *value, struct arena *arena, struct str *out)
{
    *out = (struct str){0};
    if (!value || value->type == JSON_NULL) return true;
    *out = value->type == JSON_STRING ? value->text : json_canon_kept(arena, value, EVENT_CORRELATION_MAX + 1);
    return out->ptr && out->len <= EVENT_CORRELATION_MAX;
}

enum code await_start(struct decide *d, uint32_t lane, const struct json *with)
{
    struct moment m = d->run->route->moment(d, MOMENT_EVENT_AWAITED, lane);
    INVARIANT(lane_ref(d->run, lane)->state == NODE_RUNNING);
    m.by = EMITTER_ENGINE;
    const struct json *event = json_key(with, "event"); // of a task: `name` is its label there
    m.reason = json_text(event ? event : json_key(with, "name"));
    if (!event_name_valid(m.reason)) return no_event(d, lane, STR("what it waits for is no name of an event"));
    if (!correlation_of(json_key(with, "correlation"), d->out->turn, &m.detail))
        return no_event(d, lane, STR("its field correlation is longer than 256 bytes"));
    enum code rc = d->run->route->emit(d, &m, lane);
    return rc ? rc : attempt_order(d, lane);
}

static bool keep(struct run *run, struct str text, struct str *out)
{
    if (str_eq(text, *out)) return true; // most often: a loop waits for the same again
    *out = arena_copy(&run->arena, text);
    return out->ptr != NULL;
}

enum code await_fold(struct run *run, const struct moment *m, uint32_t lane, bool *possible, struct error *err)
{
    const struct run_lane *s = lane_ref(run, lane);
    *possible = s->state == NODE_RUNNING && run->route->body(run, lane) == BODY_EVENT;
    if (!*possible) return OK;
    struct run_await **at = &run->awaits;
    while (*at && (*at)->lane != lane) at = &(*at)->next;
    if (!*at) {
        *at = ARENA_NEW(&run->arena, struct run_await);
        if (!*at) return error_nomem(err);
        (*at)->lane = lane;
    }
    (*at)->logical = s->logical;
    return keep(run, m->reason, &(*at)->name) && keep(run, m->detail, &(*at)->correlation) ? OK : error_nomem(err);
}

enum code await_late(struct decide *d, uint32_t lane)
{
    const struct run_lane *s = lane_ref(d->run, lane);
    struct fault fault;
    enum code rc = late_fault(d, "the event did not come within %s (its field timeout)", s->due_ms - s->started_ms, &fault);
    return rc ? rc : d->run->route->fail(d, lane, &fault);
}
