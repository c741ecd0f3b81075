#include "conformance/pg_cluster.h"
#include "conformance/task_suite.h"
#include "json/json.h"

static void prepare(void)
{
    if (!pg_cluster.pid) test_skip("Postgres is not installed here");
    setenv("PGHOST", pg_cluster.dir, 1);
    setenv("PGUSER", "postgres", 1);
}

static struct task_case postgres = {
    .kind = "postgres",
    .prepare = prepare,
    .ok = "{\"query\":\"select 1 as a, 'x' as b\"}",
    .ok_result = "{\"command_0\":{\"status\":\"success\",\"rows\":[{\"a\":1,\"b\":\"x\"}],\"row_count\":1,\"columns\":["
                 "\"a\",\"b\"]}}",
    .fails = "{\"command\":\"create temp table t (a int primary key); insert into t values (1), (1)\"}",
    .fails_kind = "db_constraint",
    .slow = "{\"command\":\"select pg_sleep(60)\"}",
    .big = "{\"command\":\"select repeat('x', 2000000) as x\"}",
    .bytes = "{\"command\":\"select '\\\\xff'::bytea as x\"}",
    .secret = "{\"command\":\"select '@SECRET@' as p\"}",
    .mark = "{\"command\":\"select E'\\\\x01keychain:suite.password\\\\x01' as m\"}",
};

static void check(const char *with, const char *path, const char *json)
{
    struct json outcome = task_do(with);
    task_is(&outcome, path, json);
}

static void statements_are_told_apart(void)
{
    task_begin(&postgres, NULL);
    struct json outcome = task_do("{\"command\":\"-- first; not a statement\\nselect 'a;b' as x; /* a ; /* nested ; */ "
                                  "*/ select $q$c;d$q$ as x;\\n;;"
                                  "select E'e\\\\';f' as \\\"a;b\\\"; do $$ begin perform 1; end $$; -- last;\\n\"}");
    task_is(&outcome, "result.command_0.rows", "[{\"x\":\"a;b\"}]");
    task_is(&outcome, "result.command_1.rows", "[{\"x\":\"c;d\"}]");
    task_is(&outcome, "result.command_2.rows", "[{\"a;b\":\"e';f\"}]");
    task_is(&outcome, "result.command_3.rows", "[]");
    CHECK(!json_at(&outcome, STR("result.command_4")));
    outcome = task_do("{\"commands\":[\"select 1 as a\",\"select 2 as a; select 3 as a\"]}");
    task_is(&outcome, "result.command_2.rows.0.a", "3");
    check("{\"command\":\" -- nothing\"}", "error.code", "\"SQL_MISSING\"");
    check("{\"auth\":{\"user\":\"postgres\"}}", "error.message",
          "\"no SQL command provided: postgres needs command, commands or query\"");
    task_end();
}

static void values_keep_their_types(void)
{
    task_begin(&postgres, NULL);
    check("{\"query\":\"select 1::int2 as i, 9007199254740993::int8 as l, 1.50::numeric as n, 0.1::float8 as f, true "
          "as b, null as z,"
          " '{\\\"k\\\":[1,null]}'::jsonb as j, array[1,2] as ai, array['a','b c',null,'d\\\"e'] as at, date "
          "'2026-01-02' as d,"
          " 'NaN'::float8 as nan, timestamp '2026-01-02 03:04:05' as t\"}",
          "result.command_0.rows.0",
          "{\"i\":1,\"l\":9007199254740993,\"n\":1.50,\"f\":0.1,\"b\":true,\"z\":null,\"j\":{\"k\":[1,null]},\"ai\":[1,"
          "2],"
          "\"at\":[\"a\",\"b c\",null,\"d\\\"e\"],\"d\":\"2026-01-02\",\"nan\":null,\"t\":\"2026-01-02 03:04:05\"}");
    check("{\"query\":\"select 1 as a, 2 as a\"}", "result.command_0.rows", "[{\"a\":2}]");
    check("{\"query\":\"select 1::float8 as f, '-9223372036854775808'::int8 as l, 10::numeric ^ 100 as n, $1::numeric as p, "
          "$2::jsonb as j, 0.1000000000000000055511151231257827 as d\",\"params\":[1000000000000000000000000000000.25,"
          "{\"k\":[1e400,9007199254740993,1.0]}]}",
          "result.command_0.rows.0",
          "{\"f\":1.0,\"l\":-9223372036854775808,\"n\":1"
          "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000.0,"
          "\"p\":1000000000000000000000000000000.25,\"j\":{\"k\":[1"
          "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
          "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
          "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
          "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000,9007199254740993,"
          "1.0]},\"d\":0.1000000000000000055511151231257827}");
    task_end();
}

static void parameters_are_bound_and_never_part_of_the_text(void)
{
    task_begin(&postgres, NULL);
    check("{\"query\":\"select $1::text as a, $2::int + 1 as b\",\"params\":[\"'; drop table x; --\",41]}",
          "result.command_0.rows.0", "{\"a\":\"'; drop table x; --\",\"b\":42}");
    check("{\"query\":\"select :a::int as x, ':a' as y, %(b)s::jsonb as z, :a::int as "
          "again\",\"params\":{\"a\":7,\"b\":{\"k\":[1]}}}",
          "result.command_0.rows.0", "{\"x\":7,\"y\":\":a\",\"z\":{\"k\":[1]},\"again\":7}");
    check("{\"query\":\"select %s::int %% 2 as x, '5%%' as p\",\"params\":[3]}", "result.command_0.rows.0.p", "\"5%\"");
    check("{\"query\":\"select '5%%' as p\"}", "result.command_0.rows.0.p", "\"5%%\"");
    check("{\"query\":\"select %s::int as x; select %s::int as x\",\"params\":[1,2]}", "result.command_1.rows.0.x",
          "2");
    check("{\"query\":\"select %(none)s\",\"params\":{\"a\":1}}", "error.code", "\"PARAMETER_MISSING\"");
    task_end();
}

