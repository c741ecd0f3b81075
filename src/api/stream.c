// Streams of events (SSE). The engine says which runs have moved; what is sent is read from the store, so that a stream has what is
// stored, in its order and without gaps, whenever it was opened.
#include "api/inside.h"

enum { READ_MAX = 256, SEND_MAX = 128 * 1024, ELSEWHERE_MS = 200 };

struct subscription {
    struct stream stream;
    struct stream_ask ask; // strings in the stream's memory
    uint64_t last;         // sequence, or position, that was looked at
    uint64_t sent;         // the last id that was sent
};

static void write_event(struct buf *out, struct subscription *s, uint64_t id, struct str type, struct str text)
{
    uint64_t previous = s->last;
    s->sent = id;
    buf_printf(out, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)id, STR_ARG(type));
    // The record is an object on one line, as it is stored; before its members comes the number of the event before, so that a
    // reader can tell a gap from a loss.
    buf_byte(out, '{');
    json_write_string(out, STR("prevSeq"));
    buf_printf(out, ":%llu,%.*s\n\n", (unsigned long long)previous, (int)text.len - 1, text.ptr + 1);
}

static enum code read_portion(struct store *store, const struct subscription *s, struct serving *with, struct error *err)
{
    struct portion *portion = &with->portion;
    struct str tenant = s->ask.tenant, run = s->ask.run;
    bool same = portion->valid && portion->after == s->last && str_eq(portion->run, run) && str_eq(portion->tenant, tenant);
    if (same) return OK;
    arena_reset(&with->arena);
    *portion = (struct portion){.tenant = tenant, .run = run, .after = s->last, .valid = true};
    if (run.len == 0) return store_feed(store, s->last, READ_MAX, &with->arena, &portion->feed, err);
    enum code rc = store_head(store, tenant, run, &with->arena, &portion->head, err);
    struct record_range range = {.tenant = tenant, .run = run, .after = s->last, .limit = READ_MAX};
    if (!rc) rc = store_read(store, &range, &with->arena, &portion->records, err);
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

static enum code write_run(struct subscription *s, struct serving *with, struct error *err)
{
    const struct portion *portion = &with->portion;
    struct buf *out = &with->out;
    struct showing showing = {
        .store = with->store, .contract = service_contract(with->api->service), .head = &portion->head, .to = s->ask.as};
    for (size_t i = 0; i < portion->records.count && out->len < SEND_MAX; i++) {
        const struct record *record = &portion->records.items[i];
        struct told_event event;
        enum code rc = event_tell(&showing, &s->ask, record, &with->arena, &event, err);
        if (rc) return rc;
        if (event.text.len > 0) write_event(out, s, record->seq, event.type, event.text);
        s->last = record->seq;
    }
    return OK;
}

static enum code write_feed(struct subscription *s, struct serving *with, struct error *err)
{
    const struct portion *portion = &with->portion;
    struct buf *out = &with->out;
    struct feed_known known = {0};
    enum code rc = OK;
    size_t i = 0;
    for (; !rc && i < portion->feed.count && out->len < SEND_MAX; i++) {
        const struct feed_item *item = &portion->feed.items[i];
        struct str text = item->record.bytes;
        bool meant = str_eq(item->tenant, s->ask.tenant) && types_have(s->ask.types, item->record.type) &&
                     stream_sees(&s->ask, with->store, item->run, &with->arena, &known);
        if (meant && s->ask.redacted) rc = redact_event(&text, &with->arena, err);
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
static void send_end(struct subscription *s, struct buf *out)
{
    buf_clear(out);
    if (s->sent != s->last) buf_printf(out, "id: %llu\n", (unsigned long long)s->last);
    buf_text(out, "event: end\ndata: {}\n\n");
    stream_send(&s->stream, buf_str(out));
}

static enum stream_turn serve_events(struct stream *stream, struct serving *with)
{
    struct subscription *s = CONTAINER_OF(stream, struct subscription, stream);
    const struct portion *portion = &with->portion;
    struct buf *out = &with->out;
    struct error err = {0};
    buf_clear(out);
    enum code rc = read_portion(with->store, s, with, &err);
    bool full = portion->records.count == READ_MAX || portion->feed.count == READ_MAX;
    if (!rc) rc = s->ask.run.len > 0 ? write_run(s, with, &err) : write_feed(s, with, &err);
    if (rc || !buf_ok(out)) {
        os_log(LOG_WARN, "stream ended why=\"%s\"", rc ? err.message : "out of memory");
        return STREAM_OVER;
    }
    if (out->len > 0 && !stream_send(stream, buf_str(out))) return STREAM_WAITS; // it is closed
    if (!told_all(s, portion)) return STREAM_MORE;
    if (!portion->ended && !portion->gone) return full ? STREAM_MORE : STREAM_WAITS;
    send_end(s, out);
    return STREAM_OVER;
}

static const struct stream_source events_source = {
    .size = sizeof(struct subscription), .serve = serve_events, .moves = true, .look_ms = ELSEWHERE_MS};

static bool keep_names(struct stream *stream, struct names *names)
{
    struct str *copy = ARENA_ARRAY(&stream->memory, names->count + 1, struct str);
    for (size_t i = 0; copy && i < names->count; i++) {
        copy[i] = names->at[i];
        if (!ARENA_KEEP(&stream->memory, &copy[i])) return false;
    }
    names->at = copy;
    return copy != NULL;
}

bool events_stream(struct ask *ask, const struct stream_ask *wanted)
{
    struct stream *stream = stream_new(ask, &events_source, wanted->tenant, wanted->run);
    struct str first = {0};
    if (!stream) return false;
    struct subscription *s = CONTAINER_OF(stream, struct subscription, stream);
    s->ask = *wanted;
    s->ask.tenant = stream->tenant;
    s->ask.run = stream->run;
    s->last = wanted->after;
    stream->sse = true;
    // The reader is ahead of the log, so it has seen another one (a restored store, a run that was removed and begun anew): it must
    // read the run again, and hears from here what comes.
    if (wanted->resync)
        first = arena_format(&stream->memory, "id: %llu\nevent: resync\ndata: {\"lastSeq\":%llu}\n\n",
                             (unsigned long long)s->last, (unsigned long long)s->last);
    if (ARENA_KEEP(&stream->memory, &s->ask.types, &s->ask.step, &s->ask.project, &s->ask.environment) &&
        keep_names(stream, &s->ask.projects) && keep_names(stream, &s->ask.environments) && (first.ptr || !wanted->resync))
        stream_begin(ask, stream, "text/event-stream", first);
    else
        stream_drop(ask, stream);
    return true;
}
