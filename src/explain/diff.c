// Two runs side by side: document, inputs, path, outputs, timing, and the event where they part. Steps are aligned by path.
#include "explain/inside.h"

struct pair {
    struct maker *m; // its explain is a
    const struct explain *a, *b;
    unsigned parts;
};

static struct str no_text = {"", 0};

// ---- which runs

static int64_t run_duration(const struct run *run)
{
    return run->started_ms > 0 && run->ended_ms >= run->started_ms ? run->ended_ms - run->started_ms : -1;
}

static void put_side(struct maker *m, struct json *out, const char *key, const struct explain *e)
{
    struct json side = JSON_OF(m->arena, {"runId", json_some(e->run->ids.run)}, {"seq", json_count(e->seq)},
                               {"status", json_name(run_status_name(e->run->status))},
                               {"durationMs", run_duration(e->run) >= 0 ? json_int(run_duration(e->run))
                                : json_none()});
    JSON_ADD(m->arena, out, {key, side});
}

static bool put_inputs(struct pair *p, struct json *out)
{
    const struct start_facts *a = &p->a->run->start, *b = &p->b->run->start;
    struct json inputs = json_object(), changes = json_array(), nothing = json_object();
    int64_t left_out = 0;
    if (a->document_sha256.len > 0 && b->document_sha256.len > 0) // before its start a run has none
        left_out =
            put_changes(p->m, &changes, a->inputs.type ? &a->inputs : &nothing, b->inputs.type ? &b->inputs : &nothing);
    if (!str_eq(a->arguments, b->arguments) && a->document_sha256.len > 0 && b->document_sha256.len > 0) {
        json_append(p->m->arena, &changes, JSON_OF(p->m->arena, {"path", json_word("$ARGUMENTS")},
                                                   {"a", json_short(p->m, a->arguments, TEXT_SHORT)},
                                                   {"b", json_short(p->m, b->arguments, TEXT_SHORT)}));
    }
    bool same = changes.count == 0;
    JSON_ADD(p->m->arena, &inputs, {"same", json_bool(same)}, {"changes", json_filled(changes)},
             {"changesLeftOut", json_nonzero(left_out)});
    JSON_ADD(p->m->arena, out, {"inputs", inputs});
    return same;
}

// ---- every path of both, those of a first

struct walk {
    size_t cursor;
    bool second;
};

static bool next_path(const struct pair *p, struct walk *walk, struct str *path)
{
    for (;;) {
        *path = explain_path(walk->second ? p->b : p->a, &walk->cursor, p->m->arena);
        if (path->ptr && walk->second && explain_lists(p->a, *path, p->m->arena)) continue; // was there with a
        if (path->ptr) return true;
        if (walk->second) return false;
        *walk = (struct walk){.second = true};
    }
}

static bool look_both(const struct pair *p, struct str path, struct view_of_step *a, struct view_of_step *b,
                      bool *has_a, bool *has_b)
{
    *has_a = look_at(p->a, path, a);
    *has_b = look_at(p->b, path, b);
    return *has_a && *has_b;
}

// ---- path

static struct str error_code(const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    return attempt && attempt->end == ATTEMPT_FAILED ? attempt->fault.code : no_text;
}

static uint32_t attempts_of(const struct view_of_step *v)
{
    return v->note ? (uint32_t)v->note->attempt_count : 0;
}

// A result that was taken over is the same result.
static bool same_way(const struct view_of_step *a, const struct view_of_step *b)
{
    bool taken = a->state == STATE_REUSED || b->state == STATE_REUSED;
    enum explain_state left = a->state == STATE_REUSED ? STATE_DONE : a->state;
    enum explain_state right = b->state == STATE_REUSED ? STATE_DONE : b->state;
    if (left != right) return false;
    if (taken) return true;
    bool reasoned = left == STATE_SKIPPED || left == STATE_FAILED;
    if (reasoned && !str_eq(str_from(a->reason), str_from(b->reason))) return false;
    return attempts_of(a) == attempts_of(b) && str_eq(error_code(a), error_code(b));
}

