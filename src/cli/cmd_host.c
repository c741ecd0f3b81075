// Steps of a server, carried by another system.
#include "base/civil.h"
#include "cli/commands.h"
#include "cli/confine.h"
#include "cli/interrupt.h"
#include "cli/working.h"
#include "conductor/conductor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_types(struct cli *cli, struct conductor_options *out)
{
    struct conductor_type *types =
        ARENA_ARRAY(&cli->io.arena, args_count(&cli->args, FLAG_TASK_TYPE) + 1, struct conductor_type);
    struct str text;
    if (!types) return cli_nomem(cli);
    for (size_t cursor = 0; args_next(&cli->args, FLAG_TASK_TYPE, &cursor, &text);) {
        struct str type, kind = str_cut(text, '=', &type);
        if (kind.len == 0 || type.len == 0)
            return cli_fail(cli, EXIT_USAGE, "--task-type %.*s: KIND=TYPE is wanted", STR_ARG(text));
        types[out->type_count++] = (struct conductor_type){kind, type};
    }
    out->types = types;
    return EXIT_OK;
}

// The kinds that workers of Conductor execute are asked for besides.
static int add_kinds(struct cli *cli, struct conductor_options *out)
{
    struct worker_options *worker = &out->worker;
    struct str *kinds = ARENA_ARRAY(&cli->io.arena, worker->kind_count + out->type_count + 1, struct str);
    size_t count = 0;
    if (!kinds) return cli_nomem(cli);
    for (size_t i = 0; i < worker->kind_count; i++) {
        bool theirs = false;
        for (size_t k = 0; k < out->type_count; k++) theirs = theirs || str_eq(out->types[k].kind, worker->kinds[i]);
        if (!theirs) kinds[count++] = worker->kinds[i];
    }
    for (size_t i = 0; i < out->type_count; i++) kinds[count++] = out->types[i].kind;
    worker->kinds = kinds;
    worker->kind_count = count;
    return EXIT_OK;
}

static int read_duration(struct cli *cli, enum flag flag, const char *name, int64_t *out)
{
    struct str text = args_text(&cli->args, flag, "");
    if (text.len == 0) return EXIT_OK;
    if (!duration_parse(text, out) || *out < 100 || *out > 86400000)
        return cli_fail(cli, EXIT_USAGE, "--%s %.*s: a duration between 100ms and 24h is wanted", name, STR_ARG(text));
    return EXIT_OK;
}

static int read_conductor(struct cli *cli, struct conductor_options *out)
{
    int64_t shown = 0;
    out->link.url = args_text(&cli->args, FLAG_CONDUCTOR, "");
    if (out->link.url.len == 0) {
        int code = cli_fail(cli, EXIT_USAGE, "which Conductor? --conductor is missing");
        cli_hint(cli, "its URL with the path of its interface: http://127.0.0.1:8080/api");
        return code;
    }
    char *token = getenv("CAIRN_CONDUCTOR_TOKEN"); // for those who have put something in front of it
    out->link.token = token ? arena_copy(&cli->io.arena, str_from(token)) : (struct str){0};
    if (token && !out->link.token.ptr) return cli_nomem(cli);
    if (token) explicit_bzero(token, strlen(token));
    unsetenv("CAIRN_CONDUCTOR_TOKEN");
    out->link.ca_file = out->worker.link.ca_file;
    out->site = args_text(&cli->args, FLAG_SITE, "");
    out->mirror = str_is(args_text(&cli->args, FLAG_DELIVERY, "poll"), "mirror");
    out->recover = str_is(args_text(&cli->args, FLAG_ON_TERMINATE, "cancel"), "recover");
    if (!args_int(&cli->args, FLAG_SHOW_OUTPUT, 0, CONDUCTOR_INLINE_MAX, 0, &cli->io.arena, &shown))
        return cli_usage(cli);
    out->inline_max = (size_t)shown;
    int code = read_duration(cli, FLAG_PATIENCE, "patience", &out->patience_ms);
    if (code == EXIT_OK) code = read_duration(cli, FLAG_SILENT, "silent", &out->silent_ms);
    if (code == EXIT_OK) code = read_types(cli, out);
    return code == EXIT_OK ? add_kinds(cli, out) : code;
}

int command_host_conductor(struct cli *cli)
{
    struct conductor_options options = {0};
    struct conductor *host;
    struct task_options task;
    struct error err = {0};
    int code = working_read(cli, &options.worker, &task);
    if (code == EXIT_OK) code = read_conductor(cli, &options);
    if (code) return code;
    const struct worker_options *worker = &options.worker;
    interrupts_catch();
    shut_in();
    cli_note(cli, "host %.*s: pool %.*s of %.*s, carried by %.*s, %u step%s at once", STR_ARG(worker->name),
             STR_ARG(worker->pool), STR_ARG(worker->link.url), STR_ARG(options.link.url), worker->slots,
             worker->slots == 1 ? "" : "s");
    if (conductor_open(&options, &host, &err)) return cli_error(cli, &err);
    code = working_loop(cli, conductor_worker(host));
    uint64_t count = worker_count(conductor_worker(host));
    conductor_settle(host);
    conductor_close(host);
    cli_note(cli, "host %.*s: %llu result%s handed in", STR_ARG(worker->name), (unsigned long long)count,
             count == 1 ? "" : "s");
    return code;
}
