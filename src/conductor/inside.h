// Private to conductor/.
//
//   host.c    open, close, threads              orders.c  the table of attempts, what the worker says of them
//   client.c  calls of Conductor and Cairn      carry.c   attempts started, looked up, reported; polls
//   names.c   definitions, keys, ids            sweep.c   what Conductor says it runs, against the table
//   runs.c    cairn_run: both directions        decide.c  what to do about a run that differs (pure)
//   picture.c what a run looks like             hand.c    what a person did there, as signals
//   adopt.c   what Conductor lists as runs      strangers.c  what it lists and nobody here knows
#ifndef CAIRN_CONDUCTOR_INSIDE_H
#define CAIRN_CONDUCTOR_INSIDE_H

#include "base/map.h"
#include "base/text.h"
#include "base/uuid.h"
#include "conductor/conductor.h"
#include "conductor/decide.h"
#include "json/make.h"

#include <pthread.h>

enum {
    ID_SIZE = 64, // of a workflow or a task, with NUL
    BUCKETS = 4096,
    CALL_MS = 15000,
    POLL_MS = 4000,      // a poll that waits; more than 5000 is refused
    IDLE_POLL_MS = 5000, // a host that expects nothing polls all the same: others see that it lives
    DRAIN_COUNT = 32,
    LOOK_MS = 2000, // not delivered for so long: looked up
    LOOK_MAX_MS = 30000,
    PARK_S = 86400,
    REASON_MAX = 480,
    STAMP_SIZE = 32,
    ENDED_MAX = 4096, // workflows that this host ended: the newest so many
    HOSTS_MAX = 256,
    STRANGERS_MAX = 50000,
    LINKS_MAX = 32
};
#define OURS "cairn: " // what reasons of the host's own begin with: no person did that

enum order_state {
    ORDER_NEW = 1, // Conductor does not know it
    ORDER_STARTED, // it has a workflow
    ORDER_BEGUN,   // it was delivered
    ORDER_OVER,    // Cairn knows what came out, Conductor does not
    ORDER_TOLD     // Conductor has the outcome, and still may list it
};

enum ending { ENDING_OK = 1, ENDING_FAILED, ENDING_CANCELLED, ENDING_LOST, ENDING_STALE };

struct order {              // an attempt
    struct order *next;     // of its bucket
    struct order *job_next; // of the jobs
    enum order_state state;
    bool queued, busy, again; // is a job; a thread has it; is to be a job once more
    bool look;                // the job is to look it up
    bool asked;               // a start was sent: Conductor may know it
    bool external;            // executed by a worker of the user's
    bool gone;                // out of the table; freed when no thread has it
    uint64_t ticket;
    uint32_t logical, engine;
    int64_t timeout_ms;
    struct str key, tenant, run, step, kind, type; // in `text`
    struct str input;                              // external: JSON; in `text`
    char workflow[ID_SIZE], task[ID_SIZE];         // task empty: not known
    int64_t since_ms, started_ms, look_ms, told_ms;
    int64_t failing_ms; // since when it could not be started; 0: it was not tried, or it could
    unsigned looks, missing, tells;
    enum ending ending;
    int64_t duration_ms;
    uint64_t output_size;
    struct digest output_hash;
    char *output; // that may be shown; NULL: none
    size_t output_len;
    char *reason; // NULL: none
    char text[];
};

struct hosted { // a run
    struct hosted *next;
    struct str tenant, run, correlation; // in `text`
    char workflow[ID_SIZE], task[ID_SIZE];
    struct sight was;         // what both sides were when they last agreed
    bool known;               // `was` is
    unsigned sent;            // 1 << what it was asked to be since
    int64_t sent_ms;          // of the last time that nobody knows whether the asking was heard; 0: it was
    bool foreign;             // another host that lives has it
    bool closed;              // ended on both sides
    int64_t active_ms;        // an attempt came or went
    int64_t look_ms, told_ms; // next look; last picture
    char stamp[STAMP_SIZE];   // of what a person did, while it is not settled
    char revived[STAMP_SIZE]; // of the last time that its workflow was begun again while the run lived: nothing is asked by that
    char noted[200];          // a refusal that was written already
    struct digest picture;    // that was sent last
    unsigned idle;            // looks without news
    char text[];
};

