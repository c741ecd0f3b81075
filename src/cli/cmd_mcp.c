// `cairn mcp`: what this program can do, as tools for an assistant: the Model Context Protocol over standard input and output, one JSON-RPC
// message a line. A tool is a command of this program with -o json, run as a process of its own with the store or the server that this one
// was given. Reading alone is allowed unless --allow says more; what changes a run wants `confirm: true` besides.
#include "cli/at_service.h"
#include "cli/commands.h"
#include "base/text.h"
#include "cairn/cairn.h"
#include "json/make.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MCP_VERSION "2025-06-18"
enum { LINE_MAX_BYTES = 4 << 20, OUTPUT_MAX = 1 << 20, INPUTS_MAX = 100, ARGS_MAX = 2 * INPUTS_MAX + 32 };
enum { RPC_PARSE = -32700, RPC_INVALID = -32600, RPC_UNKNOWN = -32601, RPC_PARAMS = -32602 };

enum allow { ALLOW_READ = 1, ALLOW_START = 2, ALLOW_SIGNAL = 4 };

// ---- the tools
// `args`: X(member, type, required, what it is). Members become words and flags in the order of `line`: "{m}" is a word, "--f {m}" a flag
// that is there when the member is.
struct tool_arg {
    const char *name, *type, *what;
    bool required;
};
struct mcp_tool {
    const char *name, *title, *what;
    enum allow needs;
    const char *line; // words of the command
    struct tool_arg args[8];
};

#define RUN_ARG {"run", "string", "A run: its id, the beginning of it, @last, @last-failed or plan:NAME", true}
static const struct mcp_tool tools[] = {
    {"list_runs", "List runs", "Runs, newest first, by a query such as \"status=FAILED plan=nightly since=2d\".", ALLOW_READ,
     "ls {query} --limit {limit} -o json",
     {{"query", "string", "Which runs; without it all", false}, {"limit", "integer", "At most so many (50)", false}}},
    {"get_run", "Show a run", "A run as it is now: status, steps, attempts, results.", ALLOW_READ, "get {run} -o json",
     {RUN_ARG}},
    {"explain", "Explain why",
     "Why a run or one of its steps is in its state: what it waits for, why it was skipped, failed or not retried.",
     ALLOW_READ, "why {target} -o json", {{"target", "string", "RUN or RUN/STEP", true}}},
    {"list_events", "Events of a run", "The log of a run: every event, in order.", ALLOW_READ,
     "events {run} --limit {limit} -o json", {RUN_ARG, {"limit", "integer", "At most so many", false}}},
    {"read_logs", "Read logs", "What the steps of a run have written.", ALLOW_READ, "logs {target} --tail {tail}",
     {{"target", "string", "RUN or RUN/STEP", true}, {"tail", "integer", "The last so many lines", false}}},
    {"list_waiting", "Who waits for a person", "Approvals and failures that wait for a person.", ALLOW_READ, "inbox -o json", {{0}}},
    {"validate_document", "Check a document", "Checks a document (a file) without running it, with the place of every mistake.",
     ALLOW_READ,
     "validate {file} -o json", {{"file", "string", "Path of a plan, a node workflow or a playbook", true}}},
    {"preview_document", "Show what a document does", "Shows what a document (a file) will do, step by step, before it does it.",
     ALLOW_READ,
     "plan {file} -o json", {{"file", "string", "Path of the document", true}}},
    {"help", "Explain a code or a command", "What an error code, a command or a topic means.", ALLOW_READ, "help {topic}",
     {{"topic", "string", "A code such as EXIT_NONZERO, a command, or a topic", true}}},
    {"start_run", "Start a run", "Starts a document (a file) at the server and gives its run id.", ALLOW_START,
     "run {file} {inputs} --detach -o name",
     {{"file", "string", "Path of the document", true}, {"inputs", "object", "Inputs of the run", false},
      {"confirm", "boolean", "true: a person has agreed to it", true}}},
    {"signal_run", "Send a signal", "Pauses, resumes, cancels or retries a run, skips or retries a step, answers an approval.",
     ALLOW_SIGNAL,
     "signal {run} {type} --step {step} --reason {reason} --no-run -o json",
     {RUN_ARG, {"type", "string", "PAUSE, RESUME, CANCEL, RETRY_RUN, RETRY_STEP, SKIP_STEP, APPROVE or REJECT", true},
      {"step", "string", "Of signals to a step", false}, {"reason", "string", "Why; it is recorded", true},
      {"confirm", "boolean", "true: a person has agreed to it", true}}},
};

struct mcp {
    struct cli *cli;
    unsigned allowed;
    const char *self;
    struct arena arena; // of one message
};

