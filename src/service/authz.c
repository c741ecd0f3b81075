// Who may do what, and the record of it: what is allowed is recorded in the batch that stores its effect, refusals by themselves.
#include "service/inside.h"

static void forget(struct call *call)
{
    call_free(call);
}

static bool record_denial(struct call *call)
{
    struct error err = {0};
    if (audit_add(call->service, call->state, &err)) os_log(LOG_WARN, "refusal not recorded why=\"%s\"", err.message);
    call->done(call);
    return true;
}

// Text of a record that outlives the request it came with.
static void keep(struct call *call, struct str *text)
{
    struct str copy = arena_copy(&call->arena, *text);
    *text = copy.ptr ? copy : (struct str){0};
}

static void record(struct service *service, const struct auth_ask *ask, const struct decision *decision,
                   const struct call *from, struct str resource)
{
    struct call *call = call_new(service, 64 * 1024);
    struct audit_record *made = call ? ARENA_NEW(&call->arena, struct audit_record) : NULL;
    if (!made) {
        call_free(call);
        return;
    }
    *made = audit_of(ask, decision);
    made->tenant = ask->principal ? ask->principal->tenant : (struct str){0};
    made->project = from->project;
    made->environment = from->environment;
    made->resource = resource;
    made->ip = from->source_ip;
    made->user_agent = from->user_agent;
    made->request = from->request_id;
    struct str *texts[] = {&made->project, &made->environment,
                           &made->tenant, &made->actor,      &made->actor_type, &made->actor_role,
                           &made->action, &made->code,       &made->resource,   &made->reason,
                           &made->ip,     &made->user_agent, &made->request};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) keep(call, texts[i]);
    call->state = made;
    call->done = forget;
    service_post(call, record_denial);
}

void service_denied(const struct call *from, enum operation operation, struct str resource, const char *code)
{
    struct decision decision = {.status = 404, .code = "NOT_FOUND", .audit_code = code};
    struct auth_ask ask = {.principal = from->who.id.len ? &from->who : NULL, .operation = operation};
    record(from->service, &ask, &decision, from, resource);
}

// What a path says about place counts where the object itself says nothing; a tenant in it always counts.
static const struct auth_object *placed(const struct call *call, const struct auth_object *object,
                                        struct auth_object *out)
{
    if (!object || call->place.tenant.len == 0) return object;
    *out = *object;
    if (!str_eq(call->place.tenant, call->who.tenant)) out->tenant = call->place.tenant;
    if (out->project.len == 0) out->project = call->place.project;
    if (out->environment.len == 0) out->environment = call->place.environment;
    return out;
}

bool service_sees(const struct call *call, const struct run_ids *ids)
{
    const struct auth_object *place = &call->place;
    return principal_sees(&call->who, ids->tenant, ids->project, ids->environment) &&
           (place->tenant.len == 0 || (str_eq(place->tenant, ids->tenant) && str_eq(place->project, ids->project) &&
                                       str_eq(place->environment, ids->environment)));
}

bool service_is_narrow(const struct call *call)
{
    return call->who.projects.count > 0 || call->who.environments.count > 0;
}

bool service_sees_run(struct call *call, struct store *store, struct str run)
{
    struct run_head head;
    struct error err = {0};
    if (!service_is_narrow(call) && (call->place.tenant.len == 0 || run.len == 0)) return true;
    return run.len > 0 && store_head(store, call->who.tenant, run, &call->arena, &head, &err) == OK &&
           service_sees(call, &head.ids);
}

void service_keep_seen(struct call *call, struct store *store, struct json *items)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < items->count; i++)
        if (service_sees_run(call, store, json_text(json_key(&items->items[i], "runId"))))
            items->items[kept++] = items->items[i];
    items->count = kept;
}

bool service_asks(struct call *call, enum operation operation, const struct auth_object *object, struct str reason)
{
    struct auth_object narrowed;
    object = placed(call, object, &narrowed);
    struct auth_ask ask = {.principal = call->who.id.len ? &call->who : NULL,
                           .operation = operation,
                           .object = object,
                           .reason = reason,
                           .unix_socket = call->unix_socket,
                           .now_ms = os_now().wall_ms};
    struct decision decision = auth_decide(call->service->auth, &ask);
    call->decision = decision;
    call->project = object ? object->project : (struct str){0};
    call->environment = object ? object->environment : (struct str){0};
    if (!decision.allowed) record(call->service, &ask, &decision, call, call->resource);
    return decision.allowed;
}

