#include "archive/replay_net.h"

#include "json/make.h"

void answers_init(struct net_answers *answers, struct arena *kept)
{
    *answers = (struct net_answers){.kept = kept};
    map_init(&answers->open, kept);
}

static uint32_t *slot_of(struct net_answers *answers, const struct moment *m)
{
    struct str key = arena_format(answers->kept, "%.*s|%u|%u", STR_ARG(m->step), m->visit, m->iteration);
    uint32_t at = key.ptr ? map_get(&answers->open, key) : MAP_NONE;
    if (at != MAP_NONE) return &answers->slots[at];
    if (!key.ptr || !ARENA_ROOM(answers->kept, answers->slots, answers->slot_count, &answers->slot_capacity) ||
        !map_put(&answers->open, key, answers->slot_count, NULL))
        return NULL;
    answers->slots[answers->slot_count] = UINT32_MAX;
    return &answers->slots[answers->slot_count++];
}

static bool keep(struct net_answers *answers, const struct json *from, struct json *out)
{
    return from->type == 0 || json_copy(answers->kept, from, out);
}

static bool begin(struct net_answers *answers, const struct moment *m, uint32_t *slot, uint64_t ordinal)
{
    if (!ARENA_ROOM(answers->kept, answers->items, answers->count, &answers->capacity)) return false;
    struct net_answer *answer = &answers->items[answers->count];
    *answer = (struct net_answer){.first = ordinal, .last = ordinal, .outcome_apart = m->has_blob, .outcome_blob = m->blob};
    *slot = answers->count++;
    return keep(answers, &m->value, &answer->outcome);
}

bool answers_note(struct net_answers *answers, const struct moment *m, uint64_t ordinal)
{
    bool begins = m->kind == MOMENT_ATTEMPT_DONE || m->kind == MOMENT_ATTEMPT_FAILED;
    bool goes_on = m->kind == MOMENT_TASK_DECIDED || m->kind == MOMENT_RESULT_STORED || m->kind == MOMENT_TASK_DONE ||
                   m->kind == MOMENT_TASK_FAILED;
    if (!begins && !goes_on) return true;
    uint32_t *slot = slot_of(answers, m);
    if (!slot) return false;
    if (begins) return begin(answers, m, slot, ordinal);
    if (*slot == UINT32_MAX) return true;
    struct net_answer *answer = &answers->items[*slot];
    answer->last = ordinal;
    switch ((int)m->kind) {
    case MOMENT_TASK_DECIDED:
        answer->retried = str_is(json_text(json_at(&m->value, STR("action.do"))), "retry");
        return true;
    case MOMENT_RESULT_STORED:
        answer->elsewhere = arena_copy(answers->kept, m->reason);
        return answer->elsewhere.ptr != NULL;
    case MOMENT_TASK_DONE:
        answer->whole = true;
        answer->has_blob = m->has_blob;
        answer->blob = m->blob;
        answer->blob_size = m->blob_size;
        answer->store = m->store;
        return keep(answers, &m->artifacts, &answer->artifacts) &&
               (m->has_blob || keep(answers, &m->value, &answer->result));
    default: // TASK_FAILED has the outcome, and the result too when that is small
        answer->whole = true;
        answer->outcome_apart = m->has_blob;
        answer->outcome_blob = m->blob;
        return keep(answers, &m->value, &answer->outcome);
    }
}

const struct net_answer *answers_at(struct net_answers *answers, uint64_t ordinal)
{
    while (answers->next < answers->count && answers->items[answers->next].first < ordinal) answers->next++;
    bool there = answers->next < answers->count && answers->items[answers->next].first == ordinal;
    return there ? &answers->items[answers->next] : NULL;
}

static enum code fetch(const struct kernel_env *env, const struct digest *blob, struct arena *arena, struct json *out,
                       bool *gone, struct error *err)
{
    struct str bytes;
    struct error why = {0};
    enum code rc = env->blob(env->context, blob, arena, &bytes, &why);
    *gone = rc == E_NOT_FOUND;
    if (*gone) return OK;
    if (rc) return error_set(err, rc, "%s", why.message);
    return json_parse(bytes, &json_limits_result, arena, out, err);
}

enum code answer_outcome(const struct net_answer *answer, const struct kernel_env *env, struct arena *arena, struct json *out,
                         bool *gone, struct error *err)
{
    struct json outcome = answer->outcome.type == 0 ? json_object() : answer->outcome, result = answer->result;
    enum code rc = OK;
    *gone = false;
    if (answer->outcome_apart) rc = fetch(env, &answer->outcome_blob, arena, &outcome, gone, err);
    if (!rc && !*gone && answer->has_blob) rc = fetch(env, &answer->blob, arena, &result, gone, err);
    if (rc || *gone) return rc;
    struct json made = json_object(), given = JSON_OF(arena, {"result", result});
    json_fill(arena, &made, &outcome);
    json_fill(arena, &made, &given);
    *out = made;
    return json_made(out, err);
}

static void see_path(void *context, struct str path)
{
    static const char *const whole[] = {"output", "outcome", "event"};
    bool *reads = context;
    struct str rest, first = str_cut(path, '.', &rest), second = str_cut(rest, '.', &rest);
    bool result = STR_AMONG(first, "result", "response", "data") || STR_AMONG(second, "result", "response", "data");
    for (size_t i = 0; i < ARRAY_COUNT(whole); i++) result = result || (str_is(first, whole[i]) && second.len == 0);
    result = result || str_find(first, '[', 0) < first.len; // a member in brackets may be any
    *reads = *reads || result;
}

bool rules_read_result(const struct net_task *task)
{
    bool reads = false;
    for (uint32_t i = 0; i < task->rule_count; i++)
        if (task->rules[i].when.test) template_paths(task->rules[i].when.test, see_path, &reads);
    return reads;
}

// Values that are decided, or that decisions are made of; others are facts, or follow from the clock.
static bool is_decided(enum moment_kind kind)
{
    switch ((int)kind) {
    case MOMENT_RUN_STARTED:
    case MOMENT_ADMIT_EVALUATED:
    case MOMENT_STEP_SCHEDULED:
    case MOMENT_LOOP_STARTED:
    case MOMENT_TASK_STARTED:
    case MOMENT_TASK_DECIDED:
    case MOMENT_ROUTED:
    case MOMENT_STEP_COMPLETED:
        return true;
    default:
        return false;
    }
}

static bool same_value(const struct moment *decided, const struct moment *recorded)
{
    if (decided->has_blob != recorded->has_blob) return false;
    if (decided->has_blob) return digest_eq(&decided->blob, &recorded->blob);
    struct json none = json_object();
    const struct json *a = decided->value.type == 0 ? &none : &decided->value;
    const struct json *b = recorded->value.type == 0 ? &none : &recorded->value;
    return json_equal(a, b);
}

bool same_in_net(const struct moment *decided, const struct moment *recorded)
{
    if (decided->visit != recorded->visit || decided->iteration != recorded->iteration || decided->task_run != recorded->task_run ||
        !str_eq(decided->task, recorded->task))
        return false;
    return !is_decided(decided->kind) || same_value(decided, recorded);
}
