// Stored runs as readers want them: a run folded up to a moment, a run explained, the runs that a query means, a row of a list.
// The same functions for the command line, the library and the service, so that all three show the same.
//
// Everything is read through a store handle of the caller's, on the caller's thread.
#ifndef CAIRN_READING_READING_H
#define CAIRN_READING_READING_H

#include "auth/auth.h"
#include "engine/engine.h"
#include "explain/explain.h"
#include "view/project.h"
#include "view/query.h"
#include "view/view.h"

// A moment: right after an event and everything that was noted with it, or (entries >= 0) after so many of the ledger entries behind it.
// READING_NOW is the end of the log.
#define READING_NOW UINT64_MAX
enum { READING_ENTRIES_MAX = 65000 };
uint64_t reading_at(uint64_t event, int64_t entries); // entries < 0: all of them
uint64_t reading_event(uint64_t at);                  // the event of a moment; READING_NOW of READING_NOW
bool reading_within(uint64_t at);                     // it is between the entries of one event
// "12" or "12.2". False: neither.
bool reading_at_parse(struct str text, uint64_t *out);

// ---- one run, folded
struct folded {
    struct run_head head; // as it is now, whatever moment the view shows
    struct run_view view;
    struct program *program; // of the view; NULL when it cannot be read
    struct error unreadable; // then: why
    bool past;               // the view is of a moment before the end of the log
};
// Up to the moment `at` (READING_NOW: all of it), in `arena`. folded_release in every case.
enum code reading_fold(struct store *store, const struct run_head *head, uint64_t at, struct arena *arena,
                       struct folded *out, struct error *err) MUST_CHECK;
void folded_release(struct folded *folded);

// The same run as a trace (view/trace.h), with the tasks of a playbook.
enum code reading_trace(struct store *store, const struct run_head *head, uint64_t at, const struct run_view *view,
                        struct arena *arena, struct json *out, struct error *err) MUST_CHECK;

// Who started it, where its document came from and what its EngineRunRef is made of; the rest of the facts is empty.
enum code reading_origin(struct store *store, const struct run_head *head, struct arena *arena, struct start_facts *out,
                         struct error *err) MUST_CHECK;
// The id of the run that an EngineRunRef names (contract/profile.h: one line, or an object in JSON); a text of neither form is
// the id itself.
// E_NOT_FOUND: it names none here. E_INVALID with ADAPTER_INVALID_RUN_REF.
enum code reading_resolve(struct store *store, struct str tenant, struct str text, struct arena *arena, struct str *run,
                          struct error *err) MUST_CHECK;

// ---- parts of a run, in `arena`, as the service and the library return them
// RunSnapshot (schemas/run-snapshot.json) right after event `at`.
enum code reading_snapshot(struct store *store, const struct run_head *head, uint64_t at, struct arena *arena,
                           struct json *out, struct error *err) MUST_CHECK;
// What it was given: {runId, inputs, arguments?}.
enum code reading_payload(struct store *store, const struct run_head *head, struct arena *arena, struct json *out,
                          struct error *err) MUST_CHECK;
struct step_output {
    bool known; // the run has such a step
    bool truncated;
    enum step_status status;
    struct json value; // type 0: none, or it is large
    struct str bytes;  // a large one, as the text that is kept; usually JSON
};
enum code reading_output(struct store *store, const struct run_head *head, struct str step, struct arena *arena,
                         struct step_output *out, struct error *err) MUST_CHECK;
// What a step was given: as its document has it, and as it was when its attempt began. Playbooks have explain_given.
struct given_asked {
    struct str step;
    uint32_t logical; // 0: with what is known at `at`
    uint64_t at;      // the last event that counts; READING_NOW: all
    bool text;        // the text of a shell as bash gets it, too
};
struct step_given {
    const struct program_step *step; // `with` as written
    struct json with;                // rendered; type 0: it cannot be had, and why
    struct json env;                 // of a shell's text: the variables that its references became
    struct error why;
};
// E_NOT_FOUND: there is no such step.
enum code reading_given(struct store *store, const struct run_head *head, const struct program *program,
                        const struct given_asked *asked, struct arena *arena, struct step_given *out, struct error *err) MUST_CHECK;
// Whether its events refer to a blob: its document, a part of that, or (`results`) what a step gave. One that cannot be read refers
// to nothing.
enum code reading_refers(struct store *store, const struct run_head *head, const struct digest *wanted, bool results,
                         bool *found, struct error *err) MUST_CHECK;
