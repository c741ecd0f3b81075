// Tasks of workers: taken, kept by a lease, completed, lost, cancelled; pools and who may take from them.
#include "unit/support/remote_kit.h"

static void task_is_taken_and_completed_and_the_answer_waits_for_the_disk(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, PLAN(SHELL("a", "", ",\"timeout\":\"2s\"") "," SHELL("b", "\"a\"", "")));
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
    complete(&rig, &task, DONE);
    CHECK_INT(rig.said.count, 0); // not stored yet
    struct said again;
    complete_into(&rig, &task, DONE, &again);
    CHECK_INT(again.status, 503);
    CHECK(has(&again, "NOT_STORED_YET"));
    rig_idle(&rig);
    CHECK_INT(rig.said.count, 1);
    CHECK_INT(rig.said.status, 200);
    CHECK_TEXT(rig.said.body, "{\"results\":[{\"state\":\"ok\"}]}");
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nSTEP_STARTED b 1.1\n");
    rig_close(&rig);
}

static void completion_that_comes_again_is_answered_again_and_changes_nothing(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    complete(&rig, &task, DONE);
    rig_idle(&rig);
    buf_clear(&rig.told);
    for (int i = 0; i < 3; i++) CHECK_INT(complete(&rig, &task, DONE), 200);
    CHECK_INT(complete(&rig, &task, ",\"output\":\"another\""), 409);
    CHECK(has(&rig.said, "\"code\":\"STALE_ATTEMPT\""));
    rig_idle(&rig);
    rig_expect(&rig, "");
    rig_close(&rig);
}

static void silent_worker_is_lost_and_its_late_result_refused_C_34_I14(void)
{
    struct rig rig;
    struct remote_task old = rig_taken(&rig, ONE);
    rig_pass(&rig, REMOTE_LEASE_MS - 1);
    rig_expect(&rig, "");
    struct said asleep;
    ask_into(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"waitMs\":20000}", &asleep);
    rig_pass(&rig, 1);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    remote_tick(rig.remote);
    CHECK_TEXT(asleep.body, "{\"tasks\":[],\"waitedMs\":1}"); // whoever asked is asleep or dead: somebody else shall have it
    CHECK_INT(complete(&rig, &old, DONE), 409);
    CHECK(has(&rig.said, "STALE_ATTEMPT"));
    struct remote_task task = poll_one(&rig);
    CHECK_INT(task.request.logical, 1);
    CHECK_INT(task.request.engine, 2);
    CHECK_INT(complete(&rig, &old, DONE), 409);
    complete(&rig, &task, DONE);
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    rig_expect(&rig, "STEP_COMPLETED a 1.2\nRUN_COMPLETED\n");
    CHECK_INT(remote_counts(rig.remote).expired, 1);
    rig_close(&rig);
}

static void task_that_is_given_back_runs_again_at_once(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    complete(&rig, &task, ",\"lost\":true");
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    CHECK_INT(poll_one(&rig).request.engine, 2);
    rig_close(&rig);
}

static void heartbeat_renews_the_lease(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    for (int i = 0; i < 10; i++) {
        rig_pass(&rig, REMOTE_LEASE_MS - 1);
        heartbeat(&rig, &task);
        CHECK_TEXT(rig.said.body, "{\"leaseMs\":30000,\"results\":[{\"state\":\"ok\"}]}");
    }
    rig_expect(&rig, "");
    rig_pass(&rig, REMOTE_LEASE_MS);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    heartbeat(&rig, &task);
    CHECK(has(&rig.said, "\"state\":\"stale\""));
    rig_close(&rig);
}

static void poll_waits_for_work_or_for_its_time(void)
{
    struct rig rig;
    struct said early, late;
    struct remote_task *tasks;
    rig_open(&rig, ONE, NULL, 0);
    ask_into(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"max\":5,\"waitMs\":20000}", &early);
    CHECK_INT(early.count, 0);
    rig_start(&rig, "r1");
    remote_tick(rig.remote);
    CHECK_INT(early.count, 1);
    CHECK_INT(tasks_of(&rig, &early, &tasks), 1);
    ask_into(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"max\":5,\"waitMs\":20000}", &late);
    rig_pass(&rig, 19999);
    CHECK_INT(late.count, 0);
    rig_pass(&rig, 1);
    CHECK_TEXT(late.body, "{\"tasks\":[],\"waitedMs\":20000}");
    rig_start(&rig, "r2");
    rig_gone = true;
    ask_into(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"waitMs\":20000}", &late);
    CHECK_TEXT(late.body, "{\"tasks\":[],\"waitedMs\":0}"); // nobody reads it
    rig_gone = false;
    (void)poll_one(&rig);
    rig_close(&rig);
}