struct stranger { // a workflow that Conductor lists and this host has no place for
    char workflow[ID_SIZE];
    int64_t since_ms, look_ms;
};
struct strangers { // owner: one thread
    struct strangers_room {
        struct arena arena;
        struct map index;
        struct stranger *items;
        size_t count, capacity;
    } rooms[2], *now, *before; // of this listing and of the one before
};

struct poller {
    struct conductor *host;
    const char *type;
};

struct conductor {
    struct conductor_options options;
    struct worker_carrier carrier;
    struct worker *worker;
    char id[ID_SIZE]; // of this process: the domain of its tasks
    pthread_mutex_t mutex;
    pthread_cond_t jobs_changed, expects; // a job; something is to be polled for
    struct order *buckets[BUCKETS];
    struct order **by_slot;                // of the worker
    size_t order_count, expected, to_tell; // all; that a poll should bring; whose outcome Conductor lacks
    struct order *jobs, **last_job;
    struct hosted *runs[BUCKETS];
    char tenant[128]; // of our token; empty: not known yet
    char ended[ENDED_MAX][ID_SIZE];
    size_t ended_next;
    char alive[HOSTS_MAX][ID_SIZE]; // hosts that poll
    size_t alive_count;
    bool alive_known;
    // The sweep alone says that Conductor is there; before it has, it is away, and people have not heard of that.
    bool stopping, away, away_told, defined;
    int64_t away_ms;
    pthread_t threads[LINKS_MAX + 8];
    size_t thread_count;
    struct poller pollers[2];
};

// ---- client.c
struct line { // one thread's way to Conductor, and to the server of Cairn
    struct conductor *host;
    struct fetch_link *link, *cairn;
    struct arena arena; // of one call
    unsigned tries;
};
struct reply {
    int status;
    struct str text;
    struct json body; // type 0: it is no JSON
};
enum code line_open(struct conductor *host, struct line *out, struct error *err) MUST_CHECK;
void line_close(struct line *line);
// One call of Conductor; the arena is reset before. OK whatever it answered, but E_IO: nobody answered, or "again" (5xx that says so).
enum code line_call(struct line *line, const char *method, struct str path, struct str body, struct reply *out,
                    struct error *err) MUST_CHECK;
enum code line_cairn(struct line *line, const char *method, struct str path, struct str body, struct reply *out,
                     struct error *err) MUST_CHECK; // the same of Cairn; without the reset
void line_pause(struct line *line);                 // longer each time
bool host_stops(struct conductor *host);
// People hear of a Conductor that is away once, and once when it is back. Meanwhile nothing new is taken from Cairn: what waits there
// has no lease that could run out.
void host_away(struct conductor *host, const char *why);
void host_back(struct conductor *host);
bool host_rests(struct conductor *host, int64_t ms); // false: it stops
void host_say(const struct conductor *host, bool warning, const char *format, ...) PRINTF_LIKE(3, 4);
// Calls with a path of PRINTF_LIKE; names in it are UUIDs or were encoded.
enum code line_ask(struct line *line, struct reply *out, struct error *err, const char *method, struct str body,
                   const char *path, ...) PRINTF_LIKE(6, 7) MUST_CHECK;
// A workflow with its tasks. E_NOT_FOUND: there is none.
enum code workflow_get(struct line *line, const char *id, struct json *out, struct error *err) MUST_CHECK;
// The last task of a reference name; NULL: none.
const struct json *workflow_task(const struct json *workflow, const char *ref);
enum code workflow_end(struct line *line, const char *id, const char *reason, struct error *err) MUST_CHECK; // DELETE
struct update { // of a task
    const char *workflow, *task, *status;
    struct str reason; // may be empty
    struct json output;
    int64_t park_s;
};
enum code task_update(struct line *line, const struct update *update, struct error *err) MUST_CHECK;
void task_note(struct line *line, const char *task, const char *text); // into its log; best effort
void id_copy(char out[ID_SIZE], struct str id);

