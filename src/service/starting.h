// Private to service/: a start under way (start.c), and what is done about the reference that it may come with (start_ref.c).
#ifndef CAIRN_SERVICE_STARTING_H
#define CAIRN_SERVICE_STARTING_H

#include "service/slots.h"

struct starting {
    struct start_call given;
    struct run_ids ids;
    struct digest key; // F3
    bool keyed;
    struct digest fingerprint;
    struct plan_trip trip; // of the reference
    struct limits limits; // that several engines share, and what it holds of them
    struct run_slots slots;
    bool alarm; // what came has another hash
    char run[129];
    void (*done)(struct call *call); // of a reference: call->done is ref_refused until its plan is compiled
};

// ---- start.c
// Reader thread, with the bytes of the document: compiles, and posts the start. The caller's rights were checked before.
bool start_compile(struct call *call, struct str text);
void start_key(struct starting *starting, struct str plan_id, struct str plan_version); // F3
// Engine thread.
bool start_made_before(struct call *call); // then it is answered
bool start_failed(struct call *call, const struct error *err);
struct start_request start_asked(const struct call *call);
bool start_choose(struct call *call, struct start_request *request); // the id of its run. False: no memory
// What a later request with the same id is answered by. False: no memory.
bool start_note(struct call *call, struct str run, struct note_put *out);
void start_names(struct call *call, struct str run); // the answer, also of a problem, says which run it is

// ---- start_ref.c
bool ref_fetch(struct call *call, struct store *store);               // reader thread; then start_compile
void ref_refused(struct call *call);                                  // call->done until it is compiled

#endif
