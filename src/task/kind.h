// Private to task/: what a kind of task is, and what it is given.
//
//   task.c      threads, tickets, cancelling              outcome.c   what came out, as it is delivered: masked, without marks
//   call.c      fields, logs, processes, files            keychain.c  secrets in their places; credentials by name
//   oauth.c     tokens that are fetched, and kept         one file per kind: its vtable is in KIND_LIST
//   child.c     kinds in a process of their own            script.c    texts that stand elsewhere
//   container*.c  programs in containers                 mcp.c      servers of the Model Context Protocol
//   object.c    three kinds of object stores               jwt.c       tokens signed with a key
//
// A kind runs on a thread of the pool and may block, as long as it looks at call_stopped at least every 100 ms. It ends by
// setting an outcome: call_done or call_fail, the last one counts.
#ifndef CAIRN_TASK_KIND_H
#define CAIRN_TASK_KIND_H

#include "base/sha256.h"
#include "json/make.h"
#include "task/task.h"

#include <pthread.h>
#include <stdatomic.h>

#define TASK_MEMORY_MAX ((size_t)1 << 30) // of one task
#define TASK_BODY_MAX ((size_t)64 << 20)  // of an answer, of a file
#define TASK_POLL_MS 100

struct task_call;

struct task_kind {
    const char *name;
    const char *const *fields; // it looks at; others get a warning and are not refused. NULL at the end; NULL: any
    void (*run)(struct task_call *call);
    bool process; // its lines and its log are those of a process
    // It runs a user's SQL: in a service in a process of its own (child.c), which gets these fields. What is to be fetched is fetched here.
    bool (*ready)(struct task_call *call, struct json *with);
    bool (*apart)(const struct task_call *call); // whether it is to run so, on a command line too; NULL: where tasks are confined
};

// Errors of §3.9: kind, whether the same again could go well.
// X(name, word, retryable)
#define TASK_ERROR_LIST(X)                                                                                             \
    X(CONNECTION, "connection", true)                                                                                  \
    X(TIMEOUT, "timeout", true)                                                                                        \
    X(RATE_LIMIT, "rate_limit", true)                                                                                  \
    X(AUTH, "auth", false)                                                                                             \
    X(NOT_FOUND, "not_found", false)                                                                                   \
    X(CLIENT, "client_error", false)                                                                                   \
    X(SERVER, "server_error", true)                                                                                    \
    X(SCHEMA, "schema", false)                                                                                         \
    X(PARSE, "parse", false)                                                                                           \
    X(TRANSFORM, "transform", false)                                                                                   \
    X(DB_CONNECTION, "db_connection", true)                                                                            \
    X(DB_CONSTRAINT, "db_constraint", false)                                                                           \
    X(DB_DEADLOCK, "db_deadlock", true)                                                                                \
    X(DB_TIMEOUT, "db_timeout", true)                                                                                  \
    X(STORAGE_QUOTA, "storage_quota", false)                                                                           \
    X(STORAGE_ACCESS, "storage_access", false)                                                                         \
    X(UNKNOWN, "unknown", false)
enum task_error {
    TASK_OK = 0,
#define X(name, word, retryable) TASK_##name,
    TASK_ERROR_LIST(X)
#undef X
};

struct task_outcome {
    enum task_error error; // TASK_OK: it went well
    bool said, retryable;  // said: one of both was set
    struct str code;
    struct str message;
    struct json result;       // also of an error, where there is one; type 0 = none
    struct json http, pg, py; // type 0 = none
    bool spilled;             // what it wrote is in the file of its request (OVERFLOW_ARTIFACT)
    bool marks;               // the result holds marks of ours (kind secrets): they are left there
};

struct task;

// One task under way. owner: its thread
struct task_call {
    struct tasks *tasks;
    struct task *task;
    const struct task_kind *kind;
    struct str name; // of the kind, as asked for: plug-ins share a vtable
    struct arena *arena;
    struct json input; // as requested
    struct json with;  // secrets in their places
    struct task_outcome out;
    // Everything secret that was used: masked in what is delivered, and wiped.
    struct secret_value *secrets;
    size_t secret_count, secret_capacity;
    struct mask *mask; // of the secrets so far; NULL: to be made
    struct step_log log;
    int64_t deadline; // mono ms; INT64_MAX = none
    struct thread_room *room;
};

// What a thread of the pool keeps between tasks: connections. Made with the first use.
struct task_links;
struct task_bases;
struct thread_room {
    struct task_links *links; // http.c
    struct fetch_keep *keep;  // the same under a policy
    struct task_bases *bases; // postgres.c
    struct digest base_key;   // of the connection in use
};
void links_release(struct task_links *links);
void bases_release(struct task_bases *bases);

