// Playbooks in stores: one log in their words, told once, and the questions of the model with the indexes that it recommends.
#include "conformance/store_kit.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static char path[600];
#define LARGE STR("as large as you like")

static void open_at(struct kit *kit, const char *kind)
{
    char url[700];
    kit_init(kit);
    snprintf(path, sizeof(path), "%s/store", test_dir());
    if (strcmp(kind, "memory:") == 0)
        snprintf(url, sizeof(url), "memory:");
    else
        snprintf(url, sizeof(url), "%s%s", kind, path);
    struct store_options options = kit_options(kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &kit->store, &kit->err), &kit->err);
}

static struct moment of_step(enum moment_kind kind, const char *step)
{
    struct moment moment = kit_moment(kind, step, 1);
    moment.by = 0;
    moment.visit = 1;
    return moment;
}

static struct moment of_task(enum moment_kind kind, const char *step, uint32_t iteration)
{
    struct moment moment = of_step(kind, step);
    moment.task = STR("page");
    moment.task_run = 1;
    moment.iteration = iteration;
    return moment;
}

static struct json parsed(struct kit *kit, const char *text)
{
    struct json value;
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &kit->arena, &value, &kit->err), &kit->err);
    return value;
}

// A loop of two items, whose second result is large.
static struct run_log *tell_run(struct kit *kit, const char *run)
{
    struct run_log *log = kit_create(kit, run, VOCABULARY_NOETL);
    struct start_facts start = kit_start_facts();
    start.document_kind = STR("playbook");
    struct moment moment = kit_moment(MOMENT_RUN_REQUESTED, "", 1);
    moment.start = &start;
    kit_append(kit, log, moment);
    kit_append(kit, log, kit_moment(MOMENT_REQUEST_EVALUATED, "", 1));
    moment = kit_moment(MOMENT_RUN_STARTED, "", 1);
    moment.start = NULL;
    moment.value = json_object();
    kit_append(kit, log, moment);
    kit_append(kit, log, kit_moment(MOMENT_WORKFLOW_STARTED, "", 1));
    moment = of_step(MOMENT_ADMIT_EVALUATED, "each");
    moment.value = parsed(kit, "{\"allow\":true}");
    kit_append(kit, log, moment);
    kit_append(kit, log, of_step(MOMENT_STEP_SCHEDULED, "each"));
    kit_append(kit, log, of_step(MOMENT_STEP_STARTED, "each"));
    moment = of_step(MOMENT_LOOP_STARTED, "each");
    moment.counts.total = 2;
    moment.value = parsed(kit, "[1,2]");
    kit_append(kit, log, moment);
    for (uint32_t i = 1; i <= 2; i++) {
        moment = of_step(MOMENT_ITERATION_SCHEDULED, "each");
        moment.iteration = i;
        kit_append(kit, log, moment);
        kit_append(kit, log, of_task(MOMENT_TASK_STARTED, "each", i));
        kit_append(kit, log, of_task(MOMENT_ATTEMPT_STARTED, "each", i));
        moment = of_task(MOMENT_TASK_DONE, "each", i);
        moment.has_blob = i == 2;
        moment.blob = moment.has_blob ? sha256(LARGE) : (struct digest){{0}};
        moment.blob_size = i == 2 ? LARGE.len : 0;
        moment.value = i == 1 ? json_int(7) : (struct json){0};
        if (i == 2) moment.extracted = parsed(kit, "{\"has_more\":false}");
        struct append_blob blob = {moment.blob, LARGE};
        struct append_item item = {.log = log, .moment = &moment};
        struct store_batch with = {.items = &item, .item_count = 1, .blobs = &blob, .blob_count = i == 2};
        CHECK_OK(store_append(kit->store, &with, KIT_NOW, &kit->arena, &kit->err), &kit->err);
    }
    moment = of_step(MOMENT_ROUTED, "each");
    moment.value = parsed(kit, "{\"mode\":\"exclusive\",\"selected\":[]}");
    kit_append(kit, log, moment);
    kit_append(kit, log, kit_moment(MOMENT_WORKFLOW_FINISHED, "", 1));
    struct moment ends[] = {kit_moment(MOMENT_RUN_COMPLETED, "", 1), kit_moment(MOMENT_RUN_PROCESSED, "", 1)};
    struct append_item items[] = {{.log = log, .moment = &ends[0]}, {.log = log, .moment = &ends[1]}};
    struct store_batch batch = {.items = items, .item_count = 2}; // the one thing that follows the end goes with it
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
    return log;
}

