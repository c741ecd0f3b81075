// Execution plans: both forms, every field, every kind of step, and what is refused with which contract code.
#include "program_kit.h"

static struct kit kit;

#define HEAD "metadata: {planId: p, planVersion: v1}\n"
#define STEP(fields) HEAD "steps:\n  - {stepId: a, kind: noop, " fields "}\n"
#define WITH(kind, with) HEAD "steps:\n  - {stepId: a, kind: " kind ", with: {" with "}}\n"
#define META(fields) "metadata: {planId: p, planVersion: v1, " fields "}\nsteps: [{id: a, kind: noop}]\n"

static void refuse_step(const char *text, const char *id, const char *part)
{
    kit_must_refuse(&kit, text, id, "INVALID_STEP_SCHEMA", part);
}

static void refuse_plan(const char *text, const char *id, const char *part)
{
    kit_must_refuse(&kit, text, id, "INVALID_PLAN_SCHEMA", part);
}

static void both_forms_give_one_program_WE_3_2b(void)
{
    kit_must_be_silent(&kit, "planId: p\nplanVersion: '1.0'\nschemaVersion: v1.1\n"
                             "metadata: {name: N, description: D, tags: [x, y]}\n"
                             "steps:\n  - {stepId: a, type: echo, config: {message: hi}, "
                             "dependencies: [], timeout: 5s, retryPolicy: {maxAttempts: 3, "
                             "backoff: linear, delayMs: 10}}\n");
    CHECK_STR(kit.program->plan_id, STR("p"));
    CHECK_STR(kit.program->plan_version, STR("1.0"));
    CHECK_STR(kit.program->schema_version, STR("v1.1"));
    CHECK_STR(kit.program->name, STR("N"));
    CHECK_STR(kit.program->description, STR("D"));
    CHECK_INT(kit.program->tag_count, 2);
    const struct program_step *a = kit_step(&kit, "a");
    CHECK_INT(a->timeout_ms, 5000);
    CHECK_INT(a->retry.max_attempts, 3);
    CHECK_INT(a->retry.backoff, BACKOFF_LINEAR);
    CHECK_INT(a->retry.delay_ms, 10);
    kit_must_be_silent(&kit, "metadata: {planId: p, planVersion: 1.10, schemaVersion: v1.2}\n"
                             "steps: [{id: a, kind: echo, with: {message: hi}}]\n");
    CHECK_STR(kit.program->plan_version, STR("1.10"));
    CHECK_STR(kit.program->name, STR("p"));
    CHECK_INT(kit.program->kind, DOCUMENT_PLAN);
}

static void defaults_of_a_step(void)
{
    kit_must_be_silent(&kit, STEP("description: d"));
    const struct program_step *a = kit_step(&kit, "a");
    CHECK_STR(a->name, STR("a"));
    CHECK_INT(a->rule, RULE_ALL_SUCCESS);
    CHECK_INT(a->retry.max_attempts, 1);
    CHECK_INT(a->retry.on, RETRY_TRANSIENT);
    CHECK_INT(a->timeout_ms, 0);
    CHECK_INT(a->on_failure, ON_FAILURE_FAIL_RUN);
    CHECK(!a->when && a->scope == PROGRAM_TOP);
}

static void schema_version_window_C_11_WE_3_1d_WE_3_1e(void)
{
    static const char *const good[] = {"v1.0", "v1.1", "v1.2"};
    static const char *const bad[] = {"v1.3", "v2.0", "v0.9", "1.2", "v1", "v1.2.0", "v01.2"};
    char text[200];
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        snprintf(text, sizeof(text), META("schemaVersion: '%s'"), good[i]);
        kit_must_be_silent(&kit, text);
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        snprintf(text, sizeof(text), META("schemaVersion: '%s'"), bad[i]);
        kit_must_refuse(&kit, text, "E0211", "PLAN_SCHEMA_VERSION_UNKNOWN", "not supported");
    }
}

