// Requests and answers over real sockets: order, threads, limits, timeouts, stopping.
#include "os/os.h"
#include "support/net_kit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

// Answers with method, path and body.
static void echo(void *context, struct net_exchange *x)
{
    const struct http_request *request = net_request(x);
    struct http_header header = {STR("Content-Type"), STR("text/plain")};
    char text[512];
    (void)context;
    int len = snprintf(text, sizeof(text), "%.*s %.*s %.*s", STR_ARG(request->method), STR_ARG(request->path),
                       STR_ARG(str_slice(request->body, 0, 100)));
    net_reply(x, 200, &header, 1, (struct str){text, (size_t)len});
}

static void requests_are_answered_on_one_connection(void)
{
    struct kit kit = {.options.handle = echo};
    struct answers answers;
    struct net_stats stats;
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/one")));
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("GET /one "));
    CHECK(http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count, "date").len == 29);
    kit_send(answers.fd, STR("POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("POST /two abc"));
    kit_send(answers.fd, STR("HEAD /three HTTP/1.1\r\nHost: x\r\n\r\n" GET("/four")));
    http_parser_next(&answers.parser);
    answers.parser.headless = true;
    size_t used;
    while (answers.input.len == answers.at) {
        char bytes[4096];
        buf_add(&answers.input, (struct str){bytes, kit_read(answers.fd, bytes, sizeof(bytes))});
    }
    CHECK_INT(
        http_parser_feed(&answers.parser, str_slice(buf_str(&answers.input), answers.at, answers.input.len), &used),
        HTTP_HEAD);
    CHECK_STR(http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count, "content-length"),
              STR("12"));
    answers.at += used;
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("GET /four "));
    kit_send(answers.fd, STR("GET /five HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    CHECK_INT(answers_next(&answers), 200);
    CHECK(!answers.parser.answer.keep_alive);
    CHECK_INT(answers_next(&answers), 0);
    answers_release(&answers);
    net_stats(kit.server, &stats);
    CHECK_INT(stats.requests, 5);
    CHECK_INT(stats.accepted, 1);
    CHECK(stats.bytes_in > 100 && stats.bytes_out > 500);
    kit_stop(&kit);
}

static void pipelined_requests_are_answered_in_order(void)
{
    enum { COUNT = 10000 };
    struct kit kit = {.options.handle = echo};
    struct answers answers;
    struct buf text;
    char want[64];
    kit_start(&kit);
    buf_init(&text, (size_t)8 << 20);
    for (int i = 0; i < COUNT; i++) buf_printf(&text, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
    answers_init(&answers, kit_connect(&kit));
    // Sent while nobody reads: the server stops reading ahead instead of keeping all answers.
    struct str left = buf_str(&text);
    int got = 0;
    while (left.len || got < COUNT) {
        ssize_t count = left.len ? send(answers.fd, left.ptr, left.len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        if (count > 0) left = str_slice(left, (size_t)count, left.len);
        if (count > 0) continue;
        CHECK_INT(answers_next(&answers), 200);
        snprintf(want, sizeof(want), "GET /%d ", got++);
        CHECK_STR(answers.parser.answer.body, str_from(want));
        if (answers.at == answers.input.len) {
            buf_clear(&answers.input);
            answers.at = 0;
        }
    }
    answers_release(&answers);
    buf_release(&text);
    kit_stop(&kit);
}

static uint64_t body_max(void *context, const struct http_request *head)
{
    (void)context;
    return str_is(head->method, "POST") && str_is(head->path, "/large") ? 5000000 : 10;
}

static void post(struct answers *answers, const char *path, size_t size)
{
    char head[200];
    char *body = calloc(1, size);
    memset(body, 'b', size);
    snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path, size);
    kit_send(answers->fd, str_from(head));
    kit_send(answers->fd, (struct str){body, size});
    free(body);
}

static void bodies_have_the_limit_of_their_path(void)
{
    struct kit kit = {.options = {.handle = echo, .body_max = body_max}};
    struct answers answers;
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    post(&answers, "/large", 5000000);
    CHECK_INT(answers_next(&answers), 200);
    post(&answers, "/small", 10);
    CHECK_INT(answers_next(&answers), 200);
    post(&answers, "/small", 11);
    CHECK_INT(answers_next(&answers), 413);
    CHECK_STR(http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count, "content-type"),
              STR("application/problem+json"));
    CHECK_INT(answers_next(&answers), 0);
    answers_release(&answers);
    // Who asks first is told before the body is sent.
    CHECK_INT(kit_status(&kit, "POST /small HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n"),
              413);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR("POST /small HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    char bytes[100];
    size_t count = kit_read(answers.fd, bytes, sizeof(bytes));
    CHECK_STR(((struct str){bytes, count}), STR("HTTP/1.1 100 Continue\r\n\r\n"));
    kit_send(answers.fd, STR("ok"));
    CHECK_INT(answers_next(&answers), 200);
    answers_release(&answers);
    kit_stop(&kit);
}

static void refusals_close_the_connection(void)
{
    struct kit kit = {.options.handle = echo};
    struct answers answers;
    kit_start(&kit);
    CHECK_INT(kit_status(&kit, "GET / HTTP/1.1\n\n"), 400);
    CHECK_INT(kit_status(&kit, "FOO / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
    CHECK_INT(kit_status(&kit, "GET / HTTP/3.0\r\nHost: x\r\n\r\n"), 505);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd,
             STR(GET("/a") "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n" GET("/b")));
    CHECK_INT(answers_next(&answers), 200);
    CHECK_INT(answers_next(&answers), 400);
    CHECK_INT(answers_next(&answers), 0);
    answers_release(&answers);
    kit_stop(&kit);
}

static void hosts_and_origins_are_checked_on_every_request_H2_H3(void)
{
    static const struct http_guard guard = {0};
    size_t count;
    const struct http_header *headers = http_security_headers(&count);
    struct kit kit = {.options = {.handle = echo, .guard = &guard, .headers = headers, .header_count = count}};
    struct answers answers;
    char text[300];
    kit_start(&kit);
    int port = net_port(kit.server, 0);
    CHECK_INT(kit_status(&kit, GET("/")), 421);
    CHECK_INT(kit_status(&kit, "GET / HTTP/1.1\r\nHost:\r\n\r\n"), 421);
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n", port);
    CHECK_INT(kit_status(&kit, text), 421);
    snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: localhost:%d\r\nOrigin: http://evil.example\r\n\r\n", port);
    CHECK_INT(kit_status(&kit, text), 403);
    snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: localhost:%d\r\nSec-Fetch-Site: cross-site\r\n\r\n", port);
    CHECK_INT(kit_status(&kit, text), 403);
    snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: localhost:%d\r\nOrigin: http://localhost:%d\r\n\r\n", port,
             port);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, str_from(text));
    CHECK_INT(answers_next(&answers), 200);
    // Every answer carries the headers of H5, a refusal too.
    kit_send(answers.fd, STR(GET("/")));
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < count; k++)
            CHECK_STR(http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count,
                                       headers[k].name.ptr),
                      headers[k].value);
        CHECK(http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count,
                               "access-control-allow-origin")
                  .len == 0);
        if (i == 0) CHECK_INT(answers_next(&answers), 421);
    }
    answers_release(&answers);
    kit_stop(&kit);
}

