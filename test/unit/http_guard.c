// Hosts and origins that may talk to us (H2, H3), words of URLs, and what is written (H5).
#include "harness/test.h"
#include "http/http.h"

#include <string.h>

static struct arena arena;

static struct http_request make(const char *method, const char *host, struct http_header *headers, size_t count)
{
    return (struct http_request){.method = str_from(method),
                                 .host = str_from(host),
                                 .path = STR("/"),
                                 .headers = headers,
                                 .header_count = count};
}

static void a_service_behind_a_proxy_is_known_by_its_public_origin_H2_H3(void)
{
    static const struct str origins[] = {STR_INIT("https://cairn.example"), STR_INIT("http://inner.example:81")};
    static const struct http_guard guard = {.origins = origins, .origin_count = ARRAY_COUNT(origins)};
    static const struct http_door door = {.port = 7117};
    static const struct {
        const char *host, *origin;
        int status;
    } cases[] = {
        {"cairn.example", "https://cairn.example", 0},
        {"CAIRN.example:443", "https://cairn.example", 0},
        {"inner.example:81", "http://inner.example:81", 0},
        {"cairn.example", "http://cairn.example", 403},
        {"cairn.example", "https://cairn.example:444", 403},
        {"cairn.example", "https://evil.example", 403},
        {"cairn.example:80", "https://cairn.example", 421},
        {"cairn.example:7117", "https://cairn.example", 421},
        {"inner.example", "http://inner.example:81", 421},
        {"cairn.example.evil.example", "https://cairn.example", 421},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct http_header headers[] = {{STR("Origin"), str_from(cases[i].origin)}};
        struct http_request request = make("POST", cases[i].host, headers, 1);
        CHECK_INT(http_guard_check(&guard, &door, &request), cases[i].status);
    }
}

static void hosts_are_ours_or_misdirected_H2(void)
{
    static const struct str names[] = {STR_INIT("cairn.example"), STR_INIT("proxy.example:443")};
    static const struct http_guard guard = {.hosts = names, .host_count = ARRAY_COUNT(names)};
    static const struct http_door door = {.port = 8080};
    static const struct {
        const char *host;
        bool ours;
    } cases[] = {
        {"localhost:8080", true},
        {"LOCALHOST:8080", true},
        {"LocalHost:8080", true},
        {"127.0.0.1:8080", true},
        {"[::1]:8080", true},
        {"cairn.example:8080", true},
        {"Cairn.Example:8080", true},
        {"proxy.example:443", true},
        {"PROXY.example:443", true},
        {"localhost:08080", true}, // the same number
        {"", false},
        {"localhost", false},
        {"localhost:80", false},
        {"localhost:8081", false},
        {"localhost:443", false},
        {"localhost.:8080", false},
        {"localhost.evil.example:8080", false},
        {"evil.example", false},
        {"evil.example:8080", false},
        {"127.0.0.1", false},
        {"127.0.0.1:80", false},
        {"127.0.0.1.:8080", false},
        {"127.0.0.2:8080", false},
        {"127.1:8080", false},
        {"127.0.1:8080", false},
        {"0.0.0.0:8080", false},
        {"0.0.0.0", false},
        {"0:8080", false},
        {"2130706433:8080", false},
        {"0x7f000001:8080", false},
        {"0177.0.0.1:8080", false},
        {"127.0.0.1.nip.io:8080", false},
        {"[::]:8080", false},
        {"[::1]", false},
        {"[0:0:0:0:0:0:0:1]:8080", false},
        {"[::ffff:127.0.0.1]:8080", false},
        {"[::1]:8081", false},
        {"[fe80::1]:8080", false},
        {"192.168.0.1:8080", false},
        {"10.0.0.1:8080", false},
        {"169.254.169.254:8080", false},
        {"169.254.169.254", false},
        {"cairn.example", false},
        {"cairn.example:443", false},
        {"www.cairn.example:8080", false},
        {"xcairn.example:8080", false},
        {"cairn.example.:8080", false},
        {"proxy.example", false},
        {"proxy.example:8080", false},
        {"proxy.example:4430", false},
        {"localhost:8080@evil.example", false},
        {"localhost_:8080", false},
    };
    CHECK(ARRAY_COUNT(cases) >= 50);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct http_request request = make("GET", cases[i].host, NULL, 0);
        int got = http_guard_check(&guard, &door, &request);
        if (got != (cases[i].ours ? 0 : 421)) test_fail(__FILE__, __LINE__, "%s: %d", cases[i].host, got);
    }
}

