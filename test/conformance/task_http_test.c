#include "conformance/task_suite.h"
#include "conformance/task_web.h"

static const struct task_case http = {
    .kind = "http",
    .prepare = web_start,
    .port = &web_port,
    .ok = "{\"url\":\"http://127.0.0.1:@PORT@/json\"}",
    .ok_result = "data={\"items\":[1,2],\"ok\":true}",
    .fails = "{\"url\":\"http://127.0.0.1:@PORT@/status/503\"}",
    .fails_kind = "server_error",
    .fails_retryable = true,
    .slow = "{\"url\":\"http://127.0.0.1:@PORT@/slow\",\"timeout\":60}",
    .big = "{\"url\":\"http://127.0.0.1:@PORT@/big\"}",
    .bytes = "{\"url\":\"http://127.0.0.1:@PORT@/bytes\"}",
    .secret = "{\"url\":\"http://127.0.0.1:@PORT@/echo?p=@SECRET@\",\"headers\":{\"X-P\":\"@SECRET@\"}}",
    .mark = "{\"url\":\"http://127.0.0.1:@PORT@/mark\"}",
};

#define AT "\"url\":\"http://127.0.0.1:@PORT@"

static bool said(const struct json *outcome, const char *what)
{
    return strstr(task_text(outcome, "result.data").ptr, what) != NULL;
}

static void statuses_have_their_kinds(void)
{
    static const struct {
        int status;
        const char *kind;
        bool again;
    } cases[] = {{400, "client_error", false}, {401, "auth", false},      {403, "auth", false},
                 {404, "not_found", false},    {429, "rate_limit", true}, {500, "server_error", true},
                 {503, "server_error", true}};
    task_begin(&http, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char with[200], want[64];
        snprintf(with, sizeof(with), "{" AT "/status/%d\"}", cases[i].status);
        struct json outcome = task_do(with);
        snprintf(want, sizeof(want), "\"%s\"", cases[i].kind);
        task_is(&outcome, "error.kind", want);
        task_is(&outcome, "error.retryable", cases[i].again ? "true" : "false");
        task_is(&outcome, "result.data.why", "\"asked for\""); // what was answered is there all the same
        snprintf(want, sizeof(want), "%d", cases[i].status);
        task_is(&outcome, "http.status", want);
        task_is(&outcome, "result.status_code", want);
        task_is(&outcome, "http.headers.x-stub", "\"a, b\"");
    }
    task_end();
}

static void requests_say_what_they_were_told(void)
{
    task_begin(&http, NULL);
    struct json outcome = task_do("{" AT "/echo?a=1\",\"params\":{\"b c\":\"d e\",\"l\":[1,2],\"n\":null}}");
    task_is(&outcome, "result.data.path", "\"/echo?a=1&b%20c=d%20e&l=1&l=2\"");
    outcome = task_do("{" AT "/echo\",\"method\":\"post\",\"payload\":{\"x\":[1]}}");
    task_is(&outcome, "result.data.method", "\"POST\"");
    task_is(&outcome, "result.data.body", "\"{\\\"x\\\":[1]}\"");
    CHECK(said(&outcome, "Content-Type: application/json"));
    outcome = task_do("{" AT "/echo\",\"method\":\"POST\",\"data\":{\"a\":\"b c\"},\"headers\":{\"Content-Type\":"
                      "\"application/x-www-form-urlencoded\",\"X-One\":2,\"Host\":\"else\"}}");
    task_is(&outcome, "result.data.body", "\"a=b+c\"");
    CHECK(said(&outcome, "X-One: 2") && !said(&outcome, "Host: else"));
    outcome =
        task_do("{\"endpoint\":\"http://127.0.0.1:@PORT@/echo\",\"method\":\"GET\",\"data\":{\"query\":{\"q\":1}}}");
    task_is(&outcome, "result.data.path", "\"/echo?q=1\"");
    outcome = task_do("{" AT "/echo x\",\"method\":\"PUT\",\"body\":\"text\"}");
    task_is(&outcome, "result.data.path", "\"/echo%20x\"");
    CHECK(said(&outcome, "text/plain"));
    task_end();
}

static void credentials_become_headers(void)
{
    static const char basic[] =
        "[{\"name\":\"b\",\"kind\":\"static\",\"map\":{\"username\":\"Aladdin\",\"password\":\"open sesame\"}}]";
    task_begin(&http, NULL);
    struct json outcome = task_do("{" AT "/echo\",\"auth\":\"token\"}");
    CHECK(said(&outcome, "Authorization: Bearer ***"));
    outcome = task_do_in("{" AT "/echo\",\"auth\":\"b\"}", basic, 0);
    CHECK(said(&outcome, "Authorization: Basic ***"));
    outcome = task_do("{" AT "/echo\",\"auth\":{\"type\":\"header\",\"header\":\"X-Key\",\"value\":\"abcd-efgh\"}}");
    CHECK(said(&outcome, "X-Key: ***"));
    outcome = task_do("{" AT "/echo\",\"headers\":{\"Authorization\":\"Bearer \\u0001keychain:token\\u0001\"}}");
    CHECK(said(&outcome, "Authorization: Bearer ***"));
    outcome = task_do("{" AT "/echo\",\"auth\":\"nobody\"}");
    task_is(&outcome, "error.kind", "\"auth\"");
    task_end();
}

