// Checks that stay on in every build, and the few macros the house style allows.
//
// INVARIANT(x): our own logic is broken; die before anything is appended. Never use it for what a disk, a network or a
// document may do to us: those are codes (error.h).
#ifndef CAIRN_BASE_INVARIANT_H
#define CAIRN_BASE_INVARIANT_H

#include <stddef.h>

#define INVARIANT(x) ((x) ? (void)0 : invariant_failed(#x, __FILE__, __LINE__))
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define UNUSED __attribute__((unused))

_Noreturn void invariant_failed(const char *expression, const char *file, int line);

#endif
