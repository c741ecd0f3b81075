// What a playbook compiles to: a net of steps with arcs, beside program.steps (same indexes, kind STEP_TASKS).
//
// Everything here is normalised: one name for each thing, whatever dialect the document was written in.
// Templates are compiled; a text without templates is a constant. Immutable, in the program's arena.
#ifndef CAIRN_PROGRAM_NET_H
#define CAIRN_PROGRAM_NET_H

#include "program/program.h"
#include "template/template.h"

// A condition: a template read as true or false. All zero: none was written, which is true.
struct net_when {
    const struct template *test; // NULL: always true
    struct str text;             // as written
    bool event;                  // it reads `event`, `outcome`/`output` or `error`: it knows what happened
    bool exit;                   // it names 'step.exit', which means either end of the step (C-47)
};

enum net_scope { NET_CTX = 1, NET_ITER };
// One patch: ctx.a.b or iter.x becomes a value. Keys without a scope are of the iteration inside loops, else of ctx.
struct net_set {
    enum net_scope scope;
    struct str path;                   // dotted, without the scope
    const struct template_tree *value; // evaluated where the patch is made
};
struct net_sets {
    const struct net_set *items; // in document order
    uint32_t count;
};

enum net_do { NET_CONTINUE = 1, NET_RETRY, NET_JUMP, NET_BREAK, NET_FAIL };
struct net_rule {
    struct net_when when; // of `else`: none
    bool otherwise;       // it is the `else`
    enum net_do action;
    uint32_t attempts; // RETRY: tries in all, >= 1; 3 when not said
    int64_t delay_ms;  // RETRY: 1000 when not said
    // Numbers that are templates, here and below, are rendered where they apply; the plain ones beside them are what they give with
    // the workload as written, or what is usual. NULL: they are no templates.
    const struct template_tree *attempts_of, *delay_of;
    enum backoff backoff; // RETRY: none = constant delay
    uint32_t target;      // JUMP: index of the task; PROGRAM_TOP: the one before ("previous")
    struct net_sets sets;
    uint32_t line, column;
};

struct net_select {
    struct str path; // "a.b.c", from the result
    struct str name; // under which it is kept beside the reference
};

struct net_names {
    const struct str *items;
    uint32_t count;
};

// Where a result goes that is too large for the log (`store` of the result controls), if there is such a place where it runs.
enum net_store {
    NET_STORE_AUTO = 0, // by its size (§3.10): an object store from 1 MB to 10 MB, else the store of the run
    NET_STORE_OBJECT,   // an object store, whatever its size
    NET_STORE_RUN,      // the store of the run
};

struct net_task {
    struct str label; // unique in its step
    struct str kind;  // "http", "python", ...: one of net_kind_list, or of a plug-in
    // What the tool gets: everything of the task but its name, kind, policy, set and result controls; aliases resolved,
    // `spec` merged in, the workbook's entry merged in. Always an object. `code` is a constant, never a template.
    const struct template_tree *with;
    // The `input` in it, where the other fields read it as variables (`with` has it as it is written); NULL: they do not.
    const struct template_tree *input;
    const struct json *own_input; // what it says itself, above what the arc gave: an object, or NULL
    bool takes_args;              // what the arc gave is also its input
    bool in_process;              // noop: nothing is asked of anybody
    bool has_policy;              // rules were written
    bool unmatched_fails;         // on_unmatched: fail (C-46)
    uint32_t rule_count;
    const struct net_rule *rules;
    int64_t timeout_ms; // 0 = none
    const struct template_tree *timeout_of;
    struct net_sets sets; // of the task itself: after its outcome is decided to be kept
    uint64_t inline_max;  // bytes of a result in the log; more is kept by reference
    uint64_t preview_max;
    enum net_store store;
    enum overflow overflow;
    const struct step_limit *limit; // NULL: none
    const struct net_select *selects;
    struct net_names expects; // of its inputs: one that is missing fails it before it begins
    struct net_names returns; // of its result: one that is missing fails it although it went well
    // Kind playbook: `path`, or what that is with the workload as it is written; empty when that does not say.
    struct str playbook;
    // What the loader found under `playbook`: its bytes are a part of the program (I20). NULL: it is looked for when the task runs.
    const struct program *child;
    struct str around; // it is this document, or one that runs it: that one's file; else empty
    struct str return_step;
    uint32_t select_count, line, column;
    bool path_rendered;   // `path` is a template: it may be another one when it runs
    bool return_rendered; // `return_step` is one: answered when the child has ended, and the text above is empty
    bool quiet;           // without a policy: what follows from its outcome is no event of its own (policy.emit.events)
};

