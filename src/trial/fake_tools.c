#include "trial/fake_tools.h"

#include <stdlib.h>
#include <string.h>

static struct fake_tools *fake_of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct fake_tools, base);
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct fake_tools *fake = fake_of(tools);
    struct fake_answer answer = {
        .ticket = request->ticket, .due_ms = *fake->now_ms, .order = fake->start_count++, .duration_ms = 1};
    enum code rc = fake->decide(fake->context, request, &answer, err);
    if (rc) return rc;
    if (!LIST_ROOM(fake->answers, fake->count, &fake->capacity)) return error_nomem(err);
    fake->answers[fake->count++] = answer;
    return OK;
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    struct fake_tools *fake = fake_of(tools);
    for (size_t i = 0; i < fake->count; i++) {
        struct fake_answer *answer = &fake->answers[i];
        if (answer->ticket != ticket || answer->cancelled) continue;
        answer->cancelled = true;
        fake->cancelled(fake->context, answer, grace_ms);
    }
}

static void close_desk(struct tools *tools)
{
    fake_of(tools)->count = 0;
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .close = close_desk};

void fake_init(struct fake_tools *fake, const int64_t *now_ms)
{
    memset(fake, 0, sizeof(*fake));
    fake->base.ops = &ops;
    fake->now_ms = now_ms;
}

void fake_release(struct fake_tools *fake)
{
    free(fake->answers);
    memset(fake, 0, sizeof(*fake));
}

size_t fake_first(const struct fake_tools *fake)
{
    size_t first = 0;
    for (size_t i = 1; i < fake->count; i++) {
        const struct fake_answer *a = &fake->answers[i], *b = &fake->answers[first];
        if (a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->order < b->order)) first = i;
    }
    return first;
}

int64_t fake_due(const struct fake_tools *fake)
{
    return fake->count > 0 ? fake->answers[fake_first(fake)].due_ms : INT64_MAX;
}

void fake_deliver(struct fake_tools *fake, size_t index)
{
    INVARIANT(index < fake->count);
    struct fake_answer *answer = &fake->answers[index];
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
        memmove(answer, answer + 1, (fake->count - index - 1) * sizeof(*answer));
        fake->count--;
    }
    if (fake->hand)
        fake->hand(fake->context, &result);
    else
        engine_deliver(fake->engine, &result);
}
