// Two runs side by side: what counts as a difference, and where they part.
#include "support/explained_story.h"
#include "support/story.h"

#define PLAN(steps) "{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"steps\":[" steps "]}"
#define SHELL(id, deps, more)                                                                                          \
    "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"dependsOn\":[" deps "],\"with\":{\"command\":\"x\"}" more "}"
#define FORK PLAN(SHELL("a", "", "") "," SHELL("b", "", "") "," SHELL("c", "\"a\",\"b\"", ""))

static struct arena arena;
static struct json diff;

static bool same_at(struct story *a, size_t at_a, struct story *b, size_t at_b, unsigned parts)
{
    struct explained x = explained_story(a, at_a), y = explained_story(b, at_b);
    struct error err = {0};
    struct json shown;
    bool same;
    if (arena.block_size == 0) arena_init(&arena, 4096, 1 << 26);
    CHECK_OK(explain_diff(x.explain, y.explain, parts, &x.arena, &shown, &same, &err), &err);
    CHECK(json_copy(&arena, &shown, &diff));
    explained_close(&x);
    explained_close(&y);
    return same;
}

static bool same(struct story *a, struct story *b)
{
    return same_at(a, SIZE_MAX, b, SIZE_MAX, DIFF_STEPS | DIFF_OUTPUTS | DIFF_TIMING);
}

static void shows(const char *path, const char *json)
{
    const struct json *value = json_at(&diff, str_from(path));
    struct buf text;
    buf_init(&text, 1 << 20);
    if (value) json_write(&text, value);
    CHECK_STR(buf_str(&text), str_from(json));
    buf_release(&text);
}

static void order_of_parallel_steps_and_time_do_not_count(void)
{
    struct story a, b;
    story_open(&a, FORK);
    story_open(&b, FORK);
    story_start(&a);
    story_start(&b);
    a.now = b.now = 1000;
    story_done(&a, "a", "1");
    story_done(&a, "b", "2");
    story_done(&a, "c", "3");
    story_done(&b, "b", "2");
    b.now = 9000;
    story_done(&b, "a", "1");
    story_done(&b, "c", "3");
    CHECK(same(&a, &b));
    shows("parting", "");
    shows("timing.same", "false");
    shows("timing.steps.0", "{\"step\":\"a\",\"a\":1000,\"b\":9000,\"change\":8000}");
    CHECK(!same_at(&a, SIZE_MAX, &b, SIZE_MAX, DIFF_TIMING));
    shows("path", "");
    story_close(&a);
    story_close(&b);
}

static void outputs_differ_by_path(void)
{
    struct story a, b;
    story_open(&a, FORK);
    story_open(&b, FORK);
    story_start(&a);
    story_start(&b);
    story_done(&a, "a", "{\"rows\":[{\"n\":1},{\"n\":2}],\"old\":true,\"same\":\"x\"}");
    story_done(&b, "a", "{\"rows\":[{\"n\":1},{\"n\":3},{\"n\":4}],\"same\":\"x\"}");
    story_done(&a, "b", "\"{\\\"k\\\": 1}\\n\"");
    story_done(&b, "b", "\"{\\\"k\\\": 2}\\n\"");
    CHECK(!same(&a, &b));
    shows("outputs.steps.0", "{\"step\":\"a\",\"changes\":[{\"path\":\"old\",\"a\":\"true\"},{\"path\":\"rows.1.n\","
                             "\"a\":\"2\",\"b\":\"3\"},"
                             "{\"path\":\"rows.2\",\"b\":\"{\\\"n\\\":4}\"}]}");
    shows("outputs.steps.1", "{\"step\":\"b\",\"changes\":[{\"path\":\"k\",\"a\":\"1\",\"b\":\"2\"}]}");
    shows("path.same", "true");
    shows("parting.a", "{\"seq\":5,\"event\":\"StepCompleted\",\"step\":\"a\"}");
    CHECK(same_at(&a, SIZE_MAX, &b, SIZE_MAX, DIFF_STEPS));
    shows("parting", "");
    story_close(&a);
    story_close(&b);
}

