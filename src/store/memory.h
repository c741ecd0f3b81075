// Private to store/: the store in memory, in three rooms. Everything lives in one arena.
#ifndef CAIRN_STORE_MEMORY_H
#define CAIRN_STORE_MEMORY_H

#include "base/map.h"
#include "store/note_list.h"
#include "store/shard_board.h"

struct stored { // an event or a ledger entry
    uint64_t after_seq;
    struct str bytes, type, signal_id;
    struct digest hash; // ledger
};

struct stored_list {
    struct stored *items;
    size_t count, capacity;
    size_t drafted; // filled by the commit under way, beyond count
};

struct memory_run {
    bool present; // false: a commit that failed left it behind
    bool drafted; // by the commit under way
    bool held;    // by a run_log
    bool removed; // has a tombstone
    struct run_head head;
    struct stored_list events, ledger;
};

struct memory_blob {
    struct digest sha256;
    struct str bytes;
    bool gone;
};

struct memory_place { // of an event in the feed; its position is its index + 1
    const struct memory_run *run;
    uint64_t seq;
};

struct memory_store {
    struct str name; // empty: of one handle
    size_t handles;
    struct memory_store *next; // of those with a name
    struct shard_board board;
    struct note_list notes;
    struct memory_place *feed;
    size_t feed_count, feed_capacity;
    struct tombstones tombstones;
    size_t tombstone_capacity;
    struct arena arena;
    struct map by_id; // "tenant/run" -> runs
    struct memory_run **runs;
    size_t run_count, run_capacity;
    struct memory_run **order; // present ones, by position - 1
    size_t present_count, order_capacity;
    struct map by_hash; // -> blobs
    struct memory_blob *blobs;
    size_t blob_count, blob_capacity;
    struct inbox_item *inbox;
    size_t inbox_count, inbox_capacity;
    int64_t next_inbox;
};

struct memory_handle {
    struct store base;
    struct memory_store *data;
};

static inline struct memory_store *memory(const struct store *store)
{
    return CONTAINER_OF((void *)(uintptr_t)store, struct memory_handle, base)->data;
}

static inline bool memory_copy(struct arena *arena, struct str *s)
{
    *s = arena_copy(arena, *s);
    return s->ptr != NULL;
}

// A run that was shown. E_NOT_FOUND.
enum code memory_find(const struct memory_store *store, struct str tenant, struct str run, struct memory_run **out,
                      struct error *err) MUST_CHECK;
enum code memory_copy_head(const struct memory_run *run, struct arena *arena, struct run_head *out) MUST_CHECK;
struct str memory_blob_key(const struct digest *digest); // of by_hash

// ---- memory_read.c: what struct store_ops says of each
enum code memory_head(struct store *base, struct str tenant, struct str name, struct arena *arena, struct run_head *out,
                      struct error *err);
enum code memory_list(struct store *base, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                      struct error *err);
enum code memory_read(struct store *base, const struct record_range *range, struct arena *arena, struct records *out,
                      struct error *err);
enum code memory_blob(struct store *base, const struct digest *sha256, struct arena *arena, struct str *out,
                      struct error *err);
enum code memory_note(struct store *base, struct str space, struct str key, struct arena *arena, struct note *out,
                      struct error *err);
enum code memory_notes(struct store *base, struct str space, struct str after, size_t limit, struct arena *arena,
                       struct notes *out, struct error *err);
enum code memory_next_space(struct store *base, struct str after, struct arena *arena, struct str *out,
                            struct error *err);
enum code memory_feed(struct store *base, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                      struct error *err);
enum code memory_feed_end(struct store *base, uint64_t *out, struct error *err);
enum code memory_post(struct store *base, struct str tenant, struct str name, struct str signal_id, struct str bytes,
                      struct error *err);
enum code memory_inbox(struct store *base, struct arena *arena, struct inbox_item **items, size_t *count,
                       struct error *err);

// ---- memory_remove.c
enum code memory_remove(struct store *base, const struct run_name *runs, size_t count, int64_t now_ms,
                        struct str reason, struct error *err);
enum code memory_tombstones(struct store *base, struct arena *arena, struct tombstones *out, struct error *err);
enum code memory_blobs(struct store *base, struct arena *arena, struct digests *out, struct error *err);
enum code memory_drop_blobs(struct store *base, const struct digest *blobs, size_t count, uint64_t *bytes,
                            struct error *err);
enum code memory_usage(struct store *base, struct arena *arena, struct usages *out, struct error *err);

#endif
