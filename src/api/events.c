// Events of a run: a page, lines, or a stream, as the caller accepts them.
#include "api/inside.h"

#include <stdint.h>

bool types_have(struct str list, struct str type)
{
    if (list.len == 0) return true;
    while (list.len > 0)
        if (str_like(type, str_trim(str_cut(list, ',', &list)))) return true;
    return false;
}

// The step, or anything inside of it when it is a loop.
static bool is_step(struct str path, struct str step)
{
    return str_starts(path, step) && (path.len == step.len || path.ptr[step.len] == '[');
}

static enum code show_as(const struct showing *showing, const struct moment *moment, const struct seal *seal,
                         struct arena *arena, struct told_event *out, struct error *err)
{
    struct json shown;
    enum code rc = reading_show(showing, moment, seal, arena, &shown, err);
    *out = (struct told_event){0};
    if (rc || shown.type == 0) return rc; // there is no word for it
    const struct json *type = json_key(&shown, "eventType");
    out->type = json_text(type ? type : json_key(&shown, "event_type"));
    struct buf text = buf_of(RECORD_SIZE_MAX * 2);
    json_write(&text, &shown);
    out->text = buf_keep(&text, arena);
    return out->text.ptr ? OK : error_nomem(err);
}

enum code event_tell(const struct showing *showing, const struct stream_ask *stream, const struct record *record,
                     struct arena *arena, struct told_event *out, struct error *err)
{
    enum vocabulary own = showing->head->vocabulary;
    struct moment moment;
    struct seal seal;
    enum code rc = OK;
    bool other = showing->to != 0 && showing->to != own;
    *out = (struct told_event){.text = record->bytes, .type = record->type};
    if (other || stream->step.len > 0) rc = contract_decode(own, record->bytes, arena, &moment, &seal, NULL, err);
    bool meant = rc || stream->step.len == 0 || is_step(moment.step, stream->step);
    if (!rc && meant && other) rc = show_as(showing, &moment, &seal, arena, out, err);
    if (!rc && meant && out->text.len > 0 && types_have(stream->types, out->type))
        return stream->redacted ? redact_event(&out->text, arena, err) : OK;
    *out = (struct told_event){0};
    return rc;
}

enum { PAGE_BYTES = 4 << 20 };

struct paging {
    struct stream_ask stream;
    int64_t limit, wait_ms;
    bool lines, waited;
    bool returns; // with Last-Event-ID: it has been here before
};

static bool read_paging(struct ask *ask, struct paging *paging)
{
    struct str as, last = http_find(ask->request, "last-event-id");
    int64_t after, cursor, wait;
    *paging = (struct paging){.stream = {.tenant = ask->call->who.tenant, .run = ask->params[0]}};
    if (!query_number(ask, "after", 0, INT64_MAX, 0, &after) ||
        !query_number(ask, "cursor", 0, INT64_MAX, 0, &cursor) ||
        !query_number(ask, "limit", 1, PAGE_MAX, 100, &paging->limit) ||
        !query_number(ask, "wait", 0, WAIT_MAX_MS / 1000, 0, &wait) ||
        !query_text(ask, "types", &paging->stream.types) || !query_text(ask, "step", &paging->stream.step) ||
        !query_text(ask, "as", &as))
        return false;
    if (last.len > 0 && (!str_int64(last, &after) || after < 0))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "Last-Event-ID is no number");
    if (as.len > 0 && !(paging->stream.as = vocabulary_parse(as)))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "as must be run, noetl or nodes");
    paging->returns = last.len > 0;
    paging->stream.after = (uint64_t)(cursor > after ? cursor : after); // nextCursor is a number of an event
    paging->wait_ms = wait * 1000 > prefer_wait_ms(ask->request) ? wait * 1000 : prefer_wait_ms(ask->request);
    static const char *const forms[] = {"text/event-stream", "application/x-ndjson", "application/json"};
    size_t form = accept_best(ask->request, forms, ARRAY_COUNT(forms));
    paging->stream.sse = form == 0;
    paging->lines = form == 1;
    return true;
}

struct page {
    struct buf text; // items with commas between them, or lines
    uint64_t last;
    size_t count;
    bool more;
};

