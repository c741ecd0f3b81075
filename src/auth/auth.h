// Who may do what, and how that is proved and remembered.
//
//   token text --auth_token_parse--> id, hash --(note of the store)--> struct token --auth_token_matches--> principal
//   principal, operation, object --auth_decide--> decision --audit_encode--> record, stored before the effect
//
// The matrix is data (schemas/authorization.json, docs/format/authorization.md): a decision is a look-up plus the conditions
// of the cell. What the table does not list is denied. struct auth is immutable after auth_open and may be shared by threads;
// everything else here is a function of its arguments. Time and randomness come in; nothing is read, nothing waits.
#ifndef CAIRN_AUTH_AUTH_H
#define CAIRN_AUTH_AUTH_H

#include "base/sha256.h"
#include "json/json.h"

// ---- roles: a mask, since one may have several
enum role {
    ROLE_OPERATOR = 1,
    ROLE_ENGINEER = 2,
    ROLE_ADMIN = 4,
    ROLE_SYSTEM = 8,
    ROLE_WORKER = 16,
    ROLE_AUDITOR = 32,
    ROLE_PLATFORM = 64, // of the whole installation, of no tenant
    ROLE_HOST = 128,    // a worker that also passes on what people do in another system
};
enum { ROLE_COUNT = 8, ROLE_ALL = 255 };
const char *role_name(enum role role); // "operator"; "none" for 0
const char *role_word(enum role role); // "Operator", as in decision records (audit.actorRole)
enum role role_parse(struct str text); // of either; 0 when unknown

// ---- operations: X(NAME, name in the table)
#define OPERATION_LIST(X)                                                                                              \
    X(HEALTH, "health")                                                                                                \
    X(DISCOVERY, "discovery")                                                                                          \
    X(METRICS, "metrics")                                                                                              \
    X(RUN_START, "run.start")                                                                                          \
    X(RUN_GET, "run.get")                                                                                              \
    X(RUN_LIST, "run.list")                                                                                            \
    X(RUN_SEARCH, "run.search")                                                                                        \
    X(RUN_EVENTS, "run.events")                                                                                        \
    X(RUN_STREAM, "run.stream")                                                                                        \
    X(RUN_WHY, "run.why")                                                                                              \
    X(RUN_PROOF, "run.proof")                                                                                          \
    X(RUN_PAYLOAD, "run.payload")                                                                                      \
    X(STEP_OUTPUT, "step.output")                                                                                      \
    X(STEP_LOGS, "step.logs")                                                                                          \
    X(STORE_READ, "store.read")                                                                                        \
    X(RUN_BUNDLE, "run.bundle")                                                                                        \
    X(RUN_CANCEL, "run.cancel")                                                                                        \
    X(RUN_FORK, "run.fork")                                                                                            \
    X(RUN_DELETE, "run.delete")                                                                                        \
    X(RUN_ADOPT, "run.adopt")                                                                                          \
    X(LEASE_BREAK, "lease.break")                                                                                      \
    X(SIGNAL_PAUSE, "signal.pause")                                                                                    \
    X(SIGNAL_RESUME, "signal.resume")                                                                                  \
    X(SIGNAL_CANCEL, "signal.cancel")                                                                                  \
    X(SIGNAL_RETRY_STEP, "signal.retry_step")                                                                          \
    X(SIGNAL_RETRY_STEP_FORCE, "signal.retry_step_force")                                                              \
    X(SIGNAL_SKIP_STEP, "signal.skip_step")                                                                            \
    X(SIGNAL_RETRY_RUN, "signal.retry_run")                                                                            \
    X(SIGNAL_UPDATE_PARAMS, "signal.update_params")                                                                    \
    X(SIGNAL_INJECT_OVERRIDE, "signal.inject_override")                                                                \
    X(SIGNAL_UPDATE_TARGET, "signal.update_target")                                                                    \
    X(SIGNAL_EMERGENCY_STOP, "signal.emergency_stop")                                                                  \
    X(SIGNAL_ESCALATE_ALERT, "signal.escalate_alert")                                                                  \
    X(SIGNAL_READ, "signal.read")                                                                                      \
    X(APPROVAL_DECIDE, "approval.decide")                                                                              \
    X(PLAN_VALIDATE, "plan.validate")                                                                                  \
    X(PLAN_REGISTER, "plan.register")                                                                                  \
    X(PLAN_APPROVE, "plan.approve")                                                                                    \
    X(PLAN_GET, "plan.get")                                                                                            \
    X(PLAN_LIST, "plan.list")                                                                                          \
    X(ARTIFACT_GET, "artifact.get")                                                                                    \
    X(WORKER_POLL, "worker.poll")                                                                                      \
    X(WORKER_HEARTBEAT, "worker.heartbeat")                                                                            \
    X(WORKER_LOGS, "worker.logs")                                                                                      \
    X(WORKER_RESULT, "worker.result")                                                                                  \
    X(WORKER_LIST, "worker.list")                                                                                      \
    X(SCHEDULE_LIST, "schedule.list")                                                                                  \
    X(SCHEDULE_CREATE, "schedule.create")                                                                              \
    X(SCHEDULE_DELETE, "schedule.delete")                                                                              \
    X(EVENT_SEND, "event.send")                                                                                        \
    X(EVENT_LIST, "event.list")                                                                                        \
    X(QUEUE_LIST, "queue.list")                                                                                        \
    X(QUEUE_CHANGE, "queue.change")                                                                                    \
    X(LIMIT_LIST, "limit.list")                                                                                        \
    X(LIMIT_CHANGE, "limit.change")                                                                                    \
    X(ALERT_LIST, "alert.list")                                                                                        \
    X(ALERT_ACK, "alert.ack")                                                                                          \
    X(DLQ_LIST, "dlq.list")                                                                                            \
    X(DLQ_REPLAY, "dlq.replay")                                                                                        \
    X(DLQ_DROP, "dlq.drop")                                                                                            \
    X(OUTBOX_LIST, "outbox.list")                                                                                      \
    X(OUTBOX_REWIND, "outbox.rewind")                                                                                  \
    X(TOKEN_LIST, "token.list")                                                                                        \
    X(TOKEN_CREATE, "token.create")                                                                                    \
    X(TOKEN_REVOKE, "token.revoke")                                                                                    \
    X(SECRETREF_LIST, "secretref.list")                                                                                \
    X(SECRET_VALUE, "secret.value")                                                                                    \
    X(AUDIT_READ, "audit.read")                                                                                        \
    X(AUDIT_VERIFY, "audit.verify")                                                                                    \
    X(TENANT_CREATE, "tenant.create")                                                                                  \
    X(TENANT_DELETE, "tenant.delete")                                                                                  \
    X(ENGINE_DRAIN, "engine.drain")                                                                                    \
    X(CONFIG_READ, "config.read")                                                                                      \
    X(CONFIG_CHANGE, "config.change")                                                                                  \
    X(DEBUG, "debug")

