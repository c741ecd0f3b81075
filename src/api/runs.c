// Runs: start, list, look.
#include "api/inside.h"

#include "base/civil.h"

// ---- start

// Bodies were held against the description before (bodies.c): every member is known and has its type.

// What the path says counts when the body says nothing, and must not differ from it.
static bool read_place(struct ask *ask, const char *name, struct str path, struct str *body)
{
    if (path.len == 0 || str_eq(path, *body)) return true;
    if (body->len > 0) return call_problem(ask->call, 400, "INVALID_REQUEST", "%s is not that of the path", name);
    *body = path;
    return true;
}

// A member of the context stands in `context` or beside the document; in both places only when it says the same.
static bool read_member(struct ask *ask, const char *name, struct str *out)
{
    struct str inside = json_text(json_key(json_key(&ask->body, "context"), name));
    struct str beside = json_text(json_key(&ask->body, name));
    *out = inside.len > 0 ? inside : beside;
    if (inside.len == 0 || beside.len == 0 || str_eq(inside, beside)) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "%s and context.%s differ", name, name);
}

static bool read_context(struct ask *ask, struct start_call *start)
{
    struct str tenant;
    if (!read_member(ask, "tenantId", &tenant) || !read_member(ask, "projectId", &start->project) ||
        !read_member(ask, "environmentId", &start->environment) || !read_member(ask, "runId", &start->run) ||
        !read_member(ask, "targetAdapter", &start->target_adapter))
        return false;
    if (!read_place(ask, "projectId", ask->call->place.project, &start->project) ||
        !read_place(ask, "environmentId", ask->call->place.environment, &start->environment))
        return false;
    if (tenant.len == 0 || str_eq(tenant, ask->call->who.tenant)) return true;
    service_denied(ask->call, OPERATION_RUN_START, tenant, "AUTHZ_TENANT_FORBIDDEN");
    return call_problem(ask->call, 404, "NOT_FOUND", "there is no such tenant");
}

bool handle_run_start(struct ask *ask)
{
    const struct json *body = &ask->body;
    if (!body_one(ask, "document", "planRef") || !body_one(ask, "input", "inputs")) return false;
    struct start_call start = {.file = json_text(json_key(body, "file")),
                               .arguments = json_text(json_key(body, "arguments")),
                               .request_id = json_text(json_key(body, "runRequestId")),
                               .queue = json_text(json_key(body, "queue")),
                               .trigger_source = json_text(json_key(body, "triggerSource")),
                               .parts = json_key(body, "parts"),
                               .wait_ms = prefer_wait_ms(ask->request)};
    if (!body_document(ask, &start.document) || !body_ref(ask, &start.ref) ||
        !read_context(ask, &start))
        return false;
    struct str key;
    if (!idempotency_key(ask, &key)) return false;
    if (key.len > 0 && start.request_id.len > 0 && !str_eq(key, start.request_id))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "Idempotency-Key and runRequestId differ");
    if (key.len > 0) start.request_id = key;
    const struct json *inputs = json_key(body, "inputs");
    if (!inputs) inputs = json_key(body, "input");
    if (inputs) start.inputs = *inputs;
    const struct json *cancel = json_key(body, "cancelOnPause");
    if (cancel) start.cancel_on_pause = cancel->boolean ? WISH_YES : WISH_NO;
    start.drain_timeout_ms = json_integer(json_key(body, "drainTimeoutMs"), 0);
    return service_start(ask->call, &start);
}

// ---- list

struct listing {
    struct run_filter filter;
    struct str query, count; // count: "", "exact", "estimate"
    size_t before;           // bytes of `query` before what the caller wrote
    size_t limit;
};

// A query that few runs meet may have to look at all of them: after so long it answers with what it has, and a cursor.
enum { ESTIMATE_MAX = 10000, PATIENCE_MS = 10, COUNT_MS = 2000 };

static bool read_cursor(struct ask *ask, uint64_t *out)
{
    struct str text;
    int64_t position;
    *out = 0;
    if (!query_cursor(ask, &text)) return false;
    if (text.len == 0) return true;
    if (str_int64(text, &position) && position > 0) {
        *out = (uint64_t)position;
        return true;
    }
    return call_problem(ask->call, 400, "INVALID_CURSOR", "this cursor did not come from here");
}

static bool tell_fault(struct ask *ask, const struct query_fault *fault)
{
    const struct listing *listing = ask->state;
    ask->call->answer.hint = arena_copy(&ask->call->arena, str_from(fault->hint.message));
    return call_problem(ask->call, 400, "INVALID_QUERY", "q, at character %zu: %s", fault->at + 1 - listing->before,
                        fault->error.message);
}

