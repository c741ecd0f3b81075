// What only Postgres has: other sessions, rights, servers that end connections or refuse, and several writers at once.
#include "conformance/pg_proxy.h"
#include "conformance/store_kit.h"
#include "store/postgres.h"

#include <pthread.h>

static bool missing;
static char url[700], schema[64];

// A schema of its own for each test; `more` goes behind the URL.
static void place(const char *more)
{
    if (missing) test_skip("Postgres is not installed (package postgresql)");
    snprintf(schema, sizeof(schema), "p%d", (int)getpid());
    snprintf(url, sizeof(url), "%s&schema=%s%s", pg_url("postgres", ""), schema, more);
}

static enum code try_open(struct kit *kit, const char *from, struct store **out)
{
    struct store_options options = kit_options(kit, STORE_WRITE);
    options.lock_wait_ms = 3000;
    kit->err = (struct error){0};
    *out = NULL;
    return store_open(str_from(from), &options, out, &kit->err);
}

static void start_with(struct kit *kit, const char *more)
{
    kit_init(kit);
    place(more);
    CHECK_OK(try_open(kit, url, &kit->store), &kit->err);
}

static PGconn *raw_as(const char *role)
{
    char text[300], sql[200];
    snprintf(text, sizeof(text), "postgres:///postgres?host=%s&user=%s", pg_cluster.dir, role);
    PGconn *link = pg_raw(text);
    snprintf(sql, sizeof(sql), "SET search_path=%s,public;SET client_min_messages=error", schema);
    pg_do(link, sql);
    return link;
}

static void one_run(struct kit *kit, const char *tenant, const char *run, bool ended)
{
    struct run_create create = kit_run(tenant, run, VOCABULARY_RUN);
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    if (ended) kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit->store, log);
}

// ---- append-only, rights, walls

static void S8_triggers_refuse_the_owner_too_EL_1a(void)
{
    struct kit kit;
    start_with(&kit, "");
    one_run(&kit, "default", "r", true);
    one_run(&kit, "default", "open", false);
    for (int i = 0; i < 2; i++) { // leases that were given back are written when there is nothing else to do
        struct inbox_item *items;
        size_t count;
        CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    }
    PGconn *link = raw_as("postgres");
    static const char *const texts[] = {
        "UPDATE workflow_events SET payload='{}'",
        "DELETE FROM workflow_events",
        "DELETE FROM workflow_events WHERE sequence=1",
        "TRUNCATE workflow_events",
        "TRUNCATE runs,run_heads,workflow_events,ledger CASCADE",
        "UPDATE runs SET run_id='x'",
        "DELETE FROM runs",
        "DELETE FROM run_heads",
        "UPDATE run_heads SET last_seq=0",
        "UPDATE run_heads SET epoch=0",
        "UPDATE run_heads SET terminal=false WHERE terminal",
        "INSERT INTO workflow_events SELECT * FROM workflow_events ON CONFLICT (position) DO UPDATE SET payload='{}'",
        "INSERT INTO tombstones SELECT run_no,tenant_id,'x',last_seq,ledger_seq,head,ledger_head,0,'' FROM run_heads",
        "UPDATE feed_floor SET position=-1",
        "DELETE FROM feed_floor",
        "TRUNCATE notes",
        "TRUNCATE tombstones",
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) pg_refused(link, texts[i], "APPEND_ONLY");
    pg_refused(link, "SELECT remove_runs(ARRAY['default'],ARRAY['open'],0,'',0)", "not ended");
    PQfinish(link);
    kit_check_sound(&kit);
    struct run_name name = {STR("default"), STR("r")};
    CHECK_OK(store_remove(kit.store, &name, 1, KIT_NOW, STR("old"), &kit.err), &kit.err);
    link = raw_as("postgres");
    pg_refused(link, "DELETE FROM tombstones", "APPEND_ONLY");
    pg_refused(link, "UPDATE tombstones SET reason=''", "APPEND_ONLY");
    PQfinish(link);
    kit_release(&kit);
}