// ---- names.c
enum code definitions_make(struct line *line, struct error *err) MUST_CHECK; // E_IO: again
struct str carried_key(struct arena *arena, struct str tenant, struct str run, struct str step, uint32_t logical,
                       uint32_t engine);
void signal_id(char out[UUID_SIZE], const char *workflow, const char *action, const char *stamp);

// ---- orders.c. With the lock unless it says otherwise
bool host_taken(void *host, uint64_t ticket, const struct remote_task *task); // struct worker_carrier; without
void host_over(void *host, uint64_t ticket, const struct tool_result *result, enum remote_state state);
struct order *order_find(const struct conductor *host, struct str key);
void order_job(struct conductor *host, struct order *order);
void order_drop(struct conductor *host, struct order *order); // freed now or when its thread is done with it
struct order *job_take(struct conductor *host);               // waits; NULL: the host stops
void job_done(struct conductor *host, struct order *order);
void order_is(struct conductor *host, struct order *order, enum order_state state);

// ---- carry.c
void *carry_main(void *host);
void *poll_main(void *poller);
void deliver(struct line *line, const struct json *task); // a task that Conductor brought. Without the lock
// Unlocks. `workflow` is {0} where nobody has it.
void order_delivered(struct conductor *host, struct order *order, const struct json *workflow, const struct json *task);

// ---- sweep.c, runs.c
void *sweep_main(void *host);
void *runs_main(void *host);
bool host_lives(struct conductor *host, const char *id);                    // another one, as far as its polls tell
void host_heard(struct conductor *host, struct str tenant, struct str run); // of a run. With the lock
struct hosted *hosted_add(struct conductor *host, struct str tenant, struct str run); // or finds it. With the lock; NULL: no memory
// Whether a workflow with this input is of our site and tenant. False while we do not know which that is.
bool is_here(struct conductor *host, const struct json *input);
bool host_has_tenant(struct conductor *host);
struct watch { // of the thread that looks at runs
    struct line line;
    struct arena arena; // of one look
    struct strangers strangers;
    size_t count; // of runs
    int64_t list_ms;
    struct hosted *at; // that is looked at
    // of that run
    struct json status, workflow;
    struct sight now;
    struct doubt doubt;
    char stamp[STAMP_SIZE];
};

// ---- adopt.c
// When its time has come: what Conductor lists tells what began, ended, was paused or resumed there, in a few calls for all runs.
enum code runs_list(struct watch *watch, int64_t now, struct error *err) MUST_CHECK;

// ---- strangers.c. A listing: strangers_list, strangers_add for each, then those that are due, whose look_ms the caller sets
void strangers_open(struct strangers *strangers);
void strangers_close(struct strangers *strangers);
void strangers_list(struct strangers *strangers);
void strangers_add(struct strangers *strangers, struct str id, int64_t since_ms, int64_t look_ms); // a known one keeps its times
struct stranger *strangers_due(struct strangers *strangers, int64_t now);                          // NULL: none

// ---- hand.c
// A task of an attempt that this host does not have: a person's retry becomes RETRY_STEP, anything else is answered "already done".
void stranger_task(struct line *line, const struct json *workflow);
// Whether it had ended, and runs again by a person's doing; the stamp names that doing.
bool workflow_again(struct conductor *host, const struct json *workflow, char stamp[STAMP_SIZE]);
void workflow_ended(struct conductor *host, const char *workflow); // remembers it
struct signal_ask {
    const char *type, *workflow, *action, *stamp;
    struct str run, step, reason;
};
// E_IO: again. *refused: why, empty when it was accepted; *made: the new run of RETRY_RUN. In the arena of the line.
enum code signal_send(struct line *line, const struct signal_ask *ask, struct str *refused, struct str *made,
                      struct error *err) MUST_CHECK;

// ---- picture.c
// What a run looks like, from what Cairn says of it. In `arena`. `hosts` is for the next host that reads it.
struct json picture_of(const struct json *run, struct str status, struct str substatus, struct str message,
                       struct str link, struct json hosts, struct arena *arena);

#endif
