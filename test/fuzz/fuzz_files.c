// Arbitrary bytes in place of, or patched into, a file of a files store. Whatever they are: no crash; opening either refuses or gives a
// store in which every run is what was stored, a part of it, or known to be damaged; and opening it again changes nothing more.
//
// The first byte chooses the file (bits 0-2), whether the rest replaces it or is a list of patches (bit 3), and whether checksums are
// made right afterwards, so that the code behind them is reached (bit 4). A patch: offset (2 bytes), length (1), bytes.

#include "store/files.h"
#include "trial/disk.h"

#include <stdlib.h>
#include <string.h>

#define RUN_COUNT 3

static const char *const paths[8] = {".cairn/journal", ".cairn/runs",  "a/events.jsonl", "a/ledger.jsonl",
                                     ".cairn/index",   ".cairn/names", ".cairn/VERSION", ".cairn/quarantine/run-1"};
static const char *const runs[RUN_COUNT] = {
    "a", "b",
    "a-name-that-does-not-fit-into-a-slot-because-it-is-much-longer-than-anybody-would-like-to-type-it-twice"};

static struct arena forever;
static const struct contract *contract;
static struct sim_disk *sim;
static struct sim_snapshot *image;
static struct records original[RUN_COUNT];

static void count_up(struct entropy *entropy UNUSED, void *bytes, size_t size)
{
    static uint8_t next;
    for (size_t i = 0; i < size; i++) ((uint8_t *)bytes)[i] = next++;
}

static enum code open_store(enum store_mode mode, struct store **out)
{
    static struct entropy entropy = {.fill = count_up};
    struct store_options options = {.mode = mode,
                                    .create = mode == STORE_WRITE,
                                    .contract = contract,
                                    .entropy = &entropy,
                                    .disk = sim_disk_ops(sim),
                                    .journal_size = 32 << 10};
    *out = NULL;
    return store_open(STR("files:/sim"), &options, out, NULL);
}

static void append(struct store *store, struct run_log **logs, const char *step)
{
    struct moment moments[2 * RUN_COUNT];
    struct append_item items[2 * RUN_COUNT];
    for (size_t i = 0; i < 2 * RUN_COUNT; i++) {
        moments[i] = (struct moment){.kind = i < RUN_COUNT ? MOMENT_STEP_STARTED : MOMENT_LATE_RESULT,
                                     .by = EMITTER_ENGINE,
                                     .step = str_from(step),
                                     .logical = 1,
                                     .engine = 1,
                                     .at_ms = 1770829200000};
        items[i] = (struct append_item){.log = logs[i % RUN_COUNT], .moment = &moments[i]};
    }
    struct store_batch batch = {.items = items, .item_count = 2 * RUN_COUNT};
    struct arena turn;
    arena_init(&turn, 16 << 10, SIZE_MAX);
    INVARIANT(store_append(store, &batch, 1770829200000, &turn, NULL) == OK);
    arena_release(&turn);
}

static void make_original(void)
{
    struct run_log *logs[RUN_COUNT];
    struct store *store;
    arena_init(&forever, 64 << 10, SIZE_MAX);
    INVARIANT(contract_open(&forever, &contract, NULL) == OK);
    os_log_level((enum log_level)0);
    sim = sim_disk_new();
    INVARIANT(open_store(STORE_WRITE, &store) == OK);
    for (size_t i = 0; i < RUN_COUNT; i++) {
        struct run_create create = {.ids = {.tenant = STR("default"),
                                            .project = STR("p"),
                                            .environment = STR("e"),
                                            .run = str_from(runs[i]),
                                            .plan_id = STR("plan"),
                                            .plan_version = STR("1")},
                                    .vocabulary = VOCABULARY_RUN};
        INVARIANT(store_create_run(store, &create, &logs[i], NULL) == OK);
    }
    static const char *const steps[] = {"s1", "s2", "s3", "s4", "s5", "s6", "s7"};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) append(store, logs, steps[i]);
    for (size_t i = 0; i < RUN_COUNT; i++) {
        store_release_run(store, logs[i]);
        struct record_range range = {.tenant = STR("default"), .run = str_from(runs[i]), .limit = SIZE_MAX};
        INVARIANT(store_read(store, &range, &forever, &original[i], NULL) == OK);
    }
    store_close(store);
    image = sim_disk_snapshot(sim);
}

