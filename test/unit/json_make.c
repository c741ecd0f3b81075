// Values made by expressions: what is left out, and how the failure of one part is seen at the end.
#include "harness/test.h"
#include "json/make.h"

#include <string.h>

static struct arena arena;

static void check_written(const struct json *value, const char *want)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    json_write(&out, value);
    CHECK(buf_ok(&out));
    CHECK_STR(buf_str(&out), str_from(want));
    buf_release(&out);
}

static void members_are_in_the_order_given(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json inner = JSON_OF(&arena, {"n", json_count(7)});
    struct json out = JSON_OF(&arena, {"z", json_word("s")}, {"a", inner}, {"b", json_bool(false)});
    JSON_ADD(&arena, &out, {"later", json_null()}, {"at", json_time(&arena, 0)});
    check_written(&out, "{\"z\":\"s\",\"a\":{\"n\":7},\"b\":false,\"later\":null,\"at\":\"1970-01-01T00:00:00.000Z\"}");
    arena_release(&arena);
}

static void what_is_none_is_left_out(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json text = json_word("t"), list = json_array();
    struct json out = JSON_OF(&arena, {"a", json_none()}, {"b", json_some(STR(""))}, {"c", json_some(STR("c"))},
                              {"d", json_nonzero(0)}, {"e", json_nonzero(-1)}, {"f", json_flag(false)},
                              {"g", json_flag(true)}, {"h", json_ref(NULL)}, {"i", json_ref(&text)},
                              {"j", json_time_some(&arena, 0)}, {"k", json_time_or_null(&arena, 0)},
                              {"l", json_copied_some(&arena, STR(""))}, {"m", json_or_null(STR(""))},
                              {"n", json_when(false, text)});
    CHECK_INT(out.capacity, 6); // one allocation, of what is there
    check_written(&out, "{\"c\":\"c\",\"e\":-1,\"g\":true,\"i\":\"t\",\"k\":null,\"m\":null}");
    json_append(&arena, &list, json_none());
    json_append(&arena, &list, json_int(1));
    check_written(&list, "[1]");
    out = JSON_OF(&arena, {"a", json_none()});
    check_written(&out, "{}");
    arena_release(&arena);
}

static void copies_do_not_borrow(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    char text[] = "abc";
    struct digest digest = sha256(STR("x"));
    struct str texts[] = {STR("p"), STR("q")};
    struct json out = JSON_OF(&arena, {"copy", json_copied(&arena, str_from(text))}, {"hex", json_digest(&arena, &digest)},
                              {"texts", json_texts(&arena, texts, 2)},
                              {"made", json_text_made(arena_format(&arena, "%d-%s", 5, text))});
    memset(text, 'z', 3);
    memset(&digest, 0, sizeof(digest));
    check_written(&out, "{\"copy\":\"abc\",\"hex\":\"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\","
                        "\"texts\":[\"p\",\"q\"],\"made\":\"5-abc\"}");
    struct str canon = json_canon_kept(&arena, &out, 4096);
    CHECK(canon.ptr && str_starts(canon, STR("{\"copy\":\"abc\",\"hex\"")));
    CHECK(!json_canon_kept(&arena, &out, 8).ptr);
    arena_release(&arena);
}

static struct json made_of_parts(void)
{
    struct json list = json_array();
    for (int i = 0; i < 5; i++) json_append(&arena, &list, JSON_OF(&arena, {"at", json_time(&arena, i)}));
    struct json out = JSON_OF(&arena, {"list", list}, {"text", json_copied(&arena, STR("t"))});
    JSON_ADD(&arena, &out, {"one", JSON_OF(&arena, {"two", JSON_OF(&arena, {"n", json_int(1)})})});
    return out;
}

static void any_failed_allocation_is_seen_at_the_end(void)
{
    int64_t n = 1;
    for (;; n++) {
        arena_init(&arena, 64, SIZE_MAX);
        arena.fail_in = n;
        struct json out = made_of_parts();
        bool reached = arena.fail_in == 0;
        CHECK(json_ok(&out) == !reached);
        struct error err = {0};
        CHECK_INT(json_made(&out, &err), reached ? E_NOMEM : OK);
        CHECK_INT(err.code, reached ? E_NOMEM : OK);
        arena_release(&arena);
        if (!reached) break;
    }
    CHECK(n > 15);
}

static void a_failed_value_is_never_taken_for_one(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json failed = json_failed(), object = json_object(), array = json_array(), copy;
    CHECK(!json_put(&arena, &object, STR("a"), failed));
    CHECK(!json_push(&arena, &array, failed));
    CHECK(!json_copy(&arena, &failed, &copy));
    CHECK(!json_equal(&failed, &(struct json){.type = JSON_FAILED}));
    CHECK(!json_is(&failed, JSON_OBJECT) && !json_key(&failed, "a"));
    JSON_ADD(&arena, &failed, {"a", json_int(1)});
    json_append(&arena, &failed, json_int(1));
    CHECK(!json_ok(&failed));
    struct buf out;
    buf_init(&out, 1024);
    json_write(&out, &failed);
    CHECK(!buf_ok(&out));
    CHECK(!buf_keep(&out, &arena).ptr);
    arena_release(&arena);
}

static void formatted_text_of_any_length(void)
{
    arena_init(&arena, 64, SIZE_MAX);
    static const char digits[] = "0123456789";
    for (int size = 0; size < 600; size++) {
        struct str text = arena_format(&arena, "%*s", size, size ? digits + 9 : "");
        CHECK_INT(text.len, size);
        CHECK_INT(text.ptr[size], 0);
        CHECK(!size || text.ptr[size - 1] == '9');
    }
    arena.fail_in = 1;
    arena.fail_sticky = true;
    CHECK(!arena_format(&arena, "%d", 1).ptr);
    CHECK(!arena_format(&arena, "%400d", 1).ptr);
    arena_release(&arena);
}

static void joined_objects_have_each_member_once_and_the_first_wins(void)
{
    arena_init(&arena, 1024, SIZE_MAX);
    struct json over = JSON_OF(&arena, {"b", json_int(1)}, {"a", json_int(2)});
    struct json under = JSON_OF(&arena, {"a", json_int(3)}, {"c", json_int(4)});
    struct json made = json_joined(&arena, &over, &under), none = json_joined(&arena, NULL, &(struct json){0});
    CHECK_INT(made.count, 3);
    CHECK_STR(made.members[0].key, STR("b"));
    CHECK_INT(json_integer(json_key(&made, "a"), 0), 2);
    CHECK_INT(json_integer(json_key(&made, "c"), 0), 4);
    CHECK(none.type == JSON_OBJECT && none.count == 0);
    struct json broken = json_failed();
    json_fill(&arena, &broken, &over);
    CHECK(!json_ok(&broken));
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(members_are_in_the_order_given),
        TEST(what_is_none_is_left_out),
        TEST(copies_do_not_borrow),
        TEST(any_failed_allocation_is_seen_at_the_end),
        TEST(a_failed_value_is_never_taken_for_one),
        TEST(formatted_text_of_any_length),
        TEST(joined_objects_have_each_member_once_and_the_first_wins),
    };
    return test_main("json_make", tests, ARRAY_COUNT(tests), argc, argv);
}
