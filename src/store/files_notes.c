// Notes of the files store: a file that is added to, and a list in memory of where each note's value stands in it. The bytes travel in
// the frame of their batch; recovery writes them again to the same place.
#include "store/files.h"

#include <inttypes.h>
#include <string.h>

#define NOTES_PATH ".cairn/notes"
#define NOTES_MAGIC "CAIRNN1\n"
#define NOTES_KEPT (4u << 20) // a smaller file is not worth the work
#define NOTE_ROOM (sizeof(struct disk_note) + NOTE_SPACE_MAX + NOTE_KEY_MAX + NOTE_VALUE_MAX)

// ---- records

static uint32_t note_crc(struct str record)
{
    size_t from = sizeof(((struct disk_note *)0)->crc);
    return crc32c(0, record.ptr + from, record.len - from);
}

static void add_record(struct buf *out, const struct note_change *note, bool last)
{
    struct disk_note disk = {.value_size = (uint32_t)note->value.len,
                             .version = note->after,
                             .key_size = (uint16_t)note->key.len,
                             .space_size = (uint8_t)note->space.len,
                             .last = last};
    size_t from = out->len;
    buf_add(out, (struct str){(const char *)&disk, sizeof(disk)});
    buf_add(out, note->space);
    buf_add(out, note->key);
    buf_add(out, note->value);
    if (!buf_ok(out)) return;
    disk.crc = note_crc((struct str){out->ptr + from, out->len - from});
    memcpy(out->ptr + from, &disk, sizeof(disk));
}

static size_t record_size(const struct disk_note *disk)
{
    return sizeof(*disk) + disk->space_size + disk->key_size + disk->value_size;
}

// The record that `bytes` begin with. *need is what must be there to know; false when that is there and it is none.
static bool parse_record(struct str bytes, struct disk_note *disk, struct note_change *out, size_t *need)
{
    *need = sizeof(*disk);
    if (bytes.len < *need) return true;
    memcpy(disk, bytes.ptr, sizeof(*disk));
    if (disk->value_size > NOTE_VALUE_MAX || disk->key_size > NOTE_KEY_MAX || disk->space_size > NOTE_SPACE_MAX ||
        disk->key_size == 0 || disk->space_size == 0)
        return false;
    *need = record_size(disk);
    if (bytes.len < *need) return true;
    if (disk->crc != note_crc(str_slice(bytes, 0, *need))) return false;
    size_t space = sizeof(*disk), key = space + disk->space_size, value = key + disk->key_size;
    *out = (struct note_change){.space = str_slice(bytes, space, key),
                                .key = str_slice(bytes, key, value),
                                .value = str_slice(bytes, value, *need),
                                .after = disk->version};
    return true;
}

static struct note_node *make_node(const struct note_change *note, uint64_t record)
{
    struct note_place place = {.offset = record + sizeof(struct disk_note) + note->space.len + note->key.len,
                               .size = (uint32_t)note->value.len};
    return note_node_new(note->space, note->key, note->after, (struct str){(const char *)&place, sizeof(place)});
}

static struct note_place place_of(const struct note_node *node)
{
    struct note_place place;
    memcpy(&place, node->value.ptr, sizeof(place));
    return place;
}

// ---- opening

static enum code read_generation(struct files_store *files, struct file *file, uint64_t *out, struct error *err)
{
    struct notes_header header;
    size_t got = 0;
    *out = 0;
    enum code rc = files->disk->ops->read(file, 0, &header, sizeof(header), &got, err);
    if (rc == OK && got == sizeof(header) && memcmp(header.magic, NOTES_MAGIC, sizeof(header.magic)) == 0)
        *out = header.generation;
    return rc;
}

static enum code write_generation(struct files_store *files, struct file *file, uint64_t generation, struct error *err)
{
    struct notes_header header = {.generation = generation};
    memcpy(header.magic, NOTES_MAGIC, sizeof(header.magic));
    return files->disk->ops->write(file, 0, &header, sizeof(header), err);
}

