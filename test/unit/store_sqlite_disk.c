// The SQLite store on disks that are full or fail: what is stored, what is told, and what a handle does after it (I8, I9).
#include "store_sqlite_vfs.h"

#include <limits.h>
#include <unistd.h>

static void a_full_disk_stores_nothing_and_the_store_goes_on_when_there_is_space_I9(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "first");
    char step[16];
    uint64_t stored = 1;
    enum code rc = OK;
    shim.quota = 1024 * 1024;
    for (int i = 0; !rc && i < 10000; i++) {
        snprintf(step, sizeof(step), "s%d", i);
        rc = kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, step, 1), NULL);
        stored += rc == OK;
    }
    CHECK_INT(rc, E_FULL);
    CHECK(stored > 10);
    CHECK_INT(run_log_last_seq(log), stored);
    CHECK_INT(kit_head(&kit, "r").last_seq, stored);
    CHECK_INT(kit_read(&kit, "r").count, stored); // reading works
    for (int i = 0; i < 3; i++) CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, step, 1), NULL), E_FULL);
    shim.quota = 0;
    struct append_item item = kit_step(&kit, log, step); // the one that was refused
    CHECK(!item.idempotent);
    CHECK_INT(item.seq, stored + 1);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void a_failed_sync_ends_the_handle_and_reopening_tells_what_is_stored_I8_I2(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    shim.fail_sync_in = 1;
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_IO);
    CHECK_INT(run_log_last_seq(log), 1);
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "c", 1), NULL),
              E_IO); // although the disk is well again
    struct run_log *other = NULL;
    CHECK_INT(store_claim_run(kit.store, STR("default"), STR("r"), &other, NULL), E_IO);
    store_release_run(kit.store, log);
    store_close(kit.store);
    CHECK_OK(try_open(&kit, path, STORE_WRITE, "shim"), &kit.err);
    log = kit_claim(&kit, "r");
    uint64_t found = run_log_last_seq(log);
    CHECK(found == 1 || found == 2);
    struct append_item item = kit_step(&kit, log, "b"); // exactly one either way
    CHECK_INT(item.seq, 2);
    CHECK_INT(item.idempotent, found == 2);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// Until one fails: 16 MiB of log later there is a checkpoint.
static enum code append_many(struct kit *kit, struct run_log *log, int fail_sync_in)
{
    struct arena turn;
    arena_init(&turn, 16 * 1024, SIZE_MAX);
    enum code rc = OK;
    for (int i = 0; !rc && i < 20000; i++) {
        arena_reset(&turn);
        char step[16];
        snprintf(step, sizeof(step), "s%d", i);
        struct moment moment = kit_moment(MOMENT_STEP_STARTED, step, 1);
        struct append_item item = {.log = log, .moment = &moment};
        struct store_batch batch = {.items = &item, .item_count = 1};
        shim.fail_sync_in = fail_sync_in;
        rc = store_append(kit->store, &batch, KIT_NOW, &turn, &kit->err);
    }
    arena_release(&turn);
    shim.fail_sync_in = 0;
    return rc;
}

static void check_what_is_left(const char *path)
{
    struct kit kit;
    kit_init(&kit);
    CHECK_OK(try_open(&kit, path, STORE_READ, NULL), &kit.err);
    CHECK(kit_head(&kit, "r").last_seq > 100);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void a_failed_sync_of_a_checkpoint_ends_the_handle_too_I8(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    CHECK_INT(append_many(&kit, log, 2), E_IO); // the commit's is the first; a second one is a checkpoint's
    CHECK(strstr(kit.err.message, "database file") != NULL);
    store_release_run(kit.store, log);
    kit_release(&kit);
    check_what_is_left(path);
}

// The events are in the log by then: whatever keeps them from the database file, no answer may say that they are not stored.
static void a_checkpoint_that_is_refused_is_never_an_append_that_stored_nothing_S10(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    shim.refuse_database = SQLITE_READONLY;
    CHECK_INT(append_many(&kit, log, 0), E_IO);
    shim.refuse_database = 0;
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "z", 1), NULL), E_IO);
    store_release_run(kit.store, log);
    kit_release(&kit);
    check_what_is_left(path);
}

// Whoever closes last would move the log into the database file and remove it, with frames that a failed sync may have lost.
static void a_dead_handle_leaves_the_log_alone_when_it_is_closed_I8(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    shim.fail_sync_in = 1;
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_IO);
    store_release_run(kit.store, log);
    int writes = shim.database_writes;
    store_close(kit.store);
    kit.store = NULL;
    CHECK_INT(shim.database_writes, writes);
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s-wal", path);
    CHECK_INT(access(name, F_OK), 0);
    CHECK_OK(try_open(&kit, path, STORE_WRITE, "shim"), &kit.err);
    CHECK(kit_head(&kit, "r").last_seq >= 1);
    store_close(kit.store);
    kit.store = NULL;
    CHECK(shim.database_writes > writes); // one that is well does
    CHECK(access(name, F_OK) != 0);
    kit_release(&kit);
}

static void a_signal_whose_sync_failed_ends_the_handle_too_I8(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    shim.fail_sync_in = 1;
    CHECK_INT(store_post(kit.store, STR("default"), STR("r"), STR("s1"), STR("{}"), NULL), E_IO);
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_IO);
    CHECK_INT(store_post(kit.store, STR("default"), STR("r"), STR("s1"), STR("{}"), NULL), E_IO);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_full_disk_stores_nothing_and_the_store_goes_on_when_there_is_space_I9),
        TEST(a_failed_sync_ends_the_handle_and_reopening_tells_what_is_stored_I8_I2),
        TEST(a_failed_sync_of_a_checkpoint_ends_the_handle_too_I8),
        TEST(a_checkpoint_that_is_refused_is_never_an_append_that_stored_nothing_S10),
        TEST(a_dead_handle_leaves_the_log_alone_when_it_is_closed_I8),
        TEST(a_signal_whose_sync_failed_ends_the_handle_too_I8),
    };
    return test_main("store_sqlite_disk", tests, ARRAY_COUNT(tests), argc, argv);
}
