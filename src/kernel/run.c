// A run in memory: making it, finding steps in it, checking it.
#include "kernel/net_inside.h"

// The first block holds a small run, its steps and the texts it was started with: most runs are waiting, and need no more.
#define RUN_ARENA_TEXTS 256
#define RUN_ARENA_BLOCK 4096
#define RUN_ARENA_LIMIT ((size_t)1 << 30) // 10,000 outputs of 64 KiB must fit

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
    size_t block = sizeof(struct run) + program->step_count * sizeof(struct run_step) + RUN_ARENA_TEXTS;
    arena_init(&arena, block < RUN_ARENA_BLOCK ? block : RUN_ARENA_BLOCK, RUN_ARENA_LIMIT);
    struct run *run = ARENA_NEW(&arena, struct run);
    struct run_step *steps = run ? ARENA_ARRAY(&arena, program->step_count, struct run_step) : NULL;
    if (!steps) {
        arena_release(&arena);
        return NULL;
    }
    run->program = program;
    run->status = RUN_STATUS_PENDING;
    run->steps = steps;
    run->counts.total = program->top_count;
    run->ready_head = run->ready_tail = PROGRAM_TOP;
    run->ids = *ids;
    run->arena = arena;
    if (program->net) {
        for (uint32_t i = 0; i < program->step_count; i++) steps[i].state = NODE_WAITING;
        run->net = net_new(run);
        if (run->net) return run;
        arena = run->arena; // the run lives inside it
        arena_release(&arena);
        return NULL;
    }
    for (uint32_t i = 0; i < program->step_count; i++) {
        struct run_step *step = &steps[i];
        step->state = NODE_WAITING;
        step->waiting = program->steps[i].dep_count;
        if (program->steps[i].scope != PROGRAM_TOP || step->waiting > 0) continue;
        step->next_ready = READY_LAST;
        if (run->ready_tail == PROGRAM_TOP)
            run->ready_head = i;
        else
            steps[run->ready_tail].next_ready = READY_LINK(i);
        run->ready_tail = i;
    }
    return run;
}

void run_free(struct run *run)
{
    if (!run) return;
    for (uint32_t i = 0; i < run->program->step_count; i++)
        if (run->steps[i].outputs) arena_release(run->steps[i].outputs);
    if (run->net) net_free(run);
    struct arena arena = run->arena; // the run lives inside it
    arena_release(&arena);
}

struct str kernel_path(const struct run *run, uint32_t step, struct arena *arena)
{
    if (run->net) return net_path(run, step, arena);
    INVARIANT(step < run->program->step_count);
    const struct program_step *ps = &run->program->steps[step];
    if (ps->scope == PROGRAM_TOP) return ps->id;
    struct str outer = kernel_path(run, ps->scope, arena);
    if (!outer.ptr) return outer;
    struct buf buf;
    buf_init(&buf, 4096);
    buf_add(&buf, outer);
    buf_byte(&buf, '[');
    buf_int(&buf, run->steps[ps->scope].iteration);
    buf_text(&buf, "].");
    buf_add(&buf, ps->id);
    struct str path = {0};
    if (buf_ok(&buf)) path = arena_copy(arena, buf_str(&buf));
    buf_release(&buf);
    return path;
}

static enum path_time time_of(const struct run_step *loop, int64_t iteration)
{
    if (loop->state == NODE_SUCCESS || loop->state == NODE_FAILED || loop->state == NODE_SKIPPED) return PATH_OVER;
    if (loop->state != NODE_RUNNING || iteration > (int64_t)loop->iteration) return PATH_TO_COME;
    return iteration < (int64_t)loop->iteration ? PATH_OVER : PATH_NOW;
}

uint32_t find_path(const struct run *run, struct str path, enum path_time *time)
{
    uint32_t scope = PROGRAM_TOP;
    *time = PATH_NOW;
    if (run->net) return net_find(run, path);
    for (;;) {
        size_t bracket = str_find(path, '[', 0);
        uint32_t step = program_find(run->program, scope, str_slice(path, 0, bracket));
        if (step == PROGRAM_TOP || bracket == path.len) return step;
        size_t close = str_find(path, ']', bracket);
        int64_t iteration;
        if (close + 1 >= path.len || path.ptr[close + 1] != '.') return PROGRAM_TOP;
        if (!str_int64(str_slice(path, bracket + 1, close), &iteration)) return PROGRAM_TOP;
        if (*time == PATH_NOW) *time = time_of(&run->steps[step], iteration);
        scope = step;
        path = str_slice(path, close + 2, path.len);
    }
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
    struct buf buf;
    buf_init(&buf, 8192);
    buf_add(&buf, run);
    buf_byte(&buf, '.');
    buf_add(&buf, path);
    buf_byte(&buf, '.');
    buf_int(&buf, logical ? logical : 1);
    return valid_id(&buf, arena);
}

