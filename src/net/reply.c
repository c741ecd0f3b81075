// Answers: made on any thread, in memory of the exchange; written by the net thread.
#include "net/inside.h"

#include "json/json.h"
#include "json/make.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_KEEP_MAX = 4 * 1024 };

static struct conn *conn_of(const struct net_exchange *x)
{
    return (struct conn *)(uintptr_t)x; // x is its first member
}

const struct http_request *net_request(const struct net_exchange *x)
{
    return &conn_of(x)->parser.request;
}

struct arena *net_arena(struct net_exchange *x)
{
    return &conn_of(x)->arena;
}

struct str net_peer(const struct net_exchange *x)
{
    const struct conn *conn = conn_of(x);
    struct str peer = str_from(conn->peer);
    return conn->proxy ? net_behind_proxies(conn->server, &conn->parser.request, peer) : peer;
}

bool net_secure(const struct net_exchange *x)
{
    return conn_of(x)->door.tls;
}

int64_t net_peer_uid(const struct net_exchange *x)
{
    return conn_of(x)->proxy ? -1 : conn_of(x)->uid;
}

void net_come_again(struct net_exchange *x, int64_t ms)
{
    struct conn *conn = conn_of(x);
    int64_t now = conn->server->now;
    if (conn->come_again > now) conn->quiet_until = conn->come_again;
    conn->come_again = now + ms;
}

bool net_alive(const struct net_exchange *x)
{
    return !atomic_load(&conn_of(x)->gone);
}

static bool names(const struct http_header *headers, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (http_same(headers[i].name, name)) return true;
    return false;
}

// Puts the headers that every answer has before the empty line of a head.
static void add_fixed(struct net_server *server, struct buf *out, const struct http_header *headers, size_t count)
{
    char date[HTTP_DATE_SIZE];
    size_t from = 0;
    out->len -= 2;
    for (size_t i = 0; i < server->options.header_count; i++) {
        size_t end = server->fixed_ends[i];
        struct str name = server->options.headers[i].name;
        if (!names(headers, count, name)) buf_add(out, str_slice(buf_str(&server->fixed), from, end));
        from = end;
    }
    http_date(atomic_load_explicit(&server->wall_s, memory_order_relaxed), date);
    buf_add(out, STR("Date: "));
    buf_add(out, (struct str){date, HTTP_DATE_SIZE - 1});
    buf_add(out, STR("\r\n\r\n"));
}

static bool write_head(struct net_server *server, struct buf *out, int status, const struct http_header *headers,
                       size_t count, enum http_framing framing, uint64_t length, bool keep_alive)
{
    buf_clear(out);
    if (!http_write_head(out, status, headers, count, framing, length, keep_alive)) return false;
    if (buf_ok(out)) add_fixed(server, out, headers, count);
    return true;
}

bool reply_head(struct conn *conn, int status, const struct http_header *headers, size_t count,
                enum http_framing framing, uint64_t length)
{
    bool stopping = atomic_load_explicit(&conn->server->stopping, memory_order_relaxed);
    conn->close_after = !conn->parser.request.keep_alive || stopping || framing == HTTP_UNTIL_CLOSE;
    return write_head(conn->server, &conn->answer, status, headers, count, framing, length, !conn->close_after);
}

static bool copy_body(struct conn *conn, struct str body)
{
    if (body.len <= SMALL_BODY) {
        buf_add(&conn->answer, body);
        return true;
    }
    conn->body = malloc(sizeof(*conn->body) + body.len);
    if (!conn->body) return false;
    *conn->body = (struct piece){.len = body.len, .capacity = body.len};
    memcpy(conn->body->bytes, body.ptr, body.len);
    return true;
}

