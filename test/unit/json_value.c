// Building, looking up, comparing and copying values.
#include "harness/test.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static struct json read_json(const char *text)
{
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &arena, &value, &err), &err);
    return value;
}

static void check_written(const struct json *value, const char *want)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    json_write(&out, value);
    CHECK(buf_ok(&out));
    CHECK_STR(buf_str(&out), str_from(want));
    buf_release(&out);
}

static void built_values_write(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json object = json_object(), array = json_array();
    CHECK(json_push(&arena, &array, json_null()));
    CHECK(json_push(&arena, &array, json_bool(true)));
    CHECK(json_push(&arena, &array, json_bool(false)));
    CHECK(json_push(&arena, &array, json_int(-5)));
    CHECK(json_push(&arena, &array, json_number(STR("1.50"))));
    CHECK(json_push(&arena, &array, json_object()));
    CHECK(json_put(&arena, &object, STR("z"), json_string(STR("s"))));
    CHECK(json_put(&arena, &object, STR("a"), array));
    check_written(&object, "{\"z\":\"s\",\"a\":[null,true,false,-5,1.50,{}]}");
    CHECK_INT(object.line, 0);
    arena_release(&arena);
}

static void object_with_room_allocates_once(void)
{
    arena_init(&arena, 4096, SIZE_MAX);
    struct json object;
    CHECK(json_object_with(&arena, 10, &object));
    arena.fail_in = 1;
    arena.fail_sticky = true;
    struct str keys = STR("0123456789");
    for (size_t i = 0; i < 10; i++) CHECK(json_put(&arena, &object, str_slice(keys, i, i + 1), json_int((int64_t)i)));
    CHECK(!json_put(&arena, &object, STR("x"), json_int(1)));
    CHECK_INT(object.count, 10);
    CHECK(!json_object_with(&arena, 1, &object));
    CHECK(json_object_with(&arena, 0, &object));
    check_written(&object, "{}");
    arena_release(&arena);
}

static void lookups(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json value = read_json("{\"a\":{\"b\":[{\"c\":7},\"t\"]},\"\":1,\"0\":2,\"n\":1.5}");
    CHECK_INT(json_integer(json_at(&value, STR("a.b.0.c")), -1), 7);
    CHECK_STR(json_text(json_at(&value, STR("a.b.1"))), STR("t"));
    CHECK(json_at(&value, STR("")) == &value);
    CHECK_INT(json_integer(json_at(&value, STR("0")), -1), 2);
    CHECK(json_at(&value, STR("a.b.2")) == NULL);
    CHECK(json_at(&value, STR("a.b.-1")) == NULL);
    CHECK(json_at(&value, STR("a.b.x")) == NULL);
    CHECK(json_at(&value, STR("a.b.")) == NULL);
    CHECK(json_at(&value, STR("a.b.0.c.d")) == NULL);
    CHECK(json_at(&value, STR("a.")) == NULL);
    CHECK(json_at(&value, STR("a.b.99999999999999999999")) == NULL);
    CHECK(json_at(NULL, STR("a")) == NULL);
    CHECK_INT(json_integer(json_key(&value, ""), -1), 1);
    CHECK(json_key(&value, "zz") == NULL);
    CHECK(json_get(NULL, STR("a")) == NULL);
    CHECK(json_key(json_key(&value, "0"), "x") == NULL);
    CHECK_INT(json_integer(json_key(&value, "n"), -1), -1);
    CHECK_INT(json_integer(NULL, 9), 9);
    CHECK_STR(json_text(NULL), STR(""));
    CHECK_STR(json_text(&value), STR(""));
    CHECK(json_is(&value, JSON_OBJECT));
    CHECK(!json_is(&value, JSON_ARRAY));
    CHECK(!json_is(NULL, JSON_NULL));
    arena_release(&arena);
}

static void equality(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } table[] = {
        {"null", "null", true},
        {"null", "false", false},
        {"true", "true", true},
        {"true", "false", false},
        {"\"a\"", "\"\\u0061\"", true},
        {"\"a\"", "\"b\"", false},
        {"\"1\"", "1", false},
        {"[]", "{}", false},
        {"[1,2]", "[1,2.0]", true},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1]", false},
        {"{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"y\":2,\"x\":1}}", true},
    };
    arena_init(&arena, 1024, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct json a = read_json(table[i].a), b = read_json(table[i].b);
        if (json_equal(&a, &b) != table[i].same || json_equal(&b, &a) != table[i].same)
            test_fail(__FILE__, __LINE__, "%s and %s", table[i].a, table[i].b);
    }
    struct json one = json_int(1);
    CHECK(!json_equal(NULL, &one));
    CHECK(json_equal(NULL, NULL));
    arena_release(&arena);
}

static struct json many_members(size_t count, bool backwards)
{
    struct json object;
    CHECK(json_object_with(&arena, (uint32_t)count, &object));
    for (size_t i = 0; i < count; i++) {
        char text[16];
        size_t n = backwards ? count - 1 - i : i;
        snprintf(text, sizeof(text), "k%zu", n);
        struct str key = arena_copy(&arena, str_from(text));
        CHECK(key.ptr && json_put(&arena, &object, key, json_int((int64_t)n)));
    }
    return object;
}

static void big_objects_compare_in_any_order(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json a = many_members(10000, false), b = many_members(10000, true);
    CHECK(json_equal(&a, &b));
    b.members[5000].value = json_int(-1);
    CHECK(!json_equal(&a, &b));
    arena_release(&arena);
}

