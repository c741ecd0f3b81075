// Private to equiv/.
#ifndef CAIRN_EQUIV_INSIDE_H
#define CAIRN_EQUIV_INSIDE_H

#include "base/text.h"
#include "equiv/equiv.h"

// order.c: what must hold in any one log, by itself; sets `fault`.
void equiv_judge(struct equiv_log *log, struct arena *arena);

// plant.c: the script that this host is given.
const struct trial_script *equiv_planted(const char *host, const struct trial_script *script, struct arena *arena);

// ---- hosts
struct equiv_playing {
    const struct program *program;
    const struct trial_script *script;
    struct trial_options options; // of the case; the host adds where it is played
    struct arena *arena;
    struct equiv_log *log;
};

struct equiv_host {
    const struct equiv_host_row *row;
    struct equiv *equiv;
    struct str place;
    struct trial_world *world; // of the last case
    struct outside *outside;   // of hosts that are processes of their own
};

struct equiv {
    struct equiv_options options;
    struct arena arena;
    struct equiv_host *hosts;
    size_t count, capacity;
    struct equiv_host reference; // with faults: the engine undisturbed, which the others are held against
    uint64_t cases;
    char run[64]; // id of the run of this case
    struct str actor; // who sends all signals; empty: as the script says
};

struct equiv_host_row {
    struct equiv_host_kind kind;
    enum code (*open)(struct equiv_host *host, struct error *err); // before the first case; may be NULL
    enum code (*play)(struct equiv_host *host, struct equiv_playing *playing, struct error *err);
    void (*close)(struct equiv_host *host); // may be NULL
    const char *profile; // what its engine calls itself
};

#endif
