// What workers send is held against what is published (schemas/openapi-components.json) before anything is decided about it: the call as
// a whole, then each of its elements for itself, so that one that is wrong costs no other.
#include "base/text.h"
#include "remote/inside.h"

#include <stdio.h>

static const struct {
    const char *call, *element, *list;
} doors[] = {
    [REMOTE_POLL] = {"WorkerPoll", NULL, NULL},
    [REMOTE_HEARTBEAT] = {"WorkerHeartbeat", NULL, NULL},
    [REMOTE_LOGS] = {"WorkerLogs", "WorkerChunk", "chunks"},
    [REMOTE_COMPLETE] = {"WorkerResults", "WorkerResult", "results"},
    [REMOTE_FAIL] = {"WorkerResults", "WorkerFailure", "results"},
    [REMOTE_EVENTS] = {"WorkerEvents", "WorkerEvent", "events"},
};
_Static_assert(ARRAY_COUNT(doors) == REMOTE_CALLS, "a door for each call");

static enum code compile(struct remote *r, struct schema_set *set, const char *name, const struct schema **out,
                         struct error *err)
{
    if (!name) return OK;
    struct str uri = arena_format(&r->door_memory, "openapi.json#/components/schemas/%s", name);
    return uri.ptr ? schema_compile(set, uri, out, err) : error_nomem(err);
}

enum code doors_open(struct remote *r, struct error *err)
{
    struct schema_set *set;
    arena_init(&r->door_memory, 65536, (size_t)16 << 20);
    if (schema_set_open(&r->door_memory, &set)) return error_nomem(err);
    enum code rc = schema_set_components(set, &r->door_memory, NULL, err);
    for (size_t i = REMOTE_POLL; !rc && i < REMOTE_CALLS; i++) {
        rc = compile(r, set, doors[i].call, &r->calls[i], err);
        if (!rc) rc = compile(r, set, doors[i].element, &r->elements[i], err);
    }
    return rc ? rc : compile(r, set, "OldWorkerEvent", &r->old_event, err);
}

const struct refusal *refusal_new(struct arena *arena, int status, const char *code, const char *pointer,
                                  const char *message)
{
    static const struct refusal none = {.status = 503, .code = "UNAVAILABLE", .message = "no memory"};
    struct refusal *refusal = ARENA_NEW(arena, struct refusal);
    if (!refusal) return &none;
    refusal->status = status;
    snprintf(refusal->code, sizeof(refusal->code), "%s", code);
    snprintf(refusal->pointer, sizeof(refusal->pointer), "%s", pointer);
    snprintf(refusal->message, sizeof(refusal->message), "%s", message);
    return refusal;
}

static const struct refusal *hold_against(const struct worker_call *call, const struct schema *schema,
                                          const struct json *value, const char *place)
{
    struct schema_fault fault;
    char pointer[REFUSAL_POINTER_MAX];
    if (schema_valid(schema, value, &fault)) return NULL;
    snprintf(pointer, sizeof(pointer), "%s%s", place, fault.pointer);
    return refusal_new(call->arena, 400, SCHEMA_REFUSAL, pointer, fault.message);
}

const struct refusal *call_check(const struct remote *r, const struct worker_call *call)
{
    const struct refusal *refusal = hold_against(call, r->calls[call->kind], &call->body, "");
    if (!refusal && call->worker.len > WORKER_NAME_MAX) // schemas count characters
        refusal = refusal_new(call->arena, 400, SCHEMA_REFUSAL, "/worker", "must not be longer than 128 bytes");
    return refusal;
}

const struct json *call_elements(const struct worker_call *call, size_t *count)
{
    const struct json *list = json_key(&call->body, doors[call->kind].list);
    INVARIANT(json_is(list, JSON_ARRAY));
    *count = list->count;
    return list->items;
}

const struct refusal *element_check(const struct remote *r, const struct worker_call *call, size_t index)
{
    size_t count;
    char place[64];
    const struct json *element = &call_elements(call, &count)[index];
    const struct schema *schema = r->elements[call->kind];
    if (call->kind == REMOTE_EVENTS && json_is(json_key(element, "event_id"), JSON_STRING) && noetl_is_old(element))
        schema = r->old_event;
    snprintf(place, sizeof(place), "/%s/%zu", doors[call->kind].list, index);
    return hold_against(call, schema, element, place);
}
