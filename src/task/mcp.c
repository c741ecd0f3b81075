// Kind mcp: asks a server of the Model Context Protocol, over HTTP (streamable) or over standard input and output of a program.
//
//   initialize -> notifications/initialized -> what was asked, page by page
//
// Over HTTP it goes where `http` may go. A program is a process of the step, in a child of ours that speaks with it (child.c): it has the
// step's walls, its environment holds what the task gives it, and it ends with the task.
#include "task/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROTOCOL "2025-06-18"
#define TIMEOUT_MS 60000
#define MESSAGE_MAX ((size_t)8 << 20)
enum { PAGES_MAX = 100, ARGS_MAX = 64, HEADERS_MAX = 20, END_MS = 2000, END_POLL_MS = 20 };

struct mcp {
    struct task_call *call;
    int64_t deadline, next_id;
    struct json initialized; // what the server said of itself
    // over HTTP
    struct str url, session, version;
    struct http_header headers[HEADERS_MAX];
    size_t header_count;
    // over a program
    pid_t pid;
    int to, from;
    struct buf held; // read, and not yet a line
};

static bool is_program(const struct task_call *call)
{
    return call_get(call, "command") != NULL;
}

static int64_t left_ms(const struct mcp *mcp)
{
    int64_t left = mcp->deadline - os_now().mono_ms, whole = call_left_ms(mcp->call);
    return left < 1 ? 1 : left < whole ? left : whole;
}

static bool late(struct mcp *mcp)
{
    return call_fail(mcp->call, TASK_TIMEOUT, "TIMEOUT", "the MCP server does not answer in time");
}

// ---- over HTTP

static bool add_header(struct mcp *mcp, struct str name, struct str value)
{
    struct http_header header = {name, value};
    if (mcp->header_count == HEADERS_MAX || !http_header_valid(header))
        return call_fail(mcp->call, TASK_CLIENT, "HEADER_INVALID", "the header %.*s cannot be sent", STR_ARG(str_slice(name, 0, 64)));
    mcp->headers[mcp->header_count++] = header;
    return true;
}

static bool read_auth(struct mcp *mcp)
{
    struct task_call *call = mcp->call;
    struct json auth;
    bool trusted;
    const struct json *written = call_get(call, "auth"), *headers = call_get(call, "headers");
    if (!call_credential(call, written ? written : call_get(call, "credential"), &auth, &trusted)) return false;
    struct str token = credential_field(call, &auth, "token|access_token|bearer|value|api_key");
    if (auth.type && !token.len) return call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE", "the credential has no token");
    if (token.len && (!call_hide(call, token) ||
                      !add_header(mcp, STR("Authorization"), call_printf(call, "Bearer %.*s", STR_ARG(token)))))
        return false;
    for (uint32_t i = 0; json_is(headers, JSON_OBJECT) && i < headers->count; i++) {
        struct str value = json_as_text(&headers->members[i].value, call->arena);
        if (!add_header(mcp, headers->members[i].key, value.ptr ? value : STR(""))) return false;
    }
    return add_header(mcp, STR("Content-Type"), STR("application/json")) &&
           add_header(mcp, STR("Accept"), STR("application/json, text/event-stream")) &&
           add_header(mcp, STR("User-Agent"), STR("cairn"));
}

static bool post(struct mcp *mcp, const char *method, struct str body, struct fetch_answer *answer)
{
    struct task_call *call = mcp->call;
    size_t count = mcp->header_count;
    if (mcp->session.len && !add_header(mcp, STR("Mcp-Session-Id"), mcp->session)) return false;
    if (mcp->version.len && !add_header(mcp, STR("MCP-Protocol-Version"), mcp->version)) return false;
    struct web_call request = {.method = str_from(method),
                               .url = mcp->url,
                               .headers = mcp->headers,
                               .header_count = mcp->header_count,
                               .body = body,
                               .timeout_ms = left_ms(mcp)};
    mcp->header_count = count;
    return web_call(call, &request, answer);
}