static void path_differs_where_a_step_went_another_way(void)
{
    struct story a, b;
    story_open(&a, FORK);
    story_open(&b, FORK);
    story_start(&a);
    story_start(&b);
    story_done(&a, "a", "1");
    story_fail(&b, "a", "EXIT_NONZERO", true);
    CHECK(!same(&a, &b));
    shows("path.steps.0.a", "{\"state\":\"done\",\"reason\":\"COMPLETED\",\"attempts\":1,\"seq\":5}");
    shows("path.steps.0.b",
          "{\"state\":\"failed\",\"reason\":\"MAX_ATTEMPTS\",\"attempts\":1,\"errorCode\":\"EXIT_NONZERO\",\"seq\":5}");
    shows("parting.a", "{\"seq\":5,\"event\":\"StepCompleted\",\"step\":\"a\"}");
    shows("parting.b", "{\"seq\":5,\"event\":\"StepFailed\",\"step\":\"a\"}");
    story_close(&a);
    story_close(&b);
}

static void documents_differ_by_step_and_field(void)
{
    struct story a, b;
    story_open(&a, PLAN(SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("gone", "", "")));
    story_open(&b, PLAN(SHELL("new", "", "") "," SHELL("a", "", ",\"timeout\":\"5s\"") "," SHELL(
                       "b", "\"a\",\"new\"", ",\"retry\":{\"maxAttempts\":2}")));
    story_start(&a);
    story_start(&b);
    CHECK(!same(&a, &b));
    shows("document.changed",
          "[{\"step\":\"a\",\"fields\":[\"timeout\"]},{\"step\":\"b\",\"fields\":[\"dependsOn\",\"retry\"]}]");
    shows("document.added", "[\"new\"]");
    shows("document.removed", "[\"gone\"]");
    story_close(&a);
    story_close(&b);
}

// A run and itself are the same at every moment; two moments part at the first event that only the later one has.
static void moments_of_one_run_part_at_the_next_event(void)
{
    struct story s;
    story_open(&s,
               "name: t\nnodes:\n  - {id: a, bash: x}\n  - id: go\n    loop_group:\n      max_iterations: 2\n      "
               "nodes: [{id: tick, bash: x}]\n  - {id: c, bash: x, depends_on: [a, go], when: \"$a.output == '1'\"}\n");
    story_start(&s);
    story_done(&s, "tick", NULL);
    story_fail(&s, "a", "EXIT_NONZERO", true);
    story_done(&s, "tick", "7");
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    for (size_t i = 0; i <= s.stored_count; i++)
        for (size_t k = i; k <= s.stored_count; k++) {
            bool alike = same_at(&s, i, &s, k, DIFF_STEPS | DIFF_OUTPUTS);
            const struct json *parting = json_key(&diff, "parting");
            CHECK((parting == NULL) == (i == k));
            if (i == k) CHECK(alike);
            if (!parting) continue;
            CHECK(!json_key(parting, "a"));
            const struct json *seq = json_at(parting, STR("b.seq"));
            CHECK_INT(json_integer(seq ? seq : json_at(parting, STR("b.afterSeq")), -1), i + 1);
        }
    story_close(&s);
}

static void long_texts_show_where_they_differ(void)
{
    struct story a, b;
    struct buf left, right;
    story_open(&a, FORK);
    story_open(&b, FORK);
    buf_init(&left, 1 << 20);
    buf_init(&right, 1 << 20);
    buf_byte(&left, '"');
    for (int i = 0; i < 1000; i++) buf_text(&left, "\xc3\xa9");
    buf_add(&right, buf_str(&left));
    buf_text(&left, "left\"");
    buf_text(&right, "right\"");
    story_start(&a);
    story_start(&b);
    story_done(&a, "a", left.ptr);
    story_done(&b, "a", right.ptr);
    CHECK(!same(&a, &b));
    struct str shown = json_text(json_at(&diff, STR("outputs.steps.0.changes.0.b")));
    CHECK(shown.len < 100 && str_ends(shown, STR("right\"")) && str_starts(shown, STR("...")) && str_utf8(shown));
    buf_release(&left);
    buf_release(&right);
    story_close(&a);
    story_close(&b);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(order_of_parallel_steps_and_time_do_not_count), TEST(outputs_differ_by_path),
        TEST(path_differs_where_a_step_went_another_way),    TEST(documents_differ_by_step_and_field),
        TEST(moments_of_one_run_part_at_the_next_event),     TEST(long_texts_show_where_they_differ),
    };
    return test_main("explain_diff", tests, ARRAY_COUNT(tests), argc, argv);
}
