// What hosts and workers of Temporal agree on: names, payloads, settings, and tasks and results that go through another server's hands.
#include "harness/test.h"
#include "remote/remote.h"
#include "temporal/parcel.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void names_of_workflows_and_activities_come_apart_again(void)
{
    struct str tenant, run, step;
    uint32_t logical, engine;
    CHECK(temporal_workflow_parse(STR("acme/nightly-1"), &tenant, &run));
    CHECK_STR(tenant, STR("acme"));
    CHECK_STR(run, STR("nightly-1"));
    CHECK(!temporal_workflow_parse(STR("nightly"), &tenant, &run));
    CHECK(!temporal_workflow_parse(STR("/nightly"), &tenant, &run));
    CHECK(!temporal_workflow_parse(STR("acme/"), &tenant, &run));
    CHECK(temporal_activity_parse(STR("load/each#3:2:14"), &step, &logical, &engine));
    CHECK_STR(step, STR("load/each#3"));
    CHECK_INT(logical, 2);
    CHECK_INT(engine, 14);
    static const char *const bad[] = {"", "a", "a:1", "a:1:", "a:1:x", ":1:1", "a:0:1", "a:1:99999999999"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) CHECK(!temporal_activity_parse(str_from(bad[i]), &step, &logical, &engine));
}

static void pools_have_queues_of_their_own(void)
{
    struct arena arena = arena_of(1024, 1 << 16);
    CHECK_STR(temporal_activity_queue(STR("cairn"), STR("default"), &arena), STR("cairn"));
    CHECK_STR(temporal_activity_queue(STR("cairn"), STR(""), &arena), STR("cairn"));
    CHECK_STR(temporal_activity_queue(STR("cairn"), STR("gpu"), &arena), STR("cairn.gpu"));
    CHECK_STR(temporal_runs_queue(STR("cairn"), 0, &arena), STR("cairn.runs"));
    CHECK_STR(temporal_runs_queue(STR("cairn"), 64, &arena), STR("cairn.runs.64"));
    arena_release(&arena);
}

