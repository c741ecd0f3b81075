// Private to bus/: a connection to a server that the operator named, plain or TLS, with deadlines. Nothing waits longer than until
// its user is to stop.
#ifndef CAIRN_BUS_TCP_H
#define CAIRN_BUS_TCP_H

#include "bus/inside.h"

struct ssl_st;

struct tcp {
    int fd;
    struct ssl_st *ssl;
    bool (*stopped)(void *context); // asked whether to stop; NULL: never
    void *context;
};

// E_IO, E_TIMEOUT, E_CANCELLED. On an error the tcp is closed.
enum code tcp_dial(struct tcp *tcp, const char *host, const char *port, int64_t deadline, struct error *err) MUST_CHECK;
// Verifies chain and name, always. E_DENIED: the certificate.
enum code tcp_secure(struct tcp *tcp, const char *host, struct str ca_file, int64_t deadline,
                     struct error *err) MUST_CHECK;
// All of it, waiting until `deadline`.
enum code tcp_write(struct tcp *tcp, struct str bytes, int64_t deadline, struct error *err) MUST_CHECK;
// What is there now, at the end of `in`; *got 0 when there is nothing. E_IO: the other side has gone.
enum code tcp_read(struct tcp *tcp, struct buf *in, size_t *got, struct error *err) MUST_CHECK;
// Until there may be something to read.
enum code tcp_wait(struct tcp *tcp, int64_t deadline, struct error *err) MUST_CHECK;
void tcp_close(struct tcp *tcp);

#endif
