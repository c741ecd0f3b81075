// Execution Semantics 1.1, requirement by requirement: attempts, pauses, snapshots, versions.
#include "support/semantics_kit.h"

// ---- attempts

#define PLAN_RETRY                                                                                                     \
    RIG_PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"retry\":{\"maxAttempts\":2,\"delay\":\"1s\"}},"                    \
             "{\"stepId\":\"b\",\"kind\":\"noop\",\"dependsOn\":[\"a\"]},"                                             \
             "{\"stepId\":\"c\",\"kind\":\"noop\",\"dependsOn\":[\"a\"],\"triggerRule\":\"all_failed\"}")

// The decisions of a story: everything but redispatches, without the engine's attempt numbers.
static char *decisions(bool crash, bool fail)
{
    struct story s;
    story_open(&s, PLAN_RETRY);
    story_start(&s);
    for (int i = 0; crash && i < DEATHS_AT_ONCE; i++) story_crash(&s); // with one more it would rest
    CHECK_INT(kernel_attempt(s.run, 0).engine, crash ? 1 + DEATHS_AT_ONCE : 1);
    story_fail(&s, "a", "X", true);
    story_timer(&s, "a");
    for (int i = 0; crash && i < 2; i++) story_crash(&s);
    if (fail) {
        story_fail(&s, "a", "X", true);
        story_done(&s, "c", NULL);
    } else {
        story_done(&s, "a", NULL);
        story_done(&s, "b", NULL);
    }
    struct buf out;
    buf_init(&out, 1 << 16);
    struct str rest = buf_str(&s.told);
    while (rest.len > 0) {
        struct str line = str_cut(rest, '\n', &rest);
        size_t dot = str_find(line, '.', 0), blank = str_find(line, ' ', dot);
        struct str word = str_slice(line, str_find(line, ' ', 0) + 1, line.len);
        if (line.len == 0 || str_starts(word, STR("STEP_REDISPATCHED"))) continue;
        buf_add(&out, str_slice(line, 0, dot));
        buf_add(&out, str_slice(line, blank, line.len));
        buf_byte(&out, '\n');
    }
    story_close(&s);
    CHECK(buf_ok(&out));
    return out.ptr;
}

// Five crashes do not use up one retry, do not satisfy or break a dependency and skip nothing.
static void engine_attempts_decide_nothing_ES_1_3c(void)
{
    for (int fail = 0; fail < 2; fail++) {
        char *calm = decisions(false, fail), *stormy = decisions(true, fail);
        CHECK_TEXT(stormy, calm);
        CHECK(strstr(calm, fail ? "STEP_SKIPPED b" : "STEP_SKIPPED c"));
        free(calm);
        free(stormy);
    }
}

static void logical_attempts_rise_per_step_and_run_ES_1_3d(void)
{
    const char *plan = RIG_PLAN(
        RIG_SHELL("x", "exit 1", ",\"dependsOn\":[],\"retry\":{\"maxAttempts\":3,\"delay\":\"1ms\"}") "," RIG_SHELL(
            "y", "exit 1", ",\"dependsOn\":[],\"retry\":{\"maxAttempts\":2,\"delay\":\"1ms\"}"));
    rig_open(&rig, "memory");
    for (int run = 1; run <= 2; run++) {
        char id[16];
        snprintf(id, sizeof(id), "r-%d", run);
        rig_start(&rig, plan, id);
        rig_finish(&rig);
        struct log log = rig_log(&rig, id);
        static const struct {
            const char *step;
            int tries;
        } steps[] = {{"x", 3}, {"y", 2}};
        for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
            CHECK_INT(log_count(&log, "StepStarted", steps[i].step), steps[i].tries);
            for (int n = 0; n < steps[i].tries; n++) {
                const struct json *start = &log.items[log_index(&log, "StepStarted", steps[i].step, n)];
                const struct json *end = &log.items[log_index(&log, "StepFailed", steps[i].step, n)];
                CHECK_INT(int_at(start, "logicalAttemptId"), n + 1);
                CHECK_INT(int_at(end, "logicalAttemptId"), n + 1);
                CHECK_INT(int_at(start, "engineAttemptId"), 1);
            }
        }
    }
    rig_close(&rig);
}

