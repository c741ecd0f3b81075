// The vocabulary of playbooks: the examples of its model, the shape of every type, keys, references, other words.
#include "support/contract_kit.h"

#define TASK_OF_VISIT "task:fetch_page:step:fetch_all_endpoints:run:7:run:1"
#define TASK_OF_ITERATION "task:fetch_page:step:fetch_all_endpoints:run:7:iteration:2:run:1"

static const char *const noetl_words[] = {
    "playbook.execution.requested",
    "playbook.request.evaluated",
    "playbook.started",
    "playbook.paused",
    "playbook.finished",
    "playbook.processed",
    "workflow.started",
    "workflow.finished",
    "step.scheduled",
    "step.started",
    "step.done",
    "step.failed",
    "task.started",
    "task.attempt.started",
    "task.attempt.done",
    "task.attempt.failed",
    "task.done",
    "task.failed",
    "loop.started",
    "loop.iteration.scheduled",
    "loop.iteration.started",
    "loop.iteration.done",
    "loop.iteration.failed",
    "loop.done",
    "policy.admit.evaluated",
    "policy.task.evaluated",
    "next.evaluated",
    "result.stored",
    "result.manifest.updated",
};

static struct json parsed(const char *text)
{
    struct json value;
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &arena, &value, &err), &err);
    return value;
}

static void check_text(const struct json *record, const char *path, const char *want)
{
    CHECK_STR(json_text(json_at(record, str_from(path))), str_from(want));
}

// Pairs of path and text.
#define CHECK_TEXTS(record, ...)                                                                                       \
    do {                                                                                                               \
        static const char *const pairs[][2] = {__VA_ARGS__};                                                           \
        for (size_t pair = 0; pair < ARRAY_COUNT(pairs); pair++) check_text((record), pairs[pair][0], pairs[pair][1]); \
    } while (0)

static struct moment task_moment(enum moment_kind kind)
{
    return (struct moment){
        .kind = kind, .step = STR("fetch_all_endpoints"), .visit = 7, .task = STR("fetch_page"), .task_run = 1};
}

static void check_unsayable(const struct moment *moment)
{
    struct seal seal = {.seq = 1};
    struct encoded encoded;
    CHECK_INT(contract_encode(contract, VOCABULARY_NOETL, &test_ids, moment, &seal, &arena, &encoded, &err), E_INVALID);
}

// ---- the examples

static void a_failed_attempt_as_in_the_example_NX_7_1_NX_2l_NX_2r(void)
{
    open_contract();
    struct moment moment = task_moment(MOMENT_ATTEMPT_FAILED);
    moment.logical = 2;
    moment.duration_ms = 312;
    moment.fault =
        (struct fault){.code = STR("HTTP_503"), .category = STR("http"), .message = STR("503"), .retryable = true};
    moment.value = parsed("{\"status\":\"error\",\"error\":{\"kind\":\"http\",\"retryable\":true},"
                          "\"meta\":{\"duration_ms\":312,\"http_status\":503}}");
    struct json record = record_of(VOCABULARY_NOETL, moment);
    CHECK_TEXTS(&record, {"event_type", "task.attempt.failed"}, {"event_alias", "TaskAttemptFailed"},
                {"source", "worker"}, {"entity_type", "task"}, {"entity_id", "fetch_page"},
                {"parent_id", "step:fetch_all_endpoints:run:7"}, {"step_run_id", "step:fetch_all_endpoints:run:7"},
                {"task_run_id", TASK_OF_VISIT}, {"status", "error"});
    CHECK_INT(json_integer(json_key(&record, "attempt"), 0), 2);
    CHECK_INT(json_integer(json_key(&record, "duration_ms"), 0), 312);
    CHECK(json_equal(json_at(&record, STR("payload.outcome")), &moment.value));
    check_text(&record, "payload.error.kind", "http");
}

static void a_decision_as_in_the_example_NX_7_2_NX_3_6b_NX_2s(void)
{
    open_contract();
    struct moment moment = task_moment(MOMENT_TASK_DECIDED);
    moment.value = parsed("{\"matched_rule_index\":0,\"action\":{\"do\":\"retry\",\"attempts\":10,"
                          "\"backoff\":\"exponential\",\"delay\":2.0}}");
    moment.due_ms = 1770829260000;
    struct json record = record_of(VOCABULARY_NOETL, moment);
    CHECK_TEXTS(&record, {"entity_type", "policy"}, {"entity_id", "task:fetch_page"},
                {"parent_id", TASK_OF_VISIT}, {"status", "success"}, {"payload.action.do", "retry"},
                {"payload.action.backoff", "exponential"});
    CHECK_INT(json_integer(json_at(&record, STR("payload.matched_rule_index")), 9), 0);
    check_text(&record, "payload.meta.due_at", "2026-02-11T17:01:00.000Z");
    moment.value = parsed("{\"meta\":1}");
    check_unsayable(&moment);
}

