// TOML 1.0 to JSON values with positions, without dates: no setting is one.
#include "doc/doc.h"

#include <string.h>

enum { TOML_DEPTH_MAX = 32, TOML_SIZE_MAX = 1 << 20 };

struct reader {
    struct str text;
    size_t at;
    uint32_t line;
    size_t line_start;
    struct arena *arena;
    struct error *err;
};

static enum code wrong(struct reader *r, const char *what)
{
    return error_at(r->err, E_INVALID, r->line, (uint32_t)(r->at - r->line_start + 1), "%s", what);
}

static char peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->text.len ? r->text.ptr[r->at + ahead] : '\0';
}

static bool at_end(const struct reader *r)
{
    return r->at >= r->text.len;
}

static void next_line(struct reader *r)
{
    r->at++;
    r->line++;
    r->line_start = r->at;
}

static void skip_blanks(struct reader *r)
{
    while (peek(r, 0) == ' ' || peek(r, 0) == '\t') r->at++;
}

static void skip_comment(struct reader *r)
{
    if (peek(r, 0) == '#')
        while (!at_end(r) && peek(r, 0) != '\n') r->at++;
}

// Blanks, comments and line ends: what may stand between the elements of an array.
static void skip_all(struct reader *r)
{
    for (;;) {
        skip_blanks(r);
        skip_comment(r);
        if (peek(r, 0) == '\r' && peek(r, 1) == '\n') r->at++;
        if (peek(r, 0) != '\n' || at_end(r)) return;
        next_line(r);
    }
}

static enum code end_of_line(struct reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    if (peek(r, 0) == '\r' && peek(r, 1) == '\n') r->at++;
    if (at_end(r)) return OK;
    if (peek(r, 0) != '\n') return wrong(r, "something stands behind the value; a setting takes a line of its own");
    next_line(r);
    return OK;
}

static bool is_bare(char c)
{
    return char_is_word(c) || c == '-';
}

// ---- strings
static bool hex_digits(struct reader *r, size_t count, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        char c = peek(r, 0);
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) return false;
        *out = *out * 16 + digit;
        r->at++;
    }
    return *out <= 0x10FFFF && (*out < 0xD800 || *out > 0xDFFF);
}

static enum code read_escape(struct reader *r, bool multi, struct buf *out)
{
    static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    uint32_t point;
    char c = peek(r, 0);
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        buf_byte(out, values[known - names]);
        r->at++;
        return OK;
    }
    if (c == 'u' || c == 'U') {
        r->at++;
        if (!hex_digits(r, c == 'u' ? 4 : 8, &point)) return wrong(r, "this is no character: \\u takes 4 hex digits");
        buf_code_point(out, point);
        return OK;
    }
    if (multi && (c == '\n' || c == '\r' || c == ' ' || c == '\t')) { // a line that goes on
        skip_blanks(r);
        if (peek(r, 0) == '\r') r->at++;
        if (peek(r, 0) != '\n') return wrong(r, "behind a \\ at the end of a line nothing may stand");
        while (peek(r, 0) == ' ' || peek(r, 0) == '\t' || peek(r, 0) == '\n' || peek(r, 0) == '\r') {
            if (peek(r, 0) == '\n')
                next_line(r);
            else
                r->at++;
        }
        return OK;
    }
    return wrong(r, "unknown escape; a plain \\ is written \\\\, or the text stands in '...'");
}

static bool closes(const struct reader *r, char quote, bool multi)
{
    return peek(r, 0) == quote && (!multi || (peek(r, 1) == quote && peek(r, 2) == quote));
}

static enum code read_text(struct reader *r, char quote, bool multi, struct buf *out)
{
    if (multi && peek(r, 0) == '\r' && peek(r, 1) == '\n') r->at++;
    if (multi && peek(r, 0) == '\n') next_line(r);
    while (!closes(r, quote, multi)) {
        unsigned char c = (unsigned char)peek(r, 0);
        if (at_end(r) || (c == '\n' && !multi)) return wrong(r, "the text is not closed");
        if (c < 0x20 && c != '\t' && !(multi && (c == '\n' || c == '\r')))
            return wrong(r, "a control character must be written as an escape");
        if (c == '\n') {
            buf_byte(out, '\n');
            next_line(r);
            continue;
        }
        r->at++;
        if (c == '\\' && quote == '"') {
            enum code rc = read_escape(r, multi, out);
            if (rc) return rc;
        } else {
            buf_byte(out, (char)c);
        }
    }
    r->at += multi ? 3 : 1;
    // Up to two quotes may stand before the closing three.
    for (int i = 0; multi && i < 2 && peek(r, 0) == quote; i++, r->at++) buf_byte(out, quote);
    return OK;
}