// ---- pauses

static bool exists(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return access(path, F_OK) == 0;
}

static void make(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    test_write_file(path, STR(""));
}

static void drop(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    CHECK(unlink(path) == 0);
}

#define WAIT_FOR(flag) "touch begun-$CAIRN_STEP_ID; until test -e " flag "; do sleep 0.02; done; echo $CAIRN_STEP_ID"

static void start_paused(const char *kind)
{
    rig_open(&rig, kind);
    rig_start(&rig,
              RIG_PLAN(RIG_SHELL("a", WAIT_FOR("go-a"), ",\"dependsOn\":[]") "," RIG_SHELL(
                  "b", WAIT_FOR("go-b"),
                  ",\"dependsOn\":[]") "," RIG_SHELL("c", "echo x >> ran-c",
                                                     ",\"dependsOn\":[\"a\"]") ",{\"stepId\":\"d\",\"kind\":\"noop\","
                                                                               "\"dependsOn\":[\"b\",\"c\"]}"),
              "r-1");
    rig_until(&rig, "StepStarted", "b");
    while (!exists("begun-a") || !exists("begun-b")) rig_turn(&rig);
    rig_signal(&rig, "r-1", SIGNAL_PAUSE, RIG_SIGNAL_A, "lunch");
}

static struct run_view view_now(void)
{
    struct run_view view;
    struct log log = rig_log(&rig, "r-1");
    rig_view(&rig, "r-1", &view);
    log_fold(&rig, &log, 0, log.count, &view);
    return view;
}

static const char *substatus_now(void)
{
    struct run_view view = view_now();
    return view_substatus(&view);
}

static void pause_drains_ES_6_1a_ES_6_1b_ES_6_1c_ES_6_2_ES_1_2_s12(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        start_paused(rig_kinds[i]);
        // PAUSED in the store at once, while both are still at work.
        struct run_head head;
        CHECK_OK(store_head(rig.store, RIG_TENANT, STR("r-1"), &rig.arena, &head, &rig.err), &rig.err);
        CHECK_INT(head.summary.status, RUN_STATUS_PAUSED);
        CHECK_TEXT(head.summary.substatus, "DRAINING");
        CHECK_INT(view_now().status, RUN_STATUS_PAUSED);
        CHECK_INT(view_now().running_count, 2);
        rig_for(&rig, 150);
        CHECK_INT(engine_activity(rig.engine).in_flight, 2); // neither was stopped
        make("go-a");
        rig_until(&rig, "StepCompleted", "a");
        rig_for(&rig, 150);
        CHECK_INT(rig_count(&rig, "StepStarted", "c"), 0); // a is done and c is ready: it must wait
        CHECK(!exists("ran-c"));
        make("go-b");
        rig_until(&rig, "StepCompleted", "b");
        rig_for(&rig, 50);
        struct log log = rig_log(&rig, "r-1");
        int paused = log_index(&log, "RunPaused", NULL, 0);
        CHECK(log_index(&log, "StepCompleted", "a", 0) > paused && log_index(&log, "StepCompleted", "b", 0) > paused);
        CHECK_STR(text_at(log_find(&log, "StepCompleted", "a"), "payload.result"), STR("a"));
        CHECK_INT(log_count(&log, "StepFailed", NULL), 0);
        for (size_t k = (size_t)paused; k < log.count; k++)
            CHECK(!str_is(text_at(&log.items[k], "eventType"), "StepStarted"));
        CHECK_INT(view_now().status, RUN_STATUS_PAUSED);
        CHECK_TEXT(substatus_now(), "");
        rig_close(&rig);
        static const char *const flags[] = {"go-a", "go-b", "begun-a", "begun-b"};
        for (size_t k = 0; k < ARRAY_COUNT(flags); k++) drop(flags[k]);
    }
}

