// [serve] of a configuration, member by member: docs/format/serve.md.
#include "service/inside.h"

#include "temporal/temporal.h"

#include "http/http.h"
#include "os/os.h"

enum { LIST_MAX = 16, ROUTES_MAX = 1024, COUNT_MAX = 1000000 };

// One text, or a list of them.
static void read_list(struct form *form, const char *name, const struct str **items, size_t *count)
{
    struct str *one = ARENA_NEW(form->arena, struct str);
    if (!json_is(json_key(form->object, name), JSON_STRING)) {
        form_texts(form, name, false, LIST_MAX, items, count);
        return;
    }
    if (one) form_text(form, name, one);
    if (!one) form_nomem(form);
    *items = one;
    *count = 1;
}

// As a browser writes it: a scheme, a host, perhaps a port, and nothing behind them.
static bool is_origin(struct str text)
{
    struct str host, port;
    size_t scheme = str_starts(text, STR("https://")) ? sizeof("https://") - 1 : sizeof("http://") - 1;
    bool http = scheme == sizeof("https://") - 1 || str_starts(text, STR("http://"));
    return http && http_host_split(str_slice(text, scheme, text.len), &host, &port);
}

static void read_origins(struct form *form, struct service_settings *out)
{
    read_list(form, "origins", &out->origins, &out->origin_count);
    for (size_t i = 0; !form->rc && i < out->origin_count; i++)
        if (!is_origin(out->origins[i]))
            form_fail(form, "origins", "must be like https://cairn.example.com, without a path");
}

static void read_proxies(struct form *form, struct service_settings *out)
{
    const struct str *items = NULL;
    size_t count = 0, known = 0;
    read_list(form, "proxies", &items, &count);
    if (form->rc || !items) return;
    struct os_network *networks = ARENA_ARRAY(form->arena, LIST_MAX, struct os_network);
    if (!networks) form_nomem(form);
    for (size_t i = 0; networks && i < count; i++) {
        if (str_is(items[i], "unix"))
            out->unix_proxy = true;
        else if (os_network_parse(items[i], &networks[known]))
            known++;
        else
            form_fail(form, "proxies", "must be addresses, networks like 10.0.0.0/8, or \"unix\"");
    }
    out->proxies = networks;
    out->proxy_count = known;
}

static void read_seconds(struct form *form, const char *name, int64_t low, int64_t high, int64_t *ms)
{
    int64_t seconds = -1;
    form_number(form, name, low, high, &seconds);
    if (seconds >= 0) *ms = seconds * 1000;
}

static void read_plain(struct form *form, struct service_settings *out)
{
    read_list(form, "listen", &out->listen, &out->listen_count);
    read_list(form, "hosts", &out->hosts, &out->host_count);
    read_origins(form, out);
    read_proxies(form, out);
    form_flag(form, "insecure", &out->insecure);
    form_flag(form, "sharedDirectory", &out->shared_directory);
    form_path(form, "tokenFile", &out->token_file);
    read_seconds(form, "drainSeconds", 0, 86400, &out->drain_ms);
    form_count(form, "readers", 1, 16, &out->readers);
    form_count(form, "processes", 1, 100000, &out->processes);
    form_flag(form, "localSteps", &out->local_steps);
    form_path(form, "tools", &out->tools_dir);
    read_seconds(form, "engineLeaseSeconds", 2, 3600, &out->engine_lease_ms);
    read_seconds(form, "leaseSeconds", 1, 3600, &out->lease_ms);
    form_count(form, "maxRuns", 1, COUNT_MAX, &out->runs_max);
    form_count(form, "maxSteps", 1, PROGRAM_STEPS_MAX, &out->steps_max);
    form_count(form, "runsInMemory", 1, 10 * COUNT_MAX, &out->resident_max);
    const struct json *credentials = form_take(form, "credentials", JSON_OBJECT);
    if (credentials) out->credentials = *credentials;
    const struct json *sinks = form_take(form, "sinks", JSON_ARRAY); // looked at when they are opened (src/bus)
    if (sinks) out->sinks = sinks;
}

// ---- what has members of its own

static enum code read_tls(struct form *form, struct service_settings *out)
{
    form_path(form, "certificate", &out->tls_certificate);
    form_path(form, "key", &out->tls_key);
    service_clients_read(form, out);
    if (!out->tls_certificate.len || !out->tls_key.len) form_fail(form, NULL, "needs certificate and key");
    return form_end(form);
}

