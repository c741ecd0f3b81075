// Webhooks against a receiver that refuses, hangs, breaks off and comes back; and what becomes of events that it never takes.
#include "unit/support/bus_kit.h"
#include "unit/support/fetch_kit.h"

#include <openssl/hmac.h>

#define SINK(more)                                                                                                     \
    "[{\"name\":\"hook\",\"type\":\"webhook\",\"url\":\"http://127.0.0.1:@PORT@/"                                      \
    "in\",\"backoffMs\":1,\"backoffMaxMs\":5,"                                                                         \
    "\"probeMaxMs\":5,\"cursorMs\":1" more "}]"
#define SLOW_SINK                                                                                                      \
    "[{\"name\":\"hook\",\"type\":\"webhook\",\"url\":\"http://127.0.0.1:@PORT@/in\",\"backoffMs\":40,"                \
    "\"backoffMaxMs\":40,\"cursorMs\":1}]"
enum { SEEN_MAX = 1000, HANG = -1, BREAK_OFF = -2 };

struct seen {
    char run[64], id[128], missing[24];
    int seq, status;
};

static struct receiver {
    struct server server;
    pthread_mutex_t mutex;
    const char *bad_run; // events of it with this number get bad_status; NULL: all runs
    int bad_seq;         // 0: all
    int bad_status;      // 0: nothing is bad
    int bad_times;       // so often; 0: always
    const char *header;  // of bad answers
    struct seen seen[SEEN_MAX];
    size_t count;
    char request[70000];
} receiver = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int decide(struct seen *seen)
{
    bool mine = !receiver.bad_run || strcmp(seen->run, receiver.bad_run) == 0;
    if (!receiver.bad_status || !mine || (receiver.bad_seq && seen->seq != receiver.bad_seq)) return 200;
    if (receiver.bad_times && --receiver.bad_times == 0) {
        int status = receiver.bad_status;
        receiver.bad_status = 0;
        return status;
    }
    return receiver.bad_status;
}

static void receive(struct peer *peer)
{
    while (peer_next(peer)) {
        char text[512];
        pthread_mutex_lock(&receiver.mutex);
        CHECK(receiver.count < SEEN_MAX);
        struct seen *seen = &receiver.seen[receiver.count];
        snprintf(seen->run, sizeof(seen->run), "%.*s", STR_ARG(peer_header(peer, "ce-runid")));
        snprintf(seen->id, sizeof(seen->id), "%.*s", STR_ARG(peer_header(peer, "webhook-id")));
        snprintf(seen->missing, sizeof(seen->missing), "%.*s", STR_ARG(peer_header(peer, "X-Cairn-Missing")));
        snprintf(text, sizeof(text), "%.*s", STR_ARG(peer_header(peer, "ce-runseq")));
        seen->seq = atoi(text);
        seen->status = decide(seen);
        int status = seen->status;
        snprintf(receiver.request, sizeof(receiver.request), "%s", peer->text);
        snprintf(text, sizeof(text), "HTTP/1.1 %d Said\r\nContent-Length: 0\r\n%s\r\n", status,
                 status != 200 && receiver.header ? receiver.header : "");
        receiver.count++;
        pthread_mutex_unlock(&receiver.mutex);
        if (status == HANG) sleep(600);
        if (status == BREAK_OFF) return;
        if (!peer_say(peer, text)) return;
    }
}

static void misbehave(const char *run, int seq, int status, int times)
{
    pthread_mutex_lock(&receiver.mutex);
    receiver.bad_run = run;
    receiver.bad_seq = seq;
    receiver.bad_status = status;
    receiver.bad_times = times;
    pthread_mutex_unlock(&receiver.mutex);
}

static size_t count_of(const char *run, int seq, int status)
{
    size_t count = 0;
    pthread_mutex_lock(&receiver.mutex);
    for (size_t i = 0; i < receiver.count; i++) {
        const struct seen *seen = &receiver.seen[i];
        count +=
            (!run || strcmp(seen->run, run) == 0) && (!seq || seen->seq == seq) && (!status || seen->status == status);
    }
    pthread_mutex_unlock(&receiver.mutex);
    return count;
}