static void S8_a_role_of_an_engine_can_run_everything_and_write_to_no_table(void)
{
    struct kit kit;
    start_with(&kit, "");
    one_run(&kit, "default", "r", true);
    PGconn *link = raw_as("postgres");
    pg_do(link, "CREATE ROLE app LOGIN; SELECT allow_engine('app')");
    PQfinish(link);
    link = raw_as("app");
    pg_do(link, "SET cairn.tenant='*'");
    static const char *const texts[] = {"INSERT INTO workflow_events SELECT * FROM workflow_events",
                                        "UPDATE workflow_events SET payload='{}'",
                                        "DELETE FROM workflow_events",
                                        "TRUNCATE workflow_events",
                                        "UPDATE run_heads SET epoch=epoch+1",
                                        "INSERT INTO tombstones SELECT * FROM tombstones",
                                        "DELETE FROM engines",
                                        "UPDATE notes SET version=2",
                                        "SELECT nextval('feed_position')",
                                        "SELECT setval('feed_position',1)",
                                        "ALTER TABLE workflow_events DISABLE TRIGGER ALL",
                                        "SELECT allow_engine('app')",
                                        "DROP TABLE workflow_events"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) pg_refused(link, texts[i], "");
    CHECK_INT(pg_number(link, "SELECT count(*) FROM workflow_events"), 2);
    PQfinish(link);
    store_close(kit.store);
    char as_app[800];
    snprintf(as_app, sizeof(as_app), "postgres:///postgres?host=%s&user=app&schema=%s", pg_cluster.dir, schema);
    CHECK_OK(try_open(&kit, as_app, &kit.store), &kit.err);
    one_run(&kit, "acme", "mine", true);
    struct run_log *log = kit_claim(&kit, "r");
    store_release_run(kit.store, log);
    struct note_put put = {.space = STR("s"), .key = STR("k"), .value = STR("v")};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    CHECK_OK(store_post(kit.store, STR("default"), STR("r"), STR("sig"), STR("{}"), &kit.err), &kit.err);
    struct feed feed;
    CHECK_OK(store_feed(kit.store, 0, 100, &kit.arena, &feed, &kit.err), &kit.err);
    CHECK_INT(feed.count, 4);
    struct run_name name = {STR("acme"), STR("mine")};
    CHECK_OK(store_remove(kit.store, &name, 1, KIT_NOW, STR("old"), &kit.err), &kit.err);
    kit_check_sound(&kit);
    kit_release(&kit);
    link = raw_as("postgres");
    pg_do(link, "DROP OWNED BY app; DROP ROLE app");
    PQfinish(link);
}

static void S11_row_level_security_is_a_second_wall_between_tenants(void)
{
    struct kit kit;
    start_with(&kit, "");
    one_run(&kit, "acme", "a", true);
    one_run(&kit, "umbrella", "b", true);
    one_run(&kit, "umbrella", "c", true);
    PGconn *link = raw_as("postgres");
    pg_do(link, "CREATE ROLE look LOGIN; SELECT allow_reader('look'); CREATE ROLE acme LOGIN; SELECT "
                "allow_tenant('acme','acme')");
    PQfinish(link);
    static const char *const tables[] = {"runs", "run_heads", "workflow_events", "ledger", "tombstones"};
    static const long long all[] = {3, 3, 6, 0, 0}, of_acme[] = {1, 1, 2, 0, 0};
    PGconn *look = raw_as("look"), *acme = raw_as("acme");
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
        char sql[80];
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
        pg_do(look, "RESET cairn.tenant");
        pg_do(acme, "RESET cairn.tenant");
        CHECK_INT(pg_number(look, sql), 0); // who says nothing sees nothing
        CHECK_INT(pg_number(acme, sql), 0);
        pg_do(look, "SET cairn.tenant='acme'");
        CHECK_INT(pg_number(look, sql), of_acme[i]);
        pg_do(look, "SET cairn.tenant='*'");
        CHECK_INT(pg_number(look, sql), all[i]);
        pg_do(acme, "SET cairn.tenant='*'"); // bound, whatever it says
        CHECK_INT(pg_number(acme, sql), of_acme[i]);
        pg_do(acme, "SET cairn.tenant='umbrella'");
        CHECK_INT(pg_number(acme, sql), 0);
    }
    pg_refused(acme, "SELECT count(*) FROM blobs", "permission denied");
    PQfinish(look);
    PQfinish(acme);
    link = raw_as("postgres");
    pg_do(link, "DROP OWNED BY look,acme; DROP ROLE look; DROP ROLE acme");
    PQfinish(link);
    kit_release(&kit);
}

