// Answers that go on: pieces from any thread, counted until the client has taken them.
#include "net/inside.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static struct conn *conn_of_stream(const struct net_stream *stream)
{
    return CONTAINER_OF((struct net_stream *)(uintptr_t)stream, struct conn, stream);
}

struct net_stream *net_stream(struct net_exchange *x, int status, const struct http_header *headers, size_t count,
                              net_closed closed, void *context)
{
    struct conn *conn = (struct conn *)(void *)x;
    struct net_stream *stream = &conn->stream;
    INVARIANT(!atomic_exchange(&conn->answered, true));
    bool old = conn->parser.request.version_10;
    conn->chunked = !old;
    conn->mute = str_is(conn->parser.request.method, "HEAD");
    stream->closed = closed;
    stream->context = context;
    stream->told = false;
    stream->owned = true;
    stream->end = (struct net_message){.kind = MESSAGE_STREAM_END, .conn = conn};
    stream->cut = (struct net_message){.kind = MESSAGE_STREAM_CUT, .conn = conn};
    atomic_store(&stream->queued, 0);
    atomic_store(&stream->shut, false);
    bool made = reply_head(conn, status, headers, count, old ? HTTP_UNTIL_CLOSE : HTTP_CHUNKED, 0);
    conn->answer_ok = made && buf_ok(&conn->answer);
    conn->reply = (struct net_message){.kind = MESSAGE_STREAM_BEGIN, .conn = conn};
    net_send(conn->server, &conn->reply);
    return stream;
}

static struct piece *make_piece(struct conn *conn, struct str bytes)
{
    char size[HTTP_CHUNK_HEAD];
    size_t head = conn->chunked ? http_chunk_head(bytes.len, size) : 0, tail = conn->chunked ? 2 : 0;
    struct piece *piece = malloc(sizeof(*piece) + head + bytes.len + tail);
    if (!piece) return NULL;
    *piece = (struct piece){.note = {.kind = MESSAGE_STREAM_BYTES, .conn = conn}, .len = head + bytes.len + tail};
    piece->capacity = piece->len;
    memcpy(piece->bytes, size, head);
    memcpy(piece->bytes + head, bytes.ptr, bytes.len);
    memcpy(piece->bytes + head + bytes.len, "\r\n", tail);
    return piece;
}

static void shut_off(struct net_stream *stream, enum net_end why)
{
    if (atomic_exchange(&stream->shut, true)) return;
    stream->cut_why = why;
    net_send(conn_of_stream(stream)->server, &stream->cut);
}

void net_stream_cut(struct net_stream *stream, struct str goodbye)
{
    stream->goodbye = goodbye;
    shut_off(stream, NET_END_CUT);
}

bool net_stream_send(struct net_stream *stream, struct str bytes)
{
    struct conn *conn = conn_of_stream(stream);
    if (atomic_load(&stream->shut)) return false;
    if (bytes.len == 0) return true;
    struct piece *piece = make_piece(conn, bytes);
    if (!piece) return false;
    size_t before = atomic_fetch_add(&stream->queued, piece->len);
    if (before + piece->len > conn->server->limits.stream_cap) {
        atomic_fetch_sub(&stream->queued, piece->len);
        free(piece);
        shut_off(stream, NET_END_SLOW);
        return false;
    }
    net_send(conn->server, &piece->note);
    return true;
}

size_t net_stream_queued(const struct net_stream *stream)
{
    return atomic_load(&stream->queued);
}

void net_stream_end(struct net_stream *stream)
{
    net_send(conn_of_stream(stream)->server, &stream->end);
}

void stream_shut(struct conn *conn, enum net_end why)
{
    struct net_stream *stream = &conn->stream;
    atomic_store(&stream->shut, true);
    if (stream->told) return;
    stream->told = true;
    COUNT(conn->server, streams, (uint64_t)-1);
    if (stream->closed) stream->closed(stream->context, why);
}

static void begin(struct conn *conn)
{
    conn->holding = false;
    COUNT(conn->server, streams, 1);
    if (conn->state == CONN_DEAD) {
        stream_shut(conn, NET_END_GONE);
        return;
    }
    conn->state = CONN_STREAMING;
    // A stream may live for days: the request makes room.
    http_parser_next(&conn->parser);
    arena_reset(&conn->arena);
    if (!conn->answer_ok) {
        conn_kill(conn, NET_END_GONE);
        return;
    }
    out_add(conn, buf_str(&conn->answer));
    buf_release(&conn->answer);
    if (conn->state == CONN_STREAMING && conn->server->draining) conn_drain(conn);
    // The peer may have hung up while the handler was thinking; that edge is gone.
    if (conn->state == CONN_STREAMING && atomic_load(&conn->gone)) conn_kill(conn, NET_END_GONE);
    conn_ready(conn);
}

static void bytes_came(struct conn *conn, struct piece *piece)
{
    if (conn->state == CONN_STREAMING && !conn->mute) {
        out_link(conn, piece);
        conn_ready(conn);
        return;
    }
    atomic_fetch_sub(&conn->stream.queued, piece->len);
    free(piece);
}

static void end(struct conn *conn)
{
    conn->stream.owned = false;
    if (conn->state == CONN_STREAMING) {
        if (conn->chunked && !conn->mute) out_add(conn, STR(HTTP_LAST_CHUNK));
        if (conn->state == CONN_STREAMING) {
            stream_shut(conn, NET_END_DONE);
            conn_next(conn);
        }
    }
    conn_release(conn);
}

// The client has acknowledged everything. Under TLS the last record is small and was handed over whole.
static bool all_taken(const struct conn *conn)
{
    int unsent = 0;
    return conn->out_bytes == 0 && ioctl(conn->fd, SIOCOUTQ, &unsent) == 0 && unsent == 0;
}

static void say_goodbye(struct conn *conn, struct str text)
{
    char size[HTTP_CHUNK_HEAD];
    conn->close_after = true;
    if (text.len == 0 || conn->mute) return;
    if (conn->chunked) out_add(conn, (struct str){size, http_chunk_head(text.len, size)});
    out_add(conn, text);
    if (conn->chunked) out_add(conn, STR("\r\n"));
}

static void cut(struct conn *conn)
{
    if (conn->state != CONN_STREAMING) return;
    if (conn->stream.cut_why == NET_END_CUT && all_taken(conn)) {
        say_goodbye(conn, conn->stream.goodbye);
        return;
    }
    // What the kernel holds for the client goes, too.
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    if (conn->stream.cut_why == NET_END_SLOW) COUNT(conn->server, streams_cut, 1);
    conn_kill(conn, conn->stream.cut_why);
}

void stream_deliver(struct net_message *note)
{
    struct conn *conn = note->conn;
    if (note->kind == MESSAGE_STREAM_BEGIN)
        begin(conn);
    else if (note->kind == MESSAGE_STREAM_BYTES)
        bytes_came(conn, CONTAINER_OF(note, struct piece, note));
    else if (note->kind == MESSAGE_STREAM_END)
        end(conn);
    else
        cut(conn);
}