static void begin(struct bus_kit *kit)
{
    bus_kit_init(kit);
    if (!receiver.server.port) server_start(&receiver.server, receive);
    pthread_mutex_lock(&receiver.mutex);
    receiver.count = 0;
    pthread_mutex_unlock(&receiver.mutex);
    kit->policy =
        policy_for(&kit->store.arena, "{\"allow\":[{\"uri\":\"http://127.0.0.1:PORT/\",\"allowPrivate\":true}]}",
                   receiver.server.port);
}

static void begin_with(struct bus_kit *kit, const char *config)
{
    begin(kit);
    bus_kit_open(kit, config, receiver.server.port);
}

static bool delivered(struct bus_kit *kit, uint64_t count)
{
    return bus_kit_cursor(kit, "hook")->delivered == count;
}

// Delivered events of a run came in order, each for the first time.
static void check_order(const char *run)
{
    int last = 0;
    for (size_t i = 0; i < receiver.count; i++) {
        if (strcmp(receiver.seen[i].run, run) != 0 || receiver.seen[i].status != 200) continue;
        CHECK_INT(receiver.seen[i].seq, last + 1);
        last = receiver.seen[i].seq;
    }
}

static void done(void *context, enum code rc, const struct error *why)
{
    (void)why;
    atomic_store((atomic_int *)context, rc == OK ? 1 : 2);
}

static size_t redrive(struct bus_kit *kit, struct dead_letter_choice which, bool drop)
{
    struct store *reader = bus_kit_reader(kit);
    struct error err = {0};
    atomic_int answer = 0;
    size_t count = 0;
    which.sink = STR("hook");
    CHECK_OK(drop ? bus_drop(kit->bus, reader, &which, done, &answer, &count, &err)
                  : bus_redrive(kit->bus, reader, &which, done, &answer, &count, &err),
             &err);
    BUS_WAIT(atomic_load(&answer));
    CHECK_INT(atomic_load(&answer), 1);
    store_close(reader);
    return count;
}

static struct json letters(struct bus_kit *kit, const char *tenant, struct arena *arena)
{
    struct store *reader = bus_kit_reader(kit);
    struct error err = {0};
    struct json page;
    struct letter_range range = {.sink = STR("hook"), .tenant = str_from(tenant), .limit = 100};
    CHECK_OK(bus_dead_letters(kit->bus, reader, &range, arena, &page, &err), &err);
    store_close(reader);
    return *json_key(&page, "items");
}

// ---- what is sent

static struct digest hmac(const char *key, const char *text)
{
    struct digest mac;
    unsigned size = sizeof(mac.b);
    CHECK(HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text, strlen(text), mac.b, &size));
    return mac;
}

// As the libraries of standardwebhooks.com do it: what is behind whsec_ is the key in base64.
static void secrets_of_standard_webhooks_are_decoded(void)
{
    struct bus_kit kit;
    struct peer peer = {0};
    char text[70000], want[200];
    unsigned char base64[64];
    setenv("HOOK_SECRET", "whsec_czNjcjN0", 1);
    begin_with(&kit, SINK(",\"secret\":{\"env\":\"HOOK_SECRET\"}"));
    bus_kit_run(&kit, "acme", "r1", 1);
    BUS_WAIT(delivered(&kit, 3));
    snprintf(peer.text, sizeof(peer.text), "%s", receiver.request);
    peer.len = strlen(peer.text);
    peer.head = (size_t)(strstr(peer.text, "\r\n\r\n") + 4 - peer.text);
    snprintf(text, sizeof(text), "acme/r1:3.%.*s.%.*s", STR_ARG(peer_header(&peer, "webhook-timestamp")),
             STR_ARG(peer_body(&peer)));
    struct digest mac = hmac("s3cr3t", text);
    EVP_EncodeBlock(base64, mac.b, SHA256_SIZE);
    snprintf(want, sizeof(want), "v1,%s", (char *)base64);
    CHECK_STR(peer_header(&peer, "webhook-signature"), str_from(want));
    bus_kit_close(&kit);
}

