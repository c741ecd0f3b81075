// Private to engine/: resident runs, the queue of inputs, tickets and timers. owner: engine thread, except struct mailbox.
#ifndef CAIRN_ENGINE_INSIDE_H
#define CAIRN_ENGINE_INSIDE_H

#include "base/heap.h"
#include "engine/engine.h"
#include "engine/outbox.h"

#include <pthread.h>

struct resident;
struct batch;
struct aside;
struct keeper;
struct permits;

// ---- artifacts.c: files that a step has declared. They are looked for and hashed by the thread that delivers its result.
struct found_file {
    bool there; // a regular file
    bool hashed;
    uint64_t size;
    struct digest sha256;
};

struct declared_files {
    struct declared_files *next; // of the mailbox
    uint64_t ticket;
    size_t count;
    struct found_file *found;
    char *dir;     // of the run's artifacts
    char **names;  // as declared
    bool confined; // steps of this engine are
    bool spill;    // the last one is where an output goes that is too long: it need not be there
};

struct declared_files *declared_files_new(uint64_t ticket, struct str dir, bool confined,
                                          const struct artifact_decl *decls,
                                          size_t count) MUST_CHECK; // NULL: out of memory
bool declared_path(struct str dir, struct str path, struct buf *out) MUST_CHECK;

// ---- mailbox: the only mutable object shared between threads
struct message {
    struct message *next;
    struct aside *aside; // a result has been put elsewhere, or not; else NULL
    bool is_line;
    struct tool_result result; // !is_line
    struct declared_files *files; // of that result; NULL: the step declares none
    uint64_t ticket;           // is_line
    bool is_stderr;
    size_t len;
    char text[];
};

struct mailbox { // shared: mutex inside
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct message *first, **last;
    struct declared_files *files; // of attempts under way
    bool woken;
    void (*notify)(void *context); // may be NULL
    void *notify_context;
};

void mailbox_init(struct mailbox *mailbox, void (*notify)(void *context), void *context);
void mailbox_release(struct mailbox *mailbox);
void mailbox_result(void *mailbox, struct tool_result *result);                     // tool_deliver
void mailbox_looked(struct mailbox *mailbox, struct tool_result *result, struct declared_files *files);
struct declared_files *mailbox_files(struct mailbox *mailbox, uint64_t ticket); // no longer the mailbox's; NULL: none
void mailbox_line(void *mailbox, uint64_t ticket, bool is_stderr, struct str line); // tool_output
struct message *mailbox_take(struct mailbox *mailbox);                              // all, oldest first
void mailbox_aside(struct mailbox *mailbox, struct aside *aside);
void mailbox_expect(struct mailbox *mailbox, struct declared_files *files); // takes it over, until the result comes
void mailbox_forget(struct mailbox *mailbox, uint64_t ticket);              // no result will
void mailbox_wake(struct mailbox *mailbox);
void mailbox_wait(struct mailbox *mailbox, int64_t until_mono_ms);
void message_free(struct message *message);

// ---- a run in memory
struct program_entry { // programs by document, so that a thousand runs share one
    struct program *program;
    bool stored;  // its bytes are in the store
    size_t users; // residents
    struct program_entry *next;
};

struct resident {
    struct resident *next; // hash chain
    struct run *run;
    struct run_log *log;
    struct program_entry *entry;
    struct run_ids ids; // borrows run->ids, or `log`'s while the run is being folded again
    uint32_t tickets;   // attempts of this run with a tool
    struct timer *timers;
    uint64_t turn;  // last batch that touched it
    uint32_t group; // its place among that batch's groups
    bool begun;     // its start is stored: the store has it, and it is ours
    bool terminal;  // loaded only to answer a signal
    bool gone;      // ended or fenced: freed at the end of the turn
    struct resident *next_gone;
    bool idle; // loaded or made, but not driven: signals are decided, nothing starts before INPUT_RECOVER (ADR 0013)
    bool taken_up; // that input has been queued
    bool needs_recover; // an INPUT_RECOVER for all that is owed is on its way: one at a time
    bool adopted;  // its orphans have not been looked for yet
    uint64_t passed; // the last pass over the queue that left an input of it there
    bool stale;    // what was decided of it was not stored, and the store could not be asked: it is folded again before the next input
    bool limit_hit;
    bool is_child; // and counted as one of its tenant
    uint32_t full;  // the segment that was last found to be full; 0 = none
    struct extent {
        uint64_t bytes;                       // that its records and results take
        uint64_t segment_bytes, segment_seq;  // the same when its segment began, and the event before that
        uint32_t segment;                     // which one that is; 0 = the first
        uint64_t turn, turn_bytes, turn_seq;  // the turn that was last, and where the run stood before it
        uint64_t last_bytes, last_seq;        // and where it stands behind it
        uint64_t most_bytes, most_events;     // that one turn has added since the run was taken up
    } extent;
    struct run_holds holds; // its attempts that are outside. A refold does not touch them
    struct run_outbox *outbox; // NULL: its log has everything that has happened
};

