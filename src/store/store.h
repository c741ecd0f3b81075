// The append-only log of events, and what is kept beside it.
//
// Contract, by number; test/conformance/store_suite.c has one test per clause, run on every store as it ships.
//  S1 An append is durable when it returns OK: it survives kill -9, kernel crash and power cut.
//  S2 After any crash the store holds a prefix of what was appended, and in it every acknowledged batch.
//  S3 A batch (events of many runs, ledger entries, heads, blobs, notes) is present whole or not at all.
//  S4 The store numbers events: 1, 2, 3, ... per run, without gaps, in commit order; readers see them in that order and
//     never see a number appear below one they have seen (I4).
//  S5 (run, key) is unique: appending a moment whose key is stored returns the first event's id, number and time with
//     idempotent = true, and burns no number.
//  S6 Fencing: a run is written by the holder of its lease; the epoch is compared inside the same transaction. A stale
//     holder gets E_CONFLICT and nothing of its batch is stored.
//  S7 Exactly one terminal event per run; afterwards only ledger entries are accepted (E_TERMINAL).
//  S8 Stored events do not change: UPDATE, DELETE and INSERT OR REPLACE are refused by the store itself.
//  S9 Every record carries the hash of its predecessor; the hash of the last record (the head) is kept apart from the
//     records, so a changed, removed, swapped or cut record is found by store_verify and named by its sequence.
//  S10 An append that failed with E_IO may or may not be stored (UNKNOWN): the process must end; reopening shows which. Whatever
//     else a handle writes and fails to with E_IO (a claim, a signal) is the last that it writes.
//     E_FULL, E_CONFLICT, E_SCHEMA and E_TERMINAL stored nothing and the store goes on.
//  S11 Runs are keyed by (tenant, run): a foreign tenant's run answers exactly like one that does not exist.
//  S12 An event of a type that the run's vocabulary does not have is refused; its moment goes to the ledger (C-05).
//  S13 A run can be taken over from another store as it is: bytes, numbers, ids, times and hashes stay. Its chain and its heads are
//     checked before anything is written; it is there whole or not at all. A run of that id with another log is left alone
//     (E_CONFLICT).
//  S14 A run that has ended can be removed whole: events, ledger, head. What stays is a tombstone (id, numbers, heads, when, why) that
//     nobody changes or removes. Nothing else removes anything, and only through this door.
//  S15 A note is a value under (space, key). Its version is 1 when it is made and rises with each put; removed and made again it is 1
//     again. The notes of a batch are stored with it, whole or not at all. A put may say which version it expects: when the store
//     has another one the answer is E_CONFLICT and nothing of the batch is stored. Notes of the space "audit" are made once: nobody
//     changes (E_CONFLICT) or removes (E_DENIED) them.
//  S16 The feed: every event of the log, of all runs and tenants, has a position. Positions ascend, not densely, in commit order and
//     with each run's numbers; none appears below one that a reader has seen; none changes. Those of a removed run are gone and
//     never given again. They belong to this store: a copy of a run has others in its own.
//  S17 Several engines (ADR 0021). A handle joins them under a number that is never given twice. Every run belongs for ever to a shard,
//     or to none; a shard belongs to one engine, or to nobody. What a member appends is stored only while the store knows its
//     number, compared inside the same transaction; an engine that takes a shard from one that is taken for dead makes it
//     unknown in the same transaction (E_CONFLICT from then on, and nothing stored). A run of a shard is claimed and made only by the
//     owner of the shard. Epochs of shards only rise. Clocks tell when an engine is taken for dead, and nothing else.
//
// The functions below are written once over struct store_ops, which has only what differs between backends.
// Thread: a handle belongs to one thread. Other threads and processes open their own.
#ifndef CAIRN_STORE_STORE_H
#define CAIRN_STORE_STORE_H

#include "contract/standing.h"
#include "base/map.h"
#include "contract/contract.h"
#include "os/os.h"
#include "store/keep.h"

struct store;   // an open store
struct run_log; // a run opened for appending by this handle: last number, head hash, epoch, keys

