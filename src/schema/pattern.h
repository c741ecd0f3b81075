// Patterns: the regular part of ECMA-262 regular expressions in Unicode mode, matched in linear time.
//
//  - No backtracking: a pattern becomes a Thompson automaton over code points and, when that stays small, a table-driven
//    deterministic one. Time is linear in the subject whatever the pattern.
//  - What is not regular (back references, look-around) or not known is refused when compiling, with its place.
//  - Immutable after pattern_compile; matching allocates nothing.
#ifndef CAIRN_SCHEMA_PATTERN_H
#define CAIRN_SCHEMA_PATTERN_H

#include "base/arena.h"
#include "base/error.h"

enum { PATTERN_CODE_MAX = 4096, CODE_POINT_MAX = 0x10FFFF };

struct range {
    uint32_t first, last;
};

struct range_set { // sorted, without overlaps
    const struct range *ranges;
    size_t count;
};

enum pattern_op {
    OP_SET = 1, // one code point of sets[x], then on to the next instruction
    OP_SPLIT,   // x and y
    OP_JUMP,    // x
    OP_START,   // assertions: go on when they hold
    OP_END,
    OP_WORD_EDGE,
    OP_NOT_WORD_EDGE,
    OP_MATCH,
};

struct pattern_code {
    uint8_t op;
    uint16_t x, y;
};

// next[state * class_count + class]; state 0 is dead, state 1 is where a subject starts.
struct pattern_table {
    const uint32_t *next;   // [state * class_count + class] is the next state, times class_count
    const uint8_t *accepts; // per state: enum pattern_accept
    bool early;             // some state accepts before the end
    uint16_t class_count;
    uint8_t ascii[128];         // code point -> class
    const uint32_t *cuts;       // ascending; interval i is [cuts[i], cuts[i + 1])
    const uint8_t *cut_classes; // interval -> class
    size_t cut_count;
};

enum pattern_accept { ACCEPT_NOW = 1, ACCEPT_AT_END = 2 };

struct pattern {
    struct str text;
    const struct pattern_code *code;
    uint32_t code_count;
    const struct range_set *sets;
    uint32_t set_count;
    bool has_word_edge;
    const struct pattern_table *table; // NULL: simulate
};

// E_INVALID, E_UNSUPPORTED (not regular), E_LIMIT, E_NOMEM. `text` is borrowed.
enum code pattern_compile(struct str text, struct arena *arena, const struct pattern **out,
                          struct error *err) MUST_CHECK;
// Is there a match anywhere in `subject`?
bool pattern_match(const struct pattern *pattern, struct str subject);
// End of the longest of the matches that begin first, from byte `from` on, and where it begins; SIZE_MAX: there is none. One walk, whatever
// the pattern: *work grows by what it cost, and a walk that has cost more than `most` ends without a match.
size_t pattern_search(const struct pattern *pattern, struct str subject, size_t from, size_t most, size_t *start,
                      size_t *work);

// The table of a compiled automaton; *out stays NULL when it would be too large.
enum code pattern_table_build(const struct pattern *pattern, struct arena *arena,
                              const struct pattern_table **out) MUST_CHECK;

// Code point at *at, which moves on. A malformed byte counts as U+FFFD.
uint32_t pattern_decode(struct str text, size_t *at);

void range_sort(struct range *ranges, size_t count); // by first

// Unicode general categories.
extern const struct range_set unicode_letter;        // L
extern const struct range_set unicode_decimal_digit; // Nd

#endif
