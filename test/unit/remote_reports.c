// What workers report: results, events of playbooks, logs, artifacts; and whom they are believed.
#include "unit/support/remote_kit.h"

static void an_outcome_that_is_reported_as_an_event_is_the_result_NX_5_2_NX_2t(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    report(&rig, &task, EVENT("step.started", "a", "") "," EVENT("task.started", "a", ""));
    CHECK_INT(rig.said.count, 0); // not stored yet
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    rig_expect(&rig, ""); // told already
    report(&rig, &task, EVENT("task.attempt.done", "a", GOOD) "," EVENT("task.done", "a", GOOD));
    CHECK_INT(rig.said.count, 0); // not stored yet
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nRUN_COMPLETED\n");
    for (int i = 0; i < 2; i++) { // the same again, also in older words
        CHECK_INT(report(&rig, &task, i ? EVENT("call.done", "a", GOOD) : EVENT("task.done", "a", GOOD)), 200);
    }
    CHECK_INT(report(&rig, &task, EVENT("task.failed", "a", "")), 409);
    rig_idle(&rig);
    rig_expect(&rig, "");
    rig_close(&rig);
}

// The files of a step are looked for when it has ended, not when something is reported of it.
static void a_step_that_reports_keeps_its_artifacts(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, PLAN(SHELL("a", "", ",\"artifacts\":[{\"path\":\"r.txt\"}]")));
    struct error err = {0};
    report(&rig, &task, EVENT("step.started", "a", ""));
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    CHECK_OK(remote_artifact(rig.remote, &rig.caller, task.token, STR("r.txt"), STR("42"), &err), &err);
    complete(&rig, &task, DONE);
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nRUN_COMPLETED\n");
    rig_close(&rig);
}

static int reported(struct rig *rig, const struct remote_task *task, const char *events)
{
    report(rig, task, events);
    rig_idle(rig);
    return rig->said.status;
}

static void what_a_worker_may_not_report_is_refused_alone_NX_5_3_NX_4g(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    static const char *const events[] = {EVENT("step.scheduled", "b", ""), EVENT("next.evaluated", "a", ""),
                                         EVENT("task.done", "b", GOOD), EVENT("command.issued", "a", ""),
                                         EVENT("case.evaluated", "a", "")};
    for (size_t i = 0; i < ARRAY_COUNT(events); i++) {
        CHECK_INT(reported(&rig, &task, events[i]), 403);
        CHECK(has(&rig.said, "\"code\":\"EVENT_NOT_ALLOWED\"") && has(&rig.said, "\"pointer\":\"/events/0\""));
    }
    CHECK_INT(reported(&rig, &task,
                       "{\"event_id\":\"e1\",\"execution_id\":\"r2\",\"event_type\":\"task.done\",\"step_run_id\":"
                       "\"step:a:run:1\",\"timestamp\":\"2026-02-05T23:11:22Z\"}"),
              403);
    CHECK_INT(reported(&rig, &task, EVENT("task.sang", "a", "")), 400);
    CHECK(has(&rig.said, "EVENT_TYPE_UNKNOWN"));
    rig_expect(&rig, ""); // nothing of all that was done
    CHECK_INT(reported(&rig, &task, EVENT("case.evaluated", "a", "") "," EVENT("task.done", "a", GOOD)), 200);
    CHECK(has(&rig.said, "\"results\":[{\"state\":\"denied\",\"code\":\"EVENT_NOT_ALLOWED\"") &&
          has(&rig.said, "{\"state\":\"ok\"}]"));
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nRUN_COMPLETED\n");
    task.token = STR("ctask_x_y");
    CHECK_INT(report(&rig, &task, EVENT("task.done", "a", GOOD)), 403);
    CHECK(has(&rig.said, "TASK_TOKEN_INVALID"));
    rig_close(&rig);
}

static void an_attempt_comes_out_one_way_in_a_call(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    CHECK_INT(reported(&rig, &task, EVENT("task.attempt.done", "a", GOOD) "," EVENT("task.failed", "a", "")), 200);
    CHECK(has(&rig.said, "the attempt came out otherwise"));
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nRUN_COMPLETED\n");
    rig_close(&rig);
}

