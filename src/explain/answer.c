// The parts of an answer about a step: its join, its attempts.
#include "explain/inside.h"

struct str child_path(struct maker *m, const struct view_of_step *loop, uint32_t child)
{
    struct buf path;
    buf_init(&path, 4096);
    buf_printf(&path, "%.*s[%u].%.*s", STR_ARG(loop->path), loop->note->iteration,
               STR_ARG(m->e->program->steps[child].id));
    return kept(m, &path);
}

// ---- dependencies and rule

void put_dependencies(struct maker *m, struct json *out, const struct view_of_step *v)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < v->ps->dep_count; i++) {
        struct view_of_step dep;
        struct str path = sibling_path(v->path, m->e->program->steps[v->ps->deps[i]].id, m->arena);
        m->failed = m->failed || !path.ptr;
        if (!path.ptr || !look_at(m->e, path, &dep)) continue;
        struct json item = json_object();
        put_text(m, &item, "step", path);
        put_word(m, &item, "state", explain_state_name(dep.state));
        put_word(m, &item, "reason", dep.reason);
        put_place(m, &item, "", state_place(&dep));
        const struct attempt_note *attempt = last_attempt(dep.note);
        if (attempt && attempt->end == ATTEMPT_FAILED) put_text(m, &item, "errorCode", attempt->fault.code);
        push_value(m, &list, item);
    }
    put_value(m, out, "dependencies", list);
}

struct tally {
    uint32_t waiting, success, failed, skipped;
};

static struct tally tally_of(const struct view_of_step *v)
{
    const struct run_step *s = &v->e->run->steps[v->step];
    const struct join_note *join = v->note ? &v->note->join : NULL;
    if (join && join->at.seq > 0) return (struct tally){0, join->success, join->failed, join->skipped};
    if (v->current) return (struct tally){s->waiting, s->success, s->failed, s->skipped};
    return (struct tally){.waiting = v->ps->dep_count};
}

// What can still come of a rule: every mix of outcomes of the open dependencies is tried. Only whether an outcome occurs at
// all matters to a rule, so the mixes are the sets of outcomes.
static const char *outlook(enum trigger_rule rule, const struct tally *t)
{
    bool may_pass = false, may_fail = false;
    for (uint32_t mix = 1; mix < 8; mix++) {
        uint32_t s = mix & 1u, f = mix >> 1 & 1u, k = mix >> 2;
        if (s + f + k > t->waiting) continue;
        bool passes = rule_passes(rule, t->success + s, t->failed + f, t->skipped + k);
        may_pass = may_pass || passes;
        may_fail = may_fail || !passes;
    }
    return may_pass && may_fail ? "open" : may_pass ? "will_pass" : "will_not_pass";
}

// The row of the truth table in docs/format/trigger-rules.md: "SSF"; with many parents "S*12 F*1".
static struct str row_of(struct maker *m, const struct tally *t)
{
    const struct {
        uint32_t count;
        char letter;
    } parts[] = {{t->success, 'S'}, {t->failed, 'F'}, {t->skipped, 'K'}};
    bool many = t->success + t->failed + t->skipped > 6;
    struct buf row;
    buf_init(&row, 256);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (many && parts[i].count > 0)
            buf_printf(&row, "%s%c*%u", row.len ? " " : "", parts[i].letter, parts[i].count);
        for (uint32_t n = 0; !many && n < parts[i].count; n++) buf_byte(&row, parts[i].letter);
    }
    return kept(m, &row);
}

void put_rule(struct maker *m, struct json *out, const struct view_of_step *v)
{
    if (v->ps->dep_count == 0) return;
    struct tally t = tally_of(v);
    struct json rule = json_object();
    put_word(m, &rule, "name", rule_name(v->ps->rule));
    put_word(m, &rule, "needs", rule_needs(v->ps->rule));
    put_int(m, &rule, "success", t.success);
    put_int(m, &rule, "failed", t.failed);
    put_int(m, &rule, "skipped", t.skipped);
    put_int(m, &rule, "open", t.waiting);
    put_text(m, &rule, "row", row_of(m, &t));
    if (t.waiting > 0)
        put_word(m, &rule, "outlook", outlook(v->ps->rule, &t));
    else
        put_bool(m, &rule, "passes", rule_passes(v->ps->rule, t.success, t.failed, t.skipped));
    put_value(m, out, "rule", rule);
}

// ---- condition

