// A server of HTTP/2 that answers as a test says: frames as bytes, so that they can be wrong.
#ifndef CAIRN_TEST_GRPC_KIT_H
#define CAIRN_TEST_GRPC_KIT_H

#include "base/buf.h"
#include "harness/test.h"
#include "os/os.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct peer;
struct link {
    struct peer *peer;
    int fd, nth; // nth connection, from 1
    SSL *ssl;
    size_t piece; // bytes that are written at a time; 0 = all
    int32_t stream;   // of the last request
    struct buf body;  // of the last request, with its head
    int32_t reset;    // the last stream that the client reset
    bool mute;        // pings are not answered
};
struct peer {
    int fd, port;
    pthread_t thread;
    void (*serve)(struct link *link);
    atomic_int connections, requests, resets, done;
    SSL_CTX *tls;
    int32_t hold; // for scripts
};

enum { DATA = 0, HEADERS = 1, RST = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW = 8, END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

static inline bool link_write(struct link *link, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        size_t piece = link->piece && link->piece < size ? link->piece : size;
        ssize_t n = link->ssl ? SSL_write(link->ssl, at, (int)piece) : send(link->fd, at, piece, MSG_NOSIGNAL);
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static inline bool link_read(struct link *link, void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        ssize_t n = link->ssl ? SSL_read(link->ssl, at, (int)size) : recv(link->fd, at, size, 0);
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static inline bool frame(struct link *link, int type, int flags, int32_t stream, struct str payload)
{
    uint8_t head[9] = {(uint8_t)(payload.len >> 16), (uint8_t)(payload.len >> 8), (uint8_t)payload.len, (uint8_t)type, (uint8_t)flags,
                       (uint8_t)((uint32_t)stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    return link_write(link, head, sizeof(head)) && link_write(link, payload.ptr, payload.len);
}

static inline bool frame_number(struct link *link, int type, int32_t stream, uint32_t n)
{
    char bytes[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    return frame(link, type, 0, stream, (struct str){bytes, 4});
}

static inline bool goaway(struct link *link, int32_t last)
{
    char bytes[8] = {(char)(last >> 24), (char)(last >> 16), (char)(last >> 8), (char)last, 0, 0, 0, 0};
    return frame(link, GOAWAY, 0, 0, (struct str){bytes, 8});
}

// Headers as literals that enter no table: name, value, name, value, NULL.
static inline bool headers(struct link *link, int flags, int32_t stream, const char *const *pairs)
{
    struct buf out = buf_of(64 << 10);
    for (; *pairs; pairs += 2) {
        buf_byte(&out, 0);
        for (int i = 0; i < 2; i++) {
            size_t size = strlen(pairs[i]);
            CHECK(size < 127);
            buf_byte(&out, (char)size);
            buf_text(&out, pairs[i]);
        }
    }
    bool sent = frame(link, HEADERS, flags | END_HEADERS, stream, buf_str(&out));
    buf_release(&out);
    return sent;
}
#define HEADERS_OF(link, flags, stream, ...) headers(link, flags, stream, (const char *const[]){__VA_ARGS__, NULL})

static inline bool message(struct link *link, int flags, int32_t stream, int flag, size_t claimed, struct str body)
{
    struct buf out = buf_of(16 << 20);
    char head[5] = {(char)flag, (char)(claimed >> 24), (char)(claimed >> 16), (char)(claimed >> 8), (char)claimed};
    buf_add(&out, (struct str){head, 5});
    buf_add(&out, body);
    bool sent = true;
    for (size_t at = 0; sent && at < out.len; at += 16384) {
        bool last = at + 16384 >= out.len;
        sent = frame(link, DATA, last ? flags : 0, stream, str_slice(buf_str(&out), at, last ? out.len : at + 16384));
    }
    buf_release(&out);
    return sent;
}

static inline bool begin_answer(struct link *link, int32_t stream)
{
    return HEADERS_OF(link, 0, stream, ":status", "200", "content-type", "application/grpc");
}

static inline bool answer(struct link *link, int32_t stream, struct str body)
{
    return begin_answer(link, stream) && message(link, 0, stream, 0, body.len, body) &&
           HEADERS_OF(link, END_STREAM, stream, "grpc-status", "0");
}

static inline bool refuse(struct link *link, int32_t stream, const char *status, const char *why)
{
    return HEADERS_OF(link, END_STREAM, stream, ":status", "200", "grpc-status", status, "grpc-message", why);
}

// The next request that is whole. False: the client has gone.
static inline bool next_request(struct link *link)
{
    buf_clear(&link->body);
    for (;;) {
        uint8_t head[9];
        static _Thread_local char payload[1 << 17];
        if (!link_read(link, head, sizeof(head))) return false;
        size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        int32_t stream = (int32_t)(((uint32_t)head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]);
        CHECK(size <= sizeof(payload));
        if (!link_read(link, payload, size)) return false;
        struct str text = {payload, size};
        if (head[3] == SETTINGS && !(head[4] & ACK)) frame(link, SETTINGS, ACK, 0, (struct str){"", 0});
        if (head[3] == PING && !(head[4] & ACK) && !link->mute) frame(link, PING, ACK, 0, text);
        if (head[3] == RST) {
            link->reset = stream;
            atomic_fetch_add(&link->peer->resets, 1);
        }
        if (head[3] == HEADERS) buf_clear(&link->body);
        if (head[3] == DATA) {
            buf_add(&link->body, text);
            if (size > 0) {
                frame_number(link, WINDOW, 0, (uint32_t)size);
                frame_number(link, WINDOW, stream, (uint32_t)size);
            }
        }
        if ((head[3] == DATA || head[3] == HEADERS) && head[4] & END_STREAM) {
            link->stream = stream;
            atomic_fetch_add(&link->peer->requests, 1);
            return true;
        }
    }
}

static inline struct str asked(const struct link *link)
{
    return str_slice(buf_str(&link->body), 5, link->body.len);
}

static inline void *serve_link(void *context)
{
    struct link *link = context;
    char preface[24];
    if (link->peer->tls) {
        link->ssl = SSL_new(link->peer->tls);
        SSL_set_fd(link->ssl, link->fd);
    }
    if ((!link->ssl || SSL_accept(link->ssl) == 1) && link_read(link, preface, sizeof(preface)) &&
        frame(link, SETTINGS, 0, 0, (struct str){"", 0}))
        link->peer->serve(link);
    if (link->ssl) SSL_free(link->ssl);
    close(link->fd);
    buf_release(&link->body);
    free(link);
    return NULL;
}

static inline void *peer_main(void *context)
{
    struct peer *peer = context;
    for (;;) {
        int fd = accept4(peer->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) return NULL;
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct link *link = calloc(1, sizeof(*link));
        CHECK(link);
        *link = (struct link){.peer = peer, .fd = fd, .nth = atomic_fetch_add(&peer->connections, 1) + 1};
        buf_init(&link->body, 32 << 20);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, serve_link, link) == 0);
        pthread_detach(thread);
    }
}

static inline void peer_start(struct peer *peer, void (*serve)(struct link *link))
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer->serve = serve;
    CHECK(bind(peer->fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(peer->fd, 64) == 0);
    CHECK(getsockname(peer->fd, (struct sockaddr *)&at, &size) == 0);
    peer->port = ntohs(at.sin_port);
    CHECK(pthread_create(&peer->thread, NULL, peer_main, peer) == 0);
}

#endif
