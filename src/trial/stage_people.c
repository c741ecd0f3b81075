// People in a world: they answer gates as the script says and send its signals, each under one id however often it is sent.
#include "trial/inside.h"

#include "base/text.h"
#include "json/make.h"

static struct letter *letter_add(struct stage *stage, enum signal_type type, struct str run, struct str step)
{
    if (!ARENA_ROOM(stage->arena, stage->letters, stage->letter_count, &stage->letter_capacity)) return NULL;
    struct letter *letter = &stage->letters[stage->letter_count++];
    *letter = (struct letter){.run = run, .due_ms = INT64_MAX};
    // The id is made from the place in the list: the same in every life and in every play.
    uint8_t bytes[16] = {0xca, 0x17, (uint8_t)(stage->letter_count >> 8), (uint8_t)stage->letter_count};
    uuid_format(bytes, letter->id);
    letter->signal = (struct signal){
        .type = type, .step = step, .actor = STR("tester"), .role = STR("Admin"), .payload = json_object()};
    return letter;
}

static void add_fields(struct stage *stage, struct letter *letter, const struct json *fields)
{
    if (fields->type != JSON_OBJECT) return;
    if (!json_put(stage->arena, &letter->signal.payload, STR("fields"), *fields))
        letter->signal.payload = json_object();
}

void people_start(struct stage *stage)
{
    const struct trial_script *script = stage->options->script;
    for (size_t i = 0; i < script->signal_count; i++) {
        const struct trial_signal *of = &script->signals[i];
        struct letter *letter = letter_add(stage, of->type, script->run, of->step);
        if (!letter) return;
        letter->of = of;
        letter->signal.reason = of->reason;
        letter->signal.actor = of->by;
        add_fields(stage, letter, &of->fields);
        if (of->after != AFTER_NOTHING) continue;
        letter->state = LETTER_DUE;
        letter->due_ms = stage->mono_ms + of->wait_ms;
    }
}

// ---- hearing

static bool same_occasion(enum trial_occasion occasion, enum moment_kind kind)
{
    switch (occasion) {
    case AFTER_STARTED:
        return kind == MOMENT_STEP_STARTED;
    case AFTER_COMPLETED:
        return kind == MOMENT_STEP_COMPLETED;
    case AFTER_FAILED:
        return kind == MOMENT_STEP_FAILED || kind == MOMENT_ATTEMPT_FAILED;
    case AFTER_SKIPPED:
        return kind == MOMENT_STEP_SKIPPED;
    case AFTER_DELAYED:
        return kind == MOMENT_STEP_DELAYED;
    case AFTER_RUN_QUEUED:
        return kind == MOMENT_RUN_QUEUED;
    case AFTER_RUN_STARTED:
        return kind == MOMENT_RUN_STARTED;
    case AFTER_RUN_PAUSED:
        return kind == MOMENT_RUN_PAUSED;
    case AFTER_RUN_RESUMED:
        return kind == MOMENT_RUN_RESUMED;
    case AFTER_NOTHING:
        break;
    }
    return false;
}

static void call_signals(struct stage *stage, const struct stage_run *run, const struct moment *m)
{
    bool of_run = !moment_is_step(m->kind);
    if (of_run && run->prefix.len > 0) return;
    struct str path = {0};
    for (size_t i = 0; i < stage->letter_count; i++) {
        struct letter *letter = &stage->letters[i];
        if (!letter->of || letter->state != LETTER_WAITING || !same_occasion(letter->of->after, m->kind)) continue;
        if (!of_run && path.len == 0) path = stage_path(stage, run->id, m->step);
        if (!of_run && !key_fits(letter->of->key, path, m->logical)) continue;
        if (of_run && letter->of->cycle > 0 && letter->of->cycle != m->logical) continue;
        letter->state = LETTER_DUE;
        letter->due_ms = stage->mono_ms + letter->of->wait_ms;
    }
}

static bool asked_before(const struct stage *stage, const struct stage_run *run, struct str step)
{
    for (size_t i = 0; i < stage->letter_count; i++) {
        const struct letter *letter = &stage->letters[i];
        if (!letter->of && str_eq(letter->run, run->id) && str_eq(letter->signal.step, step)) return true;
    }
    return false;
}

