// Numbers as exact decimals: nothing here goes through a double.
#ifndef CAIRN_JSON_DECIMAL_H
#define CAIRN_JSON_DECIMAL_H

#include "json/json.h"

struct decimal {          // 0.d1d2d3… × 10^exponent, d1 and the last digit not 0
    struct str digits;    // may hold the point
    int64_t exponent;     // of a number within the limits: at most JSON_EXPONENT_MAX + 1 from 0
    uint32_t digit_count; // without the point; 0 for zero
    bool negative;        // never of zero
};

#define DECIMAL_SCRATCH 24

// `scratch` backs the digits of a JSON_INT; the text of other numbers is borrowed.
struct decimal decimal_of(const struct json *number, char scratch[DECIMAL_SCRATCH]);
struct decimal decimal_text(struct str lexeme); // of a valid JSON number
int decimal_cmp(const struct decimal *a, const struct decimal *b);
bool decimal_integral(const struct decimal *d);

struct divisor { // value × 10^exponent
    uint64_t value;
    int64_t exponent;
};
bool divisor_of(const struct decimal *d, struct divisor *out); // false: zero, negative or above 18 digits
bool decimal_divides(const struct divisor *divisor, const struct decimal *d);

#endif
