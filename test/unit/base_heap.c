// The timer heap: order by (due, seq), removal from anywhere, verification.
#include "base/heap.h"
#include "harness/test.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void equal_deadlines_fire_in_order_of_setting(void)
{
    struct heap heap;
    struct heap_node nodes[100] = {{0}};
    heap_init(&heap);
    for (size_t i = 0; i < ARRAY_COUNT(nodes); i++) CHECK(heap_push(&heap, &nodes[i], 7));
    for (size_t i = 0; i < ARRAY_COUNT(nodes); i++) {
        CHECK(heap_peek(&heap) == &nodes[i]);
        heap_remove(&heap, &nodes[i]);
        heap_verify(&heap);
    }
    CHECK(heap_peek(&heap) == NULL);
    heap_release(&heap);
}

static void smallest_deadline_first(void)
{
    static const int64_t dues[] = {5, INT64_MIN, 0, INT64_MAX, -1, 5, 3};
    static const int64_t want[] = {INT64_MIN, -1, 0, 3, 5, 5, INT64_MAX};
    struct heap heap;
    struct heap_node nodes[ARRAY_COUNT(dues)] = {{0}};
    heap_init(&heap);
    for (size_t i = 0; i < ARRAY_COUNT(dues); i++) CHECK(heap_push(&heap, &nodes[i], dues[i]));
    for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
        struct heap_node *node = heap_peek(&heap);
        CHECK_INT(node->due, want[i]);
        heap_remove(&heap, node);
        CHECK_INT(node->index, 0);
    }
    heap_release(&heap);
}

static void remove_is_harmless_when_absent(void)
{
    struct heap heap;
    struct heap_node a = {0}, b = {0};
    heap_init(&heap);
    heap_remove(&heap, &a);
    CHECK(heap_push(&heap, &a, 1));
    heap_remove(&heap, &b);
    CHECK(heap_peek(&heap) == &a);
    heap_remove(&heap, &a);
    heap_remove(&heap, &a);
    CHECK_INT(heap.count, 0);
    CHECK(heap_push(&heap, &a, 2));
    heap_release(&heap);
    CHECK_INT(a.index, 0);
}

// Random pushes and removals against the plainest model: a scan for the minimum.
static void behaves_like_a_sorted_list(void)
{
    enum { COUNT = 300 };
    struct heap_node nodes[COUNT] = {{0}};
    struct heap heap;
    heap_init(&heap);
    uint64_t state = 42;
    for (int step = 0; step < 20000; step++) {
        struct heap_node *node = &nodes[next_random(&state) % COUNT];
        if (node->index)
            heap_remove(&heap, node);
        else
            CHECK(heap_push(&heap, node, (int64_t)(next_random(&state) % 50)));
        if (step % 16 == 0) heap_verify(&heap);
        const struct heap_node *least = NULL;
        for (size_t i = 0; i < COUNT; i++) {
            const struct heap_node *n = &nodes[i];
            if (n->index && (!least || n->due < least->due || (n->due == least->due && n->seq < least->seq))) least = n;
        }
        CHECK(heap_peek(&heap) == least);
    }
    heap_release(&heap);
}

static void push_twice(void *context)
{
    struct heap *heap = context;
    struct heap_node node = {0};
    if (heap_push(heap, &node, 1) && heap_push(heap, &node, 2)) return;
}

static void disturb_and_verify(void *context)
{
    struct heap *heap = context;
    heap->nodes[0]->due = 1000;
    heap_verify(heap);
}

static void misuse_aborts(void)
{
    struct heap heap;
    struct heap_node nodes[3] = {{0}};
    heap_init(&heap);
    test_aborts(push_twice, &heap);
    for (size_t i = 0; i < ARRAY_COUNT(nodes); i++) CHECK(heap_push(&heap, &nodes[i], (int64_t)i));
    test_aborts(disturb_and_verify, &heap);
    heap_verify(&heap);
    heap_release(&heap);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(equal_deadlines_fire_in_order_of_setting),
        TEST(smallest_deadline_first),
        TEST(remove_is_harmless_when_absent),
        TEST(behaves_like_a_sorted_list),
        TEST(misuse_aborts),
    };
    return test_main("base_heap", tests, ARRAY_COUNT(tests), argc, argv);
}
