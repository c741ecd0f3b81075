// Bufs: what each append writes, the ceiling to the byte, and the sticky failure.
#include "harness/test.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static void empty_buf_is_a_c_string(void)
{
    struct buf buf;
    buf_init(&buf, 100);
    CHECK(buf_ok(&buf));
    CHECK_TEXT(buf.ptr, "");
    CHECK_INT(buf.len, 0);
    buf_clear(&buf);
    buf_add(&buf, (struct str){NULL, 0});
    CHECK_TEXT(buf.ptr, "");
    buf_release(&buf);
    buf_release(&buf);
}

static void appends_join(void)
{
    struct buf buf;
    buf_init(&buf, 1000);
    buf_text(&buf, "a");
    buf_byte(&buf, '-');
    buf_add(&buf, STR("b\0c"));
    buf_int(&buf, -7);
    buf_printf(&buf, "[%s:%d]", "x", 5);
    buf_hex(&buf, (const uint8_t *)"\x00\xff\x1a", 3);
    CHECK_STR(buf_str(&buf), STR("a-b\0c-7[x:5]00ff1a"));
    CHECK_INT(buf.ptr[buf.len], 0);
    buf_clear(&buf);
    CHECK_TEXT(buf.ptr, "");
    buf_release(&buf);
}

static void integers_of_every_length(void)
{
    static const int64_t edges[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, -1, 0, 1};
    struct buf buf;
    buf_init(&buf, 1000);
    for (size_t i = 0; i < ARRAY_COUNT(edges); i++) {
        struct buf want;
        buf_init(&want, 64);
        buf_printf(&want, "%" PRId64, edges[i]);
        buf_clear(&buf);
        buf_int(&buf, edges[i]);
        CHECK_STR(buf_str(&buf), buf_str(&want));
        buf_release(&want);
    }
    for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10) {
        for (int64_t n = power - 1; n <= power + 1; n++) {
            struct buf want;
            buf_init(&want, 64);
            buf_printf(&want, "%" PRId64 "%" PRId64, n, -n);
            buf_clear(&buf);
            buf_int(&buf, n);
            buf_int(&buf, -n);
            CHECK_STR(buf_str(&buf), buf_str(&want));
            buf_release(&want);
        }
    }
    buf_release(&buf);
}

static void ceiling_is_met_to_the_byte(void)
{
    for (size_t size = 9; size <= 11; size++) {
        struct buf buf;
        buf_init(&buf, 10);
        for (size_t i = 0; i < size; i++) buf_byte(&buf, 'x');
        CHECK_INT(buf_ok(&buf), size <= 10);
        CHECK_INT(buf.len, size <= 10 ? size : 10);
        buf_release(&buf);

        buf_init(&buf, 10);
        buf_add(&buf, str_slice(STR("0123456789abc"), 0, size));
        CHECK_INT(buf_ok(&buf), size <= 10);
        buf_release(&buf);

        buf_init(&buf, 10);
        buf_printf(&buf, "%.*s", (int)size, "0123456789abc");
        CHECK_INT(buf_ok(&buf), size <= 10);
        CHECK_INT(buf.len, size <= 10 ? size : 0);
        CHECK_INT(buf.ptr[buf.len], 0);
        buf_release(&buf);
    }
    struct buf none;
    buf_init(&none, 0);
    buf_add(&none, STR(""));
    CHECK(buf_ok(&none));
    buf_byte(&none, 'x');
    CHECK(!buf_ok(&none));
    CHECK_TEXT(none.ptr, "");
    buf_release(&none);
}

static void failure_sticks_until_cleared(void)
{
    struct buf buf;
    buf_init(&buf, 4);
    buf_text(&buf, "abc");
    buf_text(&buf, "de");
    CHECK(!buf_ok(&buf));
    buf_byte(&buf, 'd'); // would fit
    buf_int(&buf, 1);
    buf_printf(&buf, "x");
    buf_hex(&buf, (const uint8_t *)"", 0);
    CHECK(buf_reserve(&buf, 1) == NULL);
    CHECK_TEXT(buf.ptr, "abc");
    buf_clear(&buf);
    CHECK(buf_ok(&buf));
    buf_text(&buf, "wxyz");
    CHECK(buf_ok(&buf));
    CHECK_TEXT(buf.ptr, "wxyz");
    buf_release(&buf);
}

static void absurd_sizes_fail(void)
{
    struct buf buf;
    buf_init(&buf, 1000);
    CHECK(buf_reserve(&buf, SIZE_MAX) == NULL);
    CHECK(!buf_ok(&buf));
    buf_clear(&buf);
    buf_hex(&buf, NULL, SIZE_MAX / 2 + 1);
    CHECK(!buf_ok(&buf));
    buf_clear(&buf);
    buf_byte(&buf, 'x');
    CHECK(buf_reserve(&buf, SIZE_MAX - 1) == NULL);
    buf_release(&buf);
}

static void reserve_gives_room_behind(void)
{
    struct buf buf;
    buf_init(&buf, 100000);
    buf_text(&buf, "head");
    char *room = buf_reserve(&buf, 50000);
    CHECK(room == buf.ptr + 4);
    memset(room, 'x', 50000);
    buf.len += 50000;
    buf.ptr[buf.len] = '\0';
    buf_text(&buf, "tail");
    CHECK_INT(buf.len, 50008);
    CHECK(str_ends(buf_str(&buf), STR("xtail")));
    buf_release(&buf);
}

static void long_printf_grows(void)
{
    struct buf buf;
    buf_init(&buf, 100000);
    for (int i = 0; i < 300; i++) buf_printf(&buf, "%05d,", i);
    CHECK_INT(buf.len, 1800);
    CHECK(str_ends(buf_str(&buf), STR("00298,00299,")));
    buf_release(&buf);
}

static void escape_sequences_are_left_out(void)
{
    static const struct {
        const char *from, *to;
    } cases[] = {{"", ""},
                 {"plain [31m text", "plain [31m text"},
                 {"\x1b[31mERROR\x1b[0m at 3", "ERROR at 3"},
                 {"\x1b[1;38;5;200mx\x1b[K", "x"},
                 {"a\x1b]0;title\x07" "b\x1b]8;;http://x\x1b\\c", "abc"},
                 {"a\x1b" "7b\x1b(", "ab"},
                 {"cut \x1b[3", "cut "},
                 {"cut \x1b", "cut "}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct buf out = buf_of(1024);
        buf_unstyled(&out, str_from(cases[i].from));
        CHECK(str_is(buf_str(&out), cases[i].to));
        buf_release(&out);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(escape_sequences_are_left_out), TEST(empty_buf_is_a_c_string),      TEST(appends_join),
        TEST(integers_of_every_length),     TEST(ceiling_is_met_to_the_byte),
        TEST(failure_sticks_until_cleared), TEST(absurd_sizes_fail),
        TEST(reserve_gives_room_behind),    TEST(long_printf_grows),
    };
    return test_main("base_buf", tests, ARRAY_COUNT(tests), argc, argv);
}
