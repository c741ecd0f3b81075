// What admins do with queues and limits: stored first (notes "queue", key tenant|name, and "limit", key tenant), then in force.
#include "service/slots.h"

struct queueing {
    struct str name;
    struct json given;
    bool whole; // given takes the place of what was there
    struct queue_config config;
    struct tenant_limits limits;
    bool remove;
    enum operation operation;
};

static struct queueing *begin(struct call *call, enum operation operation, struct str name)
{
    struct queueing *q = ARENA_NEW(&call->arena, struct queueing);
    if (!q || !(q->name = arena_copy(&call->arena, name)).ptr) {
        call_nomem(call);
        return NULL;
    }
    call->state = q;
    call->resource = q->name;
    q->operation = operation;
    if (!service_may_all(call, operation)) return NULL;
    if (name.len == 0 || run_id_valid(name)) return q;
    call_problem(call, 400, "INVALID_REQUEST",
                 "the name of a queue has letters, digits, '.', '_', ':' and '-', up to 128, beginning with a letter "
                 "or digit");
    return NULL;
}

// ---- looking

// With those of other engines, as far as there is a limit that they share. One that cannot be read is shown as it was.
static void look_elsewhere(const struct call *call, struct str name)
{
    struct limits limits;
    struct error err = {0};
    if (slots_apply(call->service, call->who.tenant, name, &limits) && slots_look(call->service, &limits, &err))
        os_log(LOG_WARN, "limits not read tenant=%.*s why=\"%s\"", STR_ARG(call->who.tenant), err.message);
}

static struct json queue_json(struct call *call, struct str name)
{
    const struct queues *queues = &call->service->queues;
    look_elsewhere(call, name);
    const struct run_queue *queue = queues_find(queues, call->who.tenant, name);
    struct queue_config config = queues_config(queues, call->who.tenant, name);
    size_t running = queue ? queue->running + queue->share.elsewhere : 0;
    size_t waiting = queue ? queue->waiting + queue->share.waiting : 0;
    int64_t oldest_ms = queue ? queue_oldest_ms(queue) : 0;
    if (queue && queue->share.oldest_ms && (!oldest_ms || queue->share.oldest_ms < oldest_ms))
        oldest_ms = queue->share.oldest_ms;
    struct json out;
    if (!queue_config_write(&config, &call->arena, &out)) return json_failed();
    JSON_ADD(&call->arena, &out, {"name", json_copied(&call->arena, name)}, {"running", json_count(running)},
             {"queued", json_count(waiting)}, {"oldestQueuedAt", json_time_some(&call->arena, oldest_ms)});
    return out;
}

static bool answer_queue(struct call *call, struct str name)
{
    return call_answer(call, 200, queue_json(call, name));
}

static bool is_there(struct call *call, struct str name)
{
    if (queues_known(&call->service->queues, call->who.tenant, name)) return true;
    return call_problem(call, 404, "QUEUE_NOT_FOUND", "there is no queue %.*s", STR_ARG(name));
}

static bool get_on_engine(struct call *call)
{
    const struct queueing *q = call->state;
    return is_there(call, q->name) && answer_queue(call, q->name);
}

bool service_queue_get(struct call *call, struct str name)
{
    return begin(call, OPERATION_QUEUE_LIST, name) && service_post(call, get_on_engine);
}

static void list_into(struct call *call, struct json *items)
{
    const struct queues *queues = &call->service->queues;
    const struct queue_tenant *tenant = queues->tenants;
    while (tenant && !str_eq(tenant->name, call->who.tenant)) tenant = tenant->next;
    json_append(&call->arena, items, queue_json(call, QUEUE_DEFAULT));
    for (const struct run_queue *queue = tenant ? tenant->queues : NULL; queue; queue = queue->next) {
        bool used = queue->configured || queue->running > 0 || queue->waiting > 0;
        if (str_eq(queue->name, QUEUE_DEFAULT) || !used) continue;
        json_append(&call->arena, items, queue_json(call, queue->name));
    }
}

static bool answer_items(struct call *call, struct json items)
{
    return call_answer(call, 200, JSON_OF(&call->arena, {"items", items}, {"nextCursor", json_null()}));
}

static bool list_on_engine(struct call *call)
{
    struct json items = json_array();
    list_into(call, &items);
    return answer_items(call, items);
}

bool service_queue_list(struct call *call)
{
    return begin(call, OPERATION_QUEUE_LIST, (struct str){0}) && service_post(call, list_on_engine);
}

// ---- changing

