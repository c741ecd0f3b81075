// Private to remote/: the table of tasks, those who wait, and the words on the wire.
#ifndef CAIRN_REMOTE_INSIDE_H
#define CAIRN_REMOTE_INSIDE_H

#include "base/heap.h"
#include "base/sha256.h"
#include "contract/contract.h"
#include "remote/remote.h"
#include "schema/schema.h"

#include <pthread.h>
#include <stdatomic.h>

// ---- tokens
struct digest token_name(struct str token);                       // by which it is looked up
bool token_genuine(const struct task_key *key, struct str token); // made with this key, in all its parts
bool same_bytes(struct str a, struct str b);                      // in a time that does not tell where they differ

// ---- an index of things by number; intrusive
struct link {
    struct link *next;
    uint64_t key;
};
struct index {
    struct link **slots; // size is a power of two
    size_t size, count;
};
bool index_add(struct index *index, struct link *link, uint64_t key) MUST_CHECK; // false: out of memory
void index_remove(struct index *index, struct link *link);
struct link *index_first(const struct index *index, uint64_t key); // then link->next while the key is the same
void index_release(struct index *index);
uint64_t name_key(const struct digest *name);

// ---- a task: an attempt that is for a worker
enum { POOL_MAX = METRIC_SERIES_MAX };
struct pool { // that a task or a worker has named; the first so many, never forgotten
    struct pool *next;
    struct str name;
    char text[];
};

struct queue_of { // tasks of one tenant, pool and kind that wait, oldest first
    struct queue_of *next;
    struct worker_task *first, **last;
    size_t count;
    struct str tenant, pool, kind;
    char text[];
};

struct worker_task {
    struct link by_name, by_ticket;
    struct worker_task *next; // of its queue
    struct queue_of *queue; // NULL: leased
    struct heap_node due;   // leased: end of the lease, or of its time
    struct worker *worker;  // leased: by whom; NULL when that one was forgotten
    uint32_t references;    // the table, and the thread that writes its log just now
    bool cancelled, told;   // to be stopped; the worker knows
    bool logged;
    int64_t grace_ms;
    int64_t lease_until, stop_at; // stop_at: its time is over, whatever the worker says; INT64_MAX = never
    int64_t queued_ms, started_ms;
    uint64_t ticket, epoch;
    uint32_t logical, engine;
    int64_t timeout_ms;
    uint64_t log_next[2]; // bytes of stdout, of stderr that were taken
    struct step_log log;
    struct str token, tenant, pool, kind, run, step, artifacts_dir, log_path;
    struct str wire; // what a worker gets to see, JSON
    struct str *artifacts;
    size_t artifact_count;
    struct digest name; // token_name
    char text[];
};

// ---- completions that may be repeated: the newest so many
enum { DONE_MAX = 65536 };
struct done {
    struct link link;
    struct digest name, result;
    bool used, stored;
};

struct worker {
    struct worker *next;
    uint64_t leases;
    int64_t seen_ms, slots;
    uint64_t untold; // of its tasks: cancelled, and it does not know
    bool draining;
    bool suspect; // it lost a lease and was not heard of since: what it asked for before that is not given
    struct str name, tenant, pool;
    char text[];
};

// A call that waits for something to happen.
struct waiter {
    struct waiter *next;
    bool beat;   // a heartbeat, else a poll
    bool looked; // at its tokens
    int64_t since, until;
    remote_reply reply;
    bool (*alive)(const void *context);
    void *context;
    struct str tenant, pool, worker;
    const struct str *kinds; // poll; none = any
    size_t kind_count;
    uint32_t max;
    const struct str *tokens; // beat
    size_t token_count;
    uint64_t news;      // that were known when it was last looked at
    struct arena arena; // owns all of it
};

// An answer that is to be given once the lock is open.
struct worker_answer {
    struct worker_answer *next;
    remote_reply reply;
    void *context;
    int status;
    struct buf body;
};

struct remote {
    struct tools base;
    struct remote_options options;
    pthread_mutex_t mutex;
    pthread_mutex_t log_mutex; // logs are written under this one, so that a slow disk holds up nobody else; before `mutex`
    pthread_cond_t changed;
    pthread_t thread;
    bool draining, shut, dirty;
    atomic_bool mute;
    struct engine *engine;
    struct index names, tickets, done_index;
    struct queue_of *queues;
    struct pool *pools;
    struct heap due;
    struct waiter *waiters, **last_waiter;
    struct worker_answer *answers, **last_answer;
    struct worker *workers;
    size_t worker_count;
    struct done *done; // ring
    size_t done_next;
    struct remote_counts counts;
    size_t waiting;
    uint64_t news;   // so often a task was cancelled or ended otherwise than by its worker
    bool has_thread; // of the owner; kept away from what the thread itself looks at
    struct arena door_memory;
    const struct schema *calls[REMOTE_CALLS], *elements[REMOTE_CALLS], *old_event;
};

int64_t remote_now(const struct remote *r);

