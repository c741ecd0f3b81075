// The grammar of URIs that may be fetched. It is far narrower than RFC 3986 on purpose: whatever two parsers could read in two
// ways is refused, so that what was checked is what is asked for.
#include "fetch/inside.h"

#include <arpa/inet.h>
#include <string.h>

#define LABEL_MAX 63
#define DECODE_ROUNDS 4 // %252e is a dot to a server that decodes twice

// What may stand in a path or a query beside escapes.
static bool plain(char c)
{
    return char_is_letter(c) || char_is_digit(c) || (c && strchr("-._~!$&'()*+,;=:@/", c));
}

// ---- scheme and authority

static const struct {
    const char *name;
    enum scheme scheme;
    uint16_t port;
} schemes[] = {{"https", SCHEME_HTTPS, 443}, {"http", SCHEME_HTTP, 80},  {"s3", SCHEME_S3, 0},
               {"gs", SCHEME_GS, 0},         {"azure", SCHEME_AZURE, 0}, {"cairn", SCHEME_CAIRN, 0}};

static bool scheme_parse(struct str name, struct uri *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        size_t at = 0;
        while (at < name.len && char_lower(name.ptr[at]) == schemes[i].name[at]) at++;
        if (at != name.len || schemes[i].name[at]) continue;
        out->scheme = schemes[i].scheme;
        out->port = schemes[i].port;
        return true;
    }
    return false;
}

static bool port_parse(struct str text, uint16_t *out)
{
    int64_t port;
    if (text.len == 0 || text.len > 5 || text.ptr[0] == '0') return false;
    for (size_t i = 0; i < text.len; i++)
        if (!char_is_digit(text.ptr[i])) return false;
    if (!str_int64(text, &port) || port > 65535) return false;
    *out = (uint16_t)port;
    return true;
}

// getaddrinfo reads "127.1", "0x7f.1", "017700000001" and "2130706433" as addresses; so does every host whose last label looks
// like a number.
static bool numeric(struct str label)
{
    if (label.len >= 2 && label.ptr[0] == '0' && char_lower(label.ptr[1]) == 'x') {
        for (size_t i = 2; i < label.len; i++)
            if (char_hex(label.ptr[i]) < 0) return false;
        return true;
    }
    for (size_t i = 0; i < label.len; i++)
        if (!char_is_digit(label.ptr[i])) return false;
    return label.len > 0;
}

static const char *label_check(struct str label)
{
    if (label.len == 0) return "the host has an empty label";
    if (label.len > LABEL_MAX) return "a label of the host is too long";
    if (label.ptr[0] == '-' || label.ptr[label.len - 1] == '-') return "a label of the host begins or ends with '-'";
    for (size_t i = 0; i < label.len; i++)
        if (!char_is_letter(label.ptr[i]) && !char_is_digit(label.ptr[i]) && label.ptr[i] != '-') return "the host is not a plain name";
    return NULL;
}

static const char *name_check(struct str host, bool rule)
{
    if (rule && host.len && host.ptr[0] == '.') host = str_slice(host, 1, host.len);
    if (host.len == 0) return "there is no host";
    if (host.ptr[host.len - 1] == '.') return "the host ends with a dot";
    for (size_t at = 0, end; at <= host.len; at = end + 1) {
        end = str_find(host, '.', at);
        const char *fault = label_check(str_slice(host, at, end));
        if (fault) return fault;
    }
    return NULL;
}

static struct str last_label(struct str host)
{
    size_t at = host.len;
    while (at > 0 && host.ptr[at - 1] != '.') at--;
    return str_slice(host, at, host.len);
}

static bool host_copy(struct str host, struct uri *out)
{
    if (host.len == 0 || host.len > HOST_MAX) return false;
    for (size_t i = 0; i < host.len; i++) out->host[i] = char_lower(host.ptr[i]);
    out->host[host.len] = '\0';
    return true;
}

