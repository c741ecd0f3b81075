// The reader: what is JSON and what is not, positions, every limit at n-1, n and n+1, and memory
// running out at every allocation.
#include "harness/test.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static enum code parse(struct str text, const struct json_limits *limits, struct json *out, struct error *err)
{
    *err = (struct error){0};
    return json_parse(text, limits, &arena, out, err);
}

// The compact text of what was read, or the code's name.
static struct str read_back(struct str text)
{
    struct json value;
    struct error err;
    struct buf out;
    enum code rc = parse(text, &json_limits_default, &value, &err);
    if (rc) return str_from(code_name(rc));
    buf_init(&out, 1 << 20);
    json_write(&out, &value);
    CHECK(buf_ok(&out));
    struct str copy = arena_copy(&arena, buf_str(&out));
    CHECK(copy.ptr != NULL);
    buf_release(&out);
    return copy;
}

static void start(void)
{
    arena_init(&arena, 4096, SIZE_MAX);
}

static void good_texts(void)
{
    static const struct {
        const char *text, *want;
    } table[] = {
        {"null", "null"},
        {" true\n", "true"},
        {"\t\r\n false ", "false"},
        {"0", "0"},
        {"-0", "0"},
        {"-1", "-1"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9223372036854775808"},
        {"1.10", "1.10"},
        {"1E5", "1E5"},
        {"1e-400", "1e-400"},
        {"-0.0e+0", "-0.0e+0"},
        {"\"\"", "\"\""},
        {"\"abc\"", "\"abc\""},
        {"\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "\"a\\\"b\\\\c/d\\b\\f\\n\\r\\t\""},
        {"\"\\u0041\\u00e9\\u20AC\"", "\"A\xC3\xA9\xE2\x82\xAC\""},
        {"\"\\ud83d\\ude00\"", "\"\xF0\x9F\x98\x80\""},
        {"\"\\uDBFF\\uDFFF\"", "\"\xF4\x8F\xBF\xBF\""},
        {"\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\x7F\""},
        {"\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 and a long ascii tail\"",
         "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 and a long ascii tail\""},
        {"[]", "[]"},
        {"[ ]", "[]"},
        {"[1 , 2,3 ]", "[1,2,3]"},
        {"{}", "{}"},
        {"{ }", "{}"},
        {"{ \"a\" : 1 , \"b\":[ {} ] }", "{\"a\":1,\"b\":[{}]}"},
        {"[[],[[]],{\"\":{}}]", "[[],[[]],{\"\":{}}]"},
        {"{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2}"},
    };
    start();
    for (size_t i = 0; i < ARRAY_COUNT(table); i++)
        CHECK_STR(read_back(str_from(table[i].text)), str_from(table[i].want));
    arena_release(&arena);
}

struct bad {
    struct str text;
    uint32_t line, column;
    const char *message;
};

static void check_bad(const struct bad *bad)
{
    struct json value;
    struct error err;
    // A copy of exactly its size, so that the sanitizer sees any byte read behind it.
    char *copy = malloc(bad->text.len + 1);
    CHECK(copy != NULL);
    memcpy(copy, bad->text.ptr, bad->text.len);
    char *exact = realloc(copy, bad->text.len ? bad->text.len : 1);
    CHECK(exact != NULL);
    struct str text = {exact, bad->text.len};
    enum code rc = parse(text, &json_limits_default, &value, &err);
    free(exact);
    if (rc != E_INVALID || err.line != bad->line || err.column != bad->column)
        test_fail(__FILE__, __LINE__, "%.*s: %s at %u:%u: %s", STR_ARG(bad->text), code_name(rc), err.line, err.column,
                  err.message);
    CHECK_TEXT(err.message, bad->message);
}

static void check_all_bad(const struct bad *table, size_t count)
{
    start();
    for (size_t i = 0; i < count; i++) check_bad(&table[i]);
    arena_release(&arena);
}

static void bad_structure(void)
{
    static const struct bad table[] = {
        {STR_INIT(""), 1, 1, "expected a value, but the text ends"},
        {STR_INIT(" \n "), 2, 2, "expected a value, but the text ends"},
        {STR_INIT("\xEF\xBB\xBF{}"), 1, 1, "the text begins with a byte order mark; remove it"},
        {STR_INIT("\xFF\xFE[]"), 1, 1, "expected a value, found byte 0xFF"},
        {STR_INIT("nul"), 1, 1, "expected a value, found 'n'"},
        {STR_INIT("True"), 1, 1, "expected a value, found 'T'"},
        {STR_INIT("nullx"), 1, 5, "expected nothing after the value, found 'x'"},
        {STR_INIT("1 2"), 1, 3, "expected nothing after the value, found '2'"},
        {STR_INIT("[1]\n]"), 2, 1, "expected nothing after the value, found ']'"},
        {STR_INIT("1\0"), 1, 2, "expected nothing after the value, found byte 0x00"},
        {STR_INIT("\x0C"
                  "1"),
         1, 1, "expected a value, found byte 0x0C"},
        {STR_INIT("["), 1, 2, "expected a value, but the text ends"},
        {STR_INIT("[1"), 1, 3, "expected ',' or ']', but the text ends"},
        {STR_INIT("[1,"), 1, 4, "expected a value, but the text ends"},
        {STR_INIT("[1,]"), 1, 4, "expected a value, found ']'"},
        {STR_INIT("[,1]"), 1, 2, "expected a value, found ','"},
        {STR_INIT("[1}"), 1, 3, "expected ',' or ']', found '}'"},
        {STR_INIT("[1 2]"), 1, 4, "expected ',' or ']', found '2'"},
        {STR_INIT("{"), 1, 2, "expected a key in double quotes, but the text ends"},
        {STR_INIT("{a:1}"), 1, 2, "expected a key in double quotes, found 'a'"},
        {STR_INIT("{'a':1}"), 1, 2, "expected a key in double quotes, found '''"},
        {STR_INIT("{\"a\"}"), 1, 5, "expected ':' after a key, found '}'"},
        {STR_INIT("{\"a\" 1}"), 1, 6, "expected ':' after a key, found '1'"},
        {STR_INIT("{\"a\":}"), 1, 6, "expected a value, found '}'"},
        {STR_INIT("{\"a\":1"), 1, 7, "expected ',' or '}', but the text ends"},
        {STR_INIT("{\"a\":1]"), 1, 7, "expected ',' or '}', found ']'"},
        {STR_INIT("{\"a\":1,}"), 1, 8, "expected a key in double quotes, found '}'"},
        {STR_INIT("{,}"), 1, 2, "expected a key in double quotes, found ','"},
        {STR_INIT("/* */ 1"), 1, 1, "expected a value, found '/'"},
        {STR_INIT("{\n \"a\": 1,\n \"a\": 2\n}"), 3, 2, "duplicate key \"a\""},
        {STR_INIT("{\"a\":1,\"\\u0061\":2}"), 1, 8, "duplicate key \"a\""},
        {STR_INIT("{\"\":{},\"\":1}"), 1, 8, "duplicate key \"\""},
    };
    check_all_bad(table, ARRAY_COUNT(table));
}

static void bad_scalars(void)
{
    static const struct bad table[] = {
        {STR_INIT("-"), 1, 1, "malformed number"},
        {STR_INIT("-x"), 1, 1, "malformed number"},
        {STR_INIT("+1"), 1, 1, "expected a value, found '+'"},
        {STR_INIT(".5"), 1, 1, "expected a value, found '.'"},
        {STR_INIT("01"), 1, 2, "expected nothing after the value, found '1'"},
        {STR_INIT("-01"), 1, 3, "expected nothing after the value, found '1'"},
        {STR_INIT("1."), 1, 1, "malformed number"},
        {STR_INIT("1.e5"), 1, 1, "malformed number"},
        {STR_INIT("1e"), 1, 1, "malformed number"},
        {STR_INIT("1e+"), 1, 1, "malformed number"},
        {STR_INIT("0x10"), 1, 2, "expected nothing after the value, found 'x'"},
        {STR_INIT("NaN"), 1, 1, "expected a value, found 'N'"},
        {STR_INIT("-Infinity"), 1, 1, "malformed number"},
        {STR_INIT("\""), 1, 2, "the text ends inside a string"},
        {STR_INIT("\"abc"), 1, 5, "the text ends inside a string"},
        {STR_INIT("\"abc\\"), 1, 5, "the text ends inside a string"},
        {STR_INIT("\"abc\\\""), 1, 7, "the text ends inside a string"},
        {STR_INIT("\"a\nb\""), 1, 3, "control character in a string; write it as an escape"},
        {STR_INIT("\"a\0b\""), 1, 3, "control character in a string; write it as an escape"},
        {STR_INIT("\"a\\\tb\""), 1, 4, "control character in a string; write it as an escape"},
        {STR_INIT("\"\\x41\""), 1, 2, "unknown escape in a string"},
        {STR_INIT("\"\\'\""), 1, 2, "unknown escape in a string"},
        {STR_INIT("\"\\\xC3\xA9\""), 1, 2, "unknown escape in a string"},
        {STR_INIT("\"\\u12\""), 1, 2, "\\u must be followed by four hex digits"},
        {STR_INIT("\"\\u12G4\""), 1, 2, "\\u must be followed by four hex digits"},
        {STR_INIT("\"\\ud800\""), 1, 2, "half of a surrogate pair in a string"},
        {STR_INIT("\"x\\udc00\""), 1, 3, "half of a surrogate pair in a string"},
        {STR_INIT("\"\\ud800\\ud800\""), 1, 2, "half of a surrogate pair in a string"},
        {STR_INIT("\"\\ud800\\n\""), 1, 2, "half of a surrogate pair in a string"},
        {STR_INIT("\"\\ud800\\uzzzz\""), 1, 2, "half of a surrogate pair in a string"},
        {STR_INIT("\"\x80\""), 1, 2, "malformed UTF-8"},
        {STR_INIT("\"12345678\xC3\""), 1, 10, "malformed UTF-8"},
        {STR_INIT("\"\xC0\x80\""), 1, 2, "malformed UTF-8"},
        {STR_INIT("\"\xED\xA0\x80\""), 1, 2, "malformed UTF-8"},
        {STR_INIT("\"\xF4\x90\x80\x80\""), 1, 2, "malformed UTF-8"},
        {STR_INIT("{\"\xFF\":1}"), 1, 3, "malformed UTF-8"},
        {STR_INIT("[\n  \"\\ud800\"]"), 2, 4, "half of a surrogate pair in a string"},
    };
    check_all_bad(table, ARRAY_COUNT(table));
}

static void values_know_their_position(void)
{
    struct json value;
    struct error err;
    start();
    struct str text = STR("{\n  \"a\": [1,\n   true],\r\n\t\"b\" : {\"c\": null}\n}");
    CHECK_OK(parse(text, &json_limits_default, &value, &err), &err);
    CHECK_INT(value.line, 1);
    CHECK_INT(value.column, 1);
    CHECK_INT(value.members[0].line, 2);
    CHECK_INT(value.members[0].column, 3);
    CHECK_INT(value.members[0].value.line, 2);
    CHECK_INT(value.members[0].value.column, 8);
    CHECK_INT(json_at(&value, STR("a.1"))->line, 3);
    CHECK_INT(json_at(&value, STR("a.1"))->column, 4);
    CHECK_INT(value.members[1].line, 4);
    CHECK_INT(value.members[1].column, 2);
    CHECK_INT(json_at(&value, STR("b.c"))->column, 14);
    arena_release(&arena);
}

// `text` has `line_count` empty lines and then `blank_count` blanks before its first value.
static void check_far_place(size_t line_count, size_t blank_count)
{
    struct json value;
    struct error err;
    start();
    struct json_limits limits = json_limits_default;
    limits.size_max = (size_t)64 << 20;
    struct buf text;
    buf_init(&text, (size_t)64 << 20);
    CHECK(buf_reserve(&text, line_count + blank_count + 16) != NULL);
    for (size_t i = 0; i < line_count; i++) buf_byte(&text, '\n');
    for (size_t i = 0; i < blank_count; i++) buf_byte(&text, ' ');
    buf_text(&text, "[{\"a\":1}]");
    CHECK_OK(parse(buf_str(&text), &limits, &value, &err), &err);
    CHECK_INT(value.line, line_count < JSON_PLACE_MAX ? line_count + 1 : JSON_PLACE_MAX);
    CHECK_INT(value.column, blank_count < JSON_PLACE_MAX ? blank_count + 1 : JSON_PLACE_MAX);
    CHECK_INT(value.items[0].members[0].line, line_count + 1);
    CHECK_INT(value.items[0].members[0].column, blank_count + 3);
    buf_byte(&text, 'x');
    CHECK_INT(parse(buf_str(&text), &limits, &value, &err), E_INVALID);
    CHECK_INT(err.line, line_count + 1);
    CHECK_INT(err.column, blank_count + 10);
    buf_release(&text);
    arena_release(&arena);
}

// Every place of a text of the size that documents may have is exact; a value costs no more for it.
static void far_places_are_exact(void)
{
    check_far_place(0, 65533);
    check_far_place(0, 65534);
    check_far_place(70000, 70000);
    check_far_place(0, json_limits_default.size_max - 16);
    check_far_place(json_limits_default.size_max - 16, 0);
}

static void places_beyond_documents_saturate(void)
{
    check_far_place(0, (size_t)17 << 20);
    check_far_place((size_t)17 << 20, 0);
}

static void plain_strings_are_borrowed(void)
{
    struct json value;
    struct error err;
    start();
    struct str text = STR("[\"plain\",\"esc\\n\",1.5]");
    CHECK_OK(parse(text, &json_limits_default, &value, &err), &err);
    CHECK(value.items[0].text.ptr == text.ptr + 2);
    CHECK(value.items[2].text.ptr == text.ptr + 17);
    CHECK_STR(value.items[1].text, STR("esc\n"));
    arena_release(&arena);
}

static void check_limit(const struct json_limits *limits, const struct buf *text, bool within)
{
    struct json value;
    struct error err;
    enum code rc = parse(buf_str(text), limits, &value, &err);
    if (rc != (within ? OK : E_LIMIT))
        test_fail(__FILE__, __LINE__, "%.*s: %s: %s", STR_ARG(str_slice(buf_str(text), 0, 60)), code_name(rc),
                  err.message);
    arena_reset(&arena);
}

static void repeat(struct buf *buf, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) buf_text(buf, text);
}

