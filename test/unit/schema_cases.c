// What the schema module promises by itself: faults that name the place and the demand, refusal of what is not supported,
// references between documents, limits. Cases are texts, so that they read like the documents they stand for.
#include "harness/test.h"
#include "schema/schema.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static const struct json *parse(const char *text)
{
    struct error err = {0};
    struct json *value = ARENA_NEW(&arena, struct json);
    CHECK(value);
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &arena, value, &err), &err);
    return value;
}

static enum code compile(const char *text, const struct schema **out, struct error *err)
{
    struct schema_set *set = NULL;
    CHECK_INT(schema_set_open(&arena, &set), OK);
    enum code rc = schema_set_add(set, STR("s.json"), parse(text), err);
    return rc ? rc : schema_compile(set, STR("s.json"), out, err);
}

static const struct schema *compiled(const char *text)
{
    struct error err = {0};
    const struct schema *schema = NULL;
    CHECK_OK(compile(text, &schema, &err), &err);
    return schema;
}

// schema, value, pointer and message of the fault (NULL: fits)
static const struct {
    const char *schema, *value, *pointer, *message;
} cases[] = {
    {"true", "1", NULL, NULL},
    {"false", "1", "", "nothing is allowed here"},
    {"{\"type\":\"string\"}", "5", "", "must be string, found 5"},
    {"{\"type\":[\"string\",\"null\"]}", "{}", "", "must be string or null, found an object"},
    {"{\"type\":\"integer\"}", "1.50", "", "must be integer, found 1.50"},
    {"{\"type\":\"integer\"}", "1.0", NULL, NULL},
    {"{\"type\":\"integer\"}", "12e-1", "", "must be integer, found 12e-1"},
    {"{\"type\":\"number\"}", "\"a\\nb\"", "", "must be number, found \"a\\nb\""},
    {"{\"const\":\"x\"}", "\"y\"", "", "must be \"x\"; found \"y\""},
    {"{\"const\":1.0}", "1", NULL, NULL},
    {"{\"enum\":[\"a\",1,null]}", "true", "", "must be one of \"a\", 1, null; found true"},
    {"{\"minimum\":0}", "-1", "", "must be at least 0; found -1"},
    {"{\"maximum\":18446744073709551615}", "18446744073709551616", "",
     "must be at most 18446744073709551615; found 18446744073709551616"},
    {"{\"exclusiveMinimum\":0.1}", "0.10", "", "must be above 0.1; found 0.10"},
    {"{\"exclusiveMaximum\":1}", "0.999999999999999999999", NULL, NULL},
    {"{\"multipleOf\":0.01}", "19.99", NULL, NULL},
    {"{\"multipleOf\":0.01}", "19.999", "", "must be a multiple of 0.01; found 19.999"},
    {"{\"multipleOf\":3}", "9007199254740993", NULL, NULL},
    {"{\"multipleOf\":7}", "1e30", "", "must be a multiple of 7; found 1e30"},
    {"{\"minLength\":2}", "\"é\"", "", "must have at least 2 characters, has 1"},
    {"{\"maxLength\":2}", "\"日本\"", NULL, NULL},
    {"{\"maxLength\":2}", "\"日本語\"", "", "must have at most 2 characters, has 3"},
    {"{\"pattern\":\"^[0-9a-f]{4}$\"}", "\"12fg\"", "", "must match the pattern \"^[0-9a-f]{4}$\"; found \"12fg\""},
    {"{\"minItems\":1}", "[]", "", "must have at least 1 items, has 0"},
    {"{\"items\":{\"type\":\"integer\"}}", "[1,\"x\"]", "/1", "must be integer, found \"x\""},
    {"{\"prefixItems\":[true,{\"type\":\"null\"}],\"items\":false}", "[1,null,2]", "/2", "nothing is allowed here"},
    {"{\"uniqueItems\":true}", "[1,2,1.0]", "", "items must differ, but 0 and 2 are equal"},
    {"{\"contains\":{\"const\":1},\"minContains\":2}", "[1,2]", "",
     "must contain at least 2 items of the wanted kind, has 1"},
    {"{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "", "lacks the property \"b\""},
    {"{\"properties\":{\"a~/b\":{\"type\":\"null\"}}}", "{\"a~/b\":1}", "/a~0~1b", "must be null, found 1"},
    {"{\"properties\":{\"name\":true},\"additionalProperties\":false}", "{\"nmae\":1}", "/nmae",
     "unknown property \"nmae\"; did you mean \"name\"?"},
    {"{\"properties\":{\"name\":true},\"additionalProperties\":false}", "{\"colour\":1}", "/colour",
     "unknown property \"colour\""},
    {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":\"x\",\"b\":2}", "/b", "must be string, found 2"},
    {"{\"patternProperties\":{\"^x-\":{\"type\":\"string\"}},\"additionalProperties\":false}", "{\"x-a\":1}", "/x-a",
     "must be string, found 1"},
    {"{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}", "", "has a property whose name is not allowed: \"abc\""},
    {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "lacks a property that another one asks for: \"b\""},
    {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"c\":1}", NULL, NULL},
    {"{\"dependentSchemas\":{\"a\":{\"required\":[\"z\"]}}}", "{\"a\":1}", "", "lacks the property \"z\""},
    {"{\"minProperties\":1}", "{}", "", "must have at least 1 properties, has 0"},
    {"{\"not\":{\"type\":\"null\"}}", "null", "", "fits what is excluded by \"not\""},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "[]", "",
     "must be integer or string, found an array of 0"},
    {"{\"anyOf\":[{\"minimum\":5},{\"maximum\":1}]}", "3", "",
     "fits none of the 2 allowed forms (one of them: must be at least 5; found 3)"},
    {"{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":0}]}", "3", "",
     "fits more than one of the forms of which it must fit exactly one (1 and 2)"},
    // The alternative that was meant is told by its constant, and its own fault is shown.
    {"{\"oneOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/b\"}],\"$defs\":{"
     "\"a\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"a\"},\"n\":{\"type\":\"integer\"}}},"
     "\"b\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"b\"}},\"required\":[\"m\"]}}}",
     "{\"kind\":\"b\",\"n\":1}", "", "lacks the property \"m\""},
    {"{\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]},\"else\":{\"required\":[\"c\"]}}", "{\"a\":1}", "",
     "lacks the property \"b\""},
    {"{\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]},\"else\":{\"required\":[\"c\"]}}", "{\"x\":1}", "",
     "lacks the property \"c\""},
    {"{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"properties\":{\"kids\":{\"items\":{\"$ref\":\"#\"}},"
     "\"v\":{\"type\":\"integer\"}}}}}",
     "{\"kids\":[{\"v\":1},{\"kids\":[{\"v\":\"x\"}]}]}", "/kids/1/kids/0/v", "must be integer, found \"x\""},
    {"{\"format\":\"date-time\",\"title\":\"t\",\"examples\":[1],\"contentSchema\":{\"bad\":1}}", "\"x\"", NULL, NULL},
};