// Moments of a run that the outbox has and its log has not (failopen.c).
struct run_outbox {
    struct arena arena;
    struct replay_cursor after; // what they stand behind
    struct moment *moments;
    size_t count, capacity;
    size_t drafted; // the last of them, that are not written yet
    bool queued;    // an input that stores them is on its way
};

struct timer {
    struct heap_node node;
    struct resident *resident;
    struct timer *next, **link; // of the resident's timers
    uint32_t step, logical;
    enum timer_kind kind;
    bool of_day;    // in engine.alarms: due when the wall clock says so; else in engine.timers, by the monotonic clock
    int64_t due_ms; // as the kernel said, by the wall clock
};

struct ticket {
    struct resident *resident; // NULL: free slot
    uint32_t step, logical, engine;
    uint32_t generation;
    uint32_t next_free;
    struct tools *with; // its executor
    bool stopping;      // it was asked to stop
};

struct preface { // an entry for the ledger that stands before everything else
    struct str kind, signal_id;
    struct json body;
};

// What a start takes over from another run besides results. All of it lives in *arena.
struct taking {
    const struct past *past;
    const struct preface *notes;
    size_t note_count;
    const struct append_blob *blobs;
    size_t blob_count;
    bool forked;
    uint64_t forked_seq;  // of request.original_run
    struct arena **arena; // handed over: NULL afterwards, unless the start is refused at once
};

// An input on its way to a turn, with the memory that it needs until then.
struct queued {
    struct resident *resident;
    struct input input;
    struct start_facts *facts; // START
    struct reuse *reuse;
    struct signal *signal;
    struct arena *arena;         // owns facts, signal, values; NULL when there is nothing to own
    struct tool_result result;   // RESULT from a tool: owns its memory
    int64_t inbox_id;            // SIGNAL from another process; 0 = local
    const struct preface *notes; // START of a run that takes over; what a worker reported
    size_t note_count;
    struct append_blob *blobs; // in `arena`
    size_t blob_count;
    bool wanted;                 // RESULT: the blob is wanted elsewhere, and nobody has tried yet (elsewhere.c)
    bool elsewhere;              // it is there: the store does not get it
    uint32_t waits;              // for a result that is elsewhere and cannot be had
    const struct note_put *puts; // START: notes that are stored with it; in `arena`
    size_t put_count;
    struct effect ordered;       // NOTE: an attempt that was ordered before and could not be rendered then; kind 0: none
    char decision_id[UUID_SIZE];
    bool second_chance;     // RESULT: what came out cannot be an event, and this is the failure in its place
    uint32_t storage_tries; // that found no room, no memory or a lock
    int64_t since_mono;     // when it came
};

struct put { // engine_put; lives in its own arena
    struct put *next;
    const struct note_put *notes;
    size_t count;
    void (*done)(void *context, enum code rc, const struct error *why);
    void *context;
    struct arena *arena;
    enum code refused; // in the turn under way, with the reason
    struct error why;
};

struct queue {
    struct queued *items;
    size_t head, count, capacity; // ring
};

