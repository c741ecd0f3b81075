// What may be fetched, by text and by address alone: reliability §4.5 rows 1 to 73, 80, 81.
#include "fetch/fetch.h"
#include "harness/test.h"
#include "support/fetch_uris.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static enum code policy_of(const char *text, struct fetch_policy **out, struct error *err)
{
    if (!arena.block_size) arena_init(&arena, 65536, 64 << 20);
    struct json *config = ARENA_NEW(&arena, struct json);
    CHECK_OK(json_parse(str_from(text), NULL, &arena, config, err), err);
    return fetch_policy_parse(config, &arena, out, err);
}

static struct fetch_policy *policy(const char *text)
{
    struct fetch_policy *out = NULL;
    struct error err = {0};
    CHECK_OK(policy_of(text, &out, &err), &err);
    return out;
}

static struct fetch_policy *usual(void)
{
    return policy("{\"allow\": [\"https://plans.allowed.example/prod/\", \"s3://cairn-plans/prod/\"]}");
}

static void refused(const struct fetch_policy *by, const char *uri)
{
    struct error err = {0};
    enum code rc = fetch_uri_check(by, str_from(uri), &err);
    if (rc != E_DENIED) test_fail(__FILE__, __LINE__, "%s is not refused (%d)", uri, (int)rc);
    if (strncmp(err.message, "PLAN_URI_NOT_ALLOWED", 20) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", uri, err.message);
    CHECK(!strstr(err.message, "hunter2"));
}

static void accepted(const struct fetch_policy *by, const char *uri)
{
    struct error err = {0};
    if (fetch_uri_check(by, str_from(uri), &err)) test_fail(__FILE__, __LINE__, "%s: %s", uri, err.message);
}

static void hostile_hosts_are_refused_WE_3_1_1a_WE_3_1_1b_WE_3_1_1c_C_09(void)
{
    static const char *const shapes[] = {"http://%s/",
                                         "https://%s/",
                                         "https://%s/prod/x",
                                         "http://%s:8080/",
                                         "https://%s:443/prod/x",
                                         "HTTPS://%s",
                                         "https://%s?x=plans.allowed.example"};
    struct fetch_policy *by = usual();
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(hostile_hosts); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(shapes); k++, count++) {
            char uri[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(uri, sizeof(uri), shapes[k], hostile_hosts[i]);
#pragma GCC diagnostic pop
            refused(by, uri);
        }
    }
    CHECK(count >= 500);
}

static void hostile_uris_are_refused_WE_3_1_1a_WE_3_1_1c(void)
{
    struct fetch_policy *by = usual();
    CHECK(ARRAY_COUNT(hostile_uris) >= 250);
    for (size_t i = 0; i < ARRAY_COUNT(hostile_uris); i++) refused(by, hostile_uris[i]);
}

static void allowed_uris_are_accepted_WE_3_1_1a(void)
{
    struct fetch_policy *by = usual();
    for (size_t i = 0; i < ARRAY_COUNT(allowed_uris); i++) accepted(by, allowed_uris[i]);
}

static void nothing_is_allowed_without_rules_WE_3_1_1a(void)
{
    struct error err = {0};
    struct fetch_policy *none = NULL;
    if (!arena.block_size) arena_init(&arena, 65536, 64 << 20);
    CHECK_OK(fetch_policy_parse(NULL, &arena, &none, &err), &err);
    for (size_t i = 0; i < ARRAY_COUNT(allowed_uris); i++) refused(none, allowed_uris[i]);
    refused(policy("{}"), "https://plans.allowed.example/prod/x");
}

// Row 73.
static void long_uris_and_names_are_refused_WE_3_1_1a(void)
{
    struct fetch_policy *by = policy("{\"allow\": [\"https://.allowed.example/\"]}");
    static char uri[70000];
    memcpy(uri, "https://plans.allowed.example/", 30);
    memset(uri + 30, 'a', 65536);
    refused(by, uri);
    uri[2047] = '\0';
    accepted(by, uri);
    uri[2047] = 'a';
    uri[2048] = '\0';
    refused(by, uri);
    char label[128] = "https://";
    memset(label + 8, 'a', 64);
    memcpy(label + 72, ".allowed.example/", 18);
    refused(by, label);
    memmove(label + 71, label + 72, 18);
    accepted(by, label);
    char host[400] = "https://";
    for (size_t i = 0; i < 125; i++) memcpy(host + 8 + 2 * i, "a.", 2);
    memcpy(host + 258, "allowed.example/", 17);
    refused(by, host);
}

static void suffix_rules_end_at_labels(void)
{
    struct fetch_policy *by = policy("{\"allow\": [\"https://.allowed.example/p\"]}");
    accepted(by, "https://a.allowed.example/p");
    accepted(by, "https://a.b.allowed.example/p/x");
    refused(by, "https://allowed.example/p");
    refused(by, "https://evilallowed.example/p");
    refused(by, "https://.allowed.example/p");
    refused(by, "https://a.allowed.example/px");
    refused(by, "https://a.allowed.example.evil.test/p");
}

