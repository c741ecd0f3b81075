#include "bus/tcp.h"

#include "bus/inside.h"
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

static enum code ready(const struct tcp *tcp, short events, int64_t deadline, struct error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = tcp->fd, .events = events};
        int64_t left = deadline - mono_now();
        if (tcp->stopped && tcp->stopped(tcp->context)) return error_set(err, E_CANCELLED, "stopped");
        if (left <= 0) return error_set(err, E_TIMEOUT, "the server took too long");
        int got = poll(&fd, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if (got > 0) return OK;
        if (got < 0 && errno != EINTR) return os_errno(err, "wait for", "the server");
    }
}

enum code tcp_wait(struct tcp *tcp, int64_t deadline, struct error *err)
{
    return tcp->ssl && SSL_pending(tcp->ssl) ? OK : ready(tcp, POLLIN, deadline, err);
}

static enum code dial_one(struct tcp *tcp, const struct addrinfo *to, int64_t deadline, struct error *err)
{
    tcp->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (tcp->fd < 0) return error_set(err, E_IO, "%s", strerror(errno));
    int on = 1, failure = 0;
    socklen_t size = sizeof(failure);
    setsockopt(tcp->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    enum code rc = OK;
    if (connect(tcp->fd, to->ai_addr, to->ai_addrlen) != 0) {
        rc = errno == EINPROGRESS || errno == EINTR ? ready(tcp, POLLOUT, deadline, err)
                                                    : error_set(err, E_IO, "%s", strerror(errno));
        if (!rc && getsockopt(tcp->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
        if (!rc && failure) rc = error_set(err, E_IO, "%s", strerror(failure));
    }
    if (rc) tcp_close(tcp);
    return rc;
}

enum code tcp_dial(struct tcp *tcp, const char *host, const char *port, int64_t deadline, struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list = NULL;
    enum code rc = E_IO;
    tcp->fd = -1;
    tcp->ssl = NULL;
    int failed = getaddrinfo(host, port, &hints, &list);
    if (failed) return error_set(err, E_IO, "%s: %s", host, gai_strerror(failed));
    for (const struct addrinfo *to = list; to && rc && rc != E_CANCELLED; to = to->ai_next) {
        struct error why = {0};
        rc = dial_one(tcp, to, deadline, &why);
        if (rc && err) *err = why;
    }
    freeaddrinfo(list);
    if (rc) error_wrap(err, "cannot reach %s:%s", host, port);
    return rc;
}

// ---- TLS

static bool path_of(struct str text, char out[PATH_MAX])
{
    if (text.len >= PATH_MAX) return false;
    snprintf(out, PATH_MAX, "%.*s", STR_ARG(text));
    return true;
}

// The certificate of our own, with its key.
static bool show_certificate(SSL_CTX *context, const struct tcp_tls *tls)
{
    char cert[PATH_MAX], key[PATH_MAX];
    if (tls->cert_file.len == 0) return true;
    return path_of(tls->cert_file, cert) && path_of(tls->key_file, key) &&
           SSL_CTX_use_certificate_chain_file(context, cert) == 1 &&
           SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(context) == 1;
}

// A list of one protocol, each with its length before it.
static bool want_protocol(SSL_CTX *context, const char *alpn)
{
    unsigned char list[32];
    size_t size = alpn ? strlen(alpn) : 0;
    if (size == 0) return true;
    if (size >= sizeof(list)) return false;
    list[0] = (unsigned char)size;
    memcpy(list + 1, alpn, size);
    return SSL_CTX_set_alpn_protos(context, list, (unsigned)size + 1) == 0;
}

static SSL_CTX *context_make(const struct tcp_tls *tls)
{
    char path[PATH_MAX] = "";
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !path_of(tls->ca_file, path)) {
        SSL_CTX_free(context);
        return NULL;
    }
    bool good =
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
        (*path ? SSL_CTX_load_verify_locations(context, path, NULL) : SSL_CTX_set_default_verify_paths(context)) == 1;
    SSL_CTX_set_security_level(context, 2);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (good && show_certificate(context, tls) && want_protocol(context, tls->alpn)) return context;
    SSL_CTX_free(context);
    return NULL;
}

// What an SSL call that gave `result` waits for; OK: call it again.
static enum code again(struct tcp *tcp, int result, int64_t deadline, struct error *err)
{
    int why = SSL_get_error(tcp->ssl, result);
    unsigned long reason = ERR_peek_error();
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ) return ready(tcp, POLLIN, deadline, err);
    if (why == SSL_ERROR_WANT_WRITE) return ready(tcp, POLLOUT, deadline, err);
    if (why == SSL_ERROR_SSL && reason) return error_set(err, E_IO, "TLS failed: %s", ERR_reason_error_string(reason));
    return error_set(err, E_IO, "the server broke off");
}

static bool has_protocol(const struct tcp *tcp, const char *alpn)
{
    const unsigned char *chosen = NULL;
    unsigned size = 0;
    if (!alpn) return true;
    SSL_get0_alpn_selected(tcp->ssl, &chosen, &size);
    return size == strlen(alpn) && memcmp(chosen, alpn, size) == 0;
}

enum code tcp_secure(struct tcp *tcp, const struct tcp_tls *tls, int64_t deadline, struct error *err)
{
    const char *host = tls->host;
    SSL_CTX *context = context_make(tls);
    tcp->ssl = context ? SSL_new(context) : NULL;
    SSL_CTX_free(context);
    ERR_clear_error();
    if (!tcp->ssl) return error_set(err, E_INVALID, "cannot read certificates");
    X509_VERIFY_PARAM *param = SSL_get0_param(tcp->ssl);
    bool named = X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    if (!named)
        named = X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 && SSL_set_tlsext_host_name(tcp->ssl, host) == 1;
    if (!named || SSL_set_fd(tcp->ssl, tcp->fd) != 1) return error_nomem(err);
    for (;;) {
        int done = SSL_connect(tcp->ssl);
        if (done == 1 && !has_protocol(tcp, tls->alpn))
            return error_set(err, E_UNSUPPORTED, "the server does not agree on the protocol \"%s\"", tls->alpn);
        if (done == 1) return OK;
        long verdict = SSL_get_verify_result(tcp->ssl);
        if (verdict != X509_V_OK)
            return error_set(err, E_DENIED, "the server's certificate is not accepted: %s",
                             X509_verify_cert_error_string(verdict));
        enum code rc = again(tcp, done, deadline, err);
        if (rc) return rc;
    }
}

// ---- bytes

static enum code write_tls(struct tcp *tcp, struct str *rest, int64_t deadline, struct error *err)
{
    size_t sent = 0;
    int done = SSL_write_ex(tcp->ssl, rest->ptr, rest->len, &sent);
    if (done != 1) return again(tcp, done, deadline, err);
    *rest = str_slice(*rest, sent, rest->len);
    return OK;
}

enum code tcp_write(struct tcp *tcp, struct str bytes, int64_t deadline, struct error *err)
{
    enum code rc = OK;
    while (!rc && bytes.len) {
        if (tcp->ssl) {
            rc = write_tls(tcp, &bytes, deadline, err);
            continue;
        }
        ssize_t sent = send(tcp->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent >= 0)
            bytes = str_slice(bytes, (size_t)sent, bytes.len);
        else if (errno == EAGAIN)
            rc = ready(tcp, POLLOUT, deadline, err);
        else if (errno != EINTR)
            rc = error_set(err, E_IO, "the server broke off: %s", strerror(errno));
    }
    return rc;
}

enum code tcp_send(struct tcp *tcp, struct str bytes, size_t *sent, struct error *err)
{
    *sent = 0;
    if (tcp->ssl) {
        int done = SSL_write_ex(tcp->ssl, bytes.ptr, bytes.len, sent);
        int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(tcp->ssl, done);
        ERR_clear_error();
        if (why == SSL_ERROR_NONE || why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return OK;
        return error_set(err, E_IO, "the server broke off");
    }
    ssize_t n;
    do n = send(tcp->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN) return error_set(err, E_IO, "the server broke off: %s", strerror(errno));
    if (n > 0) *sent = (size_t)n;
    return OK;
}

static enum code read_tls(struct tcp *tcp, char *room, size_t *got, struct error *err)
{
    int done = SSL_read_ex(tcp->ssl, room, READ_SIZE, got);
    if (done == 1) return OK;
    *got = 0;
    int why = SSL_get_error(tcp->ssl, done);
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return OK;
    return error_set(err, E_IO, "the server broke off");
}

enum code tcp_read(struct tcp *tcp, struct buf *in, size_t *got, struct error *err)
{
    char *room = buf_reserve(in, READ_SIZE);
    *got = 0;
    if (!room) return error_set(err, E_LIMIT, "the server says too much at once");
    if (tcp->ssl) {
        enum code rc = read_tls(tcp, room, got, err);
        if (!rc) in->len += *got;
        in->ptr[in->len] = '\0';
        return rc;
    }
    for (;;) {
        ssize_t n = recv(tcp->fd, room, READ_SIZE, 0);
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

void tcp_close(struct tcp *tcp)
{
    SSL_free(tcp->ssl);
    ERR_clear_error();
    tcp->ssl = NULL;
    if (tcp->fd >= 0) close(tcp->fd);
    tcp->fd = -1;
}
