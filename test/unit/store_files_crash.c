// The files store on a disk that dies: whatever is cut, torn, lost or spoilt, what was acknowledged is there, batches are whole, and
// damage is told from a torn tail (S1, S2, S3, I6, I8, I9).
#include "store_files_kit.h"

enum { RANDOM_PER_POINT = 48, EXHAUSTIVE_MAX = 6 };

// Runs the workload until the disk is off. Counts what was acknowledged.
static void run_until_off(struct lab *lab, uint64_t stop_after, size_t *acked, bool *reached)
{
    struct lab_logs logs = {0};
    *acked = 0;
    sim_disk_stop_after(lab->sim, stop_after);
    enum code rc = lab_try_open(lab, STORE_WRITE, &lab->kit.store);
    if (rc == OK) {
        for (size_t i = 0; i < LAB_BATCHES; i++) {
            rc = lab_append(lab, &logs, i);
            if (rc != OK) break;
            *acked = i + 1;
        }
        lab_release_logs(lab, &logs);
        lab_close(lab);
    }
    *reached = sim_disk_stopped(lab->sim);
    if (!*reached) CHECK_INT(*acked, LAB_BATCHES);
}

// A reader that comes before the first writer sees what was acknowledged.
static void check_reader(struct lab *lab, size_t acked)
{
    enum code rc = lab_try_open(lab, STORE_READ, &lab->kit.store);
    if (rc != OK) {
        CHECK_INT(rc, E_NOT_FOUND);
        CHECK_INT(acked, 0);
        return;
    }
    CHECK(lab_held(lab) >= acked);
    lab_close(lab);
}

static enum code see_name(void *context, struct str name, bool directory)
{
    struct lab *lab = context;
    struct run_head head;
    if (!directory || name.ptr[0] == '.' || name.ptr[0] == '@') return OK;
    if (store_head(lab->kit.store, STR("default"), name, &lab->kit.arena, &head, NULL) != OK)
        test_fail(__FILE__, __LINE__, "%.*s is no run", STR_ARG(name));
    return OK;
}

static void check_survivor(struct lab *lab, size_t acked)
{
    check_reader(lab, acked);
    lab_open(lab);
    struct disk *disk = sim_disk_ops(lab->sim);
    CHECK_INT(disk->ops->list(disk, "", see_name, lab, NULL), OK); // a start that was not stored leaves nothing
    size_t held = lab_held(lab);
    CHECK(held <= LAB_BATCHES);                // S3
    CHECK(held >= acked && held <= acked + 1); // S2: at most the batch that nobody was told of
    CHECK_INT(store_recovered(lab->kit.store)->quarantined_runs, 0);
    lab_finish(lab, held);
    lab_close(lab);
    sim_disk_kill(lab->sim);
    lab_open(lab);
    CHECK_INT(lab_held(lab), LAB_BATCHES);
    lab_close(lab);
}

static void every_crash_point_leaves_a_prefix_with_all_that_was_acknowledged_I1_I6(void)
{
    struct lab lab;
    lab_init(&lab);
    struct lab_random random = {.state = 4711};
    uint64_t states = 0;
    bool reached = true;
    for (uint64_t point = 0; reached; point++) {
        struct sim_disk *fresh = sim_disk_new();
        sim_disk_free(lab.sim);
        lab.sim = fresh;
        size_t acked;
        run_until_off(&lab, point, &acked, &reached);
        struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
        if (sim_disk_unsynced(lab.sim) <= EXHAUSTIVE_MAX) {
            struct lab_odometer all = {.count = 0};
            do {
                sim_disk_restore(lab.sim, image);
                sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_next, &all},
                               SIM_LOSE | SIM_LOSE_NAMES | SIM_ZEROS);
                check_survivor(&lab, acked);
                states++;
            } while (lab_advance(&all));
        }
        for (int i = 0; i < RANDOM_PER_POINT; i++) {
            sim_disk_restore(lab.sim, image);
            if (i == 0)
                sim_disk_kill(lab.sim);
            else if (i == 1)
                sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
            else
                sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_random, &random},
                               i % 2 ? SIM_CRASH_ALL : SIM_LOSE | SIM_LOSE_NAMES | SIM_TEAR_BYTES);
            check_survivor(&lab, acked);
            states++;
        }
        sim_snapshot_free(image);
    }
    printf("# %llu crash states\n", (unsigned long long)states);
    lab_release(&lab);
}

