// Fields of test files, with the place of every mistake; expectations; names of steps against the document.
#include "trial/inside.h"

#include "base/civil.h"

#include <stdarg.h>
#include <stdio.h>

struct diagnostic *kit_fault(struct kit *kit, const char *id, const struct json *at, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    uint32_t width = json_is(at, JSON_STRING) ? (uint32_t)at->text.len : 1;
    return diagnose(kit->diagnostics, SEVERITY_ERROR, id, "", kit->file, at->line ? at->line : 1,
                    at->column ? at->column : 1, width ? width : 1, "%s", text);
}

static const char *nearest(struct str text, const char *const *names)
{
    const char *best = NULL;
    size_t best_distance = (text.len < 4 ? 1 : text.len < 8 ? 2 : 3) + 1;
    for (size_t i = 0; names[i]; i++) {
        size_t distance = str_distance(text, str_from(names[i]), best_distance - 1);
        if (distance >= best_distance) continue;
        best = names[i];
        best_distance = distance;
    }
    return best;
}

void kit_fields(struct kit *kit, const struct json *object, const char *const *names, const char *what)
{
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        bool known = str_starts(member->key, STR("x-"));
        for (size_t k = 0; names[k]; k++) known = known || str_is(member->key, names[k]);
        if (known) continue;
        struct diagnostic *d =
            diagnose(kit->diagnostics, SEVERITY_ERROR, "E0203", "", kit->file, member->line, member->column,
                     (uint32_t)member->key.len, "%s has no field \"%.*s\"", what, STR_ARG(member->key));
        const char *near = nearest(member->key, names);
        if (near)
            diagnostic_hint(kit->diagnostics, d, "did you mean `%s`?", near);
        else
            diagnostic_hint(kit->diagnostics, d, "the fields of test files: docs/format/test.md, `cairn help E0203`");
    }
}

static const char *type_word(enum json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "a mapping";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_BOOL:
        return "true or false";
    case JSON_INT:
    case JSON_NUMBER:
        return "a number";
    case JSON_NULL:
        return "nothing";
    }
    return "a value";
}

bool kit_is(struct kit *kit, const struct json *value, enum json_type type, const char *name)
{
    if (json_is(value, type)) return true;
    kit_fault(kit, "E0205", value, "%s must be %s, not %s", name, type_word(type),
              type_word((enum json_type)value->type));
    return false;
}

// Numbers are taken as they are written: `by: 42` is a text here.
bool kit_text(struct kit *kit, const struct json *value, const char *name, struct str *out)
{
    if (json_is(value, JSON_INT)) {
        *out = trial_format(kit->arena, "%lld", (long long)value->integer);
        return true;
    }
    if (!kit_is(kit, value, JSON_STRING, name)) return false;
    *out = value->text;
    return true;
}

bool kit_ms(struct kit *kit, const struct json *value, const char *name, int64_t *out)
{
    bool ok = json_is(value, JSON_INT) && value->integer >= 0;
    if (ok) *out = value->integer;
    if (!ok) ok = json_is(value, JSON_STRING) && duration_parse(value->text, out);
    if (!ok) kit_fault(kit, "E0206", value, "`%s` is a duration like 30s, 1m30s, 2h (a bare number: ms)", name);
    return ok;
}

// ---- expectations

static void expect_list(struct kit *kit, const struct json *value, const char *name)
{
    if (!kit_is(kit, value, JSON_ARRAY, name)) return;
    for (uint32_t i = 0; i < value->count; i++) kit_is(kit, &value->items[i], JSON_STRING, "a name in the list");
}

static void expect_events(struct kit *kit, const struct json *value)
{
    static const char *const names[] = {"order", "exactly", "count", NULL};
    if (json_is(value, JSON_ARRAY)) {
        expect_list(kit, value, "events");
        return;
    }
    if (!kit_is(kit, value, JSON_OBJECT, "events")) return;
    kit_fields(kit, value, names, "`events`");
    if (json_key(value, "order")) expect_list(kit, json_key(value, "order"), "order");
    if (json_key(value, "exactly")) expect_list(kit, json_key(value, "exactly"), "exactly");
    const struct json *count = json_key(value, "count");
    if (!count || !kit_is(kit, count, JSON_OBJECT, "count")) return;
    for (uint32_t i = 0; i < count->count; i++) kit_is(kit, &count->members[i].value, JSON_INT, "a count");
}

