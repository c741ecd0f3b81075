// Why a step, or a run, is in the state it is in, now or at any past moment; and where two runs differ. From the log alone:
// the document that the run was started with, its moments, its decision records.
//
//   moments --explain_fold--> the kernel's own run, and a note per step --explain_step--> JSON (docs/format/why.md)
//
// There is no second implementation of any rule here. Before a moment is folded, the kernel's functions (kernel_join,
// kernel_retry, kernel_loop, kernel_end) are asked what they would decide; the answer is held against the moment and kept.
// So an explanation shows the values that the decision was made on, and `reproduced` says that deciding again gives what the
// log records. A step inside a loop is a step of its own in every iteration, so past iterations can be asked for too.
//
// owner: the function that opened it; one thread. The program and the strings of `ids` are borrowed.
#ifndef CAIRN_EXPLAIN_EXPLAIN_H
#define CAIRN_EXPLAIN_EXPLAIN_H

#include "kernel/kernel.h"

struct explain;

// X(NAME, word): what people call the state of a step. Stable.
#define STATE_LIST(X)                                                                                                  \
    X(WAITING, "waiting")                                                                                              \
    X(QUEUED, "queued")                                                                                                \
    X(RUNNING, "running")                                                                                              \
    X(APPROVAL, "approval")                                                                                            \
    X(RETRYING, "retrying")                                                                                            \
    X(HELD, "held")                                                                                                    \
    X(DONE, "done")                                                                                                    \
    X(REUSED, "reused")                                                                                                \
    X(SKIPPED, "skipped")                                                                                              \
    X(FAILED, "failed")                                                                                                \
    X(CANCELLED, "cancelled")                                                                                          \
    X(NOT_RUN, "not_run")
enum explain_state {
#define X(name, word) STATE_##name,
    STATE_FIRST_UNUSED = 0,
    STATE_LIST(X)
#undef X
};
const char *explain_state_name(enum explain_state state);

enum code explain_open(const struct program *program, const struct run_ids *ids, const struct kernel_env *env,
                       struct explain **out, struct error *err) MUST_CHECK;
void explain_close(struct explain *explain);
// Moments in the order they happened; `seq` is the number of the event, for an entry of the ledger that of the event before.
// E_CORRUPT: the log cannot be (see kernel_fold). E_NOMEM.
enum code explain_fold(struct explain *explain, const struct moment *moment, uint64_t seq,
                       struct error *err) MUST_CHECK;
// A decision record of the ledger: the only trace of a signal that came after the end.
enum code explain_decision(struct explain *explain, const struct json *record, uint64_t seq,
                           struct error *err) MUST_CHECK;

// Before the first moment: of that step of a playbook what its tasks were given is noted, `whole`: the values (of an empty path: of all
// steps); else only what was not defined, which explain_step then tells. Of another document: nothing. E_NOMEM.
enum code explain_watch(struct explain *explain, struct str step, bool whole, struct error *err) MUST_CHECK;
// What the tasks of a playbook's step were given ("each", "each:run:2", "each[3]"; those that began, where it is watched whole) and
// would be given now: {runId, stepId, at, visit?, given?, ahead?, leftOut?} (docs/format/playbook.md). E_NOT_FOUND, E_NOMEM, and what
// a result beside the log gives.
enum code explain_given(const struct explain *e, struct str path, struct arena *arena, struct json *out,
                        struct error *err) MUST_CHECK;

// What only the present knows: {attempts: [...], queue: {...}}, each may be missing (docs/format/why.md, "Now"). Borrowed as long as
// questions are asked.
void explain_present(struct explain *explain, const struct json *present);

// Paths that can be asked for: the steps of the document with the iteration they are in, then past iterations.
// *cursor starts at 0; ptr NULL: the end, or out of memory.
struct str explain_path(const struct explain *explain, size_t *cursor, struct arena *arena);
// Whether explain_path comes to this path.
bool explain_lists(const struct explain *explain, struct str path, struct arena *arena);

// The answer, in `arena`; it borrows the explain and the program. `now_ms` is when it is asked, for "in 3m"; 0 = about a past
// moment: no such words, and no commands to go on with. E_NOT_FOUND: the run has no such step. E_NOMEM.
enum code explain_step(const struct explain *explain, struct str path, int64_t now_ms, struct arena *arena,
                       struct json *out, struct error *err) MUST_CHECK;
enum code explain_run(const struct explain *explain, int64_t now_ms, struct arena *arena, struct json *out,
                      struct error *err) MUST_CHECK;

// ---- diff
enum { DIFF_STEPS = 1, DIFF_OUTPUTS = 2, DIFF_TIMING = 4 }; // DIFF_STEPS: document, inputs and path
// Two runs, or two moments of one. `parts` says what is compared; *same is true when nothing in them differs. Timing is
// shown when it is among the parts, and counts only when it is the only one.
enum code explain_diff(const struct explain *a, const struct explain *b, unsigned parts, struct arena *arena,
                       struct json *out, bool *same, struct error *err) MUST_CHECK;

#endif
