// Which addresses a name may resolve to, and resolving it: once, within a time, all of them.
#include "fetch/inside.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUPS_MAX 64 // threads that wait for a name server at the same time

// Not public unicast (IANA's special-purpose registries). 168.63.129.16 looks public and is the inside of one cloud.
static const char *const closed4[] = {"0.0.0.0/8",        "10.0.0.0/8",     "100.64.0.0/10",  "127.0.0.0/8",
                                      "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",  "192.0.0.0/24",
                                      "192.0.2.0/24",     "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
                                      "198.51.100.0/24",  "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4"};
// Of v6 only 2000::/3 is given out at all; inside it these are not hosts of the open net.
static const char *const closed6[] = {"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"};
// The last four bytes are a v4 address that a gateway may translate to.
static const char *const inner4[] = {"::ffff:0:0/96", "::/96", "64:ff9b::/96"};

static const uint8_t *bytes_of(const struct sockaddr *address, size_t *size)
{
    if (address->sa_family == AF_INET) {
        *size = 4;
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    }
    *size = 16;
    return ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr;
}

static bool cidr_has(const struct os_network *cidr, const struct sockaddr *address)
{
    size_t size;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return false;
    const uint8_t *bytes = bytes_of(address, &size);
    return os_network_has(cidr, bytes, size);
}

static bool in_list(const char *const *list, size_t count, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        struct os_network cidr;
        INVARIANT(os_network_parse(str_from(list[i]), &cidr));
        if (os_network_has(&cidr, bytes, size)) return true;
    }
    return false;
}

bool fetch_address_public(const struct sockaddr *address)
{
    size_t size;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return false;
    const uint8_t *bytes = bytes_of(address, &size);
    if (size == 4) return !in_list(closed4, ARRAY_COUNT(closed4), bytes, 4);
    // A translated address is judged by where it leads; what leads to a public one is let through only in its mapped form,
    // which the kernel itself turns back into v4.
    if (in_list(inner4, 1, bytes, 16)) return !in_list(closed4, ARRAY_COUNT(closed4), bytes + 12, 4);
    if (in_list(inner4, ARRAY_COUNT(inner4), bytes, 16)) return false;
    return (bytes[0] & 0xe0) == 0x20 && !in_list(closed6, ARRAY_COUNT(closed6), bytes, 16);
}

bool rule_admits(const struct rule *rule, const struct sockaddr *address)
{
    if (rule->allow_private || fetch_address_public(address)) return true;
    for (size_t i = 0; i < rule->network_count; i++)
        if (cidr_has(&rule->networks[i], address)) return true;
    return false;
}

bool fetch_address_add(struct fetch_addresses *to, const char *text)
{
    if (to->count == FETCH_ADDRESS_MAX) return false;
    struct address *entry = &to->list[to->count];
    memset(entry, 0, sizeof(*entry));
    if (inet_pton(AF_INET, text, &entry->v4.sin_addr) == 1) {
        entry->v4.sin_family = AF_INET;
        entry->size = sizeof(entry->v4);
    } else if (inet_pton(AF_INET6, text, &entry->v6.sin6_addr) == 1) {
        entry->v6.sin6_family = AF_INET6;
        entry->size = sizeof(entry->v6);
    } else {
        return false;
    }
    to->count++;
    return true;
}

// ---- the system's resolver: it knows no deadline, so a thread of its own waits for it, and is left behind when it is late

struct lookup {
    pthread_mutex_t mutex;
    pthread_cond_t done_cond;
    bool done, abandoned;
    struct addrinfo *list;
    char host[HOST_MAX + 1];
};

static atomic_int lookups;

static void lookup_free(struct lookup *lookup)
{
    if (lookup->list) freeaddrinfo(lookup->list);
    pthread_cond_destroy(&lookup->done_cond);
    pthread_mutex_destroy(&lookup->mutex);
    free(lookup);
    atomic_fetch_sub(&lookups, 1);
}

static void *look_up(void *argument)
{
    struct lookup *lookup = argument;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    int result = getaddrinfo(lookup->host, NULL, &hints, &list);
    // Without any interface but loopback AI_ADDRCONFIG finds nothing at all, not even loopback's own names.
    hints.ai_flags = 0;
    if (result) result = getaddrinfo(lookup->host, NULL, &hints, &list);
    pthread_mutex_lock(&lookup->mutex);
    lookup->list = result ? NULL : list;
    lookup->done = true;
    bool abandoned = lookup->abandoned;
    pthread_cond_signal(&lookup->done_cond);
    pthread_mutex_unlock(&lookup->mutex);
    if (abandoned) lookup_free(lookup);
    return NULL;
}

static struct lookup *lookup_begin(const char *host)
{
    if (atomic_fetch_add(&lookups, 1) >= LOOKUPS_MAX) {
        atomic_fetch_sub(&lookups, 1);
        return NULL;
    }
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    if (!lookup) {
        atomic_fetch_sub(&lookups, 1);
        return NULL;
    }
    pthread_mutex_init(&lookup->mutex, NULL);
    os_condition(&lookup->done_cond);
    memcpy(lookup->host, host, strlen(host) + 1); // a host of a struct uri
    pthread_attr_t detached;
    pthread_t thread;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &detached, look_up, lookup);
    pthread_attr_destroy(&detached);
    if (!failed) return lookup;
    lookup_free(lookup);
    return NULL;
}

static bool lookup_wait(struct lookup *lookup, int64_t timeout_ms)
{
    int64_t until = os_now().mono_ms + timeout_ms;
    LOCKED(&lookup->mutex);
    while (!lookup->done && os_wait_until(&lookup->done_cond, &lookup->mutex, until)) {
    }
    bool done = lookup->done;
    lookup->abandoned = !done;
    return done;
}

static enum code system_resolve(void *context, const char *host, int64_t timeout_ms, struct fetch_addresses *out,
                                struct error *err)
{
    (void)context;
    struct lookup *lookup = lookup_begin(host);
    if (!lookup) return error_set(err, E_LIMIT, "too many names are being looked up");
    if (!lookup_wait(lookup, timeout_ms)) return error_set(err, E_TIMEOUT, "looking up %s took too long", host);
    for (struct addrinfo *i = lookup->list; i && out->count < FETCH_ADDRESS_MAX; i = i->ai_next) {
        if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
        struct address *entry = &out->list[out->count++];
        memset(entry, 0, sizeof(*entry));
        memcpy(&entry->room, i->ai_addr, i->ai_addrlen);
        entry->size = i->ai_addrlen;
    }
    lookup_free(lookup);
    return out->count ? OK : error_set(err, E_IO, "%s has no address", host);
}

enum code address_resolve(const struct fetch_resolver *resolver, const struct uri *uri, int64_t timeout_ms,
                          struct fetch_addresses *out, struct error *err)
{
    out->count = 0;
    enum code rc = OK;
    if (uri->literal)
        rc = fetch_address_add(out, uri->host) ? OK : error_set(err, E_INVALID, "%s is no address", uri->host);
    else if (resolver && resolver->resolve)
        rc = resolver->resolve(resolver->context, uri->host, timeout_ms, out, err);
    else
        rc = system_resolve(NULL, uri->host, timeout_ms, out, err);
    if (!rc && !out->count) rc = error_set(err, E_IO, "%s has no address", uri->host);
    for (size_t i = 0; !rc && i < out->count; i++) {
        if (out->list[i].any.sa_family == AF_INET)
            out->list[i].v4.sin_port = htons(uri->port);
        else
            out->list[i].v6.sin6_port = htons(uri->port);
    }
    return rc;
}
