#include "cli/confine.h"

#include <sys/prctl.h>
#include <sys/resource.h>

enum { CONFIG_MAX = 1 << 20 };

static int open_secrets(struct cli *cli, struct engine_options *options)
{
    struct error err = {0};
    struct str text, file = args_text(&cli->args, FLAG_SECRETS, "");
    struct json config;
    struct tool_secrets *secrets = NULL;
    if (file.len == 0) return EXIT_OK;
    enum code rc = os_read_file(file.ptr, CONFIG_MAX, &cli->io.arena, &text, &err);
    if (!rc) rc = json_parse(text, NULL, &cli->io.arena, &config, &err);
    if (!rc) rc = tool_secrets_parse(&config, &cli->io.arena, &secrets, &err);
    if (rc) {
        int code = cli_fail(cli, rc == E_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_USAGE, "--secrets %.*s: %s", STR_ARG(file),
                            err.message);
        cli_hint(cli, "docs/format/secrets.md shows what such a file holds");
        return code;
    }
    options->secrets = secrets;
    return EXIT_OK;
}

int confine_whole(struct cli *cli, const struct tool_confinement *confinement)
{
    struct error err = {0};
    if (!confinement || tool_confinement_whole(confinement, &err) == OK) return EXIT_OK;
    int code = cli_fail(cli, EXIT_ERROR, "%s", err.message);
    cli_hint(cli, "--confine files, basic or none says that less is enough");
    return code;
}

// The engine's memory holds tokens: no core files, no other process of this user may look into it (B7).
void shut_in(void)
{
    struct rlimit none = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0) || setrlimit(RLIMIT_CORE, &none))
        os_log(LOG_WARN, "memory can be looked into by other processes of this user");
}

int confine_open(struct cli *cli, struct engine_options *options, bool trusts_home)
{
    struct error err = {0};
    struct str level = args_text(&cli->args, FLAG_CONFINE, trusts_home ? "none" : "auto");
    struct tool_confinement *confinement = ARENA_NEW(&cli->io.arena, struct tool_confinement);
    if (!confinement) return cli_nomem(cli);
    confinement->limits = tool_limits_default;
    confinement->trusts_home = trusts_home;
    confinement->separate = !trusts_home;
    if (!tool_level_parse(level, &confinement->level)) return cli_nomem(cli); // args has checked the choices
    if (tool_confinement_check(confinement, &err)) return cli_fail(cli, EXIT_ERROR, "--confine: %s", err.message);
    if (confinement->level != TOOL_LEVEL_NONE) options->confinement = confinement;
    return open_secrets(cli, options);
}
