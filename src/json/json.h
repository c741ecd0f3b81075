// JSON values: immutable once built, living in an arena, never freed one by one.
//
//  - A number is an integer (no point, no exponent) or a real, and exact in either case. Integers that fit int64 are
//    JSON_INT; every other number keeps its source text (JSON_NUMBER), so 1.10 stays 1.10 until someone asks for the
//    canonical form, which writes 1.1. No number goes through a double unless someone calculates with it.
//  - Objects keep insertion order; duplicate keys are an error in the reader. json_canon sorts (RFC 8785) and is the only
//    input to hashes.
//  - Values read from text carry their position (1-based line and column in bytes); built values have 0.
//  - Strings are UTF-8. The reader refuses malformed UTF-8 and lone surrogates.
// All builders return false or a code on memory failure; struct json is copied by value (it is a small handle).
#ifndef CAIRN_JSON_JSON_H
#define CAIRN_JSON_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

// Ceilings whatever the limits say. Writers, json_copy and json_equal go no deeper: they fail (the buf, false, false).
#define JSON_DEPTH_MAX 512
#define JSON_NUMBER_DIGITS_MAX 4300 // significant ones: as many as Python reads and writes
#define JSON_NUMBER_SIZE_MAX 4400   // of the text; the canonical form of what is read fits too
#define JSON_EXPONENT_MAX 999999999 // of the first significant digit, either way

enum json_type { JSON_NULL = 1, JSON_BOOL, JSON_INT, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
#define JSON_FAILED 0xFF // in place of a type: a value that could not be made (json/make.h)

struct json_member;

// Lines and columns are kept in 24 bits each, so that a position costs nothing beside the type: exact for every text of up
// to 16 MiB (documents have at most 8); further on they stay at JSON_PLACE_MAX.
#define JSON_PLACE_MAX 0xFFFFFFu

struct json {
    uint8_t type; // enum json_type
    bool boolean; // JSON_BOOL
    uint64_t column : 24;
    uint64_t line : 24;
    union {
        int64_t integer; // JSON_INT
        struct str text; // JSON_STRING: decoded; JSON_NUMBER: lexeme
        struct {
            uint32_t count, capacity;
            union {
                struct json *items;          // JSON_ARRAY
                struct json_member *members; // JSON_OBJECT
            };
        };
    };
};

struct json_member {
    struct str key;
    uint32_t line, column; // of the key
    struct json value;
};

_Static_assert(sizeof(struct json) == 24, "a value is three words");

// Gives a value its position; 0 and 0 when it has none.
static inline void json_set_place(struct json *value, size_t line, size_t column)
{
    value->line = (line < JSON_PLACE_MAX ? line : JSON_PLACE_MAX) & JSON_PLACE_MAX;
    value->column = (column < JSON_PLACE_MAX ? column : JSON_PLACE_MAX) & JSON_PLACE_MAX;
}

struct json_limits {
    size_t size_max;    // of the text
    uint32_t depth_max; // nesting
    uint32_t node_count_max;
    size_t string_size_max;
    uint32_t key_count_max; // per object
};
extern const struct json_limits json_limits_default; // reliability §4.4: what strangers send
extern const struct json_limits json_limits_record;  // what this engine wrote: a result, and what is around it
extern const struct json_limits json_limits_result;  // what tasks gave, on its way and from the store: rows, pages, blobs

// The whole text must be one value with optional white space around it. Strings without escapes borrow `text`, which must
// therefore live as long as the value. E_INVALID (position in err), E_LIMIT, E_NOMEM. `limits` may be NULL: the defaults.
// A number may be beyond the range of a double; "-0" is the integer 0.
enum code json_parse(struct str text, const struct json_limits *limits, struct arena *arena, struct json *out,
                     struct error *err) MUST_CHECK;

struct json json_null(void);
struct json json_bool(bool value);
struct json json_int(int64_t value);
struct json json_string(struct str text);   // borrows
struct json json_number(struct str lexeme); // borrows; must be a valid JSON number
struct json json_array(void);
struct json json_object(void);
// An object with room for `capacity` members, so that building it allocates once.
bool json_object_with(struct arena *arena, uint32_t capacity, struct json *out) MUST_CHECK;
// Appends: the caller sees to it that the key is not there yet (builds with CAIRN_VERIFY check it in small objects).
bool json_put(struct arena *arena, struct json *object, struct str key, struct json value) MUST_CHECK; // key borrowed
bool json_push(struct arena *arena, struct json *array, struct json value) MUST_CHECK;

const struct json *json_get(const struct json *object, struct str key); // NULL: absent or not an object
const struct json *json_key(const struct json *object, const char *key);
// Dotted path of keys and array indexes: "a.b.0.c". NULL when any part is missing.
const struct json *json_at(const struct json *value, struct str path);
bool json_is(const struct json *value, enum json_type type); // false for NULL
#ifdef __clang_analyzer__                                    // as in base/error.h: it does not see into the function
#define json_is(value, type) ((value) != NULL && json_is(value, type))
#endif
struct str json_text(const struct json *value); // of a string; empty otherwise
int64_t json_integer(const struct json *value, int64_t otherwise);
bool json_true(const struct json *value); // the value true, and nothing else
bool json_is_number(const struct json *value);
bool json_is_integer(const struct json *value);              // a number without point and exponent, of any length
bool json_double(const struct json *value, double *out);     // INT or NUMBER; false beyond the range of a double
int json_number_cmp(const struct json *a, const struct json *b); // both are numbers; exact
bool json_equal(const struct json *a, const struct json *b); // numbers by value, objects regardless of order
const char *json_type_name(enum json_type type);
bool json_copy(struct arena *arena, const struct json *value, struct json *out) MUST_CHECK; // deep
bool json_keep(struct arena *arena, struct json *value) MUST_CHECK; // becomes its copy; a value of type 0 stays

void json_write(struct buf *out, const struct json *value);        // compact, order and lexemes kept
void json_write_pretty(struct buf *out, const struct json *value); // two blanks, one member a line
void json_write_string(struct buf *out, struct str text);          // quoted and escaped as json_canon does
// RFC 8785 where that loses nothing, with exact numbers (docs/format/events.md). Members already in order cost no sort.
void json_canon(struct buf *out, const struct json *value);
// Shortest text that reads back as `value`, as ECMAScript prints it. Needs 32 bytes; returns the length. Finite only.
size_t json_double_format(double value, char out[32]);
// The same as a real, which is its canonical form: 1.0 and -0.0, where ECMAScript prints 1 and 0.
size_t json_real_format(double value, char out[32]);
// All digits of a double from 2^53 on, which is an integer. Returns the length.
#define JSON_WHOLE_SIZE 320
size_t json_whole_format(double value, char out[JSON_WHOLE_SIZE]);

#endif
