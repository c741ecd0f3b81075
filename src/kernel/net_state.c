// The state of a playbook's run: places, lanes, how they are named.
#include "kernel/net_inside.h"

#include "base/text.h"

#include <string.h>

enum { NET_BLOCK = 1024 };

bool net_make(struct run *run)
{
    uint32_t count = run->program->step_count;
    struct net_state *net = ARENA_NEW(&run->arena, struct net_state);
    if (!net) return false;
    net->places = ARENA_ARRAY(&run->arena, count, struct net_place);
    net->token_at = ARENA_ARRAY(&run->arena, count / 64 + 1, uint64_t);
    if (!net->places || !net->token_at) return false;
    run->net = net;
    run->first_lane = count;
    net->free_lane = NO_LANE;
    net->last = PROGRAM_TOP;
    net->workload = net->ctx = json_object();
    arena_init(&net->ctx_memory, NET_BLOCK, run->arena.limit);
    for (uint32_t i = 0; i < count; i++) {
        struct net_place *p = &net->places[i];
        p->phase = PLACE_IDLE;
        p->lane = NO_LANE;
        arena_init(&p->memory, NET_BLOCK, run->arena.limit);
        arena_init(&p->kept, NET_BLOCK, run->arena.limit);
        arena_init(&p->token_memory, NET_BLOCK, run->arena.limit);
    }
    return true;
}

void net_free(struct run *run)
{
    struct net_state *net = run->net;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        arena_release(&net->places[i].memory);
        arena_release(&net->places[i].kept);
        arena_release(&net->places[i].token_memory);
    }
    for (uint32_t i = 0; i < net->lane_count; i++) arena_release(&net->walks[i]->memory);
    arena_release(&net->ctx_memory);
}

uint32_t run_step_count(const struct run *run)
{
    return run->program->step_count + (run->net ? run->net->lane_count : 0);
}

struct walk *walk_at(const struct run *run, uint32_t lane)
{
    INVARIANT(run->net && lane >= run->program->step_count && lane < run_step_count(run));
    return run->net->walks[lane - run->program->step_count];
}

enum lane_phase lane_phase(const struct run *run, uint32_t lane)
{
    const struct walk *walk = walk_at(run, lane);
    uint8_t state = lane_ref(run, lane)->state;
    if (!walk->taken) return LANE_FREE;
    if (state == NODE_RUNNING) return LANE_FLIGHT;
    if (state == NODE_DELAYED) return LANE_DELAYED;
    if (walk->attempt > 0) return LANE_ANSWERED;
    return walk->pc < net_of_run(run)->steps[walk->place].task_count ? LANE_READY : LANE_OVER;
}

enum node_state net_place_state(const struct run *run, uint32_t place)
{
    const struct net_place *p = &run->net->places[place];
    if (p->skipped) return NODE_SKIPPED;
    if (p->visit == 0 || p->phase == PLACE_PENDING) return NODE_WAITING;
    return p->phase == PLACE_RUNNING ? NODE_RUNNING : p->failed ? NODE_FAILED : NODE_SUCCESS;
}

struct run_attempt net_place_attempt(const struct run *run, uint32_t place)
{
    return (struct run_attempt){.started_ms = run->net->places[place].started_ms, .due_ms = run->net->places[place].due_ms};
}

uint32_t net_visit(const struct run *run, uint32_t step)
{
    return run->net->places[kernel_place(run, step)].visit;
}

const struct json *kernel_ctx(const struct run *run)
{
    return &run->net->ctx;
}

uint32_t kernel_place(const struct run *run, uint32_t step)
{
    return run->net && step >= run->program->step_count ? walk_at(run, step)->place : step;
}

const struct net_task *kernel_task_of(const struct run *run, uint32_t lane)
{
    const struct walk *l = walk_at(run, lane);
    const struct net_step *step = &net_of_run(run)->steps[l->place];
    INVARIANT(l->taken && l->pc < step->task_count);
    return &step->tasks[l->pc];
}

static bool lanes_grow(struct run *run)
{
    struct net_state *net = run->net;
    uint32_t steps = run->program->step_count, count = net->lane_count;
    uint32_t capacity = net->lane_capacity ? net->lane_capacity * 2 : 4;
    struct walk **walks = ARENA_ARRAY(&run->arena, capacity, struct walk *);
    struct run_lane *lanes = ARENA_ARRAY(&run->arena, capacity, struct run_lane);
    uint32_t *links = ARENA_ARRAY(&run->arena, steps + capacity, uint32_t);
    if (!walks || !lanes || !links) return false;
    if (count) memcpy(walks, net->walks, count * sizeof(struct walk *));
    if (count) memcpy(lanes, run->lanes, count * sizeof(*lanes));
    memcpy(links, run->links, (steps + count) * sizeof(*links));
    net->walks = walks;
    net->lane_capacity = capacity;
    run->lanes = lanes;
    run->links = links;
    return true;
}