static void check_kind(const char *kind)
{
    struct kit kit;
    open_at(&kit, kind);
    struct run_log *log = tell_run(&kit, "exec-1");
    struct records records = kit_read(&kit, "exec-1");
    CHECK_INT(records.count, 20);
    CHECK_STR(records.items[0].type, STR("playbook.execution.requested"));
    CHECK_STR(records.items[19].type, STR("playbook.processed"));
    struct digest previous = {{0}};
    for (size_t i = 0; i < records.count; i++) {
        struct moment moment;
        struct seal seal;
        CHECK_OK(contract_decode(VOCABULARY_NOETL, records.items[i].bytes, &kit.arena, &moment, &seal, NULL, &kit.err),
                 &kit.err);
        CHECK_INT(seal.seq, i + 1);
        CHECK(digest_eq(&seal.previous, &previous));
        previous = sha256(records.items[i].bytes);
    }
    struct moment moment = of_task(MOMENT_TASK_STARTED, "each", 2); // the same once more
    struct append_item again = kit_append(&kit, log, moment);
    CHECK(again.idempotent);
    CHECK_INT(kit_read(&kit, "exec-1").count, 20);
    store_release_run(kit.store, log);
    struct run_head head = kit_head(&kit, "exec-1");
    CHECK_INT(head.vocabulary, VOCABULARY_NOETL);
    CHECK(head.terminal);
    kit_release(&kit);
}

static void sqlite_keeps_the_log_of_a_playbook_and_nothing_twice_NX_2t_NX_0a(void)
{
    static const char *const changes[] = {
        "UPDATE workflow_events SET payload='{}' WHERE event_type='task.done'",
        "DELETE FROM workflow_events WHERE event_type='task.done'",
        "REPLACE INTO workflow_events SELECT * FROM workflow_events WHERE event_type='task.done'",
    };
    check_kind("sqlite:");
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        CHECK_INT(sqlite3_exec(db, changes[i], NULL, NULL, NULL), SQLITE_CONSTRAINT);
        CHECK(strstr(sqlite3_errmsg(db), "EVENT_LOG_APPEND_ONLY"));
    }
    sqlite3_close(db);
}

static void files_keep_the_log_of_a_playbook_and_nothing_twice_NX_2t(void)
{
    check_kind("files:");
}

static void memory_keeps_the_log_of_a_playbook_and_nothing_twice_NX_2t(void)
{
    check_kind("memory:");
}

// ---- questions

static void plan_of(sqlite3 *db, const char *sql, char out[1024])
{
    sqlite3_stmt *statement = NULL;
    char text[1024];
    out[0] = '\0';
    snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sql);
    CHECK_INT(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        size_t len = strlen(out);
        snprintf(out + len, 1024 - len, "%s\n", (const char *)sqlite3_column_text(statement, 3));
    }
    sqlite3_finalize(statement);
}

static void check_uses(sqlite3 *db, const char *sql, const char *index)
{
    char plan[1024];
    plan_of(db, sql, plan);
    if (!strstr(plan, index)) test_fail(__FILE__, __LINE__, "%s does not use %s:\n%s", sql, index, plan);
}

static int64_t count_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_step(statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return count;
}

// The statements as the documentation prints them.
static void make_indexes(sqlite3 *db)
{
    struct str text = test_read_file("docs/format/sql.md");
    char *start = strstr((char *)(uintptr_t)text.ptr, "CREATE INDEX noetl_by_type");
    CHECK(start);
    char *end = strstr(start, "```");
    CHECK(end);
    *end = '\0';
    CHECK_INT(sqlite3_exec(db, start, NULL, NULL, NULL), SQLITE_OK);
}

