// Providers (C-07): the names by which a plan asks for an engine. Temporal and Conductor are behaviour profiles of the one
// native engine, mock is the profile of tests, cairn is the engine as it is.
#ifndef CAIRN_CONTRACT_PROFILE_H
#define CAIRN_CONTRACT_PROFILE_H

#include "contract/contract.h"
#include "program/program.h"

enum provider { PROVIDER_CAIRN = 1, PROVIDER_TEMPORAL, PROVIDER_CONDUCTOR, PROVIDER_MOCK };
const char *provider_name(enum provider provider); // "cairn"
enum provider provider_parse(struct str text);     // 0 when it is none; "any" and "auto" are none

// How a run behaves (C-17, C-44).
struct behaviour {
    enum provider provider;
    bool drains;     // a pause is DRAINING while steps are in flight, for at most the drain timeout
    bool interrupts; // with cancelOnPause a pause stops what is in flight; it runs again after RESUME
    bool rotates;    // at its limits it goes on in a new segment (ADR 0035); others fail there
};
const struct behaviour *behaviour_of(struct str profile); // of start_facts.profile; cairn's own when it is none

// ---- what a provider can do (requirements §3.2): X(NAME, value, cairn, temporal, conductor, mock)
//   N: it can. E: it cannot, but something that it can do stands in for it. D: neither.
#define CAPABILITY_LIST(X)                                                                                             \
    X(BASIC_EXECUTION, "basic-execution", N, N, N, N)                                                                  \
    X(PAUSE_NATIVE, "signal.pause.native", N, N, E, N)                                                                 \
    X(PAUSE_EMULATED, "signal.pause.emulated", N, E, N, N)                                                             \
    X(CANCEL_COOPERATIVE, "cancel.cooperative", N, N, D, N)                                                            \
    X(CANCEL_FORCED, "cancel.forced", N, E, N, N)                                                                      \
    X(CHILD_WORKFLOWS, "workflow.child.workflows", N, N, D, N)                                                         \
    X(DYNAMIC_FAN_OUT, "workflow.fan.dynamic", N, N, D, N)                                                             \
    X(PARALLEL_GROUPS, "workflow.fan.parallel", N, N, N, N)                                                            \
    X(QUERY_WORKFLOW_STATE, "query.workflow.state", N, N, E, N)                                                        \
    X(QUERY_TASK_STATE, "query.task.state", N, E, N, N)                                                                \
    X(DETERMINISTIC_REPLAY_FULL, "replay.full", N, N, D, N)                                                            \
    X(DETERMINISTIC_REPLAY_TASK, "replay.task", N, E, N, N)                                                            \
    X(CONTINUE_AS_NEW, "workflow.continue.as.new", N, N, E, N)                                                         \
    X(SIGNALS_RATE_LIMIT, "signals.rate.limit", N, N, N, N)                                                            \
    X(MULTI_SIGNAL_HANDLING, "signals.concurrent", N, N, D, N)                                                         \
    X(HISTORY_ROTATION, "history.rotation", N, E, E, N)

enum capability {
    CAPABILITY_NONE = 0,
#define X(name, value, cairn, temporal, conductor, mock) CAPABILITY_##name,
    CAPABILITY_LIST(X)
#undef X
};
#define CAPABILITY_LAST CAPABILITY_HISTORY_ROTATION
enum support { SUPPORT_N = 1, SUPPORT_E, SUPPORT_D };
const char *capability_value(enum capability capability);
enum capability capability_parse(struct str value); // CAPABILITY_NONE when unknown
enum support capability_support(enum capability capability, enum provider provider);
// What a real server that carries runs (docs/temporal.md, docs/conductor.md) does of them by means of its own. The rest is the engine's
// doing, whatever carries a run. The matrix above is about adapters, and a plan is held against that alone.
// X(capability, by Temporal, by Conductor)
#define CARRIED_LIST(X)                                                                                                \
    X(BASIC_EXECUTION, true, true)                                                                                     \
    X(CANCEL_COOPERATIVE, true, false)                                                                                 \
    X(CANCEL_FORCED, true, false)                                                                                      \
    X(CONTINUE_AS_NEW, true, false)
bool capability_carried(enum capability capability, enum provider provider);

// What a deployment says about adapters (C-07).
struct adapters {
    enum provider usual;   // of a start and a plan that name none; 0: cairn, in strict mode temporal
    bool strict;           // only the providers of the contract: cairn is none
    struct str space, url; // namespace of temporal, conductorUrl; empty: run_ref_of
};

enum provider adapters_usual(const struct adapters *adapters); // of NULL: cairn

struct capability_report {
    enum provider provider; // who will run it; 0: that is one of the errors
    bool refused;           // status ERRORS: there must be no run
    bool degraded;          // something is emulated or missing: RunStarted says so
    const char *code;       // of the first error; NULL when there is none
    struct str message;
    struct json json;     // ValidationReport, schemas/validation-report.json
    struct json warnings; // its warnings, an array
};
// A plan against the provider that is to run it (WE-4, C-20). `adapter` is what was settled before the start: by the request
// or by configuration; empty or "any" leaves it to the plan, and a plan that leaves it open, too, gets what
// `adapters` says (NULL: cairn). There is no "auto" (WE-2.1g). What is missing is an error when the plan says reject
// (or nothing), a warning when it says emulate and something stands in for it, or degrade. False: out of memory.
bool capability_validate(const struct program *program, struct str adapter, const struct adapters *adapters,
                         int64_t now_ms, struct arena *arena,
                         struct capability_report *out) MUST_CHECK;

// ---- EngineRunRef (WE-2.1.1): how callers name a run
struct run_ref {
    enum provider provider;
    struct str workflow_id, run_id; // always
    struct str space;               // temporal: namespace
    struct str task_queue;          // temporal, may be empty
    struct str url;                 // conductor: conductorUrl. Never called: a name, not an address
    struct str store;               // cairn, may be empty
};
// The reference of a run, by what it was started with: the one that a start returns. It borrows. A namespace that was not configured is
// the tenant, a conductorUrl RUN_REF_URL; taskQueue is the queue of the run.
#define RUN_REF_URL "http://localhost"
struct run_ref run_ref_of(const struct run_ids *ids, const struct start_facts *start);
// Whether a reference that a caller gave names the run whose own reference is `own`. Cairn's names every run of a store, which it calls
// local; another provider's those that run as its own, and only with their namespace or address. A text has the host of an address alone.
bool run_ref_names(const struct run_ref *given, const struct run_ref *own);
// A reference as callers write it, in one line or as an object in JSON; what has neither form is a run id (run_ref_is).
bool run_ref_is(struct str text);
enum code run_ref_told(struct str text, struct arena *arena, struct run_ref *out, struct error *err) MUST_CHECK;
// E_INVALID with ADAPTER_INVALID_RUN_REF: a member is missing, unknown or malformed. `out` borrows.
enum code run_ref_read(const struct json *value, struct run_ref *out, struct error *err) MUST_CHECK;
bool run_ref_write(const struct run_ref *ref, struct arena *arena, struct json *out) MUST_CHECK;
// The text form, "<provider>://<namespace, host or store>/<workflow type>/<workflowId>/<runId>" (C-26). `type` is its third
// part; in `out` an empty one is left out. E_INVALID as above; a ptr of NULL: out of memory.
enum code run_ref_parse(struct str text, struct run_ref *out, struct error *err) MUST_CHECK;
struct str run_ref_format(const struct run_ref *ref, struct str type, struct arena *arena);

#endif
