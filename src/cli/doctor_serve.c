// Checks of the service: its configuration, and one that runs.
#include "cli/doctor.h"
#include "cli/serve_config.h"
#include "cli/server.h"

#include "net/net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LISTEN_MAX = 16, CALL_MS = 5000, SKEW_MAX_S = 30, LISTED_MAX = 5 };
#define LISTEN_DEFAULT "127.0.0.1:7117"

// The file of the store without "sqlite:" or "files:"; NULL: it has none.
static const char *store_path(const struct doctor *d)
{
    const char *url = d->session.url;
    if (!url || d->session.remote) return NULL;
    if (strncmp(url, "sqlite:", 7) == 0) return url + 7;
    return strncmp(url, "files:", 6) == 0 ? url + 6 : NULL;
}

// The process that serves this store; 0: none.
static int64_t server_process(struct doctor *d)
{
    const char *path = store_path(d);
    struct error err = {0};
    struct disk *disk = NULL;
    struct file *file = NULL;
    char text[24] = "";
    size_t got;
    int64_t pid = 0;
    if (!path || os_disk_open("/", &disk, &err)) return 0;
    if (disk->ops->open(disk, cli_format(d->cli, "%s.serve", path), OPEN_READ | OPEN_WRITE, &file, &err) == OK) {
        if (disk->ops->locked(file, 0) && disk->ops->read(file, 0, text, sizeof(text) - 1, &got, &err) == OK)
            pid = strtoll(text, NULL, 10);
        disk->ops->close(file);
    }
    os_disk_close(disk);
    return pid;
}

// ---- what it would find

static void check_token_file(struct doctor *d, const struct service_settings *settings)
{
    const char *store = store_path(d);
    if (!store && !settings->token_file.len) return; // a database: the token is where the service said
    const char *path = settings->token_file.len ? settings->token_file.ptr : cli_format(d->cli, "%s.token", store);
    struct stat about;
    bool served = store && access(cli_format(d->cli, "%s.serve", store), F_OK) == 0;
    if (stat(path, &about) != 0) {
        if (served)
            doctor_problem(d,
                           "where nobody has a token any more: `cairn token bootstrap`, with the store alone; else `cairn token new`",
                           "the token of the first start is not at %s", path);
        return;
    }
    if (about.st_mode & 077)
        doctor_problem(d, cli_format(d->cli, "chmod 600 %s", path), "others can read the token in %s (mode %03o)", path,
                       (unsigned)about.st_mode & 0777);
    if (about.st_uid != geteuid() && access(path, R_OK) != 0)
        doctor_problem(d, "run this as the user of the service", "the token in %s belongs to another user", path);
}

// Nobody is asked in: the server that is opened here never runs.
static void turn_away(void *context, struct net_exchange *exchange)
{
    (void)context;
    net_reply(exchange, 503, NULL, 0, (struct str){0});
}

// Opens the doors and closes them again.
static void check_doors(struct doctor *d, const struct service_settings *settings)
{
    const char *listen[LISTEN_MAX] = {LISTEN_DEFAULT};
    size_t count = settings->listen_count ? settings->listen_count : 1;
    bool tls = settings->tls_certificate.len > 0;
    for (size_t i = 0; i < settings->listen_count; i++) listen[i] = settings->listen[i].ptr;
    for (size_t i = 0; i < count; i++) {
        struct error err = {0};
        struct net_server *server = NULL;
        struct net_options options = {.listen = &listen[i],
                                      .listen_count = 1,
                                      .handle = turn_away,
                                      .tls_certificate = tls ? settings->tls_certificate.ptr : NULL,
                                      .tls_key = tls ? settings->tls_key.ptr : NULL};
        if (!net_is_local(listen[i]) && !tls && !settings->insecure)
            doctor_problem(d, "give serve.tls, or serve.insecure when something in front of it does that",
                           "%s can be reached from other machines, without TLS", listen[i]);
        enum code rc = net_open(&options, &server, &err);
        if (rc)
            doctor_problem(d,
                           rc == E_EXISTS || rc == E_LOCKED ? "`ss -ltnp` names who has it; serve.listen takes another"
                                                            : "docs/format/serve.md",
                           "%s: %s", listen[i], err.message);
        else
            net_close(server);
    }
}

