// Backoff arithmetic (requirements C-46 numbers): n is the number of the retry, 1 for the second try.
#include "kernel/kernel.h"

// Whatever a policy comes to by doubling: what it leads to must be a date that can be written.
#define DELAY_MAX_MS ((int64_t)365 * 86400 * 1000)

int64_t retry_delay_ms(const struct retry_policy *policy, uint32_t n, uint64_t random)
{
    INVARIANT(n >= 1);
    int64_t delay = policy->delay_ms;
    int64_t cap = policy->max_delay_ms > 0 ? policy->max_delay_ms : DELAY_MAX_MS;
    switch (policy->backoff) {
    case BACKOFF_NONE:
        break;
    case BACKOFF_LINEAR:
        if (__builtin_mul_overflow(delay, (int64_t)n, &delay)) delay = cap;
        break;
    case BACKOFF_EXPONENTIAL:
        for (uint32_t i = 1; i < n && delay < cap; i++) delay = delay > cap / 2 ? cap : delay * 2;
        break;
    }
    if (delay > cap) delay = cap;
    INVARIANT(delay >= 0 && delay <= DELAY_MAX_MS);
    if (policy->jitter > 0 && delay > 0) {
        // The share `jitter` of the delay is drawn evenly: full jitter at 1.0.
        double share = policy->jitter * ((double)(random >> 11) * 0x1.0p-53);
        delay -= (int64_t)((double)delay * share);
    }
    return delay > 0 ? delay : 0;
}