static void put_way(struct maker *m, struct json *out, const char *key, const struct view_of_step *v)
{
    JSON_ADD(m->arena, out, {key, JSON_OF(m->arena, {"state", json_name(explain_state_name(v->state))},
                                          {"reason", json_name(v->reason)}, {"attempts", json_nonzero(attempts_of(v))},
                                          {"errorCode", json_some(error_code(v))}, AT(state_place(v)))});
}

static bool put_path(struct pair *p, struct json *out)
{
    struct json path = json_object(), steps = json_array();
    struct str name;
    int64_t same_count = 0;
    for (struct walk walk = {0}; next_path(p, &walk, &name);) {
        struct view_of_step a, b;
        bool has_a, has_b;
        if (look_both(p, name, &a, &b, &has_a, &has_b) && same_way(&a, &b)) {
            same_count++;
            continue;
        }
        // A round that only one of them came to differs only by what happened in it.
        if (scope_path(name).len > 0 && (!has_a || !a.note) && (!has_b || !b.note)) continue;
        struct json item = JSON_OF(p->m->arena, {"step", json_some(name)});
        if (has_a) put_way(p->m, &item, "a", &a);
        if (has_b) put_way(p->m, &item, "b", &b);
        json_append(p->m->arena, &steps, item);
    }
    bool same = steps.count == 0 && p->a->run->status == p->b->run->status;
    JSON_ADD(p->m->arena, &path, {"same", json_bool(same)}, {"sameSteps", json_int(same_count)}, {"steps", steps});
    JSON_ADD(p->m->arena, out, {"path", path});
    return same;
}

// ---- outputs

// Outputs that are kept as blobs are read when they differ and are not too large to look at.
static bool output_of(struct maker *m, const struct explain *e, const struct step_finding *note, struct json *out)
{
    struct str bytes;
    struct error ignored = {0};
    *out = note->value.type ? note->value : json_null();
    if (!note->has_blob) return true;
    return e->env.blob(e->env.context, &note->blob, m->arena, &bytes, &ignored) == OK &&
           json_parse(bytes, &json_limits_result, m->arena, out, &ignored) == OK;
}

static bool same_output(const struct step_finding *a, const struct step_finding *b)
{
    if (a->has_blob != b->has_blob) return false;
    if (a->has_blob) return digest_eq(&a->blob, &b->blob);
    struct json none = json_null();
    return json_equal(a->value.type ? &a->value : &none, b->value.type ? &b->value : &none);
}

static void put_output(struct pair *p, struct json *steps, struct str name, const struct step_finding *a,
                       const struct step_finding *b)
{
    struct json changes = json_array(), left, right;
    struct json item = JSON_OF(p->m->arena, {"step", json_some(name)});
    if (output_of(p->m, p->a, a, &left) && output_of(p->m, p->b, b, &right)) {
        JSON_ADD(p->m->arena, &item, {"changesLeftOut", json_nonzero(put_changes(p->m, &changes, &left, &right))});
        JSON_ADD(p->m->arena, &item, {"changes", changes});
    } else {
        JSON_ADD(p->m->arena, &item, {"sizeA", json_count(a->blob_size)}, {"sizeB", json_count(b->blob_size)});
    }
    json_append(p->m->arena, steps, item);
}

static bool put_outputs(struct pair *p, struct json *out)
{
    struct json outputs = json_object(), steps = json_array();
    struct str name;
    for (struct walk walk = {0}; next_path(p, &walk, &name);) {
        const struct step_finding *a = note_find(p->a, name), *b = note_find(p->b, name);
        if (!a || !b || a->state != NODE_SUCCESS || b->state != NODE_SUCCESS || same_output(a, b)) continue;
        put_output(p, &steps, name, a, b);
    }
    JSON_ADD(p->m->arena, &outputs, {"same", json_bool(steps.count == 0)}, {"steps", steps});
    JSON_ADD(p->m->arena, out, {"outputs", outputs});
    return steps.count == 0;
}