static void a_stored_result_as_in_the_example_NX_7_3_NX_3_7a_NX_2q(void)
{
    open_contract();
    struct moment moment = task_moment(MOMENT_RESULT_STORED);
    moment.logical = 3;
    moment.has_blob = true;
    moment.blob = sha256(STR("hello\n"));
    moment.blob_size = 52480;
    moment.extracted = parsed("{\"has_more\":true,\"page\":1}");
    struct json record = record_of(VOCABULARY_NOETL, moment);
    CHECK_TEXTS(&record, {"entity_type", "result"}, {"entity_id", "task:fetch_page:attempt:3"},
                {"parent_id", TASK_OF_VISIT}, {"payload.result_ref.kind", "result_ref"},
                {"payload.result_ref.store", "object"}, {"payload.result_ref.scope", "execution"},
                {"payload.result_ref.ref",
                 "noetl://execution/run-001/step/fetch_all_endpoints/visit/7/task/fetch_page/run/1/attempt/3"});
    check_text(&record, "payload.result_ref.meta.sha256", plan_sha);
    CHECK_INT(json_integer(json_at(&record, STR("payload.result_ref.meta.bytes")), 0), 52480);
    CHECK(json_equal(json_at(&record, STR("payload.extracted")), &moment.extracted));
    moment.store = RESULT_NATS_OBJECT;
    record = record_of(VOCABULARY_NOETL, moment);
    check_text(&record, "payload.result_ref.store", "nats_object");
    moment.store = RESULT_OBJECT;
    moment.reason = STR("nobody is there");
    record = record_of(VOCABULARY_NOETL, moment);
    check_text(&record, "payload.meta.reason", "nobody is there");
}

static void a_manifest_lists_stored_results_NX_3_7b(void)
{
    open_contract();
    struct moment moment = task_moment(MOMENT_MANIFEST_UPDATED);
    moment.value =
        parsed("{\"kind\":\"manifest\",\"ref\":\"noetl://execution/run-001/manifest/pages/1\",\"strategy\":"
               "\"append\",\"parts\":[{\"ref\":\"noetl://execution/run-001/step/a\",\"index\":0,\"bytes\":9}],"
               "\"total_parts\":1,\"total_bytes\":9}");
    struct json record = record_of(VOCABULARY_NOETL, moment);
    CHECK_TEXTS(&record, {"event_type", "result.manifest.updated"}, {"entity_type", "result"},
                {"parent_id", TASK_OF_VISIT});
    CHECK(json_equal(json_at(&record, STR("payload.manifest")), &moment.value));
    struct json other = with_member(&record, "payload", parsed("{\"manifest\":{\"kind\":\"result_ref\"}}"));
    check_refused(VOCABULARY_NOETL, &other, "manifest");
}

static void routing_as_in_the_example_NX_7_4_NX_3_6c(void)
{
    open_contract();
    struct moment moment = {.kind = MOMENT_ROUTED, .step = STR("fetch_all_endpoints"), .visit = 7};
    moment.value =
        parsed("{\"mode\":\"exclusive\",\"matched\":[{\"step\":\"validate_results\",\"when\":\"event.name == "
               "'loop.done'\"}],\"selected\":[{\"step\":\"validate_results\",\"args\":{\"a\":1}}]}");
    struct json record = record_of(VOCABULARY_NOETL, moment);
    CHECK_TEXTS(&record, {"source", "server"}, {"entity_type", "next"}, {"entity_id", "step:fetch_all_endpoints"},
                {"parent_id", "step:fetch_all_endpoints:run:7"}, {"payload.mode", "exclusive"},
                {"payload.matched.0.step", "validate_results"});
    CHECK_INT(json_integer(json_at(&record, STR("payload.selected.0.args.a")), 0), 1);
}

// ---- the catalogue

