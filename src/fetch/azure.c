// Blobs: Shared Key signatures, or a shared access signature in the query.
#include "fetch/inside.h"

#include "base/base64.h"
#include "base/text.h"
#include "http/http.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION "2021-08-06"
#define TEXT_MAX (256 << 10)
#define KEY_MAX 512

struct header {
    struct str name, value;
};

static int line_order(const void *a, const void *b)
{
    return str_cmp(((const struct header *)a)->name, ((const struct header *)b)->name);
}

static void lower_in_place(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 'A' && text[i] <= 'Z') text[i] = (char)(text[i] + 32);
}

// The x-ms- headers, names in lower case, in order.
static bool write_own_headers(const struct shared_key *request, struct arena *arena, struct buf *out)
{
    size_t count = 0;
    struct header *lines = ARENA_ARRAY(arena, request->header_count + 1, struct header);
    if (!lines) return false;
    for (size_t i = 0; i < request->header_count; i++) {
        struct str name = arena_copy(arena, request->headers[i].name);
        if (!name.ptr) return false;
        lower_in_place((char *)(uintptr_t)name.ptr, name.len);
        if (str_starts(name, STR("x-ms-"))) lines[count++] = (struct header){name, str_trim(request->headers[i].value)};
    }
    qsort(lines, count, sizeof(*lines), line_order);
    for (size_t i = 0; i < count; i++) {
        buf_add(out, lines[i].name);
        buf_byte(out, ':');
        buf_add(out, lines[i].value);
        buf_byte(out, '\n');
    }
    return true;
}

static bool write_resource(const struct shared_key *request, struct arena *arena, struct buf *out)
{
    buf_byte(out, '/');
    buf_add(out, request->account);
    buf_add(out, request->path);
    size_t count = 0, room = 1;
    for (size_t i = 0; i < request->query.len; i++) room += request->query.ptr[i] == '&';
    struct header *lines = ARENA_ARRAY(arena, room, struct header);
    if (!lines) return false;
    struct str name, value;
    for (size_t at = 0; count < room && http_query_next(request->query, &at, &name, &value); count++) {
        if (!http_percent_decode(name, false, arena, &lines[count].name)) return false;
        if (!http_percent_decode(value, false, arena, &lines[count].value)) return false;
        lower_in_place((char *)(uintptr_t)lines[count].name.ptr, lines[count].name.len);
    }
    qsort(lines, count, sizeof(*lines), line_order);
    for (size_t i = 0; i < count; i++) {
        buf_byte(out, '\n');
        buf_add(out, lines[i].name);
        buf_byte(out, ':');
        buf_add(out, lines[i].value);
    }
    return true;
}

static bool write_string_to_sign(const struct shared_key *request, struct arena *arena, struct buf *out)
{
    static const char *const standard[] = {
        "Content-Encoding",  "Content-Language", "Content-Length", "Content-MD5",         "Content-Type", "Date",
        "If-Modified-Since", "If-Match",         "If-None-Match",  "If-Unmodified-Since", "Range"};
    buf_add(out, request->method);
    buf_byte(out, '\n');
    for (size_t i = 0; i < ARRAY_COUNT(standard); i++) {
        if (strcmp(standard[i], "Content-Length") != 0)
            buf_add(out, http_header_find(request->headers, request->header_count, standard[i]));
        else if (request->length)
            buf_int(out, (int64_t)request->length);
        buf_byte(out, '\n');
    }
    return write_own_headers(request, arena, out) && write_resource(request, arena, out) && buf_ok(out);
}

enum code shared_key_sign(const struct shared_key *request, struct arena *arena, struct str *out, struct error *err)
{
    uint8_t key[KEY_MAX];
    size_t key_size = 0;
    if (!request->key.len || request->key.len / 4 * 3 > KEY_MAX || !base64_decode(request->key, key, &key_size))
        return error_set(err, E_INVALID, "the key of the account is not base64");
    struct buf text = buf_of(TEXT_MAX);
    bool good = write_string_to_sign(request, arena, &text);
    struct digest mac = hmac_sha256((struct str){(const char *)key, key_size}, buf_str(&text));
    OPENSSL_cleanse(key, sizeof(key));
    if (good) buf_clear(&text);
    buf_printf(&text, "SharedKey %.*s:", STR_ARG(request->account));
    buf_base64(&text, (struct str){(const char *)mac.b, sizeof(mac.b)});
    *out = buf_keep(&text, arena);
    return good && out->ptr ? OK : error_nomem(err);
}

// ---- where a blob is

static const struct account *account_find(const struct cloud *cloud, struct str name)
{
    for (size_t i = 0; i < cloud->account_count; i++)
        if (str_eq(cloud->accounts[i].name, name)) return &cloud->accounts[i];
    return NULL;
}

