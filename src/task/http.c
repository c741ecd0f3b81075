// Kind http: one request. With a policy through the client that only goes where it may; without one wherever the user could, over
// connections that each thread keeps, so that a hundred requests at once cost a hundred connections once.
#include "task/kind.h"

#include "base/base64.h"
#include "http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT_MS 30000
enum { LINKS_MAX = 8, HEADERS_MAX = 30, URL_MAX = 65536, ORIGIN_MAX = 300 };

// ---- connections of a thread

struct task_links {
    struct {
        char origin[ORIGIN_MAX];
        struct fetch_link *link;
    } slots[LINKS_MAX];
    size_t next; // to be given up when a place is needed
};

void links_release(struct task_links *links)
{
    for (size_t i = 0; links && i < LINKS_MAX; i++) fetch_link_close(links->slots[i].link);
    free(links);
}

static struct fetch_link *link_to(struct task_call *call, struct str origin)
{
    struct error err = {0};
    struct thread_room *room = call->room;
    if (!room->links) room->links = calloc(1, sizeof(*room->links));
    if (!room->links) {
        call_no_memory(call);
        return NULL;
    }
    struct task_links *links = room->links;
    for (size_t i = 0; i < LINKS_MAX; i++)
        if (links->slots[i].link && str_is(origin, links->slots[i].origin)) return links->slots[i].link;
    size_t slot = links->next++ % LINKS_MAX;
    struct fetch_link_options options = {.url = origin, .body_max = TASK_BODY_MAX};
    fetch_link_close(links->slots[slot].link);
    links->slots[slot].link = NULL;
    if (fetch_link_open(&options, &links->slots[slot].link, &err)) {
        call_fail(call, TASK_CLIENT, "URL_INVALID", "%s", err.message);
        links->slots[slot].link = NULL;
        return NULL;
    }
    snprintf(links->slots[slot].origin, ORIGIN_MAX, "%.*s", STR_ARG(origin));
    return links->slots[slot].link;
}

// ---- URLs

static bool is_plain(char c)
{
    return char_is_alnum(c) || (c && strchr("-._~", c));
}

static void add_escaped(struct buf *out, struct str text, bool plus)
{
    for (size_t i = 0; i < text.len; i++) {
        if (is_plain(text.ptr[i]))
            buf_byte(out, text.ptr[i]);
        else if (plus && text.ptr[i] == ' ')
            buf_byte(out, '+');
        else
            buf_printf(out, "%%%02X", (unsigned char)text.ptr[i]);
    }
}

static void add_pair(struct task_call *call, struct buf *out, struct str name, const struct json *value, bool plus)
{
    if (value->type == JSON_NULL) return;
    if (out->len) buf_byte(out, '&');
    add_escaped(out, name, plus);
    buf_byte(out, '=');
    struct str text = json_as_text(value, call->arena);
    add_escaped(out, text.ptr ? text : STR(""), plus);
}

struct str web_form(struct task_call *call, const struct json *members, bool plus)
{
    if (json_is(members, JSON_STRING)) return members->text;
    struct buf out SCOPED(buf_release) = buf_of(TASK_BODY_MAX);
    for (uint32_t i = 0; json_is(members, JSON_OBJECT) && i < members->count; i++) {
        const struct json *value = &members->members[i].value;
        if (value->type != JSON_ARRAY) add_pair(call, &out, members->members[i].key, value, plus);
        for (uint32_t k = 0; value->type == JSON_ARRAY && k < value->count; k++)
            add_pair(call, &out, members->members[i].key, &value->items[k], plus);
    }
    struct str copy = buf_ok(&out) ? arena_copy(call->arena, buf_str(&out)) : (struct str){NULL, 0};
    secret_wipe(buf_str(&out));
    return copy.ptr ? copy : STR("");
}

// Characters that no URL has, escaped; everything else as it was written. Without its fragment.
static struct str tidy_url(struct task_call *call, struct str url)
{
    url = str_trim(str_slice(url, 0, str_find(url, '#', 0)));
    struct buf out = buf_of(URL_MAX);
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c <= ' ' || c >= 0x7F || strchr("\"<>\\^`{|}", c))
            buf_printf(&out, "%%%02X", c);
        else
            buf_byte(&out, (char)c);
    }
    struct str copy = buf_keep(&out, call->arena);
    return copy.ptr ? copy : STR("");
}

