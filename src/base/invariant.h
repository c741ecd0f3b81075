// Checks that stay on in every build, and the few macros the house style allows.
//
// INVARIANT(x): our own logic is broken; die before anything is appended. Never use it for what a disk, a network or a
// document may do to us: those are codes (error.h).
//
// COVER(name): a branch that exists for a reason. Builds for tests count how often it was taken, and the test that shows the reason
// asserts it (COVERED in test/harness/test.h). tools/tidy sees to it that every branch so marked has its test.
#ifndef CAIRN_BASE_INVARIANT_H
#define CAIRN_BASE_INVARIANT_H

#include <stddef.h>

#define INVARIANT(x) ((x) ? (void)0 : invariant_failed(#x, __FILE__, __LINE__))
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define UNUSED __attribute__((unused))
// A local that ends with its block: `struct buf text SCOPED(buf_release) = buf_of(4096);`. Whichever way the block is left, the function
// gets its address (ADR 0042). What it releases is not released by hand as well, and its value is not handed on.
#define SCOPED(release) __attribute__((cleanup(release)))

#ifdef CAIRN_VERIFY
struct cover {
    const char *name;
    unsigned hits;
};
#define COVER(branch)                                                                                                  \
    do {                                                                                                               \
        static struct cover cover_##branch __attribute__((section("cairn_cover"), used)) = {#branch, 0};               \
        (void)__atomic_add_fetch(&cover_##branch.hits, 1, __ATOMIC_RELAXED);                                           \
    } while (0)
#else
#define COVER(branch) ((void)0)
#endif
unsigned cover_hits(const char *branch); // in this process; 0 in builds that do not count

_Noreturn void invariant_failed(const char *expression, const char *file, int line);

#endif
