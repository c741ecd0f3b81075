// Filters of text: encodings, patterns, times.
#include "template/internal.h"

#include "base/civil.h"
#include "schema/pattern.h"

#include <string.h>

// ---- base64

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static enum code run_b64encode(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    struct buf buf;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = eval_charge(e, s.len / BYTES_PER_STEP);
    if (rc) return rc;
    eval_buf(e, &buf);
    char *to = buf_reserve(&buf, (s.len + 2) / 3 * 4);
    for (size_t i = 0; to && i < s.len; i += 3) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++) bits = bits << 8 | (i + j < s.len ? (unsigned char)s.ptr[i + j] : 0);
        for (size_t j = 0; j < 4; j++) *to++ = i + j > s.len ? '=' : alphabet[bits >> (18 - 6 * j) & 63];
        buf.len += 4;
    }
    if (to) *to = '\0';
    return eval_take(e, &buf, OK, out);
}

static enum code decode_into(struct eval *e, struct str s, struct buf *buf)
{
    uint32_t bits = 0, count = 0;
    size_t end = s.len;
    while (end && s.ptr[end - 1] == '=') end--;
    if (s.len % 4 || s.len - end > 2) return eval_fault(e, E_INVALID, "b64decode: not base64");
    for (size_t i = 0; i < end; i++) {
        const char *found = s.ptr[i] ? strchr(alphabet, s.ptr[i]) : NULL;
        if (!found) return eval_fault(e, E_INVALID, "b64decode: not base64");
        bits = bits << 6 | (uint32_t)(found - alphabet);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        buf_byte(buf, (char)(bits >> count & 0xFF));
    }
    return str_utf8(buf_str(buf)) ? OK : eval_fault(e, E_INVALID, "b64decode: what it decodes to is not text");
}

static enum code run_b64decode(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    struct buf buf;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = eval_walk(e, s);
    if (rc) return rc;
    eval_buf(e, &buf);
    return eval_take(e, &buf, decode_into(e, str_trim(s), &buf), out);
}

// ---- URLs

