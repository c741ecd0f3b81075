// Taking notes while a run is folded: what happened to each step, in each iteration, by which event.
#include "explain/inside.h"

#include "base/civil.h"

#include <string.h>

#define ARENA_BLOCK ((size_t)16 << 10)
#define ARENA_LIMIT ((size_t)UINT32_MAX) // a run may have as many outputs as its log holds

enum code explain_open(const struct program *program, const struct run_ids *ids, const struct kernel_env *env,
                       struct explain **out, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(ARENA_BLOCK, ARENA_LIMIT);
    struct explain *e = ARENA_NEW(&arena, struct explain);
    struct run *run = e ? run_new(program, ids) : NULL;
    if (!run) return error_nomem(err);
    e->run = run;
    e->program = program;
    e->env = *env;
    run->env = &e->env;
    e->arena = arena_take(&arena);
    arena_init(&e->scratch, ARENA_BLOCK, ARENA_LIMIT);
    map_init(&e->index, &e->arena);
    *out = e;
    return OK;
}

void explain_close(struct explain *e)
{
    if (!e) return;
    given_release(e);
    run_free(e->run);
    arena_release(&e->scratch);
    arena_release(&e->arena); // it lives inside it
}

// ---- finding

struct step_finding *note_find(const struct explain *e, struct str path)
{
    uint32_t at = map_get(&e->index, path);
    return at == MAP_NONE ? NULL : e->notes[at];
}

struct str scope_path(struct str path)
{
    for (size_t i = path.len; i > 1; i--)
        if (path.ptr[i - 1] == '.' && path.ptr[i - 2] == ']') return str_slice(path, 0, i);
    return (struct str){"", 0};
}

struct str sibling_path(struct str path, struct str id, struct arena *arena)
{
    struct str scope = scope_path(path);
    if (scope.len == 0) return id;
    char *text = arena_alloc(arena, scope.len + id.len + 1);
    if (!text) return (struct str){0};
    memcpy(text, scope.ptr, scope.len);
    memcpy(text + scope.len, id.ptr, id.len);
    return (struct str){text, scope.len + id.len};
}

const struct signal_finding *signal_find(const struct explain *e, struct str id)
{
    for (size_t i = 0; id.len > 0 && i < e->signal_count; i++)
        if (str_eq(e->signals[i].id, id)) return &e->signals[i];
    return NULL;
}

enum code note_for(struct explain *e, struct str path, uint32_t step, struct step_finding **out, struct error *err)
{
    *out = note_find(e, path);
    if (*out) return OK;
    struct step_finding **grown =
        arena_grow(&e->arena, e->notes, e->note_count, e->note_count + 1, sizeof(*grown), &e->note_capacity);
    struct step_finding *note = grown ? ARENA_NEW(&e->arena, struct step_finding) : NULL;
    struct str kept = note ? arena_copy(&e->arena, path) : (struct str){0};
    if (!kept.ptr) return error_nomem(err);
    e->notes = grown;
    note->path = kept;
    note->step = step;
    note->state = NODE_WAITING;
    if (!map_put(&e->index, kept, (uint32_t)e->note_count, NULL)) return error_nomem(err);
    e->notes[e->note_count++] = note;
    *out = note;
    return OK;
}

// "load", from the second visit on "load:run:2"; into `text` when it is composed.
static struct str visit_path(const struct explain *e, uint32_t step, uint32_t visit, struct buf *text)
{
    struct str id = e->program->steps[step].id;
    if (visit <= 1) return id;
    buf_add(text, id);
    buf_printf(text, ":run:%u", visit);
    return buf_str(text);
}

struct step_finding *visit_find(const struct explain *e, uint32_t step, uint32_t visit)
{
    struct buf text SCOPED(buf_release) = buf_of(4096);
    return note_find(e, visit_path(e, step, visit, &text));
}

enum code visit_note(struct explain *e, uint32_t step, uint32_t visit, struct step_finding **out, struct error *err)
{
    struct buf text SCOPED(buf_release) = buf_of(4096);
    struct str path = visit_path(e, step, visit, &text);
    enum code rc = buf_ok(&text) ? note_for(e, path, step, out, err) : error_nomem(err);
    if (!rc) (*out)->visit = visit > 0 ? visit : 1;
    return rc;
}

// ---- keeping

