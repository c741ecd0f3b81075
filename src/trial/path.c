// Keys of a script against paths of steps: "sub#2/loop[*].tick#1".
#include "trial/inside.h"

#include "program/net.h"

bool key_split(struct str key, struct str *path, uint32_t *attempt)
{
    struct str number;
    int64_t n = 0;
    *path = str_cut(key, '#', &number);
    *attempt = 0;
    if (path->len == key.len) return true;
    if (!str_int64(number, &n) || n < 1 || n > 1000000) return false;
    *attempt = (uint32_t)n;
    return true;
}

// "loop[*].tick" against "loop[2].tick"; *exact becomes false when a star was needed.
static bool segment_fits(struct str key, struct str path, bool *exact)
{
    size_t k = 0, p = 0;
    while (k < key.len && p < path.len) {
        if (key.ptr[k] == '[' && path.ptr[p] == '[' && k + 2 < key.len && key.ptr[k + 1] == '*') {
            *exact = false;
            k = str_find(key, ']', k);
            p = str_find(path, ']', p);
        }
        if (k >= key.len || p >= path.len || key.ptr[k] != path.ptr[p]) return false;
        k++;
        p++;
    }
    return k == key.len && p == path.len;
}

// Most keys are of other steps. Where the two texts part, one of them must have a star or an attempt.
static bool cannot_fit(struct str key, struct str path)
{
    size_t i = 0;
    while (i < key.len && i < path.len && key.ptr[i] == path.ptr[i]) i++;
    char k = i < key.len ? key.ptr[i] : '\0', p = i < path.len ? path.ptr[i] : '\0';
    return k != p && k != '*' && k != '#' && p != '#';
}

uint32_t key_fits(struct str key, struct str path, uint32_t logical)
{
    if (cannot_fit(key, path)) return 0;
    uint32_t score = 1;
    while (key.len > 0 && path.len > 0) {
        struct str key_path, step_path;
        uint32_t key_attempt, attempt;
        bool exact = true;
        struct str key_rest, path_rest, key_part = str_cut(key, '/', &key_rest),
                                        path_part = str_cut(path, '/', &path_rest);
        if (!key_split(key_part, &key_path, &key_attempt) || !key_split(path_part, &step_path, &attempt)) return 0;
        if (path_rest.len == 0) attempt = logical;
        if (attempt == 0) attempt = 1;
        if (!segment_fits(key_path, step_path, &exact) || (key_attempt > 0 && key_attempt != attempt)) return 0;
        score += (key_attempt > 0 ? 2u : 0u) + (exact ? 1u : 0u);
        key = key_rest;
        path = path_rest;
    }
    return key.len == 0 && path.len == 0 ? score : 0;
}

bool kind_is_external(enum step_kind kind)
{
    return kind == STEP_EXEC || kind == STEP_SHELL || kind == STEP_SCRIPT || kind == STEP_HOST;
}

// The part of a path before the first iteration: "loop" of "loop[2].tick"; *rest is "tick", or empty.
static struct str outermost(struct str path, struct str *rest)
{
    size_t bracket = str_find(path, '[', 0);
    size_t close = str_find(path, ']', bracket);
    *rest = (struct str){0};
    if (bracket == path.len || close == path.len) return path;
    if (close + 2 <= path.len && path.ptr[close + 1] == '.') *rest = str_slice(path, close + 2, path.len);
    return str_slice(path, 0, bracket);
}

// "fetch:run:2" is "fetch".
static struct str without_run(struct str name)
{
    const struct str mark = STR(":run:");
    for (size_t at = name.len; at-- > 0;)
        if (str_starts(str_slice(name, at, name.len), mark)) return str_slice(name, 0, at);
    return name;
}

struct str task_path(struct arena *arena, struct str prefix, const struct moment *m)
{
    struct buf out = buf_of(8192);
    buf_printf(&out, "%.*s%.*s", STR_ARG(prefix), STR_ARG(m->step));
    if (m->visit > 1) buf_printf(&out, ":run:%u", m->visit);
    if (m->iteration > 0) buf_printf(&out, "[%u]", m->iteration);
    if (m->task.len) buf_printf(&out, "/%.*s", STR_ARG(m->task));
    if (m->task_run > 1) buf_printf(&out, ":run:%u", m->task_run);
    struct str path = buf_keep(&out, arena);
    return path.ptr ? path : STR("?");
}

// Of a playbook: "each", "each:run:2", "each[3]".
static const struct program_step *net_step_named(const struct program *program, struct str name)
{
    if (str_ends(name, STR("]")))
        for (size_t at = name.len; at-- > 0;)
            if (name.ptr[at] == '[') name.len = at;
    uint32_t index = program_find(program, PROGRAM_TOP, name);
    if (index == PROGRAM_TOP) index = program_find(program, PROGRAM_TOP, without_run(name));
    return index == PROGRAM_TOP ? NULL : &program->steps[index];
}

