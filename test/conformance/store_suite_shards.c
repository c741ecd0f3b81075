// S17: several engines. The first handle of each test has a short lease, and is taken for dead when the test wants it to be.
#include "conformance/store_suite_private.h"

#include <time.h>

enum { SHORT_MS = 150, LONG_MS = 60000 };

struct pair {
    struct kit a, b; // two engines of one store
    struct shard_map map;
};

static void pair_start(struct pair *pair)
{
    if (!suite_case->several) test_skip("%s has one engine at a time", suite_case->name);
    *pair = (struct pair){0};
    kit_init(&pair->a);
    kit_init(&pair->b);
    const char *url = suite_case->several();
    pair->a.store = suite_open(&pair->a, url, STORE_WRITE);
    pair->b.store = suite_open(&pair->b, url, STORE_WRITE);
}

static void pair_end(struct pair *pair)
{
    kit_release(&pair->b);
    kit_release(&pair->a);
}

static struct shard_map look(struct kit *kit, int64_t lease_ms)
{
    struct shard_map map;
    kit->err = (struct error){0};
    CHECK_OK(store_shards(kit->store, lease_ms, os_now().wall_ms, &map, &kit->err), &kit->err);
    return map;
}

static struct shard_map move(struct kit *kit, uint64_t take, uint64_t give)
{
    struct shard_map map;
    kit->err = (struct error){0};
    CHECK_OK(store_shards_move(kit->store, take, give, os_now().wall_ms, &map, &kit->err), &kit->err);
    return map;
}

// Until b sees that these are free.
static void wait_free(struct pair *pair, uint64_t shards)
{
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (int i = 0; i < 500; i++) {
        pair->map = look(&pair->b, LONG_MS);
        if ((pair->map.free & shards) == shards) return;
        nanosleep(&pause, NULL);
    }
    CHECK(!"never taken for dead");
}

static struct run_log *make(struct kit *kit, const char *run)
{
    struct run_log *log = kit_create(kit, run, VOCABULARY_RUN);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    return log;
}

static void S17_numbers_of_engines_are_never_given_twice(void)
{
    struct pair pair;
    pair_start(&pair);
    struct shard_map a = look(&pair.a, LONG_MS), b = look(&pair.b, LONG_MS);
    CHECK(a.self != 0 && b.self > a.self);
    CHECK_INT(b.members, 2);
    CHECK(b.mine == 0 && b.free == UINT64_MAX);
    CHECK(look(&pair.a, LONG_MS).self == a.self); // a renewal is no new member
    pair_end(&pair);
}

static void S17_a_shard_has_one_owner_and_its_epoch_rises(void)
{
    struct pair pair;
    pair_start(&pair);
    look(&pair.a, LONG_MS);
    look(&pair.b, LONG_MS);
    struct shard_map a = move(&pair.a, 0xf0f, 0);
    CHECK(a.mine == 0xf0f && a.epoch[0] == 1);
    struct shard_map b = move(&pair.b, 0xfff, 0); // only what is free
    CHECK(b.mine == 0x0f0 && b.owner[0] == a.self && b.epoch[0] == 1);
    a = move(&pair.a, 0, 0x001);
    CHECK(a.mine == 0xf0e);
    b = move(&pair.b, 0x001, 0);
    CHECK(b.mine == 0x0f1 && b.epoch[0] == 2);
    b = move(&pair.b, 0, 0xf0e); // not its own: nothing happens
    CHECK(b.mine == 0x0f1 && look(&pair.a, LONG_MS).mine == 0xf0e);
    pair_end(&pair);
}

