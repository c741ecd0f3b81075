// Private to the worker.
#ifndef CAIRN_WORKER_INSIDE_H
#define CAIRN_WORKER_INSIDE_H

#include "worker/worker.h"

#include <pthread.h>

enum attempt_state { ATTEMPT_NONE = 0, ATTEMPT_HELD /* by the carrier */, ATTEMPT_RUNNING, ATTEMPT_DONE };

struct attempt {
    enum attempt_state state;
    struct channel *channel;
    struct attempt *next; // of the free ones
    bool plain;           // of Temporal: a function by its own name, whose result is sent as it is
    int64_t beat_ms;      // of Temporal: its last heartbeat
    struct str workflow;  // of Temporal: whose values and files it has
    struct str files;     // of Temporal: those that came with the task, as JSON; empty: none
    struct tools *tools;  // its executor
    uint32_t generation;
    bool stopping, dropped; // asked to stop; the server does not want its result
    bool losing;            // whatever comes out: it is given back without an outcome
    struct str task;        // held: as remote_task_write has it
    bool has_dir;
    struct str token;
    uint64_t epoch;
    int64_t lease_ms;
    int64_t lease_until; // os_boot_ms
    int64_t since_ms;    // os_now().mono_ms
    size_t log_max;
    struct buf log[2]; // lines that the server has not taken yet
    uint64_t log_offset[2], log_size;
    struct str dir; // artifacts
    const struct artifact_decl *artifacts;
    size_t artifact_count;
    struct tool_result result;
    struct arena arena;
};

// Tasks that go together in calls: no call has more than REMOTE_BATCH_MAX of them. Each channel has three threads.
struct channel {
    struct worker *worker;
    struct attempt *attempts, *free;
    uint32_t slots, busy, done;
    uint32_t server; // whose tasks: 0 is options.link.url, others are more_servers
    int64_t wait_ms; // of the last heartbeat
    bool hurry;      // the last heartbeat was answered early: the next one has all tasks, however young. Its thread's
    pthread_cond_t room, results, changed; // a slot is free; an attempt is done; anything else, for the other two
};

struct worker {
    struct worker_options options;
    pthread_mutex_t mutex;
    pthread_t threads[3 * WORKER_SLOTS_MAX / REMOTE_BATCH_MAX];
    size_t thread_count, channel_count;
    struct tools *tools;
    struct tasks *tasks; // NULL: none are executed
    struct attempt *attempts;
    struct channel *channels;
    bool draining, stopping, holding;
    bool away[WORKER_SERVERS_MAX];
    struct error fatal;
    uint64_t count;
    char dir[64];
    struct temporal *temporal; // NULL: a server of Cairn
    struct str temporal_queue;
    struct arena arena; // of that name
};

uint64_t attempt_ticket(const struct worker *worker, const struct attempt *attempt);
// Without the lock; nobody else has them any more.
void attempts_free(struct channel *channel, struct attempt **attempts, size_t count);
// Executes a task in a free slot. Without the lock. What is wrong with it becomes its result. Its lease is counted from asked_ms, when
// the poll was sent (os_boot_ms), and what the poll waited at the server; a task whose lease is over is not begun.
void attempt_start(struct worker *worker, struct attempt *attempt, const struct remote_task *task, int64_t asked_ms);
void attempt_ended(struct worker *worker, struct tool_result *result); // takes it
void attempt_execute(struct worker *worker, struct attempt *attempt, struct tool_request *request);
struct attempt *attempt_with(struct worker *worker, uint64_t ticket); // with the lock; NULL: none such
// carry.c: an attempt that waits for the carrier. Without the lock.
bool attempt_hold(struct attempt *attempt, const struct remote_task *task);
void held_cancel(struct worker *worker, uint64_t ticket);
// The carrier hears that it is over.
void attempt_over(const struct worker *worker, const struct attempt *attempt, enum remote_state state);

// calls.c
struct link_of { // one thread's
    struct worker *worker;
    struct channel *channel; // whose thread it is
    struct fetch_link *link;
    struct arena arena; // of one call
    unsigned tries;
};
struct fetch_link_options server_link(const struct worker *worker, uint32_t server); // how a server is reached
enum code link_open(struct channel *channel, struct link_of *out, struct error *err) MUST_CHECK;
void link_close(struct link_of *link);
// One call. E_IO: say it again after link_pause. The arena is reset before.
enum code link_post(struct link_of *link, const char *path, struct str body, int64_t timeout_ms,
                    struct fetch_answer *answer, struct error *err) MUST_CHECK;
// The same for any method; without the reset.
enum code link_call(struct link_of *link, const struct fetch_call *call, struct fetch_answer *answer,
                    struct error *err) MUST_CHECK;
void link_pause(struct link_of *link); // longer each time; ends when the worker stops
// With the lock: one of a channel's conditions, until then.
void channel_wait(struct channel *channel, pthread_cond_t *condition, int64_t until);
void worker_give_up(struct worker *worker, enum code code, const char *why);
void worker_refused(struct worker *worker, const char *call, const struct fetch_answer *answer, struct arena *arena);
void *worker_poll(void *channel);
void *worker_beat(void *channel);
void *worker_send(void *channel); // send.c
// A stored result for a task at hand; a struct task_results. Its own connection: tasks that want one are few.
enum code worker_read_result(void *worker, const struct tool_request *request, struct str ref, struct arena *arena,
                             struct str *out, struct error *err) MUST_CHECK;
// The token of an attempt at hand, in `arena`; empty: there is none such, or out of memory.
// *server: who gave it, when there is one.
struct str attempt_token(struct worker *worker, uint64_t ticket, struct arena *arena, uint32_t *server);
void worker_give_back(struct channel *channel); // what is at hand, in one last call
// temporal.c: the same of a Temporal server
enum code temporal_worker_open(struct worker *worker, struct error *err) MUST_CHECK;
void *temporal_poll_main(void *channel);
void *temporal_beat_main(void *channel);
void *temporal_send_main(void *channel);
bool temporal_beats_soon(const struct attempt *attempt); // before the thread of heartbeats looks by itself
void temporal_give_back(struct channel *channel);
// The files of the run are laid out in the attempt's directory, before it begins. Without the lock.
enum code temporal_lay_out(struct worker *worker, struct attempt *attempt, struct error *err) MUST_CHECK;
enum code temporal_no_result(void *worker, const struct tool_request *request, struct str ref, struct arena *arena,
                             struct str *out, struct error *err) MUST_CHECK; // a struct task_results
// A body is an object that stays open.
void body_list(struct buf *body, const char *name);
void body_number(struct buf *body, const char *name, int64_t value);
void body_task(struct buf *body, const struct attempt *attempt); // {token, epoch; open
void body_begin(const struct worker *worker, struct buf *body);
void worker_say(struct worker *worker, bool warning, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
