// The feed of the files store: where the events of each commit stand, in the order of commits. Entries are written when a frame is
// applied and derived from it alone, so recovery writes the same ones again. What is older than the journal is durable (sync_all).
#include "store/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FEED_MAGIC "CAIRNF1\n"
enum { CHUNK = 64, ENTRIES_PER_WRITE = 256 };

static uint32_t entry_crc(const struct disk_feed *entry)
{
    return crc32c(0, (const uint8_t *)entry + sizeof(entry->crc), sizeof(*entry) - sizeof(entry->crc));
}

static bool entry_valid(const struct disk_feed *entry)
{
    return entry->count > 0 && entry->run > 0 && entry->crc == entry_crc(entry);
}

static uint64_t entry_last(const struct disk_feed *entry)
{
    return entry->first + entry->count - 1;
}

// Entries that are not there read as zeros, which are not valid.
static enum code read_entries(struct files_store *files, uint64_t from, struct disk_feed *out, size_t count,
                              struct error *err)
{
    size_t got = 0;
    memset(out, 0, count * sizeof(*out));
    return files->disk->ops->read(files->feed.file, (from + 1) * sizeof(*out), out, count * sizeof(*out), &got, err);
}

static enum code entries_in_file(struct files_store *files, uint64_t *out, struct error *err)
{
    uint64_t size = 0;
    enum code rc = files->disk->ops->size(files->feed.file, &size, err);
    *out = size / sizeof(struct disk_feed);
    *out -= *out > 0;
    return rc;
}

// The first entry with an event above `after`.
static enum code find_above(struct files_store *files, uint64_t count, uint64_t after, uint64_t *out, struct error *err)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, at = middle;
        struct disk_feed entry = {0};
        for (; at < high && !entry_valid(&entry); at++) { // a damaged one says nothing; the next one does
            enum code rc = read_entries(files, at, &entry, 1, err);
            if (rc != OK) return rc;
        }
        if (entry_valid(&entry) && entry_last(&entry) <= after)
            low = at;
        else
            high = middle;
    }
    *out = low;
    return OK;
}

// ---- writing

static enum code write_entries(struct files_store *files, struct disk_feed *entries, size_t count, struct error *err)
{
    INVARIANT(files->writer && count > 0);
    struct feed_file *feed = &files->feed;
    uint64_t end = feed->end;
    for (size_t i = 0; i < count; i++) {
        entries[i].first = end + 1;
        entries[i].crc = entry_crc(&entries[i]);
        end = entry_last(&entries[i]);
    }
    enum code rc = files->disk->ops->write(feed->file, (feed->count + 1) * sizeof(*entries), entries,
                                           count * sizeof(*entries), err);
    if (rc != OK) return rc;
    feed->count += count;
    feed->end = end;
    return OK;
}

static uint32_t count_lines(struct str lines)
{
    uint32_t count = 0;
    const char *end = lines.ptr + lines.len;
    for (const char *at = lines.ptr; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) count++;
    return count;
}

enum code feed_apply(struct files_store *files, struct str frame, struct error *err)
{
    INVARIANT(files->writer);
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    struct disk_feed entries[ENTRIES_PER_WRITE];
    size_t count = 0;
    enum code rc = OK;
    struct feed_file before = files->feed;
    if (!frame_begin(frame, &header, &cursor)) return error_set(err, E_CORRUPT, "a frame of the journal is malformed");
    if (header.batch <= files->feed.batch) return OK; // tried again after something else of the frame failed
    while (rc == OK && frame_next(&cursor, &part)) {
        uint32_t lines = count_lines(part.events);
        if (lines == 0) continue;
        entries[count] = (struct disk_feed){.run = (uint32_t)part.run.position,
                                            .seq = (uint32_t)(part.slot.last_seq - lines + 1),
                                            .count = lines,
                                            .offset = part.run.events_offset,
                                            .batch = header.batch};
        count++;
        if (count < ENTRIES_PER_WRITE) continue;
        rc = write_entries(files, entries, count, err);
        count = 0;
    }
    if (rc == OK && count > 0) rc = write_entries(files, entries, count, err);
    if (rc == OK)
        files->feed.batch = header.batch;
    else
        files->feed = before;
    return rc;
}

// ---- opening for writing

static enum code write_header(struct files_store *files, struct error *err)
{
    struct feed_header header = {.zeros = {0}};
    memcpy(header.magic, FEED_MAGIC, sizeof(header.magic));
    return files->disk->ops->write(files->feed.file, 0, &header, sizeof(header), err);
}

enum code feed_create(struct files_store *files, struct error *err)
{
    enum code rc = write_header(files, err);
    return rc == OK ? files->disk->ops->sync(files->feed.file, err) : rc;
}

// A version that does not know the feed has left it as it was: whatever follows without a gap stays.
static enum code keep_whole(struct files_store *files, struct error *err)
{
    struct feed_file *feed = &files->feed;
    struct disk_feed entry;
    enum code rc;
    while ((rc = read_entries(files, feed->count, &entry, 1, err)) == OK && entry_valid(&entry) &&
           entry.first == feed->end + 1) {
        feed->end = entry_last(&entry);
        feed->count++;
    }
    feed->batch = UINT64_MAX; // nothing is derived from frames: what came before them may be missing
    return rc;
}