static void events_are_signed_cloudevents(void)
{
    struct bus_kit kit;
    setenv("HOOK_SECRET", "s3cr3t", 1);
    begin_with(&kit, SINK(",\"secret\":{\"env\":\"HOOK_SECRET\"},\"headers\":{\"X-Team\":\"red\"},\"token\":{\"env\":"
                          "\"HOOK_SECRET\"}"));
    bus_kit_run(&kit, "acme", "r1", 1);
    BUS_WAIT(delivered(&kit, 3));
    struct peer peer = {0};
    snprintf(peer.text, sizeof(peer.text), "%s", receiver.request);
    peer.len = strlen(peer.text);
    peer.head = (size_t)(strstr(peer.text, "\r\n\r\n") + 4 - peer.text);
    CHECK(strncmp(peer.text, "POST /in HTTP/1.1\r\n", 19) == 0);
    CHECK_STR(peer_header(&peer, "ce-specversion"), STR("1.0"));
    CHECK_STR(peer_header(&peer, "ce-type"), STR("cairn.run.RunCompleted.v1"));
    CHECK_STR(peer_header(&peer, "ce-source"), STR("/cairn/tenants/acme/projects/default/environments/local/runs/r1"));
    CHECK_STR(peer_header(&peer, "ce-partitionkey"), STR("r1"));
    CHECK_STR(peer_header(&peer, "Content-Type"), STR("application/json"));
    CHECK_STR(peer_header(&peer, "webhook-id"), STR("acme/r1:3"));
    CHECK_STR(peer_header(&peer, "X-Team"), STR("red"));
    CHECK_STR(peer_header(&peer, "Authorization"), STR("Bearer s3cr3t"));
    CHECK(peer_header(&peer, "traceparent").len == 55);
    CHECK(peer_header(&peer, "ce-missing").len == 0);
    struct json record;
    struct error err = {0};
    CHECK_OK(json_parse(peer_body(&peer), NULL, &kit.store.arena, &record, &err), &err);
    CHECK_STR(json_text(json_key(&record, "eventId")), peer_header(&peer, "ce-id"));
    char text[70000], hex[SHA256_HEX + 1], want[200];
    struct str time = peer_header(&peer, "webhook-timestamp");
    snprintf(text, sizeof(text), "%.*s.%.*s", STR_ARG(time), STR_ARG(peer_body(&peer)));
    struct digest mac = hmac("s3cr3t", text);
    digest_hex(&mac, hex);
    snprintf(want, sizeof(want), "t=%.*s,v1=%s", STR_ARG(time), hex);
    CHECK_STR(peer_header(&peer, "X-Cairn-Signature"), str_from(want));
    snprintf(text, sizeof(text), "acme/r1:3.%.*s.%.*s", STR_ARG(time), STR_ARG(peer_body(&peer)));
    mac = hmac("s3cr3t", text);
    unsigned char base64[64];
    EVP_EncodeBlock(base64, mac.b, SHA256_SIZE);
    snprintf(want, sizeof(want), "v1,%s", (char *)base64);
    CHECK_STR(peer_header(&peer, "webhook-signature"), str_from(want));
    bus_kit_close(&kit);
}

// ---- dead letters

static void after_n_failed_answers_an_event_is_a_dead_letter_with_an_alert_until_it_is_redriven_ES_4e_ES_4k_C_16(void)
{
    struct bus_kit kit;
    begin_with(&kit, SINK(""));
    misbehave("bad", 2, 500, 0);
    bus_kit_run(&kit, "acme", "bad", 2);
    bus_kit_run(&kit, "acme", "good", 2);
    BUS_WAIT(bus_kit_reports(&kit) == 1);
    CHECK_INT(count_of("bad", 2, 500), 10); // N
    CHECK_INT(kit.report[0].attempts, 10);
    CHECK_TEXT(kit.report[0].run, "bad");
    CHECK_INT(kit.report[0].seq, 2);
    CHECK_TEXT(kit.report[0].why, "the receiver answered 500");
    BUS_WAIT(delivered(&kit, 7)); // everything else, in order, told what is missing
    CHECK_INT(count_of("good", 0, 200), 4);
    for (size_t i = 0; i < receiver.count; i++)
        CHECK_TEXT(receiver.seen[i].missing,
                   strcmp(receiver.seen[i].run, "bad") == 0 && receiver.seen[i].seq > 2 ? "2" : "");
    struct json items = letters(&kit, "acme", &kit.store.arena);
    CHECK_INT(items.count, 1);
    CHECK_STR(json_text(json_key(&items.items[0], "class")), STR("REFUSED"));
    CHECK_INT(json_integer(json_key(&items.items[0], "attempts"), 0), 10);
    CHECK_INT(letters(&kit, "other", &kit.store.arena).count, 0);
    BUS_WAIT(bus_kit_number(&kit, "deadLetters") == 1);

    struct alerts alerts;
    CHECK(alerts_init(&alerts, &kit.store.arena, 8));
    alerts_undelivered(&alerts,
                       &(struct sink_report){.sink = STR("hook"), .tenant = STR("acme"), .run = STR("bad"), .seq = 2});
    CHECK_INT(alerts.items[0].name, ALERT_EVENT_BUS_DELIVERY_FAILED);
    CHECK_INT(alerts.items[0].priority, 1);

    CHECK_INT(redrive(&kit, (struct dead_letter_choice){.run = STR("bad")}, false), 1); // still bad: ten more
    BUS_WAIT(bus_kit_reports(&kit) == 2);
    CHECK_INT(count_of("bad", 2, 500), 20);
    CHECK_INT(bus_kit_letters(&kit), 1);
    CHECK_INT(bus_kit_cleared(&kit), 0);
    misbehave(NULL, 0, 0, 0);
    struct str id = json_text(json_key(&items.items[0], "id"));
    CHECK_INT(redrive(&kit, (struct dead_letter_choice){.id = id, .tenant = STR("acme")}, false), 1);
    BUS_WAIT(bus_kit_cleared(&kit) == 1);
    CHECK_INT(count_of("bad", 2, 200), 1);
    CHECK_INT(bus_kit_letters(&kit), 0);
    BUS_WAIT(bus_kit_number(&kit, "deadLetters") == 0);
    bus_kit_close(&kit);
}

