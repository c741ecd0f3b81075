// NATS JetStream: HPUB with an inbox to answer to, many in flight. The server's stream says for each message that it is stored, that it
// was there already, or why not. docs/format/bus.md has the headers.
#include "bus/nats.h"

#include <stdio.h>
#include <string.h>

#define OUT_MAX (4 * PAGE_BYTES)
#define ALREADY_THERE 10077 // one message a subject: that one is stored
#define TOO_LARGE 10054
#define SUBJECT_MAX 3500 // bytes: a server takes lines of 4,096, and ends the connection over a longer one
#define UNAVAILABLE 503

// ---- frames

// False: not yet whole. *bad: not NATS.
static bool take_line(struct nats *nats, struct str *line)
{
    struct str rest = str_slice(buf_str(&nats->in), nats->taken, nats->in.len);
    const char *end = memmem(rest.ptr, rest.len, "\r\n", 2);
    if (!end) return false;
    *line = (struct str){rest.ptr, (size_t)(end - rest.ptr)};
    return true;
}

static bool take_body(struct nats *nats, struct str line, bool headers, struct nats_frame *frame, bool *bad)
{
    struct str word[6], rest = line;
    size_t words = 0;
    int64_t head = 0, total = -1;
    while (rest.len && words < ARRAY_COUNT(word)) {
        struct str one = str_cut(rest, ' ', &rest);
        if (one.len) word[words++] = one;
    }
    size_t least = headers ? 5 : 4;
    *bad = words < least || words > least + 1 || !str_int64(word[words - 1], &total) || total < 0 ||
           total > NATS_IN_MAX || (headers && (!str_int64(word[words - 2], &head) || head < 0 || head > total));
    size_t from = nats->taken + line.len + 2;
    if (*bad || nats->in.len < from + (size_t)total + 2) return false;
    frame->subject = word[1];
    frame->head = (struct str){nats->in.ptr + from, (size_t)head};
    frame->text = (struct str){nats->in.ptr + from + head, (size_t)(total - head)};
    nats->taken = from + (size_t)total + 2;
    return true;
}

bool nats_frame(struct nats *nats, struct nats_frame *frame, bool *bad)
{
    static const struct {
        const char *word;
        enum nats_frame_kind kind;
    } plain[] = {
        {"INFO ", FRAME_INFO}, {"PING", FRAME_PING}, {"PONG", FRAME_PONG}, {"+OK", FRAME_OK}, {"-ERR", FRAME_ERROR}};
    struct str line;
    *frame = (struct nats_frame){0};
    *bad = false;
    if (!take_line(nats, &line)) return false;
    bool headers = str_starts(line, STR("HMSG "));
    if (headers || str_starts(line, STR("MSG "))) {
        frame->kind = FRAME_MESSAGE;
        return take_body(nats, line, headers, frame, bad);
    }
    for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
        struct str word = str_from(plain[i].word);
        if (!str_starts(line, word)) continue;
        frame->kind = plain[i].kind;
        frame->text = str_trim(str_slice(line, word.len, line.len));
        nats->taken += line.len + 2;
        return true;
    }
    *bad = true;
    return false;
}

void nats_compact(struct nats *nats)
{
    memmove(nats->in.ptr, nats->in.ptr + nats->taken, nats->in.len - nats->taken);
    nats->in.len -= nats->taken;
    nats->in.ptr[nats->in.len] = '\0';
    nats->taken = 0;
}

// ---- sending

static void add_header(struct nats *nats, const char *name, struct str value)
{
    if (!value.len) return;
    buf_printf(&nats->head, "%s: ", name);
    for (size_t i = 0; i < value.len; i++)
        buf_byte(&nats->head, (unsigned char)value.ptr[i] >= ' ' && value.ptr[i] != 127 ? value.ptr[i] : '?');
    buf_text(&nats->head, "\r\n");
}

static void add_headers(struct nats *nats, const struct message *message)
{
    char number[24];
    buf_clear(&nats->head);
    buf_text(&nats->head, "NATS/1.0\r\n");
    add_header(nats, "Nats-Msg-Id", message->id);
    add_header(nats, "execution_id", message->run);
    add_header(nats, "run_id", message->run);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)message->seq);
    add_header(nats, "run_seq", str_from(number));
    add_header(nats, "event_id", message->event_id);
    add_header(nats, "tenant_id", message->tenant);
    add_header(nats, "idempotency_key", message->key);
    add_header(nats, "traceparent", message->trace);
    add_header(nats, "content-type", message->content_type);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)message->missing);
    if (message->missing) add_header(nats, "missing_seq", str_from(number));
    for (size_t i = 0; i < message->header_count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", STR_ARG(message->headers[i].name));
        add_header(nats, name, message->headers[i].value);
    }
    buf_text(&nats->head, "\r\n");
}

