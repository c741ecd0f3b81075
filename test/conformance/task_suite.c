#include "conformance/task_suite.h"

#include "json/json.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICKETS = 1024 };

static const struct task_case *current;
static struct {
    struct tasks *tasks;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tool_result results[TICKETS];
    bool ended[TICKETS];
    uint64_t next;
    struct buf lines;
    struct arena arena;
} kit = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_result(void *context, struct tool_result *result)
{
    (void)context;
    pthread_mutex_lock(&kit.mutex);
    CHECK(result->ticket < TICKETS && !kit.ended[result->ticket]);
    kit.results[result->ticket] = *result;
    kit.ended[result->ticket] = true;
    pthread_cond_broadcast(&kit.changed);
    pthread_mutex_unlock(&kit.mutex);
}

static void on_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    (void)context, (void)ticket;
    pthread_mutex_lock(&kit.mutex);
    buf_printf(&kit.lines, "%s %.*s\n", is_stderr ? "err" : "out", STR_ARG(line));
    pthread_mutex_unlock(&kit.mutex);
}

void task_begin(const struct task_case *task_case, void (*change)(struct task_options *options))
{
    struct error err = {0};
    current = task_case;
    arena_init(&kit.arena, 1 << 16, SIZE_MAX);
    buf_init(&kit.lines, 64 << 20);
    kit.next = 1;
    if (current->prepare) current->prepare();
    struct task_options options = {.mark = "task-suite", .process_max = 8, .plugins = current->plugins};
    if (change) change(&options);
    CHECK_OK(tasks_open(&options, &kit.tasks, &err), &err);
    tasks_connect(kit.tasks, on_result, on_line, NULL);
}

void task_end(void)
{
    tasks_close(kit.tasks);
    for (size_t i = 0; i < TICKETS; i++)
        if (kit.ended[i]) tool_result_free(&kit.results[i]);
    buf_release(&kit.lines);
    arena_release(&kit.arena);
}

struct str task_lines(void)
{
    return buf_str(&kit.lines);
}

static void fill(struct buf *out, const char *text)
{
    for (const char *at = text; *at;) {
        if (strncmp(at, "@PORT@", 6) == 0)
            buf_printf(out, "%u", *current->port), at += 6;
        else if (strncmp(at, "@DIR@", 5) == 0)
            buf_text(out, test_dir()), at += 5;
        else if (strncmp(at, "@SECRET@", 8) == 0)
            buf_text(out, "\\u0001keychain:suite.password\\u0001"), at += 8;
        else
            buf_byte(out, *at++);
    }
}

static void start(uint64_t ticket, const char *kind, const char *with, const char *keychain, int64_t timeout_ms)
{
    static const char entries[] = "[{\"name\":\"suite\",\"kind\":\"static\",\"map\":{\"password\":\"" TASK_SUITE_SECRET
                                  "\",\"user\":\"somebody\"}},"
                                  "{\"name\":\"token\",\"kind\":\"bearer\",\"token\":\"" TASK_SUITE_SECRET "\"}]";
    struct buf input;
    struct error err = {0};
    buf_init(&input, 64 << 20);
    buf_text(&input, "{\"execution_id\":\"e-1\",\"step\":\"s\",\"task\":\"t\",\"attempt\":1,\"keychain\":");
    fill(&input, keychain ? keychain : entries);
    buf_text(&input, ",\"with\":");
    fill(&input, with);
    buf_text(&input, "}");
    struct tool_request request = {.ticket = ticket,
                                   .run = STR("e-1"),
                                   .step = STR("s"),
                                   .tenant = STR("default"),
                                   .environment = STR("local"),
                                   .function = str_from(kind),
                                   .kind = str_from(kind),
                                   .input = buf_str(&input),
                                   .cwd = str_from(test_dir()),
                                   .artifacts_dir = str_from(test_dir()),
                                   .logical = 1,
                                   .engine = 1,
                                   .timeout_ms = timeout_ms,
                                   .output_max = 8 << 20,
                                   .log_max = 1 << 20};
    struct tools *tools = tasks_tools(kit.tasks);
    CHECK_OK(tools->ops->start(tools, &request, &err), &err);
    buf_release(&input);
}

void task_start(uint64_t ticket, const char *with)
{
    start(ticket, current->kind, with, NULL, 0);
}

void task_cancel(uint64_t ticket)
{
    struct tools *tools = tasks_tools(kit.tasks);
    tools->ops->cancel(tools, ticket, 100);
}

