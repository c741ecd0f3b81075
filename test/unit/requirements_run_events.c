// Run Events 1.1, requirement by requirement, on logs that the engine wrote through a store.
#include "contract_moments.h"
#include "support/rig.h"

#include "schema/schema.h"

#define THREE_ENDS                                                                                                     \
    RIG_PLAN(RIG_SHELL("ok", "echo done", ",\"dependsOn\":[]") "," RIG_SHELL(                                          \
        "bad", "echo boom >&2; exit 3",                                                                                \
        ",\"dependsOn\":[],\"retry\":{\"maxAttempts\":2,\"delay\":\"1ms\"}") ",{\"stepId\":\"after\",\"kind\":"        \
                                                                             "\"noop\",\"dependsOn\":[\"bad\"]}")

static struct rig rig;

static struct str slot_of(const struct json *record)
{
    struct str type = text_at(record, "eventType"), signal = text_at(record, "payload.signalId");
    if (str_starts(type, STR("Step"))) return text_at(record, "stepId");
    if (!str_starts(type, STR("Signal"))) return STR("RUN");
    char *slot = arena_alloc(&rig.arena, 64);
    CHECK(slot && signal.len == UUID_SIZE - 1);
    snprintf(slot, 64, "SIG:%.*s", STR_ARG(signal));
    return str_from(slot);
}

static struct str hex_of(const char *preimage)
{
    struct digest digest = sha256(str_from(preimage));
    char *hex = arena_alloc(&rig.arena, SHA256_HEX + 1);
    CHECK(hex);
    digest_hex(&digest, hex);
    return str_from(hex);
}

// A pause makes signals part of the story; the run fails in the end.
static struct log mixed_log(const char *kind)
{
    rig_open(&rig, kind);
    rig_start(&rig, THREE_ENDS, "r-1");
    rig_until(&rig, "RunStarted", NULL);
    rig_signal(&rig, "r-1", SIGNAL_PAUSE, RIG_SIGNAL_A, "lunch");
    rig_signal(&rig, "r-1", SIGNAL_RESUME, RIG_SIGNAL_B, "");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    CHECK(log_count(&log, "SignalAccepted", NULL) == 2 && log_count(&log, "RunFailed", NULL) == 1);
    return log;
}

// ---- names and keys

static void one_name_in_key_record_column_and_stream_RE_1_2b(void)
{
    struct log log = mixed_log("sqlite");
    CHECK_INT(log.count, rig.told_count);
    for (size_t i = 0; i < log.count; i++) {
        const struct json *record = &log.items[i];
        struct str type = text_at(record, "eventType");
        char preimage[512];
        snprintf(preimage, sizeof(preimage), "r-1|%.*s|%lld|%.*s|1.2.0", STR_ARG(slot_of(record)),
                 (long long)int_at(record, "logicalAttemptId"), STR_ARG(type));
        CHECK_STR(text_at(record, "idempotencyKey"), hex_of(preimage));
        CHECK_STR(log.raw.items[i].type, type);      // what a projector routes by
        CHECK_STR(str_from(rig.told[i].type), type); // what the observer's stream says
        struct moment moment;
        struct seal seal;
        CHECK_OK(contract_decode(VOCABULARY_RUN, log.raw.items[i].bytes, &rig.arena, &moment, &seal, NULL, &rig.err),
                 &rig.err);
        CHECK(moment.kind != MOMENT_UNKNOWN);
        CHECK_STR(str_from(moment_word(moment.kind, VOCABULARY_RUN)), type);
    }
    rig_close(&rig);
}