static void catalogue_of_29_types_is_shipped_NX_1_1a_NX_1_1b_NX_1_1c(void)
{
    open_contract();
    CHECK_INT(ARRAY_COUNT(noetl_words), 29);
    struct schema_set *set;
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    for (size_t i = 0; i < ARRAY_COUNT(noetl_words); i++) {
        char uri[80];
        const struct schema *schema;
        CHECK(snprintf(uri, sizeof(uri), "noetl-events/%s.json", noetl_words[i]) < (int)sizeof(uri));
        CHECK_OK(schema_compile(set, str_from(uri), &schema, &err), &err);
        int dots = 0;
        for (const char *c = noetl_words[i]; *c; c++) {
            CHECK((*c >= 'a' && *c <= 'z') || *c == '.');
            dots += *c == '.';
        }
        CHECK(dots == 1 || dots == 2);
    }
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_NOETL);
        bool known = !word;
        for (size_t i = 0; i < ARRAY_COUNT(noetl_words); i++) known = known || strcmp(word, noetl_words[i]) == 0;
        CHECK(known);
    }
}

static void verbs_are_the_recommended_ones_NX_1_1d_NX_1_1e(void)
{
    static const char *const verbs[] = {"requested", "evaluated", "scheduled", "started", "done",   "failed",
                                        "finished",  "paused",    "processed", "stored",  "updated"};
    size_t words = 0;
    for (int kind = 1; kind < MOMENT_COUNT; kind++) {
        struct str word = str_from(moment_word((enum moment_kind)kind, VOCABULARY_NOETL));
        if (word.len == 0) continue;
        bool known = false, first = true;
        for (int before = 1; before < kind; before++)
            first = first && !str_eq(str_from(moment_word((enum moment_kind)before, VOCABULARY_NOETL)), word);
        words += first;
        const char *verb = strrchr(word.ptr, '.') + 1;
        for (size_t k = 0; k < ARRAY_COUNT(verbs); k++) known = known || strcmp(verb, verbs[k]) == 0;
        if (!known) test_fail(__FILE__, __LINE__, "%s", word.ptr);
        // Ends of steps, tasks and iterations are done or failed, those of what is above them finished; decisions are evaluated.
        bool above = str_starts(word, STR("playbook.")) || str_starts(word, STR("workflow."));
        bool decision = str_starts(word, STR("policy.")) || str_starts(word, STR("next."));
        if (above) CHECK(strcmp(verb, "done") != 0 && strcmp(verb, "failed") != 0);
        if (!above) CHECK(strcmp(verb, "finished") != 0 && strcmp(verb, "processed") != 0);
        if (decision) CHECK_TEXT(verb, "evaluated");
    }
    CHECK_INT(words, ARRAY_COUNT(noetl_words));
}

static void check_one_of(const struct json *record, const char *key, const char *const *words, size_t count)
{
    bool known = false;
    struct str word = json_text(json_key(record, key));
    for (size_t i = 0; i < count; i++) known = known || str_is(word, words[i]);
    if (!known) test_fail(__FILE__, __LINE__, "%s is %.*s", key, STR_ARG(word));
}

// Every type against what the envelope must have, with the facts that its kind may have.
static void every_record_has_the_envelope_NX_2b_NX_2c_NX_2d_NX_2e_NX_2f_NX_2g_NX_2i_NX_2m_NX_1_2a(void)
{
    static const char *const sources[] = {"server", "worker"};
    static const char *const entities[] = {"playbook", "workflow", "step", "task", "loop", "next", "policy", "result"};
    static const char *const statuses[] = {"in_progress", "success", "error", "skipped", "paused"};
    open_contract();
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_NOETL);
        if (!word) continue;
        struct source source = {.state = kind, .arena = &arena};
        struct moment moment = pick_playbook_moment(&source, (enum moment_kind)kind);
        moment.by = 0;
        struct json record = record_of(VOCABULARY_NOETL, moment);
        check_text(&record, "event_type", word);
        CHECK(uuid_valid(json_text(json_key(&record, "event_id"))));
        CHECK(str_ends(json_text(json_key(&record, "timestamp")), STR("Z")));
        check_text(&record, "execution_id", "run-001");
        check_one_of(&record, "source", sources, ARRAY_COUNT(sources));
        check_one_of(&record, "entity_type", entities, ARRAY_COUNT(entities));
        CHECK(json_text(json_key(&record, "entity_id")).len);
        CHECK_INT(json_integer(json_key(&record, "seq"), 0), 1);
        check_one_of(&record, "status", statuses, ARRAY_COUNT(statuses));
        struct json other = with_member(&record, "seq", json_int(0));
        check_refused(VOCABULARY_NOETL, &other, "seq");
        static const char *const closed[] = {"source", "entity_type", "status"};
        for (size_t i = 0; i < ARRAY_COUNT(closed); i++) {
            other = with_member(&record, closed[i], json_string(STR("other")));
            check_refused(VOCABULARY_NOETL, &other, closed[i]);
        }
        struct str alias = json_text(json_key(&record, "event_alias")); // the type's parts, capitalised
        size_t at = 0;
        for (const char *c = word; *c; c++) {
            if (*c == '.') continue;
            bool first = c == word || c[-1] == '.';
            CHECK(at < alias.len && alias.ptr[at] == (first ? *c - 'a' + 'A' : *c));
            at++;
        }
        CHECK_INT(at, alias.len);
        const char *must[] = {"event_id", "event_type", "timestamp", "execution_id"};
        for (size_t i = 0; i < ARRAY_COUNT(must); i++) {
            struct json without = with_member(&record, must[i], (struct json){0});
            if (i == 1) continue; // then there is no schema to hold it against
            check_refused(VOCABULARY_NOETL, &without, must[i]);
        }
    }
}

