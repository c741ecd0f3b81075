// A request arrives: its caller, its purpose, and whether it may be made at all.
#include "api/inside.h"

#include "api/page.h"

#include <stdlib.h>
#include <string.h>

// BODY_MAX: what every body may have, and what is parsed where it comes in. More is for principals with the right to it, and is parsed
// by a thread that has the time.
enum { RATE_KEYS = 16384, BODY_MAX = 64 * 1024 };

enum code api_open(const struct api_options *options, struct api **out, struct error *err)
{
    struct api *api = calloc(1, sizeof(*api));
    *out = api;
    if (!api) return error_nomem(err);
    if (options) api->options = *options;
    if (api->options.name.len == 0) api->options.name = STR("cairn");
    arena_init(&api->arena, 64 * 1024, (size_t)64 << 20);
    if (api->options.streams_per_token == 0) api->options.streams_per_token = 16;
    uint8_t seed[16];
    os_entropy()->fill(os_entropy(), seed, sizeof(seed));
    // Requests have names that no other engine and no other start gives: the audit outlives them all.
    os_entropy()->fill(os_entropy(), &api->request_count, sizeof(api->request_count));
    if (rates_open(&api->arena, RATE_KEYS, seed, &api->rates, err)) return E_NOMEM;
    if (page_open(api->options.page_dir, &api->page, err)) return err->code;
    api->pump = pump_new(api);
    return api->pump ? bodies_open(api, err) : error_nomem(err);
}

struct service_hooks api_hooks(struct api *api)
{
    return (struct service_hooks){.context = api, .event = pump_event, .turned = pump_turned};
}

enum code api_serve(struct api *api, struct service *service, struct net_server *server, struct error *err)
{
    api->service = service;
    api->server = server;
    api->store = service_reader(service);
    if (!api->store) return error_set(err, E_IO, "the store cannot be read");
    return pump_start(api->pump, err);
}

void api_stop(struct api *api)
{
    if (api) pump_stop(api->pump);
}

void api_close(struct api *api)
{
    if (!api) return;
    pump_close(api->pump);
    if (api->store) store_close(api->store);
    page_close(api->page);
    arena_release(&api->arena);
    free(api);
}

// Who shows no token that opens anything is not listened to for long, whatever the path.
static uint64_t body_max_of(const struct api *api, const struct route *route)
{
    uint64_t max = route->body_max ? route->body_max : 1u << 20;
    return max == DOCUMENT_BODY_MAX ? max * service_scale(api->service) : max;
}

// Who asks: by the token that is shown, by the session of a browser, and without either by the certificate of the connection. What a
// token does not open no certificate opens beside it. As service_authenticate.
static enum code identify(const struct api *api, struct net_exchange *exchange, struct arena *arena,
                          struct principal *out, struct error *err)
{
    struct net_certificate certificate;
    const struct http_request *request = net_request(exchange);
    struct str authorization = http_find(request, "authorization"), bearer = auth_bearer(authorization), cookie, key;
    if (bearer.len > 0) return service_authenticate(api->service, bearer, arena, out, err);
    if (authorization.len == 0 && session_shown(request, arena, &cookie, &key)) {
        if (session_may_change(request)) return service_session_read(api->service, cookie, key, arena, out, err);
        return error_set(err, E_DENIED, "a session's request that changes something has to name its origin");
    }
    if (authorization.len > 0 || !net_certificate(exchange, &certificate)) return error_set(err, E_DENIED, "%s", "");
    if (service_certificate_grant(api->service, certificate.uri, certificate.name, certificate.expires_ms, arena, out))
        return OK;
    return error_set(err, E_DENIED, "no client of [serve.tls] has the URI or the name of this certificate");
}

uint64_t api_body_max(void *context, struct net_exchange *exchange)
{
    const struct api *api = context;
    const struct http_request *head = net_request(exchange);
    struct principal who;
    struct error err = {0};
    struct str params[PARAMS_MAX];
    int status;
    char allow[64];
    const struct route *route = route_find(head->method, head->path, params, &status, allow);
    uint64_t max = route ? body_max_of(api, route) : 1u << 20;
    if (max <= BODY_MAX) return max;
    // Who sends nothing needs no room, and is looked at once: when the request is whole.
    if (!http_find(head, "content-length").len && !http_find(head, "transfer-encoding").len) return BODY_MAX;
    enum operation operation = route && route->operation ? route->operation : OPERATION_DISCOVERY;
    bool known = identify(api, exchange, net_arena(exchange), &who, &err) == OK;
    return known && service_could(api->service, &who, operation) ? max : BODY_MAX;
}

