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
    if (!names) {
        call_problem(ask->call, 400, "INVALID_REQUEST", "%s must be a list of names", key);
        return false;
    }
    *out = (struct names){names, value->count};
    return true;
}

static bool read_roles(struct ask *ask, uint32_t *out)
{
    const struct json *value = json_key(&ask->body, "roles");
    *out = 0;
    for (uint32_t i = 0; value && value->type == JSON_ARRAY && i < value->count; i++) {
        enum role role = role_parse(json_text(&value->items[i]));
        if (!role) {
            call_problem(ask->call, 400, "INVALID_REQUEST", "there is no role %.*s",
                         STR_ARG(json_text(&value->items[i])));
            return false;
        }
        *out |= role;
    }
    if (*out) return true;
    call_problem(ask->call, 400, "INVALID_REQUEST",
                 "roles is needed: some of Operator, Engineer, Admin, System, Worker, Auditor");
    return false;
}

static bool read_expiry(struct ask *ask, int64_t *out)
{
    struct str text = json_text(json_key(&ask->body, "expiresAt"));
    *out = 0;
    if (text.len == 0 || (civil_parse(text, out) && *out > os_now().wall_ms)) return true;
    call_problem(ask->call, 400, "INVALID_REQUEST", "expiresAt must be a time to come");
    return false;
}

void handle_token_create(struct ask *ask)
{
    struct token_call token = {.name = json_text(json_key(&ask->body, "name")),
                               .tenant = json_text(json_key(&ask->body, "tenantId")),
                               .pool = json_text(json_key(&ask->body, "pool")),
                               .audience = json_text(json_key(&ask->body, "audience"))};
    if (read_roles(ask, &token.roles) && read_names(ask, "projects", &token.projects) &&
        read_names(ask, "environments", &token.environments) && read_expiry(ask, &token.expires_ms))
        service_token_create(ask->call, &token);
}

void handle_token_revoke(struct ask *ask)
{
    service_token_revoke(ask->call, ask->params[0]);
}

static bool token_json(struct ask *ask, const struct token *token, struct json *out)
{
    struct json roles = json_array();
    bool ok = true;
    for (unsigned role = 1; ok && role <= ROLE_ALL; role <<= 1)
        if (token->principal.roles & role)
            ok = json_push(&ask->call->arena, &roles, json_string(str_from(role_word((enum role)role))));
    *out = json_object();
    return ok && ask_text(ask, out, "id", token->id) && ask_text(ask, out, "name", token->name) &&
           ask_text(ask, out, "tenantId", token->principal.tenant) && ask_json(ask, out, "roles", roles) &&
           ask_text(ask, out, "pool", token->principal.pool) && ask_text(ask, out, "createdBy", token->created_by) &&
           ask_time(ask, out, "createdAt", token->created_ms) &&
           ask_time(ask, out, "expiresAt", token->principal.expires_ms) &&
           ask_time(ask, out, "revokedAt", token->revoked_ms);
}

static void list_tokens(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct json items = json_array();
    struct error err = {0};
    struct str after = {0};
    for (;;) {
        struct notes notes;
        enum code rc = store_notes(store, STR("token"), after, PAGE_MAX, &call->arena, &notes, &err);
        for (size_t i = 0; !rc && i < notes.count; i++) {
            struct token token;
            struct json row;
            rc = auth_token_decode(notes.items[i].value, &call->arena, &token, &err);
            if (rc || !str_eq(token.principal.tenant, call->who.tenant)) continue;
            if (!token_json(ask, &token, &row) || !json_push(&call->arena, &items, row))
                rc = error_set(&err, E_NOMEM, "out of memory");
        }
        if (rc) {
            call_failed(call, &err);
            return;
        }
        if (notes.count == 0) break;
        after = notes.items[notes.count - 1].key;
    }
    answer_page(ask, items, (struct str){0});
}

void handle_token_list(struct ask *ask)
{
    struct auth_object all = {.tenant = ask->call->who.tenant, .exists = true};
    if (service_may(ask->call, OPERATION_TOKEN_LIST, &all, (struct str){0})) service_read(ask->call, list_tokens);
}

// ---- audit

static void list_audit(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct error err = {0};
    struct json items = json_array();
    struct notes notes;
    struct buf key;
    struct str cursor;
    int64_t after, limit;
    if (!query_number(ask, "after", 0, INT64_MAX, 0, &after) || !query_cursor(ask, &cursor) ||
        (cursor.len > 0 && !str_int64(cursor, &after)) ||
        !query_number(ask, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit))
        return;
    buf_init(&key, 1024);
    audit_key(call->who.tenant, (uint64_t)after, &key);
    enum code rc = store_notes(store, STR("audit"), buf_str(&key), (size_t)limit, &call->arena, &notes, &err);
    buf_release(&key);
    struct str prefix = call_text(call, "%.*s/", STR_ARG(call->who.tenant));
    size_t count = 0;
    for (size_t i = 0; !rc && i < notes.count; i++) {
        struct json record;
        if (!str_starts(notes.items[i].key, prefix)) break; // another tenant's
        rc = json_parse(notes.items[i].value, NULL, &call->arena, &record, &err);
        if (!rc && !json_push(&call->arena, &items, record)) rc = error_set(&err, E_NOMEM, "out of memory");
        count++;
    }
    if (rc)
        call_failed(call, &err);
    else
        answer_page(ask, items,
                    count == (size_t)limit ? call_text(call, "%lld", (long long)(after + limit)) : (struct str){0});
}

void handle_audit_list(struct ask *ask)
{
    struct auth_object all = {.tenant = ask->call->who.tenant, .exists = true};
    if (service_may(ask->call, OPERATION_AUDIT_READ, &all, (struct str){0})) service_read(ask->call, list_audit);
}

void handle_audit_verify(struct ask *ask)
{
    service_audit_verify(ask->call);
}

// ---- alerts

void handle_alert_list(struct ask *ask)
{
    struct auth_object all = {.tenant = ask->call->who.tenant, .exists = true};
    struct alert_filter filter = {.tenant = ask->call->who.tenant};
    struct str state;
    struct json items;
    if (!service_may(ask->call, OPERATION_ALERT_LIST, &all, (struct str){0}) || !query_text(ask, "run", &filter.run) ||
        !query_text(ask, "state", &state))
        return;
    filter.open = str_is(state, "open");
    if (service_alerts(ask->call->service, &filter, &ask->call->arena, &items))
        answer_page(ask, items, (struct str){0});
    else
        no_memory(ask);
}

// ---- documents

static void validate(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    (void)store;
    struct validate_call given = {.file = json_text(json_key(&ask->body, "file")),
                                  .target_adapter = json_text(json_key(&ask->body, "targetAdapter")),
                                  .parts = json_key(&ask->body, "parts")};
    if (body_document(ask, &given.document)) service_validate(call, &given);
}

void handle_plan_validate(struct ask *ask)
{
    struct auth_object all = {.tenant = ask->call->who.tenant, .exists = true};
    if (service_may(ask->call, OPERATION_PLAN_VALIDATE, &all, (struct str){0})) service_read(ask->call, validate);
}
