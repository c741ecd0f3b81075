// RFC 3986 §5.2 on byte slices. A base without a scheme ("run-events/RunStarted.json") is resolved against in the same
// way, so documents can be known by plain relative names.
#include "schema/internal.h"

#include <string.h>

struct uri {
    struct str scheme;    // with ':'; empty: none
    struct str authority; // with "//"; empty: none
    struct str path;
    struct str query; // with '?'
};

struct str uri_without_fragment(struct str uri, struct str *fragment)
{
    size_t hash = str_find(uri, '#', 0);
    *fragment = hash < uri.len ? str_slice(uri, hash + 1, uri.len) : (struct str){"", 0};
    return str_slice(uri, 0, hash);
}

static bool is_scheme(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = char_is_letter(c);
        bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (!letter && !(i && other)) return false;
    }
    return s.len > 0;
}

static struct uri split(struct str text)
{
    struct uri u = {0};
    size_t colon = str_find(text, ':', 0);
    if (colon < text.len && is_scheme(str_slice(text, 0, colon))) {
        u.scheme = str_slice(text, 0, colon + 1);
        text = str_slice(text, colon + 1, text.len);
    }
    size_t question = str_find(text, '?', 0);
    u.query = str_slice(text, question, text.len);
    text = str_slice(text, 0, question);
    if (str_starts(text, STR("//"))) {
        size_t slash = str_find(text, '/', 2);
        u.authority = str_slice(text, 0, slash);
        text = str_slice(text, slash, text.len);
    }
    u.path = text;
    return u;
}

static size_t append(char *out, size_t len, struct str s)
{
    if (s.len) memcpy(out + len, s.ptr, s.len);
    return len + s.len;
}

// §5.2.4, in place: segments "." vanish, ".." take the one before with them.
static size_t remove_dots(char *path, size_t len)
{
    struct str rest = {path, len};
    bool absolute = len && path[0] == '/';
    size_t out = 0;
    size_t at = 0;
    while (at <= rest.len) {
        size_t end = str_find(rest, '/', at);
        struct str segment = str_slice(rest, at, end);
        bool last = end == rest.len;
        if (str_is(segment, "..")) {
            size_t floor = absolute ? 1 : 0;
            if (out > floor) out--;
            while (out > floor && path[out - 1] != '/') out--;
        } else if (!str_is(segment, ".")) {
            memmove(path + out, segment.ptr, segment.len);
            out += segment.len;
            if (!last) path[out++] = '/';
        }
        at = end + 1;
    }
    return out;
}

struct str uri_resolve(struct arena *arena, struct str base_text, struct str reference)
{
    struct str fragment;
    struct uri base = split(uri_without_fragment(base_text, &fragment));
    struct uri ref = split(uri_without_fragment(reference, &fragment));
    char *out = arena_alloc(arena, base_text.len + reference.len + 2);
    if (!out) return (struct str){0};
    bool own_path = ref.scheme.len || ref.authority.len || (ref.path.len && ref.path.ptr[0] == '/');
    size_t len = append(out, 0, ref.scheme.len ? ref.scheme : base.scheme);
    len = append(out, len, ref.scheme.len || ref.authority.len ? ref.authority : base.authority);
    size_t start = len;
    if (own_path) {
        len = append(out, len, ref.path);
    } else if (!ref.path.len) {
        len = append(out, len, base.path);
        len = append(out, len, ref.query.len ? ref.query : base.query);
        return (struct str){out, len};
    } else {
        size_t slash = base.path.len;
        while (slash && base.path.ptr[slash - 1] != '/') slash--;
        if (!base.path.len && base.authority.len) out[len++] = '/';
        len = append(out, len, str_slice(base.path, 0, slash));
        len = append(out, len, ref.path);
    }
    bool opaque = ref.scheme.len && !ref.authority.len && ref.path.len && ref.path.ptr[0] != '/';
    if (!opaque) len = start + remove_dots(out + start, len - start);
    len = append(out, len, ref.query);
    return (struct str){out, len};
}

struct str uri_unescape(struct arena *arena, struct str text)
{
    if (str_find(text, '%', 0) == text.len) return text;
    char *out = arena_alloc(arena, text.len);
    if (!out) return (struct str){0};
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool escape = text.ptr[i] == '%' && text.len - i > 2 && char_hex(text.ptr[i + 1]) >= 0 &&
                      char_hex(text.ptr[i + 2]) >= 0;
        if (escape) {
            out[len++] = (char)(char_hex(text.ptr[i + 1]) * 16 + char_hex(text.ptr[i + 2]));
            i += 2;
        } else {
            out[len++] = text.ptr[i];
        }
    }
    return (struct str){out, len};
}
