// The model of the live tree: every run that was heard of (flows with rows), children below the step that started them.
#include "term/text.h"
#include "term/tree.h"

#include <stdio.h>
#include <string.h>

struct tree *tree_open(struct console *console)
{
    struct tree *tree = ARENA_NEW(&console->arena, struct tree);
    if (!tree) return NULL;
    tree->console = console;
    tree->term = &console->err;
    tree->last = &tree->flows;
    arena_init(&tree->arena, 64 * 1024, (size_t)512 << 20);
    map_init(&tree->index, &tree->arena);
    buf_init(&tree->picture, (size_t)4 << 20);
    buf_init(&tree->work, (size_t)1 << 20);
    return tree;
}

void tree_close(struct tree *tree)
{
    tree_draw(tree, INT64_MAX);
    tree_discard(tree);
}

void tree_discard(struct tree *tree)
{
    buf_release(&tree->picture);
    buf_release(&tree->work);
    arena_release(&tree->arena);
}

struct flow *tree_flow(const struct tree *tree, struct str run)
{
    uint32_t at = map_get(&tree->index, run);
    return at == MAP_NONE ? NULL : tree->by_index[at];
}

static bool fill_rows(struct tree *tree, struct flow *flow, const struct program *program)
{
    flow->rows = ARENA_ARRAY(&tree->arena, program->top_count + 1, struct row);
    if (!flow->rows) return false;
    map_init(&flow->index, &tree->arena);
    for (uint32_t i = 0; i < program->top_count; i++) {
        const struct program_step *step = &program->steps[i];
        struct row *row = &flow->rows[i];
        uint32_t *deps = ARENA_ARRAY(&tree->arena, step->dep_count + 1, uint32_t);
        *row = (struct row){.id = arena_copy(&tree->arena, step->id), .look = LOOK_WAITING, .kind = step->kind};
        if (!row->id.ptr || !deps || !map_put(&flow->index, row->id, i, NULL)) return false;
        for (uint32_t d = 0; d < step->dep_count; d++) deps[d] = step->deps[d];
        row->deps = deps;
        row->dep_count = step->dep_count;
        row->attempt_max = step->retry.max_attempts;
        row->iteration_max = step->max_iterations;
        size_t width = text_width(row->id);
        if (width > flow->id_width) flow->id_width = width < ID_WIDTH_MAX ? width : ID_WIDTH_MAX;
        flow->row_count++;
    }
    return true;
}

// Links a child run to the step that started it.
static void link_parent(struct tree *tree, struct flow *flow, const struct start_facts *start)
{
    flow->parent = start->parent_run.len ? tree_flow(tree, start->parent_run) : NULL;
    if (!flow->parent) return;
    struct str rest;
    flow->parent_row = map_get(&flow->parent->index, str_cut(start->parent_step, '[', &rest));
    if (flow->parent_row == MAP_NONE) flow->parent = NULL;
}

static struct flow *add_flow(struct tree *tree, const struct run *run)
{
    struct flow *flow = ARENA_NEW(&tree->arena, struct flow);
    if (!flow || !ARENA_ROOM(&tree->arena, tree->by_index, tree->flow_count, &tree->flow_capacity)) return NULL;
    flow->run = arena_copy(&tree->arena, run->ids.run);
    flow->name = arena_copy(&tree->arena, run->program->name.len ? run->program->name : run->program->plan_id);
    flow->version = arena_copy(&tree->arena, run->program->plan_version);
    if (!flow->run.ptr || !flow->name.ptr || !flow->version.ptr || !fill_rows(tree, flow, run->program)) return NULL;
    if (!map_put(&tree->index, flow->run, (uint32_t)tree->flow_count, NULL)) return NULL;
    tree->by_index[tree->flow_count++] = flow;
    link_parent(tree, flow, &run->start);
    *tree->last = flow;
    tree->last = &flow->next;
    return flow;
}

