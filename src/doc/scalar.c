#include "doc/internal.h"

#include "json/integer.h"

#include <string.h>

static bool is_one_of(struct str text, const char *const *words)
{
    for (; *words; words++)
        if (str_is(text, *words)) return true;
    return false;
}

static size_t skip_digits(struct str text, size_t at)
{
    while (at < text.len && char_is_digit(text.ptr[at])) at++;
    return at;
}

static size_t skip_sign(struct str text)
{
    return text.len && (text.ptr[0] == '-' || text.ptr[0] == '+') ? 1 : 0;
}

// 16 or 8 for 0x... and 0o... (which take no sign), else 0.
static unsigned radix_of(struct str text)
{
    if (text.len < 3 || text.ptr[0] != '0' || (text.ptr[1] != 'x' && text.ptr[1] != 'o')) return 0;
    bool hex = text.ptr[1] == 'x';
    for (size_t i = 2; i < text.len; i++) {
        char c = text.ptr[i];
        bool fits = hex ? char_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') : c >= '0' && c <= '7';
        if (!fits) return 0;
    }
    return hex ? 16 : 8;
}

// [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)?
static enum scalar number_kind(struct str text)
{
    size_t start = skip_sign(text);
    size_t at = skip_digits(text, start);
    bool whole = at > start;
    if (whole && at == text.len) return SCALAR_INT;
    if (at < text.len && text.ptr[at] == '.') {
        size_t fraction = at + 1;
        at = skip_digits(text, fraction);
        if (!whole && at == fraction) return SCALAR_STRING;
    } else if (!whole) {
        return SCALAR_STRING;
    }
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+')) at++;
        size_t exponent = at;
        at = skip_digits(text, exponent);
        if (at == exponent) return SCALAR_STRING;
    }
    return at == text.len ? SCALAR_FLOAT : SCALAR_STRING;
}

enum scalar scalar_kind(struct str text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const bools[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    if (is_one_of(text, nulls)) return SCALAR_NULL;
    if (is_one_of(text, bools)) return SCALAR_BOOL;
    if (is_one_of(str_slice(text, skip_sign(text), text.len), infinities) || is_one_of(text, nans))
        return SCALAR_NONFINITE;
    if (radix_of(text)) return SCALAR_INT;
    return number_kind(text);
}

// JSON wants digits on both sides of the point, no plus sign and no zeros in front. A float stays one: 5. is 5.0.
static enum code decimal_value(struct str text, bool real, struct arena *arena, struct json *out)
{
    if (text.len > JSON_NUMBER_SIZE_MAX) return E_LIMIT;
    char *to = arena_alloc(arena, text.len + 4);
    if (!to) return E_NOMEM;
    size_t len = 0;
    size_t at = skip_sign(text);
    if (at && text.ptr[0] == '-') to[len++] = '-';
    size_t whole_end = skip_digits(text, at);
    while (at + 1 < whole_end && text.ptr[at] == '0') at++;
    if (at == whole_end) to[len++] = '0';
    memcpy(to + len, text.ptr + at, whole_end - at);
    len += whole_end - at;
    at = whole_end;
    if (at < text.len && text.ptr[at] == '.') {
        size_t end = skip_digits(text, at + 1);
        if (end > at + 1) {
            memcpy(to + len, text.ptr + at, end - at);
            len += end - at;
        }
        at = end;
    }
    memcpy(to + len, text.ptr + at, text.len - at);
    len += text.len - at;
    enum code rc = json_parse((struct str){to, len}, NULL, arena, out, NULL);
    if (rc || !real || !json_is_integer(out)) return rc;
    to[len] = '.';
    to[len + 1] = '0';
    *out = (struct json){.type = JSON_NUMBER, .text = {to, len + 2}};
    return OK;
}

enum code scalar_value(struct str text, enum scalar kind, struct arena *arena, struct json *out)
{
    INVARIANT(kind != SCALAR_NONFINITE);
    *out = json_string(text);
    if (kind == SCALAR_NULL) *out = json_null();
    if (kind == SCALAR_BOOL) *out = json_bool(text.ptr[0] == 't' || text.ptr[0] == 'T');
    if (kind != SCALAR_INT && kind != SCALAR_FLOAT) return OK;
    unsigned radix = radix_of(text);
    if (radix) return integer_read(arena, str_slice(text, 2, text.len), radix, false, out);
    return decimal_value(text, kind == SCALAR_FLOAT, arena, out);
}
