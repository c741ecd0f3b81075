// Document to program: what the kernel runs. Immutable after program_load, content-hashed, shared by every run of the
// same document (reference count).
//
//   text --doc_tree--> tree --plan.c | nodes.c | playbook.c--> steps with positions --compile.c--> program
//
// A program is a net of steps: each has a join (dependencies and a trigger rule), a body (one task of some kind with a
// retry policy), perhaps a condition, and, when it is a loop, a scope of child steps that run once per iteration.
// Steps are numbered in declaration order, children of a loop directly after everything of their parent's scope.
#ifndef CAIRN_PROGRAM_PROGRAM_H
#define CAIRN_PROGRAM_PROGRAM_H

#include "base/map.h"
#include "base/sha256.h"
#include "doc/doc.h"
#include "expr/expr.h"

enum document_kind { DOCUMENT_PLAN = 1, DOCUMENT_NODES, DOCUMENT_PLAYBOOK };

// X(name, text in plans, what it does)
#define STEP_KIND_LIST(X)                                                                                              \
    X(NOOP, "noop", "does nothing")                                                                                    \
    X(ECHO, "echo", "its message is its output")                                                                       \
    X(MERGE, "merge", "collects the outputs of its dependencies")                                                      \
    X(EXEC, "exec", "runs a program with arguments, no shell")                                                         \
    X(SHELL, "shell", "runs a command line with bash")                                                                 \
    X(SCRIPT, "script", "runs a script with sh, python3 or node")                                                      \
    X(WAIT, "wait", "waits for a duration or until a moment")                                                          \
    X(APPROVAL, "approval", "waits for a person")                                                                      \
    X(EVENT, "event", "waits for an event from outside")                                                               \
    X(SUBRUN, "subrun", "runs another document as a run of its own")                                                   \
    X(CANCEL, "cancel", "cancels the run")                                                                             \
    X(LOOP, "loop", "repeats its child steps until a condition holds")                                                 \
    X(HOST, "host", "calls a function of the program that embeds the engine")                                          \
    X(TASKS, "tasks", "runs the tasks of a playbook's step")

enum step_kind {
#define X(name, text, what) STEP_##name,
    STEP_KIND_FIRST_UNUSED = 0,
    STEP_KIND_LIST(X)
#undef X
};

enum backoff { BACKOFF_NONE = 1, BACKOFF_LINEAR, BACKOFF_EXPONENTIAL };
enum on_failure { ON_FAILURE_FAIL_RUN = 1, ON_FAILURE_HOLD };
enum retry_on { RETRY_TRANSIENT = 1, RETRY_ALL };

struct retry_policy {
    uint32_t max_attempts; // total tries, >= 1
    int64_t delay_ms;      // before the second try
    enum backoff backoff;  // none: constant; linear: delay*n; exponential: delay*2^(n-1); n = retries so far + 1
    int64_t max_delay_ms;  // 0 = no cap
    double jitter;         // 0..1, share of the delay that is random; 0 by default
    enum retry_on on;      // transient: only failures marked retryable
    const struct str *non_retryable; // error codes
    uint32_t non_retryable_count;
};

struct secret_ref {
    struct str name; // environment variable for the step
    struct str ref;  // "env:NAME", "file:/path" or "secret://PROVIDER/NAME"
};

struct artifact_decl {
    struct str path; // as written; relative to $ARTIFACTS_DIR
    struct str kind;
};

#define PROGRAM_TOP UINT32_MAX
enum { FAN_OUT_MAX = 1000, FAN_OUT_PARALLEL = 5 }; // items of a list of child runs; how many at a time by default

// What becomes of an output that is longer than its limit.
enum overflow {
    OVERFLOW_FAIL = 0, // the attempt fails, with the size and the limit
    OVERFLOW_TRUNCATE, // its beginning is kept, with a mark at its end
    OVERFLOW_ARTIFACT, // all of it is a file of the run, and the output is a reference to that
};
#define OVERFLOW_NAMES {"fail", "truncate", "artifact", NULL}

// How many attempts may work at once, and how many may begin in a time, of all steps and runs of a tenant that name it.
struct step_limit {
    struct str name;
    uint32_t concurrency; // 0 = as many as there are
    uint32_t starts;      // in any per_ms; 0 = as many as there are
    int64_t per_ms;
};
#define LIMIT_RATE_MOST "1000 in a week"
bool limit_name_valid(struct str name);
bool limit_rate_parse(struct str text, uint32_t *starts, int64_t *per_ms); // "10/s", "5/30s"
void limit_rate_write(const struct step_limit *limit, struct buf *out);
// {"concurrency":2,"rate":"10/s"}; what is missing stays as it is. E_INVALID.
enum code step_limit_read(const struct json *value, struct step_limit *out, struct error *err) MUST_CHECK;

