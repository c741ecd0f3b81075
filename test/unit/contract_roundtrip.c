// decode(encode(moment)) is the moment: for every kind with a word in each vocabulary, and for every kind in the ledger.
// Also: memory that runs out at any allocation is an error and nothing else; and what one encode costs.
#include "contract_moments.h"

#include "base/error.h"

#include <stdio.h>
#include <time.h>

enum { ROUNDS = 300 };

static struct arena arena;
static const struct contract *contract;

static void open_contract(void)
{
    static struct arena long_lived;
    struct error err = {0};
    arena_init(&long_lived, 64 * 1024, 64 << 20);
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK_OK(contract_open(&long_lived, &contract, &err), &err);
}

static void check_ids(const struct run_ids *ids, enum vocabulary vocabulary, enum moment_kind kind)
{
    CHECK_STR(ids->run, test_ids.run);
    enum moment_kind tells = vocabulary == VOCABULARY_NODES ? MOMENT_RUN_STARTED : MOMENT_RUN_REQUESTED;
    CHECK_STR(ids->tenant, test_ids.tenant); // in every record of every document
    CHECK_STR(ids->project, test_ids.project);
    CHECK_STR(ids->environment, test_ids.environment);
    if (vocabulary != VOCABULARY_RUN && kind != tells) {
        CHECK_INT(ids->plan_id.len, 0);
        return;
    }
    CHECK_STR(ids->plan_id, test_ids.plan_id);
    CHECK_STR(ids->plan_version, test_ids.plan_version);
}

static void check_payload(const struct encoded *encoded)
{
    struct json record, payload;
    struct error err = {0};
    CHECK_OK(json_parse(encoded->bytes, &json_limits_default, &arena, &record, &err), &err);
    CHECK_OK(json_parse(encoded->payload, &json_limits_default, &arena, &payload, &err), &err);
    CHECK(json_equal(json_key(&record, "payload"), &payload));
    struct buf canonical;
    buf_init(&canonical, RECORD_SIZE_MAX);
    json_canon(&canonical, &record);
    CHECK_STR(buf_str(&canonical), encoded->bytes);
    buf_release(&canonical);
}

static void check_one(struct source *source, enum vocabulary vocabulary, enum moment_kind kind)
{
    struct error err = {0};
    bool playbook = vocabulary == VOCABULARY_NOETL;
    struct moment moment = playbook ? pick_playbook_moment(source, kind) : pick_moment(source, kind), back;
    struct seal seal = pick_seal(source), seal_back;
    struct run_ids ids = {0};
    struct encoded encoded;
    CHECK_OK(contract_encode(contract, vocabulary, &test_ids, &moment, &seal, &arena, &encoded, &err), &err);
    CHECK_STR(encoded.type, str_from(moment_word(kind, vocabulary)));
    struct digest hash = sha256(encoded.bytes);
    CHECK(digest_eq(&hash, &encoded.hash));
    struct digest key = moment_key(vocabulary, &test_ids, &moment);
    CHECK(digest_eq(&key, &encoded.key));
    check_payload(&encoded);
    CHECK_OK(contract_decode(vocabulary, encoded.bytes, &arena, &back, &seal_back, &ids, &err), &err);
    check_moment_equal(&moment, &back);
    CHECK_INT(seal_back.seq, seal.seq);
    CHECK_INT(seal_back.persisted_ms, seal.persisted_ms);
    CHECK_TEXT(seal_back.event_id, seal.event_id);
    CHECK(digest_eq(&seal_back.previous, &seal.previous));
    check_ids(&ids, vocabulary, kind);
}

static void check_vocabulary(enum vocabulary vocabulary, int kinds_expected)
{
    open_contract();
    int kinds = 0;
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        if (!moment_word((enum moment_kind)kind, vocabulary)) continue;
        kinds++;
        for (uint64_t seed = 0; seed < ROUNDS; seed++) {
            arena_reset(&arena);
            struct source source = {.state = kind * 1000003 + seed, .arena = &arena};
            check_one(&source, vocabulary, (enum moment_kind)kind);
        }
    }
    CHECK_INT(kinds, kinds_expected);
}

static void run_records_keep_every_fact_RE_4_1a_RE_4_2a(void)
{
    check_vocabulary(VOCABULARY_RUN, 17); // 16 types; StepFailed is two kinds
}

static void node_records_keep_every_fact_C_63(void)
{
    check_vocabulary(VOCABULARY_NODES, 9); // 8 types; node_started is two kinds
}