// The second crash comes while recovery is at work, at each of its operations.
static void a_second_crash_during_recovery_changes_nothing_I6(void)
{
    struct lab lab;
    lab_init(&lab);
    struct lab_random random = {.state = 815};
    uint64_t states = 0;
    bool reached = true;
    for (uint64_t point = 1; reached; point += 3) {
        sim_disk_free(lab.sim);
        lab.sim = sim_disk_new();
        size_t acked;
        run_until_off(&lab, point, &acked, &reached);
        sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_random, &random}, SIM_CRASH_ALL);
        struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
        bool again = true;
        for (uint64_t second = 0; again; second++) {
            sim_disk_restore(lab.sim, image);
            sim_disk_stop_after(lab.sim, second);
            struct store *store = NULL;
            enum code rc = lab_try_open(&lab, STORE_WRITE, &store);
            again = sim_disk_stopped(lab.sim);
            CHECK(rc == OK || again);
            store_close(store);
            sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_random, &random}, SIM_CRASH_ALL);
            check_survivor(&lab, acked);
            states++;
        }
        sim_snapshot_free(image);
    }
    printf("# %llu double crashes\n", (unsigned long long)states);
    lab_release(&lab);
}

// A tiny journal is reused at every batch, so that crashes meet every moment of it.
static void crashes_while_the_journal_is_reused_lose_nothing_I1(void)
{
    struct lab lab;
    lab_init(&lab);
    lab.journal_size = 3 * 4096;
    struct lab_random random = {.state = 99};
    bool reached = true;
    for (uint64_t point = 0; reached; point++) {
        sim_disk_free(lab.sim);
        lab.sim = sim_disk_new();
        size_t acked;
        run_until_off(&lab, point, &acked, &reached);
        struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
        for (int i = 0; i < RANDOM_PER_POINT; i++) {
            sim_disk_restore(lab.sim, image);
            sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_random, &random}, SIM_CRASH_ALL);
            check_survivor(&lab, acked);
        }
        sim_snapshot_free(image);
    }
    lab_release(&lab);
}

// ---- faults

// The workload; a batch that finds no space is tried again after the disk is healed.
static void run_with_fault(struct lab *lab, struct sim_fault fault, bool *hit)
{
    struct lab_logs logs = {0};
    sim_disk_fault(lab->sim, fault);
    bool again = true;
    *hit = false;
    enum code rc = lab_try_open(lab, STORE_WRITE, &lab->kit.store);
    if (rc != OK) {
        CHECK_INT(rc, E_FULL);
        *hit = true;
        sim_disk_heal(lab->sim);
        lab_open(lab);
    }
    for (size_t i = 0; i < LAB_BATCHES; i++) {
        rc = lab_append(lab, &logs, i);
        if (rc == E_FULL && again) {
            CHECK_INT(lab_held(lab), i); // nothing of it is there, and reading goes on
            CHECK(lab_append(lab, &logs, i) == E_FULL || fault.count > 0 || !sim_disk_fault_hit(lab->sim));
            again = false;
            *hit = true;
            sim_disk_heal(lab->sim);
            if (lab_held(lab) == i) i--;
            continue;
        }
        CHECK_OK(rc, &lab->kit.err);
    }
    *hit = *hit || sim_disk_fault_hit(lab->sim);
    sim_disk_heal(lab->sim);
    CHECK_INT(lab_held(lab), LAB_BATCHES);
    lab_release_logs(lab, &logs);
    lab_close(lab);
}

static void a_full_disk_is_survived_wherever_it_comes_I9(void)
{
    static const enum sim_call calls[] = {SIM_WRITE, SIM_OPEN, SIM_NAME};
    struct lab lab;
    lab_init(&lab);
    for (size_t call = 0; call < ARRAY_COUNT(calls); call++)
        for (uint64_t count = 0; count < 3; count++) {
            bool hit = true;
            for (uint64_t at = 1; hit; at++) {
                sim_disk_free(lab.sim);
                lab.sim = sim_disk_new();
                lab.journal_size = at % 2 ? SMALL_JOURNAL : 3 * 4096;
                run_with_fault(&lab, (struct sim_fault){.call = calls[call], .at = at, .count = count, .code = E_FULL},
                               &hit);
                sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
                lab_open(&lab);
                CHECK_INT(lab_held(&lab), LAB_BATCHES);
                lab_close(&lab);
            }
        }
    lab_release(&lab);
}