struct engine {
    struct engine_options options;
    struct store *store;
    struct tools *tools;
    bool own_tools;
    struct tasks *tasks; // opened by us when the first playbook came; NULL: none
    _Atomic(struct tools *) told[2]; // the two above, for engine_places
    struct engine_mark mark;
    struct mailbox mailbox;
    struct message *arrived; // taken from the mailbox, not yet in the queue
    struct queue queue;
    uint64_t spent; // steps of templates that were rendered here
    const struct batch *deciding; // the batch whose inputs the kernel is asked about now; NULL: none
    size_t take_max; // inputs of the next turn: with more of them a turn went beyond its memory. 0: as many as there may be
    struct put *puts, **last_put; // waiting for the next turn; last_put NULL: none
    struct aside *asides;         // inputs that are not in the queue now (elsewhere.c)
    struct keeper *keeper;        // the thread that puts results elsewhere; NULL: not needed yet
    struct heap timers, alarms; // by the monotonic clock; by the wall clock
    struct resident **table;
    size_t table_size, resident_count;
    struct child_count *children; // of each tenant that has some (children.c)
    struct program_entry *programs;
    size_t program_count;
    bool holding; // engine_hold
    struct ticket *tickets;
    size_t ticket_count, ticket_capacity;
    uint32_t free_ticket;
    uint32_t live_tickets, stopping_tickets;
    struct arena turn;
    uint64_t turn_number;
    struct moment_in_time now;
    int64_t next_inbox_mono;
    int64_t full_until_mono; // the disk is full: nothing is tried before
    uint64_t passes;         // over the queue
    int64_t stalled_mono;    // since when every turn was put off; 0 = the last one was not
    int64_t told_mono;       // when that was said last
    int64_t append_ms;       // what the appends of this turn took
    uint64_t slow_writes;
    struct permits *permits; // places under limits of steps; NULL: none was asked for yet
    _Atomic(struct permits *) permits_shown; // the same, for engine_places
    struct outbox outbox;
    size_t outboxed; // runs with an outbox
    struct kernel_env env;
    struct resident *gone; // to be freed at the end of the turn
    size_t adopted;        // residents whose orphans have not been looked for yet
    uint64_t last_number;  // of a run that was named here
};

// engine.c
struct resident *resident_find(const struct engine *engine, struct str tenant, struct str run);
struct resident *resident_add(struct engine *engine, struct run *run, struct run_log *log,
                              struct program_entry *entry) MUST_CHECK;
void resident_remove(struct engine *engine, struct resident *resident);
// ---- children.c: child runs that have not ended, by tenant
enum code children_count(struct engine *engine, struct resident *child, struct error *err) MUST_CHECK; // E_NOMEM. Once more harmless
void children_forget(struct engine *engine, struct resident *resident); // also one that is no child
enum code children_room(const struct engine *engine, struct str tenant, struct error *err) MUST_CHECK; // E_LIMIT
void resident_gone(struct engine *engine, struct resident *resident); // once more harmless
struct queued *queue_add(struct engine *engine, struct resident *resident,
                         enum input_kind kind) MUST_CHECK;         // NULL: out of memory
bool queue_reserve(struct engine *engine, size_t more) MUST_CHECK; // power-of-two ring: room for so many more
// An INPUT_RECOVER behind what is queued, unless one is on its way already.
enum code need_recover(struct engine *engine, struct resident *resident, struct error *err) MUST_CHECK;
bool is_recovery(const struct queued *queued);                     // for all that is owed; TIMER_LOOK asks for one step
struct queued *queue_last(struct engine *engine);                  // the entry that was added last
struct queued queue_take_last(struct engine *engine); // the entry that was added last, out of the queue again
enum code queue_last_first(struct engine *engine, size_t count,
                           struct error *err) MUST_CHECK; // the last so many become the first
void queued_release(struct queued *queued);
struct arena *arena_make(size_t limit) MUST_CHECK; // NULL: out of memory
void arena_drop(struct arena *arena);              // NULL: nothing

// load.c: stored runs into memory
enum code load_resident(struct engine *engine, struct str tenant, struct str run, bool even_ended,
                        struct resident **out, struct error *err) MUST_CHECK;
enum code fold_stored(struct store *store, const struct program *program, const struct run_ids *ids, struct run **out,
                      struct error *err) MUST_CHECK;
