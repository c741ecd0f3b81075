// Keys against the digests of requirements appendix A and of the corpus, which are those of the published contract.
#include "contract_moments.h"

#include "base/error.h"

#include <stdio.h>

struct vector {
    const char *run, *slot;
    uint32_t attempt;
    const char *type, *plan_version, *digest;
};

static void check_digest(struct digest got, const char *want)
{
    char hex[SHA256_HEX + 1];
    digest_hex(&got, hex);
    CHECK_TEXT(hex, want);
}

static const struct vector upstream_v1[] = {
    {"run-001", "model.orders", 1, "StepStarted", "1.2.0",
     "6c99484df8a52a1dc3f2533b796f7257c11f57149d3fe3277d4c7ab98433d033"},
    {"run-001", "RUN", 1, "RunStarted", "1.2.0", "d219f09c191299aed8f136206aac54aba08233611a71d86470eb60174fb086b4"},
    {"run-001", "model.orders", 2, "StepFailed", "1.2.0",
     "4f18c2cf80d85cdea73fac0533dd58b1eb5d3acc92b6c13d6b445c821122c1e4"},
    {"run-001", "RUN", 1, "RunFailed", "1.2.0", "ca371c53bc82cae11e9cacc286e8c769b06048e86714a8b1d79125cc37d04564"},
    {"run-002", "seed.customers", 1, "StepSkipped", "2026.02.19",
     "7132ad0fe081216bb22aeceb390c290b0737afdef5ac2d5f39a4b46181e157d0"},
};

static void event_key_vectors_RE_2_2b(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(upstream_v1); i++) {
        const struct vector *v = &upstream_v1[i];
        check_digest(
            event_key(str_from(v->run), str_from(v->slot), v->attempt, str_from(v->type), str_from(v->plan_version)),
            v->digest);
    }
}

static void event_key_vectors_of_the_corpus_RE_2_2b_RE_2_2c_RE_2_2d(void)
{
    const char *corpus = test_corpus_dir();
    if (!corpus) test_skip("no corpus");
    char path[512];
    CHECK(snprintf(path, sizeof(path), "%s/plans/idempotency_vectors.json", corpus) < (int)sizeof(path));
    struct arena arena;
    arena_init(&arena, 4096, 1 << 20);
    struct json file;
    struct error err = {0};
    CHECK_OK(json_parse(test_read_file(path), &json_limits_default, &arena, &file, &err), &err);
    const struct json *vectors = json_key(&file, "vectors");
    CHECK(vectors && vectors->count == ARRAY_COUNT(upstream_v1));
    for (uint32_t i = 0; i < vectors->count; i++) {
        const struct json *v = &vectors->items[i];
        struct digest got = event_key(json_text(json_key(v, "runId")), json_text(json_key(v, "stepIdNormalized")),
                                      (uint32_t)json_integer(json_key(v, "logicalAttemptId"), 0),
                                      json_text(json_key(v, "eventType")), json_text(json_key(v, "planVersion")));
        struct digest want;
        CHECK(digest_parse(json_text(json_key(v, "expectedDigest")), &want));
        CHECK(digest_eq(&got, &want));
    }
    arena_release(&arena);
}

static void event_key_v2_vectors_C_01(void)
{
    static const struct vector vectors[] = {
        {"", "model.orders", 1, "StepStarted", "2", "7f4b974658a54fb2aee9ecb9cefebd2eec27f3fd01f0f8c0d031dfc4a5b96e3c"},
        {"", "RUN", 1, "RunStarted", "2", "204197f81e5dc1a8491d8e411c440a730c51a741cd48a74863d3e5c4c452640d"},
        {"", "model.orders", 2, "StepFailed", "2", "599945c1a8023ece5d2ae5132a4397b8cfbe9fa1c4c08d6fc4193a9bd9a2ebcd"},
        {"", "RUN", 1, "RunFailed", "3", "b5a178e6f30962ca3d17b573c0d4c5f96d7623be5fe62a972644785fc05a003b"},
        {"", "seed.customers", 1, "StepSkipped", "1",
         "6bfdbe26d62eac0c00cf2683aae31115e76e4d33d515e39957627be091367b31"},
    };
    struct str run = STR("0d3c6a9e-4f0c-4a8e-9d5d-3d4c0f7dbb8a");
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        const struct vector *v = &vectors[i];
        check_digest(event_key_v2(run, str_from(v->slot), v->attempt, str_from(v->type), STR("plan_abc"),
                                  str_from(v->plan_version)),
                     v->digest);
    }
}

