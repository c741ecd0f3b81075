// Objects behind the S3 interface: AWS Signature Version 4, and where a bucket lives. Google's interface takes the same signatures.
#include "fetch/inside.h"

#include "base/base64.h"
#include "base/civil.h"
#include "base/text.h"
#include "http/http.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define DAY_SIZE 8           // 20130524
#define STAMP_SIZE 16        // 20130524T000000Z
#define TEXT_MAX (256 << 10) // of a canonical request

static struct digest hmac_with(const struct digest *key, struct str text)
{
    return hmac_sha256((struct str){(const char *)key->b, sizeof(key->b)}, text);
}

static void stamp_of(int64_t now_ms, char out[STAMP_SIZE + 1])
{
    char text[CIVIL_SIZE];
    size_t n = 0;
    civil_format(now_ms, text);
    for (const char *c = text; *c && *c != '.'; c++)
        if (*c != '-' && *c != ':') out[n++] = *c;
    out[n++] = 'Z';
    out[n] = '\0';
    INVARIANT(n == STAMP_SIZE);
}

// ---- the canonical request

struct pair {
    struct str name, value;
};

static int pair_order(const void *a, const void *b)
{
    const struct pair *left = a, *right = b;
    int order = str_cmp(left->name, right->name);
    return order ? order : str_cmp(left->value, right->value);
}

static bool write_query(struct str query, struct arena *arena, struct buf *out)
{
    size_t count = 0, room = 1;
    for (size_t i = 0; i < query.len; i++) room += query.ptr[i] == '&';
    struct pair *pairs = ARENA_ARRAY(arena, room, struct pair);
    if (!pairs) return false;
    for (size_t at = 0; http_query_next(query, &at, &pairs[count].name, &pairs[count].value);)
        if (++count == room) break;
    qsort(pairs, count, sizeof(*pairs), pair_order);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(out, '&');
        buf_add(out, pairs[i].name);
        buf_byte(out, '=');
        buf_add(out, pairs[i].value);
    }
    return true;
}

static struct str lower_copy(struct str text, struct arena *arena)
{
    char *copy = ARENA_ARRAY(arena, text.len + 1, char);
    if (!copy) return (struct str){0};
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? (char)(text.ptr[i] + 32) : text.ptr[i];
    return (struct str){copy, text.len};
}

static void write_value(struct buf *out, struct str value)
{
    value = str_trim(value);
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] != ' ' || value.ptr[i - 1] != ' ') buf_byte(out, value.ptr[i]);
}

// Lower-case names, in order.
static struct pair *sorted_headers(const struct sigv4 *request, const struct http_header *more, size_t more_count,
                                   struct arena *arena)
{
    size_t count = 0;
    struct pair *pairs = ARENA_ARRAY(arena, request->header_count + more_count + 1, struct pair);
    if (!pairs) return NULL;
    pairs[count++] = (struct pair){STR("host"), request->host};
    for (size_t i = 0; i < request->header_count + more_count; i++) {
        const struct http_header *from =
            i < request->header_count ? &request->headers[i] : &more[i - request->header_count];
        struct str name = lower_copy(from->name, arena);
        if (!name.ptr) return NULL;
        pairs[count++] = (struct pair){name, from->value};
    }
    qsort(pairs, count, sizeof(*pairs), pair_order);
    return pairs;
}

static void write_names(struct buf *out, const struct pair *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(out, ';');
        buf_add(out, headers[i].name);
    }
}

static bool write_canonical(const struct sigv4 *request, const struct pair *headers, size_t count, struct str body_hash,
                            struct arena *arena, struct buf *out)
{
    buf_add(out, request->method);
    buf_byte(out, '\n');
    buf_add(out, request->path);
    buf_byte(out, '\n');
    if (!write_query(request->query, arena, out)) return false;
    buf_byte(out, '\n');
    for (size_t i = 0; i < count; i++) {
        buf_add(out, headers[i].name);
        buf_byte(out, ':');
        write_value(out, headers[i].value);
        buf_byte(out, '\n');
    }
    buf_byte(out, '\n');
    write_names(out, headers, count);
    buf_byte(out, '\n');
    buf_add(out, body_hash);
    return buf_ok(out);
}

