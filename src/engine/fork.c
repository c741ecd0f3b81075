// What a new run would take over from another one: the source is read and folded up to an event, the kernel says what
// becomes of each step, and a first turn is tried in memory, so that what is announced is what will happen.
#include "engine/fork.h"

#include "json/make.h"

#include <stdlib.h>

// ---- reading the source
struct reading {
    struct fork *fork;
    struct moment *moments;
    uint64_t *seqs;
    size_t count, capacity, seq_capacity;
    struct preface *decisions;
    size_t decision_count, decision_capacity;
    bool started; // the facts of the start are known
    struct error *err;
};

static enum code copy_moment(struct arena *arena, const struct moment *moment, struct moment *out, struct error *err)
{
    struct str bytes;
    enum code rc = contract_encode_ledger(moment, arena, &bytes, err);
    return rc ? rc : contract_decode_ledger(bytes, arena, out, err);
}

static enum code keep_decision(struct reading *reading, const struct record *record)
{
    struct arena *arena = reading->fork->private->arena;
    if (!ARENA_ROOM(arena, reading->decisions, reading->decision_count, &reading->decision_capacity))
        return error_nomem(reading->err);
    struct preface *note = &reading->decisions[reading->decision_count];
    *note = (struct preface){.kind = STR("decision"), .signal_id = arena_copy(arena, record->signal_id)};
    if (!note->signal_id.ptr) return error_nomem(reading->err);
    enum code rc = canonical(arena, record->bytes, &note->body, reading->err);
    if (!rc) reading->decision_count++;
    return rc;
}

static enum code read_one(void *context, const struct record *record, const struct moment *moment,
                          const struct seal *seal)
{
    struct reading *reading = context;
    struct fork *fork = reading->fork;
    struct arena *arena = fork->private->arena;
    (void)seal;
    bool later = record->seq > fork->at || fork->at == 0;
    if (later && reading->started && moment && fork->program->net) {
        enum code rc = copy_moment(arena, moment, &fork->private->next, reading->err);
        if (rc) return rc;
    }
    if (later && reading->started && (moment || !fork->program->net)) return E_CANCELLED; // seen enough
    if (!moment) return str_is(record->type, "decision") && !later ? keep_decision(reading, record) : OK;
    struct moment copy;
    if (later && !moment->start) return OK;
    enum code rc = copy_moment(arena, moment, &copy, reading->err);
    if (rc) return rc;
    if (copy.start && !reading->started) fork->facts = *copy.start;
    reading->started = reading->started || copy.start;
    if (later) return OK;
    if (!ARENA_ROOM(arena, reading->moments, reading->count, &reading->capacity) ||
        !ARENA_ROOM(arena, reading->seqs, reading->count, &reading->seq_capacity))
        return error_nomem(reading->err);
    reading->seqs[reading->count] = record->seq;
    reading->moments[reading->count++] = copy;
    return OK;
}

static enum code read_source(struct store *store, struct reading *reading, struct error *err)
{
    const struct run_ids *ids = &reading->fork->head.ids;
    enum code rc = store_replay(store, ids->tenant, ids->run, read_one, reading, err);
    if (rc && rc != E_CANCELLED) return rc;
    if (err) *err = (struct error){0};
    if (reading->started) return OK;
    return error_set(err, E_CORRUPT, "run %.*s: the log does not begin with a start", STR_ARG(ids->run));
}

static enum code fold_source(struct fork *fork, struct error *err)
{
    struct fork_private *private = fork->private;
    private->source = run_new(fork->before, &fork->head.ids);
    if (!private->source) return error_nomem(err);
    fork->source = private->source;
    private->source->env = &private->env;
    for (uint32_t i = 0; i < private->whole.count; i++) {
        enum code rc = kernel_fold(private->source, &private->whole.moments[i], err);
        if (rc) return rc;
    }
    return OK;
}

// ---- what is to be different
// A default that the source ran with is not a choice: another document brings its own.
static bool is_default(const struct fork *fork, const struct json_member *member)
{
    const struct json *usual = json_get(&fork->before->inputs, member->key);
    return fork->program != fork->before && usual && json_equal(usual, &member->value);
}

