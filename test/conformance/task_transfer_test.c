#include "conformance/task_suite.h"
#include "conformance/task_web.h"

static void prepare(void)
{
    char path[700];
    web_start();
    snprintf(path, sizeof(path), "%s/in.csv", test_dir());
    test_write_file(path, STR("id,name\r\n1,\"a, \"\"b\"\"\"\r\n2,\"two\nlines\"\r\n"));
    snprintf(path, sizeof(path), "%s/in.jsonl", test_dir());
    test_write_file(path, STR("{\"id\":1,\"v\":{\"x\":2}}\n\n{\"id\":2}\n"));
}

static struct task_case transfer = {
    .kind = "transfer",
    .prepare = prepare,
    .port = &web_port,
    .ok = "{\"source\":{\"tool\":\"http\",\"url\":\"http://127.0.0.1:@PORT@/"
          "rows\"},\"target\":{\"tool\":\"jsonl\",\"path\":\"out.jsonl\"}}",
    .ok_result = "{\"status\":\"success\",\"rows_transferred\":2}",
    .fails = "{\"source\":{\"tool\":\"http\",\"url\":\"http://127.0.0.1:@PORT@/status/"
             "500\"},\"target\":{\"tool\":\"csv\",\"path\":\"x.csv\"}}",
    .fails_kind = "server_error",
    .fails_retryable = true,
    .slow = "{\"source\":{\"tool\":\"http\",\"url\":\"http://127.0.0.1:@PORT@/"
            "slow\"},\"target\":{\"tool\":\"csv\",\"path\":\"x.csv\"}}",
};

static void check(const char *kind, const char *with, const char *path, const char *json)
{
    struct json outcome = task_do_kind(kind, with);
    task_is(&outcome, path, json);
}

static void rows_go_from_everywhere_to_everywhere(void)
{
    task_begin(&transfer, NULL);
    check("sqlite",
          "{\"database\":\"t.db\",\"command\":\"create table posts (post_id, title); create table c (id, name)\"}",
          "status", "\"ok\"");
    check("transfer",
          "{\"source\":{\"tool\":\"http\",\"url\":\"http://127.0.0.1:@PORT@/"
          "rows\"},\"target\":{\"tool\":\"sqlite\",\"database\":\"t.db\","
          "\"table\":\"posts\"},\"mapping\":{\"post_id\":\"id\",\"title\":\"title\"}}",
          "result.rows_transferred", "2");
    check("sqlite", "{\"database\":\"t.db\",\"query\":\"select * from posts\"}", "result.command_0.rows",
          "[{\"post_id\":1,\"title\":\"one\"},{\"post_id\":2,\"title\":\"two, 'quoted'\"}]");
    check("transfer",
          "{\"source\":{\"tool\":\"csv\",\"path\":\"in.csv\"},\"target\":{\"tool\":\"sqlite\",\"database\":\"t.db\","
          "\"table\":\"c\",\"mode\":\"overwrite\"}}",
          "result.rows_transferred", "2");
    check("transfer",
          "{\"source\":{\"tool\":\"sqlite\",\"database\":\"t.db\",\"query\":\"select * from "
          "c\"},\"target\":{\"tool\":\"csv\",\"path\":\"out.csv\"}}",
          "status", "\"ok\"");
    check("artifact", "{\"uri\":\"out.csv\"}", "result.data",
          "\"id,name\\n1,\\\"a, \\\"\\\"b\\\"\\\"\\\"\\n2,\\\"two\\nlines\\\"\\n\"");
    check("transfer",
          "{\"source\":{\"tool\":\"file\",\"path\":\"in.jsonl\"},\"target\":{\"tool\":\"file\",\"path\":\"o.jsonl\"},"
          "\"mapping\":{\"n\":\"id\",\"x\":\"v.x\"}}",
          "result.rows_transferred", "2");
    check("artifact", "{\"uri\":\"o.jsonl\"}", "result.data",
          "\"{\\\"n\\\":1,\\\"x\\\":2}\\n{\\\"n\\\":2,\\\"x\\\":null}\\n\"");
    task_end();
}

static void all_rows_are_stored_or_none(void)
{
    task_begin(&transfer, NULL);
    check("sqlite", "{\"database\":\"t.db\",\"command\":\"create table c (id integer primary key, name)\"}", "status",
          "\"ok\"");
    check("transfer",
          "{\"source\":{\"rows\":[{\"id\":1},{\"id\":2},{\"id\":1}]},\"target\":{\"tool\":\"sqlite\",\"database\":\"t."
          "db\",\"table\":\"c\"}}",
          "error.kind", "\"db_constraint\"");
    check("sqlite", "{\"database\":\"t.db\",\"query\":\"select count(*) as n from c\"}", "result.command_0.rows.0.n",
          "0");
    check("transfer",
          "{\"source\":{\"rows\":[{\"id\":1}]},\"target\":{\"tool\":\"sqlite\",\"database\":\"t.db\",\"table\":\"c\\\";"
          " drop table c; --\"}}",
          "status", "\"error\"");
    check("transfer", "{\"source\":{\"tool\":\"ftp\"},\"target\":{}}", "error.code", "\"SOURCE_UNKNOWN\"");
    check("transfer", "{\"source\":{\"rows\":[1]},\"target\":{\"tool\":\"csv\",\"path\":\"x\"}}", "error.kind",
          "\"schema\"");
    check("transfer", "{}", "error.code", "\"ENDS_MISSING\"");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(rows_go_from_everywhere_to_everywhere), TEST(all_rows_are_stored_or_none)};
    transfer.more = more;
    transfer.more_count = ARRAY_COUNT(more);
    return task_suite(&transfer, argc, argv);
}
