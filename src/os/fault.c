#include "os/fault.h"

#ifdef CAIRN_FAULTS

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define CRASHED 137 // as after kill -9

static atomic_uint_fast64_t calls_begun, calls_ended;

static uint64_t setting(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

void fault_before(void)
{
    uint64_t at = setting("CAIRN_CRASH_AT");
    if (atomic_fetch_add(&calls_begun, 1) + 1 == at) _exit(CRASHED);
}

void fault_after(void)
{
    uint64_t after = setting("CAIRN_CRASH_AFTER");
    if (atomic_fetch_add(&calls_ended, 1) + 1 == after) _exit(CRASHED);
}

#else
typedef int fault_seam_is_off; // ISO C wants a declaration in every file
#endif
