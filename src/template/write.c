// Values as text: Python's str() and repr(), and JSON as json.dumps writes it.
#include "template/internal.h"

#include "json/decimal.h"
#include "schema/pattern.h"

#include <string.h>

// ECMAScript and Python agree on the digits of a double and differ in where the exponent begins.
void float_write(struct buf *out, double d)
{
    char text[32], digits[32] = "";
    size_t len = json_double_format(d, text), at = 0, count = 0;
    int exponent = 0, written = 0; // of the first digit; digits before the point
    bool point = false, negative = text[0] == '-' || (d == 0 && __builtin_signbit(d));
    if (text[0] == '-') at++;
    for (; at < len && text[at] != 'e'; at++) {
        if (text[at] == '.') {
            point = true;
        } else if (count || text[at] != '0') {
            digits[count++] = text[at];
            written += !point;
        } else if (point) {
            exponent--;
        }
    }
    if (at < len) {
        int64_t given = 0;
        at += text[at + 1] == '+' ? 2 : 1;
        if (str_int64((struct str){text + at, len - at}, &given)) exponent += (int)given;
    }
    exponent += written - 1;
    while (count > 1 && digits[count - 1] == '0') count--;
    if (!count) {
        digits[count++] = '0';
        exponent = 0;
    }
    if (negative) buf_byte(out, '-');
    if (exponent < -4 || exponent >= 16) {
        buf_byte(out, digits[0]);
        if (count > 1) buf_byte(out, '.');
        buf_add(out, (struct str){digits + 1, count - 1});
        buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
        return;
    }
    if (exponent < 0) buf_text(out, "0.");
    for (int i = exponent; i < -1; i++) buf_byte(out, '0');
    for (int i = 0; i < (int)count || i <= exponent; i++) {
        if (i && i == exponent + 1) buf_byte(out, '.');
        buf_byte(out, i < (int)count ? digits[i] : '0');
    }
    if ((int)count <= exponent + 1) buf_text(out, ".0");
}

// A float that nobody has calculated with: with digits that no double holds it is written as it is.
static void real_write(struct buf *out, const struct json *v, double d)
{
    char text[32];
    struct decimal digits = decimal_text(v->text), read;
    if (!__builtin_isfinite(d)) {
        json_canon(out, v);
        return;
    }
    read = decimal_text((struct str){text, json_double_format(d, text)});
    bool held = digits.digit_count <= 15 && digits.exponent > -300; // as a double always holds them
    if (held || decimal_cmp(&digits, &read) == 0)
        float_write(out, d);
    else
        json_canon(out, v);
}

// Python shows these as escapes. The list has the blocks that are known not to print; it does not know unassigned ones.
static bool is_printable(uint32_t c)
{
    static const struct range hidden[] = {{0x00, 0x1F},     {0x7F, 0xA0},     {0xAD, 0xAD},     {0x600, 0x605},
                                          {0x61C, 0x61C},   {0x1680, 0x1680}, {0x180E, 0x180E}, {0x2000, 0x200F},
                                          {0x2028, 0x202F}, {0x205F, 0x206F}, {0x3000, 0x3000}, {0xD800, 0xF8FF},
                                          {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0x10FFFF}};
    for (size_t i = 0; i < ARRAY_COUNT(hidden); i++)
        if (c >= hidden[i].first && c <= hidden[i].last) return false;
    return true;
}

// Plain characters are copied in runs, which cost what making a string does. Others are looked at one by one: two are a step.
enum { ODD_PER_STEP = 2 };
static const bool odd_in_repr[128] = {['\''] = true, ['"'] = true, ['\\'] = true};
static const bool odd_in_json[128] = {
    ['"'] = true, ['\\'] = true, ['<'] = true, ['>'] = true, ['&'] = true, ['\''] = true};

static enum code copy_plain(struct eval *e, struct str s, size_t *at, const bool odd[128], struct buf *out)
{
    size_t start = *at;
    INVARIANT(s.ptr || s.len == 0);
    for (; *at < s.len; (*at)++) {
        unsigned char c = (unsigned char)s.ptr[*at];
        if (c < ' ' || c > '~' || odd[c]) break;
    }
    buf_add(out, str_slice(s, start, *at));
    return eval_charge(e, (*at - start) / BYTES_PER_STEP);
}

