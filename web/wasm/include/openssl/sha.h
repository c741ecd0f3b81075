// In the browser there is no libcrypto: src/base/sha256.c gets ours by the same names.
#ifndef CAIRN_WASM_SHA_H
#define CAIRN_WASM_SHA_H

#include "sha256.h"

#define SHA256_DIGEST_LENGTH 32
#define SHA256_CTX struct plain_sha256
#define SHA256_Init plain_sha256_init
#define SHA256_Update plain_sha256_update
#define SHA256_Final plain_sha256_final

#endif
