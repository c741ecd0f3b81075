// Removing runs. The slot becomes the tombstone, by a frame of the journal like every change; then the files go. The journal is begun anew
// before: no frame that recovery applies again may tell of lines of a run that is gone. A crash between the two leaves files that the
// next opening removes.
#include "store/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum code remove_if_there(struct files_store *files, const char *path, struct error *err)
{
    struct error told = {.code = OK};
    enum code rc = files->disk->ops->remove(files->disk, path, &told);
    return rc == OK || rc == E_NOT_FOUND ? OK : error_set(err, rc, "%s", told.message);
}

enum code files_forget(struct files_store *files, const struct disk_slot *slot, struct error *err)
{
    INVARIANT(slot->flags & SLOT_REMOVED);
    static const char *const names[] = {"events.jsonl", "ledger.jsonl"};
    struct run_head head;
    struct disk_slot twin;
    uint64_t position = 0;
    char path[PATH_SIZE];
    struct arena arena SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    enum code rc = files_decode_slot(files, slot, &arena, &head, err);
    if (rc == OK) rc = files_find(files, head.ids.tenant, head.ids.run, &position, &twin, err);
    for (size_t i = 0; rc == OK && position == 0 && i < ARRAY_COUNT(names); i++) {
        rc = files_run_path(head.ids.tenant, head.ids.run, names[i], path, err);
        if (rc == OK) rc = remove_if_there(files, path, err);
    }
    // Artifacts and logs of steps may still be in the directory: the command that removes runs removes them, too.
    if (rc == OK && position == 0 && files_run_path(head.ids.tenant, head.ids.run, "", path, NULL) == OK)
        (void)!files->disk->ops->remove(files->disk, path, NULL);
    return rc;
}

static void make_tombstone(struct disk_slot *slot, uint64_t batch, int64_t now_ms, struct str reason)
{
    size_t room = sizeof(slot->text) - slot->names_size;
    size_t size = reason.len < 159 ? reason.len : 159;
    if (size > room) size = room;
    slot->flags |= SLOT_REMOVED;
    slot->batch = batch;
    slot->events_size = slot->ledger_size = 0;
    slot->updated_ms = now_ms;
    memset(slot->text + slot->names_size, 0, room);
    memcpy(slot->text + slot->names_size, reason.ptr, size);
    slot->cause_size = (uint16_t)size;
    slot_seal(slot);
}

static enum code build_frame(struct files_store *files, const struct run_name *runs, size_t count, int64_t now_ms,
                             struct str reason, struct disk_slot *slots, struct error *err)
{
    INVARIANT(count > 0);
    struct frame_header header = {.magic = FRAME_MAGIC, .run_count = (uint32_t)count};
    struct buf *frame = &files->frame;
    buf_clear(frame);
    buf_add(frame, (struct str){(const char *)&header, sizeof(header)});
    for (size_t i = 0; i < count; i++) {
        uint64_t position;
        enum code rc = files_need(files, runs[i].tenant, runs[i].run, &position, &slots[i], err);
        if (rc == OK && files->entries[position - 1].active)
            rc = error_set(err, E_LOCKED, "run %.*s is in use", STR_ARG(runs[i].run));
        if (rc != OK) return rc;
        make_tombstone(&slots[i], files->journal.next_batch, now_ms, reason);
        struct frame_run run = {.position = position, .names_offset = files->names_size};
        buf_add(frame, (struct str){(const char *)&run, sizeof(run)});
        buf_add(frame, (struct str){(const char *)&slots[i], SLOT_SIZE});
    }
    if (!buf_ok(frame)) return error_nomem(err);
    header.size = (uint32_t)frame->len;
    memcpy(frame->ptr, &header, sizeof(header));
    return OK;
}

static void mark_entries(struct files_store *files, const struct disk_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct run_entry *entry = &files->entries[slots[i].position - 1];
        entry->index.flags = slots[i].flags & SLOT_INDEXED;
        index_seal(&entry->index);
        entry->index_dirty = true;
    }
}

enum code files_remove(struct store *base, const struct run_name *runs, size_t count, int64_t now_ms, struct str reason,
                       struct error *err)
{
    INVARIANT(files_of(base)->writer && count > 0);
    struct files_store *files = files_of(base);
    struct disk_slot *slots = malloc(count * sizeof(*slots));
    if (!slots) return error_nomem(err);
    enum code rc = files_flush(files, err);
    if (rc == OK) rc = journal_checkpoint(files, err);
    if (rc == OK) rc = build_frame(files, runs, count, now_ms, reason, slots, err);
    if (rc == OK) rc = journal_append(files, err);
    if (rc == OK) {
        mark_entries(files, slots, count);
        files_close_cached(files, 0);
        rc = files_settle(files, err);
    }
    for (size_t i = 0; rc == OK && i < count; i++) rc = files_forget(files, &slots[i], err);
    free(slots);
    return rc;
}

enum code files_tombstones(struct store *base, struct arena *arena, struct tombstones *out, struct error *err)
{
    struct files_store *files = files_of(base);
    size_t capacity = 0;
    enum code rc = files_refresh(files, err);
    for (uint64_t position = 1; rc == OK && position <= files->run_count; position++) {
        struct disk_slot slot;
        struct run_head head;
        if (files_read_slot(files, position, &slot, NULL) != OK || !(slot.flags & SLOT_REMOVED)) continue;
        rc = files_decode_slot(files, &slot, arena, &head, err);
        struct tombstone one = {.tenant = head.ids.tenant,
                                .run = head.ids.run,
                                .reason = str_from(head.summary.cause),
                                .position = position,
                                .last_seq = slot.last_seq,
                                .last_ledger_seq = slot.ledger_seq,
                                .head = head.head,
                                .ledger_head = head.ledger_head,
                                .removed_ms = slot.updated_ms};
        if (rc == OK && !tombstone_add(out, &capacity, arena, &one)) rc = error_nomem(err);
    }
    return rc;
}