static void expect_duration(struct kit *kit, const struct json *value)
{
    static const char *const names[] = {"min", "max", NULL};
    int64_t ms;
    if (!json_is(value, JSON_OBJECT)) {
        kit_ms(kit, value, "duration", &ms);
        return;
    }
    kit_fields(kit, value, names, "`duration`");
    if (json_key(value, "min")) kit_ms(kit, json_key(value, "min"), "min", &ms);
    if (json_key(value, "max")) kit_ms(kit, json_key(value, "max"), "max", &ms);
}

static void expect_values(struct kit *kit, const struct json *value, const char *name, enum json_type type)
{
    if (!kit_is(kit, value, JSON_OBJECT, name)) return;
    for (uint32_t i = 0; type && i < value->count; i++) kit_is(kit, &value->members[i].value, type, name);
}

void kit_expect(struct kit *kit, const struct json *expect)
{
    static const char *const names[] = {"status",          "path",     "ran",      "completed", "skipped",
                                        "failed",          "attempts", "outputs",  "errors",    "reasons",
                                        "outputs_exactly", "events",   "duration", NULL};
    static const char *const lists[] = {"path", "ran", "completed", "skipped", "failed"};
    kit_fields(kit, expect, names, "`expect`");
    const struct json *status = json_key(expect, "status");
    if (status && kit_is(kit, status, JSON_STRING, "status") && !run_status_parse(status->text))
        kit_fault(kit, "E0206", status,
                  "`status` is PENDING, APPROVED, RUNNING, PAUSED, COMPLETED, FAILED or CANCELLED");
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++)
        if (json_key(expect, lists[i])) expect_list(kit, json_key(expect, lists[i]), lists[i]);
    if (json_key(expect, "attempts")) expect_values(kit, json_key(expect, "attempts"), "attempts", JSON_INT);
    if (json_key(expect, "errors")) expect_values(kit, json_key(expect, "errors"), "errors", JSON_STRING);
    if (json_key(expect, "reasons")) expect_values(kit, json_key(expect, "reasons"), "reasons", JSON_STRING);
    if (json_key(expect, "outputs")) expect_values(kit, json_key(expect, "outputs"), "outputs", 0);
    if (json_key(expect, "outputs_exactly"))
        expect_values(kit, json_key(expect, "outputs_exactly"), "outputs_exactly", 0);
    if (json_key(expect, "events")) expect_events(kit, json_key(expect, "events"));
    if (json_key(expect, "duration")) expect_duration(kit, json_key(expect, "duration"));
}

// ---- against the document

static void suggest(struct diagnostics *diagnostics, struct diagnostic *d, const struct program *program,
                    struct str key)
{
    struct str path, best = {0};
    uint32_t attempt;
    size_t best_distance = key.len < 4 ? 2 : key.len < 8 ? 3 : 4;
    key_split(key, &path, &attempt);
    for (uint32_t i = 0; i < program->step_count; i++) {
        size_t distance = str_distance(path, program->steps[i].id, best_distance - 1);
        bool whole = str_eq(path, program->steps[i].id);
        if (whole && program->steps[i].scope != PROGRAM_TOP) {
            diagnostic_hint(diagnostics, d, "\"%.*s\" is inside a loop: \"%.*s[*].%.*s\" is every iteration of it",
                            STR_ARG(path), STR_ARG(program->steps[program->steps[i].scope].id), STR_ARG(path));
            return;
        }
        if (distance >= best_distance) continue;
        best = program->steps[i].id;
        best_distance = distance;
    }
    if (best.len) diagnostic_hint(diagnostics, d, "did you mean \"%.*s\"?", STR_ARG(best));
}

void check_key(struct diagnostics *diagnostics, const struct trial_script *script, const struct program *program,
               struct str key, uint32_t line, uint32_t column, const char *what)
{
    const struct program *owner = program;
    if (key_step(program, key, &owner)) return;
    struct diagnostic *d =
        diagnose(diagnostics, SEVERITY_ERROR, "E0701", "", script->file, line, column, (uint32_t)key.len,
                 "%s names \"%.*s\", and the document has no such step", what, STR_ARG(key));
    struct str rest = key, part = key;
    while (rest.len > 0) part = str_cut(rest, '/', &rest);
    suggest(diagnostics, d, owner, part);
}