static void cancelled_task_is_told_to_its_worker_at_once(void)
{
    struct rig rig;
    struct said beat;
    struct remote_task task = rig_taken(&rig, ONE);
    heartbeat_waits(&rig, &task, &beat);
    CHECK_INT(beat.count, 0);
    rig_signal(&rig, SIGNAL_CANCEL);
    remote_tick(rig.remote);
    CHECK_INT(beat.count, 1);
    CHECK(has(&beat, "{\"state\":\"cancel\",\"graceMs\":5000}"));
    heartbeat_waits(&rig, &task, &beat);
    CHECK_INT(beat.count, 0); // known already
    buf_clear(&rig.told);
    ask(&rig, REMOTE_FAIL, item(&rig, &task, "results", ",\"error\":{\"code\":\"CANCELLED\",\"message\":\"killed\"}"));
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
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
    heartbeat_waits(&rig, &first, &beat);
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
    struct remote_task task = rig_taken(&rig, ONE);
    rig_signal(&rig, SIGNAL_CANCEL);
    buf_clear(&rig.told);
    for (int i = 0; i < 15; i++) {
        rig_expect(&rig, "");
        heartbeat(&rig, &task);
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
    struct remote_task task = rig_taken(&rig, PLAN(SHELL("a", "", ",\"timeout\":\"2s\"")));
    for (int i = 0; i < 7; i++) {
        rig_expect(&rig, "");
        heartbeat(&rig, &task);
        rig_pass(&rig, 1000);
    }
    rig_expect(&rig, "STEP_FAILED a 1.1 TIMEOUT\nRUN_FAILED TIMEOUT\n");
    rig_close(&rig);
}

static void tenants_pools_and_kinds_are_kept_apart_and_take_turns(void)
{
    static const struct executor_route routes[] = {{.tenant = STR_INIT("acme"), .pool = STR_INIT("gpu")}};
    struct rig rig;
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
    CHECK_INT(ask(&rig, REMOTE_POLL, "{\"worker\":\"w\",\"tenant\":\"other\"}"), 403);
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

// The names of workers are what they say they are, and only so many have room.
static void names_of_workers_take_the_places_of_their_own_tenant_alone(void)
{
    struct rig rig;
    struct remote_task *tasks;
    struct json workers;
    rig_open(&rig, ONE, NULL, 0);
    rig_start_for(&rig, "acme", "r1");
    rig.caller.tenant = STR("acme");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"busy\",\"max\":1}", &tasks), 1);
    rig.caller.tenant = STR("eve");
    for (int i = 0; i < 10500; i++) {
        char body[64];
        rig_pass(&rig, 1);
        snprintf(body, sizeof(body), "{\"worker\":\"w%d\"}", i);
        ask(&rig, REMOTE_POLL, body);
    }
    rig.caller.tenant = STR("acme");
    ask(&rig, REMOTE_POLL, "{\"worker\":\"late\"}");
    CHECK(remote_workers(rig.remote, STR("acme"), &rig.memory, &workers));
    CHECK_INT(workers.count, 2);
    CHECK(remote_workers(rig.remote, STR("eve"), &rig.memory, &workers));
    CHECK_INT(workers.count, 1000);
    CHECK_STR(json_text(json_key(&workers.items[0], "worker")), STR("w10499"));
    rig_close(&rig);
}

// A number of bytes without end stopped the program of the worker, and with it all that it was doing.
static void a_task_whose_numbers_are_none_is_refused(void)
{
    static const char *const bad[] = {
        "\"outputMax\":9223372036854775807", "\"outputMax\":-1",          "\"logMax\":\"x\"", "\"leaseMs\":0",
        "\"leaseMs\":9223372036854775807",   "\"timeoutMs\":-5",           "\"attempt\":0",    "\"engineAttempt\":4294967296",
        "\"epoch\":-1",                      "\"form\":\"process\",\"input\":1", "\"input\":1"};
    struct arena arena;
    arena_init(&arena, 4096, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(bad) + 1; i++) {
        char text[512];
        struct error err = {0};
        struct remote_task task;
        snprintf(text, sizeof(text), "{\"token\":\"t\",\"run\":\"r\",\"step\":\"a\",\"kind\":\"shell\",\"argv\":[\"true\"]%s%s}",
                 i < ARRAY_COUNT(bad) ? "," : "", i < ARRAY_COUNT(bad) ? bad[i] : "");
        enum code rc = remote_task_read(str_from(text), &arena, &task, &err);
        CHECK((rc == OK) == (i == ARRAY_COUNT(bad)));
    }
    arena_release(&arena);
}

