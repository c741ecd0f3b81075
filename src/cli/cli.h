// What every command has in its hands: its arguments, an arena that dies with it, and the two places it may write to.
//
// stdout is data, stderr is talk. Whatever a message is made of, it goes through text_safe before it reaches stderr.
// A closed stdout (EPIPE) is not an error: printing stops and the command ends as if all had been read.
// owner: main thread.
#ifndef CAIRN_CLI_CLI_H
#define CAIRN_CLI_CLI_H

#include "cli/args.h"
#include "cli/output.h"
#include "json/json.h"

#include "cairn/cairn.h"

struct functions;

struct config;

struct cli {
    struct arena arena;
    struct args args;
    struct term out, err;
    bool out_closed;
    bool out_failed; // what was asked for is not on stdout: no success
    bool quiet;
    size_t verbose;
    int64_t now_ms;              // when the command began
    struct functions *functions; // of --plugin; NULL: none, or not needed yet
    struct config *config;       // settings and where they came from; NULL: memory ran out
    const char *self;            // how this program was called, for commands to paste
    const char *tail;            // " --store URL --tenant ID" as far as they are not the defaults
};

// Prints what `text` holds on stdout and empties it.
void cli_print(struct cli *cli, struct buf *text);
// The same on stderr: `text` is safe already.
void cli_talk(struct cli *cli, struct buf *text);
// "error: ..." on stderr; returns `code`.
int cli_fail(struct cli *cli, enum exit_code code, const char *format, ...) PRINTF_LIKE(3, 4);
// From a struct error of a module below; the exit code follows its code.
int cli_error(struct cli *cli, const struct error *err);
// "  hint: ..." below an error or a result. Not shown with --quiet.
void cli_hint(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);
// A command to paste: cli_command(cli, "get %s", run) is "cairn get RUN --store URL"; cli_next shows it as "  next: ...".
const char *cli_command(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);
void cli_next(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);
// A line of talk on stderr. Not shown with --quiet.
void cli_note(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);
void cli_warn(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);
// The usage error that args_* left behind.
int cli_usage(struct cli *cli);
int cli_nomem(struct cli *cli);
// Text in the command's arena; "" when memory ran out.
const char *cli_format(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
