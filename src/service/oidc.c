// People who sign in elsewhere: keys of their identity providers, and who a token of them stands for.
//
//   thread: discovery ─▶ jwks_uri ─▶ keys       net thread: token ─▶ provider by `iss` ─▶ key by `kid` ─▶ claims ─▶ principal
//
//  O1 Nobody waits for a provider: keys are read on a thread of their own, and a request finds them here or is refused.
//  O2 A name of a key that is not known makes the thread read the set again, once in `unknown_ms`, however many ask.
//  O3 Keys that could not be read again are good for `stale_ms` since they were read, and then for nothing.
//  O4 A provider is who its document says it is: the issuer there must be the configured one, letter for letter.
#include "service/inside.h"

#include "auth/jwt.h"

#include <stdlib.h>

enum { RETRY_MS = 1000, RETRY_MAX_MS = 30000, DOCUMENT_MAX = 256 * 1024 };

struct oidc_provider {
    const struct service_oidc *settings;
    struct jwks jwks; // with memory, read_ms, tried_ms: under the lock
    struct arena memory;
    int64_t read_ms;  // monotonic; 0 = never
    int64_t tried_ms; // monotonic: the last reading began; 0 = never
    bool wanted;      // a name of a key was not known. Atomic
    bool reading;     // now: what is not known yet may be known in a moment. Under the lock
    int64_t retry_ms; // the thread's
};

struct oidc {
    struct feed_thread thread;
    pthread_rwlock_t lock;
    struct oidc_provider *providers;
    size_t count;
};

static bool stopped(void *context)
{
    return feed_thread_stopped(&((struct oidc *)context)->thread);
}

// ---- the thread: reading keys

static enum code get(struct oidc *oidc, const struct oidc_provider *provider, struct str uri, struct arena *arena,
                     struct str *body, struct error *err)
{
    struct fetch_answer answer;
    struct fetch_call call = {.uri = uri, .body_max = DOCUMENT_MAX, .stopped = stopped, .stop_context = oidc};
    enum code rc = fetch_call(provider->settings->policy, &call, arena, &answer, err);
    if (rc) return rc;
    if (answer.status != 200) return error_set(err, E_IO, "%.*s: status %d", STR_ARG(uri), answer.status);
    *body = answer.body;
    return OK;
}

static enum code find_keys(struct oidc *oidc, const struct oidc_provider *provider, struct arena *arena, struct str *uri,
                           struct error *err)
{
    struct str issuer = provider->settings->issuer, body;
    struct json document;
    if (str_ends(issuer, STR("/"))) issuer.len--;
    struct str place = arena_format(arena, "%.*s/.well-known/openid-configuration", STR_ARG(issuer));
    if (!place.ptr) return error_nomem(err);
    enum code rc = get(oidc, provider, place, arena, &body, err);
    if (!rc) rc = json_parse(body, NULL, arena, &document, err);
    if (rc) return rc;
    if (!str_eq(json_text(json_key(&document, "issuer")), provider->settings->issuer))
        return error_set(err, E_DENIED, "its document names another issuer");
    *uri = json_text(json_key(&document, "jwks_uri"));
    return uri->len ? OK : error_set(err, E_INVALID, "its document has no jwks_uri");
}

static enum code read_keys(struct oidc *oidc, struct oidc_provider *provider, struct error *err)
{
    struct str uri = {0}, body = {0};
    struct jwks jwks = {0};
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, 16 << 20);
    struct arena memory SCOPED(arena_release) = arena_of(16 * 1024, 8 << 20);
    int64_t began = os_now().mono_ms;
    enum code rc = find_keys(oidc, provider, &arena, &uri, err);
    if (!rc) rc = get(oidc, provider, uri, &arena, &body, err);
    if (!rc) rc = jwks_parse(body, &memory, &jwks, err);
    // What the provider has published holds, also when no person can sign in by it: its old keys may have been stolen.
    if (!rc && (jwks.ignored || !jwks.count))
        os_log(LOG_WARN, "%zu keys of an identity provider cannot be used, %zu can issuer=%.*s", jwks.ignored, jwks.count,
               STR_ARG(provider->settings->issuer));
    if (!rc) {
        pthread_rwlock_wrlock(&oidc->lock);
        struct jwks old = provider->jwks;
        struct arena old_memory = provider->memory;
        provider->jwks = jwks;
        provider->memory = memory;
        provider->read_ms = began;
        pthread_rwlock_unlock(&oidc->lock);
        jwks = old;
        memory = old_memory;
    }
    jwks_release(&jwks);
    return rc;
}

