// What a running engine shows its user while it works.
//
//   tree   redrawn in place on stderr; when a run is taller than the screen only the interesting rows are shown
//   plain  one line an event on stderr, grep-able, never a cursor move
//   json   one CloudEvents object an event on stdout
//   none   nothing
// owner: engine thread. Everything kept is copied.
#ifndef CAIRN_TERM_PROGRESS_H
#define CAIRN_TERM_PROGRESS_H

#include "term/term.h"
#include "engine/engine.h"

enum progress_mode { PROGRESS_TREE = 1, PROGRESS_PLAIN, PROGRESS_JSON, PROGRESS_NONE };

struct tree;

struct progress {
    struct console *console;
    enum progress_mode mode;
    bool approves;     // the command answers approvals itself: no line says how
    struct tree *tree; // PROGRESS_TREE
    struct buf line;
    struct arena scratch;
};

// --progress, or auto: tree on a terminal that can move its cursor, unless CI or CAIRN_NO_ANIMATION is set, else plain.
enum progress_mode progress_mode(const struct console *console, struct str how);
bool progress_open(struct progress *progress, struct console *console, enum progress_mode mode);
void progress_close(struct progress *progress);
void progress_event(struct progress *progress, const struct engine_event *event);
// A run that was taken over: shows what is known of it before anything happens.
void progress_attach(struct progress *progress, const struct run *run);
void progress_output(struct progress *progress, struct str run, struct str step, bool is_stderr, struct str line);
// Redraws when something changed or time passed. Cheap otherwise.
void progress_tick(struct progress *progress, int64_t now_ms);
// Which steps wait for a slot, and from when the others are executed: the engine knows.
void progress_places(struct progress *progress, const struct engine *engine);
// A sentence between the lines: "pausing: 2 steps are still running".
void progress_say(struct progress *progress, const char *format, ...) PRINTF_LIKE(2, 3);

// tree.c
struct tree *tree_open(struct console *console);
void tree_close(struct tree *tree);
void tree_event(struct tree *tree, const struct engine_event *event);
void tree_attach(struct tree *tree, const struct run *run);
void tree_place(void *tree, const struct tool_place *place);
void tree_output(struct tree *tree, struct str run, struct str step, struct str line);
void tree_draw(struct tree *tree, int64_t now_ms);
void tree_erase(struct tree *tree); // so that a sentence can be printed; the next draw puts it back

#endif
