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

bool tell_bundle(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct export_report report;
    struct run_name name = {head->ids.tenant, head->ids.run};
    struct str bytes = {0};
    bool redact;
    struct byte_range range;
    if (!query_flag(ask, "redact", &redact)) return false;
    struct buf out SCOPED(buf_release) = buf_of(BUNDLE_MAX);
    struct export_options options = {.runs = &name,
                                     .run_count = 1,
                                     .children = true,
                                     .sign = service_bundle_key(call->service),
                                     .contract = redact ? service_contract(call->service) : NULL,
                                     .write = collect,
                                     .context = &out};
    enum code rc = archive_export(store, &options, &call->arena, &report, &err);
    if (!rc) bytes = arena_copy(&call->arena, buf_str(&out));
    if (rc == E_LIMIT) {
        call->answer.hint = STR("cairn log export, on the machine of the store, has no limit");
        call_problem(call, 413, "BUNDLE_TOO_LARGE", "the bundle is larger than an answer may be");
    } else if (rc) {
        call_failed(call, &err);
    } else if (!bytes.ptr) {
        call_nomem(ask->call);
    } else if (range_of(ask, bytes.len, &range)) {
        answer_slice(ask, "application/vnd.cairn.bundle", str_slice(bytes, range.from, range.from + range.size), &range,
                     call_text(call, "%.*s.cairn", STR_ARG(head->ids.run)));
    }
    return true;
}

// ---- proof

bool tell_proof(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct json body;
    enum code rc = reading_proof(store, head, os_now().wall_ms, &call->arena, &body, &err);
    if (!rc) {
        struct json signed_part = *json_key(&body, "checkpoint");
        rc = key_seal(service_bundle_key(call->service), &signed_part, &call->arena, &body, &err);
    }
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, body);
}

// ---- removal

bool handle_run_delete(struct ask *ask)
{
    struct str reason;
    return query_text(ask, "reason", &reason) && service_remove(ask->call, ask->params[0], reason);
}
