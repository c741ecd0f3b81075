// The view of a playbook's run: visits, tasks and iterations, told moment by moment.
#include "support/view_kit.h"

#include "schema/schema.h"

static struct json parsed(const char *text)
{
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &arena, &value, &err), &err);
    return value;
}

static void requested(void)
{
    begin();
    static struct start_facts start;
    start = (struct start_facts){.document_kind = STR("playbook"), .document_sha256 = STR("ab"), .name = STR("fetch")};
    start.inputs = json_object();
    tell((struct moment){.kind = MOMENT_RUN_REQUESTED, .start = &start});
    tell_kind(MOMENT_REQUEST_EVALUATED);
}

static void began(void)
{
    requested();
    tell((struct moment){.kind = MOMENT_RUN_STARTED, .value = json_object()});
    tell_kind(MOMENT_WORKFLOW_STARTED);
}

static void visit(enum moment_kind kind, const char *name, uint32_t number)
{
    struct moment moment = {.kind = kind, .step = str_from(name), .visit = number};
    if (kind == MOMENT_ADMIT_EVALUATED) moment.value = parsed("{\"allow\":true}");
    if (kind == MOMENT_STEP_FAILED) moment.fault = (struct fault){.code = STR("HTTP_500"), .message = STR("no")};
    tell(moment);
}

static void task(enum moment_kind kind, const char *name, const char *label, uint32_t iteration, uint32_t attempt)
{
    struct moment moment = {.kind = kind,
                            .step = str_from(name),
                            .visit = 1,
                            .task = str_from(label),
                            .task_run = 1,
                            .iteration = iteration,
                            .logical = attempt};
    if (kind == MOMENT_ATTEMPT_FAILED || kind == MOMENT_TASK_FAILED)
        moment.fault = (struct fault){.code = STR("HTTP_503"), .category = STR("server_error"), .message = STR("busy")};
    tell(moment);
}

static void an_execution_is_pending_until_it_starts_NX_3_1a_NX_3_1b_NX_3_1c(void)
{
    requested();
    CHECK_INT(view.status, RUN_STATUS_PENDING);
    CHECK_STR(view.start.name, STR("fetch"));
    CHECK_INT(view_vocabulary(&view), VOCABULARY_NOETL);
    tell((struct moment){.kind = MOMENT_RUN_STARTED, .value = json_object()});
    CHECK_INT(view.status, RUN_STATUS_RUNNING);
    CHECK_STR(view.start.name, STR("fetch")); // the facts stay those of the request
    CHECK(!view.inconsistent);
    visit(MOMENT_STEP_STARTED, "a", 1);
    visit(MOMENT_STEP_COMPLETED, "a", 1);
    tell_kind(MOMENT_WORKFLOW_FINISHED);
    CHECK_INT(view.status, RUN_STATUS_RUNNING);
    tell_kind(MOMENT_RUN_COMPLETED);
    CHECK_INT(view.status, RUN_STATUS_COMPLETED);
    tell_kind(MOMENT_RUN_PROCESSED);
    CHECK_INT(view.status, RUN_STATUS_COMPLETED);
    CHECK(!view.inconsistent);
}

static void every_visit_is_a_step_of_its_own_C_65(void)
{
    began();
    for (uint32_t n = 1; n <= 3; n++) {
        visit(MOMENT_ADMIT_EVALUATED, "poll", n);
        visit(MOMENT_STEP_SCHEDULED, "poll", n);
        visit(MOMENT_STEP_STARTED, "poll", n);
        visit(n < 3 ? MOMENT_STEP_FAILED : MOMENT_STEP_COMPLETED, "poll", n);
        visit(MOMENT_ROUTED, "poll", n);
    }
    CHECK_INT(view.step_count, 3);
    CHECK_INT(step("poll")->status, STEP_STATUS_FAILED);
    CHECK_INT(step("poll:run:2")->status, STEP_STATUS_FAILED);
    CHECK_INT(step("poll:run:3")->status, STEP_STATUS_SUCCESS);
    CHECK_INT(step("poll:run:3")->visit, 3);
    CHECK_INT(step("poll:run:3")->logical, 1);
    CHECK(!view.inconsistent);
}

static void a_step_that_is_not_admitted_is_skipped_C_27(void)
{
    began();
    struct moment denied = {.kind = MOMENT_ADMIT_EVALUATED, .step = STR("b"), .visit = 1};
    denied.value = parsed("{\"allow\":false,\"matched_rule_index\":0}");
    tell(denied);
    CHECK_INT(step("b")->status, STEP_STATUS_SKIPPED);
    CHECK_STR(step("b")->skip_reason, STR(SKIP_CONDITION_FALSE));
    CHECK_INT(view.skipped_count, 1);
}

