// Help made from the table of commands, and the topics that are not about one command.
#ifndef CAIRN_CLI_HELP_H
#define CAIRN_CLI_HELP_H

#include "cli/args.h"

struct cli;
struct command;

int help_overview(struct cli *cli);
int help_command(struct cli *cli, const struct command *command);
// "-o, --output FORMAT", and what it means with the choices that the command has.
void flag_words(enum flag flag, const char *choices, struct buf *name, struct buf *words);

#endif
