// Attempts of a server of Cairn, carried by a Conductor server (ADR 0045, docs/conductor.md).
//
// A host is a worker of `cairn serve` (worker/worker.h) that executes nothing before Conductor has brought it: for every attempt that it
// is given it starts a workflow `cairn_attempt` of one task, and begins when a poll delivers that task. Cairn decides and appends;
// the order
// is always: complete in Cairn, wait until that is durable, then tell Conductor, whose answers prove nothing. For every run there is a
// workflow `cairn_run` that shows it, and whose buttons become signals.
//
// Conductor may be away, forget everything or deliver twice: what is lost is looked for, what is there twice runs nothing.
#ifndef CAIRN_CONDUCTOR_CONDUCTOR_H
#define CAIRN_CONDUCTOR_CONDUCTOR_H

#include "worker/worker.h"

// Names in Conductor.
#define CONDUCTOR_RUN "cairn_run"
#define CONDUCTOR_RUN_VERSION 2
#define CONDUCTOR_ATTEMPT "cairn_attempt"
#define CONDUCTOR_EXTERNAL "cairn_attempt_ext" // an attempt that a worker of the user's executes
#define CONDUCTOR_REPORT "cairn_report"        // the task of such a workflow that brings what came out

enum {
    CONDUCTOR_PATIENCE_MS = 60000, // so long does an attempt wait for a Conductor that is away, before it is given back
    CONDUCTOR_LINKS = 4,           // calls at once
    CONDUCTOR_INLINE_MAX = 65536   // bytes of an output that Conductor may be given
};

struct conductor_type { // steps of this kind are executed by workers of Conductor that poll for this type
    struct str kind, type;
};

struct conductor_options {
    struct fetch_link_options link; // Conductor: its URL with /api
    struct worker_options worker;   // of the server of Cairn; `carrier` is the host's own
    struct str
        site;     // names the server of Cairn in Conductor: hosts of one site look after each other's. Empty: its URL
    bool mirror;  // begin at once: Conductor shows attempts and does not deliver them
    bool recover; // a cairn_run that was terminated by hand is started again, instead of CANCEL
    const struct conductor_type *types;
    size_t type_count;
    size_t
        inline_max; // bytes of an output that are shown in Conductor; 0: only how many there are. At most CONDUCTOR_INLINE_MAX
    int64_t patience_ms; // 0 = CONDUCTOR_PATIENCE_MS
    int64_t picture_ms;  // a run's picture is sent at most so often; 0 = 1 s
    int64_t silent_ms;   // a host that has not polled for so long is gone; 0 = 60 s
};

struct conductor;

// Starts the threads. Definitions are made when Conductor answers for the first time. E_INVALID (an URL), E_NOMEM, E_LIMIT.
enum code conductor_open(const struct conductor_options *options, struct conductor **out, struct error *err) MUST_CHECK;
struct worker *conductor_worker(struct conductor *conductor); // to drain and to count
// Reports to Conductor what is over and was not reported yet, for some seconds at most. After the worker has drained.
void conductor_settle(struct conductor *conductor);
void conductor_close(struct conductor *conductor); // gives back what is at hand. NULL is fine

#endif