static void resume_runs_the_rest_once_ES_6_4a_ES_6_4b(void)
{
    start_paused("sqlite");
    make("go-a");
    rig_until(&rig, "StepCompleted", "a"); // done during the pause; b is still at work
    rig_signal(&rig, "r-1", SIGNAL_RESUME, RIG_SIGNAL_B, "");
    rig_until(&rig, "StepCompleted", "c");
    make("go-b");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    static const char *const steps[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        CHECK_INT(log_count(&log, "StepStarted", steps[i]), 1);
        CHECK_INT(log_count(&log, "StepCompleted", steps[i]), 1);
    }
    CHECK_INT(log_count(&log, "StepRedispatched", NULL), 0);
    CHECK(log_index(&log, "StepStarted", "c", 0) > log_index(&log, "RunResumed", NULL, 0));
    CHECK_INT(log_count(&log, "RunCompleted", NULL), 1);
    char path[512];
    snprintf(path, sizeof(path), "%s/ran-c", test_dir());
    CHECK_INT(test_read_file(path).len, 2); // one line
    rig_close(&rig);
}

static void events_of_a_pause_come_in_this_order_ES_6_7(void)
{
    start_paused("files");
    CHECK_TEXT(substatus_now(), "DRAINING");
    make("go-a");
    rig_until(&rig, "StepCompleted", "a");
    make("go-b");
    rig_until(&rig, "StepCompleted", "b");
    CHECK_TEXT(substatus_now(), "");
    CHECK_INT(view_now().status, RUN_STATUS_PAUSED);
    rig_signal(&rig, "r-1", SIGNAL_RESUME, RIG_SIGNAL_B, "");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    CHECK_STR(log_words(&rig, &log),
              STR("RunQueued RunStarted StepStarted:a StepStarted:b SignalAccepted RunPaused StepCompleted:a "
                  "StepCompleted:b SignalAccepted RunResumed StepStarted:c StepCompleted:c StepStarted:d "
                  "StepCompleted:d RunCompleted"));
    rig_close(&rig);
}

// ---- artifacts and outputs of steps

static void artifacts_are_pointers_with_kind_digest_and_size_ES_2c(void)
{
    rig_open(&rig, "sqlite");
    rig_start(&rig,
              RIG_PLAN(RIG_SHELL("a", "printf hello > $ARTIFACTS_DIR/o.txt",
                                 ",\"artifacts\":[{\"path\":\"o.txt\",\"kind\":\"dbt-manifest\"}]")),
              "r-1");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    const struct json *record = log_find(&log, "StepCompleted", "a");
    const struct json *artifact = json_at(record, STR("payload.artifacts.0"));
    CHECK(artifact);
    struct str uri = text_at(artifact, "uri");
    CHECK(str_starts(uri, STR("file:///")) && str_ends(uri, STR("/o.txt")));
    char path[512];
    snprintf(path, sizeof(path), "%.*s", STR_ARG(str_slice(uri, strlen("file://"), uri.len)));
    CHECK_STR(test_read_file(path), STR("hello"));
    CHECK_STR(text_at(artifact, "kind"), STR("dbt-manifest"));
    CHECK_STR(text_at(artifact, "sha256"), STR("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"));
    CHECK_INT(int_at(artifact, "sizeBytes"), 5);
    for (size_t i = 0; i < log.count; i++)
        CHECK(!memmem(log.raw.items[i].bytes.ptr, log.raw.items[i].bytes.len, "hello\"", 6));
    // uri and kind are what makes one; digest, size and expiry may be absent but not wrong.
    static const char *const members[] = {"uri", "kind", "sha256", "sizeBytes"};
    struct json wrong = json_bool(true), expiry = json_string(STR("2027-01-01T00:00:00Z"));
    CHECK(fits("run-events/common.json#/$defs/artifact", artifact, NULL));
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
        struct json less = json_with(&rig, artifact, members[i], NULL),
                    bad = json_with(&rig, artifact, members[i], &wrong);
        CHECK_INT(fits("run-events/common.json#/$defs/artifact", &less, NULL), i >= 2);
        CHECK(!fits("run-events/common.json#/$defs/artifact", &bad, NULL));
    }
    struct json lasting = json_with(&rig, artifact, "expiresAt", &expiry);
    CHECK(fits("run-events/common.json#/$defs/artifact", &lasting, NULL));
    rig_close(&rig);
}

