// The suite on a real Postgres, and what only it has: columns that must agree with the bytes, walls, and sessions.
#include "conformance/pg_cluster.h"
#include "conformance/sql_kit.h"

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
        pg_do(link, "DROP INDEX IF EXISTS workflow_events_by_key");
        snprintf(url, sizeof(url), "%s", store_url(store).ptr);
    }
    return link;
}

static void raw(struct store *store, const char *sql)
{
    pg_do(raw_kept(store), sql);
}

static int64_t raw_number(struct store *store, const char *sql)
{
    return pg_number(raw_kept(store), sql);
}

// The owner's row is made to look as if its lease had run out.
static void seem_dead(struct store *store)
{
    PGconn *link = raw_open(store);
    pg_do(link, "UPDATE engines SET lease_until=clock_timestamp()-interval '1 second'");
    PQfinish(link);
}

// For a bit that would make a text that the database cannot hold the lowest one is flipped.
static bool flip(struct store *store, const char *table, const char *number, const char *const *columns,
                 size_t column_count, struct str run, uint64_t seq, size_t bit)
{
    PGconn *link = raw_kept(store);
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

const struct sql_case sql_case = {
    .scratch = scratch,
    .raw = raw,
    .number = raw_number,
    .flip = flip,
    .seem_dead = seem_dead,
    .timestamp = "\"timestamp\"",
    .repeat = "INSERT INTO workflow_events SELECT nextval('feed_position'),run_no,tenant_id,run_id,1+(SELECT "
              "max(sequence) FROM workflow_events w WHERE w.run_no=e.run_no),event_type,\"timestamp\",payload,"
              "record_prefix,record_suffix,key FROM workflow_events e WHERE run_no=%lld AND sequence=%llu",
    .no_head = "UPDATE run_heads SET head=decode(repeat('00',32),'hex')",
    .other_ledger = "UPDATE run_heads SET ledger_head=decode(repeat('5a',32),'hex')",
    .terminal = "UPDATE run_heads SET terminal=true",
    .document = "UPDATE runs SET document=sha256('another document') WHERE run_no=%lld",
    .ways_to_go = 3, // numbers of runs come from a sequence: gaps say nothing
    .stride = 37,
};

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
