// Streams: answers that go on. One thread serves all of them in turn, each from its source: events (stream.c), lines of a log
// (logs.c).
//
//   pump_event: a run has moved ──▶ pump_turned: wake ──▶ pump: every stream that is due sends a portion of what is new
//
// A stream is in the list, and counted, before its answer begins: no client has one that is not. Only the pump's thread takes streams
// out, and new ones come first, so that it can go on in the list after it has let the mutex go to serve one.
#include "api/inside.h"

#include <stdlib.h>

enum { SLOTS = 1024, QUEUED_MAX = 256 * 1024, RETRY_MS = 20, HEARTBEAT_MS = 15000, LOOK_MS = 1000 };

struct pump { // shared: mutex inside
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    pthread_t thread;
    bool running, stop, woken;
    bool marked;                 // since the last wake-up
    struct stream *slots[SLOTS]; // by run; those of everything are in slot 0
    size_t count;
    struct api *api;
};

static size_t slot_of(struct str run)
{
    return run.len == 0 ? 0 : (size_t)str_hash(run) & (SLOTS - 1);
}

static bool is_closed(const struct stream *s)
{
    return __atomic_load_n(&s->closed, __ATOMIC_ACQUIRE);
}

// The mutex is held.
static void wake(struct pump *pump)
{
    pump->woken = true;
    pthread_cond_signal(&pump->arrived);
}

// ---- engine thread

static void mark(struct pump *pump, size_t slot, struct str tenant, struct str run)
{
    for (struct stream *s = pump->slots[slot]; s; s = s->next) {
        bool meant = s->run.len == 0 || str_eq(s->run, run);
        if (!meant || !s->source->moves || !str_eq(s->tenant, tenant)) continue;
        s->moved = true;
        pump->marked = true;
    }
}

void pump_event(void *context, const struct engine_event *event)
{
    struct pump *pump = ((struct api *)context)->pump;
    const struct run_ids *ids = &event->state->ids;
    if (!pump || __atomic_load_n(&pump->count, __ATOMIC_RELAXED) == 0) return;
    size_t slot = slot_of(ids->run);
    LOCKED(&pump->mutex);
    mark(pump, slot, ids->tenant, ids->run);
    if (slot != 0) mark(pump, 0, ids->tenant, ids->run);
}

void pump_turned(void *context)
{
    struct pump *pump = ((struct api *)context)->pump;
    if (!pump || __atomic_load_n(&pump->count, __ATOMIC_RELAXED) == 0) return;
    LOCKED(&pump->mutex);
    if (pump->marked) wake(pump);
    pump->marked = false;
}

// ---- the pump

static void end_stream(struct stream *s)
{
    if (!s->ended) net_stream_end(s->net);
    s->ended = true;
}

static void stream_free(struct stream *s)
{
    arena_release(&s->memory);
    free(s);
}

bool stream_send(struct stream *s, struct str bytes)
{
    s->beat_ms = os_now().mono_ms;
    return net_stream_send(s->net, bytes);
}

// True: the stream's token is not valid any more, and the stream has ended.
static bool end_revoked(struct pump *pump, struct stream *s)
{
    struct service *service = pump->api->service;
    bool signed_in = s->session.len == 0 || service_session_valid(service, s->session, s->session_ms);
    if (signed_in && (s->expires_ms ? os_now().wall_ms < s->expires_ms : service_token_valid(service, s->token))) return false;
    net_stream_cut(s->net, s->sse ? STR("event: revoked\ndata: {}\n\n") : STR(""));
    end_stream(s);
    return true;
}

// Sends what is new, a little at a time: a client that reads slowly gets it slowly, and is not cut off for that. Returns when it is to be
// served again at the latest.
static int64_t serve(struct pump *pump, struct stream *s, struct serving *with)
{
    if (end_revoked(pump, s)) return INT64_MAX;
    with->now_ms = os_now().mono_ms;
    if (net_stream_queued(s->net) > QUEUED_MAX) return with->now_ms + RETRY_MS;
    switch (s->source->serve(s, with)) {
    case STREAM_MORE:
        return with->now_ms;
    case STREAM_WAITS:
        return s->source->moves && !service_several(pump->api->service) ? INT64_MAX
                                                                        : with->now_ms + s->source->look_ms;
    case STREAM_OVER:
        break;
    }
    end_stream(s);
    return INT64_MAX;
}

