// A disk in memory that crashes, tears, fills up and lies: struct disk_ops for `cairn crashtest` and for tests.
//
// Every file has what is on the platter and what the cache shows; between them stands an ordered list of operations that no sync has
// covered yet. Names are such operations as well: a file that was made, renamed or removed is so for good only after sync_dir of its
// directory (or sync_all), even when its bytes were synced. A crash walks the list and asks `pick` about each operation: kept, lost,
// torn, zeros, garbage. So a crash is a vector of small numbers, and their supplier may walk all of them, draw them at random,
// or play a recorded one back.
//
// A write of bytes that are durably there already is at no risk: what the power cut tears is what changes.
//
// A process that dies leaves its open files behind: they stay valid C objects, fail with E_IO, and are to be closed. Paths are
// relative; one that starts with '/' does not exist. owner: one thread.
#ifndef CAIRN_TRIAL_DISK_H
#define CAIRN_TRIAL_DISK_H

#include "os/os.h"

struct sim_disk;
struct sim_snapshot;

struct sim_choice {
    uint32_t (*pick)(void *context, uint32_t n); // one of 0 .. n - 1; 0 is the mildest
    void *context;
};

struct sim_disk *sim_disk_new(void);
void sim_disk_free(struct sim_disk *sim);
struct disk *sim_disk_ops(struct sim_disk *sim); // valid as long as sim

enum sim_call {
    SIM_WRITE = 1 /* also allocate and truncate */,
    SIM_SYNC /* of any kind */,
    SIM_OPEN,
    SIM_READ,
    SIM_NAME /* mkdir, rename, remove */,
    SIM_CALL_COUNT
};

// ---- deaths
enum sim_crash {
    SIM_LOSE = 1,        // an unsynced write or cut may be lost, in any order
    SIM_TEAR = 2,        // a write may end at a multiple of 512
    SIM_TEAR_BYTES = 4,  // or after any byte
    SIM_ZEROS = 8,       // zeros instead of what was written
    SIM_GARBAGE = 16,    // other bytes instead
    SIM_LOSE_NAMES = 32, // an unsynced create, rename or remove may be lost
    SIM_CRASH_ALL = SIM_LOSE | SIM_TEAR | SIM_ZEROS | SIM_GARBAGE | SIM_LOSE_NAMES,
};
void sim_disk_crash(struct sim_disk *sim, struct sim_choice choice, unsigned flags); // power cut
void sim_disk_kill(struct sim_disk *sim);                                            // kill -9: the cache stays
// After `count` more changing operations (0: at once) nothing happens any more and every call fails with E_IO, until the next crash or
// kill. UINT64_MAX: never.
void sim_disk_stop_after(struct sim_disk *sim, uint64_t count);
bool sim_disk_stopped(const struct sim_disk *sim);
// Asked before every changing operation; true: nothing happens any more, as with sim_disk_stop_after(sim, 0). NULL: nobody is.
typedef bool (*sim_watch)(void *context, enum sim_call call);
void sim_disk_watch(struct sim_disk *sim, sim_watch watch, void *context);
uint64_t sim_disk_unsynced(const struct sim_disk *sim); // operations that a crash would ask about

// ---- faults
struct sim_fault {
    enum sim_call call;
    uint64_t at;    // 1: the next such call
    uint64_t count; // so many calls in a row; 0 = all from then on
    enum code code; // E_FULL, E_IO, ...; reads: OK flips one bit of what is read
};
// A write that fails has written its first half. A sync that fails drops the bytes it should have written, while the cache goes on
// showing them; names stay unsynced. At most four at a time; sim_disk_heal ends all.
void sim_disk_fault(struct sim_disk *sim, struct sim_fault fault);
void sim_disk_heal(struct sim_disk *sim);
uint64_t sim_disk_calls(const struct sim_disk *sim, enum sim_call call); // so far
bool sim_disk_fault_hit(const struct sim_disk *sim);                     // since the last heal

// ---- for checkers
// A copy of everything but open files; cheap, since contents are shared until written.
struct sim_snapshot *sim_disk_snapshot(const struct sim_disk *sim);
void sim_disk_restore(struct sim_disk *sim,
                      const struct sim_snapshot *snapshot); // open files are left behind as by kill
void sim_snapshot_free(struct sim_snapshot *snapshot);
bool sim_disk_get(const struct sim_disk *sim, const char *path,
                  struct str *out); // as the cache shows it; valid until the next write
void sim_disk_put(struct sim_disk *sim, const char *path, struct str bytes); // durable at once, with its directories

#endif
