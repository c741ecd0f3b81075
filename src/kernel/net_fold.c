// Moments of a playbook to state. Decides nothing; says what can be decided (ready_push).
#include "json/make.h"
#include "kernel/net_inside.h"

static enum code no_memory(const struct run *run, struct error *err)
{
    return error_set(err, E_NOMEM, "run %.*s: out of memory", STR_ARG(run->ids.run));
}

static enum code impossible(const struct run *run, const struct moment *m, struct error *err)
{
    return error_set(
        err, E_CORRUPT,
        "run %.*s: %s of \"%.*s\" (visit %u, iteration %u, task \"%.*s\") cannot follow what is in the log",
        STR_ARG(run->ids.run), moment_name(m->kind), STR_ARG(m->step), m->visit, m->iteration, STR_ARG(m->task));
}

// ctx is made anew in every patch; what it was before is thrown away once that is the larger part.
static enum code fold_ctx(struct run *run, const struct json *patches, struct error *err)
{
    struct net_state *net = run->net;
    if (!json_is(patches, JSON_OBJECT) || patches->count == 0) return OK;
    struct json patched, kept;
    enum code rc = net_patched(&net->ctx_memory, &net->ctx, patches, &patched, err);
    if (rc) return rc;
    if (!json_copy(&net->ctx_memory, &patched, &kept)) return no_memory(run, err);
    net->ctx = kept;
    if (net->ctx_memory.size < 4 * net->ctx_floor + 65536) return OK;
    struct arena fresh SCOPED(arena_release) = arena_of(net->ctx_memory.block_size, net->ctx_memory.limit);
    if (!json_copy(&fresh, &net->ctx, &kept)) return no_memory(run, err);
    arena_release(&net->ctx_memory);
    net->ctx_memory = arena_take(&fresh);
    net->ctx_floor = net->ctx_memory.size;
    net->ctx = kept;
    return OK;
}

static enum code fold_value(struct arena *arena, const struct moment *m, struct net_value *out, struct error *err)
{
    *out = (struct net_value){.blob = m->blob, .has_blob = m->has_blob, .store = m->store, .size = m->blob_size};
    bool ok = m->extracted.type == 0 || json_copy(arena, &m->extracted, &out->extracted);
    if (ok && !m->has_blob && m->value.type != 0) ok = json_copy(arena, &m->value, &out->value);
    return ok ? OK : error_nomem(err);
}

static bool copy_value(struct arena *arena, const struct net_value *from, struct net_value *out)
{
    *out = *from;
    return json_keep(arena, &out->value) && json_keep(arena, &out->extracted);
}

static enum code keep_fault(struct arena *arena, const struct fault *from, struct fault *out, struct error *err)
{
    *out = *from;
    out->detail = (struct str){0};
    return fault_keep(arena, out) ? OK : error_nomem(err);
}

// ---- tokens and visits
static enum code token_arrives(struct run *run, uint32_t place, const struct json *args, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (!p->token) {
        arena_reset(&p->token_memory);
        p->token_args = json_object();
        run->net->tokens++;
    }
    p->token = true;
    run->net->token_at[place / 64] |= UINT64_C(1) << (place % 64);
    ready_push(run, place);
    if (!args || args->type != JSON_OBJECT || args->count == 0) return OK;
    struct json merged = json_object(), copy; // the later token's arguments win
    if (!json_copy(&p->token_memory, args, &copy)) return no_memory(run, err);
    for (uint32_t i = 0; i < p->token_args.count; i++)
        if (!json_get(&copy, p->token_args.members[i].key))
            json_set(&p->token_memory, &merged, p->token_args.members[i].key, p->token_args.members[i].value);
    json_fill(&p->token_memory, &merged, &copy);
    if (!json_ok(&merged)) return no_memory(run, err);
    p->token_args = merged;
    return OK;
}

static void token_goes(struct run *run, struct net_place *p)
{
    INVARIANT(!p->token || run->net->tokens > 0);
    size_t place = (size_t)(p - run->net->places);
    if (p->token) run->net->tokens--;
    p->token = false;
    run->net->token_at[place / 64] &= ~(UINT64_C(1) << (place % 64));
}

