// What comes from outside, or from a store that somebody edited: tokens, task tokens, notes, audit records, tables.
#include "auth/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_texts(struct str text, struct arena *arena)
{
    static const struct task_key key = {{7}};
    struct str id, bearer = auth_bearer(text);
    struct digest secret;
    struct task_claim claim;
    INVARIANT(bearer.len < text.len || !text.len);
    if (auth_token_parse(text, &id, &secret)) INVARIANT(id.len == TOKEN_ID_SIZE);
    enum code rc = auth_task_open(&key, text, arena, &claim, NULL);
    INVARIANT(rc == OK || rc == E_DENIED);
}

// What could be read is written, and from then on it stays as it is.
static void read_token(struct str text, struct arena *arena)
{
    struct token token, again;
    struct buf first, second;
    enum code rc = auth_token_decode(text, arena, &token, NULL);
    INVARIANT(rc == OK || rc == E_CORRUPT);
    if (rc) return;
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    INVARIANT(auth_token_encode(&token, arena, &first, NULL) == OK);
    INVARIANT(auth_token_decode(buf_str(&first), arena, &again, NULL) == OK);
    INVARIANT(auth_token_encode(&again, arena, &second, NULL) == OK);
    INVARIANT(str_eq(buf_str(&first), buf_str(&second)));
    buf_release(&first);
    buf_release(&second);
}

static void read_record(struct str text, struct arena *arena)
{
    struct audit_record record;
    struct audit_verdict verdict;
    struct audit_head nothing = {0}, head = {0};
    struct buf out;
    enum code rc = audit_decode(text, arena, &record, NULL);
    INVARIANT(rc == OK || rc == E_CORRUPT);
    INVARIANT(audit_verify(&text, 1, &nothing, NULL, arena, &verdict, NULL) == OK);
    if (rc) return;
    buf_init(&out, 1 << 20);
    INVARIANT(audit_encode(&record, &head, arena, &out, NULL) == OK);
    struct str written = buf_str(&out);
    INVARIANT(audit_verify(&written, 1, &nothing, &head, arena, &verdict, NULL) == OK);
    INVARIANT(verdict.fault == AUDIT_INTACT);
    buf_release(&out);
}

// No input is a token that a key of nobody has signed, nor a set with more keys than it may have.
static void read_jwt(struct str text, struct arena *arena)
{
    struct jwt jwt;
    struct jwks jwks;
    struct principal who;
    static const struct claim_grant grant = {.claim = {"sub", 3}, .value = {"a", 1}, .tenant_claim = {"t", 1}, .roles = ROLE_ADMIN};
    enum code rc = jwt_read(text, arena, &jwt, NULL);
    INVARIANT(rc == OK || rc == E_DENIED);
    if (rc == OK) {
        static const struct jwks none;
        struct jwt_rules rules = {.issuer = jwt.issuer, .algorithms = 15};
        INVARIANT(jwt_is_like(text) && jwt.signature.len > 0 && jwt.kid.len > 0 && jwt.subject.len > 0);
        INVARIANT(jwt_check(&jwt, &none, &rules, 0, NULL) == E_NOT_FOUND);
        rc = claims_grant(&jwt, &grant, 1, arena, &who, NULL);
        INVARIANT(rc == E_DENIED || (rc == OK && who.tenant.len > 0 && who.id.len > jwt.issuer.len));
    }
    rc = jwks_parse(text, arena, &jwks, NULL);
    INVARIANT(rc == OK || rc == E_INVALID || rc == E_LIMIT);
    INVARIANT(rc || (jwks.count > 0 && jwks.count <= JWKS_KEYS_MAX));
    jwks_release(&jwks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena arena;
    struct auth *auth;
    struct error err = {0};
    if (size > 64 * 1024) return 0;
    arena_init(&arena, 4096, 256 * 1024 * 1024);
    read_texts(text, &arena);
    read_token(text, &arena);
    read_record(text, &arena);
    read_jwt(text, &arena);
    enum code rc = auth_open(text, &arena, &auth, &err);
    INVARIANT(rc == OK || rc == E_INVALID || rc == E_LIMIT);
    arena_release(&arena);
    return 0;
}
