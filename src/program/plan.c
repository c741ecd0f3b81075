// Execution plans: the current form (ids in metadata, kind, dependsOn) and the one of schema v1.1 (ids on the top level,
// type, config, dependencies, retryPolicy) are one format with two spellings of some fields.
#include "program/internal.h"

// What the contract lists (requirements 3.2); the native engine supports all of it.
static const char *const capabilities[] = {
    "basic-execution",          "signal.pause.native",   "signal.pause.emulated",
    "cancel.cooperative",       "cancel.forced",         "workflow.child.workflows",
    "workflow.fan.dynamic",     "workflow.fan.parallel", "query.workflow.state",
    "query.task.state",         "replay.full",           "replay.task",
    "workflow.continue.as.new", "signals.rate.limit",    "signals.concurrent",
    "history.rotation",
};

enum where { TOP = 1, METADATA = 2, ANYWHERE = TOP | METADATA };

static const struct {
    const char *name;
    enum where where;
} plan_fields[] = {
    {"metadata", TOP},
    {"steps", TOP},
    {"inputs", TOP},
    {"triggers", TOP},
    {"schedule", TOP},
    {"limits", TOP},
    {"planId", ANYWHERE},
    {"planVersion", ANYWHERE},
    {"schemaVersion", ANYWHERE},
    {"targetAdapter", ANYWHERE},
    {"fallbackBehavior", ANYWHERE},
    {"requiresCapabilities", ANYWHERE},
    {"requiresApproval", ANYWHERE},
    {"onStepFailure", ANYWHERE},
    {"cancelOnPause", ANYWHERE},
    {"drainTimeout", ANYWHERE},
    {"name", ANYWHERE},
    {"description", ANYWHERE},
    {"tags", ANYWHERE},
    {"author", METADATA},
    {"owner", METADATA},
    {"createdAt", METADATA},
    {"updatedAt", METADATA},
    {"labels", METADATA},
    {"annotations", METADATA},
};

static bool is_yours(struct str key)
{
    return str_starts(key, STR("x-")) || str_starts(key, STR("$"));
}

static void check_plan_fields(struct reader *r, const struct json *object, enum where where)
{
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (is_yours(member->key)) continue;
        bool known = false;
        for (size_t k = 0; k < ARRAY_COUNT(plan_fields); k++)
            known = known || ((plan_fields[k].where & where) && str_is(member->key, plan_fields[k].name));
        if (known) continue;
        struct span at = place_of_key(r, member);
        struct diagnostic *d = ERROR(r, "E0203", at, "unknown field \"%.*s\" in %s", SHOW(member->key),
                                     where == TOP ? "a plan" : "metadata");
        struct nearest nearest = nearest_to(member->key);
        for (size_t k = 0; d && k < ARRAY_COUNT(plan_fields); k++)
            if (plan_fields[k].where & where) nearest_try(&nearest, str_from(plan_fields[k].name));
        hint_nearest(r, d, &nearest);
    }
}

// A field that may stand on the top level or in metadata, but not in both.
static const struct json *plan_field(struct reader *r, const struct json *root, const struct json *metadata,
                                     const char *name)
{
    const struct json *top = field(root, name, NULL);
    const struct json *inner = field(metadata, name, NULL);
    if (top && inner) {
        struct span at = place_of(r, top);
        struct diagnostic *d = ERROR(r, "E0207", at, "\"%s\" is given on the top level and in metadata", name);
        HINT(r, d, "keep the one in metadata");
    }
    return inner ? inner : top;
}

static void read_plan_name(struct reader *r, const struct json *value, const char *name, struct span at,
                           struct str *out)
{
    *out = STR("");
    if (!value) {
        struct diagnostic *d = ERROR(r, "E0204", at, "a plan needs \"%s\"", name);
        HINT(r, d, "add it to metadata");
        return;
    }
    // An unquoted version in YAML is a number: its text is what was meant.
    if (value->type == JSON_INT || value->type == JSON_NUMBER) {
        if (expr_text(value, r->arena, out) != OK) r->failed = true;
    } else if (!read_text(r, value, name, out)) {
        return;
    }
    if (name_valid(*out)) return;
    struct span place = place_of(r, value);
    ERROR(r, "E0208", place, "\"%s\" must have 1 to 128 bytes without '|' and control characters", name);
}

