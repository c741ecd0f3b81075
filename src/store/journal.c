// The journal of the files store: header blocks and frames. The format is in files.h.
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEADER_MAGIC "CAIRNJ1\n"
#define GROWTH_STEP (1u << 20)
#define LARGE_FRAME (64u << 10)
#define LARGE_SHARE 16 // of a small journal
#define FRAME_SIZE_MAX (1u << 30)

// Blocks that a frame takes, with its checksum.
static uint64_t padded(uint64_t size)
{
    return (size + sizeof(uint32_t) + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
}

static uint32_t header_crc(const struct journal_header *header)
{
    size_t from = offsetof(struct journal_header, fed);
    return crc32c(0, (const uint8_t *)header + from, sizeof(*header) - from);
}

// The checksum is the last thing in the last block: where it is, all of the frame is. A write that was cut short leaves there what was
// there before, be it zeros or the checksum of another frame, so E_FULL stored nothing indeed (S10).
static uint32_t frame_crc(const struct buf *frame)
{
    return crc32c(0, frame->ptr, frame->len - sizeof(uint32_t));
}

static void seal_frame(struct buf *frame, struct frame_header header)
{
    INVARIANT(frame->len % BLOCK_SIZE == 0);
    INVARIANT(frame->len >= sizeof(header) + sizeof(uint32_t));
    memcpy(frame->ptr, &header, sizeof(header));
    uint32_t crc = frame_crc(frame);
    memcpy(frame->ptr + frame->len - sizeof(crc), &crc, sizeof(crc));
}

static enum code write_header(struct files_store *files, struct journal_header next, struct error *err)
{
    struct journal *journal = &files->journal;
    uint8_t block[BLOCK_SIZE] = {0};
    memcpy(next.magic, HEADER_MAGIC, sizeof(next.magic));
    next.sequence = journal->header.sequence + 1;
    next.fed = files->feed.behind ? 0 : (uint32_t)next.incarnation;
    next.crc = header_crc(&next);
    memcpy(block, &next, sizeof(next));
    enum code rc = files->disk->ops->write(journal->file, next.sequence % 2 * BLOCK_SIZE, block, sizeof(block), err);
    if (rc == OK) rc = files->disk->ops->sync(journal->file, err);
    if (rc == OK) journal->header = next;
    return rc;
}

static enum code grow(struct files_store *files, uint64_t need, struct error *err)
{
    INVARIANT(need >= JOURNAL_FRAMES);
    struct journal *journal = &files->journal;
    if (need <= journal->size) return OK;
    uint64_t size = journal->size + GROWTH_STEP < journal->capacity ? journal->size + GROWTH_STEP : journal->capacity;
    if (size < need) size = need;
    enum code rc = files->disk->ops->allocate(journal->file, size, err);
    if (rc == OK) journal->size = size;
    return rc;
}

enum code journal_create(struct files_store *files, uint64_t first_batch, struct error *err)
{
    INVARIANT(files->writer);
    INVARIANT(first_batch > 0);
    struct journal *journal = &files->journal;
    enum code rc = files->disk->ops->truncate(journal->file, 0, err);
    if (rc != OK) return rc;
    journal->size = 0;
    journal->end = JOURNAL_FRAMES;
    journal->next_batch = first_batch;
    journal->header = (struct journal_header){.sequence = 0};
    rc = grow(files, JOURNAL_FRAMES + BLOCK_SIZE, err);
    if (rc != OK) return rc;
    return write_header(files, (struct journal_header){.generation = 1, .first_batch = first_batch, .incarnation = 1},
                        err);
}

// ---- finding the frames

static enum code read_header(struct files_store *files, uint64_t block, struct journal_header *out, bool *valid,
                             struct error *err)
{
    size_t got = 0;
    enum code rc = files->disk->ops->read(files->journal.file, block * BLOCK_SIZE, out, sizeof(*out), &got, err);
    *valid = rc == OK && got == sizeof(*out) && memcmp(out->magic, HEADER_MAGIC, sizeof(out->magic)) == 0 &&
             out->crc == header_crc(out) && out->sequence % 2 == block && out->generation > 0 && out->first_batch > 0;
    return rc;
}

static enum code read_headers(struct files_store *files, struct error *err)
{
    struct journal_header headers[2];
    bool valid[2];
    for (uint64_t i = 0; i < 2; i++) {
        enum code rc = read_header(files, i, &headers[i], &valid[i], err);
        if (rc != OK) return rc;
    }
    if (!valid[0] && !valid[1]) return error_set(err, E_CORRUPT, "both headers of the journal are damaged");
    bool second = valid[1] && (!valid[0] || headers[1].sequence > headers[0].sequence);
    files->journal.header = headers[second];
    return OK;
}

// Reads the frame at `offset` into files->frame, with its padding. *whole is false when there is none or it is not whole.
static enum code read_frame(struct files_store *files, uint64_t offset, struct frame_header *header, bool *whole,
                            struct error *err)
{
    const struct journal *journal = &files->journal;
    size_t got = 0;
    *whole = false;
    *header = (struct frame_header){0};
    enum code rc = files->disk->ops->read(journal->file, offset, header, sizeof(*header), &got, err);
    if (rc != OK || got < sizeof(*header) || header->magic != FRAME_MAGIC) return rc;
    uint64_t size = padded(header->size);
    if (header->size < sizeof(*header) || header->size > FRAME_SIZE_MAX || size > journal->size ||
        offset > journal->size - size)
        return OK;
    buf_clear(&files->frame);
    char *bytes = buf_reserve(&files->frame, size);
    if (!bytes) return error_nomem(err);
    rc = files->disk->ops->read(journal->file, offset, bytes, size, &got, err);
    if (rc != OK || got != size) return rc;
    files->frame.len = size;
    memcpy(header, bytes, sizeof(*header));
    uint32_t crc;
    memcpy(&crc, bytes + size - sizeof(crc), sizeof(crc));
    *whole = crc == frame_crc(&files->frame);
    return OK;
}

static bool belongs(const struct journal *journal, const struct frame_header *header)
{
    bool copy =
        header->flags == FRAME_COPY && header->batch + 1 == journal->next_batch && journal->end > JOURNAL_FRAMES;
    return header->generation == journal->header.generation && (header->batch == journal->next_batch || copy);
}

// After a bad frame: I6 says that nothing of this generation, let alone a later one, may be valid behind it, but for its own copy. Leaves
// *at where that copy is, or at the end of the file.
static enum code find_copy(struct files_store *files, uint64_t *at, struct error *err)
{
    struct journal *journal = &files->journal;
    for (; *at + BLOCK_SIZE <= journal->size; *at += BLOCK_SIZE) {
        struct frame_header header = {0};
        bool whole;
        size_t got = 0;
        enum code rc = files->disk->ops->read(journal->file, *at, &header, sizeof(header), &got, err);
        if (rc != OK) return rc;
        if (header.magic != FRAME_MAGIC || header.generation < journal->header.generation) continue;
        rc = read_frame(files, *at, &header, &whole, err);
        if (rc != OK) return rc;
        if (!whole) continue;
        if (header.flags == FRAME_COPY && belongs(journal, &header)) return OK;
        return error_set(err, E_CORRUPT,
                         "the journal is damaged at %" PRIu64 ": batch %" PRIu64 " is missing, batch %" PRIu64
                         " is there",
                         journal->end, journal->next_batch, header.batch);
    }
    return OK;
}

// What is left of a frame whose writing was cut short: it was never acknowledged. Kept, reported, and made unreadable.
static enum code drop_torn(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer);
    struct journal *journal = &files->journal;
    struct frame_header header = {0};
    size_t got = 0;
    enum code rc = files->disk->ops->read(journal->file, journal->end, &header, sizeof(header), &got, err);
    if (rc != OK || got < sizeof(header) || header.magic != FRAME_MAGIC ||
        header.generation != journal->header.generation)
        return rc;
    uint64_t size = padded(header.size);
    if (header.size < sizeof(header) || size > journal->size - journal->end) size = BLOCK_SIZE;
    buf_clear(&files->frame);
    char *bytes = buf_reserve(&files->frame, size);
    if (!bytes) return error_nomem(err);
    rc = files->disk->ops->read(journal->file, journal->end, bytes, size, &got, err);
    if (rc != OK) return rc;
    char name[64];
    snprintf(name, sizeof(name), "torn-batch-%" PRIu64, journal->next_batch);
    rc = files_keep_torn(files, name, (struct str){bytes, got}, err);
    if (rc != OK) return rc;
    static const uint8_t zeros[BLOCK_SIZE];
    return files->disk->ops->write(journal->file, journal->end, zeros, sizeof(zeros), err);
}