static void default_ports_and_sockets_need_no_port_H2(void)
{
    static const struct http_guard guard = {0};
    struct http_request request = make("GET", "localhost", NULL, 0);
    CHECK_INT(http_guard_check(&guard, &(struct http_door){.port = 80}, &request), 0);
    CHECK_INT(http_guard_check(&guard, &(struct http_door){.port = 443, .tls = true}, &request), 0);
    CHECK_INT(http_guard_check(&guard, &(struct http_door){.port = 80, .tls = true}, &request), 421);
    CHECK_INT(http_guard_check(&guard, &(struct http_door){.port = 443}, &request), 421);
    CHECK_INT(http_guard_check(&guard, &(struct http_door){0}, &request), 0);
    request.host = STR("evil.example");
    CHECK_INT(http_guard_check(&guard, &(struct http_door){0}, &request), 421);
}

static void other_origins_are_refused_for_every_method_H3(void)
{
    static const struct str listed[] = {STR_INIT("https://ui.example")};
    static const struct http_guard guard = {.origins = listed, .origin_count = 1};
    static const struct http_door door = {.port = 8080};
    static const struct {
        const char *origin;
        bool ours;
    } cases[] = {
        {"http://localhost:8080", true},
        {"http://LOCALHOST:8080", true},
        {"https://ui.example", true},
        {"null", false},
        {"", false},
        {"http://localhost", false},
        {"http://localhost:80", false},
        {"http://localhost:8081", false},
        {"https://localhost:8080", false},
        {"http://127.0.0.1:8080", false}, // another name than the one that was asked
        {"http://[::1]:8080", false},
        {"http://localhost:8080.evil.example", false},
        {"http://localhost:8080/", false},
        {"http://localhost:8080@evil.example", false},
        {"http://evil.example", false},
        {"http://evil.example:8080", false},
        {"https://evil.example", false},
        {"http://ui.example", false},
        {"https://ui.example:444", false},
        {"https://ui.example.evil.example", false},
        {"file://", false},
        {"chrome-extension://abc", false},
        {"http://localhost:8080, http://evil.example", false},
    };
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
    CHECK(ARRAY_COUNT(cases) >= 20);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (size_t m = 0; m < ARRAY_COUNT(methods); m++) {
            struct http_header header = {STR("Origin"), str_from(cases[i].origin)};
            struct http_request request = make(methods[m], "localhost:8080", &header, 1);
            int got = http_guard_check(&guard, &door, &request);
            if (got != (cases[i].ours ? 0 : 403))
                test_fail(__FILE__, __LINE__, "%s %s: %d", methods[m], cases[i].origin, got);
        }
}

static int site(const char *method, const char *site, const char *mode, const char *dest)
{
    static const struct http_guard guard = {0};
    static const struct http_door door = {.port = 8080};
    struct http_header headers[] = {{STR("Sec-Fetch-Site"), str_from(site)},
                                    {STR("Sec-Fetch-Mode"), str_from(mode)},
                                    {STR("Sec-Fetch-Dest"), str_from(dest)}};
    struct http_request request = make(method, "localhost:8080", headers, ARRAY_COUNT(headers));
    return http_guard_check(&guard, &door, &request);
}

