// A run is lived again from its log, twice. Once its moments are folded, and what comes out is held against what the store says about the
// run. And once only its facts (how it was started, what came out of attempts, which signals and timers came) are given to the kernel,
// and what it decides is held against what was decided then.
//
// Which input a moment came of follows from the moment and the state: a result when its step was in flight, a timer when
// its step was waiting for one, a signal when it tells of one. Everything else must have been decided, so it must be what
// the kernel says next. What a run took over from another one was decided there: of a fork or a rerun the first batch is
// folded as it is. Four kinds of moments tell of accidents and are folded as they are: attempts begun again after a
// crash, results that came too late, lists of child runs that were not recorded when they began, and unknown ones.
//
// Playbooks go the same way; what came out of an attempt is put together from what the log says of it (replay_net.h). Of tries that were
// followed by another one the result is kept nowhere: a decision that comes out differently without it is taken as recorded, and counted.
#include "archive/archive.h"
#include "archive/replay_net.h"

#include "engine/engine.h"
#include "view/view.h"

#include <stdio.h>
#include <string.h>

struct replay {
    struct store *store;
    const struct run_head *head;
    struct replay_report *report;
    struct arena kept; // of the whole replay
    struct arena turn; // of the last input
    struct arena given; // what came out of the last attempt of a playbook
    struct error *err;
    struct kernel_env env;
    // first life
    struct run *folded;
    struct run_view view;
    struct reuse *reuse; // what the start took over from another run, in order
    uint32_t reuse_count;
    size_t reuse_capacity;
    uint32_t reuse_sure;   // of them: up to the last one that was completed by another run
    struct json *payloads; // {"id":..., "payload":...} of decisions
    size_t payload_count, payload_capacity;
    struct net_answers answers; // playbooks
    uint64_t told;              // moments so far
    // second life
    struct run *again;
    struct run_holds holds; // of it: all that is in flight
    struct outcome outcome;
    size_t expected;    // of the outcome: the next one that must be in the log
    uint64_t ordinal;   // of the moment that is being looked at: 1, 2, ...
    uint64_t signal_at; // of the signal that the outcome came of; 0 = of something else
    bool idle;          // that signal was taken as one that came while nobody drove the run
    uint64_t look_at;   // of the first moment of an outcome that came of no fact; 0 = it came of one
    bool recovered;     // it was taken as that of an engine which took the run over
    int64_t taken_ms;   // when what came from another run was recorded, and how it went on at once; 0 = nothing came
    const struct net_answer *answer; // that the outcome came of; NULL: it came of something else
    bool guessed;                    // its rules read a result that is kept nowhere
    uint64_t as_recorded;            // moments up to this ordinal are taken as they are
    bool over;                       // found a difference
};

// ---- the first life

static enum code note_reuse(struct replay *replay, const struct moment *moment)
{
    bool reused = moment->kind == MOMENT_STEP_COMPLETED && moment->run_ref.len > 0;
    if (!reused && moment->kind != MOMENT_STEP_SKIPPED) return OK;
    if (!ARENA_ROOM(&replay->kept, replay->reuse, replay->reuse_count, &replay->reuse_capacity))
        return error_nomem(replay->err);
    struct reuse *reuse = &replay->reuse[replay->reuse_count++];
    *reuse = (struct reuse){.step = kernel_find(replay->folded, moment->step),
                            .skipped = !reused,
                            .from_run = moment->run_ref,
                            .value = moment->value,
                            .artifacts = moment->artifacts,
                            .blob = moment->blob,
                            .has_blob = moment->has_blob,
                            .blob_size = moment->blob_size,
                            .truncated = moment->truncated};
    if (!ARENA_KEEP(&replay->kept, &reuse->from_run) || !json_keep(&replay->kept, &reuse->value) ||
        !json_keep(&replay->kept, &reuse->artifacts))
        return error_nomem(replay->err);
    if (reused) replay->reuse_sure = replay->reuse_count;
    return OK;
}