static enum code keep(struct explain *e, struct str *to, struct str from, struct error *err)
{
    if (from.len == 0) {
        *to = (struct str){"", 0};
        return OK;
    }
    *to = arena_copy(&e->arena, from);
    return to->ptr ? OK : error_nomem(err);
}

static enum code keep_fault(struct explain *e, struct fault *to, const struct fault *from, struct error *err)
{
    *to = *from;
    enum code rc = keep(e, &to->code, from->code, err);
    if (!rc) rc = keep(e, &to->message, from->message, err);
    if (!rc) rc = keep(e, &to->category, from->category, err);
    if (!rc) rc = keep(e, &to->detail, from->detail, err);
    return rc;
}

static enum code note_start(struct explain *e, struct step_finding *note, const struct moment *m,
                            struct log_position at, struct error *err)
{
    if (!ARENA_ROOM(&e->arena, note->attempts, note->attempt_count, &note->attempt_capacity)) return error_nomem(err);
    struct attempt_finding *attempt = &note->attempts[note->attempt_count++];
    *attempt =
        (struct attempt_finding){.logical = m->logical, .engine = m->engine, .start = at, .started_ms = m->at_ms};
    attempt->cause = note->join.reuse ? START_REUSE : START_JOIN;
    if (note->state == NODE_HELD) attempt->cause = START_BY_HAND;
    if (note->state == NODE_DELAYED) attempt->cause = START_POLICY;
    if (m->run_ref.len > 0) {
        enum code rc = keep(e, &note->child_run, m->run_ref, err);
        if (rc) return rc;
    }
    if (e->program->steps[note->step].kind != STEP_APPROVAL) return OK;
    // What the person was asked, with the values of that time.
    struct json with;
    struct error ignored = {0};
    arena_reset(&e->scratch);
    if (kernel_render(e->run, note->step, &e->env, &e->scratch, &with, &ignored) != OK)
        with = e->program->steps[note->step].with;
    return keep(e, &note->message, json_text(json_key(&with, "message")), err);
}

static enum code note_end(struct explain *e, struct step_finding *note, const struct moment *m, struct log_position at,
                          enum attempt_end end, struct error *err)
{
    struct attempt_finding *attempt = note->attempt_count ? &note->attempts[note->attempt_count - 1] : NULL;
    if (!attempt || attempt->end != ATTEMPT_OPEN) return OK; // skipped before it started, or between two attempts
    attempt->end = end;
    attempt->over = at;
    attempt->ended_ms = m->at_ms;
    attempt->duration_ms = m->duration_ms;
    return end == ATTEMPT_FAILED ? keep_fault(e, &attempt->fault, &m->fault, err) : OK;
}

static enum code note_output(struct explain *e, struct step_finding *note, const struct moment *m, struct error *err)
{
    note->has_blob = m->has_blob;
    note->blob = m->blob;
    note->blob_size = m->blob_size;
    note->truncated = m->truncated;
    enum code rc = keep(e, &note->actor, m->actor, err);
    if (!rc) rc = keep(e, &note->reused_from, m->run_ref, err);
    if (rc || m->value.type == 0 || m->has_blob) return rc;
    return json_copy(&e->arena, &m->value, &note->value) ? OK : error_nomem(err);
}

static enum code note_step(struct explain *e, struct step_finding *note, const struct moment *m, struct log_position at,
                           struct error *err)
{
    struct attempt_finding *attempt = note->attempt_count ? &note->attempts[note->attempt_count - 1] : NULL;
    enum code rc = OK;
    bool task = m->task.len > 0 || m->iteration > 0; // of a playbook: the step goes on
    switch (task ? (int)MOMENT_UNKNOWN : (int)m->kind) {
    case MOMENT_STEP_STARTED:
        return note_start(e, note, m, at, err);
    case MOMENT_STEP_COMPLETED:
        rc = note_end(e, note, m, at, ATTEMPT_DONE, err);
        return rc ? rc : note_output(e, note, m, err);
    case MOMENT_ATTEMPT_FAILED:
    case MOMENT_STEP_FAILED:
        rc = note_end(e, note, m, at, ATTEMPT_FAILED, err);
        return rc ? rc : keep(e, &note->actor, m->actor, err);
    case MOMENT_STEP_SKIPPED:
        rc = note_end(e, note, m, at, ATTEMPT_SKIPPED, err);
        if (!rc) rc = keep(e, &note->skip_reason, m->reason, err);
        return rc ? rc : keep(e, &note->skip_detail, m->detail, err);
    case MOMENT_ITERATION_STARTED:
        note->iteration = m->logical;
        return OK;
    case MOMENT_STEP_REDISPATCHED:
        if (attempt) attempt->engine = m->engine;
        if (attempt) attempt->redispatch = at;
        return OK;
    case MOMENT_STEP_DELAYED:
        if (attempt) attempt->due = at;
        if (attempt) attempt->due_ms = m->due_ms;
        return OK;
    default:
        return OK;
    }
}

