// S4..S8, S10..S12: numbers, keys, leases, ends, refusals.
#include "conformance/store_suite_private.h"

#define SIGNAL "7c9e6679-7425-40de-944b-e07fc1f90ae7"

// ---- S4

static void S4_numbers_are_1_2_3_in_the_order_of_the_appends_RE_2_3d_ES_1_1a_ES_1_1c_EL_1c(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    CHECK_INT(kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1)).seq, 1);
    CHECK_INT(kit_step(&kit, log, "a").seq, 2);
    CHECK_INT(kit_append(&kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1)).seq, 3);
    CHECK_INT(run_log_last_seq(log), 3);
    struct records records = kit_read(&kit, "r");
    CHECK_INT(records.count, 3);
    static const char *const types[] = {"RunStarted", "StepStarted", "StepCompleted"};
    for (size_t i = 0; i < records.count; i++) {
        CHECK_INT(records.items[i].seq, i + 1);
        CHECK_INT(records.items[i].ledger_seq, 0);
        CHECK_STR(records.items[i].type, str_from(types[i]));
    }
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S4_twenty_runs_in_one_batch_are_numbered_each_by_itself_ES_1_1d(void)
{
    enum { RUNS = 20, EACH = 5 };
    struct kit kit;
    suite_start(&kit);
    struct run_log *logs[RUNS];
    struct append_item items[RUNS * EACH] = {{0}};
    struct moment moments[RUNS * EACH];
    char steps[EACH][8];
    for (size_t i = 0; i < RUNS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "run-%02zu", i);
        logs[i] = kit_create(&kit, name, VOCABULARY_RUN);
    }
    for (size_t i = 0; i < RUNS * EACH; i++) {
        snprintf(steps[i / RUNS], sizeof(steps[0]), "s%zu", i / RUNS);
        moments[i] = kit_moment(MOMENT_STEP_STARTED, steps[i / RUNS], 1);
        items[i] = (struct append_item){.log = logs[i % RUNS], .moment = &moments[i]};
    }
    struct store_batch batch = {.items = items, .item_count = ARRAY_COUNT(items)};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    for (size_t i = 0; i < RUNS * EACH; i++) {
        CHECK_INT(items[i].seq, i / RUNS + 1);
        CHECK(items[i].in_log && !items[i].idempotent);
        CHECK(uuid_valid(str_from(items[i].event_id)));
    }
    for (size_t i = 0; i < RUNS; i++) {
        struct records records = kit_read(&kit, run_log_ids(logs[i])->run.ptr);
        CHECK_INT(records.count, EACH);
        for (size_t k = 0; k < EACH; k++) {
            CHECK_STR(records.items[k].bytes, items[k * RUNS + i].bytes);
            struct digest hash = sha256(records.items[k].bytes);
            CHECK(digest_eq(&hash, &records.items[k].hash));
        }
        store_release_run(kit.store, logs[i]);
    }
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S4_an_empty_batch_stores_nothing(void)
{
    struct kit kit;
    suite_start(&kit);
    struct store_batch batch = {0};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    struct run_head head;
    CHECK_INT(store_head(kit.store, STR("default"), STR("r"), &kit.arena, &head, NULL), E_NOT_FOUND);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static int64_t persisted_after(struct kit *kit, struct run_log *log, const char *step, int64_t now_ms)
{
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, step, 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1};
    CHECK_OK(store_append(kit->store, &batch, now_ms, &kit->arena, &kit->err), &kit->err);
    return item.persisted_ms;
}

