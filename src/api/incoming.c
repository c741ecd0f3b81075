// Events from outside.
#include "api/inside.h"

bool body_place(struct ask *ask, const char *name, struct str path, struct str *out)
{
    struct str body = json_text(json_key(&ask->body, name));
    if (body.len > 0 && path.len > 0 && !str_eq(body, path))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "%s is not that of the path", name);
    *out = body.len > 0 ? body : path;
    return true;
}

bool handle_event_send(struct ask *ask)
{
    const struct json *body = &ask->body;
    struct incoming_call given = {.id = json_text(json_key(body, "id")),
                                  .name = json_text(json_key(body, "name")),
                                  .correlation = json_text(json_key(body, "correlation")),
                                  .source = json_text(json_key(body, "source")),
                                  .data = json_key(body, "data")};
    if (!body_place(ask, "projectId", ask->call->place.project, &given.project) ||
        !body_place(ask, "environmentId", ask->call->place.environment, &given.environment))
        return false;
    if (given.id.len == 0 && !idempotency_key(ask, &given.id)) return false;
    return service_event_send(ask->call, &given);
}

bool handle_incoming_list(struct ask *ask)
{
    struct str name, state;
    int64_t limit;
    if (!query_text(ask, "name", &name) || !query_text(ask, "state", &state) ||
        !query_number(ask, "limit", 1, 1000, 50, &limit))
        return false;
    return service_event_list(ask->call, name, state, (size_t)limit);
}

bool handle_incoming_get(struct ask *ask)
{
    return service_event_get(ask->call, ask->params[0]);
}

// ---- webhooks

// A number is as good as its text: ids are often numbers.
static bool text_at(struct ask *ask, struct str path, struct str *out)
{
    const struct json *value = path.len > 0 ? json_at(&ask->body, path) : NULL;
    *out = (struct str){0};
    if (!value || value->type == JSON_NULL) return true;
    *out = value->type == JSON_STRING ? value->text : json_canon_kept(&ask->call->arena, value, 512);
    return out->ptr != NULL;
}

bool handle_hook(struct ask *ask)
{
    struct call *call = ask->call;
    const struct http_request *request = ask->request;
    const struct hook *hook = service_hook(ask->api->service, ask->params[0]);
    struct error err = {0};
    if (!hook) return call_problem(call, 404, "NOT_FOUND", "there is no such hook");
    struct hook_request shown = {.body = request->body,
                                 .hub_signature = http_find(request, "x-hub-signature-256"),
                                 .timed_signature = http_find(request, "x-cairn-signature"),
                                 .webhook_signature = http_find(request, "webhook-signature"),
                                 .webhook_id = http_find(request, "webhook-id"),
                                 .webhook_timestamp = http_find(request, "webhook-timestamp")};
    if (shown.timed_signature.len == 0) shown.timed_signature = http_find(request, "stripe-signature");
    enum code rc = service_hook_check(hook, &shown, os_now().wall_ms, &call->arena, &err);
    if (rc == E_DENIED) return call_problem(call, 401, "HOOK_SIGNATURE_INVALID", "the signature does not fit this hook");
    if (rc) return call_problem(call, 503, "HOOK_NOT_READY", "the secret of this hook cannot be read");
    if (json_parse(request->body, &json_limits_default, &call->arena, &ask->body, &err) || ask->body.type != JSON_OBJECT)
        return call_problem(call, 400, "INVALID_REQUEST", "the body is no JSON object");
    struct incoming_call given = {.name = hook->event,
                                  .project = hook->project,
                                  .environment = hook->environment,
                                  .source = call_text(call, "hook:%.*s", STR_ARG(hook->name)),
                                  .data = &ask->body,
                                  .trusted = true};
    call->who = (struct principal){.id = given.source, .tenant = hook->tenant, .roles = ROLE_SYSTEM};
    call->decision = (struct decision){
        .allowed = true, .status = 202, .code = "", .audit_code = "", .effective = ROLE_SYSTEM};
    if (!text_at(ask, hook->correlation, &given.correlation) || !text_at(ask, hook->id, &given.id))
        return call_problem(call, 400, "EVENT_INVALID", "the correlation or the id in the body is too long");
    if (given.id.len == 0) given.id = hook->way == SIGNED_STANDARD ? shown.webhook_id : http_find(request, "x-github-delivery");
    return service_event_send(call, &given);
}
