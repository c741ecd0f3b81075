#include "contract/profile.h"

static const char *const names[] = {[PROVIDER_CAIRN] = "cairn",
                                    [PROVIDER_TEMPORAL] = "temporal",
                                    [PROVIDER_CONDUCTOR] = "conductor",
                                    [PROVIDER_MOCK] = "mock"};

const char *provider_name(enum provider provider)
{
    INVARIANT(provider >= PROVIDER_CAIRN && provider <= PROVIDER_MOCK);
    return names[provider];
}

enum provider provider_parse(struct str text)
{
    for (size_t i = PROVIDER_CAIRN; i < ARRAY_COUNT(names); i++)
        if (str_is(text, names[i])) return (enum provider)i;
    return 0;
}

const struct behaviour *behaviour_of(struct str profile)
{
    static const struct behaviour all[] = {
        {PROVIDER_CAIRN, true, false, false},
        {PROVIDER_TEMPORAL, false, true, true},
        {PROVIDER_CONDUCTOR, true, false, false},
        {PROVIDER_MOCK, true, false, false},
    };
    enum provider provider = provider_parse(profile);
    return &all[provider ? provider - PROVIDER_CAIRN : 0];
}
