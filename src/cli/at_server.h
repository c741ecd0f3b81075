// New runs at a server: what is sent, and following them from here as if they ran here.
#ifndef CAIRN_CLI_AT_SERVER_H
#define CAIRN_CLI_AT_SERVER_H

#include "cli/document.h"
#include "cli/session.h"

// `cairn run` of a document whose program is there. The exit code.
int run_at_server(struct cli *cli, const struct document *document);
// POST of what makes a new run of `source`: `how` is "forks", "rerun" or "retry". *run is the new one's id.
int fork_at_server(struct session *session, struct str source, const char *how, struct json *body, struct str *run);
// Document and parts as members of a request.
int put_document(struct cli *cli, const struct document *document, struct json *body);
// Follows a run that was made just now, or with --detach only names it. The exit code.
int follow_at_server(struct session *session, struct str run);

#endif
