// Kinds of steps that shared objects bring (--plugin).
#ifndef CAIRN_CLI_PLUGINS_H
#define CAIRN_CLI_PLUGINS_H

#include "cli/cli.h"

// Loads what --plugin names, once; later calls do nothing. EXIT_OK, or what was reported.
int plugins_open(struct cli *cli);

#endif