static void capabilities_are_known_or_refused_C_20_WE_4f(void)
{
    kit_must_be_silent(&kit, META("requiresCapabilities: [basic-execution, signal.pause.native, "
                                  "signal.pause.emulated, cancel.cooperative, cancel.forced, "
                                  "workflow.child.workflows, workflow.fan.dynamic, workflow.fan.parallel, "
                                  "query.workflow.state, query.task.state, replay.full, replay.task, "
                                  "workflow.continue.as.new, signals.rate.limit, signals.concurrent, "
                                  "history.rotation]"));
    kit_must_refuse(&kit, META("requiresCapabilities: [signal.pause.nativ]"), "E0212", "CAPABILITY_UNKNOWN",
                    "signal.pause.nativ");
    CHECK_STR(kit_found(&kit, "E0212")->hint, STR("did you mean \"signal.pause.native\"?"));
    refuse_plan(META("requiresCapabilities: x"), "E0205", "a list");
    kit_must_be_silent(&kit, META("targetAdapter: cairn, fallbackBehavior: degrade"));
    kit_must_refuse(&kit, META("targetAdapter: temporial"), "E0220", "INVALID_TARGET_ADAPTER", "temporial");
    refuse_plan(META("fallbackBehavior: ignore"), "E0206", "reject, emulate or degrade");
}

static void unknown_fields_are_refused_WE_3_2f(void)
{
    refuse_step(STEP("dependOn: [b]"), "E0203", "unknown field \"dependOn\" in a step");
    const struct diagnostic *d = kit_found(&kit, "E0203");
    CHECK_STR(d->hint, STR("did you mean \"dependsOn\"?"));
    CHECK_INT(d->line, 3);
    CHECK_INT(d->column, 29);
    CHECK_INT(d->width, 8);
    refuse_plan(META("planVersoin: x"), "E0203", "in metadata");
    refuse_plan(HEAD "step: []\nsteps: [{id: a, kind: noop}]\n", "E0203", "in a plan");
    refuse_step(WITH("echo", "message: hi, mesage: x"), "E0203", "in echo");
    refuse_step(STEP("retry: {maxAttempts: 2, delays: 1}"), "E0203", "in a retry policy");
    kit_must_be_silent(&kit, HEAD "x-team: {a: 1}\n$schema: s\ntriggers: {manual: true}\n"
                                  "steps: [{id: a, kind: noop}]\n");
    kit_must_be_silent(&kit, META("x-a: 1, author: me, createdAt: now, labels: {a: b}"));
}

// A plan as a program writes it: all on one line, the mistake far to the right.
static void mistakes_on_long_lines_have_their_column(void)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "{\"planId\":\"p\",\"planVersion\":\"1\",\"description\":\"");
    for (int i = 0; i < 100000; i++) buf_byte(&text, 'x');
    buf_text(&text, "\",\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\",");
    size_t unknown = text.len + 1;
    buf_text(&text, "\"retyr\":1},{\"stepId\":\"b\",\"kind\":");
    size_t kind = text.len + 1;
    buf_text(&text, "\"noob\"}]}");
    kit_load(&kit, "t.json", buf_str(&text));
    CHECK_INT(kit.rc, E_INVALID);
    const struct diagnostic *d = kit_found(&kit, "E0203");
    CHECK(d && d->line == 1 && d->column == unknown && d->width == strlen("\"retyr\""));
    d = kit_found(&kit, "E0206");
    CHECK(d && d->line == 1 && d->column == kind && d->width == strlen("\"noob\""));
    buf_release(&text);
}

