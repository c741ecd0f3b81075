// Engine tests: a memory store, an engine, and tools that wait to be told what came out.
//
//   struct kit k;
//   kit_open(&k, PLAN(...));
//   kit_start(&k, "r1");
//   kit_done(&k, "a", "ok");
//   kit_expect(&k, "r1 STEP_COMPLETED a 1.1\nr1 STEP_STARTED b 1.1\n");
//
// Every helper runs turns until nothing is left to do. Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_ENGINE_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_ENGINE_KIT_H

#include "engine/inside.h"
#include "harness/test.h"
#include "store/backend.h"
#include "unit/support/explained_store.h"
#include "unit/support/followed_store.h"
#include "unit/support/told.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"
#define SHELL(id, deps, more)                                                                                          \
    "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"dependsOn\":[" deps "],\"with\":{\"command\":\"do " id "\"}" more "}"
#define LINEAR PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", ""))

struct kit_attempt {
    uint64_t ticket;
    char run[129], step[129];
    char said[129]; // its last argument
    uint32_t logical, engine;
    bool cancelled, over;
};

struct kit {
    struct arena memory;
    const struct contract *contract;
    struct store *store;
    const struct store_ops *real_ops;
    struct store_ops ops;
    uint32_t full_left; // commits that find no space
    enum code refuses;  // how they say so; 0 = E_FULL
    uint32_t full_in;   // the n-th commit from now finds none; 0 = none does
    int slow_ms;        // what each commit takes longer
    int64_t wait_ms;    // for how long the last one might have waited for others
    uint32_t commit_count;
    struct program *program;
    struct tools tools;
    struct kit_attempt attempts[256];
    size_t attempt_count;
    struct engine *engine;
    struct engine_limits limits;
    struct moment_in_time now;
    struct buf told;
    struct engine_decision decision;
    char decision_code[64], new_run[129];
    uint32_t decision_count;
    unsigned next_signal;
    bool cut_off;            // nothing may be started
    enum code start_refused; // the last one
    bool parent_refused;     // it was the start of a child
    struct disk *outbox;     // NULL: there is no outbox
    char outbox_told[64];    // WRITTEN w, LOGGED g, LOST l
};

UNUSED static struct kit *kit_of_tools(struct tools *tools)
{
    return CONTAINER_OF(tools, struct kit, tools);
}

UNUSED static enum code kit_tool_start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    (void)err;
    struct kit *k = kit_of_tools(tools);
    CHECK(k->attempt_count < ARRAY_COUNT(k->attempts));
    struct kit_attempt *attempt = &k->attempts[k->attempt_count++];
    *attempt = (struct kit_attempt){.ticket = request->ticket, .logical = request->logical, .engine = request->engine};
    snprintf(attempt->run, sizeof(attempt->run), "%.*s", STR_ARG(request->run));
    snprintf(attempt->step, sizeof(attempt->step), "%.*s", STR_ARG(request->step));
    if (request->argc > 0)
        snprintf(attempt->said, sizeof(attempt->said), "%.*s", STR_ARG(request->argv[request->argc - 1]));
    return OK;
}

UNUSED static void kit_tool_cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    (void)grace_ms;
    struct kit *k = kit_of_tools(tools);
    for (size_t i = 0; i < k->attempt_count; i++)
        if (k->attempts[i].ticket == ticket && !k->attempts[i].over) k->attempts[i].cancelled = true;
}

UNUSED static void kit_tool_close(struct tools *tools)
{
    (void)tools;
}

UNUSED static const struct tool_ops kit_tool_ops = {
    .start = kit_tool_start, .cancel = kit_tool_cancel, .close = kit_tool_close};

UNUSED static void kit_event(void *context, const struct engine_event *event)
{
    struct kit *k = context;
    if (event->past) return; // did not happen now
    buf_printf(&k->told, "%.*s ", STR_ARG(event->run));
    told_moment(&k->told, event->moment);
}

UNUSED static void kit_decision(void *context, const struct engine_decision *decision)
{
    struct kit *k = context;
    k->decision = *decision;
    k->decision_count++;
    snprintf(k->decision_code, sizeof(k->decision_code), "%.*s", STR_ARG(decision->error_code));
    snprintf(k->new_run, sizeof(k->new_run), "%.*s", STR_ARG(decision->new_run));
}

