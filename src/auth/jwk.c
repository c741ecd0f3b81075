// Keys of a provider, and signatures by them. libcrypto has the arithmetic; what a key must be like is decided here.
#include "auth/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <string.h>

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 4096, COORDINATE = 32, ED25519_SIZE = 32, ES256_SIZE = 2 * COORDINATE };
enum { RSA_BYTES_MAX = RSA_BITS_MAX / 8, EXPONENT_BYTES_MAX = 4 };

static const char *const names[JWT_ALGORITHM_COUNT] = {"RS256", "PS256", "ES256", "EdDSA"};

enum jwt_algorithm jwt_algorithm_parse(struct str text)
{
    for (int i = 0; i < JWT_ALGORITHM_COUNT; i++)
        if (str_is(text, names[i])) return (enum jwt_algorithm)(1u << i);
    return 0;
}

// ---- reading one

static EVP_PKEY *key_from(const char *type, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = params ? EVP_PKEY_CTX_new_from_name(NULL, type, NULL) : NULL;
    if (context && EVP_PKEY_fromdata_init(context) == 1)
        if (EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1) key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    return key;
}

static EVP_PKEY *rsa_key(struct str n, struct str e)
{
    EVP_PKEY *key = NULL;
    if (n.len > RSA_BYTES_MAX || n.len == 0 || e.len == 0 || e.len > EXPONENT_BYTES_MAX) return NULL;
    BIGNUM *modulus = BN_bin2bn((const unsigned char *)n.ptr, (int)n.len, NULL);
    BIGNUM *exponent = BN_bin2bn((const unsigned char *)e.ptr, (int)e.len, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    bool sound = modulus && exponent && builder && BN_num_bits(modulus) >= RSA_BITS_MIN && BN_is_odd(modulus) &&
                 BN_is_odd(exponent) && !BN_is_one(exponent);
    if (sound && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        key = key_from("RSA", builder);
    OSSL_PARAM_BLD_free(builder);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

// A point that is not on the curve is no key: libcrypto looks.
static EVP_PKEY *p256_key(struct str x, struct str y)
{
    unsigned char point[1 + ES256_SIZE] = {POINT_CONVERSION_UNCOMPRESSED};
    EVP_PKEY *key = NULL;
    if (x.len != COORDINATE || y.len != COORDINATE) return NULL;
    memcpy(point + 1, x.ptr, COORDINATE);
    memcpy(point + 1 + COORDINATE, y.ptr, COORDINATE);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) == 1)
        key = key_from("EC", builder);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

static struct str bytes_of(const struct json *object, const char *name, struct arena *arena)
{
    return base64url_read(json_text(json_key(object, name)), arena);
}

static EVP_PKEY *make_key(const struct json *value, struct arena *arena, uint32_t *algorithms)
{
    struct str type = json_text(json_key(value, "kty")), curve = json_text(json_key(value, "crv"));
    if (str_is(type, "RSA")) {
        *algorithms = JWT_RS256 | JWT_PS256;
        return rsa_key(bytes_of(value, "n", arena), bytes_of(value, "e", arena));
    }
    if (str_is(type, "EC") && str_is(curve, "P-256")) {
        *algorithms = JWT_ES256;
        return p256_key(bytes_of(value, "x", arena), bytes_of(value, "y", arena));
    }
    struct str x = bytes_of(value, "x", arena);
    if (!str_is(type, "OKP") || !str_is(curve, "Ed25519") || x.len != ED25519_SIZE) return NULL;
    *algorithms = JWT_EDDSA;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)x.ptr, x.len);
}

// For verifying, and public. A set that shows a private key shows one that anybody may sign with.
static bool is_meant_for_us(const struct json *value)
{
    const struct json *use = json_key(value, "use"), *operations = json_key(value, "key_ops");
    bool verifies = !operations;
    for (uint32_t i = 0; json_is(operations, JSON_ARRAY) && i < operations->count; i++)
        verifies = verifies || str_is(json_text(&operations->items[i]), "verify");
    return (!use || str_is(json_text(use), "sig")) && verifies && !json_key(value, "d");
}

static bool read_key(const struct json *value, struct arena *arena, struct jwk *out)
{
    struct str kid = json_text(json_key(value, "kid"));
    const struct json *algorithm = json_key(value, "alg");
    if (!json_is(value, JSON_OBJECT) || kid.len == 0 || kid.len > JWT_NAME_MAX || !is_meant_for_us(value)) return false;
    *out = (struct jwk){.kid = arena_copy(arena, kid)};
    if (!out->kid.ptr) return false;
    EVP_PKEY *key = make_key(value, arena, &out->algorithms);
    if (algorithm) out->algorithms &= (uint32_t)jwt_algorithm_parse(json_text(algorithm));
    if (key && !out->algorithms) EVP_PKEY_free(key);
    out->key = out->algorithms ? key : NULL;
    return out->key != NULL;
}

