// Lists of child runs: what they are made of is recorded once, their members begin in their order, so many at a time, and end once.
#include "support/story.h"

#include <stdio.h>

#define LIST(items, more)                                                                                              \
    "name: n\nnodes:\n  - {id: s, workflow: child, fan_out: {items: " items ", max_parallel: 2" more "}}\n"

static enum code load_child(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    (void)context, (void)arena, (void)err;
    part->file = STR("child.yaml");
    part->text = STR("name: child\nnodes:\n  - {id: x, bash: x}\n");
    return OK;
}

static void open_list(struct story *s, const char *text, const char *inputs)
{
    static const struct program_loader loader = {.load = load_child};
    struct error err = {0};
    story_open_with(s, text, &loader);
    if (inputs) CHECK_OK(json_parse(str_from(inputs), &json_limits_default, &s->memory, &s->inputs, &err), &err);
    story_start(s);
}

static bool is_asked(const struct story *s, enum effect_kind kind, uint32_t member)
{
    for (size_t i = 0; i < s->effect_count; i++)
        if (s->effects[i].kind == kind && s->effects[i].member == member) return true;
    return false;
}

static uint32_t count(const struct story *s, enum effect_kind kind)
{
    uint32_t found = 0;
    for (size_t i = 0; i < s->effect_count; i++) found += s->effects[i].kind == kind;
    return found;
}

// Of the attempt in flight.
static void end_child(struct story *s, uint32_t member, const char *json, const char *fault)
{
    struct run_attempt now = kernel_attempt(s->run, 0);
    struct error err = {0};
    struct arena arena = arena_of(1024, 1 << 20);
    struct input input = {.kind = INPUT_RESULT,
                          .logical = now.logical,
                          .engine = now.engine,
                          .member = member,
                          .ok = fault == NULL,
                          .fault = {.code = str_from(fault), .message = STR("no"), .category = STR("business")}};
    if (json) CHECK_OK(json_parse(str_from(json), &json_limits_default, &arena, &input.value, &err), &err);
    for (size_t i = 0; i < s->effect_count; i++)
        if (s->effects[i].member == member) s->effects[i] = s->effects[--s->effect_count];
    story_step(s, &input);
    arena_release(&arena);
}

static void check_value(const struct story *s, const char *json)
{
    struct buf text = buf_of(65536);
    CHECK(kernel_value(s->run, 0));
    json_canon(&text, kernel_value(s->run, 0));
    CHECK_STR(buf_str(&text), str_from(json));
    buf_release(&text);
}

static void a_list_is_recorded_with_its_start_and_its_members_begin_in_their_order(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c]", ""), NULL);
    story_expect(&s, "[0] RUN_STARTED\n[0] STEP_STARTED s 1.1\n[0] LIST_STARTED s 1.1\n");
    CHECK_INT(count(&s, EFFECT_SUBRUN), 2);
    CHECK(is_asked(&s, EFFECT_SUBRUN, 1) && is_asked(&s, EFFECT_SUBRUN, 2));
    end_child(&s, 2, "{\"k\":1}", NULL);
    story_expect(&s, "[0] CHILD_ENDED s[2] 1.1\n");
    CHECK(is_asked(&s, EFFECT_SUBRUN, 3));
    end_child(&s, 1, "\"one\"", NULL);
    CHECK_INT(count(&s, EFFECT_SUBRUN), 1);
    buf_clear(&s.told);
    end_child(&s, 3, NULL, "CHILD_FAILED");
    story_expect(&s, "[0] CHILD_ENDED s[3] 1.1 CHILD_FAILED\n[0] STEP_COMPLETED s 1.1\n[0] RUN_COMPLETED\n");
    check_value(&s, "[\"one\",{\"k\":1},{\"archon_failed\":true,\"error\":\"no\",\"status\":\"failed\"}]");
    story_close(&s);
}

static void change_inputs(struct story *s, const char *json)
{
    struct json payload;
    struct error err = {0};
    CHECK_OK(json_parse(str_from(json), &json_limits_default, &s->memory, &payload, &err), &err);
    struct signal signal = {.type = SIGNAL_UPDATE_PARAMS,
                            .id = STR("00000000-0000-4000-8000-0000000000ff"),
                            .actor = STR("ann"),
                            .role = STR("Admin"),
                            .payload = payload};
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-000000000000")};
    story_step(s, &input);
    CHECK(s->last_decision.accepted);
}