static enum code read_string(struct reader *r, bool allow_multi, struct str *out)
{
    char quote = peek(r, 0);
    bool multi = allow_multi && peek(r, 1) == quote && peek(r, 2) == quote;
    struct buf text SCOPED(buf_release) = buf_of(TOML_SIZE_MAX);
    r->at += multi ? 3 : 1;
    enum code rc = read_text(r, quote, multi, &text);
    if (!rc) {
        *out = arena_copy(r->arena, buf_str(&text));
        if (!out->ptr) rc = error_nomem(r->err);
    }
    return rc;
}

// ---- keys
static enum code read_key(struct reader *r, struct str *out)
{
    if (peek(r, 0) == '"' || peek(r, 0) == '\'') return read_string(r, false, out);
    size_t from = r->at;
    while (is_bare(peek(r, 0)) && !at_end(r)) r->at++;
    if (r->at == from) return wrong(r, "a name is expected here");
    *out = str_slice(r->text, from, r->at);
    return OK;
}

static struct json *member(struct json *object, struct str key)
{
    for (uint32_t i = 0; i < object->count; i++)
        if (str_eq(object->members[i].key, key)) return &object->members[i].value;
    return NULL;
}

struct position {
    uint32_t line, column;
};

static struct position here(const struct reader *r)
{
    return (struct position){r->line, (uint32_t)(r->at - r->line_start + 1)};
}

static struct json *put(struct reader *r, struct json *object, struct str key, struct json value, struct position place)
{
    if (!json_put(r->arena, object, key, value)) return NULL;
    struct json_member *last = &object->members[object->count - 1];
    last->line = place.line;
    last->column = place.column;
    return &last->value;
}

// The object that `key` names inside `object`, made when it is missing. In a list of tables it is the last one.
static enum code enter(struct reader *r, struct json *object, struct str key, struct position place, struct json **out)
{
    struct json *found = member(object, key);
    if (!found) found = put(r, object, key, json_object(), place);
    if (!found) return error_nomem(r->err);
    if (json_is(found, JSON_ARRAY) && found->count > 0) found = &found->items[found->count - 1];
    if (!json_is(found, JSON_OBJECT)) return wrong(r, "this name has a value already, it cannot be a table");
    *out = found;
    return OK;
}

// "a.b.c": everything but the last part is entered.
static enum code read_path(struct reader *r, struct json *object, struct json **into, struct str *last,
                           struct position *place)
{
    for (;;) {
        skip_blanks(r);
        *place = here(r);
        enum code rc = read_key(r, last);
        if (rc) return rc;
        skip_blanks(r);
        if (peek(r, 0) != '.') break;
        r->at++;
        rc = enter(r, object, *last, *place, &object);
        if (rc) return rc;
    }
    *into = object;
    return OK;
}

// ---- values
static enum code read_value(struct reader *r, unsigned depth, struct json *out);

static enum code read_pair(struct reader *r, struct json *object, unsigned depth)
{
    struct json *into;
    struct str key;
    struct position place;
    struct json value;
    enum code rc = read_path(r, object, &into, &key, &place);
    if (rc) return rc;
    if (member(into, key)) return wrong(r, "this name was given before");
    if (peek(r, 0) != '=') return wrong(r, "after the name comes = and a value");
    r->at++;
    skip_blanks(r);
    rc = read_value(r, depth, &value);
    if (rc) return rc;
    return put(r, into, key, value, place) ? OK : error_nomem(r->err);
}

static enum code read_array(struct reader *r, unsigned depth, struct json *out)
{
    *out = json_array();
    r->at++;
    for (;;) {
        struct json item;
        skip_all(r);
        if (peek(r, 0) == ']') break;
        enum code rc = read_value(r, depth + 1, &item);
        if (rc) return rc;
        if (!json_push(r->arena, out, item)) return error_nomem(r->err);
        skip_all(r);
        if (peek(r, 0) == ',')
            r->at++;
        else if (peek(r, 0) != ']')
            return wrong(r, "between the elements of a list stands a comma, at its end ]");
    }
    r->at++;
    return OK;
}

