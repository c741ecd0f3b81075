#include "conductor/decide.h"

#include <stddef.h>

static bool mine_lives(enum mine mine)
{
    return mine == MINE_RUNNING || mine == MINE_PAUSED;
}

static bool his_lives(enum his his)
{
    return his == HIS_RUNNING || his == HIS_PAUSED;
}

// Both live, and one of them is paused. Who has changed since they agreed is who wants something; Cairn is right when both have.
static enum act decide_paused(const struct sight *now, const struct sight *was, const struct doubt *doubt)
{
    bool cairn_paused = now->mine == MINE_PAUSED;
    bool he_moved = was && was->his != now->his && his_lives(was->his) && !(doubt->sent >> now->his & 1);
    bool i_moved = !was || was->mine != now->mine;
    if (he_moved && !i_moved && !doubt->refused) return cairn_paused ? ASK_RESUME : ASK_PAUSE;
    return cairn_paused ? ACT_PAUSE : ACT_RESUME;
}

enum act decide(const struct sight *now, const struct sight *was, const struct doubt *doubt)
{
    if (!mine_lives(now->mine)) {
        if (!his_lives(now->his)) return ACT_FORGET;
        return doubt->again && !doubt->refused && now->mine != MINE_GONE ? ASK_RETRY_RUN : ACT_CLOSE;
    }
    if (now->his == HIS_TERMINATED && !doubt->ours && !doubt->recover && !doubt->refused) return ASK_CANCEL;
    if (!his_lives(now->his)) return ACT_START;
    if ((now->mine == MINE_PAUSED) == (now->his == HIS_PAUSED)) return ACT_NONE;
    return decide_paused(now, was, doubt);
}
