// What the rows of the table of commands call. One file a command; the signals are one file, being one command in nine
// spellings.
#ifndef CAIRN_CLI_COMMANDS_H
#define CAIRN_CLI_COMMANDS_H

struct cli;

#define COMMAND(topic, function, ...) int command_##function(struct cli *cli);
#define SPELLING(...)
#include "cli/command_list.h"
#undef COMMAND
#undef SPELLING

#endif