// The payload of a signal stands in its decision record only.
static enum code note_decision(struct replay *replay, const struct record *record)
{
    struct json body;
    struct str bytes = arena_copy(&replay->kept, record->bytes);
    if (!bytes.ptr) return error_nomem(replay->err);
    enum code rc = json_parse(bytes, &json_limits_record, &replay->kept, &body, replay->err);
    if (rc) return rc == E_NOMEM ? rc : OK; // another kind of entry, or a redacted one
    if (!ARENA_ROOM(&replay->kept, replay->payloads, replay->payload_count, &replay->payload_capacity))
        return error_nomem(replay->err);
    replay->payloads[replay->payload_count++] = body;
    return OK;
}

static enum code fold_first(void *context, const struct record *record, const struct moment *moment,
                            const struct seal *seal)
{
    struct replay *replay = context;
    (void)seal;
    replay->report->event_count += record->ledger_seq == 0;
    if (!moment) {
        enum code rc = note_decision(replay, record);
        if (!rc && record->signal_id.len) rc = kernel_decided(replay->folded, record->signal_id, replay->err);
        return rc;
    }
    enum code rc = kernel_fold(replay->folded, moment, replay->err);
    if (rc == E_CORRUPT) {
        error_wrap(replay->err, "run %.*s, event %llu", STR_ARG(replay->head->ids.run),
                   (unsigned long long)record->seq);
        return rc;
    }
    if (!rc) rc = note_reuse(replay, moment);
    if (!rc && !answers_note(&replay->answers, moment, ++replay->told)) rc = error_nomem(replay->err);
    if (!rc && !view_fold(&replay->view, moment, record->seq)) rc = error_nomem(replay->err);
    return rc;
}

static void state_differs(struct replay *replay, const char *what, const char *stored, const char *folded)
{
    struct replay_report *report = replay->report;
    if (report->state_differs) return;
    report->state_differs = true;
    snprintf(report->state, sizeof(report->state), "%s: the store says %s, the log %s", what, stored, folded);
}

static void compare_number(struct replay *replay, const char *what, int64_t stored, int64_t folded)
{
    char a[24], b[24];
    snprintf(a, sizeof(a), "%lld", (long long)stored);
    snprintf(b, sizeof(b), "%lld", (long long)folded);
    if (stored != folded) state_differs(replay, what, a, b);
}

// The summary is a fold of the log that the owner keeps beside it.
static void compare_state(struct replay *replay)
{
    const struct run_summary *stored = &replay->head->summary;
    struct run_summary folded;
    engine_summary(replay->folded, &folded);
    if (stored->status != folded.status)
        state_differs(replay, "status", run_status_name(stored->status), run_status_name(folded.status));
    if (replay->view.status != folded.status)
        state_differs(replay, "status", run_status_name(replay->view.status), run_status_name(folded.status));
    if (strcmp(stored->substatus, folded.substatus) != 0 && strcmp(stored->substatus, STANDING_IMPORTED) != 0)
        state_differs(replay, "substatus", stored->substatus, folded.substatus);
    compare_number(replay, "steps in all", stored->counts.total, folded.counts.total);
    compare_number(replay, "completed steps", stored->counts.completed, folded.counts.completed);
    compare_number(replay, "failed steps", stored->counts.failed, folded.counts.failed);
    compare_number(replay, "skipped steps", stored->counts.skipped, folded.counts.skipped);
    compare_number(replay, "running steps", stored->running, folded.running);
    compare_number(replay, "created", stored->created_ms, folded.created_ms);
    compare_number(replay, "started", stored->started_ms, folded.started_ms);
    compare_number(replay, "ended", stored->ended_ms, folded.ended_ms);
}

// ---- the second life: words

