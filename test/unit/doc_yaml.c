// YAML to JSON by the core schema of YAML 1.2, what is refused and where, and the limits at their edges.
#include "doc/doc.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct diagnostics diagnostics;

static enum code read_with(struct str text, const struct doc_limits *limits, struct json *out)
{
    arena_release(&arena);
    arena_init(&arena, 4096, 64 * 1024 * 1024);
    diagnostics_init(&diagnostics, &arena);
    return doc_tree(text, STR("t.yaml"), limits, &arena, out, &diagnostics);
}

static void check_json(const char *yaml, const char *json)
{
    struct json value;
    enum code rc = read_with(str_from(yaml), NULL, &value);
    if (rc)
        test_fail(__FILE__, __LINE__, "%s: %s: %s", yaml, code_name(rc),
                  diagnostics.count ? diagnostics.items[0].message.ptr : "");
    struct buf out;
    buf_init(&out, 1 << 20);
    json_write(&out, &value);
    if (!str_is(buf_str(&out), json)) test_fail(__FILE__, __LINE__, "%s: got %s, want %s", yaml, out.ptr, json);
    buf_release(&out);
}

static void check_refused_bytes(struct str yaml, const char *id, uint32_t line, uint32_t column)
{
    struct json value;
    enum code rc = read_with(yaml, NULL, &value);
    if (rc != E_INVALID || diagnostics.count == 0) test_fail(__FILE__, __LINE__, "%.*s: accepted", STR_ARG(yaml));
    const struct diagnostic *d = &diagnostics.items[0];
    if (strcmp(d->id, id) != 0 || d->line != line || d->column != column)
        test_fail(__FILE__, __LINE__, "%.*s: got %s at %u:%u (%s), want %s at %u:%u", STR_ARG(yaml), d->id, d->line,
                  d->column, d->message.ptr, id, line, column);
}

static void check_refused(const char *yaml, const char *id, uint32_t line, uint32_t column)
{
    check_refused_bytes(str_from(yaml), id, line, column);
}

static void nulls_and_booleans(void)
{
    check_json("- ~\n- null\n- Null\n- NULL\n-\n- nUll\n", "[null,null,null,null,null,\"nUll\"]");
    check_json("- true\n- True\n- TRUE\n- false\n- False\n- FALSE\n", "[true,true,true,false,false,false]");
    check_json("- yes\n- no\n- on\n- off\n- y\n- n\n- tRue\n", "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"tRue\"]");
}

static void integers(void)
{
    check_json("- 0\n- 12\n- -12\n- +12\n- 0012\n- -0\n", "[0,12,-12,12,12,0]");
    check_json("- 0o17\n- 0x1F\n- 0xff\n- 017\n", "[15,31,255,17]");
    check_json("- 0o8\n- 0x\n- 0xg\n- -0x1\n- 1_000\n- 12e\n- 1:30\n",
               "[\"0o8\",\"0x\",\"0xg\",\"-0x1\",\"1_000\",\"12e\",\"1:30\"]");
    check_json("- 9223372036854775807\n- -9223372036854775808\n- 9223372036854775808\n",
               "[9223372036854775807,-9223372036854775808,9223372036854775808]");
}

static void floats_become_json_numbers(void)
{
    check_json("- 1.10\n- .5\n- 5.\n- -.5\n- +1.5\n- 01.5\n- 1e3\n- 1.e3\n- 1E-2\n",
               "[1.10,0.5,5.0,-0.5,1.5,1.5,1e3,1e3,1E-2]");
    check_json("- .\n- ..\n- e5\n- 1.5.2\n- '.5'\n", "[\".\",\"..\",\"e5\",\"1.5.2\",\".5\"]");
}

static void quoted_and_block_scalars_are_strings(void)
{
    check_json("- '1'\n- \"true\"\n- \"a\\tb\\u00e9\"\n- 'it''s'\n", "[\"1\",\"true\",\"a\\tb\xC3\xA9\",\"it's\"]");
    check_json("a: |\n  12\n  x\nb: >-\n  one\n  two\nc: |+\n  k\n\nd: |2\n    i\n",
               "{\"a\":\"12\\nx\\n\",\"b\":\"one two\",\"c\":\"k\\n\\n\",\"d\":\"  i\\n\"}");
}

