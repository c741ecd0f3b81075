// A connection to our own server, kept between calls. The operator, who gave the address, is trusted; the server still is not: limits,
// deadlines and TLS hold here as anywhere.
#include "fetch/inside.h"

#include "http/http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define LINK_TIMEOUT_MS 30000
#define LINK_BODY_MAX (64u << 20)
#define HEADERS_MAX 32

struct fetch_link {
    struct arena arena;   // what the options said
    struct arena scratch; // of one call
    struct uri uri;       // unless it is a Unix socket
    struct address socket;
    bool local; // a Unix socket
    bool sent;  // the last call
    struct str url, host, prefix, bearer, ca_file;
    int64_t timeout_ms;
    size_t body_max;
    struct wire wire;
    const char *cert_file, *key_file; // shown to a server that asks; empty: none
    bool (*stopped)(void *context); // of calls that do not say
    void *stop_context;
    struct exchange *exchange;
};

static enum code unix_address(struct fetch_link *link, struct str path, struct error *err)
{
    struct sockaddr_un *to = (struct sockaddr_un *)(void *)&link->socket.room;
    if (!path.len || path.len >= sizeof(to->sun_path) || memchr(path.ptr, '\0', path.len))
        return error_set(err, E_INVALID, "the path of the socket is empty or too long");
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, path.ptr, path.len);
    link->socket.size = (socklen_t)sizeof(*to);
    link->local = true;
    link->host = STR("localhost");
    link->prefix = STR("");
    return OK;
}

// http or https, of one host.
static const char *place_parse(struct str text, struct uri *out)
{
    const char *reason = NULL;
    if (!uri_parse(text, true, out, &reason)) return reason;
    return !out->port || out->host[0] == '.' ? "it is none of http:, https: and unix:" : NULL;
}

enum code fetch_place_parse(struct str uri, struct fetch_place *out, struct error *err)
{
    struct uri parsed;
    *out = (struct fetch_place){0};
    const char *reason = place_parse(uri, &parsed);
    if (reason) return error_set(err, E_INVALID, "the address %.*s cannot be used: %s", STR_ARG(uri), reason);
    out->secure = parsed.scheme == SCHEME_HTTPS;
    out->here = strcmp(parsed.host, "localhost") == 0 || strcmp(parsed.host, "127.0.0.1") == 0 || strcmp(parsed.host, "::1") == 0;
    memcpy(out->host, parsed.host, sizeof(parsed.host));
    return OK;
}

static enum code url_parse(struct fetch_link *link, struct error *err)
{
    if (str_starts(link->url, STR("unix:"))) {
        struct str path = str_slice(link->url, 5, link->url.len);
        if (str_starts(path, STR("//"))) path = str_slice(path, 2, path.len);
        return unix_address(link, path, err);
    }
    const char *reason = place_parse(link->url, &link->uri);
    if (!reason && link->uri.query.len) reason = "it has a query";
    if (reason) return error_set(err, E_INVALID, "the address of the server cannot be used: %s", reason);
    link->prefix = link->uri.path;
    if (link->prefix.ptr[link->prefix.len - 1] == '/') link->prefix.len--;
    link->host = host_header(&link->uri, &link->arena);
    return link->host.ptr ? OK : error_nomem(err);
}

static enum code options_copy(struct fetch_link *link, const struct fetch_link_options *options, struct error *err)
{
    link->url = arena_copy(&link->arena, options->url);
    link->ca_file = arena_copy(&link->arena, options->ca_file);
    char *bearer = ARENA_ARRAY(&link->arena, options->token.len + 8, char);
    link->exchange = exchange_new();
    if (!link->url.ptr || !link->ca_file.ptr || !bearer || !link->exchange) return error_nomem(err);
    if (options->token.len) {
        const struct str word = STR("Bearer ");
        memcpy(bearer, word.ptr, word.len);
        memcpy(bearer + word.len, options->token.ptr, options->token.len);
        link->bearer = (struct str){bearer, word.len + options->token.len};
        if (!http_header_valid((struct http_header){STR("Authorization"), link->bearer}))
            return error_set(err, E_INVALID, "the token holds characters that no token has");
    }
    link->stopped = options->stopped;
    link->stop_context = options->stop_context;
    link->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : LINK_TIMEOUT_MS;
    link->body_max = options->body_max ? options->body_max : LINK_BODY_MAX;
    link->wire = (struct wire){.fd = -1};
    struct str cert = arena_copy(&link->arena, options->cert_file), key = arena_copy(&link->arena, options->key_file);
    if (!cert.ptr || !key.ptr) return error_nomem(err);
    if (!cert.len != !key.len) return error_set(err, E_INVALID, "a certificate and its key go together");
    link->cert_file = cert.ptr, link->key_file = key.ptr;
    return url_parse(link, err);
}

