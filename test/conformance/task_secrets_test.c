#include "conformance/task_suite.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void prepare(void)
{
    char path[700];
    setenv("SUITE_TOKEN", TASK_SUITE_SECRET, 1);
    snprintf(path, sizeof(path), "%s/secret", test_dir());
    test_write_file(path, STR(TASK_SUITE_SECRET "\n"));
}

static const struct task_case secrets = {
    .kind = "secrets",
    .prepare = prepare,
    .ok = "{\"provider\":\"env\",\"secret_name\":\"SUITE_TOKEN\"}",
    .ok_result = "value=\"\\u0001secret:env:SUITE_TOKEN\\u0001\"",
    .fails = "{\"provider\":\"env\",\"name\":\"SUITE_NO_SUCH_VARIABLE\"}",
    .fails_kind = "auth",
};

static void the_value_is_put_where_the_mark_stands(void)
{
    task_begin(&secrets, NULL);
    struct json outcome = task_do("{\"provider\":\"file\",\"name\":\"@DIR@/secret\"}");
    task_is(&outcome, "status", "\"ok\"");
    CHECK(!strstr(task_text(&outcome, "").ptr, TASK_SUITE_SECRET));
    outcome = task_do_kind(
        "python",
        "{\"input\":{\"t\":\"Bearer \\u0001secret:env:SUITE_TOKEN\\u0001\"},\"code\":\"result = [len(t), t]\"}");
    task_is(&outcome, "result", "[26,\"Bearer ***\"]");
    outcome = task_do("{\"provider\":\"aws\",\"name\":\"x\"}");
    task_is(&outcome, "error.kind", "\"auth\"");
    outcome = task_do("{}");
    task_is(&outcome, "error.code", "\"SECRET_NAME_MISSING\"");
    task_end();
}

static void keychains_have_many_kinds(void)
{
    static const char chain[] =
        "[{\"name\":\"e\",\"kind\":\"env\",\"map\":{\"token\":\"SUITE_TOKEN\"}},"
        "{\"name\":\"m\",\"kind\":\"secret_manager\",\"provider\":\"file\",\"map\":{\"p\":\"@DIR@/secret\"}},"
        "{\"name\":\"g\",\"kind\":\"secret_manager\",\"provider\":\"gcp\",\"map\":{\"p\":\"projects/1/secrets/x\"}},"
        "{\"name\":\"loop\",\"kind\":\"static\",\"map\":{\"a\":\"\\u0001keychain:loop.a\\u0001\"}},"
        "{\"name\":\"s\",\"kind\":\"static\",\"map\":{\"port\":5432,\"host\":\"db.example\"}}]";
    static const char *const good[] = {"e.token", "m.p", "e"};
    static const char *const bad[] = {"g.p", "loop.a", "s.none", "nobody"};
    task_begin(&secrets, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        char with[300];
        snprintf(with, sizeof(with),
                 "{\"provider\":\"env\",\"name\":\"SUITE_TOKEN\",\"input\":{\"x\":\"\\u0001keychain:%s\\u0001\"}}",
                 good[i]);
        struct json outcome = task_do_in(with, chain, 0);
        task_is(&outcome, "status", "\"ok\"");
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        char with[300];
        snprintf(with, sizeof(with),
                 "{\"provider\":\"env\",\"name\":\"SUITE_TOKEN\",\"input\":{\"x\":\"\\u0001keychain:%s\\u0001\"}}",
                 bad[i]);
        struct json outcome = task_do_in(with, chain, 0);
        task_is(&outcome, "error.kind", "\"auth\"");
    }
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(the_value_is_put_where_the_mark_stands), TEST(keychains_have_many_kinds)};
    struct task_case whole = secrets;
    whole.more = more;
    whole.more_count = ARRAY_COUNT(more);
    return task_suite(&whole, argc, argv);
}