static void url_text(struct buf *out, struct str s, const char *keep)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool plain =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c && strchr(keep, c));
        if (plain)
            buf_byte(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

static enum code url_value(struct eval *e, const struct json *v, struct buf *out)
{
    struct str s;
    enum code rc = value_str(e, v, &s);
    if (!rc) rc = eval_walk(e, s);
    if (rc) return rc;
    for (size_t at = 0; at <= s.len; at++) { // a blank is a plus in a query
        size_t end = str_find(s, ' ', at);
        url_text(out, str_slice(s, at, end), "_.-~");
        if (end < s.len) buf_byte(out, '+');
        at = end;
    }
    return OK;
}

static enum code run_urlencode(struct eval *e, struct function_call *call, struct json *out)
{
    const struct json *v = &call->self;
    struct buf buf;
    struct str s;
    enum code rc = OK;
    eval_buf(e, &buf);
    if (v->type == JSON_OBJECT || value_is_list(v)) {
        for (uint32_t i = 0; i < v->count && !rc; i++) {
            bool dict = v->type == JSON_OBJECT, pair = !dict && value_is_list(&v->items[i]) && v->items[i].count == 2;
            if (!dict && !pair) rc = eval_fault(e, E_INVALID, "urlencode: a list must be of pairs");
            struct json key = dict ? json_string(v->members[i].key) : pair ? v->items[i].items[0] : json_null();
            if (i) buf_byte(&buf, '&');
            if (!rc) rc = url_value(e, &key, &buf);
            buf_byte(&buf, '=');
            if (!rc) rc = url_value(e, dict ? &v->members[i].value : &v->items[i].items[1], &buf);
        }
    } else {
        rc = value_str(e, v, &s);
        if (!rc) rc = eval_walk(e, s);
        if (!rc) url_text(&buf, s, "_.-~/");
    }
    return eval_take(e, &buf, rc, out);
}

// ---- patterns

enum { PATTERN_STEPS = 5000 }; // making the automaton of a pattern

static enum code compile(struct eval *e, struct str text, const struct pattern **out)
{
    struct error fault = {0};
    for (const struct known_pattern *k = e->patterns; k; k = k->next) {
        *out = k->pattern;
        if (str_eq(k->pattern->text, text)) return OK;
    }
    enum code rc = eval_charge(e, PATTERN_STEPS);
    if (rc) return rc;
    rc = pattern_compile(text, e->arena, out, &fault);
    if (rc) return eval_fault(e, rc, "pattern: %s", fault.message);
    struct known_pattern *known = ARENA_NEW(e->arena, struct known_pattern);
    if (!known) return error_nomem(e->err);
    *known = (struct known_pattern){*out, e->patterns};
    e->patterns = known;
    return OK;
}

// Ends where the budget does.
static enum code search(struct eval *e, const struct pattern *pattern, struct str s, size_t from, size_t *start,
                        size_t *end)
{
    size_t work = 0, most = (size_t)(e->limits.step_count_max - e->steps) * BYTES_WALKED;
    *end = pattern_search(pattern, s, from, most, start, &work);
    return eval_charge(e, 2 + work / BYTES_WALKED);
}

static enum code run_regex_replace(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, text = {0}, by;
    const struct pattern *pattern;
    struct buf buf;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = value_str(e, &call->args[0], &text);
    if (!rc) rc = value_str(e, &call->args[1], &by);
    if (!rc) rc = compile(e, text, &pattern);
    if (rc) return rc;
    if (str_find(by, '\\', 0) < by.len)
        return eval_fault(e, E_UNSUPPORTED, "regex_replace: a backslash in the replacement (groups are not kept)");
    eval_buf(e, &buf);
    for (size_t at = 0, done = 0; at <= s.len && !rc;) {
        size_t start = 0, end;
        rc = search(e, pattern, s, at, &start, &end);
        if (end == SIZE_MAX || rc) {
            buf_add(&buf, str_slice(s, done, s.len));
            break;
        }
        buf_add(&buf, str_slice(s, done, start));
        buf_add(&buf, by);
        done = at = end;
        if (end == start && at < s.len) pattern_decode(s, &at); // of an empty match: the next character stays
        if (end == start && done == s.len) break;
    }
    return eval_take(e, &buf, rc, out);
}

static enum code run_regex_search(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, text = {0};
    const struct pattern *pattern;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = value_str(e, &call->args[0], &text);
    if (!rc) rc = compile(e, text, &pattern);
    *out = json_null();
    if (rc) return rc;
    size_t start = 0, end;
    rc = search(e, pattern, s, 0, &start, &end);
    if (!rc && end != SIZE_MAX) *out = json_string(str_slice(s, start, end));
    return rc;
}

// ---- times

struct given_time {
    int64_t ms;
    char text[CIVIL_SIZE]; // "2026-02-11T17:00:00.000Z"
};

static bool read_moment(const struct json *v, struct given_time *m)
{
    struct number n;
    char room[64];
    if (value_number(v, &n)) {
        if (!(n.real > -62135596800.0 && n.real < 253402300800.0)) return false;
        double ms = n.real * 1000;
        m->ms = (int64_t)(ms < 0 ? ms - 0.5 : ms + 0.5);
    } else {
        struct str s = str_trim(json_text(v));
        if (s.len < 10 || s.len > sizeof(room) - 12) return false;
        memcpy(room, s.ptr, s.len);
        if (s.len > 10 && room[10] == ' ') room[10] = 'T';
        struct str tail = s.len == 10 ? STR("T00:00:00Z") : STR("Z"); // without a zone it is UTC
        memcpy(room + s.len, tail.ptr, tail.len);
        if (!civil_parse((struct str){room, s.len}, &m->ms) &&
            !civil_parse((struct str){room, s.len + tail.len}, &m->ms))
            return false;
    }
    civil_format(m->ms, m->text);
    return true;
}

static int64_t part(const struct given_time *m, size_t at, size_t len)
{
    int64_t value = 0;
    for (size_t i = at; i < at + len; i++) value = value * 10 + (m->text[i] - '0');
    return value;
}

static int64_t day_of_year(const struct given_time *m)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t year = part(m, 0, 4), month = part(m, 5, 2);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return before[month - 1] + part(m, 8, 2) + (leap && month > 2);
}

