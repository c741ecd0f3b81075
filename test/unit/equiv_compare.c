// Logs of one script compared: what may differ, what may not, and which orders count.
#include "equiv/inside.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;
static const struct contract *contract;
static struct program *program;
static struct trial_file file;
static struct equiv *hosts;

#define PLAN "metadata: {planId: p, planVersion: '1', schemaVersion: v1.2}\nsteps:\n"
static const char two_branches[] =
    PLAN "  - {stepId: a, kind: shell, dependsOn: [], with: {command: a}, retry: {maxAttempts: 2, delay: 1s}}\n"
         "  - {stepId: b, kind: shell, dependsOn: [], with: {command: b}}\n"
         "  - {stepId: c, kind: echo, dependsOn: [a], with: {message: \"$a.output\"}}\n"
         "  - {stepId: d, kind: shell, dependsOn: [b, c], with: {command: d}}\n";
static const char script[] = "document: d.yaml\nmocks: {a#1: {exit: 1}, a#2: {output: x, takes: 3s}, b: {output: y, takes: 3s}, d: {}}\n"
                             "signals: [{after: a failed, send: pause}, {after: run paused, wait: 1s, send: resume}]\n";

static void prepare(const char *document, const char *test, const char *on, uint32_t faults)
{
    struct diagnostics diagnostics;
    struct error err = {0};
    arena_init(&arena, 65536, (size_t)1 << 30);
    diagnostics_init(&diagnostics, &arena);
    CHECK_OK(contract_open(&arena, &contract, &err), &err);
    CHECK_OK(program_load(str_from(document), STR("d.yaml"), NULL, &diagnostics, &program, &err), &err);
    enum code rc = trial_parse(str_from(test), STR("d.test.yaml"), &arena, &diagnostics, &file);
    if (rc) test_fail(__FILE__, __LINE__, "%.*s", STR_ARG(diagnostics.items[0].message));
    struct equiv_options options = {.contract = contract, .scratch = test_dir(), .seed = 3, .faults = faults};
    CHECK_OK(equiv_open(&options, &hosts, &err), &err);
    for (struct str rest = str_from(on); rest.len;) CHECK_OK(equiv_add_host(hosts, str_cut(rest, ',', &rest), &err), &err);
}

static struct equiv_report play(void)
{
    struct equiv_report report;
    struct error err = {0};
    CHECK_OK(equiv_case(hosts, program, &file.scripts[0], &arena, &report, &err), &err);
    return report;
}

static void finish(void)
{
    equiv_close(hosts);
    program_release(program);
    arena_release(&arena);
}

static void every_host_of_this_process_records_the_same(void)
{
    prepare(two_branches, script, "embedded,sqlite,files,mock", 0);
    struct equiv_report report = play();
    for (size_t i = 0; i < report.host_count; i++)
        if (report.differences[i].what)
            test_fail(__FILE__, __LINE__, "%s: %.*s", report.logs[i].host,
                      STR_ARG(report.differences[i].slot));
    CHECK(report.same && report.host_count == 4 && report.logs[0].count > 12);
    finish();
}

static void killed_hosts_come_to_the_same_end(void)
{
    prepare(two_branches,
            "document: d.yaml\n"
            "mocks: {a#1: {exit: 1}, a#2: {output: x, takes: 3s, lost: 1}, b: {output: y, takes: 3s}, d: {}}\n",
            "embedded,sqlite,files", 4);
    struct equiv_report report = play();
    CHECK(report.same && report.host_count == 4 && report.kills > 6);
    CHECK(report.logs[0].result.kills == 0 && report.logs[1].result.kills > 0);
    finish();
}

// The host named in the environment goes another way: each is found there and nowhere else.
static void planted_differences_are_found_at_their_host(void)
{
    static const char *const kinds[] = {"output", "retry", "signal", "code", "time"}, *const names[] = {"sqlite", "files", "mock"};
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
            char plant[64];
            snprintf(plant, sizeof(plant), "%s:%s", names[n], kinds[k]);
            setenv("CAIRN_EQUIV_PLANT", plant, 1);
            prepare(two_branches, script, "embedded,sqlite,files,mock", 0);
            struct equiv_report report = play();
            CHECK(!report.same);
            for (size_t i = 0; i < report.host_count; i++)
                CHECK((report.differences[i].what != EQUIV_SAME) == (strcmp(report.logs[i].host, names[n]) == 0));
            finish();
        }
    }
    unsetenv("CAIRN_EQUIV_PLANT");
}

