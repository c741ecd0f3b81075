// Arithmetic as Python does it: integers are exact, of up to JSON_NUMBER_DIGITS_MAX digits, and more is an error, never a
// wrong number. Results that are not finite are errors too, because no document can hold them.
#include "template/internal.h"

#include "json/integer.h"

#include <math.h>
#include <string.h>

#define TWO_53 9007199254740992.0

static enum code finite(struct eval *e, double d, struct json *out)
{
    if (!isfinite(d)) return eval_fault(e, E_LIMIT, "the result is not a finite number");
    *out = value_float(d);
    return OK;
}

enum code number_finite(struct eval *e, const struct number *n)
{
    return isfinite(n->real) ? OK : eval_fault(e, E_LIMIT, "a number beyond the range of a float");
}

enum code number_done(struct eval *e, enum code rc)
{
    if (rc == E_LIMIT) return eval_fault(e, rc, "an integer of more than %d digits", JSON_NUMBER_DIGITS_MAX);
    return rc ? error_nomem(e->err) : OK;
}

static enum code by_zero(struct eval *e)
{
    return eval_fault(e, E_INVALID, "division by zero");
}

static size_t digits_of(const struct json *v)
{
    return v->type == JSON_NUMBER ? v->text.len : 1;
}

// The longer the numbers, the more steps they cost.
static enum code long_integers(struct eval *e, enum operator op, const struct json *a, const struct json *b,
                               struct json *out)
{
    struct json unused;
    enum code rc = eval_charge(e, 1 + digits_of(a) * digits_of(b) / 4096);
    if (rc) return rc;
    switch ((int)op) {
    case OPERATOR_ADD:
        return number_done(e, integer_add(e->arena, a, b, out));
    case OPERATOR_SUB:
        return number_done(e, integer_subtract(e->arena, a, b, out));
    case OPERATOR_MUL:
        return number_done(e, integer_multiply(e->arena, a, b, out));
    case OPERATOR_FLOOR_DIV:
        return number_done(e, integer_divide(e->arena, a, b, out, &unused));
    case OPERATOR_MOD:
        return number_done(e, integer_divide(e->arena, a, b, &unused, out));
    default: // OPERATOR_POW
        rc = number_done(e, integer_power(e->arena, a, b, out));
        return rc ? rc : eval_charge(e, digits_of(out) * digits_of(out) / 1024);
    }
}

static int exponent_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    return (int)(bits >> 52 & 0x7FF);
}

// The double that is nearest to the quotient: 59 bits of it and whether there is more say how to round.
static enum code quotient_of(struct eval *e, const struct number *x, const struct json *a, const struct number *y,
                             const struct json *b, struct json *out)
{
    enum code rc = eval_charge(e, 64);
    if (rc) return rc;
    int shift = 60 - (exponent_of(x->real) - exponent_of(y->real));
    const struct json two = json_int(2), many = json_int(shift < 0 ? -shift : shift);
    struct json power, scaled, quotient, rest;
    rc = integer_power(e->arena, &two, &many, &power);
    if (!rc) rc = integer_multiply(e->arena, shift < 0 ? b : a, &power, &scaled);
    if (!rc) rc = integer_divide(e->arena, shift < 0 ? a : &scaled, shift < 0 ? &scaled : b, &quotient, &rest);
    if (rc) return number_done(e, rc);
    INVARIANT(quotient.type == JSON_INT);
    int half = -shift / 2;
    double bits = (double)(quotient.integer | (integer_sign(&rest) != 0));
    return finite(e, bits * pow(2, half) * pow(2, -shift - half), out); // in two steps: 2^-1084 is no double
}

