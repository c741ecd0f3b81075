// What an object store has: pages of names, as S3's interface and Azure's write them. Both are XML; the few elements that are looked for
// are found between their tags, what stands in them is text with five entities and numbers, and everything else is passed over.
#include "fetch/inside.h"

#include "base/text.h"
#include "http/http.h"

#include <string.h>

#define QUERY_MAX (4 * FETCH_URI_MAX)
#define NAMES_MAX 5000 // of one page: what Azure gives at most

struct str fetch_object_uri(const char *scheme, struct str bucket, struct str key, struct arena *arena)
{
    struct buf out = buf_of(4 * FETCH_URI_MAX);
    buf_printf(&out, "%s://", scheme);
    buf_add(&out, bucket);
    buf_byte(&out, '/');
    http_percent_encode_path(&out, key);
    return buf_keep(&out, arena);
}

// ---- elements

// What stands in the next <tag> from *at on, which moves behind it. False: there is none.
static bool element(struct str text, const char *tag, size_t *at, struct str *inner)
{
    size_t size = strlen(tag);
    for (; *at < text.len; ++*at) {
        *at = str_find(text, '<', *at);
        struct str rest = str_slice(text, *at + 1, text.len);
        if (rest.len <= size || !str_starts(rest, str_from(tag))) continue;
        // Of one with attributes, too.
        size_t end = rest.ptr[size] == '>' || rest.ptr[size] == ' ' ? str_find(rest, '>', size) : rest.len;
        if (end == rest.len) continue;
        size_t begin = *at + 1 + end + 1;
        bool empty = rest.ptr[end - 1] == '/';
        for (size_t to = begin; !empty && to < text.len; to++) {
            to = str_find(text, '<', to);
            struct str close = str_slice(text, to, text.len);
            if (close.len < size + 3 || close.ptr[1] != '/' || !str_starts(str_slice(close, 2, close.len), str_from(tag)) ||
                close.ptr[size + 2] != '>')
                continue;
            *inner = str_slice(text, begin, to);
            *at = to + size + 3;
            return true;
        }
        if (!empty) return false; // it never ends
        *inner = (struct str){"", 0};
        *at = begin;
        return true;
    }
    return false;
}

static void add_point(struct buf *out, uint32_t point)
{
    if (point < 0x80)
        buf_byte(out, (char)point);
    else if (point < 0x800)
        buf_printf(out, "%c%c", (int)(0xC0 | point >> 6), (int)(0x80 | (point & 0x3F)));
    else if (point < 0x10000)
        buf_printf(out, "%c%c%c", (int)(0xE0 | point >> 12), (int)(0x80 | (point >> 6 & 0x3F)), (int)(0x80 | (point & 0x3F)));
    else
        buf_printf(out, "%c%c%c%c", (int)(0xF0 | point >> 18), (int)(0x80 | (point >> 12 & 0x3F)),
                   (int)(0x80 | (point >> 6 & 0x3F)), (int)(0x80 | (point & 0x3F)));
}