// ---- task.c
const struct task_options *tasks_options(const struct tasks *tasks);
void sqlite_memory(uint64_t bytes); // of this process, which runs the SQL of one task
uint64_t sql_bytes(const struct task_call *call); // that a process of its own may take
bool call_sql_memory(struct task_call *call); // fails it: the statement needs more; false
struct str task_script(const char *path); // a script of this directory that the binary carries, for an interpreter's -c
const struct tool_request *call_request(const struct task_call *call); // without its input
// Whether it is to end: cancelled, too late, or everything ends. `call` as void * so that it fits callbacks.
bool call_stopped(void *call);
int64_t call_left_ms(const struct task_call *call); // at least 1; INT64_MAX = for ever
// Runs a process as the tools do and waits for its end. `request` needs argv, env, input, report, secrets; the rest is filled in.
// False: no memory, or it could not be asked for; the outcome is set. Release the result.
bool call_process(struct task_call *call, struct tool_request *request, struct tool_result *result);
// What the end of a process that did not go well means, as an outcome.
void call_process_failed(struct task_call *call, const struct tool_result *result);
void call_output(struct task_call *call, bool is_stderr, struct str line); // to the observer
void tasks_lock(struct tasks *tasks);                                      // for what kinds share: tokens
void tasks_unlock(struct tasks *tasks);
struct token_cache;
struct token_cache **tasks_tokens(struct tasks *tasks); // under the lock

// ---- call.c
const struct json *call_get(const struct task_call *call, const char *name); // NULL: absent or null
// The same, and where it is not: in `input`, because both are written.
const struct json *call_find(const struct task_call *call, const char *name);
struct str call_string(const struct task_call *call, const char *name, const char *otherwise); // also of a number
bool call_flag(const struct task_call *call, const char *name, bool otherwise);                // also "true", "1", 1
// A number of seconds, perhaps as text, as milliseconds; `otherwise` when it is not there or makes no sense.
int64_t seconds_ms(const struct json *value, int64_t otherwise);
struct str json_as_text(const struct json *value,
                        struct arena *arena); // a string as it is, else JSON; ptr NULL: no memory
struct str call_printf(struct task_call *call, const char *format, ...) PRINTF_LIKE(2, 3); // ptr never NULL
// A line for the log of the step, and for the observer. Masked.
void call_log(struct task_call *call, bool is_stderr, const char *format, ...) PRINTF_LIKE(3, 4);
// False: the outcome says that an argument of a process holds a secret, which everybody on the machine could read.
bool call_argument(struct task_call *call, struct str text);
bool call_confined(const struct task_call *call);
bool call_strict(const struct task_call *call); // of a service or a worker: what a task names beside a credential is refused
// A path of a task that is not confined, below its directory when it is relative. False: the outcome says why.
bool call_path(struct task_call *call, struct str path, struct str *whole);
// Confined: in the artifacts directory of the run, where relative names are, and in the places of the confinement (reach/reach.h).
bool call_read_file(struct task_call *call, struct str path, struct str *bytes);
bool call_write_file(struct task_call *call, struct str path, struct str bytes);
bool call_put(struct task_call *call, struct json *object, const char *key, struct json value); // false: outcome is set
// Bytes from outside as JSON text: as they are when UTF-8, else with U+FFFD.
struct str call_clean(struct task_call *call, struct str bytes);
// JSON when it is JSON (object or array, or anything with `any`), else text.
struct json call_parse(struct task_call *call, struct str bytes, bool any);
extern const struct json_limits task_limits; // of what comes from outside

// ---- outcome.c
void call_done(struct task_call *call, struct json result); // one that could not be made: no memory
bool call_fail(struct task_call *call, enum task_error error, const char *code, const char *format, ...)
    PRINTF_LIKE(4, 5);
bool call_no_memory(struct task_call *call);
const char *task_error_word(enum task_error error);
// The outcome as it is delivered. False: no memory.
bool outcome_write(struct task_call *call, int64_t duration_ms, struct buf *out);
// Masks a text by the secrets used so far. The text itself when there are none; ptr NULL: no memory.
struct str call_mask(struct task_call *call, struct str text);

// ---- keychain.c
// Puts secrets in the places of their marks, all through `value`. False: the outcome says which one is missing.
bool call_resolve(struct task_call *call, const struct json *value, struct json *out);
bool call_hide(struct task_call *call, struct str value); // from now on masked
// What `auth` (or what else names a credential) stands for: an object with the fields of the keychain's entry or of the credential of that
// name; an object is taken as it is, with `credential`, `key` or `name` in it looked up and merged. *trusted: it comes from the
// configuration of this process alone. False: the outcome is set. Absent: type 0 and true.
bool call_credential(struct task_call *call, const struct json *auth, struct json *out, bool *trusted);
// A field of a credential under any of the names it goes by: "host|db_host|hostname". Text or number; empty: none.
struct str credential_field(struct task_call *call, const struct json *credential, const char *names);

// The same for a name alone; *out of type 0: nothing is called so. *trusted as above.
bool call_named(struct task_call *call, struct str name, struct json *out, bool *trusted);

// ---- child.c
bool child_wanted(const struct task_call *call);
void child_run(struct task_call *call);