// ---- migrations

static void *open_and_close(void *code)
{
    struct kit kit;
    kit_init(&kit);
    struct error err = {0};
    struct store_options options = kit_options(&kit, STORE_WRITE);
    *(enum code *)code = store_open(str_from(url), &options, &kit.store, &err);
    if (err.code) fprintf(stderr, "# %s\n", err.message);
    kit_release(&kit);
    return NULL;
}

static void many_who_open_a_new_store_at_once_make_it_once(void)
{
    enum { OPENERS = 6 };
    place("");
    pthread_t threads[OPENERS];
    enum code codes[OPENERS];
    for (size_t i = 0; i < OPENERS; i++) CHECK(pthread_create(&threads[i], NULL, open_and_close, &codes[i]) == 0);
    for (size_t i = 0; i < OPENERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < OPENERS; i++) CHECK_INT(codes[i], OK);
    PGconn *link = raw_as("postgres");
    CHECK_INT(pg_number(link, "SELECT count(*) FROM migrations"), PG_FORMAT);
    PQfinish(link);
}

static void a_newer_format_is_refused_when_it_says_so(void)
{
    struct kit kit;
    start_with(&kit, "");
    store_close(kit.store);
    kit.store = NULL;
    PGconn *link = raw_as("postgres");
    pg_do(link, "INSERT INTO migrations VALUES(1000,1)"); // one that the old ones can live with
    CHECK_OK(try_open(&kit, url, &kit.store), &kit.err);
    store_close(kit.store);
    pg_do(link, "INSERT INTO migrations VALUES(1001,1001)");
    CHECK_INT(try_open(&kit, url, &kit.store), E_VERSION);
    CHECK(strstr(kit.err.message, "newer Cairn"));
    PQfinish(link);
    kit_release(&kit);
}

// Version 1 of the store is what later ones added taken away.
static void an_older_format_is_used_by_who_may_not_change_it_and_brought_forward_by_its_owner(void)
{
    struct kit kit;
    struct store_format format;
    char as_app[800];
    start_with(&kit, "");
    one_run(&kit, "default", "r", true);
    store_close(kit.store);
    PGconn *link = raw_as("postgres");
    pg_do(link, "DROP FUNCTION claim_runs; DROP INDEX workflow_events_by_key; DELETE FROM migrations WHERE version>1;"
                "CREATE ROLE hand LOGIN;SELECT allow_engine('hand')");
    snprintf(as_app, sizeof(as_app), "postgres:///postgres?host=%s&user=hand&schema=%s", pg_cluster.dir, schema);
    CHECK_OK(try_open(&kit, as_app, &kit.store), &kit.err);
    CHECK_OK(store_format(kit.store, &format, &kit.err), &kit.err);
    CHECK(format.have == 1 && format.newest == PG_FORMAT);
    one_run(&kit, "default", "old", false);
    store_close(kit.store);
    CHECK_OK(try_open(&kit, url, &kit.store), &kit.err);
    CHECK_OK(store_format(kit.store, &format, &kit.err), &kit.err);
    CHECK_INT(format.have, PG_FORMAT);
    store_close(kit.store);
    PGconn *hand = raw_as("hand"); // it may call what came new
    pg_refused(hand, "SELECT claim_runs(1000,'{}','{}')", "is gone");
    PQfinish(hand);
    CHECK_OK(try_open(&kit, as_app, &kit.store), &kit.err);
    one_run(&kit, "default", "new", true);
    kit_check_sound(&kit);
    kit_release(&kit);
    pg_do(link, "DROP OWNED BY hand; DROP ROLE hand");
    PQfinish(link);
}