// ---- messages

static void say(struct mcp *mcp, const struct json *message)
{
    struct buf out SCOPED(buf_release) = buf_of((size_t)16 << 20);
    json_write(&out, message);
    buf_byte(&out, '\n');
    if (buf_ok(&out) && json_ok(message)) cli_print(mcp->cli, &out);
}

static void answer(struct mcp *mcp, const struct json *id, struct json result)
{
    struct json message =
        JSON_OF(&mcp->arena, {"jsonrpc", json_word("2.0")}, {"id", json_ref(id)}, {"result", result});
    say(mcp, &message);
}

static void refuse(struct mcp *mcp, const struct json *id, int code, const char *why)
{
    struct json error = JSON_OF(&mcp->arena, {"code", json_int(code)}, {"message", json_string(str_from(why))});
    struct json message = JSON_OF(&mcp->arena, {"jsonrpc", json_word("2.0")}, {"id", id ? *id : json_null()}, {"error", error});
    say(mcp, &message);
}

static void say_text(struct mcp *mcp, const struct json *id, struct str text, bool failed)
{
    struct json one = JSON_OF(&mcp->arena, {"type", json_word("text")}, {"text", json_copied(&mcp->arena, text)});
    struct json content = json_array();
    json_append(&mcp->arena, &content, one);
    answer(mcp, id, JSON_OF(&mcp->arena, {"content", content}, {"isError", json_bool(failed)}));
}

// ---- what there is

static struct json schema_of(struct mcp *mcp, const struct mcp_tool *tool)
{
    struct json properties = json_object(), required = json_array();
    for (const struct tool_arg *arg = tool->args; arg->name; arg++) {
        json_set(&mcp->arena, &properties, str_from(arg->name),
                 JSON_OF(&mcp->arena, {"type", json_word(arg->type)}, {"description", json_word(arg->what)}));
        if (arg->required) json_append(&mcp->arena, &required, json_word(arg->name));
    }
    return JSON_OF(&mcp->arena, {"type", json_word("object")}, {"properties", properties}, {"required", json_filled(required)},
                   {"additionalProperties", json_bool(false)});
}

static void list_tools(struct mcp *mcp, const struct json *id)
{
    struct json list = json_array();
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
        const struct mcp_tool *tool = &tools[i];
        if (!(mcp->allowed & tool->needs)) continue;
        bool reads = tool->needs == ALLOW_READ;
        json_append(&mcp->arena, &list,
                    JSON_OF(&mcp->arena, {"name", json_word(tool->name)}, {"title", json_word(tool->title)},
                            {"description", json_word(tool->what)}, {"inputSchema", schema_of(mcp, tool)},
                            {"annotations", JSON_OF(&mcp->arena, {"readOnlyHint", json_bool(reads)},
                                                    {"destructiveHint", json_bool(tool->needs == ALLOW_SIGNAL)},
                                                    {"openWorldHint", json_bool(false)})}));
    }
    answer(mcp, id, JSON_OF(&mcp->arena, {"tools", list}));
}

static void initialize(struct mcp *mcp, const struct json *id, const struct json *params)
{
    struct str asked = json_text(json_key(params, "protocolVersion"));
    bool known = str_is(asked, "2025-06-18") || str_is(asked, "2025-03-26") || str_is(asked, "2024-11-05");
    const char *may = mcp->allowed == ALLOW_READ
                          ? "Reading only. "
                          : "Tools that change something want confirm: true, after a person has agreed. ";
    struct str told = arena_format(&mcp->arena,
                                   "Cairn is a durable workflow engine. %sBegin with list_runs; explain says why a run or a step is "
                                   "in its state, also why it does not go on.",
                                   may);
    answer(mcp, id,
           JSON_OF(&mcp->arena, {"protocolVersion", known ? json_copied(&mcp->arena, asked) : json_word(MCP_VERSION)},
                   {"capabilities", JSON_OF(&mcp->arena, {"tools", JSON_OF(&mcp->arena, {"listChanged", json_bool(false)})})},
                   {"serverInfo", JSON_OF(&mcp->arena, {"name", json_word("cairn")}, {"title", json_word("Cairn")},
                                          {"version", json_word(CAIRN_VERSION)})},
                   {"instructions", json_text_made(told)}));
}

// ---- calling

static const char *type_fault(struct mcp *mcp, const struct tool_arg *arg, const struct json *value)
{
    bool fits = (strcmp(arg->type, "string") == 0 && value->type == JSON_STRING) ||
                (strcmp(arg->type, "integer") == 0 && value->type == JSON_INT) ||
                (strcmp(arg->type, "boolean") == 0 && value->type == JSON_BOOL) ||
                (strcmp(arg->type, "object") == 0 && value->type == JSON_OBJECT);
    return fits ? NULL : cli_format(mcp->cli, "%s is of type %s", arg->name, arg->type);
}