static void other_sites_may_link_to_us_and_nothing_more_H3(void)
{
    CHECK_INT(site("POST", "same-origin", "cors", "empty"), 0);
    CHECK_INT(site("GET", "none", "navigate", "document"), 0);
    CHECK_INT(site("GET", "cross-site", "navigate", "document"), 0);
    CHECK_INT(site("GET", "cross-site", "navigate", "iframe"), 403);
    CHECK_INT(site("GET", "cross-site", "cors", "empty"), 403);
    CHECK_INT(site("GET", "cross-site", "no-cors", "image"), 403);
    CHECK_INT(site("GET", "same-site", "cors", "empty"), 403);
    CHECK_INT(site("POST", "cross-site", "navigate", "document"), 403);
    CHECK_INT(site("POST", "same-site", "cors", "empty"), 403);
    CHECK_INT(site("DELETE", "cross-site", "no-cors", "empty"), 403);
    CHECK_INT(site("GET", "", "cors", "empty"), 403);
}

static void preflights_are_never_granted_H3(void)
{
    static const struct http_guard guard = {0};
    static const struct http_door door = {.port = 8080};
    struct http_header own[] = {{STR("Origin"), STR("http://localhost:8080")},
                                {STR("Access-Control-Request-Method"), STR("POST")}};
    struct http_header private[] = {{STR("Access-Control-Request-Private-Network"), STR("true")}};
    struct http_header twice[] = {{STR("Origin"), STR("http://localhost:8080")},
                                  {STR("origin"), STR("http://evil.example")}};
    struct http_request request = make("OPTIONS", "localhost:8080", own, 2);
    CHECK_INT(http_guard_check(&guard, &door, &request), 403);
    request = make("OPTIONS", "localhost:8080", private, 1);
    CHECK_INT(http_guard_check(&guard, &door, &request), 403);
    request = make("POST", "localhost:8080", twice, 2);
    CHECK_INT(http_guard_check(&guard, &door, &request), 403);
}

static void queries_are_decoded(void)
{
    struct http_request request = {.query = STR("a=1&&b=x%20y+z&c&a=2&%64=%3D&bad=%ff&e=")};
    struct str out;
    CHECK(http_query(&request, "a", &arena, &out));
    CHECK_STR(out, STR("1"));
    CHECK(http_query(&request, "b", &arena, &out));
    CHECK_STR(out, STR("x y z"));
    CHECK(http_query(&request, "c", &arena, &out));
    CHECK_STR(out, STR(""));
    CHECK(http_query(&request, "d", &arena, &out));
    CHECK_STR(out, STR("="));
    CHECK(http_query(&request, "e", &arena, &out));
    CHECK_STR(out, STR(""));
    CHECK(!http_query(&request, "bad", &arena, &out));
    CHECK(!http_query(&request, "f", &arena, &out));
}

static void percent_goes_there_and_back(void)
{
    struct buf out;
    struct str back;
    struct str text = STR("a/b c%+&=\xC3\xA9~._-");
    buf_init(&out, 4096);
    http_percent_encode(&out, text);
    CHECK_STR(buf_str(&out), STR("a%2Fb%20c%25%2B%26%3D%C3%A9~._-"));
    CHECK(http_percent_decode(buf_str(&out), true, &arena, &back));
    CHECK_STR(back, text);
    CHECK(!http_percent_decode(STR("%00"), false, &arena, &back));
    CHECK(!http_percent_decode(STR("%4"), false, &arena, &back));
    CHECK(!http_percent_decode(STR("%"), false, &arena, &back));
    CHECK(!http_percent_decode(STR("%C3"), false, &arena, &back));
    CHECK(http_percent_decode(STR("a+b"), false, &arena, &back));
    CHECK_STR(back, STR("a+b"));
    buf_release(&out);
}