static bool split_url(struct str url, struct str *origin, struct str *target)
{
    size_t scheme = str_starts(url, STR("http://")) ? 7 : str_starts(url, STR("https://")) ? 8 : 0;
    size_t end = scheme;
    while (end < url.len && url.ptr[end] != '/' && url.ptr[end] != '?') end++;
    *origin = str_slice(url, 0, end);
    *target = str_slice(url, end, url.len);
    return scheme && end > scheme && end < ORIGIN_MAX && str_find(*origin, '@', 0) == origin->len;
}

// ---- one request

bool web_refused(struct task_call *call, enum code rc, const struct error *err)
{
    bool policy = rc == E_DENIED && strncmp(err->message, "PLAN_URI_NOT_ALLOWED", 20) == 0;
    if (rc == E_TIMEOUT)
        call_fail(call, TASK_TIMEOUT, "TIMEOUT", "no answer in time: %s", err->message);
    else if (policy)
        call_fail(call, TASK_CLIENT, "URL_NOT_ALLOWED", "%s", err->message);
    else if (rc == E_DENIED)
        call_fail(call, TASK_CONNECTION, "TLS_FAILED", "%s", err->message);
    else if (rc == E_LIMIT)
        call_fail(call, TASK_CLIENT, "ANSWER_TOO_LARGE", "%s", err->message);
    else if (rc == E_INVALID)
        call_fail(call, TASK_CLIENT, "REQUEST_INVALID", "%s", err->message);
    else
        call_fail(call, rc == E_IO ? TASK_CONNECTION : TASK_UNKNOWN,
                  rc == E_CANCELLED ? "CANCELLED" : "CONNECTION_FAILED", "%s", err->message);
    return false;
}

bool web_call(struct task_call *call, const struct web_call *request, struct fetch_answer *answer)
{
    const struct fetch_policy *policy = tasks_options(call->tasks)->policy;
    struct error err = {0};
    struct str url = tidy_url(call, request->url), origin, target;
    int64_t timeout = request->timeout_ms > 0 ? request->timeout_ms : TIMEOUT_DEFAULT_MS;
    if (!request->regardless && call_left_ms(call) < timeout) timeout = call_left_ms(call);
    struct fetch_call to = {.method = request->method,
                            .uri = url,
                            .headers = request->headers,
                            .header_count = request->header_count,
                            .body = request->body,
                            .timeout_ms = timeout,
                            .body_max = TASK_BODY_MAX,
                            .stopped = request->regardless ? NULL : call_stopped,
                            .stop_context = call};
    bool object = str_starts(url, STR("s3://")) || str_starts(url, STR("gs://")) || str_starts(url, STR("azure://"));
    enum code rc;
    if (policy) {
        if (!call->room->keep) call->room->keep = fetch_keep_open(); // without one each call has its own connection
        rc = fetch_call_kept(policy, call->room->keep, &to, call->arena, answer, &err);
        return rc ? web_refused(call, rc, &err) : true;
    }
    if (object || !split_url(url, &origin, &target)) {
        call_fail(call, TASK_CLIENT, "URL_INVALID",
                  object ? "%.*s: object stores are reached where the configuration of a service names them"
                         : "%.*s is no http:// or https:// URL",
                  STR_ARG(url));
        return false;
    }
    struct fetch_link *link = link_to(call, origin);
    if (!link) return false;
    if (!target.len || target.ptr[0] == '?') target = call_printf(call, "/%.*s", STR_ARG(target));
    to.uri = target;
    rc = fetch_link_call(link, &to, call->arena, answer, &err);
    return rc ? web_refused(call, rc, &err) : true;
}

// ---- the kind

struct builder {
    struct http_header headers[HEADERS_MAX + 2];
    size_t count;
    struct str type; // Content-Type, as given
    struct str query;
    struct web_call web;
};