// Each differs from what is published in one thing; `pointer` says where.
static void malformed_results_are_refused_before_anything_is_decided(void)
{
    static const struct {
        const char *more, *pointer;
    } cases[] = {
        {"", ""},
        {",\"output\":7", "/output"},
        {",\"output\":\"x\",\"value\":1", ""},
        {",\"value\":1,\"error\":{\"code\":\"X\",\"message\":\"\"}", ""},
        {",\"output\":\"x\",\"lost\":true", ""},
        {",\"lost\":false", "/lost"},
        {",\"value\":1,\"truncated\":true", ""},
        {",\"output\":\"x\",\"truncated\":\"yes\"", "/truncated"},
        {",\"value\":1,\"durationMs\":-1", "/durationMs"},
        {",\"value\":1,\"durationMs\":\"5\"", "/durationMs"},
        {",\"value\":1,\"durationMs\":1.5", "/durationMs"},
        {",\"value\":1,\"more\":1", "/more"},
        {",\"error\":{}", "/error"},
        {",\"error\":\"x\"", "/error"},
        {",\"error\":{\"code\":\"X\"}", "/error"},
        {",\"error\":{\"code\":\"\",\"message\":\"m\"}", "/error/code"},
        {",\"error\":{\"code\":7,\"message\":\"m\"}", "/error/code"},
        {",\"error\":{\"code\":\"X\",\"message\":\"m\",\"retryable\":\"yes\"}", "/error/retryable"},
        {",\"error\":{\"code\":\"X\",\"message\":\"m\",\"category\":\"bad luck\"}", "/error/category"},
        {",\"error\":{\"code\":\"X\",\"message\":\"m\",\"exitCode\":3000000000}", "/error/exitCode"},
        {",\"error\":{\"code\":\"X\",\"message\":\"m\",\"stack\":[]}", "/error/stack"},
    };
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    char pointer[128];
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        CHECK_INT(complete(&rig, &task, cases[i].more), 400);
        CHECK(has(&rig.said, "\"code\":\"SCHEMA_VALIDATION_FAILED\""));
        snprintf(pointer, sizeof(pointer), "\"pointer\":\"/results/0%s\"", cases[i].pointer);
        if (!has(&rig.said, pointer)) test_fail(__FILE__, __LINE__, "%s: %s", cases[i].more, rig.said.body);
    }
    CHECK_INT(ask(&rig, REMOTE_FAIL, item(&rig, &task, "results", ",\"output\":\"x\"")), 400);
    CHECK_INT(ask(&rig, REMOTE_COMPLETE, "{\"worker\":\"w1\",\"results\":[{\"value\":1}]}"), 400);
    CHECK_INT(ask(&rig, REMOTE_COMPLETE, "{\"worker\":\"w1\",\"results\":[7]}"), 400);
    CHECK(has(&rig.said, "\"pointer\":\"/results/0\""));
    static const char *const broken[] = {"[]", "{}", "{\"worker\":\"\",\"results\":[]}",
                                         "{\"worker\":\"w\",\"results\":7}",
                                         "{\"worker\":\"w\",\"results\":[],\"result\":1}"};
    for (size_t i = 0; i < ARRAY_COUNT(broken); i++) {
        CHECK_INT(ask(&rig, REMOTE_COMPLETE, broken[i]), 400);
        CHECK(has(&rig.said, "SCHEMA_VALIDATION_FAILED") && has(&rig.said, "\"errors\":[{\"pointer\":\""));
    }
    CHECK_INT(ask(&rig, REMOTE_COMPLETE, "{"), 400);
    CHECK(has(&rig.said, "INVALID_REQUEST"));
    rig_idle(&rig);
    rig_expect(&rig, "");
    complete(&rig, &task, DONE);
    rig_idle(&rig);
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nRUN_COMPLETED\n");
    rig_close(&rig);
}