static void S17_runs_are_made_and_claimed_by_the_owner_of_their_shard(void)
{
    struct pair pair;
    pair_start(&pair);
    look(&pair.a, LONG_MS);
    look(&pair.b, LONG_MS);
    move(&pair.a, 0x6, 0);
    move(&pair.b, 0x8, 0);
    store_place(pair.a.store, 0x6);
    struct run_log *one = make(&pair.a, "one"), *two = make(&pair.a, "two");
    CHECK_INT(run_log_shard(one), 2);
    CHECK_INT(run_log_shard(two), 3);
    CHECK_INT(kit_head(&pair.b, "two").shard, 3);
    struct run_log *log = NULL;
    CHECK_INT(store_claim_run(pair.b.store, STR("default"), STR("one"), &log, NULL), E_LOCKED);
    // A child goes where its parent is; a run cannot be made in somebody else's shard.
    struct run_create create = kit_run("default", "child", VOCABULARY_RUN);
    create.shard = run_log_shard(one);
    CHECK_OK(store_create_run(pair.b.store, &create, &log, &pair.b.err), &pair.b.err);
    CHECK_INT(kit_try(&pair.b, log, kit_moment(MOMENT_RUN_STARTED, "", 1), NULL), E_CONFLICT);
    CHECK(!store_fenced(pair.b.store));
    store_release_run(pair.b.store, log);
    struct run_filter filter = {.unfinished = true, .shards = 0x2};
    struct run_heads heads;
    CHECK_OK(store_list(pair.b.store, &filter, &pair.b.arena, &heads, &pair.b.err), &pair.b.err);
    CHECK_INT(heads.count, 1);
    CHECK_STR(heads.items[0].ids.run, STR("one"));
    // Given up and taken, the run changes hands.
    store_release_run(pair.a.store, one);
    move(&pair.a, 0, 0x2);
    move(&pair.b, 0x2, 0);
    struct run_log *now = kit_claim(&pair.b, "one");
    CHECK(run_log_epoch(now) > 1);
    CHECK_INT(store_claim_run(pair.a.store, STR("default"), STR("one"), &log, NULL), E_LOCKED);
    kit_step(&pair.b, now, "x");
    kit_step(&pair.a, two, "x");
    store_release_run(pair.b.store, now);
    store_release_run(pair.a.store, two);
    pair_end(&pair);
}