// An answer without a step is for the only gate that waits, or for the run that has not started.
static enum code signal_target(struct explain *e, const struct moment *m, struct str *out, struct error *err)
{
    enum signal_type type = signal_parse(m->signal_type);
    if (m->signal_step.len > 0) return keep(e, out, m->signal_step, err);
    *out = (struct str){"", 0};
    if ((type != SIGNAL_APPROVE && type != SIGNAL_REJECT) || m->kind == MOMENT_SIGNAL_REJECTED) return OK;
    if (e->run->status == RUN_STATUS_PENDING) return OK;
    for (size_t i = 0; i < e->note_count; i++)
        if (e->program->steps[e->notes[i]->step].kind == STEP_APPROVAL && e->notes[i]->state == NODE_RUNNING)
            *out = e->notes[i]->path;
    return OK;
}

static enum code signal_add(struct explain *e, struct str id, struct signal_finding **out, struct error *err)
{
    *out = NULL;
    for (size_t i = 0; i < e->signal_count; i++)
        if (str_eq(e->signals[i].id, id)) *out = &e->signals[i];
    if (*out) return OK;
    if (!ARENA_ROOM(&e->arena, e->signals, e->signal_count, &e->signal_capacity)) return error_nomem(err);
    *out = &e->signals[e->signal_count++];
    **out = (struct signal_finding){0};
    return keep(e, &(*out)->id, id, err);
}

static enum code note_signal(struct explain *e, const struct moment *m, struct log_position at, struct error *err)
{
    struct signal_finding *s;
    enum code rc = signal_add(e, m->signal_id, &s, err);
    if (rc) return rc;
    s->accepted = m->kind == MOMENT_SIGNAL_ACCEPTED;
    s->at = at;
    s->at_ms = m->at_ms;
    const struct {
        struct str *to;
        struct str from;
    } texts[] = {{&s->type, m->signal_type},
                 {&s->reason, m->reason},
                 {&s->actor, m->actor},
                 {&s->role, m->role},
                 {&s->decision_id, m->decision_id},
                 {&s->error_code, m->fault.code},
                 {&s->error_message, m->fault.message}};
    for (size_t i = 0; !rc && i < ARRAY_COUNT(texts); i++) rc = keep(e, texts[i].to, texts[i].from, err);
    return rc ? rc : signal_target(e, m, &s->step, err);
}

enum code explain_decision(struct explain *e, const struct json *record, uint64_t seq, struct error *err)
{
    struct signal_finding *s;
    struct str id = json_text(json_key(record, "signalId"));
    if (id.len == 0 || signal_find(e, id)) return OK;                                    // its moment tells the same
    if (str_is(json_text(json_key(record, "decision")), "REVISION_REQUIRED")) return OK; // nothing is decided yet
    enum code rc = signal_add(e, id, &s, err);
    s->accepted = str_is(json_text(json_key(record, "decision")), "ACCEPTED");
    s->at = (struct log_position){seq, true};
    if (!civil_parse(json_text(json_key(record, "engineProcessedAt")), &s->at_ms)) s->at_ms = e->at_ms;
    const struct {
        struct str *to;
        const char *path;
    } texts[] = {{&s->type, "signalType"},
                 {&s->step, "signalPayload.stepId"},
                 {&s->reason, "audit.reason"},
                 {&s->actor, "audit.actorId"},
                 {&s->role, "audit.actorRole"},
                 {&s->decision_id, "signalDecisionId"},
                 {&s->error_code, "engineResult.errorCode"},
                 {&s->error_message, "reason"}};
    for (size_t i = 0; !rc && i < ARRAY_COUNT(texts); i++)
        rc = keep(e, texts[i].to, json_text(json_at(record, str_from(texts[i].path))), err);
    return rc;
}

