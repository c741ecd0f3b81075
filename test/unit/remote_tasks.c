// Tasks of workers: an engine over a memory store, the product's task table in virtual time, and workers who are a few lines
// of JSON.
#include "harness/test.h"
#include "remote/inside.h"
#include "unit/support/explained_store.h"

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
};

static bool rig_gone; // the clients are
static bool rig_alive(const void *context)
{
    (void)context;
    return !rig_gone;
}

static int64_t rig_now(const void *context)
{
    return ((const struct rig *)context)->now.mono_ms;
}

static void rig_event(void *context, const struct engine_event *event)
{
    struct rig *rig = context;
    buf_printf(&rig->told, "%s", moment_name(event->moment->kind));
    if (event->moment->step.len > 0)
        buf_printf(&rig->told, " %.*s %u.%u", STR_ARG(event->moment->step), event->moment->logical,
                   event->moment->engine);
    if (event->moment->fault.code.len > 0) buf_printf(&rig->told, " %.*s", STR_ARG(event->moment->fault.code));
    buf_byte(&rig->told, '\n');
}

static void rig_open(struct rig *rig, const char *plan, const struct remote_route *routes, size_t count)
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
    struct remote_options remote = {
        .routes = routes, .route_count = count, .no_local = true, .now = rig_now, .now_context = rig};
    memset(&remote.key, 7, sizeof(remote.key));
    CHECK_OK(remote_open(&remote, &rig->remote, &err), &err);
    struct engine_options options = {.store = rig->store,
                                     .contract = rig->contract,
                                     .entropy = os_entropy(),
                                     .tools = remote_tools(rig->remote),
                                     .observer = {.context = rig, .event = rig_event}};
    CHECK_OK(engine_open(&options, &rig->engine, &err), &err);
    remote_attach(rig->remote, rig->engine);
}

static void rig_close(struct rig *rig)
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

static void rig_idle(struct rig *rig)
{
    bool worked = true;
    struct error err = {0};
    for (int i = 0; worked; i++) {
        CHECK(i < 1000);
        CHECK_OK(engine_turn(rig->engine, rig->now, &worked, &err), &err);
    }
}

static void rig_pass(struct rig *rig, int64_t ms)
{
    rig->now.wall_ms += ms;
    rig->now.mono_ms += ms;
    remote_tick(rig->remote);
    rig_idle(rig);
}

static void rig_start_for(struct rig *rig, const char *tenant, const char *run)
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

static void rig_start(struct rig *rig, const char *run)
{
    rig_start_for(rig, "default", run);
}

static void rig_signal(struct rig *rig, enum signal_type type)
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

static void rig_expect(struct rig *rig, const char *text)
{
    CHECK_STR(buf_str(&rig->told), str_from(text));
    buf_clear(&rig->told);
}

// ---- a worker
static void say(void *context, int status, struct str body)
{
    struct said *said = context;
    said->status = status;
    said->count++;
    CHECK(body.len < sizeof(said->body));
    memcpy(said->body, body.ptr, body.len);
    said->body[body.len] = '\0';
}

static void ask(struct rig *rig, enum remote_call call, const char *body, struct said *said)
{
    memset(said, 0, sizeof(*said));
    remote_serve(rig->remote, call, &rig->caller, str_from(body), say, said);
}

static size_t tasks_of(struct rig *rig, struct said *said, struct remote_task **tasks)
{
    size_t count = 0;
    struct error err = {0};
    CHECK_INT(said->status, 200);
    struct str body = arena_copy(&rig->memory, str_from(said->body));
    CHECK_OK(remote_tasks_read(body, &rig->memory, tasks, &count, &err), &err);
    return count;
}

static size_t poll_with(struct rig *rig, const char *body, struct remote_task **tasks)
{
    struct said said;
    ask(rig, REMOTE_POLL, body, &said);
    CHECK_INT(said.count, 1);
    return tasks_of(rig, &said, tasks);
}

static struct remote_task poll_one(struct rig *rig)
{
    struct remote_task *tasks;
    CHECK_INT(poll_with(rig, "{\"worker\":\"w1\",\"max\":1}", &tasks), 1);
    return tasks[0];
}