static void core_tags_are_honoured(void)
{
    check_json("- !!str 12\n- !!int \"12\"\n- !!float 3\n- !!bool \"true\"\n- !!null ''\n- ! 7\n"
               "- !!seq [1]\n- !!map {a: 1}\n",
               "[\"12\",12,3.0,true,null,\"7\",[1],{\"a\":1}]");
    check_refused("a: !!int x\n", "E0110", 1, 4);
    check_refused("a: !!binary aGk=\n", "E0105", 1, 4);
    check_refused("a: !thing {b: 1}\n", "E0105", 1, 4);
    check_refused("%TAG !e! tag:e.com,2000:\n---\na: !e!x 1\n", "E0105", 3, 4);
}

static void anchors_expand(void)
{
    check_json("a: &x {k: [1, 2]}\nb: *x\nc: *x\n", "{\"a\":{\"k\":[1,2]},\"b\":{\"k\":[1,2]},\"c\":{\"k\":[1,2]}}");
    check_json("- &a 1\n- *a\n- &a 2\n- *a\n", "[1,1,2,2]");
    check_json("&k key: v\nother: *k\n", "{\"key\":\"v\",\"other\":\"key\"}");
    check_json("a: &k key\n*k : v\n", "{\"a\":\"key\",\"key\":\"v\"}");
    check_refused("a: *x\n", "E0108", 1, 4);
    check_refused("a: &x [1, *x]\n", "E0108", 1, 11);
    check_refused("a: &x:y 1\n", "E0108", 1, 4);
    check_refused("a: &x [1]\n*x : v\n", "E0109", 2, 1);
}

static void keys_are_texts_and_unique(void)
{
    check_json("1: a\ntrue: b\n~: c\n? d\n: e\n", "{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\",\"d\":\"e\"}");
    check_refused("a: 1\nb: 2\na: 3\n", "E0104", 3, 1);
    check_refused("x: {\"a\": 1, 'a': 2}\n", "E0104", 1, 13);
    check_refused("? [a]\n: b\n", "E0109", 1, 3);
    check_json("\"<<\": 1\n", "{\"<<\":1}");
}

static void the_last_of_two_keys_counts_in_a_playbook_C_47(void)
{
    struct json value;
    struct buf out;
    CHECK_INT(read_with(STR("kind: Playbook\na: {x: 1, y: 2, x: [3]}\na: {<<: {z: 1}, y: 4, y: 5}\n"), NULL, &value),
              OK);
    CHECK_INT(diagnostics.error_count, 0);
    CHECK_INT(diagnostics.warning_count, 3);
    CHECK(strcmp(diagnostics.items[0].id, "E0104") == 0);
    buf_init(&out, 1024);
    json_write(&out, &value);
    CHECK_STR(buf_str(&out), STR("{\"kind\":\"Playbook\",\"a\":{\"z\":1,\"y\":5}}"));
    buf_release(&out);
    check_refused("kind: Playbook\na: 1\na: *x\n", "E0104", 3, 1);
    check_refused("kind: Plan\na: 1\na: 2\n", "E0104", 3, 1);
}

// As PyYAML reads them, order included.
static void merge_keys_put_mappings_under_a_mapping(void)
{
    check_json("a: &x {k: 1, l: {m: 2}}\nb:\n  <<: *x\n  l: 3\n  n: 4\n",
               "{\"a\":{\"k\":1,\"l\":{\"m\":2}},\"b\":{\"k\":1,\"l\":3,\"n\":4}}");
    check_json("b:\n  k: 0\n  <<: {k: 1, z: 2}\n", "{\"b\":{\"k\":0,\"z\":2}}");
    check_json("- &x {k: 1, p: 1}\n- &y {k: 2, q: 2}\n- {<<: [*x, *y], r: 3}\n",
               "[{\"k\":1,\"p\":1},{\"k\":2,\"q\":2},{\"k\":1,\"q\":2,\"p\":1,\"r\":3}]");
    // What was merged is merged again, and an alias of it has all of it.
    check_json("- &x {k: 1}\n- &y {<<: *x, l: 2}\n- {<<: *y}\n- *y\n",
               "[{\"k\":1},{\"k\":1,\"l\":2},{\"k\":1,\"l\":2},{\"k\":1,\"l\":2}]");
    check_json("- &x {k: 1}\n- &y {k: 2}\n- {<<: *x, <<: *y}\n", "[{\"k\":1},{\"k\":2},{\"k\":2}]");
    check_json("a: {<<: []}\n", "{\"a\":{}}");
    check_refused("a: {<<: 1}\n", "E0106", 1, 5);
    check_refused("a: {<<: [{}, 1]}\n", "E0106", 1, 5);
    check_refused("a: {<<: null}\n", "E0106", 1, 5);
    check_refused("a: {<<: *x}\n", "E0108", 1, 9);
    check_refused("a: &x {<<: *x}\n", "E0108", 1, 12);
    check_refused("a: &x {k: 1}\nb: {<<: *x, k: 1, k: 2}\n", "E0104", 2, 19);
}

