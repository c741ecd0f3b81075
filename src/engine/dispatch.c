// Effects, carried out once the moments that ordered them are durable (E1).
#include "engine/permits.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

// ---- tickets: attempts that are with a tool
struct ticket *ticket_find(struct engine *engine, uint64_t id)
{
    size_t index = (size_t)(id & UINT32_MAX);
    if (index >= engine->ticket_count) return NULL;
    struct ticket *ticket = &engine->tickets[index];
    return ticket->generation == (uint32_t)(id >> 32) ? ticket : NULL;
}

static uint64_t ticket_open(struct engine *engine, struct resident *resident, const struct effect *effect,
                            struct tools *with)
{
    uint32_t index = engine->free_ticket;
    if (index != UINT32_MAX) {
        engine->free_ticket = engine->tickets[index].next_free;
    } else {
        if (!LIST_ROOM(engine->tickets, engine->ticket_count, &engine->ticket_capacity)) return 0;
        index = (uint32_t)engine->ticket_count++;
        engine->tickets[index] = (struct ticket){0};
    }
    struct ticket *ticket = &engine->tickets[index];
    uint32_t generation = ticket->generation + 1;
    INVARIANT(!ticket->resident && effect->kind == EFFECT_EXECUTE);
    *ticket = (struct ticket){.resident = resident,
                              .step = effect->step,
                              .logical = effect->logical,
                              .engine = effect->engine,
                              .generation = generation,
                              .with = with};
    resident->tickets++;
    engine->live_tickets++;
    return ((uint64_t)generation << 32) | index;
}

void ticket_close(struct engine *engine, uint64_t id)
{
    struct ticket *ticket = ticket_find(engine, id);
    if (!ticket) return;
    INVARIANT(engine->live_tickets > 0);
    if (ticket->resident) INVARIANT(ticket->resident->tickets > 0);
    if (ticket->resident) ticket->resident->tickets--;
    engine->live_tickets--;
    engine->stopping_tickets -= ticket->stopping;
    ticket->stopping = false;
    ticket->resident = NULL;
    ticket->generation++;
    ticket->next_free = engine->free_ticket;
    engine->free_ticket = (uint32_t)(id & UINT32_MAX);
}

void ticket_cancel(struct engine *engine, size_t index, int64_t grace_ms)
{
    struct ticket *ticket = &engine->tickets[index];
    struct tools *tools = ticket->with;
    INVARIANT(index < engine->ticket_count);
    if (tools && !ticket->stopping) engine->stopping_tickets++, ticket->stopping = true;
    if (tools) tools->ops->cancel(tools, ((uint64_t)ticket->generation << 32) | index, grace_ms);
}

// ---- holds: attempts that are outside, or about to be
struct run_hold whose_of(const struct effect *effect)
{
    return (struct run_hold){
        .lane = effect->step, .logical = effect->logical, .engine = effect->engine, .member = effect->member};
}

static struct run_hold *hold_of(const struct resident *resident, const struct effect *effect)
{
    struct run_hold whose = whose_of(effect);
    return hold_find(&resident->holds, &whose);
}

static void drop_hold(struct resident *resident, const struct effect *effect)
{
    struct run_hold whose = whose_of(effect);
    hold_drop(&resident->holds, &whose);
}

static bool is_result_of(const struct queued *queued, const struct resident *resident, const struct run_hold *hold)
{
    const struct input *input = &queued->input;
    const struct effect *ordered = &queued->ordered;
    if (queued->resident != resident) return false;
    if (ordered->kind)
        return ordered->step == hold->lane && ordered->logical == hold->logical && ordered->engine == hold->engine;
    return input->kind == INPUT_RESULT && input->step == hold->lane && input->logical == hold->logical &&
           input->engine == hold->engine;
}

static bool is_ticket_of(const struct ticket *ticket, const struct resident *resident, const struct run_hold *hold)
{
    return ticket->resident == resident && ticket->step == hold->lane && ticket->logical == hold->logical &&
           ticket->engine == hold->engine;
}

static bool is_outside(const struct engine *engine, const struct resident *resident, const struct run_hold *hold)
{
    for (size_t i = 0; i < engine->ticket_count; i++)
        if (is_ticket_of(&engine->tickets[i], resident, hold)) return true;
    const struct queue *q = &engine->queue;
    for (size_t i = 0; i < q->count; i++)
        if (is_result_of(&q->items[(q->head + i) & (q->capacity - 1)], resident, hold)) return true;
    const struct aside *at = NULL;
    for (const struct queued *queued = aside_next(engine, &at); queued; queued = aside_next(engine, &at))
        if (is_result_of(queued, resident, hold)) return true;
    return permit_waits(engine, resident, hold);
}

