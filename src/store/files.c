// The files store: opening, claiming, committing. The format and the idea are in files.h.
#include "base/map.h"
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VERSION_TEXT "cairn files 1\n"
#define OWNER_SIZE 21 // in the lock file; then the id of the start of the machine
#define RESTORING_TEXT "cairn files 1, restoring\n"
#define SETTLE_SIZE                                                                                                    \
    (512u << 10) // closing with more than this in the journal syncs everything, so that opening stays quick

// ---- commit

static enum code check_heads(struct files_store *files, const struct commit *commit, struct error *err)
{
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct run_log *log = commit->heads[i].log;
        if (commit->heads[i].create) {
            uint64_t position;
            struct disk_slot slot;
            enum code rc = files_find(files, log->ids.tenant, log->ids.run, &position, &slot, err);
            if (rc == OK && position) rc = error_set(err, E_EXISTS, "run %.*s exists", STR_ARG(log->ids.run));
            if (rc != OK) return rc;
            continue;
        }
        INVARIANT(log->backend_id >= 1 && (uint64_t)log->backend_id <= files->run_count);
        const struct run_entry *entry = &files->entries[log->backend_id - 1];
        if (entry->bad) return error_set(err, E_CORRUPT, "run %.*s is quarantined", STR_ARG(log->ids.run));
        if (!entry->active || entry->active->epoch != log->epoch ||
            entry->active->last_seq != commit->heads[i].expect_seq ||
            entry->active->ledger_seq != commit->heads[i].expect_ledger_seq)
            return error_set(err, E_CONFLICT, "run %.*s belongs to another owner now", STR_ARG(log->ids.run));
    }
    return OK;
}

// Two runs of one batch with the same name: the second is E_EXISTS, too.
static enum code check_twins(struct files_store *files, const struct commit *commit, struct arena *turn,
                             struct error *err)
{
    struct map made;
    map_init(&made, turn);
    for (size_t i = 0; i < commit->head_count; i++) {
        const struct run_ids *ids = &commit->heads[i].log->ids;
        char path[PATH_SIZE];
        uint32_t twin = MAP_NONE;
        if (!commit->heads[i].create) continue;
        enum code rc = files_run_path(ids->tenant, ids->run, "", path, err);
        if (rc != OK) return rc;
        struct str key = arena_copy(turn, str_from(path));
        if (!key.ptr || !map_put(&made, key, (uint32_t)i, &twin)) return error_nomem(err);
        if (twin != MAP_NONE) return error_set(err, E_EXISTS, "run %.*s is created twice", STR_ARG(ids->run));
    }
    return files_reserve_entries(files, commit->head_count, err);
}

// Directories and files that the frame will need are made before it is durable: that is where space runs out first, and then
// nothing has happened yet.
static enum code make_files(struct files_store *files, struct error *err)
{
    INVARIANT(files->frame.len > 0);
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    enum code rc = OK;
    bool begun = frame_begin(buf_str(&files->frame), &header, &cursor);
    INVARIANT(begun);
    while (rc == OK && frame_next(&cursor, &part)) {
        struct file *file;
        uint64_t size = 0;
        bool create = part.run.position > files->run_count;
        if (create) {
            rc = files_open_run(files, &part.slot, RUN_EVENTS, true, &file, err);
            if (rc == OK) rc = files->disk->ops->size(file, &size, err);
            if (rc == OK && size > 0)
                rc = error_set(err, E_CORRUPT,
                               "a new run finds %" PRIu64
                               " bytes in its place: they belong to a run that the store does not know",
                               size);
        }
        if (rc == OK && part.ledger.len > 0 && part.run.ledger_offset == 0)
            rc = files_open_run(files, &part.slot, RUN_LEDGER, true, &file, err);
    }
    return rc;
}

static void free_actives(struct active_run **actives, size_t count)
{
    for (size_t i = 0; i < count; i++) free(actives[i]);
}

// One for each created run; they are there before the commit so that nothing can fail after it.
static enum code make_actives(const struct commit *commit, struct arena *turn, struct active_run ***out,
                              struct error *err)
{
    struct active_run **actives = ARENA_ARRAY(turn, commit->head_count + 1, struct active_run *);
    if (!actives) return error_nomem(err);
    *out = actives;
    for (size_t i = 0; i < commit->head_count; i++) {
        if (!commit->heads[i].create) continue;
        actives[i] = calloc(1, sizeof(**actives));
        if (!actives[i]) return error_nomem(err);
    }
    return OK;
}

