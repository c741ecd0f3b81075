// Who owns a run. Every writing handle that owns runs is an engine with a number of its own, and holds a lock on that byte of
// PATH-engines for as long as it lives; the kernel lets go of it when the process dies, however it dies. A run whose
// owner's byte is not locked is free. Clocks play no part in it (I28).
//
// The lock speaks for the engines that have locked that very file. Where it is gone, is another one by now, or cannot be opened, the
// row of the engine tells which process it is (os_identity), of which database and which lock file. An engine of another database
// file is none of ours: the row came with a copy. What is unknown counts as alive.
//
// Leases are written without a sync of their own: after a power cut no engine lives, so it does not matter whether
// the last lease is remembered; after the death of a process the file is what it was.
#include "store/sqlite.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_POLLS = 2, POST_WAIT_MS = 5000, WHO_SIZE = OS_IDENTITY_SIZE + 128 };

// ---- engines

enum code sqlite_open_beside(struct sqlite_store *store, const char *ending, unsigned flags, struct file **out,
                             struct error *err)
{
    const struct store_options *options = &store->base.options;
    struct disk *disk = options->vfs ? options->disk : NULL;
    if (options->vfs && !disk) return error_set(err, E_UNSUPPORTED, "there is nothing beside %s", store->path);
    struct arena scratch SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    const char *slash = strrchr(store->path, '/');
    INVARIANT(slash || disk);
    const char *base = slash ? slash + 1 : store->path;
    const struct str directory = {store->path, slash > store->path ? (size_t)(slash - store->path) : 1};
    struct str root = arena_copy(&scratch, directory);
    size_t name_size = strlen(base) + strlen(ending) + 1;
    char *name = arena_alloc(&scratch, name_size);
    enum code rc = root.ptr && name ? OK : error_nomem(err);
    if (!rc && !disk && !store->disk) rc = os_disk_open(root.ptr, &store->disk, err);
    if (!rc) {
        if (!disk) disk = store->disk;
        sqlite3_snprintf((int)name_size, name, "%s%s", base, ending);
        rc = disk->ops->open(disk, name, flags, out, err);
    }
    return rc;
}

static void file_beside(const struct sqlite_store *store, const char *ending, char out[64])
{
    char path[PATH_MAX];
    sqlite3_snprintf(sizeof(path), path, "%s%s", store->path, ending);
    if (!os_file_identity(path, out)) out[0] = '\0';
}

// "<process> <database file> <lock file>".
static void write_who(const struct sqlite_store *store, char out[WHO_SIZE])
{
    char process[OS_IDENTITY_SIZE], database[64], lock[64];
    os_identity(process);
    file_beside(store, "", database);
    file_beside(store, "-engines", lock);
    sqlite3_snprintf(WHO_SIZE, out, "%s %s %s", process, database, lock);
}

static enum code take_number(struct sqlite_store *store, int64_t *number, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_ADD_ENGINE, &rc, err);
    if (!statement) return rc;
    // With a VFS of the tests the same bytes must come out every time.
    char who[WHO_SIZE];
    if (!store->base.options.vfs) write_who(store, who);
    sqlite3_bind_int64(statement, 1, store->base.options.vfs ? 1 : getpid());
    sqlite3_bind_int64(statement, 2, store->base.options.vfs ? 0 : os_now().wall_ms);
    if (!store->base.options.vfs) sqlite3_bind_text(statement, 3, who, -1, SQLITE_TRANSIENT);
    rc = sqlite_step(store, statement, "join the engines", err);
    *number = sqlite3_last_insert_rowid(store->db);
    return rc;
}

static enum code join(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->engine == 0);
    enum { TRIES = 64 };
    for (int i = 0; i < TRIES; i++) {
        int64_t number = 0;
        enum code rc = take_number(store, &number, err);
        if (!rc && !store->base.options.vfs) rc = store->lock->disk->ops->lock(store->lock, (uint64_t)number, NULL);
        if (!rc) store->engine = number;
        // Another engine has the number already: the database was put back from a copy while that engine runs.
        if (rc != E_LOCKED) return rc;
    }
    return error_set(err, E_LOCKED, "%s-engines is locked by other processes", store->path);
}

static enum code light_begin(struct sqlite_store *store, struct error *err)
{
    INVARIANT(!store->light);
    enum code rc = sqlite_light(store, true, err);
    if (!rc) rc = sqlite_begin(store, err);
    if (rc) store->base.dead |= sqlite_light(store, false, NULL) != OK;
    return rc;
}

static enum code light_end(struct sqlite_store *store, enum code rc, struct error *err)
{
    if (rc)
        sqlite_rollback(store);
    else
        rc = sqlite_commit_now(store, err);
    // A handle that cannot be made to sync again must not be used again.
    enum code back = sqlite_light(store, false, err);
    store->base.dead |= back != OK;
    return rc ? rc : back;
}

