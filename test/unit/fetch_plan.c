// Plans by reference: fetched, inflated, compared.
#include "support/fetch_kit.h"

#include "os/os.h"

#include <zlib.h>

#define RULE                                                                                                           \
    "{\"allow\": [{\"uri\": \"http://plans.allowed.example:PORT/\", \"addresses\": [\"127.0.0.0/8\"]}, "               \
    "\"cairn://plans/\"]}"

static struct arena arena;
static struct names here = {.answers = {"127.0.0.1"}};

struct offer {
    int status;
    struct str body;
};

static void offering(struct peer *peer)
{
    const struct offer *offer = peer->server->context;
    char head[128];
    while (peer_next(peer)) {
        snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", offer->status, offer->body.len);
        if (!peer_say(peer, head) || !peer_send(peer, offer->body.ptr, offer->body.len)) return;
    }
}

struct world {
    struct server server;
    struct offer offer;
    struct fetch_policy *policy;
    char uri[128], sha256[SHA256_HEX + 1];
    struct plan_ref ref;
    struct str bytes;
    struct plan_trip trip;
    struct error err;
};

static void world_begin(struct world *world, struct str plan)
{
    memset(world, 0, sizeof(*world));
    arena_init(&arena, 65536, 512 << 20);
    world->offer = (struct offer){200, plan};
    world->server.context = &world->offer;
    server_start(&world->server, offering);
    world->policy = policy_for(&arena, RULE, world->server.port);
    names_use(&here, world->policy);
    struct digest hash = sha256(plan);
    digest_hex(&hash, world->sha256);
    snprintf(world->uri, sizeof(world->uri), "http://plans.allowed.example:%u/p.json", world->server.port);
    world->ref = (struct plan_ref){.uri = str_from(world->uri), .sha256 = str_from(world->sha256)};
}

static enum code fetch(struct world *world)
{
    world->err = (struct error){0};
    return fetch_plan(world->policy, &world->ref, &arena, &world->bytes, &world->trip, &world->err);
}

static struct str gzip(struct str plain)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain.ptr, .avail_in = (uInt)plain.len};
    size_t room = plain.len / 100 + 65536 + plain.len;
    char *out = lives_on(malloc(room)); // the server may still read it
    CHECK(out && deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)room;
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&stream);
    return (struct str){out, room - stream.avail_out};
}

static void a_plan_comes_as_promised_WE_3_1g_WE_3_1h(void)
{
    struct world world;
    world_begin(&world, STR("{\"planId\": \"p\"}"));
    CHECK_OK(fetch(&world), &world.err);
    CHECK_STR(world.bytes, world.offer.body);
    world.ref.size = world.offer.body.len;
    world.ref.compression = STR("none");
    world.ref.expires_ms = os_now().wall_ms + 60000;
    CHECK_OK(fetch(&world), &world.err);
}

// The actual hash is handed out beside the error, never inside it.
static void other_bytes_are_refused_WE_3_1i_WE_3_1l(void)
{
    struct world world;
    char other[] = "{\"planId\": \"q\"}", hex[SHA256_HEX + 1];
    world_begin(&world, STR("{\"planId\": \"p\"}"));
    world.offer.body = str_from(other);
    CHECK_INT(fetch(&world), E_CORRUPT);
    CHECK(strncmp(world.err.message, "PLAN_INTEGRITY_VALIDATION_FAILED", 32) == 0);
    struct digest actual = sha256(str_from(other));
    digest_hex(&actual, hex);
    CHECK(digest_eq(&actual, &world.trip.actual));
    CHECK(!strstr(world.err.message, hex) && !strstr(world.err.message, "planId"));
}

static void sizes_must_be_those_of_the_reference_WE_3_1b(void)
{
    struct world world;
    world_begin(&world, STR("0123456789"));
    world.ref.size = 9;
    CHECK_INT(fetch(&world), E_CORRUPT);
    world.ref.size = 11;
    CHECK_INT(fetch(&world), E_CORRUPT);
    world.ref.size = 10;
    CHECK_OK(fetch(&world), &world.err);
}

static enum code read_ref(const char *text, struct plan_ref *out, struct error *err)
{
    struct json value;
    if (!arena.block_size) arena_init(&arena, 65536, 64 << 20);
    *err = (struct error){0};
    CHECK_OK(json_parse(str_from(text), NULL, &arena, &value, err), err);
    return fetch_plan_ref(&value, out, err);
}

#define REF "\"uri\": \"https://x.example/p\", \"sha256\": \"00\", \"planId\": \"p\", \"planVersion\": \"1\""

