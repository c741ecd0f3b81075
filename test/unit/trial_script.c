// Test files: names of steps, mocks that win, mistakes with their places, and the schema that says the same as the reader.
#include "harness/test.h"
#include "schema/schema.h"
#include "trial/crash_inside.h"

#include <stdio.h>

static struct arena arena;

static void open_arena(void)
{
    arena_init(&arena, 65536, (size_t)1 << 28);
}

static void keys_fit_paths_and_the_one_that_says_more_wins(void)
{
    static const struct {
        const char *key, *path;
        uint32_t logical, score;
    } cases[] = {
        {"load", "load", 1, 2},
        {"load", "load", 7, 2},
        {"load#2", "load", 2, 4},
        {"load#2", "load", 1, 0},
        {"load", "loader", 1, 0},
        {"loader", "load", 1, 0},
        {"l[*].t", "l[3].t", 1, 1},
        {"l[3].t", "l[3].t", 1, 2},
        {"l[2].t", "l[3].t", 1, 0},
        {"l[*].t#2", "l[3].t", 2, 3},
        {"o[*].i[*].x", "o[1].i[22].x", 1, 1},
        {"o[1].i[*].x", "o[2].i[1].x", 1, 0},
        {"sub/a", "sub/a", 1, 3},
        {"sub/a", "sub#2/a", 1, 3},
        {"sub#2/a", "sub#2/a", 1, 5},
        {"sub#2/a", "sub/a", 1, 0},
        {"sub#1/a#3", "sub/a", 3, 7},
        {"a", "sub/a", 1, 0},
        {"sub/a", "a", 1, 0},
        {"l[*]", "l", 1, 0},
        {"load#x", "load", 1, 0},
        {"", "load", 1, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint32_t got = key_fits(str_from(cases[i].key), str_from(cases[i].path), cases[i].logical);
        if (got != cases[i].score) test_fail(__FILE__, __LINE__, "%s on %s: %u", cases[i].key, cases[i].path, got);
    }
}

static enum code parse(const char *text, struct trial_file *file, struct diagnostics *diagnostics)
{
    diagnostics_init(diagnostics, &arena);
    return trial_parse(str_from(text), STR("t.test.yaml"), &arena, diagnostics, file);
}

static void a_case_adds_to_its_file_and_wins(void)
{
    struct trial_file file;
    struct diagnostics diagnostics;
    open_arena();
    CHECK_INT(parse("document: d.yaml\n"
                    "inputs: {a: 1, b: 2}\n"
                    "defaults: {shell: {output: kind}, '*': {output: any}}\n"
                    "mocks: {x: {output: file}, y#2: {exit: 3}}\n"
                    "cases:\n"
                    "  - {name: one, inputs: {b: 3}, mocks: {x: {output: case}}, at: 2026-02-11T17:00:00Z, seed: 9}\n"
                    "  - {mocks: {y: {fail: TIMEOUT, takes: 1m30s}}}\n",
                    &file, &diagnostics),
              OK);
    CHECK_INT(file.count, 2);
    const struct trial_script *one = &file.scripts[0], *two = &file.scripts[1];
    CHECK_STR(one->name, STR("one"));
    CHECK_STR(two->name, STR("case 2"));
    CHECK_INT(one->seed, 9);
    CHECK_INT(one->at_ms, 1770829200000);
    CHECK_INT(json_integer(json_key(&one->inputs, "a"), 0), 1);
    CHECK_INT(json_integer(json_key(&one->inputs, "b"), 0), 3);
    CHECK_INT(json_integer(json_key(&two->inputs, "b"), 0), 2);
    CHECK_STR(script_mock(one, STR("x"), 1, STR("shell"))->output, STR("case"));
    CHECK_STR(script_mock(two, STR("x"), 1, STR("shell"))->output, STR("file"));
    CHECK_STR(script_mock(one, STR("z"), 1, STR("shell"))->output, STR("kind"));
    CHECK_STR(script_mock(one, STR("z"), 1, STR("exec"))->output, STR("any"));
    CHECK_INT(script_mock(two, STR("y"), 2, STR("shell"))->fault.exit_code, 3);
    CHECK_STR(script_mock(two, STR("y"), 1, STR("shell"))->fault.code, STR("TIMEOUT"));
    CHECK_INT(script_mock(two, STR("y"), 1, STR("shell"))->takes_ms, 90000);
}

static void mocks_become_what_a_process_would_have_given(void)
{
    struct trial_file file;
    struct diagnostics diagnostics;
    open_arena();
    CHECK_INT(parse("document: d\nmocks:\n  a: {output: {b: 1, a: [x]}}\n  b: {output: 7}\n  c: {exit: 2}\n"
                    "  d: {fail: {code: COMMAND_NOT_FOUND}}\n  e: {fail: {message: oh, retryable: false}}\n  f:\n",
                    &file, &diagnostics),
              OK);
    const struct trial_mock *mocks = file.scripts[0].mocks;
    CHECK_STR(mocks[0].output, STR("{\"a\":[\"x\"],\"b\":1}"));
    CHECK_STR(mocks[1].output, STR("7"));
    CHECK(mocks[2].fails && mocks[2].fault.has_exit && mocks[2].fault.retryable);
    CHECK_STR(mocks[2].fault.message, STR("exit 2"));
    CHECK(mocks[3].fails && !mocks[3].fault.retryable && !mocks[3].fault.has_exit);
    CHECK_STR(mocks[4].fault.code, STR("EXIT_NONZERO"));
    CHECK(!mocks[4].fault.retryable && mocks[4].fault.exit_code == 1);
    CHECK(!mocks[5].fails && mocks[5].output.len == 0);
}

// Each text, whether the reader takes it, and (when not) the first place and id that it names.
static const struct {
    const char *text;
    const char *fault; // NULL: fine
    bool beyond;       // the schema cannot know
} files[] = {
    {"document: d\n", NULL, false},
    {"document: d\nname: n\nrun: r-1\nseed: 3\narguments: all of it\nat: 2026-01-01T00:00:00Z\nx-mine: [1]\n", NULL,
     false},
    {"document: d\nmocks: {a: , b: {}, c: {output: [1], takes: 5}}\n", NULL, false},
    {"document: d\napprovals: {a: yes, b: no, c: {answer: no, by: x, reason: y, fields: {k: 1}, takes: 1h}}\n", NULL,
     false},
    {"document: d\nsignals: [{after: a started, send: pause}, {after: run#2 paused, wait: 1s, send: resume}]\n", NULL,
     false},
    {"document: d\nsignals: [{at: 1s, send: skip, step: a, reason: r, by: b, rejected: STEP_TERMINAL}]\n", NULL, false},
    {"document: d\nexpect: {status: FAILED, path: [], ran: [a], attempts: {a: 1}, outputs: {a: {b: 1}}}\n", NULL,
     false},
    {"document: d\nexpect: {events: [StepFailed a], duration: 5s, errors: {a: X}, reasons: {b: Y}}\n", NULL, false},
    {"document: d\nexpect: {events: {order: [a], exactly: [b], count: {c: 1}}, duration: {min: 1s, max: 2}}\n", NULL,
     false},
    {"document: d\ncases: [{name: a}, {name: b, golden: g.jsonl}]\n", NULL, false},
    {"{}\n", "1:1 E0204", false},
    {"- document: d\n", "1:1 E0205", false},
    {"document: [d]\n", "1:11 E0205", false},
    {"document: d\nmoks: {}\n", "2:1 E0203", false},
    {"document: d\nmocks: {a: {otput: 1}}\n", "2:13 E0203", false},
    {"document: d\nmocks: {a: 3}\n", "2:12 E0205", false},
    {"document: d\nmocks: {a: {exit: 300}}\n", "2:19 E0206", false},
    {"document: d\nmocks: {a: {takes: soon}}\n", "2:20 E0206", true},
    {"document: d\nmocks: {a: {output: 1, fail: X}}\n", "2:30 E0207", true},
    {"document: d\nmocks: {a: {real: true, exit: 1}}\n", "2:12 E0207", true},
    {"document: d\ndefaults: {wait: {}}\n", "2:12 E0206", false},
    {"document: d\napprovals: {a: maybe}\n", "2:16 E0206", false},
    {"document: d\napprovals: {a: {answer: yes, who: x}}\n", "2:30 E0203", false},
    {"document: d\nsignals: [{after: a started}]\n", "2:11 E0204", false},
    {"document: d\nsignals: [{send: pause}]\n", "2:11 E0204", true},
    {"document: d\nsignals: [{after: a began, send: pause}]\n", "2:19 E0206", true},
    {"document: d\nsignals: [{at: 1s, send: jump}]\n", "2:26 E0206", false},
    {"document: d\nsignals: [{at: 1s, send: skip}]\n", "2:11 E0204", true},
    {"document: d\nexpect: {status: DONE}\n", "2:18 E0206", false},
    {"document: d\nexpect: {path: a}\n", "2:16 E0205", false},
    {"document: d\nexpect: {attempts: {a: x}}\n", "2:24 E0205", false},
    {"document: d\nexpect: {event: []}\n", "2:10 E0203", false},
    {"document: d\nexpect: {events: {counts: {}}}\n", "2:19 E0203", false},
    {"document: d\nexpect: {duration: long}\n", "2:20 E0206", true},
    {"document: d\nat: now\n", "2:5 E0206", true},
    {"document: d\nrun: a/b\n", "2:6 E0208", true},
    {"document: d\ncases: []\n", "2:8 E0206", false},
    {"document: d\ncases: [{name: a}, {name: a}]\n", "2:20 E0206", true},
    {"document: d\ncases: [{document: e}]\n", "2:10 E0203", false},
};

static void every_mistake_is_told_with_its_place(void)
{
    open_arena();
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct trial_file file;
        struct diagnostics diagnostics;
        char got[64] = "";
        enum code rc = parse(files[i].text, &file, &diagnostics);
        diagnostics_sort(&diagnostics);
        const struct diagnostic *first = diagnostics.count ? &diagnostics.items[0] : NULL;
        if (first) snprintf(got, sizeof(got), "%u:%u %s", first->line, first->column, first->id);
        if (rc != (files[i].fault ? E_INVALID : OK)) test_fail(__FILE__, __LINE__, "%s: %s", files[i].text, got);
        if (files[i].fault) CHECK_TEXT(got, files[i].fault);
    }
}