// SUCCESS, FAILED or SKIPPED; artifacts; what went wrong, by category, code, message and whether to try again (C-12).
static void output_of_a_step_is_status_artifacts_and_error_ES_2d(void)
{
    rig_open(&rig, "memory");
    rig_start(
        &rig,
        RIG_PLAN(RIG_SHELL(
            "good", "echo x > $ARTIFACTS_DIR/o",
            ",\"dependsOn\":[],\"artifacts\":[{\"path\":\"o\",\"kind\":\"k\"}]") "," RIG_SHELL("slow", "sleep 60",
                                                                                               ",\"dependsOn\":[],"
                                                                                               "\"timeout\":"
                                                                                               "\"50ms\"") ",{"
                                                                                                           "\"stepI"
                                                                                                           "d\":"
                                                                                                           "\"after"
                                                                                                           "\","
                                                                                                           "\"kind"
                                                                                                           "\":"
                                                                                                           "\"noop"
                                                                                                           "\","
                                                                                                           "\"depen"
                                                                                                           "dsOn\":"
                                                                                                           "[\"slow"
                                                                                                           "\"]}"),
        "r-1");
    rig_finish(&rig);
    struct run_view view = view_now();
    struct json json;
    CHECK(view_json(&view, &rig.arena, &json));
    const struct json *good = NULL, *slow = NULL, *after = NULL;
    for (uint32_t i = 0; i < json_key(&json, "steps")->count; i++) {
        const struct json *step = &json_key(&json, "steps")->items[i];
        struct str id = text_at(step, "stepId");
        *(str_is(id, "good") ? &good : str_is(id, "slow") ? &slow : &after) = step;
    }
    CHECK(good && slow && after);
    CHECK_STR(text_at(good, "status"), STR("SUCCESS"));
    CHECK_INT(json_key(good, "artifacts")->count, 1);
    CHECK_STR(text_at(good, "artifacts.0.kind"), STR("k"));
    CHECK(!json_key(good, "error"));
    CHECK_STR(text_at(slow, "status"), STR("FAILED"));
    CHECK_INT(json_key(slow, "artifacts")->count, 0);
    CHECK_STR(text_at(slow, "error.category"), STR("timeout"));
    CHECK_STR(text_at(slow, "error.code"), STR("TIMEOUT"));
    CHECK(text_at(slow, "error.message").len > 0);
    CHECK(json_at(slow, STR("error.retryable")) && json_at(slow, STR("error.retryable"))->boolean);
    CHECK_STR(text_at(after, "status"), STR("SKIPPED"));
    CHECK(!json_key(after, "error"));
    CHECK_INT(json_key(after, "artifacts")->count, 0);
    rig_close(&rig);
}

// ---- versions

// What only a major version may change is nailed down: envelopes are closed, none of their members can go, change its type
// or its name, and stores of a newer format are not touched.
static void envelopes_cannot_change_quietly_ES_7b(void)
{
    static const char *const envelope[] = {
        "eventType", "eventId",     "runId",           "runSeq",           "idempotencyKey", "prevHash",
        "emittedAt", "emittedBy",   "tenantId",        "persistedAt",      "projectId",      "environmentId",
        "planId",    "planVersion", "engineAttemptId", "logicalAttemptId", "payload"};
    struct log log = finished_log("memory");
    struct json wrong = json_array(), same;
    for (size_t i = 0; i < log.count; i++) {
        const struct json *record = &log.items[i];
        CHECK_INT(record->count, ARRAY_COUNT(envelope) + (json_key(record, "stepId") ? 1 : 0));
        for (size_t k = 0; k < ARRAY_COUNT(envelope); k++) {
            const struct json *value = json_key(record, envelope[k]);
            CHECK(value);
            struct json less = json_with(&rig, record, envelope[k], NULL);
            struct json retyped = json_with(&rig, record, envelope[k], &wrong);
            same = *value;
            struct json renamed = json_with(&rig, &less, "renamed", &same);
            CHECK_INT(contract_check(rig.contract, VOCABULARY_RUN, &less, NULL), E_SCHEMA);
            CHECK_INT(contract_check(rig.contract, VOCABULARY_RUN, &retyped, NULL), E_SCHEMA);
            CHECK_INT(contract_check(rig.contract, VOCABULARY_RUN, &renamed, NULL), E_SCHEMA);
        }
    }
    rig_close(&rig);
}

