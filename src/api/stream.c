// Streams of events (SSE). The engine's thread only marks which runs have moved; a thread of its own reads what is new from the
// store, so that what a stream tells is what is stored, in its order and without gaps, whenever it was opened.
//
//   hub_event: run has moved ──▶ hub_turned: wake ──▶ pump: read once per run, send to each stream what it has not seen
#include "api/inside.h"

#include <stdlib.h>

enum {
    SLOTS = 1024,
    READ_MAX = 256,
    SEND_MAX = 128 * 1024,
    QUEUED_MAX = 256 * 1024,
    RETRY_MS = 20,
    HEARTBEAT_MS = 15000,
    LOOK_MS = 1000,
    ELSEWHERE_MS = 200
};

struct subscription {
    struct subscription *next;
    struct net_stream *stream;
    struct stream_ask ask; // strings in `memory`
    struct str token;      // id, to end with it
    uint64_t last;         // sequence, or position, that was looked at
    uint64_t told;         // the last id that was sent
    struct arena memory;
    bool closed;     // the stream is over; set by the net thread
    bool ended;      // net_stream_end was called
    bool moved;      // there may be something to send
    bool more;       // there was more than a portion: its turn comes again after all others had theirs
    bool later;      // its client has not taken what was sent: looked at again after RETRY_MS
    int64_t beat_ms; // monotonic: last time that something was sent
};

struct hub { // shared: mutex inside
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    pthread_t thread;
    bool running, stop, woken;
    struct subscription *slots[SLOTS]; // by run; those of everything are in slot 0
    size_t count;
    bool marked; // since the last wake-up
    struct api *api;
};

static size_t slot_of(struct str run)
{
    return run.len == 0 ? 0 : (size_t)str_hash(run) & (SLOTS - 1);
}

// ---- engine thread

static void mark(struct hub *hub, size_t slot, struct str tenant, struct str run)
{
    for (struct subscription *s = hub->slots[slot]; s; s = s->next) {
        bool meant = s->ask.run.len == 0 || str_eq(s->ask.run, run);
        if (!meant || !str_eq(s->ask.tenant, tenant)) continue;
        s->moved = true;
        hub->marked = true;
    }
}

void hub_event(void *context, const struct engine_event *event)
{
    struct hub *hub = ((struct api *)context)->hub;
    const struct run_ids *ids = &event->state->ids;
    if (!hub || __atomic_load_n(&hub->count, __ATOMIC_RELAXED) == 0) return;
    size_t slot = slot_of(ids->run);
    pthread_mutex_lock(&hub->mutex);
    mark(hub, slot, ids->tenant, ids->run);
    if (slot != 0) mark(hub, 0, ids->tenant, ids->run);
    pthread_mutex_unlock(&hub->mutex);
}

void hub_turned(void *context)
{
    struct hub *hub = ((struct api *)context)->hub;
    if (!hub || __atomic_load_n(&hub->count, __ATOMIC_RELAXED) == 0) return;
    pthread_mutex_lock(&hub->mutex);
    if (hub->marked) {
        hub->marked = false;
        hub->woken = true;
        pthread_cond_signal(&hub->arrived);
    }
    pthread_mutex_unlock(&hub->mutex);
}

// ---- the pump

static void end_stream(struct subscription *s)
{
    if (!s->ended) net_stream_end(s->stream);
    s->ended = true;
}

static bool is_closed(const struct subscription *s)
{
    return __atomic_load_n(&s->closed, __ATOMIC_ACQUIRE);
}

// What was read last, so that a thousand streams of one run cost one reading.
struct portion {
    struct str tenant, run;
    uint64_t after;
    struct records records;
    struct feed feed;
    struct run_head head;
    bool valid, ended, gone;
};

