// The engine with doors: an HTTP service over one store, until it is stopped.
#include "api/api.h"
#include "cli/browse.h"
#include "cli/commands.h"
#include "cli/confine.h"
#include "cli/document.h"
#include "cli/hosting.h"
#include "cli/interrupt.h"
#include "cli/serve_config.h"
#include "cli/server.h"
#include "cli/session.h"
#include "cli/tasking.h"
#include "equiv/pace.h"
#include "temporal/temporal.h"

#include "base/civil.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UI_ELSEWHERE = -1 }; // the page was opened at the process that serves the store
enum { LISTEN_MAX = 16, TICK_MS = 50, TURN_MAX_MS = 10000 };
#define LISTEN_DEFAULT "127.0.0.1:7117"

struct serving {
    struct cli *cli;
    struct api *api;
    struct service *service;
    struct net_server *server;
    const char *listen[LISTEN_MAX];
    size_t listen_count;
    struct str hosts[LISTEN_MAX];
    struct http_guard guard;
    struct net_limits limits;
    struct serve_config config;
    struct service_settings *settings; // of config
    bool tls;
    int interrupts, reloads;
    bool certificates_read;
    _Atomic int tokens; // enum tokens_state: a reader thread says what came of a reload
    int64_t drain_s;
    bool opens; // the page in a browser
    bool local; // `cairn ui`: for this machine and this person alone
    int64_t watchdog_ms, watched_ms; // 0: no service manager watches
};

// A line for people, or with CAIRN_LOG=json for machines like all the others.
static void say(struct serving *serving, const char *text)
{
    if (os_log_is_json())
        os_log(LOG_INFO, "%s", text);
    else
        cli_note(serving->cli, "%s", text);
}

enum tokens_state { TOKENS_SETTLED, TOKENS_ASKED, TOKENS_READ, TOKENS_NOT_READ };

static void tokens_answered(void *context, enum code rc)
{
    ((struct serving *)context)->tokens = rc ? TOKENS_NOT_READ : TOKENS_READ;
}

static void reload(struct serving *serving)
{
    struct error err = {0};
    os_notify("RELOADING=1");
    serving->certificates_read = !serving->tls || !net_reload_tls(serving->server, &err);
    if (!serving->certificates_read)
        os_log(LOG_ERROR, "certificate not read again, the old one stays why=\"%s\"", err.message);
    serving->tokens = TOKENS_ASKED;
    service_reload(serving->service, tokens_answered, serving);
}

// What failed has its line in the log: here stands only what is so.
static void end_reload(struct serving *serving)
{
    int state = serving->tokens;
    if (state == TOKENS_SETTLED || state == TOKENS_ASKED) return;
    bool tokens_read = state == TOKENS_READ;
    if (tokens_read && serving->certificates_read)
        say(serving, "certificates and tokens are read again");
    else if (tokens_read || serving->certificates_read)
        say(serving, tokens_read ? "tokens are read again, certificates are not" : "certificates are read again, tokens are not");
    serving->tokens = TOKENS_SETTLED;
    os_notify("READY=1");
}

// The watchdog is fed by real turns of the engine, not that a thread somewhere lives.
static void watch(struct serving *serving)
{
    int64_t now = os_now().mono_ms;
    if (serving->watchdog_ms == 0 || now - serving->watched_ms < serving->watchdog_ms / 2) return;
    if (service_health(serving->service).turned_ms > TURN_MAX_MS) return;
    serving->watched_ms = now;
    os_notify("WATCHDOG=1");
}

static void begin_to_stop(struct serving *serving)
{
    os_notify("STOPPING=1\nSTATUS=steps that run may finish");
    say(serving,
        cli_format(serving->cli, "stopping; steps that run may finish within %llds", (long long)serving->drain_s));
    service_drain(serving->service, serving->drain_s * 1000);
}

// Net thread. The first signal lets steps finish, and takes what workers have to say about theirs; the second cuts them off.
static void tick(void *context)
{
    struct serving *serving = context;
    struct error err = {0};
    int count = interrupts_count(), reloads = reloads_count();
    if (reloads != serving->reloads && serving->tokens == TOKENS_SETTLED) {
        serving->reloads = reloads;
        reload(serving);
    }
    end_reload(serving);
    watch(serving);
    if (count > 0 && serving->interrupts == 0) begin_to_stop(serving);
    if (count > 1 && serving->interrupts < 2) service_drain(serving->service, 0);
    serving->interrupts = count;
    if (service_failed(serving->service, &err) || (count > 0 && service_drained(serving->service)))
        net_stop(serving->server);
}