// H1, between two turns: what is held is with a tool, or its result is on its way; and what is with a tool is held. Children are runs of
// their own, whose ends their logs tell.
void holds_verify(const struct engine *engine, const struct resident *resident)
{
    const struct run_holds *holds = &resident->holds;
    for (uint32_t i = 0; i < holds->capacity; i++) {
        if (!holds->items[i].state) continue;
        INVARIANT(holds->items[i].state == HOLD_OUT && holds->items[i].stop != STOP_ORDERED);
        // In this order: where another owner has gone on with the log, the lane of a result on its way may be no more.
        INVARIANT(is_outside(engine, resident, &holds->items[i]) ||
                  kernel_runs_child(resident->run, holds->items[i].lane));
    }
    for (size_t i = 0; i < engine->ticket_count; i++) {
        const struct ticket *ticket = &engine->tickets[i];
        if (ticket->resident != resident || ticket->step >= run_step_count(resident->run)) continue;
        struct run_attempt now = kernel_attempt(resident->run, ticket->step);
        bool flies = kernel_state(resident->run, ticket->step) == NODE_RUNNING && now.logical == ticket->logical &&
                     now.engine == ticket->engine;
        struct run_hold held = hold_now(resident->run, ticket->step, 0);
        INVARIANT(!flies || hold_find(holds, &held));
    }
}

// Where the attempt's output is kept; empty when nowhere.
static struct str log_path(struct engine *engine, const struct run_ids *ids, struct str step,
                           const struct effect *effect)
{
    struct str dir, path = {0};
    char name[TOOL_LOG_NAME_SIZE];
    struct arena *arena = &engine->turn;
    if (store_logs_dir(engine->store, ids, arena, &dir) || dir.len == 0) return path;
    tool_log_name(step, effect->logical, effect->engine, name);
    size_t size = dir.len + strlen(name) + 2;
    char *text = arena_alloc(arena, size);
    if (!text) return path;
    snprintf(text, size, "%.*s/%s", STR_ARG(dir), name);
    return str_from(text);
}

// The files that an attempt may leave: those that its step declares, and behind them the one for an output that is too long.
struct files_of {
    const struct artifact_decl *items;
    size_t count;
    enum overflow overflow;
};

static bool files_of(struct engine *engine, const struct run *run, const struct effect *effect, struct str path,
                     struct files_of *out)
{
    const struct program_step *ps = &run->program->steps[kernel_place(run, effect->step)];
    bool lane = effect->step >= run->program->step_count;
    char name[TOOL_LOG_NAME_SIZE];
    *out = (struct files_of){ps->artifacts, ps->artifact_count,
                             lane ? kernel_task_of(run, effect->step)->overflow : ps->overflow};
    if (out->overflow != OVERFLOW_ARTIFACT) return true;
    struct artifact_decl *items = ARENA_ARRAY(&engine->turn, out->count + 1, struct artifact_decl);
    tool_log_name(path, effect->logical, effect->engine, name);
    for (char *at = name; *at; at++)
        if (*at == '%') *at = '='; // in a URI, that would stand for what it escapes
    struct str file = arena_format(&engine->turn, "outputs/%.*s.txt", (int)(strlen(name) - strlen(".log")), name);
    if (!items || !file.ptr) return false;
    if (out->count > 0) memcpy(items, out->items, out->count * sizeof(*items));
    items[out->count++] = (struct artifact_decl){.path = file, .kind = STR("output")};
    out->items = items;
    return true;
}

// What every attempt tells its executor, whatever that is.
static struct tool_request request_of(struct engine *engine, const struct resident *resident,
                                      const struct effect *effect, const struct order *order,
                                      const struct execution *execution, const struct files_of *files)
{
    const struct run *run = resident->run;
    return (struct tool_request){.ticket = execution->ticket,
                                 .tenant = run->ids.tenant,
                                 .project = run->ids.project,
                                 .environment = run->ids.environment,
                                 .run = run->ids.run,
                                 .form = execution->form,
                                 .kind = execution->kind,
                                 .input = order->input,
                                 .artifacts_dir = run_artifacts_dir(run),
                                 .artifacts = files->items,
                                 .artifact_count = files->count,
                                 .overflow = files->overflow,
                                 .epoch = run_log_epoch(resident->log),
                                 .step = order->path,
                                 .log = log_path(engine, &run->ids, order->path, effect),
                                 .log_max = engine->options.limits.log_max,
                                 .pool = execution->pool,
                                 .logical = effect->logical,
                                 .engine = effect->engine,
                                 .timeout_ms = order->timeout_ms};
}

