// Where a run and its attempts wait: for a place in a queue, for a slot, for a worker; and who has what they wait for. Only the present
// knows; nothing of it is in the log. A caller gets the names of runs of its own tenant alone, and
// none when its token is for a part of the tenant.
#include "service/inside.h"

enum { HOLDERS_MAX = 5, PLACES_MAX = 200 };

struct holders {
    struct json list;
    size_t others; // that are not named
};

struct places {
    struct call *call;
    const struct run_ids *ids;
    struct moment_in_time now;
    struct json list;
    // The second look: the runs that have the places that this one waits for.
    const struct tool_place *waiting;
    struct holders holders;
};

static struct json since_json(const struct places *p, int64_t since_ms)
{
    return json_time_some(&p->call->arena, p->now.wall_ms - (p->now.mono_ms - since_ms));
}

static bool is_named(const struct places *p, const struct tool_place *place)
{
    return str_eq(place->tenant, p->ids->tenant) && p->holders.list.count < HOLDERS_MAX && !service_is_narrow(p->call);
}

static void hold_seen(void *context, const struct tool_place *place)
{
    struct places *p = context;
    struct arena *arena = &p->call->arena;
    const struct tool_place *waiting = p->waiting;
    if (place->waits || place->among != waiting->among || !str_eq(place->pool, waiting->pool)) return;
    if (!is_named(p, place)) {
        p->holders.others++;
        return;
    }
    json_append(arena, &p->holders.list,
                JSON_OF(arena, {"runId", json_copied(arena, place->run)}, {"stepId", json_copied(arena, place->step)},
                        {"since", since_json(p, place->since_ms)}));
}

static struct json rate_json(struct arena *arena, const struct tool_place *place)
{
    struct step_limit limit = {.starts = place->starts, .per_ms = place->per_ms};
    if (place->starts == 0) return json_none();
    struct buf text = buf_of(64);
    limit_rate_write(&limit, &text);
    return json_text_made(buf_keep(&text, arena));
}

static struct json place_json(struct places *p, const struct tool_place *place)
{
    struct arena *arena = &p->call->arena;
    return JSON_OF(arena, {"stepId", json_copied(arena, place->step)}, {"logicalAttemptId", json_int(place->logical)},
                   {"engineAttemptId", json_int(place->engine)},
                   {"state", json_word(place->waits ? "QUEUED" : "EXECUTING")},
                   {"since", since_json(p, place->since_ms)}, {"pool", json_copied_some(arena, place->pool)},
                   {"worker", json_copied_some(arena, place->worker)},
                   {"position", json_when(place->waits, json_count(place->position))},
                   {"limit", json_copied_some(arena, place->limit)},
                   {"slots", json_when(place->waits && (place->slots > 0 || !place->limit.len), json_count(place->slots))},
                   {"rate", rate_json(arena, place)}, {"nextStartAt", json_time_some(arena, place->next_start_ms)},
                   {"workers", json_when(place->waits && place->pool.len > 0, json_count(place->workers))});
}

struct found_place {
    struct tool_place place;
    struct json json;
};
struct finding {
    struct places *places;
    struct found_place *at;
    size_t count;
};

static void place_seen(void *context, const struct tool_place *place)
{
    struct finding *finding = context;
    const struct run_ids *ids = finding->places->ids;
    if (!str_eq(place->run, ids->run) || !str_eq(place->tenant, ids->tenant) || finding->count == PLACES_MAX) return;
    struct found_place *found = &finding->at[finding->count++];
    found->place = *place;
    found->json = place_json(finding->places, place);
    found->place.pool = json_text(json_key(&found->json, "pool")); // a copy that stays
}

// Those that share their places have the same holders: the last ones are kept.
static void look_for_holders(struct places *p, const struct tool_place *waiting)
{
    const struct tool_place *last = p->waiting;
    p->waiting = waiting;
    if (last && last->among == waiting->among && str_eq(last->pool, waiting->pool)) return;
    p->holders = (struct holders){.list = json_array()};
    if (waiting->limit.len)
        engine_limit_holders(p->call->service->engine, hold_seen, p);
    else
        engine_places(p->call->service->engine, hold_seen, p);
}

