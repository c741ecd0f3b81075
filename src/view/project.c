#include "view/project_inside.h"

#include <string.h>

enum { BLOCK = 8 * 1024, PATH_MAX_SIZE = 4096 };
#define SNAPSHOT_MAX ((size_t)512 << 20)

bool project_gap(uint64_t last_seq, uint64_t next_seq)
{
    return view_non_contiguous(last_seq, next_seq);
}

enum project_lag project_lag_class(int64_t lag_ms)
{
    if (lag_ms > PROJECT_LAG_BAD_MS) return PROJECT_LAG_BAD;
    return lag_ms > PROJECT_LAG_OK_MS ? PROJECT_LAG_SLOW : PROJECT_LAG_OK;
}

const char *project_report_name(enum project_report_kind kind)
{
    static const char *const names[] = {
#define X(name, text) #name,
        PROJECT_REPORT_LIST(X)
#undef X
    };
    return (size_t)kind < ARRAY_COUNT(names) ? names[kind] : "";
}

// ---- snapshots

static struct snapshot *draft_make(void)
{
    struct arena arena = arena_of(BLOCK, SNAPSHOT_MAX);
    struct snapshot *draft = ARENA_NEW(&arena, struct snapshot);
    if (!draft) return NULL;
    draft->arena = arena;
    atomic_init(&draft->keepers, 1);
    return draft;
}

static struct snapshot *unless(bool failed, struct snapshot *draft)
{
    if (!failed) return draft;
    snapshot_release(draft);
    return NULL;
}

struct snapshot *draft_new(const struct run_ids *ids, const struct program *program)
{
    struct snapshot *draft = draft_make();
    if (!draft) return NULL;
    bool ok = view_init(&draft->view, &draft->arena, ids) && (!program || view_plan(&draft->view, program));
    return unless(!ok, draft);
}

struct snapshot *draft_of(const struct snapshot *snapshot)
{
    struct snapshot *draft = draft_make();
    return draft ? unless(!view_copy(&snapshot->view, &draft->arena, &draft->view), draft) : NULL;
}

bool draft_seal(struct snapshot *draft)
{
    struct arena scratch SCOPED(arena_release) = arena_of(BLOCK, SNAPSHOT_MAX);
    return view_hash(&draft->view, &scratch, &draft->hash);
}

const struct run_view *snapshot_view(const struct snapshot *snapshot)
{
    return &snapshot->view;
}

struct digest snapshot_hash(const struct snapshot *snapshot)
{
    return snapshot->hash;
}

uint64_t snapshot_seq(const struct snapshot *snapshot)
{
    return snapshot->view.last_seq;
}

// The count of keepers is no part of the value: it is what a snapshot has besides being constant.
static atomic_uint *keepers_of(const struct snapshot *snapshot)
{
    return &((union {
                const struct snapshot *constant;
                struct snapshot *own;
            }){.constant = snapshot})
                .own->keepers;
}

const struct snapshot *snapshot_keep(const struct snapshot *snapshot)
{
    atomic_fetch_add_explicit(keepers_of(snapshot), 1, memory_order_relaxed);
    return snapshot;
}

void snapshot_release(const struct snapshot *snapshot)
{
    if (!snapshot || atomic_fetch_sub_explicit(keepers_of(snapshot), 1, memory_order_acq_rel) != 1) return;
    struct arena arena = snapshot->arena; // the struct itself is in it
    arena_release(&arena);
}

// ---- one event

static bool is_over(const struct step_view *step)
{
    if (step->status == STEP_STATUS_FAILED) return !step->retrying && !step->held;
    return step->status == STEP_STATUS_SUCCESS || step->status == STEP_STATUS_SKIPPED;
}

static bool dependencies_over(const struct run_view *view, struct str path)
{
    const struct program_step *declared = view->program ? view_declared(view->program, path) : NULL;
    if (!declared) return true;
    char text[PATH_MAX_SIZE];
    size_t place = path.len - declared->id.len; // of "loop[2]."
    if (place >= sizeof(text)) return true;     // no path of ours is so long
    memcpy(text, path.ptr, place);
    for (uint32_t k = 0; k < declared->dep_count; k++) {
        struct str id = view->program->steps[declared->deps[k]].id;
        if (place + id.len > sizeof(text)) return true;
        memcpy(text + place, id.ptr, id.len);
        const struct step_view *step = view_step(view, (struct str){text, place + id.len});
        if (step && !is_over(step)) return false;
    }
    return true;
}

static bool has_attempt(const struct run_view *view, const struct moment *moment)
{
    const struct step_view *step = view_step(view, moment->step);
    for (size_t i = 0; step && i < step->attempt_count; i++) {
        if (step->attempts[i].logical == moment->logical) return true;
    }
    return false;
}

// A start before what it depends on is over, a result before its start. A result that was reused (run_ref) has no start.
static bool is_early(const struct run_view *view, const struct moment *moment)
{
    if (moment->kind == MOMENT_STEP_STARTED)
        return !has_attempt(view, moment) && !dependencies_over(view, moment->step);
    return moment->kind == MOMENT_STEP_COMPLETED && moment->run_ref.len == 0 && !has_attempt(view, moment);
}

bool draft_apply(struct snapshot *draft, const struct project_event *event, struct applied *out)
{
    struct run_view *view = &draft->view;
    bool again = event->seq < view->last_seq || (event->seq == view->last_seq && !event->ledger);
    bool flagged = view->inconsistent;
    *out = (struct applied){.prior = view->status, .early = !again && is_early(view, &event->moment)};
    view->inconsistent = false;
    bool ok = view_fold(view, &event->moment, event->seq);
    out->refused = view->inconsistent;
    view->inconsistent = flagged || out->refused;
    out->early = out->early && !out->refused;
    return ok;
}

// ---- the three functions

static const struct snapshot *projected(struct snapshot *draft, const struct project_event *events, size_t count)
{
    struct applied ignored;
    for (size_t i = 0; draft && i < count; i++) draft = unless(!draft_apply(draft, &events[i], &ignored), draft);
    return draft ? unless(!draft_seal(draft), draft) : NULL;
}

const struct snapshot *project_run(const struct run_ids *ids, const struct program *program,
                                   const struct project_event *events, size_t count)
{
    return projected(draft_new(ids, program), events, count);
}

const struct snapshot *project_more(const struct snapshot *snapshot, const struct project_event *events, size_t count)
{
    return projected(draft_of(snapshot), events, count);
}
