// Private to temporal/: the host's table of runs.
//
//   host.c    open, close, the side of the engine                   table.c  runs and their attempts, results on their way
//   post.c    polls for workflow tasks                             task.c   a workflow task: history read, results delivered
//   answer.c  the commands that a task is answered with            keeper.c workflows started, woken and looked after
//   timer.c   what runs wait for, as timers of Temporal
//   pack.c    what goes with an attempt to its worker              outcome.c what came out of an attempt, and with it
#ifndef CAIRN_TEMPORAL_INSIDE_H
#define CAIRN_TEMPORAL_INSIDE_H

#include "base/uuid.h"
#include "temporal/host.h"

#include <pthread.h>
#include <stdatomic.h>

enum { HOST_TABLE = 4096, HOST_READERS_MAX = 32, HOST_PACKERS = 2, HOST_SHARDLESS_POLLS = 4, HOST_CACHE_POLLS = 4 };
enum { HOST_CHECK_MS = 20000, HOST_HISTORY_ROOM = 256 << 20 };

struct wanted { // an attempt that the engine wants outside
    struct wanted *next;
    uint64_t ticket;
    bool is_packed;    // it can be sent: large values and files of the run are at the server (pack.c)
    bool is_packing;   // a thread sees to that
    bool is_unread;    // history has its end, and nobody has read that yet: another task is wanted
    bool is_sent;      // a task was answered with it: history may have it
    bool is_cancelled; // the engine wants it stopped
    bool is_stopping;  // and a task was answered with that
    bool is_function;
    int64_t timeout_ms;
    int64_t pack_at; // not before: it has failed
    char *packed;    // owns `input`; NULL: that is in `text`
    size_t log_max;
    struct str artifacts_dir, log; // where its files and its log belong; in `text`
    struct str activity, type, queue, input, summary; // in `text`
    struct str step;                                  // part of `activity`
    uint32_t logical, engine;
    char text[];
};

struct pending { // an activity that history has and that has not ended
    int64_t scheduled;
    bool is_cancelled; // that was asked for
    struct str activity;
};

struct awaited { // a moment that the run waits for, long enough for a person to want to see it
    struct str id, summary; // in `text`; id: KIND:STEP:LOGICAL@DUE
    int64_t due_ms;
    bool is_set; // history has it
    char text[];
};

struct workflow_task { // a workflow task in hand: permission to send commands. When it is answered it stays as what is known of the history
    struct str token, run_id, original;
    int64_t events, bytes; // of its history
    bool suggests; // the server: continue as new
    struct pending *pending;
    size_t pending_count;
    struct str *timers; // that history has and that have not ended
    size_t timer_count;
    struct arena arena; // owns all of it, and the task
};

struct hosted { // a run
    struct hosted *next;       // hash chain
    struct hosted *next_dirty; // of those that flush looks at
    struct hosted *next_moved; // of those that something has happened to in this turn
    bool is_moved;
    uint32_t shard; // 0: it has none
    bool is_placed; // that is known
    bool has_left;  // another engine drives it
    bool is_driven; // the engine has it: what was in flight is wanted, nothing else is
    struct awaited **awaited; // what it waits for by the clock
    size_t awaited_count;
    struct str tenant, run, id; // id: of the workflow; in `text`
    bool is_dirty, is_started, is_starting, is_waking, is_doubtful;
    bool has_ended; // the engine says so
    bool is_closed; // Temporal says so
    enum run_status outcome;
    struct buf plan, reason; // what its workflow shows of it; why it failed
    struct wanted *wanted;
    struct workflow_task *task;
    struct workflow_task *cached; // the last one, answered: the next brings only what has come since
    size_t unsettled;   // results that the engine has and has not stored yet
    size_t calls;       // on their way that name this run
    char seen_run[64];  // signals up to seen_event of this workflow run were posted
    int64_t seen_event;
    int64_t checked_ms;
    char text[];
};

struct post { // a poll, or none
    struct temporal_host *host;
    uint32_t shard;
    bool of_cache;
    bool is_open, is_ending;
    uint64_t call;
    int64_t not_before; // it was refused
};

struct temporal_host {
    struct tools base;
    struct temporal_host_options options;
    struct temporal *client;
    struct arena arena;
    struct str base_queue, queues[SHARD_COUNT + 1]; // by shard; [0]: of runs without one
    struct str value_queue; // of values: nobody polls it
    int64_t sweep_at;
    uint64_t shards;                                // whose runs this host drives
    bool serves_shardless, keeps_shardless;         // keeps: it has taken one up that has none
    struct post posts[HOST_SHARDLESS_POLLS + SHARD_COUNT + HOST_CACHE_POLLS];
    struct str cache_queue; // of this process alone: tasks of runs whose history it knows
    size_t cached, cache_hand; // how many; where the next one to forget is looked for
    struct letter *letters, **last_letter; // answers to polls
    size_t letter_count, letter_bytes;
    pthread_cond_t mailed;  // there is one
    pthread_cond_t settled; // a workflow was closed
    int64_t heartbeat_ms;
    uint32_t history_max;
    pthread_mutex_t mutex, store_mutex;
    pthread_cond_t changed;
    struct store *store; // a reader; with store_mutex
    struct engine *engine;
    struct hosted *table[HOST_TABLE];
    struct hosted *dirty, *moved;
    size_t unpacked; // attempts that wait for pack.c
    pthread_cond_t pack; // there is one
    pthread_t threads[HOST_READERS_MAX + HOST_PACKERS + 1];
    size_t thread_count;
    atomic_bool is_shut;
    bool is_polling;
};

