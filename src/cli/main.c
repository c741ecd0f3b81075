// Nothing heavy happens before a command needs it: no store, no schemas, no libcrypto for `cairn --version`.
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/help.h"

#include "lib/functions.h"
#include "task/task.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_LIMIT ((size_t)4 << 30)
#define FUNCTIONS_END_MS 1000 // for functions of plugins that still run

// A descriptor that the caller closed must not be given to a store file by the next open.
static void fill_standard_descriptors(void)
{
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
}

static int dispatch(struct cli *cli, int parsed)
{
    if (parsed != EXIT_OK) return cli_usage(cli);
    if (args_has(&cli->args, FLAG_HELP))
        return cli->args.command ? help_command(cli, cli->args.command) : help_overview(cli);
    if (cli->args.command && !config_report(cli)) return EXIT_USAGE;
    if (cli->args.command) return cli->args.command->run(cli);
    if (args_has(&cli->args, FLAG_VERSION)) return command_version(cli);
    help_overview(cli);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    static struct cli cli;
    fill_standard_descriptors();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a limit of file size is a disk that is full
    if (argc == 2 && strcmp(argv[1], TASK_CHILD) == 0) return task_child_main(); // it bounds the memory of SQLite, which needs the counts
    store_own_process();
    arena_init(&cli.io.arena, 64 * 1024, ARENA_LIMIT);
    cli.io.self = argc > 0 && strchr(argv[0], '/') ? argv[0] : "cairn";
    cli.io.tail = "";
    int parsed = args_parse(&cli.args, argc, argv, &cli.io.arena);
    config_load(&cli);
    struct str color = args_text(&cli.args, FLAG_COLOR, "auto");
    bool ascii = args_has(&cli.args, FLAG_ASCII) || str_is(args_text(&cli.args, FLAG_ASCII, ""), "true");
    term_open(&cli.io.out, STDOUT_FILENO, color, ascii);
    term_open(&cli.io.err, STDERR_FILENO, color, ascii);
    cli.io.quiet = args_has(&cli.args, FLAG_QUIET);
    struct str time = args_text(&cli.args, FLAG_TIME, "relative");
    cli.io.time = str_is(time, "iso") ? TIME_ISO : str_is(time, "unix") ? TIME_UNIX : TIME_RELATIVE;
    cli.io.verbose = args_count(&cli.args, FLAG_VERBOSE);
    cli.io.now_ms = os_now().wall_ms;
    os_log_level(cli.io.quiet ? LOG_ERROR : cli.io.verbose > 2 ? LOG_DEBUG : cli.io.verbose > 1 ? LOG_INFO : LOG_WARN);
    const char *shape = getenv("CAIRN_LOG");
    if (shape && strcmp(shape, "json") == 0) os_log_shape(LOG_JSON);
    int code = dispatch(&cli, parsed);
    functions_close(cli.functions, FUNCTIONS_END_MS);
    functions_free(cli.functions, NULL, NULL);
    arena_release(&cli.io.arena);
    return code == EXIT_OK && cli.io.out_failed ? EXIT_ERROR : code;
}
