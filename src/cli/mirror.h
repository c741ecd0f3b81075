// Runs that other processes drive, mirrored through the store. What is read becomes the events that an engine's observer
// sees, with the state folded by the same kernel, so whatever shows a run here also shows it from afar.
// Child runs are mirrored by themselves as soon as their step has started them.
// owner: main thread.
#ifndef CAIRN_CLI_MIRROR_H
#define CAIRN_CLI_MIRROR_H

#include "cli/session.h"
#include "engine/engine.h"

struct mirrored {
    struct str run;
    struct run_head head; // as of the last look; its strings live in the command's arena
    struct program *program;
    struct run *state;
    struct replay_cursor cursor;
};

struct mirror {
    struct session *session;
    void *context;
    void (*event)(void *context, const struct engine_event *event); // may be NULL
    struct mirrored *runs;
    size_t run_count, run_capacity;
    struct map index;
};

void mirror_open(struct mirror *mirror, struct session *session);
void mirror_close(struct mirror *mirror);
// Begins to follow a run: everything that has happened so far is reported by the next mirror_poll. EXIT_OK or what was reported.
int mirror_add(struct mirror *mirror, const struct run_head *head);
// Reports what is new. *changed: something was. EXIT_OK or what was reported.
int mirror_poll(struct mirror *mirror, bool *changed);
// The last line that each running process step has written so far, from its log.
typedef void (*mirror_line)(void *context, struct str run, struct str step, bool is_stderr, struct str line);
void mirror_lines(struct mirror *mirror, mirror_line told, void *context);
const struct mirrored *mirror_find(const struct mirror *mirror, struct str run); // NULL: not mirrored

#endif
