// Definitions: documents under their names and the hashes of their bytes.
#include "api/inside.h"

static struct definition_call definition_of(struct ask *ask)
{
    const struct auth_object *place = &ask->call->place;
    return (struct definition_call){.name = ask->params[0],
                                    .sha256 = ask->params[1],
                                    .project = place->project,
                                    .environment = place->environment,
                                    .text = ask->request->body};
}

bool handle_definition_put(struct ask *ask)
{
    struct definition_call definition = definition_of(ask);
    return service_definition_put(ask->call, &definition);
}

bool handle_definition_approve(struct ask *ask)
{
    struct definition_call definition = definition_of(ask);
    return service_definition_approve(ask->call, &definition);
}

// ---- one

static bool find(struct ask *ask, struct store *store, struct json *out)
{
    struct call *call = ask->call;
    struct error err = {0};
    uint64_t version;
    call->resource = call_text(call, "%.*s/%.*s", STR_ARG(ask->params[0]), STR_ARG(ask->params[1]));
    if (!call->resource.ptr) return call_nomem(call);
    enum code rc = definition_read(call, store, ask->params[0], ask->params[1], out, &version, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    struct auth_object object = definition_object(call, rc ? NULL : out);
    return service_may(call, OPERATION_PLAN_GET, &object, (struct str){0});
}

static bool tell_definition(struct call *call, struct store *store)
{
    struct json definition = {0};
    if (!find(call->context, store, &definition)) return false;
    call->answer.etag = call_text(call, "\"%.*s\"", STR_ARG(((struct ask *)call->context)->params[1]));
    return call_answer(call, 200, definition);
}

static bool tell_document(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct json definition;
    struct error err = {0};
    struct str text;
    if (!find(ask, store, &definition)) return false;
    if (service_definition_text(call, store, ask->params[1], &text, &err)) return call_failed(call, &err);
    call->answer.etag = call_text(call, "\"%.*s\"", STR_ARG(ask->params[1]));
    return answer_text(ask, 200, "application/octet-stream", text);
}

bool handle_definition_get(struct ask *ask)
{
    return service_read(ask->call, tell_definition);
}

bool handle_definition_document(struct ask *ask)
{
    return service_read(ask->call, tell_document);
}

// ---- all of a tenant, or of one name

struct listing {
    struct str prefix, after; // keys of the notes
    size_t limit;
};

// Up to `limit` definitions; *next is where to go on, empty at the end.
static enum code collect(struct ask *ask, struct store *store, struct json *items, struct str *next, struct error *err)
{
    struct call *call = ask->call;
    const struct listing *listing = ask->state;
    struct str after = listing->after;
    size_t count = 0;
    for (;;) {
        struct notes notes;
        enum code rc = store_notes(store, STR("definition"), after, PAGE_MAX, &call->arena, &notes, err);
        for (size_t i = 0; !rc && i < notes.count; i++) {
            struct json value;
            if (!str_starts(notes.items[i].key, listing->prefix)) return OK;
            if (count == listing->limit) {
                *next = after;
                return OK;
            }
            after = notes.items[i].key;
            rc = json_parse(notes.items[i].value, NULL, &call->arena, &value, err);
            if (rc) return rc;
            struct auth_object object = definition_object(call, &value);
            struct run_ids ids = {
                .tenant = object.tenant, .project = object.project, .environment = object.environment};
            if (!service_sees(call, &ids)) continue;
            if (!json_push(&call->arena, items, value)) return error_nomem(err);
            count++;
        }
        if (rc || notes.count == 0) return rc;
    }
}

static bool tell_list(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct json items = json_array();
    struct error err = {0};
    struct str next = {0};
    if (collect(ask, store, &items, &next, &err)) return call_failed(call, &err);
    return answer_page(ask, items, next);
}

bool handle_definition_list(struct ask *ask)
{
    struct call *call = ask->call;
    struct listing *listing = ARENA_NEW(&call->arena, struct listing);
    int64_t limit;
    if (!listing) return call_nomem(ask->call);
    if (!service_may_all(call, OPERATION_PLAN_LIST) || !query_number(ask, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit) ||
        !query_cursor(ask, &listing->after))
        return false;
    struct str name = definition_key(call, ask->params[0]);
    if (ask->params[0].len && !name.ptr) return call_nomem(call);
    listing->prefix = name.len ? call_text(call, "%.*s/%.*s/", STR_ARG(call->who.tenant), STR_ARG(name))
                               : call_text(call, "%.*s/", STR_ARG(call->who.tenant));
    if (listing->after.len == 0) listing->after = listing->prefix;
    listing->limit = (size_t)limit;
    ask->state = listing;
    return service_read(call, tell_list);
}
