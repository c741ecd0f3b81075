// One sentence that says why.
#include "explain/inside.h"

#include "base/civil.h"

#define NAMED_MAX 3 // steps that a sentence names; the rest is counted

static const struct {
    const char *needs;
    unsigned offends; // bits of enum parent_state that break it wherever they occur
    const char *none; // what is wrong when none of them occurred
} rules[] = {
    [RULE_NONE] = {"nothing", 0, "it is unknown"},
    [RULE_ALL_SUCCESS] = {"every dependency to succeed", 1u << PARENT_FAILED | 1u << PARENT_SKIPPED, ""},
    [RULE_ONE_SUCCESS] = {"one dependency to succeed", 0, "none succeeded"},
    [RULE_NONE_FAILED_MIN_ONE_SUCCESS] = {"no dependency to fail and one to succeed", 1u << PARENT_FAILED,
                                          "none succeeded"},
    [RULE_ALL_DONE] = {"every dependency to end", 0, ""},
    [RULE_ALL_FAILED] = {"every dependency to fail", 1u << PARENT_SUCCESS | 1u << PARENT_SKIPPED, ""},
    [RULE_ONE_FAILED] = {"one dependency to fail", 0, "none failed"},
    [RULE_NONE_FAILED] = {"no dependency to fail", 1u << PARENT_FAILED, ""},
    [RULE_NONE_SKIPPED] = {"no dependency to be skipped", 1u << PARENT_SKIPPED, ""},
    [RULE_ONE_DONE] = {"one dependency to succeed or fail", 0, "all were skipped"},
    [RULE_ALL_SKIPPED] = {"every dependency to be skipped", 1u << PARENT_SUCCESS | 1u << PARENT_FAILED, ""},
    [RULE_ALL_DONE_MIN_ONE_SUCCESS] = {"every dependency to end and one to succeed", 0, "none succeeded"},
    [RULE_ALWAYS] = {"every dependency to end", 0, ""},
};

const char *rule_needs(enum trigger_rule rule)
{
    return rules[rule].needs;
}

// "2026-02-11 17:00:00Z"
static void time_told(struct buf *out, int64_t ms)
{
    char text[CIVIL_SIZE];
    civil_format(ms, text);
    buf_printf(out, "%.10s %.8sZ", text, text + 11);
}

static void since_told(struct buf *out, const struct maker *m, int64_t ms)
{
    char text[24];
    buf_text(out, " since ");
    time_part_begin(out, PART_SINCE, ms);
    time_told(out, ms);
    duration_format(m->now_ms > ms ? m->now_ms - ms : 0, text);
    if (m->now_ms > ms) buf_printf(out, " (%s)", text);
    time_part_end(out);
}

static void until_told(struct buf *out, const struct maker *m, int64_t ms)
{
    char text[24];
    time_part_begin(out, PART_UNTIL, ms);
    time_told(out, ms);
    duration_format(m->now_ms < ms ? ms - m->now_ms : m->now_ms - ms, text);
    if (m->now_ms > 0) buf_printf(out, m->now_ms < ms ? " (in %s)" : " (%s ago)", text);
    time_part_end(out);
}

static void attempt_told(struct buf *out, const struct view_of_step *v, uint32_t logical)
{
    uint32_t base = v->note ? v->note->base : 0;
    buf_printf(out, "attempt %u", logical);
    if (base == 0 && v->ps->retry.max_attempts > 1) buf_printf(out, " of %u", v->ps->retry.max_attempts);
}

static void by_told(struct buf *out, struct str actor, struct str reason)
{
    if (actor.len > 0) {
        buf_text(out, " by ");
        part_told(out, PART_BY, actor);
    }
    if (reason.len == 0) return;
    buf_text(out, ": ");
    message_told(out, reason);
}

// The last signal of that type that was accepted for the step ("" = the run).
static const struct signal_finding *accepted(const struct explain *e, const char *type, struct str step)
{
    for (size_t i = e->signal_count; i > 0; i--) {
        const struct signal_finding *s = &e->signals[i - 1];
        if (s->accepted && str_is(s->type, type) && str_eq(s->step, step)) return s;
    }
    return NULL;
}