// The run as the store has it, or as it was before a start that was never stored.
enum code refold(struct engine *engine, struct resident *resident, struct error *err) MUST_CHECK;
enum code take_up(struct engine *engine, struct resident *resident,
                  struct error *err) MUST_CHECK; // an idle one goes on
void mark_adopted(struct engine *engine, struct resident *resident);
void sweep_orphans(struct engine *engine);
struct program_entry *program_entry_for(struct engine *engine, const struct program *program) MUST_CHECK;

// reuse.c: results of an ended run that count in a new one
enum code queue_reuse(struct queued *queued, const struct reuse *reuse, uint32_t count, struct error *err) MUST_CHECK;
// A run that waited for its approval may be about to begin: what it was to reuse is looked up again.
enum code reuse_at_the_gate(struct engine *engine, struct queued *queued, struct error *err) MUST_CHECK;

enum code set_timer(struct engine *engine, struct resident *resident, const struct effect *effect,
                    struct error *err) MUST_CHECK;
void timer_remove(struct engine *engine, struct timer *timer);
enum code timers_due(struct engine *engine, struct error *err) MUST_CHECK; // queues the inputs
int64_t timers_deadline(const struct engine *engine);                      // by the monotonic clock

// start.c
enum code start_run(struct engine *engine, const struct start_request *request, const struct taking *taking,
                    char run_out[129], struct error *err) MUST_CHECK;
enum code check_inputs(const struct program *program, const struct json *given, struct error *err) MUST_CHECK;
// The inputs of a run as they are now: those of its start under those of UPDATE_PARAMS. Borrows. False: out of memory.
bool inputs_now(const struct run *run, struct arena *arena, struct json *out);
enum code merge_inputs(const struct program *program, const struct json *given, struct arena *arena, struct json *out,
                       struct error *err) MUST_CHECK;

// shards.c: the runs of an engine among others
// The store has fenced us: all runs go, starts of the turn and of the queue are refused.
enum code lose_all(struct engine *engine, struct error *err) MUST_CHECK;
void tell_refused(struct engine *engine, const struct queued *queued, const struct error *why); // the observer
enum code refuse_lost(struct engine *engine, const struct queued *queued, struct error *err) MUST_CHECK;
void bury(struct engine *engine); // those that are gone, and what waits for them

// put.c: notes
enum code copy_puts(struct arena *arena, const struct note_put *notes, size_t count, const struct note_put **out,
                    struct error *err) MUST_CHECK;
struct put *puts_take(struct engine *engine);              // all, oldest first
void puts_return(struct engine *engine, struct put *puts); // before those that came meanwhile
bool put_is_refused(enum code rc);                         // it does not fit, and never will by itself
// Of engine_options.ending, when the outcome holds the end of the run.
enum code draft_end(struct engine *engine, const struct resident *resident, const struct outcome *outcome,
                    struct note_draft *draft, struct error *err) MUST_CHECK;
enum code puts_draft(struct put *puts, struct note_draft *draft, struct error *err) MUST_CHECK; // those that fit
void puts_settle(struct put *puts); // the batch is durable: tells each what became of it
void puts_tell(struct put *puts, enum code rc, const struct error *why); // the same for all
// Each in a batch of its own. Those that could not be tried stay in *puts.
enum code puts_one_by_one(struct engine *engine, struct put **puts, struct error *err) MUST_CHECK;

// executors.c: who executes an attempt
struct execution {
    enum executor form;
    struct str kind; // of the step, the task or the function
    struct str pool; // where a person sent it; then where it goes, empty: executed here
    struct tools *with;
    uint64_t ticket;
};
struct str step_executes(const struct program_step *ps); // the kind of a step that has no tasks
// Chooses, and opens what is chosen. E_UNSUPPORTED, without a message: nobody executes it.
enum code execution_open(struct engine *engine, const struct run_ids *ids, struct execution *execution,
                         struct error *err) MUST_CHECK;
void executors_flush(const struct engine *engine);
void executors_close(struct engine *engine);

