// Private to kernel/: what differs between documents. A plan and a node workflow are steps with joins (route_dag.c); a playbook is a net
// of places with tokens (route_net.c). Everything else asks run->route and does not know which it is.
#ifndef CAIRN_KERNEL_ROUTE_H
#define CAIRN_KERNEL_ROUTE_H

#include "kernel/inside.h"

// What one attempt of a lane does.
enum body {
    BODY_EXECUTED = 1, // by a tool or in process: has a result to wait for
    BODY_WAIT,
    BODY_GATE,  // a person answers
    BODY_EVENT, // something outside happens
    BODY_CHILD, // a run of its own
    BODY_LIST,  // of such runs
    BODY_LOOP,  // of steps
    BODY_CANCEL,
};

struct run_route {
    enum body (*body)(const struct run *run, uint32_t lane);
    // ---- attempts
    struct moment (*moment)(const struct decide *d, enum moment_kind kind, uint32_t lane);
    enum code (*emit)(struct decide *d, struct moment *moment, uint32_t lane);
    uint32_t (*lane)(const struct run *run, const struct moment *moment, uint32_t step); // whose attempt it is about
    enum code (*begin)(struct decide *d, uint32_t lane);                                 // the next attempt
    enum code (*done)(struct decide *d, uint32_t lane); // the input says that it came out well, and what
    enum code (*fail)(struct decide *d, uint32_t lane, const struct fault *fault);
    enum code (*wake)(struct decide *d, uint32_t lane);        // the time of a wait or a gate has come
    bool (*of_day)(const struct run *run, uint32_t lane);      // that time is a moment of the wall clock, not a duration
    bool (*overdue)(const struct run *run, uint32_t lane);     // what it is part of has no time left
    enum code (*due)(struct decide *d, uint32_t step);         // a timer of a step that is no lane
    enum code (*owed)(struct decide *d);                       // RECOVER: those timers
    const char *lost, *child_late;                             // messages; child_late with its timeout for %s
    // ---- the run
    enum code (*start)(struct decide *d); // INPUT_START
    enum code (*open)(struct decide *d);  // it begins
    enum code (*again)(struct decide *d, const struct past *past, uint32_t at); // a moment of another run is recorded for this one
    enum code (*advance)(struct decide *d); // after every input: starts what can start, ends what has ended
    bool (*is_busy)(const struct run *run);   // something is to be decided beside what is in flight
    bool (*has_failed)(const struct run *run); // with nothing left to do
    enum code (*end)(struct decide *d, struct moment *end);
    bool by_hand; // its steps can be tried again, skipped and changed by a person
    // ---- the state
    enum code (*fold)(struct run *run, const struct moment *moment, uint32_t step, struct error *err);
    bool (*folds)(const struct moment *moment); // also this moment of the run itself
    enum node_state (*state)(const struct run *run, uint32_t step);     // of a step that is no lane,
    struct run_attempt (*visit)(const struct run *run, uint32_t step); // and since and until when
    uint32_t (*iteration)(const struct run *run, uint32_t step);
    struct str (*path)(const struct run *run, uint32_t step, struct arena *arena);
    struct str (*child)(struct str run, struct str path, uint32_t logical, struct arena *arena); // its id
    uint32_t (*find)(const struct run *run, struct str path, enum path_time *time);
    enum code (*output)(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                        struct json *out, struct error *err);
    bool (*make)(struct run *run); // false: out of memory
    bool (*suppose)(struct run *run, uint32_t step, enum node_state state, const struct json *value); // kernel_assume; false: likewise
    const char *(*fault)(const struct run *run); // run_fault
    void (*release)(struct run *run);
};
extern const struct run_route route_dag, route_net;

// attempt.c
// An engine that was gone within a minute of ordering an attempt may have died of it. After three of them in a row the attempt rests
// before it is ordered again, longer each time: engines that are killed together die within that rest, and are not counted.
enum { QUICK_DEATH_MS = 60000, DEATHS_AT_ONCE = 3, REST_MS = 1000, REST_MAX_MS = 30000 };
enum code attempt_order(struct decide *d, uint32_t lane) MUST_CHECK; // it has begun
enum code attempt_result(struct decide *d) MUST_CHECK;
enum code attempt_timer(struct decide *d) MUST_CHECK;
enum code attempt_lost(struct decide *d, uint32_t lane) MUST_CHECK; // nobody will tell what came out
enum code attempts_owed(struct decide *d) MUST_CHECK;               // after a crash
enum code attempts_resume(struct decide *d) MUST_CHECK;
enum code attempts_interrupt(struct decide *d) MUST_CHECK;
enum code attempts_cancel(struct decide *d) MUST_CHECK;
// Asks its executor; when it has none, it fails `otherwise` (NULL: nothing).
enum code attempt_stop(struct decide *d, uint32_t lane, const struct fault *otherwise) MUST_CHECK;
// await.c
enum code await_start(struct decide *d, uint32_t lane, const struct json *with) MUST_CHECK; // its attempt has begun
enum code await_fold(struct run *run, const struct moment *m, uint32_t lane, bool *possible, struct error *err) MUST_CHECK;
enum code await_late(struct decide *d, uint32_t lane) MUST_CHECK; // nothing came in time
enum code lane_timer(struct decide *d, uint32_t lane) MUST_CHECK; // of one that waits, has a deadline or is delayed
extern const struct fault timeout_fault; // of a visit
// TIMEOUT after so many ms, by the field that the message names; %s in it is the duration.
enum code late_fault(struct decide *d, const char *message, int64_t ms, struct fault *out) MUST_CHECK;
extern const struct fault cancelled_fault;

#endif
