// Help made from the table of commands, and the topics that are not about one command.
#ifndef CAIRN_CLI_HELP_H
#define CAIRN_CLI_HELP_H

struct cli;
struct command;

int help_overview(struct cli *cli);
int help_command(struct cli *cli, const struct command *command);

#endif
