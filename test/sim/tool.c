#include "sim/tool.h"

#include <stdio.h>
#include <string.h>

enum fate {
    FATE_DONE = 0,
    FATE_TRANSIENT,
    FATE_PERMANENT,
    FATE_SLOW,
    FATE_SILENT,
    FATE_TWICE,
    FATE_REFUSED,
    FATE_LOST,
    FATE_COUNT
};

#define LONG_MS 600000
enum { TAG_LIMITED = 1 };

static enum fate pick_fate(struct sim_tool *tool)
{
    if (tool->faults_left == 0 || !choice_once_in(tool->choice, STREAM_TOOL, tool->fault_rate)) return FATE_DONE;
    tool->faults_left--;
    return (enum fate)(1 + choice_pick(tool->choice, STREAM_TOOL, FATE_COUNT - 1));
}

static struct fault fault_of(const char *code, bool retryable)
{
    return (struct fault){.code = str_from(code),
                          .message = STR("as the simulator pleased"),
                          .category = STR("infrastructure"),
                          .retryable = retryable};
}

static void fail(struct fake_answer *answer, const char *code, bool retryable)
{
    answer->ok = false;
    answer->fault = fault_of(code, retryable);
}

static void play(struct buf *out, const char *text, uint32_t attempt)
{
    char kind[32] = "", value[200] = "";
    unsigned n = 0, m = 0;
    if (sscanf(text, "page %u of %u", &n, &m) == 2) {
        buf_printf(out, "{\"result\":{\"items\":%u,\"more\":%s},\"status\":\"ok\"}", n * 10, n < m ? "true" : "false");
    } else if (sscanf(text, "big %u", &n) == 1) {
        buf_printf(out, "{\"result\":{\"size\":%u,\"text\":\"", n);
        for (unsigned i = 0; i < n; i++) buf_byte(out, 'x');
        buf_text(out, "\"},\"status\":\"ok\"}");
    } else if (sscanf(text, "fail %u %31s then %199[^\n]", &n, kind, value) >= 2 && attempt <= n) {
        buf_printf(out,
                   "{\"error\":{\"code\":\"E\",\"kind\":\"%s\",\"message\":\"no\",\"retryable\":%s},"
                   "\"status\":\"error\"}",
                   kind, strcmp(kind, "timeout") == 0 ? "true" : "false");
    } else {
        const char *given = value[0] ? value : strncmp(text, "ok ", 3) == 0 ? text + 3 : "null";
        const char *quote = given[0] == '\'' ? "\"" : "";
        size_t skip = *quote ? 1 : 0;
        buf_printf(out, "{\"result\":%s%.*s%s,\"status\":\"ok\"}", quote, (int)(strlen(given) - 2 * skip), given + skip,
                   quote);
    }
}

// What the command of a playbook's task says.
static struct str outcome_of(struct sim_tool *tool, const struct tool_request *request)
{
    struct json task;
    struct error err = {0};
    char text[400];
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    INVARIANT(json_parse(request->input, &json_limits_default, &tool->arena, &task, &err) == OK);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(json_text(json_at(&task, STR("with.cmds")))));
    play(&out, text, (uint32_t)json_integer(json_key(&task, "attempt"), 0));
    struct str answer = arena_copy(&tool->arena, buf_str(&out));
    buf_release(&out);
    INVARIANT(answer.ptr);
    return answer;
}

