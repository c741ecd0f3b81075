// Kinds of steps that shared objects bring (--plugin).
#ifndef CAIRN_CLI_PLUGINS_H
#define CAIRN_CLI_PLUGINS_H

#include "cli/cli.h"

// Loads what --plugin names, once; later calls do nothing. EXIT_OK, or what was reported.
int plugins_open(struct cli *cli);
// The same with up to so many functions at once.
int plugins_open_for(struct cli *cli, uint32_t concurrency);

#endif