static void seal_all(const char *path, uint8_t *bytes, size_t size)
{
    if (strcmp(path, ".cairn/runs") == 0)
        for (size_t at = 0; at + SLOT_SIZE <= size; at += SLOT_SIZE) {
            struct disk_slot slot;
            memcpy(&slot, bytes + at, SLOT_SIZE);
            slot_seal(&slot);
            memcpy(bytes + at, &slot, SLOT_SIZE);
        }
    if (strcmp(path, ".cairn/journal") != 0) return;
    for (size_t at = JOURNAL_FRAMES; at + BLOCK_SIZE <= size; at += BLOCK_SIZE) {
        struct frame_header header;
        memcpy(&header, bytes + at, sizeof(header));
        uint64_t whole = ((uint64_t)header.size + sizeof(uint32_t) + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
        if (header.magic != FRAME_MAGIC || at + whole > size) continue;
        size_t slot_at = at + sizeof(header) + sizeof(struct frame_run);
        if (slot_at + SLOT_SIZE <= at + whole && header.inbox_count == 0) {
            struct disk_slot slot;
            memcpy(&slot, bytes + slot_at, SLOT_SIZE);
            slot_seal(&slot);
            memcpy(bytes + slot_at, &slot, SLOT_SIZE);
        }
        uint32_t crc = crc32c(0, bytes + at, whole - sizeof(crc));
        memcpy(bytes + at + whole - sizeof(crc), &crc, sizeof(crc));
    }
}

static void damage(uint8_t how, const uint8_t *data, size_t size)
{
    const char *path = paths[how & 7];
    struct str now = {"", 0};
    bool replace = (how & 8) == 0 || !sim_disk_get(sim, path, &now);
    size_t room = replace ? size : now.len;
    uint8_t *bytes = malloc(room + 1);
    INVARIANT(bytes != NULL);
    if (room > 0) memcpy(bytes, replace ? data : (const uint8_t *)now.ptr, room);
    while (!replace && size >= 4 && room > 0) {
        size_t at = ((size_t)data[0] | (size_t)data[1] << 8) % room, len = data[2];
        data += 3;
        size -= 3;
        if (len > size) len = size;
        if (len > room - at) len = room - at;
        memcpy(bytes + at, data, len);
        data += len;
        size -= len;
    }
    if (how & 16) seal_all(path, bytes, room);
    sim_disk_put(sim, path, (struct str){(const char *)bytes, room});
    free(bytes);
}

// All runs as a number; with `strict`, a run without faults must be a prefix of what was stored.
static uint64_t look(struct store *store, bool strict)
{
    struct arena arena;
    struct verify_report report;
    struct run_heads heads;
    struct run_filter filter = {.limit = 100};
    uint64_t hash = 1;
    arena_init(&arena, 64 << 10, (size_t)256 << 20);
    enum code verified = store_verify(store, STR(""), STR(""), &arena, &report, NULL);
    (void)!store_list(store, &filter, &arena, &heads, NULL);
    for (size_t i = 0; i < RUN_COUNT; i++) {
        struct records events, ledger;
        bool sound = verified == OK && report.fault_count == 0;
        struct record_range range = {.tenant = STR("default"), .run = str_from(runs[i]), .limit = SIZE_MAX};
        enum code rc = store_read(store, &range, &arena, &events, NULL);
        range.ledger = true;
        (void)!store_read(store, &range, &arena, &ledger, NULL);
        hash = hash * 31 + (uint64_t)rc;
        for (size_t k = 0; rc == OK && k < events.count; k++) {
            hash = hash * 31 + str_hash(events.items[k].bytes);
            if (strict && sound)
                INVARIANT(k < original[i].count && str_eq(events.items[k].bytes, original[i].items[k].bytes));
        }
    }
    arena_release(&arena);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!sim) make_original();
    if (size == 0) return 0;
    uint64_t seen[2] = {0};
    struct store *store;
    sim_disk_restore(sim, image);
    damage(data[0], data + 1, size - 1);
    if (open_store(STORE_READ, &store) == OK) (void)look(store, false);
    store_close(store);
    enum code first = open_store(STORE_WRITE, &store);
    if (first != OK) return 0;
    for (int i = 0; i < 2; i++) {
        seen[i] = look(store, (data[0] & 16) == 0);
        if (i == 1) {
            struct run_log *log;
            for (size_t k = 0; k < RUN_COUNT; k++)
                if (store_claim_run(store, STR("default"), str_from(runs[k]), &log, NULL) == OK)
                    store_release_run(store, log);
        }
        store_close(store);
        INVARIANT(open_store(STORE_WRITE, &store) == OK);
    }
    store_close(store);
    INVARIANT(seen[0] == seen[1]);
    return 0;
}
