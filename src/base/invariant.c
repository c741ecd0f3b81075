#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void invariant_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: invariant does not hold: %s\n", file, line, expression);
    fflush(stderr);
    abort();
}