// ---- one request

static bool read_body(struct ask *ask)
{
    struct error err = {0};
    const struct http_request *request = ask->request;
    if (!is_json(http_find(request, "content-type"))) { // also what keeps forms of other sites out (H4)
        return call_problem(ask->call, 415, "UNSUPPORTED_MEDIA_TYPE", "the body must be application/json, in UTF-8");
    }
    if (!(ask->route->flags & ROUTE_BODY)) return true;
    struct json_limits limits = json_limits_default; // of strings that are no documents: body_fits
    limits.node_count_max *= service_scale(ask->api->service);
    uint64_t max = body_max_of(ask->api, ask->route);
    if (max > limits.size_max) limits.size_max = max;
    if (max > limits.string_size_max) limits.string_size_max = max;
    enum code rc = json_parse(request->body, &limits, &ask->call->arena, &ask->body, &err);
    if (!rc && ask->body.type == JSON_OBJECT) return body_fits(ask);
    if (!rc)
        call_problem(ask->call, 400, "INVALID_REQUEST", "the body must be an object");
    else
        call_problem(ask->call, 400, "INVALID_REQUEST", "line %u, column %u: %s", err.line, err.column, err.message);
    return false;
}

// Guesses are counted by where they come from and by whose token they try (A4). A token that is right always gets in: no stranger can lock
// others out by guessing beside them. Beyond the limit a guess is not recorded any more, or it would fill the store.
bool too_many_guesses(struct ask *ask, struct str bearer)
{
    struct call *call = ask->call;
    struct str id = {0};
    struct digest secret;
    int64_t now = os_now().wall_ms;
    const struct rate_rule *rule = &rate_failed_source;
    struct rate_answer answer = rates_take(ask->api->rates, rule, call->source_ip, now);
    if (answer.allowed && auth_token_parse(bearer, &id, &secret)) {
        rule = &rate_failed_id;
        answer = rates_take(ask->api->rates, rule, id, now);
    }
    if (answer.allowed) return false;
    call->answer.retryable = true;
    call->answer.retry_after_ms = rate_retry_after(&answer) * 1000;
    call_problem(call, 429, "AUTHN_RATE_LIMITED", "too many tokens that do not fit");
    return true;
}

// Calls without any token are recorded by the same measure: no stranger fills our disk from outside.
static bool may_record(struct ask *ask, struct str bearer)
{
    struct str source = call_text(ask->call, "none %.*s", STR_ARG(ask->call->source_ip));
    return bearer.len > 0 || rates_take(ask->api->rates, &rate_failed_source, source, os_now().wall_ms).allowed;
}

// A token of an identity provider that is good but for its key, which is being read: the client comes again.
bool come_again(struct ask *ask)
{
    struct call *call = ask->call;
    call->answer.retryable = true;
    call->answer.retry_after_ms = 1000;
    return call_problem(call, 503, "AUTHN_KEYS_UNREAD", "the keys of the issuer of this token are being read");
}

bool ask_is_known(struct ask *ask, enum code *rc, struct error *why)
{
    struct call *call = ask->call;
    *rc = identify(ask->api, ask->exchange, &call->arena, &call->who, why);
    if (!*rc) {
        struct auth_ask question = {.principal = &call->who,
                                    .operation = OPERATION_DISCOVERY,
                                    .audience = ask->api->options.name,
                                    .now_ms = os_now().wall_ms};
        if (auth_decide(service_auth(call->service), &question).status != 401) return true;
    }
    call->who = (struct principal){0};
    return false;
}