// `more` is what stands after token and epoch.
static const char *item(struct rig *rig, const struct remote_task *task, const char *list, const char *more)
{
    struct buf out;
    buf_init(&out, 65536);
    buf_printf(&out, "{\"worker\":\"w1\",\"%s\":[{\"token\":\"%.*s\",\"epoch\":%llu%s}]}", list, STR_ARG(task->token),
               (unsigned long long)task->request.epoch, more);
    struct str kept = arena_copy(&rig->memory, buf_str(&out));
    CHECK(buf_ok(&out) && kept.ptr);
    buf_release(&out);
    return kept.ptr;
}

static void complete(struct rig *rig, const struct remote_task *task, const char *more, struct said *said)
{
    ask(rig, REMOTE_COMPLETE, item(rig, task, "results", more), said);
}

#define DONE ",\"output\":\"ok\",\"durationMs\":3"

static bool has(const struct said *said, const char *text)
{
    return strstr(said->body, text) != NULL;
}

// ---- the tests
static void task_is_taken_and_completed_and_the_answer_waits_for_the_disk(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, PLAN(SHELL("a", "", ",\"timeout\":\"2s\"") "," SHELL("b", "\"a\"", "")), NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    const struct tool_request *q = &task.request;
    CHECK_STR(q->run, STR("r1"));
    CHECK_STR(q->step, STR("a"));
    CHECK_STR(q->kind, STR("shell"));
    CHECK_STR(q->tenant, STR("default"));
    CHECK_STR(q->environment, STR("default"));
    CHECK_INT(q->argc, 3);
    CHECK_STR(q->argv[2], STR("do a"));
    CHECK_INT(q->logical, 1);
    CHECK_INT(q->engine, 1);
    CHECK_INT(q->timeout_ms, 2000);
    CHECK(q->epoch > 0);
    CHECK_INT(task.lease_ms, REMOTE_LEASE_MS);
    bool key = false;
    for (size_t i = 0; i < q->env_count; i++) key = key || str_is(q->env[i].name, "WORKFLOW_ID");
    CHECK(key);
    buf_clear(&rig.told);
    complete(&rig, &task, DONE, &said);
    CHECK_INT(said.count, 0); // not stored yet
    struct said again;
    complete(&rig, &task, DONE, &again);
    CHECK_INT(again.status, 503);
    CHECK(has(&again, "NOT_STORED_YET"));
    rig_idle(&rig);
    CHECK_INT(said.count, 1);
    CHECK_INT(said.status, 200);
    CHECK_TEXT(said.body, "{\"results\":[{\"state\":\"ok\"}]}");
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nSTEP_STARTED b 1.1\n");
    rig_close(&rig);
}

static void completion_that_comes_again_is_answered_again_and_changes_nothing(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    complete(&rig, &task, DONE, &said);
    rig_idle(&rig);
    buf_clear(&rig.told);
    for (int i = 0; i < 3; i++) {
        complete(&rig, &task, DONE, &said);
        CHECK_INT(said.status, 200);
    }
    complete(&rig, &task, ",\"output\":\"another\"", &said);
    CHECK_INT(said.status, 409);
    CHECK(has(&said, "\"code\":\"STALE_ATTEMPT\""));
    rig_idle(&rig);
    rig_expect(&rig, "");
    rig_close(&rig);
}

static void silent_worker_is_lost_and_its_late_result_refused_C_34_I14(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task old = poll_one(&rig);
    buf_clear(&rig.told);
    rig_pass(&rig, REMOTE_LEASE_MS - 1);
    rig_expect(&rig, "");
    struct said asleep;
    ask(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"waitMs\":20000}", &asleep);
    rig_pass(&rig, 1);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    remote_tick(rig.remote);
    CHECK_TEXT(asleep.body, "{\"tasks\":[]}"); // whoever asked is asleep or dead: somebody else shall have it
    complete(&rig, &old, DONE, &said);
    CHECK_INT(said.status, 409);
    CHECK(has(&said, "STALE_ATTEMPT"));
    struct remote_task task = poll_one(&rig);
    CHECK_INT(task.request.logical, 1);
    CHECK_INT(task.request.engine, 2);
    complete(&rig, &old, DONE, &said);
    CHECK_INT(said.status, 409);
    complete(&rig, &task, DONE, &said);
    rig_idle(&rig);
    CHECK_INT(said.status, 200);
    rig_expect(&rig, "STEP_COMPLETED a 1.2\nRUN_COMPLETED\n");
    CHECK_INT(remote_counts(rig.remote).expired, 1);
    rig_close(&rig);
}