static enum code add_sas(const struct account *account, const struct fetch_call *call, struct arena *arena,
                         struct fetch_target *out, struct error *err)
{
    struct str sas = call->signer ? call->signer->sas : STR("");
    size_t before = out->path.len;
    bool query = call->query.len > 0;
    enum code rc = call->signer ? OK : credential_read(&account->sas, arena, &sas, err);
    if (rc || !sas.len) return rc;
    if (sas.ptr[0] == '?') sas = str_slice(sas, 1, sas.len);
    out->path = with_query(out->path, sas, arena);
    if (!out->path.ptr) return error_nomem(err);
    if (query) *(char *)(uintptr_t)&out->path.ptr[before] = '&'; // it has one already
    return OK;
}

static enum code add_headers(const struct fetch_call *call, const struct cloud_time *time, struct arena *arena,
                             struct http_header *headers, size_t *count, struct error *err)
{
    char date[HTTP_DATE_SIZE];
    size_t n = call->header_count;
    if (n) memcpy(headers, call->headers, n * sizeof(*headers));
    http_date(time->now_ms / 1000, date);
    headers[n++] = (struct http_header){STR("x-ms-version"), STR(API_VERSION)};
    headers[n] = (struct http_header){STR("x-ms-date"), arena_copy(arena, str_from(date))};
    if (!headers[n++].value.ptr) return error_nomem(err);
    bool typed = http_header_find(call->headers, call->header_count, "x-ms-blob-type").len > 0;
    if (str_is(call->method, "PUT") && !typed)
        headers[n++] = (struct http_header){STR("x-ms-blob-type"), STR("BlockBlob")};
    *count = n;
    return OK;
}

static enum code add_signature(const struct account *account, const struct fetch_call *call, struct arena *arena,
                               struct http_header *headers, struct fetch_target *out, struct error *err)
{
    struct shared_key request = {.account = account->name,
                                 .method = call->method.len ? call->method : STR("GET"),
                                 .path = out->path,
                                 .query = call->query,
                                 .length = call->body.len,
                                 .headers = headers,
                                 .header_count = out->header_count};
    enum code rc = OK;
    if (call->signer)
        request.key = arena_copy(arena, call->signer->key); // it is wiped once the request is signed
    else
        rc = credential_read(&account->key, arena, &request.key, err);
    if (rc || !request.key.len) return rc;
    struct http_header *authorization = &headers[out->header_count];
    authorization->name = STR("Authorization");
    rc = shared_key_sign(&request, arena, &authorization->value, err);
    OPENSSL_cleanse((void *)(uintptr_t)request.key.ptr, request.key.len);
    if (!rc) out->header_count++;
    return rc;
}

enum code azure_target(const struct fetch_policy *policy, const struct uri *uri, const struct fetch_call *call,
                       const struct cloud_time *time, struct arena *arena, struct fetch_target *out, struct error *err)
{
    const struct cloud *cloud = &policy->azure;
    const struct account *configured = account_find(cloud, str_from(uri->host));
    const struct account named = {.name = str_from(uri->host)};
    const struct account *account = configured || !call->signer ? configured : &named;
    struct str blob;
    *out = (struct fetch_target){.reach = cloud->endpoint, .uri = cloud->endpoint.uri};
    if (!cloud->custom) {
        out->uri = (struct uri){.scheme = SCHEME_HTTPS, .port = 443};
        memcpy(out->uri.host, uri->host, strlen(uri->host)); // at most 24
        memcpy(out->uri.host + strlen(uri->host), ".blob.core.windows.net", sizeof(".blob.core.windows.net"));
    }
    struct http_header *headers = ARENA_ARRAY(arena, call->header_count + 3 + 4, struct http_header);
    if (!headers) return error_nomem(err);
    enum code rc = object_key(uri, call, arena, &blob, err);
    if (rc) return rc;
    out->path = object_path(cloud->custom ? str_from(uri->host) : STR(""), blob, arena);
    if (!out->path.ptr) return error_nomem(err);
    out->headers = headers;
    rc = add_headers(call, time, arena, headers, &out->header_count, err);
    if (!rc && account && !call->container) {
        static const struct customer_names names = {
            .algorithm = "x-ms-encryption-algorithm", .key = "x-ms-encryption-key", .hash = "x-ms-encryption-key-sha256"};
        size_t added = 0;
        rc = customer_headers(&account->customer, &names, arena, headers + out->header_count, &added, err);
        out->header_count += added;
    }
    if (!rc && account) rc = add_signature(account, call, arena, headers, out, err);
    out->path = with_query(out->path, call->query, arena);
    if (!rc && !out->path.ptr) rc = error_nomem(err);
    if (!rc && account) rc = add_sas(account, call, arena, out, err);
    return rc;
}