// ---- the signature

static bool signing_key(const struct sigv4 *request, struct str day, struct arena *arena, struct digest *out)
{
    const struct str word = STR("AWS4");
    size_t size = word.len + request->secret.len;
    char *first = ARENA_ARRAY(arena, size, char);
    if (!first) return false;
    memcpy(first, word.ptr, word.len);
    memcpy(first + word.len, request->secret.ptr, request->secret.len);
    struct digest key = hmac_sha256((struct str){first, size}, day);
    OPENSSL_cleanse(first, size);
    key = hmac_with(&key, request->region);
    key = hmac_with(&key, request->service);
    *out = hmac_with(&key, STR("aws4_request"));
    OPENSSL_cleanse(&key, sizeof(key));
    return true;
}

static void write_scope(struct buf *out, const struct sigv4 *request, struct str day)
{
    buf_add(out, day);
    buf_byte(out, '/');
    buf_add(out, request->region);
    buf_byte(out, '/');
    buf_add(out, request->service);
    buf_add(out, STR("/aws4_request"));
}

static bool write_authorization(const struct sigv4 *request, const struct pair *headers, size_t count, struct str stamp,
                                struct str body_hash, struct arena *arena, struct buf *out)
{
    char hex[SHA256_HEX + 1];
    struct str day = str_slice(stamp, 0, DAY_SIZE);
    if (!write_canonical(request, headers, count, body_hash, arena, out)) return false;
    struct digest canonical = sha256(buf_str(out));
    buf_clear(out);
    buf_add(out, STR("AWS4-HMAC-SHA256\n"));
    buf_add(out, stamp);
    buf_byte(out, '\n');
    write_scope(out, request, day);
    buf_byte(out, '\n');
    buf_hex(out, canonical.b, sizeof(canonical.b));
    struct digest key;
    if (!signing_key(request, day, arena, &key)) return false;
    struct digest signature = hmac_with(&key, buf_str(out));
    OPENSSL_cleanse(&key, sizeof(key));
    digest_hex(&signature, hex);
    buf_clear(out);
    buf_add(out, STR("AWS4-HMAC-SHA256 Credential="));
    buf_add(out, request->key_id);
    buf_byte(out, '/');
    write_scope(out, request, day);
    buf_add(out, STR(",SignedHeaders="));
    write_names(out, headers, count);
    buf_add(out, STR(",Signature="));
    buf_text(out, hex);
    return buf_ok(out);
}

bool sigv4_sign(const struct sigv4 *request, struct arena *arena, struct http_header out[4], size_t *count)
{
    char stamp[STAMP_SIZE + 1], body_hash[SHA256_HEX + 1];
    size_t n = 0;
    stamp_of(request->now_ms, stamp);
    digest_hex(&request->body, body_hash);
    out[n++] = (struct http_header){STR("x-amz-content-sha256"), arena_copy(arena, str_from(body_hash))};
    out[n++] = (struct http_header){STR("x-amz-date"), arena_copy(arena, str_from(stamp))};
    if (request->token.len) out[n++] = (struct http_header){STR("x-amz-security-token"), request->token};
    if (!out[0].value.ptr || !out[1].value.ptr) return false;
    struct pair *headers = sorted_headers(request, out, n, arena);
    if (!headers) return false;
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    bool good = write_authorization(request, headers, 1 + request->header_count + n, str_from(stamp),
                                    str_from(body_hash), arena, &text);
    out[n] = (struct http_header){STR("Authorization"), good ? arena_copy(arena, buf_str(&text)) : (struct str){0}};
    *count = n + 1;
    return out[n].value.ptr != NULL;
}

// ---- where an object is

