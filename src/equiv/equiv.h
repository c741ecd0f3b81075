// One document, one script, several hosts: do they record the same? (docs/format/equiv.md, ADR 0046)
//
//   script --host_play--> equiv_log (canonical lines of the run and its child runs) --equiv_compare--> equiv_difference
//
// A host is a row of equiv.c: today an engine of this process over some store; one in a process of its own, whose clock is ours and whose
// attempts come to us, is played through a struct trial_host (trial.h). The script is the same for all, time is virtual on all, and so are
// answers and signals: what differs is the host's doing.
//
// The first host is the one that the others are held against. What may differ is in equiv_tolerance and nowhere else.
//
// What can fail: a host cannot be reached or opened (the error names it), a document cannot be played there at all. Everything else
// is a difference.
//
// owner: one thread. Strings of a report live in the arena of the caller; stores of hosts stay open until equiv_case_end, which comes
// before that arena ends.
#ifndef CAIRN_EQUIV_EQUIV_H
#define CAIRN_EQUIV_EQUIV_H

#include "trial/trial.h"

// ---- what a host recorded

struct equiv_line { // a record of the log or the ledger, without what may differ
    struct str slot;  // what it is about: path of the step with that of its child run, or RUN; lines of one slot have an order
    struct str event; // word of the vocabulary; of the ledger the name of the moment
    struct str text;  // canonical JSON
    struct json value; // the same
    uint32_t run;     // index in the story
    struct str step;  // inside its run; empty: of the run
    uint64_t seq;     // of the ledger: the event before it
    bool ledger;
    int64_t at_ms; // virtual, from the start
};

struct equiv_log {
    const char *host;  // name
    struct store *store; // open until equiv_case_end
    struct trial_result result;
    struct equiv_line *lines;
    size_t count, capacity;
    int64_t took_us;
    struct error err; // it could not be played
    struct str fault;  // what is wrong with it by itself (a chain that does not hold, an order that must not be); empty: nothing
};
// Every record of the story's runs. E_CORRUPT and the like: `fault` says it as well.
enum code equiv_log_read(struct store *store, struct arena *arena, struct equiv_log *log, struct error *err) MUST_CHECK;

// X(member, class): members of records whose values may differ between hosts. Those of engine, door and place may be absent as well;
// of the others a record has them on every host, or on none.
#define EQUIV_TOLERANCE_LIST(X)                                                                                        \
    X(eventId, id)                                                                                                     \
    X(event_id, id)                                                                                                    \
    X(signalDecisionId, id)                                                                                            \
    X(policyDecisionId, id)                                                                                            \
    X(decisionId, id)                                                                                                  \
    X(decision_id, id)                                                                                                 \
    X(runSeq, number)                                                                                                  \
    X(seq, number)                                                                                                     \
    X(sequence, number)                                                                                                \
    X(prevHash, hash)                                                                                                  \
    X(prev_hash, hash)                                                                                                 \
    X(emittedAt, time)                                                                                                 \
    X(persistedAt, time)                                                                                               \
    X(timestamp, time)                                                                                                 \
    X(at, time)                                                                                                        \
    X(startedAt, time)                                                                                                 \
    X(started_at, time)                                                                                                \
    X(ended_at, time)                                                                                                  \
    X(created_at, time)                                                                                                \
    X(engineProcessedAt, time)                                                                                         \
    X(approvalTimestamp, time)                                                                                         \
    X(durationMs, time)                                                                                                \
    X(duration_ms, time)                                                                                               \
    X(duration, time)                                                                                                  \
    X(engineAttemptId, engine)                                                                                         \
    X(engine_attempt, engine)                                                                                          \
    X(engine_attempt_id, engine)                                                                                       \
    X(engineRunRef, engine)                                                                                            \
    X(engine_run_ref, engine)                                                                                          \
    X(engineType, engine)                                                                                              \
    X(engine_type, engine)                                                                                             \
    X(enginePlace, engine)                                                                                             \
    X(engine_place, engine)                                                                                            \
    X(targetAdapter, engine)                                                                                           \
    X(target_adapter, engine)                                                                                          \
    X(profile, engine)                                                                                                 \
    X(actorRole, door)                                                                                                 \
    X(actor_role, door)                                                                                                \
    X(sourceIp, door)                                                                                                  \
    X(triggeredBy, door)                                                                                               \
    X(triggered_by, door)                                                                                              \
    X(triggerSource, door)                                                                                             \
    X(trigger_source, door)                                                                                            \
    X(artifactsDir, place)                                                                                             \
    X(artifacts_dir, place)                                                                                            \
    X(workDir, place)                                                                                                  \
    X(work_dir, place)                                                                                                 \
    X(documentFile, place)                                                                                             \
    X(document_file, place)

