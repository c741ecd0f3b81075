// Slices: comparing, cutting, reading integers, UTF-8, hashing and the distance of names.
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static void from_null_is_empty(void)
{
    CHECK_INT(str_from(NULL).len, 0);
    CHECK(str_from(NULL).ptr != NULL);
    CHECK_INT(str_from("abc").len, 3);
}

static void equality_needs_length_and_bytes(void)
{
    struct str nothing = {NULL, 0};
    CHECK(str_eq(nothing, STR("")));
    CHECK(str_eq(STR("a\0b"), STR("a\0b")));
    CHECK(!str_eq(STR("a\0b"), STR("a\0c")));
    CHECK(!str_eq(STR("ab"), STR("abc")));
    CHECK(str_is(STR("ab"), "ab"));
    CHECK(!str_is(STR("ab"), "a"));
}

static void compare_is_bytewise_and_shorter_first(void)
{
    CHECK(str_cmp(STR(""), STR("")) == 0);
    CHECK(str_cmp(STR("a"), STR("ab")) < 0);
    CHECK(str_cmp(STR("ab"), STR("a")) > 0);
    CHECK(str_cmp(STR("b"), STR("ab")) > 0);
    CHECK(str_cmp(STR("a"), STR("\xC3")) < 0);
    CHECK(str_cmp((struct str){NULL, 0}, STR("a")) < 0);
}

static void prefix_and_suffix(void)
{
    CHECK(str_starts(STR("workflow"), STR("work")));
    CHECK(str_starts(STR("work"), STR("")));
    CHECK(!str_starts(STR("wor"), STR("work")));
    CHECK(str_ends(STR("a.json"), STR(".json")));
    CHECK(str_ends(STR("a"), STR("")));
    CHECK(!str_ends(STR("json"), STR(".json")));
    CHECK(!str_ends(STR("a.jsox"), STR(".json")));
}

static void trim_takes_ascii_space_only(void)
{
    CHECK_STR(str_trim(STR(" \t\r\n\v\fa b\n ")), STR("a b"));
    CHECK_STR(str_trim(STR("   ")), STR(""));
    CHECK_STR(str_trim(STR("")), STR(""));
    CHECK_STR(str_trim(STR("\xC2\xA0x")), STR("\xC2\xA0x"));
}

static void slice_clamps(void)
{
    CHECK_STR(str_slice(STR("abcdef"), 1, 3), STR("bc"));
    CHECK_STR(str_slice(STR("abc"), 1, 99), STR("bc"));
    CHECK_STR(str_slice(STR("abc"), 5, 9), STR(""));
    CHECK_STR(str_slice(STR("abc"), 2, 1), STR(""));
    CHECK_INT(str_slice((struct str){NULL, 0}, 3, 9).len, 0);
}

static void find_and_cut(void)
{
    struct str rest;
    CHECK_INT(str_find(STR("a.b.c"), '.', 0), 1);
    CHECK_INT(str_find(STR("a.b.c"), '.', 2), 3);
    CHECK_INT(str_find(STR("a.b.c"), '.', 4), 5);
    CHECK_INT(str_find(STR("abc"), '.', 99), 3);
    CHECK_STR(str_cut(STR("a=b=c"), '=', &rest), STR("a"));
    CHECK_STR(rest, STR("b=c"));
    CHECK_STR(str_cut(STR("abc"), '=', &rest), STR("abc"));
    CHECK_STR(rest, STR(""));
    CHECK_STR(str_cut(STR("abc="), '=', &rest), STR("abc"));
    CHECK_STR(rest, STR(""));
    CHECK_STR(str_cut(STR("=x"), '=', &rest), STR(""));
    CHECK_STR(rest, STR("x"));
}

static void integers(void)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } table[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"007", true, 7},
        {"42", true, 42},
        {"-42", true, -42},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x10", false, 0},
        {"1/", false, 0},
        {"1:", false, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        int64_t value = 12345;
        CHECK_INT(str_int64(str_from(table[i].text), &value), table[i].ok);
        CHECK_INT(value, table[i].ok ? table[i].value : 12345);
    }
}

