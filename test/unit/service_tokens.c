// Whose a token is: what its note says, and in notes that say nothing what their makers tell.
#include "harness/test.h"

#include "service/inside.h"

static struct service service;
static struct arena arena;

// Makes a token as a note of an installation had it, or with a person; its text is for whose_is.
static const char *put(const char *created_by, uint32_t roles, const char *person, struct str *id)
{
    static uint8_t entropy[TOKEN_ENTROPY];
    char text[TOKEN_SIZE + 1];
    struct error err = {0};
    struct token token = {.created_by = str_from(created_by), .created_ms = 1};
    struct buf value = buf_of(64 * 1024);
    entropy[0]++;
    auth_token_make(entropy, text, id, &token.secret);
    *id = arena_copy(&arena, *id);
    token.id = *id;
    token.principal = (struct principal){.id = *id, .person = str_from(person), .tenant = STR("acme"), .roles = roles};
    CHECK_OK(auth_token_encode(&token, &arena, &value, &err), &err);
    CHECK_OK(tokens_put(&service.tokens, buf_str(&value), &err), &err);
    buf_release(&value);
    return arena_copy(&arena, str_from(text)).ptr;
}

static struct str whose_is(const char *text)
{
    struct principal who;
    struct error err = {0};
    CHECK_OK(service_authenticate(&service, str_from(text), &arena, &who, &err), &err);
    return principal_person(&who);
}

static void a_note_without_a_person_is_its_makers(void)
{
    struct str first, boss, mine, other;
    arena_init(&arena, 64 * 1024, 16 << 20);
    pthread_rwlock_init(&service.tokens.lock, NULL);
    const char *text = put("cairn", ROLE_ADMIN | ROLE_PLATFORM, "", &first);
    CHECK_STR(whose_is(text), first);
    text = put(first.ptr, ROLE_ADMIN, "", &boss);
    CHECK_STR(whose_is(text), boss); // the first token makes tokens for people
    text = put(boss.ptr, ROLE_ADMIN, "", &mine);
    CHECK_STR(whose_is(text), boss);
    text = put(mine.ptr, ROLE_OPERATOR, "", &other);
    CHECK_STR(whose_is(text), boss);
    text = put("https://id.example#ada", ROLE_ADMIN, "", &mine);
    CHECK_STR(whose_is(text), STR("https://id.example#ada"));
    text = put(mine.ptr, ROLE_OPERATOR, "", &other);
    CHECK_STR(whose_is(text), STR("https://id.example#ada"));
    text = put("", ROLE_OPERATOR, "", &other);
    CHECK_STR(whose_is(text), other);
    text = put(boss.ptr, ROLE_OPERATOR, "https://id.example#bob", &other);
    CHECK_STR(whose_is(text), STR("https://id.example#bob"));
    text = put(other.ptr, ROLE_OPERATOR, "", &mine);
    CHECK_STR(whose_is(text), STR("https://id.example#bob"));
    tokens_release(&service.tokens);
    pthread_rwlock_destroy(&service.tokens.lock);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_note_without_a_person_is_its_makers),
    };
    return test_main("service_tokens", tests, ARRAY_COUNT(tests), argc, argv);
}
