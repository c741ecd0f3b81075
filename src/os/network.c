// Networks as people write them: "10.0.0.0/8", "::1".
#include "os/os.h"

#include <arpa/inet.h>
#include <string.h>

bool os_network_parse(struct str text, struct os_network *out)
{
    char host[INET6_ADDRSTRLEN];
    struct str bits;
    struct str base = str_cut(text, '/', &bits);
    int64_t count;
    if (base.len == 0 || base.len >= sizeof(host)) return false;
    memcpy(host, base.ptr, base.len);
    host[base.len] = '\0';
    *out = (struct os_network){.size = strchr(host, ':') ? 16 : 4};
    if (inet_pton(out->size == 16 ? AF_INET6 : AF_INET, host, out->bytes) != 1) return false;
    if (base.len == text.len)
        count = out->size * 8;
    else if (!str_int64(bits, &count))
        return false;
    if (count < 0 || count > out->size * 8) return false;
    out->bits = (uint8_t)count;
    return true;
}

bool os_network_has(const struct os_network *network, const uint8_t *bytes, size_t size)
{
    if (network->size != size) return false;
    size_t whole = network->bits / 8, rest = network->bits % 8;
    if (memcmp(network->bytes, bytes, whole) != 0) return false;
    return rest == 0 || ((network->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}
