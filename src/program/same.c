// Two programs, step by step: would a step give the same result in both, as far as the documents say?
#include "program/program.h"

static bool same_secrets(const struct program_step *a, const struct program_step *b)
{
    if (a->secret_count != b->secret_count) return false;
    for (uint32_t i = 0; i < a->secret_count; i++)
        if (!str_eq(a->secrets[i].name, b->secrets[i].name) || !str_eq(a->secrets[i].ref, b->secrets[i].ref))
            return false;
    return true;
}

static bool same_artifacts(const struct program_step *a, const struct program_step *b)
{
    if (a->artifact_count != b->artifact_count) return false;
    for (uint32_t i = 0; i < a->artifact_count; i++)
        if (!str_eq(a->artifacts[i].path, b->artifacts[i].path) || !str_eq(a->artifacts[i].kind, b->artifacts[i].kind))
            return false;
    return true;
}

// The order in which dependencies are written means nothing.
static bool same_deps(const struct program *pa, const struct program_step *a, const struct program *pb,
                      const struct program_step *b)
{
    if (a->dep_count != b->dep_count) return false;
    for (uint32_t i = 0; i < a->dep_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->dep_count && !found; k++)
            found = str_eq(pa->steps[a->deps[i]].id, pb->steps[b->deps[k]].id);
        if (!found) return false;
    }
    return true;
}

static bool same_policy(const struct program_step *a, const struct program_step *b)
{
    const struct retry_policy *x = &a->retry, *y = &b->retry;
    if (a->timeout_ms != b->timeout_ms || a->on_failure != b->on_failure) return false;
    if (x->max_attempts != y->max_attempts || x->delay_ms != y->delay_ms || x->backoff != y->backoff) return false;
    if (x->max_delay_ms != y->max_delay_ms || x->jitter < y->jitter || x->jitter > y->jitter || x->on != y->on)
        return false;
    if (x->non_retryable_count != y->non_retryable_count) return false;
    for (uint32_t i = 0; i < x->non_retryable_count; i++)
        if (!str_eq(x->non_retryable[i], y->non_retryable[i])) return false;
    return true;
}

static bool same_document(const struct program *a, const struct program *b)
{
    if (!a || !b) return a == b;
    if (!digest_eq(&a->sha256, &b->sha256) || a->part_count != b->part_count) return false;
    for (uint32_t i = 0; i < a->part_count; i++)
        if (!digest_eq(&a->parts[i].sha256, &b->parts[i].sha256)) return false;
    return true;
}

static bool same_children(const struct program *pa, const struct program_step *a, const struct program *pb,
                          const struct program_step *b)
{
    if (a->child_count != b->child_count || a->max_iterations != b->max_iterations) return false;
    if ((a->until == PROGRAM_TOP) != (b->until == PROGRAM_TOP)) return false;
    for (uint32_t i = 0; i < a->child_count; i++) {
        if (!str_eq(pa->steps[a->first_child + i].id, pb->steps[b->first_child + i].id)) return false;
        if (!program_same_step(pa, a->first_child + i, pb, b->first_child + i, true)) return false;
    }
    return true;
}

bool program_same_step(const struct program *pa, uint32_t step_a, const struct program *pb, uint32_t step_b,
                       bool policy)
{
    const struct program_step *a = &pa->steps[step_a], *b = &pb->steps[step_b];
    if (a->kind != b->kind || !str_eq(a->function, b->function)) return false;
    if (a->rule != b->rule || a->condition != b->condition) return false;
    if (!str_eq(a->when_text, b->when_text) || a->when_broken != b->when_broken) return false;
    if (policy && !same_policy(a, b)) return false;
    return json_equal(&a->with, &b->with) && same_deps(pa, a, pb, b) && same_secrets(a, b) && same_artifacts(a, b) &&
           same_document(a->child, b->child) && same_children(pa, a, pb, b);
}
