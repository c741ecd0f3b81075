// Kernel tests read as stories: a document, a few inputs, and the moments that follow, one line each.
//
//   struct story s;
//   story_open(&s, "{...plan...}");
//   story_start(&s);
//   story_done(&s, "fetch", "\"ok\"");
//   story_expect(&s, "[0] RUN_QUEUED\n[0] RUN_STARTED\n...");
//
// After every input the moments so far are decoded from their ledger form and folded into a fresh run, which must equal
// the live one (K1), and into a view, which must say the same of it; at the end every step is explained at every moment.
// Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_STORY_H
#define CAIRN_TEST_UNIT_SUPPORT_STORY_H

#include "engine/engine.h"
#include "harness/dump.h"
#include "harness/test.h"
#include "kernel/net_inside.h"
#include "unit/support/explained.h"

#include <stdlib.h>
#include <string.h>

#define STORY_EFFECTS_MAX 4096

struct story {
    struct program *program;
    struct run *run;
    struct run_holds holds;
    struct arena turn, memory;
    int64_t now;
    struct buf told;
    struct str *stored; // moments in ledger form
    size_t stored_count, stored_capacity;
    struct effect effects[STORY_EFFECTS_MAX]; // EXECUTE, TIMER, SUBRUN not yet answered
    size_t effect_count;
    struct effect last_decision;
    char decision_message[256];
    unsigned next_signal;
    struct json inputs;
};

static struct made_blob story_blobs[16]; // of the story that is open
static size_t story_blob_count;

UNUSED static enum code story_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                                   struct error *err)
{
    (void)context, (void)arena;
    for (size_t i = 0; i < story_blob_count; i++) {
        if (!digest_eq(&story_blobs[i].sha256, sha256)) continue;
        *out = story_blobs[i].bytes;
        return OK;
    }
    return error_set(err, E_NOT_FOUND, "no moment of the story has made this blob");
}
UNUSED static const struct kernel_env story_env = {.blob = story_blob};
UNUSED static const struct run_ids story_ids = {.tenant = {"default", 7},
                                                .project = {"default", 7},
                                                .environment = {"default", 7},
                                                .run = {"r1", 2},
                                                .plan_id = {"p", 1},
                                                .plan_version = {"1", 1}};

// `loader`: of documents that name others; NULL: they do not.
UNUSED static void story_open_with(struct story *s, const char *text, const struct program_loader *loader)
{
    memset(s, 0, sizeof(*s));
    story_blob_count = 0;
    arena_init(&s->turn, 4096, (size_t)64 << 20);
    arena_init(&s->memory, 4096, (size_t)256 << 20);
    buf_init(&s->told, (size_t)16 << 20);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &s->memory);
    struct error err = {0};
    enum code rc = program_load(str_from(text), STR("story"), loader, &diagnostics, &s->program, &err);
    if (rc && diagnostics.count > 0) {
        struct diagnostic *d = &diagnostics.items[0];
        test_fail(__FILE__, __LINE__, "%u:%u %.*s", d->line, d->column, STR_ARG(d->message));
    }
    CHECK_OK(rc, &err);
    s->run = run_new(s->program, &story_ids);
    CHECK(s->run);
    s->inputs = json_object();
}

UNUSED static void story_open(struct story *s, const char *text)
{
    story_open_with(s, text, NULL);
}

// Every step of the story, at every moment of it, can be explained.
UNUSED static void story_explain(struct story *s)
{
    struct explained x;
    explained_open(&x, s->program, &story_ids, &story_env);
    for (size_t i = 0; i < s->stored_count; i++) {
        struct moment m;
        struct error err = {0};
        arena_reset(&s->turn);
        CHECK_OK(contract_decode_ledger(s->stored[i], &s->turn, &m, &err), &err);
        explained_moment(&x, &m, i + 1);
    }
    explained_close(&x);
}

UNUSED static void story_close(struct story *s)
{
    if (!s->run->net) story_explain(s);
    run_free(s->run);
    holds_release(&s->holds);
    program_release(s->program);
    arena_release(&s->turn);
    arena_release(&s->memory);
    buf_release(&s->told);
}

// A fresh run with everything stored so far folded into it.
UNUSED static struct run *story_refold(struct story *s)
{
    struct run *run = run_new(s->program, &story_ids);
    CHECK(run);
    run->env = &story_env;
    for (size_t i = 0; i < s->stored_count; i++) {
        struct moment m;
        struct error err = {0};
        CHECK_OK(contract_decode_ledger(s->stored[i], &s->turn, &m, &err), &err);
        CHECK_OK(kernel_fold(run, &m, &err), &err);
    }
    return run;
}

UNUSED static void story_same_standing(struct standing a, struct standing b)
{
    CHECK_TEXT(b.substatus, a.substatus);
    CHECK_INT(b.need, a.need);
    CHECK_INT(b.goes_on, a.goes_on);
}