struct program_step {
    struct str id;   // as written, unique in its scope
    struct str name; // for people; the id when not given
    enum step_kind kind;
    struct str function; // HOST: the kind as written, which is the name of the function
    enum trigger_rule rule;
    const uint32_t *deps; // step indexes, same scope, as written, no repeats
    const uint32_t *dependents;
    uint32_t dep_count, dependent_count;
    const struct when *when; // NULL: no condition (or broken)
    struct str when_text;
    bool when_broken; // node workflows: an unparseable condition is false, with a warning
    bool always_run;
    bool undo; // it undoes its only dependency (`compensate`), when the run fails or is cancelled
    bool condition; // until_bash of a loop: exit 0 = true, else false; never fails by its exit code
    struct retry_policy retry;
    int64_t timeout_ms; // 0 = none
    enum on_failure on_failure;
    // Inputs of the kind, not yet substituted, always an object with these members:
    //   ECHO message · MERGE [message] · EXEC argv [env cwd stdin] · SHELL command [env cwd] · SCRIPT runtime code [file env cwd args]
    //   WAIT durationMs | until · APPROVAL message [timeoutMs onTimeout(approve|reject|fail) captureResponse] · EVENT name [correlation]
    //   SUBRUN document [inputs arguments fanOut{items as maxParallel join}]
    //   CANCEL reason · LOOP (nothing) · NOOP (nothing) · HOST whatever the document says
    struct json with;
    const struct secret_ref *secrets;
    const struct artifact_decl *artifacts;
    uint32_t secret_count, artifact_count;
    enum overflow overflow; // EXEC, SHELL, SCRIPT, HOST
    const struct step_limit *limit; // of those kinds; NULL: none
    uint32_t scope;       // index of the enclosing LOOP step, or PROGRAM_TOP
    uint32_t first_child; // LOOP: children are first_child .. first_child + child_count - 1, the until step last
    uint32_t child_count, max_iterations;
    uint32_t until; // LOOP: index of the until step; PROGRAM_TOP when the loop runs once per max_iterations
    const struct program *child; // SUBRUN
    uint32_t line, column;
};

enum part_kind { PART_DOCUMENT = 1, PART_SCRIPT };

// A file that the program was made of besides the main document: a child document or a named script. Stored with the run,
// so that a resumed run executes the same bytes (I20).
struct program_part {
    enum part_kind kind;
    struct str from;    // file that asked for it
    struct str request; // name as written there
    struct str runtime; // scripts: "sh", "python3", "node"
    struct str file;    // where it was found
    struct digest sha256;
    struct str text;
};

enum pause_wish { WISH_NONE, WISH_YES, WISH_NO }; // to what may be said in several places

struct program {
    enum document_kind kind;
    enum pause_wish cancel_on_pause;
    struct str file;      // of the main document, as given
    struct str text;      // its bytes
    struct digest sha256; // of `text`
    char sha256_hex[SHA256_HEX + 1];
    struct str plan_id, plan_version, schema_version; // nodes: name, first 12 hex of sha256 (C-64), ""
    struct str name, description;
    const struct str *tags;
    int64_t drain_timeout_ms; // plan: how long a pause waits for what is in flight; 0 = not said
    struct str
        target_adapter;  // plan metadata: "temporal", "conductor", "mock", "any", "auto", "cairn"; empty = not said
    struct str fallback; // plan metadata: "reject", "emulate", "degrade"; empty = not said (C-20: reject)
    const struct str *capabilities; // plan metadata: what the plan requires; all of them known
    const struct step_limit *limits; // that steps and tasks may name
    const struct json *schedule; // as it is written (schedule/schedule.h); NULL: none
    const struct net *net; // playbooks: program/net.h; NULL otherwise
    struct json
        inputs; // declared defaults, an object; null for an input without one. Playbooks: the workload as written
    struct str
        *input_types;     // beside the members of `inputs`: "string", "integer", ...; empty when anything may be given
    struct str *required; // inputs that the start of a run has to give
    struct program_step *steps;
    uint32_t tag_count, capability_count, required_count, part_count, limit_count;
    uint32_t step_count;
    uint32_t top_count;               // steps of the top scope are 0 .. top_count - 1
    uint32_t undo_count;              // the last of them are those that undo others
    const uint32_t *order;            // top scope in topological (Kahn, declaration order inside a layer) order
    const struct program_part *parts; // of this program and its children
    struct map ids;                   // for program_find
    struct arena arena;
    int references;         // use program_retain/release
    bool requires_approval; // plan metadata: the run waits PENDING for RunApproved
};

