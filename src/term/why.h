// The answer of `cairn why` as people read it.
#ifndef CAIRN_TERM_WHY_H
#define CAIRN_TERM_WHY_H

#include "term/term.h"

// `answer` is what explain_step or explain_run made. `last_seq` is the end of the log when the answer is about a past moment,
// else 0. Lines are wrapped at the width of a terminal, and not at all when there is none.
void why_write(struct console *console, struct buf *out, const struct term *term, const struct json *answer,
               uint64_t last_seq);

#endif
