// What a process that died left in the write-ahead log. Its last sync may have failed: then the kernel has dropped the bytes
// and goes on showing them, and no later sync writes them. SQLite believes what it is shown: it would copy such commits into
// the database file, and a power cut in the middle would leave half of them and no log to repeat them from. So before anything
// is built on it, the log is written once more, byte for byte, and synced. ADR 0016.
#include "store/sqlite.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_SIZE = 32, FRAME_HEADER_SIZE = 24, SALT_SIZE = 8, HEADER_SALT = 16, FRAME_SALT = 8, ENGINES_ASKED = 8 };

static int write_again(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
    return file->pMethods->xWrite(file, bytes, size, at);
}

// Frames of the log's present generation carry the salt of its header; what stands behind them is left over from older ones.
static int write_frames_again(sqlite3_file *file, sqlite3_int64 size)
{
    unsigned char header[HEADER_SIZE];
    int rc = file->pMethods->xRead(file, header, HEADER_SIZE, 0);
    int page_size = header[8] << 24 | header[9] << 16 | header[10] << 8 | header[11];
    if (rc != SQLITE_OK || page_size < 512 || page_size > 65536) return rc;
    int frame_size = FRAME_HEADER_SIZE + page_size;
    unsigned char *frame = malloc((size_t)frame_size);
    if (!frame) return SQLITE_NOMEM;
    rc = write_again(file, header, HEADER_SIZE, 0);
    for (sqlite3_int64 at = HEADER_SIZE; rc == SQLITE_OK && at + frame_size <= size; at += frame_size) {
        rc = file->pMethods->xRead(file, frame, frame_size, at);
        if (rc != SQLITE_OK || memcmp(frame + FRAME_SALT, header + HEADER_SALT, SALT_SIZE) != 0) break;
        rc = write_again(file, frame, frame_size, at);
    }
    free(frame);
    return rc;
}

// An engine that lives had the log open when the sync failed, and has been told, or came later and has been here.
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
        if (sqlite_alive(store, engines[i], &pid)) return true;
    }
    return false;
}

enum code sqlite_prove_log(struct sqlite_store *store, struct error *err)
{
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK || !file) return OK;
    if (!file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK || size <= HEADER_SIZE) return OK;
    if (any_engine_lives(store)) return OK;
    enum code rc = sqlite_begin(store, err); // nobody else appends meanwhile
    if (rc) return rc;
    int got = write_frames_again(file, size);
    if (got == SQLITE_OK) got = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
    sqlite_rollback(store);
    return got == SQLITE_OK ? OK : sqlite_code(store, got, "write the log once more", err);
}
