// Finding a NATS server, saying who we are, and asking its stream whether it still has what it acknowledged.
#include "bus/nats.h"

#include "http/http.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX (4 * PAGE_BYTES)
#define HEAD_MAX (256 * 1024)
#define STREAM_MISSING 404

struct address {
    char host[256], port[8];
    bool tls;
};

// nats://HOST[:PORT] or tls://HOST[:PORT]. Who we are is never part of it: an address is shown in messages.
static enum code read_address(struct str url, struct address *out, struct error *err)
{
    struct str host = {0}, port = {0};
    int64_t number = 4222;
    out->tls = str_starts(url, STR("tls://"));
    if (!out->tls && !str_starts(url, STR("nats://"))) return error_set(err, E_INVALID, "must be nats:// or tls://");
    struct str rest = str_slice(url, out->tls ? 6 : 7, url.len);
    if (str_ends(rest, STR("/"))) rest = str_slice(rest, 0, rest.len - 1);
    bool good = http_host_split(rest, &host, &port) && host.len > 0 && host.len < sizeof(out->host) &&
                (port.len == 0 || (str_int64(port, &number) && number > 0 && number < 65536));
    if (!good) return error_set(err, E_INVALID, "must be nats://HOST:PORT or tls://HOST:PORT");
    if (host.ptr[0] == '[') host = str_slice(host, 1, host.len - 1);
    snprintf(out->host, sizeof(out->host), "%.*s", STR_ARG(host));
    snprintf(out->port, sizeof(out->port), "%d", (int)number);
    return OK;
}

enum code nats_url_check(struct str url, struct error *err)
{
    struct address address;
    return read_address(url, &address, err);
}

enum code nats_write(struct nats *nats, struct str bytes, int64_t deadline, struct error *err)
{
    nats->wire.deadline = deadline;
    return wire_send(&nats->wire, bytes, err);
}

enum code nats_await(struct nats *nats, enum nats_frame_kind kind, struct str subject, int64_t deadline, struct nats_frame *frame,
                     struct error *err)
{
    for (;;) {
        bool bad = false;
        size_t got = 0;
        while (nats_frame(nats, frame, &bad)) {
            if (frame->kind == FRAME_ERROR) return error_set(err, E_DENIED, "%.*s", STR_ARG(frame->text));
            if (frame->kind == kind && (!subject.len || str_eq(frame->subject, subject))) return OK;
            enum code rc = OK;
            if (frame->kind == FRAME_PING) rc = nats_write(nats, STR("PONG\r\n"), deadline, err);
            if (rc) return rc;
        }
        if (bad) return error_set(err, E_INVALID, "the server does not speak NATS");
        nats->wire.deadline = deadline;
        enum code rc = wire_await(&nats->wire, err);
        if (!rc) rc = wire_recv_now(&nats->wire, &nats->in, &got, err);
        if (rc) return rc;
    }
}

static enum code greet(struct nats *nats, const struct nats_call *call, const struct address *to, int64_t deadline,
                       struct error *err)
{
    struct arena *arena = call->arena;
    struct nats_frame frame;
    struct json info;
    enum code rc = nats_await(nats, FRAME_INFO, (struct str){0}, deadline, &frame, err);
    if (rc) return rc;
    struct str text = arena_copy(arena, frame.text); // because reading goes on
    rc = text.ptr ? json_parse(text, NULL, arena, &info, err) : error_nomem(err);
    if (rc) return rc;
    const struct json *tls = json_key(&info, "tls_required");
    const struct json *headers = json_key(&info, "headers");
    if (!json_is(headers, JSON_BOOL) || !headers->boolean)
        return error_set(err, E_UNSUPPORTED, "the server is too old: it knows no headers");
    nats->max_payload = (uint64_t)json_integer(json_key(&info, "max_payload"), 0);
    nats_compact(nats);
    if (to->tls || json_true(tls)) {
        rc = wire_secure(&nats->wire, &(struct wire_tls){.host = to->host, .ca_file = call->ca_file}, err);
        if (rc) return rc;
    }
    snprintf(nats->inbox, sizeof(nats->inbox), "_INBOX.cairn%016llx.", (unsigned long long)entropy_number(os_entropy()));
    buf_text(&nats->out, "CONNECT ");
    rc = nats_connect_write(&call->who, &info, arena, &nats->out, err);
    if (rc) return rc;
    buf_printf(&nats->out, "\r\nSUB %s> 1\r\nPING\r\n", nats->inbox);
    rc = buf_ok(&nats->out) ? nats_write(nats, buf_str(&nats->out), deadline, err) : error_nomem(err);
    explicit_bzero(nats->out.ptr, nats->out.len); // it says a password, perhaps
    buf_clear(&nats->out);
    if (!rc) rc = nats_await(nats, FRAME_PONG, (struct str){0}, deadline, &frame, err);
    return rc;
}

// ---- does the stream still have what it said it stored?

