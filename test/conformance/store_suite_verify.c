// S9: damage done to a small log behind the store's back, one piece at a time, is found and named.
#include "conformance/store_suite_private.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 4 };

// A store with one run "r" of EVENTS events and two ledger entries, open for reading; and a run nobody touches.
static void start_damaged(struct kit *kit)
{
    if (!suite_case->tamper) test_skip("%s cannot be reached from outside", suite_case->name);
    suite_start(kit);
    struct run_log *other = kit_create(kit, "whole", VOCABULARY_RUN);
    kit_step(kit, other, "a");
    store_release_run(kit->store, other);
    struct run_log *log = kit_create(kit, "r", VOCABULARY_NODES);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_RESUMED, "", 1));
    kit_step(kit, log, "a");
    kit_append(kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit->store, log);
    suite_reopen(kit, STORE_READ);
    kit_check_sound(kit);
}

// At least one fault, all of them in run r, and the first at one of the two numbers.
static void check_found(struct kit *kit, uint64_t seq, uint64_t or_seq, bool ledger, const char *damage, size_t bit)
{
    struct verify_report report;
    struct error err = {0};
    enum code rc = store_verify(kit->store, STR(""), STR(""), &kit->arena, &report, &err);
    if (rc == E_CORRUPT) // found even earlier: the store does not list it any more
        return;
    CHECK_OK(rc, &err);
    if (report.fault_count == 0)
        test_fail(__FILE__, __LINE__, "%s at %llu (bit %zu) was not found", damage, (unsigned long long)seq, bit);
    const struct verify_fault *first = &report.faults[0];
    CHECK_STR(first->run, STR("r"));
    if ((first->seq != seq && first->seq != or_seq) || first->ledger != ledger)
        test_fail(__FILE__, __LINE__, "%s at %llu (bit %zu) was named %s %llu: %.*s", damage, (unsigned long long)seq,
                  bit, first->ledger ? "entry" : "event", (unsigned long long)first->seq, STR_ARG(first->what));
    CHECK(first->what.len > 0);
}

// Damage is done and looked at in a child of its own with a copy of the store's handle opened anew, then put back by doing
// it again (flips) or by starting over.
static void every_bit(bool ledger, uint64_t count)
{
    struct kit kit;
    start_damaged(&kit);
    enum tamper flip = ledger ? TAMPER_LEDGER_FLIP : TAMPER_FLIP;
    size_t flips = 0, stride = suite_case->flip_stride ? suite_case->flip_stride : 1;
    for (uint64_t seq = 1; seq <= count; seq++)
        for (size_t bit = 0; suite_case->tamper(kit.store, flip, STR("r"), seq, bit); bit += stride) {
            check_found(&kit, seq, seq, ledger, "a flipped bit", bit);
            CHECK(suite_case->tamper(kit.store, flip, STR("r"), seq, bit));
            flips++;
        }
    CHECK(flips > count * 8 * 60 / stride);
    kit_check_sound(&kit); // all damage was undone
    kit_release(&kit);
}

static void S9_every_flipped_bit_of_an_event_is_found_and_named_I7(void)
{
    every_bit(false, EVENTS);
}

static void S9_every_flipped_bit_of_a_ledger_entry_is_found_and_named_I7(void)
{
    every_bit(true, 2);
}

// In a fork, so that each damage meets an undamaged store.
static void damage_apart(enum tamper what, uint64_t seq, uint64_t named, bool ledger, const char *words)
{
    struct kit kit;
    start_damaged(&kit);
    if (!suite_case->tamper(kit.store, what, STR("r"), seq, 0))
        test_skip("%s cannot be damaged like this", suite_case->name);
    suite_reopen(&kit, STORE_READ);
    check_found(&kit, named, named, ledger, words, 0);
    kit_release(&kit);
}

static void S9_a_removed_event_is_found_and_named_I7(void)
{
    for (uint64_t seq = 1; seq <= EVENTS; seq++) damage_apart(TAMPER_DELETE, seq, seq, false, "a removed event");
}

static void S9_swapped_events_are_found_and_named_I7(void)
{
    for (uint64_t seq = 1; seq < EVENTS; seq++) damage_apart(TAMPER_SWAP, seq, seq, false, "two swapped events");
}

static void S9_a_cut_tail_is_found_through_the_head_I7(void)
{
    for (uint64_t seq = 1; seq <= EVENTS; seq++) damage_apart(TAMPER_CUT, seq, seq, false, "a cut tail");
}

static void S9_a_repeated_event_is_found_I7(void)
{
    damage_apart(TAMPER_REPEAT, 2, EVENTS + 1, false, "a repeated event");
}

static void S9_a_removed_ledger_entry_is_found_and_named_I7(void)
{
    damage_apart(TAMPER_LEDGER_DELETE, 1, 1, true, "a removed ledger entry");
    damage_apart(TAMPER_LEDGER_DELETE, 2, 2, true, "a removed ledger entry");
    damage_apart(TAMPER_LEDGER_CUT, 2, 2, true, "a cut ledger");
}

