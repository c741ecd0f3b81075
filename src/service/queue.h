// Private to service/: which runs count where. A queue belongs to a tenant; a run that has not ended stands in one of them and
// waits (for its approval, or for a place) or runs. All of it is a fold of the log: each place follows from the start facts
// and the status of a run, and is found again by looking at the runs that have not ended. Kept in memory because every start
// asks. No clock, no store: what admits a run is given. One thread at a time.
#ifndef CAIRN_SERVICE_QUEUE_H
#define CAIRN_SERVICE_QUEUE_H

#include "json/json.h"

#define QUEUE_DEFAULT STR("default") // every tenant has it

// What happens to a start when there is no place (ES-3a, ES-3b, ES-3c).
enum queue_policy { POLICY_REJECT = 1, POLICY_QUEUE, POLICY_DELAY };

struct queue_config {
    enum queue_policy policy;
    uint32_t max_running; // 0 = no limit of its own
    uint32_t max_queued;  // QUEUE: more are refused
    int64_t delay_ms;     // DELAY: steps start so much later
    int32_t priority;     // among the queues of its tenant; higher goes first
    bool paused;          // nothing starts; what runs goes on
};
extern const struct queue_config queue_config_default; // QUEUE, no limit, 10,000

struct tenant_limits {
    uint32_t runs_in_flight;    // 0 = no limit
    uint32_t starts_per_second; // 0 = that of the service
};

// {"policy":"QUEUE","maxRunning":2,"maxQueued":100,"delayMs":1000,"priority":0,"paused":false}; what is missing is as it is in *out.
// E_INVALID names the member.
enum code queue_config_read(const struct json *value, struct queue_config *out, struct error *err) MUST_CHECK;
bool queue_config_write(const struct queue_config *config, struct arena *arena, struct json *out) MUST_CHECK;
enum code tenant_limits_read(const struct json *value, struct tenant_limits *out, struct error *err) MUST_CHECK;
bool tenant_limits_write(const struct tenant_limits *limits, struct arena *arena, struct json *out) MUST_CHECK;

enum queue_state { QUEUE_NONE = 0, QUEUE_GATED, QUEUE_WAITING, QUEUE_RUNNING };

struct queued_run; // a run

// A limit that several engines share (shared_limit.c, slots.c): what the store says of it. All zero where there is one engine.
enum { OTHERS_MAX = 16 };
// What another engine says of those that wait there; it is taken for gone when it says nothing for a while.
struct waiting_elsewhere {
    uint64_t engine, version;
    int64_t heard_ms;
};
struct shared_limit {
    size_t elsewhere;                                    // runs of others that count
    size_t over;                                         // of all that count: those without a number below the limit
    size_t waiting;                                      // runs that wait at others
    int64_t oldest_ms;                                   // when the first of them arrived; 0 = none
    bool yields;                                         // a place that is free is for one that waits elsewhere
    bool unsettled;                                      // runs of ours may count and not be in the store
    int64_t yields_since_ms, next_look_ms, next_reap_ms; // monotonic
    size_t reaped;                                       // how far the last search for runs that are over came
    uint8_t *taken;                                      // bit n: the number n
    size_t taken_size;                                   // bytes
    uint32_t *asked;                                     // numbers that are on their way to the store
    size_t asked_count, asked_capacity;
    struct waiting_elsewhere others[OTHERS_MAX];
    size_t other_count;
    bool said; // ours is in the store
    int64_t said_oldest_ms, said_at_ms;
    size_t said_waiting;
};
void shared_limit_release(struct shared_limit *share);
// Forgets all but what is asked for. false: no memory.
bool shared_limit_begin(struct shared_limit *share, uint32_t limit) MUST_CHECK;
void shared_limit_mark(struct shared_limit *share, uint32_t limit, uint32_t number); // it is taken
// A number that is free and may be used, which is asked for from now on. false: none, or no memory.
bool shared_limit_pick(struct shared_limit *share, uint32_t limit, uint64_t random, uint32_t *out) MUST_CHECK;
void shared_limit_asked(struct shared_limit *share, uint32_t number); // it is stored, or will not be

// What a run holds of them.
enum hold { HOLD_NONE = 0, HOLD_NUMBER, HOLD_OVER };
struct slot {
    enum hold hold;
    uint32_t number;
    bool asked; // it is not stored yet
};
struct run_slots {
    struct slot of_queue, of_tenant;
};

