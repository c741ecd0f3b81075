// Tools act and never decide: each takes one request, does one effect outside, reports one result.
//
// tool_start returns at once; the result comes later through `deliver`, exactly one per started ticket, on a thread of the
// tool's own. A cancelled ticket still delivers (CANCELLED, or whatever it ended with before the kill arrived).
// Children: own session and process group, death signal, no inherited descriptors, no core files, environment cleaned of
// loader and interpreter hooks, marked with CAIRN_RUN_ID, CAIRN_STEP_ID, CAIRN_ATTEMPT (L), CAIRN_ENGINE_ATTEMPT (k),
// CAIRN_IDEMPOTENCY_KEY=<run>:<step>:<L> and CAIRN_MARK=2:<store mark>:<engine pid>-<its start>:<L>:<k>:<tenant>:<run>:<step>,
// so that the orphans of a dead engine are found. A result is delivered only after the whole tree is gone.
// Secrets are resolved here, just before the start, and their values (also base64, hex, URL and JSON forms) are masked in
// everything that is delivered.
// What else a child may do is its confinement (below); without one it has what the user of the engine has (ADR 0008).
//
// The process becomes a child subreaper (for ever) and needs the statuses of its children: SIGCHLD must not be ignored.
// Other children of the program are left alone as long as they stay in its own session.
#ifndef CAIRN_TOOL_TOOL_H
#define CAIRN_TOOL_TOOL_H

#include "base/buf.h"
#include "contract/contract.h"
#include "executor/executor.h"
#include "json/json.h"
#include "os/os.h"
#include "program/program.h"

struct tool_env {
    struct str name, value;
};

// Everything is copied by tool_start.
struct tool_request {
    uint64_t ticket;
    struct str run, step;           // step path
    struct str tenant, project, environment; // of the run: secrets and credentials belong to them
    uint64_t epoch;                 // of the run's lease when the attempt was ordered
    enum executor form;             // what the document asks for: a process, a task or a function
    struct str kind;                // as in documents: "shell", "exec", "script", or the function
    uint32_t logical, engine;
    const struct str *argv; // argv[0] looked up in PATH when it has no slash
    size_t argc;
    struct str function;        // a function of the host instead of a process; `input` is its JSON text
    struct str input;           // for stdin (scripts); empty = /dev/null
    const struct tool_env *env; // on top of the inherited one, or of the clean one
    size_t env_count;
    const struct secret_ref *secrets;
    size_t secret_count;
    struct str pool;    // of the workers it waits for; empty = executed here
    struct str home;    // directory that the run was started in; empty: none. Confined: only where the confinement trusts it
    struct str cwd;     // as the document asks for; empty = home, else as the engine. Confined: beneath what it may use anyway
    int64_t timeout_ms; // 0 = none
    const struct str *reads; // confined: further files that it may read
    size_t read_count;
    uint64_t memory_max; // confined: bytes of data, when the confinement allows more; 0: as it says
    bool walled;  // it makes walls of its own (a container runtime of the configuration): the confinement is not for it
    bool network; // confined: it has one, and sockets of the machine, whatever its level says
    struct str artifacts_dir;
    const struct artifact_decl *artifacts; // that it is to write there; looked for by the caller
    size_t artifact_count;
    struct str log;    // file for what it writes, made with its directory when it writes something; empty = none
    size_t log_max;    // bytes of that file; further ones are dropped, with a mark
    size_t output_max; // bytes of output in the result; further ones are read and counted, `truncated` set
    enum overflow overflow; // ARTIFACT: a longer output is the last of `artifacts`, whole and masked, and `spilled` is set
    const struct secret_value *hidden; // masked as secrets are, and given to nobody; names are not looked at
    size_t hidden_count;
    int report; // 1 or 3: a file in memory that the process has as this descriptor; what is in it at the end is the
                // result's `report`, as it was written. As 1 it takes the place of stdout, which is then empty. 0: none
};

