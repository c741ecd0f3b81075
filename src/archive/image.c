// One run in memory: its records, and what they refer to.
#include "archive/archive.h"

#include <string.h>

enum { READ_PAGE = 4096 };

static enum code add_blob(struct run_image *image, const struct digest *digest, bool document, struct arena *arena)
{
    for (size_t i = 0; i < image->blob_count; i++)
        if (digest_eq(&image->blobs[i].sha256, digest)) return OK;
    if (!ARENA_ROOM(arena, image->blobs, image->blob_count, &image->blob_capacity)) return E_NOMEM;
    image->blobs[image->blob_count++] = (struct image_blob){*digest, document};
    return OK;
}

// The parts of a document: array of {..., sha256}.
static enum code add_parts(struct run_image *image, const struct json *parts, struct arena *arena)
{
    enum code rc = OK;
    for (uint32_t i = 0; !rc && json_is(parts, JSON_ARRAY) && i < parts->count; i++) {
        struct digest digest;
        if (digest_parse(json_text(json_key(&parts->items[i], "sha256")), &digest))
            rc = add_blob(image, &digest, true, arena);
    }
    return rc;
}

static enum code add_child(struct run_image *image, struct str run, struct arena *arena)
{
    for (size_t i = 0; i < image->child_count; i++)
        if (str_eq(image->children[i], run)) return OK;
    struct str kept = arena_copy(arena, run);
    if (!kept.ptr || !ARENA_ROOM(arena, image->children, image->child_count, &image->child_capacity)) return E_NOMEM;
    image->children[image->child_count++] = kept;
    return OK;
}

static bool has_word(struct str bytes, struct str word)
{
    const char *at = bytes.ptr, *end = bytes.ptr + bytes.len;
    while (at < end && (at = memchr(at, word.ptr[0], (size_t)(end - at)))) {
        if ((size_t)(end - at) >= word.len && memcmp(at, word.ptr, word.len) == 0) return true;
        at++;
    }
    return false;
}

// Events whose bytes cannot hold a reference are not decoded.
static bool may_refer(struct str bytes)
{
    return has_word(bytes, STR("sha256\":\"")) || has_word(bytes, STR("childRunId\":")) ||
           has_word(bytes, STR("child_run_id\":"));
}

static enum code find_references(struct run_image *image, struct arena *arena, struct error *err)
{
    struct arena scratch SCOPED(arena_release) = arena_of(16 * 1024, SIZE_MAX);
    enum code rc = add_blob(image, &image->head.document, true, arena);
    for (size_t i = 0; !rc && i < image->events.count; i++) {
        const struct record *record = &image->events.items[i];
        struct moment moment;
        struct seal seal;
        if (!may_refer(record->bytes)) continue;
        arena_reset(&scratch);
        // What is no event is found by the check of the chain.
        if (contract_decode(image->head.vocabulary, record->bytes, &scratch, &moment, &seal, NULL, NULL)) continue;
        if (moment.has_blob) rc = add_blob(image, &moment.blob, false, arena);
        if (!rc && moment.start) rc = add_parts(image, &moment.start->parts, arena);
        if (!rc && moment.run_ref.len && moment.kind != MOMENT_STEP_COMPLETED)
            rc = add_child(image, moment.run_ref, arena);
    }
    return rc ? error_nomem(err) : OK;
}

static enum code read_all(struct store *store, const struct run_head *head, bool ledger, struct arena *arena,
                          struct records *out, uint64_t *size, struct error *err)
{
    uint64_t count = ledger ? head->last_ledger_seq : head->last_seq;
    struct record_range range = {.tenant = head->ids.tenant, .run = head->ids.run, .ledger = ledger};
    out->items = ARENA_ARRAY(arena, (size_t)count + 1, struct record);
    if (!out->items) return error_nomem(err);
    while (out->count < count) {
        struct records page;
        range.after = out->count;
        range.limit = count - out->count < READ_PAGE ? (size_t)(count - out->count) : READ_PAGE;
        enum code rc = store_read(store, &range, arena, &page, err);
        if (rc) return rc;
        bool hole = page.count == 0;
        for (size_t i = 0; i < page.count && !hole; i++) {
            hole = (ledger ? page.items[i].ledger_seq : page.items[i].seq) != out->count + 1;
            if (hole) break;
            *size += page.items[i].bytes.len;
            out->items[out->count++] = page.items[i];
        }
        if (hole)
            return error_set(err, E_CORRUPT, "run %.*s, %s %zu: it is missing", STR_ARG(head->ids.run),
                             ledger ? "ledger entry" : "event", out->count + 1);
    }
    return OK;
}

enum code archive_read_at(struct store *store, const struct run_head *head, struct arena *arena, struct run_image *out,
                          struct error *err)
{
    *out = (struct run_image){.head = *head};
    enum code rc = read_all(store, head, false, arena, &out->events, &out->size, err);
    if (!rc) rc = read_all(store, head, true, arena, &out->ledger, &out->size, err);
    return rc ? rc : find_references(out, arena, err);
}

enum code archive_read(struct store *store, struct str tenant, struct str run, struct arena *arena,
                       struct run_image *out, struct error *err)
{
    struct run_head head;
    enum code rc = store_head(store, tenant, run, arena, &head, err);
    return rc ? rc : archive_read_at(store, &head, arena, out, err);
}