static void write_day_name(const struct given_time *m, bool full, struct buf *out)
{
    static const char *const names[] = {"Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"};
    int64_t day = m->ms / 86400000 - (m->ms % 86400000 < 0);
    const char *name = names[((day % 7) + 7) % 7];
    buf_add(out, full ? str_from(name) : (struct str){name, 3});
}

static void write_month_name(const struct given_time *m, bool full, struct buf *out)
{
    static const char *const names[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};
    const char *name = names[part(m, 5, 2) - 1];
    buf_add(out, full ? str_from(name) : (struct str){name, 3});
}

static bool write_moment(const struct given_time *m, char directive, struct buf *out)
{
    static const struct {
        char directive;
        uint8_t at, len;
    } slices[] = {{'Y', 0, 4},  {'m', 5, 2}, {'d', 8, 2},  {'H', 11, 2}, {'M', 14, 2},
                  {'S', 17, 2}, {'y', 2, 2}, {'F', 0, 10}, {'T', 11, 8}};
    for (size_t i = 0; i < ARRAY_COUNT(slices); i++) {
        if (slices[i].directive != directive) continue;
        buf_add(out, (struct str){m->text + slices[i].at, slices[i].len});
        return true;
    }
    int64_t hour = part(m, 11, 2);
    switch (directive) {
    case '%':
        buf_byte(out, '%');
        return true;
    case 'f':
        buf_printf(out, "%06d", (int)part(m, 20, 3) * 1000);
        return true;
    case 'j':
        buf_printf(out, "%03d", (int)day_of_year(m));
        return true;
    case 'I':
        buf_printf(out, "%02d", (int)((hour + 11) % 12 + 1));
        return true;
    case 'p':
        buf_text(out, hour < 12 ? "AM" : "PM");
        return true;
    case 's':
        buf_int(out, m->ms / 1000 - (m->ms % 1000 < 0));
        return true;
    case 'z':
    case 'Z':
        buf_text(out, directive == 'z' ? "+0000" : "UTC");
        return true;
    case 'a':
    case 'A':
        write_day_name(m, directive == 'A', out);
        return true;
    case 'b':
    case 'B':
        write_month_name(m, directive == 'B', out);
        return true;
    default:
        return false;
    }
}

enum code run_strftime(struct eval *e, struct function_call *call, struct json *out)
{
    struct given_time m;
    struct str format = STR("%Y-%m-%dT%H:%M:%SZ");
    struct buf buf;
    enum code rc = OK;
    if (!read_moment(&call->self, &m))
        return eval_fault(e, E_INVALID, "strftime: neither a time nor seconds since 1970");
    if (call_arg(call, 0)) rc = value_str(e, &call->args[0], &format);
    if (rc) return rc;
    eval_buf(e, &buf);
    for (size_t i = 0; i < format.len && !rc; i++) {
        if (format.ptr[i] != '%' || i + 1 == format.len)
            buf_byte(&buf, format.ptr[i]);
        else if (!write_moment(&m, format.ptr[++i], &buf))
            rc = eval_fault(e, E_UNSUPPORTED, "strftime: no such directive: %%%c", format.ptr[i]);
    }
    return eval_take(e, &buf, rc, out);
}

// ---- lengths and lines

