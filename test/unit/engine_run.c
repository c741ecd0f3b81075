// Runs from start to end over the memory store: each kind of document, recovery, large results, real processes.
#include "support/engine_kit.h"

static void linear_run_goes_from_start_to_end_RE_1_1a_WE_1a_WE_1b_WE_2_2a(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_expect(&k, "r1 RUN_QUEUED\nr1 RUN_STARTED\nr1 STEP_STARTED a 1.1\n");
    kit_done(&k, "a", "ok");
    kit_expect(&k, "r1 STEP_COMPLETED a 1.1\nr1 STEP_STARTED b 1.1\n");
    kit_done(&k, "b", "ok");
    kit_expect(&k, "r1 STEP_COMPLETED b 1.1\nr1 RUN_COMPLETED\n");
    CHECK(kit_head(&k, "r1").terminal);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(engine_activity(k.engine).resident, 0);
    kit_close(&k);
}

static void completion_and_successors_are_one_batch(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    CHECK_INT(k.commit_count, 1);
    kit_done(&k, "a", "ok");
    kit_done(&k, "b", "ok");
    CHECK_INT(k.commit_count, 3);
    kit_close(&k);
}

static void many_runs_share_one_batch(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    for (int i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof(id), "r%d", i);
        kit_queue_start(&k, id);
    }
    kit_idle(&k);
    CHECK_INT(k.commit_count, 1);
    CHECK_INT(kit_waiting(&k), 50);
    kit_close(&k);
}

static void retry_waits_and_raises_the_logical_attempt_RE_5d_WE_1c_WE_2_1_3b(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", ",\"retry\":{\"maxAttempts\":2,\"delay\":\"100ms\"}")));
    kit_start(&k, "r1");
    buf_clear(&k.told);
    kit_fail(&k, "a", "EXIT_NONZERO", true);
    kit_expect(&k, "r1 ATTEMPT_FAILED a 1.1 EXIT_NONZERO\nr1 STEP_DELAYED a 2.1\n");
    CHECK_INT(engine_deadline(k.engine), k.now.mono_ms + 101); // never early on either clock
    kit_pass(&k, 100);
    kit_expect(&k, "");
    kit_pass(&k, 1);
    kit_expect(&k, "r1 STEP_STARTED a 2.1\n");
    kit_done(&k, "a", "ok");
    kit_expect(&k, "r1 STEP_COMPLETED a 2.1\nr1 RUN_COMPLETED\n");
    kit_close(&k);
}