static void tell(char out[REPLAY_TEXT], const struct moment *moment)
{
    struct str detail = {0};
    if (moment->kind == MOMENT_STEP_SKIPPED) detail = moment->reason;
    if (moment->fault.code.len) detail = moment->fault.code;
    if (moment->signal_type.len) detail = moment->signal_type;
    int len = snprintf(out, REPLAY_TEXT, "%s", moment_name(moment->kind));
    if (moment->step.len && len < REPLAY_TEXT)
        len += snprintf(out + len, (size_t)(REPLAY_TEXT - len), " %.*s, attempt %u", STR_ARG(moment->step),
                        moment->logical);
    if (moment->visit > 1 && len < REPLAY_TEXT)
        len += snprintf(out + len, (size_t)(REPLAY_TEXT - len), ", visit %u", moment->visit);
    if (moment->iteration > 0 && len < REPLAY_TEXT)
        len += snprintf(out + len, (size_t)(REPLAY_TEXT - len), ", iteration %u", moment->iteration);
    if (moment->task.len && len < REPLAY_TEXT)
        len += snprintf(out + len, (size_t)(REPLAY_TEXT - len), ", task %.*s", STR_ARG(moment->task));
    if (moment->visit > 0 && moment->value.type != 0 && len < REPLAY_TEXT) {
        struct buf text = buf_of(4096);
        json_canon(&text, &moment->value);
        if (buf_ok(&text)) len += snprintf(out + len, (size_t)(REPLAY_TEXT - len), " %.*s", STR_ARG(buf_str(&text)));
        buf_release(&text);
    }
    if (detail.len && len < REPLAY_TEXT) snprintf(out + len, (size_t)(REPLAY_TEXT - len), " (%.*s)", STR_ARG(detail));
}

static enum code differs(struct replay *replay, uint64_t seq, const struct moment *recorded,
                         const struct moment *decided, struct str otherwise)
{
    struct replay_report *report = replay->report;
    replay->over = report->differs = true;
    report->seq = seq;
    tell(report->recorded, recorded);
    if (decided)
        tell(report->decided, decided);
    else
        snprintf(report->decided, sizeof(report->decided), "%.*s", STR_ARG(otherwise));
    return OK;
}

// Times, durations and values are facts or follow from the clock; everything else is a decision.
static bool same_moment(const struct moment *a, const struct moment *b)
{
    if (a->kind != b->kind || !str_eq(a->step, b->step) || a->logical != b->logical || a->engine != b->engine)
        return false;
    if (a->kind == MOMENT_STEP_SKIPPED) return str_eq(a->reason, b->reason);
    if (!same_in_net(a, b)) return false;
    if (!str_eq(a->fault.code, b->fault.code) || !str_eq(a->run_ref, b->run_ref)) return false;
    return a->counts.total == b->counts.total && a->counts.completed == b->counts.completed &&
           a->counts.failed == b->counts.failed && a->counts.skipped == b->counts.skipped;
}

// ---- the second life: which input a moment came of

static const struct json *payload_of(const struct replay *replay, struct str signal_id)
{
    for (size_t i = 0; i < replay->payload_count; i++)
        if (str_eq(json_text(json_key(&replay->payloads[i], "signalId")), signal_id))
            return json_key(&replay->payloads[i], "signalPayload");
    return NULL;
}

static bool timer_input(const struct run *run, uint32_t step, enum timer_kind timer, struct input *out)
{
    struct run_attempt attempt = kernel_attempt(run, step);
    out->kind = INPUT_TIMER;
    out->timer = timer;
    out->step = step;
    out->logical = attempt.logical;
    out->engine = attempt.engine;
    out->due_ms = attempt.due_ms;
    if (out->now_ms < attempt.due_ms) out->now_ms = attempt.due_ms;
    return true;
}

static bool result_input(const struct run *run, const struct moment *moment, uint32_t step, struct input *out)
{
    out->kind = INPUT_RESULT;
    out->step = step;
    out->logical = moment->logical;
    out->engine = moment->engine;
    out->member = moment->kind == MOMENT_CHILD_ENDED ? moment->iteration : 0;
    out->ok = moment->kind == MOMENT_STEP_COMPLETED || (out->member > 0 && str_is(moment->reason, "completed"));
    out->value = moment->value;
    out->blob = moment->blob;
    out->has_blob = moment->has_blob;
    out->blob_size = moment->blob_size;
    out->artifacts = moment->artifacts;
    out->fault = moment->fault;
    out->duration_ms = moment->duration_ms;
    if (out->ok && kernel_condition(run, step)) { // its exit was the fact
        out->ok = moment->value.type == JSON_BOOL && moment->value.boolean;
        if (!out->ok) out->fault.code = STR(FAULT_EXIT);
    }
    return true;
}

