// What a server puts up with: slow, silent, greedy and too many clients.
#include "os/os.h"
#include "support/net_kit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static uint64_t body_max(void *context, struct net_exchange *x)
{
    const struct http_request *head = net_request(x);
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
    answers_open(&answers, &kit);
    post(&answers, "/large", 5000000);
    CHECK_INT(answers_next(&answers), 200);
    post(&answers, "/small", 10);
    CHECK_INT(answers_next(&answers), 200);
    post(&answers, "/small", 11);
    CHECK_INT(answers_next(&answers), 413);
    CHECK_STR(answers_header(&answers, "content-type"), STR("application/problem+json"));
    CHECK_INT(answers_next(&answers), 0);
    answers_release(&answers);
    // Who asks first is told before the body is sent.
    CHECK_INT(kit_status(&kit, "POST /small HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n"),
              413);
    answers_open(&answers, &kit);
    kit_send(answers.fd, STR("POST /small HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    char bytes[100];
    size_t count = kit_read(answers.fd, bytes, sizeof(bytes));
    CHECK_STR(((struct str){bytes, count}), STR("HTTP/1.1 100 Continue\r\n\r\n"));
    CHECK_INT(answers_to(&answers, STR("ok")), 200);
    answers_release(&answers);
    kit_stop(&kit);
}

static void slow_heads_are_cut_off(void)
{
    struct kit kit = {.options.handle = echo, .limits = net_limits_default};
    struct answers first, second, silent;
    kit.limits.header_ms = 400;
    kit_start(&kit);
    answers_open(&first, &kit);
    answers_open(&silent, &kit);
    answers_open(&second, &kit);
    kit_send(first.fd, STR("GET / HTTP/1.1\r\nHost"));
    CHECK_INT(answers_to(&second, STR(GET("/"))), 200);
    kit_send(second.fd, STR("G"));
    CHECK_INT(answers_next(&first), 408);
    CHECK_INT(answers_next(&first), 0);
    CHECK_INT(answers_next(&second), 408);
    CHECK_INT(answers_next(&silent), 0);
    // A byte now and then does not help.
    struct answers drip;
    answers_open(&drip, &kit);
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
    answers_open(&slow, &kit);
    answers_open(&steady, &kit);
    kit_send(slow.fd, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"));
    kit_send(steady.fd, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20001\r\n\r\n"));
    kit_send(steady.fd, (struct str){bytes, sizeof(bytes)}); // worth ten seconds
    CHECK_INT(answers_next(&slow), 408);
    CHECK_INT(answers_next(&slow), 0);
    CHECK_INT(answers_to(&steady, STR("!")), 200);
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
    answers_open(&idle, &kit);
    answers_open(&busy, &kit);
    kit_send(busy.fd, STR(GET("/long-poll")));
    CHECK_INT(answers_to(&idle, STR(GET("/now"))), 200);
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
    answers_open(&answers, &kit);
    CHECK_INT(answers_to(&answers, STR(GET("/"))), 200);
    CHECK_INT(answers.parser.answer.body.len, 16 << 20);
    answers_release(&answers);
    kit_stop(&kit);
}

static void the_connections_of_a_named_proxy_are_those_of_many_clients(void)
{
    struct os_network network;
    CHECK(os_network_parse(STR("127.0.0.1"), &network));
    struct kit kit = {.options = {.handle = echo, .proxies = &network, .proxy_count = 1}, .limits = net_limits_default};
    struct answers answers[4];
    kit.limits.per_address = 2;
    kit_start(&kit);
    for (int i = 0; i < 4; i++) {
        answers_open(&answers[i], &kit);
        kit_send(answers[i].fd, STR(GET("/")));
        CHECK_INT(answers_next(&answers[i]), 200);
    }
    for (int i = 0; i < 4; i++) answers_release(&answers[i]);
    kit_stop(&kit);
}

static void connections_have_a_limit_in_total_and_per_address(void)
{
    for (int which = 0; which < 2; which++) {
        struct kit kit = {.options.handle = echo, .limits = net_limits_default};
        struct answers answers[4];
        struct net_stats stats;
        *(which ? &kit.limits.per_address : &kit.limits.connections) = 3;
        kit_start(&kit);
        for (int i = 0; i < 4; i++) {
            answers_open(&answers[i], &kit);
            kit_send(answers[i].fd, STR(GET("/")));
            CHECK_INT(answers_next(&answers[i]), i < 3 ? 200 : which ? 429 : 503);
        }
        CHECK(answers_header(&answers[3], "retry-after").len);
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

static void await_open(struct kit *kit, uint64_t want)
{
    struct net_stats stats = {.open = UINT64_MAX};
    for (int i = 0; i < KIT_WAIT_MS && stats.open != want; i++) {
        usleep(1000);
        net_stats(kit->server, &stats);
    }
    CHECK_INT(stats.open, want);
}

// A step that is just being started has every descriptor of ours until it executes.
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
    answers_open(&after, &kit);
    await_open(&kit, 1);
    setsockopt(before, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(before);
    usleep(20000);
    CHECK_INT(answers_to(&after, STR(GET("/"))), 200);
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
    answers_open(&hasty, &kit);
    answers_open(&patient, &kit);
    int64_t began = os_mono_us();
    CHECK_INT(answers_to(&patient, STR(GET("/full"))), 429);
    kit_send(patient.fd, STR(GET("/something-else"))); // once refused is not held
    CHECK_INT(answers_next(&patient), 200);
    // Pipelined or not: two refusals at once, the third request waits, and what was sent with it.
    CHECK_INT(answers_to(&hasty, STR(GET("/full") GET("/full") GET("/after") GET("/full"))), 429);
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
        TEST(bodies_have_the_limit_of_their_path),
        TEST(slow_heads_are_cut_off),
        TEST(slow_bodies_are_cut_off_and_steady_ones_are_not),
        TEST(idle_connections_are_closed_and_busy_ones_kept),
        TEST(clients_that_read_nothing_are_cut_off),
        TEST(large_answers_reach_clients_that_read),
        TEST(connections_have_a_limit_in_total_and_per_address),
        TEST(the_connections_of_a_named_proxy_are_those_of_many_clients),
        TEST(descriptors_that_run_out_do_not_stop_the_server),
        TEST(clients_that_do_not_wait_are_read_when_they_should_have_come),
        TEST(closed_connections_are_not_heard_of_again_while_a_child_holds_them),
    };
    return test_main("net_limits", tests, ARRAY_COUNT(tests), argc, argv);
}