// order.c: what effects say, rendered when they are decided. All of it lives in the arena of the turn.
struct order {
    bool failed; // it cannot be rendered: the attempt fails with `fault`
    bool later;  // it is not yet: those before it took as much as one input may
    struct fault fault;
    struct str path; // of the step
    struct str pool; // where a person sent it
    const struct step_limit *limit; // of its step or task; NULL: none
    int64_t timeout_ms;
    const struct str *argv; // a process
    size_t argc;
    const struct tool_env *env;
    size_t env_count;
    struct str cwd;
    struct str input;           // for its stdin; of a task or a function its JSON
    struct instant answer;       // kinds without a tool
    struct start_request child; // EFFECT_SUBRUN
    struct str child_path;      // of the playbook that a task names
};
// One for each effect; *out NULL: none of them starts anything. E_NOMEM, E_IO.
enum code orders_render(struct engine *engine, struct resident *resident, const struct outcome *outcome,
                        struct order **out, struct error *err) MUST_CHECK;
// An order that is `later` goes into the queue, behind what others wait for, and is rendered there.
enum code order_later(struct engine *engine, struct resident *resident, const struct effect *effect,
                      struct error *err) MUST_CHECK;
enum code order_again(const struct resident *resident, const struct queued *queued, struct outcome *outcome,
                      struct error *err) MUST_CHECK; // the effect of such an input
bool attempt_flies(const struct run *run, const struct effect *effect); // the attempt of an EFFECT_EXECUTE is the one in flight
enum executor order_form(const struct run *run, uint32_t step, struct str *kind);

// dispatch.c: effects, after they are durable
enum code dispatch(struct engine *engine, struct resident *resident, const struct effect *effect,
                   const struct order *order, struct error *err) MUST_CHECK; // order: of those that start something
struct run_hold whose_of(const struct effect *effect); // names the hold of what it orders
bool effect_is_stale(const struct resident *resident, const struct effect *effect);
void ticket_close(struct engine *engine, uint64_t id);
void ticket_cancel(struct engine *engine, size_t index, int64_t grace_ms);
struct ticket *ticket_find(struct engine *engine, uint64_t id);
void holds_verify(const struct engine *engine, const struct resident *resident); // H1

// budget.c: results that wait for the store
void append_took(struct engine *engine, enum code rc, int64_t took_us, size_t items); // reported, and logged when it was long
void queued_fail(struct queued *queued, struct fault fault); // a RESULT: it fails with `fault` instead
// A RESULT that could not be stored and will be tried again: fails it when it has waited too long.
void check_budget(const struct engine *engine, struct queued *queued);
bool is_over_budget(const struct engine *engine, const struct queued *queued);

// failopen.c: starts that go on without their store
void run_outbox_free(struct engine *engine, struct resident *resident);
enum code outbox_fold(const struct resident *resident, struct run *run, struct error *err) MUST_CHECK; // onto the fold of the log
void outbox_lost(struct engine *engine, struct resident *resident); // the run goes: the observer learns what the outbox had of it
enum code outbox_queue(struct engine *engine, struct error *err) MUST_CHECK; // an input for each that has none
// What a process that is gone has left of a run that was just claimed and folded.
enum code outbox_find(struct engine *engine, struct resident *resident, struct error *err) MUST_CHECK;
void outbox_look(struct engine *engine); // through the files that processes have left

// result.c: what comes back from outside as an input
enum code input_from_result(struct engine *engine, struct tool_result *result, const struct declared_files *files,
                            struct error *err) MUST_CHECK; // files: may be NULL
enum code input_outcome(struct engine *engine, struct resident *resident, uint32_t step, uint32_t logical, uint32_t k,
                        const struct json *result, struct error *err) MUST_CHECK; // of a task that went well
enum code input_given(struct engine *engine, struct resident *resident, const struct run_hold *whose,
                      const struct json *value, struct error *err) MUST_CHECK; // it went well, and this came of it
enum code input_fault(struct engine *engine, struct resident *resident, uint32_t step, uint32_t logical, uint32_t k,
                      struct fault fault, struct error *err) MUST_CHECK;
