// Kind artifact: reads or writes what is kept outside of the log: stored results (noetl://), files, objects behind URLs.
#include "task/kind.h"

#include "store/store.h"

#include <string.h>

#define PAGE 256

// ---- stored results

// What is looked for: a reference, or the hash alone, which templates give as NAME._ref.
static bool is_wanted(const struct json *value, struct str wanted, struct str *hash)
{
    *hash = json_text(json_key(value, "sha256"));
    if (!hash->len) *hash = json_text(json_at(value, STR("meta.sha256")));
    return hash->len && (str_eq(json_text(json_key(value, "ref")), wanted) || str_eq(*hash, wanted));
}

static bool find_hash(const struct json *value, struct str wanted, unsigned depth, struct str *hash)
{
    if (depth > 8) return false;
    if (is_wanted(value, wanted, hash)) return true;
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->count; i++)
        if (find_hash(&value->members[i].value, wanted, depth + 1, hash)) return true;
    return false;
}

// The hash of a blob that an event of the execution names. Events of other tenants are not seen, and a hash that somebody only
// knows opens nothing.
static bool find_stored(struct task_call *call, struct store *store, struct str execution, struct str wanted,
                        struct digest *out)
{
    struct error err = {0};
    uint64_t after = 0;
    bool found = false;
    for (;;) {
        struct records page;
        if (store_read(store, call_request(call)->tenant, execution, after, PAGE, call->arena, &page, &err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            struct json record;
            struct str hash;
            after = page.items[i].seq;
            if (!memmem(page.items[i].bytes.ptr, page.items[i].bytes.len, wanted.ptr, wanted.len)) continue;
            if (json_parse(page.items[i].bytes, &task_limits, call->arena, &record, NULL)) continue;
            if (find_hash(&record, wanted, 0, &hash)) found |= digest_parse(hash, out);
        }
        if (page.count < PAGE || call_stopped(call)) return found;
    }
}

static bool missing(struct task_call *call, struct str ref, const char *why)
{
    call_fail(call, TASK_NOT_FOUND, "REFERENCE_NOT_AVAILABLE", "%.*s: %s", STR_ARG(ref), why);
    return false;
}

static bool read_stored(struct task_call *call, struct str ref, struct str *bytes)
{
    struct error err = {0};
    struct result_place place;
    struct digest hash;
    struct store *store = NULL;
    struct str url = tasks_options(call->tasks)->store_url;
    bool by_hash = digest_parse(ref, &hash);
    if (by_hash)
        place = (struct result_place){.execution = call_request(call)->run};
    else if (!result_ref_parse(ref, call->arena, &place))
        return missing(call, ref, "it is no reference of a result");
    if (!url.len) return missing(call, ref, "stored results cannot be read here");
    struct store_options options = {.mode = STORE_READ};
    if (store_open(url, &options, &store, &err)) return missing(call, ref, err.message);
    bool good = find_stored(call, store, place.execution, ref, &hash);
    if (good && store_blob(store, &hash, call->arena, bytes, &err)) good = false;
    store_close(store);
    return good ? true : missing(call, ref, "no stored result has it");
}

// ---- get and put

static bool is_web(struct str uri)
{
    static const char *const schemes[] = {"http://", "https://", "s3://", "gs://", "azure://"};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
        if (str_starts(uri, str_from(schemes[i]))) return true;
    return false;
}

static bool is_hash(struct str text)
{
    struct digest hash;
    return digest_parse(text, &hash);
}

static bool known_place(struct task_call *call, struct str uri)
{
    static const char *const schemes[] = {"nats-kv://", "nats-obj://", "eventlog://"};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        if (!str_starts(uri, str_from(schemes[i]))) continue;
        call_fail(call, TASK_CLIENT, "URI_NOT_SUPPORTED",
                  "%.*s: artifacts are noetl://, file://, http(s)://, s3:// and gs://", STR_ARG(uri));
        return false;
    }
    return true;
}

static bool web(struct task_call *call, const char *method, struct str uri, struct str body, struct str *bytes)
{
    struct fetch_answer answer;
    struct web_call request = {.method = str_from(method), .url = uri, .body = body};
    if (!web_call(call, &request, &answer)) return false;
    if (answer.status >= 300) {
        call_fail(call,
                  answer.status == 404   ? TASK_NOT_FOUND
                  : answer.status >= 500 ? TASK_SERVER
                                         : TASK_STORAGE_ACCESS,
                  answer.status == 404 ? "REFERENCE_NOT_AVAILABLE" : "STORAGE_REFUSED", "%.*s answered %d",
                  STR_ARG(uri), answer.status);
        return false;
    }
    *bytes = answer.body;
    return true;
}

static void get(struct task_call *call, struct str uri)
{
    struct str bytes;
    struct json result = json_object();
    bool good = known_place(call, uri);
    if (good)
        good = str_starts(uri, STR("noetl://")) || is_hash(uri) ? read_stored(call, uri, &bytes)
               : is_web(uri)                                    ? web(call, "GET", uri, STR(""), &bytes)
                                                                : call_read_file(call, uri, &bytes);
    if (!good) return;
    if (call_put(call, &result, "data", call_parse(call, bytes, true)) &&
        call_put(call, &result, "uri", json_string(uri)) &&
        call_put(call, &result, "size_bytes", json_int((int64_t)bytes.len)) &&
        call_put(call, &result, "compressed", json_bool(false)))
        call_done(call, result);
}

static void put(struct task_call *call, struct str uri)
{
    const struct json *data = call_find(call, "data");
    struct str bytes = json_as_text(data, call->arena), ignored;
    struct json result = json_object();
    if (call_flag(call, "compress", false)) {
        call_fail(call, TASK_CLIENT, "COMPRESS_NOT_SUPPORTED", "artifacts are put as they are, not compressed");
        return;
    }
    if (!data || !bytes.ptr) {
        call_fail(call, TASK_CLIENT, "DATA_MISSING", "there is no data to put");
        return;
    }
    if (str_starts(uri, STR("noetl://"))) {
        call_fail(call, TASK_CLIENT, "URI_NOT_SUPPORTED", "results are stored by the engine, not by a task");
        return;
    }
    if (!known_place(call, uri) ||
        !(is_web(uri) ? web(call, "PUT", uri, bytes, &ignored) : call_write_file(call, uri, bytes)))
        return;
    if (call_put(call, &result, "uri", json_string(uri)) &&
        call_put(call, &result, "size_bytes", json_int((int64_t)bytes.len)) &&
        call_put(call, &result, "compressed", json_bool(false)))
        call_done(call, result);
}

static void run(struct task_call *call)
{
    const struct json *ref = call_find(call, "result_ref");
    struct str action = call_string(call, "action", "get"), uri = call_string(call, "uri", "");
    if (!ref) ref = call_find(call, "ref");
    if (!uri.len) uri = json_is(ref, JSON_OBJECT) ? json_text(json_key(ref, "ref")) : json_text(ref);
    if (!uri.len) uri = json_text(json_key(ref, "sha256"));
    if (!uri.len)
        call_fail(call, TASK_CLIENT, "REFERENCE_MISSING", "artifact needs result_ref or uri");
    else if (str_is(action, "get"))
        get(call, uri);
    else if (str_is(action, "put"))
        put(call, uri);
    else
        call_fail(call, TASK_CLIENT, "ACTION_UNKNOWN", "artifact does get and put, not %.*s", STR_ARG(action));
}

static const char *const fields[] = {"action", "result_ref", "ref", "uri", "data", "credential", "compress", NULL};
const struct task_kind kind_artifact = {.name = "artifact", .fields = fields, .run = run};
