// Heads and chunks as bytes.
#include "http/inside.h"

#include "base/civil.h"

#include <string.h>

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {100, "Continue"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {423, "Locked"},
        {425, "Too Early"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++)
        if (reasons[i].status == status) return reasons[i].text;
    return "Status";
}

bool http_header_valid(struct http_header header)
{
    return header.name.len && http_all(header.name, CHAR_TOKEN) && http_all(header.value, CHAR_VALUE);
}

static bool all_valid(const struct http_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!http_header_valid(headers[i])) return false;
    return true;
}

static void write_headers(struct buf *out, const struct http_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_add(out, headers[i].name);
        buf_add(out, STR(": "));
        buf_add(out, headers[i].value);
        buf_add(out, STR("\r\n"));
    }
}

static void write_framing(struct buf *out, enum http_framing framing, uint64_t length)
{
    if (framing == HTTP_CHUNKED) buf_add(out, STR("Transfer-Encoding: chunked\r\n"));
    if (framing != HTTP_LENGTH) return;
    buf_add(out, STR("Content-Length: "));
    buf_int(out, (int64_t)length);
    buf_add(out, STR("\r\n"));
}

bool http_write_head(struct buf *out, int status, const struct http_header *headers, size_t count,
                     enum http_framing framing, uint64_t length, bool keep_alive)
{
    INVARIANT(status >= 100 && status <= 599 && length <= INT64_MAX);
    if (!all_valid(headers, count)) return false;
    buf_add(out, STR("HTTP/1.1 "));
    buf_int(out, status);
    buf_byte(out, ' ');
    buf_text(out, http_reason(status));
    buf_add(out, STR("\r\n"));
    write_headers(out, headers, count);
    write_framing(out, framing, length);
    if (!keep_alive || framing == HTTP_UNTIL_CLOSE) buf_add(out, STR("Connection: close\r\n"));
    buf_add(out, STR("\r\n"));
    return true;
}

bool http_write_request_head(struct buf *out, struct str method, struct str target, struct str host,
                             const struct http_header *headers, size_t count, enum http_framing framing,
                             uint64_t length)
{
    INVARIANT(length <= INT64_MAX && framing != HTTP_UNTIL_CLOSE);
    bool fits = method.len && http_all(method, CHAR_TOKEN) && target.len && target.ptr[0] == '/' &&
                http_all(target, CHAR_TARGET) && http_all(host, CHAR_VALUE) && all_valid(headers, count);
    if (!fits) return false;
    buf_add(out, method);
    buf_byte(out, ' ');
    buf_add(out, target);
    buf_add(out, STR(" HTTP/1.1\r\nHost: "));
    buf_add(out, host);
    buf_add(out, STR("\r\n"));
    write_headers(out, headers, count);
    write_framing(out, framing, length);
    buf_add(out, STR("\r\n"));
    return true;
}

size_t http_chunk_head(size_t size, char out[HTTP_CHUNK_HEAD])
{
    static const char digits[] = "0123456789abcdef";
    INVARIANT(size > 0); // which would be the end
    size_t len = 1;
    while (len < 2 * sizeof(size) && size >> 4 * len) len++;
    for (size_t i = 0; i < len; i++) out[i] = digits[size >> 4 * (len - 1 - i) & 15];
    out[len++] = '\r';
    out[len++] = '\n';
    return len;
}

void http_date(int64_t seconds, char out[HTTP_DATE_SIZE])
{
    static const char days[] = "ThuFriSatSunMonTueWed"; // 1970 began on a Thursday
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char iso[CIVIL_SIZE]; // "2026-02-11T17:00:00.000Z"
    INVARIANT(seconds >= 0);
    civil_format(seconds * 1000, iso);
    memcpy(out, "Sun, 06 Nov 1994 08:49:37 GMT", HTTP_DATE_SIZE);
    memcpy(out, days + seconds / 86400 % 7 * 3, 3);
    memcpy(out + 5, iso + 8, 2);
    memcpy(out + 8, months + ((iso[5] - '0') * 10 + (iso[6] - '0') - 1) * 3, 3);
    memcpy(out + 12, iso, 4);
    memcpy(out + 17, iso + 11, 8);
}