// What the input of a moment of a playbook's lane is made of besides is found by step_again.
static bool net_input(struct replay *replay, const struct moment *moment, struct input *out)
{
    const struct run *run = replay->again;
    uint32_t lane = moment->step.len ? kernel_lane(run, moment) : PROGRAM_TOP;
    if (moment->kind == MOMENT_STEP_OVERDUE) {
        out->kind = INPUT_TIMER;
        out->timer = TIMER_WAKE;
        out->step = kernel_find(run, moment->step);
        out->logical = moment->visit;
        out->due_ms = moment->due_ms;
        return out->step != PROGRAM_TOP;
    }
    if (lane == PROGRAM_TOP) return false;
    struct run_attempt attempt = kernel_attempt(run, lane);
    enum node_state state = kernel_state(run, lane);
    out->step = lane;
    out->logical = attempt.logical;
    out->engine = attempt.engine;
    out->due_ms = attempt.due_ms;
    if (moment->kind == MOMENT_ATTEMPT_STARTED && state == NODE_DELAYED) {
        out->kind = INPUT_TIMER;
        out->timer = TIMER_RETRY;
        return true;
    }
    if ((moment->kind != MOMENT_ATTEMPT_DONE && moment->kind != MOMENT_ATTEMPT_FAILED) || state != NODE_RUNNING) return false;
    if (str_is(kernel_task_of(run, lane)->kind, "event")) { // what came is a signal's
        out->kind = INPUT_TIMER;
        out->timer = TIMER_WAKE;
        return true;
    }
    replay->answer = answers_at(&replay->answers, replay->ordinal);
    out->kind = INPUT_RESULT;
    out->ok = true; // as an outcome, whatever it says
    return replay->answer != NULL;
}

static bool outcome_input(const struct run *run, const struct moment *moment, uint32_t step, struct input *out)
{
    int64_t due_ms = kernel_attempt(run, step).due_ms;
    enum step_kind kind = run->program->steps[step].kind;
    if (kernel_state(run, step) != NODE_RUNNING || kind == STEP_LOOP || kind == STEP_CANCEL) return false;
    bool timed_out = str_is(moment->fault.code, "TIMEOUT") && due_ms > 0 && moment->at_ms >= due_ms;
    if (run->cancelling) return result_input(run, moment, step, out);
    if (kind == STEP_WAIT || kind == STEP_APPROVAL || (kind == STEP_SUBRUN && timed_out))
        return timer_input(run, step, TIMER_WAKE, out);
    return result_input(run, moment, step, out);
}

// False: it must have been decided.
static bool input_of(struct replay *replay, const struct moment *moment, struct signal *signal, struct input *out)
{
    const struct run *run = replay->again;
    uint32_t step = moment->step.len ? kernel_find(run, moment->step) : PROGRAM_TOP;
    *out = (struct input){.now_ms = moment->at_ms, .reuse = replay->reuse, .reuse_count = replay->reuse_sure};
    replay->answer = NULL;
    if (run->net && moment->visit > 0) return net_input(replay, moment, out);
    switch ((int)moment->kind) {
    case MOMENT_RUN_REQUESTED:
    case MOMENT_RUN_QUEUED:
    case MOMENT_RUN_STARTED:
        if (moment->kind == MOMENT_RUN_STARTED && run->queued_ms && run_queued(run)) {
            out->kind = INPUT_ADMIT;
            return true;
        }
        if (run->queued_ms || run->started_ms || !moment->start) return false;
        out->kind = INPUT_START;
        out->start = moment->start;
        return true;
    case MOMENT_SIGNAL_DEFERRED:
        if (!signal_read(&moment->value, signal)) return false;
        out->kind = INPUT_SIGNAL;
        out->signal = signal;
        out->decision_id = moment->decision_id;
        return true;
    case MOMENT_SIGNAL_ACCEPTED:
    case MOMENT_SIGNAL_REJECTED: {
        const struct json *payload = payload_of(replay, moment->signal_id);
        *signal = (struct signal){.type = signal_parse(moment->signal_type),
                                  .id = moment->signal_id,
                                  .step = moment->signal_step,
                                  .reason = moment->reason,
                                  .actor = moment->actor,
                                  .role = moment->role,
                                  .approves = json_text(json_key(payload, "signalId")),
                                  .payload = payload ? *payload : json_object()};
        out->kind = INPUT_SIGNAL;
        out->signal = signal;
        out->decision_id = moment->decision_id;
        return true;
    }
    case MOMENT_STEP_COMPLETED:
    case MOMENT_STEP_FAILED:
    case MOMENT_ATTEMPT_FAILED:
        return step != PROGRAM_TOP && outcome_input(run, moment, step, out);
    case MOMENT_CHILD_ENDED:
        return step != PROGRAM_TOP && result_input(run, moment, step, out);
    case MOMENT_DRAIN_TIMEOUT:
        out->kind = INPUT_TIMER;
        out->timer = TIMER_DRAIN;
        out->step = PROGRAM_TOP;
        out->logical = moment->logical;
        return true;
    case MOMENT_SEGMENT_FULL:
        out->kind = INPUT_FULL;
        out->events = (uint64_t)json_integer(json_key(&moment->value, "events"), 0);
        out->bytes = (uint64_t)json_integer(json_key(&moment->value, "bytes"), 0);
        out->limit = str_is(moment->reason, "bytes") ? "bytes" : "events";
        return true;
    case MOMENT_STEP_STARTED:
        return step != PROGRAM_TOP && kernel_state(run, step) == NODE_DELAYED &&
               timer_input(run, step, TIMER_RETRY, out);
    default:
        return false;
    }
}