static void hash_depends_on_every_byte(void)
{
    char text[40];
    memset(text, 'a', sizeof(text));
    for (size_t len = 0; len <= sizeof(text); len++) {
        struct str s = {text, len};
        uint64_t hash = str_hash(s);
        CHECK(hash == str_hash(s));
        for (size_t i = 0; i < len; i++) {
            text[i] = 'b';
            CHECK(str_hash(s) != hash);
            text[i] = 'a';
        }
        if (len) CHECK(str_hash((struct str){text, len - 1}) != hash);
    }
}

// Numbered names are what we hash most; they should fill a table evenly.
static void hash_spreads_numbered_names(void)
{
    enum { BUCKETS = 256, NAMES = 256 * 64 };
    size_t low[BUCKETS] = {0}, high[BUCKETS] = {0};
    for (size_t i = 0; i < NAMES; i++) {
        struct buf name;
        buf_init(&name, 64);
        buf_printf(&name, "step-%zu", i);
        uint64_t hash = str_hash(buf_str(&name));
        low[hash % BUCKETS]++;
        high[hash >> 56]++;
        buf_release(&name);
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        CHECK(low[i] > 24 && low[i] < 128);
        CHECK(high[i] > 24 && high[i] < 128);
    }
}

static void heads_are_cut_between_characters(void)
{
    const struct str s = STR("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t max = 0; max < ARRAY_COUNT(want); max++) {
        struct str head = str_head(s, max);
        CHECK_INT(head.len, want[max]);
        CHECK(head.ptr == s.ptr);
    }
    CHECK_INT(str_head((struct str){0}, 5).len, 0);
}

static void distances(void)
{
    static const struct {
        const char *a, *b;
        size_t limit, want;
    } table[] = {
        {"", "", 2, 0},
        {"retry", "retry", 0, 0},
        {"retry", "rety", 2, 1},
        {"retry", "rretry", 2, 1},
        {"retry", "retri", 2, 1},
        {"retry", "rtery", 2, 1},
        {"ab", "ba", 2, 1},
        {"abcd", "badc", 2, 2},
        {"kitten", "sitting", 3, 3},
        {"kitten", "sitting", 2, 3},
        {"kitten", "sitting", 1, 2},
        {"abc", "xyz", 2, 3},
        {"abc", "xyz", 9, 3},
        {"a", "abcdef", 2, 3},
        {"", "abc", 3, 3},
        {"abc", "", 3, 3},
        {"abc", "x", 0, 1},
        {"Retry", "rETRY", 0, 0},
        {"BUILD", "bulid", 2, 1},
        {"a-b", "a\rb", 2, 1},
        {"@", "`", 2, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct str a = str_from(table[i].a), b = str_from(table[i].b);
        CHECK_INT(str_distance(a, b, table[i].limit), table[i].want);
        CHECK_INT(str_distance(b, a, table[i].limit), table[i].want);
    }
}

// The whole matrix, as in the book.
static size_t plain_distance(struct str a, struct str b)
{
    size_t cells[12][12];
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t j = 0; j <= b.len; j++) {
            if (i == 0 || j == 0) {
                cells[i][j] = i + j;
                continue;
            }
            size_t cost = cells[i - 1][j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            if (cells[i - 1][j] + 1 < cost) cost = cells[i - 1][j] + 1;
            if (cells[i][j - 1] + 1 < cost) cost = cells[i][j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1];
            if (swapped && cells[i - 2][j - 2] + 1 < cost) cost = cells[i - 2][j - 2] + 1;
            cells[i][j] = cost;
        }
    }
    return cells[a.len][b.len];
}

static void distances_within_any_limit_are_exact(void)
{
    uint32_t random = 7;
    for (int round = 0; round < 20000; round++) {
        char text[2][11];
        struct str names[2];
        for (int k = 0; k < 2; k++) {
            random = random * 1664525u + 1013904223u;
            names[k] = (struct str){text[k], (random >> 16) % 11};
            for (size_t i = 0; i < names[k].len; i++) {
                random = random * 1664525u + 1013904223u;
                text[k][i] = (char)('a' + (random >> 16) % 3);
            }
        }
        size_t want = plain_distance(names[0], names[1]), limit = (size_t)(round % 12);
        CHECK_INT(str_distance(names[0], names[1], limit), want > limit ? limit + 1 : want);
    }
}