static void on_request(void *context, struct net_exchange *exchange)
{
    api_handle(((struct serving *)context)->api, exchange);
}

static uint64_t body_max(void *context, struct net_exchange *exchange)
{
    return api_body_max(((struct serving *)context)->api, exchange);
}

static int read_listen(struct serving *serving)
{
    struct cli *cli = serving->cli;
    struct str value;
    for (size_t cursor = 0; args_next(&cli->args, FLAG_LISTEN, &cursor, &value);) {
        if (serving->listen_count == LISTEN_MAX) {
            cli_fail(cli, EXIT_USAGE, "--listen may be given %d times", LISTEN_MAX);
            return EXIT_USAGE;
        }
        serving->listen[serving->listen_count++] = cli_format(cli, "%.*s", STR_ARG(value));
    }
    for (size_t i = 0; serving->listen_count == 0 && i < serving->settings->listen_count; i++)
        serving->listen[i] = serving->settings->listen[i].ptr;
    if (serving->listen_count == 0) serving->listen_count = serving->settings->listen_count;
    int first;
    if (serving->local && !args_has(&cli->args, FLAG_LISTEN)) {
        serving->listen[0] = LISTEN_DEFAULT;
        serving->listen_count = 1;
    }
    if (serving->listen_count == 0 && net_inherited(&first) == 0)
        serving->listen[serving->listen_count++] = LISTEN_DEFAULT;
    bool insecure = serving->settings->insecure || args_has(&cli->args, FLAG_INSECURE);
    for (size_t i = 0; i < serving->listen_count; i++) {
        if (net_is_local(serving->listen[i]) || serving->tls || insecure) continue;
        cli_fail(cli, EXIT_USAGE, "%s can be reached from other machines, and what is said there could be read",
                 serving->listen[i]);
        return cli_hint(cli, "give --tls-cert and --tls-key, or --insecure when something in front of it does that");
    }
    return EXIT_OK;
}

// Which steps go to workers: flags are asked first, then [serve].
static int read_routes(struct cli *cli, struct service_settings *settings)
{
    size_t room = args_count(&cli->args, FLAG_ROUTE) + settings->route_count + 1, count = 0;
    struct executor_route *routes = ARENA_ARRAY(&cli->io.arena, room, struct executor_route);
    struct str text, lease = args_text(&cli->args, FLAG_LEASE, "30s");
    if (!routes) return cli_nomem(cli);
    for (size_t cursor = 0; args_next(&cli->args, FLAG_ROUTE, &cursor, &text);) {
        struct str pool, kind = str_cut(text, '=', &pool);
        if (kind.len == 0 || pool.len == 0)
            return cli_fail(cli, EXIT_USAGE, "--route %.*s: KIND=POOL is wanted, *=POOL for all kinds", STR_ARG(text));
        routes[count++] = (struct executor_route){.kind = str_is(kind, "*") ? (struct str){"", 0} : kind, .pool = pool};
    }
    for (size_t i = 0; i < settings->route_count; i++) routes[count++] = settings->routes[i];
    settings->routes = routes;
    settings->route_count = count;
    if (settings->lease_ms && !args_has(&cli->args, FLAG_LEASE)) return EXIT_OK;
    if (!duration_parse(lease, &settings->lease_ms) || settings->lease_ms < 100 || settings->lease_ms > 3600000)
        return cli_fail(cli, EXIT_USAGE, "--lease %.*s: a duration between 100ms and 1h is wanted", STR_ARG(lease));
    return EXIT_OK;
}

// Flags over [serve] of the config files.
// --temporal and what goes with it, over what [serve.temporal] says. False: out of memory.
static bool take_temporal(struct cli *cli, struct service_settings *settings)
{
    if (!settings->temporal && !args_has(&cli->args, FLAG_TEMPORAL)) return true;
    struct temporal_settings *made = ARENA_NEW(&cli->io.arena, struct temporal_settings);
    if (!made) return false;
    hosting_flags(cli, settings->temporal, made);
    settings->temporal = made;
    return true;
}

