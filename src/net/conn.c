// One connection: bytes to requests, requests to the handler, in order.
//
//   READING --request whole--> BUSY --net_reply--> READING            [conn_next]
//      |                        |  \--net_stream--> STREAMING --end--> READING or CLOSING
//      | refused, timed out     | last answer of this connection
//      v                        v
//   CLOSING --all written--> LINGERING --client closed or linger_ms--> DEAD
//
// Any state goes to DEAD when the socket breaks [conn_kill]. Memory goes when neither handler nor stream's owner hold it.
#include "net/inside.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/epoll.h>

enum { LINGER_READS = 16 }; // a turn

void conn_ready(struct conn *conn)
{
    struct net_server *server = conn->server;
    if (conn->is_ready || conn->state == CONN_DEAD) return;
    conn->is_ready = true;
    conn->ready_next = NULL;
    if (server->ready_last)
        server->ready_last->ready_next = conn;
    else
        server->ready_first = conn;
    server->ready_last = conn;
}

void conn_event(struct conn *conn, uint32_t events)
{
    if (conn->state == CONN_DEAD) return;
    if (events & EPOLLRDHUP) atomic_store(&conn->gone, true);
    if (events & (EPOLLERR | EPOLLHUP) || (events & EPOLLRDHUP && conn->state == CONN_STREAMING)) {
        conn_kill(conn, NET_END_GONE);
        return;
    }
    // TLS may want the one in order to do the other.
    if (events & (EPOLLIN | EPOLLRDHUP) || conn->ssl) conn->readable = true;
    if (events & EPOLLOUT || conn->ssl) conn->writable = true;
    conn_ready(conn);
}

void conn_next(struct conn *conn)
{
    struct net_server *server = conn->server;
    if (conn->state == CONN_DEAD) {
        conn_release(conn);
        return;
    }
    http_parser_next(&conn->parser);
    arena_reset(&conn->arena);
    conn->in_body = conn->owes_continue = false;
    conn->served = true;
    conn->since = server->now;
    conn->state = conn->close_after || server->draining ? CONN_CLOSING : CONN_READING;
    if (server->handling != conn) conn_ready(conn);
}

static void hand_over(struct conn *conn)
{
    struct net_server *server = conn->server;
    COUNT(server, requests, 1);
    conn->state = CONN_BUSY;
    conn->holding = true;
    atomic_store_explicit(&conn->answered, false, memory_order_relaxed);
    server->handling = conn;
    server->options.handle(server->options.context, &conn->x);
    // Answered at once: the loop of the caller goes on with what else was sent.
    if (!conn->holding && conn->state == CONN_BUSY) conn_next(conn);
    server->handling = NULL;
}

// The head is there: who is it, how much may they send, and are they waiting to be asked for it?
static void head_came(struct conn *conn)
{
    struct net_server *server = conn->server;
    const struct http_request *request = &conn->parser.request;
    const struct net_options *options = &server->options;
    int status = options->guard ? http_guard_check(options->guard, &conn->door, request) : 0;
    if (status) {
        COUNT(server, refused, 1);
        reply_refuse(conn, status, status == 421 ? "this host is not served here" : "asked for by another site");
        return;
    }
    if (options->body_max) conn->parser.body_max = options->body_max(options->context, &conn->x);
    conn->in_body = true;
    conn->since = server->now;
    conn->owes_continue = request->expect_continue;
}

// Returns how many bytes were used; the rest is for when the answer has been given.
static size_t feed(struct conn *conn, struct str bytes)
{
    size_t at = 0, used;
    enum http_step step = HTTP_DONE;
    while (conn->state == CONN_READING && (at < bytes.len || step == HTTP_HEAD)) {
        if (!conn->parser.began && (conn->out_bytes >= OUT_HIGH || conn->quiet_until)) break;
        if (!conn->parser.began && conn->served) conn->since = conn->server->now;
        step = http_parser_feed(&conn->parser, str_slice(bytes, at, bytes.len), &used);
        at += used;
        if (step == HTTP_HEAD) {
            head_came(conn);
        } else if (step == HTTP_DONE) {
            hand_over(conn);
        } else if (step == HTTP_MORE && conn->owes_continue) {
            conn->owes_continue = false;
            if (conn->parser.body_received == 0) out_add(conn, STR("HTTP/1.1 100 Continue\r\n\r\n"));
        } else if (step == HTTP_BAD) {
            COUNT(conn->server, refused, 1);
            reply_refuse(conn, conn->parser.status, conn->parser.reason);
        }
    }
    return at;
}

