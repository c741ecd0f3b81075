// Tokens: form, hash, comparison, and the note that the store keeps.
#include "auth/auth.h"
#include "harness/test.h"

#include <string.h>

static struct arena arena;
static struct error err;

static void text_has_id_and_256_bits_A1(void)
{
    uint8_t entropy[TOKEN_ENTROPY];
    char text[TOKEN_SIZE + 1];
    struct str id, again;
    struct digest secret, hash;
    for (size_t i = 0; i < sizeof(entropy); i++) entropy[i] = (uint8_t)(i * 37 + 11);
    auth_token_make(entropy, text, &id, &secret);
    CHECK_INT(strlen(text), TOKEN_SIZE);
    CHECK(str_starts(str_from(text), STR("cairn_")));
    CHECK_INT(id.len, TOKEN_ID_SIZE);
    CHECK(auth_token_parse(str_from(text), &again, &hash));
    CHECK_STR(again, id);
    CHECK(digest_eq(&hash, &secret));
    hash = sha256(str_slice(str_from(text), TOKEN_SIZE - TOKEN_SECRET_SIZE, TOKEN_SIZE));
    CHECK(digest_eq(&hash, &secret));
    // Every bit of the entropy changes the text; those of the secret change the hash and not the id.
    for (size_t bit = 0; bit < sizeof(entropy) * 8; bit++) {
        char other[TOKEN_SIZE + 1];
        struct str other_id;
        entropy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        auth_token_make(entropy, other, &other_id, &hash);
        entropy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(strcmp(other, text) != 0);
        CHECK(str_eq(other_id, id) == (bit >= 80));
        CHECK(digest_eq(&hash, &secret) == (bit < 80));
    }
}

static void known_vector(void)
{
    uint8_t entropy[TOKEN_ENTROPY];
    char text[TOKEN_SIZE + 1];
    struct str id;
    struct digest secret;
    memset(entropy, 0xFF, sizeof(entropy));
    auth_token_make(entropy, text, &id, &secret);
    CHECK_TEXT(text, "cairn_zzzzzzzzzzzzzzzz_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzg");
    memset(entropy, 0, sizeof(entropy));
    auth_token_make(entropy, text, &id, &secret);
    CHECK_TEXT(text, "cairn_0000000000000000_0000000000000000000000000000000000000000000000000000");
}

static void other_forms_are_refused(void)
{
    static const char good[] = "cairn_zzzzzzzzzzzzzzzz_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzg";
    struct str id;
    struct digest secret;
    CHECK(auth_token_parse(str_from(good), &id, &secret));
    for (size_t i = 0; i < TOKEN_SIZE; i++) CHECK(!auth_token_parse(str_slice(str_from(good), 0, i), &id, &secret));
    for (size_t i = 0; i < TOKEN_SIZE; i++) {
        static const char wrong[] = {'_', 'u', 'i', 'l', 'o', 'Z', ' ', '-', '\0', '\x80'};
        for (size_t k = 0; k < sizeof(wrong); k++) {
            char text[sizeof(good)];
            memcpy(text, good, sizeof(good));
            if (text[i] == wrong[k] || (i < 6 && good[i] == wrong[k])) continue;
            text[i] = wrong[k];
            CHECK(!auth_token_parse((struct str){text, TOKEN_SIZE}, &id, &secret));
        }
    }
    // The last character carries four bits that are always 0: no second text for the same secret.
    char text[sizeof(good)];
    memcpy(text, good, sizeof(good));
    text[TOKEN_SIZE - 1] = 'z';
    CHECK(!auth_token_parse(str_from(text), &id, &secret));
    CHECK(!auth_token_parse(STR("cairn_zzzzzzzzzzzzzzzz_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzg\n"), &id,
                            &secret));
}

static void only_the_secret_matches_and_nobody_matches_nothing_A2(void)
{
    struct token token = {.secret = sha256(STR("right"))};
    struct digest right = sha256(STR("right")), zero = {{0}};
    CHECK(auth_token_matches(&token, &right));
    for (size_t bit = 0; bit < 256; bit++) {
        struct digest wrong = right;
        wrong.b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!auth_token_matches(&token, &wrong));
    }
    CHECK(!auth_token_matches(NULL, &right));
    CHECK(!auth_token_matches(NULL, &zero));
}

static void bearer_header(void)
{
    CHECK_STR(auth_bearer(STR("Bearer abc")), STR("abc"));
    CHECK_STR(auth_bearer(STR("bEARER   abc ")), STR("abc"));
    CHECK_STR(auth_bearer(STR("Bearer ")), STR(""));
    CHECK_STR(auth_bearer(STR("Basic abc")), STR(""));
    CHECK_STR(auth_bearer(STR("Bearerabc")), STR(""));
    CHECK_STR(auth_bearer(STR("")), STR(""));
}

static const struct str projects[] = {STR_INIT("web"), STR_INIT("sh\"op")}, places[] = {STR_INIT("prod")};
static const enum operation operations[] = {OPERATION_RUN_GET, OPERATION_SIGNAL_PAUSE};