static void failures_raise_a_stored_count_and_success_moves_the_cursor_ES_4j(void)
{
    struct bus_kit kit;
    begin_with(&kit, SLOW_SINK);
    misbehave("r1", 1, 500, 0);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(bus_kit_cursor(&kit, "hook")->retry_count == 1 && bus_kit_cursor(&kit, "hook")->retries[0].attempts >= 3);
    CHECK_INT(bus_kit_cursor(&kit, "hook")->position, 0);
    bus_kit_stop(&kit); // a restart forgives nothing
    uint32_t before = bus_kit_cursor(&kit, "hook")->retries[0].attempts;
    size_t calls = count_of("r1", 1, 500);
    CHECK_INT(before, calls);
    bus_kit_open(&kit, SLOW_SINK, receiver.server.port);
    BUS_WAIT(bus_kit_reports(&kit) == 1);
    CHECK_INT(count_of("r1", 1, 500), 10);
    BUS_WAIT(delivered(&kit, 2));
    uint64_t end = 0;
    CHECK_OK(store_feed_end(kit.store.store, &end, &kit.store.err), &kit.store.err);
    CHECK_INT(bus_kit_cursor(&kit, "hook")->position, end);
    CHECK_INT(bus_kit_cursor(&kit, "hook")->retry_count, 0);
    bus_kit_close(&kit);
}

static void a_letter_and_the_move_past_it_are_stored_together_ES_4f(void)
{
    struct bus_kit kit;
    begin(&kit);
    misbehave("r1", 2, 400, 0);
    kit.refuse_puts = 3; // the first puts store nothing
    bus_kit_open(&kit, SINK(""), receiver.server.port);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(bus_kit_reports(&kit) == 1);
    BUS_WAIT(bus_kit_cursor(&kit, "hook")->position >= 3);
    CHECK_INT(bus_kit_letters(&kit), 1);
    CHECK_INT(bus_kit_reports(&kit), 1); // and is told once, when it is so
    pthread_mutex_lock(&kit.mutex);
    CHECK_INT(kit.lone_letters, 0); // never the one without the other, whichever put it was
    pthread_mutex_unlock(&kit.mutex);
    CHECK(count_of("r1", 2, 400) >= 1);
    bus_kit_stop(&kit);
    bus_kit_open(&kit, SINK(""), receiver.server.port); // told again to whoever begins to listen
    BUS_WAIT(bus_kit_reports(&kit) == 2);
    CHECK_INT(bus_kit_letters(&kit), 1);
    bus_kit_close(&kit);
}

