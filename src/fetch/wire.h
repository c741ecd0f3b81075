// A connection to a server, plain or TLS, with a deadline: of calls over HTTP, of the bus and of gRPC. It never raises SIGPIPE, and
// nothing waits longer than until its user is to stop.
#ifndef CAIRN_FETCH_WIRE_H
#define CAIRN_FETCH_WIRE_H

#include "base/buf.h"
#include "base/error.h"

struct ssl_st;
struct address;

struct wire {
    int fd;                         // -1: closed
    struct ssl_st *ssl;             // NULL: plain
    int64_t deadline;               // mono ms
    bool (*stopped)(void *context); // asked now and then while waiting; NULL = never
    void *stop_context;
};
#define NO_DEADLINE INT64_MAX

// E_IO with the system's words, E_LIMIT, E_TIMEOUT, E_CANCELLED. On an error the wire is closed.
enum code wire_connect(struct wire *wire, const struct address *address, struct error *err) MUST_CHECK;
// To a host that the operator named, by whichever of its addresses answers.
enum code wire_dial(struct wire *wire, const char *host, const char *port, struct error *err) MUST_CHECK;

struct wire_tls {
    const char *host;                 // that the certificate must be for: a name or an address
    struct str ca_file;               // instead of the system's; empty = the system's
    const char *cert_file, *key_file; // PEM, shown to a server that asks; NULL or empty: none
    const char *alpn;                 // the protocol that is offered; NULL: none
    bool agreed;                      // the server must choose it
};
// Chain and name are verified, always. E_DENIED: they do not fit. E_UNSUPPORTED: the server does not speak the protocol.
enum code wire_secure(struct wire *wire, const struct wire_tls *tls, struct error *err) MUST_CHECK;

enum code wire_send(struct wire *wire, struct str bytes, struct error *err) MUST_CHECK; // all of it
// What the system takes now, without waiting; *sent says how much.
enum code wire_send_now(struct wire *wire, struct str bytes, size_t *sent, struct error *err) MUST_CHECK;
// At least one byte, or *got 0: the other side has closed, and said so if it speaks TLS.
enum code wire_recv(struct wire *wire, char *room, size_t size, size_t *got, struct error *err) MUST_CHECK;
// What is there now, at the end of `in`; *got 0 when there is nothing. E_IO: the other side has gone. A plain wire that gave less than
// WIRE_TURN bytes had no more just now.
enum { WIRE_TURN = 16384 };
enum code wire_recv_now(struct wire *wire, struct buf *in, size_t *got, struct error *err) MUST_CHECK;
enum code wire_await(struct wire *wire, struct error *err) MUST_CHECK; // until there may be something to read
bool wire_idle(const struct wire *wire);                               // open, and nothing has come
void wire_close(struct wire *wire);

#endif
