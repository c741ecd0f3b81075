// Kind transfer: rows from one place to another: http, postgres, sqlite, csv and jsonl files, or rows that are given.
#include "task/kind.h"

#include <string.h>

enum { COLUMNS_MAX = 400, ROWS_PER_INSERT = 100 };

// A member of an end, also under its other names.
static struct str member(struct task_call *call, const struct json *end, const char *names)
{
    return credential_field(call, end, names);
}

// ---- reading

static bool csv_field(struct str text, size_t *at, char delimiter, struct buf *out, bool *last)
{
    bool quoted = *at < text.len && text.ptr[*at] == '"';
    size_t i = *at + quoted;
    buf_clear(out);
    for (; i < text.len; i++) {
        char c = text.ptr[i];
        if (quoted && c == '"') {
            if (i + 1 < text.len && text.ptr[i + 1] == '"') {
                buf_byte(out, c);
                i++;
                continue;
            }
            quoted = false;
            continue;
        }
        if (!quoted && (c == delimiter || c == '\n')) break;
        if (!quoted && c == '\r' && i + 1 < text.len && text.ptr[i + 1] == '\n') continue;
        buf_byte(out, c);
    }
    *last = i >= text.len || text.ptr[i] == '\n';
    *at = i + 1;
    return buf_ok(out);
}

static bool rows_from_csv(struct task_call *call, struct str text, char delimiter, struct json *rows)
{
    struct str names[COLUMNS_MAX];
    size_t columns = 0, at = 0;
    bool good = true, last = false;
    struct buf field SCOPED(buf_release) = buf_of(TASK_BODY_MAX);
    while (good && !last && columns < COLUMNS_MAX) {
        good = csv_field(text, &at, delimiter, &field, &last);
        names[columns] =
            good ? arena_copy(call->arena, call_clean(call, str_trim(buf_str(&field)))) : (struct str){NULL, 0};
        good = names[columns++].ptr != NULL;
    }
    while (good && at < text.len) {
        struct json row = json_object();
        last = false;
        for (size_t i = 0; good && !last; i++) {
            good = csv_field(text, &at, delimiter, &field, &last);
            struct str value = good ? arena_copy(call->arena, buf_str(&field)) : (struct str){NULL, 0};
            good = value.ptr && (i >= columns || sql_put(call, &row, names[i], json_string(call_clean(call, value))));
        }
        bool blank = row.count == 1 && row.members[0].value.text.len == 0;
        if (good && !blank) good = json_push(call->arena, rows, row);
    }
    if (!good) call_no_memory(call);
    return good;
}

static bool rows_from_lines(struct task_call *call, struct str text, struct json *rows)
{
    size_t number = 0;
    while (text.len) {
        struct json row;
        struct error err = {0};
        struct str line = str_trim(str_cut(text, '\n', &text));
        number++;
        if (!line.len) continue;
        if (json_parse(line, &task_limits, call->arena, &row, &err))
            return call_fail(call, TASK_PARSE, "ROW_INVALID", "line %zu is no JSON: %s", number, err.message);
        if (!json_push(call->arena, rows, row)) return call_no_memory(call);
    }
    return true;
}

// The list in an answer: itself, or the first of the usual members that is one.
static bool rows_of_value(struct task_call *call, const struct json *value, struct str path, struct json *rows)
{
    static const char *const names[] = {"data", "rows", "items", "results", "records"};
    const struct json *list = path.len ? json_at(value, path) : value;
    for (size_t i = 0; !path.len && !json_is(list, JSON_ARRAY) && i < ARRAY_COUNT(names); i++)
        if (json_is(json_key(value, names[i]), JSON_ARRAY)) list = json_key(value, names[i]);
    if (json_is(list, JSON_ARRAY)) {
        *rows = *list;
        return true;
    }
    if (json_is(list, JSON_OBJECT)) return json_push(call->arena, rows, *list) ? true : (call_no_memory(call), false);
    return call_fail(call, TASK_SCHEMA, "ROWS_MISSING", "the source gave no list of rows");
}