static bool is_answer(const struct json *message, int64_t id)
{
    const struct json *said = json_key(message, "id");
    bool ours = said && (said->type == JSON_INT ? said->integer == id : false);
    return ours && !json_key(message, "method");
}

// The answer in a body: JSON, or the events of a stream.
static bool answer_in(struct mcp *mcp, const struct fetch_answer *answer, int64_t id, struct json *out)
{
    struct task_call *call = mcp->call;
    struct str type = fetch_header(answer, "content-type"), rest = answer->body;
    if (type.len < 17 || strncasecmp(type.ptr, "text/event-stream", 17) != 0)
        return json_parse(answer->body, &task_limits, call->arena, out, NULL) == OK && is_answer(out, id);
    struct buf data SCOPED(buf_release) = buf_of(MESSAGE_MAX);
    while (rest.len) {
        struct str line = str_cut(rest, '\n', &rest);
        if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
        if (str_starts(line, STR("data:"))) {
            if (data.len) buf_byte(&data, '\n');
            size_t begin = line.len > 5 && line.ptr[5] == ' ' ? 6 : 5;
            buf_add(&data, str_slice(line, begin, line.len));
        }
        if ((line.len && rest.len) || !data.len) continue;
        struct str text = arena_copy(call->arena, buf_str(&data));
        if (text.ptr && json_parse(text, &task_limits, call->arena, out, NULL) == OK && is_answer(out, id)) return true;
        buf_clear(&data);
    }
    return false;
}

static bool web_failed(struct mcp *mcp, const struct fetch_answer *answer)
{
    int status = answer->status;
    return call_fail(mcp->call,
                     status == 401 || status == 403 ? TASK_AUTH
                     : status == 404                ? TASK_NOT_FOUND
                     : status == 429                ? TASK_RATE_LIMIT
                     : status >= 500                ? TASK_SERVER
                                                    : TASK_CLIENT,
                     call_printf(mcp->call, "HTTP_%d", status).ptr, "%.*s answered %d: %.*s", STR_ARG(str_slice(mcp->url, 0, 300)), status,
                     STR_ARG(str_slice(call_clean(mcp->call, answer->body), 0, 200)));
}

static bool web_ask(struct mcp *mcp, struct str message, int64_t id, struct json *out)
{
    struct fetch_answer answer;
    if (!post(mcp, "POST", message, &answer)) return false;
    if (answer.status / 100 != 2) return web_failed(mcp, &answer);
    struct str session = fetch_header(&answer, "mcp-session-id");
    if (session.len && !mcp->session.len) mcp->session = session;
    if (id < 0 || answer_in(mcp, &answer, id, out)) return true;
    return call_fail(mcp->call, TASK_PARSE, "RESULT_INVALID", "%.*s gave no JSON-RPC answer", STR_ARG(str_slice(mcp->url, 0, 300)));
}

// ---- over a program, in the child

static bool gone(struct mcp *mcp)
{
    return call_fail(mcp->call, TASK_CONNECTION, "MCP_SERVER_ENDED", "the program of the MCP server ended, or closed its output");
}

static bool send_line(struct mcp *mcp, struct str message)
{
    struct buf line SCOPED(buf_release) = buf_of(MESSAGE_MAX);
    buf_add(&line, message);
    buf_byte(&line, '\n');
    if (!buf_ok(&line)) return call_no_memory(mcp->call);
    for (size_t at = 0; at < line.len;) {
        struct pollfd wait = {.fd = mcp->to, .events = POLLOUT};
        if (left_ms(mcp) <= 1 || call_stopped(mcp->call)) return late(mcp);
        if (poll(&wait, 1, TASK_POLL_MS) <= 0) continue;
        ssize_t sent = write(mcp->to, line.ptr + at, line.len - at);
        if (sent < 0 && errno == EPIPE) return true; // what it wrote before it ended is read first, and its end after that
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return gone(mcp);
        if (sent > 0) at += (size_t)sent;
    }
    return true;
}

