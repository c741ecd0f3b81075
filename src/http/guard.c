// Which requests a browser may have been talked into (H2: rebound names, H3: other sites), and the headers of H5.
#include "http/inside.h"

static bool port_is(struct str port, const struct http_door *door)
{
    int64_t number;
    if (port.len == 0) return door->port == 0 || door->port == (door->tls ? 443 : 80);
    return str_int64(port, &number) && number == door->port;
}

static bool is_loopback(struct str host)
{
    return http_name_is(host, "localhost") || str_is(host, "127.0.0.1") || str_is(host, "[::1]");
}

// The host of an origin, which has a port only where it is not the usual one; a client may name that one all the same.
static bool is_public(const struct http_guard *guard, struct str host, struct str port)
{
    for (size_t i = 0; i < guard->origin_count; i++) {
        struct str name, name_port, origin = guard->origins[i];
        bool tls = str_starts(origin, STR("https://"));
        struct str usual = tls ? STR("443") : STR("80");
        size_t scheme = tls ? sizeof("https://") - 1 : sizeof("http://") - 1;
        if (!http_host_split(str_slice(origin, scheme, origin.len), &name, &name_port) || !http_same(name, host)) continue;
        if (str_eq(name_port.len ? name_port : usual, port.len ? port : usual)) return true;
    }
    return false;
}

static bool host_fits(const struct http_guard *guard, const struct http_door *door, struct str text)
{
    struct str host, port, name, name_port;
    if (!http_host_split(text, &host, &port)) return false;
    if ((is_loopback(host) && port_is(port, door)) || is_public(guard, host, port)) return true;
    for (size_t i = 0; i < guard->host_count; i++) {
        if (!http_host_split(guard->hosts[i], &name, &name_port) || !http_same(name, host)) continue;
        if (name_port.len ? str_eq(name_port, port) : port_is(port, door)) return true;
    }
    return false;
}

static bool is_listed(const struct http_guard *guard, struct str origin)
{
    for (size_t i = 0; i < guard->origin_count; i++)
        if (str_eq(guard->origins[i], origin)) return true;
    return false;
}

// What the browser calls us; the host has been checked before. Where a proxy stands in front, our door does not know the scheme: the
// listed origin says it.
static bool is_own(const struct http_guard *guard, const struct http_door *door, const struct http_request *request,
                   struct str origin)
{
    struct str host, port;
    if (http_host_split(request->host, &host, &port) && is_public(guard, host, port)) return false;
    struct str scheme = door->tls ? STR("https://") : STR("http://");
    return str_starts(origin, scheme) && http_same(str_slice(origin, scheme.len, origin.len), request->host);
}

// A person who follows a link from elsewhere; nothing is changed and nothing is handed to that site.
static bool is_navigation(const struct http_request *request)
{
    return (str_is(request->method, "GET") || str_is(request->method, "HEAD")) &&
           str_is(http_find(request, "sec-fetch-mode"), "navigate") &&
           str_is(http_find(request, "sec-fetch-dest"), "document");
}

static size_t count_of(const struct http_request *request, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) count += http_name_is(request->headers[i].name, name);
    return count;
}

static bool site_fits(const struct http_guard *guard, const struct http_door *door, const struct http_request *request)
{
    struct str origin = http_find(request, "origin");
    struct str site = http_find(request, "sec-fetch-site");
    size_t origins = count_of(request, "origin"), sites = count_of(request, "sec-fetch-site");
    if (origins > 1 || sites > 1) return false;
    // Preflights are never granted: other sites have no business here.
    if (str_is(request->method, "OPTIONS") && count_of(request, "access-control-request-method")) return false;
    if (count_of(request, "access-control-request-private-network")) return false;
    // A listed origin has shown itself by name; the browser still calls it another site.
    if (origins && is_listed(guard, origin)) return true;
    if (origins && !is_own(guard, door, request, origin)) return false;
    return !sites || str_is(site, "same-origin") || str_is(site, "none") || is_navigation(request);
}

int http_guard_check(const struct http_guard *guard, const struct http_door *door, const struct http_request *request)
{
    if (!host_fits(guard, door, request->host)) return 421;
    return site_fits(guard, door, request) ? 0 : 403;
}

const struct http_header *http_security_headers(size_t *count)
{
    static const struct http_header headers[] = {
        {STR_INIT("Content-Security-Policy"),
         STR_INIT("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                  "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                  "require-trusted-types-for 'script'")},
        {STR_INIT("X-Content-Type-Options"), STR_INIT("nosniff")},
        {STR_INIT("Referrer-Policy"), STR_INIT("no-referrer")},
        {STR_INIT("Cross-Origin-Opener-Policy"), STR_INIT("same-origin")},
        {STR_INIT("Cross-Origin-Resource-Policy"), STR_INIT("same-origin")},
        {STR_INIT("Cache-Control"), STR_INIT("no-store")},
    };
    *count = ARRAY_COUNT(headers);
    return headers;
}