// "#38", "#x26", "amp". False: no such entity.
static bool add_entity(struct buf *out, struct str name)
{
    static const struct {
        const char *name;
        char stands_for;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_is(name, known[i].name)) return buf_byte(out, known[i].stands_for), true;
    bool hex = name.len > 1 && name.ptr[1] == 'x';
    uint32_t point = 0;
    if (name.len < 2 || name.len > 9 || name.ptr[0] != '#') return false;
    for (size_t i = hex ? 2 : 1; i < name.len; i++) {
        int digit = hex ? char_hex(name.ptr[i]) : char_is_digit(name.ptr[i]) ? name.ptr[i] - '0' : -1;
        if (digit < 0) return false;
        point = point * (hex ? 16 : 10) + (uint32_t)digit;
    }
    if (!point || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    add_point(out, point);
    return true;
}

// In arena; ptr NULL: no memory, or no text.
static struct str plain_text(struct str text, struct arena *arena)
{
    struct buf out = buf_of(64 << 10);
    bool good = true;
    for (size_t at = 0; good && at < text.len;) {
        size_t to = str_find(text, '&', at);
        buf_add(&out, str_slice(text, at, to));
        if (to == text.len) break;
        size_t end = str_find(text, ';', to);
        good = end < text.len && add_entity(&out, str_slice(text, to + 1, end));
        at = end + 1;
    }
    good = good && str_utf8(buf_str(&out));
    if (!good) buf_clear(&out);
    struct str kept = buf_keep(&out, arena);
    return good ? kept : (struct str){0};
}

static bool child_text(struct str from, const char *tag, struct arena *arena, struct str *out)
{
    size_t at = 0;
    struct str inner;
    *out = (struct str){"", 0};
    if (!element(from, tag, &at, &inner)) return true;
    *out = plain_text(inner, arena);
    return out->ptr != NULL;
}

// ---- a page

static bool read_object(struct str from, bool azure, struct arena *arena, struct fetch_object *out)
{
    struct str size;
    if (!child_text(from, azure ? "Name" : "Key", arena, &out->key) ||
        !child_text(from, azure ? "Etag" : "ETag", arena, &out->etag) ||
        !child_text(from, azure ? "Last-Modified" : "LastModified", arena, &out->modified) ||
        !child_text(from, azure ? "Content-Length" : "Size", arena, &size))
        return false;
    if (!str_int64(size, &out->size)) out->size = -1;
    return out->key.len > 0;
}

// Whether the policy lets one ask for that object: a prefix of names is not a prefix of paths.
static bool is_allowed(const struct fetch_policy *policy, const struct uri *of, const struct fetch_object *object,
                       struct arena *arena)
{
    struct error err = {0};
    struct str bucket = str_from(of->host), uri;
    const char *scheme = of->scheme == SCHEME_S3 ? "s3" : of->scheme == SCHEME_GS ? "gs" : "azure";
    if (of->scheme == SCHEME_AZURE) {
        struct buf both = buf_of(FETCH_URI_MAX);
        buf_printf(&both, "%s%.*s", of->host, STR_ARG(str_slice(of->path, 0, str_find(of->path, '/', 1))));
        bucket = buf_keep(&both, arena);
        if (!bucket.ptr) return false;
    }
    uri = fetch_object_uri(scheme, bucket, object->key, arena);
    return uri.ptr && fetch_uri_check(policy, uri, &err) == OK;
}

static enum code read_page(const struct fetch_policy *policy, const struct uri *of, struct str body, struct arena *arena,
                           struct fetch_listing *out, struct error *err)
{
    bool azure = of->scheme == SCHEME_AZURE;
    const char *tag = azure ? "Blob" : "Contents";
    struct fetch_object *objects = ARENA_ARRAY(arena, NAMES_MAX, struct fetch_object);
    struct str inner, whole;
    size_t at = 0;
    if (!objects) return error_nomem(err);
    if (!element(body, azure ? "EnumerationResults" : "ListBucketResult", &at, &whole))
        return error_set(err, E_CORRUPT, "the object store gave no list");
    for (at = 0; out->count < NAMES_MAX && element(whole, tag, &at, &inner);) {
        struct fetch_object *object = &objects[out->count];
        if (!read_object(inner, azure, arena, object)) return error_set(err, E_CORRUPT, "a name in the list cannot be read");
        out->count += is_allowed(policy, of, object, arena);
    }
    out->objects = objects;
    if (!child_text(whole, azure ? "NextMarker" : "NextContinuationToken", arena, &out->next))
        return error_set(err, E_CORRUPT, "the list does not say where it goes on");
    return OK;
}

static struct str page_query(const struct uri *of, struct str from, int64_t max, struct arena *arena)
{
    bool azure = of->scheme == SCHEME_AZURE;
    size_t key = azure ? str_find(of->path, '/', 1) + 1 : 1;
    struct str prefix;
    struct buf out = buf_of(QUERY_MAX);
    if (!uri_decode(str_slice(of->path, key < of->path.len ? key : of->path.len, of->path.len), arena, &prefix))
        return (struct str){0};
    buf_printf(&out, "%s=%lld&prefix=", azure ? "comp=list&restype=container&maxresults" : "list-type=2&max-keys",
               (long long)max);
    http_percent_encode(&out, prefix);
    if (from.len) {
        buf_text(&out, azure ? "&marker=" : "&continuation-token=");
        http_percent_encode(&out, from);
    }
    return buf_keep(&out, arena);
}

enum code fetch_list(const struct fetch_policy *policy, const struct fetch_call *call, struct str from, int64_t max,
                     struct arena *arena, struct fetch_listing *out, struct error *err)
{
    struct uri uri;
    const struct rule *rule;
    struct fetch_call to = *call;
    *out = (struct fetch_listing){0};
    enum code rc = policy_match(policy, call->uri, &uri, &rule, err);
    if (rc) return rc;
    if (uri.port || uri.scheme == SCHEME_CAIRN) return error_set(err, E_UNSUPPORTED, "only object stores have lists");
    to.method = STR("GET");
    to.container = true;
    to.query = page_query(&uri, from, max < 1 || max > 1000 ? 1000 : max, arena);
    if (!to.query.ptr) return error_nomem(err);
    rc = fetch_call(policy, &to, arena, &out->answer, err);
    out->status = rc ? 0 : out->answer.status;
    return rc || out->status != 200 ? rc : read_page(policy, &uri, out->answer.body, arena, out, err);
}
