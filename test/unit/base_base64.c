// RFC 4648: its vectors, both alphabets, and what is none.
#include "base/base64.h"
#include "harness/test.h"

#include <string.h>

static struct arena arena;

static void vectors_both_ways(void)
{
    static const char *const pairs[][2] = {{"", ""},          {"f", "Zg=="},         {"fo", "Zm8="},
                                           {"foo", "Zm9v"},   {"foob", "Zm9vYg=="},  {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}, {"\xFB\xFF\xFE", "+//+"}};
    arena_init(&arena, 1024, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        struct buf out;
        buf_init(&out, 64);
        buf_base64(&out, str_from(pairs[i][0]));
        CHECK_STR(buf_str(&out), str_from(pairs[i][1]));
        struct str back = base64_read(buf_str(&out), &arena);
        CHECK(back.ptr != NULL);
        CHECK_STR(back, str_from(pairs[i][0]));
        buf_release(&out);
    }
    arena_release(&arena);
}

static void letters_for_urls(void)
{
    struct buf out;
    buf_init(&out, 64);
    buf_base64url(&out, STR("\xFB\xFF\xFE\xFB"), true);
    CHECK_STR(buf_str(&out), STR("-__--w=="));
    buf_clear(&out);
    buf_base64url(&out, STR("\xFB\xFF\xFE\xFB"), false);
    CHECK_STR(buf_str(&out), STR("-__--w"));
    buf_release(&out);
}

static void what_is_none_is_refused(void)
{
    static const char *const texts[] = {"A", "AA", "AAA", "A===", "====", "AA=A", "AA-_", "AAA ", "A\nAA", "AAAAA", "AA==AAAA"};
    arena_init(&arena, 1024, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (base64_read(str_from(texts[i]), &arena).ptr) test_fail(__FILE__, __LINE__, "taken: %s", texts[i]);
    arena.fail_in = 1;
    CHECK(!base64_read(STR("AAAA"), &arena).ptr);
    arena_release(&arena);
}

static void every_length_comes_back(void)
{
    char bytes[200];
    arena_init(&arena, 1024, SIZE_MAX);
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 37 + 11);
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        struct buf out;
        buf_init(&out, 512);
        buf_base64(&out, (struct str){bytes, size});
        struct str back = base64_read(buf_str(&out), &arena);
        CHECK(back.ptr && back.len == size && memcmp(back.ptr, bytes, size) == 0);
        buf_release(&out);
    }
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(vectors_both_ways),
        TEST(letters_for_urls),
        TEST(what_is_none_is_refused),
        TEST(every_length_comes_back),
    };
    return test_main("base_base64", tests, ARRAY_COUNT(tests), argc, argv);
}
