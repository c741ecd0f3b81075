// New runs at a server: what is sent, and following them from here as if they ran here.
#ifndef CAIRN_CLI_AT_SERVER_H
#define CAIRN_CLI_AT_SERVER_H

#include "cli/document.h"
#include "cli/session.h"
#include "store/server.h"

// `cairn run` of a document whose program is there. The exit code.
int run_reference_at_server(struct session *session, const struct json *ref); // a run of what the planRef names, and following it
int run_at_server(struct cli *cli, const struct document *document);
// POST of what makes a new run of `source`: `how` is "forks", "rerun" or "retry". `document` is what the body has of one; NULL: none.
// *run is the new one's id.
int fork_at_server(struct session *session, struct str source, const char *how, const struct document *document,
                   struct json *body, struct str *run);
// A request that brings a document (put_document). A service that takes none in requests is given it as a definition, and the same
// request by its reference. `document` NULL: the request has none.
enum code send_document(struct session *session, const struct document *document, struct server_call call,
                        struct json *answer, struct error *err) MUST_CHECK;
// Document and parts as members of a request.
int put_document(struct cli *cli, const struct document *document, struct json *body);
// Follows a run that was made just now, or with --detach only names it. The exit code.
int follow_at_server(struct session *session, struct str run);

#endif
