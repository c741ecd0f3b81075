// Reading runs. The n-th line of a file is the n-th record, so nothing but the position of a line has to be found: from the start, from
// the end, or from where the last page ended, whichever is nearest.
#include "store/files.h"

#include <inttypes.h>
#include <string.h>

enum { PAGE_MIN = 4096, SCAN_SIZE = 64 * 1024, SURPLUS_MAX = 16 * 1024 * 1024 };

struct lines {
    struct files_store *files;
    const struct disk_slot *slot;
    enum run_file kind;
    uint64_t count; // as the slot says
    uint64_t size;  // as the slot says, but not more than there is
    bool whole;     // the file is as long as the slot says
};

// ---- bytes of a run file

// What is stored but not applied yet lies over what the file holds.
static size_t overlay_pending(const struct lines *lines, uint64_t offset, char *bytes, size_t size, size_t got)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    if (!lines->files->pending || !frame_begin(buf_str(&lines->files->frame), &header, &cursor)) return got;
    while (frame_next(&cursor, &part)) {
        if (part.run.position != lines->slot->position) continue;
        struct str piece = lines->kind == RUN_EVENTS ? part.events : part.ledger;
        uint64_t at = lines->kind == RUN_EVENTS ? part.run.events_offset : part.run.ledger_offset;
        uint64_t from = at > offset ? at : offset;
        uint64_t to = at + piece.len < offset + size ? at + piece.len : offset + size;
        if (from >= to || from - offset > got) continue;
        memcpy(bytes + (from - offset), piece.ptr + (from - at), (size_t)(to - from));
        if (to - offset > got) got = (size_t)(to - offset);
    }
    return got;
}

static enum code read_bytes(const struct lines *lines, uint64_t offset, char *bytes, size_t size, size_t *got,
                            struct error *err)
{
    struct file *file;
    struct error told = {.code = OK};
    *got = 0;
    enum code rc = files_open_run(lines->files, lines->slot, lines->kind, false, &file, &told);
    if (rc == OK) rc = lines->files->disk->ops->read(file, offset, bytes, size, got, &told);
    if (rc == E_NOT_FOUND) // cut to nothing; the caller counts the records and misses them
        rc = OK;
    if (rc != OK) return error_set(err, rc, "%s", told.message);
    *got = overlay_pending(lines, offset, bytes, size, *got);
    return OK;
}

static enum code lines_open(struct files_store *files, const struct disk_slot *slot, enum run_file kind,
                            struct lines *out, struct error *err)
{
    *out = (struct lines){.files = files, .slot = slot, .kind = kind, .whole = true};
    out->count = kind == RUN_EVENTS ? slot->last_seq : slot->ledger_seq;
    out->size = kind == RUN_EVENTS ? slot->events_size : slot->ledger_size;
    if (out->size == 0) return OK;
    char last;
    size_t got = 0;
    enum code rc = read_bytes(out, out->size - 1, &last, 1, &got, err);
    if (rc != OK) return rc;
    out->whole = got == 1 && last == '\n';
    if (got == 1) return OK;
    struct file *file;
    uint64_t size = 0;
    rc = files_open_run(files, slot, kind, false, &file, NULL);
    if (rc == OK) rc = files->disk->ops->size(file, &size, err);
    if (size < out->size) out->size = size;
    return rc == E_NOT_FOUND ? OK : rc;
}

// ---- positions of lines

static struct read_cursor *cursor_of(const struct lines *lines)
{
    return &lines->files->cursors[(lines->slot->position * 2 + (uint64_t)lines->kind) % CURSOR_COUNT];
}

// Moves *offset, where line *seq + 1 begins, forward to the beginning of line `after` + 1 (or the end).
static enum code skip_forward(const struct lines *lines, uint64_t after, uint64_t *seq, uint64_t *offset,
                              struct error *err)
{
    char bytes[SCAN_SIZE];
    while (*seq < after && *offset < lines->size) {
        size_t want = lines->size - *offset < sizeof(bytes) ? (size_t)(lines->size - *offset) : sizeof(bytes), got = 0;
        enum code rc = read_bytes(lines, *offset, bytes, want, &got, err);
        if (rc != OK || got == 0) return rc;
        const char *at = bytes, *end = bytes + got;
        while (*seq < after && at < end) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            at = newline ? newline + 1 : end;
            if (newline) (*seq)++;
        }
        *offset += (uint64_t)(at - bytes);
    }
    return OK;
}

