// The server side of HTTP: one thread that owns all connections, and answers that any thread may hand in.
//
//   accept ─▶ read ─▶ http_parser ─▶ guard ─▶ handle(x) … net_reply(x) ─▶ write ─▶ the next request of that connection
//
// One request per connection is with the handler at a time; what a client sends ahead waits. So answers come in order, and
// request and arena of an exchange belong to its handler, on any thread, until it is answered.
//
//  N1 Every exchange is answered exactly once, by net_reply or net_stream, also when its client has gone.
//  N2 A request is handed on only when it is whole, well formed (http.h), and let in by the guard.
//  N3 net_stop finishes what is with the handler: those answers are written before net_run returns (within stop_ms).
//  N4 No client makes the server keep more than: one request within its limits, 64 KiB sent ahead, and stream_cap of a stream.
//
// Threads: net_run is "the net thread". Functions say when another one may call them.
#ifndef CAIRN_NET_NET_H
#define CAIRN_NET_NET_H

#include "base/error.h"
#include "http/http.h"
#include "os/os.h"

struct net_server;
struct net_exchange;
struct net_stream;

struct net_limits {
    struct http_limits http;
    int64_t header_ms;     // from the first byte of a head to its last, and from accepting to the first request: 408
    int64_t body_grace_ms; // a body may take this long, and longer by what it has brought at
    uint64_t body_rate;    // that many bytes a second: 408
    int64_t idle_ms;       // between requests
    int64_t write_ms;      // without any progress in writing
    int64_t linger_ms;     // for the client to read the last answer before the connection is torn down
    int64_t stop_ms;       // for requests in flight, from net_stop on
    size_t connections;    // 503
    size_t per_address;    // 429; Unix sockets are not counted
    size_t stream_cap;     // bytes of a stream that its client has not taken yet
    size_t arena_max;      // of one exchange
};
// 5 s, 5 s, 16 KiB/s, 60 s, 60 s, 1 s, 10 s, 10,000, 256, 1 MiB, 256 MiB, and http_limits_default.
extern const struct net_limits net_limits_default;

struct net_options {
    const char *const *listen; // "127.0.0.1:8080", "[::1]:0", "localhost:80", "unix:/run/cairn.sock" (mode 0600)
    size_t listen_count;
    const int *fds; // listening sockets made by another process; net_close closes them
    size_t fd_count;
    const char *tls_certificate,
        *tls_key;                      // PEM files (chain, key): TLS 1.2 or later on every TCP listener. Both or none
    // Clients may show a certificate (or must): it is verified against these CAs and, where a CRL is given, must not be in it. Nobody's
    // session is resumed then: an identity is that of one connection.
    const char *tls_client_ca, *tls_client_crl;
    bool tls_client_required;
    const struct net_limits *limits;   // NULL: net_limits_default
    // Whose word on X-Forwarded-For counts. Their connections are those of many clients: limits->per_address does not hold for them.
    const struct os_network *proxies;
    size_t proxy_count;
    bool unix_proxy;                   // what connects to a Unix socket is one, too
    const struct http_guard *guard;    // NULL: nobody is turned away for Host or Origin. Borrowed
    const struct http_header *headers; // on every answer that has none of that name; our own refusals too. Borrowed
    size_t header_count;
    void (*handle)(void *context, struct net_exchange *x); // net thread; must not block
    // How large may the body be? Net thread, before it is read. NULL: limits->http.body_max.
    uint64_t (*body_max)(void *context, struct net_exchange *x);
    void (*tick)(void *context); // net thread, every tick_ms; may be NULL
    int64_t tick_ms;
    void *context;
};

// Listens; connections wait until net_run. E_INVALID (an address), E_EXISTS (in use), E_DENIED, E_LOCKED (another process serves
// that Unix socket), E_IO. Options are copied but for what is marked as borrowed.
enum code net_open(const struct net_options *options, struct net_server **out, struct error *err) MUST_CHECK;
// Of the listener at `index`, in the order of `listen`, then `fds`; 0 for a Unix socket.
uint16_t net_port(const struct net_server *server, size_t index);
// Serves until net_stop. Call once, on the thread that is to be the net thread.
void net_run(struct net_server *server);
void net_stop(struct net_server *server); // any thread, also from a signal handler; more than once does no harm
// After net_run has returned (or was never called), when no other thread uses the server any more. Exchanges
// without an answer are dropped.
void net_close(struct net_server *server);

