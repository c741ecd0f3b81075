// --tools and --credentials: the tools of playbooks in this process.
#ifndef CAIRN_CLI_TASKING_H
#define CAIRN_CLI_TASKING_H

#include "cli/cli.h"
#include "engine/engine.h"
#include "task/task.h"

// The credentials of --credentials FILE, a JSON or YAML object by name; type 0: none. EXIT_OK, or what was reported.
int credentials_read(struct cli *cli, struct json *out);
// Opens the tools with the confinement and secrets of `steps`. Nothing is started before a playbook needs it. EXIT_OK, or what was
// reported. Ends with tasks_close, before whoever hears from them.
int tasking_open(struct cli *cli, const struct engine_options *steps, const char *mark, uint32_t process_max,
                 struct tasks **out);
// Their outcomes and lines go to the engine, which reads stored results for them.
void tasking_attach(struct tasks *tasks, struct engine *engine);

#endif