UNUSED static void kit_refused(void *context, const struct engine_refusal *refusal)
{
    ((struct kit *)context)->start_refused = refusal->why->code;
    ((struct kit *)context)->parent_refused = refusal->parent.len > 0;
}

UNUSED static void kit_outbox(void *context, const struct engine_outbox *news)
{
    struct kit *k = context;
    size_t len = strlen(k->outbox_told);
    if (len + 1 < sizeof(k->outbox_told)) k->outbox_told[len] = " wgl"[news->what];
}

UNUSED static bool kit_may_start(void *context)
{
    return !((struct kit *)context)->cut_off;
}

UNUSED static enum code kit_commit(struct store *store, struct commit *commit, struct arena *turn, struct error *err)
{
    struct kit *k = (struct kit *)((uintptr_t)store->ops - offsetof(struct kit, ops));
    k->wait_ms = commit->wait_ms;
    nanosleep(&(struct timespec){.tv_nsec = (long)k->slow_ms * 1000000}, NULL);
    if (k->full_left > 0 || (k->full_in > 0 && --k->full_in == 0)) {
        if (k->full_left > 0) k->full_left--;
        return error_set(err, k->refuses ? k->refuses : E_FULL, "no space left");
    }
    k->commit_count++;
    return k->real_ops->log.commit(store, commit, turn, err);
}

UNUSED static void kit_open_engine(struct kit *k)
{
    struct engine_options options = {
        .store = k->store,
        .contract = k->contract,
        .entropy = os_entropy(),
        .tools = &k->tools,
        .limits = k->limits,
        .outbox_disk = k->outbox,
        .may_start = kit_may_start,
        .may_start_context = k,
        .observer = {.context = k, .event = kit_event, .decision = kit_decision, .refused = kit_refused,
                     .outbox = kit_outbox}};
    struct error err = {0};
    CHECK_OK(engine_open(&options, &k->engine, &err), &err);
}

UNUSED static struct program *kit_program(struct kit *k, const char *text, const struct program_loader *loader)
{
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &k->memory);
    struct error err = {0};
    struct program *program = NULL;
    enum code rc = program_load(str_from(text), STR("test"), loader, &diagnostics, &program, &err);
    if (rc && diagnostics.count > 0)
        test_fail(__FILE__, __LINE__, "%u:%u %.*s", diagnostics.items[0].line, diagnostics.items[0].column,
                  STR_ARG(diagnostics.items[0].message));
    CHECK_OK(rc, &err);
    return program;
}

UNUSED static enum code kit_load_child(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    (void)context, (void)arena, (void)err;
    part->file = STR("child.json");
    part->text = STR(PLAN(SHELL("c", "", "")));
    return OK;
}

UNUSED static void kit_open_at(struct kit *k, const char *text, const char *url)
{
    memset(k, 0, sizeof(*k));
    os_log_level(LOG_ERROR);
    arena_init(&k->memory, 4096, (size_t)256 << 20);
    buf_init(&k->told, (size_t)16 << 20);
    k->tools.ops = &kit_tool_ops;
    k->limits = engine_limits_default;
    k->now = (struct moment_in_time){.wall_ms = 1800000000000, .mono_ms = 5000};
    struct error err = {0};
    CHECK_OK(contract_open(&k->memory, &k->contract, &err), &err);
    struct store_options options = {
        .mode = STORE_WRITE, .create = true, .contract = k->contract, .entropy = os_entropy()};
    CHECK_OK(store_open(str_from(url), &options, &k->store, &err), &err);
    k->real_ops = k->store->ops;
    k->ops = *k->real_ops;
    k->ops.log.commit = kit_commit;
    k->store->ops = &k->ops;
    static const struct program_loader loader = {.load = kit_load_child};
    k->program = kit_program(k, text, &loader);
    kit_open_engine(k);
}

UNUSED static void kit_open(struct kit *k, const char *text)
{
    kit_open_at(k, text, "memory:");
}

UNUSED static void kit_close(struct kit *k)
{
    engine_close(k->engine);
    program_release(k->program);
    k->store->ops = k->real_ops;
    explained_store(k->store);
    followed_store(k->store);
    store_close(k->store);
    buf_release(&k->told);
    arena_release(&k->memory);
}

UNUSED static bool kit_turn(struct kit *k)
{
    bool worked = false;
    struct error err = {0};
    CHECK_OK(engine_turn(k->engine, k->now, &worked, &err), &err);
    return worked;
}

