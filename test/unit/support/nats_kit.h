// A real nats-server for tests, and a client of it that only asks: streams are made and read through the JetStream API.
#ifndef CAIRN_TEST_UNIT_SUPPORT_NATS_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_NATS_KIT_H

#include "unit/support/bus_kit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct nats_server {
    uint16_t port;
    pid_t pid;
    char dir[600], config[700];
    int fd; // of our client
    char text[1 << 20];
};

static inline uint16_t free_port(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(to);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && getsockname(fd, (struct sockaddr *)&to, &size) == 0);
    close(fd);
    return ntohs(to.sin_port);
}

static inline void nats_hello(struct nats_server *server, const char *options)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons(server->port);
    server->fd = -1;
    for (int64_t until = mono_now() + BUS_PATIENCE_MS; server->fd < 0;) {
        CHECK(mono_now() < until);
        server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(server->fd, (struct sockaddr *)&to, sizeof(to)) == 0) break;
        close(server->fd);
        server->fd = -1;
        bus_kit_nap();
    }
    char text[600];
    snprintf(text, sizeof(text), "CONNECT %s\r\nSUB _INBOX.test 1\r\nPING\r\n", options);
    CHECK(send(server->fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

// `more` goes into the configuration file.
static inline void nats_start(struct nats_server *server, const char *more)
{
    if (access("/usr/sbin/nats-server", X_OK) != 0) test_skip("nats-server is not installed");
    if (!server->port) server->port = free_port();
    snprintf(server->dir, sizeof(server->dir), "%s/jetstream", test_dir());
    snprintf(server->config, sizeof(server->config), "%s/nats.conf", test_dir());
    char text[4000];
    snprintf(text, sizeof(text), "listen: 127.0.0.1:%u\njetstream { store_dir: \"%s\" }\n%s\n", server->port,
             server->dir, more);
    test_write_file(server->config, str_from(text));
    server->pid = fork();
    if (server->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execl("/usr/sbin/nats-server", "nats-server", "-c", server->config, (char *)NULL);
        _exit(127);
    }
    CHECK(server->pid > 0);
}

static inline void nats_kill(struct nats_server *server)
{
    int status;
    if (server->fd > 0) close(server->fd);
    server->fd = -1;
    CHECK(kill(server->pid, SIGKILL) == 0 && waitpid(server->pid, &status, 0) == server->pid);
}

// Asks the JetStream API; the answer is in `arena`. False: nobody is there who answers (yet).
static inline bool nats_ask(struct nats_server *server, const char *subject, const char *body, struct arena *arena,
                            struct json *out)
{
    struct buf request;
    struct error err = {0};
    buf_init(&request, 1 << 20);
    buf_printf(&request, "PUB %s _INBOX.test %zu\r\n%s\r\n", subject, strlen(body), body);
    CHECK(send(server->fd, request.ptr, request.len, MSG_NOSIGNAL) == (ssize_t)request.len);
    buf_release(&request);
    size_t len = 0;
    for (;;) {
        ssize_t got = recv(server->fd, server->text + len, sizeof(server->text) - 1 - len, 0);
        CHECK(got > 0);
        len += (size_t)got;
        server->text[len] = '\0';
        if (strstr(server->text, "NATS/1.0 503")) return false;
        const char *line = strstr(server->text, "MSG _INBOX.test 1 ");
        const char *end = line ? strstr(line, "\r\n") : NULL;
        if (!end) continue;
        size_t size = (size_t)atoll(line + strlen("MSG _INBOX.test 1 "));
        if ((size_t)(server->text + len - (end + 2)) < size + 2) continue;
        struct str text = arena_copy(arena, (struct str){end + 2, size});
        CHECK_OK(json_parse(text, NULL, arena, out, &err), &err);
        return true;
    }
}

static inline void nats_stream(struct nats_server *server, const char *name, const char *settings)
{
    struct arena arena;
    struct json answer;
    char subject[100], body[600];
    arena_init(&arena, 64 * 1024, SIZE_MAX);
    snprintf(subject, sizeof(subject), "$JS.API.STREAM.CREATE.%s", name);
    snprintf(body, sizeof(body),
             "{\"name\":\"%s\",\"subjects\":[\"cairn.events.>\",\"noetl.events.>\"],\"retention\":\"limits\","
             "\"storage\":\"file\",\"num_replicas\":1%s}",
             name, settings);
    BUS_WAIT(nats_ask(server, subject, body, &arena, &answer));
    if (json_key(&answer, "error"))
        test_fail(__FILE__, __LINE__, "%.*s", STR_ARG(json_text(json_at(&answer, STR("error.description")))));
    arena_release(&arena);
}

static inline int64_t nats_count(struct nats_server *server, const char *name)
{
    struct arena arena;
    struct json answer;
    char subject[100];
    arena_init(&arena, 64 * 1024, SIZE_MAX);
    snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", name);
    BUS_WAIT(nats_ask(server, subject, "", &arena, &answer));
    int64_t count = json_integer(json_at(&answer, STR("state.messages")), -1);
    arena_release(&arena);
    return count;
}

struct nats_message {
    char subject[256], head[4096];
    struct json record;
};

static inline void nats_get(struct nats_server *server, const char *name, int seq, struct arena *arena,
                            struct nats_message *out)
{
    struct json answer;
    struct error err = {0};
    char subject[100], body[60];
    snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", name);
    snprintf(body, sizeof(body), "{\"seq\":%d}", seq);
    CHECK(nats_ask(server, subject, body, arena, &answer));
    struct str head = json_text(json_at(&answer, STR("message.hdrs"))),
               data = json_text(json_at(&answer, STR("message.data")));
    CHECK(head.len && head.len < sizeof(out->head) && data.len);
    int size = EVP_DecodeBlock((unsigned char *)out->head, (const unsigned char *)head.ptr, (int)head.len);
    CHECK(size > 0);
    out->head[size] = '\0';
    char *text = arena_alloc(arena, data.len + 4);
    size = EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)data.ptr, (int)data.len);
    while (size > 0 && text[size - 1] == '\0') size--; // what padding stood for
    CHECK_OK(json_parse((struct str){text, (size_t)size}, NULL, arena, &out->record, &err), &err);
    snprintf(out->subject, sizeof(out->subject), "%.*s", STR_ARG(json_text(json_at(&answer, STR("message.subject")))));
}

