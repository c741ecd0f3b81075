// The meaning of a head: first line, headers, and how the body is framed.
#include "http/inside.h"

enum { LENGTH_DIGITS_MAX = 18 };

static bool take_version(struct http_parser *parser, struct str version, int *status)
{
    *status = 400;
    bool shaped = version.len == 8 && str_starts(version, STR("HTTP/")) && version.ptr[5] >= '0' &&
                  version.ptr[5] <= '9' && version.ptr[6] == '.' && version.ptr[7] >= '0' && version.ptr[7] <= '9';
    if (!shaped) return false;
    *status = 505;
    if (version.ptr[5] != '1' || version.ptr[7] > '1') return false;
    parser->version_10 = version.ptr[7] == '0';
    return true;
}

static bool is_known_method(struct str method)
{
#define X(name)                                                                                                        \
    if (str_eq(method, STR(#name))) return true;
    HTTP_METHOD_LIST(X)
#undef X
    return false;
}

static enum http_step request_line(struct http_parser *parser, struct str line)
{
    struct str rest, version;
    int status;
    struct str method = str_cut(line, ' ', &rest);
    struct str target = str_cut(rest, ' ', &version);
    if (method.len == 0 || !http_all(method, CHAR_TOKEN) || target.len == 0)
        return http_bad(parser, 400, "malformed request line");
    if (!take_version(parser, version, &status)) return http_bad(parser, status, "no version that is spoken here");
    if (!is_known_method(method)) return http_bad(parser, 501, "unknown method");
    parser->method_len = method.len;
    parser->target_at = method.len + 1;
    parser->target_len = target.len;
    return HTTP_DONE;
}

static enum http_step status_line(struct http_parser *parser, struct str line)
{
    struct str rest, reason;
    int status;
    int64_t number;
    struct str version = str_cut(line, ' ', &rest);
    struct str code = str_cut(rest, ' ', &reason);
    if (!take_version(parser, version, &status)) return http_bad(parser, status, "no version that is spoken here");
    if (code.len != 3 || code.ptr[0] < '1' || code.ptr[0] > '9' || !str_int64(code, &number) || number > 599 ||
        !http_all(reason, CHAR_VALUE))
        return http_bad(parser, 400, "malformed status line");
    if (number == 101) return http_bad(parser, 400, "the server changes the protocol");
    parser->answer.status = (int)number;
    return HTTP_DONE;
}

enum http_step http_first_line(struct http_parser *parser, struct str line)
{
    return parser->kind == HTTP_REQUESTS ? request_line(parser, line) : status_line(parser, line);
}

static struct str without_blanks(struct str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) s = str_slice(s, 1, s.len);
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) s.len--;
    return s;
}

static enum http_step take_length(struct http_parser *parser, struct str value)
{
    int64_t length;
    if (parser->has_length) return http_bad(parser, 400, "more than one Content-Length");
    if (value.len == 0 || value.len > LENGTH_DIGITS_MAX || value.ptr[0] == '-' || !str_int64(value, &length))
        return http_bad(parser, 400, "malformed Content-Length");
    parser->has_length = true;
    parser->left = (uint64_t)length;
    return HTTP_DONE;
}

static enum http_step take_coding(struct http_parser *parser, struct str value)
{
    if (parser->chunked) return http_bad(parser, 400, "more than one Transfer-Encoding");
    if (parser->version_10) return http_bad(parser, 400, "Transfer-Encoding in HTTP/1.0");
    if (!str_is(value, "chunked")) return http_bad(parser, 501, "a transfer coding other than chunked");
    parser->chunked = true;
    return HTTP_DONE;
}

static enum http_step take_host(struct http_parser *parser, struct str value)
{
    struct str host, port;
    if (parser->has_host) return http_bad(parser, 400, "more than one Host");
    if (value.len && !http_host_split(value, &host, &port)) return http_bad(parser, 400, "malformed Host");
    parser->has_host = true;
    return HTTP_DONE;
}

// Headers that decide framing. The first letter keeps the comparisons away from all others.
static enum http_step take_framing(struct http_parser *parser, struct str name, struct str value)
{
    bool request = parser->kind == HTTP_REQUESTS;
    switch (char_lower(name.ptr[0])) {
    case 'c':
        return http_name_is(name, "content-length") ? take_length(parser, value) : HTTP_DONE;
    case 't':
        return http_name_is(name, "transfer-encoding") ? take_coding(parser, value) : HTTP_DONE;
    case 'h':
        if (request && http_name_is(name, "http2-settings")) return http_bad(parser, 400, "an upgrade to h2c");
        return request && http_name_is(name, "host") ? take_host(parser, value) : HTTP_DONE;
    case 'u':
        if (request && http_name_is(name, "upgrade") && http_has_token(value, "h2c"))
            return http_bad(parser, 400, "an upgrade to h2c");
        return HTTP_DONE;
    default:
        return HTTP_DONE;
    }
}

enum http_step http_header_line(struct http_parser *parser, struct str line, size_t at)
{
    struct str rest;
    struct str name = str_cut(line, ':', &rest);
    if (parser->mark_count == parser->limits.count_max) return http_bad(parser, 431, "too many headers");
    if (name.len == line.len || name.len == 0 || !http_all(name, CHAR_TOKEN))
        return http_bad(parser, 400, "malformed header");
    struct str value = without_blanks(rest);
    if (!http_all(value, CHAR_VALUE)) return http_bad(parser, 400, "malformed header");
    if (take_framing(parser, name, value) == HTTP_BAD) return HTTP_BAD;
    if (!ARENA_ROOM(parser->arena, parser->marks, parser->mark_count, &parser->mark_capacity))
        return http_bad(parser, 500, "out of memory");
    parser->marks[parser->mark_count++] = (struct http_mark){
        (uint32_t)at, (uint32_t)name.len, (uint32_t)(at + (size_t)(value.ptr - line.ptr)), (uint32_t)value.len};
    return HTTP_DONE;
}

static const struct http_header *make_headers(struct http_parser *parser)
{
    struct http_header *headers = ARENA_ARRAY(parser->arena, parser->mark_count, struct http_header);
    if (!headers) return NULL;
    for (size_t i = 0; i < parser->mark_count; i++) {
        struct http_mark mark = parser->marks[i];
        headers[i].name = (struct str){parser->head.ptr + mark.name, mark.name_len};
        headers[i].value = (struct str){parser->head.ptr + mark.value, mark.value_len};
    }
    return headers;
}

// Any of the Connection headers says so.
static bool says_close(const struct http_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_name_is(headers[i].name, "connection") && http_has_token(headers[i].value, "close")) return true;
    return false;
}