// Snapshots and lists of runs, which are made of different folds of one log, have one word for what a run waits for.
UNUSED static void story_check_view(struct story *s)
{
    struct run_view view;
    CHECK(view_init(&view, &s->turn, &story_ids) && view_plan(&view, s->program));
    for (size_t i = 0; i < s->stored_count; i++) {
        struct moment m;
        struct error err = {0};
        CHECK_OK(contract_decode_ledger(s->stored[i], &s->turn, &m, &err), &err);
        CHECK(view_fold(&view, &m, i + 1));
    }
    CHECK_INT(view.status, s->run->status);
    struct standing_in live = run_standing_in(s->run), seen = view_standing_in(&view), kept;
    struct run_summary summary;
    engine_summary(s->run, &summary);
    kept = standing_stored(summary.status, str_from(summary.substatus), summary.cause[0]);
    story_same_standing(standing_of(&live), standing_of(&seen));
    story_same_standing(standing_of(&live), standing_of(&kept));
    CHECK_INT(summary.goes_on, standing_of(&kept).goes_on);
}

UNUSED static void story_check_fold(struct story *s)
{
    struct run *again = story_refold(s);
    struct buf live, folded;
    buf_init(&live, (size_t)16 << 20);
    buf_init(&folded, (size_t)16 << 20);
    kernel_dump(s->run, &live);
    kernel_dump(again, &folded);
    CHECK_STR(buf_str(&live), buf_str(&folded)); // K1
    buf_release(&live);
    buf_release(&folded);
    run_free(again);
}

UNUSED static void story_tell(struct story *s, const struct moment *m)
{
    buf_printf(&s->told, "[%lld] %s", (long long)s->now, moment_name(m->kind));
    if (m->step.len > 0) buf_printf(&s->told, " %.*s", STR_ARG(m->step));
    if (m->visit > 1) buf_printf(&s->told, ":%u", m->visit);
    if (m->iteration > 0) buf_printf(&s->told, "[%u]", m->iteration);
    if (m->task.len > 0) buf_printf(&s->told, "/%.*s", STR_ARG(m->task));
    if (m->task_run > 1) buf_printf(&s->told, ":%u", m->task_run);
    if (moment_is_step(m->kind) && m->kind != MOMENT_STEP_SKIPPED)
        buf_printf(&s->told, " %u.%u", m->logical, m->engine);
    if (m->kind == MOMENT_RUN_PAUSED || m->kind == MOMENT_RUN_RESUMED) buf_printf(&s->told, " cycle %u", m->logical);
    if (m->signal_type.len > 0) buf_printf(&s->told, " %.*s", STR_ARG(m->signal_type));
    if (m->fault.code.len > 0) buf_printf(&s->told, " %.*s", STR_ARG(m->fault.code));
    if (m->kind == MOMENT_STEP_SKIPPED) buf_printf(&s->told, " %.*s", STR_ARG(m->reason));
    if (m->due_ms > 0) buf_printf(&s->told, " due %lld", (long long)m->due_ms);
    buf_byte(&s->told, '\n');
}

UNUSED static void story_step(struct story *s, struct input *input)
{
    arena_reset(&s->turn);
    input->now_ms = s->now;
    struct outcome out = {.turn = &s->turn};
    struct error err = {0};
    CHECK_OK(kernel_step(s->run, &s->holds, input, &story_env, &out, &err), &err);
    run_verify(s->run);
    for (size_t i = 0; i < out.blob_count; i++) {
        CHECK(story_blob_count < ARRAY_COUNT(story_blobs));
        story_blobs[story_blob_count] = out.blobs[i];
        story_blobs[story_blob_count].bytes = arena_copy(&s->memory, out.blobs[i].bytes);
        CHECK(story_blobs[story_blob_count++].bytes.ptr);
    }
    for (size_t i = 0; i < out.moment_count; i++) {
        story_tell(s, &out.moments[i]);
        struct str bytes;
        CHECK_OK(contract_encode_ledger(&out.moments[i], &s->memory, &bytes, &err), &err);
        struct str *grown = arena_grow(&s->memory, s->stored, s->stored_count, s->stored_count + 1, sizeof(struct str),
                                       &s->stored_capacity);
        CHECK(grown);
        s->stored = grown;
        s->stored[s->stored_count++] = bytes;
    }
    for (size_t i = 0; i < out.effect_count; i++) {
        const struct effect *e = &out.effects[i];
        if (e->kind == EFFECT_DECISION) {
            s->last_decision = *e;
            s->last_decision.signal = NULL;
        } else if (e->kind == EFFECT_EXECUTE || e->kind == EFFECT_TIMER || e->kind == EFFECT_SUBRUN ||
                   e->kind == EFFECT_CANCEL || e->kind == EFFECT_SUBRUN_CANCEL) {
            CHECK(s->effect_count < STORY_EFFECTS_MAX);
            s->effects[s->effect_count++] = *e;
        }
    }
    story_check_fold(s);
    story_check_view(s);
}

