// Runs into a bundle. Headers and hashes come before what they tell of, so everything is read twice: once to measure it, once to write it.
// Between the two a run may go on; both readings end where the head was at first.
#include "archive/archive.h"

#include "base/map.h"
#include "base/text.h"
#include "json/make.h"
#include "store/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    char path[SHA256_HEX + 16];
    uint64_t size;
    struct digest hash;
};

struct export
{
    struct store *store;
    const struct export_options *options;
    struct export_report *report;
    struct arena *kept;   // of the caller
    struct arena scratch; // of one run
    struct error *err;
    struct run_head *runs;
    size_t run_count, run_capacity;
    struct map known; // "tenant/run", of runs
    struct digest *blobs;
    size_t blob_count, blob_capacity;
    struct member *members;
    size_t member_count, member_capacity;
    struct buf text; // the member that is being made
};

// ---- which runs

static enum code add_run(struct export *export, struct str tenant, struct str run, bool must)
{
    struct run_head head;
    struct error why = {0};
    enum code rc = store_head(export->store, tenant, run, export->kept, &head, &why);
    if (rc == E_NOT_FOUND && !must) return OK; // a child that was never started
    if (rc) return error_set(export->err, rc, "%s", why.message);
    struct buf key = buf_of(1024);
    buf_printf(&key, "%.*s/%.*s", STR_ARG(tenant), STR_ARG(run));
    struct str name = buf_keep(&key, export->kept);
    uint32_t before = MAP_NONE;
    if (!name.ptr || !map_put(&export->known, name, 1, &before)) return error_nomem(export->err);
    if (before != MAP_NONE) return OK;
    if (!ARENA_ROOM(export->kept, export->runs, export->run_count, &export->run_capacity))
        return error_nomem(export->err);
    export->runs[export->run_count++] = head;
    return OK;
}

static enum code add_blobs(struct export *export, const struct run_image *image)
{
    for (size_t i = 0; i < image->blob_count; i++) {
        // A redacted bundle has documents, but no results.
        if (export->options->contract && !image->blobs[i].document) continue;
        if (!ARENA_ROOM(export->kept, export->blobs, export->blob_count, &export->blob_capacity))
            return error_nomem(export->err);
        export->blobs[export->blob_count++] = image->blobs[i].sha256;
    }
    return OK;
}

// ---- members

static void add_name(struct buf *out, char before, const char *name)
{
    buf_byte(out, before);
    json_write_string(out, str_from(name));
    buf_byte(out, ':');
}

static void add_event(struct export *export, const struct run_head *head, const struct record *record, enum code *rc)
{
    struct str bytes = record->bytes;
    bool changed = false;
    struct redaction how = {.contract = export->options->contract};
    if (how.contract) {
        *rc = archive_redact(&how, head, record, &export->scratch, &bytes, &changed, export->err);
        if (*rc) return;
    }
    if (!changed) {
        buf_add(&export->text, record->bytes);
    } else {
        char hex[SHA256_HEX + 1];
        digest_hex(&record->hash, hex);
        // The record is text already and stays as it is, so the object around it is put together here.
        add_name(&export->text, '{', "record");
        buf_add(&export->text, bytes);
        add_name(&export->text, ',', "redacted");
        add_name(&export->text, '{', "hash");
        json_write_string(&export->text, str_from(hex));
        buf_text(&export->text, "}}");
        export->report->redacted_count++;
    }
    buf_byte(&export->text, '\n');
}

static enum code make_events(struct export *export, const struct run_image *image)
{
    enum code rc = OK;
    buf_clear(&export->text);
    for (size_t i = 0; i < image->events.count && !rc; i++)
        add_event(export, &image->head, &image->events.items[i], &rc);
    return rc ? rc : buf_ok(&export->text) ? OK : error_nomem(export->err);
}

static enum code make_ledger(struct export *export, const struct run_image *image)
{
    struct redaction how = {.contract = export->options->contract};
    buf_clear(&export->text);
    for (size_t i = 0; i < image->ledger.count; i++) {
        struct record entry = image->ledger.items[i];
        enum code rc =
            how.contract ? archive_redact_entry(&how, &entry, &export->scratch, &entry.bytes, export->err) : OK;
        if (rc) return rc;
        bundle_ledger_write(&entry, &export->text);
    }
    return buf_ok(&export->text) ? OK : error_nomem(export->err);
}

static enum code make_runs(struct export *export)
{
    buf_clear(&export->text);
    for (size_t i = 0; i < export->run_count; i++) {
        struct run_head head = export->runs[i];
        if (export->options->contract) head.summary.cause[0] = '\0';
        arena_reset(&export->scratch);
        if (!bundle_run_write(&head, &export->scratch, &export->text)) return error_nomem(export->err);
    }
    return OK;
}

