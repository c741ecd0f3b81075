// The configuration of sinks. Everything is looked at before anything runs; nothing unknown passes.
#include "bus/inside.h"

#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_MAX (64 * 1024)
#define ATTEMPTS 10 // C-16
#define BACKOFF_MS 100
#define BACKOFF_MAX_MS 30000
#define PROBE_MAX_MS 5000
#define TIMEOUT_MS 10000
#define CURSOR_MS 200
#define RESULTS_TIMEOUT_MS 5000 // templates wait for them

struct reading {
    const struct json *object;
    const char *name; // "sinks[2]", or "results"
    const char *const *known;
    size_t known_count;
    struct error *err;
};

static enum code bad(const struct reading *at, const char *key, const char *why)
{
    const struct json *value = key ? json_key(at->object, key) : NULL;
    if (!value) value = at->object;
    return error_at(at->err, E_INVALID, value->line, value->column, "%s%s%s: %s", at->name, key ? "." : "",
                    key ? key : "", why);
}

static const char *const results_known[] = {"url",   "bucket", "caFile",   "timeoutMs",
                                            "token", "user",   "password", "credentials"};
static const char *const words_known[] = {
    "name",      "type",         "format",      "mode",      "url",          "path",          "subject",
    "stream",    "tenants",      "types",       "from",      "dlqBlocksRun", "timeoutsCount", "maxAttempts",
    "backoffMs", "backoffMaxMs", "probeMaxMs",  "timeoutMs", "cursorMs",     "secret",        "token",
    "user",      "password",     "credentials", "headers",   "caFile",
};

static enum code read_keys(const struct reading *at)
{
    for (size_t i = 0; i < at->object->count; i++) {
        struct str key = at->object->members[i].key;
        bool known = false;
        for (size_t k = 0; k < at->known_count; k++) known |= str_is(key, at->known[k]);
        if (!known)
            return error_at(at->err, E_INVALID, at->object->members[i].line, at->object->members[i].column,
                            "%s: there is no setting \"%.*s\"", at->name, STR_ARG(key));
    }
    return OK;
}

static enum code read_text(const struct reading *at, const char *key, struct str *out)
{
    const struct json *value = json_key(at->object, key);
    if (!value) return OK;
    if (!json_is(value, JSON_STRING) || value->text.len == 0 || memchr(value->text.ptr, 0, value->text.len))
        return bad(at, key, "must be a text");
    *out = value->text;
    return OK;
}

static enum code read_flag(const struct reading *at, const char *key, bool *out)
{
    const struct json *value = json_key(at->object, key);
    if (!value) return OK;
    if (!json_is(value, JSON_BOOL)) return bad(at, key, "must be true or false");
    *out = value->boolean;
    return OK;
}

static enum code read_number(const struct reading *at, const char *key, int64_t otherwise, int64_t max, int64_t *out)
{
    const struct json *value = json_key(at->object, key);
    *out = otherwise;
    if (!value) return OK;
    if (!json_is(value, JSON_INT) || value->integer < 1 || value->integer > max)
        return bad(at, key, "must be a whole number above zero, and not that large");
    *out = value->integer;
    return OK;
}

static enum code read_texts(const struct reading *at, const char *key, const struct json **out)
{
    const struct json *value = json_key(at->object, key);
    if (!value) return OK;
    bool good = json_is(value, JSON_ARRAY) && value->count > 0;
    for (size_t i = 0; good && i < value->count; i++) good = json_text(&value->items[i]).len > 0;
    if (!good) return bad(at, key, "must be a list of texts");
    *out = value;
    return OK;
}

static enum code read_secret(const struct reading *at, const char *key, struct secret *out)
{
    const struct json *value = json_key(at->object, key);
    if (!value) return OK;
    out->variable = json_text(json_key(value, "env"));
    out->file = json_text(json_key(value, "file"));
    if (!json_is(value, JSON_OBJECT) || value->count != 1 || !sink_has_secret(out))
        return bad(at, key, "a secret is given by reference: {\"env\": NAME} or {\"file\": PATH}");
    return OK;
}