static void S4_persisted_time_never_goes_back_within_a_run(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    CHECK_INT(persisted_after(&kit, log, "a", KIT_NOW), KIT_NOW);
    CHECK_INT(persisted_after(&kit, log, "b", KIT_NOW - 5000), KIT_NOW);
    CHECK_INT(persisted_after(&kit, log, "c", KIT_NOW + 1), KIT_NOW + 1);
    store_release_run(kit.store, log);
    suite_reopen(&kit, STORE_WRITE);
    log = kit_claim(&kit, "r");
    CHECK_INT(persisted_after(&kit, log, "d", KIT_NOW - 86400000), KIT_NOW + 1);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// ---- S5

static void check_same(const struct append_item *again, const struct append_item *first)
{
    CHECK(again->idempotent);
    CHECK(!first->idempotent);
    CHECK_INT(again->seq, first->seq);
    CHECK_INT(again->persisted_ms, first->persisted_ms);
    CHECK_TEXT(again->event_id, first->event_id);
    CHECK_INT(again->bytes.len, 0);
}

static void S5_duplicate_append_returns_the_first_ES_1_1e_ES_A1_C_10_I2_I3(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    struct append_item first = kit_step(&kit, log, "a");
    kit_step(&kit, log, "b");
    struct append_item again = kit_step(&kit, log, "a");
    check_same(&again, &first);
    CHECK_INT(kit_step(&kit, log, "c").seq, 4); // no number was burnt
    struct moment other_engine = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    other_engine.engine = 2;
    again = kit_append(&kit, log, other_engine);
    check_same(&again, &first);
    CHECK(!kit_append(&kit, log, kit_moment(MOMENT_STEP_STARTED, "a", 2)).idempotent);
    CHECK_INT(kit_read(&kit, "r").count, 5);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S5_duplicate_inside_one_batch_returns_the_first(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct moment next = kit_moment(MOMENT_STEP_STARTED, "b", 1);
    struct append_item items[] = {
        {.log = log, .moment = &moment}, {.log = log, .moment = &moment}, {.log = log, .moment = &next}};
    struct store_batch batch = {.items = items, .item_count = ARRAY_COUNT(items)};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    check_same(&items[1], &items[0]);
    CHECK_INT(items[2].seq, 2);
    CHECK_INT(kit_read(&kit, "r").count, 2);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void S5_duplicate_after_reopening_returns_the_first_I2(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    struct append_item first[20];
    char step[8];
    for (size_t i = 0; i < ARRAY_COUNT(first); i++) {
        snprintf(step, sizeof(step), "s%zu", i);
        first[i] = kit_step(&kit, log, step);
    }
    CHECK_OK(kit_decide(&kit, log, SIGNAL, "APPLIED", NULL), &kit.err);
    store_release_run(kit.store, log);
    suite_reopen(&kit, STORE_WRITE);
    log = kit_claim(&kit, "r");
    for (size_t i = 0; i < ARRAY_COUNT(first); i++) {
        snprintf(step, sizeof(step), "s%zu", i);
        struct append_item again = kit_step(&kit, log, step);
        check_same(&again, &first[i]);
    }
    struct append_item decision;
    CHECK_OK(kit_decide(&kit, log, SIGNAL, "REJECTED", &decision), &kit.err);
    CHECK(decision.idempotent);
    CHECK_INT(kit_step(&kit, log, "new").seq, 21);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S5_a_batch_of_duplicates_is_no_change(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct run_head before = kit_head(&kit, "r");
    CHECK(kit_step(&kit, log, "a").idempotent);
    struct run_head after = kit_head(&kit, "r");
    CHECK_INT(after.last_seq, 1);
    CHECK(digest_eq(&before.head, &after.head));
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void S5_a_signal_is_decided_once_I22(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    kit_step(&kit, log, "a");
    struct append_item item;
    CHECK_OK(kit_decide(&kit, log, SIGNAL, "APPLIED", &item), &kit.err);
    CHECK(!item.idempotent && !item.in_log);
    CHECK_INT(item.seq, 1);
    CHECK_OK(kit_decide(&kit, log, SIGNAL, "REJECTED", &item), &kit.err);
    CHECK(item.idempotent);
    struct records ledger;
    struct record_range range = {.tenant = STR("default"), .run = STR("r"), .ledger = true, .limit = 10};
    CHECK_OK(store_read(kit.store, &range, &kit.arena, &ledger, &kit.err), &kit.err);
    CHECK_INT(ledger.count, 1);
    CHECK_STR(ledger.items[0].signal_id, STR(SIGNAL));
    CHECK_STR(ledger.items[0].type, STR("decision"));
    CHECK_STR(ledger.items[0].bytes, STR("{\"decision\":\"APPLIED\"}"));
    store_release_run(kit.store, log);
    kit_release(&kit);
}

// ---- S6

static void S6_a_claim_raises_the_epoch_and_continues_the_numbers_I27(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    uint64_t epoch = run_log_epoch(log);
    CHECK(kit_head(&kit, "r").owned);
    CHECK(kit_head(&kit, "r").owner_pid > 0);
    store_release_run(kit.store, log);
    log = kit_claim(&kit, "r");
    CHECK(run_log_epoch(log) > epoch);
    CHECK_INT(run_log_last_seq(log), 1);
    CHECK_INT(kit_head(&kit, "r").vocabulary, VOCABULARY_RUN);
    CHECK_STR(run_log_ids(log)->plan_id, STR("orders"));
    CHECK_INT(kit_step(&kit, log, "b").seq, 2);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S6_a_stale_owner_stores_nothing_I27(void)
{
    if (!suite_case->usurp) test_skip("%s has one owner at a time by its lock", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    struct run_log *mine = kit_create(&kit, "mine", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    kit_step(&kit, mine, "a");
    suite_case->usurp(kit.store, STR("default"), STR("r"));
    uint64_t before = kit_head(&kit, "r").last_seq;
    struct moment moments[] = {kit_moment(MOMENT_STEP_STARTED, "z", 1), kit_moment(MOMENT_STEP_STARTED, "z", 1)};
    struct append_item items[] = {{.log = mine, .moment = &moments[0]}, {.log = log, .moment = &moments[1]}};
    struct store_batch batch = {.items = items, .item_count = 2};
    kit.err = (struct error){0};
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), E_CONFLICT);
    CHECK_INT(kit_head(&kit, "r").last_seq, before);
    CHECK_INT(kit_head(&kit, "mine").last_seq, 1); // nothing of the batch
    CHECK_INT(run_log_last_seq(log), 1);
    CHECK_INT(kit_step(&kit, mine, "b").seq, 2); // and the store goes on
    store_release_run(kit.store, log);
    store_release_run(kit.store, mine);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S6_a_run_of_a_living_owner_cannot_be_claimed_I27(void)
{
    if (!suite_case->many_writers) test_skip("%s has one writer", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct kit other;
    kit_init(&other);
    struct str url = arena_copy(&other.arena, store_url(kit.store));
    other.store = suite_open(&other, url.ptr, STORE_WRITE);
    struct run_log *stolen = NULL;
    CHECK_INT(store_claim_run(other.store, STR("default"), STR("r"), &stolen, &other.err), E_LOCKED);
    CHECK(!stolen);
    CHECK(strstr(other.err.message, "process") != NULL);
    // Each writes to its own runs meanwhile.
    struct run_log *theirs = kit_create(&other, "s", VOCABULARY_RUN);
    CHECK_INT(kit_step(&other, theirs, "a").seq, 1);
    CHECK_INT(kit_step(&kit, log, "b").seq, 2);
    CHECK_INT(kit_step(&other, theirs, "b").seq, 2);
    store_release_run(kit.store, log);
    store_close(kit.store);
    kit.store = NULL;
    stolen = kit_claim(&other, "r");
    CHECK_INT(kit_step(&other, stolen, "c").seq, 3);
    store_release_run(other.store, stolen);
    store_release_run(other.store, theirs);
    kit_check_sound(&other);
    kit_release(&other);
    kit_release(&kit);
}

static void S6_the_same_run_is_created_once_I24(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *first = kit_create(&kit, "r", VOCABULARY_RUN);
    struct run_log *second = kit_create(&kit, "r", VOCABULARY_RUN); // nothing is stored yet
    kit_step(&kit, first, "a");
    CHECK_INT(kit_try(&kit, second, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_EXISTS);
    struct run_create create = kit_run("default", "r", VOCABULARY_RUN);
    struct run_log *third = NULL;
    CHECK_INT(store_create_run(kit.store, &create, &third, NULL), E_EXISTS);
    create.fresh = true; // who says so and is wrong is told by the append
    CHECK_INT(store_create_run(kit.store, &create, &third, NULL), OK);
    CHECK_INT(kit_try(&kit, third, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_EXISTS);
    store_release_run(kit.store, third);
    create = kit_run("acme", "r", VOCABULARY_RUN);
    CHECK_INT(store_create_run(kit.store, &create, &third, NULL), OK);
    kit_step(&kit, third, "a");
    CHECK_INT(kit_read(&kit, "r").count, 1);
    store_release_run(kit.store, first);
    store_release_run(kit.store, second);
    store_release_run(kit.store, third);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S6_ids_that_could_leave_their_folder_are_refused_C_32(void)
{
    struct kit kit;
    suite_start(&kit);
    static const char *const ids[] = {"", ".", "..", "../x", "a/b", "a|b", "@a", "a\nb", "\xff", "a\\b"};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        struct run_create create = kit_run("default", ids[i], VOCABULARY_RUN);
        struct run_log *log = NULL;
        CHECK_INT(store_create_run(kit.store, &create, &log, NULL), E_INVALID);
        create = kit_run(ids[i], "r", VOCABULARY_RUN);
        CHECK_INT(store_create_run(kit.store, &create, &log, NULL), E_INVALID);
    }
    kit_release(&kit);
}

// ---- S7

static void S7_one_end_and_nothing_after_it_I15_C_19(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    struct append_item end = kit_append(&kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    CHECK(kit_head(&kit, "r").terminal);
    static const enum moment_kind late[] = {MOMENT_RUN_CANCELLED, MOMENT_RUN_FAILED, MOMENT_STEP_STARTED,
                                            MOMENT_RUN_PAUSED};
    for (size_t i = 0; i < ARRAY_COUNT(late); i++)
        CHECK_INT(kit_try(&kit, log, kit_moment(late[i], late[i] == MOMENT_STEP_STARTED ? "a" : "", 1), NULL),
                  E_TERMINAL);
    struct append_item again = kit_append(&kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    check_same(&again, &end);
    CHECK_INT(kit_read(&kit, "r").count, 2);
    // Audit of what came late goes beside the log.
    struct append_item audit = kit_append(&kit, log, kit_moment(MOMENT_LATE_RESULT, "a", 1));
    CHECK(!audit.in_log);
    CHECK_INT(audit.seq, 2);
    CHECK_OK(kit_decide(&kit, log, SIGNAL, "REJECTED", NULL), &kit.err);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S7_two_ends_in_one_batch_store_neither_I15(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    struct run_log *bystander = kit_create(&kit, "s", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct moment ends[] = {kit_moment(MOMENT_RUN_COMPLETED, "", 1), kit_moment(MOMENT_RUN_CANCELLED, "", 1)};
    struct moment started = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct append_item items[] = {
        {.log = bystander, .moment = &started}, {.log = log, .moment = &ends[0]}, {.log = log, .moment = &ends[1]}};
    struct store_batch batch = {.items = items, .item_count = ARRAY_COUNT(items)};
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, NULL), E_TERMINAL);
    CHECK_INT(kit_read(&kit, "r").count, 1);
    CHECK(!kit_head(&kit, "r").terminal);
    struct run_head head;
    CHECK_INT(store_head(kit.store, STR("default"), STR("s"), &kit.arena, &head, NULL), E_NOT_FOUND);
    CHECK(!kit_append(&kit, log, kit_moment(MOMENT_RUN_CANCELLED, "", 1)).idempotent);
    CHECK_INT(kit_step(&kit, bystander, "a").seq, 1);
    store_release_run(kit.store, log);
    store_release_run(kit.store, bystander);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S7_the_end_holds_after_reopening_I15(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_FAILED, "", 1));
    store_release_run(kit.store, log);
    suite_reopen(&kit, STORE_WRITE);
    log = kit_claim(&kit, "r");
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1), NULL), E_TERMINAL);
    CHECK(kit_append(&kit, log, kit_moment(MOMENT_RUN_FAILED, "", 1)).idempotent);
    CHECK_INT(kit_read(&kit, "r").count, 1);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

// ---- S10

static void S10_what_does_not_fit_its_schema_stores_nothing_and_the_store_goes_on(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct run_head before = kit_head(&kit, "r");
    struct moment good = kit_moment(MOMENT_STEP_STARTED, "b", 1);
    struct moment bad = kit_moment(MOMENT_SIGNAL_ACCEPTED, "", 1);
    bad.signal_id = STR("not a uuid");
    bad.signal_type = STR("PAUSE");
    struct append_item items[] = {{.log = log, .moment = &good}, {.log = log, .moment = &bad}};
    struct store_batch batch = {.items = items, .item_count = 2};
    kit.err = (struct error){0};
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), E_SCHEMA);
    struct run_head after = kit_head(&kit, "r");
    CHECK_INT(after.last_seq, 1);
    CHECK(digest_eq(&before.head, &after.head));
    struct append_item item = kit_step(&kit, log, "b"); // its key was not taken
    CHECK(!item.idempotent);
    CHECK_INT(item.seq, 2);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// ---- S11

static void S11_a_foreign_tenants_run_answers_like_one_that_is_not_there(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_create create = kit_run("acme", "Q", VOCABULARY_RUN);
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit.store, &create, &log, &kit.err), &kit.err);
    kit_step(&kit, log, "a");
    store_release_run(kit.store, log);
    static const char *const names[] = {"Q", "X"}; // of another tenant; of nobody
    char messages[2][sizeof(kit.err.message)];
    for (size_t i = 0; i < 2; i++) {
        struct str run = str_from(names[i]);
        struct run_head head;
        struct records records;
        struct error err = {0};
        CHECK_INT(store_head(kit.store, STR("default"), run, &kit.arena, &head, &err), E_NOT_FOUND);
        snprintf(messages[i], sizeof(messages[i]), "%s", err.message);
        struct record_range range = {.tenant = STR("default"), .run = run, .limit = 10};
        CHECK_INT(store_read(kit.store, &range, &kit.arena, &records, NULL), E_NOT_FOUND);
        range.ledger = true;
        CHECK_INT(store_read(kit.store, &range, &kit.arena, &records, NULL), E_NOT_FOUND);
        CHECK_INT(store_claim_run(kit.store, STR("default"), run, &log, NULL), E_NOT_FOUND);
        CHECK_INT(store_post(kit.store, STR("default"), run, STR(SIGNAL), STR("{}"), NULL), E_NOT_FOUND);
        struct verify_report report;
        CHECK_INT(store_verify(kit.store, STR("default"), run, &kit.arena, &report, NULL), E_NOT_FOUND);
    }
    char *name = strchr(messages[0], 'Q');
    CHECK(name);
    *name = 'X';
    CHECK_TEXT(messages[0], messages[1]);
    struct run_filter filter = {.tenant = STR("default")};
    struct run_heads heads;
    CHECK_OK(store_list(kit.store, &filter, &kit.arena, &heads, &kit.err), &kit.err);
    CHECK_INT(heads.count, 0);
    kit_release(&kit);
}

// ---- S12

static void S12_a_moment_without_a_word_goes_to_the_ledger_EL_2a_C_05(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    CHECK(kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1)).in_log);
    struct append_item paused = kit_append(&kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
    CHECK(!paused.in_log);
    CHECK_INT(paused.seq, 1);
    CHECK_INT(kit_append(&kit, log, kit_moment(MOMENT_STEP_STARTED, "a", 1)).seq, 2);
    struct records records = kit_read(&kit, "r");
    CHECK_INT(records.count, 2);
    CHECK_STR(records.items[0].type, STR("workflow_started"));
    CHECK_STR(records.items[1].type, STR("node_started"));
    struct records ledger;
    struct record_range range = {.tenant = STR("default"), .run = STR("r"), .ledger = true, .limit = 10};
    CHECK_OK(store_read(kit.store, &range, &kit.arena, &ledger, &kit.err), &kit.err);
    CHECK_INT(ledger.count, 1);
    CHECK_INT(ledger.items[0].seq, 1);
    CHECK_INT(ledger.items[0].ledger_seq, 1);
    CHECK_STR(ledger.items[0].type, STR("moment"));
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

const struct test suite_append_tests[] = {
    TEST(S4_numbers_are_1_2_3_in_the_order_of_the_appends_RE_2_3d_ES_1_1a_ES_1_1c_EL_1c),
    TEST(S4_twenty_runs_in_one_batch_are_numbered_each_by_itself_ES_1_1d),
    TEST(S4_an_empty_batch_stores_nothing),
    TEST(S4_persisted_time_never_goes_back_within_a_run),
    TEST(S5_duplicate_append_returns_the_first_ES_1_1e_ES_A1_C_10_I2_I3),
    TEST(S5_duplicate_inside_one_batch_returns_the_first),
    TEST(S5_duplicate_after_reopening_returns_the_first_I2),
    TEST(S5_a_batch_of_duplicates_is_no_change),
    TEST(S5_a_signal_is_decided_once_I22),
    TEST(S6_a_claim_raises_the_epoch_and_continues_the_numbers_I27),
    TEST(S6_a_stale_owner_stores_nothing_I27),
    TEST(S6_a_run_of_a_living_owner_cannot_be_claimed_I27),
    TEST(S6_the_same_run_is_created_once_I24),
    TEST(S6_ids_that_could_leave_their_folder_are_refused_C_32),
    TEST(S7_one_end_and_nothing_after_it_I15_C_19),
    TEST(S7_two_ends_in_one_batch_store_neither_I15),
    TEST(S7_the_end_holds_after_reopening_I15),
    TEST(S10_what_does_not_fit_its_schema_stores_nothing_and_the_store_goes_on),
    TEST(S11_a_foreign_tenants_run_answers_like_one_that_is_not_there),
    TEST(S12_a_moment_without_a_word_goes_to_the_ledger_EL_2a_C_05),
};
const size_t suite_append_count = ARRAY_COUNT(suite_append_tests);
