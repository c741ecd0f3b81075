// What a fork keeps and what it runs again, before it is made.
#ifndef CAIRN_TERM_FORK_PREVIEW_H
#define CAIRN_TERM_FORK_PREVIEW_H

#include "engine/engine.h"
#include "term/term.h"

// What is kept and what runs, and why, for people; `how` is "fork", "rerun" or "retry".
void preview_write(struct console *console, struct buf *out, const struct term *term, const struct fork *fork,
                   const char *how);

#endif
