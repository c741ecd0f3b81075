// Text for terminals. What users, documents and programs wrote is never sent to a terminal as it is: control characters
// (C0, DEL, C1), bidirectional overrides and bytes that are not UTF-8 become visible escapes like \n, \x1b, \u202e (H6).
#ifndef CAIRN_TERM_TEXT_H
#define CAIRN_TERM_TEXT_H

#include "base/buf.h"

#define TEXT_MAX ((size_t)1 << 40) // ceiling of a buf that may hold anything

// One line: newlines and tabs are escaped too.
void text_safe(struct buf *out, struct str text);
// The same for several lines: '\n' and '\t' stay.
void text_safe_lines(struct buf *out, struct str text);
// JSON (or YAML in its JSON style) for a terminal: the same characters become \\uXXXX, which reads back as the same value.
void text_safe_json(struct buf *out, struct str text);
// Columns that well-formed UTF-8 takes on a terminal; colour sequences (ESC [ ... m) take none.
size_t text_width(struct str text);
// `text`, which must be safe already, cut to `columns` (the last one is then "…" or "~").
void text_cut(struct buf *out, struct str text, size_t columns, bool utf8);
void text_pad(struct buf *out, size_t width, size_t columns);
void text_trim(struct buf *out); // blanks at the end
// Wraps paragraphs at `columns`, every line behind `indent` blanks.
void text_wrap(struct buf *out, struct str text, size_t indent, size_t columns);

// The name nearest to `text` among `count` names, or NULL when none is near enough to be meant.
const char *nearest_name(struct str text, const char *const *names, size_t count);

#endif
