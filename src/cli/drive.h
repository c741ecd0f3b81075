// Driving runs in the foreground: an engine, its progress, and what ^C means.
//
// First ^C (or SIGTERM): stop scheduling, let steps finish, leave the run PAUSED. Second: cancel. Third: kill.
// Signals only count; the engine's loop looks at the count (drive.c: tick), so nothing happens inside a handler.
// owner: main thread, which is the engine thread.
#ifndef CAIRN_CLI_DRIVE_H
#define CAIRN_CLI_DRIVE_H

#include "term/progress.h"
#include "cli/session.h"

struct driven { // a run that this process has seen
    struct str run;
    bool child;
    bool ended;
    int asked;    // level of the last interrupt that was passed on to it
    bool resumed; // was sent RESUME because its parent was
    enum run_status status;
    struct str cause;
};

struct drive {
    struct cli *cli;
    struct session *session;
    struct engine *engine;
    struct temporal_host *host; // its run is a workflow there; NULL: it is not
    struct task_options task;
    struct progress progress;
    struct driven *runs;
    size_t run_count, run_capacity;
    struct map index;
    volatile bool stop;
    bool changed;      // something happened since tick looked
    int64_t looked_ms; // monotonic
    bool exit_on_wait; // stop when nothing can go on without a person
    bool patient;      // with exit_on_wait: an approval that answers itself within a minute is waited for
    bool approve_all;
    bool adopted;         // some run was taken over: its children come without an event
    bool resume_children; // what one ^C paused together, one resume lets go together
    int interrupt;        // signal number of the first interrupt that was acted on, 0 = none
    int interrupts_seen;
    int level;          // what was asked for: 1 pause, 2 cancel, 3 kill
    bool pausing;       // stop when everything is paused and nothing is in flight
    int64_t kill_at_ms; // monotonic; 0 = not killing
    // the answer to one signal that the caller waits for
    struct str wanted; // signal id, empty = none
    bool stop_when_decided;
    struct str awaited; // run whose start the caller waits for: stops when it is stored. Empty = none
    bool decided;
    struct engine_decision decision; // strings in the command's arena
    struct error refused;            // code OK = none: why a start could not be stored
};

// Opens the engine over the session's store, which must be open for writing. EXIT_OK or what was reported.
int drive_open(struct drive *drive, struct session *session, enum progress_mode mode);
// The run that this process is about to drive, started or taken up.
int drive_begin(struct drive *drive, struct str run);
void drive_close(struct drive *drive);
void drive_shut(struct drive *drive); // the engine and its tools alone
// Takes a run over. OK, or the engine's code with `err` set and nothing reported.
enum code drive_adopt(struct drive *drive, struct str run, struct error *err) MUST_CHECK;
// Until every run has ended, waits (exit_on_wait) or was interrupted. EXIT_OK, or an error that was reported.
int drive_loop(struct drive *drive);
const struct driven *drive_find(const struct drive *drive, struct str run); // NULL: never seen
// The exit code that the end (or not) of `run` means.
int drive_exit_code(const struct drive *drive, struct str run);
// How a run ended (or stands) after drive_close, for people and for programs. `code` unless that is not known.
int drive_finish(struct session *session, struct str run, enum progress_mode mode, int code);
// A signal with a fresh id, from the user of this process.
void signal_prepare(struct cli *cli, enum signal_type type, struct str step, struct str reason, struct signal *out);
struct str user_name(struct cli *cli);
int exit_of_status(enum run_status status);

#endif
