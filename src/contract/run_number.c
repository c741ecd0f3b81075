// Numbers as the ids of runs.
#include "contract/contract.h"

enum { RANDOM_BITS = 22 };
#define SINCE_MS INT64_C(1704067200000) // 2024-01-01T00:00:00Z

uint64_t run_number(uint64_t last, int64_t wall_ms, uint64_t random)
{
    uint64_t ms = wall_ms > SINCE_MS ? (uint64_t)(wall_ms - SINCE_MS) : 0;
    uint64_t made = (ms << RANDOM_BITS | (random & ((UINT64_C(1) << RANDOM_BITS) - 1))) & INT64_MAX;
    return made > last ? made : last + 1;
}

void run_number_format(uint64_t number, char out[RUN_NUMBER_SIZE])
{
    size_t digits = 1;
    for (uint64_t rest = number; rest >= 10; rest /= 10) digits++;
    out[digits] = '\0';
    for (; digits > 0; number /= 10) out[--digits] = (char)('0' + number % 10);
}

bool run_number_valid(struct str id)
{
    enum { LEAST = 15 }; // digits; of 2024 the first minutes have fewer
    int64_t number;
    return id.len >= LEAST && id.ptr[0] != '0' && id.ptr[0] != '-' && id.ptr[0] != '+' && str_int64(id, &number);
}
