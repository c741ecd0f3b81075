// Private to store/: what a backend must do. store.c does numbering, keys, sealing, merging and checking above this.
#ifndef CAIRN_STORE_BACKEND_H
#define CAIRN_STORE_BACKEND_H

#include "store/store.h"

// Open addressing set of the keys of a run. A slot holds 32 bits of the key and the number of the event that has it (or,
// with KEY_LEDGER, of the ledger entry that has the signal id), so a hit is confirmed by reading one record. 0 = free.
struct key_set {
    uint64_t *slots;
    uint32_t capacity, count;
};
#define KEY_LEDGER 0x80000000u
#define RUN_EVENTS_MAX 0x7ffffffeu // events, and ledger entries, in one run

bool key_set_reserve(struct key_set *set,
                     uint32_t more) MUST_CHECK; // room for so many more: key_set_add cannot fail then
void key_set_add(struct key_set *set, const struct digest *key, uint32_t number);
void key_set_remove(struct key_set *set, const struct digest *key, uint32_t number);
void key_set_release(struct key_set *set);
// The next number stored under (32 bits of) `key`, 0 at the end. *cursor starts at 0.
uint32_t key_set_next(const struct key_set *set, const struct digest *key, uint32_t *cursor);
struct digest signal_key(struct str signal_id);

struct run_log {
    struct store *store;
    struct run_ids ids; // strings in `memory`
    enum vocabulary vocabulary;
    struct digest document;
    struct str name, parent_run, original_run;
    char *memory; // one malloc with all strings
    uint64_t last_seq, ledger_seq;
    struct digest head, ledger_head;
    int64_t last_persisted_ms;
    struct run_summary summary;
    bool terminal;
    bool created; // is in the store
    uint64_t epoch;
    uint32_t shard;
    uint64_t member;    // of the handle when it was claimed or made
    int64_t backend_id; // sqlite: run_no; files: slot; memory: index
    struct key_set keys;
    bool keys_loaded; // a claimed run's are read at its first append
    uint32_t touched; // place in the batch being appended + 1; 0 outside store_append
};

struct commit_event {
    struct run_log *log;
    uint64_t seq;
    struct encoded encoded;
    int64_t persisted_ms;
};
struct commit_ledger {
    struct run_log *log;
    uint64_t ledger_seq, after_seq;
    struct str kind, signal_id, bytes;
    struct digest hash; // SHA-256(previous hash bytes, bytes)
};
// The run as it shall be after the commit.
struct commit_head {
    struct run_log *log;
    bool create;
    uint64_t expect_seq, expect_ledger_seq; // what the store must hold before
    uint64_t last_seq, ledger_seq;
    struct digest head, ledger_head;
    struct run_summary summary;
    bool terminal;
    int64_t updated_ms;
    // out, set by the backend for a created run
    int64_t backend_id;
};
struct note_state {
    uint64_t version; // 0 = there is none
};
// A put that fits: the store must hold version `before` and holds `after` then; 0 = none.
struct note_change {
    struct str space, key, value;
    uint64_t before, after;
};
struct commit {
    const struct commit_event *events;
    size_t event_count;
    const struct commit_ledger *ledger;
    size_t ledger_count;
    struct commit_head *heads;
    size_t head_count;
    const struct append_blob *blobs;
    size_t blob_count;
    const int64_t *inbox_done;
    size_t inbox_count;
    const struct note_change *notes; // in order; one note may come more than once
    size_t note_count;
    int64_t wait_ms; // store_batch.wait_ms
};

// Bytes behind the last record of a run, where records lie in files that others can write to, and the head that they lie behind.
struct surplus {
    struct str events, ledger;
    uint64_t last_seq, ledger_seq;
    struct digest head, ledger_head;
    bool terminal;
};

// Faults of a report, while they are found.
struct faults {
    struct verify_fault *items;
    size_t count, capacity;
};
// Copies the texts. False: out of memory.
bool fault_add(struct faults *faults, struct arena *arena, const struct verify_fault *one) MUST_CHECK;

