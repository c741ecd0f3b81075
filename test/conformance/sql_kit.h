// What the tests of the stores in SQL share: rows that are changed behind the store's back, and what it says of them. Header-only;
// the program that includes it has what is declared here.
#ifndef CAIRN_TEST_CONFORMANCE_SQL_KIT_H
#define CAIRN_TEST_CONFORMANCE_SQL_KIT_H

#include "conformance/store_kit.h"
#include "conformance/store_suite.h"

struct sql_case {                                      // what is not the same in both
    const char *(*scratch)(void);                      // the URL of a new store
    void (*raw)(struct store *store, const char *sql); // done, whatever guards there are
    int64_t (*number)(struct store *store, const char *sql);
    // Flips one bit in the columns of one row, taken one after the other; false when there is no such bit.
    bool (*flip)(struct store *store, const char *table, const char *number, const char *const *columns,
                 size_t column_count, struct str run, uint64_t seq, size_t bit);
    void (*seem_dead)(struct store *store); // whoever else looks believes the owner dead
    const char *timestamp, *repeat, *no_head, *other_ledger, *terminal, *document;
    size_t ways_to_go; // of run_gone, those that leave a trace
    size_t stride; // of the bits that are flipped
};
extern const struct sql_case sql_case;

static const char *const record_columns[] = {"record_prefix", "payload", "record_suffix"};
static const char *const entry_columns[] = {"bytes"};

// The row, the head, both of them, and the whole run without a trace but its number.
static const char *const run_gone[] = {
    "DELETE FROM runs WHERE run_no=%lld",
    "DELETE FROM run_heads WHERE run_no=%lld",
    "DELETE FROM run_heads WHERE run_no=%1$lld;DELETE FROM runs WHERE run_no=%1$lld",
    "DELETE FROM workflow_events WHERE run_no=%1$lld;DELETE FROM ledger WHERE run_no=%1$lld;"
    "DELETE FROM run_heads WHERE run_no=%1$lld;DELETE FROM runs WHERE run_no=%1$lld",
};

UNUSED static void edit(struct store *store, enum tamper what, struct str run, uint64_t seq)
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
        sql = sql_case.repeat;
        break;
    case TAMPER_LEDGER_DELETE:
        sql = "DELETE FROM ledger WHERE run_no=%lld AND ledger_seq=%llu";
        break;
    case TAMPER_LEDGER_CUT:
        sql = "DELETE FROM ledger WHERE run_no=%lld AND ledger_seq>=%llu";
        break;
    case TAMPER_DOCUMENT:
        sql = sql_case.document;
        break;
    case TAMPER_RUN:
        sql = run_gone[seq - 1];
        break;
    case TAMPER_FLIP:
    case TAMPER_LEDGER_FLIP:
        CHECK(false);
    }
    char text[800];
    unsigned long long n = seq;
    snprintf(text, sizeof(text), "SELECT run_no FROM runs WHERE run_id='%.*s'", STR_ARG(run));
    long long run_no = sql_case.number(store, text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), sql, run_no, n, n, n);
#pragma GCC diagnostic pop
    sql_case.raw(store, text);
}

UNUSED static bool tamper(struct store *store, enum tamper what, struct str run, uint64_t seq, size_t bit)
{
    if (what == TAMPER_FLIP)
        return sql_case.flip(store, "workflow_events", "sequence", record_columns, ARRAY_COUNT(record_columns), run,
                             seq, bit);
    if (what == TAMPER_LEDGER_FLIP)
        return sql_case.flip(store, "ledger", "ledger_seq", entry_columns, ARRAY_COUNT(entry_columns), run, seq, bit);
    if (what == TAMPER_RUN && seq > sql_case.ways_to_go) return false;
    edit(store, what, run, seq);
    return true;
}

UNUSED static void usurp(struct store *store, struct str tenant, struct str run)
{
    struct kit other;
    kit_init(&other);
    struct str url = arena_copy(&other.arena, store_url(store));
    sql_case.seem_dead(store);
    struct store_options options = kit_options(&other, STORE_WRITE);
    CHECK_OK(store_open(url, &options, &other.store, &other.err), &other.err);
    struct run_log *log = NULL;
    CHECK_OK(store_claim_run(other.store, tenant, run, &log, &other.err), &other.err);
    kit_step(&other, log, "usurped");
    store_release_run(other.store, log);
    kit_release(&other);
}

// ---- columns that must agree with the bytes

UNUSED static void start_columns(struct kit *kit)
{
    kit_init(kit);
    struct store_options options = kit_options(kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(sql_case.scratch()), &options, &kit->store, &kit->err), &kit->err);
    struct run_log *log = kit_create(kit, "r", VOCABULARY_RUN);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_step(kit, log, "a");
    store_release_run(kit->store, log);
    kit_check_sound(kit);
}

UNUSED static void S9_every_flipped_bit_of_a_column_is_found_and_named_I7(void)
{
    struct kit kit;
    start_columns(&kit);
    const char *const columns[] = {"run_id", "event_type", sql_case.timestamp, "key"};
    const size_t count = ARRAY_COUNT(columns);
    for (uint64_t seq = 1; seq <= 2; seq++)
        for (size_t bit = 0;
             sql_case.flip(kit.store, "workflow_events", "sequence", columns, count, STR("r"), seq, bit);
             bit += sql_case.stride) {
            struct verify_report report = kit_verify(&kit);
            CHECK_INT(report.fault_count, 1);
            CHECK_INT(report.faults[0].seq, seq);
            CHECK(sql_case.flip(kit.store, "workflow_events", "sequence", columns, count, STR("r"), seq, bit));
        }
    kit_check_sound(&kit);
    kit_release(&kit);
}

UNUSED static void S9_changed_heads_are_found_I7(void)
{
    const char *const changes[] = {
        "UPDATE run_heads SET last_seq=1",
        "UPDATE run_heads SET last_seq=3",
        "UPDATE run_heads SET ledger_seq=1",
        "UPDATE runs SET plan_version='2'",
        "UPDATE runs SET plan_id='x'",
        "UPDATE runs SET tenant_id='x'",
        "UPDATE runs SET run_id='s'",
        "UPDATE runs SET project_id='x'",
        "UPDATE runs SET vocabulary='nodes'",
        sql_case.no_head,
        sql_case.other_ledger,
        sql_case.terminal,
    };
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        struct kit kit;
        start_columns(&kit);
        sql_case.raw(kit.store, changes[i]);
        if (kit_verify(&kit).fault_count == 0) test_fail(__FILE__, __LINE__, "not found: %s", changes[i]);
        kit_release(&kit);
    }
}

#endif
