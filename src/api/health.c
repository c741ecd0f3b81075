// Is it there, who am I, what can it do, what does it count.
#include "api/inside.h"

#include "contract/profile.h"
#include "schema/embedded.h"

void handle_live(struct ask *ask)
{
    answer_text(ask, 200, "text/plain", STR("ok\n"));
}

static bool add_check(struct ask *ask, struct json *checks, const char *name, bool ok, struct str detail)
{
    struct json row = json_object();
    return ask_text(ask, &row, "name", str_from(name)) && ask_json(ask, &row, "ok", json_bool(ok)) &&
           ask_text(ask, &row, "detail", detail) && json_push(&ask->call->arena, checks, row);
}

// With ?verbose each check is told, to those who have a token: the rest of the world gets yes or no.
void handle_ready(struct ask *ask)
{
    struct service_health health = service_health(ask->call->service);
    bool ok = health.turns && health.writes && !health.stopping;
    struct str bearer = auth_bearer(http_find(ask->request, "authorization"));
    bool known = bearer.len > 0 && service_authenticate(ask->call->service, bearer, &ask->call->arena, &ask->call->who);
    bool verbose = false;
    if (known && !query_flag(ask, "verbose", &verbose)) return;
    if (!verbose) {
        answer_text(ask, ok ? 200 : 503, "text/plain", ok ? STR("ok\n") : STR("not ready\n"));
        return;
    }
    struct json body = json_object(), checks = json_array();
    struct call *call = ask->call;
    long long turned = health.turned_ms, stored = health.stored_ms;
    struct service_projection projection = service_projection(call->service);
    bool projects = project_lag_class(projection.lag_ms) != PROJECT_LAG_BAD; // told, but no reason to send nobody here
    bool made = add_check(ask, &checks, "engine", health.turns, call_text(call, "turned %lld ms ago", turned)) &&
                add_check(ask, &checks, "store", health.writes,
                          call_text(call, "%sstored something %lld ms ago",
                                    health.refused ? "the last batch was refused; " : "", stored)) &&
                add_check(ask, &checks, "open", !health.stopping, call_text(call, "%zu calls wait", health.waiting)) &&
                add_check(ask, &checks, "projector", projects,
                          call_text(call, "%lld ms and %llu events behind; %zu of %zu runs are read again",
                                    (long long)projection.lag_ms, (unsigned long long)projection.waiting,
                                    projection.stale, projection.runs)) &&
                ask_json(ask, &body, "ready", json_bool(ok)) && ask_json(ask, &body, "checks", checks);
    if (made)
        call_answer(ask->call, ok ? 200 : 503, body);
    else
        call_nomem(ask->call);
}

void handle_metrics(struct ask *ask)
{
    struct service *service = ask->call->service;
    struct metrics *metrics = service_metrics(service);
    struct net_stats net;
    struct buf text;
    if (!service_may(ask->call, OPERATION_METRICS, NULL, (struct str){0})) return;
    static const char *const types[] = {"application/openmetrics-text", "text/plain"};
    enum metrics_format format =
        accept_best(ask->request, types, ARRAY_COUNT(types)) == 0 ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
    service_look(service);
    net_stats(ask->api->server, &net);
    metric_set(metrics, METRIC_HTTP_CONNECTIONS, NULL, (int64_t)net.open);
    metric_set(metrics, METRIC_HTTP_STREAMS, NULL, (int64_t)net.streams);
    buf_init(&text, (size_t)16 << 20);
    metrics_write(metrics, format, &text);
    struct str copy = buf_ok(&text) ? arena_copy(&ask->call->arena, buf_str(&text)) : (struct str){0};
    buf_release(&text);
    if (copy.ptr)
        answer_text(ask, 200, metrics_content_type(format), copy);
    else
        call_nomem(ask->call);
}

static bool put_names(struct ask *ask, struct json *object, const char *key, struct names names)
{
    struct json list = json_array();
    for (size_t i = 0; i < names.count; i++)
        if (!json_push(&ask->call->arena, &list, json_string(names.at[i]))) return false;
    return names.count == 0 || ask_json(ask, object, key, list);
}