// What a backend does, in four tables. Every method is there (store_open checks it): one that a backend has nothing for is the absent_...
// of its name (absent.c).
struct log_ops {
    // All or nothing, durable on OK. E_EXISTS: a created run is there already. E_CONFLICT: epoch or expectation differs.
    enum code (*commit)(struct store *, struct commit *, struct arena *turn, struct error *);
    enum code (*claim)(struct store *, struct str tenant, struct str run, struct run_head *out, struct arena *,
                       int64_t *backend_id, struct error *);
    // Claims of runs that are claimed one by one right after, in one transaction. `count` 0: what was not claimed after all is given back.
    // absent: nothing is gained by it.
    enum code (*claim_ahead)(struct store *, const struct run_name *, size_t count, struct error *);
    void (*release)(struct store *, struct run_log *);
    enum code (*head)(struct store *, struct str tenant, struct str run, struct arena *, struct run_head *,
                      struct error *);
    // An empty tenant in the filter: all tenants.
    enum code (*list)(struct store *, const struct run_filter *, struct arena *, struct run_heads *, struct error *);
    enum code (*count)(struct store *, const struct run_filter *, uint64_t *, struct error *); // or E_UNSUPPORTED
    // `hash` of events need not be set (store.c computes it); `columns` when the store keeps some.
    enum code (*read)(struct store *, const struct record_range *, struct arena *, struct records *, struct error *);
    // absent: a record without a head is read like any other, or cannot be.
    enum code (*surplus)(struct store *, struct str tenant, struct str run, struct arena *, struct surplus *,
                         struct error *);
    enum code (*blob)(struct store *, const struct digest *, struct arena *, struct str *, struct error *);
    enum code (*post)(struct store *, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                      struct error *);
    enum code (*inbox)(struct store *, struct arena *, struct inbox_item **, size_t *, struct error *);
    // S17. `shards` joins (base.member is 0) or renews. E_CONFLICT: fenced. absent: one engine at a time (E_UNSUPPORTED).
    enum code (*shards)(struct store *, int64_t lease_ms, int64_t now_ms, struct shard_map *, struct error *);
    enum code (*move)(struct store *, uint64_t take, uint64_t give, int64_t now_ms, struct shard_map *, struct error *);
    bool (*away)(struct store *); // store_away. absent: there is no server
};
struct notes_ops { // S15
    // `arena` NULL: only the version is wanted.
    enum code (*note)(struct store *, struct str space, struct str key, struct arena *, struct note *, struct error *);
    enum code (*notes)(struct store *, struct str space, struct str after, size_t limit, struct arena *, struct notes *,
                       struct error *);
    // The first space above `after`, in `arena`; empty: there is none.
    enum code (*next_space)(struct store *, struct str after, struct arena *, struct str *out, struct error *);
};
struct feed_ops { // S16
    // `hash` of the records need not be set; `next` is set when it is not the last item's position.
    enum code (*read)(struct store *, uint64_t after, size_t limit, struct arena *, struct feed *, struct error *);
    enum code (*end)(struct store *, uint64_t *, struct error *);
};
struct admin_ops {
    enum code (*freeze)(struct store *, struct error *);
    // S9: runs that are not there although something still speaks of them: a fault for each, behind those of `out`.
    enum code (*missing)(struct store *, struct arena *, struct faults *out, struct error *);
    // S14
    enum code (*remove)(struct store *, const struct run_name *, size_t count, int64_t now_ms, struct str reason,
                        struct error *);
    enum code (*tombstones)(struct store *, struct arena *, struct tombstones *, struct error *);
    enum code (*blobs)(struct store *, struct arena *, struct digests *, struct error *);
    enum code (*drop_blobs)(struct store *, const struct digest *, size_t count, uint64_t *bytes, struct error *);
    enum code (*usage)(struct store *, struct arena *, struct usages *, struct error *);
    enum code (*format)(struct store *, struct store_format *, struct error *); // absent: there is one
    enum code (*advise)(struct store *, struct arena *, struct advices *, struct error *);
    enum code (*restoring)(struct store *, bool begun, struct error *); // absent: no other process opens this store
    struct str (*beside)(const struct store *);                        // store_beside_url: what follows the colon
    // Where the files of a run go that are no part of the log. `what` is "artifacts" or "logs"; empty: kept nowhere.
    enum code (*run_dir)(const struct store *, const struct run_ids *, const char *what, struct arena *, struct str *);
    // A file of a run. store_local_file: run_dir is a directory of this machine.
    enum code (*file)(struct store *, const struct file_range *, struct arena *, struct file_piece *, struct error *);
    void (*close)(struct store *);
};
struct store_ops {
    const char *kind;
    const char *read_only; // why nothing can be written; NULL: it can
    bool remote;           // a server keeps the runs
    struct log_ops log;
    struct notes_ops notes;
    struct feed_ops feed;
    struct admin_ops admin;
};

