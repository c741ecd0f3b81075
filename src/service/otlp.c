// Traces of runs that have ended, posted to an OpenTelemetry collector (OTLP over HTTP, JSON). A thread reads the feed behind a
// cursor of its own, kept as a note: at least once, and because ids are a function of the log, twice does no harm. A collector
// that is away is asked again, later each time; no run waits for it.
#include "service/inside.h"

#include "reading/reading.h"

#include <stdlib.h>

enum { FEED_MAX = 256, LOOK_MS = 250, BACKOFF_MS = 500, BACKOFF_MAX_MS = 30000, VALUE_MAX = 65536, HEADERS_MAX = 16 };

struct otlp {
    struct feed_thread thread;
    uint64_t position; // what is behind it was posted, or is of no interest
    int64_t wait_ms;   // of the next try
};

static bool stopped(void *context)
{
    return feed_thread_stopped(&((struct otlp *)context)->thread);
}

// ---- one run

static bool is_end(const struct feed_item *item)
{
    static const enum moment_kind kinds[] = {MOMENT_RUN_COMPLETED, MOMENT_RUN_FAILED, MOMENT_RUN_CANCELLED};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        const char *word = moment_word(kinds[i], item->vocabulary);
        if (word && str_is(item->record.type, word)) return true;
    }
    return false;
}

// A header's value: text, or a reference that is looked up each time.
static struct str value_of(const struct json *value, struct arena *arena)
{
    struct error err = {0};
    struct str text = {0};
    if (json_is(value, JSON_STRING)) return json_text(value);
    struct str file = arena_copy(arena, json_text(json_key(value, "file")));
    struct str variable = arena_copy(arena, json_text(json_key(value, "env"))); // both end in NUL now
    if (file.len > 0 && os_read_file(file.ptr, VALUE_MAX, arena, &text, &err))
        os_log(LOG_WARN, "a header of traces cannot be read why=\"%s\"", err.message);
    if (variable.len > 0) text = str_from(getenv(variable.ptr));
    return str_trim(text);
}

static size_t headers_of(const struct service_otlp *settings, struct arena *arena, struct http_header *out)
{
    size_t count = 0;
    out[count++] = (struct http_header){STR("Content-Type"), STR("application/json")};
    for (uint32_t i = 0; settings->headers && i < settings->headers->count && count < HEADERS_MAX; i++) {
        const struct json_member *m = &settings->headers->members[i];
        out[count++] = (struct http_header){m->key, value_of(&m->value, arena)};
    }
    return count;
}

// E_NOT_FOUND: the run was removed meanwhile.
static enum code trace_text(struct store *store, const struct feed_item *item, struct arena *arena, struct str *out,
                            struct error *err)
{
    struct run_head head;
    struct folded folded SCOPED(folded_release) = {0};
    struct json trace;
    enum code rc = store_head(store, item->tenant, item->run, arena, &head, err);
    if (rc) return rc;
    rc = reading_fold(store, &head, READING_NOW, arena, &folded, err);
    struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
    if (!rc) rc = reading_trace(store, &head, READING_NOW, &folded.view, arena, &trace, err);
    if (!rc) json_write(&text, &trace);
    *out = (struct str){0};
    if (!rc && buf_ok(&text)) *out = arena_copy(arena, buf_str(&text));
    if (!rc && out->len == 0) rc = error_nomem(err);
    return rc;
}

// OK: done with this one, also when the collector will never take it.
static enum code export_run(struct otlp *otlp, struct fetch_link *link, struct store *store,
                            const struct feed_item *item, struct arena *arena, struct error *err)
{
    struct http_header headers[HEADERS_MAX];
    struct fetch_answer answer;
    struct str body;
    enum code rc = trace_text(store, item, arena, &body, err);
    if (rc == E_NOT_FOUND) return OK;
    if (rc) return rc;
    struct fetch_call call = {.method = STR("POST"),
                              .uri = STR("/v1/traces"),
                              .headers = headers,
                              .header_count = headers_of(otlp->thread.service->settings.otlp, arena, headers),
                              .body = body,
                              .repeatable = true};
    rc = fetch_link_call(link, &call, arena, &answer, err);
    if (rc) return rc;
    if (answer.status / 100 == 2) return OK;
    if (answer.status == 408 || answer.status == 429 || answer.status / 100 == 5)
        return error_set(err, E_IO, "the collector says %d", answer.status);
    os_log(LOG_ERROR, "trace refused for good run=%.*s status=%d", STR_ARG(item->run), answer.status);
    return OK;
}

