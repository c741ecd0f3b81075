// Calls under a policy, against servers that mean no good: reliability §4.5, rows 74 to 83, and rows 1 to 73, 80, 81 with a
// listener that must hear nothing.
#include "support/fetch_kit.h"
#include "support/fetch_uris.h"

#include "os/os.h"

#define HTTP_RULE                                                                                                      \
    "{\"allow\": [{\"uri\": \"http://plans.allowed.example:PORT/prod/\", \"addresses\": [\"127.0.0.0/8\"]}]}"

static struct arena arena;
static struct server trap; // whoever connects here was led astray
static struct names here = {.answers = {"127.0.0.1"}};

static void trapped(struct peer *peer)
{
    if (peer_next(peer)) peer_answer(peer, "you should not be here");
}

static void prepare(void)
{
    arena_init(&arena, 65536, 512 << 20);
    server_start(&trap, trapped);
    os_log_level(LOG_ERROR);
}

static struct fetch_policy *http_policy(const struct server *server, struct names *names)
{
    struct fetch_policy *policy = policy_for(&arena, HTTP_RULE, server->port);
    names_use(names, policy);
    return policy;
}

static enum code get(const struct fetch_policy *policy, uint16_t port, int64_t timeout_ms, struct fetch_answer *answer,
                     struct error *err)
{
    char uri[128];
    snprintf(uri, sizeof(uri), "http://plans.allowed.example:%u/prod/x", port);
    struct fetch_call call = {.uri = str_from(uri), .timeout_ms = timeout_ms};
    *err = (struct error){0};
    return fetch_call(policy, &call, &arena, answer, err);
}

static void is_refused(enum code rc, const struct error *err, const char *what)
{
    if (rc == E_DENIED && strncmp(err->message, "PLAN_URI_NOT_ALLOWED", 20) == 0) return;
    test_fail(__FILE__, __LINE__, "%s: %d %s", what, (int)rc, err->message);
}

// ---- rows 1 to 73, 80, 81

