// Opening for writing: the journal is applied again, then every slot is looked at, then the files of the runs that the journal speaks
// of. All of it can be cut short anywhere and done again.
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// A frame whose checksum is right says only things that this code could have written; everything else is damage.
static enum code check_frame(struct files_store *files, struct str frame, struct error *err)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    uint64_t runs = 0, names = 0;
    enum code rc = files->disk->ops->size(files->runs, &runs, err);
    if (rc == OK) rc = files->disk->ops->size(files->names, &names, err);
    if (rc != OK) return rc;
    bool fine = frame_begin(frame, &header, &cursor);
    uint64_t count = runs / SLOT_SIZE;
    while (fine && frame_next(&cursor, &part)) {
        const struct frame_run *run = &part.run;
        if (run->position == count + 1) count++;
        fine = run->position >= 1 && run->position <= count && slot_valid(&part.slot, run->position) &&
               part.slot.batch == header.batch && run->events_offset + run->events_size == part.slot.events_size &&
               run->ledger_offset + run->ledger_size == part.slot.ledger_size &&
               (run->names_size == 0 || run->names_offset <= names);
        if (run->names_size && run->names_offset + run->names_size > names) names = run->names_offset + run->names_size;
    }
    if (!fine || cursor.left > 0 || cursor.rest.len > 0)
        return error_set(err, E_CORRUPT, "the journal holds a frame that makes no sense");
    return OK;
}

static enum code replay(struct files_store *files, struct str frame, struct error *err)
{
    INVARIANT(files->recovering);
    enum code rc = check_frame(files, frame, err);
    if (rc == OK) rc = frame_apply(files, frame, err);
    return rc;
}

enum code files_check_run(struct files_store *files, const struct disk_slot *slot, struct error *err)
{
    enum code rc = files_cut_tail(files, slot, RUN_EVENTS, err);
    if (rc == OK) rc = files_cut_tail(files, slot, RUN_LEDGER, err);
    return rc == OK ? files_check_last(files, slot, err) : rc;
}

static enum code check_touched(struct files_store *files, struct str frame, struct error *err)
{
    INVARIANT(files->writer && !files->recovering);
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    enum code rc = OK;
    if (!frame_begin(frame, &header, &cursor)) return error_set(err, E_CORRUPT, "a frame of the journal is malformed");
    while (rc == OK && frame_next(&cursor, &part)) {
        struct run_entry *entry = &files->entries[part.run.position - 1];
        if (entry->checked || entry->bad) continue;
        entry->checked = true;
        struct disk_slot slot;
        struct error told = {.code = OK};
        rc = files_read_slot(files, part.run.position, &slot, &told);
        if (rc == OK)
            rc = (slot.flags & SLOT_REMOVED) ? files_forget(files, &slot, &told) : files_check_run(files, &slot, &told);
        if (rc == E_CORRUPT)
            rc = files_quarantine(files, part.run.position, told.message, err);
        else if (rc != OK)
            rc = error_set(err, rc, "%s", told.message);
    }
    return rc;
}

// ---- before the first writer after a crash

static bool lies_there(struct files_store *files, struct file *file, uint64_t offset, struct str bytes)
{
    char there[4096];
    size_t got = 0;
    for (size_t at = 0; at < bytes.len; at += got) {
        size_t want = bytes.len - at < sizeof(there) ? bytes.len - at : sizeof(there);
        if (files->disk->ops->read(file, offset + at, there, want, &got, NULL) != OK || got != want ||
            memcmp(there, bytes.ptr + at, want) != 0)
            return false;
    }
    return true;
}

// After a power cut any of the writes of a frame may be there without the others. Lines and identities never change once they are written;
// the slot may be one of a later batch.
static bool part_is_applied(struct files_store *files, const struct frame_part *part, uint64_t batch)
{
    struct disk_slot slot;
    struct file *file;
    if (files_read_slot(files, part->run.position, &slot, NULL) != OK || slot.batch < batch ||
        !lies_there(files, files->names, part->run.names_offset, part->names))
        return false;
    if (slot.flags & SLOT_REMOVED) return true;
    if (files_open_run(files, &slot, RUN_EVENTS, false, &file, NULL) != OK ||
        !lies_there(files, file, part->run.events_offset, part->events))
        return false;
    return part->ledger.len == 0 || (files_open_run(files, &slot, RUN_LEDGER, false, &file, NULL) == OK &&
                                     lies_there(files, file, part->run.ledger_offset, part->ledger));
}

static enum code is_applied(struct files_store *files, struct str frame, struct error *err UNUSED)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    bool fine = frame_begin(frame, &header, &cursor);
    while (fine && frame_next(&cursor, &part)) fine = part_is_applied(files, &part, header.batch);
    return fine ? OK : E_CANCELLED; // seen enough
}

