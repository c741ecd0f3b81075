// An output that is longer than a result may be, as a file among the artifacts of its run. Steps write into that directory as well: what
// they left under the name gives way, and no link is followed (reach/reach.h).
#include "tool/internal.h"

#include <unistd.h>

static void begin(struct spill *spill)
{
    int root;
    spill->begun = true;
    enum code rc = spill->dir.len ? os_make_dirs(spill->dir.ptr, &spill->why)
                                  : error_set(&spill->why, E_NOT_FOUND, "the run has no directory for artifacts");
    if (!rc) rc = reach_root(spill->dir.ptr, &root, &spill->why);
    if (rc) return;
    rc = reach_begin(root, spill->name, &spill->draft, &spill->why);
    close(root);
    // Later steps of the run read it, as the user that they are.
    if (!rc && spill->uid) (void)!fchown(spill->draft.fd, spill->uid, spill->gid);
}

static void add(struct spill *spill, struct str text)
{
    if (spill->draft.fd >= 0 && reach_add(&spill->draft, text, &spill->why)) reach_drop(&spill->draft);
}

void spill_all(struct spill *spill, struct str text)
{
    if (!spill || spill->begun) return;
    begin(spill);
    add(spill, text);
}

void spill_take(struct spill *spill, struct str kept, struct str text, size_t max)
{
    if (!spill || (!spill->begun && kept.len + text.len <= max)) return;
    spill_all(spill, kept);
    add(spill, text);
}

bool spill_keep(struct spill *spill)
{
    return spill->draft.fd >= 0 && reach_keep(&spill->draft, &spill->why) == OK;
}
