// fork, rerun and retry of a step with all below it: what the user wants to be different, the editor.
#ifndef CAIRN_CLI_FORK_H
#define CAIRN_CLI_FORK_H

#include "cli/session.h"
#include "engine/engine.h"

// What is to be different in the new run. Lives in the command's arena.
struct changes {
    struct json inputs; // object
    struct fork_output *outputs;
    size_t count, capacity;
};

// --input, --set NAME=VALUE and --set STEP.output=VALUE. `base` is the fork without changes.
int changes_read(struct cli *cli, const struct fork *base, struct changes *out);
// --edit-file FILE, or --edit: a file with the inputs and the outputs of steps that have ended, in $VISUAL or $EDITOR. What
// comes back different becomes a change. *unchanged: the editor was left with nothing different.
int changes_edit(struct cli *cli, const struct fork *base, struct changes *out, bool *unchanged);

#endif