static void refuse_everywhere(const struct fetch_policy *policy, const char *text)
{
    static const char hash[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct fetch_answer answer;
    struct error err = {0};
    struct fetch_call call = {.uri = str_from(text), .timeout_ms = 2000};
    is_refused(fetch_call(policy, &call, &arena, &answer, &err), &err, text);
    call.method = STR("POST");
    call.body = STR("{}");
    err = (struct error){0};
    is_refused(fetch_call(policy, &call, &arena, &answer, &err), &err, text);
    struct plan_ref ref = {.uri = str_from(text), .sha256 = STR(hash)};
    struct str bytes;
    struct plan_trip trip;
    err = (struct error){0};
    is_refused(fetch_plan(policy, &ref, &arena, &bytes, &trip, &err), &err, text);
}

static int listen6(uint16_t port)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (fd >= 0 && bind(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && listen(fd, 16) == 0) return fd;
    return -1;
}

static void no_hostile_uri_sends_a_packet_WE_3_1_1d_C_09(void)
{
    prepare();
    struct fetch_policy *policy = policy_for(
        &arena, "{\"allow\": [\"https://plans.allowed.example/prod/\", \"s3://cairn-plans/prod/\"]}", trap.port);
    struct names names = {.answers = {"127.0.0.1", "::1"}};
    names_use(&names, policy);
    int six = listen6(trap.port);
    char port[8], uri[1024];
    snprintf(port, sizeof(port), "%u", trap.port);
    for (size_t i = 0; i < ARRAY_COUNT(hostile_uris); i++) {
        const char *mark = strstr(hostile_uris[i], "PORT");
        snprintf(uri, sizeof(uri), "%.*s%s%s", mark ? (int)(mark - hostile_uris[i]) : 1000, hostile_uris[i],
                 mark ? port : "", mark ? mark + 4 : "");
        refuse_everywhere(policy, uri);
    }
    for (size_t i = 0; i < ARRAY_COUNT(hostile_hosts); i++) {
        for (int https = 0; https < 2; https++) {
            snprintf(uri, sizeof(uri), "http%s://%s:%s/prod/x", https ? "s" : "", hostile_hosts[i], port);
            refuse_everywhere(policy, uri);
        }
    }
    usleep(20000);
    CHECK_INT(atomic_load(&trap.accepted), 0);
    CHECK_INT(atomic_load(&names.asked), 0);
    CHECK(six < 0 || accept(six, NULL, NULL) < 0);
}

// ---- row 74, 75

struct move {
    int status;
    char location[64];
};

static void moved(struct peer *peer)
{
    const struct move *move = peer->server->context;
    char text[512];
    if (!peer_next(peer)) return;
    snprintf(text, sizeof(text), "HTTP/1.1 %d X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", move->status,
             move->location);
    peer_say(peer, text);
}

static void redirects_are_not_followed(void)
{
    prepare();
    static const int codes[] = {300, 301, 302, 303, 305, 307, 308};
    static const char *const places[] = {"http://127.0.0.1:%u/", "file:///etc/passwd", "//127.0.0.1:%u/",
                                         "https://evil.test/", "http://plans.allowed.example:%u/prod/x"};
    struct server server = {0};
    struct move move;
    server.context = &move;
    server_start(&server, moved);
    struct fetch_policy *policy = http_policy(&server, &here);
    char uri[128];
    snprintf(uri, sizeof(uri), "http://plans.allowed.example:%u/prod/x", server.port);
    int asked = 0;
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(places); k++) {
            struct fetch_answer answer;
            struct error err = {0};
            move.status = codes[i];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(move.location, sizeof(move.location), places[k], k == 4 ? server.port : trap.port);
#pragma GCC diagnostic pop
            CHECK_OK(get(policy, server.port, 5000, &answer, &err), &err);
            CHECK_INT(answer.status, codes[i]);
            struct plan_ref ref = {.uri = str_from(uri),
                                   .sha256 = STR("0000000000000000000000000000000000000000000000000000000000000000")};
            struct str bytes;
            struct plan_trip trip;
            is_refused(fetch_plan(policy, &ref, &arena, &bytes, &trip, &err), &err, "redirect");
            asked += 2;
        }
    }
    CHECK_INT(atomic_load(&server.requests), asked);
    CHECK_INT(atomic_load(&trap.accepted), 0);
}

static void hinting(struct peer *peer)
{
    char text[512];
    if (!peer_next(peer)) return;
    snprintf(text, sizeof(text),
             "HTTP/1.1 200 OK\r\nAlt-Svc: h2=\"127.0.0.1:%u\"\r\nRefresh: 0; url=http://127.0.0.1:%u/\r\n"
             "Link: <http://127.0.0.1:%u/>; rel=preload\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok",
             trap.port, trap.port, trap.port);
    peer_say(peer, text);
}

static void other_hints_are_only_headers(void)
{
    prepare();
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, hinting);
    struct fetch_policy *policy = http_policy(&server, &here);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(get(policy, server.port, 5000, &answer, &err), &err);
        CHECK_STR(answer.body, STR("ok"));
    }
    CHECK_INT(atomic_load(&trap.accepted), 0);
}

// ---- rows 76 to 79

static void names_are_resolved_once(void)
{
    prepare();
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, trapped);
    struct names names = {.answers = {"127.0.0.1"}};
    struct fetch_policy *policy = http_policy(&server, &names);
    CHECK_OK(get(policy, server.port, 5000, &answer, &err), &err);
    CHECK_INT(atomic_load(&names.asked), 1);
    // Rebinding: what was good a moment ago is looked at again for the next call.
    names.answers[0] = "10.0.0.5";
    is_refused(get(policy, server.port, 5000, &answer, &err), &err, "rebound");
    CHECK_INT(atomic_load(&names.asked), 2);
}

