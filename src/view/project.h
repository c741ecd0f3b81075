// The projector: events of one run to snapshots (ES-1.5). Three pure functions, and the loop around them as a machine that
// gets what was fetched and says what to fetch next; its driver owns the clock and the store.
//
//   P1 A snapshot never changes: every projection makes a new one (ES-1.4c). It may be shared by threads; the last
//      snapshot_release frees it.
//   P2 project_more on a snapshot gives what project_run gives on all events (V1).
//   P3 An event is applied once, in the order of numbers. A number is never made up, a gap is never an error (ES-1.5-1).
//   P4 A gap that was seen is reported once and read again once. What the log then says is taken (C-14): the numbers are missing
//      for good, the watermark goes past them, the run is not STALE any more.
//   P5 A number that turns up in such a gap afterwards throws the snapshot away: everything is read again (C-13 FULL). The same
//      holds while the log is being read again, for the gaps that the reading is past.
//
//            fetched, contiguous            gap: STALE, reported once
//           +---> apply, publish    FOLLOW ----------------------> RESYNC  FROM_SNAPSHOT, or FULL without a snapshot
//           +--------------------------+    <----------------------   |
//                                       the answer reaches past the gap: apply, publish, not STALE
//   A fetch that failed is tried again from the watermark, later each time (100 ms to 10 s).
//
// owner: the thread that drives the projector; snapshots that it published may be kept by any thread.
#ifndef CAIRN_VIEW_PROJECT_H
#define CAIRN_VIEW_PROJECT_H

#include "view/view.h"

struct project_event {
    uint64_t seq;         // for an entry of the ledger the number of the event before it
    bool ledger;          // has no number of its own: never part of a gap
    struct moment moment; // MOMENT_UNKNOWN: a type that this version does not know
    struct str id, type;  // eventId and the word in the log; may be empty
    int64_t persisted_ms;
};

struct snapshot;
const struct run_view *snapshot_view(const struct snapshot *snapshot);
struct digest snapshot_hash(const struct snapshot *snapshot); // of the logical state (view_hash)
uint64_t snapshot_seq(const struct snapshot *snapshot);       // the watermark: highest number applied (ES-1.5-2)
const struct snapshot *snapshot_keep(const struct snapshot *snapshot);
void snapshot_release(const struct snapshot *snapshot); // NULL does nothing

// projectRun. `program` may be NULL; else it must outlive the snapshot. NULL: out of memory.
const struct snapshot *project_run(const struct run_ids *ids, const struct program *program,
                                   const struct project_event *events, size_t count) MUST_CHECK;
// incrementalProject: a new snapshot; the old one stays as it is and stays the caller's. NULL: out of memory.
const struct snapshot *project_more(const struct snapshot *snapshot, const struct project_event *events,
                                    size_t count) MUST_CHECK;
// detectNonContiguous: true iff next > last + 1.
bool project_gap(uint64_t last_seq, uint64_t next_seq);

// ---- what a projector reports besides snapshots

// X(NAME, what it means)
#define PROJECT_REPORT_LIST(X)                                                                                         \
    X(GAP, "numbers are missing between two events")                                                                   \
    X(GAP_CLOSED, "the log was read again; its answer was taken")                                                      \
    X(LAG_HIGH, "the newest event waits for more than 5 s")                                                            \
    X(LAG_NORMAL, "the projection has caught up")                                                                      \
    X(INVALID, "an event that the state machine does not allow; once per event")                                       \
    X(CAUSAL, "an event came before its cause; once per event")                                                        \
    X(UNKNOWN_TYPE, "an event of an unknown type: the watermark went past it")                                         \
    X(REBUILD, "a number came late; everything is read again")                                                         \
    X(FAILED, "a fetch failed; it is tried again")

enum project_report_kind {
#define X(name, text) PROJECT_##name,
    PROJECT_REPORT_LIST(X)
#undef X
};
const char *project_report_name(enum project_report_kind kind); // "GAP"

struct project_report {
    enum project_report_kind kind;
    const struct run_ids *ids;
    uint64_t seq;   // of the event; of a gap the last number before it
    uint64_t until; // of a gap the first number after it
    struct str event_id, type, step;
    enum run_status prior; // before the event
    int64_t at_ms;         // the driver's time
    int64_t lag_ms;
    const char *text; // one line for people; valid during the call
};

enum project_lag { PROJECT_LAG_OK = 1 /* at most 1 s */, PROJECT_LAG_SLOW, PROJECT_LAG_BAD /* more than 5 s */ };
enum project_lag project_lag_class(int64_t lag_ms); // ES-1.5-5a

#define PROJECT_LAG_OK_MS 1000
#define PROJECT_LAG_BAD_MS 5000

// ---- the loop

enum project_want {
    PROJECT_FETCH = 1,     // the events after `after`: projector_fetched
    PROJECT_FROM_SNAPSHOT, // the same, as a resync: projector_resynced, page by page
    PROJECT_FULL,          // all events of the run: projector_resynced, page by page
};

struct project_request {
    enum project_want want;
    uint64_t after;
    int64_t not_before_ms; // 0 = now
};

struct project_sink {
    void *context;
    void (*publish)(void *context, const struct snapshot *snapshot);    // to be kept with snapshot_keep; may be NULL
    void (*report)(void *context, const struct project_report *report); // may be NULL
};

struct projector;

// Begins without events, or at the watermark of `from` (a snapshot of this run that was kept; may be NULL). NULL: out of memory.
struct projector *projector_open(const struct run_ids *ids, const struct program *program, const struct snapshot *from,
                                 int64_t now_ms, const struct project_sink *sink) MUST_CHECK;
void projector_close(struct projector *projector); // NULL does nothing

struct project_request projector_next(const struct projector *projector);
// NULL before the first event. It has its hash when there is a sink to publish it to.
const struct snapshot *projector_snapshot(const struct projector *projector);

// All of these return false when memory ran out: the projector is then of no use and must be closed.
//
// What a fetch brought, or what was pushed: ascending or not, seen before or not. It is in the store: a page that is read
// afterwards has it.
bool projector_fetched(struct projector *projector, const struct project_event *events, size_t count,
                       int64_t now_ms) MUST_CHECK;
// A page of the answer to a resync, ascending from its beginning; `more` when another one follows.
bool projector_resynced(struct projector *projector, const struct project_event *events, size_t count, bool more,
                        int64_t now_ms) MUST_CHECK;
void projector_failed(struct projector *projector, const struct error *why, int64_t now_ms);
// There is an event `seq` in the store since `persisted_ms`: what lag is measured against.
void projector_head(struct projector *projector, uint64_t seq, int64_t persisted_ms);
void projector_time(struct projector *projector, int64_t now_ms);

// How long the oldest event that is not in the snapshot has waited; 0: there is none.
int64_t projector_lag_ms(const struct projector *projector, int64_t now_ms);

#endif