enum store_mode {
    STORE_READ = 1,
    STORE_WRITE
}; // READ: look, post to inboxes; never takes a lock that blocks the writer

// Who fetches the body of a plan again when it is not here (C-38). `sha256` is what its bytes must have: E_CORRUPT otherwise.
// E_UNREACHABLE: not now; E_DENIED, E_NOT_FOUND, E_NOMEM. Any thread; it waits.
struct plan_source {
    void *context;
    enum code (*fetch)(void *context, struct str tenant, struct str uri, const struct digest *sha256, struct arena *arena,
                       struct str *out, struct error *err);
};

struct store_options {
    enum store_mode mode;
    bool create; // make the store when it is missing (WRITE only)
    const struct contract *contract;
    struct entropy *entropy; // event ids
    struct disk *disk; // files: instead of the file system (tests); sqlite: where `vfs` keeps its files; NULL otherwise
    uint64_t journal_size; // files: bytes of the journal before it is reused; 0 = 64 MiB
    const char *vfs;       // sqlite: name of a VFS (tests); NULL otherwise
    int64_t lock_wait_ms;  // how long to wait for a lock that another process holds; 0 = 30 s
    bool restoring;        // a store whose restore did not end is opened all the same, to go on with it
    bool exclusive;        // sqlite: locking_mode=EXCLUSIVE (a VFS without shared memory)
    struct str token;      // server: who we are; lives as long as the store
    struct str ca_file;    // server: instead of the system's certificates; lives as long as the store
    const char *artifacts; // artifacts are kept below this directory instead of beside the store, logs nowhere; or NULL
    bool own_files; // a service: a directory that a log names is used where it is one of this store's (store_files_dir)
    struct keep *keep; // where results are that playbooks wanted elsewhere (store/keep.h); outlives the store; or NULL
    const struct plan_source *plans; // or NULL: bodies of plans that are gone are gone
    int64_t keep_wait_ms; // how long a read waits for it before it is E_UNREACHABLE for now; 0 = as long as it takes
};

// "sqlite:PATH", "files:DIR", "postgres://HOST/DATABASE" (docs/format/postgres.md), "memory:", and for reading "bundle:FILE"
// (store/bundle.h), and "http://HOST:PORT", "https://HOST", "unix:PATH" for what a server keeps (docs/format/store-api.md).
// E_LOCKED: err names the process that holds it (files, WRITE). E_VERSION, E_CORRUPT. Of a server E_UNREACHABLE, E_DENIED too, and
// from every function below.
enum code store_open(struct str url, const struct store_options *options, struct store **out,
                     struct error *err) MUST_CHECK;
void store_close(struct store *store);
// Before the first store of a program that owns its process: settings of SQLite that hold for all of it. A host of the library has its own.
void store_own_process(void);
const char *store_kind(const struct store *store); // "sqlite"
// The URL for people: without the password that it may hold. Cut to `size`.
void store_hide_password(struct str url, char *out, size_t size);
struct str store_url(const struct store *store);
// A path of this machine beside which stand files that belong to the store but are no part of it: PATH of sqlite:PATH, and so on.
// Empty: there is none. Its directory need not be there.
struct str store_beside(const struct store *store);
// Directory for the artifacts of a run, as a path for people and steps (not created): beside the store.
enum code store_artifacts_dir(const struct store *store, const struct run_ids *ids, struct arena *arena,
                              struct str *out) MUST_CHECK;
// Of what a start says (start_facts.artifacts_dir): a path as it is, "run:ID" as the directory of that run of the same tenant.
// With own_files a path that is of no run of the tenant in this store stands for the directory of the run itself: a log may come
// from elsewhere.
enum code store_files_dir(const struct store *store, const struct run_ids *ids, struct str said, struct arena *arena,
                          struct str *out) MUST_CHECK;
// The same for what its steps write (docs/format/logs.md). Empty: this store keeps no logs.
enum code store_logs_dir(const struct store *store, const struct run_ids *ids, struct arena *arena,
                         struct str *out) MUST_CHECK;