enum code sqlite_become_engine(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    if (store->engine) return OK;
    enum code rc = OK;
    if (!store->base.options.vfs && !store->lock)
        rc = sqlite_open_beside(store, "-engines", OPEN_READ | OPEN_WRITE | OPEN_CREATE, &store->lock, err);
    if (!rc) rc = light_begin(store, err);
    if (rc) return rc;
    rc = light_end(store, join(store, err), err);
    if (rc) store->engine = 0;
    return rc;
}

static int64_t pid_of(struct sqlite_store *store, int64_t engine)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_ENGINE_PID, &rc, NULL);
    if (!statement) return 0;
    sqlite3_bind_int64(statement, 1, engine);
    int64_t pid = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite_done(statement);
    return pid;
}

// What the row of an engine says of it; empty: a former version wrote it, or it cannot be read. Stores of former versions that were
// opened for reading have no such column.
static void read_who(struct sqlite_store *store, int64_t engine, char out[WHO_SIZE])
{
    sqlite3_stmt *statement = NULL;
    out[0] = '\0';
    if (sqlite3_prepare_v2(store->db, "SELECT who FROM engines WHERE engine_no=?1", -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, engine);
        if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
            sqlite3_snprintf(WHO_SIZE, out, "%s", sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
}

static enum liveness alive_by_number(int64_t pid)
{
    char text[32];
    if (pid <= 0) return LIVE_UNKNOWN;
    sqlite3_snprintf(sizeof(text), text, "%lld", (long long)pid);
    return os_identity_alive(str_from(text));
}

// The lock is free, or it is not there to be asked.
static enum liveness alive_by_row(struct sqlite_store *store, int64_t engine, bool asked)
{
    char who[WHO_SIZE], ours[64];
    struct str database, lock;
    read_who(store, engine, who);
    struct str process = str_cut(str_from(who), ' ', &database);
    database = str_cut(database, ' ', &lock);
    file_beside(store, "", ours);
    if (database.len && ours[0] && !str_is(database, ours)) return LIVE_NO;
    if (asked && (!lock.len || !store->probe_file[0] || str_is(lock, store->probe_file))) return LIVE_NO;
    return process.len ? os_identity_alive(process) : alive_by_number(pid_of(store, engine));
}

enum liveness sqlite_liveness(struct sqlite_store *store, int64_t engine, int64_t *pid)
{
    enum liveness found = engine == store->engine ? LIVE_YES : LIVE_NO;
    if (found == LIVE_NO && !store->base.options.vfs) {
        if (!store->probe && sqlite_open_beside(store, "-engines", OPEN_READ, &store->probe, NULL) == OK)
            file_beside(store, "-engines", store->probe_file);
        unsigned tries = 0;
        bool locked = false;
        do locked = store->probe && store->probe->disk->ops->locked(store->probe, (uint64_t)engine);
        while (locked && os_lock_lingers(pid_of(store, engine), &tries));
        found = locked ? LIVE_YES : alive_by_row(store, engine, store->probe != NULL);
    }
    *pid = found != LIVE_NO ? pid_of(store, engine) : 0;
    return found;
}

bool sqlite_alive(struct sqlite_store *store, int64_t engine, int64_t *pid)
{
    return sqlite_liveness(store, engine, pid) != LIVE_NO;
}

bool sqlite_alone(struct sqlite_store *store)
{
    sqlite3_stmt *statement = NULL;
    bool alone = sqlite3_prepare_v2(store->db, "SELECT engine_no FROM engines", -1, &statement, NULL) == SQLITE_OK;
    while (alone && sqlite3_step(statement) == SQLITE_ROW) {
        int64_t pid, engine = sqlite3_column_int64(statement, 0);
        alone = engine == store->engine || !sqlite_alive(store, engine, &pid);
    }
    sqlite3_finalize(statement);
    return alone;
}

// ---- claims

static enum code claim_row(struct sqlite_store *store, struct str tenant, struct str run, struct run_head *out,
                           struct arena *arena, struct error *err)
{
    enum code rc = sqlite_head(&store->base, tenant, run, arena, out, err);
    if (rc) return rc;
    if (out->owned)
        return error_set(err, E_LOCKED, "run %.*s is owned by process %lld", STR_ARG(run), (long long)out->owner_pid);
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_CLAIM, &rc, err);
    if (!statement) return rc;
    sqlite3_bind_int64(statement, 1, (int64_t)out->position);
    sqlite3_bind_int64(statement, 2, store->engine);
    out->epoch++;
    return sqlite_step(store, statement, "claim a run", err);
}

enum code sqlite_claim(struct store *base, struct str tenant, struct str run, struct run_head *out, struct arena *arena,
                       int64_t *backend_id, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct sqlite_store *store = sqlite_of(base);
    enum code rc = sqlite_become_engine(store, err);
    if (!rc) rc = light_begin(store, err);
    if (rc) return rc;
    rc = sqlite_write_released(store, err);
    if (!rc) rc = claim_row(store, tenant, run, out, arena, err);
    rc = light_end(store, rc, err);
    if (rc) return rc;
    sqlite_forget_released(store);
    store->inbox_stale = true;
    out->owned = true;
    out->owner_pid = getpid();
    *backend_id = (int64_t)out->position;
    return OK;
}

// Written with the next batch, or when there is none for a while: the end of a run must not cost a transaction.
void sqlite_release(struct store *base, struct run_log *log)
{
    INVARIANT(log->epoch > 0);
    sql_release(&sqlite_of(base)->released, log->backend_id, log->epoch);
}

enum code sqlite_write_released(struct sqlite_store *store, struct error *err)
{
    INVARIANT(!store->frozen);
    enum code rc = OK;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_RELEASE, &rc, err);
    for (size_t i = 0; i < store->released.count && !rc; i++) {
        sqlite3_bind_int64(statement, 1, store->released.items[i].run_no);
        sqlite3_bind_int64(statement, 2, (int64_t)store->released.items[i].epoch);
        sqlite3_bind_int64(statement, 3, store->engine);
        rc = sqlite_step(store, statement, "release a run", err);
    }
    return rc;
}

