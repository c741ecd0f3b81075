// Notes that ride in the batch of a turn: with runs, with starts, and alone.
#include "unit/support/engine_kit.h"

struct answer {
    int count;
    enum code rc;
};

static void answered(void *context, enum code rc, const struct error *why)
{
    struct answer *answer = context;
    answer->count++;
    answer->rc = rc;
    CHECK((rc == OK) == (why == NULL) && (!why || why->message[0] != 0));
}

static struct answer refusal; // of the last start that was refused
static char refused_run[129];

static void start_refused(void *context, const struct engine_refusal *refused)
{
    (void)context;
    snprintf(refused_run, sizeof(refused_run), "%.*s", STR_ARG(refused->run));
    answered(&refusal, refused->why->code, refused->why);
}

static void open_kit(struct kit *k)
{
    kit_open(k, LINEAR);
    k->engine->options.observer.refused = start_refused;
    refusal = (struct answer){0};
    refused_run[0] = '\0';
}

static struct note_put note(const char *key, const char *value, uint64_t expect)
{
    return (struct note_put){.space = STR("s"), .key = str_from(key), .value = str_from(value), .expect = expect};
}

static void put(struct kit *k, struct note_put one, struct answer *answer)
{
    struct error err = {0};
    CHECK_OK(engine_put(k->engine, &one, 1, answered, answer, &err), &err);
}

static uint64_t version(struct kit *k, const char *key)
{
    struct note found;
    enum code rc = store_note(k->store, STR("s"), str_from(key), &k->memory, &found, NULL);
    return rc == OK ? found.version : 0;
}

static void start_with(struct kit *k, const char *run, const struct note_put *notes, size_t count)
{
    struct start_request request = {.program = k->program, .run = str_from(run), .notes = notes, .note_count = count};
    char out[129];
    struct error err = {0};
    CHECK_OK(engine_start(k->engine, &request, out, &err), &err);
}

static bool run_is_there(struct kit *k, const char *run)
{
    struct run_head head;
    return store_head(k->store, STR("default"), str_from(run), &k->memory, &head, NULL) == OK;
}

static void notes_alone_are_a_turn_and_are_answered_when_they_are_durable(void)
{
    struct kit k;
    open_kit(&k);
    struct answer answer = {0};
    char key[] = "k", value[] = "v";
    put(&k, note(key, value, 0), &answer);
    key[0] = value[0] = '?'; // copied
    CHECK(engine_deadline(k.engine) <= k.now.mono_ms);
    CHECK_INT(answer.count, 0);
    kit_idle(&k);
    CHECK_INT(answer.count, 1);
    CHECK_INT(answer.rc, OK);
    CHECK_INT(version(&k, "k"), 1);
    CHECK_INT(k.commit_count, 1);
    CHECK(!kit_turn(&k));
    kit_close(&k);
}

static void notes_ride_in_the_batch_of_the_turn(void)
{
    struct kit k;
    open_kit(&k);
    struct answer first = {0}, second = {0};
    kit_queue_start(&k, "r1");
    put(&k, note("k", "one", 0), &first);
    put(&k, note("k", "two", 1), &second);
    CHECK(kit_turn(&k));
    CHECK_INT(k.commit_count, 1);
    CHECK_INT(first.count + second.count, 2);
    CHECK_INT(version(&k, "k"), 2);
    CHECK(run_is_there(&k, "r1"));
    kit_done(&k, "a", "1");
    kit_done(&k, "b", "2");
    kit_close(&k);
}

static void a_note_that_does_not_fit_fails_alone_and_runs_go_on_in_the_same_turn(void)
{
    struct kit k;
    open_kit(&k);
    struct answer good = {0}, bad = {0}, worse = {0};
    kit_start(&k, "r1");
    kit_deliver(&k, "a", true, "1", false);
    put(&k, note("k", "x", 7), &bad);
    put(&k, note("k", "x", 0), &good);
    put(&k, note("", "x", 0), &worse);
    uint32_t before = k.commit_count;
    CHECK(kit_turn(&k));
    CHECK_INT(k.commit_count, before + 1);
    CHECK_INT(bad.rc, E_CONFLICT);
    CHECK_INT(worse.rc, E_INVALID);
    CHECK_INT(good.rc, OK);
    CHECK_INT(bad.count + good.count + worse.count, 3);
    CHECK(kit_told(&k, "r1 STEP_STARTED b 1.1"));
    CHECK_INT(version(&k, "k"), 1);
    kit_done(&k, "b", "2");
    kit_close(&k);
}