static enum code read_confinement(const struct json *value, struct arena *arena, struct service_settings *out,
                                  struct error *err)
{
    struct tool_confinement *made = ARENA_NEW(arena, struct tool_confinement);
    if (!made) return error_nomem(err);
    enum code rc = tool_confinement_parse(value, arena, made, err);
    if (!rc) out->confinement = made->level == TOOL_LEVEL_NONE ? NULL : made;
    out->confinement_said = true;
    return rc;
}

static enum code read_secrets(const struct json *value, struct arena *arena, struct service_settings *out,
                              struct error *err)
{
    struct tool_secrets *made = NULL;
    enum code rc = tool_secrets_parse(value, arena, &made, err);
    out->secrets = made;
    return rc;
}

static enum code read_containers(const struct json *value, struct arena *arena, struct service_settings *out, struct error *err)
{
    struct container_settings *made = ARENA_NEW(arena, struct container_settings);
    if (!made) return error_nomem(err);
    out->containers = made;
    return container_settings_parse(value, arena, made, err);
}

static enum code read_routes(const struct json *list, struct arena *arena, struct service_settings *out,
                             struct error *err)
{
    struct executor_route *routes = ARENA_ARRAY(arena, list->count + 1, struct executor_route);
    enum code rc = routes ? OK : error_nomem(err);
    for (uint32_t i = 0; !rc && i < list->count; i++) {
        struct form form;
        form_begin(&form, "routes", &list->items[i], arena, err);
        form_text(&form, "tenant", &routes[i].tenant);
        form_text(&form, "environment", &routes[i].environment);
        form_text(&form, "kind", &routes[i].kind);
        form_text(&form, "pool", &routes[i].pool);
        rc = form_end(&form);
    }
    out->routes = routes;
    out->route_count = rc ? 0 : list->count;
    return rc;
}

// Text, {env = NAME} or {file = PATH}.
static bool is_header(const struct json *value)
{
    if (json_text(value).len) return str_find(json_text(value), '\0', 0) == json_text(value).len;
    const struct json *env = json_key(value, "env"), *file = json_key(value, "file");
    return json_is(value, JSON_OBJECT) && value->count == 1 && json_text(env ? env : file).len > 0;
}

static enum code read_otlp(struct form *form, struct service_settings *out)
{
    struct service_otlp *made = ARENA_NEW(form->arena, struct service_otlp);
    if (!made) return form_nomem(form);
    form_text(form, "url", &made->url);
    form_path(form, "caFile", &made->ca_file);
    made->headers = form_take(form, "headers", JSON_OBJECT);
    if (!made->url.len) form_fail(form, NULL, "needs a url");
    if (!form->rc && !str_starts(made->url, STR("http://")) && !str_starts(made->url, STR("https://")))
        form_fail(form, "url", "begins with http:// or https://");
    for (uint32_t i = 0; made->headers && i < made->headers->count; i++)
        if (!is_header(&made->headers->members[i].value))
            form_fail(form, "headers", "a header is neither text, {env = NAME} nor {file = PATH}");
    out->otlp = made;
    return form_end(form);
}

// What references of runs say, and who runs a plan that leaves it open (C-07).
static enum code read_engine(struct form *form, struct service_settings *out)
{
    struct adapters *adapters = &out->adapters;
    struct str adapter = {0};
    form_flag(form, "strictSchema", &adapters->strict);
    form_text(form, "adapter", &adapter);
    form_text(form, "namespace", &adapters->space);
    form_text(form, "conductorUrl", &adapters->url);
    adapters->usual = provider_parse(adapter);
    bool known = adapter.len == 0 || adapters->usual;
    if (!known || (adapters->strict && adapters->usual == PROVIDER_CAIRN))
        form_fail(form, "adapter", "is temporal, conductor or mock; without strictSchema also cairn");
    if (adapters->space.len > 0 && !run_id_valid(adapters->space))
        form_fail(form, "namespace", "has letters, digits, '.', '_', ':' and '-', beginning with a letter or digit");
    if (adapters->url.len > 0 && !str_starts(adapters->url, STR("http://")) && !str_starts(adapters->url, STR("https://")))
        form_fail(form, "conductorUrl", "begins with http:// or https://");
    return form_end(form);
}

