// Nine decimal digits a limb, so that reading and writing cost next to nothing: what comes from text mostly goes to text.
#include "json/integer.h"

#include "json/internal.h"

enum {
    BASE = 1000000000,
    BASE_DIGITS = 9,
    LIMBS = JSON_NUMBER_DIGITS_MAX / BASE_DIGITS + 2, // what a result may have, and a little more
    PRODUCT = 2 * LIMBS,
};

struct big { // lowest limb first, the last one not 0; 0 has none
    uint32_t limb[PRODUCT];
    size_t count;
    bool negative;
};

static void trim(struct big *b)
{
    while (b->count && !b->limb[b->count - 1]) b->count--;
    if (!b->count) b->negative = false;
}

static void read_text(struct str text, struct big *out)
{
    out->negative = text.len && text.ptr[0] == '-';
    out->count = 0;
    size_t first = out->negative;
    INVARIANT(text.len - first <= (size_t)PRODUCT * BASE_DIGITS);
    for (size_t end = text.len; end > first;) {
        size_t start = end - first > BASE_DIGITS ? end - BASE_DIGITS : first;
        uint32_t limb = 0;
        for (size_t i = start; i < end; i++) limb = limb * 10 + (uint32_t)(text.ptr[i] - '0');
        out->limb[out->count++] = limb;
        end = start;
    }
    trim(out);
}

static void read(const struct json *number, struct big *out)
{
    INVARIANT(json_is_integer(number));
    if (number->type == JSON_NUMBER) {
        read_text(number->text, out);
        return;
    }
    out->negative = number->integer < 0;
    out->count = 0;
    uint64_t rest = out->negative ? 0 - (uint64_t)number->integer : (uint64_t)number->integer;
    for (; rest; rest /= BASE) out->limb[out->count++] = (uint32_t)(rest % BASE);
}

static enum code give(struct arena *arena, const struct big *b, struct json *out)
{
    char text[(size_t)PRODUCT * BASE_DIGITS + 2];
    size_t at = sizeof(text);
    for (size_t i = 0; i < b->count; i++) {
        uint32_t limb = b->limb[i];
        bool last = i + 1 == b->count;
        for (int k = 0; last ? limb != 0 : k < BASE_DIGITS; k++) {
            text[--at] = (char)('0' + limb % 10);
            limb /= 10;
        }
    }
    if (sizeof(text) - at > JSON_NUMBER_DIGITS_MAX) return E_LIMIT;
    if (at == sizeof(text)) text[--at] = '0';
    if (b->negative) text[--at] = '-';
    struct str digits = {text + at, sizeof(text) - at};
    int64_t small;
    if (str_int64(digits, &small)) {
        *out = json_int(small);
        return OK;
    }
    digits = arena_copy(arena, digits);
    if (!digits.ptr) return E_NOMEM;
    *out = json_number(digits);
    return OK;
}

static int cmp(const struct big *a, const struct big *b)
{
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (size_t i = a->count; i-- > 0;)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

// Sum, or difference with a >= b, of what stands without signs.
static void combine(const struct big *a, const struct big *b, bool minus, struct big *out)
{
    size_t count = a->count > b->count ? a->count : b->count;
    int64_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t x = i < a->count ? a->limb[i] : 0, y = i < b->count ? b->limb[i] : 0;
        int64_t sum = x + (minus ? -y : y) + carry;
        carry = sum < 0 ? -1 : sum >= BASE;
        out->limb[i] = (uint32_t)(sum - carry * BASE);
    }
    out->count = count;
    INVARIANT(carry >= 0);
    if (carry) out->limb[out->count++] = 1;
    trim(out);
}

static enum code sum(struct arena *arena, const struct json *a, const struct json *b, bool minus, struct json *out)
{
    struct big x, y, z;
    read(a, &x);
    read(b, &y);
    if (minus) y.negative = !y.negative;
    bool larger = cmp(&x, &y) >= 0;
    z.negative = larger ? x.negative : y.negative;
    combine(larger ? &x : &y, larger ? &y : &x, x.negative != y.negative, &z);
    return give(arena, &z, out);
}

