// Expectations against a story. Each that does not hold becomes a fault with its place in the test file.
#include "trial/inside.h"

#include "base/civil.h"

#include <stdlib.h>

struct expectations {
    const struct trial_script *script;
    struct trial_result *result;
    const struct story *story;
    struct arena *arena;
};

// A field of the case hides the same field of the file.
static const struct json *expected(const struct expectations *j, const char *name)
{
    const struct json *value = json_key(j->script->expect[0], name);
    return value ? value : json_key(j->script->expect[1], name);
}

static struct trial_fault *fault_at(struct expectations *j, const struct json *at, struct str what)
{
    return result_fault(j->result, at->line, at->column, what);
}

// ---- status and time

static void judge_status(struct expectations *j)
{
    const struct json *status = expected(j, "status");
    const struct story_run *run = &j->story->runs[0];
    const char *got = run_status_name(run->status);
    if (!status || str_is(status->text, got)) return;
    struct trial_fault *fault = fault_at(j, status, STR("status"));
    fault->expected = status->text;
    fault->got = str_from(got);
    if (run->fault.code.len) {
        struct buf why = buf_of(1 << 16);
        failure_told(&why, run->failed_step, &run->fault);
        fault->more = buf_keep(&why, j->arena);
    }
    for (size_t i = 0; !run->ended && i < j->story->step_count; i++) {
        const struct story_step *step = &j->story->steps[i];
        if (step->status == STEP_STATUS_RUNNING && step->step && step->step->kind == STEP_APPROVAL)
            fault->more =
                trial_format(j->arena, "%.*s waits for an answer: add it to `approvals`", STR_ARG(step->path));
    }
}

static int64_t ms_of(const struct json *value)
{
    int64_t ms = 0;
    if (json_is(value, JSON_INT)) return value->integer;
    return duration_parse(json_text(value), &ms) ? ms : 0;
}

// Durations are equal when they look the same to people: timers are never early and may be a millisecond late.
static void judge_duration(struct expectations *j)
{
    const struct json *want = expected(j, "duration");
    if (!want) return;
    const struct story_run *run = &j->story->runs[0];
    int64_t took = run->ended ? run->ended_ms - run->queued_ms : j->result->virtual_ms;
    char got[24], low[24], high[24];
    duration_format(took, got);
    const struct json *min = json_key(want, "min"), *max = json_key(want, "max");
    bool range = json_is(want, JSON_OBJECT);
    duration_format(ms_of(range ? min : want), low);
    duration_format(ms_of(max), high);
    bool ok = range ? (!min || took >= ms_of(min)) && (!max || took <= ms_of(max)) : str_is(str_from(got), low);
    if (ok) return;
    struct trial_fault *fault = fault_at(j, want, STR("duration"));
    fault->expected = range ? trial_format(j->arena, "%s to %s", min ? low : "0ms", max ? high : "any")
                            : trial_format(j->arena, "%s", low);
    fault->got = trial_format(j->arena, "%s of virtual time", got);
}

// ---- lists of steps

enum set { SET_PATH, SET_RAN, SET_COMPLETED, SET_SKIPPED, SET_FAILED };

static bool in_set(const struct story_step *step, enum set set)
{
    switch (set) {
    case SET_PATH:
    case SET_RAN:
        return step->started > 0;
    case SET_COMPLETED:
        return step->status == STEP_STATUS_SUCCESS;
    case SET_SKIPPED:
        return step->status == STEP_STATUS_SKIPPED;
    case SET_FAILED:
        return step->status == STEP_STATUS_FAILED;
    }
    return false;
}

static bool listed(const struct json *list, struct str path)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].text, path)) return true;
    return false;
}

// Steps inside loops and child runs count only when the list names them.
static bool counts(const struct json *list, const struct story_step *step, enum set set)
{
    return in_set(step, set) && (!step->inner || listed(list, step->path));
}

