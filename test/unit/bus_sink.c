// The loop of a sink, by way of files: cursors, order, restarts, outages, what is recorded and when.
#include "unit/support/bus_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define LINES_MAX 4000
#define FILE_SINK "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/out.jsonl\",\"cursorMs\":1}]"

static struct json lines[LINES_MAX];
static struct arena memory;

static size_t read_lines(const char *name)
{
    arena_release(&memory);
    arena_init(&memory, 64 * 1024, SIZE_MAX);
    return bus_kit_lines(name, lines, LINES_MAX, &memory);
}

static struct str text(size_t line, const char *key)
{
    return json_text(json_key(&lines[line], key));
}

static int64_t number(size_t line, const char *key)
{
    return json_integer(json_key(&lines[line], key), -1);
}

static bool settled(struct bus_kit *kit, uint64_t delivered)
{
    struct sink_cursor *cursor = bus_kit_cursor(kit, "out");
    return cursor->delivered == delivered;
}

static void every_event_of_every_run_arrives_once_and_in_order_ES_4b_I32(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_run(&kit, "default", "before", 3); // what was there before the bus comes too
    bus_kit_open(&kit, FILE_SINK, 0);
    for (int i = 0; i < 20; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        bus_kit_run(&kit, i % 2 ? "default" : "acme", run, 20);
    }
    BUS_WAIT(settled(&kit, 5 + 20 * 22));
    CHECK_INT(read_lines("out.jsonl"), 5 + 20 * 22);
    for (size_t i = 0; i < 5 + 20 * 22; i++) {
        int64_t expected = 1;
        for (size_t k = 0; k < i; k++) expected += str_eq(text(k, "runId"), text(i, "runId"));
        CHECK_INT(number(i, "runSeq"), expected);
    }
    CHECK_INT(bus_kit_number(&kit, "deadLetters"), 0);
    bus_kit_close(&kit);
}

static void a_restart_goes_on_at_the_cursor_ES_4f(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_open(&kit, FILE_SINK, 0);
    bus_kit_run(&kit, "default", "r1", 10);
    BUS_WAIT(settled(&kit, 12));
    bus_kit_stop(&kit);
    bus_kit_run(&kit, "default", "r2", 10); // nobody is there: it waits in the log
    bus_kit_open(&kit, FILE_SINK, 0);
    BUS_WAIT(settled(&kit, 24));
    CHECK_INT(read_lines("out.jsonl"), 24);
    CHECK_INT(number(23, "runSeq"), 12);
    bus_kit_close(&kit);
}

static void what_was_acknowledged_but_not_recorded_comes_again_with_the_same_id_ES_4g_I31(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_open(&kit, FILE_SINK, 0);
    bus_kit_run(&kit, "default", "r1", 2);
    BUS_WAIT(settled(&kit, 4));
    pthread_mutex_lock(&kit.mutex);
    kit.lose_puts = true; // the process dies after the sink has said yes
    pthread_mutex_unlock(&kit.mutex);
    bus_kit_run(&kit, "default", "r2", 2);
    BUS_WAIT(read_lines("out.jsonl") == 8);
    bus_kit_stop(&kit);
    kit.lose_puts = false;
    bus_kit_open(&kit, FILE_SINK, 0);
    BUS_WAIT(settled(&kit, 8)); // counted where they were recorded
    CHECK_INT(read_lines("out.jsonl"), 12);
    for (size_t i = 4; i < 8; i++) {
        CHECK_STR(text(i, "eventId"), text(i + 4, "eventId"));
        CHECK_INT(number(i, "runSeq"), number(i + 4, "runSeq"));
    }
    bus_kit_close(&kit);
}

