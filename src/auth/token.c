// Tokens: their text, their hash, and the note that is kept of them.
#include "auth/internal.h"

#include <string.h>

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
static const char prefix[] = "cairn_";
enum { PREFIX_SIZE = sizeof(prefix) - 1, ID_BYTES = 10, SECRET_BYTES = 32 };
_Static_assert(ID_BYTES + SECRET_BYTES == TOKEN_ENTROPY, "all of the entropy is used");

void base32_write(const uint8_t *bytes, size_t count, char *out)
{
    uint32_t bits = 0, held = 0;
    for (size_t i = 0; i < count; i++) {
        bits = (bits << 8 | bytes[i]) & 0xFFFF;
        for (held += 8; held >= 5; held -= 5) *out++ = digits[bits >> (held - 5) & 31];
    }
    if (held) *out = digits[bits << (5 - held) & 31];
}

static int digit_value(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

// Nothing but digits of it.
static bool base32_text(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (digit_value(text.ptr[i]) < 0) return false;
    return true;
}

bool base32_read(struct str text, uint8_t *bytes, size_t count)
{
    uint32_t bits = 0, held = 0;
    size_t done = 0;
    if (text.len != (count * 8 + 4) / 5 || !base32_text(text)) return false;
    for (size_t i = 0; i < text.len; i++) {
        bits = (bits << 5 | (uint32_t)digit_value(text.ptr[i])) & 0xFFFF;
        held += 5;
        if (held < 8) continue;
        held -= 8;
        bytes[done++] = (uint8_t)(bits >> held);
    }
    return done == count && !(bits & ((1u << held) - 1));
}

void auth_token_make(const uint8_t entropy[TOKEN_ENTROPY], char text[TOKEN_SIZE + 1], struct str *id,
                     struct digest *secret)
{
    memcpy(text, prefix, PREFIX_SIZE);
    base32_write(entropy, ID_BYTES, text + PREFIX_SIZE);
    text[PREFIX_SIZE + TOKEN_ID_SIZE] = '_';
    base32_write(entropy + ID_BYTES, SECRET_BYTES, text + PREFIX_SIZE + TOKEN_ID_SIZE + 1);
    text[TOKEN_SIZE] = '\0';
    INVARIANT(auth_token_parse((struct str){text, TOKEN_SIZE}, id, secret));
}

bool auth_token_parse(struct str text, struct str *id, struct digest *secret)
{
    uint8_t bytes[SECRET_BYTES];
    if (text.len != TOKEN_SIZE || !str_starts(text, str_from(prefix))) return false;
    struct str name = str_slice(text, PREFIX_SIZE, PREFIX_SIZE + TOKEN_ID_SIZE);
    struct str hidden = str_slice(text, TOKEN_SIZE - TOKEN_SECRET_SIZE, TOKEN_SIZE);
    if (text.ptr[PREFIX_SIZE + TOKEN_ID_SIZE] != '_' || !base32_text(name)) return false;
    if (!base32_read(hidden, bytes, sizeof(bytes))) return false;
    *id = name;
    *secret = sha256(hidden);
    return true;
}

struct str auth_bearer(struct str header)
{
    static const char scheme[] = "bearer ";
    enum { SCHEME_SIZE = sizeof(scheme) - 1 };
    if (header.len <= SCHEME_SIZE) return STR("");
    for (size_t i = 0; i < SCHEME_SIZE; i++) {
        char c = header.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + 32) : c) != scheme[i]) return STR("");
    }
    return str_trim(str_slice(header, SCHEME_SIZE, header.len));
}

bool digest_same(const struct digest *a, const struct digest *b)
{
    volatile uint8_t difference = 0; // volatile: the compiler must not leave the loop early
    for (size_t i = 0; i < SHA256_SIZE; i++) difference = (uint8_t)(difference | (a->b[i] ^ b->b[i]));
    return difference == 0;
}

bool auth_token_matches(const struct token *stored, const struct digest *presented)
{
    static const struct digest nobody; // no secret is known to have it as its hash
    bool same = digest_same(stored ? &stored->secret : &nobody, presented);
    return same && stored != NULL;
}

// ---- the note: members in the order that the canonical form has
static struct json operations_json(struct arena *arena, const struct principal *principal)
{
    struct json list = json_array();
    for (size_t i = 0; i < principal->operation_count; i++)
        json_append(arena, &list, json_word(operation_name(principal->operations[i])));
    return json_filled(list);
}

