// What steps wrote: as text, as lines of JSON, as a stream; whole, in parts, or as it comes.
//
// A log is a file that grows (docs/format/logs.md). Those who follow are served by one thread, which looks into their files
// several times a second while there are any. Lines of a stream have the place behind them as their id, ATTEMPT.ENGINE.BYTES, where
// a reader that comes back goes on; the id of the end is ATTEMPT.ENGINE.end.
#include "api/inside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum form { FORM_TEXT = 1, FORM_LINES, FORM_SSE };
enum {
    LOOK_MS = 150,
    LATER_MS = 20,
    HEAD_MS = 1000,
    BEAT_MS = 15000,
    FOLLOW_MAX = 256,
    PIECE = 64 * 1024,
    QUEUED_MAX = 256 * 1024
};

// ---- one line

// {"at","stream","text"}; the end and a cut are lines, too.
static struct json line_json(struct arena *arena, const struct tool_log_line *line)
{
    static const char *const names[] = {"", "stdout", "stderr", "cut", "end"};
    return JSON_OF(arena, {"at", json_time(arena, line->at_ms)}, {"stream", json_word(names[line->kind])},
                   {"text", json_string(line->text)}, {"open", json_flag(line->open)});
}

static void write_line(struct arena *arena, struct buf *out, const struct tool_log_line *line, enum form form)
{
    if (form != FORM_TEXT) {
        struct json object = line_json(arena, line);
        json_write(out, &object);
        buf_text(out, "\n");
    } else if (line->kind == TOOL_LOG_CUT) {
        buf_text(out, "[the log was cut here]\n");
    } else if (line->kind != TOOL_LOG_END) {
        buf_add(out, line->text);
        if (!line->open) buf_byte(out, '\n');
    }
}

// ---- following

struct follower {
    struct follower *next;
    struct net_stream *stream;
    struct arena memory;
    struct str tenant, run, token, path; // in `memory`
    enum form form;
    uint32_t attempt, engine;
    off_t at;        // bytes of the file that were sent
    bool closed;     // the stream is over; set by the net thread
    bool ended;      // net_stream_end was called
    bool last_look;  // the run has ended: what is there now is all
    int64_t beat_ms; // monotonic
};

struct followers { // shared: mutex inside
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    pthread_t thread;
    bool running, stop;
    struct follower *first;
    size_t count;
};

static bool is_closed(const struct follower *f)
{
    return __atomic_load_n(&f->closed, __ATOMIC_ACQUIRE);
}

static void on_closed(void *context, enum net_end why)
{
    struct follower *f = context;
    (void)why;
    __atomic_store_n(&f->closed, true, __ATOMIC_RELEASE);
}

static void end(struct follower *f)
{
    if (!f->ended) net_stream_end(f->stream);
    f->ended = true;
}

static void release(struct follower *f)
{
    arena_release(&f->memory);
    free(f);
}

// The last line has no id: who has not seen the end behind it comes back to both.
static void write_new(const struct follower *f, struct arena *scratch, const struct tool_log_line *line, size_t behind,
                      struct buf *out)
{
    if (f->form == FORM_SSE && line->kind != TOOL_LOG_END)
        buf_printf(out, "id: %u.%u.%lld\n", f->attempt, f->engine, (long long)f->at + (long long)behind);
    if (f->form == FORM_SSE) buf_text(out, "data: ");
    write_line(scratch, out, line, f->form);
    if (f->form == FORM_SSE) buf_byte(out, '\n');
}

static void tell_end(struct follower *f)
{
    struct buf out = buf_of(256);
    buf_printf(&out, "id: %u.%u.end\nevent: end\ndata: {}\n\n", f->attempt, f->engine);
    net_stream_send(f->stream, buf_str(&out));
    buf_release(&out);
}