static void emitters_are_those_of_the_model_NX_5_1_NX_5_2_NX_3_5a_NX_3_5f(void)
{
    static const char *const of_workers[] = {"step.started",
                                             "step.done",
                                             "step.failed",
                                             "task.started",
                                             "task.attempt.started",
                                             "task.attempt.done",
                                             "task.attempt.failed",
                                             "task.done",
                                             "task.failed",
                                             "policy.task.evaluated",
                                             "loop.iteration.started",
                                             "loop.iteration.done",
                                             "loop.iteration.failed",
                                             "result.stored",
                                             "result.manifest.updated"};
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_NOETL);
        if (!word) continue;
        bool worker = false;
        for (size_t i = 0; i < ARRAY_COUNT(of_workers); i++) worker = worker || strcmp(word, of_workers[i]) == 0;
        CHECK_INT(moment_emitter((enum moment_kind)kind) == EMITTER_WORKER, worker);
    }
}

static void there_is_no_case_retry_or_sink_NX_0b_NX_0c_NX_0d(void)
{
    open_contract();
    struct json record = record_of(VOCABULARY_NOETL, task_moment(MOMENT_TASK_STARTED));
    static const char *const old[] = {"case.evaluated", "retry.started", "sink.done", "tool.started"};
    for (size_t i = 0; i < ARRAY_COUNT(old); i++) {
        struct json other = with_member(&record, "event_type", json_string(str_from(old[i])));
        check_refused(VOCABULARY_NOETL, &other, old[i]);
    }
}

// ---- ids

static void ids_in_loops_and_parents_NX_2h_NX_2j_NX_2k_NX_3_4n1(void)
{
    open_contract();
    struct moment moment = task_moment(MOMENT_TASK_STARTED);
    moment.iteration = 3;
    struct json record = record_of(VOCABULARY_NOETL, moment);
    CHECK_INT(json_integer(json_key(&record, "iteration"), 9), 2); // an index
    CHECK_TEXTS(&record, {"iteration_id", "step:fetch_all_endpoints:run:7:iteration:2"},
                {"task_run_id", TASK_OF_ITERATION}, {"parent_id", "step:fetch_all_endpoints:run:7"},
                {"workflow_run_id", "workflow:run:1"});
    moment.kind = MOMENT_ATTEMPT_STARTED;
    moment.logical = 2;
    struct json later = record_of(VOCABULARY_NOETL, moment);
    check_text(&later, "task_run_id", TASK_OF_ITERATION);
    moment.engine = 2; // after a restart
    later = record_of(VOCABULARY_NOETL, moment);
    CHECK_INT(json_integer(json_key(&later, "iteration"), 9), 2);
    check_text(&later, "iteration_id", "step:fetch_all_endpoints:run:7:iteration:2");
    moment.iteration = 4;
    later = record_of(VOCABULARY_NOETL, moment);
    check_text(&later, "iteration_id", "step:fetch_all_endpoints:run:7:iteration:3");
    moment.iteration = 0;
    later = record_of(VOCABULARY_NOETL, moment);
    CHECK(!json_key(&later, "iteration") && !json_key(&later, "iteration_id"));
    record = record_of(VOCABULARY_NOETL, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .visit = 1});
    check_text(&record, "parent_id", "workflow:run:1");
    record = record_of(VOCABULARY_NOETL, (struct moment){.kind = MOMENT_WORKFLOW_STARTED});
    check_text(&record, "workflow_run_id", "workflow:run:1");
    check_text(&record, "parent_id", "run-001");
    struct moment bare = {.kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 1, .engine = 1};
    check_unsayable(&bare);
}