static void what_no_repetition_mends_is_a_dead_letter_at_once_and_can_be_dropped(void)
{
    static const int statuses[] = {400, 404, 415, 301};
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        struct bus_kit kit;
        begin_with(&kit, SINK(""));
        misbehave("r1", 1, statuses[i], 0);
        bus_kit_run(&kit, "default", "r1", 1);
        BUS_WAIT(bus_kit_reports(&kit) == 1 && delivered(&kit, 2));
        CHECK_INT(count_of("r1", 1, statuses[i]), 1);
        CHECK_INT(redrive(&kit, (struct dead_letter_choice){0}, true), 1);
        BUS_WAIT(bus_kit_cleared(&kit) == 1);
        CHECK_INT(bus_kit_letters(&kit), 0);
        size_t count = 7;
        struct error err = {0};
        struct dead_letter_choice none = {.sink = STR("hook")};
        CHECK_OK(bus_drop(kit.bus, kit.store.store, &none, NULL, NULL, &count, &err), &err);
        CHECK_INT(count, 0);
        none.id = STR("hook/00000000000000000001");
        CHECK_INT(bus_drop(kit.bus, kit.store.store, &none, NULL, NULL, &count, &err), E_NOT_FOUND);
        bus_kit_close(&kit);
        char text[600];
        snprintf(text, sizeof(text), "rm -rf %s/*", test_dir());
        CHECK(system(text) == 0);
    }
}

static void a_run_may_wait_behind_its_dead_letter_and_goes_on_in_order_I32(void)
{
    struct bus_kit kit;
    begin_with(&kit, SINK(",\"dlqBlocksRun\":true"));
    misbehave("bad", 2, 404, 0);
    bus_kit_run(&kit, "default", "bad", 2);
    bus_kit_run(&kit, "default", "good", 2);
    BUS_WAIT(bus_kit_reports(&kit) == 3); // number 2, and 3 and 4 behind it
    BUS_WAIT(delivered(&kit, 5));
    CHECK_INT(count_of("bad", 3, 0) + count_of("bad", 4, 0), 0);
    struct json items = letters(&kit, "", &kit.store.arena);
    CHECK_INT(items.count, 3);
    CHECK_STR(json_text(json_key(&items.items[1], "class")), STR("HELD"));
    misbehave(NULL, 0, 0, 0);
    CHECK_INT(redrive(&kit, (struct dead_letter_choice){.run = STR("bad")}, false), 3);
    BUS_WAIT(bus_kit_letters(&kit) == 0);
    check_order("bad");
    CHECK_INT(count_of("bad", 0, 200), 4);
    bus_kit_close(&kit);
}

// ---- receivers that do not answer, or not now

static void silence_costs_no_attempts_ES_4c(void)
{
    static const int ways[] = {HANG, BREAK_OFF};
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        struct bus_kit kit;
        begin_with(&kit, SINK(",\"timeoutMs\":60,\"maxAttempts\":2"));
        misbehave("r1", 1, ways[i], 5);
        bus_kit_run(&kit, "default", "r1", 2);
        BUS_WAIT(delivered(&kit, 4));
        CHECK_INT(count_of("r1", 1, ways[i]), 5);
        CHECK_INT(bus_kit_reports(&kit), 0);
        check_order("r1");
        bus_kit_close(&kit);
        char text[600];
        snprintf(text, sizeof(text), "rm -rf %s/*", test_dir());
        CHECK(system(text) == 0);
    }
}

static void silence_may_count(void)
{
    struct bus_kit kit;
    begin_with(&kit, SINK(",\"timeoutMs\":40,\"maxAttempts\":3,\"timeoutsCount\":true"));
    misbehave("r1", 1, HANG, 0);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(bus_kit_reports(&kit) == 1 && delivered(&kit, 2));
    CHECK_INT(kit.report[0].attempts, 3);
    bus_kit_close(&kit);
}

static void not_now_is_believed_and_costs_no_attempts(void)
{
    struct bus_kit kit;
    begin_with(&kit, SINK(",\"maxAttempts\":2"));
    misbehave("r1", 1, 503, 6);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(delivered(&kit, 3));
    CHECK_INT(count_of("r1", 1, 503), 6);
    pthread_mutex_lock(&receiver.mutex);
    receiver.header = "Retry-After: 1\r\n";
    pthread_mutex_unlock(&receiver.mutex);
    misbehave("r2", 1, 429, 1);
    int64_t began = mono_now();
    bus_kit_run(&kit, "default", "r2", 1);
    BUS_WAIT(count_of("r2", 1, 429) == 1 && str_is(bus_kit_text(&kit, "circuit"), "open"));
    BUS_WAIT(delivered(&kit, 6));
    CHECK(mono_now() - began >= 1000);
    CHECK_INT(count_of("r2", 1, 0), 2);
    CHECK_INT(bus_kit_reports(&kit), 0);
    bus_kit_close(&kit);
}