// An address in its one plain spelling: four decimal numbers, or what inet_pton reads between brackets.
static const char *literal_parse(struct str host, bool rule, struct uri *out)
{
    uint8_t bytes[16];
    bool bracket = host.ptr[0] == '[';
    if (!rule) return "the host is an address";
    if (bracket && (host.len < 3 || host.ptr[host.len - 1] != ']')) return "the host is malformed";
    if (bracket) host = str_slice(host, 1, host.len - 1);
    if (!host_copy(host, out)) return "the host is malformed";
    if (inet_pton(bracket ? AF_INET6 : AF_INET, out->host, bytes) != 1) return "the host is malformed";
    out->literal = true;
    return NULL;
}

static const char *host_parse(struct str host, bool rule, struct uri *out)
{
    if (host.len == 0) return "there is no host";
    if (host.len > HOST_MAX) return "the host is too long";
    if (host.ptr[0] == '[' || numeric(last_label(host))) return literal_parse(host, rule, out);
    const char *fault = name_check(host, rule);
    if (fault) return fault;
    return host_copy(host, out) ? NULL : "the host is too long";
}

// Buckets, accounts and containers: lower case, digits and inner hyphens (gs also '_'), never a dot: a name is not a host.
static const char *bucket_check(struct str name, size_t min, size_t max, const char *extra)
{
    if (name.len < min || name.len > max) return "the bucket, account or container has an impossible length";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool edge = i == 0 || i + 1 == name.len;
        if ((c >= 'a' && c <= 'z') || char_is_digit(c) || (!edge && c && strchr(extra, c))) continue;
        return "the bucket, account or container is not a plain name";
    }
    return NULL;
}

static const char *authority_parse(struct str authority, bool rule, struct uri *out)
{
    if (memchr(authority.ptr, '@', authority.len)) return "user information is not allowed";
    if (memchr(authority.ptr, '%', authority.len)) return "the host holds an escape";
    const char *fault = NULL;
    if (out->scheme == SCHEME_S3)
        fault = bucket_check(authority, 3, 63, "-");
    else if (out->scheme == SCHEME_GS)
        fault = bucket_check(authority, 3, 63, "-_");
    else if (out->scheme == SCHEME_AZURE)
        fault = bucket_check(authority, 3, 24, "");
    else if (out->scheme == SCHEME_CAIRN)
        fault = str_is(authority, "plans") ? NULL : "only cairn://plans/ is known";
    if (fault) return fault;
    if (!out->port) return host_copy(authority, out) ? NULL : "there is no host";
    size_t colon = authority.len;
    for (size_t i = authority.len; i > 0 && authority.ptr[i - 1] != ']'; i--)
        if (authority.ptr[i - 1] == ':') colon = i - 1;
    if (colon < authority.len && !port_parse(str_slice(authority, colon + 1, authority.len), &out->port))
        return "the port is not a number from 1 to 65535";
    return host_parse(str_slice(authority, 0, colon), rule, out);
}

// ---- path

static bool dots(struct str segment)
{
    struct str name = str_slice(segment, 0, str_find(segment, ';', 0)); // "..;" is ".." to some proxies
    return str_is(name, ".") || str_is(name, "..");
}

static const char *segments_check(struct str path)
{
    for (size_t at = 1; at <= path.len;) {
        size_t end = str_find(path, '/', at);
        if (dots(str_slice(path, at, end))) return "the path holds dot segments";
        if (end == at && end < path.len) return "the path holds an empty segment";
        at = end + 1;
    }
    return NULL;
}

// One round of decoding, into `to`, which has room for text.len. False: an escape is malformed.
static bool decode(struct str text, char *to, size_t *length)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (i + 2 >= text.len || char_hex(text.ptr[i + 1]) < 0 || char_hex(text.ptr[i + 2]) < 0) return false;
            c = (char)(char_hex(text.ptr[i + 1]) * 16 + char_hex(text.ptr[i + 2]));
            i += 2;
        }
        to[n++] = c;
    }
    *length = n;
    return true;
}

