// Private to explain/: the notes that are taken while a run is folded, and the makers of JSON.
#ifndef CAIRN_EXPLAIN_INSIDE_H
#define CAIRN_EXPLAIN_INSIDE_H

#include "explain/explain.h"
#include "json/make.h"

#define TEXT_SHORT 160 // of a value
#define TEXT_LONG 500  // of a message
#define TEXT_TAIL 2000 // of what a step wrote last

// Where a moment stands: event `seq` of the log, or in the ledger behind it.
struct log_position {
    uint64_t seq; // 0 = it has not happened, or is not decided
    bool ledger;
};

enum start_cause { START_JOIN = 1, START_POLICY, START_BY_HAND, START_REUSE };
enum attempt_end { ATTEMPT_OPEN = 0, ATTEMPT_DONE, ATTEMPT_FAILED, ATTEMPT_SKIPPED };

struct attempt_finding {
    uint32_t logical, engine; // engine > 1: dispatched again after a crash, engine - 1 times
    enum start_cause cause;
    struct log_position start, redispatch, over;
    int64_t started_ms, ended_ms, duration_ms;
    enum attempt_end end;
    struct fault fault;
    enum retry_verdict retry; // failed: what the policy said; 0 = it was not asked
    struct log_position due;
    int64_t due_ms; // of the next attempt
};

struct join_finding { // how rule and condition were decided
    struct log_position at;
    enum join_verdict verdict;
    uint32_t success, failed, skipped;
    struct json atoms; // type 0 = no condition, or not reached
    bool reuse;        // not asked: the result of an earlier run is taken over
};

struct arrival_finding { // playbooks: an arc to the step was asked
    uint32_t from, visit;
    struct log_position at;
    bool holds, taken, merged;
    struct json arc; // {step, when, holds, values}
};

struct rule_finding { // playbooks: what the policy of a task said
    uint32_t task, iteration, attempt;
    int32_t index; // -1: no rule matched
    struct log_position at;
    struct str action;
    int64_t due_ms;
};

struct step_finding { // a step in one iteration
    struct str path;
    uint32_t step;
    uint8_t state;   // enum node_state
    struct log_position at; // of the moment that brought the state
    int64_t at_ms;
    struct join_finding join;
    struct attempt_finding *attempts;
    size_t attempt_count, attempt_capacity;
    uint32_t base; // as in struct run_attempt
    int64_t due_ms;
    struct str skip_reason, skip_detail, actor, child_run, reused_from, message;
    uint32_t iteration; // loops
    enum loop_verdict loop;
    struct json value; // output; type 0 = none
    struct digest blob;
    bool has_blob, truncated;
    uint64_t blob_size;
    uint32_t checked, reproduced; // decisions about it, and those that came out the same again
    struct str doubt;             // the first that did not
    struct arrival_finding *arrivals;
    size_t arrival_count, arrival_capacity;
    struct rule_finding *rules;
    size_t rule_count, rule_capacity;
    struct log_position admitted;
    bool allowed;
    int32_t admit_rule; // -1: none matched
    uint32_t visit;     // playbooks: of which visit; 0: another document
};

struct signal_finding {
    struct str id, type, step, reason, actor, role, decision_id, error_code, error_message;
    bool accepted;
    struct log_position at;
    int64_t at_ms;
};

struct event_finding { // for the first place where two runs part
    enum moment_kind kind;
    uint32_t note; // index, NOTE_RUN for moments of the run
    uint32_t logical;
    uint64_t seq;
    uint64_t content; // hash of what came out
};
#define NOTE_RUN UINT32_MAX

struct explain {
    struct arena arena, scratch;
    struct run *run;
    const struct program *program;
    struct kernel_env env;
    struct step_finding **notes; // order of first appearance
    size_t note_count, note_capacity;
    struct map index; // path -> note
    struct signal_finding *signals;
    size_t signal_count, signal_capacity;
    struct event_finding *events;
    size_t event_count, event_capacity;
    uint64_t seq;
    int64_t at_ms;
    struct log_position pause, end;
    int64_t pause_ms;
    struct str pause_reason, pause_signal;
    uint32_t checked, reproduced; // decisions of the whole run
    struct str doubt;
    struct given_watch *given;  // of the step that is watched; NULL: none
    const struct json *present; // NULL: a past moment, or nothing is known
};

