// Playbooks: tokens, visits, loops, tasks and attempts, worked out from the log alone and apart from src/kernel (N1 to N6); the end
// against the end without crashes (N0).
#include "sim/checker.h"

#include <stdio.h>
#include <string.h>

enum visit_phase { VISIT_NONE = 0, VISIT_SCHEDULED, VISIT_RUNNING, VISIT_ENDED };

struct model_task {
    uint32_t place, visit, iteration, task, run; // whose
    uint32_t attempts;
    bool answered;  // its last attempt has an outcome
    bool failed;    // which was a failure
    uint8_t action; // decided after that outcome; 0 = nothing was
    uint32_t target;
    bool over;
};

struct model_attempt { // by its number in the run
    uint32_t task;     // index
    uint32_t number, engine, started_engine;
    uint64_t ordered_seq;
    bool over;
};

struct model_place {
    enum visit_phase phase;
    bool token, failed, skipped, looped, loop_over;
    uint32_t visit, total, scheduled, begun, ended, failures, most;
    bool *open; // by iteration
};

struct model_net {
    const struct program *program;
    struct model_place *places;
    struct model_task *tasks;
    size_t task_count, task_capacity;
    struct model_attempt *attempts;
    size_t attempt_count, attempt_capacity;
    uint32_t unhandled;
    bool broken; // the workload itself, or an arc, could not be worked out
    bool ending; // its last moments are being told
};

struct net_ask { // what is being looked at
    struct checker *checker;
    struct model_run *run;
    struct model_net *net;
    const struct moment *m;
    uint32_t place;
};

struct model_net *net_model_new(struct checker *checker, const struct program *program)
{
    struct model_net *net = ARENA_NEW(&checker->arena, struct model_net);
    INVARIANT(net);
    net->program = program;
    net->places = ARENA_ARRAY(&checker->arena, program->step_count, struct model_place);
    INVARIANT(net->places);
    return net;
}

static void wrong(const struct net_ask *ask, const char *name, const char *why)
{
    const struct moment *m = ask->m;
    checker_fail(ask->checker, name, "%.*s: %s of %.*s (visit %u, iteration %u, %.*s %u, attempt %u): %s",
                 STR_ARG(ask->run->ids.run), moment_name(m->kind), STR_ARG(m->step), m->visit, m->iteration,
                 STR_ARG(m->task), m->task_run, m->logical, why);
}

// ---- tokens and visits
static void token_comes(struct model_net *net, uint32_t place)
{
    net->places[place].token = true;
}

static void absorb_admit(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    if (!p->token || p->phase != VISIT_NONE) wrong(ask, "N1", "no token is there");
    const struct json *allow = json_key(&ask->m->value, "allow");
    if (allow && allow->boolean) return;
    p->token = false;
    p->visit++;
    p->skipped = true;
}

// Steps that lead to `place`, however far away.
static bool leads_to(const struct program *program, uint32_t from, uint32_t to, uint64_t *seen)
{
    const struct net_step *step = &program->net->steps[from];
    for (uint32_t i = 0; i < step->arc_count; i++) {
        uint32_t next = step->arcs[i].step;
        if (next == to) return true;
        if (*seen >> next & 1) continue;
        *seen |= UINT64_C(1) << next;
        if (leads_to(program, next, to, seen)) return true;
    }
    return false;
}

// Somebody waits for this step to be led to by others, and one of them is still on its way.
static void check_barrier(const struct net_ask *ask)
{
    const struct program *program = ask->net->program;
    bool barrier = program->net->steps[ask->place].upstream != NULL;
    for (uint32_t i = 0; barrier && i < program->step_count; i++) {
        const struct model_place *p = &ask->net->places[i];
        uint64_t seen = 0;
        if (i == ask->place || (p->phase == VISIT_NONE && !p->token)) continue;
        if (leads_to(program, i, ask->place, &seen)) wrong(ask, "N2", "a branch that leads here is under way");
    }
}

static void absorb_scheduled(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    if (!p->token) wrong(ask, "N1", "no token is there");
    if (p->phase != VISIT_NONE) wrong(ask, "N1", "it is being visited");
    if (ask->m->visit != p->visit + 1) wrong(ask, "N1", "the visits do not rise by one");
    check_barrier(ask);
    uint32_t visit = p->visit + 1;
    *p = (struct model_place){.phase = VISIT_SCHEDULED, .visit = visit};
}

