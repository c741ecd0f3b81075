// The machine that cuts bytes into messages. It looks at a line when its LF has come, and at limits before content: so the
// outcome is the same wherever the input was cut.
#include "http/inside.h"

#include <string.h>

enum state {
    FIRST_LINE,
    HEADER_LINE,
    HEAD_READY,
    BODY_LENGTH,
    BODY_CLOSE,
    CHUNK_SIZE,
    CHUNK_DATA,
    CHUNK_END,
    TRAILER,
    ENDED
};

enum {
    CHUNK_DIGITS_MAX = 16,
    CHUNK_EXTENSION_MAX = 256,
    KEEP_MAX = 64 * 1024, // memory of a buf that the next message may reuse
};

const struct http_limits http_limits_default = {
    .line_max = 8 * 1024,
    .head_max = 16 * 1024,
    .header_max = 8 * 1024,
    .count_max = 64,
    .body_max = 1024 * 1024,
};

enum http_step http_bad(struct http_parser *parser, int status, const char *reason)
{
    parser->status = status;
    parser->reason = reason;
    parser->state = ENDED;
    return HTTP_BAD;
}

static void start_head(struct http_parser *parser)
{
    parser->state = FIRST_LINE;
    parser->line_at = parser->head_size = 0;
    parser->marks = NULL;
    parser->mark_count = parser->mark_capacity = 0;
    parser->left = 0;
    parser->has_length = parser->chunked = parser->has_host = parser->version_10 = false;
    buf_clear(&parser->head);
    buf_clear(&parser->line);
}

void http_parser_init(struct http_parser *parser, enum http_kind kind, const struct http_limits *limits,
                      struct arena *arena)
{
    *parser = (struct http_parser){.kind = kind, .limits = *limits, .body_max = limits->body_max, .arena = arena};
    // Limits are checked before bytes are kept; the ceilings of the bufs are the belt to those braces.
    buf_init(&parser->head, limits->head_max + limits->line_max + limits->header_max + 16);
    buf_init(&parser->line, limits->header_max + CHUNK_DIGITS_MAX + CHUNK_EXTENSION_MAX + 16);
    buf_init(&parser->body, SIZE_MAX / 4);
    start_head(parser);
}

void http_parser_release(struct http_parser *parser)
{
    buf_release(&parser->head);
    buf_release(&parser->line);
    buf_release(&parser->body);
}

void http_parser_next(struct http_parser *parser)
{
    if (parser->body.capacity > KEEP_MAX) buf_release(&parser->body);
    buf_clear(&parser->body);
    start_head(parser);
    parser->status = 0;
    parser->reason = NULL;
    parser->body_max = parser->limits.body_max;
    parser->body_received = 0;
    parser->began = parser->headless = false;
    parser->request = (struct http_request){0};
    parser->answer = (struct http_response_head){0};
}

struct line_rule {
    struct buf *into;
    size_t at;  // where the line begins in it
    size_t max; // without CRLF
    int status; // when it is longer
    bool first;
};

// Collects one line. HTTP_DONE: *line is it, without CRLF; HTTP_MORE: it goes on.
static enum http_step take_line(struct http_parser *parser, const struct line_rule *rule, struct str *bytes,
                                struct str *line)
{
    const char *end = bytes->len ? memchr(bytes->ptr, '\n', bytes->len) : NULL;
    size_t count = end ? (size_t)(end - bytes->ptr) + 1 : bytes->len;
    size_t size = rule->into->len - rule->at + count;
    if (size >= rule->max + (end ? 3 : 2)) return http_bad(parser, rule->status, "a line is too long");
    if (rule->into == &parser->head || parser->state == TRAILER) {
        parser->head_size += count;
        if (parser->head_size > parser->limits.head_max && (end || !rule->first))
            return http_bad(parser, 431, "the head is too large");
    }
    buf_add(rule->into, (struct str){bytes->ptr, count});
    *bytes = str_slice(*bytes, count, bytes->len);
    if (!buf_ok(rule->into)) return http_bad(parser, 500, "out of memory");
    if (!end) return HTTP_MORE;
    if (size < 2 || rule->into->ptr[rule->into->len - 2] != '\r')
        return http_bad(parser, 400, "a line ends without CR");
    *line = (struct str){rule->into->ptr + rule->at, size - 2};
    return HTTP_DONE;
}

