// Clients behind named proxies. A proxy writes the address that it was called from behind those that it was given, so the list
// counts from its end, and only as far as each one before it is a proxy of ours.
#include "net/inside.h"

#include <string.h>

static bool is_proxy(const struct net_server *server, const struct os_network *address)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    const uint8_t *bytes = address->bytes;
    size_t size = address->size;
    if (size == 16 && memcmp(bytes, mapped, sizeof(mapped)) == 0) {
        bytes += sizeof(mapped);
        size = 4;
    }
    for (size_t i = 0; i < server->options.proxy_count; i++)
        if (os_network_has(&server->options.proxies[i], bytes, size)) return true;
    return false;
}

bool net_ip_is_proxy(const struct net_server *server, const uint8_t ip[16])
{
    struct os_network address = {.size = 16};
    memcpy(address.bytes, ip, sizeof(address.bytes));
    return is_proxy(server, &address);
}

bool net_is_proxy(const struct net_server *server, struct str peer)
{
    struct os_network address;
    if (str_is(peer, "unix")) return server->options.unix_proxy;
    return server->options.proxy_count > 0 && os_network_parse(peer, &address) && is_proxy(server, &address);
}

// An address, perhaps with a port: "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80".
static bool read_address(struct str text, struct str *host, struct os_network *out)
{
    struct str rest;
    *host = str_trim(text);
    if (host->len > 0 && host->ptr[0] == '[')
        *host = str_cut(str_slice(*host, 1, host->len), ']', &rest);
    else if (str_find(*host, ':', 0) < host->len && str_find(*host, '.', 0) < str_find(*host, ':', 0))
        *host = str_cut(*host, ':', &rest);
    return str_find(*host, '/', 0) == host->len && os_network_parse(*host, out);
}

// The last element of a list, which gets shorter by it.
static struct str take_last(struct str *list)
{
    size_t comma = list->len;
    while (comma > 0 && list->ptr[comma - 1] != ',') comma--;
    struct str last = str_slice(*list, comma, list->len);
    *list = str_slice(*list, 0, comma > 0 ? comma - 1 : 0);
    return last;
}

struct str net_behind_proxies(const struct net_server *server, const struct http_request *request, struct str peer)
{
    for (size_t i = request->header_count; i > 0; i--) {
        if (!http_name_is(request->headers[i - 1].name, "x-forwarded-for")) continue;
        for (struct str list = request->headers[i - 1].value; list.len > 0;) {
            struct os_network address;
            struct str host;
            if (!read_address(take_last(&list), &host, &address)) return peer;
            peer = host;
            if (!is_proxy(server, &address)) return peer;
        }
    }
    return peer;
}