static void heads_are_written_and_nothing_is_injected(void)
{
    struct buf out;
    struct http_header header = {STR("ETag"), STR("\"7\"")};
    static const char *const bad[] = {"a\r\nX: y", "a\nb", "a\rb", "a\x01", "\x7F"};
    buf_init(&out, 4096);
    CHECK(http_write_head(&out, 200, &header, 1, HTTP_LENGTH, 12, true));
    CHECK_STR(buf_str(&out), STR("HTTP/1.1 200 OK\r\nETag: \"7\"\r\nContent-Length: 12\r\n\r\n"));
    buf_clear(&out);
    CHECK(http_write_head(&out, 204, NULL, 0, HTTP_NO_BODY, 0, false));
    CHECK_STR(buf_str(&out), STR("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"));
    buf_clear(&out);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        header.value = str_from(bad[i]);
        CHECK(!http_write_head(&out, 200, &header, 1, HTTP_LENGTH, 0, true));
        CHECK(!http_write_request_head(&out, STR("GET"), STR("/"), STR("a"), &header, 1, HTTP_NO_BODY, 0));
    }
    header.value = STR("a\0b");
    CHECK(!http_write_head(&out, 200, &header, 1, HTTP_LENGTH, 0, true));
    header = (struct http_header){STR("a b"), STR("")};
    CHECK(!http_write_head(&out, 200, &header, 1, HTTP_LENGTH, 0, true));
    CHECK_INT(out.len, 0);
    CHECK(!http_write_request_head(&out, STR("GET"), STR("/ x"), STR("a"), NULL, 0, HTTP_NO_BODY, 0));
    CHECK(!http_write_request_head(&out, STR("G T"), STR("/"), STR("a"), NULL, 0, HTTP_NO_BODY, 0));
    CHECK(!http_write_request_head(&out, STR("GET"), STR("/"), STR("a\r\n"), NULL, 0, HTTP_NO_BODY, 0));
    CHECK(http_write_request_head(&out, STR("POST"), STR("/x?y"), STR("a:1"), NULL, 0, HTTP_LENGTH, 3));
    CHECK_STR(buf_str(&out), STR("POST /x?y HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3\r\n\r\n"));
    buf_release(&out);
}

static void dates_and_chunks_are_written(void)
{
    char date[HTTP_DATE_SIZE], line[HTTP_CHUNK_HEAD];
    http_date(784111777, date);
    CHECK_TEXT(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    http_date(0, date);
    CHECK_TEXT(date, "Thu, 01 Jan 1970 00:00:00 GMT");
    CHECK_STR(((struct str){line, http_chunk_head(1, line)}), STR("1\r\n"));
    CHECK_STR(((struct str){line, http_chunk_head(16, line)}), STR("10\r\n"));
    CHECK_STR(((struct str){line, http_chunk_head(0xabc0, line)}), STR("abc0\r\n"));
    CHECK_STR(((struct str){line, http_chunk_head(SIZE_MAX, line)}), STR("ffffffffffffffff\r\n"));
}

static void security_headers_are_complete_H5(void)
{
    size_t count;
    const struct http_header *headers = http_security_headers(&count);
    struct str policy = http_header_find(headers, count, "content-security-policy");
    CHECK(str_starts(policy, STR("default-src 'none'; script-src 'self'")));
    CHECK(strstr(policy.ptr, "unsafe") == NULL && strstr(policy.ptr, "frame-ancestors 'none'") != NULL);
    CHECK_STR(http_header_find(headers, count, "x-content-type-options"), STR("nosniff"));
    CHECK_STR(http_header_find(headers, count, "referrer-policy"), STR("no-referrer"));
    CHECK_STR(http_header_find(headers, count, "cross-origin-opener-policy"), STR("same-origin"));
    CHECK_STR(http_header_find(headers, count, "cross-origin-resource-policy"), STR("same-origin"));
    CHECK_STR(headers[count - 1].value, STR("no-store"));
    for (size_t i = 0; i < count; i++) CHECK(http_header_valid(headers[i]));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(hosts_are_ours_or_misdirected_H2),
        TEST(a_service_behind_a_proxy_is_known_by_its_public_origin_H2_H3),
        TEST(default_ports_and_sockets_need_no_port_H2),
        TEST(other_origins_are_refused_for_every_method_H3),
        TEST(other_sites_may_link_to_us_and_nothing_more_H3),
        TEST(preflights_are_never_granted_H3),
        TEST(queries_are_decoded),
        TEST(percent_goes_there_and_back),
        TEST(heads_are_written_and_nothing_is_injected),
        TEST(dates_and_chunks_are_written),
        TEST(security_headers_are_complete_H5),
    };
    arena_init(&arena, 4096, 1 << 20);
    int rc = test_main("http_guard", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&arena);
    return rc;
}