// The step that a path of a playbook begins with; *rest is what follows it. Names of steps may have slashes: the longest counts.
static const struct program_step *net_step_of(const struct program *program, struct str path, struct str *rest)
{
    for (size_t end = path.len; end > 0; end--) {
        if (end < path.len && path.ptr[end] != '/') continue;
        const struct program_step *step = net_step_named(program, str_slice(path, 0, end));
        *rest = end < path.len ? str_slice(path, end + 1, path.len) : (struct str){0};
        if (step) return step;
    }
    return NULL;
}

const struct program_step *path_step(const struct program *program, struct str path)
{
    uint32_t scope = PROGRAM_TOP;
    struct str rest;
    if (program->net) return net_step_of(program, path, &rest);
    while (path.len > 0) {
        struct str id = outermost(path, &rest);
        uint32_t index = program_find(program, scope, id);
        if (index == PROGRAM_TOP) return NULL;
        if (rest.len == 0) return &program->steps[index];
        if (program->steps[index].kind != STEP_LOOP) return NULL;
        scope = index;
        path = rest;
    }
    return NULL;
}

static const struct net_task *task_named(const struct program *program, const struct program_step *step,
                                         struct str name)
{
    const struct net_step *net = &program->net->steps[step - program->steps];
    for (uint32_t i = 0; i < net->task_count; i++)
        if (str_eq(net->tasks[i].label, name) || str_eq(net->tasks[i].label, without_run(name))) return &net->tasks[i];
    return NULL;
}

const struct program *path_child(const struct program *program, struct str path)
{
    struct str rest;
    const struct program_step *step = program->net ? net_step_of(program, path, &rest) : path_step(program, path);
    const struct net_task *task = step && program->net ? task_named(program, step, rest) : NULL;
    return task ? task->child : step ? step->child : NULL;
}

// The same of a key, whose parts may have attempts: "each#2/fetch#1".
static const struct program_step *key_begin(const struct program *program, struct str key, struct str *rest)
{
    for (size_t end = key.len; end > 0; end--) {
        struct str path;
        uint32_t attempt;
        if (end < key.len && key.ptr[end] != '/') continue;
        if (!key_split(str_slice(key, 0, end), &path, &attempt)) continue;
        const struct program_step *step = net_step_named(program, path);
        *rest = end < key.len ? str_slice(key, end + 1, key.len) : (struct str){0};
        if (step) return step;
    }
    return NULL;
}

const struct program_step *key_step(const struct program *program, struct str key, const struct program **owner)
{
    while (program) {
        struct str rest, path, name;
        uint32_t attempt;
        const struct program_step *step;
        if (owner) *owner = program;
        if (program->net) {
            step = key_begin(program, key, &rest);
            if (!step || rest.len == 0) return step;
            if (!key_split(str_cut(rest, '/', &rest), &name, &attempt)) return NULL; // a task of the step
            const struct net_task *task = task_named(program, step, name);
            if (!task || rest.len == 0) return task ? step : NULL;
            program = task->child;
        } else {
            if (!key_split(str_cut(key, '/', &rest), &path, &attempt)) return NULL;
            step = path_step(program, path);
            if (!step || rest.len == 0) return step;
            program = step->child;
        }
        key = rest;
    }
    return NULL;
}

const struct trial_mock *script_mock(const struct trial_script *script, struct str path, uint32_t attempt,
                                     struct str kind)
{
    const struct trial_mock *best = NULL;
    uint32_t best_score = 0;
    for (size_t i = 0; i < script->mock_count; i++) {
        uint32_t score = key_fits(script->mocks[i].key, path, attempt);
        if (score == 0 || score < best_score) continue;
        best = &script->mocks[i];
        best_score = score;
    }
    for (size_t i = 0; best_score == 0 && i < script->default_count; i++) {
        struct str key = script->defaults[i].key;
        if (str_eq(key, kind) || (!best && str_is(key, "*"))) best = &script->defaults[i];
    }
    return best;
}

const struct trial_gate *script_gate(const struct trial_script *script, struct str path)
{
    const struct trial_gate *best = NULL;
    uint32_t best_score = 0;
    for (size_t i = 0; i < script->gate_count; i++) {
        uint32_t score = key_fits(script->gates[i].key, path, 1);
        if (score == 0 || score < best_score) continue;
        best = &script->gates[i];
        best_score = score;
    }
    return best;
}