static enum look look_of_node(enum step_kind kind, uint8_t state)
{
    switch ((enum node_state)state) {
    case NODE_WAITING:
        return LOOK_WAITING;
    case NODE_DELAYED:
        return LOOK_DELAYED;
    case NODE_RUNNING:
        return kind == STEP_APPROVAL ? LOOK_APPROVAL : LOOK_RUNNING;
    case NODE_HELD:
        return LOOK_HELD;
    case NODE_SUCCESS:
        return LOOK_DONE;
    case NODE_FAILED:
        return LOOK_FAILED;
    case NODE_SKIPPED:
        return LOOK_SKIPPED;
    }
    return LOOK_WAITING;
}

static void sync_row(struct row *row, const struct run *run, uint32_t at)
{
    struct run_attempt attempt = kernel_attempt(run, at);
    row->look = look_at_end(look_of_node(row->kind, kernel_state(run, at)), row->stopped, run->status);
    row->attempt = attempt.logical;
    row->iteration = kernel_iteration(run, at);
    // Of the first attempt, as everywhere: what people wait for is the step.
    if (attempt.logical <= 1 || row->started_ms == 0) row->started_ms = attempt.started_ms;
    row->due_ms = attempt.due_ms;
    uint32_t losses;
    row->rests_ms = row->look == LOOK_RUNNING ? kernel_rests(run, at, &losses) : 0;
    if (!kernel_items(run, at, &row->loop)) row->loop = (struct loop_counts){0};
}

static void sync_flow(struct flow *flow, const struct run *run)
{
    flow->status = run->status;
    flow->started_ms = run->started_ms ? run->started_ms : run->queued_ms;
    flow->ended_ms = run->ended_ms;
    snprintf(flow->substatus, sizeof(flow->substatus), "%s", run_substatus(run));
}

static void sync_rows(struct flow *flow, const struct run *run)
{
    for (uint32_t i = 0; i < flow->row_count; i++) sync_row(&flow->rows[i], run, i);
}

void tree_attach(struct tree *tree, const struct run *run)
{
    struct flow *flow = tree_flow(tree, run->ids.run);
    if (!flow) flow = add_flow(tree, run);
    if (!flow) return;
    sync_flow(flow, run);
    sync_rows(flow, run);
}

static struct row_text *text_of(struct tree *tree, struct row *row)
{
    if (!row->text) row->text = ARENA_NEW(&tree->arena, struct row_text);
    return row->text;
}

static void keep_text(struct tree *tree, char out[TEXT_SIZE], struct str text)
{
    buf_clear(&tree->work);
    text_safe(&tree->work, str_head(text, 4 * TEXT_SIZE));
    size_t len = str_head(buf_str(&tree->work), TEXT_SIZE - 1).len;
    memcpy(out, tree->work.ptr, len);
    out[len] = '\0';
}

static void keep_fault(struct tree *tree, char out[TEXT_SIZE], const struct fault *fault)
{
    char text[4 * TEXT_SIZE];
    struct str why = str_last_line(fault->detail.len ? fault->detail : fault->message);
    size_t len = why.len < 2 * TEXT_SIZE ? why.len : 2 * TEXT_SIZE;
    if (fault->has_exit)
        snprintf(text, sizeof(text), "exit %d%s%.*s", fault->exit_code, fault->detail.len ? ": " : "",
                 fault->detail.len ? (int)len : 0, why.ptr ? why.ptr : "");
    else
        snprintf(text, sizeof(text), "%.*s%s%.*s", (int)(fault->code.len < 64 ? fault->code.len : 64), fault->code.ptr,
                 len ? ": " : "", (int)len, why.ptr ? why.ptr : "");
    keep_text(tree, out, str_from(text));
}