static int read_settings(struct serving *serving)
{
    struct cli *cli = serving->cli;
    struct service_settings *settings = serving->settings = &serving->config.settings;
    struct engine_options steps = {0};
    if (!serve_config_read(cli, &serving->config)) return cli_nomem(cli);
    int code = serve_config_report(cli, &serving->config);
    int64_t drain = settings->drain_ms < 0 ? 30 : settings->drain_ms / 1000;
    if (!code && !args_int(&cli->args, FLAG_DRAIN, 0, 86400, drain, &cli->io.arena, &serving->drain_s))
        code = cli_usage(cli);
    int64_t runs = 0;
    if (!code && !args_int(&cli->args, FLAG_MAX_RUNS, 0, 1000000, settings->runs_max, &cli->io.arena, &runs))
        code = cli_usage(cli);
    settings->runs_max = (uint32_t)runs;
    int64_t processes = settings->processes;
    if (!code && !args_int(&cli->args, FLAG_CONCURRENCY, 1, 10000, processes, &cli->io.arena, &processes))
        code = cli_usage(cli);
    settings->processes = (uint32_t)processes;
    bool steps_said = args_text(&cli->args, FLAG_MAX_STEPS, "").len > 0;
    if (!code && (steps_said || !settings->steps_max)) code = steps_max_read(cli, &settings->steps_max);
    if (!code) code = confine_open(cli, &steps, false);
    if (code) return code;
    if (args_has(&cli->args, FLAG_CONFINE) || !settings->confinement_said) settings->confinement = steps.confinement;
    if (args_has(&cli->args, FLAG_NO_LOCAL_STEPS)) settings->local_steps = false;
    if (!take_temporal(cli, settings)) return cli_nomem(cli);
    if (settings->temporal) settings->local_steps = false;
    code = settings->local_steps ? confine_whole(cli, settings->confinement) : EXIT_OK;
    if (code) return code;
    if (steps.secrets && (args_has(&cli->args, FLAG_SECRETS) || !settings->secrets)) settings->secrets = steps.secrets;
    if (!settings->secrets) settings->secrets = &tool_secrets_none;
    settings->self = tasking_self(cli);
    struct json credentials;
    code = credentials_read(cli, &credentials);
    if (code) return code;
    if (credentials.type) settings->credentials = credentials;
    struct str tools = args_text(&cli->args, FLAG_TOOLS, "");
    if (tools.len) settings->tools_dir = tools;
    if (args_has(&cli->args, FLAG_TOKEN_FILE)) settings->token_file = args_text(&cli->args, FLAG_TOKEN_FILE, "");
    if (args_has(&cli->args, FLAG_TLS_CERT)) settings->tls_certificate = args_text(&cli->args, FLAG_TLS_CERT, "");
    if (args_has(&cli->args, FLAG_TLS_KEY)) settings->tls_key = args_text(&cli->args, FLAG_TLS_KEY, "");
    serving->tls = settings->tls_certificate.len > 0 && !serving->local;
    settings->config = &serving->config.table;
    code = results_open(cli, &settings->keep);
    if (code) return code;
    code = read_routes(cli, settings);
    return code ? code : read_listen(serving);
}

