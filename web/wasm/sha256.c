#include "sha256.h"

#include <string.h>

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void write_word(uint8_t *bytes, uint32_t word)
{
    for (unsigned i = 0; i < 4; i++) bytes[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void mix(struct plain_sha256 *hash, const uint8_t block[64])
{
    uint32_t words[64], s[8];
    for (unsigned i = 0; i < 16; i++) words[i] = read_word(block + 4 * i);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + words[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(s, hash->state, sizeof(s));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t chosen = (s[4] & s[5]) ^ (~s[4] & s[6]), most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + chosen + rounds[i] + words[i];
        uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + most;
        memmove(s + 1, s, 7 * sizeof(s[0]));
        s[4] += one;
        s[0] = one + two;
    }
    for (unsigned i = 0; i < 8; i++) hash->state[i] += s[i];
}

int plain_sha256_init(struct plain_sha256 *hash)
{
    // The same of the square roots of the first eight.
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, first, sizeof(first));
    hash->size = 0;
    return 1;
}

int plain_sha256_update(struct plain_sha256 *hash, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    size_t held = hash->size % 64;
    hash->size += size;
    if (held > 0) {
        size_t part = 64 - held < size ? 64 - held : size;
        memcpy(hash->block + held, from, part);
        from += part;
        size -= part;
        if (held + part < 64) return 1;
        mix(hash, hash->block);
    }
    for (; size >= 64; size -= 64, from += 64) mix(hash, from);
    if (size > 0) memcpy(hash->block, from, size);
    return 1;
}

int plain_sha256_final(uint8_t digest[32], struct plain_sha256 *hash)
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    uint64_t bits = hash->size * 8;
    write_word(length, (uint32_t)(bits >> 32));
    write_word(length + 4, (uint32_t)bits);
    size_t held = hash->size % 64;
    plain_sha256_update(hash, padding, held < 56 ? 56 - held : 120 - held);
    plain_sha256_update(hash, length, sizeof(length));
    for (unsigned i = 0; i < 8; i++) write_word(digest + 4 * i, hash->state[i]);
    return 1;
}