static void update_entry(struct files_store *files, const struct frame_part *part, struct commit_head *head,
                         struct active_run *made)
{
    const struct disk_slot *slot = &part->slot;
    if (head->create) {
        const struct run_ids *ids = &head->log->ids;
        struct disk_index index = index_of(slot, ids->tenant, ids->plan_id, ids->run);
        INVARIANT(slot->position == files->run_count + 1);
        files_add_entry(files, &index);
        files->entries[slot->position - 1].active = made;
        files->entries[slot->position - 1].index_dirty = true;
        head->backend_id = (int64_t)slot->position;
        if (slot->flags & SLOT_NAMES_OUTSIDE) memcpy(&made->names, slot->text, sizeof(made->names));
        files->names_size += part->names.len;
    }
    struct run_entry *entry = &files->entries[slot->position - 1];
    uint8_t flags = slot->flags & SLOT_INDEXED;
    if (entry->index.status != slot->status || entry->index.flags != flags ||
        entry->index.created_ms != slot->created_ms) {
        entry->index.status = slot->status;
        entry->index.flags = flags;
        entry->index.created_ms = slot->created_ms;
        index_seal(&entry->index);
        entry->index_dirty = true;
    }
    entry->active->epoch = slot->epoch;
    entry->active->last_seq = slot->last_seq;
    entry->active->ledger_seq = slot->ledger_seq;
    entry->active->events_size = slot->events_size;
    entry->active->ledger_size = slot->ledger_size;
}

static void update_entries(struct files_store *files, struct commit *commit, struct active_run **actives)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    bool begun = frame_begin(buf_str(&files->frame), &header, &cursor);
    INVARIANT(begun);
    for (size_t i = 0; frame_next(&cursor, &part); i++) update_entry(files, &part, &commit->heads[i], actives[i]);
}

// Up to the moment: on OK the frame is durable, on anything else but E_IO nothing has happened.
static enum code make_durable(struct files_store *files, struct commit *commit, struct note_node **notes,
                              struct arena *turn, struct error *err)
{
    enum code rc = files_flush(files, err);
    if (rc == OK && commit->note_count > 0) rc = notes_compact(files, err);
    if (rc == OK) rc = check_heads(files, commit, err);
    if (rc == OK) rc = check_twins(files, commit, turn, err);
    for (size_t i = 0; rc == OK && i < commit->blob_count; i++) rc = files_write_blob(files, &commit->blobs[i], err);
    if (rc == OK) rc = frame_build(files, commit, notes, turn, err);
    if (rc == OK) rc = make_files(files, err);
    return rc == OK ? journal_append(files, err) : rc;
}

static enum code files_commit(struct store *base, struct commit *commit, struct arena *turn, struct error *err)
{
    INVARIANT(files_of(base)->writer);
    struct files_store *files = files_of(base);
    struct active_run **actives = NULL;
    enum code rc = make_actives(commit, turn, &actives, err);
    struct note_node **notes = ARENA_ARRAY(turn, commit->note_count, struct note_node *);
    if (rc == OK && !notes) rc = error_nomem(err);
    if (rc == OK) rc = make_durable(files, commit, notes, turn, err);
    if (rc != OK) {
        if (actives) free_actives(actives, commit->head_count);
        for (size_t i = 0; notes && i < commit->note_count; i++) free(notes[i]);
        files_close_cached(files, files->run_count);
        return rc;
    }
    update_entries(files, commit, actives);
    notes_show(files, commit, notes);
    return files_settle(files, err);
}

// ---- leases: the holder of the lock holds all of them; its epoch shows a claim that was overtaken in this process

