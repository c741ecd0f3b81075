// Framing: what is a message and what is refused (H1), each input cut at every byte; limits one below, at and one above.
#include "harness/test.h"
#include "http/http.h"

#include <stdlib.h>
#include <string.h>

struct outcome {
    int status; // 0: no refusal
    size_t count;
    bool whole; // nothing was left over
    char method[16], path[128], query[64], body[128];
};

static void keep(char *to, size_t size, struct str text)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;
    if (len) memcpy(to, text.ptr, len);
    to[len] = '\0';
}

// Feeds `bytes` in two pieces, the first of `cut` bytes.
static struct outcome feed(enum http_kind kind, const struct http_limits *limits, struct str bytes, size_t cut)
{
    struct outcome out = {.whole = true};
    struct arena arena;
    struct http_parser parser;
    arena_init(&arena, 4096, (size_t)16 << 20);
    http_parser_init(&parser, kind, limits, &arena);
    enum http_step step = HTTP_MORE;
    for (size_t at = 0; step != HTTP_BAD && (at < bytes.len || step == HTTP_HEAD);) {
        size_t used;
        step = http_parser_feed(&parser, str_slice(bytes, at, at < cut ? cut : bytes.len), &used);
        at += used;
        if (step != HTTP_DONE) continue;
        out.count++;
        keep(out.method, sizeof(out.method), parser.request.method);
        keep(out.path, sizeof(out.path), parser.request.path);
        keep(out.query, sizeof(out.query), parser.request.query);
        keep(out.body, sizeof(out.body), parser.request.body);
        arena_reset(&arena);
        http_parser_next(&parser);
    }
    out.whole = !parser.began;
    out.status = step == HTTP_BAD ? parser.status : 0;
    http_parser_release(&parser);
    arena_release(&arena);
    return out;
}

static struct outcome feed_every_way(enum http_kind kind, const struct http_limits *limits, struct str bytes)
{
    struct outcome whole = feed(kind, limits, bytes, bytes.len);
    size_t stride = bytes.len > 1024 ? bytes.len / 256 : 1;
    for (size_t cut = 0; cut < bytes.len; cut += cut + stride + 4 < bytes.len ? stride : 1) {
        struct outcome part = feed(kind, limits, bytes, cut);
        if (memcmp(&part, &whole, sizeof(part)) != 0)
            test_fail(__FILE__, __LINE__, "cut at %zu: status %d, count %zu instead of %d, %zu\n%.*s", cut, part.status,
                      part.count, whole.status, whole.count, STR_ARG(bytes));
    }
    return whole;
}

static struct outcome request(const char *text)
{
    return feed_every_way(HTTP_REQUESTS, &http_limits_default, str_from(text));
}

#define HOST "Host: localhost:80\r\n"