// ---- timing

// From the first start to the last end; -1: it has not ended.
static int64_t duration_of(const struct step_finding *note)
{
    const struct attempt_finding *last = last_attempt(note);
    if (!last || last->end == ATTEMPT_OPEN || note->state < NODE_SUCCESS || note->reused_from.len > 0 ||
        last->cause == START_REUSE)
        return -1;
    int64_t ms = last->ended_ms - note->attempts[0].started_ms;
    return ms > 0 ? ms : 0;
}

static int64_t magnitude(const struct json *item)
{
    int64_t change = json_integer(json_key(item, "change"), 0);
    return change < 0 ? -change : change;
}

// Biggest change first; equal ones stay in order.
static void merge_sort(struct json *items, struct json *spare, size_t count)
{
    if (count < 2) return;
    size_t half = count / 2, i = 0, k = half, n = 0;
    merge_sort(items, spare, half);
    merge_sort(items + half, spare, count - half);
    while (i < half || k < count) {
        bool left = k == count || (i < half && magnitude(&items[i]) >= magnitude(&items[k]));
        spare[n++] = left ? items[i++] : items[k++];
    }
    for (size_t at = 0; at < count; at++) items[at] = spare[at];
}

static void put_durations(struct maker *m, struct json *out, int64_t a, int64_t b)
{
    JSON_ADD(m->arena, out, {"a", json_when(a >= 0, json_int(a))}, {"b", json_when(b >= 0, json_int(b))},
             {"change", json_when(a >= 0 && b >= 0, json_int(b - a))});
}

static bool put_timing(struct pair *p, struct json *out)
{
    struct json timing = json_object(), run = json_object(), steps = json_array();
    struct str name;
    bool same = run_duration(p->a->run) == run_duration(p->b->run);
    put_durations(p->m, &run, run_duration(p->a->run), run_duration(p->b->run));
    for (struct walk walk = {0}; next_path(p, &walk, &name);) {
        const struct step_finding *a = note_find(p->a, name), *b = note_find(p->b, name);
        int64_t left = a ? duration_of(a) : -1, right = b ? duration_of(b) : -1;
        if (left < 0 && right < 0) continue;
        struct json item = JSON_OF(p->m->arena, {"step", json_some(name)});
        put_durations(p->m, &item, left, right);
        json_append(p->m->arena, &steps, item);
        same = same && left == right;
    }
    struct json *spare = ARENA_ARRAY(p->m->arena, steps.count + 1, struct json);
    p->m->failed = p->m->failed || !spare;
    if (spare) merge_sort(steps.items, spare, steps.count);
    JSON_ADD(p->m->arena, &timing, {"same", json_bool(same)}, {"run", run}, {"steps", steps});
    JSON_ADD(p->m->arena, out, {"timing", timing});
    return same;
}

// ---- the event where they part

struct chains { // events of one run, linked per step; index note_count is the run
    size_t *first, *next;
};
#define CHAIN_END SIZE_MAX

static bool link_events(const struct explain *e, struct arena *arena, struct chains *out)
{
    out->first = ARENA_ARRAY(arena, e->note_count + 1, size_t);
    out->next = ARENA_ARRAY(arena, e->event_count + 1, size_t);
    if (!out->first || !out->next) return false;
    for (size_t i = 0; i <= e->note_count; i++) out->first[i] = CHAIN_END;
    for (size_t i = e->event_count; i > 0; i--) {
        size_t slot = e->events[i - 1].note == NOTE_RUN ? e->note_count : e->events[i - 1].note;
        out->next[i - 1] = out->first[slot];
        out->first[slot] = i - 1;
    }
    return true;
}

struct parting {
    bool found;
    uint64_t order;
    const struct event_finding *a, *b;
};

static bool same_event(const struct pair *p, const struct event_finding *a, const struct event_finding *b)
{
    bool content = (p->parts & DIFF_OUTPUTS) || a->kind != MOMENT_STEP_COMPLETED;
    return a->kind == b->kind && a->logical == b->logical && (!content || a->content == b->content);
}