static void stores_of_a_newer_format_are_refused_ES_7b(void)
{
    struct store_options options = {.mode = STORE_WRITE, .entropy = os_entropy()};
    struct store *store = NULL;
    char path[512];
    rig_open_store(&rig, "sqlite");
    options.contract = rig.contract;
    store_close(rig.store);
    rig.store = NULL;
    snprintf(path, sizeof(path), "%s/store.sqlite", test_dir());
    sqlite3 *db;
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, "PRAGMA user_version=2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    CHECK_INT(store_open(str_from(rig_url(&rig, "sqlite")), &options, &store, NULL), E_VERSION);
    arena_release(&rig.arena);
    rig_open_store(&rig, "files");
    options.contract = rig.contract;
    store_close(rig.store);
    rig.store = NULL;
    snprintf(path, sizeof(path), "%s/store.files/.cairn/VERSION", test_dir());
    CHECK_STR(test_read_file(path), STR("cairn files 1\n"));
    test_write_file(path, STR("cairn files 2\n"));
    CHECK_INT(store_open(str_from(rig_url(&rig, "files")), &options, &store, NULL), E_VERSION);
    arena_release(&rig.arena);
}

// The same log told by a writer of Run Events 1.1 (occurredAt, nothing that came later) and by one from the future (more
// in the payload, a type nobody knows): a mixed log ends in the same state. What we write ourselves fits the contract.
static void old_and_new_shapes_are_read_ours_fit_ES_7d(void)
{
    struct log log = finished_log("memory");
    struct run_view plain, mixed;
    struct moment moment;
    struct seal seal;
    rig_view(&rig, "r-1", &plain);
    rig_view(&rig, "r-1", &mixed);
    log_fold(&rig, &log, 0, log.count, &plain);
    for (size_t i = 0; i < log.count; i++) {
        struct json record = log.items[i], type = json_string(STR("StepTeleported")), more = json_string(STR("news"));
        CHECK_OK(contract_check(rig.contract, VOCABULARY_RUN, &record, &rig.err), &rig.err);
        if (i % 2 == 0) {
            struct json time = *json_key(&record, "emittedAt");
            static const char *const later[] = {"emittedAt", "emittedBy", "eventId", "prevHash", "persistedAt"};
            for (size_t k = 0; k < ARRAY_COUNT(later); k++) record = json_with(&rig, &record, later[k], NULL);
            record = json_with(&rig, &record, "occurredAt", &time);
        } else {
            struct json payload = json_with(&rig, json_key(&record, "payload"), "shapeOfTheFuture", &more);
            record = json_with(&rig, &record, "payload", &payload);
        }
        enum code rc =
            contract_decode(VOCABULARY_RUN, json_bytes(&rig, &record), &rig.arena, &moment, &seal, NULL, &rig.err);
        CHECK_OK(rc, &rig.err);
        CHECK_INT(moment.at_ms, time_at(&log.items[i], "emittedAt"));
        CHECK(view_fold(&mixed, &moment, 2 * seal.seq - 1));
        struct json news = json_with(&rig, &log.items[i], "eventType", &type);
        rc = contract_decode(VOCABULARY_RUN, json_bytes(&rig, &news), &rig.arena, &moment, &seal, NULL, &rig.err);
        CHECK_OK(rc, &rig.err);
        CHECK_INT(moment.kind, MOMENT_UNKNOWN);
        CHECK(view_fold(&mixed, &moment, 2 * seal.seq));
    }
    struct digest a, b;
    CHECK(view_hash(&plain, &rig.arena, &a) && view_hash(&mixed, &rig.arena, &b));
    CHECK(digest_eq(&a, &b) && !mixed.inconsistent);
    CHECK_INT(mixed.last_seq, 2 * log.count);
    rig_close(&rig);
}

// ---- RunStarted

