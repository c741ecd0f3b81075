// From one format to the other, where the other can say the same. Everything that it cannot say is named with its place, and
// then nothing is converted.
#include "author/fmt.h"
#include "author/sound.h"
#include "json/make.h"

#include <string.h>

enum { NODE_DELAY_MAX_MS = 60000, NODE_RETRIES_MAX = 5 };

struct converter {
    const struct program *program;
    struct arena *arena;
    struct diagnostics *diagnostics;
    struct json tree; // of the document
    struct str file;  // outlives the program, as the diagnostics do
    bool failed;      // memory ran out
};

static void refuse(struct converter *c, const struct program_step *ps, const char *what)
{
    diagnose(c->diagnostics, SEVERITY_ERROR, "E0801", "", c->file, ps->line, ps->column, (uint32_t)ps->id.len,
             "\"%.*s\": %s", STR_ARG(ps->id), what);
}

static void refuse_field(struct converter *c, const struct json_member *member, const char *format_name)
{
    diagnose(c->diagnostics, SEVERITY_ERROR, "E0801", "", c->file, member->line, member->column,
             (uint32_t)member->key.len, "%s have no \"%.*s\"", format_name, STR_ARG(member->key));
}

// ---- how failures and skips end

static bool can_fail(const struct program_step *ps)
{
    return ps->when || sound_outcomes(ps) & OUT_FAILED;
}

static bool passes_over_failure(enum trigger_rule rule)
{
    return rule_passes(rule, 1, 1, 0) || rule_passes(rule, 0, 1, 0) || rule_passes(rule, 0, 1, 1) ||
           rule_passes(rule, 1, 0, 1) || rule_passes(rule, 0, 0, 1);
}

static void mark_related(const struct program *p, uint32_t step, bool *related)
{
    memset(related, 0, p->top_count * sizeof(*related));
    related[step] = true;
    for (uint32_t k = p->top_count; k > 0; k--)
        for (uint32_t d = 0; related[p->order[k - 1]] && d < p->steps[p->order[k - 1]].dep_count; d++)
            related[p->steps[p->order[k - 1]].deps[d]] = true;
}

static void mark_below(const struct program *p, uint32_t step, bool *below)
{
    memset(below, 0, p->top_count * sizeof(*below));
    below[step] = true;
    for (uint32_t k = 0; k < p->top_count; k++)
        for (uint32_t d = 0; d < p->steps[p->order[k]].dep_count; d++)
            below[p->order[k]] |= below[p->steps[p->order[k]].deps[d]];
}

// Everything it waits for is over before `step` starts, so it is decided then, before a failure of `step` is known.
static bool decided_before(const struct program *p, uint32_t step, const bool *before, const struct program_step *other)
{
    if (p->steps[step].when) return false; // fails while it is decided itself
    for (uint32_t i = 0; i < other->dep_count; i++)
        if (!before[other->deps[i]] || other->deps[i] == step) return false;
    return true;
}

// After a failure a plan starts only what hangs directly below it; a node workflow goes on with everything. The two are the
// same when every other step is before or below a step that can fail, and nothing follows a step that runs in spite of one.
static void check_failures(struct converter *c)
{
    const struct program *p = c->program;
    bool *before = ARENA_ARRAY(c->arena, p->top_count + 1, bool);
    bool *below = ARENA_ARRAY(c->arena, p->top_count + 1, bool);
    if (!before || !below) {
        c->failed = true;
        return;
    }
    for (uint32_t i = 0; i < p->top_count; i++) {
        const struct program_step *ps = &p->steps[i];
        if (!can_fail(ps)) continue;
        mark_related(p, i, before);
        mark_below(p, i, below);
        for (uint32_t k = 0; k < p->top_count; k++) {
            const struct program_step *other = &p->steps[k];
            bool late = below[k] && k != i && passes_over_failure(other->rule) && other->dependent_count > 0;
            if ((before[k] || below[k] || decided_before(p, i, before, other)) && !late) continue;
            struct str why = arena_format(
                c->arena,
                late ? "when it fails, \"%.*s\" may still run, and what follows that starts in a node workflow only"
                     : "when it fails, \"%.*s\" beside it is still started by a node workflow, not by a plan",
                STR_ARG(other->id));
            refuse(c, ps, why.ptr ? why.ptr : "");
            c->failed = c->failed || !why.ptr;
            return;
        }
    }
}