static bool read_line(struct mcp *mcp, struct str *out)
{
    for (size_t seen = 0;;) {
        struct str text = buf_str(&mcp->held);
        size_t end = str_find(text, '\n', seen);
        if (end < text.len) {
            *out = arena_copy(mcp->call->arena, str_slice(text, 0, end));
            size_t rest = text.len - end - 1;
            memmove(mcp->held.ptr, mcp->held.ptr + end + 1, rest);
            mcp->held.len = rest;
            return out->ptr || call_no_memory(mcp->call);
        }
        seen = text.len;
        struct pollfd wait = {.fd = mcp->from, .events = POLLIN};
        if (left_ms(mcp) <= 1 || call_stopped(mcp->call)) return late(mcp);
        if (poll(&wait, 1, TASK_POLL_MS) <= 0) continue;
        char *room = buf_reserve(&mcp->held, 65536);
        if (!room)
            return call_fail(mcp->call, TASK_CLIENT, "ANSWER_TOO_LARGE", "a message of the MCP server has more than %zu bytes",
                             MESSAGE_MAX);
        ssize_t got = read(mcp->from, room, 65536);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return gone(mcp);
        if (got > 0) mcp->held.len += (size_t)got;
    }
}

// What the server asks of its client: it may look whether we are there, and we can do nothing else for it.
static bool answer_server(struct mcp *mcp, const struct json *request)
{
    struct task_call *call = mcp->call;
    const struct json *id = json_key(request, "id");
    if (!id) return true; // a notification
    bool ping = str_is(json_text(json_key(request, "method")), "ping");
    struct json none = JSON_OF(call->arena, {"code", json_int(-32601)}, {"message", json_word("this client cannot do that")});
    struct json message = JSON_OF(call->arena, {"jsonrpc", json_word("2.0")}, {"id", *id},
                                  {"result", json_when(ping, json_object())}, {"error", json_when(!ping, none)});
    struct str text = json_ok(&message) ? json_as_text(&message, call->arena) : (struct str){0};
    return text.ptr ? send_line(mcp, text) : call_no_memory(call);
}

static bool program_ask(struct mcp *mcp, struct str message, int64_t id, struct json *out)
{
    struct str line;
    if (!send_line(mcp, message)) return false;
    while (id >= 0) {
        if (!read_line(mcp, &line)) return false;
        line = str_trim(line);
        if (!line.len) continue;
        if (json_parse(line, &task_limits, mcp->call->arena, out, NULL) || !json_is(out, JSON_OBJECT))
            return call_fail(mcp->call, TASK_PARSE, "RESULT_INVALID", "the MCP server wrote a line that is no JSON-RPC message: %.*s",
                             STR_ARG(str_slice(call_clean(mcp->call, line), 0, 200)));
        if (is_answer(out, id)) return true;
        if (json_key(out, "method") && !answer_server(mcp, out)) return false;
    }
    return true;
}

static const char **environment(struct task_call *call)
{
    const struct json *env = call_get(call, "env");
    size_t own = json_is(env, JSON_OBJECT) ? env->count : 0, count = 0;
    while (environ[count]) count++;
    const char **list = ARENA_ARRAY(call->arena, count + own + 1, const char *);
    if (!list) return NULL;
    memcpy(list, environ, count * sizeof(*list));
    for (size_t i = 0; i < own; i++) {
        struct str name = env->members[i].key, value = json_as_text(&env->members[i].value, call->arena);
        size_t at = 0;
        while (at < count && !(strncmp(list[at], name.ptr, name.len) == 0 && list[at][name.len] == '=')) at++;
        list[at] = call_printf(call, "%.*s=%.*s", STR_ARG(name), STR_ARG(value)).ptr;
        if (at == count) count++;
    }
    return list;
}