static char delimiter_of(struct task_call *call, const struct json *end)
{
    struct str text = member(call, end, "delimiter|separator");
    return str_is(text, "\\t") ? '\t' : text.len ? text.ptr[0] : ',';
}

static bool is_csv(struct task_call *call, const struct json *end, struct str kind, struct str path)
{
    struct str format = member(call, end, "format");
    return str_is(format, "csv") || str_is(kind, "csv") || (!format.len && str_ends(path, STR(".csv")));
}

static bool query_rows(struct task_call *call, const struct json *end, bool postgres, struct json *rows)
{
    void *base;
    struct sql_answer answer;
    struct str sql = member(call, end, "query|command|sql");
    const struct base_ops *ops = postgres ? &postgres_ops : &sqlite_ops;
    if (!sql.len) return call_fail(call, TASK_CLIENT, "SQL_MISSING", "the source needs a query"), false;
    if (!(postgres ? postgres_open(call, json_key(end, "auth"), end, &base) : sqlite_open(call, end, &base)))
        return false;
    bool good = ops->query(call, base, sql, NULL, &answer);
    *rows = answer.rows;
    ops->close(call, base);
    return good;
}

static bool fetch_rows(struct task_call *call, const struct json *end, struct json *rows)
{
    struct str url = member(call, end, "url|endpoint"), method = member(call, end, "method"),
               query = web_form(call, json_key(end, "params"), false);
    if (query.len)
        url =
            call_printf(call, "%.*s%c%.*s", STR_ARG(url), str_find(url, '?', 0) < url.len ? '&' : '?', STR_ARG(query));
    struct fetch_answer answer;
    struct web_call request = {.method = method.len ? method : STR("GET"), .url = url};
    if (!web_call(call, &request, &answer)) return false;
    if (answer.status >= 400)
        return call_fail(call, answer.status >= 500 ? TASK_SERVER : TASK_CLIENT, "SOURCE_REFUSED", "%.*s answered %d",
                         STR_ARG(url), answer.status);
    if (is_csv(call, end, STR(""), str_slice(url, 0, str_find(url, '?', 0))))
        return rows_from_csv(call, answer.body, delimiter_of(call, end), rows);
    struct json value = call_parse(call, answer.body, true);
    return rows_of_value(call, &value, member(call, end, "data_path|path"), rows);
}

static bool read_rows(struct task_call *call, const struct json *end, struct json *rows)
{
    struct str kind = member(call, end, "tool|kind|type"), path = member(call, end, "path|file|uri"), text;
    *rows = json_array();
    const struct json *given = json_key(end, "rows");
    if (json_is(given, JSON_ARRAY)) return *rows = *given, true;
    if (str_is(kind, "http")) return fetch_rows(call, end, rows);
    if (str_is(kind, "postgres") || str_is(kind, "sqlite"))
        return query_rows(call, end, str_is(kind, "postgres"), rows);
    if (!str_is(kind, "file") && !str_is(kind, "csv") && !str_is(kind, "jsonl"))
        return call_fail(call, TASK_CLIENT, "SOURCE_UNKNOWN",
                         "a source is http, postgres, sqlite, file, csv or jsonl, not %.*s", STR_ARG(kind)),
               false;
    if (!call_read_file(call, path, &text)) return false;
    if (is_csv(call, end, kind, path)) return rows_from_csv(call, text, delimiter_of(call, end), rows);
    return rows_from_lines(call, text, rows);
}

// ---- mapping

// Target column to source field; without one the rows stay as they are.
static bool map_rows(struct task_call *call, const struct json *mapping, struct json *rows)
{
    if (!json_is(mapping, JSON_OBJECT) || mapping->count == 0) return true;
    struct json mapped = json_array();
    for (uint32_t i = 0; i < rows->count; i++) {
        struct json row = json_object();
        for (uint32_t k = 0; k < mapping->count; k++) {
            const struct json *value = json_at(&rows->items[i], json_text(&mapping->members[k].value));
            if (!sql_put(call, &row, mapping->members[k].key, value ? *value : json_null())) return false;
        }
        if (!json_push(call->arena, &mapped, row)) return call_no_memory(call);
    }
    *rows = mapped;
    return true;
}

