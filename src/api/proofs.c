// A run as a signed file, and the proof that its log is what was written.
#include "api/inside.h"

#include "archive/archive.h"

#define BUNDLE_MAX ((size_t)24 << 20)

// ---- bundle

static enum code collect(void *context, struct str bytes, struct error *err)
{
    struct buf *out = context;
    buf_add(out, bytes);
    return buf_ok(out) ? OK : error_set(err, E_LIMIT, "the bundle is larger than an answer may be");
}

static void tell_bundle(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct export_report report;
    struct run_name name = {head->ids.tenant, head->ids.run};
    struct str redact, bytes = {0};
    struct buf out;
    struct byte_range range;
    if (!query_text(ask, "redact", &redact)) return;
    buf_init(&out, BUNDLE_MAX);
    struct export_options options = {.runs = &name,
                                     .run_count = 1,
                                     .children = true,
                                     .sign = service_bundle_key(call->service),
                                     .contract = str_is(redact, "true") ? service_contract(call->service) : NULL,
                                     .write = collect,
                                     .context = &out};
    enum code rc = archive_export(store, &options, &call->arena, &report, &err);
    if (!rc) bytes = arena_copy(&call->arena, buf_str(&out));
    buf_release(&out);
    if (rc == E_LIMIT) {
        call->answer.hint = STR("cairn log export, on the machine of the store, has no limit");
        call_problem(call, 413, "BUNDLE_TOO_LARGE", "the bundle is larger than an answer may be");
    } else if (rc) {
        call_failed(call, &err);
    } else if (!bytes.ptr) {
        no_memory(ask);
    } else if (range_of(ask, bytes.len, &range)) {
        answer_slice(ask, "application/vnd.cairn.bundle", str_slice(bytes, range.from, range.from + range.size), &range,
                     call_text(call, "%.*s.cairn", STR_ARG(head->ids.run)));
    }
}

void handle_run_bundle(struct ask *ask)
{
    with_run(ask, OPERATION_RUN_BUNDLE, tell_bundle);
}

// ---- proof

static bool put_hash(struct ask *ask, struct json *object, const char *key, const struct digest *digest)
{
    char hex[SHA256_HEX + 1];
    digest_hex(digest, hex);
    return ask_text(ask, object, key, str_from(hex));
}

// What is signed: where the chains end.
static bool checkpoint(struct ask *ask, const struct run_head *head, struct json *out)
{
    *out = json_object();
    return ask_text(ask, out, "tenantId", head->ids.tenant) && ask_text(ask, out, "runId", head->ids.run) &&
           ask_json(ask, out, "lastSeq", json_int((int64_t)head->last_seq)) &&
           put_hash(ask, out, "head", &head->head) &&
           ask_json(ask, out, "lastLedgerSeq", json_int((int64_t)head->last_ledger_seq)) &&
           put_hash(ask, out, "ledgerHead", &head->ledger_head) && ask_time(ask, out, "at", os_now().wall_ms);
}

static bool put_faults(struct ask *ask, struct json *out, const struct verify_report *report)
{
    struct json list = json_array();
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct verify_fault *fault = &report->faults[i];
        struct json one = json_object();
        if (!ask_json(ask, &one, "seq", json_int((int64_t)fault->seq)) ||
            !ask_json(ask, &one, "ledger", json_bool(fault->ledger)) || !ask_text(ask, &one, "what", fault->what) ||
            !json_push(&ask->call->arena, &list, one))
            return false;
    }
    return ask_json(ask, out, "verified", json_bool(report->fault_count == 0)) && ask_json(ask, out, "faults", list);
}

static enum code put_signature(struct ask *ask, struct json *out, const struct json *signed_part, struct error *err)
{
    const struct archive_key *key = service_bundle_key(ask->call->service);
    uint8_t signature[SIGNATURE_SIZE];
    char id[KEY_ID_SIZE];
    struct str pem;
    struct buf text, hex;
    buf_init(&text, 64 * 1024);
    buf_init(&hex, 2 * SIGNATURE_SIZE + 1);
    json_canon(&text, signed_part);
    enum code rc = key_sign(key, buf_str(&text), signature, err);
    if (!rc) rc = key_id(key, id, err);
    if (!rc) rc = key_pem(key, false, &ask->call->arena, &pem, err);
    buf_hex(&hex, signature, SIGNATURE_SIZE);
    if (!rc && !(ask_text(ask, out, "signature", buf_str(&hex)) && ask_text(ask, out, "keyId", str_from(id)) &&
                 ask_text(ask, out, "publicKey", pem)))
        rc = error_set(err, E_NOMEM, "out of memory");
    buf_release(&text);
    buf_release(&hex);
    return rc;
}

static void tell_proof(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct verify_report report;
    struct json body = json_object(), point;
    enum code rc = store_verify(store, head->ids.tenant, head->ids.run, &call->arena, &report, &err);
    if (!rc && !(checkpoint(ask, head, &point) && ask_json(ask, &body, "checkpoint", point) &&
                 put_faults(ask, &body, &report)))
        rc = error_set(&err, E_NOMEM, "out of memory");
    if (!rc) rc = put_signature(ask, &body, &point, &err);
    if (rc)
        call_failed(call, &err);
    else
        call_answer(call, 200, body);
}

void handle_run_proof(struct ask *ask)
{
    with_run(ask, OPERATION_RUN_PROOF, tell_proof);
}

// ---- removal

void handle_run_delete(struct ask *ask)
{
    struct str reason;
    if (query_text(ask, "reason", &reason)) service_remove(ask->call, ask->params[0], reason);
}
