// New runs made from old ones. The bodies were held against their components already: types are as they should be.
#include "api/inside.h"

#include <string.h>

static bool read_from(struct ask *ask, struct fork_request *out)
{
    const struct json *from = json_key(&ask->body, "from"), *step = json_key(&ask->body, "stepId");
    size_t count = step ? 1 : from ? from->count : 0;
    struct str *names = ARENA_ARRAY(&ask->call->arena, count + 1, struct str);
    if (!names) return false;
    for (size_t i = 0; i < count; i++) names[i] = json_text(step ? step : &from->items[i]);
    out->from = names;
    out->from_count = count;
    return true;
}

static bool read_outputs(struct ask *ask, struct fork_request *out)
{
    const struct json *given = json_key(&ask->body, "outputs");
    size_t count = given ? given->count : 0;
    struct fork_output *outputs = ARENA_ARRAY(&ask->call->arena, count + 1, struct fork_output);
    if (!outputs) return false;
    for (size_t i = 0; i < count; i++)
        outputs[i] = (struct fork_output){.step = given->members[i].key, .value = given->members[i].value};
    out->outputs = outputs;
    out->output_count = count;
    return true;
}

bool handle_fork(struct ask *ask)
{
    const char *how = ask->route->how;
    const struct json *body = &ask->body, *inputs = json_key(body, "inputs");
    struct fork_call fork = {.how = how,
                             .preview = ask->route->flags & ROUTE_PREVIEW,
                             .document = json_text(json_key(body, "document")),
                             .file = json_text(json_key(body, "file")),
                             .parts = json_key(body, "parts"),
                             .run = json_text(json_key(body, "runId")),
                             .reason = json_text(json_key(body, "reason")),
                             .body = ask->body,
                             .wait_ms = prefer_wait_ms(ask->request)};
    struct fork_request *request = &fork.request;
    if (!body_one(ask, "document", "planRef") || !body_one(ask, "parts", "planRef")) return false;
    if (!body_ref(ask, &fork.ref) || !idempotency_key(ask, &fork.request_id)) return false;
    if (!read_from(ask, request) || !read_outputs(ask, request)) return call_nomem(ask->call);
    if (inputs) request->inputs = *inputs;
    request->results_only = strcmp(how, "fork") != 0;
    int64_t at = json_integer(json_key(body, "fromSeq"), -1);
    request->at = at >= 0 ? (uint64_t)at : UINT64_MAX;
    // A rerun from nowhere takes nothing over.
    if (strcmp(how, "rerun") == 0 && request->from_count == 0) request->at = 0;
    return service_fork(ask->call, ask->params[0], &fork);
}
