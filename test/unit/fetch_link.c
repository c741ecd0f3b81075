// The client of our own server: kept connections, streams, deadlines, three kinds of address.
#include "support/fetch_kit.h"

#include "os/os.h"

static struct arena arena;

static struct fetch_link *open_link(const char *url, const char *token, const char *ca_file)
{
    struct fetch_link *link = NULL;
    struct error err = {0};
    struct fetch_link_options options = {
        .url = str_from(url), .token = str_from(token), .ca_file = str_from(ca_file), .timeout_ms = 10000};
    if (!arena.block_size) arena_init(&arena, 65536, 256 << 20);
    CHECK_OK(fetch_link_open(&options, &link, &err), &err);
    return link;
}

static struct fetch_link *link_to(const struct server *server, const char *token)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", server->port);
    return open_link(url, token, "");
}

static enum code get(struct fetch_link *link, const char *path, struct fetch_answer *answer, struct error *err)
{
    struct fetch_call call = {.uri = str_from(path)};
    return fetch_link_call(link, &call, &arena, answer, err);
}

static void echo(struct peer *peer)
{
    while (peer_next(peer)) {
        struct str token = peer_header(peer, "Authorization"), body = peer_body(peer);
        char line[256], text[1024];
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(peer->text, "\r"), peer->text);
        snprintf(text, sizeof(text), "%s|%.*s|%.*s", line, STR_ARG(token), STR_ARG(body));
        if (!peer_answer(peer, text)) return;
    }
}

static void calls_share_one_connection(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, echo);
    struct fetch_link *link = link_to(&server, "cairn_id_secret");
    for (int i = 0; i < 100; i++) {
        CHECK_OK(get(link, "/v1/runs?limit=1", &answer, &err), &err);
        CHECK_INT(answer.status, 200);
        CHECK_STR(answer.body, STR("GET /v1/runs?limit=1 HTTP/1.1|Bearer cairn_id_secret|"));
    }
    struct http_header header = {STR("Content-Type"), STR("application/json")};
    struct fetch_call post = {
        .method = STR("POST"), .uri = STR("/v1/x"), .headers = &header, .header_count = 1, .body = STR("[1]")};
    CHECK_OK(fetch_link_call(link, &post, &arena, &answer, &err), &err);
    CHECK_STR(answer.body, STR("POST /v1/x HTTP/1.1|Bearer cairn_id_secret|[1]"));
    CHECK_STR(fetch_header(&answer, "content-length"), STR("46"));
    CHECK_INT(atomic_load(&server.accepted), 1);
    fetch_link_close(link);
}

static void a_path_of_the_address_comes_before_each_call(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    char url[64];
    server_start(&server, echo);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/behind/a-proxy/", server.port);
    struct fetch_link *link = open_link(url, "", "");
    CHECK_OK(get(link, "/v1/runs", &answer, &err), &err);
    CHECK_STR(answer.body, STR("GET /behind/a-proxy/v1/runs HTTP/1.1||"));
    fetch_link_close(link);
}

static void names_are_looked_up_by_the_system(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    char url[64];
    server_start(&server, echo);
    snprintf(url, sizeof(url), "http://localhost:%u", server.port); // whatever else it is: also 127.0.0.1
    struct fetch_link *link = open_link(url, "", "");
    CHECK_OK(get(link, "/", &answer, &err), &err);
    fetch_link_close(link);
    link = open_link("http://no-such-name.invalid:1", "", "");
    CHECK_INT(get(link, "/", &answer, &err), E_IO);
    fetch_link_close(link);
}

static void once(struct peer *peer)
{
    if (peer_next(peer)) peer_answer(peer, "x");
}

static void a_closed_connection_is_made_anew(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    server_start(&server, once);
    struct fetch_link *link = link_to(&server, "");
    for (int i = 1; i <= 20; i++) {
        struct error err = {0};
        CHECK_OK(get(link, "/", &answer, &err), &err);
        CHECK_INT(atomic_load(&server.requests), i);
    }
    fetch_link_close(link);
}

