// Copying is reading a run whole and letting the other store take it over (S13). Runs travel in batches, oldest first, so that they
// stand in the new store in the order in which they were made.
#include "archive/archive.h"

#include "base/map.h"

#include <stdio.h>

enum { LIST_PAGE = 1000, BATCH_RUNS = 256 };
#define BATCH_SIZE ((uint64_t)16 << 20)

struct copy {
    struct store *from, *to;
    const struct copy_options *options;
    struct copy_report *report;
    struct arena *kept;       // of the caller: names, faults
    struct arena batch_arena; // of the batch
    struct run_name *names;   // newest first
    size_t name_count, name_capacity;
    struct run_image images[BATCH_RUNS];
    struct run_import imports[BATCH_RUNS];
    size_t count; // in the batch
    uint64_t size;
    struct map seen; // blobs that were sent
    struct append_blob *blobs;
    size_t blob_count, blob_capacity;
    struct error *err;
};

static enum code note(struct copy *copy, struct str run, const char *what)
{
    struct copy_report *report = copy->report;
    if (!ARENA_ROOM(copy->kept, report->faults, report->fault_count, &report->fault_capacity))
        return error_nomem(copy->err);
    struct copy_fault fault = {run, str_from(what)};
    if (!ARENA_KEEP(copy->kept, &fault.run, &fault.what)) return error_nomem(copy->err);
    report->faults[report->fault_count++] = fault;
    return OK;
}

static enum code list_runs(struct copy *copy)
{
    struct run_filter filter = {.tenant = copy->options->tenant, .limit = LIST_PAGE};
    struct arena page SCOPED(arena_release) = arena_of(64 * 1024, SIZE_MAX);
    enum code rc = OK;
    do {
        struct run_heads heads;
        arena_reset(&page);
        rc = store_list(copy->from, &filter, &page, &heads, copy->err);
        for (size_t i = 0; !rc && i < heads.count; i++) {
            const struct run_ids *ids = &heads.items[i].ids;
            struct run_name name = {ids->tenant, ids->run};
            if (!ARENA_KEEP(copy->kept, &name.tenant, &name.run) ||
                !ARENA_ROOM(copy->kept, copy->names, copy->name_count, &copy->name_capacity))
                rc = error_nomem(copy->err);
            else
                copy->names[copy->name_count++] = name;
        }
        filter.before = heads.next;
    } while (!rc && filter.before);
    return rc;
}

// Blobs that the batch needs and that were not sent before. One that the source does not have is left for verify to tell.
static enum code take_blobs(struct copy *copy, const struct run_image *image)
{
    for (size_t i = 0; i < image->blob_count; i++) {
        struct str key = arena_copy(copy->kept, (struct str){(const char *)image->blobs[i].sha256.b, SHA256_SIZE});
        struct append_blob blob = {.sha256 = image->blobs[i].sha256};
        uint32_t before = MAP_NONE;
        if (!key.ptr || !map_put(&copy->seen, key, 1, &before)) return error_nomem(copy->err);
        if (before != MAP_NONE) continue;
        struct error why = {0};
        enum code rc = store_blob(copy->from, &blob.sha256, &copy->batch_arena, &blob.bytes, &why);
        if (rc == E_NOT_FOUND || rc == E_CORRUPT) continue;
        if (rc) return error_set(copy->err, rc, "cannot read a blob: %s", why.message);
        if (!ARENA_ROOM(&copy->batch_arena, copy->blobs, copy->blob_count, &copy->blob_capacity))
            return error_nomem(copy->err);
        copy->blobs[copy->blob_count++] = blob;
        copy->size += blob.bytes.len;
    }
    return OK;
}

typedef enum code (*run_dir)(const struct store *, const struct run_ids *, struct arena *, struct str *);

static enum code copy_files(struct copy *copy, const struct run_ids *ids)
{
    static const run_dir dirs[] = {store_artifacts_dir, store_logs_dir};
    for (size_t i = 0; i < ARRAY_COUNT(dirs); i++) {
        struct str from = {0}, to = {0};
        enum code rc = dirs[i](copy->from, ids, &copy->batch_arena, &from);
        if (!rc) rc = dirs[i](copy->to, ids, &copy->batch_arena, &to);
        if (!rc && from.len && to.len)
            rc = tree_copy(from.ptr, to.ptr, &copy->report->file_count, &copy->report->byte_count, copy->err);
        if (rc) return rc == E_NOMEM ? error_nomem(copy->err) : rc;
    }
    return OK;
}

static void count(struct copy *copy, const struct run_import *import)
{
    struct copy_report *report = copy->report;
    report->new_count += import->result == IMPORT_NEW;
    report->same_count += import->result == IMPORT_SAME;
    report->extended_count += import->result == IMPORT_EXTENDED;
    if (import->result != IMPORT_SAME) report->event_count += import->event_count;
}

