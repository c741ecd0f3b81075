// A list of blocks, newest first; the newest is filled from its start. Each block doubles the whole, up to
// GROWTH_MAX, so a small thing (a parked run) costs one small block and a big one few mallocs.
#include "base/arena.h"

#include "base/error.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, GROWTH_MAX = 64 * 1024, ARRAY_COUNT_MIN = 4, LIST_COUNT_MIN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t size; // of bytes
    size_t used;
    alignas(ALIGNMENT) unsigned char bytes[];
};

_Static_assert(offsetof(struct arena_block, bytes) % ALIGNMENT == 0, "blocks start aligned");

static const size_t header_size = offsetof(struct arena_block, bytes);

static _Thread_local const struct arena_source *thread_source;

const struct arena_source *arena_use(const struct arena_source *source)
{
    const struct arena_source *before = thread_source;
    thread_source = source;
    return before;
}

struct arena arena_of(size_t block_size, size_t limit)
{
    INVARIANT(block_size > 0);
    return (struct arena){.source = thread_source, .block_size = block_size, .limit = limit};
}

void arena_init(struct arena *arena, size_t block_size, size_t limit)
{
    *arena = arena_of(block_size, limit);
}

static void free_blocks(struct arena *arena, struct arena_block *end)
{
    while (arena->blocks != end) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        INVARIANT(arena->size >= block->size + header_size);
        arena->size -= block->size + header_size;
        if (arena->source)
            arena->source->give(arena->source->context, block, header_size + block->size);
        else
            free(block);
    }
}

struct arena arena_take(struct arena *arena)
{
    struct arena taken = *arena;
    arena->blocks = NULL;
    arena->size = 0;
    return taken;
}

void arena_release(struct arena *arena)
{
    struct arena own = arena_take(arena);
    free_blocks(&own, NULL);
    INVARIANT(own.size == 0);
}

static struct arena_block *take_block(struct arena *arena, size_t size)
{
    const struct arena_source *source = arena->source;
    struct arena_block *block = source ? source->take(source->context, header_size + size) : malloc(header_size + size);
    if (!block) return NULL;
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    arena->size += header_size + size;
    return block;
}

static bool must_fail(struct arena *arena)
{
    if (arena->fail_in <= 0) return false;
    if (arena->fail_in > 1) {
        arena->fail_in--;
        return false;
    }
    if (!arena->fail_sticky) arena->fail_in = 0;
    return true;
}

// Room for data in a new block, or 0 when not even `size` bytes are within the limit.
static size_t room_for(const struct arena *arena, size_t size)
{
    size_t left = arena->limit > arena->size ? arena->limit - arena->size : 0;
    if (left >= header_size && left - header_size >= size) return left - header_size;
    memory_ceiling_hit();
    return 0;
}

#ifdef CAIRN_ARENA_SINGLE

void arena_reset(struct arena *arena)
{
    free_blocks(arena, NULL);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size == 0) size = 1;
    if (must_fail(arena) || !room_for(arena, size)) return NULL;
    struct arena_block *block = take_block(arena, size);
    if (!block) return NULL;
    block->used = size;
    memset(block->bytes, 0, size);
    return block->bytes;
}

#else

void arena_reset(struct arena *arena)
{
    struct arena_block *first = arena->blocks;
    while (first && first->next) first = first->next;
    free_blocks(arena, first);
    if (first) first->used = 0;
}

// The next block: as much as there is already within GROWTH_MAX (or the caller's larger first block), less
// when the limit is near, more when `size` asks for it.
static struct arena_block *add_block(struct arena *arena, size_t size)
{
    size_t room = room_for(arena, size);
    if (!room) return NULL;
    size_t growth_max = arena->block_size > GROWTH_MAX ? arena->block_size : GROWTH_MAX;
    size_t total = arena->block_size;
    if (arena->size > total) total = arena->size;
    if (total > growth_max) total = growth_max;
    size_t data = total > header_size ? total - header_size : 0;
    if (data > room) data = room;
    if (data < size) data = size;
    return take_block(arena, data);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2 || must_fail(arena)) return NULL;
    size_t rounded = size ? (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < rounded) {
        block = add_block(arena, rounded);
        if (!block) return NULL;
    }
    unsigned char *bytes = block->bytes + block->used;
    block->used += rounded;
    INVARIANT(block->used <= block->size);
    memset(bytes, 0, rounded);
    return bytes;
}

#endif

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) return NULL;
    return arena_alloc(arena, total);
}

struct str arena_copy(struct arena *arena, struct str s)
{
    char *copy = s.len < SIZE_MAX ? arena_alloc(arena, s.len + 1) : NULL;
    if (!copy) return (struct str){NULL, 0};
    if (s.len) memcpy(copy, s.ptr, s.len);
    return (struct str){copy, s.len};
}

bool arena_keep(struct arena *arena, struct str *const *texts, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        *texts[i] = texts[i]->len ? arena_copy(arena, *texts[i]) : STR("");
        ok &= texts[i]->ptr != NULL;
    }
    return ok;
}

void *arena_grow(struct arena *arena, void *array, size_t count, size_t need, size_t size, size_t *capacity)
{
    INVARIANT(count <= *capacity && (array || !count));
    if (array && need <= *capacity) return array;
    size_t target = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2;
    if (target < ARRAY_COUNT_MIN) target = ARRAY_COUNT_MIN;
    if (target < need) target = need;
    void *grown = arena_array(arena, target, size);
    if (!grown) return NULL;
    if (count) memcpy(grown, array, count * size);
    *capacity = target;
    return grown;
}

bool arena_room(struct arena *arena, void *items, size_t count, size_t size, size_t *capacity)
{
    void *array;
    memcpy(&array, items, sizeof(array)); // any kind of pointer to an object looks like this one
    array = arena_grow(arena, array, count, count + 1, size, capacity);
    if (!array) return false;
    memcpy(items, &array, sizeof(array));
    return true;
}

bool list_room(void *items, size_t count, size_t size, size_t *capacity)
{
    INVARIANT(count <= *capacity);
    if (count < *capacity) return true;
    size_t target = *capacity ? *capacity * 2 : LIST_COUNT_MIN;
    void *array;
    memcpy(&array, items, sizeof(array));
    array = target > SIZE_MAX / size ? NULL : realloc(array, target * size);
    if (!array) return false;
    memcpy(items, &array, sizeof(array));
    *capacity = target;
    return true;
}