static void cacheable(void *context, struct net_exchange *x)
{
    struct http_header own = {STR("cache-control"), STR("max-age=60")};
    struct http_header bad = {STR("X"), STR("a\r\nSet-Cookie: b")};
    (void)context;
    net_reply(x, 200, str_is(net_request(x)->path, "/bad") ? &bad : &own, 1, STR("x"));
}

static void answers_replace_headers_but_inject_none(void)
{
    size_t count;
    const struct http_header *headers = http_security_headers(&count);
    struct kit kit = {.options = {.handle = cacheable, .headers = headers, .header_count = count}};
    struct answers answers;
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/") GET("/bad")));
    CHECK_INT(answers_next(&answers), 200);
    size_t found = 0;
    for (size_t i = 0; i < answers.parser.answer.header_count; i++)
        if (http_name_is(answers.parser.answer.headers[i].name, "cache-control")) found++;
    CHECK_INT(found, 1);
    CHECK_STR(http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count, "cache-control"),
              STR("max-age=60"));
    CHECK_INT(answers_next(&answers), 500);
    CHECK(!http_header_find(answers.parser.answer.headers, answers.parser.answer.header_count, "set-cookie").len);
    answers_release(&answers);
    kit_stop(&kit);
}

// ---- answers from another thread

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct net_exchange *held[64];
    size_t count;
    bool open;
} desk = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, false};

