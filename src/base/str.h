// A str is a borrowed slice of bytes: it owns nothing and is passed by value. It need not end in NUL.
#ifndef CAIRN_BASE_STR_H
#define CAIRN_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_INIT(literal)                                                                                              \
    {                                                                                                                  \
        (literal), sizeof(literal) - 1                                                                                 \
    }                                    // in static tables, where STR is not constant
#define STR_ARG(s) (int)(s).len, (s).ptr // for "%.*s"

struct str str_from(const char *text); // NULL gives the empty str
bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *text);
// One of these words.
#define STR_AMONG(a, ...) str_among((a), (const char *const[]){__VA_ARGS__, NULL})
bool str_among(struct str a, const char *const *words); // NULL ends them
int str_cmp(struct str a, struct str b); // bytewise, shorter first
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
bool str_like(struct str s, struct str pattern); // '*' is any text, '?' one byte
struct str str_trim(struct str s); // ASCII white space on both sides
struct str str_last_line(struct str s); // trimmed
struct str str_slice(struct str s, size_t from, size_t to);
// Index of the first `c` at or after `from`, or s.len.
size_t str_find(struct str s, char c, size_t from);
// Splits at the first `c`: returns the part before, leaves the rest (without `c`) in *rest.
struct str str_cut(struct str s, char c, struct str *rest);
// Whole string must be a base-10 integer in range.
bool str_int64(struct str s, int64_t *out);
uint64_t str_hash(struct str s);
// Edits (insert, delete, replace, swap) from a to b, at most `limit` + 1; ASCII letters of either case are the same. For
// "did you mean".
size_t str_distance(struct str a, struct str b, size_t limit);
// Bytes are well-formed UTF-8 (no surrogates, no overlong forms).
bool str_utf8(struct str s);
// Bytes of the well-formed UTF-8 character at `at` (< s.len), or 0 when it is malformed.
size_t str_utf8_size(struct str s, size_t at);
// The first `max` bytes at most, cut between characters, never inside one.
struct str str_head(struct str s, size_t max);

// ---- characters of ASCII

static inline bool char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool char_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool char_is_alnum(char c)
{
    return char_is_letter(c) || char_is_digit(c);
}

static inline bool char_is_word(char c) // of an identifier
{
    return char_is_alnum(c) || c == '_';
}

static inline char char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline int char_hex(char c) // -1: it is no digit
{
    if (char_is_digit(c)) return c - '0';
    c = char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
