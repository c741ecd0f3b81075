// A run in memory: making it, finding steps in it, checking it.
#include "kernel/route.h"

// The first block holds a small run, its steps and the texts it was started with: most runs are waiting, and need no more.
#define RUN_ARENA_TEXTS 256
#define RUN_ARENA_BLOCK 4096
#define RUN_ARENA_LIMIT ((size_t)1 << 30) // PROGRAM_STEPS outputs of 64 KiB must fit; times program_scale

enum vocabulary program_vocabulary(const struct program *program)
{
    switch (program->kind) {
    case DOCUMENT_PLAN:
        return VOCABULARY_RUN;
    case DOCUMENT_NODES:
        return VOCABULARY_NODES;
    case DOCUMENT_PLAYBOOK:
        return VOCABULARY_NOETL;
    }
    return VOCABULARY_RUN;
}

struct str run_artifacts_dir(const struct run *run)
{
    return run->files.len > 0 ? run->files : run->start.artifacts_dir;
}

struct run *run_new(const struct program *program, const struct run_ids *ids)
{
    struct arena arena;
    size_t step = sizeof(struct run_lane) + sizeof(struct run_node) + sizeof(uint32_t);
    size_t block = sizeof(struct run) + program->step_count * step + RUN_ARENA_TEXTS;
    arena_init(&arena, block < RUN_ARENA_BLOCK ? block : RUN_ARENA_BLOCK,
               RUN_ARENA_LIMIT * program_scale(program->step_count));
    struct run *run = ARENA_NEW(&arena, struct run);
    uint32_t *links = run ? ARENA_ARRAY(&arena, program->step_count, uint32_t) : NULL;
    if (!links) {
        arena_release(&arena);
        return NULL;
    }
    run->program = program;
    run->route = program->net ? &route_net : &route_dag;
    run->status = RUN_STATUS_PENDING;
    run->segment = 1;
    run->links = links;
    run->counts.total = program->top_count;
    run->ready_head = run->ready_tail = PROGRAM_TOP;
    run->ids = *ids;
    run->arena = arena;
    if (run->route->make(run)) return run;
    arena = run->arena; // the run lives inside it
    arena_release(&arena);
    return NULL;
}

void run_free(struct run *run)
{
    if (!run) return;
    run->route->release(run);
    arena_release(&run->arena); // the run lives inside it
}

struct str kernel_path(const struct run *run, uint32_t step, struct arena *arena)
{
    return run->route->path(run, step, arena);
}

uint32_t find_path(const struct run *run, struct str path, enum path_time *time)
{
    *time = PATH_NOW;
    return run->route->find(run, path, time);
}

uint32_t kernel_find(const struct run *run, struct str path)
{
    enum path_time ignored;
    return find_path(run, path, &ignored);
}

// What is no valid id is hashed. Releases the buf.
static struct str valid_id(struct buf *buf, struct arena *arena)
{
    struct str id = {0};
    if (buf_ok(buf)) {
        if (!run_id_valid(buf_str(buf))) {
            struct digest digest = sha256(buf_str(buf));
            buf_clear(buf);
            buf_text(buf, "sub-");
            buf_hex(buf, digest.b, 16);
        }
        id = arena_copy(arena, buf_str(buf));
    }
    buf_release(buf);
    return id;
}

struct str kernel_child_name(struct str run, struct str path, uint32_t logical, struct arena *arena)
{
    struct buf buf = buf_of(8192);
    buf_add(&buf, run);
    buf_byte(&buf, '.');
    buf_add(&buf, path);
    buf_byte(&buf, '.');
    buf_int(&buf, logical ? logical : 1);
    return valid_id(&buf, arena);
}

bool kernel_runs_child(const struct run *run, uint32_t lane)
{
    enum body body = lane >= run->first_lane ? run->route->body(run, lane) : BODY_EXECUTED;
    return body == BODY_CHILD || body == BODY_LIST;
}

