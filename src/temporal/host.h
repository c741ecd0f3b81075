// The host: runs of this engine as workflows of a Temporal server, their attempts as activities.
//
// The engine stays the only writer of the log, and the log is the truth. Temporal gives what it is good at: attempts wait for workers of
// any kind and place, the death of a worker is noticed, people see and steer runs by Temporal's own tools. The host keeps what the engine
// wants outside; whenever Temporal hands it a workflow task, it compares that with what the workflow's history has pending and answers with
// the difference. So a task that is lost, repeated or reset changes nothing.
//
//  - An attempt becomes an activity that Temporal tries once. When its worker is gone, the engine hears that it is lost, and names the next
//    engine attempt in the log before that starts, as with every other executor.
//  - Signals that a person sends by Temporal (temporal workflow signal, cancel) go to the inbox of the run, with an id that follows from
//    their place in the history: the same event is one signal, however often it is read.
//  - A workflow that was ended behind the host's back (terminated, timed out, deleted) stops its run.
//
//   temporal_host_open -> engine_options.pools = temporal_host_tools() -> engine_open -> temporal_host_attach
//   -> temporal_host_serve, temporal_host_event for every event of the engine ... temporal_host_shut -> engine_close -> temporal_host_free
//
// struct temporal_host is shared: mutex inside. Threads of its own poll for tasks; one looks after runs.
#ifndef CAIRN_TEMPORAL_HOST_H
#define CAIRN_TEMPORAL_HOST_H

#include "engine/engine.h"
#include "temporal/temporal.h"

struct temporal_host;

struct temporal_host_options {
    struct temporal_settings settings;
    struct str store; // its URL: signals are posted there, runs are looked up there
    const struct contract *contract;
    uint32_t readers; // threads that read workflow tasks; 0 = 4
};

// The store must be there. E_UNREACHABLE: nobody answers at the address; E_NOT_FOUND: no such namespace; E_DENIED.
enum code temporal_host_open(const struct temporal_host_options *options, struct temporal_host **out,
                             struct error *err) MUST_CHECK;
struct tools *temporal_host_tools(struct temporal_host *host); // engine_options.pools, with nothing executed elsewhere
// From now on tasks can be answered; which are polled for, temporal_host_serve says.
enum code temporal_host_attach(struct temporal_host *host, struct engine *engine, struct error *err) MUST_CHECK;
void temporal_host_event(struct temporal_host *host, const struct engine_event *event); // engine thread
// The engine has taken up a run that had not ended: its workflow is looked for, whether the run wants something of it or only waits.
void temporal_host_adopted(struct temporal_host *host, struct str tenant, struct str run);
// Of several engines over one store each drives the runs of its shards (S17), and each of these has a queue of tasks: from now on those of
// `shards` (bit n - 1 for shard n) are polled for, and those of runs without a shard where `shardless` says so. Any thread.
void temporal_host_serve(struct temporal_host *host, uint64_t shards, bool shardless);
// The engine has let go of a run that has not ended. What is outside of it goes on: who drives it next claims that. Engine thread.
void temporal_host_left(struct temporal_host *host, struct str tenant, struct str run);
const struct temporal_settings *temporal_host_settings(const struct temporal_host *host); // with the defaults filled in
// Instead of serving all runs without a shard: of this run and its children only, in a queue of their own (BASE.runs.RUN). Before
// temporal_host_attach. E_NOMEM.
enum code temporal_host_only(struct temporal_host *host, struct str run, struct error *err) MUST_CHECK;
// Waits until the workflows of all runs that have ended are closed, for so long at most, and deletes their values. False: some are not.
bool temporal_host_settle(struct temporal_host *host, int64_t most_ms);
void temporal_host_shut(struct temporal_host *host); // nothing is delivered to the engine afterwards
void temporal_host_free(struct temporal_host *host); // NULL is fine

#endif