// Steps of one document, those in loops included. Its other limits (size, values, dependencies) and those of its runs (events,
// memory) are for so many, and grow in proportion where more are allowed: program_scale times.
enum { PROGRAM_STEPS = 10000, PROGRAM_STEPS_MAX = 100000 };

static inline uint32_t program_scale(uint32_t steps)
{
    return steps <= PROGRAM_STEPS ? 1 : (steps + PROGRAM_STEPS - 1) / PROGRAM_STEPS;
}

struct program_loader {
    void *context;
    uint32_t steps_max; // up to PROGRAM_STEPS_MAX; 0 = PROGRAM_STEPS
    // Finds and reads what `request` names, seen from the file `from`: sets `file` and `text`, in `arena`. E_NOT_FOUND: err lists
    // the places looked at. NULL: there are none.
    enum code (*load)(void *context, struct program_part *part, struct arena *arena, struct error *err);
    // Whether `kind` is a function of the host (HOST). NULL: there are none, and such a kind is a mistake.
    bool (*host_kind)(void *context, struct str kind);
    // Whether `kind` is a tool of playbooks that a plug-in brings. NULL: host_kind is asked.
    bool (*task_kind)(void *context, struct str kind);
    // Whether the tool looks at that field: another one is a warning. NULL: nobody knows.
    bool (*task_field)(void *context, struct str kind, struct str field);
};

// E_INVALID: there is at least one error diagnostic and *out is NULL. Warnings alone give a program.
// `loader` may be NULL: then documents that need other files are refused.
enum code program_load(struct str text, struct str file, const struct program_loader *loader,
                       struct diagnostics *diagnostics, struct program **out, struct error *err) MUST_CHECK;
struct program *program_retain(const struct program *program);
void program_release(struct program *program);
uint32_t program_find(const struct program *program, uint32_t scope, struct str id); // PROGRAM_TOP when absent
// The declared type of an input; empty when it has none, or when there is no such input.
struct str program_input_type(const struct program *program, struct str name);
// Whether a value may be given for an input of this type (empty: any). null is of every type. Nothing is converted.
bool input_type_fits(struct str type, const struct json *value);
// Whether two steps of that id do the same: body, dependencies, rule, condition, secrets, artifacts, child document, children.
// `policy`: and try, wait and fail by the same rules (retry, timeout, on_failure; always compared inside loops).
bool program_same_step(const struct program *pa, uint32_t step_a, const struct program *pb, uint32_t step_b,
                       bool policy);
// Parts of that; the order in which dependencies are written means nothing.
bool program_same_deps(const struct program *pa, const struct program_step *a, const struct program *pb,
                       const struct program_step *b);
bool program_same_secrets(const struct program_step *a, const struct program_step *b);
bool program_same_artifacts(const struct program_step *a, const struct program_step *b);
bool program_same_retry(const struct retry_policy *a, const struct retry_policy *b);
// Program text for a shell is not rendered as other values are: subst_shell does it, keeping values out of the text.
bool step_is_shell_text(const struct program_step *step, const struct json *with, struct str key);
// The steps of a scope (PROGRAM_TOP or a LOOP) are *first .. *first + count - 1; returns the count.
uint32_t program_scope(const struct program *program, uint32_t scope, uint32_t *first);
const char *step_kind_name(enum step_kind kind);
// Whether `with` of a compiled step may have this member with this value: what INJECT_OVERRIDE may put there.
bool step_kind_takes(enum step_kind kind, struct str member, const struct json *value);
const char *document_kind_name(enum document_kind kind); // "plan", "nodes", "playbook"
const char *backoff_name(enum backoff backoff);
// The compiled program as text, for goldens: one line a step.
void program_dump(struct buf *out, const struct program *program);

// Ids that may be used in keys and paths: C-08, C-32, reliability §4.4.
bool run_id_valid(struct str id);  // [A-Za-z0-9][A-Za-z0-9._:-]{0,127}, no "..", no trailing dot
bool step_id_valid(struct str id); // [A-Za-z0-9_][A-Za-z0-9._-]{0,127}, not RUN, no "..", no trailing dot
bool event_name_valid(struct str name); // [A-Za-z0-9_][A-Za-z0-9._:/-]{0,127}, no ".."
bool place_id_valid(struct str id); // of a playbook's step: '/' too, between parts that are not empty
// Names of functions that may be registered: [a-z][a-z0-9._-]{0,63} and not a kind of our own.
bool host_kind_valid(struct str name);
bool name_valid(
    struct str id); // tenants, projects, environments, plan ids and versions: no '|', no control characters, 1..128

#endif
