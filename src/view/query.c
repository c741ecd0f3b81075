#include "view/query_inside.h"

#include "base/civil.h"

#include <string.h>

enum { DEPTH_MAX = 64, VALUES_MAX = 64, TEXT_SIZE_MAX = 16384 };

#define DAY_MS 86400000LL

static const struct field {
    struct query_field_info info;
    enum query_type type;
    enum query_level level;
} fields[] = {
    [FIELD_NONE] = {{0}, 0, 0},
#define X(name, text, type, level, values, about) [FIELD_##name] = {{text, values, about}, TYPE_##type, LEVEL_##level},
    QUERY_FIELD_LIST(X)
#undef X
        [FIELD_WORD] = {{0}, TYPE_TEXT, LEVEL_HEAD},
};

enum query_type query_field_type(enum query_field field)
{
    return fields[field].type;
}

enum query_level query_field_level(enum query_field field)
{
    return fields[field].level;
}

const struct query_field_info *query_field_at(size_t index)
{
    return index + 1 < FIELD_WORD ? &fields[index + 1].info : NULL;
}

// ---- reading

struct reader {
    struct arena *arena;
    struct str text;
    size_t at;
    unsigned depth;
    struct query *query;
    struct query_fault *fault;
    bool failed;
};

// Where the fault is. The first one counts.
static void *point(struct reader *r, size_t at, size_t len)
{
    if (!r->failed) {
        r->fault->at = at;
        r->fault->len = len;
    }
    r->failed = true;
    return NULL;
}

#define fail(r, where, size, ...) (error_set(&(r)->fault->error, E_INVALID, __VA_ARGS__), point(r, where, size))
#define advise(r, ...) (void)error_set(&(r)->fault->hint, E_INVALID, __VA_ARGS__)

static void *no_memory(struct reader *r)
{
    error_nomem(&r->fault->error);
    return point(r, 0, 0);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char peek(const struct reader *r)
{
    return r->at < r->text.len ? r->text.ptr[r->at] : '\0';
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->text.len && is_blank(peek(r))) r->at++;
}

// Up to a blank, a parenthesis or a character of `stop`.
static struct str read_word(struct reader *r, const char *stop)
{
    size_t from = r->at;
    while (r->at < r->text.len) {
        char c = peek(r);
        if (is_blank(c) || c == '(' || c == ')' || (c && strchr(stop, c))) break;
        r->at++;
    }
    return str_slice(r->text, from, r->at);
}

static bool same_word(struct str text, const char *word)
{
    size_t len = strlen(word);
    if (text.len != len) return false;
    for (size_t i = 0; i < len; i++) {
        char c = text.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + 32) : c) != word[i]) return false;
    }
    return true;
}

// A word such as "or" is one only when no operator follows it.
static bool next_is(struct reader *r, const char *word)
{
    size_t before = r->at;
    skip_blanks(r);
    if (same_word(read_word(r, "=!~<>"), word) && !(peek(r) && strchr("=!~<>", peek(r)))) return true;
    r->at = before;
    return false;
}

static enum query_op read_op(struct reader *r)
{
    static const struct {
        const char *text;
        enum query_op op;
    } ops[] = {{"!=", OP_NE}, {"!~", OP_UNLIKE}, {"<=", OP_LE}, {">=", OP_GE}, {"==", OP_EQ},
               {"=", OP_EQ},  {"~", OP_LIKE},    {"<", OP_LT},  {">", OP_GT}};
    size_t before = r->at;
    skip_blanks(r);
    struct str rest = str_slice(r->text, r->at, r->text.len);
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        if (!str_starts(rest, str_from(ops[i].text))) continue;
        r->at += strlen(ops[i].text);
        return ops[i].op;
    }
    r->at = before;
    return 0;
}

// ---- fields

// The names that runs have in JSON.
static const struct alias {
    const char *name, *field;
} aliases[] = {{"runId", "run"},
               {"planId", "plan"},
               {"planVersion", "version"},
               {"projectId", "project"},
               {"environmentId", "environment"},
               {"parentRunId", "parent"},
               {"originalRunId", "original"},
               {"createdAt", "created"},
               {"startedAt", "started"},
               {"endedAt", "ended"},
               {"completedAt", "ended"},
               {"updatedAt", "updated"},
               {"runningSteps", "running"},
               {"failedSteps", "failed"},
               {"completedSteps", "completed"},
               {"skippedSteps", "skipped"}};