static void refuse(struct sink *sink, uint32_t slot, enum answer_kind kind, const char *class, const char *why)
{
    struct delivery answer = {.kind = kind, .class = class};
    snprintf(answer.why, sizeof(answer.why), "%.199s", why);
    sink_answer(sink, slot, &answer);
}

static struct nats_pending *pending_free(struct nats *nats)
{
    for (size_t i = 0; i < PAGE_MAX; i++)
        if (!nats->pending[i].ticket) return &nats->pending[i];
    return NULL;
}

static void nats_send(struct sink *sink, uint32_t slot, const struct message *message)
{
    struct nats *nats = sink->wire;
    struct str subject = message_subject(sink->config.subject, message, &sink->scratch);
    struct nats_pending *pending = pending_free(nats);
    INVARIANT(pending); // no more are in flight than a page has
    if (!subject.ptr || subject.len > SUBJECT_MAX) { // names of tenants are in it: one that is refused must not end the connection
        refuse(sink, slot, ANSWER_POISON, "SUBJECT_TOO_LONG", "the subject is longer than a server takes");
        return;
    }
    add_headers(nats, message);
    if (!buf_ok(&nats->head)) {
        sink_down(sink, "out of memory");
        return;
    }
    if (nats->max_payload && nats->head.len + message->body.len > nats->max_payload) {
        refuse(sink, slot, ANSWER_POISON, "TOO_LARGE", "larger than the server takes");
        return;
    }
    *pending = (struct nats_pending){.ticket = ++nats->tickets, .slot = slot};
    pending->deadline = mono_now() + sink->config.timeout_ms;
    snprintf(pending->subject, sizeof(pending->subject), "%.*s", STR_ARG(subject));
    buf_printf(&nats->out, "HPUB %.*s %s%zu.%llu %zu %zu\r\n", STR_ARG(subject), nats->inbox,
               (size_t)(pending - nats->pending), (unsigned long long)pending->ticket, nats->head.len,
               nats->head.len + message->body.len);
    buf_add(&nats->out, buf_str(&nats->head));
    buf_add(&nats->out, message->body);
    buf_text(&nats->out, "\r\n");
}

static void nats_flush(struct sink *sink)
{
    struct nats *nats = sink->wire;
    struct error err = {0};
    enum code rc = buf_ok(&nats->out)
                       ? nats_write(nats, buf_str(&nats->out), mono_now() + sink->config.timeout_ms, &err)
                       : error_nomem(&err);
    buf_clear(&nats->out);
    if (rc) sink_down(sink, err.message);
}

// ---- answers

static struct nats_pending *pending_of(struct nats *nats, struct str subject)
{
    int64_t index, ticket;
    struct str rest = subject;
    if (!str_starts(subject, str_from(nats->inbox))) return NULL;
    rest = str_slice(subject, strlen(nats->inbox), subject.len);
    struct str first = str_cut(rest, '.', &rest);
    if (!str_int64(first, &index) || !str_int64(rest, &ticket) || index < 0 || index >= PAGE_MAX || ticket < 1)
        return NULL;
    return nats->pending[index].ticket == (uint64_t)ticket ? &nats->pending[index] : NULL;
}

static void stored(struct sink *sink, struct nats_pending *pending, const struct json *reply)
{
    const struct json *duplicate = json_key(reply, "duplicate");
    struct delivery answer = {.kind = ANSWER_DELIVERED, .duplicate = json_true(duplicate)};
    uint64_t seq = (uint64_t)json_integer(json_key(reply, "seq"), 0);
    sink_stored(sink, json_text(json_key(reply, "stream")), seq);
    uint32_t slot = pending->slot;
    *pending = (struct nats_pending){0};
    sink_answer(sink, slot, &answer);
}

// False: it is not about the message, and the connection is over.
static bool failed(struct sink *sink, struct nats_pending *pending, const struct json *error)
{
    char why[200];
    struct str text = json_text(json_key(error, "description"));
    int64_t code = json_integer(json_key(error, "err_code"), 0), status = json_integer(json_key(error, "code"), 0);
    snprintf(why, sizeof(why), "%.*s (%lld)", STR_ARG(str_slice(text, 0, 160)), (long long)code);
    uint32_t slot = pending->slot;
    if (status == UNAVAILABLE && code != ALREADY_THERE) return sink_down(sink, why);
    *pending = (struct nats_pending){0};
    if (code == ALREADY_THERE)
        sink_answer(sink, slot, &(struct delivery){.kind = ANSWER_DELIVERED, .duplicate = true});
    else
        refuse(sink, slot, code == TOO_LARGE ? ANSWER_POISON : ANSWER_REFUSED,
               code == TOO_LARGE ? "TOO_LARGE" : "REFUSED", why);
    return true;
}

