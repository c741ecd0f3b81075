// What a new run takes over of a playbook's run. Variables, tokens and loops come of all that happened, in its order, so it is always a
// beginning of the log: up to the event that was asked for, and no further than to where something would have been different.
#include "engine/fork.h"

#include <string.h>

struct net_fork {
    struct fork *fork;
    size_t cut;         // of the source's moments, so many
    uint32_t cause;     // the step before whose first visit it is cut; PROGRAM_TOP: none
    uint32_t *begun;    // by step of the new document: visits in what is taken over,
    uint32_t *ended;    // those of them that are over,
    uint32_t *before;   // and visits of the source
    struct step_fate *fates;
};

// ---- what a step reads
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether the text names it, as a word of its own. `whole`: and then nothing that says which part of it.
static bool names(struct str text, struct str word, bool whole)
{
    for (size_t at = 0; at + word.len <= text.len; at++) {
        if (memcmp(text.ptr + at, word.ptr, word.len) != 0) continue;
        char behind = at + word.len < text.len ? text.ptr[at + word.len] : '\0';
        if ((at > 0 && is_word(text.ptr[at - 1])) || is_word(behind)) continue;
        if (!whole || behind != '.') return true;
    }
    return false;
}

// Words decide, not meanings: a step that may read the input begins anew.
static struct str input_read(const struct fork *fork, struct str text)
{
    if (fork->changed.count > 0 && names(text, STR("workload"), true)) return fork->changed.items[0].text;
    for (uint32_t i = 0; i < fork->changed.count; i++)
        if (names(text, fork->changed.items[i].text, false)) return fork->changed.items[i].text;
    return (struct str){0};
}

static enum code look_at_inputs(struct net_fork *nf, struct error *err)
{
    const struct program *program = nf->fork->program;
    for (uint32_t i = 0; i < program->step_count; i++) {
        struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
        net_step_write(&text, program, i, false);
        if (!buf_ok(&text)) return error_nomem(err);
        struct str input = input_read(nf->fork, buf_str(&text));
        if (input.len > 0 && nf->fates[i].why == AGAIN_NOTHING) nf->fates[i] = (struct step_fate){.why = AGAIN_INPUT, .input = input};
    }
    return OK;
}

// ---- where it is cut
static bool begins(const struct moment *m)
{
    return m->kind == MOMENT_ADMIT_EVALUATED || m->kind == MOMENT_STEP_SCHEDULED;
}

static void cut_before(struct net_fork *nf, struct str step, uint32_t cause)
{
    const struct fork_private *private = nf->fork->private;
    for (size_t i = 0; i < nf->cut; i++) {
        if (!begins(&private->moments[i]) || !str_eq(private->moments[i].step, step)) continue;
        nf->cut = i;
        nf->cause = cause;
    }
}

// What is no step's, and yet of each.
static bool other_frame(const struct fork *fork)
{
    const struct net *a = fork->before->net, *b = fork->program->net;
    if (fork->before == fork->program) return false;
    struct str final_a = a->final != PROGRAM_TOP ? fork->before->steps[a->final].id : (struct str){0};
    struct str final_b = b->final != PROGRAM_TOP ? fork->program->steps[b->final].id : (struct str){0};
    bool chain = a->keychain.type == b->keychain.type && (a->keychain.type == 0 || json_equal(&a->keychain, &b->keychain));
    return !chain || a->as_noetl != b->as_noetl || a->strict != b->strict || a->no_next_is_error != b->no_next_is_error ||
           !str_eq(final_a, final_b) || !str_eq(fork->before->steps[a->entry].id, fork->program->steps[b->entry].id) ||
           !json_equal(&fork->before->inputs, &fork->program->inputs);
}

static enum code look_at_frame(struct net_fork *nf, struct error *err)
{
    const struct fork *fork = nf->fork;
    struct buf chain SCOPED(buf_release) = buf_of((size_t)16 << 20);
    if (fork->program->net->keychain.type != 0) json_canon(&chain, &fork->program->net->keychain);
    if (!buf_ok(&chain)) return error_nomem(err);
    bool made_of_each_other = fork->changed.count > 0 && template_tree_dynamic(fork->program->net->workload);
    if (other_frame(fork) || made_of_each_other || input_read(fork, buf_str(&chain)).len > 0) nf->cut = 0;
    return OK;
}

static void look_at_document(struct net_fork *nf)
{
    const struct fork *fork = nf->fork;
    for (uint32_t i = 0; fork->before != fork->program && i < fork->before->step_count; i++) {
        uint32_t now = program_find(fork->program, PROGRAM_TOP, fork->before->steps[i].id);
        if (now == PROGRAM_TOP)
            cut_before(nf, fork->before->steps[i].id, PROGRAM_TOP);
        else if (!program_same_step(fork->before, i, fork->program, now, true) && nf->fates[now].why == AGAIN_NOTHING)
            nf->fates[now].why = AGAIN_BODY;
    }
}

