// Any bytes as a URI to fetch (F11). What is let through is one of the places that the rules name, letter for letter, and has no way
// out of it; the same text gives the same answer. Also any bytes as rules.
#include "fetch/fetch.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rules[] =
    "{\"allow\": [\"https://plans.allowed.example/prod/\", \"https://.below.example/p\", \"s3://cairn-plans/prod/\","
    "\"azure://account/container/\"]}";

// In lower case up to the end of the host.
static bool begins(struct str text, const char *with)
{
    size_t length = strlen(with), slashes = 0;
    if (text.len < length) return false;
    for (size_t i = 0; i < length; i++) {
        char c = text.ptr[i];
        slashes += c == '/';
        if (slashes < 3 && c >= 'A' && c <= 'Z') c = (char)(c + 32);
        if (c != with[i]) return false;
    }
    return true;
}

static bool below(struct str text)
{
    if (!begins(text, "https://")) return false;
    size_t end = str_find(text, '/', 8);
    struct str host = str_slice(text, 8, end), path = str_slice(text, end, text.len);
    if (str_ends(host, STR(":443"))) host.len -= 4;
    for (size_t i = 0; i < host.len; i++) {
        char c = (char)(host.ptr[i] | 0x20);
        if (!(c >= 'a' && c <= 'z') && !(host.ptr[i] >= '0' && host.ptr[i] <= '9') && host.ptr[i] != '-' &&
            host.ptr[i] != '.')
            return false;
    }
    static const char suffix[] = ".below.example";
    if (host.len <= sizeof(suffix) - 1) return false;
    for (size_t i = 0; i < sizeof(suffix) - 1; i++) {
        char c = host.ptr[host.len - (sizeof(suffix) - 1) + i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != suffix[i]) return false;
    }
    path = str_slice(path, 0, str_find(path, '?', 0));
    return str_is(path, "/p") || str_starts(path, STR("/p/"));
}

static void check(const struct fetch_policy *policy, struct str uri)
{
    struct error err = {0};
    enum code rc = fetch_uri_check(policy, uri, &err);
    INVARIANT(rc == OK || (rc == E_DENIED && strncmp(err.message, "PLAN_URI_NOT_ALLOWED: ", 22) == 0));
    if (rc) return;
    INVARIANT(uri.len < FETCH_URI_MAX);
    INVARIANT(begins(uri, "https://plans.allowed.example/prod/") ||
              begins(uri, "https://plans.allowed.example:443/prod/") || begins(uri, "s3://cairn-plans/prod/") ||
              begins(uri, "azure://account/container/") || begins(uri, "azure://account/container") || below(uri));
    struct str path = str_slice(uri, 0, str_find(uri, '?', 0));
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.ptr[i];
        INVARIANT(c > 0x20 && c < 0x7f && c != '\\' && c != '#');
        struct str rest = str_slice(path, i, path.len);
        INVARIANT(!str_starts(rest, STR("/../")) && !str_starts(rest, STR("/./")) && !str_is(rest, "/..") &&
                  !str_is(rest, "/."));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct json config;
    struct fetch_policy *policy = NULL;
    struct error err = {0};
    struct str text = {(const char *)data, size};
    arena_init(&arena, 16384, 64 << 20);
    INVARIANT(json_parse(str_from(rules), NULL, &arena, &config, &err) == OK);
    INVARIANT(fetch_policy_parse(&config, &arena, &policy, &err) == OK);
    check(policy, text);
    if (json_parse(text, NULL, &arena, &config, &err) == OK && fetch_policy_parse(&config, &arena, &policy, &err) == OK)
        (void)!fetch_uri_check(policy, STR("https://plans.allowed.example/prod/x"), &err);
    arena_release(&arena);
    return 0;
}
