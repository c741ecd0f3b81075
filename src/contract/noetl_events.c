// VOCABULARY_NOETL: the canonical event model of playbooks (NX-2, NX-3), 29 types in one envelope.
//
// What is particular to a type is in `payload`: inputs, outcome, result_ref, error as the model names them, decisions flat, and in
// `payload.meta` what Cairn knows besides: whose run it is, in every record (WE-2.1.3j). Members that would say nothing are left out, so
// that a record stays small. `timestamp` is when it happened; meta.appended_ms, how much later it was stored.
#include "contract/noetl_tables.h"
#include "json/make.h"

#include <string.h>

#define WORKFLOW_RUN "workflow:run:1"

static bool went_wrong(const struct moment *moment)
{
    return moment->fault.code.len > 0;
}

static enum entity_status standing_of(const struct moment *moment)
{
    bool may_fail = moment->kind == MOMENT_REQUEST_EVALUATED || moment->kind == MOMENT_WORKFLOW_FINISHED;
    if (may_fail && went_wrong(moment)) return FAILURE;
    const struct json *allow = moment->kind == MOMENT_ADMIT_EVALUATED ? json_get(&moment->value, STR("allow")) : NULL;
    if (json_is(allow, JSON_BOOL) && !allow->boolean) return SKIPPED;
    return (enum entity_status)noetl_rows[moment->kind].standing;
}

// ---- ids

enum { DIGITS_MAX = 10 };

// Ids are written for every record: no printf.
struct joining {
    char *at;
};

static size_t digit_count(uint32_t n)
{
    size_t count = 1;
    for (; n >= 10; n /= 10) count++;
    return count;
}

static void join_text(struct joining *j, struct str text)
{
    if (text.len) memcpy(j->at, text.ptr, text.len);
    j->at += text.len;
}

static void join_number(struct joining *j, uint32_t n)
{
    size_t count = digit_count(n);
    for (size_t i = count; i > 0; i--) {
        j->at[i - 1] = (char)('0' + n % 10);
        n /= 10;
    }
    j->at += count;
}

// "<prefix><name><middle><n>"
static struct str join_id(struct arena *arena, struct str prefix, struct str name, struct str middle, uint32_t n)
{
    size_t size = prefix.len + name.len + middle.len + DIGITS_MAX;
    struct joining j = {arena_alloc(arena, size)};
    if (!j.at) return (struct str){NULL, 0};
    char *start = j.at;
    join_text(&j, prefix);
    join_text(&j, name);
    join_text(&j, middle);
    join_number(&j, n);
    return (struct str){start, (size_t)(j.at - start)};
}

// "<name><middle><digits>" at the end of the text. False: it does not end like that.
static bool cut_id(struct str *text, struct str middle, uint32_t *n)
{
    size_t at = text->len;
    uint64_t value = 0, unit = 1;
    while (at > 0 && text->ptr[at - 1] >= '0' && text->ptr[at - 1] <= '9' && text->len - at < DIGITS_MAX) {
        value += (uint64_t)(text->ptr[--at] - '0') * unit;
        unit *= 10;
    }
    if (at == text->len || value > UINT32_MAX || at < middle.len) return false;
    if (memcmp(text->ptr + at - middle.len, middle.ptr, middle.len) != 0) return false;
    *n = (uint32_t)value;
    text->len = at - middle.len;
    return true;
}

#define STEP_PREFIX "step:"
#define TASK_PREFIX "task:"
#define RUN_PART ":run:"
#define ITERATION_PART ":iteration:"

bool noetl_cut_run(struct str *id, uint32_t *n)
{
    return cut_id(id, STR(RUN_PART), n);
}

static bool derive_step(const struct moment *moment, struct arena *arena, struct derived *d)
{
    d->step_run_id = join_id(arena, STR(STEP_PREFIX), moment->step, STR(RUN_PART), moment->visit);
    bool ok = d->step_run_id.ptr;
    if (moment->iteration) {
        d->iteration_id = join_id(arena, d->step_run_id, STR(""), STR(ITERATION_PART), moment->iteration - 1);
        ok = ok && d->iteration_id.ptr;
    }
    if (!moment->task.len) return ok;
    // Runs of a task are counted in the visit or the iteration, and their ids differ in the whole execution.
    const struct str parts[] = {STR(TASK_PREFIX), moment->task, STR(":"),
                                moment->iteration ? d->iteration_id : d->step_run_id};
    struct str prefix = ok ? contract_join(arena, parts, ARRAY_COUNT(parts)) : (struct str){0};
    if (!prefix.ptr) return false;
    d->task_run_id = join_id(arena, prefix, STR(""), STR(RUN_PART), moment->task_run);
    return d->task_run_id.ptr;
}