UNUSED static void story_start(struct story *s)
{
    struct start_facts facts = {.document_sha256 = {s->program->sha256_hex, SHA256_HEX},
                                .document_kind = str_from(document_kind_name(s->program->kind)),
                                .inputs = s->inputs,
                                .artifacts_dir = STR("/a"),
                                .trigger_source = STR("manual"),
                                .triggered_by = STR("test"),
                                .requires_approval = s->program->requires_approval};
    struct input input = {.kind = INPUT_START, .start = &facts};
    story_step(s, &input);
}

// Of a step its id, whatever iteration it is in; of a lane its path.
UNUSED static struct str story_name(struct story *s, uint32_t step)
{
    return s->run->net ? kernel_path(s->run, step, &s->turn) : s->program->steps[step].id;
}

UNUSED static struct effect story_take(struct story *s, enum effect_kind kind, const char *step)
{
    for (size_t i = 0; i < s->effect_count; i++) {
        if (s->effects[i].kind != kind || s->effects[i].step == PROGRAM_TOP) continue;
        if (!str_is(story_name(s, s->effects[i].step), step)) continue;
        struct effect found = s->effects[i];
        memmove(&s->effects[i], &s->effects[i + 1], (s->effect_count - i - 1) * sizeof(found));
        s->effect_count--;
        return found;
    }
    test_fail(__FILE__, __LINE__, "no effect %d of step %s is waiting", (int)kind, step);
}

UNUSED static bool story_waits(struct story *s, enum effect_kind kind, const char *step)
{
    for (size_t i = 0; i < s->effect_count; i++)
        if (s->effects[i].kind == kind && s->effects[i].step != PROGRAM_TOP &&
            str_is(story_name(s, s->effects[i].step), step))
            return true;
    return false;
}

UNUSED static void story_answer(struct story *s, const char *step, struct input *input)
{
    struct effect e = story_take(s, EFFECT_EXECUTE, step);
    input->kind = INPUT_RESULT;
    input->step = e.step;
    input->logical = e.logical;
    input->engine = e.engine;
    story_step(s, input);
}

UNUSED static void story_done(struct story *s, const char *step, const char *json)
{
    struct input input = {.ok = true, .value = json_null()};
    struct error err = {0};
    struct arena arena;
    arena_init(&arena, 1024, 1 << 20);
    if (json) CHECK_OK(json_parse(str_from(json), &json_limits_default, &arena, &input.value, &err), &err);
    story_answer(s, step, &input);
    arena_release(&arena);
}

UNUSED static void story_fail(struct story *s, const char *step, const char *code, bool retryable)
{
    struct input input = {.fault = {.code = str_from(code), .message = STR("no"), .retryable = retryable}};
    story_answer(s, step, &input);
}

UNUSED static void story_timer(struct story *s, const char *step)
{
    struct effect e = story_take(s, EFFECT_TIMER, step);
    if (e.due_ms > s->now) s->now = e.due_ms;
    struct input input = {.kind = e.timer == TIMER_LOOK ? INPUT_RECOVER : INPUT_TIMER,
                          .step = e.step,
                          .logical = e.logical,
                          .timer = e.timer,
                          .due_ms = e.due_ms};
    story_step(s, &input);
}

UNUSED static void story_signal_id(struct story *s, enum signal_type type, const char *step, const char *id)
{
    struct signal signal = {.type = type,
                            .id = str_from(id),
                            .step = str_from(step),
                            .actor = STR("ann"),
                            .role = STR("Admin"),
                            .payload = json_object()};
    struct input input = {
        .kind = INPUT_SIGNAL, .signal = &signal, .decision_id = STR("00000000-0000-4000-8000-000000000000")};
    story_step(s, &input);
}

UNUSED static void story_signal(struct story *s, enum signal_type type, const char *step)
{
    char id[UUID_SIZE];
    uint8_t bytes[16] = {(uint8_t)++s->next_signal};
    uuid_format(bytes, id);
    story_signal_id(s, type, step, id);
}

// The process dies: what is not stored is gone, nothing is in flight, timers are forgotten.
UNUSED static void story_crash_as(struct story *s, struct input input) // what the next driver begins with
{
    struct run *run = story_refold(s);
    run_free(s->run);
    holds_release(&s->holds);
    s->run = run;
    s->effect_count = 0;
    story_step(s, &input);
}

UNUSED static void story_crash(struct story *s)
{
    story_crash_as(s, (struct input){.kind = INPUT_RECOVER});
}

UNUSED static void story_expect(struct story *s, const char *text)
{
    CHECK_STR(buf_str(&s->told), str_from(text));
    buf_clear(&s->told);
}

UNUSED static size_t told_count(const struct story *s, const char *text)
{
    size_t found = 0;
    struct str told = buf_str(&s->told);
    for (size_t at = 0; at + strlen(text) <= told.len; at++) found += memcmp(told.ptr + at, text, strlen(text)) == 0;
    return found;
}

#endif
