// Private to the files store. The bytes on disk, normatively; docs/format/files.md says the same to users.
//
//   DIR/{run}/events.jsonl               one event a line: the stored bytes and '\n'. Tenant "default".
//   DIR/{run}/ledger.jsonl               one ledger entry a line: {"after":n,"body":b,"crc":c,"hash":h,"kind":k,"seq":n,"signalId":s};
//                                        the hash is of the body and chained, crc is the CRC-32C of the line with eight zeros for crc
//   DIR/@{tenant}/{run}/...              the same for other tenants
//   DIR/.cairn/VERSION                   "cairn files 1\n"; written last, so a store that has it is whole
//   DIR/.cairn/lock                      the writer's pid; byte 0 is locked while it lives. After it has closed the store, minus the
//                                        `incarnation` of the journal: another number tells that it died. Then the id of the
//                                        machine's start, when it closed it. Byte 0 of `runs` is locked, too
//   DIR/.cairn/journal                   what a crash would lose: see below
//   DIR/.cairn/runs                      one slot of 512 bytes per run, by position (1, 2, ... in order of creation)
//   DIR/.cairn/index                     40 bytes per run, copied from the slots: lists read this first. May be deleted.
//   DIR/.cairn/names                     identities that do not fit their slots
//   DIR/.cairn/feed                      a header and 40 bytes per run and batch with events, in the order of commits: where they stand
//   DIR/.cairn/notes                     notes: a header and one record per put; the last one of a name counts. Made by the first note
//   DIR/.cairn/blobs/{2 hex}/{sha256}    blobs
//   DIR/.cairn/inbox/{seq}-{hash}.json   signals on their way to the writer
//   DIR/.cairn/quarantine/               run-{position}: why a run is not to be trusted; torn-...: bytes that recovery cut off
//
// Integers are little endian. The journal: two header blocks, then frames, each at a multiple of 4096.
//
//   header  struct journal_header in block 0 or 1 (sequence % 2); the valid one with the higher sequence rules. The other is
//           never touched while this one is needed.
//   frame   struct frame_header, inbox ids (u64 each), bytes for `notes` behind their offset (u64), then per run struct frame_run,
//           slot, lines for events.jsonl, lines for ledger.jsonl, identity for names; zeros, and in the last four bytes before a
//           multiple of 4096 the CRC-32C of all that.
//           No block of an acknowledged frame is written again before everything it covers is durable elsewhere.
//
// A commit writes one frame and syncs the journal: that is the moment. Then the frame is *applied*: lines, identities, slots,
// index, feed, notes, in this order, without a sync. A reader of a run file therefore never sees an event that could vanish.
// When the journal is full, sync_all makes everything applied durable, the generation rises and the journal is written from its
// start again.
//
// Recovery applies the frames of the current generation again (same bytes, same places). The first bad frame ends it. It is a torn
// one, never acknowledged, unless a valid frame of this generation follows, or a slot names a batch that the journal does not
// have: both are corruption (I6). The last frame is proven before it is applied: after a sync that failed the cache may show what the
// disk does not have (I8), so a copy of it (flag FRAME_COPY, same batch) is written behind it and synced. A copy counts when the frame
// before it is bad. `proven` in the header tells how far that is done.
//
// No space left: before the sync nothing has happened and E_FULL is the answer. After it the batch is stored; what cannot be
// applied yet stays `pending` in memory (reads look there, too) and is applied before anything else is accepted.
#ifndef CAIRN_STORE_FILES_H
#define CAIRN_STORE_FILES_H

#include "store/lines.h"
#include "store/note_list.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the files store is written on little endian machines only");

#define BLOCK_SIZE 4096u
#define SLOT_SIZE 512u
#define JOURNAL_SIZE_DEFAULT (64u << 20)
#define JOURNAL_FRAMES (2 * BLOCK_SIZE) // offset of the first frame
#define OPEN_FILES_MAX 256
#define PATH_SIZE 512

// ---- slots

enum slot_flags {
    SLOT_TERMINAL = 1,
    SLOT_CHILD = 2 /* has a parent run */,
    SLOT_NAMES_OUTSIDE = 4,
    SLOT_REMOVED = 8 /* a tombstone: its files are gone, `updated` tells when, `cause` why */,
};
#define SLOT_INDEXED (SLOT_TERMINAL | SLOT_CHILD | SLOT_REMOVED) // flags that index entries repeat

