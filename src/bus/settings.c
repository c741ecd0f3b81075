// The configuration of sinks. Everything is looked at before anything runs; nothing unknown passes.
#include "bus/inside.h"

#include "json/form.h"
#include "json/make.h"
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

static void read_secret(struct form *form, const char *key, struct secret *out)
{
    const struct json *value = form_any(form, key);
    if (!value) return;
    out->variable = json_text(json_key(value, "env"));
    out->file = json_text(json_key(value, "file"));
    if (!json_is(value, JSON_OBJECT) || value->count != 1 || !sink_has_secret(out))
        form_fail(form, key, "a secret is given by reference: {\"env\": NAME} or {\"file\": PATH}");
}

static void read_texts(struct form *form, const char *key, const struct json **out)
{
    const struct json *value = form_any(form, key);
    if (!value) return;
    bool good = json_is(value, JSON_ARRAY) && value->count > 0;
    for (size_t i = 0; good && i < value->count; i++) good = json_text(&value->items[i]).len > 0;
    if (!good) form_fail(form, key, "must be a list of texts");
    *out = value;
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

static bool name_good(struct str name)
{
    if (name.len == 0 || name.len > BUS_SINK_NAME_MAX) return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (i > 0 && strchr("._-", c)))) return false;
    }
    return true;
}

static const struct json *list_of(struct form *form, struct arena *arena, struct str text)
{
    struct json *list = ARENA_NEW(arena, struct json);
    if (list) *list = json_array();
    if (!list || !json_push(arena, list, json_string(text))) form_nomem(form);
    return list;
}

static void read_url(struct form *form, struct arena *arena, struct sink_config *out)
{
    const struct json *value = form_any(form, "url");
    bool nats = out->type == SINK_NATS;
    if (value && !nats && out->type != SINK_WEBHOOK) form_fail(form, "url", "is for webhooks and NATS");
    if (nats && json_is(value, JSON_ARRAY)) {
        read_texts(form, "url", &out->urls);
        return;
    }
    form_text(form, "url", &out->url);
    if (nats && out->url.len) out->urls = list_of(form, arena, out->url);
}

static void read_headers(struct form *form, struct sink_config *out)
{
    const struct json *value = form_any(form, "headers");
    if (!value) return;
    bool good = json_is(value, JSON_OBJECT) && value->count <= 16;
    for (size_t i = 0; good && i < value->count; i++) {
        struct str name = value->members[i].key, text = json_text(&value->members[i].value);
        good = name.len > 0 && text.len > 0;
        for (size_t k = 0; good && k < name.len; k++)
            good = char_is_alnum(name.ptr[k]) || name.ptr[k] == '-' || name.ptr[k] == '_';
        for (size_t k = 0; good && k < text.len; k++) good = text.ptr[k] >= ' ' && text.ptr[k] < 127;
    }
    if (!good) form_fail(form, "headers", "must be an object of header names and values of one line each");
    out->headers = *value;
}

static void read_numbers(struct form *form, struct sink_config *out)
{
    out->max_attempts = ATTEMPTS;
    out->backoff_ms = BACKOFF_MS;
    out->backoff_max_ms = BACKOFF_MAX_MS;
    out->probe_max_ms = PROBE_MAX_MS;
    out->timeout_ms = TIMEOUT_MS;
    out->cursor_ms = CURSOR_MS;
    form_count(form, "maxAttempts", 1, 1000, &out->max_attempts);
    form_number(form, "backoffMs", 1, 3600000, &out->backoff_ms);
    form_number(form, "backoffMaxMs", 1, 3600000, &out->backoff_max_ms);
    form_number(form, "probeMaxMs", 1, 3600000, &out->probe_max_ms);
    form_number(form, "timeoutMs", 1, 60000, &out->timeout_ms);
    form_number(form, "cursorMs", 1, 60000, &out->cursor_ms);
}

static void read_words(struct form *form, struct sink_config *out)
{
    static const char *const types[] = {"file", "stdout", "webhook", "nats", NULL};
    static const char *const formats[] = {"record", "cloudevents", NULL};
    static const char *const modes[] = {"binary", "structured", NULL};
    static const char *const froms[] = {"start", "end", NULL};
    int type = -1, format = -1, mode = 0, from = 0;
    form_choice(form, "type", types, &type);
    if (type < 0) form_fail(form, NULL, "has no type: nats, webhook, file or stdout");
    form_choice(form, "format", formats, &format);
    form_choice(form, "mode", modes, &mode);
    form_choice(form, "from", froms, &from);
    out->type = (enum sink_type)(type + 1);
    out->format = out->type == SINK_WEBHOOK ? FORMAT_CLOUDEVENTS : FORMAT_RECORD;
    if (format >= 0) out->format = (enum sink_format)(format + 1);
    // A line of a file has no headers.
    out->structured = mode == 1 || out->type == SINK_FILE || out->type == SINK_STDOUT;
    out->from_end = from == 1;
}