// ---- given.c
void given_release(struct explain *e);
enum code given_note(struct explain *e, const struct moment *m, uint32_t step, struct log_position at,
                     struct error *err) MUST_CHECK;

// ---- notes.c
struct step_finding *note_find(const struct explain *e, struct str path); // NULL: nothing has happened to it
enum code note_for(struct explain *e, struct str path, uint32_t step, struct step_finding **out,
                   struct error *err) MUST_CHECK; // made when there is none
// Of a step of a playbook every visit has a note of its own. By the number of the visit; NULL: nothing is known of that one.
struct step_finding *visit_find(const struct explain *e, uint32_t step, uint32_t visit);
enum code visit_note(struct explain *e, uint32_t step, uint32_t visit, struct step_finding **out,
                     struct error *err) MUST_CHECK; // made when there is none
// The path of a dependency as seen from `path`: same scope, same iteration.
struct str sibling_path(struct str path, struct str id, struct arena *arena);
struct str scope_path(struct str path); // "loop[2]." of "loop[2].tick"; empty at the top
const struct signal_finding *signal_find(const struct explain *e, struct str id);

// ---- reproduce.c: asks again before a moment is folded
enum code judge_moment(struct explain *e, const struct moment *m, struct step_finding *note, struct log_position at,
                       struct error *err) MUST_CHECK;
// Every comparison of the condition with its value as far as it can be had now.
enum code atoms_now(const struct explain *e, uint32_t step, struct arena *arena, struct json *out,
                    struct error *err) MUST_CHECK;

// ---- net.c: playbooks
enum code net_note(struct explain *e, const struct moment *m, struct step_finding *note, struct log_position at,
                   struct error *err) MUST_CHECK; // before the moment is folded

// ---- make.c: JSON whose failures are seen once, at the end
struct maker {
    const struct explain *e;
    struct arena *arena;
    int64_t now_ms;
    bool failed;
};
// Members: "seq", or "afterSeq" when it is in the ledger behind that event; left out when there is none. With a prefix
// "endSeq", "endAfterSeq".
#define AT(place)                                                                                                      \
    {                                                                                                                  \
        (place).ledger ? "afterSeq" : "seq", place_json(place)                                                         \
    }
#define AT_OF(prefix, place)                                                                                           \
    {                                                                                                                  \
        (place).ledger ? prefix "AfterSeq" : prefix "Seq", place_json(place)                                           \
    }
static inline struct json place_json(struct log_position place)
{
    return json_when(place.seq != 0 || place.ledger, json_count(place.seq));
}

// ---- parts.c: what of a sentence is more than words. Tellers put marks into a sentence, and it is written as two members.
enum part {
    PART_STEP = 's',
    PART_BY = 'b',    // who
    PART_CODE = 'c',  // of an error
    PART_EXPR = 'e',  // of the document
    PART_SAID = 't',  // by a person or a program: not for everybody's eyes
    PART_SINCE = 'f', // times
    PART_UNTIL = 'u',
};
void part_told(struct buf *out, enum part kind, struct str text);
void time_part_begin(struct buf *out, enum part kind, int64_t ms); // what follows, up to its end, is how the text says it
void time_part_end(struct buf *out);
struct json sentence_text(struct maker *m, struct str marked);
struct json sentence_parts(struct maker *m, struct str marked);
#define VERDICT(m, marked) {"verdict", sentence_text(m, marked)}, {"verdictParts", sentence_parts(m, marked)}