// On a new disk, batch after batch until one is refused.
static enum code append_until(struct lab *lab, struct sim_fault fault, struct lab_logs *logs, size_t *acked)
{
    sim_disk_free(lab->sim);
    lab->sim = sim_disk_new();
    sim_disk_fault(lab->sim, fault);
    enum code rc = lab_try_open(lab, STORE_WRITE, &lab->kit.store);
    for (*acked = 0; rc == OK && *acked < LAB_BATCHES;) {
        rc = lab_append(lab, logs, *acked);
        if (rc == OK) ++*acked;
    }
    return rc;
}

// E_FULL said that nothing was stored: then nothing is, even when the process dies the next moment.
static void a_batch_that_found_no_space_does_not_come_back_S10(void)
{
    struct lab lab;
    lab_init(&lab);
    bool hit = true;
    for (uint64_t at = 1; hit; at++) {
        struct lab_logs logs = {0};
        size_t acked;
        enum code rc =
            append_until(&lab, (struct sim_fault){.call = SIM_WRITE, .at = at, .code = E_FULL}, &logs, &acked);
        hit = sim_disk_fault_hit(lab.sim);
        CHECK(rc == (hit ? E_FULL : OK) || acked == LAB_BATCHES); // the last one may wait in the journal
        if (lab.kit.store) lab_release_logs(&lab, &logs);
        sim_disk_stop_after(lab.sim, 0);
        lab_close(&lab);
        sim_disk_heal(lab.sim);
        sim_disk_kill(lab.sim);
        lab_open(&lab);
        CHECK_INT(lab_held(&lab), acked);
        lab_finish(&lab, acked);
        lab_close(&lab);
    }
    lab_release(&lab);
}

static void a_failed_sync_ends_the_store_and_what_it_covered_is_proven_anew_I8(void)
{
    struct lab lab;
    lab_init(&lab);
    bool hit = true;
    for (uint64_t at = 1; hit; at++) {
        struct lab_logs logs = {0};
        size_t acked;
        lab.journal_size = at % 2 ? SMALL_JOURNAL : 3 * 4096;
        enum code rc =
            append_until(&lab, (struct sim_fault){.call = SIM_SYNC, .at = at, .count = 1, .code = E_IO}, &logs, &acked);
        hit = sim_disk_fault_hit(lab.sim);
        CHECK_INT(rc, hit ? E_IO : OK);
        if (lab.kit.store && hit) {
            // The disk is fine again, but this store is not: it may not say otherwise.
            CHECK_INT(lab_append(&lab, &logs, acked), E_IO);
        }
        if (lab.kit.store) lab_release_logs(&lab, &logs);
        lab_close(&lab);
        sim_disk_heal(lab.sim);
        sim_disk_kill(lab.sim);
        lab_open(&lab);
        size_t held = lab_held(&lab);
        CHECK(held >= acked && held <= acked + 1);
        lab_close(&lab);
        // What was shown after the restart does not vanish, although the cache had it from a failed sync.
        sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
        lab_open(&lab);
        CHECK_INT(lab_held(&lab), held);
        lab_close(&lab);
    }
    lab_release(&lab);
}

static void errors_of_reading_and_writing_never_make_wrong_data(void)
{
    static const enum sim_call calls[] = {SIM_WRITE, SIM_OPEN, SIM_READ, SIM_NAME};
    struct lab lab;
    lab_init(&lab);
    for (size_t call = 0; call < ARRAY_COUNT(calls); call++) {
        bool hit = true;
        for (uint64_t at = 1; hit; at++) {
            struct lab_logs logs = {0};
            size_t acked;
            struct sim_fault fault = {.call = calls[call], .at = at, .count = at % 2, .code = E_IO};
            enum code rc = append_until(&lab, fault, &logs, &acked);
            hit = sim_disk_fault_hit(lab.sim);
            CHECK(rc == OK || hit);
            if (lab.kit.store) lab_release_logs(&lab, &logs);
            lab_close(&lab);
            sim_disk_heal(lab.sim);
            sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
            check_survivor(&lab, acked);
        }
    }
    lab_release(&lab);
}