static void key_of_RunStarted_has_five_parts_not_three_ES_A1d(void)
{
    rig_open(&rig, "memory");
    rig_start(&rig, RIG_PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"), "r-1");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    struct str key = text_at(log_find(&log, "RunStarted", NULL), "idempotencyKey");
    CHECK_STR(key, hex_of("r-1|RUN|1|RunStarted|1.2.0"));
    CHECK(!str_eq(key, hex_of("r-1|RunStarted|1.2.0")));
    rig_close(&rig);
}

// ---- numbers

static struct run_log *new_run(const char *run)
{
    struct run_create create = {.ids = {.tenant = RIG_TENANT, .project = STR("shop"), .environment = STR("prod")},
                                .vocabulary = VOCABULARY_RUN,
                                .document = sha256(STR("document")),
                                .name = STR("orders")};
    create.ids.run = str_from(run);
    create.ids.plan_id = STR("orders");
    create.ids.plan_version = STR("1.2.0");
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(rig.store, &create, &log, &rig.err), &rig.err);
    return log;
}

static const struct start_facts *start_facts(void)
{
    static struct start_facts start;
    start = (struct start_facts){.document_kind = STR("plan"), .schema_version = STR("v1.2"), .inputs = json_object()};
    start.document_sha256 = STR("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
    return &start;
}

static struct moment moment_at(enum moment_kind kind, const char *step, int64_t at_ms)
{
    struct moment moment = {.kind = kind, .step = str_from(step), .logical = 1, .engine = 1, .at_ms = at_ms};
    moment.by = moment_emitter(kind);
    if (kind == MOMENT_RUN_STARTED) moment.start = start_facts();
    if (kind == MOMENT_STEP_COMPLETED) moment.value = json_int(7);
    return moment;
}

static enum code append(struct run_log *log, struct moment moment, int64_t now_ms, struct append_item *item)
{
    item->log = log;
    item->moment = &moment;
    struct store_batch batch = {.items = item, .item_count = 1};
    enum code rc = store_append(rig.store, &batch, now_ms, &rig.arena, &rig.err);
    item->moment = NULL;
    return rc;
}

#define T0 INT64_C(1770829200000)

static void number_of_a_writer_is_not_taken_RE_2_3a(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        rig_open_store(&rig, rig_kinds[i]);
        struct run_log *log = new_run("r-1");
        struct append_item item = {
            .seq = 42, .persisted_ms = 5, .event_id = "00000000-0000-4000-8000-000000000bad", .in_log = true};
        CHECK_OK(append(log, moment_at(MOMENT_RUN_STARTED, NULL, T0), T0 + 9, &item), &rig.err);
        CHECK_INT(item.seq, 1);
        CHECK_INT(item.persisted_ms, T0 + 9);
        item.seq = 1; // taken already
        CHECK_OK(append(log, moment_at(MOMENT_STEP_STARTED, "a", T0), T0 + 9, &item), &rig.err);
        CHECK_INT(item.seq, 2);
        struct log stored = rig_log(&rig, "r-1");
        CHECK_INT(stored.count, 2);
        CHECK_INT(int_at(&stored.items[0], "runSeq"), 1);
        CHECK_INT(int_at(&stored.items[1], "runSeq"), 2);
        CHECK(!str_is(text_at(&stored.items[0], "eventId"), "00000000-0000-4000-8000-000000000bad"));
        store_release_run(rig.store, log);
        rig_close(&rig);
    }
}

static void store_gives_the_number_and_the_engine_is_told_RE_2_3b_RE_2_3c_WE_2_2c(void)
{
    for (size_t k = 0; k < ARRAY_COUNT(rig_kinds); k++) {
        struct log log = mixed_log(rig_kinds[k]);
        CHECK_INT(log.count, rig.told_count);
        for (size_t i = 0; i < log.count; i++) {
            CHECK_INT(int_at(&log.items[i], "runSeq"), i + 1);
            CHECK_INT(rig.told[i].seq, i + 1);
            CHECK_STR(str_from(rig.told[i].event_id), text_at(&log.items[i], "eventId"));
            CHECK_INT(rig.told[i].persisted_ms, time_at(&log.items[i], "persistedAt"));
            CHECK_STR(rig.told[i].bytes, log.raw.items[i].bytes);
        }
        rig_close(&rig);
    }
}

