// Keys are SHA-256 over fields joined by one '|' (C-32). No field may hold a '|': ids are checked at the door, and the
// digest would otherwise not tell "a|b","c" from "a","b|c".
#include "contract/internal.h"

enum { DIGITS_MAX = 10, PIECE_MAX = 9, PART_MAX = 18, NUMBER_MAX = 3 };

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

// The slot comes in pieces ("SIG:" + id, step + "#" + number), so that nothing is composed for the hash.
struct slot {
    struct str pieces[PIECE_MAX];
    size_t count;
    struct digits numbers[NUMBER_MAX];
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

static void add_piece(struct slot *slot, struct str piece)
{
    slot->pieces[slot->count++] = piece;
}

static void add_number(struct slot *slot, size_t at, uint32_t n)
{
    add_piece(slot, digits_of(n, &slot->numbers[at]));
}

// Every part that tells moments of a step apart, always all of them: no name can be taken for something else.
static void playbook_slot(const struct moment *moment, struct slot *slot)
{
    add_piece(slot, moment->step);
    add_piece(slot, STR("|"));
    add_number(slot, 0, moment->visit);
    add_piece(slot, STR("|"));
    add_number(slot, 1, moment->iteration);
    add_piece(slot, STR("|"));
    add_piece(slot, moment->task);
    add_piece(slot, STR("|"));
    add_number(slot, 2, moment->task_run);
}

static void step_pieces(const struct moment *moment, struct slot *slot)
{
    add_piece(slot, moment->step);
    if (moment->visit <= 1) return;
    add_piece(slot, STR(":run:"));
    add_number(slot, 0, moment->visit);
}

static void slot_of(enum vocabulary vocabulary, const struct moment *moment, struct slot *slot)
{
    slot->count = 0;
    if (moment->kind == MOMENT_SIGNAL_ACCEPTED || moment->kind == MOMENT_SIGNAL_REJECTED) {
        add_piece(slot, STR("SIG:"));
        add_piece(slot, moment->signal_id);
    } else if (!moment->step.len) {
        // It has the word of the evaluation of the request.
        bool resumed = vocabulary == VOCABULARY_NOETL && moment->kind == MOMENT_RUN_RESUMED;
        add_piece(slot, resumed ? STR("RESUME") : STR("RUN"));
    } else if (vocabulary == VOCABULARY_NOETL) {
        playbook_slot(moment, slot);
    } else {
        step_pieces(moment, slot);
        if (moment->kind != MOMENT_STEP_REDISPATCHED) return;
        add_piece(slot, STR("#"));
        add_number(slot, 1, moment->engine);
    }
}

static struct str slot_text(const struct slot *slot, struct arena *arena)
{
    return slot->count == 1 ? slot->pieces[0] : contract_join(arena, slot->pieces, slot->count);
}

struct digest moment_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct moment *moment)
{
    const char *word = moment_word(moment->kind, vocabulary);
    INVARIANT(word);
    struct slot slot;
    slot_of(vocabulary, moment, &slot);
    return hash_event(ids->run, &slot, moment->logical, str_from(word), ids->plan_version);
}

struct str moment_slot(enum vocabulary vocabulary, const struct moment *moment, struct arena *arena)
{
    struct slot slot;
    slot_of(vocabulary, moment, &slot);
    return slot_text(&slot, arena);
}

struct str moment_step_id(const struct moment *moment, struct arena *arena)
{
    struct slot slot = {.count = 0};
    step_pieces(moment, &slot);
    return slot_text(&slot, arena);
}
