// Kinds s3, gcs, azure: objects in a store, by its own interface and with signed requests. One client and one policy decide where it
// is (fetch/fetch.h): a service's configuration says which server answers for which bucket, and a task never does. On a command line
// its user's credential says it.
#include "task/kind.h"

#include "base/base64.h"
#include "http/http.h"

#include <stdlib.h>
#include <string.h>

enum { METADATA_MAX = 16, HEADERS_MAX = METADATA_MAX + 4, NAMES_DEFAULT = 1000, NAMES_MAX = 100000 };

struct object_kind {
    const char *kind, *scheme, *container, *metadata; // how a bucket is called, what the names of metadata begin with
};
static const struct object_kind s3 = {"s3", "s3", "bucket", "x-amz-meta-"};
static const struct object_kind gcs = {"gcs", "gs", "bucket", "x-amz-meta-"}; // of its interoperable interface
static const struct object_kind azure = {"azure", "azure", "container", "x-ms-meta-"};

struct object_call {
    struct task_call *call;
    const struct object_kind *kind;
    struct str uri, bucket, key; // bucket: of azure ACCOUNT/CONTAINER
    struct fetch_signer signer;
    bool own; // the signer, not the policy, says who asks
    struct fetch_policy *policy;
    struct http_header headers[HEADERS_MAX];
    size_t header_count;
};

// ---- which object

static bool take_uri(struct object_call *o, struct str uri)
{
    struct task_call *call = o->call;
    struct str scheme = call_printf(call, "%s://", o->kind->scheme);
    if (!str_starts(uri, scheme))
        return call_fail(call, TASK_CLIENT, "URI_INVALID", "%s names objects by %.*s..., not by %.*s", o->kind->kind,
                         STR_ARG(scheme), STR_ARG(str_slice(uri, 0, 200)));
    struct str rest = str_slice(uri, scheme.len, uri.len);
    size_t end = str_find(rest, '/', 0);
    if (o->kind == &azure && end < rest.len) end = str_find(rest, '/', end + 1);
    o->uri = uri;
    o->bucket = str_slice(rest, 0, end);
    o->key = end < rest.len ? str_slice(rest, end + 1, rest.len) : STR("");
    struct str plain;
    if (!http_percent_decode(o->key, false, call->arena, &plain))
        return call_fail(call, TASK_CLIENT, "URI_INVALID", "%.*s: an escape is malformed", STR_ARG(str_slice(uri, 0, 200)));
    o->key = plain;
    return true;
}

static struct str either(struct task_call *call, const char *first, const char *second, const char *third)
{
    struct str text = call_string(call, first, "");
    if (!text.len) text = call_string(call, second, "");
    return text.len ? text : call_string(call, third, "");
}

static bool place(struct object_call *o, bool list)
{
    struct task_call *call = o->call;
    struct str uri = either(call, "uri", "url", "object"), destination = call_string(call, "destination", "");
    if (!uri.len && str_starts(destination, call_printf(call, "%s://", o->kind->scheme))) uri = destination;
    if (uri.len) return take_uri(o, uri);
    struct str bucket = either(call, "bucket", "container", "bucket_name");
    struct str account = call_string(call, "account", "");
    struct str key = list ? either(call, "prefix", "key", "blob") : either(call, "key", "blob", "path");
    if (!bucket.len)
        return call_fail(call, TASK_CLIENT, "OBJECT_MISSING", "%s needs uri (%s://...), or %s and key", o->kind->kind,
                         o->kind->scheme, o->kind->container);
    if (o->kind == &azure && !account.len)
        return call_fail(call, TASK_CLIENT, "OBJECT_MISSING", "azure needs account beside container");
    if (o->kind == &azure) bucket = call_printf(call, "%.*s/%.*s", STR_ARG(account), STR_ARG(bucket));
    o->bucket = bucket;
    o->key = key;
    o->uri = fetch_object_uri(o->kind->scheme, bucket, key, call->arena);
    return o->uri.ptr || call_no_memory(call);
}

static bool has_key(struct object_call *o)
{
    // Where the task names only the bucket, the object is called as its file is.
    struct str source = call_string(o->call, "source", "");
    size_t slash = source.len;
    while (slash > 0 && source.ptr[slash - 1] != '/') slash--;
    if (!o->key.len && slash < source.len) {
        o->key = str_slice(source, slash, source.len);
        o->uri = fetch_object_uri(o->kind->scheme, o->bucket, o->key, o->call->arena);
        if (!o->uri.ptr) return call_no_memory(o->call);
    }
    return o->key.len || call_fail(o->call, TASK_CLIENT, "OBJECT_MISSING", "%s needs the key of the object", o->kind->kind);
}