enum operation {
#define X(name, text) OPERATION_##name,
    OPERATION_LIST(X)
#undef X
        OPERATION_COUNT
};
const char *operation_name(enum operation operation);                       // "run.start"
bool operation_parse(struct str text, enum operation *out);                 // false: no such operation
bool operation_of_signal(struct str type, bool force, enum operation *out); // "RETRY_STEP"; false: no such signal

// ---- who asks, and about what
struct names { // a set; empty = no limit
    const struct str *at;
    size_t count;
};
struct json names_json(struct arena *arena, struct names names); // none at all when it is empty

struct principal {
    struct str id;                       // of the token, the certificate or the user
    struct str person;                   // who answers for it, where two people have to agree; empty: it is its own
    struct str tenant;                   // empty: of no tenant, and nothing is its own
    uint32_t roles;                      // enum role
    struct names projects, environments; // limits within the tenant
    const enum operation *operations;    // limit; none = all that the roles give
    size_t operation_count;
    struct str pool;     // workers
    struct str audience; // the service that it is for; empty = any
    int64_t expires_ms;  // 0 = never
    bool revoked;
    struct str session; // of a browser, by which it asks; empty: it shows its token
    int64_t session_ms; // when that ends
    bool is_foreign; // proved by an identity provider or a certificate: there is no token of it in the store
};

// Project and environment may be empty: then it is about what the principal may see, and the caller of auth_decide narrows
// its answer to principal_sees(). An object that was not found has the tenant that was asked for and exists = false.
struct auth_object {
    struct str tenant, project, environment;
    bool exists;        // looked at for single objects only
    bool plan_approved; // run.start: a person approved this plan
    bool assigned;   // approval.decide: the principal is among those who were asked (nobody in particular: everybody)
    bool own_task;   // the task token was opened and names this object
    struct str pool; // worker.*: pool of the tasks; of a run: the principal's, where a route leads from its place to it
    struct str requested_by;         // person who made the request, or wrote the plan
    struct str agreed_by;            // the other person; empty: nobody yet
    const struct principal *subject; // token.create, token.revoke: whom the token stands for
};

struct auth_ask {
    const struct principal *principal; // NULL: no token, or one that did not match
    enum operation operation;
    const struct auth_object *object; // NULL for operations that have none
    struct str reason;
    struct str audience; // name of this service; empty: not looked at
    int64_t now_ms;
    bool unix_socket; // came over it
    bool internal;    // the engine asks for itself
};