static void size_limit(void)
{
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 20);
    limits.size_max = 10;
    for (size_t n = 9; n <= 11; n++) {
        buf_clear(&text);
        repeat(&text, " ", n - 1);
        buf_byte(&text, '1');
        check_limit(&limits, &text, n <= 10);
    }
    buf_release(&text);
    arena_release(&arena);
}

static void depth_limit(void)
{
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 20);
    for (size_t n = 63; n <= 65; n++) {
        buf_clear(&text);
        repeat(&text, "[", n);
        repeat(&text, "]", n);
        check_limit(&limits, &text, n <= 64);
        buf_clear(&text);
        repeat(&text, "{\"a\":", n);
        buf_byte(&text, '1');
        repeat(&text, "}", n);
        check_limit(&limits, &text, n <= 64);
    }
    limits.depth_max = UINT32_MAX;
    for (size_t n = JSON_DEPTH_MAX - 1; n <= JSON_DEPTH_MAX + 1; n++) {
        buf_clear(&text);
        repeat(&text, "[", n);
        repeat(&text, "]", n);
        check_limit(&limits, &text, n <= JSON_DEPTH_MAX);
    }
    limits.depth_max = 0;
    buf_clear(&text);
    buf_text(&text, "[]");
    check_limit(&limits, &text, false);
    buf_clear(&text);
    buf_text(&text, "1");
    check_limit(&limits, &text, true);
    buf_release(&text);
    arena_release(&arena);
}

