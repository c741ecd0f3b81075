// Text that lives as long as an arena. ptr is NULL when there was no memory, and only then; a NUL is behind it.
#ifndef CAIRN_BASE_TEXT_H
#define CAIRN_BASE_TEXT_H

#include "base/arena.h"
#include "base/buf.h"

// What the buf holds, copied; the buf is released. A buf that failed gives no text.
struct str buf_keep(struct buf *buf, struct arena *arena);
struct str arena_format(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3) MUST_CHECK;

// Appends `text` without the sequences that colour a terminal, move on it or name its window (ESC [ ..., ESC ] ..., ESC and one more).
// Half of one at the end goes too.
void buf_unstyled(struct buf *out, struct str text);

#endif