static void malformed_events_are_refused_before_anything_is_decided(void)
{
    static const struct {
        const char *more, *pointer;
    } cases[] = {
        {",\"payload\":\"x\"", "/payload"},
        {",\"payload\":{\"outcome\":\"ok\"}", "/payload/outcome"},
        {",\"payload\":{\"outcome\":{}}", "/payload/outcome"},
        {",\"payload\":{\"outcome\":{\"status\":\"fine\"}}", "/payload/outcome/status"},
        {",\"payload\":{\"outcome\":{\"status\":\"error\"}}", "/payload/outcome"},
        {",\"payload\":{\"meta\":7}", "/payload/meta"},
        {",\"payload\":{\"error\":\"x\"}", "/payload/error"},
        {",\"payload\":{\"result_ref\":\"x\"}", "/payload/result_ref"},
        {",\"status\":\"meh\"", "/status"},
        {",\"attempt\":0", "/attempt"},
        {",\"attempt\":\"1\"", "/attempt"},
        {",\"iteration\":-1", "/iteration"},
        {",\"duration_ms\":-1", "/duration_ms"},
        {",\"source\":\"server\"", "/source"},
        {",\"entity_type\":\"thing\"", "/entity_type"},
        {",\"entity_id\":\"\"", "/entity_id"},
        {",\"parent_id\":7", "/parent_id"},
        {",\"seq\":-1", "/seq"},
        {",\"hello\":1", "/hello"},
    };
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    char event[1024], pointer[128];
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        snprintf(event, sizeof(event), EVENT("task.done", "a", "%s"), cases[i].more);
        CHECK_INT(reported(&rig, &task, event), 400);
        CHECK(has(&rig.said, "\"code\":\"SCHEMA_VALIDATION_FAILED\""));
        snprintf(pointer, sizeof(pointer), "\"pointer\":\"/events/0%s\"", cases[i].pointer);
        if (!has(&rig.said, pointer)) test_fail(__FILE__, __LINE__, "%s: %s", cases[i].more, rig.said.body);
    }
    static const char *const times[] = {"yesterday", "2026-02-30T00:00:00Z", "2026-02-05T23:11:22+01:00", "2026-02-05", ""};
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        snprintf(event, sizeof(event),
                 "{\"event_id\":\"e\",\"execution_id\":\"r1\",\"event_type\":\"task.done\",\"step_run_id\":"
                 "\"step:a:run:1\",\"timestamp\":\"%s\"}",
                 times[i]);
        CHECK_INT(reported(&rig, &task, event), 400);
        CHECK(has(&rig.said, "SCHEMA_VALIDATION_FAILED") && has(&rig.said, "/events/0/timestamp"));
    }
    static const char *const members[] = {"event_id", "execution_id", "event_type", "timestamp", "step_run_id"};
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) { // each is needed
        char *at;
        snprintf(event, sizeof(event), "%s", EVENT("task.done", "a", ""));
        CHECK((at = strstr(event, members[i])) != NULL);
        at[0] = 'x';
        CHECK_INT(reported(&rig, &task, event), 400);
    }
    static const char *const bodies[] = {"[]", "7", "\"x\"", "null"};
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) CHECK_INT(reported(&rig, &task, bodies[i]), 400);
    CHECK_INT(report(&rig, &task, ""), 400); // no events at all
    CHECK_INT(ask(&rig, REMOTE_EVENTS, "{\"worker\":\"w1\",\"events\":[]}"), 400);
    CHECK(has(&rig.said, "SCHEMA_VALIDATION_FAILED"));
    rig_idle(&rig);
    rig_expect(&rig, "");
    rig_close(&rig);
}