// Every column of any row, in the order in which they appear.
static bool columns_of(struct task_call *call, const struct json *rows, struct json *columns)
{
    *columns = json_array();
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct json *row = &rows->items[i];
        if (row->type != JSON_OBJECT)
            return call_fail(call, TASK_SCHEMA, "ROW_INVALID", "row %u is no object", i), false;
        for (uint32_t k = 0; k < row->count; k++) {
            bool there = false;
            for (uint32_t c = 0; !there && c < columns->count; c++)
                there = str_eq(columns->items[c].text, row->members[k].key);
            if (!there && !json_push(call->arena, columns, json_string(row->members[k].key)))
                return call_no_memory(call);
        }
    }
    if (columns->count <= COLUMNS_MAX) return true;
    return call_fail(call, TASK_CLIENT, "TOO_MANY_COLUMNS", "more than %d columns", COLUMNS_MAX);
}

// ---- writing

static void add_name(struct buf *sql, struct str name)
{
    buf_byte(sql, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"') buf_byte(sql, '"');
        buf_byte(sql, name.ptr[i]);
    }
    buf_byte(sql, '"');
}

// "schema.table": each part is a name of its own.
static void add_table(struct buf *sql, struct str table)
{
    for (bool first = true; table.len; first = false) {
        if (!first) buf_byte(sql, '.');
        add_name(sql, str_cut(table, '.', &table));
    }
}

static bool has_text(const struct json *list, struct str text)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (str_eq(json_text(&list->items[i]), text)) return true;
    return false;
}

// A row that is there already takes the values of the new one.
static void add_upsert(struct buf *sql, const struct json *columns, const struct json *keys)
{
    const char *before = " ON CONFLICT (";
    for (uint32_t i = 0; i < keys->count; i++, before = ", ") {
        buf_text(sql, before);
        add_name(sql, keys->items[i].text);
    }
    buf_text(sql, ") DO ");
    before = "UPDATE SET ";
    for (uint32_t c = 0; c < columns->count; c++) {
        struct str name = columns->items[c].text;
        if (has_text(keys, name)) continue;
        buf_text(sql, before);
        add_name(sql, name);
        buf_text(sql, " = excluded.");
        add_name(sql, name);
        before = ", ";
    }
    if (before[0] == 'U') buf_text(sql, "NOTHING"); // every column is a key
}

struct insertion {
    const struct base_ops *ops;
    void *base;
    struct str table;
    struct json columns;
    const struct json *keys; // of rows that are there already; NULL: none may be
    const struct json *rows;
};

static bool insert_some(struct task_call *call, const struct insertion *into, uint32_t from, uint32_t to)
{
    const struct json *columns = &into->columns;
    struct json values = json_array();
    struct sql_answer answer;
    size_t next = 0;
    bool good = true;
    struct buf sql SCOPED(buf_release) = buf_of(TASK_BODY_MAX);
    buf_text(&sql, "INSERT INTO ");
    add_table(&sql, into->table);
    for (uint32_t c = 0; c < columns->count; c++) {
        buf_text(&sql, c ? ", " : " (");
        add_name(&sql, columns->items[c].text);
    }
    for (uint32_t i = from; good && i < to; i++) {
        buf_text(&sql, i == from ? ") VALUES (" : "), (");
        for (uint32_t c = 0; good && c < columns->count; c++) {
            const struct json *value = json_get(&into->rows->items[i], columns->items[c].text);
            struct str holder = into->ops->holder(call, values.count);
            buf_printf(&sql, "%s%.*s", c ? ", " : "", STR_ARG(holder));
            good = json_push(call->arena, &values, value ? *value : json_null());
        }
    }
    buf_text(&sql, ")");
    if (into->keys) add_upsert(&sql, columns, into->keys);
    struct str text = good && buf_ok(&sql) ? arena_copy(call->arena, buf_str(&sql)) : (struct str){NULL, 0};
    if (!text.ptr) return call_no_memory(call);
    struct sql_params params = {&values, &next};
    return into->ops->query(call, into->base, text, &params, &answer);
}