static bool is_accident(const struct moment *moment)
{
    bool taken_up = moment->kind == MOMENT_LIST_STARTED && moment->reason.len > 0;
    return moment->kind == MOMENT_STEP_REDISPATCHED || moment->kind == MOMENT_ATTEMPT_RESTS ||
           moment->kind == MOMENT_LATE_RESULT || moment->kind == MOMENT_UNKNOWN || taken_up;
}

static enum code fold_accident(struct replay *replay, const struct moment *moment, uint64_t seq)
{
    replay->report->fact_count++;
    struct error why = {0};
    enum code rc = kernel_fold(replay->again, moment, &why);
    if (rc == E_CORRUPT) return differs(replay, seq, moment, NULL, str_from(why.message));
    if (rc) return error_set(replay->err, rc, "%s", why.message);
    return OK;
}

// A run that began with another one's results, or with all of its past.
static bool is_taken_over(struct replay *replay, const struct moment *moment, const struct seal *seal)
{
    if (replay->ordinal == 1 && seal && moment->start && moment->start->original_run.len > 0 &&
        !moment->start->requires_approval && !str_is(moment->start->admission, "QUEUE"))
        replay->taken_ms = seal->persisted_ms;
    if (replay->taken_ms == 0) return false;
    // Entries of the ledger have no seal; theirs is the time when it happened, which is before or then.
    if (!seal) return moment->at_ms <= replay->taken_ms;
    return seal->persisted_ms == replay->taken_ms;
}

static enum code step_again(struct replay *replay, const struct moment *moment, uint64_t seq, const struct input *input)
{
    struct error why = {0};
    arena_reset(&replay->turn);
    replay->outcome = (struct outcome){.turn = &replay->turn};
    replay->expected = 0;
    enum code rc = kernel_step(replay->again, &replay->holds, input, &replay->env, &replay->outcome, &why);
    if (rc == E_CORRUPT) return differs(replay, seq, moment, NULL, str_from(why.message));
    return rc ? error_set(replay->err, rc, "%s", why.message) : OK;
}

// What came out of an attempt of a playbook. What is not there any more cannot be asked about: it is taken as recorded.
static enum code answer_again(struct replay *replay, const struct moment *moment, uint64_t seq, struct input *input)
{
    const struct net_answer *answer = replay->answer;
    bool gone = false;
    arena_reset(&replay->given);
    enum code rc = answer_outcome(answer, &replay->env, &replay->given, &input->value, &gone, replay->err);
    if (rc) return rc;
    replay->guessed = answer->retried && !answer->whole && rules_read_result(kernel_task_of(replay->again, input->step));
    if (gone || (replay->guessed && moment->kind == MOMENT_ATTEMPT_DONE)) {
        replay->as_recorded = answer->last;
        replay->report->unasked_count++;
        return OK;
    }
    input->has_blob = answer->has_blob;
    input->blob = answer->blob;
    input->blob_size = answer->blob_size;
    input->store = answer->store;
    input->elsewhere = answer->elsewhere;
    input->artifacts = answer->artifacts;
    return step_again(replay, moment, seq, input);
}

