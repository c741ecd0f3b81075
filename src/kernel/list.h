// Private to kernel/: lists of child runs.
#ifndef CAIRN_KERNEL_LIST_H
#define CAIRN_KERNEL_LIST_H

#include "kernel/container.h"

enum member_state { MEMBER_OPEN = 0 /* to come, or under way */, MEMBER_COMPLETED, MEMBER_FAILED };

// Of an attempt in flight. Written by the fold alone; lives in its own memory, which goes when the attempt ends.
struct run_list {
    struct run_list *next; // of the run's
    uint32_t step, logical;
    uint32_t most; // at a time
    bool all_success;
    bool taken_up; // recorded after the attempt had begun: an engine before may have started any of its members
    uint64_t size; // of what its children gave beside the log
    struct str as; // the input that has the item; empty: none
    struct digest blob; // of the items, when they were not in the moment
    bool has_blob;
    uint8_t *states; // enum member_state, by member
    struct container of;
    struct arena memory;
};

struct run_list *list_of(const struct run *run, uint32_t step); // NULL: it has none in flight

// The fold.
enum code list_fold(struct run *run, const struct moment *m, uint32_t step, bool *possible, struct error *err) MUST_CHECK;
void lists_begin(struct run *run);                // what may begin by now has begun
void list_drop(struct run *run, uint32_t step);   // harmless when there is none

// Decisions about the attempt in flight.
enum code list_start(struct decide *d, uint32_t lane) MUST_CHECK;    // it has just begun
enum code list_go_on(struct decide *d, uint32_t lane) MUST_CHECK;   // orders what has begun and nobody has, ends the attempt after the last
enum code list_look(struct decide *d, uint32_t lane, uint32_t member) MUST_CHECK; // the same for one member
enum code list_result(struct decide *d, uint32_t lane) MUST_CHECK;  // of a member
// Asks the members that have not ended to end. `waits`: the attempt ends when they have; else it is over.
enum code list_stop(struct decide *d, uint32_t lane, bool waits) MUST_CHECK;
// What an attempt gives whose list is empty or cannot be read. E_NOMEM, E_IO.
enum code list_instant(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                       struct instant *out, struct error *err) MUST_CHECK;

#endif
