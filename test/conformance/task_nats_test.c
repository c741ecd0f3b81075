#include "conformance/task_suite.h"
#include "json/json.h"
#include "unit/support/nats_kit.h"

static struct nats_server server;

static void prepare(void)
{
    char url[64];
    nats_start(&server, "");
    nats_hello(&server, "{\"verbose\":false}");
    nats_stream(&server, "EVENTS", "");
    snprintf(url, sizeof(url), "nats://127.0.0.1:%u", server.port);
    setenv("NATS_URL", url, 1);
}

static struct task_case nats = {
    .kind = "nats",
    .prepare = prepare,
    .port = &server.port,
    .ok = "{\"operation\":\"kv_put\",\"bucket\":\"b\",\"key\":\"k\",\"value\":{\"a\":[1]}}",
    .ok_result = "status=\"success\"",
    .fails = "{\"operation\":\"kv_get\",\"bucket\":\"none\",\"key\":\"k\"}",
    .fails_kind = "not_found",
};

static void check(const char *with, const char *path, const char *json)
{
    struct json outcome = task_do(with);
    task_is(&outcome, path, json);
}

static void keys_are_put_got_listed_and_deleted(void)
{
    task_begin(&nats, NULL);
    check("{\"operation\":\"kv_put\",\"bucket\":\"b\",\"key\":\"k.one\",\"value\":{\"a\":[1]}}", "result.revision",
          "1");
    check("{\"operation\":\"kv_put\",\"bucket\":\"b\",\"key\":\"text\",\"value\":\"plain text\"}", "result.revision",
          "2");
    check("{\"operation\":\"kv_get\",\"bucket\":\"b\",\"key\":\"k.one\"}", "result.value", "{\"a\":[1]}");
    check("{\"operation\":\"kv_get\",\"bucket\":\"b\",\"key\":\"text\"}", "result.value", "\"plain text\"");
    struct json outcome = task_do("{\"operation\":\"kv_keys\",\"bucket\":\"b\"}");
    CHECK_INT(json_at(&outcome, STR("result.keys"))->count, 2);
    check("{\"operation\":\"kv_delete\",\"bucket\":\"b\",\"key\":\"text\"}", "status", "\"ok\"");
    check("{\"operation\":\"kv_get\",\"bucket\":\"b\",\"key\":\"text\"}", "error.kind", "\"not_found\"");
    check("{\"operation\":\"kv_purge\",\"bucket\":\"b\",\"key\":\"k.one\"}", "status", "\"ok\"");
    check("{\"operation\":\"kv_get\",\"bucket\":\"b\",\"key\":\"never\"}", "error.kind", "\"not_found\"");
    check("{\"operation\":\"kv_get\",\"bucket\":\"b c\",\"key\":\"k\"}", "error.code", "\"NAME_INVALID\"");
    check("{\"operation\":\"what\"}", "error.code", "\"OPERATION_UNKNOWN\"");
    task_end();
    nats_kill(&server);
}

static void messages_are_published_and_stored(void)
{
    task_begin(&nats, NULL);
    check("{\"operation\":\"js_publish\",\"subject\":\"cairn.events.a\",\"message\":{\"x\":1}}", "result.stream",
          "\"EVENTS\"");
    check("{\"operation\":\"publish\",\"subject\":\"cairn.events.b\",\"payload\":\"hello\"}", "status", "\"ok\"");
    CHECK_INT(nats_count(&server, "EVENTS"), 2);
    check("{\"operation\":\"js_publish\",\"subject\":\"nobody.takes.it\",\"message\":1}", "error.kind",
          "\"not_found\"");
    check("{\"url\":\"nats://127.0.0.1:1\",\"operation\":\"publish\",\"subject\":\"x\"}", "error.kind",
          "\"connection\"");
    task_end();
    nats_kill(&server);
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(keys_are_put_got_listed_and_deleted),
                                       TEST(messages_are_published_and_stored)};
    nats.more = more;
    nats.more_count = ARRAY_COUNT(more);
    return task_suite(&nats, argc, argv);
}