// Whole lines that are new. False: nothing was.
static bool tell_new(struct follower *f, struct arena *scratch, char piece[PIECE], bool *over)
{
    struct buf out;
    size_t used = 0;
    int fd = open(f->path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd < 0 ? 0 : pread(fd, piece, PIECE, f->at);
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    struct str rest = {piece, (size_t)got};
    buf_init(&out, (size_t)16 << 20);
    for (size_t end_at; (end_at = str_find(rest, '\n', 0)) < rest.len;) {
        struct tool_log_line line;
        used += end_at + 1;
        if (tool_log_parse(str_slice(rest, 0, end_at), &line)) {
            write_new(f, scratch, &line, used, &out);
            *over = *over || line.kind == TOOL_LOG_END;
        }
        rest = str_slice(rest, end_at + 1, rest.len);
    }
    f->at += (off_t)used;
    if (out.len > 0) net_stream_send(f->stream, buf_str(&out));
    buf_release(&out);
    arena_reset(scratch);
    return used > 0;
}

// True: there is more, for which its client must take first what it was sent.
static bool serve(struct api *api, struct store *store, struct follower *f, struct arena *scratch, char piece[PIECE],
                  bool look, int64_t now)
{
    struct run_head head;
    struct error err = {0};
    bool over = false, later = false;
    if (f->ended || is_closed(f)) return false;
    if (!service_token_valid(api->service, f->token)) {
        net_stream_cut(f->stream, f->form == FORM_SSE ? STR("event: revoked\ndata: {}\n\n") : STR(""));
        end(f);
        return false;
    }
    while (!over && !later && tell_new(f, scratch, piece, &over)) {
        f->beat_ms = now;
        later = net_stream_queued(f->stream) > QUEUED_MAX;
    }
    if (over || (f->last_look && !later)) {
        if (f->form == FORM_SSE) tell_end(f);
        end(f);
        return false;
    }
    if (f->form == FORM_SSE && now - f->beat_ms >= BEAT_MS) {
        f->beat_ms = now;
        net_stream_send(f->stream, STR(": still here\n\n"));
    }
    if (!look) return later;
    if (store) {
        enum code rc = store_head(store, f->tenant, f->run, scratch, &head, &err);
        f->last_look = rc == E_NOT_FOUND || (rc == OK && head.terminal);
        arena_reset(scratch);
    }
    return later;
}

static void free_closed(struct followers *all)
{
    for (struct follower **at = &all->first; *at;) {
        struct follower *f = *at;
        if (!is_closed(f)) { // it is called when the stream is over, so it must exist until then
            at = &f->next;
            continue;
        }
        end(f);
        *at = f->next;
        all->count--;
        release(f);
    }
}

static void *follow(void *context)
{
    struct api *api = context;
    struct followers *all = api->followers;
    struct store *store = NULL;
    struct arena scratch;
    int64_t looked = 0;
    bool later = false;
    char *piece = malloc(PIECE);
    arena_init(&scratch, PIECE, (size_t)64 << 20);
    pthread_mutex_lock(&all->mutex);
    while (piece && !all->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (later ? LATER_MS : LOOK_MS) * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (all->first)
            pthread_cond_timedwait(&all->arrived, &all->mutex, &until);
        else
            pthread_cond_wait(&all->arrived, &all->mutex);
        if (!store) store = service_reader(api->service);
        int64_t now = os_now().mono_ms;
        bool look = now - looked >= HEAD_MS;
        if (look) looked = now;
        // New ones come first in the list, and only this thread takes any out: it can be walked without the mutex.
        struct follower *first = all->first;
        pthread_mutex_unlock(&all->mutex);
        later = false;
        for (struct follower *f = first; f; f = f->next)
            later = serve(api, store, f, &scratch, piece, look, now) || later;
        pthread_mutex_lock(&all->mutex);
        free_closed(all);
    }
    pthread_mutex_unlock(&all->mutex);
    if (store) store_close(store);
    arena_release(&scratch);
    free(piece);
    return NULL;
}

enum code followers_start(struct api *api, struct error *err)
{
    struct followers *all = calloc(1, sizeof(*all));
    pthread_condattr_t attributes;
    if (!all) return error_nomem(err);
    pthread_mutex_init(&all->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&all->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    api->followers = all;
    if (pthread_create(&all->thread, NULL, follow, api)) return error_set(err, E_LIMIT, "no thread for logs");
    all->running = true;
    return OK;
}

void followers_stop(struct api *api)
{
    struct followers *all = api->followers;
    if (!all || !all->running) return;
    pthread_mutex_lock(&all->mutex);
    all->stop = true;
    pthread_cond_signal(&all->arrived);
    pthread_mutex_unlock(&all->mutex);
    pthread_join(all->thread, NULL);
    all->running = false;
    for (struct follower *f = all->first; f; f = f->next) end(f);
}

void followers_close(struct api *api)
{
    struct followers *all = api->followers;
    if (!all) return;
    followers_stop(api);
    for (struct follower *f = all->first, *next; f; f = next) {
        next = f->next;
        release(f);
    }
    pthread_mutex_destroy(&all->mutex);
    pthread_cond_destroy(&all->arrived);
    free(all);
    api->followers = NULL;
}

static const char *type_of(enum form form)
{
    return form == FORM_SSE     ? "text/event-stream"
           : form == FORM_LINES ? "application/x-ndjson"
                                : "text/plain; charset=utf-8";
}

size_t followers_of(struct api *api, struct str token)
{
    struct followers *all = api->followers;
    size_t count = 0;
    pthread_mutex_lock(&all->mutex);
    for (const struct follower *f = all->first; f; f = f->next) count += !is_closed(f) && str_eq(f->token, token);
    pthread_mutex_unlock(&all->mutex);
    return count;
}

// What a client has seen of a log. False: answered.
struct seen {
    int64_t attempt, engine, bytes;
    bool end;
};

static bool read_seen(struct ask *ask, struct seen *seen)
{
    struct str text = http_find(ask->request, "last-event-id"), rest = text;
    *seen = (struct seen){0};
    if (text.len == 0) return true;
    bool whole = str_int64(str_cut(rest, '.', &rest), &seen->attempt) &&
                 str_int64(str_cut(rest, '.', &rest), &seen->engine) && seen->attempt > 0 && seen->engine > 0;
    seen->end = str_is(rest, "end");
    if (whole && (seen->end || (str_int64(rest, &seen->bytes) && seen->bytes >= 0))) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "Last-Event-ID is none of a log: ATTEMPT.ENGINE.BYTES");
}

// Where to go on: behind a line of this log, else at its beginning.
static off_t place_of(struct str path, int64_t bytes)
{
    char before = '\0';
    int fd = bytes > 0 ? open(path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool there = fd >= 0 && pread(fd, &before, 1, (off_t)bytes - 1) == 1 && before == '\n';
    if (fd >= 0) close(fd);
    return there ? (off_t)bytes : 0;
}

static void begin_following(struct ask *ask, const struct run_head *head, struct str path, enum form form,
                            uint32_t attempt, uint32_t engine)
{
    struct followers *all = ask->api->followers;
    struct seen seen;
    if (!read_seen(ask, &seen)) return;
    bool same = seen.attempt == attempt && seen.engine == engine;
    if (same && seen.end) { // what makes an EventSource not come back
        answer_text(ask, 204, NULL, (struct str){0});
        return;
    }
    if (streams_too_many(ask)) return;
    pthread_mutex_lock(&all->mutex);
    bool full = all->count >= FOLLOW_MAX || all->stop;
    pthread_mutex_unlock(&all->mutex);
    if (full) {
        streams_full(ask, "too many logs are followed already");
        return;
    }
    struct follower *f = calloc(1, sizeof(*f));
    if (!f) {
        call_nomem(ask->call);
        return;
    }
    arena_init(&f->memory, 1024, 1 << 20);
    f->form = form;
    f->attempt = attempt;
    f->engine = engine;
    f->at = same ? place_of(path, seen.bytes) : 0;
    f->tenant = arena_copy(&f->memory, head->ids.tenant);
    f->run = arena_copy(&f->memory, head->ids.run);
    f->token = arena_copy(&f->memory, ask->call->who.id);
    f->path = arena_copy(&f->memory, path);
    f->beat_ms = os_now().mono_ms;
    if (!f->tenant.ptr || !f->run.ptr || !f->token.ptr || !f->path.ptr) {
        release(f);
        call_nomem(ask->call);
        return;
    }
    struct http_header headers[] = {
        {STR("Content-Type"), str_from(type_of(form))},
        {STR("Cache-Control"), STR("no-store")},
        {STR("X-Accel-Buffering"), STR("no")},
    };
    count_answer(ask, 200);
    f->stream = net_stream(ask->exchange, 200, headers, ARRAY_COUNT(headers), on_closed, f);
    call_free(ask->call);
    if (form == FORM_SSE) net_stream_send(f->stream, STR("retry: 2000\n\n"));
    pthread_mutex_lock(&all->mutex);
    f->next = all->first;
    all->first = f;
    all->count++;
    pthread_cond_signal(&all->arrived);
    pthread_mutex_unlock(&all->mutex);
}

// ---- as it is now

static bool write_lines(struct ask *ask, struct str file, enum form form, struct str *out)
{
    struct buf text = buf_of((size_t)64 << 20);
    while (file.len > 0) {
        struct tool_log_line line;
        if (tool_log_parse(str_cut(file, '\n', &file), &line)) write_line(&ask->call->arena, &text, &line, form);
    }
    *out = buf_keep(&text, &ask->call->arena);
    return out->ptr != NULL;
}

static void tell_whole(struct ask *ask, struct str path, int64_t attempt, enum form form)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct byte_range range;
    struct str bytes, out;
    enum code rc = os_read_file(path.ptr, (size_t)64 << 20, &call->arena, &bytes, &err);
    if (rc == E_NOT_FOUND)
        call_problem(call, 404, "LOG_NOT_FOUND", "attempt %lld of step %.*s has written nothing here",
                     (long long)attempt, STR_ARG(ask->params[1]));
    else if (rc)
        call_failed(call, &err);
    else if (!write_lines(ask, bytes, form, &out))
        call_nomem(ask->call);
    else if (range_of(ask, out.len, &range))
        answer_slice(ask, type_of(form), str_slice(out, range.from, range.from + range.size), &range, (struct str){0});
}

// Of what the caller leaves open, the latest: attempt, and engine attempt of that attempt (0 = open). False: answered.
static bool choose_attempt(struct ask *ask, struct store *store, const struct run_head *head, int64_t *attempt,
                           int64_t *engine)
{
    struct folded folded;
    struct error err = {0};
    if (*attempt > 0 && *engine > 0) return true;
    if (reading_fold(store, head, READING_NOW, &ask->call->arena, &folded, &err)) return call_failed(ask->call, &err);
    uint32_t wanted = (uint32_t)*attempt, last = 1, tries = 1;
    const struct step_view *step = view_step(&folded.view, ask->params[1]);
    for (size_t k = 0; step && k < step->attempt_count; k++) {
        if (wanted > 0 && step->attempts[k].logical != wanted) continue;
        last = step->attempts[k].logical;
        tries = step->attempts[k].engine;
    }
    folded_release(&folded);
    if (!step)
        return call_problem(ask->call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    if (*attempt == 0) *attempt = last;
    if (*engine == 0) *engine = tries;
    return true;
}

void tell_logs(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct str dir;
    bool follow;
    char name[TOOL_LOG_NAME_SIZE];
    int64_t attempt, engine;
    static const char *const types[] = {"text/event-stream", "application/x-ndjson", "text/plain"};
    static const enum form forms[] = {FORM_SSE, FORM_LINES, FORM_TEXT};
    enum form form = forms[accept_best(ask->request, types, ARRAY_COUNT(types))];
    if (!query_number(ask, "attempt", 1, INT32_MAX, 0, &attempt) ||
        !query_number(ask, "engineAttempt", 1, INT32_MAX, 0, &engine) || !query_flag(ask, "follow", &follow) ||
        !choose_attempt(ask, store, head, &attempt, &engine))
        return;
    if (store_logs_dir(store, &head->ids, &call->arena, &dir)) {
        call_nomem(ask->call);
        return;
    }
    if (dir.len == 0) {
        call_problem(call, 404, "LOG_NOT_FOUND", "this store keeps no logs");
        return;
    }
    tool_log_name(ask->params[1], (uint32_t)attempt, (uint32_t)engine, name);
    struct str path = call_text(call, "%.*s/%s", STR_ARG(dir), name);
    if (form == FORM_SSE || follow)
        begin_following(ask, head, path, form, (uint32_t)attempt, (uint32_t)engine);
    else
        tell_whole(ask, path, attempt, form);
}