static inline bool nats_has(const struct nats_message *message, const char *name, const char *value)
{
    char line[600];
    snprintf(line, sizeof(line), "\r\n%s: %s\r\n", name, value);
    return strstr(message->head, line) != NULL;
}

// Events `from` + 1 to `to` of `runs` runs, one of each in a batch. The runs begin when `from` is 0.
static inline void bus_kit_bulk(struct bus_kit *kit, int runs, int from, int to)
{
    static struct run_log *logs[64];
    struct append_item items[64];
    CHECK(runs <= 64);
    for (int i = 0; from == 0 && i < runs; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        struct run_create create = kit_run("default", run, VOCABULARY_RUN);
        pthread_mutex_lock(&kit->mutex);
        CHECK_OK(store_create_run(kit->store.store, &create, &logs[i], &kit->store.err), &kit->store.err);
        pthread_mutex_unlock(&kit->mutex);
    }
    for (int k = from; k < to; k++) {
        char step[16];
        snprintf(step, sizeof(step), "s%d", k);
        struct moment moment = kit_moment(k ? MOMENT_STEP_STARTED : MOMENT_RUN_STARTED, k ? step : "", 1);
        for (int i = 0; i < runs; i++) items[i] = (struct append_item){.log = logs[i], .moment = &moment};
        struct store_batch batch = {.items = items, .item_count = (size_t)runs};
        pthread_mutex_lock(&kit->mutex);
        CHECK_OK(store_append(kit->store.store, &batch, KIT_NOW, &kit->store.arena, &kit->store.err), &kit->store.err);
        pthread_mutex_unlock(&kit->mutex);
        if (kit->bus) bus_moved(kit->bus);
    }
}

#endif