enum code feed_open(struct files_store *files, uint64_t first_batch, struct error *err)
{
    struct feed_file *feed = &files->feed;
    struct disk_feed chunk[CHUNK];
    uint64_t count = 0;
    enum code rc = entries_in_file(files, &count, err);
    feed->count = feed->end = 0;
    feed->batch = first_batch - 1;
    // From the end, because what was not synced may be anything, and what was synced is before it.
    while (rc == OK && count > 0 && feed->count == 0) {
        size_t size = count < CHUNK ? (size_t)count : CHUNK;
        rc = read_entries(files, count - size, chunk, size, err);
        for (size_t i = size; rc == OK && i > 0 && feed->count == 0; i--) {
            if (!entry_valid(&chunk[i - 1]) || chunk[i - 1].batch >= first_batch) continue;
            feed->count = count - size + i;
            feed->end = entry_last(&chunk[i - 1]);
        }
        count -= size;
    }
    return rc == OK && feed->behind ? keep_whole(files, err) : rc;
}

// The last event of each run that the feed has.
static enum code covered(struct files_store *files, uint32_t *seqs, struct error *err)
{
    struct disk_feed chunk[CHUNK];
    enum code rc = OK;
    for (uint64_t at = 0; rc == OK && at < files->feed.count; at += CHUNK) {
        rc = read_entries(files, at, chunk, CHUNK, err);
        for (size_t i = 0; rc == OK && i < CHUNK && at + i < files->feed.count; i++) {
            const struct disk_feed *entry = &chunk[i];
            uint32_t last = entry->seq + entry->count - 1;
            if (entry_valid(entry) && entry->run <= files->run_count && seqs[entry->run - 1] < last)
                seqs[entry->run - 1] = last;
        }
    }
    return rc;
}

static enum code add_missing(struct files_store *files, uint32_t *seqs, uint64_t *added, struct error *err)
{
    struct disk_feed entries[ENTRIES_PER_WRITE];
    size_t count = 0;
    enum code rc = OK;
    for (uint64_t position = 1; rc == OK && position <= files->run_count; position++) {
        struct disk_slot slot;
        uint32_t seen = seqs[position - 1];
        uint64_t offset = 0;
        if (files_read_slot(files, position, &slot, NULL) != OK || (slot.flags & SLOT_REMOVED)) continue;
        if (slot.last_seq <= seen) continue;
        if (seen > 0) rc = files_find_event(files, &slot, seen + 1, &offset, err);
        if (rc != OK) break;
        entries[count] = (struct disk_feed){.run = (uint32_t)position,
                                            .seq = seen + 1,
                                            .count = (uint32_t)(slot.last_seq - seen),
                                            .offset = offset,
                                            .batch = files->journal.next_batch - 1};
        count++;
        ++*added;
        if (count < ENTRIES_PER_WRITE && position < files->run_count) continue;
        rc = write_entries(files, entries, count, err);
        count = 0;
    }
    if (rc == OK && count > 0) rc = write_entries(files, entries, count, err);
    return rc;
}

// A version that does not know the feed has written: its events come now, run by run.
static enum code mend(struct files_store *files, struct error *err)
{
    uint64_t added = 0;
    uint32_t *seqs = calloc(files->run_count + 1, sizeof(*seqs));
    enum code rc = seqs ? covered(files, seqs, err) : error_nomem(err);
    if (rc == OK) rc = add_missing(files, seqs, &added, err);
    free(seqs);
    if (rc == OK) rc = write_header(files, err);
    if (rc == OK) rc = files->disk->ops->sync(files->feed.file, err);
    if (rc != OK) return rc;
    if (added > 0) os_log(LOG_INFO, "events of an older version were added to the feed runs=%" PRIu64, added);
    // The journal is begun anew: its frames are in the feed now, and the next recovery must not enter them once more.
    files->feed.behind = false;
    return journal_checkpoint(files, err);
}

enum code feed_settle(struct files_store *files, struct error *err)
{
    INVARIANT(files->writer);
    uint64_t count = 0;
    enum code rc = entries_in_file(files, &count, err);
    if (rc == OK && count > files->feed.count)
        rc = files->disk->ops->truncate(files->feed.file, (files->feed.count + 1) * sizeof(struct disk_feed), err);
    if (rc == OK && files->feed.behind) rc = mend(files, err);
    files->feed.batch = files->journal.next_batch - 1;
    return rc;
}

// ---- reading

// A reader may have come before the first writer that knows the feed.
static enum code open_for_reading(struct files_store *files, uint64_t *count, struct error *err)
{
    if (!files->feed.file &&
        files->disk->ops->open(files->disk, ".cairn/feed", OPEN_READ, &files->feed.file, NULL) != OK) {
        files->feed.file = NULL;
        return error_set(err, E_UNSUPPORTED,
                         "the store has no feed yet: it is made when the store is opened for writing");
    }
    if (!files->writer) return entries_in_file(files, count, err);
    struct error told = {.code = OK};
    enum code rc = files_flush(files, &told); // what is durable belongs to it
    *count = files->feed.count;
    return rc == OK || rc == E_FULL || rc == E_NOMEM || rc == E_LIMIT ? OK : error_set(err, rc, "%s", told.message);
}

