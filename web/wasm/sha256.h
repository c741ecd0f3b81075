// SHA-256 (FIPS 180-4) without a library: for the fold in the browser, where the one of src/base/sha256.c is not to be had.
// test/unit/wasm_sha256.c holds it against libcrypto.
#ifndef CAIRN_WASM_SHA256_H
#define CAIRN_WASM_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct plain_sha256 {
    uint32_t state[8];
    uint64_t size; // bytes so far
    uint8_t block[64];
};

// Each gives 1, as libcrypto's do.
int plain_sha256_init(struct plain_sha256 *hash);
int plain_sha256_update(struct plain_sha256 *hash, const void *bytes, size_t size);
int plain_sha256_final(uint8_t digest[32], struct plain_sha256 *hash);

#endif