// An engine that is at work when the store is brought to a format that it may not write to ends with the next look.
static void an_engine_of_an_older_version_ends_when_the_format_says_so(void)
{
    struct kit kit;
    struct shard_map map;
    start_with(&kit, "");
    CHECK_OK(store_shards(kit.store, 60000, os_now().wall_ms, &map, &kit.err), &kit.err);
    PGconn *link = raw_as("postgres");
    pg_do(link, "INSERT INTO migrations VALUES(1000,2)"); // newer, but we may go on
    CHECK_OK(store_shards(kit.store, 60000, os_now().wall_ms, &map, &kit.err), &kit.err);
    pg_do(link, "INSERT INTO migrations VALUES(1001,1001)");
    CHECK_INT(store_shards(kit.store, 60000, os_now().wall_ms, &map, &kit.err), E_VERSION);
    CHECK(strstr(kit.err.message, "newer Cairn"));
    PQfinish(link);
    kit_release(&kit);
}

// ---- what a server may do

static void refused_with(const char *from, enum code code, const char *word)
{
    struct kit kit;
    kit_init(&kit);
    enum code got = try_open(&kit, from, &kit.store);
    if (got != code || !strstr(kit.err.message, word))
        test_fail(__FILE__, __LINE__, "%s: %d %s (expected %d, %s)", from, (int)got, kit.err.message, (int)code, word);
    CHECK(!strstr(kit.err.message, "secret"));
    kit_release(&kit);
}

static void set_server(PGconn *link, const char *sql)
{
    pg_do(link, sql);
    pg_do(link, "SELECT pg_reload_conf()");
    usleep(200000);
}