static void a_sink_that_is_not_there_stops_nobody_and_gets_everything_later_ES_4a_ES_4c_ES_4h_I34(void)
{
    struct bus_kit kit;
    char dir[600];
    bus_kit_init(&kit);
    bus_kit_open(&kit,
                 "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/later/out.jsonl\",\"backoffMs\":1,"
                 "\"probeMaxMs\":20,\"maxAttempts\":2,\"cursorMs\":1}]",
                 0);
    bus_kit_run(&kit, "default", "r1", 50);
    BUS_WAIT(str_is(bus_kit_text(&kit, "circuit"), "open"));
    int64_t began = os_mono_us();
    for (int i = 0; i < 1000; i++) bus_moved(kit.bus);
    CHECK((os_mono_us() - began) / 1000 < 1000); // nobody waits
    CHECK(bus_kit_text(&kit, "lastError").len > 0);
    for (int i = 0; i < 50; i++) bus_kit_nap(); // many probes, and no attempt is burnt
    CHECK_INT(bus_kit_number(&kit, "deadLetters"), 0);
    CHECK_INT(bus_kit_cursor(&kit, "out")->position, 0);
    CHECK(bus_kit_number(&kit, "waiting") > 0);
    snprintf(dir, sizeof(dir), "%s/later", test_dir());
    CHECK(mkdir(dir, 0700) == 0);
    BUS_WAIT(settled(&kit, 52));
    CHECK_INT(read_lines("later/out.jsonl"), 52);
    CHECK_INT(bus_kit_reports(&kit), 0);
    bus_kit_close(&kit);
}

static void retries_wait_longer_and_longer_and_not_all_alike_ES_4d_C_16(void)
{
    struct sink sink = {.random = 7};
    for (uint32_t k = 0; k < 64; k++) {
        int64_t most = k < 9 ? INT64_C(100) << k : 30000, highest = 0, lowest = INT64_MAX;
        for (int i = 0; i < 2000; i++) {
            int64_t wait = backoff_ms(100, 30000, k, sink_random(&sink));
            CHECK(wait >= 1 && wait <= most);
            if (wait > highest) highest = wait;
            if (wait < lowest) lowest = wait;
        }
        CHECK(highest > most * 9 / 10 && lowest < most / 10); // full jitter: from nothing to all of it
    }
}

static void a_sink_takes_what_it_asks_for(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_run(&kit, "default", "r1", 3);
    bus_kit_run(&kit, "acme", "r2", 3);
    bus_kit_open(&kit,
                 "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/out.jsonl\",\"tenants\":[\"acme\"],"
                 "\"types\":[\"Run*\"],\"cursorMs\":1}]",
                 0);
    uint64_t end = 0;
    CHECK_OK(store_feed_end(kit.store.store, &end, &kit.store.err), &kit.store.err);
    BUS_WAIT(bus_kit_cursor(&kit, "out")->position == end);
    CHECK_INT(read_lines("out.jsonl"), 2);
    CHECK_STR(text(0, "runId"), STR("r2"));
    CHECK_STR(text(0, "eventType"), STR("RunStarted"));
    CHECK_STR(text(1, "eventType"), STR("RunCompleted"));
    bus_kit_close(&kit);
}

static void a_sink_may_begin_with_what_comes(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_run(&kit, "default", "old", 3);
    bus_kit_open(
        &kit, "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/out.jsonl\",\"from\":\"end\",\"cursorMs\":1}]", 0);
    BUS_WAIT(bus_kit_cursor(&kit, "out")->version > 0);
    bus_kit_stop(&kit); // where it began is remembered
    bus_kit_run(&kit, "default", "new", 3);
    bus_kit_open(
        &kit, "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/out.jsonl\",\"from\":\"end\",\"cursorMs\":1}]", 0);
    BUS_WAIT(settled(&kit, 5));
    CHECK_INT(read_lines("out.jsonl"), 5);
    CHECK_STR(text(0, "runId"), STR("new"));
    bus_kit_close(&kit);
}

static void done(void *context, enum code rc, const struct error *why)
{
    (void)why;
    atomic_store((atomic_int *)context, rc == OK ? 1 : 2);
}