// host.c
void hosted_place(struct temporal_host *host, struct hosted *run); // of which shard it is. Engine thread, with the lock
void hosted_settle(struct temporal_host *host, struct hosted *run); // whatever can be done for it now. With the lock

// table.c. With the lock.
struct str put_text(char **at, struct str text); // copies, with a NUL behind it
void wanted_free(struct wanted *wanted);
void hosted_free(struct hosted *run);
struct hosted *hosted_known(struct temporal_host *host, struct str tenant, struct str run); // NULL: it is not in the table
struct hosted *hosted_find(struct temporal_host *host, struct str id);
struct hosted *hosted_get(struct temporal_host *host, struct str tenant, struct str run); // made when it is not there; NULL: no memory
void hosted_drop(struct temporal_host *host, struct hosted *run); // when nothing is left to do for it
void hosted_touch(struct temporal_host *host, struct hosted *run); // looked at by the next flush
void wanted_end(struct temporal_host *host, struct hosted *run, struct wanted *wanted, struct tool_result *result);
struct wanted *wanted_find(const struct hosted *run, uint64_t ticket); // NULL: the attempt is over
void hosted_flush(struct temporal_host *host); // settles those that were touched
void hosted_task_free(struct workflow_task *task);
void hosted_task_keep(struct temporal_host *host, struct hosted *run); // the task in hand was answered: what it says is known from now on
void hosted_forget(struct temporal_host *host, struct hosted *run);    // what is known of the run's history
bool hosted_needs_task(const struct hosted *run);

// timer.c
void hosted_timers(struct temporal_host *host, struct hosted *run); // as the engine has them. Engine thread, with the lock
void hosted_timers_free(struct hosted *run);

// post.c. With the lock, but for the thread.
enum code posts_init(struct temporal_host *host, struct error *err) MUST_CHECK;
void posts_look(struct temporal_host *host); // polls that are missing are sent, those of others are ended
void posts_free(struct temporal_host *host);
bool host_serves(const struct temporal_host *host, uint32_t shard);
void *host_read(void *host); // a thread

// task.c
void host_task(struct temporal_host *host, const struct temporal_workflow_task *task, struct arena *arena);
void task_hand_back(struct temporal_host *host, struct hosted *run); // the task in hand, unanswered: it is for another host

// pack.c
void *host_pack(void *host); // a thread

// outcome.c
struct ended { // an attempt that history has the end of, while the lock is open
    size_t index; // of its activity
    bool is_function;
    int64_t timeout_ms;
    struct str artifacts_dir, log;
    size_t log_max;
};
struct tool_result fault_of(const char *code, struct str message, const char *category, bool retryable);
// Its files and its log are where they belong, and *out is what came out, in `arena`. Without the lock. An error: nobody can say now.
enum code outcome_read(struct temporal_host *host, struct str workflow, const struct ended *ended, const struct temporal_event *event,
                       struct arena *arena, struct tool_result *out, struct error *err) MUST_CHECK;

// answer.c
void hosted_task_answer(struct temporal_host *host, struct hosted *run);

// keeper.c
void *host_keep(void *host); // a thread
void host_sweep_values(struct temporal_host *host); // those of runs that have ended are deleted. Without the lock
void workflow_start(struct temporal_host *host, struct hosted *run);
void workflow_wake(struct temporal_host *host, struct hosted *run);
// A signal of that type for a run, by way of its inbox; the id follows from `place`. Without the lock.
enum code host_signal(struct temporal_host *host, struct str tenant, struct str run, enum signal_type type,
                      struct str place, struct str reason, struct str bytes, struct error *err) MUST_CHECK;
// How the run stands in the store; E_NOT_FOUND. In `arena`. Without the lock.
enum code host_look_up(struct temporal_host *host, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                       struct error *err) MUST_CHECK;
const struct temporal_fields *host_memo(const struct hosted *run, struct arena *arena);
const struct temporal_fields *host_attributes(const struct temporal_host *host, const struct hosted *run, struct arena *arena); // or NULL

// A call about a run that nobody waits for. The run stays in the table until it is answered.
struct about {
    struct temporal_host *host;
    int kind;
    size_t size;
    char id[];
};
// With the lock. False: it could not be sent. `done` gets the struct about: about_back first, about_end last.
bool about_send(struct temporal_host *host, struct hosted *run, int kind, const struct temporal_call *call, grpc_done done);
struct hosted *about_back(const struct about *about); // takes the lock
void about_end(struct about *about, const struct hosted *run); // opens it; run: whether the keeper is to look at it; NULL: it may be gone

#endif