static void the_schema_says_the_same_as_the_reader(void)
{
    struct schema_set *set;
    struct json document;
    const struct schema *schema;
    struct error err = {0};
    open_arena();
    CHECK_INT(schema_set_open(&arena, &set), OK);
    CHECK_OK(json_parse(test_read_file("schemas/test.json"), NULL, &arena, &document, &err), &err);
    CHECK_OK(schema_set_add(set, STR("test.json"), &document, &err), &err);
    CHECK_OK(schema_compile(set, STR("test.json"), &schema, &err), &err);
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct diagnostics diagnostics;
        struct schema_fault fault = {0};
        struct json tree;
        diagnostics_init(&diagnostics, &arena);
        CHECK_INT(doc_tree(str_from(files[i].text), STR("t"), NULL, &arena, &tree, &diagnostics), OK);
        bool fits = schema_valid(schema, &tree, &fault);
        if (fits != (!files[i].fault || files[i].beyond))
            test_fail(__FILE__, __LINE__, "%s: %s %s", files[i].text, fault.pointer, fault.message);
    }
}

// ---- fake tools

static enum code take_all(void *context, const struct tool_request *request, struct fake_answer *answer,
                          struct error *err)
{
    (void)context, (void)err;
    answer->due_ms += request->timeout_ms;
    return OK;
}

