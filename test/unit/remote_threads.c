// Many workers on threads of their own against the product's task table, its thread and an engine: everything is completed,
// nothing twice. Some workers fall silent in the middle, some say everything twice.
#include "harness/test.h"
#include "remote/remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 24, RUNS = 40, WORKERS = 4, LEASE_MS = 300 };

struct world {
    struct remote *remote;
    struct engine *engine;
    atomic_bool stop;
    atomic_int ended;
    atomic_uint completed, redispatched, late, acknowledged, repeated_wrong;
};

struct reply {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    bool done;
    int status;
    struct buf body;
};

static void answered(void *context, int status, struct str body)
{
    struct reply *reply = context;
    pthread_mutex_lock(&reply->mutex);
    reply->status = status;
    buf_clear(&reply->body);
    buf_add(&reply->body, body);
    reply->done = true;
    pthread_cond_signal(&reply->came);
    pthread_mutex_unlock(&reply->mutex);
}

static int call(struct world *world, struct reply *reply, enum remote_call kind, struct str body)
{
    struct remote_caller caller = {0};
    reply->done = false;
    remote_serve(world->remote, kind, &caller, body, answered, reply);
    pthread_mutex_lock(&reply->mutex);
    while (!reply->done) pthread_cond_wait(&reply->came, &reply->mutex);
    pthread_mutex_unlock(&reply->mutex);
    return reply->status;
}

static void work(struct world *world, struct reply *reply, unsigned *turn, const char *name)
{
    struct arena arena;
    arena_init(&arena, 65536, (size_t)64 << 20);
    struct buf body;
    buf_init(&body, 1 << 20);
    buf_printf(&body, "{\"worker\":\"%s\",\"max\":16,\"waitMs\":100}", name);
    struct remote_task *tasks;
    size_t count = 0;
    struct error err = {0};
    if (call(world, reply, REMOTE_POLL, buf_str(&body)) == 200)
        CHECK_OK(remote_tasks_read(buf_str(&reply->body), &arena, &tasks, &count, &err), &err);
    bool silent = count > 0 && ++*turn % 13 == 0; // dies with what it has
    if (count > 0 && !silent) {
        buf_clear(&body);
        buf_printf(&body, "{\"worker\":\"%s\",\"results\":[", name);
        for (size_t i = 0; i < count; i++) {
            struct tool_result result = {.ok = true, .output = tasks[i].request.step};
            if (i > 0) buf_byte(&body, ',');
            remote_result_write(&body, tasks[i].token, tasks[i].request.epoch, &result);
        }
        buf_text(&body, "]}");
        struct remote_answer *first = NULL;
        for (unsigned times = 0; times < 1 + (*turn % 3 == 0); times++) {
            struct remote_answer *answers;
            size_t answer_count;
            int status = call(world, reply, REMOTE_COMPLETE, buf_str(&body));
            if (status != 200 && status != 409) continue;
            CHECK_OK(remote_answers_read(buf_str(&reply->body), &arena, &answers, &answer_count, &err), &err);
            for (size_t i = 0; !first && i < answer_count; i++)
                atomic_fetch_add(&world->acknowledged, answers[i].state == REMOTE_OK);
            for (size_t i = 0; first && i < answer_count; i++)
                atomic_fetch_add(&world->repeated_wrong, answers[i].state != first[i].state);
            first = answers;
        }
    }
    buf_release(&body);
    arena_release(&arena);
}

static void *worker(void *context)
{
    struct world *world = context;
    static atomic_uint number;
    char name[16];
    snprintf(name, sizeof(name), "w%u", atomic_fetch_add(&number, 1));
    struct reply reply = {.mutex = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
    buf_init(&reply.body, 1 << 24);
    for (unsigned turn = 0; !atomic_load(&world->stop);) work(world, &reply, &turn, name);
    buf_release(&reply.body);
    return NULL;
}

static void seen(void *context, const struct engine_event *event)
{
    struct world *world = context;
    if (event->moment->kind == MOMENT_RUN_COMPLETED) atomic_fetch_add(&world->ended, 1);
    if (event->moment->kind == MOMENT_STEP_COMPLETED) atomic_fetch_add(&world->completed, 1);
    if (event->moment->kind == MOMENT_STEP_REDISPATCHED) atomic_fetch_add(&world->redispatched, 1);
    if (event->moment->kind == MOMENT_LATE_RESULT) atomic_fetch_add(&world->late, 1);
}

static struct program *many_steps(struct arena *arena)
{
    struct buf plan;
    buf_init(&plan, 1 << 20);
    buf_text(&plan, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[");
    for (int i = 0; i < STEPS; i++)
        buf_printf(&plan, "%s{\"stepId\":\"s%d\",\"kind\":\"exec\",\"dependsOn\":[%s],\"with\":{\"argv\":[\"x\"]}}",
                   i ? "," : "", i, i % 4 == 3 ? "\"s0\"" : "");
    buf_text(&plan, "]}");
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena);
    struct program *program = NULL;
    struct error err = {0};
    CHECK_OK(program_load(buf_str(&plan), STR("test"), NULL, &diagnostics, &program, &err), &err);
    buf_release(&plan);
    return program;
}

static void threads_complete_everything_once_although_some_die_I12_I13_I14(void)
{
    struct world world = {0};
    struct arena arena;
    struct error err = {0};
    const struct contract *contract;
    struct store *store;
    os_log_level(LOG_ERROR);
    arena_init(&arena, 65536, SIZE_MAX);
    CHECK_OK(contract_open(&arena, &contract, &err), &err);
    struct store_options options = {.mode = STORE_WRITE, .create = true, .contract = contract, .entropy = os_entropy()};
    CHECK_OK(store_open(STR("memory:"), &options, &store, &err), &err);
    struct remote_options remote = {.lease_ms = LEASE_MS};
    CHECK_OK(remote_open(&remote, &world.remote, &err), &err);
    struct engine_options engine = {.store = store,
                                    .contract = contract,
                                    .entropy = os_entropy(),
                                    .pools = remote_tools(world.remote),
                                    .routes = {.only_pools = true},
                                    .observer = {.context = &world, .event = seen}};
    CHECK_OK(engine_open(&engine, &world.engine, &err), &err);
    remote_attach(world.remote, world.engine);
    struct program *program = many_steps(&arena);
    for (int i = 0; i < RUNS; i++) {
        struct start_request request = {.program = program, .triggered_by = STR("test")};
        char id[129];
        CHECK_OK(engine_start(world.engine, &request, id, &err), &err);
    }
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) CHECK(pthread_create(&threads[i], NULL, worker, &world) == 0);
    CHECK_OK(engine_loop(world.engine, &(struct engine_loop){0}, &err), &err);
    atomic_store(&world.stop, true);
    remote_shut(world.remote);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    CHECK_INT(world.ended, RUNS);
    CHECK_INT(world.completed, RUNS * STEPS);
    CHECK_INT(world.acknowledged, RUNS * STEPS);
    CHECK_INT(world.repeated_wrong, 0);
    CHECK_INT(world.late, 0); // they are refused before they reach the engine
    CHECK(world.redispatched > 0);
    CHECK_INT(world.redispatched, remote_counts(world.remote).expired);
    engine_close(world.engine);
    remote_free(world.remote);
    program_release(program);
    store_close(store);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(threads_complete_everything_once_although_some_die_I12_I13_I14),
    };
    return test_main("remote_threads", tests, ARRAY_COUNT(tests), argc, argv);
}