struct disk_slot {
    uint32_t crc; // of all that follows
    uint8_t vocabulary, status, flags, zero;
    uint64_t position;
    uint64_t batch; // that wrote it last
    uint64_t epoch;
    uint64_t key; // run_key
    uint64_t last_seq, ledger_seq;
    uint64_t events_size, ledger_size; // of the two files, in bytes
    int64_t created_ms, started_ms, ended_ms, updated_ms;
    uint32_t counts[4]; // total, completed, failed, skipped
    uint32_t running;
    uint16_t names_size, cause_size;
    uint8_t head[SHA256_SIZE], ledger_head[SHA256_SIZE], document[SHA256_SIZE];
    char substatus[24];
    uint8_t text[264]; // identity (or struct names_ref), cause
};
_Static_assert(sizeof(struct disk_slot) == SLOT_SIZE, "slots have no padding");

struct names_ref {
    uint64_t offset; // in `names`
    uint32_t size;   // 0: the identity is in the slot
    uint32_t crc;
};

struct disk_index {
    uint32_t crc;
    uint8_t status, flags;
    uint16_t zero;
    uint64_t key;
    int64_t created_ms;
    uint32_t tenant, plan; // text_hash
    char run[8];           // first bytes of the run id, zero-filled
};
_Static_assert(sizeof(struct disk_index) == 40, "index entries have no padding");

uint64_t run_key(struct str tenant, struct str run);
uint32_t text_hash(struct str text);
// The nine strings of a run as bytes. `outside` takes any length; the form in a slot fails (0) when it does not fit.
size_t names_encode(const struct run_log *log, uint8_t *out, size_t room);
void names_encode_outside(const struct run_log *log, struct buf *out);
void slot_seal(struct disk_slot *slot);
bool slot_valid(const struct disk_slot *slot, uint64_t position);
void index_seal(struct disk_index *index);
struct disk_index index_of(const struct disk_slot *slot, struct str tenant, struct str plan, struct str run);
bool index_valid(const struct disk_index *index);

// ---- journal

struct journal_header {
    char magic[8]; // "CAIRNJ1\n"
    uint32_t crc;  // of all that follows
    uint32_t
        fed; // low bits of `incarnation`: the feed tells of everything. Versions that do not know it let it fall behind
    uint64_t sequence;    // of header writes
    uint64_t generation;  // of the frames that count
    uint64_t first_batch; // of this generation
    uint64_t incarnation; // how often the store was opened for writing
    uint64_t proven;      // frames that end here or before are on the disk for sure
};

#define FRAME_MAGIC 0x314d4643u // "CFM1"

struct frame_header {
    uint32_t magic;
    uint32_t flags; // FRAME_COPY
    uint64_t generation, batch;
    uint32_t size; // without the zeros and the CRC behind it
    uint32_t run_count, inbox_count, notes_size;
};
enum frame_flags { FRAME_COPY = 1 };

struct frame_run {
    uint64_t position;
    uint64_t events_offset, ledger_offset, names_offset;
    uint32_t events_size, ledger_size, names_size, zero;
};

// A record of a frame, as parsed; pieces point into the frame.
struct frame_part {
    struct frame_run run;
    struct disk_slot slot;
    struct str events, ledger, names;
};
struct frame_cursor {
    struct str rest;
    uint32_t left;
};

struct journal {
    struct file *file;
    uint64_t capacity; // frames go up to here, unless one is larger than all
    uint64_t size;     // of the file; grows in steps up to capacity
    uint64_t end;      // of the last valid frame
    struct journal_header header;
    uint64_t next_batch;
};

// ---- feed

struct feed_header {
    char magic[8]; // "CAIRNF1\n"
    uint64_t zeros[4];
};
struct disk_feed { // some events of one run, stored by one batch
    uint32_t crc;  // of all that follows
    uint32_t run;  // its position
    uint32_t seq;  // of the first one
    uint32_t count;
    uint64_t first;  // position of the first one in the feed
    uint64_t offset; // of its line in events.jsonl
    uint64_t batch;
};
_Static_assert(sizeof(struct feed_header) == 40 && sizeof(struct disk_feed) == 40, "feed entries have no padding");

struct feed_file {
    struct file *file;
    uint64_t count; // of entries
    uint64_t end;   // position of the newest event
    uint64_t batch; // that was entered last
    bool behind;    // a version that does not know it has written
};

// ---- notes

