// Private to service/: a request about a schedule on its way (schedule_calls.c, schedule_backfills.c).
#ifndef CAIRN_SERVICE_SCHEDULE_ASKING_H
#define CAIRN_SERVICE_SCHEDULE_ASKING_H

#include "service/schedules.h"

struct asking {
    struct schedule_call given;
    enum operation operation;
    struct schedule_note note;
    bool there;
    struct str key, sha256;
    struct note_put puts[3];
    size_t put_count;
    int status;         // of the answer after a change: 204, or the schedule as it is then
    struct json answer; // instead of the schedule; type 0: that
};

// NULL: it is answered.
struct asking *asking_begin(struct call *call, const struct schedule_call *given, enum operation operation);
// Reads the schedule; asks if the caller may. One that is not there, and one that the caller may not see, are the same. Reader thread;
// false: it is answered.
bool asking_find(struct call *call, struct store *store);
bool asking_put(struct call *call, struct str space, struct str key, const struct json *value,
                uint64_t expect);         // value NULL: it goes; false: no memory
bool asking_change(struct call *call);    // engine thread: the puts, and its record in the audit
bool asking_items(struct call *call, struct json items);
struct json asking_fire(struct call *call, const struct zone *zone, const struct fire *fire);

#endif
