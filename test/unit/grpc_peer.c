// The gRPC client against a peer that follows a script: frames cut into bytes, answers that are lost, torn, too large or without a status,
// resets, GOAWAY, silence, TLS. The peer writes HTTP/2 by hand, so that it can write what no library would.
#include "grpc/grpc.h"
#include "unit/support/grpc_kit.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>

// ---- the client
static struct grpc *client(const struct peer *peer, struct grpc_options options)
{
    char address[32];
    struct grpc *grpc = NULL;
    struct error err = {0};
    snprintf(address, sizeof(address), "%s:%d", options.tls ? "localhost" : "127.0.0.1", peer->port);
    options.address = str_from(address);
    CHECK_OK(grpc_open(&options, &grpc, &err), &err);
    return grpc;
}

static struct grpc_answer ask_in(struct grpc *grpc, struct str body, enum grpc_class retry, int64_t timeout_ms, int64_t budget_ms,
                                 struct arena *arena)
{
    struct grpc_answer got = {0};
    struct error err = {0};
    struct grpc_call call = {.path = "/test.Service/Echo", .body = body, .timeout_ms = timeout_ms, .retry = retry, .budget_ms = budget_ms};
    enum code rc = grpc_call(grpc, &call, arena, &got, &err);
    CHECK_INT(rc, grpc_status_code(got.status));
    return got;
}

static struct grpc_answer ask(struct grpc *grpc, const char *body, enum grpc_class retry, struct arena *arena)
{
    return ask_in(grpc, str_from(body), retry, 20000, 20000, arena);
}

static void echo(struct link *link)
{
    while (next_request(link) && answer(link, link->stream, asked(link))) continue;
}

static void a_call_is_answered_and_its_connection_kept(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, echo);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    for (int i = 0; i < 5; i++) {
        struct grpc_answer got = ask(grpc, "hello", GRPC_ONCE, &arena);
        CHECK_INT(got.status, GRPC_OK);
        CHECK_STR(got.body, STR("hello"));
    }
    CHECK_INT(ask(grpc, "", GRPC_ONCE, &arena).status, GRPC_OK);
    CHECK_INT(grpc_counts(grpc).connections, 1);
    CHECK_INT(grpc_counts(grpc).tries, 6);
    grpc_close(grpc);
    arena_release(&arena);
}

static void bytewise(struct link *link)
{
    link->piece = 1;
    echo(link);
}

static void frames_that_come_byte_by_byte_are_read(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, bytewise);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    CHECK_STR(ask(grpc, "torn into bytes", GRPC_ONCE, &arena).body, STR("torn into bytes"));
    grpc_close(grpc);
    arena_release(&arena);
}

static void large_messages_go_both_ways(void)
{
    enum { SIZE = 5 << 20 };
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 64 << 20);
    char *text = arena_alloc(&arena, SIZE);
    CHECK(text);
    for (int i = 0; i < SIZE; i++) text[i] = (char)('a' + i % 23);
    peer_start(&peer, echo);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_answer got = ask_in(grpc, (struct str){text, SIZE}, GRPC_ONCE, 60000, 60000, &arena);
    CHECK_INT(got.status, GRPC_OK);
    CHECK(str_eq(got.body, (struct str){text, SIZE}));
    grpc_close(grpc);
    arena_release(&arena);
}

static void refusals(struct link *link)
{
    while (next_request(link))
        (void)HEADERS_OF(link, END_STREAM, link->stream, ":status", "200", "grpc-status", "5", "grpc-message",
                         "no such run%3A caf%C3%A9 100%", "grpc-status-details-bin", "CAUSAW4"); // no padding
}

static void a_refusal_without_a_body_has_its_words_and_details(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, refusals);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_answer got = ask(grpc, "x", GRPC_SAFE, &arena);
    CHECK_INT(got.status, GRPC_NOT_FOUND);
    CHECK_INT(got.tries, 1);
    CHECK_STR(got.message, STR("no such run: caf\xc3\xa9 100%"));
    CHECK_STR(got.details, STR("\x08\x05\x12\x01n"));
    CHECK_INT(got.body.len, 0);
    grpc_close(grpc);
    arena_release(&arena);
}

