// Servers on loopback for the tests of the HTTP client: plain, TLS with certificates made on the spot, or on a Unix socket. A test
// gives the function that talks to one connection; each connection has a thread.
#ifndef CAIRN_TEST_UNIT_SUPPORT_FETCH_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_FETCH_KIT_H

#include "fetch/fetch.h"
#include "harness/test.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct server;

struct peer {
    struct server *server;
    int fd;
    SSL *ssl;
    char text[70000]; // the request: head and body
    size_t len, head;
    int number; // of the request on this connection, from 1
};

struct server {
    int fd;
    uint16_t port;
    void (*talk)(struct peer *peer);
    void *context;
    SSL_CTX *tls;
    atomic_int accepted, requests;
    pthread_t thread;
};

static inline ssize_t peer_read(struct peer *peer, void *bytes, size_t size)
{
    return peer->ssl ? SSL_read(peer->ssl, bytes, (int)size) : recv(peer->fd, bytes, size, 0);
}

// False when the client has gone.
static inline bool peer_send(struct peer *peer, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = peer->ssl ? SSL_write(peer->ssl, (const char *)bytes + done, (int)(size - done))
                              : send(peer->fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static inline bool peer_say(struct peer *peer, const char *text)
{
    return peer_send(peer, text, strlen(text));
}

// 200 with a body, kept alive.
static inline bool peer_answer(struct peer *peer, const char *body)
{
    char text[4096];
    int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    return peer_send(peer, text, (size_t)n);
}

static inline struct str peer_header(const struct peer *peer, const char *name)
{
    for (const char *line = peer->text; (line = strstr(line, "\r\n")) && line + 2 < peer->text + peer->head;) {
        line += 2;
        if (strncasecmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ':') continue;
        const char *from = line + strlen(name) + 2;
        return (struct str){from, (size_t)(strstr(from, "\r\n") - from)};
    }
    return (struct str){0};
}

static inline struct str peer_body(const struct peer *peer)
{
    return (struct str){peer->text + peer->head, peer->len - peer->head};
}

// The next request, whole. False: the client has closed.
static inline bool peer_next(struct peer *peer)
{
    peer->len = peer->head = 0;
    for (size_t want = SIZE_MAX; peer->len < want;) {
        ssize_t n = peer_read(peer, peer->text + peer->len, sizeof(peer->text) - 1 - peer->len);
        if (n <= 0) return false;
        peer->len += (size_t)n;
        peer->text[peer->len] = '\0';
        const char *end = strstr(peer->text, "\r\n\r\n");
        if (!end || want != SIZE_MAX) continue;
        peer->head = (size_t)(end + 4 - peer->text);
        int64_t length = 0;
        struct str said = peer_header(peer, "Content-Length");
        if (said.len && !str_int64(said, &length)) return false;
        want = peer->head + (size_t)length;
    }
    peer->number++;
    atomic_fetch_add(&peer->server->requests, 1);
    return true;
}

static inline void *peer_main(void *argument)
{
    struct peer *peer = argument;
    bool good = true;
    if (peer->server->tls) {
        peer->ssl = SSL_new(peer->server->tls);
        SSL_set_fd(peer->ssl, peer->fd);
        good = SSL_accept(peer->ssl) == 1;
    }
    if (good) peer->server->talk(peer);
    if (peer->ssl) SSL_shutdown(peer->ssl);
    SSL_free(peer->ssl);
    close(peer->fd);
    free(peer);
    return NULL;
}

static inline void *server_main(void *argument)
{
    struct server *server = argument;
    for (;;) {
        int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) return NULL;
        atomic_fetch_add(&server->accepted, 1);
        struct peer *peer = calloc(1, sizeof(*peer));
        peer->server = server;
        peer->fd = fd;
        pthread_t thread;
        pthread_create(&thread, NULL, peer_main, peer);
        pthread_detach(thread);
    }
}

static inline void server_serve(struct server *server)
{
    signal(SIGPIPE, SIG_IGN); // SSL_write of the servers
    CHECK(listen(server->fd, 64) == 0);
    CHECK(pthread_create(&server->thread, NULL, server_main, server) == 0);
    pthread_detach(server->thread); // tests are processes: it ends with them
}

static inline void server_start(struct server *server, void (*talk)(struct peer *))
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(to);
    server->talk = talk;
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(server->fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    CHECK(getsockname(server->fd, (struct sockaddr *)&to, &size) == 0);
    server->port = ntohs(to.sin_port);
    server_serve(server);
}

static inline void server_start_unix(struct server *server, const char *path, void (*talk)(struct peer *))
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    server->talk = talk;
    server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(strlen(path) < sizeof(to.sun_path));
    memcpy(to.sun_path, path, strlen(path) + 1);
    CHECK(bind(server->fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    server_serve(server);
}

// A policy from a text in which every PORT is the server's, one text after the other; built in `arena`.
static inline struct fetch_policy *policy_for(struct arena *arena, const char *text, uint16_t port)
{
    struct fetch_policy *policy = NULL;
    struct error err = {0};
    struct json *config = ARENA_NEW(arena, struct json);
    struct buf out;
    buf_init(&out, 1 << 20);
    for (const char *at = text; *at;) {
        bool here = strncmp(at, "PORT", 4) == 0;
        if (here) buf_int(&out, port);
        if (!here) buf_byte(&out, *at);
        at += here ? 4 : 1;
    }
    struct str copy = arena_copy(arena, buf_str(&out));
    buf_release(&out);
    CHECK_OK(json_parse(copy, NULL, arena, config, &err), &err);
    CHECK_OK(fetch_policy_parse(config, arena, &policy, &err), &err);
    return policy;
}

// A resolver that gives the same list to everybody, and counts.
struct names {
    const char *answers[8];
    atomic_int asked;
};

static inline enum code names_resolve(void *context, const char *host, int64_t timeout_ms, struct fetch_addresses *out,
                                      struct error *err)
{
    struct names *names = context;
    (void)host, (void)timeout_ms;
    atomic_fetch_add(&names->asked, 1);
    for (size_t i = 0; i < ARRAY_COUNT(names->answers) && names->answers[i]; i++)
        if (!fetch_address_add(out, names->answers[i])) return error_set(err, E_INVALID, "%s", names->answers[i]);
    return OK;
}

static inline void names_use(struct names *names, struct fetch_policy *policy)
{
    fetch_policy_resolver(policy, (struct fetch_resolver){names, names_resolve});
}

// ---- certificates; they live as long as the test, which is a process

// Threads of servers may still be in OpenSSL when the test ends: it must not clean up under them.
static inline void *lives_on(void *object)
{
    static void *list[256];
    static size_t count;
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    CHECK(count < ARRAY_COUNT(list));
    if (object) list[count++] = object;
    return object;
}

static inline X509 *certificate(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key, int from_days,
                                int to_days, const EVP_MD *digest)
{
    static long serial = 1;
    X509 *made = X509_new();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), serial++);
    X509_time_adj_ex(X509_getm_notBefore(made), from_days, 0, NULL);
    X509_time_adj_ex(X509_getm_notAfter(made), to_days, 0, NULL);
    X509_set_pubkey(made, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made, X509_get_subject_name(issuer ? issuer : made));
    char names[300];
    bool address = inet_addr(name) != INADDR_NONE;
    snprintf(names, sizeof(names), "%s:%s", address ? "IP" : "DNS", name);
    X509_EXTENSION *extension = issuer ? X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names)
                                       : X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
    CHECK(extension && X509_add_ext(made, extension, -1));
    X509_EXTENSION_free(extension);
    CHECK(X509_sign(made, issuer_key ? issuer_key : key, digest) > 0);
    return made;
}

