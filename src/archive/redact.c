// A record without its values. What says how the run went stays: types, steps, attempts, times, our codes, counts, ids. What people
// and programs wrote goes: inputs, arguments, results, artifacts, messages, reasons, names of persons, paths.
//
// The moment is emptied and encoded again, so that what comes out is a record of its type; that it is not the one that was hashed
// is said beside it.
#include "archive/archive.h"

#include "json/make.h"

#define REDACTED STR("[redacted]")

static void hide(struct str *text)
{
    if (text->len) *text = REDACTED;
}

// Documents stay, and are found by the names of their files; where those lay is nobody's business.
static struct str base_name(struct str path)
{
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/') at--;
    return str_slice(path, at, path.len);
}

static bool redact_parts(struct json *parts, struct arena *arena)
{
    static const char *const members[] = {"file", "from", "request", "sha256"};
    struct json out = json_array();
    for (uint32_t i = 0; json_is(parts, JSON_ARRAY) && i < parts->count; i++) {
        struct json part = json_object();
        for (size_t k = 0; k < ARRAY_COUNT(members); k++) {
            struct str text = json_text(json_key(&parts->items[i], members[k]));
            if (k < 2) text = base_name(text);
            if (!json_put(arena, &part, str_from(members[k]), json_string(text))) return false;
        }
        if (!json_push(arena, &out, part)) return false;
    }
    if (parts->type) *parts = out;
    return true;
}

static void redact_start(struct start_facts *start, bool persons)
{
    start->inputs = json_object();
    hide(&start->arguments);
    start->document_file = base_name(start->document_file);
    hide(&start->work_dir);
    hide(&start->artifacts_dir);
    if (!persons) hide(&start->triggered_by);
}

// `start` is where the facts of a start are put.
static void redact_moment(struct moment *moment, struct start_facts *start, bool persons)
{
    if (moment->start) {
        *start = *moment->start;
        redact_start(start, persons);
        moment->start = start;
    }
    if (moment->value.type || moment->has_blob) moment->value = json_string(REDACTED);
    moment->has_blob = false;
    moment->blob_size = 0;
    moment->artifacts = moment->extracted = moment->preview = (struct json){0};
    hide(&moment->fault.message);
    if (moment->fault.code.len > 0 && !code_is_ours(moment->fault.code)) moment->fault.code = STR("REDACTED");
    if (moment->kind == MOMENT_STEP_STARTED) moment->due_ms = 0; // an input may say it
    moment->fault.detail = (struct str){0};
    hide(&moment->detail);
    if (!persons) hide(&moment->actor);
    // A code, or the id of a step, for these two; a person's words otherwise.
    if (moment->kind != MOMENT_STEP_SKIPPED && moment->kind != MOMENT_RUN_FAILED) hide(&moment->reason);
}

enum code archive_redact(const struct redaction *how, const struct run_head *head, const struct record *record,
                         struct arena *arena, struct str *out, bool *changed, struct error *err)
{
    struct moment moment;
    struct seal seal;
    struct start_facts start;
    struct encoded encoded;
    enum code rc = contract_decode(head->vocabulary, record->bytes, arena, &moment, &seal, NULL, err);
    if (!rc && moment.kind == MOMENT_UNKNOWN)
        rc = error_set(err, E_UNSUPPORTED, "run %.*s, event %llu: its type %.*s is not known, so it cannot be redacted",
                       STR_ARG(head->ids.run), (unsigned long long)record->seq, STR_ARG(record->type));
    if (rc) return rc;
    redact_moment(&moment, &start, how->persons);
    if (moment.start && !redact_parts(&start.parts, arena)) return error_nomem(err);
    rc = contract_encode(how->contract, head->vocabulary, &head->ids, &moment, &seal, arena, &encoded, err);
    if (rc) return rc;
    *out = encoded.bytes;
    *changed = !str_eq(encoded.bytes, record->bytes);
    return OK;
}

// Only what was decided stays, and who asked for it where persons are named.
static enum code redact_decision(struct str bytes, bool persons, struct arena *arena, struct str *out,
                                 struct error *err)
{
    static const char *const kept[] = {"decision",         "engineProcessedAt", "engineResult", "policyDecisionId",
                                       "signalDecisionId", "signalId",          "signalType"};
    struct json body, reduced = json_object();
    enum code rc = json_parse(bytes, &json_limits_record, arena, &body, err);
    bool ok = true;
    for (size_t i = 0; !rc && ok && i < ARRAY_COUNT(kept); i++) {
        const struct json *value = json_key(&body, kept[i]);
        if (value) ok = json_put(arena, &reduced, str_from(kept[i]), *value);
    }
    if (rc) return rc;
    const struct json *audit = json_key(&body, "audit");
    if (ok && persons && audit) {
        struct json who = JSON_OF(arena, {"actorId", json_some(json_text(json_key(audit, "actorId")))},
                                  {"actorRole", json_some(json_text(json_key(audit, "actorRole")))});
        ok = json_ok(&who) && json_put(arena, &reduced, STR("audit"), who);
    }
    struct buf text SCOPED(buf_release) = buf_of(SIZE_MAX / 4);
    json_canon(&text, &reduced);
    *out = ok && buf_ok(&text) ? arena_copy(arena, buf_str(&text)) : (struct str){0};
    return out->ptr ? OK : error_nomem(err);
}

enum code archive_redact_entry(const struct redaction *how, const struct record *entry, struct arena *arena,
                               struct str *out, struct error *err)
{
    struct moment moment;
    struct start_facts start;
    if (!str_is(entry->type, "moment")) return redact_decision(entry->bytes, how->persons, arena, out, err);
    enum code rc = contract_decode_ledger(entry->bytes, arena, &moment, err);
    if (rc) return rc;
    redact_moment(&moment, &start, how->persons);
    if (moment.start && !redact_parts(&start.parts, arena)) return error_nomem(err);
    return contract_encode_ledger(&moment, arena, out, err);
}
