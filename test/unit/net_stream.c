// Streams, and TLS: what goes on for long, and what is hidden on the way.
#include "support/net_kit.h"

#include <poll.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/pem.h>
#include <openssl/evp.h>

static struct {
    _Atomic(struct net_stream *) stream;
    atomic_int closed; // calls
    atomic_int why;    // of the last
} seen;

static void closed(void *context, enum net_end why)
{
    CHECK(context == &seen);
    atomic_store(&seen.why, (int)why);
    atomic_fetch_add(&seen.closed, 1);
}

static void begin(void *context, struct net_exchange *x)
{
    struct http_header header = {STR("Content-Type"), STR("text/event-stream")};
    (void)context;
    if (str_is(net_request(x)->path, "/plain")) {
        net_reply(x, 200, NULL, 0, STR("plain"));
        return;
    }
    atomic_store(&seen.stream, net_stream(x, 200, &header, 1, closed, &seen));
}

static struct net_stream *await_stream(void)
{
    for (int i = 0; i < KIT_WAIT_MS && !atomic_load(&seen.stream); i++) usleep(1000);
    CHECK(atomic_load(&seen.stream));
    return atomic_load(&seen.stream);
}

static void streams_send_from_any_thread_and_leave_the_connection_usable(void)
{
    struct kit kit = {.options.handle = begin};
    struct answers answers;
    struct net_stats stats;
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/events")));
    struct net_stream *stream = await_stream();
    struct buf want;
    buf_init(&want, 1 << 20);
    for (int i = 0; i < 500; i++) {
        char text[64];
        int len = snprintf(text, sizeof(text), "id: %d\ndata: x\n\n", i);
        CHECK(net_stream_send(stream, (struct str){text, (size_t)len}));
        buf_text(&want, text);
    }
    CHECK(net_stream_send(stream, STR("")));
    net_stream_end(stream);
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, buf_str(&want));
    kit_await(&seen.closed, 1);
    CHECK_INT(atomic_load(&seen.why), NET_END_DONE);
    kit_send(answers.fd, STR(GET("/plain")));
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("plain"));
    net_stats(kit.server, &stats);
    CHECK_INT(stats.streams, 0);
    answers_release(&answers);
    buf_release(&want);
    kit_stop(&kit);
    CHECK_INT(atomic_load(&seen.closed), 1);
}

static void old_clients_read_until_the_end(void)
{
    struct kit kit = {.options.handle = begin};
    char bytes[4096];
    struct buf got;
    kit_start(&kit);
    buf_init(&got, 1 << 20);
    int fd = kit_connect(&kit);
    kit_send(fd, STR("GET /events HTTP/1.0\r\nHost: x\r\n\r\n"));
    struct net_stream *stream = await_stream();
    CHECK(net_stream_send(stream, STR("one ")));
    CHECK(net_stream_send(stream, STR("two")));
    net_stream_end(stream);
    for (size_t count; (count = kit_read(fd, bytes, sizeof(bytes))) > 0;) buf_add(&got, (struct str){bytes, count});
    CHECK(str_ends(buf_str(&got), STR("\r\n\r\none two")));
    CHECK(strstr(got.ptr, "Connection: close") && !strstr(got.ptr, "chunked"));
    close(fd);
    buf_release(&got);
    kit_stop(&kit);
}

static void streams_of_slow_readers_are_cut_at_their_cap(void)
{
    struct kit kit = {.options.handle = begin, .limits = net_limits_default};
    struct net_stats stats;
    char block[4096];
    size_t most = 0, count = 0;
    memset(block, 'x', sizeof(block));
    kit.limits.stream_cap = 100000;
    kit_start(&kit);
    int fd = kit_connect(&kit);
    kit_send(fd, STR(GET("/events")));
    struct net_stream *stream = await_stream();
    while (net_stream_send(stream, (struct str){block, sizeof(block)})) {
        size_t queued = net_stream_queued(stream);
        if (queued > most) most = queued;
        if (++count > 100000) test_fail(__FILE__, __LINE__, "never over the cap");
        if (queued > 50000) usleep(200); // the kernel's buffers take some
    }
    CHECK(most <= 100000);
    kit_await(&seen.closed, 1);
    CHECK_INT(atomic_load(&seen.why), NET_END_SLOW);
    CHECK(!net_stream_send(stream, STR("x")));
    net_stream_end(stream);
    net_stats(kit.server, &stats);
    CHECK_INT(stats.streams_cut, 1);
    close(fd);
    kit_stop(&kit);
    CHECK_INT(atomic_load(&seen.closed), 1);
}

