// A connection to a server that the operator named, plain or TLS, with deadlines: of the bus and of grpc. Nothing waits longer than
// until its user is to stop.
#ifndef CAIRN_BUS_TCP_H
#define CAIRN_BUS_TCP_H

#include "base/buf.h"
#include "base/error.h"

struct ssl_st;

struct tcp {
    int fd;
    struct ssl_st *ssl;
    bool (*stopped)(void *context); // asked whether to stop; NULL: never
    void *context;
};

// E_IO, E_TIMEOUT, E_CANCELLED. On an error the tcp is closed.
enum code tcp_dial(struct tcp *tcp, const char *host, const char *port, int64_t deadline, struct error *err) MUST_CHECK;
struct tcp_tls {
    const char *host;               // that the certificate must be for: a name or an address
    struct str ca_file;             // instead of the system's; empty = the system's
    struct str cert_file, key_file; // PEM, shown to a server that asks; empty = none
    const char *alpn;               // the protocol that both sides must agree on; NULL: none is negotiated
};
// Verifies chain and name, always. E_DENIED: the certificate. E_UNSUPPORTED: the server does not speak the protocol.
enum code tcp_secure(struct tcp *tcp, const struct tcp_tls *tls, int64_t deadline, struct error *err) MUST_CHECK;
// All of it, waiting until `deadline`.
enum code tcp_write(struct tcp *tcp, struct str bytes, int64_t deadline, struct error *err) MUST_CHECK;
// What the system takes now, without waiting; *sent says how much.
enum code tcp_send(struct tcp *tcp, struct str bytes, size_t *sent, struct error *err) MUST_CHECK;
// What is there now, at the end of `in`; *got 0 when there is nothing. E_IO: the other side has gone.
enum code tcp_read(struct tcp *tcp, struct buf *in, size_t *got, struct error *err) MUST_CHECK;
// Until there may be something to read.
enum code tcp_wait(struct tcp *tcp, int64_t deadline, struct error *err) MUST_CHECK;
void tcp_close(struct tcp *tcp);

#endif