static void put_on_desk(void *context, struct net_exchange *x)
{
    (void)context;
    if (str_is(net_request(x)->path, "/now")) {
        echo(NULL, x);
        return;
    }
    pthread_mutex_lock(&desk.mutex);
    desk.held[desk.count++] = x;
    pthread_cond_broadcast(&desk.changed);
    pthread_mutex_unlock(&desk.mutex);
}

static struct net_exchange *take_from_desk(void)
{
    pthread_mutex_lock(&desk.mutex);
    while (!desk.count) pthread_cond_wait(&desk.changed, &desk.mutex);
    struct net_exchange *x = desk.held[--desk.count];
    pthread_mutex_unlock(&desk.mutex);
    return x;
}

static void *answer_many(void *context)
{
    char body[40000];
    memset(body, 'z', sizeof(body));
    for (int left = *(int *)context; left; left--) {
        struct net_exchange *x = take_from_desk();
        bool large = str_is(net_request(x)->path, "/large");
        net_reply(x, 200, NULL, 0, large ? (struct str){body, sizeof(body)} : net_request(x)->path);
    }
    return NULL;
}

static void answers_come_from_any_thread(void)
{
    enum { CLIENTS = 16, ROUNDS = 100 };
    struct kit kit = {.options.handle = put_on_desk};
    struct answers answers[CLIENTS];
    pthread_t threads[2];
    int share = CLIENTS * ROUNDS / 2;
    kit_start(&kit);
    for (int i = 0; i < 2; i++) CHECK_INT(pthread_create(&threads[i], NULL, answer_many, &share), 0);
    for (int i = 0; i < CLIENTS; i++) answers_init(&answers[i], kit_connect(&kit));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            if (round % 10 == 9)
                kit_send(answers[i].fd, STR(GET("/large")));
            else
                kit_send(answers[i].fd, STR(GET("/small")));
        }
        for (int i = 0; i < CLIENTS; i++) {
            CHECK_INT(answers_next(&answers[i]), 200);
            CHECK_INT(answers[i].parser.answer.body.len, round % 10 == 9 ? 40000 : 6);
        }
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CLIENTS; i++) answers_release(&answers[i]);
    kit_stop(&kit);
}

static void clients_may_go_before_their_answer(void)
{
    struct kit kit = {.options.handle = put_on_desk};
    kit_start(&kit);
    int fd = kit_connect(&kit);
    kit_send(fd, STR(GET("/a")));
    struct net_exchange *x = take_from_desk();
    CHECK(net_alive(x));
    close(fd);
    for (int i = 0; i < KIT_WAIT_MS && net_alive(x); i++) usleep(1000);
    CHECK(!net_alive(x));
    CHECK_STR(net_request(x)->path, STR("/a"));
    net_reply(x, 200, NULL, 0, STR("too late"));
    // One that only has nothing more to say is still answered.
    struct answers answers;
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/b")));
    shutdown(answers.fd, SHUT_WR);
    net_reply(take_from_desk(), 200, NULL, 0, STR("ok"));
    CHECK_INT(answers_next(&answers), 200);
    CHECK_INT(answers_next(&answers), 0);
    answers_release(&answers);
    kit_stop(&kit);
}

static void stopping_finishes_what_is_in_flight(void)
{
    struct kit kit = {.options.handle = put_on_desk};
    struct answers busy, idle;
    kit_start(&kit);
    answers_init(&busy, kit_connect(&kit));
    answers_init(&idle, kit_connect(&kit));
    kit_send(idle.fd, STR(GET("/now")));
    CHECK_INT(answers_next(&idle), 200);
    kit_send(busy.fd, STR(GET("/slow")));
    struct net_exchange *x = take_from_desk();
    uint16_t port = net_port(kit.server, 0);
    net_stop(kit.server);
    CHECK_INT(answers_next(&idle), 0);
    // Nobody is let in any more.
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED);
    close(fd);
    net_reply(x, 200, NULL, 0, STR("finished"));
    CHECK_INT(answers_next(&busy), 200);
    CHECK_STR(busy.parser.answer.body, STR("finished"));
    CHECK(!busy.parser.answer.keep_alive);
    CHECK_INT(answers_next(&busy), 0);
    answers_release(&busy);
    answers_release(&idle);
    kit_stop(&kit);
}