static void wait_ends_by_the_monotonic_clock_I18(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"duration\":\"5s\"}}"));
    kit_start(&k, "r1");
    k.now.wall_ms -= 86400000; // set back: the wait neither ends early nor gets lost, and no duration is negative
    kit_pass(&k, 5000);
    CHECK(!kit_head(&k, "r1").terminal);
    kit_pass(&k, 1);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void instant_steps_need_no_tool(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"n\",\"kind\":\"noop\"},{\"stepId\":\"e\",\"kind\":\"echo\",\"with\":{\"message\":"
                      "\"hi\"}},{\"stepId\":"
                      "\"m\",\"kind\":\"merge\",\"dependsOn\":[\"n\",\"e\"]}"));
    kit_start(&k, "r1");
    CHECK_INT(k.attempt_count, 0);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void loop_repeats_until_its_condition_holds(void)
{
    struct kit k;
    kit_open(&k, "name: l\nnodes:\n  - id: again\n    loop_group:\n      max_iterations: 5\n      until_bash: test "
                 "done\n      nodes:\n    "
                 "    - id: tick\n          bash: do tick\n");
    kit_start(&k, "r1");
    for (int i = 1; i <= 3; i++) {
        char step[64];
        snprintf(step, sizeof(step), "again[%d].tick", i);
        kit_done(&k, step, "ok");
        snprintf(step, sizeof(step), "again[%d].again.until", i);
        if (i < 3)
            kit_fail(&k, step, "EXIT_NONZERO", false);
        else
            kit_done(&k, step, "");
    }
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void cancel_node_ends_the_run_when_nothing_is_in_flight(void)
{
    struct kit k;
    kit_open(&k, "name: c\nnodes:\n  - id: slow\n    bash: do slow\n  - id: ask\n    bash: do ask\n  - id: stop\n    "
                 "depends_on: [ask]\n   "
                 " cancel: enough\n");
    kit_start(&k, "r1");
    kit_done(&k, "ask", "x");
    CHECK(!kit_head(&k, "r1").terminal);
    CHECK(kit_attempt(&k, "slow")->cancelled);
    kit_fail(&k, "slow", "CANCELLED", false);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
    kit_close(&k);
}

static void lost_attempt_goes_on_under_the_next_engine_attempt_I13_WE_2_1_3b(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_done(&k, "a", "ok");
    kit_crash(&k);
    buf_clear(&k.told);
    kit_adopt(&k, "r1");
    kit_expect(&k, "r1 STEP_REDISPATCHED b 1.2\n");
    CHECK_INT(kit_attempt(&k, "b")->engine, 2);
    kit_done(&k, "b", "ok");
    kit_expect(&k, "r1 STEP_COMPLETED b 1.2\nr1 RUN_COMPLETED\n");
    struct error err = {0};
    CHECK_INT(engine_adopt(k.engine, STR("default"), STR("r1"), &err), E_TERMINAL);
    CHECK_INT(engine_adopt(k.engine, STR("default"), STR("nobody"), NULL), E_NOT_FOUND);
    kit_close(&k);
}

static char large[300 * 1024];

static void result_larger_than_an_event_fails_the_step(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    engine_close(k.engine);
    k.limits.inline_max = (size_t)1 << 20; // so that it does not become a blob
    kit_open_engine(&k);
    memset(large, 'x', sizeof(large) - 1);
    kit_start(&k, "r1");
    kit_queue_start(&k, "r2");
    buf_clear(&k.told);
    kit_deliver(&k, "a", true, large, false);
    kit_idle(&k);
    CHECK(kit_told(&k, "r1 STEP_FAILED a 1.1 PAYLOAD_TOO_LARGE\n"));
    CHECK(kit_told(&k, "r2 STEP_STARTED a 1.1\n")); // in the same turn: others are not hurt
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    kit_close(&k);
}

static void large_result_is_kept_as_a_blob(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    memset(large, 'x', sizeof(large) - 1);
    kit_start(&k, "r1");
    kit_done(&k, "a", large);
    kit_crash(&k);
    kit_adopt(&k, "r1");
    const struct run *run = engine_run(k.engine, STR("default"), STR("r1"));
    CHECK(run && kernel_blob(run, 0) && !kernel_value(run, 0));
    struct str bytes;
    struct error err = {0};
    CHECK_OK(store_blob(k.store, &kernel_blob(run, 0)->sha256, &k.memory, &bytes, &err), &err);
    CHECK_INT(bytes.len, sizeof(large) - 1 + 2); // with its quotes
    kit_close(&k);
}

static void run_id_is_used_once_I24(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    struct start_request request = {.program = k.program, .run = STR("r1")};
    char out[129];
    CHECK_INT(engine_start(k.engine, &request, out, NULL), E_EXISTS);
    request.run = STR("no/such|id");
    CHECK_INT(engine_start(k.engine, &request, out, NULL), E_INVALID);
    kit_close(&k);
}

static void real_processes_run_to_the_end(void)
{
    struct kit k;
    kit_open(&k, PLAN("{\"stepId\":\"say\",\"kind\":\"shell\",\"with\":{\"command\":\"echo "
                      "hello\"}},{\"stepId\":\"count\",\"kind\":\"shell\",\"with\":{\"command\":\"printf %s "
                      "$say.output | wc -c\"}}"));
    engine_close(k.engine);
    struct engine_options options = {.store = k.store,
                                     .contract = k.contract,
                                     .entropy = os_entropy(),
                                     .observer = {.context = &k, .event = kit_event}};
    struct error err = {0};
    CHECK_OK(engine_open(&options, &k.engine, &err), &err);
    kit_queue_start(&k, "r1");
    struct engine_loop loop = {.exit_on_park = true};
    CHECK_OK(engine_loop(k.engine, &loop, &err), &err);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    struct records events;
    struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .limit = 100};
    CHECK_OK(store_read(k.store, &range, &k.memory, &events, &err), &err);
    CHECK(events.count == 7 && strstr(events.items[5].bytes.ptr, "\"5\""));
    kit_close(&k);
}