// New certificate and key, CAs and CRL from the same files; open connections keep theirs. Any thread. On failure the old ones stay.
enum code net_reload_tls(struct net_server *server, struct error *err) MUST_CHECK;

// ---- one exchange; the handler's until it is answered

const struct http_request *net_request(const struct net_exchange *x);
struct arena *net_arena(struct net_exchange *x);    // emptied when the exchange is over
// "127.0.0.1", "::1", "unix"; of a named proxy the client that it names. As long as the exchange
struct str net_peer(const struct net_exchange *x);
int64_t net_peer_uid(const struct net_exchange *x); // of the process behind a Unix socket; -1 otherwise, and for a proxy
bool net_secure(const struct net_exchange *x);      // it came by TLS, as far as this door
// What a client's certificate says, once it is verified. False: it showed none, or one that the files of the last net_reload_tls do not
// let in. Net thread, while the exchange is there; in its arena.
struct net_certificate {
    struct str uri;     // of its subjectAltName, when it has exactly one
    struct str name;    // common name of its subject, when it has exactly one and no URI: a URI says more exactly who it is
    int64_t expires_ms; // wall clock
};
bool net_certificate(struct net_exchange *x, struct net_certificate *out);
// False once the client has closed its side: nobody may be waiting. Any thread.
bool net_alive(const struct net_exchange *x);
// The answer will be a refusal that says when to come again. A client that does not wait so long is answered once more, and then no
// request of its connection is read before the time. Net thread, before the answer.
void net_come_again(struct net_exchange *x, int64_t ms);

// Answers: the exchange, its request and its arena are then gone. Any thread; copies. Length, Connection and Date are added.
// A header that may not be written (CR, LF, NUL) makes it a 500. The body of a HEAD, 204 or 304 is left out.
void net_reply(struct net_exchange *x, int status, const struct http_header *headers, size_t count, struct str body);

// ---- streams: answers that go on

enum net_end {
    NET_END_DONE, // by net_stream_end
    NET_END_GONE, // the client went away
    NET_END_SLOW, // it did not read: stream_cap
    NET_END_CUT,  // by net_stream_cut
    NET_END_STOP, // net_stop
};
// Called exactly once for every stream, on the net thread. After a reason other than NET_END_DONE the owner still owes its
// net_stream_end (which may be called from inside).
typedef void (*net_closed)(void *context, enum net_end why);

// Begins an answer of unknown length (chunked; until close for HTTP/1.0). Any thread. Never NULL.
struct net_stream *net_stream(struct net_exchange *x, int status, const struct http_header *headers, size_t count,
                              net_closed closed, void *context);
// One piece; copies. Any thread; pieces of one thread stay in order. False: closed, over the cap (then the connection is cut and
// `closed` called, on the net thread before this returns), or no memory.
bool net_stream_send(struct net_stream *stream, struct str bytes);
size_t net_stream_queued(const struct net_stream *stream); // bytes not yet taken by the client. Any thread
// For a client that may not read any more: the connection is closed. What was sent and not taken is dropped, here and in the kernel; a
// client that has taken all gets `goodbye` (a literal, perhaps empty). The owner still owes its net_stream_end. Any thread.
void net_stream_cut(struct net_stream *stream, struct str goodbye);
// No more pieces; the owner must not use the stream afterwards. Any thread, exactly once.
void net_stream_end(struct net_stream *stream);

// ---- for metrics, and for the program that starts a server

struct net_stats {
    uint64_t open, accepted, over_limit; // connections: now; ever; refused with 503 or 429
    uint64_t requests, refused;          // whole ones handed to the handler; refused by framing or guard
    uint64_t timeouts, handshakes_failed;
    uint64_t streams, streams_cut; // now; cut because their clients were slow
    uint64_t bytes_in, bytes_out;
};
void net_stats(const struct net_server *server, struct net_stats *out); // any thread
// Sockets handed over by a service manager (LISTEN_PID, LISTEN_FDS): descriptors *first and following. 0 when there are none.
size_t net_inherited(int *first);
// Only this machine can reach that address of `listen`.
bool net_is_local(const char *address);

#endif