static void habits_of_other_languages_get_a_hint(void)
{
    static const struct {
        const char *text, *hint;
    } json[] = {
        {"{\"planId\": \"p\", \"steps\": [{}, ]}", "no comma after the last"},
        {"{\"planId\": \"p\",\n}", "no comma after the last"},
        {"{\"planId\": \"p\", // mine\n}", "no comments"},
        {"{\n# mine\n\"planId\": \"p\"}", "no comments"},
        {"{'planId': 'p'}", "double quotes"},
        {"{planId: p, steps: []}", "is read as JSON"},
        {"{\"planId\": \"p\", steps: []}", "is read as JSON"},
        {"{\"planId\"}", ""},
        {"{\"planId\": ", ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(json); i++) {
        kit_load(&kit, "t.json", str_from(json[i].text));
        const struct diagnostic *d = kit_found(&kit, "E0102");
        CHECK(d != NULL);
        bool told = json[i].hint[0] ? strstr(d->hint.ptr ? d->hint.ptr : "", json[i].hint) != NULL : d->hint.len == 0;
        if (!told) test_fail(__FILE__, __LINE__, "%s: hint %.*s", json[i].text, STR_ARG(d->hint));
    }
    static const struct {
        const char *when, *hint;
    } conditions[] = {
        {"$a.output = 'x'", "write =="},
        {"$a.output === 'x'", "write =="},
        {"$a.output !== 'x'", "write !="},
        {"($a.output == 'x')", "no parentheses"},
        {"$a.output == 'x' && ($a.output != 'y')", "no parentheses"},
        {"$a.output == \\\"x\\\"", "single quotes"},
        {"$a.output == $a.output", "not a reference"},
        {"$a.output == 'x' && $b", "for example"},
        {"$a.output == 'x' and $a.output != 'y'", "write &&"},
        {"$a.output == 'x' or $a.output != 'y'", "write ||"},
        {"{{ a.output }} == 'x'", "without braces"},
        {"!$a.output", "no negation"},
        {"not $a.output", "no negation"},
        {"a is 'x'", "for example"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(conditions); i++) {
        struct buf text;
        buf_init(&text, 4096);
        buf_printf(&text,
                   "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"},"
                   "{\"stepId\":\"b\",\"kind\":\"noop\",\"when\":\"%s\"}]}",
                   conditions[i].when);
        kit_load(&kit, "t.json", buf_str(&text));
        const struct diagnostic *d = kit_found(&kit, "E0401");
        CHECK(d != NULL);
        if (!strstr(d->hint.ptr, conditions[i].hint))
            test_fail(__FILE__, __LINE__, "%s: hint %.*s", conditions[i].when, STR_ARG(d->hint));
        buf_release(&text);
    }
}

static void two_spellings_at_once_are_refused(void)
{
    refuse_step(STEP("id: b"), "E0207", "\"stepId\" and \"id\"");
    refuse_step(STEP("type: noop"), "E0207", "\"kind\" and \"type\"");
    refuse_step(STEP("dependsOn: [], dependencies: []"), "E0207", "dependsOn");
    refuse_step(STEP("timeout: 1s, timeoutMs: 5"), "E0207", "timeout");
    refuse_plan("planId: p\n" HEAD "steps: [{id: a, kind: noop}]\n", "E0207", "planId");
}

static void required_fields(void)
{
    refuse_plan("metadata: {planVersion: '1'}\nsteps: [{id: a, kind: noop}]\n", "E0204", "planId");
    refuse_plan("planId: p\nsteps: [{id: a, kind: noop}]\n", "E0204", "planVersion");
    refuse_step(HEAD "steps: [{kind: noop}]\n", "E0204", "stepId");
    refuse_step(HEAD "steps: [{stepId: a}]\n", "E0204", "kind");
    refuse_plan(HEAD "steps: []\n", "E0214", "no steps");
    refuse_plan(HEAD "steps: {}\n", "E0205", "a list");
    refuse_step(HEAD "steps: [7]\n", "E0205", "a mapping");
    refuse_plan("metadata: 7\nplanId: p\nplanVersion: v\nsteps: [{id: a, kind: noop}]\n", "E0205", "metadata");
    refuse_plan("[1]", "E0201", "mapping");
    refuse_plan("a: 1\n", "E0202", "neither");
    refuse_plan("steps: []\nnodes: []\n", "E0202", "both");
}

static void ids_are_safe_in_keys_and_paths_C_32_C_08(void)
{
    static const char *const bad[] = {"RUN", "a|b", "-a", ".a", "a.", "a..b", "a b", "\\u00e9", ""};
    static const char *const good[] = {"a", "_a", "9a", "a.b-c_d", "run", "Run"};
    char text[200];
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        snprintf(text, sizeof(text), HEAD "steps: [{stepId: \"%s\", kind: noop}]\n", bad[i]);
        refuse_step(text, "E0208", "cannot be a step id");
    }
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        snprintf(text, sizeof(text), HEAD "steps: [{stepId: \"%s\", kind: noop}]\n", good[i]);
        kit_must_be_silent(&kit, text);
    }
    refuse_plan("planId: 'a|b'\nplanVersion: v\nsteps: [{id: a, kind: noop}]\n", "E0208", "planId");
    CHECK(run_id_valid(STR("run_2026-02-11_abc123")));
    CHECK(run_id_valid(STR("3f2a9c1e-0000-4000-8000-000000000000")));
    CHECK(run_id_valid(STR("a:b")));
    CHECK(!run_id_valid(STR("a.")));
    CHECK(!run_id_valid(STR("_a")));
    CHECK(!run_id_valid(STR("a/b")));
    CHECK(!run_id_valid(STR("a..b")));
    CHECK(!run_id_valid(STR("")));
    char longest[130];
    memset(longest, 'a', sizeof(longest));
    CHECK(run_id_valid((struct str){longest, 128}) && !run_id_valid((struct str){longest, 129}));
    CHECK(step_id_valid((struct str){longest, 128}) && !step_id_valid((struct str){longest, 129}));
    CHECK(name_valid((struct str){longest, 128}) && !name_valid((struct str){longest, 129}));
    CHECK(name_valid(STR("t\xC3\xA9nant 1")) && !name_valid(STR("a|b")));
    CHECK(!name_valid(STR("a\nb")) && !name_valid(STR("a\xC2\x85")) && !name_valid(STR("\xFF")));
}

