// A run of this process as a workflow of a Temporal server: `cairn run --target temporal`.
//
//   hosting_open -> engine_open with hosting_join -> hosting_begin ... hosting_shut -> engine_close -> hosting_free
#ifndef CAIRN_CLI_HOSTING_H
#define CAIRN_CLI_HOSTING_H

#include "cli/session.h"
#include "engine/engine.h"

struct temporal_host;
struct temporal_settings;

// --target as it was said, or empty. EXIT_USAGE, reported: there is no such adapter.
int hosting_target(struct cli *cli, struct str *out);
// --temporal, --namespace and --task-queue over what was `said` in a file (may be NULL).
void hosting_flags(struct cli *cli, const struct temporal_settings *said, struct temporal_settings *out);
// The settings of [serve.temporal], with --temporal, --namespace and --task-queue over them. EXIT_USAGE, reported: no server is named.
int hosting_settings(struct cli *cli, struct temporal_settings *out);

// A client of the server, when --target says temporal; else *out is NULL. EXIT_OK or what was reported.
int hosting_open(struct session *session, struct temporal_host **out);
void hosting_join(struct temporal_host *host, struct engine_options *options); // its attempts go there
// The run of this process, which is about to start or was taken up: from now on its tasks are polled for.
int hosting_begin(struct cli *cli, struct temporal_host *host, struct engine *engine, struct str run);
// Its workflow ends when it does: that is waited for, for a while.
void hosting_end(struct cli *cli, struct temporal_host *host);

#endif