static enum code files_claim(struct store *base, struct str tenant, struct str run, struct run_head *out,
                             struct arena *arena, int64_t *backend_id, struct error *err)
{
    INVARIANT(files_of(base)->writer);
    struct files_store *files = files_of(base);
    uint64_t position;
    struct disk_slot slot;
    enum code rc = files_flush(files, err);
    if (rc == OK) rc = files_need(files, tenant, run, &position, &slot, err);
    if (rc == OK && files->entries[position - 1].bad)
        return error_set(err, E_CORRUPT, "run %.*s is quarantined: see .cairn/quarantine/run-%" PRIu64, STR_ARG(run),
                         position);
    if (rc == OK) rc = files_check_run(files, &slot, err);
    if (rc == OK) rc = files_decode_slot(files, &slot, arena, out, err);
    if (rc != OK) return rc;
    struct run_entry *entry = &files->entries[position - 1];
    if (!entry->active) entry->active = calloc(1, sizeof(*entry->active));
    if (!entry->active) return error_nomem(err);
    *entry->active = (struct active_run){
        .epoch = (files->journal.header.incarnation << 32) + ++files->claims,
        .last_seq = slot.last_seq,
        .ledger_seq = slot.ledger_seq,
        .events_size = slot.events_size,
        .ledger_size = slot.ledger_size,
    };
    if (slot.flags & SLOT_NAMES_OUTSIDE) memcpy(&entry->active->names, slot.text, sizeof(entry->active->names));
    out->epoch = entry->active->epoch;
    files_tell_owner(files, out);
    *backend_id = (int64_t)position;
    return OK;
}

static void files_release(struct store *base, struct run_log *log)
{
    INVARIANT(log->backend_id >= 1);
    INVARIANT((uint64_t)log->backend_id <= files_of(base)->run_count);
    struct files_store *files = files_of(base);
    struct run_entry *entry = &files->entries[log->backend_id - 1];
    if (!entry->active || entry->active->epoch != log->epoch) return;
    free(entry->active);
    entry->active = NULL;
}

static int64_t owner_in_lock(struct files_store *files)
{
    char text[OWNER_SIZE];
    size_t got = 0;
    int64_t pid = 0;
    if (!files->lock || files->disk->ops->read(files->lock, 0, text, sizeof(text), &got, NULL) != OK) return 0;
    return str_int64(str_trim((struct str){text, got}), &pid) ? pid : 0;
}

bool files_is_locked(const struct files_store *files)
{
    const struct disk_ops *ops = files->disk->ops;
    return (files->lock && ops->locked(files->lock, 0)) || ops->locked(files->runs, 0);
}

// By the last writer, on this machine and since it was started: then what was written is what is shown.
bool files_was_closed(struct files_store *files)
{
    char now[BOOT_SIZE], then[BOOT_SIZE] = "";
    size_t got = 0;
    if (!files->own_disk || !files->lock || owner_in_lock(files) != -(int64_t)files->journal.header.incarnation)
        return false;
    os_boot_id(now);
    enum code rc = files->disk->ops->read(files->lock, OWNER_SIZE, then, BOOT_SIZE - 1, &got, NULL);
    return rc == OK && now[0] && strcmp(now, then) == 0;
}

static int64_t pid_in_lock(struct files_store *files)
{
    int64_t owner = owner_in_lock(files);
    return owner > 0 ? owner : 0;
}

void files_tell_owner(struct files_store *files, struct run_head *head)
{
    if (files->writer) {
        head->owned = files->entries[head->position - 1].active != NULL;
        head->owner_pid = head->owned ? getpid() : 0;
        return;
    }
    head->owned = !head->terminal && (files_is_locked(files) || files->lock_hidden);
    head->owner_pid = head->owned ? pid_in_lock(files) : 0;
}

static enum code files_run_dir(const struct store *base, const struct run_ids *ids, const char *what,
                               struct arena *arena, struct str *out)
{
    struct files_store *files = files_of(base);
    char path[PATH_SIZE];
    struct str dir;
    enum code rc = files_run_path(ids->tenant, ids->run, what, path, NULL);
    if (rc == OK) rc = os_absolute(files->dir, arena, &dir, NULL);
    if (rc != OK) return rc;
    size_t len = dir.len + 1 + strlen(path);
    char *whole = arena_alloc(arena, len + 1);
    if (!whole) return E_NOMEM;
    snprintf(whole, len + 1, "%.*s/%s", STR_ARG(dir), path);
    *out = (struct str){whole, len};
    return OK;
}

// ---- opening and closing

static enum code open_at(struct files_store *files, const char *path, unsigned flags, struct file **out,
                         struct error *err)
{
    return files->disk->ops->open(files->disk, path, flags, out, err);
}

static void close_file(struct files_store *files, struct file *file)
{
    if (file && files->disk) files->disk->ops->close(file);
}

