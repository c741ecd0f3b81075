// The inside of the live tree, for those who draw it: tree.c keeps the model, tree_draw.c shows it in place, top_run.c on a
// screen of its own.
#ifndef CAIRN_TERM_TREE_H
#define CAIRN_TERM_TREE_H

#include "term/progress.h"

#include "base/map.h"

enum { TEXT_SIZE = 160, ID_WIDTH_MAX = 32, LINES_MAX = 512 };

struct row_text {
    char first_fault[TEXT_SIZE], note[TEXT_SIZE], output[TEXT_SIZE];
};

struct row {
    struct str id;
    enum look look;
    enum step_kind kind;
    bool limited; // QUEUED: for a place under the limit of steps in text->note
    bool stopped; // its last failure was that it was cancelled
    uint32_t attempt, attempt_max;
    uint32_t iteration, iteration_max; // playbooks: of its visits, without a limit
    struct loop_counts loop;           // playbooks; total 0 = none
    int64_t started_ms, ended_ms, due_ms;
    int64_t rests_ms; // until when its attempt rests (kernel_rests); 0: it does not
    int64_t began_ms; // the work of its first attempt, which may have waited for a place; 0 = not known
    const uint32_t *deps;
    uint32_t dep_count;
    struct row_text *text; // NULL until there is something to say
};

struct flow {
    struct flow *next;
    struct flow *parent;
    uint32_t parent_row;
    struct str run, name, version;
    struct row *rows;
    uint32_t row_count;
    struct map index;
    enum run_status status;
    char substatus[24];
    int64_t started_ms, ended_ms;
    size_t id_width;
};

struct tree_line {
    struct flow *flow;
    uint32_t row; // ROW_HEAD: the run itself
    uint32_t depth;
    uint8_t priority;
    bool shown;
};
#define ROW_HEAD UINT32_MAX

struct tree {
    struct console *console;
    struct term *term; // where it is shown
    const char *keys;  // that mean something now, for the last line; NULL = none
    struct arena arena;
    struct flow *flows, **last;
    struct map index;
    struct flow **by_index;
    size_t flow_count, flow_capacity;
    struct tree_line *lines;
    size_t line_count, line_capacity;
    size_t drawn[LINES_MAX]; // widths of the lines on the screen
    size_t drawn_count;
    int64_t drawn_ms;
    struct buf picture, work;
};

// Without drawing it a last time.
void tree_discard(struct tree *tree);
// The model: flow of a run, NULL when nothing was heard of it.
struct flow *tree_flow(const struct tree *tree, struct str run);
// One step as a line in tree->work, not cut: state, id, time, what there is to say. `depth` indents.
void tree_write_row(struct tree *tree, const struct flow *flow, uint32_t row, uint32_t depth, int64_t now_ms);

#endif