// A piece of a file there, wherever the store is. Past the end: no bytes. E_NOT_FOUND, E_IO, E_NOMEM, E_UNREACHABLE, E_DENIED.
#define FILE_TAIL UINT64_MAX
struct file_range {
    const struct run_ids *ids;
    const char *what; // "logs" or "artifacts"
    struct str name;  // a path below that directory; links are not followed
    uint64_t offset;  // FILE_TAIL: the last `limit` bytes
    size_t limit;
};
struct file_piece {
    struct str bytes;
    uint64_t size; // of the whole file, when it was looked at
};
enum code store_run_file(struct store *store, const struct file_range *range, struct arena *arena,
                         struct file_piece *out, struct error *err) MUST_CHECK;
// The same of an artifact, where the start says that they are (see store_files_dir).
enum code store_left_file(struct store *store, const struct file_range *range, struct str said, struct arena *arena,
                          struct file_piece *out, struct error *err) MUST_CHECK;
// A server keeps the runs: its files are not ours, and it alone writes.
bool store_is_remote(const struct store *store);
// The only tenant that this handle can see; empty: all.
struct str store_tenant(const struct store *store);

// ---- writing
// The summary that `ls` shows, kept with the head of each run. A fold of the log; may be dropped and made again.
struct run_summary {
    enum run_status status;
    char substatus[24];
    struct run_counts counts;
    uint32_t running;
    int64_t created_ms, started_ms, ended_ms;
    bool goes_on;    // without a person (contract/standing.h)
    char cause[160]; // one line: "failed at load: EXIT_NONZERO exit 1"; empty while a step waits for its next attempt
};

void summary_read(struct run_summary *summary); // for backends: what is not stored and follows from the rest

struct run_create {
    struct run_ids ids;
    enum vocabulary vocabulary;
    struct digest document;
    struct str name, parent_run, original_run;
    uint32_t shard; // S17; 0: one of those of store_place
    bool fresh;     // the id was made of random bytes just now: nobody is asked whether it is there before the append
};

// A new run, in memory until the first append that names it (then it is created in the same transaction).
// E_EXISTS when (tenant, run) is there (a fresh one: the append says so). E_LOCKED: a member without shards (S17).
enum code store_create_run(struct store *store, const struct run_create *create, struct run_log **out,
                           struct error *err) MUST_CHECK;
// An existing run, with its lease: the epoch rises. E_NOT_FOUND; E_LOCKED when a living process owns it (err names it).
enum code store_claim_run(struct store *store, struct str tenant, struct str run, struct run_log **out,
                          struct error *err) MUST_CHECK;
struct run_name {
    struct str tenant, run;
};
// Before many claims in a row: does for all of them, in one transaction, what claims of runs of our shards cost most (S17). Each is
// claimed as ever after it. With `count` 0 when that is over. A caller that leaves it out loses nothing but time.
enum code store_claim_ahead(struct store *store, const struct run_name *runs, size_t count,
                            struct error *err) MUST_CHECK;
// Gives the lease back (not durable work: an owner that died is the same) and frees the log.
void store_release_run(struct store *store, struct run_log *log);
const struct run_ids *run_log_ids(const struct run_log *log);
uint64_t run_log_last_seq(const struct run_log *log);
uint64_t run_log_epoch(const struct run_log *log);
uint32_t run_log_shard(const struct run_log *log); // 0 = none
bool run_log_terminal(const struct run_log *log);

struct append_item {
    struct run_log *log;
    const struct moment *moment; // an event, or a ledger entry when its vocabulary has no word for it
    // When moment is NULL: a ledger entry of another kind, e.g. "decision".
    struct str ledger_kind;
    struct json ledger_body;
    struct str signal_id; // of a decision: unique per run
    // out
    uint64_t seq; // of the event; for ledger entries the number of the event before
    char event_id[UUID_SIZE];
    int64_t persisted_ms;
    bool idempotent; // it was stored before; the fields above are the first one's
    bool in_log;
    struct str bytes; // the record as stored, in the batch's arena (empty when idempotent or in the ledger)
};

struct append_summary {
    struct run_log *log;
    struct run_summary summary;
};