UNUSED static void kit_idle(struct kit *k)
{
    for (int i = 0; kit_turn(k); i++) CHECK(i < 1000);
}

UNUSED static void kit_pass(struct kit *k, int64_t ms)
{
    k->now.wall_ms += ms;
    k->now.mono_ms += ms;
    kit_idle(k);
}

UNUSED static void kit_queue_start(struct kit *k, const char *run)
{
    struct start_request request = {.program = k->program, .run = str_from(run), .triggered_by = STR("test")};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_start(k->engine, &request, out, &err), &err);
    CHECK_TEXT(out, run);
}

UNUSED static void kit_start(struct kit *k, const char *run)
{
    kit_queue_start(k, run);
    kit_idle(k);
}

UNUSED static struct kit_attempt *kit_attempt(struct kit *k, const char *step)
{
    for (size_t i = 0; i < k->attempt_count; i++)
        if (!k->attempts[i].over && strcmp(k->attempts[i].step, step) == 0) return &k->attempts[i];
    test_fail(__FILE__, __LINE__, "no attempt of %s is with a tool", step);
}

UNUSED static size_t kit_waiting(const struct kit *k)
{
    size_t count = 0;
    for (size_t i = 0; i < k->attempt_count; i++) count += !k->attempts[i].over;
    return count;
}

// Hands in a result without a turn.
UNUSED static void kit_deliver(struct kit *k, const char *step, bool ok, const char *text, bool retryable)
{
    struct kit_attempt *attempt = kit_attempt(k, step);
    attempt->over = true;
    struct tool_result result = {.ticket = attempt->ticket, .ok = ok, .duration_ms = 3};
    if (ok)
        result.output = str_from(text);
    else
        result.fault = (struct fault){.code = str_from(text), .message = STR("no"), .retryable = retryable};
    engine_deliver(k->engine, &result);
}

UNUSED static void kit_done(struct kit *k, const char *step, const char *output)
{
    kit_deliver(k, step, true, output, false);
    kit_idle(k);
}

UNUSED static void kit_fail(struct kit *k, const char *step, const char *code, bool retryable)
{
    kit_deliver(k, step, false, code, retryable);
    kit_idle(k);
}

UNUSED static struct signal kit_make_signal(struct kit *k, enum signal_type type, const char *step, char id[UUID_SIZE])
{
    uint8_t bytes[16] = {(uint8_t)++k->next_signal};
    uuid_format(bytes, id);
    return (struct signal){.type = type,
                           .id = {id, UUID_SIZE - 1},
                           .step = str_from(step),
                           .actor = STR("ann"),
                           .role = STR("Admin"),
                           .payload = json_object()};
}

UNUSED static void kit_send(struct kit *k, const char *run, const struct signal *signal)
{
    struct error err = {0};
    CHECK_OK(engine_signal(k->engine, STR("default"), str_from(run), signal, &err), &err);
}

UNUSED static void kit_signal(struct kit *k, const char *run, enum signal_type type, const char *step)
{
    char id[UUID_SIZE];
    struct signal signal = kit_make_signal(k, type, step, id);
    kit_send(k, run, &signal);
    kit_idle(k);
}

UNUSED static struct run_head kit_head(struct kit *k, const char *run)
{
    struct run_head head;
    struct error err = {0};
    CHECK_OK(store_head(k->store, STR("default"), str_from(run), &k->memory, &head, &err), &err);
    return head;
}

UNUSED static void kit_expect(struct kit *k, const char *text)
{
    CHECK_STR(buf_str(&k->told), str_from(text));
    buf_clear(&k->told);
}

UNUSED static bool kit_told(const struct kit *k, const char *text)
{
    return strstr(k->told.ptr, text) != NULL;
}

// The process dies: what is with tools is lost, the store stays.
UNUSED static void kit_crash(struct kit *k)
{
    engine_close(k->engine);
    for (size_t i = 0; i < k->attempt_count; i++) k->attempts[i].over = true;
    kit_open_engine(k);
}

UNUSED static void kit_adopt(struct kit *k, const char *run)
{
    struct error err = {0};
    CHECK_OK(engine_adopt(k->engine, STR("default"), str_from(run), &err), &err);
    kit_idle(k);
}

#endif