static void a_server_that_does_not_fit_is_refused_with_the_reason(void)
{
    char text[900];
    place("");
    refused_with("postgres://u:secret@/x?host=/nowhere", E_UNREACHABLE, "/nowhere");
    refused_with("postgres:///x?host=/nowhere&password=secret", E_UNREACHABLE, "/nowhere");
    snprintf(text, sizeof(text), "postgres:///nosuch?host=%s&user=postgres", pg_cluster.dir);
    refused_with(text, E_UNREACHABLE, "nosuch");
    snprintf(text, sizeof(text), "postgres:///postgres?host=%s&user=nobody_here", pg_cluster.dir);
    refused_with(text, E_DENIED, "nobody_here");
    snprintf(text, sizeof(text), "%s&schema=Bad-Name", pg_url("postgres", ""));
    refused_with(text, E_INVALID, "schema");
    snprintf(text, sizeof(text), "%s&nonsense=1", pg_url("postgres", ""));
    refused_with(text, E_INVALID, "nonsense");
    PGconn *link = pg_raw(pg_url("postgres", ""));
    pg_do(link, "CREATE ROLE poor LOGIN");
    snprintf(text, sizeof(text), "postgres:///postgres?host=%s&user=poor&schema=%s", pg_cluster.dir, schema);
    refused_with(text, E_DENIED, "lacks a right");
    pg_do(link, "ALTER ROLE poor CONNECTION LIMIT 0");
    refused_with(text, E_UNREACHABLE, "too many connections");
    pg_do(link, "DROP ROLE poor");
    pg_do(link, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'");
    refused_with(pg_url("latin", ""), E_UNSUPPORTED, "LATIN1");
    set_server(link, "ALTER SYSTEM SET full_page_writes=off");
    refused_with(url, E_UNSUPPORTED, "full_page_writes");
    set_server(link, "ALTER SYSTEM RESET full_page_writes");
    set_server(link, "ALTER SYSTEM SET fsync=off");
    refused_with(url, E_UNSUPPORTED, "fsync");
    struct kit kit;
    start_with(&kit, "&unsafe=on");
    kit_release(&kit);
    set_server(link, "ALTER SYSTEM RESET fsync");
    PQfinish(link);
}

static void S1_synchronous_commit_is_on_whatever_the_database_says(void)
{
    place("");
    PGconn *link = pg_raw(pg_url("postgres", ""));
    pg_do(link, "CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit=off");
    struct kit kit;
    kit_init(&kit);
    char text[900];
    snprintf(text, sizeof(text), "postgres:///postgres?host=%s&user=hasty&schema=%s", pg_cluster.dir, schema);
    CHECK_OK(try_open(&kit, text, &kit.store), &kit.err);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    PGconn *other = raw_as("postgres");
    // What the session of the store says of itself while it commits.
    pg_do(other,
          "CREATE TABLE said(what text);CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
          "INSERT INTO said VALUES(current_setting('synchronous_commit')); RETURN NULL; END $$;"
          "CREATE CONSTRAINT TRIGGER says AFTER INSERT ON workflow_events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
          "EXECUTE FUNCTION say()");
    kit_step(&kit, log, "a");
    CHECK_INT(pg_number(other, "SELECT count(*) FROM said WHERE what='on'"), 1);
    store_release_run(kit.store, log);
    kit_release(&kit);
    PQfinish(other);
    pg_do(link, "DROP OWNED BY hasty CASCADE; DROP ROLE hasty");
    PQfinish(link);
}

// A trigger that fails as the server would, `times` times, counted by a sequence, which no rollback takes back.
static void fail_appends(PGconn *link, const char *state, int times)
{
    char sql[600];
    snprintf(
        sql, sizeof(sql),
        "DROP SEQUENCE IF EXISTS failures;CREATE SEQUENCE failures;"
        "CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('%s.failures')<=%d "
        "THEN RAISE EXCEPTION 'as if' USING ERRCODE='%s'; END IF; RETURN NEW; END $$;"
        "DROP TRIGGER IF EXISTS fail ON workflow_events;"
        "CREATE TRIGGER fail BEFORE INSERT ON workflow_events FOR EACH ROW EXECUTE FUNCTION fails()",
        schema, times, state);
    pg_do(link, sql);
}

static void S10_deadlocks_are_tried_again_and_a_full_disk_stores_nothing(void)
{
    struct kit kit;
    start_with(&kit, "");
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    PGconn *link = raw_as("postgres");
    fail_appends(link, "40P01", 2);
    CHECK_INT(kit_step(&kit, log, "b").seq, 2);
    fail_appends(link, "40001", 3);
    CHECK_INT(kit_step(&kit, log, "c").seq, 3);
    static const struct {
        const char *state;
        enum code code;
    } cases[] = {{"53100", E_FULL}, {"53200", E_FULL}, {"25006", E_DENIED}, {"55P03", E_LOCKED}, {"40P01", E_LOCKED}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        fail_appends(link, cases[i].state, 1000);
        CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "d", 1), NULL), cases[i].code);
        CHECK_INT(kit_head(&kit, "r").last_seq, 3);
        CHECK_INT(run_log_last_seq(log), 3);
    }
    pg_do(link, "DROP TRIGGER fail ON workflow_events");
    CHECK_INT(kit_step(&kit, log, "d").seq, 4); // and the store goes on
    store_release_run(kit.store, log);
    PQfinish(link);
    kit_check_sound(&kit);
    kit_release(&kit);
}

// ---- lost connections