static void references_are_read_WE_3_1b_WE_3_1c(void)
{
    static const char *const wrong[] = {"1",
                                        "{}",
                                        "{" REF "}",
                                        "{" REF ", \"schemaVersion\": \"\"}",
                                        "{" REF ", \"schemaVersion\": 1}",
                                        "{" REF ", \"schemaVersion\": \"v1.2\", \"sizeBytes\": -1}",
                                        "{" REF ", \"schemaVersion\": \"v1.2\", \"sizeBytes\": \"1\"}",
                                        "{" REF ", \"schemaVersion\": \"v1.2\", \"expiresAt\": \"soon\"}",
                                        "{" REF ", \"schemaVersion\": \"v1.2\", \"compression\": true}"};
    struct plan_ref ref;
    struct error err;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) CHECK_INT(read_ref(wrong[i], &ref, &err), E_INVALID);
    CHECK_OK(read_ref("{" REF ", \"schemaVersion\": \"v1.2\", \"migrationHint\": {}}", &ref, &err), &err);
    CHECK(ref.size == 0 && ref.expires_ms == 0 && ref.compression.len == 0);
    CHECK_OK(read_ref("{" REF ", \"schemaVersion\": \"v1.2\", \"sizeBytes\": 7, \"compression\": \"gzip\","
                      "\"expiresAt\": \"2026-02-11T17:00:00Z\"}",
                      &ref, &err),
             &err);
    CHECK_STR(ref.uri, STR("https://x.example/p"));
    CHECK_STR(ref.schema_version, STR("v1.2"));
    CHECK_STR(ref.plan_version, STR("1"));
    CHECK(ref.size == 7 && ref.expires_ms == 1770829200000);
    CHECK_STR(ref.compression, STR("gzip"));
}

static void faulty_references_are_refused_WE_3_1b(void)
{
    struct world world;
    world_begin(&world, STR("0123456789"));
    world.ref.expires_ms = os_now().wall_ms - 1;
    CHECK_INT(fetch(&world), E_DENIED);
    world.ref.expires_ms = 0;
    world.ref.compression = STR("br");
    CHECK_INT(fetch(&world), E_INVALID);
    world.ref.compression = STR("");
    world.ref.sha256 = STR("");
    CHECK_INT(fetch(&world), E_INVALID);
    world.ref.sha256 = STR("ABCDEF0000000000000000000000000000000000000000000000000000000000");
    CHECK_INT(fetch(&world), E_INVALID);
    CHECK_INT(atomic_load(&world.server.accepted), 0);
}

static void answers_that_are_no_plan_are_told_apart(void)
{
    static const struct {
        int status;
        enum code want;
    } cases[] = {{404, E_NOT_FOUND}, {410, E_NOT_FOUND}, {401, E_DENIED}, {403, E_DENIED}, {302, E_DENIED},
                 {500, E_UNREACHABLE}, {503, E_UNREACHABLE}, {429, E_UNREACHABLE}, {206, E_IO}, {201, E_IO}};
    struct world world;
    world_begin(&world, STR("0123456789"));
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        world.offer.status = cases[i].status;
        CHECK_INT(fetch(&world), cases[i].want);
        CHECK_INT(world.trip.status, cases[i].status);
    }
}

static void gzip_is_hashed_after_decompression(void)
{
    struct world world;
    struct str plain = STR("{\"planId\": \"p\", \"planVersion\": \"1\"}");
    world_begin(&world, plain);
    struct str packed = gzip(plain);
    world.offer.body = packed;
    world.ref.compression = STR("gzip");
    CHECK_OK(fetch(&world), &world.err);
    CHECK_STR(world.bytes, plain);
    world.ref.size = packed.len;
    CHECK_OK(fetch(&world), &world.err);
    world.ref.size = plain.len;
    CHECK_OK(fetch(&world), &world.err);
    world.ref.size = packed.len + 1;
    CHECK_INT(fetch(&world), E_CORRUPT);
    world.ref.size = 0;
    // Cut at every byte, and with something behind it: not one whole file.
    for (size_t i = 0; i < packed.len; i++) {
        world.offer.body = str_slice(packed, 0, i);
        CHECK_INT(fetch(&world), E_CORRUPT);
    }
    char *more = lives_on(malloc(2 * packed.len));
    memcpy(more, packed.ptr, packed.len);
    memcpy(more + packed.len, packed.ptr, packed.len);
    world.offer.body = (struct str){more, packed.len + 1};
    CHECK_INT(fetch(&world), E_CORRUPT);
    world.offer.body = (struct str){more, 2 * packed.len};
    CHECK_INT(fetch(&world), E_CORRUPT);
    world.offer.body = plain;
    CHECK_INT(fetch(&world), E_CORRUPT);
}