// Where its chains end, and whether they hold: {checkpoint, verified, faults}. `checkpoint` is what a signature is made of.
enum code reading_proof(struct store *store, const struct run_head *head, int64_t now_ms, struct arena *arena,
                        struct json *out, struct error *err) MUST_CHECK;

// ---- files that its steps left. A step may have put anything into its directory, links too: what is read is a regular file
// below the directory of the run, reached without any link, or nothing.
struct artifact {
    struct str name; // below the directory of the run
    struct str step, kind;
    struct str sha256; // empty: the log has none
    int64_t size;      // when it was left; -1: the log does not say
    int64_t at_ms;     // when its step ended
    int64_t expires_ms; // its time is over then; 0: never
};
struct artifacts {
    struct store *store;       // borrowed, with ids
    const struct run_ids *ids; // of the run
    struct str dir;            // as its start says it
    struct artifact *items;    // in the order of steps; of one name, the last one is what is there
    size_t count, capacity;
};
enum code reading_artifacts(struct store *store, const struct run_head *head, struct arena *arena,
                            struct artifacts *out, struct error *err) MUST_CHECK;
const struct artifact *artifact_find(const struct artifacts *all, struct str name,
                                     struct str step); // step empty: of any; NULL: none
// A piece of it; limit 0: only how large it is now. E_NOT_FOUND: it is not there any more.
enum code artifact_read(const struct artifacts *all, const struct artifact *artifact, uint64_t offset, size_t limit,
                        struct arena *arena, struct file_piece *out, struct error *err) MUST_CHECK;
bool artifact_is_whole(const struct artifact *artifact,
                       struct str bytes); // they are what the step left, as far as is known
// Its time is over: it is not to be read, whether the file is still there or not.
bool artifact_expired(const struct artifact *artifact, int64_t now_ms);
// [{name, stepId, kind, sizeBytes, sha256?, expiresAt?, state}], state "expired", or "ok", "changed" or "missing" by size. False: no
// memory. Borrows `all`.
bool artifacts_json(const struct artifacts *all, int64_t now_ms, struct arena *arena, struct json *out) MUST_CHECK;

// ---- one event, in other words: contract_show, with the facts of the start where a playbook tells them apart from it
struct showing {
    struct store *store;
    const struct contract *contract;
    const struct run_head *head;
    enum vocabulary to;
};
enum code reading_show(const struct showing *showing, const struct moment *moment, const struct seal *seal,
                       struct arena *arena, struct json *out, struct error *err) MUST_CHECK;

// ---- one run, explained
struct explained_run {
    struct run_head head;
    struct program *program;
    struct explain *explain;
};
// The store must stay open while the explained is used. explained_release in every case. `step` is the one that is asked about, or empty;
// `whole`: what its tasks were given, too (explain_watch).
enum code reading_explain(struct store *store, const struct run_head *head, uint64_t at, struct str step, bool whole,
                          struct arena *arena, struct explained_run *out, struct error *err) MUST_CHECK;
void explained_release(struct explained_run *explained);

// ---- the runs that a query means: what the store can look up is asked of it, the rest is asked of each run, and documents and
// logs are read only for runs that nothing else decides.
struct select {
    struct store *store;      // NULL: there are no runs
    struct run_filter filter; // what the store looks up; the cursor moves on with select_page
    const struct query *query;
    bool nothing; // no run can match
    // A run whose log cannot be read is left out; may be NULL.
    void (*left_out)(void *context, const struct run_head *head, const struct error *why);
    void *context;
    int64_t patience_ms; // of one select_page; 0: as long as it takes
    // private
    bool asks; // the query says more than the filter does
    struct arena arena, scratch, page;
    struct kept_program *programs;
    size_t program_count;
};
// `filter` is narrowed by what the query says. E_INVALID: *fault has the place. select_close in every case.
enum code select_open(struct select *select, struct store *store, const struct run_filter *filter, struct str query,
                      int64_t now_ms, struct query_fault *fault) MUST_CHECK;
void select_close(struct select *select);
// Up to `want` runs, newest first, in `arena`; less only at the end, when select->filter.before becomes 0, or when its patience is at an
// end: then the next page goes on where this one stopped.
enum code select_page(struct select *select, size_t want, struct arena *arena, struct run_heads *out,
                      struct error *err) MUST_CHECK;
