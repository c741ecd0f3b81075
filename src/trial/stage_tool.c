// What the fake tools of a world do with a request: find its mock, remember that it happened, and see to it that an attempt
// that is handed in again after a crash answers when the first one would have.
#include "trial/inside.h"

#include "base/civil.h"

#include <fcntl.h>
#include <unistd.h>

// ---- effects that were seen

static struct effect_seen *effect_find(struct stage *stage, struct str path, uint32_t logical)
{
    for (size_t i = 0; i < stage->effect_count; i++)
        if (stage->effects[i].logical == logical && str_eq(stage->effects[i].path, path)) return &stage->effects[i];
    return NULL;
}

// The command line as the document has it; of several lines the first that says something.
static struct str what_it_does(struct stage *stage, const struct program_step *step)
{
    struct buf text = buf_of(4096);
    struct str command = json_text(json_key(&step->with, "command"));
    if (step->kind == STEP_SCRIPT) {
        command = json_text(json_key(&step->with, "code"));
        buf_printf(&text, "%.*s: ", STR_ARG(json_text(json_key(&step->with, "runtime"))));
    }
    const struct json *argv = json_key(&step->with, "argv");
    for (uint32_t i = 0; json_is(argv, JSON_ARRAY) && i < argv->count && text.len < 400; i++)
        buf_printf(&text, "%s%.*s", i ? " " : "", STR_ARG(json_text(&argv->items[i])));
    if (step->kind == STEP_HOST) buf_printf(&text, "%.*s()", STR_ARG(step->function));
    struct str rest = str_trim(command), line = str_cut(rest, '\n', &rest);
    buf_add(&text, str_slice(line, 0, 400));
    if (str_trim(rest).len > 0) buf_text(&text, " …");
    struct str copy = buf_keep(&text, stage->arena);
    return copy.ptr ? copy : STR("");
}

static struct effect_seen *effect_add(struct stage *stage, struct str path, uint32_t logical,
                                      const struct program_step *step, const struct program *program)
{
    if (!ARENA_ROOM(stage->arena, stage->effects, stage->effect_count, &stage->effect_capacity)) return NULL;
    struct effect_seen *effect = &stage->effects[stage->effect_count++];
    *effect = (struct effect_seen){.path = path, .logical = logical, .step = step, .program = program};
    if (step && stage->hooks.point) effect->does = what_it_does(stage, step);
    return effect;
}

void tool_told(struct stage *stage, struct str path, const struct moment *moment)
{
    struct effect_seen *effect = effect_find(stage, path, moment->logical);
    if (effect) effect->done = true;
}

// Attempts of a playbook are numbered through the run; documents count them by the run of their task.
void tool_told_task(struct stage *stage, struct str path, const struct moment *moment)
{
    for (size_t i = 0; i < stage->effect_count; i++)
        if (stage->effects[i].attempt == moment->logical && str_eq(stage->effects[i].path, path))
            stage->effects[i].done = true;
}

// Which attempt it is as documents count; of a playbook it stands in the request.
static uint32_t attempt_of(struct stage *stage, const struct program *program, const struct tool_request *request,
                           struct json *told)
{
    struct error ignored = {0};
    *told = json_null();
    if (!program || !program->net || json_parse(request->input, NULL, stage->arena, told, &ignored)) return request->logical;
    return (uint32_t)json_integer(json_key(told, "attempt"), 1);
}

static bool know_attempt(struct stage *stage, const struct tool_request *request, const struct json *told,
                         struct effect_seen *effect)
{
    effect->kind = arena_copy(stage->arena, request->kind);
    effect->named = arena_copy(stage->arena, request->step);
    if (!effect->kind.ptr || !effect->named.ptr) return false;
    const struct json *with = json_key(told, "with");
    static const char *const says[] = {"code", "cmds", "command", "url", "query", "sql"};
    for (size_t i = 0; stage->hooks.point && effect->does.len == 0 && i < ARRAY_COUNT(says); i++) {
        struct str rest = str_trim(json_text(json_key(with, says[i]))), line = str_cut(rest, '\n', &rest);
        if (line.len)
            effect->does = trial_format(stage->arena, "%.*s: %.*s", STR_ARG(request->kind),
                                        (int)(line.len < 400 ? line.len : 400), line.ptr);
    }
    return true;
}