struct run_queue {
    struct run_queue *next;
    struct queue_tenant *tenant;
    struct queue_config config;
    bool configured;
    bool listed;                 // it was in the last list of those that are
    size_t running, waiting;     // waiting: also those that wait for an approval
    struct queued_run *first, *last; // that wait for a place only, oldest first
    bool stuck;                  // nothing more in this pass
    struct shared_limit share;
    struct str name;
    char bytes[];
};

struct queue_tenant {
    struct queue_tenant *next;
    struct tenant_limits limits;
    size_t running;
    struct shared_limit share;
    struct run_queue *queues;
    struct str name;
    char bytes[];
};

struct queue_told { // what became of a run in a pass
    char tenant[129], run[129];
    const char *status;
};

struct queues {
    struct queue_tenant *tenants;
    struct queue_tenant *served; // had the last place that was given
    struct queued_run **table;   // by hash of (tenant, run)
    size_t size, count;
    size_t running, running_max; // of all tenants; 0 = no limit
    uint64_t order;              // of the next run that arrives
    bool changed;                // since the last pass: a run may go on
};

void queues_release(struct queues *queues);
struct queue_tenant *queues_tenant(struct queues *queues, struct str tenant); // made when it is new; NULL: no memory
struct run_queue *queues_find(const struct queues *queues, struct str tenant, struct str name); // NULL: not seen yet
// The queue `default` and those that were configured may be used.
bool queues_known(const struct queues *queues, struct str tenant, struct str name);
void queues_limit(struct queues *queues, struct queue_tenant *tenant, const struct tenant_limits *limits);
// NULL: as if it had never been configured.
enum code queues_configure(struct queues *queues, struct str tenant, struct str name, const struct queue_config *config,
                           struct error *err) MUST_CHECK;

// Between the two all that are configured are configured again; what is not, is not any more.
void queues_list_begin(struct queues *queues);
enum code queues_list_end(struct queues *queues, struct error *err) MUST_CHECK;

// A start that arrives now.
enum queue_verdict { VERDICT_START = 1, VERDICT_QUEUE, VERDICT_DELAY, VERDICT_REJECT, VERDICT_FULL };
enum queue_verdict queues_ask(const struct queues *queues, struct str tenant, struct str name, bool gated);
struct queue_config queues_config(const struct queues *queues, struct str tenant, struct str name);

// Where a run stands now; QUEUE_NONE: it has ended, or never was. `order`: its age, the lower the older; 0 = it arrives now.
enum code queues_place(struct queues *queues, struct str tenant, struct str name, struct str run,
                       enum queue_state place, uint64_t order, int64_t at_ms, struct error *err) MUST_CHECK;
void queues_remove(struct queues *queues, struct str tenant, struct str run);
void queues_confirm(struct queues *queues, struct str tenant, struct str run); // its start is stored
void queues_refused(struct queues *queues, struct str tenant, struct str run); // its start was not stored
// What the run holds; NULL: it stands nowhere here. `queue` and `place` may be NULL.
struct run_slots *queues_slots(const struct queues *queues, struct str tenant, struct str run, struct run_queue **queue,
                               enum queue_state *place);
// Each run that stands here.
void queues_each(const struct queues *queues, void *context,
                 void (*visit)(void *context, struct run_queue *queue, struct str run, enum queue_state place,
                               struct run_slots *slots));
size_t queues_position(const struct queues *queues, struct str tenant, struct str run); // 1 = the next of its queue; 0: it does not wait
int64_t queue_oldest_ms(const struct run_queue *queue); // when the first that waits arrived; 0 = none waits

// dequeueAndStart (ES-3d): gives places while there are any, one tenant after the other, the queue of the highest priority and
// then the oldest run first. `admit` says OK when the run goes on. Nothing is kept between two passes but whose turn it is:
// a second call starts nothing twice (ES-3e).
struct queue_pass {
    void *context;
    enum code (*admit)(void *context, struct str tenant, struct str run);
    void (*told)(void *context, struct str tenant, struct str run, const char *status); // STARTED, FAILED, SKIPPED
};
size_t queues_reconcile(struct queues *queues, const struct queue_pass *pass); // how many were started

#endif