static atomic_int closed;
static void once_and_gone(struct peer *peer)
{
    if (peer_next(peer)) peer_answer(peer, "x");
    shutdown(peer->fd, SHUT_RDWR);
    atomic_fetch_add(&closed, 1);
}

// What must not be repeated is not even begun on a connection that is known to be closed.
static void a_closed_connection_is_seen_before_it_is_used(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, once_and_gone);
    struct fetch_link *link = link_to(&server, "");
    struct fetch_call post = {.method = STR("POST"), .uri = STR("/"), .body = STR("x")};
    for (int i = 1; i <= 20; i++) {
        CHECK_OK(fetch_link_call(link, &post, &arena, &answer, &err), &err);
        while (atomic_load(&closed) < i) usleep(1000);
    }
    CHECK_INT(atomic_load(&server.requests), 20);
    fetch_link_close(link);
}

// Reads the second request of a connection and closes without an answer.
static void drop_second(struct peer *peer)
{
    if (peer_next(peer)) peer_answer(peer, "x");
    peer_next(peer);
}

static void only_repeatable_calls_are_sent_twice(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, drop_second);
    struct fetch_link *link = link_to(&server, "");
    struct fetch_call post = {.method = STR("POST"), .uri = STR("/")};
    CHECK_OK(fetch_link_call(link, &post, &arena, &answer, &err), &err);
    CHECK_INT(fetch_link_call(link, &post, &arena, &answer, &err), E_IO);
    CHECK_INT(atomic_load(&server.requests), 2);
    err = (struct error){0};
    CHECK_OK(fetch_link_call(link, &post, &arena, &answer, &err), &err);
    post.repeatable = true;
    CHECK_OK(fetch_link_call(link, &post, &arena, &answer, &err), &err);
    CHECK_INT(atomic_load(&server.requests), 5);
    CHECK_OK(get(link, "/", &answer, &err), &err);
    CHECK_INT(atomic_load(&server.requests), 7);
    fetch_link_close(link);
}

static void stream(struct peer *peer)
{
    while (peer_next(peer)) {
        if (strncmp(peer->text, "GET /no", 7) == 0) {
            peer_say(peer, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
            continue;
        }
        peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 20; i++) {
            if (!peer_say(peer, "9\r\ndata: x\n\n\r\n")) return;
            usleep(5000);
        }
        peer_say(peer, "0\r\n\r\n");
    }
}

struct collected {
    struct buf bytes;
    size_t pieces, stop_at;
};

static bool collect(void *context, struct str bytes)
{
    struct collected *to = context;
    buf_add(&to->bytes, bytes);
    return ++to->pieces != to->stop_at;
}

static void streams_arrive_piece_by_piece(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    struct collected got = {0};
    buf_init(&got.bytes, 1 << 20);
    server_start(&server, stream);
    struct fetch_link *link = link_to(&server, "");
    struct fetch_call call = {
        .uri = STR("/v1/events"), .sink = collect, .sink_context = &got, .timeout_ms = 2000, .body_max = 4};
    CHECK_OK(fetch_link_call(link, &call, &arena, &answer, &err), &err);
    CHECK_INT(got.bytes.len, 180);
    CHECK(got.pieces > 2);
    CHECK_INT(answer.body.len, 0);
    // What is not a stream comes in the answer.
    call.uri = STR("/no");
    CHECK_OK(fetch_link_call(link, &call, &arena, &answer, &err), &err);
    CHECK_INT(answer.status, 403);
    CHECK_STR(answer.body, STR("no"));
    CHECK_INT(got.bytes.len, 180);
    CHECK_INT(atomic_load(&server.accepted), 1);
    // Whoever reads may stop.
    call.uri = STR("/v1/events");
    got.pieces = 0;
    got.stop_at = 1;
    CHECK_INT(fetch_link_call(link, &call, &arena, &answer, &err), E_CANCELLED);
    fetch_link_close(link);
    buf_release(&got.bytes);
}

static void silent(struct peer *peer)
{
    if (peer_next(peer)) peer_next(peer);
}