static void note_moment(struct tree *tree, struct row *row, const struct moment *m)
{
    struct row_text *text = text_of(tree, row);
    if (!text) return;
    if (m->fault.code.len > 0) {
        keep_fault(tree, text->note, &m->fault);
        if (!text->first_fault[0]) memcpy(text->first_fault, text->note, sizeof(text->first_fault));
    } else if (m->kind == MOMENT_STEP_SKIPPED) {
        keep_text(tree, text->note, m->detail.len ? m->detail : m->reason);
    } else if (m->kind == MOMENT_STEP_COMPLETED) {
        char words[TEXT_SIZE] = "";
        if (m->actor.len)
            snprintf(words, sizeof(words), "by %.*s", (int)(m->actor.len < 64 ? m->actor.len : 64), m->actor.ptr);
        else if (m->run_ref.len)
            snprintf(words, sizeof(words), "reused from %.*s", (int)(m->run_ref.len < 128 ? m->run_ref.len : 128),
                     m->run_ref.ptr);
        else if (m->truncated)
            snprintf(words, sizeof(words), OUTPUT_CUT,
                     (unsigned long long)output_kept(&m->value, m->has_blob, m->blob_size));
        keep_text(tree, text->note, str_from(words));
    }
}

void tree_event(struct tree *tree, const struct engine_event *event)
{
    struct flow *flow = tree_flow(tree, event->run);
    if (!flow) {
        tree_attach(tree, event->state);
        flow = tree_flow(tree, event->run);
    }
    if (!flow) return;
    const struct moment *m = event->moment;
    struct str inside;
    uint32_t at = m->step.len ? map_get(&flow->index, str_cut(m->step, '[', &inside)) : MAP_NONE;
    if (at != MAP_NONE && inside.len == 0) flow->rows[at].stopped = str_is(m->fault.code, "CANCELLED");
    sync_flow(flow, event->state);
    if (run_status_terminal(flow->status)) sync_rows(flow, event->state);
    if (at == MAP_NONE) return;
    struct row *row = &flow->rows[at];
    sync_row(row, event->state, at);
    if (inside.len > 0) {
        struct row_text *text = text_of(tree, row);
        if (text && m->fault.code.len == 0) keep_text(tree, text->output, m->step);
        return;
    }
    if (row->look == LOOK_DONE || row->look == LOOK_FAILED || row->look == LOOK_SKIPPED || row->look == LOOK_HELD ||
        row->look == LOOK_CANCELLED)
        row->ended_ms = m->at_ms;
    // The end of an attempt says how long the work took; what lies before that is a wait for a place.
    bool worked = m->kind == MOMENT_STEP_COMPLETED || m->kind == MOMENT_STEP_FAILED || m->kind == MOMENT_ATTEMPT_FAILED;
    int64_t began = m->at_ms - m->duration_ms;
    if (worked && m->logical <= 1 && row->began_ms == 0 && began > row->started_ms) row->began_ms = began;
    note_moment(tree, row, m);
}

void tree_place(void *context, const struct tool_place *place)
{
    struct tree *tree = context;
    struct flow *flow = tree_flow(tree, place->run);
    uint32_t at = flow ? map_get(&flow->index, place->step) : MAP_NONE;
    struct row *row = at == MAP_NONE ? NULL : &flow->rows[at];
    if (!row || (row->look != LOOK_RUNNING && row->look != LOOK_QUEUED)) return;
    if (row->look == LOOK_QUEUED && !place->waits && place->logical <= 1) row->began_ms = os_now().wall_ms;
    row->look = place->waits ? LOOK_QUEUED : LOOK_RUNNING;
    struct row_text *text = place->waits && place->limit.len > 0 ? text_of(tree, row) : NULL;
    row->limited = text != NULL;
    if (text) keep_text(tree, text->note, place->limit);
}

void tree_output(struct tree *tree, struct str run, struct str step, struct str line)
{
    struct str rest;
    struct flow *flow = tree_flow(tree, run);
    uint32_t at = flow ? map_get(&flow->index, str_cut(step, '[', &rest)) : MAP_NONE;
    struct row_text *text = at == MAP_NONE ? NULL : text_of(tree, &flow->rows[at]);
    if (text && str_trim(line).len > 0) keep_text(tree, text->output, str_trim(line));
}
