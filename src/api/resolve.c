// EngineRunRef (WE-2.1.1): the run that a reference names, looked up in the store by its ids. Whatever address a reference holds is
// never called: it is a name.
#include "api/inside.h"

#include "contract/profile.h"

static bool read_ref(struct ask *ask, struct run_ref *out)
{
    const struct json *value = json_key(&ask->body, "ref");
    struct error err = {0};
    enum code rc;
    if (value && value->type == JSON_STRING)
        rc = run_ref_parse(json_text(value), out, &err);
    else if (value && value->type == JSON_OBJECT)
        rc = run_ref_read(value, out, &err);
    else
        rc = error_set(&err, E_INVALID, "ADAPTER_INVALID_RUN_REF: ref must be a text or an object");
    if (!rc) return true;
    struct str rest, message = str_from(err.message);
    str_cut(message, ':', &rest);
    return call_problem(ask->call, 400, "ADAPTER_INVALID_RUN_REF", "%.*s", STR_ARG(str_trim(rest)));
}

// Cairn's own reference names every run of this store, which it calls local; another provider's names those that were started as its own.
static bool names_it(const struct run_ref *ref, const struct run_origin *origin)
{
    if (ref->provider == PROVIDER_CAIRN) return ref->store.len == 0 || str_is(ref->store, "local");
    return str_is(origin->profile, provider_name(ref->provider));
}

static void tell_resolved(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct run_ref *ref = ask->state;
    struct run_origin origin;
    struct error err = {0};
    struct json body, object;
    if (service_origin(store, head, &call->arena, &origin, &err)) {
        call_failed(call, &err);
        return;
    }
    if (!names_it(ref, &origin)) {
        call_problem(call, 404, "NOT_FOUND", "there is no such thing here");
        return;
    }
    const struct run_ids *ids = &head->ids;
    if (!service_status(head, &call->arena, &body) || !run_ref_write(ref, &call->arena, &object)) body = json_failed();
    JSON_ADD(&call->arena, &body, {"tenantId", json_some(ids->tenant)}, {"projectId", json_some(ids->project)},
             {"environmentId", json_some(ids->environment)}, {"planId", json_some(ids->plan_id)},
             {"planVersion", json_some(ids->plan_version)}, {"ref", object});
    call->answer.location = call_text(call, "/v1/runs/%.*s", STR_ARG(ids->run));
    call_answer(call, 200, body);
}

void handle_run_resolve(struct ask *ask)
{
    struct run_ref *ref = CALL_NEW(ask->call, struct run_ref);
    if (!ref) return;
    if (!read_ref(ask, ref)) return;
    // The workflow of a run is the run (requirements §3.4): a reference whose ids differ names none of ours.
    ask->params[0] = str_eq(ref->workflow_id, ref->run_id) ? ref->run_id : STR("-");
    ask->state = ref;
    with_run(ask, OPERATION_RUN_GET, tell_resolved);
}