// ---- comparing

enum equiv_what { EQUIV_SAME = 0, EQUIV_CHANGED, EQUIV_MISSING, EQUIV_MORE, EQUIV_ELSEWHEN, EQUIV_WRONG };
const char *equiv_what_name(enum equiv_what what);

struct equiv_change { // one member that differs
    struct str path, a, b; // texts of at most 160 bytes; empty: it is not there
};
struct equiv_difference {
    enum equiv_what what;
    struct str slot;
    const struct equiv_line *a, *b; // NULL: that side has none
    struct equiv_change *changes;
    size_t change_count;
    struct str text;         // EQUIV_WRONG: in words
    struct str why_a, why_b; // verdicts of `why` of the step on both sides; empty: none
    size_t more;             // further lines that differ
};
// The first difference by the order of `a`, or EQUIV_SAME. Pure.
enum code equiv_compare(const struct equiv_log *a, const struct equiv_log *b, struct arena *arena, struct equiv_difference *out,
                        struct error *err) MUST_CHECK;
// With kills on the way only the end counts (story_same_end). Pure.
void equiv_compare_ends(const struct equiv_log *a, const struct equiv_log *b, struct arena *arena, struct equiv_difference *out);
// Fills in why_a and why_b. A side that cannot be explained has no word.
void equiv_explain(const struct equiv_log *a, const struct equiv_log *b, struct arena *arena, struct equiv_difference *difference);

// ---- hosts

struct equiv_options {
    const struct contract *contract;
    const char *scratch; // a directory of the caller's
    uint64_t seed;
    uint32_t faults; // how often each host is killed during a case
};

struct equiv_host_kind {
    const char *name, *what;
    const char *place; // what stands behind "NAME=", in words; NULL: nothing
    bool needs_place;
};
const struct equiv_host_kind *equiv_host_kind(size_t index); // NULL past the end

struct equiv;
enum code equiv_open(const struct equiv_options *options, struct equiv **out, struct error *err) MUST_CHECK;
void equiv_close(struct equiv *equiv); // NULL is fine
// "files", "postgres=postgres://...". E_INVALID: no such host, or it lacks its place; E_EXISTS: it is there already.
enum code equiv_add_host(struct equiv *equiv, struct str text, struct error *err) MUST_CHECK;
size_t equiv_host_count(const struct equiv *equiv);

struct equiv_report {
    struct equiv_log *logs; // one per host
    struct equiv_difference *differences; // of each against the first; that of the first is what is wrong with it by itself
    size_t host_count;
    bool same;
    uint32_t kills;
    int64_t took_us;
};
// One case on all hosts.
enum code equiv_case(struct equiv *equiv, const struct program *program, const struct trial_script *script, struct arena *arena,
                     struct equiv_report *out, struct error *err) MUST_CHECK;
void equiv_case_end(struct equiv *equiv); // after each case, whatever came of it

// ---- scripts out of nothing: for every step that acts outside, by attempt, a success, a failure, a timeout, a result that comes late or
// never; answers to gates; signals at events. The same seed gives the same script.
// `killed`: hosts will be killed. Then nothing is drawn whose end depends on when a process dies: no pauses, no steps that do not stop.
enum code equiv_generate(const struct program *program, uint64_t seed, bool killed, struct arena *arena,
                         struct trial_script *out) MUST_CHECK;

#endif