static void end_of_the_server_answers_everybody(void)
{
    struct rig rig;
    struct said waiting, beat, later;
    rig_open(&rig, ONE, NULL, 0);
    rig_start(&rig, "r1");
    struct remote_task task = poll_one(&rig);
    ask_into(&rig, REMOTE_POLL, "{\"worker\":\"w1\",\"waitMs\":20000}", &waiting);
    heartbeat_waits(&rig, &task, &beat);
    complete(&rig, &task, DONE);
    remote_shut(rig.remote);
    CHECK_INT(waiting.status, 503);
    CHECK_INT(beat.status, 503);
    CHECK_INT(rig.said.count, 0);
    complete_into(&rig, &task, DONE, &later);
    CHECK_INT(later.status, 503);
    rig_close(&rig);
    CHECK_INT(rig.said.status, 503); // never stored, never acknowledged
}

// A tenant that names ever new kinds or pools leaves nothing behind that every later poll walks.
static void queues_in_which_nothing_waits_are_gone(void)
{
    struct rig rig;
    struct remote_task *tasks;
    rig_open(&rig, PLAN(SHELL("a", "", "") "," SHELL("b", "", "")), NULL, 0);
    rig_start_for(&rig, "acme", "r1");
    rig_start_for(&rig, "other", "r2");
    CHECK(rig.remote->queues && rig.remote->queues->next && !rig.remote->queues->next->next);
    rig.caller.tenant = STR("acme");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":9}", &tasks), 2);
    CHECK(rig.remote->queues && !rig.remote->queues->next);
    CHECK_STR(rig.remote->queues->tenant, STR("other"));
    rig.caller.tenant = (struct str){0};
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":9}", &tasks), 2);
    CHECK(!rig.remote->queues);
    rig_close(&rig);
}

// One task for each poll, and a queue that is filled again as soon as it is empty: the others still get their turn.
static void a_queue_that_comes_back_waits_for_the_others(void)
{
    static const char *const tenants[] = {"a", "b", "c"};
    struct rig rig;
    struct remote_task *tasks;
    int taken[3] = {0};
    char run[16];
    rig_open(&rig, ONE, NULL, 0);
    for (int i = 0; i < 3; i++) rig_start_for(&rig, tenants[i], "first");
    for (int i = 0; i < 9; i++) {
        CHECK_INT(poll_with(&rig, "{\"worker\":\"w\",\"max\":1}", &tasks), 1);
        int who = tasks[0].request.tenant.ptr[0] - 'a';
        taken[who]++;
        snprintf(run, sizeof(run), "r%d", i);
        rig_start_for(&rig, tenants[who], run);
    }
    for (int i = 0; i < 3; i++) CHECK_INT(taken[i], 3);
    rig_close(&rig);
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
        TEST(queues_in_which_nothing_waits_are_gone),
        TEST(a_queue_that_comes_back_waits_for_the_others),
        TEST(task_is_taken_and_completed_and_the_answer_waits_for_the_disk),
        TEST(completion_that_comes_again_is_answered_again_and_changes_nothing),
        TEST(silent_worker_is_lost_and_its_late_result_refused_C_34_I14),
        TEST(task_that_is_given_back_runs_again_at_once),
        TEST(heartbeat_renews_the_lease),
        TEST(poll_waits_for_work_or_for_its_time),
        TEST(cancelled_task_is_told_to_its_worker_at_once),
        TEST(heartbeat_hears_of_a_task_that_came_after_it),
        TEST(cancelled_task_does_not_wait_for_a_worker_that_ignores_it),
        TEST(task_that_nobody_took_is_cancelled_at_once),
        TEST(worker_that_lives_but_takes_too_long_is_stopped),
        TEST(tenants_pools_and_kinds_are_kept_apart_and_take_turns),
        TEST(names_of_workers_take_the_places_of_their_own_tenant_alone),
        TEST(a_task_whose_numbers_are_none_is_refused),
        TEST(end_of_the_server_answers_everybody),
    };
    return test_main("remote_tasks", tests, ARRAY_COUNT(tests), argc, argv);
}
