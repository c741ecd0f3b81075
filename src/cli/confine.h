// --confine and --secrets: how the steps of a command run.
#ifndef CAIRN_CLI_CONFINE_H
#define CAIRN_CLI_CONFINE_H

#include "cli/cli.h"
#include "engine/engine.h"

// Puts them into `options`; they live in the command's arena. EXIT_OK, or what was reported: also when steps could not be
// confined as asked, so that nothing is started for nothing. `trusts_home`: steps may write the directory that their run was started in,
// because it is the user of this command who has started it there.
int confine_open(struct cli *cli, struct engine_options *options, bool trusts_home);
// A service and a worker refuse `auto` where the kernel cannot keep it. EXIT_OK, or what was reported. NULL: not confined.
int confine_whole(struct cli *cli, const struct tool_confinement *confinement);
void shut_in(void);

#endif
