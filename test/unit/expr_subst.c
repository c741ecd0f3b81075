// References in texts and JSON values, fields of outputs, and how values look as text.
#include "expr/expr.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static bool known(void *context, struct str name)
{
    (void)context;
    return str_is(name, "a") || str_is(name, "a.b") || str_is(name, "build-it") || str_is(name, "obj");
}

static enum code lookup(void *context, const struct ref *ref, struct arena *into, struct json *out, struct error *err)
{
    (void)context;
    struct json value = json_string(STR("A"));
    struct error unused = {0};
    switch (ref->kind) {
    case REF_OUTPUT:
        if (str_is(ref->node, "a.b")) value = json_string(STR("AB"));
        if (str_is(ref->node, "obj") &&
            json_parse(STR("{\"n\":1.50,\"t\":true,\"z\":null,\"l\":[1,{\"k\":\"v\"}],\"s\":\"$a.output\"}"),
                       &json_limits_default, into, &value, &unused))
            return E_NOMEM;
        return expr_field(&value, ref->path, into, out, err);
    case REF_INPUT:
        *out = json_string(ref->path);
        return OK;
    case REF_ARGUMENTS:
    case REF_WORKFLOW_ID:
    case REF_ARTIFACTS_DIR:
        *out = json_string(str_slice(ref->text, 1, ref->text.len));
        return OK;
    }
    return E_NOT_FOUND;
}

static const struct scope scope = {.known = known, .lookup = lookup};

static void texts_are_filled_in(void)
{
    static const struct {
        const char *text, *filled;
    } cases[] = {
        {"", ""},
        {"no references: $5, $, $$, ${a}.output", "no references: $5, $, $$, ${a}.output"},
        {"<$a.output>", "<A>"},
        {"See $a.output.", "See A."},
        {"$a.output-$a.output", "A-A"},
        {"$a.b.output", "AB"},
        {"$build-it.output,$build-it.outputs", "A,$build-it.outputs"},
        {"$obj.output.n $obj.output.t [$obj.output.z]", "1.50 true []"},
        {"$obj.output.l", "[1,{\"k\":\"v\"}]"},
        {"$obj.output.l.1.k", "v"},
        {"$obj.output.s", "$a.output"}, // values are not looked at again
        {"$INPUTS.name and $INPUTS.deep.er", "name and deep.er"},
        {"$ARGUMENTS/$WORKFLOW_ID/$ARTIFACTS_DIR/$ARGUMENTSX", "ARGUMENTS/WORKFLOW_ID/ARTIFACTS_DIR/$ARGUMENTSX"},
        {"$nobody.output $a.field $INPUTS", "$nobody.output $a.field $INPUTS"},
        {"$$a.output", "$A"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        struct str out = {0};
        CHECK_OK(subst_text(str_from(cases[i].text), &scope, &arena, &out, &err), &err);
        CHECK_STR(out, str_from(cases[i].filled));
    }
    struct error err = {0};
    struct str out;
    CHECK_INT(subst_text(STR("$obj.output.nope"), &scope, &arena, &out, &err), E_NOT_FOUND);
    CHECK(strstr(err.message, "nope"));
}

static void json_keeps_the_types_of_lone_references(void)
{
    struct error err = {0};
    struct json value, out;
    CHECK_OK(json_parse(
                 STR("{\"n\":\"$obj.output.n\",\"text\":\"is $obj.output.t\",\"$a.output\":[\"$obj.output.l\",5,null],"
                     "\"o\":{\"x\":\"$INPUTS.q\"},\"u\":\"$nobody.output\"}"),
                 &json_limits_default, &arena, &value, &err),
             &err);
    CHECK_OK(subst_json(&value, &scope, &arena, &out, &err), &err);
    struct buf text;
    buf_init(&text, 1 << 16);
    json_write(&text, &out);
    CHECK_STR(buf_str(&text), STR("{\"n\":1.50,\"text\":\"is true\",\"$a.output\":[[1,{\"k\":\"v\"}],5,null],"
                                  "\"o\":{\"x\":\"q\"},\"u\":\"$nobody.output\"}"));
    buf_release(&text);
    struct json deep = json_null();
    for (int i = 0; i < 200; i++) {
        struct json outer = json_array();
        CHECK(json_push(&arena, &outer, deep));
        deep = outer;
    }
    CHECK_INT(subst_json(&deep, &scope, &arena, &out, &err), E_LIMIT);
}

struct seen {
    char text[512];
};

static void note(void *context, const struct ref *ref, size_t offset, bool is_known)
{
    struct seen *seen = context;
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof(seen->text) - len, "%zu:%d:%.*s:%.*s:%.*s ", offset, is_known, STR_ARG(ref->text),
             STR_ARG(ref->node), STR_ARG(ref->path));
}

static void references_are_listed_with_their_places(void)
{
    struct seen seen = {""};
    expr_refs(STR("$a.b.output.x $nobody.output.y '$a.b.c' $INPUTS.q # $ARGUMENTS $HOME $a.b.c.output"), &scope, note,
              &seen);
    CHECK_TEXT(seen.text, "0:1:$a.b.output.x:a.b:x 14:0:$nobody.output.y:nobody:y 40:1:$INPUTS.q::q "
                          "52:1:$ARGUMENTS:: 69:0:$a.b.c.output:a.b.c: ");
    seen.text[0] = '\0';
    expr_refs(STR("$a.output"), NULL, note, &seen);
    CHECK_TEXT(seen.text, "0:0:$a.output:a: ");
}

static void fields_of_outputs(void)
{
    struct error err = {0};
    struct json out;
    struct json printed = json_string(STR("\n{\"a\":{\"b\":[10,20]}}\n"));
    CHECK_OK(expr_field(&printed, STR("a.b.1"), &arena, &out, &err), &err);
    CHECK_INT(out.integer, 20);
    CHECK_OK(expr_field(&printed, STR(""), &arena, &out, &err), &err);
    CHECK(out.type == JSON_STRING);
    CHECK_INT(expr_field(&printed, STR("a.c"), &arena, &out, &err), E_NOT_FOUND);
    static const char *const others[] = {"", "text", "{broken", "42"};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        struct json value = json_string(str_from(others[i]));
        CHECK_INT(expr_field(&value, STR("a"), &arena, &out, NULL), E_NOT_FOUND);
    }
    struct json null = json_null();
    CHECK_INT(expr_field(&null, STR("a"), &arena, &out, NULL), E_NOT_FOUND);
}

static void values_as_text(void)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"null", ""},     {"true", "true"},      {"-5", "-5"},
        {"1.10", "1.10"}, {"\"a\\nb\"", "a\nb"}, {"[ 1, {\"a\" : \"b\"} ]", "[1,{\"a\":\"b\"}]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        struct json value;
        struct str text;
        CHECK_OK(json_parse(str_from(cases[i].json), &json_limits_default, &arena, &value, &err), &err);
        CHECK_INT(expr_text(&value, &arena, &text), OK);
        CHECK_STR(text, str_from(cases[i].text));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(texts_are_filled_in),
        TEST(json_keeps_the_types_of_lone_references),
        TEST(references_are_listed_with_their_places),
        TEST(fields_of_outputs),
        TEST(values_as_text),
    };
    arena_init(&arena, 64 * 1024, 64 * 1024 * 1024);
    int status = test_main("expr_subst", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&arena);
    return status;
}
