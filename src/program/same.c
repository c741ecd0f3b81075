// Two programs, step by step: would a step give the same result in both, as far as the documents say?
#include "program/net.h"

bool program_same_secrets(const struct program_step *a, const struct program_step *b)
{
    if (a->secret_count != b->secret_count) return false;
    for (uint32_t i = 0; i < a->secret_count; i++)
        if (!str_eq(a->secrets[i].name, b->secrets[i].name) || !str_eq(a->secrets[i].ref, b->secrets[i].ref))
            return false;
    return true;
}

bool program_same_artifacts(const struct program_step *a, const struct program_step *b)
{
    if (a->artifact_count != b->artifact_count) return false;
    for (uint32_t i = 0; i < a->artifact_count; i++)
        if (!str_eq(a->artifacts[i].path, b->artifacts[i].path) || !str_eq(a->artifacts[i].kind, b->artifacts[i].kind))
            return false;
    return true;
}

// The order in which dependencies are written means nothing.
bool program_same_deps(const struct program *pa, const struct program_step *a, const struct program *pb,
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

bool program_same_retry(const struct retry_policy *a, const struct retry_policy *b)
{
    if (a->max_attempts != b->max_attempts || a->delay_ms != b->delay_ms || a->backoff != b->backoff) return false;
    if (a->max_delay_ms != b->max_delay_ms || a->jitter < b->jitter || a->jitter > b->jitter || a->on != b->on)
        return false;
    if (a->non_retryable_count != b->non_retryable_count) return false;
    for (uint32_t i = 0; i < a->non_retryable_count; i++)
        if (!str_eq(a->non_retryable[i], b->non_retryable[i])) return false;
    return true;
}

static bool same_limit(const struct step_limit *a, const struct step_limit *b)
{
    return a && b ? str_eq(a->name, b->name) : a == b;
}

static bool same_policy(const struct program_step *a, const struct program_step *b)
{
    return same_limit(a->limit, b->limit) &&
           a->timeout_ms == b->timeout_ms && a->on_failure == b->on_failure && program_same_retry(&a->retry, &b->retry);
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

// Steps of playbooks by what they were normalised to: tasks, rules, arcs, loop. Their rules are what they do, not only how often
// they try, so that `policy` makes no difference.
static bool same_net_step(const struct program *pa, uint32_t step_a, const struct program *pb, uint32_t step_b)
{
    if (!pa->net || !pb->net) return pa->net == pb->net;
    const struct net_step *a = &pa->net->steps[step_a], *b = &pb->net->steps[step_b];
    if (a->task_count != b->task_count) return false;
    for (uint32_t i = 0; i < a->task_count; i++)
        if (!same_document(a->tasks[i].child, b->tasks[i].child)) return false;
    struct buf text_a SCOPED(buf_release) = buf_of((size_t)64 << 20);
    struct buf text_b SCOPED(buf_release) = buf_of((size_t)64 << 20);
    net_step_write(&text_a, pa, step_a, false);
    net_step_write(&text_b, pb, step_b, false);
    return buf_ok(&text_a) && buf_ok(&text_b) && str_eq(buf_str(&text_a), buf_str(&text_b));
}

bool program_same_step(const struct program *pa, uint32_t step_a, const struct program *pb, uint32_t step_b,
                       bool policy)
{
    const struct program_step *a = &pa->steps[step_a], *b = &pb->steps[step_b];
    if (a->kind != b->kind || !str_eq(a->function, b->function)) return false;
    if (a->overflow != b->overflow || a->undo != b->undo) return false;
    if (a->rule != b->rule || a->condition != b->condition) return false;
    if (!str_eq(a->when_text, b->when_text) || a->when_broken != b->when_broken) return false;
    if (policy && !same_policy(a, b)) return false;
    return json_equal(&a->with, &b->with) && program_same_deps(pa, a, pb, b) && program_same_secrets(a, b) &&
           program_same_artifacts(a, b) && same_document(a->child, b->child) && same_children(pa, a, pb, b) &&
           same_net_step(pa, step_a, pb, step_b);
}