// When every step is skipped a node workflow fails and a plan completes.
static void check_skips(struct converter *c)
{
    const struct program *p = c->program;
    for (uint32_t i = 0; i < p->top_count; i++)
        if (p->steps[i].dep_count == 0 && !p->steps[i].when && !p->steps[i].when_broken) return;
    refuse(c, &p->steps[0], "when every step is skipped, a node workflow fails and a plan completes");
}

// ---- parts that both have

static const struct json *source_step(const struct converter *c, uint32_t index)
{
    const struct json *list = json_key(&c->tree, c->program->kind == DOCUMENT_PLAN ? "steps" : "nodes");
    return list && list->type == JSON_ARRAY && index < list->count ? &list->items[index] : NULL;
}

static struct json ids_of(struct converter *c, const struct program_step *ps)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < ps->dep_count; i++)
        json_append(c->arena, &list, json_string(c->program->steps[ps->deps[i]].id));
    return list;
}

static void put_secrets(struct converter *c, const struct program_step *ps, struct json *out)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < ps->secret_count; i++) {
        json_append(c->arena, &list, JSON_OF(c->arena, {"name", json_string(ps->secrets[i].name)},
                                             {"ref", json_string(ps->secrets[i].ref)}));
    }
    JSON_ADD(c->arena, out, {"secrets", json_filled(list)});
}

static void put_names(struct converter *c, uint32_t index, struct json *out)
{
    const struct program_step *ps = &c->program->steps[index];
    const struct json *description = json_key(source_step(c, index), "description");
    JSON_ADD(c->arena, out, {"name", json_when(!str_eq(ps->name, ps->id), json_string(ps->name))},
             {"description", json_ref(description)});
}

// A script that was read from a file is asked for again by the name it had.
static struct str script_request(const struct converter *c, struct str found)
{
    for (uint32_t i = 0; i < c->program->part_count; i++)
        if (c->program->parts[i].kind == PART_SCRIPT && str_eq(c->program->parts[i].file, found))
            return c->program->parts[i].request;
    return found;
}

// ---- to a plan

static void plan_with(struct converter *c, const struct program_step *ps, struct json *out)
{
    const struct json *file = json_key(&ps->with, "file");
    struct json with = json_object();
    for (uint32_t i = 0; i < ps->with.count; i++) {
        const struct json_member *m = &ps->with.members[i];
        if (ps->kind == STEP_SCRIPT && file && str_is(m->key, "code")) continue;
        struct json value = m->value;
        if (file && str_is(m->key, "file")) value = json_string(script_request(c, file->text));
        json_set(c->arena, &with, m->key, value);
    }
    JSON_ADD(c->arena, out, {"with", json_filled(with)});
}

static void plan_retry(struct converter *c, const struct retry_policy *retry, struct json *out)
{
    if (retry->max_attempts <= 1) return;
    struct json policy = JSON_OF(c->arena, {"maxAttempts", json_int(retry->max_attempts)},
                                 {"delayMs", json_int(retry->delay_ms)},
                                 {"backoff", json_word(backoff_name(retry->backoff))},
                                 {"maxDelayMs", json_when(retry->max_delay_ms > 0, json_int(retry->max_delay_ms))},
                                 {"on", json_when(retry->on == RETRY_ALL, json_word("all"))},
                                 {"nonRetryable", json_filled(json_texts(c->arena, retry->non_retryable,
                                                                          retry->non_retryable_count))});
    JSON_ADD(c->arena, out, {"retry", policy});
}

// What both dialects write alike, of a step and of the document.
static void put_alike(struct converter *c, const struct program_step *ps, struct json *out)
{
    static const char *const overflows[] = OVERFLOW_NAMES;
    if (ps->overflow)
        JSON_ADD(c->arena, out, {"output", JSON_OF(c->arena, {"on_overflow", json_word(overflows[ps->overflow])})});
    if (ps->limit) JSON_ADD(c->arena, out, {"limit", json_string(ps->limit->name)});
}

static void put_top(struct converter *c, struct json *out)
{
    JSON_ADD(c->arena, out, {"schedule", json_ref(json_key(&c->tree, "schedule"))},
             {"limits", json_ref(json_key(&c->tree, "limits"))});
}

