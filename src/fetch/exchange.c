// One request and its answer. The parser counts; what a hostile server sends ends at a limit or at the deadline.
#include "fetch/inside.h"

#include "http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES_MAX 65536 // before the final head, 1xx answers counted
#define SMALL_BODY 8192      // sent in one piece with its head

struct exchange {
    struct http_parser parser;
    struct arena scratch;
    struct buf out;
    size_t at, have; // of room
    char room[EXCHANGE_ROOM];
};

struct exchange *exchange_new(void)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (!exchange) return NULL;
    arena_init(&exchange->scratch, 16384, 4 << 20);
    buf_init(&exchange->out, 1 << 20);
    http_parser_init(&exchange->parser, HTTP_RESPONSES, &http_limits_default, &exchange->scratch);
    return exchange;
}

void exchange_free(struct exchange *exchange)
{
    if (!exchange) return;
    http_parser_release(&exchange->parser);
    buf_release(&exchange->out);
    arena_release(&exchange->scratch);
    free(exchange);
}

struct str host_header(const struct uri *uri, struct arena *arena)
{
    char text[HOST_MAX + 16];
    bool bracket = strchr(uri->host, ':') != NULL;
    bool usual = uri->port == (uri->scheme == SCHEME_HTTPS ? 443 : 80);
    int length = snprintf(text, sizeof(text), usual ? "%s%s%s" : "%s%s%s:%u", bracket ? "[" : "", uri->host,
                          bracket ? "]" : "", (unsigned)uri->port);
    return arena_copy(arena, (struct str){text, (size_t)length});
}

bool call_repeatable(const struct fetch_call *call)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE"};
    bool repeatable = call->repeatable || call->method.len == 0;
    for (size_t i = 0; i < ARRAY_COUNT(methods); i++) repeatable |= str_is(call->method, methods[i]);
    return repeatable;
}

static enum code send_request(struct exchange *x, struct wire *wire, const struct exchange_request *request,
                              struct error *err)
{
    bool body = request->body.len || str_is(request->method, "POST") || str_is(request->method, "PUT");
    buf_clear(&x->out);
    if (!http_write_request_head(&x->out, request->method, request->target, request->host, request->headers,
                                 request->header_count, body ? HTTP_LENGTH : HTTP_NO_BODY, request->body.len))
        return error_set(err, E_INVALID, "the method, the target or a header cannot be sent");
    bool small = request->body.len <= SMALL_BODY;
    if (small) buf_add(&x->out, request->body);
    if (!buf_ok(&x->out)) return error_set(err, E_NOMEM, "the head of the request is too large");
    enum code rc = wire_send(wire, buf_str(&x->out), err);
    if (!rc && !small) rc = wire_send(wire, request->body, err);
    return rc;
}

static enum code bad_answer(const struct http_parser *parser, struct error *err)
{
    bool large = parser->status == 413 || parser->status == 431 || parser->status == 414;
    if (parser->status == 500) return error_nomem(err);
    return error_set(err, large ? E_LIMIT : E_IO, "the server's answer is %s: %s", large ? "too large" : "malformed",
                     parser->reason);
}

static enum code pour(struct exchange *x, const struct exchange_request *request, struct error *err)
{
    struct str piece = http_parser_drain(&x->parser);
    if (!piece.len || request->sink(request->sink_context, piece)) return OK;
    return error_set(err, E_CANCELLED, "enough was read");
}

static enum code receive(struct exchange *x, struct wire *wire, const struct exchange_request *request, bool *heard,
                         struct error *err)
{
    bool head = false, pouring = false;
    size_t before = 0;
    for (;;) {
        size_t used = 0;
        enum http_step step =
            http_parser_feed(&x->parser, str_slice((struct str){x->room, x->have}, x->at, x->have), &used);
        x->at += used;
        before += head ? 0 : used;
        if (step == HTTP_HEAD) {
            head = true;
            pouring = request->sink && x->parser.answer.status / 100 == 2;
            x->parser.body_max = pouring ? UINT64_MAX : request->body_max;
            continue;
        }
        if (before > HEAD_BYTES_MAX) return error_set(err, E_LIMIT, "the server's answer is too large: its head");
        enum code rc = pouring && step != HTTP_BAD ? pour(x, request, err) : OK;
        if (rc || step == HTTP_DONE) return rc;
        if (step == HTTP_BAD) return bad_answer(&x->parser, err);
        x->at = 0;
        rc = wire_recv(wire, x->room, sizeof(x->room), &x->have, err);
        if (rc) return rc;
        if (x->have == 0) {
            if (http_parser_end(&x->parser) == HTTP_DONE) return pouring ? pour(x, request, err) : OK;
            return error_set(err, E_IO, "the server broke off");
        }
        *heard = true;
        if (request->silence_ms > 0) wire->deadline = mono_ms() + request->silence_ms;
    }
}

static enum code answer_copy(const struct http_parser *parser, struct str body, struct arena *arena,
                             struct fetch_answer *answer, struct error *err)
{
    const struct http_response_head *head = &parser->answer;
    struct http_header *headers = ARENA_ARRAY(arena, head->header_count + 1, struct http_header);
    bool good = headers != NULL;
    for (size_t i = 0; good && i < head->header_count; i++) {
        headers[i].name = arena_copy(arena, head->headers[i].name);
        headers[i].value = arena_copy(arena, head->headers[i].value);
        good = headers[i].name.ptr && headers[i].value.ptr;
    }
    *answer = (struct fetch_answer){.status = head->status, .headers = headers, .header_count = head->header_count};
    if (good) answer->body = arena_copy(arena, body);
    return good && answer->body.ptr ? OK : error_nomem(err);
}

enum code exchange_run(struct exchange *x, struct wire *wire, const struct exchange_request *request,
                       struct arena *arena, struct fetch_answer *answer, bool *heard, bool *reusable, struct error *err)
{
    *heard = *reusable = false;
    x->at = x->have = 0;
    arena_reset(&x->scratch);
    http_parser_next(&x->parser);
    x->parser.headless = str_is(request->method, "HEAD");
    enum code rc = send_request(x, wire, request, err);
    // A server may answer and close before it has read a large body: what it said counts.
    if (rc && rc != E_IO) return rc;
    struct error late = {0};
    enum code got = receive(x, wire, request, heard, rc ? &late : err);
    if (got) return rc ? rc : got;
    *reusable = !rc && x->at == x->have && x->parser.answer.keep_alive;
    return answer_copy(&x->parser, http_parser_drain(&x->parser), arena, answer, err);
}

struct str fetch_header(const struct fetch_answer *answer, const char *name)
{
    return http_header_find(answer->headers, answer->header_count, name);
}