// Records with these numbers, as another store may give them, folded into a view.
static void fold_numbered(const uint64_t *numbers, struct run_view *view)
{
    static const struct {
        enum moment_kind kind;
        const char *step;
    } told[] = {{MOMENT_RUN_STARTED, NULL},
                {MOMENT_STEP_STARTED, "a"},
                {MOMENT_STEP_COMPLETED, "a"},
                {MOMENT_RUN_COMPLETED, NULL}};
    rig_view(&rig, "r-1", view);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        struct moment moment = moment_at(told[i].kind, told[i].step, T0 + (int64_t)i);
        struct seal seal = {.seq = numbers[i], .persisted_ms = T0, .event_id = "00000000-0000-4000-8000-000000000001"};
        struct encoded encoded;
        CHECK_OK(
            contract_encode(rig.contract, VOCABULARY_RUN, &view->ids, &moment, &seal, &rig.arena, &encoded, &rig.err),
            &rig.err);
        struct json record;
        CHECK_OK(json_parse(encoded.bytes, NULL, &rig.arena, &record, &rig.err), &rig.err);
        CHECK_OK(contract_check(rig.contract, VOCABULARY_RUN, &record, &rig.err), &rig.err);
        CHECK_OK(contract_decode(VOCABULARY_RUN, encoded.bytes, &rig.arena, &moment, &seal, NULL, &rig.err), &rig.err);
        CHECK_INT(seal.seq, numbers[i]);
        CHECK(view_fold(view, &moment, seal.seq));
        CHECK_INT(view->last_seq, numbers[i]);
    }
}

static void gaps_are_read_as_if_they_were_none_RE_2_3e_ES_1_1b_ES_1_5_1b(void)
{
    struct run_view dense, holed;
    struct digest a, b;
    rig_open_store(&rig, "memory");
    fold_numbered((const uint64_t[]){1, 2, 3, 4}, &dense);
    fold_numbered((const uint64_t[]){1, 2, 4, 900}, &holed);
    CHECK(!holed.inconsistent && !holed.stale);
    CHECK_INT(holed.status, RUN_STATUS_COMPLETED);
    CHECK_INT(view_step(&holed, STR("a"))->status, STEP_STATUS_SUCCESS);
    CHECK(view_hash(&dense, &rig.arena, &a) && view_hash(&holed, &rig.arena, &b));
    CHECK(digest_eq(&a, &b));
    CHECK_INT(holed.last_seq, 900);
    rig_close(&rig);
}

// Both clocks run backwards. By time the run would end before it began.
static void order_and_checkpoint_are_numbers_not_times_RE_2_3f(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        rig_open_store(&rig, rig_kinds[i]);
        struct run_log *log = new_run("r-1");
        struct append_item item = {0};
        CHECK_OK(append(log, moment_at(MOMENT_RUN_STARTED, NULL, T0), T0, &item), &rig.err);
        CHECK_OK(append(log, moment_at(MOMENT_STEP_STARTED, "a", T0 - 5000), T0 - 5000, &item), &rig.err);
        CHECK_OK(append(log, moment_at(MOMENT_STEP_COMPLETED, "a", T0 - 9000), T0 - 9000, &item), &rig.err);
        CHECK_OK(append(log, moment_at(MOMENT_RUN_COMPLETED, NULL, T0 - 20000), T0 - 20000, &item), &rig.err);
        struct log stored = rig_log(&rig, "r-1");
        CHECK_STR(log_words(&rig, &stored), STR("RunStarted StepStarted:a StepCompleted:a RunCompleted"));
        struct run_view view;
        rig_view(&rig, "r-1", &view);
        log_fold(&rig, &stored, 0, 2, &view);
        CHECK_INT(view.status, RUN_STATUS_RUNNING);
        // The checkpoint is the number: what comes after 2 is all that is missing.
        struct records rest;
        struct record_range range = {.tenant = RIG_TENANT, .run = STR("r-1"), .after = view.last_seq, .limit = 100};
        CHECK_OK(store_read(rig.store, &range, &rig.arena, &rest, &rig.err), &rig.err);
        CHECK_INT(rest.count, 2);
        CHECK_INT(rest.items[0].seq, 3);
        log_fold(&rig, &stored, 2, 4, &view);
        CHECK_INT(view.status, RUN_STATUS_COMPLETED);
        CHECK_INT(view_step(&view, STR("a"))->status, STEP_STATUS_SUCCESS);
        CHECK(!view.inconsistent);
        store_release_run(rig.store, log);
        rig_close(&rig);
    }
}