static void check_item(const struct story *s, uint32_t member, const char *text)
{
    struct arena arena = arena_of(1024, 1 << 20);
    struct json item;
    struct str as;
    struct error err = {0};
    CHECK_OK(kernel_item(s->run, 0, member, &story_env, &arena, &item, &as, &err), &err);
    CHECK_STR(json_text(&item), str_from(text));
    CHECK_STR(as, STR("n"));
    arena_release(&arena);
}

static void items_stay_what_they_were_whatever_becomes_of_the_inputs(void)
{
    struct story s;
    open_list(&s, LIST("$INPUTS.list", ", as: n"), "{\"list\":[\"a\",\"b\",\"c\"]}");
    end_child(&s, 1, "1", NULL);
    change_inputs(&s, "{\"params\":{\"list\":[\"x\",\"y\"]}}");
    story_crash(&s);
    CHECK_INT(count(&s, EFFECT_SUBRUN), 2);
    check_item(&s, 2, "b");
    check_item(&s, 3, "c");
    end_child(&s, 2, "2", NULL);
    buf_clear(&s.told);
    end_child(&s, 3, "3", NULL);
    story_expect(&s, "[0] CHILD_ENDED s[3] 1.1\n[0] STEP_COMPLETED s 1.1\n[0] RUN_COMPLETED\n");
    check_value(&s, "[1,2,3]");
    story_close(&s);
}

static void a_child_that_is_told_twice_has_ended_once(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c]", ""), NULL);
    end_child(&s, 1, "1", NULL);
    buf_clear(&s.told);
    end_child(&s, 1, "2", NULL);
    story_expect(&s, "");
    story_crash(&s);
    story_expect(&s, "");
    CHECK(!is_asked(&s, EFFECT_SUBRUN, 1) && is_asked(&s, EFFECT_SUBRUN, 2) && is_asked(&s, EFFECT_SUBRUN, 3));
    COVERED(list_child_ended_twice);
    story_close(&s);
}

static void in_a_pause_children_end_and_none_begins_I25(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c, d]", ""), NULL);
    story_signal(&s, SIGNAL_PAUSE, "");
    buf_clear(&s.told);
    end_child(&s, 1, "1", NULL);
    end_child(&s, 2, "2", NULL);
    story_expect(&s, "[0] CHILD_ENDED s[1] 1.1\n[0] CHILD_ENDED s[2] 1.1\n");
    CHECK_INT(count(&s, EFFECT_SUBRUN), 0);
    story_crash(&s);
    CHECK_INT(count(&s, EFFECT_SUBRUN), 0);
    story_signal(&s, SIGNAL_RESUME, "");
    CHECK_INT(count(&s, EFFECT_SUBRUN), 2);
    end_child(&s, 4, "4", NULL);
    end_child(&s, 3, "3", NULL);
    check_value(&s, "[1,2,3,4]");
    story_close(&s);
}

static void a_cancelled_list_ends_with_the_last_child_that_had_begun(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c]", ""), NULL);
    end_child(&s, 1, "1", NULL);
    story_signal(&s, SIGNAL_CANCEL, "");
    CHECK_INT(count(&s, EFFECT_SUBRUN_CANCEL), 2);
    CHECK(is_asked(&s, EFFECT_SUBRUN_CANCEL, 2) && is_asked(&s, EFFECT_SUBRUN_CANCEL, 3));
    buf_clear(&s.told);
    end_child(&s, 2, NULL, "CHILD_CANCELLED");
    story_crash(&s);
    CHECK(is_asked(&s, EFFECT_SUBRUN_CANCEL, 3) && !is_asked(&s, EFFECT_SUBRUN_CANCEL, 2));
    end_child(&s, 3, "3", NULL);
    story_expect(&s, "[0] CHILD_ENDED s[2] 1.1 CHILD_CANCELLED\n[0] CHILD_ENDED s[3] 1.1\n"
                     "[0] STEP_FAILED s 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    story_close(&s);
}

static void a_list_that_is_cancelled_when_no_child_is_under_way_ends_at_once(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c]", ""), NULL);
    story_signal(&s, SIGNAL_PAUSE, "");
    end_child(&s, 1, "1", NULL);
    end_child(&s, 2, "2", NULL);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_CANCEL, "");
    story_expect(&s, "[0] SIGNAL_ACCEPTED CANCEL\n[0] STEP_FAILED s 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    COVERED(list_cancelled_between_children);
    story_close(&s);
}