static void read_schema_version(struct reader *r, const struct json *value)
{
    r->program->schema_version = STR("v1.2");
    if (!value || !read_text(r, value, "schemaVersion", &r->program->schema_version)) return;
    struct str version = r->program->schema_version;
    if (STR_AMONG(version, "v1.0", "v1.1", "v1.2")) return;
    struct span at = place_of(r, value);
    r->code = "PLAN_SCHEMA_VERSION_UNKNOWN";
    struct diagnostic *d = ERROR(r, "E0211", at, "schema version \"%.*s\" is not supported", SHOW(version));
    HINT(r, d, "this Cairn reads v1.0, v1.1 and v1.2");
    r->code = "INVALID_PLAN_SCHEMA";
}

static void read_capabilities(struct reader *r, const struct json *value)
{
    if (!value) return;
    if (value->type != JSON_ARRAY) {
        wrong_type(r, value, "requiresCapabilities", "a list of texts");
        return;
    }
    struct str *kept = ARENA_ARRAY(&r->program->arena, value->count + 1, struct str);
    if (!kept) {
        r->failed = true;
        return;
    }
    r->program->capabilities = kept;
    for (uint32_t i = 0; i < value->count; i++) {
        struct str name;
        if (!read_text(r, &value->items[i], "requiresCapabilities", &name)) continue;
        struct nearest nearest = nearest_to(name);
        for (size_t k = 0; k < ARRAY_COUNT(capabilities); k++) nearest_try(&nearest, str_from(capabilities[k]));
        if (nearest.distance == 0) {
            kept[r->program->capability_count++] = name;
            continue;
        }
        struct span at = place_of(r, &value->items[i]);
        r->code = "CAPABILITY_UNKNOWN";
        struct diagnostic *d = ERROR(r, "E0212", at, "unknown capability \"%.*s\"", SHOW(name));
        hint_nearest(r, d, &nearest);
        r->code = "INVALID_PLAN_SCHEMA";
    }
}

static void read_adapter(struct reader *r, const struct json *value)
{
    static const char *const adapters[] = {"temporal", "conductor", "mock", "any", "auto", "cairn", NULL};
    struct str name;
    if (!value || !read_text(r, value, "targetAdapter", &name)) return;
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; adapters[i]; i++) nearest_try(&nearest, str_from(adapters[i]));
    if (nearest.distance == 0) {
        r->program->target_adapter = name;
        return;
    }
    struct span at = place_of(r, value);
    r->code = "INVALID_TARGET_ADAPTER";
    struct diagnostic *d = ERROR(r, "E0220", at, "unknown adapter \"%.*s\"", SHOW(name));
    if (nearest.best.len)
        hint_nearest(r, d, &nearest);
    else
        HINT(r, d, "temporal, conductor, mock, any, auto or cairn");
    r->code = "INVALID_PLAN_SCHEMA";
}

static void read_on_failure(struct reader *r, const struct json *value, enum on_failure *out)
{
    static const char *const names[] = {"fail_run", "hold", NULL};
    size_t index;
    if (value && read_choice(r, value, "onStepFailure", names, &index))
        *out = index == 0 ? ON_FAILURE_FAIL_RUN : ON_FAILURE_HOLD;
}

static void read_metadata(struct reader *r, const struct json *root, const struct json *metadata)
{
    static const char *const fallbacks[] = {"reject", "emulate", "degrade", NULL};
    struct program *program = r->program;
    struct span at = place_of(r, metadata ? metadata : root);
    read_plan_name(r, plan_field(r, root, metadata, "planId"), "planId", at, &program->plan_id);
    read_plan_name(r, plan_field(r, root, metadata, "planVersion"), "planVersion", at, &program->plan_version);
    read_schema_version(r, plan_field(r, root, metadata, "schemaVersion"));
    read_capabilities(r, plan_field(r, root, metadata, "requiresCapabilities"));
    read_adapter(r, plan_field(r, root, metadata, "targetAdapter"));
    read_on_failure(r, plan_field(r, root, metadata, "onStepFailure"), &r->on_failure);
    size_t index;
    const struct json *fallback = plan_field(r, root, metadata, "fallbackBehavior");
    if (fallback && read_choice(r, fallback, "fallbackBehavior", fallbacks, &index))
        program->fallback = str_from(fallbacks[index]);
    const struct json *approval = plan_field(r, root, metadata, "requiresApproval");
    if (approval) read_bool(r, approval, "requiresApproval", &program->requires_approval);
    bool cancels = false;
    const struct json *cancel = plan_field(r, root, metadata, "cancelOnPause");
    if (cancel && read_bool(r, cancel, "cancelOnPause", &cancels))
        program->cancel_on_pause = cancels ? WISH_YES : WISH_NO;
    const struct json *drain = plan_field(r, root, metadata, "drainTimeout");
    if (drain) read_ms(r, drain, "drainTimeout", &program->drain_timeout_ms);
    const struct json *name = plan_field(r, root, metadata, "name");
    if (name) read_text(r, name, "name", &program->name);
    const struct json *description = plan_field(r, root, metadata, "description");
    if (description) read_text(r, description, "description", &program->description);
    read_tags(r, plan_field(r, root, metadata, "tags"));
    schedule_field_read(r, field(root, "schedule", NULL));
    document_limits_read(r, field(root, "limits", NULL));
    if (program->name.len == 0) program->name = program->plan_id;
}