// A client that has taken all is told why; one that has not gets nothing of what waits for it.
static void a_stream_that_is_cut_off_leaves_nothing_to_read(void)
{
    struct kit kit = {.options.handle = begin};
    struct answers answers;
    char block[4096];
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/events")));
    struct net_stream *stream = await_stream();
    CHECK(net_stream_send(stream, STR("one ")));
    for (int i = 0; i < KIT_WAIT_MS && net_stream_queued(stream); i++) usleep(1000);
    CHECK(recv(answers.fd, block, sizeof(block), MSG_PEEK) > 0);
    net_stream_cut(stream, STR("goodbye"));
    CHECK(!net_stream_send(stream, STR("two")));
    net_stream_end(stream);
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("one goodbye"));
    CHECK_INT(answers_next(&answers), 0);
    answers_release(&answers);

    atomic_store(&seen.stream, NULL);
    memset(block, 'x', sizeof(block));
    int fd = kit_connect(&kit);
    kit_send(fd, STR(GET("/events")));
    stream = await_stream();
    for (int i = 0; i < KIT_WAIT_MS && net_stream_queued(stream) < 500000; i++) {
        CHECK(net_stream_send(stream, (struct str){block, sizeof(block)}));
        if (net_stream_queued(stream) > 100000) usleep(200); // the kernel's buffers take some
    }
    net_stream_cut(stream, STR("goodbye"));
    net_stream_end(stream);
    kit_await(&seen.closed, 2);
    CHECK_INT(atomic_load(&seen.why), NET_END_CUT);
    struct pollfd reset = {.fd = fd};
    CHECK_INT(poll(&reset, 1, KIT_WAIT_MS), 1);
    CHECK(reset.revents & POLLERR);
    close(fd);
    kit_stop(&kit);
}

static void owners_learn_that_the_client_has_gone(void)
{
    struct kit kit = {.options.handle = begin};
    kit_start(&kit);
    int fd = kit_connect(&kit);
    kit_send(fd, STR(GET("/events")));
    struct net_stream *stream = await_stream();
    CHECK(net_stream_send(stream, STR("hello")));
    close(fd);
    kit_await(&seen.closed, 1);
    CHECK_INT(atomic_load(&seen.why), NET_END_GONE);
    CHECK(!net_stream_send(stream, STR("anybody?")));
    net_stream_end(stream);
    kit_stop(&kit);
    CHECK_INT(atomic_load(&seen.closed), 1);
}

static void stopping_ends_streams_properly(void)
{
    struct kit kit = {.options.handle = begin};
    struct answers answers;
    kit_start(&kit);
    answers_init(&answers, kit_connect(&kit));
    kit_send(answers.fd, STR(GET("/events")));
    struct net_stream *stream = await_stream();
    CHECK(net_stream_send(stream, STR("last words")));
    net_stop(kit.server);
    CHECK_INT(answers_next(&answers), 200);
    CHECK_STR(answers.parser.answer.body, STR("last words"));
    pthread_join(kit.thread, NULL);
    CHECK_INT(atomic_load(&seen.why), NET_END_STOP);
    CHECK(!net_stream_send(stream, STR("x")));
    net_stream_end(stream);
    net_close(kit.server);
    CHECK_INT(atomic_load(&seen.closed), 1);
    answers_release(&answers);
}

