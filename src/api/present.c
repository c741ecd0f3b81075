// What only the present knows of a run: which of its attempts wait for a slot or a worker, where it stands in its queue.
#include "api/inside.h"

bool present_of(struct ask *ask, const struct run_head *head, uint64_t at, struct json *out)
{
    struct call *call = ask->call;
    struct arena *arena = &call->arena;
    enum run_status status = head->summary.status;
    bool waits = status == RUN_STATUS_PENDING || status == RUN_STATUS_APPROVED;
    *out = json_none();
    if (at != READING_NOW || head->terminal) return true;
    if (waits && call->queue_place.type == 0) {
        with_queue_place(ask);
        return false;
    }
    bool queued = json_is(&call->queue_place, JSON_OBJECT);
    struct json attempts = waits ? json_array() : service_places(call, &head->ids);
    *out = JSON_OF(arena, {"runId", json_some(head->ids.run)}, {"attempts", attempts},
                   {"queue", json_when(queued, call->queue_place)});
    return true;
}

static void put_place(struct ask *ask, const struct json *place, struct json *steps)
{
    struct str step = json_text(json_key(place, "stepId"));
    for (uint32_t i = 0; i < steps->count; i++)
        if (str_eq(json_text(json_key(&steps->items[i], "stepId")), step))
            JSON_ADD(&ask->call->arena, &steps->items[i], {"place", *place});
}

void present_into(struct ask *ask, const struct json *present, struct json *snapshot)
{
    const struct json *places = json_key(present, "attempts"), *queue = json_key(present, "queue");
    for (uint32_t i = 0; i < snapshot->count; i++) {
        if (!str_is(snapshot->members[i].key, "steps")) continue;
        for (uint32_t k = 0; places && k < places->count; k++)
            put_place(ask, &places->items[k], &snapshot->members[i].value);
    }
    if (queue) JSON_ADD(&ask->call->arena, snapshot, {"queue", *queue});
}

bool tell_places(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct arena *arena = &ask->call->arena;
    struct json present;
    (void)store;
    if (!present_of(ask, head, READING_NOW, &present)) return false;
    if (present.type == 0)
        present = JSON_OF(arena, {"runId", json_some(head->ids.run)}, {"attempts", json_array()});
    return call_answer(ask->call, 200, present);
}
