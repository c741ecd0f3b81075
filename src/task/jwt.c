// Tokens that a task signs with a key of its credential: RS256 for those who give access for them (Google), or take them as they are
// (Snowflake).
#include "task/kind.h"

#include "base/base64.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

#define TEXT_MAX (64 << 10)
#define GOOGLE_SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define GOOGLE_TOKENS "https://oauth2.googleapis.com/token"

// Keys that came through an environment have their line ends as two characters.
static struct str lines_of(struct task_call *call, struct str pem)
{
    struct buf out = buf_of(TEXT_MAX);
    for (size_t i = 0; i < pem.len; i++) {
        bool end = pem.ptr[i] == '\\' && i + 1 < pem.len && pem.ptr[i + 1] == 'n';
        buf_byte(&out, end ? '\n' : pem.ptr[i]);
        i += end;
    }
    return buf_keep(&out, call->arena);
}

static int no_prompt(char *to, int size, int writes, void *context)
{
    const struct str *passphrase = context;
    (void)writes;
    if (!passphrase->len || passphrase->len > (size_t)size) return -1;
    memcpy(to, passphrase->ptr, passphrase->len);
    return (int)passphrase->len;
}

static bool key_failed(struct task_call *call, const char *what)
{
    ERR_clear_error();
    return call_fail(call, TASK_AUTH, "KEY_INVALID", "%s", what);
}

static bool read_key(struct task_call *call, struct str pem, struct str passphrase, EVP_PKEY **out)
{
    struct str text = lines_of(call, pem);
    if (!text.ptr) return call_no_memory(call);
    BIO *bio = BIO_new_mem_buf(text.ptr, (int)text.len);
    *out = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_prompt, &passphrase) : NULL;
    BIO_free(bio);
    OPENSSL_cleanse((void *)(uintptr_t)text.ptr, text.len);
    if (!*out) return key_failed(call, "the private key of the credential is no PEM that can be read with its passphrase");
    if (EVP_PKEY_get_base_id(*out) == EVP_PKEY_RSA) return true;
    EVP_PKEY_free(*out);
    return key_failed(call, "the private key of the credential is no RSA key");
}

static bool add_part(struct buf *out, const struct json *value)
{
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    json_write(&text, value);
    buf_base64url(out, buf_str(&text), false);
    return buf_ok(&text) && buf_ok(out);
}

static bool sign(struct task_call *call, EVP_PKEY *key, struct buf *text)
{
    unsigned char signature[1024];
    size_t size = sizeof(signature);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestSign(context, signature, &size, (const unsigned char *)text->ptr, text->len) == 1;
    EVP_MD_CTX_free(context);
    if (!good) return key_failed(call, "the private key of the credential cannot sign");
    buf_byte(text, '.');
    buf_base64url(text, (struct str){(const char *)signature, size}, false);
    return true;
}

// "SHA256:" and the hash of the public key, as Snowflake calls a key.
static bool fingerprint_of(struct task_call *call, EVP_PKEY *key, struct str *out)
{
    unsigned char *der = NULL;
    int size = i2d_PUBKEY(key, &der);
    if (size <= 0) return key_failed(call, "the public key of the credential cannot be written");
    struct digest hash = sha256((struct str){(const char *)der, (size_t)size});
    OPENSSL_free(der);
    struct buf text = buf_of(128);
    buf_text(&text, "SHA256:");
    buf_base64(&text, (struct str){(const char *)hash.b, sizeof(hash.b)});
    *out = buf_keep(&text, call->arena);
    return out->ptr || call_no_memory(call);
}

bool jwt_rs256(struct task_call *call, struct str pem, struct str passphrase, jwt_claims claims, const void *context,
               struct str *out)
{
    EVP_PKEY *key = NULL;
    struct json header = JSON_OF(call->arena, {"alg", json_word("RS256")}, {"typ", json_word("JWT")}), body;
    struct buf text = buf_of(TEXT_MAX);
    struct str fingerprint;
    if (!read_key(call, pem, passphrase, &key)) return false;
    bool good = fingerprint_of(call, key, &fingerprint);
    if (good) {
        body = claims(call, fingerprint, context);
        good = json_ok(&header) && json_ok(&body) && add_part(&text, &header);
        buf_byte(&text, '.');
        good = (good && add_part(&text, &body)) || call_no_memory(call);
    }
    good = good && sign(call, key, &text);
    EVP_PKEY_free(key);
    *out = buf_keep(&text, call->arena);
    if (!good) return false;
    return out->ptr ? call_hide(call, *out) : call_no_memory(call);
}

// ---- Google: a service account's key for a token

struct google {
    struct str account, tokens;
};

static struct json google_claims(struct task_call *call, struct str fingerprint, const void *context)
{
    const struct google *google = context;
    int64_t now = os_now().wall_ms / 1000;
    now -= now % (15 * 60); // the same text for a while: the token that it gives is found again
    (void)fingerprint;
    return JSON_OF(call->arena, {"iss", json_string(google->account)}, {"scope", json_string(STR(GOOGLE_SCOPE))},
                   {"aud", json_string(google->tokens)}, {"iat", json_int(now)}, {"exp", json_int(now + 3600)});
}

bool google_token(struct task_call *call, const struct json *account, struct str *out)
{
    struct json parsed, answer;
    struct str pem, signed_text;
    if (json_is(account, JSON_STRING)) {
        if (json_parse(account->text, &task_limits, call->arena, &parsed, NULL) != OK)
            return call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE", "service_account_json is not JSON");
        account = &parsed;
    }
    struct google google = {json_text(json_key(account, "client_email")), json_text(json_key(account, "token_uri"))};
    pem = json_text(json_key(account, "private_key"));
    if (!google.tokens.len) google.tokens = STR(GOOGLE_TOKENS);
    if (!google.account.len || !pem.len)
        return call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE",
                         "service_account_json has no client_email and private_key");
    if (!call_hide(call, pem) || !jwt_rs256(call, pem, STR(""), google_claims, &google, &signed_text)) return false;
    // As any other token: kept until shortly before its end.
    struct json data = JSON_OF(call->arena, {"grant_type", json_word("urn:ietf:params:oauth:grant-type:jwt-bearer")},
                               {"assertion", json_string(signed_text)});
    struct json entry = JSON_OF(call->arena, {"name", json_string(google.account)}, {"endpoint", json_string(google.tokens)},
                                {"data", data});
    if (!json_ok(&entry)) return call_no_memory(call);
    if (!oauth_answer(call, &entry, &answer)) return false;
    *out = json_text(json_key(&answer, "access_token"));
    return out->len ? call_hide(call, *out)
                    : call_fail(call, TASK_AUTH, "TOKEN_MISSING", "%.*s gave no access_token", STR_ARG(google.tokens));
}
