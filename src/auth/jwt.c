// A token's text, its claims, and what they give.
#include "auth/jwt.h"

#include <string.h>

#define SECONDS_MAX 1e11 // of a NumericDate: the year 5138

// ---- base64url

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

struct str base64url_read(struct str text, struct arena *arena)
{
    char *out = text.len % 4 != 1 ? arena_alloc(arena, text.len / 4 * 3 + 3) : NULL;
    size_t used = 0;
    uint32_t bits = 0;
    if (!out) return (struct str){0};
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);
        if (value < 0) return (struct str){0};
        bits = bits << 6 | (uint32_t)value;
        if (i % 4) out[used++] = (char)(bits >> (6 - i % 4 * 2));
    }
    // Two texts for the same bytes would be two tokens of one signature.
    uint32_t left = text.len % 4 == 2 ? bits & 15 : text.len % 4 == 3 ? bits & 3 : 0;
    return left == 0 ? (struct str){out, used} : (struct str){0};
}

// ---- reading

static enum code deny(struct error *err, const char *why)
{
    return error_set(err, E_DENIED, "%s", why);
}

static bool split(struct str text, struct str parts[3])
{
    struct str rest = text;
    size_t dots = 0;
    for (size_t i = 0; i < text.len; i++) dots += text.ptr[i] == '.';
    if (dots != 2) return false;
    parts[0] = str_cut(rest, '.', &rest);
    parts[1] = str_cut(rest, '.', &rest);
    parts[2] = rest;
    return true;
}

bool jwt_is_like(struct str text)
{
    struct str parts[3];
    return text.len <= JWT_SIZE_MAX && split(text, parts) && parts[0].len && parts[1].len;
}

// Goes into logs, audit records and answers as it is.
static bool is_plain(struct str text, size_t max)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x21 || (unsigned char)text.ptr[i] > 0x7E) return false;
    return text.len > 0 && text.len <= max;
}

static enum code read_object(struct str part, struct arena *arena, struct json *out, struct error *err)
{
    static const struct json_limits limits = {JWT_SIZE_MAX, 8, 2048, JWT_SIZE_MAX, 256};
    struct str text = base64url_read(part, arena);
    if (!text.ptr || text.len == 0) return deny(err, "a part of the token is not base64url");
    enum code rc = json_parse(text, &limits, arena, out, NULL);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc || !json_is(out, JSON_OBJECT)) return deny(err, "a part of the token is not a JSON object, or has a member twice");
    return OK;
}