void sqlite_forget_released(struct sqlite_store *store)
{
    store->released.count = 0;
}

static enum code flush_released(struct sqlite_store *store, struct error *err)
{
    if (store->released.count == 0) return OK;
    enum code rc = light_begin(store, err);
    if (rc) return rc;
    rc = light_end(store, sqlite_write_released(store, err), err);
    if (!rc) sqlite_forget_released(store);
    return rc;
}

void sqlite_leave(struct sqlite_store *store)
{
    if (!store->base.dead) (void)flush_released(store, NULL);
    struct file *const files[] = {store->lock, store->probe, store->mark};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++)
        if (files[i]) files[i]->disk->ops->close(files[i]);
    if (store->disk) os_disk_close(store->disk);
}

// ---- inbox

static enum code add_post(struct sqlite_store *store, struct str tenant, struct str run, struct str signal_id,
                          struct str bytes, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_POST, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, tenant);
    sqlite_bind_str(statement, 2, run);
    sqlite_bind_str(statement, 3, signal_id);
    sqlite_bind_str(statement, 4, bytes);
    rc = sqlite_step(store, statement, "post a signal", err);
    if (!rc && sqlite3_changes(store->db) == 0) rc = run_missing(run, err);
    return rc;
}

static enum code post(struct sqlite_store *store, const struct run_name *name, struct str signal_id, struct str bytes,
                      struct error *err)
{
    enum code rc = sqlite_begin(store, err);
    if (rc) return rc;
    rc = add_post(store, name->tenant, name->run, signal_id, bytes, err);
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    return rc;
}

// A handle for reading has no right to write: one row through a connection of its own, durable like every commit. A person waits for it.
static enum code post_beside(struct sqlite_store *reader, const struct run_name *name, struct str signal_id,
                             struct str bytes, struct error *err)
{
    INVARIANT(reader->base.options.mode == STORE_READ);
    struct sqlite_store link = {
        .base = {.options = reader->base.options}, .path = reader->path, .next_checkpoint = INT_MAX};
    link.base.options.mode = STORE_WRITE;
    link.base.options.create = false;
    if (link.base.options.lock_wait_ms == 0) link.base.options.lock_wait_ms = POST_WAIT_MS;
    enum code rc = sqlite_connect(&link, err);
    if (!rc) rc = sqlite_run(&link, "PRAGMA wal_autocheckpoint=0", err);
    if (!rc) rc = sqlite_pin_durability(&link, err);
    if (!rc) rc = sqlite_prove_log(&link, err);
    if (!rc) rc = post(&link, name, signal_id, bytes, err);
    sqlite_disconnect(&link);
    return rc;
}

enum code sqlite_post(struct store *base, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    const struct run_name name = {tenant, run};
    if (base->options.mode != STORE_WRITE) return post_beside(store, &name, signal_id, bytes, err);
    enum code rc = post(store, &name, signal_id, bytes, err);
    store->inbox_stale = store->inbox_stale || !rc;
    return rc;
}

static enum code look_for_changes(struct sqlite_store *store, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_DATA_VERSION, &rc, err);
    if (!statement) return rc;
    int got = sqlite3_step(statement);
    if (got == SQLITE_ROW) {
        int64_t version = sqlite3_column_int64(statement, 0);
        store->inbox_stale |= version != store->data_version;
        store->data_version = version;
    } else {
        rc = sqlite_code(store, got, "look into the inbox", err);
    }
    sqlite_done(statement);
    return rc;
}

enum code sqlite_inbox(struct store *base, struct arena *arena, struct inbox_item **items, size_t *count,
                       struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    enum code rc = OK;
    if (++store->idle_polls >= IDLE_POLLS) rc = flush_released(store, err);
    if (!rc) rc = look_for_changes(store, err);
    if (rc || !store->inbox_stale) return rc;
    rc = sql_inbox(base, store->engine, arena, items, count, err);
    // What waits is reported again until it is settled.
    store->inbox_stale = rc != OK || *count > 0;
    return rc;
}