// The beginning of line `after` + 1, counted from the end of the file.
static enum code skip_backward(const struct lines *lines, uint64_t after, uint64_t *offset, struct error *err)
{
    char bytes[SCAN_SIZE];
    uint64_t end = lines->size,
             left = lines->count - after + 1; // newlines to meet, with the one that ends line `after`
    while (end > 0) {
        size_t want = end < sizeof(bytes) ? (size_t)end : sizeof(bytes), got = 0;
        enum code rc = read_bytes(lines, end - want, bytes, want, &got, err);
        if (rc != OK) return rc;
        if (got != want) break;
        for (size_t at = want; at > 0; at--)
            if (bytes[at - 1] == '\n' && --left == 0) {
                *offset = end - want + at;
                return OK;
            }
        end -= want;
    }
    *offset = 0;
    return OK;
}

static enum code find_line(const struct lines *lines, uint64_t after, uint64_t *offset, struct error *err)
{
    const struct read_cursor *cursor = cursor_of(lines);
    uint64_t seq = 0;
    *offset = 0;
    if (cursor->position == lines->slot->position && cursor->kind == lines->kind && cursor->seq <= after &&
        lines->whole) {
        seq = cursor->seq;
        *offset = cursor->offset;
    }
    if (lines->whole && lines->count - after < after - seq) return skip_backward(lines, after, offset, err);
    return skip_forward(lines, after, &seq, offset, err);
}

// ---- records

// Bytes from `offset` that hold at least `want` whole lines, or all there are.
static enum code read_lines(const struct lines *lines, uint64_t offset, uint64_t want, struct arena *arena,
                            struct str *out, struct error *err)
{
    uint64_t left = lines->size - offset;
    uint64_t guess = lines->size / (lines->count ? lines->count : 1) + 64;
    uint64_t size = want > left / guess ? left : want * guess + PAGE_MIN;
    for (;; size *= 4) {
        if (size > left) size = left;
        char *bytes = arena_alloc(arena, (size_t)size + 1);
        if (!bytes) return error_nomem(err);
        size_t got = 0;
        enum code rc = read_bytes(lines, offset, bytes, (size_t)size, &got, err);
        if (rc != OK) return rc;
        *out = (struct str){bytes, got};
        uint64_t have = 0;
        const char *end = bytes + got;
        for (const char *at = bytes; have < want && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) have++;
        if (have >= want || size == left || got < size) return OK;
    }
}

static enum code read_page(struct lines *lines, uint64_t after, size_t limit, struct arena *arena, struct records *out,
                           struct error *err)
{
    uint64_t offset;
    if (after >= lines->count || limit == 0) return OK;
    uint64_t want = lines->count - after < limit ? lines->count - after : limit;
    enum code rc = find_line(lines, after, &offset, err);
    if (rc != OK || offset >= lines->size) return rc;
    struct str bytes;
    rc = read_lines(lines, offset, want, arena, &bytes, err);
    if (rc != OK) return rc;
    size_t room = want < bytes.len + 1 ? (size_t)want : bytes.len + 1;
    out->items = ARENA_ARRAY(arena, room, struct record);
    if (!out->items) return error_nomem(err);
    size_t at = 0;
    while (out->count < room && at < bytes.len) {
        size_t end = str_find(bytes, '\n', at);
        struct str line = str_slice(bytes, at, end);
        uint64_t number = after + out->count + 1;
        if (lines->kind == RUN_EVENTS)
            event_line_read(line, number, (enum vocabulary)lines->slot->vocabulary, arena, &out->items[out->count++]);
        else
            ledger_line_read(line, number, arena, &out->items[out->count++]);
        at = end < bytes.len ? end + 1 : end;
    }
    if (lines->whole)
        *cursor_of(lines) = (struct read_cursor){.position = lines->slot->position,
                                                 .seq = after + out->count,
                                                 .offset = offset + at,
                                                 .kind = (uint8_t)lines->kind};
    return OK;
}

enum code files_read(struct store *base, const struct record_range *range, struct arena *arena, struct records *out,
                     struct error *err)
{
    struct files_store *files = files_of(base);
    struct disk_slot slot;
    struct lines lines;
    uint64_t position;
    enum code rc = files_need(files, range->tenant, range->run, &position, &slot, err);
    if (rc == OK) rc = lines_open(files, &slot, range->ledger ? RUN_LEDGER : RUN_EVENTS, &lines, err);
    return rc == OK ? read_page(&lines, range->after, range->limit, arena, out, err) : rc;
}