bool sink_has_secret(const struct secret *secret)
{
    return secret->variable.len > 0 || secret->file.len > 0;
}

enum code sink_secret(const struct secret *secret, struct arena *arena, struct str *out, struct error *err)
{
    struct str name = arena_copy(arena, secret->variable.len ? secret->variable : secret->file), text;
    if (!name.ptr) return error_nomem(err);
    if (secret->variable.len) {
        text = str_from(getenv(name.ptr));
    } else {
        enum code rc = os_read_file(name.ptr, SECRET_MAX, arena, &text, err);
        if (rc) return rc;
    }
    text = str_trim(text);
    if (!text.len)
        return error_set(err, E_NOT_FOUND, "a secret is missing: %s%s is not there or empty",
                         secret->variable.len ? "$" : "", name.ptr);
    *out = arena_copy(arena, text);
    return out->ptr ? OK : error_nomem(err);
}

static enum code read_choice(const struct reading *at, const char *key, const char *const *words, int *out)
{
    const struct json *value = json_key(at->object, key);
    if (!value) return OK;
    for (int i = 0; words[i]; i++) {
        if (!str_is(json_text(value), words[i])) continue;
        *out = i + 1;
        return OK;
    }
    return bad(at, key, "there is no such choice");
}

static bool name_good(struct str name)
{
    if (name.len == 0 || name.len > BUS_SINK_NAME_MAX) return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (i > 0 && strchr("._-", c)))) return false;
    }
    return true;
}

static enum code read_url(const struct reading *at, struct arena *arena, struct sink_config *out)
{
    const struct json *value = json_key(at->object, "url");
    if (!value || out->type == SINK_FILE || out->type == SINK_STDOUT)
        return value ? bad(at, "url", "is for webhooks and NATS") : OK;
    if (out->type == SINK_NATS && json_is(value, JSON_ARRAY)) return read_texts(at, "url", &out->urls);
    enum code rc = read_text(at, "url", &out->url);
    if (rc || out->type != SINK_NATS) return rc;
    struct json *list = ARENA_NEW(arena, struct json);
    if (!list) return error_nomem(at->err);
    *list = json_array();
    if (!json_push(arena, list, json_string(out->url))) return error_nomem(at->err);
    out->urls = list;
    return OK;
}

static enum code read_headers(const struct reading *at, struct sink_config *out)
{
    const struct json *value = json_key(at->object, "headers");
    if (!value) return OK;
    bool good = json_is(value, JSON_OBJECT) && value->count <= 16;
    for (size_t i = 0; good && i < value->count; i++) {
        struct str name = value->members[i].key, text = json_text(&value->members[i].value);
        good = name.len > 0 && text.len > 0;
        for (size_t k = 0; good && k < name.len; k++)
            good = (name.ptr[k] >= '0' && name.ptr[k] <= '9') || (name.ptr[k] >= 'A' && name.ptr[k] <= 'Z') ||
                   (name.ptr[k] >= 'a' && name.ptr[k] <= 'z') || name.ptr[k] == '-' || name.ptr[k] == '_';
        for (size_t k = 0; good && k < text.len; k++) good = text.ptr[k] >= ' ' && text.ptr[k] < 127;
    }
    if (!good) return bad(at, "headers", "must be an object of header names and values of one line each");
    out->headers = *value;
    return OK;
}

static enum code read_numbers(const struct reading *at, struct sink_config *out)
{
    int64_t attempts = 0;
    enum code rc = read_number(at, "maxAttempts", ATTEMPTS, 1000, &attempts);
    out->max_attempts = (uint32_t)attempts;
    if (!rc) rc = read_number(at, "backoffMs", BACKOFF_MS, 3600000, &out->backoff_ms);
    if (!rc) rc = read_number(at, "backoffMaxMs", BACKOFF_MAX_MS, 3600000, &out->backoff_max_ms);
    if (!rc) rc = read_number(at, "probeMaxMs", PROBE_MAX_MS, 3600000, &out->probe_max_ms);
    if (!rc) rc = read_number(at, "timeoutMs", TIMEOUT_MS, 60000, &out->timeout_ms);
    if (!rc) rc = read_number(at, "cursorMs", CURSOR_MS, 60000, &out->cursor_ms);
    return rc;
}