static enum code make_manifest(struct export *export)
{
    arena_reset(&export->scratch);
    struct json manifest = JSON_OF(&export->scratch, {"events", json_count(export->report->event_count)},
                                   {"format", json_word("cairn-bundle")},
                                   {"redacted", json_bool(export->options->contract != NULL)},
                                   {"runs", json_count(export->run_count)}, {"version", json_int(BUNDLE_VERSION)});
    buf_clear(&export->text);
    json_canon(&export->text, &manifest);
    buf_byte(&export->text, '\n');
    return buf_ok(&export->text) ? OK : error_nomem(export->err);
}

static void event_path(size_t run, const char *name, struct member *out)
{
    snprintf(out->path, sizeof(out->path), "runs/%zu/%s", run + 1, name);
}

// Notes the size and the hash of what is in export->text.
static enum code measure(struct export *export, struct member member, struct str bytes)
{
    member.size = bytes.len;
    member.hash = sha256(bytes);
    if (member.size > BUNDLE_MEMBER_MAX) return error_set(export->err, E_LIMIT, "%s is larger than 8 GiB", member.path);
    if (!ARENA_ROOM(export->kept, export->members, export->member_count, &export->member_capacity))
        return error_nomem(export->err);
    export->members[export->member_count++] = member;
    return OK;
}

// ---- the first reading

static enum code measure_run(struct export *export, size_t i)
{
    struct run_image image;
    struct member member = {0};
    arena_reset(&export->scratch);
    enum code rc = archive_read_at(export->store, &export->runs[i], &export->scratch, &image, export->err);
    if (!rc) rc = add_blobs(export, &image);
    for (size_t k = 0; !rc && export->options->children && k < image.child_count; k++)
        rc = add_run(export, export->runs[i].ids.tenant, image.children[k], false);
    if (!rc) rc = make_events(export, &image);
    event_path(i, "events.jsonl", &member);
    if (!rc) rc = measure(export, member, buf_str(&export->text));
    if (rc || image.ledger.count == 0) return rc;
    rc = make_ledger(export, &image);
    event_path(i, "ledger.jsonl", &member);
    return rc ? rc : measure(export, member, buf_str(&export->text));
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_SIZE);
}

static enum code blob_member(struct export *export, const struct digest *digest, struct str *bytes, struct member *out)
{
    char hex[SHA256_HEX + 1];
    digest_hex(digest, hex);
    snprintf(out->path, sizeof(out->path), "blobs/%s", hex);
    arena_reset(&export->scratch);
    return store_blob(export->store, digest, &export->scratch, bytes, export->err);
}

static enum code measure_blobs(struct export *export)
{
    size_t count = 0;
    enum code rc = OK;
    if (export->blob_count) qsort(export->blobs, export->blob_count, sizeof(*export->blobs), compare_digests);
    for (size_t i = 0; i < export->blob_count && !rc; i++) {
        struct member member = {0};
        struct str bytes;
        if (count > 0 && digest_eq(&export->blobs[i], &export->blobs[count - 1])) continue;
        rc = blob_member(export, &export->blobs[i], &bytes, &member);
        if (!rc) rc = measure(export, member, bytes);
        export->blobs[count++] = export->blobs[i];
    }
    export->blob_count = count;
    export->report->blob_count = count;
    return rc;
}

static enum code measure_all(struct export *export)
{
    enum code rc = OK;
    for (size_t i = 0; i < export->run_count && !rc; i++) { // children are added meanwhile
        rc = measure_run(export, i);
        export->report->event_count += export->runs[i].last_seq;
    }
    export->report->run_count = export->run_count;
    return rc ? rc : measure_blobs(export);
}

// ---- the second reading

static enum code put(struct export *export, struct str bytes)
{
    export->report->byte_count += bytes.len;
    return export->options->write(export->options->context, bytes, export->err);
}

static enum code put_member(struct export *export, const char *path, struct str bytes)
{
    static const char zeros[BUNDLE_BLOCK];
    uint8_t header[BUNDLE_BLOCK];
    if (!bundle_header(str_from(path), bytes.len, header))
        return error_set(export->err, E_LIMIT, "%s does not fit a bundle", path);
    enum code rc = put(export, (struct str){(const char *)header, sizeof(header)});
    if (!rc && bytes.len) rc = put(export, bytes);
    size_t padding = (size_t)bundle_padding(bytes.len);
    return rc || !padding ? rc : put(export, (struct str){zeros, padding});
}

