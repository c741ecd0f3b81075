// Keys are SHA-256 over fields joined by one '|' (C-32). No field may hold a '|': ids are checked at the door, and the
// digest would otherwise not tell "a|b","c" from "a","b|c".
#include "contract/internal.h"

#include <string.h>

enum { DIGITS_MAX = 10, PART_MAX = 16 };

// Decimal text without leading zeros.
struct digits {
    char text[DIGITS_MAX];
    size_t start;
};

static struct str digits_of(uint32_t n, struct digits *out)
{
    out->start = DIGITS_MAX;
    do {
        out->text[--out->start] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return (struct str){out->text + out->start, DIGITS_MAX - out->start};
}

// The slot comes in up to three pieces ("SIG:" + id, step + "#" + number), so that nothing is composed for the hash.
struct slot {
    struct str pieces[3];
    size_t count;
};

static struct digest hash_joined(const struct slot *slot, size_t slot_at, const struct str *fields, size_t count)
{
    struct str parts[PART_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (i) parts[n++] = STR("|");
        if (slot && i == slot_at) {
            for (size_t k = 0; k < slot->count; k++) parts[n++] = slot->pieces[k];
        } else {
            parts[n++] = fields[i];
        }
    }
    INVARIANT(n <= PART_MAX);
    return sha256_parts(parts, n);
}

static struct digest hash_event(struct str run, const struct slot *slot, uint32_t logical, struct str type,
                                struct str plan_version)
{
    struct digits digits;
    struct str fields[] = {run, STR(""), digits_of(logical, &digits), type, plan_version};
    return hash_joined(slot, 1, fields, ARRAY_COUNT(fields));
}

struct digest event_key(struct str run, struct str slot, uint32_t logical, struct str type, struct str plan_version)
{
    struct slot whole = {.pieces = {slot}, .count = 1};
    return hash_event(run, &whole, logical, type, plan_version);
}

struct digest event_key_v2(struct str run, struct str slot, uint32_t logical, struct str type, struct str plan_id,
                           struct str plan_version)
{
    struct digits digits;
    struct str fields[] = {run, slot, digits_of(logical, &digits), type, plan_id, plan_version};
    return hash_joined(NULL, 0, fields, ARRAY_COUNT(fields));
}

struct digest request_key(const struct run_ids *ids, struct str request_id)
{
    struct str fields[] = {ids->tenant, ids->project, ids->environment, ids->plan_id, ids->plan_version, request_id};
    return hash_joined(NULL, 0, fields, ARRAY_COUNT(fields));
}

static struct slot slot_of(const struct moment *moment, struct digits *digits)
{
    if (moment->kind == MOMENT_SIGNAL_ACCEPTED || moment->kind == MOMENT_SIGNAL_REJECTED)
        return (struct slot){.pieces = {STR("SIG:"), moment->signal_id}, .count = 2};
    if (moment->kind == MOMENT_STEP_REDISPATCHED)
        return (struct slot){.pieces = {moment->step, STR("#"), digits_of(moment->engine, digits)}, .count = 3};
    if (moment->step.len) return (struct slot){.pieces = {moment->step}, .count = 1};
    return (struct slot){.pieces = {STR("RUN")}, .count = 1};
}

struct digest moment_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct moment *moment)
{
    const char *word = moment_word(moment->kind, vocabulary);
    INVARIANT(word);
    struct digits digits;
    struct slot slot = slot_of(moment, &digits);
    return hash_event(ids->run, &slot, moment->logical, str_from(word), ids->plan_version);
}

struct str moment_slot(const struct moment *moment, struct arena *arena)
{
    struct digits digits;
    struct slot slot = slot_of(moment, &digits);
    if (slot.count == 1) return slot.pieces[0];
    size_t len = 0;
    for (size_t i = 0; i < slot.count; i++) len += slot.pieces[i].len;
    char *text = arena_alloc(arena, len + 1);
    if (!text) return (struct str){NULL, 0};
    char *to = text;
    for (size_t i = 0; i < slot.count; i++) {
        if (slot.pieces[i].len) memcpy(to, slot.pieces[i].ptr, slot.pieces[i].len);
        to += slot.pieces[i].len;
    }
    return (struct str){text, len};
}