static void rewind_to(struct bus_kit *kit, const struct bus_place *place)
{
    struct store *reader = bus_kit_reader(kit);
    struct error err = {0};
    atomic_int answer = 0;
    CHECK_OK(bus_rewind(kit->bus, reader, STR("out"), place, done, &answer, &err), &err);
    BUS_WAIT(atomic_load(&answer) == 1);
    store_close(reader);
}

static void a_sink_that_forgot_is_filled_again_from_anywhere_I31(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_open(&kit, FILE_SINK, 0);
    bus_kit_run(&kit, "default", "r1", 8);
    BUS_WAIT(settled(&kit, 10));
    rewind_to(&kit, &(struct bus_place){.tenant = STR("default"), .run = STR("r1"), .seq = 7});
    BUS_WAIT(settled(&kit, 14));
    CHECK_INT(read_lines("out.jsonl"), 14);
    CHECK_INT(number(10, "runSeq"), 7);
    rewind_to(&kit, &(struct bus_place){.position = 0});
    BUS_WAIT(settled(&kit, 24));
    CHECK_INT(read_lines("out.jsonl"), 24);
    CHECK_INT(number(14, "runSeq"), 1);
    struct store *reader = bus_kit_reader(&kit);
    struct error err = {0};
    CHECK_INT(bus_rewind(kit.bus, reader, STR("nobody"), &(struct bus_place){.here = true}, NULL, NULL, &err),
              E_NOT_FOUND);
    err = (struct error){0};
    struct bus_place nowhere = {.tenant = STR("acme"), .run = STR("r1"), .seq = 1}; // another tenant's run is no run
    CHECK_INT(bus_rewind(kit.bus, reader, STR("out"), &nowhere, NULL, NULL, &err), E_NOT_FOUND);
    uint64_t end;
    CHECK_OK(store_feed_end(reader, &end, &err), &err);
    struct bus_place behind = {.position = end + 1}; // what comes would be passed over
    CHECK_INT(bus_rewind(kit.bus, reader, STR("out"), &behind, NULL, NULL, &err), E_INVALID);
    store_close(reader);
    bus_kit_close(&kit);
}

static void a_tenant_skips_no_events_of_others(void)
{
    static const struct {
        const char *tenants, *asker;
        bool may_skip;
        enum code want;
    } cases[] = {
        {"", "acme", false, E_DENIED},
        {",\"tenants\":[\"acme\",\"globex\"]", "acme", false, E_DENIED},
        {",\"tenants\":[\"a*\"]", "acme", false, E_DENIED},
        {",\"tenants\":[\"globex\"]", "acme", false, E_NOT_FOUND},
        {",\"tenants\":[\"globex\"]", "acme", true, E_NOT_FOUND},
        {",\"tenants\":[\"acme\"]", "acme", false, OK},
        {"", "acme", true, OK},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct bus_kit kit;
        struct error err = {0};
        atomic_int answer = 0;
        char config[300], command[700];
        bus_kit_init(&kit);
        bus_kit_run(&kit, "globex", "r1", 3);
        bus_kit_run(&kit, "acme", "r1", 3);
        // what it writes to is not there, so it stays behind
        snprintf(config, sizeof(config),
                 "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/later/out.jsonl\",\"cursorMs\":1%s}]",
                 cases[i].tenants);
        bus_kit_open(&kit, config, 0);
        struct store *reader = bus_kit_reader(&kit);
        // Behind everything: what it does not carry it may have passed by now, but not the last event, which it does.
        struct bus_place place = {.asker = str_from(cases[i].asker), .may_skip = cases[i].may_skip};
        CHECK_OK(store_feed_end(reader, &place.position, &err), &err);
        CHECK_INT(bus_rewind(kit.bus, reader, STR("out"), &place, done, &answer, &err), cases[i].want);
        if (cases[i].want == OK) BUS_WAIT(atomic_load(&answer) == 1);
        place.position = 0;
        if (cases[i].want == E_DENIED) CHECK_OK(bus_rewind(kit.bus, reader, STR("out"), &place, NULL, NULL, &err), &err);
        store_close(reader);
        bus_kit_close(&kit);
        snprintf(command, sizeof(command), "rm -rf %s/*", test_dir());
        CHECK_INT(system(command), 0);
    }
}

