// Bytes out and in: a list of pieces per connection, written with one call when the socket takes them.
#include "net/inside.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { POOL_MAX = 256, IOV_COUNT = 64 };

static struct piece *piece_new(struct net_server *server, size_t capacity)
{
    struct piece *piece = server->pool;
    if (capacity <= PIECE_SIZE && piece) {
        server->pool = piece->next;
        server->pool_count--;
    } else {
        if (capacity < PIECE_SIZE) capacity = PIECE_SIZE;
        piece = malloc(sizeof(*piece) + capacity);
        if (!piece) return NULL;
        piece->capacity = capacity;
    }
    piece->next = NULL;
    piece->note = (struct net_message){0};
    piece->len = piece->sent = 0;
    return piece;
}

static void piece_free(struct net_server *server, struct piece *piece)
{
    if (piece->capacity == PIECE_SIZE && server->pool_count < POOL_MAX) {
        piece->next = server->pool;
        server->pool = piece;
        server->pool_count++;
    } else {
        free(piece);
    }
}

void out_link(struct conn *conn, struct piece *piece)
{
    piece->next = NULL;
    if (!conn->out_first) {
        conn->out_first = piece;
        conn->progress = conn->server->now;
    } else {
        conn->out_last->next = piece;
    }
    conn->out_last = piece;
    conn->out_bytes += piece->len;
}

void out_add(struct conn *conn, struct str bytes)
{
    struct piece *last = conn->out_last;
    // Bytes of a stream are counted by their piece, so nothing is put behind them.
    bool fits = conn->out_first && last->note.kind != MESSAGE_STREAM_BYTES && last->capacity - last->len >= bytes.len;
    if (!fits) {
        last = piece_new(conn->server, bytes.len);
        if (!last) {
            conn_kill(conn, NET_END_GONE);
            return;
        }
        out_link(conn, last);
    }
    memcpy(last->bytes + last->len, bytes.ptr, bytes.len);
    last->len += bytes.len;
    conn->out_bytes += bytes.len;
}

static void drop_first(struct conn *conn)
{
    struct piece *piece = conn->out_first;
    conn->out_first = piece->next;
    if (!conn->out_first) conn->out_last = NULL;
    conn->out_bytes -= piece->len - piece->sent;
    if (piece->note.kind == MESSAGE_STREAM_BYTES) atomic_fetch_sub(&conn->stream.queued, piece->len - piece->sent);
    piece_free(conn->server, piece);
}

void out_drop(struct conn *conn)
{
    while (conn->out_first) drop_first(conn);
}

static void sent(struct conn *conn, size_t count)
{
    COUNT(conn->server, bytes_out, count);
    conn->progress = conn->server->now;
    while (count) {
        struct piece *piece = conn->out_first;
        size_t here = piece->len - piece->sent < count ? piece->len - piece->sent : count;
        piece->sent += here;
        count -= here;
        conn->out_bytes -= here;
        if (piece->note.kind == MESSAGE_STREAM_BYTES) atomic_fetch_sub(&conn->stream.queued, here);
        if (piece->sent == piece->len) drop_first(conn);
    }
}

static ssize_t tls_result(struct conn *conn, int rc)
{
    int error = SSL_get_error(conn->ssl, rc);
    bool handshaking = !SSL_is_init_finished(conn->ssl);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
    if (error == SSL_ERROR_ZERO_RETURN) {
        conn->eof = true;
        return 0;
    }
    if (handshaking) COUNT(conn->server, handshakes_failed, 1);
    return -1;
}

static ssize_t write_some(struct conn *conn)
{
    struct iovec parts[IOV_COUNT];
    struct msghdr message = {.msg_iov = parts};
    if (conn->ssl) {
        struct piece *piece = conn->out_first;
        size_t left = piece->len - piece->sent;
        int rc = SSL_write(conn->ssl, piece->bytes + piece->sent, left > INT32_MAX ? INT32_MAX : (int)left);
        return rc > 0 ? rc : tls_result(conn, rc);
    }
    for (struct piece *p = conn->out_first; p && message.msg_iovlen < IOV_COUNT; p = p->next)
        parts[message.msg_iovlen++] = (struct iovec){p->bytes + p->sent, p->len - p->sent};
    ssize_t count = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
    if (count >= 0) return count;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

void out_flush(struct conn *conn)
{
    while (conn->out_first && conn->writable) {
        ssize_t count = write_some(conn);
        if (count < 0) {
            conn_kill(conn, NET_END_GONE);
            return;
        }
        if (count == 0) conn->writable = false;
        if (count > 0) sent(conn, (size_t)count);
    }
}

ssize_t in_read(struct conn *conn, char *into, size_t size)
{
    if (conn->ssl) {
        int rc = SSL_read(conn->ssl, into, (int)size);
        if (rc > 0) {
            COUNT(conn->server, bytes_in, (uint64_t)rc);
            return rc;
        }
        conn->readable = false;
        return tls_result(conn, rc);
    }
    ssize_t count = recv(conn->fd, into, size, 0);
    if (count > 0) {
        COUNT(conn->server, bytes_in, (uint64_t)count);
        // Less than asked for: the next byte comes with an edge. But its end may have been reported already.
        if ((size_t)count < size && !atomic_load_explicit(&conn->gone, memory_order_relaxed)) conn->readable = false;
        return count;
    }
    conn->readable = false;
    if (count == 0) conn->eof = true;
    if (count < 0 && errno == EINTR) conn->readable = true;
    return count < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}