static void distance_of_long_names_is_all_or_nothing(void)
{
    char a[300], b[300];
    memset(a, 'x', sizeof(a));
    memset(b, 'x', sizeof(b));
    b[0] = 'y';
    CHECK_INT(str_distance((struct str){a, 128}, (struct str){b, 128}, 5), 1);
    CHECK_INT(str_distance((struct str){a, 129}, (struct str){b, 129}, 5), 6);
    CHECK_INT(str_distance((struct str){a, 300}, (struct str){a, 300}, 5), 0);
}

static void utf8(void)
{
    static const struct {
        struct str text;
        bool ok;
    } table[] = {
        {STR_INIT(""), true},
        {STR_INIT("plain ascii, longer than a word"), true},
        {STR_INIT("\0"), true},
        {STR_INIT("\x7F"), true},
        {STR_INIT("\x80"), false},
        {STR_INIT("\xBF"), false},
        {STR_INIT("\xC0\x80"), false}, // overlong NUL
        {STR_INIT("\xC1\xBF"), false},
        {STR_INIT("\xC2\x80"), true},
        {STR_INIT("\xC2"), false},
        {STR_INIT("\xC2\x7F"), false},
        {STR_INIT("\xC2\xC0"), false},
        {STR_INIT("\xDF\xBF"), true},
        {STR_INIT("\xE0\x80\x80"), false},
        {STR_INIT("\xE0\x9F\xBF"), false},
        {STR_INIT("\xE0\xA0\x80"), true},
        {STR_INIT("\xE0\xA0"), false},
        {STR_INIT("\xED\x9F\xBF"), true},
        {STR_INIT("\xED\xA0\x80"), false}, // U+D800
        {STR_INIT("\xED\xBF\xBF"), false},
        {STR_INIT("\xEE\x80\x80"), true},
        {STR_INIT("\xEF\xBF\xBF"), true},
        {STR_INIT("\xF0\x80\x80\x80"), false},
        {STR_INIT("\xF0\x8F\xBF\xBF"), false},
        {STR_INIT("\xF0\x90\x80\x80"), true},
        {STR_INIT("\xF0\x90\x80"), false},
        {STR_INIT("\xF4\x8F\xBF\xBF"), true},
        {STR_INIT("\xF4\x90\x80\x80"), false}, // beyond U+10FFFF
        {STR_INIT("\xF5\x80\x80\x80"), false},
        {STR_INIT("\xFE"), false},
        {STR_INIT("\xFF"), false},
        {STR_INIT("1234567\xC3\xBC"
                  "12345678"),
         true},
        {STR_INIT("12345678\xC3"), false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) CHECK_INT(str_utf8(table[i].text), table[i].ok);
    CHECK_INT(str_utf8_size(STR("a\xE2\x82\xAC"), 0), 1);
    CHECK_INT(str_utf8_size(STR("a\xE2\x82\xAC"), 1), 3);
    CHECK_INT(str_utf8_size(STR("a\xE2\x82\xAC"), 2), 0);
    CHECK_INT(str_utf8_size(STR("\xF0\x9F\x98\x80"), 0), 4);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(from_null_is_empty),
        TEST(equality_needs_length_and_bytes),
        TEST(compare_is_bytewise_and_shorter_first),
        TEST(prefix_and_suffix),
        TEST(trim_takes_ascii_space_only),
        TEST(slice_clamps),
        TEST(find_and_cut),
        TEST(integers),
        TEST(hash_depends_on_every_byte),
        TEST(hash_spreads_numbered_names),
        TEST(heads_are_cut_between_characters),
        TEST(distances),
        TEST(distances_within_any_limit_are_exact),
        TEST(distance_of_long_names_is_all_or_nothing),
        TEST(utf8),
    };
    return test_main("base_str", tests, ARRAY_COUNT(tests), argc, argv);
}