static void a_cursor_that_somebody_else_moved_is_obeyed(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_open(&kit, FILE_SINK, 0);
    bus_kit_run(&kit, "default", "r1", 8);
    BUS_WAIT(settled(&kit, 10));
    struct sink_cursor back = {0};
    struct note_put note = {.space = STR("sink"), .key = STR("out"), .expect = NOTE_ANY};
    pthread_mutex_lock(&kit.mutex);
    CHECK(cursor_value(&back, &kit.store.arena, &note.value));
    struct store_batch batch = {.notes = &note, .note_count = 1};
    CHECK_OK(store_append(kit.store.store, &batch, KIT_NOW, &kit.store.arena, &kit.store.err), &kit.store.err);
    pthread_mutex_unlock(&kit.mutex);
    bus_kit_run(&kit, "default", "r2", 1); // its next put does not fit: it looks again
    BUS_WAIT(settled(&kit, 13));
    read_lines("out.jsonl");
    CHECK_STR(text(read_lines("out.jsonl") - 1, "runId"), STR("r2"));
    bus_kit_close(&kit);
}

// Two buses over one store: one carries, the other tells what the notes say, and gives orders that the first one hears of.
static void one_that_does_not_carry_tells_what_waits_and_gives_orders_ES_4h(void)
{
    struct bus_kit kit;
    struct error err = {0};
    char path[512];
    bus_kit_init(&kit);
    bus_kit_run(&kit, "default", "a", 3);
    kit.others = true;
    snprintf(path, sizeof(path), "%s/later", test_dir());
    bus_kit_open(&kit,
                 "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/later/out.jsonl\",\"cursorMs\":1,"
                 "\"backoffMs\":5,\"probeMaxMs\":20}]",
                 0);
    BUS_WAIT(bus_kit_cursor(&kit, "out")->down[0]);
    struct bus *carrier = kit.bus;
    kit.idle = true;
    bus_kit_open(&kit, "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/later/out.jsonl\"}]", 0);
    struct store *reader = bus_kit_reader(&kit);
    CHECK_OK(bus_look(kit.bus, reader, &err), &err);
    CHECK_INT(bus_kit_number(&kit, "waiting"), 5);
    CHECK_STR(bus_kit_text(&kit, "circuit"), STR("open"));
    CHECK(bus_kit_text(&kit, "lastError").len > 0);
    CHECK_INT(mkdir(path, 0755), 0);
    BUS_WAIT(settled(&kit, 5));
    BUS_WAIT(!bus_kit_cursor(&kit, "out")->down[0]);
    CHECK_OK(bus_look(kit.bus, reader, &err), &err);
    CHECK_INT(bus_kit_number(&kit, "waiting"), 0);
    CHECK_INT(bus_kit_number(&kit, "delivered"), 5);
    CHECK_STR(bus_kit_text(&kit, "circuit"), STR("closed"));
    struct bus_place place = {.position = 0};
    CHECK_OK(bus_rewind(kit.bus, reader, STR("out"), &place, NULL, NULL, &err), &err);
    BUS_WAIT(settled(&kit, 10));
    store_close(reader);
    bus_kit_stop(&kit);
    kit.bus = carrier;
    bus_kit_close(&kit);
}