// Takes the frame at *at, or the copy of it that follows. *at is behind it then; *whole is false at the end.
static enum code next_frame(struct files_store *files, uint64_t *at, struct frame_header *header, bool *whole,
                            struct error *err)
{
    struct journal *journal = &files->journal;
    enum code rc = read_frame(files, *at, header, whole, err);
    if (rc == OK && (!*whole || !belongs(journal, header))) {
        *whole = false;
        rc = find_copy(files, at, err);
        if (rc == OK && *at + BLOCK_SIZE <= journal->size) rc = read_frame(files, *at, header, whole, err);
    }
    if (rc != OK || !*whole) return rc;
    journal->next_batch = header->batch + 1;
    *at += padded(header->size);
    return OK;
}

// Writes the last frame, which lies at `from`, once more behind itself, so that it does not matter whether it is really where it seems.
static enum code prove(struct files_store *files, uint64_t from, struct error *err)
{
    INVARIANT(from >= JOURNAL_FRAMES && from % BLOCK_SIZE == 0);
    struct journal *journal = &files->journal;
    struct frame_header header;
    bool whole;
    enum code rc = read_frame(files, from, &header, &whole, err);
    if (rc == OK && !whole) rc = error_set(err, E_CORRUPT, "the last frame of the journal reads differently each time");
    if (rc == OK) rc = grow(files, journal->end + files->frame.len, err);
    if (rc != OK) return rc;
    header.flags = FRAME_COPY;
    seal_frame(&files->frame, header);
    rc = files->disk->ops->write(journal->file, journal->end, files->frame.ptr, files->frame.len, err);
    if (rc == OK) rc = files->disk->ops->sync(journal->file, err);
    if (rc == OK) journal->end += files->frame.len;
    return rc;
}