static void make_artifacts_dir(const struct run *run)
{
    struct error err = {0};
    struct str dir = run_artifacts_dir(run);
    if (dir.len > 0 && os_make_dirs(dir.ptr, &err) != OK)
        os_log(LOG_WARN, "no artifacts directory why=\"%s\"", err.message);
}

// The thread that delivers the result looks for them. False: out of memory, and the ticket is closed.
static bool expect_files(struct engine *engine, const struct run *run, const struct files_of *of, uint64_t ticket)
{
    if (of->count == 0) return true;
    const struct tool_confinement *cage = engine->options.confinement;
    struct declared_files *files =
        declared_files_new(ticket, run_artifacts_dir(run), cage && cage->level != TOOL_LEVEL_NONE, of->items, of->count);
    if (files) {
        files->spill = of->overflow == OVERFLOW_ARTIFACT;
        mailbox_expect(&engine->mailbox, files);
    } else {
        ticket_close(engine, ticket);
    }
    return files != NULL;
}

static struct fault spawn_fault(const struct error *why)
{
    return (struct fault){.code = STR("SPAWN_FAILED"),
                          .message = str_from(why->message),
                          .category = STR("infrastructure"),
                          .retryable = true};
}

// Hands the attempt to its executor.
static enum code start(struct engine *engine, struct resident *resident, const struct effect *effect,
                       const struct order *order, struct execution *execution, struct error *err)
{
    const struct run *run = resident->run;
    const struct program_step *ps = &run->program->steps[kernel_place(run, effect->step)];
    bool process = execution->form == EXECUTOR_PROCESS;
    struct error local = {0};
    struct files_of files;
    if (!files_of(engine, run, effect, order->path, &files)) return error_nomem(err);
    execution->ticket = ticket_open(engine, resident, effect, execution->with);
    if (execution->ticket == 0) return error_nomem(err);
    if (process || files.count > 0) make_artifacts_dir(run);
    if (!expect_files(engine, run, &files, execution->ticket)) return error_nomem(err);
    struct tool_request request = request_of(engine, resident, effect, order, execution, &files);
    if (process) {
        request.argv = order->argv;
        request.argc = order->argc;
        request.env = order->env;
        request.env_count = order->env_count;
        request.secrets = ps->secrets;
        request.secret_count = ps->secret_count;
        request.home = run->start.work_dir;
        request.cwd = order->cwd;
        request.output_max = engine->options.limits.output_max;
    } else {
        request.function = execution->kind;
    }
    if (execution->with->ops->start(execution->with, &request, &local) == OK) return OK;
    mailbox_forget(&engine->mailbox, execution->ticket);
    ticket_close(engine, execution->ticket);
    return input_fault(engine, resident, effect->step, effect->logical, effect->engine, spawn_fault(&local), err);
}

// Cut off from the store: another engine may have the run by now. When none does, it is looked at again in a while.
static enum code put_off_start(struct engine *engine, struct resident *resident, const struct effect *effect,
                               struct error *err)
{
    enum { AGAIN_MS = 500 };
    struct effect later = {
        .kind = EFFECT_TIMER, .step = effect->step, .timer = TIMER_LOOK, .lasts_ms = AGAIN_MS};
    later.due_ms = engine->now.wall_ms + AGAIN_MS;
    drop_hold(resident, effect);
    return set_timer(engine, resident, &later, err);
}

// Routes may have changed since the run was taken up, and a person may have sent the step elsewhere.
static enum code no_executor(struct engine *engine, struct resident *resident, const struct effect *effect,
                             const struct execution *execution, struct error *err)
{
    struct error why = {0};
    (void)error_set(&why, E_UNSUPPORTED, "nobody here executes \"%.*s\", and no route sends it to workers",
                    STR_ARG(execution->kind));
    return input_fault(engine, resident, effect->step, effect->logical, effect->engine, spawn_fault(&why), err);
}