static bool authenticate(struct ask *ask)
{
    struct call *call = ask->call;
    struct error why = {0};
    struct str bearer = auth_bearer(http_find(ask->request, "authorization"));
    enum code rc;
    if (ask_is_known(ask, &rc, &why)) return true;
    bool guessed = bearer.len > 0 && rc;
    if (rc == E_TIMEOUT) return come_again(ask); // its keys were not read yet: it is no wrong guess
    if (guessed && too_many_guesses(ask, bearer)) return false;
    bool records = may_record(ask, bearer);
    if (rc && why.message[0] && records)
        os_log(LOG_WARN, "nobody signed in request=%.*s why=\"%s\"", STR_ARG(call->request_id), why.message);
    if (records) service_denied(call, OPERATION_DISCOVERY, ask->request->path, "AUTHN_REQUIRED");
    return call_problem(call, 401, "AUTHN_REQUIRED", "a token is needed: Authorization: Bearer cairn_...");
}

static struct ask *ask_new(struct api *api, struct net_exchange *exchange)
{
    struct call *call = call_new(api->service, CALL_MEMORY);
    struct ask *ask = call ? ARENA_NEW(&call->arena, struct ask) : NULL;
    if (!ask) {
        call_free(call);
        return NULL;
    }
    *ask = (struct ask){
        .api = api, .call = call, .exchange = exchange, .request = net_request(exchange), .began_us = os_mono_us()};
    call->context = ask;
    call->done = reply;
    call->source_ip = arena_copy(&call->arena, net_peer(exchange));
    call->unix_socket = net_peer_uid(exchange) >= 0;
    call->user_agent = http_find(ask->request, "user-agent");
    call->request_id = call_text(call, "%016llx", (unsigned long long)++api->request_count);
    return ask;
}

static bool handle(struct ask *ask)
{
    const struct route *route = ask->route;
    if ((route->flags & (ROUTE_BODY | ROUTE_JSON)) && !read_body(ask)) return false;
    if (route_takes(route, STR("fields")) && !fields_read(ask)) return false;
    return route->handle ? route->handle(ask) : with_run(ask, route->operation, route->tell);
}

static bool handle_large(struct call *call, struct store *store UNUSED)
{
    return handle(call->context);
}

void api_handle(void *context, struct net_exchange *exchange)
{
    struct api *api = context;
    const struct http_request *request = net_request(exchange);
    struct str params[PARAMS_MAX] = {{0}};
    char allow[64];
    int status = 404;
    const struct route *route = route_find(request->method, request->path, params, &status, allow);
    if (!route && page_answer(api->page, exchange, &status)) {
        count_page(api, request, status);
        return;
    }
    // Cheaply, before tokens and bodies are looked at: a refusal must cost less than what it refuses.
    if (route && (route->flags & ROUTE_MAKES) && service_is_full(api->service)) {
        net_come_again(exchange, 1000);
        reply_now(exchange, 429, "OVERLOADED", "as many calls wait for the engine as may");
        return;
    }
    struct ask *ask = ask_new(api, exchange);
    if (!ask) {
        reply_now(exchange, 503, "OVERLOADED", "out of memory");
        return;
    }
    struct str rest;
    ask->route = route;
    memcpy(ask->params, params, sizeof(params));
    route_place(request->path, &ask->call->place, &rest);
    bool open = route && (route->flags & ROUTE_OPEN);
    if (!headers_fit(ask)) return;
    if (!open && !authenticate(ask)) return; // before the caller learns which routes there are
    if (!route) {
        ask->call->answer.allow = str_from(allow); // until it is answered, which is now
        if (status == 405)
            call_problem(ask->call, 405, "METHOD_NOT_ALLOWED", "here: %s", allow);
        else
            call_problem(ask->call, 404, "NOT_FOUND", "there is nothing at this path");
        return;
    }
    if ((route->flags & ROUTE_MAKES) && service_draining(api->service)) {
        ask->call->answer.retryable = true;
        ask->call->answer.retry_after_ms = 1000;
        call_problem(ask->call, 503, "SHUTTING_DOWN", "the service is stopping: no new runs");
        return;
    }
    if (!query_fits(ask)) return;
    if (!is_plain(request)) {
        call_problem(ask->call, 415, "UNSUPPORTED_MEDIA_TYPE",
                     "bodies are taken as they are, without Content-Encoding");
        return;
    }
    if (request->body.len > BODY_MAX)
        service_read(ask->call, handle_large);
    else
        handle(ask);
}
