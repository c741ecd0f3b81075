// Results that go to another place than the store: a place of the test's own that is slow, fails, or cannot be asked.
#include "unit/support/engine_kit.h"

#include <pthread.h>
#include <stdatomic.h>

#define BIG 100000
#define PATIENCE_MS 20000

struct far_place {
    struct keep base;
    pthread_mutex_t mutex;
    atomic_bool held; // puts take as long as it is
    enum code broken; // puts fail
    enum code away;   // reading fails
    atomic_bool mute; // reading takes as long as it is
    atomic_int gets;  // so many have begun
    atomic_int puts;  // so many have begun
    struct digest sha256;
    struct str bytes; // what was put last
    char *memory;
};

static enum code place_put(struct keep *keep, const struct digest *sha256, struct str bytes, struct error *err)
{
    struct far_place *place = (struct far_place *)keep;
    atomic_fetch_add(&place->puts, 1);
    while (atomic_load(&place->held)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (place->broken) return error_set(err, place->broken, "it takes nothing today");
    pthread_mutex_lock(&place->mutex);
    free(place->memory);
    place->memory = malloc(bytes.len);
    memcpy(place->memory, bytes.ptr, bytes.len);
    place->bytes = (struct str){place->memory, bytes.len};
    place->sha256 = *sha256;
    pthread_mutex_unlock(&place->mutex);
    return OK;
}

static enum code place_get(struct keep *keep, struct str where, const struct digest *sha256, struct arena *arena,
                           struct str *out, struct error *err)
{
    struct far_place *place = (struct far_place *)keep;
    atomic_fetch_add(&place->gets, 1);
    while (atomic_load(&place->mute)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (place->away) return error_set(err, place->away, "not today");
    pthread_mutex_lock(&place->mutex);
    bool there = str_is(where, "here") && digest_eq(sha256, &place->sha256);
    if (there) *out = arena_copy(arena, place->bytes);
    pthread_mutex_unlock(&place->mutex);
    return there ? OK : error_set(err, E_NOT_FOUND, "there is no such thing");
}

static const struct keep_ops place_ops = {.name = "nats_object", .put = place_put, .get = place_get};
static struct far_place place;
static struct kit k;

#define PLAYBOOK(kind)                                                                                                 \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"                              \
    "- step: make\n  tool: {kind: python, code: x, spec: {result: {store: {kind: " kind "}}}}\n"                       \
    "  next: {arcs: [{step: use, when: \"{{ make.n == 1 }}\"}]}\n"                                                     \
    "- step: use\n  tool: {kind: python, code: x, args: {n: \"{{ make.n }}\"}}\n"

static bool knows(void *context, struct str function)
{
    (void)context;
    return str_is(function, "python");
}

static void open_with(const char *text, bool configured)
{
    kit_open(&k, text);
    memset(&place, 0, sizeof(place));
    place.base = (struct keep){.ops = &place_ops, .place = STR("here")};
    CHECK(pthread_mutex_init(&place.mutex, NULL) == 0);
    if (configured) k.store->options.keep = &place.base;
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    kit_start(&k, "r1");
}

static void end(void)
{
    place.away = OK; // whoever explains the run reads it
    kit_close(&k);
    pthread_mutex_destroy(&place.mutex);
    free(place.memory);
}

// The outcome of the attempt under way: {"n":1} and many bytes.
static void give_of(char letter)
{
    static char text[BIG + 200];
    char *at = text + snprintf(text, 100, "{\"result\":{\"n\":1,\"text\":\"");
    memset(at, letter, BIG);
    snprintf(at + BIG, 50, "\"},\"status\":\"ok\"}");
    struct kit_attempt *attempt = NULL;
    for (size_t i = 0; i < k.attempt_count; i++)
        if (!k.attempts[i].over) attempt = &k.attempts[i];
    CHECK(attempt);
    attempt->over = true;
    struct tool_result result = {
        .ticket = attempt->ticket, .ok = true, .is_json = true, .output = str_from(text), .duration_ms = 3};
    engine_deliver(k.engine, &result);
}

static void give(void)
{
    give_of('x');
}

static bool comes(const char *text)
{
    for (int64_t until = os_now().mono_ms + PATIENCE_MS; os_now().mono_ms < until;) {
        kit_idle(&k);
        if (kit_told(&k, text)) return true;
        engine_wait(k.engine, os_now().mono_ms + 5);
    }
    return false;
}

static void wait_for_puts(int count)
{
    for (int64_t until = os_now().mono_ms + PATIENCE_MS; atomic_load(&place.puts) < count;) {
        CHECK(os_now().mono_ms < until);
        kit_idle(&k);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static size_t notes_of_results(void)
{
    struct notes notes;
    struct error err = {0};
    CHECK_OK(store_notes(k.store, KEEP_SPACE, (struct str){0}, 10, &k.memory, &notes, &err), &err);
    return notes.count;
}

// The result.stored of the log.
static struct moment stored(void)
{
    struct records page;
    struct error err = {0};
    struct record_range range = {.tenant = STR("default"), .run = STR("r1"), .limit = 1000};
    CHECK_OK(store_read(k.store, &range, &k.memory, &page, &err), &err);
    for (size_t i = 0; i < page.count; i++) {
        struct moment moment = {0};
        struct seal seal;
        CHECK_OK(contract_decode(VOCABULARY_NOETL, page.items[i].bytes, &k.memory, &moment, &seal, NULL, &err), &err);
        if (moment.kind == MOMENT_RESULT_STORED) return moment;
    }
    test_fail(__FILE__, __LINE__, "no result was stored");
}

static bool in_the_store(const struct digest *sha256)
{
    struct str bytes;
    return k.real_ops->log.blob(k.store, sha256, &k.memory, &bytes, NULL) == OK;
}

// ----

static void it_is_there_before_anything_is_said_about_it_NX_7_3(void)
{
    open_with(PLAYBOOK("object"), true);
    atomic_store(&place.held, true);
    give();
    wait_for_puts(1);
    kit_idle(&k);
    CHECK(!kit_told(&k, "RESULT_STORED"));
    CHECK_INT(notes_of_results(), 1); // whoever dies now leaves a trace of it
    CHECK_INT(engine_activity(k.engine).in_flight, 1);
    atomic_store(&place.held, false);
    CHECK(comes("TASK_DONE"));
    struct moment m = stored();
    CHECK(m.store == RESULT_NATS_OBJECT && m.reason.len == 0);
    CHECK(digest_eq(&m.blob, &place.sha256) && !in_the_store(&m.blob));
    CHECK(comes("STEP_STARTED use")); // its arc has read it
    end();
}

static void what_cannot_be_put_is_stored_here_with_the_reason(void)
{
    open_with(PLAYBOOK("nats_object"), true);
    place.broken = E_UNREACHABLE;
    give();
    CHECK(comes("STEP_STARTED use"));
    struct moment m = stored();
    CHECK(m.store == RESULT_OBJECT && in_the_store(&m.blob));
    CHECK_STR(m.reason, STR("not in nats_object: it takes nothing today"));
    end();
}

static void what_is_not_configured_is_stored_here_with_the_reason(void)
{
    open_with(PLAYBOOK("object"), false);
    give();
    CHECK(comes("STEP_STARTED use"));
    struct moment m = stored();
    CHECK(m.store == RESULT_OBJECT && in_the_store(&m.blob));
    CHECK_STR(m.reason, STR("not in nats_object: no object store is configured (--results)"));
    end();
    open_with(PLAYBOOK("auto"), false); // nobody has asked for it
    give();
    CHECK(comes("STEP_STARTED use"));
    CHECK_INT(stored().reason.len, 0);
    end();
}

static void a_run_that_is_stopped_meanwhile_ends_without_it(void)
{
    open_with(PLAYBOOK("object"), true);
    atomic_store(&place.held, true);
    give();
    wait_for_puts(1);
    kit_signal(&k, "r1", SIGNAL_CANCEL, "");
    CHECK(!kit_told(&k, "RUN_CANCELLED")); // its attempt is not over yet
    atomic_store(&place.held, false);
    CHECK(comes("RUN_CANCELLED"));
    end();
}

static void an_engine_may_be_closed_at_any_point_of_the_way(void)
{
    open_with(PLAYBOOK("object"), true);
    give(); // in the mailbox
    end();
    open_with(PLAYBOOK("object"), true);
    k.full_left = 1; // the note is not stored yet
    give();
    CHECK(kit_turn(&k));
    end();
    open_with(PLAYBOOK("object"), true);
    give(); // put, and not yet heard of
    wait_for_puts(1);
    end();
}

static void a_full_store_delays_it_and_doubles_nothing(void)
{
    open_with(PLAYBOOK("object"), true);
    k.full_left = 2;
    give();
    for (int i = 0; i < 4; i++) kit_pass(&k, 300);
    wait_for_puts(1);
    k.full_left = 1;
    for (int i = 0; i < 1000 && !kit_told(&k, "STEP_STARTED use"); i++) {
        kit_pass(&k, 300);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(kit_told(&k, "STEP_STARTED use"));
    CHECK_INT(atomic_load(&place.puts), 1);
    CHECK(stored().store == RESULT_NATS_OBJECT);
    end();
}

#define LATER                                                                                                          \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"                              \
    "- step: make\n  tool: {kind: python, code: x, spec: {result: {store: object}}}\n"                                 \
    "  next: {arcs: [{step: use}]}\n"                                                                                  \
    "- step: use\n  tool: {kind: python, code: x}\n"                                                                   \
    "  next: {arcs: [{step: last, when: \"{{ make.n == 1 }}\"}]}\n"                                                    \
    "- step: last\n  tool: {kind: python, code: x, args: {n: \"{{ make.n }}\"}}\n"

// A life after the result was stored: whoever reads it asks there.
static void begin_again(enum code away)
{
    open_with(LATER, true);
    give();
    CHECK(comes("STEP_STARTED use"));
    place.away = away;
    kit_crash(&k);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    kit_adopt(&k, "r1");
    buf_clear(&k.told);
    give_of('y');
}

// The arc reads the result: that it cannot be had now is no answer.
static void nothing_is_decided_while_it_cannot_be_read(void)
{
    begin_again(E_UNREACHABLE);
    for (int i = 0; i < 40; i++) kit_pass(&k, 500);
    CHECK(!kit_told(&k, "ROUTED"));
    CHECK_INT(engine_activity(k.engine).in_flight, 1);
    place.away = OK;
    for (int i = 0; i < 10 && !kit_told(&k, "STEP_STARTED last"); i++) kit_pass(&k, 1000);
    CHECK(kit_told(&k, "STEP_STARTED last"));
    end();
}

#define NEEDED                                                                                                         \
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"                              \
    "- step: make\n  tool: {kind: python, code: x, spec: {result: {store: object}}}\n"                                 \
    "  next: {arcs: [{step: use}]}\n"                                                                                  \
    "- step: use\n  tool: {kind: python, code: x}\n"                                                                   \
    "  next: {arcs: [{step: last}]}\n"                                                                                 \
    "- step: last\n  tool: {kind: python, code: x, args: {n: \"{{ make.n }}\"}}\n"

// No arc asks for it, and the batch that starts the task does not hold it.
static void a_task_that_needs_it_fails_and_may_try_again_NX_7_3(void)
{
    static const enum code ways[] = {E_UNREACHABLE, E_NOT_FOUND};
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        open_with(NEEDED, true);
        give();
        CHECK(comes("STEP_STARTED use"));
        place.away = ways[i];
        give_of('y');
        CHECK(comes("ATTEMPT_FAILED last"));
        CHECK(kit_told(&k, "REFERENCE_NOT_AVAILABLE"));
        end();
    }
}

// The batch that stores the result starts the task: nothing has to be read back.
static void a_task_that_starts_with_the_result_gets_it_whatever_the_place_says(void)
{
    open_with(PLAYBOOK("object"), true);
    place.away = E_UNREACHABLE;
    give();
    CHECK(comes("ATTEMPT_STARTED use"));
    kit_idle(&k);
    CHECK(!kit_told(&k, "ATTEMPT_FAILED"));
    CHECK_INT(k.attempt_count, 2);
    end();
}

static void a_run_that_waits_for_it_can_be_stopped(void)
{
    begin_again(E_UNREACHABLE);
    kit_pass(&k, 100);
    char id[UUID_SIZE];
    struct signal signal = kit_make_signal(&k, SIGNAL_EMERGENCY_STOP, "", id);
    signal.reason = STR("enough");
    kit_send(&k, "r1", &signal);
    for (int i = 0; i < 10 && !kit_told(&k, "RUN_CANCELLED"); i++) kit_pass(&k, 1000);
    if (!kit_told(&k, "RUN_CANCELLED")) test_fail(__FILE__, __LINE__, "%s", k.told.ptr);
    end();
}

// The signal is decided when the result can be read, and until then it is on its way once, however often the inbox is looked into.
static void a_posted_signal_that_waits_for_a_result_is_on_its_way_once_I23(void)
{
    begin_again(OK);
    CHECK(comes("STEP_STARTED last"));
    end();
    open_with(LATER, true);
    give();
    CHECK(comes("STEP_STARTED use"));
    kit_crash(&k);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    kit_adopt(&k, "r1");
    kit_signal(&k, "r1", SIGNAL_PAUSE, "");
    give_of('y');
    kit_idle(&k);
    place.away = E_UNREACHABLE;
    char id[UUID_SIZE];
    struct signal resume = kit_make_signal(&k, SIGNAL_RESUME, "", id);
    struct str bytes;
    struct error err = {0};
    CHECK_OK(signal_encode(&resume, &k.memory, &bytes, &err), &err);
    CHECK_OK(store_post(k.store, STR("default"), STR("r1"), resume.id, bytes, &err), &err);
    uint32_t decided = k.decision_count;
    buf_clear(&k.told);
    for (int i = 0; i < 300; i++) {
        CHECK_OK(engine_poll(k.engine, &err), &err);
        kit_pass(&k, 50);
        size_t posted = 0;
        const struct aside *at = NULL;
        for (const struct queued *q = aside_next(k.engine, &at); q; q = aside_next(k.engine, &at)) posted += q->inbox_id != 0;
        CHECK_INT(posted + k.engine->queue.count, 1);
    }
    CHECK_INT(k.decision_count, decided);
    place.away = OK;
    for (int i = 0; i < 40 && !kit_told(&k, "STEP_STARTED last"); i++) kit_pass(&k, 500);
    CHECK(kit_told(&k, "STEP_STARTED last"));
    CHECK_INT(k.decision_count, decided + 1);
    end();
}

// A place that accepts the question and never answers: the run that needs it waits, and the engine does not.
static void the_engine_goes_on_while_the_place_does_not_answer(void)
{
    open_with(LATER, true);
    k.store->options.keep_wait_ms = 1;
    give();
    CHECK(comes("STEP_STARTED use"));
    kit_crash(&k);
    k.engine->options.tasks = (struct engine_host){.tools = &k.tools, .knows = knows};
    kit_adopt(&k, "r1");
    atomic_store(&place.mute, true);
    give_of('y');
    kit_idle(&k); // or this never comes back
    CHECK(!kit_told(&k, "STEP_STARTED last"));
    buf_clear(&k.told);
    kit_start(&k, "r2");
    CHECK(kit_told(&k, "r2 STEP_STARTED make"));
    for (int64_t until = os_now().mono_ms + PATIENCE_MS; atomic_load(&place.gets) == 0;) { // by a thread of its own
        CHECK(os_now().mono_ms < until);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (int i = 0; i < 40; i++) kit_pass(&k, 500);
    CHECK_INT(atomic_load(&place.gets), 1); // which is asked once
    atomic_store(&place.mute, false);
    for (int64_t until = os_now().mono_ms + PATIENCE_MS; !kit_told(&k, "r1 STEP_STARTED last");) {
        CHECK(os_now().mono_ms < until);
        kit_pass(&k, 500);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    k.store->options.keep_wait_ms = 0;
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(it_is_there_before_anything_is_said_about_it_NX_7_3),
        TEST(what_cannot_be_put_is_stored_here_with_the_reason),
        TEST(what_is_not_configured_is_stored_here_with_the_reason),
        TEST(a_run_that_is_stopped_meanwhile_ends_without_it),
        TEST(an_engine_may_be_closed_at_any_point_of_the_way),
        TEST(a_full_store_delays_it_and_doubles_nothing),
        TEST(nothing_is_decided_while_it_cannot_be_read),
        TEST(a_task_that_needs_it_fails_and_may_try_again_NX_7_3),
        TEST(a_task_that_starts_with_the_result_gets_it_whatever_the_place_says),
        TEST(a_run_that_waits_for_it_can_be_stopped),
        TEST(a_posted_signal_that_waits_for_a_result_is_on_its_way_once_I23),
        TEST(the_engine_goes_on_while_the_place_does_not_answer),
    };
    return test_main("engine_elsewhere", tests, ARRAY_COUNT(tests), argc, argv);
}
