// TOML, as config files are written in it.
#include "doc/doc.h"
#include "harness/test.h"

static struct arena arena;

static const char *as_json(const char *toml)
{
    static struct buf out;
    static bool ready;
    struct json value;
    struct error err = {0};
    if (!ready) buf_init(&out, 1 << 20);
    ready = true;
    buf_clear(&out);
    if (toml_parse(str_from(toml), &arena, &value, &err)) {
        buf_printf(&out, "%u:%u %s", err.line, err.column, err.message);
        return out.ptr;
    }
    json_write(&out, &value);
    return out.ptr;
}

static void toml_reads_every_kind_of_value_and_table(void)
{
    static const struct {
        const char *toml, *json;
    } cases[] = {
        {"", "{}"},
        {"# only a comment", "{}"},
        {"a = 1\nb = \"x\"\r\nc = true # no\nd = false\n", "{\"a\":1,\"b\":\"x\",\"c\":true,\"d\":false}"},
        {"a = 'C:\\x'\nb = \"t\\tq\\\"\\u00e9\\U0001F600\"", "{\"a\":\"C:\\\\x\",\"b\":\"t\\tq\\\"é😀\"}"},
        {"a = \"\"\"\none\ntwo \\\n   three\"\"\"", "{\"a\":\"one\\ntwo three\"}"},
        {"a = '''\nraw \\n'''", "{\"a\":\"raw \\\\n\"}"},
        {"a = \"\"\"x\"\"\"\"\"", "{\"a\":\"x\\\"\\\"\"}"},
        {"a = -17\nb = 1_000\nc = 1.5e3\nd = +2", "{\"a\":-17,\"b\":1000,\"c\":1.5e3,\"d\":2}"},
        {"a = [1, 2, # two\n 3,\n]", "{\"a\":[1,2,3]}"},
        {"a = {b = 1, \"c d\" = {e = 'f'}}", "{\"a\":{\"b\":1,\"c d\":{\"e\":\"f\"}}}"},
        {"a.b.c = 1\na.b.d = 2", "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}"},
        {"[a]\nx = 1\n[a.b]\ny = 2\n[c]\n", "{\"a\":{\"x\":1,\"b\":{\"y\":2}},\"c\":{}}"},
        {"[[t]]\nn = 1\n[[t]]\nn = 2\n[t.u]\nz = 3", "{\"t\":[{\"n\":1},{\"n\":2,\"u\":{\"z\":3}}]}"},
        {"\xEF\xBB\xBF"
         "a = 1",
         "{\"a\":1}"},
    };
    arena_init(&arena, 4096, (size_t)16 << 20);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) CHECK_TEXT(as_json(cases[i].toml), cases[i].json);
    arena_release(&arena);
}

static void toml_places_on_long_lines_are_exact(void)
{
    struct json value;
    struct error err = {0};
    struct buf text;
    arena_init(&arena, 4096, (size_t)16 << 20);
    buf_init(&text, 1 << 20);
    buf_text(&text, "a = {b = '");
    for (int i = 0; i < 70000; i++) buf_byte(&text, 'x');
    buf_text(&text, "', c = 1}");
    CHECK_OK(toml_parse(buf_str(&text), &arena, &value, &err), &err);
    const struct json_member *c = &value.members[0].value.members[1];
    CHECK_INT(c->column, 70014);
    CHECK_INT(c->value.column, 70018);
    buf_release(&text);
    arena_release(&arena);
}

static void toml_names_the_place_of_a_fault(void)
{
    static const struct {
        const char *toml, *place;
    } cases[] = {
        {"a = 1\nb = ", "2:5 "},  {"a 1", "1:3 "},
        {"a = \"x", "1:7 "},      {"a = 1 b = 2", "1:7 "},
        {"a = 1\na = 2", "2:3 "}, {"[a\nb = 1", "1:3 "},
        {"a = 1\n[a]", "2:4 "},   {"a = 2026-02-11", "1:5 "},
        {"a = [1 2]", "1:8 "},    {"a = {b = 1", "1:11 "},
        {"a = \"\\q\"", "1:7 "},  {"a = nope", "1:5 "},
        {"= 1", "1:1 "},          {"a = \"\\uD800\"", "1:12 "},
        {"a = \"x\ny\"", "1:7 "},
    };
    arena_init(&arena, 4096, (size_t)16 << 20);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (!str_starts(str_from(as_json(cases[i].toml)), str_from(cases[i].place)))
            test_fail(__FILE__, __LINE__, "%s gave %s", cases[i].toml, as_json(cases[i].toml));
    arena_release(&arena);
}

static void toml_is_bounded_in_depth_and_size(void)
{
    struct buf deep;
    struct json value;
    struct error err = {0};
    arena_init(&arena, 4096, (size_t)16 << 20);
    buf_init(&deep, (size_t)4 << 20);
    buf_text(&deep, "a = ");
    for (int i = 0; i < 100; i++) buf_byte(&deep, '[');
    CHECK(toml_parse(buf_str(&deep), &arena, &value, &err) == E_INVALID);
    buf_clear(&deep);
    while (deep.len <= (1 << 20)) buf_text(&deep, "# ............................................\n");
    CHECK(toml_parse(buf_str(&deep), &arena, &value, &err) == E_LIMIT);
    CHECK(toml_parse(STR("a = \"\xff\""), &arena, &value, &err) == E_INVALID);
    buf_release(&deep);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(toml_reads_every_kind_of_value_and_table),
        TEST(toml_places_on_long_lines_are_exact),
        TEST(toml_names_the_place_of_a_fault),
        TEST(toml_is_bounded_in_depth_and_size),
    };
    return test_main("doc_toml", tests, ARRAY_COUNT(tests), argc, argv);
}
