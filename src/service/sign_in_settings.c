// [[serve.oidc]] and what [serve.tls] says of clients: docs/format/sign-in.md.
#include "service/inside.h"

#include "auth/jwt.h"
#include "json/form.h"

enum { PROVIDERS_MAX = 16, GRANTS_MAX = 256, AUDIENCES_MAX = 16, NAMES_MAX = 100, CLIENTS_MAX = 1024, ALLOW_MAX = 16 };

static void read_seconds(struct form *form, const char *name, int64_t low, int64_t high, int64_t *ms)
{
    int64_t seconds = *ms / 1000;
    form_number(form, name, low, high, &seconds);
    *ms = seconds * 1000;
}

static void read_names(struct form *form, const char *name, struct names *out)
{
    form_texts(form, name, false, NAMES_MAX, &out->at, &out->count);
    // To the rest of the service no names are no limit: the opposite of what an empty list looks like.
    if (!form->rc && out->at && !out->count) form_fail(form, name, "is empty: leave it out to give all");
    for (size_t i = 0; !form->rc && out->at && i < out->count; i++)
        if (!run_id_valid(out->at[i])) form_fail(form, name, "must hold names: letters, digits, '.', '_', ':' and '-'");
}

static void read_roles(struct form *form, uint32_t *out)
{
    const struct str *names = NULL;
    size_t count = 0;
    form_texts(form, "roles", false, ROLE_COUNT, &names, &count);
    for (size_t i = 0; !form->rc && i < count; i++) {
        enum role role = role_parse(names[i]);
        // Those are of programs: workers have tokens or certificates.
        if (!role || role == ROLE_WORKER || role == ROLE_HOST || role == ROLE_SYSTEM)
            form_fail(form, "roles", "must be of operator, engineer, admin, auditor and platform");
        *out |= (uint32_t)role;
    }
    if (!*out) form_fail(form, NULL, "a grant needs roles");
}

static enum code read_grant(const struct json *value, struct arena *arena, struct claim_grant *out, struct error *err)
{
    struct form form;
    form_begin(&form, "oidc.grants", value, arena, err);
    if (!json_is(value, JSON_OBJECT)) return form_fail(&form, NULL, "a grant is an object");
    form_text(&form, "claim", &out->claim);
    form_text(&form, "value", &out->value);
    form_text(&form, "tenant", &out->tenant);
    form_text(&form, "tenantClaim", &out->tenant_claim);
    read_roles(&form, &out->roles);
    read_names(&form, "projects", &out->projects);
    read_names(&form, "environments", &out->environments);
    form_text(&form, "projectsClaim", &out->projects_claim);
    form_text(&form, "environmentsClaim", &out->environments_claim);
    if (!out->claim.len || !out->value.len) form_fail(&form, NULL, "a grant needs claim and value");
    if (!out->tenant.len == !out->tenant_claim.len) form_fail(&form, NULL, "a grant needs one of tenant and tenantClaim");
    if (out->tenant.len && !run_id_valid(out->tenant)) form_fail(&form, "tenant", "is no name of a tenant");
    if (out->projects.count && out->projects_claim.len) form_fail(&form, NULL, "give one of projects and projectsClaim");
    if (out->environments.count && out->environments_claim.len)
        form_fail(&form, NULL, "give one of environments and environmentsClaim");
    return form_end(&form);
}

static void read_grants(struct form *form, struct service_oidc *out)
{
    const struct json *list = form_take(form, "grants", JSON_ARRAY);
    if (!list) return;
    struct claim_grant *grants = ARENA_ARRAY(form->arena, list->count + 1, struct claim_grant);
    if (!grants) form_nomem(form);
    if (list->count > GRANTS_MAX) form_fail(form, "grants", "has more than 256 elements");
    for (uint32_t i = 0; !form->rc && i < list->count; i++)
        form->rc = read_grant(&list->items[i], form->arena, &grants[i], form->err);
    out->grants = grants;
    out->grant_count = form->rc ? 0 : list->count;
}

static void read_algorithms(struct form *form, uint32_t *out)
{
    const struct str *names = NULL;
    size_t count = 0;
    form_texts(form, "algorithms", false, JWT_ALGORITHM_COUNT, &names, &count);
    *out = names ? 0 : JWT_RS256 | JWT_PS256 | JWT_ES256 | JWT_EDDSA;
    for (size_t i = 0; !form->rc && names && i < count; i++) {
        enum jwt_algorithm one = jwt_algorithm_parse(names[i]);
        if (!one) form_fail(form, "algorithms", "must be of RS256, PS256, ES256 and EdDSA");
        *out |= (uint32_t)one;
    }
    if (!form->rc && !*out) form_fail(form, "algorithms", "is empty");
}

