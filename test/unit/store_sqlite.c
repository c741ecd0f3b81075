// What the SQLite store promises beyond the common contract: how it syncs, what outsiders may not do, several processes, files
// that are not ours. Full and failing disks: store_sqlite_disk.c.
#include "conformance/store_kit.h"
#include "store_sqlite_vfs.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static sqlite3 *plain(const char *path)
{
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_step(statement), SQLITE_ROW);
    int64_t answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return answer;
}

// ---- layout and pragmas

static void every_commit_is_synced_I1(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "first");
    shim.syncs = 0;
    char step[16];
    for (int i = 0; i < 100; i++) {
        snprintf(step, sizeof(step), "s%d", i);
        kit_step(&kit, log, step);
    }
    CHECK_INT(shim.syncs, 100); // one each: not fewer, and not more
    store_release_run(kit.store, log);
    shim.syncs = 0;
    log = kit_claim(&kit, "r");
    CHECK_INT(shim.syncs, 0); // a lease needs none
    kit_step(&kit, log, "after the claim");
    CHECK_INT(shim.syncs, 1); // and events are synced again after it
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void a_commit_is_one_write_and_seen_by_others_at_once(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, shim_register());
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "first");
    sqlite3 *other = plain(path);
    shim.writes = 0;
    char step[16];
    for (int i = 0; i < 50; i++) {
        snprintf(step, sizeof(step), "s%d", i);
        kit_step(&kit, log, step);
        CHECK_INT(ask(other, "SELECT count(*) FROM workflow_events"), i + 2);
    }
    CHECK_INT(shim.writes, 50); // however many pages
    // More than is put together at once: several writes, all of them before the sync.
    static char large[300000];
    memset(large, 'x', sizeof(large) - 1);
    struct append_blob blob = {.bytes = {large, sizeof(large) - 1}};
    blob.sha256 = sha256(blob.bytes);
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "large", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = &blob, .blob_count = 1};
    shim.writes = 0;
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    CHECK(shim.writes > 1 && shim.writes < 20);
    CHECK_INT(ask(other, "SELECT length(bytes) FROM blobs"), (int64_t)sizeof(large) - 1);
    // A lease is not synced: what it wrote is there all the same.
    store_release_run(kit.store, log);
    log = kit_claim(&kit, "r");
    CHECK_INT(ask(other, "SELECT epoch FROM run_heads"), 2);
    store_release_run(kit.store, log);
    sqlite3_close(other);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void the_file_is_marked_private_and_in_wal_mode(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, NULL);
    sqlite3 *db = plain(path);
    CHECK_INT(ask(db, "PRAGMA application_id"), 0x43616972);
    CHECK_INT(ask(db, "PRAGMA user_version"), 1);
    CHECK_INT(ask(db, "PRAGMA page_size"), 4096);
    CHECK_INT(ask(db, "SELECT journal_mode='wal' FROM pragma_journal_mode"), 1);
    CHECK_INT(ask(db, "SELECT count(*) FROM pragma_table_info('workflow_events') WHERE name IN "
                      "('run_id','sequence','event_type','timestamp','payload') AND \"notnull\"=1"),
              5);
    sqlite3_close(db);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++) { // nobody else reads what runs say
        char name[600];
        struct stat status;
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        CHECK(stat(name, &status) == 0);
        CHECK_INT(status.st_mode & 0777, 0600);
    }
    kit_release(&kit);
}

