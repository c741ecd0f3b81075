// Is it there, who am I, what can it do, what does it count.
#include "api/inside.h"

#include "cairn/cairn.h"
#include "contract/profile.h"
#include "schema/embedded.h"

bool handle_live(struct ask *ask)
{
    return answer_text(ask, 200, "text/plain", STR("ok\n"));
}

static struct json check_json(struct ask *ask, const char *name, bool ok, struct str detail)
{
    return JSON_OF(&ask->call->arena, {"name", json_word(name)}, {"ok", json_bool(ok)},
                   {"detail", json_copied_some(&ask->call->arena, detail)});
}

// With ?verbose each check is listed, for callers who could ask for more: all others get yes or no.
bool handle_ready(struct ask *ask)
{
    struct service_health health = service_health(ask->call->service);
    bool ok = health.turns && health.writes && !health.stopping;
    struct error err = {0};
    enum code rc;
    bool verbose = false;
    if (ask_is_known(ask, &rc, &err) && !query_flag(ask, "verbose", &verbose)) return false;
    if (!verbose) return answer_text(ask, ok ? 200 : 503, "text/plain", ok ? STR("ok\n") : STR("not ready\n"));
    struct json checks = json_array();
    struct call *call = ask->call;
    struct arena *arena = &call->arena;
    long long turned = health.turned_ms, stored = health.stored_ms;
    struct service_projection projection = service_projection(call->service);
    bool projects = project_lag_class(projection.lag_ms) != PROJECT_LAG_BAD; // reported, but no reason to send no requests here
    json_append(arena, &checks, check_json(ask, "engine", health.turns, call_text(call, "turned %lld ms ago", turned)));
    json_append(arena, &checks,
                check_json(ask, "store", health.writes,
                           call_text(call, "%sstored something %lld ms ago",
                                     health.refused ? "the last batch was refused; " : "", stored)));
    json_append(arena, &checks,
                check_json(ask, "open", !health.stopping, call_text(call, "%zu calls wait", health.waiting)));
    json_append(arena, &checks,
                check_json(ask, "projector", projects,
                           call_text(call, "%lld ms and %llu events behind; %zu of %zu runs are read again",
                                     (long long)projection.lag_ms, (unsigned long long)projection.waiting,
                                     projection.stale, projection.runs)));
    return call_answer(call, ok ? 200 : 503, JSON_OF(arena, {"ready", json_bool(ok)}, {"checks", checks}));
}

bool handle_metrics(struct ask *ask)
{
    struct service *service = ask->call->service;
    struct metrics *metrics = service_metrics(service);
    struct net_stats net;
    struct buf text;
    if (!service_may(ask->call, OPERATION_METRICS, NULL, (struct str){0})) return false;
    static const char *const types[] = {"application/openmetrics-text", "text/plain"};
    enum metrics_format format =
        accept_best(ask->request, types, ARRAY_COUNT(types)) == 0 ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
    service_look(service);
    net_stats(ask->api->server, &net);
    metric_set(metrics, METRIC_HTTP_CONNECTIONS, NULL, (int64_t)net.open);
    metric_set(metrics, METRIC_HTTP_STREAMS, NULL, (int64_t)net.streams);
    buf_init(&text, (size_t)16 << 20);
    metrics_write(metrics, format, ask->call->who.roles & ROLE_PLATFORM, &text);
    return answer_kept(ask, 200, metrics_content_type(format), &text);
}

// Whose engines and pools these are: all tenants share them, so it is for those who see the metrics of the service.
bool handle_engine_list(struct ask *ask)
{
    struct json body;
    if (!service_may(ask->call, OPERATION_METRICS, NULL, (struct str){0})) return false;
    if (!service_engines(ask->call->service, &ask->call->arena, &body)) return call_nomem(ask->call);
    JSON_ADD(&ask->call->arena, &body, {"version", json_word(CAIRN_VERSION)});
    return call_answer(ask->call, 200, body);
}

struct json principal_json(struct ask *ask)
{
    const struct principal *who = &ask->call->who;
    struct arena *arena = &ask->call->arena;
    struct json roles = json_array(), operations = json_array();
    for (int i = 0; i < OPERATION_COUNT; i++)
        if (service_could(ask->call->service, who, (enum operation)i))
            json_append(arena, &operations, json_word(operation_name((enum operation)i)));
    for (unsigned role = 1; role <= ROLE_ALL; role <<= 1)
        if (who->roles & role) json_append(arena, &roles, json_word(role_word((enum role)role)));
    return JSON_OF(arena, {"id", json_some(who->id)}, {"tenantId", json_some(who->tenant)}, {"roles", roles},
                   {"operations", operations}, {"projects", names_json(arena, who->projects)},
                   {"environments", names_json(arena, who->environments)}, {"pool", json_some(who->pool)},
                   {"payloads", json_bool(auth_sees_payloads(service_auth(ask->call->service), who))},
                   {"expiresAt", json_time_some(arena, who->expires_ms)},
                   {"sessionExpiresAt", json_time_some(arena, who->session_ms)});
}

