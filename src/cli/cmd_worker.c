// Steps of a server, executed here.
#include "cli/commands.h"
#include "cli/confine.h"
#include "temporal/temporal.h"
#include "worker/worker.h"
#include "cli/interrupt.h"
#include "cli/plugins.h"
#include "cli/tasking.h"
#include "cli/working.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 50, TOKEN_MAX = 4096 };

static pthread_mutex_t talk = PTHREAD_MUTEX_INITIALIZER; // stderr is shared by the threads of the worker

// Which task begins is for those who want to know more.
static void say(void *context, bool warning, const char *text)
{
    struct cli *cli = context;
    LOCKED(&talk);
    if (warning)
        cli_warn(cli, "%s", text);
    else if (cli->io.verbose > 0)
        cli_note(cli, "%s", text);
}

static int read_token(struct cli *cli, struct str *token)
{
    struct str file = args_text(&cli->args, FLAG_TOKEN_FILE, "");
    struct error err = {0};
    // Steps may look at the environment that this process was started with: it is gone from there before the first one.
    char *said = getenv("CAIRN_TOKEN");
    *token = said ? arena_copy(&cli->io.arena, str_from(said)) : (struct str){"", 0};
    if (!token->ptr) return cli_nomem(cli);
    if (said) explicit_bzero(said, strlen(said));
    unsetenv("CAIRN_TOKEN");
    if (file.len == 0) return EXIT_OK;
    if (os_read_file(file.ptr, TOKEN_MAX, &cli->io.arena, token, &err))
        return cli_fail(cli, EXIT_USAGE, "--token-file: %s", err.message);
    *token = str_trim(*token);
    return EXIT_OK;
}

// The first one and, after commas, others that share their runs with it.
static int read_servers(struct cli *cli, struct worker_options *out)
{
    struct str all = args_text(&cli->args, FLAG_SERVER, "");
    struct str *more = ARENA_ARRAY(&cli->io.arena, WORKER_SERVERS_MAX, struct str);
    if (!more) return cli_nomem(cli);
    out->link.url = str_trim(str_cut(all, ',', &all));
    out->more_servers = more;
    while (all.len > 0) {
        struct str one = str_trim(str_cut(all, ',', &all));
        if (one.len == 0) continue;
        if (out->more_count + 1 == WORKER_SERVERS_MAX)
            return cli_fail(cli, EXIT_USAGE, "--server: more than %d servers", WORKER_SERVERS_MAX);
        more[out->more_count++] = one;
    }
    return EXIT_OK;
}

// --temporal: activities of that server instead of tasks of one of Cairn.
static int take_temporal(struct cli *cli, struct worker_options *out)
{
    struct temporal_settings *settings = ARENA_NEW(&cli->io.arena, struct temporal_settings);
    if (!settings) return cli_nomem(cli);
    if (!args_has(&cli->args, FLAG_TEMPORAL)) return EXIT_OK;
    if (args_has(&cli->args, FLAG_SERVER) || args_has(&cli->args, FLAG_KINDS))
        return cli_fail(cli, EXIT_USAGE, "--temporal does not go with --server or --kinds: a queue of Temporal has steps of every kind");
    bool certificates = out->link.ca_file.len > 0 || out->link.cert_file.len > 0;
    *settings = (struct temporal_settings){.address = args_text(&cli->args, FLAG_TEMPORAL, ""),
                                           .namespace = args_text(&cli->args, FLAG_NAMESPACE, ""),
                                           .queue = args_text(&cli->args, FLAG_TASK_QUEUE, ""),
                                           .tls = args_has(&cli->args, FLAG_TLS) || certificates,
                                           .ca_file = out->link.ca_file,
                                           .cert_file = out->link.cert_file,
                                           .key_file = out->link.key_file,
                                           .key_file_path = args_text(&cli->args, FLAG_API_KEY_FILE, "")};
    out->temporal = settings;
    return EXIT_OK;
}

