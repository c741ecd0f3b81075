// A story as a test file. Values are written in YAML's JSON style, so that nothing in them is taken for something else.
#include "trial/inside.h"

#include "base/civil.h"
#include "program/net.h"

#include <string.h>

#define VALUE_MAX 2048 // longer outputs are mocked, not expected
#define FOREVER "1000h"

struct writer {
    const struct story *story;
    const struct record_options *options;
    struct arena *arena;
    struct buf *out;
    bool *decides; // by step of the root program: its value has a say in a condition
};

static bool is_plain(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool other = (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/';
        if (!letter && (i == 0 || !other)) return false;
    }
    return key.len > 0 && !str_is(key, "null") && !str_is(key, "true") && !str_is(key, "false");
}

static void write_key(struct buf *out, struct str key)
{
    if (is_plain(key))
        buf_add(out, key);
    else
        json_write_string(out, key);
}

// ---- redaction

static bool redacted(struct arena *arena, const struct json *value, struct json *out);

static bool redacted_text(struct arena *arena, struct str text, struct json *out)
{
    struct json inner, clean;
    struct error ignored = {0};
    struct str trimmed = str_trim(text);
    *out = json_string(text.len ? STR("redacted") : STR(""));
    if (trimmed.len == 0 || json_parse(trimmed, NULL, arena, &inner, &ignored) || inner.type == JSON_STRING)
        return true;
    if (!redacted(arena, &inner, &clean)) return false;
    *out = json_string(json_line(arena, &clean));
    return true;
}

// The same shape, other values.
static bool redacted(struct arena *arena, const struct json *value, struct json *out)
{
    struct json inner;
    switch ((enum json_type)value->type) {
    case JSON_STRING:
        return redacted_text(arena, value->text, out);
    case JSON_INT:
    case JSON_NUMBER:
        *out = json_int(0);
        return true;
    case JSON_ARRAY:
        *out = json_array();
        for (uint32_t i = 0; i < value->count; i++)
            if (!redacted(arena, &value->items[i], &inner) || !json_push(arena, out, inner)) return false;
        return true;
    case JSON_OBJECT:
        *out = json_object();
        for (uint32_t i = 0; i < value->count; i++)
            if (!redacted(arena, &value->members[i].value, &inner) ||
                !json_put(arena, out, value->members[i].key, inner))
                return false;
        return true;
    case JSON_NULL:
    case JSON_BOOL:
        break;
    }
    *out = *value;
    return true;
}

// Does `text` hold "$name." as a reference would?
static bool mentions(struct str text, struct str name)
{
    for (size_t at = str_find(text, '$', 0); at < text.len; at = str_find(text, '$', at + 1)) {
        struct str rest = str_slice(text, at + 1, text.len);
        if (str_starts(rest, name) && rest.len > name.len && rest.ptr[name.len] == '.') return true;
    }
    return false;
}

// What a condition looks at, and what that was made of, stays: the recorded path would be another one otherwise.
static void find_deciders(struct writer *w)
{
    const struct program *program = w->story->runs[0].program;
    for (uint32_t i = 0; i < program->step_count; i++)
        for (uint32_t k = 0; k < program->step_count; k++)
            if (program->steps[k].when_text.len && mentions(program->steps[k].when_text, program->steps[i].id))
                w->decides[i] = true;
    for (uint32_t round = 0; round < program->step_count; round++)
        for (uint32_t i = 0; i < program->step_count; i++)
            for (uint32_t k = 0; w->decides[i] && k < program->steps[i].dep_count; k++)
                if (!kind_is_external(program->steps[i].kind)) w->decides[program->steps[i].deps[k]] = true;
}

static bool may_show(const struct writer *w, const struct story_step *step)
{
    if (!w->options->redact) return true;
    const struct program *program = w->story->runs[0].program;
    if (step->run != 0 || !step->step) return false;
    return w->decides[step->step - program->steps];
}

static bool shown_value(struct writer *w, const struct story_step *step, const struct json *value, struct json *out)
{
    struct json clean;
    *out = *value;
    if (may_show(w, step)) return true;
    bool ok = redacted(w->arena, value, &clean);
    *out = clean;
    return ok;
}

static struct str shown_text(const struct writer *w, struct str text)
{
    return w->options->redact && text.len ? STR("redacted") : text;
}

// ---- head