// What an operation is about, as its client calls it.
static const char *noun_of(enum operation operation)
{
    static const struct {
        const char *of, *noun;
    } nouns[] = {{"alert.", "alert"}, {"artifact.", "run"}, {"approval.", "run"}, {"dlq.", "dead letter"},
                 {"lease.", "run"},   {"outbox.", "sink"},  {"plan.", "definition"}, {"queue.", "queue"},
                 {"run.", "run"},     {"schedule.", "schedule"}, {"signal.", "run"},   {"step.", "run"},     {"store.", "run"},
                 {"token.", "token"}};
    for (size_t i = 0; i < ARRAY_COUNT(nouns); i++)
        if (str_starts(str_from(operation_name(operation)), str_from(nouns[i].of))) return nouns[i].noun;
    return "such thing";
}

// The same words whether there is none, or one that the client may not see: it learns no more than what it asked for.
bool service_missing(struct call *call, enum operation operation)
{
    struct str what = call->resource, tenant = call->who.tenant;
    if (str_starts(what, tenant) && what.len > tenant.len && what.ptr[tenant.len] == '/') // a key of the store
        what = str_slice(what, tenant.len, what.len);
    if (str_starts(what, STR("/"))) what = str_slice(what, 1, what.len);
    return call_problem(call, 404, "NOT_FOUND", "there is no %s%s%.*s here", noun_of(operation), what.len ? " " : "",
                        STR_ARG(what));
}

bool service_refuse(struct call *call, enum operation operation)
{
    const struct decision *decision = &call->decision;
    if (decision->status == 404) return service_missing(call, operation);
    if (decision->needs_reason && str_is(str_from(decision->code), "AUTHZ_REASON_REQUIRED"))
        return call_problem(call, decision->status, decision->code, "this needs a reason");
    return call_problem(call, decision->status, decision->code, "this token may not do %s%s%s",
                        operation_name(operation), decision->unmet ? ": it lacks " : "",
                        decision->unmet ? decision->unmet : "");
}

bool service_may(struct call *call, enum operation operation, const struct auth_object *object, struct str reason)
{
    return service_may_after(call, operation, object, reason, NULL);
}

bool service_may_all(struct call *call, enum operation operation)
{
    return service_may(call, operation, &(struct auth_object){.tenant = call->who.tenant, .exists = true}, STR(""));
}

bool service_may_named(struct call *call, enum operation operation, const struct auth_object *object, struct str reason)
{
    bool may = service_asks(call, operation, object, reason);
    if (!service_could(call->service, &call->who, operation)) return service_refuse(call, operation);
    if (!object->exists || !principal_sees(&call->who, object->tenant, object->project, object->environment))
        return service_missing(call, operation);
    return may || service_refuse(call, operation);
}

bool service_may_after(struct call *call, enum operation operation, const struct auth_object *object, struct str reason,
                       bool *waits)
{
    if (service_asks(call, operation, object, reason)) return true;
    if (waits && call->decision.requires_approval)
        *waits = true;
    else
        service_refuse(call, operation);
    return false;
}

// Whether a step of such a run can come to the pool of the principal: a route leads there from its place, or every step goes there.
static bool is_routed(const struct service *service, const struct run_ids *ids, struct str pool)
{
    const struct service_settings *settings = &service->settings;
    for (size_t i = 0; pool.len > 0 && i < settings->route_count; i++) {
        const struct executor_route *route = &settings->routes[i];
        bool fits = (!route->tenant.len || str_eq(route->tenant, ids->tenant)) &&
                    (!route->environment.len || str_eq(route->environment, ids->environment));
        if (fits && str_eq(route->pool, pool)) return true;
    }
    return pool.len > 0 && !settings->local_steps && str_is(pool, "default");
}

struct auth_object service_object(const struct call *call, const struct run_head *head)
{
    bool elsewhere =
        head && call->place.tenant.len > 0 &&
        !(str_eq(head->ids.project, call->place.project) && str_eq(head->ids.environment, call->place.environment));
    if (!head || elsewhere) return (struct auth_object){.tenant = call->who.tenant};
    return (struct auth_object){.tenant = head->ids.tenant,
                                .project = head->ids.project,
                                .environment = head->ids.environment,
                                .exists = true,
                                .pool = is_routed(call->service, &head->ids, call->who.pool) ? call->who.pool : (struct str){0}};
}

bool service_allows(struct call *call, enum operation operation, const struct run_head *head, struct str reason)
{
    struct auth_object object = service_object(call, head);
    if (!service_may(call, operation, &object, reason)) return false;
    if (!object.exists)
        service_missing(call, operation); // the rule is of places, not of runs
    return object.exists;
}
