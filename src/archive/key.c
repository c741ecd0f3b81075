// Ed25519 by libcrypto. Keys are PEM files that `openssl pkeyutl` takes, too; a bundle can be checked without Cairn.
#include "archive/archive.h"

#include "json/make.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>

#define KEY_FILE_MAX ((size_t)16 * 1024)

struct archive_key {
    EVP_PKEY *pkey;
    bool secret;
};

static enum code make(EVP_PKEY *pkey, bool secret, struct archive_key **out, struct error *err)
{
    struct archive_key *key = calloc(1, sizeof(*key));
    if (!key) {
        EVP_PKEY_free(pkey);
        return error_nomem(err);
    }
    *key = (struct archive_key){pkey, secret};
    *out = key;
    return OK;
}

enum code key_new(struct archive_key **out, struct error *err)
{
    EVP_PKEY *pkey = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    bool made = context && EVP_PKEY_keygen_init(context) == 1 && EVP_PKEY_keygen(context, &pkey) == 1;
    EVP_PKEY_CTX_free(context);
    if (!made) return error_set(err, E_UNSUPPORTED, "libcrypto cannot make an Ed25519 key");
    return make(pkey, true, out, err);
}

// No passphrase is ever asked for: an encrypted key is refused.
static int no_passphrase(char *out, int size, int writing, void *context)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

enum code key_parse(struct str pem, struct archive_key **out, struct error *err)
{
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    if (!bio) return error_nomem(err);
    bool secret = true;
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    if (!pkey) {
        secret = false;
        (void)BIO_reset(bio);
        pkey = PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    }
    BIO_free(bio);
    if (pkey && EVP_PKEY_id(pkey) == EVP_PKEY_ED25519) return make(pkey, secret, out, err);
    EVP_PKEY_free(pkey);
    return error_set(err, E_INVALID, "this is not an Ed25519 key in PEM form (or it has a passphrase)");
}

enum code key_load(const char *path, struct archive_key **out, struct error *err)
{
    struct str pem;
    struct arena arena SCOPED(arena_release) = arena_of(KEY_FILE_MAX, SIZE_MAX);
    enum code rc = os_read_file(path, KEY_FILE_MAX, &arena, &pem, err);
    if (!rc) {
        rc = key_parse(pem, out, err);
        OPENSSL_cleanse((void *)(uintptr_t)pem.ptr, pem.len);
        if (rc) error_wrap(err, "%s", path);
    }
    return rc;
}

void key_free(struct archive_key *key)
{
    if (!key) return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

bool key_is_private(const struct archive_key *key)
{
    return key->secret;
}

enum code key_pem(const struct archive_key *key, bool secret, struct arena *arena, struct str *out, struct error *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    bool done = bio && (secret ? PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL)
                               : PEM_write_bio_PUBKEY(bio, key->pkey)) == 1;
    long size = done ? BIO_get_mem_data(bio, &text) : 0;
    *out = size > 0 ? arena_copy(arena, (struct str){text, (size_t)size}) : (struct str){NULL, 0};
    BIO_free(bio);
    return out->ptr ? OK : error_set(err, E_NOMEM, "cannot write the key");
}

enum code key_id(const struct archive_key *key, char out[KEY_ID_SIZE], struct error *err)
{
    unsigned char *der = NULL;
    int size = i2d_PUBKEY(key->pkey, &der);
    if (size <= 0) return error_set(err, E_NOMEM, "cannot write the public key");
    struct digest digest = sha256((struct str){(const char *)der, (size_t)size});
    OPENSSL_free(der);
    digest_hex(&digest, out);
    return OK;
}

enum code key_sign(const struct archive_key *key, struct str bytes, uint8_t out[SIGNATURE_SIZE], struct error *err)
{
    if (!key->secret) return error_set(err, E_INVALID, "this is a public key; signing needs the private one");
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t size = SIGNATURE_SIZE;
    bool done = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key->pkey) == 1 &&
                EVP_DigestSign(context, out, &size, (const unsigned char *)bytes.ptr, bytes.len) == 1 &&
                size == SIGNATURE_SIZE;
    EVP_MD_CTX_free(context);
    return done ? OK : error_set(err, E_UNSUPPORTED, "libcrypto cannot sign with this key");
}

bool key_verifies(const struct archive_key *key, struct str bytes, struct str signature)
{
    if (signature.len != SIGNATURE_SIZE) return false;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool right = context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key->pkey) == 1 &&
                 EVP_DigestVerify(context, (const unsigned char *)signature.ptr, signature.len,
                                  (const unsigned char *)bytes.ptr, bytes.len) == 1;
    EVP_MD_CTX_free(context);
    return right;
}

enum code key_seal(const struct archive_key *key, const struct json *part, struct arena *arena, struct json *object,
                   struct error *err)
{
    uint8_t signature[SIGNATURE_SIZE];
    char id[KEY_ID_SIZE];
    struct str pem;
    struct buf text SCOPED(buf_release) = buf_of(64 * 1024);
    struct buf hex SCOPED(buf_release) = buf_of(2 * SIGNATURE_SIZE + 1);
    json_canon(&text, part);
    enum code rc = key_sign(key, buf_str(&text), signature, err);
    if (!rc) rc = key_id(key, id, err);
    if (!rc) rc = key_pem(key, false, arena, &pem, err);
    buf_hex(&hex, signature, SIGNATURE_SIZE);
    if (!rc)
        JSON_ADD(arena, object, {"signature", json_copied(arena, buf_str(&hex))},
                 {"keyId", json_copied(arena, str_from(id))}, {"publicKey", json_string(pem)});
    return rc ? rc : json_made(object, err);
}
