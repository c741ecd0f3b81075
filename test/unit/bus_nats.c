// NATS JetStream: the real server, killed, wiped and locked, and one of our own that answers as no good server would.
#include "unit/support/fetch_kit.h"
#include "unit/support/nats_kit.h"

#define SINK(more)                                                                                                     \
    "[{\"name\":\"nats\",\"type\":\"nats\",\"url\":\"nats://127.0.0.1:@PORT@\",\"backoffMs\":2,\"backoffMaxMs\":5,"    \
    "\"probeMaxMs\":20,\"cursorMs\":5" more "}]"
#define LAZY_SINK "[{\"name\":\"nats\",\"type\":\"nats\",\"url\":\"nats://127.0.0.1:@PORT@\",\"cursorMs\":60000}]"
#define PLAIN "{\"verbose\":false,\"headers\":true,\"no_responders\":true}"

static struct nats_server server;

#define SAYS(kit, word)                                                                                                \
    (strstr(bus_kit_text(kit, "lastError").ptr ? bus_kit_text(kit, "lastError").ptr : "", word) != NULL)

static bool delivered(struct bus_kit *kit, uint64_t count)
{
    return bus_kit_cursor(kit, "nats")->delivered == count;
}

static uint64_t known(struct bus_kit *kit)
{
    return (uint64_t)bus_kit_number(kit, "delivered");
}

static void begin(struct bus_kit *kit, const char *settings)
{
    bus_kit_init(kit);
    nats_start(&server, "");
    nats_hello(&server, PLAIN);
    nats_stream(&server, "CAIRN", settings);
}

// ---- the real one

static void two_thousand_events_survive_a_killed_server_in_order_and_once_ES_4b_I31_I32(void)
{
    enum { RUNS = 20, EVENTS = 100 };
    struct bus_kit kit;
    begin(&kit, "");
    bus_kit_open(&kit, SINK(""), server.port);
    bus_kit_bulk(&kit, RUNS, 0, EVENTS / 2);
    BUS_WAIT(known(&kit) > 0);
    nats_kill(&server); // in the middle
    bus_kit_bulk(&kit, RUNS, EVENTS / 2, EVENTS);
    CHECK(known(&kit) < RUNS * EVENTS);
    BUS_WAIT(str_is(bus_kit_text(&kit, "circuit"), "open"));
    nats_start(&server, "");
    nats_hello(&server, PLAIN);
    BUS_WAIT(delivered(&kit, RUNS * EVENTS));
    CHECK_INT(nats_count(&server, "CAIRN"), RUNS * EVENTS);
    CHECK_INT(bus_kit_reports(&kit), 0);
    int last[RUNS] = {0};
    struct arena arena;
    arena_init(&arena, 64 * 1024, SIZE_MAX);
    for (int i = 1; i <= RUNS * EVENTS; i++) {
        struct nats_message message;
        char id[64];
        arena_reset(&arena);
        nats_get(&server, "CAIRN", i, &arena, &message);
        struct str run = json_text(json_key(&message.record, "runId"));
        int64_t seq = json_integer(json_key(&message.record, "runSeq"), 0);
        int number = atoi(run.ptr + 1);
        CHECK(number >= 0 && number < RUNS);
        CHECK_INT(seq, ++last[number]);
        snprintf(id, sizeof(id), "%.*s:%lld", STR_ARG(run), (long long)seq);
        CHECK(nats_has(&message, "Nats-Msg-Id", id));
    }
    arena_release(&arena);
    bus_kit_close(&kit);
    nats_kill(&server);
}

