// Steps of a server, executed here.
#include "cli/commands.h"
#include "cli/confine.h"
#include "cli/crew.h"
#include "cli/interrupt.h"
#include "cli/plugins.h"
#include "cli/tasking.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 50, TOKEN_MAX = 4096 };

static pthread_mutex_t talk = PTHREAD_MUTEX_INITIALIZER; // stderr is shared by the threads of the crew

// Which task begins is for those who want to know more.
static void say(void *context, bool warning, const char *text)
{
    struct cli *cli = context;
    pthread_mutex_lock(&talk);
    if (warning)
        cli_warn(cli, "%s", text);
    else if (cli->io.verbose > 0)
        cli_note(cli, "%s", text);
    pthread_mutex_unlock(&talk);
}

static int read_token(struct cli *cli, struct str *token)
{
    struct str file = args_text(&cli->args, FLAG_TOKEN_FILE, "");
    struct error err = {0};
    *token = str_from(getenv("CAIRN_TOKEN"));
    if (file.len == 0) return EXIT_OK;
    if (os_read_file(file.ptr, TOKEN_MAX, &cli->io.arena, token, &err))
        return cli_fail(cli, EXIT_USAGE, "--token-file: %s", err.message);
    *token = str_trim(*token);
    return EXIT_OK;
}

// The first one and, after commas, others that share their runs with it.
static int read_servers(struct cli *cli, struct crew_options *out)
{
    struct str all = args_text(&cli->args, FLAG_SERVER, "");
    struct str *more = ARENA_ARRAY(&cli->io.arena, CREW_SERVERS_MAX, struct str);
    if (!more) return cli_nomem(cli);
    out->link.url = str_trim(str_cut(all, ',', &all));
    out->more_servers = more;
    while (all.len > 0) {
        struct str one = str_trim(str_cut(all, ',', &all));
        if (one.len == 0) continue;
        if (out->more_count + 1 == CREW_SERVERS_MAX)
            return cli_fail(cli, EXIT_USAGE, "--server: more than %d servers", CREW_SERVERS_MAX);
        more[out->more_count++] = one;
    }
    return EXIT_OK;
}

static int read_options(struct cli *cli, struct crew_options *out)
{
    int64_t slots;
    char host[256] = "";
    struct engine_options engine = {0};
    gethostname(host, sizeof(host) - 1);
    const char *name = cli_format(cli, "%s-%ld", host[0] ? host : "worker", (long)getpid());
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!args_int(&cli->args, FLAG_CONCURRENCY, 1, CREW_SLOTS_MAX, cores > 0 && cores < 64 ? cores : 4, &cli->io.arena,
                  &slots))
        return cli_usage(cli);
    int listed = read_servers(cli, out);
    if (listed) return listed;
    out->link.ca_file = args_text(&cli->args, FLAG_CA_FILE, "");
    out->name = args_text(&cli->args, FLAG_NAME, name);
    out->pool = args_text(&cli->args, FLAG_POOL, "default");
    out->slots = (uint32_t)slots;
    if (out->link.url.len == 0) {
        int code = cli_fail(cli, EXIT_USAGE, "which server? --server is missing");
        cli_hint(cli, "http://HOST:PORT, https://HOST or unix:PATH; $CAIRN_SERVER does as well");
        return code;
    }
    int code = read_token(cli, &out->link.token);
    if (code == EXIT_OK) code = confine_open(cli, &engine);
    out->confinement = engine.confinement;
    out->secrets = engine.secrets;
    return code;
}

