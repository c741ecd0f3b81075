// Things that go wrong around a turn: no space, no memory, a lost lease, results at the worst moment.
#include "support/engine_kit.h"

static void full_disk_puts_off_and_goes_on_by_itself_I9(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    buf_clear(&k.told);
    k.full_left = 2;
    kit_deliver(&k, "a", true, "ok", false);
    kit_turn(&k);
    CHECK_INT(kit_waiting(&k), 0);
    CHECK_INT(kit_head(&k, "r1").last_seq, 3);
    CHECK_INT(engine_deadline(k.engine), k.now.mono_ms + 200);
    CHECK(!kit_turn(&k)); // not before
    CHECK_INT(engine_activity(k.engine).stalled_ms, 0);
    kit_pass(&k, 200);
    CHECK_INT(kit_head(&k, "r1").last_seq, 3);
    CHECK_INT(engine_activity(k.engine).stalled_ms, 200);
    kit_pass(&k, 200);
    CHECK_INT(engine_activity(k.engine).stalled_ms, 0);
    kit_expect(&k, "r1 STEP_COMPLETED a 1.1\nr1 STEP_STARTED b 1.1\n");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void start_is_put_off_too(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    k.full_left = 1;
    kit_start(&k, "r1");
    CHECK_INT(store_head(k.store, STR("default"), STR("r1"), &k.memory, &(struct run_head){0}, NULL), E_NOT_FOUND);
    kit_pass(&k, 200);
    kit_expect(&k, "r1 RUN_QUEUED\nr1 RUN_STARTED\nr1 STEP_STARTED a 1.1\n");
    kit_close(&k);
}

static void reload_keeps_attempts_that_are_with_a_tool(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("x", "", "")));
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    k.full_left = 1;
    char id[UUID_SIZE];
    struct signal resume = kit_make_signal(&k, SIGNAL_RESUME, "", id);
    kit_deliver(&k, "a", true, "ok", false); // in the failed batch, after RESUME: it must not be run again
    kit_send(&k, "r1", &resume);
    kit_turn(&k);
    buf_clear(&k.told);
    kit_pass(&k, 200);
    CHECK(!kit_told(&k, "STEP_REDISPATCHED"));
    CHECK_INT(k.attempt_count, 2);
    kit_done(&k, "x", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

// What a tool says is looked at where it comes in: nothing of it gets as far as an append that would be refused.
static void result_that_no_event_can_hold_fails_its_step_at_the_door(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    buf_clear(&k.told);
    uint32_t commits = k.commit_count;
    struct tool_result late = {.ticket = k.attempts[0].ticket, .ok = true, .output = STR("ok"), .duration_ms = -1};
    engine_deliver(k.engine, &late);
    kit_idle(&k);
    CHECK(kit_told(&k, "r1 STEP_FAILED a 1.1 PAYLOAD_TOO_LARGE"));
    CHECK_INT(k.commit_count, commits + 1);
    CHECK_INT(cover_hits("result_cannot_be_an_event"), 0);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    kit_close(&k);
}

static bool knows_python(void *context, struct str function)
{
    (void)context;
    return str_is(function, "python");
}

static void outcome_that_no_event_can_hold_fails_its_task_at_the_door(void)
{
    static const char *const outcomes[] = {"{\"status\":\"ok\",\"meta\":5}", "{\"status\":\"error\",\"error\":\"no\"}"};
    for (size_t i = 0; i < ARRAY_COUNT(outcomes); i++) {
        struct kit k;
        kit_open(&k, "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
                     "- step: make\n  tool: {kind: python, code: x}\n");
        k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows_python};
        kit_start(&k, "r1");
        uint32_t commits = k.commit_count;
        struct tool_result said = {
            .ticket = k.attempts[0].ticket, .ok = true, .is_json = true, .output = str_from(outcomes[i]), .duration_ms = 1};
        engine_deliver(k.engine, &said);
        kit_turn(&k);
        CHECK_INT(k.commit_count, commits + 1);
        CHECK_INT(cover_hits("result_cannot_be_an_event"), 0);
        kit_idle(&k);
        CHECK(kit_told(&k, "PAYLOAD_TOO_LARGE"));
        CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
        kit_close(&k);
    }
}

static void fenced_run_is_dropped_and_others_go_on_I27(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_deliver(&k, "a", true, "ok", false);
    kit_queue_start(&k, "r2");
    struct run_log *taken;
    struct error err = {0};
    CHECK_OK(store_claim_run(k.store, STR("default"), STR("r1"), &taken, &err), &err);
    buf_clear(&k.told);
    kit_idle(&k);
    kit_expect(&k, "r2 RUN_QUEUED\nr2 RUN_STARTED\nr2 STEP_STARTED a 1.1\n");
    CHECK(!engine_run(k.engine, STR("default"), STR("r1")));
    CHECK_INT(kit_head(&k, "r1").last_seq, 3);
    store_release_run(k.store, taken);
    COVERED(run_dropped);
    kit_close(&k);
}

