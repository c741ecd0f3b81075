// Where a server listens: addresses, unix sockets, sockets of a service manager.
#include "support/net_kit.h"

#include <sys/stat.h>

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
    CHECK_INT(answers_to(&answers, STR("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")), 200);
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

// What the peer 127.0.0.1 is taken for when it sends these headers.
static void named(struct net_options *options, const char *headers, const char *want)
{
    struct kit kit = {.options = *options};
    struct answers answers;
    char request[500];
    kit_start(&kit);
    answers_open(&answers, &kit);
    int len = snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n", headers);
    CHECK_INT(answers_to(&answers, (struct str){request, (size_t)len}), 200);
    CHECK_STR(answers.parser.answer.body, str_from(want));
    answers_release(&answers);
    kit_stop(&kit);
}

static void the_client_behind_a_named_proxy_is_named_by_it(void)
{
    struct os_network networks[2];
    CHECK(os_network_parse(STR("127.0.0.0/8"), &networks[0]) && os_network_parse(STR("10.0.0.1"), &networks[1]));
    struct net_options plain = {.handle = who};
    struct net_options behind = {.handle = who, .proxies = networks, .proxy_count = ARRAY_COUNT(networks)};
    named(&plain, "X-Forwarded-For: 192.0.2.7\r\n", "127.0.0.1 -1");
    named(&behind, "", "127.0.0.1 -1");
    named(&behind, "X-Forwarded-For: 192.0.2.7\r\n", "192.0.2.7 -1");
    named(&behind, "X-Forwarded-For: 192.0.2.7:4000\r\n", "192.0.2.7 -1");
    named(&behind, "X-Forwarded-For: [2001:db8::7]:4000\r\n", "2001:db8::7 -1");
    named(&behind, "X-Forwarded-For: 2001:db8::7\r\n", "2001:db8::7 -1");
    // what stands before the first address that is no proxy was written by the client
    named(&behind, "X-Forwarded-For: 10.9.9.9, 192.0.2.7, 10.0.0.1\r\n", "192.0.2.7 -1");
    named(&behind, "X-Forwarded-For: 10.9.9.9\r\nX-Forwarded-For: 192.0.2.7,10.0.0.1\r\n", "192.0.2.7 -1");
    named(&behind, "X-Forwarded-For: 192.0.2.7, ::ffff:10.0.0.1\r\n", "192.0.2.7 -1");
    named(&behind, "X-Forwarded-For: 192.0.2.7, nonsense, 10.0.0.1\r\n", "10.0.0.1 -1");
    named(&behind, "X-Forwarded-For: 192.0.2.0/24\r\n", "127.0.0.1 -1");
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

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(unix_sockets_are_private_and_name_their_client),
        TEST(addresses_are_checked),
        TEST(the_client_behind_a_named_proxy_is_named_by_it),
        TEST(sockets_of_a_service_manager_are_used),
    };
    return test_main("net_doors", tests, ARRAY_COUNT(tests), argc, argv);
}
