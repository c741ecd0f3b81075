#include "base/uuid.h"
#include "base/sha256.h"

enum { TEXT_LEN = UUID_SIZE - 1 };

static bool is_dash_at(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

void uuid_format(const uint8_t random[16], char out[UUID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *p = out;
    for (size_t i = 0; i < 16; i++) {
        uint8_t byte = random[i];
        if (i == 6) byte = (uint8_t)((byte & 0x0F) | 0x40); // version 4
        if (i == 8) byte = (uint8_t)((byte & 0x3F) | 0x80); // RFC 9562 variant
        if (is_dash_at((size_t)(p - out))) *p++ = '-';
        *p++ = digits[byte >> 4];
        *p++ = digits[byte & 15];
    }
    *p = '\0';
}

void uuid_named(struct str words, char out[UUID_SIZE])
{
    struct digest digest = sha256(words);
    uuid_format(digest.b, out);
}

bool uuid_valid(struct str text)
{
    if (text.len != TEXT_LEN) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (is_dash_at(i) ? c != '-' : !hex) return false;
    }
    return true;
}