static const char *why_not_mocked(const struct program_step *step)
{
    switch (step->kind) {
    case STEP_APPROVAL:
        return "it waits for a person: answer it under `approvals`";
    case STEP_EVENT:
        return "it waits for an event: give its data as `fields` under `approvals`";
    case STEP_WAIT:
        return "it waits in virtual time, which costs nothing";
    case STEP_SUBRUN:
        return "it is a run of its own: mock the steps of the child as \"STEP/CHILD-STEP\"";
    case STEP_LOOP:
        return "mock the steps inside as \"LOOP[*].STEP\"";
    case STEP_NOOP:
    case STEP_ECHO:
    case STEP_MERGE:
    case STEP_CANCEL:
    case STEP_KIND_FIRST_UNUSED:
    case STEP_EXEC:
    case STEP_SHELL:
    case STEP_SCRIPT:
    case STEP_HOST:
    case STEP_TASKS:
        break;
    }
    return "it acts only inside the engine, and its result is the document's";
}

static void check_mocks(const struct trial_script *script, const struct program *program,
                        struct diagnostics *diagnostics)
{
    for (size_t i = 0; i < script->mock_count; i++) {
        const struct trial_mock *mock = &script->mocks[i];
        const struct program_step *step = key_step(program, mock->key, NULL);
        check_key(diagnostics, script, program, mock->key, mock->line, mock->column, "the mock");
        if (!step || kind_is_external(step->kind) || step->kind == STEP_TASKS) continue;
        struct diagnostic *d = diagnose(
            diagnostics, SEVERITY_ERROR, "E0702", "", script->file, mock->line, mock->column, (uint32_t)mock->key.len,
            "\"%.*s\" is a step of kind %s, which needs no mock", STR_ARG(mock->key), step_kind_name(step->kind));
        diagnostic_hint(diagnostics, d, "%s", why_not_mocked(step));
    }
}

static void check_gates(const struct trial_script *script, const struct program *program,
                        struct diagnostics *diagnostics)
{
    for (size_t i = 0; i < script->gate_count; i++) {
        const struct trial_gate *gate = &script->gates[i];
        if (str_is(gate->key, "RUN")) continue;
        const struct program_step *step = key_step(program, gate->key, NULL);
        check_key(diagnostics, script, program, gate->key, gate->line, gate->column, "the answer");
        if (step && step->kind != STEP_APPROVAL && step->kind != STEP_EVENT)
            diagnose(diagnostics, SEVERITY_ERROR, "E0702", "", script->file, gate->line, gate->column,
                     (uint32_t)gate->key.len, "\"%.*s\" is a step of kind %s, not an approval", STR_ARG(gate->key),
                     step_kind_name(step->kind));
    }
}

static void check_expect(struct diagnostics *diagnostics, const struct trial_script *script,
                         const struct program *program)
{
    static const char *const lists[] = {"path", "ran", "completed", "skipped", "failed"};
    static const char *const maps[] = {"attempts", "outputs", "outputs_exactly", "errors", "reasons"};
    for (size_t level = 0; level < ARRAY_COUNT(script->expect); level++) {
        const struct json *expect = script->expect[level];
        for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
            const struct json *list = json_key(expect, lists[i]);
            for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->count; k++)
                check_key(diagnostics, script, program, list->items[k].text, list->items[k].line, list->items[k].column,
                          "the expectation");
        }
        for (size_t i = 0; i < ARRAY_COUNT(maps); i++) {
            const struct json *map = json_key(expect, maps[i]);
            for (uint32_t k = 0; json_is(map, JSON_OBJECT) && k < map->count; k++)
                check_key(diagnostics, script, program, map->members[k].key, map->members[k].line,
                          map->members[k].column, "the expectation");
        }
    }
}

void trial_check(const struct trial_script *script, const struct program *program, struct diagnostics *diagnostics)
{
    check_mocks(script, program, diagnostics);
    check_gates(script, program, diagnostics);
    for (size_t i = 0; i < script->signal_count; i++) {
        const struct trial_signal *signal = &script->signals[i];
        if (signal->key.len)
            check_key(diagnostics, script, program, signal->key, signal->line, signal->column, "`after`");
        if (signal->step.len)
            check_key(diagnostics, script, program, signal->step, signal->line, signal->column, "the signal");
    }
    for (uint32_t i = 0; i < program->required_count; i++) {
        if (json_get(&script->inputs, program->required[i])) continue;
        diagnose(diagnostics, SEVERITY_ERROR, "E0204", "", script->file, script->line, script->column, 1,
                 "the document needs the input \"%.*s\"; give it under `inputs`", STR_ARG(program->required[i]));
    }
    check_expect(diagnostics, script, program);
}
