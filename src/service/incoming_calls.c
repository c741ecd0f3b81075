// What people and programs do with events from outside: send one, look at those that are kept.
#include "service/incoming.h"

enum { LIST_MAX = 1000, LIST_USUAL = 50 };

struct sending {
    struct incoming_event event;
};

static bool in_place(const struct incoming_event *event, struct str project, struct str environment)
{
    return str_eq(event->project, project) && str_eq(event->environment, environment);
}

// The event of a place with such an id, also one that was kept when ids were of the tenant. E_NOT_FOUND.
static enum code find(struct call *call, struct store *store, const struct auth_object *place, struct str id,
                      struct incoming_event *out, struct error *err)
{
    struct arena *arena = &call->arena;
    struct str slot = incoming_slot(arena, place->project, place->environment, id);
    struct note note;
    int last = str_eq(slot, id) ? 1 : 0;
    for (int whole = 1; whole >= last; whole--) {
        struct str key = incoming_key(arena, call->who.tenant, whole ? slot : id);
        if (!slot.ptr || !key.ptr) return error_nomem(err);
        enum code rc = store_note(store, INCOMING_SPACE, key, arena, &note, err);
        if (!rc) rc = incoming_read(&note, arena, out, err);
        if (!rc && !in_place(out, place->project, place->environment)) rc = E_NOT_FOUND;
        if (rc != E_NOT_FOUND) return rc;
    }
    return error_set(err, E_NOT_FOUND, "there is no such event");
}

// ---- send

static bool tell_one(struct call *call, int status, const struct incoming_event *event)
{
    bool usual = str_is(event->project, "default") && str_is(event->environment, "default");
    call->answer.location = usual ? call_text(call, "/v1/incoming/%.*s", STR_ARG(event->id))
                                  : call_text(call, "/v1/t/%.*s/p/%.*s/e/%.*s/incoming/%.*s", STR_ARG(event->tenant),
                                              STR_ARG(event->project), STR_ARG(event->environment), STR_ARG(event->id));
    return call_answer(call, status, incoming_json(&call->arena, event));
}

// The same id means the same event: the answer says what became of it. Another one under its id is a mistake of the sender.
static bool was_there(struct call *call, const struct incoming_event *before)
{
    const struct sending *sending = call->state;
    const struct incoming_event *now = &sending->event;
    bool same = str_eq(before->name, now->name) && str_eq(before->correlation, now->correlation) &&
                (before->data.type == 0) == (now->data.type == 0) &&
                (now->data.type == 0 || json_equal(&before->data, &now->data));
    if (!same) return call_problem(call, 409, "EVENT_DUPLICATE", "this id was used for another event");
    call->answer.replayed = true;
    return tell_one(call, 200, before);
}

static enum code find_before(struct call *call, struct store *store, struct incoming_event *out, struct error *err)
{
    const struct incoming_event *now = &((const struct sending *)call->state)->event;
    return find(call, store, &(struct auth_object){.project = now->project, .environment = now->environment}, now->id, out, err);
}

static bool look_again(struct call *call, struct store *store)
{
    struct incoming_event before;
    struct error err = {0};
    enum code rc = find_before(call, store, &before, &err);
    if (rc == E_NOT_FOUND) return call_problem(call, 409, "CONFLICT", "the event came twice at the same time: send it again");
    return rc ? call_failed(call, &err) : was_there(call, &before);
}

static void stored(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    const struct sending *sending = call->state;
    if (rc == E_CONFLICT && !store_fenced(call->service->store)) {
        service_read(call, look_again);
        return;
    }
    if (rc) {
        call_failed(call, why);
        return;
    }
    incoming_awaited(call->service);
    tell_one(call, 202, &sending->event);
}

static bool put_event(struct call *call)
{
    struct service *service = call->service;
    struct sending *sending = call->state;
    struct incoming_event *event = &sending->event;
    struct arena *arena = &call->arena;
    struct error err = {0};
    struct rate_rule rule = {"events", 20000, 1};
    if (!limits_take(call, &rule, call->who.tenant, "EVENTS_RATE_LIMITED")) return false;
    struct note_put puts[] = {
        incoming_note(arena, event, 0),
        {.space = INCOMING_OPEN_SPACE, .key = incoming_open_key(arena, event), .value = STR("{}"), .expect = 0}};
    enum code rc = puts[0].value.ptr && puts[1].key.ptr ? OK : error_nomem(&err);
    if (!rc) rc = audit_call(call, OPERATION_EVENT_SEND, event->name, (struct str){0}, &err);
    if (!rc) rc = engine_put(service->engine, puts, ARRAY_COUNT(puts), stored, call, &err);
    return rc ? call_failed(call, &err) : true;
}