static void *send_some(void *context)
{
    for (int i = 0; i < 2000; i++)
        if (!net_stream_send(context, STR("data: a line of an event stream\n\n"))) break;
    return NULL;
}

// The client leaves while two threads send: nothing is used after it was freed.
static void streams_survive_a_client_that_leaves_in_the_middle(void)
{
    struct kit kit = {.options.handle = begin};
    pthread_t threads[2];
    kit_start(&kit);
    for (int round = 1; round <= 10; round++) {
        char bytes[1000];
        atomic_store(&seen.stream, NULL);
        int fd = kit_connect(&kit);
        kit_send(fd, STR(GET("/events")));
        struct net_stream *stream = await_stream();
        for (int i = 0; i < 2; i++) CHECK_INT(pthread_create(&threads[i], NULL, send_some, stream), 0);
        CHECK(kit_read(fd, bytes, sizeof(bytes)) > 0);
        close(fd);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        net_stream_end(stream);
        kit_await(&seen.closed, round);
    }
    kit_stop(&kit);
    CHECK_INT(atomic_load(&seen.closed), 10);
}

// ---- TLS

static void write_pem(const char *path, EVP_PKEY *key, X509 *certificate)
{
    FILE *file = fopen(path, "we");
    CHECK(file);
    CHECK_INT(key ? PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) : PEM_write_X509(file, certificate), 1);
    CHECK_INT(fclose(file), 0);
}

// A self-signed certificate for localhost with this serial number.
static void make_certificate(const char *certificate_path, const char *key_path, long serial)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    CHECK(key && certificate);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
    write_pem(key_path, key, NULL);
    write_pem(certificate_path, NULL, certificate);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

struct tls_client {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

static bool tls_connect(struct tls_client *client, struct kit *kit, int version, const char *protocol)
{
    client->context = SSL_CTX_new(TLS_client_method());
    CHECK(client->context);
    SSL_CTX_set_security_level(client->context, 0);
    SSL_CTX_set_min_proto_version(client->context, version);
    SSL_CTX_set_max_proto_version(client->context, version);
    client->ssl = SSL_new(client->context);
    client->fd = kit_connect(kit);
    CHECK_INT(SSL_set_fd(client->ssl, client->fd), 1);
    if (protocol) SSL_set_alpn_protos(client->ssl, (const unsigned char *)protocol, (unsigned)strlen(protocol));
    return SSL_connect(client->ssl) == 1;
}

static void tls_close(struct tls_client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->fd);
}