static void node_limit(void)
{
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 22);
    for (uint32_t n = 99999; n <= 100001; n++) { // values, the array included
        buf_clear(&text);
        buf_text(&text, "[0");
        repeat(&text, ",0", n - 2);
        buf_byte(&text, ']');
        check_limit(&limits, &text, n <= 100000);
    }
    limits.node_count_max = 3;
    buf_clear(&text);
    buf_text(&text, "{\"a\":[{}]}");
    check_limit(&limits, &text, true);
    limits.node_count_max = 2;
    check_limit(&limits, &text, false);
    buf_release(&text);
    arena_release(&arena);
}

static void string_limit(void)
{
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 22);
    for (size_t n = (1 << 20) - 1; n <= (1 << 20) + 1; n++) {
        buf_clear(&text);
        buf_byte(&text, '"');
        repeat(&text, "x", n);
        buf_byte(&text, '"');
        check_limit(&limits, &text, n <= 1 << 20);
    }
    limits.string_size_max = 4;
    for (size_t n = 3; n <= 5; n++) {
        buf_clear(&text);
        buf_byte(&text, '"');
        repeat(&text, "\\n", n); // decoded size counts
        buf_byte(&text, '"');
        check_limit(&limits, &text, n <= 4);
        buf_clear(&text);
        buf_text(&text, "{\"");
        repeat(&text, "k", n);
        buf_text(&text, "\":0}");
        check_limit(&limits, &text, n <= 4);
    }
    buf_release(&text);
    arena_release(&arena);
}