struct append_blob {
    struct digest sha256;
    struct str bytes;
};

// ---- notes (S15): what is remembered beside the runs
#define NOTE_ANY UINT64_MAX
#define NOTE_SPACE_MAX 64         // bytes; a-z, 0-9, '.', '_', '-'
#define NOTE_KEY_MAX 512          // bytes; any but NUL
#define NOTE_VALUE_MAX (8u << 20) // bytes
struct note_put {
    struct str space, key, value;
    bool remove;     // the note goes; when there is none, nothing happens (unless a version was expected)
    uint64_t expect; // version that must be there; 0 = none, NOTE_ANY = whatever
};
struct note {
    struct str space, key, value;
    uint64_t version;
};
struct notes {
    struct note *items; // ascending by the bytes of their keys
    size_t count;
};

// Puts for one batch, each held against the store and against those before it. A caller that composes a batch from many requests asks
// here first, so that one that does not fit fails alone. Good until the next append, of any run.
struct note_draft {
    struct store *store;
    struct arena *arena;
    struct map names;            // "space NUL key" -> states
    struct note_state *states;   // as they will be
    struct note_change *changes; // in order
    size_t state_count, state_capacity, change_count, change_capacity;
};
void note_draft_init(struct note_draft *draft, struct store *store, struct arena *arena);
// All of them or none. E_CONFLICT, E_DENIED (S15), E_INVALID, E_LIMIT, E_UNSUPPORTED (this store keeps no notes). Borrows the strings.
enum code note_draft_add(struct note_draft *draft, const struct note_put *notes, size_t count,
                         struct error *err) MUST_CHECK;

struct store_batch {
    struct append_item *items; // in order; items of one run in the order they happened
    size_t item_count;
    const struct append_summary *summaries; // at most one per run
    size_t summary_count;
    const struct append_blob *blobs;
    size_t blob_count;
    const int64_t *inbox_done; // inbox items that this batch settles
    size_t inbox_count;
    const struct note_put *notes; // in order
    size_t note_count;
    const struct note_draft *drafted; // instead of `notes`: these, already checked; or NULL
    // How long the append may wait for others (a lock, a server that is away) before it says E_LOCKED, and nothing of it is stored;
    // 0 = for as long as the store waits for anything. What is on its way to the disk is waited for.
    int64_t wait_ms;
};

// One transaction, one sync. `now_ms` becomes persistedAt (never before the run's previous one). Scratch and results in `turn`.
// After E_FULL, E_CONFLICT, E_SCHEMA, E_TERMINAL the run_logs are as before the call.
enum code store_append(struct store *store, struct store_batch *batch, int64_t now_ms, struct arena *turn,
                       struct error *err) MUST_CHECK;

// ---- reading
// What a store keeps in columns of its own beside the bytes; store_verify holds it against them.
struct record_columns {
    struct str run, timestamp, payload;
    struct str key; // first bytes of the idempotency key
};

struct record {
    uint64_t seq;         // event number; for a ledger entry the number of the event before it
    uint64_t ledger_seq;  // 0 = an event of the log
    struct str type;      // word, or kind of ledger entry ("moment", "decision")
    struct str signal_id; // ledger: of a decision
    struct str bytes;
    struct digest hash; // as stored for ledger entries and redacted events; computed for other events
    bool redacted;      // bundles: values were taken out of the bytes; `hash` is the one that the whole record had
    const struct record_columns *columns; // NULL: none
};

struct records {
    struct record *items;
    size_t count;
};

// Of one run, ascending.
struct record_range {
    struct str tenant, run;
    bool ledger;    // entries of its ledger, by their own numbers, instead of its events
    uint64_t after; // numbers above this; 0 = from the first
    size_t limit;   // at most so many
};
// E_NOT_FOUND when there is no such run.
enum code store_read(struct store *store, const struct record_range *range, struct arena *arena, struct records *out,
                     struct error *err) MUST_CHECK;
// The whole life of a run: events and ledgered moments merged in the order they happened, decoded. Decisions are passed with
// moment == NULL. `visit` gets values that live until it returns (a scratch arena is reset between pages).
typedef enum code (*replay_visit)(void *context, const struct record *record, const struct moment *moment,
                                  const struct seal *seal);