static enum code note_run(struct explain *e, const struct moment *m, struct log_position at, struct error *err)
{
    if (m->kind == MOMENT_SIGNAL_ACCEPTED || m->kind == MOMENT_SIGNAL_REJECTED) return note_signal(e, m, at, err);
    if (moment_is_terminal(m->kind)) e->end = at;
    if (m->kind != MOMENT_RUN_PAUSED) return OK;
    e->pause = at;
    e->pause_ms = m->at_ms;
    enum code rc = keep(e, &e->pause_reason, m->reason, err);
    return rc ? rc : keep(e, &e->pause_signal, m->signal_id, err);
}

// ---- events, for diffs

static bool tells_the_path(enum moment_kind kind)
{
    return kind != MOMENT_UNKNOWN && kind != MOMENT_STEP_DELAYED && kind != MOMENT_STEP_REDISPATCHED &&
           kind != MOMENT_ATTEMPT_RESTS && kind != MOMENT_LATE_RESULT && kind != MOMENT_SIGNAL_REJECTED;
}

static uint64_t content_of(const struct moment *m)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)4 << 20);
    if (m->has_blob)
        buf_hex(&text, m->blob.b, SHA256_SIZE);
    else if (m->value.type != 0)
        json_canon(&text, &m->value);
    buf_printf(&text, "|%.*s|%d", STR_ARG(m->fault.code), m->fault.has_exit ? m->fault.exit_code : -1);
    if (m->kind == MOMENT_STEP_SKIPPED) buf_add(&text, m->reason);
    if (m->kind == MOMENT_SIGNAL_ACCEPTED) buf_add(&text, m->signal_type);
    return str_hash(buf_str(&text));
}

static enum code note_event(struct explain *e, const struct moment *m, const struct step_finding *note,
                            struct log_position at, struct error *err)
{
    if (!tells_the_path(m->kind)) return OK;
    if (!ARENA_ROOM(&e->arena, e->events, e->event_count, &e->event_capacity)) return error_nomem(err);
    e->events[e->event_count++] = (struct event_finding){.kind = m->kind,
                                                         .note = note ? map_get(&e->index, note->path) : NOTE_RUN,
                                                         .logical = m->logical,
                                                         .seq = at.seq,
                                                         .content = content_of(m)};
    return OK;
}

static void note_state(struct explain *e, struct step_finding *note, const struct moment *m, struct log_position at)
{
    enum node_state state = kernel_state(e->run, note->step);
    struct run_attempt attempt = kernel_attempt(e->run, note->step);
    if (state != note->state || m->kind == MOMENT_STEP_STARTED) {
        note->at = at;
        note->at_ms = m->at_ms;
    }
    note->state = state;
    note->base = attempt.base;
    note->due_ms = attempt.due_ms;
}

enum code explain_fold(struct explain *e, const struct moment *m, uint64_t seq, struct error *err)
{
    bool ended = run_status_terminal(e->run->status);
    struct step_finding *note = NULL;
    enum code rc = OK;
    enum vocabulary words = program_vocabulary(e->program);
    struct log_position at = {seq, m->kind != MOMENT_UNKNOWN && !moment_word(m->kind, words)};
    e->seq = seq;
    if (m->at_ms > e->at_ms) e->at_ms = m->at_ms;
    // Kept for audit, or what its children do: nothing of it is a decision about the step.
    bool aside = m->kind == MOMENT_LATE_RESULT || m->kind == MOMENT_LIST_STARTED || m->kind == MOMENT_CHILD_ENDED ||
                 m->kind == MOMENT_EVENT_AWAITED || m->kind == MOMENT_ATTEMPT_RESTS;
    if (ended || aside) return kernel_fold(e->run, m, err);
    uint32_t step = moment_is_step(m->kind) ? kernel_find(e->run, m->step) : PROGRAM_TOP;
    if (step != PROGRAM_TOP && e->program->net)
        rc = visit_note(e, step, m->visit, &note, err);
    else if (step != PROGRAM_TOP)
        rc = note_for(e, m->step, step, &note, err);
    if (!rc && note && e->program->net) rc = net_note(e, m, note, at, err);
    if (!rc && (!note || !e->program->net)) rc = judge_moment(e, m, note, at, err);
    if (!rc && !note) rc = note_run(e, m, at, err);
    if (!rc) rc = kernel_fold(e->run, m, err);
    if (!rc) rc = given_note(e, m, step, at, err);
    if (!rc && note) rc = note_step(e, note, m, at, err);
    if (!rc && note) note_state(e, note, m, at);
    return rc ? rc : note_event(e, m, note, at, err);
}
