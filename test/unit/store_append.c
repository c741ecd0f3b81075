// store_append when memory runs out at every place in turn: nothing is stored, the run_logs are as before, and the same
// batch succeeds afterwards. Also the key set by itself, and how much memory a parked run costs.
#include "conformance/store_kit.h"
#include "store/backend.h"

#include <malloc.h>
#include <stdlib.h>

// ---- keys

static struct digest key_of(uint64_t n)
{
    return sha256((struct str){(const char *)&n, sizeof(n)});
}

static bool has(const struct key_set *set, const struct digest *key, uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t found;
    while ((found = key_set_next(set, key, &cursor)))
        if (found == number) return true;
    return false;
}

static void keys_are_found_until_they_are_removed_in_any_order(void)
{
    enum { COUNT = 3000 };
    struct key_set set = {0};
    struct digest missing = key_of(COUNT + 1);
    CHECK(!has(&set, &missing, 1));
    for (uint32_t i = 1; i <= COUNT; i++) {
        struct digest key = key_of(i);
        CHECK(key_set_reserve(&set, 1));
        key_set_add(&set, &key, i);
    }
    CHECK_INT(set.count, COUNT);
    for (uint32_t step = 0; step < 7; step++)
        for (uint32_t i = 1 + step; i <= COUNT; i += 7) {
            struct digest key = key_of(i);
            CHECK(has(&set, &key, i));
            key_set_remove(&set, &key, i);
            CHECK(!has(&set, &key, i));
            if (i + 1 <= COUNT && step < 6) {
                struct digest next = key_of(i + 1);
                CHECK(has(&set, &next, i + 1));
            }
        }
    CHECK_INT(set.count, 0);
    for (uint32_t i = 0; i < set.capacity; i++) CHECK_INT(set.slots[i], 0);
    key_set_release(&set);
}

static void one_key_may_have_several_numbers(void)
{
    struct key_set set = {0};
    struct digest key = key_of(1);
    CHECK(key_set_reserve(&set, 5));
    for (uint32_t i = 1; i <= 5; i++) key_set_add(&set, &key, i | (i % 2 ? KEY_LEDGER : 0));
    for (uint32_t i = 1; i <= 5; i++) CHECK(has(&set, &key, i | (i % 2 ? KEY_LEDGER : 0)));
    key_set_remove(&set, &key, 3 | KEY_LEDGER);
    CHECK(!has(&set, &key, 3 | KEY_LEDGER));
    CHECK(has(&set, &key, 5 | KEY_LEDGER));
    key_set_release(&set);
}

// ---- the sweep

struct state { // of a run_log, all that an append may change
    uint64_t last_seq, ledger_seq;
    struct digest head, ledger_head;
    int64_t last_persisted_ms;
    bool terminal, created;
    uint32_t key_count, touched;
};

static struct state state_of(const struct run_log *log)
{
    return (struct state){log->last_seq, log->ledger_seq, log->head,       log->ledger_head, log->last_persisted_ms,
                          log->terminal, log->created,    log->keys.count, log->touched};
}

static void check_unchanged(const struct run_log *log, const struct state *before)
{
    struct state now = state_of(log);
    CHECK_INT(now.last_seq, before->last_seq);
    CHECK_INT(now.ledger_seq, before->ledger_seq);
    CHECK(digest_eq(&now.head, &before->head));
    CHECK(digest_eq(&now.ledger_head, &before->ledger_head));
    CHECK_INT(now.last_persisted_ms, before->last_persisted_ms);
    CHECK_INT(now.terminal, before->terminal);
    CHECK_INT(now.created, before->created);
    CHECK_INT(now.key_count, before->key_count);
    CHECK_INT(now.touched, before->touched);
}

struct sweep {
    struct kit kit;
    struct run_log *old, *fresh;
};

// Two runs, one of them new, events, a ledgered moment, a decision, a duplicate and a blob.
static enum code append_all(struct sweep *sweep, struct arena *turn, struct error *err)
{
    struct json body = json_object();
    struct moment moments[] = {kit_moment(MOMENT_STEP_STARTED, "b", 1), kit_moment(MOMENT_RUN_PAUSED, "", 1),
                               kit_moment(MOMENT_STEP_STARTED, "a", 1), kit_moment(MOMENT_RUN_STARTED, "", 1),
                               kit_moment(MOMENT_RUN_COMPLETED, "", 1)};
    struct append_item items[] = {
        {.log = sweep->old, .moment = &moments[0]},
        {.log = sweep->old, .moment = &moments[1]},
        {.log = sweep->old, .moment = &moments[2]},
        {.log = sweep->fresh, .moment = &moments[3]},
        {.log = sweep->fresh, .ledger_kind = STR("decision"), .ledger_body = body, .signal_id = STR("signal")},
        {.log = sweep->old, .moment = &moments[4]},
    };
    struct append_blob blobs[] = {{sha256(STR("blob")), STR("blob")}, kit_document()};
    struct store_batch batch = {.items = items, .item_count = ARRAY_COUNT(items), .blobs = blobs, .blob_count = 2};
    enum code rc = store_append(sweep->kit.store, &batch, KIT_NOW + 5, turn, err);
    if (!rc) {
        CHECK_INT(items[0].seq, 2);
        CHECK(items[2].idempotent);
        CHECK_INT(items[2].seq, 1);
        CHECK_INT(items[5].seq, 3);
    }
    return rc;
}