static enum code repr_text(struct eval *e, struct str s, struct buf *out)
{
    bool single = memchr(s.ptr ? s.ptr : "", '\'', s.len), twice = memchr(s.ptr ? s.ptr : "", '"', s.len);
    char quote = single && !twice ? '"' : '\'';
    size_t count = 0;
    enum code rc = eval_charge(e, s.len / BYTES_PER_STEP);
    buf_byte(out, quote);
    for (size_t at = 0; at < s.len && !rc;) {
        rc = copy_plain(e, s, &at, odd_in_repr, out);
        if (rc || at == s.len) break;
        size_t start = at;
        uint32_t c = pattern_decode(s, &at);
        if (c == (uint32_t)quote || c == '\\') {
            buf_byte(out, '\\');
            buf_byte(out, (char)c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            buf_text(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (is_printable(c)) {
            buf_add(out, str_slice(s, start, at));
        } else {
            buf_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        }
        if (++count % ODD_PER_STEP == 0) rc = eval_charge(e, 1);
    }
    buf_byte(out, quote);
    return rc;
}

static enum code repr_items(struct eval *e, const struct json *v, struct buf *out, uint32_t depth)
{
    bool tuple = v->type == VALUE_TUPLE, dict = v->type == JSON_OBJECT;
    enum code rc = OK;
    buf_byte(out, tuple ? '(' : dict ? '{' : '[');
    for (uint32_t i = 0; i < v->count && !rc; i++) {
        if (i) buf_text(out, ", ");
        if (dict) {
            rc = repr_text(e, v->members[i].key, out);
            if (rc) return rc;
            buf_text(out, ": ");
        }
        rc = value_repr(e, dict ? &v->members[i].value : &v->items[i], out, depth + 1);
    }
    if (tuple && v->count == 1) buf_byte(out, ',');
    buf_byte(out, tuple ? ')' : dict ? '}' : ']');
    return rc;
}

enum code value_repr(struct eval *e, const struct json *v, struct buf *out, uint32_t depth)
{
    struct number n;
    if (depth > VALUE_DEPTH) return eval_fault(e, E_LIMIT, "values of more than %d levels", VALUE_DEPTH);
    if (out->failed) return OK; // the output is full: its owner says so
    switch (v->type) {
    case TEMPLATE_UNDEFINED:
        buf_text(out, "Undefined");
        return OK;
    case JSON_NULL:
        buf_text(out, "None");
        return OK;
    case JSON_BOOL:
        buf_text(out, v->boolean ? "True" : "False");
        return OK;
    case JSON_INT:
        buf_int(out, v->integer);
        return OK;
    case VALUE_FLOAT:
        float_write(out, value_double(v));
        return OK;
    case JSON_NUMBER:
        if (value_number(v, &n) && n.is_float)
            real_write(out, v, n.real);
        else
            buf_add(out, v->text);
        return OK;
    case JSON_STRING:
        return repr_text(e, v->text, out);
    case VALUE_LOOP:
    case VALUE_NAMESPACE:
    case VALUE_MACRO:
        return eval_fault(e, E_INVALID, "a %s is not a value", value_type_name(v));
    default:
        return repr_items(e, v, out, depth);
    }
}

enum code value_write(struct eval *e, const struct json *v, struct buf *out)
{
    size_t before = out->len;
    if (v->type == TEMPLATE_UNDEFINED) return OK;
    if (v->type == JSON_STRING) {
        buf_add(out, v->text);
        return OK;
    }
    enum code rc = value_repr(e, v, out, 0);
    return rc ? rc : eval_charge(e, (out->len - before) / BYTES_PER_STEP);
}

enum code value_str(struct eval *e, const struct json *v, struct str *out)
{
    struct buf buf;
    struct json text;
    *out = v->type == JSON_STRING ? v->text : STR("");
    if (v->type == JSON_STRING || v->type == TEMPLATE_UNDEFINED) return eval_use(e, v);
    eval_buf(e, &buf);
    enum code rc = eval_take(e, &buf, value_write(e, v, &buf), &text);
    if (!rc) *out = text.text;
    return rc;
}

// ---- JSON

static void json_code_unit(struct buf *out, uint32_t c)
{
    buf_printf(out, "\\u%04x", c);
}

// As json.dumps does it, and then Jinja: nothing but ASCII, and nothing that HTML would read.
static enum code json_text_write(struct eval *e, struct str s, struct buf *out)
{
    static const char shorts[] = "\"\"\\\\b\bf\fn\nr\rt\t";
    size_t count = 0;
    enum code rc = OK;
    buf_byte(out, '"');
    for (size_t at = 0; at < s.len && !rc;) {
        rc = copy_plain(e, s, &at, odd_in_json, out);
        if (rc || at == s.len) break;
        uint32_t c = pattern_decode(s, &at);
        size_t i = 0;
        while (i + 1 < sizeof(shorts) && (unsigned char)shorts[i + 1] != c) i += 2;
        if (i + 1 < sizeof(shorts)) {
            buf_byte(out, '\\');
            buf_byte(out, shorts[i]);
        } else if (c >= 0x10000) {
            json_code_unit(out, 0xD800 + ((c - 0x10000) >> 10));
            json_code_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
        } else if (c == 0x7F) {
            buf_byte(out, 0x7F);
        } else {
            json_code_unit(out, c); // plain ones were copied
        }
        if (++count % ODD_PER_STEP == 0) rc = eval_charge(e, 1);
    }
    buf_byte(out, '"');
    return rc;
}

struct dump {
    struct eval *e;
    struct buf *out;
    int64_t indent; // < 0: on one line
};

static void break_line(const struct dump *d, uint32_t depth)
{
    if (d->indent < 0) return;
    buf_byte(d->out, '\n');
    for (int64_t i = 0; i < d->indent * depth && !d->out->failed; i++) buf_byte(d->out, ' ');
}

static void sort_keys(const struct json_member **members, uint32_t count)
{
    for (uint32_t gap = count / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (uint32_t i = gap; i < count; i++) {
            const struct json_member *moved = members[i];
            uint32_t at = i;
            for (; at >= gap && str_cmp(members[at - gap]->key, moved->key) > 0; at -= gap)
                members[at] = members[at - gap];
            members[at] = moved;
        }
    }
}

static enum code dump_value(const struct dump *d, const struct json *v, uint32_t depth);

static enum code dump_items(const struct dump *d, const struct json *v, uint32_t depth)
{
    bool dict = v->type == JSON_OBJECT;
    const struct json_member **members = NULL;
    enum code rc = eval_charge(d->e, v->count);
    if (!rc && dict && v->count) {
        members = ARENA_ARRAY(d->e->arena, v->count, const struct json_member *);
        if (!members) return error_nomem(d->e->err);
        for (uint32_t i = 0; i < v->count; i++) members[i] = &v->members[i];
        sort_keys(members, v->count);
    }
    buf_byte(d->out, dict ? '{' : '[');
    for (uint32_t i = 0; i < v->count && !rc; i++) {
        if (i) buf_text(d->out, d->indent < 0 ? ", " : ",");
        break_line(d, depth + 1);
        if (dict) {
            rc = json_text_write(d->e, members[i]->key, d->out);
            if (rc) return rc;
            buf_text(d->out, ": ");
        }
        rc = dump_value(d, dict ? &members[i]->value : &v->items[i], depth + 1);
    }
    if (v->count) break_line(d, depth);
    buf_byte(d->out, dict ? '}' : ']');
    return rc;
}

static enum code dump_value(const struct dump *d, const struct json *v, uint32_t depth)
{
    if (depth > VALUE_DEPTH) return eval_fault(d->e, E_LIMIT, "values of more than %d levels", VALUE_DEPTH);
    if (d->out->failed) return OK;
    switch (v->type) {
    case TEMPLATE_UNDEFINED:
        return eval_undefined(d->e, "a value for tojson");
    case JSON_NULL:
        buf_text(d->out, "null");
        return OK;
    case JSON_BOOL:
        buf_text(d->out, v->boolean ? "true" : "false");
        return OK;
    case JSON_STRING:
        return json_text_write(d->e, v->text, d->out);
    case JSON_ARRAY:
    case VALUE_TUPLE:
    case JSON_OBJECT:
        return dump_items(d, v, depth);
    default:
        return value_repr(d->e, v, d->out, 0);
    }
}

enum code value_json(struct eval *e, const struct json *v, int64_t indent, struct buf *out)
{
    struct dump d = {e, out, indent > 64 ? 64 : indent};
    return dump_value(&d, v, 0);
}
