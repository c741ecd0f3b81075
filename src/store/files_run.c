// Runs by key and position. The writer knows all of them; a reader learns them from the index when it is first asked for one by name.
#include "store/files.h"

#include <stdlib.h>
#include <string.h>

enum { READ_TRIES = 1000, CHUNK = 256, MAP_MIN = 64 };

static void map_insert(struct files_store *files, uint64_t key, uint64_t position)
{
    INVARIANT(position >= 1);
    INVARIANT(files->map_capacity > files->run_count);
    size_t at = key & (files->map_capacity - 1);
    while (files->map[at]) at = (at + 1) & (files->map_capacity - 1);
    files->map[at] = (uint32_t)position;
}

static bool map_grow(struct files_store *files, uint64_t count)
{
    if (files->map_capacity / 2 >= count) return true;
    size_t capacity = files->map_capacity ? files->map_capacity : MAP_MIN;
    while (capacity / 2 < count) capacity *= 2;
    uint32_t *map = calloc(capacity, sizeof(*map));
    if (!map) return false;
    free(files->map);
    files->map = map;
    files->map_capacity = capacity;
    for (uint64_t i = 0; i < files->run_count; i++) map_insert(files, files->entries[i].index.key, i + 1);
    return true;
}

enum code files_reserve_entries(struct files_store *files, uint64_t more, struct error *err)
{
    uint64_t need = files->run_count + more;
    if (need >= UINT32_MAX) return error_set(err, E_LIMIT, "the store is full of runs");
    if (need > files->entry_capacity) {
        size_t capacity = files->entry_capacity ? files->entry_capacity : CHUNK;
        while (capacity < need) capacity *= 2;
        struct run_entry *grown = realloc(files->entries, capacity * sizeof(*grown));
        if (!grown) return error_nomem(err);
        files->entries = grown;
        files->entry_capacity = capacity;
    }
    return map_grow(files, need) ? OK : error_nomem(err);
}

void files_add_entry(struct files_store *files, const struct disk_index *index)
{
    INVARIANT(files->run_count < files->entry_capacity);
    files->entries[files->run_count++] = (struct run_entry){.index = *index};
    map_insert(files, index->key, files->run_count);
}

static bool find_pending(struct files_store *files, uint64_t position, struct disk_slot *out)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    bool found = false;
    if (!files->pending || !frame_begin(buf_str(&files->frame), &header, &cursor)) return false;
    while (frame_next(&cursor, &part))
        if (part.run.position == position) {
            *out = part.slot;
            found = true;
        }
    return found;
}

enum code files_read_slot(struct files_store *files, uint64_t position, struct disk_slot *out, struct error *err)
{
    if (position == 0) return error_set(err, E_CORRUPT, "a run at position 0 is named; positions begin at 1"); // from the disk
    if (find_pending(files, position, out)) return OK;
    // A reader may meet a slot while the writer is at it; then its checksum fails once or twice.
    int tries = files->writer ? 1 : READ_TRIES;
    while (tries-- > 0) {
        size_t got = 0;
        enum code rc = files->disk->ops->read(files->runs, (position - 1) * SLOT_SIZE, out, SLOT_SIZE, &got, err);
        if (rc != OK) return rc;
        if (got == SLOT_SIZE && slot_valid(out, position)) return OK;
    }
    return error_set(err, E_CORRUPT, "the slot of the run at position %llu is damaged%s", (unsigned long long)position,
                     files->writer ? "" : " (after a power cut: the writer repairs it when it opens the store)");
}

static uint64_t slot_count(struct files_store *files, enum code *rc, struct error *err)
{
    uint64_t size = 0;
    *rc = files->disk->ops->size(files->runs, &size, err);
    return size / SLOT_SIZE;
}

// The index entry of a run whose entry on disk is missing or damaged.
static enum code derive_index(struct files_store *files, const struct disk_slot *slot, struct disk_index *out,
                              struct error *err)
{
    struct run_head head;
    struct arena names SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    enum code rc = files_decode_slot(files, slot, &names, &head, err);
    if (rc == OK) *out = index_of(slot, head.ids.tenant, head.ids.plan_id, head.ids.run);
    return rc;
}

// Entries that are not there read as zeros, which are not valid.
enum code files_read_index(struct files_store *files, uint64_t first, struct disk_index *out, size_t count,
                           struct error *err)
{
    size_t got = 0;
    memset(out, 0, count * sizeof(*out));
    if (!files->index) return OK;
    return files->disk->ops->read(files->index, first * sizeof(*out), out, count * sizeof(*out), &got, err);
}

