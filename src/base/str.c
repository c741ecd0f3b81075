#include "base/str.h"

#include "base/invariant.h"

#include <string.h>

struct str str_from(const char *text)
{
    return text ? (struct str){text, strlen(text)} : (struct str){"", 0};
}

bool str_eq(struct str a, struct str b)
{
    // memcmp of NULL is undefined even for no bytes, hence the test for zero.
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_from(text));
}

bool str_among(struct str a, const char *const *words)
{
    while (*words && !str_is(a, *words)) words++;
    return *words;
}

int str_cmp(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    if (order) return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq((struct str){s.ptr, prefix.len}, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    if (s.len < suffix.len) return false;
    return str_eq(str_slice(s, s.len - suffix.len, s.len), suffix);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1])) s.len--;
    return s;
}

struct str str_last_line(struct str s)
{
    s = str_trim(s);
    size_t from = s.len;
    while (from > 0 && s.ptr[from - 1] != '\n') from--;
    return str_slice(s, from, s.len);
}

struct str str_slice(struct str s, size_t from, size_t to)
{
    if (to > s.len) to = s.len;
    if (from > to) from = to;
    return (struct str){from ? s.ptr + from : s.ptr, to - from};
}

size_t str_find(struct str s, char c, size_t from)
{
    if (from >= s.len) return s.len;
    const char *hit = memchr(s.ptr + from, c, s.len - from);
    return hit ? (size_t)(hit - s.ptr) : s.len;
}

struct str str_cut(struct str s, char c, struct str *rest)
{
    size_t at = str_find(s, c, 0);
    *rest = str_slice(s, at < s.len ? at + 1 : at, s.len);
    return str_slice(s, 0, at);
}

bool str_int64(struct str s, int64_t *out)
{
    bool negative = s.len && s.ptr[0] == '-';
    if (negative) s = str_slice(s, 1, s.len);
    if (s.len == 0) return false;
    int64_t value = 0; // kept negative: INT64_MIN has no positive twin
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_sub_overflow(value, s.ptr[i] - '0', &value)) return false;
    }
    if (!negative && value == INT64_MIN) return false;
    *out = negative ? value : -value;
    return true;
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
    return h;
}

uint64_t str_hash(struct str s)
{
    uint64_t hash = 0x9E3779B97F4A7C15u ^ (uint64_t)s.len;
    size_t i = 0;
    for (; s.len - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, s.ptr + i, sizeof(word));
        hash = mix(hash ^ word) * 0xFF51AFD7ED558CCDu;
    }
    uint64_t tail = 0;
    if (i < s.len) memcpy(&tail, s.ptr + i, s.len - i);
    return mix(mix(hash ^ tail) + 0xC4CEB9FE1A85EC53u);
}

// Longer names are not worth a suggestion; they only compare equal or different.
enum { DISTANCE_LEN_MAX = 128 };

static bool same_letter(char a, char b)
{
    bool letter = char_is_letter(a);
    return a == b || (letter && (a ^ b) == 0x20);
}

size_t str_distance(struct str a, struct str b, size_t limit)
{
    if (str_eq(a, b)) return 0;
    size_t gap = a.len > b.len ? a.len - b.len : b.len - a.len;
    if (gap > limit || a.len > DISTANCE_LEN_MAX || b.len > DISTANCE_LEN_MAX) return limit + 1;

    // Optimal string alignment: a swap looks two rows back, so three rows go round. Cells further than `limit` from the
    // diagonal are over it anyway: only the band between is computed, with a cell of `far` on either side.
    size_t rows[3][DISTANCE_LEN_MAX + 2];
    const size_t far = limit + 1;
    for (size_t j = 0; j <= b.len; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        size_t first = i > limit ? i - limit : 1, last = b.len - i < limit || i > b.len ? b.len : i + limit;
        row[first - 1] = first > 1 ? far : i;
        row[last + 1] = far;
        size_t best = first > 1 ? SIZE_MAX : i;
        for (size_t j = first; j <= last; j++) { // row[first - 1 .. last + 1] of each row is set before it is read
            // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): as said
            size_t cost = above[j - 1] + !same_letter(a.ptr[i - 1], b.ptr[j - 1]);
            // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): as said
            if (above[j] + 1 < cost) cost = above[j] + 1;
            if (row[j - 1] + 1 < cost) cost = row[j - 1] + 1;
            bool swapped =
                i > 1 && j > 1 && same_letter(a.ptr[i - 1], b.ptr[j - 2]) && same_letter(a.ptr[i - 2], b.ptr[j - 1]);
            if (swapped && two_above[j - 2] + 1 < cost) cost = two_above[j - 2] + 1;
            row[j] = cost;
            if (cost < best) best = cost;
        }
        // A swap can get at most one below the row's best, hence the slack.
        if (best > limit + 1) return limit + 1;
    }
    size_t distance = rows[a.len % 3][b.len];
    return distance > limit ? limit + 1 : distance;
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

struct str str_head(struct str s, size_t max)
{
    size_t len = s.len < max ? s.len : max;
    while (len > 0 && len < s.len && is_continuation((unsigned char)s.ptr[len])) len--;
    return str_slice(s, 0, len);
}

size_t str_utf8_size(struct str s, size_t at)
{
    INVARIANT(at < s.len);
    const unsigned char *p = (const unsigned char *)s.ptr + at;
    size_t left = s.len - at;
    unsigned char lead = p[0];
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    if (left < 2 || !is_continuation(p[1])) return 0;
    if (lead < 0xE0) return 2;
    // The second byte rules out overlong forms (E0, F0), surrogates (ED) and beyond U+10FFFF (F4).
    if ((lead == 0xE0 && p[1] < 0xA0) || (lead == 0xED && p[1] > 0x9F)) return 0;
    if ((lead == 0xF0 && p[1] < 0x90) || (lead == 0xF4 && p[1] > 0x8F)) return 0;
    if (left < 3 || !is_continuation(p[2])) return 0;
    if (lead < 0xF0) return 3;
    return left >= 4 && is_continuation(p[3]) ? 4 : 0;
}

bool str_utf8(struct str s)
{
    size_t i = 0;
    while (i < s.len) {
        uint64_t word;
        if (s.len - i >= sizeof(word)) {
            memcpy(&word, s.ptr + i, sizeof(word));
            if ((word & 0x8080808080808080u) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        size_t size = str_utf8_size(s, i);
        if (size == 0) return false;
        i += size;
    }
    return true;
}

bool str_like(struct str text, struct str glob)
{
    size_t t = 0, g = 0, star = SIZE_MAX, mark = 0;
    while (t < text.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            mark = t;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == text.ptr[t])) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') g++;
    return g == glob.len;
}