// ---- step logs: docs/format/logs.md
#define TOOL_LOG_NAME_SIZE 256
// The name of an attempt's file in the directory of its run's logs; every step path has one of its own.
void tool_log_name(struct str step, uint32_t logical, uint32_t engine, char out[TOOL_LOG_NAME_SIZE]);

enum tool_log_kind { TOOL_LOG_OUT = 1, TOOL_LOG_ERR, TOOL_LOG_CUT /* the limit */, TOOL_LOG_END /* how it ended */ };
struct tool_log_line {
    int64_t at_ms;
    enum tool_log_kind kind;
    bool open;       // the line goes on with the next one of its stream
    struct str text; // borrows
};
// One line of such a file, without its newline. False: it is none.
bool tool_log_parse(struct str line, struct tool_log_line *out);
// Writing one. owner: one thread at a time
struct step_log {
    struct str path; // empty: no log
    int fd;          // -1: nothing was written yet
    bool failed, cut;
    size_t size, max;
    struct buf text;    // lines on their way to the file
    struct buf held[2]; // the beginning of a line of stdout, of stderr
};
void step_log_init(struct step_log *log, struct str path, size_t max);
void step_log_release(struct step_log *log);
void step_log_take(struct step_log *log, bool is_stderr, struct str text); // masked
// No more bytes. The mark at the end tells a whole log from one whose engine died.
void step_log_end(struct step_log *log, struct str how);

struct tool_result {
    uint64_t ticket;
    bool ok;           // exit 0
    bool lost;         // what came out is not known: its executor is gone. Nothing else is set then
    struct str output; // stdout, trailing newlines cut, made valid UTF-8; of a function: JSON text, empty = null
    bool is_json;      // the output is JSON text and must be read as such
    bool truncated;
    bool spilled;          // the output is in the file of tool_request.overflow, and `output` is its beginning
    uint64_t output_size;  // of a process: bytes that it wrote, masked; 0: not known
    struct str errors; // of a process: the end of stderr, masked
    struct str report; // tool_request.report: neither masked nor made UTF-8
    // When !ok: EXIT_NONZERO, KILLED_BY_SIGNAL, TIMEOUT, CANCELLED, COMMAND_NOT_FOUND, SPAWN_FAILED, SECRET_NOT_FOUND,
    // CONFINEMENT_UNAVAILABLE, CWD_NOT_ALLOWED.
    struct fault fault;
    int64_t duration_ms;
    struct str reports; // what a worker reported of the attempt besides: a JSON array of events, for the ledger of the run
    bool only_reports;  // the attempt goes on: nothing else is set
    // Engine thread: what the result led to is durable. Not called for a result that is dropped, which is only released.
    void (*stored)(void *memory);  // may be NULL
    void *memory;                  // release with tool_result_free
    void (*release)(void *memory); // how
};
void tool_result_free(struct tool_result *result); // no-op when memory is NULL

typedef void (*tool_deliver)(void *context, struct tool_result *result); // takes ownership of *result's memory
typedef void (*tool_output)(void *context, uint64_t ticket, bool is_stderr,
                            struct str line); // live lines for progress; may be NULL

// An attempt that was started and is not delivered: it waits for a place among those that may run at once, or it has one.
struct tool_place {
    const void *among;            // places that are shared: those with the same one, and of the same pool
    struct str tenant, run, step; // live during the visit
    struct str pool, worker;      // of workers: the pool, and who has it
    uint32_t logical, engine;
    bool waits;
    size_t position;  // while it waits: 1 = it is the next
    size_t slots;     // so many run at once; of a pool: what its workers have
    struct str limit; // it waits for a place under that limit of steps, or for its rate; then `slots` are the places, 0 = any number
    uint32_t starts;  // of its rate: in per_ms; 0 = none
    int64_t per_ms, next_start_ms; // next_start_ms: wall clock, when it is the rate that it waits for
    size_t workers;   // of a pool: those who would take it, and were heard of lately
    int64_t since_ms; // monotonic: when it began to wait, or to work
};
typedef void (*tool_place_visit)(void *context, const struct tool_place *place);

