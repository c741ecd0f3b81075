// [serve] of a configuration: what each member becomes, and what is refused with its place.
#include "harness/test.h"

#include "service/service.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct service_settings settings;

static enum code put(const char *name, const char *text, struct error *err)
{
    struct json value;
    *err = (struct error){0};
    CHECK_OK(json_parse(str_from(text), NULL, &arena, &value, err), err);
    return service_setting(str_from(name), &value, &arena, &settings, err);
}

static void take(const char *name, const char *text)
{
    struct error err;
    CHECK_OK(put(name, text, &err), &err);
}

static void refuse(const char *name, const char *text, const char *why)
{
    struct error err;
    CHECK_INT(put(name, text, &err), E_INVALID);
    CHECK_TEXT(err.message, why);
    CHECK(err.line > 0);
}

static void begin(void)
{
    arena_release(&arena);
    arena_init(&arena, 64 * 1024, 64 << 20);
    settings = (struct service_settings){.local_steps = true, .drain_ms = -1};
}

static void members_become_settings(void)
{
    begin();
    take("listen", "[\"127.0.0.1:1\", \"unix:/x\"]");
    take("hosts", "\"a.example\"");
    take("tls", "{\"certificate\": \"/c\", \"key\": \"/k\"}");
    take("drainSeconds", "0");
    take("localSteps", "false");
    take("leaseSeconds", "7");
    take("routes", "[{\"tenant\": \"acme\", \"pool\": \"p\"}, {\"kind\": \"shell\", \"environment\": \"prod\"}]");
    take("stateStore", "{\"writeLatencyBudgetMs\": 1500}");
    take("engine", "{\"strictSchema\": true, \"adapter\": \"mock\", \"namespace\": \"n\", \"conductorUrl\": \"http://c/\"}");
    take("plans", "{\"inline\": \"deny\"}");
    take("http", "{\"connections\": 5, \"streamsPerToken\": 2, \"waitingCallsPerTenant\": 9}");
    take("otlp", "{\"url\": \"http://127.0.0.1:4318\", \"headers\": {\"A\": \"x\", \"B\": {\"env\": \"V\"}}}");
    CHECK_INT(settings.listen_count, 2);
    CHECK_STR(settings.listen[1], STR("unix:/x"));
    CHECK_STR(settings.hosts[0], STR("a.example"));
    CHECK_STR(settings.tls_key, STR("/k"));
    CHECK_INT(settings.drain_ms, 0);
    CHECK(!settings.local_steps);
    CHECK_INT(settings.lease_ms, 7000);
    CHECK_INT(settings.route_count, 2);
    CHECK_STR(settings.routes[0].pool, STR("p"));
    CHECK_STR(settings.routes[1].kind, STR("shell"));
    CHECK_INT(settings.routes[1].tenant.len, 0);
    CHECK_INT(settings.limits.write_budget_ms, 1500);
    CHECK_INT(settings.connections, 5);
    CHECK_INT(settings.calls_per_tenant, 9);
    CHECK(settings.adapters.strict && settings.adapters.usual == PROVIDER_MOCK);
    CHECK_STR(settings.adapters.space, STR("n"));
    CHECK_INT(settings.inline_plans, INLINE_DENY);
    CHECK_STR(settings.otlp->url, STR("http://127.0.0.1:4318"));
}

static void confinement_none_is_none(void)
{
    begin();
    take("confinement", "{\"level\": \"none\"}");
    CHECK(!settings.confinement);
    take("confinement", "{\"level\": \"basic\", \"limits\": {\"cpuSeconds\": 3}}");
    CHECK_INT(settings.confinement->limits.cpu, 3);
}

