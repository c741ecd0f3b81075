// The runs that a query means: what the store can look up is asked of it, the rest is asked of each run, and documents and
// logs are read only for runs that nothing else decides.
#ifndef CAIRN_CLI_SELECT_H
#define CAIRN_CLI_SELECT_H

#include "cli/session.h"

#include "view/query.h"

struct kept_program;

struct selection {
    struct session *session;
    struct run_filter filter; // what the store looks up; the cursor moves on with selection_page
    const struct query *query;
    bool nothing; // no run can match
    // private
    bool asks; // the query says more than the filter does
    struct arena arena, scratch;
    struct kept_program *programs;
    size_t program_count;
};

// Reads `text` and the flags --status, --plan, --since and --tag, as far as the command takes them. EXIT_OK, or EXIT_USAGE
// with the place of the fault reported. selection_close in both cases.
int selection_open(struct selection *selection, struct session *session, struct str text);
void selection_close(struct selection *selection);
// Up to `want` runs, newest first, in `arena`; less only at the end, when selection->filter.before becomes 0.
int selection_page(struct selection *selection, size_t want, struct arena *arena, struct run_heads *out);
// Whether one run is meant; the flags do not count.
bool selection_meets(struct selection *selection, const struct run_head *head);
// The positional words of the command as one text.
struct str query_words(struct cli *cli);

#endif