static void S10_connections_cut_at_any_byte_lose_and_double_nothing_I1_I2(void)
{
    enum { EVENTS = 200 };
    static struct pg_proxy proxy;
    struct kit kit;
    kit_init(&kit);
    place("");
    pg_proxy_start(&proxy);
    CHECK_OK(try_open(&kit, url, &kit.store), &kit.err); // makes the schema, undisturbed
    store_close(kit.store);
    char through[800];
    snprintf(through, sizeof(through), "postgres:///postgres?host=%s&user=postgres&schema=%s", proxy.dir, schema);
    for (int tries = 0; try_open(&kit, through, &kit.store); tries++)
        CHECK(tries < 50); // opening may fail, and says so
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    for (int i = 0; i < EVENTS; i++) {
        char step[16];
        snprintf(step, sizeof(step), "s%d", i);
        struct moment moment = kit_moment(MOMENT_STEP_STARTED, step, 1);
        struct append_item item = {.log = log, .moment = &moment};
        // Notes have no key that would find them: only the number of the call tells that they were stored.
        struct note_put put = {.space = STR("s"), .key = STR("k"), .value = str_from(step), .expect = (uint64_t)i};
        struct store_batch batch = {.items = &item, .item_count = 1, .notes = &put, .note_count = 1};
        CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
        CHECK_INT(item.seq, i + 1);
    }
    atomic_store(&proxy.whole, true);
    CHECK(proxy.cuts[0] > 3 && proxy.cuts[1] > 3);
    CHECK_INT(kit_read(&kit, "r").count, EVENTS);
    struct note note;
    CHECK_OK(store_note(kit.store, STR("s"), STR("k"), &kit.arena, &note, &kit.err), &kit.err);
    CHECK_INT(note.version, EVENTS);
    CHECK(kit_head(&kit, "r").owned); // nobody took the run meanwhile
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S10_an_unreachable_server_ends_the_handle_and_the_next_one_finds_what_was_stored(void)
{
    struct kit kit;
    start_with(&kit, "");
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    PGconn *link = pg_raw(pg_url("postgres", ""));
    pg_do(link, "CREATE ROLE gone LOGIN SUPERUSER");
    struct kit other;
    kit_init(&other);
    char text[900];
    snprintf(text, sizeof(text), "postgres:///postgres?host=%s&user=gone&schema=%s", pg_cluster.dir, schema);
    CHECK_OK(try_open(&other, text, &other.store), &other.err);
    struct run_log *theirs = kit_create(&other, "s", VOCABULARY_RUN);
    kit_step(&other, theirs, "a");
    pg_do(link, "ALTER ROLE gone NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='gone'");
    CHECK_INT(kit_try(&other, theirs, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_IO);
    CHECK_INT(kit_try(&other, theirs, kit_moment(MOMENT_STEP_STARTED, "c", 1), NULL), E_IO); // dead
    store_release_run(other.store, theirs);
    kit_release(&other);
    struct run_log *taken = kit_claim(&kit, "s"); // its session has ended
    CHECK_INT(run_log_last_seq(taken), 1);
    CHECK_INT(kit_step(&kit, taken, "b").seq, 2);
    store_release_run(kit.store, taken);
    store_release_run(kit.store, log);
    kit_release(&kit);
    pg_do(link, "DROP ROLE gone");
    PQfinish(link);
}

static void a_server_that_starts_is_waited_for_by_who_writes_and_told_to_who_reads(void)
{
    static struct pg_proxy proxy;
    struct kit kit;
    start_with(&kit, "");
    pg_proxy_start(&proxy);
    char through[800];
    snprintf(through, sizeof(through), "postgres:///postgres?host=%s&user=postgres&schema=%s", proxy.dir, schema);
    atomic_store(&proxy.whole, true);
    atomic_store(&proxy.coming, 3);
    struct store *store = NULL;
    CHECK_OK(try_open(&kit, through, &store), &kit.err);
    CHECK_INT(atomic_load(&proxy.coming), 0);
    CHECK_INT(kit.err.code, OK);
    store_close(store);
    atomic_store(&proxy.coming, 1);
    struct store_options options = kit_options(&kit, STORE_READ);
    CHECK_INT(store_open(str_from(through), &options, &store, &kit.err), E_UNREACHABLE);
    CHECK(strstr(kit.err.message, "is starting up"));
    kit_release(&kit);
}

// ---- leases

static void S6_a_lease_that_ran_out_lets_the_run_go_and_fences_its_owner_I27(void)
{
    struct kit kit, other;
    enum { LEASE_MS = 1500 }; // as long as a busy machine may need between two calls
    start_with(&kit, "&lease=1500");
    kit_init(&other);
    CHECK_OK(try_open(&other, url, &other.store), &other.err);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    struct run_log *taken = NULL;
    CHECK_INT(store_claim_run(other.store, STR("default"), STR("r"), &taken, &other.err), E_LOCKED);
    for (enum code rc = E_LOCKED; rc == E_LOCKED; usleep(20000)) {
        other.err = (struct error){0};
        rc = store_claim_run(other.store, STR("default"), STR("r"), &taken, &other.err);
    }
    CHECK_INT(other.err.code, OK);
    CHECK_INT(kit_step(&other, taken, "b").seq, 2);
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "z", 1), NULL), E_CONFLICT);
    store_release_run(kit.store, log);
    store_release_run(other.store, taken);
    // Whoever looks into its inbox now and then goes on living.
    log = kit_create(&kit, "s", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    for (int i = 0; i < 8; i++) {
        struct inbox_item *items;
        size_t count;
        usleep(LEASE_MS / 6 * 1000);
        CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    }
    CHECK_INT(store_claim_run(other.store, STR("default"), STR("s"), &taken, &other.err), E_LOCKED);
    store_release_run(kit.store, log);
    kit_check_sound(&other);
    kit_release(&other);
    kit_release(&kit);
}

