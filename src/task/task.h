// The tools of playbooks: one file per kind behind one table, run on threads and in processes of their own.
//
//   engine --tools->start--> request: {"with": {...}, ...} --kind--> outcome, delivered as JSON
//
// What is delivered is always an outcome, as is_json output of an ok result, also when the task failed:
//   {"status": "ok"|"error", "result": ANY, "error": {"kind","code","message","retryable"}, "http": {...}, "pg": {...}, "py": {...},
//    "meta": {"duration_ms": N}}
// Only what ended without an outcome (TIMEOUT, CANCELLED, lost) is a fault.
//
// A secret never passes the engine: where a template reads keychain.NAME.FIELD, the request has TASK_SECRET "keychain:NAME.FIELD"
// TASK_SECRET in its place, which is replaced here, just before use. What tasks give back can hold no such mark, and no secret
// that was used: they are masked.
#ifndef CAIRN_TASK_TASK_H
#define CAIRN_TASK_TASK_H

#include "fetch/fetch.h"
#include "tool/tool.h"

#define TASK_SECRET "\x01"

struct tasks;

// artifact: reads a result by its reference (store_result in store/store.h), any thread. E_UNSUPPORTED, E_IO beside its errors.
struct task_results {
    enum code (*read)(void *context, const struct tool_request *request, struct str ref, struct arena *arena,
                      struct str *out, struct error *err);
    void *context;
};

// Who runs containers, and what each may come to: docs/tools/container.md.
struct container_settings {
    const struct str *command; // a program and its first arguments
    size_t command_count;
    bool oci;          // runc and its like: a bundle; else podman, docker: `run`
    struct str images; // oci: a root directory per image
    struct str network;
    uint32_t uid, gid;
    uint64_t memory, temporary; // bytes
    int64_t cpus_thousandths, processes;
};
// E_INVALID names the place. What is built borrows `config` and lives in `arena`.
enum code container_settings_parse(const struct json *config, struct arena *arena, struct container_settings *out,
                                   struct error *err) MUST_CHECK;

struct task_options {
    const char *mark; // as in tool_options, and likewise:
    uint32_t process_max;
    const struct tool_confinement *confinement;
    const struct tool_secrets *secrets;
    const struct fetch_policy *policy; // where http and its kin may go; NULL: wherever the user could (a command line)
    const char *plugins;               // directory of executables that are kinds of their own; NULL: none
    const struct container_settings *containers; // NULL: nobody does
    struct task_results results;       // read NULL: they cannot be read here
    struct json credentials;           // by name; type 0 = none
    uint32_t thread_max;               // 0 = 128
    uint64_t sql_bytes; // memory of a process that runs a task's SQL (limits.sqlBytes). 0 = TASK_SQL_BYTES
    const char *self; // a program that runs task_child_main when its one argument is TASK_CHILD; NULL: SQL of confined tasks runs here
};

#define TASK_SQL_BYTES (UINT64_C(512) << 20)
#define TASK_CHILD "__task"
int task_child_main(void); // the exit code of the process

enum code tasks_open(const struct task_options *options, struct tasks **out, struct error *err) MUST_CHECK;
// Where outcomes and lines go; any thread of theirs. Before the first request.
void tasks_connect(struct tasks *tasks, tool_deliver deliver, tool_output output, void *context);
// Executes tool_request.function, which is a kind, with tool_request.input:
//   {"with": the task's, rendered; "keychain": entries as in net.keychain, rendered, marks in them too; "execution_id", "step", "task",
//    "attempt"}
struct tools *tasks_tools(struct tasks *tasks);
// The kinds that the binary brings; NULL past the end. And whether DIR has an executable of that name; or either.
const char *task_kind_name(size_t index);
bool task_kind_known(const char *dir, struct str kind);
bool task_plugin_known(const char *dir, struct str kind);
// Whether a kind that the binary brings looks at that field; of other kinds: true.
bool task_field_known(struct str kind, struct str field);
// Kills and reaps what runs; nothing is delivered afterwards.
void tasks_close(struct tasks *tasks);

#endif