struct str with_query(struct str path, struct str query, struct arena *arena)
{
    if (!query.len || !path.ptr) return path;
    char *text = ARENA_ARRAY(arena, path.len + query.len + 1, char);
    if (!text) return (struct str){0};
    memcpy(text, path.ptr, path.len);
    text[path.len] = '?';
    memcpy(text + path.len + 1, query.ptr, query.len);
    return (struct str){text, path.len + query.len + 1};
}

enum code object_key(const struct uri *uri, const struct fetch_call *call, struct arena *arena, struct str *out,
                     struct error *err)
{
    struct str path = uri->path;
    size_t container = uri->scheme == SCHEME_AZURE ? str_find(path, '/', 1) : 1;
    if (call->container) path = str_slice(path, 0, container);
    return uri_decode(path, arena, out) ? OK : error_nomem(err);
}

// '/' and unreserved characters as they are, all else escaped, once, in upper case: what the signature is over.
struct str object_path(struct str first, struct str key, struct arena *arena)
{
    struct buf out = buf_of(4 * FETCH_URI_MAX);
    if (first.len) {
        buf_byte(&out, '/');
        buf_add(&out, first);
    }
    for (size_t at = 0; at < key.len;) {
        size_t end = str_find(key, '/', at + 1);
        buf_byte(&out, '/');
        http_percent_encode(&out, str_slice(key, at + 1, end));
        at = end;
    }
    return buf_keep(&out, arena);
}

static bool provider(const struct uri *uri, struct str region, struct uri *out)
{
    bool google = uri->scheme == SCHEME_GS;
    *out = (struct uri){.scheme = SCHEME_HTTPS, .port = 443};
    struct buf host SCOPED(buf_release) = buf_of(HOST_MAX);
    if (!google) buf_printf(&host, "%s.s3.%.*s.amazonaws.com", uri->host, STR_ARG(region));
    if (google) buf_text(&host, "storage.googleapis.com");
    bool fits = buf_ok(&host);
    if (fits) memcpy(out->host, host.ptr, host.len + 1);
    return fits;
}

#define CUSTOMER_KEY_SIZE 32

enum code customer_headers(const struct secret_source *ref, const struct customer_names *names, struct arena *arena,
                           struct http_header out[3], size_t *count, struct error *err)
{
    struct str text;
    *count = 0;
    enum code rc = credential_read(ref, arena, &text, err);
    if (rc || !text.len) return rc;
    uint8_t key[CUSTOMER_KEY_SIZE + 3], hash[EVP_MAX_MD_SIZE];
    size_t size = 0;
    unsigned hash_size = 0;
    // 32 bytes are 44 characters: no more is decoded than there is room for.
    bool right = text.len == 44 && base64_decode(text, key, &size) && size == CUSTOMER_KEY_SIZE;
    bool good = right && EVP_Digest(key, size, hash, &hash_size, names->md5 ? EVP_md5() : EVP_sha256(), NULL) == 1;
    OPENSSL_cleanse(key, sizeof(key));
    if (!right) return error_set(err, E_INVALID, "the customer's key is not 32 bytes in base64");
    struct buf told = buf_of(128);
    if (good) buf_base64(&told, (struct str){(const char *)hash, hash_size});
    struct str hashed = buf_keep(&told, arena);
    if (!good || !hashed.ptr) return error_nomem(err);
    out[(*count)++] = (struct http_header){str_from(names->algorithm), STR("AES256")};
    out[(*count)++] = (struct http_header){str_from(names->key), text};
    out[(*count)++] = (struct http_header){str_from(names->hash), hashed};
    return OK;
}

