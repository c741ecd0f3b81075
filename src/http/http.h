// HTTP/1.1 as bytes, in both directions: parsers that are fed, writers that fill a buf. No sockets, no clock.
//
// Framing is strict (requirement H1): what two readers could understand differently is refused, and the connection must then
// be closed. Refused are: Content-Length beside Transfer-Encoding; more than one of either; a length that is not plain digits;
// a coding other than exactly "chunked"; sizes that overflow; chunk extensions above 256 bytes; folded lines; a blank before
// the colon; a bare CR or LF; NUL and other controls; an absent, repeated or malformed Host; an absolute target of another
// host; versions other than 1.0 and 1.1; h2c; methods that are not in HTTP_METHOD_LIST.
//
// The outcome of a parser depends on the bytes alone, never on how they were cut into pieces.
//
// owner: a parser belongs to one thread at a time. What it hands out lives in the parser and in its arena, until
// http_parser_next.
#ifndef CAIRN_HTTP_HTTP_H
#define CAIRN_HTTP_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

struct http_header {
    struct str name; // as sent; compare with http_name_is
    struct str value;
};

// Sizes are in bytes. A request line above line_max is 414; a head above head_max (line, headers and the empty line), a
// header line above header_max, more than count_max headers are 431; a body above body_max is 413.
struct http_limits {
    size_t line_max, head_max, header_max, count_max;
    uint64_t body_max;
};
extern const struct http_limits http_limits_default; // 8 KiB, 16 KiB, 8 KiB, 64, 1 MiB

#define HTTP_METHOD_LIST(X) X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(PATCH) X(OPTIONS)

struct http_request {
    struct str method;   // one of HTTP_METHOD_LIST
    struct str path;     // decoded, UTF-8, begins with '/'; no empty, "." or ".." segment, no encoded '/', no control
    struct str raw_path; // as sent
    struct str query;    // as sent, without '?'
    struct str host;     // of the Host header, as sent; well formed or empty
    const struct http_header *headers;
    size_t header_count;
    struct str body; // decoded; complete once the parser says HTTP_DONE
    bool keep_alive, expect_continue;
    bool version_10; // HTTP/1.0: no chunks in the answer
};

struct http_response_head {
    int status;
    const struct http_header *headers;
    size_t header_count;
    struct str body; // decoded; complete once the parser says HTTP_DONE
    bool keep_alive; // the connection can carry another request
};

bool http_name_is(struct str name, const char *text); // case folded
bool http_same(struct str a, struct str b);           // case folded
// The first header of that name; empty when absent.
struct str http_find(const struct http_request *request, const char *name);
struct str http_header_find(const struct http_header *headers, size_t count, const char *name);
// Is `token` in a comma-separated header value? Case folded.
bool http_has_token(struct str value, const char *token);

// ---- reading

enum http_kind { HTTP_REQUESTS, HTTP_RESPONSES };

enum http_step {
    HTTP_MORE, // all bytes are used; the message goes on
    HTTP_HEAD, // the head is there, the body not yet: the moment to change body_max. Feed the rest (perhaps nothing)
    HTTP_DONE, // the message is whole
    HTTP_BAD,  // see status and reason; close the connection
};

struct http_mark; // where a header stands in the head

struct http_parser {
    // Read by the caller.
    int status;                  // of HTTP_BAD: what to answer (400, 413, 414, 417, 431, 501, 505; 500 for memory)
    const char *reason;          // of HTTP_BAD: in a few words, a literal
    uint64_t body_max;           // may be set until the feed that follows HTTP_HEAD
    uint64_t body_received;      // decoded bytes of the body so far, also those taken by http_parser_drain
    bool began;                  // a byte of this message has been seen
    bool headless;               // responses: the request was a HEAD, so no body follows. Set before the first feed
    struct http_request request; // from HTTP_HEAD on, when it reads requests
    struct http_response_head answer; // from HTTP_HEAD on, when it reads responses
    // Private.
    enum http_kind kind;
    int state;
    struct http_limits limits;
    struct arena *arena;
    struct buf head, line, body;
    size_t line_at, head_size;
    struct http_mark *marks;
    size_t mark_count, mark_capacity;
    uint64_t left;
    bool has_length, chunked, has_host, version_10;
    size_t method_len, target_at, target_len;
};

// The arena is used until the message ends; the caller resets it between messages, before http_parser_next.
void http_parser_init(struct http_parser *parser, enum http_kind kind, const struct http_limits *limits,
                      struct arena *arena);