static void tokens_are_fetched_once_and_never_shown(void)
{
    static const char chain[] =
        "[{\"name\":\"c\",\"kind\":\"static\",\"map\":{\"id\":\"client-1\",\"secret\":\"very-secret\"}},"
        "{\"name\":\"o\",\"kind\":\"oauth2\",\"scope\":\"global\",\"endpoint\":\"http://127.0.0.1:@PORT@/token\","
        "\"data\":{\"grant_type\":\"client_credentials\",\"client_id\":\"\\u0001keychain:c.id\\u0001\","
        "\"client_secret\":\"\\u0001keychain:c.secret\\u0001\"}}]";
    task_begin(&http, NULL);
    for (int i = 0; i < 3; i++) {
        struct json outcome = task_do_in("{" AT "/echo\",\"auth\":\"o\"}", chain, 0);
        task_is(&outcome, "status", "\"ok\"");
        CHECK(said(&outcome, "Authorization: Bearer ***"));
        outcome = task_do_in("{" AT "/echo\",\"params\":{\"t\":\"\\u0001keychain:o.access_token\\u0001\"}}", chain, 0);
        CHECK(said(&outcome, "/echo?t=***"));
        CHECK(!strstr(task_text(&outcome, "").ptr, "very-secret") &&
              !strstr(task_text(&outcome, "").ptr, "fetched-token"));
    }
    CHECK_INT(atomic_load(&web_tokens), 1);
    task_end();
}

static void who_does_not_answer_is_told_from_who_is_late(void)
{
    task_begin(&http, NULL);
    struct json outcome = task_do("{\"url\":\"http://127.0.0.1:1/x\"}");
    task_is(&outcome, "error.kind", "\"connection\"");
    task_is(&outcome, "error.retryable", "true");
    outcome = task_do("{" AT "/slow\",\"timeout\":{\"connect\":0.1,\"read\":0.1}}");
    task_is(&outcome, "error.kind", "\"timeout\"");
    outcome = task_do("{\"url\":\"ftp://somewhere/x\"}");
    task_is(&outcome, "error.code", "\"URL_INVALID\"");
    outcome = task_do("{}");
    task_is(&outcome, "error.code", "\"URL_MISSING\"");
    task_end();
}

static void hundred_go_out_together(void)
{
    task_begin(&http, NULL);
    int64_t began = os_now().mono_ms;
    for (uint64_t i = 0; i < 100; i++) task_start(100 + i, "{" AT "/delay\"}");
    for (uint64_t i = 0; i < 100; i++) {
        struct json outcome = task_wait(100 + i);
        task_is(&outcome, "status", "\"ok\"");
    }
    CHECK(os_now().mono_ms - began < 100 * 200 / 4); // far from one after the other
    CHECK(atomic_load(&web_most) >= 50);
    int before = atomic_load(&web_connections);
    for (uint64_t i = 0; i < 100; i++) task_start(300 + i, "{" AT "/json\"}");
    for (uint64_t i = 0; i < 100; i++) (void)task_wait(300 + i);
    CHECK(atomic_load(&web_connections) - before < 60); // connections are kept
    task_end();
}

static void change_policy(struct task_options *options)
{
    static struct arena arena;
    static struct json config;
    struct fetch_policy *policy;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(json_parse(STR("{\"allow\":[{\"uri\":\"https://example.org/\"}]}"), NULL, &arena, &config, &err), &err);
    CHECK_OK(fetch_policy_parse(&config, &arena, &policy, &err), &err);
    options->policy = policy;
}

static void with_a_policy_only_what_it_allows_is_reached(void)
{
    task_begin(&http, change_policy);
    struct json outcome = task_do("{" AT "/json\"}");
    task_is(&outcome, "error.code", "\"URL_NOT_ALLOWED\"");
    task_is(&outcome, "error.retryable", "false");
    outcome = task_do("{\"url\":\"http://169.254.169.254/latest\"}");
    task_is(&outcome, "error.code", "\"URL_NOT_ALLOWED\"");
    task_end();
}

static void python_takes_scripts_from_here(void)
{
    task_begin(&http, NULL);
    struct json outcome =
        task_do_kind("python", "{\"input\":{\"n\":1},\"script\":{\"uri\":\"http://127.0.0.1:@PORT@/script\"}}");
    task_is(&outcome, "result", "2");
    outcome = task_do_kind("python", "{\"script\":{\"uri\":\"http://127.0.0.1:@PORT@/gone\"}}");
    task_is(&outcome, "error.code", "\"SCRIPT_NOT_FOUND\"");
    task_end();
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(statuses_have_their_kinds),
                                       TEST(requests_say_what_they_were_told),
                                       TEST(credentials_become_headers),
                                       TEST(tokens_are_fetched_once_and_never_shown),
                                       TEST(who_does_not_answer_is_told_from_who_is_late),
                                       TEST(hundred_go_out_together),
                                       TEST(with_a_policy_only_what_it_allows_is_reached),
                                       TEST(python_takes_scripts_from_here)};
    struct task_case whole = http;
    whole.more = more;
    whole.more_count = ARRAY_COUNT(more);
    return task_suite(&whole, argc, argv);
}