static enum code write_page(struct ask *ask, struct store *store, const struct run_head *head,
                            const struct paging *paging, struct page *page, struct error *err)
{
    struct arena *arena = &ask->call->arena;
    const struct stream_ask *stream = &paging->stream;
    struct records records;
    struct record_range range = {
        .tenant = head->ids.tenant, .run = head->ids.run, .after = stream->after, .limit = (size_t)paging->limit};
    struct showing showing = {
        .store = store, .contract = service_contract(ask->call->service), .head = head, .to = stream->as};
    enum code rc = store_read(store, &range, arena, &records, err);
    page->last = stream->after;
    bool cut = false; // large events make short pages
    for (size_t i = 0; !rc && !cut && i < records.count; i++) {
        const struct record *record = &records.items[i];
        struct told_event event;
        rc = event_tell(&showing, stream, record, arena, &event, err);
        page->last = record->seq;
        if (rc || event.text.len == 0) continue;
        if (page->count++ > 0) buf_byte(&page->text, paging->lines ? '\n' : ',');
        buf_add(&page->text, event.text);
        cut = page->text.len >= PAGE_BYTES;
    }
    page->more = !rc && (cut || records.count == (size_t)paging->limit) && page->last < head->last_seq;
    return rc;
}

// Pages of events are put together from stored bytes, which are JSON already and must stay as they are.
static void begin_page(struct buf *out)
{
    buf_byte(out, '{');
    json_write_string(out, STR("items"));
    buf_text(out, ":[");
}

static void query_add(struct buf *path, const char *name, struct str value)
{
    if (value.len == 0) return;
    buf_printf(path, "&%s=", name);
    http_percent_encode(path, value);
}

// The same question, further on.
static struct str next_page(struct ask *ask, const struct paging *paging, uint64_t last)
{
    const struct stream_ask *stream = &paging->stream;
    struct buf path = buf_of(16 * 1024);
    buf_printf(&path, "%.*s?after=%llu&limit=%lld", STR_ARG(ask->request->raw_path), (unsigned long long)last,
               (long long)paging->limit);
    query_add(&path, "types", stream->types);
    query_add(&path, "step", stream->step);
    query_add(&path, "as", stream->as ? str_from(vocabulary_name(stream->as)) : (struct str){0});
    return buf_keep(&path, &ask->call->arena);
}

static bool tell_page(struct ask *ask, const struct run_head *head, const struct paging *paging, struct page *page)
{
    struct call *call = ask->call;
    struct buf whole = buf_of((size_t)256 << 20);
    if (paging->lines) {
        buf_add(&whole, buf_str(&page->text));
        if (page->count > 0) buf_byte(&whole, '\n');
    } else {
        begin_page(&whole);
        buf_add(&whole, buf_str(&page->text));
        buf_printf(&whole, "],\"lastSeq\":%llu,\"nextCursor\":", (unsigned long long)head->last_seq);
        if (page->more)
            buf_printf(&whole, "\"%llu\"}", (unsigned long long)page->last);
        else
            buf_text(&whole, "null}");
    }
    call->answer.etag = call_text(call, "\"r-%llu\"", (unsigned long long)head->last_seq);
    if (page->more) call->answer.next = next_page(ask, paging, page->last);
    return answer_kept(ask, 200, paging->lines ? "application/x-ndjson" : "application/json", &whole);
}

static bool tell_after_wait(struct call *call, struct store *store);

static bool tell_events(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct paging *paging = ask->state;
    struct error err = {0};
    struct page page = {0};
    if (paging->wait_ms > 0 && !paging->waited && !head->terminal && head->last_seq <= paging->stream.after) {
        paging->waited = true;
        return service_wait(ask->call, head, paging->stream.after, paging->wait_ms, tell_after_wait);
    }
    paging->stream.redacted = ask->call->decision.payload_redacted;
    buf_init(&page.text, (size_t)256 << 20);
    enum code rc = write_page(ask, store, head, paging, &page, &err);
    if (rc)
        call_failed(ask->call, &err);
    else
        tell_page(ask, head, paging, &page);
    buf_release(&page.text);
    return true;
}

// The run has moved, or the time is over: look again.
static bool tell_after_wait(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct run_head head;
    struct error err = {0};
    if (store_head(store, call->who.tenant, ask->params[0], &call->arena, &head, &err)) return call_failed(call, &err);
    return tell_events(ask, store, &head);
}

static bool begin_stream(struct ask *ask, struct store *store, const struct run_head *head)
{
    const struct paging *paging = ask->state;
    struct stream_ask stream = paging->stream;
    (void)store;
    if (paging->returns && head->terminal && stream.after == head->last_seq)
        return answer_text(ask, 204, NULL,
                           (struct str){0});       // what makes an EventSource not come back: it has seen the end
    stream.resync = stream.after > head->last_seq; // what it has seen is not of this log
    if (stream.resync) stream.after = head->last_seq;
    stream.redacted = ask->call->decision.payload_redacted;
    return events_stream(ask, &stream);
}