// " by ann: reason", for a cancellation that a person asked for.
static void canceller_told(struct buf *out, const struct explain *e)
{
    const struct signal_finding *signal = signal_find(e, e->run->cancel_signal);
    if (!signal) signal = accepted(e, "REJECT", (struct str){"", 0});
    by_told(out, signal ? signal->actor : (struct str){0}, signal ? signal->reason : e->run->cancel_reason);
}

// ---- waiting

static void open_dependencies_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < v->ps->dep_count; i++) {
        struct view_of_step dep;
        struct str path = sibling_path(v->path, m->e->program->steps[v->ps->deps[i]].id, m->arena);
        if (!path.ptr || !look_at(m->e, path, &dep)) continue;
        if (dep.note && dep.note->state >= NODE_SUCCESS) continue;
        if (open < NAMED_MAX) {
            buf_text(out, open ? ", " : "");
            part_told(out, PART_STEP, path);
            buf_printf(out, " (%s)", explain_state_name(dep.state));
        }
        open++;
    }
    if (open > NAMED_MAX) buf_printf(out, " and %u more", open - NAMED_MAX);
}

static void waiting_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    struct str reason = str_from(v->reason), scope = scope_path(v->path);
    const struct explain *e = m->e;
    if (str_is(reason, "DEPENDENCIES")) {
        buf_text(out, " waits for ");
        open_dependencies_told(m, out, v);
    } else if (str_is(reason, "RUN_PAUSED")) {
        const struct signal_finding *signal = signal_find(e, e->pause_signal);
        buf_text(out, " could start, but the run was paused");
        by_told(out, signal ? signal->actor : (struct str){0}, e->pause_reason);
    } else if (str_is(reason, "CONTINUE_AS_NEW")) {
        buf_printf(out, " could start; segment %u of the log is full, and the run goes on in the next", e->run->segment);
    } else if (str_starts(reason, STR("UNDO"))) {
        buf_text(out, str_is(reason, "UNDO") ? " waits to undo " : " will undo ");
        part_told(out, PART_STEP, e->program->steps[v->ps->deps[0]].id);
        buf_text(out, str_is(reason, "UNDO") ? ", should the run fail or be cancelled" : " when what ended after it is undone");
    } else if (str_is(reason, "RUN_FAILING") && e->run->undoing) {
        buf_text(out, " is not started: the run undoes what it did");
    } else if (str_is(reason, "RUN_FAILING")) {
        buf_printf(out, " is not started: %.*s failed, and a failing plan starts no unrelated work",
                   STR_ARG(e->run->failed_step));
    } else if (str_is(reason, "RUN_CANCELLING")) {
        buf_text(out, " will not start: the run is being cancelled");
        canceller_told(out, e);
    } else if (str_is(reason, "RUN_NEEDS_APPROVAL")) {
        buf_text(out, " waits for the run, whose start needs an approval");
    } else if (str_is(reason, "RUN_QUEUED")) {
        buf_text(out, " waits for the run, which");
        if (!queue_told(m, out)) buf_text(out, " is in the queue");
    } else if (str_is(reason, "NOT_BEFORE")) {
        buf_text(out, " could start, but its queue delays the steps of its runs (policy DELAY): not before ");
        until_told(out, m, v->note->due_ms);
    } else if (str_is(reason, "RUN_NOT_STARTED")) {
        buf_text(out, " waits for the run, which has not started");
    } else if (str_is(reason, "LOOP_NOT_STARTED")) {
        struct str loop = str_cut(scope, '[', &scope);
        buf_printf(out, " waits for its loop %.*s, which has not started", STR_ARG(loop));
    } else if (str_is(reason, "ITERATION_TO_COME")) {
        buf_text(out, " waits for its loop, which has not come to that round");
    } else {
        buf_text(out, " can be decided: the next event says how");
    }
}

// ---- skipped