bool select_meets(struct select *select, const struct run_head *head); // the query alone

// A run as a row of a list (camelCase; docs/format/query.md). False: no memory. Borrows `head`.
bool reading_row(const struct run_head *head, int64_t now_ms, struct arena *arena, struct json *out) MUST_CHECK;

// What is going on with it, for lists (view_headline): from its log, or `brief`: what its summary says of it. The first borrows nothing.
enum code reading_headline(struct store *store, const struct run_head *head, struct arena *arena, struct json *out,
                           struct error *err) MUST_CHECK;
bool reading_headline_brief(const struct run_head *head, struct arena *arena, struct json *out) MUST_CHECK;

// ---- what is in a store
enum { STATS_BIGGEST = 5, STATS_RECENT_DAYS = 7, STATS_DAYS = 30, STATS_STATUSES = RUN_STATUS_CANCELLED + 1 };
struct stats_run {
    struct str run;
    uint64_t events;
};
struct store_stats {
    int64_t now_ms;
    uint64_t runs, events, entries, children, recent; // recent: events of runs of the last STATS_RECENT_DAYS days
    uint64_t by_status[STATS_STATUSES];
    struct {
        uint64_t runs, events; // of runs that were made on that day of UTC
    } days[STATS_DAYS];        // [0] is today
    int64_t oldest_ms, newest_ms;
    struct stats_run biggest[STATS_BIGGEST];
    struct usages usages;
    struct tombstones removed;
};
// Of a tenant (empty: all of them); bytes are those of the whole store. Reads the head of every run. In `arena`.
enum code reading_stats(struct store *store, struct str tenant, int64_t now_ms, struct arena *arena,
                        struct store_stats *out, struct error *err) MUST_CHECK;
bool store_stats_json(const struct store_stats *stats, struct arena *arena, struct json *out) MUST_CHECK; // borrows them

// ---- all runs, followed: a projector (view/project.h) for each run that moves, fed from the feed of the store
// Memory is bounded: the runs that moved lately are held, ended ones are the first to go; another one is read again from its
// first event when it moves. What it reports about a run that was read again may have been reported before.
struct follower;
struct follower_options {
    uint64_t position;              // begins behind it
    size_t page;                    // items of the feed in a round; 0 = 512
    size_t run_max;                 // runs that are held, at least a page; 0 = 1024
    struct project_sink sink;       // LAG_HIGH of a page is reported once for its tenant, with ids that have no run
    bool (*stopped)(void *context); // of the sink: true ends a long reading with E_CANCELLED; may be NULL
};
struct follower *follower_open(const struct follower_options *options, int64_t now_ms) MUST_CHECK; // NULL: no memory
void follower_close(struct follower *follower);                                                    // NULL is fine
// One page. After an error the same page is read again; what was applied of it is not applied once more.
enum code follower_round(struct follower *follower, struct store *store, int64_t now_ms, bool *more,
                         struct error *err) MUST_CHECK;
struct follower_state {
    uint64_t position;
    uint64_t events;  // of the feed, so far
    uint64_t waiting; // positions that are not projected yet
    size_t runs;      // held
    size_t stale;     // that are to be read again
};
struct follower_state follower_state(const struct follower *follower);

// ---- the audit of a tenant, verified up to the end that is noted beside it (docs/format/authorization.md)
struct audit_report {
    struct audit_head head; // of what is intact
    enum audit_fault fault; // AUDIT_INTACT: all of it
    uint64_t seq;           // number of the first record that is not; 0 = none
};
// While another process writes to it, too: what is added meanwhile is not looked at.
enum code reading_audit(struct store *store, struct str tenant, struct audit_report *out, struct error *err) MUST_CHECK;
// {tenantId, records, headHash, intact, fault?: {seq, what}}. False: no memory. Borrows `tenant`.
bool audit_report_json(const struct audit_report *report, struct str tenant, struct arena *arena,
                       struct json *out) MUST_CHECK;

// What a new run would take over and what would run, as `cairn fork --dry-run -o json` and the /preview routes tell it; `how` is
// "fork", "rerun" or "retry". False: no memory. Borrows `fork`.
bool reading_fork(const struct fork *fork, const char *how, struct arena *arena, struct json *out) MUST_CHECK;

#endif