static void the_notes_of_one_put_are_stored_together_or_not_at_all(void)
{
    struct kit k;
    open_kit(&k);
    struct answer answer = {0};
    struct note_put both[] = {note("a", "x", 0), note("b", "x", 5)};
    struct error err = {0};
    CHECK_OK(engine_put(k.engine, both, 2, answered, &answer, &err), &err);
    kit_idle(&k);
    CHECK_INT(answer.rc, E_CONFLICT);
    CHECK_INT(version(&k, "a"), 0);
    CHECK_INT(k.commit_count, 0);
    both[1].expect = 0;
    CHECK_OK(engine_put(k.engine, both, 2, NULL, NULL, &err), &err);
    kit_idle(&k);
    CHECK_INT(version(&k, "a") + version(&k, "b"), 2);
    kit_close(&k);
}

static void a_start_brings_its_notes_in_its_first_batch(void)
{
    struct kit k;
    open_kit(&k);
    struct note_put notes[] = {note("request/1", "r1", 0), note("audit/1", "started", 0)};
    start_with(&k, "r1", notes, 2);
    CHECK_INT(version(&k, "request/1"), 0);
    CHECK(kit_turn(&k));
    CHECK_INT(k.commit_count, 1);
    CHECK_INT(version(&k, "request/1") + version(&k, "audit/1"), 2);
    CHECK_INT(refusal.count, 0);
    kit_done(&k, "a", "1");
    kit_done(&k, "b", "2");
    kit_close(&k);
}

static void a_start_whose_note_does_not_fit_is_refused_without_a_trace(void)
{
    struct kit k;
    open_kit(&k);
    struct note_put first = note("request/1", "r1", 0), second[] = {note("other", "x", 0), note("request/1", "r2", 0)};
    start_with(&k, "r1", &first, 1); // two requests with the same key in one turn: the first wins
    start_with(&k, "r2", second, 2);
    kit_queue_start(&k, "r3");
    kit_idle(&k);
    CHECK_INT(refusal.count, 1);
    CHECK_INT(refusal.rc, E_CONFLICT);
    CHECK_TEXT(refused_run, "r2");
    CHECK(run_is_there(&k, "r1") && !run_is_there(&k, "r2") && run_is_there(&k, "r3"));
    CHECK_INT(version(&k, "other"), 0);
    CHECK(!kit_told(&k, "r2 "));
    CHECK_INT(engine_activity(k.engine).resident, 2);
    start_with(&k, "r2", second, 2); // and in a later one
    kit_idle(&k);
    CHECK_INT(refusal.count, 2);
    CHECK(!run_is_there(&k, "r2"));
    start_with(&k, "r2", second, 1); // the id is still free
    kit_idle(&k);
    CHECK(run_is_there(&k, "r2"));
    CHECK_INT(version(&k, "other"), 1);
    kit_close(&k);
}

// The document of a refused start was not stored with it: the next start must bring it again.
static void a_refused_start_does_not_count_as_having_stored_its_document(void)
{
    struct kit k;
    open_kit(&k);
    struct note_put wrong = note("k", "x", 3);
    start_with(&k, "r1", &wrong, 1);
    kit_idle(&k);
    CHECK_INT(refusal.count, 1);
    kit_start(&k, "r2");
    struct run_head head = kit_head(&k, "r2");
    struct str bytes;
    CHECK_INT(store_blob(k.store, &head.document, &k.memory, &bytes, NULL), OK);
    kit_close(&k);
}

static void a_full_disk_delays_notes_and_loses_none(void)
{
    struct kit k;
    open_kit(&k);
    struct answer first = {0}, second = {0};
    k.full_left = 2;
    struct note_put with = note("request", "r1", 0);
    start_with(&k, "r1", &with, 1);
    put(&k, note("k", "one", 0), &first);
    kit_turn(&k);
    CHECK_INT(first.count, 0);
    put(&k, note("k", "two", 1), &second); // behind the first, which is still waiting
    kit_pass(&k, 300);
    kit_pass(&k, 300);
    CHECK_INT(first.count + second.count, 2);
    CHECK_INT(first.rc + second.rc, OK);
    CHECK_INT(version(&k, "k"), 2);
    CHECK_INT(version(&k, "request"), 1);
    CHECK(run_is_there(&k, "r1"));
    CHECK_INT(refusal.count, 0);
    kit_close(&k);
}

// Another process writes between the check and the commit: what was checked is out of date.
static int stale_looks;
static enum code stale_note(struct store *store, struct str space, struct str key, struct arena *arena,
                            struct note *out, struct error *err)
{
    struct kit *k = (struct kit *)((uintptr_t)store->ops - offsetof(struct kit, ops));
    if (str_is(key, "raced") && stale_looks > 0) {
        stale_looks--;
        return E_NOT_FOUND;
    }
    return k->real_ops->notes.note(store, space, key, arena, out, err);
}

