// Signatures for object stores: published examples, and a server that works them out on its own.
#include "support/fetch_kit.h"

#include "fetch/inside.h"

#include "os/os.h"

#include <sys/wait.h>

static struct arena arena;

// ---- Signature V4: the examples of AWS's documentation of S3

static void v4(const char *method, const char *path, const char *query, const struct http_header *headers, size_t count,
               const char *body, const char *names, const char *signature)
{
    char want[512];
    struct http_header out[4];
    size_t out_count = 0;
    struct sigv4 request = {.key_id = STR("AKIAIOSFODNN7EXAMPLE"),
                            .secret = STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
                            .region = STR("us-east-1"),
                            .service = STR("s3"),
                            .now_ms = 1369353600000,
                            .method = str_from(method),
                            .host = STR("examplebucket.s3.amazonaws.com"),
                            .path = str_from(path),
                            .query = str_from(query),
                            .headers = headers,
                            .header_count = count,
                            .body = sha256(str_from(body))};
    if (!arena.block_size) arena_init(&arena, 65536, 64 << 20);
    CHECK(sigv4_sign(&request, &arena, out, &out_count));
    CHECK_INT(out_count, 3);
    CHECK_STR(out[1].value, STR("20130524T000000Z"));
    snprintf(want, sizeof(want),
             "AWS4-HMAC-SHA256 "
             "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=%s,Signature=%s",
             names, signature);
    CHECK_STR(out[2].value, str_from(want));
}

