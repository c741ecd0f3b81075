#include "base/heap.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 16 };

void heap_init(struct heap *heap)
{
    *heap = (struct heap){0};
}

void heap_release(struct heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) heap->nodes[i]->index = 0;
    free(heap->nodes);
    *heap = (struct heap){0};
}

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void place(struct heap *heap, size_t i, struct heap_node *node)
{
    heap->nodes[i] = node;
    node->index = i + 1;
}

static void sift_up(struct heap *heap, size_t i, struct heap_node *node)
{
    while (i > 0 && before(node, heap->nodes[(i - 1) / 2])) {
        place(heap, i, heap->nodes[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(heap, i, node);
}

static void sift_down(struct heap *heap, size_t i, struct heap_node *node)
{
    for (;;) {
        size_t child = i * 2 + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count && before(heap->nodes[child + 1], heap->nodes[child])) child++;
        if (!before(heap->nodes[child], node)) break;
        place(heap, i, heap->nodes[child]);
        i = child;
    }
    place(heap, i, node);
}

bool heap_push(struct heap *heap, struct heap_node *node, int64_t due)
{
    INVARIANT(node->index == 0);
    if (heap->count == heap->capacity) {
        size_t capacity = heap->capacity ? heap->capacity * 2 : CAPACITY_MIN;
        size_t size;
        if (__builtin_mul_overflow(capacity, sizeof(*heap->nodes), &size)) return false;
        struct heap_node **nodes = realloc(heap->nodes, size);
        if (!nodes) return false;
        heap->nodes = nodes;
        heap->capacity = capacity;
    }
    node->due = due;
    node->seq = heap->next_seq++;
    heap->count++;
    sift_up(heap, heap->count - 1, node);
    return true;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (node->index == 0) return;
    size_t i = node->index - 1;
    INVARIANT(i < heap->count);
    INVARIANT(heap->nodes[i] == node);
    node->index = 0;
    struct heap_node *last = heap->nodes[--heap->count];
    if (last == node) return;
    // The last node comes from another branch: it may have to go either way.
    if (i > 0 && before(last, heap->nodes[(i - 1) / 2]))
        sift_up(heap, i, last);
    else
        sift_down(heap, i, last);
}

struct heap_node *heap_peek(const struct heap *heap)
{
    return heap->count ? heap->nodes[0] : NULL;
}

void heap_verify(const struct heap *heap)
{
    INVARIANT(heap->count <= heap->capacity);
    for (size_t i = 0; i < heap->count; i++) {
        INVARIANT(heap->nodes[i]->index == i + 1);
        INVARIANT(heap->nodes[i]->seq < heap->next_seq);
        if (i > 0) INVARIANT(before(heap->nodes[(i - 1) / 2], heap->nodes[i]));
    }
}