// ---- steps

static const struct field step_fields[] = {
    {"stepId", "id"},
    {"name", NULL},
    {"description", NULL},
    {"kind", "type"},
    {"dependsOn", "dependencies"},
    {"triggerRule", NULL},
    {"when", NULL},
    {"with", "config"},
    {"retry", "retryPolicy"},
    {"timeout", "timeoutMs"},
    {"onStepFailure", NULL},
    {"secrets", NULL},
    {"artifacts", NULL},
    {"output", NULL},
    {"limit", NULL},
    {"compensate", NULL},
    {"simulateError", NULL},
};

static void read_step_id(struct reader *r, const struct json *object, struct draft *draft)
{
    const struct json *id = field_required(r, object, "stepId", "id", draft->at, "a step");
    struct str text;
    if (!id || !read_text(r, id, "stepId", &text)) return;
    draft->at = place_of(r, id);
    draft->step.line = id->line;
    draft->step.column = id->column;
    if (step_id_valid(text)) {
        draft->step.id = text;
        return;
    }
    struct diagnostic *d = ERROR(r, "E0208", draft->at, "\"%.*s\" cannot be a step id", SHOW(text));
    if (str_eq(text, STR("RUN")))
        HINT(r, d, "RUN stands for the run itself in event keys");
    else
        HINT(r, d, "1 to 128 letters, digits, '_', '-' and '.', without '..' and without a '.' at the end");
}

static bool read_kind(struct reader *r, const struct json *object, struct draft *draft, enum step_kind *out)
{
    static const struct {
        const char *name;
        enum step_kind kind;
    } kinds[] = {
#define X(name, text, what) {text, STEP_##name},
        STEP_KIND_LIST(X)
#undef X
            {"bash", STEP_SHELL},
    };
    const struct json *value = field_required(r, object, "kind", "type", draft->at, "a step");
    struct str text;
    if (!value || !read_text(r, value, "kind", &text)) return false;
    struct nearest nearest = nearest_to(text);
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (kinds[i].kind == STEP_CANCEL || kinds[i].kind == STEP_LOOP || kinds[i].kind >= STEP_HOST) continue;
        if (str_is(text, kinds[i].name)) {
            *out = kinds[i].kind;
            return true;
        }
        nearest_try(&nearest, str_from(kinds[i].name));
    }
    if (is_host_kind(r, text)) {
        *out = STEP_HOST;
        draft->step.function = text;
        return true;
    }
    struct span at = place_of(r, value);
    struct diagnostic *d = ERROR(r, "E0206", at, "unknown kind of step \"%.*s\"", SHOW(text));
    if (nearest.best.len)
        hint_nearest(r, d, &nearest);
    else
        HINT(r, d, "noop, echo, merge, exec, shell, script, wait, approval, event, subrun, or a function of a plugin");
    return false;
}

static void read_simulate_error(struct reader *r, const struct json *value, struct draft *draft)
{
    static const char *const names[] = {"transient", "permanent", NULL};
    size_t index;
    if (!value || !read_choice(r, value, "simulateError", names, &index)) return;
    if (draft->step.kind != STEP_NOOP) {
        struct span at = place_of(r, value);
        ERROR(r, "E0206", at, "\"simulateError\" is for noop steps only");
        return;
    }
    put(r, &draft->step.with, "simulateError", *value);
}