// Each mapping merges the one before it twice: sizes add up, and are counted.
static void merges_do_not_grow_without_bound(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "- &a0 {k: 1, l: [1, 2, 3, 4, 5, 6, 7, 8]}\n");
    for (int i = 1; i < 40; i++) buf_printf(&text, "- &a%d {<<: [*a%d, *a%d], x%d: *a%d}\n", i, i - 1, i - 1, i, i - 1);
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK(strcmp(diagnostics.items[0].id, "E0504") == 0);
    buf_release(&text);
}

static void all_faults_of_one_reading_are_listed(void)
{
    struct json value;
    CHECK_INT(read_with(STR("a: !x 1\nb: .inf\na: 2\nc: *q\n"), NULL, &value), E_INVALID);
    CHECK_INT(diagnostics.error_count, 4);
    CHECK_INT(diagnostics.items[0].line, 1);
    CHECK_INT(diagnostics.items[3].line, 4);
}

static void what_json_cannot_hold_is_refused(void)
{
    check_refused("a: .inf\n", "E0110", 1, 4);
    check_refused("a: -.INF\n", "E0110", 1, 4);
    check_refused("a: .nan\n", "E0110", 1, 4);
}

static void numbers_are_exact(void)
{
    check_json("a: 0x7fffffffffffffff\n", "{\"a\":9223372036854775807}");
    check_json("a: 0xffffffffffffffffffff\n", "{\"a\":1208925819614629174706175}");
    check_json("a: 0o7777777777777777777777\n", "{\"a\":73786976294838206463}");
    check_json("a: 000761295407002419364761295407002419364\n", "{\"a\":761295407002419364761295407002419364}");
    check_json("a: 4E33033\n", "{\"a\":4E33033}");
    check_json("a: 0.1000000000000000055511151231257827\n", "{\"a\":0.1000000000000000055511151231257827}");
    check_json("- -0\n- -0.0\n- 1.0\n- 1.\n", "[0,-0.0,1.0,1.0]");
}

static void one_document_only(void)
{
    check_json("--- \na: 1\n...\n", "{\"a\":1}");
    check_json("%YAML 1.2\n---\na: 1\n", "{\"a\":1}");
    check_refused("a: 1\n---\nb: 2\n", "E0107", 2, 1);
    check_refused("", "E0111", 1, 1);
    check_refused(" \n\t\n", "E0111", 1, 1);
    check_refused("# nothing\n", "E0111", 1, 1);
}

static void syntax_errors_have_places(void)
{
    check_refused("a: 1\n\tb: 2\n", "E0103", 2, 1);
    check_refused("a: 'x\n", "E0103", 2, 1);
    check_refused("a: b: c\n", "E0103", 1, 5);
    check_refused("a: @x\n", "E0103", 1, 4);
    check_refused("\xC3\xA9: b: c\n", "E0103", 1, 6);
    check_refused_bytes(STR("a: \x01\n"), "E0103", 1, 4);
    check_refused_bytes(STR("a: b\nc: \xFF\n"), "E0101", 2, 4);
    check_refused_bytes(STR("\xFE\xFF\x00\x61"), "E0101", 1, 1);
    check_refused("{\"a\": 1,}", "E0102", 1, 9);
    check_refused("{\"a\": 1, \"a\": 2}", "E0102", 1, 10);
}