static void polls_heartbeats_and_logs_are_as_published(void)
{
    static const char *const polls[] = {"{}", "{\"worker\":7}", "{\"worker\":\"w\",\"max\":-1}", "{\"worker\":\"w\",\"waitMs\":\"x\"}",
                                        "{\"worker\":\"w\",\"kinds\":\"shell\"}", "{\"worker\":\"w\",\"kinds\":[7]}",
                                        "{\"worker\":\"w\",\"draining\":1}", "{\"worker\":\"w\",\"extra\":1}"};
    static const char *const beats[] = {"{\"worker\":\"w\"}", "{\"worker\":\"w\",\"tasks\":[{}]}",
                                        "{\"worker\":\"w\",\"tasks\":[{\"token\":\"x\",\"epoch\":-1}]}"};
    static const char *const chunks[] = {",\"stream\":\"other\",\"text\":\"x\"", ",\"stream\":\"stdout\"",
                                         ",\"stream\":\"stdout\",\"text\":7",
                                         ",\"stream\":\"stdout\",\"text\":\"x\",\"offset\":-1"};
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    for (size_t i = 0; i < ARRAY_COUNT(polls); i++) CHECK_INT(ask(&rig, REMOTE_POLL, polls[i]), 400);
    for (size_t i = 0; i < ARRAY_COUNT(beats); i++) CHECK_INT(ask(&rig, REMOTE_HEARTBEAT, beats[i]), 400);
    for (size_t i = 0; i < ARRAY_COUNT(chunks); i++) {
        CHECK_INT(ask(&rig, REMOTE_LOGS, item(&rig, &task, "chunks", chunks[i])), 400);
        CHECK(has(&rig.said, "SCHEMA_VALIDATION_FAILED") && has(&rig.said, "/chunks/0"));
    }
    rig_close(&rig);
}

static void reported_events_renew_the_lease(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE);
    for (int i = 0; i < 3; i++) {
        rig_pass(&rig, REMOTE_LEASE_MS - 1);
        CHECK_INT(reported(&rig, &task, EVENT("policy.task.evaluated", "a", "")), 200);
    }
    rig_expect(&rig, "");
    rig_pass(&rig, REMOTE_LEASE_MS);
    rig_expect(&rig, "STEP_REDISPATCHED a 1.2\n");
    CHECK_INT(report(&rig, &task, EVENT("task.done", "a", GOOD)), 409);
    rig_close(&rig);
}

static size_t last_of(struct str token) // the '_' before the signature
{
    size_t at = token.len;
    while (token.ptr[--at] != '_') {
    }
    return at;
}

static void forged_or_borrowed_token_is_refused_A7(void)
{
    struct rig rig;
    struct remote_task task = rig_taken(&rig, ONE), forged = task;
    struct task_key key, other_key = {{1}};
    memset(&key, 7, sizeof(key));
    struct task_claim facts = {.tenant = STR("default"),
                               .run = STR("r1"),
                               .step = STR("a"),
                               .logical = 1,
                               .engine = 1,
                               .epoch = task.request.epoch};
    struct task_claim swaps[6] = {facts, facts, facts, facts, facts, facts};
    swaps[0].tenant = STR("acme");
    swaps[1].run = STR("r2");
    swaps[2].step = STR("b");
    swaps[3].logical = 2;
    swaps[4].engine = 2;
    swaps[5].epoch++;
    for (size_t i = 0; i < ARRAY_COUNT(swaps); i++) {
        struct buf mine, theirs;
        buf_init(&mine, 4096);
        buf_init(&theirs, 4096);
        auth_task_seal(&key, &facts, &mine);
        CHECK_STR(buf_str(&mine), task.token);
        auth_task_seal(&key, &swaps[i], &theirs); // the payload of one, the signature of the other
        theirs.len = last_of(buf_str(&theirs));
        buf_add(&theirs, str_slice(task.token, last_of(task.token), task.token.len));
        forged.token = buf_str(&theirs);
        CHECK_INT(complete(&rig, &forged, DONE), 403);
        CHECK(has(&rig.said, "TASK_TOKEN_INVALID"));
        buf_clear(&theirs);
        auth_task_seal(&key, &swaps[i], &theirs); // genuine, of another attempt
        forged.token = buf_str(&theirs);
        CHECK_INT(complete(&rig, &forged, DONE), 409);
        buf_clear(&theirs);
        auth_task_seal(&other_key, &facts, &theirs);
        forged.token = buf_str(&theirs);
        CHECK_INT(complete(&rig, &forged, DONE), 403);
        buf_release(&mine);
        buf_release(&theirs);
    }
    static const char *const junk[] = {".", "x", "a.b", "=.", "AAAA"};
    for (size_t i = 0; i < ARRAY_COUNT(junk); i++) {
        forged.token = str_from(junk[i]);
        CHECK_INT(complete(&rig, &forged, DONE), 403);
    }
    forged = task;
    forged.request.epoch++;
    CHECK_INT(complete(&rig, &forged, DONE), 409);
    rig.caller.tenant = STR("acme");
    CHECK_INT(complete(&rig, &task, DONE), 403);
    rig.caller = (struct remote_caller){.pool = STR("gpu")};
    CHECK_INT(complete(&rig, &task, DONE), 403);
    rig.caller.pool = STR("default");
    complete(&rig, &task, DONE);
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    rig_close(&rig);
}

