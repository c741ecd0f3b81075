// The model: what the outside world knows about every run, and what must hold of it after every act.
//
//  E1  when a tool starts, the event that ordered that attempt has been acknowledged by the store (and the lease was ours)
//  E2  an answer to a signal is given after its decision record is acknowledged; a told event likewise
//  E3  a signal to a run that nobody drives is decided, and nothing of the run starts (ADR 0013)
//  S2  after a crash the store holds every acknowledged record, and of the batch under way nothing or
//  S3  all of it; nothing else
//  S4  events are numbered 1, 2, 3, …
//  S6  a holder that lost its lease stores nothing and starts nothing
//  I5  acknowledged bytes never change
//  I12 a completed step never starts again          I13 attempts rise, k is never used twice
//  I14 one outcome per (step, L)                    I15 one terminal event and nothing after it
//  I17 when faults stop, every run ends             I22 a signal is decided and applied once
//  I23 a posted signal is decided                   I25 nothing starts between RunPaused and RunResumed
//  K1  the log folded record by record equals the live state; the engine's fold from scratch equals it after a restart
//  K7  a cancelled run ends after its children
//  K5  a step starts when its rule says so; a run ends as its steps did (a reference model of rules and loops)
//  V1  a view folded record by record equals the view folded from the start
//  W1  every decision in the log, asked again with the state of its time, comes out as recorded; every step has an answer
//  S9  store_verify finds nothing
//  S15 notes are as acknowledged; those of the batch under way are there with its records, or not at all (S3)
//  S16 the feed tells every event once, in the order of each run; what was seen at a position stays there
//  F1  a fork begins with what its source recorded up to the event, whole and in order, and starts none of it once more
//  G1  segments: full at their limit and not long after, numbered, nothing begins or ends in one that is full (checker_segment.c)
//  RE-5 the end of a run is of the execution, which is the segment, that the run is in
// Of playbooks (checker_net.c, a model of the net written apart from src/kernel):
//  N0  the end is the one that the run comes to when nothing crashes
//  N1  a token is taken once: a step is visited for a token that arrived, and a run that ends has none left
//  N2  a step where branches come together is not visited while one that can lead there is under way
//  N3  every iteration begins and ends once, no more of them at once than the loop allows, all before the loop
//  N4  attempts of a task rise by one, within the limit of its rules; each has one outcome; task.done comes once, at the end
//  N5  a walk goes from task to task as its decisions say; the step ends after it, and is routed once
//  N6  a run fails when a failed step was not taken further, and only then; nothing is in flight at its end
// owner: one world.
#ifndef CAIRN_TEST_SIM_CHECKER_H
#define CAIRN_TEST_SIM_CHECKER_H

#include "engine/engine.h"
#include "store/backend.h"
#include "view/view.h"

struct model_record {
    bool ledger;
    uint64_t seq;   // of the event, or of the ledger entry
    uint64_t after; // ledger: event before it
    struct str kind, signal_id, bytes;
};

struct model_list {
    struct model_record *items;
    size_t count, capacity;
};

struct model_step {
    struct str path;
    uint32_t logical, engine; // last in the log
    uint64_t ordered_seq;     // event that ordered it
    uint32_t outcome;         // logical attempt of the last outcome; 0 = none
    enum node_state
        state;       // as the log tells it: RUNNING, SUCCESS, FAILED, SKIPPED, HELD = failed and to be tried again
    bool value_true; // the result is JSON true
    bool given;      // by a person, whatever its rule says
    uint32_t started_logical, started_engine; // last that a tool was given
    struct str skip_reason;
    uint32_t list_logical; // attempt whose list of child runs was recorded last; 0 = none
    uint32_t list_total, list_most;
    uint64_t list_ended; // its members, by bit
};

struct model_past { // a moment of the source that the fork must begin with
    struct moment moment;
    bool open;     // not over at the event: its clock starts anew
    bool may_miss; // and nobody outside knows of it: the fork may decide it anew
};

struct model_fork {
    struct str run, source, given;
    uint64_t at;
    struct model_past *items;
    size_t count, capacity;
    size_t next; // found so far
    struct model_fork *next_fork;
};

struct model_net;

struct model_blob {
    struct digest sha256;
    struct str bytes;
};

struct model_run {
    struct model_fork *fork; // NULL: it is none
    struct model_net *net;   // of a playbook; NULL otherwise
    bool swayed;             // a tool, or somebody, made it end otherwise than it would have
    struct run_ids ids;
    enum vocabulary vocabulary;
    const struct program *program;
    struct str parent_run, original_run;
    uint64_t created_position;
    struct model_list events, ledger;
    struct model_step *steps;
    size_t step_count, step_capacity;
    struct str *signals; // decided
    size_t signal_count, signal_capacity;
    struct str *applied; // signals that paused or resumed the run
    size_t applied_count, applied_capacity;
    struct run *shadow; // folded record by record
    struct buf dump;    // of the shadow with so many records:
    size_t dumped_at;
    struct run_view view;
    bool paused, cancel_asked, terminal;
    bool segment_full;      // and the next has not begun
    uint32_t segment;       // segments that are over
    uint64_t segment_after; // events when this one began
    uint64_t paused_seq;
    enum run_status status;
    uint64_t fed;   // events of it that the feed has told
    struct str *outbox; // moments that are durable in the outbox and not in the log, in order
    size_t outbox_count, outbox_capacity;
    // Records when an engine that was taken for dead gave up what it had there; 0: none did. The one that has the run now may have
    // found it, and is ahead of the log until the next record.
    size_t outbox_lost_at;
    bool of_zombie; // made by the engine that lost the others: this one is its own
};

