// SQL as text: statements of a script, parameters by name, and the shape of what databases give back.
#include "task/kind.h"

#include <string.h>
#include <unistd.h>

enum { STATEMENTS_MAX = 1001, PARAMETERS_MAX = 1000 };

static bool is_word(char c)
{
    return char_is_word(c) ||
           (unsigned char)c >= 0x80;
}

// The end of what begins at `at` and hides what is in it: a quote, a comment, a $tag$. `at` itself when nothing does.
static size_t skip_quote(struct str sql, size_t at, bool escapes)
{
    char quote = sql.ptr[at];
    for (size_t i = at + 1; i < sql.len; i++) {
        if (escapes && sql.ptr[i] == '\\')
            i++;
        else if (sql.ptr[i] == quote)
            return i + 1; // a doubled one begins the next quote
    }
    return sql.len;
}

static size_t skip_comment(struct str sql, size_t at)
{
    unsigned depth = 0;
    for (size_t i = at; i + 1 < sql.len; i++) {
        if (sql.ptr[i] == '/' && sql.ptr[i + 1] == '*')
            depth++, i++;
        else if (sql.ptr[i] == '*' && sql.ptr[i + 1] == '/' && (i++, --depth == 0))
            return i + 1;
    }
    return sql.len;
}

static size_t skip_dollar(struct str sql, size_t at)
{
    size_t end = at + 1;
    while (end < sql.len && is_word(sql.ptr[end])) end++;
    bool digit = end > at + 1 && sql.ptr[at + 1] >= '0' && sql.ptr[at + 1] <= '9';
    bool inside = at > 0 && is_word(sql.ptr[at - 1]);
    if (end >= sql.len || sql.ptr[end] != '$' || digit || inside) return at;
    struct str tag = str_slice(sql, at, end + 1);
    for (size_t i = end + 1; i + tag.len <= sql.len; i++)
        if (memcmp(sql.ptr + i, tag.ptr, tag.len) == 0) return i + tag.len;
    return sql.len;
}

size_t sql_hidden(struct str sql, size_t at)
{
    char c = sql.ptr[at], next = at + 1 < sql.len ? sql.ptr[at + 1] : '\0';
    if (c == '\'') {
        bool escapes = at > 0 && (sql.ptr[at - 1] | 0x20) == 'e' && (at == 1 || !is_word(sql.ptr[at - 2]));
        return skip_quote(sql, at, escapes);
    }
    if (c == '"') return skip_quote(sql, at, false);
    if (c == '-' && next == '-') return str_find(sql, '\n', at);
    if (c == '/' && next == '*') return skip_comment(sql, at);
    return c == '$' ? skip_dollar(sql, at) : at;
}

static bool is_comment(struct str sql, size_t at)
{
    return at + 1 < sql.len &&
           ((sql.ptr[at] == '-' && sql.ptr[at + 1] == '-') || (sql.ptr[at] == '/' && sql.ptr[at + 1] == '*'));
}

// The statements of a script of Postgres: cut at the semicolons that end them, quotes and comments understood; empty ones left out.
static size_t sql_split(struct str script, struct str *out, size_t max)
{
    size_t count = 0, from = 0;
    bool filled = false; // more than blanks and comments
    for (size_t at = 0; at <= script.len;) {
        if (at == script.len || script.ptr[at] == ';') {
            if (filled && count < max) out[count++] = str_trim(str_slice(script, from, at));
            from = ++at;
            filled = false;
            continue;
        }
        size_t end = sql_hidden(script, at);
        char c = script.ptr[at];
        filled |= end > at ? !is_comment(script, at) : !(c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f');
        at = end > at ? end : at + 1;
    }
    return count;
}

// ---- texts that stand elsewhere

static int sixtet(char c)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? (int)(at - letters) : -1;
}

