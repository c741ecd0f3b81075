// Making and revoking tokens: stored first, then known.
#include "service/inside.h"

#include <string.h>

struct tokening {
    struct token token;
    struct str value; // as a note holds it
    char text[TOKEN_SIZE + 1];
    struct str id;
    bool revoke;
};

static void told(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    struct tokening *tokening = call->state;
    struct service *service = call->service;
    struct error err = {0};
    struct json body = json_object();
    if (!rc) rc = tokens_put(&service->tokens, tokening->value, &err);
    if (rc) {
        call_failed(call, why && why->code ? why : &err);
        return;
    }
    if (tokening->revoke) {
        call->answer.status = 204;
        call->done(call);
        return;
    }
    if (!json_put(&call->arena, &body, STR("id"), json_string(tokening->id)) ||
        !json_put(&call->arena, &body, STR("token"), json_string(str_from(tokening->text)))) {
        call_problem(call, 503, "OVERLOADED", "out of memory");
        return;
    }
    call->answer.location = call_text(call, "/v1/tokens/%.*s", STR_ARG(tokening->id));
    call_answer(call, 201, body);
}

static void store_token(struct call *call)
{
    struct tokening *tokening = call->state;
    struct error err = {0};
    struct buf value;
    buf_init(&value, 64 * 1024);
    enum code rc = auth_token_encode(&tokening->token, &call->arena, &value, &err);
    tokening->value = arena_copy(&call->arena, buf_str(&value));
    buf_release(&value);
    if (!rc && !tokening->value.ptr) rc = error_set(&err, E_NOMEM, "out of memory");
    struct note_put put = {.space = STR("token"),
                           .key = tokening->id,
                           .value = tokening->value,
                           .expect = tokening->revoke ? NOTE_ANY : 0};
    enum operation operation = tokening->revoke ? OPERATION_TOKEN_REVOKE : OPERATION_TOKEN_CREATE;
    if (!rc) rc = audit_call(call, operation, tokening->id, (struct str){0}, &err);
    if (!rc) rc = engine_put(call->service->engine, &put, 1, told, call, &err);
    if (rc) call_failed(call, &err);
}

static void make_on_engine(struct call *call)
{
    struct tokening *tokening = call->state;
    uint8_t entropy[TOKEN_ENTROPY];
    struct digest secret;
    struct str id;
    os_entropy()->fill(os_entropy(), entropy, sizeof(entropy));
    auth_token_make(entropy, tokening->text, &id, &secret);
    tokening->id = arena_copy(&call->arena, id);
    tokening->token.id = tokening->token.principal.id = tokening->id;
    tokening->token.secret = secret;
    tokening->token.created_ms = os_now().wall_ms;
    tokening->token.created_by = call->who.id;
    store_token(call);
}

void service_token_create(struct call *call, const struct token_call *given)
{
    struct tokening *tokening = ARENA_NEW(&call->arena, struct tokening);
    if (!tokening) {
        call_problem(call, 503, "OVERLOADED", "out of memory");
        return;
    }
    call->state = tokening;
    tokening->token.name = given->name;
    tokening->token.principal = (struct principal){.id = STR("new"),
                                                   .tenant = given->tenant.len ? given->tenant : call->who.tenant,
                                                   .roles = given->roles,
                                                   .projects = given->projects,
                                                   .environments = given->environments,
                                                   .pool = given->pool,
                                                   .expires_ms = given->expires_ms};
    struct auth_object object = {
        .tenant = tokening->token.principal.tenant, .exists = true, .subject = &tokening->token.principal};
    if (service_may(call, OPERATION_TOKEN_CREATE, &object, (struct str){0})) service_post(call, make_on_engine);
}

static void revoke_on_engine(struct call *call)
{
    struct tokening *tokening = call->state;
    tokening->token.revoked_ms = os_now().wall_ms;
    tokening->token.principal.revoked = true;
    store_token(call);
}

static void find_token(struct call *call, struct store *store)
{
    struct tokening *tokening = call->state;
    struct error err = {0};
    struct note note;
    enum code rc = store_note(store, STR("token"), tokening->id, &call->arena, &note, &err);
    if (!rc) rc = auth_token_decode(note.value, &call->arena, &tokening->token, &err);
    if (rc && rc != E_NOT_FOUND) {
        call_failed(call, &err);
        return;
    }
    struct auth_object object = {.tenant = rc ? call->who.tenant : tokening->token.principal.tenant,
                                 .exists = rc == OK,
                                 .subject = rc ? NULL : &tokening->token.principal};
    if (service_may(call, OPERATION_TOKEN_REVOKE, &object, (struct str){0})) service_post(call, revoke_on_engine);
}

void service_token_revoke(struct call *call, struct str id)
{
    struct tokening *tokening = ARENA_NEW(&call->arena, struct tokening);
    if (!tokening || !(tokening->id = arena_copy(&call->arena, id)).ptr) {
        call_problem(call, 503, "OVERLOADED", "out of memory");
        return;
    }
    tokening->revoke = true;
    call->state = tokening;
    call->resource = tokening->id;
    service_read(call, find_token);
}