static void published_examples_of_signature_v4_come_out(void)
{
    const struct http_header range = {STR("Range"), STR("bytes=0-9")};
    const struct http_header put[] = {{STR("Date"), STR("Fri, 24 May 2013 00:00:00 GMT")},
                                      {STR("x-amz-storage-class"), STR("REDUCED_REDUNDANCY")}};
    v4("GET", "/test.txt", "", &range, 1, "", "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    v4("PUT", "/test%24file.text", "", put, 2, "Welcome to Amazon S3.",
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    v4("GET", "/", "lifecycle", NULL, 0, "", "host;x-amz-content-sha256;x-amz-date",
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    v4("GET", "/", "prefix=J&max-keys=2", NULL, 0, "", "host;x-amz-content-sha256;x-amz-date",
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void keys_that_are_not_base64_are_refused(void)
{
    static const char *const wrong[] = {"", "x", "####", "hunter2"};
    arena_init(&arena, 65536, 64 << 20);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct shared_key request = {
            .account = STR("account"), .key = str_from(wrong[i]), .method = STR("GET"), .path = STR("/c/b")};
        struct str out = {0};
        struct error err = {0};
        CHECK_INT(shared_key_sign(&request, &arena, &out, &err), E_INVALID);
        CHECK(!strstr(err.message, "hunter2"));
    }
}

// ---- against a server that checks

#define ACCOUNT_KEY "Y2Fpcm4gdGVzdCBrZXkgb2YgYW4gYWNjb3VudCwgNjQgYnl0ZXMgbG9uZyBvciBzby4uLi4uLi4uLi4uLg=="

static int keep_open = -1;

static uint16_t object_server(void)
{
    int in[2], out[2];
    setenv("KEY_ID", "AKIDTEST", 1);
    setenv("SECRET", "hunter2/secret+key", 1);
    setenv("TOKEN", "hunter2-token", 1);
    setenv("ACCOUNT", "account", 1);
    setenv("ACCOUNT_KEY", ACCOUNT_KEY, 1);
    setenv("SAS", "sv=2021-08-06&sp=r&sig=hunter2%3D", 1);
    setenv("WRONG", "hunter2-wrong", 1);
    CHECK(pipe(in) == 0 && pipe(out) == 0);
    if (fork() == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        execlp("python3", "python3", "test/unit/support/object_server.py", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    keep_open = in[1]; // the server ends with this process
    char text[16] = "";
    ssize_t n = read(out[0], text, sizeof(text) - 1);
    int64_t port = 0;
    if (n <= 1 || !str_int64(str_trim((struct str){text, (size_t)n}), &port)) test_skip("there is no python3");
    return (uint16_t)port;
}

#define ENDPOINT "\"endpoint\": \"http://127.0.0.1:PORT\", \"allowPrivate\": true"
#define KEYS                                                                                                           \
    "\"accessKeyId\": {\"env\": \"KEY_ID\"}, \"secretAccessKey\": {\"env\": \"SECRET\"}, \"sessionToken\": {\"env\": " \
    "\"TOKEN\"}"
#define LIVE_KEYS "\"accessKeyId\": {\"env\": \"LIVE_KEY_ID\"}, \"secretAccessKey\": {\"env\": \"LIVE_SECRET\"}"
#define ALLOW                                                                                                          \
    "\"allow\": [\"s3://bucket-1/\", \"gs://bucket_2/\", \"azure://account/container/\", "                             \
    "\"azure://shared/container/\"]"
#define GOOD                                                                                                           \
    "{" ALLOW ", \"s3\": {" ENDPOINT ", " KEYS "}, \"gs\": {" ENDPOINT ", " KEYS "}, \"azure\": {" ENDPOINT            \
    ", \"accounts\": {\"account\": {\"key\": {\"env\": \"ACCOUNT_KEY\"}}, \"shared\": {\"sas\": {\"env\": "            \
    "\"SAS\"}}}}}"

static void expect(const struct fetch_policy *policy, const char *method, const char *uri, const char *body, int status,
                   const char *text)
{
    static const struct http_header headers[] = {{STR_INIT("Content-Type"), STR_INIT("application/json")},
                                                 {STR_INIT("If-None-Match"), STR_INIT("*")},
                                                 {STR_INIT("X-Amz-Meta-Note"), STR_INIT("two  or   three blanks")}};
    struct fetch_call call = {.method = str_from(method),
                              .uri = str_from(uri),
                              .body = str_from(body),
                              .headers = headers,
                              .header_count = *body ? 3 : 0};
    struct fetch_answer answer;
    struct error err = {0};
    CHECK_OK(fetch_call(policy, &call, &arena, &answer, &err), &err);
    if (answer.status != status || (text && !str_is(answer.body, text)))
        test_fail(__FILE__, __LINE__, "%s %s: %d %.*s", method, uri, answer.status, STR_ARG(answer.body));
}

static void object_stores_accept_what_is_signed(void)
{
    arena_init(&arena, 65536, 64 << 20);
    uint16_t port = object_server();
    struct fetch_policy *policy = policy_for(&arena, GOOD, port);
    expect(policy, "GET", "s3://bucket-1/plans/a.json", "", 200, "GET /bucket-1/plans/a.json 0");
    expect(policy, "PUT", "s3://bucket-1/plans/a.json", "{\"x\": 1}", 200, "PUT /bucket-1/plans/a.json 8");
    expect(policy, "HEAD", "s3://bucket-1/plans/a.json", "", 200, "");
    expect(policy, "DELETE", "s3://bucket-1/plans/a.json", "", 200, "DELETE /bucket-1/plans/a.json 0");
    expect(policy, "GET", "s3://bucket-1/a%20b+c(1)~d!*'%C3%A9@x=y", "", 200,
           "GET /bucket-1/a b+c(1)~d!*'\xc3\xa9@x=y 0");
    expect(policy, "GET", "gs://bucket_2/plans/a.json", "", 200, "GET /bucket_2/plans/a.json 0");
    expect(policy, "PUT", "gs://bucket_2/plans/a.json", "x", 200, "PUT /bucket_2/plans/a.json 1");
    expect(policy, "GET", "azure://account/container/a/b.json", "", 200, "GET /account/container/a/b.json 0");
    expect(policy, "PUT", "azure://account/container/a%20b(1).json", "{}", 200, "PUT /account/container/a b(1).json 2");
    expect(policy, "HEAD", "azure://account/container/a", "", 200, "");
    expect(policy, "GET", "azure://shared/container/a", "", 200, "GET /shared/container/a 0");
}

static void other_regions_and_clocks_are_asked_once_more(void)
{
    arena_init(&arena, 65536, 64 << 20);
    struct fetch_policy *policy = policy_for(&arena, GOOD, object_server());
    expect(policy, "GET", "s3://bucket-1/other-region/x", "", 200, "GET /bucket-1/other-region/x 0");
    expect(policy, "GET", "s3://bucket-1/skewed/x", "", 200, "GET /bucket-1/skewed/x 0");
}

static void wrong_and_missing_credentials_fail_without_being_told(void)
{
    arena_init(&arena, 65536, 64 << 20);
    uint16_t port = object_server();
    struct fetch_policy *wrong =
        policy_for(&arena,
                   "{" ALLOW ", \"s3\": {" ENDPOINT
                   ", \"accessKeyId\": {\"env\": \"KEY_ID\"}, \"secretAccessKey\": {\"env\": \"WRONG\"},"
                   "\"sessionToken\": {\"env\": \"TOKEN\"}}}",
                   port);
    expect(wrong, "GET", "s3://bucket-1/x", "", 403, NULL);
    struct fetch_policy *anonymous =
        policy_for(&arena, "{" ALLOW ", \"s3\": {" ENDPOINT "}, \"azure\": {" ENDPOINT "}}", port);
    expect(anonymous, "GET", "s3://bucket-1/x", "", 403, "anonymous");
    expect(anonymous, "GET", "azure://account/container/x", "", 403, "anonymous");
    struct fetch_policy *missing =
        policy_for(&arena,
                   "{" ALLOW ", \"s3\": {" ENDPOINT
                   ", \"accessKeyId\": {\"env\": \"KEY_ID\"}, \"secretAccessKey\": {\"file\": \"/not/there\"}}}",
                   port);
    struct fetch_call call = {.uri = STR("s3://bucket-1/x")};
    struct fetch_answer answer;
    struct error err = {0};
    CHECK_INT(fetch_call(missing, &call, &arena, &answer, &err), E_NOT_FOUND);
    CHECK(!strstr(err.message, "hunter2") && !strstr(err.message, "AKID"));
    // A file is read at each call: a new key needs no restart.
    char path[600], text[2048];
    snprintf(path, sizeof(path), "%s/secret", test_dir());
    snprintf(text, sizeof(text),
             "{" ALLOW ", \"s3\": {" ENDPOINT
             ", \"accessKeyId\": {\"env\": \"KEY_ID\"}, \"secretAccessKey\": {\"file\": \"%s\"},"
             "\"sessionToken\": {\"env\": \"TOKEN\"}}}",
             path);
    struct fetch_policy *file = policy_for(&arena, text, port);
    test_write_file(path, STR("old\n"));
    expect(file, "GET", "s3://bucket-1/x", "", 403, NULL);
    test_write_file(path, STR("hunter2/secret+key\n"));
    expect(file, "GET", "s3://bucket-1/x", "", 200, NULL);
}

// Where the providers' own objects are asked for, and that a bucket cannot choose it.
static void providers_have_their_own_hosts(void)
{
    arena_init(&arena, 65536, 64 << 20);
    struct fetch_policy *policy = policy_for(&arena, "{\"s3\": {\"region\": \"eu-central-1\"}}", 0);
    struct cloud_time time = {.now_ms = 1369353600000};
    static const struct {
        const char *uri, *host, *path;
    } cases[] = {{"s3://bucket-1/a/b", "bucket-1.s3.eu-central-1.amazonaws.com", "/a/b"},
                 {"gs://bucket_2/a/b", "storage.googleapis.com", "/bucket_2/a/b"},
                 {"azure://account/container/b", "account.blob.core.windows.net", "/container/b"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct uri uri;
        const char *reason;
        struct fetch_target target;
        struct fetch_call call = {.uri = str_from(cases[i].uri)};
        struct error err = {0};
        CHECK(uri_parse(call.uri, false, &uri, &reason));
        enum code rc = i == 2 ? azure_target(policy, &uri, &call, &time, &arena, &target, &err)
                              : s3_target(policy, &uri, &call, &time, &arena, &target, &err);
        CHECK_OK(rc, &err);
        CHECK_TEXT(target.uri.host, cases[i].host);
        CHECK_INT(target.uri.port, 443);
        CHECK_INT(target.uri.scheme, SCHEME_HTTPS);
        CHECK_STR(target.path, str_from(cases[i].path));
        CHECK(!target.reach.allow_private && !target.reach.network_count);
    }
}

// ---- against other people's servers: test/objects/run starts them

static struct fetch_policy *live_policy(const char *variable)
{
    const char *port = getenv(variable);
    CHECK(port);
    if (!arena.block_size) arena_init(&arena, 65536, 64 << 20);
    return policy_for(
        &arena,
        "{\"allow\": [\"s3://plans/\", \"gs://plans/\", \"azure://account/container/\"], \"s3\": {" ENDPOINT
        ", " LIVE_KEYS "}, \"gs\": {" ENDPOINT ", " LIVE_KEYS "}, \"azure\": {" ENDPOINT
        ", \"accounts\": {\"account\": {\"key\": {\"env\": \"LIVE_ACCOUNT_KEY\"}}}}}",
        (uint16_t)atoi(port));
}

static void plan_is(const struct fetch_policy *policy, const char *uri, const char *text)
{
    struct digest hash = sha256(str_from(text));
    struct plan_trip trip;
    char hex[SHA256_HEX + 1];
    digest_hex(&hash, hex);
    struct plan_ref ref = {.uri = str_from(uri), .sha256 = str_from(hex), .size = strlen(text)};
    struct str bytes;
    struct error err = {0};
    CHECK_OK(fetch_plan(policy, &ref, &arena, &bytes, &trip, &err), &err);
    CHECK_STR(bytes, str_from(text));
}

static void live_keep_and_hand_out(const char *variable, const char *const *uris)
{
    struct fetch_policy *policy = live_policy(variable);
    bool azure = uris[0][0] == 'a';
    for (; *uris; uris++) {
        expect(policy, "PUT", *uris, "{\"planId\": \"p\"}", azure ? 201 : 200, NULL);
        if (azure) expect(policy, "PUT", *uris, "{}", 409, NULL); // If-None-Match: *
        expect(policy, "GET", *uris, "", 200, "{\"planId\": \"p\"}");
        expect(policy, "HEAD", *uris, "", 200, "");
        plan_is(policy, *uris, "{\"planId\": \"p\"}");
        expect(policy, "DELETE", *uris, "", azure ? 202 : 204, NULL);
        expect(policy, "GET", *uris, "", 404, NULL);
    }
}

static void live_buckets_are_read_and_written(void)
{
    static const char *const uris[] = {"s3://plans/prod/a.json", "s3://plans/prod/a%20b/c(1)+d.json",
                                       "gs://plans/prod/x~y.json", NULL};
    live_keep_and_hand_out("LIVE_S3", uris);
}

static void live_blobs_are_read_and_written(void)
{
    static const char *const uris[] = {"azure://account/container/prod/a.json",
                                       "azure://account/container/a%20b/c(1)+d%C3%A9.json", NULL};
    live_keep_and_hand_out("LIVE_AZURE", uris);
    setenv("LIVE_ACCOUNT_KEY", "aHVudGVyMg==", 1);
    expect(live_policy("LIVE_AZURE"), "GET", "azure://account/container/x", "", 403, NULL);
}

static void live_signatures_are_those_of_the_providers_signer(void)
{
    struct fetch_policy *policy = live_policy("LIVE_CHECK");
    expect(policy, "GET", "s3://plans/prod/a.json", "", 200, "good");
    expect(policy, "PUT", "s3://plans/prod/a%20b+c(1)~d!*'%C3%A9@x=y", "{}", 200, "good");
    expect(policy, "HEAD", "gs://plans/x", "", 200, "");
    expect(policy, "DELETE", "gs://plans/x", "", 200, "good");
    setenv("LIVE_SECRET", "hunter2", 1);
    expect(policy, "GET", "s3://plans/prod/a.json", "", 403, NULL);
}

int main(int argc, char **argv)
{
    static const struct test live[] = {
        TEST(live_buckets_are_read_and_written),
        TEST(live_blobs_are_read_and_written),
        TEST(live_signatures_are_those_of_the_providers_signer),
    };
    if (getenv("LIVE_S3")) return test_main("fetch_sign", live, ARRAY_COUNT(live), argc, argv);
    static const struct test tests[] = {
        TEST(published_examples_of_signature_v4_come_out),
        TEST(keys_that_are_not_base64_are_refused),
        TEST(object_stores_accept_what_is_signed),
        TEST(other_regions_and_clocks_are_asked_once_more),
        TEST(wrong_and_missing_credentials_fail_without_being_told),
        TEST(providers_have_their_own_hosts),
    };
    return test_main("fetch_sign", tests, ARRAY_COUNT(tests), argc, argv);
}