void http_parser_release(struct http_parser *parser);
// Forgets the message and is ready for another one on the same connection. Keeps memory, but not that of a large message.
void http_parser_next(struct http_parser *parser);
// Reads from `bytes`; *used says how many belonged to this message. After HTTP_DONE and HTTP_BAD: not without _next.
// Answers 1xx are skipped (a 101 is bad).
enum http_step http_parser_feed(struct http_parser *parser, struct str bytes, size_t *used);
// The other side has closed. HTTP_DONE when that is how this message ends, else HTTP_BAD.
enum http_step http_parser_end(struct http_parser *parser);
// For streams: the decoded bytes so far, which the parser forgets; valid until the next feed. The limit of the body then
// still counts all of it.
struct str http_parser_drain(struct http_parser *parser);

// ---- words of URLs

// %XX to bytes. False: malformed escape, NUL, the result is not UTF-8, or no memory (then out->ptr is NULL). `plus`: '+' is a
// blank (queries).
bool http_percent_decode(struct str text, bool plus, struct arena *arena, struct str *out) MUST_CHECK;
void http_percent_encode(struct buf *out, struct str text); // all but unreserved characters (RFC 3986)
void http_percent_encode_path(struct buf *out, struct str text); // the same, segment by segment: slashes stay
// The first parameter of that name, decoded. False: absent, malformed, or no memory.
bool http_query(const struct http_request *request, const char *name, struct arena *arena, struct str *out);
// Walks the parameters: *at starts at 0; false at the end. Name and value as sent.
bool http_query_next(struct str query, size_t *at, struct str *name, struct str *value);
// host[:port] of a Host header or an authority: a name, an IPv4 address or "[IPv6]". *port is empty without one.
bool http_host_split(struct str text, struct str *host, struct str *port);

// ---- writing

enum http_framing {
    HTTP_NO_BODY, // neither length nor coding: 204, 304
    HTTP_LENGTH,
    HTTP_CHUNKED,
    HTTP_UNTIL_CLOSE,
};

const char *http_reason(int status); // "Not Found"
// RFC 9457, to which the caller adds `detail` and more. The type is a stable name that `cairn help CODE` explains without a
// network.
struct json http_problem(struct arena *arena, int status, struct str title, const char *code);
// A name is a token; a value has no CR, LF, NUL or other control but a tab. Nothing else may be written.
bool http_header_valid(struct http_header header);
// The whole head with the empty line. Connection and framing headers are written here: the caller's must not be among `headers`.
// False, with nothing written: an invalid header. Memory shows in buf_ok.
bool http_write_head(struct buf *out, int status, const struct http_header *headers, size_t count,
                     enum http_framing framing, uint64_t length, bool keep_alive) MUST_CHECK;
// `target` begins with '/'. HTTP_NO_BODY for requests without a body. False: an invalid header, method or target.
bool http_write_request_head(struct buf *out, struct str method, struct str target, struct str host,
                             const struct http_header *headers, size_t count, enum http_framing framing,
                             uint64_t length) MUST_CHECK;
// A chunk: this line, its `size` bytes (at least one), CRLF. Gives the length of the line.
enum { HTTP_CHUNK_HEAD = 18 };
size_t http_chunk_head(size_t size, char out[HTTP_CHUNK_HEAD]);
#define HTTP_LAST_CHUNK "0\r\n\r\n"
#define HTTP_DATE_SIZE 30 // "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL
void http_date(int64_t seconds, char out[HTTP_DATE_SIZE]);

// ---- who may talk to us from a browser (H2, H3, H5)

struct http_guard {
    const struct str
        *hosts; // further names: "name" goes with the port of the connection, "name:port" with exactly that one
    size_t host_count;
    const struct str *origins; // how browsers name us, "https://cairn.example": as origin and as host. Our own is always one
    size_t origin_count;
};
// Where the connection came in. port 0: a Unix socket, whose clients say "localhost".
struct http_door {
    uint16_t port;
    bool tls;
};
// 0, or 421 for a Host that is not ours, or 403 for a request that another site had a browser make.
int http_guard_check(const struct http_guard *guard, const struct http_door *door, const struct http_request *request);
// What every answer carries against browsers' good will. The last one is Cache-Control: no-store, for answers of the API;
// leave it out (count - 1) for files that may be kept.
const struct http_header *http_security_headers(size_t *count);

#endif
