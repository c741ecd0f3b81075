// What must hold in any log by itself: the orders that the contract promises.
#include "equiv/inside.h"

#include "program/program.h"

enum { WORD_MAX = 400 };

static bool begins(enum moment_kind kind)
{
    return kind == MOMENT_STEP_STARTED || kind == MOMENT_STEP_SKIPPED;
}

static bool ends(enum moment_kind kind)
{
    return kind == MOMENT_STEP_COMPLETED || kind == MOMENT_STEP_FAILED || kind == MOMENT_STEP_SKIPPED;
}

static struct str sibling(struct arena *arena, struct str path, struct str id)
{
    size_t dot = path.len;
    while (dot > 0 && !(path.ptr[dot - 1] == '.' && dot > 1 && path.ptr[dot - 2] == ']')) dot--;
    return arena_format(arena, "%.*s%.*s", (int)dot, path.ptr, STR_ARG(id));
}

// The steps of a plan or node workflow begin when all that they depend on has ended; nothing begins while the run is paused, before it
// has started or after its end.
struct judging {
    struct equiv_log *log;
    struct arena *arena;
    const struct story *story;
    struct map ended; // "run/path" of steps that have ended
    uint32_t run;
    bool started, paused, over;
    bool nomem; // nothing can be said any more
};

static void blame(struct judging *j, const struct story_event *event, const char *what)
{
    if (j->log->fault.len || j->nomem) return;
    const struct story_run *run = &j->story->runs[event->run];
    const char *word = moment_word(event->moment.kind, run->vocabulary);
    j->log->fault = arena_format(j->arena, "%s %.*s%.*s%s%llu): %s", word ? word : moment_name(event->moment.kind), STR_ARG(run->prefix),
                                 STR_ARG(event->moment.step), event->seq ? " (event " : " (ledger ",
                                 (unsigned long long)event->seq, what);
}

static struct str name_of(struct judging *j, uint32_t run, struct str path)
{
    return arena_format(j->arena, "%u/%.*s", run, STR_ARG(path));
}

static const struct program_step *step_of(const struct program *program, struct str path)
{
    uint32_t scope = PROGRAM_TOP, index = PROGRAM_TOP;
    while (path.len > 0) {
        size_t bracket = str_find(path, '[', 0), close = str_find(path, ']', 0);
        struct str id = str_slice(path, 0, bracket);
        index = program_find(program, scope, id);
        if (index == PROGRAM_TOP) return NULL;
        path = close + 2 <= path.len ? str_slice(path, close + 2, path.len) : (struct str){0};
        scope = index;
    }
    return index == PROGRAM_TOP ? NULL : &program->steps[index];
}

static void judge_begin(struct judging *j, const struct story_event *event)
{
    const struct moment *m = &event->moment;
    const struct program *program = j->story->runs[event->run].program;
    if (!j->started) blame(j, event, "before the run has started");
    if (j->over) blame(j, event, "after the end of the run");
    if (m->kind == MOMENT_STEP_STARTED && j->paused) blame(j, event, "while the run is paused");
    const struct program_step *step = program && !program->net ? step_of(program, m->step) : NULL;
    if (!step || m->signal_id.len || str_is(m->reason, "OPERATOR_SKIP")) return; // a person's word waits for nothing
    for (uint32_t i = 0; i < step->dep_count; i++) {
        struct str id = program->steps[step->deps[i]].id;
        if (map_get(&j->ended, name_of(j, event->run, sibling(j->arena, m->step, id))) != MAP_NONE) continue;
        struct str what = arena_format(j->arena, "before %.*s, which it depends on, has ended", STR_ARG(id));
        blame(j, event, what.ptr ? what.ptr : "before what it depends on has ended");
    }
}

static void note_end(struct judging *j, const struct story_event *event)
{
    uint32_t before;
    if (!map_put(&j->ended, name_of(j, event->run, event->moment.step), 1, &before)) j->nomem = true;
}

static void judge_event(struct judging *j, const struct story_event *event)
{
    const struct moment *m = &event->moment;
    if (m->kind == MOMENT_RUN_STARTED) j->started = true;
    if (m->kind == MOMENT_RUN_PAUSED) j->paused = true;
    if (m->kind == MOMENT_RUN_RESUMED) j->paused = false;
    if (begins(m->kind) && m->visit == 0) judge_begin(j, event);
    if (ends(m->kind) && m->visit == 0) note_end(j, event);
    if (!moment_is_terminal(m->kind)) return;
    if (j->over) blame(j, event, "the run had ended before");
    j->over = true;
}

void equiv_judge(struct equiv_log *log, struct arena *arena)
{
    const struct story *story = &log->result.story;
    struct judging j = {.log = log, .arena = arena, .story = story, .run = UINT32_MAX};
    map_init(&j.ended, arena);
    for (size_t i = 0; i < story->event_count; i++) {
        const struct story_event *event = &story->events[i];
        if (event->run != j.run) {
            j.run = event->run;
            j.started = j.paused = j.over = false;
        }
        judge_event(&j, event);
    }
}
