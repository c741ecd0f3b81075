// Signals through the engine: decided once, durable before they are answered, from callers and from the inbox.
#include "support/engine_kit.h"

static void pause_holds_and_resume_goes_on_I25(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    CHECK(k.decision.accepted);
    kit_done(&k, "a", "ok");
    CHECK_INT(kit_waiting(&k), 0);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_PAUSED);
    CHECK_INT(engine_activity(k.engine).parked, 1);
    kit_signal(&k, "r1", SIGNAL_RESUME, "");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

// Who cannot record what it queued takes it back: nothing of it happens.
static void what_is_taken_back_does_not_happen(void)
{
    struct kit k;
    struct error err = {0};
    char id[UUID_SIZE], run[129];
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    struct signal pause = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
    kit_send(&k, "r1", &pause);
    engine_take_back(k.engine);
    struct start_request request = {.program = k.program, .run = STR("r2"), .triggered_by = STR("test")};
    CHECK_OK(engine_start(k.engine, &request, run, &err), &err);
    engine_take_back(k.engine);
    CHECK(!engine_run(k.engine, STR("default"), STR("r2")));
    kit_idle(&k);
    CHECK_INT(k.decision_count, 0);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_RUNNING);
    kit_done(&k, "a", "ok");
    kit_done(&k, "b", "ok");
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    CHECK_TEXT(k.decision_code, "RUN_TERMINAL");
    kit_send(&k, "r1", &pause);
    engine_take_back(k.engine);
    CHECK_INT(engine_activity(k.engine).resident, 0);
    CHECK_OK(engine_start(k.engine, &request, run, &err), &err);
    kit_idle(&k);
    CHECK_INT(kit_head(&k, "r2").summary.status, RUN_STATUS_RUNNING);
    kit_close(&k);
}

static void same_signal_twice_is_decided_once_I22(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    char id[UUID_SIZE], other[UUID_SIZE];
    struct signal pause = kit_make_signal(&k, SIGNAL_PAUSE, "", id),
                  resume = kit_make_signal(&k, SIGNAL_RESUME, "", other);
    kit_send(&k, "r1", &pause);
    kit_send(&k, "r1", &resume);
    kit_send(&k, "r1", &pause);
    kit_idle(&k);
    CHECK_INT(k.decision_count, 3);
    CHECK(k.decision.duplicate && !k.decision.accepted);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_RUNNING);
    kit_crash(&k);
    kit_adopt(&k, "r1");
    kit_send(&k, "r1", &pause);
    kit_idle(&k);
    CHECK(k.decision.duplicate);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_RUNNING);
    kit_close(&k);
}

static void cancel_waits_for_what_is_in_flight_I26_WE_1d(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    CHECK(kit_attempt(&k, "a")->cancelled && !kit_head(&k, "r1").terminal);
    kit_fail(&k, "a", "CANCELLED", false);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
    kit_signal(&k, "r1", SIGNAL_RESUME, "");
    CHECK_TEXT(k.decision_code, "RUN_TERMINAL");
    CHECK_INT(engine_activity(k.engine).resident, 0);
    kit_close(&k);
}

