// Temporal, as Cairn uses it: a client of one namespace, and the words that hosts and workers of Cairn agree on.
//
// A run is a workflow of type cairn.run.v1 with the id TENANT/RUN; its tasks wait in the queue BASE.runs, or BASE.runs.N where its store
// has shards and it is of shard N. The host that drives the run polls it (temporal/host.h). An attempt is an activity with the id
// STEP:LOGICAL:ENGINE. Its type is "cairn." and the kind of its step, its input the task as workers know it (docs/format/worker.md); of
// a function of the host its type is the function's name and its input the function's, so that any worker of any SDK can serve it.
// Activities wait in BASE, those of another pool than "default" in BASE.POOL.
#ifndef CAIRN_TEMPORAL_TEMPORAL_H
#define CAIRN_TEMPORAL_TEMPORAL_H

#include "base/text.h"
#include "grpc/grpc.h"
#include "json/json.h"
#include "proto/temporal.h"

#define TEMPORAL_METHOD(name) "/temporal.api.workflowservice.v1.WorkflowService/" name
#define TEMPORAL_OPERATOR(name) "/temporal.api.operatorservice.v1.OperatorService/" name
#define TEMPORAL_WORKFLOW "cairn.run.v1"
#define TEMPORAL_STEP_PREFIX "cairn."
#define TEMPORAL_WAKE "cairn.wake" // a signal that only asks for a workflow task
#define TEMPORAL_QUEUE "cairn"     // the base, where nothing else is said
#define TEMPORAL_NAMESPACE "default"
#define TEMPORAL_ATTRIBUTES {"tenantId", "planId"} // search attributes of workflows, Keyword each

enum {
    TEMPORAL_POLL_MS = 70000, // the server answers a poll after 60 s
    TEMPORAL_CALL_MS = 10000,
    // The server ends a whole run whose activity has an input of 2 MiB; so what is sent is smaller, and that is checked before.
    TEMPORAL_VALUE_MAX = 3 << 19,
    TEMPORAL_ID_MAX = 1000,
    TEMPORAL_CACHED_RUNS = 2000, // where nothing is said
    TEMPORAL_PAYLOAD_ROOM = 1 << 21
};

struct temporal_settings { // texts live as long as the client
    struct str address;   // HOST:PORT
    struct str namespace; // empty = TEMPORAL_NAMESPACE
    struct str queue;     // the base; empty = TEMPORAL_QUEUE
    bool tls;
    struct str ca_file, cert_file, key_file, server_name;
    struct str key_variable, key_file_path; // an API key by reference
    // Of a host: so long may a worker be silent (30 s), and so many events of a workflow's history are enough (1000). 0 = that.
    uint32_t heartbeat_s, history_events;
    bool searchable;      // its workflows have the search attributes of TEMPORAL_ATTRIBUTES
    uint32_t cached_runs; // of so many it knows the history and is sent only what is new of it; 0 = none
};
// {"address":"HOST:PORT","namespace":..,"queue":..,"tls":true|{"caFile":..,"certFile":..,"keyFile":..,"serverName":..},
// "apiKeyVariable":..,"apiKeyFile":..,"heartbeatSeconds":..,"historyEvents":..,"cachedRuns":..,
// "searchAttributes":BOOL}. Borrows `config`. E_INVALID names the place.
enum code temporal_settings_parse(const struct json *config, struct arena *arena, struct temporal_settings *out,
                                  struct error *err) MUST_CHECK;

struct temporal;

// Nothing is sent yet. As grpc_open.
enum code temporal_open(const struct temporal_settings *settings, struct temporal **out, struct error *err) MUST_CHECK;
void temporal_shut(struct temporal *temporal);  // grpc_shut
void temporal_shut_polls(struct temporal *temporal); // grpc_shut_polls
void temporal_close(struct temporal *temporal); // NULL is fine
const struct temporal_settings *temporal_settings_of(const struct temporal *temporal); // with the defaults filled in
struct str temporal_identity(const struct temporal *temporal); // of this process: "cairn@HOST:PID"

bool temporal_is_away(struct temporal *temporal, struct error *why); // grpc_is_away

struct temporal_call {
    const char *method; // TEMPORAL_METHOD
    const struct proto_message *in;
    const void *request;
    const struct proto_message *out; // NULL: nothing of the answer is read
    void *answer;
    int64_t timeout_ms; // 0 = TEMPORAL_CALL_MS
    enum grpc_class retry;
    int64_t budget_ms;
};
// Waits. What the answer points to is in `arena`. *status (may be NULL) is gRPC's. As grpc_call; E_INVALID: the answer is no message.
enum code temporal_ask(struct temporal *temporal, const struct temporal_call *call, struct arena *arena, int *status,
                       struct error *err) MUST_CHECK;
// Does not wait; as grpc_send. `answer` is not looked at. *id (may be NULL) names the call for temporal_cancel.
enum code temporal_send(struct temporal *temporal, const struct temporal_call *call, grpc_done done, void *context, uint64_t *id,
                        struct error *err) MUST_CHECK;
void temporal_cancel(struct temporal *temporal, uint64_t id); // grpc_cancel

// Whether the namespace has the search attributes of TEMPORAL_ATTRIBUTES: E_NOT_FOUND names the first that it does not have.
enum code temporal_attributes_look(struct temporal *temporal, struct error *err) MUST_CHECK;

// ---- payloads: one JSON value
struct temporal_json { // room for one
    struct temporal_entry encoding;
    struct temporal_payload payload;
    struct temporal_payloads payloads;
};
const struct temporal_payloads *temporal_json(struct temporal_json *room, struct str json); // borrows `json`
// The first payload, or "null". False: it is neither JSON nor nothing.
bool temporal_json_read(const struct temporal_payloads *payloads, struct str *out);

struct temporal_duration temporal_duration_of(int64_t ms);
int64_t temporal_duration_ms(const struct temporal_duration *duration); // NULL: 0

// ---- names, in `arena`; no ptr: out of memory
struct str temporal_activity_queue(struct str base, struct str pool, struct arena *arena);
struct str temporal_runs_queue(struct str base, uint32_t shard, struct arena *arena); // shard 0: of runs that have none
// "TENANT/RUN" and "STEP:LOGICAL:ENGINE" taken apart. False: it is none.
bool temporal_workflow_parse(struct str id, struct str *tenant, struct str *run);
bool temporal_activity_parse(struct str id, struct str *step, uint32_t *logical, uint32_t *engine);

#endif