static enum code choose_inputs(struct fork *fork, const struct json *wanted, struct error *err)
{
    struct arena *arena = fork->private->arena;
    const struct json *old = &fork->facts.inputs;
    struct json given = json_object(), now;
    // A past has the changes of the inputs in it; results alone do not.
    if (fork->results_only && !inputs_now(fork->source, arena, &now)) return error_nomem(err);
    if (fork->results_only) old = &now;
    json_fill(arena, &given, wanted);
    for (uint32_t i = 0; json_is(old, JSON_OBJECT) && i < old->count; i++)
        if (!json_get(wanted, old->members[i].key) && !is_default(fork, &old->members[i]))
            json_set(arena, &given, old->members[i].key, old->members[i].value);
    enum code rc = json_ok(&given) ? check_inputs(fork->program, &given, err) : error_nomem(err);
    if (rc) return rc;
    rc = merge_inputs(fork->program, &given, arena, &fork->inputs, err);
    if (rc) return rc == E_NOMEM ? error_nomem(err) : rc;
    fork->changed = json_array();
    for (uint32_t i = 0; i < fork->inputs.count; i++) {
        const struct json *before = json_get(old, fork->inputs.members[i].key);
        if (before && json_equal(before, &fork->inputs.members[i].value)) continue;
        json_append(arena, &fork->changed, json_string(fork->inputs.members[i].key));
    }
    for (uint32_t i = 0; json_is(old, JSON_OBJECT) && i < old->count; i++)
        if (!json_get(&fork->inputs, old->members[i].key))
            json_append(arena, &fork->changed, json_string(old->members[i].key));
    return json_made(&fork->changed, err);
}

static enum code find_step(const struct fork *fork, struct str id, uint32_t *out, struct error *err)
{
    *out = program_find(fork->program, PROGRAM_TOP, id);
    if (*out != PROGRAM_TOP) return OK;
    bool nested = str_find(id, '[', 0) < id.len;
    return error_set(err, E_NOT_FOUND,
                     nested ? "%.*s: a step inside a loop has no fate of its own; name the loop"
                            : "the document has no step \"%.*s\"",
                     STR_ARG(id));
}

static enum code mark_steps(const struct fork *fork, const struct fork_request *request, bool **asked, bool **given,
                            struct error *err)
{
    struct arena *arena = fork->private->arena;
    *asked = ARENA_ARRAY(arena, fork->program->top_count, bool);
    *given = ARENA_ARRAY(arena, fork->program->top_count, bool);
    if (!*asked || !*given) return error_nomem(err);
    uint32_t step;
    enum code rc = OK;
    for (size_t i = 0; !rc && i < request->from_count; i++) {
        rc = find_step(fork, request->from[i], &step, err);
        if (!rc) (*asked)[step] = true;
    }
    for (size_t i = 0; !rc && i < request->output_count; i++) {
        rc = find_step(fork, request->outputs[i].step, &step, err);
        if (!rc) (*given)[step] = true;
    }
    return rc;
}

// An output as the log will give it back: in the event when it is small, else as a blob.
static enum code keep_output(struct fork *fork, const struct json *value, struct reuse *out, struct error *err)
{
    struct fork_private *private = fork->private;
    struct buf bytes SCOPED(buf_release) = buf_of(RESULT_MAX);
    json_canon(&bytes, value);
    enum code rc = buf_ok(&bytes) ? OK : error_set(err, E_LIMIT, RESULT_TOO_LARGE);
    if (!rc && bytes.len <= engine_limits_default.inline_max) {
        rc = canonical(private->arena, buf_str(&bytes), &out->value, err);
    } else if (!rc) {
        struct str kept = arena_copy(private->arena, buf_str(&bytes));
        out->blob = sha256(kept);
        out->blob_size = kept.len;
        out->has_blob = true;
        private->blobs[private->blob_count++] = (struct append_blob){.sha256 = out->blob, .bytes = kept};
        if (!kept.ptr) rc = error_nomem(err);
    }
    return rc;
}

static enum code give_outputs(struct fork *fork, const struct fork_request *request, struct error *err)
{
    struct fork_private *private = fork->private;
    const struct program *program = fork->program;
    size_t room = (size_t) private->reuse_count + request->output_count + 1;
    struct reuse *reuse = ARENA_ARRAY(private->arena, room, struct reuse);
    private->blobs = ARENA_ARRAY(private->arena, request->output_count + 1, struct append_blob);
    if (!reuse || !private->blobs) return error_nomem(err);
    for (uint32_t i = 0; i < private->reuse_count; i++) reuse[i] = private->reuse[i];
    private->reuse = reuse;
    // After the reused ones, none of which hangs on them, and in topological order.
    for (uint32_t i = 0; request->output_count > 0 && i < program->top_count; i++) {
        struct str id = program->steps[program->order[i]].id;
        for (size_t k = 0; k < request->output_count; k++) {
            if (!str_eq(request->outputs[k].step, id)) continue;
            struct reuse *given = &reuse[private->reuse_count];
            *given = (struct reuse){.step = program->order[i]};
            enum code rc = keep_output(fork, &request->outputs[k].value, given, err);
            if (rc) return rc;
            private->reuse_count++;
            break;
        }
    }
    return OK;
}

