// The parts of an answer about a step: its join, its attempts.
#include "explain/inside.h"

struct str child_path(struct maker *m, const struct view_of_step *loop, uint32_t child)
{
    struct buf path = buf_of(4096);
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
        struct json item = JSON_OF(m->arena, {"step", json_some(path)},
                                   {"state", json_name(explain_state_name(dep.state))},
                                   {"reason", json_name(dep.reason)}, AT(state_place(&dep)));
        const struct attempt_finding *attempt = last_attempt(dep.note);
        JSON_ADD(m->arena, &item,
                 {"errorCode", attempt && attempt->end == ATTEMPT_FAILED ? json_some(attempt->fault.code)
                  : json_none()});
        json_append(m->arena, &list, item);
    }
    JSON_ADD(m->arena, out, {"dependencies", list});
}

struct tally {
    uint32_t waiting, success, failed, skipped;
};

static struct tally tally_of(const struct view_of_step *v)
{
    struct parents parents = kernel_parents(v->e->run, v->step);
    const struct join_finding *join = v->note ? &v->note->join : NULL;
    if (join && join->at.seq > 0) return (struct tally){0, join->success, join->failed, join->skipped};
    if (v->current) return (struct tally){parents.waiting, parents.success, parents.failed, parents.skipped};
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
    struct buf row = buf_of(256);
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
    struct json rule = JSON_OF(m->arena, {"name", json_name(rule_name(v->ps->rule))},
                               {"needs", json_name(rule_needs(v->ps->rule))}, {"success", json_int(t.success)},
                               {"failed", json_int(t.failed)}, {"skipped", json_int(t.skipped)},
                               {"open", json_int(t.waiting)}, {"row", json_some(row_of(m, &t))});
    if (t.waiting > 0)
        JSON_ADD(m->arena, &rule, {"outlook", json_name(outlook(v->ps->rule, &t))});
    else
        JSON_ADD(m->arena, &rule, {"passes", json_bool(rule_passes(v->ps->rule, t.success, t.failed, t.skipped))});
    JSON_ADD(m->arena, out, {"rule", rule});
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
    const struct join_finding *join = v->note ? &v->note->join : NULL;
    if (v->ps->when_text.len == 0 || (join && join->reuse)) return OK;
    bool decided = join && join->at.seq > 0;
    struct json when = json_object(), atoms = {0};
    if (decided) atoms = join->atoms;
    if (!decided && v->current && v->ps->when) {
        enum code rc = atoms_now(m->e, v->step, m->arena, &atoms, err);
        if (rc) return rc;
    }
    JSON_ADD(m->arena, &when, {"text", json_some(v->ps->when_text)}, {"broken", json_flag(v->ps->when_broken)},
             {"decided", json_bool(decided && atoms.type != 0)});
    if (atoms.type != 0) {
        JSON_ADD(m->arena, &when, {"result", combined(&atoms)});
        JSON_ADD(m->arena, &when, {"atoms", atoms});
    }
    JSON_ADD(m->arena, out, {"when", when});
    return OK;
}

// ---- attempts

void put_retry(struct maker *m, struct json *out, const struct view_of_step *v)
{
    const struct retry_policy *policy = &v->ps->retry;
    const struct attempt_finding *last = last_attempt(v->note);
    bool failed = last && last->end == ATTEMPT_FAILED;
    enum retry_verdict verdict = last && last->end == ATTEMPT_FAILED ? last->retry : 0;
    if (policy->max_attempts <= 1 && !failed) return;
    uint32_t used = last ? last->logical - v->note->base : 0;
    struct json codes = json_array();
    struct json retry = JSON_OF(m->arena, {"maxAttempts", json_int(policy->max_attempts)}, {"used", json_int(used)},
                                {"left", json_int(used < policy->max_attempts ? policy->max_attempts - used : 0)},
                                {"on", json_name(policy->on == RETRY_ALL ? "all" : "transient")},
                                {"backoff", json_name(backoff_name(policy->backoff))},
                                {"delayMs", json_int(policy->delay_ms)},
                                {"maxDelayMs", json_nonzero(policy->max_delay_ms)},
                                {"jitterPercent", policy->jitter > 0 ? json_int((int64_t)(policy->jitter * 100 + 0.5))
                                 : json_none()});
    for (uint32_t i = 0; i < policy->non_retryable_count; i++)
        json_append(m->arena, &codes, json_string(policy->non_retryable[i]));
    JSON_ADD(m->arena, &retry, {"nonRetryable", json_filled(codes)},
             {"verdict", json_name(retry_verdict_name(verdict))});
    if (last && v->state == STATE_RETRYING) {
        struct json next = JSON_OF(m->arena, {"attempt", json_int(last->logical + 1)},
                                   {"notBefore", json_time_some(m->arena, last->due_ms)}, AT(last->due));
        JSON_ADD(m->arena, &retry, {"next", next});
    }
    JSON_ADD(m->arena, out, {"retry", retry});
}

void put_attempts(struct maker *m, struct json *out, const struct view_of_step *v)
{
    static const char *const ends[] = {"running", "done", "failed", "skipped"};
    static const char *const causes[] = {"", "first", "retry", "person", "reuse"};
    struct json list = json_array();
    for (size_t i = 0; v->note && i < v->note->attempt_count; i++) {
        const struct attempt_finding *a = &v->note->attempts[i];
        struct json item = JSON_OF(m->arena, {"attempt", json_int(a->logical)},
                                   {"startedBy", json_name(causes[a->cause])}, AT(a->start),
                                   {"startedAt", json_time_some(m->arena, a->started_ms)},
                                   {"result", json_name(ends[a->end])},
                                   {"redispatched", json_nonzero(a->engine > 1 ? a->engine - 1 : 0)},
                                   AT_OF("redispatch", a->redispatch));
        if (a->end != ATTEMPT_OPEN)
            JSON_ADD(m->arena, &item, AT_OF("end", a->over), {"endedAt", json_time_some(m->arena, a->ended_ms)},
                     {"durationMs", json_int(a->duration_ms)});
        JSON_ADD(m->arena, &item, {"error", a->end == ATTEMPT_FAILED ? fault_json(m, &a->fault) : json_none()},
                 {"retry", a->end == ATTEMPT_FAILED && a->retry ? json_name(retry_verdict_name(a->retry))
                  : json_none()});
        json_append(m->arena, &list, item);
    }
    JSON_ADD(m->arena, out, {"attempts", json_filled(list)});
}
