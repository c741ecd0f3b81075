// The library as a C program sees it: functions as steps, runs, signals, reading, recovery.
#include "support/lib_kit.h"

#include <sys/wait.h>

static void functions_get_their_inputs_and_give_outputs(void)
{
    atomic_int calls = 0;
    struct cairn *c = lib_open("memory:", NULL);
    lib_register(c, "charge-card", lib_echo, &calls);
    lib_start(c,
              PLAN(CALL("a", "charge-card", "\"amount\":5,\"to\":\"$INPUTS.who\"") "," CALL_WITH(
                  "b", "charge-card", "\"seen\":\"$a.output\",\"text\":\"<$a.output.to>\"", "\"dependsOn\":[\"a\"]")),
              "r1", "{\"who\":\"Z\\u00fcrich\"}");
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    lib_expect_output(c, "r1", "a", "{\"amount\":5,\"to\":\"Zürich\"}");
    lib_expect_output(c, "r1", "b", "{\"seen\":{\"amount\":5,\"to\":\"Zürich\"},\"text\":\"<Zürich>\"}");
    CHECK_INT(calls, 2);
    CHECK_INT(lib_count(c, "r1", "StepCompleted"), 2);
    cairn_close(c, CAIRN_NOW, -1);
}

static enum cairn_answer look_at_attempt(void *context, const struct cairn_attempt *attempt,
                                         struct cairn_result *result)
{
    (void)context;
    bool ok = attempt->size == sizeof(*attempt) && strcmp(attempt->run, "r1") == 0 && strcmp(attempt->step, "a") == 0 &&
              strcmp(attempt->kind, "look") == 0 && strcmp(attempt->key, "r1:a:1") == 0 && attempt->logical == 1 &&
              attempt->engine == 1 && attempt->timeout_ms == 9000 && strcmp(attempt->input, "{}") == 0 &&
              attempt->input_len == 2 && attempt->token != 0;
    result->output = "true";
    return ok ? CAIRN_DONE : CAIRN_FAIL;
}

static void an_attempt_says_what_it_is(void)
{
    struct cairn *c = lib_open("memory:", NULL);
    lib_register(c, "look", look_at_attempt, NULL);
    lib_start(c, PLAN(CALL_WITH("a", "look", "", "\"timeout\":\"9s\"")), "r1", NULL);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    cairn_close(c, CAIRN_NOW, -1);
}

static void mistakes_are_told_with_their_place(void)
{
    struct cairn *c = lib_open("memory:", NULL);
    struct cairn_error error;
    struct cairn_start start = {
        .size = sizeof(start), .document = "nodes:\n  - id: a\n    use: charge\n", .file = "pay.yaml"};
    char *report = NULL;
    CHECK_INT(cairn_start(c, &start, NULL, &error), CAIRN_E_INVALID);
    CHECK_INT(error.line, 3);
    CHECK(strstr(error.message, "pay.yaml:3:10: E0206"));
    CHECK(error.hint[0]);
    CHECK_INT(cairn_check(c, &start, &report, &error), CAIRN_E_INVALID);
    CHECK(strstr(report, "charge"));
    cairn_free(report);
    start.document = PLAN(CALL("a", "echo", "\"message\":1"));
    LIB_OK(cairn_check(c, &start, &report, e));
    CHECK_TEXT(report, "");
    cairn_free(report);
    start.inputs = "[1]";
    CHECK_INT(cairn_start(c, &start, NULL, &error), CAIRN_E_INVALID);
    start.inputs = "{\"a\":";
    CHECK_INT(cairn_start(c, &start, NULL, &error), CAIRN_E_INVALID);
    CHECK_INT(cairn_wait(c, "nobody", 0, NULL, &error), CAIRN_E_NOT_FOUND);
    struct cairn_kind kind = {.size = sizeof(kind), .name = "shell", .run = lib_echo};
    CHECK_INT(cairn_register(c, &kind, &error), CAIRN_E_INVALID);
    kind.name = "twice";
    LIB_OK(cairn_register(c, &kind, e));
    CHECK_INT(cairn_register(c, &kind, NULL), CAIRN_E_EXISTS);
    cairn_close(c, CAIRN_NOW, -1);
    struct cairn *none;
    struct cairn_options options = {.size = sizeof(options), .flags = CAIRN_NO_CREATE};
    CHECK_INT(cairn_open(lib_url(), &options, &none, &error), CAIRN_E_NOT_FOUND);
    CHECK(!none);
}

