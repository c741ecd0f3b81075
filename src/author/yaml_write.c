// A document as YAML that people go on with: mappings and lists of mappings in block style, short values on one line, texts of
// several lines as block texts.
#include "author/fmt.h"

#include <string.h>

enum { FLOW_MAX = 90, NEST_MAX = 64 };

static bool is_plain(struct str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"};
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/$";
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@+$=() ";
    if (s.len == 0 || s.len > 120 || !strchr(first, s.ptr[0]) || s.ptr[s.len - 1] == ' ') return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\0' || !strchr(safe, s.ptr[i])) return false;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (s.len != strlen(words[i])) continue;
        bool same = true;
        for (size_t k = 0; k < s.len; k++) same &= (s.ptr[k] | 32) == words[i][k] || s.ptr[k] == words[i][k];
        if (same) return false;
    }
    return true;
}

static void write_text(struct buf *out, struct str s)
{
    if (is_plain(s))
        buf_add(out, s);
    else
        json_write_string(out, s);
}

// Several lines that can stand as they are: no control characters, no blanks at the start of the first line.
static bool is_block(struct str s)
{
    if (!memchr(s.ptr, '\n', s.len) || s.ptr[0] == ' ' || s.ptr[0] == '\n' || str_ends(s, STR("\n\n"))) return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\n') || c == 0x7F || c >= 0xC2) return false;
    }
    return true;
}

static void indent(struct buf *out, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) buf_text(out, "  ");
}

static void write_flow(struct buf *out, const struct json *value)
{
    if (value->type == JSON_STRING) {
        write_text(out, value->text);
    } else if (value->type == JSON_ARRAY) {
        buf_byte(out, '[');
        for (uint32_t i = 0; i < value->count; i++) {
            if (i) buf_text(out, ", ");
            write_flow(out, &value->items[i]);
        }
        buf_byte(out, ']');
    } else if (value->type == JSON_OBJECT && value->count > 0) {
        buf_text(out, "{ ");
        for (uint32_t i = 0; i < value->count; i++) {
            if (i) buf_text(out, ", ");
            write_text(out, value->members[i].key);
            buf_text(out, ": ");
            write_flow(out, &value->members[i].value);
        }
        buf_text(out, " }");
    } else {
        json_write(out, value);
    }
}

static bool has_block(const struct json *value)
{
    if (value->type == JSON_STRING) return is_block(value->text);
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++)
        if (has_block(&value->items[i])) return true;
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++)
        if (has_block(&value->members[i].value)) return true;
    return false;
}

static void write_block_text(struct buf *out, struct str s, uint32_t depth)
{
    buf_text(out, str_ends(s, STR("\n")) ? "|\n" : "|-\n");
    while (s.len > 0) {
        struct str line = str_cut(s, '\n', &s);
        if (line.len > 0) indent(out, depth);
        buf_add(out, line);
        buf_byte(out, '\n');
    }
}

static void write_members(struct buf *out, const struct json *value, uint32_t depth, bool first_inline, bool open);

// After "key:" or "-".
static void write_value(struct buf *out, const struct json *value, uint32_t depth, bool open)
{
    bool holds = (value->type == JSON_OBJECT || value->type == JSON_ARRAY) && value->count > 0;
    if (value->type == JSON_STRING && is_block(value->text)) {
        buf_byte(out, ' ');
        write_block_text(out, value->text, depth);
        return;
    }
    size_t start = out->len;
    if (!holds || (!open && !has_block(value))) {
        buf_byte(out, ' ');
        write_flow(out, value);
        buf_byte(out, '\n');
        if (!holds || out->len - start <= FLOW_MAX) return;
        out->len = start;
    }
    buf_byte(out, '\n');
    write_members(out, value, depth, false, false);
}

static void write_members(struct buf *out, const struct json *value, uint32_t depth, bool first_inline, bool open)
{
    for (uint32_t i = 0; i < value->count; i++) {
        if (i > 0 || !first_inline) indent(out, depth);
        if (value->type == JSON_OBJECT) {
            write_text(out, value->members[i].key);
            buf_byte(out, ':');
            write_value(out, &value->members[i].value, depth + 1, open);
        } else if (value->items[i].type == JSON_OBJECT && value->items[i].count > 0) {
            buf_text(out, "- ");
            write_members(out, &value->items[i], depth + 1, true, false);
        } else {
            buf_byte(out, '-');
            write_value(out, &value->items[i], depth + 1, false);
        }
    }
}

void yaml_document(struct buf *out, const struct json *document)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct json_member *m = &document->members[i];
        write_text(out, m->key);
        buf_byte(out, ':');
        write_value(out, &m->value, 1,
                    m->value.type == JSON_ARRAY && (str_is(m->key, "nodes") || str_is(m->key, "steps")));
    }
}
