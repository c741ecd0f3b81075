// Templates: what keeps its type, what is a text, what undefined values do, where faults are, and what bounds the work.
// What they have in common with Jinja2 is in template_jinja.c.
#include "harness/test.h"
#include "template/template.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct json vars;

static enum code lookup(void *context, struct str name, struct json *out, struct error *err)
{
    (void)context;
    if (str_is(name, "broken")) return error_set(err, E_IO, "cannot be read");
    const struct json *found = json_get(&vars, name);
    if (found) *out = *found;
    return OK;
}

static const struct template_scope scope = {.lookup = lookup};

static void set_up(void)
{
    struct error err = {0};
    arena_init(&arena, 64 * 1024, 512 * 1024 * 1024);
    CHECK_OK(json_parse(
                 STR("{\"n\":7,\"f\":1.10,\"s\":\"text\",\"list\":[1,2.50,null],\"d\":{\"items\":[9],\"k\":{\"x\":1}},"
                     "\"large\":123456789012345678901234567890,\"huge\":1e400,\"tpl\":\"{{ n }}\",\"t\":\"2026-02-11T17:05:09Z\"}"),
                 NULL, &arena, &vars, &err),
             &err);
}

static enum code render(const char *text, const struct template_limits *limits, struct json *out, struct error *err)
{
    const struct template *t = NULL;
    *err = (struct error){0};
    enum code rc = template_compile(str_from(text), &arena, &t, err);
    return rc ? rc : template_render(t, &scope, limits, &arena, out, err);
}

// The result as JSON.
static void gives(const char *text, const char *want)
{
    struct json value;
    struct error err;
    struct buf buf;
    CHECK_OK(render(text, NULL, &value, &err), &err);
    buf_init(&buf, 1 << 22);
    json_write(&buf, &value);
    CHECK_TEXT(buf_str(&buf).ptr, want);
    buf_release(&buf);
}

static void fails(const char *text, enum code code, uint32_t line, uint32_t column)
{
    struct json value;
    struct error err;
    enum code rc = render(text, NULL, &value, &err);
    if (rc != code) fprintf(stderr, "%s: %s\n", text, err.message);
    CHECK_INT(rc, code);
    if (!line) return;
    CHECK_INT(err.line, line);
    CHECK_INT(err.column, column);
}

static void a_lone_expression_keeps_its_type(void)
{
    set_up();
    gives("{{ n }}", "7");
    gives("  {{ n }}\n", "7");
    gives("{{ f }}", "1.10"); // untouched: as the document has it
    gives("{{ f + 1 }}", "2.1");
    gives("{{ list }}", "[1,2.50,null]");
    gives("{{ n == 7 }}", "true");
    gives("{{ none }}", "null");
    gives("{{ (1, 2.0) }}", "[1,2.0]");
    gives("{{ {'a': missing} }}", "{\"a\":null}");
    gives("{{ missing }}", "\"\"");
    gives("{{ n }}!", "\"7!\"");
    gives("{{ n }}{# #}", "\"7\"");
    gives("{{ list }} ", "[1,2.50,null]");
    gives("x {{ list }}", "\"x [1, 2.5, None]\"");
    gives("x {{ large }}", "\"x 123456789012345678901234567890\"");
    gives("{{ d.items }}", "[9]"); // a key comes before a method
    gives("{{ d.k.items() | list }}", "[[\"x\",1]]");
}

static void a_result_is_never_a_template_P5(void)
{
    set_up();
    gives("{{ tpl }}", "\"{{ n }}\"");
    gives("a {{ tpl }} {{ '{{ n }}' }} {{ '{%' }}", "\"a {{ n }} {{ n }} {%\"");
    gives("{% set x %}{{ '{' }}{ n }}{% endset %}{{ x }}.", "\"{{ n }}.\"");
    fails("{{ ''.__class__ . __mro__ [1] . x }}", E_NOT_FOUND, 0, 0);
    fails("{{ ''.__class__.__mro__[1].__subclasses__() }}", E_UNSUPPORTED, 0, 0);
    fails("{{ self.__init__.__globals__ }}", E_NOT_FOUND, 0, 0);
    fails("{{ cycler.__init__.__globals__.os.popen('id').read() }}", E_UNSUPPORTED, 0, 0);
    fails("{% import 'os' as os %}", E_UNSUPPORTED, 1, 4);
    fails("{% include '/etc/passwd' %}", E_UNSUPPORTED, 1, 4);
}