static void a_message_has_its_subject_and_its_headers(void)
{
    struct bus_kit kit;
    struct nats_message message;
    begin(&kit, "");
    bus_kit_open(&kit, SINK(",\"format\":\"cloudevents\",\"stream\":\"CAIRN\""), server.port);
    bus_kit_run(&kit, "a.b c", "r1", 1); // a tenant cannot make tokens, nor a run of another tenant the same id
    BUS_WAIT(delivered(&kit, 3));
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(delivered(&kit, 6));
    nats_get(&server, "CAIRN", 2, &kit.store.arena, &message);
    CHECK_TEXT(message.subject, "cairn.events.a%2Eb%20c.StepStarted");
    CHECK(nats_has(&message, "Nats-Msg-Id", "a.b c/r1:2"));
    CHECK(nats_has(&message, "execution_id", "r1") && nats_has(&message, "run_id", "r1"));
    CHECK(nats_has(&message, "run_seq", "2") && nats_has(&message, "tenant_id", "a.b c"));
    CHECK(nats_has(&message, "content-type", "application/json"));
    CHECK(nats_has(&message, "ce-type", "cairn.run.StepStarted.v1") && nats_has(&message, "ce-subject", "s0"));
    CHECK(strstr(message.head, "\r\ntraceparent: 00-") && strstr(message.head, "\r\nidempotency_key: "));
    char id[64];
    snprintf(id, sizeof(id), "%.*s", STR_ARG(json_text(json_key(&message.record, "eventId"))));
    CHECK(nats_has(&message, "event_id", id) && nats_has(&message, "ce-id", id));
    nats_get(&server, "CAIRN", 5, &kit.store.arena, &message);
    CHECK_TEXT(message.subject, "cairn.events.default.StepStarted");
    CHECK(nats_has(&message, "Nats-Msg-Id", "r1:2"));
    bus_kit_close(&kit);
    nats_kill(&server);
}

static void playbooks_have_the_subjects_of_their_own_contract_NX_6_2a(void)
{
    struct arena arena;
    arena_init(&arena, 4096, SIZE_MAX);
    struct message message = {.vocabulary = VOCABULARY_NOETL,
                              .type = STR("task.attempt.failed"),
                              .tenant = STR("acme"),
                              .run = STR("r>1"),
                              .seq = 7,
                              .project = STR("p*")};
    struct str none = {0};
    CHECK_STR(message_subject(none, &message, &arena), STR("noetl.events.task.attempt.failed"));
    message.vocabulary = VOCABULARY_NODES;
    message.type = STR("node_started");
    CHECK_STR(message_subject(none, &message, &arena), STR("cairn.events.acme.node_started"));
    CHECK_STR(message_subject(STR("x.{run}.{seq}.{project}.{step}.{vocabulary}.{what"), &message, &arena),
              STR("x.r%3E1.7.p%2A._.nodes."));
    arena_release(&arena);
}

static void playbooks_are_found_by_type_and_execution_NX_6_2a_NX_6_2b_NX_6_2c(void)
{
    struct bus_kit kit;
    struct nats_message message;
    begin(&kit, "");
    bus_kit_open(&kit, SINK(",\"stream\":\"CAIRN\""), server.port);
    pthread_mutex_lock(&kit.mutex);
    struct run_log *log = kit_create(&kit.store, "exec-1", VOCABULARY_NOETL);
    struct start_facts start = kit_start_facts();
    struct moment request = kit_moment(MOMENT_RUN_REQUESTED, "", 1);
    request.start = &start;
    kit_append(&kit.store, log, request);
    struct moment failed = kit_moment(MOMENT_ATTEMPT_FAILED, "fetch", 2);
    failed.visit = failed.task_run = 1;
    failed.task = STR("page");
    failed.fault = (struct fault){.code = STR("HTTP_503"), .message = STR("503")};
    kit_append(&kit.store, log, failed);
    // A large result is a reference on the wire too.
    struct moment done = kit_moment(MOMENT_TASK_DONE, "fetch", 1);
    done.visit = done.task_run = 1;
    done.task = STR("page");
    done.has_blob = true;
    done.blob = sha256(STR("large"));
    done.blob_size = 1 << 20;
    kit_append(&kit.store, log, done);
    store_release_run(kit.store.store, log);
    pthread_mutex_unlock(&kit.mutex);
    bus_moved(kit.bus);
    BUS_WAIT(delivered(&kit, 3));
    nats_get(&server, "CAIRN", 2, &kit.store.arena, &message);
    CHECK_TEXT(message.subject, "noetl.events.task.attempt.failed");
    CHECK(nats_has(&message, "execution_id", "exec-1") && nats_has(&message, "tenant_id", "default"));
    CHECK_STR(json_text(json_key(&message.record, "event_type")), STR("task.attempt.failed"));
    nats_get(&server, "CAIRN", 3, &kit.store.arena, &message);
    CHECK_TEXT(message.subject, "noetl.events.task.done");
    CHECK_STR(json_text(json_at(&message.record, STR("payload.result_ref.kind"))), STR("result_ref"));
    CHECK(!json_at(&message.record, STR("payload.outcome.result")));
    bus_kit_close(&kit);
    nats_kill(&server);
}

