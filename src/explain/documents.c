// What changed between two documents, step by step.
#include "explain/inside.h"

static struct json changed_fields(struct maker *m, const struct program *p, const struct program_step *a,
                                  const struct program *q, const struct program_step *b)
{
    const struct {
        const char *name;
        bool same;
    } fields[] = {
        {"kind", a->kind == b->kind && str_eq(a->function, b->function)},
        {"dependsOn", program_same_deps(p, a, q, b)},
        {"triggerRule", a->rule == b->rule},
        {"when", str_eq(a->when_text, b->when_text)},
        {"with", json_equal(&a->with, &b->with)},
        {"retry", program_same_retry(&a->retry, &b->retry)},
        {"timeout", a->timeout_ms == b->timeout_ms},
        {"onStepFailure", a->on_failure == b->on_failure},
        {"alwaysRun", a->always_run == b->always_run},
        {"secrets", program_same_secrets(a, b)},
        {"artifacts", program_same_artifacts(a, b)},
        {"maxIterations", a->max_iterations == b->max_iterations},
        {"child",
         (!a->child && !b->child) || (a->child && b->child && digest_eq(&a->child->sha256, &b->child->sha256))},
    };
    struct json out = json_array();
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (!fields[i].same) json_append(m->arena, &out, json_string(str_from(fields[i].name)));
    return out;
}

// "poll.fetch": a step of the document, in whatever iteration.
static struct str document_path(struct maker *m, const struct program *p, uint32_t step)
{
    const struct program_step *ps = &p->steps[step];
    if (ps->scope == PROGRAM_TOP) return ps->id;
    struct buf path = buf_of(4096);
    buf_printf(&path, "%.*s.%.*s", STR_ARG(document_path(m, p, ps->scope)), STR_ARG(ps->id));
    return kept(m, &path);
}

// The step of q that stands where `step` stands in p; PROGRAM_TOP: none.
static uint32_t counterpart(const struct program *p, uint32_t step, const struct program *q)
{
    uint32_t scope = p->steps[step].scope;
    if (scope != PROGRAM_TOP) {
        scope = counterpart(p, scope, q);
        if (scope == PROGRAM_TOP) return PROGRAM_TOP;
    }
    return program_find(q, scope, p->steps[step].id);
}

static bool same_parts(const struct program *p, const struct program *q)
{
    bool same = p->part_count == q->part_count;
    for (uint32_t i = 0; same && i < p->part_count; i++) same = digest_eq(&p->parts[i].sha256, &q->parts[i].sha256);
    return same;
}

static void put_document(struct maker *m, struct json *out, const char *key, const struct program *p)
{
    struct json item = JSON_OF(m->arena, {"planId", json_some(p->plan_id)}, {"planVersion", json_some(p->plan_version)},
                               {"sha256", json_some((struct str){p->sha256_hex, SHA256_HEX})});
    JSON_ADD(m->arena, out, {key, item});
}

bool put_documents(struct maker *m, struct json *out, const struct program *p, const struct program *q)
{
    struct json document = json_object(), added = json_array(), removed = json_array(), changed = json_array();
    bool same = digest_eq(&p->sha256, &q->sha256) && same_parts(p, q);
    JSON_ADD(m->arena, &document, {"same", json_bool(same)});
    put_document(m, &document, "a", p);
    put_document(m, &document, "b", q);
    for (uint32_t i = 0; !same && i < p->step_count; i++) {
        uint32_t other = counterpart(p, i, q);
        struct str path = document_path(m, p, i);
        if (other == PROGRAM_TOP) {
            json_append(m->arena, &removed, json_string(path));
            continue;
        }
        struct json fields = changed_fields(m, p, &p->steps[i], q, &q->steps[other]), item = json_object();
        if (fields.count == 0) continue;
        JSON_ADD(m->arena, &item, {"step", json_some(path)}, {"fields", fields});
        json_append(m->arena, &changed, item);
    }
    for (uint32_t i = 0; !same && i < q->step_count; i++)
        if (counterpart(q, i, p) == PROGRAM_TOP) json_append(m->arena, &added, json_string(document_path(m, q, i)));
    JSON_ADD(m->arena, &document, {"changed", json_when(!same, changed)}, {"added", json_when(!same, added)},
             {"removed", json_when(!same, removed)});
    JSON_ADD(m->arena, out, {"document", document});
    return same;
}