#define RESULT_ARENA_MAX ((size_t)512 << 20) // one as text, as a tree of json_limits_result, and as a blob
enum code canonical(struct arena *arena, struct str bytes, struct json *out, struct error *err) MUST_CHECK;
enum { MEMBER_INLINE_MAX = 4096 }; // bytes of what a member of a list gave, in the ledger
#define RESULT_UNFIT "SCHEMA_VALIDATION_FAILED: the result does not fit its event's schema" // message of PAYLOAD_TOO_LARGE

// elsewhere.c: results that a playbook wants in another place than the store (store/keep.h), and inputs that wait for one of those.
void want_elsewhere(struct engine *engine, struct queued *queued, const struct net_task *task);
// Takes over an input that is `wanted`: it comes back when its result is there, or cannot be. False: it stays, and is stored here.
bool aside_put(struct engine *engine, struct queued *queued) MUST_CHECK;
// Takes over an input that cannot be decided upon yet: it comes back later.
bool aside_wait(struct engine *engine, struct queued *queued, const char *why) MUST_CHECK;
void aside_arrived(struct engine *engine, struct aside *aside);            // from the mailbox
enum code asides_due(struct engine *engine, struct error *err) MUST_CHECK; // into the queue
int64_t asides_deadline(const struct engine *engine);
void asides_bury(struct engine *engine);                                               // those of runs that are gone
bool aside_of(const struct engine *engine, const struct resident *resident);           // something of it is
const struct queued *aside_next(const struct engine *engine, const struct aside **at); // all of them; NULL: the end
void keeper_close(struct engine *engine); // before the runs and the mailbox go
void asides_free(struct engine *engine);

// turn.c
bool turn_blob(const struct engine *engine, const struct digest *sha256, struct str *out);
// playbooks.c
enum { CHILD_DEPTH_MAX = 32 }; // runs that run runs
enum code check_depth(struct engine *engine, const struct run *run, struct error *err) MUST_CHECK;
// The playbook that the task of a lane runs when its `path` is this one, retained. E_NOT_FOUND, E_INVALID, E_NOMEM, E_IO.
enum code child_playbook(struct engine *engine, const struct resident *parent, uint32_t step, struct str path,
                         struct program **out, struct error *err) MUST_CHECK;

enum code subrun_start(struct engine *engine, struct resident *parent, const struct effect *effect,
                       const struct order *order, struct error *err) MUST_CHECK;
enum code subrun_render(struct engine *engine, struct resident *parent, const struct effect *effect, struct order *out,
                        struct error *err) MUST_CHECK;
enum code subrun_cancel(struct engine *engine, struct resident *parent, const struct effect *effect,
                        struct error *err) MUST_CHECK;
enum code subrun_refused(struct engine *engine, const struct run_ids *ids, const struct start_facts *facts,
                         const struct error *why, struct error *err) MUST_CHECK;
enum code subrun_ended(struct engine *engine, struct resident *child, struct error *err) MUST_CHECK;

// signal.c
enum code poll_inbox(struct engine *engine, struct error *err) MUST_CHECK;
// bound.c
enum code bound_run(struct engine *engine, struct resident *resident, struct error *err) MUST_CHECK;
void extent_pass(struct extent *extent, const struct moment *moment, uint64_t seq); // a record; the bytes of it are in `extent` already
// A run that no input can be decided of within the memory of a turn.
enum code stop_too_large(struct engine *engine, struct resident *resident, struct error *err) MUST_CHECK;
enum code queue_signal(struct engine *engine, struct resident *resident, const struct signal *signal, int64_t inbox_id,
                       struct error *err) MUST_CHECK;
enum code decision_body(struct engine *engine, const struct queued *queued, const struct effect *effect,
                        struct str new_run, struct json *out) MUST_CHECK; // new_run: of RETRY_RUN, once it is made
// Where what the start says about artifacts is here; E_NOMEM.
enum code find_files(const struct store *store, struct run *run, struct str said) MUST_CHECK;
enum code retry_run(struct engine *engine, struct resident *ended, const struct signal *signal, char run_out[129],
                    struct error *err) MUST_CHECK;

// The id of a run that nobody has named: a number for playbooks, else a UUID.
void new_run_id(struct engine *engine, const struct program *program, char out[UUID_SIZE]);

#endif