enum code store_replay(struct store *store, struct str tenant, struct str run, replay_visit visit, void *context,
                       struct error *err) MUST_CHECK;
// The same of a run that this handle has claimed and not written to since: what its head said then is not asked again. The log knows the
// keys of its events afterwards (S5), so that an append need not read them.
enum code store_replay_log(struct store *store, struct run_log *log, replay_visit visit, void *context,
                           struct error *err) MUST_CHECK;
// The same from where a reader stopped. All zero is the beginning; after OK it is the end of what was there, after an error
// it is behind the last record that was visited with OK. The chain is held against it, so a rewritten past is found.
struct replay_cursor {
    uint64_t seq, ledger_seq;
    struct digest head, ledger_head;
};
enum code store_replay_from(struct store *store, struct str tenant, struct str run, struct replay_cursor *cursor,
                            replay_visit visit, void *context, struct error *err) MUST_CHECK;

// Where the log of a run ends that this handle writes, as far as it knows.
struct replay_cursor run_log_position(const struct run_log *log);

struct run_head {
    struct run_ids ids;
    enum vocabulary vocabulary;
    struct digest document;
    struct str name, parent_run, original_run;
    struct run_summary summary;
    uint64_t last_seq, last_ledger_seq;
    struct digest head, ledger_head; // hashes of the last records; all zero when there is none
    int64_t updated_ms;
    bool terminal;
    uint64_t epoch;
    bool owned;        // by a living process
    int64_t owner_pid; // 0 = no process
    uint64_t position; // order of creation; the cursor of lists
    uint32_t shard;    // S17; 0 = none
    bool unreadable;   // of a list: the store has something at this position and cannot read it; the summary says so
};
struct standing head_standing(const struct run_head *head);

enum code store_head(struct store *store, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                     struct error *err) MUST_CHECK;

struct run_filter {
    struct str tenant;          // empty = all
    uint32_t status_mask;       // bit (1 << run_status); 0 = all
    struct str plan;            // plan id, empty = all
    struct str run_prefix;      // empty = all
    int64_t since_ms, until_ms; // created; 0 = open
    bool unfinished;            // without a terminal event
    bool roots;                 // no parent run
    uint64_t shards; // bit n - 1 for shard n, with `unfinished`; 0 = all runs, whether they have a shard or not
    bool shardless;  // those without one; together with shards: both
    uint64_t before; // cursor: positions below this; 0 = from the newest
    size_t limit;    // 0 = 50
    uint64_t span;   // look at no more than about so many positions: a page may be short; 0 = until it is full
};
struct run_heads {
    struct run_head *items; // newest first
    size_t count;
    uint64_t next; // cursor for the next page, 0 = end
};
// Cost is linear in what it returns (status, unfinished, plan, since and prefix are indexed), not in the size of the store; where two
// filters are met by many runs each and by few together it is linear in the many, and `span` bounds it.
enum code store_list(struct store *store, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                     struct error *err) MUST_CHECK;
// How many runs a filter means, whatever its cursor and limit, when that is known without looking at each of them; else
// E_UNSUPPORTED.
enum code store_count(struct store *store, const struct run_filter *filter, uint64_t *out,
                      struct error *err) MUST_CHECK;
// From the store, or from where it says that they are (store/keep.h). E_NOT_FOUND; E_UNREACHABLE: there, but not now.
enum code store_blob(struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                     struct error *err) MUST_CHECK;
// ---- bodies of plans, apart from the log (docs/format/serve.md, C-38)
#define STORE_PLAN_MAX ((size_t)16 << 20)
// Durable when OK, and seen by store_blob of every handle of this store on this machine. What is there stays. E_IO, E_FULL, E_NOT_FOUND
// (no place beside this store), E_NOMEM.
enum code store_plan_keep(const struct store *store, const struct digest *sha256, struct str bytes,
                          struct error *err) MUST_CHECK;