static enum parent_state parent_of(const struct view_of_step *dep)
{
    if (dep->note && dep->note->state == NODE_SUCCESS) return PARENT_SUCCESS;
    return dep->note && dep->note->state == NODE_SKIPPED ? PARENT_SKIPPED : PARENT_FAILED;
}

static void rule_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    static const char *const words[] = {
        [PARENT_SUCCESS] = "succeeded", [PARENT_FAILED] = "failed", [PARENT_SKIPPED] = "was skipped"};
    enum trigger_rule rule = v->ps->rule;
    uint32_t named = 0;
    buf_printf(out, " was skipped: %s needs %s, but ", rule_name(rule), rules[rule].needs);
    for (uint32_t i = 0; i < v->ps->dep_count; i++) {
        struct view_of_step dep;
        struct str path = sibling_path(v->path, m->e->program->steps[v->ps->deps[i]].id, m->arena);
        if (!path.ptr || !look_at(m->e, path, &dep)) continue;
        enum parent_state parent = parent_of(&dep);
        if (!(rules[rule].offends & 1u << parent)) continue;
        if (named < NAMED_MAX) {
            buf_text(out, named ? ", " : "");
            part_told(out, PART_STEP, path);
            buf_printf(out, " %s", words[parent]);
        }
        named++;
    }
    if (named > NAMED_MAX) buf_printf(out, " and %u more", named - NAMED_MAX);
    if (named == 0) buf_text(out, rules[rule].none);
}

static void condition_told(struct buf *out, const struct view_of_step *v)
{
    const struct json *atoms = &v->note->join.atoms;
    buf_text(out, " was skipped: its condition is false");
    for (uint32_t i = 0; atoms->type == JSON_ARRAY && i < atoms->count; i++) {
        const struct json *result = json_key(&atoms->items[i], "result");
        if (!json_is(result, JSON_BOOL) || result->boolean) continue;
        struct str text = json_text(json_key(&atoms->items[i], "text"));
        struct str name = json_text(json_key(&atoms->items[i], "reference"));
        struct str left = json_text(json_key(&atoms->items[i], "left"));
        buf_text(out, ": ");
        part_told(out, PART_EXPR, text);
        buf_text(out, ", and ");
        part_told(out, PART_EXPR, name);
        buf_text(out, " is '");
        part_told(out, PART_SAID, left);
        buf_byte(out, '\'');
        return;
    }
}

static void skipped_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    struct str reason = str_from(v->reason);
    if (str_is(reason, SKIP_CONDITION_FALSE)) {
        condition_told(out, v);
    } else if (str_is(reason, SKIP_CONDITION_BROKEN)) {
        buf_text(out, " was skipped: its condition cannot be read, which counts as false");
    } else if (str_is(reason, SKIP_NOTHING_TO_UNDO)) {
        buf_text(out, " was skipped: the run came out well, and nothing is undone");
    } else if (str_is(reason, SKIP_OPERATOR)) {
        const struct signal_finding *signal = accepted(m->e, "SKIP_STEP", v->path);
        buf_text(out, " was skipped");
        by_told(out, signal ? signal->actor : (struct str){0}, v->note->skip_detail);
    } else {
        rule_told(m, out, v);
    }
}

// ---- running, failed, done

const struct run_await *awaited_now(const struct view_of_step *v)
{
    const struct run *run = v->e->run;
    const struct run_await *a = v->current ? kernel_await(run, NULL) : NULL;
    while (a && kernel_place(run, a->lane) != v->step) a = kernel_await(run, a);
    return a;
}

