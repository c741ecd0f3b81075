// Providers (C-07): the names by which a plan asks for an engine. Temporal and Conductor are behaviour profiles of the one
// native engine, mock is the profile of tests, cairn is the engine as it is.
#ifndef CAIRN_CONTRACT_PROFILE_H
#define CAIRN_CONTRACT_PROFILE_H

#include "contract/contract.h"

enum provider { PROVIDER_CAIRN = 1, PROVIDER_TEMPORAL, PROVIDER_CONDUCTOR, PROVIDER_MOCK };
const char *provider_name(enum provider provider); // "cairn"
enum provider provider_parse(struct str text);     // 0 when it is none; "any" and "auto" are none

// How a run behaves (C-17, C-44).
struct behaviour {
    enum provider provider;
    bool drains;     // a pause is DRAINING while steps are in flight, for at most the drain timeout
    bool interrupts; // with cancelOnPause a pause stops what is in flight; it runs again after RESUME
};
const struct behaviour *behaviour_of(struct str profile); // of start_facts.profile; cairn's own when it is none

#endif
