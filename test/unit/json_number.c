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
    CHECK_INT(json_number(STR("-0")).type, JSON_NUMBER);
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

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(rfc_8785_appendix_b), TEST(forms_of_ecmascript),
        TEST(powers_of_two),       TEST(random_doubles_read_back),
        TEST(misuse_aborts),       TEST(lexemes_become_integers_when_they_fit),
        TEST(doubles_of_values),   TEST(equality_is_by_value_and_exact),
    };
    return test_main("json_number", tests, ARRAY_COUNT(tests), argc, argv);
}