static void tls_get(struct tls_client *client, const char *path, struct buf *out)
{
    char text[200];
    int len = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    CHECK_INT(SSL_write(client->ssl, text, len), len);
    buf_clear(out);
    for (int count; (count = SSL_read(client->ssl, text, sizeof(text))) > 0;)
        buf_add(out, (struct str){text, (size_t)count});
    CHECK_INT(SSL_get_shutdown(client->ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
}

static void answer_tls(void *context, struct net_exchange *x)
{
    static char large[300000];
    (void)context;
    memset(large, 'y', sizeof(large));
    if (str_is(net_request(x)->path, "/large"))
        net_reply(x, 200, NULL, 0, (struct str){large, sizeof(large)});
    else
        net_reply(x, 200, NULL, 0, STR("secret"));
}

struct tls_kit {
    struct kit kit;
    char certificate[256], key[256];
};

static void tls_start(struct tls_kit *tls)
{
    snprintf(tls->certificate, sizeof(tls->certificate), "%s/cert.pem", test_dir());
    snprintf(tls->key, sizeof(tls->key), "%s/key.pem", test_dir());
    make_certificate(tls->certificate, tls->key, 7);
    tls->kit.options =
        (struct net_options){.handle = answer_tls, .tls_certificate = tls->certificate, .tls_key = tls->key};
    kit_start(&tls->kit);
}

static void tls_carries_small_and_large_answers(void)
{
    struct tls_kit tls = {0};
    struct tls_client client;
    struct buf out;
    tls_start(&tls);
    buf_init(&out, 1 << 20);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        CHECK(tls_connect(&client, &tls.kit, version, "\x08http/1.1"));
        tls_get(&client, "/", &out);
        CHECK(str_ends(buf_str(&out), STR("\r\n\r\nsecret")));
        tls_close(&client);
        CHECK(tls_connect(&client, &tls.kit, version, NULL));
        tls_get(&client, "/large", &out);
        CHECK(out.len > 300000 && str_ends(buf_str(&out), STR("yyyy")));
        tls_close(&client);
    }
    buf_release(&out);
    kit_stop(&tls.kit);
}

static void tls_refuses_old_versions_and_other_protocols(void)
{
    struct tls_kit tls = {0};
    struct tls_client client;
    struct net_stats stats = {0};
    tls_start(&tls);
    CHECK(!tls_connect(&client, &tls.kit, TLS1_1_VERSION, NULL));
    tls_close(&client);
    CHECK(!tls_connect(&client, &tls.kit, TLS1_3_VERSION, "\x02h2"));
    tls_close(&client);
    // Plain HTTP at the door of TLS is no request.
    int fd = kit_connect(&tls.kit);
    char bytes[1000];
    kit_send(fd, STR(GET("/")));
    size_t count = kit_read(fd, bytes, sizeof(bytes));
    CHECK(count < 4 || memcmp(bytes, "HTTP", 4) != 0);
    close(fd);
    for (int i = 0; i < KIT_WAIT_MS && stats.handshakes_failed < 3; i++) {
        usleep(1000);
        net_stats(tls.kit.server, &stats);
    }
    CHECK_INT(stats.handshakes_failed, 3);
    CHECK_INT(stats.requests, 0);
    kit_stop(&tls.kit);
}

static long serial_seen(struct kit *kit)
{
    struct tls_client client;
    CHECK(tls_connect(&client, kit, TLS1_3_VERSION, NULL));
    X509 *certificate = SSL_get1_peer_certificate(client.ssl);
    long serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate));
    X509_free(certificate);
    tls_close(&client);
    return serial;
}

static void certificates_are_read_again_and_a_bad_one_changes_nothing(void)
{
    struct tls_kit tls = {0};
    struct tls_client before;
    struct error err = {0};
    struct buf out;
    tls_start(&tls);
    buf_init(&out, 1 << 16);
    CHECK_INT(serial_seen(&tls.kit), 7);
    CHECK(tls_connect(&before, &tls.kit, TLS1_3_VERSION, NULL));
    make_certificate(tls.certificate, tls.key, 8);
    CHECK_INT(serial_seen(&tls.kit), 7);
    CHECK_OK(net_reload_tls(tls.kit.server, &err), &err);
    CHECK_INT(serial_seen(&tls.kit), 8);
    test_write_file(tls.key, STR("nonsense"));
    CHECK_INT(net_reload_tls(tls.kit.server, &err), E_INVALID);
    CHECK_INT(serial_seen(&tls.kit), 8);
    tls_get(&before, "/", &out);
    CHECK(str_ends(buf_str(&out), STR("secret")));
    tls_close(&before);
    buf_release(&out);
    kit_stop(&tls.kit);
    struct net_server *server;
    err = (struct error){0};
    CHECK_INT(net_open(&tls.kit.options, &server, &err), E_INVALID);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(streams_send_from_any_thread_and_leave_the_connection_usable),
        TEST(old_clients_read_until_the_end),
        TEST(streams_of_slow_readers_are_cut_at_their_cap),
        TEST(a_stream_that_is_cut_off_leaves_nothing_to_read),
        TEST(owners_learn_that_the_client_has_gone),
        TEST(stopping_ends_streams_properly),
        TEST(streams_survive_a_client_that_leaves_in_the_middle),
        TEST(tls_carries_small_and_large_answers),
        TEST(tls_refuses_old_versions_and_other_protocols),
        TEST(certificates_are_read_again_and_a_bad_one_changes_nothing),
    };
    return test_main("net_stream", tests, ARRAY_COUNT(tests), argc, argv);
}