static void write_keys(struct buf *text, size_t count, bool backwards)
{
    buf_clear(text);
    buf_byte(text, '{');
    for (size_t i = 0; i < count; i++) {
        size_t key = backwards ? count - i : i;
        buf_printf(text, "%s\"k%05zu\":0", i ? "," : "", key);
    }
    buf_byte(text, '}');
}

static void key_limit(void)
{
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 22);
    for (size_t n = 9999; n <= 10001; n++) {
        write_keys(&text, n, true);
        check_limit(&limits, &text, n <= 10000);
    }
    limits.key_count_max = 1;
    buf_clear(&text);
    buf_text(&text, "{\"a\":{\"b\":1}}"); // per object, not in all
    check_limit(&limits, &text, true);
    buf_release(&text);
    arena_release(&arena);
}

static void number_limit(void)
{
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 24);
    for (size_t n = JSON_NUMBER_DIGITS_MAX - 1; n <= JSON_NUMBER_DIGITS_MAX + 1; n++) {
        static const char *const forms[][2] = {{"", ""}, {"-", ""}, {"0.000", "00"}, {"-", "e-999990000"}, {"", "E9"}};
        for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
            buf_clear(&text);
            buf_text(&text, forms[i][0]);
            repeat(&text, "7", n);
            buf_text(&text, forms[i][1]);
            check_limit(&limits, &text, n <= JSON_NUMBER_DIGITS_MAX);
        }
    }
    buf_clear(&text);
    buf_text(&text, "0."); // few digits, in much text
    repeat(&text, "0", JSON_NUMBER_SIZE_MAX - 3);
    buf_text(&text, "7");
    check_limit(&limits, &text, true);
    buf_text(&text, "0");
    check_limit(&limits, &text, false);
    buf_clear(&text);
    repeat(&text, "9", 7 << 20);
    check_limit(&limits, &text, false);
    buf_release(&text);
    arena_release(&arena);
}