static void held_step_is_retried_or_skipped(void)
{
    struct kit k;
    kit_open(&k, PLAN(SHELL("a", "", ",\"onStepFailure\":\"hold\"") "," SHELL("b", "\"a\"", "")));
    kit_start(&k, "r1");
    kit_fail(&k, "a", "EXIT_NONZERO", false);
    CHECK_INT(engine_activity(k.engine).parked, 1);
    kit_signal(&k, "r1", SIGNAL_RETRY_STEP, "a");
    CHECK_INT(kit_attempt(&k, "a")->logical, 2);
    kit_fail(&k, "a", "EXIT_NONZERO", false);
    buf_clear(&k.told);
    kit_signal(&k, "r1", SIGNAL_SKIP_STEP, "a");
    CHECK(kit_told(&k, "r1 STEP_SKIPPED a 3.1\n")); // attempt 2 has its outcome (I14)
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void gates_are_answered_and_time_out(void)
{
    struct kit k;
    kit_open(
        &k,
        PLAN("{\"stepId\":\"g\",\"kind\":\"approval\",\"dependsOn\":[],\"with\":{\"message\":\"?\"}},"
             "{\"stepId\":\"t\",\"kind\":\"approval\",\"dependsOn\":[],\"with\":{\"message\":\"?\",\"timeout\":\"10s\","
             "\"onTimeout\":\"approve\"}}"));
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_APPROVE, "");
    CHECK_TEXT(k.decision_code, "STEP_REQUIRED");
    kit_signal(&k, "r1", SIGNAL_APPROVE, "g");
    CHECK(k.decision.accepted);
    kit_pass(&k, 10001);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void post(struct kit *k, const char *run, const struct signal *signal)
{
    struct str bytes;
    struct error err = {0};
    CHECK_OK(signal_encode(signal, &k->memory, &bytes, &err), &err);
    CHECK_OK(store_post(k->store, STR("default"), str_from(run), signal->id, bytes, &err), &err);
    CHECK_OK(engine_poll(k->engine, &err), &err);
    CHECK_OK(engine_poll(k->engine, &err), &err); // looking twice does not take it twice
    kit_idle(k);
}

static void posted_signals_are_decided_also_after_the_end_I23(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    char id[UUID_SIZE];
    struct signal signal = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
    post(&k, "r1", &signal);
    CHECK(k.decision.accepted);
    CHECK_INT(k.decision_count, 1);
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    kit_fail(&k, "a", "CANCELLED", false);
    signal = kit_make_signal(&k, SIGNAL_PAUSE, "", id);
    post(&k, "r1", &signal);
    CHECK_TEXT(k.decision_code, "RUN_TERMINAL");
    struct inbox_item *items;
    size_t count;
    struct error err = {0};
    CHECK_OK(store_inbox(k.store, &k.memory, &items, &count, &err), &err);
    CHECK_INT(count, 0);
    kit_close(&k);
}

// Signals that saw the same event: what the first one causes counts already for the second, in the same turn and before it is stored.
static void of_signals_that_saw_the_same_event_one_is_decided(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    char ids[3][UUID_SIZE];
    struct signal signals[3];
    uint64_t seen = kit_head(&k, "r1").last_seq;
    struct error err = {0};
    for (size_t i = 0; i < 3; i++) {
        signals[i] = kit_make_signal(&k, SIGNAL_ESCALATE_ALERT, "", ids[i]);
        signals[i].if_seq = seen;
        signals[i].payload = JSON_OF(&k.memory, {"level", json_name("INFO")});
        struct str bytes;
        CHECK_OK(signal_encode(&signals[i], &k.memory, &bytes, &err), &err);
        if (i < 2) // the last one is asked of this engine itself
            CHECK_OK(store_post(k.store, STR("default"), STR("r1"), signals[i].id, bytes, &err), &err);
    }
    CHECK_OK(engine_poll(k.engine, &err), &err);
    kit_send(&k, "r1", &signals[2]);
    kit_turn(&k);
    CHECK_INT(k.decision_count, 3);
    CHECK_TEXT(k.decision_code, "RUN_HAS_MOVED");
    CHECK(!k.decision.accepted);
    CHECK_INT(kit_head(&k, "r1").last_seq, seen + 1);
    struct json record;
    static const char *const codes[] = {"", "RUN_HAS_MOVED"};
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(engine_find_decision(k.store, STR("default"), STR("r1"), signals[i].id, &k.memory, &record, NULL, &err), &err);
        CHECK_STR(json_text(json_at(&record, STR("engineResult.errorCode"))), str_from(codes[i]));
    }
    CHECK_INT(engine_find_decision(k.store, STR("default"), STR("r1"), signals[2].id, &k.memory, &record, NULL, &err),
              E_NOT_FOUND); // it was answered, and nothing came of it
    kit_crash(&k);
    kit_adopt(&k, "r1");
    for (size_t i = 1; i < 3; i++) { // the same signal, after another look
        signals[i].if_seq = kit_head(&k, "r1").last_seq;
        post(&k, "r1", &signals[i]);
        CHECK(k.decision.accepted && !k.decision.duplicate);
    }
    post(&k, "r1", &signals[1]); // what has been decided stays so, wherever the run is now
    CHECK(k.decision.duplicate);
    kit_close(&k);
}

static void retry_run_reuses_what_succeeded_and_is_stored_with_its_decision_C_22(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    kit_done(&k, "a", "kept");
    kit_fail(&k, "b", "EXIT_NONZERO", false);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_FAILED);
    char id[UUID_SIZE];
    struct signal retry = kit_make_signal(&k, SIGNAL_RETRY_RUN, "", id);
    kit_send(&k, "r1", &retry);
    kit_turn(&k);
    CHECK(k.decision.accepted);
    char new_run[129];
    snprintf(new_run, sizeof(new_run), "%s", k.new_run);
    CHECK(kit_head(&k, new_run).last_seq > 0); // E2: who was told of it finds it
    CHECK_STR(kit_head(&k, new_run).original_run, STR("r1"));
    CHECK_INT(kit_waiting(&k), 1);
    CHECK_TEXT(kit_attempt(&k, "b")->run, new_run);
    kit_send(&k, "r1", &retry);
    kit_idle(&k);
    CHECK(k.decision.duplicate);
    CHECK_INT(kit_waiting(&k), 1); // I22: no second run
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, new_run).summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