static void good_requests_are_read(void)
{
    static const struct {
        const char *text, *method, *path, *query, *body;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", "GET", "/", "", ""},
        {"GET / HTTP/1.0\r\n" HOST "\r\n", "GET", "/", "", ""},
        {"GET /a/b/ HTTP/1.1\r\n" HOST "\r\n", "GET", "/a/b/", "", ""},
        {"GET /a?x=1&y=%20 HTTP/1.1\r\n" HOST "\r\n", "GET", "/a", "x=1&y=%20", ""},
        {"GET /%C3%A9%20x HTTP/1.1\r\n" HOST "\r\n", "GET", "/\xC3\xA9 x", "", ""},
        {"GET http://localhost:80/a HTTP/1.1\r\n" HOST "\r\n", "GET", "/a", "", ""},
        {"HEAD /x HTTP/1.1\r\n" HOST "\r\n", "HEAD", "/x", "", ""},
        {"DELETE /x HTTP/1.1\r\nhOsT: a\r\n\r\n", "DELETE", "/x", "", ""},
        {"GET /...x HTTP/1.1\r\nHost:\r\n\r\n", "GET", "/...x", "", ""},
        {"GET / HTTP/1.1\r\nHost: [::1]:9\r\nX:\r\nY: \t a b \t\r\n\r\n", "GET", "/", "", ""},
        {"POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "POST", "/x", "", "hello"},
        {"POST /x HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "POST", "/x", "", ""},
        {"POST /x HTTP/1.1\r\n" HOST "content-length:  00005 \r\n\r\nhello", "POST", "/x", "", "hello"},
        {"POST /x HTTP/1.1\r\n" HOST "\r\n", "POST", "/x", "", ""},
        {"PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "PUT", "/x", "",
         "hello"},
        {"PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "PUT", "/x", "", ""},
        {"PATCH /x HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nhel\r\n002\r\nlo\r\n0\r\nT: 1\r\n\r\n",
         "PATCH", "/x", "", "hello"},
        {"POST /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok", "POST", "/x", "", "ok"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct outcome out = request(cases[i].text);
        if (out.status || out.count != 1 || !out.whole)
            test_fail(__FILE__, __LINE__, "status %d, count %zu: %s", out.status, out.count, cases[i].text);
        CHECK_TEXT(out.method, cases[i].method);
        CHECK_TEXT(out.path, cases[i].path);
        CHECK_TEXT(out.query, cases[i].query);
        CHECK_TEXT(out.body, cases[i].body);
    }
}

struct refusal {
    int status;
    const char *text;
};

static void check_refusals(const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct outcome out = request(cases[i].text);
        if (out.status != cases[i].status || out.count)
            test_fail(__FILE__, __LINE__, "status %d (%zu messages) instead of %d: %s", out.status, out.count,
                      cases[i].status, cases[i].text);
    }
}

#define POST "POST / HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static void ambiguous_framing_is_refused_H1(void)
{
    static const struct refusal cases[] = {
        {400, POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"},
        {400, POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
        {400, POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"},
        {400, POST "Content-Length: 5, 5\r\n\r\nhello"},
        {400, POST "Content-Length: +5\r\n\r\nhello"},
        {400, POST "Content-Length: -5\r\n\r\nhello"},
        {400, POST "Content-Length: -0\r\n\r\n"},
        {400, POST "Content-Length: 0x5\r\n\r\nhello"},
        {400, POST "Content-Length: 5 5\r\n\r\nhello"},
        {400, POST "Content-Length: 5a\r\n\r\nhello"},
        {400, POST "Content-Length:\r\n\r\nhello"},
        {400, POST "Content-Length: 18446744073709551621\r\n\r\nhello"},
        {400, POST "Content-Length: 99999999999999999999999\r\n\r\nhello"},
        {400, POST "Content-Length : 5\r\n\r\nhello"},
        {501, POST "Transfer-Encoding: gzip\r\n\r\n"},
        {501, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
        {501, POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
        {501, POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
        {501, POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"},
        {501, POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"},
        {501, POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n"},
        {400, POST "Transfer-Encoding: \x0B"
                   "chunked\r\n\r\n0\r\n\r\n"},
        {400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"},
        {400, POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
        {400, POST " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, CHUNKED "FFFFFFFFFFFFFFFFF\r\n"},
        {400, CHUNKED "FFFFFFFFFFFFFFFF\r\n"},
        {400, CHUNKED "0x5\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "-5\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "+5\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "5 \r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED " 5\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED ";a=b\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "5\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "5;a\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "5;\x01\r\nhello\r\n0\r\n\r\n"},
        {400, CHUNKED "5\r\nhelloX\r\n0\r\n\r\n"},
        {400, CHUNKED "5\r\nhello\n0\r\n\r\n"},
        {400, CHUNKED "5\r\nhello0\r\n\r\n"},
        {400, CHUNKED "0\r\nbad trailer\r\n\r\n"},
        {400, CHUNKED "0\r\nX : y\r\n\r\n"},
        {400, CHUNKED "0\r\nX: y\n\r\n"},
    };
    check_refusals(cases, ARRAY_COUNT(cases));
}

static void malformed_heads_are_refused_H1(void)
{
    static const struct refusal cases[] = {
        {400, "GET /\r\n\r\n"},
        {400, "GET / HTTP/1.1\nHost: a\n\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
        {400, "GET / HTTP/1.1\rHost: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
        {400, "\r\nGET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, " GET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /  HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET\t/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "G(T / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / http/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.11\r\n" HOST "\r\n"},
        {505, "GET / HTTP/1.2\r\n" HOST "\r\n"},
        {505, "GET / HTTP/0.9\r\n" HOST "\r\n"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {501, "FOO / HTTP/1.1\r\n" HOST "\r\n"},
        {501, "get / HTTP/1.1\r\n" HOST "\r\n"},
        {501, "CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n"},
        {501, "TRACE / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.0\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:-1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: [zz]\r\n\r\n"},
        {400, "GET http://other/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://localhost:80 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://localhost:81/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://x@localhost:80/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET ftp://localhost:80/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a#b HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\xC3\xA9 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\"x HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a\\b HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET // HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a//b HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a/../b HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /.. HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /./a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%2e%2E/a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%2Fb HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%5cb HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%00b HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%0Ab HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%7Fb HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%C3 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%zz HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%2 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a?b=%g1 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X(y): a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\x01z\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\x7Fz\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "HTTP2-Settings: AAA\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 1\r\n\r\nx"},
    };
    check_refusals(cases, ARRAY_COUNT(cases));
    static const char with_nul[] = "GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
    CHECK_INT(feed_every_way(HTTP_REQUESTS, &http_limits_default, STR(with_nul)).status, 400);
    static const char nul_in_name[] = "GET / HTTP/1.1\r\n" HOST "X\0: ab\r\n\r\n";
    CHECK_INT(feed_every_way(HTTP_REQUESTS, &http_limits_default, STR(nul_in_name)).status, 400);
}

static void pipelined_requests_are_cut_where_they_end(void)
{
    struct outcome out = request("GET /1 HTTP/1.1\r\n" HOST "\r\n" POST "Content-Length: 3\r\n\r\nabc" CHUNKED
                                 "1\r\nx\r\n0\r\n\r\nGET /4 HTTP/1.1\r\n" HOST "\r\n");
    CHECK_INT(out.status, 0);
    CHECK_INT(out.count, 4);
    CHECK_TEXT(out.path, "/4");
    // What comes behind a body is the next request, and a bad one does not undo the one before.
    out = request(POST "Content-Length: 3\r\n\r\nabcX / HTTP/1.1\r\n" HOST "\r\n");
    CHECK_INT(out.count, 1);
    CHECK_INT(out.status, 501);
}

// A request line of `line` bytes, `count` headers of `header` bytes beside Host, a body of `body` bytes.
static struct str sized(size_t line, size_t count, size_t header, size_t body)
{
    static struct buf out;
    if (!out.ptr) buf_init(&out, (size_t)64 << 20);
    buf_clear(&out);
    buf_text(&out, "POST /");
    while (out.len < line - strlen(" HTTP/1.1")) buf_byte(&out, 'a');
    buf_text(&out, " HTTP/1.1\r\n" HOST);
    buf_printf(&out, "Content-Length: %zu\r\n", body);
    for (size_t i = 0; i < count; i++) {
        buf_text(&out, "X:");
        for (size_t k = 2; k < header; k++) buf_byte(&out, 'v');
        buf_text(&out, "\r\n");
    }
    buf_text(&out, "\r\n");
    for (size_t i = 0; i < body; i++) buf_byte(&out, 'b');
    CHECK(buf_ok(&out));
    return buf_str(&out);
}

static int status_of(const struct http_limits *limits, struct str bytes)
{
    return feed_every_way(HTTP_REQUESTS, limits, bytes).status;
}

static void limits_hold_one_below_at_and_one_above(void)
{
    const struct http_limits *d = &http_limits_default;
    CHECK_INT(status_of(d, sized(8191, 0, 0, 0)), 0);
    CHECK_INT(status_of(d, sized(8192, 0, 0, 0)), 0);
    CHECK_INT(status_of(d, sized(8193, 0, 0, 0)), 414);
    CHECK_INT(status_of(d, sized(8192 * 1000, 0, 0, 0)), 414);
    CHECK_INT(status_of(d, sized(40, 1, 8191, 0)), 0);
    CHECK_INT(status_of(d, sized(40, 1, 8192, 0)), 0);
    CHECK_INT(status_of(d, sized(40, 1, 8193, 0)), 431);
    CHECK_INT(status_of(d, sized(40, 61, 10, 0)), 0); // Host and Content-Length are two more
    CHECK_INT(status_of(d, sized(40, 62, 10, 0)), 0);
    CHECK_INT(status_of(d, sized(40, 63, 10, 0)), 431);
    // line + CRLF, Host, Content-Length and the empty line are 40 + 2 + 20 + 19 + 2; a header has two bytes more.
    CHECK_INT(status_of(d, sized(40, 2, (16384 - 83) / 2 - 2, 0)), 0);
    CHECK_INT(status_of(d, sized(41, 2, (16384 - 83) / 2 - 2, 0)), 0);
    CHECK_INT(status_of(d, sized(42, 2, (16384 - 83) / 2 - 2, 0)), 431);
    CHECK_INT(status_of(d, sized(40, 60, 8000, 0)), 431);
    CHECK_INT(status_of(d, sized(40, 0, 0, 1048575)), 0);
    CHECK_INT(status_of(d, sized(40, 0, 0, 1048576)), 0);
    CHECK_INT(status_of(d, sized(40, 0, 0, 1048577)), 413);
}

static void chunked_bodies_are_counted_while_they_are_read(void)
{
    struct http_limits limits = http_limits_default;
    limits.body_max = 6;
    CHECK_INT(status_of(&limits, STR(CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")), 0);
    CHECK_INT(status_of(&limits, STR(CHUNKED "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")), 0);
    CHECK_INT(status_of(&limits, STR(CHUNKED "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")), 413);
    CHECK_INT(status_of(&limits, STR(CHUNKED "7FFFFFFFFFFFFFFF\r\n")), 413);
    CHECK_INT(status_of(&limits, STR(POST "Content-Length: 999999999999999999\r\n\r\n")), 413);
}

static void chunk_extensions_and_trailers_have_limits_H1(void)
{
    struct buf text;
    for (size_t size = 255; size <= 257; size++) {
        buf_init(&text, 4096);
        buf_text(&text, CHUNKED "1;");
        for (size_t i = 1; i < size; i++) buf_byte(&text, 'e');
        buf_text(&text, "\r\nx\r\n0\r\n\r\n");
        CHECK_INT(status_of(&http_limits_default, buf_str(&text)), size <= 256 ? 0 : 400);
        buf_release(&text);
    }
    buf_init(&text, 1 << 20);
    buf_text(&text, CHUNKED "0\r\n");
    for (size_t i = 0; i < 4000; i++) buf_text(&text, "X: y\r\n");
    buf_text(&text, "\r\n");
    CHECK_INT(status_of(&http_limits_default, buf_str(&text)), 431);
    buf_release(&text);
}

// The moment between head and body: the caller learns method and path and says how large the body may be.
static void body_limit_can_be_set_once_the_path_is_known(void)
{
    static const char text[] = "POST /plans HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789";
    for (uint64_t max = 9; max <= 11; max++) {
        struct arena arena;
        struct http_parser parser;
        struct http_limits limits = http_limits_default;
        size_t used, more;
        limits.body_max = 5;
        arena_init(&arena, 4096, 1 << 20);
        http_parser_init(&parser, HTTP_REQUESTS, &limits, &arena);
        CHECK_INT(http_parser_feed(&parser, STR(text), &used), HTTP_HEAD);
        CHECK_STR(parser.request.path, STR("/plans"));
        parser.body_max = max;
        enum http_step step = http_parser_feed(&parser, str_slice(STR(text), used, sizeof(text) - 1), &more);
        CHECK_INT(step, max < 10 ? HTTP_BAD : HTTP_DONE);
        if (step == HTTP_DONE) CHECK_STR(parser.request.body, STR("0123456789"));
        http_parser_next(&parser);
        CHECK_INT(parser.body_max, 5);
        http_parser_release(&parser);
        arena_release(&arena);
    }
}

static void memory_that_runs_out_is_a_status(void)
{
    static const char text[] = "GET /%41?x HTTP/1.1\r\n" HOST "A: 1\r\nB: 2\r\n\r\n";
    for (int64_t n = 1; n < 20; n++) {
        struct arena arena;
        struct http_parser parser;
        size_t used;
        arena_init(&arena, 4096, 1 << 20);
        arena.fail_in = n;
        arena.fail_sticky = true;
        http_parser_init(&parser, HTTP_REQUESTS, &http_limits_default, &arena);
        enum http_step step = http_parser_feed(&parser, STR(text), &used);
        if (step == HTTP_BAD) CHECK_INT(parser.status, 500);
        http_parser_release(&parser);
        arena_release(&arena);
        if (step == HTTP_BAD) continue;
        CHECK_INT(step, HTTP_HEAD);
        CHECK_INT(n, 4); // marks, headers, the decoded path
        return;
    }
    test_fail(__FILE__, __LINE__, "never without a failure");
}

static struct outcome answer(const char *text)
{
    return feed_every_way(HTTP_RESPONSES, &http_limits_default, str_from(text));
}

static void answers_are_read(void)
{
    struct outcome out = answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    CHECK(out.count == 1 && !out.status);
    CHECK_TEXT(out.body, "ok");
    out =
        answer("HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 201 \r\nContent-Length: 0\r\n\r\nHTTP/1.1 204 No\r\n\r\n"
               "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"
               "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
    CHECK(out.count == 4 && !out.status);
    CHECK_TEXT(out.body, "ab");
}

static void bad_answers_are_refused(void)
{
    static const char *const cases[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 -20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\nX: y\n\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        "\x16\x03\x01\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct outcome out = answer(cases[i]);
        if (!out.status || out.count) test_fail(__FILE__, __LINE__, "taken: %s", cases[i]);
    }
}

static void answers_may_end_with_the_connection(void)
{
    struct arena arena;
    struct http_parser parser;
    size_t used;
    struct str text = STR("HTTP/1.1 200 OK\r\n\r\nall of it"), rest;
    arena_init(&arena, 4096, 1 << 20);
    http_parser_init(&parser, HTTP_RESPONSES, &http_limits_default, &arena);
    CHECK_INT(http_parser_feed(&parser, text, &used), HTTP_HEAD);
    CHECK(!parser.answer.keep_alive);
    rest = str_slice(text, used, text.len);
    CHECK_INT(http_parser_feed(&parser, str_slice(rest, 0, 4), &used), HTTP_MORE);
    CHECK_STR(http_parser_drain(&parser), STR("all "));
    CHECK_INT(http_parser_feed(&parser, str_slice(rest, 4, rest.len), &used), HTTP_MORE);
    CHECK_STR(http_parser_drain(&parser), STR("of it"));
    CHECK_INT(parser.body_received, 9);
    CHECK_INT(http_parser_end(&parser), HTTP_DONE);
    http_parser_next(&parser);
    // Any other end is a truncation, also within a counted body.
    CHECK_INT(http_parser_feed(&parser, STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), &used), HTTP_HEAD);
    CHECK_INT(http_parser_feed(&parser, STR("ab"), &used), HTTP_MORE);
    CHECK_INT(http_parser_end(&parser), HTTP_BAD);
    http_parser_next(&parser);
    parser.headless = true;
    CHECK_INT(http_parser_feed(&parser, STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), &used), HTTP_HEAD);
    CHECK(parser.answer.keep_alive);
    CHECK_INT(http_parser_feed(&parser, STR(""), &used), HTTP_DONE);
    http_parser_release(&parser);
    arena_release(&arena);
}

static void connection_headers_decide_on_another_request(void)
{
    static const struct {
        const char *text;
        bool keep_alive;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", true},
        {"GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n\r\n", true},
        {"GET / HTTP/1.1\r\n" HOST "Connection: x, CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: x\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n" HOST "\r\n", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena;
        struct http_parser parser;
        size_t used;
        arena_init(&arena, 4096, 1 << 20);
        http_parser_init(&parser, HTTP_REQUESTS, &http_limits_default, &arena);
        CHECK_INT(http_parser_feed(&parser, str_from(cases[i].text), &used), HTTP_HEAD);
        CHECK_INT(parser.request.keep_alive, cases[i].keep_alive);
        http_parser_release(&parser);
        arena_release(&arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(good_requests_are_read),
        TEST(ambiguous_framing_is_refused_H1),
        TEST(malformed_heads_are_refused_H1),
        TEST(pipelined_requests_are_cut_where_they_end),
        TEST(limits_hold_one_below_at_and_one_above),
        TEST(chunked_bodies_are_counted_while_they_are_read),
        TEST(chunk_extensions_and_trailers_have_limits_H1),
        TEST(body_limit_can_be_set_once_the_path_is_known),
        TEST(memory_that_runs_out_is_a_status),
        TEST(answers_are_read),
        TEST(bad_answers_are_refused),
        TEST(answers_may_end_with_the_connection),
        TEST(connection_headers_decide_on_another_request),
    };
    return test_main("http_parse", tests, ARRAY_COUNT(tests), argc, argv);
}