// "https://id.example.com:8443/realms/x": what stands before the path.
static struct str origin_of(struct str issuer)
{
    struct str rest;
    struct str scheme = str_cut(issuer, '/', &rest);
    if (rest.len == 0 || rest.ptr[0] != '/') return (struct str){0};
    return str_slice(issuer, 0, scheme.len + 1 + str_find(rest, '/', 1));
}

// Its documents come from its own place, and from where else `allow` says; private addresses only when that is said, too.
static void read_policy(struct form *form, struct service_oidc *out)
{
    struct arena *arena = form->arena;
    const struct json *more = form_take(form, "allow", JSON_ARRAY), *addresses = form_take(form, "addresses", JSON_ARRAY);
    bool private = false;
    struct str ca = {0};
    form_flag(form, "allowPrivate", &private);
    form_path(form, "caFile", &ca);
    if (form->rc) return;
    struct str place = arena_format(arena, "%.*s/", STR_ARG(origin_of(out->issuer)));
    struct json rule = JSON_OF(arena, {"uri", json_text_made(place)});
    if (private) JSON_ADD(arena, &rule, {"allowPrivate", json_bool(true)});
    if (addresses) JSON_ADD(arena, &rule, {"addresses", *addresses});
    struct json rules = json_array();
    json_append(arena, &rules, rule);
    for (uint32_t i = 0; more && i < more->count && i < ALLOW_MAX; i++) json_append(arena, &rules, more->items[i]);
    struct json *policy = ARENA_NEW(arena, struct json);
    if (!policy) {
        form_nomem(form);
        return;
    }
    *policy = JSON_OF(arena, {"allow", rules}, {"caFile", json_some(ca)});
    if (!json_ok(policy))
        form_nomem(form);
    else
        form->rc = fetch_policy_parse(policy, arena, &out->policy, form->err);
}

static void read_audiences(struct form *form, struct names *out)
{
    if (json_is(json_key(form->object, "audience"), JSON_ARRAY)) {
        form_texts(form, "audience", false, AUDIENCES_MAX, &out->at, &out->count);
        return;
    }
    struct str *one = ARENA_NEW(form->arena, struct str);
    if (!one) {
        form_nomem(form);
        return;
    }
    form_text(form, "audience", one);
    *out = (struct names){one, one->len > 0};
}

static enum code read_provider(const struct json *value, struct arena *arena, struct service_oidc *out, struct error *err)
{
    static const char *const tokens[] = {"id_token", "access_token", NULL};
    struct form form;
    int token = 0;
    bool insecure = false;
    *out = (struct service_oidc){.scopes = STR("openid profile offline_access"), .skew_ms = 60000, .max_age_ms = 86400000,
                                 .refresh_ms = 3600000, .stale_ms = 86400000, .unknown_ms = 10000};
    form_begin(&form, "oidc", value, arena, err);
    if (!json_is(value, JSON_OBJECT)) return form_fail(&form, NULL, "a provider is an object");
    form_text(&form, "issuer", &out->issuer);
    form_text(&form, "clientId", &out->client);
    form_text(&form, "scopes", &out->scopes);
    form_choice(&form, "token", tokens, &token);
    form_flag(&form, "insecure", &insecure);
    out->access_token = token == 1;
    read_audiences(&form, &out->audiences);
    read_algorithms(&form, &out->algorithms);
    read_seconds(&form, "skewSeconds", 0, 600, &out->skew_ms);
    read_seconds(&form, "maxAgeSeconds", 1, 31536000, &out->max_age_ms);
    read_seconds(&form, "refreshSeconds", 1, 86400, &out->refresh_ms);
    read_seconds(&form, "staleSeconds", 1, 604800, &out->stale_ms);
    read_seconds(&form, "unknownKeySeconds", 1, 3600, &out->unknown_ms);
    read_grants(&form, out);
    bool http = str_starts(out->issuer, STR("http://"));
    if (!form.rc && (!(str_starts(out->issuer, STR("https://")) || http) || out->issuer.len > JWT_ISSUER_MAX))
        form_fail(&form, NULL, "needs an issuer: https://HOST and perhaps a path, as its tokens have it in iss");
    if (http && !insecure) form_fail(&form, "issuer", "is not https: a machine on the way could give other keys (insecure = true)");
    if (!out->audiences.count) form_fail(&form, NULL, "needs an audience: tokens for others are not for us");
    if (!form.rc && out->stale_ms < out->refresh_ms) form_fail(&form, NULL, "staleSeconds is less than refreshSeconds");
    if (!form.rc) read_policy(&form, out);
    return form_end(&form);
}