static enum query_field find_field(struct str name, struct str *path)
{
    *path = STR("");
    for (size_t i = 0; i < ARRAY_COUNT(aliases); i++)
        if (str_is(name, aliases[i].name)) name = str_from(aliases[i].field);
    for (size_t i = 1; i < FIELD_WORD; i++) {
        struct str own = str_from(fields[i].info.name);
        if (str_eq(name, own) && !str_ends(own, STR("."))) return (enum query_field)i;
        if (str_ends(own, STR(".")) && str_starts(name, own) && name.len > own.len) {
            *path = str_slice(name, own.len, name.len);
            return (enum query_field)i;
        }
    }
    return FIELD_NONE;
}

static const char *nearest(struct str text, const char *(*name_at)(size_t), size_t count)
{
    size_t best = text.len < 4 ? 2 : text.len < 8 ? 3 : 4;
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = str_distance(text, str_from(name_at(i)), best);
        if (distance < best) {
            best = distance;
            found = name_at(i);
        }
    }
    return found;
}

static const char *field_name_at(size_t index)
{
    return fields[index + 1].info.name;
}

static void *unknown_field(struct reader *r, size_t at, struct str name)
{
    const char *near = nearest(name, field_name_at, FIELD_WORD - 1);
    fail(r, at, name.len, "there is no field %.*s", STR_ARG(name));
    if (near)
        advise(r, "did you mean %s%s?", near, str_ends(str_from(near), STR(".")) ? "NAME" : "");
    else
        advise(r, "fields: status, plan, run, created, started, took, step, error, tag, input.NAME, ...");
    return NULL;
}

static bool op_fits(enum query_type type, enum query_op op)
{
    switch (type) {
    case TYPE_STATUS:
    case TYPE_STEP_STATUS:
        return op == OP_EQ || op == OP_NE;
    case TYPE_TEXT:
        return op <= OP_UNLIKE;
    case TYPE_TIME:
    case TYPE_DURATION:
    case TYPE_NUMBER:
        return op != OP_LIKE && op != OP_UNLIKE;
    case TYPE_ANY:
        return true;
    }
    return false;
}

// ---- values

static const char *run_status_at(size_t index)
{
    return run_status_name((enum run_status)(index + RUN_STATUS_PENDING));
}

static const char *step_status_at(size_t index)
{
    return step_status_name((enum step_status)(index + STEP_STATUS_PENDING));
}

static struct str upper(struct str text, char out[32])
{
    size_t len = text.len < 31 ? text.len : 31;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(text.ptr[i] >= 'a' && text.ptr[i] <= 'z' ? text.ptr[i] - 32 : text.ptr[i]);
    return (struct str){out, len};
}

#define TERMINAL_MASK (1u << RUN_STATUS_COMPLETED | 1u << RUN_STATUS_FAILED | 1u << RUN_STATUS_CANCELLED)
#define ACTIVE_MASK                                                                                                    \
    (1u << RUN_STATUS_PENDING | 1u << RUN_STATUS_APPROVED | 1u << RUN_STATUS_RUNNING | 1u << RUN_STATUS_PAUSED)

static bool read_run_status(struct reader *r, size_t at, struct query_value *value)
{
    char buffer[32];
    struct str word = upper(value->text, buffer);
    enum run_status status = run_status_parse(word);
    if (status) value->mask = 1u << status;
    if (str_is(word, "ACTIVE")) value->mask = ACTIVE_MASK;
    if (str_is(word, "ENDED")) value->mask = TERMINAL_MASK;
    if (value->mask) return true;
    const char *near = nearest(word, run_status_at, RUN_STATUS_CANCELLED);
    fail(r, at, value->text.len, "there is no status %.*s", STR_ARG(value->text));
    if (near) advise(r, "did you mean %s?", near);
    advise(r, "PENDING, APPROVED, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED, active, ended");
    return false;
}

