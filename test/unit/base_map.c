// The map from strings to indexes: first value wins, growth, allocation failure at every point.
#include "base/map.h"
#include "harness/test.h"

#include <stdio.h>

enum { COUNT = 5000 };

static struct str name_of(struct arena *arena, uint32_t i)
{
    char text[32];
    snprintf(text, sizeof(text), "key-%u", i);
    struct str copy = arena_copy(arena, str_from(text));
    CHECK(copy.ptr != NULL);
    return copy;
}

static void empty_map_has_nothing(void)
{
    struct arena arena;
    struct map map;
    arena_init(&arena, 512, SIZE_MAX);
    map_init(&map, &arena);
    CHECK_INT(map_get(&map, STR("x")), MAP_NONE);
    CHECK_INT(map_get(&map, STR("")), MAP_NONE);
    CHECK_INT(arena.size, 0);
    arena_release(&arena);
}

static void first_value_wins(void)
{
    struct arena arena;
    struct map map;
    uint32_t existing = 1;
    arena_init(&arena, 512, SIZE_MAX);
    map_init(&map, &arena);
    CHECK(map_put(&map, STR("a"), 10, &existing));
    CHECK_INT(existing, MAP_NONE);
    CHECK(map_put(&map, STR("a"), 11, &existing));
    CHECK_INT(existing, 10);
    CHECK(map_put(&map, STR("a"), 12, NULL));
    CHECK(map_put(&map, (struct str){NULL, 0}, 0, &existing));
    CHECK_INT(existing, MAP_NONE);
    CHECK_INT(map_get(&map, STR("a")), 10);
    CHECK_INT(map_get(&map, STR("")), 0);
    CHECK_INT(map.count, 2);
    arena_release(&arena);
}

static void thousands_of_keys_are_found(void)
{
    struct arena arena, names;
    struct map map;
    arena_init(&arena, 512, SIZE_MAX);
    arena_init(&names, 512, SIZE_MAX);
    map_init(&map, &arena);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(map_put(&map, name_of(&names, i), i, NULL));
        CHECK_INT(map.capacity & (map.capacity - 1), 0);
    }
    CHECK_INT(map.count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) CHECK_INT(map_get(&map, name_of(&names, i)), i);
    CHECK_INT(map_get(&map, name_of(&names, COUNT)), MAP_NONE);
    arena_release(&names);
    arena_release(&arena);
}

// A put that fails leaves the map as it was.
static void allocation_sweep(void)
{
    for (int64_t nth = 1;; nth++) {
        struct arena arena, names;
        struct map map;
        arena_init(&arena, 512, SIZE_MAX);
        arena_init(&names, 512, SIZE_MAX);
        map_init(&map, &arena);
        arena.fail_in = nth;
        uint32_t failed = 0;
        for (uint32_t i = 0; i < 200; i++) {
            struct str name = name_of(&names, i);
            if (map_put(&map, name, i, NULL)) continue;
            failed++;
            CHECK_INT(map.count, i);
            CHECK_INT(map_get(&map, name), MAP_NONE);
            CHECK(map_put(&map, name, i, NULL));
        }
        for (uint32_t i = 0; i < 200; i++) CHECK_INT(map_get(&map, name_of(&names, i)), i);
        arena_release(&names);
        arena_release(&arena);
        if (!failed) break;
        CHECK(nth < 10);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(empty_map_has_nothing),
        TEST(first_value_wins),
        TEST(thousands_of_keys_are_found),
        TEST(allocation_sweep),
    };
    return test_main("base_map", tests, ARRAY_COUNT(tests), argc, argv);
}