// ---- statuses that are not the engine's

static void engine_approves_nothing_by_itself_RE_3i(void)
{
    rig_open(&rig, "memory");
    rig_start(&rig,
              "{\"planId\":\"orders\",\"planVersion\":\"1.2.0\",\"requiresApproval\":true,"
              "\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}",
              "r-1");
    rig_for(&rig, 200);
    struct log log = rig_log(&rig, "r-1");
    CHECK_STR(log_words(&rig, &log), STR("RunQueued"));
    CHECK_INT(engine_run(rig.engine, RIG_TENANT, STR("r-1"))->status, RUN_STATUS_PENDING);
    rig_signal(&rig, "r-1", SIGNAL_APPROVE, RIG_SIGNAL_A, "");
    rig_finish(&rig);
    log = rig_log(&rig, "r-1");
    CHECK_STR(log_words(&rig, &log),
              STR("RunQueued SignalAccepted RunApproved RunStarted StepStarted:a StepCompleted:a RunCompleted"));
    CHECK_STR(text_at(log_find(&log, "RunApproved", NULL), "emittedBy"), STR("planner"));
    // No event of the engine's own leads to PENDING or APPROVED from anywhere else.
    struct run_view view;
    rig_view(&rig, "r-1", &view);
    for (size_t i = 0; i < log.count; i++) {
        enum run_status before = view.status;
        log_fold(&rig, &log, i, i + 1, &view);
        if (str_is(text_at(&log.items[i], "emittedBy"), "engine") && view.status != before)
            CHECK(view.status != RUN_STATUS_PENDING && view.status != RUN_STATUS_APPROVED);
    }
    CHECK_INT(view.status, RUN_STATUS_COMPLETED);
    rig_close(&rig);
}

// ---- shapes

// C-06 makes the nine names of Run Events fifteen, and Cairn adds one; nothing else can be written.
static void types_are_a_closed_set_with_the_nine_in_it_RE_4_1b(void)
{
    static const char *const nine[] = {"RunStarted", "StepStarted",  "StepCompleted", "StepFailed",  "RunPaused",
                                       "RunResumed", "RunCompleted", "RunFailed",     "RunCancelled"};
    static const char *const others[] = {"RunQueued",      "RunApproved",    "StepDelayed",     "StepSkipped",
                                         "SignalAccepted", "SignalRejected", "StepRedispatched"};
    static const char *const foreign[] = {"StepRetried",  "runStarted",  "RUNSTARTED",
                                          "onRunStarted", "RunStarted ", "workflow_started",
                                          "step.started", "RUN_STARTED", ""};
    struct source source = {.state = 4, .arena = &rig.arena};
    rig_open_store(&rig, "memory");
    size_t found = 0;
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_RUN);
        if (!word || kind == MOMENT_ATTEMPT_FAILED) continue;
        bool known = false;
        for (size_t i = 0; i < ARRAY_COUNT(nine); i++) known = known || strcmp(word, nine[i]) == 0;
        for (size_t i = 0; i < ARRAY_COUNT(others); i++) known = known || strcmp(word, others[i]) == 0;
        CHECK(known);
        found++;
        struct moment moment = pick_moment(&source, (enum moment_kind)kind);
        struct seal seal = pick_seal(&source);
        struct encoded encoded;
        struct json record;
        CHECK_OK(
            contract_encode(rig.contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &rig.arena, &encoded, &rig.err),
            &rig.err);
        CHECK_OK(json_parse(encoded.bytes, NULL, &rig.arena, &record, &rig.err), &rig.err);
        CHECK_OK(contract_check(rig.contract, VOCABULARY_RUN, &record, &rig.err), &rig.err);
        for (size_t i = 0; i < ARRAY_COUNT(foreign); i++) {
            struct json name = json_string(str_from(foreign[i]));
            struct json wrong = json_with(&rig, &record, "eventType", &name);
            CHECK_INT(contract_check(rig.contract, VOCABULARY_RUN, &wrong, NULL), E_SCHEMA);
        }
    }
    CHECK_INT(found, ARRAY_COUNT(nine) + ARRAY_COUNT(others));
    rig_close(&rig);
}