// For writing. A header that is not there yet, or did not reach the disk, is the first one: later ones are synced before they count.
static enum code open_file(struct files_store *files, bool create, struct error *err)
{
    struct notes_file *notes = &files->notes;
    if (notes->file) return OK;
    const struct disk_ops *ops = files->disk->ops;
    enum code rc =
        ops->open(files->disk, NOTES_PATH, OPEN_READ | OPEN_WRITE | (create ? OPEN_CREATE : 0), &notes->file, err);
    if (rc != OK) {
        notes->file = NULL;
        return rc;
    }
    rc = read_generation(files, notes->file, &notes->generation, err);
    if (rc == OK && notes->generation == 0) {
        rc = write_generation(files, notes->file, 1, err);
        // The name of the file must last longer than the frame whose bytes go there.
        if (rc == OK) rc = ops->sync_dir(files->disk, ".cairn", err);
        if (rc == OK) notes->generation = 1;
    }
    if (rc != OK) {
        ops->close(notes->file);
        notes->file = NULL;
    }
    return rc;
}

void notes_close(struct files_store *files)
{
    if (files->notes.file && files->disk) files->disk->ops->close(files->notes.file);
    note_list_release(&files->notes.list);
    files->notes = (struct notes_file){.end = 0};
}

// ---- the list

static uint64_t bytes_of(const struct note_node *node)
{
    return node ? sizeof(struct disk_note) + node->name.len - 1 + place_of(node).size : 0;
}

static void show(struct files_store *files, const struct note_change *note, struct note_node *node)
{
    struct notes_file *notes = &files->notes;
    notes->live += bytes_of(node);
    notes->live -= bytes_of(note_list_find(&notes->list, note->space, note->key));
    if (node)
        note_list_put(&notes->list, node);
    else
        note_list_drop(&notes->list, note->space, note->key);
}

static enum code take_record(struct files_store *files, const struct note_change *note, uint64_t record,
                             struct error *err)
{
    struct note_node *node = note->after ? make_node(note, record) : NULL;
    if (note->after && !node) return error_nomem(err);
    show(files, note, node);
    return OK;
}

// Takes whole batches from `bytes`, which stand at notes.end. *need: so many bytes from notes.end on tell more; 0: there is damage.
static enum code take_batches(struct files_store *files, struct str bytes, size_t *need, struct error *err)
{
    size_t whole = 0, at = 0;
    struct disk_note disk = {0};
    struct note_change note;
    for (;;) { // how far whole batches go
        if (!parse_record(str_slice(bytes, at, bytes.len), &disk, &note, need)) {
            *need = 0;
            break;
        }
        *need += at;
        if (*need > bytes.len) break;
        at = *need;
        if (disk.last) whole = at;
    }
    enum code rc = OK;
    for (at = 0; rc == OK && at < whole;) {
        size_t size = 0;
        bool fine = parse_record(str_slice(bytes, at, whole), &disk, &note, &size);
        INVARIANT(fine);
        rc = take_record(files, &note, files->notes.end + at, err);
        at += size;
    }
    if (rc != OK) return rc;
    files->notes.end += whole;
    if (*need) *need -= whole;
    return OK;
}

// From notes.end to the end of the file. *clean: there was nothing but whole batches.
static enum code load_rest(struct files_store *files, struct file *file, bool *clean, struct error *err)
{
    size_t want = 1u << 20, need = 1;
    enum code rc = OK;
    struct buf bytes SCOPED(buf_release) = buf_of((size_t)1 << 31);
    *clean = true;
    while (rc == OK && need > 0) {
        if (need > want) want = need;
        buf_clear(&bytes);
        char *room = buf_reserve(&bytes, want);
        size_t got = 0;
        uint64_t before = files->notes.end;
        rc = room ? files->disk->ops->read(file, before, room, want, &got, err) : error_nomem(err);
        if (rc != OK || got == 0) break;
        rc = take_batches(files, (struct str){room, got}, &need, err);
        if (rc != OK) break;
        bool all = files->notes.end - before == got;
        if (!all && got < want) { // no more will come: what is left is the beginning of something
            *clean = false;
            break;
        }
        if (need == 0) *clean = false;
    }
    return rc;
}

static void forget(struct files_store *files, uint64_t generation)
{
    note_list_release(&files->notes.list);
    files->notes.live = 0;
    files->notes.generation = generation;
    files->notes.end = sizeof(struct notes_header);
    files->notes.loaded = false;
}