// Items and results of any size: what does not fit into a record is beside the log, and is found again after a crash.
static void large_lists_are_kept_beside_the_log(void)
{
    enum { COUNT = 10, EACH = 9000 };
    static char inputs[COUNT * (EACH + 4) + 64], text[EACH + 3];
    size_t at = (size_t)snprintf(inputs, sizeof(inputs), "{\"list\":[");
    for (int i = 0; i < COUNT; i++)
        at += (size_t)snprintf(inputs + at, sizeof(inputs) - at, "%s\"%0*d\"", i ? "," : "", EACH, i + 1);
    snprintf(inputs + at, sizeof(inputs) - at, "]}");
    snprintf(text, sizeof(text), "\"%0*d\"", EACH, 7);
    struct story s;
    open_list(&s, LIST("$INPUTS.list", ", as: n"), inputs);
    COVERED(list_items_beside_the_log);
    story_crash(&s);
    COVERED(list_items_fetched);
    text[EACH + 1] = '\0';
    check_item(&s, 7, text + 1);
    text[EACH + 1] = '"';
    for (uint32_t i = 1; i <= COUNT; i++) end_child(&s, i, text, NULL);
    COVERED(list_value_beside_the_log);
    CHECK(kernel_blob(s.run, 0) && kernel_blob(s.run, 0)->size > COUNT * EACH);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void what_a_child_gave_that_is_gone_fails_the_list(void)
{
    struct story s;
    open_list(&s, LIST("[a]", ""), NULL);
    struct input input = {.kind = INPUT_RESULT, .logical = 1, .engine = 1, .member = 1, .ok = true, .has_blob = true};
    input.blob = sha256(STR("gone"));
    input.blob_size = 4;
    buf_clear(&s.told);
    story_step(&s, &input);
    story_expect(&s, "[0] CHILD_ENDED s[1] 1.1\n[0] STEP_FAILED s 1.1 REFERENCE_NOT_AVAILABLE\n"
                     "[0] RUN_FAILED REFERENCE_NOT_AVAILABLE\n");
    COVERED(list_value_cannot_be_had);
    story_close(&s);
}

static void a_list_that_fails_is_tried_again_as_a_new_list(void)
{
    struct story s;
    open_list(&s,
              "name: n\nnodes:\n  - {id: s, workflow: child, fan_out: {items: [a, b], join: all_success}, retry: "
              "{max_attempts: 1, delay_ms: 1000, on_error: all}}\n",
              NULL);
    end_child(&s, 1, NULL, "CHILD_FAILED");
    buf_clear(&s.told);
    end_child(&s, 2, "2", NULL);
    story_timer(&s, "s");
    story_expect(&s, "[0] CHILD_ENDED s[2] 1.1\n[0] ATTEMPT_FAILED s 1.1 CHILD_FAILED\n[0] STEP_DELAYED s 2.1 due 1000\n"
                     "[1000] STEP_STARTED s 2.1\n[1000] LIST_STARTED s 2.1\n");
    end_child(&s, 1, "1", NULL);
    end_child(&s, 2, NULL, "CHILD_FAILED");
    CHECK_STR(s.run->fault.message, STR("1 of 2 children failed; item 2: no"));
    story_close(&s);
}

static void the_time_of_a_list_is_over_for_all_its_children(void)
{
    struct story s;
    open_list(&s, "name: n\nnodes:\n  - {id: s, workflow: child, fan_out: {items: [a, b, c], max_parallel: 2}, timeout: 5000}\n",
              NULL);
    end_child(&s, 1, "1", NULL);
    buf_clear(&s.told);
    story_timer(&s, "s");
    story_expect(&s, "[5000] STEP_FAILED s 1.1 TIMEOUT\n[5000] RUN_FAILED TIMEOUT\n");
    CHECK(is_asked(&s, EFFECT_SUBRUN_CANCEL, 2) && is_asked(&s, EFFECT_SUBRUN_CANCEL, 3));
    story_close(&s);
}

// Their answer is an input, as that of kinds without a tool is.
static void lists_without_members_are_answered_like_kinds_without_a_tool(void)
{
    static const struct {
        const char *items, *fault;
    } cases[] = {{LIST("[]", ""), NULL},
                 {LIST("\"[]\"", ""), NULL},
                 {LIST("not a list", ""), "INVALID_ITEMS"},
                 {LIST("$INPUTS.none", ""), "REFERENCE_NOT_AVAILABLE"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct story s;
        open_list(&s, cases[i].items, NULL);
        story_expect(&s, "[0] RUN_STARTED\n[0] STEP_STARTED s 1.1\n");
        story_crash(&s);
        story_expect(&s, "");
        CHECK(story_waits(&s, EFFECT_EXECUTE, "s"));
        struct instant answer;
        struct error err = {0};
        CHECK_OK(kernel_instant(s.run, 0, &story_env, &s.turn, &answer, &err), &err);
        CHECK_INT(answer.ok, cases[i].fault == NULL);
        CHECK_STR(answer.fault.code, str_from(cases[i].fault));
        CHECK(!answer.ok || (answer.value.type == JSON_ARRAY && answer.value.count == 0));
        story_close(&s);
    }
}

// As logs were before lists were recorded.
static void forget_the_list(struct story *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->stored_count; i++) {
        struct moment m;
        struct error err = {0};
        CHECK_OK(contract_decode_ledger(s->stored[i], &s->turn, &m, &err), &err);
        if (m.kind != MOMENT_LIST_STARTED && m.kind != MOMENT_CHILD_ENDED) s->stored[kept++] = s->stored[i];
    }
    s->stored_count = kept;
}

static void a_list_that_was_not_recorded_is_when_it_is_taken_up(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c]", ""), NULL);
    end_child(&s, 1, "1", NULL);
    forget_the_list(&s);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] LIST_STARTED s 1.1\n");
    CHECK_INT(count(&s, EFFECT_SUBRUN), 2);
    end_child(&s, 1, "1", NULL); // whoever looks for it finds that it has ended
    CHECK(is_asked(&s, EFFECT_SUBRUN, 3));
    story_crash(&s);
    end_child(&s, 2, "2", NULL);
    end_child(&s, 3, "3", NULL);
    check_value(&s, "[1,2,3]");
    COVERED(list_taken_up);
    story_close(&s);
}