static void undefined_values_are_lenient_chained_or_strict(void)
{
    struct template_limits limits = template_limits_default;
    struct json value;
    struct error err;
    set_up();
    fails("{{ missing.x }}", E_NOT_FOUND, 1, 11);
    gives("{{ missing.x is defined if false }}a", "\"a\"");
    limits.undefined = TEMPLATE_CHAIN;
    CHECK_OK(render("{{ missing.x['y'][0] | default('none') }}", &limits, &value, &err), &err);
    CHECK_STR(value.text, STR("none"));
    limits.undefined = TEMPLATE_STRICT;
    static const char *const refused[] = {"{{ missing }}",
                                          "{{ missing }}.",
                                          "{{ missing | upper }}",
                                          "{{ not missing }}",
                                          "{{ missing == 1 }}",
                                          "{{ 1 if missing else 2 }}",
                                          "{{ 'a' ~ missing }}",
                                          "{{ 1 in missing }}",
                                          "{% if missing %}{% endif %}",
                                          "{% for i in missing %}{% endfor %}",
                                          "{{ missing or 1 }}"};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) CHECK_INT(render(refused[i], &limits, &value, &err), E_NOT_FOUND);
    CHECK_OK(render("{{ missing | default(1) }}", &limits, &value, &err), &err);
    CHECK_OK(render("{{ missing is defined or missing is undefined }}", &limits, &value, &err), &err);
}

static void faults_have_their_place(void)
{
    set_up();
    fails("a\n{{ n + }}", E_INVALID, 2, 8);
    fails("{{ 'abc }}", E_INVALID, 1, 4);
    fails("{{ n | nope }}", E_UNSUPPORTED, 1, 8);
    fails("{{ n is nope }}", E_UNSUPPORTED, 1, 9);
    fails("{{ nope() }}", E_UNSUPPORTED, 1, 4);
    fails("\n\n {{ n }} {{ s + 1 }}", E_INVALID, 3, 15);
    fails("{{ [1 }}", E_INVALID, 1, 7);
    fails("{% if n %}", E_INVALID, 0, 0);
    fails("{{ {1: 2} }}", E_UNSUPPORTED, 1, 5);
    fails("{{ broken }}", E_IO, 0, 0);
    fails("{{ 10 ** 4300 }}", E_LIMIT, 1, 7);
    fails("{{ (10 ** 4299) * 10 }}", E_LIMIT, 0, 0);
    fails("{{ 10 ** 400 * 1.0 }}", E_LIMIT, 0, 0);
    fails("{{ 10 ** 400 / 3 }}", E_LIMIT, 0, 0);
    fails("{{ huge + 1 }}", E_LIMIT, 0, 0);
    fails("{{ huge | int }}", E_LIMIT, 0, 0);
    fails("{{ huge | float }}", E_LIMIT, 0, 0);
    fails("{{ -huge }}", E_LIMIT, 0, 0);
    fails("{{ 1e308 * 10 }}", E_LIMIT, 0, 0);
    fails("{{ n | replace('a') }}", E_INVALID, 0, 0);
    fails("{{ n | round(nope=1) }}", E_INVALID, 0, 0);
}

static void work_is_bounded(void)
{
    struct buf buf;
    set_up();
    fails("{% for i in range(10001) %}{% endfor %}", E_LIMIT, 0, 0);
    gives("{% for i in range(10000) %}{% endfor %}", "\"\"");
    fails("{{ range(100001) | length }}", E_LIMIT, 0, 0);
    fails("{{ range(-9223372036854775807, 9223372036854775807) }}", E_LIMIT, 0, 0);
    fails("{{ 'ab' * 1000000 }}", E_LIMIT, 0, 0);
    fails("{{ [0] * 1000000 }}", E_LIMIT, 0, 0);
    fails("{{ 'x'.ljust(100000000) }}", E_LIMIT, 0, 0);
    fails("{{ '%1000000000d' | format(1) }}", E_LIMIT, 0, 0);
    fails("{{ '%.1000000000f' | format(1) }}", E_LIMIT, 0, 0);
    fails("{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}", E_LIMIT, 0, 0);
    fails("{% for i in range(10000) %}{% set x = 'a' * 100000 %}{% endfor %}", E_LIMIT, 0, 0);
    fails("{% for i in range(300) %}{{ 'a' * 5000 }}{% endfor %}", E_LIMIT, 0, 0);
    fails("{{ 2 ** 9223372036854775807 }}", E_LIMIT, 0, 0);
    buf_init(&buf, 1 << 20);
    buf_text(&buf, "{{ ");
    for (int i = 0; i < 40; i++) buf_byte(&buf, '(');
    fails(buf_str(&buf).ptr, E_LIMIT, 1, 36);
    buf_clear(&buf);
    buf_text(&buf, "{{ 1");
    for (int i = 0; i < 300; i++) buf_text(&buf, " + 1");
    buf_text(&buf, " }}");
    fails(buf_str(&buf).ptr, E_LIMIT, 0, 0);
    buf_clear(&buf);
    for (int i = 0; i < 40; i++) buf_text(&buf, "{% if n %}");
    fails(buf_str(&buf).ptr, E_LIMIT, 0, 0);
    buf_clear(&buf);
    for (int i = 0; i < 1000; i++) buf_text(&buf, "{% set x = [x] %}");
    buf_text(&buf, "{{ x }} {{ x == x }}");
    fails(buf_str(&buf).ptr, E_LIMIT, 0, 0);
    buf_release(&buf);
}