static enum code execute(struct engine *engine, struct resident *resident, const struct effect *effect,
                         const struct order *order, struct error *err)
{
    const struct run *run = resident->run;
    struct execution execution = {.pool = order->pool};
    execution.form = order_form(run, effect->step, &execution.kind);
    bool outside = execution.form != EXECUTOR_NONE;
    INVARIANT(resident->begun && !resident->idle);
    if (outside && engine->holding) {
        drop_hold(resident, effect);
        return OK;
    }
    if (outside && engine->options.may_start && !engine->options.may_start(engine->options.may_start_context))
        return put_off_start(engine, resident, effect, err);
    if (order->failed)
        return input_fault(engine, resident, effect->step, effect->logical, effect->engine, order->fault, err);
    struct run_hold whose = whose_of(effect);
    if (!outside) return input_given(engine, resident, &whose, &order->answer.value, err);
    bool goes = true;
    enum code rc = order->limit ? permit_ask(engine, resident, effect, order, &goes, err) : OK;
    if (rc || !goes) return rc;
    rc = execution_open(engine, &run->ids, &execution, err);
    if (rc == E_UNSUPPORTED) return no_executor(engine, resident, effect, &execution, err);
    return rc ? rc : start(engine, resident, effect, order, &execution, err);
}

static void cancel_attempt(struct engine *engine, struct resident *resident, const struct effect *effect)
{
    for (size_t i = 0; resident->tickets > 0 && i < engine->ticket_count; i++) {
        const struct ticket *ticket = &engine->tickets[i];
        if (ticket->resident != resident || ticket->step != effect->step) continue;
        ticket_cancel(engine, i, effect->grace_ms);
    }
    permits_cancel(engine, resident, effect->step);
}

// An order whose hold is gone was overtaken within its batch: what the lane does now was ordered by what came later.
bool effect_is_stale(const struct resident *resident, const struct effect *effect)
{
    return hold_of(resident, effect) == NULL;
}

static const struct fault cancelled_fault = {.code = STR_INIT("CANCELLED"),
                                             .message = STR_INIT("cancelled before it was started")};

static enum code hand_out(struct engine *engine, struct resident *resident, const struct effect *effect,
                          const struct order *order, struct error *err)
{
    struct run_hold *hold = hold_of(resident, effect);
    if (!hold) return OK;
    // E1: what is out already is not handed out again.
    INVARIANT(order && (hold->state == HOLD_ORDERED || hold->stop == STOP_ASKED));
    hold->state = HOLD_OUT;
    if (hold->stop == STOP_ASKED) // while it was in the queue
        return input_fault(engine, resident, effect->step, effect->logical, effect->engine, cancelled_fault, err);
    enum code rc = order->later                     ? order_later(engine, resident, effect, err)
                   : effect->kind == EFFECT_EXECUTE ? execute(engine, resident, effect, order, err)
                                                    : subrun_start(engine, resident, effect, order, err);
    hold = hold_of(resident, effect);
    if (rc && hold) hold->state = HOLD_ORDERED; // owed
    return rc;
}

static enum code stop(struct engine *engine, struct resident *resident, const struct effect *effect, struct error *err)
{
    enum code rc = OK;
    if (effect->kind == EFFECT_CANCEL)
        cancel_attempt(engine, resident, effect);
    else
        rc = subrun_cancel(engine, resident, effect, err);
    struct run_hold *hold = hold_of(resident, effect);
    if (rc || !hold) return rc;
    hold->state = HOLD_OUT;
    if (hold->stop == STOP_ORDERED) hold->stop = STOP_ASKED;
    return OK;
}

// What is in flight stays so: its holds are of this engine. What waits for the next turn is of the next segment.
static enum code continue_as_new(struct engine *engine, struct resident *resident, struct error *err)
{
    size_t before = engine->queue.count;
    enum code rc = need_recover(engine, resident, err);
    return rc || engine->queue.count == before ? rc : queue_last_first(engine, 1, err);
}

enum code dispatch(struct engine *engine, struct resident *resident, const struct effect *effect,
                   const struct order *order, struct error *err)
{
    switch (effect->kind) {
    case EFFECT_EXECUTE:
    case EFFECT_SUBRUN:
        return hand_out(engine, resident, effect, order, err);
    case EFFECT_TIMER:
        return set_timer(engine, resident, effect, err);
    case EFFECT_CANCEL:
    case EFFECT_SUBRUN_CANCEL:
        return stop(engine, resident, effect, err);
    case EFFECT_ENDED: {
        enum code rc = subrun_ended(engine, resident, err);
        resident_gone(engine, resident);
        return rc;
    }
    case EFFECT_CONTINUE_AS_NEW:
        return continue_as_new(engine, resident, err);
    case EFFECT_RETRY_RUN:
    case EFFECT_DECISION:
        return OK; // turn.c
    }
    return OK;
}