// What the peer does is in the request.
static void as_asked(struct link *link)
{
    while (next_request(link)) {
        struct str what = asked(link);
        int32_t stream = link->stream;
        if (str_is(what, "no status")) {
            (void)begin_answer(link, stream);
            (void)message(link, END_STREAM, stream, 0, 1, STR("x"));
        } else if (str_is(what, "compressed")) {
            (void)begin_answer(link, stream);
            (void)message(link, 0, stream, 1, 1, STR("x"));
            (void)HEADERS_OF(link, END_STREAM, stream, "grpc-status", "0");
        } else if (str_is(what, "wrong length")) {
            (void)begin_answer(link, stream);
            (void)message(link, 0, stream, 0, 77, STR("x"));
            (void)HEADERS_OF(link, END_STREAM, stream, "grpc-status", "0");
        } else if (str_is(what, "no message")) {
            (void)HEADERS_OF(link, END_STREAM, stream, ":status", "200", "grpc-status", "0");
        } else if (str_is(what, "503")) {
            (void)HEADERS_OF(link, END_STREAM, stream, ":status", "503");
        } else if (str_is(what, "403")) {
            (void)HEADERS_OF(link, END_STREAM, stream, ":status", "403");
        } else if (str_is(what, "reset cancel")) {
            (void)frame_number(link, RST, stream, 8);
        } else if (str_is(what, "reset internal")) {
            (void)frame_number(link, RST, stream, 2);
        } else if (str_is(what, "strange status")) {
            (void)HEADERS_OF(link, END_STREAM, stream, ":status", "200", "grpc-status", "x");
        } else if (str_is(what, "half, then reset")) {
            (void)begin_answer(link, stream);
            (void)frame(link, DATA, 0, stream, (struct str){"\0\0\0\0\x09half", 9});
            (void)frame_number(link, RST, stream, 2);
        } else {
            (void)answer(link, stream, what);
        }
    }
}

static void answers_that_are_none_become_the_right_status(void)
{
    static const struct {
        const char *what;
        int status;
    } rows[] = {{"no status", GRPC_UNKNOWN},         {"compressed", GRPC_INTERNAL},         {"wrong length", GRPC_INTERNAL},
                {"no message", GRPC_INTERNAL},       {"503", GRPC_UNAVAILABLE},             {"403", GRPC_PERMISSION_DENIED},
                {"reset cancel", GRPC_CANCELLED},    {"reset internal", GRPC_UNAVAILABLE},  {"strange status", GRPC_UNKNOWN},
                {"half, then reset", GRPC_UNAVAILABLE}, {"fine", GRPC_OK}};
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, as_asked);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct grpc_answer got = ask(grpc, rows[i].what, GRPC_ONCE, &arena);
        if (got.status != rows[i].status)
            test_fail(__FILE__, __LINE__, "%s is %s: %.*s", rows[i].what, grpc_status_name(got.status), STR_ARG(got.message));
        if (got.status) CHECK(got.message.len > 0);
    }
    CHECK_INT(grpc_counts(grpc).connections, 1); // none of them costs the connection
    grpc_close(grpc);
    arena_release(&arena);
}

static void refused_twice(struct link *link)
{
    while (next_request(link))
        if (atomic_load(&link->peer->requests) <= 2)
            (void)frame_number(link, RST, link->stream, 7);
        else
            (void)answer(link, link->stream, STR("third"));
}

static void what_the_server_has_not_looked_at_is_sent_again_even_once(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, refused_twice);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_answer got = ask(grpc, "x", GRPC_ONCE, &arena);
    CHECK_INT(got.status, GRPC_OK);
    CHECK_STR(got.body, STR("third"));
    CHECK_INT(got.tries, 3);
    grpc_close(grpc);
    arena_release(&arena);
}

static void drops_the_first(struct link *link)
{
    if (!next_request(link)) return;
    if (link->nth == 1) return; // the request was read; the answer never comes
    do (void)answer(link, link->stream, asked(link));
    while (next_request(link));
}

static void a_lost_answer_is_asked_for_again_only_where_that_is_safe(void)
{
    for (int safe = 0; safe < 2; safe++) {
        struct peer peer = {0};
        struct arena arena = arena_of(4096, 1 << 20);
        peer_start(&peer, drops_the_first);
        struct grpc *grpc = client(&peer, (struct grpc_options){0});
        struct grpc_answer got = ask(grpc, "x", safe ? GRPC_SAFE : GRPC_ONCE, &arena);
        CHECK_INT(got.status, safe ? GRPC_OK : GRPC_UNAVAILABLE);
        CHECK_INT(got.tries, safe ? 2 : 1);
        CHECK_INT(atomic_load(&peer.requests), safe ? 2 : 1);
        grpc_close(grpc);
        arena_release(&arena);
    }
}