void handle_whoami(struct ask *ask)
{
    const struct principal *who = &ask->call->who;
    struct json body = json_object(), roles = json_array();
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    bool ok = ask_text(ask, &body, "id", who->id) && ask_text(ask, &body, "tenantId", who->tenant);
    for (unsigned role = 1; ok && role <= ROLE_ALL; role <<= 1)
        if (who->roles & role)
            ok = json_push(&ask->call->arena, &roles, json_string(str_from(role_word((enum role)role))));
    ok = ok && ask_json(ask, &body, "roles", roles) && put_names(ask, &body, "projects", who->projects) &&
         put_names(ask, &body, "environments", who->environments) && ask_text(ask, &body, "pool", who->pool) &&
         ask_time(ask, &body, "expiresAt", who->expires_ms);
    if (ok)
        call_answer(ask->call, 200, body);
    else
        call_nomem(ask->call);
}

// The matrix (requirements §3.2): who can do what, or has something that stands in for it.
static bool put_matrix(struct ask *ask, struct json *body)
{
    static const char *const words[] = {"", "native", "emulated", "unsupported"};
    struct arena *arena = &ask->call->arena;
    struct json rows = json_array(), providers = json_array();
    bool ok = true;
    for (int p = PROVIDER_CAIRN; ok && p <= PROVIDER_MOCK; p++)
        ok = json_push(arena, &providers, json_string(str_from(provider_name((enum provider)p))));
    for (int c = 1; ok && c <= CAPABILITY_LAST; c++) {
        struct json row = json_object();
        ok = ask_text(ask, &row, "capability", str_from(capability_value((enum capability)c)));
        for (int p = PROVIDER_CAIRN; ok && p <= PROVIDER_MOCK; p++)
            ok = ask_text(ask, &row, provider_name((enum provider)p),
                          str_from(words[capability_support((enum capability)c, (enum provider)p)]));
        ok = ok && json_push(arena, &rows, row);
    }
    return ok && ask_json(ask, body, "providers", providers) && ask_json(ask, body, "capabilities", rows);
}

void handle_capabilities(struct ask *ask)
{
    struct json body = json_object();
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    struct json versions = json_array(), kinds = json_array();
    static const char *const schema[] = {"v1.0", "v1.1", "v1.2"};
    bool ok = true;
    for (size_t i = 0; ok && i < ARRAY_COUNT(schema); i++)
        ok = json_push(&ask->call->arena, &versions, json_string(str_from(schema[i])));
    for (int kind = DOCUMENT_PLAN; ok && kind <= DOCUMENT_PLAYBOOK; kind++)
        ok = json_push(&ask->call->arena, &kinds, json_string(str_from(document_kind_name((enum document_kind)kind))));
    ok = ok && ask_text(ask, &body, "provider", STR("cairn")) && ask_json(ask, &body, "documents", kinds) &&
         ask_json(ask, &body, "schemaVersions", versions) && put_matrix(ask, &body) &&
         ask_time(ask, &body, "startedAt", service_started_ms(ask->call->service));
    if (ok)
        call_answer(ask->call, 200, body);
    else
        call_nomem(ask->call);
}

// /schemas/run-snapshot.json: as they are carried in the binary.
void handle_schema_get(struct ask *ask)
{
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    for (size_t i = 0; i < embedded_file_count; i++) {
        const struct embedded_file *file = &embedded_files[i];
        struct str name = str_from(file->name);
        size_t slash = name.len;
        while (slash > 0 && name.ptr[slash - 1] != '/') slash--;
        if (!str_eq(ask->params[0], name) && !str_eq(ask->params[0], str_slice(name, slash, name.len))) continue;
        answer_text(ask, 200, "application/schema+json", (struct str){(const char *)file->bytes, file->size});
        return;
    }
    call_problem(ask->call, 404, "NOT_FOUND", "there is no such schema");
}