static bool read_step_status(struct reader *r, size_t at, struct query_value *value)
{
    char buffer[32];
    struct str word = upper(value->text, buffer);
    enum step_status status = step_status_parse(word);
    if (str_is(word, "COMPLETED") || str_is(word, "DONE")) status = STEP_STATUS_SUCCESS;
    value->mask = status ? 1u << status : 0;
    if (status) return true;
    const char *near = nearest(word, step_status_at, STEP_STATUS_SKIPPED);
    fail(r, at, value->text.len, "there is no status %.*s of a step", STR_ARG(value->text));
    if (near) advise(r, "did you mean %s?", near);
    advise(r, "PENDING, RUNNING, SUCCESS, FAILED, SKIPPED");
    return false;
}

static bool read_owned(struct reader *r, size_t at, const struct query_value *value)
{
    if (same_word(value->text, "yes") || same_word(value->text, "no")) return true;
    fail(r, at, value->text.len, "owned is yes or no");
    return false;
}

// 2h, now-2h (ago), 2026-02-11 (that day, UTC), today, yesterday, 2026-02-11T17:00:00Z.
static bool read_time(struct reader *r, size_t at, enum query_op op, struct query_value *value)
{
    char whole[24];
    int64_t ago, midnight = r->query->now_ms - r->query->now_ms % DAY_MS;
    struct str text = value->text;
    bool day = same_word(text, "today") || same_word(text, "yesterday");
    value->from = same_word(text, "yesterday") ? midnight - DAY_MS : midnight;
    if (!day && text.len == 10) {
        memcpy(whole, text.ptr, 10);
        memcpy(whole + 10, "T00:00:00Z", 11);
        day = civil_parse(str_from(whole), &value->from);
    }
    value->until = value->from + DAY_MS;
    if (day) return true;
    struct str age = text.len > 3 && str_starts(text, STR("now")) ? str_slice(text, 3, text.len) : text;
    if (same_word(text, "now")) age = STR("0s");
    if (age.len > 1 && age.ptr[0] == '-') age = str_slice(age, 1, age.len);
    if (civil_parse(text, &value->from)) {
        value->until = value->from + 1;
        return true;
    }
    bool unit = age.len > 0 && (age.ptr[age.len - 1] < '0' || age.ptr[age.len - 1] > '9');
    if (unit && duration_parse(age, &ago)) {
        value->from = r->query->now_ms - ago;
        value->until = value->from + 1;
        if (op != OP_EQ && op != OP_NE) return true;
        fail(r, at, text.len, "%.*s ago is a moment, and nothing happens at exactly that moment", STR_ARG(text));
        advise(r, "> is since then, < is before it");
        return false;
    }
    fail(r, at, text.len, "%.*s is not a time", STR_ARG(text));
    advise(r, "2h, 7d (ago), today, yesterday, 2026-02-11, 2026-02-11T17:00:00Z");
    return false;
}

static bool read_number(struct reader *r, size_t at, enum query_type type, struct query_value *value)
{
    struct str text = value->text;
    bool bare = str_int64(text, &value->from);
    bool read = type == TYPE_NUMBER ? bare : duration_parse(text, &value->from) && (!bare || value->from == 0);
    value->until = value->from;
    if (read) return true;
    fail(r, at, text.len, "%.*s is not a %s", STR_ARG(text), type == TYPE_NUMBER ? "whole number" : "duration");
    if (type == TYPE_DURATION) advise(r, "250ms, 10s, 1m30s, 2h, 1d");
    return false;
}

static bool read_any(struct reader *r, size_t at, enum query_op op, struct query_value *value)
{
    struct error err = {0};
    value->is_number = value->text.len && json_parse(value->text, NULL, r->arena, &value->number, &err) == OK &&
                       json_is_number(&value->number);
    if (op < OP_LT || value->is_number) return true;
    fail(r, at, value->text.len, "< and > compare numbers, and %.*s is none", STR_ARG(value->text));
    return false;
}

static bool compile_value(struct reader *r, size_t at, const struct query_clause *clause, struct query_value *value)
{
    enum query_type type = query_field_type(clause->field);
    switch (type) {
    case TYPE_STATUS:
        return read_run_status(r, at, value);
    case TYPE_STEP_STATUS:
        return read_step_status(r, at, value);
    case TYPE_TIME:
        return read_time(r, at, clause->op, value);
    case TYPE_DURATION:
    case TYPE_NUMBER:
        return read_number(r, at, type, value);
    case TYPE_ANY:
        return read_any(r, at, clause->op, value);
    case TYPE_TEXT:
        return clause->field != FIELD_OWNED || (clause->op != OP_EQ && clause->op != OP_NE) || read_owned(r, at, value);
    }
    return true;
}