// On the first connection: two requests are read, GOAWAY names the first as the last that will be answered, and its answer comes when the
// second was answered on another connection.
static void drains(struct link *link)
{
    if (link->nth > 1) {
        echo(link);
        return;
    }
    int32_t first = 0;
    while (next_request(link)) {
        if (str_is(asked(link), "slow")) {
            first = link->stream;
            continue;
        }
        CHECK(first > 0);
        (void)goaway(link, first);
        break;
    }
    while (!atomic_load(&link->peer->done)) poll(NULL, 0, 5);
    (void)answer(link, first, STR("slow"));
    while (next_request(link)) continue;
}

struct result {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int ended, status;
    char body[64];
};

static void keep(void *context, const struct grpc_answer *got)
{
    struct result *result = context;
    pthread_mutex_lock(&result->mutex);
    result->ended++;
    result->status = got->status;
    snprintf(result->body, sizeof(result->body), "%.*s", STR_ARG(got->body));
    pthread_cond_broadcast(&result->condition);
    pthread_mutex_unlock(&result->mutex);
}

static void result_init(struct result *result)
{
    memset(result, 0, sizeof(*result));
    pthread_mutex_init(&result->mutex, NULL);
    pthread_cond_init(&result->condition, NULL);
}

static void result_wait(struct result *result, int ended)
{
    pthread_mutex_lock(&result->mutex);
    while (result->ended < ended) pthread_cond_wait(&result->condition, &result->mutex);
    pthread_mutex_unlock(&result->mutex);
}

static void wait_for(atomic_int *what, int least)
{
    while (atomic_load(what) < least) poll(NULL, 0, 5);
}

static void a_server_that_goes_away_answers_what_it_has_and_the_rest_goes_elsewhere(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    struct result slow;
    struct error err = {0};
    result_init(&slow);
    peer_start(&peer, drains);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_call call = {.path = "/test.Service/Echo", .body = STR("slow"), .timeout_ms = 30000, .retry = GRPC_ONCE};
    CHECK_OK(grpc_send(grpc, &call, keep, &slow, NULL, &err), &err);
    wait_for(&peer.requests, 1);
    struct grpc_answer quick = ask(grpc, "quick", GRPC_ONCE, &arena); // its stream was not looked at: another connection
    CHECK_INT(quick.status, GRPC_OK);
    CHECK_STR(quick.body, STR("quick"));
    CHECK_INT(slow.ended, 0);
    atomic_store(&peer.done, 1);
    result_wait(&slow, 1);
    CHECK_INT(slow.status, GRPC_OK);
    CHECK_TEXT(slow.body, "slow");
    CHECK_INT(grpc_counts(grpc).connections, 2);
    CHECK_INT(grpc_counts(grpc).goaways, 1);
    grpc_close(grpc);
    arena_release(&arena);
}

static void silent(struct link *link)
{
    while (next_request(link)) continue;
}

static void a_deadline_ends_the_call_on_both_sides(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, silent);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    CHECK_INT(ask_in(grpc, STR("x"), GRPC_SAFE, 100, 30000, &arena).status, GRPC_DEADLINE_EXCEEDED);
    wait_for(&peer.resets, 1); // the server hears that nobody waits
    grpc_close(grpc);
    arena_release(&arena);
}

static void mute(struct link *link)
{
    link->mute = true;
    silent(link);
}

// More frames than can be read, all of them allowed and none of them an answer.
static void chatters(struct link *link)
{
    enum { PRIORITY = 2, FRAME = 14 };
    static const uint8_t one[FRAME] = {0, 0, 5, PRIORITY, 0, 0, 0, 0, 1, 0, 0, 0, 0, 16};
    uint8_t many[FRAME * 8192];
    for (size_t i = 0; i < sizeof(many); i++) many[i] = one[i % FRAME];
    while (next_request(link))
        while (link_write(link, many, sizeof(many))) continue;
}

