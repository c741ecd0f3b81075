// The life of one run in a kernel without an engine: what it orders is due, what it decides is stored as a store would have it, and it
// can die and be folded again from that. The test says what executors answer.
#ifndef CAIRN_TEST_UNIT_SUPPORT_LIFE_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_LIFE_KIT_H

#include "harness/test.h"
#include "kernel/kernel.h"

#include <string.h>

enum { LIFE_RECORDS_MAX = 40000, LIFE_BLOBS_MAX = 256, LIFE_DUE_MAX = 4096 };

struct life_settings { // set once, by the test
    const struct contract *contract;
    uint32_t wanted;                 // effects that become due: bits of enum effect_kind
    int64_t pace_ms;                 // a batch takes
    bool lucky;                      // inputs have a number to be picked by
    void (*told)(struct str record); // of an event of the log; NULL: nobody listens
};

static struct life {
    struct life_settings settings;
    struct program *program;
    enum vocabulary words;
    struct run *run;
    struct run_holds holds;
    struct arena kept, turn;
    struct life_record {
        struct str bytes; // moments without a word in ledger form
        bool in_ledger;
    } records[LIFE_RECORDS_MAX];
    size_t record_count;
    struct life_blob {
        struct digest sha256;
        struct str bytes;
    } blobs[LIFE_BLOBS_MAX];
    size_t blob_count;
    struct effect due[LIFE_DUE_MAX];
    size_t due_count;
    int64_t now;
    uint64_t seq;
    uint32_t batches;
} life;

static const struct run_ids life_ids = {.tenant = {"default", 7},
                                        .project = {"default", 7},
                                        .environment = {"default", 7},
                                        .run = {"exec-1", 6},
                                        .plan_id = {"golden", 6},
                                        .plan_version = {"1", 1}};

static inline enum code life_find_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                                       struct error *err)
{
    (void)context, (void)arena;
    for (size_t i = 0; i < life.blob_count; i++) {
        if (!digest_eq(&life.blobs[i].sha256, sha256)) continue;
        *out = life.blobs[i].bytes;
        return OK;
    }
    return error_set(err, E_NOT_FOUND, "no such blob");
}
static const struct kernel_env life_env = {.blob = life_find_blob};

static inline void life_keep_blob(const struct digest *sha256, struct str bytes)
{
    CHECK(life.blob_count < LIFE_BLOBS_MAX);
    life.blobs[life.blob_count++] = (struct life_blob){*sha256, arena_copy(&life.kept, bytes)};
}

static inline void life_store(const struct moment *m)
{
    struct error err = {0};
    struct life_record *record = &life.records[life.record_count++];
    CHECK(life.record_count < LIFE_RECORDS_MAX);
    record->in_ledger = !moment_word(m->kind, life.words);
    if (record->in_ledger) {
        CHECK_OK(contract_encode_ledger(m, &life.kept, &record->bytes, &err), &err);
        return;
    }
    struct seal seal = {.seq = ++life.seq, .persisted_ms = m->at_ms};
    uint8_t raw[16] = {(uint8_t)(life.seq >> 8), (uint8_t)life.seq};
    uuid_format(raw, seal.event_id);
    struct encoded encoded;
    CHECK_OK(contract_encode(life.settings.contract, life.words, &life_ids, m, &seal, &life.kept, &encoded, &err), &err);
    record->bytes = encoded.bytes;
    if (life.settings.told) life.settings.told(record->bytes);
}

static inline void life_step(struct input *input)
{
    struct outcome out = {.turn = &life.turn};
    struct error err = {0};
    life.now += life.settings.pace_ms;
    input->now_ms = life.now;
    if (life.settings.lucky) input->random = 0x9e3779b97f4a7c15u * (life.batches + 1);
    CHECK_OK(kernel_step(life.run, &life.holds, input, &life_env, &out, &err), &err);
    run_verify(life.run);
    for (size_t i = 0; i < out.blob_count; i++) life_keep_blob(&out.blobs[i].sha256, out.blobs[i].bytes);
    for (size_t i = 0; i < out.moment_count; i++) life_store(&out.moments[i]);
    for (size_t i = 0; i < out.effect_count; i++) {
        CHECK(life.due_count < LIFE_DUE_MAX);
        if (life.settings.wanted >> out.effects[i].kind & 1) life.due[life.due_count++] = out.effects[i];
    }
    life.batches++;
}

// The run from what is stored (K1).
static inline void life_fold(void)
{
    struct error err = {0};
    run_free(life.run);
    life.run = run_new(life.program, &life_ids);
    CHECK(life.run);
    life.run->env = &life_env;
    for (size_t i = 0; i < life.record_count; i++) {
        struct moment m = {0};
        struct seal seal = {0};
        const struct life_record *r = &life.records[i];
        arena_reset(&life.turn);
        enum code rc = r->in_ledger ? contract_decode_ledger(r->bytes, &life.turn, &m, &err)
                                    : contract_decode(life.words, r->bytes, &life.turn, &m, &seal, NULL, &err);
        CHECK_OK(rc, &err);
        CHECK_OK(kernel_fold(life.run, &m, &err), &err);
    }
    arena_reset(&life.turn);
}

// The process dies, and the next one takes the run up.
static inline void life_crash(void)
{
    life_fold();
    holds_release(&life.holds);
    life.due_count = 0;
    struct input input = {.kind = INPUT_RECOVER};
    life_step(&input);
}

static inline void life_forget_due(size_t at)
{
    memmove(&life.due[at], &life.due[at + 1], (life.due_count - at - 1) * sizeof(life.due[0]));
    life.due_count--;
}

// What needs no time first, then the earliest.
static inline struct effect life_take_due(void)
{
    size_t first = 0;
    for (size_t i = 1; i < life.due_count; i++)
        if (life.due[i].due_ms < life.due[first].due_ms) first = i;
    struct effect e = life.due[first];
    life_forget_due(first);
    return e;
}

static inline void life_fire(const struct effect *timer)
{
    if (timer->due_ms > life.now) life.now = timer->due_ms;
    struct input input = {.kind = timer->timer == TIMER_LOOK ? INPUT_RECOVER : INPUT_TIMER,
                          .step = timer->step,
                          .logical = timer->logical,
                          .timer = timer->timer,
                          .due_ms = timer->due_ms};
    life_step(&input);
}

static inline void life_end(void)
{
    const struct life_settings settings = life.settings;
    run_free(life.run);
    holds_release(&life.holds);
    arena_release(&life.kept);
    arena_release(&life.turn);
    memset(&life, 0, sizeof(life));
    life.settings = settings;
}

// The one before ends. The program is the caller's.
static inline void life_begin(struct program *program)
{
    life_end();
    life.program = program;
    life.words = program_vocabulary(program);
    life.kept = arena_of(65536, (size_t)512 << 20);
    life.turn = arena_of(65536, (size_t)512 << 20);
    life.now = 1000;
    life.run = run_new(program, &life_ids);
    CHECK(life.run);
}

#endif
