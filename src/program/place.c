// Where things stand in the source, for marking them. Trees keep a line and a column; how wide something is, and where
// a reference stands inside a text, is found in the source when it is needed.
#include "program/internal.h"

#include <string.h>

enum { WIDTH_MAX = 256 }; // the source may be one line of megabytes

static void index_lines(struct reader *r)
{
    uint32_t count = 1;
    for (size_t at = str_find(r->text, '\n', 0); at < r->text.len; at = str_find(r->text, '\n', at + 1)) count++;
    r->line_start = ARENA_ARRAY(r->scratch, count, uint32_t);
    if (!r->line_start) {
        r->failed = true;
        return;
    }
    r->line_count = count;
    uint32_t line = 1;
    for (size_t at = str_find(r->text, '\n', 0); at < r->text.len; at = str_find(r->text, '\n', at + 1))
        r->line_start[line++] = (uint32_t)at + 1;
}

// text.len when the place is not in the text.
static size_t offset_of(struct reader *r, uint32_t line, uint32_t column)
{
    if (!r->line_start) index_lines(r);
    if (line == 0 || line > r->line_count || column == 0) return r->text.len;
    size_t offset = r->line_start[line - 1] + (size_t)column - 1;
    return offset < r->text.len ? offset : r->text.len;
}

static struct span place_at(const struct reader *r, size_t offset, size_t width)
{
    uint32_t low = 0;
    uint32_t high = r->line_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (r->line_start[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return (struct span){low + 1, (uint32_t)(offset - r->line_start[low]) + 1, (uint32_t)width};
}

// Bytes of the scalar or key at `offset`: to its closing quote, or to the end of a plain text.
static uint32_t width_at(const struct reader *r, size_t offset, bool key)
{
    struct str rest = str_slice(r->text, offset, offset + WIDTH_MAX);
    rest.len = str_find(rest, '\n', 0);
    if (rest.len == 0) return 1;
    char quote = rest.ptr[0];
    if (quote == '"' || quote == '\'') {
        for (size_t i = 1; i < rest.len; i++) {
            if (rest.ptr[i] == '\\' && quote == '"')
                i++;
            else if (rest.ptr[i] == quote)
                return (uint32_t)i + 1;
        }
        return (uint32_t)rest.len;
    }
    if (strchr("{[|>&*-", quote)) return 1;
    size_t end = 0;
    while (end < rest.len && !strchr(",]}\r", rest.ptr[end]) &&
           !(rest.ptr[end] == ' ' && end + 1 < rest.len && rest.ptr[end + 1] == '#') && !(key && rest.ptr[end] == ':'))
        end++;
    size_t width = str_trim(str_slice(rest, 0, end)).len;
    return width ? (uint32_t)width : 1;
}

static bool is_container(const struct json *value)
{
    return value->type == JSON_ARRAY || value->type == JSON_OBJECT;
}

struct span place_of(struct reader *r, const struct json *value)
{
    size_t offset = offset_of(r, value->line, value->column);
    uint32_t width = is_container(value) ? 1 : width_at(r, offset, false);
    return (struct span){value->line, value->column, width};
}

struct span place_of_key(struct reader *r, const struct json_member *member)
{
    size_t offset = offset_of(r, member->line, member->column);
    return (struct span){member->line, member->column, width_at(r, offset, true)};
}

struct span place_inside(struct reader *r, const struct json *value, struct str part, size_t *from)
{
    size_t start = offset_of(r, value->line, value->column);
    if (from && *from > start) start = *from;
    if (part.len == 0) return place_of(r, value);
    // Escapes may hide the part, and then it is not far away that something else looks like it.
    size_t end = str_slice(r->text, start, start + json_text(value).len * 2 + 256).len + start;
    for (size_t at = str_find(r->text, part.ptr[0], start); at + part.len <= end;
         at = str_find(r->text, part.ptr[0], at + 1)) {
        if (!str_eq(str_slice(r->text, at, at + part.len), part)) continue;
        if (from) *from = at + part.len;
        return place_at(r, at, part.len);
    }
    return place_of(r, value);
}