bool store_plan_kept(const struct store *store, const struct digest *sha256);
// Takes away (dry: counts) the bodies that are not needed. What is no body of ours stays.
struct plan_sweep {
    bool (*needed)(void *context, const struct digest *sha256);
    void *context;
    bool dry;
    uint64_t count, bytes; // that went
};
enum code store_plan_sweep(const struct store *store, struct plan_sweep *sweep, struct error *err) MUST_CHECK;
// The document of a run: store_blob; and one that is gone is fetched from `uri` (empty: nowhere), compared, and kept again.
enum code store_plan(struct store *store, const struct run_head *head, struct str uri, struct arena *arena, struct str *out,
                     struct error *err) MUST_CHECK;
// The same for a kernel_env, whose context is the store.
enum code store_blob_of(void *store, const struct digest *sha256, struct arena *arena, struct str *out,
                        struct error *err) MUST_CHECK;
struct keep *store_keep(const struct store *store); // of its options
// The note that says of bytes that they are there, in `arena`. False: out of memory.
bool store_kept_note(const struct keep *keep, const struct digest *sha256, uint64_t bytes, struct arena *arena,
                     struct note_put *out) MUST_CHECK;
struct kept_note { // the same, read: texts borrow `arena`
    struct digest sha256;
    struct str place, store;
    uint64_t bytes, version; // version: of the note
};
enum code store_kept_read(const struct note *note, struct arena *arena, struct kept_note *out,
                          struct error *err) MUST_CHECK;
// A result that an event of a run of the tenant names: a noetl:// reference (contract/contract.h), or the hash alone, of `run`.
// E_INVALID: no reference; E_NOT_FOUND: no event names it, or its content is gone.
enum code store_result(struct store *store, struct str tenant, struct str run, struct str ref, struct arena *arena,
                       struct str *out, struct error *err) MUST_CHECK;

// E_NOT_FOUND.
enum code store_note(struct store *store, struct str space, struct str key, struct arena *arena, struct note *out,
                     struct error *err) MUST_CHECK;
// Notes of the space with keys above `after` (empty = from the first), at most `limit`.
enum code store_notes(struct store *store, struct str space, struct str after, size_t limit, struct arena *arena,
                      struct notes *out, struct error *err) MUST_CHECK;

// All notes of the space whose keys are longer than `prefix` and begin with it, ascending; the first error of `visit` ends it. A note, and
// what `visit` puts in `scratch`, lives until it returns.
typedef enum code (*note_visit)(void *context, const struct note *note, struct arena *scratch, struct error *err);
enum code store_each_note(struct store *store, struct str space, struct str prefix, note_visit visit, void *context,
                          struct error *err) MUST_CHECK;

// Spaces that have notes, ascending, in `arena`.
struct note_spaces {
    struct str *items;
    size_t count;
};
enum code store_note_spaces(struct store *store, struct arena *arena, struct note_spaces *out,
                            struct error *err) MUST_CHECK;

// Which store it is, whatever path, link or URL leads to it: a UUID, in the note "store"/"uuid". Copies and backups have that of their
// original. E_NOT_FOUND: no caller has needed it yet; store_give_name makes it then. In `arena`.
enum code store_name(struct store *store, struct arena *arena, struct str *out, struct error *err) MUST_CHECK;
enum code store_give_name(struct store *store, int64_t now_ms, struct arena *arena, struct str *out,
                          struct error *err) MUST_CHECK;

// The lives of a store (I46): one that was put back from a backup goes on in its next life, so that what the former one gave out (leases,
// tokens, cursors, ids of deliveries) is known from its own. A note, "store"/"life".
#define LIVES_KEPT 32
struct store_lives {
    uint32_t number;                // 1 = it was never put back
    uint64_t positions[LIVES_KEPT]; // end of the feed when the last lives began, ascending
    size_t position_count;
    char id[33]; // of this life, hex; empty: none was asked for yet
};
enum code store_lives(struct store *store, struct arena *arena, struct store_lives *out, struct error *err) MUST_CHECK;
uint32_t life_of(const struct store_lives *lives, uint64_t position); // in which the event there was recorded
// The note of the life after `lives`, which begins at `position`; with number 0: of the first. In `arena`.
enum code life_next(const struct store_lives *lives, uint64_t position, int64_t now_ms, struct entropy *entropy,
                    struct arena *arena, struct note_put *out, struct error *err) MUST_CHECK;

