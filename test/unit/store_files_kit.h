// What the tests of the files store share: a simulated disk, a small workload whose every prefix is known, and the question whether a
// store holds one of these prefixes.
#ifndef CAIRN_TEST_UNIT_STORE_FILES_KIT_H
#define CAIRN_TEST_UNIT_STORE_FILES_KIT_H

#include "conformance/store_kit.h"
#include "trial/disk.h"

#include <dirent.h>
#include <stdlib.h>

#define URL "files:/sim"
#define SMALL_JOURNAL (64u << 10)

struct lab {
    struct kit kit;
    struct sim_disk *sim;
    struct entropy entropy; // a counter: the same ids every time
    uint64_t journal_size;
    bool keep_arena;
};

static inline void lab_fill(struct entropy *entropy UNUSED, void *bytes, size_t size)
{
    static uint64_t counter;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)((counter = counter * 6364136223846793005u + 1442695040888963407u) >> 56);
}

static inline void lab_init(struct lab *lab)
{
    *lab = (struct lab){.entropy = {.fill = lab_fill}, .journal_size = SMALL_JOURNAL};
    kit_init(&lab->kit);
    lab->sim = sim_disk_new();
    os_log_level(LOG_ERROR);
}

static inline enum code lab_try_open(struct lab *lab, enum store_mode mode, struct store **out)
{
    struct store_options options = {
        .mode = mode,
        .create = mode == STORE_WRITE,
        .contract = lab->kit.contract,
        .entropy = &lab->entropy,
        .disk = sim_disk_ops(lab->sim),
        .journal_size = lab->journal_size,
    };
    lab->kit.err = (struct error){0};
    return store_open(STR(URL), &options, out, &lab->kit.err);
}

static inline void lab_open(struct lab *lab)
{
    CHECK_OK(lab_try_open(lab, STORE_WRITE, &lab->kit.store), &lab->kit.err);
}

static inline void lab_close(struct lab *lab)
{
    store_close(lab->kit.store);
    lab->kit.store = NULL;
}

static inline void lab_release(struct lab *lab)
{
    kit_release(&lab->kit);
    sim_disk_free(lab->sim);
}

// ---- a workload of batches over four runs

enum { LAB_RUNS = 4, LAB_BATCHES = 6 };

static const char *const lab_runs[LAB_RUNS] = {"a", "b", "7c9e6679-7425-40de-944b-e07fc1f90ae7",
                                               "a-run-whose-name-is-so-long-that-it-does-not-fit-into-its-slot-and-"
                                               "goes-to-the-file-of-names-instead-of-it-as-it-should"};

// Events and ledger entries that each batch brings to each run.
static const struct {
    uint8_t events[LAB_RUNS], ledger[LAB_RUNS];
} lab_batches[LAB_BATCHES] = {
    {.events = {1, 1}, .ledger = {1}},
    {.events = {2}, .ledger = {0, 1}},
    {.events = {0, 1, 0, 1}},
    {.events = {1, 0, 2, 1}, .ledger = {1, 0, 0, 1}},
    {.events = {0, 3}},
    {.events = {1, 1, 1, 1}, .ledger = {1, 1, 1, 1}},
};

struct lab_logs {
    struct run_log *log[LAB_RUNS];
    uint32_t steps[LAB_RUNS];
};

// The sum over the first `count` batches.
static inline uint64_t lab_expect(size_t count, size_t run, bool ledger)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += ledger ? lab_batches[i].ledger[run] : lab_batches[i].events[run];
    return sum;
}

static inline enum code lab_log(struct lab *lab, struct lab_logs *logs, size_t run)
{
    if (logs->log[run]) return OK;
    struct run_create create = kit_run(run == 1 ? "acme" : "default", lab_runs[run], VOCABULARY_RUN);
    enum code rc = store_create_run(lab->kit.store, &create, &logs->log[run], &lab->kit.err);
    if (rc != E_EXISTS) return rc;
    lab->kit.err = (struct error){0};
    return store_claim_run(lab->kit.store, create.ids.tenant, create.ids.run, &logs->log[run], &lab->kit.err);
}

// Appends batch `number`; the runs it needs are created when they are not there.
static inline enum code lab_append(struct lab *lab, struct lab_logs *logs, size_t number)
{
    struct append_item items[64];
    struct moment moments[64];
    char steps[64][32];
    size_t count = 0;
    struct arena turn;
    lab->kit.err = (struct error){0};
    arena_init(&turn, 16 * 1024, SIZE_MAX);
    enum code rc = OK;
    for (size_t run = 0; rc == OK && run < LAB_RUNS; run++) {
        size_t events = lab_batches[number].events[run], ledger = lab_batches[number].ledger[run];
        if (events + ledger > 0) rc = lab_log(lab, logs, run);
        for (size_t i = 0; rc == OK && i < events + ledger; i++, count++) {
            snprintf(steps[count], sizeof(steps[count]), "b%zu-%zu", number, i);
            moments[count] = kit_moment(i < events ? MOMENT_STEP_STARTED : MOMENT_LATE_RESULT, steps[count], 1);
            items[count] = (struct append_item){.log = logs->log[run], .moment = &moments[count]};
        }
    }
    struct store_batch batch = {.items = items, .item_count = count};
    if (rc == OK) rc = store_append(lab->kit.store, &batch, KIT_NOW, &turn, &lab->kit.err);
    arena_release(&turn);
    return rc;
}

