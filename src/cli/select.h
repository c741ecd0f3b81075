// The runs that a command's words and flags mean.
#ifndef CAIRN_CLI_SELECT_H
#define CAIRN_CLI_SELECT_H

#include "cli/session.h"
#include "reading/reading.h"

// Reads `text` and the flags --status, --plan, --since and --tag, as far as the command takes them. EXIT_OK, or EXIT_USAGE
// with the place of the fault reported. select_close in both cases.
int selection_open(struct select *select, struct session *session, struct str text);
// select_page; EXIT_OK, or what was reported.
int selection_page(struct session *session, struct select *select, size_t want, struct arena *arena,
                   struct run_heads *out);
// The positional words of the command as one text.
struct str query_words(struct cli *cli);

#endif