// *found is false when there is no version: then there is no store, or one that is not complete.
static enum code check_version(struct files_store *files, bool *found, struct error *err)
{
    struct file *file;
    struct error told = {.code = OK};
    char text[64];
    size_t got = 0;
    *found = false;
    enum code rc = open_at(files, ".cairn/VERSION", OPEN_READ, &file, &told);
    if (rc == E_NOT_FOUND) return OK;
    if (rc == OK) {
        rc = files->disk->ops->read(file, 0, text, sizeof(text), &got, &told);
        files->disk->ops->close(file);
    }
    if (rc != OK) return error_set(err, rc, "%s", told.message);
    struct str version = {text, got};
    *found = true;
    if (str_is(version, VERSION_TEXT)) return OK;
    if (str_is(version, RESTORING_TEXT)) return store_found_restoring(&files->base, err);
    if (str_starts(version, STR("cairn files ")))
        return error_set(err, E_VERSION, "written by a newer version: %.*s", STR_ARG(str_trim(version)));
    return error_set(err, E_CORRUPT, ".cairn/VERSION is damaged");
}

static enum code open_parts(struct files_store *files, unsigned flags, struct error *err)
{
    struct error told = {.code = OK};
    enum code rc = files->runs ? OK : open_at(files, ".cairn/runs", flags, &files->runs, &told);
    if (rc == OK && files->writer) rc = files->disk->ops->lock(files->runs, 0, &told); // it may be new
    if (rc == OK && files->writer) rc = open_at(files, ".cairn/journal", flags, &files->journal.file, &told);
    unsigned derived = files->writer ? flags | OPEN_CREATE : flags;
    if (rc == OK) rc = open_at(files, ".cairn/names", derived, &files->names, &told);
    if (rc == OK && files->writer) rc = open_at(files, ".cairn/feed", derived, &files->feed.file, &told);
    if (rc != OK) return error_set(err, rc == E_NOT_FOUND ? E_CORRUPT : rc, "%s", told.message);
    rc = open_at(files, ".cairn/index", derived, &files->index, files->writer ? err : NULL);
    return rc == E_NOT_FOUND && !files->writer ? OK : rc;
}

static enum code write_version(struct files_store *files, const char *text, struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    struct file *file;
    enum code rc =
        open_at(files, ".cairn/VERSION.tmp", OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE, &file, err);
    if (rc != OK) return rc;
    rc = ops->write(file, 0, text, strlen(text), err);
    if (rc == OK) rc = ops->sync(file, err);
    ops->close(file);
    // The other entries of the directory must be there before this one is.
    if (rc == OK) rc = ops->sync_dir(files->disk, ".cairn", err);
    if (rc == OK) rc = ops->rename(files->disk, ".cairn/VERSION.tmp", ".cairn/VERSION", err);
    if (rc == OK) rc = ops->sync_dir(files->disk, ".cairn", err);
    return rc == OK ? ops->sync_dir(files->disk, "", err) : rc;
}

static enum code create_store(struct files_store *files, struct error *err)
{
    static const char *const dirs[] = {".cairn/inbox", ".cairn/blobs", ".cairn/quarantine"};
    enum code rc = OK;
    for (size_t i = 0; rc == OK && i < ARRAY_COUNT(dirs); i++)
        rc = files->disk->ops->make_dir(files->disk, dirs[i], err);
    if (rc == OK) rc = open_parts(files, OPEN_READ | OPEN_WRITE | OPEN_CREATE, err);
    uint64_t size = 0;
    if (rc == OK) rc = files->disk->ops->size(files->runs, &size, err);
    if (rc == OK && size > 0) return error_set(err, E_CORRUPT, ".cairn/VERSION is missing although there are runs");
    struct file *const parts[] = {files->runs, files->names, files->index};
    for (size_t i = 0; rc == OK && i < ARRAY_COUNT(parts); i++) rc = files->disk->ops->sync(parts[i], err);
    if (rc == OK) rc = journal_create(files, 1, err);
    if (rc == OK) rc = feed_create(files, err);
    return rc == OK ? write_version(files, VERSION_TEXT, err) : rc;
}

static enum code files_restoring(struct store *base, bool begun, struct error *err)
{
    INVARIANT(files_of(base)->writer);
    return write_version(files_of(base), begun ? RESTORING_TEXT : VERSION_TEXT, err);
}

// In place and of one length, so that a full disk does not keep a store closed. Who closes it leaves the number of its opening, below 0.
static enum code write_owner(struct files_store *files, int64_t owner)
{
    INVARIANT(files->writer && files->lock);
    char text[OWNER_SIZE + 1];
    snprintf(text, sizeof(text), "%-20lld\n", (long long)owner);
    return files->disk->ops->write(files->lock, 0, text, OWNER_SIZE, NULL);
}