static void playbook_records_keep_every_fact_NX_2a_NX_3_1a(void)
{
    check_vocabulary(VOCABULARY_NOETL,
                     32); // 29 types; playbook.finished is three kinds, playbook.request.evaluated two
}

static void ledger_keeps_every_fact_of_every_kind_C_05(void)
{
    arena_init(&arena, 64 * 1024, 64 << 20);
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        for (uint64_t seed = 0; seed < ROUNDS; seed++) {
            arena_reset(&arena);
            struct source source = {.state = kind * 7919 + seed, .arena = &arena};
            bool playbook = seed % 2 && moment_word((enum moment_kind)kind, VOCABULARY_NOETL);
            struct moment moment = playbook ? pick_playbook_moment(&source, (enum moment_kind)kind)
                                            : pick_moment(&source, (enum moment_kind)kind),
                          back;
            struct error err = {0};
            struct str bytes;
            CHECK_OK(contract_encode_ledger(&moment, &arena, &bytes, &err), &err);
            CHECK_OK(contract_decode_ledger(bytes, &arena, &back, &err), &err);
            check_moment_equal(&moment, &back);
        }
    }
}

static void ledger_entry_of_a_newer_version_is_unknown(void)
{
    arena_init(&arena, 4096, 1 << 20);
    struct moment moment;
    struct error err = {0};
    struct str bytes = STR("{\"at\":\"2026-02-11T17:00:00.000Z\",\"moment\":\"STEP_TELEPORTED\"}");
    CHECK_OK(contract_decode_ledger(bytes, &arena, &moment, &err), &err);
    CHECK_INT(moment.kind, MOMENT_UNKNOWN);
    CHECK_INT(contract_decode_ledger(STR("{\"moment\":\"RUN_PAUSED\"}"), &arena, &moment, &err), E_CORRUPT);
    bytes = STR("{\"at\":\"2026-02-11T17:00:00.000Z\",\"moment\":\"RUN_QUEUED\"}");
    CHECK_INT(contract_decode_ledger(bytes, &arena, &moment, &err), E_CORRUPT);
    CHECK_INT(contract_decode_ledger(STR("[]"), &arena, &moment, &err), E_CORRUPT);
    CHECK_INT(contract_decode_ledger(STR(""), &arena, &moment, &err), E_CORRUPT);
}

// Malformed bytes of a step's output become U+FFFD in the log, so that the record can always be read again.
static void malformed_text_is_repaired_and_malformed_values_are_refused(void)
{
    open_contract();
    struct source source = {.state = 1, .arena = &arena};
    struct seal seal = pick_seal(&source);
    struct moment moment = {
        .kind = MOMENT_STEP_FAILED, .by = EMITTER_WORKER, .step = STR("load"), .logical = 1, .engine = 1};
    moment.fault = (struct fault){.code = STR("EXIT_NONZERO"), .message = STR("a\xff\xc3z\xf0\x9f")};
    struct encoded encoded;
    struct error err = {0};
    struct moment back;
    struct seal seal_back;
    CHECK_OK(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &err), &err);
    CHECK_OK(contract_decode(VOCABULARY_RUN, encoded.bytes, &arena, &back, &seal_back, NULL, &err), &err);
    CHECK_STR(back.fault.message, STR("a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd"));
    moment = (struct moment){
        .kind = MOMENT_STEP_COMPLETED, .by = EMITTER_WORKER, .step = STR("load"), .logical = 1, .engine = 1};
    moment.value = json_string(STR("\xff"));
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &err), E_INVALID);
}

static enum code encode_and_decode(struct arena *scarce, const struct moment *moment, const struct seal *seal,
                                   enum vocabulary vocabulary)
{
    struct encoded encoded;
    struct error err = {0};
    struct moment back;
    struct seal seal_back;
    struct str entry;
    enum code rc = contract_encode(contract, vocabulary, &test_ids, moment, seal, scarce, &encoded, &err);
    if (!rc) rc = contract_decode(vocabulary, encoded.bytes, scarce, &back, &seal_back, NULL, &err);
    if (!rc) rc = contract_encode_ledger(moment, scarce, &entry, &err);
    if (!rc) rc = contract_decode_ledger(entry, scarce, &back, &err);
    if (rc) CHECK_INT(err.code, rc);
    return rc;
}

