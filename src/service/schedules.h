// Private to service/: schedules as they are kept, and how their times become runs (ADR 0041).
//
// Notes, all under TENANT|NAME:
//   schedule         what is declared, by whom, whether it is paused, and `since`: no time up to then is meant
//   schedule.plan    the document and its parts
//   schedule.state   up to which time all is decided, and which times wait; put with the version that was read
//   schedule.run     ...|RUN: a run of it that has not been seen to end; of a backfill TENANT|NAME#ID|RUN
//   tick             ...|TIME|KIND: what became of a time
//   backfill         ...|ID: the times of a range, and how they are run;  backfill.state: how many have begun. When all have, the times go
//
// A fire is one batch: the run, the state, the tick. Its run has an id that follows from the name and the time. So no engine, and no
// engine after a crash, starts a time twice or loses one: the state moves with the run or not at all.
#ifndef CAIRN_SERVICE_SCHEDULES_H
#define CAIRN_SERVICE_SCHEDULES_H

#include "schedule/schedule.h"
#include "service/inside.h"

#define SCHEDULE_SPACE STR("schedule")
#define SCHEDULE_PLAN_SPACE STR("schedule.plan")
#define SCHEDULE_STATE_SPACE STR("schedule.state")
#define SCHEDULE_RUN_SPACE STR("schedule.run")
#define TICK_SPACE STR("tick")
#define BACKFILL_SPACE STR("backfill")
#define BACKFILL_STATE_SPACE STR("backfill.state")
enum { TICKS_KEPT = 500, BACKFILL_TIMES_MAX = 10000, SCHEDULE_NOTE_MAX = 1 << 20 };
// What a tenant may have: schedules, and backfills that have not begun all of their times.
enum { SCHEDULES_MAX = 1000, SCHEDULES_BYTES = 4 << 20, BACKFILLS_MAX = 100, BACKFILLS_TIMES = 100000 };

// What a note of the space "schedule" says. Texts and zone live in the arena that it was read with.
struct schedule_note {
    struct str tenant, name, project, environment, sha256;
    struct schedule_spec spec;
    bool paused;
    int64_t since_ms;
    uint64_t version;
    struct json value;
};

struct schedule_row {
    struct schedule_row *next;
    struct arena arena;
    struct schedule_note note;
    struct schedule_state state;
    uint64_t state_version;
    bool known;   // state is what the store has
    bool busy;    // a decision is on its way to the store
    bool listed;  // in the last reading
    int64_t look_ms;      // wall clock: nothing is due before
    int64_t retry_ms;     // monotonic: not before
    int64_t cancelled_ms; // the time whose predecessors were cancelled
    uint32_t ticks;       // since the last pruning
};

struct backfill_row {
    struct backfill_row *next;
    struct arena arena;
    struct str tenant, name, id;
    const int64_t *times;
    uint32_t count, parallel, begun;
    uint64_t state_version;
    bool known, busy, listed;
    int64_t retry_ms; // monotonic
};

// schedule_notes.c: any thread, with a store handle of its own
// E_NOT_FOUND: its zone is not on this machine.
enum code schedule_zone(struct str name, struct arena *arena, const struct zone **out, struct error *err) MUST_CHECK;
enum code schedule_note_read(const struct note *note, struct arena *arena, struct schedule_note *out,
                             struct error *err) MUST_CHECK;
enum code schedule_state_read(struct store *store, struct str tenant, struct str name, struct arena *arena,
                              struct schedule_state *out, uint64_t *version, struct error *err) MUST_CHECK;
struct json schedule_state_json(struct arena *arena, const struct schedule_state *state);
struct str schedule_key(struct arena *arena, struct str tenant, struct str name, const char *format, ...)
    PRINTF_LIKE(4, 5); // TENANT|NAME and what is formatted; ptr NULL: no memory
// "NAME:20260329T003000Z", of a backfill "bf-ID:NAME:20260329T003000Z".
struct str schedule_run_id(struct arena *arena, struct str name, struct str backfill, int64_t at_ms);

struct tick_fact {
    const char *kind, *outcome; // "fire", "trigger", "backfill"; "STARTED", "QUEUED", "SKIPPED", "FAILED"
    const char *reason;         // NULL: none
    struct str run, detail;
    int64_t at_ms, last_ms;
    uint32_t count;
    int64_t decided_ms;
};
struct json tick_json(struct arena *arena, const struct tick_fact *fact);
struct note_put tick_note(struct arena *arena, struct str tenant, struct str name, const struct tick_fact *fact,
                          uint64_t expect); // value.ptr or key.ptr NULL: no memory

// What a start needs of the schedule, on a reader thread: its document and inputs are read, then it is started.
struct firing {
    struct schedule_note note; // in the arena of the call
    struct str run, kind, request_id, triggered_by, backfill;
    int64_t at_ms;
    const struct json *inputs; // over those of the schedule; NULL: none
    struct tick tick;
    struct note_put notes[START_NOTES_MAX];
    size_t note_count;
};
bool firing_start(struct call *call, struct store *store);                         // call->context is the firing
bool firing_notes(struct call *call, struct firing *firing, uint64_t tick_expect); // the run and its tick

// backfills.c, engine thread
enum code backfills_reload(struct service *service, struct error *err) MUST_CHECK;
void backfills_tick(struct service *service, struct moment_in_time now);
void backfills_fired(struct service *service, struct call *call);
void backfills_release(struct service *service);

// schedules.c, engine thread
const struct schedule_row *schedules_find(struct service *service, struct str tenant, struct str name);
// How many runs under that key (schedule.run) have not ended; those that have leave it.
enum code schedules_active(struct service *service, struct str key, struct arena *arena, struct str *first, size_t *out,
                           struct error *err) MUST_CHECK;
struct call *schedules_call(struct service *service, const struct schedule_note *note, struct firing **out);
void schedules_start(struct call *call); // its answer comes back to the engine thread

#endif