// The next step in order of first start that counts and was started after `after`.
static const struct story_step *next_started(const struct expectations *j, const struct json *list, uint32_t *run,
                                             uint32_t *after)
{
    const struct story_step *best = NULL;
    for (; *run < j->story->run_count; (*run)++, *after = 0) {
        for (size_t i = 0; i < j->story->step_count; i++) {
            const struct story_step *step = &j->story->steps[i];
            if (step->run != *run || step->started <= *after || !counts(list, step, SET_PATH)) continue;
            if (!best || step->started < best->started) best = step;
        }
        if (best) {
            *after = best->started;
            return best;
        }
    }
    return NULL;
}

static struct str names_of(struct arena *arena, const struct json *list)
{
    struct buf text SCOPED(buf_release) = buf_of(65536);
    for (uint32_t i = 0; i < list->count; i++) buf_printf(&text, "%s%.*s", i ? ", " : "", STR_ARG(list->items[i].text));
    return arena_copy(arena, list->count ? buf_str(&text) : STR("(none)"));
}

static void judge_path(struct expectations *j)
{
    const struct json *list = expected(j, "path");
    if (!list) return;
    struct buf got SCOPED(buf_release) = buf_of(65536);
    uint32_t run = 0, after = 0, count = 0;
    bool same = true;
    for (const struct story_step *step; (step = next_started(j, list, &run, &after)); count++) {
        buf_printf(&got, "%s%.*s", count ? ", " : "", STR_ARG(step->path));
        same = same && count < list->count && str_eq(list->items[count].text, step->path);
    }
    if (!same || count != list->count) {
        struct trial_fault *fault = fault_at(j, list, STR("path"));
        fault->expected = names_of(j->arena, list);
        fault->got = arena_copy(j->arena, got.len ? buf_str(&got) : STR("(none)"));
    }
}

static const char *status_of(const struct story_step *step)
{
    return step ? step_status_name(step->status) : "not reached";
}

static void judge_set(struct expectations *j, const char *name, enum set set)
{
    const struct json *list = expected(j, name);
    if (!list) return;
    struct buf more SCOPED(buf_release) = buf_of(65536);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct story_step *step = story_find(j->story, list->items[i].text);
        if (step && in_set(step, set)) continue;
        buf_printf(&more, "%s- %.*s is %s", more.len ? "\n" : "", STR_ARG(list->items[i].text), status_of(step));
        if (step && step->skip_reason.len) buf_printf(&more, " (%.*s)", STR_ARG(step->skip_reason));
        if (step && step->status == STEP_STATUS_FAILED) buf_printf(&more, " (%.*s)", STR_ARG(step->fault.code));
    }
    bool others = false;
    for (size_t i = 0; i < j->story->step_count; i++) {
        const struct story_step *step = &j->story->steps[i];
        if (!counts(list, step, set) || listed(list, step->path)) continue;
        buf_printf(&more, "%s%.*s", others ? ", " : more.len ? "\n+ also " : "+ also ", STR_ARG(step->path));
        others = true;
    }
    if (more.len) {
        struct trial_fault *fault = fault_at(j, list, str_from(name));
        fault->expected = names_of(j->arena, list);
        fault->more = arena_copy(j->arena, buf_str(&more));
    }
}

// ---- facts of single steps

static struct str field_name(struct expectations *j, const char *name, struct str step)
{
    return trial_format(j->arena, "%s.%.*s", name, STR_ARG(step));
}

static void judge_attempts(struct expectations *j)
{
    const struct json *map = expected(j, "attempts");
    for (uint32_t i = 0; map && i < map->count; i++) {
        const struct story_step *step = story_find(j->story, map->members[i].key);
        int64_t want = map->members[i].value.integer, got = step ? (int64_t)step->attempt_count : 0;
        if (want == got) continue;
        struct trial_fault *fault = fault_at(j, &map->members[i].value, field_name(j, "attempts", map->members[i].key));
        fault->expected = trial_format(j->arena, "%lld", (long long)want);
        fault->got = trial_format(j->arena, "%lld", (long long)got);
    }
}