static const char *arguments_fault(struct mcp *mcp, const struct mcp_tool *tool, const struct json *given)
{
    for (const struct tool_arg *arg = tool->args; arg->name; arg++) {
        const struct json *value = json_key(given, arg->name);
        if (!value && arg->required) return cli_format(mcp->cli, "%s is missing: %s", arg->name, arg->what);
        if (value && type_fault(mcp, arg, value)) return type_fault(mcp, arg, value);
    }
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->count; i++) {
        const struct tool_arg *arg = tool->args;
        while (arg->name && !str_is(given->members[i].key, arg->name)) arg++;
        if (!arg->name) return cli_format(mcp->cli, "%s has no argument %.*s", tool->name, STR_ARG(given->members[i].key));
    }
    return NULL;
}

// The command as words. A value is one word whatever is in it; one that begins with '-' is refused, so that none becomes a flag.
static bool words_of(struct mcp *mcp, const struct mcp_tool *tool, const struct json *given, char **argv, const char **fault)
{
    size_t count = 0;
    const char *flag = NULL;
    argv[count++] = (char *)(uintptr_t)mcp->self;
    for (struct str rest = str_from(tool->line); rest.len > 0;) {
        struct str word = str_cut(rest, ' ', &rest), copy = arena_copy(&mcp->arena, word);
        if (!copy.ptr) return false;
        if (word.ptr[0] != '{') {
            bool of_value = str_starts(word, STR("--")) && rest.len > 0 && rest.ptr[0] == '{';
            if (of_value)
                flag = copy.ptr;
            else
                argv[count++] = (char *)(uintptr_t)copy.ptr;
            continue;
        }
        const struct json *value = json_get(given, str_slice(word, 1, word.len - 1));
        if (value && value->type == JSON_OBJECT && value->count > INPUTS_MAX) {
            *fault = "more inputs than 100: start such a run with a file of inputs";
            return true;
        }
        if (value && value->type == JSON_OBJECT) { // inputs: one flag each
            for (uint32_t i = 0; i < value->count; i++) {
                const struct json *one = &value->members[i].value;
                struct str told = one->type == JSON_STRING ? one->text : json_canon_kept(&mcp->arena, one, 256 * 1024);
                argv[count++] = (char *)(uintptr_t)"--set";
                argv[count] = (char *)(uintptr_t)arena_format(&mcp->arena, "%.*s=%.*s", STR_ARG(value->members[i].key), STR_ARG(told)).ptr;
                if (!told.ptr || !argv[count++]) return false;
            }
        } else if (value) {
            struct str text = value->type == JSON_STRING ? arena_copy(&mcp->arena, value->text)
                                                         : json_canon_kept(&mcp->arena, value, 256 * 1024);
            if (!text.ptr) return false;
            if (text.len > 0 && text.ptr[0] == '-') {
                *fault = "a value must not begin with '-'";
                return true;
            }
            if (flag) argv[count++] = (char *)(uintptr_t)flag;
            argv[count++] = (char *)(uintptr_t)arena_format(&mcp->arena, "%.*s", STR_ARG(text)).ptr;
            if (!argv[count - 1]) return false;
        }
        flag = NULL;
    }
    argv[count] = NULL;
    return true;
}

