// Differences on purpose, in builds for tests only: $CAIRN_EQUIV_PLANT=HOST:KIND makes one host go another way than the script says,
// so that tests can see that it is found there.
#include "equiv/inside.h"

#ifdef CAIRN_FAULTS

#include <stdlib.h>
#include <string.h>

enum { LATER_MS = 50 };

static bool copy_mocks(struct trial_script *script, struct arena *arena)
{
    struct trial_mock *mocks = ARENA_ARRAY(arena, script->mock_count + 1, struct trial_mock);
    if (!mocks) return false;
    if (script->mock_count) memcpy(mocks, script->mocks, script->mock_count * sizeof(*mocks));
    script->mocks = mocks;
    return true;
}

const struct trial_script *equiv_planted(const char *host, const struct trial_script *script, struct arena *arena)
{
    const char *plant = getenv("CAIRN_EQUIV_PLANT");
    size_t len = strlen(host);
    if (!plant || strncmp(plant, host, len) != 0 || plant[len] != ':') return script;
    const char *kind = plant + len + 1;
    struct trial_script *changed = ARENA_NEW(arena, struct trial_script);
    if (!changed) return script;
    *changed = *script;
    if (!copy_mocks(changed, arena)) return script;
    if (strcmp(kind, "signal") == 0 && changed->signal_count) changed->signal_count--;
    if (strcmp(kind, "answer") == 0)
        for (size_t i = 0; i < changed->gate_count; i++) changed->gates[i].yes = !changed->gates[i].yes;
    for (size_t i = 0; i < changed->mock_count; i++) {
        struct trial_mock *mock = &changed->mocks[i];
        if (strcmp(kind, "output") == 0 && !mock->fails) mock->output = STR("\"planted\"");
        if (strcmp(kind, "retry") == 0 && mock->fails) mock->fault.retryable = false;
        if (strcmp(kind, "code") == 0 && mock->fails) mock->fault.code = STR("PLANTED");
        if (strcmp(kind, "time") == 0) mock->takes_ms += LATER_MS;
    }
    return changed;
}

#else

const struct trial_script *equiv_planted(const char *host, const struct trial_script *script, struct arena *arena)
{
    (void)host, (void)arena;
    return script;
}

#endif
