// [serve] of a configuration, member by member: docs/format/serve.md.
#include "service/service.h"

#include "http/http.h"
#include "os/os.h"

enum { LIST_MAX = 16, ROUTES_MAX = 1024 };

// What one member is read into.
struct reading {
    const char *name; // of the member, for messages
    const struct json *value;
    struct arena *arena;
    struct service_settings *out;
    struct error *err;
};

static enum code wrong(const struct reading *r, const struct json *at, const char *what)
{
    INVARIANT(r->value);
    const struct json *place = at && at->line ? at : r->value;
    return error_at(r->err, E_INVALID, place->line, place->column, "%s %s", r->name, what);
}

static bool is_text(const struct json *value)
{
    struct str text = json_text(value);
    return text.len > 0 && str_find(text, '\0', 0) == text.len;
}

// Ends in NUL, so that it can be a path.
static enum code copy_text(const struct reading *r, const struct json *value, struct str *out)
{
    if (!is_text(value)) return wrong(r, value, "must be text");
    *out = arena_copy(r->arena, json_text(value));
    return out->ptr ? OK : error_nomem(r->err);
}

static enum code read_path(const struct reading *r, const struct json *value, struct str *out)
{
    enum code rc = copy_text(r, value, out);
    if (!rc && out->ptr[0] != '/') return wrong(r, value, "must be an absolute path");
    return rc;
}

static enum code read_number(const struct reading *r, const struct json *value, int64_t low, int64_t high, int64_t *out)
{
    if (value->type != JSON_INT || value->integer < low || value->integer > high)
        return error_at(r->err, E_INVALID, value->line, value->column, "%s must be a whole number from %lld to %lld",
                        r->name, (long long)low, (long long)high);
    *out = value->integer;
    return OK;
}

static enum code read_count(const struct reading *r, const struct json *value, uint32_t high, uint32_t *out)
{
    int64_t number = 0;
    enum code rc = read_number(r, value, 1, high, &number);
    if (!rc) *out = (uint32_t)number;
    return rc;
}

// One text, or a list of them.
static enum code read_list(const struct reading *r, const struct str **items, size_t *count)
{
    bool one = r->value->type == JSON_STRING;
    size_t n = one ? 1 : r->value->count;
    if (!one && r->value->type != JSON_ARRAY) return wrong(r, NULL, "must be a list of texts");
    if (n > LIST_MAX) return wrong(r, NULL, "has more than 16 elements");
    struct str *list = ARENA_ARRAY(r->arena, n + 1, struct str);
    enum code rc = list ? OK : error_nomem(r->err);
    for (size_t i = 0; !rc && i < n; i++) rc = copy_text(r, one ? r->value : &r->value->items[i], &list[i]);
    *items = list;
    *count = n;
    return rc;
}

// An object whose members are all known.
static enum code check_object(const struct reading *r, const struct json *value, const char *const *names, size_t count)
{
    if (!json_is(value, JSON_OBJECT)) return wrong(r, value, "must be a table");
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json_member *m = &value->members[i];
        bool known = false;
        for (size_t n = 0; n < count; n++) known = known || str_is(m->key, names[n]);
        if (!known)
            return error_at(r->err, E_INVALID, m->line, m->column, "%s has no member \"%.*s\"", r->name,
                            STR_ARG(m->key));
    }
    return OK;
}

// ---- the members

static enum code set_listen(const struct reading *r)
{
    return read_list(r, &r->out->listen, &r->out->listen_count);
}

static enum code set_hosts(const struct reading *r)
{
    return read_list(r, &r->out->hosts, &r->out->host_count);
}

// As a browser writes it: a scheme, a host, perhaps a port, and nothing behind them.
static bool is_origin(struct str text)
{
    struct str host, port;
    size_t scheme = str_starts(text, STR("https://")) ? sizeof("https://") - 1 : sizeof("http://") - 1;
    bool http = scheme == sizeof("https://") - 1 || str_starts(text, STR("http://"));
    return http && http_host_split(str_slice(text, scheme, text.len), &host, &port);
}

static enum code set_origins(const struct reading *r)
{
    enum code rc = read_list(r, &r->out->origins, &r->out->origin_count);
    for (size_t i = 0; !rc && i < r->out->origin_count; i++)
        if (!is_origin(r->out->origins[i])) rc = wrong(r, NULL, "must be like https://cairn.example.com, without a path");
    return rc;
}

static enum code set_proxies(const struct reading *r)
{
    const struct str *items;
    size_t count;
    enum code rc = read_list(r, &items, &count);
    struct os_network *networks = ARENA_ARRAY(r->arena, LIST_MAX, struct os_network);
    if (!rc && !networks) rc = error_nomem(r->err);
    for (size_t i = 0; !rc && i < count; i++) {
        if (str_is(items[i], "unix"))
            r->out->unix_proxy = true;
        else if (os_network_parse(items[i], &networks[r->out->proxy_count]))
            r->out->proxy_count++;
        else
            rc = wrong(r, NULL, "must be addresses, networks like 10.0.0.0/8, or \"unix\"");
    }
    r->out->proxies = networks;
    return rc;
}