struct plan_of_failure {
    atomic_int calls;
    int succeed_at;
    bool retryable;
};

static enum cairn_answer fail_some(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    struct plan_of_failure *plan = context;
    int call = atomic_fetch_add(&plan->calls, 1) + 1;
    CHECK_INT(attempt->logical, call);
    if (call >= plan->succeed_at) return CAIRN_DONE;
    result->code = "CARD_DECLINED";
    result->message = "no m\xC3\xB6ney";
    result->retryable = plan->retryable;
    return CAIRN_FAIL;
}

static void transient_faults_are_retried_and_others_are_not(void)
{
    static const char document[] = PLAN(CALL_WITH("a", "flaky", "", "\"retry\":{\"maxAttempts\":5,\"delay\":1}"));
    for (int retryable = 0; retryable < 2; retryable++) {
        struct plan_of_failure plan = {.succeed_at = 3, .retryable = retryable};
        struct cairn *c = lib_open("memory:", NULL);
        lib_register(c, "flaky", fail_some, &plan);
        lib_start(c, document, "r1", NULL);
        CHECK_INT(lib_wait(c, "r1"), retryable ? CAIRN_COMPLETED : CAIRN_FAILED);
        CHECK_INT(plan.calls, retryable ? 3 : 1);
        char *view = NULL;
        LIB_OK(cairn_view(c, "r1", 0, &view, NULL, e));
        if (!retryable) CHECK(strstr(view, "CARD_DECLINED") && strstr(view, "no m\xC3\xB6ney"));
        cairn_free(view);
        cairn_close(c, CAIRN_NOW, -1);
    }
}

static enum cairn_answer say_nonsense(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)attempt;
    result->output = context;
    return CAIRN_DONE;
}

static void outputs_that_are_not_json_fail_the_step(void)
{
    struct cairn *c = lib_open("memory:", NULL);
    lib_register(c, "nonsense", say_nonsense, (char[]){"{\"a\":"});
    lib_start(c, PLAN(CALL("a", "nonsense", "")), "r1", NULL);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_FAILED);
    char *view = NULL;
    LIB_OK(cairn_view(c, "r1", 0, &view, NULL, e));
    CHECK(strstr(view, "OUTPUT_NOT_JSON"));
    cairn_free(view);
    cairn_close(c, CAIRN_NOW, -1);
}

static enum cairn_answer make_large(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)attempt;
    size_t size = *(size_t *)context;
    char *text = malloc(size);
    CHECK(text != NULL);
    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    result->output = result->memory = text;
    result->output_len = size;
    result->release = free;
    return CAIRN_DONE;
}

static void large_outputs_are_kept_and_too_large_ones_fail(void)
{
    struct cairn *c = lib_open(lib_url(), NULL);
    size_t large = 800000, too_large = (size_t)33 << 20;
    lib_register(c, "large", make_large, &large);
    lib_register(c, "too-large", make_large, &too_large);
    lib_register(c, "echo-back", lib_echo, NULL);
    lib_start(
        c, PLAN(CALL("a", "large", "") "," CALL_WITH("b", "echo-back", "\"x\":\"$a.output\"", "\"dependsOn\":[\"a\"]")),
        "r1", NULL);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    char *json = NULL;
    size_t len = 0;
    LIB_OK(cairn_output(c, "r1", "b", &json, &len, e));
    CHECK_INT(len, large + strlen("{\"x\":}"));
    cairn_free(json);
    lib_start(c, PLAN(CALL("a", "too-large", "")), "r2", NULL);
    CHECK_INT(lib_wait(c, "r2"), CAIRN_FAILED);
    cairn_close(c, CAIRN_NOW, -1);
}

// ---- recovery

static void run_in_child(const char *url, void (*body)(const char *url))
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        body(url);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) || WIFSIGNALED(status));
}

static enum cairn_answer note_down(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    const char *file = context;
    FILE *out = fopen(file, "a");
    CHECK(out != NULL);
    fprintf(out, "%s %u.%u %s\n", attempt->step, attempt->logical, attempt->engine, attempt->key);
    fclose(out);
    if (strcmp(attempt->step, "b") == 0 && attempt->engine == 1) _exit(9);
    result->output = "1";
    return CAIRN_DONE;
}

