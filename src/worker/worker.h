// A worker executes tasks of a server: for every 256 of them one thread asks, one keeps their leases, one hands in what came out.
// Processes, the functions of plugins and the tasks of playbooks are those of this program (docs/format/worker.md). It survives a
// server that is away. It does not begin an attempt whose lease is over, and gives up one whose lease it could not renew in time, so
// that nothing runs twice for long.
#ifndef CAIRN_WORKER_WORKER_H
#define CAIRN_WORKER_WORKER_H

#include "fetch/fetch.h"
#include "lib/functions.h"
#include "remote/remote.h"
#include "task/task.h"

struct temporal_settings;

// Who stands between a task that the server gave and its beginning: another system that carries attempts (src/conductor). A task that was
// taken is held, with its lease kept, until worker_begin. Calls come from threads of the worker.
struct worker_carrier {
    void *context;
    // `task` lives during the call, which must not call the worker: its lock is held.
    // False: it cannot be carried (no memory), and is given back.
    bool (*taken)(void *context, uint64_t ticket, const struct remote_task *task);
    // REMOTE_OK: the server has the result, durably. Anything else: it does not want it. The slot is free afterwards.
    void (*over)(void *context, uint64_t ticket, const struct tool_result *result, enum remote_state state);
};

struct worker_options {
    struct fetch_link_options link; // `stopped` is the worker's own; `url` is the first server
    // Others that share their runs with it: each hands out the tasks of its own. Slots are divided evenly.
    const struct str *more_servers;
    size_t more_count; // below WORKER_SERVERS_MAX
    // A Temporal server whose activities are executed instead: `link`, `more_servers` and `kinds` are not looked at. It lives as long.
    const struct temporal_settings *temporal;
    struct str name, pool;
    const struct str *kinds; // that are asked for
    size_t kind_count;
    uint32_t slots; // tasks at once; WORKER_SLOTS_MAX
    const struct tool_confinement *confinement;
    const struct tool_secrets *secrets;
    struct functions *functions;     // of its plugins, connected to the worker while it is open. NULL: none
    const struct task_options *task; // plugins and credentials of the tasks of playbooks. NULL: it executes none
    const struct worker_carrier *carrier; // NULL: tasks begin at once
    struct tools *tools; // everything goes to these, instead of being executed; results come by worker_hand. NULL: it is executed here
    int64_t beat_ms;     // of Temporal: how often a cancellation is asked for; 0: as often as the lease wants, 10 s at most
    bool quiet;                      // do not say which task begins
    // A message for people. Any thread.
    void (*say)(void *context, bool warning, const char *text);
    void *context;
};

struct worker;

enum { WORKER_SLOTS_MAX = 4096, WORKER_SERVERS_MAX = 16 };

// Fills in the kinds: those of `wanted`, names with commas between them; empty: all that it executes. E_INVALID: one that it does not. All
// other options are there.
enum code worker_kinds(struct worker_options *options, struct str wanted, struct arena *arena,
                       struct error *err) MUST_CHECK;
enum code worker_open(const struct worker_options *options, struct worker **out, struct error *err) MUST_CHECK;
void worker_drain(struct worker *worker); // takes nothing new; what is at hand goes on
// How many tasks are at hand. *err: why the worker cannot go on (credentials, no such server); OK while it can.
size_t worker_busy(struct worker *worker, struct error *err);
uint64_t worker_count(struct worker *worker); // results that the server has taken
void worker_hand(struct worker *worker, struct tool_result *result); // of worker_options.tools: what came out. Takes it. Any thread

// ---- for a carrier. False: there is no such task, or it is over, or (begin, end) it has begun
bool worker_begin(struct worker *worker, uint64_t ticket);
bool worker_end(struct worker *worker, uint64_t ticket, struct tool_result *result); // it was executed elsewhere. Takes the result
bool worker_lose(struct worker *worker, uint64_t ticket); // it is stopped and given back without an outcome: the next engine attempt
void worker_hold(struct worker *worker, bool hold); // true: no new tasks are taken until false

// Ends everything at once; what is at hand is killed and given back to the server.
void worker_close(struct worker *worker);

#endif