// Any of them may be under way: an engine before may have begun it.
static void all_children_of_a_list_that_was_taken_up_are_asked_to_end(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c, d]", ""), NULL);
    forget_the_list(&s);
    story_crash(&s);
    story_signal(&s, SIGNAL_CANCEL, "");
    CHECK_INT(count(&s, EFFECT_SUBRUN_CANCEL), 4);
    end_child(&s, 1, "1", NULL);
    end_child(&s, 4, NULL, "CHILD_CANCELLED");
    end_child(&s, 3, NULL, "CANCELLED");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    end_child(&s, 2, NULL, "CHILD_CANCELLED");
    CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
    story_close(&s);
}

// Children that other processes have are looked at once a second, each by itself: looks that called for further ones would double.
static void a_look_at_one_child_is_none_at_the_others(void)
{
    struct story s;
    open_list(&s, LIST("[a, b, c]", ""), NULL);
    s.effect_count = 0;
    holds_release(&s.holds);
    struct input look = {.kind = INPUT_RECOVER, .timer = TIMER_LOOK, .step = 0, .logical = 2};
    story_step(&s, &look);
    CHECK(count(&s, EFFECT_SUBRUN) == 1 && is_asked(&s, EFFECT_SUBRUN, 2));
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_list_is_recorded_with_its_start_and_its_members_begin_in_their_order),
        TEST(items_stay_what_they_were_whatever_becomes_of_the_inputs),
        TEST(a_child_that_is_told_twice_has_ended_once),
        TEST(in_a_pause_children_end_and_none_begins_I25),
        TEST(a_cancelled_list_ends_with_the_last_child_that_had_begun),
        TEST(a_list_that_is_cancelled_when_no_child_is_under_way_ends_at_once),
        TEST(large_lists_are_kept_beside_the_log),
        TEST(what_a_child_gave_that_is_gone_fails_the_list),
        TEST(a_list_that_fails_is_tried_again_as_a_new_list),
        TEST(the_time_of_a_list_is_over_for_all_its_children),
        TEST(lists_without_members_are_answered_like_kinds_without_a_tool),
        TEST(a_list_that_was_not_recorded_is_when_it_is_taken_up),
        TEST(all_children_of_a_list_that_was_taken_up_are_asked_to_end),
        TEST(a_look_at_one_child_is_none_at_the_others),
    };
    return test_main("kernel_list", tests, ARRAY_COUNT(tests), argc, argv);
}