uint32_t lane_take(struct run *run, uint32_t place, uint32_t iteration)
{
    struct net_state *net = run->net;
    uint32_t index = net->free_lane;
    if (index != NO_LANE) {
        net->free_lane = net->walks[index]->next_free;
    } else {
        if (net->lane_count == net->lane_capacity && !lanes_grow(run)) return NO_LANE;
        struct walk *made = ARENA_NEW(&run->arena, struct walk);
        if (!made) return NO_LANE;
        arena_init(&made->memory, NET_BLOCK, run->arena.limit);
        index = net->lane_count++;
        net->walks[index] = made;
    }
    struct walk *lane = net->walks[index];
    struct arena memory = lane->memory;
    INVARIANT(!lane->taken && place < run->program->step_count);
    uint32_t tasks = net_of_run(run)->steps[place].task_count;
    *lane = (struct walk){.taken = true, .place = place, .iteration = iteration, .iter = json_object()};
    lane->memory = memory;
    lane->runs = ARENA_ARRAY(&lane->memory, tasks + 1, uint32_t);
    lane->results = ARENA_ARRAY(&lane->memory, tasks + 1, struct net_value);
    run->lanes[index] = (struct run_lane){.state = NODE_WAITING}; // it may still stand in the queue for its last life
    return lane->runs && lane->results ? run->program->step_count + index : NO_LANE;
}

void lane_give(struct run *run, uint32_t index)
{
    struct walk *lane = walk_at(run, index);
    enter_state(run, lane_ref(run, index), NODE_WAITING);
    INVARIANT(lane->taken);
    lane->taken = false;
    lane->runs = NULL;
    lane->results = NULL;
    arena_reset(&lane->memory);
    lane->next_free = run->net->free_lane;
    run->net->free_lane = index - run->program->step_count;
}

uint32_t lane_of(const struct run *run, const struct moment *m, uint32_t place)
{
    const struct net_place *p = &run->net->places[place];
    if (p->phase != PLACE_RUNNING || m->visit != p->visit) return NO_LANE;
    if (m->iteration == 0) return p->lane;
    return p->loop.lanes && m->iteration <= p->loop.total ? p->loop.lanes[m->iteration - 1] : NO_LANE;
}

uint32_t kernel_lane(const struct run *run, const struct moment *moment)
{
    uint32_t place = program_find(run->program, PROGRAM_TOP, moment->step);
    uint32_t lane = place == PROGRAM_TOP ? NO_LANE : lane_of(run, moment, place);
    return lane == NO_LANE ? PROGRAM_TOP : lane;
}

bool kernel_items(const struct run *run, uint32_t place, struct loop_counts *out)
{
    if (!run->net || place >= run->program->top_count || !run->net->places[place].looped) return false;
    const struct net_place *p = &run->net->places[place];
    *out = (struct loop_counts){.total = p->loop.total, .done = p->loop.done, .failed = p->loop.failures};
    return true;
}

// "load", "load:run:2", "each[3]", and of a lane with a task under way "each[3]/fetch:run:2". A lane that has been given back has none.
struct str net_path(const struct run *run, uint32_t step, struct arena *arena)
{
    uint32_t place = kernel_place(run, step);
    struct str id = run->program->steps[place].id;
    if (place == step) return id;
    const struct walk *lane = walk_at(run, step);
    const struct net_step *ns = &net_of_run(run)->steps[place];
    struct buf buf = buf_of(4096);
    buf_add(&buf, id);
    if (run->net->places[place].visit > 1) buf_printf(&buf, ":run:%u", run->net->places[place].visit);
    if (lane->iteration > 0) buf_printf(&buf, "[%u]", lane->iteration);
    if (lane->taken && lane->pc < ns->task_count) {
        buf_byte(&buf, '/');
        buf_add(&buf, ns->tasks[lane->pc].label);
        if (lane->runs[lane->pc] > 1) buf_printf(&buf, ":run:%u", lane->runs[lane->pc]);
    }
    return buf_keep(&buf, arena);
}

// Of a playbook whose run is a number: one too, made of what tells it apart.
struct str net_child_name(struct str run, struct str path, uint32_t serial, struct arena *arena)
{
    if (!run_number_valid(run)) return kernel_child_name(run, path, serial, arena);
    char digits[RUN_NUMBER_SIZE];
    uint64_t bits = 0;
    run_number_format(serial, digits);
    const struct str parts[] = {run, STR("|"), path, STR("|"), str_from(digits)};
    struct digest digest = sha256_parts(parts, ARRAY_COUNT(parts));
    for (size_t i = 0; i < sizeof(bits); i++) bits = bits << 8 | digest.b[i];
    run_number_format((bits & INT64_MAX) | UINT64_C(1) << 62, digits); // of the length that the others have
    return arena_copy(arena, str_from(digits));
}