// ---- who asks, and where

static bool hide(struct object_call *o)
{
    const struct fetch_signer *s = &o->signer;
    const struct str secrets[] = {s->secret, s->session, s->bearer, s->key, s->sas};
    for (size_t i = 0; i < ARRAY_COUNT(secrets); i++)
        if (secrets[i].len && !call_hide(o->call, secrets[i])) return false;
    return true;
}

// A Google credential is a service account's key, which gets a token, or a key of the interoperable interface.
static bool read_signer(struct object_call *o, const struct json *auth)
{
    struct task_call *call = o->call;
    struct fetch_signer *s = &o->signer;
    s->region = credential_field(call, auth, "region|aws_region|region_name");
    if (o->kind == &azure) {
        s->key = credential_field(call, auth, "account_key|azure_account_key|shared_key|key");
        s->sas = credential_field(call, auth, "sas|sas_token|azure_sas");
    } else {
        s->key_id = credential_field(call, auth, "access_key_id|aws_access_key_id|key_id|hmac_key_id|access_key");
        s->secret = credential_field(call, auth, "secret_access_key|aws_secret_access_key|secret_key|hmac_secret|secret");
        s->session = credential_field(call, auth, "session_token|aws_session_token");
    }
    const struct json *account = json_key(auth, "service_account_json");
    if (!account && json_key(auth, "private_key")) account = auth;
    if (o->kind == &gcs) s->bearer = credential_field(call, auth, "access_token|token|bearer");
    if (o->kind == &gcs && account && !s->bearer.len && !google_token(call, account, &s->bearer)) return false;
    if (!hide(o)) return false;
    bool whole = o->kind == &azure ? s->key.len || s->sas.len : s->bearer.len || (s->key_id.len && s->secret.len);
    return whole || call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE",
                              o->kind == &azure ? "the credential has neither account_key nor sas"
                              : o->kind == &gcs ? "the credential has neither service_account_json nor access_key_id and secret_access_key"
                                                : "the credential has no access_key_id and secret_access_key");
}

// What a user's own command line may reach: this bucket, at the endpoint of the credential or of the task.
static bool own_policy(struct object_call *o, struct str endpoint)
{
    struct task_call *call = o->call;
    struct error err = {0};
    struct json allow = json_array(), part = json_object();
    json_append(call->arena, &allow, json_string(call_printf(call, "%s://%.*s/", o->kind->scheme, STR_ARG(o->bucket))));
    JSON_ADD(call->arena, &part, {"endpoint", json_some(endpoint)}, {"allowPrivate", json_flag(endpoint.len > 0)});
    struct json config = JSON_OF(call->arena, {"allow", allow}, {o->kind->scheme, part});
    if (!json_ok(&config)) return call_no_memory(call);
    if (fetch_policy_parse(&config, call->arena, &o->policy, &err) == OK) return true;
    return call_fail(call, TASK_CLIENT, "OBJECT_INVALID", "%s", err.message);
}

static bool identify(struct object_call *o)
{
    struct task_call *call = o->call;
    struct json auth;
    bool trusted;
    const struct json *written = call_get(call, "auth");
    if (!written) written = call_get(call, "credential");
    if (!call_credential(call, written, &auth, &trusted)) return false;
    o->own = auth.type != 0;
    struct str endpoint = call_string(call, "endpoint", "");
    if (!endpoint.len) endpoint = credential_field(call, &auth, "endpoint|endpoint_url|s3_endpoint");
    struct fetch_policy *policy = (struct fetch_policy *)(uintptr_t)tasks_options(call->tasks)->policy;
    if (call_strict(call) && !o->own)
        return call_fail(call, TASK_AUTH, "CREDENTIAL_NEEDED",
                         "here %s is reached with a credential of the task: auth: NAME", o->kind->kind);
    if (policy && endpoint.len)
        return call_fail(call, TASK_CLIENT, "ENDPOINT_NOT_ALLOWED",
                         "here the configuration says where %s:// is (fetch.%s.endpoint), and a task or its credential does not",
                         o->kind->scheme, o->kind->scheme);
    if (o->own && !read_signer(o, &auth)) return false;
    struct str region = call_string(call, "region", "");
    if (region.len) o->signer.region = region;
    o->policy = policy;
    return policy || own_policy(o, endpoint);
}

