// The past of a run as another run may have it: cut at an event, without what was about the run itself and not about its
// work, and without the steps that begin anew.
#include "kernel/inside.h"

#include "base/map.h"

struct track {             // a step, by path: where it last began
    uint32_t start, delay; // index in the list + 1; 0 = none
    bool looped;           // an iteration has begun since
};

struct cut {
    const struct program *program;
    struct moment *moments;
    bool *open;
    uint32_t count;
    struct map paths;
    struct track *tracks;
    size_t track_count, track_capacity;
    struct arena *arena;
    bool lifted; // a cancellation was left out: what failed afterwards failed by it
};

static uint32_t top_of(const struct program *program, struct str path)
{
    return program_find(program, PROGRAM_TOP, str_slice(path, 0, str_find(path, '[', 0)));
}

// "loop[2].tick" is the step tick in the scope of loop; PROGRAM_TOP when there is none.
static uint32_t step_of(const struct program *program, struct str path)
{
    uint32_t scope = PROGRAM_TOP;
    for (;;) {
        size_t bracket = str_find(path, '[', 0);
        uint32_t step = program_find(program, scope, str_slice(path, 0, bracket));
        size_t close = str_find(path, ']', bracket);
        if (step == PROGRAM_TOP || close + 2 >= path.len) return step;
        scope = step;
        path = str_slice(path, close + 2, path.len);
    }
}

static struct track *track_of(struct cut *cut, struct str path)
{
    uint32_t at = map_get(&cut->paths, path);
    if (at != MAP_NONE) return &cut->tracks[at];
    struct track *grown = arena_grow(cut->arena, cut->tracks, cut->track_count, cut->track_count + 1, sizeof(*grown),
                                     &cut->track_capacity);
    if (!grown || !map_put(&cut->paths, path, (uint32_t)cut->track_count, NULL)) return NULL;
    cut->tracks = grown;
    cut->tracks[cut->track_count] = (struct track){0};
    return &cut->tracks[cut->track_count++];
}

static void settle(struct cut *cut, uint32_t *begun)
{
    INVARIANT(*begun <= cut->count);
    if (*begun > 0) cut->open[*begun - 1] = false;
    *begun = 0;
}

static bool follow(struct cut *cut, const struct moment *m)
{
    struct track *track = track_of(cut, m->step);
    if (!track) return false;
    switch ((int)m->kind) {
    case MOMENT_STEP_STARTED:
        settle(cut, &track->delay);
        *track = (struct track){.start = cut->count};
        cut->open[cut->count - 1] = true;
        break;
    case MOMENT_STEP_DELAYED:
        track->delay = cut->count;
        cut->open[cut->count - 1] = true;
        break;
    case MOMENT_ITERATION_STARTED:
    case MOMENT_EVENT_AWAITED:
        track->looped = true;
        break;
    case MOMENT_STEP_SKIPPED:
        settle(cut, &track->delay);
        settle(cut, &track->start);
        break;
    case MOMENT_STEP_COMPLETED:
    case MOMENT_STEP_FAILED:
    case MOMENT_ATTEMPT_FAILED:
        settle(cut, &track->start);
        break;
    default:
        break;
    }
    return true;
}

static bool cancels(const struct moment *m)
{
    if (m->kind != MOMENT_SIGNAL_ACCEPTED) return false;
    enum signal_type type = signal_parse(m->signal_type);
    return type == SIGNAL_CANCEL || type == SIGNAL_EMERGENCY_STOP;
}

static bool is_taken(struct cut *cut, const struct moment *m)
{
    if (m->kind == MOMENT_UNKNOWN || m->kind == MOMENT_LATE_RESULT || m->kind == MOMENT_ATTEMPT_RESTS) return false;
    if (m->kind == MOMENT_LIST_STARTED || m->kind == MOMENT_CHILD_ENDED) return false; // of its children; the new run has its own
    if (m->kind == MOMENT_SIGNAL_DEFERRED || m->kind == MOMENT_SIGNAL_SETTLED) return false; // asked of that run
    if (m->kind == MOMENT_SEGMENT_FULL || m->kind == MOMENT_SEGMENT_STARTED) return false;   // the new run counts its own
    if (cancels(m)) cut->lifted = true;
    return !cancels(m) && !(cut->lifted && m->kind == MOMENT_STEP_FAILED);
}

