// The inputs of a step as the engine would give them to its tool: references replaced, the condition with every comparison,
// the environment. What is not known yet stays as <reference>. Secrets are named, never fetched.
#include "author/author.h"

#include "json/make.h"
#include "kernel/kernel.h"

struct looker {
    struct scope inner; // the kernel's
    const struct run *run;
    uint32_t step;
    struct arena *arena;
    struct json unknown; // references without a value, as written, once each
};

static bool is_known(void *context, struct str name)
{
    const struct looker *l = context;
    return l->inner.known(l->inner.context, name);
}

static void remember(struct looker *l, struct str text)
{
    for (uint32_t i = 0; i < l->unknown.count; i++)
        if (str_eq(l->unknown.items[i].text, text)) return;
    json_append(l->arena, &l->unknown, json_string(text));
}

// A step that has not come to an end in what is given.
static bool is_open(const struct looker *l, struct str name)
{
    uint32_t scope = l->run->program->steps[l->step].scope;
    for (;;) {
        uint32_t found = program_find(l->run->program, scope, name);
        if (found != PROGRAM_TOP) return kernel_state(l->run, found) < NODE_SUCCESS;
        if (scope == PROGRAM_TOP) return false;
        scope = l->run->program->steps[scope].scope;
    }
}

static enum code look_up(void *context, const struct ref *ref, struct arena *arena, struct json *out, struct error *err)
{
    struct looker *l = context;
    bool missing = (ref->kind == REF_OUTPUT && is_open(l, ref->node)) ||
                   (ref->kind == REF_INPUT && !json_at(&l->run->start.inputs, ref->path)) ||
                   (ref->kind == REF_ARTIFACTS_DIR && l->run->start.artifacts_dir.len == 0) ||
                   (ref->kind == REF_WORKFLOW_ID && l->run->ids.run.len == 0);
    if (!missing) return l->inner.lookup(l->inner.context, ref, arena, out, err);
    remember(l, ref->text);
    *out = json_text_made(arena_format(arena, "<%.*s>", STR_ARG(ref->text)));
    return json_made(out, err);
}

// ---- parts

static enum code add_when(struct looker *l, const struct program_step *ps, const struct scope *scope, struct json *out)
{
    const struct when_step *trace = NULL;
    struct json when = JSON_OF(l->arena, {"text", json_string(ps->when_text)}), atoms = json_array();
    struct error err = {0};
    bool result = false;
    size_t count = 0;
    if (!ps->when) {
        JSON_ADD(l->arena, &when, {"result", json_bool(false)},
                 {"error", json_word("it does not parse, and counts as false")});
        JSON_ADD(l->arena, out, {"when", when});
        return OK;
    }
    uint32_t before = l->unknown.count;
    enum code rc = when_eval(ps->when, scope, l->arena, &result, &trace, &err);
    if (rc == E_NOMEM) return rc;
    if (rc) {
        JSON_ADD(l->arena, &when, {"result", json_null()}, {"error", json_copied(l->arena, str_from(err.message))});
        JSON_ADD(l->arena, out, {"when", when});
        return OK;
    }
    (void)when_atoms(ps->when, &count);
    bool open = l->unknown.count > before;
    for (size_t i = 0; i < count; i++) {
        bool guessed = str_starts(trace[i].left, STR("<$"));
        open |= guessed;
        json_append(l->arena, &atoms,
                    JSON_OF(l->arena, {"text", json_string(trace[i].atom->text)}, {"left", json_string(trace[i].left)},
                            {"result", guessed ? json_null() : json_bool(trace[i].result)}));
    }
    JSON_ADD(l->arena, &when, {"result", open ? json_null() : json_bool(result)}, {"comparisons", atoms});
    JSON_ADD(l->arena, out, {"when", when});
    return OK;
}

static enum code render_member(struct looker *l, const struct program_step *ps, const struct json_member *m,
                               const struct scope *scope, struct json *with, struct json *env, struct error *err)
{
    struct json value = m->value;
    enum code rc = OK;
    if (step_is_shell_text(ps, &ps->with, m->key)) {
        struct subst subst;
        rc = subst_shell(m->value.text, scope, l->arena, &subst, err);
        if (rc) return rc;
        for (size_t i = 0; i < subst.env_count; i++)
            json_set(l->arena, env, subst.env[i].name, json_string(subst.env[i].value));
        value = json_string(subst.text);
    } else if (ps->kind == STEP_SCRIPT && str_is(m->key, "code")) {
        struct str text;
        rc = subst_text(m->value.text, scope, l->arena, &text, err);
        value = json_string(text);
    } else {
        rc = subst_json(&m->value, scope, l->arena, &value, err);
    }
    if (!rc) json_set(l->arena, with, m->key, value);
    return rc;
}

