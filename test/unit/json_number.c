// Numbers: ECMAScript's shortest text (RFC 8785 appendix B), reading, and equality by value.
#include "harness/test.h"
#include "json/json.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double power_of_two(int exponent)
{
    return from_bits((uint64_t)(1023 + exponent) << 52);
}

static void check_format(double value, const char *want)
{
    char text[32];
    size_t len = json_double_format(value, text);
    CHECK_TEXT(text, want);
    CHECK_INT(len, strlen(want));
}

static void rfc_8785_appendix_b(void)
{
    static const struct {
        uint64_t bits;
        const char *want;
    } table[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) check_format(from_bits(table[i].bits), table[i].want);
}

static void forms_of_ecmascript(void)
{
    check_format(1, "1");
    check_format(-1, "-1");
    check_format(10, "10");
    check_format(0.1, "0.1");
    check_format(1.5, "1.5");
    check_format(100, "100");
    check_format(123456789012345680000.0, "123456789012345680000");
    check_format(1e20, "100000000000000000000");
    check_format(1e21, "1e+21");
    check_format(1.5e21, "1.5e+21");
    check_format(1e-6, "0.000001");
    check_format(1.25e-6, "0.00000125");
    check_format(1e-7, "1e-7");
    check_format(1.25e-7, "1.25e-7");
    check_format(1e100, "1e+100");
    check_format(1e-100, "1e-100");
    check_format(4.35, "4.35");
    check_format(0.000035, "0.000035");
    check_format(0.1 + 0.2, "0.30000000000000004");
    check_format(DBL_MIN, "2.2250738585072014e-308");
    check_format(from_bits(0x000fffffffffffff), "2.225073858507201e-308");
    check_format(from_bits(2), "1e-323");
    check_format(from_bits(3), "1.5e-323");
}

// The gap below a power of two is half the gap above, so the nearest short decimal may not read
// back while the next one above does.
static void powers_of_two(void)
{
    check_format(power_of_two(-44), "5.684341886080802e-14");
    check_format(power_of_two(89), "6.189700196426902e+26");
    check_format(power_of_two(-1022), "2.2250738585072014e-308");
    check_format(power_of_two(122), "5.316911983139664e+36");
    for (uint64_t exponent = 1; exponent < 2047; exponent++) {
        char text[32];
        double value = from_bits(exponent << 52);
        json_double_format(value, text);
        CHECK(strtod(text, NULL) == value);
    }
}

static void random_doubles_read_back(void)
{
    uint64_t state = 1;
    for (int i = 0; i < 100000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        if ((bits >> 52 & 0x7FF) == 0x7FF) continue;
        char text[32];
        double value = from_bits(bits);
        size_t len = json_double_format(value, text);
        CHECK(len < 26);
        CHECK(strtod(text, NULL) == value);
    }
}

static void format_nan(void *context)
{
    char text[32];
    (void)context;
    json_double_format(from_bits(UINT64_C(0x7FF8000000000000)), text);
}

static void format_infinity(void *context)
{
    char text[32];
    (void)context;
    json_double_format(from_bits(UINT64_C(0x7FF0000000000000)), text);
}

static void bad_lexeme(void *context)
{
    json_number(str_from(context));
}

static void misuse_aborts(void)
{
    static char bad[][4] = {"", "01", "1.", "x", "1 ", "+1"};
    test_aborts(format_nan, NULL);
    test_aborts(format_infinity, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) test_aborts(bad_lexeme, bad[i]);
}

static void lexemes_become_integers_when_they_fit(void)
{
    CHECK_INT(json_number(STR("17")).type, JSON_INT);
    CHECK_INT(json_number(STR("9223372036854775807")).integer, INT64_MAX);
    CHECK_INT(json_number(STR("9223372036854775808")).type, JSON_NUMBER);
    CHECK_INT(json_number(STR("-9223372036854775808")).integer, INT64_MIN);
    CHECK_INT(json_number(STR("1.0")).type, JSON_NUMBER);
    CHECK_INT(json_number(STR("-0")).type, JSON_INT);
    CHECK_INT(json_number(STR("-0.0")).type, JSON_NUMBER);
}

static void doubles_of_values(void)
{
    double value = 0;
    struct json number = json_int(-3);
    CHECK(json_double(&number, &value) && value == -3);
    number = json_number(STR("1.10"));
    CHECK(json_double(&number, &value) && value == 1.1);
    number = json_number(STR("1e400"));
    CHECK(!json_double(&number, &value));
    number = json_number(STR("1e-400"));
    CHECK(json_double(&number, &value) && value == 0);
    number = json_string(STR("1"));
    CHECK(!json_double(&number, &value));
    CHECK(!json_double(NULL, &value));
}

static void equality_is_by_value_and_exact(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } table[] = {
        {"1", "1.0", true},
        {"1", "1.00000", true},
        {"100", "1e2", true},
        {"100", "1E+2", true},
        {"1e2", "0.1e3", true},
        {"1200", "1.2e3", true},
        {"0.012", "12e-3", true},
        {"0.00120", "1.2e-3", true},
        {"0", "-0", true},
        {"0", "0.000", true},
        {"0e5", "-0.0e-7", true},
        {"-5", "-5.0", true},
        {"-5", "5.0", false},
        {"1", "1.0000000000000000000000000001", false},
        {"9007199254740993", "9007199254740992.0", false},
        {"9007199254740993", "9007199254740993.0", true},
        {"12345678901234567890123", "12345678901234567890123", true},
        {"12345678901234567890123", "12345678901234567890124", false},
        {"1e-400", "0", false},
        {"1e-400", "10e-401", true},
        {"1.5", "15", false},
        {"10.1", "1.01e1", true},
        {"101", "1.01e2", true},
        {"1e99999999999999999999", "1e99999999999999999999", true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct json a = json_number(str_from(table[i].a));
        struct json b = json_number(str_from(table[i].b));
        if (json_equal(&a, &b) != table[i].same || json_equal(&b, &a) != table[i].same)
            test_fail(__FILE__, __LINE__, "%s and %s", table[i].a, table[i].b);
    }
}