// ---- requests

static bool add_header(struct object_call *o, struct str name, struct str value)
{
    struct http_header header = {name, value};
    if (o->header_count == HEADERS_MAX || !http_header_valid(header))
        return call_fail(o->call, TASK_CLIENT, "HEADER_INVALID", "%.*s cannot be sent with an object",
                         STR_ARG(str_slice(name, 0, 64)));
    o->headers[o->header_count++] = header;
    return true;
}

static struct fetch_call request_of(struct object_call *o, const char *method, struct str body)
{
    struct task_call *call = o->call;
    return (struct fetch_call){.method = str_from(method),
                               .uri = o->uri,
                               .headers = o->headers,
                               .header_count = o->header_count,
                               .body = body,
                               .timeout_ms = call_left_ms(call) == INT64_MAX ? 0 : call_left_ms(call),
                               .signer = o->own ? &o->signer : NULL,
                               .stopped = call_stopped,
                               .stop_context = call};
}

// What a store that said no said: its code, where it has one.
static void status_failed(struct object_call *o, const struct fetch_answer *answer)
{
    struct task_call *call = o->call;
    int status = answer->status;
    struct str body = str_slice(answer->body, 0, 4096);
    const char *begin = memmem(body.ptr ? body.ptr : "", body.len, "<Code>", 6);
    struct str code = begin ? str_slice(body, (size_t)(begin - body.ptr) + 6, body.len) : STR("");
    code = str_slice(code, 0, str_find(code, '<', 0));
    for (size_t i = 0; i < code.len; i++)
        if (!char_is_word(code.ptr[i])) code.len = 0;
    enum task_error error = status == 401 || status == 403   ? TASK_AUTH
                            : status == 404                  ? TASK_NOT_FOUND
                            : status == 429                  ? TASK_RATE_LIMIT
                            : status == 408                  ? TASK_TIMEOUT
                            : status == 507                  ? TASK_STORAGE_QUOTA
                            : status >= 500                  ? TASK_SERVER
                                                             : TASK_CLIENT;
    bool exists = status == 412 || (status == 409 && str_is(code, "BlobAlreadyExists"));
    call_fail(call, error,
              status == 404 ? "OBJECT_NOT_FOUND"
              : exists      ? "OBJECT_EXISTS"
              : error == TASK_AUTH ? "STORAGE_DENIED"
                                   : "STORAGE_REFUSED",
              "%.*s: the store answered %d%s%.*s", STR_ARG(str_slice(o->uri, 0, 300)), status, code.len ? " " : "",
              STR_ARG(code));
}

static bool ask(struct object_call *o, const char *method, struct str body, struct fetch_answer *answer)
{
    struct task_call *call = o->call;
    struct error err = {0};
    struct fetch_call request = request_of(o, method, body);
    int64_t began = os_mono_us();
    enum code rc = fetch_call(o->policy, &request, call->arena, answer, &err);
    struct str uri = str_slice(o->uri, 0, 300);
    if (rc) {
        web_refused(call, rc, &err);
        call_log(call, true, "%s %.*s: %.*s", method, STR_ARG(uri), STR_ARG(call->out.message));
        return false;
    }
    call_log(call, false, "%s %.*s: %d, %zu bytes in %lld ms", method, STR_ARG(uri), answer->status,
             body.len ? body.len : answer->body.len, (long long)((os_mono_us() - began) / 1000));
    return true;
}

// ---- operations

static struct json facts(struct object_call *o, const struct fetch_answer *answer, struct json size)
{
    struct task_call *call = o->call;
    struct str etag = fetch_header(answer, "etag"), type = fetch_header(answer, "content-type");
    return JSON_OF(call->arena, {"uri", json_string(o->uri)}, {o->kind->container, json_string(o->bucket)},
                   {"key", json_string(o->key)}, {"size", size}, {"content_type", json_some(call_clean(call, type))},
                   {"etag", json_some(call_clean(call, etag))},
                   {"last_modified", json_some(call_clean(call, fetch_header(answer, "last-modified")))});
}

