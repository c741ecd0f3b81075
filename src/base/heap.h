// An intrusive min-heap keyed by (due, seq): equal deadlines fire in the order they were set, on every machine.
// Nodes are embedded in the caller's structs; the heap owns only its array of pointers.
#ifndef CAIRN_BASE_HEAP_H
#define CAIRN_BASE_HEAP_H

#include "base/invariant.h"

#include <stdbool.h>
#include <stdint.h>

struct heap_node {
    int64_t due;
    uint64_t seq;
    size_t index; // position + 1; 0 = not in the heap
};

struct heap {
    struct heap_node **nodes;
    size_t count, capacity;
    uint64_t next_seq;
};

void heap_init(struct heap *heap);
void heap_release(struct heap *heap);
bool heap_push(struct heap *heap, struct heap_node *node, int64_t due) MUST_CHECK; // false: out of memory
void heap_remove(struct heap *heap, struct heap_node *node);                       // no-op when not in it
struct heap_node *heap_peek(const struct heap *heap);                              // NULL when empty
void heap_verify(const struct heap *heap);

#endif