// The first difference in the lives of one step, or of the run; kept when it is earlier than what was found so far.
static void part_at(const struct pair *p, const struct chains *a, size_t at, const struct chains *b, size_t other,
                    struct parting *out)
{
    while (at != CHAIN_END && other != CHAIN_END && same_event(p, &p->a->events[at], &p->b->events[other])) {
        at = a->next[at];
        other = b->next[other];
    }
    if (at == CHAIN_END && other == CHAIN_END) return;
    const struct event_finding *x = at == CHAIN_END ? NULL : &p->a->events[at];
    const struct event_finding *y = other == CHAIN_END ? NULL : &p->b->events[other];
    uint64_t order = x ? x->seq : y ? y->seq : 0;
    if (out->found && out->order <= order) return;
    *out = (struct parting){.found = true, .order = order, .a = x, .b = y};
}

static void put_event(struct maker *m, struct json *out, const char *key, const struct explain *e,
                      const struct event_finding *event)
{
    if (!event) return;
    struct json item = json_object();
    enum vocabulary words = program_vocabulary(e->program);
    const char *word = moment_word(event->kind, words);
    JSON_ADD(m->arena, &item, {word ? "seq" : "afterSeq", json_count(event->seq)},
             {"event", json_name(word ? word : moment_name(event->kind))},
             {"step", event->note != NOTE_RUN ? json_some(e->notes[event->note]->path) : json_none()});
    JSON_ADD(m->arena, out, {key, item});
}

static void put_parting(struct pair *p, struct json *out)
{
    struct chains a, b;
    struct parting parting = {0};
    if (!link_events(p->a, p->m->arena, &a) || !link_events(p->b, p->m->arena, &b)) {
        p->m->failed = true;
        return;
    }
    part_at(p, &a, a.first[p->a->note_count], &b, b.first[p->b->note_count], &parting);
    for (size_t i = 0; i < p->a->note_count; i++) {
        uint32_t other = map_get(&p->b->index, p->a->notes[i]->path);
        part_at(p, &a, a.first[i], &b, other == MAP_NONE ? CHAIN_END : b.first[other], &parting);
    }
    for (size_t i = 0; i < p->b->note_count; i++)
        if (map_get(&p->a->index, p->b->notes[i]->path) == MAP_NONE)
            part_at(p, &a, CHAIN_END, &b, b.first[i], &parting);
    if (!parting.found) return;
    struct json item = json_object();
    put_event(p->m, &item, "a", p->a, parting.a);
    put_event(p->m, &item, "b", p->b, parting.b);
    JSON_ADD(p->m->arena, out, {"parting", item});
}

enum code explain_diff(const struct explain *a, const struct explain *b, unsigned parts, struct arena *arena,
                       struct json *out, bool *same, struct error *err)
{
    struct maker m = {.e = a, .arena = arena};
    struct pair p = {.m = &m, .a = a, .b = b, .parts = parts};
    struct json sections = json_object();
    bool steps = parts & DIFF_STEPS, outputs = parts & DIFF_OUTPUTS, timing = parts & DIFF_TIMING;
    *same = true;
    if (steps) {
        bool document = put_documents(&m, &sections, a->program, b->program);
        bool inputs = put_inputs(&p, &sections);
        bool path = put_path(&p, &sections);
        *same = document && inputs && path;
    }
    if (outputs) *same = put_outputs(&p, &sections) && *same;
    if (timing) {
        bool alike = put_timing(&p, &sections);
        if (!steps && !outputs) *same = alike;
    }
    *out = JSON_OF(m.arena, {"same", json_bool(*same)});
    put_side(&m, out, "a", a);
    put_side(&m, out, "b", b);
    json_fill(arena, out, &sections);
    if (steps || outputs) put_parting(&p, out);
    return m.failed || !json_ok(&sections) ? error_nomem(err) : json_made(out, err);
}
