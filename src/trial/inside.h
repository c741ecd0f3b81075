// Private to trial/: reading test files, the world in which a script is played, and what a world that crashes adds.
#ifndef CAIRN_TRIAL_INSIDE_H
#define CAIRN_TRIAL_INSIDE_H

#include "engine/engine.h"
#include "json/make.h"
#include "trial/fake_tools.h"
#include "trial/disk.h"
#include "trial/trial.h"

// ---- path.c: keys of scripts against paths of steps

// How well `key` fits the attempt `logical` of the step at `path`; 0 = not at all.
uint32_t key_fits(struct str key, struct str path, uint32_t logical);
// Splits "load#2" into path and attempt (0 = none given). False: what follows '#' is no number.
bool key_split(struct str key, struct str *path, uint32_t *attempt);
// The step that a key names in the document, iterations and attempts aside; NULL when there is none.
// *program (may be NULL) gets the program it is of.
const struct program_step *key_step(const struct program *program, struct str key, const struct program **owner);
const struct program_step *path_step(const struct program *program, struct str path); // inside one run
// The document of the child run that what the path names begins; NULL: it begins none that is known before it runs.
const struct program *path_child(const struct program *program, struct str path);
bool kind_is_external(enum step_kind kind);                                           // acts outside of the engine
const struct trial_mock *script_mock(const struct trial_script *script, struct str path, uint32_t attempt,
                                     struct str kind);
// The task that a moment of a playbook is about: "each:run:2[3]/fetch:run:2" behind the prefix of its run.
struct str task_path(struct arena *arena, struct str prefix, const struct moment *m);
const struct trial_gate *script_gate(const struct trial_script *script, struct str path);

// ---- parse_expect.c
struct kit {
    struct arena *arena;
    struct diagnostics *diagnostics;
    struct str file;
    bool nomem;
};
struct diagnostic *kit_fault(struct kit *kit, const char *id, const struct json *at, const char *format, ...)
    PRINTF_LIKE(4, 5);
void kit_fields(struct kit *kit, const struct json *object, const char *const *names, const char *what);
bool kit_is(struct kit *kit, const struct json *value, enum json_type type, const char *name);
bool kit_text(struct kit *kit, const struct json *value, const char *name, struct str *out);
bool kit_ms(struct kit *kit, const struct json *value, const char *name, int64_t *out);
void kit_expect(struct kit *kit, const struct json *expect);
void check_key(struct diagnostics *diagnostics, const struct trial_script *script, const struct program *program,
               struct str key, uint32_t line, uint32_t column, const char *what);

// ---- stage.c: one world

struct stage_run {
    struct str id, prefix;
    const struct program *program;
    struct replay_cursor heard; // of a host's run
    uint64_t *told; // hash of each record that was reported, by number - 1
    size_t told_count, told_capacity;
};

enum letter_state { LETTER_WAITING = 0, LETTER_DUE, LETTER_SENT, LETTER_DECIDED };

// A signal on its way: an answer to a gate, or one of the script's.
struct letter {
    enum letter_state state;
    int64_t due_ms; // monotonic
    char id[UUID_SIZE];
    struct str run;
    struct signal signal;
    const struct trial_signal *of; // NULL: an answer
};

// An attempt that was handed to a tool.
struct effect_seen {
    struct str path;
    struct str named; // as its run calls it: what idempotency keys are made of
    uint32_t logical, engine;
    uint32_t attempt; // as documents count: the logical one; of a playbook that of the run of its task
    struct str kind;  // as documents have it
    uint32_t starts, lost; // how often it was begun; how often its executor was gone
    bool again;            // the executor that had it is gone: the next one takes its own time
    int64_t due_ms; // of its answer
    uint64_t order;
    bool done; // the completion of the step was reported
    const struct program_step *step;
    const struct program *program;
    struct str does;
};

struct stage;
struct real_tools;

struct stage_hooks {
    void *context;
    // True: the process dies here.
    bool (*point)(void *context, struct stage *stage, enum boundary boundary, struct str step, struct str label);
    void (*batch)(void *context, struct str step, struct str label); // a turn is over: what its batch was about
    void (*line)(void *context, const char *text);                   // gets what happens; may be NULL
};

