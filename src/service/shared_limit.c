// Numbers of a limit that several engines share. A number is held by one run at a time, which the store sees to; here is what is known
// of them. No clock, no store.
#include "service/queue.h"

#include <stdlib.h>
#include <string.h>

void shared_limit_release(struct shared_limit *share)
{
    free(share->taken);
    free(share->asked);
    *share = (struct shared_limit){0};
}

bool shared_limit_begin(struct shared_limit *share, uint32_t limit)
{
    size_t size = (size_t)limit / 8 + 1;
    if (size > share->taken_size) {
        void *grown = realloc(share->taken, size);
        if (!grown) return false;
        share->taken = grown;
        share->taken_size = size;
    }
    memset(share->taken, 0, share->taken_size);
    share->elsewhere = share->over = share->waiting = 0;
    share->oldest_ms = 0;
    for (size_t i = 0; i < share->asked_count; i++) shared_limit_mark(share, limit, share->asked[i]);
    return true;
}

void shared_limit_mark(struct shared_limit *share, uint32_t limit, uint32_t number)
{
    if (number < limit && number / 8 < share->taken_size) share->taken[number / 8] |= (uint8_t)(1u << number % 8);
}

// Those who count without a number below the limit (it was higher once, or they were let in beside it) each take one away.
bool shared_limit_pick(struct shared_limit *share, uint32_t limit, uint64_t random, uint32_t *out)
{
    if (share->over >= limit || (size_t)limit / 8 >= share->taken_size) return false;
    uint32_t usable = limit - (uint32_t)share->over;
    if (!LIST_ROOM(share->asked, share->asked_count, &share->asked_capacity)) return false;
    for (uint32_t i = 0; i < usable; i++) {
        uint32_t number = (uint32_t)((random % usable + i) % usable);
        if (share->taken[number / 8] >> number % 8 & 1) continue;
        shared_limit_mark(share, limit, number);
        share->asked[share->asked_count++] = *out = number;
        return true;
    }
    return false;
}

void shared_limit_asked(struct shared_limit *share, uint32_t number)
{
    for (size_t i = 0; i < share->asked_count; i++)
        if (share->asked[i] == number) {
            share->asked[i] = share->asked[--share->asked_count];
            return;
        }
}