static void what_is_sent_again_is_a_duplicate_to_the_server_ES_4g(void)
{
    struct bus_kit kit;
    begin(&kit, "");
    bus_kit_open(&kit, LAZY_SINK, server.port);
    BUS_WAIT(bus_kit_cursor(&kit, "nats")->version == 1);
    pthread_mutex_lock(&kit.mutex);
    kit.lose_puts = true; // the process dies before it has recorded anything
    pthread_mutex_unlock(&kit.mutex);
    bus_kit_run(&kit, "default", "r1", 8);
    BUS_WAIT(nats_count(&server, "CAIRN") == 10);
    bus_kit_stop(&kit);
    kit.lose_puts = false;
    bus_kit_open(&kit, SINK(""), server.port);
    BUS_WAIT(delivered(&kit, 10));
    CHECK_INT(bus_kit_cursor(&kit, "nats")->duplicates, 10);
    CHECK_INT(nats_count(&server, "CAIRN"), 10);
    bus_kit_close(&kit);
    nats_kill(&server);
}

static void a_stream_with_one_message_a_subject_has_it_already(void)
{
    struct bus_kit kit;
    begin(&kit, ",\"max_msgs_per_subject\":1,\"discard\":\"new\",\"discard_new_per_subject\":true,\"duplicate_window\":"
                "100000000");
    bus_kit_open(&kit, SINK(",\"subject\":\"cairn.events.{run}.{seq}\""), server.port);
    bus_kit_run(&kit, "default", "r1", 3);
    BUS_WAIT(delivered(&kit, 5));
    for (int i = 0; i < 100; i++) bus_kit_nap(); // out of the window of duplicates
    struct error err = {0};
    CHECK_OK(bus_rewind(kit.bus, kit.store.store, STR("nats"), &(struct bus_place){0}, NULL, NULL, &err), &err);
    BUS_WAIT(delivered(&kit, 10));
    CHECK_INT(bus_kit_cursor(&kit, "nats")->duplicates, 5);
    CHECK_INT(nats_count(&server, "CAIRN"), 5);
    bus_kit_close(&kit);
    nats_kill(&server);
}

static void a_server_that_lost_everything_is_filled_again_I31(void)
{
    struct bus_kit kit;
    char text[700];
    begin(&kit, "");
    bus_kit_open(&kit, SINK(",\"stream\":\"CAIRN\""), server.port);
    bus_kit_run(&kit, "default", "r1", 8);
    BUS_WAIT(delivered(&kit, 10));
    // The stream says when it was made; the sink hears it when it connects.
    bus_kit_stop(&kit);
    bus_kit_open(&kit, SINK(",\"stream\":\"CAIRN\""), server.port);
    bus_kit_run(&kit, "default", "r2", 8);
    BUS_WAIT(delivered(&kit, 20) && bus_kit_cursor(&kit, "nats")->created[0]);
    nats_kill(&server);
    snprintf(text, sizeof(text), "rm -rf %s", server.dir);
    CHECK(system(text) == 0);
    nats_start(&server, "");
    nats_hello(&server, PLAIN);
    nats_stream(&server, "CAIRN", "");
    bus_kit_run(&kit, "default", "r3", 1); // the next event finds the loss
    BUS_WAIT(nats_count(&server, "CAIRN") == 23);
    bus_kit_close(&kit);
    nats_kill(&server);
}