// ---- damage

static struct str copy_of(struct lab *lab, const char *path)
{
    struct str now;
    CHECK(sim_disk_get(lab->sim, path, &now));
    struct str copy = arena_copy(&lab->kit.arena, now);
    CHECK(copy.ptr);
    return copy;
}

// Snapshots before and after the last batch, as it is right after the journal was written.
static void write_last_frame(struct lab *lab, struct str *before, struct str *after, size_t *from, size_t *to)
{
    struct lab_logs logs = {0};
    lab_open(lab);
    for (size_t i = 0; i + 1 < LAB_BATCHES; i++) CHECK_OK(lab_append(lab, &logs, i), &lab->kit.err);
    // The last batch makes one more file before its frame.
    *before = copy_of(lab, ".cairn/journal");
    sim_disk_fault(lab->sim, (struct sim_fault){.call = SIM_SYNC, .at = 1, .count = 1, .code = E_IO});
    CHECK_INT(lab_append(lab, &logs, LAB_BATCHES - 1), E_IO);
    sim_disk_heal(lab->sim);
    *after = copy_of(lab, ".cairn/journal");
    lab_release_logs(lab, &logs);
    lab_close(lab);
    CHECK_INT(before->len, after->len);
    for (*from = 0; before->ptr[*from] == after->ptr[*from];) (*from)++;
    *from = *from / 4096 * 4096;
    for (*to = after->len; before->ptr[*to - 1] == after->ptr[*to - 1];) (*to)--;
}

static void a_frame_torn_at_any_byte_is_no_frame_I6(void)
{
    struct lab lab;
    lab_init(&lab);
    struct str before, after;
    size_t from, to;
    write_last_frame(&lab, &before, &after, &from, &to);
    struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
    char *torn = arena_alloc(&lab.kit.arena, after.len);
    CHECK(torn);
    for (size_t cut = from; cut <= to; cut++) {
        memcpy(torn, after.ptr, after.len);
        memcpy(torn + cut, before.ptr + cut, after.len - cut);
        sim_disk_restore(lab.sim, image);
        sim_disk_put(lab.sim, ".cairn/journal", (struct str){torn, after.len});
        lab_open(&lab);
        CHECK_INT(lab_held(&lab), cut == to ? LAB_BATCHES : LAB_BATCHES - 1);
        const struct store_recovery *recovery = store_recovered(lab.kit.store);
        CHECK_INT(recovery->replayed_batches, cut == to ? LAB_BATCHES : LAB_BATCHES - 1);
        if (cut >= from + 24 && cut < to) CHECK(recovery->torn_bytes > 0 && recovery->side_file.len > 0);
        CHECK_INT(recovery->quarantined_runs, 0);
        if (cut % 64 == 0) lab_finish(&lab, lab_held(&lab));
        lab_close(&lab);
    }
    sim_snapshot_free(image);
    lab_release(&lab);
}

static void run_all(struct lab *lab)
{
    struct lab_logs logs = {0};
    lab_open(lab);
    for (size_t i = 0; i < LAB_BATCHES; i++) CHECK_OK(lab_append(lab, &logs, i), &lab->kit.err);
    lab_release_logs(lab, &logs);
    lab_close(lab);
}

static size_t frame_at(struct str journal, size_t number)
{
    size_t at = 2 * 4096;
    for (; number > 0; number--) {
        uint32_t size;
        memcpy(&size, journal.ptr + at + 24, sizeof(size));
        at += (size + 4 + 4095) / 4096 * 4096;
    }
    return at;
}

static void flip_bit(struct lab *lab, const char *path, struct str bytes, size_t bit)
{
    char *copy = malloc(bytes.len);
    CHECK(copy != NULL);
    memcpy(copy, bytes.ptr, bytes.len);
    copy[bit / 8] = (char)((uint8_t)copy[bit / 8] ^ 1u << bit % 8);
    sim_disk_put(lab->sim, path, (struct str){copy, bytes.len});
    free(copy);
}