// ---- what no head speaks of

static enum code read_surplus(struct files_store *files, const struct disk_slot *slot, enum run_file kind,
                              struct arena *arena, struct str *out, struct error *err)
{
    uint64_t size = kind == RUN_EVENTS ? slot->events_size : slot->ledger_size, have = 0;
    struct file *file;
    struct error told = {.code = OK};
    *out = STR("");
    enum code rc = files_open_run(files, slot, kind, false, &file, &told);
    if (rc == E_NOT_FOUND) return OK;
    if (rc == OK) rc = files->disk->ops->size(file, &have, &told);
    if (rc != OK) return error_set(err, rc, "%s", told.message);
    if (have <= size) return OK;
    size_t room = have - size < SURPLUS_MAX ? (size_t)(have - size) : SURPLUS_MAX, got = 0;
    char *bytes = arena_alloc(arena, room);
    if (!bytes) return error_nomem(err);
    rc = files->disk->ops->read(file, size, bytes, room, &got, err);
    *out = (struct str){bytes, got};
    return rc;
}

enum code files_surplus(struct store *base, struct str tenant, struct str run, struct arena *arena, struct surplus *out,
                        struct error *err)
{
    struct files_store *files = files_of(base);
    struct disk_slot slot;
    uint64_t position;
    enum code rc = files_need(files, tenant, run, &position, &slot, err);
    if (rc != OK || files->writer) return rc; // it cut off what it found, and what stands there now is its own
    *out = (struct surplus){.last_seq = slot.last_seq, .ledger_seq = slot.ledger_seq};
    memcpy(out->head.b, slot.head, SHA256_SIZE);
    memcpy(out->ledger_head.b, slot.ledger_head, SHA256_SIZE);
    out->terminal = (slot.flags & SLOT_TERMINAL) != 0;
    rc = read_surplus(files, &slot, RUN_EVENTS, arena, &out->events, err);
    return rc == OK ? read_surplus(files, &slot, RUN_LEDGER, arena, &out->ledger, err) : rc;
}

enum code files_read_entry(struct files_store *files, const struct disk_slot *slot, const struct disk_feed *entry,
                           uint64_t skip, uint64_t want, struct arena *arena, struct records *out, struct error *err)
{
    struct lines lines;
    enum code rc = lines_open(files, slot, RUN_EVENTS, &lines, err);
    if (rc != OK) return rc;
    uint64_t before = (uint64_t)entry->seq - 1, after = before + skip;
    struct read_cursor *cursor = cursor_of(&lines);
    bool nearer = cursor->position == slot->position && cursor->kind == RUN_EVENTS && cursor->seq >= before &&
                  cursor->seq <= after;
    if (!nearer) *cursor = (struct read_cursor){.position = slot->position, .seq = before, .offset = entry->offset};
    return read_page(&lines, after, (size_t)want, arena, out, err);
}

enum code files_find_event(struct files_store *files, const struct disk_slot *slot, uint64_t seq, uint64_t *offset,
                           struct error *err)
{
    INVARIANT(seq >= 1);
    struct lines lines;
    enum code rc = lines_open(files, slot, RUN_EVENTS, &lines, err);
    return rc == OK ? find_line(&lines, seq - 1, offset, err) : rc;
}

enum code files_check_last(struct files_store *files, const struct disk_slot *slot, struct error *err)
{
    struct lines lines;
    struct records last = {0};
    if (slot->last_seq == 0) return OK;
    struct arena arena SCOPED(arena_release) = arena_of(PAGE_MIN, SIZE_MAX);
    enum code rc = lines_open(files, slot, RUN_EVENTS, &lines, err);
    if (rc == OK && lines.whole) rc = read_page(&lines, slot->last_seq - 1, 1, &arena, &last, err);
    if (rc == OK) {
        struct digest hash = last.count ? sha256(last.items[0].bytes) : (struct digest){{0}};
        if (memcmp(hash.b, slot->head, SHA256_SIZE) != 0)
            rc = error_set(err, E_CORRUPT, "event %" PRIu64 " is not the one that was stored", slot->last_seq);
    }
    return rc;
}

enum code files_head(struct store *base, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                     struct error *err)
{
    struct files_store *files = files_of(base);
    struct disk_slot slot;
    uint64_t position;
    enum code rc = files_need(files, tenant, run, &position, &slot, err);
    if (rc == OK) rc = files_decode_slot(files, &slot, arena, out, err);
    if (rc == OK) files_tell_owner(files, out);
    return rc;
}
