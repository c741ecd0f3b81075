// A server on a thread of its own and clients on plain sockets, for tests of src/net.
#ifndef CAIRN_TEST_NET_KIT_H
#define CAIRN_TEST_NET_KIT_H

#include "harness/test.h"
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KIT_WAIT_MS = 10000 }; // for what must happen; a loaded machine is slow

struct kit {
    struct net_server *server;
    struct net_limits limits;
    struct net_options options;
    pthread_t thread;
    const char *address[1];
};

static inline void *kit_thread(void *context)
{
    net_run(context);
    return NULL;
}

// options.handle and what else the test wants are set before.
static inline void kit_start(struct kit *kit)
{
    struct error err = {0};
    if (!kit->address[0]) kit->address[0] = "127.0.0.1:0";
    if (!kit->limits.connections) kit->limits = net_limits_default;
    kit->options.listen = kit->address;
    kit->options.listen_count = 1;
    kit->options.limits = &kit->limits;
    CHECK_OK(net_open(&kit->options, &kit->server, &err), &err);
    CHECK_INT(pthread_create(&kit->thread, NULL, kit_thread, kit->server), 0);
}

static inline void kit_stop(struct kit *kit)
{
    net_stop(kit->server);
    CHECK_INT(pthread_join(kit->thread, NULL), 0);
    net_close(kit->server);
}

static inline int kit_connect_port(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline int kit_connect(struct kit *kit)
{
    return kit_connect_port(net_port(kit->server, 0));
}

static inline void kit_send(int fd, struct str text)
{
    while (text.len) {
        ssize_t count = send(fd, text.ptr, text.len, MSG_NOSIGNAL);
        CHECK(count > 0);
        text = str_slice(text, (size_t)count, text.len);
    }
}

// One read, within KIT_WAIT_MS: bytes, 0 at the end (also a reset).
static inline size_t kit_read(int fd, char *into, size_t size)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    if (poll(&poller, 1, KIT_WAIT_MS) != 1) test_fail(__FILE__, __LINE__, "no answer");
    ssize_t count = recv(fd, into, size, 0);
    return count > 0 ? (size_t)count : 0;
}

// A client's view of answers on one connection.
struct answers {
    int fd;
    struct arena arena;
    struct http_parser parser;
    struct buf input;
    size_t at;
};

static inline void answers_init(struct answers *answers, int fd)
{
    answers->fd = fd;
    answers->at = 0;
    arena_init(&answers->arena, 4096, (size_t)64 << 20);
    http_parser_init(&answers->parser, HTTP_RESPONSES, &http_limits_default, &answers->arena);
    answers->parser.limits.body_max = (uint64_t)64 << 20;
    buf_init(&answers->input, (size_t)64 << 20);
}

static inline void answers_release(struct answers *answers)
{
    http_parser_release(&answers->parser);
    arena_release(&answers->arena);
    buf_release(&answers->input);
    close(answers->fd);
}

// The next answer; its status, or 0 when the connection ended before one.
static inline int answers_next(struct answers *answers)
{
    char bytes[16384];
    size_t used;
    enum http_step step = HTTP_HEAD;
    http_parser_next(&answers->parser);
    arena_reset(&answers->arena);
    for (;;) {
        if (answers->at < answers->input.len || step == HTTP_HEAD) {
            step = http_parser_feed(&answers->parser,
                                    str_slice(buf_str(&answers->input), answers->at, answers->input.len), &used);
            answers->at += used;
            if (step == HTTP_DONE) return answers->parser.answer.status;
            if (step == HTTP_BAD) test_fail(__FILE__, __LINE__, "%s", answers->parser.reason);
            if (step == HTTP_HEAD) continue;
        }
        size_t count = kit_read(answers->fd, bytes, sizeof(bytes));
        if (!count) return 0;
        buf_add(&answers->input, (struct str){bytes, count});
    }
}

static inline void answers_open(struct answers *answers, struct kit *kit)
{
    answers_init(answers, kit_connect(kit));
}

static inline int answers_to(struct answers *answers, struct str request)
{
    kit_send(answers->fd, request);
    return answers_next(answers);
}

static inline struct str answers_header(const struct answers *answers, const char *name) // empty: there is none
{
    return http_header_find(answers->parser.answer.headers, answers->parser.answer.header_count, name);
}

// Sends one request on a connection of its own; status of the answer, 0 for none.
static inline int kit_status(struct kit *kit, const char *request)
{
    struct answers answers;
    answers_open(&answers, kit);
    int status = answers_to(&answers, str_from(request));
    answers_release(&answers);
    return status;
}

// Waits until *counter is at least `want`.
static inline void kit_await(atomic_int *counter, int want)
{
    for (int i = 0; i < KIT_WAIT_MS && atomic_load(counter) < want; i++) usleep(1000);
    CHECK(atomic_load(counter) >= want);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

// Answers with method, path and body.
static inline void echo(void *context, struct net_exchange *x)
{
    const struct http_request *request = net_request(x);
    struct http_header header = {STR("Content-Type"), STR("text/plain")};
    char text[512];
    (void)context;
    int len = snprintf(text, sizeof(text), "%.*s %.*s %.*s", STR_ARG(request->method), STR_ARG(request->path),
                       STR_ARG(str_slice(request->body, 0, 100)));
    net_reply(x, 200, &header, 1, (struct str){text, (size_t)len});
}

// ---- answers that come later, from another thread
UNUSED static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct net_exchange *held[64];
    size_t count;
    bool open;
} fake = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, false};

static inline void put_on_desk(void *context, struct net_exchange *x)
{
    (void)context;
    if (str_is(net_request(x)->path, "/now")) {
        echo(NULL, x);
        return;
    }
    pthread_mutex_lock(&fake.mutex);
    fake.held[fake.count++] = x;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.mutex);
}

static inline struct net_exchange *take_from_desk(void)
{
    pthread_mutex_lock(&fake.mutex);
    while (!fake.count) pthread_cond_wait(&fake.changed, &fake.mutex);
    struct net_exchange *x = fake.held[--fake.count];
    pthread_mutex_unlock(&fake.mutex);
    return x;
}

#endif
