// Where there is no duckdb, sqlite3 stands in for it: it takes the same options and prints the same.
#include "conformance/task_suite.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void prepare(void)
{
    char path[700], text[1000];
    if (system("command -v duckdb >/dev/null 2>&1") == 0) return;
    if (system("command -v sqlite3 >/dev/null 2>&1") != 0) test_skip("neither duckdb nor sqlite3 is installed");
    snprintf(path, sizeof(path), "%s/bin", test_dir());
    mkdir(path, 0755);
    snprintf(text, sizeof(text), "%s:%s", path, getenv("PATH"));
    setenv("PATH", text, 1);
    snprintf(path, sizeof(path), "%s/bin/duckdb", test_dir());
    test_write_file(path, STR("#!/bin/sh\nsed '/^SET memory_limit=/d' | sqlite3 \"$@\"\n"));
    chmod(path, 0755);
}

static struct task_case duckdb = {
    .kind = "duckdb",
    .prepare = prepare,
    .ok = "{\"database\":\":memory:\",\"query\":\"create table u (name varchar, age integer); insert into u values "
          "('A', 30), ('B', 25); "
          "select 1 as x; select name, age from u where age >= 30;\"}",
    .ok_result = "[{\"name\":\"A\",\"age\":30}]",
    .fails = "{\"commands\":[\"select * from no_such_table\"]}",
    .fails_kind = "schema",
    .secret = "{\"query\":\"select '@SECRET@' as p\"}",
};

static void nothing_selected_is_no_row(void)
{
    task_begin(&duckdb, NULL);
    struct json outcome = task_do("{\"commands\":[\"create table t (a integer)\",\"insert into t values (1)\"]}");
    task_is(&outcome, "result", "[]");
    outcome = task_do("{}");
    task_is(&outcome, "error.code", "\"SQL_MISSING\"");
    task_end();
}

// A directory with only a python3 in it comes instead of PATH.
static void only_python(void)
{
    char dir[700], line[2000];
    snprintf(dir, sizeof(dir), "%s/only", test_dir());
    mkdir(dir, 0755);
    snprintf(line, sizeof(line),
             "python3 -c 'import sys; print(\"#!/bin/sh\\nexec\", sys.executable, \"\\\"$@\\\"\")' >'%s/python3' && "
             "chmod +x '%s/python3'",
             dir, dir);
    CHECK(system(line) == 0);
    setenv("PATH", dir, 1);
}

static void without_the_program_the_library_of_python_does_the_same(void)
{
    if (system("python3 -c 'import duckdb' >/dev/null 2>&1") != 0) test_skip("python3 has no module duckdb");
    task_begin(&duckdb, NULL);
    only_python();
    struct json outcome = task_do(duckdb.ok);
    task_is(&outcome, "result", duckdb.ok_result);
    outcome = task_do(duckdb.fails);
    task_is(&outcome, "error.kind", "\"schema\"");
    outcome = task_do("{\"query\":\"select 1.50::decimal(4,2) as d, date '2026-01-02' as day, [1, 2] as l\"}");
    task_is(&outcome, "result", "[{\"d\":1.5,\"day\":\"2026-01-02\",\"l\":[1,2]}]");
    outcome = task_do("{\"query\":\"select 170141183460469231731687303715884105727::hugeint as h, "
                      "0.12345678901234567890123456789::decimal(38,30) as d, 1.0::double as f\"}");
    task_is(&outcome, "result",
            "[{\"h\":170141183460469231731687303715884105727,\"d\":0.12345678901234567890123456789,\"f\":1.0}]");
    outcome = task_do("{\"commands\":[\"create table t (a integer)\",\"insert into t values (1)\"]}");
    task_is(&outcome, "result", "[]");
    task_end();
}

static void without_the_program_and_the_library_it_says_so(void)
{
    bool library = system("python3 -c 'import duckdb' >/dev/null 2>&1") == 0;
    task_begin(&duckdb, NULL);
    if (library)
        setenv("PATH", "/nowhere", 1);
    else
        only_python();
    struct json outcome = task_do("{\"query\":\"select 1\"}");
    task_is(&outcome, "error.code", "\"DUCKDB_NOT_INSTALLED\"");
    setenv("PATH", "/nowhere", 1);
    outcome = task_do("{\"query\":\"select 1\"}");
    task_is(&outcome, "error.code", "\"DUCKDB_NOT_INSTALLED\"");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(nothing_selected_is_no_row),
                                       TEST(without_the_program_the_library_of_python_does_the_same),
                                       TEST(without_the_program_and_the_library_it_says_so)};
    duckdb.more = more;
    duckdb.more_count = ARRAY_COUNT(more);
    return task_suite(&duckdb, argc, argv);
}