static void positions_are_in_bytes(void)
{
    struct json value;
    CHECK_INT(read_with(STR("\xEF\xBB\xBF# caf\xC3\xA9\nk\xC3\xA9y: [\xE2\x82\xAC, x]\r\nb: |\n  t\n"), NULL, &value),
              OK);
    CHECK_INT(value.line, 2);
    CHECK_INT(value.members[0].line, 2);
    CHECK_INT(value.members[0].column, 1);
    const struct json *list = &value.members[0].value;
    CHECK_INT(list->column, 7);
    CHECK_INT(list->items[1].line, 2);
    CHECK_INT(list->items[1].column, 13);
    CHECK_INT(value.members[1].value.line, 3);
    CHECK_INT(value.members[1].value.column, 4);
}

static struct str repeat(struct buf *out, const char *piece, size_t count)
{
    buf_clear(out);
    for (size_t i = 0; i < count; i++) buf_text(out, piece);
    CHECK(buf_ok(out));
    return buf_str(out);
}

static void positions_on_long_lines_are_exact(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "a: [");
    for (int i = 0; i < 20000; i++) buf_text(&text, "1234, ");
    buf_text(&text, "{k: v}]");
    CHECK_INT(read_with(buf_str(&text), NULL, &value), OK);
    const struct json *list = &value.members[0].value;
    CHECK_INT(list->items[19999].column, 5 + 6 * 19999);
    CHECK_INT(list->items[20000].column, 5 + 6 * 20000);
    CHECK_INT(list->items[20000].members[0].column, 6 + 6 * 20000);
    CHECK_INT(list->items[20000].members[0].value.column, 9 + 6 * 20000);
    buf_release(&text);
}

static void depth_limit(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 22);
    CHECK_INT(read_with(repeat(&text, "- ", 64), NULL, &value), OK);
    CHECK_INT(read_with(repeat(&text, "- ", 65), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0502");
    CHECK_INT(read_with(repeat(&text, "- ", 400000), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0502");
    CHECK_INT(read_with(repeat(&text, "x: [", 60000), NULL, &value), E_INVALID);
    // An alias brings its own depth along.
    repeat(&text, "", 0);
    buf_text(&text, "a: &x ");
    for (int i = 0; i < 40; i++) buf_byte(&text, '[');
    for (int i = 0; i < 40; i++) buf_byte(&text, ']');
    buf_text(&text, "\nb: ");
    for (int i = 0; i < 24; i++) buf_byte(&text, '[');
    buf_text(&text, "*x");
    for (int i = 0; i < 24; i++) buf_byte(&text, ']');
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0502");
    buf_release(&text);
}

static void size_limits(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 24);
    repeat(&text, "# 34567890123456\n", 0);
    buf_text(&text, "a: 1\n#");
    while (text.len < 1024 * 1024) buf_byte(&text, 'x');
    CHECK_INT(read_with(buf_str(&text), NULL, &value), OK);
    buf_byte(&text, 'x');
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0501");
    buf_clear(&text);
    buf_text(&text, "[1]");
    while (text.len < 8 * 1024 * 1024) buf_byte(&text, ' ');
    CHECK_INT(read_with(buf_str(&text), NULL, &value), OK);
    buf_byte(&text, ' ');
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0501");
    buf_release(&text);
}

static void node_limit(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 24);
    CHECK_INT(read_with(repeat(&text, "- 1\n", 99999), NULL, &value), OK);
    CHECK_INT(read_with(repeat(&text, "- 1\n", 100000), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0503");
    buf_release(&text);
}

static void key_limit_and_many_keys(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 24);
    for (int i = 0; i < 10000; i++) buf_printf(&text, "k%d: 1\n", i);
    CHECK_INT(read_with(buf_str(&text), NULL, &value), OK);
    CHECK_INT(value.count, 10000);
    size_t len = text.len;
    buf_text(&text, "k77: 2\n");
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0508");
    text.len = len;
    buf_text(&text, "x: 2\n");
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0508");
    buf_release(&text);
}

static void repeated_keys_of_large_mappings_are_found(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 500; i++) buf_printf(&text, "k%d: 1\n", i);
    buf_text(&text, "k499: 1\nk3: 1\n");
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_INT(diagnostics.error_count, 2);
    CHECK_TEXT(diagnostics.items[0].id, "E0104");
    CHECK_STR(diagnostics.items[1].hint, STR("the first one is on line 4"));
    buf_release(&text);
}

// 323 bytes that stand for 387 million values elsewhere.
static void alias_bombs_are_refused(void)
{
    struct json value;
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "a: &a [l,l,l,l,l,l,l,l,l]\n");
    for (char c = 'b'; c <= 'i'; c++)
        buf_printf(&text, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c - 1, c - 1, c - 1, c - 1, c - 1,
                   c - 1, c - 1, c - 1, c - 1);
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0504");
    CHECK(arena.size < 1024 * 1024);
    buf_clear(&text);
    for (int i = 0; i < 1001; i++) buf_printf(&text, "- &a%d 1\n", i);
    CHECK_INT(read_with(buf_str(&text), NULL, &value), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0504");
    buf_release(&text);
}

static void long_numbers_are_refused(void)
{
    static const char *const before[] = {"", "-", "0x", "1e"};
    char digits[JSON_NUMBER_DIGITS_MAX + 2], text[JSON_NUMBER_SIZE_MAX + 64];
    memset(digits, '7', sizeof(digits));
    digits[JSON_NUMBER_DIGITS_MAX] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(before); i++) {
        snprintf(text, sizeof(text), "a: %s%s7\n", before[i], digits);
        check_refused(text, "E0508", 1, 4);
    }
}

