// Ends of connections, and the clock that brings them about.
#include "net/inside.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool is_held(const struct conn *conn)
{
    return conn->holding || conn->stream.owned || conn->is_ready;
}

void conn_release(struct conn *conn)
{
    if (conn->state != CONN_DEAD || conn->is_reaped || is_held(conn)) return;
    conn->is_reaped = true;
    conn->reap_next = conn->server->reap_first;
    conn->server->reap_first = conn;
}

void conn_kill(struct conn *conn, enum net_end why)
{
    struct net_server *server = conn->server;
    if (conn->state == CONN_DEAD) return;
    bool streaming = conn->state == CONN_STREAMING;
    conn->state = CONN_DEAD;
    atomic_store(&conn->gone, true);
    SSL_free(conn->ssl);
    conn->ssl = NULL;
    // Closing alone does not end the watch while a process that was just forked still has the descriptor.
    epoll_ctl(server->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
    close(conn->fd);
    conn->fd = -1;
    out_drop(conn);
    buf_release(&conn->pending);
    heap_remove(&server->timers, &conn->timer);
    net_address_release(conn);
    server->conn_count--;
    COUNT(server, open, (uint64_t)-1);
    if (streaming) stream_shut(conn, why);
    conn_release(conn);
}

void conn_free(struct conn *conn)
{
    struct net_server *server = conn->server;
    if (conn->previous)
        conn->previous->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next) conn->next->previous = conn->previous;
    http_parser_release(&conn->parser);
    arena_release(&conn->arena);
    buf_release(&conn->pending);
    buf_release(&conn->answer);
    free(conn->body);
    free(conn);
}

static int64_t reading_deadline(const struct conn *conn)
{
    const struct net_limits *limits = &conn->server->limits;
    if (conn->in_body) {
        // So long that what has come so far came at the least rate allowed.
        uint64_t earned = conn->parser.body_received / limits->body_rate * 1000 +
                          conn->parser.body_received % limits->body_rate * 1000 / limits->body_rate;
        return conn->since + limits->body_grace_ms + (int64_t)earned;
    }
    return conn->since + (conn->parser.began || !conn->served ? limits->header_ms : limits->idle_ms);
}

int64_t conn_deadline(const struct conn *conn)
{
    const struct net_limits *limits = &conn->server->limits;
    int64_t writing = conn->out_first ? conn->progress + limits->write_ms : INT64_MAX;
    int64_t reading;
    switch (conn->state) {
    case CONN_READING:
        reading = conn->quiet_until ? conn->quiet_until : reading_deadline(conn);
        return reading < writing ? reading : writing;
    case CONN_LINGERING:
        return conn->since + limits->linger_ms;
    case CONN_BUSY:
    case CONN_STREAMING:
    case CONN_CLOSING:
        return writing;
    case CONN_DEAD:
        break;
    }
    return INT64_MAX;
}

static void set_timer(struct conn *conn, int64_t due)
{
    heap_remove(&conn->server->timers, &conn->timer);
    if (due != INT64_MAX && !heap_push(&conn->server->timers, &conn->timer, due)) conn_kill(conn, NET_END_GONE);
}

// A timer that goes off too early is only looked at again, so a deadline that moves away costs nothing.
void conn_watch(struct conn *conn)
{
    if (conn->state == CONN_DEAD) return;
    int64_t due = conn_deadline(conn);
    if (!conn->timer.index || due < conn->timer.due) set_timer(conn, due);
}

void conn_timer(struct conn *conn)
{
    if (conn->quiet_until && conn->quiet_until <= conn->server->now && conn->state == CONN_READING) {
        conn->quiet_until = 0;
        conn->since = conn->server->now;
        conn_ready(conn);
    }
    int64_t due = conn_deadline(conn);
    if (due > conn->server->now) {
        set_timer(conn, due);
        return;
    }
    heap_remove(&conn->server->timers, &conn->timer);
    if (conn->state == CONN_READING && conn->parser.began && !conn->out_first) {
        COUNT(conn->server, timeouts, 1);
        reply_refuse(conn, 408, conn->in_body ? "the body came too slowly" : "the head took too long");
        conn_ready(conn);
        return;
    }
    if (conn->state != CONN_LINGERING) COUNT(conn->server, timeouts, 1);
    conn_kill(conn, conn->state == CONN_STREAMING ? NET_END_SLOW : NET_END_GONE);
}