struct notes_header {
    char magic[8];       // "CAIRNN1\n"
    uint64_t generation; // rises when the file is written anew without what is out of date
};
struct disk_note {
    uint32_t crc; // of all that follows, with space, key and value
    uint32_t value_size;
    uint64_t version; // 0: the note is gone
    uint16_t key_size;
    uint8_t space_size;
    uint8_t last; // 1: of its batch; readers take whole batches
    uint32_t zero;
};
_Static_assert(sizeof(struct notes_header) == 16 && sizeof(struct disk_note) == 24, "notes have no padding");

struct note_place { // what the list of notes keeps of a value
    uint64_t offset;
    uint32_t size;
};
struct notes_file {
    struct file *file;
    uint64_t generation;
    uint64_t end;  // of what the list knows
    uint64_t live; // bytes of what is in the list
    bool loaded;
    struct note_list list;
};

// ---- the store

enum run_file { RUN_EVENTS = 0, RUN_LEDGER = 1 };

// A run that an owner in this process may write.
struct active_run {
    uint64_t epoch;
    uint64_t last_seq, ledger_seq;
    uint64_t events_size, ledger_size;
    struct names_ref names;
};

struct run_entry {
    struct disk_index index;
    bool bad;         // slot unreadable or quarantined
    bool checked;     // by recovery
    bool index_dirty; // to be written when the frame is applied
    struct active_run *active;
};

struct cached_file {
    struct file *file;
    uint64_t position;
    uint8_t kind;
    uint16_t newer, older, next; // place + 1; list by use, chain of the bucket
};

#define CACHE_BUCKETS 512
struct file_cache {
    struct cached_file files[OPEN_FILES_MAX];
    uint16_t buckets[CACHE_BUCKETS];
    uint16_t newest, oldest, count, free;
};

// Where the line after `seq` begins: pages are read in order, so the next page starts here.
struct read_cursor {
    uint64_t position, seq, offset;
    uint8_t kind;
};
#define CURSOR_COUNT 64

struct files_store {
    struct store base;
    struct disk *disk;
    bool own_disk;
    bool writer;
    char *dir;
    struct file *lock, *runs, *index, *names;
    bool lock_hidden; // of a reader: there is a lock file that it cannot open
    struct journal journal;
    struct feed_file feed;
    struct notes_file notes;
    struct run_entry *entries; // by position - 1. Readers: filled as far as needed.
    uint64_t run_count;        // of entries
    size_t entry_capacity;
    uint32_t *map; // positions by key; 0 = free
    size_t map_capacity;
    uint64_t names_size;
    uint64_t batch_max; // of all slots
    uint64_t claims;
    struct buf frame; // the last one
    bool pending;     // it is durable, but not all of it is applied
    bool recovering;  // opening: frames are applied that were applied before
    int64_t closed_before; // number of the opening whose owner closed the store last
    struct file_cache cache;
    struct read_cursor cursors[CURSOR_COUNT];
    char side_file[PATH_SIZE];
};

static inline struct files_store *files_of(const struct store *store)
{
    return (struct files_store *)(uintptr_t)store;
}

// files_run.c: runs by key and position
enum code files_read_slot(struct files_store *files, uint64_t position, struct disk_slot *out,
                          struct error *err) MUST_CHECK;
enum code files_decode_slot(struct files_store *files, const struct disk_slot *slot, struct arena *arena,
                            struct run_head *out, struct error *err) MUST_CHECK;
// Position of a run, 0 when there is none. E_CORRUPT: it is there but cannot be read.
enum code files_find(struct files_store *files, struct str tenant, struct str run, uint64_t *position,
                     struct disk_slot *slot, struct error *err) MUST_CHECK;
// The same, and E_NOT_FOUND when there is none.
enum code files_need(struct files_store *files, struct str tenant, struct str run, uint64_t *position,
                     struct disk_slot *slot, struct error *err) MUST_CHECK;
bool files_knows(struct files_store *files, struct str tenant, struct str run); // or did, before it was removed
enum code files_refresh(struct files_store *files, struct error *err) MUST_CHECK;    // readers: entries of new runs
enum code files_load_slots(struct files_store *files, struct error *err) MUST_CHECK; // writer: all entries, checked
enum code files_reserve_entries(struct files_store *files, uint64_t more, struct error *err) MUST_CHECK;
void files_add_entry(struct files_store *files, const struct disk_index *index); // room was reserved

