// The files store beyond the common contract: its files and their names, its lock, its limits, what it does with a full disk
// and with a store that is not what it should be. Files that others put there: store_files_paths.c.
#include "store_files_kit.h"

#include "store/files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- format

static void crc_is_castagnolis_by_instruction_and_by_table(void)
{
    CHECK_INT(crc32c(0, "123456789", 9), 0xE3069283);
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t from = 0; from < 9; from++)
        for (size_t len = 0; len < 280; len++)
            CHECK_INT(crc32c(7, bytes + from, len), crc32c_by_table(7, bytes + from, len));
    CHECK_INT(crc32c(crc32c(0, bytes, 100), bytes + 100, 200), crc32c(0, bytes, 300));
}

static void events_are_lines_in_a_folder_of_their_run_EL_4c(void)
{
    struct kit kit;
    start_real(&kit);
    struct run_log *log = kit_create(&kit, "run-1", VOCABULARY_NODES);
    struct append_item first = kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    struct append_item second = kit_step(&kit, log, "load");
    struct buf lines;
    buf_init(&lines, 1 << 20);
    buf_add(&lines, first.bytes);
    buf_byte(&lines, '\n');
    buf_add(&lines, second.bytes);
    buf_byte(&lines, '\n');
    CHECK_STR(test_read_file(real_path("run-1/events.jsonl")), buf_str(&lines));
    CHECK_INT(kit_decide(&kit, log, "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "accept", NULL), OK);
    struct str ledger = test_read_file(real_path("run-1/ledger.jsonl"));
    CHECK(str_starts(ledger, STR("{\"after\":2,\"body\":{\"decision\":\"accept\"},\"crc\":\"")));
    CHECK(str_ends(ledger,
                   STR("\",\"kind\":\"decision\",\"seq\":1,\"signalId\":\"6f9619ff-8b86-4d01-b42d-00cf4fc964ff\"}\n")));
    struct stat status;
    CHECK_INT(stat(real_path("run-1"), &status), 0);
    CHECK_INT(status.st_mode & 0777, 0700);
    CHECK_INT(stat(real_path("run-1/events.jsonl"), &status), 0);
    CHECK_INT(status.st_mode & 0777, 0600);
    store_release_run(kit.store, log);
    buf_release(&lines);
    kit_release(&kit);
}

static void long_names_causes_and_numbers_come_back_as_they_were(void)
{
    struct kit kit;
    start_real(&kit);
    char text[3000];
    memset(text, 'n', sizeof(text));
    struct run_create create = kit_run("a-tenant", "7c9e6679-7425-40de-944b-e07fc1f90ae7", VOCABULARY_RUN);
    create.name = (struct str){text, sizeof(text)};
    create.parent_run = STR("7C9E6679-7425-40DE-944B-E07FC1F90AE7"); // upper case is not packed
    create.original_run = STR("16fd2706-8baf-433b-82eb-8c7fada847da");
    create.ids.project = STR("default");
    struct run_log *log;
    CHECK_OK(store_create_run(kit.store, &create, &log, &kit.err), &kit.err);
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct append_summary summary = {.log = log,
                                     .summary = {.status = RUN_STATUS_FAILED,
                                                 .counts = {1, 2, 3, 4},
                                                 .running = 5,
                                                 .created_ms = -1,
                                                 .started_ms = INT64_MAX,
                                                 .ended_ms = INT64_MIN}};
    memset(summary.summary.cause, 'c', 159);
    memset(summary.summary.substatus, 's', 23);
    struct store_batch batch = {.items = &item, .item_count = 1, .summaries = &summary, .summary_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    store_release_run(kit.store, log);
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
        reopen_real(&kit, (enum store_mode)mode);
        struct run_head head;
        CHECK_OK(store_head(kit.store, create.ids.tenant, create.ids.run, &kit.arena, &head, &kit.err), &kit.err);
        CHECK_STR(head.name, create.name);
        CHECK_STR(head.parent_run, create.parent_run);
        CHECK_STR(head.original_run, create.original_run);
        CHECK_STR(head.ids.project, create.ids.project);
        CHECK_STR(head.ids.plan_version, create.ids.plan_version);
        CHECK_TEXT(head.summary.cause, summary.summary.cause);
        CHECK_TEXT(head.summary.substatus, summary.summary.substatus);
        CHECK_INT(head.summary.status, RUN_STATUS_FAILED);
        CHECK_INT(head.summary.counts.skipped, 4);
        CHECK_INT(head.summary.running, 5);
        CHECK_INT(head.summary.started_ms, INT64_MAX);
        CHECK_INT(head.summary.ended_ms, INT64_MIN);
        CHECK(digest_eq(&head.document, &create.document));
    }
    kit_release(&kit);
}

static void names_of_every_length_fit_somewhere(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    char text[512];
    memset(text, 'x', sizeof(text));
    for (size_t len = 0; len < 300; len += 7) {
        char run[32];
        snprintf(run, sizeof(run), "run-%zu", len);
        struct run_create create = kit_run("default", run, VOCABULARY_RUN);
        create.name = (struct str){text, len};
        struct run_log *log;
        CHECK_OK(store_create_run(lab.kit.store, &create, &log, &lab.kit.err), &lab.kit.err);
        kit_step(&lab.kit, log, "a");
        kit_step(&lab.kit, log, "b");
        store_release_run(lab.kit.store, log);
    }
    for (int again = 0; again < 2; again++) {
        for (size_t len = 0; len < 300; len += 7) {
            char run[32];
            snprintf(run, sizeof(run), "run-%zu", len);
            struct run_head head = kit_head(&lab.kit, run);
            CHECK_INT(head.name.len, len);
            CHECK_INT(head.last_seq, 2);
        }
        lab_close(&lab);
        sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
        lab_open(&lab);
    }
    lab_close(&lab);
    lab_release(&lab);
}

// ---- lock and owner

static void a_second_writer_is_told_who_has_it(void)
{
    struct kit kit;
    start_real(&kit);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    struct store *second = NULL;
    struct error err = {0};
    CHECK_INT(store_open(str_from(real_url()), &options, &second, &err), E_LOCKED);
    char pid[32];
    snprintf(pid, sizeof(pid), "process %lld", (long long)getpid());
    CHECK(strstr(err.message, pid) != NULL);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    options.mode = STORE_READ;
    CHECK_OK(store_open(str_from(real_url()), &options, &second, &err), &err);
    struct run_head head;
    CHECK_OK(store_head(second, STR("default"), STR("r"), &kit.arena, &head, &kit.err), &kit.err);
    CHECK(head.owned);
    CHECK_INT(head.owner_pid, getpid());
    store_release_run(kit.store, log);
    store_close(kit.store);
    kit.store = NULL;
    CHECK_OK(store_head(second, STR("default"), STR("r"), &kit.arena, &head, &kit.err), &kit.err);
    CHECK(!head.owned);
    store_close(second);
    kit_release(&kit);
}

static void a_lock_file_that_is_removed_lets_no_second_writer_in(void)
{
    struct kit kit;
    start_real(&kit);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    struct store *second = NULL;
    struct error err = {0};
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/.cairn/lock", real_url() + strlen("files:"));
    for (int i = 0; i < 2; i++) { // the second time there is one again, which the first try has made
        if (i == 0) CHECK_INT(unlink(path), 0);
        CHECK_INT(store_open(str_from(real_url()), &options, &second, &err), E_LOCKED);
        CHECK(strstr(err.message, "another process has it open for writing") != NULL);
    }
    options.mode = STORE_READ;
    CHECK_OK(store_open(str_from(real_url()), &options, &second, &err), &err);
    struct run_head head;
    CHECK_OK(store_head(second, STR("default"), STR("r"), &kit.arena, &head, &kit.err), &kit.err);
    CHECK(head.owned);
    store_close(second);
    store_release_run(kit.store, log);
    store_close(kit.store);
    options.mode = STORE_WRITE;
    CHECK_OK(store_open(str_from(real_url()), &options, &kit.store, &err), &err);
    kit_release(&kit);
}


// ---- limits

static size_t open_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

static void two_thousand_runs_need_no_more_descriptors_than_promised_I42(void)
{
    enum { RUNS = 2000 };
    static struct run_log *logs[RUNS];
    struct kit kit;
    start_real(&kit);
    for (int i = 0; i < RUNS; i++) {
        char run[32];
        snprintf(run, sizeof(run), "run-%d", i);
        logs[i] = kit_create(&kit, run, VOCABULARY_RUN);
    }
    for (int round = 0; round < 2; round++) {
        struct append_item *items = ARENA_ARRAY(&kit.arena, RUNS, struct append_item);
        static struct moment moment;
        moment = kit_moment(MOMENT_STEP_STARTED, round ? "b" : "a", 1);
        CHECK(items);
        for (int i = 0; i < RUNS; i++) items[i] = (struct append_item){.log = logs[i], .moment = &moment};
        struct store_batch batch = {.items = items, .item_count = RUNS};
        CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
        CHECK(open_descriptors() <= 256 + 24);
    }
    for (int i = 0; i < RUNS; i++) store_release_run(kit.store, logs[i]);
    reopen_real(&kit, STORE_WRITE);
    CHECK(open_descriptors() <= 256 + 24);
    struct verify_report report = kit_verify(&kit);
    CHECK_INT(report.event_count, 2 * RUNS);
    CHECK_INT(report.fault_count, 0);
    kit_release(&kit);
}

static void one_sync_stores_a_batch_of_many_runs(void)
{
    enum { RUNS = 40 };
    struct run_log *logs[RUNS];
    struct append_item items[RUNS];
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    for (int i = 0; i < RUNS; i++) {
        char run[32];
        snprintf(run, sizeof(run), "run-%d", i);
        logs[i] = kit_create(&lab.kit, run, VOCABULARY_RUN);
        items[i] = (struct append_item){.log = logs[i], .moment = &moment};
    }
    struct store_batch batch = {.items = items, .item_count = RUNS};
    uint64_t before = sim_disk_calls(lab.sim, SIM_SYNC);
    CHECK_OK(store_append(lab.kit.store, &batch, KIT_NOW, &lab.kit.arena, &lab.kit.err), &lab.kit.err);
    CHECK_INT(sim_disk_calls(lab.sim, SIM_SYNC) - before, 1);
    for (int i = 0; i < RUNS; i++) store_release_run(lab.kit.store, logs[i]);
    lab_close(&lab);
    lab_release(&lab);
}

// ---- no space left

static void what_the_journal_holds_is_shown_although_the_run_files_are_full_I9(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "r", VOCABULARY_RUN);
    kit_step(&lab.kit, log, "a");
    struct store *reader;
    CHECK_OK(lab_try_open(&lab, STORE_READ, &reader), &lab.kit.err);
    // The frame is written, the lines are not.
    sim_disk_fault(lab.sim, (struct sim_fault){.call = SIM_WRITE, .at = 2, .count = 0, .code = E_FULL});
    CHECK_INT(kit_step(&lab.kit, log, "b").seq, 2);
    CHECK_INT(kit_head(&lab.kit, "r").last_seq, 2);
    struct records records = kit_read(&lab.kit, "r");
    CHECK_INT(records.count, 2);
    CHECK(str_find(records.items[1].bytes, 'b', 0) < records.items[1].bytes.len);
    kit_check_sound(&lab.kit);
    struct run_head head;
    CHECK_OK(store_head(reader, STR("default"), STR("r"), &lab.kit.arena, &head, &lab.kit.err), &lab.kit.err);
    CHECK_INT(head.last_seq, 1);
    CHECK_INT(kit_try(&lab.kit, log, kit_moment(MOMENT_STEP_STARTED, "c", 1), NULL), E_FULL);
    CHECK_INT(kit_try(&lab.kit, log, kit_moment(MOMENT_STEP_STARTED, "c", 1), NULL), E_FULL);
    CHECK_INT(kit_head(&lab.kit, "r").last_seq, 2);
    sim_disk_heal(lab.sim);
    CHECK_INT(kit_step(&lab.kit, log, "c").seq, 3);
    CHECK_OK(store_head(reader, STR("default"), STR("r"), &lab.kit.arena, &head, &lab.kit.err), &lab.kit.err);
    CHECK_INT(head.last_seq, 3);
    store_release_run(lab.kit.store, log);
    store_close(reader);
    kit_check_sound(&lab.kit);
    lab_close(&lab);
    lab_release(&lab);
}

static void a_removal_that_is_in_the_journal_is_done_although_the_disk_is_full_S14_I9(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "r", VOCABULARY_RUN);
    kit_append(&lab.kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(lab.kit.store, log);
    // The journal is begun anew, the frame is written, the slot is not.
    sim_disk_fault(lab.sim, (struct sim_fault){.call = SIM_WRITE, .at = 3, .count = 0, .code = E_FULL});
    const struct run_name name = {STR("default"), STR("r")};
    CHECK_OK(store_remove(lab.kit.store, &name, 1, KIT_NOW, STR("old"), &lab.kit.err), &lab.kit.err);
    CHECK(sim_disk_fault_hit(lab.sim));
    sim_disk_heal(lab.sim);
    struct run_head head;
    CHECK_INT(store_head(lab.kit.store, STR("default"), STR("r"), &lab.kit.arena, &head, NULL), E_NOT_FOUND);
    log = kit_create(&lab.kit, "r", VOCABULARY_RUN); // nothing of the old one is in its way
    CHECK_INT(kit_step(&lab.kit, log, "a").seq, 1);
    store_release_run(lab.kit.store, log);
    kit_check_sound(&lab.kit);
    lab_close(&lab);
    lab_release(&lab);
}

// ---- stores that are not what they should be

static enum code try_open_after(struct lab *lab, const char *path, struct str bytes)
{
    struct store *store = NULL;
    sim_disk_put(lab->sim, path, bytes);
    enum code rc = lab_try_open(lab, STORE_WRITE, &store);
    store_close(store);
    return rc;
}

static void broken_parts_are_refused_or_rebuilt_I10_I45(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    lab_finish(&lab, 0);
    lab_close(&lab);
    struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
    CHECK_INT(try_open_after(&lab, ".cairn/VERSION", STR("cairn files 2\n")), E_VERSION);
    sim_disk_restore(lab.sim, image);
    CHECK_INT(try_open_after(&lab, ".cairn/VERSION", STR("carn files 1\n")), E_CORRUPT);
    sim_disk_restore(lab.sim, image);
    CHECK_INT(try_open_after(&lab, ".cairn/journal", STR("too short")), E_CORRUPT);
    static const char *const needed[] = {".cairn/VERSION", ".cairn/runs", ".cairn/journal"};
    for (size_t i = 0; i < ARRAY_COUNT(needed); i++) {
        sim_disk_restore(lab.sim, image);
        struct disk *disk = sim_disk_ops(lab.sim);
        CHECK_INT(disk->ops->remove(disk, needed[i], NULL), OK);
        struct store *store = NULL;
        CHECK_INT(lab_try_open(&lab, STORE_WRITE, &store), E_CORRUPT);
    }
    // An empty journal means: go on with what the run files hold. The index is made again.
    sim_disk_restore(lab.sim, image);
    sim_disk_put(lab.sim, ".cairn/journal", STR(""));
    struct disk *disk = sim_disk_ops(lab.sim);
    CHECK_INT(disk->ops->remove(disk, ".cairn/index", NULL), OK);
    struct store *reader = NULL;
    CHECK_OK(lab_try_open(&lab, STORE_READ, &reader), &lab.kit.err);
    lab.kit.store = reader;
    CHECK_INT(lab_held(&lab), LAB_BATCHES);
    lab_close(&lab);
    lab_open(&lab);
    CHECK_INT(lab_held(&lab), LAB_BATCHES);
    struct run_filter filter = {.tenant = STR("acme"), .unfinished = true};
    struct run_heads heads;
    CHECK_OK(store_list(lab.kit.store, &filter, &lab.kit.arena, &heads, &lab.kit.err), &lab.kit.err);
    CHECK_INT(heads.count, 1);
    lab_close(&lab);
    sim_snapshot_free(image);
    lab_release(&lab);
}

static void quarantine_ends_when_its_file_is_removed(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    lab_finish(&lab, 0);
    lab_close(&lab);
    sim_disk_put(lab.sim, ".cairn/quarantine/run-1", STR("somebody said so"));
    lab_open(&lab);
    CHECK_INT(store_recovered(lab.kit.store)->quarantined_runs, 1);
    struct run_log *log;
    CHECK_INT(store_claim_run(lab.kit.store, STR("default"), STR("a"), &log, NULL), E_CORRUPT);
    CHECK_INT(kit_read(&lab.kit, "a").count, lab_expect(LAB_BATCHES, 0, false)); // to look at it is allowed
    lab_close(&lab);
    struct disk *disk = sim_disk_ops(lab.sim);
    CHECK_INT(disk->ops->remove(disk, ".cairn/quarantine/run-1", NULL), OK);
    lab_open(&lab);
    store_release_run(lab.kit.store, kit_claim(&lab.kit, "a"));
    lab_close(&lab);
    lab_release(&lab);
}

// ---- inbox

static void signals_wait_in_order_and_are_settled_with_their_batch(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "r", VOCABULARY_RUN);
    kit_step(&lab.kit, log, "a");
    for (int i = 0; i < 12; i++) {
        char id[24], bytes[48];
        snprintf(id, sizeof(id), "s%d", i);
        snprintf(bytes, sizeof(bytes), "{\"n\":\"%d\\u00e9\"}", i);
        for (int twice = 0; twice < 2; twice++)
            CHECK_OK(store_post(lab.kit.store, STR("default"), STR("r"), str_from(id), str_from(bytes), &lab.kit.err),
                     &lab.kit.err);
    }
    struct inbox_item *items;
    size_t count;
    for (int crash = 0; crash < 2; crash++) {
        CHECK_OK(store_inbox(lab.kit.store, &lab.kit.arena, &items, &count, &lab.kit.err), &lab.kit.err);
        CHECK_INT(count, 12);
        for (int i = 0; i < 12; i++) {
            char id[24], bytes[48];
            snprintf(id, sizeof(id), "s%d", i);
            snprintf(bytes, sizeof(bytes), "{\"n\":\"%d\\u00e9\"}", i);
            CHECK_STR(items[i].signal_id, str_from(id));
            CHECK_STR(items[i].bytes, str_from(bytes));
            CHECK_STR(items[i].run, STR("r"));
        }
        if (crash) break;
        store_release_run(lab.kit.store, log);
        lab_close(&lab);
        sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
        lab_open(&lab);
        log = kit_claim(&lab.kit, "r");
    }
    int64_t done[] = {items[0].id, items[5].id};
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "b", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .inbox_done = done, .inbox_count = 2};
    CHECK_OK(store_append(lab.kit.store, &batch, KIT_NOW, &lab.kit.arena, &lab.kit.err), &lab.kit.err);
    store_release_run(lab.kit.store, log);
    for (int crash = 0; crash < 2; crash++) {
        CHECK_OK(store_inbox(lab.kit.store, &lab.kit.arena, &items, &count, &lab.kit.err), &lab.kit.err);
        CHECK_INT(count, 10);
        CHECK_STR(items[0].signal_id, STR("s1"));
        lab_close(&lab);
        // The names that were removed come back with a power cut; the journal knows better.
        sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
        lab_open(&lab);
    }
    lab_close(&lab);
    lab_release(&lab);
}

