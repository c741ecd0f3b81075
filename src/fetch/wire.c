// Sockets and TLS with a deadline.
#include "fetch/inside.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t mono_ms(void)
{
    return os_mono_us() / 1000;
}

#define SLICE_MS 100 // between looks at whether to stop

// Until the socket is ready for `events`.
static enum code wire_wait(struct wire *wire, short events, struct error *err)
{
    struct pollfd fd = {.fd = wire->fd, .events = events};
    for (;;) {
        if (wire->stopped && wire->stopped(wire->stop_context)) return error_set(err, E_CANCELLED, "interrupted");
        int64_t left = wire->deadline == NO_DEADLINE ? INT_MAX : wire->deadline - mono_ms();
        if (left <= 0) return error_set(err, E_TIMEOUT, "the server took too long");
        if (left > INT_MAX) left = INT_MAX;
        if (wire->stopped && left > SLICE_MS) left = SLICE_MS;
        int ready = poll(&fd, 1, (int)left);
        if (ready < 0 && errno != EINTR) return os_errno(err, "wait for", "the server");
        if (ready > 0) return OK;
    }
}

static enum code connect_begun(struct wire *wire, struct error *err)
{
    int failure = 0;
    socklen_t size = sizeof(failure);
    enum code rc = wire_wait(wire, POLLOUT, err);
    if (rc) return rc;
    if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
    return failure ? error_set(err, E_IO, "%s", strerror(failure)) : OK;
}

enum code wire_connect(struct wire *wire, const struct address *address, struct error *err)
{
    wire->ssl = NULL;
    wire->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (wire->fd < 0) return error_set(err, errno == EMFILE || errno == ENFILE ? E_LIMIT : E_IO, "%s", strerror(errno));
    int on = 1;
    if (address->any.sa_family != AF_UNIX) setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    enum code rc = OK;
    while (connect(wire->fd, &address->any, address->size) != 0) {
        if (errno == EINTR) continue;
        if (errno == EISCONN) break;
        // EAGAIN of a Unix socket is a full backlog: nothing to wait for.
        bool begun = errno == EINPROGRESS || errno == EALREADY;
        rc = begun ? connect_begun(wire, err) : error_set(err, E_IO, "%s", strerror(errno));
        break;
    }
    if (rc) wire_close(wire);
    return rc;
}

enum code wire_dial_uri(struct wire *wire, const struct uri *uri, struct error *err)
{
    struct fetch_addresses addresses;
    enum code rc = address_resolve(NULL, uri, wire->deadline - mono_ms(), &addresses, err);
    for (size_t i = 0; !rc && i < addresses.count; i++) {
        struct error why = {0};
        rc = wire_connect(wire, &addresses.list[i], &why);
        if (!rc) return OK;
        bool next = i + 1 < addresses.count && rc != E_CANCELLED && rc != E_TIMEOUT;
        rc = next ? OK : error_set(err, rc, "%s", why.message);
    }
    return rc;
}

enum code wire_dial(struct wire *wire, const char *host, const char *port, struct error *err)
{
    struct uri uri = {.literal = false};
    int64_t number;
    snprintf(uri.host, sizeof(uri.host), "%s", host);
    if (strlen(host) > HOST_MAX || !str_int64(str_from(port), &number) || number < 1 || number > UINT16_MAX)
        return error_set(err, E_INVALID, "%s:%s is no address of a server", host, port);
    uri.port = (uint16_t)number;
    enum code rc = wire_dial_uri(wire, &uri, err);
    if (rc) error_wrap(err, "cannot reach %s:%s", host, port);
    return rc;
}

// ---- TLS

// A socket BIO of OpenSSL's own would raise SIGPIPE. Its data is the descriptor.
static int bio_fd(BIO *bio)
{
    BIO_clear_retry_flags(bio);
    return (int)(intptr_t)BIO_get_data(bio);
}