enum code service_oidc_parse(const struct json *value, struct arena *arena, struct service_settings *out,
                             struct error *err)
{
    struct form form;
    form_begin(&form, "oidc", NULL, arena, err);
    form.object = value; // errors name its place; it has no members of its own
    if (!json_is(value, JSON_ARRAY) || value->count > PROVIDERS_MAX)
        return form_fail(&form, NULL, "must be a list of at most 16 providers: [[serve.oidc]]");
    struct service_oidc *list = ARENA_ARRAY(arena, value->count + 1, struct service_oidc);
    enum code rc = list ? OK : error_nomem(err);
    for (uint32_t i = 0; !rc && i < value->count; i++) {
        rc = read_provider(&value->items[i], arena, &list[i], err);
        for (uint32_t k = 0; !rc && k < i; k++)
            if (str_eq(list[k].issuer, list[i].issuer)) rc = form_fail(&form, NULL, "an issuer is there twice");
    }
    out->oidc = list;
    out->oidc_count = rc ? 0 : value->count;
    return rc;
}

// ---- certificates of workers

static enum code read_client(const struct json *value, struct arena *arena, struct service_certificate *out,
                             struct error *err)
{
    struct form form;
    form_begin(&form, "tls.clients", value, arena, err);
    if (!json_is(value, JSON_OBJECT)) return form_fail(&form, NULL, "a client is an object");
    form_text(&form, "uri", &out->uri);
    form_text(&form, "name", &out->name);
    form_text(&form, "tenant", &out->tenant);
    form_text(&form, "pool", &out->pool);
    if (!out->uri.len == !out->name.len) form_fail(&form, NULL, "a client needs one of uri and name");
    if (!run_id_valid(out->tenant) || !run_id_valid(out->pool)) form_fail(&form, NULL, "a client needs tenant and pool");
    return form_end(&form);
}

void service_clients_read(struct form *form, struct service_settings *out)
{
    static const char *const modes[] = {"optional", "required", NULL};
    const struct json *list = form_take(form, "clients", JSON_ARRAY);
    int mode = 0;
    form_path(form, "clientCa", &out->tls_client_ca);
    form_path(form, "clientCrl", &out->tls_client_crl);
    form_choice(form, "clientCertificate", modes, &mode);
    out->tls_client_required = mode == 1;
    if (!out->tls_client_ca.len && (list || mode || out->tls_client_crl.len))
        form_fail(form, NULL, "certificates of clients need clientCa");
    if (!list || form->rc) return;
    struct service_certificate *clients = ARENA_ARRAY(form->arena, list->count + 1, struct service_certificate);
    if (!clients) form_nomem(form);
    if (list->count > CLIENTS_MAX) form_fail(form, "clients", "has more than 1024 elements");
    for (uint32_t i = 0; !form->rc && i < list->count; i++)
        form->rc = read_client(&list->items[i], form->arena, &clients[i], form->err);
    out->clients = clients;
    out->client_count = form->rc ? 0 : list->count;
}

bool service_certificate_grant(const struct service *service, struct str uri, struct str name, int64_t expires_ms,
                               struct arena *arena, struct principal *out)
{
    const struct service_settings *settings = &service->settings;
    for (size_t i = 0; i < settings->client_count; i++) {
        const struct service_certificate *one = &settings->clients[i];
        if (!(one->uri.len ? str_eq(one->uri, uri) : str_eq(one->name, name))) continue;
        struct str id = one->uri.len ? arena_copy(arena, uri) : arena_format(arena, "CN=%.*s", STR_ARG(name));
        if (!id.ptr) return false;
        *out = (struct principal){.id = id,
                                  .tenant = one->tenant,
                                  .pool = one->pool,
                                  .roles = ROLE_WORKER,
                                  .expires_ms = expires_ms,
                                  .is_foreign = true};
        return true;
    }
    return false;
}