// From now on this handle, opened for reading, shows the store as it is at this moment, also while others write: runs, events, ledger,
// blobs and notes fit together. Until it is closed. E_UNSUPPORTED: this store cannot do that (files, Postgres, servers).
enum code store_freeze(struct store *store, struct error *err) MUST_CHECK;

struct feed_item {
    uint64_t position;
    struct str tenant, run;
    enum vocabulary vocabulary;
    struct record record;
};
struct feed {
    struct feed_item *items;
    size_t count;
    uint64_t next; // ask again from here; not below `after`. Above the last item when what followed it has been removed
};
// Events at positions above `after`, ascending, at most `limit` (S16). Costs what it returns.
enum code store_feed(struct store *store, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                     struct error *err) MUST_CHECK;
// Position of the newest event, 0 when there was none: where a reader begins that wants only later events.
enum code store_feed_end(struct store *store, uint64_t *out, struct error *err) MUST_CHECK;

// ---- taking over runs of another store (S13)
enum import_result { IMPORT_NEW = 1, IMPORT_SAME, IMPORT_EXTENDED };

struct run_import {
    const struct run_head *head; // as the other store has it; epoch, owner and position do not matter
    const struct record *events; // all of them
    size_t event_count;
    const struct record *ledger;
    size_t ledger_count;
    bool extend;               // when the run is there and its log is the beginning of this one: bring it up to date
    enum import_result result; // out
};
// All of the runs, or none. E_CORRUPT: not what was sealed (err names run and number). E_CONFLICT: see S13, and without `extend` also
// when the run is there with less. E_LIMIT: too large for one batch. E_LOCKED: a living process owns the run to be extended.
enum code store_import(struct store *store, struct run_import *runs, size_t run_count, const struct append_blob *blobs,
                       size_t blob_count, struct arena *turn, struct error *err) MUST_CHECK;

// From `begun` until the end no other process opens the store (E_CORRUPT): what it holds is a part of something. Durable.
enum code store_restoring(struct store *store, bool begun, struct error *err) MUST_CHECK;
bool store_is_restoring(const struct store *store);

// ---- removing runs (S14)
struct tombstone {
    struct str tenant, run, reason;
    uint64_t position, last_seq, last_ledger_seq;
    struct digest head, ledger_head;
    int64_t removed_ms;
};
struct tombstones {
    struct tombstone *items; // in order of creation of the runs
    size_t count;
};
// All of the runs, or none. E_CONFLICT: one has not ended. E_LOCKED: one is owned by a living process. E_NOT_FOUND.
enum code store_remove(struct store *store, const struct run_name *runs, size_t count, int64_t now_ms,
                       struct str reason, struct error *err) MUST_CHECK;
enum code store_tombstones(struct store *store, struct arena *arena, struct tombstones *out,
                           struct error *err) MUST_CHECK;
struct digests {
    struct digest *items;
    size_t count, capacity;
};
enum code store_blobs(struct store *store, struct arena *arena, struct digests *out,
                      struct error *err) MUST_CHECK; // all
// Blobs that the caller knows to be needed no more; those that are documents of runs are kept all the same. *bytes gets what went.
// E_LOCKED: another process may be about to use one, or has stored something since store_blobs listed them.
enum code store_drop_blobs(struct store *store, const struct digest *blobs, size_t count, uint64_t *bytes,
                           struct error *err) MUST_CHECK;

// ---- formats
struct store_format {
    int64_t have, newest; // what the store has, and what this program would make of it
};
// STORE_WRITE brings a store to the newest format when it opens it, forward only; STORE_READ leaves it as it is.
enum code store_format(struct store *store, struct store_format *out, struct error *err) MUST_CHECK;