static void judge_words(struct expectations *j, const char *name, bool errors)
{
    const struct json *map = expected(j, name);
    for (uint32_t i = 0; map && i < map->count; i++) {
        const struct json_member *member = &map->members[i];
        const struct story_step *step = story_find(j->story, member->key);
        struct str got = step ? (errors ? step->fault.code : step->skip_reason) : (struct str){0};
        if (str_eq(got, member->value.text)) continue;
        struct trial_fault *fault = fault_at(j, &member->value, field_name(j, name, member->key));
        fault->expected = member->value.text;
        fault->got = got.len ? got : trial_format(j->arena, "none, the step is %s", status_of(step));
    }
}

// An output is text. When something else is expected, it is read as JSON, as conditions do.
static struct json comparable(struct expectations *j, const struct json *want, const struct json *got)
{
    struct json parsed;
    struct error ignored = {0};
    if (json_is(want, JSON_STRING) || !json_is(got, JSON_STRING)) return *got;
    return json_parse(got->text, NULL, j->arena, &parsed, &ignored) == OK ? parsed : *got;
}

// Every field that `want` names is in `got`; lists and single values are equal.
static bool holds(const struct json *want, const struct json *got)
{
    if (!json_is(want, JSON_OBJECT) || !json_is(got, JSON_OBJECT)) return json_equal(want, got);
    for (uint32_t i = 0; i < want->count; i++) {
        const struct json *value = json_get(got, want->members[i].key);
        if (!value || !holds(&want->members[i].value, value)) return false;
    }
    return true;
}

// The fields that differ, one line each.
static void differences(struct expectations *j, const struct json *want, const struct json *got, struct str path,
                        struct buf *out)
{
    if (!json_is(want, JSON_OBJECT) || !json_is(got, JSON_OBJECT)) {
        if (json_equal(want, got) || path.len == 0) return;
        buf_printf(out, "%s%.*s: expected %.*s, got %.*s", out->len ? "\n" : "", STR_ARG(path),
                   STR_ARG(json_line(j->arena, want)), STR_ARG(json_line(j->arena, got)));
        return;
    }
    for (uint32_t i = 0; i < want->count; i++) {
        struct str key = want->members[i].key;
        struct str inner = path.len ? trial_format(j->arena, "%.*s.%.*s", STR_ARG(path), STR_ARG(key)) : key;
        const struct json *value = json_get(got, key);
        if (value)
            differences(j, &want->members[i].value, value, inner, out);
        else
            buf_printf(out, "%s%.*s: missing", out->len ? "\n" : "", STR_ARG(inner));
    }
}

static struct str shortened(struct str text)
{
    return str_slice(text, 0, text.len > 400 ? 400 : text.len);
}

static void judge_outputs(struct expectations *j, const char *name, bool exactly)
{
    const struct json *map = expected(j, name);
    for (uint32_t i = 0; map && i < map->count; i++) {
        const struct json_member *member = &map->members[i];
        const struct story_step *step = story_find(j->story, member->key);
        struct json none = json_null();
        const struct json *value = step && step->value.type ? &step->value : &none;
        struct json got = comparable(j, &member->value, value);
        if (exactly ? json_equal(&member->value, &got) : holds(&member->value, &got)) continue;
        struct trial_fault *fault = fault_at(j, &member->value, field_name(j, name, member->key));
        fault->expected = shortened(json_line(j->arena, &member->value));
        fault->got = step && step->value.type ? shortened(json_line(j->arena, &got))
                                              : trial_format(j->arena, "none, the step is %s", status_of(step));
        struct buf more = buf_of(65536);
        differences(j, &member->value, &got, STR(""), &more);
        fault->more = buf_keep(&more, j->arena);
    }
}

// ---- events

static struct str event_name(struct expectations *j, const struct story_event *event)
{
    const char *word = moment_word(event->moment.kind, j->story->runs[event->run].vocabulary);
    return word ? str_from(word) : STR("");
}

// "StepFailed" or "StepFailed load".
static bool event_is(struct expectations *j, const struct story_event *event, struct str want)
{
    struct str step, word = str_cut(want, ' ', &step);
    return event->seq > 0 && str_eq(event_name(j, event), word) &&
           (step.len == 0 || str_eq(str_trim(step), event->path));
}