static enum code set_tls(const struct reading *r)
{
    static const char *const names[] = {"certificate", "key"};
    enum code rc = check_object(r, r->value, names, ARRAY_COUNT(names));
    const struct json *certificate = json_key(r->value, "certificate"), *key = json_key(r->value, "key");
    if (!rc && (!certificate || !key)) rc = wrong(r, NULL, "needs certificate and key");
    if (!rc) rc = read_path(r, certificate, &r->out->tls_certificate);
    if (!rc) rc = read_path(r, key, &r->out->tls_key);
    return rc;
}

static enum code set_insecure(const struct reading *r)
{
    if (r->value->type != JSON_BOOL) return wrong(r, NULL, "must be true or false");
    r->out->insecure = r->value->boolean;
    return OK;
}

static enum code set_token_file(const struct reading *r)
{
    return read_path(r, r->value, &r->out->token_file);
}

static enum code set_drain(const struct reading *r)
{
    int64_t seconds = 0;
    enum code rc = read_number(r, r->value, 0, 86400, &seconds);
    if (!rc) r->out->drain_ms = seconds * 1000;
    return rc;
}

static enum code set_readers(const struct reading *r)
{
    return read_count(r, r->value, 16, &r->out->readers);
}

static enum code set_processes(const struct reading *r)
{
    return read_count(r, r->value, 100000, &r->out->processes);
}

static enum code set_local_steps(const struct reading *r)
{
    if (r->value->type != JSON_BOOL) return wrong(r, NULL, "must be true or false");
    r->out->local_steps = r->value->boolean;
    return OK;
}

static enum code set_confinement(const struct reading *r)
{
    struct tool_confinement *made = ARENA_NEW(r->arena, struct tool_confinement);
    if (!made) return error_nomem(r->err);
    enum code rc = tool_confinement_parse(r->value, r->arena, made, r->err);
    if (!rc) r->out->confinement = made->level == TOOL_LEVEL_NONE ? NULL : made;
    r->out->confinement_said = true;
    return rc;
}

static enum code set_secrets(const struct reading *r)
{
    struct tool_secrets *made = NULL;
    enum code rc = tool_secrets_parse(r->value, r->arena, &made, r->err);
    r->out->secrets = made;
    return rc;
}

static enum code set_credentials(const struct reading *r)
{
    if (r->value->type != JSON_OBJECT) return wrong(r, NULL, "must be a table of credentials by name");
    r->out->credentials = *r->value;
    return OK;
}

static enum code set_tools(const struct reading *r)
{
    return read_path(r, r->value, &r->out->tools_dir);
}

static enum code set_state_store(const struct reading *r)
{
    return engine_write_budget_parse(r->value, &r->out->write_budget_ms, r->err);
}

static enum code set_fetch(const struct reading *r)
{
    return fetch_policy_parse(r->value, r->arena, &r->out->fetch, r->err);
}

static enum code set_routes(const struct reading *r)
{
    static const char *const names[] = {"tenant", "environment", "kind", "pool"};
    if (r->value->type != JSON_ARRAY) return wrong(r, NULL, "must be a list of tables");
    if (r->value->count > ROUTES_MAX) return wrong(r, NULL, "has more than 1024 elements");
    struct executor_route *routes = ARENA_ARRAY(r->arena, r->value->count + 1, struct executor_route);
    enum code rc = routes ? OK : error_nomem(r->err);
    for (uint32_t i = 0; !rc && i < r->value->count; i++) {
        const struct json *route = &r->value->items[i];
        struct str *texts[] = {&routes[i].tenant, &routes[i].environment, &routes[i].kind, &routes[i].pool};
        rc = check_object(r, route, names, ARRAY_COUNT(names));
        for (size_t n = 0; !rc && n < ARRAY_COUNT(names); n++) {
            const struct json *text = json_key(route, names[n]);
            if (text) rc = copy_text(r, text, texts[n]);
        }
    }
    r->out->routes = routes;
    r->out->route_count = rc ? 0 : r->value->count;
    return rc;
}

// What is in them is looked at when they are opened (src/bus).
static enum code set_sinks(const struct reading *r)
{
    if (r->value->type != JSON_ARRAY) return wrong(r, NULL, "must be a list of tables");
    r->out->sinks = r->value;
    return OK;
}

static enum code check_header(const struct reading *r, const struct json_member *m)
{
    static const char *const names[] = {"env", "file"};
    if (is_text(&m->value)) return OK;
    enum code rc = check_object(r, &m->value, names, ARRAY_COUNT(names));
    if (!rc && (m->value.count != 1 || !is_text(&m->value.members[0].value)))
        rc = wrong(r, &m->value, "has a header that is neither text, {env = NAME} nor {file = PATH}");
    return rc;
}