void check_serve(struct doctor *d)
{
    struct serve_config config;
    struct error err = {0};
    if (!serve_config_read(d->cli, &config)) return;
    for (size_t i = 0; i < config.fault_count; i++)
        doctor_problem(d, config.faults[i].hint, "%s", config.faults[i].text);
    const char *path = store_path(d);
    bool meant = config.table.count > 0 || (path && access(cli_format(d->cli, "%s.serve", path), F_OK) == 0);
    if (!path || !meant) return; // no service runs here
    check_token_file(d, &config.settings);
    if (server_process(d) == 0 && config.fault_count == 0) check_doors(d, &config.settings);
    const struct tool_confinement *cage = config.settings.local_steps ? config.settings.confinement : NULL;
    if (cage && (tool_confinement_check(cage, &err) || tool_confinement_whole(cage, &err)))
        doctor_problem(d, "a lower serve.confinement.level, or a kernel that has it", "%s", err.message);
}

// ---- how it is

struct visit {
    struct doctor *d;
    struct fetch_link *link;
    struct fetch_answer answer;
};

static bool get(struct visit *v, const char *path)
{
    struct error err = {0};
    struct fetch_call call = {.method = STR("GET"), .uri = str_from(path), .timeout_ms = CALL_MS};
    enum code rc = fetch_link_call(v->link, &call, &v->d->cli->io.arena, &v->answer, &err);
    if (!rc) return true;
    doctor_problem(v->d,
                   rc == E_DENIED ? "--ca-file names who signed its certificate; its name must be in it"
                                  : "is `cairn serve` running, and does it listen there?",
                   "the server does not answer: %s", err.message);
    return false;
}

static void check_ready(struct visit *v)
{
    struct error err = {0};
    struct json body;
    if (v->answer.status == 200 || json_parse(v->answer.body, NULL, &v->d->cli->io.arena, &body, &err)) {
        if (v->answer.status != 200) doctor_problem(v->d, NULL, "the server is not ready (%d)", v->answer.status);
        return;
    }
    const struct json *checks = json_key(&body, "checks");
    for (uint32_t i = 0; json_is(checks, JSON_ARRAY) && i < checks->count; i++) {
        const struct json *ok = json_key(&checks->items[i], "ok");
        if (json_is(ok, JSON_BOOL) && !ok->boolean)
            doctor_problem(v->d, "its log on stderr tells more", "the server is not ready: %.*s: %.*s",
                           STR_ARG(json_text(json_key(&checks->items[i], "name"))),
                           STR_ARG(json_text(json_key(&checks->items[i], "detail"))));
    }
}

static void check_skew(struct visit *v)
{
    struct tm there = {0};
    struct str date = fetch_header(&v->answer, "date");
    const char *text = cli_format(v->d->cli, "%.*s", STR_ARG(date));
    if (date.len == 0 || !strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &there)) return;
    int64_t skew = (int64_t)timegm(&there) - os_now().wall_ms / 1000;
    if (skew > SKEW_MAX_S || skew < -SKEW_MAX_S)
        doctor_problem(v->d, "tokens expire and timers fire by the server's clock: set both by NTP",
                       "the server's clock is %lld s %s of this one", (long long)(skew < 0 ? -skew : skew),
                       skew < 0 ? "behind" : "ahead");
}