// A frame that is not applied yet has no notes in it: their first batch loads the list.
static enum code load_for_writing(struct files_store *files, bool create, struct error *err)
{
    struct notes_file *notes = &files->notes;
    if (notes->loaded) return OK;
    bool clean = true;
    struct error told = {.code = OK};
    enum code rc = open_file(files, create, &told);
    if (rc == E_NOT_FOUND && !create) return OK;
    if (rc != OK) return error_set(err, rc, "%s", told.message);
    forget(files, notes->generation);
    rc = load_rest(files, notes->file, &clean, err);
    if (rc == OK && !clean) // everything in it was in a frame that was durable
        rc = error_set(err, E_CORRUPT, NOTES_PATH " is damaged at %" PRIu64, notes->end);
    notes->loaded = rc == OK;
    return rc;
}

// The file may have been written anew since, so it is opened by name each time. A tail that is not whole is being written.
static enum code refresh(struct files_store *files, struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    struct notes_file *notes = &files->notes;
    struct file *file;
    struct error told = {.code = OK};
    enum code rc = ops->open(files->disk, NOTES_PATH, OPEN_READ, &file, &told);
    if (rc == E_NOT_FOUND) return OK;
    if (rc != OK) return error_set(err, rc, "%s", told.message);
    uint64_t generation = 0;
    bool clean = true;
    rc = read_generation(files, file, &generation, err);
    if (rc == OK && generation != notes->generation) forget(files, generation);
    if (rc == OK && generation > 0) rc = load_rest(files, file, &clean, err);
    if (notes->file) ops->close(notes->file);
    notes->file = file;
    return rc;
}

static enum code prepare(struct files_store *files, struct error *err)
{
    return files->writer ? load_for_writing(files, false, err) : refresh(files, err);
}

// ---- commit

enum code notes_build(struct files_store *files, const struct commit *commit, struct note_node **nodes,
                      struct error *err)
{
    struct buf *frame = &files->frame;
    enum code rc = load_for_writing(files, true, err);
    if (rc == OK) rc = note_list_check(&files->notes.list, commit, err);
    if (rc != OK) return rc;
    uint64_t offset = files->notes.end;
    buf_add(frame, (struct str){(const char *)&offset, sizeof(offset)});
    for (size_t i = 0; i < commit->note_count; i++) {
        const struct note_change *note = &commit->notes[i];
        size_t from = frame->len;
        add_record(frame, note, i + 1 == commit->note_count);
        if (!buf_ok(frame)) return error_nomem(err);
        if (note->after > 0 && !(nodes[i] = make_node(note, offset))) return error_nomem(err);
        offset += frame->len - from;
    }
    return OK;
}

void notes_show(struct files_store *files, const struct commit *commit, struct note_node **nodes)
{
    for (size_t i = 0; i < commit->note_count; i++) show(files, &commit->notes[i], nodes[i]);
    struct str bytes = frame_notes(buf_str(&files->frame));
    if (bytes.len > 0) files->notes.end += bytes.len - sizeof(uint64_t);
}

enum code notes_apply(struct files_store *files, struct str frame, struct error *err)
{
    struct str bytes = frame_notes(frame);
    uint64_t offset;
    if (bytes.len < sizeof(offset)) return error_set(err, E_CORRUPT, "a frame of the journal is malformed");
    memcpy(&offset, bytes.ptr, sizeof(offset));
    enum code rc = open_file(files, true, err);
    if (rc != OK) return rc;
    return files->disk->ops->write(files->notes.file, offset, bytes.ptr + sizeof(offset), bytes.len - sizeof(offset),
                                   err);
}

// ---- reading

static enum code read_value(struct files_store *files, struct note_place place, struct arena *arena, struct str *out,
                            struct error *err)
{
    char *bytes = arena_alloc(arena, place.size + 1);
    if (!bytes) return error_nomem(err);
    *out = (struct str){bytes, place.size};
    if (place.size == 0) return OK;
    struct str fresh = files->pending ? frame_notes(buf_str(&files->frame)) : STR("");
    uint64_t offset = 0;
    if (fresh.len > sizeof(offset)) memcpy(&offset, fresh.ptr, sizeof(offset));
    if (offset > 0 && place.offset >= offset) { // durable, but not applied yet
        memcpy(bytes, fresh.ptr + sizeof(offset) + (place.offset - offset), place.size);
        return OK;
    }
    size_t got = 0;
    enum code rc = files->disk->ops->read(files->notes.file, place.offset, bytes, place.size, &got, err);
    if (rc == OK && got != place.size) rc = error_set(err, E_CORRUPT, NOTES_PATH " became shorter");
    return rc;
}

