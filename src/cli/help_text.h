// The texts of `cairn help`, as help/*.txt have them: sections of parts.
//
//   = NAME       begins a section: a command, a topic, or "problem CODE"
//   # TEXT       a heading
//   - NAME: TEXT a row; lines behind it that begin with a blank belong to it
//   $ COMMAND    an example
//   anything else is a paragraph, up to an empty line
#ifndef CAIRN_CLI_HELP_TEXT_H
#define CAIRN_CLI_HELP_TEXT_H

#include "base/arena.h"
#include "base/str.h"

struct help_cursor {
    size_t file;
    struct str rest;
};
// The next section of all files. A cursor starts as {0}; false at the end.
bool help_each(struct help_cursor *cursor, struct str *name, struct str *section);
// The section of that name; empty when there is none.
struct str help_section(struct str name);

enum help_kind { HELP_HEADING = 1, HELP_ROW, HELP_EXAMPLE, HELP_PARAGRAPH };
struct help_part {
    enum help_kind kind;
    const char *name; // of a row
    const char *text; // on one line
};
// Takes the next part from the section. False: there is none, or no memory.
bool help_next(struct str *section, struct arena *arena, struct help_part *out);

#endif
