// The store as it is, for those who read it from far away (src/store/server.c, docs/format/store-api.md): heads, records with their bytes,
// blobs of a run, files beside it. Lists and heads follow run.list and run.get; whatever holds payloads is store.read. Roles that may
// know how a run went but not what it was about read its records without values (run.events) and its document as it is (plan.get).
#include "api/inside.h"

#include "archive/archive.h"

#include "store/wire.h"

enum { RAW_PAGE = 64, RAW_SIZE = 2 << 20, FILE_PIECE = 4 << 20, RAW_MAX = 48 << 20 };

static bool end_page(struct ask *ask, struct buf *out, bool more)
{
    if (records_wire_end(out, more, &ask->call->arena))
        return answer_text(ask, 200, "application/vnd.cairn.records", buf_str(out));
    return call_nomem(ask->call);
}

// ---- heads

static struct json head_json(struct ask *ask, const struct run_head *head)
{
    struct run_head *told = ARENA_NEW(&ask->call->arena, struct run_head); // the JSON borrows it
    struct json out;
    if (!told) return json_failed();
    *told = *head;
    // The line about what went wrong quotes what steps said.
    if (ask->call->decision.payload_redacted) told->summary.cause[0] = '\0';
    return run_head_json_live(told, &ask->call->arena, &out) ? out : json_failed();
}

bool tell_head(struct ask *ask, struct store *store, const struct run_head *head)
{
    (void)store;
    return call_answer(ask->call, 200, head_json(ask, head));
}

// Pages of the store until there are enough that the caller may see.
static bool list_heads(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct run_filter filter = *(const struct run_filter *)ask->state;
    struct json items = json_array();
    struct error err = {0};
    size_t wanted = filter.limit;
    enum code rc = OK;
    do {
        struct run_heads heads = {0};
        filter.limit = wanted - items.count;
        rc = store_list(store, &filter, &call->arena, &heads, &err);
        for (size_t i = 0; !rc && i < heads.count; i++) {
            const struct run_ids *ids = &heads.items[i].ids;
            if (principal_sees(&call->who, ids->tenant, ids->project, ids->environment))
                json_append(&call->arena, &items, head_json(ask, &heads.items[i]));
        }
        filter.before = heads.next;
    } while (!rc && json_ok(&items) && filter.before && items.count < wanted);
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, JSON_OF(&call->arena, {"items", items}, {"next", json_count(filter.before)}));
}

static bool read_statuses(struct ask *ask, uint32_t *mask)
{
    struct str rest;
    if (!query_text(ask, "status", &rest)) return false;
    while (rest.len > 0) {
        enum run_status status = run_status_parse(str_cut(rest, ',', &rest));
        if (!status)
            return call_problem(ask->call, 400, "INVALID_REQUEST", "parameter status names one that there is not");
        *mask |= 1u << status;
    }
    return true;
}

static bool read_filter(struct ask *ask, struct run_filter *out)
{
    int64_t limit, before, since, until, unfinished, roots;
    if (!query_number(ask, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit) ||
        !query_number(ask, "before", 1, INT64_MAX, 0, &before) ||
        !query_number(ask, "since", 0, INT64_MAX, 0, &since) || !query_number(ask, "until", 0, INT64_MAX, 0, &until) ||
        !query_number(ask, "unfinished", 0, 1, 0, &unfinished) || !query_number(ask, "roots", 0, 1, 0, &roots) ||
        !query_text(ask, "plan", &out->plan) || !query_text(ask, "prefix", &out->run_prefix) ||
        !read_statuses(ask, &out->status_mask))
        return false;
    out->tenant = ask->call->who.tenant;
    out->limit = (size_t)limit;
    out->before = (uint64_t)before;
    out->since_ms = since;
    out->until_ms = until;
    out->unfinished = unfinished;
    out->roots = roots;
    return true;
}

bool handle_store_list(struct ask *ask)
{
    struct run_filter *filter = CALL_NEW(ask->call, struct run_filter);
    if (!filter) return false;
    if (!service_may_all(ask->call, OPERATION_RUN_LIST) || !read_filter(ask, filter)) return false;
    ask->state = filter;
    return service_read(ask->call, list_heads);
}

// ---- records

// The record loses its values. Its hash stays, so that the chain can be followed.
static enum code take_values_out(struct ask *ask, const struct run_head *head, struct record *record,
                                 struct arena *scratch, struct error *err)
{
    struct redaction how = {.contract = service_contract(ask->call->service), .persons = true};
    bool changed = true;
    struct str bytes;
    enum code rc = record->ledger_seq ? archive_redact_entry(&how, record, scratch, &bytes, err)
                                      : archive_redact(&how, head, record, scratch, &bytes, &changed, err);
    if (rc || !changed) return rc;
    record->bytes = bytes;
    record->columns = NULL; // they are pieces of the bytes that were stored
    record->redacted = true;
    return OK;
}