static void stopping_does_not_wait_for_ever(void)
{
    struct kit kit = {.options.handle = put_on_desk, .limits = net_limits_default};
    kit.limits.stop_ms = 50;
    struct answers busy;
    kit_start(&kit);
    answers_init(&busy, kit_connect(&kit));
    kit_send(busy.fd, STR(GET("/never")));
    struct net_exchange *x = take_from_desk();
    net_stop(kit.server);
    pthread_join(kit.thread, NULL);
    CHECK_INT(answers_next(&busy), 0);
    net_reply(x, 200, NULL, 0, STR("after the end"));
    net_close(kit.server);
    answers_release(&busy);
}

// ---- time

static void slow_heads_are_cut_off(void)
{
    struct kit kit = {.options.handle = echo, .limits = net_limits_default};
    struct answers first, second, silent;
    kit.limits.header_ms = 400;
    kit_start(&kit);
    answers_init(&first, kit_connect(&kit));
    answers_init(&silent, kit_connect(&kit));
    answers_init(&second, kit_connect(&kit));
    kit_send(first.fd, STR("GET / HTTP/1.1\r\nHost"));
    kit_send(second.fd, STR(GET("/")));
    CHECK_INT(answers_next(&second), 200);
    kit_send(second.fd, STR("G"));
    CHECK_INT(answers_next(&first), 408);
    CHECK_INT(answers_next(&first), 0);
    CHECK_INT(answers_next(&second), 408);
    CHECK_INT(answers_next(&silent), 0);
    // A byte now and then does not help.
    struct answers drip;
    answers_init(&drip, kit_connect(&kit));
    for (int i = 0; i < 80; i++) {
        if (send(drip.fd, "G", 1, MSG_NOSIGNAL) < 0) break;
        usleep(10000);
    }
    CHECK_INT(answers_next(&drip), 408);
    answers_release(&first);
    answers_release(&second);
    answers_release(&silent);
    answers_release(&drip);
    kit_stop(&kit);
}

static void slow_bodies_are_cut_off_and_steady_ones_are_not(void)
{
    struct kit kit = {.options.handle = echo, .limits = net_limits_default};
    struct answers slow, steady;
    char bytes[20000];
    memset(bytes, 'x', sizeof(bytes));
    kit.limits.body_grace_ms = 200;
    kit.limits.body_rate = 2000;
    kit_start(&kit);
    answers_init(&slow, kit_connect(&kit));
    answers_init(&steady, kit_connect(&kit));
    kit_send(slow.fd, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"));
    kit_send(steady.fd, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20001\r\n\r\n"));
    kit_send(steady.fd, (struct str){bytes, sizeof(bytes)}); // worth ten seconds
    CHECK_INT(answers_next(&slow), 408);
    CHECK_INT(answers_next(&slow), 0);
    kit_send(steady.fd, STR("!"));
    CHECK_INT(answers_next(&steady), 200);
    answers_release(&slow);
    answers_release(&steady);
    kit_stop(&kit);
}

static void idle_connections_are_closed_and_busy_ones_kept(void)
{
    struct kit kit = {.options.handle = put_on_desk, .limits = net_limits_default};
    struct answers idle, busy;
    kit.limits.idle_ms = 100;
    kit_start(&kit);
    answers_init(&idle, kit_connect(&kit));
    answers_init(&busy, kit_connect(&kit));
    kit_send(busy.fd, STR(GET("/long-poll")));
    kit_send(idle.fd, STR(GET("/now")));
    CHECK_INT(answers_next(&idle), 200);
    struct net_exchange *x = take_from_desk();
    CHECK_INT(answers_next(&idle), 0);
    usleep(150000);
    net_reply(x, 200, NULL, 0, STR("at last"));
    CHECK_INT(answers_next(&busy), 200);
    answers_release(&idle);
    answers_release(&busy);
    kit_stop(&kit);
}

static void answer_16_MiB(void *context, struct net_exchange *x)
{
    static char body[16 << 20];
    (void)context;
    net_reply(x, 200, NULL, 0, (struct str){body, sizeof(body)});
}

static void clients_that_read_nothing_are_cut_off(void)
{
    struct kit kit = {.options.handle = answer_16_MiB, .limits = net_limits_default};
    struct net_stats stats = {.open = 1};
    kit.limits.write_ms = 100;
    kit_start(&kit);
    int fd = kit_connect(&kit);
    kit_send(fd, STR(GET("/")));
    for (int i = 0; i < KIT_WAIT_MS && !stats.timeouts; i++) {
        usleep(1000);
        net_stats(kit.server, &stats);
    }
    CHECK_INT(stats.timeouts, 1);
    CHECK_INT(stats.requests, 1);
    close(fd);
    kit_stop(&kit);
}

static void large_answers_reach_clients_that_read(void)
{
    struct kit kit = {.options.handle = answer_16_MiB};
    struct answers answers;
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/")));
    CHECK_INT(answers_next(&answers), 200);
    CHECK_INT(answers.parser.answer.body.len, 16 << 20);
    answers_release(&answers);
    kit_stop(&kit);
}

// ---- how many

static void connections_have_a_limit_in_total_and_per_address(void)
{
    for (int which = 0; which < 2; which++) {
        struct kit kit = {.options.handle = echo, .limits = net_limits_default};
        struct answers answers[4];
        struct net_stats stats;
        *(which ? &kit.limits.per_address : &kit.limits.connections) = 3;
        kit_start(&kit);
        for (int i = 0; i < 4; i++) {
            answers_init(&answers[i], kit_connect(&kit));
            kit_send(answers[i].fd, STR(GET("/")));
            CHECK_INT(answers_next(&answers[i]), i < 3 ? 200 : which ? 429 : 503);
        }
        CHECK(http_header_find(answers[3].parser.answer.headers, answers[3].parser.answer.header_count, "retry-after")
                  .len);
        CHECK_INT(answers_next(&answers[3]), 0);
        net_stats(kit.server, &stats);
        CHECK_INT(stats.open, 3);
        CHECK_INT(stats.over_limit, 1);
        // A place becomes free with one that leaves.
        for (int i = 0; i < 4; i++) answers_release(&answers[i]);
        for (int i = 0; i < KIT_WAIT_MS && stats.open; i++) {
            usleep(1000);
            net_stats(kit.server, &stats);
        }
        CHECK_INT(kit_status(&kit, GET("/")), 200);
        kit_stop(&kit);
    }
}

// The number that the next descriptor gets.
static rlim_t next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);
    CHECK(fd >= 0);
    close(fd);
    return (rlim_t)fd;
}