static void kit_start_mode(struct kit *k, const char *run, enum start_mode mode)
{
    struct start_request request = {
        .program = k->program, .run = str_from(run), .mode = mode, .not_before_ms = k->now.wall_ms + 5000};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_start(k->engine, &request, out, &err), &err);
    kit_idle(k);
}

static void queued_run_survives_a_restart_and_starts_once_ES_3b_ES_3d_ES_3e(void)
{
    struct kit k;
    struct error err = {0};
    kit_open(&k, LINEAR);
    kit_start_mode(&k, "r1", MODE_QUEUE);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_PENDING);
    CHECK_INT(engine_activity(k.engine).parked, 1);
    kit_crash(&k);
    for (int i = 0; i < 2; i++) CHECK_OK(engine_admit(k.engine, STR("default"), STR("r1"), &err), &err);
    buf_clear(&k.told);
    kit_idle(&k);
    kit_expect(&k, "r1 RUN_STARTED\nr1 STEP_STARTED a 1.1\n");
    kit_done(&k, "a", "ok");
    kit_done(&k, "b", "ok");
    CHECK_INT(engine_admit(k.engine, STR("default"), STR("r1"), &err), E_TERMINAL);
    CHECK_INT(engine_admit(k.engine, STR("default"), STR("r9"), &err), E_NOT_FOUND);
    kit_close(&k);
}

static void delayed_run_starts_its_steps_later_ES_3c(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start_mode(&k, "r1", MODE_DELAY);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_RUNNING);
    CHECK_INT(kit_waiting(&k), 0);
    kit_crash(&k);
    kit_adopt(&k, "r1");
    CHECK_INT(kit_waiting(&k), 0);
    kit_pass(&k, 5001);
    CHECK_INT(kit_attempt(&k, "a")->engine, 1);
    kit_close(&k);
}