// files_open.c: files of runs
enum code files_run_path(struct str tenant, struct str run, const char *name, char path[PATH_SIZE],
                         struct error *err) MUST_CHECK;
// From the cache, or opened; `create` makes directory and file. E_CORRUPT: something else is in its place.
enum code files_open_run(struct files_store *files, const struct disk_slot *slot, enum run_file kind, bool create,
                         struct file **out, struct error *err) MUST_CHECK;
void files_close_cached(struct files_store *files, uint64_t above); // files of positions above this one
// The run is not to be written any more; a file says why, and removing that file lifts it.
enum code files_quarantine(struct files_store *files, uint64_t position, const char *reason,
                           struct error *err) MUST_CHECK;
enum code files_load_quarantine(struct files_store *files, struct error *err) MUST_CHECK;
// Bytes of a run file past what its slot says are cut off and kept in a side file. E_CORRUPT when it is shorter.
enum code files_cut_tail(struct files_store *files, const struct disk_slot *slot, enum run_file kind,
                         struct error *err) MUST_CHECK;
enum code files_keep_torn(struct files_store *files, const char *name, struct str bytes, struct error *err) MUST_CHECK;

// journal.c
enum code journal_create(struct files_store *files, uint64_t first_batch, struct error *err) MUST_CHECK;
// Finds the valid frames; the last one and the header are durable when it returns.
enum code journal_open(struct files_store *files, struct error *err) MUST_CHECK;
typedef enum code (*journal_visit)(struct files_store *files, struct str frame, struct error *err);
enum code journal_frames(struct files_store *files, journal_visit visit, struct error *err) MUST_CHECK;
// Readers, while no process writes: `visit` gets every whole frame as it lies there.
enum code journal_look(struct files_store *files, journal_visit visit, struct error *err) MUST_CHECK;
bool files_was_closed(struct files_store *files);
bool files_is_locked(const struct files_store *files); // by a writer; of a reader
// The frame in files->frame becomes durable. E_FULL: it is not there. E_IO: it may be there or not.
enum code journal_append(struct files_store *files, struct error *err) MUST_CHECK;
enum code journal_checkpoint(struct files_store *files, struct error *err) MUST_CHECK;

// files_frame.c
// notes[] is for notes_show, when it is durable.
enum code frame_build(struct files_store *files, const struct commit *commit, struct note_node **notes,
                      struct arena *turn, struct error *err) MUST_CHECK;
bool frame_begin(struct str frame, struct frame_header *header, struct frame_cursor *cursor);
bool frame_next(struct frame_cursor *cursor, struct frame_part *part); // false: at the end or malformed (then left > 0)
int64_t frame_inbox(struct str frame, uint32_t i);
struct str frame_notes(struct str frame); // with their offset; empty: none
enum code frame_apply(struct files_store *files, struct str frame, struct error *err) MUST_CHECK;
enum code files_flush(struct files_store *files, struct error *err) MUST_CHECK; // applies what is pending
// Applies the frame that has just become durable. What there is no room for stays pending, and OK is the answer all the same: it is
// stored. Anything else is E_IO.
enum code files_settle(struct files_store *files, struct error *err) MUST_CHECK;

// files_feed.c
enum code feed_create(struct files_store *files, struct error *err) MUST_CHECK;
// Before frames are applied again: everything of batches before `first_batch` stays, the rest is derived from the frames.
enum code feed_open(struct files_store *files, uint64_t first_batch, struct error *err) MUST_CHECK;
enum code feed_apply(struct files_store *files, struct str frame, struct error *err) MUST_CHECK;
// After that, with all slots loaded: adds what a version that does not know the feed has written.
enum code feed_settle(struct files_store *files, struct error *err) MUST_CHECK;
// *runs becomes the highest position that an entry names, when it is lower.
enum code feed_speaks_of(struct files_store *files, bool all, uint64_t *runs, struct error *err) MUST_CHECK;
enum code files_feed(struct store *, uint64_t after, size_t limit, struct arena *, struct feed *, struct error *);
enum code files_feed_end(struct store *, uint64_t *, struct error *);

// files_notes.c
// Before the frame: versions are compared, nodes[] gets what the list will hold (NULL: the note goes), the bytes go to `frame`.
enum code notes_build(struct files_store *files, const struct commit *commit, struct note_node **nodes,
                      struct error *err) MUST_CHECK;
void notes_show(struct files_store *files, const struct commit *commit,
                struct note_node **nodes); // after it is durable
