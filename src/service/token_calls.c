// Making and revoking tokens: stored first, then known.
#include "service/inside.h"

enum { NAME_MAX_SIZE = 256, NAMES_MAX = 100 };

struct tokening {
    struct token token;
    struct str value; // as a note holds it
    char text[TOKEN_SIZE + 1];
    struct str id;
    bool revoke;
    // What the new token takes the place of: both are stored in one batch, or neither.
    struct token old;
    struct str old_id, old_value;
    uint64_t old_version;
};

static void told(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    struct tokening *tokening = call->state;
    struct service *service = call->service;
    struct error err = {0};
    struct json body = json_object();
    if (!rc && tokening->old_id.len) rc = tokens_put(&service->tokens, tokening->old_value, &err);
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
    JSON_ADD(&call->arena, &body, {"id", json_string(tokening->id)}, {"token", json_word(tokening->text)});
    if (!json_ok(&body)) {
        call_nomem(call);
        return;
    }
    call->answer.location = call_text(call, "/v1/tokens/%.*s", STR_ARG(tokening->id));
    call_answer(call, 201, body);
}

static enum code encode(struct call *call, const struct token *token, struct str *out, struct error *err)
{
    struct buf value = buf_of(64 * 1024);
    enum code rc = auth_token_encode(token, &call->arena, &value, err);
    *out = buf_keep(&value, &call->arena);
    return !rc && !out->ptr ? error_nomem(err) : rc;
}

