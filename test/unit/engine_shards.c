// Several engines on one store (S17, I27, I29): fences, shards that change hands, an engine that is cut off.
#include "unit/support/engine_kit.h"

#define FAMILY PLAN("{\"stepId\":\"s\",\"kind\":\"subrun\",\"with\":{\"document\":\"child\"}}")

enum { LEASE_MS = 1000 };

static struct shard_map look(struct kit *k)
{
    struct shard_map map;
    struct error err = {0};
    CHECK_OK(store_shards(k->store, LEASE_MS, k->now.wall_ms, &map, &err), &err);
    return map;
}

static void take(struct kit *k, uint64_t shards)
{
    struct shard_map map;
    struct error err = {0};
    look(k);
    CHECK_OK(store_shards_move(k->store, shards, 0, k->now.wall_ms, &map, &err), &err);
    CHECK((map.mine & shards) == shards);
    store_place(k->store, map.mine);
}

static void a_child_is_in_the_shard_of_its_parent(void)
{
    struct kit k;
    kit_open(&k, FAMILY);
    take(&k, UINT64_MAX);
    kit_start(&k, "r1");
    kit_start(&k, "r2");
    struct run_filter filter = {.limit = 10};
    struct run_heads heads;
    struct error err = {0};
    CHECK_OK(store_list(k.store, &filter, &k.memory, &heads, &err), &err);
    CHECK_INT(heads.count, 4);
    for (size_t i = 0; i < heads.count; i++)
        if (heads.items[i].parent_run.len > 0)
            CHECK_INT(heads.items[i].shard, kit_head(&k, heads.items[i].parent_run.ptr).shard);
    CHECK(kit_head(&k, "r1").shard != kit_head(&k, "r2").shard);
    kit_done(&k, "c", "ok");
    kit_done(&k, "c", "ok");
    CHECK_INT(kit_head(&k, "r2").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void I27_who_was_taken_for_dead_changes_nothing_and_drops_all(void)
{
    struct kit a, b;
    kit_open_at(&a, LINEAR, "memory:fenced");
    kit_open_at(&b, LINEAR, "memory:fenced");
    take(&a, 0x3);
    kit_start(&a, "r1");
    kit_start(&a, "r2");
    b.now.wall_ms = a.now.wall_ms + 2 * LEASE_MS; // a slept, and nobody has heard of it since
    take(&b, 0x3);
    kit_adopt(&b, "r1");
    kit_expect(&b, "r1 STEP_REDISPATCHED a 1.2\n");
    // r2 was not claimed by anybody yet, and a start is nobody's: the fence is the engine's.
    kit_queue_start(&a, "r3");
    kit_deliver(&a, "a", true, "late", false);
    kit_deliver(&a, "a", true, "late", false);
    buf_clear(&a.told);
    kit_idle(&a);
    kit_expect(&a, "");
    CHECK(store_fenced(a.store));
    CHECK_INT(a.start_refused, E_LOCKED);
    CHECK_INT(engine_activity(a.engine).resident, 0);
    CHECK_INT(kit_head(&b, "r2").last_seq, 3);
    struct run_head head;
    CHECK_INT(store_head(b.store, STR("default"), STR("r3"), &b.memory, &head, NULL), E_NOT_FOUND);
    // It joins again and works again.
    a.now.wall_ms = b.now.wall_ms;
    CHECK_INT(look(&a).members, 2);
    take(&a, 0x4);
    kit_start(&a, "r3");
    CHECK_INT(kit_head(&a, "r3").shard, 3);
    kit_adopt(&b, "r2");
    kit_done(&b, "a", "ok");
    kit_done(&b, "a", "ok");
    kit_done(&b, "b", "ok");
    kit_done(&b, "b", "ok");
    CHECK_INT(kit_head(&b, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(kit_head(&b, "r2").summary.status, RUN_STATUS_COMPLETED);
    kit_done(&a, "a", "ok");
    kit_done(&a, "b", "ok");
    CHECK_INT(kit_head(&b, "r3").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&b);
    kit_close(&a);
}

static void note_answer(void *context, enum code rc, const struct error *why UNUSED)
{
    *(enum code *)context = rc;
}

// A batch that cannot be stored as a whole is tried one by one, and in the midst of that nothing is ours any more.
static void I27_who_is_fenced_between_inputs_drops_all_and_goes_on(void)
{
    static char large[300 * 1024];
    struct kit a, b;
    struct error err = {0};
    enum code noted = OK;
    struct note_put note = {.space = STR("s"), .key = STR("k"), .value = STR("v")};
    kit_open_at(&a, LINEAR, "memory:between");
    kit_open_at(&b, LINEAR, "memory:between");
    engine_close(a.engine);
    a.limits.inline_max = (size_t)1 << 20; // so that it does not become a blob
    kit_open_engine(&a);
    take(&a, 0x3);
    kit_start(&a, "r1");
    kit_start(&a, "r2");
    b.now.wall_ms = a.now.wall_ms + 2 * LEASE_MS;
    take(&b, 0x3);
    memset(large, 'x', sizeof(large) - 1);
    kit_deliver(&a, "a", true, "fits", false);
    kit_deliver(&a, "a", true, large, false); // for this one the batch is refused before the store looks whose it is
    kit_queue_start(&a, "r3");
    CHECK_OK(engine_put(a.engine, &note, 1, note_answer, &noted, &err), &err);
    buf_clear(&a.told);
    kit_idle(&a);
    kit_expect(&a, "");
    CHECK(store_fenced(a.store));
    CHECK_INT(noted, E_CANCELLED); // not E_CONFLICT: nothing was wrong with the note
    CHECK_INT(a.start_refused, E_LOCKED);
    CHECK_INT(engine_activity(a.engine).resident, 0);
    CHECK_INT(kit_head(&b, "r1").last_seq, 3);
    a.now.wall_ms = b.now.wall_ms;
    take(&a, 0x4);
    kit_start(&a, "r3");
    CHECK_OK(engine_put(a.engine, &note, 1, note_answer, &noted, &err), &err);
    kit_idle(&a);
    CHECK_INT(noted, OK);
    kit_close(&a);
    kit_close(&b);
}

static void what_is_in_flight_is_killed_when_its_engine_is_fenced(void)
{
    struct kit a, b;
    kit_open_at(&a, LINEAR, "memory:killed");
    kit_open_at(&b, LINEAR, "memory:killed");
    take(&a, 0x1);
    kit_start(&a, "r1");
    b.now.wall_ms += 2 * LEASE_MS;
    take(&b, 0x1);
    kit_signal(&a, "r1", SIGNAL_PAUSE, ""); // finds out
    CHECK(kit_attempt(&a, "a")->cancelled);
    kit_fail(&a, "a", "CANCELLED", false);
    CHECK_INT(engine_activity(a.engine).in_flight, 0);
    CHECK_INT(kit_head(&b, "r1").last_seq, 3);
    kit_close(&b);
    kit_close(&a);
}

static void a_shard_changes_hands_while_nothing_of_it_is_in_flight(void)
{
    struct kit a, b;
    kit_open_at(&a, LINEAR, "memory:given");
    kit_open_at(&b, LINEAR, "memory:given");
    take(&a, 0x3);
    look(&b);
    b.next_signal = 100;
    kit_start(&a, "r1"); // shard 1
    kit_start(&a, "r2"); // shard 2
    CHECK(engine_busy(a.engine) == 0x3);
    kit_signal(&a, "r2", SIGNAL_PAUSE, "");
    for (size_t i = 0; i < a.attempt_count; i++)
        if (strcmp(a.attempts[i].run, "r2") != 0) a.attempts[i].over = true; // stays with its tool
    kit_done(&a, "a", "ok");
    CHECK(engine_busy(a.engine) == 0x1);
    engine_let_go(a.engine, 0x2);
    CHECK(!engine_run(a.engine, STR("default"), STR("r2")) && engine_run(a.engine, STR("default"), STR("r1")));
    struct shard_map map;
    struct error err = {0};
    CHECK_OK(store_shards_move(a.store, 0, 0x2, a.now.wall_ms, &map, &err), &err);
    take(&b, 0x2);
    kit_adopt(&b, "r2");
    kit_signal(&b, "r2", SIGNAL_RESUME, "");
    kit_done(&b, "b", "ok");
    CHECK_INT(kit_head(&a, "r2").summary.status, RUN_STATUS_COMPLETED);
    // What its old owner is asked about it goes elsewhere.
    char id[UUID_SIZE];
    struct signal signal = kit_make_signal(&a, SIGNAL_PAUSE, "", id);
    CHECK_INT(engine_signal(a.engine, STR("default"), STR("r2"), &signal, NULL), E_LOCKED);
    kit_close(&b);
    kit_close(&a);
}

static void I29_who_is_cut_off_starts_nothing_and_goes_on_when_it_is_not(void)
{
    struct kit k;
    kit_open(&k, LINEAR);
    kit_start(&k, "r1");
    k.cut_off = true;
    kit_done(&k, "a", "ok");
    CHECK_INT(k.attempt_count, 1); // b is in the log, and with nobody
    k.cut_off = false;
    buf_clear(&k.told);
    kit_pass(&k, 1000);
    kit_expect(&k, "r1 STEP_REDISPATCHED b 1.2\n");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_child_is_in_the_shard_of_its_parent),
        TEST(I27_who_was_taken_for_dead_changes_nothing_and_drops_all),
        TEST(I27_who_is_fenced_between_inputs_drops_all_and_goes_on),
        TEST(what_is_in_flight_is_killed_when_its_engine_is_fenced),
        TEST(a_shard_changes_hands_while_nothing_of_it_is_in_flight),
        TEST(I29_who_is_cut_off_starts_nothing_and_goes_on_when_it_is_not),
    };
    return test_main("engine_shards", tests, ARRAY_COUNT(tests), argc, argv);
}
