// The engine with doors: an HTTP service over one store, until it is told to stop.
#include "api/api.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/interrupt.h"
#include "cli/session.h"

#include "base/civil.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTEN_MAX = 16, TICK_MS = 50 };
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
    int interrupts;
};

// Net thread. The first signal stops taking requests and lets steps finish; the second cuts them off.
static void tick(void *context)
{
    struct serving *serving = context;
    int count = interrupts_count();
    if (count == serving->interrupts) return;
    serving->interrupts = count;
    if (serving->service) remote_drain(service_remote(serving->service));
    net_stop(serving->server);
}

static void on_request(void *context, struct net_exchange *exchange)
{
    api_handle(((struct serving *)context)->api, exchange);
}

static uint64_t body_max(void *context, struct str method, struct str path)
{
    return api_body_max(((struct serving *)context)->api, method, path);
}

static const char *text_flag(struct cli *cli, enum flag flag, const char *otherwise)
{
    return args_has(&cli->args, flag) ? cli_format(cli, "%.*s", STR_ARG(args_text(&cli->args, flag, ""))) : otherwise;
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
    int first;
    if (serving->listen_count == 0 && net_inherited(&first) == 0)
        serving->listen[serving->listen_count++] = LISTEN_DEFAULT;
    bool tls = args_has(&cli->args, FLAG_TLS_CERT);
    for (size_t i = 0; i < serving->listen_count; i++) {
        if (net_is_local(serving->listen[i]) || tls || args_has(&cli->args, FLAG_INSECURE)) continue;
        cli_fail(cli, EXIT_USAGE, "%s can be reached from other machines, and what is said there could be read",
                 serving->listen[i]);
        cli_hint(cli, "give --tls-cert and --tls-key, or --insecure when something in front of it does that");
        return EXIT_USAGE;
    }
    return EXIT_OK;
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
    serving->guard.hosts = serving->hosts;
    struct net_options options = {.listen = serving->listen,
                                  .listen_count = serving->listen_count,
                                  .fds = fds,
                                  .fd_count = fd_count < LISTEN_MAX ? fd_count : LISTEN_MAX,
                                  .tls_certificate = text_flag(cli, FLAG_TLS_CERT, NULL),
                                  .tls_key = text_flag(cli, FLAG_TLS_KEY, NULL),
                                  .guard = &serving->guard,
                                  .handle = on_request,
                                  .body_max = body_max,
                                  .tick = tick,
                                  .tick_ms = TICK_MS,
                                  .context = serving};
    options.headers = http_security_headers(&options.header_count);
    return net_open(&options, &serving->server, &err) ? cli_error(cli, &err) : EXIT_OK;
}

// The engine's memory holds tokens: no core files, no other process of this user may look into it (B7).
static void shut_in(void)
{
    struct rlimit none = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0) || setrlimit(RLIMIT_CORE, &none))
        os_log(LOG_WARN, "memory can be looked into by other processes of this user");
}

static void tell_where(struct serving *serving)
{
    struct cli *cli = serving->cli;
    bool tls = args_has(&cli->args, FLAG_TLS_CERT);
    for (size_t i = 0; i < serving->listen_count; i++) {
        const char *address = serving->listen[i];
        uint16_t port = net_port(serving->server, i);
        const char *colon = strrchr(address, ':');
        if (strncmp(address, "unix:", 5) == 0 || !colon)
            cli_note(cli, "listening on %s", address);
        else
            cli_note(cli, "listening on %s://%.*s:%u", tls ? "https" : "http", (int)(colon - address), address, port);
    }
    cli_note(cli, "the token of the first start is in %s", service_token_file(serving->service));
}

// Which steps go to workers.
static int read_routes(struct cli *cli, struct service_settings *settings)
{
    struct remote_route *routes = ARENA_ARRAY(&cli->arena, args_count(&cli->args, FLAG_ROUTE) + 1, struct remote_route);
    struct str text, lease = args_text(&cli->args, FLAG_LEASE, "30s");
    if (!routes) return cli_nomem(cli);
    for (size_t cursor = 0; args_next(&cli->args, FLAG_ROUTE, &cursor, &text);) {
        struct str pool, kind = str_cut(text, '=', &pool);
        if (kind.len == 0 || pool.len == 0)
            return cli_fail(cli, EXIT_USAGE, "--route %.*s: KIND=POOL is wanted, *=POOL for all kinds", STR_ARG(text));
        routes[settings->route_count++] =
            (struct remote_route){.kind = str_is(kind, "*") ? (struct str){"", 0} : kind, .pool = pool};
    }
    settings->routes = routes;
    if (!duration_parse(lease, &settings->lease_ms) || settings->lease_ms < 100 || settings->lease_ms > 3600000)
        return cli_fail(cli, EXIT_USAGE, "--lease %.*s: a duration between 100ms and 1h is wanted", STR_ARG(lease));
    return EXIT_OK;
}

static int open_all(struct serving *serving, const char *url)
{
    struct cli *cli = serving->cli;
    struct error err = {0};
    struct service_settings settings = {
        .store = str_from(url), .token_file = args_text(&cli->args, FLAG_TOKEN_FILE, ""), .local_steps = true};
    int code = read_routes(cli, &settings);
    if (code) return code;
    if (api_open(NULL, &serving->api, &err)) return cli_error(cli, &err);
    code = open_net(serving);
    if (code) return code;
    struct service_hooks hooks = api_hooks(serving->api);
    if (service_open(&settings, &hooks, &serving->service, &err)) return cli_error(cli, &err);
    if (api_serve(serving->api, serving->service, serving->server, &err)) return cli_error(cli, &err);
    return EXIT_OK;
}

static void close_all(struct serving *serving, int64_t drain_ms)
{
    if (serving->service) service_stop(serving->service, drain_ms);
    api_stop(serving->api);
    if (serving->server) net_close(serving->server);
    api_close(serving->api);
    service_close(serving->service);
}

int command_serve(struct cli *cli)
{
    struct serving serving = {.cli = cli};
    int64_t drain;
    const char *url;
    int code = session_url(cli, &url);
    if (!code && !args_int(&cli->args, FLAG_DRAIN, 0, 86400, 30, &cli->arena, &drain)) code = cli_usage(cli);
    if (!code) code = read_listen(&serving);
    if (code) return code;
    shut_in();
    umask(077);
    interrupts_catch();
    code = open_all(&serving, url);
    if (!code) {
        tell_where(&serving);
        net_run(serving.server);
        cli_note(cli, "stopping; steps that run may finish within %llds", (long long)drain);
    }
    struct error err = {0};
    if (serving.service && service_failed(serving.service, &err)) code = cli_error(cli, &err);
    close_all(&serving, drain * 1000);
    return code;
}