static void pause_drains_for_so_long_and_a_taken_up_run_recovers_ES_6_6b_WE_2_1_2f(void)
{
    struct kit k;
    struct error err = {0};
    char out[129];
    kit_open(&k, LINEAR);
    struct start_request request = {
        .program = k.program, .run = STR("r1"), .target_adapter = STR("conductor"), .drain_timeout_ms = 1000};
    CHECK_OK(engine_start(k.engine, &request, out, &err), &err);
    kit_idle(&k);
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    CHECK_TEXT(kit_head(&k, "r1").summary.substatus, "DRAINING");
    kit_pass(&k, 1002);
    CHECK(kit_told(&k, "r1 DRAIN_TIMEOUT\n"));
    CHECK_TEXT(kit_head(&k, "r1").summary.substatus, "");
    kit_done(&k, "a", "ok");
    CHECK_INT(engine_activity(k.engine).parked, 1);
    kit_crash(&k);
    CHECK_OK(engine_adopt(k.engine, STR("default"), STR("r1"), &err), &err);
    CHECK_TEXT(engine_substatus(k.engine, STR("default"), STR("r1")), "RECOVERING");
    kit_idle(&k);
    CHECK_TEXT(engine_substatus(k.engine, STR("default"), STR("r1")), "");
    kit_signal(&k, "r1", SIGNAL_RESUME, "");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void check_pause(struct kit *k, const char *run, int64_t drain_ms, enum pause_wish wish, int64_t want_ms, bool cancels)
{
    struct error err = {0};
    char out[129];
    struct start_request request = {.program = k->program,
                                    .run = str_from(run),
                                    .target_adapter = STR("temporal"),
                                    .drain_timeout_ms = drain_ms,
                                    .cancel_on_pause = wish};
    CHECK_OK(engine_start(k->engine, &request, out, &err), &err);
    kit_idle(k);
    const struct run *made = engine_run(k->engine, STR("default"), str_from(run));
    CHECK_INT(made->start.drain_timeout_ms, want_ms);
    CHECK_INT(made->start.cancel_on_pause, cancels);
}

#define PAUSES(more)                                                                                                   \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"" more "},"                          \
    "\"steps\":[{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"x\"}}]}"

// The start is asked first, then the plan, then the service.
static void pause_is_as_the_start_the_plan_or_the_service_says_ES_6_6a(void)
{
    struct kit k;
    kit_open(&k, PAUSES(",\"drainTimeout\":\"2s\",\"cancelOnPause\":true"));
    k.engine->options.drain_timeout_ms = 3000;
    k.engine->options.cancel_on_pause = WISH_NO;
    check_pause(&k, "r1", 0, WISH_NONE, 2000, true);
    check_pause(&k, "r2", 1000, WISH_NO, 1000, false);
    kit_close(&k);
    kit_open(&k, PAUSES(""));
    check_pause(&k, "r1", 0, WISH_NONE, 0, false); // five minutes
    k.engine->options.drain_timeout_ms = 3000;
    k.engine->options.cancel_on_pause = WISH_YES;
    check_pause(&k, "r2", 0, WISH_NONE, 3000, true);
    check_pause(&k, "r3", 0, WISH_NO, 3000, false);
    kit_close(&k);
}

#define NEEDS_REPLAY(fallback)                                                                                         \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"targetAdapter\":"              \
    "\"conductor\","                                                                                                   \
    "\"requiresCapabilities\":[\"replay.full\"]" fallback "},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}"

static void unsupported_plan_is_refused_and_leaves_nothing_WE_4d_WE_4c(void)
{
    struct kit k;
    struct error err = {0};
    char out[129];
    kit_open(&k, NEEDS_REPLAY(""));
    struct start_request request = {.program = k.program, .run = STR("r1")};
    CHECK_INT(engine_start(k.engine, &request, out, &err), E_INVALID);
    CHECK(strstr(err.message, "PlanValidationError: CAPABILITY_NOT_SUPPORTED"));
    request.target_adapter = STR("temporal");
    err = (struct error){0};
    CHECK_INT(engine_start(k.engine, &request, out, &err), E_INVALID);
    CHECK(strstr(err.message, "TARGET_ADAPTER_MISMATCH"));
    CHECK_INT(engine_activity(k.engine).resident, 0);
    kit_close(&k);
}

static void degraded_run_says_so_when_it_starts_WE_4e(void)
{
    struct kit k;
    struct error err = {0};
    kit_open(&k, NEEDS_REPLAY(",\"fallbackBehavior\":\"degrade\""));
    kit_start(&k, "r1");
    kit_crash(&k);
    struct run_head head = kit_head(&k, "r1");
    struct run *run = NULL;
    CHECK_OK(fold_stored(k.store, k.program, &head.ids, &run, &err), &err);
    CHECK(run->start.degraded);
    CHECK_STR(run->start.profile, STR("conductor"));
    CHECK_STR(json_text(json_key(&run->start.warnings.items[0], "code")), STR("CAPABILITY_DEGRADED"));
    struct digest sha;
    struct str report;
    const struct str prefix = STR("cairn://blobs/");
    CHECK(str_starts(run->start.report, prefix));
    CHECK(digest_parse(str_slice(run->start.report, prefix.len, run->start.report.len), &sha));
    CHECK_OK(store_blob(k.store, &sha, &k.memory, &report, &err), &err);
    CHECK(strstr(report.ptr, "\"status\":\"WARNINGS\""));
    run_free(run);
    kit_close(&k);
}

// A plan that was refused: queued, failed with the code, nothing started; asked again after a crash it stays so.
static void a_refused_plan_is_queued_and_fails_C_37(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    struct json refusal = json_object();
    struct error err = {0};
    char run[129];
    CHECK(json_put(&k.memory, &refusal, STR("code"), json_string(STR("PLAN_REF_MISMATCH"))));
    CHECK(json_put(&k.memory, &refusal, STR("message"), json_string(STR("another plan"))));
    struct start_request request = {.program = k.program, .run = STR("r1"), .refusal = &refusal};
    CHECK_OK(engine_start(k.engine, &request, run, &err), &err);
    kit_idle(&k);
    kit_expect(&k, "r1 RUN_QUEUED\nr1 RUN_FAILED PLAN_REF_MISMATCH\n");
    CHECK_INT(kit_waiting(&k), 0);
    kit_crash(&k);
    CHECK_INT(engine_adopt(k.engine, STR("default"), STR("r1"), &err), E_TERMINAL);
    struct run_head head = kit_head(&k, "r1");
    CHECK_INT(head.summary.status, RUN_STATUS_FAILED);
    CHECK_INT(head.last_seq, 2);
    kit_close(&k);
}

// By the thread that delivers the result: the engine's own does not touch the file, which may be gone by the time it turns.
static void artifacts_are_looked_for_when_the_result_is_delivered(void)
{
    char dir[] = "/tmp/cairn-run-XXXXXX", path[128];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/out.txt", dir);
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", ",\"artifacts\":[{\"path\":\"out.txt\",\"kind\":\"text\"}]")));
    struct start_request request = {
        .program = k.program, .run = STR("r1"), .triggered_by = STR("test"), .artifacts_dir = str_from(dir)};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_start(k.engine, &request, out, &err), &err);
    kit_idle(&k);
    CHECK_OK(os_write_file(path, STR("hello"), 0600, false, &err), &err);
    kit_deliver(&k, "a", true, "ok", false);
    os_remove_tree(dir);
    kit_idle(&k);
    CHECK(kit_told(&k, "r1 STEP_COMPLETED a 1.1\n"));
    struct records records;
    struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .limit = 1000};
    CHECK_OK(store_read(k.store, &range, &k.memory, &records, &err), &err);
    struct digest digest = sha256(STR("hello"));
    char hex[SHA256_HEX + 1];
    bool hashed = false;
    digest_hex(&digest, hex);
    for (size_t i = 0; i < records.count; i++)
        hashed = hashed || memmem(records.items[i].bytes.ptr, records.items[i].bytes.len, hex, SHA256_HEX);
    CHECK(hashed);
    kit_close(&k);
}

