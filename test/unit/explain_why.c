// What `cairn why` says in the main cases, as people read it: goldens in test/golden/why. Also: an answer that cannot be
// reproduced says so. CAIRN_GOLDEN_UPDATE=1 rewrites the goldens.
#include "term/why.h"
#include "support/explained_story.h"
#include "support/story.h"

#include <stdio.h>

#define PLAN(steps) "{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"steps\":[" steps "]}"
#define SHELL(id, deps, more)                                                                                          \
    "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"dependsOn\":[" deps "],\"with\":{\"command\":\"x\"}" more "}"

// The screen for `path` ("" = the run) after `moments` moments, `columns` wide; 0 = not a terminal.
static void say_at(struct story *s, struct buf *out, const char *path, size_t moments, size_t columns, bool plain)
{
    struct explained x = explained_story(s, moments);
    struct console console = {.self = "cairn", .tail = "", .time = TIME_ISO, .now_ms = s->now + 5000};
    struct json answer;
    struct error err = {0};
    struct term term = {.tty = columns > 0, .utf8 = !plain, .columns = columns ? columns : 80, .rows = 24};
    bool past = moments < s->stored_count;
    int64_t now = past ? 0 : s->now + 5000;
    arena_init(&console.arena, 4096, 1 << 22);
    CHECK_OK(path[0] ? explain_step(x.explain, str_from(path), now, &x.arena, &answer, &err)
                     : explain_run(x.explain, now, &x.arena, &answer, &err),
             &err);
    buf_printf(out, "$ cairn why r1%s%s", path[0] ? "/" : "", path);
    if (past) buf_printf(out, "@%zu", moments);
    buf_byte(out, '\n');
    size_t from = out->len;
    why_write(&console, out, &term, &answer, past ? s->stored_count : 0);
    buf_byte(out, '\n');
    arena_release(&console.arena);
    explained_close(&x);
    // No line is wider than the terminal, but for single words and commands to paste.
    struct str text = str_slice(buf_str(out), from, out->len);
    while (columns > 0 && text.len > 0) CHECK(str_cut(text, '\n', &text).len < columns * 4);
}

static void say(struct story *s, struct buf *out, const char *path)
{
    say_at(s, out, path, SIZE_MAX, 0, false);
}

static void finish(struct story *s, struct buf *out, const char *golden)
{
    test_golden(golden, buf_str(out));
    buf_release(out);
    story_close(s);
}

static void begin(struct story *s, struct buf *out, const char *document)
{
    buf_init(out, 1 << 20);
    story_open(s, document);
    s->now = 1770829200000; // 2026-02-11T17:00:00Z
}

static void waits_and_skips(void)
{
    struct story s;
    struct buf out;
    begin(&s, &out,
          "name: t\nnodes:\n  - {id: build, bash: x}\n  - {id: test, bash: x, depends_on: [build]}\n  - {id: notify, "
          "bash: "
          "x, depends_on: [test], when: \"$test.output.flaky == 'true' || $test.output.count > 3\"}\n  - {id: publish, "
          "bash: x, depends_on: [notify, test], trigger_rule: one_failed}\n  - {id: after, bash: x, depends_on: "
          "[notify]}\n");
    story_start(&s);
    say(&s, &out, "notify");
    say(&s, &out, "after");
    say(&s, &out, "");
    story_done(&s, "build", "\"ok\"");
    story_done(&s, "test", "{\"flaky\": false, \"count\": 2}");
    const char *const steps[] = {"build", "notify", "publish", "after", ""};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) say(&s, &out, steps[i]);
    say_at(&s, &out, "notify", 3, 0, false);
    finish(&s, &out, "why/waits-and-skips.txt");
}