static void write_closed(struct files_store *files)
{
    char boot[BOOT_SIZE];
    os_boot_id(boot);
    enum code rc = files->disk->ops->write(files->lock, OWNER_SIZE, boot, files->own_disk ? strlen(boot) : 0, NULL);
    if (rc == OK) (void)!write_owner(files, -(int64_t)files->journal.header.incarnation);
}

// The catalogue is locked as well: when the lock file was removed another process could make a new one and lock that, and two would
// write. It goes first, as a process that ends may let the two go in any order.
static enum code lock_both(struct files_store *files)
{
    enum code rc = files->runs ? files->disk->ops->lock(files->runs, 0, NULL) : OK;
    return rc == OK ? files->disk->ops->lock(files->lock, 0, NULL) : rc;
}

static enum code take_lock(struct files_store *files, struct error *err)
{
    unsigned tries = 0;
    enum code rc = open_at(files, ".cairn/lock", OPEN_READ | OPEN_WRITE | OPEN_CREATE, &files->lock, err);
    if (rc != OK) return rc;
    if (open_at(files, ".cairn/runs", OPEN_READ | OPEN_WRITE, &files->runs, NULL) != OK) files->runs = NULL; // a new store
    do rc = lock_both(files);
    while (rc == E_LOCKED && os_lock_lingers(pid_in_lock(files), &tries));
    if (rc == E_LOCKED && pid_in_lock(files) > 0)
        return error_set(err, rc, "process %" PRId64 " has it open for writing", pid_in_lock(files));
    if (rc == E_LOCKED) return error_set(err, rc, "another process has it open for writing");
    if (rc != OK) return error_set(err, rc, "cannot lock .cairn/lock");
    files->closed_before = -owner_in_lock(files);
    rc = write_owner(files, getpid());
    return rc == OK || rc == E_FULL ? OK : error_set(err, rc, "cannot write .cairn/lock");
}

static enum code open_writer(struct files_store *files, bool create, struct error *err)
{
    bool found;
    enum code rc = check_version(files, &found, err);
    if (rc == OK && !found && !create) return error_set(err, E_NOT_FOUND, "there is no store");
    if (rc == OK) rc = files->disk->ops->make_dir(files->disk, ".cairn", err);
    if (rc == OK) rc = take_lock(files, err);
    if (rc == OK) rc = check_version(files, &found, err); // another process may have made it meanwhile
    if (rc != OK) return rc;
    if (!found) return create_store(files, err);
    rc = open_parts(files, OPEN_READ | OPEN_WRITE, err);
    // The process that made the store may have died before its names were durable; when they are, this costs little.
    if (rc == OK) rc = files->disk->ops->sync_dir(files->disk, ".cairn", err);
    if (rc == OK) rc = files->disk->ops->sync_dir(files->disk, "", err);
    if (rc == OK) rc = files_recover(files, err);
    bool closed = files->closed_before == (int64_t)files->journal.header.incarnation - 1;
    return rc == OK && !closed ? files_sweep(files, err) : rc;
}

