// The operations of IWorkflowEngine by EngineRunRef (WE-2.1, WE-2.1.1): the reference is in the body, as a text or an object, and is looked
// up in the store by its ids; from there on the call is the one of the run id. Whatever address a reference holds is never called: it
// is a name. One that names no run is answered like a run id that does not exist.
#include "api/inside.h"

#include "contract/profile.h"

struct referring {
    route_handler *then;
    struct run_ref ref;
};

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
    bool own = !rc && out->provider == PROVIDER_CAIRN && service_is_strict(ask->call->service);
    if (own) return call_problem(ask->call, 400, "ADAPTER_INVALID_RUN_REF", "provider is temporal, conductor or mock here (strictSchema)");
    if (!rc) return true;
    struct str rest, message = str_from(err.message);
    str_cut(message, ':', &rest);
    return call_problem(ask->call, 400, "ADAPTER_INVALID_RUN_REF", "%.*s", STR_ARG(str_trim(rest)));
}

static bool resolve(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct referring *referring = ask->state;
    struct run_ref own;
    struct run_head head;
    struct start_facts start;
    struct error err = {0};
    enum code rc = store_head(store, call->who.tenant, referring->ref.run_id, &call->arena, &head, &err);
    if (!rc) rc = reading_origin(store, &head, &call->arena, &start, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    if (!rc) own = run_ref_of(&head.ids, &start);
    // No run has an id with slashes in it: what follows finds nothing, and answers as for every run that is not there.
    bool named = !rc && run_ref_names(&referring->ref, &own);
    ask->params[0] = named ? head.ids.run : run_ref_format(&referring->ref, STR("-"), &call->arena);
    if (!ask->params[0].ptr) return call_nomem(call);
    referring->then(ask);
    return true;
}

static bool by_ref(struct ask *ask, route_handler *then)
{
    struct referring *referring = CALL_NEW(ask->call, struct referring);
    if (!referring || !read_ref(ask, &referring->ref)) return false;
    referring->then = then;
    ask->state = referring;
    return service_read(ask->call, resolve);
}

// ---- getRunStatus, resolve

static bool tell_status_and_ids(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    const struct run_ids *ids = &head->ids;
    struct json body;
    if (!service_status(call->service, store, head, &call->arena, &body)) body = json_failed();
    JSON_ADD(&call->arena, &body, {"tenantId", json_some(ids->tenant)}, {"projectId", json_some(ids->project)},
             {"environmentId", json_some(ids->environment)}, {"planId", json_some(ids->plan_id)},
             {"planVersion", json_some(ids->plan_version)});
    return call_answer(call, 200, body);
}

static bool tell_named(struct ask *ask)
{
    return with_run(ask, OPERATION_RUN_GET, tell_status_and_ids);
}

bool handle_run_resolve(struct ask *ask)
{
    return by_ref(ask, tell_named);
}

bool handle_ref_status(struct ask *ask)
{
    return by_ref(ask, handle_run_status_far);
}

// ---- signal, cancelRun

static bool send(struct ask *ask, const struct json *signal)
{
    struct buf text SCOPED(buf_release) = buf_of(256 * 1024);
    json_write(&text, signal);
    if (buf_ok(&text)) ask->reason = arena_copy(&ask->call->arena, buf_str(&text));
    if (!ask->reason.ptr) return call_nomem(ask->call);
    return service_signal(ask->call, ask->params[0], ask->reason, 0);
}

static bool send_signal(struct ask *ask)
{
    return send(ask, json_key(&ask->body, "signal"));
}

bool handle_ref_signal(struct ask *ask)
{
    return by_ref(ask, send_signal);
}

// CANCEL; without a signalId every call is one of its own.
static bool send_cancel(struct ask *ask)
{
    struct arena *arena = &ask->call->arena;
    struct str id = json_text(json_key(&ask->body, "signalId"));
    char made[UUID_SIZE];
    entropy_uuid(os_entropy(), made);
    struct json payload = JSON_OF(arena, {"reason", json_some(json_text(json_key(&ask->body, "reason")))});
    struct json signal = JSON_OF(arena, {"payload", payload}, {"signalType", json_word("CANCEL")},
                                 {"signalId", json_copied_some(arena, id.len ? id : str_from(made))});
    if (json_ok(&signal)) return send(ask, &signal);
    return call_nomem(ask->call);
}

bool handle_ref_cancel(struct ask *ask)
{
    return by_ref(ask, send_cancel);
}