struct tools;

struct tool_ops { // the seam: the simulator brings its own
    // Any thread. E_NOMEM; E_EXISTS: the ticket is in use; E_CANCELLED: closing. What is wrong with the request itself is a
    // result (SPAWN_FAILED), so that there is one path for faults.
    enum code (*start)(struct tools *, const struct tool_request *, struct error *);
    void (*cancel)(struct tools *, uint64_t ticket,
                   int64_t grace_ms); // TERM to the group, KILL after grace; unknown tickets ignored
    // The caller has started all it had to for now: tools that hand work on do so at once for all. NULL: not needed.
    void (*flush)(struct tools *);
    // Each attempt that is here. Any thread; the visit must not call back. NULL: nothing waits here.
    void (*places)(struct tools *, tool_place_visit visit, void *context);
    void (*close)(struct tools *); // kills and reaps everything; nothing is delivered afterwards; not from a callback
};
struct tools {
    const struct tool_ops *ops;
};

// ---- confinement: docs/format/confinement.md
// What a step is kept from. Each level holds those before it. A step whose level the kernel cannot give is refused
// (CONFINEMENT_UNAVAILABLE), never run with less.
enum tool_level {
    TOOL_LEVEL_NONE = 0, // nothing: the environment is passed on
    TOOL_LEVEL_BASIC, // environment from nothing, limits, no new privileges, no capabilities, no dangerous system calls
    TOOL_LEVEL_FILES, // reads the system, writes its working and artifacts directories (Landlock); signals its own only,
                      // where the kernel knows how to forbid it (ABI 6)
    TOOL_LEVEL_FULL,  // no network, and signals its own only or it is refused
    TOOL_LEVEL_AUTO,  // FILES where the kernel has Landlock, else BASIC
};
#define TOOL_LEVEL_NAMES "none|auto|basic|files|full"
bool tool_level_parse(struct str name, enum tool_level *out);
const char *tool_level_name(enum tool_level level);

struct tool_limits {    // 0: none but what the engine itself has
    uint64_t memory;    // bytes of data (RLIMIT_DATA)
    uint64_t address;   // bytes of address space
    uint64_t cpu;       // seconds
    uint64_t files;     // descriptors
    uint64_t processes; // of its user, hence of all steps of that user; none when it runs as the engine's user
    uint64_t file_size; // bytes
    uint64_t stack;     // bytes
};
extern const struct tool_limits tool_limits_default;

struct tool_confinement {
    enum tool_level level;
    struct tool_limits limits;
    bool run_as; // as another user: the engine must be root
    uint32_t uid, gid;
    struct str path;                // PATH of steps; empty: /usr/local/bin:/usr/bin:/bin
    const struct str *read, *write; // further paths
    size_t read_count, write_count;
    struct str work_root; // where working directories are made; empty: $TMPDIR, else /tmp
    bool separate;        // of a service: where root runs it and run_as is not said, steps have a user of their tenant's
    bool unix_sockets;    // steps may use them though they have the user of the engine
    bool network;         // sockets of every kind, at every level: of processes that the engine itself starts
    bool trusts_home;     // a command line of the run's owner: steps may write the directory that the run was started in
};
// {"level":"files","limits":{"memoryBytes":..,"addressBytes":..,"cpuSeconds":..,"files":..,"processes":..,"fileBytes":..,
// "stackBytes":..},"runAs":{"uid":..,"gid":..},"path":"..","read":[..],"write":[..],"workRoot":"..",
// "unixSockets":..}: all may be absent,
// other names are E_INVALID. What it points to is in `arena`.
enum code tool_confinement_parse(const struct json *config, struct arena *arena, struct tool_confinement *out,
                                 struct error *err) MUST_CHECK;
