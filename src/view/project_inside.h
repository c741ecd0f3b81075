// Private to view/: snapshots while they are being made, and what is noticed while events are applied.
#ifndef CAIRN_VIEW_PROJECT_INSIDE_H
#define CAIRN_VIEW_PROJECT_INSIDE_H

#include "view/internal.h"
#include "view/project.h"

#include <stdatomic.h>

struct snapshot {
    struct arena arena; // holds this struct, too
    atomic_uint keepers;
    struct run_view view;
    struct digest hash;
};

// Drafts: changed by their maker only, until they are sealed and handed out. NULL: out of memory.
struct snapshot *draft_new(const struct run_ids *ids, const struct program *program) MUST_CHECK;
struct snapshot *draft_of(const struct snapshot *snapshot) MUST_CHECK;
bool draft_seal(struct snapshot *draft) MUST_CHECK; // the hash

// What one event did. The fold itself flags a view for good; this tells which event did it.
struct applied {
    enum run_status prior;
    bool refused; // the state machine does not allow it (C-15)
    bool early;   // its cause is not in the log before it (C-56)
};
bool draft_apply(struct snapshot *draft, const struct project_event *event, struct applied *out) MUST_CHECK;

#endif
