// Tests of the fold of views: one run, told moment by moment. Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_VIEW_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_VIEW_KIT_H

#include "unit/contract_moments.h"
#include "unit/support/program_ids.h"

#include "base/error.h"
#include "view/view.h"

UNUSED static struct arena arena;
UNUSED static struct run_view view;
UNUSED static uint64_t next_seq;

UNUSED static void begin(void)
{
    arena_release(&arena);
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK(view_init(&view, &arena, &test_ids));
    next_seq = 1;
}

UNUSED static void tell_as(struct moment moment, uint64_t seq)
{
    moment.logical = moment.logical ? moment.logical : 1;
    moment.engine = moment.engine ? moment.engine : 1;
    if (!moment.at_ms) moment.at_ms = 1770829200000 + (int64_t)seq * 1000;
    CHECK(view_fold(&view, &moment, seq));
}

// What ends without another word was worked on from its start.
UNUSED static void tell(struct moment moment)
{
    if (moment.duration_ms == 0) moment.duration_ms = INT32_MAX;
    tell_as(moment, next_seq++);
}

UNUSED static void tell_kind(enum moment_kind kind)
{
    tell((struct moment){.kind = kind});
}

UNUSED static void tell_step(enum moment_kind kind, const char *step, uint32_t logical)
{
    struct moment moment = {.kind = kind, .step = str_from(step), .logical = logical};
    if (kind == MOMENT_STEP_FAILED || kind == MOMENT_ATTEMPT_FAILED)
        moment.fault = (struct fault){.code = STR("TIMEOUT"), .message = STR("too slow"), .retryable = true};
    tell(moment);
}

UNUSED static void started(void)
{
    begin();
    tell_kind(MOMENT_RUN_STARTED);
}

UNUSED static const struct step_view *step(const char *id)
{
    const struct step_view *found = view_step(&view, str_from(id));
    CHECK(found);
    return found;
}

UNUSED static void check_status(enum run_status status)
{
    CHECK_TEXT(run_status_name(view.status), run_status_name(status));
    CHECK(!view.inconsistent);
}

UNUSED static void check_step(const char *id, enum step_status status)
{
    CHECK_TEXT(step_status_name(step(id)->status), step_status_name(status));
    CHECK(!view.inconsistent);
}

// What came last was refused: the view is flagged and its hash is the old one.
UNUSED static struct digest hash_now(void)
{
    struct digest hash;
    CHECK(view_hash(&view, &arena, &hash));
    return hash;
}

UNUSED static void check_ignored(struct moment moment)
{
    struct digest before = hash_now();
    size_t steps = view.step_count;
    CHECK(!view.inconsistent);
    tell(moment);
    struct digest after = hash_now();
    CHECK(view.inconsistent);
    CHECK(digest_eq(&before, &after));
    CHECK_INT(view.step_count, steps);
    CHECK_INT(view.last_seq, next_seq - 1);
}

UNUSED static struct program_step test_steps[] = {
    {.id = LITERAL("load"), .kind = STEP_SHELL, .on_failure = ON_FAILURE_HOLD, .scope = PROGRAM_TOP},
    {.id = LITERAL("gate"), .kind = STEP_APPROVAL, .on_failure = ON_FAILURE_FAIL_RUN, .scope = PROGRAM_TOP},
    {.id = LITERAL("poll"), .kind = STEP_LOOP, .on_failure = ON_FAILURE_FAIL_RUN, .scope = PROGRAM_TOP},
    {.id = LITERAL("ask"), .kind = STEP_APPROVAL, .on_failure = ON_FAILURE_HOLD, .scope = 2},
};

UNUSED static struct program test_program = {.steps = test_steps, .step_count = 4, .top_count = 3};

#endif