// What was put off while nobody drove the run is decided by the engine that takes it over.
static enum code decide_again(struct replay *replay, const struct moment *moment, uint64_t seq)
{
    struct input input;
    struct signal signal;
    bool fact = input_of(replay, moment, &signal, &input);
    if (!fact) input.kind = INPUT_RECOVER;
    replay->report->fact_count += fact;
    replay->signal_at = fact && input.kind == INPUT_SIGNAL ? replay->ordinal : 0;
    replay->look_at = fact ? 0 : replay->ordinal;
    replay->idle = replay->recovered = false;
    enum code rc = replay->answer ? answer_again(replay, moment, seq, &input) : step_again(replay, moment, seq, &input);
    if (rc || replay->over || replay->as_recorded >= replay->ordinal) return rc;
    if (replay->outcome.moment_count > 0) return OK;
    return differs(replay, seq, moment, NULL, STR("nothing"));
}

struct idling {
    struct replay *replay;
    uint64_t ordinal, from, until;
};

// What was decided at `from`, once more and otherwise: as the input that is made here says.
static enum code decide_otherwise(struct replay *replay, const struct moment *moment, uint64_t seq)
{
    struct input input;
    struct signal signal;
    bool fact = input_of(replay, moment, &signal, &input);
    INVARIANT(fact == replay->idle);
    INVARIANT(!fact || input.kind == INPUT_SIGNAL);
    if (!fact) input.kind = INPUT_RECOVER;
    input.idle = fact;
    return step_again(replay, moment, seq, &input);
}

static enum code live_otherwise(void *context, const struct record *record, const struct moment *moment,
                                const struct seal *seal)
{
    struct idling *idling = context;
    struct replay *replay = idling->replay;
    enum code rc = OK;
    (void)seal;
    if (!moment || ++idling->ordinal >= idling->until || replay->over) return OK;
    if (idling->ordinal < idling->from) return kernel_fold(replay->again, moment, replay->err);
    if (idling->ordinal == idling->from) rc = decide_otherwise(replay, moment, record->seq);
    if (rc || replay->over) return rc;
    bool same = replay->expected < replay->outcome.moment_count &&
                same_moment(&replay->outcome.moments[replay->expected++], moment); // was the same before; must be now
    return same ? OK : differs(replay, record->seq, moment, NULL, STR("nothing"));
}

// The second run as it was before its first moment.
static enum code begin_again(struct replay *replay)
{
    struct run *again = run_new(replay->again->program, &replay->head->ids);
    if (!again) return error_nomem(replay->err);
    again->env = &replay->env;
    run_free(replay->again);
    replay->again = again;
    replay->outcome = (struct outcome){0};
    replay->expected = 0;
    holds_release(&replay->holds);
    return OK;
}

// Back to the moment at `from`, by the log, and on from there to this one.
static enum code try_otherwise(struct replay *replay, uint64_t from, const struct moment *moment, uint64_t seq)
{
    const struct run_ids *ids = &replay->head->ids;
    struct idling idling = {.replay = replay, .from = from, .until = replay->ordinal};
    enum code rc = begin_again(replay);
    if (!rc) rc = store_replay(replay->store, ids->tenant, ids->run, live_otherwise, &idling, replay->err);
    if (!rc && !replay->over && from == replay->ordinal) rc = decide_otherwise(replay, moment, seq);
    return rc;
}

static enum code fold_until(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    struct idling *until = context;
    (void)record;
    (void)seal;
    if (!moment || ++until->ordinal >= until->until) return OK;
    return kernel_fold(until->replay->again, moment, until->replay->err);
}

