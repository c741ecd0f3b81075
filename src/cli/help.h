// Help made from the table of commands, and the topics that are not about one command.
#ifndef CAIRN_CLI_HELP_H
#define CAIRN_CLI_HELP_H

#include <stddef.h>

struct cli;
struct command;

int help_overview(struct cli *cli);
int help_command(struct cli *cli, const struct command *command);

struct help_row {
    const char *name, *text;
};
// The rows of "exit-codes", "targets" or "environment".
const struct help_row *help_rows(const char *topic, size_t *count);

#endif