static enum code read_table(struct reader *r, unsigned depth, struct json *out)
{
    *out = json_object();
    r->at++;
    skip_blanks(r);
    if (peek(r, 0) == '}') {
        r->at++;
        return OK;
    }
    for (;;) {
        enum code rc = read_pair(r, out, depth + 1);
        if (rc) return rc;
        skip_blanks(r);
        if (peek(r, 0) == '}') break;
        if (peek(r, 0) != ',') return wrong(r, "between the members of {...} stands a comma, at its end }");
        r->at++;
    }
    r->at++;
    return OK;
}

static enum code read_number(struct reader *r, struct json *out)
{
    char text[64];
    size_t len = 0, from = r->at;
    bool plain = true;
    for (; !at_end(r) && (is_bare(peek(r, 0)) || peek(r, 0) == '+' || peek(r, 0) == '.' || peek(r, 0) == ':');
         r->at++) {
        char c = peek(r, 0);
        if (c == '_') continue;
        if (c == '+' && len == 0) continue;
        plain = plain && ((c >= '0' && c <= '9') || c == '-');
        if (len + 1 >= sizeof(text)) return wrong(r, "the number is too long");
        text[len++] = c;
    }
    int64_t value;
    struct str number = {text, len};
    if (len > 0 && plain && str_int64(number, &value)) {
        *out = json_int(value);
        return OK;
    }
    struct error ignored = {0};
    struct str kept = arena_copy(r->arena, number);
    if (!kept.ptr) return error_nomem(r->err);
    if (len > 0 && json_parse(kept, NULL, r->arena, out, &ignored) == OK && json_is(out, JSON_NUMBER)) return OK;
    r->at = from;
    return wrong(r, "a value is expected here: \"text\", 'text', a number, true, false, [list] or {table}");
}

static bool read_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);
    if (!str_starts(str_slice(r->text, r->at, r->text.len), str_from(word)) || is_bare(peek(r, len))) return false;
    r->at += len;
    return true;
}

static enum code read_value(struct reader *r, unsigned depth, struct json *out)
{
    enum code rc = OK;
    struct position place = here(r);
    struct str text;
    if (depth > TOML_DEPTH_MAX) return wrong(r, "nested too deeply");
    if (peek(r, 0) == '"' || peek(r, 0) == '\'') {
        rc = read_string(r, true, &text);
        *out = json_string(rc ? STR("") : text);
    } else if (peek(r, 0) == '[') {
        rc = read_array(r, depth, out);
    } else if (peek(r, 0) == '{') {
        rc = read_table(r, depth, out);
    } else if (read_word(r, "true")) {
        *out = json_bool(true);
    } else if (read_word(r, "false")) {
        *out = json_bool(false);
    } else {
        rc = read_number(r, out);
    }
    json_set_place(out, place.line, place.column);
    return rc;
}

// ---- the document
static enum code read_header(struct reader *r, struct json *root, struct json **table)
{
    struct json *into;
    struct str key;
    struct position place;
    bool list = peek(r, 1) == '[';
    r->at += list ? 2 : 1;
    enum code rc = read_path(r, root, &into, &key, &place);
    if (rc) return rc;
    if (peek(r, 0) != ']' || (list && peek(r, 1) != ']')) return wrong(r, "the name of a table ends with ]");
    r->at += list ? 2 : 1;
    if (!list) return enter(r, into, key, place, table);
    struct json *found = member(into, key);
    if (!found) found = put(r, into, key, json_array(), place);
    if (!found) return error_nomem(r->err);
    if (!json_is(found, JSON_ARRAY)) return wrong(r, "this name has a value already, it cannot be a list of tables");
    if (!json_push(r->arena, found, json_object())) return error_nomem(r->err);
    *table = &found->items[found->count - 1];
    return OK;
}

enum code toml_parse(struct str text, struct arena *arena, struct json *out, struct error *err)
{
    struct reader r = {.text = text, .line = 1, .arena = arena, .err = err};
    struct json *table = out;
    *out = json_object();
    if (text.len > TOML_SIZE_MAX) return error_set(err, E_LIMIT, "larger than 1 MiB");
    if (!str_utf8(text)) return error_set(err, E_INVALID, "not UTF-8");
    if (str_starts(text, STR("\xEF\xBB\xBF"))) r.at = r.line_start = 3;
    for (;;) {
        skip_all(&r);
        if (at_end(&r)) return OK;
        enum code rc = peek(&r, 0) == '[' ? read_header(&r, out, &table) : read_pair(&r, table, 0);
        if (!rc) rc = end_of_line(&r);
        if (rc) return rc;
    }
}
