// A run that goes on somewhere else, shown as if it went on here, and helped along where the command line said how.
// owner: main thread.
#ifndef CAIRN_CLI_WATCH_H
#define CAIRN_CLI_WATCH_H

#include "term/progress.h"
#include "cli/session.h"

struct watching {
    struct session *session;
    enum progress_mode mode;
    bool exit_on_wait;
    bool approves; // answers what --approve and --approve-all say
    const char
        *on_interrupt; // "pause", "cancel", "kill": the run is asked for that first; NULL: ^C only stops watching
    // out
    bool left; // the run goes on unwatched
};

// Until the run ends, waits for a person (exit_on_wait), is paused by the interrupt, or the user has seen enough. The exit code that this
// means, or what was reported.
int watch_run(struct watching *watching, const struct run_head *head);

#endif