// command_b64 and commands_b64
static bool decode(struct task_call *call, struct str text, struct str *out)
{
    char *made = arena_alloc(call->arena, text.len + 1);
    if (!made) return call_no_memory(call);
    size_t len = 0;
    uint32_t bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < text.len; i++) {
        int six = sixtet(text.ptr[i]);
        if (six < 0 && text.ptr[i] != '=' && !strchr(" \r\n\t", text.ptr[i]))
            return call_fail(call, TASK_CLIENT, "SQL_MISSING", "no SQL command provided: this is not base64");
        if (six < 0) continue;
        bits = bits << 6 | (uint32_t)six;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        made[len++] = (char)(bits >> have & 0xFF);
    }
    *out = call_clean(call, (struct str){made, len});
    return true;
}

// A file as it is named, else beside the document and further up.
static struct str near_document(struct task_call *call, struct str path)
{
    struct str document = json_text(json_key(&call->input, "document")), here = document;
    if (str_starts(path, STR("/")) || access(call_printf(call, "%.*s", STR_ARG(path)).ptr, R_OK) == 0) return path;
    while (here.len > 0) {
        while (here.len > 0 && here.ptr[here.len - 1] != '/') here.len--;
        struct str there = call_printf(call, "%.*s%.*s", STR_ARG(here), STR_ARG(path));
        if (access(there.ptr, R_OK) == 0) return there;
        if (here.len > 0) here.len--;
    }
    return path;
}

static bool load_script(struct task_call *call, const struct json *script, struct str *out)
{
    struct script_place place;
    if (!script_find(call, script, &place)) return false;
    if (place.web) return script_fetch(call, &place, out);
    if (str_starts(place.uri, STR("file://"))) place.uri = str_slice(place.uri, 7, place.uri.len);
    return call_read_file(call, call_confined(call) ? place.uri : near_document(call, place.uri), out);
}

// SQL that is not written out. *out is empty when there is none.
static bool text_elsewhere(struct task_call *call, struct str *out)
{
    const struct json *encoded = call_get(call, "command_b64"), *script = call_get(call, "script");
    if (!encoded) encoded = call_get(call, "commands_b64");
    *out = (struct str){0};
    if (json_is(encoded, JSON_STRING)) return decode(call, encoded->text, out);
    return !script || load_script(call, script, out);
}

bool call_script(struct task_call *call, struct str **out, size_t *count)
{
    static const char *const names[] = {"command", "commands", "query", "queries", "sql", "statement", "statements"};
    const struct json *value = NULL;
    for (size_t i = 0; !value && i < ARRAY_COUNT(names); i++) value = call_get(call, names[i]);
    size_t texts = json_is(value, JSON_ARRAY) ? value->count : 1;
    *out = ARENA_ARRAY(call->arena, texts, struct str);
    *count = 0;
    if (!*out) return call_no_memory(call);
    for (size_t i = 0; value && i < texts; i++) {
        const struct json *item = json_is(value, JSON_ARRAY) ? &value->items[i] : value;
        if (json_is(item, JSON_OBJECT))
            item = json_key(item, "sql") ? json_key(item, "sql") : json_key(item, "command");
        struct str text = str_trim(json_text(item));
        if (text.len) (*out)[(*count)++] = text;
    }
    struct str found = {0};
    if (!value && !text_elsewhere(call, &found)) return false;
    found = str_trim(found);
    if (found.len) (*out)[(*count)++] = found;
    if (*count) return true;
    return call_fail(call, TASK_CLIENT, "SQL_MISSING", "no SQL command provided: %s needs command, commands or query",
                     call->kind->name);
}

static bool call_statements(struct task_call *call, struct str **out, size_t *count)
{
    struct str *texts;
    size_t text_count;
    *count = 0;
    *out = ARENA_ARRAY(call->arena, STATEMENTS_MAX, struct str);
    if (!*out) return call_no_memory(call);
    if (!call_script(call, &texts, &text_count)) return false;
    for (size_t i = 0; i < text_count; i++) *count += sql_split(texts[i], *out + *count, STATEMENTS_MAX - *count);
    if (*count && *count < STATEMENTS_MAX) return true;
    call_fail(call, TASK_CLIENT, *count ? "SQL_TOO_LONG" : "SQL_MISSING",
              *count ? "there are more than 1000 statements"
                     : "no SQL command provided: there is nothing but comments");
    return false;
}

// ---- parameters