static int bio_read(BIO *bio, char *bytes, int size)
{
    ssize_t got = recv(bio_fd(bio), bytes, (size_t)size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    return (int)got;
}

static int bio_write(BIO *bio, const char *bytes, int size)
{
    ssize_t sent = send(bio_fd(bio), bytes, (size_t)size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return (int)sent;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

// Made once and kept: reading the system's certificates takes longer than a handshake.
#define CONTEXTS_MAX 16
static struct {
    pthread_mutex_t mutex;
    BIO_METHOD *bio;
    size_t count;
    struct {
        char path[PATH_MAX];
        struct timespec changed;
        SSL_CTX *context;
    } list[CONTEXTS_MAX];
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// The authorities of this machine: where libcrypto looks for them, or, when nothing is there (a binary that was made on another
// distribution), where distributions keep them.
static bool trust_machine(SSL_CTX *context)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    };
    bool named = getenv(X509_get_default_cert_file_env()) || getenv(X509_get_default_cert_dir_env());
    if (!named && access(X509_get_default_cert_dir(), R_OK) != 0 && access(X509_get_default_cert_file(), R_OK) != 0)
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
            if (access(places[i], R_OK) == 0) return SSL_CTX_load_verify_locations(context, places[i], NULL) == 1;
    return SSL_CTX_set_default_verify_paths(context) == 1;
}

static SSL_CTX *context_make(const char *path)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) return NULL;
    bool good =
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
        (*path ? SSL_CTX_load_verify_locations(context, path, NULL) == 1 : trust_machine(context));
    SSL_CTX_set_security_level(context, 2); // no SHA-1, no short keys
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY);
    if (good) return context;
    SSL_CTX_free(context);
    return NULL;
}

static BIO_METHOD *bio_make(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    if (!method) return NULL;
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_ctrl(method, bio_ctrl);
    return method;
}

// A reference for the caller to free; NULL when it cannot be made.
static SSL_CTX *context_get(const char *path, const struct timespec *changed)
{
    size_t at = 0;
    while (at < kept.count && strcmp(kept.list[at].path, path) != 0) at++;
    if (at < kept.count && memcmp(&kept.list[at].changed, changed, sizeof(*changed)) == 0) {
        SSL_CTX_up_ref(kept.list[at].context);
        return kept.list[at].context;
    }
    SSL_CTX *made = context_make(path);
    if (!made || at == CONTEXTS_MAX) return made;
    if (at < kept.count) SSL_CTX_free(kept.list[at].context);
    memcpy(kept.list[at].path, path, strlen(path) + 1);
    kept.list[at].changed = *changed;
    kept.list[at].context = made;
    kept.count += at == kept.count;
    SSL_CTX_up_ref(made);
    return made;
}

static SSL *ssl_make(struct str ca_file, struct error *err)
{
    char path[PATH_MAX] = "";
    struct stat status = {0};
    if (ca_file.len >= sizeof(path)) {
        error_set(err, E_INVALID, "the path of the CA file is too long");
        return NULL;
    }
    if (ca_file.len) memcpy(path, ca_file.ptr, ca_file.len);
    path[ca_file.len] = '\0';
    if (ca_file.len && stat(path, &status) != 0) {
        os_errno(err, "read", path);
        return NULL;
    }
    pthread_mutex_lock(&kept.mutex);
    if (!kept.bio) kept.bio = bio_make();
    SSL_CTX *context = kept.bio ? context_get(path, &status.st_mtim) : NULL;
    pthread_mutex_unlock(&kept.mutex);
    SSL *ssl = context ? SSL_new(context) : NULL;
    SSL_CTX_free(context);
    ERR_clear_error();
    if (!ssl) error_set(err, E_INVALID, "cannot read certificates%s%s", *path ? " from " : "", path);
    return ssl;
}

static bool ssl_expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) return true;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