static struct json plan_step(struct converter *c, uint32_t index)
{
    const struct program_step *ps = &c->program->steps[index];
    struct json out = json_object();
    if (ps->kind == STEP_LOOP) refuse(c, ps, "plans have no loops");
    if (ps->kind == STEP_CANCEL) refuse(c, ps, "plans have no step that cancels the run");
    if (json_key(&ps->with, "fanOut")) refuse(c, ps, "plans have no \"fan_out\"");
    if (ps->always_run) refuse(c, ps, "plans have no \"always_run\"");
    if (ps->when_broken) refuse(c, ps, "a condition that does not parse is false here and an error in a plan");
    JSON_ADD(c->arena, &out, {"stepId", json_string(ps->id)});
    put_names(c, index, &out);
    JSON_ADD(c->arena, &out,
             {"kind", json_string(ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind)))});
    plan_with(c, ps, &out);
    JSON_ADD(c->arena, &out, {"dependsOn", ids_of(c, ps)},
             {"triggerRule", ps->rule != RULE_ALL_SUCCESS ? json_word(rule_name(ps->rule)) : json_none()},
             {"when", json_some(ps->when_text)});
    plan_retry(c, &ps->retry, &out);
    JSON_ADD(c->arena, &out, {"timeoutMs", json_when(ps->timeout_ms > 0, json_int(ps->timeout_ms))});
    put_alike(c, ps, &out);
    put_secrets(c, ps, &out);
    return out;
}

static struct json to_plan(struct converter *c)
{
    const struct program *p = c->program;
    struct json out = json_object(), steps = json_array();
    struct json metadata = JSON_OF(c->arena, {"planId", json_string(p->plan_id)},
                                   {"planVersion", json_string(p->plan_version)}, {"schemaVersion", json_word("v1.2")},
                                   {"name", json_when(!str_eq(p->name, p->plan_id), json_string(p->name))},
                                   {"description", json_some(p->description)},
                                   {"tags", json_filled(json_texts(c->arena, p->tags, p->tag_count))});
    JSON_ADD(c->arena, &out, {"metadata", metadata}, {"inputs", json_ref(json_key(&c->tree, "inputs"))});
    put_top(c, &out);
    for (uint32_t i = 0; i < p->top_count; i++)
        json_append(c->arena, &steps, plan_step(c, i));
    JSON_ADD(c->arena, &out, {"steps", steps});
    return out;
}

// ---- to a node workflow

static bool node_id(struct str id)
{
    bool first = id.len > 0 && !(id.ptr[0] >= '0' && id.ptr[0] <= '9') && id.ptr[0] != '-';
    return first && id.len <= 122 && !memchr(id.ptr, '.', id.len);
}

static void node_approval(struct converter *c, const struct program_step *ps, struct json *out)
{
    JSON_ADD(c->arena, out, {"approval", JSON_OF(c->arena, {"message", json_ref(json_key(&ps->with, "message"))},
                                                 {"timeout", json_ref(json_key(&ps->with, "timeoutMs"))},
                                                 {"on_timeout", json_ref(json_key(&ps->with, "onTimeout"))})});
}

static void node_script(struct converter *c, const struct program_step *ps, struct json *out)
{
    const struct json *file = json_key(&ps->with, "file");
    if (json_key(&ps->with, "args")) refuse(c, ps, "scripts of node workflows take no \"args\"");
    if (file)
        JSON_ADD(c->arena, out, {"script", json_string(script_request(c, file->text))});
    else
        JSON_ADD(c->arena, out, {"script", json_ref(json_key(&ps->with, "code"))});
    JSON_ADD(c->arena, out, {"runtime", json_ref(json_key(&ps->with, "runtime"))});
}

