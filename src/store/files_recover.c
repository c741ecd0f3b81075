// Opening for writing: the journal is applied again, then every slot is looked at, then the files of the runs that the journal speaks
// of. All of it can be cut short anywhere and done again.
#include "store/files.h"

#include <inttypes.h>

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

// New runs would take the places of those that are gone, and the feed would tell of them what was another's.
static enum code check_count(struct files_store *files, struct error *err)
{
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
    struct journal *journal = &files->journal;
    uint64_t size = 0;
    enum code rc = files->disk->ops->size(journal->file, &size, err);
    uint64_t feed_size = 0;
    if (rc == OK) rc = files->disk->ops->size(files->feed.file, &feed_size, err);
    if (rc != OK) return rc;
    // An empty journal is somebody's decision to go on with what the run files hold.
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