static void blobs_are_whole_or_not_there(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "r", VOCABULARY_RUN);
    struct str text = STR("the result of a step that was too large for its event");
    struct append_blob blob = {.sha256 = sha256(text), .bytes = text};
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = &blob, .blob_count = 1};
    sim_disk_fault(lab.sim, (struct sim_fault){.call = SIM_WRITE, .at = 1, .count = 1, .code = E_FULL});
    CHECK_INT(store_append(lab.kit.store, &batch, KIT_NOW, &lab.kit.arena, &lab.kit.err), E_FULL);
    struct str got;
    CHECK_INT(store_blob(lab.kit.store, &blob.sha256, &lab.kit.arena, &got, NULL), E_NOT_FOUND);
    lab.kit.err = (struct error){0};
    for (int twice = 0; twice < 2; twice++)
        CHECK_OK(store_append(lab.kit.store, &batch, KIT_NOW, &lab.kit.arena, &lab.kit.err), &lab.kit.err);
    store_release_run(lab.kit.store, log);
    lab_close(&lab);
    sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
    lab_open(&lab);
    CHECK_OK(store_blob(lab.kit.store, &blob.sha256, &lab.kit.arena, &got, &lab.kit.err), &lab.kit.err);
    CHECK_STR(got, text);
    char hex[SHA256_HEX + 1], path[128];
    digest_hex(&blob.sha256, hex);
    snprintf(path, sizeof(path), ".cairn/blobs/%.2s/%s", hex, hex);
    sim_disk_put(lab.sim, path, STR("something else"));
    CHECK_INT(store_blob(lab.kit.store, &blob.sha256, &lab.kit.arena, &got, NULL), E_CORRUPT);
    lab_close(&lab);
    lab_release(&lab);
}