// What the escapes stand for, to anybody who decodes once or more often.
static const char *escapes_check(struct str text, bool path)
{
    char from[FETCH_URI_MAX], to[FETCH_URI_MAX];
    size_t length = text.len;
    memcpy(from, text.ptr, length);
    for (int round = 0; memchr(from, '%', length); round++) {
        if (round == DECODE_ROUNDS) return "the path is escaped too often";
        size_t slashes = 0, before = 0;
        for (size_t i = 0; i < length; i++) before += from[i] == '/';
        // A lone '%' that an escape stood for is a character like any other.
        if (!decode((struct str){from, length}, to, &length)) return round ? NULL : "an escape is malformed";
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)to[i] < 0x20 || to[i] == 0x7f) return "an escape stands for a control character";
            if (to[i] == '\\') return "an escape stands for a backslash";
            slashes += to[i] == '/';
        }
        if (path && slashes != before) return "an escape stands for a slash";
        if (path && segments_check((struct str){to, length})) return "the path holds dot segments";
        memcpy(from, to, length);
    }
    return NULL;
}

static const char *part_check(struct str text, bool path)
{
    for (size_t i = 0; i < text.len; i++)
        if (!plain(text.ptr[i]) && text.ptr[i] != '%' && (path || text.ptr[i] != '?'))
            return "a character has to be escaped";
    return escapes_check(text, path);
}

static const char *rest_parse(struct str rest, struct uri *out)
{
    size_t mark = str_find(rest, '?', 0);
    out->path = str_slice(rest, 0, mark);
    out->query = mark < rest.len ? str_slice(rest, mark + 1, rest.len) : (struct str){"", 0};
    if (out->path.len == 0) out->path = STR("/");
    const char *fault = part_check(out->path, true);
    if (!fault) fault = segments_check(out->path);
    if (!fault) fault = part_check(out->query, false);
    if (!fault && !out->port && mark < rest.len) fault = "an object has no query";
    return fault;
}

static const char *container_check(const struct uri *uri)
{
    size_t end = str_find(uri->path, '/', 1);
    return bucket_check(str_slice(uri->path, 1, end), 3, 63, "-");
}

// ---- the whole

static const char *parse(struct str text, bool rule, struct uri *out)
{
    *out = (struct uri){0};
    if (text.len == 0) return "it is empty";
    if (text.len >= FETCH_URI_MAX) return "it is too long";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= 0x20 || c >= 0x7f) return "it holds a character that is not plain ASCII";
        if (c == '\\') return "it holds a backslash";
        if (c == '#') return "it has a fragment";
    }
    size_t colon = str_find(text, ':', 0);
    if (colon == text.len) return "it has no scheme";
    if (!scheme_parse(str_slice(text, 0, colon), out)) return "the scheme is not allowed";
    struct str rest = str_slice(text, colon + 1, text.len);
    if (!str_starts(rest, STR("//"))) return "two slashes must follow the scheme";
    rest = str_slice(rest, 2, rest.len);
    size_t end = 0;
    while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?') end++;
    const char *fault = authority_parse(str_slice(rest, 0, end), rule, out);
    if (!fault) fault = rest_parse(str_slice(rest, end, rest.len), out);
    if (!fault && out->scheme == SCHEME_AZURE && !(rule && out->path.len == 1)) fault = container_check(out);
    return fault;
}

bool uri_parse(struct str text, bool rule, struct uri *out, const char **reason)
{
    *reason = parse(text, rule, out);
    return !*reason;
}

bool uri_host_local(const char *host)
{
    static const char *const ends[] = {".localhost", ".local", ".internal", ".localdomain", ".home.arpa"};
    struct str name = str_from(host);
    if (str_find(name, '.', name.len && name.ptr[0] == '.') == name.len) return true;
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++)
        if (str_ends(name, str_from(ends[i]))) return true;
    return false;
}

bool uri_decode(struct str text, struct arena *arena, struct str *out)
{
    char *to = ARENA_ARRAY(arena, text.len + 1, char);
    size_t length = 0;
    if (!to || !decode(text, to, &length)) return false;
    *out = (struct str){to, length};
    return true;
}