static void nothing_stored_is_done_twice_when_space_runs_out_half_way(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_deliver(&k, "a", true, "ok", false);
    kit_queue_start(&k, "r2");
    kit_queue_start(&k, "r3");
    struct run_log *taken;
    struct error err = {0};
    CHECK_OK(store_claim_run(k.store, STR("default"), STR("r1"), &taken, &err), &err);
    // The batch is refused for r1, so each input is tried alone: all, r2, r3, r1. The third finds no space.
    k.full_in = 3;
    kit_turn(&k);
    CHECK_INT(kit_head(&k, "r2").last_seq, 3);
    CHECK_INT(store_head(k.store, STR("default"), STR("r3"), &k.memory, &(struct run_head){0}, NULL), E_NOT_FOUND);
    kit_pass(&k, 200);
    CHECK_INT(kit_head(&k, "r2").last_seq, 3);
    CHECK_INT(kit_head(&k, "r3").last_seq, 3);
    CHECK_INT(kit_waiting(&k), 2);
    store_release_run(k.store, taken);
    kit_close(&k);
}

static void late_result_of_a_dropped_run_is_harmless(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    struct run_log *taken;
    struct error err = {0};
    CHECK_OK(store_claim_run(k.store, STR("default"), STR("r1"), &taken, &err), &err);
    kit_signal(&k, "r1", SIGNAL_PAUSE, ""); // finds out that the run is lost
    CHECK(kit_attempt(&k, "a")->cancelled);
    kit_fail(&k, "a", "CANCELLED", false);
    CHECK_INT(kit_head(&k, "r1").last_seq, 3);
    CHECK_INT(engine_activity(k.engine).in_flight, 0);
    store_release_run(k.store, taken);
    kit_close(&k);
}

// ---- memory

#define SWEPT                                                                                                          \
    PLAN(SHELL("a", "",                                                                                                \
               ",\"retry\":{\"maxAttempts\":2,\"delay\":\"10ms\"}") ",{\"stepId\":\"e\",\"kind\":\"echo\","            \
                                                                    "\"dependsOn\":[\"a\"],"                           \
                                                                    "\"with\":{\"message\":\"$a.output\"}},"           \
                                                                    "{\"stepId\":\"s\",\"kind\":\"subrun\","           \
                                                                    "\"dependsOn\":[\"e\"]"                            \
                                                                    ",\"with\":{\"document\":\"child\"}}," SHELL(      \
                                                                        "b", "\"s\"",                                  \
                                                                        ",\"when\":\"$e.output == 'ok'\""))

