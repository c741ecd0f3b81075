// Opening, statements, transactions and errors of the SQLite store.
//
// SQLite ignores a failed checkpoint and goes on after a failed sync; we do not (I8). Checkpoints are therefore ours, made
// after a commit, and every input/output error ends the handle: nothing is built on what it may have lost, not even when it is
// closed. Only a full disk is survived.
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE_SIZE = 4096, // against 8192: half the bytes for a commit of one run, and batches cost the same
    CHECKPOINT_BYTES = 16 * 1024 * 1024, // rewritten index pages are written back once per 16 MiB instead of each time
    WAL_SIZE_KEPT = 32 * 1024 * 1024,
    CACHE_KIB = 8 * 1024, // holds the largest batch; readers find the rest in the page cache of the system
    BUSY_LIMIT_MS = 30 * 1000,
};

static const char *const statement_text[] = {
#define X(name, text) text,
    SQLITE_STATEMENTS(X)
#undef X
};

void store_own_process(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); // else every allocation of SQLite takes a lock of the whole process, to count
}

struct sqlite_store *sqlite_of(const struct store *store)
{
    return CONTAINER_OF((void *)(uintptr_t)store, struct sqlite_store, base);
}

static int64_t lock_wait_ms(const struct sqlite_store *store)
{
    if (store->append_wait_ms > 0) return store->append_wait_ms;
    return store->base.options.lock_wait_ms > 0 ? store->base.options.lock_wait_ms : BUSY_LIMIT_MS;
}

// ---- errors

enum code sqlite_code(struct sqlite_store *store, int rc, const char *what, struct error *err)
{
    const char *text = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return error_nomem(err);
    case SQLITE_FULL:
        return error_set(err, E_FULL, "cannot %s: no space left for %s", what, store->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, E_LOCKED, "cannot %s: another process has been writing to %s for %lld ms", what,
                         store->path, (long long)lock_wait_ms(store));
    case SQLITE_CORRUPT:
        return error_set(err, E_CORRUPT, "cannot %s: %s is damaged (%s)", what, store->path, text);
    case SQLITE_NOTADB:
        return error_set(err, E_CORRUPT, "%s is not an SQLite database", store->path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return error_set(err, E_DENIED, "cannot %s: %s must not be written (%s)", what, store->path, text);
    case SQLITE_CANTOPEN:
        return error_set(err, E_NOT_FOUND, "cannot %s: %s cannot be opened", what, store->path);
    case SQLITE_TOOBIG:
        return error_set(err, E_LIMIT, "cannot %s: too big", what);
    case SQLITE_CONSTRAINT:
        return error_set(err, E_CONFLICT, "cannot %s: %s", what, text);
    default:
        if (rc == SQLITE_IOERR_NOMEM) return error_nomem(err);
        // SQLite knows ENOSPC of a write; a quota, and the file of shared memory, come out as an error of their own.
        if ((rc == SQLITE_IOERR_WRITE || rc == SQLITE_IOERR_SHMSIZE) && store->db &&
            (sqlite3_system_errno(store->db) == ENOSPC || sqlite3_system_errno(store->db) == EDQUOT))
            return error_set(err, E_FULL, "cannot %s: no space left for %s", what, store->path);
        return error_set(err, E_IO, "cannot %s: %s: %s", what, store->path, text);
    }
}

enum code sqlite_run(struct sqlite_store *store, const char *sql, struct error *err)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? OK : sqlite_code(store, rc, "prepare the store", err);
}

// ---- statements