static void answer_gate(struct stage *stage, const struct stage_run *run, struct str step, struct str path)
{
    const struct trial_gate *gate = script_gate(stage->options->script, path);
    if ((!gate && !stage->options->script->lenient) || asked_before(stage, run, step)) return;
    struct str kept = arena_copy(stage->arena, step);
    struct letter *letter = letter_add(stage, gate && !gate->yes ? SIGNAL_REJECT : SIGNAL_APPROVE, run->id, kept);
    if (!letter || !kept.ptr) return;
    letter->state = LETTER_DUE;
    letter->due_ms = stage->mono_ms + (gate ? gate->takes_ms : 0);
    if (!gate) return;
    letter->signal.actor = gate->by;
    letter->signal.reason = gate->reason;
    add_fields(stage, letter, &gate->fields);
}

static bool delivered_before(const struct stage *stage, const struct stage_run *run, struct str id)
{
    for (size_t i = 0; i < stage->letter_count; i++) {
        const struct letter *letter = &stage->letters[i];
        if (str_eq(letter->run, run->id) && str_eq(json_text(json_key(&letter->signal.payload, "id")), id)) return true;
    }
    return false;
}

// The world outside: what is waited for happens, with what the script says, or with nothing.
static void deliver_event(struct stage *stage, const struct stage_run *run, const struct moment *m, struct str path)
{
    const struct trial_gate *gate = script_gate(stage->options->script, path);
    if ((!gate && !stage->options->script->lenient) || (gate && !gate->yes)) return; // it never happens
    struct str id = arena_format(stage->arena, "%.*s.%u.%u.%u", STR_ARG(path), m->visit, m->iteration, m->logical);
    if (!id.ptr || delivered_before(stage, run, id)) return;
    struct letter *letter = letter_add(stage, SIGNAL_DELIVER_EVENT, run->id, (struct str){0});
    struct str name = arena_copy(stage->arena, m->reason), correlation = arena_copy(stage->arena, m->detail);
    if (!letter || !name.ptr) return;
    letter->signal.payload = JSON_OF(stage->arena, {"event", json_string(name)}, {"id", json_string(id)},
                                     {"correlation", json_some(correlation)},
                                     {"data", gate && gate->fields.type == JSON_OBJECT ? gate->fields : json_object()});
    letter->state = LETTER_DUE;
    letter->due_ms = stage->mono_ms + (gate ? gate->takes_ms : 0);
}

void people_hear(struct stage *stage, const struct stage_run *run, const struct moment *m)
{
    call_signals(stage, run, m);
    if (m->kind == MOMENT_STEP_STARTED) {
        const struct program_step *step = path_step(run->program, m->step);
        if (step && step->kind == STEP_APPROVAL) answer_gate(stage, run, m->step, stage_path(stage, run->id, m->step));
    }
    if (m->kind == MOMENT_EVENT_AWAITED) deliver_event(stage, run, m, stage_path(stage, run->id, m->step));
    if (m->kind == MOMENT_RUN_QUEUED && run->program->requires_approval)
        answer_gate(stage, run, STR(""), stage_path(stage, run->id, STR("RUN")));
}

// ---- sending

int64_t people_due(const struct stage *stage)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < stage->letter_count; i++)
        if (stage->letters[i].state == LETTER_DUE && stage->letters[i].due_ms < due) due = stage->letters[i].due_ms;
    return due;
}

// A step of a child run: "sub/load" goes to the run whose steps are called "sub/...".
static struct str address(struct stage *stage, struct letter *letter)
{
    struct str step = letter->signal.step;
    size_t slash = step.len;
    while (slash > 0 && step.ptr[slash - 1] != '/') slash--;
    if (!letter->of || slash == 0) return letter->run;
    for (size_t i = 0; i < stage->run_count; i++) {
        if (!str_eq(stage->runs[i].prefix, str_slice(step, 0, slash))) continue;
        letter->signal.step = str_slice(step, slash, step.len);
        return letter->run = stage->runs[i].id;
    }
    return letter->run;
}