struct stage {
    const struct trial_options *options;
    struct trial_result *result;
    struct arena *arena;
    struct stage_hooks hooks;
    bool on_disk; // files on a simulated disk instead of memory
    bool sandbox; // every step really runs
    int64_t mono_ms, wall_ms, start_mono_ms;
    struct entropy entropy;
    uint64_t random;
    struct sim_disk *disk;
    struct store *store;
    struct engine *engine;
    struct fake_tools fake;
    struct real_tools *real;
    bool died;
    bool opening; // the store is being opened
    bool synced;  // the batch under way has been synced
    bool writing; // a batch is under way
    struct stage_run *runs;
    size_t run_count, run_capacity;
    struct letter *letters;
    size_t letter_count, letter_capacity;
    struct effect_seen *effects;
    size_t effect_count, effect_capacity;
    const char *broken; // rule of the first thing that must not be; NULL = none
    char message[400];
    struct error err;
    uint64_t acts;
    enum boundary cut; // how the process died last
    struct buf batch;  // words of the batch under way
    struct str batch_step;
    uint32_t lives;
    size_t killed;             // of options->kills
    const struct trial_host *host; // NULL: the engine is in this process
    struct trial_news news;    // of the host's last settle
    bool down;                 // killed, and not up again
    bool over;                 // nothing dies any more
};

enum code stage_open(struct stage *stage, const struct trial_options *options, struct trial_result *result);
void stage_close(struct stage *stage);
struct store *stage_store(const struct stage *stage);
// Until nothing happens any more, over deaths and recoveries. Afterwards the story is in the result.
enum code stage_play(struct stage *stage, struct error *err);
void stage_break(struct stage *stage, const char *rule, const char *format, ...) PRINTF_LIKE(3, 4);
void stage_say(struct stage *stage, const char *format, ...) PRINTF_LIKE(2, 3);
bool stage_point(struct stage *stage, enum boundary boundary, struct str step, struct str label);
struct stage_run *stage_run_of(const struct stage *stage, struct str id); // NULL: not heard of
struct str stage_path(struct stage *stage, struct str run, struct str step);

// The script's run and all below it, parents first: ids of children do not always tell whose they are, and others may be in the store.
enum code stage_family(struct stage *stage, struct arena *arena, struct run_heads *out, struct error *err) MUST_CHECK;
void stage_hear(struct stage *stage, struct stage_run *run, const struct record *record, const struct moment *moment);
struct stage_run *stage_learn(struct stage *stage, struct str id, const struct start_facts *start); // NULL: not known yet

// ---- stage_host.c: the same stage with an engine in another process
enum code host_turns(struct stage *stage, struct error *err); // until nothing moves
enum code host_begin(struct stage *stage, const struct start_request *request, struct error *err);
void host_send(struct stage *stage, struct letter *letter, struct str run);
void host_enter(struct stage *stage);

// ---- stage_people.c
void people_start(struct stage *stage); // schedules what the script says
void people_hear(struct stage *stage, const struct stage_run *run, const struct moment *moment);
int64_t people_due(const struct stage *stage); // INT64_MAX: nobody wants anything
void people_send(struct stage *stage);         // what is due
void people_decided(struct stage *stage, const struct engine_decision *decision);
void people_refused(struct stage *stage, const struct letter *letter, const char *why); // it could not even be sent
void people_again(struct stage *stage); // people who got no answer before the crash ask again
void people_end(struct stage *stage);   // what was never sent is a fault

// ---- stage_tool.c
void tool_open(struct stage *stage);
void tool_told_task(struct stage *stage, struct str path,
                    const struct moment *moment); // an attempt of a playbook's task
void tool_told(struct stage *stage, struct str path, const struct moment *moment);

// ---- real.c: really runs a request and waits for it
enum code real_run(struct stage *stage, const struct tool_request *request, struct fake_answer *answer,
                   struct error *err) MUST_CHECK;
void real_close(struct real_tools *real);

// ---- small things
struct str trial_format(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3); // ptr "" when memory ran out
struct trial_fault *result_fault(struct trial_result *result, uint32_t line, uint32_t column, struct str what);
struct str json_line(struct arena *arena, const struct json *value);
const char *occasion_word(enum trial_occasion occasion);

#endif