static void exponent_limit(void)
{
    static const struct {
        const char *text;
        bool fine;
    } table[] = {
        {"1e400", true},          {"-1E+999", true},          {"1e999999999", true},   {"1e1000000000", false},
        {"9.9e999999999", true},  {"10e999999999", false},    {"1e-999999999", true},  {"0.1e-999999999", false},
        {"0.1e1000000000", true}, {"0e99999999999999", true}, {"1e-1000000000", false}, {"1e99999999999999999999", false},
    };
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 64);
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        buf_clear(&text);
        buf_text(&text, table[i].text);
        check_limit(&limits, &text, table[i].fine);
    }
    buf_release(&text);
    arena_release(&arena);
}

static void hundred_thousand_deep_is_refused(void)
{
    static const char *const openings[] = {"[", "{\"a\":", "[{\"a\":"};
    struct json_limits limits = json_limits_default;
    struct buf text;
    start();
    buf_init(&text, 1 << 23);
    for (size_t i = 0; i < ARRAY_COUNT(openings); i++) {
        buf_clear(&text);
        repeat(&text, openings[i], 100000);
        limits.depth_max = 64;
        check_limit(&limits, &text, false);
        limits.depth_max = UINT32_MAX;
        check_limit(&limits, &text, false);
    }
    buf_release(&text);
    arena_release(&arena);
}