// What the fold does not keep: files, and whether the output was cut.
static void recall_results(const struct fork *fork)
{
    struct fork_private *private = fork->private;
    for (uint32_t i = 0; i < private->whole.count; i++) {
        const struct moment *m = &private->whole.moments[i];
        if (m->kind != MOMENT_STEP_COMPLETED || (m->artifacts.type == 0 && !m->truncated)) continue;
        for (uint32_t k = 0; k < private->reuse_count; k++) {
            if (!str_eq(fork->program->steps[private->reuse[k].step].id, m->step)) continue;
            private->reuse[k].artifacts = m->artifacts;
            private->reuse[k].truncated = m->truncated;
        }
    }
}

static enum code decide_fates(struct fork *fork, const struct fork_request *request, struct error *err)
{
    struct fork_private *private = fork->private;
    bool *asked, *given;
    enum code rc = mark_steps(fork, request, &asked, &given, err);
    if (rc) return rc;
    struct revision revision = {.source = fork->source,
                                .program = fork->program,
                                .inputs = &fork->inputs,
                                .asked = asked,
                                .given = given,
                                .set = &request->inputs,
                                .results_only = fork->results_only};
    struct step_fate *fates;
    rc = kernel_fates(&revision, private->arena, &fates);
    if (!rc && fork->results_only)
        rc = kernel_results(&revision, fates, private->arena, &private->reuse, &private->reuse_count);
    if (!rc && !fork->results_only)
        rc = kernel_past_of(&private->whole, &revision, fates, private->arena, &private->past);
    if (rc) return error_nomem(err);
    fork->fates = fates;
    recall_results(fork);
    private->past.from_run = fork->head.ids.run;
    return give_outputs(fork, request, err);
}

// ---- the first turn, tried
static enum code read_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    struct fork_private *private = context;
    for (size_t i = 0; i < private->blob_count; i++)
        if (digest_eq(&private->blobs[i].sha256, sha256)) {
            *out = private->blobs[i].bytes;
            return OK;
        }
    return store_blob(private->store, sha256, arena, out, err);
}

static enum code check_outputs(const struct fork *fork, const struct fork_request *request, struct error *err)
{
    for (size_t i = 0; i < request->output_count; i++) {
        uint32_t step = program_find(fork->program, PROGRAM_TOP, request->outputs[i].step);
        if (kernel_state(fork->run, step) == NODE_SUCCESS) continue;
        return error_set(err, E_CONFLICT, "the output of \"%.*s\" cannot be given: %s",
                         STR_ARG(request->outputs[i].step),
                         fork->run->status == RUN_STATUS_CANCELLED || fork->run->cancelling
                             ? "a step has cancelled the run there"
                             : "steps that it depends on have not ended there");
    }
    return OK;
}

static enum code try_turn(struct fork *fork, const struct fork_request *request, struct error *err)
{
    struct fork_private *private = fork->private;
    struct start_facts *facts = ARENA_NEW(private->arena, struct start_facts);
    struct run_ids ids = fork->head.ids;
    ids.run = STR("preview");
    private->run = run_new(fork->program, &ids);
    if (!facts || !private->run) return error_nomem(err);
    fork->run = private->run;
    *facts = fork->facts;
    facts->inputs = fork->inputs;
    facts->requires_approval = fork->program->requires_approval;
    facts->admission = (struct str){0}; // it was let in once
    facts->not_before_ms = 0;
    struct input input = {.kind = INPUT_START,
                          .now_ms = request->now_ms,
                          .start = facts,
                          .past = &private->past,
                          .reuse = private->reuse,
                          .reuse_count = private->reuse_count};
    struct kernel_env env = {.context = private, .blob = read_blob};
    struct outcome outcome = {.turn = private->arena};
    enum code rc = kernel_step(private->run, NULL, &input, &env, &outcome, err);
    return rc ? rc : check_outputs(fork, request, err);
}