static void retry_policies(void)
{
    kit_must_be_silent(&kit, STEP("retry: {maxAttempts: 5, delay: 250ms, backoff: exponential, "
                                  "maxDelay: 10s, jitter: 0.5, nonRetryable: [E_A, E_B], on: all}"));
    const struct retry_policy *retry = &kit_step(&kit, "a")->retry;
    CHECK_INT(retry->max_attempts, 5);
    CHECK_INT(retry->delay_ms, 250);
    CHECK_INT(retry->max_delay_ms, 10000);
    CHECK_INT(retry->backoff, BACKOFF_EXPONENTIAL);
    CHECK(retry->jitter > 0.49 && retry->jitter < 0.51);
    CHECK_INT(retry->on, RETRY_ALL);
    CHECK_INT(retry->non_retryable_count, 2);
    CHECK_STR(retry->non_retryable[1], STR("E_B"));
    refuse_step(STEP("retry: {maxAttempts: 0}"), "E0210", "1 to 1000");
    refuse_step(STEP("retry: {delay: 1s}"), "E0204", "maxAttempts");
    refuse_step(STEP("retry: {maxAttempts: 2, jitter: 1.5}"), "E0210", "0 to 1");
    refuse_step(STEP("retry: {maxAttempts: 2, jitter: x}"), "E0205", "jitter");
    kit_must_be_silent(&kit, STEP("retry: {maxAttempts: 2, jitter: true}"));
    CHECK(kit_step(&kit, "a")->retry.jitter > 0.99);
    kit_must_be_silent(&kit, STEP("retry: {maxAttempts: 2, jitter: false}"));
    CHECK(kit_step(&kit, "a")->retry.jitter < 0.01);
    refuse_step(STEP("retry: {maxAttempts: 2, backoff: lineal}"), "E0206", "none, linear or");
    refuse_step(STEP("retry: {maxAttempts: 2, on: x}"), "E0206", "transient or all");
    refuse_step(STEP("retry: 3"), "E0205", "mapping");
}

static void durations(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"5s", 5000}, {"1500", 1500}, {"250ms", 250}, {"1m30s", 90000}, {"PT1H30M", 5400000}};
    char text[200];
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        snprintf(text, sizeof(text), STEP("timeout: %s"), good[i].text);
        kit_must_be_silent(&kit, text);
        CHECK_INT(kit_step(&kit, "a")->timeout_ms, good[i].ms);
    }
    refuse_step(STEP("timeout: soon"), "E0209", "not a duration");
    refuse_step(STEP("timeout: -5"), "E0210", "timeout");
    refuse_step(STEP("timeout: 1.5"), "E0205", "a duration");
    refuse_step(STEP("timeout: 9000d"), "E0210", "ten years");
}

static void what_happens_after_a_failure_C_35(void)
{
    kit_must_be_silent(&kit, STEP("onStepFailure: hold"));
    CHECK_INT(kit_step(&kit, "a")->on_failure, ON_FAILURE_HOLD);
    kit_must_be_silent(&kit, "onStepFailure: hold\n" HEAD "steps: [{id: a, kind: noop}, {id: b, kind: noop, "
                             "onStepFailure: fail_run}]\n");
    CHECK_INT(kit_step(&kit, "a")->on_failure, ON_FAILURE_HOLD);
    CHECK_INT(kit_step(&kit, "b")->on_failure, ON_FAILURE_FAIL_RUN);
    refuse_step(STEP("onStepFailure: stop"), "E0206", "fail_run or hold");
}