static void example_of_the_appendix_has_these_keys_C_43(void)
{
    struct str run = STR("run_2026-02-11_abc123");
    check_digest(event_key(run, STR("RUN"), 1, STR("RunStarted"), STR("1.2")),
                 "d83771af5b84baa2de5960eb05b227e463fe30f67383adc9974e22718da6820c");
    check_digest(event_key_v2(run, STR("RUN"), 1, STR("RunStarted"), STR("plan_xyz"), STR("1.2")),
                 "248477bb4aac86dd3c3206f05e80b7a1bbecde1df0b7bde318e240577b705c5a");
}

static void request_key_vector_ES_3g(void)
{
    struct run_ids ids = test_ids;
    ids.plan_version = STR("1.2");
    check_digest(request_key(&ids, STR("req-0001")),
                 "cefe923b12b440948a0da3d2ca76e7ffa722c2a5ea50c92cb2e21064966a7d1b");
}

static void check_moment_key(struct moment moment, const char *want)
{
    if (!moment.logical) moment.logical = 1;
    moment.engine = moment.kind == MOMENT_STEP_REDISPATCHED ? moment.engine : 1;
    check_digest(moment_key(VOCABULARY_RUN, &test_ids, &moment), want);
}

static void run_moments_have_the_slot_RUN_C_33_RE_2_2d(void)
{
    check_moment_key((struct moment){.kind = MOMENT_RUN_QUEUED},
                     "f39ccc2e8d9635b8daa530211a8eaff38408ac0d87f45d1381bd975bb8e895b8");
    check_moment_key((struct moment){.kind = MOMENT_RUN_APPROVED},
                     "686ae76af343ee871227db6b8710b35186b071ec46c60d7d68f8f31419357e4b");
    check_moment_key((struct moment){.kind = MOMENT_RUN_STARTED},
                     "d219f09c191299aed8f136206aac54aba08233611a71d86470eb60174fb086b4");
    check_moment_key((struct moment){.kind = MOMENT_RUN_COMPLETED},
                     "594a49c3cf69bc93bc6aa848436ad23765f5cf0c5e620370dedfad30f9b9e799");
    check_moment_key((struct moment){.kind = MOMENT_RUN_CANCELLED},
                     "e844d2490e76747bf70c6d9ef26be967a9486ec30c6ac78775babcee52a39568");
    // The root cause of a failure is a step, and does not get into the slot.
    check_moment_key((struct moment){.kind = MOMENT_RUN_FAILED, .reason = STR("load")},
                     "ca371c53bc82cae11e9cacc286e8c769b06048e86714a8b1d79125cc37d04564");
}

static void second_pause_has_a_key_of_its_own_C_23(void)
{
    check_moment_key((struct moment){.kind = MOMENT_RUN_PAUSED},
                     "6d72704a45de54f84dfa32fae05c0503a6fd5fd00cb0a99318b09077239ca603");
    check_moment_key((struct moment){.kind = MOMENT_RUN_RESUMED},
                     "76f33e0275ee6f95591c99f1d74e034c3cec6846a8c9f38ad244579480a6ad05");
    check_moment_key((struct moment){.kind = MOMENT_RUN_PAUSED, .logical = 2},
                     "4ea6436c64114aab633b9f816ffa9e97f661b1c118b1130376a9af91ba5b96e8");
    check_moment_key((struct moment){.kind = MOMENT_RUN_RESUMED, .logical = 2},
                     "ac6b23242fcff37a17ed563de986071097c88d932e020ec1e8027e56c6217d44");
}

static void step_moments_have_their_step_as_slot_RE_2_2c(void)
{
    struct str step = STR("model.orders");
    check_moment_key((struct moment){.kind = MOMENT_STEP_STARTED, .step = step}, upstream_v1[0].digest);
    check_moment_key((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = step},
                     "9597260082523880cd7098288efb6a8973b88bfe4f8d5699d6ab43d92a094377");
    check_moment_key((struct moment){.kind = MOMENT_STEP_DELAYED, .step = step},
                     "65fd0eb0e27674784a612fcd033bad602f807419be870988c364b0aa2588ebb7");
    check_moment_key((struct moment){.kind = MOMENT_STEP_FAILED, .step = step, .logical = 2}, upstream_v1[2].digest);
    check_moment_key((struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = step, .logical = 2}, upstream_v1[2].digest);
}

static void signals_have_their_id_as_slot_C_33(void)
{
    struct str id = STR("7c9e6679-7425-40de-944b-e07fc1f90ae7");
    check_moment_key((struct moment){.kind = MOMENT_SIGNAL_ACCEPTED, .signal_id = id, .signal_step = STR("load")},
                     "e9133e2f8289764370bd37aaa4d62df630c46061561d028521f7393015dd94ac");
    check_moment_key((struct moment){.kind = MOMENT_SIGNAL_REJECTED, .signal_id = id},
                     "64efd4a9d6b84f73b89165e170e1d28653206b699ce44261c80c612014174651");
}