static void task_that_is_given_back_runs_again_at_once(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    buf_clear(&rig.told);
    complete(&rig, &task, ",\"lost\":true", &said);
    rig_idle(&rig);
    CHECK_INT(said.status, 200);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    CHECK_INT(poll_one(&rig).request.engine, 2);
    rig_close(&rig);
}

// ---- events of playbooks, from workers that speak in them
static void report(struct rig *rig, const struct remote_task *task, const char *events, struct said *said)
{
    struct buf out;
    buf_init(&out, 65536);
    buf_printf(&out, "{\"worker\":\"w1\",\"token\":\"%.*s\",\"epoch\":%llu,\"events\":[%s]}", STR_ARG(task->token),
               (unsigned long long)task->request.epoch, events);
    struct str kept = arena_copy(&rig->memory, buf_str(&out));
    CHECK(buf_ok(&out) && kept.ptr);
    buf_release(&out);
    rig->caller.execution = STR("r1");
    ask(rig, REMOTE_EVENTS, kept.ptr, said);
}
#define EVENT(type, step, more)                                                                                        \
    "{\"event_id\":\"e1\",\"execution_id\":\"r1\",\"event_type\":\"" type "\",\"step_run_id\":\"step:" step            \
    ":run:1\"" more "}"
#define GOOD ",\"payload\":{\"outcome\":{\"status\":\"ok\",\"result\":7}}"

static void an_outcome_that_is_reported_as_an_event_is_the_result_NX_5_2_NX_2t(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    buf_clear(&rig.told);
    report(&rig, &task, EVENT("step.started", "a", "") "," EVENT("task.started", "a", ""), &said);
    CHECK_INT(said.status, 200);
    rig_idle(&rig);
    rig_expect(&rig, ""); // told already
    report(&rig, &task, EVENT("task.attempt.done", "a", GOOD) "," EVENT("task.done", "a", GOOD), &said);
    CHECK_INT(said.count, 0); // not stored yet
    rig_idle(&rig);
    CHECK_INT(said.status, 200);
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nRUN_COMPLETED\n");
    for (int i = 0; i < 2; i++) { // the same again, also in older words
        report(&rig, &task, i ? EVENT("call.done", "a", GOOD) : EVENT("task.done", "a", GOOD), &said);
        CHECK_INT(said.status, 200);
    }
    report(&rig, &task, EVENT("task.failed", "a", ""), &said);
    CHECK_INT(said.status, 409);
    rig_idle(&rig);
    rig_expect(&rig, "");
    rig_close(&rig);
}

static void what_a_worker_may_not_report_is_refused_whole_NX_5_3_NX_4g(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    buf_clear(&rig.told);
    static const char *const events[] = {EVENT("step.scheduled", "b", ""), EVENT("next.evaluated", "a", ""),
                                         EVENT("task.done", "b", GOOD), EVENT("command.issued", "a", "")};
    for (size_t i = 0; i < ARRAY_COUNT(events); i++) {
        char both[1024];
        snprintf(both, sizeof(both), "%s,%s", EVENT("task.done", "a", GOOD), events[i]);
        report(&rig, &task, both, &said);
        CHECK_INT(said.status, 403);
        CHECK(has(&said, "EVENT_NOT_ALLOWED") && has(&said, "event 2"));
    }
    report(&rig, &task,
           "{\"event_id\":\"e1\",\"execution_id\":\"r2\",\"event_type\":\"task.done\",\"step_run_id\":"
           "\"step:a:run:1\"}",
           &said);
    CHECK_INT(said.status, 403);
    report(&rig, &task, EVENT("task.sang", "a", ""), &said);
    CHECK_INT(said.status, 400);
    CHECK(has(&said, "EVENT_TYPE_UNKNOWN"));
    task.token = STR("ctask_x_y");
    report(&rig, &task, EVENT("task.done", "a", GOOD), &said);
    CHECK_INT(said.status, 403);
    CHECK(has(&said, "TASK_TOKEN_INVALID"));
    ask(&rig, REMOTE_EVENTS, "{\"worker\":\"w1\",\"events\":[]}", &said);
    CHECK_INT(said.status, 400);
    rig_idle(&rig);
    rig_expect(&rig, ""); // nothing of all that was done
    rig_close(&rig);
}

