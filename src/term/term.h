// What is drawn on a terminal: colours, states, what a command says and prints, formats, lists. Pictures that need more
// have a header beside this one: progress.h, screen.h, text.h, tree.h, why.h and the reports.
//
// Nothing here knows commands or their flags. A console is what a command hands down: an arena that dies with it and the
// two places where it may write. stdout is data, stderr is talk. Whatever a message is made of, it goes through text_safe
// before it reaches stderr. A closed stdout (EPIPE) is not an error: printing stops and the command ends as if all had been read.
// owner: main thread.
#ifndef CAIRN_TERM_TERM_H
#define CAIRN_TERM_TERM_H

#include "contract/contract.h"
#include "json/make.h"

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
    LOOK_QUEUED, // it waits for a slot or a worker
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

// X(name, number, meaning): stable, shown by `cairn help exit-codes`.
#define EXIT_LIST(X)                                                                                                   \
    X(OK, 0, "done; for `run`: the run COMPLETED")                                                                     \
    X(ERROR, 1, "unexpected error")                                                                                    \
    X(USAGE, 2, "usage error: unknown command or flag, missing or unreadable argument")                                \
    X(INVALID, 3, "the document is invalid (`validate`, `run`)")                                                       \
    X(DENIED, 4, "not allowed (also: signal rejected by policy)")                                                      \
    X(NOT_FOUND, 5, "not found: run, step, file or store")                                                             \
    X(CONFLICT, 6, "conflict: wrong state, run id taken by another document, run owned elsewhere")                     \
    X(UNREACHABLE, 7, "store unreachable or overloaded; trying again may help")                                        \
    X(INTEGRITY, 8, "integrity: broken hash chain, damaged or missing records")                                        \
    X(RUN_FAILED, 10, "the run FAILED")                                                                                \
    X(RUN_CANCELLED, 11, "the run was CANCELLED")                                                                      \
    X(TIMEOUT, 12, "waited long enough; the run is still going")                                                       \
    X(WAITING, 13,                                                                                                     \
      "the run is PAUSED or waits for a person (`run --exit-on-wait`; resume, retry, skip, approve, reject)")          \
    X(DIFFERENCE, 20, "a difference was found")                                                                        \
    X(INTERRUPTED, 130, "interrupted by ^C (SIGINT)")                                                                  \
    X(TERMINATED, 143, "ended by SIGTERM")

enum exit_code {
#define X(name, number, meaning) EXIT_##name = (number),
    EXIT_LIST(X)
#undef X
};

enum time_style { TIME_RELATIVE = 0, TIME_ISO, TIME_UNIX };

struct console {
    struct arena arena;
    struct term out, err;
    bool out_closed;
    bool out_failed;       // what was asked for is not on stdout: no success
    enum exit_code failed; // of the error that was printed last; EXIT_OK: none
    bool quiet;
    size_t verbose;
    enum time_style time;
    int64_t now_ms;   // when the command began
    const char *self; // how this program was called, for commands to paste
    const char *tail; // " --store URL --tenant ID" as far as they are not the defaults
};

// Prints what `text` holds on stdout and empties it.
void console_print(struct console *console, struct buf *text);
// The same on stderr: `text` is safe already.
void console_talk(struct console *console, struct buf *text);
// "error: ..." on stderr; returns `code`.
int console_fail(struct console *console, enum exit_code code, const char *format, ...) PRINTF_LIKE(3, 4);
// From a struct error of a module below; the exit code follows its code.
int console_error(struct console *console, const struct error *err);
int console_nomem(struct console *console);
// "  hint: ..." below an error or a result. Not shown with --quiet. Returns the code of the error.
int console_hint(struct console *console, const char *format, ...) PRINTF_LIKE(2, 3);
// A command to paste: console_command(c, "get %s", run) is "cairn get RUN --store URL"; console_next shows it as "  next: ...".
const char *console_command(struct console *console, const char *format, ...) PRINTF_LIKE(2, 3);
int console_next(struct console *console, const char *format, ...) PRINTF_LIKE(2, 3);
// A line of talk on stderr. Not shown with --quiet.
void console_note(struct console *console, const char *format, ...) PRINTF_LIKE(2, 3);
void console_warn(struct console *console, const char *format, ...) PRINTF_LIKE(2, 3);
// Text in the console's arena; "" when memory ran out.
const char *console_format(struct console *console, const char *format, ...) PRINTF_LIKE(2, 3);

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
// Prints and empties JSON or YAML text: byte for byte, except that a terminal gets no control characters.
void print_data(struct console *console, struct buf *text);
// One value in json, yaml, or on one line.
void print_json(struct console *console, enum format format, const struct json *value);

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
    struct console *console;
    const struct column *columns;
    size_t column_count;
    const char *name_key; // what -o name prints
    enum format format;
    bool picked;            // the user named the fields
    const char *fields[32]; // keys of columns
    size_t field_count;
    size_t row_count;  // printed so far
    size_t widths[32]; // of a table: the widest so far, so that pages line up
    bool headed;       // the header of a table is printed once, also above no rows
    bool narrow;       // a table for which the screen has little room: runs by their first characters
    struct buf text;
};
// `fields`: keys of columns, with commas; empty: those that the format shows. False: one of them is no column, reported.
bool list_begin(struct list *list, struct console *console, const struct column *columns, size_t count,
                const char *name_key, enum format format, struct str fields);
// One page: a JSON array of objects.
void list_page(struct list *list, const struct json *rows);
void list_close(struct list *list);

// "3m ago", "in 3m", "2026-02-11 17:00:00" or seconds since 1970, as the console wants it.
void time_text(struct buf *out, const struct console *console, int64_t ms);

#endif