static void retries_and_gives_up(void)
{
    struct story s;
    struct buf out;
    begin(&s, &out,
          PLAN(SHELL("load", "",
                     ",\"retry\":{\"maxAttempts\":3,\"delay\":\"10s\",\"backoff\":\"exponential\",\"maxDelay\":\"1m\","
                     "\"nonRetryable\":[\"AUTH\"]}") "," SHELL("use", "\"load\"", "") "," SHELL("side", "", "")));
    story_start(&s);
    story_fail(&s, "load", "EXIT_NONZERO", true);
    say(&s, &out, "load");
    say(&s, &out, "use");
    story_timer(&s, "load");
    story_crash(&s);
    say(&s, &out, "load");
    story_fail(&s, "load", "AUTH", true);
    say(&s, &out, "load");
    say(&s, &out, "use");
    say(&s, &out, "");
    story_done(&s, "side", NULL);
    say(&s, &out, "");
    finish(&s, &out, "why/retries-and-gives-up.txt");
}

static void held_then_retried_and_skipped_by_hand(void)
{
    struct story s;
    struct buf out;
    begin(&s, &out, PLAN(SHELL("load", "", ",\"onStepFailure\":\"hold\"") "," SHELL("report", "\"load\"", "")));
    story_start(&s);
    story_fail(&s, "load", "EXIT_NONZERO", true);
    say(&s, &out, "load");
    say(&s, &out, "report");
    say(&s, &out, "");
    story_signal(&s, SIGNAL_RETRY_STEP, "load");
    story_fail(&s, "load", "EXIT_NONZERO", true);
    story_signal(&s, SIGNAL_SKIP_STEP, "load");
    say(&s, &out, "load");
    say(&s, &out, "report");
    finish(&s, &out, "why/held.txt");
}

static void approval_pause_and_cancel(void)
{
    struct story s;
    struct buf out;
    begin(&s, &out,
          "name: t\nnodes:\n  - {id: sign, bash: x}\n  - {id: deploy, depends_on: [sign], approval: {message: \"Ship "
          "$sign.output?\", timeout: 1h, on_timeout: reject}}\n  - {id: slow, bash: x}\n  - {id: tell, bash: x, "
          "depends_on: [deploy]}\n");
    story_start(&s);
    story_done(&s, "sign", "\"v1.4\"");
    say(&s, &out, "deploy");
    say(&s, &out, "tell");
    say_at(&s, &out, "deploy", SIZE_MAX, 60, false);
    say_at(&s, &out, "deploy", SIZE_MAX, 60, true);
    say_at(&s, &out, "deploy", SIZE_MAX, 200, false);
    story_signal(&s, SIGNAL_PAUSE, "");
    say(&s, &out, "");
    story_signal(&s, SIGNAL_APPROVE, "");
    say(&s, &out, "deploy");
    say(&s, &out, "tell");
    story_signal(&s, SIGNAL_CANCEL, "");
    say(&s, &out, "slow");
    say(&s, &out, "tell");
    story_fail(&s, "slow", "CANCELLED", false);
    say(&s, &out, "slow");
    say(&s, &out, "tell");
    say(&s, &out, "");
    finish(&s, &out, "why/approval-pause-cancel.txt");
}

static void loops(void)
{
    struct story s;
    struct buf out;
    begin(&s, &out,
          "name: t\nnodes:\n  - id: go\n    loop_group:\n      max_iterations: 3\n      until_bash: test\n      "
          "nodes:\n        - {id: tick, bash: x}\n        - {id: tock, bash: x, depends_on: [tick], when: "
          "\"$tick.output == 'go'\"}\n  - {id: after, bash: x, depends_on: [go]}\n");
    story_start(&s);
    story_done(&s, "tick", "\"stop\"");
    struct str until = s.program->steps[s.program->steps[0].until].id;
    char name[160];
    snprintf(name, sizeof(name), "%.*s", STR_ARG(until));
    story_fail(&s, name, "EXIT_NONZERO", false);
    const char *const steps[] = {"go", "go[1].tock", "go[2].tick", "go[2].tock", "go[3].tick", "after"};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) say(&s, &out, steps[i]);
    story_done(&s, "tick", "\"go\"");
    story_done(&s, "tock", "\"done\"");
    story_done(&s, name, "true");
    say(&s, &out, "go");
    say(&s, &out, "go[3].tick");
    say(&s, &out, "go[2].tock");
    finish(&s, &out, "why/loops.txt");
}