static void running_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    struct str reason = str_from(v->reason);
    INVARIANT(attempt);
    if (str_is(reason, "RUN_CANCELLING")) {
        buf_text(out, " is being stopped: the run is being cancelled");
        canceller_told(out, m->e);
        return;
    }
    if (str_is(reason, "REUSING")) {
        buf_text(out, " takes over the result of an earlier run with the next event");
    } else if (str_is(reason, "GATE")) {
        buf_text(out, " waits for a person: nobody has answered");
        since_told(out, m, attempt->started_ms);
    } else if (str_is(reason, "EVENT")) {
        const struct run_await *wait = awaited_now(v);
        buf_text(out, " waits for the event ");
        if (wait) buf_add(out, wait->name);
        if (wait && wait->correlation.len > 0) {
            buf_text(out, " of ");
            buf_add(out, wait->correlation);
        }
        buf_text(out, ": none has come");
        since_told(out, m, attempt->started_ms);
        if (v->note->due_ms > 0) {
            buf_text(out, "; it fails at ");
            until_told(out, m, v->note->due_ms);
        }
    } else if (str_is(reason, "RESTS")) {
        uint32_t losses = 0;
        int64_t until = kernel_rests(m->e->run, v->step, &losses);
        buf_printf(out, " rests: %u engines or workers in a row were gone within a minute of beginning it; it runs again at ", losses);
        until_told(out, m, until);
    } else if (str_is(reason, "TIMER")) {
        buf_text(out, " waits until ");
        until_told(out, m, v->note->due_ms);
    } else if (str_is(reason, "CHILD_RUN")) {
        if (v->note->child_run.len > 0)
            buf_printf(out, " waits for its child run %.*s", STR_ARG(v->note->child_run));
        else
            buf_printf(out, " waits for its child runs (`cairn ls parent=%.*s` lists them)",
                       STR_ARG(m->e->run->ids.run));
    } else if (str_is(reason, "LOOP")) {
        buf_printf(out, " is in round %u of at most %u", v->note->iteration, v->ps->max_iterations);
    } else {
        buf_text(out, " runs: ");
        const struct json *place = place_now(m->e, v);
        struct str worker = json_text(json_key(place, "worker"));
        attempt_told(out, v, attempt->logical);
        if (worker.len > 0) buf_printf(out, ", by worker %.*s", STR_ARG(worker));
        since_told(out, m, place_since(place, attempt->started_ms));
    }
    if (attempt->engine > 1)
        buf_printf(out, ", dispatched again %u time%s after a crash", attempt->engine - 1,
                   attempt->engine == 2 ? "" : "s");
}

static void retrying_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    buf_text(out, " waits for ");
    attempt_told(out, v, attempt->logical + 1);
    if (str_is(str_from(v->reason), "RUN_PAUSED"))
        buf_text(out, ", but the run is paused");
    else if (str_is(str_from(v->reason), "RUN_CANCELLING"))
        buf_text(out, ", but the run is being cancelled");
    else if (attempt->due_ms > 0) {
        buf_text(out, ", which may start at ");
        until_told(out, m, attempt->due_ms);
    }
    buf_text(out, ": the last one failed with ");
    fault_told(out, &attempt->fault);
}

static void no_retry_told(struct buf *out, const struct view_of_step *v)
{
    const struct retry_policy *retry = &v->ps->retry;
    const struct attempt_finding *attempt = last_attempt(v->note);
    switch (attempt ? (int)attempt->retry : 0) {
    case RETRY_SPENT:
        if (retry->max_attempts == 1)
            buf_text(out, "; it has no retries");
        else
            buf_printf(out, "; all %u attempts are used up", retry->max_attempts);
        break;
    case RETRY_PERMANENT:
        buf_text(out, "; not tried again because the failure is not transient");
        break;
    case RETRY_NON_RETRYABLE:
        buf_text(out, "; not tried again because its policy names this code as final");
        break;
    case RETRY_CANCELLING:
        buf_text(out, "; not tried again because the run was being cancelled");
        break;
    default:
        break;
    }
}

static void failed_told(struct buf *out, const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    bool held = v->state == STATE_HELD;
    if (str_is(str_from(v->reason), "CONDITION_FAULT")) {
        buf_text(out, " failed: its condition could not be evaluated: ");
        if (attempt) message_told(out, attempt->fault.message);
        return;
    }
    buf_text(out, held ? " is held for a person to retry or skip: it failed at " : " failed at ");
    attempt_told(out, v, attempt ? attempt->logical : 1);
    buf_text(out, " with ");
    if (attempt) fault_told(out, &attempt->fault);
    no_retry_told(out, v);
}