// "..." or '...', as it is: no escapes.
static bool read_quoted(struct reader *r, struct str *out)
{
    char quote = peek(r);
    size_t from = ++r->at;
    while (r->at < r->text.len && peek(r) != quote) r->at++;
    if (r->at == r->text.len) {
        fail(r, from - 1, r->at - from + 1, "the quote is not closed");
        return false;
    }
    *out = str_slice(r->text, from, r->at++);
    return true;
}

// Behind an operator: a, b and c with commas between them. Behind "in": the same in parentheses, with blanks where they please.
static bool read_values(struct reader *r, struct query_clause *clause, bool listed)
{
    struct query_value values[VALUES_MAX];
    size_t open = r->at;
    r->at += listed;
    do {
        if (clause->count == VALUES_MAX) return fail(r, r->at, 1, "more than %d values", VALUES_MAX) != NULL;
        struct query_value *value = &values[clause->count++];
        if (clause->count == 1 || listed) skip_blanks(r);
        size_t at = r->at;
        *value = (struct query_value){0};
        if (peek(r) == '"' || peek(r) == '\'') {
            if (!read_quoted(r, &value->text)) return false;
        } else {
            value->text = read_word(r, ",");
        }
        if (!compile_value(r, at, clause, value)) return false;
        if (listed) skip_blanks(r);
    } while (peek(r) == ',' && r->at++ < r->text.len);
    if (listed && peek(r) != ')') return fail(r, open, 1, "the parenthesis is not closed") != NULL;
    r->at += listed;
    if (clause->count > 1 && clause->op >= OP_LT)
        return fail(r, r->at, 0, "a list of values goes with =, !=, ~ and !~ only") != NULL;
    clause->values = ARENA_ARRAY(r->arena, clause->count, struct query_value);
    if (!clause->values) return no_memory(r) != NULL;
    memcpy(clause->values, values, clause->count * sizeof(*values));
    return true;
}

// ---- the grammar

static struct query_node *node(struct reader *r, enum query_kind kind, const struct query_node *left,
                               const struct query_node *right)
{
    struct query_node *made = ARENA_NEW(r->arena, struct query_node);
    if (!made) return no_memory(r);
    made->kind = kind;
    made->left = left;
    made->right = right;
    return made;
}

static const struct query_node *bare_word(struct reader *r, struct str word)
{
    struct query_node *made = node(r, QUERY_CLAUSE, NULL, NULL);
    struct query_value *value = ARENA_NEW(r->arena, struct query_value);
    if (!made || !value) return no_memory(r);
    value->text = word;
    made->clause = (struct query_clause){.field = FIELD_WORD, .op = OP_LIKE, .values = value, .count = 1};
    return made;
}

// "in (A,B)" is "=A,B", "not in (A,B)" is "!=A,B". Words like these are an operator only before a parenthesis.
static enum query_op read_membership(struct reader *r)
{
    size_t before = r->at;
    bool none = next_is(r, "not");
    if (next_is(r, "in")) {
        skip_blanks(r);
        if (peek(r) == '(') return none ? OP_NE : OP_EQ;
    }
    r->at = before;
    return 0;
}

// step("load").error.code, step("load").status: of the step of that name. False: it is none of them (reported).
static bool read_step_call(struct reader *r, struct query_clause *clause)
{
    size_t at = r->at++;
    bool quoted = peek(r) == '"' || peek(r) == '\'';
    if (quoted && !read_quoted(r, &clause->path)) return false;
    if (!quoted) clause->path = read_word(r, "");
    if (peek(r) != ')' || clause->path.len == 0) return fail(r, at, 1, "the name of a step is expected here") != NULL;
    at = ++r->at;
    struct str member = read_word(r, "=!~<>");
    if (member.len == 0 || str_is(member, ".status"))
        clause->field = FIELD_STEP_OF;
    else if (str_is(member, ".error.code") || str_is(member, ".error"))
        clause->field = FIELD_ERROR_OF;
    if (clause->field) return true;
    fail(r, at, member.len, "a step has no %.*s here", STR_ARG(member));
    advise(r, "step(\"load\").status, step(\"load\").error.code");
    return false;
}