// ---- reading

static void pages_of_every_size_from_every_place_are_the_same_events(void)
{
    enum { EVENTS = 40 };
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "r", VOCABULARY_RUN);
    struct str all[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        char step[32];
        snprintf(step, sizeof(step), "step-%d", i);
        all[i] = kit_step(&lab.kit, log, step).bytes;
    }
    store_release_run(lab.kit.store, log);
    struct arena page;
    arena_init(&page, 1 << 16, SIZE_MAX);
    for (uint64_t after = 0; after <= EVENTS + 1; after++)
        for (size_t limit = 0; limit < EVENTS + 2; limit += 1 + limit / 8) {
            struct records records;
            arena_reset(&page);
            struct record_range range = {.tenant = STR("default"), .run = STR("r"), .after = after, .limit = limit};
            CHECK_OK(store_read(lab.kit.store, &range, &page, &records, &lab.kit.err), &lab.kit.err);
            size_t want = after < EVENTS ? EVENTS - after : 0;
            CHECK_INT(records.count, want < limit ? want : limit);
            for (size_t i = 0; i < records.count; i++) {
                CHECK_INT(records.items[i].seq, after + i + 1);
                CHECK_STR(records.items[i].bytes, all[after + i]);
                CHECK_STR(records.items[i].type, STR("StepStarted"));
            }
        }
    arena_release(&page);
    lab_close(&lab);
    lab_release(&lab);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(crc_is_castagnolis_by_instruction_and_by_table),
        TEST(events_are_lines_in_a_folder_of_their_run_EL_4c),
        TEST(long_names_causes_and_numbers_come_back_as_they_were),
        TEST(names_of_every_length_fit_somewhere),
        TEST(a_second_writer_is_told_who_has_it),
        TEST(a_lock_file_that_is_removed_lets_no_second_writer_in),
        TEST(two_thousand_runs_need_no_more_descriptors_than_promised_I42),
        TEST(one_sync_stores_a_batch_of_many_runs),
        TEST(what_the_journal_holds_is_shown_although_the_run_files_are_full_I9),
        TEST(a_removal_that_is_in_the_journal_is_done_although_the_disk_is_full_S14_I9),
        TEST(broken_parts_are_refused_or_rebuilt_I10_I45),
        TEST(quarantine_ends_when_its_file_is_removed),
        TEST(signals_wait_in_order_and_are_settled_with_their_batch),
        TEST(blobs_are_whole_or_not_there),
        TEST(pages_of_every_size_from_every_place_are_the_same_events),
    };
    return test_main("store_files", tests, ARRAY_COUNT(tests), argc, argv);
}