static void errors_have_their_sqlstate_and_kind(void)
{
    static const struct {
        const char *sql, *state, *kind;
    } cases[] = {{"selec 1", "42601", "parse"},
                 {"select * from no_such_table", "42P01", "not_found"},
                 {"select 1/0", "22012", "schema"},
                 {"do $$ begin raise exception 'x' using errcode = '40P01'; end $$", "40P01", "db_deadlock"},
                 {"set statement_timeout = 50; select pg_sleep(5)", "57014", "db_timeout"}};
    task_begin(&postgres, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char with[300], want[40];
        snprintf(with, sizeof(with), "{\"command\":\"%s\"}", cases[i].sql);
        struct json outcome = task_do(with);
        snprintf(want, sizeof(want), "\"%s\"", cases[i].state);
        task_is(&outcome, "pg.sqlstate", want);
        task_is(&outcome, "pg.code", want);
        snprintf(want, sizeof(want), "\"%s\"", cases[i].kind);
        task_is(&outcome, "error.kind", want);
    }
    check("{\"auth\":{\"host\":\"127.0.0.1\",\"port\":1},\"command\":\"select 1\"}", "error.kind", "\"db_connection\"");
    check("{\"auth\":{\"dbname\":\"nowhere\"},\"command\":\"select 1\"}", "error.kind", "\"not_found\"");
    check("{\"auth\":\"pg_k8s\",\"command\":\"select 1\"}", "error.kind", "\"auth\"");
    check("{\"command\":\"copy (select 1) to stdout\"}", "error.code", "\"COPY_NOT_SUPPORTED\"");
    task_end();
}

static void a_session_leaves_nothing_behind(void)
{
    task_begin(&postgres, NULL);
    check("{\"command\":\"create temp table here (a int); set search_path = nowhere; begin\"}", "status", "\"ok\"");
    for (int i = 0; i < 4; i++) check("{\"command\":\"select * from here\"}", "pg.sqlstate", "\"42P01\"");
    check("{\"command\":\"create table whole (a int primary key); insert into whole values (1)\"}", "status", "\"ok\"");
    check("{\"transaction\":true,\"command\":\"insert into whole values (2); insert into whole values (1)\"}",
          "error.kind", "\"db_constraint\"");
    check("{\"command\":\"select count(*) as n from whole\"}", "result.command_0.rows.0.n", "1");
    check("{\"command\":\"drop table whole\"}", "status", "\"ok\"");
    task_end();
}

static void with_credentials(struct task_options *options)
{
    static struct arena arena;
    struct error err = {0};
    char text[600];
    arena_init(&arena, 4096, 1 << 20);
    snprintf(text, sizeof(text),
             "{\"pg_k8s\":{\"type\":\"postgres\",\"data\":{\"db_host\":\"%s\",\"db_user\":\"postgres\",\"db_name\":"
             "\"postgres\","
             "\"db_password\":{\"secret\":\"env:SUITE_PASSWORD\"}}}}",
             pg_cluster.dir);
    setenv("SUITE_PASSWORD", TASK_SUITE_SECRET, 1);
    CHECK_OK(json_parse(arena_copy(&arena, str_from(text)), NULL, &arena, &options->credentials, &err), &err);
}

static void with_policy(struct task_options *options)
{
    static struct arena arena;
    struct fetch_policy *policy;
    struct error err = {0};
    with_credentials(options);
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(fetch_policy_parse(NULL, &arena, &policy, &err), &err);
    options->policy = policy;
}

static void credentials_are_found_by_name(void)
{
    unsetenv("PGHOST");
    task_begin(&postgres, with_credentials);
    unsetenv("PGHOST");
    check("{\"auth\":\"pg_k8s\",\"query\":\"select '" TASK_SUITE_SECRET "' as p\"}", "result.command_0.rows.0.p",
          "\"***\"");
    check("{\"auth\":{\"pg\":{\"type\":\"postgres\",\"key\":\"pg_k8s\"}},\"query\":\"select 1 as a\"}",
          "result.command_0.rows.0.a", "1");
    task_end();
}

static void a_service_reaches_what_it_was_told_about_only(void)
{
    task_begin(&postgres, with_policy);
    check("{\"auth\":\"pg_k8s\",\"query\":\"select 1 as a\"}", "status", "\"ok\"");
    check("{\"query\":\"select 1 as a\"}", "error.code", "\"CREDENTIAL_NEEDED\"");
    check("{\"auth\":\"pg_k8s\",\"host\":\"10.0.0.1\",\"query\":\"select 1\"}", "error.code", "\"CREDENTIAL_NEEDED\"");
    check("{\"auth\":{\"key\":\"pg_k8s\",\"host\":\"10.0.0.1\"},\"query\":\"select 1\"}", "error.code",
          "\"CREDENTIAL_NEEDED\"");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(statements_are_told_apart),
                                       TEST(values_keep_their_types),
                                       TEST(parameters_are_bound_and_never_part_of_the_text),
                                       TEST(errors_have_their_sqlstate_and_kind),
                                       TEST(a_session_leaves_nothing_behind),
                                       TEST(credentials_are_found_by_name),
                                       TEST(a_service_reaches_what_it_was_told_about_only)};
    postgres.more = more;
    postgres.more_count = ARRAY_COUNT(more);
    if (!pg_cluster_start(false)) pg_cluster.pid = 0;
    return task_suite(&postgres, argc, argv);
}
