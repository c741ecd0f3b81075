#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CAIRN_VERIFY
// The linker gathers them.
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the name is the linker's
extern const struct cover __start_cairn_cover[] __attribute__((weak));
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the name is the linker's
extern const struct cover __stop_cairn_cover[] __attribute__((weak));

unsigned cover_hits(const char *branch)
{
    unsigned hits = 0;
    // cppcheck-suppress comparePointers ; both ends are of one section
    for (const struct cover *at = __start_cairn_cover; at < __stop_cairn_cover; at++)
        if (strcmp(at->name, branch) == 0) hits += __atomic_load_n(&at->hits, __ATOMIC_RELAXED);
    return hits;
}
#else
unsigned cover_hits(const char *branch)
{
    (void)branch;
    return 0;
}
#endif

_Noreturn void invariant_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: invariant does not hold: %s\n", file, line, expression);
    fflush(stderr);
    abort();
}