struct json service_places(struct call *call, const struct run_ids *ids)
{
    struct arena *arena = &call->arena;
    struct places p = {.call = call, .ids = ids, .now = os_now(), .list = json_array()};
    struct finding finding = {.places = &p, .at = ARENA_ARRAY(arena, PLACES_MAX, struct found_place)};
    if (!finding.at) return json_failed();
    engine_places(call->service->engine, place_seen, &finding);
    for (size_t i = 0; i < finding.count; i++) {
        struct found_place *found = &finding.at[i];
        if (found->place.waits) {
            look_for_holders(&p, &found->place);
            JSON_ADD(arena, &found->json, {"holders", json_filled(p.holders.list)},
                     {"others", json_nonzero((int64_t)p.holders.others)});
        }
        json_append(arena, &p.list, found->json);
    }
    return p.list;
}

// ---- the place of the run in its queue

struct queue_holders {
    struct call *call;
    const struct run_queue *queue; // NULL: any of the tenant
    struct holders holders;
};

static void holder_seen(void *context, struct run_queue *queue, struct str run, enum queue_state place,
                        struct run_slots *slots)
{
    struct queue_holders *h = context;
    struct arena *arena = &h->call->arena;
    (void)slots;
    if (place != QUEUE_RUNNING || (h->queue && queue != h->queue)) return;
    bool own = str_eq(queue->tenant->name, h->call->who.tenant);
    if (own && h->holders.list.count < HOLDERS_MAX && !service_is_narrow(h->call))
        json_append(arena, &h->holders.list, JSON_OF(arena, {"runId", json_copied(arena, run)}));
    else
        h->holders.others++;
}

// What keeps the run from its place; *limit is how many there are.
static const char *limited_by(const struct queues *queues, const struct run_queue *queue, size_t *limit)
{
    const struct queue_tenant *tenant = queue->tenant;
    *limit = queue->config.max_running;
    if (queue->config.paused) return "PAUSED";
    if (*limit && queue->running + queue->share.elsewhere >= *limit) return "QUEUE";
    *limit = tenant->limits.runs_in_flight;
    if (*limit && tenant->running + tenant->share.elsewhere >= *limit) return "TENANT";
    *limit = queues->running_max;
    if (*limit && queues->running >= *limit) return "SERVICE";
    *limit = 0;
    return "TURN"; // it is given its place with the next pass, or others are before it
}

static struct json queue_place(struct call *call, struct str run)
{
    struct arena *arena = &call->arena;
    const struct queues *queues = &call->service->queues;
    struct run_queue *queue = NULL;
    enum queue_state state = QUEUE_NONE;
    size_t limit;
    if (!queues_slots(queues, call->who.tenant, run, &queue, &state) || state != QUEUE_WAITING) return json_none();
    const char *by = limited_by(queues, queue, &limit);
    bool of_queue = str_is(str_from(by), "QUEUE"), of_tenant = str_is(str_from(by), "TENANT");
    struct queue_holders h = {.call = call, .queue = of_queue ? queue : NULL, .holders = {.list = json_array()}};
    if (limit) queues_each(queues, &h, holder_seen);
    if (of_queue) h.holders.others += queue->share.elsewhere;
    if (of_tenant) h.holders.others += queue->tenant->share.elsewhere;
    size_t position = queues_position(queues, call->who.tenant, run);
    return JSON_OF(arena, {"name", json_copied(arena, queue->name)}, {"position", json_count(position)},
                   {"waiting", json_count(queue->waiting + queue->share.waiting)},
                   {"running", json_count(queue->running + queue->share.elsewhere)}, {"limitedBy", json_word(by)},
                   {"limit", json_nonzero((int64_t)limit)}, {"paused", json_flag(queue->config.paused)},
                   {"holders", json_filled(h.holders.list)}, {"others", json_nonzero((int64_t)h.holders.others)});
}

static bool place_on_engine(struct call *call)
{
    call->queue_place = queue_place(call, call->resource);
    if (call->queue_place.type == 0) call->queue_place = json_null();
    return service_read(call, call->read);
}

bool service_queue_place(struct call *call, bool (*then)(struct call *call, struct store *store))
{
    call->read = then;
    return service_post(call, place_on_engine);
}
