// Signing in with a browser: POST /v1/session, and the cookie and the key that its requests show from then on.
#include "api/inside.h"

#define SESSION_HEADER "cairn-session"

// "a=1; b=2" of the Cookie header.
static struct str cookie_named(const struct http_request *request, struct str name)
{
    struct str rest = http_find(request, "cookie"), value;
    while (rest.len > 0) {
        struct str found = str_trim(str_cut(str_cut(rest, ';', &rest), '=', &value));
        if (str_eq(found, name)) return str_trim(value);
    }
    return (struct str){0};
}

#define SECURE_NAME STR("__Host-cairn")

// Cookies belong to a host, whatever the port: servers of one machine must not take each other's. Guarded: the host is one of ours.
static struct str plain_name(const struct http_request *request, struct arena *arena)
{
    struct str host, port = {0};
    if (!http_host_split(request->host, &host, &port) || port.len == 0) port = STR("80");
    return arena_format(arena, "cairn-%.*s", STR_ARG(port));
}

bool session_shown(const struct http_request *request, struct arena *arena, struct str *cookie, struct str *key)
{
    *key = http_find(request, SESSION_HEADER);
    *cookie = cookie_named(request, SECURE_NAME);
    if (cookie->len == 0) *cookie = cookie_named(request, plain_name(request, arena));
    return cookie->len > 0 && key->len > 0;
}

bool session_may_change(const struct http_request *request)
{
    bool reads = str_is(request->method, "GET") || str_is(request->method, "HEAD");
    return reads || http_find(request, "origin").len > 0; // which one, the guard has looked at
}

// Behind a proxy only the origin knows that the browser came by TLS; the guard has let none in but ours.
static struct str cookie_text(struct ask *ask, struct str value, int64_t seconds)
{
    bool secure = net_secure(ask->exchange) || str_starts(http_find(ask->request, "origin"), STR("https://"));
    struct str name = secure ? SECURE_NAME : plain_name(ask->request, &ask->call->arena);
    return call_text(ask->call, "%.*s=%.*s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s", STR_ARG(name), STR_ARG(value),
                     (long long)seconds, secure ? "; Secure" : "");
}

static bool refuse(struct ask *ask, struct str token, const struct error *why)
{
    if (too_many_guesses(ask, token)) return false;
    service_denied(ask->call, OPERATION_DISCOVERY, ask->request->path, "AUTHN_REQUIRED");
    return call_problem(ask->call, 401, "AUTHN_REQUIRED", "%s",
                        why->message[0] ? why->message : "no token that is good here");
}

bool handle_session_open(struct ask *ask)
{
    struct call *call = ask->call;
    struct str token = json_text(json_key(&ask->body, "token")), ticket = json_text(json_key(&ask->body, "ticket"));
    struct browser_session session;
    struct error err = {0};
    if ((token.len > 0) == (ticket.len > 0))
        return call_problem(call, 400, "INVALID_REQUEST", "either token or ticket is needed");
    enum code rc = token.len ? service_authenticate(call->service, token, &call->arena, &call->who, &err)
                             : service_ticket_use(call->service, ticket, &call->arena, &call->who, &err);
    if (rc == E_TIMEOUT) {
        come_again(ask);
        return false;
    }
    struct auth_ask question = {.principal = &call->who,
                                .operation = OPERATION_DISCOVERY,
                                .audience = ask->api->options.name,
                                .now_ms = os_now().wall_ms};
    if (!rc && auth_decide(service_auth(call->service), &question).status == 401) rc = E_DENIED;
    if (rc) {
        call->who = (struct principal){0};
        return refuse(ask, token, &err);
    }
    if (!service_may(call, OPERATION_DISCOVERY, NULL, (struct str){0})) return false;
    if (service_session_open(call->service, &call->who, &call->arena, &session, &err)) return call_failed(call, &err);
    int64_t seconds = (session.expires_ms - os_now().wall_ms) / 1000;
    call->answer.status = 201;
    call->answer.cookie = cookie_text(ask, session.cookie, seconds > 0 ? seconds : 0);
    call->answer.body =
        JSON_OF(&call->arena, {"id", json_string(session.id)}, {"key", json_string(session.key)},
                {"expiresAt", json_time(&call->arena, session.expires_ms)}, {"principal", principal_json(ask)});
    if (!call->answer.cookie.ptr || !json_ok(&call->answer.body)) return call_nomem(call);
    return service_session_begin(call, session.id);
}

// One that is over already has nothing to end: the browser forgets its cookie all the same.
bool handle_session_close(struct ask *ask)
{
    struct call *call = ask->call;
    if (!service_may(call, OPERATION_DISCOVERY, NULL, (struct str){0})) return false;
    if (call->who.session.len == 0)
        return call_problem(call, 409, "NO_SESSION",
                            "this request shows a token, which no sign-out ends: DELETE /v1/tokens/ID revokes it");
    call->answer.cookie = cookie_text(ask, STR(""), 0);
    return service_session_end(call);
}

bool handle_ticket(struct ask *ask)
{
    struct call *call = ask->call;
    struct str text;
    int64_t expires_ms;
    struct error err = {0};
    if (!service_may(call, OPERATION_DISCOVERY, NULL, (struct str){0})) return false;
    if (call->who.session.len > 0) { // or a session could renew itself for ever
        return call_problem(call, 403, "AUTHZ_DENIED", "a session buys no tickets: show the token itself");
    }
    if (service_ticket(call->service, &call->who, &call->arena, &text, &expires_ms, &err))
        return call_failed(call, &err);
    return call_answer(
        call, 201,
        JSON_OF(&call->arena, {"ticket", json_string(text)}, {"expiresAt", json_time(&call->arena, expires_ms)}));
}
