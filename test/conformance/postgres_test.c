// The suite on a real Postgres, and what only it has: columns that must agree with the bytes, walls, and sessions.
#include "conformance/pg_cluster.h"
#include "conformance/store_kit.h"
#include "conformance/store_suite.h"

static unsigned schemas;
static bool missing; // no Postgres here

static const char *scratch(void)
{
    static char url[700];
    if (missing) test_skip("Postgres is not installed (package postgresql)");
    snprintf(url, sizeof(url), "%s&unsafe=on&schema=s%d_%u", pg_url("postgres", ""), (int)getpid(), schemas++);
    return url;
}

static void schema_of(struct store *store, char out[64])
{
    const char *mark = strstr(store_url(store).ptr, "schema=");
    CHECK(mark);
    snprintf(out, 64, "%s", mark + strlen("schema="));
}

// A session that sees everything and answers to no guard.
static PGconn *raw_open(struct store *store)
{
    char schema[64], sql[400];
    schema_of(store, schema);
    PGconn *link = pg_raw(pg_url("postgres", ""));
    snprintf(sql, sizeof(sql), "SET search_path=%s;SET synchronous_commit=off;SET client_min_messages=error", schema);
    pg_do(link, sql);
    return link;
}

// One connection for thousands of flips.
static PGconn *raw_kept(struct store *store)
{
    static PGconn *link;
    static char url[700];
    if (!link || strcmp(url, store_url(store).ptr) != 0) {
        if (link) PQfinish(link);
        link = raw_open(store);
        pg_do(link, "SET session_replication_role=replica"); // no triggers
        snprintf(url, sizeof(url), "%s", store_url(store).ptr);
    }
    return link;
}

// Flips one bit in the columns of one row, taken one after the other; false when there is no such bit. For a bit that would make a
// text that the database cannot hold the lowest one is flipped.
static bool flip(PGconn *link, const char *table, const char *number, const char *const *columns, size_t column_count,
                 struct str run, uint64_t seq, size_t bit)
{
    for (size_t i = 0; i < column_count; i++) {
        char sql[600];
        snprintf(
            sql, sizeof(sql),
            "SELECT %s::text,pg_typeof(%s)::text FROM %s WHERE run_no=(SELECT run_no FROM runs WHERE run_id='%.*s') "
            "AND %s=%llu",
            columns[i], columns[i], table, STR_ARG(run), number, (unsigned long long)seq);
        PGresult *result = PQexec(link, sql);
        CHECK_INT(PQresultStatus(result), PGRES_TUPLES_OK);
        CHECK_INT(PQntuples(result), 1);
        bool blob = strcmp(PQgetvalue(result, 0, 1), "bytea") == 0;
        size_t size = blob ? ((size_t)PQgetlength(result, 0, 0) - 2) / 2 : (size_t)PQgetlength(result, 0, 0);
        if (bit >= size * 8) {
            bit -= size * 8;
            PQclear(result);
            continue;
        }
        char *value = strdup(PQgetvalue(result, 0, 0));
        CHECK(value);
        PQclear(result);
        if (blob) {
            char *digits = value + 2 + bit / 8 * 2;
            unsigned byte = 0;
            CHECK(sscanf(digits, "%2x", &byte) == 1);
            byte ^= 1u << bit % 8;
            digits[0] = "0123456789abcdef"[byte >> 4];
            digits[1] = "0123456789abcdef"[byte & 15];
        } else {
            unsigned char byte = (unsigned char)(value[bit / 8] ^ (1 << bit % 8));
            if (byte < ' ' || byte >= 0x80) byte = (unsigned char)(value[bit / 8] ^ 1);
            value[bit / 8] = (char)byte;
        }
        snprintf(sql, sizeof(sql),
                 "UPDATE %s SET %s=$1 WHERE run_no=(SELECT run_no FROM runs WHERE run_id='%.*s') AND %s=%llu", table,
                 columns[i], STR_ARG(run), number, (unsigned long long)seq);
        const char *const values[] = {value};
        result = PQexecParams(link, sql, 1, NULL, values, NULL, NULL, 0);
        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            test_fail(__FILE__, __LINE__, "%s", PQresultErrorMessage(result));
        PQclear(result);
        free(value);
        return true;
    }
    return false;
}

static const char *const record_columns[] = {"record_prefix", "payload", "record_suffix"};
static const char *const entry_columns[] = {"bytes"};

static void edit(PGconn *link, enum tamper what, struct str run, uint64_t seq)
{
    const char *sql = NULL;
    switch (what) {
    case TAMPER_DELETE:
        sql = "DELETE FROM workflow_events WHERE run_no=%lld AND sequence=%llu";
        break;
    case TAMPER_CUT:
        sql = "DELETE FROM workflow_events WHERE run_no=%lld AND sequence>=%llu";
        break;
    case TAMPER_SWAP:
        sql = "UPDATE workflow_events SET sequence=-sequence WHERE run_no=%lld AND sequence IN (%llu,%llu+1);"
              "UPDATE workflow_events SET sequence=2*%llu+1+sequence WHERE sequence<0";
        break;
    case TAMPER_REPEAT:
        sql = "INSERT INTO workflow_events SELECT nextval('feed_position'),run_no,tenant_id,run_id,1+(SELECT "
              "max(sequence) "
              "FROM workflow_events w WHERE w.run_no=e.run_no),event_type,\"timestamp\",payload,record_prefix,"
              "record_suffix,key FROM workflow_events e WHERE run_no=%lld AND sequence=%llu";
        break;
    case TAMPER_LEDGER_DELETE:
        sql = "DELETE FROM ledger WHERE run_no=%lld AND ledger_seq=%llu";
        break;
    case TAMPER_LEDGER_CUT:
        sql = "DELETE FROM ledger WHERE run_no=%lld AND ledger_seq>=%llu";
        break;
    case TAMPER_FLIP:
    case TAMPER_LEDGER_FLIP:
        CHECK(false);
    }
    char text[800];
    unsigned long long n = seq;
    snprintf(text, sizeof(text), "SELECT run_no FROM runs WHERE run_id='%.*s'", STR_ARG(run));
    long long run_no = pg_number(link, text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), sql, run_no, n, n, n);
