// Kind shell: command lines, in order, in one bash, until one fails.
#include "task/kind.h"

// A text is a script; a list is run line by line in the same shell, so that `cd` and variables last.
static bool command_of(struct task_call *call, struct tool_request *request, const struct json *cmds)
{
    size_t count = json_is(cmds, JSON_ARRAY) ? cmds->count : 1;
    struct str *argv = ARENA_ARRAY(call->arena, count + 5, struct str);
    if (!argv) return call_no_memory(call);
    size_t argc = 0;
    argv[argc++] = STR("bash");
    argv[argc++] = STR("-ec");
    if (json_is(cmds, JSON_ARRAY)) {
        argv[argc++] = STR("for c; do eval \"$c\"; done");
        argv[argc++] = STR("shell");
        for (uint32_t i = 0; i < cmds->count; i++) argv[argc++] = json_as_text(&cmds->items[i], call->arena);
    } else {
        argv[argc++] = json_as_text(cmds, call->arena);
    }
    request->argv = argv;
    request->argc = argc;
    return true;
}

#define SECRET_COMMAND "TASK_COMMAND_"

// Arguments can be read by every process of the machine, variables by those of the step alone: command lines with secrets in them are
// variables, and gone from there before they run.
static void hide_commands(struct task_call *call, struct tool_request *request, struct tool_env *env, size_t *count)
{
    static const struct str argv[] = {
        STR_INIT("bash"), STR_INIT("-ec"),
        STR_INIT("__task_i=0; while __task_v=" SECRET_COMMAND "$__task_i; [ \"${!__task_v+x}\" ]; do c=${!__task_v}; "
                 "unset \"$__task_v\"; __task_i=$((__task_i+1)); eval \"$c\"; done")};
    size_t first = request->argc > 3 ? 4 : 2; // behind the name of a list's loop
    for (size_t i = first; i < request->argc; i++)
        env[(*count)++] = (struct tool_env){call_printf(call, SECRET_COMMAND "%zu", i - first), request->argv[i]};
    request->argv = argv;
    request->argc = ARRAY_COUNT(argv);
}

static bool environment_of(struct task_call *call, struct tool_request *request)
{
    const struct json *env = call_get(call, "env");
    size_t given = json_is(env, JSON_OBJECT) ? env->count : 0, count = 0;
    struct tool_env *list = ARENA_ARRAY(call->arena, given + request->argc, struct tool_env);
    if (!list) return call_no_memory(call);
    for (; count < given; count++)
        list[count] =
            (struct tool_env){env->members[count].key, json_as_text(&env->members[count].value, call->arena)};
    if (call->secret_count > 0) hide_commands(call, request, list, &count);
    request->env = list;
    request->env_count = count;
    return true;
}

void process_done(struct task_call *call, struct tool_result *ended, size_t most, struct json image)
{
    if (ended->ok && ended->truncated && call_request(call)->overflow == OVERFLOW_FAIL) {
        call_fail(call, TASK_SCHEMA, "PAYLOAD_TOO_LARGE", FAULT_OVERFLOW FAULT_OVERFLOW_WAY,
                  (unsigned long long)ended->output_size, most);
        return;
    }
    // The file has all of it; the engine puts the reference beside.
    call->out.spilled = ended->spilled;
    if (ended->spilled) ended->output = STR(""), ended->truncated = false;
    struct str out = arena_copy(call->arena, ended->output), err = arena_copy(call->arena, ended->errors);
    struct json data = call_parse(call, out.ptr ? out : STR(""), false);
    int64_t code = ended->ok ? 0 : ended->fault.has_exit ? ended->fault.exit_code : -1;
    struct json result =
        JSON_OF(call->arena, {"stdout", json_text_made(out)}, {"stderr", json_text_made(err)},
                {"exit_code", json_int(code)}, {"data", json_when(data.type != JSON_STRING, data)},
                {"truncated", json_flag(ended->truncated)}, {"image", image});
    call_done(call, result);
    if (json_ok(&result) && !ended->ok) call_process_failed(call, ended);
}

static void run(struct task_call *call)
{
    static const char *const names[] = {"cmds", "cmd", "commands", "command", "script", "code"};
    const struct json *cmds = NULL;
    for (size_t i = 0; !cmds && i < ARRAY_COUNT(names); i++) cmds = call_get(call, names[i]);
    if (!cmds || (!json_is(cmds, JSON_ARRAY) && !json_is(cmds, JSON_STRING))) {
        call_fail(call, TASK_CLIENT, "COMMAND_MISSING", "shell needs cmds: a text or a list of texts");
        return;
    }
    struct tool_request request = {.cwd = call_string(call, "cwd", "")};
    struct tool_result ended;
    if (!command_of(call, &request, cmds) || !environment_of(call, &request) || !call_process(call, &request, &ended))
        return;
    process_done(call, &ended, request.output_max, json_none());
    tool_result_free(&ended);
}

static const char *const fields[] = {"cmds", "cmd", "commands", "command", "script", "code", "env", "cwd", NULL};
const struct task_kind kind_shell = {.name = "shell", .fields = fields, .run = run, .process = true};
