// Events from outside (ADR 0047, docs/format/incoming.md): kept as notes until a step takes them, once each.
//
//   KEPT       stored, and in the index of those that nobody has taken (incoming.open)
//   GIVEN      promised to one run (incoming.given) before the signal DELIVER_EVENT is sent to it
//   DELIVERED  that run has accepted it; kept so that the same id is known again
//
// A promise that was cut short by a crash is found in incoming.given: the log of the run says what became of it.
#ifndef CAIRN_SERVICE_INCOMING_H
#define CAIRN_SERVICE_INCOMING_H

#include "service/inside.h"

#define INCOMING_SPACE STR("incoming")
#define INCOMING_OPEN_SPACE STR("incoming.open")
#define INCOMING_GIVEN_SPACE STR("incoming.given")
#define INCOMING_DATA_MAX ((size_t)48 << 10) // bytes of data: it becomes part of an event of the log
enum { INCOMING_ID_MAX = 128 };

struct incoming_event {
    struct str tenant, project, environment;
    struct str id, name, correlation, source, by;
    struct str slot; // its key within the tenant: incoming_slot, or the id alone (before ids were of places)
    struct json data; // type 0 = none
    struct str state, run, step;
    int64_t received_ms, changed_ms;
    uint32_t tries; // runs that it was promised to
};

// Ids are of a project and environment, so that no sender takes an id away from one elsewhere: HASH/ID, and in the default place the id
// alone. Ids have no slash.
struct str incoming_slot(struct arena *arena, struct str project, struct str environment, struct str id);
struct str incoming_key(struct arena *arena, struct str tenant, struct str slot);
// What waits for such an event finds it by this: TENANT|HASH|, and in the index the time and the slot behind it.
struct str incoming_prefix(struct arena *arena, const struct incoming_event *event);
struct str incoming_open_key(struct arena *arena, const struct incoming_event *event);
struct json incoming_json(struct arena *arena, const struct incoming_event *event);
// Texts in `arena`. E_CORRUPT, E_NOMEM.
enum code incoming_read(const struct note *note, struct arena *arena, struct incoming_event *out,
                        struct error *err) MUST_CHECK;
// A note that says so, in `arena`; its value without bytes: out of memory.
struct note_put incoming_note(struct arena *arena, const struct incoming_event *event, uint64_t expect);

#endif
