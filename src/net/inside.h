// What the rooms of net share. Everything here belongs to the net thread, but what is marked.
#ifndef CAIRN_NET_INSIDE_H
#define CAIRN_NET_INSIDE_H

#include "base/heap.h"
#include "net/net.h"
#include "os/os.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum {
    INPUT_SIZE = 64 * 1024, // one read
    PIECE_SIZE = 8 * 1024,  // pieces that are pooled
    OUT_HIGH = 256 * 1024,  // unwritten bytes above which no further request of a connection is read
    SMALL_BODY = 16 * 1024, // bodies that are copied behind their head
    ADDRESS_BUCKETS = 1024,
    LISTENERS_MAX = 32,
};

// What epoll hands back is one of these.
enum source_kind { SOURCE_WAKE, SOURCE_LISTENER, SOURCE_CONN };
struct client_source {
    enum source_kind kind;
};

struct listener {
    struct client_source source;
    struct net_server *server;
    int fd;
    uint16_t port;
    bool local; // a Unix socket
    char *path; // that we made and take away again
};

enum net_message_kind {
    MESSAGE_REPLY,        // conn->answer, and then conn->body
    MESSAGE_STREAM_BEGIN, // conn->answer is the head of a stream
    MESSAGE_STREAM_BYTES, // a piece
    MESSAGE_STREAM_END,
    MESSAGE_STREAM_CUT,
};

// A message to the net thread.
struct net_message {
    struct net_message *next;
    enum net_message_kind kind;
    struct conn *conn;
};

// Bytes on their way out.
struct piece {
    struct net_message note; // how pieces of streams get to the net thread
    struct piece *next;
    size_t len, sent, capacity;
    char bytes[];
};

struct address {
    struct address *next;
    unsigned char ip[16];
    size_t count;
};

enum conn_state {
    CONN_READING,
    CONN_BUSY, // with the handler
    CONN_STREAMING,
    CONN_CLOSING,   // the last bytes are being written
    CONN_LINGERING, // they are written; the client is given time to read them
    CONN_DEAD,      // closed; memory stays for those who still hold the exchange or the stream
};

struct net_stream {
    net_closed closed;
    void *context;
    atomic_size_t queued; // any thread
    atomic_bool shut;     // any thread: no more pieces
    bool owned;           // the owner has not ended it yet
    bool told;            // closed has been called
    enum net_end cut_why; // set before `cut` is sent
    struct str goodbye;
    struct net_message end, cut; // so that neither needs memory
};

// `x` is the connection: there is one exchange at a time.
struct net_exchange {
    struct client_source source;
};

struct conn {
    struct net_exchange x; // must be first
    struct net_server *server;
    struct conn *previous, *next; // all connections
    struct conn *ready_next, *reap_next;
    bool is_ready, is_reaped;
    enum conn_state state;
    int fd;
    SSL *ssl;
    uint64_t trusted; // the reading of the files (server->readings) that its certificate was verified with
    bool readable, writable, eof, in_body, served, owes_continue;
    bool holding; // the exchange is with the handler, whatever the state
    atomic_bool gone;
    struct http_door door;
    struct address *address;
    char peer[48];
    bool proxy; // a named one: its clients are meant
    int64_t uid;
    struct http_parser parser;
    struct arena arena;
    struct buf pending; // read but not parsed
    size_t pending_at;
    struct piece *out_first, *out_last;
    size_t out_bytes;
    struct heap_node timer;
    int64_t since;       // the state, the head or the body began
    int64_t progress;    // bytes were last written
    int64_t come_again;  // the Retry-After of its refusal; 0 = it was not refused
    int64_t quiet_until; // no request is read before; 0 = any time
    // Of the handler, while it holds the exchange.
    struct buf answer;    // head, and a small body
    struct piece *body;   // a large body
    struct net_message reply; // the message that brings both
    atomic_bool answered; // for N1
    bool answer_ok;       // false: could not be made; the connection is cut
    bool close_after, chunked, mute;
    struct net_stream stream;
};