enum code files_is_behind(struct files_store *files, bool *behind, struct error *err)
{
    INVARIANT(!files->writer);
    struct error told = {.code = OK};
    *behind = false;
    if (!files->journal.file &&
        files->disk->ops->open(files->disk, ".cairn/journal", OPEN_READ, &files->journal.file, NULL) != OK) {
        files->journal.file = NULL; // the writer reports it
        return OK;
    }
    enum code rc = journal_look(files, is_applied, &told);
    files_close_cached(files, 0); // of files that recovery may put right
    *behind = rc == E_CANCELLED;
    return rc == OK || rc == E_CANCELLED ? OK : error_set(err, rc, "%s", told.message);
}

// ---- what a killed start left

struct sweep {
    struct files_store *files;
    const char *path;  // of the run's directory that is looked at
    bool bare;         // there is nothing in it but empty files of ours
};

static enum code see_inside(void *context, struct str name, bool directory)
{
    struct sweep *sweep = context;
    const struct disk_ops *ops = sweep->files->disk->ops;
    char path[PATH_SIZE];
    struct file *file;
    uint64_t size = 1;
    if (!directory && (str_is(name, "events.jsonl") || str_is(name, "ledger.jsonl")) &&
        snprintf(path, sizeof(path), "%s/%.*s", sweep->path, STR_ARG(name)) < (int)sizeof(path) &&
        ops->open(sweep->files->disk, path, OPEN_READ, &file, NULL) == OK) {
        (void)!ops->size(file, &size, NULL);
        ops->close(file);
    }
    sweep->bare = sweep->bare && size == 0;
    return OK;
}

static enum code sweep_run(void *context, struct str tenant, struct str run)
{
    struct sweep *sweep = context;
    static const char *const names[] = {"events.jsonl", "ledger.jsonl", ""};
    const struct disk_ops *ops = sweep->files->disk->ops;
    char path[PATH_SIZE];
    if (files_run_path(tenant, run, "", path, NULL) != OK) return OK;
    sweep->path = path;
    sweep->bare = true;
    enum code rc = ops->list(sweep->files->disk, path, see_inside, sweep, NULL);
    if (rc != OK || !sweep->bare) return rc == E_NOT_FOUND ? OK : rc;
    os_log(LOG_INFO, "what a start left that was never stored is removed run=%.*s", STR_ARG(run));
    for (size_t i = 0; rc == OK && i < ARRAY_COUNT(names); i++) {
        rc = files_run_path(tenant, run, names[i], path, NULL);
        if (rc == OK) rc = ops->remove(sweep->files->disk, path, NULL);
        if (rc == E_NOT_FOUND) rc = OK;
    }
    return rc;
}

enum code files_sweep(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer);
    struct sweep sweep = {.files = files};
    enum code rc = files_each_stranger(files, sweep_run, &sweep, NULL);
    return rc == OK ? OK : error_set(err, rc, "cannot look for what a start left: %s", code_text(rc));
}

// ---- recovery

// New runs would take the places of those that are gone, and the feed would tell of them what was another's.
static enum code check_count(struct files_store *files, struct error *err)
{
    INVARIANT(!files->pending);
    uint64_t told = 0, size = 0;
    enum code rc = files_speak_of(files, false, &told, err);
    if (rc == OK) rc = files->disk->ops->size(files->runs, &size, err);
    if (rc != OK || (told <= files->run_count && size % SLOT_SIZE == 0)) return rc;
    return error_set(err, E_CORRUPT,
                     ".cairn/runs ends after %" PRIu64 " runs, and there were %" PRIu64
                     ": the store can be read, and restored from a backup",
                     files->run_count, told > files->run_count ? told : files->run_count + 1);
}

enum code files_recover(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer);
    struct journal *journal = &files->journal;
    uint64_t size = 0;
    enum code rc = files->disk->ops->size(journal->file, &size, err);
    uint64_t feed_size = 0;
    if (rc == OK) rc = files->disk->ops->size(files->feed.file, &feed_size, err);
    if (rc != OK) return rc;
    // An empty journal is an operator's decision to go on with what the run files hold.
    bool fresh = size == 0;
    files->feed.behind = fresh || feed_size == 0;
    if (fresh) {
        journal->next_batch = UINT64_MAX;
        rc = feed_open(files, UINT64_MAX, err);
    } else {
        rc = journal_open(files, err);
        if (rc == OK) rc = feed_open(files, journal->header.first_batch, err);
        files->recovering = true;
        if (rc == OK) rc = journal_frames(files, replay, err);
        files->recovering = false;
        files->base.recovery.replayed_batches = journal->next_batch - journal->header.first_batch;
    }
    if (rc == OK) rc = files_load_slots(files, err);
    if (rc == OK) rc = files_load_quarantine(files, err);
    if (rc == OK)
        rc = fresh ? journal_create(files, files->batch_max + 1, err) : journal_frames(files, check_touched, err);
    if (rc == OK) rc = files->disk->ops->size(files->names, &files->names_size, err);
    buf_clear(&files->frame);
    if (rc == OK) rc = feed_settle(files, err);
    return rc == OK && !fresh ? check_count(files, err) : rc;
}