static void done_told(struct buf *out, const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    char text[24];
    if (v->state == STATE_REUSED) {
        buf_printf(out, " was not run again: its output is taken over from run %.*s", STR_ARG(v->note->reused_from));
        return;
    }
    if (step_given(v)) {
        buf_text(out, " was not run: its output was given by ");
        part_told(out, PART_BY, v->note->actor);
        return;
    }
    if (v->ps->kind == STEP_APPROVAL && v->note->actor.len > 0) {
        bool timeout = str_is(v->note->actor, "timeout");
        buf_text(out, timeout ? " is done: nobody answered in time, and its timeout approves" : " is done: it was approved by ");
        if (!timeout) part_told(out, PART_BY, v->note->actor);
        return;
    }
    buf_text(out, " is done");
    if (v->ps->kind == STEP_LOOP)
        buf_printf(out, ": it ended after %u round%s", v->note->iteration, v->note->iteration == 1 ? "" : "s");
    else if (attempt) {
        duration_format(attempt->duration_ms, text);
        buf_text(out, ": it completed at ");
        attempt_told(out, v, attempt->logical);
        buf_printf(out, ", which took %s", text);
    }
    if (v->note->truncated)
        buf_printf(out, "; " OUTPUT_CUT,
                   (unsigned long long)output_kept(&v->note->value, v->note->has_blob, v->note->blob_size));
}

static void ended_told(struct maker *m, struct buf *out, const struct view_of_step *v)
{
    const struct explain *e = m->e;
    struct str reason = str_from(v->reason);
    if (v->state == STATE_CANCELLED) {
        buf_text(out, !v->note                         ? " was never started: the run was cancelled"
                      : v->note->state == NODE_DELAYED ? " was not tried again: the run was cancelled"
                                                       : " was stopped: the run was cancelled");
        canceller_told(out, e);
    } else if (str_is(reason, "LOOP_ENDED") || str_is(reason, "ITERATION_OVER")) {
        struct str scope = scope_path(v->path);
        struct str loop = str_cut(scope, '[', &scope);
        buf_printf(out, " was never started: its loop %.*s ended before", STR_ARG(loop));
    } else {
        buf_text(out, " was never started: the run failed");
        if (e->run->failed_step.len > 0)
            buf_printf(out, " at %.*s, and a failing plan starts no unrelated work", STR_ARG(e->run->failed_step));
    }
}

struct str verdict_told(struct maker *m, const struct view_of_step *v)
{
    struct buf out = buf_of((size_t)1 << 20);
    part_told(&out, PART_STEP, v->path);
    if (v->state != STATE_QUEUED && net_told(&out, v)) {
        buf_byte(&out, '.');
        return kept(m, &out);
    }
    switch (v->state) {
    case STATE_WAITING:
        waiting_told(m, &out, v);
        break;
    case STATE_QUEUED:
        place_told(m, &out, place_now(m->e, v));
        break;
    case STATE_RUNNING:
    case STATE_APPROVAL:
        running_told(m, &out, v);
        break;
    case STATE_RETRYING:
        retrying_told(m, &out, v);
        break;
    case STATE_HELD:
    case STATE_FAILED:
        failed_told(&out, v);
        break;
    case STATE_DONE:
    case STATE_REUSED:
        done_told(&out, v);
        break;
    case STATE_SKIPPED:
        skipped_told(m, &out, v);
        break;
    case STATE_CANCELLED:
    case STATE_NOT_RUN:
        ended_told(m, &out, v);
        break;
    case STATE_FIRST_UNUSED:
        break;
    }
    buf_byte(&out, '.');
    return kept(m, &out);
}

// ---- the bottom of a wait or of a failure

static bool is_skip(const struct view_of_step *v, const char *reason)
{
    return v->state == STATE_SKIPPED && str_is(str_from(v->reason), reason);
}

static bool body_failed(const struct view_of_step *v)
{
    return v->ps->kind == STEP_LOOP && v->state == STATE_FAILED && v->note->loop == LOOP_BODY_FAILED;
}

