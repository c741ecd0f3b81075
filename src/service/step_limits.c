// Limits of steps (docs/format/limits.md): what the service says of them, and who has their places. Both are notes that engines read
// (engine/permits.c); nothing of them is kept here.
#include "service/inside.h"

struct limit_call {
    struct str name;
    struct json given;
    struct step_limit limit;
    struct str value;
    bool remove;
};

static struct limit_call *begin(struct call *call, enum operation operation, struct str name)
{
    struct limit_call *state = ARENA_NEW(&call->arena, struct limit_call);
    if (!state || !(state->name = arena_copy(&call->arena, name)).ptr) {
        call_nomem(call);
        return NULL;
    }
    call->state = state;
    call->resource = state->name;
    if (!service_may_all(call, operation)) return NULL;
    if (name.len == 0 || limit_name_valid(name)) return state;
    call_problem(call, 400, "INVALID_REQUEST",
                 "the name of a limit has letters, digits, '.', '_', ':' and '-', up to 128, beginning with a letter or digit");
    return NULL;
}

// ---- looking

struct limit_seen {
    struct call *call;
    struct str name;
    size_t waiting; // at this engine
};

static void waiting_seen(void *context, const struct tool_place *place)
{
    struct limit_seen *seen = context;
    seen->waiting += str_eq(place->limit, seen->name) && str_eq(place->tenant, seen->call->who.tenant);
}

struct places_read {
    struct call *call;
    struct json list;
    size_t count;
    size_t prefix;
    int64_t since_ms; // starts after that count
    size_t starts;
};

static enum code place_read(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct places_read *read = context;
    struct arena *arena = &read->call->arena;
    struct json value;
    bool rate = note->key.ptr[read->prefix] == 'r';
    enum code rc = json_parse(note->value, &json_limits_record, rate ? scratch : arena, &value, err);
    if (rc) return rc;
    const struct json *at = rate ? json_key(&value, "at") : NULL;
    for (uint32_t i = 0; json_is(at, JSON_ARRAY) && i < at->count; i++)
        read->starts += json_integer(&at->items[i], 0) > read->since_ms;
    if (rate) return OK;
    read->count++;
    struct json place;
    if (!json_copy(arena, &value, &place)) return error_nomem(err);
    if (!service_is_narrow(read->call)) json_append(arena, &read->list, place);
    return json_ok(&read->list) ? OK : error_nomem(err);
}

// E_NOT_FOUND: the service says nothing of it, and no attempt has a place under it or waits for one here.
static enum code limit_json(struct call *call, struct store *store, struct str name, struct json *out, struct error *err)
{
    struct arena *arena = &call->arena;
    struct step_limit limit = {.name = name};
    struct note note;
    struct json value;
    struct str key = call_text(call, "%.*s|%.*s", STR_ARG(call->who.tenant), STR_ARG(name));
    struct str prefix = call_text(call, "%.*s|%.*s|", STR_ARG(call->who.tenant), STR_ARG(name));
    if (!key.ptr || !prefix.ptr) return error_nomem(err);
    enum code rc = store_note(store, ENGINE_LIMIT_SPACE, key, arena, &note, err);
    bool set = rc == OK;
    if (set) rc = json_parse(note.value, &json_limits_record, arena, &value, err);
    if (set && !rc) rc = step_limit_read(&value, &limit, err);
    if (rc && rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    struct places_read read = {.call = call, .list = json_array(), .prefix = prefix.len, .since_ms = os_now().wall_ms - limit.per_ms};
    rc = store_each_note(store, ENGINE_PERMIT_SPACE, prefix, place_read, &read, err);
    if (rc) return rc;
    struct limit_seen seen = {.call = call, .name = name};
    engine_places(call->service->engine, waiting_seen, &seen);
    if (!set && read.count == 0 && seen.waiting == 0) return error_set(err, E_NOT_FOUND, "there is no limit %.*s", STR_ARG(name));
    *out = JSON_OF(arena, {"name", json_copied(arena, name)}, {"set", json_bool(set)},
                   {"concurrency", set && json_key(&value, "concurrency") ? json_count(limit.concurrency) : json_none()},
                   {"rate", set && json_key(&value, "rate") ? *json_key(&value, "rate") : json_none()},
                   {"inUse", json_count(read.count)}, {"waiting", json_count(seen.waiting)},
                   {"startsInRate", json_when(limit.starts > 0, json_count(read.starts))},
                   {"holders", json_filled(read.list)});
    return json_ok(out) ? OK : error_nomem(err);
}

static bool answer_limit(struct call *call, struct store *store)
{
    const struct limit_call *state = call->state;
    struct json body;
    struct error err = {0};
    enum code rc = limit_json(call, store, state->name, &body, &err);
    if (rc == E_NOT_FOUND) return call_problem(call, 404, "LIMIT_NOT_FOUND", "there is no limit %.*s", STR_ARG(state->name));
    return rc ? call_failed(call, &err) : call_answer(call, 200, body);
}

bool service_step_limit_get(struct call *call, struct str name)
{
    return begin(call, OPERATION_LIMIT_LIST, name) && service_read(call, answer_limit);
}

struct names_read {
    struct call *call;
    struct str *items;
    size_t count, capacity, prefix;
};

static bool name_add(struct names_read *names, struct str name)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->items[i], name)) return true;
    if (!ARENA_ROOM(&names->call->arena, names->items, names->count, &names->capacity)) return false;
    struct str *item = &names->items[names->count];
    *item = arena_copy(&names->call->arena, name);
    names->count += item->ptr != NULL;
    return item->ptr != NULL;
}