static bool store_value(struct call *call, struct str space, struct str key, const struct json *value,
                        void (*done)(void *context, enum code rc, const struct error *why))
{
    struct queueing *q = call->state;
    struct error err = {0};
    struct buf text SCOPED(buf_release) = buf_of(4096);
    if (!q->remove) json_canon(&text, value);
    struct note_put put = {
        .space = space, .key = key, .value = buf_str(&text), .remove = q->remove, .expect = NOTE_ANY};
    enum code rc = buf_ok(&text) ? OK : error_nomem(&err);
    if (!rc) rc = audit_call(call, q->operation, q->name, (struct str){0}, &err);
    if (!rc) rc = engine_put(call->service->engine, &put, 1, done, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

static void queue_stored(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    struct queueing *q = call->state;
    struct error err = {0};
    if (!rc)
        rc = queues_configure(&call->service->queues, call->who.tenant, q->name, q->remove ? NULL : &q->config, &err);
    if (rc) {
        call_failed(call, why && why->code ? why : &err);
    } else if (q->remove) {
        call->answer.status = 204;
        call->done(call);
    } else {
        answer_queue(call, q->name);
    }
}

static bool store_queue(struct call *call)
{
    struct queueing *q = call->state;
    struct json value = {0};
    struct str key = call_text(call, "%.*s|%.*s", STR_ARG(call->who.tenant), STR_ARG(q->name));
    if (!key.ptr || (!q->remove && !queue_config_write(&q->config, &call->arena, &value))) return call_nomem(call);
    return store_value(call, STR("queue"), key, &value, queue_stored);
}

static bool change_on_engine(struct call *call)
{
    struct queueing *q = call->state;
    struct error err = {0};
    struct queue_config now = queues_config(&call->service->queues, call->who.tenant, q->name);
    if (!q->whole && !is_there(call, q->name)) return false;
    q->config = q->whole ? queue_config_default : now;
    q->config.paused = now.paused;
    if (queue_config_read(&q->given, &q->config, &err))
        return call_problem(call, 400, "INVALID_REQUEST", "%s", err.message);
    return store_queue(call);
}

bool service_queue_put(struct call *call, struct str name, struct json given)
{
    struct queueing *q = begin(call, OPERATION_QUEUE_CHANGE, name);
    if (!q) return false;
    q->given = given;
    q->whole = true;
    return service_post(call, change_on_engine);
}

bool service_queue_pause(struct call *call, struct str name, bool paused)
{
    struct queueing *q = begin(call, OPERATION_QUEUE_CHANGE, name);
    if (!q) return false;
    q->given = json_object();
    if (json_put(&call->arena, &q->given, STR("paused"), json_bool(paused)))
        return service_post(call, change_on_engine);
    return call_nomem(call);
}

static bool delete_on_engine(struct call *call)
{
    struct queueing *q = call->state;
    if (!is_there(call, q->name)) return false;
    look_elsewhere(call, q->name);
    const struct run_queue *queue = queues_find(&call->service->queues, call->who.tenant, q->name);
    size_t waiting = queue ? queue->waiting + queue->share.waiting : 0;
    if (waiting > 0)
        return call_problem(call, 409, "QUEUE_NOT_EMPTY", "%zu run%s in it", waiting,
                            waiting == 1 ? " waits" : "s wait");
    q->remove = true;
    return store_queue(call);
}

bool service_queue_delete(struct call *call, struct str name)
{
    return begin(call, OPERATION_QUEUE_CHANGE, name) && service_post(call, delete_on_engine);
}

// ---- the reconciler, called by hand

static bool reconcile_on_engine(struct call *call)
{
    struct error err = {0};
    if (audit_call(call, OPERATION_QUEUE_CHANGE, STR("reconcile"), (struct str){0}, &err))
        return call_failed(call, &err);
    return answer_items(call, admission_pass(call));
}

bool service_queue_reconcile(struct call *call)
{
    return begin(call, OPERATION_QUEUE_CHANGE, (struct str){0}) && service_post(call, reconcile_on_engine);
}

// ---- limits of the tenant

static bool answer_limits(struct call *call)
{
    const struct queue_tenant *tenant = queues_tenant(&call->service->queues, call->who.tenant);
    struct json body;
    if (tenant && tenant->limits.runs_in_flight) look_elsewhere(call, (struct str){0});
    if (!tenant || !tenant_limits_write(&tenant->limits, &call->arena, &body)) return call_nomem(call);
    JSON_ADD(&call->arena, &body, {"runsNow", json_count(tenant->running + tenant->share.elsewhere)});
    return call_answer(call, 200, body);
}

bool service_limits_get(struct call *call)
{
    return begin(call, OPERATION_LIMIT_LIST, (struct str){0}) && service_post(call, answer_limits);
}

static void limits_stored(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    const struct queueing *q = call->state;
    struct queue_tenant *tenant = queues_tenant(&call->service->queues, call->who.tenant);
    if (rc || !tenant) {
        struct error err = {.code = E_NOMEM};
        call_failed(call, rc ? why : &err);
        return;
    }
    queues_limit(&call->service->queues, tenant, &q->limits);
    answer_limits(call);
}

static bool limits_on_engine(struct call *call)
{
    struct queueing *q = call->state;
    struct error err = {0};
    struct json value;
    if (tenant_limits_read(&q->given, &q->limits, &err))
        return call_problem(call, 400, "INVALID_REQUEST", "%s", err.message);
    if (!tenant_limits_write(&q->limits, &call->arena, &value)) return call_nomem(call);
    return store_value(call, STR("limit"), call->who.tenant, &value, limits_stored);
}

bool service_limits_put(struct call *call, struct json given)
{
    struct queueing *q = begin(call, OPERATION_LIMIT_CHANGE, (struct str){0});
    if (!q) return false;
    q->given = given;
    return service_post(call, limits_on_engine);
}