static void reported_events_renew_the_lease(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    buf_clear(&rig.told);
    for (int i = 0; i < 3; i++) {
        rig_pass(&rig, REMOTE_LEASE_MS - 1);
        report(&rig, &task, EVENT("policy.task.evaluated", "a", ""), &said);
        CHECK_INT(said.status, 200);
    }
    rig_expect(&rig, "");
    rig_pass(&rig, REMOTE_LEASE_MS);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    report(&rig, &task, EVENT("task.done", "a", GOOD), &said);
    CHECK_INT(said.status, 409);
    rig_close(&rig);
}

static void heartbeat_renews_the_lease(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    buf_clear(&rig.told);
    for (int i = 0; i < 10; i++) {
        rig_pass(&rig, REMOTE_LEASE_MS - 1);
        ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", ""), &said);
        CHECK_TEXT(said.body, "{\"leaseMs\":30000,\"results\":[{\"state\":\"ok\"}]}");
    }
    rig_expect(&rig, "");
    rig_pass(&rig, REMOTE_LEASE_MS);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", ""), &said);
    CHECK(has(&said, "\"state\":\"stale\""));
    rig_close(&rig);
}

static void poll_waits_for_work_or_for_its_time(void)
{
    struct rig rig;
    struct said early, late;
    struct remote_task *tasks;
    rig_open(&rig, ONE, NULL, 0);
    ask(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"max\":5,\"waitMs\":20000}", &early);
    CHECK_INT(early.count, 0);
    rig_start(&rig, "r1");
    remote_tick(rig.remote);
    CHECK_INT(early.count, 1);
    CHECK_INT(tasks_of(&rig, &early, &tasks), 1);
    ask(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"max\":5,\"waitMs\":20000}", &late);
    rig_pass(&rig, 19999);
    CHECK_INT(late.count, 0);
    rig_pass(&rig, 1);
    CHECK_TEXT(late.body, "{\"tasks\":[]}");
    rig_start(&rig, "r2");
    rig_gone = true;
    ask(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"waitMs\":20000}", &late);
    CHECK_TEXT(late.body, "{\"tasks\":[]}"); // nobody reads it
    rig_gone = false;
    (void)poll_one(&rig);
    rig_close(&rig);
}

static void cancelled_task_is_told_to_its_worker_at_once(void)
{
    struct rig rig;
    struct said said, beat;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", "}],\"waitMs\":9000,\"x\":[{"), &beat);
    CHECK_INT(beat.count, 0);
    rig_signal(&rig, SIGNAL_CANCEL);
    remote_tick(rig.remote);
    CHECK_INT(beat.count, 1);
    CHECK(has(&beat, "{\"state\":\"cancel\",\"graceMs\":5000}"));
    ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", "}],\"waitMs\":9000,\"x\":[{"), &beat);
    CHECK_INT(beat.count, 0); // known already
    buf_clear(&rig.told);
    ask(&rig, REMOTE_FAIL, item(&rig, &task, "results", ",\"error\":{\"code\":\"CANCELLED\",\"message\":\"killed\"}"),
        &said);
    rig_idle(&rig);
    CHECK_INT(said.status, 200);
    rig_expect(&rig, "STEP_FAILED a 1.1 CANCELLED\nRUN_CANCELLED\n");
    remote_tick(rig.remote);
    CHECK_INT(beat.count, 0); // its own doing is no news to a worker
    rig_pass(&rig, 10000);
    CHECK(has(&beat, "stale"));
    rig_close(&rig);
}

// What came to a worker after it had asked is not in its call, and ends it all the same.
static void heartbeat_hears_of_a_task_that_came_after_it(void)
{
    struct rig rig;
    struct said beat;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r0");
    struct remote_task first = poll_one(&rig);
    ask(&rig, REMOTE_HEARTBEAT, item(&rig, &first, "tasks", "}],\"waitMs\":9000,\"x\":[{"), &beat);
    rig_start(&rig, "r1");
    (void)poll_one(&rig);
    remote_tick(rig.remote);
    CHECK_INT(beat.count, 0);
    rig_signal(&rig, SIGNAL_CANCEL);
    remote_tick(rig.remote);
    CHECK_INT(beat.count, 1);
    CHECK(has(&beat, "\"ok\""));
    rig_close(&rig);
}

