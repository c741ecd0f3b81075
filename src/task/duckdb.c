// Kind duckdb: the user's `duckdb`, which prints the rows of each query as a JSON array; the last one is the result. Where there is
// only Python's library, duckdb.py does the same with it.
#include "task/kind.h"

#include <string.h>

enum { NO_LIBRARY = 3 }; // exit of duckdb.py
#define OWN_BYTES (UINT64_C(256) << 20) // of the program itself, its threads and the rows that it writes

// The arrays of what was printed, one behind the other; the last one counts.
static struct json last_rows(struct task_call *call, struct str text)
{
    struct json rows = json_array(), value;
    for (size_t at = 0; at < text.len;) {
        size_t from = str_find(text, '[', at), end = from;
        unsigned depth = 0;
        bool quoted = false;
        for (; end < text.len; end++) {
            char c = text.ptr[end];
            if (quoted && c == '\\')
                end++;
            else if (c == '"')
                quoted = !quoted;
            else if (!quoted && (c == '[' || c == '{'))
                depth++;
            else if (!quoted && (c == ']' || c == '}') && --depth == 0)
                break;
        }
        if (end >= text.len) break;
        struct str array = str_slice(text, from, end + 1);
        if (json_parse(array, &task_limits, call->arena, &value, NULL) == OK) rows = value;
        at = end + 1;
    }
    return rows;
}

static bool script_of(struct task_call *call, struct buf *script)
{
    struct str *texts;
    size_t count;
    if (!call_script(call, &texts, &count)) return false;
    // A limit of its own lets DuckDB write to the disk instead; a statement that says otherwise meets the wall of the process.
    buf_printf(script, "SET memory_limit='%lluB';\n", (unsigned long long)sql_bytes(call));
    for (size_t i = 0; i < count; i++) buf_printf(script, "%.*s;\n", STR_ARG(texts[i]));
    if (!buf_ok(script)) call_no_memory(call);
    return buf_ok(script);
}

static bool is_missing(const struct tool_result *ended)
{
    return !ended->ok && str_is(ended->fault.code, "COMMAND_NOT_FOUND");
}

static bool is_out_of_memory(struct str errors)
{
    static const char *const words[] = {"Out of Memory", "OutOfMemory", "MemoryError", "bad_alloc"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (memmem(errors.ptr ? errors.ptr : "", errors.len, words[i], strlen(words[i]))) return true;
    return false;
}

static bool execute(struct task_call *call, struct str script, struct tool_result *ended)
{
    struct str database = call_string(call, "database", ":memory:");
    const struct str program[] = {STR("duckdb"), STR("-batch"), STR("-bail"), STR("-json"), database};
    const struct str python[] = {STR("python3"), STR("-c"), task_script("src/task/duckdb.py"), database};
    struct tool_request request = {.argv = program,
                                   .argc = ARRAY_COUNT(program),
                                   .input = script,
                                   .report = 1,
                                   .memory_max = sql_bytes(call) + OWN_BYTES};
    if (!call_process(call, &request, ended)) return false;
    if (!is_missing(ended)) return true;
    tool_result_free(ended);
    request.argv = python;
    request.argc = ARRAY_COUNT(python);
    return call_process(call, &request, ended);
}

static void run(struct task_call *call)
{
    struct tool_result ended;
    struct buf script SCOPED(buf_release) = buf_of(TASK_BODY_MAX);
    bool ran = script_of(call, &script) && execute(call, buf_str(&script), &ended);
    secret_wipe(buf_str(&script));
    if (!ran) return;
    struct str text = arena_copy(call->arena, ended.report);
    if (ended.ok) {
        call_done(call, last_rows(call, text.ptr ? text : STR("")));
    } else if (is_missing(&ended) || (ended.fault.has_exit && ended.fault.exit_code == NO_LIBRARY)) {
        call_fail(call, TASK_NOT_FOUND, "DUCKDB_NOT_INSTALLED",
                  "neither the program duckdb is in PATH nor has python3 the module duckdb; kind duckdb runs with the "
                  "user's own");
    } else if (is_out_of_memory(ended.errors)) {
        call_sql_memory(call);
    } else if (ended.fault.has_exit) {
        struct str why = str_trim(ended.errors);
        call_fail(call, TASK_SCHEMA, "DUCKDB_FAILED", "%.*s", STR_ARG(why.len ? why : ended.fault.message));
    } else {
        call_process_failed(call, &ended);
    }
    tool_result_free(&ended);
}

static const char *const fields[] = {"database",    "auth",         "command",   "commands",   "query",
                                     "queries",     "sql",          "statement", "statements", "script",
                                     "command_b64", "commands_b64", NULL};
const struct task_kind kind_duckdb = {.name = "duckdb", .fields = fields, .run = run, .process = true};