enum code files_refresh(struct files_store *files, struct error *err)
{
    if (files->writer) return OK;
    enum code rc;
    uint64_t count = slot_count(files, &rc, err);
    while (rc == OK && files->run_count < count) {
        struct disk_index chunk[CHUNK];
        uint64_t first = files->run_count;
        rc = files_read_index(files, first, chunk, CHUNK, err);
        for (size_t i = 0; rc == OK && i < CHUNK && first + i < count; i++) {
            struct disk_slot slot;
            if (!index_valid(&chunk[i]) && (files_read_slot(files, first + i + 1, &slot, NULL) != OK ||
                                            derive_index(files, &slot, &chunk[i], NULL) != OK))
                chunk[i] = (struct disk_index){.key = 0};
            rc = files_reserve_entries(files, 1, err);
            if (rc == OK) files_add_entry(files, &chunk[i]);
        }
    }
    return rc;
}

static bool index_fits(const struct disk_index *index, const struct disk_slot *slot)
{
    return index_valid(index) && index->key == slot->key && index->status == slot->status &&
           index->flags == (slot->flags & SLOT_INDEXED) && index->created_ms == slot->created_ms;
}

// One run at opening. What cannot be trusted is quarantined; an index entry that does not fit is written again.
static enum code load_slot(struct files_store *files, const struct disk_slot *slot, const struct disk_index *stored,
                           struct error *err)
{
    INVARIANT(files->writer);
    uint64_t position = files->run_count + 1;
    struct disk_index index = *stored;
    bool valid = slot_valid(slot, position);
    bool bad = !valid || slot->batch >= files->journal.next_batch;
    if (valid && slot->batch > files->batch_max) files->batch_max = slot->batch;
    enum code rc = OK;
    if (valid && !index_fits(&index, slot)) {
        rc = derive_index(files, slot, &index, NULL);
        if (rc == E_NOMEM) return error_nomem(err);
        bad = bad || rc != OK;
        if (rc == OK)
            rc = files->disk->ops->write(files->index, (position - 1) * sizeof(index), &index, sizeof(index), err);
        if (rc != OK && rc != E_CORRUPT) return rc;
    } else if (!valid && !index_valid(&index))
        index = (struct disk_index){.key = slot->key};
    rc = files_reserve_entries(files, 1, err);
    if (rc == OK) files_add_entry(files, &index);
    if (rc == OK && bad)
        rc = files_quarantine(
            files, position, valid ? "its slot tells of a batch that the journal does not have" : "its slot is damaged",
            err);
    return rc;
}

enum code files_load_slots(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer);
    enum code rc;
    uint64_t size = slot_count(files, &rc, err);
    struct disk_slot *slots = malloc(CHUNK * SLOT_SIZE);
    struct disk_index *index = malloc(CHUNK * sizeof(*index));
    if (!slots || !index) rc = error_nomem(err);
    files->run_count = 0;
    while (rc == OK && files->run_count < size) {
        uint64_t first = files->run_count;
        size_t got = 0;
        size_t want = size - first < CHUNK ? (size_t)(size - first) : CHUNK;
        rc = files_read_index(files, first, index, want, err);
        if (rc == OK) rc = files->disk->ops->read(files->runs, first * SLOT_SIZE, slots, want * SLOT_SIZE, &got, err);
        for (size_t i = 0; rc == OK && i < got / SLOT_SIZE; i++) rc = load_slot(files, &slots[i], &index[i], err);
        if (rc == OK && got < want * SLOT_SIZE)
            rc = error_set(err, E_IO, "the file of slots became shorter while it was read");
    }
    free(slots);
    free(index);
    return rc;
}

static uint64_t files_next_candidate(struct files_store *files, uint64_t key, size_t *probe)
{
    if (files->map_capacity == 0) return 0;
    for (;;) {
        uint64_t position = files->map[(key + *probe) & (files->map_capacity - 1)];
        if (position == 0) return 0;
        (*probe)++;
        if (files->entries[position - 1].index.key == key) return position;
    }
}

bool files_knows(struct files_store *files, struct str tenant, struct str run)
{
    size_t probe = 0;
    return files_next_candidate(files, run_key(tenant, run), &probe) != 0;
}

enum code files_find(struct files_store *files, struct str tenant, struct str run, uint64_t *position,
                     struct disk_slot *slot, struct error *err)
{
    *position = 0;
    enum code rc = files_refresh(files, err);
    if (rc != OK) return rc;
    uint64_t key = run_key(tenant, run);
    size_t probe = 0;
    struct arena names SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    for (uint64_t at = files_next_candidate(files, key, &probe); at && rc == OK;
         at = files_next_candidate(files, key, &probe)) {
        struct run_head head;
        rc = files_read_slot(files, at, slot, err);
        if (rc == OK && (slot->flags & SLOT_REMOVED)) continue;
        if (rc == OK) rc = files_decode_slot(files, slot, &names, &head, err);
        if (rc == OK && str_eq(head.ids.tenant, tenant) && str_eq(head.ids.run, run)) {
            *position = at;
            break;
        }
    }
    return rc;
}

enum code files_need(struct files_store *files, struct str tenant, struct str run, uint64_t *position,
                     struct disk_slot *slot, struct error *err)
{
    enum code rc = files_find(files, tenant, run, position, slot, err);
    return rc == OK && !*position ? run_missing(run, err) : rc;
}