static bool input_decides(const struct writer *w, struct str name)
{
    struct str reference = trial_format(w->arena, "$INPUTS.%.*s", STR_ARG(name));
    for (size_t r = 0; r < w->story->run_count; r++) {
        const struct program *program = w->story->runs[r].program;
        for (uint32_t i = 0; i < program->step_count; i++)
            if (program->steps[i].when_text.len && strstr(program->steps[i].when_text.ptr, reference.ptr)) return true;
    }
    return false;
}

static bool write_inputs(struct writer *w)
{
    const struct json *inputs = &w->story->runs[0].start.inputs;
    if (!json_is(inputs, JSON_OBJECT) || inputs->count == 0) return true;
    buf_text(w->out, "inputs:\n");
    for (uint32_t i = 0; i < inputs->count; i++) {
        struct json value = inputs->members[i].value;
        bool hide = w->options->redact && !input_decides(w, inputs->members[i].key);
        if (hide && !redacted(w->arena, &inputs->members[i].value, &value)) return false;
        buf_text(w->out, "  ");
        write_key(w->out, inputs->members[i].key);
        buf_text(w->out, ": ");
        json_write(w->out, &value);
        buf_byte(w->out, '\n');
    }
    return true;
}

static bool write_head(struct writer *w)
{
    const struct story_run *run = &w->story->runs[0];
    char at[CIVIL_SIZE];
    civil_format(run->queued_ms, at);
    buf_printf(w->out, "# Recorded from run %.*s. Play it again: cairn test FILE\n", STR_ARG(run->id));
    buf_text(w->out, "document: ");
    json_write_string(w->out, str_from(w->options->document));
    buf_text(w->out, "\nrun: ");
    json_write_string(w->out, run->id);
    buf_printf(w->out, "\nat: \"%s\"\n", at);
    if (run->start.arguments.len) {
        buf_text(w->out, "arguments: ");
        json_write_string(w->out, shown_text(w, run->start.arguments));
        buf_byte(w->out, '\n');
    }
    return write_inputs(w);
}

// ---- mocks

static void write_fault(struct writer *w, const struct fault *fault)
{
    buf_text(w->out, "fail: {code: ");
    write_key(w->out, fault->code);
    if (fault->message.len) {
        buf_text(w->out, ", message: ");
        json_write_string(w->out, shown_text(w, fault->message));
    }
    if (fault->has_exit && fault->exit_code >= 0) buf_printf(w->out, ", exit: %d", (int)fault->exit_code);
    if (fault->category.len) {
        buf_text(w->out, ", category: ");
        write_key(w->out, fault->category);
    }
    buf_printf(w->out, ", retryable: %s}", fault->retryable ? "true" : "false");
}

static bool write_attempt(struct writer *w, const struct story_step *step, const struct story_attempt *attempt)
{
    struct buf key SCOPED(buf_release) = buf_of(4096);
    buf_add(&key, step->path);
    if (step->attempt_count > 1) buf_printf(&key, "#%u", attempt->logical);
    buf_text(w->out, "  ");
    write_key(w->out, buf_str(&key));
    bool stopped = !attempt->ended || str_is(attempt->fault.code, "CANCELLED");
    if (stopped) { // whatever ended it does so again
        buf_text(w->out, ": {takes: " FOREVER "}\n");
        return true;
    }
    int64_t took = attempt->ended_ms - attempt->started_ms;
    buf_text(w->out, ": {");
    if (attempt->ok && step->step->condition) {
        buf_printf(w->out, "exit: %d", attempt->value.type == JSON_BOOL && !attempt->value.boolean ? 1 : 0);
    } else if (attempt->ok) {
        struct json value = attempt->value.type ? attempt->value : json_string(STR(""));
        if (!shown_value(w, step, &value, &value)) return false;
        buf_text(w->out, "output: ");
        json_write(w->out, &value);
    } else {
        write_fault(w, &attempt->fault);
    }
    buf_printf(w->out, ", takes: %lldms}\n", (long long)(took > 0 ? took : 0));
    return true;
}