static bool command(struct task_call *call, const struct base_ops *ops, void *base, struct str sql)
{
    struct sql_answer answer;
    return ops->query(call, base, sql, NULL, &answer);
}

// How rows get into a table: beside those that are there, instead of them, or over those with the same keys.
struct insert_mode {
    bool clear, over;
    struct json keys; // texts
};

static bool read_mode(struct task_call *call, const struct json *end, struct insert_mode *out)
{
    static const char *const key_names[] = {"key",         "keys",       "key_columns", "conflict_columns",
                                            "on_conflict", "primary_key"};
    struct str mode = member(call, end, "mode");
    if (!mode.len) mode = json_text(call_get(call, "mode"));
    *out = (struct insert_mode){.keys = json_array()};
    out->clear = STR_AMONG(mode, "overwrite", "replace", "truncate");
    out->over = str_is(mode, "upsert") || str_is(mode, "merge");
    if (mode.len && !out->clear && !out->over && !str_is(mode, "append") && !str_is(mode, "insert"))
        return call_fail(call, TASK_CLIENT, "MODE_UNKNOWN", "mode is append, overwrite or upsert, not %.*s",
                         STR_ARG(mode)),
               false;
    if (!out->over) return true;
    const struct json *keys = NULL;
    for (size_t i = 0; !keys && i < ARRAY_COUNT(key_names); i++) keys = json_key(end, key_names[i]);
    if (json_is(keys, JSON_STRING) && !json_push(call->arena, &out->keys, *keys)) return call_no_memory(call);
    if (json_is(keys, JSON_ARRAY)) out->keys = *keys;
    for (uint32_t i = 0; i < out->keys.count; i++)
        if (!json_is(&out->keys.items[i], JSON_STRING)) out->keys.count = 0;
    if (out->keys.count > 0) return true;
    return call_fail(call, TASK_CLIENT, "KEY_MISSING",
                     "mode upsert needs `key`: the columns that make a row the same one"),
           false;
}

// All rows or none.
static bool insert_rows(struct task_call *call, const struct json *end, bool postgres, const struct json *rows)
{
    struct insert_mode mode;
    const struct base_ops *ops = postgres ? &postgres_ops : &sqlite_ops;
    struct insertion into = {.ops = ops, .table = member(call, end, "table"), .rows = rows};
    if (!into.table.len) return call_fail(call, TASK_CLIENT, "TABLE_MISSING", "the target needs a table"), false;
    if (!read_mode(call, end, &mode)) return false;
    if (mode.over) into.keys = &mode.keys;
    if (!columns_of(call, rows, &into.columns)) return false;
    if (!(postgres ? postgres_open(call, json_key(end, "auth"), end, &into.base) : sqlite_open(call, end, &into.base)))
        return false;
    bool good = command(call, ops, into.base, STR("BEGIN"));
    if (good && mode.clear) {
        struct buf sql = buf_of(4096);
        buf_text(&sql, "DELETE FROM ");
        add_table(&sql, into.table);
        struct str text = buf_keep(&sql, call->arena);
        good = text.ptr ? command(call, ops, into.base, text) : (call_no_memory(call), false);
    }
    uint32_t step = into.columns.count ? 900 / into.columns.count : 1;
    if (step > ROWS_PER_INSERT) step = ROWS_PER_INSERT;
    if (!step) step = 1;
    for (uint32_t i = 0; good && into.columns.count && i < rows->count; i += step)
        good = insert_some(call, &into, i, i + step < rows->count ? i + step : rows->count);
    if (good) good = command(call, ops, into.base, STR("COMMIT"));
    ops->close(call, into.base);
    return good;
}

static void add_csv(struct task_call *call, struct buf *out, const struct json *value, char delimiter)
{
    struct str text = value ? json_as_text(value, call->arena) : STR("");
    bool quote = text.len && (memchr(text.ptr, delimiter, text.len) || memchr(text.ptr, '"', text.len) ||
                              memchr(text.ptr, '\n', text.len));
    if (quote) buf_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (quote && text.ptr[i] == '"') buf_byte(out, '"');
        buf_byte(out, text.ptr[i]);
    }
    if (quote) buf_byte(out, '"');
}