#define PARENT PLAN("{\"stepId\":\"s\",\"kind\":\"subrun\",\"with\":{\"document\":\"child\"}}")

static void child_run_gives_its_result_to_the_parent(void)
{
    struct kit k;
    kit_open(&k, PARENT);
    kit_start(&k, "r1");
    CHECK_TEXT(kit_attempt(&k, "c")->run, "r1.s.1");
    kit_done(&k, "c", "ok");
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void cancel_reaches_the_child(void)
{
    struct kit k;
    kit_open(&k, PARENT);
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    CHECK(kit_attempt(&k, "c")->cancelled);
    CHECK(!kit_head(&k, "r1").terminal);
    kit_fail(&k, "c", "CANCELLED", false);
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_CANCELLED);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
    kit_close(&k);
}

static void cancel_reaches_the_child_across_a_crash(void)
{
    struct kit k;
    kit_open(&k, PARENT);
    kit_start(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    CHECK(k.decision.accepted);
    engine_close(k.engine);
    for (size_t i = 0; i < k.attempt_count; i++) k.attempts[i].over = true;
    kit_open_engine(&k);
    kit_adopt(&k, "r1"); // the child is not taken up by anybody else
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_CANCELLED);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
    CHECK_INT(kit_waiting(&k), 0);
    kit_close(&k);
}

static void signal_to_an_ended_child_does_not_swallow_its_result(void)
{
    struct kit k;
    kit_open(&k, PARENT);
    kit_start(&k, "r1");
    kit_deliver(&k, "c", true, "ok", false);
    kit_turn(&k); // the child has ended; its parent has not heard
    CHECK(kit_head(&k, "r1.s.1").terminal && !kit_head(&k, "r1").terminal);
    kit_crash(&k);
    struct error err = {0};
    CHECK_OK(engine_adopt(k.engine, STR("default"), STR("r1"), &err), &err);
    kit_signal(&k, "r1.s.1", SIGNAL_PAUSE, "");
    CHECK_TEXT(k.decision_code, "RUN_TERMINAL");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void poll_and_idle(struct kit *k)
{
    struct error err = {0};
    CHECK_OK(engine_poll(k->engine, &err), &err);
    kit_idle(k);
}

static bool child_is_elsewhere;

// A memory store lets one process claim twice.
static enum code claim_if_free(struct store *store, struct str tenant, struct str run, struct run_head *out,
                               struct arena *arena, int64_t *backend_id, struct error *err)
{
    const struct kit *k = (const struct kit *)((uintptr_t)store->ops - offsetof(struct kit, ops));
    if (child_is_elsewhere && str_is(run, "r1.s.1")) return error_set(err, E_LOCKED, "owned by another process");
    return k->real_ops->log.claim(store, tenant, run, out, arena, backend_id, err);
}

static void cancel_reaches_a_child_that_another_engine_owns(void)
{
    struct kit k;
    kit_open(&k, PARENT);
    kit_start(&k, "r1");
    kit_crash(&k);
    kit_adopt(&k, "r1.s.1");
    struct engine *childs = k.engine;
    k.ops.log.claim = claim_if_free;
    child_is_elsewhere = true;
    kit_open_engine(&k);
    kit_adopt(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    kit_pass(&k, 1001); // looks again
    CHECK(!kit_head(&k, "r1").terminal);
    struct engine *parents = k.engine;
    k.engine = childs;
    poll_and_idle(&k);
    CHECK(kit_attempt(&k, "c")->cancelled);
    kit_fail(&k, "c", "CANCELLED", false);
    CHECK_INT(kit_head(&k, "r1.s.1").summary.status, RUN_STATUS_CANCELLED);
    engine_close(k.engine);
    k.engine = parents;
    child_is_elsewhere = false;
    kit_pass(&k, 1001);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_CANCELLED);
    kit_close(&k);
}

static void retried_run_finds_the_files_of_the_steps_it_reuses(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    struct str first = arena_copy(&k.memory, engine_run(k.engine, STR("default"), STR("r1"))->start.artifacts_dir);
    kit_done(&k, "a", "kept");
    kit_fail(&k, "b", "EXIT_NONZERO", false);
    kit_signal(&k, "r1", SIGNAL_RETRY_RUN, "");
    const struct run *again = engine_run(k.engine, STR("default"), str_from(k.new_run));
    CHECK(again && first.len > 0);
    CHECK_STR(again->start.artifacts_dir, first);
    kit_close(&k);
}

static void decision_is_found_by_all_of_its_ids_and_tells_everything_WE_2_3a(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    char id[UUID_SIZE], other[UUID_SIZE];
    struct signal stop = kit_make_signal(&k, SIGNAL_CANCEL, "", id),
                  yes = kit_make_signal(&k, SIGNAL_APPROVE, "", other);
    const struct str policy = STR("00000000-0000-4000-8000-00000000000a");
    stop.policy_decision_id = policy;
    stop.source_ip = STR("192.0.2.7");
    stop.requires_approval = true;
    yes.approves = stop.id;
    yes.actor = STR("bob");
    kit_send(&k, "r1", &stop);
    kit_idle(&k);
    CHECK(k.decision.deferred && !k.decision.accepted);
    struct json record;
    struct error err = {0};
    CHECK_OK(engine_find_decision(k.store, STR("default"), STR("r1"), stop.id, &k.memory, &record, NULL, &err), &err);
    CHECK_STR(json_text(json_key(&record, "decision")), STR("REVISION_REQUIRED"));
    CHECK_STR(json_text(json_at(&record, STR("audit.sourceIp"))), STR("192.0.2.7"));
    CHECK(!json_key(&record, "engineResult"));
    kit_crash(&k);
    kit_adopt(&k, "r1");
    kit_send(&k, "r1", &yes);
    kit_idle(&k);
    const struct str ids[] = {stop.id, policy, json_text(json_key(&record, "signalDecisionId"))};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        struct json now;
        CHECK_OK(engine_find_decision(k.store, STR("default"), STR("r1"), ids[i], &k.memory, &now, NULL, &err), &err);
        CHECK_STR(json_text(json_key(&now, "decision")), STR("ACCEPTED"));
        CHECK_STR(json_text(json_key(&now, "approvedBy")), STR("bob"));
        CHECK(json_key(&now, "approvalTimestamp") && json_key(&now, "approvalRequired")->boolean);
        CHECK_STR(json_text(json_key(&now, "signalDecisionId")), ids[2]);
    }
    CHECK_INT(engine_find_decision(k.store, STR("default"), STR("r1"), STR("nothing"), &k.memory, &record, NULL, &err),
              E_NOT_FOUND);
    CHECK(kit_attempt(&k, "a")->cancelled);
    kit_close(&k);
}