// Every second: streams of revoked tokens end, silent ones get a sign of life.
static void look_after(struct pump *pump, int64_t *looked)
{
    int64_t now = os_now().mono_ms;
    if (now - *looked < LOOK_MS) return;
    *looked = now;
    for (size_t i = 0; i < SLOTS; i++)
        for (struct stream *s = pump->slots[i]; s; s = s->next) {
            if (!s->open || s->ended || is_closed(s) || end_revoked(pump, s)) continue;
            if (s->sse && now - s->beat_ms >= HEARTBEAT_MS) stream_send(s, STR(": still here\n\n"));
        }
}

// One round: each stream that is due has its turn once. Returns when the next is due.
static int64_t serve_all(struct pump *pump, struct serving *with, int64_t *looked)
{
    int64_t began = os_now().mono_ms, next = INT64_MAX;
    with->portion.valid = false;
    for (size_t i = 0; i < SLOTS; i++)
        for (struct stream *s = pump->slots[i]; s && !pump->stop; s = s->next) {
            if (!s->open || s->ended || is_closed(s)) continue;
            if (s->moved || s->due_ms <= began) {
                s->moved = false;
                pthread_mutex_unlock(&pump->mutex);
                s->due_ms = serve(pump, s, with);
                pthread_mutex_lock(&pump->mutex);
                look_after(pump, looked); // also while there is more to send than can be
            }
            if (s->due_ms < next) next = s->due_ms;
        }
    return next;
}

static void free_closed(struct pump *pump)
{
    for (size_t i = 0; i < SLOTS; i++)
        for (struct stream **at = &pump->slots[i]; *at;) {
            struct stream *s = *at;
            if (!s->open || !is_closed(s)) { // net says when the stream is over, so it must exist until then
                at = &s->next;
                continue;
            }
            end_stream(s);
            *at = s->next;
            __atomic_fetch_sub(&pump->count, 1, __ATOMIC_RELAXED);
            stream_free(s);
        }
}

static void *run_pump(void *context)
{
    struct pump *pump = context;
    int64_t looked = 0, next = INT64_MAX;
    struct serving with = {.api = pump->api};
    arena_init(&with.arena, 256 * 1024, (size_t)512 << 20);
    arena_init(&with.scratch, 256 * 1024, (size_t)64 << 20);
    buf_init(&with.out, (size_t)256 << 20);
    pthread_mutex_lock(&pump->mutex);
    while (!pump->stop) {
        int64_t until = os_now().mono_ms + LOOK_MS;
        if (!pump->woken) os_wait_until(&pump->arrived, &pump->mutex, next < until ? next : until);
        pump->woken = false;
        if (!with.store) with.store = service_reader(pump->api->service);
        if (with.store) next = serve_all(pump, &with, &looked);
        look_after(pump, &looked);
        free_closed(pump);
    }
    pthread_mutex_unlock(&pump->mutex);
    if (with.store) store_close(with.store);
    buf_release(&with.out);
    arena_release(&with.arena);
    arena_release(&with.scratch);
    return NULL;
}

// ---- opening streams

static void on_closed(void *context, enum net_end why)
{
    struct stream *s = context;
    if (why == NET_END_SLOW)
        os_log(LOG_WARN, "stream cut why=\"its client does not read\" token=%.*s", STR_ARG(s->token));
    __atomic_store_n(&s->closed, true, __ATOMIC_RELEASE);
}

struct stream *stream_new(struct ask *ask, const struct stream_source *source, struct str tenant, struct str run)
{
    struct stream *s = calloc(1, source->size);
    if (s) {
        arena_init(&s->memory, 1024, 1 << 20);
        s->source = source;
        s->tenant = tenant;
        s->run = run;
        s->token = ask->call->who.id;
        s->expires_ms = ask->call->who.is_foreign ? ask->call->who.expires_ms : 0;
        s->session = ask->call->who.session;
        s->session_ms = ask->call->who.session_ms;
        if (ARENA_KEEP(&s->memory, &s->tenant, &s->run, &s->token, &s->session)) return s;
        stream_free(s);
    }
    call_nomem(ask->call);
    return NULL;
}

