// The logs of a run's steps (docs/format/logs.md), read while they grow or long after, merged by time.
//
// Which attempts there are comes from the event log; the files only hold what was written. So a log that should be there and
// is not, or has no end, is known for what it is.
#ifndef CAIRN_CLI_LOGS_H
#define CAIRN_CLI_LOGS_H

#include "cli/session.h"

#include "base/heap.h"
#include "base/map.h"
#include "tool/tool.h"

enum log_state { LOGS_LIVE = 1, LOGS_COMPLETE, LOGS_CUT, LOGS_LOST };
const char *log_state_name(enum log_state state); // "live"

// One attempt of one step.
struct log_source {
    struct str run, step;
    const char *label; // "load", "load#2", "load#1.2" (redispatched), "child/load"
    size_t number;     // of its step, for colours
    uint32_t logical, engine;
    enum log_state state;
    char reason[120]; // of LOST and CUT
    uint64_t lines;   // read so far
    // private
    const char *name; // of its file
    const struct run_ids *ids;
    bool final; // nothing will come any more
    bool ended, superseded, seen_end, seen_cut, exists;
    uint64_t offset;
    size_t at;
    struct buf bytes;
    struct tool_log_line line;
    struct heap_node node;
};

struct logged_run;

struct logs {
    struct session *session;
    struct str step;  // empty: all
    uint32_t attempt; // 0: all
    bool children;
    bool has_children; // there are child runs, listened to or not
    struct log_source **sources;
    size_t count, capacity;
    // private
    struct arena arena, scratch; // scratch: of one read
    struct logged_run *runs;
    size_t run_count, run_capacity;
    struct heap heap;
    struct map index; // by run and file
    struct log_source *current;
    int64_t refreshed_us, refresh_cost_us;
};

// EXIT_OK, or what was reported. logs_close in both cases.
int logs_open(struct logs *logs, struct session *session, const struct target *target, bool children);
void logs_close(struct logs *logs);
// Looks for attempts that have begun or ended, and for what was written meanwhile. The head of the run is in *head.
int logs_refresh(struct logs *logs, struct run_head *head);
// The next line by time among what is there; false: nothing more for now. `line` lives until the next call.
bool logs_next(struct logs *logs, struct log_source **source, struct tool_log_line *line);
// The same of one source only.
bool logs_next_of(struct logs *logs, struct log_source *source, struct tool_log_line *line);

#endif