// A start that nothing would ever end: its outcome was decided with it, and the list was cut between the two. Without it
// the step is decided anew, in the same way. Starts that lead to an attempt are emitted by workers.
static bool is_half(const struct cut *cut, uint32_t at)
{
    const struct moment *m = &cut->moments[at];
    if (!cut->open[at] || m->kind != MOMENT_STEP_STARTED) return false;
    uint32_t step = step_of(cut->program, m->step);
    if (step == PROGRAM_TOP) return false;
    enum step_kind kind = cut->program->steps[step].kind;
    uint32_t track = map_get(&cut->paths, m->step);
    return m->by == EMITTER_ENGINE || kind == STEP_CANCEL || (kind == STEP_WAIT && m->due_ms == 0) ||
           ((kind == STEP_LOOP || kind == STEP_EVENT) && !cut->tracks[track].looped);
}

static bool list_init(struct arena *arena, size_t count, struct moment **moments, bool **open)
{
    *moments = ARENA_ARRAY(arena, count + 1, struct moment);
    *open = ARENA_ARRAY(arena, count + 1, bool);
    return *moments && *open;
}

enum code kernel_past(const struct program *program, const struct moment *moments, size_t count, struct arena *arena,
                      struct past *out)
{
    struct cut cut = {.program = program, .arena = arena};
    map_init(&cut.paths, arena);
    *out = (struct past){0};
    if (!list_init(arena, count, &cut.moments, &cut.open)) return E_NOMEM;
    for (size_t i = 0; i < count && !moment_is_terminal(moments[i].kind); i++) {
        if (!is_taken(&cut, &moments[i])) continue;
        cut.moments[cut.count++] = moments[i];
        if (moments[i].at_ms > out->at_ms) out->at_ms = moments[i].at_ms;
        if (moments[i].step.len > 0 && !follow(&cut, &moments[i])) return E_NOMEM;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cut.count; i++) {
        if (is_half(&cut, i)) continue;
        cut.open[kept] = cut.open[i];
        cut.moments[kept++] = cut.moments[i];
    }
    out->moments = cut.moments;
    out->open = cut.open;
    out->count = kept;
    return OK;
}

// Of a step that had not begun there is nothing but signals that came too early.
static bool stays(const struct program *program, const struct step_fate *fates, struct str path)
{
    uint32_t top = top_of(program, path);
    if (top == PROGRAM_TOP) return false;
    enum fate_kind fate = fates[top].fate;
    bool waits = fate == FORK_TO_COME && fates[top].why == AGAIN_NOTHING;
    return waits || fate == FORK_KEPT || fate == FORK_GOES_ON;
}

// Inputs that were changed on the way stay as the new run was given them.
static bool without_set(struct moment *m, const struct json *set, struct arena *arena)
{
    const struct json *params = json_key(&m->value, "params");
    if (signal_parse(m->signal_type) != SIGNAL_UPDATE_PARAMS || !json_is(params, JSON_OBJECT) ||
        !json_is(set, JSON_OBJECT))
        return true;
    struct json kept = json_object(), payload = json_object();
    for (uint32_t i = 0; i < params->count; i++)
        if (!json_get(set, params->members[i].key) &&
            !json_put(arena, &kept, params->members[i].key, params->members[i].value))
            return false;
    if (!json_put(arena, &payload, STR("params"), kept)) return false;
    m->value = payload;
    return true;
}

enum code kernel_past_of(const struct past *past, const struct revision *revision, const struct step_fate *fates,
                         struct arena *arena, struct past *out)
{
    struct moment *moments;
    bool *open;
    uint32_t count = 0;
    *out = *past;
    if (!list_init(arena, past->count, &moments, &open)) return E_NOMEM;
    for (uint32_t i = 0; i < past->count; i++) {
        const struct moment *m = &past->moments[i];
        struct str path = moment_is_step(m->kind) ? m->step : m->signal_step;
        if (path.len > 0 && !stays(revision->program, fates, path)) continue;
        open[count] = past->open[i];
        moments[count] = *m;
        if (m->kind == MOMENT_SIGNAL_ACCEPTED && !without_set(&moments[count], revision->set, arena)) return E_NOMEM;
        count++;
    }
    out->moments = moments;
    out->open = open;
    out->count = count;
    return OK;
}