static bool type_is_known(struct str type)
{
    return STR_AMONG(type, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt");
}

static enum code read_header(const struct json *header, struct jwt *out, struct error *err)
{
    static const char *const refused[] = {"crit", "jwk", "jku", "x5u", "x5c", "zip", "enc", "b64"};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
        if (json_key(header, refused[i])) return error_set(err, E_DENIED, "the header has \"%s\"", refused[i]);
    const struct json *type = json_key(header, "typ");
    out->algorithm = jwt_algorithm_parse(json_text(json_key(header, "alg")));
    out->kid = json_text(json_key(header, "kid"));
    if (!out->algorithm) return deny(err, "the algorithm (alg) is none that is understood here");
    if (!is_plain(out->kid, JWT_NAME_MAX)) return deny(err, "the header names no key (kid) that could be one");
    if (type && !type_is_known(json_text(type))) return deny(err, "the token is of another type (typ)");
    return OK;
}

enum code jwt_read(struct str text, struct arena *arena, struct jwt *out, struct error *err)
{
    struct str parts[3];
    struct json header;
    *out = (struct jwt){0};
    if (text.len > JWT_SIZE_MAX) return deny(err, "the token is too large");
    if (!split(text, parts)) return deny(err, "the token has not three parts");
    enum code rc = read_object(parts[0], arena, &header, err);
    if (!rc) rc = read_header(&header, out, err);
    if (!rc) rc = read_object(parts[1], arena, &out->claims, err);
    if (rc) return rc;
    out->signature = base64url_read(parts[2], arena);
    if (!out->signature.ptr || out->signature.len == 0) return deny(err, "there is no signature");
    out->signed_text = str_slice(text, 0, parts[0].len + 1 + parts[1].len);
    out->issuer = json_text(json_key(&out->claims, "iss"));
    out->subject = json_text(json_key(&out->claims, "sub"));
    if (!is_plain(out->issuer, JWT_ISSUER_MAX)) return deny(err, "there is no issuer (iss)");
    if (!is_plain(out->subject, JWT_NAME_MAX)) return deny(err, "there is no subject (sub) in printable ASCII");
    return OK;
}

// ---- checking

static bool names_have(struct names names, struct str name)
{
    for (size_t i = 0; i < names.count; i++)
        if (str_eq(names.at[i], name)) return true;
    return false;
}

static enum code check_audience(const struct jwt *jwt, const struct jwt_rules *rules, struct error *err)
{
    const struct json *audience = json_key(&jwt->claims, "aud");
    struct str party = json_text(json_key(&jwt->claims, "azp"));
    bool ours = names_have(rules->audiences, json_text(audience));
    uint32_t count = json_is(audience, JSON_ARRAY) ? audience->count : 1;
    for (uint32_t i = 0; json_is(audience, JSON_ARRAY) && i < count; i++) {
        if (!json_is(&audience->items[i], JSON_STRING)) return deny(err, "the audience (aud) is not a list of texts");
        ours = ours || names_have(rules->audiences, json_text(&audience->items[i]));
    }
    if (!ours) return deny(err, "the token is for another audience (aud)");
    if (count > 1 && (!rules->client.len || !str_eq(party, rules->client)))
        return deny(err, "the token is for several, and we are not who asked for it (azp)");
    return OK;
}

// Milliseconds of a NumericDate. False: it is none.
static bool time_of(const struct jwt *jwt, const char *name, int64_t *ms)
{
    double seconds;
    const struct json *value = json_key(&jwt->claims, name);
    if (!value || !json_is_number(value) || !json_double(value, &seconds) || seconds < 0 || seconds > SECONDS_MAX) return false;
    *ms = (int64_t)(seconds * 1000);
    return true;
}

static enum code check_times(struct jwt *jwt, const struct jwt_rules *rules, int64_t now_ms, struct error *err)
{
    int64_t expires, begins = 0, issued = 0;
    if (!time_of(jwt, "exp", &expires)) return deny(err, "it does not say when it expires (exp)");
    if (json_key(&jwt->claims, "nbf") && !time_of(jwt, "nbf", &begins)) return deny(err, "its beginning (nbf) is no time");
    if (!time_of(jwt, "iat", &issued)) return deny(err, "it does not say when it was issued (iat)");
    jwt->expires_ms = expires + rules->skew_ms;
    if (rules->max_age_ms && issued + rules->max_age_ms + rules->skew_ms < jwt->expires_ms)
        jwt->expires_ms = issued + rules->max_age_ms + rules->skew_ms;
    if (now_ms >= expires + rules->skew_ms) return deny(err, "it has expired (exp)");
    if (now_ms + rules->skew_ms < begins) return deny(err, "it is not good yet (nbf)");
    if (now_ms + rules->skew_ms < issued) return deny(err, "it was issued in the future (iat)");
    return now_ms >= jwt->expires_ms ? deny(err, "it is older than may be (iat)") : OK;
}

enum code jwt_check(struct jwt *jwt, const struct jwks *jwks, const struct jwt_rules *rules, int64_t now_ms,
                    struct error *err)
{
    const struct jwk *key = NULL;
    if (!str_eq(jwt->issuer, rules->issuer)) return deny(err, "it is of another issuer (iss)");
    if (!(rules->algorithms & (uint32_t)jwt->algorithm)) return deny(err, "its algorithm (alg) is not allowed");
    for (size_t i = 0; i < jwks->count; i++)
        if (str_eq(jwks->keys[i].kid, jwt->kid)) key = &jwks->keys[i];
    if (!key) return error_set(err, E_NOT_FOUND, "there is no key of its name (kid)");
    if (!(key->algorithms & (uint32_t)jwt->algorithm)) return deny(err, "its key is for another algorithm (alg)");
    if (!jwt_signature_fits(jwt, key)) return deny(err, "its signature does not fit");
    enum code rc = check_audience(jwt, rules, err);
    return rc ? rc : check_times(jwt, rules, now_ms, err);
}

// ---- grants

// A claim by its whole name, which may have dots in it; then by the names between the dots.
static const struct json *claim_of(const struct jwt *jwt, struct str name)
{
    const struct json *found = json_get(&jwt->claims, name);
    return found ? found : json_at(&jwt->claims, name);
}

static bool claim_has(const struct json *claim, struct str value)
{
    if (json_is(claim, JSON_STRING)) return str_eq(json_text(claim), value);
    for (uint32_t i = 0; json_is(claim, JSON_ARRAY) && i < claim->count; i++)
        if (json_is(&claim->items[i], JSON_STRING) && str_eq(json_text(&claim->items[i]), value)) return true;
    return false;
}

// As names of tenants, projects and environments are written everywhere.
static bool is_name(struct str text)
{
    if (text.len == 0 || text.len > 128 || !char_is_alnum(text.ptr[0])) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!char_is_alnum(text.ptr[i]) && str_find(STR("._:-"), text.ptr[i], 0) == 4) return false;
    return true;
}