// Which of two keys of one name is meant cannot be known: neither is.
static void drop_doubles(const struct json *list, struct jwks *jwks)
{
    size_t kept = 0;
    for (size_t i = 0; i < jwks->count; i++) {
        size_t same = 0;
        for (uint32_t k = 0; k < list->count; k++)
            same += str_eq(json_text(json_key(&list->items[k], "kid")), jwks->keys[i].kid);
        if (same == 1)
            jwks->keys[kept++] = jwks->keys[i];
        else
            EVP_PKEY_free(jwks->keys[i].key);
    }
    jwks->ignored += jwks->count - kept;
    jwks->count = kept;
}

enum code jwks_parse(struct str text, struct arena *arena, struct jwks *out, struct error *err)
{
    static const struct json_limits limits = {JWKS_SIZE_MAX, 8, 8192, 32 * 1024, 64};
    struct json value;
    *out = (struct jwks){0};
    enum code rc = json_parse(text, &limits, arena, &value, err);
    if (rc) return rc;
    const struct json *list = json_key(&value, "keys");
    if (!json_is(list, JSON_ARRAY)) return error_set(err, E_INVALID, "there is no list \"keys\" in the key set");
    if (list->count > JWKS_KEYS_MAX) return error_set(err, E_LIMIT, "the key set has more than %d keys", JWKS_KEYS_MAX);
    out->keys = ARENA_ARRAY(arena, list->count + 1, struct jwk);
    if (!out->keys) return error_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        if (read_key(&list->items[i], arena, &out->keys[out->count]))
            out->count++;
        else
            out->ignored++;
    }
    drop_doubles(list, out);
    return OK;
}

void jwks_release(struct jwks *jwks)
{
    for (size_t i = 0; i < jwks->count; i++) EVP_PKEY_free(jwks->keys[i].key);
    *jwks = (struct jwks){0};
}

// ---- signatures

// r and s side by side, as JWS has them, in the form that libcrypto takes. NULL: they are not.
static unsigned char *ecdsa_der(struct str signature, int *size)
{
    unsigned char *der = NULL;
    if (signature.len != ES256_SIZE) return NULL;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn((const unsigned char *)signature.ptr, COORDINATE, NULL);
    BIGNUM *s = BN_bin2bn((const unsigned char *)signature.ptr + COORDINATE, COORDINATE, NULL);
    if (!pair || !r || !s || BN_is_zero(r) || BN_is_zero(s) || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
    } else {
        *size = i2d_ECDSA_SIG(pair, &der);
    }
    ECDSA_SIG_free(pair);
    return der;
}

static bool verify(EVP_MD_CTX *context, const struct jwt *jwt, EVP_PKEY *key, const unsigned char *bytes, size_t size)
{
    EVP_PKEY_CTX *inner;
    const EVP_MD *digest = jwt->algorithm == JWT_EDDSA ? NULL : EVP_sha256();
    if (EVP_DigestVerifyInit(context, &inner, digest, NULL, key) != 1) return false;
    if (jwt->algorithm == JWT_PS256 && (EVP_PKEY_CTX_set_rsa_padding(inner, RSA_PKCS1_PSS_PADDING) != 1 ||
                                        EVP_PKEY_CTX_set_rsa_pss_saltlen(inner, RSA_PSS_SALTLEN_DIGEST) != 1))
        return false;
    return EVP_DigestVerify(context, bytes, size, (const unsigned char *)jwt->signed_text.ptr, jwt->signed_text.len) == 1;
}

bool jwt_signature_fits(const struct jwt *jwt, const struct jwk *key)
{
    int size = (int)jwt->signature.len;
    unsigned char *der = jwt->algorithm == JWT_ES256 ? ecdsa_der(jwt->signature, &size) : NULL;
    const unsigned char *bytes = der ? der : (const unsigned char *)jwt->signature.ptr;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool whole = jwt->signature.len > 0 && (jwt->algorithm != JWT_ES256 || (der && size > 0));
    bool fits = context && whole && verify(context, jwt, key->key, bytes, (size_t)size);
    EVP_MD_CTX_free(context);
    OPENSSL_free(der);
    return fits;
}