static void writers_hand_in_moments_readers_get_records_RE_4_2b(void)
{
    static const char *const write_shape[] = {"eventType",       "emittedAt",        "runId",         "tenantId",
                                              "projectId",       "environmentId",    "planId",        "planVersion",
                                              "engineAttemptId", "logicalAttemptId", "idempotencyKey"};
    static const char *const added[] = {"runSeq", "persistedAt", "eventId", "prevHash"};
    struct log log = mixed_log("files");
    for (size_t i = 0; i < log.count; i++) {
        const struct json *record = &log.items[i];
        for (size_t k = 0; k < ARRAY_COUNT(write_shape); k++) CHECK(json_key(record, write_shape[k]));
        CHECK(!json_key(record, "occurredAt"));
        CHECK_OK(contract_check(rig.contract, VOCABULARY_RUN, record, &rig.err), &rig.err);
        // Without what the store adds it is no record: the two shapes cannot be mistaken for each other.
        for (size_t k = 0; k < ARRAY_COUNT(added); k++) {
            CHECK(json_key(record, added[k]));
            struct json write = json_with(&rig, record, added[k], NULL);
            CHECK_INT(contract_check(rig.contract, VOCABULARY_RUN, &write, NULL), E_SCHEMA);
        }
    }
    rig_close(&rig);
}

static void persistedAt_is_the_stores_clock_whatever_the_writers_says_RE_4_2c(void)
{
    static const int64_t skews[] = {0, 86400000, -86400000, 3600000};
    static const char *const steps[] = {NULL, "a", "b", "c"};
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        rig_open_store(&rig, rig_kinds[i]);
        struct run_log *log = new_run("r-1");
        for (size_t k = 0; k < ARRAY_COUNT(skews); k++) {
            struct append_item item = {0};
            enum moment_kind kind = k ? MOMENT_STEP_STARTED : MOMENT_RUN_STARTED;
            CHECK_OK(append(log, moment_at(kind, steps[k], T0 + skews[k]), T0 + (int64_t)k * 7, &item), &rig.err);
        }
        struct append_item late = {0}; // the store's own clock went back: its stamps do not
        CHECK_OK(append(log, moment_at(MOMENT_STEP_STARTED, "d", T0), T0 - 60000, &late), &rig.err);
        struct log stored = rig_log(&rig, "r-1");
        for (size_t k = 0; k < ARRAY_COUNT(skews); k++) {
            CHECK_INT(time_at(&stored.items[k], "persistedAt"), T0 + (int64_t)k * 7);
            CHECK_INT(time_at(&stored.items[k], "emittedAt"), T0 + skews[k]);
        }
        CHECK_INT(time_at(&stored.items[4], "persistedAt"), T0 + 21);
        store_release_run(rig.store, log);
        rig_close(&rig);
    }
}

// ---- payloads

