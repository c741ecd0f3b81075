// Patterns: each line is a pattern, a subject and whether it matches. Every case runs on the table and on the simulation,
// which must agree. Expected values were written by hand from ECMA-262.
#include "harness/test.h"
#include "schema/pattern.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static const struct {
    const char *pattern, *subject;
    bool matches;
} cases[] = {
    {"", "", true},
    {"", "x", true},
    {"^$", "", true},
    {"^$", "x", false},
    {"$^", "", true},
    {"abc", "xabcx", true},
    {"^abc$", "xabc", false},
    {"^a|b$", "ax", true},
    {"^a|b$", "xb", true},
    {"^(a|b)$", "ax", false},
    {"^(?:ab|cd)+$", "abcdab", true},
    {"^(?<year>[0-9]{4})$", "2026", true},
    {"^a{2}$", "aa", true},
    {"^a{2}$", "aaa", false},
    {"^a{2,}$", "aaaa", true},
    {"^a{0,2}$", "aaa", false},
    {"^a{0}$", "", true},
    {"^(a*)*$", "aaaa", true},
    {"^(a*)+b$", "aaaac", false},
    {"^a+?b??$", "aaab", true},
    {"^[^a-c]$", "d", true},
    {"^[^a-c]$", "b", false},
    {"^[]$", "a", false},
    {"^[^]$", "a", true},
    {"^[a\\-z]$", "-", true},
    {"^[a-]$", "-", true},
    {"^[-a]$", "-", true},
    {"^[\\d\\-_]+$", "12-_", true},
    {"^[\\]\\\\]$", "]", true},
    {"^[\\b]$", "\b", true},
    {"^.$", "\n", false},
    {"^.$", "\xE2\x80\xA8", false},
    {"^.$", "\xF0\x9F\x90\xB2", true},
    {"^\\u{1F432}$", "\xF0\x9F\x90\xB2", true},
    {"^\\uD83D\\uDC32$", "\xF0\x9F\x90\xB2", true},
    {"^[\xC3\xA0-\xC3\xBF]+$", "\xC3\xA9\xC3\xA8", true},
    {"^\\x41\\u0042\\t$", "AB\t", true},
    {"^\\.\\*\\/\\-$", ".*/-", true},
    {"^\\S+\\s\\S+$",
     "a\xC2\xA0"
     "b",
     true},
    {"^\\W$", "\xC3\xA9", true},
    {"\\bfoo\\b", "a foo b", true},
    {"\\bfoo\\b", "afoo b", false},
    {"\\Boo", "foo", true},
    {"^\\p{L}+$", "\xCF\x80\xE6\x97\xA5", true},
    {"^\\P{L}$", "1", true},
    {"^\\p{General_Category=Decimal_Number}$", "\xE0\xA7\xAA", true},
    {"^[\\p{L}\\d_]+$", "\xC3\xA9_1", true},
    {"(a|b)*a(a|b){12}c", "aaaaaaaaaaaaaaaaaaabbbbbbbbbbbbc", true},
    {"^[0-9a-f]{64}$", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", true},
    {"^[0-9a-f]{64}$", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg", false},
    {"^[A-Za-z_][A-Za-z0-9_-]{0,127}$", "parse-args", true},
};

static const struct pattern *compile(const char *text)
{
    struct error err = {0};
    const struct pattern *pattern = NULL;
    CHECK_OK(pattern_compile(str_from(text), &arena, &pattern, &err), &err);
    return pattern;
}

static void table_and_simulation_agree(void)
{
    size_t tables = 0;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct pattern *pattern = compile(cases[i].pattern);
        struct pattern simulated = *pattern;
        simulated.table = NULL;
        tables += pattern->table != NULL;
        struct str subject = str_from(cases[i].subject);
        if (pattern_match(pattern, subject) != cases[i].matches ||
            pattern_match(&simulated, subject) != cases[i].matches)
            test_fail(__FILE__, __LINE__, "/%s/ on \"%s\"", cases[i].pattern, cases[i].subject);
    }
    // All but those with \b or \B, and the one whose table would have thousands of states.
    CHECK_INT(tables, ARRAY_COUNT(cases) - 4);
}

static void random_patterns_agree_too(void)
{
    static const char *const atoms[] = {"a", "b", "[ab]", "[^a]", ".", "(a|b)", "(ab)", "\\w", "^", "$", "()"};
    static const char *const counts[] = {"", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"};
    uint64_t seed = 20260211;
    uint32_t matches = 0, total = 0;
    for (int round = 0; round < 3000; round++) {
        char text[256] = "", subject[16] = "";
        size_t len = 0;
        uint64_t bits = seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        int terms = 1 + (int)(bits >> 60) % 5;
        for (int i = 0; i < terms; i++) {
            bits = seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t atom = (bits >> 33) % ARRAY_COUNT(atoms);
            bool assertion = atoms[atom][0] == '^' || atoms[atom][0] == '$';
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", atoms[atom],
                                    assertion ? "" : counts[(bits >> 45) % ARRAY_COUNT(counts)],
                                    (bits >> 58) == 0 ? "|" : "");
        }
        const struct pattern *pattern = compile(text);
        struct pattern simulated = *pattern;
        simulated.table = NULL;
        for (int length = 0; length < 10; length++) {
            bits = seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            for (int i = 0; i < length; i++) subject[i] = "abc"[(bits >> (20 + 3 * i)) % 3];
            subject[length] = '\0';
            bool fast = pattern_match(pattern, str_from(subject));
            if (fast != pattern_match(&simulated, str_from(subject)))
                test_fail(__FILE__, __LINE__, "/%s/ on \"%s\"", text, subject);
            matches += fast;
            total++;
        }
        if (round % 500 == 499) arena_reset(&arena);
    }
    printf("# seed 20260211: %u of %u match\n", matches, total);
    CHECK(matches > total / 10 && matches < total);
}

static void what_is_not_regular_is_refused(void)
{
    static const struct {
        const char *pattern;
        enum code code;
    } refused[] = {
        {"(?=a)", E_UNSUPPORTED},
        {"(?!a)", E_UNSUPPORTED},
        {"(?<=a)", E_UNSUPPORTED},
        {"(?<!a)", E_UNSUPPORTED},
        {"(a)\\1", E_UNSUPPORTED},
        {"\\k<a>", E_UNSUPPORTED},
        {"\\p{Lu}", E_UNSUPPORTED},
        {"*a", E_INVALID},
        {"a**", E_INVALID},
        {"(", E_INVALID},
        {")", E_INVALID},
        {"[", E_INVALID},
        {"[z-a]", E_INVALID},
        {"a{2,1}", E_INVALID},
        {"a{", E_INVALID},
        {"a}", E_INVALID},
        {"]", E_INVALID},
        {"\\", E_INVALID},
        {"\\a", E_INVALID},
        {"\\x4", E_INVALID},
        {"\\u12", E_INVALID},
        {"\\u{110000}", E_INVALID},
        {"\\p{L", E_INVALID},
        {"(?i:a)", E_INVALID},
        {"^*", E_INVALID},
        {"a{3000}", E_LIMIT},
        {"((a{99}){99}){99}", E_LIMIT},
        {"(((((){2000}){2000}){2000}){2000})", E_LIMIT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct error err = {0};
        const struct pattern *pattern = NULL;
        enum code rc = pattern_compile(str_from(refused[i].pattern), &arena, &pattern, &err);
        if (rc != refused[i].code)
            test_fail(__FILE__, __LINE__, "/%s/: %s %s", refused[i].pattern, code_name(rc), err.message);
        CHECK(strstr(err.message, "offset"));
    }
    char deep[200];
    memset(deep, '(', 199);
    deep[199] = '\0';
    struct error err = {0};
    const struct pattern *pattern = NULL;
    CHECK_INT(pattern_compile(str_from(deep), &arena, &pattern, &err), E_LIMIT);
}

// Patterns that take exponential time elsewhere.
static void time_is_linear(void)
{
    static char subject[200001];
    memset(subject, 'a', sizeof(subject) - 1);
    static const char *const hostile[] = {"^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "\\b(a+)+c", "(.*)(.*)(.*)x$"};
    for (size_t i = 0; i < ARRAY_COUNT(hostile); i++) {
        subject[sizeof(subject) - 2] = i < 3 ? '!' : 'a';
        CHECK(!pattern_match(compile(hostile[i]), str_from(subject)));
    }
}

static void a_search_finds_the_longest_of_the_first(void)
{
    static const struct {
        const char *pattern, *subject;
        size_t from, start, end; // end SIZE_MAX: none
    } searches[] = {{"a*b", "xaab", 0, 1, 4},       {"a+", "xaaayaaaa", 0, 1, 4},   {"a+", "xaaayaaaa", 4, 5, 9},
                    {"b|abc", "zabcb", 0, 1, 4},    {"abcd|bc", "abcx", 0, 1, 3},   {"x*", "ab", 0, 0, 0},
                    {"a*b", "aaaa", 0, 0, SIZE_MAX}, {"$", "ab", 0, 2, 2},           {"^a", "aa", 1, 0, SIZE_MAX},
                    {"\\bc", "bc c", 1, 3, 4},      {"a(bc)?|bcd", "abcd", 0, 0, 3}};
    for (size_t i = 0; i < ARRAY_COUNT(searches); i++) {
        size_t start = 0, work = 0;
        size_t end = pattern_search(compile(searches[i].pattern), str_from(searches[i].subject), searches[i].from, SIZE_MAX, &start, &work);
        CHECK_INT(end, searches[i].end);
        if (end != SIZE_MAX) CHECK_INT(start, searches[i].start);
    }
}

// By count, not by time: what it cost is told.
static void a_search_is_one_walk(void)
{
    static char subject[200001];
    static const char *const hostile[] = {"a*b", "(a+)+b", "(a|aa)*c", "a*a*a*b"};
    memset(subject, 'a', sizeof(subject) - 1);
    for (size_t i = 0; i < ARRAY_COUNT(hostile); i++) {
        size_t start = 0, work = 0;
        const struct pattern *pattern = compile(hostile[i]);
        CHECK(pattern_search(pattern, str_from(subject), 0, SIZE_MAX, &start, &work) == SIZE_MAX);
        CHECK(work <= sizeof(subject) * (pattern->code_count + 1));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_search_finds_the_longest_of_the_first),
        TEST(a_search_is_one_walk),
        TEST(table_and_simulation_agree),
        TEST(random_patterns_agree_too),
        TEST(what_is_not_regular_is_refused),
        TEST(time_is_linear),
    };
    arena_init(&arena, 64 * 1024, 256 * 1024 * 1024);
    int status = test_main("schema_pattern", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&arena);
    return status;
}
