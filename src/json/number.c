// Numbers between text and double. This file alone in the pure tier calls strtod and snprintf (for
// "%.*e"). Both are exact in glibc, and nobody calls setlocale, so the decimal point is a point.
#include "json/decimal.h"
#include "json/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static size_t skip_digits(struct str text, size_t i)
{
    while (i < text.len && char_is_digit(text.ptr[i])) i++;
    return i;
}

size_t json_number_scan(struct str text, bool *integral)
{
    size_t i = text.len && text.ptr[0] == '-' ? 1 : 0;
    if (i == text.len || !char_is_digit(text.ptr[i])) return 0;
    i = text.ptr[i] == '0' ? i + 1 : skip_digits(text, i);
    *integral = true;
    if (i < text.len && text.ptr[i] == '.') {
        size_t fraction = i + 1;
        i = skip_digits(text, fraction);
        if (i == fraction) return 0;
        *integral = false;
    }
    if (i < text.len && (text.ptr[i] == 'e' || text.ptr[i] == 'E')) {
        size_t exponent = i + 1;
        if (exponent < text.len && (text.ptr[exponent] == '+' || text.ptr[exponent] == '-')) exponent++;
        i = skip_digits(text, exponent);
        if (i == exponent) return 0;
        *integral = false;
    }
    return i;
}

bool json_is_number(const struct json *value)
{
    return value && (value->type == JSON_INT || value->type == JSON_NUMBER);
}

bool json_is_integer(const struct json *value)
{
    if (!json_is_number(value)) return false;
    for (size_t i = 0; value->type == JSON_NUMBER && i < value->text.len; i++) {
        char c = value->text.ptr[i];
        if (c == '.' || c == 'e' || c == 'E') return false;
    }
    return true;
}

bool json_double(const struct json *value, double *out)
{
    if (!json_is_number(value)) return false;
    if (value->type == JSON_INT) {
        *out = (double)value->integer;
        return true;
    }
    INVARIANT(value->text.len <= JSON_NUMBER_SIZE_MAX);
    char text[JSON_NUMBER_SIZE_MAX + 1];
    memcpy(text, value->text.ptr, value->text.len);
    text[value->text.len] = '\0';
    double found = strtod(text, NULL);
    if (!isfinite(found)) return false;
    *out = found;
    return true;
}

int json_number_cmp(const struct json *a, const struct json *b)
{
    INVARIANT(json_is_number(a) && json_is_number(b));
    if (a->type == JSON_INT && b->type == JSON_INT) return (a->integer > b->integer) - (a->integer < b->integer);
    char left[DECIMAL_SCRATCH], right[DECIMAL_SCRATCH];
    struct decimal x = decimal_of(a, left), y = decimal_of(b, right);
    return decimal_cmp(&x, &y);
}

enum { DIGITS_MAX = 17, DIGITS_SAFE = 15 };

// value = 0.d1d2d3 * 10^exponent
struct digits {
    char text[DIGITS_MAX + 1];
    int count;
    int exponent;
};

static void digits_round(double value, int count, struct digits *out)
{
    char text[32]; // "d.dddde-ddd"
    int written = snprintf(text, sizeof(text), "%.*e", count - 1, value);
    INVARIANT(written > 0 && (size_t)written < sizeof(text));
    out->text[0] = text[0];
    size_t fraction = (size_t)(count - 1);
    if (fraction) memcpy(out->text + 1, text + 2, fraction);
    const char *exponent = text + (count > 1 ? count + 1 : 1) + 1;
    out->count = count;
    int64_t power = 0;
    bool read = str_int64(str_from(exponent + (*exponent == '+')), &power);
    INVARIANT(read);
    out->exponent = (int)power + 1;
}

static void digits_increment(struct digits *digits)
{
    int i = digits->count - 1;
    while (i >= 0 && digits->text[i] == '9') digits->text[i--] = '0';
    if (i >= 0) {
        digits->text[i]++;
        return;
    }
    digits->text[0] = '1';
    digits->exponent++;
}

static bool digits_read_back(const struct digits *digits, double value)
{
    char text[40];
    int written = snprintf(text, sizeof(text), "0.%.*se%d", digits->count, digits->text, digits->exponent);
    INVARIANT(written > 0 && (size_t)written < sizeof(text));
    return strtod(text, NULL) == value;
}