bool handle_run_events(struct ask *ask)
{
    struct paging *paging = CALL_NEW(ask->call, struct paging);
    if (!paging) return false;
    if (!read_paging(ask, paging)) return false;
    ask->state = paging;
    return with_run(ask, paging->stream.sse ? OPERATION_RUN_STREAM : OPERATION_RUN_EVENTS,
                    paging->stream.sse ? begin_stream : tell_events);
}

// ---- everything

static bool holds(struct names names, struct str name)
{
    for (size_t i = 0; i < names.count; i++)
        if (str_eq(names.at[i], name)) return true;
    return names.count == 0;
}

// Not everything of the tenant is for it.
static bool is_narrow(const struct stream_ask *stream)
{
    return stream->projects.count || stream->environments.count || stream->project.len || stream->environment.len;
}

bool stream_sees(const struct stream_ask *stream, struct store *store, struct str run, struct arena *arena,
                 struct feed_known *known)
{
    struct run_head head;
    struct error err = {0};
    if (!is_narrow(stream)) return true;
    if (known->run.len > 0 && str_eq(known->run, run)) return known->seen;
    known->run = run;
    known->seen = store_head(store, stream->tenant, run, arena, &head, &err) == OK &&
                  holds(stream->projects, head.ids.project) && holds(stream->environments, head.ids.environment) &&
                  (stream->project.len == 0 || str_eq(stream->project, head.ids.project)) &&
                  (stream->environment.len == 0 || str_eq(stream->environment, head.ids.environment));
    return known->seen;
}

static bool tell_feed(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    const struct paging *paging = ask->state;
    struct error err = {0};
    struct feed feed;
    struct feed_known known = {0};
    enum code rc = store_feed(store, paging->stream.after, (size_t)paging->limit, &call->arena, &feed, &err);
    struct buf text SCOPED(buf_release) = buf_of((size_t)256 << 20);
    if (!paging->lines) begin_page(&text);
    for (size_t i = 0, count = 0; !rc && i < feed.count; i++) {
        const struct feed_item *item = &feed.items[i];
        struct str event = item->record.bytes;
        if (!str_eq(item->tenant, call->who.tenant) || !types_have(paging->stream.types, item->record.type) ||
            !stream_sees(&paging->stream, store, item->run, &call->arena, &known))
            continue;
        if (paging->stream.redacted) rc = redact_event(&event, &call->arena, &err);
        if (count++ > 0) buf_byte(&text, paging->lines ? '\n' : ',');
        buf_add(&text, event);
    }
    if (!rc && !paging->lines) buf_printf(&text, "],\"nextCursor\":\"%llu\"}", (unsigned long long)feed.next);
    if (!rc && paging->lines && text.len > 0) buf_byte(&text, '\n');
    if (!rc && feed.next > paging->stream.after) call->answer.next = next_page(ask, paging, feed.next);
    if (!rc) return answer_kept(ask, 200, paging->lines ? "application/x-ndjson" : "application/json", &text);
    return call_failed(call, &err);
}

// As begin_stream: a store that was restored ends before what the reader has seen.
static bool begin_feed(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct stream_ask *stream = &((struct paging *)ask->state)->stream;
    struct error err = {0};
    uint64_t end;
    if (store_feed_end(store, &end, &err)) return call_failed(call, &err);
    stream->resync = stream->after > end;
    if (stream->resync) stream->after = end;
    return events_stream(ask, stream);
}

bool handle_events_all(struct ask *ask)
{
    struct paging *paging = ARENA_NEW(&ask->call->arena, struct paging);
    if (!paging) return call_nomem(ask->call);
    if (!service_may_all(ask->call, OPERATION_RUN_STREAM) || !read_paging(ask, paging)) return false;
    const struct call *call = ask->call;
    ask->state = paging;
    paging->stream.run = (struct str){0};
    paging->stream.redacted = call->decision.payload_redacted;
    paging->stream.projects = call->who.projects;
    paging->stream.environments = call->who.environments;
    paging->stream.project = call->place.project;
    paging->stream.environment = call->place.environment;
    return service_read(ask->call, paging->stream.sse ? begin_feed : tell_feed);
}