#pragma GCC diagnostic pop
    pg_do(link, text);
}

static bool tamper(struct store *store, enum tamper what, struct str run, uint64_t seq, size_t bit)
{
    PGconn *link = raw_kept(store);
    if (what == TAMPER_FLIP)
        return flip(link, "workflow_events", "sequence", record_columns, ARRAY_COUNT(record_columns), run, seq, bit);
    if (what == TAMPER_LEDGER_FLIP)
        return flip(link, "ledger", "ledger_seq", entry_columns, ARRAY_COUNT(entry_columns), run, seq, bit);
    edit(link, what, run, seq);
    return true;
}

// The owner's row is made to look as if its lease had run out.
static void usurp(struct store *store, struct str tenant, struct str run)
{
    struct kit other;
    kit_init(&other);
    struct str url = arena_copy(&other.arena, store_url(store));
    PGconn *link = raw_open(store);
    pg_do(link, "UPDATE engines SET lease_until=clock_timestamp()-interval '1 second'");
    PQfinish(link);
    struct store_options options = kit_options(&other, STORE_WRITE);
    CHECK_OK(store_open(url, &options, &other.store, &other.err), &other.err);
    struct run_log *log = NULL;
    CHECK_OK(store_claim_run(other.store, tenant, run, &log, &other.err), &other.err);
    kit_step(&other, log, "usurped");
    store_release_run(other.store, log);
    kit_release(&other);
}

// ---- columns

static void start(struct kit *kit)
{
    kit_init(kit);
    struct store_options options = kit_options(kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(scratch()), &options, &kit->store, &kit->err), &kit->err);
}

static void start_columns(struct kit *kit)
{
    start(kit);
    struct run_log *log = kit_create(kit, "r", VOCABULARY_RUN);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_step(kit, log, "a");
    store_release_run(kit->store, log);
    kit_check_sound(kit);
}

static void S9_every_flipped_bit_of_a_column_is_found_and_named_I7(void)
{
    struct kit kit;
    start_columns(&kit);
    static const char *const columns[] = {"run_id", "event_type", "\"timestamp\"", "key"};
    PGconn *link = raw_kept(kit.store);
    for (uint64_t seq = 1; seq <= 2; seq++)
        for (size_t bit = 0;
             flip(link, "workflow_events", "sequence", columns, ARRAY_COUNT(columns), STR("r"), seq, bit); bit += 37) {
            struct verify_report report = kit_verify(&kit);
            CHECK_INT(report.fault_count, 1);
            CHECK_INT(report.faults[0].seq, seq);
            CHECK(flip(link, "workflow_events", "sequence", columns, ARRAY_COUNT(columns), STR("r"), seq, bit));
        }
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S9_changed_heads_are_found_I7(void)
{
    static const char *const changes[] = {
        "UPDATE run_heads SET last_seq=1",    "UPDATE run_heads SET last_seq=3",
        "UPDATE run_heads SET ledger_seq=1",  "UPDATE run_heads SET head=decode(repeat('00',32),'hex')",
        "UPDATE run_heads SET terminal=true", "UPDATE run_heads SET ledger_head=decode(repeat('5a',32),'hex')",
        "UPDATE runs SET plan_version='2'",   "UPDATE runs SET plan_id='x'",
        "UPDATE runs SET tenant_id='x'",      "UPDATE runs SET run_id='s'",
        "UPDATE runs SET vocabulary='nodes'", "UPDATE runs SET project_id='x'",
    };
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        struct kit kit;
        start_columns(&kit);
        pg_do(raw_kept(kit.store), changes[i]);
        if (kit_verify(&kit).fault_count == 0) test_fail(__FILE__, __LINE__, "not found: %s", changes[i]);
        kit_release(&kit);
    }
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(S9_every_flipped_bit_of_a_column_is_found_and_named_I7),
                                       TEST(S9_changed_heads_are_found_I7)};
    static const struct store_case postgres = {
        .name = "postgres",
        .durable = true,
        .shared = true,
        .many_writers = true,
        .scratch = scratch,
        .several = scratch,
        .tamper = tamper,
        .flip_stride = 101,
        .usurp = usurp,
        .more = more,
        .more_count = ARRAY_COUNT(more),
    };
    missing = !pg_find_programs(pg_cluster.programs, sizeof(pg_cluster.programs));
    if (!missing && !pg_cluster_start(false)) return 1;
    return store_suite(&postgres, argc, argv);
}