static void write_event(struct buf *out, struct subscription *s, uint64_t id, struct str type, struct str text)
{
    uint64_t previous = s->last;
    s->told = id;
    buf_printf(out, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)id, STR_ARG(type));
    // The record is an object on one line, as it is stored; before its members comes the number of the event before, so that a
    // reader can tell a gap from a loss.
    buf_byte(out, '{');
    json_write_string(out, STR("prevSeq"));
    buf_printf(out, ":%llu,%.*s\n\n", (unsigned long long)previous, (int)text.len - 1, text.ptr + 1);
}

static enum code read_portion(struct hub *hub, struct store *store, const struct subscription *s, struct arena *arena,
                              struct portion *portion, struct error *err)
{
    (void)hub;
    bool same = portion->valid && portion->after == s->last && str_eq(portion->run, s->ask.run) &&
                str_eq(portion->tenant, s->ask.tenant);
    if (same) return OK;
    arena_reset(arena);
    *portion = (struct portion){.tenant = s->ask.tenant, .run = s->ask.run, .after = s->last, .valid = true};
    if (s->ask.run.len == 0) return store_feed(store, s->last, READ_MAX, arena, &portion->feed, err);
    enum code rc = store_head(store, s->ask.tenant, s->ask.run, arena, &portion->head, err);
    struct record_range range = {.tenant = s->ask.tenant, .run = s->ask.run, .after = s->last, .limit = READ_MAX};
    if (!rc) rc = store_read(store, &range, arena, &portion->records, err);
    if (rc == E_NOT_FOUND) {
        portion->gone = true;
        return OK;
    }
    if (rc) return rc;
    size_t n = portion->records.count;
    uint64_t last = n ? portion->records.items[n - 1].seq : s->last;
    portion->ended = portion->head.terminal && last >= portion->head.last_seq;
    return OK;
}

static enum code write_run(struct hub *hub, struct store *store, struct subscription *s, const struct portion *portion,
                           struct arena *arena, struct buf *out, struct error *err)
{
    struct showing showing = {
        .store = store, .contract = service_contract(hub->api->service), .head = &portion->head, .to = s->ask.as};
    for (size_t i = 0; i < portion->records.count && out->len < SEND_MAX; i++) {
        const struct record *record = &portion->records.items[i];
        struct told_event event;
        enum code rc = event_tell(&showing, &s->ask, record, arena, &event, err);
        if (rc) return rc;
        if (event.text.len > 0) write_event(out, s, record->seq, event.type, event.text);
        s->last = record->seq;
    }
    return OK;
}

static enum code write_feed(struct store *store, struct subscription *s, const struct portion *portion,
                            struct arena *arena, struct buf *out, struct error *err)
{
    struct feed_known known = {0};
    enum code rc = OK;
    size_t i = 0;
    for (; !rc && i < portion->feed.count && out->len < SEND_MAX; i++) {
        const struct feed_item *item = &portion->feed.items[i];
        struct str text = item->record.bytes;
        bool meant = str_eq(item->tenant, s->ask.tenant) && types_have(s->ask.types, item->record.type) &&
                     stream_sees(&s->ask, store, item->run, arena, &known);
        if (meant && s->ask.redacted) rc = redact_event(&text, arena, err);
        if (meant && !rc) write_event(out, s, item->position, item->record.type, text);
        s->last = item->position;
    }
    if (i == portion->feed.count && portion->feed.next > s->last) s->last = portion->feed.next;
    return rc;
}

// Whether all of what was read has been sent; the rest is read again.
static bool told_all(const struct subscription *s, const struct portion *portion)
{
    size_t n = portion->records.count, m = portion->feed.count;
    return (n == 0 || s->last >= portion->records.items[n - 1].seq) &&
           (m == 0 || s->last >= portion->feed.items[m - 1].position);
}

// With the number of the last event, unless that was sent: a reader of some events only has then seen the log to its end, too, and
// is not sent there again when it comes back.
static void tell_end(struct subscription *s)
{
    struct buf text = buf_of(256);
    if (s->told != s->last) buf_printf(&text, "id: %llu\n", (unsigned long long)s->last);
    buf_text(&text, "event: end\ndata: {}\n\n");
    net_stream_send(s->stream, buf_str(&text));
    buf_release(&text);
    end_stream(s);
}