struct counters {
    atomic_uint_fast64_t open, accepted, over_limit, requests, refused, timeouts, handshakes_failed, streams,
        streams_cut, bytes_in, bytes_out;
};
#define COUNT(server, field, n) atomic_fetch_add_explicit(&(server)->counters.field, (n), memory_order_relaxed)

struct net_server {
    struct net_options options;
    struct net_limits limits;
    struct client_source wake;
    int epoll, event, spare; // spare: given up to accept and close when descriptors run out
    struct listener listeners[LISTENERS_MAX];
    size_t listener_count;
    char *certificate, *key, *client_ca, *client_crl;
    struct buf fixed; // options.headers as lines, one after another
    size_t *fixed_ends;
    pthread_t thread;
    atomic_bool running, stopping;
    atomic_int_fast64_t wall_s;
    int64_t now; // mono_ms of this turn
    int64_t tick_at, stop_at;
    bool draining;
    struct conn *conns;
    size_t conn_count; // with a descriptor
    struct conn *ready_first, *ready_last;
    struct conn *reap_first;
    struct conn *handling; // whose handler is on the stack
    struct address *addresses[ADDRESS_BUCKETS];
    struct heap timers;
    struct piece *pool;
    size_t pool_count;
    struct counters counters;
    char input[INPUT_SIZE];
    // Shared, under the mutex.
    pthread_mutex_t mutex;
    struct net_message *queue_first, *queue_last;
    SSL_CTX *tls;
    uint64_t readings; // of its files
};

// proxy.c
bool net_is_proxy(const struct net_server *server, struct str peer);
bool net_ip_is_proxy(const struct net_server *server, const uint8_t ip[16]); // of v4 mapped
// Who called the proxy; `peer` where the headers do not say so. Points into the request
struct str net_behind_proxies(const struct net_server *server, const struct http_request *request, struct str peer);

// listen.c
enum code net_listen_all(struct net_server *server, struct error *err) MUST_CHECK;
void net_listen_close(struct net_server *server);

// tls.c
enum code net_tls_make(const struct net_server *server, SSL_CTX **out, struct error *err) MUST_CHECK;
SSL *net_tls_accept(struct conn *conn); // NULL: no memory

// accept.c
void net_accept(struct listener *listener);
void net_address_release(struct conn *conn);

// conn.c
void conn_event(struct conn *conn, uint32_t events);
void conn_ready(struct conn *conn); // run it in this turn or the next
void conn_run(struct conn *conn);
void conn_next(struct conn *conn); // the exchange is over: ready for the next request, or closing
void conn_drain(struct conn *conn);

// life.c
void conn_kill(struct conn *conn, enum net_end why);
void conn_release(
    struct conn *conn); // an owner let go of it: freed at the end of the turn when it is dead and nobody's
void conn_free(struct conn *conn);
int64_t conn_deadline(const struct conn *conn); // INT64_MAX: none
void conn_watch(struct conn *conn);             // moves its timer when that is too late
void conn_timer(struct conn *conn);             // it has gone off

// out.c
void out_add(struct conn *conn, struct str bytes);
void out_link(struct conn *conn, struct piece *piece); // takes it
void out_flush(struct conn *conn);
void out_drop(struct conn *conn);
// Bytes read, 0 when there are none for now (readable is then false; eof at the end), -1 when the connection is broken.
ssize_t in_read(struct conn *conn, char *into, size_t size);

// reply.c
void reply_refuse(struct conn *conn, int status, const char *detail); // answers and closes
void reply_write_refusal(struct net_server *server, struct buf *out, int status, const char *detail);
void reply_deliver(struct net_message *note);
// stream.c
void stream_deliver(struct net_message *note);
void stream_shut(struct conn *conn, enum net_end why);
bool reply_head(struct conn *conn, int status, const struct http_header *headers, size_t count,
                enum http_framing framing, uint64_t length) MUST_CHECK; // into conn->answer

// server.c
void net_send(struct net_server *server, struct net_message *note); // any thread: delivered at once on the net thread

#endif