static void S17_who_is_taken_for_dead_stores_nothing_any_more(void)
{
    struct pair pair;
    pair_start(&pair);
    uint64_t self = look(&pair.a, SHORT_MS).self;
    move(&pair.a, 0x3, 0);
    store_place(pair.a.store, 0x3);
    struct run_log *one = make(&pair.a, "one"), *two = make(&pair.a, "two");
    wait_free(&pair, 0x3);
    CHECK(move(&pair.b, 0x1, 0).mine == 0x1);
    // Nobody has claimed either run yet, and one of the shards was not even taken: it is the engine that is fenced.
    CHECK_INT(kit_try(&pair.a, one, kit_moment(MOMENT_STEP_STARTED, "x", 1), NULL), E_CONFLICT);
    CHECK_INT(kit_try(&pair.a, two, kit_moment(MOMENT_STEP_STARTED, "x", 1), NULL), E_CONFLICT);
    CHECK(store_fenced(pair.a.store));
    struct note_put put = {.space = STR("cursor"), .key = STR("k"), .value = STR("1"), .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_INT(store_append(pair.a.store, &batch, KIT_NOW, &pair.a.arena, NULL), E_CONFLICT);
    struct note note;
    CHECK_INT(store_note(pair.b.store, put.space, put.key, &pair.b.arena, &note, NULL), E_NOT_FOUND);
    CHECK_INT(kit_head(&pair.b, "one").last_seq, 1);
    CHECK(move(&pair.b, 0x2, 0).mine == 0x3);
    // It joins again, under another number; what it held before is worth nothing.
    struct shard_map again = look(&pair.a, LONG_MS);
    CHECK(again.self > self && again.mine == 0 && !store_fenced(pair.a.store));
    CHECK_INT(kit_try(&pair.a, two, kit_moment(MOMENT_STEP_STARTED, "x", 1), NULL), E_CONFLICT);
    CHECK(!store_fenced(pair.a.store));
    store_release_run(pair.a.store, one);
    store_release_run(pair.a.store, two);
    struct run_log *now = kit_claim(&pair.b, "two");
    CHECK_INT(kit_step(&pair.b, now, "x").seq, 2);
    store_release_run(pair.b.store, now);
    kit_check_sound(&pair.b);
    pair_end(&pair);
}

// Claims of many at once: the epoch rises once, what is not claimed after all is given back, and what changed hands is not ours.
static void S17_claims_ahead_are_claims(void)
{
    static const struct run_name names[] = {{STR_INIT("default"), STR_INIT("one")},
                                            {STR_INIT("default"), STR_INIT("two")},
                                            {STR_INIT("default"), STR_INIT("none")},
                                            {STR_INIT("default"), STR_INIT("three")}};
    struct pair pair;
    pair_start(&pair);
    look(&pair.a, LONG_MS);
    look(&pair.b, LONG_MS);
    move(&pair.a, 0x6, 0);
    store_place(pair.a.store, 0x6);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (i != 2) store_release_run(pair.a.store, make(&pair.a, names[i].run.ptr));
    CHECK_OK(store_claim_ahead(pair.b.store, names, ARRAY_COUNT(names), &pair.b.err), &pair.b.err); // not its shards
    struct run_log *log = NULL;
    CHECK_INT(store_claim_run(pair.b.store, names[0].tenant, names[0].run, &log, NULL), E_LOCKED);
    move(&pair.a, 0, 0x6);
    move(&pair.b, 0x6, 0);
    CHECK_OK(store_claim_ahead(pair.b.store, names, ARRAY_COUNT(names), &pair.b.err), &pair.b.err);
    struct run_log *one = kit_claim(&pair.b, "one"), *two = kit_claim(&pair.b, "two");
    CHECK_INT(run_log_epoch(one), 2);
    CHECK_INT(run_log_epoch(two), 2);
    CHECK_INT(kit_step(&pair.b, one, "x").seq, 2);
    store_release_run(pair.b.store, two);
    CHECK_OK(store_claim_ahead(pair.b.store, NULL, 0, &pair.b.err), &pair.b.err);
    CHECK_INT(kit_step(&pair.b, one, "y").seq, 3); // one that is driven here keeps its epoch
    store_release_run(pair.b.store, one);
    CHECK(!kit_head(&pair.a, "three").owned);
    // Claimed ahead, but it went to another owner before it was claimed.
    CHECK_OK(store_claim_ahead(pair.b.store, names, ARRAY_COUNT(names), &pair.b.err), &pair.b.err);
    move(&pair.b, 0, 0x6);
    move(&pair.a, 0x6, 0);
    one = kit_claim(&pair.a, "one");
    CHECK_INT(store_claim_run(pair.b.store, names[0].tenant, names[0].run, &log, NULL), E_LOCKED);
    CHECK_INT(kit_step(&pair.a, one, "z").seq, 4);
    store_release_run(pair.a.store, one);
    pair_end(&pair);
}

static void S17_a_look_tells_who_was_taken_for_dead(void)
{
    struct pair pair;
    pair_start(&pair);
    look(&pair.a, SHORT_MS);
    move(&pair.a, 0x1, 0);
    wait_free(&pair, 0x1);
    CHECK_INT(pair.map.members, 1);
    move(&pair.b, 0x1, 0);
    struct shard_map map;
    CHECK_INT(store_shards(pair.a.store, SHORT_MS, os_now().wall_ms, &map, NULL), E_CONFLICT);
    CHECK(store_fenced(pair.a.store));
    CHECK_INT(store_shards_move(pair.a.store, 0x1, 0, os_now().wall_ms, &map, NULL), E_CONFLICT);
    pair_end(&pair);
}

static void S17_a_lease_that_ran_out_unnoticed_is_no_harm(void)
{
    struct pair pair;
    pair_start(&pair);
    look(&pair.a, SHORT_MS);
    move(&pair.a, 0x1, 0);
    store_place(pair.a.store, 0x1);
    struct run_log *log = make(&pair.a, "r");
    wait_free(&pair, 0x1);
    kit_step(&pair.a, log, "x"); // nobody wanted it
    CHECK(look(&pair.a, LONG_MS).mine == 0x1);
    CHECK(move(&pair.b, 0x1, 0).mine == 0);
    store_release_run(pair.a.store, log);
    pair_end(&pair);
}

static void S17_shards_are_spread_evenly(void)
{
    struct shard_map map = {.self = 1, .members = 3, .free = UINT64_MAX};
    struct shard_plan plan = shard_plan(&map, 60);
    CHECK_INT(__builtin_popcountll(plan.take), 22);
    map = (struct shard_map){.self = 1, .members = 2, .mine = UINT64_MAX};
    plan = shard_plan(&map, 0);
    CHECK(plan.take == 0 && plan.surplus == UINT64_MAX);
    CHECK_INT(plan.surplus_count, 32);
    map = (struct shard_map){.self = 1, .members = 3, .mine = 0x1fffff, .free = UINT64_C(3) << 40};
    plan = shard_plan(&map, 7);
    CHECK_INT(__builtin_popcountll(plan.take), 1);
    CHECK((plan.take & ~map.free) == 0 && plan.surplus_count == 0);
}

const struct test suite_shards_tests[] = {
    TEST(S17_numbers_of_engines_are_never_given_twice),
    TEST(S17_a_shard_has_one_owner_and_its_epoch_rises),
    TEST(S17_runs_are_made_and_claimed_by_the_owner_of_their_shard),
    TEST(S17_who_is_taken_for_dead_stores_nothing_any_more),
    TEST(S17_claims_ahead_are_claims),
    TEST(S17_a_look_tells_who_was_taken_for_dead),
    TEST(S17_a_lease_that_ran_out_unnoticed_is_no_harm),
    TEST(S17_shards_are_spread_evenly),
};
const size_t suite_shards_count = ARRAY_COUNT(suite_shards_tests);