static void answers_may_come_after_the_bus_has_gone(void)
{
    static const enum code answers[] = {OK, E_CANCELLED};
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        struct bus_kit kit;
        struct error err = {0};
        atomic_int answer = 0;
        char command[700];
        bus_kit_init(&kit);
        bus_kit_open(&kit, FILE_SINK, 0);
        BUS_WAIT(bus_kit_cursor(&kit, "out")->version > 0);
        pthread_mutex_lock(&kit.mutex);
        kit.hold_puts = true;
        pthread_mutex_unlock(&kit.mutex);
        bus_kit_run(&kit, "default", "r1", 1);
        BUS_WAIT(read_lines("out.jsonl") == 3);
        struct bus_place first = {0};
        CHECK_OK(bus_rewind(kit.bus, kit.store.store, STR("out"), &first, done, &answer, &err), &err);
        int64_t began = mono_now();
        bus_kit_stop(&kit);
        CHECK(mono_now() - began < 5000);
        CHECK(kit.held_count == 2); // a cursor and the order
        bus_kit_answer(&kit, answers[i]);
        CHECK_INT(atomic_load(&answer), answers[i] ? 2 : 1);
        bus_kit_close(&kit);
        snprintf(command, sizeof(command), "rm -rf %s/*", test_dir());
        CHECK(system(command) == 0);
    }
}

static void a_line_that_was_cut_is_taken_away_first(void)
{
    struct bus_kit kit;
    char path[600];
    bus_kit_init(&kit);
    snprintf(path, sizeof(path), "%s/out.jsonl", test_dir());
    test_write_file(path, STR("{\"runId\":\"old\"}\n{\"runId\":\"cu"));
    bus_kit_open(&kit, FILE_SINK, 0);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(settled(&kit, 3));
    CHECK_INT(read_lines("out.jsonl"), 4);
    CHECK_STR(text(0, "runId"), STR("old"));
    CHECK_STR(text(1, "runId"), STR("r1"));
    bus_kit_close(&kit);
}

static void a_pipe_that_nobody_reads_holds_up_nothing_ES_4h(void)
{
    struct bus_kit kit;
    char path[600], first[1];
    bus_kit_init(&kit);
    snprintf(path, sizeof(path), "%s/pipe", test_dir());
    CHECK(mkfifo(path, 0600) == 0);
    bus_kit_open(&kit,
                 "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/pipe\",\"backoffMs\":1,\"probeMaxMs\":10}]", 0);
    bus_kit_run(&kit, "default", "r1", 500);
    BUS_WAIT(str_is(bus_kit_text(&kit, "circuit"), "open")); // no reader
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(read(fd, first, 1) == 1 && first[0] == '{'); // and then one who stops reading: the pipe is full
    int64_t began = mono_now();
    bus_kit_stop(&kit);
    CHECK(mono_now() - began < 5000);
    close(fd);
    bus_kit_close(&kit);
}

static void events_as_cloudevents_on_a_line(void)
{
    struct bus_kit kit;
    bus_kit_init(&kit);
    bus_kit_open(
        &kit,
        "[{\"name\":\"out\",\"type\":\"file\",\"path\":\"@DIR@/out.jsonl\",\"format\":\"cloudevents\",\"cursorMs\":1}]",
        0);
    bus_kit_run(&kit, "acme", "r1", 1);
    BUS_WAIT(settled(&kit, 3));
    CHECK_INT(read_lines("out.jsonl"), 3);
    CHECK_STR(text(1, "specversion"), STR("1.0"));
    CHECK_STR(text(1, "type"), STR("cairn.run.StepStarted.v1"));
    CHECK_STR(text(1, "source"), STR("/cairn/tenants/acme/projects/default/environments/local/runs/r1"));
    CHECK_STR(text(1, "subject"), STR("s0"));
    CHECK_STR(text(1, "sequence"), STR("00000000000000000002"));
    CHECK_STR(text(1, "id"), json_text(json_at(&lines[1], STR("data.eventId"))));
    CHECK_STR(text(1, "time"), json_text(json_at(&lines[1], STR("data.emittedAt"))));
    CHECK(json_key(&lines[0], "subject") == NULL);
    bus_kit_close(&kit);
}