static bool on_message(struct sink *sink, const struct nats_frame *frame)
{
    struct nats *nats = sink->wire;
    struct nats_pending *pending = pending_of(nats, frame->subject);
    struct json reply;
    struct error err = {0};
    if (!pending) return true; // the caller has given up
    if (frame->head.len && str_starts(frame->head, STR("NATS/1.0 503")))
        return sink_down(sink, "no stream takes this subject");
    arena_reset(&sink->scratch);
    if (json_parse(frame->text, NULL, &sink->scratch, &reply, &err) || !json_is(&reply, JSON_OBJECT))
        return sink_down(sink, "the answer is not one of JetStream");
    const struct json *error = json_key(&reply, "error");
    if (error) return failed(sink, pending, error);
    if (!json_key(&reply, "seq")) return sink_down(sink, "the answer is not one of JetStream");
    stored(sink, pending, &reply);
    return true;
}

// 'Permissions Violation for Publish to "a.b"' leaves the connection up and no answer to come.
static bool on_error(struct sink *sink, struct str text)
{
    struct nats *nats = sink->wire;
    char why[200], quoted[512];
    snprintf(why, sizeof(why), "%.*s", STR_ARG(str_slice(text, 0, 190)));
    for (size_t i = 0; i < PAGE_MAX; i++) {
        struct nats_pending *pending = &nats->pending[i];
        snprintf(quoted, sizeof(quoted), "\"%s\"", pending->subject);
        if (!pending->ticket || !memmem(text.ptr, text.len, quoted, strlen(quoted))) continue;
        uint32_t slot = pending->slot;
        *pending = (struct nats_pending){0};
        refuse(sink, slot, ANSWER_REFUSED, "DENIED", why);
        return true;
    }
    return sink_down(sink, why);
}

// False: the connection is over.
static bool on_frame(struct sink *sink, const struct nats_frame *frame)
{
    struct nats *nats = sink->wire;
    if (frame->kind == FRAME_MESSAGE) return on_message(sink, frame);
    if (frame->kind == FRAME_ERROR) return on_error(sink, frame->text);
    if (frame->kind == FRAME_PING) buf_text(&nats->out, "PONG\r\n");
    return true;
}

// Silence is nobody's answer: the server may have stored it or not.
static bool too_late(struct sink *sink)
{
    struct nats *nats = sink->wire;
    for (size_t i = 0; i < PAGE_MAX; i++) {
        struct nats_pending *pending = &nats->pending[i];
        if (!pending->ticket || mono_now() < pending->deadline) continue;
        if (!sink->config.silence_counts) {
            sink_down(sink, "the server does not say whether it has stored the event");
            return true;
        }
        uint32_t slot = pending->slot;
        *pending = (struct nats_pending){0};
        refuse(sink, slot, ANSWER_REFUSED, "TIMEOUT", "the server does not say whether it has stored the event");
    }
    return false;
}

static void nats_receive(struct sink *sink)
{
    struct nats *nats = sink->wire;
    struct error err = {0};
    size_t got = 0;
    do {
        struct nats_frame frame;
        bool bad = false;
        if (wire_recv_now(&nats->wire, &nats->in, &got, &err)) {
            sink_down(sink, err.message);
            return;
        }
        while (nats_frame(nats, &frame, &bad))
            if (!on_frame(sink, &frame)) return;
        if (bad) {
            sink_down(sink, "the server does not speak NATS");
            return;
        }
        nats_compact(nats);
    } while (got);
    if (too_late(sink)) return;
    if (nats->out.len) nats_flush(sink);
}

static int64_t nats_deadline(struct sink *sink)
{
    const struct nats *nats = sink->wire;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < PAGE_MAX; i++)
        if (nats->pending[i].ticket && nats->pending[i].deadline < first) first = nats->pending[i].deadline;
    return first;
}

static int nats_fd(struct sink *sink)
{
    return ((const struct nats *)sink->wire)->wire.fd;
}

const struct transport nats_transport = {
    .open = nats_open,
    .send = nats_send,
    .flush = nats_flush,
    .fd = nats_fd,
    .receive = nats_receive,
    .deadline = nats_deadline,
    .close = nats_close,
};