struct json task_wait(uint64_t ticket)
{
    struct json outcome = json_object();
    struct error err = {0};
    pthread_mutex_lock(&kit.mutex);
    while (!kit.ended[ticket]) pthread_cond_wait(&kit.changed, &kit.mutex);
    struct tool_result result = kit.results[ticket];
    pthread_mutex_unlock(&kit.mutex);
    if (!result.ok) {
        CHECK(json_put(&kit.arena, &outcome, STR("fault"), json_string(result.fault.code)));
        CHECK(json_put(&kit.arena, &outcome, STR("message"), json_string(result.fault.message)));
        return outcome;
    }
    CHECK(result.is_json);
    struct json_limits limits = json_limits_default;
    limits.size_max = limits.string_size_max = SIZE_MAX / 4;
    limits.node_count_max = UINT32_MAX / 2;
    CHECK_OK(json_parse(result.output, &limits, &kit.arena, &outcome, &err), &err);
    return outcome;
}

struct json task_do_in(const char *with, const char *keychain, int64_t timeout_ms)
{
    uint64_t ticket = kit.next++;
    start(ticket, current->kind, with, keychain, timeout_ms);
    return task_wait(ticket);
}

struct json task_do(const char *with)
{
    return task_do_in(with, NULL, 0);
}

struct json task_do_kind(const char *kind, const char *with)
{
    uint64_t ticket = kit.next++;
    start(ticket, kind, with, NULL, 0);
    return task_wait(ticket);
}

struct str task_text(const struct json *outcome, const char *path)
{
    struct buf text;
    const struct json *value = *path ? json_at(outcome, str_from(path)) : outcome;
    buf_init(&text, SIZE_MAX / 4);
    if (value) json_canon(&text, value);
    struct str copy = arena_copy(&kit.arena, buf_str(&text));
    buf_release(&text);
    return copy;
}

void task_is(const struct json *outcome, const char *path, const char *json)
{
    struct json want;
    struct error err = {0};
    struct buf text;
    buf_init(&text, 1 << 20);
    CHECK_OK(json_parse(str_from(json), NULL, &kit.arena, &want, &err), &err);
    json_canon(&text, &want);
    struct str got = task_text(outcome, path);
    if (!str_eq(got, buf_str(&text)))
        fprintf(stderr, "# %s of %.*s\n# lines:\n%.*s", path, STR_ARG(task_text(outcome, "")),
                STR_ARG(buf_str(&kit.lines)));
    CHECK_STR(got, arena_copy(&kit.arena, buf_str(&text)));
    buf_release(&text);
}

static bool holds(struct str text, const char *what)
{
    return memmem(text.ptr, text.len, what, strlen(what)) != NULL;
}

// ---- the tests

static void what_went_well_has_a_result(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do(current->ok);
    task_is(&outcome, "status", "\"ok\"");
    const char *cut = strchr(current->ok_result, '=');
    char path[100] = "result";
    if (cut && cut[0] == '=' && current->ok_result[0] != '{')
        snprintf(path, sizeof(path), "result.%.*s", (int)(cut - current->ok_result), current->ok_result);
    task_is(&outcome, path, cut && current->ok_result[0] != '{' ? cut + 1 : current->ok_result);
    CHECK(json_integer(json_at(&outcome, STR("meta.duration_ms")), -1) >= 0);
    task_is(&outcome, "meta.attempt", "1");
    CHECK(!json_key(&outcome, "error"));
    task_end();
}

static void what_went_wrong_has_a_kind_and_says_whether_to_retry(void)
{
    char kind[64];
    task_begin(current, NULL);
    struct json outcome = task_do(current->fails);
    task_is(&outcome, "status", "\"error\"");
    snprintf(kind, sizeof(kind), "\"%s\"", current->fails_kind);
    task_is(&outcome, "error.kind", kind);
    task_is(&outcome, "error.retryable", current->fails_retryable ? "true" : "false");
    CHECK(json_text(json_at(&outcome, STR("error.message"))).len > 0);
    CHECK(json_text(json_at(&outcome, STR("error.code"))).len > 0);
    task_end();
}

static void what_is_cancelled_ends_at_once(void)
{
    task_begin(current, NULL);
    task_start(900, current->slow);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    int64_t began = os_now().mono_ms;
    task_cancel(900);
    struct json outcome = task_wait(900);
    task_is(&outcome, "fault", "\"CANCELLED\"");
    CHECK(os_now().mono_ms - began < 10000);
    task_cancel(900); // of what is over: nothing
    task_end();
}

static void what_takes_too_long_is_a_timeout(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do_in(current->slow, NULL, 300);
    task_is(&outcome, "fault", "\"TIMEOUT\"");
    task_end();
}

static void closing_ends_what_runs(void)
{
    task_begin(current, NULL);
    for (uint64_t i = 0; i < 4; i++) task_start(900 + i, current->slow);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    int64_t began = os_now().mono_ms;
    task_end();
    CHECK(os_now().mono_ms - began < 10000);
    CHECK(!kit.ended[900]);
}