#define TWO PLAN(CALL("a", "note", "") "," CALL_WITH("b", "note", "", "\"dependsOn\":[\"a\"]"))

static void die_in_the_second_step(const char *url)
{
    char file[4200];
    snprintf(file, sizeof(file), "%s/notes", test_dir());
    struct cairn *c = lib_open(url, NULL);
    lib_register(c, "note", note_down, file);
    lib_start(c, TWO, "r1", NULL);
    lib_wait(c, "r1");
}

static void a_dead_process_is_continued_and_done_steps_are_not_called_again_I12(void)
{
    char file[4200];
    snprintf(file, sizeof(file), "%s/notes", test_dir());
    const char *url = lib_url();
    run_in_child(url, die_in_the_second_step);

    struct cairn_error error;
    size_t count = 9;
    struct cairn *c = lib_open(url, NULL);
    CHECK_INT(cairn_recover(c, "r1", NULL, &error), CAIRN_E_UNSUPPORTED); // not registered: it stays as it is
    CHECK(strstr(error.message, "\"note\"") && error.hint[0]);
    LIB_OK(cairn_recover(c, NULL, &count, e));
    CHECK_INT(count, 0);
    lib_register(c, "note", note_down, file);
    LIB_OK(cairn_recover(c, NULL, &count, e));
    CHECK_INT(count, 1);
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    struct str notes = test_read_file(file);
    CHECK_STR(notes, STR("a 1.1 r1:a:1\nb 1.1 r1:b:1\nb 1.2 r1:b:1\n"));
    CHECK_INT(lib_count(c, "r1", "StepRedispatched"), 1);
    CHECK_INT(cairn_recover(c, "r1", NULL, NULL), CAIRN_E_TERMINAL);
    cairn_close(c, CAIRN_NOW, -1);
}

static void attaching_is_starting_once(void)
{
    atomic_int calls = 0;
    struct cairn *c = lib_open(lib_url(), NULL);
    struct cairn_error error;
    lib_register(c, "count", lib_echo, &calls);
    struct cairn_start start = {.size = sizeof(start), .document = PLAN(CALL("a", "count", "")), .run = "r1"};
    LIB_OK(cairn_start(c, &start, NULL, e));
    CHECK_INT(cairn_start(c, &start, NULL, &error), CAIRN_E_EXISTS);
    start.flags = CAIRN_ATTACH;
    char run[CAIRN_RUN_SIZE];
    LIB_OK(cairn_start(c, &start, run, e));
    CHECK_TEXT(run, "r1");
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    LIB_OK(cairn_start(c, &start, NULL, e));
    start.document = PLAN(CALL("b", "count", ""));
    CHECK_INT(cairn_start(c, &start, NULL, &error), CAIRN_E_CONFLICT);
    CHECK_INT(calls, 1);
    cairn_close(c, CAIRN_NOW, -1);
}