static void finish_swept(struct kit *k)
{
    for (int i = 0; i < 40 && !kit_head(k, "r1").terminal; i++) {
        kit_pass(k, 250);
        for (size_t n = 0; n < k->attempt_count; n++)
            if (!k->attempts[n].over) kit_done(k, k->attempts[n].step, "ok");
    }
    CHECK_INT(kit_head(k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(engine_activity(k->engine).resident, 0);
}

static uint64_t stored_events(struct kit *k)
{
    struct run_heads heads;
    struct error err = {0};
    CHECK_OK(store_list(k->store, &(struct run_filter){0}, &k->memory, &heads, &err), &err);
    uint64_t sum = 0;
    for (size_t i = 0; i < heads.count; i++) sum += heads.items[i].last_seq;
    return sum;
}

// One turn in which allocation n fails. False when it was never reached.
static bool swept_turn(struct kit *k, int64_t n, bool sticky)
{
    uint64_t before = stored_events(k);
    size_t started = k->attempt_count;
    k->engine->turn.fail_in = n;
    k->engine->turn.fail_sticky = sticky;
    kit_turn(k);
    bool reached = k->engine->turn.fail_in <= 1;
    k->engine->turn.fail_in = 0;
    k->engine->turn.fail_sticky = false;
    if (reached && stored_events(k) == before) CHECK_INT(k->attempt_count, started); // E1
    return reached;
}

static void sweep(bool sticky, int stage)
{
    for (int64_t n = 1;; n++) {
        CHECK(n < 5000);
        struct kit k;
        kit_open(&k, SWEPT);
        kit_start(&k, "r1");
        char id[UUID_SIZE];
        struct signal signal = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
        bool reached = false;
        if (stage == 0) {
            kit_deliver(&k, "a", true, "ok", false);
            for (int i = 0; i < 3; i++) reached = swept_turn(&k, n, sticky) || reached;
        } else if (stage == 1) {
            kit_deliver(&k, "a", false, "EXIT_NONZERO", true);
            reached = swept_turn(&k, n, sticky);
        } else {
            kit_send(&k, "r1", &signal);
            reached = swept_turn(&k, n, sticky);
            kit_pass(&k, 250);
            kit_signal(&k, "r1", SIGNAL_RESUME, "");
        }
        finish_swept(&k);
        kit_close(&k);
        if (!reached) return;
    }
}

static void each_allocation_of_a_turn_may_fail_once(void)
{
    for (int stage = 0; stage < 3; stage++) sweep(false, stage);
}

static void all_allocations_from_one_on_may_fail(void)
{
    for (int stage = 0; stage < 3; stage++) sweep(true, stage);
}

static enum code damaged_blob(struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                              struct error *err)
{
    (void)store, (void)sha256, (void)arena, (void)out;
    return error_set(err, E_CORRUPT, "blob is damaged");
}

static char large[200000];

static void damaged_output_fails_the_step_that_needs_it_and_is_found_S9(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", "") ",{\"stepId\":\"m\",\"kind\":\"merge\","
                                                                     "\"dependsOn\":[\"a\",\"b\"]}"));
    kit_start(&k, "r1");
    memset(large, 'x', sizeof(large) - 1);
    k.ops.log.blob = damaged_blob;
    kit_done(&k, "a", large);
    kit_done(&k, "b", "ok"); // what it was is read from the store
    CHECK(kit_told(&k, "r1 STEP_FAILED m 1.1 OUTPUT_DAMAGED\n"));
    CHECK(!kit_told(&k, "STEP_REDISPATCHED"));
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    struct verify_report report;
    struct error err = {0};
    CHECK_OK(store_verify(k.store, STR("default"), STR("r1"), &k.memory, &report, &err), &err);
    CHECK_INT(report.fault_count, 2); // the document is one of the blobs
    kit_close(&k);
}

static void merge_of_too_much_fails_instead_of_trying_for_ever(void)
{
    enum { COUNT = 33, SIZE = 1 << 20 };
    struct kit k;
    struct buf plan;
    buf_init(&plan, 1 << 20);
    buf_text(&plan, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[");
    for (int i = 0; i < COUNT; i++)
        buf_printf(&plan, "{\"stepId\":\"s%d\",\"kind\":\"shell\",\"dependsOn\":[],\"with\":{\"command\":\"x\"}},", i);
    buf_text(&plan, "{\"stepId\":\"m\",\"kind\":\"merge\",\"dependsOn\":[");
    for (int i = 0; i < COUNT; i++) buf_printf(&plan, "%s\"s%d\"", i ? "," : "", i);
    buf_text(&plan, "]}]}");
    kit_open(&k, plan.ptr);
    kit_start(&k, "r1");
    char *text = malloc(SIZE);
    CHECK(text);
    memset(text, 'x', SIZE - 1);
    text[SIZE - 1] = '\0';
    for (int i = 0; i < COUNT; i++) {
        char step[16];
        snprintf(step, sizeof(step), "s%d", i);
        kit_done(&k, step, text);
    }
    CHECK(kit_told(&k, "r1 STEP_FAILED m 1.1 PAYLOAD_TOO_LARGE\n"));
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    free(text);
    buf_release(&plan);
    kit_close(&k);
}

static enum code full_inbox(struct store *store, struct arena *arena, struct inbox_item **items, size_t *count,
                            struct error *err)
{
    (void)store, (void)arena, (void)items, (void)count;
    return error_set(err, E_FULL, "no space left");
}

static void stop_soon(void *context, struct engine *engine, struct moment_in_time now)
{
    (void)engine, (void)now;
    *(volatile bool *)context = true;
}

static void inbox_that_cannot_be_read_now_is_read_later_I9(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    k.ops.log.inbox = full_inbox;
    volatile bool stop = false;
    struct engine_loop loop = {.stop = &stop, .tick = stop_soon, .context = (void *)(uintptr_t)&stop};
    struct error err = {0};
    CHECK_OK(engine_loop(k.engine, &loop, &err), &err);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(full_disk_puts_off_and_goes_on_by_itself_I9),
        TEST(start_is_put_off_too),
        TEST(reload_keeps_attempts_that_are_with_a_tool),
        TEST(result_that_no_event_can_hold_fails_its_step_at_the_door),
        TEST(outcome_that_no_event_can_hold_fails_its_task_at_the_door),
        TEST(fenced_run_is_dropped_and_others_go_on_I27),
        TEST(nothing_stored_is_done_twice_when_space_runs_out_half_way),
        TEST(late_result_of_a_dropped_run_is_harmless),
        TEST(each_allocation_of_a_turn_may_fail_once),
        TEST(all_allocations_from_one_on_may_fail),
        TEST(damaged_output_fails_the_step_that_needs_it_and_is_found_S9),
        TEST(merge_of_too_much_fails_instead_of_trying_for_ever),
        TEST(inbox_that_cannot_be_read_now_is_read_later_I9),
    };
    return test_main("engine_fault", tests, ARRAY_COUNT(tests), argc, argv);
}