static enum code read_words(const struct reading *at, struct sink_config *out)
{
    static const char *const types[] = {"file", "stdout", "webhook", "nats", NULL};
    static const char *const formats[] = {"record", "cloudevents", NULL};
    static const char *const modes[] = {"binary", "structured", NULL};
    static const char *const froms[] = {"start", "end", NULL};
    int type = 0, format = 0, mode = 1, from = 1;
    enum code rc = read_choice(at, "type", types, &type);
    if (!rc && !type) rc = bad(at, NULL, "has no type: nats, webhook, file or stdout");
    if (!rc) rc = read_choice(at, "format", formats, &format);
    if (!rc) rc = read_choice(at, "mode", modes, &mode);
    if (!rc) rc = read_choice(at, "from", froms, &from);
    out->type = (enum sink_type)type;
    out->format = format ? (enum sink_format)format : type == SINK_WEBHOOK ? FORMAT_CLOUDEVENTS : FORMAT_RECORD;
    // A line of a file has no headers.
    out->structured = mode == 2 || type == SINK_FILE || type == SINK_STDOUT;
    out->from_end = from == 2;
    return rc;
}

static enum code read_secrets(const struct reading *at, struct sink_config *out)
{
    enum code rc = read_secret(at, "secret", &out->signing);
    if (!rc) rc = read_secret(at, "token", &out->token);
    if (!rc) rc = read_secret(at, "user", &out->user);
    if (!rc) rc = read_secret(at, "password", &out->password);
    if (!rc) rc = read_secret(at, "credentials", &out->credentials);
    if (!rc) rc = read_headers(at, out);
    return rc;
}

static enum code read_place(const struct reading *at, const struct fetch_policy *policy, struct arena *arena,
                            struct sink_config *out)
{
    enum code rc = read_url(at, arena, out);
    if (!rc) rc = read_text(at, "path", &out->path);
    if (!rc) rc = read_text(at, "subject", &out->subject);
    if (!rc) rc = read_text(at, "stream", &out->stream);
    if (!rc) rc = read_text(at, "caFile", &out->ca_file);
    if (rc) return rc;
    for (size_t i = 0; i < out->subject.len; i++)
        if (out->subject.ptr[i] <= ' ' || strchr("*>\x7f", out->subject.ptr[i]))
            return bad(at, "subject", "must be a subject to publish to: no blanks, no wildcards");
    if (out->type == SINK_FILE && !out->path.len) return bad(at, NULL, "a file needs a path");
    if (out->type == SINK_NATS && !out->urls) return bad(at, NULL, "NATS needs a url");
    for (size_t i = 0; out->urls && i < out->urls->count; i++) {
        rc = nats_url_check(out->urls->items[i].text, at->err);
        if (rc) error_wrap(at->err, "%s.url", at->name);
        if (rc) return rc;
    }
    if (out->type != SINK_WEBHOOK) return OK;
    if (!out->url.len) return bad(at, NULL, "a webhook needs a url");
    if (!policy) return error_set(at->err, E_DENIED, "%s.url: no address is allowed", at->name);
    rc = fetch_uri_check(policy, out->url, at->err);
    if (rc) error_wrap(at->err, "%s.url", at->name);
    return rc;
}

static enum code read_sink(const struct reading *at, const struct fetch_policy *policy, struct arena *arena,
                           struct sink_config *out)
{
    if (!json_is(at->object, JSON_OBJECT)) return bad(at, NULL, "must be an object");
    enum code rc = read_keys(at);
    if (!rc) rc = read_text(at, "name", &out->name);
    if (!rc && !name_good(out->name))
        rc = bad(at, NULL, "needs a name of small letters, digits, '.', '_', '-', at most 64");
    if (!rc) rc = read_words(at, out);
    if (!rc) rc = read_texts(at, "tenants", &out->tenants);
    if (!rc) rc = read_texts(at, "types", &out->types);
    if (!rc) rc = read_flag(at, "dlqBlocksRun", &out->held);
    if (!rc) rc = read_flag(at, "timeoutsCount", &out->silence_counts);
    if (!rc) rc = read_numbers(at, out);
    if (!rc) rc = read_secrets(at, out);
    if (!rc) rc = read_place(at, policy, arena, out);
    return rc;
}