// Task and attempt that an event is about, and all that came out. The outcome stands with the attempt, its result with the task.
static bool write_outcome(struct writer *w, size_t at)
{
    const struct story_event *event = &w->story->events[at];
    const struct moment *m = &event->moment;
    struct json outcome = json_joined(w->arena, &m->value, NULL), result = json_null();
    for (size_t i = at + 1; i < w->story->event_count && w->story->events[i].run == event->run; i++) {
        const struct moment *later = &w->story->events[i].moment;
        bool same = str_eq(later->step, m->step) && later->visit == m->visit && later->iteration == m->iteration &&
                    str_eq(later->task, m->task) && later->task_run == m->task_run;
        if (same && later->kind == MOMENT_ATTEMPT_STARTED) break; // tried again: its result was nobody's
        if (!same || later->kind != MOMENT_TASK_DONE) continue;
        if (later->value.type) result = later->value;
        break;
    }
    bool good = m->kind == MOMENT_ATTEMPT_DONE;
    if (good && w->options->redact && !redacted(w->arena, &result, &result)) return false;
    if (good) JSON_ADD(w->arena, &outcome, {"result", result});
    if (!json_key(&outcome, "status")) JSON_ADD(w->arena, &outcome, {"status", json_word(good ? "ok" : "error")});
    struct str path = task_path(w->arena, w->story->runs[event->run].prefix, m);
    struct str key = m->logical > 1 ? trial_format(w->arena, "%.*s#%u", STR_ARG(path), m->logical) : path;
    buf_text(w->out, "  ");
    write_key(w->out, key);
    buf_text(w->out, ": {");
    bool silent = !good && (str_is(m->fault.code, "CANCELLED") || str_is(m->fault.code, "TIMEOUT"));
    if (silent) { // whatever ended it does so again
        buf_text(w->out, "takes: " FOREVER "}\n");
        return json_ok(&outcome);
    }
    buf_text(w->out, "outcome: ");
    json_write(w->out, &outcome);
    buf_printf(w->out, ", takes: %lldms}\n", (long long)(m->duration_ms > 0 ? m->duration_ms : 0));
    return json_ok(&outcome);
}

static bool is_asked(const struct program *program, const struct moment *m)
{
    const struct program_step *step = m->task.len ? path_step(program, m->step) : NULL;
    const struct net_step *net = step ? &program->net->steps[step - program->steps] : NULL;
    for (uint32_t i = 0; net && i < net->task_count; i++) {
        const struct net_task *task = &net->tasks[i];
        bool own = task->in_process || str_is(task->kind, "wait") || str_is(task->kind, "event") ||
                   str_is(task->kind, "playbook");
        if (str_eq(task->label, m->task)) return !own;
    }
    return false;
}

static bool write_task_mocks(struct writer *w, bool *headed)
{
    for (size_t i = 0; i < w->story->event_count; i++) {
        const struct moment *m = &w->story->events[i].moment;
        const struct program *program = w->story->runs[w->story->events[i].run].program;
        bool over = m->kind == MOMENT_ATTEMPT_DONE || m->kind == MOMENT_ATTEMPT_FAILED;
        if (!program->net || !over || !is_asked(program, m)) continue;
        if (!*headed) buf_text(w->out, "mocks:\n");
        *headed = true;
        if (!write_outcome(w, i)) return false;
    }
    return true;
}

static bool write_mocks(struct writer *w)
{
    bool headed = false;
    if (!write_task_mocks(w, &headed)) return false;
    for (size_t i = 0; i < w->story->step_count; i++) {
        const struct story_step *step = &w->story->steps[i];
        if (!step->step || !kind_is_external(step->step->kind)) continue;
        for (size_t k = 0; k < step->attempt_count; k++) {
            if (!headed) buf_text(w->out, "mocks:\n");
            headed = true;
            if (!write_attempt(w, step, &step->attempts[k])) return false;
        }
    }
    return true;
}

// ---- people

static bool is_answer(const struct moment *m)
{
    enum signal_type type = signal_parse(m->signal_type);
    return m->kind == MOMENT_SIGNAL_ACCEPTED && (type == SIGNAL_APPROVE || type == SIGNAL_REJECT);
}

static void write_answer(struct writer *w, struct str key, const struct moment *signal, const struct json *value,
                         int64_t took)
{
    bool yes = signal_parse(signal->signal_type) == SIGNAL_APPROVE;
    buf_text(w->out, "  ");
    write_key(w->out, key);
    buf_printf(w->out, ": {answer: %s", yes ? "yes" : "no");
    if (signal->actor.len) {
        buf_text(w->out, ", by: ");
        json_write_string(w->out, shown_text(w, signal->actor));
    }
    if (signal->reason.len) {
        buf_text(w->out, ", reason: ");
        json_write_string(w->out, shown_text(w, signal->reason));
    }
    const struct json *fields = value ? json_key(value, "fields") : NULL;
    struct json shown;
    if (fields && (w->options->redact ? redacted(w->arena, fields, &shown) : json_copy(w->arena, fields, &shown))) {
        buf_text(w->out, ", fields: ");
        json_write(w->out, &shown);
    }
    buf_printf(w->out, ", takes: %lldms}\n", (long long)(took > 0 ? took : 0));
}