static void a_big_result_comes_whole(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do(current->big);
    task_is(&outcome, "status", "\"ok\"");
    CHECK(task_text(&outcome, "result").len > 1 << 20);
    task_end();
}

static void what_is_not_utf8_can_be_delivered(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do(current->bytes);
    task_is(&outcome, "status", "\"ok\"");
    CHECK(holds(task_text(&outcome, "result"), "\xEF\xBF\xBD") || holds(task_text(&outcome, "result"), "\\\\x"));
    task_end();
}

static void a_secret_that_was_used_is_masked_everywhere(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do(current->secret);
    struct str text = task_text(&outcome, "");
    CHECK(holds(text, "***"));
    CHECK(!holds(text, TASK_SUITE_SECRET) && !holds(task_lines(), TASK_SUITE_SECRET));
    task_end();
}

static void a_secret_that_is_missing_fails_the_task(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do("{\"input\":{\"x\":\"a \\u0001keychain:nobody.password\\u0001\"}}");
    task_is(&outcome, "status", "\"error\"");
    task_is(&outcome, "error.kind", "\"auth\"");
    task_is(&outcome, "error.code", "\"SECRET_NOT_FOUND\"");
    task_end();
}

static void a_mark_from_outside_is_no_mark(void)
{
    task_begin(current, NULL);
    struct json outcome = task_do(current->mark);
    task_is(&outcome, "status", "\"ok\"");
    CHECK(holds(task_text(&outcome, "result"), "keychain:suite.password"));
    CHECK(!holds(task_text(&outcome, ""), "\\u0001"));
    task_end();
}

static void an_unknown_field_is_told_about(void)
{
    char with[4096];
    task_begin(current, NULL);
    snprintf(with, sizeof(with), "{\"no_such_field\":1,%s", current->ok + 1);
    struct json outcome = task_do(with);
    task_is(&outcome, "status", "\"ok\"");
    CHECK(holds(task_lines(), "does not know the field no_such_field"));
    task_end();
}

static void many_run_at_once(void)
{
    task_begin(current, NULL);
    for (uint64_t i = 0; i < 12; i++) task_start(100 + i, current->ok);
    for (uint64_t i = 0; i < 12; i++) {
        struct json outcome = task_wait(100 + i);
        task_is(&outcome, "status", "\"ok\"");
    }
    task_end();
}

static void kinds_that_nobody_has_are_unknown(void)
{
    task_begin(current, NULL);
    CHECK(task_kind_known(current->plugins, str_from(current->kind)));
    CHECK(!task_kind_known(current->plugins, STR("no_such_kind")) && !task_kind_known(current->plugins, STR("../bin/sh")));
    struct json outcome = task_do_kind("no_such_kind", "{}");
    task_is(&outcome, "error.code", "\"UNKNOWN_KIND\"");
    task_end();
}

int task_suite(const struct task_case *task_case, int argc, char **argv)
{
    const struct {
        struct test test;
        const char *needs; // a request of this kind; without one the test says nothing
    } tests[] = {
        {TEST(what_went_well_has_a_result), task_case->ok},
        {TEST(what_went_wrong_has_a_kind_and_says_whether_to_retry), task_case->fails},
        {TEST(what_is_cancelled_ends_at_once), task_case->slow},
        {TEST(what_takes_too_long_is_a_timeout), task_case->slow},
        {TEST(closing_ends_what_runs), task_case->slow},
        {TEST(a_big_result_comes_whole), task_case->big},
        {TEST(what_is_not_utf8_can_be_delivered), task_case->bytes},
        {TEST(a_secret_that_was_used_is_masked_everywhere), task_case->secret},
        {TEST(a_secret_that_is_missing_fails_the_task), "always"},
        {TEST(a_mark_from_outside_is_no_mark), task_case->mark},
        {TEST(an_unknown_field_is_told_about), task_case->plugins ? NULL : task_case->ok},
        {TEST(many_run_at_once), task_case->ok},
        {TEST(kinds_that_nobody_has_are_unknown), "always"},
    };
    static struct test all[64];
    char program[64];
    size_t count = 0;
    current = task_case;
    CHECK(ARRAY_COUNT(tests) + task_case->more_count <= ARRAY_COUNT(all));
    for (size_t i = 0; i < ARRAY_COUNT(tests); i++)
        if (tests[i].needs) all[count++] = tests[i].test;
    for (size_t i = 0; i < task_case->more_count; i++) all[count++] = task_case->more[i];
    snprintf(program, sizeof(program), "task_%s", task_case->kind);
    return test_main(program, all, count, argc, argv);
}
