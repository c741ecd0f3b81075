#include "bus/cable.h"

#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLICE_MS 100
#define READ_SIZE 16384

static enum code ready(const struct cable *cable, short events, int64_t deadline, struct error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = cable->fd, .events = events};
        int64_t left = deadline - mono_now();
        if (cable->stopping && atomic_load(cable->stopping)) return error_set(err, E_CANCELLED, "stopped");
        if (left <= 0) return error_set(err, E_TIMEOUT, "the server took too long");
        int got = poll(&fd, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if (got > 0) return OK;
        if (got < 0 && errno != EINTR) return os_errno(err, "wait for", "the server");
    }
}

enum code cable_wait(struct cable *cable, int64_t deadline, struct error *err)
{
    return cable->ssl && SSL_pending(cable->ssl) ? OK : ready(cable, POLLIN, deadline, err);
}

static enum code dial_one(struct cable *cable, const struct addrinfo *to, int64_t deadline, struct error *err)
{
    cable->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (cable->fd < 0) return error_set(err, E_IO, "%s", strerror(errno));
    int on = 1, failure = 0;
    socklen_t size = sizeof(failure);
    setsockopt(cable->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    enum code rc = OK;
    if (connect(cable->fd, to->ai_addr, to->ai_addrlen) != 0) {
        rc = errno == EINPROGRESS || errno == EINTR ? ready(cable, POLLOUT, deadline, err)
                                                    : error_set(err, E_IO, "%s", strerror(errno));
        if (!rc && getsockopt(cable->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
        if (!rc && failure) rc = error_set(err, E_IO, "%s", strerror(failure));
    }
    if (rc) cable_close(cable);
    return rc;
}

enum code cable_dial(struct cable *cable, const char *host, const char *port, int64_t deadline, struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list = NULL;
    enum code rc = E_IO;
    cable->fd = -1;
    cable->ssl = NULL;
    int failed = getaddrinfo(host, port, &hints, &list);
    if (failed) return error_set(err, E_IO, "%s: %s", host, gai_strerror(failed));
    for (const struct addrinfo *to = list; to && rc && rc != E_CANCELLED; to = to->ai_next) {
        struct error why = {0};
        rc = dial_one(cable, to, deadline, &why);
        if (rc && err) *err = why;
    }
    freeaddrinfo(list);
    if (rc) error_wrap(err, "cannot reach %s:%s", host, port);
    return rc;
}

// ---- TLS

static SSL_CTX *context_make(struct str ca_file)
{
    char path[PATH_MAX] = "";
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || ca_file.len >= sizeof(path)) {
        SSL_CTX_free(context);
        return NULL;
    }
    snprintf(path, sizeof(path), "%.*s", STR_ARG(ca_file));
    bool good =
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
        (*path ? SSL_CTX_load_verify_locations(context, path, NULL) : SSL_CTX_set_default_verify_paths(context)) == 1;
    SSL_CTX_set_security_level(context, 2);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (good) return context;
    SSL_CTX_free(context);
    return NULL;
}

// What an SSL call that gave `result` waits for; OK: call it again.
static enum code again(struct cable *cable, int result, int64_t deadline, struct error *err)
{
    int why = SSL_get_error(cable->ssl, result);
    unsigned long reason = ERR_peek_error();
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ) return ready(cable, POLLIN, deadline, err);
    if (why == SSL_ERROR_WANT_WRITE) return ready(cable, POLLOUT, deadline, err);
    if (why == SSL_ERROR_SSL && reason) return error_set(err, E_IO, "TLS failed: %s", ERR_reason_error_string(reason));
    return error_set(err, E_IO, "the server broke off");
}

enum code cable_secure(struct cable *cable, const char *host, struct str ca_file, int64_t deadline, struct error *err)
{
    SSL_CTX *context = context_make(ca_file);
    cable->ssl = context ? SSL_new(context) : NULL;
    SSL_CTX_free(context);
    ERR_clear_error();
    if (!cable->ssl) return error_set(err, E_INVALID, "cannot read certificates");
    X509_VERIFY_PARAM *param = SSL_get0_param(cable->ssl);
    bool named = X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    if (!named)
        named = X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 && SSL_set_tlsext_host_name(cable->ssl, host) == 1;
    if (!named || SSL_set_fd(cable->ssl, cable->fd) != 1) return error_nomem(err);
    for (;;) {
        int done = SSL_connect(cable->ssl);
        if (done == 1) return OK;
        long verdict = SSL_get_verify_result(cable->ssl);
        if (verdict != X509_V_OK)
            return error_set(err, E_DENIED, "the server's certificate is not accepted: %s",
                             X509_verify_cert_error_string(verdict));
        enum code rc = again(cable, done, deadline, err);
        if (rc) return rc;
    }
}

// ---- bytes

static enum code write_tls(struct cable *cable, struct str *rest, int64_t deadline, struct error *err)
{
    size_t sent = 0;
    int done = SSL_write_ex(cable->ssl, rest->ptr, rest->len, &sent);
    if (done != 1) return again(cable, done, deadline, err);
    *rest = str_slice(*rest, sent, rest->len);
    return OK;
}

enum code cable_write(struct cable *cable, struct str bytes, int64_t deadline, struct error *err)
{
    enum code rc = OK;
    while (!rc && bytes.len) {
        if (cable->ssl) {
            rc = write_tls(cable, &bytes, deadline, err);
            continue;
        }
        ssize_t sent = send(cable->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent >= 0)
            bytes = str_slice(bytes, (size_t)sent, bytes.len);
        else if (errno == EAGAIN)
            rc = ready(cable, POLLOUT, deadline, err);
        else if (errno != EINTR)
            rc = error_set(err, E_IO, "the server broke off: %s", strerror(errno));
    }
    return rc;
}

static enum code read_tls(struct cable *cable, char *room, size_t *got, struct error *err)
{
    int done = SSL_read_ex(cable->ssl, room, READ_SIZE, got);
    if (done == 1) return OK;
    *got = 0;
    int why = SSL_get_error(cable->ssl, done);
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return OK;
    return error_set(err, E_IO, "the server broke off");
}

enum code cable_read(struct cable *cable, struct buf *in, size_t *got, struct error *err)
{
    char *room = buf_reserve(in, READ_SIZE);
    *got = 0;
    if (!room) return error_set(err, E_LIMIT, "the server says too much at once");
    if (cable->ssl) {
        enum code rc = read_tls(cable, room, got, err);
        if (!rc) in->len += *got;
        in->ptr[in->len] = '\0';
        return rc;
    }
    for (;;) {
        ssize_t n = recv(cable->fd, room, READ_SIZE, 0);
        if (n == 0) return error_set(err, E_IO, "the server broke off");
        if (n > 0) {
            *got = (size_t)n;
            in->len += *got;
            in->ptr[in->len] = '\0';
            return OK;
        }
        if (errno == EAGAIN) return OK;
        if (errno != EINTR) return error_set(err, E_IO, "the server broke off: %s", strerror(errno));
    }
}

void cable_close(struct cable *cable)
{
    SSL_free(cable->ssl);
    ERR_clear_error();
    cable->ssl = NULL;
    if (cable->fd >= 0) close(cable->fd);
    cable->fd = -1;
}