static void any_flipped_bit_of_a_frame_is_found_I6(void)
{
    struct lab lab;
    lab_init(&lab);
    run_all(&lab);
    struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
    struct str journal = copy_of(&lab, ".cairn/journal");
    size_t first = frame_at(journal, 0), last = frame_at(journal, LAB_BATCHES - 1),
           end = frame_at(journal, LAB_BATCHES);
    CHECK(end > last && last > first);
    for (size_t bit = first * 8; bit < end * 8; bit += bit < last * 8 ? 1009 : 3) {
        sim_disk_restore(lab.sim, image);
        flip_bit(&lab, ".cairn/journal", journal, bit);
        struct store *store = NULL;
        enum code rc = lab_try_open(&lab, STORE_WRITE, &store);
        if (bit < last * 8) {
            CHECK_INT(rc, E_CORRUPT); // a later frame is whole
            continue;
        }
        // The slots of four runs tell of a batch that the journal has lost.
        CHECK_OK(rc, &lab.kit.err);
        CHECK_INT(store_recovered(store)->quarantined_runs, 4);
        struct run_log *log;
        CHECK_INT(store_claim_run(store, STR("default"), STR("a"), &log, NULL), E_CORRUPT);
        store_close(store);
        CHECK_OK(lab_try_open(&lab, STORE_WRITE, &store), &lab.kit.err); // and it stays so
        CHECK_INT(store_recovered(store)->quarantined_runs, 4);
        store_close(store);
    }
    sim_snapshot_free(image);
    lab_release(&lab);
}

static void damage_to_one_slot_stops_one_run_only(void)
{
    struct lab lab;
    lab_init(&lab);
    lab.journal_size = 3 * 4096; // only the last batch is still in the journal
    run_all(&lab);
    lab_open(&lab);
    struct run_log *log = kit_claim(&lab.kit, "a");
    kit_step(&lab.kit, log, "one-more");
    store_release_run(lab.kit.store, log);
    lab_close(&lab);
    struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
    struct str runs = copy_of(&lab, ".cairn/runs");
    for (size_t bit = 512 * 8; bit < 2 * 512 * 8; bit++) {
        sim_disk_restore(lab.sim, image);
        flip_bit(&lab, ".cairn/runs", runs, bit);
        lab_open(&lab);
        CHECK_INT(store_recovered(lab.kit.store)->quarantined_runs, 1);
        enum code rc = store_claim_run(lab.kit.store, STR("acme"), STR("b"), &log, NULL);
        CHECK_INT(rc, E_CORRUPT);
        log = kit_claim(&lab.kit, "a");
        kit_step(&lab.kit, log, "yet-another");
        store_release_run(lab.kit.store, log);
        lab_close(&lab);
    }
    sim_snapshot_free(image);
    lab_release(&lab);
}

static void a_run_file_cut_anywhere_is_mended_from_the_journal_or_quarantined_I6(void)
{
    for (int in_journal = 0; in_journal < 2; in_journal++) {
        struct lab lab;
        lab_init(&lab);
        if (!in_journal) lab.journal_size = 3 * 4096;
        run_all(&lab);
        if (!in_journal) { // another run pushes the last batch out of the journal
            lab_open(&lab);
            struct run_log *log = kit_create(&lab.kit, "other", VOCABULARY_RUN);
            kit_step(&lab.kit, log, "x");
            store_release_run(lab.kit.store, log);
            lab_close(&lab);
        }
        struct sim_snapshot *image = sim_disk_snapshot(lab.sim);
        struct str events = copy_of(&lab, "a/events.jsonl");
        for (size_t cut = 0; cut < events.len; cut += 1 + cut % 5) {
            sim_disk_restore(lab.sim, image);
            sim_disk_put(lab.sim, "a/events.jsonl", str_slice(events, 0, cut));
            lab_open(&lab);
            struct run_log *log = NULL;
            enum code rc = store_claim_run(lab.kit.store, STR("default"), STR("a"), &log, NULL);
            CHECK_INT(rc, in_journal ? OK : E_CORRUPT);
            if (log) store_release_run(lab.kit.store, log);
            if (in_journal) CHECK_STR(copy_of(&lab, "a/events.jsonl"), events);
            lab_close(&lab);
        }
        sim_snapshot_free(image);
        lab_release(&lab);
    }
}