// The events of one entry above `after`. What is damaged is left out here and named by store_verify; a sink must not stand still for it.
static enum code take_entry(struct files_store *files, const struct disk_feed *entry, uint64_t after, size_t limit,
                            struct arena *arena, struct feed *out, size_t *capacity, struct error *err)
{
    INVARIANT(out->count < limit);
    struct disk_slot slot;
    struct run_head head;
    struct records records = {0};
    uint64_t skip = after >= entry->first ? after - entry->first + 1 : 0;
    uint64_t want = entry->count - skip < limit - out->count ? entry->count - skip : limit - out->count;
    out->next = entry->first + skip + want - 1;
    enum code rc = files_read_slot(files, entry->run, &slot, NULL);
    if (rc == E_CORRUPT || (rc == OK && (slot.flags & SLOT_REMOVED))) {
        out->next = entry_last(entry);
        return OK;
    }
    if (rc == OK) rc = files_decode_slot(files, &slot, arena, &head, err);
    if (rc == OK) rc = files_read_entry(files, &slot, entry, skip, want, arena, &records, err);
    for (size_t i = 0; rc == OK && i < records.count; i++) {
        if (!ARENA_ROOM(arena, out->items, out->count, capacity)) return error_nomem(err);
        out->items[out->count++] = (struct feed_item){.position = entry->first + skip + i,
                                                      .tenant = head.ids.tenant,
                                                      .run = head.ids.run,
                                                      .vocabulary = head.vocabulary,
                                                      .record = records.items[i]};
    }
    return rc;
}

// The last ones may be under way. One before others is damaged: going on would lose its events without a word, unless they were seen.
static enum code at_damage(struct files_store *files, uint64_t at, uint64_t count, uint64_t after, bool *over,
                           struct error *err)
{
    struct disk_feed next = {0};
    enum code rc = OK;
    for (uint64_t i = at + 1; rc == OK && i < count && !entry_valid(&next); i++)
        rc = read_entries(files, i, &next, 1, err);
    *over = rc == OK && entry_valid(&next) && next.first <= after + 1;
    if (rc != OK || *over || !entry_valid(&next)) return rc;
    return error_set(err, E_CORRUPT, ".cairn/feed is damaged at entry %" PRIu64, at);
}

enum code files_feed(struct store *base, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                     struct error *err)
{
    struct files_store *files = files_of(base);
    struct disk_feed chunk[CHUNK];
    uint64_t count = 0, at = 0;
    size_t capacity = 0;
    enum code rc = open_for_reading(files, &count, err);
    if (rc == OK) rc = find_above(files, count, after, &at, err);
    for (; rc == OK && at < count && out->count < limit; at += CHUNK) {
        size_t in_chunk = count - at < CHUNK ? (size_t)(count - at) : CHUNK;
        if (in_chunk > limit - out->count) in_chunk = limit - out->count;
        rc = read_entries(files, at, chunk, in_chunk, err);
        for (size_t i = 0; rc == OK && i < in_chunk && out->count < limit; i++) {
            bool over = true;
            if (!entry_valid(&chunk[i])) rc = at_damage(files, at + i, count, after, &over, err);
            if (!over) return rc;
            if (!entry_valid(&chunk[i])) continue;
            rc = take_entry(files, &chunk[i], after, limit, arena, out, &capacity, err);
        }
        if (in_chunk < CHUNK) at -= CHUNK - in_chunk;
    }
    return rc;
}

enum code files_feed_end(struct store *base, uint64_t *out, struct error *err)
{
    struct files_store *files = files_of(base);
    uint64_t count = 0;
    enum code rc = open_for_reading(files, &count, err);
    for (; rc == OK && count > 0; count--) {
        struct disk_feed entry;
        rc = read_entries(files, count - 1, &entry, 1, err);
        if (rc != OK || !entry_valid(&entry)) continue;
        *out = entry_last(&entry);
        break;
    }
    return rc;
}

enum code feed_speaks_of(struct files_store *files, bool all, uint64_t *runs, struct error *err)
{
    struct disk_feed chunk[CHUNK];
    uint64_t count = 0, at = 0;
    enum code rc = open_for_reading(files, &count, err);
    if (rc == E_UNSUPPORTED) { // it was not made yet
        if (err) *err = (struct error){0};
        return OK;
    }
    if (!all && count > CHUNK) at = count - CHUNK;
    for (; rc == OK && at < count; at += CHUNK) {
        rc = read_entries(files, at, chunk, CHUNK, err);
        for (size_t i = 0; rc == OK && i < CHUNK && at + i < count; i++)
            if (entry_valid(&chunk[i]) && chunk[i].run > *runs) *runs = chunk[i].run;
    }
    return rc;
}