static bool store_token(struct call *call)
{
    struct tokening *tokening = call->state;
    struct error err = {0};
    bool replaces = tokening->old_id.len > 0;
    enum code rc = encode(call, &tokening->token, &tokening->value, &err);
    if (!rc && replaces) rc = encode(call, &tokening->old, &tokening->old_value, &err);
    struct note_put puts[] = {{.space = STR("token"),
                               .key = tokening->id,
                               .value = tokening->value,
                               .expect = tokening->revoke ? NOTE_ANY : 0},
                              {.space = STR("token"),
                               .key = tokening->old_id,
                               .value = tokening->old_value,
                               .expect = tokening->old_version}};
    enum operation operation = tokening->revoke ? OPERATION_TOKEN_REVOKE : OPERATION_TOKEN_CREATE;
    if (!rc) rc = audit_call(call, operation, tokening->id, (struct str){0}, &err);
    if (!rc && replaces) rc = audit_call(call, OPERATION_TOKEN_REVOKE, tokening->old_id, (struct str){0}, &err);
    if (!rc) rc = engine_put(call->service->engine, puts, replaces ? 2 : 1, told, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

static bool make_on_engine(struct call *call)
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
    tokening->old.revoked_ms = tokening->token.created_ms;
    tokening->old.principal.revoked = true;
    return store_token(call);
}

// A name that stands in keys and in paths. The rest of a token is only shown.
static bool names_fit(const struct token_call *given)
{
    bool fit = (given->tenant.len == 0 || run_id_valid(given->tenant)) &&
               (given->pool.len == 0 || run_id_valid(given->pool)) && given->name.len <= NAME_MAX_SIZE &&
               given->audience.len <= NAME_MAX_SIZE && given->projects.count <= NAMES_MAX &&
               given->environments.count <= NAMES_MAX;
    for (size_t i = 0; fit && i < given->projects.count; i++) fit = run_id_valid(given->projects.at[i]);
    for (size_t i = 0; fit && i < given->environments.count; i++) fit = run_id_valid(given->environments.at[i]);
    return fit;
}

// A token that is made in a place is for that place, unless it says less.
static struct names narrowed(struct call *call, struct names given, struct str place)
{
    struct str *one = given.count == 0 && place.len > 0 ? ARENA_NEW(&call->arena, struct str) : NULL;
    if (!one) return given;
    *one = place;
    return (struct names){one, 1};
}

// Where it is, for those who may not look everywhere; of several places the first stands for all.
static struct str first_of(struct names names)
{
    return names.count ? names.at[0] : (struct str){0};
}

// Reads a token that is to be revoked. False: it may not be, and the call is answered.
static bool may_revoke(struct call *call, struct store *store, struct str id, struct token *out, uint64_t *version)
{
    struct error err = {0};
    struct note note = {0};
    enum code rc = store_note(store, STR("token"), id, &call->arena, &note, &err);
    if (!rc) rc = auth_token_decode(note.value, &call->arena, out, &err);
    if (rc && rc != E_NOT_FOUND) {
        call_failed(call, &err);
        return false;
    }
    *version = note.version;
    struct auth_object object = {.tenant = call->who.tenant};
    const struct principal *principal = &out->principal;
    if (!rc)
        object = (struct auth_object){.tenant = principal->tenant,
                                      .exists = true,
                                      .project = first_of(principal->projects),
                                      .environment = first_of(principal->environments),
                                      .subject = principal};
    return service_may(call, OPERATION_TOKEN_REVOKE, &object, (struct str){0});
}

static bool find_replaced(struct call *call, struct store *store)
{
    struct tokening *tokening = call->state;
    if (!may_revoke(call, store, tokening->old_id, &tokening->old, &tokening->old_version)) return false;
    if (tokening->old.principal.revoked)
        return call_problem(call, 409, "TOKEN_REVOKED", "token %.*s is revoked: nothing takes its place",
                            STR_ARG(tokening->old_id));
    return service_post(call, make_on_engine);
}

bool service_token_create(struct call *call, const struct token_call *given)
{
    if (!names_fit(given))
        return call_problem(
            call, 400, "INVALID_REQUEST",
            "tenantId, pool, projects and environments have letters, digits, '.', '_', ':' and '-', up to 128, "
            "beginning with a letter or digit");
    struct tokening *tokening = CALL_NEW(call, struct tokening);
    if (!tokening) return false;
    call->state = tokening;
    tokening->token.name = given->name;
    tokening->token.principal =
        (struct principal){.id = STR("new"),
                           .person = principal_passes_on(&call->who),
                           .tenant = given->tenant.len ? given->tenant : call->who.tenant,
                           .roles = given->roles,
                           .projects = narrowed(call, given->projects, call->place.project),
                           .environments = narrowed(call, given->environments, call->place.environment),
                           .pool = given->pool,
                           .audience = given->audience.len ? given->audience : call->who.audience,
                           .expires_ms = given->expires_ms ? given->expires_ms : call->who.expires_ms};
    struct auth_object object = {
        .tenant = tokening->token.principal.tenant, .exists = true, .subject = &tokening->token.principal};
    if (!service_may(call, OPERATION_TOKEN_CREATE, &object, (struct str){0})) return false;
    tokening->old_id = given->replaces;
    if (given->replaces.len > 0) return service_read(call, find_replaced);
    return service_post(call, make_on_engine);
}

static bool revoke_on_engine(struct call *call)
{
    struct tokening *tokening = call->state;
    tokening->token.revoked_ms = os_now().wall_ms;
    tokening->token.principal.revoked = true;
    return store_token(call);
}

static bool find_token(struct call *call, struct store *store)
{
    struct tokening *tokening = call->state;
    uint64_t ignored;
    return may_revoke(call, store, tokening->id, &tokening->token, &ignored) && service_post(call, revoke_on_engine);
}

bool service_token_revoke(struct call *call, struct str id)
{
    struct tokening *tokening = ARENA_NEW(&call->arena, struct tokening);
    if (!tokening || !(tokening->id = arena_copy(&call->arena, id)).ptr) return call_nomem(call);
    tokening->revoke = true;
    call->state = tokening;
    call->resource = tokening->id;
    return service_read(call, find_token);
}

// ---- listing. Reader thread

static struct json row_of(const struct token *token, struct arena *arena)
{
    const struct principal *who = &token->principal;
    struct json roles = json_array();
    for (unsigned role = 1; role <= ROLE_ALL; role <<= 1)
        if (who->roles & role) json_append(arena, &roles, json_word(role_word((enum role)role)));
    return JSON_OF(arena, {"id", json_copied_some(arena, token->id)}, {"name", json_copied_some(arena, token->name)},
                   {"tenantId", json_copied_some(arena, who->tenant)}, {"roles", roles},
                   {"pool", json_copied_some(arena, who->pool)}, {"audience", json_copied_some(arena, who->audience)},
                   {"projects", json_filled(json_texts(arena, who->projects.at, who->projects.count))},
                   {"environments", json_filled(json_texts(arena, who->environments.at, who->environments.count))},
                   {"createdBy", json_copied_some(arena, token->created_by)},
                   {"createdAt", json_time_some(arena, token->created_ms)},
                   {"expiresAt", json_time_some(arena, who->expires_ms)},
                   {"revokedAt", json_time_some(arena, token->revoked_ms)});
}

enum code service_token_list(struct call *call, struct store *store, struct json *items, struct error *err)
{
    enum { PAGE = 500 };
    struct str after = {0};
    struct notes notes;
    *items = json_array();
    do {
        enum code rc = store_notes(store, STR("token"), after, PAGE, &call->arena, &notes, err);
        for (size_t i = 0; !rc && i < notes.count; i++) {
            struct token token;
            rc = auth_token_decode(notes.items[i].value, &call->arena, &token, err);
            if (rc || !str_eq(token.principal.tenant, call->who.tenant)) continue;
            json_append(&call->arena, items, row_of(&token, &call->arena));
        }
        if (rc) return rc;
        if (notes.count > 0) after = notes.items[notes.count - 1].key;
    } while (notes.count > 0);
    return json_made(items, err);
}
