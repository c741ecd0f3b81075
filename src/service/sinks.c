// The bus inside the service: it reads with handles of its own, its notes ride with the engine's batches, its dead letters are
// alerts. What operators do to it is recorded before it happens.
#include "service/inside.h"

// ---- notes from other threads

struct putting {
    const struct note_put *notes;
    size_t count;
    bus_done done;
    void *context;
};

static void put_done(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    const struct putting *putting = call->state;
    if (putting->done) putting->done(putting->context, rc, why);
    call_free(call);
}

static void put_refused(struct call *call)
{
    struct error err = {0};
    put_done(call, error_set(&err, E_CANCELLED, "the service is stopping, or too much waits for it"), &err);
}

static bool put_on_engine(struct call *call)
{
    const struct putting *putting = call->state;
    struct error err = {0};
    enum code rc = engine_put(call->service->engine, putting->notes, putting->count, put_done, call, &err);
    if (rc) put_done(call, rc, &err);
    return true;
}

static bool copy_notes(struct arena *arena, struct note_put *to, const struct note_put *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        if (!ARENA_KEEP(arena, &to[i].space, &to[i].key, &to[i].value)) return false;
    }
    return true;
}

void service_put(struct service *service, const struct note_put *notes, size_t count, bus_done done, void *context)
{
    struct error err = {0};
    struct call *call = call_new(service, (size_t)256 << 20);
    struct putting *putting = call ? ARENA_NEW(&call->arena, struct putting) : NULL;
    struct note_put *copies = putting ? ARENA_ARRAY(&call->arena, count + 1, struct note_put) : NULL;
    if (!copies || !copy_notes(&call->arena, copies, notes, count)) {
        call_free(call);
        if (done) done(context, error_nomem(&err), &err);
        return;
    }
    *putting = (struct putting){copies, count, done, context};
    call->state = putting;
    call->done = put_refused;
    service_post(call, put_on_engine);
}

// ---- what the bus asks for

static struct store *bus_reader(void *context)
{
    return service_reader(context);
}

static void bus_put(void *context, const struct note_put *notes, size_t count, bus_done done, void *done_context)
{
    service_put(context, notes, count, done, done_context);
}

static void bus_report(void *context, const struct sink_report *report)
{
    struct service *service = context;
    pthread_mutex_lock(&service->alarm.mutex);
    alerts_undelivered(&service->alarm.alerts, report);
    pthread_mutex_unlock(&service->alarm.mutex);
    engine_wake(service->engine);
}

static void bus_delivered(void *context, struct str tenant, struct str sink, int64_t at_ms)
{
    struct service *service = context;
    pthread_mutex_lock(&service->alarm.mutex);
    alerts_delivered(&service->alarm.alerts, tenant, sink, at_ms);
    pthread_mutex_unlock(&service->alarm.mutex);
    engine_wake(service->engine);
}

// A user of the bus holds the lock for reading, so that it does not go away meanwhile.
static struct bus *set_bus(struct service *service, struct bus *bus)
{
    pthread_rwlock_wrlock(&service->bus_lock);
    struct bus *before = service->bus;
    service->bus = bus;
    pthread_rwlock_unlock(&service->bus_lock);
    return before;
}

enum code sinks_open(struct service *service, bool idle, struct error *err)
{
    const struct json *sinks = service->settings.sinks;
    if (sinks && sinks->count == 0) sinks = service->settings.sinks = NULL;
    if (!sinks) return OK;
    struct bus_options options = {.sinks = sinks,
                                  .reader = bus_reader,
                                  .put = bus_put,
                                  .report = bus_report,
                                  .delivered = bus_delivered,
                                  .metrics = service->metrics,
                                  .idle = idle,
                                  .others = service->members.several,
                                  .fetch = service->settings.fetch,
                                  .context = service};
    struct bus *bus = NULL;
    enum code rc = bus_open(&options, &bus, err);
    if (rc) error_wrap(err, "serve.sinks");
    set_bus(service, bus);
    return rc;
}

void sinks_close(struct service *service)
{
    bus_close(set_bus(service, NULL));
}

