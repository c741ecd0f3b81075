// Projections: moments to what a reader wants. A view is a fold; it may be thrown away and made again at any time and
// incremental folding equals folding from the start (V1).
//
// Unknown moments advance the watermark only. A moment that the state machine does not allow marks the view inconsistent
// and changes nothing else. A moment that was folded before changes nothing, whatever number it comes with (C-10).
// owner: the function that initialised it.
//
//            RunApproved
//   PENDING -------------> APPROVED        RunPaused        RunCompleted
//      |  RunStarted          | RunStarted   <------>        RunFailed     COMPLETED
//      +----------------------+---> RUNNING   PAUSED  ---------------->    FAILED
//      (no gate)                               | RunCancelled              CANCELLED, from any state that has not ended
//
// FAILED is also reached from PENDING and APPROVED (C-15); from PAUSED only CANCELLED.
#ifndef CAIRN_VIEW_VIEW_H
#define CAIRN_VIEW_VIEW_H

#include "contract/standing.h"
#include "base/map.h"
#include "contract/contract.h"
#include "program/program.h"

// One physical attempt: a redispatch after a crash adds one with the same logical number and leaves the one before without
// an end, because nobody knows when it died.
struct attempt_view {
    uint32_t logical, engine;
    int64_t started_ms, ended_ms; // of its events; 0 = not known
    int64_t began_ms; // when the work began, which may have waited for a place; as long as that is not known, started_ms
    bool ended;
    struct fault fault; // of a failed attempt
};

// Playbooks: the runs of one task in one visit of a step.
struct task_view {
    struct str label;
    uint32_t runs, attempts, done, failed;
    uint32_t in_flight; // attempts under way
    uint32_t events;    // of these, waiting for an event
    struct fault fault; // of the last that failed
};

struct loop_view {
    bool known; // the log has said so
    uint32_t total, started, done, failed; // iterations
};

struct step_view {
    struct str id; // of a playbook's step from the second visit on: <name>:run:<visit> (C-65)
    enum step_status status;
    uint32_t logical, engine;
    int64_t started_ms, ended_ms; // of the first attempt, of the last; 0 = not yet
    int64_t began_ms;             // the work of the first attempt; durations count from here
    const struct json *place;     // view_present: where its attempt is now; NULL: not known
    bool queued;                  // there it waits for a slot or a worker
    int64_t due_ms;               // not before (between attempts), wake or approval deadline (while running)
    struct fault fault;           // last failure
    struct str skip_reason, skip_detail;
    struct json value; // result, type 0 = none
    struct digest blob;
    bool has_blob;
    bool truncated; // the output was longer than is kept
    uint64_t blob_size;
    struct json artifacts;
    struct str child_run, actor, reused_from;
    struct attempt_view *attempts;
    size_t attempt_count, attempt_capacity;
    uint32_t iteration; // loops: last iteration started
    uint32_t visit;     // playbooks; 0: another document
    struct loop_view loop;
    struct task_view *tasks; // in order of first appearance
    size_t task_count, task_capacity;
    uint32_t *waits; // iterations (0: the visit itself) in which a task waits for its next attempt after one that failed
    size_t wait_count, wait_capacity;
    bool held;           // failed for good, run waits for an operator (known after view_plan)
    bool retrying;       // FAILED, and another attempt follows by itself
    bool gate, event, holds; // from the program: an approval step, one that waits for an event; on_failure is hold
    struct str event_name, event_correlation; // what its last attempt waits, or waited, for; empty: it did not
    bool cancels, around; // from the program: its end is that of the run; a loop
    uint64_t failed_seq; // number of the moment that failed it for good; 0 = none
};

struct run_view {
    struct arena *arena; // everything below lives here
    struct run_ids ids;
    struct start_facts start;
    enum run_status status;
    bool stale; // set and cleared by a reader that saw a gap and reads again (ES-1.1h); a fold never looks at it
    bool inconsistent;
    const struct program *program; // of view_plan; borrowed
    uint32_t seen;                 // moments of the run that were folded, one bit each
    uint64_t last_seq;
    int64_t queued_ms, started_ms, ended_ms, updated_ms;
    struct step_view *steps; // order of first appearance; view_plan puts the program's steps first
    size_t step_count, step_capacity;
    struct map step_index;
    uint32_t running_count, failed_count, success_count, skipped_count;
    struct fault fault; // root cause of RUN_FAILED
    struct str failed_step, cancel_reason, pause_reason;
    struct str cancel_actor, pause_actor; // who asked for it, as far as the log says
    uint32_t pause_cycle, resume_cycle;
    uint32_t drain_over; // pause cycle whose time for draining ran out
    bool cancelling;     // accepted, and the end is to come (a cancel step: known after view_plan)
    bool rotating;       // its segment is full, and the next has not begun (ADR 0035)
    uint32_t segment;    // the one that it is in; 0 = the first, and nothing was said of it
    uint64_t segment_seq; // the event before that began
};

bool view_init(struct run_view *view, struct arena *arena, const struct run_ids *ids) MUST_CHECK;
// Adds the steps of the program's top scope as PENDING, so that a reader sees what is still to come. Before the first fold;
// the program must outlive the view.
bool view_plan(struct run_view *view, const struct program *program) MUST_CHECK;
// Copies what it keeps into the view's arena. False when memory ran out (then the view is of no use any more).
// `seq` is the moment's number in the log; for an entry of the ledger the number of the event before it. A number that was
// folded before is passed over.
bool view_fold(struct run_view *view, const struct moment *moment, uint64_t seq) MUST_CHECK;
// A view of its own: it shares nothing with `from` but the program. False when memory ran out.
bool view_copy(const struct run_view *from, struct arena *arena, struct run_view *to) MUST_CHECK;
const struct step_view *view_step(const struct run_view *view, struct str id);
// What only the present knows (docs/format/why.md, "Now"): which steps wait for a slot or a worker, since when others are executed.
// Borrowed.
void view_present(struct run_view *view, const struct json *present);
bool view_non_contiguous(uint64_t last_seq, uint64_t next_seq); // ES-1.5c: next > last + 1
enum vocabulary view_vocabulary(const struct run_view *view);   // of the run's document; RUN before that is known
const char *view_substatus(const struct run_view *view);
struct standing_in view_standing_in(const struct run_view *view); // as run_standing_in says it of the same events
// Their `message`: what the run waits for, why it failed, was paused or cancelled; "" when there is nothing to say. False when memory
// ran out.
bool view_message(const struct run_view *view, struct str substatus, struct arena *arena, struct str *out) MUST_CHECK;
uint32_t view_failed_count(const struct run_view *view); // of a cancelled run without the steps that its end stopped
// What is going on, for lists (docs/format/api.md): {state, text, detail?, by?, role?, due?, parts}; null of a run that
// is fine. Only `detail` holds what people or programs wrote, but for names. False when memory ran out. Borrows the view.
bool view_headline(const struct run_view *view, struct arena *arena, struct json *out) MUST_CHECK;
// RunSnapshot (ES-1.4) as JSON, camelCase.
bool view_json(const struct run_view *view, struct arena *arena, struct json *out) MUST_CHECK;
// SHA-256 over the canonical logical state (C-21, upstream's snapshot hash).
bool view_hash(const struct run_view *view, struct arena *arena, struct digest *out) MUST_CHECK;

#endif
