#include "conformance/store_kit.h"
#include "conformance/task_suite.h"
#include "conformance/task_web.h"

static void prepare(void)
{
    char path[700];
    web_start();
    snprintf(path, sizeof(path), "%s/a.json", test_dir());
    test_write_file(path, STR("{\"a\":[1]}"));
    snprintf(path, sizeof(path), "%s/mark", test_dir());
    test_write_file(path, STR("\x01keychain:suite.password\x01"));
    snprintf(path, sizeof(path), "%s/bytes", test_dir());
    test_write_file(path, STR("\xFF\xFE"));
    snprintf(path, sizeof(path), "%s/big", test_dir());
    struct buf big;
    buf_init(&big, 4 << 20);
    for (int i = 0; i < 200000; i++) buf_text(&big, "0123456789");
    test_write_file(path, buf_str(&big));
    buf_release(&big);
}

static struct task_case artifact = {
    .kind = "artifact",
    .prepare = prepare,
    .port = &web_port,
    .ok = "{\"action\":\"get\",\"uri\":\"file://@DIR@/a.json\"}",
    .ok_result = "data={\"a\":[1]}",
    .fails = "{\"uri\":\"gone.json\"}",
    .fails_kind = "not_found",
    .slow = "{\"uri\":\"http://127.0.0.1:@PORT@/slow\"}",
    .big = "{\"uri\":\"big\"}",
    .bytes = "{\"uri\":\"bytes\"}",
    .secret = "{\"uri\":\"http://127.0.0.1:@PORT@/echo?p=@SECRET@\"}",
    .mark = "{\"uri\":\"mark\"}",
};

static void check(const char *with, const char *path, const char *json)
{
    struct json outcome = task_do(with);
    task_is(&outcome, path, json);
}

static void what_is_put_can_be_got(void)
{
    task_begin(&artifact, NULL);
    check("{\"action\":\"put\",\"uri\":\"out.json\",\"data\":{\"x\":[1,2]}}", "result.size_bytes", "11");
    check("{\"input\":{\"uri\":\"out.json\"}}", "result.data.x", "[1,2]");
    check("{\"uri\":\"http://127.0.0.1:@PORT@/json\"}", "result.data.items", "[1,2]");
    check("{\"uri\":\"http://127.0.0.1:@PORT@/status/404\"}", "error.code", "\"REFERENCE_NOT_AVAILABLE\"");
    check("{\"uri\":\"nats-kv://b/k\"}", "error.code", "\"URI_NOT_SUPPORTED\"");
    check("{\"result_ref\":{\"kind\":\"result_ref\",\"ref\":\"noetl://execution/e/step/s\"}}", "error.code",
          "\"REFERENCE_NOT_AVAILABLE\"");
    check("{\"action\":\"put\",\"uri\":\"x\"}", "error.code", "\"DATA_MISSING\"");
    check("{}", "error.code", "\"REFERENCE_MISSING\"");
    task_end();
}

static char url[700];

static enum code read_result(void *context, const struct tool_request *request, struct str ref, struct arena *arena,
                             struct str *out, struct error *err)
{
    struct store_options options = {.mode = STORE_READ};
    struct store *store = NULL;
    enum code rc = store_open(str_from(context), &options, &store, err);
    if (!rc) rc = store_result(store, request->tenant, request->run, ref, arena, out, err);
    store_close(store);
    return rc;
}

static void with_store(struct task_options *options)
{
    options->results = (struct task_results){.read = read_result, .context = url};
}

// A run of a playbook with a result that is kept as a blob.
static struct str keep_result(struct kit *kit, const char *tenant, const char *run, struct str bytes)
{
    struct run_create create = kit_run(tenant, run, VOCABULARY_NOETL);
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
    struct moment moment = kit_moment(MOMENT_RESULT_STORED, "fetch", 1);
    moment.visit = 1;
    moment.task = STR("t");
    moment.task_run = 1;
    moment.has_blob = true;
    moment.blob = sha256(bytes);
    moment.blob_size = bytes.len;
    struct append_blob blob = {.sha256 = moment.blob, .bytes = bytes};
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = &blob, .blob_count = 1};
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
    store_release_run(kit->store, log);
    struct result_place place = result_place(str_from(run), &moment);
    return result_ref_format(&place, &kit->arena);
}

static void stored_results_are_found_by_their_reference_within_their_tenant(void)
{
    struct kit kit;
    char with[400];
    kit_init(&kit);
    snprintf(url, sizeof(url), "sqlite:%s/store.db", test_dir());
    struct store_options options = kit_options(&kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &kit.store, &kit.err), &kit.err);
    struct str mine = keep_result(&kit, "default", "run-1", STR("{\"rows\":[1,2,3]}"));
    struct str theirs = keep_result(&kit, "others", "run-2", STR("{\"rows\":[4]}"));
    (void)keep_result(&kit, "default", "e-1", STR("{\"rows\":[5]}")); // the suite's own execution
    task_begin(&artifact, with_store);
    snprintf(with, sizeof(with), "{\"result_ref\":\"%.*s\"}", STR_ARG(mine));
    check(with, "result.data.rows", "[1,2,3]");
    snprintf(with, sizeof(with), "{\"result_ref\":{\"kind\":\"result_ref\",\"ref\":\"%.*s\"}}", STR_ARG(mine));
    check(with, "result.data.rows", "[1,2,3]");
    char hex[65];
    struct digest own = sha256(STR("{\"rows\":[5]}")), other = sha256(STR("{\"rows\":[4]}"));
    digest_hex(&own, hex);
    snprintf(with, sizeof(with), "{\"result_ref\":{\"kind\":\"result_ref\",\"sha256\":\"%s\"}}", hex);
    check(with, "result.data.rows", "[5]");
    digest_hex(&other, hex);
    snprintf(with, sizeof(with), "{\"result_ref\":{\"kind\":\"result_ref\",\"sha256\":\"%s\"}}", hex);
    check(with, "error.code", "\"REFERENCE_NOT_AVAILABLE\"");
    snprintf(with, sizeof(with), "{\"result_ref\":\"%.*s\"}", STR_ARG(theirs));
    check(with, "error.code", "\"REFERENCE_NOT_AVAILABLE\"");
    task_end();
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(what_is_put_can_be_got),
                                       TEST(stored_results_are_found_by_their_reference_within_their_tenant)};
    artifact.more = more;
    artifact.more_count = ARRAY_COUNT(more);
    return task_suite(&artifact, argc, argv);
}
