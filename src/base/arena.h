// An arena is memory that dies together. Nobody frees a piece of it; arena_release ends everything at once.
//
//  - arena_alloc zeroes, aligns to 16 and returns NULL when the limit or the system's memory is reached. Everybody checks.
//  - arena_reset keeps the first block, so that a turn allocates nothing from the system in the long run.
//  - fail_in: test seam. When > 0 it counts allocations down and the one that reaches 0 (and, with fail_sticky, all later
//    ones) fails.
//  - Blocks come from malloc, or from the source that the thread had set when the arena was initialised; they go back there
//    whichever thread releases them.
//  - With CAIRN_ARENA_SINGLE each allocation is its own block, so that AddressSanitizer sees every edge.
//
// owner: the function that initialised it; one thread at a time.
#ifndef CAIRN_BASE_ARENA_H
#define CAIRN_BASE_ARENA_H

#include "base/invariant.h"
#include "base/str.h"

struct arena_block;

struct arena_source {
    void *context;
    void *(*take)(void *context, size_t size); // aligned as malloc does; NULL: none left
    void (*give)(void *context, void *memory, size_t size);
};
// What arenas initialised by this thread from now on use; NULL is malloc. Returns what it was. It must outlive them.
const struct arena_source *arena_use(const struct arena_source *source);

struct arena {
    struct arena_block *blocks; // newest first
    const struct arena_source *source;
    size_t block_size;
    size_t size;  // bytes taken from the system
    size_t limit; // of `size`
    int64_t fail_in;
    bool fail_sticky;
};

struct arena arena_of(size_t block_size, size_t limit) MUST_CHECK;
void arena_init(struct arena *arena, size_t block_size, size_t limit); // the same, where the arena is part of something
void arena_reset(struct arena *arena);
void arena_release(struct arena *arena);                 // which may lie in its own memory
struct arena arena_take(struct arena *arena) MUST_CHECK; // all of it; what is left behind is empty
void *arena_alloc(struct arena *arena, size_t size) MUST_CHECK;
void *arena_array(struct arena *arena, size_t count, size_t size) MUST_CHECK;
// Copies; the copy is followed by a NUL. ptr is NULL on failure (and only then).
struct str arena_copy(struct arena *arena, struct str s) MUST_CHECK;
// Each text becomes a copy of its own, as the texts must of a struct that was copied whole; an empty one becomes "". False: no memory.
#define ARENA_KEEP(arena, ...)                                                                                         \
    arena_keep((arena), (struct str *const[]){__VA_ARGS__}, sizeof((struct str *const[]){__VA_ARGS__}) / sizeof(struct str *))
bool arena_keep(struct arena *arena, struct str *const *texts, size_t count) MUST_CHECK;
// Grows an array of `count` elements to hold at least `need`; *capacity is updated. NULL on failure.
void *arena_grow(struct arena *arena, void *array, size_t count, size_t need, size_t size, size_t *capacity) MUST_CHECK;

// Room for one more element behind the first `count` of `items`, a pointer that moves with them. False: no memory, as it was.
#define ARENA_ROOM(arena, items, count, capacity)                                                                      \
    arena_room((arena), &(items), (count), sizeof(*(items)), (capacity))
bool arena_room(struct arena *arena, void *items, size_t count, size_t size, size_t *capacity) MUST_CHECK;

// The same for a list that is malloc'ed; its owner frees `items`.
#define LIST_ROOM(items, count, capacity) list_room(&(items), (count), sizeof(*(items)), (capacity))
bool list_room(void *items, size_t count, size_t size, size_t *capacity) MUST_CHECK;

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, count, type) ((type *)arena_array((arena), (count), sizeof(type)))

#endif