static void cancelled_task_does_not_wait_for_a_worker_that_ignores_it(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    rig_signal(&rig, SIGNAL_CANCEL);
    buf_clear(&rig.told);
    for (int i = 0; i < 15; i++) {
        rig_expect(&rig, "");
        ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", ""), &said);
        rig_pass(&rig, 1000);
    }
    rig_expect(&rig, "STEP_FAILED a 1.1 CANCELLED\nRUN_CANCELLED\n");
    rig_close(&rig);
}

static void task_that_nobody_took_is_cancelled_at_once(void)
{
    struct rig rig;
    struct remote_task *tasks;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    buf_clear(&rig.told);
    rig_signal(&rig, SIGNAL_CANCEL);
    rig_expect(&rig, "SIGNAL_ACCEPTED\nSTEP_FAILED a 1.1 CANCELLED\nRUN_CANCELLED\n");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w1\",\"max\":9}", &tasks), 0);
    rig_close(&rig);
}

static void worker_that_lives_but_takes_too_long_is_stopped(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, PLAN(SHELL("a", "", ",\"timeout\":\"2s\"")), NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    buf_clear(&rig.told);
    for (int i = 0; i < 7; i++) {
        rig_expect(&rig, "");
        ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", ""), &said);
        rig_pass(&rig, 1000);
    }
    rig_expect(&rig, "STEP_FAILED a 1.1 TIMEOUT\nRUN_FAILED TIMEOUT\n");
    rig_close(&rig);
}

static size_t last_of(struct str token) // the '_' before the signature
{
    size_t at = token.len;
    while (token.ptr[--at] != '_') {
    }
    return at;
}

static void forged_or_borrowed_token_is_refused_A7(void)
{
    struct rig rig;
    struct said said;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig), forged = task;
    struct task_key key, other_key = {{1}};
    memset(&key, 7, sizeof(key));
    struct task_claim facts = {.tenant = STR("default"),
                               .run = STR("r1"),
                               .step = STR("a"),
                               .logical = 1,
                               .engine = 1,
                               .epoch = task.request.epoch};
    struct task_claim swaps[6] = {facts, facts, facts, facts, facts, facts};
    swaps[0].tenant = STR("acme");
    swaps[1].run = STR("r2");
    swaps[2].step = STR("b");
    swaps[3].logical = 2;
    swaps[4].engine = 2;
    swaps[5].epoch++;
    for (size_t i = 0; i < ARRAY_COUNT(swaps); i++) {
        struct buf mine, theirs;
        buf_init(&mine, 4096);
        buf_init(&theirs, 4096);
        auth_task_seal(&key, &facts, &mine);
        CHECK_STR(buf_str(&mine), task.token);
        auth_task_seal(&key, &swaps[i], &theirs); // the payload of one, the signature of the other
        theirs.len = last_of(buf_str(&theirs));
        buf_add(&theirs, str_slice(task.token, last_of(task.token), task.token.len));
        forged.token = buf_str(&theirs);
        complete(&rig, &forged, DONE, &said);
        CHECK_INT(said.status, 403);
        CHECK(has(&said, "TASK_TOKEN_INVALID"));
        buf_clear(&theirs);
        auth_task_seal(&key, &swaps[i], &theirs); // genuine, of another attempt
        forged.token = buf_str(&theirs);
        complete(&rig, &forged, DONE, &said);
        CHECK_INT(said.status, 409);
        buf_clear(&theirs);
        auth_task_seal(&other_key, &facts, &theirs);
        forged.token = buf_str(&theirs);
        complete(&rig, &forged, DONE, &said);
        CHECK_INT(said.status, 403);
        buf_release(&mine);
        buf_release(&theirs);
    }
    static const char *const junk[] = {"", ".", "x", "a.b", "=.", "AAAA"};
    for (size_t i = 0; i < ARRAY_COUNT(junk); i++) {
        forged.token = str_from(junk[i]);
        complete(&rig, &forged, DONE, &said);
        CHECK_INT(said.status, 403);
    }
    forged = task;
    forged.request.epoch++;
    complete(&rig, &forged, DONE, &said);
    CHECK_INT(said.status, 409);
    rig.caller.tenant = STR("acme");
    complete(&rig, &task, DONE, &said);
    CHECK_INT(said.status, 403);
    rig.caller = (struct remote_caller){.pool = STR("gpu")};
    complete(&rig, &task, DONE, &said);
    CHECK_INT(said.status, 403);
    rig.caller.pool = STR("default");
    complete(&rig, &task, DONE, &said);
    rig_idle(&rig);
    CHECK_INT(said.status, 200);
    rig_close(&rig);
}

