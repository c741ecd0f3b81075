// Tokens of identity providers: what a foreign library signed is taken, what is forged, stale or strange is not.
#include "auth/jwt.h"
#include "auth_jwt_vectors.h"
#include "harness/test.h"

#include <string.h>

static struct arena arena;
static struct error err;
static struct jwks jwks;

static struct jwt_rules rules_of(void)
{
    static const struct str audience = {"cairn", 5};
    return (struct jwt_rules){.issuer = STR("https://id.example.com"),
                              .audiences = {&audience, 1},
                              .client = STR("cli"),
                              .algorithms = JWT_RS256 | JWT_PS256 | JWT_ES256 | JWT_EDDSA,
                              .skew_ms = 60000,
                              .max_age_ms = 86400000};
}

static enum code check_at(const char *text, const struct jwt_rules *rules, int64_t now_ms, struct jwt *out)
{
    err = (struct error){0};
    enum code rc = jwt_read(str_from(text), &arena, out, &err);
    return rc ? rc : jwt_check(out, &jwks, rules, now_ms, &err);
}

static void key_sets_keep_what_can_be_used(void)
{
    static const char *const kept[] = {"rsa", "rs256-only", "ec", "ed"};
    CHECK_INT(jwks.count, ARRAY_COUNT(kept));
    for (size_t i = 0; i < jwks.count; i++) CHECK_STR(jwks.keys[i].kid, str_from(kept[i]));
    CHECK_INT(jwks.ignored, 8);
}

static void key_sets_that_are_none_are_refused(void)
{
    static const struct {
        const char *text;
        enum code rc;
    } rows[] = {{"", E_INVALID}, {"[]", E_INVALID}, {"{}", E_INVALID}, {"{\"keys\":{}}", E_INVALID},
                {"{\"keys\":[],\"keys\":[]}", E_INVALID}};
    struct jwks none;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) CHECK_INT(jwks_parse(str_from(rows[i].text), &arena, &none, &err), rows[i].rc);
    struct buf many = buf_of(1 << 20);
    buf_text(&many, "{\"keys\":[");
    for (int i = 0; i < 65; i++) buf_text(&many, i ? ",{}" : "{}");
    buf_text(&many, "]}");
    CHECK_INT(jwks_parse(buf_str(&many), &arena, &none, &err), E_LIMIT);
    buf_clear(&many);
    while (many.len <= JWKS_SIZE_MAX) buf_text(&many, "                                ");
    CHECK_INT(jwks_parse(buf_str(&many), &arena, &none, &err), E_LIMIT);
    buf_release(&many);
}

static void a_set_without_a_key_that_can_be_used_is_an_empty_set(void)
{
    static const struct {
        const char *text;
        size_t ignored;
    } rows[] = {{"{\"keys\":[]}", 0},
                {"{\"keys\":[null,1,\"x\",{}]}", 4},
                {"{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}", 1}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct jwks set;
        CHECK_OK(jwks_parse(str_from(rows[i].text), &arena, &set, &err), &err);
        CHECK_INT(set.count, 0);
        CHECK_INT(set.ignored, rows[i].ignored);
        jwks_release(&set);
    }
}

static void what_another_library_signed_is_good(void)
{
    struct jwt jwt;
    struct jwt_rules rules = rules_of();
    for (size_t i = 0; i < ARRAY_COUNT(vectors_good); i++) {
        CHECK(jwt_is_like(str_from(vectors_good[i].text)));
        if (check_at(vectors_good[i].text, &rules, VECTOR_NOW, &jwt))
            test_fail(__FILE__, __LINE__, "%s: %s", vectors_good[i].name, err.message);
        CHECK_STR(jwt.subject, STR("ada"));
        CHECK(jwt.expires_ms >= VECTOR_NOW + 3660000 && jwt.expires_ms <= VECTOR_NOW + 3660500);
    }
}

