// What only the present knows: which attempts wait for a slot or a worker and who has those, where the run stands in its queue.
#include "explain/inside.h"

#include "base/civil.h"

#include <string.h>

void explain_present(struct explain *e, const struct json *present)
{
    e->present = present;
}

bool place_waits(const struct json *place)
{
    return place && str_is(json_text(json_key(place, "state")), "QUEUED");
}

// The place is of the step, or of a task of a playbook's step: "load", "load[3]/fetch".
static bool is_of(const struct view_of_step *v, struct str path)
{
    if (str_eq(path, v->path)) return true;
    if (!v->e->run->net || !str_starts(path, v->path)) return false;
    return strchr("[/:", path.ptr[v->path.len]) != NULL;
}

const struct json *place_now(const struct explain *e, const struct view_of_step *v)
{
    const struct json *list = json_key(e->present, "attempts"), *found = NULL;
    const struct attempt_finding *attempt = last_attempt(v->note);
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->count; i++) {
        const struct json *place = &list->items[i];
        if (!is_of(v, json_text(json_key(place, "stepId")))) continue;
        // Of an attempt that has ended meanwhile nothing is said.
        bool same = v->e->run->net || (attempt && attempt->logical == json_integer(json_key(place, "logicalAttemptId"), 0));
        if (same && (!found || !place_waits(place))) found = place; // of several tasks, one that is executed
    }
    return found;
}

const char *place_reason(const struct json *place)
{
    if (json_key(place, "limit")) return json_key(place, "nextStartAt") ? "LIMIT_RATE" : "LIMIT_FULL";
    if (!json_key(place, "pool")) return "NO_SLOT";
    return json_integer(json_key(place, "workers"), 0) > 0 ? "WORKERS_BUSY" : "NO_WORKER";
}

int64_t place_since(const struct json *place, int64_t otherwise)
{
    int64_t ms;
    return place && civil_parse(json_text(json_key(place, "since")), &ms) ? ms : otherwise;
}

// " (held by run-1/load, run-2/load and 3 more)"
static void holders_told(struct buf *out, const struct json *of)
{
    enum { NAMED = 3 };
    const struct json *list = json_key(of, "holders");
    uint32_t named = json_is(list, JSON_ARRAY) ? list->count : 0, shown = named < NAMED ? named : NAMED;
    int64_t more = json_integer(json_key(of, "others"), 0) + (named - shown);
    if (shown == 0 && more == 0) return;
    buf_text(out, shown ? ", held by " : "");
    for (uint32_t i = 0; i < shown; i++) {
        struct str step = json_text(json_key(&list->items[i], "stepId"));
        buf_printf(out, "%s%.*s%s%.*s", i ? ", " : "", STR_ARG(json_text(json_key(&list->items[i], "runId"))),
                   step.len ? "/" : "", STR_ARG(step));
    }
    if (more > 0 && shown) buf_printf(out, " and %lld more", (long long)more);
    if (more > 0 && !shown) buf_printf(out, ", held by %lld other%s", (long long)more, more == 1 ? "" : "s");
}

static void since_now_told(struct maker *m, struct buf *out, const struct json *place)
{
    char text[24];
    int64_t since = place_since(place, m->now_ms);
    if (m->now_ms <= since) return;
    duration_format(m->now_ms - since, text);
    buf_printf(out, ", for %s", text);
}

static void limit_told(struct buf *out, const struct json *place)
{
    struct str name = json_text(json_key(place, "limit")), rate = json_text(json_key(place, "rate"));
    int64_t slots = json_integer(json_key(place, "slots"), 0), due;
    buf_printf(out, ": it waits for limit %.*s as number %lld", STR_ARG(name),
               (long long)json_integer(json_key(place, "position"), 0));
    if (civil_parse(json_text(json_key(place, "nextStartAt")), &due)) {
        char text[CIVIL_SIZE];
        civil_format(due, text);
        buf_printf(out, "; its rate (%.*s) is used up until %s", STR_ARG(rate), text);
        return;
    }
    if (slots > 0)
        buf_printf(out, "; its %lld place%s (concurrency) %s taken", (long long)slots, slots == 1 ? "" : "s",
                   slots == 1 ? "is" : "are");
    holders_told(out, place);
}

void place_told(struct maker *m, struct buf *out, const struct json *place)
{
    struct str pool = json_text(json_key(place, "pool"));
    int64_t position = json_integer(json_key(place, "position"), 0), slots = json_integer(json_key(place, "slots"), 0);
    int64_t workers = json_integer(json_key(place, "workers"), 0);
    buf_text(out, " is queued");
    since_now_told(m, out, place);
    if (json_key(place, "limit")) {
        limit_told(out, place);
        return;
    }
    if (pool.len == 0) {
        buf_printf(out, ": it waits for a slot");
        if (position > 0) buf_printf(out, " as number %lld", (long long)position);
        if (slots > 0)
            buf_printf(out, "; %s %lld (--concurrency) %s taken", slots == 1 ? "the" : "all", (long long)slots,
                       slots == 1 ? "is" : "are");
        holders_told(out, place);
        return;
    }
    buf_printf(out, ": it waits for a worker of pool %.*s as number %lld", STR_ARG(pool), (long long)position);
    if (workers == 0) {
        buf_text(out, "; no worker serves this pool");
        return;
    }
    buf_printf(out, "; %lld worker%s with %lld slot%s serve%s it", (long long)workers, workers == 1 ? "" : "s",
               (long long)slots, slots == 1 ? "" : "s", workers == 1 ? "s" : "");
    holders_told(out, place);
}

bool queue_told(struct maker *m, struct buf *out)
{
    const struct json *queue = json_key(m->e->present, "queue");
    struct str by = json_text(json_key(queue, "limitedBy"));
    int64_t limit = json_integer(json_key(queue, "limit"), 0);
    if (!json_is(queue, JSON_OBJECT)) return false;
    buf_printf(out, " waits in queue %.*s as number %lld of %lld", STR_ARG(json_text(json_key(queue, "name"))),
               (long long)json_integer(json_key(queue, "position"), 0),
               (long long)json_integer(json_key(queue, "waiting"), 0));
    if (str_is(by, "PAUSED"))
        buf_text(out, "; the queue is paused");
    else if (str_is(by, "QUEUE"))
        buf_printf(out, "; its %lld place%s (maxRunning) %s taken", (long long)limit, limit == 1 ? "" : "s",
                   limit == 1 ? "is" : "are");
    else if (str_is(by, "TENANT"))
        buf_printf(out, "; the %lld run%s that the tenant may have in flight (runsInFlight) %s taken", (long long)limit,
                   limit == 1 ? "" : "s", limit == 1 ? "is" : "are");
    else if (str_is(by, "SERVICE"))
        buf_printf(out, "; the %lld run%s that the service takes (--max-runs) %s taken", (long long)limit,
                   limit == 1 ? "" : "s", limit == 1 ? "is" : "are");
    else
        buf_text(out, "; it gets its place with the next pass");
    holders_told(out, queue);
    return true;
}

void put_present(struct maker *m, struct json *out, const struct view_of_step *v)
{
    const struct json *place = v && v->note && v->note->state == NODE_RUNNING ? place_now(m->e, v) : NULL;
    const struct json *queue = json_key(m->e->present, "queue");
    bool queued = run_queued(m->e->run) && json_is(queue, JSON_OBJECT);
    JSON_ADD(m->arena, out, {"place", place ? *place : json_none()}, {"queue", queued ? *queue : json_none()});
}