static void yaml_and_json_of_one_document_are_equal(void)
{
    static const char yaml[] = "a: 1\nb: [x, {c: null}]\nd: 'e'\n";
    static const char json[] = "{\"d\": \"e\", \"a\": 1, \"b\": [\"x\", {\"c\": null}]}";
    struct json one;
    struct json two;
    struct json copy;
    struct arena keep;
    arena_init(&keep, 4096, 1 << 20);
    CHECK_INT(read_with(STR(yaml), NULL, &one), OK);
    CHECK(json_copy(&keep, &one, &copy));
    CHECK_INT(read_with(STR(json), NULL, &two), OK);
    CHECK(json_equal(&copy, &two));
    arena_release(&keep);
}

static void memory_failure_is_an_error_code(void)
{
    static const char text[] = "a: &x [1, 2.5, {b: c}]\nd: *x\ne: |\n  text\nf: !bad 1\n";
    for (int sticky = 0; sticky < 2; sticky++) {
        int64_t n = 1;
        for (enum code rc = E_NOMEM; rc == E_NOMEM; n++) {
            struct json value;
            struct arena small;
            arena_init(&small, 4096, 1 << 20);
            small.fail_in = n;
            small.fail_sticky = sticky;
            diagnostics_init(&diagnostics, &small);
            rc = doc_tree(STR(text), STR("t"), NULL, &small, &value, &diagnostics);
            CHECK(rc == E_NOMEM || rc == E_INVALID);
            arena_release(&small);
        }
        CHECK(n > 20);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nulls_and_booleans),
        TEST(integers),
        TEST(floats_become_json_numbers),
        TEST(quoted_and_block_scalars_are_strings),
        TEST(core_tags_are_honoured),
        TEST(anchors_expand),
        TEST(keys_are_texts_and_unique),
        TEST(the_last_of_two_keys_counts_in_a_playbook_C_47),
        TEST(merge_keys_put_mappings_under_a_mapping),
        TEST(merges_do_not_grow_without_bound),
        TEST(all_faults_of_one_reading_are_listed),
        TEST(what_json_cannot_hold_is_refused),
        TEST(numbers_are_exact),
        TEST(one_document_only),
        TEST(syntax_errors_have_places),
        TEST(positions_are_in_bytes),
        TEST(positions_on_long_lines_are_exact),
        TEST(depth_limit),
        TEST(size_limits),
        TEST(node_limit),
        TEST(key_limit_and_many_keys),
        TEST(repeated_keys_of_large_mappings_are_found),
        TEST(alias_bombs_are_refused),
        TEST(long_numbers_are_refused),
        TEST(yaml_and_json_of_one_document_are_equal),
        TEST(memory_failure_is_an_error_code),
    };
    return test_main("doc_yaml", tests, ARRAY_COUNT(tests), argc, argv);
}
