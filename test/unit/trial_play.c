// Scripts played on the real engine: virtual time, stories, expectations, recording, and worlds that die.
#include "harness/test.h"
#include "trial/trial.h"

#include <stdio.h>

static struct arena arena;
static const struct contract *contract;
static struct program *program;
static struct trial_file file;

#define PLAN(steps) "metadata: {planId: p, planVersion: '1', schemaVersion: v1.2}\nsteps:\n" steps

static void prepare(const char *document, const char *test)
{
    struct diagnostics diagnostics;
    struct error err = {0};
    arena_init(&arena, 65536, (size_t)1 << 30);
    diagnostics_init(&diagnostics, &arena);
    CHECK_OK(contract_open(&arena, &contract, &err), &err);
    CHECK_OK(program_load(str_from(document), STR("d.yaml"), NULL, &diagnostics, &program, &err), &err);
    enum code rc = trial_parse(str_from(test), STR("d.test.yaml"), &arena, &diagnostics, &file);
    if (!rc) trial_check(&file.scripts[0], program, &diagnostics);
    if (rc || diagnostics.error_count)
        test_fail(__FILE__, __LINE__, "%u:%u %.*s", diagnostics.items[0].line, diagnostics.items[0].column,
                  STR_ARG(diagnostics.items[0].message));
}

static struct trial_result play(void)
{
    struct trial_options options = {
        .contract = contract, .program = program, .script = &file.scripts[0], .scratch = test_dir()};
    struct trial_result result;
    struct error err = {0};
    CHECK_OK(trial_play(&options, &arena, &result, &err), &err);
    trial_judge(&file.scripts[0], &result);
    return result;
}

static void no_faults(const struct trial_result *result)
{
    if (result->fault_count)
        test_fail(__FILE__, __LINE__, "%.*s: expected %.*s, got %.*s", STR_ARG(result->faults[0].what),
                  STR_ARG(result->faults[0].expected), STR_ARG(result->faults[0].got));
}

static const char flow[] =
    PLAN("  - {stepId: a, kind: shell, dependsOn: [], with: {command: a}, retry: {maxAttempts: 3, delay: 24h}}\n"
         "  - {stepId: nap, kind: wait, dependsOn: [a], with: {duration: 1000h}}\n"
         "  - {stepId: b, kind: shell, dependsOn: [nap], with: {command: b}, when: \"$a.output.n > 3\"}\n"
         "  - {stepId: c, kind: echo, dependsOn: [b], with: {message: \"$a.output.n\"}, triggerRule: all_done}\n");

static void thousands_of_virtual_hours_and_the_same_log_twice(void)
{
    prepare(flow, "document: d.yaml\n"
                  "mocks: {a#1: {exit: 1}, a#2: {fail: TIMEOUT, takes: 5h}, a#3: {output: {n: 2}}}\n"
                  "expect:\n  status: COMPLETED\n  path: [a, nap, c]\n  skipped: [b]\n  attempts: {a: 3}\n"
                  "  outputs: {a: {n: 2}, c: 2}\n  duration: {min: 1053h, max: 1054h}\n"
                  "  events: {count: {StepFailed: 2, StepStarted a: 3}}\n");
    struct buf first, second;
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    struct trial_result result = play();
    no_faults(&result);
    CHECK(result.virtual_ms > (int64_t)1053 * 3600 * 1000);
    CHECK(story_golden(&result.story, &first));
    result = play();
    CHECK(story_golden(&result.story, &second));
    CHECK_STR(buf_str(&first), buf_str(&second));
    CHECK(first.len > 500);
    buf_release(&first);
    buf_release(&second);
}

static void what_differs_is_found(void)
{
    prepare(flow, "document: d.yaml\nmocks: {a: {output: {n: 7}}, b: }\nexpect:\n  status: FAILED\n  path: [a, b]\n"
                  "  ran: [a]\n  attempts: {a: 2}\n  outputs: {a: {n: 8}}\n  outputs_exactly: {c: 8}\n"
                  "  reasons: {b: X}\n  errors: {b: Y}\n  duration: 3s\n"
                  "  events: {exactly: [RunQueued, RunStarted, StepStarted b], count: {StepFailed: 1}}\n");
    struct trial_result result = play();
    CHECK_INT(result.fault_count, 11);
    for (size_t i = 1; i < result.fault_count; i++) CHECK(result.faults[i].line >= result.faults[i - 1].line);
    CHECK_STR(result.faults[0].what, STR("status"));
    CHECK_STR(result.faults[0].got, STR("COMPLETED"));
    CHECK_STR(result.faults[1].got, STR("a, nap, b, c"));
}

