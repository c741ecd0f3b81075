// Limits of steps (ADR 0052): places are notes, given before an attempt begins and back with its end.
#include "unit/support/engine_kit.h"

#define LIMITED(limits, steps)                                                                                         \
    "{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"limits\":{\"pay\":" limits "},\"steps\":[" steps "]}"
#define PAID(id, deps) SHELL(id, deps, ",\"limit\":\"pay\"")
#define THREE PAID("a", "") "," PAID("b", "") "," PAID("c", "")

static size_t places(struct kit *k)
{
    struct notes notes;
    struct error err = {0};
    size_t count = 0;
    CHECK_OK(store_notes(k->store, ENGINE_PERMIT_SPACE, STR(""), 100, &k->memory, &notes, &err), &err);
    for (size_t i = 0; i < notes.count; i++) count += !str_ends(notes.items[i].key, STR("|r"));
    return count;
}

static void count_place(void *context, const struct tool_place *place)
{
    *(size_t *)context += str_is(place->limit, "pay");
}

static size_t seen(const struct kit *k, bool waiting)
{
    size_t count = 0;
    if (waiting)
        engine_places(k->engine, count_place, &count);
    else
        engine_limit_holders(k->engine, count_place, &count);
    return count;
}

static void put_note(struct kit *k, struct str space, const char *key, const char *value)
{
    struct error err = {0};
    struct note_put put = {.space = space, .key = str_from(key), .value = str_from(value), .expect = NOTE_ANY};
    CHECK_OK(engine_put(k->engine, &put, 1, NULL, NULL, &err), &err);
    kit_idle(k);
}

static void a_place_is_given_before_the_attempt_and_back_with_its_end(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"concurrency\":2}", THREE));
    kit_start(&k, "r1");
    CHECK_INT(kit_waiting(&k), 2);
    CHECK_INT(places(&k), 2);
    CHECK_INT(seen(&k, true), 1);
    CHECK_INT(seen(&k, false), 2);
    kit_expect(&k, "r1 RUN_QUEUED\nr1 RUN_STARTED\nr1 STEP_STARTED a 1.1\nr1 STEP_STARTED b 1.1\nr1 STEP_STARTED c 1.1\n");
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_waiting(&k), 2);
    CHECK_INT(kit_attempt(&k, "c")->logical, 1);
    CHECK_INT(places(&k), 2);
    kit_done(&k, "a", "ok");
    CHECK_INT(places(&k), 1);
    kit_done(&k, "c", "ok");
    CHECK_INT(places(&k), 0);
    CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
    kit_close(&k);
}

static void the_oldest_of_all_runs_goes_first(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"concurrency\":1}", PAID("a", "")));
    kit_start(&k, "r1");
    kit_start(&k, "r2");
    kit_start(&k, "r3");
    CHECK_INT(k.attempt_count, 1);
    kit_done(&k, "a", "ok");
    CHECK_INT(k.attempt_count, 2);
    CHECK_TEXT(k.attempts[1].run, "r2");
    kit_done(&k, "a", "ok");
    CHECK_TEXT(k.attempts[2].run, "r3");
    kit_close(&k);
}

static void every_attempt_of_a_step_needs_a_place(void)
{
    struct kit k;
    const char *retry = LIMITED("{\"concurrency\":1}", SHELL("a", "", ",\"limit\":\"pay\",\"retry\":{\"maxAttempts\":2,"
                                                                        "\"delay\":\"1s\"}") "," PAID("b", ""));
    kit_open(&k, retry);
    kit_start(&k, "r1");
    kit_fail(&k, "a", "EXIT_NONZERO", true);
    CHECK_INT(kit_waiting(&k), 1); // b, while a rests
    kit_pass(&k, 1500);
    CHECK_INT(kit_waiting(&k), 1);
    CHECK_INT(seen(&k, true), 1);
    kit_done(&k, "b", "ok");
    CHECK_INT(kit_attempt(&k, "a")->logical, 2);
    kit_done(&k, "a", "ok");
    CHECK_INT(places(&k), 0);
    kit_close(&k);
}

static void a_rate_lets_so_many_begin_in_any_such_time(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"rate\":\"2/10s\"}", THREE));
    kit_start(&k, "r1");
    CHECK_INT(k.attempt_count, 2);
    CHECK_INT(places(&k), 0);
    kit_done(&k, "a", "ok");
    kit_pass(&k, 9000);
    CHECK_INT(k.attempt_count, 2);
    kit_pass(&k, 1500);
    CHECK_INT(k.attempt_count, 3);
    kit_close(&k);
}