static void what_does_not_fit_is_told_with_its_place(void)
{
    struct error err;
    begin();
    refuse("listen", "7", "listen: must be a list");
    refuse("tls", "{\"certificate\": \"/c\"}", "tls: needs certificate and key");
    refuse("tls", "{\"certificate\": \"c\", \"key\": \"/k\"}", "tls.certificate: must be an absolute path");
    refuse("readers", "17", "readers: must be a whole number from 1 to 16");
    refuse("readers", "0", "readers: must be a whole number from 1 to 16");
    refuse("routes", "[{\"pol\": \"x\"}]", "routes: there is no setting \"pol\"");
    refuse("engine", "{\"adapter\": \"airflow\"}",
           "engine.adapter: is temporal, conductor or mock; without strictSchema also cairn");
    refuse("engine", "{\"strictSchema\": true, \"adapter\": \"cairn\"}",
           "engine.adapter: is temporal, conductor or mock; without strictSchema also cairn");
    refuse("engine", "{\"conductorUrl\": \"c\"}", "engine.conductorUrl: begins with http:// or https://");
    refuse("plans", "{\"inline\": \"perhaps\"}", "plans.inline: is allow, local or deny");
    refuse("http", "{\"conections\": 1}", "http: there is no setting \"conections\"");
    refuse("otlp", "{\"headers\": {}}", "otlp: needs a url");
    refuse("otlp", "{\"url\": \"http://x\", \"headers\": {\"A\": {\"env\": 1}}}",
           "otlp.headers: a header is neither text, {env = NAME} nor {file = PATH}");
    refuse("otlp", "{\"url\": \"collector\"}", "otlp.url: begins with http:// or https://");
    refuse("sinks", "{}", "sinks: must be a list");
    refuse("pause", "{\"drainTimeoutMs\": 1e400}", "pause.drainTimeoutMs: must be a whole number from 1 to 86400000");
    refuse("pause", "{\"drainTimeoutMs\": 0}", "pause.drainTimeoutMs: must be a whole number from 1 to 86400000");
    refuse("stateStore", "{\"budget\": 1}", "stateStore: there is no setting \"budget\"");
    CHECK_INT(put("lisen", "1", &err), E_NOT_FOUND);
}

#define PROVIDER "\"issuer\": \"https://id.example.com/realm\", \"audience\": \"cairn\""
#define GRANT "\"claim\": \"groups\", \"value\": \"x\", \"tenant\": \"acme\""

static void identity_providers_have_sound_defaults(void)
{
    begin();
    take("oidc", "[{" PROVIDER ", \"grants\": [{" GRANT ", \"roles\": [\"admin\", \"operator\"]}]}]");
    CHECK_INT(settings.oidc_count, 1);
    const struct service_oidc *one = &settings.oidc[0];
    CHECK_INT(one->skew_ms, 60000);
    CHECK_INT(one->algorithms, JWT_RS256 | JWT_PS256 | JWT_ES256 | JWT_EDDSA);
    CHECK_INT(one->grants[0].roles, ROLE_ADMIN | ROLE_OPERATOR);
    struct error err = {0};
    CHECK_OK(fetch_uri_check(one->policy, STR("https://id.example.com/other/keys"), &err), &err);
    CHECK_INT(fetch_uri_check(one->policy, STR("https://id.example.com.evil.org/keys"), &err), E_DENIED);
    CHECK_INT(fetch_uri_check(one->policy, STR("http://id.example.com/keys"), &err), E_DENIED);
    take("oidc", "[{" PROVIDER ", \"algorithms\": [\"ES256\"], \"allow\": [\"https://keys.example.org/\"]}]");
    CHECK_INT(settings.oidc[0].algorithms, JWT_ES256);
    CHECK_OK(fetch_uri_check(settings.oidc[0].policy, STR("https://keys.example.org/certs"), &err), &err);
}