void people_refused(struct stage *stage, const struct letter *letter, const char *why)
{
    if (!letter->of || stage->lives > 0) return;
    struct trial_fault *fault = result_fault(stage->result, letter->of->line, letter->of->column, STR("signals"));
    fault->expected = trial_format(stage->arena, "%s is decided", signal_name(letter->signal.type));
    fault->got = trial_format(stage->arena, "%s", why);
}

// As it comes out of any door: written down and read again, so that it is the same wherever it is decided. One that no door would let in
// stays as it is.
static void seal(struct stage *stage, struct signal *signal)
{
    struct error ignored = {0};
    struct signal sealed;
    struct str bytes;
    if (signal_encode(signal, stage->arena, &bytes, &ignored)) return;
    if (signal_decode(stage->options->contract, bytes, stage->arena, &sealed, &ignored) == OK) *signal = sealed;
}

void people_send(struct stage *stage)
{
    for (size_t i = 0; i < stage->letter_count && !stage->died; i++) {
        struct letter *letter = &stage->letters[i];
        if (letter->state != LETTER_DUE || letter->due_ms > stage->mono_ms) continue;
        struct error err = {0};
        letter->state = LETTER_SENT;
        letter->signal.id = (struct str){letter->id, UUID_SIZE - 1};
        stage_say(stage, "      %.*s sends %s %.*s", STR_ARG(letter->signal.actor), signal_name(letter->signal.type),
                  STR_ARG(letter->signal.step));
        struct str run = address(stage, letter);
        if (stage->options->actor.len) letter->signal.actor = stage->options->actor;
        seal(stage, &letter->signal);
        if (stage->host) {
            host_send(stage, letter, run);
            continue;
        }
        enum code rc = engine_signal(stage->engine, STR("default"), run, &letter->signal, &err);
        if (!rc || stage->died) continue;
        letter->state = LETTER_DECIDED;
        people_refused(stage, letter, err.message);
    }
}

void people_decided(struct stage *stage, const struct engine_decision *decision)
{
    for (size_t i = 0; i < stage->letter_count; i++) {
        struct letter *letter = &stage->letters[i];
        if (!str_is(decision->signal_id, letter->id)) continue;
        letter->state = LETTER_DECIDED;
        if (!letter->of || decision->duplicate) return;
        struct str wanted = letter->of->rejected;
        bool right = wanted.len ? !decision->accepted && str_eq(wanted, decision->error_code) : decision->accepted;
        if (right) return;
        struct trial_fault *fault = result_fault(stage->result, letter->of->line, letter->of->column, STR("signals"));
        const char *name = signal_name(letter->signal.type);
        fault->expected = wanted.len ? trial_format(stage->arena, "%s rejected: %.*s", name, STR_ARG(wanted))
                                     : trial_format(stage->arena, "%s accepted", name);
        fault->got = decision->accepted ? trial_format(stage->arena, "accepted")
                                        : trial_format(stage->arena, "rejected: %.*s, %.*s",
                                                       STR_ARG(decision->error_code), STR_ARG(decision->error_message));
        return;
    }
}

void people_again(struct stage *stage)
{
    for (size_t i = 0; i < stage->letter_count; i++) {
        struct letter *letter = &stage->letters[i];
        if (letter->state != LETTER_SENT) continue;
        letter->state = LETTER_DUE;
        letter->due_ms = stage->mono_ms;
    }
}

void people_end(struct stage *stage)
{
    for (size_t i = 0; i < stage->letter_count; i++) {
        const struct letter *letter = &stage->letters[i];
        if (letter->state != LETTER_WAITING) continue;
        const struct trial_signal *of = letter->of;
        struct trial_fault *fault = result_fault(stage->result, of->line, of->column, STR("signals"));
        fault->expected = trial_format(stage->arena, "%s after \"%.*s %s\"", signal_name(of->type),
                                       STR_ARG(of->key.len ? of->key : STR("run")), occasion_word(of->after));
        fault->got = STR("it was never sent: that did not happen");
    }
}