// When its keys are to be read: monotonic.
static int64_t due_of(struct oidc *oidc, struct oidc_provider *provider)
{
    const struct service_oidc *settings = provider->settings;
    pthread_rwlock_rdlock(&oidc->lock);
    int64_t due = provider->tried_ms + provider->retry_ms;
    if (provider->read_ms && provider->read_ms >= provider->tried_ms) due = provider->read_ms + settings->refresh_ms;
    if (!provider->tried_ms) due = 0;
    int64_t asked = provider->tried_ms + settings->unknown_ms;
    if (__atomic_load_n(&provider->wanted, __ATOMIC_ACQUIRE) && asked < due) due = asked;
    pthread_rwlock_unlock(&oidc->lock);
    return due;
}

static void look_at(struct oidc *oidc, struct oidc_provider *provider)
{
    struct error err = {0};
    pthread_rwlock_wrlock(&oidc->lock);
    provider->tried_ms = os_now().mono_ms;
    provider->reading = true;
    __atomic_store_n(&provider->wanted, false, __ATOMIC_RELEASE);
    pthread_rwlock_unlock(&oidc->lock);
    enum code rc = read_keys(oidc, provider, &err);
    pthread_rwlock_wrlock(&oidc->lock);
    provider->reading = false;
    pthread_rwlock_unlock(&oidc->lock);
    if (!rc) {
        provider->retry_ms = RETRY_MS;
        os_log(LOG_INFO, "keys of an identity provider read issuer=%.*s", STR_ARG(provider->settings->issuer));
        return;
    }
    int64_t most = provider->settings->refresh_ms < RETRY_MAX_MS ? provider->settings->refresh_ms : RETRY_MAX_MS;
    provider->retry_ms = provider->retry_ms * 2 < most ? provider->retry_ms * 2 : most;
    if (rc != E_CANCELLED)
        os_log(LOG_WARN, "keys of an identity provider not read, tried again later issuer=%.*s why=\"%s\"",
               STR_ARG(provider->settings->issuer), err.message);
}

static void *oidc_thread(void *context)
{
    struct oidc *oidc = context;
    while (!stopped(oidc)) {
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < oidc->count && !stopped(oidc); i++) {
            if (due_of(oidc, &oidc->providers[i]) <= os_now().mono_ms) look_at(oidc, &oidc->providers[i]);
            int64_t due = due_of(oidc, &oidc->providers[i]);
            if (due < next) next = due;
        }
        int64_t wait = next - os_now().mono_ms;
        if (wait > 0) feed_thread_rest(&oidc->thread, wait);
    }
    return NULL;
}

// ---- tokens. Any thread

static enum code keys_missing(struct oidc *oidc, struct oidc_provider *provider, int64_t now_ms, bool ever, struct error *err)
{
    if (!ever) return error_set(err, E_TIMEOUT, "the keys of the issuer have not been read yet");
    if (!provider->reading && now_ms - provider->tried_ms < provider->settings->unknown_ms)
        return error_set(err, E_DENIED, "there is no key of its name (kid)");
    if (!provider->reading && !__atomic_exchange_n(&provider->wanted, true, __ATOMIC_ACQ_REL)) feed_thread_wake(&oidc->thread);
    return error_set(err, E_TIMEOUT, "there is no key of its name (kid) yet");
}