static void a_peer_that_chatters_without_end_keeps_no_deadline_from_ending_X6(void)
{
    struct peer peer = {0};
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, chatters);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    for (int i = 0; i < 50 && cover_hits("grpc_chatter") == 0; i++) // until it was ahead of us for so long
        CHECK_INT(ask_in(grpc, STR("x"), GRPC_ONCE, 100, 1000, &arena).status, GRPC_DEADLINE_EXCEEDED);
    COVERED(grpc_chatter);
    grpc_close(grpc); // ends, too
    arena_release(&arena);
}

static void a_connection_that_fell_silent_is_given_up(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, mute);
    struct grpc *grpc = client(&peer, (struct grpc_options){.keepalive_ms = 200});
    CHECK_INT(ask_in(grpc, STR("x"), GRPC_ONCE, 60000, 60000, &arena).status, GRPC_UNAVAILABLE);
    grpc_close(grpc);
    arena_release(&arena);
}

static void away_for_a_while(struct link *link)
{
    while (next_request(link)) {
        int nth = atomic_load(&link->peer->requests);
        if (nth == 1) return; // broken off
        if (nth == 2)
            (void)refuse(link, link->stream, "14", "away");
        else if (nth == 3)
            continue; // the deadline runs out
        else if (nth == 4)
            (void)refuse(link, link->stream, "1", "cancelled");
        else
            (void)answer(link, link->stream, STR("a task"));
    }
}

static void a_long_poll_goes_on_until_there_is_an_answer(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, away_for_a_while);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_answer got = ask_in(grpc, STR("x"), GRPC_POLL, 300, 0, &arena);
    CHECK_INT(got.status, GRPC_OK);
    CHECK_STR(got.body, STR("a task"));
    CHECK(atomic_load(&peer.requests) >= 5);
    grpc_close(grpc);
    arena_release(&arena);
}

static void silent_polls(struct link *link)
{
    while (next_request(link))
        if (!str_is(asked(link), "poll")) (void)answer(link, link->stream, asked(link));
}

static void cancelled_and_shut_calls_end_once(void)
{
    static struct peer peer; // its threads may end after the test
    struct result polls;
    struct error err = {0};
    uint64_t id;
    result_init(&polls);
    peer_start(&peer, silent);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_call call = {.path = "/test.Service/Poll", .timeout_ms = 60000, .retry = GRPC_POLL};
    CHECK_OK(grpc_send(grpc, &call, keep, &polls, &id, &err), &err);
    CHECK_OK(grpc_send(grpc, &call, keep, &polls, NULL, &err), &err);
    wait_for(&peer.requests, 2);
    grpc_cancel(grpc, id);
    grpc_cancel(grpc, 12345);
    result_wait(&polls, 1);
    CHECK_INT(polls.status, GRPC_CANCELLED);
    wait_for(&peer.resets, 1);
    grpc_shut(grpc);
    CHECK_INT(polls.ended, 2);
    CHECK_OK(grpc_send(grpc, &call, keep, &polls, NULL, &err), &err); // at once
    CHECK_INT(polls.ended, 3);
    CHECK_INT(polls.status, GRPC_CANCELLED);
    grpc_close(grpc);
}

// The thread of the client is awake then, and looks for what was sent on it before it sleeps: each of these would wait for the next
// deadline otherwise.
struct chain {
    struct grpc *grpc;
    struct result result;
    int left;
};

static void send_next(void *context, const struct grpc_answer *got)
{
    struct chain *chain = context;
    struct error err = {0};
    struct grpc_call call = {.path = "/test.Service/Echo", .body = STR("more"), .timeout_ms = 60000, .retry = GRPC_ONCE};
    if (got->status || chain->left-- == 0)
        keep(&chain->result, got);
    else
        CHECK_OK(grpc_send(chain->grpc, &call, send_next, chain, NULL, &err), &err);
}

static void calls_that_are_sent_when_one_has_ended_go_out_at_once(void)
{
    static struct peer peer; // its threads may end after the test
    struct chain chain = {.left = 100};
    struct error err = {0};
    result_init(&chain.result);
    peer_start(&peer, echo);
    chain.grpc = client(&peer, (struct grpc_options){0});
    struct grpc_call call = {.path = "/test.Service/Echo", .body = STR("first"), .timeout_ms = 60000, .retry = GRPC_ONCE};
    CHECK_OK(grpc_send(chain.grpc, &call, send_next, &chain, NULL, &err), &err);
    result_wait(&chain.result, 1);
    CHECK_INT(chain.result.status, GRPC_OK);
    CHECK_INT(grpc_counts(chain.grpc).calls, 101);
    grpc_close(chain.grpc);
}