static void every_address_of_a_name_must_be_allowed(void)
{
    prepare();
    static const struct names mixed[] = {{.answers = {"127.0.0.1"}},
                                         {.answers = {"93.184.215.14", "10.0.0.5"}},
                                         {.answers = {"93.184.215.14", "::1"}},
                                         {.answers = {"::1", "93.184.215.14"}},
                                         {.answers = {"::ffff:127.0.0.1"}},
                                         {.answers = {"2606:4700::1111", "169.254.169.254"}},
                                         {.answers = {"0.0.0.0"}},
                                         {.answers = {"168.63.129.16"}}};
    char text[128];
    snprintf(text, sizeof(text), "http://plans.allowed.example:%u/prod/x", trap.port);
    for (size_t i = 0; i < ARRAY_COUNT(mixed); i++) {
        struct fetch_policy *policy =
            policy_for(&arena, "{\"allow\": [\"http://plans.allowed.example:PORT/prod/\"]}", trap.port);
        struct names names;
        struct fetch_answer answer;
        struct error err = {0};
        memcpy(&names, &mixed[i], sizeof(names));
        names_use(&names, policy);
        struct fetch_call call = {.uri = str_from(text), .timeout_ms = 2000};
        is_refused(fetch_call(policy, &call, &arena, &answer, &err), &err, mixed[i].answers[0]);
    }
    CHECK_INT(atomic_load(&trap.accepted), 0);
}

// The kernel takes 0.0.0.0 for this machine: what counts is where the socket ended up.
static void the_peer_is_looked_at_again(void)
{
    prepare();
    struct names names = {.answers = {"0.0.0.0"}};
    struct fetch_policy *policy = policy_for(
        &arena,
        "{\"allow\": [{\"uri\": \"http://plans.allowed.example:PORT/prod/\", \"addresses\": [\"0.0.0.0/32\"]}]}",
        trap.port);
    names_use(&names, policy);
    struct fetch_answer answer;
    struct error err = {0};
    is_refused(get(policy, trap.port, 5000, &answer, &err), &err, "0.0.0.0");
    CHECK_INT(atomic_load(&trap.requests), 0);
}

static enum code slow_resolve(void *context, const char *host, int64_t timeout_ms, struct fetch_addresses *out,
                              struct error *err)
{
    (void)context, (void)host, (void)out;
    CHECK(timeout_ms <= 100);
    usleep((useconds_t)timeout_ms * 1000);
    return error_set(err, E_TIMEOUT, "slow");
}

static void unreachable_looks_the_same_however_it_is(void)
{
    prepare();
    struct fetch_answer answer;
    struct error slow = {0}, closed = {0}, unknown = {0};
    struct server gone = {0};
    server_start(&gone, trapped);
    shutdown(gone.fd, SHUT_RDWR);
    close(gone.fd);
    struct fetch_policy *policy = http_policy(&gone, &here);
    CHECK_INT(get(policy, gone.port, 2000, &answer, &closed), E_IO);
    struct names nobody = {.answers = {NULL}};
    names_use(&nobody, policy);
    CHECK_INT(get(policy, gone.port, 2000, &answer, &unknown), E_IO);
    fetch_policy_resolver(policy, (struct fetch_resolver){NULL, slow_resolve});
    CHECK_INT(get(policy, gone.port, 100, &answer, &slow), E_IO);
    CHECK_TEXT(closed.message, slow.message);
    CHECK_TEXT(closed.message, unknown.message);
}

static void bare(struct peer *peer)
{
    if (!peer_next(peer)) return;
    CHECK(!peer_header(peer, "Authorization").len && !peer_header(peer, "Cookie").len);
    CHECK(!peer_header(peer, "Proxy-Connection").len && !peer_header(peer, "Accept-Encoding").len);
    peer_answer(peer, strncmp(peer->text, "GET /prod/x ", 12) == 0 ? "direct" : "proxied");
}