static void filters_that_jinja_does_not_have(void)
{
    set_up();
    gives("{{ 'aGVsbG8=' | b64decode }}", "\"hello\"");
    gives("{{ 'hello' | b64encode | b64decode }}", "\"hello\"");
    fails("{{ 'a' | b64decode }}", E_INVALID, 0, 0);
    gives("{{ '{\"a\": [1, 2]}' | fromjson }}", "{\"a\":[1,2]}");
    gives("{{ ('[1]' | from_json)[0] + 1 }}", "2");
    fails("{{ '{' | fromjson }}", E_INVALID, 0, 0);
    gives("{{ 'a1b22' | regex_replace('[0-9]+', '#') }}", "\"a#b#\"");
    gives("{{ 'abc' | regex_replace('^', '>') }}", "\">abc\"");
    gives("{{ 'a-b' | regex_replace('x*', '.') }}", "\".a.-.b.\"");
    fails("{{ 'abc' | regex_replace('(a)', '\\\\1') }}", E_UNSUPPORTED, 0, 0);
    fails("{{ 'abc' | regex_replace('(?=a)', '') }}", E_UNSUPPORTED, 0, 0);
    gives("{{ 'id: 42, x' | regex_search('[0-9]+') }}", "\"42\"");
    gives("{{ 'x' | regex_search('[0-9]+') }}", "null");
    gives("{{ ('a' * 20000) | regex_search('a*b') }}", "null");
    fails("{{ ('a' * 100000) | regex_replace('a.*b|a', 'x') }}", E_LIMIT, 0, 0);
    gives("{{ t | strftime('%Y/%m/%d %H:%M:%S %j %a %B %I%p %y%%') }}",
          "\"2026/02/11 17:05:09 042 Wed February 05PM 26%\"");
    gives("{{ 0 | strftime }}", "\"1970-01-01T00:00:00Z\"");
    gives("{{ '2024-12-31' | strftime('%j %A') }}", "\"366 Tuesday\"");
    fails("{{ 'x' | strftime }}", E_INVALID, 0, 0);
    gives("{{ ['Yes', 'no', 'on', '0', 1, 0] | map('bool') | list }}", "[true,false,true,false,true,false]");
    gives("{{ 'a,b' | split(',') }}", "[\"a\",\"b\"]");
}

static void conditions_read_words(void)
{
    static const struct {
        const char *text;
        bool want;
    } cases[] = {
        {"n > 5", true}, {"missing", false},   {"'No'", false}, {"'none'", false}, {"0", false},
        {"'0'", false},  {"' FALSE '", false}, {"'x'", true},   {"[]", false},     {"d.k.x == 1 and s == 'text'", true},
        {"none", false}, {"0.0", false}};
    struct error err = {0};
    set_up();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct template *t;
        bool got;
        CHECK_OK(template_expression(str_from(cases[i].text), &arena, &t, &err), &err);
        CHECK_OK(template_condition(t, &scope, NULL, &arena, &got, &err), &err);
        if (got != cases[i].want) fprintf(stderr, "%s\n", cases[i].text);
        CHECK_INT(got, cases[i].want);
    }
}

static void collect(void *context, struct str name)
{
    buf_add(context, name);
    buf_byte(context, ' ');
}

static void names_locals_and_plain_texts(void)
{
    struct template_local locals[] = {{STR_INIT("n"), json_int(1)}};
    struct template_scope with = {.lookup = lookup, .locals = locals, .local_count = 1};
    const struct template *t;
    struct error err = {0};
    struct json value;
    struct buf buf;
    set_up();
    CHECK_OK(template_compile(STR("{{ a.b + c[d] }}{% for i in e|map(attribute=f) if g %}{{ i }}{% endfor %}"), &arena,
                              &t, &err),
             &err);
    buf_init(&buf, 1024);
    template_names(t, collect, &buf);
    CHECK_TEXT(buf_str(&buf).ptr, "a c d e f g i ");
    buf_release(&buf);
    CHECK_OK(template_compile(STR("{{ a.b[0]['c d'].e > f[g].h and not i.get('j', k.l) and m | length }}"), &arena, &t,
                              &err),
             &err);
    buf_init(&buf, 1024);
    template_paths(t, collect, &buf);
    CHECK_TEXT(buf_str(&buf).ptr, "a.b[0]['c d'].e f g i k.l m ");
    buf_release(&buf);
    CHECK_OK(template_compile(STR("{{ n }}"), &arena, &t, &err), &err);
    CHECK_OK(template_render(t, &with, NULL, &arena, &value, &err), &err);
    CHECK_INT(value.integer, 1);
    CHECK(template_is_dynamic(STR("a {{ b }}")));
    CHECK(template_is_dynamic(STR("{% if %}")));
    CHECK(!template_is_dynamic(STR("a { b } {")));
}

