// Private to engine/: places under limits of steps (permits.c). owner: engine thread, but for permits_visit.
#ifndef CAIRN_ENGINE_PERMITS_H
#define CAIRN_ENGINE_PERMITS_H

#include "engine/inside.h"

struct permits;

// Whether the attempt may be given to its executor now. If not it waits here, and its order comes back into the queue when it may.
enum code permit_ask(struct engine *engine, struct resident *resident, const struct effect *effect,
                     const struct order *order, bool *goes, struct error *err) MUST_CHECK;
bool permit_waits(const struct engine *engine, const struct resident *resident, const struct run_hold *hold); // NULL: anything of the run
void permits_cancel(struct engine *engine, const struct resident *resident, uint32_t step); // one that waits comes back at once

// The places of attempts that end with the batch go with it; settled when it is durable.
enum code permits_draft(struct engine *engine, struct note_draft *draft, struct error *err) MUST_CHECK;
void permits_settle(struct engine *engine);
void permits_bury(struct engine *engine); // those of runs that are gone
enum code permits_turn(struct engine *engine, struct error *err) MUST_CHECK; // who may go on
int64_t permits_deadline(const struct engine *engine);
void permits_free(struct engine *engine); // after the answers to notes that were on their way
// Any thread: attempts that wait, or those that have a place. NULL: none.
void permits_visit(struct permits *permits, bool waiting, tool_place_visit visit, void *context);

#endif