struct binder {
    struct task_call *call;
    struct str sql;
    const struct json *params;
    struct buf out;
    struct json list;
    uint32_t names; // members of `params` by position in `list`
    struct str seen[PARAMETERS_MAX];
    size_t *next; // of those without a name
    bool percent; // one was written as %s or %(name)s: then %% is a percent sign, also inside of texts
};

static bool bind_value(struct binder *b, const struct json *value)
{
    if (!json_push(b->call->arena, &b->list, value ? *value : json_null())) return call_no_memory(b->call), false;
    buf_printf(&b->out, "$%u", b->list.count);
    return true;
}

static bool bind_name(struct binder *b, struct str name)
{
    const struct json *value = json_get(b->params, name);
    if (!value)
        return call_fail(b->call, TASK_CLIENT, "PARAMETER_MISSING", "there is no parameter %.*s", STR_ARG(name));
    for (uint32_t i = 0; i < b->names; i++)
        if (str_eq(b->seen[i], name)) return buf_printf(&b->out, "$%u", i + 1), true;
    if (b->names < PARAMETERS_MAX) b->seen[b->names++] = name;
    return bind_value(b, value);
}

// What stands at `at` when it is a parameter: its end; `at` when it is none. False: it has no value.
static bool bind_at(struct binder *b, size_t at, size_t *end)
{
    struct str sql = b->sql;
    bool object = json_is(b->params, JSON_OBJECT);
    *end = at;
    if (object && sql.ptr[at] == ':' && at + 1 < sql.len && is_word(sql.ptr[at + 1]) &&
        (at == 0 || sql.ptr[at - 1] != ':') && !(sql.ptr[at + 1] >= '0' && sql.ptr[at + 1] <= '9')) {
        size_t to = at + 1;
        while (to < sql.len && is_word(sql.ptr[to])) to++;
        struct str name = str_slice(sql, at + 1, to);
        if (!json_get(b->params, name)) return true; // a slice a[1:n], perhaps: the database will tell
        *end = to;
        return bind_name(b, name);
    }
    if (object && sql.ptr[at] == '%' && at + 1 < sql.len && sql.ptr[at + 1] == '(') {
        size_t to = str_find(sql, ')', at);
        if (to + 1 >= sql.len || sql.ptr[to + 1] != 's') return true;
        *end = to + 2;
        b->percent = true;
        return bind_name(b, str_slice(sql, at + 2, to));
    }
    if (!object && sql.ptr[at] == '%' && at + 1 < sql.len && sql.ptr[at + 1] == 's' && *b->next < b->params->count) {
        *end = at + 2;
        b->percent = true;
        return bind_value(b, &b->params->items[(*b->next)++]);
    }
    return true;
}

static bool bind_numbered(struct binder *b, uint32_t highest)
{
    for (uint32_t i = b->list.count; i < highest && i < b->params->count; i++)
        if (!json_push(b->call->arena, &b->list, b->params->items[i])) return call_no_memory(b->call), false;
    return true;
}

static void halve_percents(struct buf *sql)
{
    size_t to = 0;
    for (size_t at = 0; at < sql->len; at++) {
        sql->ptr[to++] = sql->ptr[at];
        if (sql->ptr[at] == '%' && at + 1 < sql->len && sql->ptr[at + 1] == '%') at++;
    }
    sql->len = to;
}