static enum code signer_of(const struct cloud *cloud, const struct fetch_call *call, struct arena *arena,
                           struct sigv4 *request, struct error *err)
{
    const struct fetch_signer *own = call->signer;
    if (own) {
        // Copies: the secret is wiped once the request is signed, and a second one may have to be.
        request->key_id = own->key_id;
        request->secret = arena_copy(arena, own->secret);
        request->token = own->session;
        return request->secret.ptr ? OK : error_nomem(err);
    }
    enum code rc = credential_read(&cloud->key_id, arena, &request->key_id, err);
    if (!rc) rc = credential_read(&cloud->secret, arena, &request->secret, err);
    if (!rc) rc = credential_read(&cloud->token, arena, &request->token, err);
    return rc;
}

static enum code bearer(struct str token, struct arena *arena, struct http_header *out, struct error *err)
{
    struct buf text = buf_of(65536);
    buf_text(&text, "Bearer ");
    buf_add(&text, token);
    *out = (struct http_header){STR("Authorization"), buf_keep(&text, arena)};
    return out->value.ptr ? OK : error_nomem(err);
}

static enum code sign(const struct cloud *cloud, const struct fetch_call *call, const struct cloud_time *time,
                      struct str region, struct arena *arena, struct fetch_target *out, struct error *err)
{
    static const struct customer_names customer_names = {
        .algorithm = "x-amz-server-side-encryption-customer-algorithm",
        .key = "x-amz-server-side-encryption-customer-key",
        .hash = "x-amz-server-side-encryption-customer-key-MD5",
        .md5 = true};
    struct sigv4 request = {.region = region,
                            .service = STR("s3"),
                            .now_ms = time->now_ms,
                            .method = call->method.len ? call->method : STR("GET"),
                            .path = out->path,
                            .query = call->query,
                            .body = sha256(call->body)};
    enum code rc = signer_of(cloud, call, arena, &request, err);
    if (rc) return rc;
    struct http_header *headers = ARENA_ARRAY(arena, call->header_count + 3 + 4, struct http_header);
    request.host = host_header(&out->uri, arena);
    if (!headers || !request.host.ptr) return error_nomem(err);
    if (call->header_count) memcpy(headers, call->headers, call->header_count * sizeof(*headers));
    size_t added = 0;
    // A request for the bucket needs no key of its objects.
    if (!call->container)
        rc = customer_headers(&cloud->customer, &customer_names, arena, headers + call->header_count, &added, err);
    if (rc) return rc;
    request.headers = out->headers = headers;
    request.header_count = out->header_count = call->header_count + added;
    if (call->signer && call->signer->bearer.len)
        return bearer(call->signer->bearer, arena, &headers[out->header_count++], err);
    if (!request.key_id.len) return OK;
    bool good = sigv4_sign(&request, arena, headers + out->header_count, &added);
    OPENSSL_cleanse((void *)(uintptr_t)request.secret.ptr, request.secret.len);
    out->header_count += added;
    return good ? OK : error_nomem(err);
}

enum code s3_target(const struct fetch_policy *policy, const struct uri *uri, const struct fetch_call *call,
                    const struct cloud_time *time, struct arena *arena, struct fetch_target *out, struct error *err)
{
    const struct cloud *cloud = uri->scheme == SCHEME_GS ? &policy->gs : &policy->s3;
    struct str region = time->region.len ? time->region : cloud->region, key;
    if (!time->region.len && call->signer && call->signer->region.len) region = call->signer->region;
    if (!region_valid(region)) return error_set(err, E_INVALID, "the region is not a plain word");
    bool in_path = cloud->custom || uri->scheme == SCHEME_GS;
    *out = (struct fetch_target){.reach = cloud->endpoint, .uri = cloud->endpoint.uri};
    if (!cloud->custom && !provider(uri, region, &out->uri))
        return error_set(err, E_LIMIT, "the bucket's name is too long");
    enum code rc = object_key(uri, call, arena, &key, err);
    if (rc) return rc;
    out->path = object_path(in_path ? str_from(uri->host) : STR(""), key, arena);
    if (!out->path.ptr) return error_nomem(err);
    rc = sign(cloud, call, time, region, arena, out, err);
    out->path = with_query(out->path, call->query, arena);
    return rc || out->path.ptr ? rc : error_nomem(err);
}
