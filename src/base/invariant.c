#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CAIRN_VERIFY
// The linker gathers them.
extern const struct cover __start_cairn_cover[] __attribute__((weak));
extern const struct cover __stop_cairn_cover[] __attribute__((weak));

unsigned cover_hits(const char *branch)
{
    unsigned hits = 0;
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