static void the_environment_does_not_matter(void)
{
    prepare();
    static const char *const variables[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"};
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    char proxy[64], path[600];
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u/", trap.port);
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) setenv(variables[i], proxy, 1);
    setenv("NO_PROXY", "", 1);
    setenv("HOME", test_dir(), 1);
    setenv("CURL_HOME", test_dir(), 1);
    snprintf(path, sizeof(path), "%s/.netrc", test_dir());
    test_write_file(path, STR("default login u password hunter2\n"));
    server_start(&server, bare);
    struct fetch_policy *policy = http_policy(&server, &here);
    CHECK_OK(get(policy, server.port, 5000, &answer, &err), &err);
    CHECK_STR(answer.body, STR("direct"));
    CHECK_INT(atomic_load(&trap.accepted), 0);
}

// ---- row 82

static void flood(struct peer *peer, const char *head, const char *piece, size_t times)
{
    if (!peer_next(peer) || !peer_say(peer, head)) return;
    for (size_t i = 0; i < times; i++)
        if (!peer_say(peer, piece)) return;
}

static char zeros[65537];

static void ten_gigabytes(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n", zeros, 163840);
}
static void chunks_for_ever(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n" /* and a kilobyte that is short */,
          1);
    for (;;)
        if (!peer_send(peer, zeros, 1024) || !peer_say(peer, "\r\n400\r\n")) return;
}
static void until_close_for_ever(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\n\r\n", zeros, SIZE_MAX);
}
static void one_byte_now_and_then(struct peer *peer)
{
    if (!peer_next(peer) || !peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")) return;
    while (peer_say(peer, "x")) usleep(20000);
}
static void head_byte_by_byte(struct peer *peer)
{
    if (!peer_next(peer) || !peer_say(peer, "HTTP/1.1 200 OK\r\nX: ")) return;
    while (peer_say(peer, "x")) usleep(20000);
}
static void nothing_at_all(struct peer *peer)
{
    if (peer_next(peer)) peer_next(peer);
}
static void longer_than_said(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "and more", 3);
}
static void shorter_than_said(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", "ok", 1);
}
static void megabyte_of_head(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nX: ", zeros, 16);
}
static void many_headers(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\n", "X: y\r\n", 200000);
}
static void version_nine(struct peer *peer)
{
    flood(peer, "hello", " world", 3);
}
static void two_lengths(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", "ok", 1);
}
static void length_and_chunks(struct peer *peer)
{
    flood(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nok\r\n0\r\n\r\n",
          1);
}
static void closes_at_once(struct peer *peer)
{
    peer_next(peer);
}
static void hundred_continues(struct peer *peer)
{
    if (!peer_next(peer)) return;
    for (int i = 0; i < 100; i++) peer_say(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    peer_answer(peer, "ok");
}
static void continues_for_ever(struct peer *peer)
{
    flood(peer, "", "HTTP/1.1 100 Continue\r\n\r\n", SIZE_MAX);
}
static void switches(struct peer *peer)
{
    flood(peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "x", 1);
}

static void hostile_servers_meet_limits(void)
{
    prepare();
    static const struct {
        const char *name;
        void (*talk)(struct peer *);
        enum code want;
        int64_t timeout_ms;
    } cases[] = {{"10 GB", ten_gigabytes, E_LIMIT, 10000},
                 {"chunks for ever", chunks_for_ever, E_LIMIT, 10000},
                 {"until close for ever", until_close_for_ever, E_LIMIT, 10000},
                 {"one byte now and then", one_byte_now_and_then, E_TIMEOUT, 150},
                 {"a head byte by byte", head_byte_by_byte, E_TIMEOUT, 150},
                 {"nothing", nothing_at_all, E_TIMEOUT, 100},
                 {"longer than said", longer_than_said, OK, 10000},
                 {"shorter than said", shorter_than_said, E_IO, 10000},
                 {"1 MB of head", megabyte_of_head, E_LIMIT, 10000},
                 {"many headers", many_headers, E_LIMIT, 10000},
                 {"HTTP/0.9", version_nine, E_IO, 10000},
                 {"two lengths", two_lengths, E_IO, 10000},
                 {"length and chunks", length_and_chunks, E_IO, 10000},
                 {"closes at once", closes_at_once, E_IO, 10000},
                 {"100 continues", hundred_continues, OK, 10000},
                 {"continues for ever", continues_for_ever, E_LIMIT, 10000},
                 {"switches protocols", switches, E_IO, 10000}};
    memset(zeros, '0', sizeof(zeros) - 1);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct server *server = lives_on(calloc(1, sizeof(*server)));
        struct fetch_answer answer = {0};
        struct error err = {0};
        server_start(server, cases[i].talk);
        struct fetch_policy *policy = http_policy(server, &here);
        int64_t before = os_now().mono_ms;
        enum code rc = get(policy, server->port, cases[i].timeout_ms, &answer, &err);
        if (rc != cases[i].want) test_fail(__FILE__, __LINE__, "%s: %d %s", cases[i].name, (int)rc, err.message);
        if (!rc) CHECK_STR(answer.body, STR("ok"));
        CHECK(os_now().mono_ms - before < cases[i].timeout_ms + 5000);
        arena_reset(&arena);
    }
}

