// How things look: terminals, colours, states, formats, lists.
#ifndef CAIRN_CLI_OUTPUT_H
#define CAIRN_CLI_OUTPUT_H

#include "cli/args.h"
#include "contract/contract.h"

struct cli;

struct term {
    int fd;
    bool tty;
    bool color;
    bool utf8;            // may show ✓ ● ◌
    size_t columns, rows; // 80 x 24 when not known
};

// Colours: flag > CLICOLOR_FORCE > NO_COLOR > TERM=dumb > is it a terminal. Glyphs: ASCII with --ascii or a locale that is
// not UTF-8.
void term_open(struct term *term, int fd, struct str color_flag, bool ascii_flag);
void term_measure(struct term *term);

enum tone { TONE_NONE = 0, TONE_GOOD, TONE_BAD, TONE_WARN, TONE_LIVE, TONE_DIM, TONE_BOLD };
const char *tone_code(enum tone tone); // the sequence that begins it
void tone_begin(struct buf *out, const struct term *term, enum tone tone);
void tone_end(struct buf *out, const struct term *term, enum tone tone);
void tone_text(struct buf *out, const struct term *term, enum tone tone, const char *text);

// Every state has a glyph and a word; colour only repeats what they say.
enum look {
    LOOK_DONE = 1,
    LOOK_RUNNING,
    LOOK_WAITING,
    LOOK_DELAYED,
    LOOK_SKIPPED,
    LOOK_FAILED,
    LOOK_HELD,
    LOOK_APPROVAL,
    LOOK_PAUSED,
    LOOK_CANCELLED,
    LOOK_NOT_RUN,
};
const char *look_glyph(enum look look, bool utf8);
const char *look_word(enum look look);
enum tone look_tone(enum look look);
// Enough of an id to name a run: UUIDs are known by their first characters.
struct str short_id(struct str run);
enum look look_of_run(enum run_status status);
// What became of a step that the end of its run found in this state: nothing waits or is tried again any more.
// `stopped`: its failure was that it was cancelled.
enum look look_at_end(enum look look, bool stopped, enum run_status status);
int look_width(enum run_status status); // of the words of the steps of a run, with a blank behind
// "✓ COMPLETED", coloured.
void look_run(struct buf *out, const struct term *term, enum run_status status);

// X(name, text)
#define FORMAT_LIST(X)                                                                                                 \
    X(TEXT, "text")                                                                                                    \
    X(TABLE, "table")                                                                                                  \
    X(WIDE, "wide")                                                                                                    \
    X(JSON, "json") X(JSONL, "jsonl") X(YAML, "yaml") X(CSV, "csv") X(TSV, "tsv") X(NAME, "name") X(JUNIT, "junit")
enum format {
    FORMAT_NONE = 0,
#define X(name, text) FORMAT_##name,
    FORMAT_LIST(X)
#undef X
};
// -o, or what `otherwise` says when it is absent.
enum format format_of(const struct cli *cli, enum format otherwise);
// Prints and empties JSON or YAML text: byte for byte, except that a terminal gets no control characters.
void print_data(struct cli *cli, struct buf *text);
// One value in json, yaml, or on one line.
void print_json(struct cli *cli, enum format format, const struct json *value);

// ---- lists: rows are JSON objects, so every format shows the same facts
enum cell { CELL_TEXT = 1, CELL_RUN, CELL_STATUS, CELL_TIME, CELL_MS, CELL_NUMBER };

struct column {
    const char *key; // dotted path in the row
    const char *title;
    enum cell cell;
    bool wide;        // only with -o wide
    size_t width_max; // of a table; 0 = free
};

struct list {
    struct cli *cli;
    const struct column *columns;
    size_t column_count;
    const char *name_key; // what -o name prints
    enum format format;
    const char *fields[32]; // --fields: keys of columns
    size_t field_count;
    size_t row_count;  // printed so far
    size_t widths[32]; // of a table: the widest so far, so that pages line up
    bool headed;       // the header of a table is printed once, also above no rows
    bool narrow;       // a table for which the screen has little room: runs by their first characters
    struct buf text;
};
// False: usage error, already reported.
bool list_open(struct list *list, struct cli *cli, const struct column *columns, size_t count, const char *name_key);
// One page: a JSON array of objects.
void list_page(struct list *list, const struct json *rows);
void list_close(struct list *list);

void yaml_write(struct buf *out, const struct json *value);
// A moment given as an age (2h, 7d) or a time; 0 when the flag is absent. False: usage error, already reported.
bool time_flag(struct cli *cli, enum flag flag, int64_t *ms);
// "3m ago", "in 3m", "2026-02-11 17:00:00" or seconds since 1970, as --time says.
void time_text(struct buf *out, const struct cli *cli, int64_t ms);

#endif