struct model_draft { // a record of the batch under way
    struct model_run *run;
    struct model_record record;
};

struct model_note {
    struct str space, key, value;
    uint64_t version; // 0: gone
};

struct model_feed {
    uint64_t position;
    const struct model_run *run;
    uint64_t seq;
};

struct checker {
    struct arena arena;
    struct arena scratch;
    struct model_run **runs;
    size_t run_count, run_capacity;
    struct model_draft *drafts;
    size_t draft_count, draft_capacity;
    struct model_note *notes, *note_drafts; // the second: of the batch under way
    size_t note_count, note_capacity, note_draft_count, note_draft_capacity;
    struct model_feed *feed;
    size_t feed_count, feed_capacity;
    struct model_blob *blobs; // of every batch that was offered
    size_t blob_count, blob_capacity;
    struct kernel_env env;    // which finds them
    struct model_fork *forks; // that were asked for
    bool unknown;             // the batch under way got no answer
    uint64_t segment_events;  // at which a segment is full
    uint64_t rotations;       // that were seen
    bool visited;             // somebody decides signals, nobody drives the runs
    const char *failed;       // name of the first invariant that did not hold; NULL = none
    char message[600];
    uint64_t checks;
};

void checker_init(struct checker *checker);
void checker_release(struct checker *checker);
// Remembers the first failure only.
void checker_fail(struct checker *checker, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);
struct model_run *checker_run(const struct checker *checker, struct str run); // NULL when nothing of it is acknowledged

// Around a commit: what is about to be stored, then what became of it.
void checker_offer(struct checker *checker, const struct commit *commit);
void checker_acked(struct checker *checker);
void checker_refused(struct checker *checker);
void checker_unknown(struct checker *checker);

const struct model_note *checker_note(const struct checker *checker, struct str space, struct str key); // or NULL
void checker_feed(struct checker *checker, struct store *store); // a reader looks what is new

void checker_tool_start(struct checker *checker, const struct tool_request *request);
void checker_told(struct checker *checker, const struct engine_event *event);
void checker_decision(struct checker *checker, const struct engine_decision *decision);
// O1: what the outbox has of a run is what its log goes on with, in order. `may_lose`: another engine has taken the runs.
void checker_outbox(struct checker *checker, const struct engine_outbox *news, bool may_lose);
void checker_outbox_end(struct checker *checker);
void checker_live(struct checker *checker, const struct engine *engine);
// The store was opened again after a crash.
void checker_reopened(struct checker *checker, struct store *store);
void checker_end(struct checker *checker, struct store *store, bool verify);

// `run` will be forked from `source` after event `at`; `again`: steps of the top scope (bits) that are not taken over.
struct model_fork *checker_fork(struct checker *checker, struct str run, const struct model_run *source, uint64_t at,
                                uint64_t again);

// The end of a playbook's run, as a text: how it ended, its variables, what each step gave. In `arena`.
struct str checker_net_end(const struct checker *checker, const struct model_run *run, struct arena *arena);
// The run has ended as `expected` says (N0).
void checker_net_same(struct checker *checker, const struct model_run *run, struct str expected);

// Private to checker*.c
struct model_net *net_model_new(struct checker *checker, const struct program *program);
void net_model_absorb(struct checker *checker, struct model_run *run, const struct moment *m, uint64_t seq);
void net_model_start(struct checker *checker, struct model_run *run, const struct tool_request *request);
void model_segment(struct checker *checker, struct model_run *run, const struct moment *m);
void model_offer_notes(struct checker *checker, const struct commit *commit);
void model_absorb_notes(struct checker *checker);
int model_find_notes(struct checker *checker, struct store *store);
void model_check_notes(struct checker *checker, struct store *store);
void model_check_feed(struct checker *checker, struct store *store);
bool model_check_past(struct checker *checker, const struct model_run *run, const struct moment *m); // true: it is past
bool model_given(const struct checker *checker, const struct model_run *run, const struct moment *m); // by a person
void model_check_forked(struct checker *checker);                                                     // after a batch
void model_check_fork_start(struct checker *checker, const struct model_run *run, const struct tool_request *request);
void model_absorb(struct checker *checker, struct model_run *run, const struct model_record *record);
struct model_step *model_step(const struct model_run *run, struct str path);
// checker_list.c
void model_list_started(struct checker *checker, const struct model_run *run, struct model_step *step,
                        const struct moment *m);
void model_child_ended(struct checker *checker, const struct model_run *run, struct model_step *step,
                       const struct moment *m);
void model_check_member(struct checker *checker, const struct model_run *child); // it begins
void model_check_end(struct checker *checker, struct model_run *run, const struct moment *moment);
void model_check_loop(struct checker *checker, const struct model_run *run, const struct model_step *loop,
                      uint32_t iteration, bool done);

#endif