static atomic_bool stop;
static bool stopped(void *context)
{
    (void)context;
    return atomic_load(&stop);
}
static void *stop_soon(void *context)
{
    usleep(50000);
    atomic_store(&stop, true);
    return context;
}

static void silence_ends_and_so_does_patience(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, silent);
    struct fetch_link *link = link_to(&server, "cairn_id_secret");
    struct fetch_call call = {.uri = STR("/"), .timeout_ms = 80};
    int64_t before = os_now().mono_ms;
    CHECK_INT(fetch_link_call(link, &call, &arena, &answer, &err), E_TIMEOUT);
    CHECK(!strstr(err.message, "secret"));
    CHECK(os_now().mono_ms - before >= 79);
    fetch_link_close(link);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", server.port);
    struct fetch_link_options options = {.url = str_from(url), .stopped = stopped};
    err = (struct error){0};
    CHECK_OK(fetch_link_open(&options, &link, &err), &err);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stop_soon, NULL) == 0);
    before = os_now().mono_ms;
    CHECK_INT(get(link, "/", &answer, &err), E_CANCELLED);
    CHECK(os_now().mono_ms - before < 20000);
    pthread_join(thread, NULL);
    fetch_link_close(link);
}

static void large(struct peer *peer)
{
    static char block[65536];
    while (peer_next(peer)) {
        peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5242880\r\n\r\n");
        for (int i = 0; i < 80; i++)
            if (!peer_send(peer, block, sizeof(block))) return;
    }
}

static void large_answers_and_requests_pass_up_to_their_limit(void)
{
    struct server server = {0}, other = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, large);
    server_start(&other, echo);
    struct fetch_link *link = link_to(&server, "");
    CHECK_OK(get(link, "/", &answer, &err), &err);
    CHECK_INT(answer.body.len, 5242880);
    struct fetch_call call = {.uri = STR("/"), .body_max = 5242879};
    CHECK_INT(fetch_link_call(link, &call, &arena, &answer, &err), E_LIMIT);
    fetch_link_close(link);
    static char body[60000];
    memset(body, 'b', sizeof(body));
    link = link_to(&other, "");
    struct fetch_call post = {.method = STR("POST"), .uri = STR("/"), .body = {body, sizeof(body)}};
    err = (struct error){0};
    CHECK_OK(fetch_link_call(link, &post, &arena, &answer, &err), &err);
    CHECK_INT(answer.status, 200);
    fetch_link_close(link);
}

static void unix_sockets_work(void)
{
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    char path[600], url[640];
    snprintf(path, sizeof(path), "%s/s", test_dir());
    if (strlen(path) > 100) test_skip("the test directory's name is too long for a socket");
    server_start_unix(&server, path, echo);
    snprintf(url, sizeof(url), "unix:%s", path);
    struct fetch_link *link = open_link(url, "t", "");
    CHECK_OK(get(link, "/healthz", &answer, &err), &err);
    CHECK_STR(answer.body, STR("GET /healthz HTTP/1.1|Bearer t|"));
    fetch_link_close(link);
    snprintf(url, sizeof(url), "unix:%s-not-there", path);
    link = open_link(url, "hunter2", "");
    CHECK_INT(get(link, "/healthz", &answer, &err), E_IO);
    CHECK(strstr(err.message, "No such file") && !strstr(err.message, "hunter2"));
    fetch_link_close(link);
}