static void functions_and_batches_and_refusals(void)
{
    struct rig rig;
    struct remote_task *tasks;
    rig_open(&rig, PLAN(SHELL("a", "", "") "," SHELL("b", "", "") "," SHELL("c", "", "")), NULL, 0);
    rig_start(&rig, "r1");
    CHECK_INT(poll_with(&rig, "{\"worker\":\"w1\",\"max\":9}", &tasks), 3);
    struct buf body;
    buf_init(&body, 65536);
    buf_text(&body, "{\"worker\":\"w1\",\"results\":[");
    struct tool_result ok = {.ok = true, .output = STR("fine\n\"x\""), .duration_ms = 5};
    struct tool_result json = {.ok = true, .is_json = true, .output = STR("{\"n\":[1,2]}")};
    struct tool_result bad = {.fault = {.code = STR("EXIT_NONZERO"), .message = STR("exit 3"), .has_exit = true}};
    bad.fault.exit_code = 3;
    remote_result_write(&body, tasks[0].token, tasks[0].request.epoch, &ok);
    buf_byte(&body, ',');
    remote_result_write(&body, tasks[1].token, tasks[1].request.epoch, &json);
    buf_byte(&body, ',');
    remote_result_write(&body, tasks[2].token, tasks[2].request.epoch, &bad);
    buf_text(&body, ",{\"token\":\"x\",\"epoch\":1,\"output\":\"y\"}]}");
    CHECK(buf_ok(&body));
    buf_clear(&rig.told);
    ask(&rig, REMOTE_COMPLETE, body.ptr);
    rig_idle(&rig);
    CHECK_INT(rig.said.status, 200);
    struct remote_answer *answers;
    size_t count;
    struct error err = {0};
    CHECK_OK(remote_answers_read(str_from(rig.said.body), &rig.memory, &answers, &count, &err), &err);
    CHECK_INT(count, 4);
    CHECK(answers[0].state == REMOTE_OK && answers[2].state == REMOTE_OK && answers[3].state == REMOTE_DENIED);
    rig_expect(&rig, "STEP_COMPLETED a 1.1\nSTEP_COMPLETED b 1.1\nSTEP_FAILED c 1.1 EXIT_NONZERO\nRUN_FAILED "
                     "EXIT_NONZERO\n");
    buf_release(&body);
    rig_close(&rig);
}