static void what_is_forged_or_strange_is_refused_for_its_reason(void)
{
    struct jwt jwt;
    struct jwt_rules rules = rules_of();
    for (size_t i = 0; i < ARRAY_COUNT(vectors_bad); i++) {
        enum code rc = check_at(vectors_bad[i].text, &rules, VECTOR_NOW, &jwt);
        if (rc != E_DENIED || !strstr(err.message, vectors_bad[i].why))
            test_fail(__FILE__, __LINE__, "%s: %d %s", vectors_bad[i].name, (int)rc, err.message);
    }
    struct buf huge = buf_of(1 << 20);
    buf_text(&huge, vectors_good[0].text);
    while (huge.len <= JWT_SIZE_MAX) buf_byte(&huge, 'A');
    CHECK(!jwt_is_like(buf_str(&huge)));
    CHECK_INT(jwt_read(buf_str(&huge), &arena, &jwt, &err), E_DENIED);
    buf_release(&huge);
}

static void a_key_comes_from_the_set_by_its_name_alone(void)
{
    struct jwt jwt;
    struct jwt_rules rules = rules_of();
    for (size_t i = 0; i < ARRAY_COUNT(vectors_unknown); i++) {
        if (check_at(vectors_unknown[i].text, &rules, VECTOR_NOW, &jwt) != E_NOT_FOUND)
            test_fail(__FILE__, __LINE__, "%s: %s", vectors_unknown[i].name, err.message);
    }
}

static void algorithms_that_are_not_allowed_are_refused(void)
{
    struct jwt jwt;
    for (size_t i = 0; i < JWT_ALGORITHM_COUNT; i++) {
        struct jwt_rules rules = rules_of();
        rules.algorithms &= ~(1u << i);
        CHECK_INT(check_at(vectors_good[i].text, &rules, VECTOR_NOW, &jwt), E_DENIED);
        rules.algorithms = 1u << i;
        CHECK_OK(check_at(vectors_good[i].text, &rules, VECTOR_NOW, &jwt), &err);
    }
}

// To the millisecond, on both sides of every border.
static void times_count_with_the_skew(void)
{
    struct jwt jwt;
    struct jwt_rules rules = rules_of();
    const char *text = vectors_good[0].text;
    CHECK_OK(check_at(text, &rules, VECTOR_NOW + 3659999, &jwt), &err);
    CHECK_INT(check_at(text, &rules, VECTOR_NOW + 3660000, &jwt), E_DENIED);
    CHECK_OK(check_at(text, &rules, VECTOR_NOW - 60000, &jwt), &err);
    CHECK_INT(check_at(text, &rules, VECTOR_NOW - 60001, &jwt), E_DENIED);
    rules.skew_ms = 0;
    CHECK_OK(check_at(text, &rules, VECTOR_NOW + 3599999, &jwt), &err);
    CHECK_INT(jwt.expires_ms, VECTOR_NOW + 3600000);
    CHECK_INT(check_at(text, &rules, VECTOR_NOW + 3600000, &jwt), E_DENIED);
    rules.max_age_ms = 1000;
    CHECK_OK(check_at(text, &rules, VECTOR_NOW + 999, &jwt), &err);
    CHECK_INT(jwt.expires_ms, VECTOR_NOW + 1000);
    CHECK_INT(check_at(text, &rules, VECTOR_NOW + 1000, &jwt), E_DENIED);
}

// No other text is good for the same token: every bit of it counts.
static void every_change_of_a_character_is_refused(void)
{
    struct jwt jwt;
    struct jwt_rules rules = rules_of();
    for (size_t v = 0; v < JWT_ALGORITHM_COUNT; v++) {
        size_t size = strlen(vectors_good[v].text);
        char *text = arena_alloc(&arena, size + 1);
        memcpy(text, vectors_good[v].text, size + 1);
        for (size_t i = 0; i < size; i++) {
            char was = text[i];
            text[i] = was == 'A' ? 'B' : 'A';
            CHECK(check_at(text, &rules, VECTOR_NOW, &jwt) != OK);
            text[i] = was;
        }
    }
}

// ---- grants