static void check_key(struct moment moment, const char *slot, const char *word)
{
    if (!moment.logical) moment.logical = 1;
    struct digest got = moment_key(VOCABULARY_NOETL, &test_ids, &moment);
    struct digest want = event_key(test_ids.run, str_from(slot), moment.logical, str_from(word), test_ids.plan_version);
    CHECK(digest_eq(&got, &want));
    CHECK_STR(moment_slot(VOCABULARY_NOETL, &moment, &arena), str_from(slot));
}

static void keys_tell_moments_of_a_step_apart_C_65_C_33(void)
{
    open_contract();
    struct moment moment = task_moment(MOMENT_ATTEMPT_DONE);
    check_key(moment, "fetch_all_endpoints|7|0|fetch_page|1", "task.attempt.done");
    moment.iteration = 12;
    moment.logical = 2;
    check_key(moment, "fetch_all_endpoints|7|12|fetch_page|1", "task.attempt.done");
    check_key((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .visit = 1}, "a|1|0||0", "step.started");
    check_key((struct moment){.kind = MOMENT_REQUEST_EVALUATED}, "RUN", "playbook.request.evaluated");
    check_key((struct moment){.kind = MOMENT_RUN_RESUMED}, "RESUME", "playbook.request.evaluated");
    check_key((struct moment){.kind = MOMENT_RUN_FAILED}, "RUN", "playbook.finished");
    char hex[SHA256_HEX + 1];
    moment = task_moment(MOMENT_TASK_DONE);
    moment.logical = 1;
    struct digest key = moment_key(VOCABULARY_NOETL, &test_ids, &moment);
    digest_hex(&key, hex);
    CHECK_TEXT(hex, "9ae629f0e27efaa1f135dd0d7840907fbf190a14965b75b758ccb9ff9fc9b822");
    // In other words the second visit is a step of its own.
    CHECK_STR(moment_slot(VOCABULARY_RUN, &moment, &arena), STR("fetch_all_endpoints:run:7"));
    moment.visit = 1;
    CHECK_STR(moment_slot(VOCABULARY_RUN, &moment, &arena), STR("fetch_all_endpoints"));
}

static void references_lead_back_to_their_place(void)
{
    open_contract();
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct source source = {.state = seed, .arena = &arena};
        struct moment moment = pick_playbook_moment(&source, seed % 2 ? MOMENT_TASK_DONE : MOMENT_STEP_COMPLETED);
        struct result_place place = result_place(test_ids.run, &moment), back;
        struct str ref = result_ref_format(&place, &arena);
        CHECK(ref.ptr && result_ref_parse(ref, &arena, &back));
        CHECK_STR(back.execution, place.execution);
        CHECK_STR(back.step, place.step);
        CHECK_STR(back.task, place.task);
        CHECK_INT(back.visit, place.visit);
        CHECK_INT(back.iteration, place.iteration);
        CHECK_INT(back.task_run, place.task_run);
        CHECK_INT(back.attempt, place.attempt);
        for (size_t i = 0; i < ref.len; i++) CHECK(ref.ptr[i] > ' ' && ref.ptr[i] < 0x7f);
    }
    static const char *const bad[] = {"",
                                      "noetl://execution/",
                                      "noetl://execution/e",
                                      "noetl://execution/e/step/",
                                      "noetl://execution/e/step/a%2",
                                      "noetl://execution/e/step/a%zz",
                                      "noetl://execution/e/step/a/visit/1",
                                      "noetl://execution/e/step/a/task/t",
                                      "noetl://execution/e/step/a/task/t/run/0/attempt/1",
                                      "noetl://execution/e/step/a/task/t/run/1/attempt/1/x",
                                      "noetl://execution/e/result/x/12345678",
                                      "s3://execution/e/step/a"};
    struct result_place place;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) CHECK(!result_ref_parse(str_from(bad[i]), &arena, &place));
}

// ---- in other words

static struct json shown(enum vocabulary to, struct moment moment)
{
    struct seal seal = {.seq = 12, .persisted_ms = 1770829200001, .event_id = "00000000-0000-4000-8000-000000000001"};
    struct json out;
    moment.logical = moment.logical ? moment.logical : 1;
    moment.engine = 1;
    CHECK_OK(contract_show(contract, to, &test_ids, &moment, &seal, &arena, &out, &err), &err);
    return out;
}