static void absorb_routed(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    if (p->phase != VISIT_ENDED) wrong(ask, "N5", "it has not ended, or was routed before");
    p->phase = VISIT_NONE;
    const struct json *selected = json_key(&ask->m->value, "selected");
    uint32_t count = selected ? selected->count : 0;
    const struct json *matched = json_key(&ask->m->value, "matched");
    bool asked = false; // an arc that was taken has a condition: the failure is taken care of
    for (uint32_t i = 0; count > 0 && matched && i < matched->count; i++) {
        struct str when = json_text(json_key(&matched->items[i], "when"));
        asked = asked || (when.len > 0 && !str_is(when, "true") && !str_is(when, "{{ true }}"));
    }
    if (p->failed && !asked) ask->net->unhandled++;
    if (json_key(&ask->m->value, "error")) ask->net->broken = true;
    if (count > 1 && !ask->net->program->net->steps[ask->place].inclusive)
        wrong(ask, "N1", "two arcs of an exclusive step");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = program_find(ask->net->program, PROGRAM_TOP, json_text(json_key(&selected->items[i], "step")));
        bool merged = json_key(&selected->items[i], "merged") != NULL;
        if (merged != (ask->net->places[to].phase != VISIT_NONE))
            wrong(ask, "N1", "a token merges with no visit, or does not");
        if (!merged) token_comes(ask->net, to);
    }
}

// ---- loops
static void absorb_loop(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    if (p->phase != VISIT_RUNNING || p->looped) wrong(ask, "N3", "it has begun, or the step has not");
    p->looped = true;
    p->total = ask->m->counts.total;
    p->most = ask->net->program->net->steps[ask->place].loop.max_in_flight;
    p->open = ARENA_ARRAY(&ask->checker->arena, p->total + 1, bool);
    INVARIANT(p->open);
}

static void absorb_iteration(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    uint32_t n = ask->m->iteration;
    if (p->phase != VISIT_RUNNING || !p->looped || p->loop_over || n == 0 || n > p->total) {
        wrong(ask, "N3", "there is no such iteration now");
        return;
    }
    bool begins = ask->m->kind == MOMENT_ITERATION_SCHEDULED || ask->m->kind == MOMENT_ITERATION_STARTED;
    uint32_t *count = ask->m->kind == MOMENT_ITERATION_SCHEDULED ? &p->scheduled : &p->begun;
    if (begins) {
        if (n != *count + 1) wrong(ask, "N3", "iterations begin one after the other, each once");
        (*count)++;
        if (ask->m->kind == MOMENT_ITERATION_STARTED) p->open[n] = true;
        if (p->begun - p->ended > p->most) wrong(ask, "N3", "too many at once");
        return;
    }
    if (!p->open[n]) wrong(ask, "N3", "it is not open");
    p->open[n] = false;
    p->ended++;
    p->failures += ask->m->kind == MOMENT_ITERATION_FAILED;
}

static void absorb_loop_over(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    const struct net_step *step = &ask->net->program->net->steps[ask->place];
    bool early = (p->failures > 0 && !step->best_effort) || step->timeout_ms > 0;
    if (!p->looped || p->loop_over || p->begun != p->ended) wrong(ask, "N3", "iterations are open, or it ended before");
    if (p->begun != p->total && !early) wrong(ask, "N3", "iterations are missing");
    if (ask->m->counts.completed + ask->m->counts.failed != p->ended || ask->m->counts.failed != p->failures)
        wrong(ask, "N3", "its counts are not those of its iterations");
    p->loop_over = true;
}

// ---- walks through tasks
static struct model_task *last_of(const struct net_ask *ask)
{
    for (size_t i = ask->net->task_count; i-- > 0;) {
        struct model_task *t = &ask->net->tasks[i];
        if (t->place == ask->place && t->visit == ask->m->visit && t->iteration == ask->m->iteration) return t;
    }
    return NULL;
}