static void tenants_pools_and_kinds_are_kept_apart_and_take_turns(void)
{
    static const struct remote_route routes[] = {{.tenant = STR_INIT("acme"), .pool = STR_INIT("gpu")}};
    struct rig rig;
    struct said said;
    struct remote_task *tasks;
    rig_open(&rig, PLAN(SHELL("a", "", "") "," SHELL("b", "", "") "," SHELL("c", "", "")), routes, 1);
    rig_start_for(&rig, "acme", "r1");
    rig_start_for(&rig, "default", "r2");
    rig_start_for(&rig, "other", "r3");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":9,\"kinds\":[\"exec\"]}", &tasks), 0);
    rig.caller.tenant = STR("nobody");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":9}", &tasks), 0);
    rig.caller.tenant = STR("acme");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":9}", &tasks), 0); // they are in another pool
    ask(&rig, REMOTE_POLL, "{\"worker\":\"w\",\"tenant\":\"other\"}", &said);
    CHECK_INT(said.status, 403);
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"pool\":\"gpu\",\"max\":2,\"kinds\":[\"exec\",\"shell\"]}", &tasks),
              2);
    CHECK_STR(tasks[1].request.run, STR("r1"));
    rig.caller.tenant = (struct str){0};
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":4}", &tasks), 4);
    CHECK(!str_eq(tasks[0].request.tenant, tasks[1].request.tenant));
    CHECK(!str_eq(tasks[2].request.tenant, tasks[3].request.tenant));
    CHECK_INT(remote_counts(rig.remote).waiting, 3);
    CHECK_INT(remote_counts(rig.remote).leased, 6);
    struct json workers;
    CHECK(remote_workers(rig.remote, STR("acme"), &rig.memory, &workers));
    CHECK_INT(workers.count, 2);
    rig_close(&rig);
}

static void functions_and_batches_and_refusals(void)
{
    struct rig rig;
    struct said said;
    struct remote_task *tasks;
    rig_open(&rig, PLAN(SHELL("a", "", "") "," SHELL("b", "", "") "," SHELL("c", "", "")), NULL, 0);
    rig_start(&rig, "r1");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w1\",\"max\":9}", &tasks), 3);
    struct buf body;
    buf_init(&body, 65536);
    buf_text(&body, "{\"worker\":\"w1\",\"results\":[");
    struct tool_result ok = {.ok = true, .output = STR("fine\n\"x\""), .duration_ms = 5};
    struct tool_result json = {.ok = true, .is_json = true, .output = STR("{\"n\":[1,2]}")};
    struct tool_result bad = {.fault = {.code = STR("EXIT_NONZERO"), .message = STR("exit 3"), .has_exit = true}};
    bad.fault.exit_code = 3;
    remote_result_write(&body, tasks[0].token, tasks[0].request.epoch, &ok);
    buf_byte(&body, ',');
    remote_result_write(&body, tasks[1].token, tasks[1].request.epoch, &json);
    buf_byte(&body, ',');
    remote_result_write(&body, tasks[2].token, tasks[2].request.epoch, &bad);
    buf_text(&body, ",{\"token\":\"x\",\"output\":\"y\"}]}");
    CHECK(buf_ok(&body));
    buf_clear(&rig.told);
    ask(&rig, REMOTE_COMPLETE, body.ptr, &said);
    rig_idle(&rig);
    CHECK_INT(said.status, 200);
    struct remote_answer *answers;
    size_t count;
    struct error err = {0};
    CHECK_OK(remote_answers_read(str_from(said.body), &rig.memory, &answers, &count, &err), &err);
    CHECK_INT(count, 4);
    CHECK(answers[0].state == REMOTE_OK && answers[2].state == REMOTE_OK && answers[3].state == REMOTE_DENIED);
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nSTEP_COMPLETED b 1.1\nSTEP_FAILED c 1.1 EXIT_NONZERO\nRUN_FAILED "
                     "EXIT_NONZERO\n");
    static const char *const broken[] = {"", "[]", "{}", "{\"worker\":\"\"}", "{\"worker\":\"w\",\"results\":7}"};
    for (size_t i = 0; i < ARRAY_COUNT(broken); i++) {
        ask(&rig, REMOTE_COMPLETE, broken[i], &said);
        CHECK_INT(said.status, 400);
        CHECK_INT(said.count, 1);
    }
    rig_start(&rig, "r2");
    struct remote_task task = poll_one(&rig);
    complete(&rig, &task, ",\"output\":7", &said);
    CHECK_INT(said.status, 400);
    complete(&rig, &task, ",\"error\":{}", &said);
    CHECK_INT(said.status, 400);
    ask(&rig, REMOTE_FAIL, item(&rig, &task, "results", ",\"output\":\"x\""), &said);
    CHECK_INT(said.status, 400);
    buf_release(&body);
    rig_close(&rig);
}

