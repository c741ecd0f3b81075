// The one transaction of an append. Heads come first: moving them is the fence (epoch, owner and both last numbers must be
// what the writer believes), and makes room for the events, see sqlite.sql.
#include "base/civil.h"
#include "store/sqlite.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 16 }; // of 32: enough to find a key's event; the whole key is worked out from the record

// ---- heads

static enum code add_run(struct sqlite_store *store, struct run_log *log, struct error *err)
{
    INVARIANT(!log->created);
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_ADD_RUN, &rc, err);
    if (!statement) return rc;
    const struct run_ids *ids = &log->ids;
    const struct str texts[] = {
        ids->tenant,  ids->run,          ids->project, ids->environment,
        ids->plan_id, ids->plan_version, log->name,    str_from(vocabulary_name(log->vocabulary))};
    for (int i = 0; i < (int)ARRAY_COUNT(texts); i++) sqlite_bind_str(statement, i + 1, texts[i]);
    sqlite_bind_bytes(statement, 9, log->document.b, SHA256_SIZE);
    sqlite_bind_str(statement, 10, log->parent_run);
    sqlite_bind_str(statement, 11, log->original_run);
    int got = sqlite3_step(statement);
    sqlite_done(statement);
    if (got == SQLITE_DONE) {
        log->backend_id = sqlite3_last_insert_rowid(store->db);
        return OK;
    }
    if ((got & 0xff) == SQLITE_CONSTRAINT) return error_set(err, E_EXISTS, "run %.*s exists", STR_ARG(ids->run));
    return sqlite_code(store, got, "create a run", err);
}

static void bind_head(struct sqlite_store *store, sqlite3_stmt *statement, const struct commit_head *head)
{
    const struct run_summary *summary = &head->summary;
    sqlite3_bind_int64(statement, 1, (int64_t)head->last_seq);
    sqlite3_bind_int64(statement, 2, (int64_t)head->ledger_seq);
    sqlite_bind_bytes(statement, 3, head->head.b, SHA256_SIZE);
    sqlite_bind_bytes(statement, 4, head->ledger_head.b, SHA256_SIZE);
    sqlite3_bind_int64(statement, 5, head->updated_ms);
    sqlite_bind_str(statement, 6, str_from(summary->substatus));
    sqlite3_bind_int64(statement, 7, summary->counts.total);
    sqlite3_bind_int64(statement, 8, summary->counts.completed);
    sqlite3_bind_int64(statement, 9, summary->counts.failed);
    sqlite3_bind_int64(statement, 10, summary->counts.skipped);
    sqlite3_bind_int64(statement, 11, summary->running);
    sqlite3_bind_int64(statement, 13, head->log->backend_id);
    sqlite3_bind_int64(statement, 14, (int64_t)head->log->epoch);
    sqlite3_bind_int64(statement, 15, store->engine);
    sqlite3_bind_int64(statement, 16, (int64_t)head->expect_seq);
    sqlite3_bind_int64(statement, 17, (int64_t)head->expect_ledger_seq);
}

static void bind_rare(sqlite3_stmt *statement, const struct commit_head *head)
{
    const struct run_summary *summary = &head->summary;
    sqlite3_bind_int(statement, 12, head->terminal);
    sqlite_bind_str(statement, 18, str_from(run_status_name(summary->status)));
    sqlite3_bind_int64(statement, 19, summary->created_ms);
    sqlite3_bind_int64(statement, 20, summary->started_ms);
    sqlite3_bind_int64(statement, 21, summary->ended_ms);
    sqlite_bind_str(statement, 22, head->log->ids.tenant);
    sqlite_bind_str(statement, 23, str_from(summary->cause));
}

// What most batches leave alone, and what the indexes are about.
static bool rarely_changed(const struct commit_head *head)
{
    const struct run_summary *now = &head->summary;
    const struct run_summary *then = &head->log->summary;
    return head->terminal != head->log->terminal || now->status != then->status ||
           now->created_ms != then->created_ms || now->started_ms != then->started_ms ||
           now->ended_ms != then->ended_ms || strcmp(now->cause, then->cause) != 0;
}