struct authority {
    EVP_PKEY *key;
    X509 *certificate;
    char file[600];
};

static inline void authority_make(struct authority *authority)
{
    lives_on(NULL);
    authority->key = lives_on(EVP_EC_gen("P-256"));
    authority->certificate = lives_on(certificate(authority->key, "test authority", NULL, NULL, -2, 30, EVP_sha256()));
    snprintf(authority->file, sizeof(authority->file), "%s/ca-%d.pem", test_dir(), (int)(intptr_t)authority % 10007);
    FILE *file = fopen(authority->file, "w");
    CHECK(file && PEM_write_X509(file, authority->certificate));
    fclose(file);
}

// A server's side of TLS. authority NULL: it signs itself.
static inline SSL_CTX *tls_make(const struct authority *authority, const char *name, int from_days, int to_days,
                                const EVP_MD *digest)
{
    lives_on(NULL);
    SSL_CTX *context = lives_on(SSL_CTX_new(TLS_server_method()));
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *self = authority ? NULL : certificate(key, name, NULL, NULL, from_days, to_days, digest);
    X509 *leaf = certificate(key, name, authority ? authority->certificate : self, authority ? authority->key : key,
                             from_days, to_days, digest);
    SSL_CTX_set_security_level(context, 0);
    CHECK(SSL_CTX_use_certificate(context, leaf) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(self);
    X509_free(leaf);
    EVP_PKEY_free(key);
    return context;
}

#endif