static enum code names_of(const struct jwt *jwt, struct str claim, struct arena *arena, struct names *out,
                          struct error *err)
{
    if (!claim.len) return OK;
    const struct json *value = claim_of(jwt, claim);
    const struct json *items = json_is(value, JSON_ARRAY) ? value->items : value;
    uint32_t count = json_is(value, JSON_ARRAY) ? value->count : value ? 1 : 0;
    struct str *names = ARENA_ARRAY(arena, count + 1, struct str);
    if (!names) return error_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = json_text(&items[i]);
        if (!is_name(names[i])) return error_set(err, E_DENIED, "the claim %.*s holds what is no name", STR_ARG(claim));
    }
    if (!count) return error_set(err, E_DENIED, "the claim %.*s is missing", STR_ARG(claim));
    *out = (struct names){names, count};
    return OK;
}

static enum code give(const struct jwt *jwt, const struct claim_grant *grant, struct arena *arena,
                      struct principal *out, struct error *err)
{
    *out = (struct principal){.tenant = grant->tenant,
                              .roles = grant->roles,
                              .projects = grant->projects,
                              .environments = grant->environments,
                              .expires_ms = jwt->expires_ms,
                              .is_foreign = true};
    if (grant->tenant_claim.len) {
        out->tenant = json_text(claim_of(jwt, grant->tenant_claim));
        if (!is_name(out->tenant))
            return error_set(err, E_DENIED, "the claim %.*s is missing, or no name of a tenant", STR_ARG(grant->tenant_claim));
    }
    enum code rc = names_of(jwt, grant->projects_claim, arena, &out->projects, err);
    if (!rc) rc = names_of(jwt, grant->environments_claim, arena, &out->environments, err);
    if (rc) return rc;
    char *id = arena_alloc(arena, jwt->issuer.len + 1 + jwt->subject.len);
    if (!id) return error_nomem(err);
    memcpy(id, jwt->issuer.ptr, jwt->issuer.len);
    id[jwt->issuer.len] = '#';
    memcpy(id + jwt->issuer.len + 1, jwt->subject.ptr, jwt->subject.len);
    out->id = (struct str){id, jwt->issuer.len + 1 + jwt->subject.len};
    return OK;
}

enum code claims_grant(const struct jwt *jwt, const struct claim_grant *grants, size_t count, struct arena *arena,
                       struct principal *out, struct error *err)
{
    struct buf looked SCOPED(buf_release) = buf_of(1024);
    for (size_t i = 0; i < count; i++) {
        const struct json *claim = claim_of(jwt, grants[i].claim);
        if (claim_has(claim, grants[i].value)) return give(jwt, &grants[i], arena, out, err);
        buf_printf(&looked, "%s%.*s%s", i ? ", " : "", STR_ARG(grants[i].claim), claim ? "" : " (missing)");
    }
    enum code rc = count ? error_set(err, E_DENIED, "no grant fits its claims; looked at: %.*s", (int)looked.len, looked.ptr)
                         : deny(err, "there are no grants for this issuer");
    return rc;
}