// A gate before the start of a run is for the document that was approved.
static enum code check_gate(const struct fork *fork, const struct fork_request *request, struct error *err)
{
    if (!fork->program->requires_approval) return OK;
    bool same = digest_eq(&fork->program->sha256, &fork->before->sha256);
    bool waits = fork->results_only || fork->source->started_ms == 0; // at the gate: results are looked up behind it
    bool approved =
        fork->source->started_ms > 0 || (!fork->results_only && fork->source->status == RUN_STATUS_APPROVED);
    bool takes = fork->at > 0 && approved;
    if (waits ? request->output_count == 0 && (same || !takes) : same) return OK;
    return error_set(err, E_CONFLICT,
                     "\"%.*s\" waits for an approval before it starts, so it can take over nothing from a run that was "
                     "approved for something else",
                     STR_ARG(fork->program->plan_id));
}

// ---- opening and closing
static enum code open_programs(struct store *store, const struct fork_request *request, struct fork *fork,
                               struct error *err)
{
    struct program *before;
    enum code rc = engine_program(store, &fork->head, &before, err);
    if (rc) return rc;
    fork->before = before;
    fork->program = program_retain(request->program ? request->program : before);
    if (fork->program->kind == before->kind) return OK;
    return error_set(err, E_INVALID, "run %.*s is of a %s document, this one is a %s document",
                     STR_ARG(fork->head.ids.run), document_kind_name(before->kind),
                     document_kind_name(fork->program->kind));
}

static enum code past_of(struct fork *fork, const struct reading *reading)
{
    struct fork_private *private = fork->private;
    private->moments = reading->moments;
    private->seqs = reading->seqs;
    private->moment_count = reading->count;
    const struct moment *next = private->next.kind != MOMENT_UNKNOWN ? &private->next : NULL;
    if (fork->program->net) return kernel_net_past(reading->moments, reading->count, next, private->arena, &private->whole);
    return kernel_past(fork->before, reading->moments, reading->count, private->arena, &private->whole);
}

static enum code open_all(struct store *store, const struct fork_request *request, struct fork *fork, struct error *err)
{
    struct fork_private *private = fork->private;
    enum code rc = store_head(store, request->tenant, request->source, private->arena, &fork->head, err);
    if (rc) return rc;
    uint64_t last = fork->head.last_seq;
    if (request->at != UINT64_MAX && request->at > last)
        return error_set(err, E_INVALID, "run %.*s has no event %llu; its log ends at %llu",
                         STR_ARG(fork->head.ids.run), (unsigned long long)request->at, (unsigned long long)last);
    fork->at = request->at == UINT64_MAX ? last : request->at;
    fork->results_only = request->results_only;
    struct reading reading = {.fork = fork, .err = err};
    rc = open_programs(store, request, fork, err);
    if (!rc) rc = read_source(store, &reading, err);
    if (rc) return rc;
    private->decisions = reading.decisions;
    private->decision_count = reading.decision_count;
    if (past_of(fork, &reading)) return error_nomem(err);
    rc = fold_source(fork, err);
    if (!rc) rc = choose_inputs(fork, &request->inputs, err);
    if (!rc) rc = fork->program->net ? fork_net_decide(fork, request, err) : decide_fates(fork, request, err);
    if (!rc) rc = check_gate(fork, request, err);
    return rc ? rc : try_turn(fork, request, err);
}

enum code fork_open(struct store *store, const struct fork_request *request, struct fork **out, struct error *err)
{
    struct fork *fork = calloc(1, sizeof(*fork));
    struct fork_private *private = calloc(1, sizeof(*private));
    struct arena *arena = arena_make((size_t)1 << 30);
    if (!fork || !private || !arena) {
        free(fork);
        free(private);
        arena_drop(arena);
        return error_nomem(err);
    }
    fork->private = private;
    private->arena = arena;
    private->store = store;
    private->now_ms = request->now_ms;
    private->env = (struct kernel_env){.context = private, .blob = read_blob};
    enum code rc = open_all(store, request, fork, err);
    if (rc)
        fork_close(fork);
    else
        *out = fork;
    return rc;
}

void fork_close(struct fork *fork)
{
    if (!fork) return;
    struct program *programs[] = {(struct program *)(uintptr_t)fork->before,
                                  (struct program *)(uintptr_t)fork->program};
    run_free(fork->private->source);
    run_free(fork->private->run);
    for (size_t i = 0; i < ARRAY_COUNT(programs); i++)
        if (programs[i]) program_release(programs[i]);
    arena_drop(fork->private->arena);
    free(fork->private);
    free(fork);
}