static void an_engine_is_not_for_forked_children(void)
{
    struct cairn *c = lib_open("memory:", NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct cairn_start start = {.size = sizeof(start), .document = PLAN(CALL("a", "noop", ""))};
        enum cairn_code code = cairn_start(c, &start, NULL, NULL);
        cairn_close(c, CAIRN_NOW, 0); // does nothing
        _exit(code == CAIRN_E_UNSUPPORTED ? 0 : 1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    cairn_close(c, CAIRN_NOW, -1);
}

// ---- what a step leaves beside the log

static char report_path[4200];

static enum cairn_answer write_report(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)result;
    cairn_log(*(struct cairn **)context, attempt->token, "writing");
    cairn_log(*(struct cairn **)context, attempt->token, "a b\nc");
    snprintf(report_path, sizeof(report_path), "%s/report.txt", attempt->artifacts_dir);
    test_write_file(report_path, STR("fine\n"));
    return CAIRN_DONE;
}

// The file that write_report left: told of, read, and known for another one when it is changed or gone.
static void check_artifacts(struct cairn *c)
{
    char *rows = NULL, *bytes = NULL, *kept = NULL;
    size_t len = 0;
    struct cairn_error error;
    LIB_OK(cairn_artifacts(c, "r1", &rows, NULL, e));
    CHECK_TEXT(rows, "[{\"name\":\"report.txt\",\"stepId\":\"a\",\"kind\":\"report\",\"sizeBytes\":5,\"sha256\":"
                     "\"8ecc5f94c57b05d6c5e0ee316bee4875427e1845bbeef3ead59df29c72aab36e\",\"state\":\"ok\"}]");
    cairn_free(rows);
    LIB_OK(cairn_artifact(c, "r1", NULL, "report.txt", &bytes, &len, e));
    CHECK_STR(((struct str){bytes, len}), STR("fine\n"));
    cairn_free(bytes);
    LIB_OK(cairn_artifact(c, "r1", "a", "report.txt", &bytes, NULL, e));
    cairn_free(bytes);
    static const char *const none[][2] = {{"b", "report.txt"}, {"a", "other.txt"}, {"a", "../report.txt"}, {"a", ""}};
    for (size_t i = 0; i < ARRAY_COUNT(none); i++)
        CHECK_INT(cairn_artifact(c, "r1", none[i][0], none[i][1], &bytes, &len, &error), CAIRN_E_NOT_FOUND);
    test_write_file(report_path, STR("FINE\n"));
    CHECK_INT(cairn_artifact(c, "r1", "a", "report.txt", &bytes, &len, &error), CAIRN_E_CORRUPT);
    CHECK(bytes == NULL);
    test_write_file(report_path, STR("fine, and more\n"));
    LIB_OK(cairn_artifacts(c, "r1", &rows, NULL, e));
    CHECK(strstr(rows, "\"state\":\"changed\""));
    cairn_free(rows);
    CHECK(unlink(report_path) == 0 && symlink("/etc/hostname", report_path) == 0);
    CHECK_INT(cairn_artifact(c, "r1", "a", "report.txt", &bytes, &len, &error), CAIRN_E_NOT_FOUND);
    LIB_OK(cairn_artifacts(c, "r1", &rows, NULL, e));
    CHECK(strstr(rows, "\"state\":\"missing\""));
    cairn_free(rows);
    LIB_OK(cairn_proof(c, "r1", &kept, NULL, e));
    CHECK(strstr(kept, "{\"checkpoint\":{\"tenantId\":\"default\",\"runId\":\"r1\",\"lastSeq\":") &&
          strstr(kept, "\"verified\":true,\"faults\":[]}"));
    cairn_free(kept);
}

static void lines_are_kept_and_artifacts_collected_in_every_store(void)
{
    static const char *const kinds[] = {"sqlite", "files"};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        char url[4200], path[4200];
        snprintf(url, sizeof(url), "%s:%s/%s", kinds[i], test_dir(), kinds[i]);
        struct cairn *c = lib_open(url, NULL);
        lib_register(c, "report", write_report, &c);
        lib_start(c,
                  PLAN(CALL_WITH("a", "report", "", "\"artifacts\":[{\"path\":\"report.txt\",\"kind\":\"report\"}]")),
                  "r1", NULL);
        CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
        char *view = NULL;
        LIB_OK(cairn_view(c, "r1", 0, &view, NULL, e));
        CHECK(strstr(view, "report.txt"));
        cairn_free(view);
        snprintf(path, sizeof(path), i == 0 ? "%s/sqlite-logs/r1/a.1.1.log" : "%s/files/r1/logs/a.1.1.log", test_dir());
        struct str log = test_read_file(path);
        CHECK(strstr(log.ptr, " out writing\n") && strstr(log.ptr, " out a b\n") && strstr(log.ptr, " out c\n") &&
              strstr(log.ptr, " end done\n"));
        CHECK(lib_count(c, "r1", "StepCompleted") == 1);
        check_artifacts(c);
        cairn_close(c, CAIRN_NOW, -1);
    }
}

// ---- signals and reading