static void failures_tell_code_message_retryable_and_stack_RE_4_3b(void)
{
    rig_open(&rig, "memory");
    rig_start(&rig, RIG_PLAN(RIG_SHELL("bad", "echo first; echo boom >&2; exit 3", "")), "r-1");
    rig_start(&rig, RIG_PLAN(RIG_SHELL("slow", "sleep 60", ",\"timeout\":\"50ms\"")), "r-2");
    rig_start(&rig, RIG_PLAN("{\"stepId\":\"none\",\"kind\":\"exec\",\"with\":{\"argv\":[\"/no/such/program\"]}}"),
              "r-3");
    rig_finish(&rig);
    static const struct {
        const char *run, *step, *code, *stack;
        bool retryable;
    } expected[] = {{"r-1", "bad", "EXIT_NONZERO", "boom", true},
                    {"r-2", "slow", "TIMEOUT", "", true},
                    {"r-3", "none", "COMMAND_NOT_FOUND", "", false}};
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        struct log log = rig_log(&rig, expected[i].run);
        const struct json *of[] = {log_find(&log, "StepFailed", expected[i].step), log_find(&log, "RunFailed", NULL)};
        for (size_t k = 0; k < 2; k++) {
            CHECK_STR(text_at(of[k], "payload.errorCode"), str_from(expected[i].code));
            CHECK(text_at(of[k], "payload.errorMessage").len > 0);
            const struct json *retryable = json_at(of[k], STR("payload.retryable"));
            CHECK(json_is(retryable, JSON_BOOL) && retryable->boolean == expected[i].retryable);
        }
        CHECK_STR(text_at(of[0], "payload.stack"), str_from(expected[i].stack));
        CHECK_STR(text_at(of[1], "payload.failedStepId"), str_from(expected[i].step));
    }
    rig_close(&rig);
}

static void completions_tell_result_and_duration_RE_4_3c(void)
{
    rig_open(&rig, "memory");
    rig_start(&rig,
              RIG_PLAN(RIG_SHELL(
                  "nap", "sleep 0.15; echo rested",
                  "") ",{\"stepId\":\"say\",\"kind\":\"echo\",\"with\":{\"message\":{\"n\":[1,2,{\"deep\":null}]}}}"
                      ",{\"stepId\":\"nothing\",\"kind\":\"noop\"}"),
              "r-1");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    const struct json *nap = log_find(&log, "StepCompleted", "nap");
    CHECK_STR(text_at(nap, "payload.result"), STR("rested"));
    CHECK(int_at(nap, "payload.durationMs") >= 150 && int_at(nap, "payload.durationMs") < 600000); // the machine may be busy
    const struct json *said = json_at(log_find(&log, "StepCompleted", "say"), STR("payload.result"));
    CHECK(said);
    CHECK_STR(json_bytes(&rig, said), STR("{\"n\":[1,2,{\"deep\":null}]}"));
    CHECK(int_at(log_find(&log, "StepCompleted", "say"), "payload.durationMs") >= 0);
    CHECK(json_is(json_at(log_find(&log, "StepCompleted", "nothing"), STR("payload.result")), JSON_NULL));
    rig_close(&rig);
}

static void pause_and_resume_name_their_signal_and_reason_RE_4_3d(void)
{
    struct log log = mixed_log("sqlite");
    const struct json *paused = log_find(&log, "RunPaused", NULL), *resumed = log_find(&log, "RunResumed", NULL);
    CHECK_STR(text_at(paused, "payload.signalId"), STR(RIG_SIGNAL_A));
    CHECK_STR(text_at(paused, "payload.reason"), STR("lunch"));
    CHECK_STR(text_at(resumed, "payload.signalId"), STR(RIG_SIGNAL_B));
    rig_close(&rig);
}

