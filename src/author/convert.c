// From one format to the other, where the other can say the same. Everything that it cannot say is named with its place, and
// then nothing is converted.
#include "author/fmt.h"
#include "author/sound.h"

#include <string.h>

enum { NODE_TIMEOUT_MS = 120000, NODE_DELAY_MAX_MS = 60000, NODE_RETRIES_MAX = 5 };

struct converter {
    const struct program *program;
    struct arena *arena;
    struct diagnostics *diagnostics;
    struct json tree; // of the document
    struct str file;  // outlives the program, as the diagnostics do
    bool failed;      // memory ran out
};

static void put(struct converter *c, struct json *object, const char *key, struct json value)
{
    if (!json_put(c->arena, object, str_from(key), value)) c->failed = true;
}

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
            struct buf text;
            buf_init(&text, 600);
            if (late)
                buf_printf(&text,
                           "when it fails, \"%.*s\" may still run, and what follows that starts in a node "
                           "workflow only",
                           STR_ARG(other->id));
            else
                buf_printf(&text,
                           "when it fails, \"%.*s\" beside it is still started by a node workflow, not by a plan",
                           STR_ARG(other->id));
            refuse(c, ps, text.ptr);
            buf_release(&text);
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
        if (!json_push(c->arena, &list, json_string(c->program->steps[ps->deps[i]].id))) c->failed = true;
    return list;
}

static struct json texts_of(struct converter *c, const struct str *texts, uint32_t count)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < count; i++)
        if (!json_push(c->arena, &list, json_string(texts[i]))) c->failed = true;
    return list;
}

static void put_secrets(struct converter *c, const struct program_step *ps, struct json *out)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < ps->secret_count; i++) {
        struct json one = json_object();
        put(c, &one, "name", json_string(ps->secrets[i].name));
        put(c, &one, "ref", json_string(ps->secrets[i].ref));
        if (!json_push(c->arena, &list, one)) c->failed = true;
    }
    if (list.count > 0) put(c, out, "secrets", list);
}

static void put_names(struct converter *c, uint32_t index, struct json *out)
{
    const struct program_step *ps = &c->program->steps[index];
    const struct json *description = json_key(source_step(c, index), "description");
    if (!str_eq(ps->name, ps->id)) put(c, out, "name", json_string(ps->name));
    if (description) put(c, out, "description", *description);
}

static void put_member(struct converter *c, const struct json *with, const char *key, struct json *out, const char *as)
{
    const struct json *value = json_key(with, key);
    if (value) put(c, out, as, *value);
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
        if (!json_put(c->arena, &with, m->key, value)) c->failed = true;
    }
    if (with.count > 0) put(c, out, "with", with);
}

static void plan_retry(struct converter *c, const struct retry_policy *retry, struct json *out)
{
    if (retry->max_attempts <= 1) return;
    struct json policy = json_object();
    put(c, &policy, "maxAttempts", json_int(retry->max_attempts));
    put(c, &policy, "delayMs", json_int(retry->delay_ms));
    put(c, &policy, "backoff", json_string(str_from(backoff_name(retry->backoff))));
    if (retry->max_delay_ms > 0) put(c, &policy, "maxDelayMs", json_int(retry->max_delay_ms));
    if (retry->on == RETRY_ALL) put(c, &policy, "on", json_string(STR("all")));
    if (retry->non_retryable_count > 0)
        put(c, &policy, "nonRetryable", texts_of(c, retry->non_retryable, retry->non_retryable_count));
    put(c, out, "retry", policy);
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
    put(c, &out, "stepId", json_string(ps->id));
    put_names(c, index, &out);
    put(c, &out, "kind", json_string(ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind))));
    plan_with(c, ps, &out);
    put(c, &out, "dependsOn", ids_of(c, ps));
    if (ps->rule != RULE_ALL_SUCCESS) put(c, &out, "triggerRule", json_string(str_from(rule_name(ps->rule))));
    if (ps->when_text.len > 0) put(c, &out, "when", json_string(ps->when_text));
    plan_retry(c, &ps->retry, &out);
    if (ps->timeout_ms > 0) put(c, &out, "timeoutMs", json_int(ps->timeout_ms));
    put_secrets(c, ps, &out);
    return out;
}

static struct json to_plan(struct converter *c)
{
    const struct program *p = c->program;
    struct json out = json_object(), metadata = json_object(), steps = json_array();
    put(c, &metadata, "planId", json_string(p->plan_id));
    put(c, &metadata, "planVersion", json_string(p->plan_version));
    put(c, &metadata, "schemaVersion", json_string(STR("v1.2")));
    if (!str_eq(p->name, p->plan_id)) put(c, &metadata, "name", json_string(p->name));
    if (p->description.len > 0) put(c, &metadata, "description", json_string(p->description));
    if (p->tag_count > 0) put(c, &metadata, "tags", texts_of(c, p->tags, p->tag_count));
    put(c, &out, "metadata", metadata);
    put_member(c, &c->tree, "inputs", &out, "inputs");
    for (uint32_t i = 0; i < p->top_count; i++)
        if (!json_push(c->arena, &steps, plan_step(c, i))) c->failed = true;
    put(c, &out, "steps", steps);
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
    struct json body = json_object();
    put_member(c, &ps->with, "message", &body, "message");
    put_member(c, &ps->with, "timeoutMs", &body, "timeout");
    put_member(c, &ps->with, "onTimeout", &body, "on_timeout");
    put(c, out, "approval", body);
}