// ---- answers

static void fail(struct fake_answer *answer, const struct fault *fault)
{
    answer->ok = false;
    answer->fault = *fault;
}

static void apply_mock(struct stage *stage, const struct tool_request *request, const struct trial_mock *mock,
                       struct fake_answer *answer)
{
    int64_t takes = mock ? mock->takes_ms : 0;
    answer->ok = true;
    answer->output = mock ? mock->output : (struct str){0};
    answer->is_json = request->function.len > 0 && (!mock || mock->is_json);
    answer->late = mock && mock->late;
    if (mock && mock->fails) fail(answer, &mock->fault);
    if (request->timeout_ms > 0 && takes >= request->timeout_ms) {
        char duration[24];
        duration_format(request->timeout_ms, duration);
        struct fault fault = {.code = STR("TIMEOUT"), .category = STR("timeout"), .retryable = true};
        fault.message = trial_format(stage->arena, FAULT_LATE, duration);
        fail(answer, &fault);
        takes = request->timeout_ms;
    }
    answer->due_ms += takes;
    answer->duration_ms = takes;
}

// A task of a playbook answers with an outcome, also when it fails: its policy is to see it. Only what ends without one stays a fault.
static enum code as_outcome(struct stage *stage, struct fake_answer *answer, struct error *err)
{
    struct arena *arena = stage->arena;
    const struct fault *fault = &answer->fault;
    struct json part = json_object();
    if (!answer->ok && (str_is(fault->code, "TIMEOUT") || str_is(fault->code, "CANCELLED"))) return OK;
    bool text = answer->ok && !answer->is_json;
    enum code rc = OK;
    if (answer->ok && !text && answer->output.len) rc = json_parse(answer->output, NULL, arena, &part, err);
    if (rc) return rc;
    if (answer->ok && !answer->output.len) part = json_null();
    if (text) part = json_string(answer->output);
    if (!answer->ok)
        part = JSON_OF(arena, {"kind", json_word("unknown")}, {"code", json_string(fault->code)},
                       {"message", json_string(fault->message)}, {"retryable", json_bool(fault->retryable)});
    struct json outcome = JSON_OF(arena, {"status", json_word(answer->ok ? "ok" : "error")},
                                  {answer->ok ? "result" : "error", part});
    struct buf out = buf_of((size_t)64 << 20);
    json_write(&out, &outcome);
    struct str kept = buf_keep(&out, arena);
    if (!kept.ptr) return error_nomem(err);
    answer->output = kept;
    answer->ok = answer->is_json = true;
    return OK;
}

static void no_mock(struct stage *stage, struct str path, uint32_t logical)
{
    const struct trial_script *script = stage->options->script;
    struct trial_fault *fault = result_fault(stage->result, script->line, script->column, STR("mocks"));
    fault->expected = trial_format(stage->arena, "a mock for %.*s", STR_ARG(path));
    fault->got = trial_format(stage->arena, "none, and it ran (attempt %u)", logical);
    fault->more =
        trial_format(stage->arena, "add `%.*s: {output: ...}` to `mocks`, or `\"*\": {}` to `defaults`", STR_ARG(path));
}

// A mocked step makes no files. Those that the document promises are there all the same, empty.
static void make_artifacts(struct stage *stage, const struct tool_request *request, const struct program_step *step)
{
    struct str dir = {0};
    for (size_t i = 0; i < request->env_count; i++)
        if (str_is(request->env[i].name, "ARTIFACTS_DIR")) dir = request->env[i].value;
    for (uint32_t i = 0; dir.len && i < step->artifact_count; i++) {
        struct str path = step->artifacts[i].path;
        if (path.len && path.ptr[0] == '/') continue;
        struct str file = trial_format(stage->arena, "%.*s/%.*s", STR_ARG(dir), STR_ARG(path));
        size_t slash = file.len;
        while (slash > 0 && file.ptr[slash - 1] != '/') slash--;
        struct str parent = trial_format(stage->arena, "%.*s", (int)(slash ? slash - 1 : 0), file.ptr);
        struct error ignored = {0};
        if (os_make_dirs(parent.ptr, &ignored)) continue;
        int fd = open(file.ptr, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0) close(fd);
    }
}

