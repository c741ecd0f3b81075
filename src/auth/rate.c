// Sliding windows. A window is cut in slices; a use is counted in its slice, and the slice counts until a whole window has
// passed since its end. So the sum over the slices is never less than the uses of the last window, and the limit holds for
// every window, not only for those that begin on the minute. (A bucket that refills would let twice the quota through in the
// first window.)
#include "auth/internal.h"

#include <string.h>

enum { SLICES = 8, COUNTS = SLICES + 1, WAYS = 8, KEY_SIZE = 16, MS = 1000 };

struct slot {
    uint8_t key[KEY_SIZE];
    int64_t newest;  // number of the newest slice
    int64_t free_ms; // from then on nothing counts any more; 0: not in use
    uint32_t counts[COUNTS];
};

struct rates {
    uint8_t seed[16];
    size_t set_count; // power of two
    struct slot *slots;
};

const struct rate_rule rate_failed_source = {"auth-source", 30, 60};
const struct rate_rule rate_failed_id = {"auth-id", 10, 60};
const struct rate_rule rate_signals = {"signals", 60, 60};
const struct rate_rule rate_starts = {"starts", 20000, 1};

enum code rates_open(struct arena *arena, size_t capacity, const uint8_t seed[16], struct rates **out,
                     struct error *err)
{
    struct rates *rates = ARENA_NEW(arena, struct rates);
    size_t sets = 1;
    while (sets * WAYS < capacity && sets < (size_t)1 << 20) sets *= 2;
    struct slot *slots = ARENA_ARRAY(arena, sets * WAYS, struct slot);
    if (!rates || !slots) return error_nomem(err);
    *rates = (struct rates){.set_count = sets, .slots = slots};
    memcpy(rates->seed, seed, sizeof(rates->seed));
    *out = rates;
    return OK;
}

static int64_t slice_ms(const struct rate_rule *rule)
{
    return (int64_t)rule->window_s * (MS / SLICES);
}

static uint64_t used_of(const struct slot *slot)
{
    uint64_t used = 0;
    for (size_t i = 0; i < COUNTS; i++) used += slot->counts[i];
    return used;
}

// Where the key is, or else the place that it may take: one that is free, or that of the key with the fewest uses.
static struct slot *find(struct rates *rates, const struct digest *digest, int64_t now_ms, bool *found)
{
    size_t set = 0;
    for (size_t i = 0; i < 4; i++) set = set << 8 | digest->b[KEY_SIZE + i];
    struct slot *ways = &rates->slots[(set & (rates->set_count - 1)) * WAYS], *place = ways;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < WAYS; i++) {
        struct slot *slot = &ways[i];
        *found = slot->free_ms && memcmp(slot->key, digest->b, KEY_SIZE) == 0;
        if (*found) return slot;
        uint64_t used = slot->free_ms > now_ms ? used_of(slot) : 0;
        if (used >= least) continue;
        least = used;
        place = slot;
    }
    return place;
}

// Forgets what is older than a window. A clock that went back changes nothing: time stands still until it is made up for.
static void move_on(struct slot *slot, int64_t slice)
{
    if (slice <= slot->newest) return;
    int64_t steps = slice - slot->newest;
    for (int64_t i = 1; i <= steps && i <= COUNTS; i++) slot->counts[(slot->newest + i) % COUNTS] = 0;
    slot->newest = slice;
}

// When the oldest slice that counts is over.
static int64_t oldest_ends(const struct slot *slot, int64_t width)
{
    for (int64_t i = slot->newest - SLICES; i <= slot->newest; i++)
        if (i >= 0 && slot->counts[i % COUNTS]) return (i + COUNTS) * width;
    return 0;
}

struct rate_answer rates_take(struct rates *rates, const struct rate_rule *rule, struct str key, int64_t now_ms)
{
    const struct str parts[] = {{(const char *)rates->seed, sizeof(rates->seed)}, str_from(rule->name), {"", 1}, key};
    struct digest digest = sha256_parts(parts, ARRAY_COUNT(parts));
    int64_t width = slice_ms(rule) > 0 ? slice_ms(rule) : 1;
    bool found;
    struct slot *slot = find(rates, &digest, now_ms, &found);
    if (!found) {
        *slot = (struct slot){0};
        memcpy(slot->key, digest.b, KEY_SIZE);
    }
    move_on(slot, now_ms > 0 ? now_ms / width : 0);
    uint64_t used = used_of(slot);
    struct rate_answer answer = {.allowed = used < rule->quota};
    if (answer.allowed) {
        slot->counts[slot->newest % COUNTS]++;
        slot->free_ms = (slot->newest + COUNTS) * width;
        used++;
    }
    answer.remaining = used < rule->quota ? (uint32_t)(rule->quota - used) : 0;
    if (used) answer.reset_ms = slot->free_ms > now_ms ? slot->free_ms - now_ms : 1;
    if (!answer.allowed) {
        int64_t ends = oldest_ends(slot, width);
        answer.retry_ms = ends > now_ms ? ends - now_ms : (int64_t)rule->window_s * MS;
    }
    return answer;
}

static int64_t seconds_up(int64_t ms)
{
    return (ms + MS - 1) / MS;
}

void rate_policy_header(const struct rate_rule *rule, struct buf *out)
{
    buf_printf(out, "\"%s\";q=%u;w=%u", rule->name, rule->quota, rule->window_s);
}

void rate_header(const struct rate_rule *rule, const struct rate_answer *answer, struct buf *out)
{
    buf_printf(out, "\"%s\";r=%u;t=%lld", rule->name, answer->remaining, (long long)seconds_up(answer->reset_ms));
}

int64_t rate_retry_after(const struct rate_answer *answer)
{
    return answer->retry_ms > MS ? seconds_up(answer->retry_ms) : 1;
}
