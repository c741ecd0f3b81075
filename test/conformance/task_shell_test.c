#include "conformance/task_suite.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

static const struct task_case shell = {
    .kind = "shell",
    .ok = "{\"cmds\":[\"x=hello\",\"echo $x\"]}",
    .ok_result = "{\"stdout\":\"hello\",\"stderr\":\"\",\"exit_code\":0}",
    .fails = "{\"cmds\":\"exit 3\"}",
    .fails_kind = "unknown",
    .fails_retryable = true,
    .slow = "{\"cmds\":\"sleep 60\"}",
    .big = "{\"cmds\":\"head -c 2000000 /dev/zero | tr '\\\\0' x\"}",
    .bytes = "{\"cmds\":\"printf '\\\\377\\\\376'\"}",
    .secret = "{\"cmds\":[\"echo \\\"$P\\\"\",\"echo \\\"$P\\\" >&2\"],\"env\":{\"P\":\"@SECRET@\"}}",
    .mark = "{\"cmds\":\"printf '\\\\001keychain:suite.password\\\\001'\"}",
};

static void commands_stop_at_the_first_that_fails(void)
{
    task_begin(&shell, NULL);
    struct json outcome = task_do("{\"cmds\":[\"echo a\",\"echo no >&2; false\",\"echo b\"]}");
    task_is(&outcome, "status", "\"error\"");
    task_is(&outcome, "error.code", "\"EXIT_NONZERO\"");
    task_is(&outcome, "result", "{\"stdout\":\"a\",\"stderr\":\"no\",\"exit_code\":1}");
    outcome = task_do("{\"cmds\":\"echo a\\nfalse\\necho b\"}");
    task_is(&outcome, "result.stdout", "\"a\"");
    outcome = task_do("{\"cmds\":7}");
    task_is(&outcome, "error.code", "\"COMMAND_MISSING\"");
    task_end();
}

static void json_on_stdout_is_also_data(void)
{
    task_begin(&shell, NULL);
    struct json outcome = task_do("{\"cmds\":\"echo '{\\\"a\\\": [1, 2]}'\",\"env\":{\"X\":5}}");
    task_is(&outcome, "result.data", "{\"a\":[1,2]}");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(commands_stop_at_the_first_that_fails), TEST(json_on_stdout_is_also_data)};
    struct task_case whole = shell;
    whole.more = more;
    whole.more_count = ARRAY_COUNT(more);
    return task_suite(&whole, argc, argv);
}
