// Any bytes as a connection: requests, then the same bytes as answers. Cut anywhere, they give the same messages and the same
// refusal; what is accepted keeps its promises; what is written is read back.
#include "http/http.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGES_MAX = 64 };

// What one reading of the input came to.
struct reading {
    uint64_t hash;
    int status;
    size_t count;
};

static void add(struct reading *reading, struct str text)
{
    reading->hash = (reading->hash ^ str_hash(text)) * 0x9E3779B97F4A7C15u;
}

static void check_request(const struct http_request *request)
{
    INVARIANT(request->path.len && request->path.ptr[0] == '/');
    INVARIANT(str_utf8(request->path) && str_find(request->path, '\0', 0) == request->path.len);
    INVARIANT(request->header_count <= http_limits_default.count_max);
    for (size_t i = 0; i < request->header_count; i++) INVARIANT(http_header_valid(request->headers[i]));
}

static void note(struct reading *reading, const struct http_parser *parser)
{
    const struct http_request *request = &parser->request;
    bool requests = parser->kind == HTTP_REQUESTS;
    if (requests) check_request(request);
    const struct http_header *headers = requests ? request->headers : parser->answer.headers;
    size_t count = requests ? request->header_count : parser->answer.header_count;
    add(reading, request->method);
    add(reading, request->path);
    add(reading, request->query);
    for (size_t i = 0; i < count; i++) {
        add(reading, headers[i].name);
        add(reading, headers[i].value);
    }
    add(reading, request->body);
    INVARIANT(request->body.len == parser->body_received && parser->body_received <= parser->body_max);
    reading->count++;
}

static struct reading read_all(enum http_kind kind, struct str bytes, size_t piece)
{
    struct reading reading = {0};
    struct arena arena;
    struct http_parser parser;
    arena_init(&arena, 4096, (size_t)16 << 20);
    http_parser_init(&parser, kind, &http_limits_default, &arena);
    enum http_step step = HTTP_MORE;
    for (size_t at = 0; step != HTTP_BAD && reading.count < MESSAGES_MAX && (at < bytes.len || step == HTTP_HEAD);) {
        size_t used;
        step = http_parser_feed(&parser, str_slice(bytes, at, at + piece), &used);
        at += used;
        if (step != HTTP_DONE) continue;
        note(&reading, &parser);
        arena_reset(&arena);
        http_parser_next(&parser);
    }
    if (step == HTTP_BAD) {
        INVARIANT(parser.status >= 400 && parser.reason);
        reading.status = parser.status;
    }
    http_parser_release(&parser);
    arena_release(&arena);
    return reading;
}

// The body written as chunks of `piece` comes back.
static void check_chunks(struct str bytes, size_t piece)
{
    struct buf out;
    struct arena arena;
    struct http_parser parser;
    size_t used;
    buf_init(&out, (size_t)16 << 20);
    arena_init(&arena, 4096, (size_t)1 << 20);
    http_parser_init(&parser, HTTP_RESPONSES, &http_limits_default, &arena);
    INVARIANT(http_write_head(&out, 200, NULL, 0, HTTP_CHUNKED, 0, true));
    for (size_t at = 0; at < bytes.len; at += piece) {
        char line[HTTP_CHUNK_HEAD];
        struct str chunk = str_slice(bytes, at, at + piece);
        buf_add(&out, (struct str){line, http_chunk_head(chunk.len, line)});
        buf_add(&out, chunk);
        buf_text(&out, "\r\n");
    }
    buf_text(&out, HTTP_LAST_CHUNK);
    INVARIANT(buf_ok(&out) && http_parser_feed(&parser, buf_str(&out), &used) == HTTP_HEAD);
    INVARIANT(http_parser_feed(&parser, str_slice(buf_str(&out), used, out.len), &used) == HTTP_DONE);
    INVARIANT(str_eq(parser.answer.body, bytes));
    http_parser_release(&parser);
    arena_release(&arena);
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    static const size_t pieces[] = {1, 2, 7, 64};
    for (int kind = HTTP_REQUESTS; kind <= HTTP_RESPONSES; kind++) {
        struct reading whole = read_all((enum http_kind)kind, bytes, size ? size : 1);
        for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
            struct reading cut = read_all((enum http_kind)kind, bytes, pieces[i]);
            INVARIANT(cut.hash == whole.hash && cut.status == whole.status && cut.count == whole.count);
        }
    }
    if (size <= http_limits_default.body_max) check_chunks(bytes, 1 + size / 3);
    return 0;
}
