// The clock of an engine in another process, in a file that both have mapped: the player (outside.c) sets the moment, the engine says when
// nothing moves any more at it. `cairn serve` with $CAIRN_STAGE, the path of that file, goes by it (pace_clock).
//
// One writer each way. What is read is whole: a number beside it is odd while it is written, or while the engine works.
#ifndef CAIRN_EQUIV_PACE_H
#define CAIRN_EQUIV_PACE_H

#include "service/service.h"

#define PACE_VARIABLE "CAIRN_STAGE"

struct pace_rest { // how an engine stands since a pass in which it did nothing
    uint64_t pass;
    uint64_t moment;
    uint64_t in_flight, stopping; // attempts with its workers; of these: asked to stop
    int64_t deadline_ms;          // when it wants to work by itself; INT64_MAX: never
};

struct pace;

enum code pace_make(const char *path, struct pace **out, struct error *err) MUST_CHECK; // the player's side
void pace_free(struct pace *pace);                                                      // NULL is fine
void pace_set(struct pace *pace, struct moment_in_time now);  // a new moment, perhaps at the same time
bool pace_rests(const struct pace *pace, struct pace_rest *out); // false: not at the last moment that was set

// The engine's side. The process ends when its parent does. E_INVALID: no such file.
enum code pace_clock(const char *path, struct service_clock *out, struct error *err) MUST_CHECK;

#endif