// table.c. All with the lock held.
struct str text_put(char **at, struct str text); // a copy at *at with a NUL behind, which moves past it
struct worker_task *task_find(const struct remote *r, struct str token); // NULL: none with exactly this token
enum remote_state token_state(struct remote *r,
                              struct str token); // of a token that no task has: STALE or DENIED; counts
bool task_allowed(const struct worker_task *task, const struct remote_caller *caller);
// The task that the caller has leased under that token: REMOTE_OK and *out, or REMOTE_STALE or REMOTE_DENIED and NULL.
enum remote_state task_leased(struct remote *r, const struct remote_caller *caller, struct str token,
                              struct worker_task **out);
void task_lease(struct remote *r, struct worker_task *task, struct worker *worker);
void task_renew(struct remote *r, struct worker_task *task);
void task_hurry(struct remote *r, struct worker_task *task); // stop_at was moved
void task_end(struct remote *r, struct worker_task *task);   // out of the table; freed when nobody uses it
void task_drop(struct worker_task *task);                    // one reference less
void queue_add_task(struct remote *r, struct queue_of *queue, struct worker_task *task);
struct queue_of *queue_for(struct remote *r, struct str tenant, struct str pool,
                           struct str kind);  // NULL: out of memory
void queue_drop_empty(struct remote *r, struct queue_of *queue);
void task_told(struct worker_task *task, bool told); // whether its worker knows that it is cancelled
void remote_news(struct remote *r);
void tell_engine(struct remote *r, struct tool_result *result);
void tell_fault(struct remote *r, struct worker_task *task, const char *code, const char *category, bool retryable,
                const char *message);
void tell_lost(struct remote *r, struct worker_task *task);
struct worker *worker_seen(struct remote *r, struct str tenant, struct str pool,
                           struct str name); // NULL: too many, no memory
struct worker *worker_find(const struct remote *r, struct str tenant, struct str pool, struct str name);
struct done *done_find(const struct remote *r, const struct digest *name);
void done_add(struct remote *r, const struct digest *name, const struct digest *result);
void done_remove(struct remote *r, struct done *done);

// workers.c
void remote_places(struct tools *tools, tool_place_visit visit, void *context); // without the lock

// serve.c
struct worker_call {
    enum remote_call kind;
    struct json body;
    struct str tenant, pool, worker; // tenant empty: all
    struct str execution;            // REMOTE_EVENTS
    struct arena *arena;
    remote_reply reply;
    bool (*alive)(const void *context);
    void *context;
    const struct remote_caller *caller;
};
// doors.c
#define SCHEMA_REFUSAL "SCHEMA_VALIDATION_FAILED"
enum { WORKER_NAME_MAX = 128, REFUSAL_POINTER_MAX = 224 };
struct refusal { // what is wrong with a call, or with one of its elements
    int status;
    char code[64], pointer[REFUSAL_POINTER_MAX], message[320]; // pointer: into the body of the call
};
enum code doors_open(struct remote *r, struct error *err) MUST_CHECK;
const struct refusal *refusal_new(struct arena *arena, int status, const char *code, const char *pointer,
                                  const char *message); // never NULL
const struct refusal *call_check(const struct remote *r, const struct worker_call *call); // NULL: it is as published
const struct json *call_elements(const struct worker_call *call, size_t *count);
const struct refusal *element_check(const struct remote *r, const struct worker_call *call, size_t index);

// complete.c
void serve_results(struct remote *r, const struct worker_call *call);
// The result of one task, or NULL, and events that were reported of it (canonical JSON, an array), with an answer for each of the call's
// elements: those without `refused` get the state of the task.
void serve_reported(struct remote *r, const struct worker_call *call, const struct json *result, struct str reports,
                    const struct remote_answer *answers, size_t count);
void serve_events(struct remote *r, const struct worker_call *call);  // events.c
void call_refuse(remote_reply reply, void *context, int status, const char *code, const char *why);
void call_refuse_nomem(const struct worker_call *call);
void call_refuse_as(const struct worker_call *call, const struct refusal *refusal);
int write_answer(struct buf *out, const struct remote_answer *answers, size_t count); // the status
// With the lock held; what they answer goes out when the lock is open.
void answer_later(struct remote *r, remote_reply reply, void *context, int status, struct buf *body); // takes the body
void serve_waiters(struct remote *r); // those that can be answered, or whose time is over
void unlock_and_answer(struct remote *r);

// What came out of a task, of an element that is as its schema says. Texts borrow it; a value is written to `value`. False: no memory.
bool result_read(const struct json *item, struct buf *value, struct tool_result *out);
// remote_json.c. Members of an object that was opened with '{'; commas come by themselves.
void wire_text(struct buf *out, const char *name, struct str value);
void wire_number(struct buf *out, const char *name, int64_t value);
void wire_list(struct buf *out, const char *name); // open
void wire_problem(struct buf *out, int status, const char *code, const char *detail); // without the closing brace
const char *state_name(enum remote_state state);
const char *state_code(enum remote_state state); // NULL: no refusal
const char *state_title(enum remote_state state);
int state_status(enum remote_state state);

#endif