static void objects_are_allowed_by_bucket_account_and_container_WE_3_1_1a(void)
{
    struct fetch_policy *by =
        policy("{\"allow\": [\"gs://plans_1/a/\", \"azure://account/container/p\", \"cairn://plans/\"]}");
    accepted(by, "gs://plans_1/a/x");
    refused(by, "gs://plans_1/b/x");
    refused(by, "s3://plans_1/a/x");
    accepted(by, "azure://account/container/p/x");
    refused(by, "azure://account/container2/p/x");
    refused(by, "azure://account/container/q");
    refused(by, "azure://other/container/p/x");
    accepted(by, "cairn://plans/00000000000000000000000000000000000000000000000000000000000000aa");
    refused(by, "cairn://plans/00000000000000000000000000000000000000000000000000000000000000AA");
    refused(by, "cairn://plans/00000000000000000000000000000000000000000000000000000000000000aa/");
}

static void addresses_are_named_only_by_rules_for_tests(void)
{
    struct fetch_policy *by = policy("{\"allow\": [{\"uri\": \"http://127.0.0.1:8080/\", \"allowPrivate\": true},"
                                     "{\"uri\": \"http://[::1]:8080/\", \"allowPrivate\": true}]}");
    accepted(by, "http://127.0.0.1:8080/x");
    accepted(by, "http://[::1]:8080/x");
    refused(by, "http://127.0.0.1:8081/x");
    refused(by, "https://127.0.0.1:8080/x");
    refused(by, "http://127.1:8080/x");
    refused(by, "http://2130706433:8080/x");
    refused(by, "http://0177.0.0.1:8080/x");
    refused(by, "http://[0::1]:8080/x");
    refused(by, "http://127.0.0.1%00:8080/x");
    refused(by, "http://localhost:8080/x");
}

static void faults_of_the_configuration_are_named(void)
{
    static const char *const wrong[] = {
        "[]",
        "{\"allow\": {}}",
        "{\"allow\": [1]}",
        "{\"allow\": [\"ftp://x.example/\"]}",
        "{\"permit\": []}",
        "{\"allow\": [\"https://127.0.0.1/\"]}",
        "{\"allow\": [\"https://localhost/\"]}",
        "{\"allow\": [\"https://db.internal/\"]}",
        "{\"allow\": [\"https://x.example/?q\"]}",
        "{\"allow\": [\"https://x.example/../\"]}",
        "{\"allow\": [{\"url\": \"x\"}]}",
        "{\"allow\": [{\"uri\": \"https://x.example/\", \"addresses\": [\"10.0.0.0/33\"]}]}",
        "{\"allow\": [{\"uri\": \"s3://bucket/\", \"allowPrivate\": true}]}",
        "{\"limits\": {\"bodyBytes\": 99999999999}}",
        "{\"limits\": {\"timeoutMs\": 0}}",
        "{\"s3\": {\"secretAccessKey\": \"hunter2\", \"accessKeyId\": \"x\"}}",
        "{\"s3\": {\"secretAccessKey\": {\"env\": \"X\"}}}",
        "{\"s3\": {\"secretAccessKey\": {}}}",
        "{\"s3\": {\"endpoint\": \"https://127.0.0.1:1\"}}",
        "{\"s3\": {\"endpoint\": \"https://x.example/path\"}}",
        "{\"s3\": {\"region\": \"a/b\"}}",
        "{\"azure\": {\"accounts\": {\"a\": {}}}}",
        "{\"caFile\": 1}",
        "{\"gs\": {\"endpoint\": \"s3://bucket\"}}"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct fetch_policy *out = NULL;
        struct error err = {0};
        enum code rc = policy_of(wrong[i], &out, &err);
        if (rc != E_INVALID) test_fail(__FILE__, __LINE__, "%s: %d", wrong[i], (int)rc);
        CHECK(err.message[0] && !strstr(err.message, "hunter2"));
    }
}

static bool public(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) return fetch_address_public((const struct sockaddr *)&v4);
    CHECK(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    return fetch_address_public((const struct sockaddr *)&v6);
}

