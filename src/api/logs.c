// What steps wrote: as text, as lines of JSON, as a stream; whole, in parts, or as it comes.
//
// A log is a file that grows (docs/format/logs.md). For those who follow it the pump looks into the file several times a second.
// Lines of a stream have the place behind them as their id, ATTEMPT.ENGINE.BYTES, where a reader that comes back goes on; the id of the
// end is ATTEMPT.ENGINE.end.
#include "api/inside.h"

#include <fcntl.h>
#include <unistd.h>

enum form { FORM_TEXT = 1, FORM_LINES, FORM_SSE };
enum { LOOK_MS = 150, HEAD_MS = 1000, FOLLOW_MAX = 256, PIECE = 64 * 1024 };

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
    struct stream stream;
    struct str path; // in the stream's memory
    enum form form;
    uint32_t attempt, engine;
    off_t at;          // bytes of the file that were sent
    bool last_look;    // the run has ended: what is there now is all
    int64_t looked_ms; // monotonic: at the run
};

// The last line has no id: a client that has not seen the end behind it comes back to both.
static void write_new(const struct follower *f, struct arena *scratch, const struct tool_log_line *line, size_t behind,
                      struct buf *out)
{
    if (f->form == FORM_SSE && line->kind != TOOL_LOG_END)
        buf_printf(out, "id: %u.%u.%lld\n", f->attempt, f->engine, (long long)f->at + (long long)behind);
    if (f->form == FORM_SSE) buf_text(out, "data: ");
    write_line(scratch, out, line, f->form);
    if (f->form == FORM_SSE) buf_byte(out, '\n');
}

static void send_end(struct follower *f, struct buf *out)
{
    buf_clear(out);
    buf_printf(out, "id: %u.%u.end\nevent: end\ndata: {}\n\n", f->attempt, f->engine);
    stream_send(&f->stream, buf_str(out));
}

// Whole lines that are new. False: nothing was.
static bool send_new(struct follower *f, struct serving *with, bool *over)
{
    size_t used = 0;
    struct buf *out = &with->out;
    char *piece = arena_alloc(&with->scratch, PIECE);
    int fd = piece ? open(f->path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t got = fd < 0 ? 0 : pread(fd, piece, PIECE, f->at);
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    struct str rest = {piece, (size_t)got};
    buf_clear(out);
    for (size_t end_at; (end_at = str_find(rest, '\n', 0)) < rest.len;) {
        struct tool_log_line line;
        used += end_at + 1;
        if (tool_log_parse(str_slice(rest, 0, end_at), &line)) {
            write_new(f, &with->scratch, &line, used, out);
            *over = *over || line.kind == TOOL_LOG_END;
        }
        rest = str_slice(rest, end_at + 1, rest.len);
    }
    f->at += (off_t)used;
    if (out->len > 0) stream_send(&f->stream, buf_str(out));
    return used > 0;
}

static enum stream_turn serve_log(struct stream *stream, struct serving *with)
{
    struct follower *f = CONTAINER_OF(stream, struct follower, stream);
    struct run_head head;
    struct error err = {0};
    bool over = false;
    arena_reset(&with->scratch);
    bool any = send_new(f, with, &over);
    if (any && !over) return STREAM_MORE;
    if (over || f->last_look) {
        if (stream->sse) send_end(f, &with->out);
        return STREAM_OVER;
    }
    if (with->now_ms - f->looked_ms >= HEAD_MS) {
        enum code rc = store_head(with->store, stream->tenant, stream->run, &with->scratch, &head, &err);
        f->last_look = rc == E_NOT_FOUND || (rc == OK && head.terminal);
        f->looked_ms = with->now_ms;
    }
    return STREAM_WAITS;
}

static const struct stream_source log_source = {.size = sizeof(struct follower),
                                                .serve = serve_log,
                                                .look_ms = LOOK_MS,
                                                .most = FOLLOW_MAX,
                                                .too_many = "too many logs are followed already"};

static const char *type_of(enum form form)
{
    return form == FORM_SSE     ? "text/event-stream"
           : form == FORM_LINES ? "application/x-ndjson"
                                : "text/plain; charset=utf-8";
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

static bool begin_following(struct ask *ask, const struct run_head *head, struct str path, enum form form,
                            uint32_t attempt, uint32_t engine)
{
    struct seen seen;
    if (!read_seen(ask, &seen)) return false;
    bool same = seen.attempt == attempt && seen.engine == engine;
    if (same && seen.end) { // what makes an EventSource not come back
        return answer_text(ask, 204, NULL, (struct str){0});
    }
    struct stream *stream = stream_new(ask, &log_source, head->ids.tenant, head->ids.run);
    if (!stream) return false;
    struct follower *f = CONTAINER_OF(stream, struct follower, stream);
    stream->sse = form == FORM_SSE;
    f->form = form;
    f->attempt = attempt;
    f->engine = engine;
    f->at = same ? place_of(path, seen.bytes) : 0;
    f->path = path;
    if (ARENA_KEEP(&stream->memory, &f->path))
        stream_begin(ask, stream, type_of(form), (struct str){0});
    else
        stream_drop(ask, stream);
    return true;
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

static bool tell_whole(struct ask *ask, struct str path, int64_t attempt, enum form form)
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
    return true;
}

// Of what the caller leaves open, the latest: attempt, and engine attempt of that attempt (0 = open). False: answered.
static bool choose_attempt(struct ask *ask, struct store *store, const struct run_head *head, int64_t *attempt,
                           int64_t *engine)
{
    struct folded folded SCOPED(folded_release) = {0};
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
    if (!step)
        return call_problem(ask->call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    if (*attempt == 0) *attempt = last;
    if (*engine == 0) *engine = tries;
    return true;
}

bool tell_logs(struct ask *ask, struct store *store, const struct run_head *head)
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
        return false;
    if (store_logs_dir(store, &head->ids, &call->arena, &dir)) return call_nomem(ask->call);
    if (dir.len == 0) return call_problem(call, 404, "LOG_NOT_FOUND", "this store keeps no logs");
    tool_log_name(ask->params[1], (uint32_t)attempt, (uint32_t)engine, name);
    struct str path = call_text(call, "%.*s/%s", STR_ARG(dir), name);
    if (form == FORM_SSE || follow) return begin_following(ask, head, path, form, (uint32_t)attempt, (uint32_t)engine);
    return tell_whole(ask, path, attempt, form);
}

