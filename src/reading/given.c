// What a step was given: as its document has it, and with every reference replaced, by the run folded up to the start of the attempt.
#include "reading/reading.h"

#include "json/make.h"
#include "kernel/kernel.h"

struct rendering {
    struct run *run;
    struct str step;
    uint32_t logical; // 0: it never started
    uint64_t at;
    bool reached;
    struct error err;
};

static enum code fold_until(void *context, const struct record *record, const struct moment *moment,
                            const struct seal *seal)
{
    struct rendering *r = context;
    (void)seal;
    if (!moment || r->reached || record->seq > r->at) return OK;
    r->reached = r->logical && (moment->kind == MOMENT_STEP_STARTED || moment->kind == MOMENT_STEP_REDISPATCHED) &&
                 moment->logical == r->logical && str_eq(moment->step, r->step);
    return kernel_fold(r->run, moment, &r->err);
}

// Of a shell's text: as bash gets it, with the variables that its references became.
static enum code render_text(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                             struct step_given *out, struct error *err)
{
    const struct program_step *ps = &run->program->steps[step];
    for (uint32_t i = 0; i < out->with.count; i++) {
        struct json_member *m = &out->with.members[i];
        struct kernel_scope context = {.run = run, .step = step, .env = env};
        struct scope scope = kernel_scope(&context);
        struct subst subst;
        if (!step_is_shell_text(ps, &out->with, m->key)) continue;
        enum code rc = subst_shell(json_text(&m->value), &scope, arena, &subst, err);
        if (rc) return rc;
        for (size_t k = 0; k < subst.env_count; k++)
            json_set(arena, &out->env, subst.env[k].name, json_copied(arena, subst.env[k].value));
        m->value = json_copied(arena, subst.text);
    }
    return json_made(&out->env, err);
}

enum code reading_given(struct store *store, const struct run_head *head, const struct program *program,
                        const struct given_asked *asked, struct arena *arena, struct step_given *out, struct error *err)
{
    const struct kernel_env env = {.context = store, .blob = store_blob_of};
    struct rendering r = {.step = asked->step, .logical = asked->logical, .at = asked->at};
    struct json borrowed;
    *out = (struct step_given){.env = json_object()};
    r.run = run_new(program, &head->ids);
    if (!r.run) return error_nomem(err);
    r.run->env = &env;
    uint32_t index = kernel_find(r.run, asked->step);
    enum code rc = index == PROGRAM_TOP ? error_set(err, E_NOT_FOUND, "the run has no step %.*s", STR_ARG(asked->step)) : OK;
    if (!rc) {
        out->step = &program->steps[index];
        rc = store_replay(store, head->ids.tenant, head->ids.run, fold_until, &r, err);
        if (rc && r.err.code) *err = r.err;
        out->why = (struct error){0};
        bool had = !rc && kernel_render(r.run, index, &env, arena, &borrowed, &out->why) == OK &&
                   json_copy(arena, &borrowed, &out->with); // a lone reference is a value of the run
        if (had && asked->text && render_text(r.run, index, &env, arena, out, &out->why)) had = false;
        if (!had) out->with = json_none();
    }
    run_free(r.run);
    return rc;
}