struct patience;
struct sql_ops;
struct store {                    // backends embed this as their first member
    const struct store_ops *ops;  // set by the backend
    struct store_options options; // set by the backend
    const struct sql_ops *sql;    // set by the backend: how it is asked (sql.h); NULL: not in SQL
    char *url;                    // set and freed by store.c
    struct str tenant;            // the only one that can be seen; empty: all
    struct store_recovery recovery;
    bool restoring; // between the two calls of store_restoring, set when it is opened and by store.c
    bool dead; // something that writes failed with E_IO: nothing more is accepted (S10)
    // S17
    uint64_t member; // our number among the engines; 0 = none
    bool fenced;     // set by a backend together with E_CONFLICT: it was `member` that was not known
    uint64_t place;  // shards for new runs
    uint32_t placed; // the last one that was used
    struct patience *patience; // reads what is elsewhere for a handle with keep_wait_ms; made when it is needed
};

void commit_check(const struct commit *commit);
// The store is found to be restored by `store restore`. OK: that is what this handle is for. E_CORRUPT.
enum code store_found_restoring(struct store *store, struct error *err) MUST_CHECK;
// E_DENIED: open for reading. E_IO: it is dead.
enum code store_writable(const struct store *store, struct error *err) MUST_CHECK;
// Of everything that may write: E_IO is the last that a handle for writing does. Returns `rc`.
enum code store_heed(struct store *store, enum code rc) MUST_CHECK;
// What the store has given away (keep.h). E_NOT_FOUND without a message: it knows of nothing.
enum code store_keep_blob(struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                          struct error *err) MUST_CHECK;
// patience.c: from the place itself, for as long as options.keep_wait_ms says.
enum code store_keep_get(struct store *store, struct str place, const struct digest *sha256, struct arena *arena,
                         struct str *out, struct error *err) MUST_CHECK;
void store_patience_close(struct store *store);
bool usage_add(struct usages *usages, struct arena *arena, const char *what, uint64_t bytes, uint64_t count) MUST_CHECK;
bool digest_add(struct digests *digests, struct arena *arena, const struct digest *one) MUST_CHECK;
bool tombstone_add(struct tombstones *tombstones, size_t *capacity, struct arena *arena,
                   const struct tombstone *one) MUST_CHECK; // copies its strings
#define NOTE_AUDIT "audit"                                  // the space that is only added to
enum code run_missing(struct str run, struct error *err);   // E_NOT_FOUND
// False: the moment is a start with another document than the one that the store keeps for the run.
bool start_fits(const struct moment *moment, const struct digest *document);
enum code note_missing(struct str space, struct str key, struct error *err);
enum code note_conflict(const struct note_change *note, struct error *err);
// For backends whose lists are scans.
bool run_filter_matches(const struct run_filter *filter, const struct run_head *head);
// BASE-WHAT/RUN, for a tenant other than "default" BASE-WHAT/@TENANT/RUN.
enum code run_dir_path(struct str base, const char *what, const struct run_ids *ids, struct arena *arena,
                       struct str *out) MUST_CHECK;
// The key of a stored event, worked out again from its bytes. `moment` and `seal` get what was decoded.
enum code recorded_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct record *record,
                     const struct moment *moment, struct arena *arena, struct digest *key,
                     struct error *err) MUST_CHECK;
enum code record_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct record *record,
                     struct arena *arena, struct moment *moment, struct seal *seal, struct digest *key,
                     struct error *err) MUST_CHECK;

// ---- methods of those that have nothing of the kind (absent.c)
enum code absent_commit(struct store *, struct commit *, struct arena *, struct error *);
enum code absent_claim(struct store *, struct str, struct str, struct run_head *, struct arena *, int64_t *,
                       struct error *);