static void secrets_are_references_only(void)
{
    kit_must_be_silent(&kit, STEP("secrets: [{name: TOKEN, ref: 'env:GH_TOKEN'}, "
                                  "{name: KEY, ref: 'file:/run/key'}]"));
    const struct program_step *a = kit_step(&kit, "a");
    CHECK_INT(a->secret_count, 2);
    CHECK_STR(a->secrets[0].name, STR("TOKEN"));
    CHECK_STR(a->secrets[1].ref, STR("file:/run/key"));
    refuse_step(STEP("secrets: [{name: TOKEN, value: hunter2}]"), "E0213", "value");
    CHECK(!strstr(kit_found(&kit, "E0213")->message.ptr, "hunter2"));
    refuse_step(STEP("secrets: [{name: T, ref: 'vault:x'}]"), "E0206", "env:NAME");
    refuse_step(STEP("secrets: [{name: 'A-B', ref: 'env:X'}]"), "E0208", "environment variable");
    refuse_step(STEP("secrets: [{name: T}]"), "E0204", "ref");
    refuse_step(STEP("secrets: {}"), "E0205", "a list");
    refuse_step(STEP("secrets: [env:X]"), "E0205", "an entry of");
}

static void artifacts_stay_inside(void)
{
    kit_must_be_silent(&kit, STEP("artifacts: [{path: out/a.txt, kind: report}, {path: b}]"));
    const struct program_step *a = kit_step(&kit, "a");
    CHECK_INT(a->artifact_count, 2);
    CHECK_STR(a->artifacts[0].kind, STR("report"));
    refuse_step(STEP("artifacts: [{path: /etc/passwd}]"), "E0206", "inside");
    refuse_step(STEP("artifacts: [{path: a/../../b}]"), "E0206", "inside");
    refuse_step(STEP("artifacts: [{kind: x}]"), "E0204", "path");
}

static void kinds_of_steps(void)
{
    kit_check_with(&kit, HEAD "steps: [{id: a, kind: noop}]\n", STEP_NOOP, "{}");
    kit_check_with(&kit, STEP("simulateError: transient"), STEP_NOOP, "{\"simulateError\":\"transient\"}");
    kit_check_with(&kit, WITH("echo", "message: [1, {b: null}]"), STEP_ECHO, "{\"message\":[1,{\"b\":null}]}");
    kit_check_with(&kit, HEAD "steps: [{id: a, kind: merge}]\n", STEP_MERGE, "{}");
    kit_check_with(&kit, WITH("exec", "argv: [ls, -l], env: {A: 1, B: true, C: x}, cwd: /, stdin: s"), STEP_EXEC,
                   "{\"argv\":[\"ls\",\"-l\"],\"stdin\":\"s\",\"env\":{\"A\":\"1\",\"B\":\"true\","
                   "\"C\":\"x\"},\"cwd\":\"/\"}");
    kit_check_with(&kit, WITH("exec", "command: ls, args: [-l]"), STEP_EXEC, "{\"argv\":[\"ls\",\"-l\"]}");
    kit_check_with(&kit, WITH("shell", "command: 'a | b'"), STEP_SHELL, "{\"command\":\"a | b\"}");
    kit_check_with(&kit, WITH("bash", "command: x"), STEP_SHELL, "{\"command\":\"x\"}");
    kit_check_with(&kit, WITH("script", "runtime: python, code: 'print(1)', args: [x]"), STEP_SCRIPT,
                   "{\"runtime\":\"python3\",\"code\":\"print(1)\",\"args\":[\"x\"]}");
    kit_check_with(&kit, WITH("wait", "duration: 5s"), STEP_WAIT, "{\"durationMs\":5000}");
    kit_check_with(&kit, WITH("wait", "until: '2026-02-11T17:00:00Z'"), STEP_WAIT,
                   "{\"until\":\"2026-02-11T17:00:00Z\"}");
    kit_check_with(&kit, WITH("wait", "until: $ARGUMENTS"), STEP_WAIT, "{\"until\":\"$ARGUMENTS\"}");
    kit_check_with(&kit, HEAD "steps: [{id: a, name: Ship it, kind: approval}]\n", STEP_APPROVAL,
                   "{\"message\":\"Ship it\",\"onTimeout\":\"fail\"}");
    kit_check_with(&kit, WITH("approval", "message: ok, timeout: 1h, onTimeout: approve"), STEP_APPROVAL,
                   "{\"message\":\"ok\",\"timeoutMs\":3600000,\"onTimeout\":\"approve\"}");
}