void sinks_look(struct service *service, struct store *store)
{
    struct error err = {0};
    pthread_rwlock_rdlock(&service->bus_lock);
    if (service->bus && bus_look(service->bus, store, &err))
        os_log(LOG_WARN, "sinks of another engine not seen why=\"%s\"", err.message);
    pthread_rwlock_unlock(&service->bus_lock);
}

void sinks_moved(struct service *service)
{
    pthread_rwlock_rdlock(&service->bus_lock);
    if (service->bus) bus_moved(service->bus);
    pthread_rwlock_unlock(&service->bus_lock);
}

// ---- for readers

static enum code read_sinks(struct call *call, struct store *store, struct json *items, struct error *err)
{
    pthread_rwlock_rdlock(&call->service->bus_lock);
    struct bus *bus = call->service->bus;
    enum code rc = bus ? bus_look(bus, store, err) : OK;
    if (bus && !rc) rc = bus_list(bus, call->who.tenant, !service_is_narrow(call), &call->arena, items, err);
    pthread_rwlock_unlock(&call->service->bus_lock);
    return rc;
}

// Of several engines one carries.
static struct json carrier_json(struct call *call)
{
    const struct members *members = &call->service->members;
    uint64_t carrier = __atomic_load_n(&members->carrier, __ATOMIC_RELAXED);
    uint64_t self = __atomic_load_n(&members->self, __ATOMIC_RELAXED);
    if (!members->several) return json_none();
    return JSON_OF(&call->arena, {"engine", carrier ? json_count(carrier) : json_null()},
                   {"here", json_bool(carrier && carrier == self)});
}

static bool list_sinks(struct call *call, struct store *store)
{
    struct json items = json_array();
    struct error err = {0};
    if (read_sinks(call, store, &items, &err)) return call_failed(call, &err);
    return call_answer(
        call, 200,
        JSON_OF(&call->arena, {"carriedBy", carrier_json(call)}, {"items", items}, {"nextCursor", json_null()}));
}

bool service_sinks(struct call *call)
{
    return service_may_all(call, OPERATION_OUTBOX_LIST) && service_read(call, list_sinks);
}

struct dead_letter_call {
    struct dead_letter_choice which;
    struct bus_place place;
    struct str after, reason;
    size_t limit, count;
    enum dead_letter_act act; // 0: a rewind
    enum operation operation;
};

static struct dead_letter_call *letters_new(struct call *call, const struct dead_letter_call *given)
{
    struct dead_letter_call *made = ARENA_NEW(&call->arena, struct dead_letter_call);
    if (made) {
        *made = *given;
        if (ARENA_KEEP(&call->arena, &made->which.sink, &made->which.tenant, &made->which.id, &made->which.run,
                       &made->place.tenant, &made->place.run, &made->after, &made->reason, &made->place.asker)) {
            call->state = made;
            return made;
        }
    }
    call_nomem(call);
    return NULL;
}

// In a path an id has a dot where the note has a slash: NAME.POSITION.
static bool show_ids(struct call *call, struct json *items)
{
    for (uint32_t i = 0; json_is(items, JSON_ARRAY) && i < items->count; i++)
        for (uint32_t k = 0; k < items->items[i].count; k++) {
            struct json_member *m = &items->items[i].members[k];
            if (!str_is(m->key, "id")) continue;
            struct str position, name = str_cut(json_text(&m->value), '/', &position);
            struct str id = call_text(call, "%.*s.%.*s", STR_ARG(name), STR_ARG(position));
            if (!id.ptr) return false;
            m->value = json_string(id);
        }
    return true;
}

// A page of the caller's; an empty one when there are no sinks.
static enum code read_letters(struct call *call, struct store *store, const struct letter_range *range,
                              struct json *page, struct error *err)
{
    pthread_rwlock_rdlock(&call->service->bus_lock);
    struct bus *bus = call->service->bus;
    enum code rc = bus ? bus_dead_letters(bus, store, range, &call->arena, page, err) : OK;
    pthread_rwlock_unlock(&call->service->bus_lock);
    return rc;
}