static void faults_say_where_and_what(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct schema *schema = compiled(cases[i].schema);
        struct schema_fault fault;
        bool fits = schema_valid(schema, parse(cases[i].value), &fault);
        if (fits != !cases[i].pointer)
            test_fail(__FILE__, __LINE__, "%s with %s: %s", cases[i].schema, cases[i].value, fault.message);
        if (!cases[i].pointer) continue;
        CHECK_TEXT(fault.pointer, cases[i].pointer);
        CHECK_TEXT(fault.message, cases[i].message);
        CHECK(fault.value && fault.value->line == 1);
    }
}

static void what_is_not_supported_is_refused(void)
{
    static const struct {
        const char *schema;
        enum code code;
        const char *part; // of the message
    } refused[] = {
        {"{\"requird\":[]}", E_UNSUPPORTED, "the keyword \"requird\" is not known"},
        {"{\"unevaluatedProperties\":false}", E_UNSUPPORTED, "the keyword \"unevaluatedProperties\" is not supported"},
        {"{\"properties\":{\"a\":{\"$dynamicRef\":\"#x\"}}}", E_UNSUPPORTED, "$dynamicRef"},
        {"{\"$defs\":{\"unused\":{\"definitions\":{}}}}", E_UNSUPPORTED, "definitions"},
        {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}", E_UNSUPPORTED, "2020-12"},
        {"{\"type\":\"text\"}", E_INVALID, "\"type\" must be"},
        {"{\"minLength\":-1}", E_INVALID, "\"minLength\" must be an integer"},
        {"{\"minLength\":1.5}", E_INVALID, "\"minLength\" must be an integer"},
        {"{\"pattern\":\"(?=a)\"}", E_UNSUPPORTED, "look-around"},
        {"{\"pattern\":\"(a)\\\\1\"}", E_UNSUPPORTED, "back references"},
        {"{\"pattern\":\"[a\"}", E_INVALID, "class without ]"},
        {"{\"multipleOf\":0}", E_INVALID, "above 0"},
        {"{\"properties\":{\"a\":1}}", E_INVALID, "not a schema"},
        {"{\"allOf\":[]}", E_INVALID, "not empty"},
        {"{\"required\":[1]}", E_INVALID, "array of strings"},
        {"{\"$ref\":\"other.json\"}", E_NOT_FOUND, "no schema is called other.json"},
        {"{\"$ref\":\"#/$defs/a\"}", E_NOT_FOUND, "no schema at /$defs/a"},
        {"{\"$ref\":\"#a\"}", E_NOT_FOUND, "anchor"},
        {"{\"$ref\":\"#\"}", E_INVALID, "refers to itself"},
        {"{\"allOf\":[{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"not\":{\"$ref\":\"#\"}}}}", E_INVALID,
         "refers to itself"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", E_EXISTS, "two schemas"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct error err = {0};
        const struct schema *schema = NULL;
        enum code rc = compile(refused[i].schema, &schema, &err);
        if (rc != refused[i].code || !strstr(err.message, refused[i].part))
            test_fail(__FILE__, __LINE__, "%s: %s %s", refused[i].schema, code_name(rc), err.message);
    }
}

static void documents_refer_to_each_other(void)
{
    struct schema_set *set = NULL;
    struct error err = {0};
    const struct schema *schema = NULL;
    CHECK_INT(schema_set_open(&arena, &set), OK);
    CHECK_OK(schema_set_add(set, STR("event-common.json"),
                            parse("{\"$defs\":{\"seq\":{\"type\":\"integer\",\"minimum\":1}}}"), &err),
             &err);
    CHECK_OK(schema_set_add(set, STR("run-events/RunStarted.json"),
                            parse("{\"properties\":{\"seq\":{\"$ref\":\"../event-common.json#/$defs/seq\"},"
                                  "\"also\":{\"$ref\":\"event-common.json#/$defs/seq\"},"
                                  "\"run\":{\"$ref\":\"https://cairn.example/run.json\"}}}"),
                            &err),
             &err);
    CHECK_OK(schema_set_add(set, STR("run.json"),
                            parse("{\"$id\":\"https://cairn.example/run.json\",\"type\":\"string\"}"), &err),
             &err);
    CHECK_OK(schema_compile(set, STR("run-events/RunStarted.json"), &schema, &err), &err);
    CHECK(schema_valid(schema, parse("{\"seq\":1,\"also\":1,\"run\":\"r\"}"), NULL));
    CHECK(!schema_valid(schema, parse("{\"seq\":0}"), NULL));
    CHECK(!schema_valid(schema, parse("{\"also\":0}"), NULL));
    CHECK(!schema_valid(schema, parse("{\"run\":0}"), NULL));
    CHECK_OK(schema_compile(set, STR("event-common.json#/$defs/seq"), &schema, &err), &err);
    CHECK(!schema_valid(schema, parse("0"), NULL));
    CHECK_INT(schema_compile(set, STR("missing.json"), &schema, &err), E_NOT_FOUND);
    err = (struct error){0};
    CHECK_INT(schema_set_add(set, STR("run.json"), parse("{}"), &err), E_EXISTS);
}

// A failure must not leave half-made schemas behind for the next compilation.
static void a_failed_compile_leaves_no_trace(void)
{
    struct schema_set *set = NULL;
    const struct schema *schema = NULL;
    CHECK_INT(schema_set_open(&arena, &set), OK);
    struct error err = {0};
    CHECK_OK(schema_set_add(set, STR("a.json"), parse("{\"$defs\":{\"x\":{\"type\":\"null\"}},\"items\":{\"bad\":1}}"),
                            &err),
             &err);
    CHECK_INT(schema_compile(set, STR("a.json"), &schema, &err), E_UNSUPPORTED);
    err = (struct error){0};
    CHECK_INT(schema_compile(set, STR("a.json"), &schema, &err), E_UNSUPPORTED);
    err = (struct error){0};
    CHECK_OK(schema_compile(set, STR("a.json#/$defs/x"), &schema, &err), &err);
    CHECK(schema_valid(schema, parse("null"), NULL));
    CHECK(!schema_valid(schema, parse("1"), NULL));
}

// Each level tries the next one twice: 2^40 visits unless somebody counts. `not` must not turn the refusal around.
static void work_is_bounded(void)
{
    static char text[16384];
    size_t len = (size_t)snprintf(text, sizeof(text), "{\"not\":{\"$ref\":\"#/$defs/d0\"},\"$defs\":{");
    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "\"d%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]},", i,
                                i + 1, i + 1);
    snprintf(text + len, sizeof(text) - len, "\"d40\":false}}");
    struct schema_fault fault;
    CHECK(!schema_valid(compiled(text), parse("1"), &fault));
    CHECK_TEXT(fault.message, "takes too long or nests too deep to check");
}