static void kinds_refuse_what_they_cannot_do(void)
{
    refuse_step(HEAD "steps: [{id: a, kind: ecko}]\n", "E0206", "unknown kind");
    CHECK_STR(kit_found(&kit, "E0206")->hint, STR("did you mean \"echo\"?"));
    refuse_step(HEAD "steps: [{id: a, kind: loop}]\n", "E0206", "unknown kind");
    refuse_step(HEAD "steps: [{id: a, kind: cancel}]\n", "E0206", "unknown kind");
    refuse_step(HEAD "steps: [{id: a, kind: echo}]\n", "E0204", "message");
    refuse_step(WITH("noop", "x: 1"), "E0203", "in noop");
    refuse_step(WITH("exec", "cwd: /"), "E0204", "argv");
    refuse_step(WITH("exec", "argv: [a], command: b"), "E0207", "argv");
    refuse_step(WITH("exec", "argv: [a], args: [b]"), "E0207", "args");
    refuse_step(WITH("exec", "argv: []"), "E0206", "program to run");
    refuse_step(WITH("exec", "argv: [sleep, 5]"), "E0205", "argv");
    refuse_step(WITH("exec", "argv: [a], env: {'A=B': x}"), "E0208", "environment");
    refuse_step(WITH("exec", "argv: [a], env: {A: [1]}"), "E0205", "environment");
    refuse_step(WITH("shell", "cmd: x"), "E0204", "command");
    refuse_step(WITH("shell", "command: ' '"), "E0206", "no command");
    refuse_step(WITH("script", "code: x"), "E0204", "runtime");
    refuse_step(WITH("script", "runtime: perl, code: x"), "E0206", "runtime");
    refuse_step(WITH("script", "runtime: sh"), "E0204", "code");
    refuse_step(WITH("script", "runtime: sh, code: x, file: y"), "E0207", "code");
    refuse_step(WITH("script", "runtime: sh, file: y"), "E0218", "not found");
    refuse_step(HEAD "steps: [{id: a, kind: wait}]\n", "E0204", "duration");
    refuse_step(WITH("wait", "duration: 1s, until: x"), "E0204", "either");
    refuse_step(WITH("wait", "until: tomorrow"), "E0209", "not a moment");
    refuse_step(WITH("approval", "onTimeout: maybe"), "E0206", "approve, reject or fail");
    refuse_step(WITH("subrun", "inputs: {}"), "E0204", "document");
    refuse_step(HEAD "steps: [{id: a, kind: echo, with: {message: x}, simulateError: permanent}]\n", "E0206",
                "noop steps only");
    refuse_step(HEAD "steps: [{id: a, kind: echo, with: x}]\n", "E0205", "with");
}

static void inputs_have_defaults(void)
{
    kit_must_be_silent(&kit, "inputs:\n  a: 1\n  b: {default: x, description: d, type: string}\n"
                             "  c: {type: integer, required: true}\n  d: {k: v}\n  e: null\n" HEAD
                             "steps: [{id: a, kind: noop}]\n");
    struct buf out;
    buf_init(&out, 1 << 16);
    json_write(&out, &kit.program->inputs);
    CHECK_STR(buf_str(&out), STR("{\"a\":1,\"b\":\"x\",\"c\":null,\"d\":{\"k\":\"v\"},\"e\":null}"));
    buf_release(&out);
    CHECK_INT(kit.program->required_count, 1);
    CHECK_STR(kit.program->required[0], STR("c"));
    refuse_plan("inputs: {a: {default: 1, type: string}}\n" HEAD "steps: [{id: a, kind: noop}]\n", "E0205",
                "input \"a\"");
    refuse_plan("inputs: {a: {default: 1, typ: string}}\n" HEAD "steps: [{id: a, kind: noop}]\n", "E0203", "typ");
    refuse_plan("inputs: {a: {default: 1, required: true}}\n" HEAD "steps: [{id: a, kind: noop}]\n", "E0206",
                "required");
    refuse_plan("inputs: [a]\n" HEAD "steps: [{id: a, kind: noop}]\n", "E0205", "inputs");
}

