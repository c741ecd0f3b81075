// Private to service/: limits that hold for all engines of a store together (ADR 0024). Engine thread.
//
// What counts towards a limit is a note of its own: space "slot", key TENANT|QUEUE|KIND..., and with an empty QUEUE for the limit of the
// tenant.
//   s0 .. s(limit-1)   held by the run in its value; made only where there is none (S15), so no two engines give the same
//   xRUN               a run that counts without one: it was there before the limit, or was let in beside it
//   wENGINE            "OLDEST WAITING": since when runs wait there, and how many
// A run holds its number from before its start is stored until its end is: the put rides with the start, or is stored before a run that
// waits goes on; the end and the removal are one batch. It belongs to the run, so that the engine that takes the run over takes it too.
#ifndef CAIRN_SERVICE_SLOTS_H
#define CAIRN_SERVICE_SLOTS_H

#include "service/inside.h"

#define SLOT_SPACE STR("slot")
enum { SLOTS_MAX = 2 }; // of a run

// Where a run stands, and the limits above it. queue NULL: it has no limit of its own.
struct limits {
    struct queue_tenant *tenant;
    struct run_queue *queue;
    uint32_t of_queue, of_tenant; // 0 = none
};
struct shared_limit *slots_share(const struct limits *limits, bool of_tenant);
struct limits slots_limits(const struct queue_tenant *tenant, const struct run_queue *queue);
// The limits that hold for a run there; false: none does, or there is one engine.
bool slots_apply(const struct service *service, struct str tenant, struct str queue, struct limits *out);

// What the store says now of both.
enum code slots_look(struct service *service, const struct limits *limits, struct error *err) MUST_CHECK;
// A number of each limit that the run does not hold yet, asked for from now on. false: there is none, and the limits say so.
bool slots_pick(const struct limits *limits, struct run_slots *slots) MUST_CHECK;
void slots_beside(const struct limits *limits, struct run_slots *slots);               // it counts without one
void slots_settled(const struct limits *limits, struct run_slots *slots, bool stored); // what was asked for
// The notes of what a run holds: those that are asked for, or all. How many; 0: none, or no memory.
size_t slots_notes(const struct limits *limits, struct str run, const struct run_slots *slots, bool asked, bool remove,
                   struct arena *arena, struct note_put out[SLOTS_MAX]);
struct str slots_key(const struct limits *limits, bool of_tenant, struct arena *arena, const char *format, ...)
    PRINTF_LIKE(4, 5);

#endif
