// Schedules of a tenant, and what became of their times.
#include "api/inside.h"

static struct schedule_call named(const struct ask *ask)
{
    return (struct schedule_call){.name = ask->params[0], .reason = json_text(json_key(&ask->body, "reason"))};
}

bool handle_schedule_list(struct ask *ask)
{
    return service_schedule_list(ask->call);
}

bool handle_schedule_get(struct ask *ask)
{
    return service_schedule_get(ask->call, ask->params[0]);
}

bool handle_schedule_put(struct ask *ask)
{
    const struct json *body = &ask->body, *paused = json_key(body, "paused");
    struct schedule_call given = named(ask);
    given.file = json_text(json_key(body, "file"));
    given.parts = json_key(body, "parts");
    given.spec = json_key(body, "schedule");
    given.paused = paused && paused->boolean;
    if (!body_one(ask, "document", "planRef") || !body_one(ask, "parts", "planRef")) return false;
    if (!body_document(ask, &given.document) || !body_ref(ask, &given.ref) ||
        !body_place(ask, "projectId", ask->call->place.project, &given.project) ||
        !body_place(ask, "environmentId", ask->call->place.environment, &given.environment))
        return false;
    return service_schedule_put(ask->call, &given);
}

bool handle_schedule_delete(struct ask *ask)
{
    struct schedule_call given = named(ask);
    return service_schedule_delete(ask->call, &given);
}

bool handle_schedule_pause(struct ask *ask)
{
    struct schedule_call given = named(ask);
    given.paused = true;
    return service_schedule_pause(ask->call, &given);
}

bool handle_schedule_resume(struct ask *ask)
{
    struct schedule_call given = named(ask);
    return service_schedule_pause(ask->call, &given);
}

bool handle_schedule_trigger(struct ask *ask)
{
    struct schedule_call given = named(ask);
    given.inputs = json_key(&ask->body, "inputs");
    return idempotency_key(ask, &given.request_id) && service_schedule_trigger(ask->call, &given);
}

static bool take_count(struct ask *ask, size_t *out)
{
    struct str text;
    int64_t count;
    if (!query_text(ask, "limit", &text)) return false;
    if (text.len == 0) return true;
    if (!str_int64(text, &count) || count < 1 || count > 1000)
        return call_problem(ask->call, 400, "INVALID_REQUEST", "limit is a number from 1 to 1000");
    *out = (size_t)count;
    return true;
}

bool handle_schedule_next(struct ask *ask)
{
    struct schedule_call given = named(ask);
    return take_count(ask, &given.count) && query_text(ask, "from", &given.from) &&
           service_schedule_next(ask->call, &given);
}

bool handle_schedule_ticks(struct ask *ask)
{
    struct schedule_call given = named(ask);
    return take_count(ask, &given.count) && service_schedule_ticks(ask->call, &given);
}

bool handle_schedule_backfill(struct ask *ask)
{
    const struct json *body = &ask->body, *dry = json_key(body, "dryRun");
    struct schedule_call given = named(ask);
    given.from = json_text(json_key(body, "from"));
    given.to = json_text(json_key(body, "to"));
    given.order = json_text(json_key(body, "order"));
    given.limit = (uint32_t)json_integer(json_key(body, "limit"), 0);
    given.parallel = (uint32_t)json_integer(json_key(body, "parallel"), 0);
    given.dry_run = dry && dry->boolean;
    return service_schedule_backfill(ask->call, &given);
}

bool handle_schedule_backfills(struct ask *ask)
{
    return service_schedule_backfills(ask->call, ask->params[0]);
}

bool handle_schedule_backfill_end(struct ask *ask)
{
    struct schedule_call given = named(ask);
    given.id = ask->params[1];
    return service_schedule_backfill_end(ask->call, &given);
}