static void a_sink_says_who_it_is(void)
{
    static const struct {
        const char *server, *sink, *connect;
    } ways[] = {
        {"authorization { user: me, password: open }",
         SINK(",\"user\":{\"env\":\"NATS_USER\"},\"password\":{\"env\":\"NATS_PASSWORD\"}"),
         "{\"user\":\"me\",\"pass\":\"open\",\"headers\":true,\"no_responders\":true}"},
        {"authorization { token: open }", SINK(",\"token\":{\"env\":\"NATS_PASSWORD\"}"),
         "{\"auth_token\":\"open\",\"headers\":true,\"no_responders\":true}"},
        {"authorization { users = [ {nkey: UB43KVROR7TFJ6KAPCYRF2FJROTZAH4FHLTJLPWX4DRZCC5NASLGJBFE},"
         " {user: me, password: open} ] }",
         SINK(",\"credentials\":{\"env\":\"NATS_SEED\"}"),
         "{\"user\":\"me\",\"pass\":\"open\",\"headers\":true,\"no_responders\":true}"},
    };
    setenv("NATS_USER", "me", 1);
    setenv("NATS_SEED", "SUAACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6IC5CQ", 1);
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        struct bus_kit kit;
        char text[600];
        setenv("NATS_PASSWORD", "open", 1);
        bus_kit_init(&kit);
        nats_start(&server, ways[i].server);
        nats_hello(&server, ways[i].connect);
        nats_stream(&server, "CAIRN", "");
        bus_kit_run(&kit, "default", "r1", 1);
        bus_kit_open(&kit, SINK(""), server.port); // nobody in particular
        BUS_WAIT(
            strstr(bus_kit_text(&kit, "lastError").ptr ? bus_kit_text(&kit, "lastError").ptr : "", "Authorization"));
        bus_kit_stop(&kit);
        bus_kit_open(&kit, ways[i].sink, server.port);
        BUS_WAIT(delivered(&kit, 3));
        bus_kit_close(&kit);
        nats_kill(&server);
        snprintf(text, sizeof(text), "rm -rf %s/*", test_dir());
        CHECK(system(text) == 0);
    }
}