static void get(struct object_call *o)
{
    struct task_call *call = o->call;
    struct fetch_answer answer;
    struct str file = either(call, "file", "path_to", "destination");
    if (!has_key(o) || !ask(o, "GET", STR(""), &answer)) return;
    if (answer.status != 200) {
        status_failed(o, &answer);
        return;
    }
    struct json result = facts(o, &answer, json_count(answer.body.len));
    if (file.len) {
        if (!call_write_file(call, file, answer.body)) return;
        JSON_ADD(call->arena, &result, {"file", json_string(file)});
    } else {
        bool text = str_utf8(answer.body);
        struct buf bytes = buf_of(answer.body.len / 3 * 4 + 8);
        if (!text) buf_base64(&bytes, answer.body);
        struct str coded = buf_keep(&bytes, call->arena);
        JSON_ADD(call->arena, &result, {"data", call_parse(call, answer.body, false)},
                 {"base64", text ? json_none() : json_text_made(coded)});
    }
    call_done(call, result);
}

static bool body_of(struct object_call *o, struct str *body, struct str *type)
{
    struct task_call *call = o->call;
    struct str source = either(call, "source", "file", "source");
    const struct json *data = call_find(call, "data");
    if (!data) data = call_find(call, "body");
    *type = call_string(call, "content_type", "");
    if (source.len && data)
        return call_fail(call, TASK_CLIENT, "DATA_INVALID", "give data or source (a file), not both");
    if (source.len) return call_read_file(call, source, body);
    if (!data) return call_fail(call, TASK_CLIENT, "DATA_MISSING", "there is nothing to put: give data, or source (a file)");
    *body = json_as_text(data, call->arena);
    if (!type->len) *type = data->type == JSON_STRING ? STR("text/plain; charset=utf-8") : STR("application/json");
    return body->ptr || call_no_memory(call);
}

static bool put_headers(struct object_call *o, struct str type)
{
    struct task_call *call = o->call;
    const struct json *metadata = call_find(call, "metadata");
    if (!add_header(o, STR("Content-Type"), type.len ? type : STR("application/octet-stream"))) return false;
    bool google = o->kind == &gcs && o->signer.bearer.len;
    for (uint32_t i = 0; json_is(metadata, JSON_OBJECT) && i < metadata->count; i++) {
        struct str value = json_as_text(&metadata->members[i].value, call->arena);
        struct str name = call_printf(call, "%s%.*s", google ? "x-goog-meta-" : o->kind->metadata,
                                      STR_ARG(metadata->members[i].key));
        if (i == METADATA_MAX)
            return call_fail(call, TASK_CLIENT, "HEADER_INVALID", "an object has at most %d words of metadata", METADATA_MAX);
        if (!add_header(o, name, value.ptr ? value : STR(""))) return false;
    }
    if (!call_flag(call, "if_absent", false)) return true;
    if (google) return add_header(o, STR("x-goog-if-generation-match"), STR("0"));
    return add_header(o, STR("If-None-Match"), STR("*"));
}

static void put(struct object_call *o)
{
    struct task_call *call = o->call;
    struct fetch_answer answer;
    struct str body, type;
    if (!has_key(o) || !body_of(o, &body, &type) || !put_headers(o, type) || !ask(o, "PUT", body, &answer)) return;
    if (answer.status / 100 != 2) {
        status_failed(o, &answer);
        return;
    }
    struct str etag = fetch_header(&answer, "etag");
    call_done(call, JSON_OF(call->arena, {"status", json_word("success")}, {"uri", json_string(o->uri)},
                            {o->kind->container, json_string(o->bucket)}, {"key", json_string(o->key)},
                            {"blob", json_when(o->kind != &s3, json_string(o->key))}, {"size", json_count(body.len)},
                            {"content_type", json_some(type)}, {"etag", json_some(call_clean(call, etag))}));
}

// What is gone already is deleted: an attempt that is made again ends well.
static void delete_object(struct object_call *o)
{
    struct task_call *call = o->call;
    struct fetch_answer answer;
    if (!has_key(o) || !ask(o, "DELETE", STR(""), &answer)) return;
    if (answer.status / 100 != 2 && answer.status != 404) {
        status_failed(o, &answer);
        return;
    }
    call_done(call, JSON_OF(call->arena, {"status", json_word("success")}, {"uri", json_string(o->uri)},
                            {o->kind->container, json_string(o->bucket)}, {"key", json_string(o->key)}));
}

static void presence(struct object_call *o)
{
    struct task_call *call = o->call;
    struct fetch_answer answer;
    int64_t size;
    if (!has_key(o) || !ask(o, "HEAD", STR(""), &answer)) return;
    bool there = answer.status == 200;
    if (!there && answer.status != 404) {
        status_failed(o, &answer);
        return;
    }
    if (!there) {
        call_done(call, JSON_OF(call->arena, {"uri", json_string(o->uri)}, {o->kind->container, json_string(o->bucket)},
                                {"key", json_string(o->key)}, {"exists", json_bool(false)}));
        return;
    }
    bool sized = str_int64(fetch_header(&answer, "content-length"), &size);
    struct json result = facts(o, &answer, json_when(sized, json_int(size)));
    JSON_ADD(call->arena, &result, {"exists", json_bool(true)});
    call_done(call, result);
}