// The walk of this visit or iteration: where it goes after its last task; task_count = it is over.
static uint32_t next_task(const struct net_ask *ask, const struct model_task *last)
{
    uint32_t count = ask->net->program->net->steps[ask->place].task_count;
    if (!last) return 0;
    uint8_t action = last->action ? last->action : last->failed ? NET_FAIL : NET_CONTINUE;
    if (action == NET_CONTINUE) return last->task + 1;
    return action == NET_JUMP ? last->target : count;
}

static bool walk_open(const struct net_ask *ask)
{
    const struct model_place *p = &ask->net->places[ask->place];
    if (p->phase != VISIT_RUNNING || ask->m->visit != p->visit) return false;
    return ask->m->iteration == 0 || (p->looped && ask->m->iteration <= p->total && p->open[ask->m->iteration]);
}

static void absorb_task(const struct net_ask *ask)
{
    const struct net_step *step = &ask->net->program->net->steps[ask->place];
    struct model_net *net = ask->net;
    const struct model_task *last = last_of(ask);
    if (!walk_open(ask)) wrong(ask, "N5", "its step, or its iteration, is not under way");
    if (last && !last->over) wrong(ask, "N5", "the task before has not ended");
    uint32_t task = 0, run = 1;
    while (task < step->task_count && !str_eq(step->tasks[task].label, ask->m->task)) task++;
    if (task != next_task(ask, last)) wrong(ask, "N5", "another task was to come");
    for (size_t i = 0; i < net->task_count; i++) {
        const struct model_task *t = &net->tasks[i];
        run +=
            t->place == ask->place && t->visit == ask->m->visit && t->iteration == ask->m->iteration && t->task == task;
    }
    if (ask->m->task_run != run) wrong(ask, "N5", "its runs do not rise by one");
    net->tasks = arena_grow(&ask->checker->arena, net->tasks, net->task_count, net->task_count + 1, sizeof(*net->tasks),
                            &net->task_capacity);
    INVARIANT(net->tasks);
    net->tasks[net->task_count++] = (struct model_task){
        .place = ask->place, .visit = ask->m->visit, .iteration = ask->m->iteration, .task = task, .run = run};
}

static struct model_task *task_of(const struct net_ask *ask)
{
    struct model_task *task = last_of(ask);
    const struct net_step *step = &ask->net->program->net->steps[ask->place];
    bool same =
        task && !task->over && task->run == ask->m->task_run && str_eq(step->tasks[task->task].label, ask->m->task);
    if (!same) wrong(ask, "N4", "this task is not under way");
    return same ? task : NULL;
}

static struct model_attempt *attempt_of(const struct net_ask *ask, const struct model_task *task)
{
    for (size_t i = ask->net->attempt_count; i-- > 0;)
        if (&ask->net->tasks[ask->net->attempts[i].task] == task && ask->net->attempts[i].number == ask->m->logical)
            return &ask->net->attempts[i];
    return NULL;
}

static uint32_t most_attempts(const struct net_task *task)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < task->rule_count; i++)
        if (task->rules[i].action == NET_RETRY && task->rules[i].attempts > most) most = task->rules[i].attempts;
    return most;
}

static void absorb_attempt(const struct net_ask *ask, uint64_t seq)
{
    struct model_net *net = ask->net;
    struct model_task *task = task_of(ask);
    if (!task) return;
    if (ask->run->paused) wrong(ask, "I25", "started while the run was paused");
    if (ask->checker->visited) wrong(ask, "E3", "a signal started it in a run that nobody drives");
    if (ask->m->logical != task->attempts + 1 || ask->m->engine != 1) wrong(ask, "N4", "attempts do not rise by one");
    if (task->attempts > 0 && (!task->answered || task->action != NET_RETRY))
        wrong(ask, "N4", "nobody said: try again");
    if (ask->m->logical > most_attempts(&net->program->net->steps[ask->place].tasks[task->task]))
        wrong(ask, "N4", "more attempts than its rules allow");
    task->attempts++;
    task->answered = task->failed = false;
    task->action = 0;
    net->attempts = arena_grow(&ask->checker->arena, net->attempts, net->attempt_count, net->attempt_count + 1,
                               sizeof(*net->attempts), &net->attempt_capacity);
    INVARIANT(net->attempts);
    net->attempts[net->attempt_count++] = (struct model_attempt){
        .task = (uint32_t)(task - net->tasks), .number = task->attempts, .engine = 1, .ordered_seq = seq};
}