bool kernel_fans_out(const struct run *run, uint32_t step)
{
    return step < run->program->step_count && run->program->steps[step].kind == STEP_SUBRUN &&
           json_key(&run->program->steps[step].with, "fanOut");
}

struct str kernel_child(const struct run *run, uint32_t step, uint32_t member, struct arena *arena)
{
    struct str path = kernel_path(run, step, arena);
    if (!path.ptr) return path;
    uint32_t logical = kernel_attempt(run, step).logical;
    struct str id = run->route->child(run->ids.run, path, logical, arena);
    if (member == 0 || !id.ptr) return id;
    struct buf buf = buf_of(256);
    buf_add(&buf, id);
    buf_byte(&buf, '.');
    buf_int(&buf, member);
    return valid_id(&buf, arena);
}

enum node_state kernel_state(const struct run *run, uint32_t step)
{
    INVARIANT(step < run_step_count(run));
    return step < run->first_lane ? run->route->state(run, step) : (enum node_state)lane_ref(run, step)->state;
}

struct run_attempt kernel_attempt(const struct run *run, uint32_t step)
{
    INVARIANT(step < run_step_count(run));
    if (step < run->first_lane) return run->route->visit(run, step);
    const struct run_lane *lane = lane_ref(run, step);
    return (struct run_attempt){lane->logical, lane->engine, lane->base, lane->started_ms, lane->due_ms};
}

uint32_t kernel_iteration(const struct run *run, uint32_t step)
{
    return run->route->iteration(run, step);
}

const struct json *kernel_value(const struct run *run, uint32_t step)
{
    return run->nodes ? run->nodes[step].value : NULL;
}

const struct run_blob *kernel_blob(const struct run *run, uint32_t step)
{
    return run->nodes ? run->nodes[step].blob : NULL;
}

void kernel_assume(struct run *run, uint32_t step, enum node_state state, const struct json *value)
{
    bool fits = run->route->suppose(run, step, state, value);
    INVARIANT(fits);
}

struct parents kernel_parents(const struct run *run, uint32_t step)
{
    if (!run->nodes) return (struct parents){0};
    const struct run_node *node = &run->nodes[step];
    return (struct parents){node->waiting, node->success, node->failed, node->skipped, node->tainted_parents};
}

bool run_stops(const struct run *run)
{
    return run->cancelling || run->undoing == UNDO_CANCELLED;
}

bool run_goes(const struct run *run)
{
    return run->status == RUN_STATUS_RUNNING && !run->rotating;
}

uint32_t run_draining(const struct run *run)
{
    uint32_t aside = run->gates + run->events + run->loops;
    INVARIANT(run->in_flight >= aside);
    return run->in_flight - aside;
}

struct standing_in run_standing_in(const struct run *run)
{
    return (struct standing_in){
        .status = run->status,
        .requires_approval = run->start.requires_approval,
        .cancelling = run_stops(run),
        .drains = behaviour_of(run->start.profile)->drains && run->drain_over != run->pause_cycle,
        .driven = true,
        .rotating = run->rotating,
        .busy = run_draining(run),
        .gates = run->gates,
        .events = run->events,
        .delayed = run->delayed,
        .retrying = run->retrying,
        .held = run->held,
    };
}

struct standing run_standing(const struct run *run)
{
    struct standing_in in = run_standing_in(run);
    return standing_of(&in);
}

const char *run_substatus(const struct run *run)
{
    return run_standing(run).substatus;
}

const char *run_fault(const struct run *run)
{
    return run->route->fault(run);
}

void run_verify(const struct run *run)
{
    const char *fault = run_fault(run);

    INVARIANT(!fault);
    bool goes = run->in_flight + run->delayed + run->held > 0 || run->ready_head != PROGRAM_TOP;
    INVARIANT(goes || !run_goes(run) || run->cancelling || undo_open(run)); // K2: it can always go on
}