// Those that wait for others look again whenever one has ended.
static void wake_waiting(struct run *run)
{
    for (uint32_t word = 0; run->net->tokens > 0 && word <= run->program->step_count / 64; word++) {
        for (uint64_t left = run->net->token_at[word]; left; left &= left - 1)
            ready_push(run, word * 64 + (uint32_t)__builtin_ctzll(left));
    }
}

// Nothing is left to do: the final step is, once, whatever came out.
static enum code come_to_final(struct run *run, struct error *err)
{
    const struct net_state *net = run->net;
    uint32_t final = net_of_run(run)->final;
    if (final == PROGRAM_TOP || net->live + net->tokens > 0 || net->places[final].visit > 0) return OK;
    return token_arrives(run, final, NULL, err);
}

// A step counts once, however often it was visited: as its last visit that was let in has ended, or as skipped when none was.
static void count_place(struct run *run, struct net_place *p, uint8_t as)
{
    run->counts.completed -= p->counted == NODE_SUCCESS;
    run->counts.failed -= p->counted == NODE_FAILED;
    run->counts.skipped -= p->counted == NODE_SKIPPED;
    p->counted = as;
    run->counts.completed += as == NODE_SUCCESS;
    run->counts.failed += as == NODE_FAILED;
    run->counts.skipped += as == NODE_SKIPPED;
}

static enum code fold_admitted(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (!p->token || p->phase != PLACE_IDLE || m->visit != p->visit + 1) return impossible(run, m, err);
    const struct json *allow = json_key(&m->value, "allow");
    if (json_true(allow)) return OK;
    token_goes(run, p);
    p->visit = m->visit;
    p->skipped = true;
    if (p->counted == 0) count_place(run, p, NODE_SKIPPED);
    wake_waiting(run);
    return come_to_final(run, err);
}

static enum code fold_scheduled(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (!p->token || p->phase != PLACE_IDLE || m->visit != p->visit + 1) return impossible(run, m, err);
    token_goes(run, p);
    count_place(run, p, 0); // it counts again when it has ended
    arena_reset(&p->memory);
    p->skipped = p->failed = p->looped = p->loop_over = p->overdue = false;
    p->phase = PLACE_PENDING;
    p->visit = m->visit;
    p->lane = NO_LANE;
    p->loop = (struct container){0};
    p->due_ms = 0;
    p->args = p->given = json_object();
    p->written = p->outcome = (struct json){0};
    run->net->live++;
    ready_push(run, place);
    if (p->token_args.count > 0 && !json_copy(&p->memory, &p->token_args, &p->given)) return no_memory(run, err);
    if (m->value.type != 0 && !json_copy(&p->memory, &m->value, &p->args)) return no_memory(run, err);
    return OK;
}

static enum code fold_started(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    const struct net_step *ns = &net_of_run(run)->steps[place];
    if (p->phase != PLACE_PENDING || m->visit != p->visit) return impossible(run, m, err);
    p->phase = PLACE_RUNNING;
    p->started_ms = m->at_ms;
    p->due_ms = m->due_ms;
    ready_push(run, place);
    if (ns->has_loop) return OK;
    p->lane = lane_take(run, place, 0);
    if (p->lane == NO_LANE) return no_memory(run, err);
    walk_at(run, p->lane)->started_ms = m->at_ms;
    ready_push(run, p->lane);
    return OK;
}

static enum code fold_overdue(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (p->phase != PLACE_RUNNING || m->visit != p->visit || p->overdue) return impossible(run, m, err);
    p->overdue = true;
    return OK;
}

// What the task gave that failed the visit: arcs, and steps they lead to, read its answer.
static bool keep_outcome(struct net_place *p, const struct walk *lane)
{
    const struct json *given = lane->failed && lane->last > 0 ? &lane->results[lane->last - 1].value : NULL;
    return !json_is(given, JSON_OBJECT) || json_copy(&p->memory, given, &p->outcome);
}

