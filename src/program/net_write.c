// A step of a net as text. Only what differs from the default is written.
#include "program/net.h"

static const char *do_name(enum net_do action)
{
    static const char *const names[] = {"unknown", "continue", "retry", "jump", "break", "fail"};
    return (size_t)action < ARRAY_COUNT(names) ? names[action] : "unknown";
}

struct writer {
    struct buf *out;
    const struct program *program;
    bool places;
};

static void write_ms(struct writer *w, const char *label, int64_t ms)
{
    if (ms == 0) return;
    buf_printf(w->out, " %s=", label);
    buf_int(w->out, ms);
    buf_text(w->out, "ms");
}

static void write_tree(struct writer *w, const char *label, const struct template_tree *tree)
{
    if (!tree) return;
    buf_printf(w->out, " %s=", label);
    json_write(w->out, template_tree_source(tree));
}

static void write_when(struct writer *w, const struct net_when *when)
{
    if (!when->test) return;
    buf_text(w->out, " when ");
    json_write_string(w->out, when->text);
    if (when->event) buf_text(w->out, " (event)");
    if (when->exit) buf_text(w->out, " (exit)");
}

static void write_sets(struct writer *w, const struct net_sets *sets)
{
    for (uint32_t i = 0; i < sets->count; i++) {
        buf_printf(w->out, " set %s.%.*s", sets->items[i].scope == NET_CTX ? "ctx" : "iter",
                   STR_ARG(sets->items[i].path));
        if (sets->items[i].value) {
            buf_byte(w->out, '=');
            json_write(w->out, template_tree_source(sets->items[i].value));
        }
    }
}

static void end_line(struct writer *w, uint32_t line, uint32_t column)
{
    if (w->places && line) buf_printf(w->out, " @%u:%u", line, column);
    buf_byte(w->out, '\n');
}

static void write_rule(struct writer *w, const struct net_task *tasks, const struct net_rule *rule)
{
    buf_printf(w->out, "      %s%s", rule->otherwise ? "else " : "", do_name(rule->action));
    if (rule->action == NET_RETRY) {
        buf_printf(w->out, " %u", rule->attempts);
        write_ms(w, "delay", rule->delay_ms);
        write_tree(w, "attempts", rule->attempts_of);
        write_tree(w, "delay", rule->delay_of);
        if (rule->backoff != BACKOFF_NONE) buf_printf(w->out, " %s", backoff_name(rule->backoff));
    }
    if (rule->action == NET_JUMP) {
        buf_text(w->out, " to ");
        buf_add(w->out, rule->target == PROGRAM_TOP ? STR("the task before") : tasks[rule->target].label);
    }
    write_when(w, &rule->when);
    write_sets(w, &rule->sets);
    end_line(w, rule->line, rule->column);
}

static void write_names(struct writer *w, const char *label, const struct net_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        buf_printf(w->out, "%s%s%.*s", i ? "," : " ", i ? "" : label, STR_ARG(names->items[i]));
}

static void write_task(struct writer *w, const struct net_step *step, const struct net_task *task)
{
    buf_printf(w->out, "    task ");
    json_write_string(w->out, task->label);
    buf_byte(w->out, ' ');
    buf_add(w->out, task->kind);
    write_ms(w, "timeout", task->timeout_ms);
    write_tree(w, "timeout", task->timeout_of);
    if (task->inline_max != 65536) buf_printf(w->out, " inline=%llu", (unsigned long long)task->inline_max);
    static const char *const overflows[] = OVERFLOW_NAMES;
    if (task->overflow) buf_printf(w->out, " on_overflow=%s", overflows[task->overflow]);
    if (task->limit) buf_printf(w->out, " limit=%.*s", STR_ARG(task->limit->name));
    if (task->preview_max != 1024) buf_printf(w->out, " preview=%llu", (unsigned long long)task->preview_max);
    if (task->store) buf_text(w->out, task->store == NET_STORE_OBJECT ? " store=object" : " store=run");
    for (uint32_t i = 0; i < task->select_count; i++)
        buf_printf(w->out, "%s%.*s:%.*s", i ? "," : " select=", STR_ARG(task->selects[i].name),
                   STR_ARG(task->selects[i].path));
    write_names(w, "expects=", &task->expects);
    write_names(w, "returns=", &task->returns);
    if (task->playbook.len) buf_printf(w->out, " playbook=%.*s", STR_ARG(task->playbook));
    if (task->child) buf_printf(w->out, " child=%.*s", STR_ARG(task->child->plan_id));
    if (task->return_step.len) buf_printf(w->out, " return_step=%.*s", STR_ARG(task->return_step));
    if (task->unmatched_fails) buf_text(w->out, " unmatched=fail");
    write_sets(w, &task->sets);
    if (task->with && template_tree_source(task->with)->count) write_tree(w, "with", task->with);
    end_line(w, task->line, task->column);
    for (uint32_t i = 0; i < task->rule_count; i++) write_rule(w, step->tasks, &task->rules[i]);
}

static void write_upstream(struct writer *w, const uint64_t *bits)
{
    if (!bits) return;
    buf_text(w->out, "    waits for");
    for (uint32_t i = 0; i < w->program->step_count; i++)
        if (bits[i / 64] >> (i % 64) & 1) buf_printf(w->out, " %.*s", STR_ARG(w->program->steps[i].id));
    buf_byte(w->out, '\n');
}

void net_step_write(struct buf *out, const struct program *program, uint32_t index, bool places)
{
    struct writer w = {out, program, places};
    const struct net_step *step = &program->net->steps[index];
    for (uint32_t i = 0; i < step->admit_count; i++) {
        buf_text(out, step->admit[i].allow ? "    admit" : "    refuse");
        write_when(&w, &step->admit[i].when);
        buf_byte(out, '\n');
    }
    if (step->args || step->item_args || step->best_effort || step->timeout_ms || step->deadline_ms ||
        step->timeout_of || step->deadline_of || step->sets.count) {
        buf_text(out, "   ");
        write_tree(&w, "args", step->args ? step->args : step->item_args);
        if (step->best_effort) buf_text(out, " best_effort");
        write_ms(&w, "timeout", step->timeout_ms);
        write_ms(&w, "deadline", step->deadline_ms);
        write_tree(&w, "timeout", step->timeout_of);
        write_tree(&w, "deadline", step->deadline_of);
        write_sets(&w, &step->sets);
        buf_byte(out, '\n');
    }
    if (step->has_loop) {
        buf_printf(out, "    loop %.*s", STR_ARG(step->loop.iterator));
        write_tree(&w, "in", step->loop.in);
        if (step->loop.parallel) buf_printf(out, " parallel %u", step->loop.max_in_flight);
        write_tree(&w, "max_in_flight", step->loop.max_of);
        buf_byte(out, '\n');
    }
    for (uint32_t i = 0; i < step->task_count; i++) write_task(&w, step, &step->tasks[i]);
    for (uint32_t i = 0; i < step->arc_count; i++) {
        const struct net_arc *arc = &step->arcs[i];
        buf_printf(out, "    %s %.*s", step->inclusive ? "also" : "next", STR_ARG(program->steps[arc->step].id));
        write_when(&w, &arc->when);
        write_tree(&w, "args", arc->args);
        write_sets(&w, &arc->sets);
        end_line(&w, arc->line, arc->column);
    }
    write_upstream(&w, step->upstream);
}