static bool swallow(void *context, struct str bytes)
{
    *(size_t *)context += bytes.len;
    return true;
}

// A stream has no limit of size, and ends in time all the same, even when there is always something to read.
static void endless_streams_end_in_time(void)
{
    prepare();
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    size_t got = 0;
    server_start(&server, chunks_for_ever);
    char uri[128];
    snprintf(uri, sizeof(uri), "http://plans.allowed.example:%u/prod/x", server.port);
    struct fetch_policy *policy = http_policy(&server, &here);
    struct fetch_call call = {.uri = str_from(uri), .timeout_ms = 200, .sink = swallow, .sink_context = &got};
    CHECK_INT(fetch_call(policy, &call, &arena, &answer, &err), E_TIMEOUT);
    CHECK(got > 0);
}

static void limits_hold_to_the_byte(void)
{
    prepare();
    struct server server = {0};
    struct fetch_answer answer;
    struct error err = {0};
    server_start(&server, trapped); // 22 bytes
    char uri[128];
    snprintf(uri, sizeof(uri), "http://plans.allowed.example:%u/prod/x", server.port);
    struct fetch_policy *policy = http_policy(&server, &here);
    struct fetch_call call = {.uri = str_from(uri), .body_max = 22};
    CHECK_OK(fetch_call(policy, &call, &arena, &answer, &err), &err);
    call.body_max = 21;
    CHECK_INT(fetch_call(policy, &call, &arena, &answer, &err), E_LIMIT);
}

// ---- row 83

static void polite(struct peer *peer)
{
    if (peer_next(peer)) peer_answer(peer, "ok");
}
static void hangs_up(struct peer *peer)
{
    (void)peer;
}

static void certificates_are_verified_B5(void)
{
    prepare();
    struct authority authority, stranger;
    authority_make(&authority);
    authority_make(&stranger);
    const char *name = "plans.allowed.example";
    const struct {
        const char *what;
        SSL_CTX *tls;
        void (*talk)(struct peer *);
        enum code want;
    } cases[] = {{"good", tls_make(&authority, name, -1, 1, EVP_sha256()), polite, OK},
                 {"wildcard", tls_make(&authority, "*.allowed.example", -1, 1, EVP_sha256()), polite, OK},
                 {"other name", tls_make(&authority, "evil.test", -1, 1, EVP_sha256()), polite, E_DENIED},
                 {"wildcard too high", tls_make(&authority, "*.example", -1, 1, EVP_sha256()), polite, E_DENIED},
                 {"address", tls_make(&authority, "127.0.0.1", -1, 1, EVP_sha256()), polite, E_DENIED},
                 {"expired", tls_make(&authority, name, -2, -1, EVP_sha256()), polite, E_DENIED},
                 {"not yet valid", tls_make(&authority, name, 1, 2, EVP_sha256()), polite, E_DENIED},
                 {"self-signed", tls_make(NULL, name, -1, 1, EVP_sha256()), polite, E_DENIED},
                 {"unknown authority", tls_make(&stranger, name, -1, 1, EVP_sha256()), polite, E_DENIED},
                 {"SHA-1", tls_make(&authority, name, -1, 1, EVP_sha1()), polite, E_DENIED},
                 {"hangs up", tls_make(&authority, name, -1, 1, EVP_sha256()), hangs_up, E_IO}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct server *server = lives_on(calloc(1, sizeof(*server)));
        char text[1024], uri[128];
        struct fetch_answer answer;
        struct error err = {0};
        server->tls = cases[i].tls;
        server_start(server, cases[i].talk);
        snprintf(
            text, sizeof(text),
            "{\"caFile\": \"%s\", \"allow\": [{\"uri\": \"https://%s:PORT/prod/\", \"addresses\": [\"127.0.0.0/8\"]}]}",
            authority.file, name);
        snprintf(uri, sizeof(uri), "https://%s:%u/prod/x", name, server->port);
        struct fetch_policy *policy = policy_for(&arena, text, server->port);
        names_use(&here, policy);
        struct fetch_call call = {.uri = str_from(uri), .timeout_ms = 10000};
        enum code rc = fetch_call(policy, &call, &arena, &answer, &err);
        if (rc != cases[i].want) test_fail(__FILE__, __LINE__, "%s: %d %s", cases[i].what, (int)rc, err.message);
        if (rc == E_DENIED) CHECK_INT(atomic_load(&server->requests), 0);
        if (!rc) CHECK_STR(answer.body, STR("ok"));
    }
}