static void node_body(struct converter *c, const struct program_step *ps, struct json *out)
{
    struct json body = json_object();
    const struct json *message = json_key(&ps->with, "message");
    switch (ps->kind) {
    case STEP_NOOP:
        if (json_key(&ps->with, "simulateError")) refuse(c, ps, "node workflows have no \"simulateError\"");
        JSON_ADD(c->arena, out, {"noop", json_bool(true)});
        break;
    case STEP_ECHO:
        if (message && message->type == JSON_NULL) refuse(c, ps, "a node cannot echo null");
        JSON_ADD(c->arena, out, {"echo", json_ref(json_key(&ps->with, "message"))});
        break;
    case STEP_MERGE:
        JSON_ADD(c->arena, out, {"merge", message ? JSON_OF(c->arena, {"message", *message}) : json_bool(true)});
        break;
    case STEP_EXEC:
        if (json_key(&ps->with, "stdin")) refuse(c, ps, "node workflows have no \"stdin\"");
        JSON_ADD(c->arena, out, {"exec", json_ref(json_key(&ps->with, "argv"))});
        break;
    case STEP_SHELL:
        JSON_ADD(c->arena, out, {"bash", json_ref(json_key(&ps->with, "command"))});
        break;
    case STEP_SCRIPT:
        node_script(c, ps, out);
        break;
    case STEP_WAIT:
        JSON_ADD(c->arena, &body, {"duration", json_ref(json_key(&ps->with, "durationMs"))},
                 {"until", json_ref(json_key(&ps->with, "until"))});
        JSON_ADD(c->arena, out, {"wait", body});
        break;
    case STEP_APPROVAL:
        node_approval(c, ps, out);
        break;
    case STEP_EVENT:
        JSON_ADD(c->arena, &body, {"name", json_ref(json_key(&ps->with, "name"))},
                 {"correlation", json_ref(json_key(&ps->with, "correlation"))});
        JSON_ADD(c->arena, out, {"event", body});
        break;
    case STEP_SUBRUN:
        JSON_ADD(c->arena, &body, {"document", json_ref(json_key(&ps->with, "document"))},
                 {"inputs", json_ref(json_key(&ps->with, "inputs"))},
                 {"arguments", json_ref(json_key(&ps->with, "arguments"))});
        JSON_ADD(c->arena, out, {"workflow", body});
        break;
    case STEP_HOST:
    case STEP_TASKS:
        JSON_ADD(c->arena, out, {"use", json_string(ps->function)}, {"with", json_when(ps->with.count > 0, ps->with)});
        return;
    case STEP_CANCEL:
    case STEP_LOOP:
    case STEP_KIND_FIRST_UNUSED:
        break;
    }
    JSON_ADD(c->arena, out, {"env", json_ref(json_key(&ps->with, "env"))},
             {"cwd", json_ref(json_key(&ps->with, "cwd"))});
}

static void node_retry(struct converter *c, const struct program_step *ps, struct json *out)
{
    const struct retry_policy *retry = &ps->retry;
    if (retry->max_attempts <= 1) return;
    struct json policy = json_object();
    if (retry->max_attempts > NODE_RETRIES_MAX + 1) refuse(c, ps, "nodes are tried at most 6 times");
    if (retry->backoff != BACKOFF_EXPONENTIAL || retry->max_delay_ms > 0 || retry->jitter > 0 ||
        retry->delay_ms > NODE_DELAY_MAX_MS)
        refuse(c, ps, "nodes are tried again after a delay of at most 60 s that doubles each time, without jitter");
    JSON_ADD(c->arena, &policy, {"max_attempts", json_int(retry->max_attempts - 1)},
             {"delay_ms", json_int(retry->delay_ms)}, {"on_error", json_when(retry->on == RETRY_ALL, json_word("all"))},
             {"non_retryable", json_filled(json_texts(c->arena, retry->non_retryable, retry->non_retryable_count))});
    JSON_ADD(c->arena, out, {"retry", policy});
}

static struct json node_of(struct converter *c, uint32_t index)
{
    const struct program_step *ps = &c->program->steps[index];
    struct json out = json_object();
    if (ps->undo) refuse(c, ps, "compensate is not converted");
    if (!ps->undo && !node_id(ps->id)) refuse(c, ps, "ids of nodes begin with a letter or '_' and hold no dots");
    if (ps->on_failure == ON_FAILURE_HOLD) refuse(c, ps, "node workflows do not hold failures for a person");
    if (ps->artifact_count > 0) refuse(c, ps, "node workflows declare no artifacts");
    JSON_ADD(c->arena, &out, {"id", json_string(ps->id)});
    put_names(c, index, &out);
    JSON_ADD(c->arena, &out, {"depends_on", ps->dep_count > 0 ? ids_of(c, ps) : json_none()},
             {"trigger_rule", ps->rule != RULE_ALL_SUCCESS ? json_word(rule_name(ps->rule)) : json_none()},
             {"when", json_some(ps->when_text)});
    put_alike(c, ps, &out);
    node_body(c, ps, &out);
    JSON_ADD(c->arena, &out, {"timeout", json_nonzero(ps->timeout_ms)});
    node_retry(c, ps, &out);
    put_secrets(c, ps, &out);
    return out;
}