static void signals_are_decided_and_told(void)
{
    struct cairn *c = lib_open("memory:", NULL);
    lib_start(c, PLAN("{\"stepId\":\"gate\",\"kind\":\"approval\"}"), "r1", NULL);
    enum cairn_status status = 0;
    struct cairn_error error;
    CHECK_INT(cairn_wait(c, "r1", 20, &status, &error), CAIRN_E_TIMEOUT);
    CHECK_INT(status, CAIRN_RUNNING);
    struct cairn_decision decision = {.size = sizeof(decision)};
    struct cairn_signal signal = {.size = sizeof(signal), .type = "RETRY_STEP", .step = "gate"};
    LIB_OK(cairn_signal(c, "cairn://local/p/r1/r1", &signal, &decision, e)); // an EngineRunRef (WE-2.1d)
    CHECK(!decision.accepted && decision.code[0]);
    signal = (struct cairn_signal){.size = sizeof(signal),
                                   .id = "11111111-1111-4111-8111-111111111111",
                                   .type = "APPROVE",
                                   .step = "gate",
                                   .reason = "fine"};
    LIB_OK(cairn_signal(c, "r1", &signal, &decision, e));
    CHECK(decision.accepted && !decision.duplicate && decision.seq > 0);
    LIB_OK(cairn_signal(c, "r1", &signal, &decision, e));
    CHECK(decision.accepted && decision.duplicate && decision.seq > 0);
    signal.reason = "not so fine";
    CHECK_INT(cairn_signal(c, "r1", &signal, NULL, &error), CAIRN_E_CONFLICT);
    signal.id = NULL;
    CHECK_INT(lib_wait(c, "r1"), CAIRN_COMPLETED);
    signal.type = "DANCE";
    CHECK_INT(cairn_signal(c, "r1", &signal, NULL, &error), CAIRN_E_INVALID);
    signal = (struct cairn_signal){.size = sizeof(signal), .type = "CANCEL"};
    LIB_OK(cairn_signal(c, "r1", &signal, &decision, e));
    CHECK_TEXT(decision.code, "RUN_TERMINAL");
    CHECK_INT(cairn_signal(c, "nobody", &signal, NULL, &error), CAIRN_E_NOT_FOUND);
    cairn_close(c, CAIRN_NOW, -1);
}

static void runs_and_moments_can_be_read(void)
{
    struct cairn *c = lib_open(lib_url(), NULL);
    lib_register(c, "same", lib_echo, NULL);
    for (int i = 0; i < 150; i++) {
        char run[32];
        snprintf(run, sizeof(run), "r%03d", i);
        lib_start(c, PLAN(CALL("a", "same", "")), run, NULL);
    }
    for (int i = 0; i < 150; i++) {
        char run[32];
        snprintf(run, sizeof(run), "r%03d", i);
        CHECK_INT(lib_wait(c, run), CAIRN_COMPLETED);
    }
    struct cairn_runs *runs = NULL;
    struct cairn_run run = {.size = sizeof(run)};
    struct cairn_filter filter = {.size = sizeof(filter), .statuses = 1u << CAIRN_COMPLETED, .prefix = "r1"};
    int count = 0;
    LIB_OK(cairn_runs_open(c, NULL, &runs, e));
    while (cairn_runs_next(runs, &run, NULL) == CAIRN_OK) count++;
    cairn_runs_close(runs);
    CHECK_INT(count, 150);
    count = 0;
    LIB_OK(cairn_runs_open(c, &filter, &runs, e));
    while (cairn_runs_next(runs, &run, NULL) == CAIRN_OK) {
        count++;
        CHECK(strncmp(run.run, "r1", 2) == 0 && strcmp(run.plan, "p") == 0 && run.steps == 1 && run.completed == 1);
    }
    cairn_runs_close(runs);
    CHECK_INT(count, 50);
    char *now = NULL, *before = NULL;
    LIB_OK(cairn_view(c, "r000", 0, &now, NULL, e));
    LIB_OK(cairn_view(c, "r000", 2, &before, NULL, e));
    CHECK(strstr(now, "\"COMPLETED\"") && !strstr(before, "\"COMPLETED\""));
    cairn_free(now);
    cairn_free(before);
    cairn_close(c, CAIRN_NOW, -1);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(functions_get_their_inputs_and_give_outputs),
        TEST(an_attempt_says_what_it_is),
        TEST(mistakes_are_told_with_their_place),
        TEST(transient_faults_are_retried_and_others_are_not),
        TEST(outputs_that_are_not_json_fail_the_step),
        TEST(large_outputs_are_kept_and_too_large_ones_fail),
        TEST(a_dead_process_is_continued_and_done_steps_are_not_called_again_I12),
        TEST(attaching_is_starting_once),
        TEST(an_engine_is_not_for_forked_children),
        TEST(lines_are_kept_and_artifacts_collected_in_every_store),
        TEST(signals_are_decided_and_told),
        TEST(runs_and_moments_can_be_read),
    };
    return test_main("lib_run", tests, ARRAY_COUNT(tests), argc, argv);
}