static bool arguments(struct task_call *call, const char **argv)
{
    const struct json *lists[] = {call_get(call, "command"), call_get(call, "args")};
    size_t count = 0;
    for (size_t l = 0; l < ARRAY_COUNT(lists); l++) {
        const struct json *list = lists[l];
        uint32_t all = json_is(list, JSON_ARRAY) ? list->count : json_is(list, JSON_STRING) && l == 0;
        for (uint32_t i = 0; i < all; i++) {
            struct str text = json_as_text(list->type == JSON_ARRAY ? &list->items[i] : list, call->arena);
            if (count == ARGS_MAX || !text.ptr)
                return call_fail(call, TASK_CLIENT, "COMMAND_INVALID", "command is a program and at most %d arguments", ARGS_MAX);
            argv[count++] = call_printf(call, "%.*s", STR_ARG(text)).ptr;
        }
    }
    return count > 0 && argv[0][0] ? true : call_fail(call, TASK_CLIENT, "COMMAND_INVALID", "command is a text or a list of texts");
}

static bool start_program(struct mcp *mcp)
{
    struct task_call *call = mcp->call;
    const char *argv[ARGS_MAX + 1] = {NULL}, **env = environment(call);
    posix_spawn_file_actions_t actions;
    int in[2], out[2];
    if (!env) return call_no_memory(call);
    if (!arguments(call, argv)) return false;
    if (pipe2(in, O_CLOEXEC) < 0) return call_fail(call, TASK_UNKNOWN, "SPAWN_FAILED", "no pipe can be made");
    if (pipe2(out, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) != 0) {
        close(in[0]), close(in[1]);
        return call_fail(call, TASK_UNKNOWN, "SPAWN_FAILED", "no pipe can be made");
    }
    int error = posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (!error) error = posix_spawnp(&mcp->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]), close(out[1]);
    mcp->to = in[1], mcp->from = out[0];
    fcntl(mcp->to, F_SETFL, O_NONBLOCK);
    if (!error) return true;
    mcp->pid = 0;
    return call_fail(call, error == ENOENT ? TASK_NOT_FOUND : TASK_UNKNOWN, error == ENOENT ? "COMMAND_NOT_FOUND" : "SPAWN_FAILED",
                     "%s cannot be started: %s", argv[0], strerror(error));
}

// The end of its input asks the program to end; signals make it.
static void end_program(struct mcp *mcp)
{
    if (mcp->to >= 0) close(mcp->to);
    if (mcp->from >= 0) close(mcp->from);
    for (int waited = 0; mcp->pid; waited += END_POLL_MS) {
        pid_t ended = waitpid(mcp->pid, NULL, WNOHANG);
        if (ended == mcp->pid || (ended < 0 && errno != EINTR)) break;
        if (waited == END_MS) kill(mcp->pid, SIGTERM);
        if (waited == 2 * END_MS) kill(mcp->pid, SIGKILL);
        poll(NULL, 0, END_POLL_MS);
    }
    buf_release(&mcp->held);
}

// ---- the protocol

static bool ask(struct mcp *mcp, const char *method, struct json params, bool answered, struct json *result)
{
    struct task_call *call = mcp->call;
    int64_t id = answered ? ++mcp->next_id : -1;
    struct json answer, message = JSON_OF(call->arena, {"jsonrpc", json_word("2.0")}, {"id", json_when(answered, json_int(id))},
                                          {"method", json_word(method)}, {"params", params});
    struct str text = json_ok(&message) ? json_as_text(&message, call->arena) : (struct str){0};
    if (!text.ptr) return call_no_memory(call);
    if (!(mcp->pid ? program_ask : web_ask)(mcp, text, id, &answer)) return false;
    if (!answered) return true;
    const struct json *error = json_key(&answer, "error"), *given = json_key(&answer, "result");
    if (error)
        return call_fail(call, TASK_CLIENT, "MCP_ERROR", "%s: the MCP server says %lld: %.*s", method,
                         (long long)json_integer(json_key(error, "code"), 0),
                         STR_ARG(str_slice(json_text(json_key(error, "message")), 0, 500)));
    *result = given ? *given : json_null();
    return true;
}