static void outside_readers_find_the_record_in_plain_columns_EL_1a(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, NULL);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    struct append_item item = kit_append(&kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1));
    sqlite3 *db = plain(path);
    CHECK_INT(ask(db, "SELECT count(*) FROM workflow_events WHERE run_id='r' AND json_valid(payload)"), 2);
    CHECK_INT(ask(db,
                  "SELECT event_type='node_completed' AND timestamp='2026-02-11T17:00:00.000Z' FROM workflow_events "
                  "WHERE run_id='r' AND sequence=2"),
              1);
    sqlite3_stmt *statement = NULL;
    CHECK_INT(sqlite3_prepare_v2(db, "SELECT record FROM workflow_records WHERE run_id='r' AND sequence=2", -1,
                                 &statement, NULL),
              SQLITE_OK);
    CHECK_INT(sqlite3_step(statement), SQLITE_ROW);
    CHECK_STR(str_from((const char *)sqlite3_column_text(statement, 0)), item.bytes);
    sqlite3_finalize(statement);
    CHECK_INT(ask(db, "SELECT count(*) FROM workflow_runs WHERE run_id='r' AND last_sequence=2"), 1);
    CHECK_INT(ask(db, "SELECT record LIKE '%\"payload\":'||payload||'%' FROM workflow_records JOIN workflow_events "
                      "USING(run_no,sequence) WHERE sequence=1"),
              1);
    sqlite3_close(db);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

// ---- S8

static void check_refused(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &text);
    if (rc == SQLITE_OK) test_fail(__FILE__, __LINE__, "was allowed: %s", sql);
    if (!strstr(text, "EVENT_LOG_APPEND_ONLY") && !strstr(text, "NOT NULL constraint failed"))
        test_fail(__FILE__, __LINE__, "%s: %s", sql, text);
    sqlite3_free(text);
}

static void S8_a_plain_connection_cannot_change_remove_or_replace_events_EL_1b_EL_1e_I5(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, NULL);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_NODES);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_append(&kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
    kit_append(&kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    static const char *const statements[] = {
        "UPDATE workflow_events SET payload='{}'",
        "UPDATE OR REPLACE workflow_events SET sequence=1",
        "DELETE FROM workflow_events",
        "DELETE FROM workflow_events WHERE sequence=2",
        "REPLACE INTO workflow_events(run_id,sequence,event_type,timestamp,payload) VALUES('r',1,'x','t','{}')",
        "INSERT OR REPLACE INTO workflow_events(run_id,sequence,event_type,timestamp,payload) "
        "VALUES('r',3,'x','t','{}')",
        "INSERT OR REPLACE INTO workflow_events(position,run_id,sequence,event_type,timestamp,payload) "
        "VALUES(1,'r',1,'x','t','{}')",
        "INSERT OR REPLACE INTO workflow_events VALUES(1,1,'r',1,'x','t','{}','','',x'00')",
        "INSERT OR REPLACE INTO workflow_events VALUES(1,9,'r',1,'x','t','{}','','',x'00')",
        "INSERT OR REPLACE INTO workflow_events VALUES(NULL,1,'r',1,'x','t','{}','','',x'00')",
        "INSERT OR REPLACE INTO workflow_events SELECT * FROM workflow_events",
        "INSERT INTO workflow_events VALUES(NULL,1,'r',3,'x','t','{}','','',x'00')",
        "INSERT INTO workflow_events VALUES(NULL,1,'r',0,'x','t','{}','','',x'00')",
        "INSERT INTO workflow_events VALUES(NULL,7,'r',1,'x','t','{}','','',x'00')",
        "INSERT OR IGNORE INTO workflow_events VALUES(NULL,1,'r',9,'x','t','{}','','',x'00')",
        "INSERT INTO workflow_events VALUES(NULL,1,'r',1,'x','t','{}','','',x'00') ON CONFLICT DO UPDATE SET "
        "payload='{}'",
        "UPDATE ledger SET bytes='{}'",
        "DELETE FROM ledger",
        "REPLACE INTO ledger VALUES(1,1,1,1,'decision',NULL,'{}',zeroblob(32))",
        "REPLACE INTO ledger VALUES(NULL,1,1,1,'decision',NULL,'{}',zeroblob(32))",
        "UPDATE runs SET plan_version='2'",
        "DELETE FROM runs",
        "DELETE FROM run_heads",
        "REPLACE INTO runs SELECT * FROM runs",
        "REPLACE INTO run_heads SELECT * FROM run_heads",
    };
    sqlite3 *db = plain(path);
    for (size_t i = 0; i < ARRAY_COUNT(statements); i++) check_refused(db, statements[i]);
    CHECK_INT(ask(db, "SELECT count(*) FROM workflow_events"), 2);
    CHECK_INT(ask(db, "SELECT count(*) FROM ledger"), 1);
    sqlite3_close(db);
    kit_check_sound(&kit);
    store_release_run(kit.store, log);
    kit_release(&kit);
}

// ---- several processes

static _Noreturn void write_runs(const char *path, unsigned writer)
{
    enum { BATCHES = 60, RUNS = 4 };
    struct kit kit;
    start(&kit, path, NULL);
    struct run_log *logs[RUNS];
    char name[32];
    for (unsigned i = 0; i < RUNS; i++) {
        snprintf(name, sizeof(name), "w%u-%u", writer, i);
        logs[i] = kit_create(&kit, name, VOCABULARY_RUN);
    }
    for (unsigned n = 0; n < BATCHES; n++) {
        char step[16];
        snprintf(step, sizeof(step), "s%u", n);
        struct moment moment = kit_moment(MOMENT_STEP_STARTED, step, 1);
        struct append_item items[RUNS] = {{0}};
        for (unsigned i = 0; i < RUNS; i++) items[i] = (struct append_item){.log = logs[i], .moment = &moment};
        struct store_batch batch = {.items = items, .item_count = RUNS};
        if (store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err)) {
            fprintf(stderr, "# writer %u: %s\n", writer, kit.err.message);
            _exit(1);
        }
    }
    for (unsigned i = 0; i < RUNS; i++) store_release_run(kit.store, logs[i]);
    store_close(kit.store);
    _exit(0);
}