struct decision {
    bool allowed;
    int status; // 200, 401, 403, 404
    const char
        *code; // for the answer: "", AUTHN_REQUIRED, AUTHZ_DENIED, AUTHZ_REASON_REQUIRED, AUTHZ_APPROVAL_REQUIRED,
               // NOT_FOUND
    const char
        *audit_code;   // for the audit only: also AUTHN_EXPIRED, AUTHN_REVOKED, AUTHN_AUDIENCE, AUTHZ_TENANT_FORBIDDEN,
                       // AUTHZ_SCOPE_FORBIDDEN
    const char *unmet; // the condition that failed ("not_author"); NULL when it is none of those
    enum role effective;    // least permissive of the roles that suffice; 0: none
    bool needs_reason, p1;  // of that role's cell
    bool payload_redacted;  // every role that suffices has it so
    bool requires_approval; // would be allowed when another person agrees
};

struct auth;
// The table that is carried inside the binary, or `table` when it is not empty. E_INVALID (which row and why), E_NOMEM.
// A table must have every operation and no other.
enum code auth_open(struct str table, struct arena *arena, struct auth **out, struct error *err) MUST_CHECK;
// Everything: token, roles, tenant, scope, conditions. An answer of 404 for a foreign object equals that for an absent one.
struct decision auth_decide(const struct auth *auth, const struct auth_ask *ask);
// Whether some role of the principal reads runs (run.get) with what they were given and gave.
bool auth_sees_payloads(const struct auth *auth, const struct principal *principal);
// Before the object is looked up: token and roles only. Denied here is denied whatever the object; allowed means nothing yet.
struct decision auth_precheck(const struct auth *auth, const struct auth_ask *ask);
// For lists and streams: is an object of this place among what the principal may see?
bool principal_sees(const struct principal *principal, struct str tenant, struct str project, struct str environment);
struct str principal_person(const struct principal *principal);
// The person of a token that `maker` makes: the maker's. Empty, so that the new token is a person of its own, when the maker is a token
// with the role platform: an installation without an identity provider has no other way to tell its people apart.
struct str principal_passes_on(const struct principal *maker);
// The least permissive of these; 0 when there are none.
enum role auth_least(const struct auth *auth, uint32_t roles);

// ---- tokens: cairn_<id>_<secret>, 80 and 256 random bits in base 32 (lower case, without i, l, o, u)
enum {
    TOKEN_ENTROPY = 42, // bytes
    TOKEN_ID_SIZE = 16,
    TOKEN_SECRET_SIZE = 52,
    TOKEN_SIZE = 6 + TOKEN_ID_SIZE + 1 + TOKEN_SECRET_SIZE, // without NUL
};

// What the store keeps (space "token", key id). The secret itself is nowhere.
struct token {
    struct str id;
    struct digest secret;       // SHA-256
    struct principal principal; // its id is the token's; revoked = revoked_ms != 0
    struct str name;            // for people
    struct str created_by;
    int64_t created_ms, revoked_ms; // revoked_ms 0: it is not
};

// Text to hand out once, its id and the hash to keep.
void auth_token_make(const uint8_t entropy[TOKEN_ENTROPY], char text[TOKEN_SIZE + 1], struct str *id,
                     struct digest *secret);
// False when the form is wrong. `id` borrows `text`.
bool auth_token_parse(struct str text, struct str *id, struct digest *secret) MUST_CHECK;
// `stored` is NULL for an unknown id: that costs the same as a wrong secret. Constant time. Says nothing of expiry and
// revocation: auth_decide does.
bool auth_token_matches(const struct token *stored, const struct digest *presented) MUST_CHECK;
// Note value: canonical JSON. Decoding borrows `bytes`; E_CORRUPT when it is not what encode wrote. E_NOMEM, E_LIMIT.
enum code auth_token_encode(const struct token *token, struct arena *arena, struct buf *out,
                            struct error *err) MUST_CHECK;
enum code auth_token_decode(struct str bytes, struct arena *arena, struct token *out, struct error *err) MUST_CHECK;
// "Bearer <token>" of an Authorization header; empty when it is none.
struct str auth_bearer(struct str header);

bool digest_same(const struct digest *a, const struct digest *b); // in constant time

// ---- task tokens (A7): what a worker holds for one attempt, and can use for nothing else
struct task_key {
    uint8_t b[32]; // random, of this installation
};

struct task_claim {
    struct str tenant, run, step;
    uint32_t logical, engine; // attempt ids
    uint64_t epoch;           // of the engine that gave the task
    struct str lease;
};

// Appends "ctask_<claim>_<mac>" (letters, digits, underscores); `out` fails when it is full.
void auth_task_seal(const struct task_key *key, const struct task_claim *claim, struct buf *out);
// E_DENIED unless this key sealed exactly this; E_NOMEM. Whether the attempt is still the current one is for the caller to say.
enum code auth_task_open(const struct task_key *key, struct str text, struct arena *arena, struct task_claim *out,
                         struct error *err) MUST_CHECK;