static void RunStarted_says_who_what_and_where_ES_A1b(void)
{
    struct log log = finished_log("sqlite");
    const struct json *record = log_find(&log, "RunStarted", NULL);
    struct digest digest = sha256(str_from(everything));
    char hex[SHA256_HEX + 1], uri[128];
    digest_hex(&digest, hex);
    snprintf(uri, sizeof(uri), "cairn://plans/%s", hex);
    CHECK_STR(text_at(record, "payload.status"), STR("RUNNING"));
    CHECK_STR(text_at(record, "payload.engineRunRef"), STR("cairn://local/orders/r-1/r-1"));
    CHECK_STR(text_at(record, "payload.engineType"), STR("cairn"));
    CHECK_STR(text_at(record, "payload.planRef.uri"), str_from(uri));
    CHECK_STR(text_at(record, "payload.planRef.sha256"), str_from(hex));
    CHECK_STR(text_at(record, "payload.planRef.schemaVersion"), STR("v1.2"));
    CHECK_STR(text_at(record, "payload.planRef.planId"), STR("orders"));
    CHECK_STR(text_at(record, "payload.planRef.planVersion"), STR("1.2.0"));
    CHECK_STR(text_at(record, "payload.context.tenantId"), STR("acme"));
    CHECK_STR(text_at(record, "payload.context.projectId"), STR("shop"));
    CHECK_STR(text_at(record, "payload.context.environmentId"), STR("prod"));
    CHECK_STR(text_at(record, "payload.startedAt"), text_at(record, "emittedAt"));
    struct str plan;
    CHECK_OK(store_blob(rig.store, &digest, &rig.arena, &plan, &rig.err), &rig.err);
    CHECK_STR(plan, str_from(everything));
    static const char *const needed[] = {"status", "engineRunRef", "engineType", "planRef", "context", "startedAt"};
    for (size_t i = 0; i < ARRAY_COUNT(needed); i++) {
        struct json payload = json_with(&rig, json_key(record, "payload"), needed[i], NULL);
        struct json less = json_with(&rig, record, "payload", &payload);
        CHECK_INT(contract_check(rig.contract, VOCABULARY_RUN, &less, NULL), E_SCHEMA);
    }
    rig_close(&rig);
}

static enum code check_source(const struct json *record, const char *source)
{
    struct json value = json_string(str_from(source));
    struct json context = json_with(&rig, json_at(record, STR("payload.context")), "triggerSource", &value);
    struct json payload = json_with(&rig, json_key(record, "payload"), "context", &context);
    struct json changed = json_with(&rig, record, "payload", &payload);
    return contract_check(rig.contract, VOCABULARY_RUN, &changed, NULL);
}

static void trigger_is_a_person_and_one_of_four_sources_ES_A1c(void)
{
    static const char *const sources[] = {"manual", "schedule", "webhook", "api"};
    static const char *const others[] = {"cron", "Manual", "", "cli", "user"};
    struct log log = finished_log("memory");
    const struct json *record = log_find(&log, "RunStarted", NULL);
    CHECK_STR(text_at(record, "payload.context.triggeredBy"), STR("alice"));
    CHECK_STR(text_at(record, "payload.context.triggerSource"), STR("api"));
    for (size_t i = 0; i < ARRAY_COUNT(sources); i++) CHECK_INT(check_source(record, sources[i]), OK);
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) CHECK_INT(check_source(record, others[i]), E_SCHEMA);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(engine_attempts_decide_nothing_ES_1_3c),
        TEST(logical_attempts_rise_per_step_and_run_ES_1_3d),
        TEST(pause_drains_ES_6_1a_ES_6_1b_ES_6_1c_ES_6_2_ES_1_2_s12),
        TEST(resume_runs_the_rest_once_ES_6_4a_ES_6_4b),
        TEST(events_of_a_pause_come_in_this_order_ES_6_7),
        TEST(artifacts_are_pointers_with_kind_digest_and_size_ES_2c),
        TEST(output_of_a_step_is_status_artifacts_and_error_ES_2d),
        TEST(envelopes_cannot_change_quietly_ES_7b),
        TEST(stores_of_a_newer_format_are_refused_ES_7b),
        TEST(old_and_new_shapes_are_read_ours_fit_ES_7d),
        TEST(RunStarted_says_who_what_and_where_ES_A1b),
        TEST(trigger_is_a_person_and_one_of_four_sources_ES_A1c),
    };
    return test_main("requirements_semantics", tests, ARRAY_COUNT(tests), argc, argv);
}
