// Starts that go on while the store takes nothing (ES-5b, ADR 0036): what is in the outbox, what the log gets of it, and when.
#include "support/engine_kit.h"
#include "trial/disk.h"

#define AGAIN ",\"retry\":{\"maxAttempts\":3,\"delay\":\"1ms\"}"
#define RETRIED PLAN(SHELL("a", "", AGAIN))
#define TWO PLAN(SHELL("a", "", AGAIN) "," SHELL("b", "", AGAIN))

static struct sim_disk *disk;

static void reopen(struct kit *k)
{
    engine_close(k->engine);
    for (size_t i = 0; i < k->attempt_count; i++) k->attempts[i].over = true;
    kit_open_engine(k);
}

static void open_with_outbox(struct kit *k, const char *plan)
{
    disk = sim_disk_new();
    CHECK(disk);
    kit_open(k, plan);
    k->limits.write_budget_ms = 300;
    k->limits.starts_fail_open = true;
    k->outbox = sim_disk_ops(disk);
    k->refuses = E_LOCKED;
    reopen(k);
}

static void close_with_outbox(struct kit *k)
{
    kit_close(k);
    sim_disk_free(disk);
}

static void adopt(struct kit *k)
{
    struct error err = {0};
    CHECK_OK(engine_adopt(k->engine, STR("default"), STR("r1"), &err), &err);
}

// An attempt has failed, the next is due, and the store takes nothing.
static void fail_and_lock(struct kit *k, const char *step)
{
    kit_fail(k, step, "EXIT_NONZERO", true);
    k->full_left = UINT32_MAX;
    buf_clear(&k->told);
    kit_pass(k, 10);
}

static void wait_over_budget(struct kit *k)
{
    for (int i = 0; i < 3; i++) kit_pass(k, 200);
}

static enum code see_file(void *context, struct str name, bool directory)
{
    CHECK(!directory && str_ends(name, STR(".outbox")));
    char path[256];
    struct str bytes;
    snprintf(path, sizeof(path), "%.*s", STR_ARG(name));
    CHECK(sim_disk_get(disk, path, &bytes));
    *(size_t *)context += 1 + bytes.len;
    return OK;
}

// 0: there is no file; 1: one that is empty.
static size_t outbox_size(void)
{
    size_t size = 0;
    struct error err = {0};
    struct disk *ops = sim_disk_ops(disk);
    CHECK_OK(ops->ops->list(ops, "", see_file, &size, &err), &err);
    return size;
}