// ---- advice
struct advice {
    struct str what, hint;
};
struct advices {
    struct advice *items;
    size_t count, capacity;
};
// What a store knows to be wrong with where it lives, although it works: for people.
enum code store_advise(struct store *store, struct arena *arena, struct advices *out, struct error *err) MUST_CHECK;

// ---- space
struct usage {
    struct str what; // "database", "journal", "blobs", ...
    uint64_t bytes, count;
};
struct usages {
    struct usage *items;
    size_t count, capacity;
};
// Where the bytes are, as far as the store can tell without reading everything.
enum code store_usage(struct store *store, struct arena *arena, struct usages *out, struct error *err) MUST_CHECK;

// ---- inbox: signals from other processes to the owner of the run
struct inbox_item {
    int64_t id;
    struct str tenant, run, signal_id, bytes;
};
enum code store_post(struct store *store, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                     struct error *err) MUST_CHECK;
// All waiting items for runs that this handle owns (memory and files: all items). Cheap when nothing came.
enum code store_inbox(struct store *store, struct arena *arena, struct inbox_item **items, size_t *count,
                      struct error *err) MUST_CHECK;

// ---- several engines (S17)
#define SHARD_COUNT 64 // numbered from 1
struct shard_map {
    uint64_t self;       // our number
    uint32_t members;    // engines that live and share the runs, we among them
    uint64_t mine, free; // bit n - 1 for shard n; free: without an owner, or of an owner that is taken for dead
    uint64_t owner[SHARD_COUNT], epoch[SHARD_COUNT];
};
// Joins when this handle is no member, otherwise renews its lease; fills in who has which shards. `now_ms` is for stores without a clock of
// their own. E_CONFLICT: it was taken for dead; nothing of it is stored any more, logs that it holds are worth nothing, and the
// next call joins anew. E_UNSUPPORTED: a store with one engine at a time.
enum code store_shards(struct store *store, int64_t lease_ms, int64_t now_ms, struct shard_map *out,
                       struct error *err) MUST_CHECK;
// Takes what is free of `take`, gives up what is ours of `give`, and tells. Runs of shards given up must have been released.
enum code store_shards_move(struct store *store, uint64_t take, uint64_t give, int64_t now_ms, struct shard_map *out,
                            struct error *err) MUST_CHECK;
// New runs go to these shards, in turn. 0: to none.
void store_place(struct store *store, uint64_t shards);
// The server of the store is away: nothing can be read or stored, and a call would wait. This one asks for the server again, five
// times a second at most. Once it has said so, what is asked is E_AWAY at once, until it says otherwise.
bool store_away(struct store *store);
// It was taken for dead, and has not joined again. Any thread.
bool store_fenced(const struct store *store);
// Which to take and which to give up, so that shards are spread evenly. Pure.
struct shard_plan {
    uint64_t take, surplus; // surplus: candidates to be given up, `surplus_count` of them
    uint32_t surplus_count;
};
struct shard_plan shard_plan(const struct shard_map *map, uint64_t random);

// ---- proof
struct verify_fault {
    struct str run;
    uint64_t seq; // 0: the run as a whole
    bool ledger;
    struct str what;
};
struct verify_report {
    uint64_t run_count, event_count;
    uint64_t redacted_count; // events whose bytes are not there but whose hashes fit
    struct verify_fault *faults;
    size_t fault_count;
};
// run empty: all runs of the tenant; tenant empty: everything. OK with faults listed is still OK. Faults come run by run, newest run
// first. Many runs are shared among as many threads as there are processors, each with a handle of its own.
enum code store_verify(struct store *store, struct str tenant, struct str run, struct arena *arena,
                       struct verify_report *out, struct error *err) MUST_CHECK;
enum code store_verify_run(struct store *store, struct str tenant, struct str run, struct arena *arena,
                           struct verify_report *out, struct error *err) MUST_CHECK; // one, on this thread

// What recovery had to do when the store was opened (torn tail cut, runs quarantined): for people.
struct store_recovery {
    uint64_t torn_bytes;
    uint64_t replayed_batches;
    uint64_t quarantined_runs;
    struct str side_file; // where cut bytes were kept
};
const struct store_recovery *store_recovered(const struct store *store);

#endif