static void values_name_the_workflow_that_they_belong_to(void)
{
    struct str workflow;
    struct str hex = STR("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    struct arena arena = arena_of(1024, 1 << 16);
    struct str id = arena_format(&arena, "acme/odd#name#%.*s.12", STR_ARG(hex));
    CHECK(temporal_value_parse(id, &workflow));
    CHECK_STR(workflow, STR("acme/odd#name"));
    CHECK(!temporal_value_parse(STR("acme/run"), &workflow));
    CHECK(!temporal_value_parse(STR("acme/run#12.1"), &workflow));
    CHECK(!temporal_value_parse(arena_format(&arena, "acme/run#%.*s", STR_ARG(hex)), &workflow)); // no piece
    CHECK(temporal_text_is_kept(STR("{\"cairn.value\":{}}")));
    CHECK(!temporal_text_is_kept(STR("{\"token\":\"\"}")));
    CHECK(!temporal_text_is_kept(STR("{")));
    arena_release(&arena);
}

static struct str packed_files(const char *dir, const struct json *known, size_t *count, struct arena *arena)
{
    struct buf out = buf_of(1 << 20);
    struct error err = {0};
    CHECK_INT(parcel_pack(NULL, STR("acme/run"), dir, known, &out, count, &err), OK);
    return buf_keep(&out, arena);
}

// Small files need no server: they are in the message itself.
static void files_come_out_of_a_parcel_as_they_went_in_and_links_stay_behind(void)
{
    char from[] = "/tmp/cairn-parcel.XXXXXX", to[] = "/tmp/cairn-parcel.XXXXXX", path[128];
    struct arena arena = arena_of(4096, 1 << 20);
    struct error err = {0};
    struct str text;
    struct json files;
    struct stat info;
    size_t count = 0;
    CHECK(mkdtemp(from) && mkdtemp(to));
    CHECK(parcel_is_empty(from));
    snprintf(path, sizeof(path), "%s/deep/er", from);
    CHECK_INT(os_make_dirs(path, &err), OK);
    CHECK(parcel_is_empty(from)); // directories alone are nothing
    snprintf(path, sizeof(path), "%s/deep/er/tool", from);
    CHECK_INT(os_write_file(path, STR("#!/bin/sh"), 0644, true, &err), OK);
    CHECK_INT(chmod(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/link", from);
    CHECK_INT(symlink("/etc/passwd", path), 0);
    CHECK(!parcel_is_empty(from));
    struct str sent = packed_files(from, NULL, &count, &arena);
    CHECK_INT(count, 1);
    CHECK_INT(json_parse(sent, NULL, &arena, &files, &err), OK);
    CHECK_INT(parcel_unpack(NULL, STR("acme/run"), &files, to, &err), OK);
    snprintf(path, sizeof(path), "%s/deep/er/tool", to);
    CHECK_INT(os_read_file(path, 100, &arena, &text, &err), OK);
    CHECK_STR(text, STR("#!/bin/sh"));
    CHECK(stat(path, &info) == 0 && (info.st_mode & S_IXUSR));
    CHECK_STR(packed_files(to, &files, &count, &arena), STR("[]")); // nothing is new
    CHECK_INT(os_write_file(path, STR("#!/bin/bash"), 0755, true, &err), OK);
    (void)packed_files(to, &files, &count, &arena);
    CHECK_INT(count, 1);
    static const char *const bad[] = {"[{}]", "[{\"path\":\"a\",\"bytes\":1,\"sha256\":\"x\"}]",
                                      "[{\"path\":\"../a\",\"bytes\":0,\"content\":\"\","
                                      "\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}]"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        CHECK_INT(json_parse(str_from(bad[i]), NULL, &arena, &files, &err), OK);
        CHECK(parcel_unpack(NULL, STR("acme/run"), &files, to, &err) != OK);
        err = (struct error){0};
    }
    os_remove_tree(from);
    os_remove_tree(to);
    arena_release(&arena);
}

static void payloads_are_json_or_nothing(void)
{
    struct temporal_json room;
    struct str text;
    CHECK(temporal_json_read(temporal_json(&room, STR("[1]")), &text));
    CHECK_STR(text, STR("[1]"));
    CHECK(temporal_json_read(NULL, &text));
    CHECK_STR(text, STR("null"));
    room.encoding.value = STR("binary/null");
    CHECK(temporal_json_read(&room.payloads, &text));
    CHECK_STR(text, STR("null"));
    room.encoding.value = STR("binary/encrypted"); // no guessing
    CHECK(!temporal_json_read(&room.payloads, &text));
}

static void durations_keep_their_milliseconds(void)
{
    struct temporal_duration duration = temporal_duration_of(90061);
    CHECK_INT(duration.seconds, 90);
    CHECK_INT(duration.nanos, 61000000);
    CHECK_INT(temporal_duration_ms(&duration), 90061);
    CHECK_INT(temporal_duration_ms(NULL), 0);
}

static enum code settings_of(const char *text, struct arena *arena, struct temporal_settings *out, struct error *err)
{
    struct json config;
    *out = (struct temporal_settings){.heartbeat_s = 0};
    *err = (struct error){0};
    CHECK_OK(json_parse(str_from(text), NULL, arena, &config, err), err);
    return temporal_settings_parse(&config, arena, out, err);
}

static void settings_say_what_is_wrong_with_them(void)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct temporal_settings settings;
    struct error err;
    CHECK_OK(settings_of("{\"address\":\"t:7233\",\"tls\":{},\"historyEvents\":50}", &arena, &settings, &err), &err);
    CHECK(settings.tls);
    CHECK_INT(settings.history_events, 50);
    CHECK_OK(settings_of("{\"address\":\"t:7233\"}", &arena, &settings, &err), &err);
    CHECK(!settings.tls);
    static const char *const bad[] = {"{}", "{\"address\":7}", "{\"address\":\"t:1\",\"adress\":\"x\"}",
                                      "{\"address\":\"t:1\",\"tls\":true}",
                                      "{\"address\":\"t:1\",\"tls\":{\"certFile\":\"/c\"}}", "{\"address\":\"t:1\",\"historyEvents\":5}",
                                      "{\"address\":\"t:1\",\"apiKeyFile\":\"relative\"}"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        CHECK_INT(settings_of(bad[i], &arena, &settings, &err), E_INVALID);
        CHECK(err.message[0]);
    }
    arena_release(&arena);
}

static void a_task_and_its_result_arrive_as_they_were_sent(void)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct buf text = buf_of(1 << 20);
    struct error err = {0};
    struct str argv[] = {STR("sh"), STR("-c"), STR("echo \"x\"")};
    struct tool_env env[] = {{STR("A"), STR("1")}};
    struct tool_request request = {.tenant = STR("t"), .project = STR("p"), .environment = STR("e"), .run = STR("r"), .step = STR("s"),
                                   .form = EXECUTOR_PROCESS, .kind = STR("shell"), .logical = 2, .engine = 3, .argv = argv, .argc = 3,
                                   .env = env, .env_count = 1, .timeout_ms = 5000, .output_max = 1000};
    struct remote_task task;
    remote_task_write(&text, &request, STR("s:2:3"), 30000);
    CHECK_OK(remote_task_read(buf_str(&text), &arena, &task, &err), &err);
    CHECK_STR(task.request.argv[2], argv[2]);
    CHECK_INT(task.request.engine, 3);
    CHECK_INT(task.lease_ms, 30000);
    CHECK_INT(remote_task_read(STR("[]"), &arena, &task, &err), E_INVALID);
    struct tool_result results[] = {{.ok = true, .output = STR("plain")},
                                    {.ok = true, .is_json = true, .output = STR("{\"a\":1}")},
                                    {.lost = true},
                                    {.fault = {.code = STR("EXIT_NONZERO"), .message = STR("exit 3"), .retryable = true,
                                               .has_exit = true, .exit_code = 3}}};
    for (size_t i = 0; i < ARRAY_COUNT(results); i++) {
        struct tool_result back;
        buf_clear(&text);
        remote_result_write(&text, STR(""), 7, &results[i]);
        CHECK_OK(remote_result_read(buf_str(&text), &arena, &back, &err), &err);
        CHECK_INT(back.ok, results[i].ok);
        CHECK_INT(back.lost, results[i].lost);
        CHECK_INT(back.is_json, results[i].is_json);
        CHECK_STR(back.output, results[i].output);
        CHECK_STR(back.fault.code, results[i].fault.code);
        CHECK_INT(back.fault.exit_code, results[i].fault.exit_code);
    }
    static const char *const bad[] = {"", "null", "7", "{}", "{\"output\":7}", "{\"error\":{}}", "{\"error\":{\"code\":\"\"}}"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct tool_result back;
        if (remote_result_read(str_from(bad[i]), &arena, &back, &err) == OK) test_fail(__FILE__, __LINE__, "%s was accepted", bad[i]);
    }
    buf_release(&text);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(names_of_workflows_and_activities_come_apart_again),
        TEST(pools_have_queues_of_their_own),
        TEST(values_name_the_workflow_that_they_belong_to),
        TEST(files_come_out_of_a_parcel_as_they_went_in_and_links_stay_behind),
        TEST(payloads_are_json_or_nothing),
        TEST(durations_keep_their_milliseconds),
        TEST(settings_say_what_is_wrong_with_them),
        TEST(a_task_and_its_result_arrive_as_they_were_sent),
    };
    return test_main("temporal_words", tests, ARRAY_COUNT(tests), argc, argv);
}