static bool is_of_one_run(enum code rc)
{
    return rc == E_CORRUPT || rc == E_CONFLICT || rc == E_LOCKED || rc == E_LIMIT;
}

// The batch, or when one of its runs cannot be taken, run by run.
static enum code send(struct copy *copy, size_t first, size_t count_sent)
{
    struct error why = {0};
    struct arena turn SCOPED(arena_release) = arena_of(64 * 1024, SIZE_MAX);
    enum code rc =
        store_import(copy->to, &copy->imports[first], count_sent, copy->blobs, copy->blob_count, &turn, &why);
    if (rc == OK) {
        for (size_t i = first; i < first + count_sent; i++) count(copy, &copy->imports[i]);
        copy->report->blob_count += copy->blob_count;
        copy->blob_count = 0;
        return OK;
    }
    if (!is_of_one_run(rc)) return error_set(copy->err, rc, "%s", why.message);
    if (count_sent == 1) return note(copy, copy->imports[first].head->ids.run, why.message);
    rc = OK;
    for (size_t i = first; !rc && i < first + count_sent; i++) rc = send(copy, i, 1);
    return rc;
}

static enum code flush(struct copy *copy)
{
    enum code rc = copy->count ? send(copy, 0, copy->count) : OK;
    if (!rc && copy->blob_count) // of runs that were left out; others may need them
        rc = store_import(copy->to, NULL, 0, copy->blobs, copy->blob_count, &copy->batch_arena, copy->err);
    for (size_t i = 0; !rc && copy->options->files && i < copy->count; i++)
        rc = copy_files(copy, &copy->images[i].head.ids);
    copy->report->byte_count += copy->size;
    copy->count = 0;
    copy->size = 0;
    copy->blobs = NULL;
    copy->blob_count = copy->blob_capacity = 0;
    arena_reset(&copy->batch_arena);
    if (!rc && copy->options->tell) copy->options->tell(copy->options->context, copy->report, copy->name_count);
    return rc;
}

// Whether the run is there as it is, judged by the heads alone.
static enum code is_there(struct copy *copy, const struct run_name *name, bool *there)
{
    struct run_head here = {0}, head = {0};
    struct arena scratch SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    *there = false;
    enum code rc = store_head(copy->to, name->tenant, name->run, &scratch, &here, NULL);
    if (!rc) rc = store_head(copy->from, name->tenant, name->run, &scratch, &head, copy->err);
    if (!rc)
        *there = digest_eq(&here.head, &head.head) && digest_eq(&here.ledger_head, &head.ledger_head) &&
                 here.last_seq == head.last_seq && here.last_ledger_seq == head.last_ledger_seq;
    return rc == E_NOT_FOUND ? OK : rc;
}

static enum code take_run(struct copy *copy, const struct run_name *name)
{
    bool there;
    enum code rc = is_there(copy, name, &there);
    if (rc || there) {
        copy->report->same_count += there;
        return rc;
    }
    struct run_image *image = &copy->images[copy->count];
    struct error why = {0};
    rc = archive_read(copy->from, name->tenant, name->run, &copy->batch_arena, image, &why);
    if (rc == E_CORRUPT || rc == E_NOT_FOUND) return note(copy, name->run, why.message);
    if (rc) return error_set(copy->err, rc, "%s", why.message);
    if (copy->options->mark && !image->head.terminal)
        snprintf(image->head.summary.substatus, sizeof(image->head.summary.substatus), "%s", STANDING_IMPORTED);
    copy->imports[copy->count++] = (struct run_import){.head = &image->head,
                                                       .events = image->events.items,
                                                       .event_count = image->events.count,
                                                       .ledger = image->ledger.items,
                                                       .ledger_count = image->ledger.count,
                                                       .extend = copy->options->extend};
    copy->size += image->size;
    rc = take_blobs(copy, image);
    if (!rc && (copy->count == BATCH_RUNS || copy->size >= BATCH_SIZE)) rc = flush(copy);
    return rc;
}

enum code archive_copy(struct store *from, struct store *to, const struct copy_options *options, struct arena *arena,
                       struct copy_report *out, struct error *err)
{
    *out = (struct copy_report){0};
    struct copy *copy = ARENA_NEW(arena, struct copy);
    if (!copy) return error_nomem(err);
    copy->from = from;
    copy->to = to;
    copy->options = options;
    copy->report = out;
    copy->kept = arena;
    copy->err = err;
    map_init(&copy->seen, arena);
    arena_init(&copy->batch_arena, 1 << 20, SIZE_MAX);
    enum code rc = list_runs(copy);
    for (size_t i = copy->name_count; !rc && i > 0; i--) rc = take_run(copy, &copy->names[i - 1]);
    if (!rc) rc = flush(copy);
    arena_release(&copy->batch_arena);
    return rc;
}
