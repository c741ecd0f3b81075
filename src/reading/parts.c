// Parts of a stored run: what it was given, what its steps gave, where its chains end.
#include "reading/reading.h"

#include "json/make.h"

enum { PAGE_EVENTS = 64, PAGE_SIZE_MAX = 48 << 20 };

enum code reading_snapshot(struct store *store, const struct run_head *head, uint64_t at, struct arena *arena,
                           struct json *out, struct error *err)
{
    struct folded folded SCOPED(folded_release) = {0};
    struct json told;
    enum code rc = reading_fold(store, head, at, arena, &folded, err);
    // It borrows the program's texts: they are copied before it goes.
    if (!rc && (!view_json(&folded.view, arena, &told) || !json_copy(arena, &told, out))) rc = error_nomem(err);
    return rc;
}

enum code reading_payload(struct store *store, const struct run_head *head, struct arena *arena, struct json *out,
                          struct error *err)
{
    struct folded folded SCOPED(folded_release) = {0};
    struct json inputs = json_object();
    *out = json_object();
    enum code rc = reading_fold(store, head, READING_NOW, arena, &folded, err);
    const struct start_facts *start = &folded.view.start;
    if (!rc && start->inputs.type && !json_copy(arena, &start->inputs, &inputs)) rc = error_nomem(err);
    if (!rc) {
        *out = JSON_OF(arena, {"runId", json_copied_some(arena, head->ids.run)}, {"inputs", inputs},
                       {"arguments", json_copied_some(arena, start->arguments)});
        rc = json_made(out, err);
    }
    return rc;
}

enum code reading_output(struct store *store, const struct run_head *head, struct str step_id, struct arena *arena,
                         struct step_output *out, struct error *err)
{
    struct folded folded SCOPED(folded_release) = {0};
    *out = (struct step_output){0};
    enum code rc = reading_fold(store, head, READING_NOW, arena, &folded, err);
    const struct step_view *step = rc ? NULL : view_step(&folded.view, step_id);
    if (step) {
        out->known = true;
        out->status = step->status;
        out->truncated = step->truncated;
        if (step->has_blob)
            rc = store_blob(store, &step->blob, arena, &out->bytes, err);
        else if (step->value.type && !json_copy(arena, &step->value, &out->value))
            rc = error_nomem(err);
    }
    return rc;
}

// ---- what it refers to

static bool refers(const struct moment *moment, const struct digest *wanted, bool results)
{
    if (results && moment->has_blob && digest_eq(&moment->blob, wanted)) return true;
    const struct json *parts = moment->start ? &moment->start->parts : NULL;
    for (uint32_t i = 0; json_is(parts, JSON_ARRAY) && i < parts->count; i++) {
        struct digest part;
        if (digest_parse(json_text(json_key(&parts->items[i], "sha256")), &part) && digest_eq(&part, wanted))
            return true;
    }
    return false;
}

// An event that cannot be read refers to nothing; the others still do.
enum code reading_refers(struct store *store, const struct run_head *head, const struct digest *wanted, bool results,
                         bool *found, struct error *err)
{
    enum code rc = OK;
    struct records page = {0};
    uint64_t after = 0;
    *found = digest_eq(wanted, &head->document);
    if (*found) return OK;
    struct arena scratch SCOPED(arena_release) = arena_of(64 * 1024, PAGE_SIZE_MAX);
    do {
        arena_reset(&scratch);
        struct record_range range = {
            .tenant = head->ids.tenant, .run = head->ids.run, .after = after, .limit = PAGE_EVENTS};
        rc = store_read(store, &range, &scratch, &page, err);
        for (size_t i = 0; !rc && !*found && i < page.count; i++) {
            struct moment moment = {0};
            struct seal seal;
            after = page.items[i].seq;
            if (contract_decode(head->vocabulary, page.items[i].bytes, &scratch, &moment, &seal, NULL, NULL) == OK)
                *found = refers(&moment, wanted, results);
        }
    } while (!rc && !*found && page.count > 0);
    return rc;
}

// ---- proof

static struct json checkpoint(const struct run_head *head, int64_t now_ms, struct arena *arena)
{
    return JSON_OF(arena, {"tenantId", json_copied_some(arena, head->ids.tenant)},
                   {"runId", json_copied_some(arena, head->ids.run)}, {"lastSeq", json_count(head->last_seq)},
                   {"head", json_digest(arena, &head->head)}, {"lastLedgerSeq", json_count(head->last_ledger_seq)},
                   {"ledgerHead", json_digest(arena, &head->ledger_head)}, {"at", json_time(arena, now_ms)});
}

static struct json faults_json(struct arena *arena, const struct verify_report *report)
{
    struct json list = json_array();
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct verify_fault *fault = &report->faults[i];
        json_append(arena, &list, JSON_OF(arena, {"seq", json_count(fault->seq)}, {"ledger", json_bool(fault->ledger)},
                                          {"what", json_copied_some(arena, fault->what)}));
    }
    return list;
}

enum code reading_proof(struct store *store, const struct run_head *head, int64_t now_ms, struct arena *arena,
                        struct json *out, struct error *err)
{
    struct verify_report report;
    *out = json_object();
    enum code rc = store_verify_run(store, head->ids.tenant, head->ids.run, arena, &report, err);
    if (rc) return rc;
    *out = JSON_OF(arena, {"checkpoint", checkpoint(head, now_ms, arena)},
                   {"verified", json_bool(report.fault_count == 0)}, {"faults", faults_json(arena, &report)});
    return json_made(out, err);
}