static enum code look_at_wishes(struct net_fork *nf, const struct fork_request *request, struct error *err)
{
    const struct program *program = nf->fork->program;
    if (request->output_count > 0)
        return error_set(err, E_CONFLICT,
                         "run %.*s is of a playbook: the output of a step cannot be given, because variables and arcs came of it too",
                         STR_ARG(nf->fork->head.ids.run));
    for (size_t i = 0; i < request->from_count; i++) {
        uint32_t step = program_find(program, PROGRAM_TOP, request->from[i]);
        if (step == PROGRAM_TOP)
            return error_set(err, E_NOT_FOUND, "the document has no step \"%.*s\"", STR_ARG(request->from[i]));
        nf->fates[step].why = AGAIN_ASKED;
    }
    return OK;
}

// ---- what becomes of the steps
static void count_visits(struct net_fork *nf)
{
    const struct fork_private *private = nf->fork->private;
    const struct program *program = nf->fork->program;
    for (size_t i = 0; i < private->moment_count; i++) {
        const struct moment *m = &private->moments[i];
        uint32_t step = m->step.len > 0 ? program_find(program, PROGRAM_TOP, m->step) : PROGRAM_TOP;
        if (step == PROGRAM_TOP) continue;
        bool refused = m->kind == MOMENT_ADMIT_EVALUATED && !json_true(json_key(&m->value, "allow"));
        bool starts = m->kind == MOMENT_STEP_STARTED || refused, taken = i < private->past.taken;
        nf->before[step] += starts;
        nf->begun[step] += starts && taken;
        nf->ended[step] += (refused || m->kind == MOMENT_STEP_COMPLETED || m->kind == MOMENT_STEP_FAILED) && taken;
    }
}

static void judge_steps(struct net_fork *nf)
{
    const struct program *program = nf->fork->program, *old = nf->fork->before;
    count_visits(nf);
    for (uint32_t i = 0; i < program->step_count; i++) {
        struct step_fate *fate = &nf->fates[i];
        bool known = program_find(old, PROGRAM_TOP, program->steps[i].id) != PROGRAM_TOP;
        bool again = nf->begun[i] < nf->before[i];
        bool changed = fate->why != AGAIN_NOTHING;
        fate->fate = !known                        ? FORK_NEW
                     : again                       ? FORK_AGAIN
                     : nf->begun[i] == 0           ? FORK_TO_COME
                     : nf->ended[i] < nf->begun[i] ? FORK_GOES_ON
                                                   : FORK_KEPT;
        if (again && !changed && nf->cause != PROGRAM_TOP) {
            fate->why = AGAIN_DEPENDENCY;
            fate->cause = nf->cause;
        } else if (again && !changed) {
            fate->why = nf->fork->before != program ? AGAIN_BODY : AGAIN_ASKED;
        }
    }
}

enum code fork_net_decide(struct fork *fork, const struct fork_request *request, struct error *err)
{
    struct fork_private *private = fork->private;
    uint32_t count = fork->program->step_count;
    struct net_fork nf = {.fork = fork,
                          .cut = private->whole.taken,
                          .cause = PROGRAM_TOP,
                          .begun = ARENA_ARRAY(private->arena, (size_t)count + 1, uint32_t),
                          .ended = ARENA_ARRAY(private->arena, (size_t)count + 1, uint32_t),
                          .before = ARENA_ARRAY(private->arena, (size_t)count + 1, uint32_t),
                          .fates = ARENA_ARRAY(private->arena, (size_t)count + 1, struct step_fate)};
    if (!nf.begun || !nf.ended || !nf.before || !nf.fates) return error_nomem(err);
    enum code rc = look_at_wishes(&nf, request, err);
    if (!rc) look_at_document(&nf);
    if (!rc) rc = look_at_inputs(&nf, err);
    if (!rc) rc = look_at_frame(&nf, err);
    if (rc) return rc;
    if (request->results_only && request->from_count == 0) nf.cut = 0; // it is run again, not gone on with
    for (uint32_t i = 0; i < count; i++)
        if (nf.fates[i].why != AGAIN_NOTHING) cut_before(&nf, fork->program->steps[i].id, i);
    const struct moment *next = nf.cut < private->moment_count           ? &private->moments[nf.cut]
                                : private->next.kind != MOMENT_UNKNOWN ? &private->next
                                                                       : NULL;
    if (kernel_net_past(private->moments, nf.cut, next, private->arena, &private->past)) return error_nomem(err);
    private->past.from_run = fork->head.ids.run;
    private->past.workload = fork->changed.count > 0;
    private->taken_seq = private->past.taken > 0 ? private->seqs[private->past.taken - 1] : 0;
    judge_steps(&nf);
    fork->fates = nf.fates;
    return OK;
}