static enum code set_otlp(const struct reading *r)
{
    static const char *const names[] = {"url", "headers", "caFile"};
    struct service_otlp *made = ARENA_NEW(r->arena, struct service_otlp);
    if (!made) return error_nomem(r->err);
    enum code rc = check_object(r, r->value, names, ARRAY_COUNT(names));
    const struct json *url = json_key(r->value, "url"), *file = json_key(r->value, "caFile");
    const struct json *headers = json_key(r->value, "headers");
    if (!rc) rc = url ? copy_text(r, url, &made->url) : wrong(r, NULL, "needs a url");
    if (!rc && file) rc = read_path(r, file, &made->ca_file);
    if (!rc && headers && headers->type != JSON_OBJECT) rc = wrong(r, headers, "headers must be a table");
    for (uint32_t i = 0; !rc && headers && i < headers->count; i++) rc = check_header(r, &headers->members[i]);
    made->headers = headers;
    r->out->otlp = made;
    return rc;
}

static enum code set_engine_lease(const struct reading *r)
{
    int64_t seconds = 0;
    enum code rc = read_number(r, r->value, 2, 3600, &seconds);
    if (!rc) r->out->engine_lease_ms = seconds * 1000;
    return rc;
}

static enum code set_lease(const struct reading *r)
{
    int64_t seconds = 0;
    enum code rc = read_number(r, r->value, 1, 3600, &seconds);
    if (!rc) r->out->lease_ms = seconds * 1000;
    return rc;
}

static enum code set_max_runs(const struct reading *r)
{
    return read_count(r, r->value, 1000000, &r->out->runs_max);
}

static enum code set_runs_in_memory(const struct reading *r)
{
    return read_count(r, r->value, 10000000, &r->out->resident_max);
}

static enum code set_http(const struct reading *r)
{
    static const char *const names[] = {"connections",  "connectionsPerAddress", "streamsPerToken",
                                        "waitingCalls", "waitingCallsPerTenant", "waitingStarts",
                                        "waitingReads"};
    uint32_t *numbers[] = {&r->out->connections, &r->out->per_address,      &r->out->streams_per_token,
                           &r->out->calls_max,   &r->out->calls_per_tenant, &r->out->starts_max,
                           &r->out->reads_max};
    enum code rc = check_object(r, r->value, names, ARRAY_COUNT(names));
    for (size_t i = 0; !rc && i < ARRAY_COUNT(names); i++) {
        const struct json *number = json_key(r->value, names[i]);
        struct reading one = *r;
        one.name = names[i];
        if (number) rc = read_count(&one, number, 1000000, numbers[i]);
    }
    return rc;
}

static const struct {
    const char *name, *what;
    enum code (*set)(const struct reading *r);
} members[] = {
    {"listen", "where to listen: HOST:PORT or unix:PATH; a list", set_listen},
    {"hosts", "further names that requests may address the service by", set_hosts},
    {"origins", "how browsers reach the service through a proxy: https://HOST", set_origins},
    {"proxies", "whose X-Forwarded-For names the client: addresses, networks, unix", set_proxies},
    {"tls", "certificate and key: PEM files", set_tls},
    {"insecure", "true: no TLS where other machines can reach it", set_insecure},
    {"tokenFile", "where the first start leaves its token", set_token_file},
    {"drainSeconds", "how long running steps may go on after the signal to stop (30)", set_drain},
    {"readers", "threads that read (2)", set_readers},
    {"processes", "steps that run here at once (64)", set_processes},
    {"localSteps", "false: every step goes to a worker", set_local_steps},
    {"confinement", "what steps that run here are kept from", set_confinement},
    {"secrets", "providers of secret://PROVIDER/NAME", set_secrets},
    {"credentials", "of the tasks of playbooks, by name", set_credentials},
    {"tools", "directory of executables that are further tools of playbooks", set_tools},
    {"stateStore", "how long a result may wait for the store (3000 ms)", set_state_store},
    {"fetch", "what plans and webhooks may be fetched from", set_fetch},
    {"routes", "which steps go to which pools of workers", set_routes},
    {"engineLeaseSeconds", "how long other engines of the store wait before they take this one for dead (10)",
     set_engine_lease},
    {"leaseSeconds", "how long a worker may be silent (30)", set_lease},
    {"maxRuns", "runs in flight at once, of all tenants; more wait in their queues", set_max_runs},
    {"runsInMemory", "runs that have not ended, of all tenants; no more are started (100,000)", set_runs_in_memory},
    {"sinks", "where events are carried to", set_sinks},
    {"otlp", "where traces of ended runs are posted", set_otlp},
    {"http", "limits of connections, streams and waiting calls", set_http},
};

const char *service_setting_name(size_t index)
{
    return index < ARRAY_COUNT(members) ? members[index].name : NULL;
}

const char *service_setting_what(size_t index)
{
    return index < ARRAY_COUNT(members) ? members[index].what : NULL;
}

enum code service_setting(struct str name, const struct json *value, struct arena *arena, struct service_settings *out,
                          struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
        if (!str_is(name, members[i].name)) continue;
        struct reading reading = {members[i].name, value, arena, out, err};
        return members[i].set(&reading);
    }
    return error_set(err, E_NOT_FOUND, "there is no \"%.*s\" in serve", STR_ARG(name));
}