static struct json roles_json(struct arena *arena, uint32_t roles)
{
    struct json list = json_array();
    for (unsigned i = 0; i < ROLE_COUNT; i++)
        if (roles & 1u << i) json_append(arena, &list, json_word(role_name((enum role)(1u << i))));
    return list;
}

struct json names_json(struct arena *arena, struct names names)
{
    return json_filled(json_texts(arena, names.at, names.count));
}

enum code auth_token_encode(const struct token *token, struct arena *arena, struct buf *out, struct error *err)
{
    const struct principal *who = &token->principal;
    struct json object = JSON_OF(
        arena, {"audience", json_some(who->audience)}, {"createdAt", json_time_some(arena, token->created_ms)},
        {"createdBy", json_some(token->created_by)}, {"environments", names_json(arena, who->environments)},
        {"expiresAt", json_time_some(arena, who->expires_ms)}, {"id", json_string(token->id)},
        {"name", json_some(token->name)}, {"operations", operations_json(arena, who)}, {"person", json_some(who->person)},
        {"pool", json_some(who->pool)},
        {"projects", names_json(arena, who->projects)}, {"revokedAt", json_time_some(arena, token->revoked_ms)},
        {"roles", roles_json(arena, who->roles)}, {"secretSha256", json_digest(arena, &token->secret)},
        {"tenantId", json_some(who->tenant)});
    if (!json_ok(&object)) return error_nomem(err);
    json_canon(out, &object);
    return buf_ok(out) ? OK : error_set(err, E_LIMIT, "token %.*s does not fit its buffer", STR_ARG(token->id));
}

// Strings of an array, as many as there are; an empty array is not what encode writes.
static struct names take_names(struct reading *reading, const char *key)
{
    const struct json *array = auth_take(reading, key, JSON_ARRAY);
    if (!array) return (struct names){0};
    struct str *names = ARENA_ARRAY(reading->arena, array->count + 1, struct str);
    reading->memory = reading->memory && names;
    if (!names) return (struct names){0};
    for (uint32_t i = 0; i < array->count; i++) {
        names[i] = json_text(&array->items[i]);
        if (!names[i].len) reading->fits = false;
    }
    if (!array->count) reading->fits = false;
    return (struct names){names, array->count};
}

static void take_operations(struct reading *reading, struct principal *principal)
{
    struct names names = take_names(reading, "operations");
    if (!names.count) return;
    enum operation *operations = ARENA_ARRAY(reading->arena, names.count, enum operation);
    reading->memory = reading->memory && operations;
    if (!operations) return;
    for (size_t i = 0; i < names.count; i++)
        if (!operation_parse(names.at[i], &operations[i])) reading->fits = false;
    principal->operations = operations;
    principal->operation_count = names.count;
}

static uint32_t take_roles(struct reading *reading)
{
    struct names names = take_names(reading, "roles");
    uint32_t roles = 0;
    for (size_t i = 0; i < names.count; i++) {
        enum role role = role_parse(names.at[i]);
        if (!role) reading->fits = false;
        roles |= (uint32_t)role;
    }
    return roles;
}

static void take_token(struct reading *reading, struct token *token)
{
    struct principal *who = &token->principal;
    who->audience = auth_take_text(reading, "audience");
    token->created_ms = auth_take_time(reading, "createdAt");
    token->created_by = auth_take_text(reading, "createdBy");
    who->environments = take_names(reading, "environments");
    who->expires_ms = auth_take_time(reading, "expiresAt");
    token->id = who->id = auth_take_text(reading, "id");
    token->name = auth_take_text(reading, "name");
    take_operations(reading, who);
    who->person = auth_take_text(reading, "person");
    who->pool = auth_take_text(reading, "pool");
    who->projects = take_names(reading, "projects");
    token->revoked_ms = auth_take_time(reading, "revokedAt");
    who->revoked = token->revoked_ms != 0;
    who->roles = take_roles(reading);
    token->secret = auth_take_digest(reading, "secretSha256");
    who->tenant = auth_take_text(reading, "tenantId");
    if (!token->id.len || !who->roles) reading->fits = false;
}

enum code auth_token_decode(struct str bytes, struct arena *arena, struct token *out, struct error *err)
{
    struct json object;
    struct token token = {0};
    enum code rc = json_parse(bytes, NULL, arena, &object, NULL);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) return error_set(err, E_CORRUPT, "a stored token is not JSON");
    struct reading reading = auth_reading_of(&object, arena);
    if (reading.fits) take_token(&reading, &token);
    if (!reading.memory) return error_nomem(err);
    if (!auth_reading_done(&reading)) return error_set(err, E_CORRUPT, "a stored token is not in its form");
    *out = token;
    return OK;
}
