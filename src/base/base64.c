#include "base/base64.h"

static void encode(struct buf *out, struct str bytes, char plus, char slash, bool is_padded)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t group = 0;
        size_t count = bytes.len - i < 3 ? bytes.len - i : 3;
        for (size_t k = 0; k < 3; k++) group = group << 8 | (k < count ? (unsigned char)bytes.ptr[i + k] : 0);
        for (size_t k = 0; k < (is_padded ? 4 : count + 1); k++) {
            uint32_t digit = group >> (18 - 6 * k) & 63;
            buf_byte(out, k > count ? '=' : digit < 62 ? letters[digit] : digit == 62 ? plus : slash);
        }
    }
}

void buf_base64(struct buf *out, struct str bytes)
{
    encode(out, bytes, '+', '/', true);
}

void buf_base64url(struct buf *out, struct str bytes, bool is_padded)
{
    encode(out, bytes, '-', '_', is_padded);
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct str text, uint8_t *out, size_t *size)
{
    size_t end = text.len, used = 0;
    uint32_t bits = 0;
    if (text.len % 4) return false;
    while (end > 0 && text.len - end < 2 && text.ptr[end - 1] == '=') end--;
    for (size_t i = 0; i < end; i++) {
        int value = value_of(text.ptr[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4) out[used++] = (uint8_t)(bits >> (6 - i % 4 * 2));
    }
    *size = used;
    return true;
}

struct str base64_read(struct str text, struct arena *arena)
{
    size_t size = 0;
    uint8_t *out = arena_alloc(arena, text.len / 4 * 3 + 1);
    return out && base64_decode(text, out, &size) ? (struct str){(const char *)out, size} : (struct str){0};
}