static void absorb_again(const struct net_ask *ask, uint64_t seq)
{
    const struct model_task *task = task_of(ask);
    struct model_attempt *attempt = task ? attempt_of(ask, task) : NULL;
    if (!attempt || attempt->over) {
        wrong(ask, "N4", "no such attempt is under way");
        return;
    }
    if (ask->run->paused) wrong(ask, "I25", "started while the run was paused");
    if (ask->checker->visited) wrong(ask, "E3", "a signal started it in a run that nobody drives");
    if (ask->m->engine != attempt->engine + 1) wrong(ask, "I13", "k does not rise by one");
    attempt->engine = ask->m->engine;
    attempt->ordered_seq = seq;
}

static void absorb_answer(const struct net_ask *ask)
{
    struct model_task *task = task_of(ask);
    struct model_attempt *attempt = task ? attempt_of(ask, task) : NULL;
    if (!task) return;
    if (!attempt || attempt->over || ask->m->logical != task->attempts)
        wrong(ask, "I14", "a second outcome, or of another attempt");
    if (attempt) attempt->over = true;
    task->answered = true;
    task->failed = ask->m->kind == MOMENT_ATTEMPT_FAILED;
}

static void absorb_decision(const struct net_ask *ask)
{
    static const char *const words[] = {[NET_CONTINUE] = "continue",
                                        [NET_RETRY] = "retry",
                                        [NET_JUMP] = "jump",
                                        [NET_BREAK] = "break",
                                        [NET_FAIL] = "fail"};
    struct model_task *task = task_of(ask);
    if (!task) return;
    if (!task->answered || task->action) wrong(ask, "N4", "nothing came out yet, or it was decided before");
    struct str word = json_text(json_at(&ask->m->value, STR("action.do")));
    for (uint8_t i = NET_CONTINUE; i <= NET_FAIL; i++)
        if (str_is(word, words[i])) task->action = i;
    const struct net_step *step = &ask->net->program->net->steps[ask->place];
    struct str to = json_text(json_at(&ask->m->value, STR("action.to")));
    while (task->target < step->task_count && !str_eq(step->tasks[task->target].label, to)) task->target++;
}

static void absorb_task_over(const struct net_ask *ask)
{
    struct model_task *task = task_of(ask);
    if (!task) return;
    if (!task->answered || task->action == NET_RETRY)
        wrong(ask, "N4", "its attempt has no outcome, or is to be tried again");
    const struct net_task *of = &ask->net->program->net->steps[ask->place].tasks[task->task];
    if (of->in_process && (ask->m->has_blob || (ask->m->value.type != 0 && ask->m->value.type != JSON_NULL)))
        wrong(ask, "N4", "what another task gave");
    task->failed = ask->m->kind == MOMENT_TASK_FAILED;
    task->over = true;
}

static void absorb_step_over(const struct net_ask *ask)
{
    struct model_place *p = &ask->net->places[ask->place];
    const struct net_step *step = &ask->net->program->net->steps[ask->place];
    const struct model_task *last = last_of(ask);
    if (p->phase != VISIT_RUNNING) wrong(ask, "N5", "it is not running");
    bool timed = step->timeout_ms + step->deadline_ms > 0 && str_is(ask->m->fault.code, "TIMEOUT");
    bool template = str_is(ask->m->fault.code, "TEMPLATE_ERROR");
    if (step->has_loop && !p->loop_over && !template) wrong(ask, "N5", "its loop has not ended");
    bool walked = last ? last->over && next_task(ask, last) >= step->task_count : step->task_count == 0;
    if (!step->has_loop && !walked && !timed && !template) wrong(ask, "N5", "its walk has not ended");
    for (size_t i = 0; i < ask->net->attempt_count; i++) {
        const struct model_task *task = &ask->net->tasks[ask->net->attempts[i].task];
        if (!ask->net->attempts[i].over && task->place == ask->place) wrong(ask, "N5", "an attempt of it is under way");
    }
    p->phase = VISIT_ENDED;
    p->failed = ask->m->kind == MOMENT_STEP_FAILED;
}