static void providers_and_clients_that_do_not_fit_are_told(void)
{
    static const struct {
        const char *name, *text, *why;
    } rows[] = {
        {"oidc", "{}", "must be a list"},
        {"oidc", "[{\"audience\": \"x\"}]", "needs an issuer"},
        {"oidc", "[{\"issuer\": \"https://x\"}]", "needs an audience"},
        {"oidc", "[{\"issuer\": \"http://x\", \"audience\": \"x\"}]", "is not https"},
        {"oidc", "[{" PROVIDER ", \"algorithms\": [\"none\"]}]", "must be of RS256"},
        {"oidc", "[{" PROVIDER ", \"algorithms\": [\"HS256\"]}]", "must be of RS256"},
        {"oidc", "[{" PROVIDER ", \"algorithms\": []}]", "is empty"},
        {"oidc", "[{" PROVIDER ", \"skewSeconds\": 601}]", "skewSeconds"},
        {"oidc", "[{" PROVIDER ", \"staleSeconds\": 5}]", "less than refreshSeconds"},
        {"oidc", "[{" PROVIDER "}, {" PROVIDER "}]", "twice"},
        {"oidc", "[{" PROVIDER ", \"grants\": [{" GRANT "}]}]", "needs roles"},
        {"oidc", "[{" PROVIDER ", \"grants\": [{" GRANT ", \"roles\": [\"admin\"], \"projects\": []}]}]", "is empty"},
        {"oidc", "[{" PROVIDER ", \"grants\": [{" GRANT ", \"roles\": [\"admin\"], \"environments\": []}]}]", "is empty"},
        {"oidc", "[{" PROVIDER ", \"grants\": [{" GRANT ", \"roles\": [\"worker\"]}]}]", "must be of operator"},
        {"oidc", "[{" PROVIDER ", \"grants\": [{" GRANT ", \"roles\": [\"admin\"], \"tenantClaim\": \"t\"}]}]", "one of tenant"},
        {"oidc", "[{" PROVIDER ", \"grants\": [{\"claim\": \"g\", \"tenant\": \"a\", \"roles\": [\"admin\"]}]}]", "claim and value"},
        {"oidc", "[{" PROVIDER ", \"secret\": 1}]", "secret"},
        {"tls", "{\"certificate\": \"/c\", \"key\": \"/k\", \"clientCrl\": \"/l\"}", "need clientCa"},
        {"tls", "{\"certificate\": \"/c\", \"key\": \"/k\", \"clientCa\": \"/a\", \"clients\": [{\"uri\": \"u\"}]}", "tenant and pool"},
        {"tls", "{\"certificate\": \"/c\", \"key\": \"/k\", \"clientCa\": \"/a\", \"clients\": [{\"tenant\": \"a\", \"pool\": \"p\"}]}",
         "one of uri and name"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err;
        begin();
        enum code rc = put(rows[i].name, rows[i].text, &err);
        if (rc != E_INVALID || !strstr(err.message, rows[i].why))
            test_fail(__FILE__, __LINE__, "%s: %d %s", rows[i].text, (int)rc, err.message);
    }
}

static void every_member_is_explained_and_read(void)
{
    size_t count = 0;
    begin();
    for (; service_setting_name(count); count++) {
        struct error err;
        CHECK(service_setting_what(count)[0] != '\0');
        CHECK_INT(put(service_setting_name(count), "null", &err), E_INVALID);
        if (strstr(err.message, "there is no"))
            test_fail(__FILE__, __LINE__, "%s is not read", service_setting_name(count));
    }
    CHECK(count >= 16);
}

// The guides and the hints of messages are made of the same table.
static void numbers_are_taken_from_and_to_what_the_table_says(void)
{
    size_t ranges = 0;
    begin();
    for (size_t i = 0; service_setting_name(i); i++) {
        const char *name = service_setting_name(i);
        struct error err;
        long long low, high;
        char text[32];
        if (sscanf(service_setting_value(i), "%lld to %lld", &low, &high) != 2) continue;
        const long long tried[] = {low, high, low - 1, high + 1};
        for (size_t k = 0; k < ARRAY_COUNT(tried); k++) {
            snprintf(text, sizeof(text), "%lld", tried[k]);
            CHECK_INT(put(name, text, &err), k < 2 ? OK : E_INVALID);
        }
        ranges++;
    }
    CHECK(ranges >= 8);
}

static void every_member_is_of_the_type_that_the_table_says(void)
{
    begin();
    for (size_t i = 0; service_setting_name(i); i++) {
        const char *name = service_setting_name(i);
        struct str value = str_from(service_setting_value(i));
        struct error err;
        CHECK(value.len > 0);
        CHECK_INT(put(name, "true", &err), str_is(value, "true, false") ? OK : E_INVALID);
        if (str_is(value, "absolute path")) CHECK_INT(put(name, "\"/a\"", &err), OK);
        if (str_is(value, "absolute path")) CHECK_INT(put(name, "\"a\"", &err), E_INVALID);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(members_become_settings),
        TEST(confinement_none_is_none),
        TEST(what_does_not_fit_is_told_with_its_place),
        TEST(identity_providers_have_sound_defaults),
        TEST(providers_and_clients_that_do_not_fit_are_told),
        TEST(every_member_is_explained_and_read),
        TEST(numbers_are_taken_from_and_to_what_the_table_says),
        TEST(every_member_is_of_the_type_that_the_table_says),
    };
    return test_main("service_settings", tests, ARRAY_COUNT(tests), argc, argv);
}