// The fewest digits that read back. For most doubles the nearest decimal of k digits is the only
// candidate, and 15 digits always survive, so trying 15 (less final zeros), 16 and 17 is enough.
// Not so below the normal range, where precision fades, and at powers of two, where the gap below
// is half the gap above: there each length is tried, and at powers of two also the decimal next
// above the nearest.
static void digits_shortest(double value, struct digits *out)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bool power_of_two = (bits & UINT64_C(0xFFFFFFFFFFFFF)) == 0;
    bool subnormal = bits >> 52 == 0;
    for (int count = power_of_two || subnormal ? 1 : DIGITS_SAFE; count <= DIGITS_MAX; count++) {
        digits_round(value, count, out);
        bool found = digits_read_back(out, value);
        if (!found && power_of_two) {
            digits_increment(out);
            found = digits_read_back(out, value);
        }
        if (found) break;
        INVARIANT(count < DIGITS_MAX);
    }
    while (out->count > 1 && out->text[out->count - 1] == '0') out->count--;
}

static char *put(char *to, const char *from, size_t count)
{
    memcpy(to, from, count);
    return to + count;
}

static char *put_zeros(char *to, size_t count)
{
    memset(to, '0', count);
    return to + count;
}

// ECMAScript's Number::toString, from the digits on: 0.d1d2d3 * 10^point. A real has a point or an exponent in any case.
static char *put_digits(char *to, const char *digits, size_t count, int64_t point, bool real)
{
    int64_t many = (int64_t)count;
    if (point >= many && point <= 21) {
        to = put(to, digits, count);
        to = put_zeros(to, (size_t)(point - many));
        return real ? put(to, ".0", 2) : to;
    }
    if (point > 0 && point < many && point <= 21) {
        to = put(to, digits, (size_t)point);
        *to++ = '.';
        return put(to, digits + point, count - (size_t)point);
    }
    if (point > -6 && point <= 0) {
        to = put(to, "0.", 2);
        to = put_zeros(to, (size_t)-point);
        return put(to, digits, count);
    }
    *to++ = digits[0];
    if (count > 1) {
        *to++ = '.';
        to = put(to, digits + 1, count - 1);
    }
    int64_t exponent = point - 1;
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    char text[24];
    size_t at = sizeof(text);
    for (uint64_t rest = (uint64_t)(exponent < 0 ? -exponent : exponent); rest; rest /= 10)
        text[--at] = (char)('0' + rest % 10);
    return put(to, text + at, sizeof(text) - at);
}

static size_t format(double value, bool real, char out[32])
{
    INVARIANT(isfinite(value));
    char *p = out;
    if (value < 0 || (real && signbit(value))) {
        *p++ = '-';
        value = -value;
    }
    if (value == 0) {
        *p++ = '0'; // ECMAScript prints -0 as 0
        if (real) p = put(p, ".0", 2);
    } else {
        struct digits digits = {0};
        digits_shortest(value, &digits);
        p = put_digits(p, digits.text, (size_t)digits.count, digits.exponent, real);
    }
    *p = '\0';
    INVARIANT(p - out < 32);
    return (size_t)(p - out);
}

size_t json_double_format(double value, char out[32])
{
    return format(value, false, out);
}

size_t json_real_format(double value, char out[32])
{
    return format(value, true, out);
}

size_t json_whole_format(double value, char out[JSON_WHOLE_SIZE])
{
    INVARIANT(isfinite(value));
    int len = snprintf(out, JSON_WHOLE_SIZE, "%.0f", value);
    INVARIANT(len > 0 && len < JSON_WHOLE_SIZE);
    return (size_t)len;
}

// A real: its own digits where ECMAScript would put those of the double. Both are the same for as many digits as a double holds.
static void write_real(struct buf *out, struct str lexeme)
{
    enum { AROUND_MAX = 64 }; // sign, zeros, point, exponent
    struct decimal d = decimal_text(lexeme);
    char digits[JSON_NUMBER_SIZE_MAX], text[JSON_NUMBER_SIZE_MAX + AROUND_MAX], *to = text;
    size_t count = 0;
    INVARIANT(lexeme.len <= JSON_NUMBER_SIZE_MAX);
    for (size_t i = 0; i < d.digits.len; i++) {
        if (d.digits.ptr[i] != '.') digits[count++] = d.digits.ptr[i];
    }
    if (lexeme.ptr[0] == '-') *to++ = '-';
    to = count ? put_digits(to, digits, count, d.exponent, true) : put(to, "0.0", 3);
    buf_add(out, (struct str){text, (size_t)(to - text)});
}

void json_canon_number(struct buf *out, const struct json *number)
{
    if (number->type == JSON_INT)
        buf_int(out, number->integer);
    else if (json_is_integer(number))
        buf_add(out, number->text);
    else
        write_real(out, number->text);
}