// What it writes, at most so much: standard output first, what it says to people behind it.
static int run_command(struct mcp *mcp, char **argv, struct buf *out)
{
    int pipes[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    (void)mcp;
    if (pipe(pipes)) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipes[0]);
    posix_spawn_file_actions_addclose(&actions, pipes[1]);
    int failed = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    for (char block[65536]; !failed;) {
        ssize_t got = read(pipes[0], block, sizeof(block));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (out->len + (size_t)got <= OUTPUT_MAX) buf_add(out, (struct str){block, (size_t)got});
    }
    close(pipes[0]);
    int status = -1;
    while (!failed && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return failed || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

static void call_tool(struct mcp *mcp, const struct json *id, const struct json *params)
{
    struct str name = json_text(json_key(params, "name"));
    const struct json *given = json_key(params, "arguments");
    const struct mcp_tool *tool = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++)
        if (str_is(name, tools[i].name) && (mcp->allowed & tools[i].needs)) tool = &tools[i];
    if (!tool) {
        refuse(mcp, id, RPC_PARAMS, cli_format(mcp->cli, "there is no tool %.*s here; --allow says which there are", STR_ARG(name)));
        return;
    }
    const char *fault = arguments_fault(mcp, tool, given);
    if (fault) {
        refuse(mcp, id, RPC_PARAMS, fault);
        return;
    }
    if (tool->needs != ALLOW_READ && !json_true(json_key(given, "confirm"))) {
        say_text(mcp, id, STR("Nothing was done: this changes something. Ask the person, and call it again with confirm: true."), true);
        return;
    }
    char *argv[ARGS_MAX];
    struct buf out SCOPED(buf_release) = buf_of(OUTPUT_MAX + 1);
    if (!words_of(mcp, tool, given, argv, &fault)) {
        say_text(mcp, id, STR("out of memory"), true);
        return;
    }
    if (fault) {
        refuse(mcp, id, RPC_PARAMS, fault);
        return;
    }
    int exit = run_command(mcp, argv, &out);
    struct str text = str_utf8(buf_str(&out)) ? buf_str(&out) : STR("the answer is not UTF-8 text");
    say_text(mcp, id, text, exit != 0);
}

static void handle(struct mcp *mcp, struct str line)
{
    struct json message;
    struct error err = {0};
    if (json_parse(line, &json_limits_record, &mcp->arena, &message, &err)) {
        refuse(mcp, NULL, RPC_PARSE, err.message);
        return;
    }
    const struct json *id = json_key(&message, "id"), *params = json_key(&message, "params");
    struct str method = json_text(json_key(&message, "method"));
    if (message.type != JSON_OBJECT || !str_is(json_text(json_key(&message, "jsonrpc")), "2.0") || method.len == 0) {
        bool is_answer = json_key(&message, "result") || json_key(&message, "error");
        if (!is_answer) refuse(mcp, id, RPC_INVALID, "this is no request of JSON-RPC 2.0");
        return;
    }
    if (!id) return; // a notification: nothing of ours depends on one
    if (str_is(method, "initialize"))
        initialize(mcp, id, params);
    else if (str_is(method, "ping"))
        answer(mcp, id, json_object());
    else if (str_is(method, "tools/list"))
        list_tools(mcp, id);
    else if (str_is(method, "tools/call"))
        call_tool(mcp, id, params);
    else
        refuse(mcp, id, RPC_UNKNOWN, cli_format(mcp->cli, "there is no method %.*s", STR_ARG(method)));
}

static int read_allowed(struct cli *cli, unsigned *out)
{
    size_t cursor = 0;
    struct str word;
    *out = ALLOW_READ;
    while (args_next(&cli->args, FLAG_ALLOW, &cursor, &word)) {
        if (str_is(word, "start"))
            *out |= ALLOW_START;
        else if (str_is(word, "signal"))
            *out |= ALLOW_SIGNAL;
    }
    return EXIT_OK;
}

// Its commands are given the store or the server by the environment, so that no secret stands among their arguments.
static int pass_on(struct cli *cli)
{
    static const struct {
        enum flag flag;
        const char *variable;
    } passed[] = {{FLAG_STORE, "CAIRN_STORE"}, {FLAG_SERVER, "CAIRN_SERVER"}};
    for (size_t i = 0; i < ARRAY_COUNT(passed); i++) {
        const char *value = cli_format(cli, "%.*s", STR_ARG(args_text(&cli->args, passed[i].flag, "")));
        if (args_has(&cli->args, passed[i].flag) && setenv(passed[i].variable, value, 1)) return cli_nomem(cli);
    }
    return EXIT_OK;
}

int command_mcp(struct cli *cli)
{
    struct mcp mcp = {.cli = cli, .self = "/proc/self/exe"};
    char self[4096];
    ssize_t got = readlink(mcp.self, self, sizeof(self) - 1);
    int code = read_allowed(cli, &mcp.allowed);
    if (!code) code = pass_on(cli);
    if (code) return code;
    if (got > 0) {
        self[got] = '\0';
        mcp.self = self;
    }
    signal(SIGPIPE, SIG_IGN);
    arena_init(&mcp.arena, 64 * 1024, (size_t)64 << 20);
    char *line = NULL;
    size_t room = 0;
    for (ssize_t len; (len = getline(&line, &room, stdin)) > 0;) {
        struct str text = str_trim((struct str){line, (size_t)len});
        arena_reset(&mcp.arena);
        if (text.len == 0) continue;
        if (len > LINE_MAX_BYTES)
            refuse(&mcp, NULL, RPC_INVALID, "the message is longer than 4 MiB");
        else
            handle(&mcp, text);
        if (cli->io.out_closed) break;
    }
    free(line);
    arena_release(&mcp.arena);
    return EXIT_OK;
}