// The session of a handle ends, and the handle has not noticed it.
static void end_sessions(void)
{
    PGconn *link = pg_raw(pg_url("postgres", ""));
    pg_do(link, "SELECT pg_terminate_backend(pid,2000) FROM pg_stat_activity WHERE application_name LIKE 'cairn %'");
    PQfinish(link);
}

static void S17_a_lost_connection_of_one_that_was_taken_for_dead_fences_it_and_it_joins_again_I28(void)
{
    struct kit kit, other;
    struct shard_map map;
    struct inbox_item *items;
    size_t count;
    start_with(&kit, "");
    kit_init(&other);
    CHECK_OK(try_open(&other, url, &other.store), &other.err);
    CHECK_OK(store_shards(kit.store, 1500, KIT_NOW, &map, &kit.err), &kit.err);
    uint64_t self = map.self;
    CHECK_OK(store_shards_move(kit.store, 0x1, 0, KIT_NOW, &map, &kit.err), &kit.err);
    store_place(kit.store, 0x1);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    usleep(600000); // it is time to renew, and the connection is gone: that is no error
    end_sessions();
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err);
    CHECK_INT(kit.err.code, OK);
    CHECK(!store_fenced(kit.store));
    for (bool taken = false; !taken; usleep(20000)) {
        CHECK_OK(store_shards(other.store, 60000, KIT_NOW, &map, &other.err), &other.err);
        if (map.free & 0x1) CHECK_OK(store_shards_move(other.store, 0x1, 0, KIT_NOW, &map, &other.err), &other.err);
        taken = map.mine & 0x1;
    }
    end_sessions();
    CHECK_OK(store_inbox(kit.store, &kit.arena, &items, &count, &kit.err), &kit.err); // whoever reads can go on
    CHECK_INT(kit.err.code, OK);
    CHECK_INT(kit_try(&kit, log, kit_moment(MOMENT_STEP_STARTED, "b", 1), NULL), E_CONFLICT);
    CHECK(store_fenced(kit.store));
    struct run_log *claimed = NULL;
    CHECK_INT(store_claim_run(kit.store, STR("default"), STR("r"), &claimed, NULL),
              E_CONFLICT); // it is nobody just now
    CHECK_OK(store_shards(kit.store, 60000, KIT_NOW, &map, &kit.err), &kit.err);
    CHECK(map.self > self && map.mine == 0 && !store_fenced(kit.store));
    store_release_run(kit.store, log);
    log = kit_claim(&other, "r");
    CHECK_INT(kit_step(&other, log, "b").seq, 2);
    store_release_run(other.store, log);
    kit_check_sound(&other);
    kit_release(&other);
    kit_release(&kit);
}

// ---- the feed

enum { WRITERS = 4, BATCHES = 60, EACH = 3 };

static void *write_batches(void *name)
{
    struct kit kit;
    kit_init(&kit);
    CHECK_OK(try_open(&kit, url, &kit.store), &kit.err);
    struct run_log *log = kit_create(&kit, name, VOCABULARY_RUN);
    for (int i = 0; i < BATCHES; i++) {
        struct moment moments[EACH];
        struct append_item items[EACH] = {{0}};
        char steps[EACH][32];
        for (int k = 0; k < EACH; k++) {
            snprintf(steps[k], sizeof(steps[k]), "s%d-%d", i, k);
            moments[k] = kit_moment(MOMENT_STEP_STARTED, steps[k], 1);
            items[k] = (struct append_item){.log = log, .moment = &moments[k]};
        }
        struct store_batch batch = {.items = items, .item_count = EACH};
        enum code rc = E_LOCKED; // many come at once: whoever finds the door shut tries again
        for (int tries = 0; rc == E_LOCKED && tries < 50; tries++)
            rc = store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err);
        CHECK_OK(rc, &kit.err);
    }
    store_release_run(kit.store, log);
    kit_release(&kit);
    return NULL;
}