static int open_net(struct serving *serving)
{
    struct cli *cli = serving->cli;
    struct error err = {0};
    struct str value;
    int first = 0, fds[LISTEN_MAX];
    size_t fd_count = net_inherited(&first);
    for (size_t i = 0; i < fd_count && i < LISTEN_MAX; i++) fds[i] = first + (int)i;
    for (size_t cursor = 0; args_next(&cli->args, FLAG_HOST, &cursor, &value);)
        if (serving->guard.host_count < LISTEN_MAX) serving->hosts[serving->guard.host_count++] = value;
    const struct service_settings *settings = serving->settings;
    for (size_t i = 0; i < settings->host_count && serving->guard.host_count < LISTEN_MAX; i++)
        serving->hosts[serving->guard.host_count++] = settings->hosts[i];
    serving->guard.hosts = serving->hosts;
    serving->guard.origins = settings->origins;
    serving->guard.origin_count = settings->origin_count;
    serving->limits = net_limits_default;
    if (settings->connections) serving->limits.connections = settings->connections;
    if (settings->per_address) serving->limits.per_address = settings->per_address;
    struct net_options options = {.listen = serving->listen,
                                  .listen_count = serving->listen_count,
                                  .fds = fds,
                                  .fd_count = fd_count < LISTEN_MAX ? fd_count : LISTEN_MAX,
                                  .tls_certificate = serving->tls ? settings->tls_certificate.ptr : NULL,
                                  .tls_key = settings->tls_key.len ? settings->tls_key.ptr : NULL,
                                  .tls_client_ca = settings->tls_client_ca.len ? settings->tls_client_ca.ptr : NULL,
                                  .tls_client_crl = settings->tls_client_crl.len ? settings->tls_client_crl.ptr : NULL,
                                  .tls_client_required = settings->tls_client_required,
                                  .limits = &serving->limits,
                                  .guard = &serving->guard,
                                  .proxies = settings->proxies,
                                  .proxy_count = settings->proxy_count,
                                  .unix_proxy = settings->unix_proxy,
                                  .handle = on_request,
                                  .body_max = body_max,
                                  .tick = tick,
                                  .tick_ms = TICK_MS,
                                  .context = serving};
    options.headers = http_security_headers(&options.header_count);
    // A server that was killed leaves its socket to a child between fork and exec for a moment: it is waited for.
    enum code rc = net_open(&options, &serving->server, &err);
    if (rc == E_EXISTS && serving->local && !args_has(&cli->args, FLAG_LISTEN)) { // another store has the usual one
        serving->listen[0] = "127.0.0.1:0";
        err = (struct error){0};
        rc = net_open(&options, &serving->server, &err);
    }
    for (int tries = 0; rc == E_EXISTS && tries < 40 && interrupts_count() == 0; tries++) {
        usleep(50000);
        err = (struct error){0};
        rc = net_open(&options, &serving->server, &err);
    }
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

// Ten thousand connections need as many descriptors; the soft limit is a default of shells.
static void raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= files.rlim_max) return;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files)) os_log(LOG_WARN, "the limit of open files stays as it is");
}

// A ticket for who started this: for whom the token of the first start stands.
static void open_page(struct serving *serving, const char *url)
{
    struct cli *cli = serving->cli;
    struct arena *arena = &cli->io.arena;
    struct error err = {0};
    struct str token, ticket = {0};
    struct principal who;
    int64_t expires_ms;
    const char *file = service_token_file(serving->service);
    enum code rc = os_read_file(file, 4096, arena, &token, &err);
    if (!rc) rc = service_authenticate(serving->service, str_trim(token), arena, &who, &err);
    if (!rc) rc = service_ticket(serving->service, &who, arena, &ticket, &expires_ms, &err);
    if (rc) cli_warn(cli, "no ticket: %s holds no token that is good here; sign in with one of yours", file);
    browse(cli, url, ticket, file);
}

static void tell_where(struct serving *serving)
{
    struct cli *cli = serving->cli;
    const char *first = NULL;
    for (size_t i = 0; i < serving->listen_count; i++) {
        const char *address = serving->listen[i];
        uint16_t port = net_port(serving->server, i);
        const char *colon = strrchr(address, ':');
        if (strncmp(address, "unix:", 5) == 0 || !colon)
            say(serving, cli_format(cli, "listening on %s", address));
        else {
            const char *url =
                cli_format(cli, "%s://%.*s:%u", serving->tls ? "https" : "http", (int)(colon - address), address, port);
            say(serving, cli_format(cli, "listening on %s", url));
            if (!first) first = url;
        }
    }
    if (first) service_address(serving->service, first);
    const char *file = service_token_file(serving->service);
    if (access(file, F_OK) == 0)
        say(serving, cli_format(cli, "the token of the first start is in %s", file));
    else
        say(serving, "the file with the token of the first start is gone; `cairn token bootstrap` makes another token");
    char shown[1024];
    store_hide_password(serving->settings->store, shown, sizeof(shown));
    os_notify(cli_format(cli, "READY=1\nSTATUS=serving %s", shown));
    if (serving->opens && first) open_page(serving, first);
    if (serving->opens && !first) cli_warn(cli, "browsers cannot reach a Unix socket: give --listen HOST:PORT too");
}

// Where the process that serves the store is, as it noted beside it; NULL: nothing is noted there.
static const char *noted_address(struct serving *serving, const char *path)
{
    struct cli *cli = serving->cli;
    struct str text, rest;
    struct error err = {0};
    if (os_read_file(cli_format(cli, "%s.serve", path), 4096, &cli->io.arena, &text, &err)) return NULL;
    str_cut(text, '\n', &rest);
    struct str url = str_cut(rest, '\n', &rest);
    return url.len ? cli_format(cli, "%.*s", STR_ARG(url)) : NULL;
}

