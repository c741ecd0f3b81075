// Calls of commands that are about a server itself: its tokens, queues, limits, workers, sinks, alerts, definitions.
#ifndef CAIRN_CLI_AT_SERVICE_H
#define CAIRN_CLI_AT_SERVICE_H

#include "cli/session.h"

// A session with a server; with a store these commands have nothing to ask. EXIT_OK, or what was reported.
int server_open(struct session *session, struct cli *cli);
// `path` with each "{}" replaced by the next word of the command line. Text NULL: no memory, reported.
struct str server_path(struct cli *cli, const char *path);
// EXIT_OK, or what was reported. `body` and `out` may be NULL.
int server_ask(struct session *session, const char *method, struct str path, const struct json *body, struct json *out);
// The items of all pages.
int server_all(struct session *session, const char *path, struct json *items);

// Completes the last word of the command line when it is the beginning of `key` of one row of the list at `path`. A word that begins
// none stays as it is, for the server to answer; for one of `size` bytes, which is whole, nothing is asked. EXIT_OK, or what was
// reported: it begins several.
int server_whole_id(struct session *session, const char *path, const char *key, size_t size);

#endif