static void log_chunks_are_kept_once_and_artifacts_only_if_declared(void)
{
    struct rig rig;
    struct said said;
    struct error err = {0};
    rig_open(&rig, ONE, NULL, 0);
    char path[512], dir[512];
    snprintf(path, sizeof(path), "%s/logs/a.1.1.log", test_dir());
    snprintf(dir, sizeof(dir), "%s/artifacts", test_dir());
    struct artifact_decl decls[] = {{.path = STR("out/report.txt")}, {.path = STR("../x")}, {.path = STR("/etc/x")}};
    struct str argv[] = {STR("true")};
    struct tool_request request = {.ticket = 77,
                                   .tenant = STR("default"),
                                   .run = STR("r9"),
                                   .step = STR("a"),
                                   .kind = STR("exec"),
                                   .epoch = 1,
                                   .logical = 1,
                                   .engine = 1,
                                   .argv = argv,
                                   .argc = 1,
                                   .log = str_from(path),
                                   .log_max = 1 << 20,
                                   .artifacts_dir = str_from(dir),
                                   .artifacts = decls,
                                   .artifact_count = 3};
    struct tools *tools = remote_tools(rig.remote);
    CHECK_OK(tools->ops->start(tools, &request, &err), &err);
    struct remote_task task = poll_one(&rig);
    CHECK_INT(task.request.artifact_count, 3);
    const char *one = item(&rig, &task, "chunks", ",\"stream\":\"stdout\",\"offset\":0,\"text\":\"hello\\nwor\"");
    ask(&rig, REMOTE_LOGS, one, &said);
    CHECK_INT(said.status, 200);
    ask(&rig, REMOTE_LOGS, one, &said); // again
    ask(&rig, REMOTE_LOGS, item(&rig, &task, "chunks", ",\"stream\":\"stdout\",\"offset\":6,\"text\":\"world\\n\""),
        &said);
    ask(&rig, REMOTE_LOGS, item(&rig, &task, "chunks", ",\"stream\":\"stderr\",\"offset\":0,\"text\":\"oh\\n\""),
        &said);
    ask(&rig, REMOTE_LOGS, item(&rig, &task, "chunks", ",\"stream\":\"other\",\"text\":\"x\""), &said);
    CHECK_INT(said.status, 400);
    CHECK_OK(remote_artifact(rig.remote, &rig.caller, task.token, STR("out/report.txt"), STR("42"), &err), &err);
    struct str text;
    char file[600];
    snprintf(file, sizeof(file), "%s/out/report.txt", dir);
    CHECK_OK(os_read_file(file, 100, &rig.memory, &text, &err), &err);
    CHECK_STR(text, STR("42"));
    static const char *const names[] = {"other.txt", "../x", "/etc/x", "", "out", "out/report.txt/"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        CHECK_INT(remote_artifact(rig.remote, &rig.caller, task.token, str_from(names[i]), STR("1"), NULL),
                  E_NOT_FOUND);
    CHECK_INT(remote_artifact(rig.remote, &rig.caller, STR("x"), STR("out/report.txt"), STR("1"), NULL), E_DENIED);
    complete(&rig, &task, DONE, &said);
    rig_idle(&rig); // nobody knows ticket 77: it is dropped
    CHECK_INT(said.status, 409);
    CHECK_INT(remote_artifact(rig.remote, &rig.caller, task.token, STR("out/report.txt"), STR("1"), NULL), E_CONFLICT);
    ask(&rig, REMOTE_LOGS, one, &said);
    CHECK_INT(said.status, 409);
    CHECK_OK(os_read_file(path, 4096, &rig.memory, &text, &err), &err);
    struct buf seen;
    buf_init(&seen, 4096);
    for (struct str rest = text; rest.len > 0;) {
        struct str line = str_cut(rest, '\n', &rest);
        buf_printf(&seen, "%.*s|", STR_ARG(str_slice(line, 25, line.len)));
    }
    CHECK_TEXT(seen.ptr, "out hello|out world|err oh|end exit 0|");
    buf_release(&seen);
    rig_close(&rig);
}

static void end_of_the_server_answers_everybody(void)
{
    struct rig rig;
    struct said waiting, beat, said, later;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    ask(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"waitMs\":20000}", &waiting);
    ask(&rig, REMOTE_HEARTBEAT, item(&rig, &task, "tasks", "}],\"waitMs\":9000,\"x\":[{"), &beat);
    complete(&rig, &task, DONE, &said);
    remote_shut(rig.remote);
    CHECK_INT(waiting.status, 503);
    CHECK_INT(beat.status, 503);
    CHECK_INT(said.count, 0);
    complete(&rig, &task, DONE, &later);
    CHECK_INT(later.status, 503);
    rig_close(&rig);
    CHECK_INT(said.status, 503); // never stored, never acknowledged
}

// What waits, for how long, and who is there, by pool; a pool that was named once is told of from then on.
static void pools_are_counted(void)
{
    struct rig rig;
    struct remote_pool *pools;
    struct remote_task *tasks;
    size_t count;
    rig_open(&rig, ONE, NULL, 0);
    CHECK(remote_pools(rig.remote, &rig.memory, &pools, &count));
    CHECK_INT(count, 0);
    rig_start(&rig, "r1");
    rig_pass(&rig, 700);
    rig_start(&rig, "r2");
    rig_pass(&rig, 300);
    CHECK(remote_pools(rig.remote, &rig.memory, &pools, &count));
    CHECK_INT(count, 1);
    CHECK_STR(pools[0].name, STR("default"));
    CHECK_INT(pools[0].waiting, 2);
    CHECK_INT(pools[0].oldest_ms, 1000);
    CHECK_INT(pools[0].workers, 0);
    (void)poll_one(&rig);
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w2\",\"pool\":\"other\",\"max\":1}", &tasks), 0);
    CHECK(remote_pools(rig.remote, &rig.memory, &pools, &count));
    CHECK_INT(count, 2);
    CHECK_INT(pools[0].waiting, 1);
    CHECK_INT(pools[0].oldest_ms, 300);
    CHECK_INT(pools[0].workers, 1);
    CHECK_STR(pools[1].name, STR("other"));
    CHECK_INT(pools[1].waiting, 0);
    CHECK_INT(pools[1].workers, 1);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pools_are_counted),
        TEST(task_is_taken_and_completed_and_the_answer_waits_for_the_disk),
        TEST(completion_that_comes_again_is_answered_again_and_changes_nothing),
        TEST(silent_worker_is_lost_and_its_late_result_refused_C_34_I14),
        TEST(task_that_is_given_back_runs_again_at_once),
        TEST(an_outcome_that_is_reported_as_an_event_is_the_result_NX_5_2_NX_2t),
        TEST(what_a_worker_may_not_report_is_refused_whole_NX_5_3_NX_4g),
        TEST(reported_events_renew_the_lease),
        TEST(heartbeat_renews_the_lease),
        TEST(poll_waits_for_work_or_for_its_time),
        TEST(cancelled_task_is_told_to_its_worker_at_once),
        TEST(heartbeat_hears_of_a_task_that_came_after_it),
        TEST(cancelled_task_does_not_wait_for_a_worker_that_ignores_it),
        TEST(task_that_nobody_took_is_cancelled_at_once),
        TEST(worker_that_lives_but_takes_too_long_is_stopped),
        TEST(forged_or_borrowed_token_is_refused_A7),
        TEST(tenants_pools_and_kinds_are_kept_apart_and_take_turns),
        TEST(functions_and_batches_and_refusals),
        TEST(log_chunks_are_kept_once_and_artifacts_only_if_declared),
        TEST(end_of_the_server_answers_everybody),
    };
    return test_main("remote_tasks", tests, ARRAY_COUNT(tests), argc, argv);
}