static enum code grant(const struct claim_grant *grants, size_t count, struct principal *out)
{
    struct jwt jwt;
    struct jwt_rules rules = rules_of();
    CHECK_OK(check_at(vectors_good[0].text, &rules, VECTOR_NOW, &jwt), &err);
    return claims_grant(&jwt, grants, count, &arena, out, &err);
}

static void claims_give_what_the_first_fitting_grant_says(void)
{
    struct principal who;
    struct claim_grant grants[] = {
        {.claim = STR("groups"), .value = STR("nobody"), .tenant = STR("x"), .roles = ROLE_PLATFORM},
        {.claim = STR("groups"), .value = STR("cairn-admins"), .tenant_claim = STR("org"), .roles = ROLE_ADMIN,
         .projects_claim = STR("projects")},
        {.claim = STR("sub"), .value = STR("ada"), .tenant = STR("x"), .roles = ROLE_PLATFORM}};
    CHECK_OK(grant(grants, 3, &who), &err);
    CHECK_STR(who.id, STR("https://id.example.com#ada"));
    CHECK_STR(who.tenant, STR("acme"));
    CHECK_INT(who.roles, ROLE_ADMIN);
    CHECK_INT(who.projects.count, 2);
    CHECK_INT(who.expires_ms, VECTOR_NOW + 3660000);
    CHECK(who.is_foreign);
    struct claim_grant nested = {.claim = STR("realm_access.roles"), .value = STR("ops"), .tenant = STR("acme"), .roles = ROLE_OPERATOR};
    CHECK_OK(grant(&nested, 1, &who), &err);
    CHECK_INT(who.roles, ROLE_OPERATOR);
}

static void without_a_grant_there_is_nobody_and_the_claim_is_named(void)
{
    struct principal who;
    struct claim_grant other = {.claim = STR("roles"), .value = STR("admin"), .tenant = STR("acme"), .roles = ROLE_ADMIN};
    CHECK_INT(grant(NULL, 0, &who), E_DENIED);
    CHECK_INT(grant(&other, 1, &who), E_DENIED);
    CHECK(strstr(err.message, "roles (missing)") != NULL);
    struct claim_grant rows[] = {
        {.claim = STR("sub"), .value = STR("ada"), .tenant_claim = STR("tenant"), .roles = ROLE_ADMIN},
        {.claim = STR("sub"), .value = STR("ada"), .tenant_claim = STR("groups"), .roles = ROLE_ADMIN},
        {.claim = STR("sub"), .value = STR("ada"), .tenant = STR("acme"), .roles = ROLE_ADMIN, .projects_claim = STR("teams")},
        {.claim = STR("sub"), .value = STR("ada"), .tenant = STR("acme"), .roles = ROLE_ADMIN, .environments_claim = STR("realm_access")},
        {.claim = STR("groups.roles"), .value = STR("dev"), .tenant = STR("acme"), .roles = ROLE_ADMIN},
        {.claim = STR("realm_access"), .value = STR("ops"), .tenant = STR("acme"), .roles = ROLE_ADMIN}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) CHECK_INT(grant(&rows[i], 1, &who), E_DENIED);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(key_sets_keep_what_can_be_used),
        TEST(key_sets_that_are_none_are_refused),
        TEST(a_set_without_a_key_that_can_be_used_is_an_empty_set),
        TEST(what_another_library_signed_is_good),
        TEST(what_is_forged_or_strange_is_refused_for_its_reason),
        TEST(a_key_comes_from_the_set_by_its_name_alone),
        TEST(algorithms_that_are_not_allowed_are_refused),
        TEST(times_count_with_the_skew),
        TEST(every_change_of_a_character_is_refused),
        TEST(claims_give_what_the_first_fitting_grant_says),
        TEST(without_a_grant_there_is_nobody_and_the_claim_is_named),
    };
    arena_init(&arena, 65536, 256 << 20);
    if (jwks_parse(str_from(vector_jwks), &arena, &jwks, &err)) return 1;
    int failed = test_main("auth_jwt", tests, ARRAY_COUNT(tests), argc, argv);
    jwks_release(&jwks);
    arena_release(&arena);
    return failed;
}
