// What becomes of a batch that cannot be stored: of its runs one by one, of their inputs, and of the queue.
#include "support/engine_kit.h"

static char large[600 * 1024];

// Another engine on the same store, with tools of its own; both think that the id is free.
static void second_engine(struct kit *second, const struct kit *first)
{
    *second = *first;
    second->attempt_count = 0;
    buf_init(&second->told, (size_t)1 << 20);
    kit_open_engine(second);
}

static void second_engine_gone(struct kit *second)
{
    engine_close(second->engine);
    buf_release(&second->told);
}

static void who_comes_second_to_a_run_id_is_refused_and_the_others_of_its_batch_go_on_I24(void)
{
    struct kit k, other;
    kit_open(&k, LINEAR);
    second_engine(&other, &k);
    kit_start(&k, "r0");
    kit_deliver(&k, "a", true, "ok", false); // in the same batch: it is stored, once
    kit_queue_start(&k, "r1");
    kit_queue_start(&k, "r2");
    char id[UUID_SIZE];
    struct signal pause = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
    kit_send(&k, "r1", &pause); // of the run that never begins
    kit_start(&other, "r1");
    buf_clear(&k.told);
    kit_idle(&k);
    CHECK_INT(k.start_refused, E_EXISTS);
    CHECK(!kit_told(&k, "r1 "));
    CHECK(kit_told(&k, "r0 STEP_COMPLETED a 1.1\nr0 STEP_STARTED b 1.1\n"));
    CHECK(kit_told(&k, "r2 RUN_QUEUED\nr2 RUN_STARTED\nr2 STEP_STARTED a 1.1\n"));
    CHECK(!engine_run(k.engine, STR("default"), STR("r1")));
    CHECK_INT(k.decision_count, 0);
    kit_done(&other, "a", "ok");
    kit_done(&other, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    second_engine_gone(&other);
    kit_close(&k);
}

// A program that drives runs ends when one of them is refused, and leaves children to their parents: the id does not say which is which.
static void a_refused_start_says_whether_it_was_a_child_s_I24(void)
{
    struct kit k, other;
    kit_open(&k, PLAN("{\"stepId\":\"s\",\"kind\":\"subrun\",\"with\":{\"document\":\"child\"}}"));
    second_engine(&other, &k);
    kit_queue_start(&k, "r1");
    while (!kit_told(&k, "r1 STEP_STARTED s")) CHECK(kit_turn(&k)); // the start of its child is queued
    kit_start(&other, "r1.s.1");
    kit_idle(&k);
    CHECK_INT(k.start_refused, E_EXISTS);
    CHECK(k.parent_refused);
    kit_queue_start(&k, "r1.other");
    kit_start(&other, "r1.other");
    kit_idle(&k);
    CHECK_INT(k.start_refused, E_EXISTS);
    CHECK(!k.parent_refused);
    second_engine_gone(&other);
    kit_close(&k);
}

// The id was free when the start was first tried, and there was no room for it.
static void a_start_that_waited_for_room_is_refused_when_its_id_was_taken_meanwhile_I24(void)
{
    struct kit k, other;
    kit_open(&k, LINEAR);
    second_engine(&other, &k);
    k.full_left = 1;
    kit_start(&k, "r1");
    kit_start(&other, "r1");
    kit_pass(&k, 200);
    CHECK_INT(k.start_refused, E_EXISTS);
    CHECK_INT(k.attempt_count, 0);
    CHECK_INT(other.attempt_count, 1);
    second_engine_gone(&other);
    COVERED(start_of_an_id_that_was_taken);
    kit_close(&k);
}

// A signal in the store is for the run in the store: here for another's, that has taken the id of a start which still waits.
static void a_signal_of_a_run_that_took_the_id_is_left_to_its_owner_E2(void)
{
    struct kit k, other;
    kit_open(&k, LINEAR);
    second_engine(&other, &k);
    kit_queue_start(&k, "r1");
    kit_start(&other, "r1");
    char id[UUID_SIZE];
    struct error err = {0};
    struct signal pause = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
    struct str bytes;
    CHECK_OK(signal_encode(&pause, &k.memory, &bytes, &err), &err);
    CHECK_OK(store_post(k.store, STR("default"), STR("r1"), pause.id, bytes, &err), &err);
    CHECK_OK(engine_poll(k.engine, &err), &err);
    kit_idle(&k);
    CHECK_INT(k.start_refused, E_EXISTS);
    CHECK_INT(k.decision_count, 0);
    CHECK_OK(engine_poll(other.engine, &err), &err);
    kit_idle(&other);
    CHECK(other.decision.accepted);
    COVERED(signal_of_a_run_that_took_the_id);
    second_engine_gone(&other);
    kit_close(&k);
}

static void a_result_that_waited_for_room_fails_its_step_when_it_is_too_large(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("x", "", "")));
    engine_close(k.engine);
    k.limits.inline_max = (size_t)1 << 20; // so that it does not become a blob
    kit_open_engine(&k);
    memset(large, 'x', sizeof(large) - 1);
    kit_start(&k, "r1");
    buf_clear(&k.told);
    k.full_left = 3;
    kit_deliver(&k, "x", true, "small", false);
    kit_deliver(&k, "a", true, large, false);
    kit_turn(&k);
    CHECK_INT(engine_activity(k.engine).resident, 1);
    for (int i = 0; i < 3; i++) kit_pass(&k, 200);
    CHECK(kit_told(&k, "r1 STEP_COMPLETED x 1.1\n"));
    CHECK(kit_told(&k, "r1 STEP_FAILED a 1.1 PAYLOAD_TOO_LARGE\n"));
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    COVERED(result_cannot_be_an_event);
    kit_close(&k);
}

