// Signals: the only way to change a run that lives.
#include "api/inside.h"

static bool send(struct ask *ask, struct str body)
{
    uint64_t seq;
    ask->call->resource = ask->params[0];
    return etag_wanted(ask, &seq) && service_signal(ask->call, ask->params[0], body, seq);
}

bool handle_signal_post(struct ask *ask)
{
    return send(ask, ask->request->body);
}

// The id of the path is the signal's; one in the body must be the same.
bool handle_signal_put(struct ask *ask)
{
    const struct json *id = json_key(&ask->body, "signalId");
    if (id && !str_eq(json_text(id), ask->params[1]))
        return call_problem(ask->call, 400, "SIGNAL_INVALID_PAYLOAD", "signalId is not that of the path");
    if (!id) JSON_ADD(&ask->call->arena, &ask->body, {"signalId", json_some(ask->params[1])});
    if (!json_ok(&ask->body)) return call_nomem(ask->call);
    struct buf text SCOPED(buf_release) = buf_of(256 * 1024);
    json_write(&text, &ask->body);
    return send(ask, buf_str(&text));
}

// ---- decision records

static enum code next_records(struct ask *ask, struct store *store, const struct run_head *head, uint64_t *after,
                              struct records *out, struct error *err)
{
    struct record_range range = {
        .tenant = head->ids.tenant, .run = head->ids.run, .ledger = true, .after = *after, .limit = PAGE_MAX};
    enum code rc = store_read(store, &range, &ask->call->arena, out, err);
    if (!rc && out->count > 0) *after = out->items[out->count - 1].ledger_seq;
    return rc;
}

bool tell_decisions(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct json items = json_array();
    struct str wanted = ask->params[1];
    uint64_t after = 0;
    for (;;) {
        struct records records;
        enum code rc = next_records(ask, store, head, &after, &records, &err);
        for (size_t i = 0; !rc && i < records.count; i++) {
            struct json record;
            if (!str_is(records.items[i].type, "decision")) continue;
            rc = json_parse(records.items[i].bytes, &json_limits_record, &call->arena, &record, &err);
            bool meant = !rc && (wanted.len == 0 || str_eq(json_text(json_key(&record, "signalId")), wanted) ||
                                 str_eq(json_text(json_key(&record, "policyDecisionId")), wanted));
            if (meant && wanted.len > 0) return call_answer(call, 200, record);
            if (meant && !json_push(&call->arena, &items, record)) rc = error_nomem(&err);
        }
        if (rc) return call_failed(call, &err);
        if (records.count == 0) break;
    }
    if (wanted.len > 0) return call_problem(call, 404, "SIGNAL_NOT_FOUND", "no signal of that id was decided here");
    return answer_page(ask, items, (struct str){0});
}

