// Events that workers of other make report: which they may, and what older ones are called now (NX-4, NX-5).
#include "contract/internal.h"

#include "json/make.h"

// Old names, and what they are called when all went well and when it did not. With a loop: about one item.
struct old_name {
    const char *old, *good, *bad, *item_good, *item_bad;
};

static const struct old_name old_names[] = {
    {"tool.started", "task.started", NULL, NULL, NULL},
    {"tool.processed", "task.done", "task.failed", NULL, NULL},
    {"retry.started", "task.attempt.started", NULL, NULL, NULL},
    {"retry.processed", "task.attempt.done", "task.attempt.failed", NULL, NULL},
    {"sink.started", "task.started", NULL, NULL, NULL},
    {"sink.failed", "task.failed", "task.failed", NULL, NULL},
    {"sink.error", "task.failed", "task.failed", NULL, NULL},
    {"sink.", "task.done", "task.failed", NULL, NULL}, // done, processed, executed, ...
    {"playbook.initialized", "playbook.started", NULL, NULL, NULL},
    {"playbook.completed", "playbook.finished", NULL, NULL, NULL},
    {"playbook.failed", "playbook.finished", NULL, NULL, NULL},
    {"workflow.initialized", "workflow.started", NULL, NULL, NULL},
    {"workflow.completed", "workflow.finished", NULL, NULL, NULL},
    {"workflow.failed", "workflow.finished", NULL, NULL, NULL},
    {"execution.cancelled", "workflow.finished", NULL, NULL, NULL},
    {"command.cancelled", "workflow.finished", NULL, NULL, NULL},
    {"command.issued", "step.scheduled", NULL, "loop.iteration.scheduled", NULL},
    {"command.claimed", "step.started", NULL, "loop.iteration.started", NULL},
    {"command.started", "step.started", NULL, "loop.iteration.started", NULL},
    {"command.completed", "step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"},
    {"command.failed", "step.failed", "step.failed", "loop.iteration.failed", "loop.iteration.failed"},
    {"step.enter", "step.started", NULL, NULL, NULL},
    {"step.exit", "step.done", "step.failed", NULL, NULL},
    {"call.done", "task.done", "task.failed", NULL, NULL},
    {"call.error", "task.failed", "task.failed", NULL, NULL},
    {"loop.item", "loop.iteration.started", NULL, NULL, NULL},
};

static bool is_old(const struct old_name *name, struct str type)
{
    struct str old = str_from(name->old);
    return str_ends(old, STR(".")) ? str_starts(type, old) : str_eq(type, old);
}

static bool is_bad(const struct json *event)
{
    static const char *const words[] = {"error", "failed", "failure", "FAILED", "ERROR"};
    struct str status = json_text(json_key(event, "status"));
    struct str outcome = json_text(json_at(event, STR("payload.outcome.status")));
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (str_is(status, words[i]) || str_is(outcome, words[i])) return true;
    return json_at(event, STR("payload.error")) != NULL;
}

// The name of today for an older one; itself when it is none.
static struct str noetl_name_now(const struct json *event, struct str type)
{
    bool bad = is_bad(event), item = json_key(event, "iteration") || json_key(event, "iteration_id");
    // What a case decided: about a task, or where its token goes.
    if (str_starts(type, STR("case.")))
        return json_at(event, STR("payload.action")) ? STR("policy.task.evaluated") : STR("next.evaluated");
    for (size_t i = 0; i < ARRAY_COUNT(old_names); i++) {
        const struct old_name *name = &old_names[i];
        if (!is_old(name, type)) continue;
        const char *good = item && name->item_good ? name->item_good : name->good;
        const char *ill = item && name->item_bad ? name->item_bad : name->bad;
        return str_from(bad && ill ? ill : good);
    }
    return type;
}