// A step with a time limit is looked after again whenever its run is folded again.
#define TIMED                                                                                                          \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"                              \
    "- step: make\n  spec: {policy: {lifecycle: {timeout_s: 3600}}}\n"                                                 \
    "  loop: {in: [1, 2, 3, 4], iterator: n, spec: {mode: parallel, max_in_flight: 4}}\n"                              \
    "  tool: {kind: python, code: x}\n"

static bool knows(void *context, struct str function)
{
    (void)context;
    return str_is(function, "python");
}

static void the_queue_does_not_grow_while_the_disk_is_full_I9(void)
{
    struct kit k;
    kit_open(&k, TIMED);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    kit_start(&k, "r1");
    CHECK_INT(k.attempt_count, 4);
    for (size_t i = 0; i < 4; i++) {
        k.attempts[i].over = true;
        struct tool_result result = {
            .ticket = k.attempts[i].ticket, .ok = true, .output = STR("{\"result\":1,\"status\":\"ok\"}")};
        engine_deliver(k.engine, &result);
    }
    k.full_left = 1000;
    for (int i = 0; i < 1000; i++) {
        kit_pass(&k, 200);
        CHECK(k.engine->queue.count <= 5); // four results, and one recovery
        CHECK(k.engine->queue.capacity <= 64);
    }
    CHECK_INT(k.full_left, 0);
    kit_pass(&k, 200);
    CHECK_INT(k.attempt_count, 4);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

// What an attempt gets is what was there when it was ordered, also when more is decided in the same batch.
static void parameters_that_change_in_the_same_batch_are_for_later_attempts(void)
{
    struct kit k;
    kit_open(&k, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"inputs\":{\"m\":1},"
                 "\"steps\":[" SHELL("a", "", "") ",{\"stepId\":\"b\",\"kind\":\"exec\",\"dependsOn\":[\"a\"],\"with\":{"
                 "\"argv\":[\"do\",\"m=$INPUTS.m\"]}},{\"stepId\":\"c\",\"kind\":\"exec\",\"dependsOn\":[\"b\"],\"with\":{"
                 "\"argv\":[\"do\",\"m=$INPUTS.m\"]}}]}");
    kit_start(&k, "r1");
    char id[UUID_SIZE];
    struct signal update = kit_make_signal(&k, SIGNAL_UPDATE_PARAMS, "", id);
    struct error err = {0};
    CHECK_OK(json_parse(STR("{\"params\":{\"m\":2}}"), &json_limits_default, &k.memory, &update.payload, &err), &err);
    uint32_t before = k.commit_count;
    struct tool_result result = {.ticket = kit_attempt(&k, "a")->ticket, .ok = true, .output = STR("ok")};
    kit_attempt(&k, "a")->over = true;
    CHECK_OK(input_from_result(k.engine, &result, NULL, &err), &err); // before the signal, in its batch
    kit_send(&k, "r1", &update);
    kit_turn(&k);
    CHECK_INT(k.commit_count, before + 1);
    CHECK_TEXT(kit_attempt(&k, "b")->said, "m=1");
    kit_done(&k, "b", "ok");
    CHECK_TEXT(kit_attempt(&k, "c")->said, "m=2");
    kit_close(&k);
}

// A batch has room for one more run per input. Children of a list do not take that of runs that others asked for.
static void a_list_that_begins_leaves_room_for_the_runs_that_are_made_in_its_batch(void)
{
    struct kit k;
    kit_open(&k, "name: n\nnodes:\n  - {id: s, workflow: child, fan_out: {items: [1, 2, 3, 4, 5, 6]}}\n");
    static const char *const ended[] = {"r1", "r2", "r3"};
    for (size_t i = 0; i < ARRAY_COUNT(ended); i++) {
        kit_start(&k, ended[i]);
        for (int child = 0; child < 6; child++) kit_done(&k, "c", "ok");
        CHECK_INT(kit_head(&k, ended[i]).summary.status, RUN_STATUS_COMPLETED);
    }
    k.decision_count = 0;
    kit_queue_start(&k, "r4");
    for (size_t i = 0; i < ARRAY_COUNT(ended); i++) {
        char id[UUID_SIZE];
        struct signal retry = kit_make_signal(&k, SIGNAL_RETRY_RUN, "", id);
        kit_send(&k, ended[i], &retry);
    }
    kit_idle(&k);
    CHECK_INT(k.decision_count, 3);
    for (int child = 0; child < 6; child++) kit_done(&k, "c", "ok");
    CHECK_INT(kit_head(&k, "r4").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

// Each start renders 80,000 steps and more, twice: two fill a turn. Another tenant's run begins after a few turns, whatever waits
// before it.
#define HEAVY                                                                                                          \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\n"                                         \
    "workload: {a: \"{{ range(80000) | list | length }}\"}\n"                                                          \
    "workflow:\n- step: start\n  tool: {kind: noop}\n"

static void tenants_take_turns_when_templates_are_heavy(void)
{
    enum { RUNS = 60 };
    struct kit k;
    struct error err = {0};
    char out[129], id[32];
    kit_open(&k, HEAVY);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    for (int i = 0; i < RUNS; i++) {
        snprintf(id, sizeof(id), "h%d", i);
        struct start_request request = {.program = k.program, .run = str_from(id), .tenant = STR("heavy")};
        CHECK_OK(engine_start(k.engine, &request, out, &err), &err);
    }
    struct start_request small = {.program = k.program, .run = STR("small"), .tenant = STR("small")};
    CHECK_OK(engine_start(k.engine, &small, out, &err), &err);
    for (int i = 0; i < 4; i++) CHECK(kit_turn(&k));
    CHECK(kit_told(&k, "small RUN_STARTED"));
    CHECK(!kit_told(&k, "h20 RUN_STARTED"));
    CHECK(k.engine->queue.count > RUNS / 2);
    COVERED(rendering_leaves_the_rest_of_a_turn);
    for (int i = 0; i < 10 * RUNS && kit_turn(&k); i++) continue;
    for (int i = 0; i < RUNS; i++) { // none is lost, and they began in their order
        snprintf(id, sizeof(id), "h%d RUN_STARTED", i);
        CHECK(kit_told(&k, id));
    }
    kit_close(&k);
}

static bool knows_all(void *context, struct str kind)
{
    (void)context, (void)kind;
    return true;
}

// A loop begins all of its iterations at once, and each takes 60,000 steps to tell its task what to do. One turn renders a few of
// them, and other runs go on between the turns. Steps are counted, not time.
#define WIDE                                                                                                           \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\n"                                         \
    "workflow:\n- step: start\n"                                                                                       \
    "  loop: {in: \"{{ range(40) | list }}\", iterator: i, mode: parallel, spec: {max_in_flight: 40}}\n"               \
    "  tool: {kind: shell, cmds: ['true'], env: {A: \"{{ range(60000) | list | length }}\"}}\n"

static void one_input_renders_so_much_and_the_rest_in_turns_of_its_own(void)
{
    struct kit k;
    kit_open(&k, WIDE);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows_all};
    kit_queue_start(&k, "r1");
    uint64_t before = k.engine->spent, most = 0;
    size_t turns = 0;
    for (; turns < 200 && kit_turn(&k); turns++) {
        uint64_t took = k.engine->spent - before;
        before = k.engine->spent;
        if (took > most) most = took;
    }
    CHECK_INT(k.attempt_count, 40);
    CHECK(turns >= 8);
    CHECK(most <= 300000);
    COVERED(order_is_rendered_later);
    kit_close(&k);
}

// What one run cannot decide within the memory of a turn is its own trouble.
static void an_input_that_takes_more_memory_than_a_turn_has_keeps_nobody_waiting(void)
{
    struct kit k;
    struct error err = {0};
    char out[129];
    kit_open(&k, HEAVY);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    struct program *small = kit_program(&k, "name: n\nnodes:\n  - {id: a, bash: ok}\n", NULL);
    k.engine->turn.limit = 3 << 20; // a list of 80,000 takes more
    struct start_request first = {.program = small, .run = STR("small1")}, last = {.program = small, .run = STR("small2")};
    CHECK_OK(engine_start(k.engine, &first, out, &err), &err);
    kit_queue_start(&k, "large");
    CHECK_OK(engine_start(k.engine, &last, out, &err), &err);
    for (int i = 0; i < 20 && kit_turn(&k); i++) continue;
    CHECK(kit_told(&k, "small1 RUN_STARTED"));
    CHECK(kit_told(&k, "small2 RUN_STARTED"));
    CHECK(!kit_told(&k, "large RUN_STARTED"));
    CHECK_INT(k.start_refused, E_LIMIT);
    CHECK_INT(k.engine->queue.count, 0);
    COVERED(input_takes_more_than_a_turn_has);
    program_release(small);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(who_comes_second_to_a_run_id_is_refused_and_the_others_of_its_batch_go_on_I24),
        TEST(a_refused_start_says_whether_it_was_a_child_s_I24),
        TEST(a_start_that_waited_for_room_is_refused_when_its_id_was_taken_meanwhile_I24),
        TEST(a_signal_of_a_run_that_took_the_id_is_left_to_its_owner_E2),
        TEST(a_result_that_waited_for_room_fails_its_step_when_it_is_too_large),
        TEST(the_queue_does_not_grow_while_the_disk_is_full_I9),
        TEST(parameters_that_change_in_the_same_batch_are_for_later_attempts),
        TEST(a_list_that_begins_leaves_room_for_the_runs_that_are_made_in_its_batch),
        TEST(tenants_take_turns_when_templates_are_heavy),
        TEST(one_input_renders_so_much_and_the_rest_in_turns_of_its_own),
        TEST(an_input_that_takes_more_memory_than_a_turn_has_keeps_nobody_waiting),
    };
    return test_main("engine_turn", tests, ARRAY_COUNT(tests), argc, argv);
}