// Each type has a schema of its own that looks into the payload: one wrong member is found.
static void payloads_are_checked_by_type_RE_4_3e(void)
{
    static const struct {
        enum moment_kind kind;
        const char *member, *wrong;
    } cases[] = {
        {MOMENT_RUN_QUEUED, "planRef", "{}"},           {MOMENT_RUN_STARTED, "status", "\"PAUSED\""},
        {MOMENT_RUN_APPROVED, "approvedBy", "1"},       {MOMENT_RUN_PAUSED, "signalId", "\"not-a-uuid\""},
        {MOMENT_RUN_RESUMED, "reason", "[]"},           {MOMENT_RUN_CANCELLED, "totalSteps", "\"3\""},
        {MOMENT_RUN_COMPLETED, "durationMs", "-1"},     {MOMENT_RUN_FAILED, "retryable", "\"yes\""},
        {MOMENT_STEP_STARTED, "dueAt", "\"tomorrow\""}, {MOMENT_STEP_REDISPATCHED, "childRunId", "\"a b\""},
        {MOMENT_STEP_DELAYED, "notBefore", "12"},       {MOMENT_STEP_COMPLETED, "artifacts", "[{\"kind\":\"x\"}]"},
        {MOMENT_STEP_FAILED, "errorCode", "404"},       {MOMENT_STEP_SKIPPED, "reason", "7"},
        {MOMENT_SIGNAL_ACCEPTED, "signalId", "\"1\""},  {MOMENT_SIGNAL_REJECTED, "signalType", "5"},
    };
    struct source source = {.state = 11, .arena = &rig.arena};
    rig_open_store(&rig, "memory");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct moment moment = pick_moment(&source, cases[i].kind);
        struct seal seal = pick_seal(&source);
        struct encoded encoded;
        struct json record, wrong;
        CHECK_OK(
            contract_encode(rig.contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &rig.arena, &encoded, &rig.err),
            &rig.err);
        CHECK_OK(json_parse(encoded.bytes, NULL, &rig.arena, &record, &rig.err), &rig.err);
        CHECK_OK(contract_check(rig.contract, VOCABULARY_RUN, &record, &rig.err), &rig.err);
        CHECK_OK(json_parse(str_from(cases[i].wrong), NULL, &rig.arena, &wrong, &rig.err), &rig.err);
        struct json payload = json_with(&rig, json_key(&record, "payload"), cases[i].member, &wrong);
        struct json broken = json_with(&rig, &record, "payload", &payload);
        if (contract_check(rig.contract, VOCABULARY_RUN, &broken, NULL) != E_SCHEMA)
            test_fail(__FILE__, __LINE__, "%s: %s in %s is accepted", moment_name(cases[i].kind), cases[i].wrong,
                      cases[i].member);
        char name[64];
        snprintf(name, sizeof(name), "run-events/%s.json", moment_word(cases[i].kind, VOCABULARY_RUN));
        CHECK(schema_embedded(name).len > 0);
    }
    rig_close(&rig);
}

// ---- tenants

static void other_tenants_neither_read_nor_write_nor_signal_RE_5a(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        rig_open(&rig, rig_kinds[i]);
        rig_start(&rig, RIG_PLAN("{\"stepId\":\"gate\",\"kind\":\"approval\"}"), "r-1");
        rig_until(&rig, "StepStarted", "gate");
        struct str evil = STR("evil"), run = STR("r-1");
        struct records records;
        struct run_head head;
        struct run_log *log = NULL;
        struct error theirs = {0}, nobodys = {0};
        struct record_range range = {.tenant = evil, .run = run, .limit = 10};
        CHECK_INT(store_read(rig.store, &range, &rig.arena, &records, &theirs), E_NOT_FOUND);
        range.ledger = true;
        CHECK_INT(store_read(rig.store, &range, &rig.arena, &records, NULL), E_NOT_FOUND);
        CHECK_INT(store_head(rig.store, evil, run, &rig.arena, &head, NULL), E_NOT_FOUND);
        CHECK_INT(store_claim_run(rig.store, evil, run, &log, NULL), E_NOT_FOUND);
        CHECK_INT(engine_adopt(rig.engine, evil, run, &rig.err), E_NOT_FOUND);
        CHECK(!engine_run(rig.engine, evil, run));
        CHECK_INT(rig_try_signal(&rig, evil, "r-1", SIGNAL_CANCEL, RIG_SIGNAL_A, ""), E_NOT_FOUND);
        // The answer is the one for a run that does not exist, so that ids cannot be probed.
        range = (struct record_range){.tenant = evil, .run = STR("r-0"), .limit = 10};
        CHECK_INT(store_read(rig.store, &range, &rig.arena, &records, &nobodys), E_NOT_FOUND);
        char *id = strstr(theirs.message, "r-1");
        if (id) id[2] = '0';
        CHECK_TEXT(theirs.message, nobodys.message);
        struct run_filter filter = {.tenant = evil};
        struct run_heads heads;
        CHECK_OK(store_list(rig.store, &filter, &rig.arena, &heads, &rig.err), &rig.err);
        CHECK_INT(heads.count, 0);
        // The same id is free for them, and each sees only its own.
        CHECK_INT(rig_try_signal(&rig, RIG_TENANT, "r-1", SIGNAL_CANCEL, RIG_SIGNAL_A, ""), OK);
        rig_finish(&rig);
        struct log mine = rig_log(&rig, "r-1");
        CHECK_STR(text_at(log_find(&mine, "RunCancelled", NULL), "tenantId"), RIG_TENANT);
        CHECK_INT(store_head(rig.store, evil, run, &rig.arena, &head, NULL), E_NOT_FOUND);
        char given[129];
        rig_plan(&rig, RIG_PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"));
        struct start_request request = {.program = rig.program, .tenant = evil, .run = run, .work_dir = str_from(test_dir())};
        CHECK_OK(engine_start(rig.engine, &request, given, &rig.err), &rig.err);
        rig_finish(&rig);
        CHECK_OK(store_head(rig.store, evil, run, &rig.arena, &head, &rig.err), &rig.err);
        CHECK_INT(head.summary.status, RUN_STATUS_COMPLETED);
        CHECK_INT(rig_log(&rig, "r-1").count, mine.count);
        rig_close(&rig);
    }
}