static bool add_header(struct task_call *call, struct builder *b, struct str name, struct str value)
{
    static const char *const ours[] = {"host", "content-length", "connection", "transfer-encoding", "expect",
                                       "te",   "upgrade"};
    for (size_t i = 0; i < ARRAY_COUNT(ours); i++)
        if (http_name_is(name, ours[i])) return true; // the client writes them
    if (http_name_is(name, "content-type")) {
        b->type = value;
        return true;
    }
    struct http_header header = {name, value};
    for (size_t i = 0; i < b->count; i++)
        if (http_name_is(name, call_printf(call, "%.*s", STR_ARG(b->headers[i].name)).ptr)) {
            b->headers[i] = header;
            return true;
        }
    if (b->count >= HEADERS_MAX || !http_header_valid(header))
        return call_fail(call, TASK_CLIENT, "HEADER_INVALID", "the header %.*s cannot be sent",
                         STR_ARG(str_slice(name, 0, 64)));
    b->headers[b->count++] = header;
    return true;
}

static bool add_headers(struct task_call *call, struct builder *b, const struct json *headers)
{
    for (uint32_t i = 0; json_is(headers, JSON_OBJECT) && i < headers->count; i++) {
        struct str value = json_as_text(&headers->members[i].value, call->arena);
        if (!add_header(call, b, headers->members[i].key, value.ptr ? value : STR(""))) return false;
    }
    return true;
}

static bool add_query(struct task_call *call, struct builder *b, const struct json *params)
{
    struct str more = params ? web_form(call, params, false) : STR("");
    if (!more.len) return true;
    b->query = b->query.len ? call_printf(call, "%.*s&%.*s", STR_ARG(b->query), STR_ARG(more)) : more;
    return true;
}

static struct str base64(struct task_call *call, struct str bytes)
{
    struct buf out = buf_of(bytes.len / 3 * 4 + 8);
    buf_base64(&out, bytes);
    struct str kept = buf_keep(&out, call->arena);
    return kept.ptr ? kept : STR("");
}

static bool add_auth(struct task_call *call, struct builder *b)
{
    struct json auth;
    bool trusted;
    const struct json *written = call_get(call, "auth");
    if (!written) written = call_get(call, "credential");
    if (!call_credential(call, written, &auth, &trusted)) return false;
    if (!auth.type) return true;
    struct str type = credential_field(call, &auth, "type|scheme"), token, user;
    bool header = STR_AMONG(type, "header", "api_key", "apikey");
    token = credential_field(
        call, &auth, header ? "value|api_key|token|access_token|key" : "token|access_token|bearer|value|api_key");
    user = credential_field(call, &auth, "username|user|login|db_user");
    struct str name = credential_field(call, &auth, "header|header_name|in_header");
    if (!header && (str_is(type, "basic") || (!token.len && user.len))) {
        struct str pair = call_printf(call, "%.*s:%.*s", STR_ARG(user),
                                      STR_ARG(credential_field(call, &auth, "password|pass|db_password")));
        struct str code = base64(call, pair);
        return call_hide(call, code) &&
               add_header(call, b, STR("Authorization"), call_printf(call, "Basic %.*s", STR_ARG(code)));
    }
    if (!token.len)
        return call_fail(call, TASK_AUTH, "CREDENTIAL_INCOMPLETE", "the credential has neither a token nor a user");
    if (!call_hide(call, token)) return false;
    if (header || name.len) return add_header(call, b, name.len ? name : STR("X-API-Key"), token);
    return add_header(call, b, STR("Authorization"), call_printf(call, "Bearer %.*s", STR_ARG(token)));
}

static void set_body(struct task_call *call, struct builder *b, const struct json *body, bool form)
{
    if (!body) return;
    bool urlencoded = b->type.len >= 33 && strncasecmp(b->type.ptr, "application/x-www-form-urlencoded", 33) == 0;
    if (form || (urlencoded && json_is(body, JSON_OBJECT))) {
        b->web.body = web_form(call, body, true);
        if (!b->type.len) b->type = STR("application/x-www-form-urlencoded");
        return;
    }
    b->web.body = json_as_text(body, call->arena);
    bool looks = b->web.body.len && (b->web.body.ptr[0] == '{' || b->web.body.ptr[0] == '[');
    if (b->type.len) return;
    b->type = body->type != JSON_STRING || looks ? STR("application/json") : STR("text/plain; charset=utf-8");
}