// ---- how many are kept

struct tally {
    size_t count, max;
};

static enum code count_one(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct tally *counting = context;
    (void)note, (void)scratch;
    return ++counting->count > counting->max ? error_set(err, E_LIMIT, "enough") : OK;
}

// Of one tenant: events that no step takes must not fill the store. Counted now and then, so that a burst may pass it by a little.
static bool has_room(struct call *call, struct store *store)
{
    struct tally counting = {.max = call->service->settings.events_max};
    struct error err = {0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    enum code rc = prefix.ptr ? store_each_note(store, INCOMING_OPEN_SPACE, prefix, count_one, &counting, &err) : E_NOMEM;
    if (rc == E_LIMIT)
        return call_problem(call, 503, "EVENTS_FULL",
                            "%zu events are kept that nobody has taken; cairn event ls shows them (serve.events.max)",
                            counting.max);
    return rc ? call_failed(call, &err) : true;
}

static bool begin(struct call *call, struct store *store)
{
    struct incoming_event before;
    struct error err = {0};
    enum code rc = find_before(call, store, &before, &err);
    if (!rc) return was_there(call, &before);
    if (rc != E_NOT_FOUND) return call_failed(call, &err);
    return has_room(call, store) && service_post(call, put_event);
}

static bool is_event_id(struct str id)
{
    for (size_t i = 0; i < id.len; i++)
        if ((unsigned char)id.ptr[i] <= 0x20 || (unsigned char)id.ptr[i] >= 0x7F || id.ptr[i] == '|' || id.ptr[i] == '/') return false;
    return id.len > 0 && id.len <= INCOMING_ID_MAX;
}

static bool refuse(struct call *call, const char *what)
{
    return call_problem(call, 400, "EVENT_INVALID", "%s", what);
}

// Copied into the call: what was given lives with the request.
static bool keep(struct call *call, struct sending *sending, const struct incoming_call *given)
{
    struct incoming_event *e = &sending->event;
    struct arena *arena = &call->arena;
    char uuid[UUID_SIZE];
    entropy_uuid(os_entropy(), uuid);
    int64_t now = os_now().wall_ms;
    *e = (struct incoming_event){.tenant = call->who.tenant,
                                 .project = arena_copy(arena, given->project.len ? given->project : STR("default")),
                                 .environment = arena_copy(arena, given->environment.len ? given->environment : STR("default")),
                                 .id = arena_copy(arena, given->id.len ? given->id : str_from(uuid)),
                                 .name = arena_copy(arena, given->name),
                                 .correlation = arena_copy(arena, given->correlation),
                                 .source = arena_copy(arena, given->source),
                                 .by = call->who.id,
                                 .state = STR("KEPT"),
                                 .received_ms = now,
                                 .changed_ms = now};
    bool ok = e->project.ptr && e->environment.ptr && e->id.ptr && e->name.ptr;
    if (given->data) ok = ok && json_copy(arena, given->data, &e->data);
    e->slot = ok ? incoming_slot(arena, e->project, e->environment, e->id) : (struct str){0};
    return ok && e->slot.ptr;
}

bool service_event_send(struct call *call, const struct incoming_call *given)
{
    struct sending *sending = CALL_NEW(call, struct sending);
    if (!sending) return true;
    call->state = sending;
    if (!event_name_valid(given->name))
        return refuse(call, "the name of an event has letters, digits, '.', '_', ':', '/' and '-', up to 128");
    if (given->id.len > 0 && !is_event_id(given->id))
        return refuse(call, "the id of an event has up to 128 characters, no blanks, no '|' and no '/'");
    if (given->correlation.len > EVENT_CORRELATION_MAX) return refuse(call, "the correlation is longer than 256 bytes");
    if (given->source.len > 256) return refuse(call, "the source is longer than 256 bytes");
    if (!given->trusted && str_starts(given->source, STR("hook:")))
        return refuse(call, "a source that begins with hook: is a webhook's, which are known by their signature");
    if (given->data && !json_canon_kept(&call->arena, given->data, INCOMING_DATA_MAX).ptr)
        return call_problem(call, 413, "PAYLOAD_TOO_LARGE", "the data of an event has 48 KiB at most");
    if (!keep(call, sending, given)) return call_nomem(call);
    call->resource = sending->event.name;
    struct auth_object object = {.tenant = sending->event.tenant,
                                 .project = sending->event.project,
                                 .environment = sending->event.environment,
                                 .exists = true};
    if (!run_id_valid(sending->event.project) || !run_id_valid(sending->event.environment))
        return refuse(call, "projectId and environmentId have the form of a run id");
    if (!given->trusted && !service_may(call, OPERATION_EVENT_SEND, &object, (struct str){0})) return false;
    return service_read(call, begin);
}

// ---- look

struct listing {
    struct str name, state, id;
    size_t limit;
    struct call *call;
    struct json items;
};

static bool may_see(struct call *call, const struct incoming_event *event)
{
    struct run_ids ids = {.tenant = event->tenant, .project = event->project, .environment = event->environment};
    return service_sees(call, &ids);
}

static enum code list_one(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct listing *l = context;
    struct incoming_event event;
    enum code rc = incoming_read(note, scratch, &event, err);
    if (rc == E_NOMEM) return rc;
    *err = (struct error){0};
    if (rc || (l->name.len && !str_eq(l->name, event.name)) || (l->state.len && !str_eq(l->state, event.state)) ||
        !may_see(l->call, &event) || l->items.count >= l->limit)
        return OK;
    struct json one = incoming_json(scratch, &event), copy;
    if (!json_ok(&one) || !json_copy(&l->call->arena, &one, &copy)) return error_nomem(err);
    json_append(&l->call->arena, &l->items, copy);
    return json_made(&l->items, err);
}

static bool list(struct call *call, struct store *store)
{
    struct listing *l = call->state;
    struct error err = {0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    enum code rc = prefix.ptr ? store_each_note(store, INCOMING_SPACE, prefix, list_one, l, &err) : error_nomem(&err);
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, JSON_OF(&call->arena, {"items", l->items}, {"nextCursor", json_null()}));
}

bool service_event_list(struct call *call, struct str name, struct str state, size_t limit)
{
    struct listing *l = CALL_NEW(call, struct listing);
    if (!l) return true;
    call->state = l;
    *l = (struct listing){.name = arena_copy(&call->arena, name),
                          .state = arena_copy(&call->arena, state),
                          .limit = limit ? limit : LIST_USUAL,
                          .call = call,
                          .items = json_array()};
    if (l->limit > LIST_MAX) l->limit = LIST_MAX;
    return service_may_all(call, OPERATION_EVENT_LIST) ? service_read(call, list) : false;
}

struct seeking {
    struct call *call;
    struct str id;
    struct incoming_event *found;
};

static enum code seek_one(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct seeking *s = context;
    struct incoming_event event;
    (void)err;
    if (s->found->id.len > 0 || !str_ends(note->key, s->id)) return OK;
    struct error why = {0};
    if (incoming_read(note, scratch, &event, &why) || !str_eq(event.id, s->id) || !may_see(s->call, &event)) return OK;
    return incoming_read(note, &s->call->arena, s->found, err);
}

// A path without a place names the event of the default one, or else any that the caller may see.
static enum code find_named(struct call *call, struct store *store, struct str id, struct incoming_event *out, struct error *err)
{
    struct auth_object usual = {.project = STR("default"), .environment = STR("default")};
    if (call->place.tenant.len > 0) return find(call, store, &call->place, id, out, err);
    enum code rc = find(call, store, &usual, id, out, err);
    if (rc ? rc != E_NOT_FOUND : may_see(call, out)) return rc;
    struct seeking seeking = {call, id, out};
    *out = (struct incoming_event){0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    rc = prefix.ptr ? store_each_note(store, INCOMING_SPACE, prefix, seek_one, &seeking, err) : error_nomem(err);
    return rc || out->id.len > 0 ? rc : error_set(err, E_NOT_FOUND, "there is no such event");
}

static bool get(struct call *call, struct store *store)
{
    const struct listing *l = call->state;
    struct incoming_event event;
    struct error err = {0};
    enum code rc = find_named(call, store, l->id, &event, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    struct auth_object object = {.tenant = call->who.tenant};
    if (!rc) object = (struct auth_object){event.tenant, event.project, event.environment, .exists = true};
    if (!service_may_named(call, OPERATION_EVENT_LIST, &object, (struct str){0})) return false;
    return call_answer(call, 200, incoming_json(&call->arena, &event));
}

bool service_event_get(struct call *call, struct str id)
{
    struct listing *l = CALL_NEW(call, struct listing);
    if (!l) return true;
    call->state = l;
    l->id = arena_copy(&call->arena, id);
    call->resource = l->id;
    return service_read(call, get);
}