enum code absent_claim_ahead(struct store *, const struct run_name *, size_t, struct error *);
void absent_release(struct store *, struct run_log *);
enum code absent_count(struct store *, const struct run_filter *, uint64_t *, struct error *);
enum code absent_surplus(struct store *, struct str, struct str, struct arena *, struct surplus *, struct error *);
enum code absent_post(struct store *, struct str, struct str, struct str, struct str, struct error *);
enum code absent_inbox(struct store *, struct arena *, struct inbox_item **, size_t *, struct error *);
enum code absent_shards(struct store *, int64_t, int64_t, struct shard_map *, struct error *);
enum code absent_move(struct store *, uint64_t, uint64_t, int64_t, struct shard_map *, struct error *);
bool absent_away(struct store *);
enum code absent_note(struct store *, struct str, struct str, struct arena *, struct note *, struct error *);
enum code absent_notes(struct store *, struct str, struct str, size_t, struct arena *, struct notes *, struct error *);
enum code absent_next_space(struct store *, struct str, struct arena *, struct str *, struct error *);
enum code absent_feed(struct store *, uint64_t, size_t, struct arena *, struct feed *, struct error *);
enum code absent_feed_end(struct store *, uint64_t *, struct error *);
enum code absent_freeze(struct store *, struct error *);
enum code absent_freezing(struct store *, struct error *); // it never changes
enum code absent_missing(struct store *, struct arena *, struct faults *, struct error *);
enum code absent_remove(struct store *, const struct run_name *, size_t, int64_t, struct str, struct error *);
enum code absent_tombstones(struct store *, struct arena *, struct tombstones *, struct error *);
enum code absent_blobs(struct store *, struct arena *, struct digests *, struct error *);
enum code absent_drop_blobs(struct store *, const struct digest *, size_t, uint64_t *, struct error *);
enum code absent_usage(struct store *, struct arena *, struct usages *, struct error *);
enum code absent_format(struct store *, struct store_format *, struct error *);
enum code absent_advise(struct store *, struct arena *, struct advices *, struct error *);
enum code absent_restoring(struct store *, bool, struct error *);
enum code absent_run_dir(const struct store *, const struct run_ids *, const char *, struct arena *, struct str *);
#define NO_NOTES {.note = absent_note, .notes = absent_notes, .next_space = absent_next_space}
#define NO_FEED {.read = absent_feed, .end = absent_feed_end}
// Of stores that are only read.
#define NO_WRITING                                                                                                     \
    .commit = absent_commit, .claim = absent_claim, .claim_ahead = absent_claim_ahead, .release = absent_release,      \
    .count = absent_count, .surplus = absent_surplus, .inbox = absent_inbox, .shards = absent_shards,                  \
    .move = absent_move, .away = absent_away
#define NO_UPKEEP                                                                                                      \
    .missing = absent_missing, .remove = absent_remove, .tombstones = absent_tombstones, .blobs = absent_blobs,        \
    .drop_blobs = absent_drop_blobs, .usage = absent_usage, .format = absent_format, .advise = absent_advise,          \
    .restoring = absent_restoring
struct str store_beside_url(const struct store *store);
// A body that store_plan_keep has kept (shelf.c). E_NOT_FOUND, E_NOMEM, E_IO.
enum code store_shelf_blob(const struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err) MUST_CHECK;
enum code store_local_file(struct store *, const struct file_range *, struct arena *, struct file_piece *,
                           struct error *);

enum code store_open_sqlite(struct str path, const struct store_options *, struct store **, struct error *) MUST_CHECK;
enum code store_open_files(struct str path, const struct store_options *, struct store **, struct error *) MUST_CHECK;
enum code store_open_bundle(struct str path, const struct store_options *, struct store **, struct error *) MUST_CHECK;
enum code store_open_server(struct str url, const struct store_options *, struct store **, struct error *) MUST_CHECK;
enum code store_open_postgres(struct str url, const struct store_options *, struct store **, struct error *) MUST_CHECK;
enum code store_open_memory(struct str name, const struct store_options *, struct store **, struct error *) MUST_CHECK;
enum code shard_fenced(struct store *, struct error *); // marks the handle; E_CONFLICT

#endif