static enum http_step first_line(struct http_parser *parser, struct str *bytes)
{
    struct str line;
    struct line_rule rule = {&parser->head, 0, parser->limits.line_max, 414, true};
    enum http_step step = take_line(parser, &rule, bytes, &line);
    if (step != HTTP_DONE) return step;
    step = http_first_line(parser, line);
    if (step == HTTP_BAD) return step;
    parser->line_at = parser->head.len;
    parser->state = HEADER_LINE;
    return HTTP_DONE;
}

// Interim answers are not reported.
static bool is_interim(const struct http_parser *parser)
{
    return parser->kind == HTTP_RESPONSES && parser->answer.status < 200;
}

static enum http_step header_line(struct http_parser *parser, struct str *bytes)
{
    struct str line;
    struct line_rule rule = {&parser->head, parser->line_at, parser->limits.header_max, 431, false};
    enum http_step step = take_line(parser, &rule, bytes, &line);
    if (step != HTTP_DONE) return step;
    if (line.len) {
        step = http_header_line(parser, line, parser->line_at);
        parser->line_at = parser->head.len;
        return step;
    }
    step = http_head_done(parser);
    if (step == HTTP_BAD) return step;
    if (is_interim(parser)) {
        start_head(parser);
        return HTTP_DONE;
    }
    parser->state = HEAD_READY;
    return HTTP_HEAD;
}

static enum http_step end_message(struct http_parser *parser)
{
    parser->state = ENDED;
    parser->request.body = parser->answer.body = buf_str(&parser->body);
    return HTTP_DONE;
}

static bool without_body(const struct http_parser *parser)
{
    if (parser->kind == HTTP_REQUESTS) return !parser->has_length && !parser->chunked;
    return parser->headless || parser->answer.status == 204 || parser->answer.status == 304;
}

static enum http_step begin_body(struct http_parser *parser)
{
    if (without_body(parser)) return end_message(parser);
    if (parser->chunked) {
        parser->state = CHUNK_SIZE;
    } else if (parser->has_length) {
        if (parser->left > parser->body_max) return http_bad(parser, 413, "the body is too large");
        parser->state = BODY_LENGTH;
        if (parser->left == 0) return end_message(parser);
    } else {
        parser->state = BODY_CLOSE;
    }
    return HTTP_DONE;
}

static enum http_step keep(struct http_parser *parser, struct str *bytes, size_t count)
{
    if (count > parser->body_max - parser->body_received) return http_bad(parser, 413, "the body is too large");
    buf_add(&parser->body, (struct str){bytes->ptr, count});
    if (!buf_ok(&parser->body)) return http_bad(parser, 500, "out of memory");
    parser->body_received += count;
    *bytes = str_slice(*bytes, count, bytes->len);
    return HTTP_DONE;
}

// Up to `left` bytes. HTTP_DONE when all of them are there.
static enum http_step keep_left(struct http_parser *parser, struct str *bytes)
{
    size_t count = parser->left < bytes->len ? (size_t)parser->left : bytes->len;
    if (keep(parser, bytes, count) == HTTP_BAD) return HTTP_BAD;
    parser->left -= count;
    return parser->left ? HTTP_MORE : HTTP_DONE;
}

static bool read_chunk_size(struct str line, uint64_t *size)
{
    size_t digits = 0;
    uint64_t value = 0;
    while (digits < line.len && char_hex(line.ptr[digits]) >= 0) {
        if (digits == CHUNK_DIGITS_MAX) return false;
        value = value << 4 | (uint64_t)char_hex(line.ptr[digits++]);
    }
    struct str extension = str_slice(line, digits, line.len);
    *size = value;
    if (digits == 0 || value > INT64_MAX) return false;
    if (extension.len == 0) return true;
    return extension.ptr[0] == ';' && extension.len <= CHUNK_EXTENSION_MAX && http_all(extension, CHAR_VALUE);
}