// What each task of a pipeline gave stays readable, as `step.results.task`.
static bool keep_tasks(struct net_place *p, const struct walk *lane, uint32_t count)
{
    p->tasks = count > 1 ? ARENA_ARRAY(&p->kept, count, struct net_value) : NULL;
    for (uint32_t i = 0; p->tasks && i < count; i++)
        if (!copy_value(&p->kept, &lane->results[i], &p->tasks[i])) return false;
    return p->tasks || count <= 1;
}

static enum code fold_gave(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (p->failed) {
        if (p->lane != NO_LANE && !keep_outcome(p, walk_at(run, p->lane))) return no_memory(run, err);
        enum code rc = keep_fault(&p->memory, &m->fault, &p->fault, err);
        return rc ? rc : keep_root_cause(run, m->step, &m->fault, err);
    }
    if (p->looped) { // its results become what it gave
        struct arena before = p->kept;
        p->kept = p->memory;
        p->memory = before;
        arena_reset(&p->memory);
        p->value = (struct net_value){0};
        return OK;
    }
    arena_reset(&p->kept);
    p->tasks = NULL;
    uint32_t count = net_of_run(run)->steps[place].task_count;
    if (p->lane != NO_LANE && !keep_tasks(p, walk_at(run, p->lane), count)) return no_memory(run, err);
    return fold_value(&p->kept, m, &p->value, err);
}

static enum code fold_ended(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_state *net = run->net;
    struct net_place *p = &net->places[place];
    if (p->phase != PLACE_RUNNING || m->visit != p->visit || container_open(&p->loop) > 0) return impossible(run, m, err);
    p->failed = m->kind == MOMENT_STEP_FAILED;
    enum code rc = fold_gave(run, m, place, err);
    if (p->lane != NO_LANE) lane_give(run, p->lane);
    p->lane = NO_LANE;
    p->phase = PLACE_ENDED;
    if (net_of_run(run)->steps[place].task_count > 0) net->last = place; // one without tasks gives nothing of its own
    count_place(run, p, p->failed ? NODE_FAILED : NODE_SUCCESS);
    run->stopped += p->failed && run->cancelling && str_is(m->fault.code, FAULT_CANCELLED);
    ready_push(run, place);
    return rc;
}

// ---- loops
static enum code fold_loop(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (p->phase != PLACE_RUNNING || p->looped || m->visit != p->visit) return impossible(run, m, err);
    p->looped = true;
    ready_push(run, place);
    bool made = container_make(&p->loop, m->counts.total, &m->value, &p->memory);
    p->loop.lanes = made ? ARENA_ARRAY(&p->memory, (size_t)p->loop.total + 1, uint32_t) : NULL;
    for (uint32_t i = 0; p->loop.lanes && i < p->loop.total; i++) p->loop.lanes[i] = NO_LANE;
    return p->loop.lanes ? OK : no_memory(run, err);
}

static enum code fold_iteration(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    if (!p->looped || p->phase != PLACE_RUNNING || m->visit != p->visit || m->iteration != p->loop.begun + 1 ||
        m->iteration > p->loop.total)
        return impossible(run, m, err);
    uint32_t lane = lane_take(run, place, m->iteration);
    if (lane == NO_LANE) return no_memory(run, err);
    walk_at(run, lane)->started_ms = m->at_ms;
    p->loop.lanes[p->loop.begun++] = lane;
    ready_push(run, lane);
    ready_push(run, place);
    return OK;
}