enum code config_parse(const struct json *sinks, const struct fetch_policy *policy, struct arena *arena,
                       struct sink_config **out, size_t *count, struct error *err)
{
    *count = 0;
    if (sinks && !json_is(sinks, JSON_ARRAY)) return error_set(err, E_INVALID, "sinks: must be a list");
    size_t many = sinks ? sinks->count : 0;
    *out = ARENA_ARRAY(arena, many + 1, struct sink_config);
    if (!*out) return error_nomem(err);
    for (size_t i = 0; i < many; i++) {
        char name[32];
        snprintf(name, sizeof(name), "sinks[%zu]", i);
        struct reading at = {.object = &sinks->items[i],
                             .name = name,
                             .known = words_known,
                             .known_count = ARRAY_COUNT(words_known),
                             .err = err};
        enum code rc = read_sink(&at, policy, arena, &(*out)[i]);
        for (size_t k = 0; !rc && k < i; k++)
            if (str_eq((*out)[k].name, (*out)[i].name)) rc = bad(&at, "name", "another sink has this name");
        if (rc) return rc;
    }
    *count = many;
    return OK;
}

// ---- where results go

static bool bucket_good(struct str name)
{
    bool good = name.len > 0 && name.len <= BUCKET_MAX;
    for (size_t i = 0; good && i < name.len; i++) {
        char c = name.ptr[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    }
    return good;
}

// nats://HOST:PORT/BUCKET
static void split_bucket(struct str url, struct str *server, struct str *bucket)
{
    size_t start = str_starts(url, STR("tls://")) ? 6 : 7,
           slash = str_find(url, '/', start < url.len ? start : url.len);
    *server = str_slice(url, 0, slash);
    if (slash + 1 < url.len) *bucket = str_slice(url, slash + 1, url.len);
}

enum code results_parse(const struct json *results, struct arena *arena, struct sink_config *out, struct str *bucket,
                        struct error *err)
{
    struct json plain, *list = ARENA_NEW(arena, struct json);
    struct reading at = {.object = results,
                         .name = "results",
                         .known = results_known,
                         .known_count = ARRAY_COUNT(results_known),
                         .err = err};
    *out = (struct sink_config){.name = STR("results"), .type = SINK_NATS};
    *bucket = STR(BUCKET_DEFAULT);
    if (!list || !json_object_with(arena, 1, &plain)) return error_nomem(err);
    if (json_is(results, JSON_STRING)) {
        if (!json_put(arena, &plain, STR("url"), *results)) return error_nomem(err);
        at.object = &plain;
    }
    if (!json_is(at.object, JSON_OBJECT)) return bad(&at, NULL, "must be nats://HOST:PORT/BUCKET, or an object");
    enum code rc = read_keys(&at);
    if (!rc) rc = read_text(&at, "url", &out->url);
    if (!rc && !out->url.len) rc = bad(&at, NULL, "needs a url");
    if (!rc) split_bucket(out->url, &out->url, bucket);
    if (!rc) rc = read_text(&at, "bucket", bucket);
    if (!rc && !bucket_good(*bucket)) rc = bad(&at, "bucket", "a bucket has letters, digits, '_' and '-', at most 64");
    if (!rc) rc = read_text(&at, "caFile", &out->ca_file);
    if (!rc) rc = read_number(&at, "timeoutMs", RESULTS_TIMEOUT_MS, 60000, &out->timeout_ms);
    if (!rc) rc = read_secrets(&at, out);
    if (!rc) rc = nats_url_check(out->url, err);
    if (rc == E_INVALID && !str_starts(str_from(err->message), STR("results"))) error_wrap(err, "results.url");
    if (rc) return rc;
    *list = json_array();
    out->urls = list;
    return json_push(arena, list, json_string(out->url)) ? OK : error_nomem(err);
}