// {"query": .., "body": ..} under `data` says where each part goes.
static bool is_envelope(const struct json *data)
{
    static const char *const parts[] = {"query", "params", "body", "payload", "json", "form", "headers"};
    for (uint32_t i = 0; json_is(data, JSON_OBJECT) && i < data->count; i++) {
        bool part = false;
        for (size_t k = 0; k < ARRAY_COUNT(parts); k++) part |= str_is(data->members[i].key, parts[k]);
        if (!part) return false;
    }
    return json_is(data, JSON_OBJECT) && data->count > 0;
}

static bool add_content(struct task_call *call, struct builder *b)
{
    const struct json *data = call_get(call, "data"), *body = NULL, *form = call_get(call, "form");
    static const char *const names[] = {"json", "body", "payload"};
    for (size_t i = 0; !body && i < ARRAY_COUNT(names); i++) body = call_get(call, names[i]);
    bool reads = str_is(b->web.method, "GET") || str_is(b->web.method, "HEAD");
    if (is_envelope(data)) {
        if (!add_query(call, b, json_key(data, "query")) || !add_query(call, b, json_key(data, "params")) ||
            !add_headers(call, b, json_key(data, "headers")))
            return false;
        for (size_t i = 0; !body && i < ARRAY_COUNT(names); i++) body = json_key(data, names[i]);
        if (!form) form = json_key(data, "form");
    } else if (!body && data && reads && data->type == JSON_OBJECT) {
        return add_query(call, b, data);
    } else if (!body) {
        body = data;
    }
    set_body(call, b, form ? form : body, form != NULL);
    return true;
}

static int64_t timeout_of(const struct task_call *call)
{
    const struct json *timeout = call_get(call, "timeout");
    if (!timeout) timeout = call_get(call, "timeout_s");
    if (!json_is(timeout, JSON_OBJECT)) return seconds_ms(timeout, TIMEOUT_DEFAULT_MS);
    int64_t total = seconds_ms(json_key(timeout, "total"), 0);
    if (total) return total;
    return seconds_ms(json_key(timeout, "connect"), 5000) + seconds_ms(json_key(timeout, "read"), TIMEOUT_DEFAULT_MS);
}

static bool build(struct task_call *call, struct builder *b)
{
    struct str method = call_string(call, "method", "GET"), url = call_string(call, "url", "");
    if (!url.len) url = call_string(call, "endpoint", "");
    if (!url.len) url = call_string(call, "uri", "");
    if (!url.len) return call_fail(call, TASK_CLIENT, "URL_MISSING", "http needs a url");
    char *upper = arena_alloc(call->arena, method.len + 1);
    if (!upper) return call_no_memory(call);
    for (size_t i = 0; i < method.len; i++)
        upper[i] = (char)(method.ptr[i] >= 'a' && method.ptr[i] <= 'z' ? method.ptr[i] - 32 : method.ptr[i]);
    b->web.method = (struct str){upper, method.len};
    b->web.timeout_ms = timeout_of(call);
    if (!add_header(call, b, STR("Accept"), STR("*/*")) || !add_headers(call, b, call_get(call, "headers")) ||
        !add_auth(call, b) || !add_query(call, b, call_get(call, "params")) ||
        !add_query(call, b, call_get(call, "query")) || !add_content(call, b))
        return false;
    bool has_query = str_find(url, '?', 0) < url.len;
    b->web.url =
        b->query.len ? call_printf(call, "%.*s%c%.*s", STR_ARG(url), has_query ? '&' : '?', STR_ARG(b->query)) : url;
    if (b->type.len) b->headers[b->count++] = (struct http_header){STR("Content-Type"), b->type};
    b->headers[b->count++] = (struct http_header){STR("User-Agent"), STR("cairn")};
    b->web.headers = b->headers;
    b->web.header_count = b->count;
    return true;
}