static int read_options(struct cli *cli, struct worker_options *out)
{
    int64_t slots;
    char host[256] = "";
    struct engine_options engine = {0};
    gethostname(host, sizeof(host) - 1);
    const char *name = cli_format(cli, "%s-%ld", host[0] ? host : "worker", (long)getpid());
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!args_int(&cli->args, FLAG_CONCURRENCY, 1, WORKER_SLOTS_MAX, cores > 0 && cores < 64 ? cores : 4, &cli->io.arena,
                  &slots))
        return cli_usage(cli);
    int code = read_servers(cli, out);
    if (code) return code;
    out->link.ca_file = args_text(&cli->args, FLAG_CA_FILE, "");
    out->link.cert_file = args_text(&cli->args, FLAG_CERT, "");
    out->link.key_file = args_text(&cli->args, FLAG_CERT_KEY, "");
    if (!out->link.cert_file.len != !out->link.key_file.len)
        return cli_fail(cli, EXIT_USAGE, "--cert and --key go together");
    out->name = args_text(&cli->args, FLAG_NAME, name);
    out->pool = args_text(&cli->args, FLAG_POOL, "default");
    out->slots = (uint32_t)slots;
    code = take_temporal(cli, out);
    if (code) return code;
    if (out->link.url.len == 0 && !out->temporal) {
        code = cli_fail(cli, EXIT_USAGE, "which server? --server is missing");
        cli_hint(cli, "http://HOST:PORT, https://HOST or unix:PATH; $CAIRN_SERVER does as well; or --temporal HOST:PORT");
        return code;
    }
    code = read_token(cli, &out->link.token);
    if (code == EXIT_OK) code = confine_open(cli, &engine, false);
    if (code == EXIT_OK) code = confine_whole(cli, engine.confinement);
    out->confinement = engine.confinement;
    out->secrets = engine.secrets ? engine.secrets : &tool_secrets_none;
    return code;
}

static void rest(void)
{
    struct timespec time = {.tv_nsec = LOOK_MS * 1000000};
    nanosleep(&time, NULL);
}

int working_loop(struct cli *cli, struct worker *worker)
{
    struct error err = {0};
    bool draining = false;
    for (;;) {
        size_t busy = worker_busy(worker, &err);
        if (err.code) break;
        if (interrupts_count() > 0 && !draining) {
            draining = true;
            worker_drain(worker);
            pthread_mutex_lock(&talk);
            if (busy > 0)
                cli_note(cli, "draining: %zu step%s at hand; once more stops at once", busy, busy == 1 ? "" : "s");
            pthread_mutex_unlock(&talk);
        }
        if ((draining && busy == 0) || interrupts_count() > 1) break;
        rest();
    }
    size_t left = worker_busy(worker, &err);
    pthread_mutex_lock(&talk);
    if (left > 0 && !err.code) cli_warn(cli, "%zu step%s stopped and given back", left, left == 1 ? "" : "s");
    pthread_mutex_unlock(&talk);
    return err.code ? cli_error(cli, &err) : EXIT_OK;
}

int working_read(struct cli *cli, struct worker_options *options, struct task_options *task)
{
    struct error err = {0};
    *options = (struct worker_options){.say = say, .context = cli};
    int code = read_options(cli, options);
    if (code == EXIT_OK) code = plugins_open_for(cli, options->slots);
    options->functions = cli->functions;
    struct fetch_policy *policy = NULL;
    if (code == EXIT_OK) code = tasking_read(cli, task);
    if (code == EXIT_OK) code = fetch_read(cli, &policy); // without a word nothing may be fetched, as in a service
    task->policy = policy;
    options->task = task;
    options->quiet = cli->io.verbose == 0;
    if (code) return code;
    enum code rc = worker_kinds(options, args_text(&cli->args, FLAG_KINDS, ""), &cli->io.arena, &err);
    if (rc == E_INVALID) return cli_fail(cli, EXIT_USAGE, "--kinds: %s", err.message);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

int command_worker(struct cli *cli)
{
    struct worker_options options;
    struct task_options task;
    struct worker *worker;
    struct error err = {0};
    int code = working_read(cli, &options, &task);
    if (code) return code;
    interrupts_catch();
    shut_in();
    struct str whose = options.temporal ? options.temporal->address : options.link.url;
    cli_note(cli, "worker %.*s: pool %.*s of %.*s, %u step%s at once", STR_ARG(options.name), STR_ARG(options.pool),
             STR_ARG(whose), options.slots, options.slots == 1 ? "" : "s");
    if (worker_open(&options, &worker, &err)) return cli_error(cli, &err);
    code = working_loop(cli, worker);
    uint64_t count = worker_count(worker);
    worker_close(worker);
    cli_note(cli, "worker %.*s: %llu result%s handed in", STR_ARG(options.name), (unsigned long long)count,
             count == 1 ? "" : "s");
    return code;
}