// ---- the thread

// True: there may be more at once.
static bool round_of(struct otlp *otlp, struct fetch_link *link, struct store *store, struct arena *feed_arena,
                     struct arena *arena)
{
    struct feed feed;
    struct error err = {0};
    arena_reset(feed_arena);
    enum code rc = store_feed(store, otlp->position, FEED_MAX, feed_arena, &feed, &err);
    for (size_t i = 0; !rc && i < feed.count && !stopped(otlp); i++) {
        arena_reset(arena);
        if (is_end(&feed.items[i])) rc = export_run(otlp, link, store, &feed.items[i], arena, &err);
        if (!rc) otlp->position = feed.items[i].position;
    }
    if (!rc) {
        if (feed.count > 0 || feed.next > otlp->position) otlp->position = feed.next;
        otlp->wait_ms = BACKOFF_MS;
        return feed.count == FEED_MAX;
    }
    struct str component = STR("otlp");
    metric_add(otlp->thread.service->metrics, METRIC_SYSTEM_ERRORS, &component, 1);
    if (rc != E_CANCELLED) os_log(LOG_WARN, "trace not delivered, tried again later why=\"%s\"", err.message);
    feed_thread_rest(&otlp->thread, otlp->wait_ms);
    otlp->wait_ms = otlp->wait_ms * 2 < BACKOFF_MAX_MS ? otlp->wait_ms * 2 : BACKOFF_MAX_MS;
    return true;
}

static void *otlp_thread(void *context)
{
    struct otlp *otlp = context;
    struct store *store = service_reader(otlp->thread.service);
    struct fetch_link *link = NULL;
    struct error err = {0};
    struct arena arena;
    const struct service_otlp *settings = otlp->thread.service->settings.otlp;
    struct fetch_link_options options = {.url = settings->url,
                                         .ca_file = settings->ca_file,
                                         .timeout_ms = 10000,
                                         .stopped = stopped,
                                         .stop_context = otlp};
    struct arena feed SCOPED(arena_release) = arena_of(256 * 1024, (size_t)256 << 20);
    arena_init(&arena, 256 * 1024, (size_t)512 << 20);
    if (fetch_link_open(&options, &link, &err)) os_log(LOG_ERROR, "no traces why=\"%s\"", err.message);
    bool had = !service_several(otlp->thread.service);
    while (store && link && !stopped(otlp)) {
        bool has = members_have_duty(otlp->thread.service); // among several engines one posts the traces of all
        if (has && !had) feed_thread_again(&otlp->thread, store, &otlp->position);
        had = has;
        if (!has) {
            feed_thread_rest(&otlp->thread, LOOK_MS);
            continue;
        }
        if (round_of(otlp, link, store, &feed, &arena)) continue;
        feed_thread_keep(&otlp->thread, otlp->position);
        feed_thread_rest(&otlp->thread, LOOK_MS);
    }
    feed_thread_keep(&otlp->thread, otlp->position);
    fetch_link_close(link);
    if (store) store_close(store);
    arena_release(&arena);
    return NULL;
}

// ---- open and close

enum code otlp_open(struct service *service, struct error *err)
{
    if (!service->settings.otlp) return OK;
    struct otlp *otlp = ARENA_NEW(&service->arena, struct otlp);
    if (!otlp) return error_nomem(err);
    otlp->wait_ms = BACKOFF_MS;
    feed_thread_init(&otlp->thread, service, "otlp", "traces");
    service->otlp = otlp;
    return feed_thread_begin(&otlp->thread, &otlp->position, err);
}

enum code otlp_start(struct service *service, struct error *err)
{
    return service->otlp ? feed_thread_start(&service->otlp->thread, otlp_thread, service->otlp, err) : OK;
}

void otlp_close(struct service *service)
{
    struct otlp *otlp = service->otlp;
    if (!otlp) return;
    feed_thread_end(&otlp->thread);
    feed_thread_release(&otlp->thread);
    service->otlp = NULL;
}