// NATS acknowledges before its disk has the message, so a power cut can take acknowledged ones. The cursor knows the stream's number at
// some positions; a stream that is behind one of them has lost everything after it, and gets it again.
static void compare(struct sink *sink, const struct json *info)
{
    struct sink_cursor *cursor = &sink->cursor;
    struct str created = json_text(json_key(info, "created"));
    uint64_t last = (uint64_t)json_integer(json_at(info, STR("state.last_seq")), 0);
    bool other = cursor->created[0] && !str_is(created, cursor->created);
    if (other || last < cursor->stream_seq) {
        size_t keep = 0;
        while (!other && keep < cursor->mark_count && cursor->marks[keep].seq <= last) keep++;
        sink->lost = true;
        sink->lost_position = keep ? cursor->marks[keep - 1].position : cursor->begin;
        cursor->mark_count = keep;
        cursor->stream_seq = keep ? cursor->marks[keep - 1].seq : 0;
        os_log(LOG_WARN, "stream has lost events, sending them again sink=%.*s stream=%s from=%llu",
               STR_ARG(sink->config.name), cursor->stream, (unsigned long long)sink->lost_position);
    }
    snprintf(cursor->created, sizeof(cursor->created), "%.*s", STR_ARG(created));
}

static enum code ask_stream(struct sink *sink, struct nats *nats, int64_t deadline, struct error *err)
{
    struct str name = sink->config.stream.len ? sink->config.stream : str_from(sink->cursor.stream);
    char subject[64];
    struct nats_frame frame;
    struct json info;
    if (!name.len) return OK; // no message has been stored anywhere yet
    snprintf(subject, sizeof(subject), "%sstream", nats->inbox);
    buf_printf(&nats->out, "PUB $JS.API.STREAM.INFO.%.*s %s 0\r\n\r\n", STR_ARG(name), subject);
    enum code rc = buf_ok(&nats->out) ? nats_write(nats, buf_str(&nats->out), deadline, err) : error_nomem(err);
    buf_clear(&nats->out);
    if (!rc) rc = nats_await(nats, FRAME_MESSAGE, str_from(subject), deadline, &frame, err);
    if (rc == E_DENIED) return error_set(err, E_DENIED, "may not ask for the stream");
    if (rc) return rc;
    if (frame.head.len) return error_set(err, E_IO, "JetStream is not there");
    arena_reset(&sink->loading);
    struct str text = arena_copy(&sink->loading, frame.text);
    rc = text.ptr ? json_parse(text, NULL, &sink->loading, &info, err) : error_nomem(err);
    if (rc) return rc;
    const struct json *error = json_key(&info, "error");
    bool missing = json_integer(json_key(error, "code"), 0) == STREAM_MISSING;
    if (error && (!missing || sink->config.stream.len))
        return error_set(err, E_IO, "stream %.*s: %.*s", STR_ARG(name),
                         STR_ARG(json_text(json_key(error, "description"))));
    if (error)
        sink_stream(sink, (struct str){0}); // it was another one's: whichever takes the subject now is the one
    else
        sink_stream(sink, name), compare(sink, &info);
    return OK;
}

// ---- all of it

void nats_hang_up(struct nats *nats)
{
    if (!nats) return;
    wire_close(&nats->wire);
    buf_release(&nats->in);
    buf_release(&nats->out);
    buf_release(&nats->head);
    free(nats);
}

enum code nats_dial(const struct nats_call *call, struct nats **out, struct error *err)
{
    struct address to;
    int64_t deadline = mono_now() + call->timeout_ms;
    *out = NULL;
    enum code rc = read_address(call->url, &to, err);
    if (rc) return rc;
    struct nats *nats = calloc(1, sizeof(*nats));
    if (!nats) return error_nomem(err);
    nats->wire = (struct wire){.fd = -1, .deadline = deadline, .stopped = call->stopped, .stop_context = call->context};
    buf_init(&nats->in, NATS_IN_MAX);
    buf_init(&nats->out, OUT_MAX);
    buf_init(&nats->head, HEAD_MAX);
    rc = wire_dial(&nats->wire, to.host, to.port, err);
    if (!rc) rc = greet(nats, call, &to, deadline, err);
    if (rc)
        nats_hang_up(nats);
    else
        *out = nats;
    return rc;
}

void nats_close(struct sink *sink)
{
    nats_hang_up(sink->wire);
    sink->wire = NULL;
}

static bool is_stopping(void *context)
{
    return atomic_load(&((struct sink *)context)->stopping);
}

enum code nats_open(struct sink *sink, struct error *err)
{
    const struct json *urls = sink->config.urls;
    int64_t deadline = mono_now() + sink->config.timeout_ms;
    struct nats_call call = {.url = urls->items[sink->downs % urls->count].text,
                             .ca_file = sink->config.ca_file,
                             .timeout_ms = sink->config.timeout_ms,
                             .arena = &sink->loading,
                             .stopped = is_stopping,
                             .context = sink};
    struct nats *nats;
    arena_reset(&sink->loading);
    enum code rc = nats_identify(&sink->config, &sink->loading, &call.who, err);
    if (!rc) rc = nats_dial(&call, &nats, err);
    if (rc) return rc;
    sink->wire = nats;
    rc = ask_stream(sink, nats, deadline, err);
    nats_compact(nats);
    if (rc) nats_close(sink);
    return rc;
}