enum code journal_open(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer);
    struct journal *journal = &files->journal;
    enum code rc = files->disk->ops->size(journal->file, &journal->size, err);
    if (rc == OK) rc = read_headers(files, err);
    if (rc != OK) return rc;
    journal->end = JOURNAL_FRAMES;
    journal->next_batch = journal->header.first_batch;
    uint64_t last = 0, at = journal->end;
    for (bool whole = true; whole;) {
        struct frame_header header;
        rc = next_frame(files, &at, &header, &whole, err);
        if (rc != OK) return rc;
        if (!whole) break;
        last = at - padded(header.size);
        journal->end = at;
    }
    rc = drop_torn(files, err);
    if (rc == OK && last && journal->end > journal->header.proven) rc = prove(files, last, err);
    if (rc != OK) return rc;
    struct journal_header next = journal->header;
    files->feed.behind |= next.fed != (uint32_t)next.incarnation;
    next.incarnation++;
    next.proven = journal->end;
    return write_header(files, next, err);
}

enum code journal_frames(struct files_store *files, journal_visit visit, struct error *err)
{
    INVARIANT(files->writer);
    struct journal *journal = &files->journal;
    uint64_t next_batch = journal->next_batch;
    enum code rc = OK;
    journal->next_batch = journal->header.first_batch;
    for (uint64_t at = JOURNAL_FRAMES; rc == OK && at < journal->end;) {
        struct frame_header header;
        bool whole;
        rc = next_frame(files, &at, &header, &whole, err);
        if (rc == OK && !whole) rc = error_set(err, E_CORRUPT, "the journal reads differently each time");
        if (rc == OK) rc = visit(files, buf_str(&files->frame), err);
    }
    journal->next_batch = next_batch;
    return rc;
}

enum code journal_look(struct files_store *files, journal_visit visit, struct error *err)
{
    INVARIANT(!files->writer);
    struct journal *journal = &files->journal;
    enum code rc = files->disk->ops->size(journal->file, &journal->size, err);
    if (rc != OK || journal->size == 0) return rc;
    rc = read_headers(files, err);
    if (rc == OK && files_was_closed(files)) return OK;
    journal->end = JOURNAL_FRAMES;
    journal->next_batch = journal->header.first_batch;
    for (uint64_t at = journal->end; rc == OK;) {
        struct frame_header header;
        bool whole;
        rc = next_frame(files, &at, &header, &whole, err);
        if (rc != OK || !whole) break;
        journal->end = at;
        rc = visit(files, buf_str(&files->frame), err);
    }
    return rc;
}

// ---- appending

enum code journal_checkpoint(struct files_store *files, struct error *err)
{
    struct journal *journal = &files->journal;
    INVARIANT(!files->pending);
    enum code rc = files->disk->ops->sync_all(files->disk, err);
    if (rc != OK) return rc;
    struct journal_header next = journal->header;
    next.generation++;
    next.first_batch = journal->next_batch;
    next.proven = JOURNAL_FRAMES;
    rc = write_header(files, next, err);
    if (rc == OK) journal->end = JOURNAL_FRAMES;
    return rc;
}

enum code journal_append(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer && !files->pending);
    INVARIANT(files->journal.end >= JOURNAL_FRAMES && files->journal.end % BLOCK_SIZE == 0);
    struct journal *journal = &files->journal;
    struct buf *frame = &files->frame;
    size_t size = frame->len;
    uint64_t whole = padded(size);
    if (size > FRAME_SIZE_MAX) return error_set(err, E_LIMIT, "a batch of %zu bytes is too large", size);
    char *zeros = buf_reserve(frame, whole - size + 1);
    if (!zeros) return error_nomem(err);
    memset(zeros, 0, whole - size);
    frame->len = whole;
    enum code rc = OK;
    if (journal->end + whole > journal->capacity && journal->end > JOURNAL_FRAMES) rc = journal_checkpoint(files, err);
    // Zeros that are there already make the sync of a small frame cheaper. A large one would be written twice for that.
    bool large = whole >= LARGE_FRAME || whole >= journal->capacity / LARGE_SHARE;
    if (rc == OK && !large) rc = grow(files, journal->end + whole, err);
    if (rc != OK) return rc;
    struct frame_header header;
    memcpy(&header, frame->ptr, sizeof(header));
    header.magic = FRAME_MAGIC;
    header.generation = journal->header.generation;
    header.batch = journal->next_batch;
    header.size = (uint32_t)size;
    seal_frame(frame, header);
    rc = files->disk->ops->write(journal->file, journal->end, frame->ptr, whole, err);
    if (rc == OK) rc = files->disk->ops->sync(journal->file, err);
    if (rc != OK) return rc;
    INVARIANT(frame->len == whole);
    journal->end += whole;
    if (journal->size < journal->end) journal->size = journal->end;
    journal->next_batch++;
    return OK;
}
