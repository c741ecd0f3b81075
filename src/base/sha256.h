// SHA-256 (by libcrypto), for content hashes, idempotency keys and the chain of events.
#ifndef CAIRN_BASE_SHA256_H
#define CAIRN_BASE_SHA256_H

#include "base/str.h"

#define SHA256_SIZE 32
#define SHA256_HEX 64

struct digest {
    uint8_t b[SHA256_SIZE];
};

struct digest sha256(struct str bytes);
struct digest sha256_parts(const struct str *parts, size_t count); // of the concatenation
void digest_hex(const struct digest *digest, char hex[SHA256_HEX + 1]);
bool digest_parse(struct str hex, struct digest *out); // 64 lower-case hex digits
bool digest_eq(const struct digest *a, const struct digest *b);
struct digest hmac_sha256(struct str key, struct str message); // RFC 2104

#endif