static bool push_all(struct arena *arena, struct json *to, const struct json *from)
{
    for (uint32_t i = 0; json_is(from, JSON_ARRAY) && i < from->count; i++)
        if (!json_push(arena, to, from->items[i])) return false;
    return true;
}

static void keep_seen_letters(struct call *call, struct store *store, struct json *page)
{
    for (uint32_t i = 0; i < page->count; i++)
        if (str_is(page->members[i].key, "items")) service_keep_seen(call, store, &page->members[i].value);
}

// Of one sink, or of all in their order; *next is where to go on.
static enum code collect(struct call *call, struct store *store, struct json *items, struct json *next,
                         struct error *err)
{
    const struct dead_letter_call *letters = call->state;
    struct str rest, from = str_cut(letters->after, '/', &rest), after = letters->after;
    struct json sinks = json_array();
    enum code rc = read_sinks(call, store, &sinks, err);
    *next = json_null();
    for (uint32_t i = 0; !rc && i < sinks.count; i++) {
        struct json page = json_object();
        struct str name = json_text(json_key(&sinks.items[i], "name"));
        if (letters->which.sink.len > 0 && !str_eq(letters->which.sink, name)) continue;
        if (after.len > 0 && !str_eq(from, name)) continue; // not there yet
        if (items->count >= letters->limit) {
            *next = json_string(call_text(call, "%.*s/%020d", STR_ARG(name), 0));
            return OK;
        }
        struct letter_range range = {
            .sink = name, .tenant = call->who.tenant, .after = after, .limit = letters->limit - items->count};
        rc = read_letters(call, store, &range, &page, err);
        after = (struct str){0};
        if (!rc) keep_seen_letters(call, store, &page);
        if (!rc && !push_all(&call->arena, items, json_key(&page, "items"))) rc = error_nomem(err);
        const struct json *more = json_key(&page, "next");
        if (!rc && json_is(more, JSON_STRING)) {
            *next = *more;
            return OK;
        }
    }
    return rc;
}

static bool list_letters(struct call *call, struct store *store)
{
    struct json next, items = json_array();
    struct error err = {0};
    if (collect(call, store, &items, &next, &err)) return call_failed(call, &err);
    if (show_ids(call, &items))
        return call_answer(call, 200, JSON_OF(&call->arena, {"items", items}, {"nextCursor", next}));
    return call_nomem(call);
}

bool service_dead_letters(struct call *call, struct str sink, struct str after, size_t limit)
{
    struct dead_letter_call given = {
        .which = {.sink = sink, .tenant = call->who.tenant}, .after = after, .limit = limit};
    if (service_may_all(call, OPERATION_DLQ_LIST) && letters_new(call, &given)) service_read(call, list_letters);
    return true;
}

// ---- for operators: looked up, recorded, done, answered when it is durable

static bool act(struct call *call, struct store *store);

static void acted(void *context, enum code rc, const struct error *why)
{
    enum { AGAIN_MAX = 8 };
    struct call *call = context;
    const struct dead_letter_call *letters = call->state;
    if (rc == E_CONFLICT && call->asked_again++ < AGAIN_MAX) // a letter was delivered between the look and the order
        service_read(call, act);
    else if (rc)
        call_failed(call, why);
    else
        call_answer(call, 200, JSON_OF(&call->arena, {"count", json_count(letters->count)}));
}

static bool act(struct call *call, struct store *store)
{
    struct dead_letter_call *letters = call->state;
    struct service *service = call->service;
    struct error err = {0};
    enum code rc;
    pthread_rwlock_rdlock(&service->bus_lock);
    struct bus *bus = service->bus;
    if (!bus)
        rc = service->settings.sinks ? error_set(&err, E_CANCELLED, "the service is stopping") : E_NOT_FOUND;
    else if (letters->act == LETTERS_REDRIVE)
        rc = bus_redrive(bus, store, &letters->which, acted, call, &letters->count, &err);
    else if (letters->act == LETTERS_DROP)
        rc = bus_drop(bus, store, &letters->which, acted, call, &letters->count, &err);
    else
        rc = bus_rewind(bus, store, letters->which.sink, &letters->place, acted, call, &err); // refuses what is not the caller's
    pthread_rwlock_unlock(&service->bus_lock);
    if (rc == E_NOT_FOUND)
        call_problem(call, 404, "NOT_FOUND", "%s", err.code ? err.message : "there are no sinks");
    else if (rc)
        call_failed(call, &err);
    return true;
}