// Is `dep` what `v` waits for, or what brought `v` down?
static bool leads_down(const struct view_of_step *v, const struct view_of_step *dep)
{
    if (v->state == STATE_WAITING) return !dep->note || dep->note->state < NODE_SUCCESS;
    if (is_skip(v, SKIP_DEPENDENCY_FAILED))
        return dep->state == STATE_FAILED || dep->state == STATE_CANCELLED || is_skip(dep, SKIP_DEPENDENCY_FAILED);
    return dep->state == STATE_SKIPPED && (rules[v->ps->rule].offends & 1u << PARENT_SKIPPED) != 0;
}

static bool step_down_to_dependency(struct maker *m, const struct view_of_step *v, struct view_of_step *out)
{
    bool waits = v->state == STATE_WAITING && str_is(str_from(v->reason), "DEPENDENCIES");
    if (!waits && !is_skip(v, SKIP_DEPENDENCY_FAILED) && !is_skip(v, SKIP_TRIGGER_RULE)) return false;
    for (uint32_t i = 0; i < v->ps->dep_count; i++) {
        struct str path = sibling_path(v->path, m->e->program->steps[v->ps->deps[i]].id, m->arena);
        if (path.ptr && look_at(m->e, path, out) && leads_down(v, out)) return true;
    }
    return false;
}

// From a loop to the step in it that runs, or that failed.
static bool step_down_to_child(struct maker *m, const struct view_of_step *v, struct view_of_step *out)
{
    bool runs = v->state == STATE_RUNNING && v->ps->kind == STEP_LOOP && v->note->iteration > 0;
    if (!runs && !body_failed(v)) return false;
    for (uint32_t i = 0; i < v->ps->child_count; i++) {
        struct str path = child_path(m, v, v->ps->first_child + i);
        if (path.len == 0 || !look_at(m->e, path, out)) continue;
        bool busy = out->note && out->note->state < NODE_SUCCESS && out->state != STATE_WAITING;
        if (runs ? busy : out->state == STATE_FAILED) return true;
    }
    return false;
}

bool root_of(struct maker *m, const struct view_of_step *v, struct view_of_step *out)
{
    struct view_of_step at = *v;
    *out = *v;
    while (step_down_to_dependency(m, &at, out) || step_down_to_child(m, &at, out)) at = *out;
    *out = at;
    return !str_eq(out->path, v->path);
}

// ---- runs

static void counts_told(struct buf *out, const struct run *run)
{
    const struct {
        uint32_t count;
        const char *word;
    } parts[] = {{run->counts.completed, "done"}, {run->counts.failed, "failed"}, {run->counts.skipped, "skipped"}};
    bool first = true;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i].count == 0) continue;
        buf_printf(out, "%s%u %s", first ? "" : ", ", parts[i].count, parts[i].word);
        first = false;
    }
    if (first) buf_text(out, "no step has ended");
    buf_printf(out, " of %u", run->counts.total);
}

// " load is held", the steps in that state by name.
static uint32_t in_state_told(const struct maker *m, struct buf *out, enum explain_state state)
{
    uint32_t found = 0;
    for (size_t i = 0; i < m->e->note_count; i++) {
        struct view_of_step v;
        const struct step_finding *note = m->e->notes[i];
        bool loop = m->e->program->steps[note->step].kind == STEP_LOOP;
        if (!look_at(m->e, note->path, &v) || v.state != state || (loop && state == STATE_RUNNING)) continue;
        if (found < NAMED_MAX) {
            buf_text(out, found ? ", " : "");
            part_told(out, PART_STEP, note->path);
        }
        found++;
    }
    if (found > NAMED_MAX) buf_printf(out, " and %u more", found - NAMED_MAX);
    return found;
}

static const char *active_told(const struct maker *m, struct buf *out)
{
    static const struct {
        enum explain_state state;
        const char *before, *reason;
    } kinds[] = {{STATE_HELD, " waits for a person to retry or skip ", "HELD"},
                 {STATE_RUNNING, " runs: ", "STEPS_RUNNING"},
                 {STATE_QUEUED, " waits for a slot or a worker for ", "STEPS_QUEUED"},
                 {STATE_APPROVAL, " waits for a person to answer ", "GATE"},
                 {STATE_RETRYING, " waits for the next attempt of ", "BACKOFF"}};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        size_t before = out->len;
        buf_text(out, kinds[i].before);
        if (in_state_told(m, out, kinds[i].state) > 0) return kinds[i].reason;
        out->ptr[out->len = before] = '\0';
    }
    buf_text(out, " goes on: the next event says how");
    return "DUE";
}