enum code integer_add(struct arena *arena, const struct json *a, const struct json *b, struct json *out)
{
    return sum(arena, a, b, false, out);
}

enum code integer_subtract(struct arena *arena, const struct json *a, const struct json *b, struct json *out)
{
    return sum(arena, a, b, true, out);
}

static enum code multiply(const struct big *a, const struct big *b, struct big *out)
{
    if (a->count + b->count > PRODUCT) return E_LIMIT;
    for (size_t i = 0; i < a->count + b->count; i++) out->limb[i] = 0;
    for (size_t i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b->count; k++) {
            uint64_t value = out->limb[i + k] + (uint64_t)a->limb[i] * b->limb[k] + carry;
            out->limb[i + k] = (uint32_t)(value % BASE);
            carry = value / BASE;
        }
        out->limb[i + b->count] = (uint32_t)carry;
    }
    out->count = a->count + b->count;
    out->negative = a->negative != b->negative;
    trim(out);
    return OK;
}

enum code integer_multiply(struct arena *arena, const struct json *a, const struct json *b, struct json *out)
{
    struct big x, y, z;
    read(a, &x);
    read(b, &y);
    enum code rc = multiply(&x, &y, &z);
    return rc ? rc : give(arena, &z, out);
}

enum code integer_power(struct arena *arena, const struct json *base, const struct json *exponent, struct json *out)
{
    struct big x, y, result = {.limb = {1}, .count = 1};
    INVARIANT(integer_sign(exponent) >= 0);
    read(base, &x);
    bool unit = x.count == 0 || (x.count == 1 && x.limb[0] == 1); // which has no larger power
    if (exponent->type != JSON_INT && !unit) return E_LIMIT;
    uint64_t left = exponent->type == JSON_INT ? (uint64_t)exponent->integer : 0;
    if (exponent->type != JSON_INT) left = 2 + (exponent->text.ptr[exponent->text.len - 1] & 1);
    while (left) {
        enum code rc = OK;
        if (left & 1) {
            rc = multiply(&result, &x, &y);
            result = y;
        }
        left >>= 1;
        if (left && !rc) {
            rc = x.count > LIMBS ? E_LIMIT : multiply(&x, &x, &y);
            x = y;
        }
        if (rc || result.count > LIMBS) return E_LIMIT;
    }
    return give(arena, &result, out);
}

static uint32_t divide_by_limb(struct big *a, uint32_t by)
{
    uint64_t rest = 0;
    for (size_t i = a->count; i-- > 0;) {
        rest = rest * BASE + a->limb[i];
        a->limb[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    trim(a);
    return (uint32_t)rest;
}

static void multiply_by_limb(struct big *a, uint32_t by)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < a->count; i++) {
        carry += (uint64_t)a->limb[i] * by;
        a->limb[i] = (uint32_t)(carry % BASE);
        carry /= BASE;
    }
    if (carry) a->limb[a->count++] = (uint32_t)carry;
}

// Subtracts q * b, shifted by `at` limbs, from a. Returns whether that was too much; then a is what is above 0 by a borrow.
static bool subtract_times(struct big *a, const struct big *b, size_t at, uint64_t q)
{
    uint64_t carry = 0;
    int64_t borrow = 0;
    for (size_t i = 0; i <= b->count; i++) {
        carry += i < b->count ? q * b->limb[i] : 0;
        int64_t value = (int64_t)a->limb[at + i] - (int64_t)(carry % BASE) + borrow;
        carry /= BASE;
        borrow = value < 0 ? -1 : 0;
        a->limb[at + i] = (uint32_t)(value - borrow * BASE);
    }
    return borrow != 0;
}

static void add_back(struct big *a, const struct big *b, size_t at)
{
    uint32_t carry = 0;
    for (size_t i = 0; i <= b->count; i++) {
        uint32_t value = a->limb[at + i] + (i < b->count ? b->limb[i] : 0) + carry;
        carry = value >= BASE;
        a->limb[at + i] = value - carry * BASE;
    }
}