// "step:<name>:run:<n>" anywhere an event may say so; NoETL's own older ones have the bare name.
static bool read_place(const struct json *event, struct ingested *out)
{
    static const char *const members[] = {"step_run_id", "parent_id"};
    for (size_t i = 0; i < ARRAY_COUNT(members) && !out->step.len; i++) {
        struct str id = json_text(json_key(event, members[i]));
        if (str_starts(id, STR("step:")) && noetl_cut_run(&id, &out->visit)) out->step = str_slice(id, 5, id.len);
    }
    struct str kind = json_text(json_key(event, "entity_type")), id = json_text(json_key(event, "entity_id"));
    if (!out->step.len && str_is(kind, "step")) out->step = id;
    if (!out->step.len) out->step = json_text(json_key(event, "node_name"));
    if (str_is(kind, "task")) out->task = id;
    return out->step.len > 0;
}

static bool outcome_of(const struct json *event, bool bad, struct arena *arena, struct json *out)
{
    const struct json *payload = json_key(event, "payload"), *given = json_key(payload, "outcome");
    struct str status = bad ? STR("error") : STR("ok");
    // A worker that keeps its result may tell where with the attempt, and no events of results (NX-3.7n1): the reference is the result.
    const struct json *ref = bad ? NULL : json_key(payload, "result_ref");
    if (json_is(given, JSON_OBJECT)) {
        *out = *given;
        if (!str_eq(json_text(json_key(given, "status")), status)) return false;
        if (!ref || json_key(given, "result")) return true;
        *out = JSON_OF(arena, {"result", json_ref(ref)});
        json_fill(arena, out, given);
        return json_ok(out);
    }
    const struct json *result = json_key(payload, "result"), *error = json_key(payload, "error");
    if (!result) result = ref;
    struct str message = json_text(error);
    if (!message.len) message = STR("the worker reported a failure");
    struct json fault = json_is(error, JSON_OBJECT)
                            ? *error
                            : JSON_OF(arena, {"kind", json_word("unknown")}, {"message", json_string(message)});
    *out = JSON_OF(arena, {"error", json_when(bad, fault)}, {"result", json_ref(result)},
                   {"status", json_string(status)});
    return json_ok(out);
}

bool noetl_is_old(const struct json *event)
{
    return moment_of_word(VOCABULARY_NOETL, json_text(json_key(event, "event_type"))) == MOMENT_UNKNOWN;
}

enum code noetl_ingest(const struct json *event, bool first_party, struct arena *arena, struct ingested *out,
                       struct error *err)
{
    *out = (struct ingested){.event_id = json_text(json_key(event, "event_id")),
                             .execution = json_text(json_key(event, "execution_id"))};
    struct str type = json_text(json_key(event, "event_type"));
    if (!type.len && !first_party) type = json_text(json_key(event, "name")); // as other documents of theirs say
    if (!type.len || !out->event_id.len || !out->execution.len)
        return error_set(err, E_INVALID,
                         "SCHEMA_VALIDATION_FAILED: must have event_id, event_type and execution_id");
    out->type = noetl_name_now(event, type);
    if (first_party && !str_eq(out->type, type))
        return error_set(err, E_INVALID, "LEGACY_EVENT: \"%.*s\" is called %.*s now", STR_ARG(type),
                         STR_ARG(out->type));
    enum moment_kind kind = moment_of_word(VOCABULARY_NOETL, out->type);
    if (kind == MOMENT_UNKNOWN)
        return error_set(err, E_INVALID, "EVENT_TYPE_UNKNOWN: \"%.*s\" is not an event type", STR_ARG(type));
    if (moment_emitter(kind) != EMITTER_WORKER)
        return error_set(err, E_DENIED, "EVENT_NOT_ALLOWED: %.*s is the server's to tell", STR_ARG(out->type));
    if (!read_place(event, out))
        return error_set(err, E_INVALID, "SCHEMA_VALIDATION_FAILED: must say of which step it is (step_run_id)");
    bool good = kind == MOMENT_TASK_DONE || kind == MOMENT_ATTEMPT_DONE;
    bool bad = kind == MOMENT_TASK_FAILED || kind == MOMENT_ATTEMPT_FAILED;
    out->ends = good || bad;
    if (out->ends && !outcome_of(event, bad, arena, &out->outcome))
        return error_set(err, E_INVALID, "SCHEMA_VALIDATION_FAILED: /payload/outcome must be one of %.*s",
                         STR_ARG(out->type));
    return OK;
}