static bool joined(struct arena *arena, struct str prefix, struct str name, struct str *out)
{
    const struct str parts[] = {prefix, name};
    *out = contract_join(arena, parts, ARRAY_COUNT(parts));
    return out->ptr;
}

static bool derive_entity(const struct run_ids *ids, const struct moment *moment, enum entity entity,
                          struct arena *arena, struct derived *d)
{
    bool task = moment->task.len > 0;
    d->workflow_run_id = STR(WORKFLOW_RUN);
    d->parent_id = d->step_run_id;
    switch (entity) {
    case ENTITY_PLAYBOOK:
        d->entity_id = ids->plan_id;
        d->workflow_run_id = d->parent_id = STR("");
        return true;
    case ENTITY_WORKFLOW:
        d->entity_id = ids->plan_id;
        d->parent_id = ids->run;
        return true;
    case ENTITY_STEP:
        d->entity_id = moment->step;
        d->parent_id = STR(WORKFLOW_RUN);
        return true;
    case ENTITY_TASK:
        d->entity_id = moment->task;
        return true;
    case ENTITY_LOOP:
        return joined(arena, STR("loop:"), moment->step, &d->entity_id);
    case ENTITY_NEXT:
    case ENTITY_POLICY:
        if (task) d->parent_id = d->task_run_id;
        return joined(arena, task ? STR(TASK_PREFIX) : STR(STEP_PREFIX), task ? moment->task : moment->step,
                      &d->entity_id);
    case ENTITY_RESULT:
        if (!task) return joined(arena, STR(STEP_PREFIX), moment->step, &d->entity_id);
        d->parent_id = d->task_run_id;
        d->entity_id = join_id(arena, STR(TASK_PREFIX), moment->task, STR(":attempt:"), moment->logical);
        return d->entity_id.ptr;
    }
    INVARIANT(!"an event is about one of the entities");
    return false;
}

// ---- records

// Members of the value and of `payload`, in one object. Canonical order is made when it is written.
static enum code flatten(const struct moment *moment, struct arena *arena, struct json *payload, struct error *err)
{
    const struct json *value = &moment->value;
    if (value->type != JSON_OBJECT || json_get(value, STR("meta")) || json_get(value, STR("value_ref")))
        return error_set(err, E_INVALID, "%s needs an object without \"meta\"", moment_name(moment->kind));
    *payload = json_joined(arena, value, payload);
    return json_made(payload, err);
}

static const struct str stores[] = {
    [RESULT_OBJECT] = STR_INIT("object"), [RESULT_NATS_OBJECT] = STR_INIT("nats_object")};

struct str result_store_word(enum result_store store)
{
    INVARIANT((size_t)store < ARRAY_COUNT(stores));
    return stores[store];
}

bool result_store_parse(struct str word, enum result_store *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(stores); i++) {
        if (!str_eq(word, stores[i])) continue;
        *out = (enum result_store)i;
        return true;
    }
    return false;
}

static enum code derive(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                        struct arena *arena, struct derived *d, struct error *err)
{
    const struct noetl_row *row = &noetl_rows[moment->kind];
    if (moment_is_step(moment->kind) && !moment->visit)
        return error_set(err, E_INVALID, "%s of a playbook has no visit", moment_name(moment->kind));
    enum emitter by = moment->by ? moment->by : moment_emitter(moment->kind);
    d->type = row->type;
    d->alias = row->alias;
    d->entity_type = noetl_entity_words[row->entity];
    d->status = noetl_standing_words[standing_of(moment)];
    d->source = by == EMITTER_WORKER ? STR("worker") : STR("server");
    if (by != EMITTER_WORKER && by != EMITTER_ENGINE) d->by = str_from(emitter_name(by));
    if (__builtin_sub_overflow(seal->persisted_ms, moment->at_ms, &d->appended))
        return error_set(err, E_INVALID, "the time of %s is none", moment_name(moment->kind));
    if (moment->step.len && !derive_step(moment, arena, d)) return error_nomem(err);
    if (!derive_entity(ids, moment, (enum entity)row->entity, arena, d)) return error_nomem(err);
    if (!moment->has_blob) return OK;
    const struct result_place place = result_place(ids->run, moment);
    d->store = result_store_word(moment->store);
    d->ref = result_ref_format(&place, arena);
    return d->ref.ptr ? OK : error_nomem(err);
}

// ---- what is known to fit the schemas

static bool index_fits(const struct json *index) // of a rule
{
    return !index || index->type == JSON_NULL || (index->type == JSON_INT && index->integer >= 0);
}

static bool set_fits(const struct json *set)
{
    return !set || json_is(set, JSON_OBJECT);
}

static bool steps_fit(const struct json *steps)
{
    if (!json_is(steps, JSON_ARRAY)) return false;
    for (uint32_t i = 0; i < steps->count; i++)
        if (steps->items[i].type != JSON_OBJECT) return false;
    return true;
}