static bool headers_json(struct task_call *call, const struct fetch_answer *answer, struct json *out)
{
    *out = json_object();
    for (size_t i = 0; i < answer->header_count; i++) {
        struct str name = arena_copy(call->arena, answer->headers[i].name);
        if (!name.ptr) return call_no_memory(call);
        char *lower = call->arena ? arena_alloc(call->arena, name.len + 1) : NULL;
        if (!lower) return call_no_memory(call);
        for (size_t k = 0; k < name.len; k++)
            lower[k] = (char)(name.ptr[k] >= 'A' && name.ptr[k] <= 'Z' ? name.ptr[k] | 0x20 : name.ptr[k]);
        name.ptr = lower;
        struct str value = call_clean(call, answer->headers[i].value);
        bool there = false;
        for (uint32_t k = 0; !there && k < out->count; k++) {
            struct json_member *member = &out->members[k];
            there = str_eq(member->key, name);
            if (there)
                member->value =
                    json_string(call_printf(call, "%.*s, %.*s", STR_ARG(member->value.text), STR_ARG(value)));
        }
        if (!there && !json_put(call->arena, out, name, json_string(value))) return call_no_memory(call);
    }
    return true;
}

static enum task_error error_of(int status)
{
    if (status < 400) return TASK_OK;
    if (status == 429) return TASK_RATE_LIMIT;
    if (status == 401 || status == 403) return TASK_AUTH;
    if (status == 404) return TASK_NOT_FOUND;
    if (status == 408) return TASK_TIMEOUT;
    return status >= 500 ? TASK_SERVER : TASK_CLIENT;
}

static bool result_json(struct task_call *call, const struct builder *b, const struct fetch_answer *answer,
                        int64_t took_us)
{
    struct json headers, again;
    char seconds[40];
    if (!headers_json(call, answer, &headers) || !headers_json(call, answer, &again)) return false;
    struct str type = fetch_header(answer, "content-type");
    bool says_json = false;
    for (size_t i = 0; i + 4 <= type.len; i++) says_json |= strncasecmp(type.ptr + i, "json", 4) == 0;
    struct json data = answer->body.len ? call_parse(call, answer->body, says_json) : json_string(STR(""));
    struct json body;
    if (!json_copy(call->arena, &data, &body)) return call_no_memory(call);
    snprintf(seconds, sizeof(seconds), "%.6f", (double)took_us / 1e6);
    struct str elapsed = call_printf(call, "%s", seconds);
    struct json http = JSON_OF(call->arena, {"status", json_int(answer->status)}, {"headers", headers});
    struct json result =
        JSON_OF(call->arena, {"status_code", json_int(answer->status)}, {"headers", again}, {"data", data},
                {"body", body}, {"url", json_string(call_clean(call, b->web.url))}, {"elapsed", json_number(elapsed)},
                {"base64", str_utf8(answer->body) ? json_none() : json_string(base64(call, answer->body))});
    call->out.http = json_ok(&http) ? http : json_none();
    call_done(call, json_ok(&http) ? result : http);
    return json_ok(&http) && json_ok(&result);
}

static void run(struct task_call *call)
{
    struct builder b = {0};
    struct fetch_answer answer;
    if (!build(call, &b)) return;
    int64_t began = os_mono_us();
    bool answered = web_call(call, &b.web, &answer);
    int64_t took_us = os_mono_us() - began;
    struct str url = str_slice(b.web.url, 0, 300);
    if (!answered) {
        call_log(call, true, "%.*s %.*s: %.*s", STR_ARG(b.web.method), STR_ARG(url), STR_ARG(call->out.message));
        return;
    }
    call_log(call, false, "%.*s %.*s: %d, %zu bytes in %lld ms", STR_ARG(b.web.method), STR_ARG(url), answer.status,
             answer.body.len, (long long)(took_us / 1000));
    if (!result_json(call, &b, &answer, took_us)) return;
    if (answer.status < 400) return;
    char code[24];
    snprintf(code, sizeof(code), "HTTP_%d", answer.status);
    call_fail(call, error_of(answer.status), code, "%.*s %.*s answered %d", STR_ARG(b.web.method), STR_ARG(url),
              answer.status);
    call->out.retryable = answer.status == 429 || answer.status >= 500;
}

static const char *const fields[] = {"method", "url",        "endpoint", "uri",       "headers", "params",
                                     "query",  "body",       "payload",  "data",      "json",    "form",
                                     "auth",   "credential", "timeout",  "timeout_s", NULL};
const struct task_kind kind_http = {.name = "http", .fields = fields, .run = run};
