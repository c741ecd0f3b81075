// Requests and answers over real sockets: order, threads, headers, stopping.
#include "support/net_kit.h"

static void requests_are_answered_on_one_connection(void)
{
    struct kit kit = {.options.handle = echo};
    struct answers answers;
    struct net_stats stats;
    kit_start(&kit);
    answers_open(&answers, &kit);
    CHECK_INT(answers_to(&answers, STR(GET("/one"))), 200);
    CHECK_STR(answers.parser.answer.body, STR("GET /one "));
    CHECK(answers_header(&answers, "date").len == 29);
    CHECK_INT(answers_to(&answers, STR("POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")), 200);
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
    CHECK_STR(answers_header(&answers, "content-length"), STR("12"));
    answers.at += used;
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("GET /four "));
    CHECK_INT(answers_to(&answers, STR("GET /five HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")), 200);
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
    answers_open(&answers, &kit);
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

static void refusals_close_the_connection(void)
{
    struct kit kit = {.options.handle = echo};
    struct answers answers;
    kit_start(&kit);
    CHECK_INT(kit_status(&kit, "GET / HTTP/1.1\n\n"), 400);
    CHECK_INT(kit_status(&kit, "FOO / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
    CHECK_INT(kit_status(&kit, "GET / HTTP/3.0\r\nHost: x\r\n\r\n"), 505);
    answers_open(&answers, &kit);
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
    answers_open(&answers, &kit);
    CHECK_INT(answers_to(&answers, str_from(text)), 200);
    // Every answer carries the headers of H5, a refusal too.
    kit_send(answers.fd, STR(GET("/")));
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < count; k++) CHECK_STR(answers_header(&answers, headers[k].name.ptr), headers[k].value);
        CHECK(answers_header(&answers, "access-control-allow-origin").len == 0);
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
    answers_open(&answers, &kit);
    CHECK_INT(answers_to(&answers, STR(GET("/") GET("/bad"))), 200);
    size_t found = 0;
    for (size_t i = 0; i < answers.parser.answer.header_count; i++)
        if (http_name_is(answers.parser.answer.headers[i].name, "cache-control")) found++;
    CHECK_INT(found, 1);
    CHECK_STR(answers_header(&answers, "cache-control"), STR("max-age=60"));
    CHECK_INT(answers_next(&answers), 500);
    CHECK(!answers_header(&answers, "set-cookie").len);
    answers_release(&answers);
    kit_stop(&kit);
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
    for (int i = 0; i < CLIENTS; i++) answers_open(&answers[i], &kit);
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
    answers_open(&answers, &kit);
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
    answers_open(&busy, &kit);
    answers_open(&idle, &kit);
    CHECK_INT(answers_to(&idle, STR(GET("/now"))), 200);
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
    answers_open(&busy, &kit);
    kit_send(busy.fd, STR(GET("/never")));
    struct net_exchange *x = take_from_desk();
    net_stop(kit.server);
    pthread_join(kit.thread, NULL);
    CHECK_INT(answers_next(&busy), 0);
    net_reply(x, 200, NULL, 0, STR("after the end"));
    net_close(kit.server);
    answers_release(&busy);
}

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

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(requests_are_answered_on_one_connection), TEST(pipelined_requests_are_answered_in_order),
        TEST(refusals_close_the_connection),           TEST(hosts_and_origins_are_checked_on_every_request_H2_H3),
        TEST(answers_replace_headers_but_inject_none), TEST(answers_come_from_any_thread),
        TEST(clients_may_go_before_their_answer),      TEST(stopping_finishes_what_is_in_flight),
        TEST(stopping_does_not_wait_for_ever),         TEST(ticks_run_on_the_net_thread),
    };
    return test_main("net_serve", tests, ARRAY_COUNT(tests), argc, argv);
}