static int open_tasks(struct cli *cli, struct crew_options *out)
{
    struct task_options options;
    struct error err = {0};
    int code = tasking_read(cli, &options);
    if (code) return code;
    options.mark = cli_format(cli, "worker-%ld", (long)getpid()); // other workers of this machine are left alone
    options.process_max = out->slots;
    options.confinement = out->confinement;
    options.secrets = out->secrets;
    return tasks_open(&options, &out->tasks, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static int read_kinds(struct cli *cli, struct crew_options *out)
{
    static const struct str processes[] = {STR_INIT("shell"), STR_INIT("exec"), STR_INIT("script")};
    struct str all = args_text(&cli->args, FLAG_KINDS, "");
    size_t named = all.len > 0, count = ARRAY_COUNT(processes), tools = 0;
    if (out->functions) count += functions_names(out->functions, NULL, 0);
    size_t others = count;
    while (task_kind_name(tools)) tools++;
    count += tools;
    if (count > REMOTE_BATCH_MAX) return cli_fail(cli, EXIT_USAGE, "more than %d kinds", REMOTE_BATCH_MAX);
    struct str *kinds = ARENA_ARRAY(&cli->io.arena, count + all.len + 1, struct str);
    if (!kinds) return cli_nomem(cli);
    memcpy(kinds, processes, sizeof(processes));
    if (out->functions) functions_names(out->functions, kinds + ARRAY_COUNT(processes), count);
    for (size_t i = 0, at = others; i < tools; i++) {
        struct str name = str_from(task_kind_name(i));
        if (str_is(name, "shell")) // is there already, as a process
            count--;
        else
            kinds[at++] = name;
    }
    struct str *known = kinds;
    out->kinds = named ? kinds + count : kinds;
    out->kind_count = named ? 0 : count;
    while (all.len > 0) {
        struct str kind = str_trim(str_cut(all, ',', &all));
        size_t i = 0;
        while (i < count && !str_eq(kind, known[i])) i++;
        if (i == count && !tasks_know(out->tasks, kind))
            return cli_fail(cli, EXIT_USAGE,
                            "--kinds: this worker executes shell, exec, script, the functions of its plugins and the "
                            "tools of playbooks, not \"%.*s\"",
                            STR_ARG(kind));
        kinds[count + out->kind_count++] = kind;
    }
    return EXIT_OK;
}

static void rest(void)
{
    struct timespec time = {.tv_nsec = LOOK_MS * 1000000};
    nanosleep(&time, NULL);
}

static int work(struct cli *cli, struct crew *crew)
{
    struct error err = {0};
    bool draining = false;
    for (;;) {
        size_t busy = crew_busy(crew, &err);
        if (err.code) break;
        if (interrupts_count() > 0 && !draining) {
            draining = true;
            crew_drain(crew);
            pthread_mutex_lock(&talk);
            if (busy > 0)
                cli_note(cli, "draining: %zu step%s at hand; once more stops at once", busy, busy == 1 ? "" : "s");
            pthread_mutex_unlock(&talk);
        }
        if ((draining && busy == 0) || interrupts_count() > 1) break;
        rest();
    }
    size_t left = crew_busy(crew, &err);
    pthread_mutex_lock(&talk);
    if (left > 0 && !err.code) cli_warn(cli, "%zu step%s stopped and given back", left, left == 1 ? "" : "s");
    pthread_mutex_unlock(&talk);
    return err.code ? cli_error(cli, &err) : EXIT_OK;
}

int command_worker(struct cli *cli)
{
    struct crew_options options = {.say = say, .context = cli};
    struct crew *crew;
    struct error err = {0};
    int code = read_options(cli, &options);
    if (code == EXIT_OK) code = plugins_open_for(cli, options.slots);
    options.functions = cli->functions;
    if (code == EXIT_OK) code = open_tasks(cli, &options);
    options.quiet = cli->io.verbose == 0;
    if (code == EXIT_OK) code = read_kinds(cli, &options);
    if (code) {
        tasks_close(options.tasks);
        return code;
    }
    interrupts_catch();
    cli_note(cli, "worker %.*s: pool %.*s of %.*s, %u step%s at once", STR_ARG(options.name), STR_ARG(options.pool),
             STR_ARG(options.link.url), options.slots, options.slots == 1 ? "" : "s");
    if (crew_open(&options, &crew, &err)) return cli_error(cli, &err);
    code = work(cli, crew);
    uint64_t count = crew_count(crew);
    crew_close(crew);
    cli_note(cli, "worker %.*s: %llu result%s handed in", STR_ARG(options.name), (unsigned long long)count,
             count == 1 ? "" : "s");
    return code;
}