static void the_next_child_of_a_list_begins_in_the_batch_that_records_the_end_of_the_one_before(void)
{
    struct kit k;
    kit_open(&k, "name: n\nnodes:\n  - {id: s, workflow: child, fan_out: {items: [1, 2], max_parallel: 1}}\n");
    kit_start(&k, "r1");
    kit_done(&k, "c", "one");
    COVERED(child_begins_in_its_parents_batch);
    kit_done(&k, "c", "two");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_refused_plan_is_queued_and_fails_C_37),
        TEST(unsupported_plan_is_refused_and_leaves_nothing_WE_4d_WE_4c),
        TEST(degraded_run_says_so_when_it_starts_WE_4e),
        TEST(pause_drains_for_so_long_and_a_taken_up_run_recovers_ES_6_6b_WE_2_1_2f),
        TEST(pause_is_as_the_start_the_plan_or_the_service_says_ES_6_6a),
        TEST(queued_run_survives_a_restart_and_starts_once_ES_3b_ES_3d_ES_3e),
        TEST(delayed_run_starts_its_steps_later_ES_3c),
        TEST(linear_run_goes_from_start_to_end_RE_1_1a_WE_1a_WE_1b_WE_2_2a),
        TEST(completion_and_successors_are_one_batch),
        TEST(many_runs_share_one_batch),
        TEST(retry_waits_and_raises_the_logical_attempt_RE_5d_WE_1c_WE_2_1_3b),
        TEST(wait_ends_by_the_monotonic_clock_I18),
        TEST(instant_steps_need_no_tool),
        TEST(loop_repeats_until_its_condition_holds),
        TEST(cancel_node_ends_the_run_when_nothing_is_in_flight),
        TEST(lost_attempt_goes_on_under_the_next_engine_attempt_I13_WE_2_1_3b),
        TEST(result_larger_than_an_event_fails_the_step),
        TEST(large_result_is_kept_as_a_blob),
        TEST(run_id_is_used_once_I24),
        TEST(real_processes_run_to_the_end),
        TEST(artifacts_are_looked_for_when_the_result_is_delivered),
        TEST(the_next_child_of_a_list_begins_in_the_batch_that_records_the_end_of_the_one_before),
    };
    return test_main("engine_run", tests, ARRAY_COUNT(tests), argc, argv);
}
