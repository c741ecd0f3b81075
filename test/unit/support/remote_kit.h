// What the tests of remote tasks share: an engine over a memory store, the product's task table in virtual time, and workers
// who are a few lines of JSON. Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_REMOTE_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_REMOTE_KIT_H

#include "harness/test.h"
#include "remote/inside.h"
#include "unit/support/explained_store.h"
#include "unit/support/told.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"
#define SHELL(id, deps, more)                                                                                          \
    "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"dependsOn\":[" deps "],\"with\":{\"command\":\"do " id "\"}" more "}"
#define ONE PLAN(SHELL("a", "", ""))

struct said { // an answer
    int status, count;
    char body[16384];
};

struct rig {
    struct arena memory;
    const struct contract *contract;
    struct store *store;
    struct program *program;
    struct engine *engine;
    struct remote *remote;
    struct moment_in_time now;
    struct buf told;
    struct remote_caller caller;
    struct said said; // the last answer
};

static bool rig_gone; // the clients are
UNUSED static bool rig_alive(const void *context)
{
    (void)context;
    return !rig_gone;
}

UNUSED static int64_t rig_now(const void *context)
{
    return ((const struct rig *)context)->now.mono_ms;
}

UNUSED static void rig_event(void *context, const struct engine_event *event)
{
    told_moment(&((struct rig *)context)->told, event->moment);
}

UNUSED static void rig_open(struct rig *rig, const char *plan, const struct executor_route *routes, size_t count)
{
    memset(rig, 0, sizeof(*rig));
    os_log_level(LOG_ERROR);
    arena_init(&rig->memory, 4096, (size_t)256 << 20);
    buf_init(&rig->told, (size_t)16 << 20);
    rig->caller.alive = rig_alive;
    rig->now = (struct moment_in_time){.wall_ms = 1800000000000, .mono_ms = 5000};
    struct error err = {0};
    CHECK_OK(contract_open(&rig->memory, &rig->contract, &err), &err);
    struct store_options store = {.mode = STORE_WRITE, .create = true, .contract = rig->contract};
    store.entropy = os_entropy();
    CHECK_OK(store_open(STR("memory:"), &store, &rig->store, &err), &err);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &rig->memory);
    CHECK_OK(program_load(str_from(plan), STR("test"), NULL, &diagnostics, &rig->program, &err), &err);
    struct remote_options remote = {.now = rig_now, .now_context = rig};
    memset(&remote.key, 7, sizeof(remote.key));
    CHECK_OK(remote_open(&remote, &rig->remote, &err), &err);
    struct engine_options options = {.store = rig->store,
                                     .contract = rig->contract,
                                     .entropy = os_entropy(),
                                     .pools = remote_tools(rig->remote),
                                     .routes = {.at = routes, .count = count, .only_pools = true},
                                     .observer = {.context = rig, .event = rig_event}};
    CHECK_OK(engine_open(&options, &rig->engine, &err), &err);
    remote_attach(rig->remote, rig->engine);
}

UNUSED static void rig_close(struct rig *rig)
{
    remote_shut(rig->remote);
    engine_close(rig->engine);
    remote_free(rig->remote);
    program_release(rig->program);
    explained_store(rig->store);
    store_close(rig->store);
    buf_release(&rig->told);
    arena_release(&rig->memory);
}

UNUSED static void rig_idle(struct rig *rig)
{
    bool worked = true;
    struct error err = {0};
    for (int i = 0; worked; i++) {
        CHECK(i < 1000);
        CHECK_OK(engine_turn(rig->engine, rig->now, &worked, &err), &err);
    }
}

UNUSED static void rig_pass(struct rig *rig, int64_t ms)
{
    rig->now.wall_ms += ms;
    rig->now.mono_ms += ms;
    remote_tick(rig->remote);
    rig_idle(rig);
}

UNUSED static void rig_start_for(struct rig *rig, const char *tenant, const char *run)
{
    struct start_request request = {.program = rig->program,
                                    .tenant = str_from(tenant),
                                    .environment = STR("default"),
                                    .run = str_from(run),
                                    .triggered_by = STR("test")};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_start(rig->engine, &request, out, &err), &err);
    rig_idle(rig);
}

UNUSED static void rig_start(struct rig *rig, const char *run)
{
    rig_start_for(rig, "default", run);
}

UNUSED static void rig_signal(struct rig *rig, enum signal_type type)
{
    struct signal signal = {.type = type,
                            .id = STR("11111111-1111-4111-8111-111111111111"),
                            .actor = STR("ann"),
                            .role = STR("Admin"),
                            .payload = json_object()};
    struct error err = {0};
    CHECK_OK(engine_signal(rig->engine, STR("default"), STR("r1"), &signal, &err), &err);
    rig_idle(rig);
}

UNUSED static void rig_expect(struct rig *rig, const char *text)
{
    CHECK_STR(buf_str(&rig->told), str_from(text));
    buf_clear(&rig->told);
}