static enum code run_truncate(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, end = STR("...");
    int64_t most = 255, leeway = 5;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc && call_arg(call, 0)) rc = value_index(e, &call->args[0], "truncate", &most);
    if (!rc && call_arg(call, 2)) rc = value_str(e, &call->args[2], &end);
    if (!rc && call_arg(call, 3)) rc = value_index(e, &call->args[3], "truncate", &leeway);
    if (rc) return rc;
    int64_t tail = (int64_t)text_count(end);
    if (most < tail || leeway < 0) return eval_fault(e, E_INVALID, "truncate: there is no room for its end");
    *out = json_string(s);
    rc = eval_charge(e, s.len / BYTES_COUNTED);
    if (rc || (int64_t)text_count(s) <= most + leeway) return rc;
    struct str kept = str_slice(s, 0, text_offset(s, (size_t)(most - tail)));
    bool whole = !(call_arg(call, 1) && value_truth(&call->args[1]));
    size_t blank = kept.len;
    while (whole && blank > 0 && kept.ptr[blank - 1] != ' ') blank--;
    if (whole && blank > 0) kept.len = blank - 1;
    struct buf buf;
    eval_buf(e, &buf);
    buf_add(&buf, kept);
    buf_add(&buf, end);
    return eval_take(e, &buf, OK, out);
}

static enum code run_indent(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, by = {0};
    int64_t width = 4;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc && call_arg(call, 0) && call->args[0].type == JSON_STRING)
        rc = value_str(e, &call->args[0], &by);
    else if (!rc && call_arg(call, 0))
        rc = value_index(e, &call->args[0], "indent", &width);
    if (rc) return rc;
    bool first = call_arg(call, 1) && value_truth(&call->args[1]);
    bool blank = call_arg(call, 2) && value_truth(&call->args[2]);
    struct buf buf;
    eval_buf(e, &buf);
    struct str rest = s;
    for (size_t line = 0; line == 0 || rest.ptr < s.ptr + s.len; line++) {
        struct str text = str_cut(rest, '\n', &rest);
        if (line > 0) buf_byte(&buf, '\n');
        if (line > 0 ? text.len > 0 || blank : first) {
            if (by.ptr) buf_add(&buf, by);
            for (int64_t i = 0; !by.ptr && i < width && !buf.failed; i++) buf_byte(&buf, ' ');
        }
        buf_add(&buf, text);
        if (text.ptr + text.len >= s.ptr + s.len) break;
    }
    if (s.len > 0 && s.ptr[s.len - 1] == '\n') { // the last line is empty
        buf_byte(&buf, '\n');
        for (int64_t i = 0; blank && !by.ptr && i < width && !buf.failed; i++) buf_byte(&buf, ' ');
        if (blank) buf_add(&buf, by);
    }
    return eval_take(e, &buf, OK, out);
}

static enum code run_center(struct eval *e, struct function_call *call, struct json *out)
{
    struct str text;
    int64_t width = 80;
    enum code rc = value_str(e, &call->self, &text);
    if (!rc && call_arg(call, 0)) rc = value_index(e, &call->args[0], "center", &width);
    if (rc) return rc;
    int64_t room = width - (int64_t)text_count(text);
    int64_t left = room > 0 ? room / 2 + (room & width & 1) : 0;
    struct buf buf;
    eval_buf(e, &buf);
    for (int64_t i = 0; i < left && !buf.failed; i++) buf_byte(&buf, ' ');
    buf_add(&buf, text);
    for (int64_t i = left; i < room && !buf.failed; i++) buf_byte(&buf, ' ');
    return eval_take(e, &buf, OK, out);
}

static enum code run_wordcount(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    enum code rc = value_str(e, &call->self, &s);
    if (rc) return rc;
    int64_t count = 0;
    bool inside = false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool word = c == '_' || c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        count += word && !inside;
        inside = word;
    }
    *out = json_int(count);
    return OK;
}

const struct function *filter_text_find(struct str name)
{
    static const struct function table[] = {
        {"b64encode", NULL, 0, run_b64encode},
        {"b64decode", NULL, 0, run_b64decode},
        {"urlencode", NULL, 0, run_urlencode},
        {"regex_replace", "pattern,replacement", 2, run_regex_replace},
        {"regex_search", "pattern", 1, run_regex_search},
        {"strftime", "format", 0, run_strftime},
        {"truncate", "length,killwords,end,leeway", 0, run_truncate},
        {"indent", "width,first,blank", 0, run_indent},
        {"center", "width", 0, run_center},
        {"wordcount", NULL, 0, run_wordcount},
    };
    return function_in(table, ARRAY_COUNT(table), name);
}
