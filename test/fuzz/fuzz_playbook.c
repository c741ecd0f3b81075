// Any bytes as a playbook: a net that compiles is whole. Arcs, jumps and the entry are there, labels are unique, no step waits
// for itself, and everything is the same when it is compiled again.
#include "program/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum code find_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    const struct str *self = context;
    if (str_is(part->request, "missing")) return error_set(err, E_NOT_FOUND, "no such file");
    struct str child = STR("{\"apiVersion\":\"noetl.io/v2\",\"kind\":\"Playbook\",\"metadata\":{\"name\":\"c\"},"
                           "\"workflow\":[{\"step\":\"a\",\"tool\":{\"kind\":\"noop\"}}]}");
    part->file = arena_copy(arena, part->request);
    part->text = arena_copy(arena, str_is(part->request, "self") ? *self : child);
    return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
}

static void check_when(const struct net_when *when)
{
    INVARIANT(!when->test || when->text.ptr); // `true` is a text without a test
}

static void check_sets(const struct net_sets *sets)
{
    for (uint32_t i = 0; i < sets->count; i++) {
        INVARIANT(sets->items[i].scope == NET_CTX || sets->items[i].scope == NET_ITER);
        INVARIANT(sets->items[i].path.len > 0 && sets->items[i].value);
    }
}

static void check_task(const struct net_step *step, uint32_t index)
{
    const struct net_task *task = &step->tasks[index];
    INVARIANT(name_valid(task->label) && net_kind_known(task->kind) && !str_is(task->kind, "workbook"));
    INVARIANT(task->with && template_tree_source(task->with)->type == JSON_OBJECT);
    INVARIANT(task->has_policy == (task->rule_count > 0) && task->timeout_ms >= 0);
    INVARIANT(task->in_process == str_is(task->kind, "noop"));
    for (uint32_t i = 0; i < index; i++) INVARIANT(!str_eq(step->tasks[i].label, task->label));
    for (uint32_t i = 0; i < task->rule_count; i++) {
        const struct net_rule *rule = &task->rules[i];
        INVARIANT(rule->action >= NET_CONTINUE && rule->action <= NET_FAIL);
        INVARIANT(rule->attempts >= 1 && rule->delay_ms >= 0);
        INVARIANT(rule->target == PROGRAM_TOP || rule->target < step->task_count);
        INVARIANT(rule->action != NET_JUMP || rule->target != PROGRAM_TOP || index > 0);
        check_when(&rule->when);
        check_sets(&rule->sets);
    }
    check_sets(&task->sets);
}

static void check_net(const struct program *program)
{
    const struct net *net = program->net;
    INVARIANT(net->entry < program->step_count && net->workload);
    INVARIANT(net->final == PROGRAM_TOP || net->final < program->step_count);
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct net_step *step = &net->steps[i];
        INVARIANT(program->steps[i].kind == STEP_TASKS && program_same_step(program, i, program, i, true));
        INVARIANT(!step->has_loop || (step->loop.in && step->loop.iterator.len && step->loop.max_in_flight >= 1));
        for (uint32_t k = 0; k < step->task_count; k++) check_task(step, k);
        for (uint32_t k = 0; k < step->arc_count; k++) {
            INVARIANT(step->arcs[k].step < program->step_count);
            check_when(&step->arcs[k].when);
            check_sets(&step->arcs[k].sets);
        }
        for (uint32_t k = 0; k < step->admit_count; k++) check_when(&step->admit[k].when);
        check_sets(&step->sets);
        if (step->upstream) INVARIANT(!(step->upstream[i / 64] >> (i % 64) & 1));
    }
}

static struct str load(struct str text, struct arena *arena)
{
    struct program_loader loader = {.context = &text, .load = find_part};
    struct diagnostics diagnostics;
    struct program *program;
    struct error err = {0};
    struct buf out;
    diagnostics_init(&diagnostics, arena);
    enum code rc = program_load(text, STR("fuzz"), &loader, &diagnostics, &program, &err);
    INVARIANT(rc == OK || rc == E_INVALID);
    INVARIANT((rc == OK) == (program != NULL) && (rc == OK) == (diagnostics.error_count == 0));
    buf_init(&out, 256 * 1024 * 1024);
    for (size_t i = 0; i < diagnostics.count; i++) diagnostic_write(&out, &diagnostics.items[i], text, false);
    if (program && program->net) check_net(program);
    if (program) program_dump(&out, program);
    INVARIANT(buf_ok(&out) && str_utf8(buf_str(&out)));
    struct str said = arena_copy(arena, buf_str(&out));
    INVARIANT(said.ptr);
    buf_release(&out);
    program_release(program);
    return said;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena arena;
    if (size > 64 * 1024) return 0;
    arena_init(&arena, 65536, 1024 * 1024 * 1024);
    struct str once = load(text, &arena);
    INVARIANT(str_eq(once, load(text, &arena)));
    arena_release(&arena);
    return 0;
}