static const char *failed_run_told(struct buf *out, const struct run *run)
{
    buf_text(out, " FAILED");
    if (run->limited) {
        buf_text(out, ": ");
        fault_told(out, &run->fault);
        return FAULT_RUN_LIMIT;
    }
    if (run->failed_step.len == 0) {
        buf_text(out, ": no step completed, every one was skipped");
        return "NO_STEP_COMPLETED";
    }
    buf_text(out, " at ");
    part_told(out, PART_STEP, run->failed_step);
    buf_text(out, ": ");
    fault_told(out, &run->fault);
    return "STEP_FAILED";
}

static const char *paused_told(const struct maker *m, struct buf *out)
{
    const struct explain *e = m->e;
    const struct signal_finding *signal = signal_find(e, e->pause_signal);
    buf_text(out, " is PAUSED");
    since_told(out, m, e->pause_ms);
    by_told(out, signal ? signal->actor : (struct str){0}, e->pause_reason);
    bool drains = str_is(str_from(run_substatus(e->run)), "DRAINING");
    for (uint32_t i = 0; drains && i < e->program->step_count; i++) {
        if (kernel_state(e->run, i) != NODE_RUNNING || !kernel_fans_out(e->run, i)) continue;
        buf_printf(out, "; of the list %.*s the child runs that have begun go on to their end, and no other begins",
                   STR_ARG(e->program->steps[i].id));
        return "DRAINING";
    }
    if (drains)
        buf_printf(out, "; %u step%s in flight may still end", e->run->in_flight, e->run->in_flight == 1 ? "" : "s");
    return drains ? "DRAINING" : "PAUSED";
}

static const char *queued_run_told(struct maker *m, struct buf *out)
{
    if (!queue_told(m, out)) {
        struct str name = m->e->run->start.queue;
        buf_printf(out, " waits for a place in queue %.*s", STR_ARG(name.len ? name : STR("default")));
    }
    return "QUEUED";
}

static const char *status_told(struct maker *m, struct buf *out)
{
    const struct run *run = m->e->run;
    if (run->cancelling && !run_status_terminal(run->status)) {
        buf_printf(out, " is being cancelled: %u step%s still to stop", run->in_flight, run->in_flight == 1 ? "" : "s");
        return "CANCELLING";
    }
    switch (run->status) {
    case RUN_STATUS_PENDING:
        if (run_queued(run)) return queued_run_told(m, out);
        buf_text(out, run->start.requires_approval ? " waits for a person to approve its start" : " has not started");
        return run->start.requires_approval ? "NEEDS_APPROVAL" : "NOT_STARTED";
    case RUN_STATUS_APPROVED:
        if (run_queued(run)) return queued_run_told(m, out);
        buf_text(out, " is approved and starts with the next event");
        return "NOT_STARTED";
    case RUN_STATUS_RUNNING:
        return active_told(m, out);
    case RUN_STATUS_PAUSED:
        return paused_told(m, out);
    case RUN_STATUS_COMPLETED:
        buf_text(out, " is COMPLETED: ");
        counts_told(out, run);
        return "COMPLETED";
    case RUN_STATUS_FAILED:
        return failed_run_told(out, run);
    case RUN_STATUS_CANCELLED:
        buf_text(out, " was CANCELLED");
        canceller_told(out, m->e);
        return "CANCELLED";
    }
    return "NOT_STARTED";
}

struct str run_verdict_told(struct maker *m, const char **reason)
{
    struct buf out = buf_of((size_t)1 << 20);
    buf_printf(&out, "run %.*s", STR_ARG(m->e->run->ids.run));
    *reason = status_told(m, &out);
    buf_byte(&out, '.');
    return kept(m, &out);
}
