// What the tests of stores share: a store with a contract, runs, and moments that fit every vocabulary.
#ifndef CAIRN_TEST_CONFORMANCE_STORE_KIT_H
#define CAIRN_TEST_CONFORMANCE_STORE_KIT_H

#include "harness/test.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define KIT_NOW INT64_C(1770829200000) // 2026-02-11T17:00:00.000Z

struct kit {
    struct arena arena; // everything of one test
    const struct contract *contract;
    struct store *store;
    struct error err;
};

static inline void kit_init(struct kit *kit)
{
    *kit = (struct kit){0};
    arena_init(&kit->arena, 64 * 1024, SIZE_MAX);
    CHECK_OK(contract_open(&kit->arena, &kit->contract, &kit->err), &kit->err);
}

static inline void kit_release(struct kit *kit)
{
    store_close(kit->store);
    kit->store = NULL;
    arena_release(&kit->arena);
}

static inline struct store_options kit_options(const struct kit *kit, enum store_mode mode)
{
    return (struct store_options){
        .mode = mode, .create = mode == STORE_WRITE, .contract = kit->contract, .entropy = os_entropy()};
}

static inline struct start_facts kit_start_facts(void)
{
    static _Thread_local char document[SHA256_HEX + 1];
    struct digest hash = sha256(STR("document"));
    digest_hex(&hash, document);
    return (struct start_facts){
        .document_sha256 = str_from(document),
        .document_kind = STR("plan"),
        .schema_version = STR("1.0"),
        .name = STR("orders"),
        .inputs = json_object(),
        .triggered_by = STR("tester"),
        .trigger_source = STR("manual"),
    };
}

static inline struct moment kit_moment(enum moment_kind kind, const char *step, uint32_t logical)
{
    static _Thread_local struct start_facts start; // some tests write from several threads
    start = kit_start_facts();
    struct moment moment = {
        .kind = kind, .by = EMITTER_ENGINE, .step = str_from(step), .logical = logical, .engine = 1, .at_ms = KIT_NOW};
    if (kind == MOMENT_RUN_STARTED || kind == MOMENT_RUN_QUEUED) moment.start = &start;
    if (kind == MOMENT_STEP_FAILED || kind == MOMENT_ATTEMPT_FAILED || kind == MOMENT_RUN_FAILED)
        moment.fault = (struct fault){.code = STR("EXIT_NONZERO"), .message = STR("exit 1")};
    if (kind == MOMENT_STEP_COMPLETED) moment.value = json_int(7);
    if (kind == MOMENT_RUN_COMPLETED || kind == MOMENT_RUN_FAILED || kind == MOMENT_RUN_CANCELLED)
        moment.counts = (struct run_counts){.total = 1, .completed = 1};
    return moment;
}

static inline struct run_create kit_run(const char *tenant, const char *run, enum vocabulary vocabulary)
{
    return (struct run_create){
        .ids = {.tenant = str_from(tenant),
                .project = STR("default"),
                .environment = STR("local"),
                .run = str_from(run),
                .plan_id = STR("orders"),
                .plan_version = STR("1.0.0")},
        .vocabulary = vocabulary,
        .document = sha256(STR("document")),
        .name = STR("orders"),
    };
}

// Of every run here.
static inline struct append_blob kit_document(void)
{
    return (struct append_blob){.sha256 = sha256(STR("document")), .bytes = STR("document")};
}

static inline struct run_log *kit_create(struct kit *kit, const char *run, enum vocabulary vocabulary)
{
    struct run_create create = kit_run("default", run, vocabulary);
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
    return log;
}

// One item in a batch of its own. The item comes back with what the store said.
static inline enum code kit_try(struct kit *kit, struct run_log *log, struct moment moment, struct append_item *out)
{
    struct append_item item = {.log = log, .moment = &moment};
    struct append_blob document = kit_document();
    struct store_batch batch = {
        .items = &item, .item_count = 1, .blobs = &document, .blob_count = moment.start ? 1 : 0};
    kit->err = (struct error){0};
    enum code rc = store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err);
    item.moment = NULL;
    if (out) *out = item;
    return rc;
}

static inline struct append_item kit_append(struct kit *kit, struct run_log *log, struct moment moment)
{
    struct append_item item;
    CHECK_OK(kit_try(kit, log, moment, &item), &kit->err);
    return item;
}

static inline struct append_item kit_step(struct kit *kit, struct run_log *log, const char *step)
{
    return kit_append(kit, log, kit_moment(MOMENT_STEP_STARTED, step, 1));
}

static inline enum code kit_decide(struct kit *kit, struct run_log *log, const char *signal, const char *word,
                                   struct append_item *out)
{
    struct json body = json_object();
    CHECK(json_put(&kit->arena, &body, STR("decision"), json_string(str_from(word))));
    struct append_item item = {
        .log = log, .ledger_kind = STR("decision"), .ledger_body = body, .signal_id = str_from(signal)};
    struct store_batch batch = {.items = &item, .item_count = 1};
    kit->err = (struct error){0};
    enum code rc = store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err);
    if (out) *out = item;
    return rc;
}

static inline struct records kit_read(struct kit *kit, const char *run)
{
    struct records records;
    struct record_range range = {.tenant = STR("default"), .run = str_from(run), .limit = SIZE_MAX};
    CHECK_OK(store_read(kit->store, &range, &kit->arena, &records, &kit->err), &kit->err);
    return records;
}

static inline struct run_head kit_head(struct kit *kit, const char *run)
{
    struct run_head head;
    CHECK_OK(store_head(kit->store, STR("default"), str_from(run), &kit->arena, &head, &kit->err), &kit->err);
    return head;
}

static inline struct run_log *kit_claim(struct kit *kit, const char *run)
{
    struct run_log *log = NULL;
    CHECK_OK(store_claim_run(kit->store, STR("default"), str_from(run), &log, &kit->err), &kit->err);
    return log;
}

static inline struct verify_report kit_verify(struct kit *kit)
{
    struct verify_report report;
    CHECK_OK(store_verify(kit->store, STR(""), STR(""), &kit->arena, &report, &kit->err), &kit->err);
    return report;
}

static inline void kit_check_sound(struct kit *kit)
{
    struct verify_report report = kit_verify(kit);
    for (size_t i = 0; i < report.fault_count; i++)
        fprintf(stderr, "# run %.*s event %llu: %.*s\n", STR_ARG(report.faults[i].run),
                (unsigned long long)report.faults[i].seq, STR_ARG(report.faults[i].what));
    CHECK_INT(report.fault_count, 0);
}

#endif
