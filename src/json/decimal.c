#include "json/decimal.h"

enum { DIVISOR_DIGITS_MAX = 18, DIVISOR_BITS = 60 };

static int64_t exponent_of(struct str text)
{
    bool negative = text.len && text.ptr[0] == '-';
    size_t i = text.len && (text.ptr[0] == '-' || text.ptr[0] == '+') ? 1 : 0;
    int64_t value = 0;
    for (; i < text.len; i++) { // far beyond what is read it makes no difference
        if (value <= JSON_EXPONENT_MAX) value = value * 10 + (text.ptr[i] - '0');
    }
    return negative ? -value : value;
}

struct decimal decimal_text(struct str text)
{
    struct decimal d = {.negative = text.len && text.ptr[0] == '-'};
    size_t e = 0;
    while (e < text.len && text.ptr[e] != 'e' && text.ptr[e] != 'E') e++;
    size_t first = text.len, last = 0, point = e;
    for (size_t i = d.negative; i < e; i++) {
        if (text.ptr[i] == '.') {
            point = i;
        } else if (text.ptr[i] != '0') {
            first = first < i ? first : i;
            last = i;
        }
    }
    if (first == text.len) {
        d.negative = false;
        return d;
    }
    d.digits = str_slice(text, first, last + 1);
    d.digit_count = (uint32_t)(last + 1 - first - (first < point && point < last));
    d.exponent = (int64_t)point - (int64_t)first + (first > point);
    d.exponent += exponent_of(str_slice(text, e < text.len ? e + 1 : e, text.len));
    return d;
}

struct decimal decimal_of(const struct json *number, char scratch[DECIMAL_SCRATCH])
{
    if (number->type == JSON_NUMBER) return decimal_text(number->text);
    INVARIANT(number->type == JSON_INT);
    bool negative = number->integer < 0;
    uint64_t rest = negative ? -(uint64_t)number->integer : (uint64_t)number->integer;
    size_t at = DECIMAL_SCRATCH;
    do {
        scratch[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (negative) scratch[--at] = '-';
    return decimal_text((struct str){scratch + at, DECIMAL_SCRATCH - at});
}

static int magnitude_cmp(const struct decimal *a, const struct decimal *b)
{
    if (!a->digit_count || !b->digit_count) return (a->digit_count != 0) - (b->digit_count != 0);
    if (a->exponent != b->exponent) return a->exponent < b->exponent ? -1 : 1;
    size_t i = 0, j = 0;
    for (;; i++, j++) {
        i += i < a->digits.len && a->digits.ptr[i] == '.';
        j += j < b->digits.len && b->digits.ptr[j] == '.';
        if (i == a->digits.len || j == b->digits.len) return (i < a->digits.len) - (j < b->digits.len);
        if (a->digits.ptr[i] != b->digits.ptr[j]) return a->digits.ptr[i] < b->digits.ptr[j] ? -1 : 1;
    }
}

int decimal_cmp(const struct decimal *a, const struct decimal *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    return a->negative ? -magnitude_cmp(a, b) : magnitude_cmp(a, b);
}

bool decimal_integral(const struct decimal *d)
{
    return d->exponent >= (int64_t)d->digit_count;
}

bool divisor_of(const struct decimal *d, struct divisor *out)
{
    if (!d->digit_count || d->negative || d->digit_count > DIVISOR_DIGITS_MAX) return false;
    *out = (struct divisor){.exponent = d->exponent - (int64_t)d->digit_count};
    for (size_t i = 0; i < d->digits.len; i++) {
        if (d->digits.ptr[i] != '.') out->value = out->value * 10 + (uint64_t)(d->digits.ptr[i] - '0');
    }
    return true;
}

// a × 10^p is a multiple of d × 10^q. Neither a nor d ends in 0, so with p < q it cannot be: 10 would divide a. Otherwise
// a × 10^(p - q) must be one of d, which has at most 60 factors 2 and 5 for the power of ten to provide.
bool decimal_divides(const struct divisor *divisor, const struct decimal *d)
{
    if (!d->digit_count) return true;
    int64_t shift = d->exponent - (int64_t)d->digit_count - divisor->exponent;
    if (shift < 0) return false;
    uint64_t rest = 0; // below 10^18, so ten times as much fits
    for (size_t i = 0; i < d->digits.len; i++) {
        if (d->digits.ptr[i] != '.') rest = (rest * 10 + (uint64_t)(d->digits.ptr[i] - '0')) % divisor->value;
    }
    for (int64_t i = 0; i < shift && i < DIVISOR_BITS && rest; i++) rest = rest * 10 % divisor->value;
    return rest == 0;
}
