#include "conformance/task_suite.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

static struct task_case sqlite = {
    .kind = "sqlite",
    .ok = "{\"database\":\":memory:\",\"commands\":\"create table t (a, b); insert into t values (1, 'x'), (2.5, "
          "null); select * from t\"}",
    .ok_result =
        "command_2={\"status\":\"success\",\"rows\":[{\"a\":1,\"b\":\"x\"},{\"a\":2.5,\"b\":null}],\"row_count\":2,"
        "\"columns\":[\"a\",\"b\"]}",
    .fails = "{\"command\":\"create table t (a primary key); insert into t values (1), (1)\"}",
    .fails_kind = "db_constraint",
    .slow = "{\"query\":\"with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r\"}",
    .big = "{\"query\":\"select hex(zeroblob(1000000)) as x\"}",
    .bytes = "{\"query\":\"select x'fffe' as x\"}",
    .secret = "{\"query\":\"select '@SECRET@' as p\"}",
    .mark = "{\"query\":\"select char(1) || 'keychain:suite.password' || char(1) as m\"}",
};

static void check(const char *with, const char *path, const char *json)
{
    struct json outcome = task_do(with);
    task_is(&outcome, path, json);
}

static void numbers_are_exact_or_refused(void)
{
    task_begin(&sqlite, NULL);
    check("{\"query\":\"select ? as a, ? as b, ? as c, ? as d, 9e999 as e\",\"params\":[9223372036854775807,-9223372036854775808,"
          "1.0,0.1]}",
          "result.command_0.rows",
          "[{\"a\":9223372036854775807,\"b\":-9223372036854775808,\"c\":1.0,\"d\":0.1,\"e\":null}]");
    check("{\"query\":\"select ? as a\",\"params\":[9223372036854775808]}", "error.code", "\"NUMBER_TOO_LARGE\"");
    check("{\"query\":\"select ? as a\",\"params\":[1e400]}", "error.code", "\"NUMBER_TOO_LARGE\"");
    task_end();
}

static void files_last_and_parameters_are_bound(void)
{
    task_begin(&sqlite, NULL);
    check("{\"database\":\"data.db\",\"command\":\"create table t (a, b); -- done; \\n insert into t values (?, "
          "?)\",\"params\":[1,\"o'x\"]}",
          "result.command_1.row_count", "1");
    check("{\"database\":\"@DIR@/data.db\",\"query\":\"select b from t where a = :a\",\"params\":{\"a\":1}}",
          "result.command_0.rows", "[{\"b\":\"o'x\"}]");
    check("{\"database\":\"data.db\",\"query\":\"select :b\",\"params\":{\"a\":1}}", "error.code",
          "\"PARAMETER_MISSING\"");
    check("{\"database\":\"data.db\",\"transaction\":true,\"command\":\"insert into t values (2, 2); insert into "
          "nowhere values (1)\"}",
          "error.kind", "\"schema\"");
    check("{\"database\":\"data.db\",\"query\":\"select count(*) as n from t\"}", "result.command_0.rows.0.n", "1");
    check("{\"database\":\"no/such/dir/data.db\",\"query\":\"select 1\"}", "error.kind", "\"not_found\"");
    task_end();
}

static void confined(struct task_options *options)
{
    static const struct tool_confinement confinement = {.level = TOOL_LEVEL_BASIC};
    options->confinement = &confinement;
}

static void confined_it_opens_files_of_the_task_only(void)
{
    task_begin(&sqlite, confined);
    check("{\"database\":\"here.db\",\"query\":\"select 1 as a\"}", "status", "\"ok\"");
    check("{\"database\":\"/etc/passwd\",\"query\":\"select 1\"}", "error.code", "\"FILE_NOT_ALLOWED\"");
    check("{\"database\":\"../outside.db\",\"query\":\"select 1\"}", "error.code", "\"FILE_NOT_ALLOWED\"");
    check("{\"database\":\"here.db\",\"query\":\"attach '/tmp/other.db' as o\"}", "status", "\"error\"");
    check("{\"database\":\"here.db\",\"query\":\"vacuum into '/tmp/other.db'\"}", "status", "\"error\"");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(files_last_and_parameters_are_bound),
                                       TEST(numbers_are_exact_or_refused),
                                       TEST(confined_it_opens_files_of_the_task_only)};
    sqlite.more = more;
    sqlite.more_count = ARRAY_COUNT(more);
    return task_suite(&sqlite, argc, argv);
}
