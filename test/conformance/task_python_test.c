#include "conformance/task_suite.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

static const struct task_case python = {
    .kind = "python",
    .ok = "{\"input\":{\"a\":2,\"b\":[1]},\"code\":\"result = {'sum': a + b[0], 'all': input_data}\"}",
    .ok_result = "{\"sum\":3,\"all\":{\"a\":2,\"b\":[1]}}",
    .fails = "{\"code\":\"raise ValueError('no')\"}",
    .fails_kind = "transform",
    .slow = "{\"code\":\"import time\\ntime.sleep(60)\"}",
    .big = "{\"code\":\"result = ['x' * 1000] * 2000\"}",
    .bytes = "{\"code\":\"result = [b'\\\\xff\\\\xfe', '\\\\ud800']\"}",
    .secret =
        "{\"input\":{\"p\":\"@SECRET@\"},\"code\":\"print(p)\\nresult = {'p': p, 'also': [p[::-1], 'x' + p + 'y']}\"}",
    .mark = "{\"code\":\"result = '\\\\x01keychain:suite.password\\\\x01'\"}",
    .more = NULL,
};

static void check(const char *with, const char *path, const char *json)
{
    struct json outcome = task_do(with);
    task_is(&outcome, path, json);
}

static void results_come_in_three_ways(void)
{
    task_begin(&python, NULL);
    check("{\"code\":\"result = 5\"}", "result", "5");
    check("{\"input\":{\"n\":4},\"code\":\"def main(n, m=1):\\n    return n + m\"}", "result", "5");
    check("{\"input\":{\"n\":4},\"code\":\"n = n + 1\\nif n == 5:\\n    return {'n': n}\\nreturn None\"}", "result",
          "{\"n\":5}");
    check("{\"input\":{\"n\":4},\"code\":\"if n == 5:\\n    return 1\\nresult = n\"}", "result", "4");
    check("{\"input\":{\"n\":4},\"code\":\"def main(input_data):\\n    return input_data\"}", "result", "{\"n\":4}");
    check("{\"input\":{\"n\":4},\"code\":\"def main(**rest):\\n    return rest\"}", "result", "{\"n\":4}");
    check("{\"code\":\"async def main():\\n    return 3\"}", "result", "3");
    check("{\"code\":\"x = 1\"}", "result", "null");
    check("{\"code\":\"s = '''a\\n  b'''\\nreturn s\"}", "result", "\"a\\n  b\""); // no line of it is indented
    task_end();
}

static void inputs_are_variables_and_input_data(void)
{
    task_begin(&python, NULL);
    check("{\"code\":\"result = input_data.get('x', 'none')\"}", "result", "\"none\"");
    check("{\"args\":{\"x\":1},\"code\":\"result = [x, input_data['x']]\"}", "result", "[1,1]");
    check("{\"input\":{\"input_data\":{\"y\":2},\"x\":1},\"code\":\"result = input_data\"}", "result", "{\"y\":2}");
    check("{\"input\":{\"not a name\":1,\"class\":2},\"code\":\"result = sorted(input_data)\"}", "result",
          "[\"class\",\"not a name\"]");
    check("{\"code\":\"result = execution_id\"}", "result", "\"e-1\"");
    check("{\"libs\":{\"js\":\"json\",\"path\":\"os.path\"},\"code\":\"result = js.dumps([path.basename('/a/b')])\"}",
          "result", "\"[\\\"b\\\"]\"");
    check("{\"libs\":[\"math\"],\"code\":\"result = math.floor(1.5)\"}", "result", "1");
    task_end();
}

static void values_that_json_does_not_know_become_ones_it_does(void)
{
    task_begin(&python, NULL);
    check("{\"code\":\"import datetime, decimal\\nresult = [datetime.date(2026, 1, 2), decimal.Decimal('1.5'), {1: 2}, "
          "(1, 2), float('nan'), "
          "b'ab', 2 ** 70]\"}",
          "result", "[\"2026-01-02\",1.5,{\"1\":2},[1,2],null,\"ab\",1180591620717411303424]");
    task_end();
}