static enum code take_note(struct files_store *files, const struct note_node *node, struct arena *arena,
                           struct note *out, struct error *err)
{
    *out = (struct note){.version = node->version};
    if (!arena) return OK;
    out->space = arena_copy(arena, node->space);
    out->key = arena_copy(arena, node->key);
    if (!out->space.ptr || !out->key.ptr) return error_nomem(err);
    return read_value(files, place_of(node), arena, &out->value, err);
}

enum code files_note(struct store *base, struct str space, struct str key, struct arena *arena, struct note *out,
                     struct error *err)
{
    struct files_store *files = files_of(base);
    enum code rc = prepare(files, err);
    if (rc != OK) return rc;
    const struct note_node *node = note_list_find(&files->notes.list, space, key);
    return node ? take_note(files, node, arena, out, err) : note_missing(space, key, err);
}

enum code files_notes(struct store *base, struct str space, struct str after, size_t limit, struct arena *arena,
                      struct notes *out, struct error *err)
{
    struct files_store *files = files_of(base);
    size_t capacity = 0;
    enum code rc = prepare(files, err);
    if (rc != OK) return rc;
    const struct note_node *node = note_list_above(&files->notes.list, space, after);
    for (; rc == OK && node && str_eq(node->space, space) && out->count < limit; node = node->next[0]) {
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        rc = out->items ? take_note(files, node, arena, &out->items[out->count++], err) : error_nomem(err);
    }
    return rc;
}

enum code files_next_space(struct store *base, struct str after, struct arena *arena, struct str *out,
                           struct error *err)
{
    struct files_store *files = files_of(base);
    *out = STR("");
    enum code rc = prepare(files, err);
    const struct note_node *node = rc == OK ? note_list_beyond(&files->notes.list, after) : NULL;
    if (!node) return rc;
    *out = arena_copy(arena, node->space);
    return out->ptr ? OK : error_nomem(err);
}

// ---- written anew

static enum code copy_notes(struct files_store *files, struct file *file, uint64_t *end, struct error *err)
{
    enum code rc = OK;
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, SIZE_MAX);
    struct buf record SCOPED(buf_release) = buf_of(NOTE_ROOM + 1);
    for (const struct note_node *node = files->notes.list.first[0]; node && rc == OK; node = node->next[0]) {
        struct note note;
        arena_reset(&arena);
        buf_clear(&record);
        rc = take_note(files, node, &arena, &note, err);
        if (rc != OK) break;
        add_record(
            &record,
            &(struct note_change){.space = note.space, .key = note.key, .value = note.value, .after = note.version},
            true);
        rc = buf_ok(&record) ? files->disk->ops->write(file, *end, record.ptr, record.len, err) : error_nomem(err);
        *end += record.len;
    }
    return rc;
}

// The journal is begun anew in between: no frame may tell of places in the old file.
static enum code replace_file(struct files_store *files, bool *replaced, struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    struct file *file;
    uint64_t end = sizeof(struct notes_header), generation = files->notes.generation + 1;
    enum code rc =
        ops->open(files->disk, NOTES_PATH ".tmp", OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE, &file, err);
    if (rc != OK) return rc;
    rc = write_generation(files, file, generation, err);
    if (rc == OK) rc = copy_notes(files, file, &end, err);
    if (rc == OK) rc = ops->sync(file, err);
    ops->close(file);
    if (rc == OK) rc = journal_checkpoint(files, err);
    if (rc != OK) return rc;
    *replaced = true;
    rc = ops->rename(files->disk, NOTES_PATH ".tmp", NOTES_PATH, err);
    return rc == OK ? ops->sync_dir(files->disk, ".cairn", err) : rc;
}

enum code notes_compact(struct files_store *files, struct error *err)
{
    struct notes_file *notes = &files->notes;
    enum code rc = load_for_writing(files, true, err);
    if (rc != OK || notes->end < NOTES_KEPT || notes->live > notes->end / 4) return rc;
    bool replaced = false;
    struct error told = {.code = OK};
    rc = replace_file(files, &replaced, &told);
    if (rc == OK || replaced) notes_close(files); // and read again, whichever it is
    if (rc == E_FULL || rc == E_NOMEM || rc == E_LIMIT) {
        os_log(LOG_WARN, "notes could not be written anew reason=\"%s\"", told.message);
        (void)!files->disk->ops->remove(files->disk, NOTES_PATH ".tmp", NULL);
        rc = OK;
    }
    return rc == OK ? load_for_writing(files, true, err) : error_set(err, rc, "%s", told.message);
}