static void read_secrets(struct form *form, struct sink_config *out)
{
    read_secret(form, "token", &out->token);
    read_secret(form, "user", &out->user);
    read_secret(form, "password", &out->password);
    read_secret(form, "credentials", &out->credentials);
}

// A fault of an address, said of the member that has it.
static void said_of_url(struct form *form, enum code rc)
{
    if (rc) error_wrap(form->err, "%s.url", form->what);
    if (!form->rc) form->rc = rc;
}

static void read_place(struct form *form, const struct fetch_policy *policy, struct arena *arena,
                       struct sink_config *out)
{
    read_url(form, arena, out);
    form_text(form, "path", &out->path);
    form_text(form, "subject", &out->subject);
    form_text(form, "stream", &out->stream);
    form_text(form, "caFile", &out->ca_file);
    for (size_t i = 0; i < out->subject.len; i++)
        if (out->subject.ptr[i] <= ' ' || strchr("*>\x7f", out->subject.ptr[i]))
            form_fail(form, "subject", "must be a subject to publish to: no blanks, no wildcards");
    if (out->type == SINK_FILE && !out->path.len) form_fail(form, NULL, "a file needs a path");
    if (out->type == SINK_NATS && !out->urls) form_fail(form, NULL, "NATS needs a url");
    if (out->type == SINK_WEBHOOK && !out->url.len) form_fail(form, NULL, "a webhook needs a url");
    for (size_t i = 0; !form->rc && out->urls && i < out->urls->count; i++)
        said_of_url(form, nats_url_check(out->urls->items[i].text, form->err));
    if (form->rc || out->type != SINK_WEBHOOK) return;
    if (policy)
        said_of_url(form, fetch_uri_check(policy, out->url, form->err));
    else
        form->rc = error_set(form->err, E_DENIED, "%s.url: no address is allowed", form->what);
}

static void read_sink(struct form *form, const struct fetch_policy *policy, struct arena *arena,
                      struct sink_config *out)
{
    form_text(form, "name", &out->name);
    if (!name_good(out->name))
        form_fail(form, NULL, "needs a name of small letters, digits, '.', '_', '-', at most 64");
    read_words(form, out);
    read_texts(form, "tenants", &out->tenants);
    read_texts(form, "types", &out->types);
    form_flag(form, "dlqBlocksRun", &out->held);
    form_flag(form, "timeoutsCount", &out->silence_counts);
    bool alerts = true;
    form_flag(form, "alerts", &alerts);
    out->no_alerts = !alerts;
    read_numbers(form, out);
    read_secret(form, "secret", &out->signing);
    read_secrets(form, out);
    read_headers(form, out);
    read_place(form, policy, arena, out);
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
        struct form form;
        form_begin(&form, name, &sinks->items[i], NULL, err);
        read_sink(&form, policy, arena, &(*out)[i]);
        for (size_t k = 0; k < i; k++)
            if (str_eq((*out)[k].name, (*out)[i].name)) form_fail(&form, "name", "another sink has this name");
        enum code rc = form_end(&form);
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
        good = char_is_word(c) || c == '-';
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
    struct json plain = JSON_OF(arena, {"url", json_ref(results)});
    struct form form;
    *out = (struct sink_config){.name = STR("results"), .type = SINK_NATS, .timeout_ms = RESULTS_TIMEOUT_MS};
    *bucket = STR(BUCKET_DEFAULT);
    form_begin(&form, "results", json_is(results, JSON_OBJECT) ? results : &plain, NULL, err);
    form_text(&form, "url", &out->url);
    if (!out->url.len) form_fail(&form, NULL, "needs a url: nats://HOST:PORT/BUCKET");
    split_bucket(out->url, &out->url, bucket);
    form_text(&form, "bucket", bucket);
    if (!bucket_good(*bucket)) form_fail(&form, "bucket", "a bucket has letters, digits, '_' and '-', at most 64");
    form_text(&form, "caFile", &out->ca_file);
    form_number(&form, "timeoutMs", 1, 60000, &out->timeout_ms);
    read_secrets(&form, out);
    if (!form.rc) said_of_url(&form, nats_url_check(out->url, err));
    out->urls = list_of(&form, arena, out->url);
    return form_end(&form);
}