static inline void lab_release_logs(struct lab *lab, struct lab_logs *logs)
{
    for (size_t run = 0; run < LAB_RUNS; run++)
        if (logs->log[run]) store_release_run(lab->kit.store, logs->log[run]);
    *logs = (struct lab_logs){0};
}

// How many batches the open store holds; LAB_BATCHES + 1 when it holds half of one.
static inline size_t lab_held(struct lab *lab)
{
    uint64_t events[LAB_RUNS] = {0}, ledger[LAB_RUNS] = {0};
    struct arena arena;
    arena_init(&arena, 16 * 1024, SIZE_MAX);
    for (size_t run = 0; run < LAB_RUNS; run++) {
        struct run_head head;
        struct error err = {0};
        enum code rc = store_head(lab->kit.store, run == 1 ? STR("acme") : STR("default"), str_from(lab_runs[run]),
                                  &arena, &head, &err);
        if (rc == E_NOT_FOUND) continue;
        CHECK_OK(rc, &err);
        events[run] = head.last_seq;
        ledger[run] = head.last_ledger_seq;
    }
    struct verify_report report;
    struct error err = {0};
    CHECK_OK(store_verify(lab->kit.store, STR(""), STR(""), &arena, &report, &err), &err);
    if (report.fault_count > 0)
        test_fail(__FILE__, __LINE__, "run %.*s event %llu: %.*s", STR_ARG(report.faults[0].run),
                  (unsigned long long)report.faults[0].seq, STR_ARG(report.faults[0].what));
    arena_release(&arena);
    for (size_t count = 0; count <= LAB_BATCHES; count++) {
        bool same = true;
        for (size_t run = 0; run < LAB_RUNS; run++)
            same = same && events[run] == lab_expect(count, run, false) && ledger[run] == lab_expect(count, run, true);
        if (same) return count;
    }
    return LAB_BATCHES + 1;
}

// All batches from the first that is missing; each must be stored.
static inline void lab_finish(struct lab *lab, size_t from)
{
    struct lab_logs logs = {0};
    for (size_t i = from; i < LAB_BATCHES; i++) CHECK_OK(lab_append(lab, &logs, i), &lab->kit.err);
    lab_release_logs(lab, &logs);
    CHECK_INT(lab_held(lab), LAB_BATCHES);
}

// ---- choices

struct lab_random {
    uint64_t state;
};

static inline uint32_t lab_pick_random(void *context, uint32_t n)
{
    struct lab_random *random = context;
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random->state >> 33) % n);
}

// Walks every vector of choices.
struct lab_odometer {
    uint32_t digits[64], limits[64];
    size_t count, at;
};

static inline uint32_t lab_pick_next(void *context, uint32_t n)
{
    struct lab_odometer *odometer = context;
    CHECK(odometer->at < ARRAY_COUNT(odometer->digits));
    if (odometer->at == odometer->count) odometer->digits[odometer->count++] = 0;
    odometer->limits[odometer->at] = n;
    return odometer->digits[odometer->at++];
}

// False when all were walked.
static inline bool lab_advance(struct lab_odometer *odometer)
{
    odometer->at = 0;
    while (odometer->count > 0) {
        if (++odometer->digits[odometer->count - 1] < odometer->limits[odometer->count - 1]) return true;
        odometer->count--;
    }
    return false;
}

static inline uint32_t lab_pick_worst(void *context UNUSED, uint32_t n)
{
    return n > 1 ? 1 : 0; // lost, where that is possible
}

// ---- a store on the real disk

static inline const char *real_url(void)
{
    static char url[600];
    snprintf(url, sizeof(url), "files:%s/store", test_dir());
    return url;
}

static inline const char *real_path(const char *below)
{
    static char path[2048];
    snprintf(path, sizeof(path), "%s/store/%s", test_dir(), below);
    return path;
}

static inline void open_real(struct kit *kit, enum store_mode mode)
{
    struct store_options options = kit_options(kit, mode);
    options.journal_size = 1 << 20;
    os_log_level(LOG_ERROR);
    CHECK_OK(store_open(str_from(real_url()), &options, &kit->store, &kit->err), &kit->err);
}

static inline void start_real(struct kit *kit)
{
    kit_init(kit);
    open_real(kit, STORE_WRITE);
}

static inline void reopen_real(struct kit *kit, enum store_mode mode)
{
    store_close(kit->store);
    open_real(kit, mode);
}

static inline size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    size_t count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) count++;
    closedir(dir);
    return count;
}

#endif