static void retried_run_begins_with_the_inputs_of_the_end(void)
{
    struct kit k;
    kit_open(&k,
             "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"inputs\":{\"m\":1,"
             "\"n\":1},\"steps\":[{\"stepId\":\"e\",\"kind\":\"echo\",\"with\":{\"message\":\"$INPUTS.m\"}},"
             "{\"stepId\":\"f\",\"kind\":\"echo\",\"dependsOn\":[],\"with\":{\"message\":\"$INPUTS.n\"}}," SHELL(
                 "a", "\"e\"", "") "]}");
    kit_start(&k, "r1");
    char id[UUID_SIZE];
    struct signal update = kit_make_signal(&k, SIGNAL_UPDATE_PARAMS, "", id);
    struct error err = {0};
    CHECK_OK(json_parse(STR("{\"params\":{\"m\":2}}"), &json_limits_default, &k.memory, &update.payload, &err), &err);
    kit_send(&k, "r1", &update);
    kit_idle(&k);
    kit_fail(&k, "a", "EXIT_NONZERO", false);
    buf_clear(&k.told);
    kit_signal(&k, "r1", SIGNAL_RETRY_RUN, "");
    const struct run *again = engine_run(k.engine, STR("default"), str_from(k.new_run));
    CHECK(again);
    CHECK_INT(json_integer(json_key(&again->start.inputs, "m"), 0), 2);
    CHECK_INT(kernel_value(again, 0)->integer, 2); // computed anew, it had seen the old one
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(decision_is_found_by_all_of_its_ids_and_tells_everything_WE_2_3a),
        TEST(retried_run_begins_with_the_inputs_of_the_end),
        TEST(pause_holds_and_resume_goes_on_I25),
        TEST(what_is_taken_back_does_not_happen),
        TEST(same_signal_twice_is_decided_once_I22),
        TEST(cancel_waits_for_what_is_in_flight_I26_WE_1d),
        TEST(held_step_is_retried_or_skipped),
        TEST(gates_are_answered_and_time_out),
        TEST(posted_signals_are_decided_also_after_the_end_I23),
        TEST(of_signals_that_saw_the_same_event_one_is_decided),
        TEST(retry_run_reuses_what_succeeded_and_is_stored_with_its_decision_C_22),
        TEST(child_run_gives_its_result_to_the_parent),
        TEST(cancel_reaches_the_child),
        TEST(cancel_reaches_the_child_across_a_crash),
        TEST(signal_to_an_ended_child_does_not_swallow_its_result),
        TEST(cancel_reaches_a_child_that_another_engine_owns),
        TEST(retried_run_finds_the_files_of_the_steps_it_reuses),
    };
    return test_main("engine_signal", tests, ARRAY_COUNT(tests), argc, argv);
}
