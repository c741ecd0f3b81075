// Signed tokens of identity providers: compact JWS (RFC 7515) with the claims of a JWT (RFC 7519), and the keys that prove them (RFC 7517).
//
//   text --jwt_read--> header and claims, not proved: good for choosing the provider by `iss` and nothing else
//        --jwt_check--> signature by the key of that `kid`, then issuer, audience, times --claims_grant--> principal
//
//  J1 The algorithm is one of the caller's list and fits the key. "none" and HMAC are not in any list.
//  J2 The key comes from the set that the caller has, by `kid` alone. A header that brings or names a key of its own (jwk, jku, x5u,
//     x5c), or asks for what must be understood (crit), makes the token refused.
//  J3 A token is a function of its text: unpadded base64url without stray bits, JSON without duplicate members, limits on every size.
//  J4 No grant that fits: no principal. What is missing is said to the caller, who tells the log and not the stranger.
//
// Everything is a function of its arguments; libcrypto verifies. A key set may be used by several threads.
#ifndef CAIRN_AUTH_JWT_H
#define CAIRN_AUTH_JWT_H

#include "auth/auth.h"

enum jwt_algorithm { JWT_RS256 = 1, JWT_PS256 = 2, JWT_ES256 = 4, JWT_EDDSA = 8 };
enum {
    JWT_ALGORITHM_COUNT = 4,
    JWT_SIZE_MAX = 16 * 1024,
    JWT_NAME_MAX = 255, // of sub and kid
    JWT_ISSUER_MAX = 512,
    JWKS_SIZE_MAX = 256 * 1024,
    JWKS_KEYS_MAX = 64,
};
enum jwt_algorithm jwt_algorithm_parse(struct str text);      // 0: none of them

// ---- keys
struct jwk {
    struct str kid;
    uint32_t algorithms; // that it may verify
    void *key;           // EVP_PKEY
};
struct jwks {
    struct jwk *keys;
    size_t count;
    size_t ignored; // members that cannot be used: other types or uses, short keys, private keys, a kid that is there twice
};
// A set without a key that can be used is a set, too: the provider has withdrawn its keys.
// E_INVALID (no JWKS), E_LIMIT, E_NOMEM. Texts are copied to `arena`.
enum code jwks_parse(struct str text, struct arena *arena, struct jwks *out, struct error *err) MUST_CHECK;
void jwks_release(struct jwks *jwks);

// ---- tokens
struct jwt {
    enum jwt_algorithm algorithm;
    struct str kid;
    struct str signed_text, signature; // borrowed; bytes
    struct json claims;
    struct str issuer, subject; // of the claims
    int64_t expires_ms;         // set by jwt_check: until when it counts, skew and maximum age taken in
};
struct jwt_rules {
    struct str issuer;
    struct names audiences; // one of them must be in `aud`
    struct str client;      // who must be `azp` of a token for several; empty: a token for several is refused
    uint32_t algorithms;
    int64_t skew_ms;
    int64_t max_age_ms; // since `iat`; 0 = as long as `exp` says
};
bool jwt_is_like(struct str text); // three parts: worth reading
// E_DENIED: not a token that could ever be good, with the reason. E_NOMEM. Proves nothing.
enum code jwt_read(struct str text, struct arena *arena, struct jwt *out, struct error *err) MUST_CHECK;
// E_DENIED with the reason; E_NOT_FOUND: there is no key of that kid.
enum code jwt_check(struct jwt *jwt, const struct jwks *jwks, const struct jwt_rules *rules, int64_t now_ms,
                    struct error *err) MUST_CHECK;
bool jwt_signature_fits(const struct jwt *jwt, const struct jwk *key); // jwk.c
// Unpadded, no bits left over. ptr NULL: it is not, or there is no memory.
struct str base64url_read(struct str text, struct arena *arena);

// ---- what claims give
struct claim_grant {
    struct str claim, value;                  // the claim (a name, or names with dots between them) is this text or has it in its list
    struct str tenant, tenant_claim;          // one of them
    uint32_t roles;
    struct names projects, environments;
    struct str projects_claim, environments_claim; // instead of these: a text or a list of texts, which must be there
};
// The first grant that fits decides, alone: grants are not added up. E_DENIED names the claims that were looked for.
enum code claims_grant(const struct jwt *jwt, const struct claim_grant *grants, size_t count, struct arena *arena,
                       struct principal *out, struct error *err) MUST_CHECK;

#endif