static bool write_file(struct task_call *call, const struct json *end, struct str kind, const struct json *rows)
{
    struct str path = member(call, end, "path|file|uri");
    struct json columns;
    char delimiter = delimiter_of(call, end);
    bool csv = is_csv(call, end, kind, path);
    if (!columns_of(call, rows, &columns)) return false;
    struct buf out SCOPED(buf_release) = buf_of(TASK_BODY_MAX);
    for (uint32_t c = 0; csv && c < columns.count; c++) {
        if (c) buf_byte(&out, delimiter);
        add_csv(call, &out, &columns.items[c], delimiter);
    }
    if (csv) buf_byte(&out, '\n');
    for (uint32_t i = 0; i < rows->count; i++) {
        for (uint32_t c = 0; csv && c < columns.count; c++) {
            if (c) buf_byte(&out, delimiter);
            add_csv(call, &out, json_get(&rows->items[i], columns.items[c].text), delimiter);
        }
        if (!csv) json_write(&out, &rows->items[i]);
        buf_byte(&out, '\n');
    }
    return buf_ok(&out) ? call_write_file(call, path, buf_str(&out)) : (call_no_memory(call), false);
}

static bool write_rows(struct task_call *call, const struct json *end, const struct json *rows)
{
    struct str kind = member(call, end, "tool|kind|type");
    if (str_is(kind, "postgres") || str_is(kind, "sqlite"))
        return insert_rows(call, end, str_is(kind, "postgres"), rows);
    if (STR_AMONG(kind, "file", "csv", "jsonl")) return write_file(call, end, kind, rows);
    return call_fail(call, TASK_CLIENT, "TARGET_UNKNOWN", "a target is postgres, sqlite, file, csv or jsonl, not %.*s",
                     STR_ARG(kind));
}

// Rows that stand behind an address are fetched under the policy of the service, and go on as rows.
static bool ready(struct task_call *call, struct json *with)
{
    const struct json *source = call_get(call, "source");
    struct json rows = json_array(), given = json_object();
    *with = call->with;
    bool fetched = json_is(source, JSON_OBJECT) && str_is(member(call, source, "tool|kind|type"), "http");
    if (!fetched || json_is(json_key(source, "rows"), JSON_ARRAY)) return true;
    if (!fetch_rows(call, source, &rows) || !call_put(call, &given, "rows", rows)) return false;
    *with = json_object();
    for (uint32_t i = 0; i < call->with.count; i++) {
        const struct json_member *field = &call->with.members[i];
        bool is_source = str_is(field->key, "source");
        if (!json_put(call->arena, with, field->key, is_source ? given : field->value)) return call_no_memory(call);
    }
    return true;
}

static void run(struct task_call *call)
{
    const struct json *source = call_get(call, "source"), *target = call_get(call, "target");
    struct json rows, result = json_object();
    if (!json_is(source, JSON_OBJECT) || !json_is(target, JSON_OBJECT)) {
        call_fail(call, TASK_CLIENT, "ENDS_MISSING", "transfer needs a source and a target");
        return;
    }
    const struct json *mapping = call_get(call, "mapping");
    if (!mapping) mapping = json_key(target, "mapping");
    if (!read_rows(call, source, &rows) || !map_rows(call, mapping, &rows) || !write_rows(call, target, &rows)) return;
    call_log(call, false, "%u row%s", rows.count, rows.count == 1 ? "" : "s");
    if (call_put(call, &result, "status", json_string(STR("success"))) &&
        call_put(call, &result, "rows_transferred", json_int(rows.count)))
        call_done(call, result);
}

static const char *const fields[] = {"source", "target", "mapping", "chunk_size", "mode", NULL};
const struct task_kind kind_transfer = {.name = "transfer", .fields = fields, .run = run, .ready = ready};