static void engine_attempt_is_not_in_the_key_C_02_RE_5e_ES_1_3h_WE_2_1_3c_WE_2_1_3d(void)
{
    struct moment moment = {.kind = MOMENT_STEP_COMPLETED, .step = STR("load"), .logical = 1, .engine = 1};
    struct digest first = moment_key(VOCABULARY_RUN, &test_ids, &moment);
    moment.engine = 3;
    struct digest third = moment_key(VOCABULARY_RUN, &test_ids, &moment);
    CHECK(digest_eq(&first, &third));
    moment.logical = 2;
    third = moment_key(VOCABULARY_RUN, &test_ids, &moment);
    CHECK(!digest_eq(&first, &third));
    moment.logical = 1;
    struct run_ids other = test_ids;
    other.plan_version = STR("1.2.1");
    third = moment_key(VOCABULARY_RUN, &other, &moment);
    CHECK(!digest_eq(&first, &third));
}

static void redispatches_differ_by_their_number_C_33_C_22(void)
{
    struct arena arena;
    arena_init(&arena, 1024, 1 << 16);
    struct moment moment = {.kind = MOMENT_STEP_REDISPATCHED, .step = STR("load"), .logical = 1, .engine = 2};
    CHECK_STR(moment_slot(VOCABULARY_RUN, &moment, &arena), STR("load#2"));
    for (size_t v = VOCABULARY_RUN; v <= VOCABULARY_NODES; v++) {
        enum vocabulary vocabulary = (enum vocabulary)v;
        if (!moment_word(moment.kind, vocabulary)) continue;
        moment.engine = 2;
        struct digest second = moment_key(vocabulary, &test_ids, &moment);
        struct digest composed = event_key(test_ids.run, STR("load#2"), 1,
                                           str_from(moment_word(moment.kind, vocabulary)), test_ids.plan_version);
        CHECK(digest_eq(&second, &composed));
        moment.engine = 3;
        struct digest third = moment_key(vocabulary, &test_ids, &moment);
        CHECK(!digest_eq(&second, &third));
    }
    arena_release(&arena);
}

static void slots_by_name_C_33(void)
{
    struct arena arena;
    arena_init(&arena, 1024, 1 << 16);
    struct moment signal = {.kind = MOMENT_SIGNAL_ACCEPTED, .signal_id = STR("s1")};
    struct moment step = {.kind = MOMENT_STEP_SKIPPED, .step = STR("poll[2].fetch")};
    struct moment run = {.kind = MOMENT_RUN_PAUSED};
    struct moment again = {.kind = MOMENT_STEP_REDISPATCHED, .step = STR("a"), .engine = 4294967295};
    CHECK_STR(moment_slot(VOCABULARY_RUN, &signal, &arena), STR("SIG:s1"));
    CHECK_STR(moment_slot(VOCABULARY_RUN, &step, &arena), STR("poll[2].fetch"));
    CHECK_STR(moment_slot(VOCABULARY_RUN, &run, &arena), STR("RUN"));
    CHECK_STR(moment_slot(VOCABULARY_RUN, &again, &arena), STR("a#4294967295"));
    arena.fail_in = 1;
    CHECK(moment_slot(VOCABULARY_RUN, &signal, &arena).ptr == NULL);
    arena_release(&arena);
}

static void node_events_are_keyed_by_their_own_words_C_22(void)
{
    struct moment moment = {.kind = MOMENT_STEP_STARTED, .step = STR("build"), .logical = 1, .engine = 1};
    struct digest got = moment_key(VOCABULARY_NODES, &test_ids, &moment);
    struct digest want = event_key(test_ids.run, STR("build"), 1, STR("node_started"), test_ids.plan_version);
    CHECK(digest_eq(&got, &want));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(event_key_vectors_RE_2_2b),
        TEST(event_key_vectors_of_the_corpus_RE_2_2b_RE_2_2c_RE_2_2d),
        TEST(event_key_v2_vectors_C_01),
        TEST(example_of_the_appendix_has_these_keys_C_43),
        TEST(request_key_vector_ES_3g),
        TEST(run_moments_have_the_slot_RUN_C_33_RE_2_2d),
        TEST(second_pause_has_a_key_of_its_own_C_23),
        TEST(step_moments_have_their_step_as_slot_RE_2_2c),
        TEST(signals_have_their_id_as_slot_C_33),
        TEST(engine_attempt_is_not_in_the_key_C_02_RE_5e_ES_1_3h_WE_2_1_3c_WE_2_1_3d),
        TEST(redispatches_differ_by_their_number_C_33_C_22),
        TEST(slots_by_name_C_33),
        TEST(node_events_are_keyed_by_their_own_words_C_22),
    };
    return test_main("contract_key", tests, ARRAY_COUNT(tests), argc, argv);
}
