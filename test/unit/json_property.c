// Properties over random values from fixed seeds: what is written is read back equal, the canonical
// form is a fixed point and does not depend on the order of members, a cut or changed text never
// breaks the reader.
#include "harness/test.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static uint64_t random_state;

static uint32_t draw(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}

static struct str random_string(void)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "0",
                                         " ",
                                         "key",
                                         "\"",
                                         "\\",
                                         "/",
                                         "\n",
                                         "\t",
                                         "\x01",
                                         "\x1f",
                                         "\x7f",
                                         "\xC2\x80",
                                         "\xC3\xA9",
                                         "\xE2\x82\xAC",
                                         "\xED\x9F\xBF",
                                         "\xEE\x80\x80",
                                         "\xEF\xBF\xBF",
                                         "\xF0\x90\x80\x80",
                                         "\xF0\x9F\x98\x80",
                                         "a longer run of plain text"};
    struct buf text;
    buf_init(&text, 4096);
    for (uint32_t i = draw(8); i > 0; i--) buf_text(&text, pieces[draw(ARRAY_COUNT(pieces))]);
    struct str copy = arena_copy(&arena, buf_str(&text));
    CHECK(copy.ptr != NULL);
    buf_release(&text);
    return copy;
}

static struct json random_number(void)
{
    char text[64];
    int64_t n = (int64_t)((uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX));
    switch (draw(4)) {
    case 0:
        return json_int((int64_t)draw(2000) - 1000);
    case 1:
        return json_int(draw(2) ? n : -n);
    case 2:
        snprintf(text, sizeof(text), "%s%u.%06u", draw(2) ? "-" : "", draw(100000), draw(1000000));
        break;
    default:
        snprintf(text, sizeof(text), "%u.%uE%d", draw(10), draw(UINT32_MAX), (int)draw(600) - 300);
        break;
    }
    struct str copy = arena_copy(&arena, str_from(text));
    CHECK(copy.ptr != NULL);
    return json_number(copy);
}

static struct json random_value(uint32_t depth)
{
    uint32_t kind = draw(depth < 5 ? 9 : 5);
    if (kind == 0) return json_null();
    if (kind == 1) return json_bool(draw(2));
    if (kind == 2) return random_number();
    if (kind <= 4) return json_string(random_string());
    uint32_t count = draw(10) == 0 ? draw(60) : draw(6);
    struct json value = kind <= 6 ? json_array() : json_object();
    for (uint32_t i = 0; i < count; i++) {
        struct json child = random_value(depth + 1);
        if (value.type == JSON_ARRAY) {
            CHECK(json_push(&arena, &value, child));
        } else {
            struct str key = random_string();
            if (!json_get(&value, key)) CHECK(json_put(&arena, &value, key, child));
        }
    }
    return value;
}

static void shuffle(struct json *value)
{
    if (value->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < value->count; i++) shuffle(&value->items[i]);
    }
    if (value->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < value->count; i++) {
            shuffle(&value->members[i].value);
            uint32_t other = draw(i + 1);
            struct json_member member = value->members[i];
            value->members[i] = value->members[other];
            value->members[other] = member;
        }
    }
}

static struct json read_json(struct str text)
{
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(text, NULL, &arena, &value, &err), &err);
    return value;
}

static void check_value(struct json *value)
{
    struct buf compact, pretty, canon, again;
    buf_init(&compact, 1 << 24);
    buf_init(&pretty, 1 << 24);
    buf_init(&canon, 1 << 24);
    buf_init(&again, 1 << 24);

    json_write(&compact, value);
    struct json back = read_json(buf_str(&compact));
    CHECK(json_equal(value, &back));
    json_write(&again, &back);
    CHECK_STR(buf_str(&again), buf_str(&compact));

    json_write_pretty(&pretty, value);
    back = read_json(buf_str(&pretty));
    CHECK(json_equal(value, &back));

    json_canon(&canon, value);
    back = read_json(buf_str(&canon));
    buf_clear(&again);
    json_canon(&again, &back);
    CHECK_STR(buf_str(&again), buf_str(&canon));

    struct json copy;
    CHECK(json_copy(&arena, value, &copy));
    shuffle(&copy);
    CHECK(json_equal(value, &copy));
    buf_clear(&again);
    json_canon(&again, &copy);
    CHECK_STR(buf_str(&again), buf_str(&canon));

    buf_release(&compact);
    buf_release(&pretty);
    buf_release(&canon);
    buf_release(&again);
}

static void round_trips(void)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        random_state = seed;
        arena_init(&arena, 16384, SIZE_MAX);
        struct json value = random_value(0);
        check_value(&value);
        arena_release(&arena);
    }
}

// Whatever is done to a text, the reader either refuses it with a position or reads something that
// has a stable canonical form.
static void check_damaged(struct str text)
{
    struct json value;
    struct error err = {0};
    enum code rc = json_parse(text, NULL, &arena, &value, &err);
    if (rc) {
        CHECK(err.line > 0 && err.column > 0);
        return;
    }
    struct buf first, second;
    buf_init(&first, 1 << 24);
    buf_init(&second, 1 << 24);
    json_canon(&first, &value);
    value = read_json(buf_str(&first));
    json_canon(&second, &value);
    CHECK_STR(buf_str(&first), buf_str(&second));
    buf_release(&first);
    buf_release(&second);
}

static void damaged_texts(void)
{
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        random_state = seed;
        arena_init(&arena, 16384, SIZE_MAX);
        struct json value = random_value(1);
        struct buf text;
        buf_init(&text, 1 << 24);
        json_write(&text, &value);
        for (int i = 0; i < 20; i++) {
            size_t at = draw((uint32_t)text.len);
            char kept = text.ptr[at];
            static const char marks[] = "\"\\{}[],:0-e.\x80\xC3\x00 ";
            text.ptr[at] = marks[draw(sizeof(marks) - 1)];
            check_damaged(buf_str(&text));
            check_damaged((struct str){text.ptr, at});
            text.ptr[at] = kept;
        }
        buf_release(&text);
        arena_release(&arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(round_trips), TEST(damaged_texts)};
    return test_main("json_property", tests, ARRAY_COUNT(tests), argc, argv);
}
