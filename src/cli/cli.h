// What every command has in its hands: its arguments, its settings, and the console that it writes to (term/term.h).
// owner: main thread.
#ifndef CAIRN_CLI_CLI_H
#define CAIRN_CLI_CLI_H

#include "cli/args.h"
#include "json/make.h"
#include "term/progress.h"
#include "term/term.h"

#include "cairn/cairn.h"

struct functions;
struct config;

struct cli {
    struct console io;
    struct args args;
    struct functions *functions; // of --plugin; NULL: none, or not needed yet
    struct config *config;       // settings and where they came from; NULL: memory ran out
    bool at_server;              // the run of this command is a server's
};

// A command speaks through its console.
#define cli_print(cli, text) console_print(&(cli)->io, text)
#define cli_talk(cli, text) console_talk(&(cli)->io, text)
#define cli_fail(cli, ...) console_fail(&(cli)->io, __VA_ARGS__)
#define cli_error(cli, err) console_error(&(cli)->io, err)
#define cli_nomem(cli) console_nomem(&(cli)->io)
#define cli_hint(cli, ...) console_hint(&(cli)->io, __VA_ARGS__)
#define cli_command(cli, ...) console_command(&(cli)->io, __VA_ARGS__)
#define cli_next(cli, ...) console_next(&(cli)->io, __VA_ARGS__)
#define cli_note(cli, ...) console_note(&(cli)->io, __VA_ARGS__)
#define cli_warn(cli, ...) console_warn(&(cli)->io, __VA_ARGS__)
#define cli_format(cli, ...) console_format(&(cli)->io, __VA_ARGS__)

// The usage error that args_* left behind.
int cli_usage(struct cli *cli);
// -o, or what `otherwise` says when it is absent.
enum format format_of(const struct cli *cli, enum format otherwise);
// --progress.
enum progress_mode progress_mode_of(const struct cli *cli);
// A moment given as an age (2h, 7d) or a time; 0 when the flag is absent. False: usage error, already reported.
bool time_flag(struct cli *cli, enum flag flag, int64_t *ms);
// A list as -o and --fields say. False: usage error, already reported.
bool list_open(struct list *list, struct cli *cli, const struct column *columns, size_t count, const char *name_key);

#endif