// Another process has the store: its own page shows it. The ticket is for its first token, which is this person's when its file can be
// read.
static int open_other(struct serving *serving, const struct error *locked)
{
    struct cli *cli = serving->cli;
    struct error err = {0};
    struct str token, path;
    str_cut(serving->settings->store, ':', &path);
    const char *file = cli_format(cli, "%.*s.token", STR_ARG(path));
    const char *url = noted_address(serving, cli_format(cli, "%.*s", STR_ARG(path)));
    if (serving->settings->token_file.len) file = cli_format(cli, "%.*s", STR_ARG(serving->settings->token_file));
    if (url && !os_read_file(file, 4096, &cli->io.arena, &token, &err)) {
        int code = browse_server(cli, url, str_trim(token), (struct str){0}, file);
        if (code != EXIT_UNREACHABLE) return code == EXIT_OK ? UI_ELSEWHERE : code;
    }
    int code = cli_error(cli, locked);
    cli_hint(cli, "cairn top, cairn get and cairn why read it meanwhile, and cairn signal reaches its runs");
    return code;
}

static int open_all(struct serving *serving)
{
    struct cli *cli = serving->cli;
    struct error err = {0};
    struct str page = args_text(&cli->args, FLAG_PAGE_DIR, "");
    struct api_options options = {.streams_per_token = serving->settings->streams_per_token,
                                  .page_dir = page.len ? cli_format(cli, "%.*s", STR_ARG(page)) : NULL};
    if (api_open(&options, &serving->api, &err)) return cli_error(cli, &err);
    int code = open_net(serving);
    if (code) return code;
    struct service_hooks hooks = api_hooks(serving->api);
    const char *stage = getenv(PACE_VARIABLE); // a player has the clock
    static struct service_clock clock;
    if (stage && pace_clock(stage, &clock, &err)) return cli_error(cli, &err);
    if (stage) serving->settings->clock = &clock;
    enum code rc = service_open(serving->settings, &hooks, &serving->service, &err);
    if (rc == E_LOCKED && serving->local) return open_other(serving, &err);
    if (rc == E_LOCKED) {
        code = cli_error(cli, &err);
        cli_hint(cli, "one service a store: stop that one, or give this one another --store");
        return code;
    }
    if (rc || api_serve(serving->api, serving->service, serving->server, &err)) return cli_error(cli, &err);
    return EXIT_OK;
}

static void close_all(struct serving *serving)
{
    if (serving->service) service_stop(serving->service);
    api_stop(serving->api);
    if (serving->server) net_close(serving->server);
    api_close(serving->api);
    service_close(serving->service);
    keep_close(serving->settings->keep);
}

static int serve(struct cli *cli, bool local)
{
    struct serving serving = {
        .cli = cli, .watchdog_ms = os_watchdog_ms(), .local = local, .opens = local || args_has(&cli->args, FLAG_OPEN)};
    const char *url;
    int code = session_url(cli, &url);
    if (!code) code = read_settings(&serving);
    if (code) return code;
    serving.settings->store = str_from(url);
    if (os_log_is_json() && !cli->io.quiet) os_log_level(LOG_INFO);
    shut_in();
    raise_files();
    umask(077);
    interrupts_catch();
    reloads_catch();
    code = open_all(&serving);
    if (!code) {
        tell_where(&serving);
        net_run(serving.server);
    }
    struct error err = {0};
    if (serving.service && service_failed(serving.service, &err)) code = cli_error(cli, &err);
    close_all(&serving);
    return code == UI_ELSEWHERE ? EXIT_OK : code;
}

int command_serve(struct cli *cli)
{
    return serve(cli, false);
}

int command_ui(struct cli *cli)
{
    bool remote;
    const char *url;
    struct server_access access;
    int code = session_where(cli, &remote);
    if (code || !remote) return code ? code : serve(cli, true);
    code = server_choose(cli, &url);
    if (!code) code = server_access(cli, url, session_default(cli), &access);
    if (code) return code;
    if (str_starts(str_from(url), STR("unix:")))
        return cli_fail(cli, EXIT_USAGE, "browsers cannot reach %s: give the address of the server by TCP", url);
    const char *state = getenv("XDG_RUNTIME_DIR");
    return browse_server(cli, url, access.token, access.ca_file, cli_format(cli, "%s/cairn", state ? state : "/tmp"));
}
