// Workers: the bodies are src/remote's (docs/format/worker.md); here is which principals may send them.
#include "api/inside.h"

#include "remote/remote.h"

static void on_answer(void *context, int status, struct str body)
{
    struct ask *ask = context;
    struct str copy = arena_copy(&ask->call->arena, body);
    if (copy.ptr)
        answer_text(ask, status, status < 400 ? "application/json" : "application/problem+json", copy);
    else
        call_nomem(ask->call);
}

static bool is_alive(const void *context)
{
    return net_alive(((const struct ask *)context)->exchange);
}

static struct remote_caller caller_of(const struct ask *ask)
{
    return (struct remote_caller){.tenant = ask->call->who.tenant, .pool = ask->call->who.pool, .alive = is_alive};
}

static bool is_report(const struct record *record, struct str id)
{
    struct str prefix = STR(REPORT_PREFIX), given = record->signal_id;
    return id.len > 0 && str_starts(given, prefix) && str_eq(str_slice(given, prefix.len, given.len), id);
}

// Which events the ledger of the run has (NX-2t).
static enum code noted(void *context, struct str tenant, struct str run, const struct str *ids, size_t count,
                       bool *known, struct error *err)
{
    enum { PAGE = 1000 };
    struct store *store = context;
    struct record_range range = {.tenant = tenant, .run = run, .ledger = true, .limit = PAGE};
    struct arena arena SCOPED(arena_release) = arena_of(65536, (size_t)64 << 20);
    struct records page = {.count = PAGE};
    enum code rc = OK;
    while (!rc && page.count == PAGE) {
        arena_reset(&arena);
        page = (struct records){0};
        rc = store_read(store, &range, &arena, &page, err);
        for (size_t i = 0; !rc && i < page.count; i++) {
            for (size_t k = 0; k < count; k++) known[k] = known[k] || is_report(&page.items[i], ids[k]);
            range.after = page.items[i].ledger_seq;
        }
    }
    return rc == E_NOT_FOUND ? OK : rc;
}

static bool serve_reports(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct remote_caller caller = caller_of(ask);
    caller.execution = ask->params[0];
    caller.noted = noted;
    caller.noted_context = store;
    remote_serve(service_remote(call->service), REMOTE_EVENTS, &caller, ask->request->body, on_answer, ask);
    return true;
}

// The words of workers, and of those of other make, which speak as playbooks do.
bool handle_worker(struct ask *ask)
{
    // The token of each task says whose it is; the pool of the caller is held against it there.
    struct auth_object object = {
        .tenant = ask->call->who.tenant, .exists = true, .own_task = true, .pool = ask->call->who.pool};
    if (!service_may(ask->call, ask->route->operation, &object, (struct str){0})) return false;
    struct remote_caller caller = caller_of(ask);
    if (ask->route->call == REMOTE_EVENTS)
        service_read(ask->call, serve_reports);
    else
        remote_serve(service_remote(ask->call->service), ask->route->call, &caller, ask->request->body, on_answer,
                     ask);
    return true;
}

static bool store_artifact(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct error err = {0};
    struct remote_caller caller = caller_of(ask);
    (void)store;
    enum code rc = remote_artifact(service_remote(call->service), &caller, ask->params[0], ask->params[1],
                                   ask->request->body, &err);
    if (rc == E_CONFLICT) return call_problem(call, 409, "STALE_ATTEMPT", "%s", err.message);
    if (rc) return call_failed(call, &err);
    return answer_text(ask, 204, NULL, (struct str){0});
}

// A stored result that the task of a lease may see: one of the tenant whose task it is.
static bool read_result(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct error err = {0};
    struct remote_caller caller = caller_of(ask);
    struct str ref, tenant, run, bytes;
    if (!query_text(ask, "ref", &ref)) return false;
    enum code rc =
        remote_whose(service_remote(call->service), &caller, ask->params[0], &call->arena, &tenant, &run, &err);
    bool leased = rc == OK;
    if (leased) rc = store_result(store, tenant, run, ref, &call->arena, &bytes, &err);
    if (rc == E_CONFLICT) return call_problem(call, 409, "STALE_ATTEMPT", "%s", err.message);
    if (leased && (rc == E_NOT_FOUND || rc == E_INVALID))
        return call_problem(call, 404, "REFERENCE_NOT_AVAILABLE", "%s", err.message);
    if (leased && rc == E_UNREACHABLE) return call_problem(call, 503, "REFERENCE_NOT_AVAILABLE", "%s", err.message);
    if (rc) return call_failed(call, &err);
    return answer_text(ask, 200, "application/octet-stream", bytes);
}

// Both read or write files, so not on the net thread.
static bool serve_file(struct ask *ask, bool (*read)(struct call *, struct store *))
{
    struct auth_object object = {
        .tenant = ask->call->who.tenant, .exists = true, .own_task = true, .pool = ask->call->who.pool};
    return service_may(ask->call, OPERATION_WORKER_RESULT, &object, (struct str){0}) && service_read(ask->call, read);
}

bool handle_worker_artifact(struct ask *ask)
{
    return serve_file(ask, store_artifact);
}

bool handle_worker_read(struct ask *ask)
{
    return serve_file(ask, read_result);
}

bool handle_worker_list(struct ask *ask)
{
    struct json items;
    if (!service_may_all(ask->call, OPERATION_WORKER_LIST)) return false;
    if (remote_workers(service_remote(ask->call->service), ask->call->who.tenant, &ask->call->arena, &items))
        return answer_page(ask, items, (struct str){0});
    return call_nomem(ask->call);
}