// Sends what is new, a little at a time: who reads slowly gets it slowly, and is not cut off for that. True: there is more at
// once.
static bool serve_one(struct hub *hub, struct store *store, struct subscription *s, struct arena *arena,
                      struct portion *portion, struct buf *out)
{
    struct error err = {0};
    s->later = net_stream_queued(s->stream) > QUEUED_MAX;
    if (s->later) return false;
    buf_clear(out);
    enum code rc = read_portion(hub, store, s, arena, portion, &err);
    bool full = portion->records.count == READ_MAX || portion->feed.count == READ_MAX;
    if (!rc && s->ask.run.len > 0) rc = write_run(hub, store, s, portion, arena, out, &err);
    if (!rc && s->ask.run.len == 0) rc = write_feed(store, s, portion, arena, out, &err);
    if (rc || !buf_ok(out)) {
        os_log(LOG_WARN, "stream ended why=\"%s\"", rc ? err.message : "out of memory");
        end_stream(s);
        return false;
    }
    if (out->len > 0) {
        s->beat_ms = os_now().mono_ms;
        if (!net_stream_send(s->stream, buf_str(out))) return false;
    }
    if (!told_all(s, portion)) return true;
    if (portion->ended || portion->gone) {
        tell_end(s);
        return false;
    }
    return full;
}

static struct subscription *take_moved(struct hub *hub, size_t *slot)
{
    for (; *slot < SLOTS; (*slot)++)
        for (struct subscription *s = hub->slots[*slot]; s; s = s->next)
            if (s->moved && !s->ended && !is_closed(s)) {
                s->moved = false;
                return s;
            }
    return NULL;
}

static void free_closed(struct hub *hub)
{
    for (size_t i = 0; i < SLOTS; i++)
        for (struct subscription **at = &hub->slots[i]; *at;) {
            struct subscription *s = *at;
            if (!is_closed(s)) { // it is called when the stream is over, so it must exist until then
                at = &s->next;
                continue;
            }
            end_stream(s);
            *at = s->next;
            __atomic_fetch_sub(&hub->count, 1, __ATOMIC_RELAXED);
            arena_release(&s->memory);
            free(s);
        }
}

// True: the stream's token is not valid any more, and the stream has ended.
static bool end_revoked(struct hub *hub, struct subscription *s)
{
    if (service_token_valid(hub->api->service, s->token)) return false;
    net_stream_cut(s->stream, STR("event: revoked\ndata: {}\n\n"));
    end_stream(s);
    return true;
}

// Every second: streams of revoked tokens end, silent ones get a sign of life.
static void look_after(struct hub *hub, int64_t now)
{
    for (size_t i = 0; i < SLOTS; i++)
        for (struct subscription *s = hub->slots[i]; s; s = s->next) {
            if (s->ended || is_closed(s) || end_revoked(hub, s)) continue;
            if (now - s->beat_ms >= HEARTBEAT_MS) {
                s->beat_ms = now;
                net_stream_send(s->stream, STR(": still here\n\n"));
            }
        }
}

static void look_if_due(struct hub *hub, int64_t *looked)
{
    int64_t now = os_now().mono_ms;
    if (now - *looked < LOOK_MS) return;
    *looked = now;
    look_after(hub, now);
}

static void mark_rest(struct hub *hub, bool later)
{
    for (size_t i = 0; i < SLOTS; i++)
        for (struct subscription *s = hub->slots[i]; s; s = s->next) {
            s->moved = s->moved || s->more || (later && s->later);
            s->more = false;
        }
}

// Runs that another engine drives move without a word to us: every stream looks for itself.
static void mark_all(struct hub *hub)
{
    for (size_t i = 0; i < SLOTS; i++)
        for (struct subscription *s = hub->slots[i]; s; s = s->next) s->moved = true;
}