static void numbers_are_exact_both_ways(void)
{
    static const char numbers[] = "[9223372036854775808,-9223372036854775809,1000000000000000000000000000000,0.1,1.0,-0.0,"
                                  "100.0,1e+400,1e+999999999,0.1000000000000000055511151231257827,1e-400,5e-324]";
    char with[1024];
    task_begin(&python, NULL);
    snprintf(with, sizeof(with), "{\"input\":{\"n\":%s},\"code\":\"import copy\\nresult = copy.deepcopy(n)\"}", numbers);
    check(with, "result", numbers);
    check("{\"input\":{\"n\":0.1000000000000000055511151231257827},\"code\":\"result = [n + 1, isinstance(n, float)]\"}",
          "result", "[1.1,true]");
    check("{\"input\":{\"n\":1e400},\"code\":\"result = n * 1.5\"}", "error.code", "\"TypeError\"");
    check("{\"code\":\"import decimal\\nresult = [decimal.Decimal(t) for t in ('1.10', '5', '1E+2', 'NaN', "
          "'0.1000000000000000055511151231257827')]\"}",
          "result", "[1.1,5,100.0,null,0.1000000000000000055511151231257827]");
    check("{\"code\":\"result = 10 ** 4299\"}", "status", "\"ok\"");
    check("{\"code\":\"result = 10 ** 4300\"}", "error.code", "\"ValueError\"");
    check("{\"code\":\"result = 10 ** 1000000\"}", "error.code", "\"ValueError\"");
    task_end();
}

static void exceptions_say_what_they_are(void)
{
    task_begin(&python, NULL);
    struct json outcome = task_do("{\"code\":\"x = 1\\nraise KeyError('gone')\"}");
    task_is(&outcome, "error.code", "\"KeyError\"");
    task_is(&outcome, "py.exception_type", "\"KeyError\"");
    CHECK(strstr(task_text(&outcome, "py.traceback").ptr, "line 2"));
    outcome = task_do("{\"code\":\"raise TimeoutError('late')\"}");
    task_is(&outcome, "error.kind", "\"timeout\"");
    task_is(&outcome, "error.retryable", "true");
    outcome = task_do("{\"code\":\"def f(:\"}");
    task_is(&outcome, "error.kind", "\"parse\"");
    outcome = task_do("{\"code\":\"import os, signal\\nos.kill(os.getpid(), signal.SIGKILL)\"}");
    task_is(&outcome, "error.code", "\"KILLED_BY_SIGNAL\"");
    outcome = task_do("{\"code\":\"import sys\\nsys.exit(3)\"}");
    task_is(&outcome, "error.code", "\"EXIT_NONZERO\"");
    outcome = task_do("{\"input\":{\"x\":1}}");
    task_is(&outcome, "error.code", "\"CODE_MISSING\"");
    task_end();
}

static void what_is_printed_is_the_log_and_not_the_result(void)
{
    task_begin(&python, NULL);
    check("{\"code\":\"import sys\\nprint('hello')\\nprint('oops', file=sys.stderr)\\nresult = 1\"}", "result", "1");
    CHECK(strstr(task_lines().ptr, "out hello\n") && strstr(task_lines().ptr, "err oops\n"));
    task_end();
}

static void scripts_come_from_files(void)
{
    char path[700];
    task_begin(&python, NULL);
    snprintf(path, sizeof(path), "%s/job.py", test_dir());
    test_write_file(path, STR("def main(n):\n    return {'twice': n * 2}\n"));
    check("{\"input\":{\"n\":4},\"script\":{\"uri\":\"job.py\",\"source\":{\"type\":\"file\"}}}", "result.twice", "8");
    check("{\"input\":{\"n\":4},\"script\":{\"uri\":\"file://@DIR@/job.py\"}}", "result.twice", "8");
    check("{\"script\":{\"uri\":\"gone.py\",\"source\":{\"type\":\"file\"}}}", "error.kind", "\"not_found\"");
    task_end();
}

static void a_mark_in_the_code_is_text(void)
{
    task_begin(&python, NULL);
    check("{\"code\":\"result = len('''\\u0001keychain:suite.password\\u0001''')\"}", "result", "25");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(results_come_in_three_ways),
                                       TEST(inputs_are_variables_and_input_data),
                                       TEST(values_that_json_does_not_know_become_ones_it_does),
                                       TEST(numbers_are_exact_both_ways),
                                       TEST(exceptions_say_what_they_are),
                                       TEST(what_is_printed_is_the_log_and_not_the_result),
                                       TEST(scripts_come_from_files),
                                       TEST(a_mark_in_the_code_is_text)};
    struct task_case whole = python;
    whole.more = more;
    whole.more_count = ARRAY_COUNT(more);
    return task_suite(&whole, argc, argv);
}
