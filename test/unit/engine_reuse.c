// What a retried run takes over, and which run is a child.
#include "support/engine_kit.h"

#define GATED_LINEAR                                                                                                   \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"requiresApproval\":true},"     \
    "\"steps\":[" SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "]}"
#define PARENT PLAN("{\"stepId\":\"s\",\"kind\":\"subrun\",\"with\":{\"document\":\"child\"}}")

// r1 was approved, a succeeded, b failed; then it was retried. The id of the new run is in k->new_run.
static void retried_gated_run(struct kit *k)
{
    kit_open(k, GATED_LINEAR);
    kit_start(k, "r1");
    kit_signal(k, "r1", SIGNAL_APPROVE, "");
    kit_done(k, "a", "kept");
    kit_fail(k, "b", "EXIT_NONZERO", false);
    kit_signal(k, "r1", SIGNAL_RETRY_RUN, "");
    CHECK(k->decision.accepted);
    CHECK_INT(kit_head(k, k->new_run).summary.status, RUN_STATUS_PENDING);
    buf_clear(&k->told);
}

static void check_reused(struct kit *k, const char *run)
{
    CHECK_INT(kit_waiting(k), 1);
    CHECK_TEXT(kit_attempt(k, "b")->run, run);
    const struct run *state = engine_run(k->engine, STR("default"), str_from(run));
    CHECK(state && kernel_state(state, 0) == NODE_SUCCESS);
    CHECK_STR(json_text(kernel_value(state, 0)), STR("kept"));
}

static void gate_does_not_lose_what_is_reused_C_22(void)
{
    struct kit k;
    retried_gated_run(&k);
    char run[129];
    snprintf(run, sizeof(run), "%s", k.new_run);
    kit_signal(&k, run, SIGNAL_APPROVE, "");
    check_reused(&k, run);
    kit_close(&k);
}

static void crash_at_the_gate_does_not_lose_what_is_reused_C_22(void)
{
    struct kit k;
    retried_gated_run(&k);
    char run[129];
    snprintf(run, sizeof(run), "%s", k.new_run);
    kit_crash(&k);
    kit_adopt(&k, run);
    CHECK_INT(kit_waiting(&k), 0);
    kit_signal(&k, run, SIGNAL_APPROVE, "");
    check_reused(&k, run);
    kit_close(&k);
}

static void approval_that_nobody_drives_does_not_lose_what_is_reused_C_22(void)
{
    struct kit k;
    retried_gated_run(&k);
    char run[129];
    snprintf(run, sizeof(run), "%s", k.new_run);
    kit_crash(&k);
    kit_signal(&k, run, SIGNAL_APPROVE, "");
    CHECK(k.decision.accepted);
    CHECK_INT(kit_waiting(&k), 0);
    kit_crash(&k);
    kit_adopt(&k, run);
    check_reused(&k, run);
    kit_close(&k);
}

static void forced_retry_of_a_gated_run_reuses_nothing(void)
{
    struct kit k;
    kit_open(&k, GATED_LINEAR);
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_APPROVE, "");
    kit_done(&k, "a", "kept");
    kit_fail(&k, "b", "EXIT_NONZERO", false);
    char id[UUID_SIZE], run[129];
    struct signal retry = kit_make_signal(&k, SIGNAL_RETRY_RUN, "", id);
    retry.force = true;
    kit_send(&k, "r1", &retry);
    kit_idle(&k);
    snprintf(run, sizeof(run), "%s", k.new_run);
    kit_crash(&k);
    kit_adopt(&k, run);
    kit_signal(&k, run, SIGNAL_APPROVE, "");
    CHECK_TEXT(kit_attempt(&k, "a")->run, run);
    kit_close(&k);
}

static void run_that_only_has_the_id_is_no_child(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1.s.1"); // somebody's, by chance
    struct program *linear = k.program;
    static const struct program_loader loader = {.load = kit_load_child};
    k.program = kit_program(&k, PARENT, &loader);
    kit_start(&k, "r1");
    CHECK(kit_told(&k, "r1 STEP_FAILED s 1.1 CHILD_NOT_STARTED\n"));
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_RUNNING); // nobody touched it
    kit_done(&k, "a", "ok");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_COMPLETED);
    program_release(linear);
    kit_close(&k);
}

static void ended_run_that_only_has_the_id_gives_no_result(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "")));
    kit_start(&k, "r1.s.1");
    kit_done(&k, "a", "not yours");
    struct program *other = k.program;
    static const struct program_loader loader = {.load = kit_load_child};
    k.program = kit_program(&k, PARENT, &loader);
    kit_start(&k, "r1");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    program_release(other);
    kit_close(&k);
}

