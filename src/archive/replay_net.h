// Private to archive/: what came out of the attempts of a playbook, as its log tells it. An outcome stands in the event of the attempt
// without its result, and the result in what follows from it, or beside the log; of a try that was followed by another one nowhere.
#ifndef CAIRN_ARCHIVE_REPLAY_NET_H
#define CAIRN_ARCHIVE_REPLAY_NET_H

#include "base/map.h"
#include "kernel/kernel.h"

struct net_answer {
    uint64_t first, last; // ordinals of its moments: from the end of the attempt to that of the task, or to the decision to try again
    struct json outcome;  // without its result, perhaps; type 0: the event has none
    struct digest outcome_blob;
    bool outcome_apart;
    struct json result; // type 0: none
    struct digest blob;
    bool has_blob;
    uint64_t blob_size;
    enum result_store store;
    struct str elsewhere;
    struct json artifacts;
    bool whole;   // the result is known, or there was none
    bool retried; // it was tried again: what the rules read of a result is not known
};

struct net_answers {
    struct net_answer *items; // in the order of their ordinals
    uint32_t count, next;
    size_t capacity;
    struct map open;   // of each visit and iteration the slot of
    uint32_t *slots;   // its last answer
    uint32_t slot_count;
    size_t slot_capacity;
    struct arena *kept;
};

void answers_init(struct net_answers *answers, struct arena *kept);
// Moments in their order, from 1. False: out of memory.
bool answers_note(struct net_answers *answers, const struct moment *moment, uint64_t ordinal) MUST_CHECK;
// That which begins with the moment; ordinals that are asked for rise. NULL: none.
const struct net_answer *answers_at(struct net_answers *answers, uint64_t ordinal);
// The outcome as it was given to the kernel, in `arena`. *gone: its bytes are not there any more.
enum code answer_outcome(const struct net_answer *answer, const struct kernel_env *env, struct arena *arena, struct json *out,
                         bool *gone, struct error *err) MUST_CHECK;
// Whether conditions of its rules read the result of the outcome, or all of it.
bool rules_read_result(const struct net_task *task);
// Whether the kernel decided in a playbook what stands in its log: the same visit, iteration and task, and the same value where values are
// decided.
bool same_in_net(const struct moment *decided, const struct moment *recorded);

#endif