static struct token full_token(void)
{
    return (struct token){.id = STR("0123456789abcdef"),
                          .secret = sha256(STR("s")),
                          .principal = {.id = STR("0123456789abcdef"),
                                        .person = STR("https://id.example#ann"),
                                        .tenant = STR("acme"),
                                        .roles = ROLE_ADMIN | ROLE_WORKER,
                                        .projects = {projects, 2},
                                        .environments = {places, 1},
                                        .operations = operations,
                                        .operation_count = 2,
                                        .pool = STR("gpu"),
                                        .audience = STR("main"),
                                        .expires_ms = 1893456000123,
                                        .revoked = true},
                          .name = STR("build server"),
                          .created_by = STR("ann"),
                          .created_ms = 1700000000000,
                          .revoked_ms = 1700000000001};
}

static struct str encoded(const struct token *token)
{
    struct buf buf;
    buf_init(&buf, 1 << 16);
    CHECK_OK(auth_token_encode(token, &arena, &buf, &err), &err);
    struct str text = arena_copy(&arena, buf_str(&buf));
    CHECK(text.ptr);
    buf_release(&buf);
    return text;
}

static void note_round_trip(void)
{
    arena_init(&arena, 1 << 14, 1 << 20);
    struct token token = full_token(), back;
    struct str text = encoded(&token);
    CHECK_STR(text,
              STR("{\"audience\":\"main\",\"createdAt\":\"2023-11-14T22:13:20.000Z\",\"createdBy\":\"ann\","
                  "\"environments\":[\"prod\"],\"expiresAt\":\"2030-01-01T00:00:00.123Z\",\"id\":\"0123456789abcdef\","
                  "\"name\":\"build server\",\"operations\":[\"run.get\",\"signal.pause\"],"
                  "\"person\":\"https://id.example#ann\",\"pool\":\"gpu\","
                  "\"projects\":[\"web\",\"sh\\\"op\"],\"revokedAt\":\"2023-11-14T22:13:20.001Z\","
                  "\"roles\":[\"admin\",\"worker\"],"
                  "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\","
                  "\"tenantId\":\"acme\"}"));
    CHECK_OK(auth_token_decode(text, &arena, &back, &err), &err);
    CHECK_STR(encoded(&back), text);
    CHECK(back.principal.revoked);
}

static void a_small_note_round_trip(void)
{
    arena_init(&arena, 1 << 14, 1 << 20);
    struct token token = {.id = STR("a"), .principal = {.id = STR("a"), .roles = ROLE_PLATFORM}}, back;
    struct str text = encoded(&token);
    CHECK_OK(auth_token_decode(text, &arena, &back, &err), &err);
    CHECK_STR(encoded(&back), text);
    CHECK_INT(back.principal.roles, ROLE_PLATFORM);
    CHECK(!back.principal.revoked && !back.principal.tenant.len && !back.principal.expires_ms);
    CHECK_STR(back.principal.id, STR("a"));
}

static void a_note_that_was_touched_is_refused(void)
{
    arena_init(&arena, 1 << 14, 1 << 20);
    static const char *const bad[] = {
        "",
        "[]",
        "1",
        "{}",
        "{\"id\":\"a\"}",
        "nonsense",
        "{\"id\":\"a\",\"roles\":[\"admin\"]}", // no hash
        "{\"id\":\"a\",\"roles\":[],\"secretSha256\":"
        "\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"id\":\"a\",\"roles\":[\"king\"],\"secretSha256\":"
        "\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"id\":\"a\",\"roles\":[\"admin\"],\"more\":1,"
        "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"expiresAt\":\"soon\",\"id\":\"a\",\"roles\":[\"admin\"],"
        "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"expiresAt\":5,\"id\":\"a\",\"roles\":[\"admin\"],"
        "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"id\":\"a\",\"projects\":[],\"roles\":[\"admin\"],"
        "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"id\":\"a\",\"projects\":[1],\"roles\":[\"admin\"],"
        "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
        "{\"id\":\"a\",\"operations\":[\"run.fly\"],\"roles\":[\"admin\"],"
        "\"secretSha256\":\"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89\"}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct token token;
        if (auth_token_decode(str_from(bad[i]), &arena, &token, NULL) != E_CORRUPT)
            test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
    }
}

static void memory_may_end(void)
{
    struct token token = full_token(), back;
    for (int64_t n = 1;; n++) {
        struct buf buf;
        arena_init(&arena, 256, 1 << 20);
        arena.fail_in = n;
        buf_init(&buf, 1 << 16);
        enum code rc = auth_token_encode(&token, &arena, &buf, NULL);
        if (!rc) rc = auth_token_decode(buf_str(&buf), &arena, &back, NULL);
        buf_release(&buf);
        arena_release(&arena);
        if (!rc) break;
        CHECK_INT(rc, E_NOMEM);
    }
    struct buf tight;
    arena_init(&arena, 256, 1 << 20);
    buf_init(&tight, 100);
    CHECK_INT(auth_token_encode(&token, &arena, &tight, NULL), E_LIMIT);
    buf_release(&tight);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(text_has_id_and_256_bits_A1),
        TEST(known_vector),
        TEST(other_forms_are_refused),
        TEST(only_the_secret_matches_and_nobody_matches_nothing_A2),
        TEST(bearer_header),
        TEST(note_round_trip),
        TEST(a_small_note_round_trip),
        TEST(a_note_that_was_touched_is_refused),
        TEST(memory_may_end),
    };
    return test_main("auth_token", tests, ARRAY_COUNT(tests), argc, argv);
}