// Or over runs of ands, as when_eval does it; null while a value is missing.
static struct json combined(const struct json *atoms)
{
    bool any = false, all = true;
    for (uint32_t i = 0; i < atoms->count; i++) {
        const struct json *result = json_key(&atoms->items[i], "result");
        if (!result) return json_null();
        if (str_is(json_text(json_key(&atoms->items[i], "joined")), "||")) {
            any = any || all;
            all = true;
        }
        all = all && result->boolean;
    }
    return json_bool(any || all);
}

enum code put_when(struct maker *m, struct json *out, const struct view_of_step *v, struct error *err)
{
    const struct join_note *join = v->note ? &v->note->join : NULL;
    if (v->ps->when_text.len == 0 || (join && join->reuse)) return OK;
    bool decided = join && join->at.seq > 0;
    struct json when = json_object(), atoms = {0};
    if (decided) atoms = join->atoms;
    if (!decided && v->current && v->ps->when) {
        enum code rc = atoms_now(m->e, v->step, m->arena, &atoms, err);
        if (rc) return rc;
    }
    put_text(m, &when, "text", v->ps->when_text);
    if (v->ps->when_broken) put_bool(m, &when, "broken", true);
    put_bool(m, &when, "decided", decided && atoms.type != 0);
    if (atoms.type != 0) {
        put_value(m, &when, "result", combined(&atoms));
        put_value(m, &when, "atoms", atoms);
    }
    put_value(m, out, "when", when);
    return OK;
}

// ---- attempts

void put_retry(struct maker *m, struct json *out, const struct view_of_step *v)
{
    const struct retry_policy *policy = &v->ps->retry;
    const struct attempt_note *last = last_attempt(v->note);
    bool failed = last && last->end == ATTEMPT_FAILED;
    if (policy->max_attempts <= 1 && !failed) return;
    uint32_t used = last ? last->logical - v->note->base : 0;
    struct json retry = json_object(), codes = json_array();
    put_int(m, &retry, "maxAttempts", policy->max_attempts);
    put_int(m, &retry, "used", used);
    put_int(m, &retry, "left", used < policy->max_attempts ? policy->max_attempts - used : 0);
    put_word(m, &retry, "on", policy->on == RETRY_ALL ? "all" : "transient");
    put_word(m, &retry, "backoff", backoff_name(policy->backoff));
    put_int(m, &retry, "delayMs", policy->delay_ms);
    put_count(m, &retry, "maxDelayMs", policy->max_delay_ms);
    if (policy->jitter > 0) put_int(m, &retry, "jitterPercent", (int64_t)(policy->jitter * 100 + 0.5));
    for (uint32_t i = 0; i < policy->non_retryable_count; i++)
        push_value(m, &codes, json_string(policy->non_retryable[i]));
    if (codes.count > 0) put_value(m, &retry, "nonRetryable", codes);
    if (failed && last->retry) put_word(m, &retry, "verdict", retry_verdict_name(last->retry));
    if (last && v->state == STATE_RETRYING) {
        struct json next = json_object();
        put_int(m, &next, "attempt", last->logical + 1);
        put_time(m, &next, "notBefore", last->due_ms);
        put_place(m, &next, "", last->due);
        put_value(m, &retry, "next", next);
    }
    put_value(m, out, "retry", retry);
}

void put_attempts(struct maker *m, struct json *out, const struct view_of_step *v)
{
    static const char *const ends[] = {"running", "done", "failed", "skipped"};
    static const char *const causes[] = {"", "first", "retry", "person", "reuse"};
    struct json list = json_array();
    for (size_t i = 0; v->note && i < v->note->attempt_count; i++) {
        const struct attempt_note *a = &v->note->attempts[i];
        struct json item = json_object();
        put_int(m, &item, "attempt", a->logical);
        put_word(m, &item, "startedBy", causes[a->cause]);
        put_place(m, &item, "", a->start);
        put_time(m, &item, "startedAt", a->started_ms);
        put_word(m, &item, "result", ends[a->end]);
        put_count(m, &item, "redispatched", a->engine > 1 ? a->engine - 1 : 0);
        put_place(m, &item, "redispatch", a->redispatch);
        if (a->end != ATTEMPT_OPEN) {
            put_place(m, &item, "end", a->over);
            put_time(m, &item, "endedAt", a->ended_ms);
            put_int(m, &item, "durationMs", a->duration_ms);
        }
        if (a->end == ATTEMPT_FAILED) put_fault(m, &item, "error", &a->fault);
        if (a->end == ATTEMPT_FAILED && a->retry) put_word(m, &item, "retry", retry_verdict_name(a->retry));
        push_value(m, &list, item);
    }
    if (list.count > 0) put_value(m, out, "attempts", list);
}