static void a_note_that_another_process_was_faster_with_fails_alone_too(void)
{
    struct kit k;
    open_kit(&k);
    struct answer other = {0}, raced = {0}, fine = {0};
    put(&k, note("raced", "theirs", 0), &other);
    kit_idle(&k);
    k.ops.notes.note = stale_note;
    kit_start(&k, "r1");
    kit_deliver(&k, "a", true, "1", false);
    struct note_put with = note("raced", "r2", 0);
    start_with(&k, "r2", &with, 1);
    put(&k, note("raced", "ours", 0), &raced);
    put(&k, note("fine", "x", 0), &fine);
    stale_looks = 2; // of the turn's batch, and of the start on its own
    kit_idle(&k);
    CHECK_INT(raced.rc, E_CONFLICT);
    CHECK_INT(fine.rc, OK);
    CHECK_INT(raced.count + fine.count, 2);
    CHECK_INT(refusal.count, 1);
    CHECK_INT(refusal.rc, E_CONFLICT);
    CHECK(!run_is_there(&k, "r2"));
    CHECK(kit_told(&k, "r1 STEP_STARTED b 1.1"));
    CHECK_INT(version(&k, "raced"), 1);
    CHECK_INT(version(&k, "fine"), 1);
    kit_done(&k, "b", "2");
    CHECK(kit_told(&k, "r1 RUN_COMPLETED"));
    kit_close(&k);
}

// The server of the store is away when the note is read, and back before anybody asks whether it is.
static int away_looks;
static enum code away_note(struct store *store, struct str space, struct str key, struct arena *arena, struct note *out,
                           struct error *err)
{
    struct kit *k = (struct kit *)((uintptr_t)store->ops - offsetof(struct kit, ops));
    if (away_looks > 0) {
        away_looks--;
        return error_set(err, E_AWAY, "the server is away");
    }
    return k->real_ops->notes.note(store, space, key, arena, out, err);
}

static void a_server_that_is_away_for_a_moment_delays_notes_and_refuses_none_S10(void)
{
    struct kit k;
    open_kit(&k);
    struct answer first = {0};
    k.ops.notes.note = away_note;
    away_looks = 1;
    kit_start(&k, "r1");
    put(&k, note("k", "one", 0), &first);
    struct note_put with = note("request", "r2", 0);
    start_with(&k, "r2", &with, 1);
    kit_idle(&k);
    CHECK_INT(first.count, 0);
    kit_pass(&k, 300);
    CHECK_INT(first.count, 1);
    CHECK_INT(first.rc, OK);
    CHECK_INT(refusal.count, 0);
    CHECK(run_is_there(&k, "r1"));
    CHECK(run_is_there(&k, "r2"));
    CHECK_INT(version(&k, "k"), 1);
    CHECK_INT(version(&k, "request"), 1);
    kit_close(&k);
}

static struct kit *chained;
static struct answer chained_answer;
static void put_another(void *context, enum code rc, const struct error *why)
{
    (void)why;
    CHECK_INT(rc, OK);
    int *left = context;
    if (--*left > 0) {
        struct note_put one = note("k", "more", NOTE_ANY);
        struct error err = {0};
        CHECK_OK(engine_put(chained->engine, &one, 1, put_another, left, &err), &err);
    } else
        chained_answer.count++;
}

static void a_put_may_be_made_when_another_is_answered(void)
{
    struct kit k;
    open_kit(&k);
    chained = &k;
    chained_answer = (struct answer){0};
    int left = 5;
    struct note_put one = note("k", "first", 0);
    struct error err = {0};
    CHECK_OK(engine_put(k.engine, &one, 1, put_another, &left, &err), &err);
    kit_idle(&k);
    CHECK_INT(chained_answer.count, 1);
    CHECK_INT(version(&k, "k"), 5);
    kit_close(&k);
}

static void notes_that_were_never_stored_are_told_so_when_the_engine_closes(void)
{
    struct kit k;
    open_kit(&k);
    struct answer answer = {0};
    put(&k, note("k", "v", 0), &answer);
    kit_crash(&k);
    CHECK_INT(answer.count, 1);
    CHECK_INT(answer.rc, E_CANCELLED);
    CHECK_INT(version(&k, "k"), 0);
    kit_close(&k);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(notes_alone_are_a_turn_and_are_answered_when_they_are_durable),
        TEST(notes_ride_in_the_batch_of_the_turn),
        TEST(a_note_that_does_not_fit_fails_alone_and_runs_go_on_in_the_same_turn),
        TEST(the_notes_of_one_put_are_stored_together_or_not_at_all),
        TEST(a_start_brings_its_notes_in_its_first_batch),
        TEST(a_start_whose_note_does_not_fit_is_refused_without_a_trace),
        TEST(a_refused_start_does_not_count_as_having_stored_its_document),
        TEST(a_full_disk_delays_notes_and_loses_none),
        TEST(a_note_that_another_process_was_faster_with_fails_alone_too),
        TEST(a_server_that_is_away_for_a_moment_delays_notes_and_refuses_none_S10),
        TEST(a_put_may_be_made_when_another_is_answered),
        TEST(notes_that_were_never_stored_are_told_so_when_the_engine_closes),
    };
    return test_main("engine_notes", tests, ARRAY_COUNT(tests), argc, argv);
}