static void *pump(void *context)
{
    struct hub *hub = context;
    struct store *store = NULL;
    struct buf out;
    int64_t looked = 0;
    bool later = false, more = false;
    struct arena arena = arena_of(256 * 1024, (size_t)512 << 20);
    buf_init(&out, (size_t)256 << 20);
    pthread_mutex_lock(&hub->mutex);
    while (!hub->stop) {
        bool several = hub->api->service && service_several(hub->api->service);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t wait_ms = later ? RETRY_MS : several && hub->count > 0 ? ELSEWHERE_MS : LOOK_MS;
        until.tv_sec += (wait_ms + until.tv_nsec / 1000000) / 1000;
        until.tv_nsec = (wait_ms * 1000000 + until.tv_nsec) % 1000000000;
        if (!hub->woken) pthread_cond_timedwait(&hub->arrived, &hub->mutex, &until);
        hub->woken = false;
        if (later || more) mark_rest(hub, later);
        if (several) mark_all(hub);
        later = more = false;
        if (!store) store = service_reader(hub->api->service);
        struct portion portion = {0};
        size_t slot = 0;
        // The mutex is let go while a stream is served; only this thread takes subscriptions out of the lists.
        for (struct subscription *s; store && !hub->stop && (s = take_moved(hub, &slot));) {
            pthread_mutex_unlock(&hub->mutex);
            s->more = !end_revoked(hub, s) && serve_one(hub, store, s, &arena, &portion, &out);
            pthread_mutex_lock(&hub->mutex);
            more = more || s->more;
            later = later || s->later;
            look_if_due(hub, &looked); // also while there is more to send than can be
        }
        hub->woken = hub->woken || more;
        look_if_due(hub, &looked);
        free_closed(hub);
    }
    pthread_mutex_unlock(&hub->mutex);
    if (store) store_close(store);
    buf_release(&out);
    arena_release(&arena);
    return NULL;
}

// ---- opening and closing streams

static void on_closed(void *context, enum net_end why)
{
    struct subscription *s = context;
    if (why == NET_END_SLOW)
        os_log(LOG_WARN, "stream cut why=\"its client does not read\" token=%.*s", STR_ARG(s->token));
    __atomic_store_n(&s->closed, true, __ATOMIC_RELEASE);
}

static size_t streams_of(struct hub *hub, struct str token)
{
    size_t count = 0;
    pthread_mutex_lock(&hub->mutex);
    for (size_t i = 0; i < SLOTS; i++)
        for (const struct subscription *s = hub->slots[i]; s; s = s->next)
            count += !is_closed(s) && str_eq(s->token, token);
    pthread_mutex_unlock(&hub->mutex);
    return count;
}

void streams_full(struct ask *ask, const char *why)
{
    ask->call->answer.retryable = true;
    ask->call->answer.retry_after_ms = 5000;
    call_problem(ask->call, 429, "TOO_MANY_STREAMS", "%s", why);
}

bool streams_too_many(struct ask *ask)
{
    uint32_t max = ask->api->options.streams_per_token;
    struct str token = ask->call->who.id;
    if (streams_of(ask->api->hub, token) + followers_of(ask->api, token) < max) return false;
    streams_full(ask, "this token has as many streams open already as it may have");
    return true;
}

static bool copy_names(struct arena *arena, struct names *names)
{
    struct str *copy = ARENA_ARRAY(arena, names->count + 1, struct str);
    for (size_t i = 0; copy && i < names->count; i++)
        if (!(copy[i] = arena_copy(arena, names->at[i])).ptr) return false;
    names->at = copy;
    return copy != NULL;
}

// The reader is ahead of the log, so it has seen another one (a restored store, a run that was removed and begun anew): it must
// read the run again, and hears from here what comes.
static void send_resync(const struct subscription *s)
{
    struct buf text = buf_of(256);
    buf_printf(&text, "id: %llu\nevent: resync\ndata: {\"lastSeq\":%llu}\n\n", (unsigned long long)s->last,
               (unsigned long long)s->last);
    net_stream_send(s->stream, buf_str(&text));
    buf_release(&text);
}