static bool initialize(struct mcp *mcp)
{
    struct task_call *call = mcp->call;
    struct json who = JSON_OF(call->arena, {"name", json_word("cairn")}, {"version", json_word("1")}), none;
    struct str version = call_string(call, "protocol_version", PROTOCOL);
    const struct json *abilities = call_get(call, "capabilities");
    if (!ask(mcp, "initialize",
             JSON_OF(call->arena, {"protocolVersion", json_string(version)}, {"capabilities", abilities ? *abilities : json_object()},
                     {"clientInfo", who}),
             true, &mcp->initialized))
        return false;
    mcp->version = json_text(json_key(&mcp->initialized, "protocolVersion"));
    if (!mcp->version.len)
        return call_fail(call, TASK_PARSE, "RESULT_INVALID", "the MCP server does not say which version of the protocol it speaks");
    return ask(mcp, "notifications/initialized", json_none(), false, &none);
}

// A list is asked for until its last page.
static bool ask_pages(struct mcp *mcp, const char *method, const char *list, struct json *result)
{
    struct task_call *call = mcp->call;
    struct json all = json_array(), page;
    struct str cursor = STR("");
    for (int i = 0; i < PAGES_MAX; i++) {
        struct json params = json_object();
        JSON_ADD(call->arena, &params, {"cursor", json_some(cursor)});
        if (!ask(mcp, method, params, true, &page)) return false;
        const struct json *items = json_key(&page, list);
        for (uint32_t k = 0; json_is(items, JSON_ARRAY) && k < items->count; k++) json_append(call->arena, &all, items->items[k]);
        cursor = json_text(json_key(&page, "nextCursor"));
        if (!cursor.len) break;
    }
    *result = JSON_OF(call->arena, {list, all});
    return json_ok(result) || call_no_memory(call);
}

static bool object_of(struct task_call *call, const char *name, const char *other, struct json *out)
{
    const struct json *value = call_find(call, name);
    if (!value && other) value = call_find(call, other);
    *out = json_object();
    if (!value) return true;
    bool text = value->type == JSON_STRING && json_parse(value->text, &task_limits, call->arena, out, NULL) == OK;
    if (text && out->type == JSON_OBJECT) return true;
    if (value->type != JSON_OBJECT) return call_fail(call, TASK_CLIENT, "ARGUMENTS_INVALID", "%s of mcp is an object", name);
    *out = *value;
    return true;
}

static struct str text_of(struct task_call *call, const struct json *result)
{
    const struct json *content = json_key(result, "content");
    struct buf out = buf_of(TASK_BODY_MAX);
    bool any = false;
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->count; i++) {
        if (!str_is(json_text(json_key(&content->items[i], "type")), "text")) continue;
        if (any) buf_byte(&out, '\n');
        any = true;
        buf_add(&out, json_text(json_key(&content->items[i], "text")));
    }
    if (!any) json_write(&out, result);
    struct str text = buf_keep(&out, call->arena);
    return text.ptr ? text : STR("");
}

static bool carry_out(struct mcp *mcp, struct str method, struct str tool, struct json *given, struct json *result)
{
    static const struct {
        const char *method, *list;
    } lists[] = {{"tools/list", "tools"},
                 {"resources/list", "resources"},
                 {"prompts/list", "prompts"},
                 {"resources/templates/list", "resourceTemplates"}};
    struct task_call *call = mcp->call;
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++)
        if (str_is(method, lists[i].method)) return ask_pages(mcp, lists[i].method, lists[i].list, result);
    if (!str_is(method, "tools/call"))
        return object_of(call, "params", NULL, given) && ask(mcp, call_printf(call, "%.*s", STR_ARG(method)).ptr, *given, true, result);
    if (!tool.len) return call_fail(call, TASK_CLIENT, "TOOL_MISSING", "mcp needs tool: the name of what is called");
    if (!object_of(call, "arguments", is_program(call) ? NULL : "args", given)) return false;
    struct json params = JSON_OF(call->arena, {"name", json_string(tool)}, {"arguments", *given});
    return ask(mcp, "tools/call", params, true, result);
}