static enum code write_head(struct sqlite_store *store, struct commit_head *head, struct error *err)
{
    INVARIANT(head->log->touched);
    enum code rc = head->create ? add_run(store, head->log, err) : OK;
    if (rc) return rc;
    bool rare = head->create || rarely_changed(head);
    enum statement which = head->create ? STATEMENT_ADD_HEAD : rare ? STATEMENT_CHANGE_HEAD : STATEMENT_MOVE_HEAD;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    if (!statement) return rc;
    bind_head(store, statement, head);
    if (rare) bind_rare(statement, head);
    rc = sqlite_step(store, statement, "move the head of a run", err);
    if (rc) return rc;
    if (sqlite3_changes(store->db) != 1)
        return error_set(err, E_CONFLICT, "run %.*s belongs to another owner now", STR_ARG(head->log->ids.run));
    head->backend_id = head->log->backend_id;
    return OK;
}

// ---- events and ledger

struct insert_place {
    int64_t run_no;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    const struct insert_place *left = a;
    const struct insert_place *right = b;
    if (left->run_no != right->run_no) return left->run_no < right->run_no ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

// Run by run, so that one page of the index is filled before the next one is fetched.
static struct insert_place *order_events(const struct commit *commit, struct arena *turn)
{
    struct insert_place *places = ARENA_ARRAY(turn, commit->event_count, struct insert_place);
    if (!places) return NULL;
    bool sorted = true;
    for (size_t i = 0; i < commit->event_count; i++) {
        places[i] = (struct insert_place){commit->events[i].log->backend_id, i};
        sorted = sorted && (i == 0 || places[i - 1].run_no <= places[i].run_no);
    }
    if (!sorted) qsort(places, commit->event_count, sizeof(*places), compare_places);
    return places;
}

static void bind_record(sqlite3_stmt *statement, const struct encoded *encoded)
{
    struct sql_record record = sql_record(encoded);
    sqlite_bind_str(statement, 6, record.payload);
    sqlite_bind_str(statement, 7, record.prefix);
    sqlite_bind_str(statement, 8, record.suffix);
}

// Changes with every commit, ours and others'.
static unsigned sqlite_pager_version(struct sqlite_store *store)
{
    unsigned version = 0;
    (void)sqlite3_file_control(store->db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
    return version;
}

static enum code write_events(struct sqlite_store *store, const struct commit *commit, struct arena *turn,
                              struct error *err)
{
    enum code rc = OK;
    const struct insert_place *places = order_events(commit, turn);
    if (!places) return error_nomem(err);
    char time[CIVIL_SIZE];
    int64_t time_ms = INT64_MIN;
    for (size_t i = 0; i < commit->event_count && !rc; i++) {
        const struct commit_event *event = &commit->events[places[i].index];
        if (event->persisted_ms != time_ms) {
            time_ms = event->persisted_ms;
            civil_format(time_ms, time);
        }
        // The first one steps over positions that removed events had; the others follow it.
        enum statement which = i == 0 && !store->above_floor ? STATEMENT_ADD_FIRST_EVENT : STATEMENT_ADD_EVENT;
        sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
        if (!statement) break;
        sqlite3_bind_int64(statement, 1, places[i].run_no);
        sqlite_bind_str(statement, 2, event->log->ids.run);
        sqlite3_bind_int64(statement, 3, (int64_t)event->seq);
        sqlite_bind_str(statement, 4, event->encoded.type);
        sqlite_bind_str(statement, 5, (struct str){time, CIVIL_SIZE - 1});
        bind_record(statement, &event->encoded);
        sqlite_bind_bytes(statement, 9, event->encoded.key.b, KEY_SIZE);
        rc = sqlite_step(store, statement, "append an event", err);
    }
    return rc;
}

static enum code write_ledger(struct sqlite_store *store, const struct commit *commit, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_ADD_LEDGER, &rc, err);
    for (size_t i = 0; i < commit->ledger_count && !rc; i++) {
        const struct commit_ledger *entry = &commit->ledger[i];
        sqlite3_bind_int64(statement, 1, entry->log->backend_id);
        sqlite3_bind_int64(statement, 2, (int64_t)entry->ledger_seq);
        sqlite3_bind_int64(statement, 3, (int64_t)entry->after_seq);
        sqlite_bind_str(statement, 4, entry->kind);
        if (entry->signal_id.len)
            sqlite_bind_str(statement, 5, entry->signal_id);
        else
            sqlite3_bind_null(statement, 5);
        sqlite_bind_str(statement, 6, entry->bytes);
        sqlite_bind_bytes(statement, 7, entry->hash.b, SHA256_SIZE);
        rc = sqlite_step(store, statement, "append to the ledger", err);
    }
    return rc;
}

static enum code write_blobs(struct sqlite_store *store, const struct commit *commit, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_ADD_BLOB, &rc, err);
    for (size_t i = 0; i < commit->blob_count && !rc; i++) {
        sqlite_bind_bytes(statement, 1, commit->blobs[i].sha256.b, SHA256_SIZE);
        sqlite_bind_bytes(statement, 2, commit->blobs[i].bytes.ptr, commit->blobs[i].bytes.len);
        rc = sqlite_step(store, statement, "store a blob", err);
    }
    return rc;
}

