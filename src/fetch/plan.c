// A plan by its reference: fetched, inflated, compared with what was promised.
#include "fetch/inside.h"

#include "base/civil.h"
#include "os/os.h"

#include <openssl/crypto.h>
#include <string.h>
#include <zlib.h>

#define INTEGRITY "PLAN_INTEGRITY_VALIDATION_FAILED: "

enum code fetch_plan_ref(const struct json *value, struct plan_ref *out, struct error *err)
{
    *out = (struct plan_ref){0};
    const struct {
        const char *name;
        struct str *to;
    } texts[] = {{"uri", &out->uri},
                 {"sha256", &out->sha256},
                 {"schemaVersion", &out->schema_version},
                 {"planId", &out->plan_id},
                 {"planVersion", &out->plan_version}};
    if (!json_is(value, JSON_OBJECT)) return error_set(err, E_INVALID, "a reference to a plan is an object");
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        *texts[i].to = json_text(json_key(value, texts[i].name));
        if (!texts[i].to->len) return error_set(err, E_INVALID, "the reference needs \"%s\"", texts[i].name);
    }
    const struct json *size = json_key(value, "sizeBytes"), *expires = json_key(value, "expiresAt");
    const struct json *compression = json_key(value, "compression");
    if (size && json_integer(size, -1) < 0) return error_set(err, E_INVALID, "\"sizeBytes\" must be a number of bytes");
    out->size = size ? (uint64_t)json_integer(size, 0) : 0;
    if (expires && !civil_parse(json_text(expires), &out->expires_ms))
        return error_set(err, E_INVALID, "\"expiresAt\" must be a time such as 2026-02-11T17:00:00Z");
    if (compression && !json_is(compression, JSON_STRING))
        return error_set(err, E_INVALID, "compression must be gzip or none");
    out->compression = json_text(compression);
    return OK;
}

static enum code inflate_all(z_stream *stream, struct str from, struct buf *out, struct error *err)
{
    for (;;) {
        size_t room = 65536;
        char *to = buf_reserve(out, room);
        if (!to) return error_set(err, E_LIMIT, "the plan is too large once decompressed");
        stream->next_out = (Bytef *)to;
        stream->avail_out = (uInt)room;
        int rc = inflate(stream, Z_NO_FLUSH);
        out->len += room - stream->avail_out;
        if (out->len > FETCH_INFLATED_MAX) return error_set(err, E_LIMIT, "the plan is too large once decompressed");
        // Against all that was sent, so that a bomb ends early and an honest file is judged as a whole.
        if (out->len / FETCH_RATIO_MAX > from.len) return error_set(err, E_LIMIT, "the plan is compressed too much");
        if (rc == Z_STREAM_END && stream->avail_in == 0) return OK;
        if (rc == Z_MEM_ERROR) return error_nomem(err);
        if (rc != Z_OK || (stream->avail_in == 0 && stream->avail_out > 0))
            return error_set(err, E_CORRUPT, INTEGRITY "the plan is not one whole gzip file");
    }
}

enum code fetch_inflate(struct str from, struct arena *arena, struct str *bytes, struct error *err)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from.ptr, .avail_in = (uInt)from.len};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return error_nomem(err);
    struct buf out SCOPED(buf_release) = buf_of(FETCH_INFLATED_MAX + 2 * 65536);
    enum code rc = inflate_all(&stream, from, &out, err);
    inflateEnd(&stream);
    if (!rc) {
        *bytes = arena_copy(arena, buf_str(&out));
        if (!bytes->ptr) rc = error_nomem(err);
    }
    return rc;
}

static enum code status_check(int status, struct error *err)
{
    if (status == 200) return OK;
    if (status / 100 == 3) return error_set(err, E_DENIED, NOT_ALLOWED "the server sends elsewhere");
    if (status == 404 || status == 410) return error_set(err, E_NOT_FOUND, "the server has no such plan");
    if (status == 401 || status == 403) return error_set(err, E_DENIED, "the server does not hand out the plan");
    if (status == 429 || status / 100 == 5)
        return error_set(err, E_UNREACHABLE, "the server does not hand out the plan now (%d)", status);
    return error_set(err, E_IO, "the server answered %d instead of the plan", status);
}

static enum code download(const struct fetch_policy *policy, const struct plan_ref *ref, bool gzip, struct arena *arena,
                          struct str *bytes, int *status, struct error *err)
{
    struct fetch_call call = {.uri = ref->uri};
    struct fetch_answer answer;
    // What is longer than promised is not what was promised: one byte more is enough to know.
    bool bounded = ref->size && !gzip && ref->size < policy->body_max;
    if (bounded) call.body_max = (size_t)ref->size;
    struct error why = {0};
    enum code rc = fetch_call(policy, &call, arena, &answer, &why);
    if (!rc) {
        *status = answer.status;
        rc = status_check(answer.status, &why);
    }
    if (rc == E_LIMIT && bounded)
        return error_set(err, E_CORRUPT, INTEGRITY "the plan is longer than its reference says");
    if (rc && err) *err = why;
    if (!rc) *bytes = answer.body;
    return rc;
}

static enum code load(const struct fetch_policy *policy, const struct plan_ref *ref, bool gzip, struct arena *arena,
                      struct str *bytes, struct plan_trip *trip, struct error *err)
{
    struct uri uri;
    const struct rule *rule;
    enum code rc = policy_match(policy, ref->uri, &uri, &rule, err);
    if (rc) return rc;
    trip->object = uri.scheme == SCHEME_S3 || uri.scheme == SCHEME_GS || uri.scheme == SCHEME_AZURE;
    if (uri.scheme != SCHEME_CAIRN) return download(policy, ref, gzip, arena, bytes, &trip->status, err);
    if (!policy->plans.load) return error_set(err, E_NOT_FOUND, "there is no store of plans here");
    return policy->plans.load(policy->plans.context, str_slice(uri.path, 1, uri.path.len), arena, bytes, err);
}

enum code fetch_plan(const struct fetch_policy *policy, const struct plan_ref *ref, struct arena *arena,
                     struct str *bytes, struct plan_trip *trip, struct error *err)
{
    struct digest wanted;
    bool gzip = str_is(ref->compression, "gzip");
    *trip = (struct plan_trip){0};
    // The text of the URI first, so that nothing else of a refused reference is answered.
    enum code rc = fetch_uri_check(policy, ref->uri, err);
    if (rc) return rc;
    if (!digest_parse(ref->sha256, &wanted))
        return error_set(err, E_INVALID, "sha256 must be 64 lower-case hex digits");
    if (!gzip && ref->compression.len && !str_is(ref->compression, "none"))
        return error_set(err, E_INVALID, "compression must be gzip or none");
    if (ref->expires_ms && os_now().wall_ms >= ref->expires_ms)
        return error_set(err, E_DENIED, "the reference has expired");
    struct str stored = {0}, plain = {0};
    rc = load(policy, ref, gzip, arena, &stored, trip, err);
    if (rc) return rc;
    plain = stored;
    if (gzip) rc = fetch_inflate(stored, arena, &plain, err);
    if (rc) return rc;
    trip->actual = sha256(plain);
    bool sized = !ref->size || ref->size == stored.len || ref->size == plain.len;
    if (CRYPTO_memcmp(trip->actual.b, wanted.b, sizeof(wanted.b)) != 0 || !sized)
        return error_set(err, E_CORRUPT, INTEGRITY "the plan is not what its reference promises");
    *bytes = plain;
    return OK;
}