static void polls_that_are_not_wanted_end_and_other_calls_go_on(void)
{
    static struct peer peer; // its threads may end after the test
    struct result polls;
    struct error err = {0};
    struct arena arena = arena_of(4096, 1 << 20);
    result_init(&polls);
    peer_start(&peer, silent_polls);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    struct grpc_call poll = {.path = "/test.Service/Poll", .body = STR("poll"), .timeout_ms = 60000, .retry = GRPC_POLL};
    CHECK_OK(grpc_send(grpc, &poll, keep, &polls, NULL, &err), &err);
    CHECK_OK(grpc_send(grpc, &poll, keep, &polls, NULL, &err), &err);
    wait_for(&peer.requests, 2);
    grpc_shut_polls(grpc);
    result_wait(&polls, 2);
    CHECK_INT(polls.status, GRPC_CANCELLED);
    CHECK_OK(grpc_send(grpc, &poll, keep, &polls, NULL, &err), &err);
    result_wait(&polls, 3);
    CHECK_INT(polls.status, GRPC_CANCELLED);
    struct grpc_answer got = ask(grpc, "result", GRPC_SAFE, &arena);
    CHECK_INT(got.status, GRPC_OK);
    CHECK_STR(got.body, STR("result"));
    grpc_close(grpc);
    arena_release(&arena);
}

static void overloaded(struct link *link)
{
    while (next_request(link)) {
        struct str what = asked(link);
        if (str_is(what, "too large"))
            (void)refuse(link, link->stream, "8", "grpc: received message larger than max (5 vs. 4)");
        else if (atomic_load(&link->peer->requests) == 1)
            (void)refuse(link, link->stream, "8", "namespace rate limit exceeded");
        else
            (void)answer(link, link->stream, what);
    }
}

static void an_overloaded_server_is_asked_later_and_what_is_too_large_never(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    peer_start(&peer, overloaded);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    int64_t began = os_now().mono_ms;
    struct grpc_answer got = ask(grpc, "x", GRPC_SAFE, &arena);
    CHECK_INT(got.status, GRPC_OK);
    CHECK_INT(got.tries, 2);
    CHECK(os_now().mono_ms - began >= 500); // not at once
    got = ask(grpc, "too large", GRPC_SAFE, &arena);
    CHECK_INT(got.status, GRPC_RESOURCE_EXHAUSTED);
    CHECK_INT(got.tries, 1);
    grpc_close(grpc);
    arena_release(&arena);
}

static void an_answer_beyond_the_limit_is_refused_and_the_connection_stays(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 4 << 20);
    char *text = arena_alloc(&arena, 200000);
    CHECK(text);
    memset(text, 'x', 200000);
    peer_start(&peer, echo);
    struct grpc *grpc = client(&peer, (struct grpc_options){.answer_max = 100000});
    struct grpc_answer got = ask_in(grpc, (struct str){text, 200000}, GRPC_SAFE, 20000, 20000, &arena);
    CHECK_INT(got.status, GRPC_RESOURCE_EXHAUSTED);
    CHECK_INT(got.tries, 1);
    CHECK_INT(ask(grpc, "small", GRPC_ONCE, &arena).status, GRPC_OK);
    CHECK_INT(grpc_counts(grpc).connections, 1);
    grpc_close(grpc);
    arena_release(&arena);
}

enum { FILLED = 6 << 20 };

// A part of an answer to each call, and never the rest.
static void fills(struct link *link)
{
    static const char piece[16384];
    while (next_request(link)) {
        (void)begin_answer(link, link->stream);
        (void)frame(link, DATA, 0, link->stream, (struct str){"\0\0\x7f\xff\xff", 5});
        for (size_t sent = 0; sent < FILLED; sent += sizeof(piece))
            if (!frame(link, DATA, 0, link->stream, (struct str){piece, sizeof(piece)})) return;
    }
}

