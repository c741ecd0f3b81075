// In which state a run is, for readers, and whom it waits for. One answer for the kernel, for views of a log and for summaries:
// each fills in what it knows, and standing_of says what that means.
#ifndef CAIRN_CONTRACT_STANDING_H
#define CAIRN_CONTRACT_STANDING_H

#include "contract/contract.h"

#define STANDING_IMPORTED "IMPORTED" // an unfinished run that came from another store: nobody goes on with it unless asked to

struct standing_in {
    enum run_status status;
    bool requires_approval; // of its start
    bool cancelling;
    bool drains;     // a pause waits for what is in flight, and its patience is not over
    bool driven;     // a process has it
    bool recovering; // that process has just taken it over
    bool rotating;   // its segment is full, and the next has not begun
    bool imported;
    uint32_t busy; // attempts and child runs in flight: no approvals, no waits for events, no loops around others
    uint32_t gates, events, delayed, retrying, held; // `retrying` are among `delayed`
};

enum need {
    NEED_NOTHING = 0, // it goes on (also: when its queue has a place for it), or it has ended
    NEED_PERSON,      // paused, held, or waiting for an answer
    NEED_OWNER,       // a process that drives it
};

struct standing {
    const char *substatus; // RETRYING, DRAINING, CONTINUE_AS_NEW, WAITING_APPROVAL, CANCELLING, RECOVERING, IMPORTED or ""
    enum need need;
    bool goes_on; // without a person: it only takes time, and a process that drives it
};

struct standing standing_of(const struct standing_in *in);
// What a summary says, read back. `cause`: it has one. A failure that is tried again without a person has none; one that is held has.
struct standing_in standing_stored(enum run_status status, struct str substatus, bool cause);

#endif