// Row 82: a bomb, in ratio and in size.
static void bombs_do_not_go_off(void)
{
    struct world world;
    size_t size = 24 << 20;
    char *zeros = lives_on(calloc(1, size));
    struct str packed = gzip((struct str){zeros, size});
    world_begin(&world, packed);
    world.ref.compression = STR("gzip");
    CHECK_INT(fetch(&world), E_LIMIT);
    // Small enough, and still no honest plan.
    world.offer.body = gzip((struct str){zeros, 4 << 20});
    CHECK_INT(fetch(&world), E_LIMIT);
    // Hardly compressible, and one byte too much.
    uint64_t seed = 88172645463325252u;
    for (size_t i = 0; i < FETCH_INFLATED_MAX + 1; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        zeros[i] = (char)(seed & 3);
    }
    struct digest hash = sha256((struct str){zeros, FETCH_INFLATED_MAX});
    digest_hex(&hash, world.sha256);
    world.offer.body = gzip((struct str){zeros, FETCH_INFLATED_MAX + 1});
    CHECK(world.offer.body.len < FETCH_BODY_MAX);
    CHECK_INT(fetch(&world), E_LIMIT);
    world.offer.body = gzip((struct str){zeros, FETCH_INFLATED_MAX});
    CHECK_OK(fetch(&world), &world.err);
}

static void a_plan_may_be_as_large_as_the_limit_and_no_larger(void)
{
    struct world world;
    char *bytes = lives_on(calloc(1, FETCH_BODY_MAX + 1));
    world_begin(&world, (struct str){bytes, FETCH_BODY_MAX});
    CHECK_OK(fetch(&world), &world.err);
    world.offer.body.len++;
    CHECK_INT(fetch(&world), E_LIMIT);
}

// Every allocation of a fetch fails once: an error comes out, nothing is lost, and the next one works.
static void memory_may_run_out_anywhere(void)
{
    struct world world;
    struct str plain = STR("{\"planId\": \"p\"}");
    world_begin(&world, plain);
    world.offer.body = gzip(plain);
    world.ref.compression = STR("gzip");
    for (int64_t n = 1;; n++) {
        struct arena small;
        arena_init(&small, 4096, 64 << 20);
        small.fail_in = n;
        world.err = (struct error){0};
        enum code rc = fetch_plan(world.policy, &world.ref, &small, &world.bytes, &world.trip, &world.err);
        bool reached = small.fail_in <= 0;
        arena_release(&small);
        if (!reached) {
            CHECK_OK(rc, &world.err);
            CHECK(n > 5);
            break;
        }
        CHECK_INT(rc, E_NOMEM);
    }
}

static enum code stored(void *context, struct str name, struct arena *into, struct str *bytes, struct error *err)
{
    const struct world *world = context;
    if (!str_eq(name, str_from(world->sha256))) return error_set(err, E_NOT_FOUND, "no such plan");
    *bytes = arena_copy(into, world->offer.body);
    return OK;
}

static void plans_of_the_content_store_are_compared_too_C_09_C_38(void)
{
    struct world world;
    char uri[128];
    world_begin(&world, STR("0123456789"));
    snprintf(uri, sizeof(uri), "cairn://plans/%s", world.sha256);
    world.ref.uri = str_from(uri);
    CHECK_INT(fetch(&world), E_NOT_FOUND);
    fetch_policy_plans(world.policy, (struct fetch_plans){&world, stored});
    CHECK_OK(fetch(&world), &world.err);
    CHECK_STR(world.bytes, STR("0123456789"));
    world.offer.body = STR("012345678X");
    CHECK_INT(fetch(&world), E_CORRUPT);
    struct fetch_call call = {.uri = str_from(uri)};
    struct fetch_answer answer;
    CHECK_INT(fetch_call(world.policy, &call, &arena, &answer, &world.err), E_UNSUPPORTED);
    CHECK_INT(atomic_load(&world.server.accepted), 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_plan_comes_as_promised_WE_3_1g_WE_3_1h),
        TEST(other_bytes_are_refused_WE_3_1i_WE_3_1l),
        TEST(sizes_must_be_those_of_the_reference_WE_3_1b),
        TEST(references_are_read_WE_3_1b_WE_3_1c),
        TEST(faulty_references_are_refused_WE_3_1b),
        TEST(answers_that_are_no_plan_are_told_apart),
        TEST(gzip_is_hashed_after_decompression),
        TEST(bombs_do_not_go_off),
        TEST(a_plan_may_be_as_large_as_the_limit_and_no_larger),
        TEST(memory_may_run_out_anywhere),
        TEST(plans_of_the_content_store_are_compared_too_C_09_C_38),
    };
    return test_main("fetch_plan", tests, ARRAY_COUNT(tests), argc, argv);
}