// A chain and a key that is its own.
static enum code ssl_show(SSL *ssl, const struct wire_tls *tls, struct error *err)
{
    if (!tls->cert_file || !*tls->cert_file) return OK;
    bool good = SSL_use_certificate_chain_file(ssl, tls->cert_file) == 1 &&
                SSL_use_PrivateKey_file(ssl, tls->key_file, SSL_FILETYPE_PEM) == 1 && SSL_check_private_key(ssl) == 1;
    ERR_clear_error();
    if (good) return OK;
    return error_set(err, E_INVALID, "the certificate %s and the key %s cannot be used together", tls->cert_file,
                     tls->key_file);
}

// A list of one protocol, with its length before it.
static bool ssl_offer(SSL *ssl, const char *alpn)
{
    unsigned char list[32];
    size_t size = alpn ? strlen(alpn) : 0;
    if (size == 0) return true;
    INVARIANT(size < sizeof(list));
    list[0] = (unsigned char)size;
    memcpy(list + 1, alpn, size);
    return SSL_set_alpn_protos(ssl, list, (unsigned)size + 1) == 0;
}

static bool ssl_agreed(const SSL *ssl, const char *alpn)
{
    const unsigned char *chosen = NULL;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl, &chosen, &size);
    return size == strlen(alpn) && memcmp(chosen, alpn, size) == 0;
}

static enum code ssl_begin(struct wire *wire, const struct wire_tls *tls, struct error *err)
{
    wire->ssl = ssl_make(tls->ca_file, err);
    if (!wire->ssl) return err ? err->code : E_INVALID;
    enum code rc = ssl_show(wire->ssl, tls, err);
    if (rc) return rc;
    BIO *bio = ssl_expect(wire->ssl, tls->host) && ssl_offer(wire->ssl, tls->alpn) ? BIO_new(kept.bio) : NULL;
    if (!bio) return error_nomem(err);
    BIO_set_data(bio, (void *)(intptr_t)wire->fd);
    BIO_set_init(bio, 1);
    SSL_set_bio(wire->ssl, bio, bio);
    return OK;
}

static enum code broke_off(struct error *err)
{
    return error_set(err, E_IO, "the server broke off");
}

