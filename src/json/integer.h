// Arithmetic on integers of any length, as Python has it. Operands are integers (json_is_integer); a result of more than
// JSON_NUMBER_DIGITS_MAX digits is E_LIMIT. The text of a result beyond int64 is in the arena: E_NOMEM.
#ifndef CAIRN_JSON_INTEGER_H
#define CAIRN_JSON_INTEGER_H

#include "json/json.h"

enum code integer_add(struct arena *arena, const struct json *a, const struct json *b, struct json *out) MUST_CHECK;
enum code integer_subtract(struct arena *arena, const struct json *a, const struct json *b,
                           struct json *out) MUST_CHECK;
enum code integer_multiply(struct arena *arena, const struct json *a, const struct json *b,
                           struct json *out) MUST_CHECK;
// The quotient is rounded down and the rest has the sign of `b`, which is not 0.
enum code integer_divide(struct arena *arena, const struct json *a, const struct json *b, struct json *quotient,
                         struct json *rest) MUST_CHECK;
enum code integer_power(struct arena *arena, const struct json *base, const struct json *exponent,
                        struct json *out) MUST_CHECK; // exponent >= 0
enum code integer_of_double(struct arena *arena, double d, struct json *out) MUST_CHECK; // finite; cut towards 0
// Digits of a radix from 2 to 36, single underscores between them. E_INVALID: others.
enum code integer_read(struct arena *arena, struct str digits, unsigned radix, bool negative,
                       struct json *out) MUST_CHECK;
// Without a sign, in a radix from 2 to 16.
void integer_write(struct buf *out, const struct json *number, unsigned radix, bool upper);
int integer_sign(const struct json *number);

#endif
