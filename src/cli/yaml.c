// JSON values as YAML in block style. A text is written bare only when no reader could take it for anything else;
// otherwise it is quoted as in JSON, which YAML reads the same way.
#include "cli/output.h"

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

static void write_text(struct buf *out, struct str s)
{
    if (is_bare(s))
        buf_add(out, s);
    else
        json_write_string(out, s);
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

static void write_inline(struct buf *out, const struct json *value)
{
    if (value->type == JSON_STRING)
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
            write_inline(out, child);
    }
}

void yaml_write(struct buf *out, const struct json *value)
{
    if (is_block(value))
        write_block(out, value, 0, false);
    else
        write_inline(out, value);
}