static void long_paths_and_texts_are_cut(void)
{
    static char value[4096], key[600];
    memset(key, 'k', sizeof(key) - 1);
    snprintf(value, sizeof(value), "{\"%s\":{\"%s\":\"\xC3\xA9%s\"}}", key, key, key);
    const struct schema *schema = compiled("{\"additionalProperties\":{\"additionalProperties\":{\"type\":\"null\"}}}");
    struct schema_fault fault;
    CHECK(!schema_valid(schema, parse(value), &fault));
    CHECK_INT(strlen(fault.pointer), sizeof(fault.pointer) - 1);
    CHECK(str_utf8(str_from(fault.message)));
    CHECK(strstr(fault.message, "kkk...\""));
}

static void many_items_are_compared_quickly(void)
{
    struct json array = json_array();
    for (int i = 0; i < 20000; i++) CHECK(json_push(&arena, &array, json_int(i * 7919)));
    const struct schema *schema = compiled("{\"uniqueItems\":true}");
    CHECK(schema_valid(schema, &array, NULL));
    CHECK(json_push(&arena, &array, json_number(STR("79190000e-4"))));
    struct schema_fault fault;
    CHECK(!schema_valid(schema, &array, &fault));
    CHECK_TEXT(fault.message, "items must differ, but 1 and 20000 are equal");
}