// Fields that a node workflow has no place for.
static void check_plan_fields(struct converter *c, const struct json *object)
{
    static const char *const known[] = {"metadata", "planId",      "planVersion", "schemaVersion", "onStepFailure",
                                        "name",     "description", "tags",        "inputs",        "steps",
                                        "schedule", "limits"};
    for (uint32_t i = 0; object && i < object->count; i++) {
        const struct json_member *m = &object->members[i];
        bool fine = m->value.type == JSON_NULL;
        for (size_t k = 0; k < ARRAY_COUNT(known); k++) fine |= str_is(m->key, known[k]);
        if (str_is(m->key, "requiresApproval") && m->value.type == JSON_BOOL && !m->value.boolean) fine = true;
        if (!fine) refuse_field(c, m, "node workflows");
    }
}

static void check_name(struct converter *c)
{
    const struct json *name = json_key(json_key(&c->tree, "metadata"), "name");
    if (!name) name = json_key(&c->tree, "name");
    if (name && !str_eq(c->program->name, c->program->plan_id))
        diagnose(c->diagnostics, SEVERITY_ERROR, "E0801", "", c->file, name->line, name->column,
                 (uint32_t)c->program->name.len, "a node workflow has one name, and \"name\" and \"planId\" differ");
}

static struct json to_nodes(struct converter *c)
{
    const struct program *p = c->program;
    struct json out = json_object(), nodes = json_array();
    check_plan_fields(c, &c->tree);
    check_plan_fields(c, json_key(&c->tree, "metadata"));
    check_name(c);
    JSON_ADD(c->arena, &out, {"name", json_string(p->plan_id)}, {"description", json_some(p->description)},
             {"version", json_string(p->plan_version)},
             {"tags", json_filled(json_texts(c->arena, p->tags, p->tag_count))},
             {"inputs", json_ref(json_key(&c->tree, "inputs"))});
    put_top(c, &out);
    for (uint32_t i = 0; i < p->top_count; i++)
        json_append(c->arena, &nodes, node_of(c, i));
    JSON_ADD(c->arena, &out, {"nodes", nodes});
    return out;
}

// ---- all of it

enum code author_convert(const struct program *program, enum document_kind to, struct diagnostics *diagnostics,
                         struct arena *arena, struct buf *out, struct error *err)
{
    struct converter c = {.program = program, .arena = arena, .diagnostics = diagnostics};
    struct diagnostics ignored;
    uint32_t errors = diagnostics->error_count;
    diagnostics_init(&ignored, arena);
    c.file = arena_copy(diagnostics->arena, program->file);
    if (!c.file.ptr) return error_nomem(err);
    if (program->kind == DOCUMENT_PLAYBOOK) {
        struct diagnostic *d = diagnose(diagnostics, SEVERITY_ERROR, "E0801", "", c.file, 1, 1, 1,
                                        "a playbook routes tokens along arcs, by templates; plans and workflows have "
                                        "neither");
        diagnostic_hint(diagnostics, d, "it runs as it is: cairn run %.*s", STR_ARG(program->file));
        return error_set(err, E_UNSUPPORTED, "it says what the other format cannot");
    }
    if (doc_tree(program->text, program->file, &doc_limits_default, arena, &c.tree, &ignored)) return error_nomem(err);
    check_failures(&c);
    check_skips(&c);
    struct json document = to == DOCUMENT_PLAN ? to_plan(&c) : to_nodes(&c);
    if (c.failed || !json_ok(&document)) return error_nomem(err);
    if (diagnostics->error_count > errors) return error_set(err, E_UNSUPPORTED, "it says what the other format cannot");
    if (to == DOCUMENT_NODES) {
        yaml_document(out, &document);
        return buf_ok(out) ? OK : error_nomem(err);
    }
    struct buf flat = buf_of((size_t)64 << 20);
    json_write(&flat, &document);
    struct str text = buf_keep(&flat, arena);
    if (!text.ptr) return error_nomem(err);
    return fmt_json(text, arena, out, err);
}