// ---- a worker
UNUSED static void say(void *context, int status, struct str body)
{
    struct said *said = context;
    said->status = status;
    said->count++;
    CHECK(body.len < sizeof(said->body));
    memcpy(said->body, body.ptr, body.len);
    said->body[body.len] = '\0';
}

UNUSED static void ask_into(struct rig *rig, enum remote_call call, const char *body, struct said *said)
{
    memset(said, 0, sizeof(*said));
    remote_serve(rig->remote, call, &rig->caller, str_from(body), say, said);
}

// Like all that follow: the status of the answer, which is rig->said; 0: it comes later.
UNUSED static int ask(struct rig *rig, enum remote_call call, const char *body)
{
    ask_into(rig, call, body, &rig->said);
    return rig->said.status;
}

UNUSED static size_t tasks_of(struct rig *rig, struct said *said, struct remote_task **tasks)
{
    size_t count = 0;
    struct error err = {0};
    CHECK_INT(said->status, 200);
    struct str body = arena_copy(&rig->memory, str_from(said->body));
    CHECK_OK(remote_tasks_read(body, &rig->memory, tasks, &count, &err), &err);
    return count;
}

UNUSED static size_t poll_with(struct rig *rig, const char *body, struct remote_task **tasks)
{
    struct said said;
    ask_into(rig, REMOTE_POLL, body, &said);
    CHECK_INT(said.count, 1);
    return tasks_of(rig, &said, tasks);
}

UNUSED static struct remote_task poll_one(struct rig *rig)
{
    struct remote_task *tasks;
    CHECK_INT(poll_with(rig, "{\"worker\":\"w1\",\"max\":1}", &tasks), 1);
    return tasks[0];
}

// A run of `plan` whose task is taken; what the engine told so far is forgotten.
UNUSED static struct remote_task rig_taken(struct rig *rig, const char *plan)
{
    rig_open(rig, plan, NULL, 0);
    rig_start(rig, "r1");
    struct remote_task task = poll_one(rig);
    buf_clear(&rig->told);
    return task;
}

// "<before>token and epoch<after>"
UNUSED static const char *about_task(struct rig *rig, const struct remote_task *task, const char *before,
                                     const char *after)
{
    struct buf out;
    buf_init(&out, 65536);
    buf_printf(&out, "{\"worker\":\"w1\",%s\"token\":\"%.*s\",\"epoch\":%llu%s}", before, STR_ARG(task->token),
               (unsigned long long)task->request.epoch, after);
    struct str kept = arena_copy(&rig->memory, buf_str(&out));
    CHECK(buf_ok(&out) && kept.ptr);
    buf_release(&out);
    return kept.ptr;
}

// `more` is what stands after token and epoch.
UNUSED static const char *item(struct rig *rig, const struct remote_task *task, const char *list, const char *more)
{
    char before[64], after[1024];
    CHECK(snprintf(before, sizeof(before), "\"%s\":[{", list) < (int)sizeof(before));
    CHECK(snprintf(after, sizeof(after), "%s}]", more) < (int)sizeof(after));
    return about_task(rig, task, before, after);
}

UNUSED static void complete_into(struct rig *rig, const struct remote_task *task, const char *more, struct said *said)
{
    ask_into(rig, REMOTE_COMPLETE, item(rig, task, "results", more), said);
}

UNUSED static int complete(struct rig *rig, const struct remote_task *task, const char *more)
{
    complete_into(rig, task, more, &rig->said);
    return rig->said.status;
}

UNUSED static void heartbeat_waits(struct rig *rig, const struct remote_task *task, struct said *said)
{
    ask_into(rig, REMOTE_HEARTBEAT, about_task(rig, task, "\"waitMs\":9000,\"tasks\":[{", "}]"), said);
}

UNUSED static int heartbeat(struct rig *rig, const struct remote_task *task)
{
    return ask(rig, REMOTE_HEARTBEAT, item(rig, task, "tasks", ""));
}

#define DONE ",\"output\":\"ok\",\"durationMs\":3"

UNUSED static bool has(const struct said *said, const char *text)
{
    return strstr(said->body, text) != NULL;
}

// ---- events of playbooks, from workers that speak in them
UNUSED static int report(struct rig *rig, const struct remote_task *task, const char *events)
{
    char after[8192];
    CHECK(snprintf(after, sizeof(after), ",\"events\":[%s]", events) < (int)sizeof(after));
    rig->caller.execution = STR("r1");
    return ask(rig, REMOTE_EVENTS, about_task(rig, task, "", after));
}
// Each type is an event of its own.
#define EVENT(type, step, more)                                                                                        \
    "{\"event_id\":\"e-" type "\",\"execution_id\":\"r1\",\"timestamp\":\"2026-02-05T23:11:22Z\",\"event_type\":\"" type \
    "\",\"step_run_id\":\"step:" step ":run:1\"" more "}"
#define GOOD ",\"payload\":{\"outcome\":{\"status\":\"ok\",\"result\":7}}"

#endif