// Several threads look at many runs; what they find comes in the order of the list all the same.
static void S9_faults_of_many_runs_come_newest_run_first_I7(void)
{
    enum { RUNS = 300, STEP = 50 };
    if (!suite_case->tamper) test_skip("%s cannot be reached from outside", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    char name[16];
    for (int i = 0; i < RUNS; i++) {
        snprintf(name, sizeof(name), "run-%03d", i);
        struct run_log *log = kit_create(&kit, name, VOCABULARY_NODES);
        kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
        kit_step(&kit, log, "a");
        store_release_run(kit.store, log);
    }
    suite_reopen(&kit, STORE_READ);
    for (int i = 0; i < RUNS; i += STEP) {
        snprintf(name, sizeof(name), "run-%03d", i);
        CHECK(suite_case->tamper(kit.store, TAMPER_FLIP, str_from(name), 2, 8 * 40));
    }
    struct verify_report report = kit_verify(&kit);
    CHECK_INT(report.run_count, RUNS);
    CHECK_INT(report.event_count, RUNS * 2);
    CHECK(report.fault_count >= RUNS / STEP);
    int expected = RUNS - STEP;
    for (size_t i = 0; i < report.fault_count; i++) {
        snprintf(name, sizeof(name), "run-%03d", expected);
        if (!str_is(report.faults[i].run, name)) expected -= STEP;
        snprintf(name, sizeof(name), "run-%03d", expected);
        CHECK_STR(report.faults[i].run, str_from(name));
        CHECK_INT(report.faults[i].seq, 2);
    }
    CHECK_INT(expected, 0);
    kit_release(&kit);
}

static enum code ignore(void *context, const struct record *record, const struct moment *moment,
                        const struct seal *seal)
{
    (void)record;
    (void)moment;
    (void)seal;
    ++*(size_t *)context;
    return OK;
}

static void S9_replay_stops_before_damage_instead_of_telling_it_I6(void)
{
    struct kit kit;
    start_damaged(&kit);
    size_t told = 0;
    CHECK_OK(store_replay(kit.store, STR("default"), STR("r"), ignore, &told, &kit.err), &kit.err);
    CHECK_INT(told, EVENTS + 2);
    CHECK(suite_case->tamper(kit.store, TAMPER_FLIP, STR("r"), 2, 8 * 40));
    told = 0;
    CHECK_INT(store_replay(kit.store, STR("default"), STR("r"), ignore, &told, NULL), E_CORRUPT);
    // The bytes of event 2 are found wrong by their successor at the latest: it must not be told.
    CHECK(told <= 4);
    kit_release(&kit);
}

// The chain names the document that the run was started with: a store that keeps another one for it is neither believed nor replayed.
static void S9_another_document_for_a_run_is_found_and_not_replayed_I7(void)
{
    struct kit kit;
    start_damaged(&kit);
    suite_reopen(&kit, STORE_WRITE);
    struct append_blob other = {.sha256 = sha256(STR("another document")), .bytes = STR("another document")};
    struct store_batch batch = {.blobs = &other, .blob_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    suite_reopen(&kit, STORE_READ);
    CHECK(suite_case->tamper(kit.store, TAMPER_DOCUMENT, STR("r"), 1, 0));
    suite_reopen(&kit, STORE_READ);
    check_found(&kit, 1, 1, false, "another document", 0);
    size_t told = 0;
    struct error err = {0};
    CHECK_INT(store_replay(kit.store, STR("default"), STR("r"), ignore, &told, &err), E_CORRUPT);
    CHECK(strstr(err.message, "PLAN_INTEGRITY_VALIDATION_FAILED"));
    CHECK_INT(told, 0);
    kit_release(&kit);
}

// Whatever is left of a run tells that it was there.
static void S9_a_run_that_is_gone_is_missed_I7(void)
{
    for (uint64_t way = 1;; way++) {
        struct kit kit;
        start_damaged(&kit);
        suite_reopen(&kit, STORE_WRITE); // a run behind it
        struct run_log *behind = kit_create(&kit, "s", VOCABULARY_RUN);
        kit_step(&kit, behind, "a");
        store_release_run(kit.store, behind);
        suite_reopen(&kit, STORE_READ);
        bool done = suite_case->tamper(kit.store, TAMPER_RUN, STR("r"), way, 0);
        struct verify_report report;
        struct error err = {0};
        if (done) {
            suite_reopen(&kit, STORE_READ);
            CHECK_OK(store_verify(kit.store, STR(""), STR(""), &kit.arena, &report, &err), &err);
            if (report.fault_count == 0)
                test_fail(__FILE__, __LINE__, "nothing is missed (way %llu)", (unsigned long long)way);
            struct run_heads heads;
            CHECK_OK(store_list(kit.store, &(struct run_filter){.limit = 10}, &kit.arena, &heads, &err), &err);
        }
        kit_release(&kit);
        if (!done) break;
    }
}

const struct test suite_verify_tests[] = {
    TEST(S9_another_document_for_a_run_is_found_and_not_replayed_I7),
    TEST(S9_a_run_that_is_gone_is_missed_I7),
    TEST(S9_every_flipped_bit_of_an_event_is_found_and_named_I7),
    TEST(S9_every_flipped_bit_of_a_ledger_entry_is_found_and_named_I7),
    TEST(S9_a_removed_event_is_found_and_named_I7),
    TEST(S9_swapped_events_are_found_and_named_I7),
    TEST(S9_a_cut_tail_is_found_through_the_head_I7),
    TEST(S9_a_repeated_event_is_found_I7),
    TEST(S9_a_removed_ledger_entry_is_found_and_named_I7),
    TEST(S9_faults_of_many_runs_come_newest_run_first_I7),
    TEST(S9_replay_stops_before_damage_instead_of_telling_it_I6),
};
const size_t suite_verify_count = ARRAY_COUNT(suite_verify_tests);