#define VIEW "SELECT count(*) FROM noetl_events WHERE "

static void sqlite_answers_by_the_indexes_of_the_model_NX_6_1a_NX_6_1b_NX_6_1c_NX_6_1d(void)
{
    struct kit kit;
    open_at(&kit, "sqlite:");
    struct run_log *log = tell_run(&kit, "exec-1");
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(count_of(db, VIEW "execution_id='exec-1'"), 20);
    CHECK_INT(count_of(db, VIEW "run_no=1 AND event_type='task.started'"), 2);
    CHECK_INT(count_of(db, VIEW "run_no=1 AND entity_type='task' AND entity_id='page'"), 6);
    CHECK_INT(count_of(db, VIEW "run_no=1 AND entity_type='loop' AND entity_id='loop:each'"), 3);
    check_uses(db, VIEW "run_no=1 AND seq>3", "workflow_events_by_run");
    make_indexes(db);
    check_uses(db, VIEW "run_no=1 AND event_type='task.started'", "noetl_by_type");
    check_uses(db, VIEW "run_no=1 AND entity_type='task' AND entity_id='page'", "noetl_by_entity");
    check_uses(db, VIEW "event_type='task.failed' AND timestamp>'2026'", "noetl_by_time");
    check_uses(db, VIEW "tenant_id='default' AND execution_id='exec-1' AND entity_type='task' AND entity_id='page'",
               "noetl_by_entity");
    CHECK_INT(count_of(db, VIEW "run_no=1 AND entity_type='task' AND entity_id='page'"), 6);
    sqlite3_close(db);
    store_release_run(kit.store, log);
    store_release_run(kit.store, tell_run(&kit, "exec-2")); // it goes on
    struct run_log *plan = kit_create(&kit, "plan-1", VOCABULARY_RUN);
    kit_append(&kit, plan, kit_moment(MOMENT_RUN_STARTED, "", 1));
    store_release_run(kit.store, plan);
    kit_check_sound(&kit);
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(count_of(db, VIEW "event_type='task.done' AND timestamp>'2026'"), 4);
    CHECK_INT(count_of(db, "SELECT count(*) FROM noetl_events"), 40); // none of the plan
    sqlite3_close(db);
    kit_release(&kit);
}

static void large_results_are_references_NX_2u_NX_2v(void)
{
    struct kit kit;
    open_at(&kit, "memory:");
    store_release_run(kit.store, tell_run(&kit, "exec-1"));
    struct records records = kit_read(&kit, "exec-1");
    const struct record *last = NULL;
    for (size_t i = 0; i < records.count; i++)
        if (str_is(records.items[i].type, "task.done")) last = &records.items[i];
    CHECK(last && last->bytes.len < 2048);
    struct json record;
    CHECK_OK(json_parse(last->bytes, &json_limits_default, &kit.arena, &record, &kit.err), &kit.err);
    CHECK_INT(json_integer(json_at(&record, STR("payload.result_ref.meta.bytes")), 0), (int64_t)LARGE.len);
    CHECK(json_at(&record, STR("payload.extracted.has_more")));
    CHECK(!json_at(&record, STR("payload.outcome.result")));
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(sqlite_keeps_the_log_of_a_playbook_and_nothing_twice_NX_2t_NX_0a),
        TEST(files_keep_the_log_of_a_playbook_and_nothing_twice_NX_2t),
        TEST(memory_keeps_the_log_of_a_playbook_and_nothing_twice_NX_2t),
        TEST(sqlite_answers_by_the_indexes_of_the_model_NX_6_1a_NX_6_1b_NX_6_1c_NX_6_1d),
        TEST(large_results_are_references_NX_2u_NX_2v),
    };
    return test_main("store_noetl", tests, ARRAY_COUNT(tests), argc, argv);
}