static void a_difference_names_its_members_and_says_why(void)
{
    setenv("CAIRN_EQUIV_PLANT", "sqlite:output", 1);
    prepare(two_branches, script, "embedded,sqlite", 0);
    struct equiv_report report = play();
    const struct equiv_difference *d = &report.differences[1];
    CHECK(d->what == EQUIV_CHANGED && d->a && d->b && d->change_count == 1);
    CHECK(str_is(d->changes[0].path, "payload.result") && str_is(d->changes[0].b, "\"\\\"planted\\\"\""));
    CHECK(d->why_a.len > 0 && d->why_b.len > 0);
    unsetenv("CAIRN_EQUIV_PLANT");
    finish();
}

static void swap_lines(struct equiv_log *log, size_t a, size_t b)
{
    struct equiv_line kept = log->lines[a];
    log->lines[a] = log->lines[b];
    log->lines[b] = kept;
}

static size_t line_of(const struct equiv_log *log, const char *event, const char *step)
{
    for (size_t i = 0; i < log->count; i++)
        if (str_is(log->lines[i].event, event) && str_is(log->lines[i].step, step)) return i;
    test_fail(__FILE__, __LINE__, "no %s %s", event, step);
    return 0;
}

static void independent_branches_may_stand_in_either_order_and_one_step_may_not(void)
{
    prepare(two_branches, script, "embedded,sqlite", 0);
    struct equiv_report report = play();
    struct error err = {0};
    struct equiv_log *b = &report.logs[1];
    struct equiv_difference d;
    swap_lines(b, line_of(b, "StepStarted", "a"), line_of(b, "StepStarted", "b")); // at one moment
    CHECK_OK(equiv_compare(&report.logs[0], b, &arena, &d, &err), &err);
    CHECK(d.what == EQUIV_SAME);
    swap_lines(b, line_of(b, "StepStarted", "d"), line_of(b, "StepCompleted", "d"));
    CHECK_OK(equiv_compare(&report.logs[0], b, &arena, &d, &err), &err);
    CHECK(d.what == EQUIV_CHANGED && str_is(d.slot, "d"));
    finish();
}

static void a_log_that_breaks_an_order_of_the_contract_is_wrong_by_itself(void)
{
    prepare(two_branches, script, "embedded,sqlite", 0);
    struct equiv_report report = play();
    struct equiv_log *log = &report.logs[1];
    struct story *story = &log->result.story;
    size_t begun = 0, ended = 0;
    for (size_t i = 0; i < story->event_count; i++) {
        if (story->events[i].moment.kind == MOMENT_STEP_STARTED && str_is(story->events[i].moment.step, "d")) begun = i;
        if (story->events[i].moment.kind == MOMENT_STEP_COMPLETED && str_is(story->events[i].moment.step, "b")) ended = i;
    }
    CHECK(ended < begun && log->fault.len == 0);
    struct story_event kept = story->events[begun];
    story->events[begun] = story->events[ended];
    story->events[ended] = kept;
    equiv_judge(log, &arena);
    CHECK(log->fault.len > 0 && strstr(log->fault.ptr, "before b, which it depends on, has ended"));
    finish();
}

static void scripts_of_one_seed_are_one_script(void)
{
    prepare(two_branches, script, "embedded,sqlite", 0);
    struct trial_script first, second, other;
    CHECK(equiv_generate(program, 5, false, &arena, &first) == OK && equiv_generate(program, 5, false, &arena, &second) == OK);
    CHECK(equiv_generate(program, 6, false, &arena, &other) == OK && first.mock_count == second.mock_count);
    bool same = true, differs = false;
    for (size_t i = 0; i < first.mock_count; i++) {
        same = same && first.mocks[i].takes_ms == second.mocks[i].takes_ms && first.mocks[i].fails == second.mocks[i].fails;
        differs = differs || first.mocks[i].takes_ms != other.mocks[i].takes_ms;
    }
    CHECK(same && differs && first.mock_count == 9);
    finish();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_host_of_this_process_records_the_same),
        TEST(killed_hosts_come_to_the_same_end),
        TEST(planted_differences_are_found_at_their_host),
        TEST(a_difference_names_its_members_and_says_why),
        TEST(independent_branches_may_stand_in_either_order_and_one_step_may_not),
        TEST(a_log_that_breaks_an_order_of_the_contract_is_wrong_by_itself),
        TEST(scripts_of_one_seed_are_one_script),
    };
    return test_main("equiv_compare", tests, ARRAY_COUNT(tests), argc, argv);
}