static enum code fold_iteration_over(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_place *p = &run->net->places[place];
    uint32_t index = lane_of(run, m, place);
    if (index == NO_LANE || m->iteration == 0) return impossible(run, m, err);
    const struct walk *lane = walk_at(run, index);
    bool failed = m->kind == MOMENT_ITERATION_FAILED;
    INVARIANT(lane->iteration == m->iteration && lane->place == place);
    struct net_value *to = &p->loop.results[m->iteration - 1];
    if (!failed && lane->last > 0 && !copy_value(&p->memory, &lane->results[lane->last - 1], to))
        return no_memory(run, err);
    p->loop.done += !failed;
    p->loop.failures += failed;
    if (failed && p->loop.failures == 1) {
        enum code rc = keep_fault(&p->memory, &m->fault, &p->fault, err);
        if (rc) return rc;
    }
    p->loop.lanes[m->iteration - 1] = NO_LANE;
    lane_give(run, index);
    ready_push(run, place);
    return OK;
}

// ---- tasks
static enum code fold_task(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct walk *lane = walk_at(run, index);
    const struct net_step *ns = &net_of_run(run)->steps[lane->place];
    uint32_t task = 0;
    while (task < ns->task_count && !str_eq(ns->tasks[task].label, m->task)) task++;
    if (lane_phase(run, index) != LANE_READY || task == ns->task_count || m->task_run != lane->runs[task] + 1)
        return impossible(run, m, err);
    lane->pc = task;
    lane->runs[task] = m->task_run;
    lane->attempt = 0;
    lane->action = 0;
    lane->task_ms = m->at_ms;
    return OK;
}

static enum code fold_attempt(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct walk *lane = walk_at(run, index);
    enum lane_phase phase = lane_phase(run, index);
    bool may = phase == LANE_READY || phase == LANE_DELAYED;
    if (!may || m->logical != lane->attempt + 1) return impossible(run, m, err);
    lane_fold_start(run, index, ++run->net->serial, m);
    INVARIANT(run->net->serial > 0);
    lane->attempt = m->logical;
    return OK;
}

static enum code fold_answer(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct walk *lane = walk_at(run, index);
    if (lane_phase(run, index) != LANE_FLIGHT || m->logical != lane->attempt) return impossible(run, m, err);
    enter_state(run, lane_ref(run, index), NODE_WAITING);
    return OK;
}

static const struct {
    const char *word;
    enum net_do action;
} actions[] = {
    {"continue", NET_CONTINUE}, {"retry", NET_RETRY}, {"jump", NET_JUMP}, {"break", NET_BREAK}, {"fail", NET_FAIL}};

static enum code fold_decision(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct walk *lane = walk_at(run, index);
    const struct net_step *ns = &net_of_run(run)->steps[lane->place];
    if (lane_phase(run, index) != LANE_ANSWERED) return impossible(run, m, err);
    const struct json *action = json_key(&m->value, "action");
    struct str word = json_text(json_key(action, "do"));
    for (size_t i = 0; i < ARRAY_COUNT(actions); i++)
        if (str_is(word, actions[i].word)) lane->action = (uint8_t)actions[i].action;
    if (lane->action == 0) return impossible(run, m, err);
    struct str to = json_text(json_key(action, "to"));
    for (lane->target = 0; lane->target < ns->task_count && !str_eq(ns->tasks[lane->target].label, to);) lane->target++;
    if (lane->action == NET_RETRY) {
        enter_delay(run, lane_ref(run, index), true, m, m->due_ms);
        lane->action = 0;
    }
    const struct json *set = json_key(&m->value, "set");
    const struct json *ctx = json_key(set, "ctx");
    struct net_place *p = &run->net->places[lane->place];
    if (lane->iteration > 0 && ns->loop.parallel && json_is(ctx, JSON_OBJECT)) {
        if (p->written.type == 0) p->written = json_object();
        for (uint32_t i = 0; i < ctx->count; i++) {
            struct json value;
            struct str key = arena_copy(&p->memory, ctx->members[i].key);
            if (json_get(&p->written, ctx->members[i].key)) continue;
            if (!key.ptr || !json_copy(&p->memory, &ctx->members[i].value, &value) ||
                !json_put(&p->memory, &p->written, key, value))
                return no_memory(run, err);
        }
    }
    const struct json *iter = json_key(set, "iter");
    if (json_is(iter, JSON_OBJECT) && iter->count > 0) {
        struct json patched, kept;
        enum code rc = net_patched(&lane->memory, &lane->iter, iter, &patched, err);
        if (rc) return rc;
        if (!json_copy(&lane->memory, &patched, &kept)) return no_memory(run, err);
        lane->iter = kept;
    }
    return fold_ctx(run, ctx, err);
}

