// `cairn top`: runs on one screen, one run on the next. What it shows of a step is what the commands why, logs, events and
// graph print, and what a key does is the command of that name: both are asked of this very program, so the screen cannot
// say or do anything that the command line does not.
// owner: main thread.
#ifndef CAIRN_CLI_TOP_H
#define CAIRN_CLI_TOP_H

#include "cli/mirror.h"
#include "term/progress.h"
#include "term/screen.h"

enum { TOP_INPUT_MAX = 120, TOP_ARGS_MAX = 16 };

// A command that was launched and has not said its last word.
struct top_command {
    int fd;  // its output; -1 = none
    int pid; // 0 = none
    bool lives_on;
    struct buf text;
};

struct top;

struct top_ask { // a line of input at the bottom
    bool open;
    char label[160];
    char text[TOP_INPUT_MAX];
    size_t len;
    void (*answer)(struct top *top, const char *text); // enter
};

struct top_runs {
    struct arena arena; // of the heads, made anew at each look
    struct run_head *heads;
    size_t count, selected, first;
    char selected_run[129];
    char filter[TOP_INPUT_MAX];
    uint32_t status_mask;
    int64_t looked_ms;
};

enum top_pane { PANE_WHY = 0, PANE_LOGS, PANE_EVENTS, PANE_GRAPH, PANE_COUNT };

struct top_run {
    bool open;
    char id[129];
    struct mirror mirror;
    struct tree *tree;
    uint32_t selected, first;
    enum top_pane pane;
    struct buf text; // of the pane
    size_t pane_first;
    int64_t pane_ms; // when it was made; 0 = make it now
};

struct top {
    struct cli *cli;
    struct session *session;
    struct screen screen;
    struct top_runs runs;
    struct top_run run;
    struct top_ask ask;
    struct top_command command;
    char message[512]; // what the last key led to
    bool help, quit;
    char aim[300]; // RUN or RUN/STEP that an ask is about
};

// cmd_top.c
void top_ask(struct top *top, void (*answer)(struct top *, const char *), const char *format, ...) PRINTF_LIKE(3, 4);
void top_say(struct top *top, const char *format, ...) PRINTF_LIKE(2, 3);

// top_runs.c: the list
void top_runs_look(struct top *top, int64_t now_ms);
void top_runs_draw(struct top *top, struct buf *line, int64_t now_ms);
void top_runs_key(struct top *top, int key);

// top_run.c: one run
bool top_run_open(struct top *top, struct str run);
void top_run_close(struct top *top);
void top_run_look(struct top *top, int64_t now_ms);
void top_run_draw(struct top *top, struct buf *line, int64_t now_ms);
void top_run_key(struct top *top, int key);

// top_act.c: asking this program
// `cairn WORDS...` with the store of this session; what it prints is appended to `out`. Gives up after two seconds.
void top_capture(struct top *top, const char *const *words, struct buf *out);
void top_listen(struct top *top);
void top_forget(struct top *top);
// Keys that act on a run (and a step of it, or ""): true when `key` is one of them.
bool top_act(struct top *top, int key, const struct run_head *head, struct str step, enum look look);

#endif