static enum code read_plans(struct form *form, struct service_settings *out)
{
    static const char *const words[] = {[INLINE_LOCAL] = "local", [INLINE_ALLOW] = "allow", [INLINE_DENY] = "deny"};
    struct str word = {0};
    form_text(form, "inline", &word);
    bool known = word.len == 0;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (!str_is(word, words[i])) continue;
        out->inline_plans = (enum inline_plans)i;
        known = true;
    }
    if (!known) form_fail(form, "inline", "is allow, local or deny");
    struct str bodies = STR("apart");
    form_text(form, "bodies", &bodies);
    if (!str_is(bodies, "store") && !str_is(bodies, "apart")) form_fail(form, "bodies", "is store or apart");
    out->plans_stored = str_is(bodies, "store");
    return form_end(form);
}

static enum code read_artifacts(struct form *form, struct service_settings *out)
{
    int64_t seconds = 0;
    const struct json *retention = form_take(form, "retention", JSON_OBJECT);
    form_number(form, "sweepSeconds", 1, 86400, &seconds);
    if (!form->rc && retention) form->rc = retention_parse(retention, form->arena, &out->retention, form->err);
    if (seconds) out->sweep_ms = seconds * 1000;
    return form_end(form);
}

static enum code read_http(struct form *form, struct service_settings *out)
{
    form_count(form, "connections", 1, COUNT_MAX, &out->connections);
    form_count(form, "connectionsPerAddress", 1, COUNT_MAX, &out->per_address);
    form_count(form, "streamsPerToken", 1, COUNT_MAX, &out->streams_per_token);
    form_count(form, "waitingCalls", 1, COUNT_MAX, &out->calls_max);
    form_count(form, "waitingCallsPerTenant", 1, COUNT_MAX, &out->calls_per_tenant);
    form_count(form, "waitingStarts", 1, COUNT_MAX, &out->starts_max);
    form_count(form, "waitingReads", 1, COUNT_MAX, &out->reads_max);
    return form_end(form);
}

static enum code read_pause(struct form *form, struct service_settings *out)
{
    const struct json *cancel = form_take(form, "cancelOnPause", JSON_BOOL);
    if (cancel) out->cancel_on_pause = cancel->boolean ? WISH_YES : WISH_NO;
    form_number(form, "drainTimeoutMs", 1, PAUSE_DRAIN_MAX_MS, &out->drain_timeout_ms);
    return form_end(form);
}

static enum code read_temporal(const struct json *value, struct arena *arena, struct service_settings *out,
                               struct error *err)
{
    struct temporal_settings *made = ARENA_NEW(arena, struct temporal_settings);
    if (!made) return error_nomem(err);
    out->temporal = made;
    return temporal_settings_parse(value, arena, made, err);
}

static void read_parts(struct form *form, struct service_settings *out)
{
    struct form part;
    const struct json *routes = form_take(form, "routes", JSON_ARRAY);
    const struct json *value;
    if (routes && routes->count > ROUTES_MAX) form_fail(form, "routes", "has more than 1024 elements");
    if (!form->rc && routes) form->rc = read_routes(routes, form->arena, out, form->err);
    if ((value = form_any(form, "confinement"))) form->rc = read_confinement(value, form->arena, out, form->err);
    if ((value = form_any(form, "secrets"))) form->rc = read_secrets(value, form->arena, out, form->err);
    if ((value = form_take(form, "temporal", JSON_OBJECT))) form->rc = read_temporal(value, form->arena, out, form->err);
    if ((value = form_take(form, "containers", JSON_OBJECT))) form->rc = read_containers(value, form->arena, out, form->err);
    if ((value = form_any(form, "fetch"))) form->rc = fetch_policy_parse(value, form->arena, &out->fetch, form->err);
    if ((value = form_take(form, "limits", JSON_OBJECT)))
        form->rc = engine_limits_parse(value, form->arena, &out->limits, &out->sql_bytes, form->err);
    if ((value = form_any(form, "stateStore")))
        form->rc = engine_write_budget_parse(value, &out->limits, form->err);
    if ((value = form_any(form, "oidc"))) form->rc = service_oidc_parse(value, form->arena, out, form->err);
    if (form_part(form, "pause", &part)) form->rc = read_pause(&part, out);
    if (form_part(form, "tls", &part)) form->rc = read_tls(&part, out);
    if (form_part(form, "otlp", &part)) form->rc = read_otlp(&part, out);
    if (form_part(form, "plans", &part)) form->rc = read_plans(&part, out);
    if (form_part(form, "artifacts", &part)) form->rc = read_artifacts(&part, out);
    if (form_part(form, "events", &part)) form->rc = service_events_parse(&part, out);
    if (form_part(form, "engine", &part)) form->rc = read_engine(&part, out);
    if (form_part(form, "http", &part)) form->rc = read_http(&part, out);
}

