// "%05.2f" % value and "{:>8}".format(value): the common part of Python's two ways to format.
#include "template/internal.h"

#include "json/integer.h"

#include <string.h>

struct spec {
    struct str fill; // one character
    char align;      // '<', '>', '^', '=' (behind the sign); 0: by type
    char sign;       // '+', ' ', 0
    bool comma;
    int64_t width, precision; // precision -1: none
    char type;
};

enum { WIDTH_MAX = 100000, PRECISION_MAX = 300 };

static size_t read_count(struct str s, size_t at, int64_t *out)
{
    *out = 0;
    for (; at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9'; at++)
        if (*out <= WIDTH_MAX) *out = *out * 10 + (s.ptr[at] - '0');
    return at;
}

static enum code no_format(struct eval *e, const struct spec *spec, const struct json *v)
{
    return eval_fault(e, E_INVALID, "format %c does not take a %s", spec->type, value_type_name(v));
}

static void add_commas(struct buf *out, struct str digits)
{
    size_t whole = 0;
    while (whole < digits.len && digits.ptr[whole] >= '0' && digits.ptr[whole] <= '9') whole++;
    for (size_t i = 0; i < digits.len; i++) {
        if (i && i < whole && (whole - i) % 3 == 0) buf_byte(out, ',');
        buf_byte(out, digits.ptr[i]);
    }
}

// The text of a number without its sign.
static enum code number_text(struct eval *e, const struct spec *spec, const struct json *v, struct buf *out,
                             bool *negative)
{
    struct number n;
    if (!value_number(v, &n)) return no_format(e, spec, v);
    *negative = n.is_float ? __builtin_signbit(n.real) != 0 : n.real < 0;
    double real = *negative ? -n.real : n.real;
    struct json integer = n.is_float ? json_int(0) : value_integer(v);
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    bool whole = spec->type && strchr("dixXo", spec->type);
    if (whole && n.is_float) return no_format(e, spec, v);
    whole = whole || (!n.is_float && !spec->type);
    size_t digits = integer.type == JSON_NUMBER ? integer.text.len : 1;
    enum code rc = whole ? eval_charge(e, digits * digits / 1024) : number_finite(e, &n);
    if (rc) return rc;
    struct buf plain SCOPED(buf_release) = buf_of(JSON_NUMBER_SIZE_MAX * 4);
    if (whole)
        integer_write(&plain, &integer,
                      spec->type == 'o'                          ? 8
                      : spec->type == 'x' || spec->type == 'X' ? 16
                                                                 : 10,
                      spec->type == 'X');
    else if (spec->type == 'e' || spec->type == 'E')
        buf_printf(&plain, spec->type == 'e' ? "%.*e" : "%.*E", precision, real);
    else if (spec->type == 'g' || spec->type == 'G')
        buf_printf(&plain, "%.*g", precision, real);
    else if (spec->type == '%')
        buf_printf(&plain, "%.*f%%", precision, real * 100);
    else if (spec->type)
        buf_printf(&plain, "%.*f", precision, real);
    else
        float_write(&plain, real);
    if (spec->comma)
        add_commas(out, buf_str(&plain));
    else
        buf_add(out, buf_str(&plain));
    bool ok = buf_ok(&plain);
    return ok ? OK : eval_fault(e, E_LIMIT, "a number of too many digits");
}

static void pad(struct buf *out, struct str fill, int64_t count)
{
    for (int64_t i = 0; i < count && !out->failed; i++) buf_add(out, fill);
}

static enum code write_padded(struct eval *e, const struct spec *spec, const struct json *v, struct buf *out)
{
    struct buf body;
    bool negative = false;
    struct number n;
    bool number = spec->type ? spec->type != 's' : v->type != JSON_BOOL && value_number(v, &n);
    if (spec->width > WIDTH_MAX || (number && spec->precision > PRECISION_MAX))
        return eval_fault(e, E_LIMIT, "a format wider than %d or with more than %d digits", WIDTH_MAX, PRECISION_MAX);
    eval_buf(e, &body);
    enum code rc = number ? number_text(e, spec, v, &body, &negative) : value_write(e, v, &body);
    struct str text = buf_str(&body);
    if (!number && spec->precision >= 0) text = str_slice(text, 0, text_offset(text, (size_t)spec->precision));
    struct str sign = negative ? STR("-") : spec->sign == '+' ? STR("+") : spec->sign == ' ' ? STR(" ") : STR("");
    if (!number) sign = STR("");
    int64_t room = spec->width - (int64_t)(text_count(text) + sign.len), left = room;
    char align = spec->align ? spec->align : number ? '>' : '<';
    if (align == '<') left = 0;
    if (align == '^') left = room / 2;
    if (align != '=') pad(out, spec->fill, left);
    buf_add(out, sign);
    if (align == '=') pad(out, spec->fill, left);
    buf_add(out, text);
    pad(out, spec->fill, room - (left > 0 ? left : 0));
    if (!buf_ok(&body) && !rc) rc = eval_fault(e, E_LIMIT, "more than %zu bytes of text", e->limits.output_size_max);
    buf_release(&body);
    return rc;
}

// ---- %

static size_t read_percent(struct str s, size_t at, struct spec *spec)
{
    *spec = (struct spec){.fill = STR(" "), .align = '>', .precision = -1};
    for (; at < s.len && strchr("-0+ #", s.ptr[at]) && s.ptr[at]; at++) {
        if (s.ptr[at] == '-') spec->align = '<';
        if (s.ptr[at] == '0' && spec->align != '<') {
            spec->align = '=';
            spec->fill = STR("0");
        }
        if (s.ptr[at] == '+' || (s.ptr[at] == ' ' && !spec->sign)) spec->sign = s.ptr[at];
    }
    at = read_count(s, at, &spec->width);
    if (at < s.len && s.ptr[at] == '.') at = read_count(s, at + 1, &spec->precision);
    spec->type = at < s.len ? s.ptr[at] : 0;
    return at + 1;
}

static enum code write_percent(struct eval *e, struct spec *spec, const struct json *v, struct buf *out)
{
    struct number n;
    struct json whole;
    if (!spec->type || !strchr("diuxXofFeEgGsr", spec->type))
        return eval_fault(e, E_UNSUPPORTED, "no such format: %%%c", spec->type ? spec->type : ' ');
    if (spec->type == 's' || spec->type == 'r') {
        struct buf text;
        eval_buf(e, &text);
        enum code rc = spec->type == 'r' ? value_repr(e, v, &text, 0) : value_write(e, v, &text);
        rc = eval_take(e, &text, rc, &whole);
        spec->type = 's';
        spec->fill = STR(" ");
        if (spec->align == '=') spec->align = '>';
        return rc ? rc : write_padded(e, spec, &whole, out);
    }
    if (spec->type == 'i' || spec->type == 'u') spec->type = 'd';
    if (spec->type == 'd' && value_number(v, &n) && n.is_float) {
        enum code rc = number_to_int(e, n.real, &whole);
        return rc ? rc : write_padded(e, spec, &whole, out);
    }
    return write_padded(e, spec, v, out);
}

enum code text_percent(struct eval *e, struct str format, const struct json *values, struct json *out)
{
    struct buf buf;
    struct spec spec;
    uint32_t used = 0, count = values->type == VALUE_TUPLE ? values->count : 1;
    enum code rc = OK;
    eval_buf(e, &buf);
    for (size_t at = 0; at < format.len && !rc;) {
        if (format.ptr[at] != '%') {
            buf_byte(&buf, format.ptr[at++]);
            continue;
        }
        if (at + 1 < format.len && format.ptr[at + 1] == '(') {
            rc = eval_fault(e, E_UNSUPPORTED, "%%(name) formats");
            break;
        }
        at = read_percent(format, at + 1, &spec);
        if (spec.type == '%')
            buf_byte(&buf, '%');
        else if (used == count)
            rc = eval_fault(e, E_INVALID, "more formats than values");
        else
            rc = write_percent(e, &spec, values->type == VALUE_TUPLE ? &values->items[used++] : (used++, values), &buf);
    }
    bool container = values->type == JSON_OBJECT || values->type == JSON_ARRAY; // Python does not miss these
    if (!rc && used < count && !container) rc = eval_fault(e, E_INVALID, "more values than formats");
    return eval_take(e, &buf, rc, out);
}

// ---- {}

static enum code read_spec(struct eval *e, struct str s, struct spec *spec)
{
    *spec = (struct spec){.fill = STR(" "), .precision = -1};
    size_t at = 0, first = s.len ? str_utf8_size(s, 0) : 0;
    if (first && first < s.len && strchr("<>^=", s.ptr[first])) {
        spec->fill = str_slice(s, 0, first);
        spec->align = s.ptr[first];
        at = first + 1;
    } else if (s.len && strchr("<>^=", s.ptr[0])) {
        spec->align = s.ptr[at++];
    }
    if (at < s.len && strchr("+- ", s.ptr[at])) {
        if (s.ptr[at] != '-') spec->sign = s.ptr[at];
        at++;
    }
    if (at < s.len && s.ptr[at] == '0' && !spec->align) {
        spec->align = '=';
        spec->fill = STR("0");
        at++;
    }
    at = read_count(s, at, &spec->width);
    if (at < s.len && s.ptr[at] == ',') {
        spec->comma = true;
        at++;
    }
    if (at < s.len && s.ptr[at] == '.') at = read_count(s, at + 1, &spec->precision);
    if (at < s.len) spec->type = s.ptr[at++];
    if (at < s.len || (spec->type && !strchr("dxXofFeEgG%s", spec->type)))
        return eval_fault(e, E_UNSUPPORTED, "no such format: %.*s", STR_ARG(s));
    return OK;
}

// "0.name[key]" of the arguments.
static enum code find_field(struct eval *e, struct str field, const struct function_call *call, uint32_t *automatic,
                            struct json *out)
{
    size_t end = 0;
    int64_t index = 0;
    while (end < field.len && field.ptr[end] != '.' && field.ptr[end] != '[') end++;
    struct str name = str_slice(field, 0, end);
    bool number = !name.len || str_int64(name, &index);
    if (!name.len) index = (*automatic)++;
    const struct json *found = NULL;
    for (uint32_t i = 0; i < call->count && !found; i++) {
        bool here = number ? !call->names[i].len && i == index : str_eq(call->names[i], name);
        if (here) found = &call->args[i];
    }
    if (!found) return eval_fault(e, E_INVALID, "format: no such value: %.*s", STR_ARG(name));
    *out = *found;
    if (end == field.len) return OK;
    return eval_fault(e, E_UNSUPPORTED, "format: members in a field: %.*s", STR_ARG(field));
}

static enum code write_field(struct eval *e, struct str inside, const struct function_call *call, uint32_t *automatic,
                             struct buf *out)
{
    struct str text;
    struct spec spec;
    struct json value;
    struct str field = str_cut(inside, ':', &text);
    if (memchr(field.len ? field.ptr : "", '!', field.len)) return eval_fault(e, E_UNSUPPORTED, "format: conversions");
    enum code rc = find_field(e, field, call, automatic, &value);
    if (!rc) rc = read_spec(e, text, &spec);
    if (rc) return rc;
    if (!text.len) return value_write(e, &value, out);
    if (spec.type == 's' && value.type != JSON_STRING) return no_format(e, &spec, &value);
    if (!spec.type && spec.precision >= 0 && value.type != JSON_STRING)
        return eval_fault(e, E_UNSUPPORTED, "format: a precision without a type");
    return write_padded(e, &spec, &value, out);
}

enum code text_format(struct eval *e, struct str format, const struct function_call *values, struct json *out)
{
    struct buf buf;
    uint32_t automatic = 0;
    enum code rc = OK;
    eval_buf(e, &buf);
    for (size_t at = 0; at < format.len && !rc;) {
        char c = format.ptr[at];
        bool twice = at + 1 < format.len && format.ptr[at + 1] == c;
        if ((c != '{' && c != '}') || twice) {
            buf_byte(&buf, c);
            at += c == '{' || c == '}' ? 2 : 1;
            continue;
        }
        size_t end = str_find(format, '}', at);
        if (c == '}' || end == format.len) {
            rc = eval_fault(e, E_INVALID, "format: a single %c", c);
        } else {
            rc = write_field(e, str_slice(format, at + 1, end), values, &automatic, &buf);
            at = end + 1;
        }
    }
    return eval_take(e, &buf, rc, out);
}