static void condition_that_cannot_be_evaluated(void)
{
    struct story s;
    struct buf out;
    begin(
        &s, &out,
        "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, depends_on: [a], when: \"$a.output.missing == '1' "
        "&& $a.output == '2'\"}\n");
    story_start(&s);
    story_done(&s, "a", "{\"there\": 1}");
    say(&s, &out, "b");
    say(&s, &out, "");
    finish(&s, &out, "why/condition-fault.txt");
}

static void values_are_shortened_and_stay_text(void)
{
    struct story s;
    struct buf out, value;
    begin(&s, &out,
          "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, depends_on: [a], when: \"$a.output == '1'\"}\n");
    buf_init(&value, 1 << 20);
    buf_text(&value, "\"\\u001b[31mred\\n");
    for (int i = 0; i < 2000; i++) buf_text(&value, "\xc3\xa9");
    buf_byte(&value, '"');
    story_start(&s);
    story_done(&s, "a", value.ptr);
    say(&s, &out, "b");
    CHECK(out.len < 3000);
    CHECK(str_utf8(buf_str(&out)));
    CHECK(!strchr(out.ptr, '\x1b'));
    CHECK(strstr(out.ptr, "\\x1b[31mred\\n"));
    buf_release(&value);
    buf_release(&out);
    story_close(&s);
}

static void log_that_says_otherwise_is_not_reproduced(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, depends_on: [a], when: \"$a.output == "
                   "'no'\"}\n");
    story_start(&s);
    story_done(&s, "a", "\"yes\"");
    struct explained x;
    struct error err = {0};
    struct json answer;
    explained_open(&x, s.program, &story_ids, &story_env);
    for (size_t i = 0; i < s.stored_count; i++) {
        struct moment m;
        CHECK_OK(contract_decode_ledger(s.stored[i], &x.arena, &m, &err), &err);
        if (m.kind == MOMENT_STEP_SKIPPED) m.reason = STR(SKIP_TRIGGER_RULE); // the rule did pass
        CHECK_OK(explain_fold(x.explain, &m, i + 1, &err), &err);
    }
    CHECK_OK(explain_step(x.explain, STR("b"), 0, &x.arena, &answer, &err), &err);
    CHECK(!explained_true(json_key(&answer, "reproduced")));
    CHECK_STR(json_text(json_at(&answer, STR("decisions.doubt"))),
              STR("STEP_SKIPPED of b: its rule and condition say otherwise"));
    CHECK_OK(explain_run(x.explain, 0, &x.arena, &answer, &err), &err);
    CHECK(!explained_true(json_key(&answer, "reproduced")));
    explained_close(&x);
    story_close(&s);
}

static void paths_that_name_no_step_are_refused(void)
{
    static const char *const paths[] = {"nope",      "go.tick",         "go[0].tick", "go[01].tick", "go[4].tick",
                                        "go[1]tick", "go[1].tick[1].x", "tick",       "go[1].",      ""};
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - id: go\n    loop_group:\n      max_iterations: 3\n      nodes: [{id: tick, "
                   "bash: x}]\n");
    struct explained x = explained_story(&s, 0);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        struct error err = {0};
        struct json answer;
        if (explain_step(x.explain, str_from(paths[i]), 0, &x.arena, &answer, &err) != E_NOT_FOUND)
            test_fail(__FILE__, __LINE__, "%s was answered", paths[i]);
    }
    explained_close(&x);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(waits_and_skips),
        TEST(retries_and_gives_up),
        TEST(held_then_retried_and_skipped_by_hand),
        TEST(approval_pause_and_cancel),
        TEST(loops),
        TEST(condition_that_cannot_be_evaluated),
        TEST(values_are_shortened_and_stay_text),
        TEST(log_that_says_otherwise_is_not_reproduced),
        TEST(paths_that_name_no_step_are_refused),
    };
    return test_main("explain_why", tests, ARRAY_COUNT(tests), argc, argv);
}