// The rules of a try that was followed by another one read something of its result, which nobody has kept.
static enum code take_as_recorded(struct replay *replay)
{
    const struct run_ids *ids = &replay->head->ids;
    struct idling folding = {.replay = replay, .until = replay->ordinal};
    if (begin_again(replay)) return E_NOMEM;
    replay->as_recorded = replay->answer->last;
    replay->report->unasked_count++;
    return store_replay(replay->store, ids->tenant, ids->run, fold_until, &folding, replay->err);
}

static enum code live_again(void *context, const struct record *record, const struct moment *moment,
                            const struct seal *seal)
{
    struct replay *replay = context;
    if (!moment || replay->over) return OK;
    replay->ordinal++;
    if (is_taken_over(replay, moment, seal)) return fold_accident(replay, moment, record->seq);
    if (is_accident(moment) || replay->ordinal <= replay->as_recorded) return fold_accident(replay, moment, record->seq);
    for (;;) {
        enum code rc = OK;
        if (replay->expected == replay->outcome.moment_count) rc = decide_again(replay, moment, record->seq);
        if (rc || replay->over) return rc;
        if (replay->ordinal <= replay->as_recorded) return fold_accident(replay, moment, record->seq);
        const struct moment *decided = &replay->outcome.moments[replay->expected];
        if (same_moment(decided, moment)) break;
        if (decided->kind == MOMENT_LIST_STARTED) { // of a log from before lists were recorded
            replay->expected++;
            continue;
        }
        if (replay->answer && replay->guessed && replay->ordinal <= replay->answer->last) {
            rc = take_as_recorded(replay);
            return rc ? rc : fold_accident(replay, moment, record->seq);
        }
        // The last signal may have come while nobody drove the run (ADR 0013): then less followed from it. And where one engine had
        // more to decide than one input may lead to, another one may have taken the run over: it decides in the order of the log.
        bool idle = replay->signal_at && !replay->idle && replay->signal_at < replay->ordinal;
        bool taken = replay->look_at && !replay->recovered;
        if (!idle && !taken) return differs(replay, record->seq, moment, decided, STR(""));
        replay->idle = idle;
        replay->recovered = taken;
        rc = try_otherwise(replay, idle ? replay->signal_at : replay->look_at, moment, record->seq);
        if (rc || replay->over) return rc;
    }
    replay->expected++;
    replay->report->decided_count++;
    return OK;
}

// ---- both

static enum code first_life(struct replay *replay, const struct program *program)
{
    const struct run_ids *ids = &replay->head->ids;
    replay->folded = run_new(program, ids);
    if (replay->folded) replay->folded->env = &replay->env;
    if (!replay->folded || !view_init(&replay->view, &replay->kept, ids)) return error_nomem(replay->err);
    enum code rc = store_replay(replay->store, ids->tenant, ids->run, fold_first, replay, replay->err);
    if (!rc) compare_state(replay);
    return rc;
}

static enum code second_life(struct replay *replay, const struct program *program)
{
    const struct run_ids *ids = &replay->head->ids;
    replay->again = run_new(program, ids);
    if (!replay->again) return error_nomem(replay->err);
    replay->again->env = &replay->env;
    return store_replay(replay->store, ids->tenant, ids->run, live_again, replay, replay->err);
}

enum code archive_replay(struct store *store, const struct run_head *head, const struct program *other,
                         struct replay_report *out, struct error *err)
{
    *out = (struct replay_report){0};
    struct program *program = NULL;
    enum code rc = engine_program(store, head, &program, err);
    if (rc) return rc;
    struct replay replay = {.store = store, .head = head, .report = out, .err = err, .env = {store, store_blob_of}, .holds = {.all = true}};
    arena_init(&replay.kept, 64 * 1024, SIZE_MAX);
    arena_init(&replay.turn, 64 * 1024, SIZE_MAX);
    arena_init(&replay.given, 64 * 1024, SIZE_MAX);
    answers_init(&replay.answers, &replay.kept);
    rc = first_life(&replay, program);
    if (!rc) rc = second_life(&replay, other ? other : program);
    run_free(replay.folded);
    run_free(replay.again);
    holds_release(&replay.holds);
    arena_release(&replay.turn);
    arena_release(&replay.given);
    arena_release(&replay.kept);
    program_release(program);
    return rc;
}