static enum code fold_task_over(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct walk *lane = walk_at(run, index);
    const struct net_step *ns = &net_of_run(run)->steps[lane->place];
    if (lane_phase(run, index) != LANE_ANSWERED) return impossible(run, m, err);
    bool failed = m->kind == MOMENT_TASK_FAILED;
    enum code rc = fold_value(&lane->memory, m, &lane->results[lane->pc], err);
    if (!rc && failed) rc = keep_fault(&lane->memory, &m->fault, &lane->fault, err);
    if (rc) return rc;
    // A noop passes on what came before it.
    if (lane->last == 0 || failed || !ns->tasks[lane->pc].in_process) lane->last = lane->pc + 1;
    uint8_t action = lane->action ? lane->action : failed ? NET_FAIL : NET_CONTINUE;
    lane->attempt = 0;
    lane->failed = action == NET_FAIL;
    if (action == NET_CONTINUE) lane->pc++;
    if (action == NET_JUMP) lane->pc = lane->target < ns->task_count ? lane->target : ns->task_count;
    if (action == NET_BREAK || action == NET_FAIL) lane->pc = ns->task_count;
    ready_push(run, index);
    return OK;
}

static enum code fold_lane(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    uint32_t index = lane_of(run, m, place);
    if (index == NO_LANE) return impossible(run, m, err);
    switch ((int)m->kind) {
    case MOMENT_TASK_STARTED:
        return fold_task(run, m, index, err);
    case MOMENT_ATTEMPT_STARTED:
        return fold_attempt(run, m, index, err);
    case MOMENT_ATTEMPT_DONE:
    case MOMENT_ATTEMPT_FAILED:
        return fold_answer(run, m, index, err);
    case MOMENT_TASK_DECIDED:
        return fold_decision(run, m, index, err);
    case MOMENT_TASK_DONE:
    case MOMENT_TASK_FAILED:
        return fold_task_over(run, m, index, err);
    case MOMENT_STEP_REDISPATCHED:
        return lane_fold_again(run, index, m) ? OK : impossible(run, m, err);
    case MOMENT_ATTEMPT_RESTS:
        return lane_fold_rest(run, index, m) ? OK : impossible(run, m, err);
    default:
        return OK;
    }
}

// ---- routing
static enum code fold_routed(struct run *run, const struct moment *m, uint32_t place, struct error *err)
{
    struct net_state *net = run->net;
    struct net_place *p = &net->places[place];
    if (p->phase != PLACE_ENDED || m->visit != p->visit) return impossible(run, m, err);
    enum code rc = fold_ctx(run, json_at(&m->value, STR("set.ctx")), err);
    const struct json *selected = json_key(&m->value, "selected");
    uint32_t count = json_is(selected, JSON_ARRAY) ? selected->count : 0;
    p->phase = PLACE_IDLE;
    net->live--;
    INVARIANT(net->live < run->program->step_count);
    const struct json *error = json_key(&m->value, "error");
    if (!rc && error) { // what it set or passed on cannot be had, or it had to lead somewhere
        bool lost = str_is(json_text(error), NET_NO_NEXT);
        struct fault fault = {.code = lost ? STR("NO_NEXT") : STR("TEMPLATE_ERROR"),
                              .message = json_text(error),
                              .category = STR("validation")};
        net->unhandled++;
        rc = keep_root_cause(run, m->step, &fault, err);
    } else if (p->failed && (count == 0 || json_key(&m->value, "unhandled")))
        net->unhandled++;
    else if (p->failed && net->unhandled == 0) { // taken care of: not why the run may fail later
        run->failed_step = (struct str){0};
        run->fault = (struct fault){0};
    }
    for (uint32_t i = 0; !rc && i < count; i++) {
        const struct json *one = &selected->items[i];
        uint32_t to = program_find(run->program, PROGRAM_TOP, json_text(json_key(one, "step")));
        if (to == PROGRAM_TOP) return impossible(run, m, err);
        if (json_key(one, "merged")) continue;
        rc = token_arrives(run, to, json_key(one, "args"), err);
    }
    if (!rc) wake_waiting(run);
    return rc ? rc : come_to_final(run, err);
}