// Whether steps of this level could be started by this process. E_UNSUPPORTED says what is missing.
enum code tool_confinement_check(const struct tool_confinement *confinement, struct error *err) MUST_CHECK;

enum tool_level tool_confinement_level(const struct tool_confinement *confinement); // AUTO: what that is here
// Whether `auto` keeps what a service promises on this kernel. E_UNSUPPORTED says in one sentence what is missing. Other levels: OK.
enum code tool_confinement_whole(const struct tool_confinement *confinement, struct error *err) MUST_CHECK;

// ---- where secrets come from: docs/format/secrets.md
// {"providers":[{"name":"n","type":"env|file|systemd|exec","tenant":"..","environment":"..",...}]}. A reference
// secret://NAME/SECRET[@VERSION] is looked up in the provider of that name that is bound to the tenant and environment of
// the run; env and systemd must be bound, file and exec get both. With providers (even none) references env: and file:
// are refused, because they name what belongs to the engine, unless "local" is true.
struct tool_secrets;
extern const struct tool_secrets tool_secrets_none; // what a service and a worker have without a word: no provider, nothing local
enum code tool_secrets_parse(const struct json *config, struct arena *arena, struct tool_secrets **out,
                             struct error *err) MUST_CHECK;

struct secret_value {
    struct str name, value;
};
struct secret_scope {
    const struct tool_secrets *providers; // NULL: env: and file: of this machine
    struct str tenant, environment;
    bool own; // the reference stands in the configuration of this process, not in a document
};
// False: `why` says what is wrong (never the value). The value is put in `arena`; wipe it there. Any thread.
bool secret_read(const struct secret_scope *scope, const struct secret_ref *ref, struct arena *arena, struct str *value,
                 struct error *why);
void secret_wipe(struct str value);

// ---- masks: secrets become *** in a stream of bytes
struct mask;
// NULL when memory ran out. Without a value of at least 4 bytes the mask is empty and passes everything through.
struct mask *mask_new(const struct secret_value *values, size_t count, struct arena *arena);
void mask_wipe(struct mask *mask);

// owner: one thread at a time
struct mask_stream {
    const struct mask *mask;
    struct buf held; // seen, but could be the beginning of a secret
    size_t covered;  // bytes of `held` that belong to a secret already replaced
};
void mask_stream_init(struct mask_stream *stream, const struct mask *mask);
void mask_stream_release(struct mask_stream *stream);
// Appends what is certain by now to `out`; with `end` everything. When memory fails, bytes are lost, never shown.
void mask_feed(struct mask_stream *stream, struct str bytes, bool end, struct buf *out);

// Adds `text` with U+FFFD for what is not UTF-8 and for NUL.
void text_add_clean(struct buf *out, struct str text);

struct tool_options {
    const char *mark;     // of the store: marks children (CAIRN_MARK)
    uint32_t process_max; // at once; more wait in order
    tool_deliver deliver;
    tool_output output;
    void *context;
    // Both live as long as the tools. NULL: none; NULL: env: and file: of this machine.
    const struct tool_confinement *confinement;
    const struct tool_secrets *secrets;
};
// With a confinement the process is no longer dumpable while the tools are open: steps cannot look into it.
enum code tools_open(const struct tool_options *options, struct tools **out, struct error *err) MUST_CHECK;

// Finds processes marked with `mark` that belong to a (tenant, run, step) that `wanted` says yes to, and to an engine process that is
// gone, kills them with their groups and waits until they are gone. Returns how many. One pass over the system's processes.
struct tool_mark {
    const char *store; // as in tool_options
    const char *file;  // the same of stores without a name; may be NULL
    const char *url;   // as engines before marked their processes: those do not say a tenant
};
typedef bool (*tool_orphan)(void *context, struct str tenant, struct str run, struct str step);
size_t tool_sweep_orphans(const struct tool_mark *mark, tool_orphan wanted, void *context);

#endif
