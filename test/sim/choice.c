#include "sim/choice.h"

#include <stdlib.h>
#include <string.h>

// splitmix64: one state word a stream, good enough to choose faults with.
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void choice_init(struct choice *choice)
{
    memset(choice, 0, sizeof(*choice));
}

void choice_release(struct choice *choice)
{
    free(choice->values);
    free(choice->bounds);
    memset(choice, 0, sizeof(*choice));
}

static void reserve(struct choice *choice, size_t need)
{
    if (need <= choice->capacity) return;
    size_t capacity = choice->capacity ? choice->capacity * 2 : 256;
    if (capacity < need) capacity = need;
    choice->values = realloc(choice->values, capacity * sizeof(uint32_t));
    choice->bounds = realloc(choice->bounds, capacity * sizeof(uint32_t));
    INVARIANT(choice->values && choice->bounds);
    choice->capacity = capacity;
}

static void seed_streams(struct choice *choice, uint64_t seed)
{
    choice->seed = seed;
    uint64_t state = seed;
    for (int i = 0; i < STREAM_COUNT; i++) choice->random[i] = draw(&state);
}

void choice_seeded(struct choice *choice, uint64_t seed)
{
    choice->mode = CHOICE_SEEDED;
    choice->count = choice->position = 0;
    seed_streams(choice, seed);
}

void choice_exhaustive(struct choice *choice)
{
    choice->mode = CHOICE_EXHAUSTIVE;
    choice->count = choice->position = 0;
    seed_streams(choice, 0);
}

bool choice_next(struct choice *choice)
{
    INVARIANT(choice->mode == CHOICE_EXHAUSTIVE);
    size_t last = choice->position;
    while (last > 0 && choice->values[last - 1] + 1 >= choice->bounds[last - 1]) last--;
    choice->count = last;
    choice->position = 0;
    seed_streams(choice, 0);
    if (last == 0) return false;
    choice->values[last - 1]++;
    return true;
}

void choice_replay(struct choice *choice, uint64_t seed, const uint32_t *values, size_t count)
{
    choice->mode = CHOICE_REPLAY;
    reserve(choice, count);
    if (count) memcpy(choice->values, values, count * sizeof(uint32_t));
    choice->count = choice->given = count;
    choice->position = 0;
    seed_streams(choice, seed);
}

static uint32_t record(struct choice *choice, uint32_t n, uint32_t value)
{
    INVARIANT(value < n);
    reserve(choice, choice->position + 1);
    choice->values[choice->position] = value;
    choice->bounds[choice->position] = n;
    choice->position++;
    if (choice->position > choice->count) choice->count = choice->position;
    if (choice->mirror && choice->position <= choice->mirror_max) {
        choice->mirror[choice->position - 1] = value;
        *choice->mirror_count = (uint32_t)choice->position;
    }
    return value;
}

uint32_t choice_pick(struct choice *choice, enum stream stream, uint32_t n)
{
    INVARIANT(n >= 1);
    if (n == 1) return 0;
    if (choice->mode == CHOICE_SEEDED) return record(choice, n, (uint32_t)(draw(&choice->random[stream]) % n));
    uint32_t value = choice->position < choice->count ? choice->values[choice->position] : 0;
    if (choice->mode == CHOICE_REPLAY && choice->position >= choice->given) value = 0;
    return record(choice, n, value < n ? value : 0);
}

bool choice_once_in(struct choice *choice, enum stream stream, uint32_t rate)
{
    if (rate == 0) return false;
    if (choice->mode == CHOICE_EXHAUSTIVE || rate == 1) // worlds that are walked, also when one is walked again
        return choice_pick(choice, stream, 2) == 1;
    return choice_pick(choice, stream, rate) == rate - 1;
}

void choice_bytes(struct choice *choice, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    while (size > 0) {
        uint64_t random = draw(&choice->random[STREAM_ENTROPY]);
        size_t part = size < sizeof(random) ? size : sizeof(random);
        memcpy(to, &random, part);
        to += part;
        size -= part;
    }
}

void vector_write(struct buf *out, const uint32_t *values, size_t count)
{
    while (count > 0 && values[count - 1] == 0) count--;
    for (size_t i = 0; i < count; i++) buf_printf(out, i ? ",%u" : "%u", values[i]);
    if (count == 0) buf_text(out, "0");
}

bool vector_parse(struct str text, uint32_t **values, size_t *count)
{
    *values = calloc(text.len + 1, sizeof(uint32_t));
    *count = 0;
    while (*values && text.len > 0) {
        struct str part = str_cut(text, ',', &text);
        int64_t value;
        if (!str_int64(part, &value) || value < 0 || value > UINT32_MAX) {
            free(*values);
            *values = NULL;
            return false;
        }
        (*values)[(*count)++] = (uint32_t)value;
    }
    return *values != NULL;
}

struct shrink {
    uint32_t *values, *attempt;
    size_t count;
    uint32_t tries_left;
    choice_fails fails;
    void *context;
};

// Keeps the attempt when it still fails.
static bool keep(struct shrink *s, size_t count)
{
    if (s->tries_left == 0) return false;
    s->tries_left--;
    if (!s->fails(s->context, s->attempt, count)) return false;
    memcpy(s->values, s->attempt, count * sizeof(uint32_t));
    s->count = count;
    return true;
}

static bool drop_runs(struct shrink *s)
{
    bool smaller = false;
    for (size_t size = s->count / 2; size > 0; size /= 2) {
        for (size_t from = 0; from + size <= s->count && s->tries_left > 0;) {
            memcpy(s->attempt, s->values, from * sizeof(uint32_t));
            memcpy(s->attempt + from, s->values + from + size, (s->count - from - size) * sizeof(uint32_t));
            if (keep(s, s->count - size))
                smaller = true;
            else
                from += size;
        }
    }
    return smaller;
}

static bool lower_entries(struct shrink *s)
{
    bool smaller = false;
    for (size_t i = 0; i < s->count && s->tries_left > 0; i++) {
        const uint32_t lower[] = {0, s->values[i] / 2, s->values[i] - 1};
        for (size_t k = 0; k < ARRAY_COUNT(lower) && s->values[i] > 0; k++) {
            if (lower[k] >= s->values[i]) continue;
            memcpy(s->attempt, s->values, s->count * sizeof(uint32_t));
            s->attempt[i] = lower[k];
            if (!keep(s, s->count)) continue;
            smaller = true;
            break;
        }
    }
    return smaller;
}

size_t choice_shrink(uint32_t *values, size_t count, uint32_t tries_max, choice_fails fails, void *context)
{
    while (count > 0 && values[count - 1] == 0) count--;
    struct shrink s = {.values = values, .count = count, .tries_left = tries_max, .fails = fails, .context = context};
    s.attempt = calloc(count + 1, sizeof(uint32_t));
    INVARIANT(s.attempt);
    bool smaller = true;
    while (smaller && s.tries_left > 0) {
        smaller = drop_runs(&s);
        smaller = lower_entries(&s) || smaller;
    }
    free(s.attempt);
    return s.count;
}
