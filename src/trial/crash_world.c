// One world that dies at a point, and the undisturbed one that it is compared with.
#include "trial/crash_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// ---- the undisturbed world

struct calm_hooks {
    struct crash_calm *calm;
    struct arena *arena;
};

static bool note_point(void *context, struct stage *stage, enum boundary boundary, struct str step, struct str label)
{
    (void)stage;
    struct calm_hooks *hooks = context;
    struct crash_calm *calm = hooks->calm;
    if (!ARENA_ROOM(hooks->arena, calm->points, calm->point_count, &calm->point_capacity)) return false;
    calm->points[calm->point_count++] = (struct crash_point){.boundary = boundary, .step = step, .label = label};
    return false;
}

// What a batch was about is known when it is over.
static void note_batch(void *context, struct str step, struct str label)
{
    struct calm_hooks *hooks = context;
    struct crash_calm *calm = hooks->calm;
    struct str kept = arena_copy(hooks->arena, label);
    for (; calm->labelled < calm->point_count; calm->labelled++) {
        struct crash_point *point = &calm->points[calm->labelled];
        if (point->label.len > 0) continue;
        point->label = kept;
        point->step = step;
    }
}

static struct trial_options options_of(const struct crash_options *options, const char *dir, struct arena *arena)
{
    struct trial_options out = {.contract = options->contract,
                                .program = options->program,
                                .script = options->script,
                                .scratch = dir ? dir : options->scratch};
    if (dir) out.work_dir = trial_format(arena, "%s/work", dir).ptr;
    return out;
}

enum code crash_calm(const struct crash_options *options, struct trial_result *result, struct crash_calm *out,
                     struct error *err)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    if (!stage) return error_nomem(err);
    struct calm_hooks hooks = {.calm = out, .arena = result->arena};
    const char *dir = options->sandbox ? sandbox_enter(options, result->arena) : NULL;
    struct trial_options play = options_of(options, dir, result->arena);
    stage->on_disk = true;
    stage->sandbox = options->sandbox;
    stage->hooks = (struct stage_hooks){.context = &hooks, .point = note_point, .batch = note_batch};
    enum code rc = stage_open(stage, &play, result);
    if (rc) *err = stage->err;
    if (!rc) rc = stage_play(stage, err);
    if (!rc && stage->broken) rc = error_set(err, E_INVALID, "undisturbed, the run goes wrong: %s", stage->message);
    out->effects = stage->effects;
    out->effect_count = stage->effect_count;
    stage_close(stage);
    if (dir) out->left = sandbox_leave(dir, result->arena);
    free(stage);
    return rc;
}

// ---- a world that dies

struct world_hooks {
    struct crash_kill kill;
    uint32_t passed, later; // points of the first life, and of those after the first restart
    const struct crash_calm *calm;
};

static bool maybe_die(void *context, struct stage *stage, enum boundary boundary, struct str step, struct str label)
{
    (void)step;
    struct world_hooks *hooks = context;
    uint32_t number = stage->lives == 0 ? ++hooks->passed : ++hooks->later;
    bool die = stage->lives == 0 ? number == hooks->kill.first : stage->lives == 1 && number == hooks->kill.second;
    if (!die) return false;
    stage->cut = boundary;
    if (stage->lives == 0 && number <= hooks->calm->point_count) label = hooks->calm->points[number - 1].label;
    stage_say(stage, "----- killed %s %.*s -----", boundary_words(boundary),
              STR_ARG(label.len ? label : STR("the batch under way")));
    return true;
}

static void pass_line(void *context, const char *text)
{
    const struct crash_kill *kill = &((struct world_hooks *)context)->kill;
    kill->line(kill->context, text);
}

static void blame(struct crash_verdict *out, const char *rule, const char *format, ...) PRINTF_LIKE(3, 4);

static void blame(struct crash_verdict *out, const char *rule, const char *format, ...)
{
    if (out->failed) return;
    out->failed = true;
    snprintf(out->rule, sizeof(out->rule), "%s", rule);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->message, sizeof(out->message), format, arguments);
    va_end(arguments);
}

static void compare(const struct story *calm, const struct story *now, struct crash_verdict *out)
{
    struct story_parting parting;
    if (!story_same_end(calm, now, &parting)) blame(out, parting.rule, "%s", parting.message);
}

static void verify(struct stage *stage, struct crash_verdict *out)
{
    struct verify_report report = {0};
    struct error err = {0};
    if (store_verify(stage->store, STR(""), STR(""), stage->arena, &report, &err))
        blame(out, "LOG", "the log cannot be verified: %s", err.message);
    else if (report.fault_count)
        blame(out, "LOG", "event %llu of %.*s: %.*s", (unsigned long long)report.faults[0].seq,
              STR_ARG(report.faults[0].run), STR_ARG(report.faults[0].what));
}

static void count_twice(const struct stage *stage, const struct crash_calm *calm, struct arena *arena,
                        struct crash_verdict *out)
{
    out->twice = ARENA_ARRAY(arena, calm->effect_count + 1, uint32_t);
    out->times = ARENA_ARRAY(arena, calm->effect_count + 1, uint32_t);
    if (!out->twice || !out->times) return;
    for (size_t i = 0; i < stage->effect_count; i++) {
        const struct effect_seen *effect = &stage->effects[i];
        if (effect->starts < 2) continue;
        for (uint32_t k = 0; k < calm->effect_count; k++) {
            if (calm->effects[k].logical != effect->logical || !str_eq(calm->effects[k].path, effect->path)) continue;
            out->twice[out->twice_count] = k;
            out->times[out->twice_count++] = effect->starts;
        }
    }
}

void crash_play(const struct crash_options *options, const struct crash_calm *calm, const struct trial_result *story,
                const struct crash_kill *kill, struct arena *arena, struct crash_verdict *out)
{
    *out = (struct crash_verdict){0};
    struct trial_result result = {.arena = arena, .story = {.arena = arena}};
    struct world_hooks hooks = {.kill = *kill, .calm = calm};
    struct error err = {0};
    struct stage *stage = calloc(1, sizeof(*stage));
    if (!stage) {
        blame(out, "ABORT", "out of memory");
        return;
    }
    const char *dir = options->sandbox ? sandbox_enter(options, arena) : NULL;
    struct trial_options play = options_of(options, dir, arena);
    stage->on_disk = true;
    stage->sandbox = options->sandbox;
    stage->hooks = (struct stage_hooks){.context = &hooks, .point = maybe_die, .line = kill->line ? pass_line : NULL};
    enum code rc = stage_open(stage, &play, &result);
    if (rc) err = stage->err;
    if (!rc) rc = stage_play(stage, &err);
    if (stage->broken)
        blame(out, stage->broken, "%s", stage->message);
    else if (rc)
        blame(out, "STUCK", "%s: %s", code_name(rc), err.message);
    else if (stage->lives == 0)
        blame(out, "ABORT", "the world has no point %u", kill->first);
    else
        compare(&story->story, &result.story, out);
    if (!rc && !stage->broken && stage->store) verify(stage, out);
    count_twice(stage, calm, arena, out);
    out->later_points = hooks.later;
    stage_close(stage);
    if (dir) out->left = sandbox_difference(calm->left, sandbox_leave(dir, arena), arena);
    free(stage);
}