static enum code check(struct oidc *oidc, struct oidc_provider *provider, struct jwt *jwt, struct error *err)
{
    const struct service_oidc *settings = provider->settings;
    int64_t now_ms = os_now().mono_ms;
    struct jwt_rules rules = {.issuer = settings->issuer,
                              .audiences = settings->audiences,
                              .client = settings->client,
                              .algorithms = settings->algorithms,
                              .skew_ms = settings->skew_ms,
                              .max_age_ms = settings->max_age_ms};
    pthread_rwlock_rdlock(&oidc->lock);
    enum code rc = E_NOT_FOUND;
    bool ever = provider->read_ms > 0;
    if (ever && now_ms - provider->read_ms > settings->stale_ms)
        rc = error_set(err, E_DENIED, "expired JWKS: the keys of the issuer could not be read again in time");
    else if (ever)
        rc = jwt_check(jwt, &provider->jwks, &rules, os_now().wall_ms, err);
    if (rc == E_NOT_FOUND) rc = keys_missing(oidc, provider, now_ms, ever, err);
    pthread_rwlock_unlock(&oidc->lock);
    return rc;
}

enum code oidc_authenticate(struct service *service, struct str token, struct arena *arena, struct principal *out,
                            struct error *err)
{
    struct oidc *oidc = service->oidc;
    struct jwt jwt;
    if (!oidc || !jwt_is_like(token)) return error_set(err, E_DENIED, "%s", "");
    enum code rc = jwt_read(token, arena, &jwt, err);
    if (rc) return rc;
    for (size_t i = 0; i < oidc->count; i++) {
        struct oidc_provider *provider = &oidc->providers[i];
        const struct service_oidc *settings = provider->settings;
        if (!str_eq(settings->issuer, jwt.issuer)) continue;
        rc = check(oidc, provider, &jwt, err);
        return rc ? rc : claims_grant(&jwt, settings->grants, settings->grant_count, arena, out, err);
    }
    return error_set(err, E_DENIED, "it is of an issuer (iss) that is not configured");
}

// ---- open and close

enum code oidc_open(struct service *service, struct error *err)
{
    const struct service_settings *settings = &service->settings;
    if (!settings->oidc_count) return OK;
    struct oidc *oidc = ARENA_NEW(&service->arena, struct oidc);
    struct oidc_provider *providers = ARENA_ARRAY(&service->arena, settings->oidc_count, struct oidc_provider);
    if (!oidc || !providers) return error_nomem(err);
    for (size_t i = 0; i < settings->oidc_count; i++) {
        providers[i] = (struct oidc_provider){.settings = &settings->oidc[i], .retry_ms = RETRY_MS};
        arena_init(&providers[i].memory, 1024, 1 << 20);
    }
    oidc->providers = providers;
    oidc->count = settings->oidc_count;
    pthread_rwlock_init(&oidc->lock, NULL);
    feed_thread_init(&oidc->thread, service, "", "");
    service->oidc = oidc;
    return feed_thread_start(&oidc->thread, oidc_thread, oidc, err);
}

void oidc_stop(struct service *service)
{
    if (service->oidc) feed_thread_end(&service->oidc->thread);
}

void oidc_close(struct service *service)
{
    struct oidc *oidc = service->oidc;
    if (!oidc) return;
    service->oidc = NULL;
    for (size_t i = 0; i < oidc->count; i++) {
        jwks_release(&oidc->providers[i].jwks);
        arena_release(&oidc->providers[i].memory);
    }
    pthread_rwlock_destroy(&oidc->lock);
    feed_thread_release(&oidc->thread);
}

// ---- the ways to sign in, and for whom each is

struct json service_sign_in(const struct service *service, struct arena *arena)
{
    const struct service_settings *settings = &service->settings;
    struct json methods = json_array();
    json_append(arena, &methods, JSON_OF(arena, {"type", json_word("token")}));
    for (size_t i = 0; i < settings->oidc_count; i++) {
        const struct service_oidc *one = &settings->oidc[i];
        json_append(arena, &methods,
                    JSON_OF(arena, {"type", json_word("oidc")}, {"issuer", json_string(one->issuer)},
                            {"clientId", json_some(one->client)}, {"scopes", json_string(one->scopes)},
                            {"token", json_word(one->access_token ? "access_token" : "id_token")}));
    }
    if (settings->tls_client_ca.len) json_append(arena, &methods, JSON_OF(arena, {"type", json_word("certificate")}));
    return JSON_OF(arena, {"methods", methods});
}
