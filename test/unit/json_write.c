// The writers: escapes, the pretty form, the canonical form (RFC 8785), ceilings to the byte.
#include "harness/test.h"
#include "json/json.h"

#include <string.h>

static struct arena arena;

static struct json read_json(struct str text)
{
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(text, &json_limits_default, &arena, &value, &err), &err);
    return value;
}

static void check_canon(struct str text, struct str want)
{
    struct json value = read_json(text);
    struct buf out;
    buf_init(&out, 1 << 20);
    json_canon(&out, &value);
    CHECK(buf_ok(&out));
    CHECK_STR(buf_str(&out), want);
    buf_release(&out);
}

static void strings_escape_what_they_must(void)
{
    static const struct {
        struct str text;
        const char *want;
    } table[] = {
        {STR_INIT(""), "\"\""},
        {STR_INIT("abc"), "\"abc\""},
        {STR_INIT("12345678"), "\"12345678\""},
        {STR_INIT("123456789abcdef0123456789"), "\"123456789abcdef0123456789\""},
        {STR_INIT("\"\\/"), "\"\\\"\\\\/\""},
        {STR_INIT("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\""},
        {STR_INIT("\x01\x1f\x7f"), "\"\\u0001\\u001f\x7f\""},
        {STR_INIT("\0"), "\"\\u0000\""},
        {STR_INIT("12345678\"12345678\\12345678\n"), "\"12345678\\\"12345678\\\\12345678\\n\""},
        {STR_INIT("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {STR_INIT("\xE2\x80\xA8"), "\"\xE2\x80\xA8\""},
        {STR_INIT("<>&'"), "\"<>&'\""},
    };
    struct buf out;
    buf_init(&out, 1000);
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        buf_clear(&out);
        json_write_string(&out, table[i].text);
        CHECK_STR(buf_str(&out), str_from(table[i].want));
        CHECK_INT(out.ptr[out.len], 0);
    }
    buf_release(&out);
}

// Each byte at each place of a word, so that the fast path is tried against the plain rule.
static void every_byte_in_every_place(void)
{
    struct buf out;
    buf_init(&out, 1000);
    for (int byte = 0; byte < 128; byte++) {
        for (size_t place = 0; place < 17; place++) {
            char text[17], want[32];
            size_t len = 0;
            memset(text, 'x', sizeof(text));
            text[place] = (char)byte;
            want[len++] = '"';
            memset(want + len, 'x', place);
            len += place;
            const char *mark = byte ? strchr("\bb\tt\nn\ff\rr\"\"\\\\", byte) : NULL;
            if (mark && (byte < 0x20 || byte == '"' || byte == '\\')) {
                want[len++] = '\\';
                want[len++] = mark[1];
            } else if (byte < 0x20) {
                memcpy(want + len, "\\u00", 4);
                want[len + 4] = "01"[byte >> 4];
                want[len + 5] = "0123456789abcdef"[byte & 15];
                len += 6;
            } else {
                want[len++] = (char)byte;
            }
            memset(want + len, 'x', 16 - place);
            len += 16 - place;
            want[len++] = '"';
            buf_clear(&out);
            json_write_string(&out, (struct str){text, sizeof(text)});
            CHECK_STR(buf_str(&out), ((struct str){want, len}));
        }
    }
    buf_release(&out);
}

static void pretty_form(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json value = read_json(STR("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[],\"e\":\"x\"}"));
    struct buf out;
    buf_init(&out, 1000);
    json_write_pretty(&out, &value);
    CHECK_STR(buf_str(&out), STR("{\n"
                                 "  \"a\": [\n"
                                 "    1,\n"
                                 "    {\n"
                                 "      \"b\": null\n"
                                 "    }\n"
                                 "  ],\n"
                                 "  \"c\": {},\n"
                                 "  \"d\": [],\n"
                                 "  \"e\": \"x\"\n"
                                 "}"));
    buf_release(&out);
    arena_release(&arena);
}

static void canonical_form(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    check_canon(STR("{\"b\":1,\"a\":2,\"\":3}"), STR("{\"\":3,\"a\":2,\"b\":1}"));
    check_canon(STR("{\"a\":1,\"ab\":2,\"b\":3}"), STR("{\"a\":1,\"ab\":2,\"b\":3}"));
    check_canon(STR("[3,2,{\"z\":{\"y\":1,\"x\":2}}]"), STR("[3,2,{\"z\":{\"x\":2,\"y\":1}}]"));
    check_canon(STR("[1.10,1E2,-0,0.0,1e-7,1e21,333333333.33333329]"),
                STR("[1.1,100.0,0,0.0,1e-7,1e+21,333333333.33333329]"));
    check_canon(STR("[null,true,false,\"\\u20ac\\/\\u000f\"]"), STR("[null,true,false,\"\xE2\x82\xAC/\\u000f\"]"));
    arena_release(&arena);
}

// The example of RFC 8785 §3.2.3: by UTF-16 code units, where U+1F600 comes before U+FB33.
static void keys_sort_by_utf_16(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    check_canon(STR("{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\","
                    "\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\"1\":\"One\","
                    "\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
                    "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}"),
                STR("{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\","
                    "\"\xC3\xB6\":\"Latin Small Letter O With Diaeresis\","
                    "\"\xE2\x82\xAC\":\"Euro Sign\","
                    "\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\","
                    "\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}"));
    check_canon(STR("{\"\\uffff\":1,\"\\udbff\\udfff\":2,\"\\ud7ff\":3,\"\\ue000\":4}"),
                STR("{\"\xED\x9F\xBF\":3,\"\xF4\x8F\xBF\xBF\":2,"
                    "\"\xEE\x80\x80\":4,\"\xEF\xBF\xBF\":1}"));
    check_canon(STR("{\"x\\ud83d\\ude01\":1,\"x\\ud83d\\ude00\":2}"),
                STR("{\"x\xF0\x9F\x98\x80\":2,\"x\xF0\x9F\x98\x81\":1}"));
    arena_release(&arena);
}

static void many_keys_sort(void)
{
    static const size_t counts[] = {1, 2, 3, 31, 32, 33, 1000, 10000};
    arena_init(&arena, 4096, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        struct buf text, want, out;
        buf_init(&text, 1 << 20);
        buf_init(&want, 1 << 20);
        buf_init(&out, 1 << 20);
        for (size_t j = 0; j < counts[i]; j++) {
            // 7919 is prime and divides no count, so this visits every key once.
            size_t shuffled = (j * 7919 + 3) % counts[i];
            buf_printf(&text, "%c\"%05zu\":%zu", j ? ',' : '{', shuffled, shuffled);
            buf_printf(&want, "%c\"%05zu\":%zu", j ? ',' : '{', j, j);
        }
        buf_byte(&text, '}');
        buf_byte(&want, '}');
        struct json value = read_json(buf_str(&text));
        json_canon(&out, &value);
        CHECK_STR(buf_str(&out), buf_str(&want));
        buf_release(&text);
        buf_release(&want);
        buf_release(&out);
        arena_reset(&arena);
    }
    arena_release(&arena);
}

// With a ceiling of exactly its length each form is written; one byte less and the buf has failed,
// with a NUL where it ends.
static void ceilings_are_met_to_the_byte(void)
{
    static void (*const writers[])(struct buf *, const struct json *) = {json_write, json_canon, json_write_pretty};
    arena_init(&arena, 1024, SIZE_MAX);
    struct json value =
        read_json(STR("{\"b\\n\":[1,2.5,true,\"\\u0001x\\\"\"],\"a\":{\"\":null,\"long key, long\":[]}}"));
    for (size_t i = 0; i < ARRAY_COUNT(writers); i++) {
        struct buf out;
        buf_init(&out, 1000);
        writers[i](&out, &value);
        size_t len = out.len;
        buf_release(&out);
        for (size_t max = 0; max <= len + 1; max++) {
            buf_init(&out, max);
            writers[i](&out, &value);
            CHECK_INT(buf_ok(&out), max >= len);
            CHECK(out.len <= max);
            CHECK_INT(out.ptr[out.len], 0);
            buf_release(&out);
        }
    }
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(strings_escape_what_they_must),
        TEST(every_byte_in_every_place),
        TEST(pretty_form),
        TEST(canonical_form),
        TEST(keys_sort_by_utf_16),
        TEST(many_keys_sort),
        TEST(ceilings_are_met_to_the_byte),
    };
    return test_main("json_write", tests, ARRAY_COUNT(tests), argc, argv);
}