bool kernel_fans_out(const struct run *run, uint32_t step)
{
    return !run->net && step < run->program->step_count && run->program->steps[step].kind == STEP_SUBRUN &&
           json_key(&run->program->steps[step].with, "fanOut");
}

struct str kernel_fan_child(struct str group, uint32_t index, struct arena *arena)
{
    struct buf buf;
    buf_init(&buf, 256);
    buf_add(&buf, group);
    buf_byte(&buf, '.');
    buf_int(&buf, index + 1);
    return valid_id(&buf, arena);
}

struct str kernel_child_id(const struct run *run, uint32_t step, struct arena *arena)
{
    struct str path = kernel_path(run, step, arena);
    return path.ptr ? kernel_child_name(run->ids.run, path, run->steps[step].logical, arena) : path;
}

uint32_t run_draining(const struct run *run)
{
    return run->in_flight - run->gates - run->loops;
}

const char *run_substatus_stored(const struct run *run)
{
    if (run_status_terminal(run->status)) return "";
    if (run->cancelling) return "CANCELLING";
    bool paused = run->status == RUN_STATUS_PAUSED;
    bool drains = behaviour_of(run->start.profile)->drains && run->drain_over != run->pause_cycle;
    const char *busy = paused && drains ? "DRAINING" : "";
    if (run->held + run->retrying > 0 && !paused) return "RETRYING";
    if (run->status == RUN_STATUS_APPROVED) return ""; // it waits for its place
    if (run->status == RUN_STATUS_PENDING) return run->start.requires_approval ? "WAITING_APPROVAL" : "";
    if (run_draining(run) > 0) return busy;
    return run->gates > 0 && (paused || run->delayed == 0) ? "WAITING_APPROVAL" : "";
}

const char *run_substatus(const struct run *run)
{
    return run->recovering && !run_status_terminal(run->status) ? "RECOVERING" : run_substatus_stored(run);
}

void run_verify(const struct run *run)
{
    if (run->net) {
        net_verify(run);
        return;
    }
    uint32_t in_flight = 0, gates = 0, loops = 0, delayed = 0, retrying = 0, held = 0;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct run_step *step = &run->steps[i];
        const struct program_step *ps = &run->program->steps[i];
        in_flight += step->state == NODE_RUNNING;
        gates += step->state == NODE_RUNNING && ps->kind == STEP_APPROVAL;
        loops += step->state == NODE_RUNNING && ps->kind == STEP_LOOP;
        delayed += step->state == NODE_DELAYED;
        retrying += step->again;
        held += step->state == NODE_HELD;
        INVARIANT(step->state >= NODE_WAITING && step->state <= NODE_SKIPPED);
        INVARIANT(step->waiting <= ps->dep_count);
        INVARIANT(step->success + step->failed + step->skipped + step->waiting == ps->dep_count);
        if (step->state == NODE_RUNNING) INVARIANT(step->waiting == 0); // K5
        if (step->state == NODE_RUNNING) INVARIANT(step->logical >= 1 && step->engine >= 1);
        if (step->live) INVARIANT(step->state == NODE_RUNNING);
        if (step->again) INVARIANT(step->state == NODE_DELAYED);
        if (step->state == NODE_RUNNING && ps->scope != PROGRAM_TOP)
            INVARIANT(run->steps[ps->scope].state == NODE_RUNNING && run->steps[ps->scope].iteration > 0);
    }
    INVARIANT(in_flight == run->in_flight && gates == run->gates && loops == run->loops);
    INVARIANT(delayed == run->delayed && retrying == run->retrying);
    INVARIANT(held == run->held);
    INVARIANT(run->counts.completed + run->counts.failed + run->counts.skipped <= run->counts.total);
    if (run->status != RUN_STATUS_RUNNING || run->cancelling) return;
    INVARIANT(in_flight + delayed + held > 0 || run->ready_head != PROGRAM_TOP); // K2: it can always go on
}