static void every_allocation_may_fail(void)
{
    open_contract();
    static const enum moment_kind kinds[] = {MOMENT_RUN_STARTED, MOMENT_STEP_COMPLETED, MOMENT_STEP_FAILED,
                                             MOMENT_STEP_SKIPPED};
    static const enum moment_kind of_playbooks[] = {MOMENT_RUN_REQUESTED, MOMENT_TASK_DONE, MOMENT_TASK_DECIDED,
                                                    MOMENT_RESULT_STORED};
    for (size_t k = 0; k < ARRAY_COUNT(kinds) * 3; k++) {
        enum vocabulary vocabulary = (enum vocabulary)(VOCABULARY_RUN + k % 3);
        struct source source = {.state = k, .arena = &arena};
        struct moment moment = vocabulary == VOCABULARY_NOETL ? pick_playbook_moment(&source, of_playbooks[k / 3])
                                                              : pick_moment(&source, kinds[k / 3]);
        struct seal seal = pick_seal(&source);
        enum code rc = E_NOMEM;
        for (int64_t n = 1; rc; n++) {
            struct arena scarce;
            arena_init(&scarce, 4096, 16 << 20);
            scarce.fail_in = n;
            rc = encode_and_decode(&scarce, &moment, &seal, vocabulary);
            CHECK(rc == OK || rc == E_NOMEM);
            arena_release(&scarce);
            CHECK(n < 5000);
        }
    }
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Prints, asserts nothing: run it in a release build.
static void cost_of_encode_and_decode(void)
{
    enum { COUNT = 20000 };
    open_contract();
    struct error err = {0};
    struct json result;
    CHECK_OK(json_parse(STR("{\"id\":42,\"status\":\"ok\",\"url\":\"https://example.org/x\"}"), &json_limits_default,
                        &arena, &result, &err),
             &err);
    static struct arena turn;
    arena_init(&turn, 64 * 1024, 16 << 20);
    struct moment moment = {
        .kind = MOMENT_STEP_COMPLETED, .by = EMITTER_WORKER, .step = STR("load"), .logical = 1, .engine = 1};
    moment.at_ms = 1770829200000;
    moment.value = result;
    moment.duration_ms = 412;
    struct seal seal = {.seq = 17, .persisted_ms = 1770829200123, .event_id = "7c9e6679-7425-40de-944b-e07fc1f90ae7"};
    struct encoded encoded = {0};
    for (int v = 0; v < 3; v++) {
        enum vocabulary vocabulary = (enum vocabulary)(VOCABULARY_RUN + v);
        if (vocabulary == VOCABULARY_NOETL) {
            moment.kind = MOMENT_TASK_DONE;
            moment.visit = moment.task_run = 1;
            moment.iteration = 4711;
            moment.task = STR("fetch");
        } else {
            moment.kind = MOMENT_STEP_COMPLETED;
            moment.visit = moment.task_run = moment.iteration = 0;
            moment.task = STR("");
        }
        int64_t start = now_ns();
        for (int i = 0; i < COUNT; i++) {
            arena_reset(&turn);
            CHECK_OK(contract_encode(contract, vocabulary, &test_ids, &moment, &seal, &turn, &encoded, &err), &err);
        }
        int64_t middle = now_ns();
        static struct arena other;
        arena_init(&other, 64 * 1024, 16 << 20);
        for (int i = 0; i < COUNT; i++) {
            struct moment back;
            struct seal seal_back;
            arena_reset(&other);
            CHECK_OK(contract_decode(vocabulary, encoded.bytes, &other, &back, &seal_back, NULL, &err), &err);
        }
        int64_t end = now_ns();
        arena_release(&other);
        printf("# %s: record of %zu bytes: encode %.2f us, decode %.2f us\n", vocabulary_name(vocabulary),
               encoded.bytes.len, (double)(middle - start) / COUNT / 1000, (double)(end - middle) / COUNT / 1000);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(run_records_keep_every_fact_RE_4_1a_RE_4_2a),
        TEST(node_records_keep_every_fact_C_63),
        TEST(playbook_records_keep_every_fact_NX_2a_NX_3_1a),
        TEST(ledger_keeps_every_fact_of_every_kind_C_05),
        TEST(ledger_entry_of_a_newer_version_is_unknown),
        TEST(malformed_text_is_repaired_and_malformed_values_are_refused),
        TEST(every_allocation_may_fail),
        TEST(cost_of_encode_and_decode),
    };
    return test_main("contract_roundtrip", tests, ARRAY_COUNT(tests), argc, argv);
}