static void duplicates_are_found_among_many(void)
{
    static const size_t counts[] = {2, 15, 16, 17, 31, 32, 33, 1000, 10000};
    struct json value;
    struct error err;
    struct buf text;
    start();
    buf_init(&text, 1 << 22);
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            write_keys(&text, counts[i], backwards);
            CHECK_OK(parse(buf_str(&text), &json_limits_default, &value, &err), &err);
            CHECK_INT(value.count, counts[i]);
            // The last key becomes the first of all.
            size_t last = text.len - 1 - strlen("\"k00000\":0");
            memcpy(text.ptr + last, text.ptr + 1, strlen("\"k00000\""));
            CHECK_INT(parse(buf_str(&text), &json_limits_default, &value, &err), E_INVALID);
            CHECK(strstr(err.message, "duplicate key") != NULL);
            CHECK_INT(err.column, last + 1);
            arena_reset(&arena);
        }
    }
    buf_release(&text);
    arena_release(&arena);
}

static void long_duplicate_key_is_cut_between_characters(void)
{
    struct json value;
    struct error err;
    struct buf text;
    start();
    buf_init(&text, 1000);
    for (size_t shift = 0; shift < 4; shift++) {
        buf_clear(&text);
        for (int i = 0; i < 2; i++) {
            buf_text(&text, i ? ",\"" : "{\"");
            repeat(&text, "x", shift);
            repeat(&text, "\xF0\x9F\x98\x80", 30);
            buf_text(&text, "\":0");
        }
        buf_byte(&text, '}');
        CHECK_INT(parse(buf_str(&text), NULL, &value, &err), E_INVALID);
        CHECK(str_utf8(str_from(err.message)));
    }
    buf_release(&text);
    arena_release(&arena);
}

// No allocation may be forgotten: each fails in turn, and the reader says so and nothing else.
static void allocation_sweep(void)
{
    struct buf text;
    struct json value;
    struct error err;
    buf_init(&text, 1 << 20);
    buf_text(&text, "{\"a\\n\":[1,2,{\"x\":\"\\u20ac\"}],\"b\":{},\"c\":[");
    repeat(&text, "[\"q\\t\"],", 60);
    buf_text(&text, "{}]}");
    for (int64_t nth = 1;; nth++) {
        start();
        arena.fail_in = nth;
        enum code rc = parse(buf_str(&text), &json_limits_default, &value, &err);
        arena_release(&arena);
        if (rc == OK) break;
        CHECK_INT(rc, E_NOMEM);
        CHECK_INT(err.code, E_NOMEM);
        CHECK(nth < 200);
    }
    buf_release(&text);
}

static void arena_limit_is_an_error(void)
{
    struct json value;
    struct error err = {0};
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_byte(&text, '[');
    repeat(&text, "0,", 1000);
    buf_text(&text, "0]");
    arena_init(&arena, 512, 8192);
    CHECK_INT(parse(buf_str(&text), &json_limits_default, &value, &err), E_NOMEM);
    arena_release(&arena);
    buf_release(&text);
}

static void null_limits_mean_the_defaults(void)
{
    struct json value;
    struct error err;
    start();
    CHECK_OK(parse(STR("[1]"), NULL, &value, &err), &err);
    CHECK_INT(parse((struct str){NULL, 0}, NULL, &value, &err), E_INVALID);
    CHECK_INT(json_parse(STR("["), NULL, &arena, &value, NULL), E_INVALID);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(good_texts),
        TEST(bad_structure),
        TEST(bad_scalars),
        TEST(values_know_their_position),
        TEST(far_places_are_exact),
        TEST(places_beyond_documents_saturate),
        TEST(plain_strings_are_borrowed),
        TEST(size_limit),
        TEST(depth_limit),
        TEST(node_limit),
        TEST(string_limit),
        TEST(key_limit),
        TEST(number_limit),
        TEST(exponent_limit),
        TEST(hundred_thousand_deep_is_refused),
        TEST(duplicates_are_found_among_many),
        TEST(long_duplicate_key_is_cut_between_characters),
        TEST(allocation_sweep),
        TEST(arena_limit_is_an_error),
        TEST(null_limits_mean_the_defaults),
    };
    return test_main("json_read", tests, ARRAY_COUNT(tests), argc, argv);
}
