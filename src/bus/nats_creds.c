// Who we are to a NATS server: user and password, a token, or a key that signs what the server asks (nkeys, with or without a JWT).
#include "bus/nats.h"

#include "base/base64.h"

#include <openssl/evp.h>
#include <string.h>

#define SEED_BYTES 36 // two of prefix, 32 of key, two of checksum
#define KEY_SIZE 32
#define SIGNATURE_SIZE 64
#define PREFIX_USER (20 << 3)

static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

static bool base32_read(struct str text, uint8_t *out, size_t size)
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t done = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.ptr[i] ? strchr(base32, text.ptr[i]) : NULL;
        if (!at) return false;
        bits = bits << 5 | (uint32_t)(at - base32);
        count += 5;
        if (count < 8) continue;
        count -= 8;
        if (done == size) return false;
        out[done++] = (uint8_t)(bits >> count);
    }
    return done == size;
}

static void base32_write(const uint8_t *bytes, size_t size, struct buf *out)
{
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
        for (count += 8; count >= 5; count -= 5) buf_byte(out, base32[bits >> (count - 5) & 31]);
    }
    if (count) buf_byte(out, base32[bits << (5 - count) & 31]);
}

// CRC-16/XMODEM, as nkeys end in.
static uint16_t crc16(const uint8_t *bytes, size_t size)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc = (uint16_t)(crc ^ (uint16_t)(bytes[i] << 8));
        for (int k = 0; k < 8; k++) crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

// "-----BEGIN NATS USER JWT-----" and the line after it.
static struct str section(struct str text, const char *title)
{
    struct str line, rest = text;
    while (rest.len) {
        line = str_trim(str_cut(rest, '\n', &rest));
        if (!str_starts(line, STR("-----BEGIN ")) || !memmem(line.ptr, line.len, title, strlen(title))) continue;
        return str_trim(str_cut(rest, '\n', &rest));
    }
    return (struct str){0};
}

struct proof {
    struct str jwt, key, signature;
};

static bool text_of(struct buf *from, struct arena *arena, struct str *out)
{
    *out = buf_ok(from) ? arena_copy(arena, buf_str(from)) : (struct str){0};
    buf_clear(from);
    return out->ptr != NULL;
}

static bool prove(const uint8_t seed[KEY_SIZE], struct str nonce, struct arena *arena, struct proof *out)
{
    uint8_t signature[SIGNATURE_SIZE], public_key[1 + KEY_SIZE + 2] = {PREFIX_USER};
    size_t size = sizeof(signature), key_size = KEY_SIZE;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, KEY_SIZE);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = key && context && EVP_PKEY_get_raw_public_key(key, public_key + 1, &key_size) == 1 &&
                EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(context, signature, &size, (const unsigned char *)nonce.ptr, nonce.len) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    uint16_t crc = crc16(public_key, 1 + KEY_SIZE);
    public_key[1 + KEY_SIZE] = (uint8_t)crc; // little-endian
    public_key[2 + KEY_SIZE] = (uint8_t)(crc >> 8);
    struct buf text SCOPED(buf_release) = buf_of(4096);
    base32_write(public_key, sizeof(public_key), &text);
    good = good && text_of(&text, arena, &out->key);
    buf_base64url(&text, (struct str){(const char *)signature, sizeof(signature)}, false);
    return good && text_of(&text, arena, &out->signature);
}

static enum code read_creds(struct str text, struct str nonce, struct arena *arena, struct proof *out,
                            struct error *err)
{
    uint8_t seed[SEED_BYTES];
    out->jwt = section(text, "NATS USER JWT");
    struct str seed_text = section(text, "USER NKEY SEED");
    if (!seed_text.len) seed_text = str_trim(text); // a seed alone
    bool good = base32_read(seed_text, seed, sizeof(seed)) &&
                crc16(seed, SEED_BYTES - 2) == (uint16_t)(seed[SEED_BYTES - 2] | seed[SEED_BYTES - 1] << 8);
    if (!good) return error_set(err, E_INVALID, "the credentials are neither a creds file nor the seed of an nkey");
    if (!nonce.len) return error_set(err, E_INVALID, "the server asks for no signature");
    good = prove(seed + 2, nonce, arena, out);
    OPENSSL_cleanse(seed, sizeof(seed));
    return good ? OK : error_set(err, E_INVALID, "the seed of the nkey cannot sign");
}

enum code nats_identify(const struct sink_config *config, struct arena *arena, struct nats_identity *out,
                        struct error *err)
{
    const struct {
        const struct secret *secret;
        struct str *text;
    } parts[] = {{&config->user, &out->user},
                 {&config->password, &out->password},
                 {&config->token, &out->token},
                 {&config->credentials, &out->credentials}};
    enum code rc = OK;
    for (size_t i = 0; !rc && i < ARRAY_COUNT(parts); i++)
        if (sink_has_secret(parts[i].secret)) rc = sink_secret(parts[i].secret, arena, parts[i].text, err);
    return rc;
}

enum code nats_connect_write(const struct nats_identity *who, const struct json *info, struct arena *arena,
                             struct buf *out, struct error *err)
{
    struct proof proof = {0};
    struct str nonce = json_text(json_key(info, "nonce"));
    enum code rc = who->credentials.len ? read_creds(who->credentials, nonce, arena, &proof, err) : OK;
    if (rc) return rc;
    struct json object =
        JSON_OF(arena, {"verbose", json_bool(false)}, {"pedantic", json_bool(false)}, {"headers", json_bool(true)},
                {"no_responders", json_bool(true)}, {"protocol", json_int(1)}, {"lang", json_word("c")},
                {"version", json_word("0.1.0")}, {"name", json_word("cairn")}, {"user", json_some(who->user)},
                {"pass", json_some(who->password)}, {"auth_token", json_some(who->token)},
                {"jwt", json_some(proof.jwt)}, {"nkey", proof.jwt.len ? json_none() : json_some(proof.key)},
                {"sig", json_some(proof.signature)});
    json_write(out, &object);
    return buf_ok(out) ? OK : error_nomem(err);
}