static void answers_on_their_way_have_one_room_together_X6(void)
{
    struct peer peer = {0};
    struct result all;
    struct error err = {0};
    result_init(&all);
    peer_start(&peer, fills);
    struct grpc *grpc = client(&peer, (struct grpc_options){.answer_max = 8 << 20});
    enum { CALLS = 4 };
    for (int i = 0; i < CALLS; i++) {
        struct grpc_call call = {.path = "/test.Service/Echo", .body = STR("x"), .timeout_ms = 60000, .retry = GRPC_ONCE};
        CHECK_OK(grpc_send(grpc, &call, keep, &all, NULL, &err), &err);
    }
    result_wait(&all, 1); // two have room, if those that are refused leave it to them
    CHECK_INT(all.status, GRPC_RESOURCE_EXHAUSTED);
    grpc_close(grpc);
}

static void many_calls_share_one_connection(void)
{
    static struct peer peer; // its threads may end after the test
    struct result all;
    struct error err = {0};
    result_init(&all);
    peer_start(&peer, echo);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    for (int i = 0; i < 300; i++) {
        struct grpc_call call = {.path = "/test.Service/Echo", .body = STR("one of many"), .timeout_ms = 60000, .retry = GRPC_ONCE};
        CHECK_OK(grpc_send(grpc, &call, keep, &all, NULL, &err), &err);
    }
    result_wait(&all, 300);
    CHECK_INT(all.status, GRPC_OK);
    CHECK_TEXT(all.body, "one of many");
    CHECK_INT(grpc_counts(grpc).connections, 1);
    grpc_close(grpc);
}

static void nobody_there_is_said_in_time_and_bad_addresses_at_once(void)
{
    static struct peer peer; // its threads may end after the test
    struct arena arena = arena_of(4096, 1 << 20);
    struct error err = {0};
    peer_start(&peer, echo);
    struct grpc *grpc = client(&peer, (struct grpc_options){0});
    shutdown(peer.fd, SHUT_RDWR);
    close(peer.fd);
    struct grpc_answer got = ask_in(grpc, STR("x"), GRPC_SAFE, 300, 700, &arena);
    CHECK_INT(got.status, GRPC_UNAVAILABLE);
    CHECK(got.message.len > 0);
    grpc_close(grpc);
    static const char *const bad[] = {"", "localhost", "localhost:", ":7233", "localhost:0", "localhost:70000", "http://x:1", "a/b:1"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct grpc_options options = {.address = str_from(bad[i])};
        err = (struct error){0};
        if (grpc_open(&options, &grpc, &err) != E_INVALID) test_fail(__FILE__, __LINE__, "\"%s\" was accepted", bad[i]);
    }
    struct grpc_options clear = {.address = STR("far.example:1"), .token_variable = STR("KEY")};
    CHECK_INT(grpc_open(&clear, &grpc, &err), E_INVALID);
    struct grpc_options half = {.address = STR("far.example:1"), .tls = true, .cert_file = STR("x")};
    CHECK_INT(grpc_open(&half, &grpc, &err), E_INVALID);
    arena_release(&arena);
}

// ---- TLS
static void write_pem(const char *path, EVP_PKEY *key, X509 *certificate)
{
    FILE *file = fopen(path, "w");
    CHECK(file);
    CHECK_INT(key ? PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) : PEM_write_X509(file, certificate), 1);
    fclose(file);
}

// A self-signed certificate of that name.
static void make_certificate(const char *dir, const char *name, const char *host)
{
    char path[300], alternative[100];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    CHECK(key && certificate);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 7);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)host, -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_set_pubkey(certificate, key);
    snprintf(alternative, sizeof(alternative), "DNS:%s", host);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternative);
    CHECK(extension && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
    CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
    snprintf(path, sizeof(path), "%s/%s.key", dir, name);
    write_pem(path, key, NULL);
    snprintf(path, sizeof(path), "%s/%s.pem", dir, name);
    write_pem(path, NULL, certificate);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *in, unsigned in_size, void *context)
{
    (void)ssl;
    (void)context;
    if (in_size < 3 || memcmp(in, "\x02h2", 3) != 0) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = in + 1;
    *size = 2;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *server_context(const char *dir, bool alpn, bool mutual)
{
    char path[300];
    static SSL_CTX *contexts[16]; // threads of the peers have them until the process ends
    static size_t count;
    SSL_CTX *context = contexts[count++] = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof(path), "%s/server.pem", dir);
    CHECK_INT(SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM), 1);
    snprintf(path, sizeof(path), "%s/server.key", dir);
    CHECK_INT(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM), 1);
    if (alpn) SSL_CTX_set_alpn_select_cb(context, choose_h2, NULL);
    if (mutual) {
        snprintf(path, sizeof(path), "%s/me.pem", dir);
        CHECK_INT(SSL_CTX_load_verify_locations(context, path, NULL), 1);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return context;
}