static void check_sinks(struct visit *v)
{
    struct error err = {0};
    struct json body;
    if (v->answer.status != 200 || json_parse(v->answer.body, NULL, &v->d->cli->io.arena, &body, &err)) return;
    const struct json *items = json_key(&body, "items");
    for (uint32_t i = 0; json_is(items, JSON_ARRAY) && i < items->count; i++) {
        const struct json *sink = &items->items[i];
        struct str name = json_text(json_key(sink, "name")), circuit = json_text(json_key(sink, "circuit"));
        int64_t letters = json_integer(json_key(sink, "deadLetters"), 0);
        if (!str_is(circuit, "closed"))
            doctor_problem(v->d, "nothing is lost: events wait until it is back",
                           "sink %.*s is away (circuit %.*s): %.*s", STR_ARG(name), STR_ARG(circuit),
                           STR_ARG(json_text(json_key(sink, "lastError"))));
        if (letters > 0)
            doctor_problem(v->d, "`cairn dlq ls` shows them, `cairn dlq redrive --all SINK` sends them once more",
                           "sink %.*s has %lld dead letters", STR_ARG(name), (long long)letters);
    }
}

// A number of the metrics; -1: it is not there.
static int64_t metric_of(struct str text, const char *name)
{
    size_t len = strlen(name);
    while (text.len > 0) {
        struct str line = str_cut(text, '\n', &text);
        int64_t value;
        if (str_starts(line, str_from(name)) && line.len > len && line.ptr[len] == ' ' &&
            str_int64(str_slice(line, len + 1, line.len), &value))
            return value;
    }
    return -1;
}

static void check_workers(struct visit *v)
{
    if (v->answer.status != 200) return;
    int64_t waiting = metric_of(v->answer.body, "cairn_queue_depth{queue=\"all\"}");
    if (waiting > 0 && metric_of(v->answer.body, "cairn_workers{pool=\"all\"}") == 0)
        doctor_problem(v->d, "cairn worker --server URL --pool NAME; serve.routes says which pools there are",
                       "%lld steps wait for a worker, and there is none", (long long)waiting);
}

static void visit(struct visit *v, const struct server_access *access)
{
    if (!get(v, "/readyz?verbose")) return;
    check_ready(v);
    check_skew(v);
    if (!get(v, "/v1/whoami")) return;
    if (v->answer.status != 200) {
        doctor_problem(v->d, "`cairn token new` with another token makes a new one; `cairn token bootstrap` with the store alone",
                       "the server does not take the token (%s)", access->token_from);
        return;
    }
    if (get(v, "/v1/outbox")) check_sinks(v);
    if (get(v, "/metrics")) check_workers(v);
}

// Where the service of this store listens; NULL: none runs, or its address is not known here.
static const char *address_here(struct doctor *d)
{
    struct serve_config config;
    if (server_process(d) == 0 || !serve_config_read(d->cli, &config)) return NULL;
    const char *listen = config.settings.listen_count ? config.settings.listen[0].ptr : LISTEN_DEFAULT;
    size_t len = strlen(listen);
    if (strncmp(listen, "unix:", 5) == 0) return listen;
    if (len > 2 && strcmp(listen + len - 2, ":0") == 0) return NULL; // any port
    return cli_format(d->cli, "%s://%s", config.settings.tls_certificate.len ? "https" : "http", listen);
}

void check_server(struct doctor *d)
{
    struct server_access access = {0};
    struct error err = {0};
    struct visit v = {.d = d};
    const char *url = d->session.remote ? d->session.url : d->session.url ? address_here(d) : NULL;
    if (!url) return;
    if (d->unopened && d->session.remote) return; // it has been said why
    if (server_access(d->cli, url, d->session.url, &access)) {
        d->problem_count++;
        return;
    }
    struct fetch_link_options options = {
        .url = str_from(url), .token = access.token, .ca_file = access.ca_file, .timeout_ms = CALL_MS};
    if (fetch_link_open(&options, &v.link, &err)) {
        doctor_problem(d, NULL, "%s", err.message);
        return;
    }
    visit(&v, &access);
    fetch_link_close(v.link);
}