static void a_start_over_budget_goes_on_and_its_event_is_logged_later_ES_5b(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    CHECK_INT(kit_waiting(&k), 0); // within the budget it waits
    CHECK_INT(outbox_size(), 0);
    wait_over_budget(&k);
    CHECK_INT(kit_waiting(&k), 1); // a 2.1 runs
    COVERED(start_fails_open);
    CHECK(outbox_size() > 1);
    kit_expect(&k, ""); // nothing is told before the log has it
    CHECK_TEXT(k.outbox_told, "w");
    uint64_t last = kit_head(&k, "r1").last_seq;
    k.full_left = 0;
    kit_pass(&k, 200);
    kit_expect(&k, "r1 STEP_STARTED a 2.1\n");
    COVERED(outbox_is_logged);
    CHECK_TEXT(k.outbox_told, "wg");
    CHECK_INT(kit_head(&k, "r1").last_seq, last + 1);
    CHECK_INT(outbox_size(), 1);
    kit_done(&k, "a", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(k.attempt_count, 2); // once
    close_with_outbox(&k);
}

// C-18: the start of an attempt stands before its outcome, also when both have waited.
static void what_is_in_the_outbox_stands_first_in_the_next_batch_ES_5b_C_18(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    kit_deliver(&k, "a", true, "ok", false);
    kit_turn(&k);
    kit_pass(&k, 100); // the result is refused, too, and the run folded again
    k.full_left = 0;
    kit_pass(&k, 150);
    kit_expect(&k, "r1 STEP_STARTED a 2.1\nr1 STEP_COMPLETED a 2.1\nr1 RUN_COMPLETED\n");
    close_with_outbox(&k);
}

// Results never fail open: over the budget the attempt fails, and its start is in the log before that.
static void a_result_of_a_start_that_went_on_fails_closed_ES_5c(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    kit_deliver(&k, "a", true, "ok", false);
    wait_over_budget(&k);
    CHECK_INT(kit_waiting(&k), 0); // the failure is not in the store: nothing follows from it
    k.full_left = 0;
    kit_pass(&k, 200);
    CHECK(str_starts(buf_str(&k.told), STR("r1 STEP_STARTED a 2.1\nr1 ATTEMPT_FAILED a 2.1 STATE_STORE_WRITE_BUDGET_EXCEEDED")));
    close_with_outbox(&k);
}

static void the_next_owner_finds_the_outbox_and_goes_on_from_it_ES_5b(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    CHECK_INT(kit_waiting(&k), 1);
    sim_disk_kill(disk);
    reopen(&k);
    adopt(&k);
    kit_idle(&k); // the store still takes nothing: what the outbox had is not lost by that
    kit_expect(&k, "");
    reopen(&k);
    k.full_left = 0;
    adopt(&k);
    COVERED(outbox_of_a_dead_engine);
    kit_idle(&k);
    kit_expect(&k, "r1 STEP_STARTED a 2.1\nr1 STEP_REDISPATCHED a 2.2\n");
    CHECK_TEXT(k.outbox_told, "wg");
    kit_pass(&k, 20000); // what is in the log is not kept
    CHECK_INT(outbox_size(), 0);
    kit_done(&k, "a", "ok");
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    close_with_outbox(&k);
}

// Another owner, who does not see this machine's outbox, has gone on: what is in it is not appended, and that is told.
static void an_entry_of_an_ended_epoch_is_told_and_not_appended_ES_5b_S6(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    struct disk *here = k.outbox;
    sim_disk_kill(disk);
    k.outbox = NULL;
    k.full_left = 0;
    reopen(&k);
    adopt(&k);
    kit_pass(&k, 10);
    kit_expect(&k, "r1 STEP_STARTED a 2.1\n"); // the same attempt, by the log that it knows
    kit_done(&k, "a", "ok");
    uint64_t last = kit_head(&k, "r1").last_seq;
    k.outbox = here;
    reopen(&k);
    kit_pass(&k, 10);
    COVERED(outbox_of_an_ended_epoch);
    CHECK_TEXT(k.outbox_told, "wl");
    CHECK_INT(outbox_size(), 0);
    CHECK_INT(kit_head(&k, "r1").last_seq, last);
    close_with_outbox(&k);
}

static void an_engine_that_lost_its_runs_tells_what_it_had_in_the_outbox_ES_5b(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    engine_let_go(k.engine, UINT64_MAX);
    COVERED(outbox_of_a_lost_run);
    CHECK_TEXT(k.outbox_told, "wl");
    CHECK(outbox_size() > 1); // the next owner may have read it and not yet logged it
    reopen(&k);
    k.full_left = 0;
    adopt(&k);
    kit_idle(&k);
    kit_expect(&k, "r1 STEP_STARTED a 2.1\nr1 STEP_REDISPATCHED a 2.2\n");
    kit_pass(&k, 20000);
    CHECK_INT(outbox_size(), 0); // the log has settled it
    close_with_outbox(&k);
}

static void starts_of_several_steps_keep_their_order_ES_5b(void)
{
    struct kit k;
    open_with_outbox(&k, TWO);
    kit_start(&k, "r1");
    kit_deliver(&k, "b", false, "EXIT_NONZERO", true);
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    CHECK_INT(kit_waiting(&k), 2);
    kit_deliver(&k, "b", false, "EXIT_NONZERO", true); // critical: it waits, and its run is folded again
    kit_turn(&k);
    kit_pass(&k, 200);
    CHECK_INT(engine_activity(k.engine).outboxed, 1);
    k.full_left = 0;
    kit_pass(&k, 200);
    CHECK_INT(engine_activity(k.engine).outboxed, 0);
    CHECK(str_starts(buf_str(&k.told), STR("r1 STEP_STARTED b 2.1\nr1 STEP_STARTED a 2.1\n")));
    close_with_outbox(&k);
}

// With nowhere to write, with the setting off, cut off from the other engines: everything waits, as without an outbox.
static void where_a_start_may_not_go_on_it_waits_ES_5b(void)
{
    for (int how = 0; how < 4; how++) {
        struct kit k;
        open_with_outbox(&k, RETRIED);
        if (how == 0) k.limits.starts_fail_open = false;
        if (how == 1) k.outbox = NULL;
        reopen(&k);
        kit_start(&k, "r1");
        if (how == 2) sim_disk_fault(disk, (struct sim_fault){.call = SIM_WRITE, .at = 1, .code = E_FULL});
        fail_and_lock(&k, "a");
        k.cut_off = how == 3;
        wait_over_budget(&k);
        CHECK_INT(kit_waiting(&k), 0);
        k.full_left = 0;
        k.cut_off = false;
        kit_pass(&k, 200);
        kit_expect(&k, "r1 STEP_STARTED a 2.1\n");
        CHECK_INT(kit_waiting(&k), 1);
        close_with_outbox(&k);
    }
}

// A signal is never answered from the outbox, and the run that it is for waits with it.
static void a_signal_waits_for_the_store_E2(void)
{
    struct kit k;
    open_with_outbox(&k, RETRIED);
    kit_start(&k, "r1");
    fail_and_lock(&k, "a");
    wait_over_budget(&k);
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    wait_over_budget(&k);
    CHECK_INT(k.decision_count, 0);
    k.full_left = 0;
    kit_pass(&k, 200);
    CHECK_INT(k.decision_count, 1);
    CHECK(str_starts(buf_str(&k.told), STR("r1 STEP_STARTED a 2.1\nr1 SIGNAL_ACCEPTED")));
    close_with_outbox(&k);
}

// ---- a store whose server is away: it cannot be read either

static bool away, lost; // lost: the next append finds out
static const struct store_ops *real;

static bool is_away(struct store *store)
{
    (void)store;
    return away;
}

static enum code read_of_server(struct store *store, const struct record_range *range, struct arena *arena, struct records *out,
                                struct error *err)
{
    if (away) return error_set(err, E_AWAY, "the server is away");
    return real->log.read(store, range, arena, out, err);
}

static enum code commit_of_server(struct store *store, struct commit *commit, struct arena *turn, struct error *err)
{
    away = away || lost;
    if (away) return error_set(err, E_LOCKED, "the server is away");
    return real->log.commit(store, commit, turn, err);
}

static void open_with_server(struct kit *k, const char *plan)
{
    away = lost = false;
    open_with_outbox(k, plan);
    real = k->real_ops;
    k->ops.log.away = is_away;
    k->ops.log.read = read_of_server;
    k->ops.log.commit = commit_of_server;
}

static void comes_back(struct kit *k)
{
    away = lost = false;
    kit_pass(k, 200);
}

static bool is_told(const struct kit *k, const char *text)
{
    struct str all = buf_str(&k->told);
    return memmem(all.ptr, all.len, text, strlen(text)) != NULL;
}

static void while_the_server_is_away_starts_go_on_and_results_fail_closed_ES_5b_ES_5c(void)
{
    struct kit k;
    open_with_server(&k, RETRIED);
    kit_start(&k, "r1");
    kit_start(&k, "r2");
    kit_fail(&k, "a", "EXIT_NONZERO", true); // of r1
    buf_clear(&k.told);
    away = true;
    kit_deliver(&k, "a", true, "ok", false); // of r2
    kit_pass(&k, 10);
    CHECK_INT(kit_waiting(&k), 0); // within the budget both wait, and nothing was decided of them
    wait_over_budget(&k);
    CHECK_INT(kit_waiting(&k), 1);
    CHECK_TEXT(k.attempts[k.attempt_count - 1].run, "r1");
    CHECK_TEXT(k.outbox_told, "w");
    kit_expect(&k, "");
    size_t outboxed;
    CHECK(engine_stalled(k.engine, &outboxed) >= 300 && outboxed == 1);
    comes_back(&k);
    CHECK(is_told(&k, "r1 STEP_STARTED a 2.1\n"));
    CHECK(is_told(&k, "r2 ATTEMPT_FAILED a 1.1 STATE_STORE_WRITE_BUDGET_EXCEEDED"));
    CHECK_TEXT(k.outbox_told, "wg");
    CHECK_INT(engine_stalled(k.engine, &outboxed), 0);
    close_with_outbox(&k);
}

// What was decided of a run is taken back when its state can be read again; until then nothing else is decided of it.
static void a_run_that_cannot_be_read_is_folded_again_when_the_server_is_back_S10(void)
{
    struct kit k;
    open_with_server(&k, TWO);
    kit_start(&k, "r1");
    lost = true;
    buf_clear(&k.told);
    kit_done(&k, "a", "ok"); // its append finds that the server is away
    CHECK(away);
    kit_deliver(&k, "b", false, "EXIT_NONZERO", true);
    kit_pass(&k, 10);
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    kit_expect(&k, "");
    CHECK_INT(k.decision_count, 0);
    comes_back(&k);
    COVERED(run_is_folded_later);
    CHECK(is_told(&k, "r1 STEP_COMPLETED a 1.1\n") && is_told(&k, "r1 ATTEMPT_FAILED b 1.1"));
    CHECK_INT(k.decision_count, 1);
    CHECK_TEXT(k.outbox_told, "");
    close_with_outbox(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_start_over_budget_goes_on_and_its_event_is_logged_later_ES_5b),
        TEST(what_is_in_the_outbox_stands_first_in_the_next_batch_ES_5b_C_18),
        TEST(a_result_of_a_start_that_went_on_fails_closed_ES_5c),
        TEST(the_next_owner_finds_the_outbox_and_goes_on_from_it_ES_5b),
        TEST(an_entry_of_an_ended_epoch_is_told_and_not_appended_ES_5b_S6),
        TEST(an_engine_that_lost_its_runs_tells_what_it_had_in_the_outbox_ES_5b),
        TEST(starts_of_several_steps_keep_their_order_ES_5b),
        TEST(where_a_start_may_not_go_on_it_waits_ES_5b),
        TEST(a_signal_waits_for_the_store_E2),
        TEST(while_the_server_is_away_starts_go_on_and_results_fail_closed_ES_5b_ES_5c),
        TEST(a_run_that_cannot_be_read_is_folded_again_when_the_server_is_back_S10),
    };
    return test_main("engine_outbox", tests, ARRAY_COUNT(tests), argc, argv);
}