static const struct {
    const char *name, *what, *value; // what it may be: "1 to 16" is held against what is read (test/unit/service_settings.c)
} members[] = {
    {"listen", "where to listen: HOST:PORT or unix:PATH; a list", "HOST:PORT or unix:PATH, or a list of them"},
    {"hosts", "further names that requests may address the service by", "a name, or a list"},
    {"origins", "how browsers reach the service through a proxy: https://HOST", "https://HOST, or a list"},
    {"proxies", "whose X-Forwarded-For names the client: addresses, networks, unix",
     "address, network or unix, or a list"},
    {"tls", "certificate and key: PEM files; whose certificates clients may show", "table"},
    {"oidc", "identity providers whose people may come in", "list of tables"},
    {"insecure", "true: no TLS where other machines can reach it", "true, false"},
    {"sharedDirectory", "true: the store may lie where everybody may write", "true, false"},
    {"tokenFile", "where the first start leaves its token", "absolute path"},
    {"drainSeconds", "how long running steps may go on after the signal to stop (30)", "0 to 86400"},
    {"readers", "threads that read (2)", "1 to 16"},
    {"processes", "steps that run here at once (64)", "1 to 100000"},
    {"localSteps", "false: every step goes to a worker", "true, false"},
    {"confinement", "what steps that run here are kept from", "table"},
    {"secrets", "providers of secret://PROVIDER/NAME", "table"},
    {"credentials", "of the tasks of playbooks, by name", "table"},
    {"tools", "directory of executables that are further tools of playbooks", "absolute path"},
    {"containers", "who runs the containers of playbooks, and what each may come to", "table"},
    {"pause", "how runs pause that do not say: drainTimeoutMs (300000), cancelOnPause (false)", "table"},
    {"stateStore", "how long a result may wait for the store (3000 ms)", "table"},
    {"fetch", "what plans and webhooks may be fetched from", "table"},
    {"routes", "which steps go to which pools of workers", "list of tables"},
    {"temporal", "runs as workflows of a Temporal server: address, namespace, queue, tls, apiKeyFile", "table"},
    {"engineLeaseSeconds", "how long other engines of the store wait before they take this one for dead (10)",
     "2 to 3600"},
    {"leaseSeconds", "how long a worker may be silent (30)", "1 to 3600"},
    {"maxRuns", "runs in flight at once, of all tenants; more wait in their queues", "1 to 1000000"},
    {"limits", "what one run may come to: events, bytes, iterations, children, sqlBytes", "table"},
    {"maxSteps", "steps that a document may have, up to 100,000 (10,000)", "1 to 100000"},
    {"runsInMemory", "runs that have not ended, of all tenants; no more are started (100,000)", "1 to 10000000"},
    {"plans", "inline: whose requests may hold a document (allow, local, deny); bodies: where plans are (store, apart)",
     "table"},
    {"artifacts", "retention: how long files of steps are kept, by kind; sweepSeconds", "table"},
    {"events", "from outside: keep (7d), max that nobody takes (10,000), hooks: webhooks that come in", "table"},
    {"engine", "adapter of plans that name none, namespace and conductorUrl of references, strictSchema", "table"},
    {"sinks", "where events are carried to", "list of tables"},
    {"otlp", "where traces of ended runs are posted", "table"},
    {"http", "limits of connections, streams and waiting calls", "table"},
};

const char *service_setting_name(size_t index)
{
    return index < ARRAY_COUNT(members) ? members[index].name : NULL;
}

const char *service_setting_what(size_t index)
{
    return index < ARRAY_COUNT(members) ? members[index].what : NULL;
}

const char *service_setting_value(size_t index)
{
    return index < ARRAY_COUNT(members) ? members[index].value : NULL;
}

enum code service_setting(struct str name, const struct json *value, struct arena *arena, struct service_settings *out,
                          struct error *err)
{
    bool known = false;
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) known = known || str_is(name, members[i].name);
    if (!known) return error_set(err, E_NOT_FOUND, "there is no \"%.*s\" in serve", STR_ARG(name));
    struct json_member *member = ARENA_NEW(arena, struct json_member);
    if (!member) return error_nomem(err);
    *member = (struct json_member){.key = name, .value = *value};
    struct json alone = {.type = JSON_OBJECT, .count = 1, .capacity = 1, .members = member};
    struct form form;
    form_begin(&form, "", &alone, arena, err);
    read_plain(&form, out);
    read_parts(&form, out);
    return form_end(&form);
}