static void feed_pending(struct conn *conn)
{
    conn->pending_at += feed(conn, str_slice(buf_str(&conn->pending), conn->pending_at, conn->pending.len));
    if (conn->state == CONN_DEAD || conn->pending_at < conn->pending.len) return;
    buf_release(&conn->pending);
    conn->pending_at = 0;
}

static void feed_input(struct conn *conn)
{
    struct net_server *server = conn->server;
    ssize_t count = in_read(conn, server->input, sizeof(server->input));
    if (count < 0) conn_kill(conn, NET_END_GONE);
    if (count <= 0) return;
    struct str bytes = {server->input, (size_t)count};
    size_t used = feed(conn, bytes);
    if (used == bytes.len || conn->state == CONN_DEAD || conn->state == CONN_CLOSING) return;
    buf_add(&conn->pending, str_slice(bytes, used, bytes.len));
    if (!buf_ok(&conn->pending)) conn_kill(conn, NET_END_GONE);
}

// The answer is written. What still comes is thrown away: closing with unread bytes would make the kernel send a reset, which
// may overtake the answer.
static void linger(struct conn *conn)
{
    struct net_server *server = conn->server;
    for (size_t i = 0; i < LINGER_READS && conn->readable; i++) {
        ssize_t count = recv(conn->fd, server->input, sizeof(server->input), 0);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
            conn_kill(conn, NET_END_GONE);
            return;
        }
        if (count < 0) conn->readable = false;
    }
    if (conn->readable) conn_ready(conn);
}

static void finish(struct conn *conn)
{
    if (conn->eof || atomic_load_explicit(&conn->gone, memory_order_relaxed)) {
        conn_kill(conn, NET_END_GONE);
        return;
    }
    if (conn->ssl) SSL_shutdown(conn->ssl);
    ERR_clear_error();
    shutdown(conn->fd, SHUT_WR);
    conn->state = CONN_LINGERING;
    conn->since = conn->server->now;
    conn->readable = true;
    linger(conn);
}

void conn_run(struct conn *conn)
{
    if (conn->state == CONN_LINGERING) linger(conn);
    if (conn->state == CONN_READING && conn->pending.len) feed_pending(conn);
    // One read a turn, so that a client with much to say does not keep others waiting.
    if (conn->state == CONN_READING && !conn->pending.len && conn->readable && !conn->quiet_until) feed_input(conn);
    if (conn->state == CONN_DEAD) return;
    out_flush(conn);
    if (conn->state == CONN_READING && conn->eof) conn->state = CONN_CLOSING;
    if (conn->state == CONN_CLOSING && !conn->out_first) finish(conn);
    if (conn->state == CONN_DEAD) return;
    bool more = conn->state == CONN_READING && !conn->quiet_until && (conn->pending.len || conn->readable);
    if (more && conn->out_bytes < OUT_HIGH) conn_ready(conn);
    conn_watch(conn);
}

void conn_drain(struct conn *conn)
{
    if (conn->state == CONN_STREAMING) {
        if (conn->chunked && !conn->mute) out_add(conn, STR("0\r\n\r\n"));
        if (conn->state == CONN_DEAD) return;
        conn->state = CONN_CLOSING;
        stream_shut(conn, NET_END_STOP);
    } else if (conn->state == CONN_READING && !conn->parser.began) {
        conn->state = CONN_CLOSING;
    }
    conn_ready(conn);
}
