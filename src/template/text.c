// Strings are UTF-8, and Python counts code points: everything here takes and gives places in code points unless it says
// bytes.
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the name is glibc's
#define _GNU_SOURCE // memmem
#include "template/internal.h"

#include "schema/pattern.h"

#include <string.h>

size_t text_count(struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++) count += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return count;
}

size_t text_offset(struct str s, size_t index)
{
    size_t at = 0;
    for (; at < s.len; at++) {
        if (((unsigned char)s.ptr[at] & 0xC0) == 0x80) continue;
        if (!index--) break;
    }
    return at;
}

size_t text_find(struct str s, struct str part, size_t from)
{
    if (from > s.len || part.len > s.len - from) return SIZE_MAX;
    if (!part.len) return from;
    const char *found = memmem(s.ptr + from, s.len - from, part.ptr, part.len);
    return found ? (size_t)(found - s.ptr) : SIZE_MAX;
}

bool code_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Case is known for ASCII, Latin-1 and Cyrillic.
uint32_t code_lower(uint32_t c)
{
    if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x410 && c <= 0x42F)) return c + 32;
    if (c == 0x178) return 0xFF;
    return c >= 0x400 && c <= 0x40F ? c + 80 : c;
}

uint32_t code_upper(uint32_t c)
{
    if (c == 0xFF) return 0x178;
    if (c == 0xB5) return 0x39C;
    if ((c >= 'a' && c <= 'z') || (c >= 0xE0 && c <= 0xFE && c != 0xF7) || (c >= 0x430 && c <= 0x44F)) return c - 32;
    return c >= 0x450 && c <= 0x45F ? c - 80 : c;
}

bool code_is_letter(uint32_t c)
{
    for (size_t i = 0; i < unicode_letter.count; i++)
        if (c <= unicode_letter.ranges[i].last) return c >= unicode_letter.ranges[i].first;
    return false;
}

static bool strips(uint32_t c, struct str set, bool spaces)
{
    if (spaces) return code_is_space(c);
    for (size_t at = 0; at < set.len;)
        if (pattern_decode(set, &at) == c) return true;
    return false;
}

struct str text_strip(struct str s, struct str set, bool spaces, bool left, bool right)
{
    while (left && s.len) {
        size_t at = 0;
        if (!strips(pattern_decode(s, &at), set, spaces)) break;
        s = str_slice(s, at, s.len);
    }
    while (right && s.len) {
        size_t at = s.len - 1;
        while (at && ((unsigned char)s.ptr[at] & 0xC0) == 0x80) at--;
        size_t start = at;
        if (!strips(pattern_decode(s, &at), set, spaces)) break;
        s = str_slice(s, 0, start);
    }
    return s;
}

// 't' is the title of the filter: a word begins behind white space and -([{<. 'T' is str.title(): behind anything but a
// letter.
enum code text_case(struct eval *e, struct str s, char mode, struct json *out)
{
    struct buf buf;
    bool start = true;
    enum code rc = eval_walk(e, s);
    if (rc) return rc;
    eval_buf(e, &buf);
    for (size_t at = 0; at < s.len;) {
        uint32_t c = pattern_decode(s, &at);
        bool upper = mode == 'u' || (start && mode != 'l');
        if (mode == 's') upper = code_lower(c) == c;
        if (upper && c == 0xDF) // the only one of these that becomes two
            buf_text(&buf, mode == 'u' || mode == 's' ? "SS" : "Ss");
        else
            buf_code_point(&buf, upper ? code_upper(c) : code_lower(c));
        start = (mode == 't' && (code_is_space(c) || (c < 0x80 && c && strchr("-([{<", (int)c)))) ||
                (mode == 'T' && !code_is_letter(c));
    }
    return eval_take(e, &buf, OK, out);
}

enum code text_replace(struct eval *e, struct str s, struct str old, struct str new, int64_t count, struct json *out)
{
    struct buf buf;
    size_t at = 0;
    enum code rc = eval_charge(e, s.len / BYTES_PER_STEP);
    if (rc) return rc;
    eval_buf(e, &buf);
    for (; count && !buf.failed && !rc; count -= count > 0) {
        if (count % 2 == 0 || count < 0) rc = eval_charge(e, 1);
        size_t found = text_find(s, old, at);
        if (found == SIZE_MAX) break;
        buf_add(&buf, str_slice(s, at, found));
        buf_add(&buf, new);
        at = found + old.len;
        if (old.len) continue;
        if (at == s.len) break; // between all characters, and at both ends
        size_t next = at;
        pattern_decode(s, &next);
        buf_add(&buf, str_slice(s, at, next));
        at = next;
    }
    if (at < s.len) buf_add(&buf, str_slice(s, at, s.len));
    return eval_take(e, &buf, rc, out);
}

// ---- splitting

static enum code split_spaces(struct eval *e, struct str s, int64_t max, struct json *list)
{
    enum code rc = OK;
    s = text_strip(s, (struct str){0}, true, true, false);
    while (s.len && !rc) {
        if (!max--) return value_push(e, list, json_string(s));
        size_t end = 0, at = 0;
        while (at < s.len && !code_is_space(pattern_decode(s, &at))) end = at;
        rc = value_push(e, list, json_string(str_slice(s, 0, end)));
        s = text_strip(str_slice(s, end, s.len), (struct str){0}, true, true, false);
    }
    return rc;
}

static enum code split_from_left(struct eval *e, struct str s, struct str separator, int64_t max, struct json *list)
{
    size_t at = 0, found;
    enum code rc = OK;
    while (max-- && !rc && (found = text_find(s, separator, at)) != SIZE_MAX) {
        rc = value_push(e, list, json_string(str_slice(s, at, found)));
        at = found + separator.len;
    }
    return rc ? rc : value_push(e, list, json_string(str_slice(s, at, s.len)));
}

static void turn_around(struct json *list)
{
    for (uint32_t i = 0, j = list->count; i + 1 < j; i++) {
        struct json moved = list->items[i];
        list->items[i] = list->items[--j];
        list->items[j] = moved;
    }
}

static enum code split_from_right(struct eval *e, struct str s, struct str separator, int64_t max, struct json *list)
{
    size_t end = s.len, at = end;
    enum code rc = OK;
    while (max && !rc && at >= separator.len) {
        size_t start = at - separator.len;
        if (memcmp(s.ptr + start, separator.ptr, separator.len) != 0) {
            at--;
            continue;
        }
        rc = value_push(e, list, json_string(str_slice(s, at, end)));
        end = at = start;
        max--;
    }
    if (!rc) rc = value_push(e, list, json_string(str_slice(s, 0, end)));
    turn_around(list);
    return rc;
}

enum code text_split(struct eval *e, struct str s, const struct json *separator, int64_t max, bool from_right,
                     struct json *out)
{
    *out = json_array();
    enum code rc = eval_charge(e, s.len / BYTES_PER_STEP);
    if (rc) return rc;
    if (!separator || separator->type == JSON_NULL) {
        if (from_right && max >= 0) return eval_fault(e, E_UNSUPPORTED, "rsplit at white space with a limit");
        return split_spaces(e, s, max, out);
    }
    if (separator->type != JSON_STRING) return eval_fault(e, E_INVALID, "a separator must be a str");
    if (!separator->text.len) return eval_fault(e, E_INVALID, "an empty separator");
    return from_right ? split_from_right(e, s, separator->text, max, out)
                      : split_from_left(e, s, separator->text, max, out);
}
