// S1..S3 with real processes: a child appends and tells through a pipe what was acknowledged, the parent kills it and looks.
#include "conformance/store_suite_private.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 5 };

static struct run_log *create_numbered(struct kit *kit, size_t i)
{
    char name[16];
    snprintf(name, sizeof(name), "run-%zu", i);
    return kit_create(kit, name, VOCABULARY_RUN);
}

// Batches of one event for each of RUNS runs, for ever; one byte per acknowledged batch.
static _Noreturn void append_for_ever(const char *url, int acks)
{
    struct kit kit;
    kit_init(&kit);
    kit.store = suite_open(&kit, url, STORE_WRITE);
    struct run_log *logs[RUNS];
    for (size_t i = 0; i < RUNS; i++) logs[i] = create_numbered(&kit, i);
    struct arena turn;
    arena_init(&turn, 64 * 1024, SIZE_MAX);
    for (size_t n = 0;; n++) {
        arena_reset(&turn);
        char step[24];
        snprintf(step, sizeof(step), "s%zu", n);
        struct moment moment = kit_moment(MOMENT_STEP_STARTED, step, 1);
        struct append_item items[RUNS] = {{0}};
        for (size_t i = 0; i < RUNS; i++) items[i] = (struct append_item){.log = logs[i], .moment = &moment};
        struct store_batch batch = {.items = items, .item_count = RUNS};
        if (store_append(kit.store, &batch, KIT_NOW, &turn, &kit.err) || write(acks, "+", 1) != 1) _exit(3);
    }
}

static size_t kill_after(const char *url, size_t batches)
{
    int pipe_ends[2];
    CHECK(pipe(pipe_ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(pipe_ends[0]);
        append_for_ever(url, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    size_t acked = 0;
    char byte;
    while (acked < batches && read(pipe_ends[0], &byte, 1) == 1) acked++;
    CHECK_INT(acked, batches);
    CHECK(kill(child, SIGKILL) == 0);
    while (read(pipe_ends[0], &byte, 1) == 1) acked++;
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    close(pipe_ends[0]);
    return acked;
}

static void S1_S2_S3_what_was_acknowledged_is_there_after_kill_9_in_whole_batches_I1_I4_I6(void)
{
    if (!suite_case->durable) test_skip("%s dies with its process", suite_case->name);
    for (size_t round = 0; round < 12; round++) {
        struct kit kit;
        kit_init(&kit);
        char *url = strdup(suite_case->scratch());
        CHECK(url);
        size_t acked = kill_after(url, 1 + round * 7);
        kit.store = suite_open(&kit, url, STORE_WRITE);
        uint64_t count = kit_head(&kit, "run-0").last_seq;
        CHECK(count >= acked);     // S1
        CHECK(count <= acked + 1); // the one under way may be there or not (S10)
        for (size_t i = 0; i < RUNS; i++) {
            char name[16];
            snprintf(name, sizeof(name), "run-%zu", i);
            CHECK_INT(kit_head(&kit, name).last_seq, count); // S3
            struct records records = kit_read(&kit, name);
            CHECK_INT(records.count, count); // S2
            // The dead owner's runs are free at once, and go on where they were.
            CHECK(!kit_head(&kit, name).owned);
            struct run_log *log = kit_claim(&kit, name);
            CHECK(kit_step(&kit, log, "s0").idempotent);
            CHECK_INT(kit_step(&kit, log, "after").seq, count + 1);
            store_release_run(kit.store, log);
        }
        kit_check_sound(&kit);
        kit_release(&kit);
        free(url);
    }
}

static void S2_a_process_that_leaves_without_closing_loses_nothing(void)
{
    if (!suite_case->durable) test_skip("%s dies with its process", suite_case->name);
    char *url = strdup(suite_case->scratch());
    CHECK(url);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct kit kit;
        kit_init(&kit);
        kit.store = suite_open(&kit, url, STORE_WRITE);
        struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
        kit_step(&kit, log, "a");
        kit_append(&kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    struct kit kit;
    kit_init(&kit);
    kit.store = suite_open(&kit, url, STORE_READ);
    CHECK_INT(kit_head(&kit, "r").last_seq, 1);
    CHECK_INT(kit_head(&kit, "r").last_ledger_seq, 1);
    CHECK(!kit_head(&kit, "r").owned);
    kit_check_sound(&kit);
    kit_release(&kit);
    free(url);
}

// Reads run-0 as a tail reader does, by the last number seen; exits 0 when it saw 1, 2, 3 ... `last`, each once.
static _Noreturn void tail(const char *url, uint64_t last)
{
    struct kit kit;
    kit_init(&kit);
    kit.store = suite_open(&kit, url, STORE_READ);
    struct arena turn;
    arena_init(&turn, 64 * 1024, SIZE_MAX);
    uint64_t seen = 0;
    while (seen < last) {
        arena_reset(&turn);
        struct records page;
        struct record_range range = {.tenant = STR("default"), .run = STR("run-0"), .after = seen, .limit = 16};
        enum code rc = store_read(kit.store, &range, &turn, &page, NULL);
        if (rc && rc != E_NOT_FOUND) _exit(2);
        for (size_t i = 0; i < page.count; i++)
            if (page.items[i].seq != ++seen) _exit(1);
        if (page.count == 0) usleep(200);
    }
    _exit(0);
}

static void S4_tail_readers_see_every_event_once_and_in_order_I4(void)
{
    enum { READERS = 4, EVENTS = 300 };
    if (!suite_case->shared) test_skip("%s has one handle", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = create_numbered(&kit, 0);
    kit_step(&kit, log, "first");
    pid_t readers[READERS];
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = fork();
        CHECK(readers[i] >= 0);
        if (readers[i] == 0) tail(store_url(kit.store).ptr, EVENTS);
    }
    char step[24];
    for (size_t i = 1; i < EVENTS; i++) {
        snprintf(step, sizeof(step), "s%zu", i);
        kit_step(&kit, log, step);
    }
    for (size_t i = 0; i < READERS; i++) {
        int status;
        CHECK(waitpid(readers[i], &status, 0) == readers[i]);
        CHECK_INT(status, 0);
    }
    store_release_run(kit.store, log);
    kit_release(&kit);
}

const struct test suite_crash_tests[] = {
    TEST(S1_S2_S3_what_was_acknowledged_is_there_after_kill_9_in_whole_batches_I1_I4_I6),
    TEST(S2_a_process_that_leaves_without_closing_loses_nothing),
    TEST(S4_tail_readers_see_every_event_once_and_in_order_I4),
};
const size_t suite_crash_count = ARRAY_COUNT(suite_crash_tests);