// ---- the end
static void absorb_end(const struct net_ask *ask)
{
    const struct model_net *net = ask->net;
    struct model_run *run = ask->run;
    for (size_t i = 0; i < net->attempt_count; i++)
        if (!net->attempts[i].over) wrong(ask, "N6", "an attempt is under way");
    run->status = ask->m->kind == MOMENT_RUN_COMPLETED ? RUN_STATUS_COMPLETED
                  : ask->m->kind == MOMENT_RUN_FAILED  ? RUN_STATUS_FAILED
                                                       : RUN_STATUS_CANCELLED;
    ask->net->ending = true;
    bool asked = run->cancel_asked || run->shadow->status == RUN_STATUS_PENDING;
    if ((run->status == RUN_STATUS_CANCELLED) != asked) wrong(ask, "N6", "cancelled, or not, as nobody wanted it");
    if (run->paused && run->status != RUN_STATUS_CANCELLED) wrong(ask, "I25", "ended while it was paused");
    if (run->status == RUN_STATUS_CANCELLED) return;
    for (uint32_t i = 0; i < net->program->step_count; i++) {
        if (net->places[i].token) wrong(ask, "N1", "a token was lost");
        if (net->places[i].phase != VISIT_NONE) wrong(ask, "N6", "a step is under way");
    }
    bool failed = net->unhandled > 0 || net->broken;
    if (failed != (run->status == RUN_STATUS_FAILED)) wrong(ask, "N6", "failed, or not, against what its steps say");
}

static void absorb_place(const struct net_ask *ask)
{
    switch ((int)ask->m->kind) {
    case MOMENT_ADMIT_EVALUATED:
        absorb_admit(ask);
        break;
    case MOMENT_STEP_SCHEDULED:
        absorb_scheduled(ask);
        break;
    case MOMENT_STEP_STARTED:
        if (ask->net->places[ask->place].phase != VISIT_SCHEDULED) wrong(ask, "N5", "it was not scheduled");
        ask->net->places[ask->place].phase = VISIT_RUNNING;
        break;
    case MOMENT_STEP_COMPLETED:
    case MOMENT_STEP_FAILED:
        absorb_step_over(ask);
        break;
    case MOMENT_ROUTED:
        absorb_routed(ask);
        break;
    case MOMENT_LOOP_STARTED:
        absorb_loop(ask);
        break;
    case MOMENT_LOOP_DONE:
        absorb_loop_over(ask);
        break;
    default:
        absorb_iteration(ask);
        break;
    }
}

void net_model_absorb(struct checker *checker, struct model_run *run, const struct moment *m, uint64_t seq)
{
    struct net_ask ask = {.checker = checker, .run = run, .net = run->net, .m = m, .place = PROGRAM_TOP};
    if (m->step.len > 0) ask.place = program_find(run->program, PROGRAM_TOP, m->step);
    if (run->net->ending && m->kind != MOMENT_RUN_PROCESSED && moment_word(m->kind, VOCABULARY_NOETL))
        wrong(&ask, "I15", "it follows the end of the run");
    switch ((int)m->kind) {
    case MOMENT_RUN_STARTED:
        token_comes(run->net, run->program->net->entry);
        break;
    case MOMENT_ADMIT_EVALUATED:
    case MOMENT_STEP_SCHEDULED:
    case MOMENT_STEP_STARTED:
    case MOMENT_STEP_COMPLETED:
    case MOMENT_STEP_FAILED:
    case MOMENT_ROUTED:
    case MOMENT_LOOP_STARTED:
    case MOMENT_LOOP_DONE:
    case MOMENT_ITERATION_SCHEDULED:
    case MOMENT_ITERATION_STARTED:
    case MOMENT_ITERATION_DONE:
    case MOMENT_ITERATION_FAILED:
        absorb_place(&ask);
        break;
    case MOMENT_TASK_STARTED:
        absorb_task(&ask);
        break;
    case MOMENT_ATTEMPT_STARTED:
        absorb_attempt(&ask, seq);
        break;
    case MOMENT_STEP_REDISPATCHED:
        absorb_again(&ask, seq);
        break;
    case MOMENT_ATTEMPT_DONE:
    case MOMENT_ATTEMPT_FAILED:
        absorb_answer(&ask);
        break;
    case MOMENT_TASK_DECIDED:
        absorb_decision(&ask);
        break;
    case MOMENT_TASK_DONE:
    case MOMENT_TASK_FAILED:
        absorb_task_over(&ask);
        break;
    case MOMENT_RUN_COMPLETED:
    case MOMENT_RUN_FAILED:
    case MOMENT_RUN_CANCELLED:
        absorb_end(&ask);
        break;
    case MOMENT_RUN_PROCESSED:
        run->terminal = true;
        break;
    default:
        break;
    }
}