static void only_public_unicast_is_public_C_09(void)
{
    static const char *const closed[] = {"0.0.0.0",
                                         "0.255.255.255",
                                         "10.0.0.0",
                                         "10.255.255.255",
                                         "100.64.0.0",
                                         "100.100.100.200",
                                         "100.127.255.255",
                                         "127.0.0.0",
                                         "127.255.255.255",
                                         "168.63.129.16",
                                         "169.254.0.0",
                                         "169.254.169.254",
                                         "169.254.255.255",
                                         "172.16.0.0",
                                         "172.31.255.255",
                                         "192.0.0.0",
                                         "192.0.0.192",
                                         "192.0.0.255",
                                         "192.0.2.1",
                                         "192.88.99.1",
                                         "192.168.0.0",
                                         "192.168.255.255",
                                         "198.18.0.0",
                                         "198.19.255.255",
                                         "198.51.100.7",
                                         "203.0.113.9",
                                         "224.0.0.1",
                                         "239.255.255.255",
                                         "240.0.0.1",
                                         "255.255.255.255",
                                         "::",
                                         "::1",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.0.0.1",
                                         "::ffff:169.254.169.254",
                                         "::127.0.0.1",
                                         "::8.8.8.8",
                                         "64:ff9b::7f00:1",
                                         "64:ff9b::a9fe:a9fe",
                                         "64:ff9b::808:808",
                                         "64:ff9b:1::1",
                                         "100::1",
                                         "2001::1",
                                         "2001:0:7f00:1::",
                                         "2001:db8::1",
                                         "2002:7f00:1::",
                                         "2002:808:808::1",
                                         "3fff::1",
                                         "fc00::1",
                                         "fd00:ec2::254",
                                         "fdff::1",
                                         "fe80::1",
                                         "febf::1",
                                         "fec0::1",
                                         "ff02::1",
                                         "ff0e::1",
                                         "4000::1",
                                         "1::1"};
    static const char *const open[] = {
        "1.1.1.1",         "8.8.8.8",         "9.255.255.255",   "11.0.0.0",          "100.63.255.255",
        "100.128.0.0",     "126.255.255.255", "128.0.0.1",       "168.63.129.15",     "168.63.129.17",
        "169.253.255.255", "169.255.0.0",     "172.15.255.255",  "172.32.0.0",        "191.255.255.255",
        "192.0.1.0",       "192.167.255.255", "192.169.0.0",     "198.17.255.255",    "198.20.0.0",
        "223.255.255.255", "::ffff:8.8.8.8",  "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"};
    for (size_t i = 0; i < ARRAY_COUNT(closed); i++)
        if (public(closed[i])) test_fail(__FILE__, __LINE__, "%s is taken for public", closed[i]);
    for (size_t i = 0; i < ARRAY_COUNT(open); i++)
        if (!public(open[i])) test_fail(__FILE__, __LINE__, "%s is not taken for public", open[i]);
    struct sockaddr other = {.sa_family = AF_UNIX};
    CHECK(!fetch_address_public(&other));
}

// Mutations of allowed and refused texts: whatever passes is one of the two places, to the letter.
static void what_passes_is_inside_the_rules_WE_3_1_1a(void)
{
    static const char bytes[] = "/\\@:?#%.;&=[]{}|^`<>\"' \t\r\n\x01\x7f\x80\xff"
                                "aA0-_~!$()*+,2eEfF5cC";
    struct fetch_policy *by = usual();
    uint64_t seed = 88172645463325252u;
    size_t passed = 0;
    for (int round = 0; round < 200000; round++) {
        char text[256];
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const char *from = seed % 3 ? allowed_uris[(seed >> 8) % ARRAY_COUNT(allowed_uris)]
                                    : hostile_uris[(seed >> 8) % ARRAY_COUNT(hostile_uris)];
        size_t length = strlen(from) < 200 ? strlen(from) : 200;
        memcpy(text, from, length);
        for (size_t edits = 1 + (seed >> 20) % 3; edits > 0; edits--) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            size_t at = length ? (seed >> 8) % length : 0;
            char byte = bytes[(seed >> 24) % (sizeof(bytes) - 1)];
            if (seed % 3 == 0) {
                memmove(text + at + 1, text + at, length - at);
                length++;
            }
            if (length) text[at] = byte;
        }
        struct error err = {0};
        struct str uri = {text, length};
        if (fetch_uri_check(by, uri, &err)) continue;
        passed++;
        text[length] = '\0';
        for (size_t i = 0; i < length && text[i] != '/'; i++) text[i] = (char)(text[i] | 0x20); // scheme
        bool https = strncmp(text, "https://", 8) == 0, s3 = strncmp(text, "s3://cairn-plans/prod/", 22) == 0;
        for (size_t i = 8; https && i < length && text[i] != '/' && text[i] != '?'; i++)
            if (text[i] >= 'A' && text[i] <= 'Z') text[i] = (char)(text[i] + 32);
        https = https && (strncmp(text, "https://plans.allowed.example/prod/", 35) == 0 ||
                          strncmp(text, "https://plans.allowed.example:443/prod/", 39) == 0);
        if ((!https && !s3) || strstr(text, "/../")) test_fail(__FILE__, __LINE__, "passed: %s", text);
    }
    CHECK(passed > 1000);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(hostile_hosts_are_refused_WE_3_1_1a_WE_3_1_1b_WE_3_1_1c_C_09),
        TEST(hostile_uris_are_refused_WE_3_1_1a_WE_3_1_1c),
        TEST(allowed_uris_are_accepted_WE_3_1_1a),
        TEST(nothing_is_allowed_without_rules_WE_3_1_1a),
        TEST(long_uris_and_names_are_refused_WE_3_1_1a),
        TEST(suffix_rules_end_at_labels),
        TEST(objects_are_allowed_by_bucket_account_and_container_WE_3_1_1a),
        TEST(addresses_are_named_only_by_rules_for_tests),
        TEST(faults_of_the_configuration_are_named),
        TEST(only_public_unicast_is_public_C_09),
        TEST(what_passes_is_inside_the_rules_WE_3_1_1a),
    };
    return test_main("fetch_uri", tests, ARRAY_COUNT(tests), argc, argv);
}