bool handle_whoami(struct ask *ask)
{
    if (service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0}))
        call_answer(ask->call, 200, principal_json(ask));
    return true;
}

// Which ways of signing in there are: for clients that have none of them yet.
bool handle_sign_in(struct ask *ask)
{
    return call_answer(ask->call, 200, service_sign_in(ask->call->service, &ask->call->arena));
}

// The matrix (requirements §3.2): who can do what, or has something that stands in for it.
static struct json matrix_json(enum provider first, struct arena *arena)
{
    static const char *const words[] = {"", "native", "emulated", "unsupported"};
    struct json rows = json_array();
    for (int c = 1; c <= CAPABILITY_LAST; c++) {
        struct json row = JSON_OF(arena, {"capability", json_name(capability_value((enum capability)c))});
        for (int p = (int)first; p <= PROVIDER_MOCK; p++)
            JSON_ADD(arena, &row, {provider_name((enum provider)p),
                                   json_name(words[capability_support((enum capability)c, (enum provider)p)])});
        json_append(arena, &rows, row);
    }
    return rows;
}

// What carries the runs of this service, and who does what then.
static struct json carriers_json(struct ask *ask)
{
    struct arena *arena = &ask->call->arena;
    struct service_carrier carrier;
    struct json hosts = json_array(), rows = json_array();
    if (!service_carrier(ask->call->service, &carrier)) return hosts;
    for (int c = 1; c <= CAPABILITY_LAST; c++) {
        bool carried = capability_carried((enum capability)c, carrier.provider);
        json_append(arena, &rows, JSON_OF(arena, {"capability", json_name(capability_value((enum capability)c))},
                                          {"by", json_name(carried ? "host" : "engine")}));
    }
    json_append(arena, &hosts,
                JSON_OF(arena, {"provider", json_word(provider_name(carrier.provider))},
                        {"namespace", json_some(carrier.space)}, {"taskQueue", json_some(carrier.queue)},
                        {"capabilities", rows}));
    return hosts;
}

bool handle_capabilities(struct ask *ask)
{
    static const char *const schema[] = {"v1.0", "v1.1", "v1.2"};
    struct arena *arena = &ask->call->arena;
    struct json versions = json_array(), kinds = json_array(), providers = json_array();
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return false;
    for (size_t i = 0; i < ARRAY_COUNT(schema); i++) json_append(arena, &versions, json_word(schema[i]));
    for (int kind = DOCUMENT_PLAN; kind <= DOCUMENT_PLAYBOOK; kind++)
        json_append(arena, &kinds, json_word(document_kind_name((enum document_kind)kind)));
    // The contract does not know cairn (C-07): where only its providers are wanted, it is none.
    enum provider usual = service_usual(ask->call->service);
    enum provider first = service_is_strict(ask->call->service) ? PROVIDER_TEMPORAL : PROVIDER_CAIRN;
    for (int p = (int)first; p <= PROVIDER_MOCK; p++)
        json_append(arena, &providers, json_word(provider_name((enum provider)p)));
    return call_answer(ask->call, 200,
                       JSON_OF(arena, {"provider", json_word(provider_name(usual))}, {"documents", kinds},
                               {"schemaVersions", versions}, {"providers", providers},
                               {"capabilities", matrix_json(first, arena)}, {"hosts", carriers_json(ask)},
                               {"startedAt", json_time_some(arena, service_started_ms(ask->call->service))}));
}

// /schemas/run-snapshot.json: as they are carried in the binary.
bool handle_schema_get(struct ask *ask)
{
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return false;
    for (size_t i = 0; i < embedded_file_count; i++) {
        const struct embedded_file *file = &embedded_files[i];
        struct str name = str_from(file->name);
        size_t slash = name.len;
        while (slash > 0 && name.ptr[slash - 1] != '/') slash--;
        if (!str_eq(ask->params[0], name) && !str_eq(ask->params[0], str_slice(name, slash, name.len))) continue;
        return answer_text(ask, 200, "application/schema+json", (struct str){(const char *)file->bytes, file->size});
    }
    return call_problem(ask->call, 404, "NOT_FOUND", "there is no such schema");
}
