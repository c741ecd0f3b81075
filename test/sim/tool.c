#include "sim/tool.h"

#include <stdlib.h>
#include <string.h>

enum fate {
    FATE_DONE = 0,
    FATE_TRANSIENT,
    FATE_PERMANENT,
    FATE_SLOW,
    FATE_SILENT,
    FATE_TWICE,
    FATE_REFUSED,
    FATE_COUNT
};

#define LONG_MS 600000

static struct sim_tool *tool_of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct sim_tool, base);
}

static enum fate pick_fate(struct sim_tool *tool)
{
    if (tool->faults_left == 0 || !choice_once_in(tool->choice, STREAM_TOOL, tool->fault_rate)) return FATE_DONE;
    tool->faults_left--;
    return (enum fate)(1 + choice_pick(tool->choice, STREAM_TOOL, FATE_COUNT - 1));
}

static void decide_answer(struct sim_tool *tool, const struct tool_request *request, enum fate fate,
                          struct tool_answer *answer)
{
    struct str step = request->step;
    answer->ok = true;
    answer->output = "ok";
    if (str_ends(step, STR("ask"))) answer->output = choice_pick(tool->choice, STREAM_TOOL, 2) ? "no" : "yes";
    if (str_ends(step, STR(".until"))) answer->ok = choice_pick(tool->choice, STREAM_TOOL, 2) == 0;
    if (!answer->ok) answer->code = "EXIT_NONZERO";
    switch (fate) {
    case FATE_TRANSIENT:
    case FATE_PERMANENT:
        answer->ok = false;
        answer->code = fate == FATE_TRANSIENT ? "KILLED_BY_SIGNAL" : "COMMAND_NOT_FOUND";
        answer->retryable = fate == FATE_TRANSIENT;
        break;
    case FATE_SLOW:
        answer->due_ms += 1 + choice_pick(tool->choice, STREAM_TOOL, 4) * 700;
        break;
    case FATE_SILENT:
        answer->due_ms += request->timeout_ms > 0 ? request->timeout_ms : LONG_MS;
        if (request->timeout_ms == 0) break;
        answer->ok = false;
        answer->code = "TIMEOUT";
        answer->retryable = true;
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

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct sim_tool *tool = tool_of(tools);
    const struct model_run *run = checker_run(tool->checker, request->run);
    if (tool->fenced && !(run && run->of_zombie))
        checker_fail(tool->checker, "S6", "%.*s: %.*s was handed to a tool by an engine that had lost the run",
                     STR_ARG(request->run), STR_ARG(request->step));
    enum fate fate = pick_fate(tool);
    checker_tool_start(tool->checker, request);
    if (tool->started) tool->started(tool->context, request);
    tool->start_count++;
    if (fate == FATE_REFUSED) return error_set(err, E_LIMIT, "no more processes");
    if (tool->count == tool->capacity) {
        tool->capacity = tool->capacity ? tool->capacity * 2 : 32;
        tool->answers = realloc(tool->answers, tool->capacity * sizeof(*tool->answers));
        INVARIANT(tool->answers);
    }
    struct tool_answer *answer = &tool->answers[tool->count++];
    *answer = (struct tool_answer){.ticket = request->ticket, .due_ms = *tool->now_ms};
    decide_answer(tool, request, fate, answer);
    return OK;
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    struct sim_tool *tool = tool_of(tools);
    for (size_t i = 0; i < tool->count; i++) {
        struct tool_answer *answer = &tool->answers[i];
        if (answer->ticket != ticket || answer->cancelled) continue;
        answer->cancelled = true;
        uint32_t how = choice_pick(tool->choice, STREAM_TOOL, 3);
        if (how == 2) { // it ends as it would have, before the signal reaches it
            answer->due_ms = *tool->now_ms;
            return;
        }
        answer->due_ms = *tool->now_ms + (how == 1 ? grace_ms : 0);
        answer->ok = false;
        answer->code = "CANCELLED";
        answer->retryable = false;
    }
}

static void close_tools(struct tools *tools)
{
    tool_of(tools)->count = 0;
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .close = close_tools};

void sim_tool_init(struct sim_tool *tool, struct choice *choice, struct checker *checker, const int64_t *now_ms)
{
    memset(tool, 0, sizeof(*tool));
    tool->base.ops = &ops;
    tool->choice = choice;
    tool->checker = checker;
    tool->now_ms = now_ms;
}

void sim_tool_release(struct sim_tool *tool)
{
    free(tool->answers);
    memset(tool, 0, sizeof(*tool));
}

int64_t sim_tool_due(const struct sim_tool *tool)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < tool->count; i++)
        if (tool->answers[i].due_ms < due) due = tool->answers[i].due_ms;
    return due;
}

void sim_tool_deliver(struct sim_tool *tool, size_t index)
{
    INVARIANT(index < tool->count);
    struct tool_answer *answer = &tool->answers[index];
    struct tool_result result = {.ticket = answer->ticket, .ok = answer->ok, .duration_ms = 1};
    if (answer->ok)
        result.output = str_from(answer->output);
    else
        result.fault = (struct fault){.code = str_from(answer->code),
                                      .message = STR("as the simulator pleased"),
                                      .category = STR("infrastructure"),
                                      .retryable = answer->retryable};
    if (answer->twice) {
        answer->twice = false;
        answer->due_ms += 5;
    } else {
        memmove(answer, answer + 1, (tool->count - index - 1) * sizeof(*answer));
        tool->count--;
    }
    engine_deliver(tool->engine, &result);
}