// After a crash the journal may hold what is not where readers look: it is put there first, as SQLite does when it opens a log. Another
// process may be doing that at this moment. Of a store that was closed what differs was edited, and store_verify reports it.
static enum code catch_up(struct files_store *files, struct error *err)
{
    INVARIANT(!files->writer);
    enum { TRIES = 200, PAUSE_NS = 10000000 };
    for (int i = 0; i < TRIES; i++) {
        bool behind = false;
        struct store *writer = NULL;
        struct error told = {.code = OK};
        struct store_options options = files->base.options;
        bool locked = files_is_locked(files);
        if (locked && i == 0) return OK; // by one that has done it, or does it now
        enum code rc = files_is_behind(files, &behind, err);
        if (rc != OK || !behind) return rc;
        options.mode = STORE_WRITE;
        options.create = false;
        rc = locked ? E_LOCKED : store_open_files(str_from(files->dir), &options, &writer, &told);
        if (rc == OK) {
            writer->ops->admin.close(writer);
            return OK;
        }
        if (rc != E_LOCKED || !files->own_disk)
            return error_set(err, rc, "a crash left batches that are not applied, and nobody could do that now: %s",
                             told.message);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return OK; // the writer has no room to apply them
}

static enum code open_reader(struct files_store *files, struct error *err)
{
    bool found;
    enum code rc = check_version(files, &found, err);
    if (rc == OK && !found) return error_set(err, E_NOT_FOUND, "there is no store");
    if (rc == OK) rc = open_parts(files, OPEN_READ, err);
    enum code shown = rc ? rc : open_at(files, ".cairn/lock", OPEN_READ, &files->lock, NULL);
    if (shown) files->lock = NULL;
    files->lock_hidden = shown && shown != E_NOT_FOUND; // its holder cannot be seen, and counts as alive
    return rc == OK ? catch_up(files, err) : rc;
}

static void files_close(struct store *base)
{
    struct files_store *files = files_of(base);
    if (files->writer && !base->dead && files->journal.file && files_flush(files, NULL) == OK &&
        files->journal.end > JOURNAL_FRAMES + SETTLE_SIZE)
        (void)!journal_checkpoint(files, NULL); // if not, the next opening has more to apply
    if (files->writer && !base->dead && files->lock) write_closed(files);
    if (files->disk) files_close_cached(files, 0);
    struct file *const parts[] = {files->runs,         files->names, files->index,
                                  files->journal.file, files->lock,  files->feed.file};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) close_file(files, parts[i]);
    notes_close(files);
    for (uint64_t i = 0; i < files->run_count; i++) free(files->entries[i].active);
    if (files->own_disk) os_disk_close(files->disk);
    buf_release(&files->frame);
    free(files->entries);
    free(files->map);
    free(files->dir);
    free(files);
}

static const struct store_ops files_ops = {
    .kind = "files",
    .log =
        {
            .commit = files_commit,
            .claim = files_claim,
            .claim_ahead = absent_claim_ahead,
            .release = files_release,
            .head = files_head,
            .list = files_list,
            .count = absent_count,
            .read = files_read,
            .surplus = files_surplus,
            .blob = files_blob,
            .post = files_post,
            .inbox = files_inbox,
            .shards = absent_shards,
            .move = absent_move,
            .away = absent_away,
        },
    .notes =
        {
            .note = files_note,
            .notes = files_notes,
            .next_space = files_next_space,
        },
    .feed =
        {
            .read = files_feed,
            .end = files_feed_end,
        },
    .admin =
        {
            .freeze = absent_freeze,
            .missing = files_missing,
            .remove = files_remove,
            .tombstones = files_tombstones,
            .blobs = files_blobs,
            .drop_blobs = files_drop_blobs,
            .usage = files_usage,
            .format = absent_format,
            .advise = absent_advise,
            .restoring = files_restoring,
            .beside = store_beside_url,
            .run_dir = files_run_dir,
            .file = store_local_file,
            .close = files_close,
        },
};

static enum code open_disk(struct files_store *files, const struct store_options *options, struct error *err)
{
    if (options->disk) {
        files->disk = options->disk;
        return OK;
    }
    if (!(options->create && files->writer) && !os_is_dir(files->dir))
        return error_set(err, E_NOT_FOUND, "there is no directory %s", files->dir);
    enum code rc = os_disk_open(files->dir, &files->disk, err);
    if (rc != OK) return rc;
    files->own_disk = true;
    const char *remote = os_disk_remote(files->disk);
    if (remote)
        return error_set(err, E_UNSUPPORTED, "%s is on %s, whose locks and syncs cannot be relied upon", files->dir,
                         remote);
    return OK;
}

enum code store_open_files(struct str path, const struct store_options *options, struct store **out, struct error *err)
{
    struct files_store *files = calloc(1, sizeof(*files));
    if (!files) return error_nomem(err);
    files->base.ops = &files_ops;
    files->base.options = *options;
    files->writer = options->mode == STORE_WRITE;
    files->dir = strndup(path.ptr, path.len);
    files->journal.capacity = options->journal_size ? options->journal_size : JOURNAL_SIZE_DEFAULT;
    buf_init(&files->frame, (size_t)1 << 31);
    enum code rc = files->dir ? open_disk(files, options, err) : error_nomem(err);
    if (rc == OK) rc = files->writer ? open_writer(files, options->create, err) : open_reader(files, err);
    if (rc != OK) {
        files->base.dead = true; // nothing to settle
        files_close(&files->base);
        return rc;
    }
    *out = &files->base;
    return OK;
}
