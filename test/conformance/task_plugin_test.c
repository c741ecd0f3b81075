#include "conformance/task_suite.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char dir[600];

static void prepare(void)
{
    char path[700];
    snprintf(dir, sizeof(dir), "%s/plugins", test_dir());
    mkdir(dir, 0755);
    snprintf(path, sizeof(path), "%s/greet", dir);
    test_write_file(path, STR("#!/usr/bin/env python3\n"
                              "import json, sys, time\n"
                              "job = json.load(sys.stdin)\n"
                              "w = job['with']\n"
                              "print('called by', job['step'], file=sys.stderr)\n"
                              "if 'sleep' in w: time.sleep(w['sleep'])\n"
                              "if 'exit' in w: sys.exit(w['exit'])\n"
                              "if 'raw' in w: sys.stdout.buffer.write(bytes(w['raw']))\n"
                              "elif 'fail' in w: print(json.dumps({'status': 'error', 'error': {'kind': 'rate_limit', "
                              "'code': 'SLOW', 'message': 'no'}}))\n"
                              "elif 'outcome' in w: print(json.dumps({'status': 'ok', 'result': w['outcome']}))\n"
                              "else: print(json.dumps({'hello': w.get('who'), 'fill': 'x' * w.get('fill', 0)}))\n"));
    chmod(path, 0755);
}

static struct task_case plugin = {
    .kind = "greet",
    .prepare = prepare,
    .plugins = dir,
    .ok = "{\"who\":\"world\"}",
    .ok_result = "{\"hello\":\"world\",\"fill\":\"\"}",
    .fails = "{\"fail\":1}",
    .fails_kind = "rate_limit",
    .fails_retryable = true,
    .slow = "{\"sleep\":60}",
    .big = "{\"fill\":2000000}",
    .bytes = "{\"raw\":[120,255,254]}",
    .secret = "{\"who\":\"@SECRET@\"}",
    .mark = "{\"raw\":[34,92,117,48,48,48,49,107,101,121,99,104,97,105,110,58,115,117,105,116,101,46,112,97,115,115,"
            "119,111,114,100,34]}",
};

static void outcomes_and_values_are_both_answers(void)
{
    task_begin(&plugin, NULL);
    struct json outcome = task_do("{\"outcome\":[1]}");
    task_is(&outcome, "result", "[1]");
    CHECK(strstr(task_lines().ptr, "err called by s"));
    outcome = task_do("{\"exit\":4}");
    task_is(&outcome, "error.code", "\"EXIT_NONZERO\"");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(outcomes_and_values_are_both_answers)};
    plugin.more = more;
    plugin.more_count = ARRAY_COUNT(more);
    return task_suite(&plugin, argc, argv);
}
