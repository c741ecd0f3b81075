#include "bus/object_wire.h"

#include "base/base64.h"
#include "json/make.h"

#include <stdio.h>
#include <string.h>

#define DIGEST_PREFIX "SHA-256="
#define DIGEST_TEXT (4 * ((SHA256_SIZE + 2) / 3))

void object_nuid(const unsigned char random[OBJECT_NUID], char out[OBJECT_NUID + 1])
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < OBJECT_NUID; i++) out[i] = letters[random[i] % (sizeof(letters) - 1)];
    out[OBJECT_NUID] = '\0';
}

// With the letters for URLs, and padded: so do other clients.
static void add_base64url(const unsigned char *bytes, size_t size, char *out, size_t room)
{
    struct buf text SCOPED(buf_release) = buf_of(room);
    buf_base64url(&text, (struct str){(const char *)bytes, size}, true);
    snprintf(out, room, "%s", text.ptr);
}

void object_stream(struct str bucket, char out[OBJECT_SUBJECT])
{
    snprintf(out, OBJECT_SUBJECT, "OBJ_%.*s", STR_ARG(bucket));
}

void object_chunks(struct str bucket, struct str nuid, char out[OBJECT_SUBJECT])
{
    snprintf(out, OBJECT_SUBJECT, "$O.%.*s.C.%.*s", STR_ARG(bucket), STR_ARG(nuid));
}

void object_subject(struct str bucket, const struct digest *name, char out[OBJECT_SUBJECT])
{
    char hex[SHA256_HEX + 1], code[4 * ((SHA256_HEX + 2) / 3) + 1];
    digest_hex(name, hex);
    add_base64url((const unsigned char *)hex, SHA256_HEX, code, sizeof(code));
    snprintf(out, OBJECT_SUBJECT, "$O.%.*s.M.%s", STR_ARG(bucket), code);
}

static struct str as_text(const struct json *value, struct arena *arena)
{
    struct buf text = buf_of(8192);
    json_write(&text, value);
    return buf_keep(&text, arena);
}

struct str object_config(struct str bucket, struct arena *arena)
{
    static const char *const parts[] = {"C", "M"};
    char stream[OBJECT_SUBJECT];
    struct json subjects = json_array();
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        json_append(arena, &subjects,
                    json_text_made(arena_format(arena, "$O.%.*s.%s.>", STR_ARG(bucket), parts[i])));
    object_stream(bucket, stream);
    struct json config =
        JSON_OF(arena, {"name", json_word(stream)}, {"description", json_word("results of runs")},
                {"subjects", subjects}, {"retention", json_word("limits")}, {"storage", json_word("file")},
                {"discard", json_word("new")}, {"num_replicas", json_int(1)}, {"allow_rollup_hdrs", json_bool(true)},
                {"allow_direct", json_bool(true)});
    return as_text(&config, arena);
}

struct str object_describe(struct str bucket, const struct digest *name, const struct object_meta *meta,
                           const char *time, struct arena *arena)
{
    char hex[SHA256_HEX + 1], digest[sizeof(DIGEST_PREFIX) + DIGEST_TEXT] = DIGEST_PREFIX;
    struct json type = json_array();
    digest_hex(name, hex);
    add_base64url(meta->digest.b, SHA256_SIZE, digest + sizeof(DIGEST_PREFIX) - 1, DIGEST_TEXT + 1);
    json_append(arena, &type, json_word("application/json"));
    struct json object = JSON_OF(
        arena, {"name", json_word(hex)}, {"description", json_word("result of a task")},
        {"headers", JSON_OF(arena, {"Content-Type", type})},
        {"options", JSON_OF(arena, {"max_chunk_size", json_int(OBJECT_CHUNK)})}, {"bucket", json_string(bucket)},
        {"nuid", json_string(meta->nuid)}, {"size", json_count(meta->size)}, {"mtime", json_word(time)},
        {"chunks", json_count(meta->chunks)}, {"digest", json_word(digest)});
    return as_text(&object, arena);
}

struct str object_question(const char *member, const char *subject, uint64_t seq, struct arena *arena)
{
    struct json question = JSON_OF(arena, {member, json_word(subject)}, {"seq", json_nonzero((int64_t)seq)});
    return as_text(&question, arena);
}

static bool read_digest(struct str text, struct arena *arena, struct digest *out)
{
    char plain[DIGEST_TEXT];
    if (text.len != sizeof(DIGEST_PREFIX) - 1 + DIGEST_TEXT || !str_starts(text, STR(DIGEST_PREFIX))) return false;
    for (size_t i = 0; i < DIGEST_TEXT; i++) {
        char c = text.ptr[sizeof(DIGEST_PREFIX) - 1 + i];
        plain[i] = c == '-' ? '+' : c == '_' ? '/' : c;
    }
    struct str bytes = base64_read((struct str){plain, DIGEST_TEXT}, arena);
    if (!bytes.ptr || bytes.len != SHA256_SIZE) return false;
    memcpy(out->b, bytes.ptr, SHA256_SIZE);
    return true;
}

// A nuid becomes a part of a subject that is asked for and purged: one token, and no wildcard.
static bool is_token(struct str text)
{
    bool good = text.len > 0 && text.len <= 64;
    for (size_t i = 0; good && i < text.len; i++)
        good = text.ptr[i] > ' ' && text.ptr[i] < 0x7F && !strchr(".*>\"\\", text.ptr[i]);
    return good;
}

bool object_described(struct str text, struct arena *arena, struct object_meta *out)
{
    struct json meta;
    if (json_parse(text, NULL, arena, &meta, NULL) || !json_is(&meta, JSON_OBJECT)) return false;
    const struct json *deleted = json_key(&meta, "deleted");
    int64_t size = json_integer(json_key(&meta, "size"), 0), chunks = json_integer(json_key(&meta, "chunks"), 0);
    *out = (struct object_meta){.nuid = json_text(json_key(&meta, "nuid")),
                                .size = (uint64_t)size,
                                .chunks = (uint64_t)chunks,
                                .deleted = json_true(deleted)};
    if (!is_token(out->nuid) || size < 0 || chunks < 0) return false;
    return out->deleted || read_digest(json_text(json_key(&meta, "digest")), arena, &out->digest);
}