static void approval_of_the_whole_plan(void)
{
    kit_must_be_silent(&kit, META("requiresApproval: true"));
    CHECK(kit.program->requires_approval);
    refuse_plan(META("requiresApproval: 'yes'"), "E0205", "true or false");
}

static void trigger_rules(void)
{
    kit_must_be_silent(&kit, STEP("triggerRule: none_failed_min_one_success"));
    CHECK_INT(kit_step(&kit, "a")->rule, RULE_NONE_FAILED_MIN_ONE_SUCCESS);
    refuse_step(STEP("triggerRule: all_sucess"), "E0206", "all_sucess");
    CHECK_STR(kit_found(&kit, "E0206")->hint, STR("did you mean \"all_success\"?"));
}

static void conditions_and_references(void)
{
#define TWO(second)                                                                                                    \
    HEAD "inputs: {n: 1}\nsteps:\n  - {id: a, kind: noop, dependsOn: []}\n  - {id: b, kind: noop, " second "}\n"
    kit_must_be_silent(&kit, TWO("dependsOn: [a], when: \"$a.output == 'x' && $INPUTS.n > 1\""));
    CHECK(kit_step(&kit, "b")->when);
    CHECK_STR(kit_step(&kit, "b")->when_text, STR("$a.output == 'x' && $INPUTS.n > 1"));
    refuse_step(TWO("dependsOn: [a], when: \"$a.output === 'x'\""), "E0401", "condition");
    refuse_step(TWO("dependsOn: [a], when: \"$aa.output == 'x'\""), "E0402", "no step \"aa\"");
    CHECK_STR(kit_found(&kit, "E0402")->hint, STR("did you mean \"a\"?"));
    CHECK_INT(kit_found(&kit, "E0402")->column, 48);
    refuse_step(TWO("when: true"), "E0205", "when");
    kit_must_warn(&kit, TWO("dependsOn: [], when: \"$a.output == 'x'\""), "E0403",
                  "\"a\" is not a dependency of \"b\"");
    kit_must_warn(&kit, TWO("dependsOn: [a], when: '$INPUTS.m == 1'"), "E0405", "\"m\"");
    kit_must_warn(&kit, HEAD "steps: [{id: a, kind: echo, with: {message: 'v: $b.output'}}]\n", "E0404",
                  "$b.output looks like a reference");
    kit_must_warn(&kit, HEAD "steps: [{id: a, kind: echo, with: {message: '$a.output'}}]\n", "E0403",
                  "\"a\" is not a dependency of \"a\"");
}

static void indirect_dependencies_count(void)
{
    kit_must_be_silent(&kit, HEAD "steps:\n  - {id: a, kind: noop}\n  - {id: b, kind: noop}\n"
                                  "  - {id: c, kind: echo, with: {message: '$a.output $b.output'}}\n");
    kit_must_be_silent(&kit, HEAD "steps:\n  - {id: model.orders, kind: noop}\n"
                                  "  - {id: b, kind: echo, "
                                  "with: {message: $model.orders.output.rows}}\n");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(both_forms_give_one_program_WE_3_2b),
        TEST(defaults_of_a_step),
        TEST(schema_version_window_C_11_WE_3_1d_WE_3_1e),
        TEST(capabilities_are_known_or_refused_C_20_WE_4f),
        TEST(unknown_fields_are_refused_WE_3_2f),
        TEST(mistakes_on_long_lines_have_their_column),
        TEST(habits_of_other_languages_get_a_hint),
        TEST(two_spellings_at_once_are_refused),
        TEST(required_fields),
        TEST(ids_are_safe_in_keys_and_paths_C_32_C_08),
        TEST(retry_policies),
        TEST(durations),
        TEST(what_happens_after_a_failure_C_35),
        TEST(secrets_are_references_only),
        TEST(artifacts_stay_inside),
        TEST(kinds_of_steps),
        TEST(kinds_refuse_what_they_cannot_do),
        TEST(inputs_have_defaults),
        TEST(approval_of_the_whole_plan),
        TEST(trigger_rules),
        TEST(conditions_and_references),
        TEST(indirect_dependencies_count),
    };
    return test_main("program_plan", tests, ARRAY_COUNT(tests), argc, argv);
}
