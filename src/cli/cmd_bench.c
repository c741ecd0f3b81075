#include "cli/cli.h"
#include "cli/commands.h"

#include "bench/bench.h"

int command_bench(struct cli *cli)
{
    struct str store = args_has(&cli->args, FLAG_STORE) ? args_text(&cli->args, FLAG_STORE, "") : STR("");
    return bench_run(&cli->io, store, args_text(&cli->args, FLAG_ONLY, ""));
}
