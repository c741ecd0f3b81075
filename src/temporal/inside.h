// Private to temporal/: the host's table of runs.
//
//   host.c    open, close, the table, the side of the engine       task.c   a workflow task: history read, results delivered
//   answer.c  the commands that a task is answered with            keeper.c workflows started, woken and looked after
#ifndef CAIRN_TEMPORAL_INSIDE_H
#define CAIRN_TEMPORAL_INSIDE_H

#include "base/uuid.h"
#include "temporal/host.h"

#include <pthread.h>
#include <stdatomic.h>

enum { HOST_TABLE = 4096, HOST_POLLERS_MAX = 32, HOST_CHECK_MS = 20000 };

struct wanted { // an attempt that the engine wants outside
    struct wanted *next;
    uint64_t ticket;
    bool is_sent;      // a task was answered with it: history may have it
    bool is_cancelled; // the engine wants it stopped
    bool is_stopping;  // and a task was answered with that
    bool is_function;
    int64_t timeout_ms;
    struct str activity, type, queue, input, summary; // in `text`; activity: perhaps of an engine attempt before it (task.c)
    struct str step;                                  // part of `activity`
    uint32_t logical, engine;
    char text[];
};

struct pending { // an activity that history has and that has not ended
    int64_t scheduled;
    bool is_cancelled; // that was asked for
    struct str activity;
};

struct task { // a workflow task in hand: permission to send commands
    struct str token, run_id;
    int64_t events;
    bool suggests; // the server: continue as new
    struct pending *pending;
    size_t pending_count;
    struct arena arena; // owns all of it, and the task
};

struct hosted { // a run
    struct hosted *next;       // hash chain
    struct hosted *next_dirty; // of those that flush looks at
    struct str tenant, run, id; // id: of the workflow; in `text`
    bool is_dirty, is_started, is_starting, is_waking, is_doubtful;
    bool has_ended; // the engine says so
    bool is_closed; // Temporal says so
    enum run_status outcome;
    struct buf plan, reason; // what its workflow shows of it; why it failed
    struct wanted *wanted;
    struct task *task;
    size_t unsettled;   // results that the engine has and has not stored yet
    size_t calls;       // on their way that name this run
    char seen_run[64];  // signals up to seen_event of this workflow run were posted
    int64_t seen_event;
    int64_t checked_ms;
    int64_t since_ms; // this process knows of it
    char text[];
};

struct temporal_host {
    struct tools base;
    struct temporal_host_options options;
    struct temporal *client;
    struct arena arena;
    struct str base_queue, runs_queue;
    int64_t heartbeat_ms;
    uint32_t history_max;
    pthread_mutex_t mutex, store_mutex;
    pthread_cond_t changed;
    struct store *store; // a reader; with store_mutex
    struct engine *engine;
    struct hosted *table[HOST_TABLE];
    struct hosted *dirty;
    pthread_t threads[HOST_POLLERS_MAX + 1];
    size_t thread_count;
    atomic_bool is_shut;
    bool is_polling;
};

// host.c. With the lock, unless it says otherwise.
struct hosted *hosted_find(struct temporal_host *host, struct str id);
struct hosted *hosted_get(struct temporal_host *host, struct str tenant, struct str run); // made when it is not there; NULL: no memory
void hosted_drop(struct temporal_host *host, struct hosted *run); // when nothing is left to do for it
void hosted_touch(struct temporal_host *host, struct hosted *run); // looked at by the next flush
void hosted_settle(struct temporal_host *host, struct hosted *run); // whatever can be done for it now
void wanted_end(struct temporal_host *host, struct hosted *run, struct wanted *wanted, struct tool_result *result);
void hosted_task_free(struct task *task);
bool hosted_needs_task(const struct hosted *run);

// task.c
void *host_poll(void *host); // a thread

// answer.c
void hosted_task_answer(struct temporal_host *host, struct hosted *run);

// keeper.c
void *host_keep(void *host); // a thread
void workflow_start(struct temporal_host *host, struct hosted *run);
void workflow_wake(struct temporal_host *host, struct hosted *run);
// A signal of that type for a run, by way of its inbox; the id follows from `place`. Without the lock.
enum code host_signal(struct temporal_host *host, struct str tenant, struct str run, enum signal_type type,
                      struct str place, struct str reason, struct str bytes, struct error *err) MUST_CHECK;
// How the run stands in the store; E_NOT_FOUND. Without the lock.
enum code host_look_up(struct temporal_host *host, struct str tenant, struct str run, enum run_status *status,
                       struct str *plan, struct arena *arena, struct error *err) MUST_CHECK;
const struct temporal_fields *host_memo(const struct hosted *run, struct arena *arena);

// An asynchronous call about a run.
struct about {
    struct temporal_host *host;
    int kind;
    size_t size;
    char id[];
};

#endif
