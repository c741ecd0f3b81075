// What to do about a run whose two sides differ: Cairn, which has the run, and the workflow `cairn_run` that shows it. Pure.
#ifndef CAIRN_CONDUCTOR_DECIDE_H
#define CAIRN_CONDUCTOR_DECIDE_H

#include <stdbool.h>

enum mine { MINE_GONE, MINE_RUNNING, MINE_PAUSED, MINE_COMPLETED, MINE_FAILED, MINE_CANCELLED };
enum his { HIS_NONE, HIS_RUNNING, HIS_PAUSED, HIS_COMPLETED, HIS_FAILED, HIS_TERMINATED };

struct sight {
    enum mine mine;
    enum his his;
};

struct doubt {    // what else is known about the workflow
    bool ours;    // it was ended by a host, not by a person
    bool again;   // it had ended and runs once more: a person's retry, rerun or restart
    bool refused; // the signal that its state asked for was refused
    bool recover; // a terminated one is started again
    unsigned sent; // 1 << what hosts asked it to be since both agreed: that it is so is nobody's wish
};

enum act {
    ACT_NONE,
    ACT_START,  // a new cairn_run
    ACT_PAUSE,  // there
    ACT_RESUME, // there
    ACT_CLOSE,  // there, as Cairn says
    ACT_FORGET, // both have ended
    ASK_PAUSE,  // in Cairn
    ASK_RESUME,
    ASK_CANCEL,
    ASK_RETRY_RUN
};

// `was`: what they were when they last agreed; NULL: not known, and Cairn is right.
enum act decide(const struct sight *now, const struct sight *was, const struct doubt *doubt);

#endif