// Knuth's algorithm D. `a` becomes the rest; both without signs, and b has at least two limbs.
static void divide_long(struct big *a, struct big *b, struct big *quotient)
{
    uint32_t scale = BASE / (b->limb[b->count - 1] + 1);
    multiply_by_limb(a, scale);
    multiply_by_limb(b, scale);
    a->limb[a->count++] = 0;
    quotient->count = a->count - b->count;
    for (size_t at = quotient->count; at-- > 0;) {
        uint64_t top = (uint64_t)a->limb[at + b->count] * BASE + a->limb[at + b->count - 1];
        uint64_t high = b->limb[b->count - 1], q = top / high, rest = top % high;
        while (q >= BASE || q * b->limb[b->count - 2] > rest * BASE + a->limb[at + b->count - 2]) {
            q--;
            rest += high;
            if (rest >= BASE) break;
        }
        if (subtract_times(a, b, at, q)) {
            add_back(a, b, at);
            q--;
        }
        quotient->limb[at] = (uint32_t)q;
    }
    trim(quotient);
    trim(a);
    INVARIANT(divide_by_limb(a, scale) == 0);
}

enum code integer_divide(struct arena *arena, const struct json *a, const struct json *b, struct json *quotient,
                         struct json *rest)
{
    struct big x, y, q = {.count = 0}, adjusted;
    const struct big one = {.limb = {1}, .count = 1};
    read(a, &x);
    read(b, &y);
    INVARIANT(y.count);
    struct big divisor = y;
    bool opposite = x.negative != y.negative;
    if (cmp(&x, &y) >= 0 && y.count == 1) {
        q = x;
        x.limb[0] = divide_by_limb(&q, y.limb[0]);
        x.count = 1;
        trim(&x);
    } else if (cmp(&x, &y) >= 0) {
        divide_long(&x, &y, &q);
    }
    if (x.count && opposite) { // rounded down: one more, and the rest on the other side
        combine(&q, &one, false, &adjusted);
        q = adjusted;
        combine(&divisor, &x, true, &adjusted);
        x = adjusted;
    }
    q.negative = opposite && q.count;
    x.negative = divisor.negative && x.count;
    enum code rc = give(arena, &q, quotient);
    return rc ? rc : give(arena, &x, rest);
}

enum code integer_of_double(struct arena *arena, double d, struct json *out)
{
    INVARIANT(__builtin_isfinite(d));
    if (d > -9223372036854775808.0 && d < 9223372036854775808.0) {
        *out = json_int((int64_t)d);
        return OK;
    }
    char text[JSON_WHOLE_SIZE];
    size_t len = json_whole_format(d, text);
    struct str digits = arena_copy(arena, (struct str){text, len});
    if (!digits.ptr) return E_NOMEM;
    *out = json_number(digits);
    return OK;
}

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'z') return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'Z') return (unsigned)(c - 'A') + 10;
    return 36;
}

enum code integer_read(struct arena *arena, struct str digits, unsigned radix, bool negative, struct json *out)
{
    struct big b = {.count = 0};
    if (!digits.len) return E_INVALID;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] == '_' && i && i + 1 < digits.len && digits.ptr[i - 1] != '_') continue;
        uint64_t carry = digit_value(digits.ptr[i]);
        if (carry >= radix) return E_INVALID;
        if (b.count > LIMBS) continue; // too long already: only the digits are looked at
        for (size_t k = 0; k < b.count; k++) {
            carry += (uint64_t)b.limb[k] * radix;
            b.limb[k] = (uint32_t)(carry % BASE);
            carry /= BASE;
        }
        if (carry) b.limb[b.count++] = (uint32_t)carry;
    }
    b.negative = negative && b.count;
    return b.count > LIMBS ? E_LIMIT : give(arena, &b, out);
}

void integer_write(struct buf *out, const struct json *number, unsigned radix, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[(size_t)JSON_NUMBER_DIGITS_MAX * 4];
    size_t at = sizeof(text);
    struct big b;
    read(number, &b);
    do text[--at] = digits[divide_by_limb(&b, radix)];
    while (b.count);
    buf_add(out, (struct str){text + at, sizeof(text) - at});
}

int integer_sign(const struct json *number)
{
    INVARIANT(json_is_integer(number));
    if (number->type == JSON_NUMBER) return number->text.ptr[0] == '-' ? -1 : 1;
    return (number->integer > 0) - (number->integer < 0);
}