static void keep(void *context, struct fake_answer *answer, int64_t grace_ms)
{
    (void)grace_ms;
    answer->due_ms = *(int64_t *)context;
}

static void a_desk_answers_in_the_order_of_time_then_of_starting(void)
{
    struct fake_tools fake;
    int64_t now = 100;
    struct error err = {0};
    fake_init(&fake, &now);
    fake.decide = take_all;
    fake.cancelled = keep;
    fake.context = &now;
    CHECK_INT(fake_due(&fake), INT64_MAX);
    const int64_t waits[] = {30, 10, 10, 20};
    for (uint64_t i = 0; i < ARRAY_COUNT(waits); i++) {
        struct tool_request request = {.ticket = i + 1, .timeout_ms = waits[i]};
        CHECK_OK(fake.base.ops->start(&fake.base, &request, &err), &err);
    }
    CHECK_INT(fake_due(&fake), 110);
    CHECK_INT(fake.answers[fake_first(&fake)].ticket, 2);
    now = 105;
    fake.base.ops->cancel(&fake.base, 1, 0);
    CHECK_INT(fake.answers[fake_first(&fake)].ticket, 1);
    CHECK_INT(fake_due(&fake), 105);
    fake.base.ops->close(&fake.base);
    CHECK_INT(fake_due(&fake), INT64_MAX);
    fake_release(&fake);
}

static bool no_more(void *context, enum sim_call call)
{
    int *left = context;
    return call == SIM_SYNC && (*left)-- == 0;
}

static void a_watched_disk_stops_where_it_is_told(void)
{
    struct sim_disk *sim = sim_disk_new();
    struct disk *disk = sim_disk_ops(sim);
    struct file *file;
    struct error err = {0};
    int left = 1;
    sim_disk_watch(sim, no_more, &left);
    CHECK_OK(disk->ops->open(disk, "f", OPEN_WRITE | OPEN_CREATE, &file, &err), &err);
    CHECK_OK(disk->ops->write(file, 0, "ab", 2, &err), &err);
    CHECK_OK(disk->ops->sync(file, &err), &err);
    CHECK_OK(disk->ops->write(file, 2, "cd", 2, &err), &err);
    CHECK_INT(disk->ops->sync(file, &err), E_IO);
    CHECK(sim_disk_stopped(sim));
    disk->ops->close(file);
    sim_disk_free(sim);
}

static void differences_of_sandboxes(void)
{
    open_arena();
    struct str calm = STR("a\t2 bytes, 1 lines\tx\nb\t1 bytes, 0 lines\ty\nc\t0 bytes, 0 lines\tz\n");
    CHECK_STR(sandbox_difference(calm, calm, &arena), STR(""));
    CHECK_STR(sandbox_difference(calm, STR("a\t4 bytes, 2 lines\tq\nb\t1 bytes, 0 lines\tr\nd\t0 bytes, 0 lines\tz\n"),
                                 &arena),
              STR("a: 4 bytes, 2 lines instead of 2 bytes, 1 lines; b: other bytes; c: missing"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(keys_fit_paths_and_the_one_that_says_more_wins),
        TEST(a_case_adds_to_its_file_and_wins),
        TEST(mocks_become_what_a_process_would_have_given),
        TEST(every_mistake_is_told_with_its_place),
        TEST(the_schema_says_the_same_as_the_reader),
        TEST(a_desk_answers_in_the_order_of_time_then_of_starting),
        TEST(a_watched_disk_stops_where_it_is_told),
        TEST(differences_of_sandboxes),
    };
    return test_main("trial_script", tests, ARRAY_COUNT(tests), argc, argv);
}