static void copies_share_nothing(void)
{
    char text[] = "{\"a\":[1,\"x\\n\",2.50,[],{}],\"b\":{\"c\":true,\"d\":null},\"\":\"\"}";
    static const char want[] = "{\"a\":[1,\"x\\n\",2.50,[],{}],\"b\":{\"c\":true,\"d\":null},\"\":\"\"}";
    struct arena other;
    struct json copy;
    arena_init(&arena, 1024, SIZE_MAX);
    arena_init(&other, 1024, SIZE_MAX);
    struct json value = read_json(text);
    CHECK(json_copy(&other, &value, &copy));
    CHECK(json_equal(&value, &copy));
    CHECK_INT(copy.members[1].column, value.members[1].column);
    arena_release(&arena);
    memset(text, 'X', sizeof(text));
    check_written(&copy, want);
    arena_release(&other);
}

static void scalar_copies_need_no_memory(void)
{
    struct json scalars[] = {json_null(),          json_bool(true), json_int(5),
                             json_string(STR("")), json_array(),    json_object()};
    struct json copy;
    arena_init(&arena, 1024, SIZE_MAX);
    arena.fail_in = 1;
    arena.fail_sticky = true;
    for (size_t i = 0; i < ARRAY_COUNT(scalars); i++) {
        CHECK(json_copy(&arena, &scalars[i], &copy));
        CHECK(json_equal(&scalars[i], &copy));
    }
    struct json text = json_string(STR("x"));
    CHECK(!json_copy(&arena, &text, &copy));
    arena_release(&arena);
}

#ifndef CAIRN_ARENA_SINGLE
static void small_copies_are_small(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct arena run;
    arena_init(&run, 512, SIZE_MAX);
    struct json copy;
    struct json value = read_json("{\"order\":\"A-17\",\"amount\":12.50,\"to\":{\"name\":\"Ada\"}}");
    CHECK(json_copy(&run, &value, &copy));
    CHECK_INT(run.size, 512);
    arena_release(&run);
    arena_release(&arena);
}
#endif

static void allocation_sweep(void)
{
    for (int64_t nth = 1;; nth++) {
        arena_init(&arena, 1024, SIZE_MAX);
        arena.fail_in = nth;
        struct json array = json_array(), object = json_object();
        bool ok = true;
        for (int i = 0; i < 40 && ok; i++) ok = json_push(&arena, &array, json_int(i));
        uint32_t count = array.count;
        ok = ok && json_put(&arena, &object, STR("a"), array);
        if (!ok) {
            CHECK_INT(array.count, count);
            CHECK(nth < 10);
        }
        arena_release(&arena);
        if (ok) break;
    }
}

// Values deeper than the ceiling come from loops in programs; nothing may run off the stack.
static void too_deep_values_are_refused(void)
{
    arena_init(&arena, 4096, SIZE_MAX);
    for (uint32_t depth = JSON_DEPTH_MAX - 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
        struct json value = json_int(1), copy, other = json_int(1);
        for (uint32_t i = 0; i < depth; i++) {
            struct json outer = json_array();
            CHECK(json_push(&arena, &outer, value));
            value = outer;
            outer = json_array();
            CHECK(json_push(&arena, &outer, other));
            other = outer;
        }
        bool within = depth <= JSON_DEPTH_MAX;
        struct buf out;
        buf_init(&out, 1 << 20);
        CHECK_INT(json_copy(&arena, &value, &copy), within);
        json_write(&out, &value);
        CHECK_INT(buf_ok(&out), within);
        buf_clear(&out);
        json_write_pretty(&out, &value);
        CHECK_INT(buf_ok(&out), within);
        buf_clear(&out);
        json_canon(&out, &value);
        CHECK_INT(buf_ok(&out), within);
        CHECK_INT(json_equal(&value, &other), depth <= JSON_DEPTH_MAX + 1);
        buf_release(&out);
    }
    arena_release(&arena);
}

static void type_names(void)
{
    CHECK_TEXT(json_type_name(JSON_NULL), "null");
    CHECK_TEXT(json_type_name(JSON_BOOL), "boolean");
    CHECK_TEXT(json_type_name(JSON_INT), "integer");
    CHECK_TEXT(json_type_name(JSON_NUMBER), "number");
    CHECK_TEXT(json_type_name(JSON_STRING), "string");
    CHECK_TEXT(json_type_name(JSON_ARRAY), "array");
    CHECK_TEXT(json_type_name(JSON_OBJECT), "object");
    CHECK_TEXT(json_type_name((enum json_type)0), "unknown");
}

#ifdef CAIRN_VERIFY
static void put_twice(void *context)
{
    struct json *object = context;
    if (!json_put(&arena, object, STR("k"), json_int(1))) return;
    if (!json_put(&arena, object, STR("k"), json_int(2))) return;
}

static void duplicate_put_aborts_in_verifying_builds(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json object = json_object();
    test_aborts(put_twice, &object);
    arena_release(&arena);
}
#endif

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(built_values_write),
        TEST(object_with_room_allocates_once),
        TEST(lookups),
        TEST(equality),
        TEST(big_objects_compare_in_any_order),
        TEST(copies_share_nothing),
        TEST(scalar_copies_need_no_memory),
#ifndef CAIRN_ARENA_SINGLE
        TEST(small_copies_are_small),
#endif
        TEST(allocation_sweep),
        TEST(too_deep_values_are_refused),
        TEST(type_names),
#ifdef CAIRN_VERIFY
        TEST(duplicate_put_aborts_in_verifying_builds),
#endif
    };
    return test_main("json_value", tests, ARRAY_COUNT(tests), argc, argv);
}
