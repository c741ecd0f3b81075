// Numbers between text and double. This file alone in the pure tier calls strtod and snprintf (for
// "%.*e"). Both are exact in glibc, and nobody calls setlocale, so the decimal point is a point.
#include "json/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(struct str text, size_t i)
{
    while (i < text.len && is_digit(text.ptr[i])) i++;
    return i;
}

size_t json_number_scan(struct str text, bool *integral)
{
    size_t i = text.len && text.ptr[0] == '-' ? 1 : 0;
    size_t first = i;
    if (i == text.len || !is_digit(text.ptr[i])) return 0;
    i = text.ptr[i] == '0' ? i + 1 : skip_digits(text, i);
    *integral = first == 0 || text.ptr[first] != '0';
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

bool json_number_double(struct str lexeme, double *out)
{
    INVARIANT(lexeme.len <= JSON_NUMBER_SIZE_MAX);
    char text[JSON_NUMBER_SIZE_MAX + 1];
    memcpy(text, lexeme.ptr, lexeme.len);
    text[lexeme.len] = '\0';
    double value = strtod(text, NULL);
    if (!isfinite(value)) return false;
    *out = value;
    return true;
}

// A lexeme as 0.d1d2d3 * 10^exponent with d1 not 0; the digits are text[first..last], less the
// point.
struct decimal {
    struct str text;
    size_t first, last;
    int64_t exponent;
    bool zero, negative;
};

enum { EXPONENT_MAX = 1000000000 };

static int64_t exponent_of(struct str digits)
{
    bool negative = digits.len && digits.ptr[0] == '-';
    size_t i = digits.len && !is_digit(digits.ptr[0]) ? 1 : 0;
    int64_t exponent = 0;
    for (; i < digits.len; i++) {
        if (exponent < EXPONENT_MAX) exponent = exponent * 10 + (digits.ptr[i] - '0');
    }
    return negative ? -exponent : exponent;
}

static struct decimal decimal_of(struct str lexeme)
{
    struct decimal d = {.zero = true, .negative = lexeme.len && lexeme.ptr[0] == '-'};
    size_t mark = str_find(lexeme, 'e', 0);
    if (mark == lexeme.len) mark = str_find(lexeme, 'E', 0);
    struct str rest = str_slice(lexeme, mark + 1, lexeme.len);
    d.text = str_slice(lexeme, d.negative ? 1 : 0, mark);
    size_t point = str_find(d.text, '.', 0);
    for (size_t i = 0; i < d.text.len; i++) {
        if (i == point || d.text.ptr[i] == '0') continue;
        if (d.zero) d.first = i;
        d.zero = false;
        d.last = i;
    }
    int64_t whole_digits = (int64_t)point - (int64_t)d.first + (d.first > point);
    d.exponent = whole_digits + exponent_of(rest);
    return d;
}

bool json_number_equal(struct str a, struct str b)
{
    struct decimal x = decimal_of(a);
    struct decimal y = decimal_of(b);
    if (x.zero || y.zero) return x.zero && y.zero;
    if (x.negative != y.negative || x.exponent != y.exponent) return false;
    size_t i = x.first, j = y.first;
    for (;; i++, j++) {
        if (i <= x.last && x.text.ptr[i] == '.') i++;
        if (j <= y.last && y.text.ptr[j] == '.') j++;
        if (i > x.last || j > y.last) return i > x.last && j > y.last;
        if (x.text.ptr[i] != y.text.ptr[j]) return false;
    }
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
    out->exponent = (int)exponent_of(str_from(exponent)) + 1;
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

static char *put(char *to, const char *from, int count)
{
    memcpy(to, from, (size_t)count);
    return to + count;
}

static char *put_zeros(char *to, int count)
{
    memset(to, '0', (size_t)count);
    return to + count;
}

// ECMAScript's Number::toString, from the digits on.
static char *put_digits(char *to, const struct digits *digits)
{
    int count = digits->count;
    int point = digits->exponent;
    if (point >= count && point <= 21) {
        to = put(to, digits->text, count);
        return put_zeros(to, point - count);
    }
    if (point > 0 && point < count) {
        to = put(to, digits->text, point);
        *to++ = '.';
        return put(to, digits->text + point, count - point);
    }
    if (point > -6 && point <= 0) {
        to = put(to, "0.", 2);
        to = put_zeros(to, -point);
        return put(to, digits->text, count);
    }
    *to++ = digits->text[0];
    if (count > 1) {
        *to++ = '.';
        to = put(to, digits->text + 1, count - 1);
    }
    *to++ = 'e';
    int exponent = point - 1;
    *to++ = exponent < 0 ? '-' : '+';
    exponent = abs(exponent);
    if (exponent >= 100) *to++ = (char)('0' + exponent / 100);
    if (exponent >= 10) *to++ = (char)('0' + exponent / 10 % 10);
    *to++ = (char)('0' + exponent % 10);
    return to;
}

size_t json_double_format(double value, char out[32])
{
    INVARIANT(isfinite(value));
    char *p = out;
    if (value < 0) {
        *p++ = '-';
        value = -value;
    }
    if (value == 0) {
        *p++ = '0'; // ECMAScript prints -0 as 0
    } else {
        struct digits digits = {0};
        digits_shortest(value, &digits);
        p = put_digits(p, &digits);
    }
    *p = '\0';
    INVARIANT(p - out < 32);
    return (size_t)(p - out);
}
