// Arithmetic as Python does it, with integers of 64 bits: what does not fit is an error, never a wrong number. Results that
// are not finite are errors too, because no document can hold them.
#include "template/internal.h"

#include <math.h>

static enum code finite(struct eval *e, double d, struct json *out)
{
    if (!isfinite(d)) return eval_fault(e, E_LIMIT, "the result is not a finite number");
    *out = value_float(d);
    return OK;
}

static enum code overflow(struct eval *e)
{
    return eval_fault(e, E_LIMIT, "an integer beyond 64 bits");
}

static enum code by_zero(struct eval *e)
{
    return eval_fault(e, E_INVALID, "division by zero");
}

static enum code integer_power(struct eval *e, int64_t base, int64_t exponent, struct json *out)
{
    int64_t result = 1;
    while (exponent) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return overflow(e);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return overflow(e);
    }
    *out = json_int(result);
    return OK;
}

static enum code integers(struct eval *e, enum operator op, int64_t a, int64_t b, struct json *out)
{
    int64_t result = 0;
    bool over = false;
    switch ((int)op) {
    case OPERATOR_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case OPERATOR_SUB:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case OPERATOR_MUL:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case OPERATOR_DIV:
        return b ? finite(e, (double)a / (double)b, out) : by_zero(e);
    case OPERATOR_FLOOR_DIV:
    case OPERATOR_MOD:
        if (!b) return by_zero(e);
        if (b == -1) { // INT64_MIN / -1 traps
            over = op == OPERATOR_FLOOR_DIV && __builtin_sub_overflow(0, a, &result);
            break;
        }
        result = op == OPERATOR_MOD ? a % b : a / b;
        if (a % b && (a < 0) != (b < 0)) result += op == OPERATOR_MOD ? b : -1;
        break;
    default: // OPERATOR_POW
        if (b >= 0) return integer_power(e, a, b, out);
        return a ? finite(e, pow((double)a, (double)b), out) : by_zero(e);
    }
    *out = json_int(result);
    return over ? overflow(e) : OK;
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
        if ((x.is_large && !y.is_float) || (y.is_large && !x.is_float)) return overflow(e);
        if (x.is_float || y.is_float) return floats(e, op, x.real, y.real, out);
        return integers(e, op, x.integer, y.integer, out);
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
    if (n.is_large || (!n.is_float && n.integer == INT64_MIN)) return overflow(e);
    *out = n.is_float ? value_float(-n.real) : json_int(-n.integer);
    return OK;
}

enum code number_to_int(struct eval *e, double d, struct json *out)
{
    if (!(d > -9223372036854775808.0 && d < 9223372036854775808.0)) return overflow(e);
    *out = json_int((int64_t)d);
    return OK;
}

// Half to even, digits < 0.
static enum code round_integer(struct eval *e, int64_t n, int64_t digits, struct json *out)
{
    struct json power;
    *out = json_int(0);
    if (digits < -18) return OK;
    enum code rc = integer_power(e, 10, -digits, &power);
    if (rc) return rc;
    int64_t unit = power.integer, rest = n % unit, base = n - rest;
    int64_t magnitude = rest < 0 ? -rest : rest;
    bool odd = (base / unit) % 2 != 0, up = magnitude > unit - magnitude || (magnitude == unit - magnitude && odd);
    if (up && __builtin_add_overflow(base, n < 0 ? -unit : unit, &base)) return overflow(e);
    *out = json_int(base);
    return OK;
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
    struct buf buf;
    buf_init(&buf, 1024);
    buf_printf(&buf, "%.*f", (int)digits, d);
    bool ok = buf_ok(&buf) && text_float(buf_str(&buf), &result);
    buf_release(&buf);
    return ok ? finite(e, result, out) : error_nomem(e->err);
}

enum code number_round(struct eval *e, const struct json *v, int64_t digits, char method, struct json *out)
{
    struct number n;
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value to round");
    if (!value_number(v, &n)) return eval_fault(e, E_INVALID, "a %s cannot be rounded", value_type_name(v));
    if (n.is_large) return overflow(e);
    if (method == 'c') {
        if (n.is_float) return round_float(e, n.real, digits, out);
        *out = json_int(n.integer);
        return digits >= 0 ? OK : round_integer(e, n.integer, digits, out);
    }
    double unit = pow(10, (double)digits), scaled = n.real * unit;
    return finite(e, (method == 'u' ? ceil(scaled) : floor(scaled)) / unit, out);
}