static void tls_verifies_chain_and_name_B5(void)
{
    struct authority authority, stranger;
    struct server good = {0}, other = {0};
    struct fetch_answer answer;
    struct error err = {0};
    char url[64];
    authority_make(&authority);
    authority_make(&stranger);
    good.tls = tls_make(&authority, "127.0.0.1", -1, 1, EVP_sha256());
    other.tls = tls_make(&authority, "other.example", -1, 1, EVP_sha256());
    server_start(&good, echo);
    server_start(&other, echo);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", good.port);
    struct fetch_link *link = open_link(url, "hunter2", authority.file);
    for (int i = 0; i < 50; i++) CHECK_OK(get(link, "/x", &answer, &err), &err);
    CHECK_STR(answer.body, STR("GET /x HTTP/1.1|Bearer hunter2|"));
    CHECK_INT(atomic_load(&good.accepted), 1);
    fetch_link_close(link);
    link = open_link(url, "hunter2", stranger.file);
    CHECK_INT(get(link, "/x", &answer, &err), E_DENIED);
    fetch_link_close(link);
    link = open_link(url, "hunter2", "");
    CHECK_INT(get(link, "/x", &answer, &err), E_DENIED);
    fetch_link_close(link);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", other.port);
    link = open_link(url, "hunter2", authority.file);
    err = (struct error){0};
    CHECK_INT(get(link, "/x", &answer, &err), E_DENIED);
    CHECK(strstr(err.message, "certificate") && !strstr(err.message, "hunter2"));
    CHECK_INT(atomic_load(&other.requests), 0);
    fetch_link_close(link);
}

static void addresses_that_cannot_be_used_are_named(void)
{
    static const char *const wrong[] = {"",      "127.0.0.1:80", "ftp://x", "http://", "http://h/?q", "http://u:p@h/",
                                        "unix:", "s3://bucket/x"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct fetch_link *link = NULL;
        struct error err = {0};
        struct fetch_link_options options = {.url = str_from(wrong[i])};
        CHECK_INT(fetch_link_open(&options, &link, &err), E_INVALID);
        CHECK(!link && err.message[0]);
    }
    struct fetch_link *link = NULL;
    struct error err = {0};
    struct fetch_link_options options = {.url = STR("http://h"), .token = STR("hunter2\r\nX: y")};
    CHECK_INT(fetch_link_open(&options, &link, &err), E_INVALID);
    CHECK(!strstr(err.message, "hunter2"));
    link = open_link("http://127.0.0.1:1", "hunter2", "");
    struct fetch_answer answer;
    err = (struct error){0};
    CHECK_INT(get(link, "/", &answer, &err), E_IO);
    CHECK(strstr(err.message, "refused") && !strstr(err.message, "hunter2"));
    fetch_link_close(link);
}

static void ten_thousand_small_calls_are_quick(void)
{
    struct server server = {0};
    struct error err = {0};
    server_start(&server, echo);
    struct fetch_link *link = link_to(&server, "cairn_id_secret");
    struct arena mine;
    arena_init(&mine, 65536, 1 << 20);
    struct fetch_call call = {.method = STR("POST"), .uri = STR("/v1/worker/heartbeat"), .body = STR("{}")};
    int64_t before = os_now().mono_ms;
    for (int i = 0; i < 10000; i++) {
        struct fetch_answer answer;
        arena_reset(&mine);
        CHECK_OK(fetch_link_call(link, &call, &mine, &answer, &err), &err);
    }
    int64_t took = os_now().mono_ms - before;
    fprintf(stderr, "10,000 calls in %lld ms\n", (long long)took);
    CHECK(took < 10000); // a tenth of what an idle machine does
    CHECK_INT(atomic_load(&server.accepted), 1);
    arena_release(&mine);
    fetch_link_close(link);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(calls_share_one_connection),
        TEST(a_path_of_the_address_comes_before_each_call),
        TEST(names_are_looked_up_by_the_system),
        TEST(a_closed_connection_is_made_anew),
        TEST(a_closed_connection_is_seen_before_it_is_used),
        TEST(only_repeatable_calls_are_sent_twice),
        TEST(streams_arrive_piece_by_piece),
        TEST(silence_ends_and_so_does_patience),
        TEST(large_answers_and_requests_pass_up_to_their_limit),
        TEST(unix_sockets_work),
        TEST(tls_verifies_chain_and_name_B5),
        TEST(addresses_that_cannot_be_used_are_named),
        TEST(ten_thousand_small_calls_are_quick),
    };
    return test_main("fetch_link", tests, ARRAY_COUNT(tests), argc, argv);
}
