// One world: virtual time, a store, an engine (sometimes a second one that does not know it is dead), tools, clients, and a
// checker that looks on after every act. Everything that may go one way or another is picked (choice.h), so a world is
// its vector of picks and can be run again exactly.
//
// Two phases. While faults last: crashes between and inside commits, full disks, clock jumps, signals of all kinds at any
// moment, results late, twice or never. Then the world heals, people answer what waits for them, and every run must end
// within a bound (I17).
#ifndef CAIRN_TEST_SIM_WORLD_H
#define CAIRN_TEST_SIM_WORLD_H

#include "engine/engine.h"
#include "sim/checker.h"
#include "sim/choice.h"
#include "sim/tool.h"
#include "sim/workload.h"
#include "store/backend.h"

enum sim_store { SIM_MEMORY = 1, SIM_FILES, SIM_SQLITE, SIM_SHARDS }; // SHARDS: memory, with several engines (S17)
const char *sim_store_name(enum sim_store store);
enum sim_store sim_store_parse(struct str text); // 0 when unknown

struct world_options {
    enum sim_store store;
    enum workload_id workload; // WORKLOAD_COUNT: picked per run
    bool calm;                 // exhaustive: one run, few picks, each of them a crash point or a failure
    bool trace;                // tell on stderr what happens
    uint32_t inline_max;       // 0: picked
    char **end;                // the end of its playbook goes here instead of being compared; malloc'ed. NULL: compare
};

struct world_result {
    const char *failed; // invariant; NULL = all held
    char message[600];
    uint64_t trace_hash;
    uint64_t acts, turns, crashes, commits, starts, signals, forks, checks, outboxed;
};

struct sent_signal {
    struct signal signal;
    char id[UUID_SIZE];
    struct str run;
    bool posted; // acknowledged by the store
};

#define WORLD_RUNS_MAX 3
#define WORLD_SIGNALS_MAX 256
#define WORLD_FORKS_MAX 4

struct sim_disk;
struct sim_vfs;

struct world {
    struct world_options options;
    struct choice *choice;
    struct checker checker;
    struct entropy entropy;
    const struct contract *contract;
    struct arena arena;
    int64_t mono_ms, wall_ms;

    struct store *keeper;               // SIM_SHARDS: has the memory while no process does
    struct store *store, *zombie_store; // the second: of the engine that lost its runs, when it has a store of its own
    const struct store_ops *real_ops;
    struct store_ops ops;          // real_ops with our commit
    struct sim_disk *disk, *image; // image: what would be left of the disk, see world_check_platter
    struct sim_vfs *vfs, *image_vfs;
    struct sim_disk *outbox; // of every engine of this machine
    uint64_t journal_size;
    bool died;          // the process must not do anything any more
    uint32_t full_left; // commits that still find no space

    struct engine *engine, *zombie;
    struct sim_tool tools[2];
    struct sim_tool *tool, *zombie_tool;
    bool zombie_acts;
    uint32_t zombie_left;
    bool idle, polled; // the last turn found nothing to do; the inbox was looked into since something happened

    enum workload_id root_workload[WORLD_RUNS_MAX];
    uint32_t root_count;
    struct sent_signal sent[WORLD_SIGNALS_MAX];
    size_t sent_count;
    char fork_ids[WORLD_FORKS_MAX][8];
    uint32_t fork_count;
    bool rivalled;       // another process started the same runs
    bool orphaned;       // it has gone, and its runs have no owner
    bool fork_idle;      // one was made that nobody has taken up yet
    uint32_t forks_left; // of runs that have ended, when nothing else is left to do

    // drawn at the start (swarm)
    uint32_t commit_fault_rate, disturb_rate, batch_max, inline_max;
    int64_t budget_ms; // of writes; 0 = none
    bool fail_open;    // starts do, over the budget
    bool had_zombie;
    uint32_t crash_at; // act before which the process dies whatever else happens; 0 = not any more
    uint32_t full_at;  // act at which the disk is full, for a thousand turns; 0 = not any more
    uint32_t crashes_left, disturbs_left;
    bool healing;

    uint32_t puts; // notes of the world's own

    uint64_t hash;
    struct world_result result;
};

void world_run(struct choice *choice, const struct world_options *options, struct world_result *result);
void world_trace(struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);

// world_process.c
bool process_open(struct world *w, bool only_signals);
void process_adopt(struct world *w); // runs without an owner
void process_restart(struct world *w);
void process_turn(struct world *w);
void process_note(struct world *w, bool fits); // stores a note with a version that fits or does not
void process_crash(struct world *w, const char *why);
void process_stop(struct world *w); // its engines

// world_acts.c
void world_act(struct world *w, bool *more);
void world_poll(struct world *w); // the engine looks into its inbox
bool world_settled(const struct world *w); // every run has ended

// world_store.c
bool world_store_open(struct world *w); // false: it died on the way
void world_store_close(struct world *w);
bool world_store_second(struct world *w); // another process opens it as well
// SIM_SHARDS: takes every shard, whoever had it: leases run out whenever somebody comes. False: the checker knows why.
bool world_store_take(struct world *w, struct store *store);
void world_store_zombie_gone(struct world *w);
void world_power_cut(struct world *w);    // what was not synced is kept, lost or torn
void world_store_forget(struct world *w); // at the end of the world
// E1, to the letter: with everything lost that was not synced, the store still tells of the event that orders the attempt.
void world_check_platter(struct world *w, const struct tool_request *request);

// client.c
void client_disturb(struct world *w);             // some signal to some run, now or by post
void client_visit(struct world *w, bool retries); // some signal to a run that has just been found without an owner
bool client_fork(struct world *w, bool idle);     // some run after some event; false: not any more
bool client_answer(struct world *w);              // answers what waits for a person; false when nothing does
void client_check(struct world *w);               // every posted signal was decided (I23)

#endif