static bool tell_pages(struct ask *ask, struct store *store, const struct run_head *head, bool ledger, bool redacted)
{
    struct record_range range = {.tenant = head->ids.tenant, .run = head->ids.run, .ledger = ledger};
    int64_t after, limit;
    struct error err = {0};
    bool more = true;
    enum code rc = OK;
    if (!query_number(ask, "after", 0, INT64_MAX, 0, &after) ||
        !query_number(ask, "limit", 1, PAGE_MAX, PAGE_MAX, &limit))
        return false;
    struct arena scratch SCOPED(arena_release) = arena_of(64 * 1024, RAW_MAX);
    struct buf out SCOPED(buf_release) = buf_of(RAW_MAX);
    range.after = (uint64_t)after;
    while (!rc && more && limit > 0 && out.len < RAW_SIZE) {
        struct records page;
        range.limit = limit < RAW_PAGE ? (size_t)limit : RAW_PAGE;
        arena_reset(&scratch);
        rc = store_read(store, &range, &scratch, &page, &err);
        for (size_t i = 0; !rc && i < page.count; i++) {
            struct record *record = &page.items[i];
            if (redacted) rc = take_values_out(ask, head, record, &scratch, &err);
            if (!rc && !record_wire_write(&out, record, &scratch)) rc = error_nomem(&err);
            range.after = ledger ? record->ledger_seq : record->seq;
        }
        if (rc) break;
        limit -= (int64_t)page.count;
        more = page.count == range.limit;
    }
    if (rc) return call_failed(ask->call, &err);
    return end_page(ask, &out, more);
}

bool tell_stored_events(struct ask *ask, struct store *store, const struct run_head *head)
{
    return tell_pages(ask, store, head, false, false);
}

bool tell_ledger(struct ask *ask, struct store *store, const struct run_head *head)
{
    return tell_pages(ask, store, head, true, false);
}

bool tell_redacted_events(struct ask *ask, struct store *store, const struct run_head *head)
{
    return tell_pages(ask, store, head, false, true);
}

bool tell_redacted_ledger(struct ask *ask, struct store *store, const struct run_head *head)
{
    return tell_pages(ask, store, head, true, true);
}

// ---- blobs: of a run that refers to them, for bytes under a hash belong to the tenant that stored them

static bool tell_bytes(struct ask *ask, struct store *store, const struct run_head *head, bool results)
{
    struct digest wanted;
    struct error err = {0};
    struct str bytes;
    if (!digest_parse(ask->params[1], &wanted))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "a blob is named by its SHA-256, in hexadecimal");
    bool found;
    enum code rc = reading_refers(store, head, &wanted, results, &found, &err);
    if (!rc && found) rc = store_blob(store, &wanted, &ask->call->arena, &bytes, &err);
    if (rc == E_NOT_FOUND || (!rc && !found))
        return call_problem(ask->call, 404, "NOT_FOUND", "the run refers to no such blob");
    if (rc) return call_failed(ask->call, &err);
    return answer_text(ask, 200, "application/octet-stream", bytes);
}

bool tell_blob(struct ask *ask, struct store *store, const struct run_head *head)
{
    return tell_bytes(ask, store, head, true);
}

bool tell_run_document(struct ask *ask, struct store *store, const struct run_head *head)
{
    return tell_bytes(ask, store, head, false);
}

// ---- files beside a run

bool tell_file(struct ask *ask, struct store *store, const struct run_head *head)
{
    int64_t offset, limit, tail;
    struct str what, name;
    struct error err = {0};
    struct file_piece piece;
    struct buf out;
    if (!query_number(ask, "offset", 0, INT64_MAX, 0, &offset) ||
        !query_number(ask, "limit", 1, FILE_PIECE, FILE_PIECE, &limit) || !query_number(ask, "tail", 0, 1, 0, &tail) ||
        !query_text(ask, "what", &what) || !query_text(ask, "name", &name))
        return false;
    bool logs = str_is(what, "logs");
    if (!logs && !str_is(what, "artifacts"))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "parameter what is logs or artifacts");
    struct file_range range = {.ids = &head->ids,
                               .what = logs ? "logs" : "artifacts",
                               .name = name,
                               .offset = tail ? FILE_TAIL : (uint64_t)offset,
                               .limit = (size_t)limit};
    enum code rc = store_run_file(store, &range, &ask->call->arena, &piece, &err);
    if (rc == E_NOT_FOUND) return call_problem(ask->call, 404, "NOT_FOUND", "the run has no such file");
    if (rc) return call_failed(ask->call, &err);
    buf_init(&out, RAW_MAX);
    struct json about = JSON_OF(&ask->call->arena, {"size", json_count(piece.size)});
    json_write(&out, &about);
    buf_byte(&out, '\n');
    buf_add(&out, piece.bytes);
    if (buf_ok(&out))
        answer_text(ask, 200, "application/vnd.cairn.file", buf_str(&out));
    else
        call_nomem(ask->call);
    buf_release(&out);
    return true;
}