static void cut_output_is_marked_in_its_event(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"x\"},\"output\":{\"on_overflow\":\"truncate\"}}"));
    kit_start(&k, "r1");
    struct kit_attempt *attempt = kit_attempt(&k, "a");
    attempt->over = true;
    struct tool_result result = {.ticket = attempt->ticket, .ok = true, .output = STR("long"), .truncated = true};
    engine_deliver(k.engine, &result);
    kit_idle(&k);
    struct records events;
    struct error err = {0};
    struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .after = 3, .limit = 1};
    CHECK_OK(store_read(k.store, &range, &k.memory, &events, &err), &err);
    CHECK_INT(events.count, 1);
    CHECK(strstr(events.items[0].bytes.ptr, "\"truncated\":true"));
    kit_close(&k);
}

// A2: whoever executed it, an output that was cut is no output.
static void cut_output_fails_its_step_with_size_and_limit(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    for (uint64_t size = 0; size <= 3000000; size += 3000000) {
        const char *id = size ? "r1" : "r2";
        kit_start(&k, id);
        struct kit_attempt *attempt = kit_attempt(&k, "a");
        attempt->over = true;
        struct tool_result result = {
            .ticket = attempt->ticket, .ok = true, .output = STR("long"), .truncated = true, .output_size = size};
        engine_deliver(k.engine, &result);
        kit_idle(&k);
        CHECK_INT(kit_head(&k, id).summary.status, RUN_STATUS_FAILED);
    }
    CHECK(kit_told(&k, "r1 STEP_FAILED a 1.1 PAYLOAD_TOO_LARGE\n"));
    struct records events;
    struct error err = {0};
    struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .after = 3, .limit = 1};
    CHECK_OK(store_read(k.store, &range, &k.memory, &events, &err), &err);
    CHECK(strstr(events.items[0].bytes.ptr, "its output has 3000000 bytes, above the limit of 1048576"));
    range.run = STR("r2");
    CHECK_OK(store_read(k.store, &range, &k.memory, &events, &err), &err);
    CHECK(strstr(events.items[0].bytes.ptr, "its output is above the limit of 1048576 bytes"));
    kit_close(&k);
}

// A2: what a function gives is a value, and has its own limit.
static void long_values_of_functions_are_cut_where_steps_say_so(void)
{
    struct kit k;
    size_t size = RESULT_MAX + 10;
    char *text = malloc(size + 1);
    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    text[size] = '\0';
    kit_open(&k, PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"x\"}},"
                      "{\"stepId\":\"b\",\"kind\":\"shell\",\"with\":{\"command\":\"x\"},\"dependsOn\":[],"
                      "\"output\":{\"on_overflow\":\"truncate\"}}"));
    kit_start(&k, "r1");
    static const char *const ids[] = {"a", "b"};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        struct kit_attempt *attempt = kit_attempt(&k, ids[i]);
        attempt->over = true;
        struct tool_result result = {.ticket = attempt->ticket, .ok = true, .is_json = true, .output = {text, size}};
        engine_deliver(k.engine, &result);
        kit_idle(&k);
    }
    CHECK(kit_told(&k, "r1 STEP_FAILED a 1.1 PAYLOAD_TOO_LARGE\n"));
    CHECK(kit_told(&k, "r1 STEP_COMPLETED b 1.1"));
    free(text);
    kit_close(&k);
}

static void timers_of_a_run_go_with_it(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"x\",\"kind\":\"wait\",\"dependsOn\":[],\"with\":{\"duration\":\"10s\"}},"
                      "{\"stepId\":\"y\",\"kind\":\"wait\",\"dependsOn\":[],\"with\":{\"duration\":\"20s\"}}"));
    for (int i = 0; i < 3; i++) kit_start(&k, i == 0 ? "r1" : i == 1 ? "r2" : "r3");
    CHECK_INT(k.engine->timers.count, 6);
    kit_signal(&k, "r2", SIGNAL_CANCEL, "");
    CHECK_INT(k.engine->timers.count, 4);
    kit_pass(&k, 10001);
    CHECK_INT(k.engine->timers.count, 2);
    kit_pass(&k, 10000);
    CHECK_INT(k.engine->timers.count, 0);
    CHECK_INT(kit_head(&k, "r3").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(gate_does_not_lose_what_is_reused_C_22),
        TEST(crash_at_the_gate_does_not_lose_what_is_reused_C_22),
        TEST(approval_that_nobody_drives_does_not_lose_what_is_reused_C_22),
        TEST(forced_retry_of_a_gated_run_reuses_nothing),
        TEST(run_that_only_has_the_id_is_no_child),
        TEST(ended_run_that_only_has_the_id_gives_no_result),
        TEST(cut_output_is_marked_in_its_event),
        TEST(cut_output_fails_its_step_with_size_and_limit),
        TEST(long_values_of_functions_are_cut_where_steps_say_so),
        TEST(timers_of_a_run_go_with_it),
    };
    return test_main("engine_reuse", tests, ARRAY_COUNT(tests), argc, argv);
}
