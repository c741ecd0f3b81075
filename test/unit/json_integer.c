// Arithmetic on integers of any length: identities over random numbers, of the shapes that make long division go wrong, and the
// limit. That results are Python's shows template_jinja.
#include "harness/test.h"
#include "json/integer.h"

#include <string.h>

static struct arena arena;
static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

// Of up to `most` digits: random ones, many nines, many zeros, or a mixture by limbs.
static struct json random_integer(uint32_t most)
{
    char *text = arena_alloc(&arena, (size_t)most + 1);
    CHECK(text != NULL);
    uint32_t count = 1 + draw(most), shape = draw(4);
    for (uint32_t i = 0; i < count; i++) {
        bool nine = (i / 9 + shape) % 2;
        text[i + 1] = (char)('0' + (shape == 0 ? draw(10) : shape == 1 ? (i % 97 ? 9 : draw(10)) : nine ? 9 : 0));
    }
    text[0] = '-';
    if (text[1] == '0') text[1] = '1';
    bool negative = draw(2);
    return json_number((struct str){text + !negative, count + negative});
}

static void equal(const struct json *a, const struct json *b)
{
    if (json_number_cmp(a, b) == 0) return;
    struct buf text;
    buf_init(&text, 1 << 16);
    json_write(&text, a);
    buf_text(&text, " is not ");
    json_write(&text, b);
    test_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, text.ptr);
}

static void sums_and_differences_undo_each_other(void)
{
    for (seed = 1; seed < 2000; seed++) {
        uint64_t from = seed;
        arena_init(&arena, 1 << 16, 1 << 24);
        struct json a = random_integer(2000), b = random_integer(draw(2) ? 20 : 2000), sum, back;
        CHECK(!integer_add(&arena, &a, &b, &sum) && !integer_subtract(&arena, &sum, &b, &back));
        equal(&back, &a);
        CHECK(!integer_subtract(&arena, &a, &a, &back) && integer_sign(&back) == 0 && back.type == JSON_INT);
        seed = from;
        arena_release(&arena);
    }
}

static void quotient_times_divisor_and_rest_are_the_dividend(void)
{
    for (seed = 1; seed < 3000; seed++) {
        uint64_t from = seed;
        arena_init(&arena, 1 << 16, 1 << 24);
        struct json a = random_integer(draw(3) ? 120 : 4000), b = random_integer(draw(3) ? 60 : 2000);
        struct json quotient, rest, product, sum, zero = json_int(0);
        CHECK(!integer_divide(&arena, &a, &b, &quotient, &rest));
        CHECK(!integer_multiply(&arena, &quotient, &b, &product) && !integer_add(&arena, &product, &rest, &sum));
        equal(&sum, &a);
        CHECK(integer_sign(&rest) == 0 || integer_sign(&rest) == integer_sign(&b));
        CHECK(!integer_subtract(&arena, &b, &rest, &sum)); // |rest| < |b|
        CHECK_INT(integer_sign(&sum), integer_sign(&b));
        CHECK(!integer_divide(&arena, &zero, &b, &quotient, &rest) && !integer_sign(&quotient) && !integer_sign(&rest));
        seed = from;
        arena_release(&arena);
    }
}

static void powers_are_products(void)
{
    arena_init(&arena, 1 << 16, 1 << 26);
    for (int64_t base = -11; base <= 11; base++) {
        struct json b = json_int(base), product = json_int(1), power;
        for (int64_t exponent = 0; exponent < 120; exponent++) {
            struct json e = json_int(exponent);
            CHECK(!integer_power(&arena, &b, &e, &power));
            equal(&power, &product);
            CHECK(!integer_multiply(&arena, &product, &b, &product));
        }
    }
    arena_release(&arena);
}

static void text_of_any_radix_reads_back(void)
{
    static const unsigned radices[] = {2, 8, 10, 16};
    for (seed = 1; seed < 200; seed++) {
        uint64_t from = seed;
        arena_init(&arena, 1 << 16, 1 << 24);
        struct json a = random_integer(600), back;
        for (size_t i = 0; i < ARRAY_COUNT(radices); i++) {
            struct buf text;
            buf_init(&text, 1 << 16);
            integer_write(&text, &a, radices[i], i == 3);
            CHECK(!integer_read(&arena, buf_str(&text), radices[i], integer_sign(&a) < 0, &back));
            equal(&back, &a);
            buf_release(&text);
        }
        seed = from;
        arena_release(&arena);
    }
    arena_init(&arena, 1024, 1 << 20);
    struct json out;
    CHECK_INT(integer_read(&arena, STR("1_000"), 10, false, &out), OK);
    CHECK_INT(out.integer, 1000);
    static const char *const wrong[] = {"", "_1", "1_", "1__0", "12", "-1", "1 "};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        CHECK_INT(integer_read(&arena, str_from(wrong[i]), 2, false, &out), E_INVALID);
    arena_release(&arena);
}

static void doubles_are_cut_exactly(void)
{
    static const struct {
        double d;
        const char *want;
    } table[] = {{0.9, "0"},
                 {-0.9, "0"},
                 {-3.99, "-3"},
                 {9007199254740992.0, "9007199254740992"},
                 {9223372036854775808.0, "9223372036854775808"},
                 {-9223372036854775808.0, "-9223372036854775808"},
                 {1e30, "1000000000000000019884624838656"}};
    arena_init(&arena, 1024, 1 << 20);
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct json got, want = json_number(str_from(table[i].want));
        CHECK(!integer_of_double(&arena, table[i].d, &got));
        equal(&got, &want);
    }
    arena_release(&arena);
}

static void a_result_has_a_largest_size(void)
{
    arena_init(&arena, 1 << 16, 1 << 24);
    struct json ten = json_int(10), most = json_int(JSON_NUMBER_DIGITS_MAX - 1), one = json_int(1), zero = json_int(0);
    struct json large, next, out, huge = json_number(STR("99999999999999999999"));
    CHECK(!integer_power(&arena, &ten, &most, &large));
    CHECK_INT(large.text.len, JSON_NUMBER_DIGITS_MAX);
    CHECK(!integer_subtract(&arena, &large, &one, &out) && !integer_add(&arena, &out, &one, &next));
    equal(&next, &large);
    CHECK_INT(integer_multiply(&arena, &large, &ten, &out), E_LIMIT);
    CHECK_INT(integer_multiply(&arena, &large, &large, &out), E_LIMIT);
    CHECK_INT(integer_power(&arena, &large, &large, &out), E_LIMIT);
    CHECK_INT(integer_power(&arena, &ten, &huge, &out), E_LIMIT);
    struct json far = json_int(INT64_MAX);
    CHECK_INT(integer_power(&arena, &ten, &far, &out), E_LIMIT);
    CHECK(!integer_power(&arena, &one, &huge, &out) && out.integer == 1);
    CHECK(!integer_power(&arena, &zero, &huge, &out) && out.integer == 0);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(sums_and_differences_undo_each_other),
        TEST(quotient_times_divisor_and_rest_are_the_dividend),
        TEST(powers_are_products),
        TEST(text_of_any_radix_reads_back),
        TEST(doubles_are_cut_exactly),
        TEST(a_result_has_a_largest_size),
    };
    return test_main("json_integer", tests, ARRAY_COUNT(tests), argc, argv);
}
