// Tokens, audit, alerts: what those see who look after the service.
#include "api/inside.h"

#include "base/civil.h"

// ---- tokens

static bool read_names(struct ask *ask, const char *key, struct names *out)
{
    const struct json *value = json_key(&ask->body, key);
    if (!value || value->type == JSON_NULL) return true;
    struct str *names = value->type == JSON_ARRAY ? ARENA_ARRAY(&ask->call->arena, value->count + 1, struct str) : NULL;
    for (uint32_t i = 0; names && i < value->count; i++) {
        names[i] = json_text(&value->items[i]);
        if (names[i].len == 0) names = NULL;
    }
    if (!names) return call_problem(ask->call, 400, "INVALID_REQUEST", "%s must be a list of names", key);
    *out = (struct names){names, value->count};
    return true;
}

static bool read_roles(struct ask *ask, uint32_t *out)
{
    const struct json *value = json_key(&ask->body, "roles");
    *out = 0;
    for (uint32_t i = 0; value && value->type == JSON_ARRAY && i < value->count; i++) {
        enum role role = role_parse(json_text(&value->items[i]));
        if (!role)
            return call_problem(ask->call, 400, "INVALID_REQUEST", "there is no role %.*s",
                                STR_ARG(json_text(&value->items[i])));
        *out |= role;
    }
    if (*out) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST",
                        "roles is needed: some of Operator, Engineer, Admin, System, Worker, Host, Auditor");
}

static bool read_expiry(struct ask *ask, int64_t *out)
{
    struct str text = json_text(json_key(&ask->body, "expiresAt"));
    *out = 0;
    if (text.len == 0 || (civil_parse(text, out) && *out > os_now().wall_ms)) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "expiresAt must be a time to come");
}

bool handle_token_create(struct ask *ask)
{
    struct token_call token = {.name = json_text(json_key(&ask->body, "name")),
                               .tenant = json_text(json_key(&ask->body, "tenantId")),
                               .pool = json_text(json_key(&ask->body, "pool")),
                               .audience = json_text(json_key(&ask->body, "audience")),
                               .replaces = json_text(json_key(&ask->body, "replaces"))};
    return read_roles(ask, &token.roles) && read_names(ask, "projects", &token.projects) &&
           read_names(ask, "environments", &token.environments) && read_expiry(ask, &token.expires_ms) &&
           service_token_create(ask->call, &token);
}

bool handle_token_revoke(struct ask *ask)
{
    return service_token_revoke(ask->call, ask->params[0]);
}

static bool list_tokens(struct call *call, struct store *store)
{
    struct error err = {0};
    struct json items;
    if (service_token_list(call, store, &items, &err)) return call_failed(call, &err);
    return answer_page(call->context, items, (struct str){0});
}

bool handle_token_list(struct ask *ask)
{
    return service_may_all(ask->call, OPERATION_TOKEN_LIST) && service_read(ask->call, list_tokens);
}

// ---- audit

static bool list_audit(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct error err = {0};
    struct json items;
    struct str cursor, next, sort;
    int64_t after, limit;
    if (!query_number(ask, "after", 0, INT64_MAX, 0, &after) || !query_cursor(ask, &cursor) ||
        !query_number(ask, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit) || !query_text(ask, "sort", &sort))
        return false;
    bool newest = str_is(sort, "-timestamp");
    if ((sort.len > 0 && !newest) || (newest && after > 0))
        return call_problem(call, 400, "INVALID_REQUEST", "sort can be -timestamp, and then goes without after");
    if (newest ? service_audit_newest(call, store, cursor, (size_t)limit, &items, &next, &err)
               : service_audit_list(call, store, cursor, (uint64_t)after, (size_t)limit, &items, &next, &err))
        return call_failed(call, &err);
    return answer_page(ask, items, next);
}

bool handle_audit_list(struct ask *ask)
{
    return service_may_all(ask->call, OPERATION_AUDIT_READ) && service_read(ask->call, list_audit);
}

// ---- the store

static bool tell_store(struct call *call, struct store *store)
{
    struct store_stats stats;
    struct error err = {0};
    struct json body;
    // Whose store it is all of: who sees the metrics of the service sees the runs of all tenants counted.
    if (reading_stats(store, STR(""), os_now().wall_ms, &call->arena, &stats, &err)) return call_failed(call, &err);
    if (!store_stats_json(&stats, &call->arena, &body) ||
        !json_put(&call->arena, &body, STR("kind"), json_word(store_kind(store))))
        return call_nomem(call);
    return call_answer(call, 200, body);
}

bool handle_store_usage(struct ask *ask)
{
    return service_may(ask->call, OPERATION_METRICS, NULL, (struct str){0}) && service_read(ask->call, tell_store);
}

bool handle_audit_verify(struct ask *ask)
{
    return service_audit_verify(ask->call);
}

// ---- alerts

static bool list_alerts(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct json items;
    if (!service_alerts(call->service, ask->state, &call->arena, &items)) return call_nomem(call);
    service_keep_seen(call, store, &items);
    return answer_page(ask, items, (struct str){0});
}

bool handle_alert_list(struct ask *ask)
{
    struct str state;
    if (!service_may_all(ask->call, OPERATION_ALERT_LIST)) return false;
    struct alert_filter *filter = CALL_NEW(ask->call, struct alert_filter);
    if (!filter) return false;
    filter->tenant = ask->call->who.tenant;
    filter->of_none = ask->call->who.roles & ROLE_PLATFORM;
    if (!query_text(ask, "run", &filter->run) || !query_text(ask, "state", &state)) return false;
    filter->open = str_is(state, "open");
    ask->state = filter;
    return service_read(ask->call, list_alerts);
}

// ---- documents

static bool validate(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    (void)store;
    struct validate_call given = {.file = json_text(json_key(&ask->body, "file")),
                                  .target_adapter = json_text(json_key(&ask->body, "targetAdapter")),
                                  .parts = json_key(&ask->body, "parts")};
    return body_document(ask, &given.document) && service_validate(call, &given);
}

bool handle_plan_validate(struct ask *ask)
{
    return service_may_all(ask->call, OPERATION_PLAN_VALIDATE) && service_read(ask->call, validate);
}

static bool draw(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    (void)store;
    struct validate_call given = {.file = json_text(json_key(&ask->body, "file")), .parts = json_key(&ask->body, "parts")};
    return body_document(ask, &given.document) && service_draw(call, &given);
}

bool handle_plan_graph(struct ask *ask)
{
    return service_may_all(ask->call, OPERATION_PLAN_VALIDATE) && service_read(ask->call, draw);
}
