// The only source of nondeterminism in the simulator: everything that could go one way or another asks choice_pick.
//
//   exhaustive  walks every sequence of choices, depth first: choice_next turns the last one that can still be raised
//   seeded      draws from a generator; each subsystem has its own stream, so that a new draw in one place does not shift
//               the others
//   replay      reads a recorded vector; past its end, and above its bound, it answers 0
//
// What was picked is recorded in all three modes, so every world is a vector of small integers and shrinking is deleting
// and lowering entries while the failure persists. 0 is always the quiet answer: nothing fails, nothing crashes.
// owner: one world at a time.
#ifndef CAIRN_TEST_SIM_CHOICE_H
#define CAIRN_TEST_SIM_CHOICE_H

#include "base/buf.h"
#include "base/str.h"

enum stream {
    STREAM_OPTIONS = 0,
    STREAM_WORLD,
    STREAM_TOOL,
    STREAM_CLIENT,
    STREAM_DISK,
    STREAM_ENTROPY,
    STREAM_FORK,
    STREAM_BUDGET,
    STREAM_COUNT
};

enum choice_mode { CHOICE_EXHAUSTIVE = 1, CHOICE_SEEDED, CHOICE_REPLAY };

struct choice {
    enum choice_mode mode;
    uint64_t seed;
    uint64_t random[STREAM_COUNT];
    uint32_t *values, *bounds; // of the world under way, in the order of the picks
    size_t count, capacity;
    size_t position;  // exhaustive, replay: next entry to be answered
    size_t given;     // replay: entries of the vector
    uint32_t *mirror; // may be NULL: every pick is written here as well, for a parent to read when this process aborts
    uint32_t *mirror_count;
    uint32_t mirror_max;
};

void choice_init(struct choice *choice);
void choice_release(struct choice *choice);
void choice_seeded(struct choice *choice, uint64_t seed);
void choice_exhaustive(struct choice *choice);
bool choice_next(struct choice *choice); // exhaustive: false when every sequence has been walked
void choice_replay(struct choice *choice, uint64_t seed, const uint32_t *values, size_t count);

uint32_t choice_pick(struct choice *choice, enum stream stream, uint32_t n); // 0 .. n - 1; n >= 1
// True about once in `rate` times (exhaustive, and at rate 1: both ways are walked); rate 0 = never.
bool choice_once_in(struct choice *choice, enum stream stream, uint32_t rate);
// Bytes that do not matter to the course of the world (ids): from the seed, not in the vector.
void choice_bytes(struct choice *choice, void *bytes, size_t size);

// "3,0,1,…" with the zeros at the end cut; vector_parse reads it back (E: false).
void vector_write(struct buf *out, const uint32_t *values, size_t count);
bool vector_parse(struct str text, uint32_t **values, size_t *count); // malloc'ed

// Makes the vector smaller while `fails` says that it still fails. Works in place; returns the new length.
typedef bool (*choice_fails)(void *context, const uint32_t *values, size_t count);
size_t choice_shrink(uint32_t *values, size_t count, uint32_t tries_max, choice_fails fails, void *context);

#endif