static struct arena arena;

static void check_canon(struct str text, struct str want)
{
    struct json value, again;
    struct error err = {0};
    struct buf out, second;
    buf_init(&out, JSON_NUMBER_SIZE_MAX + 1);
    buf_init(&second, JSON_NUMBER_SIZE_MAX + 1);
    CHECK_OK(json_parse(text, NULL, &arena, &value, &err), &err);
    json_canon(&out, &value);
    if (want.ptr) CHECK_STR(buf_str(&out), want);
    CHECK_OK(json_parse(buf_str(&out), NULL, &arena, &again, &err), &err); // also at the limits
    CHECK(json_equal(&value, &again));
    CHECK_INT(json_is_integer(&value), json_is_integer(&again));
    json_canon(&second, &again);
    CHECK_STR(buf_str(&second), buf_str(&out));
    buf_release(&out);
    buf_release(&second);
}

// What docs/format/events.md says, from the file that other implementations can read.
static void canonical_vectors(void)
{
    struct json file, value;
    struct error err = {0};
    arena_init(&arena, 4096, SIZE_MAX);
    CHECK_OK(json_parse(test_read_file("test/golden/numbers/canonical.json"), NULL, &arena, &file, &err), &err);
    const struct json *vectors = json_key(&file, "vectors"), *refused = json_key(&file, "refused");
    CHECK(vectors && vectors->count > 60 && refused && refused->count > 8);
    for (uint32_t i = 0; i < vectors->count; i++)
        check_canon(json_text(json_key(&vectors->items[i], "text")),
                    json_text(json_key(&vectors->items[i], "canonical")));
    for (uint32_t i = 0; i < refused->count; i++)
        CHECK(json_parse(refused->items[i].text, NULL, &arena, &value, NULL) != OK);
    arena_release(&arena);
}

static void canonical_form_at_the_limits(void)
{
    static const char *const forms[][2] = {{"", ""},          {"-", ""},      {"0.00000", ""}, {"-0.000000", ""},
                                           {"-", "e-9"},      {"", "e99999"}, {"-7.", "e20"},  {"-0.", "e-999999999"},
                                           {"-1", ".0e9999"}, {"-0.", "e1000000000"}};
    struct buf text;
    arena_init(&arena, 4096, SIZE_MAX);
    buf_init(&text, JSON_NUMBER_SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
        buf_clear(&text);
        buf_text(&text, forms[i][0]);
        for (size_t k = 0; k < JSON_NUMBER_DIGITS_MAX - 2; k++) buf_byte(&text, '7');
        buf_text(&text, forms[i][1]);
        if (i != 7) check_canon(buf_str(&text), (struct str){0});
    }
    buf_release(&text);
    arena_release(&arena);
}

// Logs of before hold numbers as ECMAScript prints doubles: those are canonical as they are, but for the integral ones that
// were reals and are integers there.
static void what_ecmascript_prints_is_canonical(void)
{
    uint64_t state = 3;
    arena_init(&arena, 4096, SIZE_MAX);
    for (int i = 0; i < 100000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        if ((bits >> 52 & 0x7FF) == 0x7FF) continue;
        if (i % 2) bits = (bits & UINT64_C(0x800FFFFFFFFFFFFF)) | (uint64_t)(1023 - 30 + i % 120) << 52;
        char text[32], real[32];
        struct str printed = {text, json_double_format(from_bits(bits), text)};
        check_canon(printed, printed);
        struct str canonical = {real, json_real_format(from_bits(bits), real)};
        check_canon(canonical, canonical);
        arena_reset(&arena);
    }
    arena_release(&arena);
}

static void order_is_exact(void)
{
    static const char *const rising[] = {"-1e400", "-9223372036854775809", "-9223372036854775808", "-1.5", "-1e-400", "0",
                                         "1e-999999999", "0.1", "0.1000000000000000055511151231257827", "1",
                                         "9007199254740992", "9007199254740992.5", "9007199254740993",
                                         "9223372036854775807", "9223372036854775808", "1e30", "1e400", "1e999999999"};
    for (size_t i = 0; i < ARRAY_COUNT(rising); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(rising); k++) {
            struct json a = json_number(str_from(rising[i])), b = json_number(str_from(rising[k]));
            CHECK_INT(json_number_cmp(&a, &b), (i > k) - (i < k));
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(rfc_8785_appendix_b), TEST(forms_of_ecmascript),
        TEST(powers_of_two),       TEST(random_doubles_read_back),
        TEST(misuse_aborts),       TEST(lexemes_become_integers_when_they_fit),
        TEST(doubles_of_values),   TEST(equality_is_by_value_and_exact),
        TEST(canonical_vectors),   TEST(canonical_form_at_the_limits),
        TEST(order_is_exact),      TEST(what_ecmascript_prints_is_canonical),
    };
    return test_main("json_number", tests, ARRAY_COUNT(tests), argc, argv);
}