static void old_tls_is_refused_B4(void)
{
    prepare();
    struct authority authority;
    struct server server = {0};
    char text[1024], uri[128];
    struct fetch_answer answer;
    struct error err = {0};
    authority_make(&authority);
    server.tls = tls_make(&authority, "plans.allowed.example", -1, 1, EVP_sha256());
    CHECK(SSL_CTX_set_min_proto_version(server.tls, TLS1_VERSION) &&
          SSL_CTX_set_max_proto_version(server.tls, TLS1_1_VERSION));
    server_start(&server, polite);
    snprintf(text, sizeof(text),
             "{\"caFile\": \"%s\", \"allow\": [{\"uri\": \"https://plans.allowed.example:PORT/\", \"addresses\": "
             "[\"127.0.0.0/8\"]}]}",
             authority.file);
    snprintf(uri, sizeof(uri), "https://plans.allowed.example:%u/prod/x", server.port);
    struct fetch_policy *policy = policy_for(&arena, text, server.port);
    names_use(&here, policy);
    struct fetch_call call = {.uri = str_from(uri), .timeout_ms = 10000};
    CHECK_INT(fetch_call(policy, &call, &arena, &answer, &err), E_IO);
    CHECK_INT(atomic_load(&server.requests), 0);
}

static void headers_of_the_client_cannot_be_given(void)
{
    prepare();
    static const struct http_header wrong[] = {{STR_INIT("Host"), STR_INIT("evil.test")},
                                               {STR_INIT("content-length"), STR_INIT("0")},
                                               {STR_INIT("Transfer-Encoding"), STR_INIT("chunked")},
                                               {STR_INIT("Connection"), STR_INIT("keep-alive")},
                                               {STR_INIT("X"), STR_INIT("a\r\nHost: b")},
                                               {STR_INIT("X Y"), STR_INIT("a")}};
    struct fetch_policy *policy = http_policy(&trap, &here);
    char uri[128];
    snprintf(uri, sizeof(uri), "http://plans.allowed.example:%u/prod/x", trap.port);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct fetch_answer answer;
        struct error err = {0};
        struct fetch_call call = {.uri = str_from(uri), .headers = &wrong[i], .header_count = 1};
        CHECK_INT(fetch_call(policy, &call, &arena, &answer, &err), E_INVALID);
    }
    CHECK_INT(atomic_load(&trap.accepted), 0);
}

// ---- kept connections

static void patient(struct peer *peer)
{
    while (peer_next(peer) && peer_answer(peer, "thanks")) {
    }
}

// Two answers on a connection, then none.
static void weary(struct peer *peer)
{
    while (peer_next(peer) && peer->number < 3 && peer_answer(peer, "thanks")) {
    }
}