static void decide_answer(struct sim_tool *tool, const struct tool_request *request, enum fate fate,
                          struct fake_answer *answer)
{
    struct str step = request->step;
    struct model_run *run = checker_run(tool->checker, request->run);
    answer->ok = true;
    bool net = run && run->net;
    answer->output = net ? outcome_of(tool, request) : STR("ok");
    if (run && (fate == FATE_TRANSIENT || fate == FATE_PERMANENT || fate == FATE_SILENT)) run->swayed = true;
    if (!net && str_ends(step, STR("ask")))
        answer->output = choice_pick(tool->choice, STREAM_TOOL, 2) ? STR("no") : STR("yes");
    if (str_ends(step, STR(".until")) && choice_pick(tool->choice, STREAM_TOOL, 2) != 0)
        fail(answer, "EXIT_NONZERO", false);
    switch (fate) {
    case FATE_TRANSIENT:
        fail(answer, "KILLED_BY_SIGNAL", true);
        break;
    case FATE_PERMANENT:
        fail(answer, "COMMAND_NOT_FOUND", false);
        break;
    case FATE_SLOW:
        answer->due_ms += 1 + choice_pick(tool->choice, STREAM_TOOL, 4) * 700;
        break;
    case FATE_SILENT:
        answer->due_ms += request->timeout_ms > 0 ? request->timeout_ms : LONG_MS;
        if (request->timeout_ms > 0) fail(answer, "TIMEOUT", true);
        break;
    case FATE_LOST: // the worker died, and its lease runs out
        answer->due_ms += choice_pick(tool->choice, STREAM_TOOL, 2) * 30000;
        answer->ok = false;
        answer->lost = true;
        break;
    case FATE_TWICE:
        answer->twice = true;
        break;
    case FATE_DONE:
    case FATE_REFUSED:
    case FATE_COUNT:
        break;
    }
}

// L4: of the steps that the workload `limited` has under its limit of one, no second begins while an engine has the first. Engines that
// have lost their runs are not asked.
static void check_limit(struct sim_tool *tool, const struct tool_request *request, struct fake_answer *answer)
{
    if (!str_starts(request->step, STR("one_"))) return;
    for (size_t i = 0; i < tool->fake.count && !tool->fenced; i++)
        if (tool->fake.answers[i].tag == TAG_LIMITED && tool->fake.answers[i].ticket != request->ticket)
            checker_fail(tool->checker, "L4", "%.*s: %.*s began while another had the only place under its limit",
                         STR_ARG(request->run), STR_ARG(request->step));
    if (!answer->twice) answer->tag = TAG_LIMITED;
}

static enum code decide(void *context, const struct tool_request *request, struct fake_answer *answer,
                        struct error *err)
{
    struct sim_tool *tool = context;
    const struct model_run *run = checker_run(tool->checker, request->run);
    if (tool->fenced && !(run && run->of_zombie))
        checker_fail(tool->checker, "S6", "%.*s: %.*s was handed to a tool by an engine that had lost the run",
                     STR_ARG(request->run), STR_ARG(request->step));
    enum fate fate = pick_fate(tool);
    checker_tool_start(tool->checker, request);
    if (tool->started) tool->started(tool->context, request);
    if (fate == FATE_REFUSED && run) checker_run(tool->checker, request->run)->swayed = true;
    if (fate == FATE_REFUSED) return error_set(err, E_LIMIT, "no more processes");
    decide_answer(tool, request, fate, answer);
    check_limit(tool, request, answer);
    return OK;
}

static void cancelled(void *context, struct fake_answer *answer, int64_t grace_ms)
{
    struct sim_tool *tool = context;
    uint32_t how = choice_pick(tool->choice, STREAM_TOOL, 3);
    answer->due_ms = *tool->fake.now_ms + (how == 1 ? grace_ms : 0);
    if (how != 2) answer->lost = false;
    if (how != 2) fail(answer, "CANCELLED", false); // else it ends as it would have, before the signal reaches it
}

void sim_tool_init(struct sim_tool *tool, struct choice *choice, struct checker *checker, const int64_t *now_ms)
{
    memset(tool, 0, sizeof(*tool));
    fake_init(&tool->fake, now_ms);
    arena_init(&tool->arena, 4096, (size_t)256 << 20);
    tool->fake.context = tool;
    tool->fake.decide = decide;
    tool->fake.cancelled = cancelled;
    tool->choice = choice;
    tool->checker = checker;
}

void sim_tool_release(struct sim_tool *tool)
{
    fake_release(&tool->fake);
    arena_release(&tool->arena);
    memset(tool, 0, sizeof(*tool));
}
