// Arenas: zeroed and aligned memory, the limit, reset, and the seam that makes an allocation fail.
#include "base/arena.h"
#include "harness/test.h"

#include <string.h>

static void memory_is_zeroed_and_aligned(void)
{
    struct arena arena;
    arena_init(&arena, 256, SIZE_MAX);
    for (size_t size = 0; size < 300; size++) {
        unsigned char *bytes = arena_alloc(&arena, size);
        CHECK(bytes != NULL);
        CHECK((uintptr_t)bytes % 16 == 0);
        for (size_t i = 0; i < size; i++) CHECK_INT(bytes[i], 0);
        memset(bytes, 0xAA, size);
    }
    arena_reset(&arena);
    unsigned char *again = arena_alloc(&arena, 64);
    CHECK(again != NULL);
    for (size_t i = 0; i < 64; i++) CHECK_INT(again[i], 0);
    arena_release(&arena);
    CHECK_INT(arena.size, 0);
}

static void unused_arena_costs_nothing(void)
{
    struct arena arena;
    arena_init(&arena, 4096, SIZE_MAX);
    CHECK_INT(arena.size, 0);
    arena_reset(&arena);
    arena_release(&arena);
}

#ifndef CAIRN_ARENA_SINGLE

static void small_first_block_stays_small(void)
{
    struct arena arena;
    arena_init(&arena, 512, SIZE_MAX);
    for (int i = 0; i < 10; i++) CHECK(arena_alloc(&arena, 40) != NULL);
    CHECK_INT(arena.size, 512);
    arena_release(&arena);
}

static void blocks_double_up_to_64_KiB(void)
{
    struct arena arena;
    arena_init(&arena, 1024, SIZE_MAX);
    size_t before = 0, largest = 0;
    for (int i = 0; i < 20000; i++) {
        CHECK(arena_alloc(&arena, 32) != NULL);
        if (arena.size - before > largest) largest = arena.size - before;
        before = arena.size;
    }
    CHECK_INT(largest, 64 * 1024);
    arena_release(&arena);
}

static void reset_keeps_the_first_block(void)
{
    struct arena arena;
    arena_init(&arena, 1024, SIZE_MAX);
    void *first = arena_alloc(&arena, 16);
    for (int i = 0; i < 100; i++) CHECK(arena_alloc(&arena, 500) != NULL);
    arena_reset(&arena);
    CHECK_INT(arena.size, 1024);
    CHECK(arena_alloc(&arena, 16) == first);
    arena_release(&arena);
}

static void limit_counts_what_the_system_gave(void)
{
    struct arena arena;
    arena_init(&arena, 1024, 4096);
    size_t got = 0;
    while (arena_alloc(&arena, 16) != NULL) got += 16;
    CHECK(arena.size <= 4096);
    CHECK(got > 4096 - 4 * 64);
    CHECK(arena_alloc(&arena, 0) == NULL);
    arena_reset(&arena);
    CHECK(arena_alloc(&arena, 16) != NULL);
    arena_release(&arena);
}

#endif

static void one_big_allocation_at_the_limit(void)
{
    enum { HEADER = 32, LIMIT = 10000 };
    for (size_t size = LIMIT - HEADER - 16; size <= LIMIT - HEADER + 16; size += 16) {
        struct arena arena;
        arena_init(&arena, 512, LIMIT);
        bool fits = size <= LIMIT - HEADER;
        CHECK_INT(arena_alloc(&arena, size) != NULL, fits);
        CHECK(arena.size <= LIMIT);
        arena_release(&arena);
    }
}

static void absurd_sizes_fail(void)
{
    struct arena arena;
    arena_init(&arena, 512, SIZE_MAX);
    size_t volatile huge = SIZE_MAX;
    CHECK(arena_array(&arena, huge, 2) == NULL);
    CHECK(arena_array(&arena, huge / 2, 3) == NULL);
    CHECK(arena_alloc(&arena, huge) == NULL);
    CHECK(arena_copy(&arena, (struct str){"", huge}).ptr == NULL);
    CHECK(arena_alloc(&arena, 8) != NULL);
    arena_release(&arena);
}

static void copies_end_in_nul(void)
{
    struct arena arena;
    arena_init(&arena, 512, SIZE_MAX);
    struct str copy = arena_copy(&arena, STR("0123456789abcdef"));
    CHECK_STR(copy, STR("0123456789abcdef"));
    CHECK_INT(copy.ptr[copy.len], 0);
    copy = arena_copy(&arena, (struct str){NULL, 0});
    CHECK(copy.ptr != NULL);
    CHECK_INT(copy.len, 0);
    CHECK_INT(copy.ptr[0], 0);
    arena_release(&arena);
}

static void grow_keeps_elements(void)
{
    struct arena arena;
    arena_init(&arena, 512, SIZE_MAX);
    int64_t *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        int64_t *grown = arena_grow(&arena, array, i, i + 1, sizeof(*array), &capacity);
        CHECK(grown != NULL);
        CHECK(capacity > i);
        array = grown;
        array[i] = (int64_t)i;
    }
    for (size_t i = 0; i < 1000; i++) CHECK_INT(array[i], i);
    CHECK(arena_grow(&arena, array, 1000, 1000, sizeof(*array), &capacity) == array);
    CHECK(arena_grow(&arena, array, 1000, 5000, sizeof(*array), &capacity) != NULL);
    CHECK_INT(capacity, 5000);
    arena_release(&arena);
}

static void nth_allocation_fails(void)
{
    struct arena arena;
    arena_init(&arena, 512, SIZE_MAX);
    arena.fail_in = 3;
    CHECK(arena_alloc(&arena, 8) != NULL);
    CHECK(arena_alloc(&arena, 8) != NULL);
    CHECK(arena_alloc(&arena, 8) == NULL);
    CHECK(arena_alloc(&arena, 8) != NULL);
    arena.fail_in = 1;
    arena.fail_sticky = true;
    for (int i = 0; i < 5; i++) CHECK(arena_alloc(&arena, 8) == NULL);
    arena.fail_in = 0;
    CHECK(arena_copy(&arena, STR("x")).ptr != NULL);
    arena_release(&arena);
}

static void kept_texts_are_copies(void)
{
    struct arena arena = arena_of(256, 1 << 20);
    char bytes[] = "ab";
    struct str one = {bytes, 2}, two = {bytes, 1}, none = {0};
    CHECK(ARENA_KEEP(&arena, &one, &two, &none));
    bytes[0] = 'x';
    CHECK(str_is(one, "ab") && str_is(two, "a") && none.len == 0 && none.ptr != NULL);
    arena.fail_in = 2;
    CHECK(!ARENA_KEEP(&arena, &one, &two));
    CHECK(str_is(one, "ab") && two.ptr == NULL);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(memory_is_zeroed_and_aligned),
        TEST(unused_arena_costs_nothing),
#ifndef CAIRN_ARENA_SINGLE
        TEST(small_first_block_stays_small),
        TEST(blocks_double_up_to_64_KiB),
        TEST(reset_keeps_the_first_block),
        TEST(limit_counts_what_the_system_gave),
#endif
        TEST(one_big_allocation_at_the_limit),
        TEST(absurd_sizes_fail),
        TEST(copies_end_in_nul),
        TEST(kept_texts_are_copies),
        TEST(grow_keeps_elements),
        TEST(nth_allocation_fails),
    };
    return test_main("base_arena", tests, ARRAY_COUNT(tests), argc, argv);
}