static bool list_page(struct object_call *o, struct str from, int64_t max, struct fetch_listing *page)
{
    struct task_call *call = o->call;
    struct error err = {0};
    struct fetch_call request = request_of(o, "GET", STR(""));
    enum code rc = fetch_list(o->policy, &request, from, max, call->arena, page, &err);
    if (rc == E_CORRUPT) return call_fail(call, TASK_PARSE, "RESULT_INVALID", "%s", err.message);
    if (rc) return web_refused(call, rc, &err);
    call_log(call, false, "LIST %.*s: %d, %zu names", STR_ARG(str_slice(o->uri, 0, 300)), page->status, page->count);
    if (page->status == 200) return true;
    status_failed(o, &page->answer);
    return false;
}

static void list(struct object_call *o)
{
    struct task_call *call = o->call;
    int64_t max = json_integer(call_find(call, "max"), NAMES_DEFAULT);
    struct fetch_listing page = {0};
    struct json items = json_array();
    struct str from = STR("");
    if (max < 1 || max > NAMES_MAX) {
        call_fail(call, TASK_CLIENT, "LIMIT_INVALID", "max is from 1 to %d names", NAMES_MAX);
        return;
    }
    do {
        if (!list_page(o, from, max - (int64_t)items.count, &page)) return;
        for (size_t i = 0; i < page.count && items.count < max; i++) {
            const struct fetch_object *object = &page.objects[i];
            json_append(call->arena, &items,
                        JSON_OF(call->arena, {"key", json_string(object->key)},
                                {"size", json_when(object->size >= 0, json_int(object->size))},
                                {"etag", json_some(object->etag)}, {"last_modified", json_some(object->modified)}));
        }
        if (!json_ok(&items)) break;
        from = page.next;
    } while (from.len && items.count < max && !call_stopped(call));
    call_done(call, JSON_OF(call->arena, {"uri", json_string(o->uri)}, {"items", items}, {"count", json_int(items.count)},
                            {"truncated", json_bool(from.len > 0)}));
}

static const struct {
    const char *word;
    void (*run)(struct object_call *o);
} operations[] = {{"get", get},           {"read", get},        {"download", get},    {"put", put},
                  {"write", put},         {"upload", put},      {"list", list},       {"delete", delete_object},
                  {"exists", presence},   {"head", presence},   {"stat", presence}};

static void run_object(struct task_call *call, const struct object_kind *kind)
{
    struct object_call o = {.call = call, .kind = kind};
    struct str word = either(call, "operation", "action", "op");
    // NoETL's gcs knows one thing: to put a file somewhere.
    bool puts = call_find(call, "data") || call_find(call, "source");
    if (!word.len) word = puts ? STR("put") : STR("get");
    for (size_t i = 0; i < ARRAY_COUNT(operations); i++) {
        if (!str_is(word, operations[i].word)) continue;
        if (place(&o, operations[i].run == list) && identify(&o)) operations[i].run(&o);
        return;
    }
    call_fail(call, TASK_CLIENT, "OPERATION_UNKNOWN", "%s does get, put, list, delete and exists, not \"%.*s\"", kind->kind,
              STR_ARG(word));
}

static void run_s3(struct task_call *call)
{
    run_object(call, &s3);
}

static void run_gcs(struct task_call *call)
{
    run_object(call, &gcs);
}

static void run_azure(struct task_call *call)
{
    run_object(call, &azure);
}

static const char *const fields[] = {"operation", "action",   "op",         "uri",      "url",    "object",      "bucket",
                                     "container", "bucket_name", "account", "key",      "blob",   "path",        "prefix",
                                     "data",      "body",     "source",     "file",     "path_to", "destination", "content_type",
                                     "metadata",  "if_absent", "max",       "auth",     "credential", "endpoint", "region",
                                     NULL};
const struct task_kind kind_s3 = {.name = "s3", .fields = fields, .run = run_s3};
const struct task_kind kind_gcs = {.name = "gcs", .fields = fields, .run = run_gcs};
const struct task_kind kind_azure = {.name = "azure", .fields = fields, .run = run_azure};
