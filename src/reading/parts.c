// Parts of a stored run: what it was given, what its steps gave, where its chains end.
#include "reading/reading.h"

#include "base/civil.h"

enum { PAGE_EVENTS = 64, PAGE_SIZE_MAX = 48 << 20 };

static bool put(struct arena *arena, struct json *object, const char *key, struct json value)
{
    return json_put(arena, object, str_from(key), value);
}

// Copied; an empty one is left out.
static bool put_text(struct arena *arena, struct json *object, const char *key, struct str text)
{
    struct str copy = arena_copy(arena, text);
    return copy.ptr && (text.len == 0 || put(arena, object, key, json_string(copy)));
}

enum code reading_snapshot(struct store *store, const struct run_head *head, uint64_t at, struct arena *arena,
                           struct json *out, struct error *err)
{
    struct folded folded;
    struct json told;
    enum code rc = reading_fold(store, head, at, arena, &folded, err);
    // It borrows the program's texts: they are copied before it goes.
    if (!rc && (!view_json(&folded.view, arena, &told) || !json_copy(arena, &told, out))) rc = error_nomem(err);
    folded_release(&folded);
    return rc;
}

enum code reading_payload(struct store *store, const struct run_head *head, struct arena *arena, struct json *out,
                          struct error *err)
{
    struct folded folded;
    struct json inputs = json_object();
    *out = json_object();
    enum code rc = reading_fold(store, head, READING_NOW, arena, &folded, err);
    const struct start_facts *start = &folded.view.start;
    if (!rc && start->inputs.type && !json_copy(arena, &start->inputs, &inputs)) rc = error_nomem(err);
    if (!rc && !(put_text(arena, out, "runId", head->ids.run) && put(arena, out, "inputs", inputs) &&
                 put_text(arena, out, "arguments", start->arguments)))
        rc = error_nomem(err);
    folded_release(&folded);
    return rc;
}

enum code reading_output(struct store *store, const struct run_head *head, struct str step_id, struct arena *arena,
                         struct step_output *out, struct error *err)
{
    struct folded folded;
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
    folded_release(&folded);
    return rc;
}

// ---- what it refers to

static bool refers(const struct moment *moment, const struct digest *wanted)
{
    if (moment->has_blob && digest_eq(&moment->blob, wanted)) return true;
    const struct json *parts = moment->start ? &moment->start->parts : NULL;
    for (uint32_t i = 0; json_is(parts, JSON_ARRAY) && i < parts->count; i++) {
        struct digest part;
        if (digest_parse(json_text(json_key(&parts->items[i], "sha256")), &part) && digest_eq(&part, wanted))
            return true;
    }
    return false;
}

// An event that cannot be read refers to nothing; the others still do.
enum code reading_refers(struct store *store, const struct run_head *head, const struct digest *wanted, bool *found,
                         struct error *err)
{
    struct arena scratch;
    enum code rc = OK;
    struct records page = {0};
    uint64_t after = 0;
    *found = digest_eq(wanted, &head->document);
    if (*found) return OK;
    arena_init(&scratch, 64 * 1024, PAGE_SIZE_MAX);
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
                *found = refers(&moment, wanted);
        }
    } while (!rc && !*found && page.count > 0);
    arena_release(&scratch);
    return rc;
}

// ---- proof

static bool put_hash(struct arena *arena, struct json *object, const char *key, const struct digest *digest)
{
    char hex[SHA256_HEX + 1];
    digest_hex(digest, hex);
    return put_text(arena, object, key, str_from(hex));
}

static bool checkpoint(const struct run_head *head, int64_t now_ms, struct arena *arena, struct json *out)
{
    char at[CIVIL_SIZE];
    civil_format(now_ms, at);
    *out = json_object();
    return put_text(arena, out, "tenantId", head->ids.tenant) && put_text(arena, out, "runId", head->ids.run) &&
           put(arena, out, "lastSeq", json_int((int64_t)head->last_seq)) && put_hash(arena, out, "head", &head->head) &&
           put(arena, out, "lastLedgerSeq", json_int((int64_t)head->last_ledger_seq)) &&
           put_hash(arena, out, "ledgerHead", &head->ledger_head) && put_text(arena, out, "at", str_from(at));
}

static bool put_faults(struct arena *arena, struct json *out, const struct verify_report *report)
{
    struct json list = json_array();
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct verify_fault *fault = &report->faults[i];
        struct json one = json_object();
        if (!put(arena, &one, "seq", json_int((int64_t)fault->seq)) ||
            !put(arena, &one, "ledger", json_bool(fault->ledger)) || !put_text(arena, &one, "what", fault->what) ||
            !json_push(arena, &list, one))
            return false;
    }
    return put(arena, out, "verified", json_bool(report->fault_count == 0)) && put(arena, out, "faults", list);
}

enum code reading_proof(struct store *store, const struct run_head *head, int64_t now_ms, struct arena *arena,
                        struct json *out, struct error *err)
{
    struct verify_report report;
    struct json point;
    *out = json_object();
    enum code rc = store_verify(store, head->ids.tenant, head->ids.run, arena, &report, err);
    if (!rc && !(checkpoint(head, now_ms, arena, &point) && put(arena, out, "checkpoint", point) &&
                 put_faults(arena, out, &report)))
        rc = error_nomem(err);
    return rc;
}