// Connects `count` times to the port that comes through the pipe, tries a request on each, and says how many were answered.
static _Noreturn void crowd(int from, int count)
{
    uint16_t port;
    int answered = 0, fds[64];
    if (read(from, &port, sizeof(port)) != (ssize_t)sizeof(port)) _exit(255);
    for (int i = 0; i < count; i++) fds[i] = kit_connect_port(port);
    for (int i = 0; i < count; i++) {
        char bytes[1000];
        if (send(fds[i], GET("/"), strlen(GET("/")), MSG_NOSIGNAL) > 0 && kit_read(fds[i], bytes, sizeof(bytes)))
            answered++;
    }
    _exit(answered);
}

static void descriptors_that_run_out_do_not_stop_the_server(void)
{
    struct kit kit = {.options.handle = echo};
    struct rlimit limit, low;
    struct net_stats stats;
    int pipes[2], status;
    CHECK_INT(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) crowd(pipes[0], 40);
    kit_start(&kit);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = next_descriptor() + 10;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    uint16_t port = net_port(kit.server, 0);
    CHECK_INT(write(pipes[1], &port, sizeof(port)), sizeof(port));
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 10);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    net_stats(kit.server, &stats);
    CHECK(stats.over_limit > 0);
    CHECK_INT(kit_status(&kit, GET("/")), 200);
    kit_stop(&kit);
}

// ---- doors

static void who(void *context, struct net_exchange *x)
{
    char text[100];
    (void)context;
    int len = snprintf(text, sizeof(text), "%.*s %d", STR_ARG(net_peer(x)), (int)net_peer_uid(x));
    net_reply(x, 200, NULL, 0, (struct str){text, (size_t)len});
}