static enum code name_read(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct names_read *names = context;
    struct str rest, name = str_cut(str_slice(note->key, names->prefix, note->key.len), '|', &rest);
    (void)scratch;
    return name_add(names, name) ? OK : error_nomem(err);
}

static void name_waiting(void *context, const struct tool_place *place)
{
    struct names_read *names = context;
    if (place->limit.len && str_eq(place->tenant, names->call->who.tenant)) (void)name_add(names, place->limit);
}

static bool answer_limits(struct call *call, struct store *store)
{
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    struct names_read names = {.call = call, .prefix = prefix.len};
    struct error err = {0};
    struct json items = json_array();
    if (!prefix.ptr) return call_nomem(call);
    enum code rc = store_each_note(store, ENGINE_LIMIT_SPACE, prefix, name_read, &names, &err);
    if (!rc) rc = store_each_note(store, ENGINE_PERMIT_SPACE, prefix, name_read, &names, &err);
    engine_places(call->service->engine, name_waiting, &names);
    for (size_t i = 0; !rc && i < names.count; i++) {
        struct json item;
        rc = limit_json(call, store, names.items[i], &item, &err);
        if (!rc) json_append(&call->arena, &items, item);
        if (rc == E_NOT_FOUND) rc = OK; // its last attempt has just ended
    }
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, JSON_OF(&call->arena, {"items", items}, {"nextCursor", json_null()}));
}

bool service_step_limit_list(struct call *call)
{
    return begin(call, OPERATION_LIMIT_LIST, (struct str){0}) && service_read(call, answer_limits);
}

// ---- changing

static void limit_stored(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    const struct limit_call *state = call->state;
    if (rc) {
        call_failed(call, why);
    } else if (state->remove) {
        call->answer.status = 204;
        call->done(call);
    } else {
        service_read(call, answer_limit);
    }
}

static bool store_limit(struct call *call)
{
    struct limit_call *state = call->state;
    struct error err = {0};
    struct note_put put = {.space = ENGINE_LIMIT_SPACE,
                           .key = call_text(call, "%.*s|%.*s", STR_ARG(call->who.tenant), STR_ARG(state->name)),
                           .value = state->value,
                           .remove = state->remove,
                           .expect = NOTE_ANY};
    enum code rc = put.key.ptr ? audit_call(call, OPERATION_LIMIT_CHANGE, state->name, (struct str){0}, &err) : error_nomem(&err);
    if (!rc) rc = engine_put(call->service->engine, &put, 1, limit_stored, call, &err);
    return rc ? call_failed(call, &err) : true;
}

bool service_step_limit_put(struct call *call, struct str name, struct json given)
{
    struct limit_call *state = begin(call, OPERATION_LIMIT_CHANGE, name);
    struct error err = {0};
    if (!state) return false;
    if (step_limit_read(&given, &state->limit, &err)) return call_problem(call, 400, "INVALID_REQUEST", "%s", err.message);
    if (given.count == 0) return call_problem(call, 400, "INVALID_REQUEST", "a limit has concurrency, rate, or both");
    struct buf text = buf_of(4096);
    json_canon(&text, &given);
    state->value = buf_keep(&text, &call->arena);
    return state->value.ptr ? service_post(call, store_limit) : call_nomem(call);
}

static bool remove_limit(struct call *call, struct store *store)
{
    const struct limit_call *state = call->state;
    struct error err = {0};
    struct note note;
    struct str key = call_text(call, "%.*s|%.*s", STR_ARG(call->who.tenant), STR_ARG(state->name));
    enum code rc = key.ptr ? store_note(store, ENGINE_LIMIT_SPACE, key, &call->arena, &note, &err) : error_nomem(&err);
    if (rc == E_NOT_FOUND)
        return call_problem(call, 404, "LIMIT_NOT_FOUND", "the service says nothing of a limit %.*s", STR_ARG(state->name));
    return rc ? call_failed(call, &err) : service_post(call, store_limit);
}

bool service_step_limit_delete(struct call *call, struct str name)
{
    struct limit_call *state = begin(call, OPERATION_LIMIT_CHANGE, name);
    if (!state) return false;
    state->remove = true;
    return service_read(call, remove_limit);
}
