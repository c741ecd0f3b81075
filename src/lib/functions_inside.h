// Private to lib/: functions of a host as tools, in three rooms: the table and its owner (functions.c), queue, threads and clock
// (functions_work.c), results on their way (functions_result.c). Everything here that takes `f` is called with its mutex held.
#ifndef CAIRN_LIB_FUNCTIONS_INSIDE_H
#define CAIRN_LIB_FUNCTIONS_INSIDE_H

#include "base/heap.h"
#include "lib/functions.h"
#include "lib/inside.h"

#include <pthread.h>

struct kind {
    struct kind *next;
    struct cairn_kind given;
    char name[];
};

struct host_call {
    struct host_call *next; // of the waiting
    const struct kind *kind;
    uint64_t ticket;
    uint32_t slot;
    bool waiting, running;
    bool over;      // delivered, or nobody wants it: the token is dead
    bool cancelled; // asked to stop
    bool notice;    // not an attempt: tells the kind that a pending one is dead
    int64_t started_ms;
    struct heap_node timer;
    struct step_log log;
    struct cairn_attempt attempt;
    char text[];
};

struct call_slot {
    struct host_call *task; // NULL: free
    uint32_t generation, next_free;
};

struct functions { // shared: mutex inside
    struct tools base;
    pthread_mutex_t mutex;
    pthread_cond_t work, clock, idle;
    uint32_t references; // the owner and every thread
    bool closing;
    tool_deliver deliver; // NULL: nowhere
    tool_output output;
    void *context;
    struct kind *kinds;
    struct host_call *first, **last; // waiting
    struct call_slot *slots;
    size_t slot_capacity;
    uint32_t slot_count, free_slot;
    uint32_t waiting_count, worker_count, worker_max, eager_max, idle_workers, running;
    uint64_t taken, taken_before; // by workers; until the last look whether they stand still
    int64_t look_at;              // when to look; 0: nothing to look for
    struct heap timers;
    bool has_clock;
    struct cairn_host host;
    void (*freed)(void *owner);
    void *owner;
};

// ---- functions_work.c
void functions_drop(struct functions *f); // one reference; unlocks
void task_free(struct host_call *task);   // NULL is fine
// Tokens: a slot and its generation.
struct host_call *slot_find(const struct functions *f, uint64_t token); // NULL: over
bool slot_take(struct functions *f, struct host_call *task) MUST_CHECK; // false: no memory
void slot_leave(struct functions *f, struct host_call *task);
void task_enqueue(struct functions *f, struct host_call *task); // makes a worker, if it may
void task_unqueue(struct functions *f, struct host_call *task);
void task_timer(struct functions *f, struct host_call *task, int64_t due_ms);
void task_expire(struct functions *f, struct host_call *task); // timed out or cancelled: delivers that
// Delivers what the function or its host said. E_INVALID, E_NOMEM: nothing happened.
enum code task_finish(struct functions *f, struct host_call *task, const struct cairn_result *result,
                      struct error *err) MUST_CHECK;

// ---- functions_result.c; no lock
// Words of ours must stand in events: UTF-8 without control characters, of bounded length. E_INVALID.
enum code result_check(const struct cairn_result *result, struct error *err) MUST_CHECK;
// Copies the texts of a fault or an output into memory that the result owns. False: no memory.
bool result_fill(struct tool_result *out, const struct cairn_result *result) MUST_CHECK;
void result_release(const struct cairn_result *result);

#endif