static bool action_fits(const struct json *action)
{
    static const char *const words[] = {"continue", "retry", "jump", "break", "fail"};
    struct str word = json_text(json_key(action, "do"));
    bool known = false;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) known = known || str_is(word, words[i]);
    return known && json_is(action, JSON_OBJECT);
}

static bool routed_fits(const struct json *value)
{
    const struct json *event = json_key(value, "event"), *matched = json_key(value, "matched");
    struct str mode = json_text(json_key(value, "mode"));
    return (str_is(mode, "exclusive") || str_is(mode, "inclusive")) && (!event || json_is(event, JSON_STRING)) &&
           (!matched || steps_fit(matched)) && steps_fit(json_key(value, "selected")) && set_fits(json_key(value, "set"));
}

// A decision, as the kernel makes them.
static bool decision_fits(enum moment_kind kind, const struct json *value)
{
    if (kind == MOMENT_ADMIT_EVALUATED)
        return json_is(json_key(value, "allow"), JSON_BOOL) && index_fits(json_key(value, "matched_rule_index"));
    if (kind == MOMENT_TASK_DECIDED)
        return action_fits(json_key(value, "action")) && index_fits(json_key(value, "matched_rule_index")) &&
               set_fits(json_key(value, "set"));
    return kind == MOMENT_ROUTED && routed_fits(value);
}

// The ids that the schema of the kind asks for are there.
static bool place_fits(const struct moment *moment)
{
    enum moment_kind kind = moment->kind;
    bool task = noetl_rows[kind].entity == ENTITY_TASK || kind == MOMENT_TASK_DECIDED;
    bool iteration = kind >= MOMENT_ITERATION_SCHEDULED && kind <= MOMENT_ITERATION_FAILED;
    if (!moment_is_step(kind)) return moment->step.len + moment->task.len + moment->iteration == 0;
    return moment->step.len > 0 && (!task || moment->task.len > 0) && (!iteration || moment->iteration > 0) &&
           (moment->task.len == 0 || moment->task_run > 0);
}

static enum code build(const struct run_ids *ids, const struct moment *moment, const struct seal *seal,
                       const struct digest *key, struct arena *arena, struct json *out, bool *doubt, struct error *err)
{
    const struct noetl_row *row = &noetl_rows[moment->kind];
    INVARIANT(row->payload);
    if (moment->kind == MOMENT_RUN_REQUESTED && !moment->start) return start_missing(err);
    struct derived derived = {.key = *key};
    enum code rc = derive(ids, moment, seal, arena, &derived, err);
    if (rc) return rc;
    const struct facts_in facts = facts_of(ids, moment, seal, &derived, doubt);
    *doubt |= !place_fits(moment) || (row->flat && !decision_fits(moment->kind, &moment->value));
    rc = fields_encode(noetl_payload(moment->kind, went_wrong(moment)), &facts, arena, &derived.payload, err);
    if (!rc && row->flat) rc = flatten(moment, arena, &derived.payload, err);
    if (rc) return rc;
    return fields_encode(row->envelope, &facts, arena, out, err);
}

// Three kinds are playbook.finished and two playbook.request.evaluated.
static enum moment_kind kind_of(struct str type, struct str status, const struct json *payload)
{
    enum moment_kind kind = moment_of_word(VOCABULARY_NOETL, type);
    if (kind == MOMENT_REQUEST_EVALUATED) {
        const struct json *resume = json_get(json_get(payload, STR("meta")), STR("resume"));
        return json_true(resume) ? MOMENT_RUN_RESUMED : kind;
    }
    if (kind != MOMENT_RUN_CANCELLED) return kind;
    if (str_eq(status, noetl_standing_words[SUCCESS])) return MOMENT_RUN_COMPLETED;
    const struct json *error = json_get(payload, STR("error"));
    bool ended = str_is(json_text(json_get(error, STR("kind"))), NOETL_CANCELLED) && !json_get(error, STR("code"));
    return ended ? MOMENT_RUN_CANCELLED : MOMENT_RUN_FAILED;
}

// "task:<label>:<step_run_id>"
static bool ends_with_step(struct str task, struct str step)
{
    size_t least = sizeof(TASK_PREFIX) + step.len; // a byte of the label, and ':'
    return task.len > least && str_ends(task, step) && task.ptr[task.len - step.len - 1] == ':';
}

