// Cursors: where a list goes on, sealed, so that no client can make one up or use another client's (ux §5.2).
#include "service/inside.h"

enum { MAC_BYTES = 16 };

static struct digest mac_of(const struct call *call, struct str list, struct str place)
{
    const struct str pieces[] = {call->who.tenant, list, place};
    struct digest digests[ARRAY_COUNT(pieces)];
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) digests[i] = sha256(pieces[i]);
    const struct task_key *key = &call->service->cursor_key;
    return hmac_sha256((struct str){(const char *)key->b, sizeof(key->b)},
                       (struct str){(const char *)digests, sizeof(digests)});
}

struct str service_cursor(struct call *call, struct str list, struct str place)
{
    struct digest mac = mac_of(call, list, place);
    struct buf text = buf_of(4096);
    buf_hex(&text, mac.b, MAC_BYTES);
    buf_hex(&text, (const uint8_t *)place.ptr, place.len);
    return buf_keep(&text, &call->arena);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool service_cursor_open(struct call *call, struct str list, struct str cursor, struct str *place)
{
    size_t count = cursor.len / 2;
    uint8_t *bytes = ARENA_ARRAY(&call->arena, count + 1, uint8_t);
    if (!bytes || cursor.len % 2 || count <= MAC_BYTES) return false;
    for (size_t i = 0; i < count; i++) {
        int high = digit_of(cursor.ptr[2 * i]), low = digit_of(cursor.ptr[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *place = (struct str){(const char *)bytes + MAC_BYTES, count - MAC_BYTES};
    struct digest mac = mac_of(call, list, *place);
    unsigned differ = 0;
    for (size_t i = 0; i < MAC_BYTES; i++) differ |= (unsigned)(mac.b[i] ^ bytes[i]);
    return differ == 0;
}