// All that the query means, whatever the page. An estimate stops when it has seen many, and every count when it takes too long.
static enum code count_runs(struct ask *ask, struct store *store, int64_t now, struct error *err)
{
    const struct listing *listing = ask->state;
    struct run_filter filter = listing->filter;
    struct select select SCOPED(select_close) = {0};
    struct query_fault fault;
    struct arena scratch;
    struct run_heads heads = {0};
    bool estimate = str_is(listing->count, "estimate");
    if (listing->count.len == 0) return OK;
    // A caller who sees everything of the tenant, and asks for nothing that only the runs themselves tell.
    const struct principal *who = &ask->call->who;
    bool all = !who->projects.count && !who->environments.count && ask->call->place.tenant.len == 0;
    uint64_t total;
    if (all && !estimate && listing->query.len == 0 && store_count(store, &filter, &total, err) == OK) {
        ask->total = (int64_t)total;
        ask->total_is = "exact";
        return OK;
    }
    filter.before = 0;
    ask->total_is = "exact";
    arena_init(&scratch, 64 * 1024, CALL_MEMORY);
    int64_t until = os_now().mono_ms + (estimate ? PATIENCE_MS : COUNT_MS); // readers are few
    enum code rc = select_open(&select, store, &filter, listing->query, now, &fault);
    select.patience_ms = estimate ? PATIENCE_MS : COUNT_MS;
    while (!rc) {
        arena_reset(&scratch);
        rc = select_page(&select, PAGE_MAX, &scratch, &heads, err);
        for (size_t i = 0; !rc && i < heads.count; i++)
            if (service_sees(ask->call, &heads.items[i].ids)) ask->total++;
        if (rc || select.filter.before == 0) break;
        if ((estimate && ask->total >= ESTIMATE_MAX) || os_now().mono_ms >= until) {
            ask->total_is = "atLeast";
            break;
        }
    }
    arena_release(&scratch);
    return rc;
}

// The first part of a path of `fields`, or all of them: whether the answer has that member.
static bool wants_field(const struct ask *ask, const char *name)
{
    for (struct str rest = ask->fields; rest.len > 0;) {
        struct str inner, path = str_trim(str_cut(rest, ',', &rest));
        if (str_is(str_cut(path, '.', &inner), name)) return true;
    }
    return ask->fields.len == 0;
}

static bool add_headline(struct ask *ask, struct store *store, const struct run_head *head, int64_t until_ms, struct json *row)
{
    struct json headline;
    if (!wants_field(ask, "headline")) return true;
    return service_headline(ask->call->service, store, head, until_ms, &ask->call->arena, &headline) &&
           json_put(&ask->call->arena, row, STR("headline"), headline);
}

static bool list_runs(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct listing *listing = ask->state;
    struct select select;
    struct query_fault fault;
    struct error err = {0};
    struct run_heads heads = {0};
    struct json items = json_array();
    int64_t now = os_now().wall_ms, until = service_headlines_until();
    enum code rc = select_open(&select, store, &listing->filter, listing->query, now, &fault);
    bool invalid = rc == E_INVALID;
    if (!rc && call->decision.payload_redacted && query_names_payload(select.query)) {
        select_close(&select);
        return call_problem(call, 403, "AUTHZ_DENIED", "this token may not ask for inputs and causes of runs");
    }
    select.patience_ms = PATIENCE_MS;
    if (!rc) rc = select_page(&select, listing->limit, &call->arena, &heads, &err);
    for (size_t i = 0; !rc && i < heads.count; i++) {
        const struct run_ids *ids = &heads.items[i].ids;
        struct json row;
        if (!service_sees(call, ids)) continue;
        if (!reading_row(&heads.items[i], now, &call->arena, &row) ||
            !add_headline(ask, store, &heads.items[i], until, &row) || !json_push(&call->arena, &items, row))
            rc = error_nomem(&err);
    }
    uint64_t next = rc ? 0 : heads.next;
    select_close(&select);
    if (!rc) rc = count_runs(ask, store, now, &err);
    if (invalid) return tell_fault(ask, &fault);
    if (rc) return call_failed(call, &err);
    return answer_page(ask, items, next ? call_text(call, "%llu", (unsigned long long)next) : (struct str){0});
}

static bool read_count(struct ask *ask, struct str *out)
{
    if (!query_text(ask, "count", out)) return false;
    if (out->len == 0 || str_is(*out, "exact") || str_is(*out, "estimate")) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "count is exact or estimate");
}

static bool read_status(struct ask *ask, uint32_t *mask)
{
    struct str rest;
    if (!query_text(ask, "status", &rest)) return false;
    while (rest.len > 0) {
        struct str word = str_trim(str_cut(rest, ',', &rest));
        enum run_status status = run_status_parse(word);
        if (!status) return call_problem(ask->call, 400, "INVALID_REQUEST", "there is no status %.*s", STR_ARG(word));
        *mask |= 1u << status;
    }
    return true;
}

static bool read_time(struct ask *ask, const char *name, int64_t *out)
{
    struct str text;
    if (!query_text(ask, name, &text)) return false;
    if (text.len == 0 || civil_parse(text, out)) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "%s is no time", name);
}

