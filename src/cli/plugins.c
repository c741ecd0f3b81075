#include "cli/plugins.h"

#include "lib/functions.h"

int plugins_open(struct cli *cli)
{
    struct error err = {0};
    struct str file;
    size_t cursor = 0;
    if (cli->functions || !args_has(&cli->args, FLAG_PLUGIN)) return EXIT_OK;
    enum code rc = functions_open(0, &cli->functions, &err);
    while (!rc && args_next(&cli->args, FLAG_PLUGIN, &cursor, &file))
        rc = functions_load(cli->functions, file.ptr, &err);
    if (!rc) return EXIT_OK;
    int code = cli_error(cli, &err);
    cli_hint(cli, "a plugin is a shared object with cairn_plugin_init: see cairn/plugin.h and examples/plugin");
    return code;
}