static void log_chunks_are_kept_once_and_artifacts_only_if_declared(void)
{
    struct rig rig;
    struct error err = {0};
    rig_open(&rig, ONE, NULL, 0);
    char path[512], dir[512];
    snprintf(path, sizeof(path), "%s/logs/a.1.1.log", test_dir());
    snprintf(dir, sizeof(dir), "%s/artifacts", test_dir());
    struct artifact_decl decls[] = {{.path = STR("out/report.txt")}, {.path = STR("../x")}, {.path = STR("/etc/x")}};
    struct str argv[] = {STR("true")};
    struct tool_request request = {.ticket = 77,
                                   .tenant = STR("default"),
                                   .run = STR("r9"),
                                   .step = STR("a"),
                                   .form = EXECUTOR_PROCESS,
                                   .kind = STR("exec"),
                                   .pool = STR("default"),
                                   .epoch = 1,
                                   .logical = 1,
                                   .engine = 1,
                                   .argv = argv,
                                   .argc = 1,
                                   .log = str_from(path),
                                   .log_max = 1 << 20,
                                   .artifacts_dir = str_from(dir),
                                   .artifacts = decls,
                                   .artifact_count = 3};
    struct tools *tools = remote_tools(rig.remote);
    CHECK_OK(tools->ops->start(tools, &request, &err), &err);
    struct remote_task task = poll_one(&rig);
    CHECK_INT(task.request.artifact_count, 3);
    const char *one = item(&rig, &task, "chunks", ",\"stream\":\"stdout\",\"offset\":0,\"text\":\"hello\\nwor\"");
    CHECK_INT(ask(&rig, REMOTE_LOGS, one), 200);
    ask(&rig, REMOTE_LOGS, one); // again
    ask(&rig, REMOTE_LOGS, item(&rig, &task, "chunks", ",\"stream\":\"stdout\",\"offset\":6,\"text\":\"world\\n\""));
    ask(&rig, REMOTE_LOGS, item(&rig, &task, "chunks", ",\"stream\":\"stderr\",\"offset\":0,\"text\":\"oh\\n\""));
    CHECK_OK(remote_artifact(rig.remote, &rig.caller, task.token, STR("out/report.txt"), STR("42"), &err), &err);
    struct str text;
    char file[600];
    snprintf(file, sizeof(file), "%s/out/report.txt", dir);
    CHECK_OK(os_read_file(file, 100, &rig.memory, &text, &err), &err);
    CHECK_STR(text, STR("42"));
    static const char *const names[] = {"other.txt", "../x", "/etc/x", "", "out", "out/report.txt/"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        CHECK_INT(remote_artifact(rig.remote, &rig.caller, task.token, str_from(names[i]), STR("1"), NULL),
                  E_NOT_FOUND);
    CHECK_INT(remote_artifact(rig.remote, &rig.caller, STR("x"), STR("out/report.txt"), STR("1"), NULL), E_DENIED);
    complete(&rig, &task, DONE);
    rig_idle(&rig); // nobody knows ticket 77: it is dropped
    CHECK_INT(rig.said.status, 409);
    CHECK_INT(remote_artifact(rig.remote, &rig.caller, task.token, STR("out/report.txt"), STR("1"), NULL), E_CONFLICT);
    CHECK_INT(ask(&rig, REMOTE_LOGS, one), 409);
    CHECK_OK(os_read_file(path, 4096, &rig.memory, &text, &err), &err);
    struct buf seen;
    buf_init(&seen, 4096);
    for (struct str rest = text; rest.len > 0;) {
        struct str line = str_cut(rest, '\n', &rest);
        buf_printf(&seen, "%.*s|", STR_ARG(str_slice(line, 25, line.len)));
    }
    CHECK_TEXT(seen.ptr, "out hello|out world|err oh|end exit 0|");
    buf_release(&seen);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(an_outcome_that_is_reported_as_an_event_is_the_result_NX_5_2_NX_2t),
        TEST(what_a_worker_may_not_report_is_refused_alone_NX_5_3_NX_4g),
        TEST(an_attempt_comes_out_one_way_in_a_call),
        TEST(malformed_results_are_refused_before_anything_is_decided),
        TEST(malformed_events_are_refused_before_anything_is_decided),
        TEST(polls_heartbeats_and_logs_are_as_published),
        TEST(reported_events_renew_the_lease),
        TEST(forged_or_borrowed_token_is_refused_A7),
        TEST(functions_and_batches_and_refusals),
        TEST(a_step_that_reports_keeps_its_artifacts),
        TEST(log_chunks_are_kept_once_and_artifacts_only_if_declared),
    };
    return test_main("remote_reports", tests, ARRAY_COUNT(tests), argc, argv);
}