static void sweep_allocations(const char *url)
{
    struct sweep sweep;
    kit_init(&sweep.kit);
    struct store_options options = kit_options(&sweep.kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &sweep.kit.store, &sweep.kit.err), &sweep.kit.err);
    sweep.old = kit_create(&sweep.kit, "old", VOCABULARY_NODES);
    sweep.fresh = kit_create(&sweep.kit, "fresh", VOCABULARY_NODES);
    kit_step(&sweep.kit, sweep.old, "a");
    struct state old = state_of(sweep.old);
    struct state fresh = state_of(sweep.fresh);
    int64_t failures = 0;
    enum code rc;
    do {
        struct arena turn;
        arena_init(&turn, 4096, SIZE_MAX);
        turn.fail_in = failures + 1;
        turn.fail_sticky = failures % 2;
        struct error err = {0};
        rc = append_all(&sweep, &turn, &err);
        arena_release(&turn);
        if (!rc) break;
        CHECK_INT(rc, E_NOMEM);
        CHECK_INT(err.code, E_NOMEM);
        check_unchanged(sweep.old, &old);
        check_unchanged(sweep.fresh, &fresh);
        CHECK_INT(kit_read(&sweep.kit, "old").count, 1);
        struct run_head head;
        CHECK_INT(store_head(sweep.kit.store, STR("default"), STR("fresh"), &sweep.kit.arena, &head, NULL),
                  E_NOT_FOUND);
    } while (++failures < 10000);
    CHECK_INT(rc, OK);
    CHECK(failures > 20);
    CHECK_INT(kit_read(&sweep.kit, "old").count, 3);
    CHECK_INT(kit_read(&sweep.kit, "fresh").count, 1);
    kit_check_sound(&sweep.kit);
    store_release_run(sweep.kit.store, sweep.old);
    store_release_run(sweep.kit.store, sweep.fresh);
    kit_release(&sweep.kit);
}

static void an_append_that_runs_out_of_memory_changes_nothing_in_memory(void)
{
    sweep_allocations("memory:");
}

static void an_append_that_runs_out_of_memory_changes_nothing_in_sqlite(void)
{
    char url[512];
    snprintf(url, sizeof(url), "sqlite:%s/sweep.db", test_dir());
    sweep_allocations(url);
}

// ---- memory of parked runs

static void a_parked_run_costs_less_than_a_kibibyte(void)
{
    struct kit kit;
    kit_init(&kit);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    CHECK_OK(store_open(STR("memory:"), &options, &kit.store, &kit.err), &kit.err);
    struct run_log *log = kit_create(&kit, "0d3c6a9e-4f0c-4a8e-9d5d-3d4c0f7dbb8a", VOCABULARY_RUN);
    char step[16];
    for (int i = 0; i < 12; i++) {
        snprintf(step, sizeof(step), "s%d", i);
        kit_step(&kit, log, step);
    }
    CHECK(malloc_usable_size(log) + malloc_usable_size(log->keys.slots) < 1024);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static enum code see_nothing(void *context UNUSED, const struct record *record UNUSED, const struct moment *moment UNUSED,
                             const struct seal *seal UNUSED)
{
    return OK;
}

static const struct store_ops *real;
static size_t reads;

static enum code counted_read(struct store *store, const struct record_range *range, struct arena *arena,
                              struct records *out, struct error *err)
{
    reads++;
    return real->log.read(store, range, arena, out, err);
}

// Who claims a run folds its log: its keys come with that.
static void a_log_that_was_folded_is_not_read_again_by_an_append_S5(void)
{
    struct kit kit;
    kit_init(&kit);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    CHECK_OK(store_open(STR("memory:"), &options, &kit.store, &kit.err), &kit.err);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    kit_step(&kit, log, "a");
    CHECK_OK(kit_decide(&kit, log, "signal", "ACCEPTED", NULL), &kit.err);
    store_release_run(kit.store, log);
    real = kit.store->ops;
    struct store_ops counting = *real;
    counting.log.read = counted_read;
    kit.store->ops = &counting;
    CHECK_OK(store_claim_run(kit.store, STR("default"), STR("r"), &log, &kit.err), &kit.err);
    struct error err = {0};
    CHECK_OK(store_replay_log(kit.store, log, see_nothing, NULL, &err), &err);
    CHECK(reads > 0);
    reads = 0;
    kit_step(&kit, log, "b");
    CHECK_INT(reads, 0);
    CHECK(kit_step(&kit, log, "a").idempotent); // found by its key, and confirmed by one look
    CHECK_INT(reads, 1);
    struct append_item again;
    CHECK_OK(kit_decide(&kit, log, "signal", "REJECTED", &again), &kit.err);
    CHECK(again.idempotent);
    kit.store->ops = real;
    store_release_run(kit.store, log);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_log_that_was_folded_is_not_read_again_by_an_append_S5),
        TEST(keys_are_found_until_they_are_removed_in_any_order),
        TEST(one_key_may_have_several_numbers),
        TEST(an_append_that_runs_out_of_memory_changes_nothing_in_memory),
        TEST(an_append_that_runs_out_of_memory_changes_nothing_in_sqlite),
        TEST(a_parked_run_costs_less_than_a_kibibyte),
    };
    return test_main("store_append", tests, ARRAY_COUNT(tests), argc, argv);
}