bool sql_bind(struct task_call *call, struct str sql, const struct sql_params *given, struct str *out,
              struct json *list)
{
    const struct json *params = given ? given->values : NULL;
    *out = sql;
    *list = json_array();
    if (!json_is(params, JSON_OBJECT) && !json_is(params, JSON_ARRAY)) return true;
    struct binder *b = ARENA_NEW(call->arena, struct binder);
    if (!b) return call_no_memory(call);
    *b = (struct binder){.call = call, .sql = sql, .params = params, .list = json_array(), .next = given->next};
    buf_init(&b->out, TASK_BODY_MAX);
    bool good = true;
    uint32_t highest = 0;
    for (size_t at = 0; good && at < sql.len;) {
        size_t end = sql_hidden(sql, at);
        if (end == at)
            good = bind_at(b, at, &end);
        else
            buf_add(&b->out, str_slice(sql, at, end));
        if (good && end == at) {
            int64_t number = 0;
            size_t to = at + 1;
            while (to < sql.len && sql.ptr[to] >= '0' && sql.ptr[to] <= '9') to++;
            if (sql.ptr[at] == '$' && str_int64(str_slice(sql, at + 1, to), &number) && number > highest &&
                number < PARAMETERS_MAX)
                highest = (uint32_t)number;
            buf_byte(&b->out, sql.ptr[at]);
            end = at + 1;
        }
        at = end;
    }
    if (good && json_is(params, JSON_ARRAY)) good = bind_numbered(b, highest);
    if (good && b->percent) halve_percents(&b->out);
    *out = good && buf_ok(&b->out) ? arena_copy(call->arena, buf_str(&b->out)) : (struct str){NULL, 0};
    *list = b->list;
    buf_release(&b->out);
    if (good && !out->ptr) call_no_memory(call);
    return good && out->ptr;
}

// The fields, with the texts of the SQL in place of where they stand.
bool sql_ready(struct task_call *call, struct json *out)
{
    static const char *const texts[] = {"command", "commands",   "query",  "queries",     "sql",
                                        "statement", "statements", "script", "command_b64", "commands_b64"};
    struct str *scripts;
    size_t count;
    struct json list = json_array();
    if (!call_script(call, &scripts, &count)) return false;
    *out = json_object();
    for (uint32_t i = 0; i < call->with.count; i++) {
        const struct json_member *member = &call->with.members[i];
        bool text = false;
        for (size_t n = 0; n < ARRAY_COUNT(texts); n++) text |= str_is(member->key, texts[n]);
        if (!text && !json_put(call->arena, out, member->key, member->value)) return call_no_memory(call);
    }
    for (size_t i = 0; i < count; i++)
        if (!json_push(call->arena, &list, json_string(scripts[i]))) return call_no_memory(call);
    return call_put(call, out, "commands", list);
}

// ---- results

static bool sql_result(struct task_call *call, struct json *result, size_t index, const struct json *rows,
                       const struct json *columns, int64_t affected)
{
    struct json one = json_object();
    int64_t count = rows->count ? rows->count : affected;
    bool good = call_put(call, &one, "status", json_string(STR("success"))) && call_put(call, &one, "rows", *rows) &&
                call_put(call, &one, "row_count", json_int(count)) && call_put(call, &one, "columns", *columns);
    return good && call_put(call, result, call_printf(call, "command_%zu", index).ptr, one);
}

bool sql_put(struct task_call *call, struct json *row, struct str column, struct json value)
{
    for (uint32_t i = 0; i < row->count; i++) {
        if (!str_eq(row->members[i].key, column)) continue;
        row->members[i].value = value; // two columns of one name: the last one is seen
        return true;
    }
    if (json_put(call->arena, row, column, value)) return true;
    return call_no_memory(call);
}

void sql_run(struct task_call *call, const struct base_ops *ops, void *base)
{
    struct str *statements;
    size_t count, next = 0;
    const struct json *params = call_get(call, "params");
    struct json result = json_object();
    if (!params) params = call_get(call, "parameters");
    bool whole = call_flag(call, "transaction", false), good = true;
    if (!(ops->whole_scripts ? call_script(call, &statements, &count) : call_statements(call, &statements, &count)))
        return;
    struct sql_answer answer;
    if (whole) good = ops->query(call, base, STR("BEGIN"), NULL, &answer);
    size_t index = 0;
    for (size_t i = 0; good && i < count; i++) {
        struct str rest = statements[i];
        while (good && rest.len) {
            good = ops->query(call, base, rest, params ? &(struct sql_params){params, &next} : NULL, &answer);
            if (good && answer.rows.type)
                good = sql_result(call, &result, index++, &answer.rows, &answer.columns, answer.affected);
            rest = str_trim(answer.after);
        }
    }
    if (whole && good) good = ops->query(call, base, STR("COMMIT"), NULL, &answer);
    if (good) {
        call_log(call, false, "%zu statement%s", index, index == 1 ? "" : "s");
        call_done(call, result);
        return;
    }
    call->out.result = result; // of those before the one that failed
}
