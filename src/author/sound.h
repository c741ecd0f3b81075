// Private to author/: what can happen in one scope of a program, decided by search.
//
// A world gives every step that runs an outcome and every reference in a condition a value; the rest follows as the kernel
// decides it. Values are represented by samples, one for each way in which the conditions of the document can tell them
// apart. A goal asks for a world in which given steps have given outcomes; the search goes backward from them, so that what
// a step does not depend on is never tried.
//
// Left out: people who skip steps by hand (other than held ones). Whatever is not known is taken as possible, so an
// answer of "no" is a proof.
#ifndef CAIRN_AUTHOR_SOUND_H
#define CAIRN_AUTHOR_SOUND_H

#include "author/author.h"

// TAINTED is skipped because of a failure above; plans only, where it decides what still starts once the run fails.
// RUNS is a goal and never an outcome: the body is started.
enum outcome_bit { OUT_SUCCESS = 1, OUT_FAILED = 2, OUT_SKIPPED = 4, OUT_TAINTED = 8, OUT_RUNS = 16 };

#define VALUE_MISSING (UINT64_C(1) << 63)
#define VALUES_MAX 60

struct sound_var {
    struct str text;   // of the reference
    uint32_t producer; // step of the same scope, or PROGRAM_TOP: an input, a step outside
    struct str *values;
    uint32_t value_count;
    uint64_t mask; // values that are possible at all
    bool alone;    // of one atom only, which may be true or false whatever others say
};

struct sound_atom {
    const struct when_atom *atom;
    uint32_t var;
    uint64_t holds;   // values for which it is true
    bool holds_empty; // true when its producer was skipped
};

struct sound_step {
    struct sound_atom *atoms; // of its condition
    uint32_t atom_count;
    uint8_t can;      // SUCCESS, FAILED: outcomes of the body; 0: nothing comes after it (cancel)
    uint8_t possible; // outcomes, as far as a look at each step alone tells
    bool rule_possible, when_possible;
};

struct sound_trail {
    uint32_t var;
    uint64_t mask;
};

struct sound_scope {
    const struct program *program;
    struct arena *arena;
    uint32_t first, count;
    uint32_t *order; // topological, step indexes
    uint32_t *rank;  // of step - first
    struct sound_step *steps;
    struct sound_var *vars;
    uint32_t var_count;
    size_t var_capacity;
    // the search
    uint8_t *outcome; // assigned, of step - first
    bool *in_cone;
    uint32_t *cone; // ascending ranks
    uint32_t cone_count;
    uint64_t *masks;           // of vars, as far as they are narrowed
    struct sound_trail *trail; // how to undo that
    size_t trail_count, trail_capacity;
    bool *below;
    bool failed; // memory ran out: nothing is known
    uint32_t budget;
    bool plan;        // failures stop unrelated work
    bool free_of_run; // for explanations: without that
    bool no_when;     // for explanations: the condition of the goal itself is left out
    uint32_t goal;
    enum trigger_rule goal_rule; // for suggestions: the goal as if it had this rule
};

struct sound_goal {
    uint32_t step;
    uint8_t outcome;
};

enum code sound_open(struct sound_scope *s, const struct program *program, uint32_t scope, struct arena *arena,
                     struct error *err) MUST_CHECK;
// SUCCESS, FAILED: what the body of a step can come to by itself.
uint8_t sound_outcomes(const struct program_step *ps);
// Fills `possible` of a step from its dependencies; again when those are known better.
void sound_estimate(struct sound_scope *s, uint32_t step);
// Is there a world with all these outcomes? After YES, outcome and masks hold it.
enum sound_answer sound_ask(struct sound_scope *s, const struct sound_goal *goals, uint32_t count);

#endif