static void converse(struct mcp *mcp)
{
    struct task_call *call = mcp->call;
    struct str method = call_string(call, "method", ""), tool = call_string(call, "tool", "");
    struct json given = json_none(), result;
    if (!method.len) method = call_string(call, "action", "tools/call");
    if (!tool.len) tool = call_string(call, "tool_name", "");
    if (!initialize(mcp) || !carry_out(mcp, method, tool, &given, &result)) return;
    struct str text = text_of(call, &result), server = call_string(call, "server", "");
    bool called = str_is(method, "tools/call"), failed = called && json_true(json_key(&result, "isError"));
    call_done(call, JSON_OF(call->arena, {"status", json_word(failed ? "error" : "ok")}, {"server", json_some(server)},
                            {"endpoint", json_some(mcp->url)}, {"method", json_string(method)},
                            {"tool", json_when(called, json_string(tool))}, {"arguments", json_when(called, given)},
                            {"text", json_string(text)}, {"result", result}, {"initialize", mcp->initialized}));
    if (failed) call_fail(call, TASK_CLIENT, "TOOL_FAILED", "%.*s: %.*s", STR_ARG(tool), STR_ARG(str_slice(text, 0, 500)));
}

// ---- the kind

static bool ready(struct task_call *call, struct json *with)
{
    const char *argv[ARGS_MAX + 1] = {NULL};
    if (!arguments(call, argv)) return false;
    for (size_t i = 0; argv[i]; i++)
        if (!call_argument(call, str_from(argv[i]))) return false;
    *with = call->with;
    return true;
}

static void run(struct task_call *call)
{
    int64_t seconds = seconds_ms(call_get(call, "timeout_seconds"), TIMEOUT_MS);
    struct mcp mcp = {.call = call,
                      .deadline = os_now().mono_ms + seconds_ms(call_get(call, "timeout"), seconds),
                      .to = -1,
                      .from = -1,
                      .held = buf_of(MESSAGE_MAX)};
    if (is_program(call)) {
        if (start_program(&mcp)) converse(&mcp);
        end_program(&mcp);
        return;
    }
    static const char *const names[] = {"url", "server_url", "base_url"};
    for (size_t i = 0; !mcp.url.len && i < ARRAY_COUNT(names); i++) mcp.url = call_string(call, names[i], "");
    if (!mcp.url.len) {
        call_fail(call, TASK_CLIENT, "URL_MISSING", "mcp needs url (a server over HTTP) or command (a program)");
        return;
    }
    if (!read_auth(&mcp)) return;
    converse(&mcp);
    call_log(call, call->out.error, "%.*s %.*s: %s", STR_ARG(call_string(call, "method", "tools/call")),
             STR_ARG(str_slice(mcp.url, 0, 300)), call->out.error ? task_error_word(call->out.error) : "done");
    // A session is a burden to the server: it is given back, and what becomes of that is no matter of the task.
    struct task_outcome kept = call->out;
    struct fetch_answer ignored;
    if (mcp.session.len && !call_stopped(call)) (void)post(&mcp, "DELETE", STR(""), &ignored);
    call->out = kept;
}

static const char *const fields[] = {"url",    "server_url", "base_url",  "server",    "command",   "args",    "env",
                                     "method", "action",     "tool",      "tool_name", "arguments", "params",  "auth",
                                     "credential", "headers", "timeout_seconds", "protocol_version", "capabilities", NULL};
const struct task_kind kind_mcp = {.name = "mcp", .fields = fields, .run = run, .ready = ready, .apart = is_program};