void net_reply(struct net_exchange *x, int status, const struct http_header *headers, size_t count, struct str body)
{
    struct conn *conn = conn_of(x);
    INVARIANT(!atomic_exchange(&conn->answered, true));
    INVARIANT(status >= 200);
    bool none = status == 204 || status == 304;
    enum http_framing framing = none ? HTTP_NO_BODY : HTTP_LENGTH;
    if (!reply_head(conn, status, headers, count, framing, body.len)) {
        os_log(LOG_ERROR, "an answer has a header that cannot be written status=%d", status);
        body = STR("");
        INVARIANT(reply_head(conn, 500, NULL, 0, HTTP_LENGTH, 0));
    }
    if (none || str_is(conn->parser.request.method, "HEAD")) body = STR("");
    conn->answer_ok = copy_body(conn, body) && buf_ok(&conn->answer);
    conn->reply = (struct net_message){.kind = MESSAGE_REPLY, .conn = conn};
    net_send(conn->server, &conn->reply);
}

static void deliver_answer(struct conn *conn)
{
    struct piece *body = conn->body;
    conn->body = NULL;
    conn->holding = false;
    if (conn->state != CONN_DEAD && !conn->answer_ok) conn_kill(conn, NET_END_GONE);
    if (conn->state != CONN_DEAD) out_add(conn, buf_str(&conn->answer));
    if (conn->state != CONN_DEAD && body)
        out_link(conn, body);
    else
        free(body);
    if (conn->answer.capacity > ANSWER_KEEP_MAX) buf_release(&conn->answer);
    // When its handler is still on the stack, hand_over goes on.
    if (conn->server->handling != conn) conn_next(conn);
}

void reply_deliver(struct net_message *note)
{
    struct conn *conn = note->conn;
    switch (note->kind) {
    case MESSAGE_REPLY:
        deliver_answer(conn);
        return;
    case MESSAGE_STREAM_BEGIN:
    case MESSAGE_STREAM_BYTES:
    case MESSAGE_STREAM_END:
    case MESSAGE_STREAM_CUT:
        stream_deliver(note);
        return;
    }
}

// ---- what we say ourselves

static const char *refusal_code(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{403, "ORIGIN_NOT_ALLOWED"},   {408, "REQUEST_TIMEOUT"},   {413, "BODY_TOO_LARGE"},
                 {414, "TARGET_TOO_LONG"},      {417, "EXPECTATION_FAILED"}, {421, "HOST_NOT_ALLOWED"},
                 {429, "TOO_MANY_CONNECTIONS"}, {503, "TOO_MANY_CONNECTIONS"}, {431, "HEADERS_TOO_LARGE"},
                 {500, "INTERNAL"},             {501, "NOT_IMPLEMENTED"},   {505, "VERSION_NOT_SUPPORTED"}};
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++)
        if (codes[i].status == status) return codes[i].code;
    return "MALFORMED_REQUEST";
}

static void write_problem(struct buf *out, int status, const char *detail)
{
    struct arena arena SCOPED(arena_release) = arena_of(1024, 64 * 1024);
    struct json problem = http_problem(&arena, status, (struct str){0}, refusal_code(status));
    JSON_ADD(&arena, &problem, {"detail", json_word(detail)});
    if (json_ok(&problem)) json_write(out, &problem);
}

void reply_write_refusal(struct net_server *server, struct buf *out, int status, const char *detail)
{
    static const struct http_header headers[] = {{STR_INIT("Content-Type"), STR_INIT("application/problem+json")},
                                                 {STR_INIT("Retry-After"), STR_INIT("1")}};
    size_t count = status == 429 || status == 503 ? 2 : 1;
    struct buf body SCOPED(buf_release) = buf_of(16 * 1024);
    write_problem(&body, status, detail);
    INVARIANT(write_head(server, out, status, headers, count, HTTP_LENGTH, body.len, false));
    buf_add(out, buf_str(&body));
}

void reply_refuse(struct conn *conn, int status, const char *detail)
{
    reply_write_refusal(conn->server, &conn->answer, status, detail);
    if (!buf_ok(&conn->answer)) {
        conn_kill(conn, NET_END_GONE);
        return;
    }
    conn->state = CONN_CLOSING;
    out_add(conn, buf_str(&conn->answer));
}