static void recorded(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    if (rc)
        call_failed(call, why);
    else
        service_read(call, act);
}

static bool record_on_engine(struct call *call)
{
    const struct dead_letter_call *letters = call->state;
    struct note_put put = {.space = STR("health"), .key = STR("probe"), .value = STR("1"), .expect = NOTE_ANY};
    struct error err = {0};
    enum code rc = audit_call(call, letters->operation, call->resource, letters->reason, &err);
    if (!rc) rc = audit_flush(call->service, &err);
    if (!rc) rc = engine_put(call->service->engine, &put, 1, recorded, call, &err); // answered when the record is durable
    if (rc) return call_failed(call, &err);
    return true;
}

// Is there one at all that is the caller's?
static bool has_letter(struct call *call, struct store *store, struct str id)
{
    struct str position;
    struct letter_range range = {.sink = str_cut(id, '/', &position), .tenant = call->who.tenant, .limit = 500};
    struct error err = {0};
    for (;;) {
        struct json page = json_object();
        if (read_letters(call, store, &range, &page, &err)) return false;
        keep_seen_letters(call, store, &page);
        const struct json *items = json_key(&page, "items"), *next = json_key(&page, "next");
        for (uint32_t i = 0; items && i < items->count; i++)
            if (str_eq(json_text(json_key(&items->items[i], "id")), id)) return true;
        if (!next || next->type != JSON_STRING) return false;
        range.after = json_text(next);
    }
}

static bool look_up(struct call *call, struct store *store)
{
    const struct dead_letter_call *letters = call->state;
    struct auth_object object = {.tenant = call->who.tenant, .exists = call->service->settings.sinks != NULL};
    if (object.exists && letters->which.id.len > 0)
        object.exists = has_letter(call, store, letters->which.id);
    else if (object.exists && letters->act) // all of a sink are of all projects
        object.exists = service_sees_run(call, store, letters->which.run);
    return service_may(call, letters->operation, &object, letters->reason) && service_post(call, record_on_engine);
}

bool service_dead_letters_act(struct call *call, enum dead_letter_act act_wanted,
                              const struct dead_letter_choice *which, struct str reason)
{
    struct dead_letter_call given = {.which = *which,
                                     .act = act_wanted,
                                     .reason = reason,
                                     .operation =
                                         act_wanted == LETTERS_REDRIVE ? OPERATION_DLQ_REPLAY : OPERATION_DLQ_DROP};
    size_t dot = which->id.len;
    while (dot > 0 && which->id.ptr[dot - 1] != '.') dot--;
    given.which.tenant = call->who.tenant;
    if (which->id.len > 0) {
        given.which.sink = str_slice(which->id, 0, dot ? dot - 1 : 0);
        given.which.id =
            call_text(call, "%.*s/%.*s", STR_ARG(given.which.sink), STR_ARG(str_slice(which->id, dot, which->id.len)));
    }
    struct dead_letter_call *letters = letters_new(call, &given);
    if (!letters) return false;
    call->resource = letters->which.id.len ? letters->which.id : letters->which.sink;
    return service_read(call, look_up);
}

bool service_rewind(struct call *call, struct str sink, const struct bus_place *place, struct str reason)
{
    struct dead_letter_call given = {
        .which = {.sink = sink}, .place = *place, .reason = reason, .operation = OPERATION_OUTBOX_REWIND};
    given.place.asker = call->who.tenant;
    given.place.may_skip = call->who.roles & ROLE_PLATFORM;
    struct dead_letter_call *letters = letters_new(call, &given);
    if (!letters) return false;
    call->resource = letters->which.sink;
    return service_read(call, look_up);
}
