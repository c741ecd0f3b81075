// Kind artifact: reads or writes what is kept outside of the log: stored results (noetl://), files, objects behind URLs.
#include "task/kind.h"

// ---- stored results

static bool read_stored(struct task_call *call, struct str ref, struct str *bytes)
{
    struct error err = {0};
    const struct task_results *results = &tasks_options(call->tasks)->results;
    enum code rc = results->read ? results->read(results->context, call_request(call), ref, call->arena, bytes, &err)
                                 : error_set(&err, E_UNSUPPORTED, "stored results cannot be read here");
    if (rc == E_UNREACHABLE)
        call_fail(call, TASK_CONNECTION, "REFERENCE_NOT_AVAILABLE", "%.*s: %s", STR_ARG(ref), err.message);
    else if (rc == E_NOT_FOUND || rc == E_INVALID || rc == E_UNSUPPORTED)
        call_fail(call, TASK_NOT_FOUND, "REFERENCE_NOT_AVAILABLE", "%.*s: %s", STR_ARG(ref), err.message);
    else if (rc)
        call_fail(call, TASK_CONNECTION, "STORAGE_UNREACHABLE", "%.*s: %s", STR_ARG(ref), err.message);
    return rc == OK;
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
        return call_fail(call, TASK_CLIENT, "URI_NOT_SUPPORTED",
                         "%.*s: artifacts are noetl://, file://, http(s)://, s3:// and gs://", STR_ARG(uri));
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
    bool good = known_place(call, uri);
    if (good)
        good = str_starts(uri, STR("noetl://")) || is_hash(uri) ? read_stored(call, uri, &bytes)
               : is_web(uri)                                    ? web(call, "GET", uri, STR(""), &bytes)
                                                                : call_read_file(call, uri, &bytes);
    if (!good) return;
    call_done(call, JSON_OF(call->arena, {"data", call_parse(call, bytes, true)}, {"uri", json_string(uri)},
                            {"size_bytes", json_count(bytes.len)}, {"compressed", json_bool(false)}));
}

static void put(struct task_call *call, struct str uri)
{
    const struct json *data = call_find(call, "data");
    struct str bytes = json_as_text(data, call->arena), ignored;
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
    call_done(call, JSON_OF(call->arena, {"uri", json_string(uri)}, {"size_bytes", json_count(bytes.len)},
                            {"compressed", json_bool(false)}));
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
