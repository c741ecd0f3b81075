// Execution Semantics 1.1, requirement by requirement: stores that agree, projectors.
#include "support/semantics_kit.h"

// ---- stores

// What may differ between two executions of the same plan: ids, times, the place of the store.
static bool differs_by_nature(struct str key)
{
    static const char *const keys[] = {"eventId",   "prevHash",  "emittedAt",    "persistedAt", "durationMs",
                                       "startedAt", "notBefore", "artifactsDir", "decisionId",  "dueAt"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        if (str_is(key, keys[i])) return true;
    return false;
}

static struct json without_nature(const struct json *value)
{
    if (value->type == JSON_ARRAY) {
        struct json out = json_array();
        for (uint32_t i = 0; i < value->count; i++)
            CHECK(json_push(&rig.arena, &out, without_nature(&value->items[i])));
        return out;
    }
    if (value->type != JSON_OBJECT) return *value;
    struct json out = json_object();
    for (uint32_t i = 0; i < value->count; i++) {
        struct str key = value->members[i].key;
        bool place = str_is(key, "uri") && str_starts(json_text(&value->members[i].value), STR("file:"));
        struct json kept =
            differs_by_nature(key) || place ? json_string(STR("*")) : without_nature(&value->members[i].value);
        CHECK(json_put(&rig.arena, &out, key, kept));
    }
    return out;
}

static char *told_on(const char *kind)
{
    struct buf text;
    buf_init(&text, 1 << 22);
    rig_open(&rig, kind);
    rig_start(&rig, everything, "r-1");
    rig_until(&rig, "StepStarted", "a");
    rig_signal(&rig, "r-1", SIGNAL_PAUSE, RIG_SIGNAL_A, "lunch");
    rig_until(&rig, "StepCompleted", "a");
    rig_signal(&rig, "r-1", SIGNAL_RESUME, RIG_SIGNAL_B, "");
    rig_finish(&rig);
    struct log log = rig_log(&rig, "r-1");
    CHECK(log.count > 20);
    for (size_t i = 0; i < log.count; i++) {
        struct json rest = without_nature(&log.items[i]);
        buf_add(&text, json_bytes(&rig, &rest));
        buf_byte(&text, '\n');
    }
    rig_close(&rig);
    CHECK(buf_ok(&text));
    return text.ptr;
}

static void logs_of_all_stores_are_the_same_ES_0a(void)
{
    char *first = told_on("memory");
    for (size_t i = 1; i < ARRAY_COUNT(rig_kinds); i++) {
        char *other = told_on(rig_kinds[i]);
        CHECK_TEXT(other, first);
        free(other);
    }
    free(first);
}

static struct run_create create_of(const char *run)
{
    struct run_create create = {
        .vocabulary = VOCABULARY_RUN, .document = sha256(STR("document")), .name = STR("orders")};
    create.ids = (struct run_ids){
        .tenant = RIG_TENANT, .project = STR("shop"), .environment = STR("prod"), .plan_id = STR("orders")};
    create.ids.plan_version = STR("1.2.0");
    create.ids.run = str_from(run);
    return create;
}

static enum code append_step(struct store *store, struct run_log *log, const char *step, struct append_item *item)
{
    struct moment moment = {
        .kind = MOMENT_STEP_STARTED, .step = str_from(step), .logical = 1, .engine = 1, .at_ms = 1770829200000};
    struct arena turn;
    arena_init(&turn, 4096, SIZE_MAX);
    *item = (struct append_item){.log = log, .moment = &moment};
    struct store_batch batch = {.items = item, .item_count = 1};
    struct error err = {0};
    enum code rc = store_append(store, &batch, 1770829200000, &turn, &err);
    item->moment = NULL;
    item->bytes = (struct str){0};
    arena_release(&turn);
    return rc;
}

enum { WRITERS = 4, ROUNDS = 5, OWN_EVENTS = 20 };

// A writer opens the store for each round, waits until the shared run is free, and appends two events to it.
static bool write_shared(const char *url, struct store_options options, int writer, int round)
{
    struct store *store;
    struct run_log *log = NULL;
    struct append_item item;
    char step[32];
    for (int tries = 0; tries < 4000 && !log; tries++) {
        if (store_open(str_from(url), &options, &store, NULL)) return false;
        enum code rc = store_claim_run(store, RIG_TENANT, STR("shared"), &log, NULL);
        if (!log) {
            store_close(store);
            usleep(2000);
        }
        if (rc && rc != E_LOCKED) return false;
    }
    bool ok = log != NULL;
    for (int k = 0; ok && k < 2; k++) {
        snprintf(step, sizeof(step), "w%d-%d", writer, round * 2 + k);
        ok = append_step(store, log, step, &item) == OK && item.seq == run_log_last_seq(log);
    }
    if (log) {
        store_release_run(store, log);
        store_close(store);
    }
    return ok;
}

static bool write_own(const char *url, struct store_options options, int writer)
{
    struct store *store;
    struct run_log *log;
    struct append_item item;
    char run[16], step[32];
    snprintf(run, sizeof(run), "own-%d", writer);
    struct run_create create = create_of(run);
    if (store_open(str_from(url), &options, &store, NULL) || store_create_run(store, &create, &log, NULL)) return false;
    bool ok = true;
    for (uint64_t i = 1; ok && i <= OWN_EVENTS; i++) {
        snprintf(step, sizeof(step), "s%d", (int)i);
        ok = append_step(store, log, step, &item) == OK && item.seq == i;
    }
    store_release_run(store, log);
    store_close(store);
    return ok;
}

static void check_shared(const struct log *log)
{
    int next[WRITERS] = {0};
    CHECK_INT(log->count, 1 + WRITERS * ROUNDS * 2);
    for (size_t i = 1; i < log->count; i++) {
        CHECK_INT(int_at(&log->items[i], "runSeq"), i + 1);
        struct str step = text_at(&log->items[i], "stepId");
        int64_t number = 0;
        CHECK(step.len > 3 && str_int64(str_slice(step, 3, step.len), &number));
        int writer = step.ptr[1] - '0';
        CHECK(writer >= 0 && writer < WRITERS);
        CHECK_INT(number, next[writer]++); // each writer's events stand in the order in which it wrote them
    }
}

// Processes that append at the same time: to runs of their own without waiting, to one run by taking turns.
static void many_writers_one_authority_per_run_ES_1_0a_ES_1_0f(void)
{
    rig_open_store(&rig, "sqlite");
    const char *url = rig_url(&rig, "sqlite");
    struct store_options options = {.mode = STORE_WRITE, .contract = rig.contract, .entropy = os_entropy()};
    struct run_create create = create_of("shared");
    struct run_log *log;
    struct append_item item;
    CHECK_OK(store_create_run(rig.store, &create, &log, &rig.err), &rig.err);
    CHECK_INT(append_step(rig.store, log, "first", &item), OK);
    struct store *other;
    struct run_log *stolen = NULL;
    CHECK_OK(store_open(str_from(url), &options, &other, &rig.err), &rig.err);
    CHECK_INT(store_claim_run(other, RIG_TENANT, STR("shared"), &stolen, NULL), E_LOCKED);
    CHECK(!stolen);
    store_close(other);
    store_release_run(rig.store, log);
    store_close(rig.store);
    pid_t pids[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pids[w] = fork();
        if (pids[w] == 0) {
            bool ok = write_own(url, options, w);
            for (int round = 0; ok && round < ROUNDS; round++) ok = write_shared(url, options, w, round);
            _exit(ok ? 0 : 1);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        CHECK(pids[w] > 0 && waitpid(pids[w], &status, 0) == pids[w]);
        CHECK_INT(status, 0);
    }
    CHECK_OK(store_open(str_from(url), &options, &rig.store, &rig.err), &rig.err);
    struct log shared = rig_log(&rig, "shared");
    check_shared(&shared);
    struct verify_report report;
    CHECK_OK(store_verify(rig.store, STR(""), STR(""), &rig.arena, &report, &rig.err), &rig.err);
    CHECK_INT(report.fault_count, 0);
    CHECK_INT(report.event_count, 1 + WRITERS * (ROUNDS * 2 + OWN_EVENTS));
    rig_close(&rig);
}

static void reopen(const char *kind)
{
    if (strcmp(kind, "memory") == 0) return;
    struct store_options options = {.mode = STORE_WRITE, .contract = rig.contract, .entropy = os_entropy()};
    store_close(rig.store);
    CHECK_OK(store_open(str_from(rig_url(&rig, kind)), &options, &rig.store, &rig.err), &rig.err);
}

// The same event again, in the same batch, the next batch and another life of the store: one row, one number. And a number
// is given once.
static void numbers_and_keys_are_unique_in_every_store_ES_1_1d_ES_1_1f(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(rig_kinds); i++) {
        rig_open_store(&rig, rig_kinds[i]);
        struct run_create create = create_of("r-1");
        struct run_log *log;
        CHECK_OK(store_create_run(rig.store, &create, &log, &rig.err), &rig.err);
        struct moment moment = {
            .kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 1, .engine = 1, .at_ms = 1770829200000};
        struct append_item pair[2] = {{.log = log, .moment = &moment}, {.log = log, .moment = &moment}};
        struct store_batch batch = {.items = pair, .item_count = 2};
        CHECK_OK(store_append(rig.store, &batch, 1770829200000, &rig.arena, &rig.err), &rig.err);
        CHECK(!pair[0].idempotent && pair[1].idempotent && pair[0].seq == 1 && pair[1].seq == 1);
        CHECK_TEXT(pair[1].event_id, pair[0].event_id);
        struct append_item again, next;
        CHECK_INT(append_step(rig.store, log, "a", &again), OK);
        CHECK(again.idempotent && again.seq == 1);
        CHECK_INT(append_step(rig.store, log, "b", &next), OK);
        CHECK(!next.idempotent && next.seq == 2);
        store_release_run(rig.store, log);
        reopen(rig_kinds[i]);
        CHECK_OK(store_claim_run(rig.store, RIG_TENANT, STR("r-1"), &log, &rig.err), &rig.err);
        CHECK_INT(append_step(rig.store, log, "a", &again), OK);
        CHECK(again.idempotent && again.seq == 1);
        CHECK_TEXT(again.event_id, pair[0].event_id);
        CHECK_INT(append_step(rig.store, log, "c", &next), OK);
        CHECK(!next.idempotent && next.seq == 3);
        struct log stored = rig_log(&rig, "r-1");
        CHECK_STR(log_words(&rig, &stored), STR("StepStarted:a StepStarted:b StepStarted:c"));
        for (size_t k = 0; k < stored.count; k++) CHECK_INT(int_at(&stored.items[k], "runSeq"), k + 1);
        store_release_run(rig.store, log);
        rig_close(&rig);
    }
}

// ---- projectors

static struct str snapshot(const struct run_view *view)
{
    struct json json;
    CHECK(view_json(view, &rig.arena, &json));
    return json_bytes(&rig, &json);
}

// Wherever it stopped, the number of the last event is all that it needs to go on.
static void projector_goes_on_from_its_watermark_ES_1_0c(void)
{
    struct log log = finished_log("sqlite");
    struct run_view whole;
    rig_view(&rig, "r-1", &whole);
    log_fold(&rig, &log, 0, log.count, &whole);
    for (size_t stop = 0; stop <= log.count; stop++) {
        struct run_view view;
        rig_view(&rig, "r-1", &view);
        log_fold(&rig, &log, 0, stop, &view);
        CHECK_INT(view.last_seq, stop);
        struct records rest;
        struct record_range range = {
            .tenant = RIG_TENANT, .run = STR("r-1"), .after = view.last_seq, .limit = SIZE_MAX};
        CHECK_OK(store_read(rig.store, &range, &rig.arena, &rest, &rig.err), &rig.err);
        CHECK_INT(rest.count, log.count - stop);
        for (size_t i = 0; i < rest.count; i++) {
            CHECK(rest.items[i].seq > stop);
            struct moment moment;
            struct seal seal;
            CHECK_OK(contract_decode(VOCABULARY_RUN, rest.items[i].bytes, &rig.arena, &moment, &seal, NULL, &rig.err),
                     &rig.err);
            CHECK(view_fold(&view, &moment, rest.items[i].seq));
        }
        CHECK_STR(snapshot(&view), snapshot(&whole));
    }
    rig_close(&rig);
}

// projectRun(runId, events): a snapshot for every prefix of a log, each as its schema wants it.
static void events_become_a_snapshot_ES_1_5a(void)
{
    struct log log = finished_log("memory");
    struct json json;
    struct schema_fault fault;
    for (size_t n = 0; n <= log.count; n++) {
        struct run_view view;
        rig_view(&rig, "r-1", &view);
        log_fold(&rig, &log, 0, n, &view);
        CHECK(view_json(&view, &rig.arena, &json));
        if (!fits("run-snapshot.json", &json, &fault))
            test_fail(__FILE__, __LINE__, "after %zu events: %s %s", n, fault.pointer, fault.message);
    }
    CHECK_STR(text_at(&json, "runId"), STR("r-1"));
    CHECK_STR(text_at(&json, "status"), STR("FAILED"));
    CHECK_INT(int_at(&json, "lastEventSeq"), log.count);
    CHECK_INT(int_at(&json, "failedSteps"), 1);
    CHECK_INT(json_key(&json, "steps")->count, 7);
    CHECK_STR(text_at(&json, "steps.0.result"), STR("a"));
    CHECK_STR(text_at(&json, "steps.2.status"), STR("SKIPPED"));
    rig_close(&rig);
}

// Records that come too late are not folded in where they do not belong.
static void events_are_taken_in_rising_order_only_ES_1_5_1a(void)
{
    struct log log = finished_log("memory");
    struct run_view whole, view;
    rig_view(&rig, "r-1", &whole);
    rig_view(&rig, "r-1", &view);
    log_fold(&rig, &log, 0, log.count, &whole);
    for (size_t i = 0; i < log.count; i++) {
        log_fold(&rig, &log, i, i + 1, &view);
        struct str before = snapshot(&view);
        for (size_t old = 0; old <= i; old++) log_fold(&rig, &log, old, old + 1, &view);
        CHECK_STR(snapshot(&view), before);
    }
    CHECK_STR(snapshot(&view), snapshot(&whole));
    // A start that was passed over stays away: 3 after 4 is refused, not sorted in behind it.
    int late = log_index(&log, "StepStarted", "a", 0), end = log_index(&log, "StepCompleted", "a", 0);
    rig_view(&rig, "r-1", &view);
    log_fold(&rig, &log, 0, (size_t)late, &view);
    log_fold(&rig, &log, (size_t)end, (size_t)end + 1, &view);
    struct str before = snapshot(&view);
    log_fold(&rig, &log, (size_t)late, (size_t)late + 1, &view);
    CHECK_STR(snapshot(&view), before);
    rig_close(&rig);
}

static enum code count_visit(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    size_t *count = context;
    if (record->ledger_seq) return OK;
    CHECK(moment && seal);
    CHECK_INT(record->seq, ++*count);
    CHECK_INT(seal->seq, record->seq);
    return OK;
}

// A watermark is a number that some record has; replay shows those records and no others.
static void numbers_are_never_made_up_ES_1_5_1d(void)
{
    struct log log = finished_log("files");
    size_t visited = 0;
    CHECK_OK(store_replay(rig.store, RIG_TENANT, STR("r-1"), count_visit, &visited, &rig.err), &rig.err);
    CHECK_INT(visited, log.count);
    struct run_view view;
    uint64_t state = 7;
    for (int round = 0; round < 50; round++) {
        uint64_t seq = 0;
        rig_view(&rig, "r-1", &view);
        for (size_t i = 0; i < log.count; i++) {
            struct moment moment;
            struct seal seal;
            CHECK_OK(
                contract_decode(VOCABULARY_RUN, log.raw.items[i].bytes, &rig.arena, &moment, &seal, NULL, &rig.err),
                &rig.err);
            state = state * 6364136223846793005u + 1442695040888963407u;
            seq += 1 + (state >> 60);
            CHECK(view_fold(&view, &moment, seq));
            CHECK_INT(view.last_seq, seq);
        }
        CHECK_INT(view.status, RUN_STATUS_FAILED);
        CHECK(!view.inconsistent);
    }
    rig_close(&rig);
}

// After each turn another handle sees what was acknowledged in it.
static void projection_is_there_within_a_second_ES_1_4d(void)
{
    rig_open(&rig, "sqlite");
    struct store_options options = {.mode = STORE_READ, .contract = rig.contract, .entropy = os_entropy()};
    struct store *reader;
    CHECK_OK(store_open(str_from(rig_url(&rig, "sqlite")), &options, &reader, &rig.err), &rig.err);
    struct run_view view;
    rig_view(&rig, "r-1", &view);
    rig_start(&rig, everything, "r-1");
    size_t rounds = 0;
    while (engine_activity(rig.engine).resident > 0) {
        rig_turn(&rig);
        if (rig.told_count == view.last_seq) continue;
        struct records rest;
        struct record_range range = {
            .tenant = RIG_TENANT, .run = STR("r-1"), .after = view.last_seq, .limit = SIZE_MAX};
        CHECK_OK(store_read(reader, &range, &rig.arena, &rest, &rig.err), &rig.err);
        for (size_t i = 0; i < rest.count; i++) {
            struct moment moment;
            struct seal seal;
            CHECK_OK(contract_decode(VOCABULARY_RUN, rest.items[i].bytes, &rig.arena, &moment, &seal, NULL, &rig.err),
                     &rig.err);
            CHECK(view_fold(&view, &moment, seal.seq));
            CHECK(os_now().wall_ms - seal.persisted_ms <= 1000);
        }
        CHECK_INT(view.last_seq, rig.told_count);
        rounds++;
    }
    CHECK(rounds > 5);
    CHECK_INT(view.status, RUN_STATUS_FAILED);
    store_close(reader);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(logs_of_all_stores_are_the_same_ES_0a),
        TEST(many_writers_one_authority_per_run_ES_1_0a_ES_1_0f),
        TEST(numbers_and_keys_are_unique_in_every_store_ES_1_1d_ES_1_1f),
        TEST(projector_goes_on_from_its_watermark_ES_1_0c),
        TEST(events_become_a_snapshot_ES_1_5a),
        TEST(events_are_taken_in_rising_order_only_ES_1_5_1a),
        TEST(numbers_are_never_made_up_ES_1_5_1d),
        TEST(projection_is_there_within_a_second_ES_1_4d),
    };
    return test_main("requirements_stores", tests, ARRAY_COUNT(tests), argc, argv);
}
