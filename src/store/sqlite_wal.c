// What a process that died left in the write-ahead log.
//
// Its last sync may have failed: then the kernel has dropped the bytes and goes on showing them, and no later sync writes them.
// SQLite believes what it is shown: it would copy such commits into the database file, and a power cut in the middle would leave half of
// them and no log to repeat them from. So before anything is built on it, the log is written once more, byte for byte, and synced.
//
// And the disk may have changed a bit of it: SQLite ends the log at the first frame whose checksum is wrong and takes what follows for
// the tail of a commit that was never finished. So the header of the last frame that was synced is kept in PATH-mark: a log that does not
// get there has lost commits that were acknowledged. The mark is written after the sync and not synced itself. The death of a process
// leaves it as it is; after a power cut it may be older than the log, never newer, so that a torn tail is no damage. ADR 0016.
#include "store/lines.h"
#include "store/sqlite.h"

#include <stdlib.h>
#include <string.h>

enum { SALT_SIZE = 8, HEADER_SALT = 16, HEADER_SUM = 24, FRAME_SALT = 8, FRAME_SUM = 16, ENGINES_ASKED = 8 };

#define MARK_MAGIC "CAIRNM1\n"
struct wal_mark {
    char magic[8];
    uint32_t crc; // of all that follows
    uint32_t zero;
    uint64_t at; // of the frame in the log
    unsigned char frame[WAL_FRAME_HEADER_SIZE];
};

static uint32_t mark_crc(const struct wal_mark *mark)
{
    size_t from = offsetof(struct wal_mark, zero);
    return crc32c(0, (const uint8_t *)mark + from, sizeof(*mark) - from);
}

static sqlite3_file *log_file(struct sqlite_store *store)
{
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK || !file) return NULL;
    if (!file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK || size <= WAL_HEADER_SIZE) return NULL;
    return file;
}

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int log_page_size(const unsigned char header[WAL_HEADER_SIZE])
{
    uint32_t size = big_endian(header + 8);
    return size >= 512 && size <= 65536 ? (int)size : 0;
}

// ---- the log written once more

// Frames of the log's present generation carry the salt of its header; what stands behind them is left over from older ones.
static int write_frames_again(sqlite3_file *file)
{
    unsigned char header[WAL_HEADER_SIZE];
    sqlite3_int64 size = 0;
    int rc = file->pMethods->xFileSize(file, &size);
    if (rc == SQLITE_OK) rc = file->pMethods->xRead(file, header, WAL_HEADER_SIZE, 0);
    if (rc != SQLITE_OK || !log_page_size(header)) return rc;
    int frame_size = WAL_FRAME_HEADER_SIZE + log_page_size(header);
    unsigned char *frame = malloc((size_t)frame_size);
    if (!frame) return SQLITE_NOMEM;
    rc = file->pMethods->xWrite(file, header, WAL_HEADER_SIZE, 0);
    for (sqlite3_int64 at = WAL_HEADER_SIZE; rc == SQLITE_OK && at + frame_size <= size; at += frame_size) {
        rc = file->pMethods->xRead(file, frame, frame_size, at);
        if (rc != SQLITE_OK || memcmp(frame + FRAME_SALT, header + HEADER_SALT, SALT_SIZE) != 0) break;
        rc = file->pMethods->xWrite(file, frame, frame_size, at);
    }
    free(frame);
    return rc;
}

// An engine that lives had the log open when the sync failed, and has its error, or came later and has been here.
static bool any_engine_lives(struct sqlite_store *store)
{
    int64_t engines[ENGINES_ASKED];
    int count = 0;
    sqlite3_stmt *newest = NULL;
    if (sqlite3_prepare_v2(store->db, "SELECT engine_no FROM engines ORDER BY engine_no DESC LIMIT 8", -1, &newest,
                           NULL) == SQLITE_OK)
        while (count < ENGINES_ASKED && sqlite3_step(newest) == SQLITE_ROW)
            engines[count++] = sqlite3_column_int64(newest, 0);
    sqlite3_finalize(newest);
    for (int i = 0; i < count; i++) {
        int64_t pid;
        if (sqlite_liveness(store, engines[i], &pid) == LIVE_YES) return true; // to write it once more is never wrong
    }
    return false;
}

enum code sqlite_prove_log(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    sqlite3_file *file = log_file(store);
    if (!file || any_engine_lives(store)) return OK;
    enum code rc = sqlite_begin(store, err); // no other process appends meanwhile
    if (rc) return rc;
    int got = write_frames_again(file);
    if (got == SQLITE_OK) got = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
    sqlite_rollback(store);
    return got == SQLITE_OK ? OK : sqlite_code(store, got, "write the log once more", err);
}

// ---- the mark

// Best effort: what cannot be written leaves an older mark, which is true as well.
void sqlite_mark_log(struct sqlite_store *store)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    INVARIANT(!store->light);
    if (store->unmarked || store->gather.frame_at == 0) return;
    if (!store->mark &&
        sqlite_open_beside(store, "-mark", OPEN_READ | OPEN_WRITE | OPEN_CREATE, &store->mark, NULL)) {
        store->mark = NULL;
        store->unmarked = true;
        return;
    }
    struct wal_mark mark = {.magic = MARK_MAGIC, .at = (uint64_t)store->gather.frame_at};
    memcpy(mark.frame, store->gather.frame, sizeof(mark.frame));
    mark.crc = mark_crc(&mark);
    (void)!store->mark->disk->ops->write(store->mark, 0, &mark, sizeof(mark), NULL);
}