// What a step and what undoes it have both.
static void read_work(struct reader *r, const struct json *object, struct draft *draft)
{
    struct program_step *step = &draft->step;
    const struct json *name = field(object, "name", NULL);
    if (name) read_text(r, name, "name", &step->name);
    struct str text;
    const struct json *description = field(object, "description", NULL);
    if (description) read_text(r, description, "description", &text);
    read_retry_plan(r, field(object, "retry", "retryPolicy"), &step->retry);
    const struct json *timeout = field(object, "timeout", "timeoutMs");
    if (timeout) read_ms(r, timeout, "timeout", &step->timeout_ms);
    read_secrets(r, field(object, "secrets", NULL), step);
    read_artifacts(r, field(object, "artifacts", NULL), step);
    enum step_kind kind;
    if (read_kind(r, object, draft, &kind)) {
        body_plan(r, draft, kind, field(object, "with", "config"), draft->at);
        read_simulate_error(r, field(object, "simulateError", NULL), draft);
        read_output(r, field(object, "output", NULL), step);
        step_limit_of_read(r, field(object, "limit", NULL), step);
    }
}

static void read_undo(struct reader *r, const struct json *object, struct draft_list *list)
{
    static const struct field fields[] = {
        {"kind", "type"},         {"with", "config"}, {"name", NULL},      {"description", NULL}, {"retry", "retryPolicy"},
        {"timeout", "timeoutMs"}, {"secrets", NULL},  {"artifacts", NULL}, {"output", NULL},      {"simulateError", NULL},
        {"limit", NULL}};
    struct undo_at at = {field(object, "compensate", NULL), field(object, "stepId", "id")};
    if (!at.value || !json_is(at.id, JSON_STRING) || !read_object(r, at.value, "compensate")) return;
    fields_check(r, at.value, fields, ARRAY_COUNT(fields), "compensate");
    struct draft *draft = undo_draft(r, &at, list);
    if (draft) read_work(r, at.value, draft);
}

static void read_step(struct reader *r, const struct json *object, struct draft *draft)
{
    struct program_step *step = &draft->step;
    draft->at = place_of(r, object);
    step->line = object->line;
    step->column = object->column;
    if (!read_item(r, object, "a step")) return;
    fields_check(r, object, step_fields, ARRAY_COUNT(step_fields), "a step");
    read_step_id(r, object, draft);
    step->name = step->id;
    read_deps(r, field(object, "dependsOn", "dependencies"), "dependsOn", draft);
    if (json_key(object, "dependsOn") || json_key(object, "dependencies")) r->implied_order = false;
    read_rule(r, field(object, "triggerRule", NULL), "triggerRule", &step->rule);
    read_when(r, field(object, "when", NULL), draft);
    read_on_failure(r, field(object, "onStepFailure", NULL), &step->on_failure);
    read_work(r, object, draft);
}

void plan_read(struct reader *r, const struct json *root, struct draft_list *list)
{
    r->code = "INVALID_PLAN_SCHEMA";
    check_plan_fields(r, root, TOP);
    const struct json *metadata = field(root, "metadata", NULL);
    if (metadata && !read_object(r, metadata, "metadata")) metadata = NULL;
    if (metadata) check_plan_fields(r, metadata, METADATA);
    read_metadata(r, root, metadata);
    read_inputs(r, field(root, "inputs", NULL));
    const struct json *steps = json_key(root, "steps");
    if (steps->type != JSON_ARRAY) {
        wrong_type(r, steps, "steps", "a list");
        return;
    }
    struct span at = place_of(r, steps);
    if (steps->count == 0) ERROR(r, "E0214", at, "the plan has no steps");
    if (steps->count > r->load->steps_max) {
        struct diagnostic *d = ERROR(r, "E0505", at, "the plan has %u steps; %u are allowed", steps->count, r->load->steps_max);
        HINT(r, d, DOC_MORE_STEPS);
        return;
    }
    r->code = "INVALID_STEP_SCHEMA";
    r->implied_order = true;
    drafts_reserve_undo(r, list, steps);
    for (uint32_t i = 0; i < steps->count && !r->failed; i++) {
        struct draft *draft = draft_add(r, list);
        if (draft) read_step(r, &steps->items[i], draft);
    }
    for (uint32_t i = 0; i < steps->count && !r->failed; i++) read_undo(r, &steps->items[i], list);
}