static enum code post(struct fetch_policy *policy, struct fetch_keep *keep, uint16_t port, bool repeatable,
                      struct error *err)
{
    char uri[128];
    struct fetch_answer answer;
    snprintf(uri, sizeof(uri), "http://plans.allowed.example:%u/prod/x", port);
    struct fetch_call call = {
        .method = STR("POST"), .uri = str_from(uri), .body = STR("{}"), .timeout_ms = 5000, .repeatable = repeatable};
    *err = (struct error){0};
    return fetch_call_kept(policy, keep, &call, &arena, &answer, err);
}

static void a_kept_connection_is_used_again_and_checked_once(void)
{
    static struct server server;
    struct names names = {.answers = {"127.0.0.1"}};
    struct error err;
    prepare();
    server_start(&server, patient);
    struct fetch_policy *policy = http_policy(&server, &names);
    struct fetch_keep *keep = fetch_keep_open();
    for (int i = 0; i < 50; i++) CHECK_OK(post(policy, keep, server.port, true, &err), &err);
    CHECK_INT(atomic_load(&server.accepted), 1);
    CHECK_INT(atomic_load(&names.asked), 1);
    CHECK_INT(atomic_load(&server.requests), 50);
    fetch_keep_close(keep);
    // Without one, and for another place, a connection is made.
    for (int i = 0; i < 3; i++) CHECK_OK(post(policy, NULL, server.port, true, &err), &err);
    CHECK_INT(atomic_load(&server.accepted), 4);
}

static void a_kept_connection_leads_nowhere_else(void)
{
    static struct server first, second;
    struct error err;
    prepare();
    server_start(&first, patient);
    server_start(&second, patient);
    struct fetch_keep *keep = fetch_keep_open();
    struct fetch_policy *one = http_policy(&first, &here), *other = http_policy(&second, &here);
    CHECK_OK(post(one, keep, first.port, true, &err), &err);
    CHECK_OK(post(other, keep, second.port, true, &err), &err);
    CHECK_INT(atomic_load(&second.requests), 1);
    // A policy that does not allow the place is asked, whatever stands open.
    is_refused(post(one, keep, second.port, true, &err), &err, "a place of another policy");
    fetch_keep_close(keep);
}

static void a_connection_that_the_server_has_left_is_made_anew(void)
{
    static struct server server;
    struct error err;
    prepare();
    server_start(&server, weary);
    struct fetch_policy *policy = http_policy(&server, &here);
    struct fetch_keep *keep = fetch_keep_open();
    for (int i = 0; i < 10; i++) CHECK_OK(post(policy, keep, server.port, true, &err), &err);
    CHECK_INT(atomic_load(&server.accepted), 5);
    CHECK_INT(atomic_load(&server.requests), 14);                  // every third was not answered, and sent again
    CHECK_INT(post(policy, keep, server.port, false, &err), E_IO); // it may have been done: not ours to repeat
    CHECK_OK(post(policy, keep, server.port, false, &err), &err);
    fetch_keep_close(keep);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(no_hostile_uri_sends_a_packet_WE_3_1_1d_C_09),
        TEST(redirects_are_not_followed),
        TEST(other_hints_are_only_headers),
        TEST(names_are_resolved_once),
        TEST(every_address_of_a_name_must_be_allowed),
        TEST(the_peer_is_looked_at_again),
        TEST(unreachable_looks_the_same_however_it_is),
        TEST(the_environment_does_not_matter),
        TEST(hostile_servers_meet_limits),
        TEST(endless_streams_end_in_time),
        TEST(limits_hold_to_the_byte),
        TEST(certificates_are_verified_B5),
        TEST(old_tls_is_refused_B4),
        TEST(headers_of_the_client_cannot_be_given),
        TEST(a_kept_connection_is_used_again_and_checked_once),
        TEST(a_kept_connection_leads_nowhere_else),
        TEST(a_connection_that_the_server_has_left_is_made_anew),
    };
    return test_main("fetch_call", tests, ARRAY_COUNT(tests), argc, argv);
}