static enum http_step request_done(struct http_parser *parser, const struct http_header *headers, bool keep_alive)
{
    struct http_request *request = &parser->request;
    bool nomem = false;
    *request = (struct http_request){.headers = headers,
                                     .header_count = parser->mark_count,
                                     .keep_alive = keep_alive,
                                     .version_10 = parser->version_10,
                                     .method = {parser->head.ptr, parser->method_len}};
    if (!parser->has_host) return http_bad(parser, 400, "no Host");
    request->host = http_find(request, "host");
    struct str target = {parser->head.ptr + parser->target_at, parser->target_len};
    if (!http_target(parser, target, &nomem))
        return http_bad(parser, nomem ? 500 : 400, nomem ? "out of memory" : "malformed request target");
    struct str expect = http_find(request, "expect");
    if (expect.len == 0 || parser->version_10) return HTTP_DONE;
    if (!http_name_is(expect, "100-continue")) return http_bad(parser, 417, "an expectation that nobody can meet");
    request->expect_continue = parser->has_length || parser->chunked;
    return HTTP_DONE;
}

enum http_step http_head_done(struct http_parser *parser)
{
    if (parser->has_length && parser->chunked) return http_bad(parser, 400, "Content-Length beside Transfer-Encoding");
    const struct http_header *headers = make_headers(parser);
    if (!headers) return http_bad(parser, 500, "out of memory");
    bool keep_alive = !parser->version_10 && !says_close(headers, parser->mark_count);
    if (parser->kind == HTTP_REQUESTS) return request_done(parser, headers, keep_alive);
    bool framed = parser->has_length || parser->chunked || parser->headless || parser->answer.status == 204 ||
                  parser->answer.status == 304;
    parser->answer.headers = headers;
    parser->answer.header_count = parser->mark_count;
    parser->answer.keep_alive = keep_alive && framed;
    return HTTP_DONE;
}