// What the nine tell of has happened to these runs, and their logs say so.
static void the_nine_are_in_the_logs_of_runs_RE_1_1a_WE_2_2a(void)
{
    static const char *const nine[] = {"RunStarted", "StepStarted",  "StepCompleted", "StepFailed",  "RunPaused",
                                       "RunResumed", "RunCompleted", "RunFailed",     "RunCancelled"};
    size_t found[ARRAY_COUNT(nine)] = {0};
    struct log logs[3] = {mixed_log("memory")};
    rig_start(&rig, RIG_PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"), "r-2");
    rig_finish(&rig);
    logs[1] = rig_log(&rig, "r-2");
    rig_start(&rig, RIG_PLAN("{\"stepId\":\"gate\",\"kind\":\"approval\"}"), "r-3");
    rig_until(&rig, "StepStarted", "gate");
    rig_signal(&rig, "r-3", SIGNAL_CANCEL, RIG_SIGNAL_A, "");
    rig_finish(&rig);
    logs[2] = rig_log(&rig, "r-3");
    for (size_t i = 0; i < ARRAY_COUNT(nine); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(logs); k++) found[i] += log_count(&logs[k], nine[i], NULL);
        if (found[i] == 0) test_fail(__FILE__, __LINE__, "no %s", nine[i]);
    }
    CHECK_INT(found[0], 3);
    CHECK_INT(found[6] + found[7] + found[8], 3); // one end a run
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(one_name_in_key_record_column_and_stream_RE_1_2b),
        TEST(key_of_RunStarted_has_five_parts_not_three_ES_A1d),
        TEST(number_of_a_writer_is_not_taken_RE_2_3a),
        TEST(store_gives_the_number_and_the_engine_is_told_RE_2_3b_RE_2_3c_WE_2_2c),
        TEST(gaps_are_read_as_if_they_were_none_RE_2_3e_ES_1_1b_ES_1_5_1b),
        TEST(order_and_checkpoint_are_numbers_not_times_RE_2_3f),
        TEST(engine_approves_nothing_by_itself_RE_3i),
        TEST(types_are_a_closed_set_with_the_nine_in_it_RE_4_1b),
        TEST(writers_hand_in_moments_readers_get_records_RE_4_2b),
        TEST(persistedAt_is_the_stores_clock_whatever_the_writers_says_RE_4_2c),
        TEST(failures_tell_code_message_retryable_and_stack_RE_4_3b),
        TEST(completions_tell_result_and_duration_RE_4_3c),
        TEST(pause_and_resume_name_their_signal_and_reason_RE_4_3d),
        TEST(payloads_are_checked_by_type_RE_4_3e),
        TEST(other_tenants_neither_read_nor_write_nor_signal_RE_5a),
        TEST(the_nine_are_in_the_logs_of_runs_RE_1_1a_WE_2_2a),
    };
    return test_main("requirements_run_events", tests, ARRAY_COUNT(tests), argc, argv);
}
