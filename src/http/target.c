// Request targets, queries and hosts.
#include "http/inside.h"

enum { PORT_DIGITS_MAX = 5, PORT_MAX = 65535, NAME_MAX_LEN = 253, IPV6_TEXT_MAX = 45 };

// The byte that %XX at `at` stands for, or -1.
static int escaped(struct str text, size_t at)
{
    if (text.len - at < 3) return -1;
    int high = char_hex(text.ptr[at + 1]), low = char_hex(text.ptr[at + 2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

bool http_percent_decode(struct str text, bool plus, struct arena *arena, struct str *out)
{
    char *to = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    *out = (struct str){to, 0};
    if (!to) return false;
    for (size_t i = 0; i < text.len; i++) {
        int c = (unsigned char)text.ptr[i];
        if (c == '%') {
            c = escaped(text, i);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c <= 0) return false;
        to[len++] = (char)c;
    }
    *out = (struct str){to, len};
    return str_utf8(*out);
}

void http_percent_encode(struct buf *out, struct str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (http_chars[c] & CHAR_UNRESERVED) {
            buf_byte(out, (char)c);
        } else {
            buf_byte(out, '%');
            buf_byte(out, digits[c >> 4]);
            buf_byte(out, digits[c & 15]);
        }
    }
}

void http_percent_encode_path(struct buf *out, struct str text)
{
    for (size_t at = 0; at <= text.len;) {
        size_t end = str_find(text, '/', at);
        http_percent_encode(out, str_slice(text, at, end));
        if (end < text.len) buf_byte(out, '/');
        at = end + 1;
    }
}

static bool escapes_fit(struct str text)
{
    for (size_t i = str_find(text, '%', 0); i < text.len; i = str_find(text, '%', i + 1))
        if (escaped(text, i) < 0) return false;
    return true;
}

// An encoded slash would be a segment's border to one reader and a letter to another.
static bool hides_slash(struct str raw)
{
    for (size_t i = str_find(raw, '%', 0); i < raw.len; i = str_find(raw, '%', i + 1))
        if (escaped(raw, i) == '/' || escaped(raw, i) == '\\') return true;
    return false;
}

// Every segment has a name, but the last may be empty: "/" and "/runs/".
static bool segments_fit(struct str path)
{
    size_t at = 1;
    for (;;) {
        size_t end = str_find(path, '/', at);
        struct str segment = str_slice(path, at, end);
        if (str_is(segment, ".") || str_is(segment, "..")) return false;
        if (end == path.len) return true;
        if (segment.len == 0) return false;
        at = end + 1;
    }
}

static bool has_control(struct str path)
{
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] < 0x20 || path.ptr[i] == 0x7F) return true;
    return false;
}

// "http://host/path": the host must be the one of the Host header. Leaves the origin form in *target.
static bool cut_authority(struct str *target, struct str host)
{
    struct str rest = *target;
    if (rest.len >= 7 && http_same(str_slice(rest, 0, 7), STR("http://")))
        rest = str_slice(rest, 7, rest.len);
    else if (rest.len >= 8 && http_same(str_slice(rest, 0, 8), STR("https://")))
        rest = str_slice(rest, 8, rest.len);
    else
        return false;
    size_t slash = str_find(rest, '/', 0);
    if (slash == rest.len || slash == 0 || !http_same(str_slice(rest, 0, slash), host)) return false;
    *target = str_slice(rest, slash, rest.len);
    return true;
}

bool http_target(struct http_parser *parser, struct str target, bool *nomem)
{
    struct http_request *request = &parser->request;
    if (!http_all(target, CHAR_TARGET)) return false;
    if (target.ptr[0] != '/' && !cut_authority(&target, request->host)) return false;
    struct str path = str_cut(target, '?', &request->query);
    request->raw_path = request->path = path;
    if (!escapes_fit(request->query)) return false;
    if (str_find(path, '%', 0) < path.len) {
        if (hides_slash(path)) return false;
        if (!http_percent_decode(path, false, parser->arena, &request->path)) {
            *nomem = !request->path.ptr;
            return false;
        }
        if (has_control(request->path)) return false;
    }
    return segments_fit(request->path);
}

bool http_query_next(struct str query, size_t *at, struct str *name, struct str *value)
{
    while (*at < query.len && query.ptr[*at] == '&') ++*at;
    if (*at >= query.len) return false;
    size_t end = str_find(query, '&', *at);
    *name = str_cut(str_slice(query, *at, end), '=', value);
    *at = end;
    return true;
}

bool http_query(const struct http_request *request, const char *name, struct arena *arena, struct str *out)
{
    struct str key, raw, decoded;
    size_t at = 0;
    while (http_query_next(request->query, &at, &key, &raw)) {
        // Names are plain words; one that is written with escapes is compared as what it means.
        if (str_find(key, '%', 0) < key.len || str_find(key, '+', 0) < key.len) {
            if (!http_percent_decode(key, true, arena, &decoded)) return false;
            key = decoded;
        }
        if (str_is(key, name)) return http_percent_decode(raw, true, arena, out);
    }
    return false;
}

static bool is_port(struct str port)
{
    int64_t number;
    return port.len > 0 && port.len <= PORT_DIGITS_MAX && port.ptr[0] != '-' && str_int64(port, &number) &&
           number <= PORT_MAX;
}

static bool is_ipv6_text(struct str text)
{
    if (text.len < 2 || text.len > IPV6_TEXT_MAX) return false;
    for (size_t i = 0; i < text.len; i++)
        if (char_hex(text.ptr[i]) < 0 && text.ptr[i] != ':' && text.ptr[i] != '.') return false;
    return str_find(text, ':', 0) < text.len;
}

bool http_host_split(struct str text, struct str *host, struct str *port)
{
    size_t end;
    bool fits;
    if (text.len && text.ptr[0] == '[') {
        size_t close = str_find(text, ']', 0);
        end = close < text.len ? close + 1 : text.len;
        fits = close < text.len && is_ipv6_text(str_slice(text, 1, close));
    } else {
        end = str_find(text, ':', 0);
        fits = end > 0 && end <= NAME_MAX_LEN && http_all(str_slice(text, 0, end), CHAR_HOST);
    }
    *host = str_slice(text, 0, end);
    *port = STR("");
    if (!fits || end == text.len) return fits;
    *port = str_slice(text, end + 1, text.len);
    return text.ptr[end] == ':' && is_port(*port);
}