enum code fetch_link_open(const struct fetch_link_options *options, struct fetch_link **out, struct error *err)
{
    struct fetch_link *link = calloc(1, sizeof(*link));
    if (!link) return error_nomem(err);
    link->wire.fd = -1;
    arena_init(&link->arena, 4096, 1 << 20);
    arena_init(&link->scratch, 4096, 1 << 20);
    enum code rc = options_copy(link, options, err);
    if (rc)
        fetch_link_close(link);
    else
        *out = link;
    return rc;
}

void fetch_link_close(struct fetch_link *link)
{
    if (!link) return;
    wire_close(&link->wire);
    exchange_free(link->exchange);
    if (link->bearer.len) explicit_bzero((void *)(uintptr_t)link->bearer.ptr, link->bearer.len);
    arena_release(&link->scratch);
    arena_release(&link->arena);
    free(link);
}

static enum code link_connect(struct fetch_link *link, struct error *err)
{
    struct wire_tls tls = {.host = link->uri.host,
                           .ca_file = link->ca_file,
                           .cert_file = link->cert_file,
                           .key_file = link->key_file,
                           .alpn = "http/1.1"};
    struct error why = {0};
    enum code rc =
        link->local ? wire_connect(&link->wire, &link->socket, &why) : wire_dial_uri(&link->wire, &link->uri, &why);
    if (!rc && !link->local && link->uri.scheme == SCHEME_HTTPS) {
        rc = wire_secure(&link->wire, &tls, &why);
        if (rc) wire_close(&link->wire);
    }
    return rc ? error_set(err, rc, "cannot reach %.*s: %s", STR_ARG(link->url), why.message) : OK;
}

static enum code link_request(struct fetch_link *link, const struct fetch_call *call, struct http_header *headers,
                              struct exchange_request *out, struct error *err)
{
    if (call->header_count >= HEADERS_MAX) return error_set(err, E_LIMIT, "there are too many headers");
    size_t count = 0;
    for (; count < call->header_count; count++) headers[count] = call->headers[count];
    if (link->bearer.len) headers[count++] = (struct http_header){STR("Authorization"), link->bearer};
    *out = (struct exchange_request){.method = call->method.len ? call->method : STR("GET"),
                                     .target = call->uri,
                                     .host = link->host,
                                     .headers = headers,
                                     .header_count = count,
                                     .body = call->body,
                                     .body_max = call->body_max ? call->body_max : link->body_max,
                                     .sink = call->sink,
                                     .sink_context = call->sink_context};
    if (!link->prefix.len) return OK;
    arena_reset(&link->scratch);
    char *target = ARENA_ARRAY(&link->scratch, link->prefix.len + call->uri.len + 1, char);
    if (!target) return error_nomem(err);
    memcpy(target, link->prefix.ptr, link->prefix.len);
    memcpy(target + link->prefix.len, call->uri.ptr, call->uri.len);
    out->target = (struct str){target, link->prefix.len + call->uri.len};
    return OK;
}

enum code fetch_link_call(struct fetch_link *link, const struct fetch_call *call, struct arena *arena,
                          struct fetch_answer *answer, struct error *err)
{
    struct http_header headers[HEADERS_MAX + 1];
    struct exchange_request request;
    enum code rc = link_request(link, call, headers, &request, err);
    link->sent = false;
    if (rc) return rc;
    int64_t timeout = call->timeout_ms > 0 ? call->timeout_ms : link->timeout_ms;
    link->wire.deadline = mono_ms() + timeout;
    link->wire.stopped = call->stopped ? call->stopped : link->stopped;
    link->wire.stop_context = call->stopped ? call->stop_context : link->stop_context;
    if (call->sink) request.silence_ms = timeout;
    bool kept = link->wire.fd >= 0 && wire_idle(&link->wire), heard = false, reusable = false;
    if (!kept) wire_close(&link->wire);
    for (;;) {
        rc = kept ? OK : link_connect(link, err);
        if (rc) return rc;
        link->sent = true;
        struct error why = {0};
        rc = exchange_run(link->exchange, &link->wire, &request, arena, answer, &heard, &reusable, &why);
        if (rc || !reusable) wire_close(&link->wire);
        // A kept connection may be closed by the server while the request is on its way.
        if (rc == E_IO && kept && !heard && call_repeatable(call)) {
            kept = false;
            continue;
        }
        if (rc && err) *err = why;
        return rc;
    }
}

bool fetch_link_sent(const struct fetch_link *link)
{
    return link->sent;
}