static enum code make_answer(struct stage *stage, const struct tool_request *request, const struct effect_seen *effect,
                             struct fake_answer *answer, struct error *err)
{
    const struct trial_script *script = stage->options->script;
    const struct trial_mock *mock = script_mock(script, effect->path, effect->attempt, effect->kind);
    if (!mock && !script->lenient) no_mock(stage, effect->path, effect->attempt);
    if (mock && mock->lost > effect->lost) {
        answer->lost = true;
        answer->due_ms += mock->takes_ms;
        return OK;
    }
    bool real = (mock && mock->real) || (stage->sandbox && !(mock && mock->fails));
    apply_mock(stage, request, mock, answer);
    if (real && !request->function.len) return real_run(stage, request, answer, err);
    if (effect->program && effect->program->net) return mock && mock->whole ? OK : as_outcome(stage, answer, err);
    if (answer->ok && effect->step && effect->step->artifact_count) make_artifacts(stage, request, effect->step);
    return OK;
}

// What must never be: an attempt whose number was used before, or whose outcome is known.
static void judge_start(struct stage *stage, const struct effect_seen *effect, const struct tool_request *request)
{
    if (effect->done)
        stage_break(stage, "AGAIN", "%.*s ran again (attempt %u.%u) although its completion was durable",
                    STR_ARG(effect->path), request->logical, request->engine);
    else if (effect->starts > 0 && request->engine <= effect->engine)
        stage_break(stage, "EARLY",
                    "%.*s was started twice as attempt %u.%u: the first start was not in the log before it happened",
                    STR_ARG(effect->path), request->logical, request->engine);
}

static enum code decide(void *context, const struct tool_request *request, struct fake_answer *answer,
                        struct error *err)
{
    struct stage *stage = context;
    answer->ok = true;
    if (stage->died) return OK; // dead processes start nothing
    struct str path = stage_path(stage, request->run, request->step);
    const struct stage_run *run = stage_run_of(stage, request->run);
    const struct program *program = run ? run->program : stage->options->program;
    struct json told;
    uint32_t attempt = attempt_of(stage, program, request, &told);
    struct str label = trial_format(stage->arena, "%.*s (attempt %u)", STR_ARG(path), attempt);
    if (stage_point(stage, BOUNDARY_DISPATCH, path, label)) return OK;
    struct effect_seen *effect = effect_find(stage, path, request->logical);
    bool first = !effect;
    if (first) effect = effect_add(stage, path, request->logical, path_step(program, request->step), program);
    if (!effect) return error_nomem(err);
    if (first) effect->attempt = attempt;
    if (first && !know_attempt(stage, request, &told, effect)) return error_nomem(err);
    judge_start(stage, effect, request);
    effect->starts++;
    effect->engine = request->engine;
    answer->tag = (size_t)(effect - stage->effects);
    stage_say(stage, "      starts %.*s attempt %u.%u%s", STR_ARG(path), request->logical, request->engine,
              effect->starts > 1 ? "  <- happens again" : "");
    enum code rc = make_answer(stage, request, effect, answer, err);
    if (rc) return rc;
    if (first || effect->again) {
        effect->again = false;
        effect->due_ms = answer->due_ms;
        effect->order = answer->order;
    } else {
        answer->due_ms = effect->due_ms > stage->mono_ms ? effect->due_ms : stage->mono_ms;
        answer->order = effect->order;
    }
    stage_point(stage, BOUNDARY_DISPATCHED, path, label);
    return OK;
}

static void cancelled(void *context, struct fake_answer *answer, int64_t grace_ms)
{
    (void)grace_ms;
    struct stage *stage = context;
    struct fault fault = {.code = STR("CANCELLED"), .message = STR("cancelled")};
    if (answer->late) return;
    answer->due_ms = stage->mono_ms;
    fail(answer, &fault);
}

void tool_open(struct stage *stage)
{
    stage->fake.context = stage;
    stage->fake.decide = decide;
    stage->fake.cancelled = cancelled;
}