enum code notes_apply(struct files_store *files, struct str frame, struct error *err) MUST_CHECK;
enum code notes_compact(struct files_store *files,
                        struct error *err) MUST_CHECK; // when most of the file is out of date
void notes_close(struct files_store *files);
enum code files_note(struct store *, struct str space, struct str key, struct arena *, struct note *, struct error *);
enum code files_notes(struct store *, struct str space, struct str after, size_t limit, struct arena *, struct notes *,
                      struct error *);
enum code files_next_space(struct store *base, struct str after, struct arena *arena, struct str *out,
                           struct error *err);

// files_remove.c
enum code files_remove(struct store *, const struct run_name *, size_t count, int64_t now_ms, struct str reason,
                       struct error *);
enum code files_tombstones(struct store *, struct arena *, struct tombstones *, struct error *);
enum code files_blobs(struct store *, struct arena *, struct digests *, struct error *);
enum code files_drop_blobs(struct store *, const struct digest *, size_t count, uint64_t *bytes, struct error *);
enum code files_usage(struct store *, struct arena *, struct usages *, struct error *);
// The files of a run whose slot is a tombstone, unless a new run of that id has taken the place.
enum code files_forget(struct files_store *files, const struct disk_slot *slot, struct error *err) MUST_CHECK;
void files_blob_path(const struct digest *sha256, const char *end, char path[PATH_SIZE], char dir[32]);

// files_recover.c
enum code files_recover(struct files_store *files, struct error *err) MUST_CHECK;
// Readers: *behind, when the journal holds what is not where readers look.
enum code files_is_behind(struct files_store *files, bool *behind, struct error *err) MUST_CHECK;
// Directories that a start made whose process died before it was stored.
enum code files_sweep(struct files_store *files, struct error *err) MUST_CHECK;
// The files of a run are as its slot says. E_CORRUPT otherwise.
enum code files_check_run(struct files_store *files, const struct disk_slot *slot, struct error *err) MUST_CHECK;
enum code files_read_index(struct files_store *files, uint64_t first, struct disk_index *out, size_t count,
                           struct error *err) MUST_CHECK;

// files_read.c, files_list.c, files_inbox.c: methods
enum code files_head(struct store *, struct str tenant, struct str run, struct arena *, struct run_head *,
                     struct error *);
enum code files_list(struct store *, const struct run_filter *, struct arena *, struct run_heads *, struct error *);
// Directories of runs, of all tenants, that the store knows nothing of.
typedef enum code (*stranger_visit)(void *context, struct str tenant, struct str run);
enum code files_each_stranger(struct files_store *files, stranger_visit visit, void *context,
                              struct error *err) MUST_CHECK;
enum code files_missing(struct store *, struct arena *, struct faults *, struct error *);
// How many runs the feed and the index speak of. `all`: every entry of the feed is looked at, not only the newest.
enum code files_speak_of(struct files_store *files, bool all, uint64_t *runs, struct error *err) MUST_CHECK;
enum code files_read(struct store *, const struct record_range *, struct arena *, struct records *, struct error *);
enum code files_surplus(struct store *, struct str tenant, struct str run, struct arena *, struct surplus *,
                        struct error *);
// `want` of the events of an entry of the feed, behind the first `skip`.
enum code files_read_entry(struct files_store *files, const struct disk_slot *slot, const struct disk_feed *entry,
                           uint64_t skip, uint64_t want, struct arena *arena, struct records *out,
                           struct error *err) MUST_CHECK;
// Where the line of an event begins.
enum code files_find_event(struct files_store *files, const struct disk_slot *slot, uint64_t seq, uint64_t *offset,
                           struct error *err) MUST_CHECK;
// The last event hashes to what the slot says.
enum code files_check_last(struct files_store *files, const struct disk_slot *slot, struct error *err) MUST_CHECK;
enum code files_blob(struct store *, const struct digest *, struct arena *, struct str *, struct error *);
enum code files_post(struct store *, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                     struct error *);
enum code files_inbox(struct store *, struct arena *, struct inbox_item **, size_t *, struct error *);
enum code files_write_blob(struct files_store *files, const struct append_blob *blob, struct error *err) MUST_CHECK;
enum code files_settle_inbox(struct files_store *files, struct str frame, struct error *err) MUST_CHECK;
// Sets owned and owner_pid.
void files_tell_owner(struct files_store *files, struct run_head *head);

#endif
