// Kind sqlite: SQL in a file, or in memory for as long as the task runs.
#include "task/kind.h"

#include <math.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <string.h>

enum { STEPS_BETWEEN_LOOKS = 1000, BUSY_NAP_MS = 20 };
#define BUSY_MAX_MS 10000

static enum task_error error_of(int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_CONSTRAINT:
        return TASK_DB_CONSTRAINT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return TASK_DB_DEADLOCK;
    case SQLITE_INTERRUPT:
        return TASK_DB_TIMEOUT;
    case SQLITE_CANTOPEN:
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_IOERR:
        return TASK_DB_CONNECTION;
    case SQLITE_FULL:
        return TASK_STORAGE_QUOTA;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return TASK_STORAGE_ACCESS;
    default:
        return TASK_SCHEMA; // of SQL: no such table, syntax
    }
}

static bool failed(struct task_call *call, sqlite3 *db, int rc)
{
    int code = sqlite3_extended_errcode(db);
    if ((rc & 0xFF) == SQLITE_NOMEM && tasks_options(call->tasks)->sql_bytes)
        return call_sql_memory(call);
    call_fail(call, error_of(rc), call_printf(call, "SQLITE_%d", code).ptr, "%s", sqlite3_errmsg(db));
    call->out.retryable = (rc & 0xFF) == SQLITE_BUSY || (rc & 0xFF) == SQLITE_LOCKED;
    return false;
}

static int look(void *context)
{
    return call_stopped(context);
}

static int busy(void *context, int count)
{
    struct task_call *call = context;
    if (count * BUSY_NAP_MS > BUSY_MAX_MS || call_stopped(call)) return 0;
    sqlite3_sleep(BUSY_NAP_MS);
    return 1;
}

// What a database is asked about itself. Others reach beyond it: hard_heap_limit, for one, is of the whole process.
static const char *const pragmas[] = {
    "analysis_limit",     "application_id",   "auto_vacuum",    "automatic_index",      "busy_timeout",
    "cache_size",         "cache_spill",      "case_sensitive_like", "checkpoint_fullfsync", "collation_list",
    "compile_options",    "data_version",     "database_list",  "defer_foreign_keys",   "encoding",
    "foreign_key_check",  "foreign_key_list", "foreign_keys",   "freelist_count",       "fullfsync",
    "function_list",      "ignore_check_constraints", "incremental_vacuum", "index_info", "index_list",
    "index_xinfo",        "integrity_check",  "journal_mode",   "journal_size_limit",   "legacy_alter_table",
    "locking_mode",       "max_page_count",   "module_list",    "optimize",             "page_count",
    "page_size",          "pragma_list",      "query_only",     "quick_check",          "read_uncommitted",
    "recursive_triggers", "reverse_unordered_selects", "schema_version", "secure_delete", "synchronous",
    "table_info",         "table_list",       "table_xinfo",    "temp_store",           "user_version",
    "wal_autocheckpoint", "wal_checkpoint"};

static bool is_harmless_pragma(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(pragmas); i++)
        if (sqlite3_stricmp(pragmas[i], name) == 0) return true;
    return false;
}

// Another file could be anything that this process may open; a function or setting, anything that it can do.
static int authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)context, (void)c, (void)d;
    if (action == SQLITE_ATTACH && (!a || (a[0] && strcmp(a, ":memory:") != 0))) return SQLITE_DENY;
    if (action == SQLITE_PRAGMA && !is_harmless_pragma(a)) return SQLITE_DENY;
    if (action == SQLITE_FUNCTION &&
        (sqlite3_stricmp(b, "load_extension") == 0 || sqlite3_stricmp(b, "fts3_tokenizer") == 0))
        return SQLITE_DENY;
    return SQLITE_OK;
}

