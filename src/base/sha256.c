// The low-level calls are deprecated in OpenSSL 3 but several times as fast as EVP for our short
// inputs: EVP allocates and looks up its method for every digest.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/sha256.h"

#include "base/invariant.h"

#include <openssl/sha.h>
#include <string.h>

_Static_assert(SHA256_SIZE == SHA256_DIGEST_LENGTH, "libcrypto means the same digest");

struct digest sha256(struct str bytes)
{
    return sha256_parts(&bytes, 1);
}

struct digest sha256_parts(const struct str *parts, size_t count)
{
    SHA256_CTX context;
    INVARIANT(SHA256_Init(&context) == 1);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len) INVARIANT(SHA256_Update(&context, parts[i].ptr, parts[i].len) == 1);
    }
    struct digest digest;
    INVARIANT(SHA256_Final(digest.b, &context) == 1);
    return digest;
}

void digest_hex(const struct digest *digest, char hex[SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        hex[i * 2] = digits[digest->b[i] >> 4];
        hex[i * 2 + 1] = digits[digest->b[i] & 15];
    }
    hex[SHA256_HEX] = '\0';
}

// Values of hex digits + 1; 0: no digit.
static const uint8_t digit_values[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

bool digest_parse(struct str hex, struct digest *out)
{
    if (hex.len != SHA256_HEX) return false;
    struct digest digest;
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        unsigned high = digit_values[(uint8_t)hex.ptr[i * 2]];
        unsigned low = digit_values[(uint8_t)hex.ptr[i * 2 + 1]];
        if (high == 0 || low == 0) return false;
        digest.b[i] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    *out = digest;
    return true;
}

bool digest_eq(const struct digest *a, const struct digest *b)
{
    return memcmp(a->b, b->b, SHA256_SIZE) == 0;
}

struct digest hmac_sha256(struct str key, struct str message)
{
    enum { BLOCK_SIZE = 64 };
    struct digest folded;
    char inner[BLOCK_SIZE], outer[BLOCK_SIZE];
    if (key.len > BLOCK_SIZE) {
        folded = sha256(key);
        key = (struct str){(const char *)folded.b, SHA256_SIZE};
    }
    for (size_t i = 0; i < BLOCK_SIZE; i++) {
        unsigned char byte = i < key.len ? (unsigned char)key.ptr[i] : 0;
        inner[i] = (char)(byte ^ 0x36);
        outer[i] = (char)(byte ^ 0x5C);
    }
    struct digest within = sha256_parts((struct str[]){{inner, BLOCK_SIZE}, message}, 2);
    struct str hash = {(const char *)within.b, SHA256_SIZE};
    return sha256_parts((struct str[]){{outer, BLOCK_SIZE}, hash}, 2);
}