// At most `max` bytes, cut between characters, "..." behind what was cut. In `arena` when it was.
struct str shorten(struct arena *arena, struct str text, size_t max);
struct str kept(struct maker *m, struct buf *buf); // copies into the arena and releases the buf
struct json json_short(struct maker *m, struct str text, size_t max); // none when empty
struct json fault_json(struct maker *m, const struct fault *fault);
struct json signal_json(struct maker *m, const struct signal_finding *signal);
void put_pause(struct maker *m, struct json *object);
void message_told(struct buf *out, struct str message);      // its first line, shortened
void fault_told(struct buf *out, const struct fault *fault); // "EXIT_NONZERO exit 1", "TIMEOUT: the step took too long"
// `reproduced`, and how many decisions that stands on.
void put_proof(struct maker *m, struct json *out, uint32_t checked, uint32_t reproduced, struct str doubt);
// What to do next: arguments of `cairn`, ready to paste: "verb RUN[/STEP]more", "why RUN".
void next_command(struct maker *m, struct json *list, const char *verb, struct str step, const char *more);
void next_why(struct maker *m, struct json *list, struct str run);

// ---- state.c
struct view_of_step {
    const struct explain *e;
    struct str path;
    uint32_t step;
    const struct program_step *ps;
    const struct step_finding *note; // NULL: nothing has happened to it
    uint32_t visit, visits;          // playbooks: which one, and how many there were
    bool current;                 // of the iteration that the run is in: the state of the run is about it
    enum explain_state state;
    const char *reason; // code
};
bool look_at(const struct explain *e, struct str path, struct view_of_step *out); // false: no such step
// ---- present.c: what waits for a place, or has one
const struct json *place_now(const struct explain *e, const struct view_of_step *v); // NULL: it is not known to be anywhere
bool place_waits(const struct json *place);
const char *place_reason(const struct json *place);                                // NO_SLOT, NO_WORKER, WORKERS_BUSY
void place_told(struct maker *m, struct buf *out, const struct json *place);       // " is queued: ..."
bool queue_told(struct maker *m, struct buf *out);                                 // " waits in queue ..."; false: not known
int64_t place_since(const struct json *place, int64_t otherwise);                  // ms
void put_present(struct maker *m, struct json *out, const struct view_of_step *v); // `place`, `queue`
const struct attempt_finding *last_attempt(const struct step_finding *note);      // NULL: none
const char *retry_verdict_name(enum retry_verdict verdict);                       // "MAX_ATTEMPTS"
const struct run_await *awaited_now(const struct view_of_step *v); // the event that it waits for now; NULL: none
bool step_given(const struct view_of_step *v);          // success: by a person, when the run was forked
struct log_position state_place(const struct view_of_step *v); // of the moment that decided the state

bool net_told(struct buf *out, const struct view_of_step *v); // net.c: playbooks; false: as of any step

// ---- verdict.c: sentences, with marks (VERDICT)
struct str verdict_told(struct maker *m, const struct view_of_step *v);
struct str run_verdict_told(struct maker *m, const char **reason);
const char *rule_needs(enum trigger_rule rule); // "every dependency to succeed"
// The step at the bottom of a wait or of a failure. False: it is the step itself.
bool root_of(struct maker *m, const struct view_of_step *v, struct view_of_step *out);

// ---- answer.c
struct str child_path(struct maker *m, const struct view_of_step *loop, uint32_t child); // in its last iteration
void put_dependencies(struct maker *m, struct json *out, const struct view_of_step *v);
void put_rule(struct maker *m, struct json *out, const struct view_of_step *v);
enum code put_when(struct maker *m, struct json *out, const struct view_of_step *v, struct error *err) MUST_CHECK;
void put_retry(struct maker *m, struct json *out, const struct view_of_step *v);
void put_attempts(struct maker *m, struct json *out, const struct view_of_step *v);
void put_arcs(struct maker *m, struct json *out, const struct view_of_step *v);
void put_rules(struct maker *m, struct json *out, const struct view_of_step *v);
void put_undefined(struct maker *m, struct json *out, const struct view_of_step *v); // given.c

// ---- values.c, documents.c: for diffs
// Adds {path, a, b} for every place where the values differ. How many were left out.
int64_t put_changes(struct maker *m, struct json *changes, const struct json *a, const struct json *b);
bool put_documents(struct maker *m, struct json *out, const struct program *p, const struct program *q); // same?

#endif