static void unix_sockets_are_private_and_name_their_client(void)
{
    char address[200], want[100];
    static const struct http_guard guard = {0};
    struct kit kit = {.options = {.handle = who, .guard = &guard}, .address = {address}};
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    struct stat status;
    struct answers answers;
    struct net_server *second = NULL;
    struct error err = {0};
    snprintf(where.sun_path, sizeof(where.sun_path), "%s/s", test_dir());
    snprintf(address, sizeof(address), "unix:%s", where.sun_path);
    kit_start(&kit);
    CHECK_INT(stat(where.sun_path, &status), 0);
    CHECK_INT(status.st_mode & 0777, 0600);
    answers_init(&answers, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK_INT(connect(answers.fd, (struct sockaddr *)&where, sizeof(where)), 0);
    kit_send(answers.fd, STR("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK_INT(answers_next(&answers), 200);
    snprintf(want, sizeof(want), "unix %d", (int)getuid());
    CHECK_STR(answers.parser.answer.body, str_from(want));
    CHECK_INT(net_open(&kit.options, &second, &err), E_LOCKED);
    answers_release(&answers);
    kit_stop(&kit);
    CHECK(stat(where.sun_path, &status) < 0);
    // What a killed process left is replaced; what is no socket is not.
    int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(stale, (struct sockaddr *)&where, sizeof(where)), 0);
    close(stale);
    err = (struct error){0};
    CHECK_OK(net_open(&kit.options, &second, &err), &err);
    net_close(second);
    test_write_file(where.sun_path, STR("precious"));
    CHECK_INT(net_open(&kit.options, &second, &err), E_EXISTS);
}

static void addresses_are_checked(void)
{
    static const char *const bad[] = {"8080",         "localhost", "example.org:80", "127.0.0.1:", "127.0.0.1:99999",
                                      "256.0.0.1:80", "[::1:80",   "::1:80",         "unix:",      ""};
    struct net_options options = {.handle = echo, .listen_count = 1};
    struct net_server *server = NULL, *second = NULL;
    struct error err = {0};
    char text[64];
    const char *address = text;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        options.listen = &bad[i];
        err = (struct error){0};
        if (net_open(&options, &server, &err) != E_INVALID) test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
    }
    CHECK(net_is_local("127.0.0.1:1") && net_is_local("[::1]:1") && net_is_local("unix:/x") &&
          net_is_local("localhost:1"));
    CHECK(net_is_local("127.9.9.9:1") && !net_is_local("0.0.0.0:1") && !net_is_local("[::]:1") &&
          !net_is_local("10.0.0.1:1"));
    snprintf(text, sizeof(text), "localhost:0");
    options.listen = &address;
    CHECK_OK(net_open(&options, &server, &err), NULL);
    snprintf(text, sizeof(text), "127.0.0.1:%d", net_port(server, 0));
    CHECK_INT(net_open(&options, &second, &err), E_EXISTS);
    net_close(server);
}

static void sockets_of_a_service_manager_are_used(void)
{
    struct net_options options = {.handle = echo};
    struct net_server *server = NULL;
    struct error err = {0};
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int first = -1, pipes[2], fd = socket(AF_INET6, SOCK_STREAM, 0);
    char pid[32];
    CHECK_INT(net_inherited(&first), 0);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "2", 1);
    CHECK_INT(net_inherited(&first), 2);
    CHECK_INT(first, 3);
    setenv("LISTEN_PID", "1", 1);
    CHECK_INT(net_inherited(&first), 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) test_skip("no IPv6 here");
    CHECK_INT(listen(fd, 5), 0);
    options.fds = &fd;
    options.fd_count = 1;
    CHECK_OK(net_open(&options, &server, &err), &err);
    CHECK(net_port(server, 0) != 0);
    net_close(server);
    CHECK_INT(pipe(pipes), 0);
    options.fds = &pipes[0];
    CHECK_INT(net_open(&options, &server, &err), E_INVALID);
}

// ---- time

static atomic_int ticks;

static void count_tick(void *context)
{
    (void)context;
    atomic_fetch_add(&ticks, 1);
}

static void ticks_run_on_the_net_thread(void)
{
    struct kit kit = {.options = {.handle = echo, .tick = count_tick, .tick_ms = 5}};
    kit_start(&kit);
    kit_await(&ticks, 3);
    kit_stop(&kit);
}

// ---- a step that is just being started has every descriptor of ours until it executes

static void await_open(struct kit *kit, uint64_t want)
{
    struct net_stats stats = {.open = UINT64_MAX};
    for (int i = 0; i < KIT_WAIT_MS && stats.open != want; i++) {
        usleep(1000);
        net_stats(kit->server, &stats);
    }
    CHECK_INT(stats.open, want);
}