// What an SSL call that gave `result` wants: *wait (0: nothing more will come), then it is called again.
static enum code ssl_result(struct wire *wire, int result, short *wait, struct error *err)
{
    int why = SSL_get_error(wire->ssl, result);
    unsigned long reason = ERR_peek_error();
    ERR_clear_error();
    *wait = why == SSL_ERROR_WANT_READ ? POLLIN : why == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
    if (*wait || why == SSL_ERROR_ZERO_RETURN) return OK;
    if (why == SSL_ERROR_SSL && ERR_GET_REASON(reason) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return error_set(err, E_IO, "TLS failed: %s", ERR_reason_error_string(reason));
    return broke_off(err);
}

enum code wire_secure(struct wire *wire, const struct wire_tls *tls, struct error *err)
{
    enum code rc = ssl_begin(wire, tls, err);
    while (!rc) {
        short wait;
        ERR_clear_error();
        int done = SSL_connect(wire->ssl);
        if (done == 1 && tls->agreed && !ssl_agreed(wire->ssl, tls->alpn))
            return error_set(err, E_UNSUPPORTED, "the server does not agree on the protocol \"%s\"", tls->alpn);
        if (done == 1) return OK;
        long verdict = SSL_get_verify_result(wire->ssl);
        if (verdict != X509_V_OK)
            return error_set(err, E_DENIED, "the server's certificate is not accepted: %s",
                             X509_verify_cert_error_string(verdict));
        rc = ssl_result(wire, done, &wait, err);
        if (!rc) rc = wait ? wire_wait(wire, wait, err) : broke_off(err);
    }
    return rc;
}

// ---- bytes

// Once. *wait: nothing was done, and this has to come first.
static enum code try_send(struct wire *wire, struct str bytes, size_t *sent, short *wait, struct error *err)
{
    *sent = 0;
    *wait = 0;
    if (wire->ssl) {
        ERR_clear_error();
        int done = SSL_write_ex(wire->ssl, bytes.ptr, bytes.len, sent);
        if (done == 1) return OK;
        enum code rc = ssl_result(wire, done, wait, err);
        return rc || *wait ? rc : broke_off(err);
    }
    ssize_t n;
    do n = send(wire->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        *sent = (size_t)n;
    else if (errno == EAGAIN)
        *wait = POLLOUT;
    else
        return error_set(err, E_IO, "the server broke off: %s", strerror(errno));
    return OK;
}

// Once. Neither *got nor *wait: the other side has closed.
static enum code try_recv(struct wire *wire, char *room, size_t size, size_t *got, short *wait, struct error *err)
{
    *got = 0;
    *wait = 0;
    if (wire->ssl) {
        ERR_clear_error();
        int done = SSL_read_ex(wire->ssl, room, size, got);
        return done == 1 ? OK : ssl_result(wire, done, wait, err);
    }
    ssize_t n;
    do n = recv(wire->fd, room, size, 0);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        *got = (size_t)n;
    else if (errno == EAGAIN)
        *wait = POLLIN;
    else
        return error_set(err, E_IO, "the server broke off: %s", strerror(errno));
    return OK;
}

enum code wire_send(struct wire *wire, struct str bytes, struct error *err)
{
    enum code rc = OK;
    while (!rc && bytes.len) {
        size_t sent;
        short wait;
        rc = try_send(wire, bytes, &sent, &wait, err);
        if (!rc && wait) rc = wire_wait(wire, wait, err);
        bytes = str_slice(bytes, sent, bytes.len);
    }
    return rc;
}

enum code wire_send_now(struct wire *wire, struct str bytes, size_t *sent, struct error *err)
{
    short wait;
    return try_send(wire, bytes, sent, &wait, err);
}

enum code wire_recv(struct wire *wire, char *room, size_t size, size_t *got, struct error *err)
{
    short wait;
    enum code rc;
    do {
        // A server that always has bytes ready is never waited for: the clock is looked at here too.
        *got = 0;
        if (wire->deadline != NO_DEADLINE && mono_ms() >= wire->deadline)
            return error_set(err, E_TIMEOUT, "the server took too long");
        rc = try_recv(wire, room, size, got, &wait, err);
        if (!rc && wait) rc = wire_wait(wire, wait, err);
    } while (!rc && wait);
    return rc;
}

enum code wire_recv_now(struct wire *wire, struct buf *in, size_t *got, struct error *err)
{
    char *room = buf_reserve(in, WIRE_TURN);
    short wait;
    *got = 0;
    if (!room) return error_set(err, E_LIMIT, "the server says too much at once");
    enum code rc = try_recv(wire, room, WIRE_TURN, got, &wait, err);
    in->len += *got;
    in->ptr[in->len] = '\0';
    return rc || *got || wait ? rc : broke_off(err);
}

enum code wire_await(struct wire *wire, struct error *err)
{
    return wire->ssl && SSL_pending(wire->ssl) ? OK : wire_wait(wire, POLLIN, err);
}

bool wire_idle(const struct wire *wire)
{
    struct pollfd fd = {.fd = wire->fd, .events = POLLIN};
    // TLS 1.3 servers send tickets after the handshake: bytes that are no answer. Only a close says that it is over.
    if (poll(&fd, 1, 0) == 0) return true;
    char byte;
    if (!wire->ssl || recv(wire->fd, &byte, 1, MSG_PEEK) <= 0) return false;
    int got = SSL_peek(wire->ssl, &byte, 1);
    bool idle = got <= 0 && SSL_get_error(wire->ssl, got) == SSL_ERROR_WANT_READ;
    ERR_clear_error();
    return idle;
}

void wire_close(struct wire *wire)
{
    if (wire->ssl) {
        SSL_shutdown(wire->ssl); // says goodbye, does not wait for an answer
        SSL_free(wire->ssl);
        ERR_clear_error();
    }
    wire->ssl = NULL;
    if (wire->fd >= 0) close(wire->fd);
    wire->fd = -1;
}