static const struct query_node *read_comparison(struct reader *r, size_t at, struct query_node *made, enum query_op op,
                                                bool listed)
{
    struct query_clause *clause = &made->clause;
    clause->op = op;
    if (!op_fits(query_field_type(clause->field), op)) {
        fail(r, at, r->at - at, "%s cannot be compared this way", fields[clause->field].info.name);
        advise(r, query_field_type(clause->field) == TYPE_TEXT || query_field_type(clause->field) == TYPE_STATUS
                      ? "with = and !=, texts also with ~ (holds) and !~"
                      : "with =, !=, <, <=, > and >=");
        return NULL;
    }
    if (!read_values(r, clause, listed)) return NULL;
    return made;
}

static const struct query_node *read_clause(struct reader *r)
{
    size_t at = r->at;
    struct str word;
    if (peek(r) == '"' || peek(r) == '\'') return read_quoted(r, &word) ? bare_word(r, word) : NULL;
    word = read_word(r, "=!~<>");
    struct query_node *made = node(r, QUERY_CLAUSE, NULL, NULL);
    if (!made) return NULL;
    bool call = str_is(word, "step") && peek(r) == '(';
    if (call && !read_step_call(r, &made->clause)) return NULL;
    enum query_op op = read_op(r), member = op ? 0 : read_membership(r);
    if (!op && !member && word.len > 0 && !call) return bare_word(r, word);
    if ((!op && !member) || word.len == 0) {
        fail(r, at, 1, "a field or a word is expected here");
        advise(r, "status=FAILED, plan~release, started>2h; see `cairn help query`");
        return NULL;
    }
    if (!call) made->clause.field = find_field(word, &made->clause.path);
    if (!made->clause.field) return unknown_field(r, at, word);
    return read_comparison(r, at, made, op ? op : member, member != 0);
}

static const struct query_node *read_or(struct reader *r);

static const struct query_node *read_part(struct reader *r)
{
    skip_blanks(r);
    size_t at = r->at;
    if (r->depth++ >= DEPTH_MAX) return fail(r, at, 1, "deeper than %d", DEPTH_MAX);
    const struct query_node *made;
    if (next_is(r, "not")) {
        const struct query_node *inner = read_part(r);
        made = inner ? node(r, QUERY_NOT, inner, NULL) : NULL;
    } else if (peek(r) == '(') {
        r->at++;
        made = read_or(r);
        skip_blanks(r);
        if (made && peek(r) != ')')
            made = fail(r, at, 1, "the parenthesis is not closed");
        else
            r->at++;
    } else {
        made = read_clause(r);
    }
    r->depth--;
    return made;
}

static bool part_follows(struct reader *r)
{
    size_t before = r->at;
    skip_blanks(r);
    bool follows = r->at < r->text.len && peek(r) != ')' && !next_is(r, "or");
    if (!follows) r->at = before;
    return follows;
}

static const struct query_node *read_and(struct reader *r)
{
    const struct query_node *left = read_part(r);
    while (left && part_follows(r)) {
        (void)next_is(r, "and");
        const struct query_node *right = read_part(r);
        left = right ? node(r, QUERY_AND, left, right) : NULL;
    }
    return left;
}

static const struct query_node *read_or(struct reader *r)
{
    const struct query_node *left = read_and(r);
    while (left && next_is(r, "or")) {
        const struct query_node *right = read_and(r);
        left = right ? node(r, QUERY_OR, left, right) : NULL;
    }
    return left;
}

const struct query *query_parse(struct str text, int64_t now_ms, struct arena *arena, struct query_fault *fault)
{
    *fault = (struct query_fault){0};
    struct reader r = {.arena = arena, .fault = fault, .text = arena_copy(arena, text)};
    r.query = ARENA_NEW(arena, struct query);
    if (!r.text.ptr || !r.query) return no_memory(&r);
    if (text.len > TEXT_SIZE_MAX) return fail(&r, 0, 0, "the query is longer than %d bytes", TEXT_SIZE_MAX);
    r.query->now_ms = now_ms;
    skip_blanks(&r);
    r.query->root = r.at == r.text.len ? node(&r, QUERY_ALL, NULL, NULL) : read_or(&r);
    skip_blanks(&r);
    if (r.query->root && r.at < r.text.len) return fail(&r, r.at, 1, "there is no parenthesis to close");
    return r.query->root && !r.failed ? r.query : NULL;
}