static enum code integers(struct eval *e, enum operator op, const struct json *a, const struct json *b,
                          struct json *out)
{
    struct number x, y;
    int64_t result = 0;
    if (!value_number(a, &x) || !value_number(b, &y)) return E_INVALID;
    bool zero = !y.is_large && y.integer == 0, large = x.is_large || y.is_large;
    if (op == OPERATOR_DIV || (op == OPERATOR_POW && y.real < 0)) {
        enum code rc = number_finite(e, &x);
        if (!rc) rc = number_finite(e, &y);
        if (rc) return rc;
        bool large_enough = fabs(x.real) > TWO_53 || fabs(y.real) > TWO_53;
        if (op == OPERATOR_DIV && zero) return by_zero(e);
        if (op == OPERATOR_DIV && large_enough && integer_sign(a)) return quotient_of(e, &x, a, &y, b, out);
        if (op == OPERATOR_DIV) return finite(e, x.real / y.real, out);
        return integer_sign(a) ? finite(e, pow(x.real, y.real), out) : by_zero(e);
    }
    if (zero && (op == OPERATOR_FLOOR_DIV || op == OPERATOR_MOD)) return by_zero(e);
    if ((op == OPERATOR_ADD && !large && !__builtin_add_overflow(x.integer, y.integer, &result)) ||
        (op == OPERATOR_SUB && !large && !__builtin_sub_overflow(x.integer, y.integer, &result)) ||
        (op == OPERATOR_MUL && !large && !__builtin_mul_overflow(x.integer, y.integer, &result))) {
        *out = json_int(result);
        return OK;
    }
    return long_integers(e, op, a, b, out);
}

static enum code floor_divide(struct eval *e, double a, double b, bool quotient, struct json *out)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod < 0 || mod > 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = copysign(0, b);
    }
    if (!quotient) return finite(e, mod, out);
    double whole = floor(div);
    if (div - whole > 0.5) whole += 1;
    return finite(e, div < 0 || div > 0 ? whole : copysign(0, a / b), out);
}

static enum code floats(struct eval *e, enum operator op, double a, double b, struct json *out)
{
    bool zero = !(b < 0 || b > 0);
    switch ((int)op) {
    case OPERATOR_ADD:
        return finite(e, a + b, out);
    case OPERATOR_SUB:
        return finite(e, a - b, out);
    case OPERATOR_MUL:
        return finite(e, a * b, out);
    case OPERATOR_DIV:
        return zero ? by_zero(e) : finite(e, a / b, out);
    case OPERATOR_FLOOR_DIV:
    case OPERATOR_MOD:
        return zero ? by_zero(e) : floor_divide(e, a, b, op == OPERATOR_FLOOR_DIV, out);
    default: // OPERATOR_POW
        if (!(a < 0 || a > 0) && b < 0) return by_zero(e);
        if (a < 0 && floor(b) < b) return eval_fault(e, E_UNSUPPORTED, "the power is a complex number");
        return finite(e, pow(a, b), out);
    }
}

// ---- sequences

static enum code join(struct eval *e, const struct json *a, const struct json *b, struct json *out)
{
    enum code rc = OK;
    if (a->type == JSON_STRING) {
        struct buf buf;
        eval_buf(e, &buf);
        buf_add(&buf, a->text);
        buf_add(&buf, b->text);
        return eval_take(e, &buf, OK, out);
    }
    struct json list = a->type == VALUE_TUPLE ? value_tuple() : json_array();
    for (uint32_t i = 0; i < a->count && !rc; i++) rc = value_push(e, &list, a->items[i]);
    for (uint32_t i = 0; i < b->count && !rc; i++) rc = value_push(e, &list, b->items[i]);
    *out = list;
    return rc;
}

static enum code repeat(struct eval *e, const struct json *v, int64_t times, struct json *out)
{
    enum code rc = OK;
    if (v->type == JSON_STRING) {
        struct buf buf;
        rc = eval_walk(e, v->text);
        if (!rc && times > 0) rc = eval_charge(e, (uint64_t)times / BYTES_WALKED);
        if (rc) return rc;
        eval_buf(e, &buf);
        for (int64_t i = 0; i < times && v->text.len && !buf.failed; i++) buf_add(&buf, v->text);
        return eval_take(e, &buf, OK, out);
    }
    struct json list = v->type == VALUE_TUPLE ? value_tuple() : json_array();
    for (int64_t i = 0; i < times && v->count && !rc; i++) {
        for (uint32_t j = 0; j < v->count && !rc; j++) rc = value_push(e, &list, v->items[j]);
    }
    *out = list;
    return rc;
}

static bool is_sequence(const struct json *v)
{
    return v->type == JSON_STRING || value_is_list(v);
}

static bool is_whole(const struct json *v, struct number *n)
{
    return value_number(v, n) && !n->is_float && !n->is_large;
}