static void bytes_after_the_last_event_are_cut_off_and_kept_I6(void)
{
    struct lab lab;
    lab_init(&lab);
    run_all(&lab);
    struct str events = copy_of(&lab, "a/events.jsonl");
    struct buf longer;
    buf_init(&longer, 1 << 20);
    buf_add(&longer, events);
    buf_text(&longer, "half a li");
    sim_disk_put(lab.sim, "a/events.jsonl", buf_str(&longer));
    lab_open(&lab);
    CHECK_INT(store_recovered(lab.kit.store)->torn_bytes, 9);
    CHECK(str_ends(store_recovered(lab.kit.store)->side_file, STR("-events.jsonl")));
    CHECK_INT(lab_held(&lab), LAB_BATCHES);
    CHECK_STR(copy_of(&lab, "a/events.jsonl"), events);
    lab_close(&lab);
    buf_release(&longer);
    lab_release(&lab);
}

static void the_journal_is_reused_many_times_over(void)
{
    struct lab lab;
    lab_init(&lab);
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "long", VOCABULARY_RUN);
    for (int i = 0; i < 1500; i++) {
        char step[32];
        snprintf(step, sizeof(step), "s%d", i);
        CHECK_INT(kit_step(&lab.kit, log, step).seq, i + 1);
        if (i % 211 == 0) {
            store_release_run(lab.kit.store, log);
            lab_close(&lab);
            sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
            lab_open(&lab);
            log = kit_claim(&lab.kit, "long");
            CHECK_INT(run_log_last_seq(log), i + 1);
        }
    }
    store_release_run(lab.kit.store, log);
    kit_check_sound(&lab.kit);
    struct str journal;
    CHECK(sim_disk_get(lab.sim, ".cairn/journal", &journal));
    CHECK_INT(journal.len, SMALL_JOURNAL);
    lab_close(&lab);
    lab_release(&lab);
}

static void a_batch_larger_than_the_journal_is_stored_too(void)
{
    struct lab lab;
    lab_init(&lab);
    lab.journal_size = 3 * 4096;
    lab_open(&lab);
    struct run_log *log = kit_create(&lab.kit, "r", VOCABULARY_RUN);
    enum { MANY = 60 };
    struct append_item items[MANY];
    struct moment moments[MANY];
    char steps[MANY][32];
    for (int i = 0; i < MANY; i++) {
        snprintf(steps[i], sizeof(steps[i]), "s%d", i);
        moments[i] = kit_moment(MOMENT_STEP_STARTED, steps[i], 1);
        items[i] = (struct append_item){.log = log, .moment = &moments[i]};
    }
    struct store_batch batch = {.items = items, .item_count = MANY};
    CHECK_OK(store_append(lab.kit.store, &batch, KIT_NOW, &lab.kit.arena, &lab.kit.err), &lab.kit.err);
    store_release_run(lab.kit.store, log);
    lab_close(&lab);
    sim_disk_crash(lab.sim, (struct sim_choice){lab_pick_worst, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
    lab_open(&lab);
    CHECK_INT(kit_read(&lab.kit, "r").count, MANY);
    kit_check_sound(&lab.kit);
    lab_close(&lab);
    lab_release(&lab);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_crash_point_leaves_a_prefix_with_all_that_was_acknowledged_I1_I6),
        TEST(a_second_crash_during_recovery_changes_nothing_I6),
        TEST(crashes_while_the_journal_is_reused_lose_nothing_I1),
        TEST(a_full_disk_is_survived_wherever_it_comes_I9),
        TEST(a_batch_that_found_no_space_does_not_come_back_S10),
        TEST(a_failed_sync_ends_the_store_and_what_it_covered_is_proven_anew_I8),
        TEST(errors_of_reading_and_writing_never_make_wrong_data),
        TEST(a_frame_torn_at_any_byte_is_no_frame_I6),
        TEST(any_flipped_bit_of_a_frame_is_found_I6),
        TEST(damage_to_one_slot_stops_one_run_only),
        TEST(a_run_file_cut_anywhere_is_mended_from_the_journal_or_quarantined_I6),
        TEST(bytes_after_the_last_event_are_cut_off_and_kept_I6),
        TEST(the_journal_is_reused_many_times_over),
        TEST(a_batch_larger_than_the_journal_is_stored_too),
    };
    return test_main("store_files_crash", tests, ARRAY_COUNT(tests), argc, argv);
}