static void the_word_of_the_service_stands_above_that_of_the_document(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"concurrency\":1,\"rate\":\"1/h\"}", THREE));
    put_note(&k, ENGINE_LIMIT_SPACE, "default|pay", "{\"concurrency\":2,\"rate\":\"none\"}");
    kit_start(&k, "r1");
    CHECK_INT(k.attempt_count, 2);
    put_note(&k, ENGINE_LIMIT_SPACE, "default|pay", "{\"concurrency\":0,\"rate\":\"none\"}");
    kit_pass(&k, 600);
    CHECK_INT(k.attempt_count, 3);
    kit_close(&k);
}

static void a_cancelled_run_leaves_the_line_and_begins_nothing(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"concurrency\":1}", PAID("a", "")));
    kit_start(&k, "r1");
    kit_start(&k, "r2");
    kit_start(&k, "r3");
    kit_signal(&k, "r2", SIGNAL_CANCEL, "");
    kit_idle(&k);
    CHECK_INT(kit_head(&k, "r2").summary.status, RUN_STATUS_CANCELLED);
    CHECK_INT(seen(&k, true), 1);
    kit_done(&k, "a", "ok");
    CHECK_TEXT(k.attempts[1].run, "r3");
    kit_done(&k, "a", "ok");
    CHECK_INT(places(&k), 0);
    kit_close(&k);
}

static void after_a_crash_an_attempt_has_its_place_again(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"concurrency\":1}", PAID("a", "")));
    kit_start(&k, "r1");
    kit_start(&k, "r2");
    kit_crash(&k);
    CHECK_INT(places(&k), 1);
    kit_adopt(&k, "r2"); // which finds the place taken, by a run that nobody drives yet
    CHECK_INT(kit_waiting(&k), 0);
    kit_adopt(&k, "r1");
    COVERED(permit_is_found_again);
    CHECK_TEXT(kit_attempt(&k, "a")->run, "r1");
    CHECK_INT(kit_attempt(&k, "a")->engine, 2);
    CHECK_INT(places(&k), 1);
    kit_done(&k, "a", "ok");
    kit_pass(&k, 100);
    kit_done(&k, "a", "ok");
    CHECK_INT(kit_head(&k, "r2").summary.status, RUN_STATUS_COMPLETED);
    CHECK_INT(places(&k), 0);
    kit_close(&k);
}

static void a_place_whose_attempt_is_over_is_found_by_who_waits(void)
{
    struct kit k;
    kit_open(&k, LIMITED("{\"concurrency\":2}", PAID("a", "")));
    put_note(&k, ENGINE_PERMIT_SPACE, "default|pay|p0", "{\"logicalAttemptId\":1,\"runId\":\"gone\",\"stepId\":\"a\"}");
    kit_start(&k, "r1"); // it is ours, and has no such attempt
    put_note(&k, ENGINE_PERMIT_SPACE, "default|pay|p0", "{\"logicalAttemptId\":7,\"runId\":\"r1\",\"stepId\":\"a\"}");
    CHECK_INT(places(&k), 2);
    kit_start(&k, "r2");
    kit_pass(&k, 1100);
    kit_pass(&k, 1100);
    COVERED(permit_of_the_dead);
    CHECK_INT(kit_waiting(&k), 2);
    CHECK_INT(places(&k), 2);
    kit_close(&k);
}

static void a_full_disk_gives_no_place_and_forgets_none(void)
{
    for (uint32_t n = 1; n <= 6; n++) {
        struct kit k;
        kit_open(&k, LIMITED("{\"concurrency\":1}", PAID("a", "") "," PAID("b", "")));
        k.full_in = n;
        kit_start(&k, "r1");
        kit_pass(&k, 300);
        CHECK_INT(kit_waiting(&k), 1);
        kit_done(&k, "a", "ok");
        kit_pass(&k, 300);
        CHECK_INT(places(&k), 1);
        kit_done(&k, "b", "ok");
        kit_pass(&k, 300);
        CHECK_INT(places(&k), 0);
        CHECK_INT(kit_head(&k, "r1").summary.status, RUN_STATUS_COMPLETED);
        kit_close(&k);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_place_is_given_before_the_attempt_and_back_with_its_end),
        TEST(the_oldest_of_all_runs_goes_first),
        TEST(every_attempt_of_a_step_needs_a_place),
        TEST(a_rate_lets_so_many_begin_in_any_such_time),
        TEST(the_word_of_the_service_stands_above_that_of_the_document),
        TEST(a_cancelled_run_leaves_the_line_and_begins_nothing),
        TEST(after_a_crash_an_attempt_has_its_place_again),
        TEST(a_place_whose_attempt_is_over_is_found_by_who_waits),
        TEST(a_full_disk_gives_no_place_and_forgets_none),
    };
    return test_main("engine_permits", tests, ARRAY_COUNT(tests), argc, argv);
}