// A tag is one more clause of the query.
static bool read_tag(struct ask *ask, struct listing *listing)
{
    struct str tag, query = listing->query;
    if (!query_text(ask, "tag", &tag)) return false;
    if (tag.len == 0) return true;
    char quote = str_find(tag, '"', 0) < tag.len ? '\'' : '"';
    if (str_find(tag, quote, 0) < tag.len)
        return call_problem(ask->call, 400, "INVALID_REQUEST", "tag has both kinds of quotes");
    listing->query = call_text(ask->call, "tag=%c%.*s%c %s%.*s%s", quote, STR_ARG(tag), quote, query.len ? "(" : "",
                               STR_ARG(query), query.len ? ")" : "");
    listing->before = query.len ? tag.len + sizeof("tag=\"\" (") - 1 : 0;
    return true;
}

// Lists have one order: newest first.
static bool read_order(struct ask *ask)
{
    struct str sort;
    if (!query_text(ask, "sort", &sort)) return false;
    if (sort.len == 0 || str_is(sort, "-createdAt")) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "runs are listed newest first: sort can be -createdAt");
}

bool handle_run_list(struct ask *ask)
{
    struct listing *listing = CALL_NEW(ask->call, struct listing);
    int64_t limit;
    if (!listing) return false;
    struct run_filter *filter = &listing->filter;
    filter->tenant = ask->call->who.tenant;
    if (!service_may_all(ask->call, OPERATION_RUN_LIST) || !query_text(ask, "q", &listing->query) ||
        !read_tag(ask, listing) || !read_order(ask) || !query_text(ask, "plan", &filter->plan) ||
        !read_status(ask, &filter->status_mask) || !read_time(ask, "startedAfter", &filter->since_ms) ||
        !read_time(ask, "startedBefore", &filter->until_ms) || !read_cursor(ask, &filter->before) ||
        !read_count(ask, &listing->count) || !query_number(ask, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit))
        return false;
    listing->limit = (size_t)limit;
    ask->state = listing;
    return service_read(ask->call, list_runs);
}

// ---- one run

// 304 when nothing happened since the reader looked; with Prefer: wait as soon as something does.
static bool unchanged(struct ask *ask, const struct run_head *head, uint64_t seq)
{
    int64_t wait_ms = prefer_wait_ms(ask->request);
    ask->call->answer.etag = call_text(ask->call, "\"r-%llu\"", (unsigned long long)seq);
    if (!etag_seen(ask->request, seq)) return false;
    if (wait_ms > 0 && !head->terminal && seq == head->last_seq && ask->looked == 1) {
        with_run_later(ask, head, wait_ms);
        return true;
    }
    answer_text(ask, 304, NULL, (struct str){0});
    return true;
}

static bool someone_waits(const struct json *present)
{
    const struct json *places = json_key(present, "attempts");
    for (uint32_t i = 0; places && i < places->count; i++)
        if (str_is(json_text(json_key(&places->items[i], "state")), "QUEUED")) return true;
    return json_key(present, "queue") != NULL;
}

bool tell_run(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct json whole, present;
    uint64_t at;
    if (!moment_asked(ask, head, &at) || !present_of(ask, head, at, &present)) return false;
    // Between the entries of an event the number of the event does not say which state that is; nor does it while steps wait for a place,
    // which they get without an event.
    bool told = !reading_within(at) && !someone_waits(&present);
    if (told && unchanged(ask, head, at == READING_NOW ? head->last_seq : at)) return true;
    if (reading_snapshot(store, head, at, &call->arena, &whole, &err)) return call_failed(call, &err);
    present_into(ask, &present, &whole);
    return call_answer(call, 200, whole);
}

static bool tell_status(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct json body;
    if (!service_recovers(head) && unchanged(ask, head, head->last_seq)) return true; // no event ends a recovery
    if (!service_status(ask->call->service, store, head, &ask->call->arena, &body)) return call_nomem(ask->call);
    return call_answer(ask->call, 200, body);
}

bool handle_run_status_far(struct ask *ask)
{
    return with_run(ask, OPERATION_RUN_GET, tell_status);
}

// On the net thread, from what is kept with the head: the cheapest question there is. A caller that wants to wait goes the long
// way, and so does the question where the store is elsewhere: a database that does not answer must not keep the others waiting.
bool handle_run_status(struct ask *ask)
{
    struct call *call = ask->call;
    struct run_head head;
    struct error err = {0};
    call->resource = ask->params[0];
    bool waits = prefer_wait_ms(ask->request) > 0 || http_find(ask->request, "cairn-min-seq").len > 0;
    if (waits || service_several(call->service)) return handle_run_status_far(ask);
    enum code rc = store_head(ask->api->store, call->who.tenant, ask->params[0], &call->arena, &head, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    if (service_allows(call, OPERATION_RUN_GET, rc ? NULL : &head, (struct str){0}))
        tell_status(ask, ask->api->store, &head);
    return true;
}
