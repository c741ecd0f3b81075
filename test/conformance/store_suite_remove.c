// S14: ended runs leave whole, a tombstone stays, and nothing else is touched.
#include "conformance/store_suite_private.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_run(struct kit *kit, const char *run, bool ended)
{
    struct run_log *log = kit_create(kit, run, VOCABULARY_NODES);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_RESUMED, "", 1));
    kit_step(kit, log, "a");
    if (ended) {
        kit_append(kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1));
        kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    }
    store_release_run(kit->store, log);
}

static enum code remove_runs(struct kit *kit, const char *const *names, size_t count)
{
    struct run_name runs[8];
    for (size_t i = 0; i < count; i++) runs[i] = (struct run_name){STR("default"), str_from(names[i])};
    kit->err = (struct error){0};
    return store_remove(kit->store, runs, count, KIT_NOW + 5, STR("older than 30d"), &kit->err);
}

static bool is_there(struct kit *kit, const char *run)
{
    struct run_head head;
    enum code rc = store_head(kit->store, STR("default"), str_from(run), &kit->arena, &head, NULL);
    CHECK(rc == OK || rc == E_NOT_FOUND);
    return rc == OK;
}

static size_t listed(struct kit *kit)
{
    struct run_heads heads;
    struct run_filter filter = {.limit = 100};
    CHECK_OK(store_list(kit->store, &filter, &kit->arena, &heads, &kit->err), &kit->err);
    return heads.count;
}

static void check_tombstone(struct kit *kit, const struct run_head *head)
{
    struct tombstones tombstones;
    CHECK_OK(store_tombstones(kit->store, &kit->arena, &tombstones, &kit->err), &kit->err);
    CHECK_INT(tombstones.count, 1);
    const struct tombstone *one = &tombstones.items[0];
    CHECK_STR(one->run, head->ids.run);
    CHECK_STR(one->tenant, STR("default"));
    CHECK_STR(one->reason, STR("older than 30d"));
    CHECK_INT(one->removed_ms, KIT_NOW + 5);
    CHECK_INT(one->last_seq, head->last_seq);
    CHECK_INT(one->position, head->position);
    CHECK(digest_eq(&one->head, &head->head) && digest_eq(&one->ledger_head, &head->ledger_head));
}

static void S14_an_ended_run_leaves_whole_and_a_tombstone_stays(void)
{
    struct kit kit;
    suite_start(&kit);
    make_run(&kit, "old", true);
    make_run(&kit, "other", true);
    struct run_head head = kit_head(&kit, "old");
    const char *const names[] = {"old"};
    CHECK_OK(remove_runs(&kit, names, 1), &kit.err);
    for (int i = 0; i < 3; i++) { // as written, opened again for writing, for reading
        CHECK(!is_there(&kit, "old") && is_there(&kit, "other"));
        CHECK_INT(listed(&kit), 1);
        struct records records;
        struct record_range range = {.tenant = STR("default"), .run = STR("old"), .limit = 10};
        CHECK_INT(store_read(kit.store, &range, &kit.arena, &records, NULL), E_NOT_FOUND);
        check_tombstone(&kit, &head);
        kit_check_sound(&kit);
        suite_reopen(&kit, i == 0 ? STORE_WRITE : STORE_READ);
    }
    kit_release(&kit);
}

static void S14_a_run_that_has_not_ended_stays_and_with_it_the_others_of_the_batch(void)
{
    struct kit kit;
    suite_start(&kit);
    make_run(&kit, "ended", true);
    make_run(&kit, "going", false);
    const char *const names[] = {"ended", "going"}, *const missing[] = {"ended", "nobody"};
    CHECK_INT(remove_runs(&kit, names, 2), E_CONFLICT);
    CHECK_INT(remove_runs(&kit, missing, 2), E_NOT_FOUND);
    CHECK(is_there(&kit, "ended") && is_there(&kit, "going"));
    struct tombstones tombstones;
    CHECK_OK(store_tombstones(kit.store, &kit.arena, &tombstones, &kit.err), &kit.err);
    CHECK_INT(tombstones.count, 0);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S14_the_id_of_a_removed_run_can_be_used_again_and_its_position_cannot(void)
{
    struct kit kit;
    suite_start(&kit);
    make_run(&kit, "a", true);
    make_run(&kit, "r", true);
    struct run_head before = kit_head(&kit, "r");
    const char *const names[] = {"r"};
    CHECK_OK(remove_runs(&kit, names, 1), &kit.err);
    make_run(&kit, "r", false);
    struct run_head after = kit_head(&kit, "r");
    CHECK(after.position > before.position);
    CHECK_INT(after.last_seq, 2);
    CHECK_INT(kit_read(&kit, "r").count, 2);
    suite_reopen(&kit, STORE_WRITE);
    CHECK_INT(kit_head(&kit, "r").last_seq, 2);
    check_tombstone(&kit, &before);
    struct run_log *log = kit_claim(&kit, "r");
    kit_append(&kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1));
    store_release_run(kit.store, log);
    CHECK_INT(listed(&kit), 2);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// The writer dies right after the removal; whoever opens the store next finds it done.
static void S14_a_removal_survives_the_death_of_its_process_S1(void)
{
    if (!suite_case->durable) test_skip("%s ends with its handle", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    make_run(&kit, "old", true);
    make_run(&kit, "other", false);
    struct run_head head = kit_head(&kit, "old");
    struct str url = arena_copy(&kit.arena, store_url(kit.store));
    store_close(kit.store);
    kit.store = NULL;
    pid_t child = fork();
    if (child == 0) {
        kit.store = suite_open(&kit, url.ptr, STORE_WRITE);
        const char *const names[] = {"old"};
        _exit(remove_runs(&kit, names, 1) == OK ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    kit.store = suite_open(&kit, url.ptr, STORE_WRITE);
    CHECK(!is_there(&kit, "old") && is_there(&kit, "other"));
    check_tombstone(&kit, &head);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S14_blobs_go_when_they_are_named_but_documents_of_runs_stay(void)
{
    struct kit kit;
    suite_start(&kit);
    struct str text = STR("document"), other = STR("a result");
    struct append_blob blobs[] = {{sha256(text), text}, {sha256(other), other}};
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES); // its document is "document"
    struct moment moment = kit_moment(MOMENT_RUN_STARTED, "", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = blobs, .blob_count = 2};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    store_release_run(kit.store, log);
    struct digest names[] = {blobs[0].sha256, blobs[1].sha256};
    uint64_t bytes = 0;
    CHECK_OK(store_drop_blobs(kit.store, names, 2, &bytes, &kit.err), &kit.err);
    CHECK_INT(bytes, other.len);
    struct str found;
    CHECK_OK(store_blob(kit.store, &names[0], &kit.arena, &found, &kit.err), &kit.err);
    CHECK_INT(store_blob(kit.store, &names[1], &kit.arena, &found, NULL), E_NOT_FOUND);
    kit_release(&kit);
}

const struct test suite_remove_tests[] = {
    TEST(S14_an_ended_run_leaves_whole_and_a_tombstone_stays),
    TEST(S14_a_run_that_has_not_ended_stays_and_with_it_the_others_of_the_batch),
    TEST(S14_the_id_of_a_removed_run_can_be_used_again_and_its_position_cannot),
    TEST(S14_a_removal_survives_the_death_of_its_process_S1),
    TEST(S14_blobs_go_when_they_are_named_but_documents_of_runs_stay),
};
const size_t suite_remove_count = ARRAY_COUNT(suite_remove_tests);
