// Tokens of oauth2 entries: fetched when a task needs one, kept in memory until they are about to end, shared by all tasks of the
// same scope. Neither they nor what they were asked for with is ever written anywhere.
#include "task/kind.h"

#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

#define EARLY_MS 30000         // before its end a token is fetched anew
#define LIFE_DEFAULT_MS 300000 // of one whose end is not known
enum { TOKENS_MAX = 256, FORM_MAX = 65536 };

struct token_cache {
    struct token_cache *next;
    struct digest key;
    int64_t ends_ms;
    size_t size;
    char text[];
};

static void token_free(struct token_cache *token)
{
    explicit_bzero(token->text, token->size);
    free(token);
}

void token_cache_release(struct token_cache *cache)
{
    while (cache) {
        struct token_cache *next = cache->next;
        token_free(cache);
        cache = next;
    }
}

// What is asked of whom, and for whom: entries of the scope `global` share their token among executions.
static bool key_of(struct task_call *call, const struct json *entry, struct digest *key)
{
    struct str scope = json_text(json_key(entry, "scope"));
    const struct tool_request *request = call_request(call);
    struct buf text SCOPED(buf_release) = buf_of(FORM_MAX);
    json_canon(&text, entry);
    buf_printf(&text, "|%.*s|%.*s", STR_ARG(request->tenant), STR_ARG(request->environment));
    if (!str_is(scope, "global")) buf_printf(&text, "|%.*s", STR_ARG(request->run));
    bool good = buf_ok(&text);
    if (good) *key = sha256(buf_str(&text));
    secret_wipe(buf_str(&text));
    if (!good) call_no_memory(call);
    return good;
}

static bool find_token(struct task_call *call, const struct digest *key, struct str *text)
{
    int64_t now = os_now().mono_ms;
    *text = (struct str){0};
    tasks_lock(call->tasks);
    for (struct token_cache *at = *tasks_tokens(call->tasks); at && !text->ptr; at = at->next)
        if (at->ends_ms > now && memcmp(&at->key, key, sizeof(*key)) == 0)
            *text = arena_copy(call->arena, (struct str){at->text, at->size});
    tasks_unlock(call->tasks);
    return text->ptr != NULL;
}

static void keep_token(struct task_call *call, const struct digest *key, struct str text, int64_t life_ms)
{
    int64_t now = os_now().mono_ms;
    if (life_ms <= EARLY_MS) return;
    struct token_cache *token = malloc(sizeof(*token) + text.len);
    if (!token) return; // the next task fetches one of its own
    token->key = *key;
    token->ends_ms = now + life_ms - EARLY_MS;
    token->size = text.len;
    if (text.len > 0) memcpy(token->text, text.ptr, text.len);
    tasks_lock(call->tasks);
    struct token_cache **at = tasks_tokens(call->tasks);
    token->next = *at;
    *at = token;
    size_t count = 0;
    for (at = &token->next; *at;) {
        bool old = (*at)->ends_ms <= now || ++count >= TOKENS_MAX || memcmp(&(*at)->key, key, sizeof(*key)) == 0;
        struct token_cache *gone = *at;
        if (!old) {
            at = &gone->next;
            continue;
        }
        *at = gone->next;
        token_free(gone);
    }
    tasks_unlock(call->tasks);
}

static bool fetch(struct task_call *call, const struct json *entry, struct str *text)
{
    static const struct http_header form = {STR_INIT("Content-Type"), STR_INIT("application/x-www-form-urlencoded")};
    static const struct http_header json_type = {STR_INIT("Content-Type"), STR_INIT("application/json")};
    struct str name = json_text(json_key(entry, "name")), url = json_text(json_key(entry, "endpoint"));
    const struct json *data = json_key(entry, "data"), *headers = json_key(entry, "headers");
    if (!url.len) url = json_text(json_key(entry, "url"));
    struct http_header list[16] = {form};
    size_t count = 1;
    for (uint32_t i = 0; json_is(headers, JSON_OBJECT) && i < headers->count && count < ARRAY_COUNT(list); i++) {
        struct str value = json_as_text(&headers->members[i].value, call->arena);
        bool type = http_name_is(headers->members[i].key, "content-type");
        bool is_json = type && value.len >= 16 && memcmp(value.ptr, "application/json", 16) == 0;
        if (type)
            list[0] = is_json ? json_type : form;
        else
            list[count++] = (struct http_header){headers->members[i].key, value};
    }
    struct str body =
        str_eq(list[0].value, json_type.value) && data ? json_as_text(data, call->arena) : web_form(call, data, true);
    struct str method = json_text(json_key(entry, "method"));
    struct web_call request = {
        .method = method.len ? method : STR("POST"), .url = url, .headers = list, .header_count = count, .body = body};
    struct fetch_answer answer;
    if (!web_call(call, &request, &answer)) return false;
    if (answer.status >= 400)
        return call_fail(call, TASK_AUTH, "TOKEN_REFUSED", "keychain %.*s: the token endpoint answered %d",
                         STR_ARG(name), answer.status);
    *text = answer.body;
    return true;
}

bool oauth_answer(struct task_call *call, const struct json *entry, struct json *out)
{
    struct digest key;
    struct str text;
    struct error err = {0};
    if (!key_of(call, entry, &key)) return false;
    bool kept = find_token(call, &key, &text);
    if (!kept && !fetch(call, entry, &text)) return false;
    if (json_parse(text, &task_limits, call->arena, out, &err) || !json_is(out, JSON_OBJECT))
        return call_fail(call, TASK_AUTH, "TOKEN_REFUSED",
                         "keychain %.*s: what the token endpoint answered is no JSON object",
                         STR_ARG(json_text(json_key(entry, "name"))));
    struct str field = json_text(json_key(entry, "ttl_field"));
    int64_t life = seconds_ms(json_at(out, field.len ? field : STR("expires_in")), LIFE_DEFAULT_MS);
    if (!kept) keep_token(call, &key, text, life);
    return true;
}