static void the_way_to_the_server_may_be_tls_and_is_verified(void)
{
    struct bus_kit kit;
    struct authority authority = {0};
    char text[1600], config[1600];
    authority_make(&authority);
    snprintf(text, sizeof(text), "%s/ca.pem", test_dir());
    CHECK(rename(authority.file, text) == 0);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *leaf = certificate(key, "127.0.0.1", authority.certificate, authority.key, -1, 30, EVP_sha256());
    snprintf(text, sizeof(text), "%s/server.pem", test_dir());
    FILE *file = fopen(text, "w");
    CHECK(file && PEM_write_X509(file, leaf) && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
    bus_kit_init(&kit);
    nats_start(&server, "");
    nats_hello(&server, PLAIN);
    nats_stream(&server, "CAIRN", "");
    nats_kill(&server);
    snprintf(config, sizeof(config), "tls { cert_file: \"%s/server.pem\", key_file: \"%s/server.pem\" }", test_dir(),
             test_dir());
    nats_start(&server, config);
    bus_kit_run(&kit, "default", "r1", 1);
    bus_kit_open(&kit, SINK(""), server.port); // the system does not know this authority
    BUS_WAIT(SAYS(&kit, "certificate"));
    bus_kit_stop(&kit);
    bus_kit_open(&kit, SINK(",\"caFile\":\"@DIR@/ca.pem\""), server.port);
    BUS_WAIT(delivered(&kit, 3));
    bus_kit_close(&kit);
    server.fd = -1;
    nats_kill(&server);
    X509_free(leaf);
    EVP_PKEY_free(key);
}

// ---- one of our own

static struct fake {
    struct server server;
    pthread_mutex_t mutex;
    const char *info;
    const char *reply; // to each message; NULL: none
    const char *line;  // instead: a line of the protocol
    int bad;           // so many messages are answered with the above, then all are stored
    int hold;          // nobody is answered
    int connections, published;
    int per[64]; // messages of each connection
    int greedy;  // more in flight than one and as many again as were answered, on a connection that is not the first
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define INFO "INFO {\"server_id\":\"x\",\"headers\":true,\"max_payload\":1048576}\r\n"

static void fake_answer(struct peer *peer, const char reply_to[128])
{
    char text[1024], body[256];
    pthread_mutex_lock(&fake.mutex);
    bool bad = fake.bad > 0;
    if (bad) fake.bad--;
    const char *reply = fake.reply, *line = fake.line;
    snprintf(body, sizeof(body), "%s", "{\"stream\":\"S\",\"seq\":1}");
    if (bad && reply) snprintf(body, sizeof(body), "%s", reply);
    pthread_mutex_unlock(&fake.mutex);
    if (bad && !reply && !line) return;
    if (bad && line)
        snprintf(text, sizeof(text), "%s", line);
    else if (strncmp(body, "NATS", 4) == 0)
        snprintf(text, sizeof(text), "HMSG %.127s 1 %zu %zu\r\n%s\r\n", reply_to, strlen(body), strlen(body), body);
    else
        snprintf(text, sizeof(text), "MSG %.127s 1 %zu\r\n%s\r\n", reply_to, strlen(body), body);
    peer_say(peer, text);
}

// Takes one HPUB off the buffer. False: not whole.
static bool fake_take(struct peer *peer, char reply_to[128])
{
    char subject[128];
    size_t head, total;
    char *end = strstr(peer->text, "\r\n");
    if (!end) return false;
    size_t used = (size_t)(end + 2 - peer->text);
    if (sscanf(peer->text, "HPUB %127s %127s %zu %zu", subject, reply_to, &head, &total) == 4) {
        used += total + 2;
        if (peer->len < used) return false;
        pthread_mutex_lock(&fake.mutex);
        fake.published++;
        pthread_mutex_unlock(&fake.mutex);
    } else {
        if (strncmp(peer->text, "PING", 4) == 0) peer_say(peer, "PONG\r\n");
        reply_to[0] = '\0';
    }
    memmove(peer->text, peer->text + used, peer->len - used + 1);
    peer->len -= used;
    return true;
}

static void fake_talk(struct peer *peer)
{
    int answered = 0;
    pthread_mutex_lock(&fake.mutex);
    int connection = fake.connections++;
    const char *info = fake.info;
    pthread_mutex_unlock(&fake.mutex);
    peer_say(peer, info ? info : INFO);
    for (;;) {
        char reply_to[128];
        while (fake_take(peer, reply_to)) {
            if (!reply_to[0]) continue;
            pthread_mutex_lock(&fake.mutex);
            int sent = ++fake.per[connection % 64], hold = fake.hold;
            fake.greedy += connection > 0 && sent > 1 + 2 * answered;
            pthread_mutex_unlock(&fake.mutex);
            if (hold) continue;
            answered++;
            fake_answer(peer, reply_to);
        }
        ssize_t got = peer_read(peer, peer->text + peer->len, sizeof(peer->text) - 1 - peer->len);
        if (got <= 0) return;
        peer->len += (size_t)got;
        peer->text[peer->len] = '\0';
    }
}

static void begin_fake(struct bus_kit *kit, const char *reply, const char *line, int bad)
{
    bus_kit_init(kit);
    pthread_mutex_lock(&fake.mutex);
    fake.info = NULL;
    fake.reply = reply;
    fake.line = line;
    fake.bad = bad;
    fake.connections = fake.published = fake.hold = 0;
    memset(fake.per, 0, sizeof(fake.per));
    pthread_mutex_unlock(&fake.mutex);
    if (!fake.server.port) server_start(&fake.server, fake_talk);
}

static int fake_number(const int *number)
{
    pthread_mutex_lock(&fake.mutex);
    int copy = *number;
    pthread_mutex_unlock(&fake.mutex);
    return copy;
}

static void clean(struct bus_kit *kit)
{
    char text[600];
    bus_kit_close(kit);
    snprintf(text, sizeof(text), "rm -rf %s/*", test_dir());
    CHECK(system(text) == 0);
}

static void answers_that_are_not_about_the_message_cost_no_attempts_ES_4c(void)
{
    static const struct {
        const char *reply, *line;
    } ways[] = {
        {"NATS/1.0 503\r\n\r\n", NULL}, // no responders
        {"{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"JetStream system temporarily unavailable\"}}",
         NULL},
        {"what?", NULL},
        {NULL, "-ERR 'Stale Connection'\r\n"},
        {NULL, "nonsense\r\n"},
        {NULL, NULL}, // nothing at all
    };
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        struct bus_kit kit;
        begin_fake(&kit, ways[i].reply, ways[i].line, 4);
        bus_kit_open(&kit, SINK(",\"maxAttempts\":2,\"timeoutMs\":100"), fake.server.port);
        bus_kit_run(&kit, "default", "r1", 1);
        BUS_WAIT(delivered(&kit, 3));
        CHECK_INT(bus_kit_reports(&kit), 0);
        CHECK(fake_number(&fake.connections) >= 5); // each time anew
        clean(&kit);
    }
}

static void answers_about_the_message_count_ES_4e(void)
{
    static const struct {
        const char *reply, *line;
        uint32_t attempts;
    } ways[] = {
        {"{\"error\":{\"code\":400,\"err_code\":10054,\"description\":\"message size exceeds maximum allowed\"}}", NULL,
         1},
        {"{\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last sequence\"}}", NULL, 3},
        {NULL, "-ERR 'Permissions Violation for Publish to \"cairn.events.default.RunStarted\"'\r\n", 3},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        struct bus_kit kit;
        begin_fake(&kit, ways[i].reply, ways[i].line, (int)ways[i].attempts);
        bus_kit_open(&kit, SINK(",\"maxAttempts\":3"), fake.server.port);
        bus_kit_run(&kit, "default", "r1", 1);
        BUS_WAIT(bus_kit_reports(&kit) == 1 && delivered(&kit, 2));
        CHECK_INT(kit.report[0].attempts, ways[i].attempts);
        CHECK_INT(fake_number(&fake.connections), 1);
        clean(&kit);
    }
}

static void what_is_larger_than_the_server_takes_is_not_sent(void)
{
    struct bus_kit kit;
    begin_fake(&kit, NULL, NULL, 0);
    fake.info = "INFO {\"server_id\":\"x\",\"headers\":true,\"max_payload\":500}\r\n";
    bus_kit_open(&kit, SINK(""), fake.server.port);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(bus_kit_reports(&kit) == 3);
    CHECK_INT(fake_number(&fake.published), 0);
    bus_kit_close(&kit);
}

// A server ends the connection over a line that is too long, and what stands behind it would wait for ever.
static void a_subject_that_no_server_takes_holds_nothing_up(void)
{
    struct bus_kit kit;
    char settings[4600], tail[4000];
    memset(tail, 'x', sizeof(tail) - 1);
    tail[sizeof(tail) - 1] = '\0';
    snprintf(settings, sizeof(settings), SINK(",\"subject\":\"s.{type}.{tenant}.%s\""), tail);
    begin_fake(&kit, NULL, NULL, 0);
    bus_kit_open(&kit, settings, fake.server.port);
    bus_kit_run(&kit, "acme", "r1", 1);
    BUS_WAIT(bus_kit_reports(&kit) == 3);
    CHECK_INT(fake_number(&fake.published), 0);
    bus_kit_close(&kit);
}

// Connections behind the first on which so many messages came. On a slow machine a connection may end before it carries one.
static int fake_carried(int messages)
{
    int count = 0;
    pthread_mutex_lock(&fake.mutex);
    for (size_t i = 1; i < ARRAY_COUNT(fake.per); i++) count += fake.per[i] == messages;
    pthread_mutex_unlock(&fake.mutex);
    return count;
}

static void a_server_that_comes_back_is_met_with_one_message_then_two_then_four_ES_4i(void)
{
    struct bus_kit kit;
    begin_fake(&kit, NULL, NULL, 0);
    fake.hold = 1;
    bus_kit_bulk(&kit, 50, 0, 4);
    bus_kit_open(&kit, SINK(",\"timeoutMs\":500"), fake.server.port);
    BUS_WAIT(fake_carried(1) >= 2);
    CHECK_INT(fake_number(&fake.per[0]), 50); // one of each run at once: there was no reason to be careful
    CHECK_INT(fake_carried(0) + fake_carried(1), (int)ARRAY_COUNT(fake.per) - 1);
    pthread_mutex_lock(&fake.mutex);
    fake.hold = 0;
    pthread_mutex_unlock(&fake.mutex);
    BUS_WAIT(delivered(&kit, 200));
    CHECK_INT(fake_number(&fake.greedy), 0);
    CHECK_INT(bus_kit_reports(&kit), 0);
    bus_kit_close(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(two_thousand_events_survive_a_killed_server_in_order_and_once_ES_4b_I31_I32),
        TEST(a_message_has_its_subject_and_its_headers),
        TEST(playbooks_have_the_subjects_of_their_own_contract_NX_6_2a),
        TEST(playbooks_are_found_by_type_and_execution_NX_6_2a_NX_6_2b_NX_6_2c),
        TEST(what_is_sent_again_is_a_duplicate_to_the_server_ES_4g),
        TEST(a_stream_with_one_message_a_subject_has_it_already),
        TEST(a_server_that_lost_everything_is_filled_again_I31),
        TEST(a_sink_says_who_it_is),
        TEST(the_way_to_the_server_may_be_tls_and_is_verified),
        TEST(answers_that_are_not_about_the_message_cost_no_attempts_ES_4c),
        TEST(answers_about_the_message_count_ES_4e),
        TEST(what_is_larger_than_the_server_takes_is_not_sent),
        TEST(a_subject_that_no_server_takes_holds_nothing_up),
        TEST(a_server_that_comes_back_is_met_with_one_message_then_two_then_four_ES_4i),
    };
    return test_main("bus_nats", tests, ARRAY_COUNT(tests), argc, argv);
}
