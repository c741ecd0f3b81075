// JSON values as YAML, in two layouts: data in block style throughout, and documents that people go on with, whose short
// values stand on one line. A text is written bare only when no reader could take it for anything else; otherwise it is
// quoted as in JSON, which YAML reads the same way. Texts of several lines are written as lines.
#include "author/fmt.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct style {
    const char *first, *safe; // of a bare text: its first character, all of them
    size_t bare_max;
    size_t flow_max; // bytes of a mapping or a list on one line; 0: never
};
static const struct style data_style = {LETTERS, LETTERS "0123456789_-./@+", 128, 0};
static const struct style document_style = {LETTERS "_/$", LETTERS "0123456789_-./@+$=() ", 120, 90};

static bool is_bare(const struct style *style, struct str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    if (s.len == 0 || s.len > style->bare_max || !strchr(style->first, s.ptr[0]) || s.ptr[s.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\0' || !strchr(style->safe, s.ptr[i])) return false;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        bool same = s.len == strlen(words[i]);
        for (size_t k = 0; same && k < s.len; k++) same = (s.ptr[k] | 32) == words[i][k];
        if (same) return false;
    }
    return true;
}

// Breaks and marks that a reader of YAML does not keep as they are: C1 controls, U+2028, U+2029, U+FEFF, U+FFFE, U+FFFF.
static bool is_odd(const char *at, size_t left)
{
    unsigned char a = (unsigned char)at[0], b = left > 1 ? (unsigned char)at[1] : 0;
    unsigned char c = left > 2 ? (unsigned char)at[2] : 0;
    if (a < 0x80) return (a < 0x20 && a != '\n' && a != '\t') || a == 0x7F;
    return (a == 0xC2 && b < 0xA0) || (a == 0xE2 && b == 0x80 && (c == 0xA8 || c == 0xA9)) ||
           (a == 0xEF && ((b == 0xBB && c == 0xBF) || (b == 0xBF && c >= 0xBE)));
}

// As in JSON, and what is odd by its number.
static void write_quoted(struct buf *out, struct str s)
{
    size_t from = out->len;
    json_write_string(out, s);
    struct buf plain SCOPED(buf_release) = buf_of((size_t)1 << 30);
    for (size_t i = from; i < out->len;) {
        const unsigned char *at = (const unsigned char *)out->ptr + i;
        if (!is_odd(out->ptr + i, out->len - i)) {
            buf_byte(&plain, out->ptr[i++]);
            continue;
        }
        bool two = at[0] == 0xC2;
        unsigned number = two ? (at[0] & 0x1Fu) << 6 | (at[1] & 0x3Fu)
                              : (at[0] & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
        buf_printf(&plain, "\\u%04x", number);
        i += two ? 2 : 3;
    }
    if (!buf_ok(&plain)) out->failed = true;
    if (buf_ok(out) && plain.len != out->len - from) {
        out->len = from;
        buf_add(out, buf_str(&plain));
    }
}

static void write_text(struct buf *out, const struct style *style, struct str s)
{
    if (is_bare(style, s))
        buf_add(out, s);
    else
        write_quoted(out, s);
}

static void indent(struct buf *out, size_t depth)
{
    for (size_t i = 0; i < depth; i++) buf_text(out, "  ");
}

// As lines behind "|": the first of them not empty and not indented, and at most one break at the end. Data wants more than
// one line for that; in documents a break at the end is enough.
static bool has_lines(const struct style *style, struct str s)
{
    if (s.len < 3 || !memchr(s.ptr, '\n', s.len - (style->flow_max == 0))) return false;
    if (s.ptr[0] == ' ' || s.ptr[0] == '\t' || s.ptr[0] == '\n' || str_ends(s, STR("\n\n"))) return false;
    for (size_t i = 0; i < s.len; i++)
        if (is_odd(s.ptr + i, s.len - i)) return false;
    return true;
}

static void write_lines(struct buf *out, struct str s, size_t depth)
{
    buf_text(out, str_ends(s, STR("\n")) ? "|\n" : "|-\n");
    while (s.len > 0) {
        struct str line = str_cut(s, '\n', &s);
        if (line.len > 0) indent(out, depth);
        buf_add(out, line);
        buf_byte(out, '\n');
    }
}

static bool holds(const struct json *value)
{
    return (value->type == JSON_OBJECT || value->type == JSON_ARRAY) && value->count > 0;
}

static const struct json *child_at(const struct json *value, uint32_t i)
{
    return value->type == JSON_ARRAY ? &value->items[i] : &value->members[i].value;
}

static void write_flow(struct buf *out, const struct style *style, const struct json *value)
{
    bool list = value->type == JSON_ARRAY;
    if (value->type == JSON_STRING) {
        write_text(out, style, value->text);
    } else if (!holds(value)) {
        json_write(out, value); // numbers, [] and {} are the same in YAML
    } else {
        buf_text(out, list ? "[" : "{ ");
        for (uint32_t i = 0; i < value->count; i++) {
            if (i) buf_text(out, ", ");
            if (!list) write_text(out, style, value->members[i].key);
            if (!list) buf_text(out, ": ");
            write_flow(out, style, child_at(value, i));
        }
        buf_text(out, list ? "]" : " }");
    }
}

static bool any_lines(const struct style *style, const struct json *value)
{
    if (value->type == JSON_STRING) return has_lines(style, value->text);
    for (uint32_t i = 0; holds(value) && i < value->count; i++)
        if (any_lines(style, child_at(value, i))) return true;
    return false;
}

static void write_members(struct buf *out, const struct style *style, const struct json *value, size_t depth,
                          bool first_inline);

// A value behind "key:" or "-", from the blank on. `open`: a list that is never put on one line.
static void write_value(struct buf *out, const struct style *style, const struct json *value, size_t depth, bool open)
{
    size_t start = out->len;
    if (value->type == JSON_STRING && has_lines(style, value->text)) {
        buf_byte(out, ' ');
        write_lines(out, value->text, depth);
        return;
    }
    if (!holds(value) || depth > JSON_DEPTH_MAX || (style->flow_max > 0 && !open && !any_lines(style, value))) {
        buf_byte(out, ' ');
        write_flow(out, style, value);
        buf_byte(out, '\n');
        if (!holds(value) || depth > JSON_DEPTH_MAX || out->len - start <= style->flow_max) return;
        out->len = start;
    }
    buf_byte(out, '\n');
    write_members(out, style, value, depth, false);
}

static void write_members(struct buf *out, const struct style *style, const struct json *value, size_t depth,
                          bool first_inline)
{
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json *child = child_at(value, i);
        if (i > 0 || !first_inline) indent(out, depth);
        if (value->type == JSON_OBJECT) {
            write_text(out, style, value->members[i].key);
            buf_byte(out, ':');
        } else {
            buf_byte(out, '-');
        }
        bool inside = value->type == JSON_ARRAY && holds(child) && depth < JSON_DEPTH_MAX;
        if (inside && (child->type == JSON_OBJECT || style->flow_max == 0)) { // its first member stands behind the dash
            buf_byte(out, ' ');
            write_members(out, style, child, depth + 1, true);
        } else {
            write_value(out, style, child, depth + 1, false);
        }
    }
}

void yaml_write(struct buf *out, const struct json *value)
{
    if (holds(value)) {
        write_members(out, &data_style, value, 0, false);
    } else if (value->type == JSON_STRING && has_lines(&data_style, value->text)) {
        write_lines(out, value->text, 1);
    } else {
        write_flow(out, &data_style, value);
        buf_byte(out, '\n');
    }
}

void yaml_document(struct buf *out, const struct json *document)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct json_member *m = &document->members[i];
        write_text(out, &document_style, m->key);
        buf_byte(out, ':');
        write_value(out, &document_style, &m->value, 1,
                    m->value.type == JSON_ARRAY && (str_is(m->key, "nodes") || str_is(m->key, "steps")));
    }
}