static enum code add_with(struct looker *l, const struct program_step *ps, const struct scope *scope, struct json *out)
{
    struct json with = json_object(), env = json_object();
    struct error err = {0};
    for (uint32_t i = 0; i < ps->with.count; i++) {
        enum code rc = render_member(l, ps, &ps->with.members[i], scope, &with, &env, &err);
        if (rc == E_NOMEM) return rc;
        if (!rc) continue;
        JSON_ADD(l->arena, out, {"error", json_copied(l->arena, str_from(err.message))});
        break;
    }
    JSON_ADD(l->arena, out, {"with", with}, {"referenceEnvironment", json_filled(env)});
    return OK;
}

static void add_secrets(struct looker *l, const struct program_step *ps, struct json *out)
{
    struct json secrets = json_array();
    for (uint32_t i = 0; i < ps->secret_count; i++) {
        struct json one = JSON_OF(l->arena, {"name", json_string(ps->secrets[i].name)}, {"value", json_word("***")},
                                  {"from", json_string(ps->secrets[i].ref)});
        json_append(l->arena, &secrets, one);
    }
    JSON_ADD(l->arena, out, {"secrets", json_filled(secrets)});
}

// ---- all of it

static enum code no_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                         struct error *err)
{
    (void)context, (void)sha256, (void)arena, (void)out;
    return error_set(err, E_NOT_FOUND, "the output is not here");
}

static struct run *assumed_run(const struct program *program, const struct render_facts *facts)
{
    struct run_ids ids = facts->ids;
    if (program->net && ids.run.len == 0) ids.run = STR("<execution_id>");
    struct run *run = run_new(program, &ids);
    if (!run) return NULL;
    run->start.inputs = facts->inputs;
    run->start.arguments = facts->arguments;
    run->start.artifacts_dir = facts->artifacts_dir;
    for (uint32_t i = 0; i < facts->result_count; i++) {
        const struct render_result *given = &facts->results[i];
        enum node_state state = given->skipped ? NODE_SKIPPED : given->failed ? NODE_FAILED : NODE_SUCCESS;
        kernel_assume(run, given->step, state, &given->value);
    }
    return run;
}

// A step of a playbook: what each of its tasks would be given.
static enum code render_tasks(struct run *run, uint32_t step, const struct render_facts *facts, const struct kernel_env *env,
                              struct arena *arena, struct json *out, struct error *err)
{
    const struct net_step *ns = &run->program->net->steps[step];
    struct json ahead = json_array(), made;
    run->env = env;
    enum code rc = kernel_suppose(run, &facts->inputs, arena, err);
    for (uint32_t i = 0; !rc && i < ns->task_count; i++) {
        struct kernel_given given;
        rc = kernel_given_ahead(run, step, i, env, arena, &given, err);
        if (rc) break;
        json_append(arena, &ahead, JSON_OF(arena, {"task", json_some(ns->tasks[i].label)}, {"kind", json_some(ns->tasks[i].kind)},
                                           {"with", given.with}, {"unknown", json_filled(given.missing)}));
    }
    if (rc) return rc;
    made = JSON_OF(arena, {"stepId", json_string(run->program->steps[step].id)}, {"ahead", ahead});
    if (!json_ok(&made) || !json_copy(arena, &made, out)) return error_nomem(err); // the run ends before it
    return OK;
}

enum code author_render(const struct program *program, uint32_t step, const struct render_facts *facts,
                        struct arena *arena, struct json *out, struct error *err)
{
    static const struct kernel_env env = {.blob = no_blob};
    const struct program_step *ps = &program->steps[step];
    struct run *run = assumed_run(program, facts);
    if (!run) return error_nomem(err);
    if (program->net) {
        enum code made = render_tasks(run, step, facts, &env, arena, out, err);
        run_free(run);
        return made;
    }
    struct kernel_scope strict = {.run = run, .step = step, .env = &env, .strict = true};
    struct kernel_scope lenient = {.run = run, .step = step, .env = &env};
    struct looker l = {
        .inner = kernel_scope(&lenient), .run = run, .step = step, .arena = arena, .unknown = json_array()};
    struct scope scope = {.context = &l, .known = is_known, .lookup = look_up, .preview = true};
    *out = JSON_OF(l.arena, {"stepId", json_string(ps->id)},
                   {"kind", json_string(ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind)))});
    enum code rc = OK;
    if (ps->when_text.len > 0) {
        l.inner = kernel_scope(&strict);
        rc = add_when(&l, ps, &scope, out);
        l.inner = kernel_scope(&lenient);
    }
    if (!rc) rc = add_with(&l, ps, &scope, out);
    add_secrets(&l, ps, out);
    JSON_ADD(l.arena, out, {"unknown", l.unknown});
    run_free(run);
    return rc ? error_nomem(err) : json_made(out, err);
}