enum code arithmetic(struct eval *e, enum operator op, const struct json *a, const struct json *b, struct json *out)
{
    struct number x, y;
    if (a->type == TEMPLATE_UNDEFINED || b->type == TEMPLATE_UNDEFINED)
        return eval_undefined(e, "a value that is reckoned with");
    if (op == OPERATOR_MOD && a->type == JSON_STRING) return text_percent(e, a->text, b, out);
    if (value_number(a, &x) && value_number(b, &y)) {
        struct json left = value_integer(a), right = value_integer(b);
        if (!x.is_float && !y.is_float) return integers(e, op, &left, &right, out);
        enum code rc = number_finite(e, &x);
        if (!rc) rc = number_finite(e, &y);
        return rc ? rc : floats(e, op, x.real, y.real, out);
    }
    if (op == OPERATOR_ADD && a->type == b->type && is_sequence(a)) return join(e, a, b, out);
    if (op == OPERATOR_MUL && is_sequence(a) && is_whole(b, &y)) return repeat(e, a, y.integer, out);
    if (op == OPERATOR_MUL && is_sequence(b) && is_whole(a, &x)) return repeat(e, b, x.integer, out);
    return eval_fault(e, E_INVALID, "this operator does not take %s and %s", value_type_name(a), value_type_name(b));
}

enum code number_negate(struct eval *e, const struct json *v, struct json *out)
{
    struct number n;
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value with a sign");
    if (!value_number(v, &n)) return eval_fault(e, E_INVALID, "a %s has no sign", value_type_name(v));
    const struct json zero = json_int(0), whole = value_integer(v);
    if (!n.is_float) return integers(e, OPERATOR_SUB, &zero, &whole, out);
    *out = value_float(-n.real);
    return number_finite(e, &n);
}

enum code number_to_int(struct eval *e, double d, struct json *out)
{
    struct number n = {.real = d};
    enum code rc = number_finite(e, &n);
    return rc ? rc : number_done(e, integer_of_double(e->arena, d, out));
}

// Half to even, digits < 0.
static enum code round_integer(struct eval *e, const struct json *n, int64_t digits, struct json *out)
{
    struct json ten = json_int(10), many = json_int(digits < 0 ? -digits : 0), two = json_int(2);
    struct json unit, quotient, rest, twice, odd;
    *out = json_int(0);
    if (digits < -JSON_NUMBER_DIGITS_MAX + 1) return OK;
    enum code rc = long_integers(e, OPERATOR_POW, &ten, &many, &unit);
    if (!rc) rc = number_done(e, integer_divide(e->arena, n, &unit, &quotient, &rest));
    if (!rc) rc = long_integers(e, OPERATOR_MUL, &rest, &two, &twice);
    if (!rc) rc = long_integers(e, OPERATOR_MOD, &quotient, &two, &odd);
    if (rc) return rc;
    int half = json_number_cmp(&twice, &unit);
    struct json up = json_int(half > 0 || (half == 0 && odd.integer));
    rc = integers(e, OPERATOR_ADD, &quotient, &up, &quotient);
    return rc ? rc : integers(e, OPERATOR_MUL, &quotient, &unit, out);
}

// The C library prints the exact value, rounded half to even: what Python's round does.
static enum code round_float(struct eval *e, double d, int64_t digits, struct json *out)
{
    double result = 0;
    if (digits > 300) {
        *out = value_float(d);
        return OK;
    }
    if (digits < 0) {
        double unit = pow(10, digits < -308 ? 308 : (double)-digits);
        return finite(e, rint(d / unit) * unit, out);
    }
    struct buf buf SCOPED(buf_release) = buf_of(1024);
    buf_printf(&buf, "%.*f", (int)digits, d);
    bool ok = buf_ok(&buf) && text_float(buf_str(&buf), &result);
    return ok ? finite(e, result, out) : error_nomem(e->err);
}

enum code number_round(struct eval *e, const struct json *v, int64_t digits, char method, struct json *out)
{
    struct number n;
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value to round");
    if (!value_number(v, &n)) return eval_fault(e, E_INVALID, "a %s cannot be rounded", value_type_name(v));
    if (method == 'c' && !n.is_float) {
        struct json whole = value_integer(v);
        *out = whole;
        return digits >= 0 ? OK : round_integer(e, &whole, digits, out);
    }
    enum code rc = number_finite(e, &n);
    if (rc) return rc;
    if (method == 'c') return round_float(e, n.real, digits, out);
    double unit = pow(10, (double)digits), scaled = n.real * unit;
    return finite(e, (method == 'u' ? ceil(scaled) : floor(scaled)) / unit, out);
}