static void several_processes_write_at_once_and_meet_no_lock(void)
{
    enum { WRITERS = 4 };
    const char *path = scratch_path();
    pid_t writers[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) { // they also make the store at the same time
        writers[i] = fork();
        CHECK(writers[i] >= 0);
        if (writers[i] == 0) write_runs(path, i);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status;
        CHECK(waitpid(writers[i], &status, 0) == writers[i]);
        CHECK_INT(status, 0);
    }
    struct kit kit;
    kit_init(&kit);
    CHECK_OK(try_open(&kit, path, STORE_READ, NULL), &kit.err);
    struct verify_report report = kit_verify(&kit);
    CHECK_INT(report.run_count, 16);
    CHECK_INT(report.event_count, 16 * 60);
    CHECK_INT(report.fault_count, 0);
    kit_release(&kit);
}

// It comes, stores a run with an output that is there already, and goes.
static void store_output(const char *path, struct str output)
{
    struct kit kit;
    start(&kit, path, NULL);
    struct append_blob blob = {sha256(output), output};
    struct moment moment = kit_moment(MOMENT_RUN_STARTED, "", 1);
    struct append_item item = {.log = kit_create(&kit, "late", VOCABULARY_NODES), .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = &blob, .blob_count = 1};
    enum code rc = store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err);
    store_close(kit.store);
    _exit(rc == OK ? 0 : 1);
}