static void a_configuration_is_looked_at_as_a_whole(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[{\"type\":\"file\",\"path\":\"x\"}]", "sinks[0]: needs a name"},
        {"[{\"name\":\"A\",\"type\":\"file\",\"path\":\"x\"}]", "sinks[0]: needs a name"},
        {"[{\"name\":\"a\",\"type\":\"kafka\"}]", "sinks[0].type"},
        {"[{\"name\":\"a\",\"type\":\"file\"}]", "sinks[0]: a file needs a path"},
        {"[{\"name\":\"a\",\"type\":\"stdout\",\"colour\":1}]", "no setting \"colour\""},
        {"[{\"name\":\"a\",\"type\":\"stdout\"},{\"name\":\"a\",\"type\":\"stdout\"}]", "sinks[1].name"},
        {"[{\"name\":\"a\",\"type\":\"webhook\",\"url\":\"https://x.example\"}]", "sinks[0].url"},
        {"[{\"name\":\"a\",\"type\":\"nats\",\"url\":\"http://x\"}]", "sinks[0].url"},
        {"[{\"name\":\"a\",\"type\":\"nats\",\"url\":\"nats://me:secret@x\"}]", "sinks[0].url"},
        {"[{\"name\":\"a\",\"type\":\"nats\",\"url\":\"nats://[::1\"}]", "sinks[0].url"},
        {"[{\"name\":\"a\",\"type\":\"nats\",\"url\":\"nats://x:\"}]", "sinks[0].url"},
        {"[{\"name\":\"a\",\"type\":\"nats\",\"url\":\"nats://x\",\"subject\":\"a b\"}]", "sinks[0].subject"},
        {"[{\"name\":\"a\",\"type\":\"nats\",\"url\":\"nats://x\",\"password\":\"open\"}]", "by reference"},
        {"[{\"name\":\"a\",\"type\":\"stdout\",\"maxAttempts\":0}]", "sinks[0].maxAttempts"},
        {"{}", "must be a list"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct bus_kit kit;
        struct error err = {0};
        bus_kit_init(&kit);
        enum code rc = bus_kit_try(&kit, cases[i].text, 0, &err);
        CHECK(rc == E_INVALID || rc == E_DENIED);
        if (!strstr(err.message, cases[i].why)) test_fail(__FILE__, __LINE__, "%zu: %s", i, err.message);
        bus_kit_close(&kit);
        char path[600];
        snprintf(path, sizeof(path), "rm -rf %s/*", test_dir());
        CHECK(system(path) == 0);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_event_of_every_run_arrives_once_and_in_order_ES_4b_I32),
        TEST(a_restart_goes_on_at_the_cursor_ES_4f),
        TEST(what_was_acknowledged_but_not_recorded_comes_again_with_the_same_id_ES_4g_I31),
        TEST(a_sink_that_is_not_there_stops_nobody_and_gets_everything_later_ES_4a_ES_4c_ES_4h_I34),
        TEST(retries_wait_longer_and_longer_and_not_all_alike_ES_4d_C_16),
        TEST(a_sink_takes_what_it_asks_for),
        TEST(a_sink_may_begin_with_what_comes),
        TEST(a_sink_that_forgot_is_filled_again_from_anywhere_I31),
        TEST(a_tenant_skips_no_events_of_others),
        TEST(a_cursor_that_somebody_else_moved_is_obeyed),
        TEST(one_that_does_not_carry_tells_what_waits_and_gives_orders_ES_4h),
        TEST(answers_may_come_after_the_bus_has_gone),
        TEST(a_line_that_was_cut_is_taken_away_first),
        TEST(a_pipe_that_nobody_reads_holds_up_nothing_ES_4h),
        TEST(events_as_cloudevents_on_a_line),
        TEST(a_configuration_is_looked_at_as_a_whole),
    };
    return test_main("bus_sink", tests, ARRAY_COUNT(tests), argc, argv);
}
