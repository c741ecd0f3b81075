#include "trial/desk.h"

#include <stdlib.h>
#include <string.h>

static struct desk *desk_of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct desk, base);
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct desk *desk = desk_of(tools);
    struct desk_answer answer = {
        .ticket = request->ticket, .due_ms = *desk->now_ms, .order = desk->start_count++, .duration_ms = 1};
    enum code rc = desk->decide(desk->context, request, &answer, err);
    if (rc) return rc;
    if (desk->count == desk->capacity) {
        size_t capacity = desk->capacity ? desk->capacity * 2 : 32;
        struct desk_answer *grown = realloc(desk->answers, capacity * sizeof(*grown));
        if (!grown) return error_nomem(err);
        desk->answers = grown;
        desk->capacity = capacity;
    }
    desk->answers[desk->count++] = answer;
    return OK;
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    struct desk *desk = desk_of(tools);
    for (size_t i = 0; i < desk->count; i++) {
        struct desk_answer *answer = &desk->answers[i];
        if (answer->ticket != ticket || answer->cancelled) continue;
        answer->cancelled = true;
        desk->cancelled(desk->context, answer, grace_ms);
    }
}

static void close_desk(struct tools *tools)
{
    desk_of(tools)->count = 0;
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .close = close_desk};

void desk_init(struct desk *desk, const int64_t *now_ms)
{
    memset(desk, 0, sizeof(*desk));
    desk->base.ops = &ops;
    desk->now_ms = now_ms;
}

void desk_release(struct desk *desk)
{
    free(desk->answers);
    memset(desk, 0, sizeof(*desk));
}

size_t desk_first(const struct desk *desk)
{
    size_t first = 0;
    for (size_t i = 1; i < desk->count; i++) {
        const struct desk_answer *a = &desk->answers[i], *b = &desk->answers[first];
        if (a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->order < b->order)) first = i;
    }
    return first;
}

int64_t desk_due(const struct desk *desk)
{
    return desk->count > 0 ? desk->answers[desk_first(desk)].due_ms : INT64_MAX;
}

void desk_deliver(struct desk *desk, size_t index)
{
    INVARIANT(index < desk->count);
    struct desk_answer *answer = &desk->answers[index];
    struct tool_result result = {.ticket = answer->ticket, .ok = answer->ok, .duration_ms = answer->duration_ms};
    result.is_json = answer->is_json;
    result.lost = answer->lost;
    if (answer->ok)
        result.output = answer->output;
    else
        result.fault = answer->fault;
    if (answer->twice) {
        answer->twice = false;
        answer->due_ms += 5;
    } else {
        memmove(answer, answer + 1, (desk->count - index - 1) * sizeof(*answer));
        desk->count--;
    }
    engine_deliver(desk->engine, &result);
}