static bool read_mark(struct sqlite_store *store, struct wal_mark *out)
{
    struct file *file;
    size_t got = 0;
    if (sqlite_open_beside(store, "-mark", OPEN_READ, &file, NULL)) return false;
    enum code rc = file->disk->ops->read(file, 0, out, sizeof(*out), &got, NULL);
    file->disk->ops->close(file);
    return !rc && got == sizeof(*out) && memcmp(out->magic, MARK_MAGIC, sizeof(out->magic)) == 0 &&
           out->crc == mark_crc(out);
}

// SQLite's checksum, which goes on from frame to frame: words in the order of the machine that the magic number names.
static void add_sum(uint32_t sum[2], const unsigned char *bytes, size_t size, bool swapped)
{
    INVARIANT(size % (2 * sizeof(uint32_t)) == 0);
    for (size_t i = 0; i < size; i += 2 * sizeof(uint32_t)) {
        uint32_t words[2];
        memcpy(words, bytes + i, sizeof(words));
        if (swapped) {
            words[0] = __builtin_bswap32(words[0]);
            words[1] = __builtin_bswap32(words[1]);
        }
        sum[0] += words[0] + sum[1];
        sum[1] += words[1] + sum[0];
    }
}

static bool sum_is(const uint32_t sum[2], const unsigned char *stored)
{
    return big_endian(stored) == sum[0] && big_endian(stored + 4) == sum[1];
}

struct log_state {
    unsigned char header[WAL_HEADER_SIZE];
    struct wal_mark mark;
    sqlite3_int64 broken_at; // where the log ends although it was synced beyond; -1: it goes as far as the mark
};

// Whether the log holds the generation of the mark. A header that is damaged does not say; then the first frame does.
static bool is_of_mark(sqlite3_file *file, const struct log_state *state, bool sound)
{
    unsigned char first[WAL_FRAME_HEADER_SIZE] = {0};
    const unsigned char *salt = state->mark.frame + FRAME_SALT;
    if (sound) return memcmp(state->header + HEADER_SALT, salt, SALT_SIZE) == 0;
    return file->pMethods->xRead(file, first, WAL_FRAME_HEADER_SIZE, WAL_HEADER_SIZE) == SQLITE_OK &&
           memcmp(first + FRAME_SALT, salt, SALT_SIZE) == 0;
}

// Walks the frames up to the mark as SQLite does.
static int look_at_log(sqlite3_file *file, struct log_state *state)
{
    uint32_t sum[2] = {0, 0};
    int rc = file->pMethods->xRead(file, state->header, WAL_HEADER_SIZE, 0);
    int page_size = rc == SQLITE_OK ? log_page_size(state->header) : 0;
    bool swapped = (big_endian(state->header) & 1) != 0; // our machines are little endian
    state->broken_at = -1;
    if (rc != SQLITE_OK) return rc;
    add_sum(sum, state->header, HEADER_SUM, swapped);
    bool sound = page_size && sum_is(sum, state->header + HEADER_SUM);
    if (!is_of_mark(file, state, sound)) return SQLITE_OK;
    if (!sound) {
        state->broken_at = 0;
        return SQLITE_OK;
    }
    int frame_size = WAL_FRAME_HEADER_SIZE + page_size;
    unsigned char *frame = malloc((size_t)frame_size);
    if (!frame) return SQLITE_NOMEM;
    sqlite3_int64 end = (sqlite3_int64)state->mark.at;
    for (sqlite3_int64 at = WAL_HEADER_SIZE; at <= end && rc == SQLITE_OK && state->broken_at < 0; at += frame_size) {
        rc = file->pMethods->xRead(file, frame, frame_size, at);
        bool cut = rc == SQLITE_IOERR_SHORT_READ;
        if (cut) rc = SQLITE_OK;
        add_sum(sum, frame, FRAME_SALT, swapped);
        add_sum(sum, frame + WAL_FRAME_HEADER_SIZE, (size_t)page_size, swapped);
        if (cut || memcmp(frame + FRAME_SALT, state->header + HEADER_SALT, SALT_SIZE) != 0 ||
            !sum_is(sum, frame + FRAME_SUM) ||
            (at == end && memcmp(frame, state->mark.frame, WAL_FRAME_HEADER_SIZE) != 0))
            state->broken_at = at;
    }
    free(frame);
    return rc;
}

// Another process may begin the log anew while we look: what is found is believed when it is found twice with the same log and mark.
enum code sqlite_check_log(struct sqlite_store *store, struct error *err)
{
    enum { LOOKS = 4 };
    struct log_state before = {.broken_at = -1};
    for (int i = 0; i < LOOKS; i++) {
        struct log_state now;
        sqlite3_file *file = log_file(store);
        if (!file || !read_mark(store, &now.mark) || any_engine_lives(store)) return OK;
        int got = look_at_log(file, &now);
        if (got != SQLITE_OK) return sqlite_code(store, got, "read the write-ahead log", err);
        if (now.broken_at < 0) return OK;
        bool same = now.broken_at == before.broken_at && memcmp(&now.mark, &before.mark, sizeof(now.mark)) == 0 &&
                    memcmp(now.header, before.header, sizeof(now.header)) == 0;
        if (same)
            return error_set(err, E_CORRUPT,
                             "%s-wal is damaged at byte %lld: commits up to byte %lld were stored and cannot be read. "
                             "Restore a backup, or remove %s-mark to go on without them",
                             store->path, (long long)now.broken_at, (long long)now.mark.at, store->path);
        before = now;
    }
    return OK;
}