// A database and its SQL may be hostile: what SQLite itself has against that, wherever a task runs. Patterns and expressions
// are walked by recursion, on the stack of a thread.
static void harden(sqlite3 *db)
{
    static const struct {
        int option, on;
    } options[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                   {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
                   {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                   {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0}};
    static const struct {
        int limit, most;
    } limits[] = {{SQLITE_LIMIT_LENGTH, 64 << 20},        {SQLITE_LIMIT_SQL_LENGTH, 16 << 20},
                  {SQLITE_LIMIT_EXPR_DEPTH, 200},         {SQLITE_LIMIT_COMPOUND_SELECT, 200},
                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000}, {SQLITE_LIMIT_TRIGGER_DEPTH, 100},
                  {SQLITE_LIMIT_ATTACHED, 4},             {SQLITE_LIMIT_WORKER_THREADS, 0}};
    for (size_t i = 0; i < ARRAY_COUNT(options); i++) sqlite3_db_config(db, options[i].option, options[i].on, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) sqlite3_limit(db, limits[i].limit, limits[i].most);
}

// SQLite itself says when it has no more; a client of another database learns it from the kernel. Our own part is not counted.
void sqlite_memory(uint64_t bytes)
{
    enum { OURS = 64 << 20 };
    struct rlimit now;
    sqlite3_hard_heap_limit64((sqlite3_int64)bytes);
    if (getrlimit(RLIMIT_DATA, &now) || bytes == 0) return;
    now.rlim_cur = bytes + OURS < now.rlim_max ? bytes + OURS : now.rlim_max;
    (void)!setrlimit(RLIMIT_DATA, &now);
}

bool sqlite_open(struct task_call *call, const struct json *fields, void **base)
{
    struct str path = credential_field(call, fields, "database|db|path|file"), real = STR(":memory:");
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (call_confined(call)) flags |= SQLITE_OPEN_NOFOLLOW;
    if (path.len && !str_is(path, ":memory:") && !call_path(call, path, &real)) return false;
    int rc = sqlite3_open_v2(real.ptr, &db, flags, NULL);
    if (rc != SQLITE_OK) {
        if (db)
            failed(call, db, rc);
        else
            call_no_memory(call);
        sqlite3_close(db);
        return false;
    }
    sqlite3_progress_handler(db, STEPS_BETWEEN_LOOKS, look, call);
    sqlite3_busy_handler(db, busy, call);
    harden(db);
    if (call_confined(call)) sqlite3_set_authorizer(db, authorize, NULL);
    *base = db;
    return true;
}

static void close_base(struct task_call *call, void *base)
{
    (void)call;
    sqlite3_close(base);
}

static int bind_one(struct task_call *call, sqlite3_stmt *statement, int index, const struct json *value)
{
    double number;
    if (value->type == JSON_NULL) return sqlite3_bind_null(statement, index);
    if (value->type == JSON_BOOL) return sqlite3_bind_int(statement, index, value->boolean);
    if (value->type == JSON_INT) return sqlite3_bind_int64(statement, index, value->integer);
    if (value->type == JSON_NUMBER) { // what SQLite would round or read as another type is refused
        bool fits = !json_is_integer(value) && json_double(value, &number);
        return fits ? sqlite3_bind_double(statement, index, number) : SQLITE_TOOBIG;
    }
    struct str text = json_as_text(value, call->arena);
    return sqlite3_bind_text64(statement, index, text.ptr ? text.ptr : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

static bool bind_all(struct task_call *call, sqlite3 *db, sqlite3_stmt *statement, const struct sql_params *params)
{
    int count = sqlite3_bind_parameter_count(statement), rc = SQLITE_OK;
    for (int i = 1; rc == SQLITE_OK && params && i <= count; i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        const struct json *value = NULL;
        if (json_is(params->values, JSON_OBJECT) && name)
            value = json_key(params->values, name + 1);
        else if (json_is(params->values, JSON_ARRAY) && (uint32_t)i <= params->values->count)
            value = &params->values->items[i - 1];
        if (!value)
            return call_fail(call, TASK_CLIENT, "PARAMETER_MISSING", "there is no parameter %s",
                             name ? name : "of that number");
        rc = bind_one(call, statement, i, value);
        if (rc == SQLITE_TOOBIG) {
            struct str text = json_as_text(value, call->arena);
            call_fail(call, TASK_CLIENT, "NUMBER_TOO_LARGE",
                      "sqlite has integers of 64 bits and doubles: %.*s is neither; pass it as a text",
                      text.len > 80 ? 80 : (int)text.len, text.ptr);
            return false;
        }
    }
    return rc == SQLITE_OK || failed(call, db, rc);
}

static struct json value_of(struct task_call *call, sqlite3_stmt *statement, int column)
{
    char number[32];
    struct json value;
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        return json_int(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
        if (!isfinite(sqlite3_column_double(statement, column))) return json_null();
        json_real_format(sqlite3_column_double(statement, column), number);
        value = json_number(call_printf(call, "%s", number));
        return value;
    case SQLITE_NULL:
        return json_null();
    default:
        break;
    }
    struct str bytes = {sqlite3_column_blob(statement, column), (size_t)sqlite3_column_bytes(statement, column)};
    bytes = bytes.len ? arena_copy(call->arena, bytes) : STR("");
    return json_string(bytes.ptr ? call_clean(call, bytes) : STR(""));
}

static bool read_row(struct task_call *call, sqlite3_stmt *statement, const struct json *columns, struct json *rows)
{
    struct json row = json_object();
    for (uint32_t i = 0; i < columns->count; i++)
        if (!sql_put(call, &row, columns->items[i].text, value_of(call, statement, (int)i))) return false;
    if (json_push(call->arena, rows, row)) return true;
    return call_no_memory(call);
}

static bool step_all(struct task_call *call, sqlite3 *db, sqlite3_stmt *statement, struct json *rows,
                     struct json *columns)
{
    int width = sqlite3_column_count(statement), rc;
    for (int i = 0; i < width; i++) {
        struct str name = call_clean(call, call_printf(call, "%s", sqlite3_column_name(statement, i)));
        if (!json_push(call->arena, columns, json_string(name))) return call_no_memory(call);
    }
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
        if (!read_row(call, statement, columns, rows)) return false;
    return rc == SQLITE_DONE || failed(call, db, rc);
}

static bool query(struct task_call *call, void *base, struct str sql, const struct sql_params *params,
                  struct sql_answer *out)
{
    sqlite3 *db = base;
    sqlite3_stmt *statement = NULL;
    const char *tail = NULL;
    *out = (struct sql_answer){.rows = json_array(), .columns = json_array(), .after = STR("")};
    int rc = sqlite3_prepare_v2(db, sql.ptr, (int)sql.len, &statement, &tail);
    if (rc != SQLITE_OK) return failed(call, db, rc);
    if (tail) out->after = str_slice(sql, (size_t)(tail - sql.ptr), sql.len);
    if (!statement) { // a comment
        out->rows.type = 0;
        return true;
    }
    int before = sqlite3_total_changes(db);
    bool good = bind_all(call, db, statement, params) && step_all(call, db, statement, &out->rows, &out->columns);
    out->affected = sqlite3_total_changes(db) - before;
    sqlite3_finalize(statement);
    return good;
}

static struct str holder(struct task_call *call, size_t index)
{
    return call_printf(call, "?%zu", index + 1);
}

const struct base_ops sqlite_ops = {.whole_scripts = true, .query = query, .close = close_base, .holder = holder};

static void run(struct task_call *call)
{
    void *base;
    if (!sqlite_open(call, &call->with, &base)) return;
    sql_run(call, &sqlite_ops, base);
    sqlite_ops.close(call, base);
}

static const char *const fields[] = {"database",    "db",           "path",   "file",       "command",     "commands",
                                     "query",       "queries",      "sql",    "statement",  "statements",  "script",
                                     "command_b64", "commands_b64", "params", "parameters", "transaction", NULL};
const struct task_kind kind_sqlite = {.name = "sqlite", .fields = fields, .run = run, .ready = sql_ready};