// ---- shell.c: also for container
// What a process gave, as a result: its texts, its exit code, and JSON that it wrote. `image` may be none.
void process_done(struct task_call *call, struct tool_result *ended, size_t most, struct json image); // most: bytes of output

// ---- plugin.c
void call_take_outcome(struct task_call *call, const struct json *answer); // of another process; what is none is a result

// ---- oauth.c
// The answer of the token endpoint, perhaps an older one that is still good.
bool oauth_answer(struct task_call *call, const struct json *entry, struct json *out);
void token_cache_release(struct token_cache *cache);

// ---- http.c: also for those that fetch
struct web_call {
    struct str method, url;
    const struct http_header *headers;
    size_t header_count;
    struct str body;
    int64_t timeout_ms; // 0 = 30 s
    bool regardless;    // also when the task has ended: to give back what it had begun elsewhere
};
// Members of an object as name=value&..., escaped; lists give their name several times. `plus`: blanks as +. A text stays as it is.
struct str web_form(struct task_call *call, const struct json *members, bool plus);
// One request under the policy. Any status is true. False: the outcome is set.
bool web_call(struct task_call *call, const struct web_call *request, struct fetch_answer *answer);

// What the client refused, or could not reach, as an outcome: false.
bool web_refused(struct task_call *call, enum code rc, const struct error *err);

// ---- jwt.c
typedef struct json (*jwt_claims)(struct task_call *call, struct str fingerprint, const void *context);
// A token over the claims, signed with an RSA key in PEM. `fingerprint`: "SHA256:..." of its public half. Hidden from now on.
bool jwt_rs256(struct task_call *call, struct str pem, struct str passphrase, jwt_claims claims, const void *context,
               struct str *out);
// An access token of Google for the key of a service account: an object, or its JSON.
bool google_token(struct task_call *call, const struct json *account, struct str *out);

// ---- script.c: what `script` names
struct script_place {
    struct str uri;
    bool web; // an address, not a file
    const struct json *source;
};
bool script_find(struct task_call *call, const struct json *script, struct script_place *out); // false: the outcome is set
bool script_fetch(struct task_call *call, const struct script_place *place, struct str *text);  // of an address

// ---- sql.c
// The texts of `command`, `commands`, `query` or their like, and the statements in them. False: the outcome is set.
bool call_script(struct task_call *call, struct str **out, size_t *count);

struct sql_params {
    const struct json *values; // an array or an object
    size_t *next;              // of an array: the first that no %s has taken yet
};
// The end of the text, name or comment that begins there, of which nothing is SQL; `at` when none does.
size_t sql_hidden(struct str sql, size_t at);
// Names (:name, %(name)s) and %s become $1, $2, ...; *list has their values. `params` may be NULL.
bool sql_bind(struct task_call *call, struct str sql, const struct sql_params *params, struct str *out,
              struct json *list);

struct sql_answer {
    struct json rows; // an array of objects; type 0: there was no statement
    struct json columns;
    int64_t affected;
    struct str after; // the rest of the text
};
struct base_ops {       // a database that is open
    bool whole_scripts; // it finds the end of a statement itself
    // Runs the first statement of `sql`. `params` may be NULL.
    bool (*query)(struct task_call *call, void *base, struct str sql, const struct sql_params *params,
                  struct sql_answer *out);
    void (*close)(struct task_call *call, void *base);
    struct str (*holder)(struct task_call *call, size_t index); // of a parameter, from 0: "$1", "?1"
};
bool sql_ready(struct task_call *call, struct json *with); // the texts of the SQL in place of where they stand
// All statements of the task, one after the other: {"command_0": {"status", "rows", "row_count", "columns"}, ...}.
void sql_run(struct task_call *call, const struct base_ops *ops, void *base);
bool sql_put(struct task_call *call, struct json *row, struct str column,
             struct json value); // replaces one of that name

// ---- postgres.c, sqlite.c: also for transfer
bool postgres_open(struct task_call *call, const struct json *auth, const struct json *fields, void **base);
bool sqlite_open(struct task_call *call, const struct json *fields, void **base);
extern const struct base_ops postgres_ops, sqlite_ops;

// Kinds, in the order of NET_KIND_LIST. `wait`, `noop`, `playbook` and `workbook` are the kernel's.
#define TASK_KIND_LIST(X)                                                                                              \
    X(python)                                                                                                          \
    X(shell)                                                                                                           \
    X(http)                                                                                                            \
    X(postgres)                                                                                                        \
    X(sqlite)                                                                                                          \
    X(duckdb)                                                                                                          \
    X(secrets)                                                                                                         \
    X(artifact)                                                                                                        \
    X(nats)                                                                                                            \
    X(transfer)                                                                                                        \
    X(s3)                                                                                                              \
    X(gcs)                                                                                                             \
    X(azure)                                                                                                           \
    X(container)                                                                                                       \
    X(mcp)                                                                                                             \
    X(snowflake)
#define X(name) extern const struct task_kind kind_##name;
TASK_KIND_LIST(X)
#undef X
extern const struct task_kind kind_plugin;

#endif
