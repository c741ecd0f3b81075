// Execution Semantics 1.1, requirement by requirement: stores that agree, projectors, attempts, pauses, snapshots, versions.
#include "support/rig.h"
#include "support/story.h"

#include "schema/schema.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig rig;

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

// One of everything, in an order that does not depend on speed.
static const char everything[] =
    RIG_PLAN(
        RIG_SHELL(
            "a", "echo $CAIRN_STEP_ID; echo x > $ARTIFACTS_DIR/o",
            ",\"dependsOn\":[],\"artifacts\":[{\"path\":\"o\",\"kind\":\"k\"}]") ",{\"stepId\":\"b\",\"kind\":\"echo\","
                                                                                 "\"with\":{\"message\":\"$a.output\"},"
                                                                                 "\"dependsOn\":[\"a\"]}"
                                                                                 ",{\"stepId\":\"c\",\"kind\":\"noop\","
                                                                                 "\"when\":\"$a.output == "
                                                                                 "'no'\",\"dependsOn\":[\"b\"]}"
                                                                                 ",{\"stepId\":\"d\",\"kind\":\"wait\","
                                                                                 "\"with\":{\"duration\":\"30ms\"},"
                                                                                 "\"dependsOn\":[\"b\"]}"
                                                                                 "," RIG_SHELL(
                                                                                     "e", "exit 4",
                                                                                     ",\"dependsOn\":[\"d\"],\"retry\":"
                                                                                     "{\"maxAttempts\":2,\"delay\":"
                                                                                     "\"1ms\"}") ",{\"stepId\":\"f\","
                                                                                                 "\"kind\":\"noop\","
                                                                                                 "\"dependsOn\":[\"e\"]"
                                                                                                 "}"
                                                                                                 ",{\"stepId\":\"g\","
                                                                                                 "\"kind\":\"merge\","
                                                                                                 "\"dependsOn\":[\"a\","
                                                                                                 "\"f\"],"
                                                                                                 "\"triggerRule\":"
                                                                                                 "\"all_done\"}");

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
static void numbers_and_keys_are_unique_in_every_store_ES_1_1f(void)
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

static struct log finished_log(const char *kind)
{
    rig_open(&rig, kind);
    rig_start(&rig, everything, "r-1");
    rig_finish(&rig);
    return rig_log(&rig, "r-1");
}

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
        CHECK_OK(store_read(rig.store, RIG_TENANT, STR("r-1"), view.last_seq, SIZE_MAX, &rig.arena, &rest, &rig.err),
                 &rig.err);
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

static bool fits(const char *uri, const struct json *value, struct schema_fault *fault)
{
    struct schema_set *set;
    const struct schema *schema;
    CHECK_OK(schema_set_embedded(&rig.arena, &set, &rig.err), &rig.err);
    CHECK_OK(schema_compile(set, str_from(uri), &schema, &rig.err), &rig.err);
    return schema_valid(schema, value, fault);
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
        CHECK_OK(store_read(reader, RIG_TENANT, STR("r-1"), view.last_seq, SIZE_MAX, &rig.arena, &rest, &rig.err),
                 &rig.err);
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
    for (int i = 0; crash && i < 5; i++) story_crash(&s);
    CHECK_INT(s.run->steps[0].engine, crash ? 6 : 1);
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
        RIG_PLAN(
            RIG_SHELL(
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
        TEST(logs_of_all_stores_are_the_same_ES_0a),
        TEST(many_writers_one_authority_per_run_ES_1_0a_ES_1_0f),
        TEST(numbers_and_keys_are_unique_in_every_store_ES_1_1f),
        TEST(projector_goes_on_from_its_watermark_ES_1_0c),
        TEST(events_become_a_snapshot_ES_1_5a),
        TEST(events_are_taken_in_rising_order_only_ES_1_5_1a),
        TEST(numbers_are_never_made_up_ES_1_5_1d),
        TEST(projection_is_there_within_a_second_ES_1_4d),
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