// A number behind `mark` at the end of *text, which loses both. `otherwise` when there is none.
static uint32_t cut_number(struct str *text, const char *mark, uint32_t otherwise)
{
    size_t len = strlen(mark);
    for (size_t at = text->len; at-- > 0;) {
        if (at + len > text->len || memcmp(text->ptr + at, mark, len) != 0) continue;
        int64_t number;
        if (!str_int64(str_slice(*text, at + len, text->len), &number) || number < 1 || number > UINT32_MAX) break;
        *text = str_slice(*text, 0, at);
        return (uint32_t)number;
    }
    return otherwise;
}

// The step that `name` is, with its visit and iteration in *m.
static uint32_t find_place(const struct run *run, struct str name, struct moment *m)
{
    *m = (struct moment){.visit = 1};
    if (str_ends(name, STR("]"))) {
        name.len--;
        m->iteration = cut_number(&name, "[", 0);
    }
    uint32_t place = program_find(run->program, PROGRAM_TOP, name);
    if (place != PROGRAM_TOP) return place;
    m->visit = cut_number(&name, ":run:", 1);
    return program_find(run->program, PROGRAM_TOP, name);
}

uint32_t kernel_named(const struct run *run, struct str path, uint32_t *visit, uint32_t *iteration)
{
    uint32_t place = program_find(run->program, PROGRAM_TOP, path);
    *visit = *iteration = 0;
    if (place != PROGRAM_TOP) return place;
    if (str_ends(path, STR("]"))) {
        path.len--;
        *iteration = cut_number(&path, "[", 0);
    }
    *visit = cut_number(&path, ":run:", 0);
    return program_find(run->program, PROGRAM_TOP, path);
}

uint32_t net_find(const struct run *run, struct str path)
{
    struct moment m;
    size_t slash = path.len;
    uint32_t place = find_place(run, path, &m);
    while (place == PROGRAM_TOP && slash > 0) // names of steps and labels may have one too: the longest step counts
        if (path.ptr[--slash] == '/') place = find_place(run, str_slice(path, 0, slash), &m);
    struct str task = slash < path.len ? str_slice(path, slash + 1, path.len) : (struct str){0};
    if (place == PROGRAM_TOP || task.len == 0) return place;
    uint32_t lane = lane_of(run, &m, place);
    if (lane == NO_LANE) return place;
    const struct walk *l = walk_at(run, lane);
    const struct net_step *ns = &net_of_run(run)->steps[place];
    if (l->pc >= ns->task_count) return place;
    uint32_t task_run = 1;
    if (!str_eq(task, ns->tasks[l->pc].label)) task_run = cut_number(&task, ":run:", 1);
    return str_eq(task, ns->tasks[l->pc].label) && l->runs[l->pc] == task_run ? lane : place;
}

static const char *net_place_fault(const struct net_state *net, uint32_t i)
{
    const struct net_place *p = &net->places[i];
    if (p->token != (net->token_at[i / 64] >> (i % 64) & 1)) return "a token is not where it is noted";
    if (p->phase < PLACE_IDLE || p->phase > PLACE_ENDED) return "a step has no phase";
    if (p->phase != PLACE_RUNNING && (p->lane != NO_LANE || container_open(&p->loop) > 0))
        return "a step that does not run has tasks";
    return NULL;
}

static const char *net_lane_fault(const struct run *run, uint32_t i)
{
    const struct walk *lane = run->net->walks[i];
    const struct run_lane *s = lane_ref(run, run->program->step_count + i);
    if (s->state < NODE_WAITING || s->state > NODE_RUNNING) return "a task is in a state of steps";
    if (!lane->taken && s->state != NODE_WAITING) return "a task that is not taken is under way";
    if (lane->taken && run->net->places[lane->place].phase != PLACE_RUNNING)
        return "a task runs in a step that does not";
    return NULL;
}

const char *net_fault(const struct run *run)
{
    const struct net_state *net = run->net;
    uint32_t live = 0, tokens = 0, in_flight = 0, delayed = 0;
    const char *fault = NULL;
    for (uint32_t i = 0; !fault && i < run->program->step_count; i++) {
        fault = net_place_fault(net, i);
        live += net->places[i].phase != PLACE_IDLE;
        tokens += net->places[i].token;
    }
    for (uint32_t i = 0; !fault && i < net->lane_count; i++) {
        const struct run_lane *s = lane_ref(run, run->program->step_count + i);
        fault = net_lane_fault(run, i);
        in_flight += s->state == NODE_RUNNING;
        delayed += s->state == NODE_DELAYED;
    }
    if (fault) return fault;
    bool counted = live == net->live && tokens == net->tokens && in_flight == run->in_flight && delayed == run->delayed &&
                   run->held == 0 && delayed == run->retrying;
    return counted ? NULL : "steps and tasks are not counted as they are";
}