void stream_drop(struct ask *ask, struct stream *s)
{
    stream_free(s);
    call_nomem(ask->call);
}

// Takes the stream into the list. Gives why not: it is as many as there may be, or the service is stopping.
static const char *enter(struct pump *pump, struct stream *s)
{
    size_t of_token = 0, of_source = 0;
    const char *why = NULL;
    LOCKED(&pump->mutex);
    for (size_t i = 0; i < SLOTS; i++)
        for (const struct stream *other = pump->slots[i]; other; other = other->next) {
            if (is_closed(other)) continue;
            of_token += str_eq(other->token, s->token);
            of_source += other->source == s->source;
        }
    if (pump->stop) why = "the service is stopping";
    if (s->source->most > 0 && of_source >= s->source->most) why = s->source->too_many;
    if (of_token >= pump->api->options.streams_per_token)
        why = "this token has as many streams open already as it may have";
    if (!why) {
        struct stream **slot = &pump->slots[slot_of(s->run)];
        s->next = *slot;
        *slot = s;
        __atomic_fetch_add(&pump->count, 1, __ATOMIC_RELAXED);
    }
    return why;
}

bool stream_begin(struct ask *ask, struct stream *s, const char *type, struct str first)
{
    struct pump *pump = ask->api->pump;
    struct call *call = ask->call;
    const char *why = enter(pump, s);
    if (why) {
        stream_free(s);
        call->answer.retryable = true;
        call->answer.retry_after_ms = 5000;
        return call_problem(call, 429, "TOO_MANY_STREAMS", "%s", why);
    }
    struct http_header headers[] = {
        {STR("Content-Type"), str_from(type)},
        {STR("Cache-Control"), STR("no-store")},
        {STR("X-Accel-Buffering"), STR("no")},
    };
    count_answer(ask, 200);
    s->net = net_stream(ask->exchange, 200, headers, ARRAY_COUNT(headers), on_closed, s);
    call_free(call);
    if (s->sse) stream_send(s, STR("retry: 2000\n\n"));
    if (first.len > 0) stream_send(s, first);
    LOCKED(&pump->mutex);
    s->open = true;
    if (pump->stop) end_stream(s);
    wake(pump);
    return true;
}

// ---- beginning and end

struct pump *pump_new(struct api *api)
{
    struct pump *pump = calloc(1, sizeof(*pump));
    if (!pump) return NULL;
    pump->api = api;
    pthread_mutex_init(&pump->mutex, NULL);
    os_condition(&pump->arrived);
    return pump;
}

enum code pump_start(struct pump *pump, struct error *err)
{
    if (pthread_create(&pump->thread, NULL, run_pump, pump)) return error_set(err, E_LIMIT, "no thread for streams");
    pump->running = true;
    return OK;
}

void pump_stop(struct pump *pump)
{
    if (!pump) return;
    pthread_mutex_lock(&pump->mutex);
    pump->stop = true;
    wake(pump);
    pthread_mutex_unlock(&pump->mutex);
    if (pump->running) pthread_join(pump->thread, NULL);
    pump->running = false;
    pthread_mutex_lock(&pump->mutex);
    for (size_t i = 0; i < SLOTS; i++)
        for (struct stream *s = pump->slots[i]; s; s = s->next)
            if (s->open) end_stream(s);
    pthread_mutex_unlock(&pump->mutex);
}

void pump_close(struct pump *pump)
{
    if (!pump) return;
    pump_stop(pump);
    for (size_t i = 0; i < SLOTS; i++)
        for (struct stream *s = pump->slots[i], *next; s; s = next) {
            next = s->next;
            stream_free(s);
        }
    pthread_mutex_destroy(&pump->mutex);
    pthread_cond_destroy(&pump->arrived);
    free(pump);
}