// Transactions are held back at random between taking their positions and the commit, so that they commit out of order.
static void S16_a_reader_beside_many_writers_misses_no_event_and_sees_none_late(void)
{
    static char names[WRITERS][8];
    struct kit kit;
    start_with(&kit, "");
    PGconn *link = raw_as("postgres");
    pg_do(link,
          "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(random()*0.006); "
          "RETURN NULL; END $$; CREATE TRIGGER dawdle AFTER INSERT ON workflow_events FOR EACH STATEMENT EXECUTE "
          "FUNCTION dawdle()");
    pthread_t threads[WRITERS];
    for (size_t i = 0; i < WRITERS; i++) {
        snprintf(names[i], sizeof(names[i]), "w%zu", i);
        CHECK(pthread_create(&threads[i], NULL, write_batches, names[i]) == 0);
    }
    uint64_t after = 0, next[WRITERS] = {0};
    size_t seen = 0, pages = 0;
    struct arena page;
    arena_init(&page, 64 * 1024, SIZE_MAX);
    for (int64_t until = os_now().mono_ms + 30000; seen < WRITERS * BATCHES * EACH && os_now().mono_ms < until;) {
        struct feed feed;
        uint64_t end = 0;
        arena_reset(&page);
        CHECK_OK(store_feed_end(kit.store, &end, &kit.err), &kit.err);
        CHECK(end >= after);
        CHECK_OK(store_feed(kit.store, after, 7, &page, &feed, &kit.err), &kit.err);
        for (size_t i = 0; i < feed.count; i++) {
            CHECK(feed.items[i].position > after);
            after = feed.items[i].position;
            size_t writer = (size_t)(feed.items[i].run.ptr[1] - '0');
            CHECK(writer < WRITERS);
            CHECK_INT(feed.items[i].record.seq, ++next[writer]); // in the order of the run, none left out
        }
        seen += feed.count;
        pages += feed.count > 0;
    }
    for (size_t i = 0; i < WRITERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_INT(seen, WRITERS * BATCHES * EACH);
    CHECK(pages > 10);
    arena_release(&page);
    PQfinish(link);
    kit_check_sound(&kit);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(S8_triggers_refuse_the_owner_too_EL_1a),
        TEST(S8_a_role_of_an_engine_can_run_everything_and_write_to_no_table),
        TEST(S11_row_level_security_is_a_second_wall_between_tenants),
        TEST(many_who_open_a_new_store_at_once_make_it_once),
        TEST(a_newer_format_is_refused_when_it_says_so),
        TEST(an_older_format_is_used_by_who_may_not_change_it_and_brought_forward_by_its_owner),
        TEST(an_engine_of_an_older_version_ends_when_the_format_says_so),
        TEST(a_server_that_does_not_fit_is_refused_with_the_reason),
        TEST(S1_synchronous_commit_is_on_whatever_the_database_says),
        TEST(S10_deadlocks_are_tried_again_and_a_full_disk_stores_nothing),
        TEST(S10_connections_cut_at_any_byte_lose_and_double_nothing_I1_I2),
        TEST(S10_an_unreachable_server_ends_the_handle_and_the_next_one_finds_what_was_stored),
        TEST(a_server_that_starts_is_waited_for_by_who_writes_and_told_to_who_reads),
        TEST(S6_a_lease_that_ran_out_lets_the_run_go_and_fences_its_owner_I27),
        TEST(S17_a_lost_connection_of_one_that_was_taken_for_dead_fences_it_and_it_joins_again_I28),
        TEST(S16_a_reader_beside_many_writers_misses_no_event_and_sees_none_late),
    };
    missing = !pg_find_programs(pg_cluster.programs, sizeof(pg_cluster.programs));
    if (!missing && !pg_cluster_start(true)) return 1;
    return test_main("postgres_server", tests, ARRAY_COUNT(tests), argc, argv);
}