// ---- rate limits: never more than `quota` in any `window_s` seconds, per rule and key
// Memory is bounded: a table of fixed size in which, when it is full, a key with few uses is forgotten. One thread at a time.
struct rate_rule {
    const char *name; // in the headers
    uint32_t quota;   // 0: nothing is let through
    uint32_t window_s;
};
extern const struct rate_rule rate_failed_source; // failed authentications of an address
extern const struct rate_rule rate_failed_id;     // and of a token id
extern const struct rate_rule rate_signals;       // of a run
extern const struct rate_rule rate_starts;        // of a tenant

struct rate_answer {
    bool allowed;
    uint32_t remaining;
    int64_t retry_ms; // until one more is let through; 0 when allowed
    int64_t reset_ms; // until the whole quota is there again
};

struct rates;
// `seed` is random and secret: nobody can choose keys that fall together.
enum code rates_open(struct arena *arena, size_t capacity, const uint8_t seed[16], struct rates **out,
                     struct error *err) MUST_CHECK;
struct rate_answer rates_take(struct rates *rates, const struct rate_rule *rule, struct str key,
                              int64_t now_ms);                          // counts one, unless it is refused
void rate_policy_header(const struct rate_rule *rule, struct buf *out); // "starts";q=100;w=10
void rate_header(const struct rate_rule *rule, const struct rate_answer *answer, struct buf *out); // "starts";r=50;t=30
int64_t rate_retry_after(const struct rate_answer *answer);                                        // seconds, >= 1

// ---- audit: a chain of records per tenant (the tenant "" has what belongs to none)
enum audit_outcome { AUDIT_GRANTED = 1, AUDIT_DENIED, AUDIT_COMPLETED, AUDIT_FAILED };

struct audit_head { // where a chain ends: number and hash of its last record; zero = nothing yet
    uint64_t seq;
    struct digest hash;
};

struct audit_record {
    uint64_t seq; // from 1, dense
    struct str id;
    int64_t at_ms;
    struct str tenant, project, environment;  // of what it is about; the last two empty: of the whole tenant
    uint32_t engine_attempt, logical_attempt; // of the run, or of the step, that it is about; 0: of neither, or not known here
    struct str actor, actor_type, actor_role; // type: none, token, user (of an identity provider), worker, system
    struct str action;                        // operation_name, or an administrative act
    struct str resource_type, resource;
    enum audit_outcome outcome;
    struct str code, reason;            // code: decision.audit_code; reason: what the actor said
    struct str ip, user_agent, request; // as they came
    struct json details;                // object; type 0 = none
    struct digest previous;             // hash of the record before
};

// Actor, role, action, outcome, code and reason of a decision; the rest is the caller's.
struct audit_record audit_of(const struct auth_ask *ask, const struct decision *decision);
// Numbers the record after *head, writes its canonical JSON and moves *head on. Text from outside is repaired (UTF-8) and cut,
// so that no caller can make a record that cannot be stored. E_NOMEM, E_LIMIT: *head is as it was.
enum code audit_encode(struct audit_record *record, struct audit_head *head, struct arena *arena, struct buf *out,
                       struct error *err) MUST_CHECK;
enum code audit_decode(struct str bytes, struct arena *arena, struct audit_record *out, struct error *err) MUST_CHECK;
void audit_key(struct str tenant, uint64_t seq, struct buf *out); // key of its note: tenant, '/', 16 hex digits
// The end of a chain as it is noted (space "audit.head"): its key, and its value.
void audit_head_key(struct str tenant, struct buf *out);
bool audit_head_encode(const struct audit_head *head, struct arena *arena, struct buf *out) MUST_CHECK;
enum code audit_head_decode(struct str bytes, struct arena *arena, struct audit_head *out,
                            struct error *err) MUST_CHECK;

enum audit_fault { AUDIT_INTACT, AUDIT_MALFORMED, AUDIT_CHANGED, AUDIT_MISSING, AUDIT_ORDER };
const char *audit_fault_name(enum audit_fault fault); // "changed"
struct audit_verdict {
    enum audit_fault fault;
    size_t at;              // index of the first record that does not follow; `count` when the end is missing
    uint64_t seq;           // the number that was expected there
    struct audit_head head; // of what is intact
};
// Do these records, in this order, follow `from`? `to` (may be NULL) is where they must end: without it, records missing at the
// end cannot be seen. A long chain is verified in pages, each from the head of the one before. E_NOMEM.
enum code audit_verify(const struct str *records, size_t count, const struct audit_head *from,
                       const struct audit_head *to, struct arena *arena, struct audit_verdict *out,
                       struct error *err) MUST_CHECK;

#endif