static enum code put_measured(struct export *export, const struct member *member, struct str bytes)
{
    struct digest hash = sha256(bytes);
    if (bytes.len != member->size || !digest_eq(&hash, &member->hash))
        return error_set(export->err, E_CONFLICT, "%s changed while it was being exported", member->path);
    return put_member(export, member->path, bytes);
}

static enum code put_run(struct export *export, size_t i, size_t *at)
{
    struct run_image image;
    arena_reset(&export->scratch);
    enum code rc = archive_read_at(export->store, &export->runs[i], &export->scratch, &image, export->err);
    if (!rc) rc = make_events(export, &image);
    if (!rc) rc = put_measured(export, &export->members[(*at)++], buf_str(&export->text));
    if (rc || image.ledger.count == 0) return rc;
    rc = make_ledger(export, &image);
    return rc ? rc : put_measured(export, &export->members[(*at)++], buf_str(&export->text));
}

static void add_sum(struct buf *out, const struct digest *hash, const char *path)
{
    char hex[SHA256_HEX + 1];
    digest_hex(hash, hex);
    buf_printf(out, "%s  %s\n", hex, path);
}

static enum code put_signature(struct export *export, struct str sums)
{
    uint8_t signature[SIGNATURE_SIZE];
    struct str pem;
    if (!export->options->sign) return OK;
    enum code rc = key_sign(export->options->sign, sums, signature, export->err);
    if (!rc) rc = put_member(export, BUNDLE_SIGNATURE, (struct str){(const char *)signature, sizeof(signature)});
    if (!rc) rc = key_pem(export->options->sign, false, &export->scratch, &pem, export->err);
    return rc ? rc : put_member(export, BUNDLE_KEY, pem);
}

// SHA256SUMS, the signature of it, and the two members that tell of all runs.
static enum code put_front(struct export *export)
{
    struct buf sums SCOPED(buf_release) = buf_of(SIZE_MAX / 4);
    struct buf runs SCOPED(buf_release) = buf_of(SIZE_MAX / 4);
    enum code rc = make_runs(export);
    buf_add(&runs, buf_str(&export->text));
    if (!rc) rc = make_manifest(export);
    struct digest manifest_hash = sha256(buf_str(&export->text)), runs_hash = sha256(buf_str(&runs));
    add_sum(&sums, &manifest_hash, BUNDLE_MANIFEST);
    add_sum(&sums, &runs_hash, BUNDLE_RUNS);
    for (size_t i = 0; i < export->member_count; i++) add_sum(&sums, &export->members[i].hash, export->members[i].path);
    if (!rc && (!buf_ok(&sums) || !buf_ok(&runs))) rc = error_nomem(export->err);
    if (!rc) rc = put_member(export, BUNDLE_SUMS, buf_str(&sums));
    if (!rc) rc = put_signature(export, buf_str(&sums));
    if (!rc) rc = put_member(export, BUNDLE_MANIFEST, buf_str(&export->text));
    if (!rc) rc = put_member(export, BUNDLE_RUNS, buf_str(&runs));
    return rc;
}

static enum code put_all(struct export *export)
{
    static const char end[2 * BUNDLE_BLOCK];
    size_t at = 0;
    uint64_t redacted = export->report->redacted_count; // counted once
    enum code rc = put_front(export);
    for (size_t i = 0; i < export->run_count && !rc; i++) rc = put_run(export, i, &at);
    for (size_t i = 0; i < export->blob_count && !rc; i++, at++) {
        struct member member = {0};
        struct str bytes;
        rc = blob_member(export, &export->blobs[i], &bytes, &member);
        if (!rc) rc = put_measured(export, &export->members[at], bytes);
    }
    export->report->redacted_count = redacted;
    return rc ? rc : put(export, (struct str){end, sizeof(end)});
}

enum code archive_export(struct store *store, const struct export_options *options, struct arena *arena,
                         struct export_report *out, struct error *err)
{
    *out = (struct export_report){0};
    struct export export = {.store = store, .options = options, .report = out, .kept = arena, .err = err};
    arena_init(&export.scratch, 1 << 16, SIZE_MAX);
    buf_init(&export.text, SIZE_MAX / 4);
    map_init(&export.known, arena);
    enum code rc = OK;
    for (size_t i = 0; i < options->run_count && !rc; i++)
        rc = add_run(&export, options->runs[i].tenant, options->runs[i].run, true);
    if (!rc) rc = measure_all(&export);
    if (!rc) rc = put_all(&export);
    buf_release(&export.text);
    arena_release(&export.scratch);
    return rc;
}
