// A small HTTP server in threads of the test's own process, for tasks that fetch. One thread a connection, kept alive.
//   /json /status/N /slow /big /bytes /mark /echo (what came, as JSON) /token (a bearer token, counted) /page?page=N /script /delay
#ifndef CAIRN_TEST_CONFORMANCE_TASK_WEB_H
#define CAIRN_TEST_CONFORMANCE_TASK_WEB_H

#include "harness/test.h"
#include "json/json.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint16_t web_port;
static int web_fd;
static atomic_int web_tokens, web_connections, web_at_once, web_most;

struct web_request {
    char method[16], path[2048], head[16384];
    const char *body;
    size_t body_len;
};

static inline void web_answer(int fd, int status, const char *type, const char *body, size_t size)
{
    char head[300];
    int used = snprintf(head, sizeof(head),
                        "HTTP/1.1 %d Word\r\nContent-Type: %s\r\nContent-Length: %zu\r\nX-Stub: a\r\nX-Stub: b\r\n\r\n",
                        status, type, size);
    (void)!send(fd, head, (size_t)used, MSG_NOSIGNAL | MSG_MORE);
    (void)!send(fd, body, size, MSG_NOSIGNAL);
}

static inline void web_echo(int fd, const struct web_request *r)
{
    struct buf out;
    buf_init(&out, 64 << 20);
    buf_printf(&out, "{\"method\":\"%s\",\"path\":", r->method);
    json_write_string(&out, str_from(r->path));
    buf_text(&out, ",\"headers\":");
    json_write_string(&out, str_from(r->head));
    buf_text(&out, ",\"body\":");
    json_write_string(&out, (struct str){r->body, r->body_len});
    buf_text(&out, "}");
    web_answer(fd, 200, "application/json", out.ptr, out.len);
    buf_release(&out);
}

static inline void web_serve(int fd, const struct web_request *r)
{
    char text[300];
    const char *path = r->path;
    if (strncmp(path, "/status/", 8) == 0) {
        web_answer(fd, atoi(path + 8), "application/json", "{\"why\":\"asked for\"}", 19);
    } else if (strncmp(path, "/slow", 5) == 0) {
        nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    } else if (strncmp(path, "/delay", 6) == 0) {
        int now = atomic_fetch_add(&web_at_once, 1) + 1;
        if (now > atomic_load(&web_most)) atomic_store(&web_most, now);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        atomic_fetch_sub(&web_at_once, 1);
        web_answer(fd, 200, "application/json", "{}", 2);
    } else if (strncmp(path, "/big", 4) == 0) {
        char *big = malloc(2 << 20);
        memset(big, 'x', 2 << 20);
        web_answer(fd, 200, "text/plain", big, 2 << 20);
        free(big);
    } else if (strncmp(path, "/bytes", 6) == 0) {
        web_answer(fd, 200, "application/octet-stream", "\xFF\xFE\x00z", 4);
    } else if (strncmp(path, "/mark", 5) == 0) {
        const char *mark = "{\"m\":\"\\u0001keychain:suite.password\\u0001\"}";
        web_answer(fd, 200, "application/json", mark, strlen(mark));
    } else if (strncmp(path, "/script", 7) == 0) {
        const char *script = "def main(n):\n    return n + 1\n";
        web_answer(fd, 200, "text/x-python", script, strlen(script));
    } else if (strncmp(path, "/token", 6) == 0) {
        int n = atomic_fetch_add(&web_tokens, 1) + 1;
        int used = snprintf(text, sizeof(text),
                            "{\"access_token\":\"fetched-token-%d\",\"expires_in\":3600,\"asked\":\"%.*s\"}", n,
                            (int)r->body_len, r->body);
        web_answer(fd, 200, "application/json", text, (size_t)used);
    } else if (strncmp(path, "/rows", 5) == 0) {
        const char *rows = "{\"data\":[{\"id\":1,\"title\":\"one\"},{\"id\":2,\"title\":\"two, 'quoted'\"}]}";
        web_answer(fd, 200, "application/json", rows, strlen(rows));
    } else if (strncmp(path, "/echo", 5) == 0) {
        web_echo(fd, r);
    } else if (strncmp(path, "/json", 5) == 0) {
        web_answer(fd, 200, "application/json", "{\"items\":[1,2],\"ok\":true}", 25);
    } else {
        web_answer(fd, 404, "text/plain", "no", 2);
    }
}

static inline void *web_connection(void *context)
{
    int fd = (int)(intptr_t)context;
    static const size_t room = 1 << 20;
    char *text = malloc(room);
    size_t len = 0;
    atomic_fetch_add(&web_connections, 1);
    for (;;) {
        text[len] = '\0';
        char *end = strstr(text, "\r\n\r\n");
        size_t want = 0;
        if (end) {
            const char *length = strcasestr(text, "\ncontent-length:");
            want = (size_t)(end + 4 - text) + (length && length < end ? (size_t)atoll(length + 16) : 0);
        }
        if (!end || len < want) {
            ssize_t got = recv(fd, text + len, room - 1 - len, 0);
            if (got <= 0) break;
            len += (size_t)got;
            continue;
        }
        struct web_request r = {.body = end + 4, .body_len = want - (size_t)(end + 4 - text)};
        sscanf(text, "%15s %2047s", r.method, r.path);
        snprintf(r.head, sizeof(r.head), "%.*s", (int)(end - text), text);
        web_serve(fd, &r);
        memmove(text, text + want, len - want);
        len -= want;
    }
    close(fd);
    free(text);
    return NULL;
}

static inline void *web_accept(void *context)
{
    (void)context;
    for (;;) {
        pthread_t thread;
        int fd = accept(web_fd, NULL, NULL);
        if (fd < 0) return NULL;
        if (pthread_create(&thread, NULL, web_connection, (void *)(intptr_t)fd) != 0)
            close(fd);
        else
            pthread_detach(thread);
    }
}

static inline void web_start(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(to);
    pthread_t thread;
    web_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(web_fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
          getsockname(web_fd, (struct sockaddr *)&to, &size) == 0);
    CHECK(listen(web_fd, 1024) == 0);
    web_port = ntohs(to.sin_port);
    CHECK(pthread_create(&thread, NULL, web_accept, NULL) == 0);
    pthread_detach(thread);
}

#endif