static enum code fold_begun(struct run *run, const struct moment *m, struct error *err)
{
    run->status = RUN_STATUS_RUNNING;
    run->started_ms = m->at_ms;
    if (m->value.type == JSON_OBJECT && !json_copy(&run->arena, &m->value, &run->net->workload))
        return no_memory(run, err);
    return token_arrives(run, net_of_run(run)->entry, NULL, err);
}

static enum code fold_awaited(struct run *run, const struct moment *m, uint32_t step, struct error *err)
{
    uint32_t lane = lane_of(run, m, step);
    bool possible = false;
    enum code rc = lane == NO_LANE ? OK : await_fold(run, m, lane, &possible, err);
    return possible || rc ? rc : impossible(run, m, err);
}

static enum code fold_kind(struct run *run, const struct moment *m, uint32_t step, struct error *err)
{
    switch ((int)m->kind) {
    case MOMENT_RUN_REQUESTED:
        run->queued_ms = m->at_ms;
        return fold_facts(run, m->start, err);
    case MOMENT_RUN_STARTED:
        return fold_begun(run, m, err);
    case MOMENT_ADMIT_EVALUATED:
        return fold_admitted(run, m, step, err);
    case MOMENT_STEP_SCHEDULED:
        return fold_scheduled(run, m, step, err);
    case MOMENT_STEP_STARTED:
        return fold_started(run, m, step, err);
    case MOMENT_STEP_COMPLETED:
    case MOMENT_STEP_FAILED:
        return fold_ended(run, m, step, err);
    case MOMENT_STEP_OVERDUE:
        return fold_overdue(run, m, step, err);
    case MOMENT_LOOP_STARTED:
        return fold_loop(run, m, step, err);
    case MOMENT_LOOP_DONE:
        run->net->places[step].loop_over = true;
        return OK;
    case MOMENT_ITERATION_STARTED:
        return fold_iteration(run, m, step, err);
    case MOMENT_ITERATION_DONE:
    case MOMENT_ITERATION_FAILED:
        return fold_iteration_over(run, m, step, err);
    case MOMENT_ROUTED:
        return fold_routed(run, m, step, err);
    case MOMENT_EVENT_AWAITED:
        return fold_awaited(run, m, step, err);
    case MOMENT_TASK_STARTED:
    case MOMENT_ATTEMPT_STARTED:
    case MOMENT_ATTEMPT_DONE:
    case MOMENT_ATTEMPT_FAILED:
    case MOMENT_TASK_DECIDED:
    case MOMENT_TASK_DONE:
    case MOMENT_TASK_FAILED:
    case MOMENT_STEP_REDISPATCHED:
    case MOMENT_ATTEMPT_RESTS:
        return fold_lane(run, m, step, err);
    default:
        return OK; // recorded for readers
    }
}

bool net_is_result(enum moment_kind kind)
{
    return kind == MOMENT_TASK_DONE || kind == MOMENT_TASK_FAILED || kind == MOMENT_STEP_COMPLETED ||
           kind == MOMENT_RESULT_STORED;
}

enum code net_fold(struct run *run, const struct moment *m, uint32_t step, struct error *err)
{
    run->net->now_ms = m->at_ms;
    if (!m->has_blob || net_is_result(m->kind)) return fold_kind(run, m, step, err);
    struct moment whole = *m;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, run->arena.limit);
    enum code rc = net_payload(run, m, &scratch, &whole.value, err);
    if (!rc) rc = fold_kind(run, &whole, step, err);
    return rc;
}