sqlite3_stmt *sqlite_statement(struct sqlite_store *store, enum statement which, enum code *rc, struct error *err)
{
    sqlite3_stmt **slot = &store->statements[which];
    *rc = OK;
    if (!*slot) {
        int got = sqlite3_prepare_v3(store->db, statement_text[which], -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
        if (got != SQLITE_OK) *rc = sqlite_code(store, got, "use the store", err);
    }
    return *slot;
}

void sqlite_done(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
}

enum code sqlite_step(struct sqlite_store *store, sqlite3_stmt *statement, const char *what, struct error *err)
{
    int rc = sqlite3_step(statement);
    enum code code = rc == SQLITE_DONE ? OK : sqlite_code(store, rc, what, err);
    sqlite3_reset(statement);
    return code;
}

static enum code run_statement(struct sqlite_store *store, enum statement which, const char *what, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    return statement ? sqlite_step(store, statement, what, err) : rc;
}

// What is bound must live until the statement is done: all callers bind and step in one go.
void sqlite_bind_str(sqlite3_stmt *statement, int at, struct str s)
{
    int rc = sqlite3_bind_text64(statement, at, s.ptr ? s.ptr : "", s.len, SQLITE_STATIC, SQLITE_UTF8);
    INVARIANT(rc == SQLITE_OK || rc == SQLITE_TOOBIG || rc == SQLITE_NOMEM);
}

void sqlite_bind_bytes(sqlite3_stmt *statement, int at, const void *bytes, size_t size)
{
    int rc = sqlite3_bind_blob64(statement, at, size ? bytes : "", size, SQLITE_STATIC);
    INVARIANT(rc == SQLITE_OK || rc == SQLITE_TOOBIG || rc == SQLITE_NOMEM);
}

// ---- transactions

enum code sqlite_begin(struct sqlite_store *store, struct error *err)
{
    return run_statement(store, STATEMENT_BEGIN, "begin a batch", err);
}

void sqlite_rollback(struct sqlite_store *store)
{
    if (!sqlite3_get_autocommit(store->db)) (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

// PASSIVE never waits for readers; what they still need is left for the next time, which is not the next commit: as long as
// a reader is there, the log goes on growing and must not be worked through again and again. A full disk is no harm here
// either: the events are in the write-ahead log.
static enum code checkpoint(struct sqlite_store *store, struct error *err)
{
    store->next_checkpoint = store->wal_frames + store->checkpoint_frames;
    int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    int kind = rc & 0xff;
    if (rc == SQLITE_OK || kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_FULL || kind == SQLITE_NOMEM)
        return OK;
    return sqlite_code(store, rc, "move events into the database file", err);
}

enum code sqlite_commit_now(struct sqlite_store *store, struct error *err)
{
    INVARIANT(!sqlite3_get_autocommit(store->db));
    sqlite_gather(store);
    enum code rc = run_statement(store, STATEMENT_COMMIT, "commit a batch", err);
    int left = sqlite_gather_end(store, rc == OK);
    if (left != SQLITE_OK) rc = sqlite_code(store, left, "commit a batch", err);
    if (rc) {
        sqlite_rollback(store);
        return rc;
    }
    if (store->gather.synced) sqlite_mark_log(store);
    if (store->wal_frames < store->next_checkpoint) return OK;
    struct error told = {0};
    // The batch is stored: no code may be returned that says it is not (S10).
    return checkpoint(store, &told) ? error_set(err, E_IO, "%s", told.message) : OK;
}

enum code sqlite_light(struct sqlite_store *store, bool light, struct error *err)
{
    INVARIANT(store->light != light);
    store->light = light;
    return sqlite_run(store, light ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL", err);
}

static int count_frames(void *context, sqlite3 *db UNUSED, const char *name UNUSED, int frames)
{
    struct sqlite_store *store = context;
    if (frames < store->wal_frames) // begun anew
        store->next_checkpoint = store->checkpoint_frames;
    store->wal_frames = frames;
    return SQLITE_OK;
}

// Writers hold the lock for a few milliseconds; SQLite's own waiting goes up to 100 ms between looks.
static int wait_for_lock(void *context, int tries)
{
    struct sqlite_store *store = context;
    static const long waits_us[] = {50, 100, 200, 300, 500, 1000, 1000, 2000};
    enum { SETTLED = ARRAY_COUNT(waits_us) };
    long us = tries < SETTLED ? waits_us[tries] : 3000;
    int64_t now_ms = os_now().mono_ms;
    if (tries == 0) store->wait_until_ms = now_ms + lock_wait_ms(store);
    if (now_ms > store->wait_until_ms) return 0;
    struct timespec time = {.tv_nsec = us * 1000};
    nanosleep(&time, NULL);
    return 1;
}

// ---- opening

static enum code read_text(struct sqlite_store *store, const char *sql, char out[16], struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) sqlite3_snprintf(16, out, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? OK : sqlite_code(store, rc, "prepare the store", err);
}

// Not what was asked for but what SQLite says it will do: a build or a file system may refuse without an error.
enum code sqlite_pin_durability(struct sqlite_store *store, struct error *err)
{
    char mode[16] = "";
    char synchronous[16] = "";
    enum code rc = read_text(store, "PRAGMA journal_mode=WAL", mode, err);
    if (!rc) rc = sqlite_run(store, "PRAGMA synchronous=FULL", err);
    if (!rc) rc = read_text(store, "PRAGMA synchronous", synchronous, err);
    if (rc) return rc;
    if (strcmp(mode, "wal") != 0)
        return error_set(err, E_UNSUPPORTED, "%s cannot be in WAL mode (it is in mode %s)", store->path, mode);
    if (strcmp(synchronous, "2") != 0)
        return error_set(err, E_UNSUPPORTED, "%s: synchronous=FULL was refused", store->path);
    return OK;
}

// Stores made earlier have pages of 8192 bytes, and keep them.
static enum code plan_checkpoints(struct sqlite_store *store, struct error *err)
{
    char page_size[16] = "";
    enum code rc = read_text(store, "PRAGMA page_size", page_size, err);
    long size = strtol(page_size, NULL, 10);
    store->checkpoint_frames = CHECKPOINT_BYTES / (size > 0 ? (int)size : PAGE_SIZE);
    store->next_checkpoint = store->checkpoint_frames;
    return rc;
}

static enum code sync_directory(struct sqlite_store *store, struct error *err)
{
    struct disk *disk = store->base.options.disk;
    if (disk) return disk->ops->sync_dir(disk, "", err);
    const char *slash = strrchr(store->path, '/');
    if (store->base.options.vfs || !slash) return OK;
    char *root = strndup(store->path, slash == store->path ? 1 : (size_t)(slash - store->path));
    enum code rc = root ? os_disk_open(root, &disk, err) : error_nomem(err);
    free(root);
    if (rc) return rc;
    rc = disk->ops->sync_dir(disk, "", err);
    os_disk_close(disk);
    return rc;
}

// The triggers guard the file against every other connection. This one asks the same by itself, and cheaper: numbers come from the draft,
// the head moves first and under its conditions, unique indexes refuse a second row, notes.c keeps the audit. Removal keeps its triggers.
// The switch makes SQLite prepare every statement again, so it is thrown for rare things only.
void sqlite_guards(struct sqlite_store *store, bool on)
{
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on ? 1 : 0, NULL);
}

static enum code prepare_writer(struct sqlite_store *store, struct error *err)
{
    bool fresh = false;
    enum code rc = OK;
    if (store->base.options.exclusive) // before anything is read: a WAL left behind needs shared memory otherwise
        rc = sqlite_run(store, "PRAGMA locking_mode=EXCLUSIVE", err);
    if (!rc) rc = sqlite_check_schema(store, &fresh, err);
    if (!rc) rc = sqlite_check_log(store, err); // all that the store holds may be in it, and it may look fresh without
    if (rc) return rc;
    if (fresh && !store->base.options.create) return error_set(err, E_NOT_FOUND, "%s holds no store", store->path);
    char sql[256];
    sqlite3_snprintf(sizeof(sql), sql,
                     "PRAGMA foreign_keys=ON;PRAGMA recursive_triggers=ON;PRAGMA cache_size=-%d;"
                     "PRAGMA journal_size_limit=%d;PRAGMA wal_autocheckpoint=0;PRAGMA secure_delete=OFF;",
                     CACHE_KIB, WAL_SIZE_KEPT);
    char page_size[48];
    sqlite3_snprintf(sizeof(page_size), page_size, "PRAGMA page_size=%d", PAGE_SIZE);
    if (fresh) rc = sqlite_run(store, page_size, err);
    if (!rc) rc = sqlite_pin_durability(store, err);
    if (!rc) rc = plan_checkpoints(store, err);
    if (!rc) rc = sqlite_run(store, sql, err);
    // What a process that died left in the cache may not be on the disk: the names of the files, and the last commits of the
    // write-ahead log. Nothing is read before it is.
    if (!rc) rc = sync_directory(store, err);
    if (!rc && !fresh) rc = sqlite_prove_log(store, err);
    if (!rc) rc = fresh ? sqlite_make_schema(store, err) : checkpoint(store, err);
    if (!rc && !fresh) rc = sqlite_upgrade_schema(store, err);
    // After wal_autocheckpoint, which would put SQLite's own hook in its place.
    sqlite3_wal_hook(store->db, count_frames, store);
    sqlite_guards(store, false);
    return rc;
}

static enum code prepare_reader(struct sqlite_store *store, struct error *err)
{
    bool fresh = false;
    enum code rc = OK;
    if (store->base.options.exclusive) rc = sqlite_run(store, "PRAGMA locking_mode=EXCLUSIVE", err);
    if (!rc) rc = sqlite_check_schema(store, &fresh, err);
    if (!rc) rc = sqlite_check_log(store, err);
    if (!rc && fresh) return error_set(err, E_NOT_FOUND, "%s holds no store", store->path);
    return rc;
}

// SQLite tries again with fewer rights before it gives up, and reports why that second try failed: there is nothing to read.
static enum code why_not_opened(struct sqlite_store *store, struct error *err)
{
    errno = sqlite3_system_errno(store->db);
    if (!store->base.options.vfs && store->base.options.mode == STORE_WRITE && store->base.options.create) {
        int fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) close(fd);
        if (fd < 0) return os_errno(err, "make the store", store->path);
    }
    if (errno != 0 && errno != ENOENT) return os_errno(err, "open the store", store->path);
    return error_set(err, E_NOT_FOUND, "there is no store %s", store->path);
}

enum code sqlite_connect(struct sqlite_store *store, struct error *err)
{
    bool write = store->base.options.mode == STORE_WRITE;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (!write)
        flags |= SQLITE_OPEN_READONLY;
    else
        flags |= SQLITE_OPEN_READWRITE | (store->base.options.create ? SQLITE_OPEN_CREATE : 0);
    if (!store->base.options.vfs && os_is_dir(store->path))
        return error_set(err, E_INVALID, "%s is a directory, not an SQLite database", store->path);
    int rc = sqlite3_open_v2(store->path, &store->db, flags, store->base.options.vfs);
    if (rc != SQLITE_OK) {
        if ((rc & 0xff) == SQLITE_CANTOPEN) return why_not_opened(store, err);
        return sqlite_code(store, rc, "open the store", err);
    }
    sqlite3_busy_handler(store->db, wait_for_lock, store);
    // Triggers and views of ours call only built-in functions; a planted schema shall not call others.
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    return OK;
}

static enum code open_database(struct sqlite_store *store, struct error *err)
{
    enum code rc = sqlite_connect(store, err);
    if (rc) return rc;
    if (store->base.options.mode != STORE_WRITE) return prepare_reader(store, err);
    // Turning a new file to WAL mode is refused at once while another process does the same, without waiting as long as a
    // statement would.
    enum code ready = prepare_writer(store, err);
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t until = os_now().mono_ms + lock_wait_ms(store);
    while (ready == E_LOCKED && os_now().mono_ms < until) {
        nanosleep(&pause, NULL);
        *err = (struct error){0};
        ready = prepare_writer(store, err);
    }
    return ready;
}

static enum code sqlite_run_dir(const struct store *base, const struct run_ids *ids, const char *what,
                                struct arena *arena, struct str *out)
{
    return run_dir_path(str_from(sqlite_of(base)->path), what, ids, arena, out);
}

// The last one to close moves the write-ahead log into the database file and removes it, which is for those who trust it and whose
// store it is.
void sqlite_disconnect(struct sqlite_store *store)
{
    bool ours = !store->base.dead && store->base.ops;
    if (store->db) sqlite_leave(store);
    for (size_t i = 0; i < STATEMENT_COUNT; i++) sqlite3_finalize(store->statements[i]);
    sqlite_forget_lists(store);
    if (store->frozen) sqlite_rollback(store);
    if (!ours && store->db) sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int rc = sqlite3_close(store->db);
    INVARIANT(rc != SQLITE_BUSY); // a statement was kept
    sqlite_gather_free(store);
}

static void sqlite_close(struct store *base)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite_disconnect(store);
    free(store->released.items);
    free(store->path);
    free(store);
}

static const struct store_ops sqlite_ops = {
    .kind = "sqlite",
    .log =
        {
            .commit = sqlite_commit,
            .claim = sqlite_claim,
            .claim_ahead = absent_claim_ahead,
            .release = sqlite_release,
            .head = sqlite_head,
            .list = sqlite_list,
            .count = sqlite_count,
            .read = sql_read,
            .surplus = absent_surplus,
            .blob = sql_blob,
            .post = sqlite_post,
            .inbox = sqlite_inbox,
            .shards = absent_shards,
            .move = absent_move,
            .away = absent_away,
        },
    .notes = NOTES_BY_SQL,
    .feed = FEED_BY_SQL,
    .admin =
        {
            .freeze = sqlite_freeze,
            .missing = sqlite_missing,
            .remove = sqlite_remove,
            .tombstones = sql_tombstones,
            .blobs = sqlite_blobs,
            .drop_blobs = sqlite_drop_blobs,
            .usage = sqlite_usage,
            .format = absent_format,
            .advise = absent_advise,
            .restoring = sqlite_restoring,
            .beside = store_beside_url,
            .run_dir = sqlite_run_dir,
            .file = store_local_file,
            .close = sqlite_close,
        },
};

// SQLite would make the file readable for everybody; the files beside it take over its mode. A failure is left for SQLite
// to report.
static void make_private_file(const char *directory, const char *name)
{
    struct disk *disk = NULL;
    struct file *file = NULL;
    if (os_disk_open(directory, &disk, NULL)) return;
    if (disk->ops->open(disk, name, OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_EXCLUSIVE, &file, NULL) == OK)
        disk->ops->close(file);
    os_disk_close(disk);
}

// The directory and the file are made when the store is; with a VFS the path is the VFS's affair.
static enum code place(struct sqlite_store *store, struct str path, struct arena *scratch, struct error *err)
{
    const struct store_options *options = &store->base.options;
    struct str absolute = path;
    struct str given = arena_copy(scratch, path);
    enum code rc = given.ptr ? OK : error_nomem(err);
    if (!rc && !options->vfs) rc = os_absolute(given.ptr, scratch, &absolute, err);
    if (!rc && !(store->path = strndup(absolute.ptr, absolute.len))) rc = error_nomem(err);
    if (rc || options->vfs || !options->create || options->mode != STORE_WRITE) return rc;
    const char *slash = strrchr(store->path, '/');
    INVARIANT(slash);
    struct str parent = {store->path, slash == store->path ? 1 : (size_t)(slash - store->path)};
    parent = arena_copy(scratch, parent);
    if (!parent.ptr) return error_nomem(err);
    rc = os_make_kept_dirs(parent.ptr, err);
    if (!rc) make_private_file(parent.ptr, slash + 1);
    return rc;
}

enum code store_open_sqlite(struct str path, const struct store_options *options, struct store **out, struct error *err)
{
    struct sqlite_store *store = calloc(1, sizeof(*store));
    if (!store) return error_nomem(err);
    store->base.ops = &sqlite_ops;
    store->base.sql = &sqlite_asking;
    store->base.options = *options;
    store->data_version = -1;
    store->inbox_stale = true;
    struct arena scratch SCOPED(arena_release) = arena_of(PATH_MAX, SIZE_MAX);
    enum code rc = place(store, path, &scratch, err);
    if (!rc) rc = open_database(store, err);
    if (rc) {
        store->base.dead = true; // the log may not be proven yet
        sqlite_close(&store->base);
        return rc;
    }
    *out = &store->base;
    return OK;
}