static void memory_that_runs_out_is_reported(void)
{
    const char *text = "{% for i in [3, 1, 2] | sort %}{% set x %}{{ i ~ 'a' }}{% endset %}{{ x | upper }}{{ {'a': i} "
                       "| tojson }}{% endfor %}";
    set_up();
    for (int64_t at = 1; at < 400; at++) {
        struct arena small;
        const struct template *t;
        struct json value;
        struct error err = {0};
        arena_init(&small, 4096, 1 << 20);
        small.fail_in = at;
        enum code rc = template_compile(str_from(text), &small, &t, &err);
        if (!rc) rc = template_render(t, &scope, NULL, &small, &value, &err);
        arena_release(&small);
        CHECK(rc == OK || rc == E_NOMEM);
        if (!rc) return;
    }
    test_fail(__FILE__, __LINE__, "never enough memory");
}

static enum code look_up_x(void *context, struct str name, struct json *out, struct error *err)
{
    (void)context;
    (void)err;
    if (str_is(name, "x")) *out = json_int(7);
    return OK;
}

static void a_tree_keeps_its_shape_and_its_constants(void)
{
    struct arena own;
    arena_init(&own, 4096, 1 << 20);
    struct error err = {0};
    struct json value, out;
    const struct json *where = NULL;
    const struct template_tree *tree;
    CHECK_INT(
        json_parse(STR("{\"a\":[1,\"{{ x }}\",{\"b\":\"n={{ x }}\"}],\"c\":{\"d\":null}}"), NULL, &own, &value, &err),
        OK);
    CHECK_INT(template_tree_compile(&value, &own, &tree, &where, &err), OK);
    CHECK(template_tree_dynamic(tree));
    const struct template_scope seven = {.lookup = look_up_x};
    CHECK_INT(template_tree_render(tree, &seven, NULL, &own, &out, &err), OK);
    CHECK_INT(json_integer(json_at(&out, STR("a.1")), 0), 7);
    CHECK_STR(json_text(json_at(&out, STR("a.2.b"))), STR("n=7"));
    CHECK(json_key(&out, "c")->members == json_key(&value, "c")->members);
    CHECK_INT(json_parse(STR("{\"a\":[1,\"{{ x\"]}"), NULL, &own, &value, &err), OK);
    CHECK_INT(template_tree_compile(&value, &own, &tree, &where, &err), E_INVALID);
    CHECK(where && where->column == 9);
    arena_release(&own);
}

static void macros_and_namespaces_stay_in_their_template(void)
{
    set_up();
    fails("{% macro m(a) %}{{ m(a) }}{% endmacro %}{{ m(1) }}", E_LIMIT, 1, 20);
    fails("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(30) }}", E_LIMIT, 0, 0);
    fails("{% set ns = namespace(a=1) %}{{ ns }}", E_INVALID, 1, 30);
    fails("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a }}", E_INVALID, 0, 0);
    fails("{% set ns = namespace() %}{% set ns.a = ns %}", E_UNSUPPORTED, 0, 0);
    fails("{% macro m() %}{% endmacro %}{{ m }}", E_INVALID, 1, 30);
    fails("{{ later() }}{% macro later() %}{% endmacro %}", E_UNSUPPORTED, 1, 4);
    gives("{% macro row(r) -%} {{ r }}; {%- endmacro %}{% for r in list %}{{ row(r) }}{% endfor %}", "\"1;2.5;None;\"");
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_lone_expression_keeps_its_type),
        TEST(a_result_is_never_a_template_P5),
        TEST(undefined_values_are_lenient_chained_or_strict),
        TEST(faults_have_their_place),
        TEST(work_is_bounded),
        TEST(macros_and_namespaces_stay_in_their_template),
        TEST(filters_that_jinja_does_not_have),
        TEST(conditions_read_words),
        TEST(names_locals_and_plain_texts),
        TEST(a_tree_keeps_its_shape_and_its_constants),
        TEST(memory_that_runs_out_is_reported),
    };
    return test_main("template_render", tests, ARRAY_COUNT(tests), argc, argv);
}
