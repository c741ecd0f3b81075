// The files store and paths: no id leads out of it, and what others put there is no file of its own.
#include "store_files_kit.h"

#include <sys/stat.h>
#include <unistd.h>

// clang-format off
static const struct str odd_ids[] = {
    {"..", 2}, {"../x", 4}, {"..%2fx", 6}, {"%2e%2e/", 7}, {"%252e%252e%252f", 15}, {"..\\x", 4}, {"....//", 6},
    {"/abs", 4}, {"a/b", 3}, {"a\0b", 3}, {".", 1}, {"", 0}, {"~", 1}, {"-rf", 3}, {"CON", 3}, {"a:b", 3},
    {"\xC0\xAE", 2}, {"\xEF\xBC\x8E\xEF\xBC\x8E\xEF\xBC\x8F", 9}, {"e\xCC\x81", 3}, {"\xC3\xA9", 2}, {"A", 1}, {"a", 1},
    {"a.", 2}, {"a ", 2}, {"a\nb", 3}, {"a\tb", 3}, {"events.jsonl", 12}, {"lost+found", 10}, {"a|b", 3}, {"RUN", 3},
    {"\xF0\x9F\x98\x80", 4}, {"\xE2\x80\x8F" "x", 4}, {".cairn", 6}, {"@acme", 5}, {"journal", 7}, {"proc", 4},
    {"self", 4}, {"...", 3}, {" ", 1}, {"*", 1},
};
// clang-format on

static void no_id_leads_out_of_the_store_P2_I39(void)
{
    struct kit kit;
    start_real(&kit);
    char name[5001];
    memset(name, 'n', sizeof(name));
    size_t stored = 0;
    for (size_t i = 0; i < ARRAY_COUNT(odd_ids) + 3; i++) {
        static const size_t lengths[] = {200, 256, 5000};
        struct str id = i < ARRAY_COUNT(odd_ids) ? odd_ids[i] : (struct str){name, lengths[i - ARRAY_COUNT(odd_ids)]};
        for (int tenant = 0; tenant < 2; tenant++) {
            struct run_create create = kit_run("default", "r", VOCABULARY_RUN);
            *(tenant ? &create.ids.tenant : &create.ids.run) = id;
            struct run_log *log = NULL;
            struct error err = {0};
            enum code rc = store_create_run(kit.store, &create, &log, &err);
            CHECK(rc == OK || rc == E_INVALID);
            if (rc != OK) continue;
            // A ledger entry: the schemas of events have their own opinion of ids.
            CHECK_OK(kit_decide(&kit, log, "s", "accept", NULL), &kit.err);
            store_release_run(kit.store, log);
            struct run_head head;
            CHECK_OK(store_head(kit.store, create.ids.tenant, create.ids.run, &kit.arena, &head, &kit.err), &kit.err);
            CHECK_INT(head.last_ledger_seq, 1);
            stored++;
        }
    }
    CHECK_INT(count_entries(test_dir()), 1); // nothing but the store
    CHECK(stored >= 40);
    kit_check_sound(&kit);
    reopen_real(&kit, STORE_WRITE);
    struct run_filter filter = {.limit = 1000};
    struct run_heads heads;
    CHECK_OK(store_list(kit.store, &filter, &kit.arena, &heads, &kit.err), &kit.err);
    CHECK_INT(heads.count, stored);
    kit_release(&kit);
}

static void plant_symlink(const char *path, const char *outside)
{
    CHECK_INT(symlink(outside, path), 0);
}
static void plant_hard_link(const char *path, const char *outside)
{
    CHECK_INT(link(outside, path), 0);
}
static void plant_fifo(const char *path, const char *outside UNUSED)
{
    CHECK_INT(mkfifo(path, 0600), 0);
}
static void plant_directory(const char *path, const char *outside UNUSED)
{
    CHECK_INT(mkdir(path, 0700), 0);
}

static void what_is_not_a_plain_file_is_refused_P1_I39(void)
{
    static void (*const plant[])(const char *, const char *) = {plant_symlink, plant_hard_link, plant_fifo,
                                                                plant_directory};
    for (size_t i = 0; i < ARRAY_COUNT(plant); i++) {
        struct kit kit;
        start_real(&kit);
        char run[32], below[64], path[2048], outside[1024];
        snprintf(run, sizeof(run), "run-%zu", i);
        struct run_log *log = kit_create(&kit, run, VOCABULARY_RUN);
        kit_step(&kit, log, "a");
        store_release_run(kit.store, log);
        store_close(kit.store);
        snprintf(below, sizeof(below), "%s/events.jsonl", run);
        snprintf(path, sizeof(path), "%s", real_path(below));
        snprintf(outside, sizeof(outside), "%s/outside-%zu", test_dir(), i);
        test_write_file(outside, test_read_file(path));
        struct str before = test_read_file(outside);
        CHECK_INT(unlink(path), 0);
        plant[i](path, outside);
        open_real(&kit, STORE_WRITE); // the journal would write its lines there
        CHECK(store_recovered(kit.store)->quarantined_runs >= 1);
        CHECK_INT(store_claim_run(kit.store, STR("default"), str_from(run), &log, NULL), E_CORRUPT);
        struct records records;
        struct record_range range = {.tenant = STR("default"), .run = str_from(run), .limit = 10};
        CHECK_INT(store_read(kit.store, &range, &kit.arena, &records, NULL), E_CORRUPT);
        struct run_log *other = kit_create(&kit, i ? "other" : "another", VOCABULARY_RUN);
        kit_step(&kit, other, "a");
        store_release_run(kit.store, other);
        CHECK_STR(test_read_file(outside), before);
        kit_release(&kit);
        test_write_file(real_path("../done"), STR(""));
        char command[2200];
        snprintf(command, sizeof(command), "rm -rf %s/store", test_dir());
        CHECK_INT(system(command), 0);
    }
}

static void a_planted_folder_leads_nowhere_I39(void)
{
    struct kit kit;
    start_real(&kit);
    char outside[1024];
    snprintf(outside, sizeof(outside), "%s/outside", test_dir());
    CHECK_INT(mkdir(outside, 0700), 0);
    CHECK_INT(symlink(outside, real_path("trap")), 0);
    CHECK_INT(symlink(outside, real_path("@acme")), 0);
    struct run_create create = kit_run("default", "trap", VOCABULARY_RUN);
    for (int i = 0; i < 2; i++) {
        struct run_log *log;
        CHECK_OK(store_create_run(kit.store, &create, &log, &kit.err), &kit.err);
        CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "a", 1), NULL), E_CORRUPT);
        store_release_run(kit.store, log);
        create = kit_run("acme", "r", VOCABULARY_RUN);
    }
    CHECK_INT(count_entries(outside), 0);
    struct run_log *log = kit_create(&kit, "fine", VOCABULARY_RUN); // the store goes on
    kit_step(&kit, log, "a");
    store_release_run(kit.store, log);
    kit_release(&kit);
}
int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(no_id_leads_out_of_the_store_P2_I39),
        TEST(what_is_not_a_plain_file_is_refused_P1_I39),
        TEST(a_planted_folder_leads_nowhere_I39),
    };
    return test_main("store_files_paths", tests, ARRAY_COUNT(tests), argc, argv);
}