static enum code drop_inbox(struct sqlite_store *store, const struct commit *commit, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_DROP_INBOX, &rc, err);
    for (size_t i = 0; i < commit->inbox_count && !rc; i++) {
        sqlite3_bind_int64(statement, 1, commit->inbox_done[i]);
        rc = sqlite_step(store, statement, "settle a signal", err);
    }
    return rc;
}

// ---- notes

static enum code write_note(struct sqlite_store *store, const struct note_change *note, struct error *err)
{
    enum statement which = note->after == 0    ? STATEMENT_DROP_NOTE
                           : note->before == 0 ? STATEMENT_ADD_NOTE
                                               : STATEMENT_MOVE_NOTE;
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, note->space);
    sqlite_bind_str(statement, 2, note->key);
    if (which != STATEMENT_ADD_NOTE) sqlite3_bind_int64(statement, 3, (int64_t)note->before);
    if (which != STATEMENT_DROP_NOTE) {
        sqlite_bind_bytes(statement, 4, note->value.ptr, note->value.len);
        sqlite3_bind_int64(statement, 5, (int64_t)note->after);
    }
    struct error told = {0};
    rc = sqlite_step(store, statement, "keep a note", &told);
    if (rc == E_CONFLICT || (!rc && sqlite3_changes(store->db) != 1)) return note_conflict(note, err);
    return rc ? error_set(err, rc, "%s", told.message) : OK;
}

static enum code write_notes(struct sqlite_store *store, const struct commit *commit, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; i < commit->note_count && !rc; i++) rc = write_note(store, &commit->notes[i], err);
    return rc;
}

// ---- all of it

static enum code write_batch(struct sqlite_store *store, struct commit *commit, struct arena *turn, struct error *err)
{
    enum code rc = sqlite_write_released(store, err);
    for (size_t i = 0; i < commit->head_count && !rc; i++) rc = write_head(store, &commit->heads[i], err);
    if (!rc && commit->event_count) rc = write_events(store, commit, turn, err);
    if (!rc && commit->ledger_count) rc = write_ledger(store, commit, err);
    if (!rc && commit->blob_count) rc = write_blobs(store, commit, err);
    if (!rc && commit->inbox_count) rc = drop_inbox(store, commit, err);
    if (!rc && commit->note_count) rc = write_notes(store, commit, err);
    return rc;
}

enum code sqlite_commit(struct store *base, struct commit *commit, struct arena *turn, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct sqlite_store *store = sqlite_of(base);
    enum code rc = commit->head_count ? sqlite_become_engine(store, err) : OK;
    store->append_wait_ms = commit->wait_ms;
    if (!rc) rc = sqlite_begin(store, err); // the lock of writers: nothing waits for another process after that
    store->append_wait_ms = 0;
    if (rc) return rc;
    store->above_floor = store->above_floor && store->pager_version == sqlite_pager_version(store);
    rc = write_batch(store, commit, turn, err);
    if (rc) {
        sqlite_rollback(store);
        return rc;
    }
    rc = sqlite_commit_now(store, err);
    if (rc) return rc;
    sqlite_forget_released(store);
    store->idle_polls = 0;
    store->above_floor = store->above_floor || commit->event_count > 0;
    store->pager_version = sqlite_pager_version(store);
    for (size_t i = 0; i < commit->head_count; i++) store->inbox_stale |= commit->heads[i].create;
    return OK;
}