static enum http_step chunk_size(struct http_parser *parser, struct str *bytes)
{
    struct str line;
    struct line_rule rule = {&parser->line, 0, CHUNK_DIGITS_MAX + CHUNK_EXTENSION_MAX, 400, false};
    enum http_step step = take_line(parser, &rule, bytes, &line);
    if (step != HTTP_DONE) return step;
    if (!read_chunk_size(line, &parser->left)) return http_bad(parser, 400, "malformed chunk size");
    buf_clear(&parser->line);
    if (parser->left > parser->body_max - parser->body_received) return http_bad(parser, 413, "the body is too large");
    parser->state = parser->left ? CHUNK_DATA : TRAILER;
    parser->head_size = 0;
    return HTTP_DONE;
}

static enum http_step chunk_data(struct http_parser *parser, struct str *bytes)
{
    enum http_step step = keep_left(parser, bytes);
    if (step == HTTP_DONE) parser->state = CHUNK_END;
    return step;
}

static enum http_step chunk_end(struct http_parser *parser, struct str *bytes)
{
    struct str line;
    struct line_rule rule = {&parser->line, 0, 0, 400, false};
    enum http_step step = take_line(parser, &rule, bytes, &line);
    if (step != HTTP_DONE) return step;
    buf_clear(&parser->line);
    parser->state = CHUNK_SIZE;
    return HTTP_DONE;
}

// Trailers must be well formed and are not kept: nobody may smuggle a header in behind the checks.
static enum http_step trailer(struct http_parser *parser, struct str *bytes)
{
    struct str line;
    struct line_rule rule = {&parser->line, 0, parser->limits.header_max, 431, false};
    enum http_step step = take_line(parser, &rule, bytes, &line);
    if (step != HTTP_DONE) return step;
    if (line.len == 0) return end_message(parser);
    struct str value;
    struct str name = str_cut(line, ':', &value);
    if (name.len == 0 || name.len == line.len || !http_all(name, CHAR_TOKEN) || !http_all(value, CHAR_VALUE))
        return http_bad(parser, 400, "malformed trailer");
    buf_clear(&parser->line);
    return HTTP_DONE;
}

static enum http_step advance(struct http_parser *parser, struct str *bytes)
{
    enum http_step step;
    switch ((enum state)parser->state) {
    case FIRST_LINE:
        return first_line(parser, bytes);
    case HEADER_LINE:
        return header_line(parser, bytes);
    case HEAD_READY:
        return begin_body(parser);
    case BODY_LENGTH:
        step = keep_left(parser, bytes);
        return step == HTTP_DONE ? end_message(parser) : step;
    case BODY_CLOSE:
        step = keep(parser, bytes, bytes->len);
        return step == HTTP_DONE ? HTTP_MORE : step;
    case CHUNK_SIZE:
        return chunk_size(parser, bytes);
    case CHUNK_DATA:
        return chunk_data(parser, bytes);
    case CHUNK_END:
        return chunk_end(parser, bytes);
    case TRAILER:
        return trailer(parser, bytes);
    case ENDED:
        break;
    }
    INVARIANT(parser->state != ENDED);
    return HTTP_BAD;
}

enum http_step http_parser_feed(struct http_parser *parser, struct str bytes, size_t *used)
{
    struct str rest = bytes;
    enum http_step step;
    if (bytes.len) parser->began = true;
    do step = advance(parser, &rest);
    while (step == HTTP_DONE && parser->state != ENDED);
    *used = bytes.len - rest.len;
    return step;
}

enum http_step http_parser_end(struct http_parser *parser)
{
    if (parser->state == BODY_CLOSE) return end_message(parser);
    if (parser->state == HEAD_READY && without_body(parser)) return end_message(parser);
    return http_bad(parser, 400, "the connection ended within a message");
}

struct str http_parser_drain(struct http_parser *parser)
{
    struct str bytes = buf_str(&parser->body);
    // Only the length is forgotten: the bytes stay where they are until the next feed writes over them.
    parser->body.len = 0;
    return bytes;
}
