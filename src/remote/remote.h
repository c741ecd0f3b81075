// Steps for workers: tasks that wait, leases that run, results that come back. The protocol: docs/format/worker.md.
//
// A remote stands between the engine and the workers: an attempt that the router sent to a pool (executor/executor.h) becomes a task
// in the queue of that pool, which a worker takes by polling. A task is leased: a worker that falls silent for longer than its lease
// is taken for dead, and the engine gets the attempt back as lost (it runs again, under the next engine attempt).
// Every call of a worker names its attempt by a token that only this server could have made (A7); the token of an attempt that is
// over is refused and changes nothing (I14).
// A completion is answered when what it led to is durable, not before; the same completion again gets the same answer.
//
//   remote_open -> engine_options.pools = remote_tools() -> engine_open -> remote_attach ... remote_shut -> engine_close
//   -> remote_free
//
// struct remote is shared: mutex inside. A thread of its own answers polls and looks after the leases.
#ifndef CAIRN_REMOTE_REMOTE_H
#define CAIRN_REMOTE_REMOTE_H

#include "auth/auth.h"
#include "engine/engine.h"
#include "json/json.h"
#include "tool/tool.h"
#include "view/metrics.h"

struct remote;

enum {
    REMOTE_LEASE_MS = 30000,
    REMOTE_WAIT_MAX_MS = 30000, // of a long poll
    REMOTE_BATCH_MAX = 256      // tasks, tokens or results of one call
};

struct remote_options {
    struct task_key key;     // of the tokens; the same after a restart, so that old tokens differ from forged ones
    int64_t lease_ms;        // 0 = REMOTE_LEASE_MS
    struct metrics *metrics; // where leases that ran out are counted; NULL: nowhere
    int64_t (*now)(const void *context); // tests: monotonic ms, and remote_tick instead of a thread; NULL: the clock
    const void *now_context;
};

enum code remote_open(const struct remote_options *options, struct remote **out, struct error *err) MUST_CHECK;
struct tools *remote_tools(struct remote *remote); // engine_options.pools: starts what has tool_request.pool
void remote_attach(struct remote *remote, struct engine *engine);
// No more tasks are given, and workers that wait are answered (503). Results are still taken.
void remote_drain(struct remote *remote);
// Those who would get answers are gone: none is given any more. After remote_shut.
void remote_mute(struct remote *remote);
// Nothing is delivered to the engine afterwards: polls are answered, calls refused (503).
void remote_shut(struct remote *remote);
void remote_free(struct remote *remote); // NULL is fine
void remote_tick(struct remote *remote); // with options.now only: what the thread would do now

// ---- what workers ask for. Bodies and answers are JSON: docs/format/worker.md
enum remote_call {
    REMOTE_POLL = 1,
    REMOTE_HEARTBEAT,
    REMOTE_LOGS,
    REMOTE_COMPLETE,
    REMOTE_FAIL,
    REMOTE_EVENTS,
    REMOTE_CALLS
};
struct remote_caller {    // who the caller is, as its credentials say
    struct str tenant;    // empty: serves all tenants
    struct str pool;      // empty: serves all pools
    struct str execution; // REMOTE_EVENTS: the run that the address names
    // REMOTE_EVENTS: which of these events the run has already (`known`). Called on the thread of remote_serve; NULL: none.
    enum code (*noted)(void *context, struct str tenant, struct str run, const struct str *ids, size_t count,
                       bool *known, struct error *err);
    void *noted_context;
    // Whether anybody still waits for the answer to the call with this context: no task is given to nobody. NULL: always.
    bool (*alive)(const void *context);
};
// Exactly once for each call, from any thread, perhaps before remote_serve returns. `body` is JSON (of a refusal:
// problem+json) and lives during the call. Must not call back into the remote.
typedef void (*remote_reply)(void *context, int status, struct str body);
void remote_serve(struct remote *remote, enum remote_call call, const struct remote_caller *caller, struct str body,
                  remote_reply reply, void *context);
// PUT /v1/worker/artifacts/{token}/{path}: a file that the step declared. E_DENIED (token), E_CONFLICT (over), E_NOT_FOUND (not
// declared), E_IO, E_FULL.
enum code remote_artifact(struct remote *remote, const struct remote_caller *caller, struct str token, struct str name,
                          struct str bytes, struct error *err) MUST_CHECK;

// GET /v1/worker/results/{token}?ref=: whose run the task of that token is, in `arena`; its lease is renewed. Errors as above.
enum code remote_whose(struct remote *remote, const struct remote_caller *caller, struct str token, struct arena *arena,
                       struct str *tenant, struct str *run, struct error *err) MUST_CHECK;

// ---- for people
struct remote_counts {
    uint64_t waiting, leased, workers;             // now
    uint64_t started, completed, expired, refused; // since the start; refused: stale or forged tokens
};
struct remote_counts remote_counts(struct remote *remote);
// The same by pool, every pool that was ever heard of: of the tasks that wait, how many and for how long the oldest one. In
// `arena`; false: out of memory.
struct remote_pool {
    struct str name;
    uint64_t waiting, workers;
    int64_t oldest_ms;
};
bool remote_pools(struct remote *remote, struct arena *arena, struct remote_pool **out, size_t *count) MUST_CHECK;
// The workers of a tenant (empty: of all) that were heard of in the last ten minutes: an array of
// {worker, tenant, pool, leases, slots, silentMs, draining}. False: out of memory.
bool remote_workers(struct remote *remote, struct str tenant, struct arena *arena, struct json *out) MUST_CHECK;

// ---- the same words on the side of the worker
struct remote_task {
    struct str token;
    int64_t lease_ms;
    int64_t waited_ms; // how long the poll had waited at the server when it got the task; -1: the server does not say
    struct tool_request request; // without ticket and log; form NONE: a server that does not tell tasks from functions
};
// Of the answer to a poll. Strings live in `arena` or in `body`. E_INVALID, E_NOMEM.
enum code remote_tasks_read(struct str body, struct arena *arena, struct remote_task **tasks, size_t *count,
                            struct error *err) MUST_CHECK;
// One of these tasks alone, and back: for those who carry tasks in another way.
void remote_task_write(struct buf *out, const struct tool_request *request, struct str token, int64_t lease_ms);
enum code remote_task_read(struct str body, struct arena *arena, struct remote_task *task, struct error *err) MUST_CHECK;
// One element of "results": what came out of a task.
void remote_result_write(struct buf *out, struct str token, uint64_t epoch, const struct tool_result *result);
// And back; texts live in `arena` or in `body`. E_INVALID: it is none.
enum code remote_result_read(struct str body, struct arena *arena, struct tool_result *out,
                             struct error *err) MUST_CHECK;
// How it ended, as the last line of its log says it.
void remote_result_told(struct buf *out, const struct tool_result *result);
// What became of the elements of a call, in their order.
enum remote_state {
    REMOTE_OK = 1,
    REMOTE_CANCEL,  // heartbeat: stop it; `grace_ms`
    REMOTE_STALE,   // 409: the attempt is over
    REMOTE_DENIED,  // 403: not a token of this server, or not the caller's
    REMOTE_INVALID, // 400: not as its schema says
    REMOTE_AGAIN,   // 503: not durable yet, or the server is ending; say it again
};
struct refusal;
struct remote_answer {
    enum remote_state state;
    int64_t grace_ms;
    const struct refusal *refused; // the server: what is wrong with the element itself; NULL: the state says all
};
enum code remote_answers_read(struct str body, struct arena *arena, struct remote_answer **answers, size_t *count,
                              struct error *err) MUST_CHECK;

#endif