static void many_names_are_found(void)
{
    struct json properties = json_object(), required = json_array(), value = json_object(), schema = json_object();
    static char names[900][8];
    for (int i = 0; i < 900; i++) {
        snprintf(names[i], sizeof(names[i]), "p%d", i);
        CHECK(json_put(&arena, &properties, str_from(names[i]), json_bool(true)));
        CHECK(json_push(&arena, &required, json_string(str_from(names[i]))));
        if (i != 777) CHECK(json_put(&arena, &value, str_from(names[i]), json_null()));
    }
    CHECK(json_put(&arena, &schema, STR("properties"), properties));
    CHECK(json_put(&arena, &schema, STR("required"), required));
    CHECK(json_put(&arena, &schema, STR("additionalProperties"), json_bool(false)));
    struct schema_set *set = NULL;
    struct error err = {0};
    const struct schema *out = NULL;
    struct schema_fault fault;
    CHECK_INT(schema_set_open(&arena, &set), OK);
    CHECK_OK(schema_set_add(set, STR("many"), &schema, &err), &err);
    CHECK_OK(schema_compile(set, STR("many"), &out, &err), &err);
    CHECK(!schema_valid(out, &value, &fault));
    CHECK_TEXT(fault.message, "lacks the property \"p777\"");
    CHECK(json_put(&arena, &value, STR("p777"), json_null()));
    CHECK(schema_valid(out, &value, NULL));
}

