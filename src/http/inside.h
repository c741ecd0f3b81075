// What the rooms of http share.
#ifndef CAIRN_HTTP_INSIDE_H
#define CAIRN_HTTP_INSIDE_H

#include "http/http.h"

struct http_mark {
    uint32_t name, name_len, value, value_len;
};

enum char_class {
    CHAR_TOKEN = 1,  // names of headers, methods
    CHAR_VALUE = 2,  // inside a header value: visible, blank, tab, and bytes above 127
    CHAR_TARGET = 4, // path and query of a request target, '%' among them
    CHAR_HOST = 8,   // registered names
    CHAR_UNRESERVED = 16,
};
extern const unsigned char http_chars[256];
bool http_all(struct str text, enum char_class mask);

// Remembers why; returns HTTP_BAD.
enum http_step http_bad(struct http_parser *parser, int status, const char *reason);

// head.c: one line without its CRLF, and the whole once all lines are there.
enum http_step http_first_line(struct http_parser *parser, struct str line);
enum http_step http_header_line(struct http_parser *parser, struct str line, size_t at);
enum http_step http_head_done(struct http_parser *parser);

// target.c: fills path, raw_path and query. False: malformed, or E_NOMEM shown by *nomem.
bool http_target(struct http_parser *parser, struct str target, bool *nomem);

#endif
