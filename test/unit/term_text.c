// Text on its way to a terminal: what is escaped, how wide it is, where it is cut; YAML and what must be quoted in it.
#include "harness/test.h"

#include "author/author.h"
#include "term/term.h"
#include "term/text.h"

static struct buf out;

static struct str safe(const char *text, size_t len)
{
    buf_clear(&out);
    text_safe(&out, (struct str){text, len});
    return buf_str(&out);
}
#define SAFE(literal) safe(literal, sizeof(literal) - 1)

static void control_characters_are_shown(void)
{
    buf_init(&out, 4096);
    CHECK_STR(SAFE("plain text, ünïcödé ✓"), STR("plain text, ünïcödé ✓"));
    CHECK_STR(SAFE("a\x1b[31mb"), STR("a\\x1b[31mb"));
    CHECK_STR(SAFE("a\nb\tc\rd"), STR("a\\nb\\tc\\rd"));
    CHECK_STR(SAFE("\x00\x07\x7f"), STR("\\x00\\x07\\x7f"));
    CHECK_STR(SAFE("\xc2\x9b"
                   "31m"),
              STR("\\x9b31m"));
    CHECK_STR(SAFE("a\xe2\x80\xae"
                   "b"),
              STR("a\\u202eb"));
    CHECK_STR(SAFE("\xff\xfe"), STR("\\xff\\xfe"));
    CHECK_STR(SAFE("\xe2\x9c"), STR("\\xe2\\x9c"));
    buf_release(&out);
}

static void lines_keep_their_ends(void)
{
    buf_init(&out, 4096);
    text_safe_lines(&out, STR("a\n\tb\x1b"));
    CHECK_STR(buf_str(&out), STR("a\n\tb\\x1b"));
    buf_release(&out);
}

static void json_stays_json(void)
{
    buf_init(&out, 4096);
    text_safe_json(&out, STR("{\n \"a\": \"\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81ü\"\n}"));
    CHECK_STR(buf_str(&out), STR("{\n \"a\": \"\\u007f\\u009b\\u202e\\udb40\\udc41ü\"\n}"));
    buf_release(&out);
}

static void width_counts_columns(void)
{
    CHECK_INT(text_width(STR("abc")), 3);
    CHECK_INT(text_width(STR("✓ü")), 2);
    CHECK_INT(text_width(STR("日本")), 4);
    CHECK_INT(text_width(STR("e\xcc\x81")), 1);
    CHECK_INT(text_width(STR("\x1b[1;31mred\x1b[0m")), 3);
}

static void cutting_never_splits(void)
{
    buf_init(&out, 4096);
    text_cut(&out, STR("abcdef"), 6, true);
    CHECK_STR(buf_str(&out), STR("abcdef"));
    buf_clear(&out);
    text_cut(&out, STR("abcdefg"), 6, true);
    CHECK_STR(buf_str(&out), STR("abcde…"));
    buf_clear(&out);
    text_cut(&out, STR("abcdefg"), 6, false);
    CHECK_STR(buf_str(&out), STR("abcde~"));
    buf_clear(&out);
    text_cut(&out, STR("日本語"), 4, true);
    CHECK_STR(buf_str(&out), STR("日…"));
    buf_clear(&out);
    text_cut(&out, STR("\x1b[32mgreen\x1b[0m"), 3, true);
    CHECK_STR(buf_str(&out), STR("\x1b[32mgr…\x1b[0m"));
    buf_clear(&out);
    text_cut(&out, STR("abc"), 0, true);
    CHECK_STR(buf_str(&out), STR(""));
    buf_release(&out);
}

static void wrapping_keeps_words(void)
{
    buf_init(&out, 4096);
    text_wrap(&out, STR("one two three\n\nfour"), 2, 10);
    CHECK_STR(buf_str(&out), STR("  one two\n  three\n\n  four\n"));
    buf_release(&out);
}

static void yaml_quotes_what_could_be_misread(void)
{
    static const char *const quoted[] = {"",   "no", "Yes", "null", "1.10", "-x", "a: b",
                                         "a#", "#a", " a",  "true", "[a",   "1"};
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(quoted); i++) {
        struct json value = json_string(str_from(quoted[i]));
        buf_clear(&out);
        yaml_write(&out, &value);
        CHECK(out.ptr[0] == '"');
    }
    struct json plain = json_string(STR("e2e-joins"));
    buf_clear(&out);
    yaml_write(&out, &plain);
    CHECK_STR(buf_str(&out), STR("e2e-joins\n"));
    buf_release(&out);
}

static void yaml_nests(void)
{
    struct arena arena;
    struct json value;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    buf_init(&out, 4096);
    enum code rc =
        json_parse(STR("{\"a\":[1,{\"b\":null,\"c\":[[2],[]]}],\"d\":{}}"), &json_limits_default, &arena, &value, &err);
    CHECK_OK(rc, &err);
    yaml_write(&out, &value);
    CHECK_STR(buf_str(&out), STR("a:\n  - 1\n  - b: null\n    c:\n      - - 2\n      - []\nd: {}\n"));
    buf_release(&out);
    arena_release(&arena);
}

// A script is read as lines; what a reader of YAML would change is quoted, and odd characters by their number.
static void yaml_of_several_lines(void)
{
    static const char *const cases[][2] = {
        {"{\"a\":[\"x\\n\\n y\"]}", "a:\n  - |-\n    x\n\n     y\n"},
        {"{\"a\":\"x\\ny\\n\"}", "a: |\n  x\n  y\n"},
        {"{\"a\":\"x\\n\"}", "a: \"x\\n\"\n"},
        {"{\"a\":\"x\\ny\\n\\n\"}", "a: \"x\\ny\\n\\n\"\n"},
        {"{\"a\":\" x\\ny\"}", "a: \" x\\ny\"\n"},
        {"{\"a\":\"x\\u0085\\ny\\u2028\"}", "a: \"x\\u0085\\ny\\u2028\"\n"},
    };
    struct arena arena;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct json value;
        CHECK_OK(json_parse(str_from(cases[i][0]), &json_limits_default, &arena, &value, &err), &err);
        buf_clear(&out);
        yaml_write(&out, &value);
        CHECK_STR(buf_str(&out), str_from(cases[i][1]));
    }
    buf_release(&out);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(control_characters_are_shown),
        TEST(lines_keep_their_ends),
        TEST(json_stays_json),
        TEST(width_counts_columns),
        TEST(cutting_never_splits),
        TEST(wrapping_keeps_words),
        TEST(yaml_quotes_what_could_be_misread),
        TEST(yaml_nests),
        TEST(yaml_of_several_lines),
    };
    return test_main("term_text", tests, ARRAY_COUNT(tests), argc, argv);
}
