#include "cli/plugins.h"

#include "lib/functions.h"

enum { WORKERS_MAX = 4, THREADS_MAX = 256 };

int plugins_open_for(struct cli *cli, uint32_t concurrency)
{
    struct error err = {0};
    struct str file;
    size_t cursor = 0;
    if (cli->functions || !args_has(&cli->args, FLAG_PLUGIN)) return EXIT_OK;
    enum code rc =
        functions_open(concurrency < THREADS_MAX ? concurrency : THREADS_MAX, WORKERS_MAX, &cli->functions, &err);
    while (!rc && args_next(&cli->args, FLAG_PLUGIN, &cursor, &file))
        rc = functions_load(cli->functions, file.ptr, &err);
    if (!rc) return EXIT_OK;
    int code = cli_error(cli, &err);
    cli_hint(cli, "a plugin is a shared object with cairn_plugin_init: see cairn/plugin.h and examples/plugin");
    return code;
}

int plugins_open(struct cli *cli)
{
    return plugins_open_for(cli, WORKERS_MAX);
}