void hub_stream(struct ask *ask, const struct stream_ask *stream)
{
    struct hub *hub = ask->api->hub;
    if (streams_too_many(ask)) return;
    struct subscription *s = calloc(1, sizeof(*s));
    if (!s) {
        call_nomem(ask->call);
        return;
    }
    arena_init(&s->memory, 1024, 1 << 20);
    s->ask = *stream;
    s->ask.tenant = arena_copy(&s->memory, stream->tenant);
    s->ask.run = arena_copy(&s->memory, stream->run);
    s->ask.types = arena_copy(&s->memory, stream->types);
    s->ask.step = arena_copy(&s->memory, stream->step);
    s->ask.project = arena_copy(&s->memory, stream->project);
    s->ask.environment = arena_copy(&s->memory, stream->environment);
    if (!copy_names(&s->memory, &s->ask.projects) || !copy_names(&s->memory, &s->ask.environments)) {
        arena_release(&s->memory);
        free(s);
        call_nomem(ask->call);
        return;
    }
    s->token = arena_copy(&s->memory, ask->call->who.id);
    s->last = stream->after;
    s->moved = true;
    s->beat_ms = os_now().mono_ms;
    static const struct http_header headers[] = {
        {STR_INIT("Content-Type"), STR_INIT("text/event-stream")},
        {STR_INIT("Cache-Control"), STR_INIT("no-store")},
        {STR_INIT("X-Accel-Buffering"), STR_INIT("no")},
    };
    count_answer(ask, 200);
    s->stream = net_stream(ask->exchange, 200, headers, ARRAY_COUNT(headers), on_closed, s);
    call_free(ask->call);
    net_stream_send(s->stream, STR("retry: 2000\n\n"));
    if (s->ask.resync) send_resync(s);
    size_t slot = slot_of(s->ask.run);
    pthread_mutex_lock(&hub->mutex);
    s->next = hub->slots[slot];
    hub->slots[slot] = s;
    __atomic_fetch_add(&hub->count, 1, __ATOMIC_RELAXED);
    hub->woken = true;
    pthread_cond_signal(&hub->arrived);
    pthread_mutex_unlock(&hub->mutex);
}

struct hub *hub_new(struct api *api)
{
    struct hub *hub = calloc(1, sizeof(*hub));
    pthread_condattr_t attributes;
    if (!hub) return NULL;
    hub->api = api;
    pthread_mutex_init(&hub->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&hub->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    return hub;
}

enum code hub_start(struct api *api, struct error *err)
{
    if (pthread_create(&api->hub->thread, NULL, pump, api->hub))
        return error_set(err, E_LIMIT, "no thread for streams");
    api->hub->running = true;
    return OK;
}

void hub_stop(struct api *api)
{
    struct hub *hub = api->hub;
    if (!hub) return;
    pthread_mutex_lock(&hub->mutex);
    hub->stop = true;
    pthread_cond_signal(&hub->arrived);
    pthread_mutex_unlock(&hub->mutex);
    if (hub->running) pthread_join(hub->thread, NULL);
    hub->running = false;
    for (size_t i = 0; i < SLOTS; i++)
        for (struct subscription *s = hub->slots[i]; s; s = s->next) end_stream(s);
}

void hub_close(struct api *api)
{
    struct hub *hub = api->hub;
    if (!hub) return;
    hub_stop(api);
    for (size_t i = 0; i < SLOTS; i++)
        for (struct subscription *s = hub->slots[i], *next; s; s = next) {
            next = s->next;
            arena_release(&s->memory);
            free(s);
        }
    pthread_mutex_destroy(&hub->mutex);
    pthread_cond_destroy(&hub->arrived);
    free(hub);
    api->hub = NULL;
}
