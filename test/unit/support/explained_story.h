// A story of support/story.h, explained.
#ifndef CAIRN_TEST_EXPLAINED_STORY_H
#define CAIRN_TEST_EXPLAINED_STORY_H

#include "unit/support/explained.h"
#include "unit/support/story.h"

// The answers after the first moments of a story.
UNUSED static struct explained explained_story(struct story *s, size_t moments)
{
    struct explained x;
    explained_open(&x, s->program, &story_ids, &story_env);
    for (size_t i = 0; i < s->stored_count && i < moments; i++) {
        struct moment m;
        struct error err = {0};
        CHECK_OK(contract_decode_ledger(s->stored[i], &x.arena, &m, &err), &err);
        CHECK_OK(explain_fold(x.explain, &m, i + 1, &err), &err);
    }
    return x;
}

#endif