// The moment that a decision caused stands right behind it.
static void write_answers(struct writer *w)
{
    const struct story *story = w->story;
    bool headed = false;
    for (size_t i = 0; i + 1 < story->event_count; i++) {
        const struct moment *m = &story->events[i].moment, *next = &story->events[i + 1].moment;
        if (!is_answer(m) || story->events[i + 1].run != story->events[i].run) continue;
        const struct story_run *run = &story->runs[story->events[i].run];
        const struct story_step *step = next->step.len ? story_find(story, story->events[i + 1].path) : NULL;
        const struct story_attempt *attempt = step && step->attempt_count ? &step->attempts[0] : NULL;
        if (!headed) buf_text(w->out, "approvals:\n");
        headed = true;
        struct str key = step ? step->path : trial_format(w->arena, "%.*sRUN", STR_ARG(run->prefix));
        write_answer(w, key, m, attempt ? &attempt->value : NULL,
                     m->at_ms - (attempt ? attempt->started_ms : run->queued_ms));
    }
}

static enum trial_occasion occasion_of(enum moment_kind kind)
{
    switch ((int)kind) {
    case MOMENT_STEP_STARTED:
        return AFTER_STARTED;
    case MOMENT_STEP_COMPLETED:
        return AFTER_COMPLETED;
    case MOMENT_STEP_FAILED:
    case MOMENT_ATTEMPT_FAILED:
        return AFTER_FAILED;
    case MOMENT_STEP_SKIPPED:
        return AFTER_SKIPPED;
    case MOMENT_STEP_DELAYED:
        return AFTER_DELAYED;
    case MOMENT_RUN_QUEUED:
        return AFTER_RUN_QUEUED;
    case MOMENT_RUN_STARTED:
        return AFTER_RUN_STARTED;
    case MOMENT_RUN_PAUSED:
        return AFTER_RUN_PAUSED;
    case MOMENT_RUN_RESUMED:
        return AFTER_RUN_RESUMED;
    default:
        return AFTER_NOTHING;
    }
}

static const char *send_word(enum signal_type type)
{
    switch (type) {
    case SIGNAL_PAUSE:
        return "pause";
    case SIGNAL_RESUME:
        return "resume";
    case SIGNAL_CANCEL:
        return "cancel";
    case SIGNAL_EMERGENCY_STOP:
        return "stop";
    case SIGNAL_RETRY_STEP:
        return "retry";
    case SIGNAL_SKIP_STEP:
        return "skip";
    case SIGNAL_APPROVE:
        return "approve";
    case SIGNAL_REJECT:
        return "reject";
    case SIGNAL_RETRY_RUN:
    case SIGNAL_UPDATE_PARAMS:
    case SIGNAL_INJECT_OVERRIDE:
    case SIGNAL_UPDATE_TARGET:
    case SIGNAL_ESCALATE_ALERT:
    case SIGNAL_DELIVER_EVENT:
    case SIGNAL_NONE:
        break;
    }
    return NULL;
}

static void write_signal(struct writer *w, const struct story_event *before, const struct moment *m, const char *send)
{
    enum trial_occasion occasion = occasion_of(before->moment.kind);
    struct buf after SCOPED(buf_release) = buf_of(4096);
    if (occasion >= AFTER_RUN_QUEUED)
        buf_text(&after, "run");
    else
        buf_add(&after, before->path);
    if (before->moment.logical > 1) buf_printf(&after, "#%u", before->moment.logical);
    buf_printf(&after, " %s", occasion_word(occasion));
    buf_text(w->out, "  - {after: ");
    json_write_string(w->out, buf_str(&after));
    buf_printf(w->out, ", send: %s", send);
    if (m->signal_step.len) {
        buf_text(w->out, ", step: ");
        json_write_string(w->out, m->signal_step);
    }
    if (m->actor.len) {
        buf_text(w->out, ", by: ");
        json_write_string(w->out, shown_text(w, m->actor));
    }
    if (m->reason.len) {
        buf_text(w->out, ", reason: ");
        json_write_string(w->out, shown_text(w, m->reason));
    }
    if (m->kind == MOMENT_SIGNAL_REJECTED) buf_printf(w->out, ", rejected: %.*s", STR_ARG(m->fault.code));
    buf_text(w->out, "}\n");
}