static void a_recorded_story_plays_again(void)
{
    prepare(flow,
            "document: d.yaml\nrun: r-1\nmocks: {a#1: {exit: 1}, a: {output: {n: 5}, takes: 3s}, b: {exit: 9}}\n"
            "signals: [{after: a#2 started, send: pause, reason: x}, {after: run paused, wait: 1h, send: resume}]\n");
    struct trial_result result = play();
    struct record_options options = {.document = "d.yaml"};
    struct diagnostics diagnostics;
    struct buf text, again;
    no_faults(&result);
    for (int redact = 0; redact < 2; redact++) {
        buf_init(&text, 1 << 20);
        options.redact = redact;
        CHECK(story_record(&result.story, &options, &text));
        diagnostics_init(&diagnostics, &arena);
        CHECK_INT(trial_parse(buf_str(&text), STR("r.test.yaml"), &arena, &diagnostics, &file), OK);
        struct trial_result second = play();
        no_faults(&second);
        CHECK_INT(second.story.step_count, result.story.step_count);
        buf_release(&text);
    }
    // Recording what was recorded gives the same file: nothing is lost on the way.
    options.redact = false;
    buf_init(&text, 1 << 20);
    CHECK(story_record(&result.story, &options, &text));
    CHECK_INT(trial_parse(buf_str(&text), STR("r.test.yaml"), &arena, &diagnostics, &file), OK);
    struct trial_result second = play();
    buf_init(&again, 1 << 20);
    CHECK(story_record(&second.story, &options, &again));
    CHECK_STR(buf_str(&again), buf_str(&text));
    buf_release(&again);
    buf_release(&text);
}

static struct crash_report crash(bool twice, size_t max)
{
    struct crash_options options = {.contract = contract,
                                    .program = program,
                                    .script = &file.scripts[0],
                                    .scratch = test_dir(),
                                    .seed = 3,
                                    .max = max,
                                    .twice = twice};
    struct crash_report report;
    struct error err = {0};
    CHECK_OK(crash_test(&options, &arena, &report, &err), &err);
    for (size_t i = 0; i < report.world_count; i++)
        if (!report.worlds[i].ran || report.worlds[i].failed)
            test_fail(__FILE__, __LINE__, "world %u.%u: %s %.*s", report.worlds[i].first, report.worlds[i].second,
                      report.worlds[i].rule ? report.worlds[i].rule : "not played", STR_ARG(report.worlds[i].message));
    return report;
}

// Retries, waits of weeks, a pause and a skipped step: whatever is killed, the run comes out the same.
static void every_world_comes_out_as_the_undisturbed_one(void)
{
    prepare(
        flow,
        "document: d.yaml\nmocks: {a#1: {exit: 1}, a: {output: {n: 5}, takes: 3s, idempotent: true}, b: {exit: 9}}\n"
        "signals: [{after: a#2 started, send: pause, reason: x}, {after: run paused, wait: 1h, send: resume}]\n");
    struct crash_report report = crash(false, 0);
    CHECK_INT(report.world_count, report.point_count);
    CHECK_INT(report.world_total, report.point_count);
    CHECK_INT(report.effect_count, 3);
    for (size_t i = 0; i < report.effect_count; i++)
        CHECK(report.effects[i].worlds >= 6 && report.effects[i].most == 2);
    CHECK_INT(report.unguarded, 2); // a#1 has a mock of its own, which says nothing
    uint32_t seen[BOUNDARY_COUNT] = {0};
    for (size_t i = 0; i < report.point_count; i++) seen[report.points[i].boundary]++;
    for (int i = BOUNDARY_APPEND; i < BOUNDARY_RECOVERY; i++) CHECK(seen[i] > 0);
}

static void worlds_are_drawn_once_each_and_killed_twice(void)
{
    prepare(flow, "document: d.yaml\ndefaults: {'*': {output: {n: 1}}}\n");
    struct crash_report report = crash(true, 30);
    CHECK_INT(report.world_count, 60);
    CHECK(report.world_total > 1000);
    for (size_t i = 1; i < report.world_count; i++) {
        const struct crash_world *a = &report.worlds[i - 1], *b = &report.worlds[i];
        bool rises =
            (a->second == 0 && b->second > 0) || a->first < b->first || (a->first == b->first && a->second < b->second);
        CHECK(rises);
    }
}

static void an_effect_happens_again_only_between_its_dispatch_and_its_result(void)
{
    prepare(PLAN("  - {stepId: a, kind: shell, dependsOn: [], with: {command: a}}\n"
                 "  - {stepId: b, kind: shell, dependsOn: [a], with: {command: \"x $CAIRN_IDEMPOTENCY_KEY\"}}\n"),
            "document: d.yaml\ndefaults: {shell: {}}\n");
    struct crash_report report = crash(false, 0);
    CHECK(!report.effects[0].keyed && report.effects[1].keyed);
    for (size_t i = 0; i < report.world_count; i++) {
        const struct crash_point *point = &report.points[report.worlds[i].first - 1];
        bool lost =
            point->boundary == BOUNDARY_LOST || point->boundary == BOUNDARY_TORN || point->boundary == BOUNDARY_APPEND;
        bool result = str_starts(point->label, STR("StepCompleted"));
        bool want = point->boundary == BOUNDARY_DISPATCHED || point->boundary == BOUNDARY_ANSWER ||
                    point->boundary == BOUNDARY_ANSWERED || (lost && result);
        if ((report.worlds[i].twice_count > 0) != want)
            test_fail(__FILE__, __LINE__, "%s %.*s: %zu twice", boundary_words(point->boundary), STR_ARG(point->label),
                      report.worlds[i].twice_count);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(thousands_of_virtual_hours_and_the_same_log_twice),
        TEST(what_differs_is_found),
        TEST(a_recorded_story_plays_again),
        TEST(every_world_comes_out_as_the_undisturbed_one),
        TEST(worlds_are_drawn_once_each_and_killed_twice),
        TEST(an_effect_happens_again_only_between_its_dispatch_and_its_result),
    };
    return test_main("trial_play", tests, ARRAY_COUNT(tests), argc, argv);
}
