// Private to trial/crash*.c: one world that dies, and what comes back from it.
#ifndef CAIRN_TRIAL_CRASH_INSIDE_H
#define CAIRN_TRIAL_CRASH_INSIDE_H

#include "trial/inside.h"

// X(name, what it means): what can be wrong with a world.
#define RULE_LIST(X)                                                                                                   \
    X(LOST, "something that was done or acknowledged is gone")                                                         \
    X(PATH, "the run took another path than undisturbed")                                                              \
    X(OUTPUT, "a step has another output than undisturbed")                                                            \
    X(AGAIN, "a step ran again although its completion was durable")                                                   \
    X(EARLY, "a step was started before that was in the log")                                                          \
    X(LOG, "the log does not verify")                                                                                  \
    X(START, "the run could not be started")                                                                           \
    X(STUCK, "the run never ended")                                                                                    \
    X(ABORT, "the engine stopped itself")

struct crash_verdict {
    bool failed;
    char rule[8];
    char message[400];
    uint32_t later_points; // after the first restart
    uint32_t twice_count;
    uint32_t *twice; // indexes into the calm world's effects; in the world's arena
    uint32_t *times; // how often each of them happened
    struct str left; // sandbox
};

struct crash_calm { // what worlds are compared with
    struct crash_point *points;
    size_t point_count, point_capacity;
    size_t labelled; // points that have their label
    struct effect_seen *effects;
    size_t effect_count;
    struct str left; // sandbox: the tree that it left behind
};

// Plays the undisturbed world and learns its points. The result's arena holds everything.
enum code crash_calm(const struct crash_options *options, struct trial_result *result, struct crash_calm *out,
                     struct error *err) MUST_CHECK;
// Plays one world.
void crash_play(const struct crash_options *options, const struct crash_calm *calm, const struct trial_result *story,
                const struct crash_kill *kill, struct arena *arena, struct crash_verdict *out);

// Equal, or both nothing.
bool same_value(const struct json *a, const struct json *b);

// sandbox.c: a directory per world, and what is in it afterwards
const char *sandbox_enter(const struct crash_options *options, struct arena *arena);   // NULL: it cannot be made
struct str sandbox_leave(const char *dir, struct arena *arena);                        // a line per file; removes all
struct str sandbox_difference(struct str calm, struct str world, struct arena *arena); // empty: none

#endif