static void blobs_stay_when_somebody_stored_something_since_they_were_listed_I5(void)
{
    const char *path = scratch_path();
    struct str output = STR("an output that nobody needs any more");
    struct kit kit;
    start(&kit, path, NULL);
    struct append_blob blob = {sha256(output), output};
    struct store_batch batch = {.blobs = &blob, .blob_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    struct digests blobs;
    CHECK_OK(store_blobs(kit.store, &kit.arena, &blobs, &kit.err), &kit.err);
    CHECK_INT(blobs.count, 1);
    pid_t child = fork();
    if (child == 0) store_output(path, output);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    uint64_t bytes = 0;
    struct str found;
    CHECK_INT(store_drop_blobs(kit.store, blobs.items, 1, &bytes, NULL), E_LOCKED);
    CHECK_OK(store_blob(kit.store, &blob.sha256, &kit.arena, &found, &kit.err), &kit.err);
    CHECK_OK(store_blobs(kit.store, &kit.arena, &blobs, &kit.err), &kit.err); // looked at again, nobody came
    CHECK_OK(store_drop_blobs(kit.store, blobs.items, 1, &bytes, &kit.err), &kit.err);
    kit_release(&kit);
}

static void a_run_is_free_when_its_owner_was_killed_I27(void)
{
    const char *path = scratch_path();
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t owner = fork();
    CHECK(owner >= 0);
    if (owner == 0) {
        struct kit kit;
        start(&kit, path, NULL);
        kit_step(&kit, kit_create(&kit, "r", VOCABULARY_RUN), "a");
        if (write(ready[1], "+", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    struct kit kit;
    start(&kit, path, NULL);
    struct run_head head = kit_head(&kit, "r");
    CHECK(head.owned);
    CHECK_INT(head.owner_pid, owner);
    struct run_log *log = NULL;
    CHECK_INT(store_claim_run(kit.store, STR("default"), STR("r"), &log, &kit.err), E_LOCKED);
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)owner);
    CHECK(strstr(kit.err.message, pid) != NULL);
    CHECK(kill(owner, SIGKILL) == 0);
    CHECK(waitpid(owner, NULL, 0) == owner);
    CHECK(!kit_head(&kit, "r").owned);
    kit.err = (struct error){0};
    log = kit_claim(&kit, "r");
    CHECK_INT(run_log_epoch(log), 2);
    CHECK_INT(kit_step(&kit, log, "b").seq, 2);
    CHECK_INT(kit_head(&kit, "r").owner_pid, getpid());
    // Our own runs count as owned as well.
    struct run_log *again = NULL;
    CHECK_INT(store_claim_run(kit.store, STR("default"), STR("r"), &again, NULL), E_LOCKED);
    store_release_run(kit.store, log);
    log = kit_claim(&kit, "r");
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void the_inbox_shows_only_signals_for_runs_we_own(void)
{
    const char *path = scratch_path();
    struct kit a, b;
    start(&a, path, NULL);
    start(&b, path, NULL);
    struct run_log *ours = kit_create(&a, "ours", VOCABULARY_RUN);
    struct run_log *theirs = kit_create(&b, "theirs", VOCABULARY_RUN);
    kit_step(&a, ours, "a");
    kit_step(&b, theirs, "a");
    CHECK_OK(store_post(b.store, STR("default"), STR("ours"), STR("s1"), STR("{}"), &b.err), &b.err);
    CHECK_OK(store_post(b.store, STR("default"), STR("theirs"), STR("s2"), STR("{}"), &b.err), &b.err);
    struct inbox_item *items;
    size_t count;
    CHECK_OK(store_inbox(a.store, &a.arena, &items, &count, &a.err), &a.err);
    CHECK_INT(count, 1);
    CHECK_STR(items[0].signal_id, STR("s1"));
    int64_t done = items[0].id;
    struct store_batch batch = {.inbox_done = &done, .inbox_count = 1};
    CHECK_OK(store_append(a.store, &batch, KIT_NOW, &a.arena, &a.err), &a.err);
    CHECK_OK(store_inbox(a.store, &a.arena, &items, &count, &a.err), &a.err);
    CHECK_INT(count, 0);
    // A run that changes hands brings its signals along, although no other connection has written since.
    store_release_run(b.store, theirs);
    kit_release(&b);
    theirs = kit_claim(&a, "theirs");
    CHECK_OK(store_inbox(a.store, &a.arena, &items, &count, &a.err), &a.err);
    CHECK_INT(count, 1);
    CHECK_STR(items[0].signal_id, STR("s2"));
    store_release_run(a.store, theirs);
    store_release_run(a.store, ours);
    kit_release(&a);
}

static void a_lease_given_back_is_seen_by_others_while_we_idle(void)
{
    const char *path = scratch_path();
    struct kit a, b;
    start(&a, path, NULL);
    start(&b, path, NULL);
    struct run_log *log = kit_create(&a, "r", VOCABULARY_RUN);
    kit_step(&a, log, "a");
    store_release_run(a.store, log);
    struct inbox_item *items;
    size_t count;
    for (int i = 0; i < 2; i++) CHECK_OK(store_inbox(a.store, &a.arena, &items, &count, &a.err), &a.err);
    log = kit_claim(&b, "r");
    store_release_run(b.store, log);
    kit_release(&b);
    kit_release(&a);
}

// ---- files that are not ours

static void other_files_are_refused_with_words(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *path = scratch_path();
    sqlite3 *db = plain(path);
    CHECK_INT(sqlite3_exec(db, "CREATE TABLE x(y)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    CHECK_INT(try_open(&kit, path, STORE_WRITE, NULL), E_INVALID);
    CHECK(strstr(kit.err.message, "another program") != NULL);
    CHECK_INT(try_open(&kit, path, STORE_READ, NULL), E_INVALID);
    db = plain(path);
    CHECK_INT(ask(db, "SELECT count(*) FROM sqlite_schema"), 1); // and left as they are
    CHECK_INT(ask(db, "SELECT journal_mode='delete' FROM pragma_journal_mode"), 1);
    sqlite3_close(db);

    path = scratch_path();
    test_write_file(path, STR("This is a letter to my aunt, and it is long enough to be taken for a page of something. "
                              "It has a second sentence as well, because a header is a hundred bytes."));
    CHECK_INT(try_open(&kit, path, STORE_WRITE, NULL), E_CORRUPT);
    CHECK(strstr(kit.err.message, "not an SQLite database") != NULL);

    path = scratch_path();
    CHECK_OK(try_open(&kit, path, STORE_WRITE, NULL), &kit.err);
    store_close(kit.store);
    kit.store = NULL;
    db = plain(path);
    CHECK_INT(sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    CHECK_INT(try_open(&kit, path, STORE_WRITE, NULL), E_VERSION);
    CHECK(strstr(kit.err.message, "99") != NULL);
    CHECK_INT(try_open(&kit, path, STORE_READ, NULL), E_VERSION);
    kit_release(&kit);
}

static void a_damaged_page_is_told_in_words(void)
{
    struct kit kit;
    const char *path = scratch_path();
    start(&kit, path, NULL);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    char step[16];
    for (int i = 0; i < 200; i++) {
        snprintf(step, sizeof(step), "s%d", i);
        kit_step(&kit, log, step);
    }
    store_release_run(kit.store, log);
    kit_release(&kit);
    struct str bytes = test_read_file(path);
    char *copy = malloc(bytes.len);
    CHECK(copy);
    memcpy(copy, bytes.ptr, bytes.len);
    memset(copy + 8192, 0xff, bytes.len - 8192); // everything but the schema's first page
    test_write_file(path, (struct str){copy, bytes.len});
    free(copy);
    kit_init(&kit);
    enum code rc = try_open(&kit, path, STORE_READ, NULL);
    struct run_head head;
    if (!rc) rc = store_head(kit.store, STR("default"), STR("r"), &kit.arena, &head, &kit.err);
    CHECK_INT(rc, E_CORRUPT);
    CHECK(strstr(kit.err.message, "damaged") != NULL);
    kit_release(&kit);
}

// A backup is of one moment, whatever is written meanwhile (I46).
// A signal is one row: it neither brings the store up to date nor moves the log, as a handle for writing would.
static void a_reader_posts_a_signal_without_opening_the_store_for_writing(void)
{
    struct kit kit, reader;
    const char *path = scratch_path();
    char url[600];
    start(&kit, path, NULL);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    store_release_run(kit.store, log);
    kit_release(&kit);
    sqlite3 *db = plain(path);
    CHECK_INT(sqlite3_exec(db, "DROP VIEW noetl_events", NULL, NULL, NULL), SQLITE_OK);
    kit_init(&reader);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    struct store_options options = kit_options(&reader, STORE_READ);
    CHECK_OK(store_open(str_from(url), &options, &reader.store, &reader.err), &reader.err);
    CHECK_OK(store_post(reader.store, STR("default"), STR("r"), STR("s-1"), STR("{}"), &reader.err), &reader.err);
    CHECK_INT(store_post(reader.store, STR("default"), STR("q"), STR("s-2"), STR("{}"), NULL), E_NOT_FOUND);
    CHECK_INT(ask(db, "SELECT count(*) FROM inbox"), 1);
    CHECK_INT(ask(db, "SELECT count(*) FROM sqlite_schema WHERE name='noetl_events'"), 0);
    CHECK_INT(ask(db, "SELECT count(*) FROM engines"), 1);
    sqlite3_close(db);
    kit_release(&reader);
}

// ---- a log that lost something

// A process that stored `count` steps and died without closing; its files are beside `path`.
static void die_after(const char *path, int count)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct kit kit;
        char step[16];
        start(&kit, path, NULL);
        struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
        for (int i = 0; i < count; i++) {
            snprintf(step, sizeof(step), "s%d", i);
            kit_step(&kit, log, step);
        }
        _exit(0);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

static void put_file(const char *path, const char *ending, struct str bytes)
{
    char name[600];
    snprintf(name, sizeof(name), "%s%s", path, ending);
    test_write_file(name, bytes);
}

static struct str get_file(const char *path, const char *ending)
{
    char name[600];
    snprintf(name, sizeof(name), "%s%s", path, ending);
    return test_read_file(name);
}

static enum code open_again(const char *path, enum store_mode mode, int expected_events)
{
    struct kit kit;
    char url[600];
    kit_init(&kit);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    struct store_options options = kit_options(&kit, mode);
    enum code rc = store_open(str_from(url), &options, &kit.store, &kit.err);
    if (rc == E_CORRUPT) CHECK(strstr(kit.err.message, "-wal is damaged at byte"));
    if (rc == OK) CHECK_INT(kit_read(&kit, "r").count, expected_events);
    kit_release(&kit);
    return rc;
}

// SQLite would end the log before the change and go on: what follows was acknowledged.
static void a_flipped_bit_anywhere_in_a_dead_engines_log_is_told_I6(void)
{
    enum { STEPS = 6 };
    const char *path = scratch_path();
    die_after(path, STEPS);
    struct str database = get_file(path, ""), log = get_file(path, "-wal");
    CHECK(log.len > 32 + STEPS * 4120);
    CHECK_INT(open_again(path, STORE_READ, STEPS), OK);
    char *bytes = malloc(log.len);
    CHECK(bytes);
    size_t flips = 0;
    for (size_t bit = 0; bit < log.len * 8; bit += bit < 32 * 8 ? 1 : 4099) {
        memcpy(bytes, log.ptr, log.len);
        bytes[bit / 8] = (char)((uint8_t)bytes[bit / 8] ^ 1u << bit % 8);
        put_file(path, "", database);
        put_file(path, "-wal", (struct str){bytes, log.len});
        enum code rc = open_again(path, flips++ % 2 ? STORE_READ : STORE_WRITE, STEPS);
        if (rc != E_CORRUPT) test_fail(__FILE__, __LINE__, "bit %zu gave code %d", bit, (int)rc);
        struct str after = get_file(path, "-wal");
        CHECK(after.len == log.len && memcmp(after.ptr, bytes, log.len) == 0); // nothing was made of it
    }
    CHECK(flips > 300);
    free(bytes);
    put_file(path, "", database);
    put_file(path, "-wal", log);
    CHECK_INT(open_again(path, STORE_WRITE, STEPS), OK);
}

// A log that was cut below the mark has lost commits; what stands behind the mark was never acknowledged.
static void a_cut_log_is_told_and_a_torn_tail_is_not_S2(void)
{
    enum { STEPS = 6 };
    const char *path = scratch_path();
    die_after(path, STEPS);
    struct str database = get_file(path, ""), log = get_file(path, "-wal");
    for (size_t cut = 1; cut < log.len - 32; cut += 1237) {
        put_file(path, "", database);
        put_file(path, "-wal", str_slice(log, 0, log.len - cut));
        CHECK_INT(open_again(path, STORE_READ, STEPS), E_CORRUPT);
    }
    // Half a commit behind the mark: frames of this log with another content.
    struct buf torn;
    buf_init(&torn, SIZE_MAX / 4);
    buf_add(&torn, log);
    buf_add(&torn, str_slice(log, log.len - 4120, log.len - 100));
    put_file(path, "", database);
    put_file(path, "-wal", buf_str(&torn));
    CHECK_INT(open_again(path, STORE_READ, STEPS), OK);
    CHECK_INT(open_again(path, STORE_WRITE, STEPS), OK);
    buf_release(&torn);
    // Somebody decided to go on without what is lost.
    char mark[600];
    snprintf(mark, sizeof(mark), "%s-mark", path);
    CHECK_INT(unlink(mark), 0);
    put_file(path, "", database);
    put_file(path, "-wal", str_slice(log, 0, log.len - 100));
    CHECK_INT(open_again(path, STORE_WRITE, STEPS - 1), OK);
}

static void a_frozen_reader_shows_one_moment_I46(void)
{
    struct kit kit, reader;
    const char *path = scratch_path();
    start(&kit, path, NULL);
    kit_init(&reader);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    CHECK_OK(try_open(&reader, path, STORE_READ, NULL), &reader.err);
    CHECK_OK(store_freeze(reader.store, &reader.err), &reader.err);
    kit_step(&kit, log, "b");
    struct run_log *other = kit_create(&kit, "other", VOCABULARY_RUN);
    kit_step(&kit, other, "a");
    struct note_put put = {.space = STR("x"), .key = STR("k"), .value = STR("v")};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    for (int i = 0; i < 2; i++) {
        struct run_filter filter = {.tenant = STR("default")};
        struct run_heads heads;
        struct note_spaces spaces;
        CHECK_OK(store_list(reader.store, &filter, &reader.arena, &heads, &reader.err), &reader.err);
        CHECK_INT(heads.count, 1);
        CHECK_INT(heads.items[0].last_seq, 1);
        CHECK_INT(kit_read(&reader, "r").count, 1);
        CHECK_OK(store_note_spaces(reader.store, &reader.arena, &spaces, &reader.err), &reader.err);
        CHECK_INT(spaces.count, 0);
        kit_step(&kit, log, i ? "d" : "c");
    }
    kit_release(&reader);
    store_release_run(kit.store, log);
    store_release_run(kit.store, other);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_commit_is_synced_I1),
        TEST(a_commit_is_one_write_and_seen_by_others_at_once),
        TEST(the_file_is_marked_private_and_in_wal_mode),
        TEST(outside_readers_find_the_record_in_plain_columns_EL_1a),
        TEST(S8_a_plain_connection_cannot_change_remove_or_replace_events_EL_1b_EL_1e_I5),
        TEST(several_processes_write_at_once_and_meet_no_lock),
        TEST(blobs_stay_when_somebody_stored_something_since_they_were_listed_I5),
        TEST(a_run_is_free_when_its_owner_was_killed_I27),
        TEST(the_inbox_shows_only_signals_for_runs_we_own),
        TEST(a_lease_given_back_is_seen_by_others_while_we_idle),
        TEST(other_files_are_refused_with_words),
        TEST(a_damaged_page_is_told_in_words),
        TEST(a_frozen_reader_shows_one_moment_I46),
        TEST(a_reader_posts_a_signal_without_opening_the_store_for_writing),
        TEST(a_flipped_bit_anywhere_in_a_dead_engines_log_is_told_I6),
        TEST(a_cut_log_is_told_and_a_torn_tail_is_not_S2),
    };
    return test_main("store_sqlite", tests, ARRAY_COUNT(tests), argc, argv);
}