// ---- what the engine does
void net_model_start(struct checker *checker, struct model_run *run, const struct tool_request *request)
{
    struct model_net *net = run->net;
    const char *name = NULL, *why = "";
    struct model_attempt *attempt =
        request->logical >= 1 && request->logical <= net->attempt_count ? &net->attempts[request->logical - 1] : NULL;
    if (!attempt || request->engine > attempt->engine)
        name = "E1", why = "before the event that orders it was durable";
    else if (attempt->over)
        name = "I12", why = "after its outcome";
    else if (request->engine <= attempt->started_engine)
        name = "I13", why = "once more";
    else if (run->paused && attempt->ordered_seq > run->paused_seq)
        name = "I25", why = "while the run was paused";
    else if (run->terminal || net->ending)
        name = "I15", why = "after the end of the run";
    if (name)
        checker_fail(checker, name, "%.*s: %.*s %u.%u was handed to a tool %s", STR_ARG(request->run),
                     STR_ARG(request->step), request->logical, request->engine, why);
    if (attempt) attempt->started_engine = request->engine;
}

// ---- N0
// References name the run they are of.
static struct str without_name(struct str text, struct str run, struct arena *arena)
{
    struct str mark = STR("noetl://execution/");
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; out && i < text.len; i++) {
        out[len++] = text.ptr[i];
        struct str before = {out, len};
        if (str_ends(before, mark) && str_starts(str_slice(text, i + 1, text.len), run)) i += run.len;
    }
    return (struct str){out, len};
}

struct str checker_net_end(const struct checker *checker, const struct model_run *run, struct arena *arena)
{
    struct buf out;
    struct error err = {0};
    buf_init(&out, (size_t)16 << 20);
    buf_printf(&out, "%s ", run_status_name(run->status));
    json_canon(&out, kernel_ctx(run->shadow));
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct model_place *p = &run->net->places[i];
        struct json value;
        INVARIANT(kernel_output(run->shadow, i, &checker->env, arena, &value, &err) == OK);
        buf_printf(&out, "\n%.*s: visits %u%s%s ", STR_ARG(run->program->steps[i].id), p->visit,
                   p->failed ? ", failed" : "", p->skipped ? ", refused" : "");
        if (value.type != 0) json_canon(&out, &value);
    }
    buf_printf(&out, "\n%zu tasks, %zu attempts", run->net->task_count, run->net->attempt_count);
    struct str text = buf_ok(&out) ? without_name(buf_str(&out), run->ids.run, arena) : (struct str){0};
    buf_release(&out);
    INVARIANT(text.ptr);
    return text;
}

void checker_net_same(struct checker *checker, const struct model_run *run, struct str expected)
{
    arena_reset(&checker->scratch);
    struct str end = checker_net_end(checker, run, &checker->scratch);
    checker->checks++;
    if (str_eq(end, expected)) return;
    size_t at = 0;
    while (at < end.len && at < expected.len && end.ptr[at] == expected.ptr[at]) at++;
    size_t from = at > 60 ? at - 60 : 0;
    checker_fail(checker, "N0", "%.*s: ended with …%.*s where it ends with …%.*s when nothing crashes",
                 STR_ARG(run->ids.run), (int)(end.len - from < 160 ? end.len - from : 160), end.ptr + from,
                 (int)(expected.len - from < 160 ? expected.len - from : 160), expected.ptr + from);
}