// Each after the moment that stood before it in the log: so it comes at the same place, whatever time is.
static void write_signals(struct writer *w)
{
    const struct story *story = w->story;
    const struct story_event *before = NULL;
    bool headed = false;
    for (size_t i = 0; i < story->event_count && story->events[i].run == 0; i++) {
        const struct moment *m = &story->events[i].moment;
        if (occasion_of(m->kind) != AFTER_NOTHING) before = &story->events[i];
        bool decided = m->kind == MOMENT_SIGNAL_ACCEPTED || m->kind == MOMENT_SIGNAL_REJECTED;
        const char *send = decided ? send_word(signal_parse(m->signal_type)) : NULL;
        if (!send || is_answer(m) || !before) continue;
        if (!headed) buf_text(w->out, "signals:\n");
        headed = true;
        write_signal(w, before, m, send);
    }
}

// ---- expectations

static void write_set(struct writer *w, const char *name, enum step_status status)
{
    size_t count = 0;
    buf_printf(w->out, "  %s: [", name);
    for (size_t i = 0; i < w->story->step_count; i++) {
        const struct story_step *step = &w->story->steps[i];
        if (step->status != status) continue;
        if (count++) buf_text(w->out, ", ");
        write_key(w->out, step->path);
    }
    buf_text(w->out, "]\n");
}

static void write_attempts(struct writer *w)
{
    bool headed = false;
    for (size_t i = 0; i < w->story->step_count; i++) {
        const struct story_step *step = &w->story->steps[i];
        if (step->attempt_count < 2) continue;
        if (!headed) buf_text(w->out, "  attempts:\n");
        headed = true;
        buf_text(w->out, "    ");
        write_key(w->out, step->path);
        buf_printf(w->out, ": %zu\n", step->attempt_count);
    }
}

static void write_words(struct writer *w, const char *name, bool errors)
{
    bool headed = false;
    for (size_t i = 0; i < w->story->step_count; i++) {
        const struct story_step *step = &w->story->steps[i];
        struct str word = errors ? step->fault.code : step->skip_reason;
        bool fits = step->status == (errors ? STEP_STATUS_FAILED : STEP_STATUS_SKIPPED);
        if (!fits || word.len == 0) continue;
        if (!headed) buf_printf(w->out, "  %s:\n", name);
        headed = true;
        buf_text(w->out, "    ");
        write_key(w->out, step->path);
        buf_text(w->out, ": ");
        write_key(w->out, word);
        buf_byte(w->out, '\n');
    }
}

// Texts that hold the directory of the run are its own. So is all that a redacted value went into.
static void write_outputs(struct writer *w)
{
    bool headed = false;
    struct str own = w->story->runs[0].start.artifacts_dir;
    for (size_t i = 0; !w->options->redact && i < w->story->step_count; i++) {
        const struct story_step *step = &w->story->steps[i];
        if (step->inner || step->status != STEP_STATUS_SUCCESS || step->value.type == 0) continue;
        struct str text = json_line(w->arena, &step->value);
        if (text.len > VALUE_MAX || (own.len && strstr(text.ptr, own.ptr))) continue;
        if (!headed) buf_text(w->out, "  outputs:\n");
        headed = true;
        buf_text(w->out, "    ");
        write_key(w->out, step->path);
        buf_printf(w->out, ": %.*s\n", STR_ARG(text));
    }
}

bool story_record(const struct story *story, const struct record_options *options, struct buf *out)
{
    struct writer w = {.story = story, .options = options, .arena = story->arena, .out = out};
    w.decides = ARENA_ARRAY(story->arena, story->runs[0].program->step_count + 1, bool);
    if (!w.decides) return false;
    if (options->redact) find_deciders(&w);
    if (!write_head(&w) || !write_mocks(&w)) return false;
    write_answers(&w);
    write_signals(&w);
    buf_printf(out, "expect:\n  status: %s\n", run_status_name(story->runs[0].status));
    write_set(&w, "completed", STEP_STATUS_SUCCESS);
    write_set(&w, "skipped", STEP_STATUS_SKIPPED);
    write_set(&w, "failed", STEP_STATUS_FAILED);
    write_attempts(&w);
    write_words(&w, "errors", true);
    write_words(&w, "reasons", false);
    write_outputs(&w);
    return buf_ok(out);
}
