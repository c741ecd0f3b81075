// A sqlite3_vfs that forwards to a struct disk, so that the sqlite store runs on the simulated one.
//
// Several handles may have the database open at once: locks and shared memory are kept here, in the process of the test. Time and
// randomness are counters: the same calls give the same bytes. owner: one thread.
#ifndef CAIRN_TEST_SIM_VFS_H
#define CAIRN_TEST_SIM_VFS_H

#include "os/os.h"

struct sim_vfs;

// Registers it under `name`, which is copied. `disk` must outlive it.
struct sim_vfs *sim_vfs_new(const char *name, struct disk *disk);
void sim_vfs_free(struct sim_vfs *vfs); // no database may be open on it
void sim_vfs_seed(struct sim_vfs *vfs, uint64_t seed);

#endif
