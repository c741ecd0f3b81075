// The suite on SQLite, and what only SQLite has: columns that must agree with the bytes.
#include "conformance/sql_kit.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static const char *scratch(void)
{
    static char url[512];
    static unsigned count;
    snprintf(url, sizeof(url), "sqlite:%s/store-%u.db", test_dir(), count++);
    return url;
}

static void db_do(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) test_fail(__FILE__, __LINE__, "%s: %s", sql, text);
}

static sqlite3 *raw_open(struct store *store)
{
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open(store_url(store).ptr + strlen("sqlite:"), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    db_do(db, "PRAGMA synchronous=OFF");
    return db;
}

static void drop_guards(sqlite3 *db)
{
    db_do(db, "DROP TRIGGER IF EXISTS workflow_events_no_update; DROP TRIGGER IF EXISTS workflow_events_no_delete;"
              "DROP TRIGGER IF EXISTS workflow_events_no_replace; DROP TRIGGER IF EXISTS ledger_no_update;"
              "DROP TRIGGER IF EXISTS ledger_no_delete; DROP TRIGGER IF EXISTS ledger_no_replace;"
              "DROP TRIGGER IF EXISTS runs_no_update; DROP TRIGGER IF EXISTS runs_no_delete;"
              "DROP TRIGGER IF EXISTS run_heads_no_delete; DROP INDEX IF EXISTS workflow_events_by_key;"
              "PRAGMA foreign_keys=OFF;");
}

// One connection for thousands of flips.
static sqlite3 *raw_kept(struct store *store)
{
    static sqlite3 *db;
    static char url[512];
    if (!db || strcmp(url, store_url(store).ptr) != 0) {
        sqlite3_close(db);
        db = raw_open(store);
        snprintf(url, sizeof(url), "%s", store_url(store).ptr);
    }
    drop_guards(db); // a store that is opened again makes them again
    return db;
}

static void raw(struct store *store, const char *sql)
{
    db_do(raw_kept(store), sql);
}

static int64_t raw_number(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    CHECK_INT(sqlite3_prepare_v2(raw_kept(store), sql, -1, &statement, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

// The lock file is taken away, and its process was one of an earlier boot.
static void seem_dead(struct store *store)
{
    struct buf lock;
    buf_init(&lock, 4096);
    buf_printf(&lock, "%s-engines", store_url(store).ptr + strlen("sqlite:"));
    CHECK(unlink(lock.ptr) == 0);
    buf_release(&lock);
    CHECK_INT(sqlite3_exec(raw_kept(store), "UPDATE engines SET who='1-1-gone-1'", NULL, NULL, NULL), SQLITE_OK);
}

static bool flip(struct store *store, const char *table, const char *number, const char *const *columns,
                 size_t column_count, struct str run, uint64_t seq, size_t bit)
{
    sqlite3 *db = raw_kept(store);
    for (size_t i = 0; i < column_count; i++) {
        char *sql = sqlite3_mprintf(
            "SELECT rowid,%s FROM %s WHERE run_no=(SELECT run_no FROM runs WHERE run_id='%.*s') AND %s=%llu",
            columns[i], table, STR_ARG(run), number, (unsigned long long)seq);
        sqlite3_stmt *statement = NULL;
        CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        sqlite3_free(sql);
        CHECK_INT(sqlite3_step(statement), SQLITE_ROW);
        int64_t row = sqlite3_column_int64(statement, 0);
        bool blob = sqlite3_column_type(statement, 1) == SQLITE_BLOB;
        size_t size = (size_t)sqlite3_column_bytes(statement, 1);
        if (bit >= size * 8) {
            bit -= size * 8;
            sqlite3_finalize(statement);
            continue;
        }
        unsigned char *bytes = malloc(size);
        CHECK(bytes);
        memcpy(bytes, sqlite3_column_blob(statement, 1), size);
        sqlite3_finalize(statement);
        bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ (1u << bit % 8));
        sql = sqlite3_mprintf("UPDATE %s SET %s=?1 WHERE rowid=%lld", table, columns[i], (long long)row);
        CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        sqlite3_free(sql);
        if (blob)
            sqlite3_bind_blob(statement, 1, bytes, (int)size, SQLITE_TRANSIENT);
        else
            sqlite3_bind_text(statement, 1, (const char *)bytes, (int)size, SQLITE_TRANSIENT);
        CHECK_INT(sqlite3_step(statement), SQLITE_DONE);
        sqlite3_finalize(statement);
        free(bytes);
        return true;
    }
    return false;
}

const struct sql_case sql_case = {
    .scratch = scratch,
    .raw = raw,
    .number = raw_number,
    .flip = flip,
    .seem_dead = seem_dead,
    .timestamp = "timestamp",
    .repeat = "INSERT INTO workflow_events SELECT NULL,run_no,run_id,1+(SELECT max(sequence) FROM workflow_events w "
              "WHERE w.run_no=e.run_no),event_type,timestamp,payload,record_prefix,record_suffix,key FROM "
              "workflow_events e WHERE run_no=%lld AND sequence=%llu",
    .no_head = "UPDATE run_heads SET head=zeroblob(32)",
    .other_ledger = "UPDATE run_heads SET ledger_head=randomblob(32)",
    .terminal = "UPDATE run_heads SET terminal=1",
    .document = "UPDATE runs SET document=x'80f165a0a589db5184a4301d53a7b9d382c84b87891187eeb456b5d3fe1f7e92' WHERE run_no=%lld",
    .ways_to_go = 4,
    .stride = 1,
};

static void S9_bytes_moved_between_columns_are_found_I7(void)
{
    struct kit kit;
    start_columns(&kit);
    raw(kit.store,
        "UPDATE workflow_events SET payload=payload||substr(record_suffix,1,1),record_suffix=substr(record_suffix,2) "
        "WHERE sequence=2");
    CHECK_INT(kit_verify(&kit).fault_count, 1);
    kit_release(&kit);
}

// ---- notes and the feed

static void S15_S16_a_database_of_before_them_opens_and_tells_its_old_events(void)
{
    struct kit kit;
    start_columns(&kit);
    char url[600];
    snprintf(url, sizeof(url), "%.*s", STR_ARG(store_url(kit.store)));
    sqlite3 *db = raw_open(kit.store);
    store_close(kit.store);
    db_do(db, "DROP TABLE notes; DROP TABLE feed_floor;");
    sqlite3_close(db);
    struct store_options options = kit_options(&kit, STORE_READ);
    struct note note;
    struct feed feed;
    uint64_t end = 0;
    CHECK_OK(store_open(str_from(url), &options, &kit.store, &kit.err), &kit.err);
    CHECK_INT(store_note(kit.store, STR("s"), STR("k"), &kit.arena, &note, NULL), E_NOT_FOUND);
    CHECK_OK(store_feed(kit.store, 0, 10, &kit.arena, &feed, &kit.err), &kit.err);
    CHECK_INT(feed.count, 2);
    CHECK_OK(store_feed_end(kit.store, &end, &kit.err), &kit.err);
    CHECK_INT(end, 2);
    struct store *early = kit.store;
    options = kit_options(&kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &kit.store, &kit.err), &kit.err);
    struct note_put put = {.space = STR("s"), .key = STR("k"), .value = STR("v")};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    struct run_log *log = kit_claim(&kit, "r");
    kit_step(&kit, log, "b");
    store_release_run(kit.store, log);
    CHECK_OK(store_feed(early, 0, 10, &kit.arena, &feed, &kit.err), &kit.err);
    CHECK_INT(feed.count, 3);
    CHECK_OK(store_note(early, STR("s"), STR("k"), &kit.arena, &note, &kit.err), &kit.err);
    CHECK_INT(note.version, 1);
    store_close(early);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void refused(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &text);
    if (rc == SQLITE_OK || !text || !strstr(text, "APPEND_ONLY"))
        test_fail(__FILE__, __LINE__, "%s: %s", sql, text ? text : "was done");
    sqlite3_free(text);
}

// The handle that appends leaves its triggers off. The file has them for everybody else, all the while.
static void S8_triggers_refuse_every_other_connection_EL_1a(void)
{
    struct kit kit;
    start_columns(&kit);
    struct run_log *log = kit_create(&kit, "t", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    sqlite3 *db = raw_open(kit.store);
    refused(db, "UPDATE workflow_events SET payload='{}'");
    refused(db, "DELETE FROM workflow_events");
    refused(db, "UPDATE runs SET run_id='x'");
    refused(db, "DELETE FROM runs");
    refused(db, "DELETE FROM run_heads");
    refused(db, "INSERT OR REPLACE INTO workflow_events SELECT * FROM workflow_events WHERE sequence=1");
    refused(db, "INSERT INTO workflow_events(run_no,run_id,sequence,event_type,timestamp,payload,record_prefix,"
                "record_suffix,key) SELECT run_no,run_id,sequence+1000,event_type,timestamp,payload,record_prefix,"
                "record_suffix,key FROM workflow_events LIMIT 1");
    refused(db, "INSERT INTO tombstones SELECT run_no,r.tenant_id,run_id,last_seq,ledger_seq,head,ledger_head,0,'' "
                "FROM runs r JOIN run_heads h USING(run_no)"); // it has not ended
    kit_step(&kit, log, "b"); // and the engine goes on beside it
    kit_append(&kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit.store, log);
    struct run_name name = {STR("default"), STR("t")};
    CHECK_OK(store_remove(kit.store, &name, 1, KIT_NOW, STR("old"), &kit.err), &kit.err);
    refused(db, "UPDATE tombstones SET reason='x'");
    refused(db, "DELETE FROM tombstones");
    sqlite3_close(db);
    kit_release(&kit);
}

static void S15_audit_records_are_kept_by_triggers_on_any_connection(void)
{
    struct kit kit;
    start_columns(&kit);
    struct note_put put = {.space = STR("audit"), .key = STR("1"), .value = STR("v")};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    sqlite3 *db = raw_open(kit.store);
    refused(db, "UPDATE notes SET value=x'00'");
    refused(db, "DELETE FROM notes");
    refused(db, "INSERT OR REPLACE INTO notes VALUES('audit','1',1,x'00')");
    refused(db, "INSERT INTO notes VALUES('audit','1',1,x'00') ON CONFLICT DO UPDATE SET value=x'00'");
    refused(db, "UPDATE notes SET space='other'");
    refused(db, "UPDATE feed_floor SET position=-1");
    refused(db, "DELETE FROM feed_floor");
    db_do(db, "INSERT INTO notes VALUES('s','1',1,x'00'); UPDATE notes SET version=2 WHERE space='s'");
    refused(db, "UPDATE notes SET space='audit' WHERE space='s'");
    db_do(db, "DELETE FROM notes WHERE space='s'");
    sqlite3_close(db);
    struct note note;
    CHECK_OK(store_note(kit.store, STR("audit"), STR("1"), &kit.arena, &note, &kit.err), &kit.err);
    CHECK_STR(note.value, STR("v"));
    kit_release(&kit);
}

// What an owner that has forgotten its keys would do: room at the head, the next number, a key that is there.
#define AGAIN                                                                                                          \
    "INTO workflow_events SELECT NULL,run_no,run_id,sequence+1,event_type,timestamp,payload,record_prefix,"            \
    "record_suffix,key FROM workflow_events WHERE sequence=2"
static void one_event_a_key(struct store *store)
{
    sqlite3 *db = raw_open(store);
    db_do(db, "UPDATE run_heads SET last_seq=3");
    refused(db, "INSERT " AGAIN);
    refused(db, "INSERT OR REPLACE " AGAIN);
    refused(db, "INSERT " AGAIN " AND true ON CONFLICT DO UPDATE SET payload='{}'");
    db_do(db, "BEGIN; DROP TRIGGER workflow_events_no_replace"); // without it the index alone
    CHECK_INT(sqlite3_exec(db, "INSERT " AGAIN, NULL, NULL, NULL), SQLITE_CONSTRAINT);
    db_do(db, "ROLLBACK; UPDATE run_heads SET last_seq=2");
    sqlite3_close(db);
}

static void S5_the_store_itself_refuses_a_second_event_of_a_key_I2(void)
{
    struct kit kit;
    start_columns(&kit);
    one_event_a_key(kit.store);
    // A store of before has neither the index nor the trigger's part of it.
    char url[600];
    snprintf(url, sizeof(url), "%.*s", STR_ARG(store_url(kit.store)));
    raw(kit.store, "SELECT 1");
    store_close(kit.store);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &kit.store, &kit.err), &kit.err);
    one_event_a_key(kit.store);
    // One that holds two is not written to, and can be looked at.
    raw(kit.store, "INSERT " AGAIN);
    store_close(kit.store);
    CHECK_INT(store_open(str_from(url), &options, &kit.store, &kit.err), E_CORRUPT);
    CHECK(strstr(kit.err.message, "under one key"));
    COVERED(two_events_of_one_key);
    options = kit_options(&kit, STORE_READ);
    CHECK_OK(store_open(str_from(url), &options, &kit.store, &kit.err), &kit.err);
    CHECK(kit_verify(&kit).fault_count > 0);
    kit_release(&kit);
}

static void S16_a_vacuum_leaves_positions_as_they_are(void)
{
    struct kit kit;
    start_columns(&kit);
    struct run_log *log = kit_create(&kit, "gone", VOCABULARY_RUN);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_append(&kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit.store, log);
    log = kit_create(&kit, "s", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    store_release_run(kit.store, log);
    struct run_name name = {STR("default"), STR("gone")};
    CHECK_OK(store_remove(kit.store, &name, 1, KIT_NOW, STR("old"), &kit.err), &kit.err);
    struct feed before, after;
    CHECK_OK(store_feed(kit.store, 0, 10, &kit.arena, &before, &kit.err), &kit.err);
    CHECK_INT(before.count, 3);
    CHECK_INT(before.items[2].position, 5);
    sqlite3 *db = raw_open(kit.store);
    db_do(db, "VACUUM");
    sqlite3_close(db);
    CHECK_OK(store_feed(kit.store, 0, 10, &kit.arena, &after, &kit.err), &kit.err);
    CHECK_INT(after.count, 3);
    for (size_t i = 0; i < 3; i++) CHECK_INT(after.items[i].position, before.items[i].position);
    kit_release(&kit);
}

// ---- bodies of plans, beside the store

static enum code fetch_counted(void *context, struct str tenant, struct str uri, const struct digest *wanted,
                               struct arena *arena, struct str *out, struct error *err)
{
    (void)wanted;
    (void)arena;
    ++*(int *)context;
    if (!str_is(tenant, "default") || !str_is(uri, "s3://plans/p.json")) return error_set(err, E_INVALID, "asked for another");
    *out = STR("the body");
    return OK;
}

static void a_body_beside_the_store_may_go_and_is_fetched_again_C_38(void)
{
    struct kit kit;
    start_columns(&kit);
    int fetched = 0;
    const struct plan_source source = {&fetched, fetch_counted};
    const struct str uri = STR("s3://plans/p.json");
    struct run_head head = {.document = sha256(STR("the body")), .ids = {.tenant = STR("default")}};
    struct str bytes;
    char url[600], path[800], hex[SHA256_HEX + 1];
    snprintf(url, sizeof(url), "%.*s", STR_ARG(store_url(kit.store)));
    store_close(kit.store);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    options.plans = &source;
    CHECK_OK(store_open(str_from(url), &options, &kit.store, &kit.err), &kit.err);
    digest_hex(&head.document, hex);
    snprintf(path, sizeof(path), "%s-plans/%s", url + strlen("sqlite:"), hex);
    CHECK(!store_plan_kept(kit.store, &head.document));
    CHECK_INT(store_blob(kit.store, &head.document, &kit.arena, &bytes, NULL), E_NOT_FOUND);
    CHECK_INT(store_plan(kit.store, &head, STR(""), &kit.arena, &bytes, NULL), E_NOT_FOUND);
    CHECK_INT(fetched, 0);
    CHECK_OK(store_plan(kit.store, &head, uri, &kit.arena, &bytes, &kit.err), &kit.err);
    CHECK_OK(store_plan(kit.store, &head, uri, &kit.arena, &bytes, &kit.err), &kit.err);
    CHECK_INT(fetched, 1); // it is kept
    CHECK_OK(store_blob(kit.store, &head.document, &kit.arena, &bytes, &kit.err), &kit.err);
    CHECK_STR(bytes, STR("the body"));
    CHECK_OK(os_write_file(path, STR("another"), 0600, true, &kit.err), &kit.err);
    CHECK_INT(store_blob(kit.store, &head.document, &kit.arena, &bytes, NULL), E_NOT_FOUND);
    COVERED(shelf_damaged);
    CHECK_OK(store_plan(kit.store, &head, uri, &kit.arena, &bytes, &kit.err), &kit.err);
    CHECK_INT(fetched, 2);
    CHECK_OK(store_blob(kit.store, &head.document, &kit.arena, &bytes, &kit.err), &kit.err); // and put right
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(a_body_beside_the_store_may_go_and_is_fetched_again_C_38),
                                       TEST(S15_S16_a_database_of_before_them_opens_and_tells_its_old_events),
                                       TEST(S8_triggers_refuse_every_other_connection_EL_1a),
                                       TEST(S15_audit_records_are_kept_by_triggers_on_any_connection),
                                       TEST(S5_the_store_itself_refuses_a_second_event_of_a_key_I2),
                                       TEST(S16_a_vacuum_leaves_positions_as_they_are),
                                       TEST(S9_every_flipped_bit_of_a_column_is_found_and_named_I7),
                                       TEST(S9_bytes_moved_between_columns_are_found_I7),
                                       TEST(S9_changed_heads_are_found_I7)};
    static const struct store_case sqlite = {
        .name = "sqlite",
        .durable = true,
        .shared = true,
        .many_writers = true,
        .scratch = scratch,
        .tamper = tamper,
        .usurp = usurp,
        .more = more,
        .more_count = ARRAY_COUNT(more),
    };
    return store_suite(&sqlite, argc, argv);
}