static void judge_order(struct expectations *j, const struct json *list)
{
    size_t at = 0;
    for (uint32_t i = 0; list && i < list->count; i++) {
        while (at < j->story->event_count && !event_is(j, &j->story->events[at], list->items[i].text)) at++;
        if (at++ < j->story->event_count) continue;
        struct trial_fault *fault = fault_at(j, &list->items[i], STR("events"));
        fault->expected = i ? trial_format(j->arena, "%.*s after %.*s", STR_ARG(list->items[i].text),
                                           STR_ARG(list->items[i - 1].text))
                            : list->items[i].text;
        fault->got = STR("no such event from there on");
        return;
    }
}

static void judge_exactly(struct expectations *j, const struct json *list)
{
    size_t at = 0;
    for (uint32_t i = 0; list && i <= list->count; i++) {
        while (at < j->story->event_count && (j->story->events[at].seq == 0 || j->story->events[at].run > 0)) at++;
        const struct story_event *event = at < j->story->event_count ? &j->story->events[at++] : NULL;
        bool end = i == list->count;
        if (end ? !event : event && event_is(j, event, list->items[i].text)) continue;
        struct trial_fault *fault = fault_at(j, end ? list : &list->items[i], STR("events.exactly"));
        fault->expected = end ? STR("the end of the log") : list->items[i].text;
        fault->got = event ? trial_format(j->arena, "%.*s %.*s (event %llu)", STR_ARG(event_name(j, event)),
                                          STR_ARG(event->path), (unsigned long long)event->seq)
                           : STR("the end of the log");
        return;
    }
}

static void judge_events(struct expectations *j)
{
    const struct json *events = expected(j, "events");
    if (!events) return;
    if (json_is(events, JSON_ARRAY)) {
        judge_order(j, events);
        return;
    }
    judge_order(j, json_key(events, "order"));
    judge_exactly(j, json_key(events, "exactly"));
    const struct json *count = json_key(events, "count");
    for (uint32_t i = 0; count && i < count->count; i++) {
        int64_t got = 0;
        for (size_t k = 0; k < j->story->event_count; k++)
            got += event_is(j, &j->story->events[k], count->members[i].key);
        if (got == count->members[i].value.integer) continue;
        struct trial_fault *fault =
            fault_at(j, &count->members[i].value, field_name(j, "events.count", count->members[i].key));
        fault->expected = trial_format(j->arena, "%lld", (long long)count->members[i].value.integer);
        fault->got = trial_format(j->arena, "%lld", (long long)got);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct trial_fault *x = a, *y = b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

void trial_judge(const struct trial_script *script, struct trial_result *result)
{
    struct expectations j = {.script = script, .result = result, .story = &result->story, .arena = result->arena};
    if (result->story.run_count == 0) return;
    judge_status(&j);
    judge_path(&j);
    judge_set(&j, "ran", SET_RAN);
    judge_set(&j, "completed", SET_COMPLETED);
    judge_set(&j, "skipped", SET_SKIPPED);
    judge_set(&j, "failed", SET_FAILED);
    judge_attempts(&j);
    judge_words(&j, "errors", true);
    judge_words(&j, "reasons", false);
    judge_outputs(&j, "outputs", false);
    judge_outputs(&j, "outputs_exactly", true);
    judge_events(&j);
    judge_duration(&j);
    if (result->fault_count) qsort(result->faults, result->fault_count, sizeof(*result->faults), by_place);
}

// ---- golden

void trial_judge_golden(const struct trial_script *script, struct trial_result *result, struct str golden,
                        struct str got)
{
    struct str a = golden, b = got;
    uint32_t line = 1;
    while (a.len > 0 || b.len > 0) {
        struct str want = str_cut(a, '\n', &a), have = str_cut(b, '\n', &b);
        if (str_eq(want, have)) {
            line++;
            continue;
        }
        struct trial_fault *fault =
            result_fault(result, script->golden_line, script->golden_column,
                         trial_format(result->arena, "golden %.*s:%u", STR_ARG(script->golden), line));
        fault->expected = arena_copy(result->arena, want.len ? shortened(want) : STR("the end of the log"));
        fault->got = arena_copy(result->arena, have.len ? shortened(have) : STR("the end of the log"));
        fault->more = STR("`cairn test --update` writes what was got");
        return;
    }
}