struct net_arc {
    uint32_t step;
    struct net_when when;
    const struct template_tree *args; // of the token; NULL = none
    struct net_sets sets;
    uint32_t line, column;
};

struct net_admit {
    struct net_when when;
    bool allow;
};

struct net_loop {
    const struct template_tree *in;
    struct str iterator;
    bool parallel;
    uint32_t max_in_flight; // >= 1; sequential: 1
    const struct template_tree *max_of;
};

struct net_step {
    const struct net_admit *admit; // first that holds; none holds: allowed when there are none, else refused
    uint32_t admit_count;
    const struct template_tree *args;      // of the step itself: under those of the token; NULL = none
    const struct template_tree *item_args; // the same of a loop, when it reads the item: rendered where it is read
    bool has_loop;
    struct net_loop loop;
    const struct net_task *tasks; // none: the step only routes
    uint32_t task_count;
    bool best_effort;    // failures of iterations do not fail the step (fail_fast is the default)
    int64_t timeout_ms;  // of a visit, from step.started; 0 = none
    int64_t deadline_ms; // of a visit, from step.scheduled; 0 = none
    const struct template_tree *timeout_of, *deadline_of;
    struct net_sets sets; // when it has ended well, before its arcs are asked
    bool inclusive;
    const struct net_arc *arcs;
    uint32_t arc_count;
    // C-48: a token waits here while a step that can still lead here is under way. NULL: no waiting, tokens merge.
    const uint64_t *upstream; // bit per step
};

struct net {
    uint32_t entry;
    uint32_t final; // PROGRAM_TOP: none. It runs when nothing else is left to do, whatever came out
    bool no_next_is_error;
    bool as_noetl; // spec.compat: noetl-4. Where the two differ it is as NoETL 4 has it (docs/from-noetl.md)
    bool strict;   // spec.undefined: strict. What is not defined fails where it is used
    const struct template_tree *workload; // an object; its texts may refer to `input` and to each other
    struct json keychain;                 // array of entries as written, aliases resolved; type 0 = none
    // Variables of the environment that templates of this document and of those that it runs ask for as env.NAME. The process
    // that starts a run may give them as the input `env`; none when the workload has a value of that name.
    struct net_names env;
    const struct str *requires_tools;
    uint32_t requires_tool_count;
    const struct net_step *steps; // program.step_count of them
};

// Kinds of tools that the binary brings. X(name, what it does)
#define NET_KIND_LIST(X)                                                                                               \
    X("noop", "does nothing; only its policy counts")                                                                  \
    X("python", "runs Python code with the user's python3")                                                            \
    X("shell", "runs command lines with bash")                                                                         \
    X("http", "makes an HTTP request")                                                                                 \
    X("postgres", "runs SQL in a PostgreSQL database")                                                                 \
    X("sqlite", "runs SQL in an SQLite database")                                                                      \
    X("duckdb", "runs SQL with the user's duckdb")                                                                     \
    X("playbook", "runs another playbook as an execution of its own")                                                  \
    X("workbook", "runs a named task of the playbook")                                                                 \
    X("secrets", "makes a secret known to the tasks after it")                                                         \
    X("artifact", "reads or writes a stored result")                                                                   \
    X("nats", "puts, gets and publishes with NATS")                                                                    \
    X("transfer", "moves rows from one place to another")                                                              \
    X("s3", "reads, writes and lists objects of S3 or its like")                                                       \
    X("gcs", "reads, writes and lists objects of Google Cloud Storage")                                                \
    X("azure", "reads, writes and lists blobs of Azure")                                                               \
    X("container", "runs a program in a container")                                                                    \
    X("mcp", "asks a server of the Model Context Protocol")                                                            \
    X("snowflake", "runs SQL through Snowflake's SQL API")                                                             \
    X("wait", "waits")                                                                                                 \
    X("event", "waits for an event from outside")
// Numbers as people write them, perhaps as text. Seconds may be a duration ("5m"). E_INVALID: it is none; E_LIMIT: out of bounds.
enum { NET_ATTEMPTS_MAX = 10000, NET_IN_FLIGHT_MAX = 1000000 };
enum code net_seconds(const struct json *value, int64_t *ms) MUST_CHECK;
enum code net_count(const struct json *value, int64_t min, int64_t max, int64_t *out) MUST_CHECK;

bool net_kind_known(struct str kind);
// The step as text, for goldens and comparison: several lines, each after two blanks. `places`: with lines and columns.
void net_step_write(struct buf *out, const struct program *program, uint32_t step, bool places);

#endif