static int status_over_tls(const char *dir, const char *ca, bool alpn, bool mutual, bool show, const char *server_name)
{
    char paths[3][300];
    struct arena arena = arena_of(4096, 1 << 20);
    static struct peer peers[16]; // their threads may end after the test
    static size_t count;
    struct peer *peer = &peers[count++];
    peer->tls = server_context(dir, alpn, mutual);
    peer_start(peer, echo);
    snprintf(paths[0], sizeof(paths[0]), "%s/%s.pem", dir, ca);
    snprintf(paths[1], sizeof(paths[1]), "%s/me.pem", dir);
    snprintf(paths[2], sizeof(paths[2]), "%s/me.key", dir);
    struct grpc_options options = {.tls = true, .ca_file = str_from(paths[0]), .server_name = str_from(server_name)};
    if (show) options.cert_file = str_from(paths[1]);
    if (show) options.key_file = str_from(paths[2]);
    struct grpc *grpc = client(peer, options);
    struct grpc_answer got = ask_in(grpc, STR("secret"), GRPC_ONCE, 20000, 20000, &arena);
    if (got.status == GRPC_OK) CHECK_STR(got.body, STR("secret"));
    int status = got.status;
    grpc_close(grpc);
    arena_release(&arena);
    return status;
}

static void tls_verifies_name_and_chain_and_agrees_on_the_protocol(void)
{
    const char *dir = test_dir();
    make_certificate(dir, "server", "localhost");
    make_certificate(dir, "other", "localhost");
    make_certificate(dir, "me", "worker");
    CHECK_INT(status_over_tls(dir, "server", true, false, false, ""), GRPC_OK);
    CHECK_INT(status_over_tls(dir, "server", true, false, false, "localhost"), GRPC_OK);
    CHECK_INT(status_over_tls(dir, "server", true, false, false, "elsewhere"), GRPC_UNAUTHENTICATED); // another name
    CHECK_INT(status_over_tls(dir, "other", true, false, false, ""), GRPC_UNAUTHENTICATED);           // another chain
    CHECK(status_over_tls(dir, "server", false, false, false, "") != GRPC_OK);                        // no HTTP/2 there
    CHECK_INT(status_over_tls(dir, "server", true, true, true, ""), GRPC_OK);                         // mTLS
    CHECK(status_over_tls(dir, "server", true, true, false, "") != GRPC_OK);                          // without ours
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_call_is_answered_and_its_connection_kept),
        TEST(frames_that_come_byte_by_byte_are_read),
        TEST(large_messages_go_both_ways),
        TEST(a_refusal_without_a_body_has_its_words_and_details),
        TEST(answers_that_are_none_become_the_right_status),
        TEST(what_the_server_has_not_looked_at_is_sent_again_even_once),
        TEST(a_lost_answer_is_asked_for_again_only_where_that_is_safe),
        TEST(a_server_that_goes_away_answers_what_it_has_and_the_rest_goes_elsewhere),
        TEST(a_deadline_ends_the_call_on_both_sides),
        TEST(a_peer_that_chatters_without_end_keeps_no_deadline_from_ending_X6),
        TEST(a_connection_that_fell_silent_is_given_up),
        TEST(a_long_poll_goes_on_until_there_is_an_answer),
        TEST(cancelled_and_shut_calls_end_once),
        TEST(calls_that_are_sent_when_one_has_ended_go_out_at_once),
        TEST(polls_that_are_not_wanted_end_and_other_calls_go_on),
        TEST(an_overloaded_server_is_asked_later_and_what_is_too_large_never),
        TEST(an_answer_beyond_the_limit_is_refused_and_the_connection_stays),
        TEST(answers_on_their_way_have_one_room_together_X6),
        TEST(many_calls_share_one_connection),
        TEST(nobody_there_is_said_in_time_and_bad_addresses_at_once),
        TEST(tls_verifies_name_and_chain_and_agrees_on_the_protocol),
    };
    signal(SIGPIPE, SIG_IGN); // of the peer's TLS
    return test_main("grpc_peer", tests, ARRAY_COUNT(tests), argc, argv);
}