static void attempts_of_tasks_are_not_attempts_of_their_step_NX_0c(void)
{
    began();
    visit(MOMENT_STEP_STARTED, "a", 1);
    task(MOMENT_TASK_STARTED, "a", "fetch", 0, 1);
    task(MOMENT_ATTEMPT_STARTED, "a", "fetch", 0, 1);
    task(MOMENT_ATTEMPT_FAILED, "a", "fetch", 0, 1);
    task(MOMENT_TASK_DECIDED, "a", "fetch", 0, 1);
    CHECK_INT(step("a")->status, STEP_STATUS_RUNNING);
    CHECK_INT(step("a")->logical, 1);
    task(MOMENT_ATTEMPT_STARTED, "a", "fetch", 0, 2);
    task(MOMENT_ATTEMPT_DONE, "a", "fetch", 0, 2);
    task(MOMENT_TASK_DONE, "a", "fetch", 0, 2);
    task(MOMENT_TASK_STARTED, "a", "save", 0, 1);
    task(MOMENT_TASK_FAILED, "a", "save", 0, 1);
    const struct step_view *a = step("a");
    CHECK_INT(a->task_count, 2);
    CHECK_STR(a->tasks[0].label, STR("fetch"));
    CHECK_INT(a->tasks[0].runs, 1);
    CHECK_INT(a->tasks[0].attempts, 2);
    CHECK_INT(a->tasks[0].done, 1);
    CHECK_STR(a->tasks[0].fault.code, STR("HTTP_503"));
    CHECK_INT(a->tasks[1].failed, 1);
    CHECK_INT(a->attempt_count, 1);
    CHECK(!view.inconsistent);
}

static void iterations_are_counted_and_not_kept_NX_3_5c_NX_3_5d_NX_3_5e(void)
{
    enum { ITEMS = 1000 };
    began();
    visit(MOMENT_STEP_STARTED, "each", 1);
    tell((struct moment){.kind = MOMENT_LOOP_STARTED, .step = STR("each"), .visit = 1, .counts = {.total = ITEMS}});
    for (uint32_t i = 1; i <= ITEMS; i++) {
        struct moment moment = {.step = STR("each"), .visit = 1, .iteration = i};
        moment.kind = MOMENT_ITERATION_STARTED;
        tell(moment);
        task(MOMENT_TASK_STARTED, "each", "noop", i, 1);
        task(MOMENT_TASK_DONE, "each", "noop", i, 1);
        moment.kind = i % 10 ? MOMENT_ITERATION_DONE : MOMENT_ITERATION_FAILED;
        if (i % 10 == 0) moment.fault = (struct fault){.code = STR("X")};
        tell(moment);
    }
    const struct step_view *each = step("each");
    CHECK_INT(each->loop.total, ITEMS);
    CHECK_INT(each->loop.started, ITEMS);
    CHECK_INT(each->loop.done, ITEMS - ITEMS / 10);
    CHECK_INT(each->loop.failed, ITEMS / 10);
    CHECK_INT(each->task_count, 1);
    CHECK_INT(each->tasks[0].runs, ITEMS);
    CHECK_INT(each->status, STEP_STATUS_RUNNING);
    CHECK_INT(view.step_count, 1);
    CHECK(arena.size < 4 << 20);
    CHECK(!view.inconsistent);
}

static void snapshot_tells_visits_tasks_and_items(void)
{
    iterations_are_counted_and_not_kept_NX_3_5c_NX_3_5d_NX_3_5e();
    struct run_view copy;
    struct json one, two;
    static struct arena other;
    arena_init(&other, 4096, 64 << 20);
    CHECK(view_copy(&view, &other, &copy));
    CHECK(view_json(&view, &arena, &one) && view_json(&copy, &other, &two));
    CHECK(json_equal(&one, &two));
    const struct json *each = json_at(&one, STR("steps.0"));
    CHECK_INT(json_integer(json_at(each, STR("loop.total")), 0), 1000);
    CHECK_STR(json_text(json_at(each, STR("tasks.0.label"))), STR("noop"));
    CHECK_INT(json_integer(json_key(each, "visit"), 0), 1);
    struct schema_set *set;
    const struct schema *schema;
    struct error err = {0};
    struct schema_fault fault;
    CHECK_OK(schema_set_embedded(&other, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("run-snapshot.json"), &schema, &err), &err);
    if (!schema_valid(schema, &one, &fault)) test_fail(__FILE__, __LINE__, "%s %s", fault.pointer, fault.message);
    arena_release(&other);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(an_execution_is_pending_until_it_starts_NX_3_1a_NX_3_1b_NX_3_1c),
        TEST(every_visit_is_a_step_of_its_own_C_65),
        TEST(a_step_that_is_not_admitted_is_skipped_C_27),
        TEST(attempts_of_tasks_are_not_attempts_of_their_step_NX_0c),
        TEST(iterations_are_counted_and_not_kept_NX_3_5c_NX_3_5d_NX_3_5e),
        TEST(snapshot_tells_visits_tasks_and_items),
    };
    return test_main("view_playbook", tests, ARRAY_COUNT(tests), argc, argv);
}