// Every allocation fails once: a code comes back, never a crash and never a schema.
static void memory_may_run_out_anywhere(void)
{
    const struct json *document = parse(cases[ARRAY_COUNT(cases) - 2].schema);
    const struct json *second =
        parse("{\"patternProperties\":{\"^a{1,9}\":{\"minimum\":1}},\"required\":[\"a\"],"
              "\"prefixItems\":[{\"$anchor\":\"x\",\"$id\":\"b\"}],\"dependentRequired\":{\"a\":[]}}");
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        struct arena small;
        arena_init(&small, 4096, 1 << 20);
        small.fail_in = n;
        struct schema_set *set = NULL;
        struct error err = {0};
        const struct schema *out = NULL;
        enum code rc = schema_set_open(&small, &set);
        if (!rc) rc = schema_set_add(set, STR("a"), document, &err);
        if (!rc) rc = schema_set_add(set, STR("c"), second, &err);
        if (!rc) rc = schema_compile(set, STR("a"), &out, &err);
        if (!rc) rc = schema_compile(set, STR("c"), &out, &err);
        CHECK(rc == OK || rc == E_NOMEM);
        done = rc == OK;
        CHECK(n < 10000);
        arena_release(&small);
    }
}

// The same set, asked again: what was lost to a lack of memory is there, and nothing is taken for something else.
static void a_set_goes_on_after_memory_ran_out(void)
{
    enum { COUNT = 10 };
    char uris[COUNT][16], texts[COUNT][64];
    const struct json *documents[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(uris[i], sizeof(uris[i]), "d%d", i);
        snprintf(texts[i], sizeof(texts[i]), "{\"allOf\":[{\"const\":%d},{},{},{},{},{},{},{},{}]}", i);
        documents[i] = parse(texts[i]);
    }
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        struct arena small;
        arena_init(&small, 4096, 1 << 20);
        struct schema_set *set = NULL;
        CHECK_INT(schema_set_open(&small, &set), OK);
        small.fail_in = n;
        failed = false;
        for (int i = 0; i < COUNT; i++) {
            enum code rc = schema_set_add(set, str_from(uris[i]), documents[i], NULL);
            CHECK(rc == OK || (rc == E_NOMEM && !failed));
            if (!rc) continue;
            failed = true;
            CHECK_INT(schema_set_add(set, str_from(uris[i]), documents[i], NULL), OK);
        }
        for (int i = 0; i < COUNT; i++) {
            const struct schema *out = NULL;
            enum code rc = schema_compile(set, str_from(uris[i]), &out, NULL);
            CHECK(rc == OK || (rc == E_NOMEM && !failed));
            failed |= rc != OK;
            if (rc) CHECK_INT(schema_compile(set, str_from(uris[i]), &out, NULL), OK);
            struct json right = json_int(i), wrong = json_int(i + 1);
            CHECK(schema_valid(out, &right, NULL) && !schema_valid(out, &wrong, NULL));
        }
        CHECK(n < 10000);
        arena_release(&small);
    }
}

static void embedded_schemas_compile(void)
{
    struct schema_set *set = NULL;
    struct error err = {0};
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    CHECK_INT(schema_embedded("no-such-file.json").len, 0);
    size_t count = 0;
    for (const char *name; (name = schema_embedded_name(count)); count++) {
        const struct schema *schema = NULL;
        CHECK(schema_embedded(name).len > 0);
        enum code rc = schema_compile(set, str_from(name), &schema, &err);
        if (rc) test_fail(__FILE__, __LINE__, "%s: %u:%u: %s", name, err.line, err.column, err.message);
    }
    printf("# %zu embedded schemas\n", count);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(faults_say_where_and_what),
        TEST(what_is_not_supported_is_refused),
        TEST(documents_refer_to_each_other),
        TEST(a_failed_compile_leaves_no_trace),
        TEST(work_is_bounded),
        TEST(long_paths_and_texts_are_cut),
        TEST(many_items_are_compared_quickly),
        TEST(many_names_are_found),
        TEST(memory_may_run_out_anywhere),
        TEST(a_set_goes_on_after_memory_ran_out),
        TEST(embedded_schemas_compile),
    };
    arena_init(&arena, 64 * 1024, 64 * 1024 * 1024);
    int status = test_main("schema_cases", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&arena);
    return status;
}
