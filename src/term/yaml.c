// JSON values as YAML in block style. A text is written bare only when no reader could take it for anything else;
// otherwise it is quoted as in JSON, which YAML reads the same way. Texts of several lines are written as lines.
#include "term/term.h"

#include <string.h>

static bool is_bare(struct str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@+";
    if (s.len == 0 || s.len > 128 || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", s.ptr[0]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!strchr(safe, s.ptr[i]) || s.ptr[i] == '\0') return false;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (s.len == strlen(words[i]) && strncasecmp(s.ptr, words[i], s.len) == 0) return false;
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
    struct buf plain;
    buf_init(&plain, (size_t)1 << 30);
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
    buf_release(&plain);
}

static void write_text(struct buf *out, struct str s)
{
    if (is_bare(s))
        buf_add(out, s);
    else
        write_quoted(out, s);
}

static void indent(struct buf *out, size_t depth)
{
    for (size_t i = 0; i < depth; i++) buf_text(out, "  ");
}

static bool is_block(const struct json *value)
{
    return (value->type == JSON_ARRAY || value->type == JSON_OBJECT) && value->count > 0;
}

static void write_block(struct buf *out, const struct json *value, size_t depth, bool inline_first);

// As lines behind "|": more than one, the first of them not empty and not indented, and at most one break at the end.
static bool has_lines(struct str s)
{
    if (s.len < 3 || !memchr(s.ptr, '\n', s.len - 1)) return false;
    if (s.ptr[0] == ' ' || s.ptr[0] == '\t' || s.ptr[0] == '\n') return false;
    if (s.ptr[s.len - 1] == '\n' && s.ptr[s.len - 2] == '\n') return false;
    for (size_t i = 0; i < s.len; i++)
        if (is_odd(s.ptr + i, s.len - i)) return false;
    return true;
}

static void write_lines(struct buf *out, struct str s, size_t depth)
{
    bool ends = s.ptr[s.len - 1] == '\n';
    struct str rest = str_slice(s, 0, s.len - ends);
    buf_text(out, ends ? "|" : "|-");
    for (bool last = false; !last;) {
        struct str after, line = str_cut(rest, '\n', &after);
        last = line.len == rest.len;
        buf_byte(out, '\n');
        if (line.len > 0) indent(out, depth);
        buf_add(out, line);
        rest = after;
    }
}

static void write_inline(struct buf *out, const struct json *value, size_t depth)
{
    if (value->type == JSON_STRING && has_lines(value->text))
        write_lines(out, value->text, depth);
    else if (value->type == JSON_STRING)
        write_text(out, value->text);
    else
        json_write(out, value); // scalars, [] and {} are the same in YAML
    buf_byte(out, '\n');
}

static void write_block(struct buf *out, const struct json *value, size_t depth, bool inline_first)
{
    for (uint32_t i = 0; i < value->count; i++) {
        if (i > 0 || !inline_first) indent(out, depth);
        const struct json *child = value->type == JSON_ARRAY ? &value->items[i] : &value->members[i].value;
        if (value->type == JSON_ARRAY) {
            buf_text(out, "- ");
        } else {
            write_text(out, value->members[i].key);
            buf_byte(out, ':');
            buf_byte(out, is_block(child) ? '\n' : ' ');
        }
        if (is_block(child) && depth < JSON_DEPTH_MAX)
            write_block(out, child, depth + 1, value->type == JSON_ARRAY);
        else
            write_inline(out, child, depth + 1);
    }
}

void yaml_write(struct buf *out, const struct json *value)
{
    if (is_block(value))
        write_block(out, value, 0, false);
    else
        write_inline(out, value, 1);
}