static enum code read_ids(const struct derived *derived, struct moment *moment, struct error *err)
{
    struct str step = derived->step_run_id, task = derived->task_run_id;
    if (moment_is_step(moment->kind) != (step.len > 0))
        return error_set(err, E_CORRUPT, "record: %.*s %s step_run_id", STR_ARG(derived->type),
                         step.len ? "must not have a" : "has no");
    uint32_t iteration = 0;
    bool ok = true;
    if (step.len) {
        ok = str_starts(step, STR(STEP_PREFIX)) && cut_id(&step, STR(RUN_PART), &moment->visit);
        if (ok) moment->step = str_slice(step, sizeof(STEP_PREFIX) - 1, step.len);
        ok = ok && moment->step.len && moment->visit;
    }
    if (ok && task.len) {
        ok = str_starts(task, STR(TASK_PREFIX)) && cut_id(&task, STR(RUN_PART), &moment->task_run);
        if (ok && moment->iteration)
            ok = cut_id(&task, STR(ITERATION_PART), &iteration) && iteration == moment->iteration - 1;
        // Logs of before have no step in it: there the same label in two steps or visits has the same id.
        if (ok && ends_with_step(task, derived->step_run_id)) task.len -= derived->step_run_id.len + 1;
        if (ok) moment->task = str_slice(task, sizeof(TASK_PREFIX) - 1, task.len);
        ok = ok && moment->task.len && moment->task_run;
    }
    return ok ? OK : error_set(err, E_CORRUPT, "record: step_run_id or task_run_id is none");
}

// What the payload has besides meta and the reference.
static enum code read_flat(const struct json *payload, struct arena *arena, struct json *out, struct error *err)
{
    if (!json_object_with(arena, payload->count, out)) return error_nomem(err);
    for (uint32_t i = 0; i < payload->count; i++) {
        const struct json_member *member = &payload->members[i];
        if (str_is(member->key, "meta") || str_is(member->key, "value_ref")) continue;
        if (!json_put(arena, out, member->key, member->value)) return error_nomem(err);
    }
    return OK;
}

static enum code read_payload(const struct json *payload, struct facts_out *facts, struct arena *arena,
                              struct moment *moment, struct error *err)
{
    enum code rc = OK;
    if (moment->kind == MOMENT_RUN_REQUESTED) rc = facts_start(facts, arena, moment, err);
    const struct table *table = noetl_payload(moment->kind, json_get(payload, STR("error")) != NULL);
    if (!rc) rc = fields_decode(table, payload, facts, err);
    if (!rc && noetl_rows[moment->kind].flat) rc = read_flat(payload, arena, &moment->value, err);
    return rc;
}

static enum code read(const struct json *record, struct arena *arena, struct moment *out, struct seal *seal,
                      struct run_ids *ids, struct error *err)
{
    struct derived derived = {0};
    struct facts_out facts = facts_into(ids, out, seal, &derived);
    out->logical = out->engine = 1; // until the record says otherwise
    enum code rc = fields_decode(noetl_envelope(), record, &facts, err);
    if (rc) return rc;
    if (derived.payload.type != JSON_OBJECT) return error_set(err, E_CORRUPT, "record: payload is not an object");
    out->kind = kind_of(derived.type, derived.status, &derived.payload);
    if (out->kind != MOMENT_UNKNOWN) {
        rc = read_ids(&derived, out, err);
        if (!rc) rc = read_payload(&derived.payload, &facts, arena, out, err);
        if (rc) return rc;
        if (derived.store.len && !result_store_parse(derived.store, &out->store))
            return error_set(err, E_CORRUPT, "record: a result is in a store that is not known");
    }
    if (__builtin_add_overflow(out->at_ms, derived.appended, &seal->persisted_ms))
        return error_set(err, E_CORRUPT, "record: meta.appended_ms is no time");
    out->by = emitter_parse(derived.by);
    if (!out->by) out->by = str_is(derived.source, "worker") ? EMITTER_WORKER : EMITTER_ENGINE;
    return OK;
}

bool noetl_shown(const struct moment *moment, struct arena *arena, struct moment *out)
{
    *out = *moment;
    if (out->kind == MOMENT_RUN_STARTED && out->start && !out->value.type) out->value = out->start->inputs;
    if (!moment_is_step(out->kind) || out->visit) return true;
    out->visit = 1;
    if (out->kind == MOMENT_ATTEMPT_FAILED) { // the step is its own task
        out->task = out->step;
        out->task_run = 1;
    }
    if (out->kind != MOMENT_STEP_SKIPPED) return true;
    out->kind = MOMENT_ADMIT_EVALUATED;
    return json_object_with(arena, 1, &out->value) && json_put(arena, &out->value, STR("allow"), json_bool(false));
}

const struct codec noetl_codec = {
    .vocabulary = VOCABULARY_NOETL,
    .folder = "noetl-events",
    .type_key = {"event_type", 10},
    .payload_start = {",\"payload\":", 11},
    .payload_end = {",\"prev_hash\":", 13},
    .build = build,
    .read = read,
    .verify = noetl_tables_verify,
};
