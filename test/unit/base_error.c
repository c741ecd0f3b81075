// Errors keep the first failure, take context in front and never overflow; invariants abort.
#include "base/error.h"
#include "harness/test.h"

#include <string.h>

static void first_failure_is_kept(void)
{
    struct error err = {0};
    CHECK_INT(error_set(&err, E_IO, "cannot write %s", "x"), E_IO);
    CHECK_INT(error_set(&err, E_NOMEM, "later"), E_NOMEM);
    CHECK_INT(error_at(&err, E_INVALID, 3, 4, "later still"), E_INVALID);
    CHECK_INT(err.code, E_IO);
    CHECK_TEXT(err.message, "cannot write x");
    CHECK_INT(err.line, 0);
}

static void position_is_kept(void)
{
    struct error err = {0};
    CHECK_INT(error_at(&err, E_INVALID, 3, 14, "bad %d", 1), E_INVALID);
    error_wrap(&err, "plan %s", "p.yaml");
    CHECK_TEXT(err.message, "plan p.yaml: bad 1");
    CHECK_INT(err.line, 3);
    CHECK_INT(err.column, 14);
}

static void nobody_listening_is_fine(void)
{
    CHECK_INT(error_set(NULL, E_FULL, "x"), E_FULL);
    CHECK_INT(error_at(NULL, E_FULL, 1, 1, "x"), E_FULL);
    error_wrap(NULL, "x");
    struct error err = {0};
    error_wrap(&err, "context without a failure");
    CHECK_TEXT(err.message, "");
}

static void long_messages_are_cut_between_characters(void)
{
    char text[600];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'a', sizeof(text));
        for (size_t i = shift; i + 3 < sizeof(text); i += 3) memcpy(text + i, "\xE2\x82\xAC", 3);
        text[sizeof(text) - 1] = '\0';
        struct error err = {0};
        (void)error_set(&err, E_INVALID, "%s", text);
        CHECK(strlen(err.message) >= sizeof(err.message) - 3);
        CHECK(str_utf8(str_from(err.message)));
        error_wrap(&err, "%s", "in front");
        CHECK(strlen(err.message) >= sizeof(err.message) - 3);
        CHECK(str_utf8(str_from(err.message)));
        CHECK(str_starts(str_from(err.message), STR("in front: ")));
        error_wrap(&err, "%s", text);
        CHECK(str_utf8(str_from(err.message)));
    }
}

static void codes_have_names(void)
{
    CHECK_TEXT(code_name(OK), "OK");
    CHECK_TEXT(code_name(E_NOT_FOUND), "NOT_FOUND");
    CHECK_TEXT(code_text(E_LOCKED), "held by another process");
    CHECK_TEXT(code_name((enum code)99), "UNKNOWN");
    CHECK_TEXT(code_text((enum code)99), "unknown code");
    CHECK_INT(E_NOMEM, 1);
    CHECK_INT(E_UNSUPPORTED, 17);
    CHECK_INT(E_UNREACHABLE, 18);
    CHECK_INT(E_AWAY, 19);
}

static void break_invariant(void *context)
{
    INVARIANT(context == NULL && "on purpose");
}

static void broken_invariant_aborts(void)
{
    break_invariant(NULL);
    int something = 0;
    test_aborts(break_invariant, &something);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(first_failure_is_kept),    TEST(position_is_kept),
        TEST(nobody_listening_is_fine), TEST(long_messages_are_cut_between_characters),
        TEST(codes_have_names),         TEST(broken_invariant_aborts),
    };
    return test_main("base_error", tests, ARRAY_COUNT(tests), argc, argv);
}