static void closed_connections_are_not_heard_of_again_while_a_child_holds_them(void)
{
    struct kit kit = {.options.handle = echo, .limits = net_limits_default};
    struct linger reset = {.l_onoff = 1};
    struct answers after;
    kit.limits.linger_ms = 20;
    kit_start(&kit);
    // Enough of them to fill what the allocator keeps back, so that memory is used again at once.
    int crowd[8];
    for (size_t i = 0; i < ARRAY_COUNT(crowd); i++) crowd[i] = kit_connect(&kit);
    await_open(&kit, ARRAY_COUNT(crowd));
    int before = kit_connect(&kit);
    for (size_t i = 0; i < ARRAY_COUNT(crowd); i++) close(crowd[i]);
    kit_send(before, STR(GET("/")));
    char bytes[4096];
    CHECK(kit_read(before, bytes, sizeof(bytes)) > 0);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    kit_send(before, STR("nonsense\r\n\r\n"));
    await_open(&kit, 0);
    // The next connection gets the memory of the last: what the old socket has to tell must not reach it.
    answers_init(&after, kit_connect(&kit));
    await_open(&kit, 1);
    setsockopt(before, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(before);
    usleep(20000);
    kit_send(after.fd, STR(GET("/")));
    CHECK_INT(answers_next(&after), 200);
    answers_release(&after);
    kill(child, SIGKILL);
    CHECK_INT(waitpid(child, NULL, 0), child);
    kit_stop(&kit);
}

// Refuses /full and says: in 300 ms.
static void refuse_some(void *context, struct net_exchange *x)
{
    (void)context;
    bool full = str_is(net_request(x)->path, "/full");
    if (full) net_come_again(x, 300);
    net_reply(x, full ? 429 : 200, NULL, 0, STR(""));
}

static void clients_that_do_not_wait_are_read_when_they_should_have_come(void)
{
    struct kit kit = {.options.handle = refuse_some, .limits = net_limits_default};
    struct answers hasty, patient;
    kit.limits.header_ms = 100; // of a request that has begun to come: it has not
    kit_start(&kit);
    answers_init(&hasty, kit_connect(&kit));
    answers_init(&patient, kit_connect(&kit));
    int64_t began = os_mono_us();
    kit_send(patient.fd, STR(GET("/full")));
    CHECK_INT(answers_next(&patient), 429);
    kit_send(patient.fd, STR(GET("/something-else"))); // once refused is not held
    CHECK_INT(answers_next(&patient), 200);
    // Pipelined or not: two refusals at once, the third request waits, and what was sent with it.
    kit_send(hasty.fd, STR(GET("/full") GET("/full") GET("/after") GET("/full")));
    CHECK_INT(answers_next(&hasty), 429);
    CHECK_INT(answers_next(&hasty), 429);
    CHECK_INT(answers_next(&hasty), 200);
    CHECK(os_mono_us() - began >= 290000);
    CHECK_INT(answers_next(&hasty), 429);
    answers_release(&hasty);
    answers_release(&patient);
    kit_stop(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(requests_are_answered_on_one_connection),
        TEST(pipelined_requests_are_answered_in_order),
        TEST(bodies_have_the_limit_of_their_path),
        TEST(refusals_close_the_connection),
        TEST(hosts_and_origins_are_checked_on_every_request_H2_H3),
        TEST(answers_replace_headers_but_inject_none),
        TEST(answers_come_from_any_thread),
        TEST(clients_may_go_before_their_answer),
        TEST(stopping_finishes_what_is_in_flight),
        TEST(stopping_does_not_wait_for_ever),
        TEST(slow_heads_are_cut_off),
        TEST(slow_bodies_are_cut_off_and_steady_ones_are_not),
        TEST(idle_connections_are_closed_and_busy_ones_kept),
        TEST(clients_that_read_nothing_are_cut_off),
        TEST(large_answers_reach_clients_that_read),
        TEST(connections_have_a_limit_in_total_and_per_address),
        TEST(descriptors_that_run_out_do_not_stop_the_server),
        TEST(unix_sockets_are_private_and_name_their_client),
        TEST(addresses_are_checked),
        TEST(sockets_of_a_service_manager_are_used),
        TEST(ticks_run_on_the_net_thread),
        TEST(clients_that_do_not_wait_are_read_when_they_should_have_come),
        TEST(closed_connections_are_not_heard_of_again_while_a_child_holds_them),
    };
    return test_main("net_serve", tests, ARRAY_COUNT(tests), argc, argv);
}