struct blob_walk {
    struct files_store *files;
    struct arena *arena;
    struct digests *out;
};

static enum code see_blob(void *context, struct str name, bool directory)
{
    struct blob_walk *walk = context;
    struct digest digest;
    char path[64];
    if (!directory) return !digest_parse(name, &digest) || digest_add(walk->out, walk->arena, &digest) ? OK : E_NOMEM;
    if (snprintf(path, sizeof(path), ".cairn/blobs/%.*s", STR_ARG(name)) >= (int)sizeof(path)) return OK;
    return walk->files->disk->ops->list(walk->files->disk, path, see_blob, walk, NULL);
}

enum code files_blobs(struct store *base, struct arena *arena, struct digests *out, struct error *err)
{
    struct blob_walk walk = {files_of(base), arena, out};
    struct error told = {.code = OK};
    enum code rc = walk.files->disk->ops->list(walk.files->disk, ".cairn/blobs", see_blob, &walk, &told);
    return rc == OK || rc == E_NOT_FOUND ? OK : error_set(err, rc, "cannot list blobs: %s", code_text(rc));
}

// The writer has the store for itself, so no other process is about to use a blob. Documents of runs are kept whatever the caller says.
static bool is_document(struct files_store *files, const struct digest *digest)
{
    for (uint64_t position = 1; position <= files->run_count; position++) {
        struct disk_slot slot;
        if (files_read_slot(files, position, &slot, NULL) == OK && !(slot.flags & SLOT_REMOVED) &&
            memcmp(slot.document, digest->b, SHA256_SIZE) == 0)
            return true;
    }
    return false;
}

enum code files_drop_blobs(struct store *base, const struct digest *blobs, size_t count, uint64_t *bytes,
                           struct error *err)
{
    struct files_store *files = files_of(base);
    const struct disk_ops *ops = files->disk->ops;
    enum code rc = OK;
    for (size_t i = 0; rc == OK && i < count; i++) {
        char path[PATH_SIZE], dir[32];
        struct file *file;
        uint64_t size = 0;
        files_blob_path(&blobs[i], "", path, dir);
        if (is_document(files, &blobs[i]) || ops->open(files->disk, path, OPEN_READ, &file, NULL) != OK) continue;
        rc = ops->size(file, &size, err);
        ops->close(file);
        if (rc == OK) rc = remove_if_there(files, path, err);
        if (rc == OK) *bytes += size;
    }
    return rc;
}

// ---- space

struct tally {
    struct files_store *files;
    const char *dir;
    uint64_t bytes, count;
};

static enum code see(void *context, struct str name, bool directory)
{
    struct tally *tally = context;
    char path[PATH_SIZE];
    if (snprintf(path, sizeof(path), "%s/%.*s", tally->dir, STR_ARG(name)) >= (int)sizeof(path)) return OK;
    if (directory) {
        struct tally below = {.files = tally->files, .dir = path};
        enum code rc = tally->files->disk->ops->list(tally->files->disk, path, see, &below, NULL);
        tally->bytes += below.bytes;
        tally->count += below.count;
        return rc == E_NOT_FOUND ? OK : rc;
    }
    struct file *file;
    uint64_t size = 0;
    if (tally->files->disk->ops->open(tally->files->disk, path, OPEN_READ, &file, NULL) != OK) return OK;
    if (tally->files->disk->ops->size(file, &size, NULL) == OK) tally->bytes += size;
    tally->files->disk->ops->close(file);
    tally->count++;
    return OK;
}

static bool add_dir(struct files_store *files, const char *what, const char *dir, struct arena *arena,
                    struct usages *out)
{
    struct tally tally = {.files = files, .dir = dir};
    (void)!files->disk->ops->list(files->disk, dir, see, &tally, NULL);
    return usage_add(out, arena, what, tally.bytes, tally.count);
}

static bool add_file(struct files_store *files, const char *what, const char *path, struct arena *arena,
                     struct usages *out)
{
    struct file *file;
    uint64_t size = 0;
    if (files->disk->ops->open(files->disk, path, OPEN_READ, &file, NULL) == OK) {
        (void)!files->disk->ops->size(file, &size, NULL);
        files->disk->ops->close(file);
    }
    return usage_add(out, arena, what, size, 0);
}

enum code files_usage(struct store *base, struct arena *arena, struct usages *out, struct error *err)
{
    struct files_store *files = files_of(base);
    uint64_t events = 0, ledger = 0;
    enum code rc = files_refresh(files, err);
    for (uint64_t position = 1; rc == OK && position <= files->run_count; position++) {
        struct disk_slot slot;
        if (files_read_slot(files, position, &slot, NULL) != OK) continue;
        events += slot.events_size;
        ledger += slot.ledger_size;
    }
    if (rc != OK) return rc;
    bool ok =
        usage_add(out, arena, "events", events, 0) && usage_add(out, arena, "ledger", ledger, 0) &&
        add_file(files, "journal", ".cairn/journal", arena, out) &&
        add_file(files, "slots", ".cairn/runs", arena, out) && add_file(files, "index", ".cairn/index", arena, out) &&
        add_file(files, "names", ".cairn/names", arena, out) && add_file(files, "feed", ".cairn/feed", arena, out) &&
        add_file(files, "notes", ".cairn/notes", arena, out) && add_dir(files, "blobs", ".cairn/blobs", arena, out) &&
        add_dir(files, "signals waiting", ".cairn/inbox", arena, out) &&
        add_dir(files, "quarantine", ".cairn/quarantine", arena, out);
    return ok ? OK : error_nomem(err);
}