static void node_script(struct converter *c, const struct program_step *ps, struct json *out)
{
    const struct json *file = json_key(&ps->with, "file");
    if (json_key(&ps->with, "args")) refuse(c, ps, "scripts of node workflows take no \"args\"");
    if (file)
        put(c, out, "script", json_string(script_request(c, file->text)));
    else
        put_member(c, &ps->with, "code", out, "script");
    put_member(c, &ps->with, "runtime", out, "runtime");
}

static void node_body(struct converter *c, const struct program_step *ps, struct json *out)
{
    struct json body = json_object();
    const struct json *message = json_key(&ps->with, "message");
    switch (ps->kind) {
    case STEP_NOOP:
        if (json_key(&ps->with, "simulateError")) refuse(c, ps, "node workflows have no \"simulateError\"");
        put(c, out, "noop", json_bool(true));
        break;
    case STEP_ECHO:
        if (message && message->type == JSON_NULL) refuse(c, ps, "a node cannot echo null");
        put_member(c, &ps->with, "message", out, "echo");
        break;
    case STEP_MERGE:
        if (message) put(c, &body, "message", *message);
        put(c, out, "merge", message ? body : json_bool(true));
        break;
    case STEP_EXEC:
        if (json_key(&ps->with, "stdin")) refuse(c, ps, "node workflows have no \"stdin\"");
        put_member(c, &ps->with, "argv", out, "exec");
        break;
    case STEP_SHELL:
        put_member(c, &ps->with, "command", out, "bash");
        break;
    case STEP_SCRIPT:
        node_script(c, ps, out);
        break;
    case STEP_WAIT:
        put_member(c, &ps->with, "durationMs", &body, "duration");
        put_member(c, &ps->with, "until", &body, "until");
        put(c, out, "wait", body);
        break;
    case STEP_APPROVAL:
        node_approval(c, ps, out);
        break;
    case STEP_SUBRUN:
        put_member(c, &ps->with, "document", &body, "document");
        put_member(c, &ps->with, "inputs", &body, "inputs");
        put_member(c, &ps->with, "arguments", &body, "arguments");
        put(c, out, "workflow", body);
        break;
    case STEP_HOST:
    case STEP_TASKS:
        put(c, out, "use", json_string(ps->function));
        if (ps->with.count > 0) put(c, out, "with", ps->with);
        return;
    case STEP_CANCEL:
    case STEP_LOOP:
    case STEP_KIND_FIRST_UNUSED:
        break;
    }
    put_member(c, &ps->with, "env", out, "env");
    put_member(c, &ps->with, "cwd", out, "cwd");
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
    put(c, &policy, "max_attempts", json_int(retry->max_attempts - 1));
    put(c, &policy, "delay_ms", json_int(retry->delay_ms));
    if (retry->on == RETRY_ALL) put(c, &policy, "on_error", json_string(STR("all")));
    if (retry->non_retryable_count > 0)
        put(c, &policy, "non_retryable", texts_of(c, retry->non_retryable, retry->non_retryable_count));
    put(c, out, "retry", policy);
}

static struct json node_of(struct converter *c, uint32_t index)
{
    const struct program_step *ps = &c->program->steps[index];
    struct json out = json_object();
    bool program = ps->kind == STEP_SHELL || ps->kind == STEP_SCRIPT;
    if (!node_id(ps->id)) refuse(c, ps, "ids of nodes begin with a letter or '_' and hold no dots");
    if (ps->on_failure == ON_FAILURE_HOLD) refuse(c, ps, "node workflows do not hold failures for a person");
    if (ps->artifact_count > 0) refuse(c, ps, "node workflows declare no artifacts");
    put(c, &out, "id", json_string(ps->id));
    put_names(c, index, &out);
    if (ps->dep_count > 0) put(c, &out, "depends_on", ids_of(c, ps));
    if (ps->rule != RULE_ALL_SUCCESS) put(c, &out, "trigger_rule", json_string(str_from(rule_name(ps->rule))));
    if (ps->when_text.len > 0) put(c, &out, "when", json_string(ps->when_text));
    node_body(c, ps, &out);
    if (ps->timeout_ms != (program ? NODE_TIMEOUT_MS : 0)) put(c, &out, "timeout", json_int(ps->timeout_ms));
    node_retry(c, ps, &out);
    put_secrets(c, ps, &out);
    return out;
}

// Fields that a node workflow has no place for.
static void check_plan_fields(struct converter *c, const struct json *object)
{
    static const char *const known[] = {"metadata", "planId",      "planVersion", "schemaVersion", "onStepFailure",
                                        "name",     "description", "tags",        "inputs",        "steps"};
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
    put(c, &out, "name", json_string(p->plan_id));
    if (p->description.len > 0) put(c, &out, "description", json_string(p->description));
    put(c, &out, "version", json_string(p->plan_version));
    if (p->tag_count > 0) put(c, &out, "tags", texts_of(c, p->tags, p->tag_count));
    put_member(c, &c->tree, "inputs", &out, "inputs");
    for (uint32_t i = 0; i < p->top_count; i++)
        if (!json_push(c->arena, &nodes, node_of(c, i))) c->failed = true;
    put(c, &out, "nodes", nodes);
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
    if (c.failed) return error_nomem(err);
    if (diagnostics->error_count > errors) return error_set(err, E_UNSUPPORTED, "it says what the other format cannot");
    if (to == DOCUMENT_NODES) {
        yaml_document(out, &document);
        return buf_ok(out) ? OK : error_nomem(err);
    }
    struct buf flat;
    buf_init(&flat, (size_t)64 << 20);
    json_write(&flat, &document);
    struct str text = arena_copy(arena, buf_str(&flat));
    buf_release(&flat);
    if (!text.ptr) return error_nomem(err);
    return fmt_json(text, arena, out, err);
}