static void playbooks_in_words_of_plans_C_65_C_31(void)
{
    open_contract();
    struct json record =
        shown(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("a"), .visit = 2});
    check_text(&record, "eventType", "StepCompleted");
    check_text(&record, "stepId", "a:run:2");
    record = shown(VOCABULARY_NODES, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .visit = 1});
    check_text(&record, "payload.node_id", "a");
    struct moment denied = {.kind = MOMENT_ADMIT_EVALUATED, .step = STR("a"), .visit = 1};
    denied.value = parsed("{\"allow\":false,\"matched_rule_index\":0}");
    record = shown(VOCABULARY_RUN, denied);
    check_text(&record, "eventType", "StepSkipped");
    record = shown(VOCABULARY_NODES, denied);
    check_text(&record, "event_type", "node_skipped");
    denied.value = parsed("{\"allow\":true}");
    CHECK_INT(shown(VOCABULARY_RUN, denied).type, 0);
    CHECK_INT(shown(VOCABULARY_RUN, task_moment(MOMENT_ATTEMPT_FAILED)).type, 0);
    record = shown(VOCABULARY_RUN, (struct moment){.kind = MOMENT_RUN_STARTED, .value = parsed("{\"day\":1}")});
    CHECK_INT(json_integer(json_at(&record, STR("payload.inputs.day")), 0), 1);
}

static void plans_in_words_of_playbooks_C_31_C_27(void)
{
    open_contract();
    struct json record = shown(VOCABULARY_NOETL, (struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("load")});
    check_text(&record, "event_type", "step.done");
    check_text(&record, "step_run_id", "step:load:run:1");
    record = shown(VOCABULARY_NOETL,
                   (struct moment){.kind = MOMENT_STEP_SKIPPED, .step = STR("load"), .reason = STR("TRIGGER_RULE")});
    CHECK_TEXTS(&record, {"event_type", "policy.admit.evaluated"}, {"status", "skipped"},
                {"payload.meta.reason", "TRIGGER_RULE"});
    record = shown(VOCABULARY_NOETL,
                   (struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("load"), .fault = exit_fault()});
    check_text(&record, "event_type", "task.attempt.failed");
    check_text(&record, "task_run_id", "task:load:step:load:run:1:run:1");
    struct start_facts start = story_start("plan");
    record = shown(VOCABULARY_NOETL, (struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    check_text(&record, "event_type", "playbook.started");
    check_text(&record, "payload.inputs.day", "2026-02-11");
    record = shown(VOCABULARY_NOETL, (struct moment){.kind = MOMENT_RUN_CANCELLED, .reason = STR("enough")});
    CHECK_TEXTS(&record, {"status", "error"}, {"payload.error.kind", "cancelled"}, {"payload.error.message", "enough"});
    CHECK_INT(shown(VOCABULARY_NOETL, (struct moment){.kind = MOMENT_RUN_QUEUED, .start = &start}).type, 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_failed_attempt_as_in_the_example_NX_7_1_NX_2l_NX_2r),
        TEST(a_decision_as_in_the_example_NX_7_2_NX_3_6b_NX_2s),
        TEST(a_stored_result_as_in_the_example_NX_7_3_NX_3_7a_NX_2q),
        TEST(a_manifest_lists_stored_results_NX_3_7b),
        TEST(routing_as_in_the_example_NX_7_4_NX_3_6c),
        TEST(catalogue_of_29_types_is_shipped_NX_1_1a_NX_1_1b_NX_1_1c),
        TEST(verbs_are_the_recommended_ones_NX_1_1d_NX_1_1e),
        TEST(every_record_has_the_envelope_NX_2b_NX_2c_NX_2d_NX_2e_NX_2f_NX_2g_NX_2i_NX_2m_NX_1_2a),
        TEST(emitters_are_those_of_the_model_NX_5_1_NX_5_2_NX_3_5a_NX_3_5f),
        TEST(there_is_no_case_retry_or_sink_NX_0b_NX_0c_NX_0d),
        TEST(ids_in_loops_and_parents_NX_2h_NX_2j_NX_2k_NX_3_4n1),
        TEST(keys_tell_moments_of_a_step_apart_C_65_C_33),
        TEST(references_lead_back_to_their_place),
        TEST(playbooks_in_words_of_plans_C_65_C_31),
        TEST(plans_in_words_of_playbooks_C_31_C_27),
    };
    return test_main("contract_noetl", tests, ARRAY_COUNT(tests), argc, argv);
}