static void a_receiver_that_is_gone_for_good_switches_its_sink_off(void)
{
    struct bus_kit kit;
    begin_with(&kit, SINK(""));
    misbehave("r1", 2, 410, 0);
    bus_kit_run(&kit, "default", "r1", 1);
    BUS_WAIT(bus_kit_cursor(&kit, "hook")->disabled);
    BUS_WAIT(str_is(bus_kit_text(&kit, "state"), "disabled"));
    bus_kit_stop(&kit);
    bus_kit_open(&kit, SINK(""), receiver.server.port); // and stays off
    BUS_WAIT(str_is(bus_kit_text(&kit, "state"), "disabled"));
    CHECK_INT(count_of("r1", 2, 410), 1);
    CHECK_INT(bus_kit_reports(&kit), 0);
    misbehave(NULL, 0, 0, 0);
    struct error err = {0};
    atomic_int answer = 0;
    struct store *reader = bus_kit_reader(&kit);
    CHECK_OK(bus_rewind(kit.bus, reader, STR("hook"), &(struct bus_place){.here = true}, done, &answer, &err), &err);
    BUS_WAIT(delivered(&kit, 3));
    CHECK_INT(count_of(NULL, 0, 200), 3);
    store_close(reader);
    bus_kit_close(&kit);
}

static void events_share_a_connection(void)
{
    struct bus_kit kit;
    begin_with(&kit, SINK(""));
    for (int i = 0; i < 10; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        bus_kit_run(&kit, "default", run, 1);
    }
    BUS_WAIT(delivered(&kit, 30));
    CHECK_INT(atomic_load(&receiver.server.accepted), 1);
    CHECK_INT(atomic_load(&receiver.server.requests), 30);
    bus_kit_close(&kit);
}

// Another event may have been delivered under the number that a store gives again after it was put back (I46).
static void what_is_recorded_after_a_restore_has_ids_of_its_own_I46(void)
{
    struct bus_kit kit;
    begin(&kit);
    bus_kit_run(&kit, "default", "old", 1);
    struct store_lives lives;
    struct note_put put;
    uint64_t end = 0;
    struct error err = {0};
    CHECK_OK(store_lives(kit.store.store, &kit.store.arena, &lives, &err), &err);
    CHECK_INT(lives.number, 1);
    CHECK_OK(store_feed_end(kit.store.store, &end, &err), &err);
    CHECK_OK(life_next(&lives, end, KIT_NOW, os_entropy(), &kit.store.arena, &put, &err), &err);
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_OK(store_append(kit.store.store, &batch, KIT_NOW, &kit.store.arena, &err), &err);
    bus_kit_open(&kit, SINK(""), receiver.server.port);
    bus_kit_run(&kit, "default", "new", 1);
    BUS_WAIT(delivered(&kit, 6));
    pthread_mutex_lock(&receiver.mutex);
    CHECK_TEXT(receiver.seen[0].id, "old:1");
    CHECK_TEXT(receiver.seen[3].id, "new:1~2");
    pthread_mutex_unlock(&receiver.mutex);
    bus_kit_close(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(events_are_signed_cloudevents),
        TEST(secrets_of_standard_webhooks_are_decoded),
        TEST(after_n_failed_answers_an_event_is_a_dead_letter_with_an_alert_until_it_is_redriven_ES_4e_ES_4k_C_16),
        TEST(failures_raise_a_stored_count_and_success_moves_the_cursor_ES_4j),
        TEST(a_letter_and_the_move_past_it_are_stored_together_ES_4f),
        TEST(what_no_repetition_mends_is_a_dead_letter_at_once_and_can_be_dropped),
        TEST(a_run_may_wait_behind_its_dead_letter_and_goes_on_in_order_I32),
        TEST(silence_costs_no_attempts_ES_4c),
        TEST(silence_may_count),
        TEST(not_now_is_believed_and_costs_no_attempts),
        TEST(a_receiver_that_is_gone_for_good_switches_its_sink_off),
        TEST(events_share_a_connection),
        TEST(what_is_recorded_after_a_restore_has_ids_of_its_own_I46),
    };
    return test_main("bus_webhook", tests, ARRAY_COUNT(tests), argc, argv);
}
