// Private to the simulated disk: contents, names and the operations that no sync has covered.
#ifndef CAIRN_TRIAL_DISK_STATE_H
#define CAIRN_TRIAL_DISK_STATE_H

#include "base/invariant.h"

#include <stdbool.h>
#include <stdint.h>

// Shared bytes: written only by a sole owner, copied otherwise.
struct sim_blob {
    uint32_t refs;
    size_t len, capacity;
    char bytes[];
};

struct sim_inode {
    bool directory;
    struct sim_blob *durable, *cached;
};

struct sim_entry {
    struct sim_blob *path; // with NUL
    uint32_t inode;
};

struct sim_names {
    struct sim_entry *items; // by path
    size_t count, capacity;
};

enum sim_op_kind { OP_WRITE = 1, OP_CUT, OP_PUT /* a name for an inode */, OP_RENAME, OP_DROP };

struct sim_op {
    enum sim_op_kind kind;
    uint32_t inode;
    uint64_t offset; // of a write; size after a cut
    struct sim_blob *data;
    struct sim_blob *path, *from; // names; from: of a rename
};

struct sim_state {
    struct sim_inode *inodes;
    size_t inode_count, inode_capacity;
    struct sim_names durable, cached;
    struct sim_op *ops;
    size_t op_count, op_capacity;
};

// Nobody runs out of memory here: it is a test that ends then.
void *sim_must(void *memory);

// Blobs are counted: share and drop. Writing and resizing copy one that others hold, and change the pointer.
struct sim_blob *sim_blob_new(const void *bytes, size_t len, size_t capacity);
struct sim_blob *sim_blob_text(const char *text); // with NUL
struct sim_blob *sim_blob_share(struct sim_blob *blob);
void sim_blob_drop(struct sim_blob *blob);
void sim_blob_write(struct sim_blob **blob, uint64_t offset, const void *bytes, size_t size);
void sim_blob_resize(struct sim_blob **blob, uint64_t size);

const struct sim_entry *sim_names_find(const struct sim_names *names, const char *path); // NULL: none
void sim_names_drop(struct sim_names *names, const char *path);
void sim_names_release(struct sim_names *names);
void sim_names_copy(struct sim_names *to, const struct sim_names *from);
bool sim_in_dir(const char *path, const char *dir); // directly
bool sim_parent_exists(const struct sim_names *names, const struct sim_state *state, const char *path);

void sim_op_release(struct sim_op *op);
void sim_state_release(struct sim_state *state);
void sim_state_copy(struct sim_state *to, const struct sim_state *from);
uint32_t sim_inode_new(struct sim_state *state, bool directory);
void sim_add_op(struct sim_state *state, struct sim_op op); // to those that no sync has covered; takes what `op` holds
void sim_apply_name(struct sim_names *names, const struct sim_op *op);
bool sim_is_name(const struct sim_op *op);
void sim_make_durable(struct sim_state *state, const struct sim_op *op);
// Takes operations off the list, durable when `keep`: those of an inode, the names in a directory, or (both NULL) all. Names are kept
// in any case: a file system whose journal fails is not used any further.
void sim_settle(struct sim_state *state, const uint32_t *inode, const char *dir, bool keep);

#endif
