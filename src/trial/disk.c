#include "trial/disk.h"
#include "trial/disk_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_MAX = 4, SECTOR = 512 };

struct sim_file {
    struct file base;
    struct sim_disk *sim;
    struct sim_file *next;
    uint64_t life;
    uint32_t inode;
    bool writable, locked;
    uint64_t lock_byte;
};

struct sim_disk {
    struct disk base;
    struct sim_state state;
    struct sim_file *files;
    uint64_t life; // rises when the process dies
    uint64_t stop_in;
    bool stopped, hit;
    uint64_t calls[SIM_CALL_COUNT];
    struct sim_fault faults[FAULTS_MAX];
    uint64_t noise;
    sim_watch watch;
    void *watcher;
};

struct sim_snapshot {
    struct sim_state state;
};

// ---- faults

static struct sim_disk *sim_of(struct disk *disk)
{
    return CONTAINER_OF(disk, struct sim_disk, base);
}

static struct sim_file *file_of(struct file *file)
{
    return CONTAINER_OF(file, struct sim_file, base);
}

// Counts the call down the armed faults. OK, or what the call shall fail with; *flip for a read that lies.
static enum code meet_fault(struct sim_disk *sim, enum sim_call call, bool *flip)
{
    enum code code = OK;
    sim->calls[call]++;
    for (size_t i = 0; i < FAULTS_MAX; i++) {
        struct sim_fault *fault = &sim->faults[i];
        if (fault->call != call) continue;
        if (fault->at > 1) {
            fault->at--;
            continue;
        }
        sim->hit = true;
        if (fault->code == OK && flip) *flip = true;
        code = code ? code : fault->code;
        if (fault->count > 0 && --fault->count == 0) fault->call = 0;
    }
    return code;
}

static enum code stopped(struct error *err)
{
    return error_set(err, E_IO, "the simulated disk is off");
}

// Before a changing operation.
static enum code enter(struct sim_disk *sim, enum sim_call call, struct error *err)
{
    bool off = sim->stopped || sim->stop_in == 0;
    if (!off && sim->watch) off = sim->watch(sim->watcher, call);
    if (off) {
        sim->stopped = true;
        return stopped(err);
    }
    enum code code = meet_fault(sim, call, NULL);
    if (sim->stop_in != UINT64_MAX) sim->stop_in--;
    return code == OK ? OK : error_set(err, code, "simulated fault: %s", code_text(code));
}

static bool usable(const struct sim_file *file)
{
    return file->life == file->sim->life && !file->sim->stopped;
}

// ---- names, as disk_ops

static void change_name(struct sim_disk *sim, struct sim_op op)
{
    sim_apply_name(&sim->state.cached, &op);
    sim_add_op(&sim->state, op);
}

static enum code sim_open(struct disk *disk, const char *path, unsigned flags, struct file **out, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    struct sim_state *state = &sim->state;
    const struct sim_entry *entry = sim_names_find(&state->cached, path);
    bool changes = (!entry && (flags & OPEN_CREATE)) || (entry && (flags & OPEN_TRUNCATE));
    if (sim->stopped) return stopped(err);
    enum code code = OK;
    if (changes)
        code = enter(sim, SIM_OPEN, err);
    else if ((code = meet_fault(sim, SIM_OPEN, NULL)) != OK)
        error_set(err, code, "simulated fault: cannot open %s", path);
    if (code != OK) return code;
    if (entry && (flags & OPEN_EXCLUSIVE)) return error_set(err, E_EXISTS, "%s exists", path);
    if (!entry && (!(flags & OPEN_CREATE) || !sim_parent_exists(&state->cached, state, path)))
        return error_set(err, E_NOT_FOUND, "there is no %s", path);
    if (entry && state->inodes[entry->inode].directory) return error_set(err, E_INVALID, "%s is a directory", path);
    uint32_t inode = entry ? entry->inode : sim_inode_new(state, false);
    if (!entry) change_name(sim, (struct sim_op){.kind = OP_PUT, .inode = inode, .path = sim_blob_text(path)});
    if (entry && (flags & OPEN_TRUNCATE) && state->inodes[inode].cached->len > 0) {
        sim_blob_resize(&state->inodes[inode].cached, 0);
        sim_add_op(state, (struct sim_op){.kind = OP_CUT, .inode = inode});
    }
    struct sim_file *file = sim_must(calloc(1, sizeof(*file)));
    *file =
        (struct sim_file){.base = {.disk = disk}, .sim = sim, .next = sim->files, .life = sim->life, .inode = inode};
    file->writable = (flags & OPEN_WRITE) != 0;
    sim->files = file;
    *out = &file->base;
    return OK;
}

static enum code sim_make_dir(struct disk *disk, const char *path, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    const struct sim_entry *entry = sim_names_find(&sim->state.cached, path);
    if (entry && !sim->stopped)
        return sim->state.inodes[entry->inode].directory ? OK
                                                         : error_set(err, E_INVALID, "%s is not a directory", path);
    enum code code = enter(sim, SIM_NAME, err);
    if (code != OK) return code;
    if (!sim_parent_exists(&sim->state.cached, &sim->state, path))
        return error_set(err, E_NOT_FOUND, "%s has no parent", path);
    change_name(
        sim, (struct sim_op){.kind = OP_PUT, .inode = sim_inode_new(&sim->state, true), .path = sim_blob_text(path)});
    return OK;
}

static enum code sim_rename(struct disk *disk, const char *from, const char *to, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    enum code code = enter(sim, SIM_NAME, err);
    if (code != OK) return code;
    const struct sim_entry *entry = sim_names_find(&sim->state.cached, from);
    if (!entry || !sim_parent_exists(&sim->state.cached, &sim->state, to))
        return error_set(err, E_NOT_FOUND, "cannot rename %s", from);
    change_name(sim,
                (struct sim_op){
                    .kind = OP_RENAME, .inode = entry->inode, .path = sim_blob_text(to), .from = sim_blob_text(from)});
    return OK;
}

static enum code sim_remove(struct disk *disk, const char *path, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    enum code code = enter(sim, SIM_NAME, err);
    if (code != OK) return code;
    const struct sim_entry *entry = sim_names_find(&sim->state.cached, path);
    if (!entry) return error_set(err, E_NOT_FOUND, "there is no %s", path);
    for (size_t i = 0; i < sim->state.cached.count; i++)
        if (sim_in_dir(sim->state.cached.items[i].path->bytes, path))
            return error_set(err, E_EXISTS, "%s is not empty", path);
    change_name(sim, (struct sim_op){.kind = OP_DROP, .inode = entry->inode, .path = sim_blob_text(path)});
    return OK;
}

static enum code sim_list(struct disk *disk, const char *path, disk_visit visit, void *context, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    struct sim_names names;
    const struct sim_entry *dir = path[0] ? sim_names_find(&sim->state.cached, path) : NULL;
    if (sim->stopped) return stopped(err);
    if (path[0] && (!dir || !sim->state.inodes[dir->inode].directory))
        return error_set(err, E_NOT_FOUND, "there is no directory %s", path);
    sim_names_copy(&names, &sim->state.cached); // visit may change names
    enum code rc = OK;
    for (size_t i = 0; rc == OK && i < names.count; i++)
        if (sim_in_dir(names.items[i].path->bytes, path)) {
            const char *name = names.items[i].path->bytes + (path[0] ? strlen(path) + 1 : 0);
            rc = visit(context, str_from(name), sim->state.inodes[names.items[i].inode].directory);
        }
    sim_names_release(&names);
    return rc;
}

static enum code sim_sync_dir(struct disk *disk, const char *path, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    enum code code = enter(sim, SIM_SYNC, err);
    if (code == OK || code == E_IO)
        if (!sim->stopped) sim_settle(&sim->state, NULL, path, code == OK);
    return code;
}

static enum code sim_sync_all(struct disk *disk, struct error *err)
{
    struct sim_disk *sim = sim_of(disk);
    enum code code = enter(sim, SIM_SYNC, err);
    if (!sim->stopped) sim_settle(&sim->state, NULL, NULL, code == OK);
    return code;
}

// ---- files, as disk_ops

static enum code sim_read(struct file *file, uint64_t offset, void *bytes, size_t size, size_t *got, struct error *err)
{
    struct sim_file *f = file_of(file);
    bool flip = false;
    *got = 0;
    if (!usable(f)) return stopped(err);
    enum code code = meet_fault(f->sim, SIM_READ, &flip);
    if (code != OK) return error_set(err, code, "simulated fault: cannot read");
    const struct sim_blob *content = f->sim->state.inodes[f->inode].cached;
    if (offset >= content->len) return OK;
    *got = content->len - (size_t)offset < size ? content->len - (size_t)offset : size;
    memcpy(bytes, content->bytes + offset, *got);
    if (flip && *got > 0) {
        f->sim->noise = f->sim->noise * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)bytes)[(f->sim->noise >> 33) % *got] ^= (uint8_t)(1u << (f->sim->noise >> 61));
    }
    return OK;
}

static void write_cached(struct sim_file *f, uint64_t offset, const void *bytes, size_t size)
{
    if (size == 0) return;
    sim_blob_write(&f->sim->state.inodes[f->inode].cached, offset, bytes, size);
    sim_add_op(&f->sim->state,
               (struct sim_op){
                   .kind = OP_WRITE, .inode = f->inode, .offset = offset, .data = sim_blob_new(bytes, size, size)});
}

// Writing what is durably there already changes nothing, whenever the power goes.
static bool is_there(const struct sim_file *f, uint64_t offset, const void *bytes, size_t size)
{
    const struct sim_state *state = &f->sim->state;
    const struct sim_blob *durable = state->inodes[f->inode].durable;
    if (!durable || offset + size > durable->len || memcmp(durable->bytes + offset, bytes, size) != 0) return false;
    for (size_t i = 0; i < state->op_count; i++) {
        const struct sim_op *op = &state->ops[i];
        if (op->inode != f->inode || sim_is_name(op)) continue;
        if (op->kind == OP_CUT && op->offset < offset + size) return false;
        if (op->kind == OP_WRITE && op->offset < offset + size && offset < op->offset + op->data->len) return false;
    }
    return true;
}

static enum code sim_write(struct file *file, uint64_t offset, const void *bytes, size_t size, struct error *err)
{
    struct sim_file *f = file_of(file);
    INVARIANT(f->writable);
    if (!usable(f)) return stopped(err);
    enum code code = enter(f->sim, SIM_WRITE, err);
    if (code == OK && !f->sim->stopped && is_there(f, offset, bytes, size))
        sim_blob_write(&f->sim->state.inodes[f->inode].cached, offset, bytes, size);
    else if (!f->sim->stopped)
        write_cached(f, offset, bytes, code == OK ? size : size / 2);
    return code;
}

static enum code sim_size(struct file *file, uint64_t *size, struct error *err)
{
    struct sim_file *f = file_of(file);
    if (!usable(f)) return stopped(err);
    *size = f->sim->state.inodes[f->inode].cached->len;
    return OK;
}

static enum code sim_truncate(struct file *file, uint64_t size, struct error *err)
{
    struct sim_file *f = file_of(file);
    if (!usable(f)) return stopped(err);
    enum code code = enter(f->sim, SIM_WRITE, err);
    if (code != OK) return code;
    sim_blob_resize(&f->sim->state.inodes[f->inode].cached, size);
    sim_add_op(&f->sim->state, (struct sim_op){.kind = OP_CUT, .inode = f->inode, .offset = size});
    return OK;
}

static enum code sim_allocate(struct file *file, uint64_t size, struct error *err)
{
    struct sim_file *f = file_of(file);
    if (!usable(f)) return stopped(err);
    size_t have = f->sim->state.inodes[f->inode].cached->len;
    if (have >= size) return OK;
    char *zeros = sim_must(calloc(1, (size_t)size - have));
    enum code code = sim_write(file, have, zeros, (size_t)size - have, err);
    free(zeros);
    return code;
}

static enum code sim_sync(struct file *file, struct error *err)
{
    struct sim_file *f = file_of(file);
    if (!usable(f)) return stopped(err);
    enum code code = enter(f->sim, SIM_SYNC, err);
    if (!f->sim->stopped) sim_settle(&f->sim->state, &f->inode, NULL, code == OK);
    return code;
}

static bool sim_locked(struct file *file, uint64_t byte)
{
    struct sim_file *f = file_of(file);
    for (struct sim_file *other = f->sim->files; other; other = other->next)
        if (other != f && other->life == f->sim->life && other->inode == f->inode && other->locked &&
            other->lock_byte == byte)
            return true;
    return false;
}

static enum code sim_lock(struct file *file, uint64_t byte, struct error *err)
{
    struct sim_file *f = file_of(file);
    if (!usable(f)) return stopped(err);
    if (sim_locked(file, byte)) return error_set(err, E_LOCKED, "locked");
    f->locked = true;
    f->lock_byte = byte;
    return OK;
}

static void sim_close(struct file *file)
{
    struct sim_file *f = file_of(file);
    struct sim_file **at = &f->sim->files;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    free(f);
}

static const struct disk_ops ops = {
    .open = sim_open,
    .make_dir = sim_make_dir,
    .rename = sim_rename,
    .remove = sim_remove,
    .list = sim_list,
    .sync_dir = sim_sync_dir,
    .sync_all = sim_sync_all,
    .read = sim_read,
    .write = sim_write,
    .size = sim_size,
    .truncate = sim_truncate,
    .allocate = sim_allocate,
    .sync = sim_sync,
    .lock = sim_lock,
    .locked = sim_locked,
    .close = sim_close,
};

// ---- life and death

struct sim_disk *sim_disk_new(void)
{
    struct sim_disk *sim = sim_must(calloc(1, sizeof(*sim)));
    sim->base.ops = &ops;
    sim->stop_in = UINT64_MAX;
    sim->noise = 1;
    return sim;
}

void sim_disk_free(struct sim_disk *sim)
{
    INVARIANT(sim->files == NULL); // a file was not closed
    sim_state_release(&sim->state);
    free(sim);
}

struct disk *sim_disk_ops(struct sim_disk *sim)
{
    return &sim->base;
}

void sim_disk_kill(struct sim_disk *sim)
{
    sim->life++;
    sim->stopped = false;
    sim->stop_in = UINT64_MAX;
}

// What becomes of one write: asks first which way, then how far.
static void crash_write(struct sim_disk *sim, const struct sim_op *op, struct sim_choice choice, unsigned flags)
{
    enum fate { KEPT, LOST, TORN, ZEROED, SPOILT };
    enum fate fates[5] = {KEPT};
    uint32_t count = 1;
    size_t step = (flags & SIM_TEAR_BYTES) ? 1 : SECTOR, size = op->data->len;
    if (flags & SIM_LOSE) fates[count++] = LOST;
    if ((flags & (SIM_TEAR | SIM_TEAR_BYTES)) && size > step) fates[count++] = TORN;
    if (flags & SIM_ZEROS) fates[count++] = ZEROED;
    if (flags & SIM_GARBAGE) fates[count++] = SPOILT;
    enum fate fate = count > 1 ? fates[choice.pick(choice.context, count)] : KEPT;
    struct sim_blob **durable = &sim->state.inodes[op->inode].durable;
    if (fate == LOST) return;
    if (fate == TORN) size = step * (1 + choice.pick(choice.context, (uint32_t)((size - 1) / step)));
    if (fate == KEPT || fate == TORN) {
        sim_blob_write(durable, op->offset, op->data->bytes, size);
        return;
    }
    struct sim_blob *other = sim_blob_new(op->data->bytes, size, size);
    for (size_t i = 0; i < size; i++)
        other->bytes[i] = fate == ZEROED ? 0 : (char)((uint8_t)other->bytes[i] ^ (0x5Au + i % 7));
    sim_blob_write(durable, op->offset, other->bytes, size);
    sim_blob_drop(other);
}

// Names whose directory did not make it are gone with it.
static void prune(struct sim_state *state)
{
    for (size_t i = 0; i < state->durable.count;) {
        const char *path = state->durable.items[i].path->bytes;
        if (sim_parent_exists(&state->durable, state, path)) {
            i++;
            continue;
        }
        sim_names_drop(&state->durable, path);
        i = 0;
    }
}

void sim_disk_crash(struct sim_disk *sim, struct sim_choice choice, unsigned flags)
{
    struct sim_state *state = &sim->state;
    for (size_t i = 0; i < state->op_count; i++) {
        const struct sim_op *op = &state->ops[i];
        bool may_lose = (flags & (sim_is_name(op) ? SIM_LOSE_NAMES : SIM_LOSE)) != 0;
        if (op->kind == OP_WRITE)
            crash_write(sim, op, choice, flags);
        else if (!may_lose || choice.pick(choice.context, 2) == 0)
            sim_make_durable(state, op);
    }
    for (size_t i = 0; i < state->op_count; i++) sim_op_release(&state->ops[i]);
    state->op_count = 0;
    prune(state);
    for (size_t i = 0; i < state->inode_count; i++) {
        sim_blob_drop(state->inodes[i].cached);
        state->inodes[i].cached = sim_blob_share(state->inodes[i].durable);
    }
    sim_names_release(&state->cached);
    sim_names_copy(&state->cached, &state->durable);
    sim_disk_kill(sim);
}

void sim_disk_stop_after(struct sim_disk *sim, uint64_t count)
{
    sim->stop_in = count;
}

void sim_disk_watch(struct sim_disk *sim, sim_watch watch, void *context)
{
    sim->watch = watch;
    sim->watcher = context;
}

bool sim_disk_stopped(const struct sim_disk *sim)
{
    return sim->stopped;
}

uint64_t sim_disk_unsynced(const struct sim_disk *sim)
{
    return sim->state.op_count;
}

void sim_disk_fault(struct sim_disk *sim, struct sim_fault fault)
{
    for (size_t i = 0; i < FAULTS_MAX; i++)
        if (!sim->faults[i].call) {
            sim->faults[i] = fault;
            return;
        }
    INVARIANT(false); // four at a time
}

void sim_disk_heal(struct sim_disk *sim)
{
    memset(sim->faults, 0, sizeof(sim->faults));
    sim->hit = false;
}

uint64_t sim_disk_calls(const struct sim_disk *sim, enum sim_call call)
{
    return sim->calls[call];
}

bool sim_disk_fault_hit(const struct sim_disk *sim)
{
    return sim->hit;
}

// ---- for checkers

struct sim_snapshot *sim_disk_snapshot(const struct sim_disk *sim)
{
    struct sim_snapshot *snapshot = sim_must(calloc(1, sizeof(*snapshot)));
    sim_state_copy(&snapshot->state, &sim->state);
    return snapshot;
}

void sim_disk_restore(struct sim_disk *sim, const struct sim_snapshot *snapshot)
{
    sim_state_release(&sim->state);
    sim_state_copy(&sim->state, &snapshot->state);
    sim_disk_kill(sim);
}

void sim_snapshot_free(struct sim_snapshot *snapshot)
{
    if (snapshot) sim_state_release(&snapshot->state);
    free(snapshot);
}

bool sim_disk_get(const struct sim_disk *sim, const char *path, struct str *out)
{
    const struct sim_entry *entry = sim_names_find(&sim->state.cached, path);
    if (!entry || sim->state.inodes[entry->inode].directory) return false;
    const struct sim_blob *content = sim->state.inodes[entry->inode].cached;
    *out = (struct str){content->bytes, content->len};
    return true;
}

void sim_disk_put(struct sim_disk *sim, const char *path, struct str bytes)
{
    struct sim_state *state = &sim->state;
    char part[1024];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        if (!sim_names_find(&state->cached, part))
            change_name(
                sim, (struct sim_op){.kind = OP_PUT, .inode = sim_inode_new(state, true), .path = sim_blob_text(part)});
    }
    const struct sim_entry *entry = sim_names_find(&state->cached, path);
    uint32_t inode = entry ? entry->inode : sim_inode_new(state, false);
    if (!entry) change_name(sim, (struct sim_op){.kind = OP_PUT, .inode = inode, .path = sim_blob_text(path)});
    sim_settle(state, NULL, NULL, true);
    sim_blob_drop(state->inodes[inode].durable);
    sim_blob_drop(state->inodes[inode].cached);
    state->inodes[inode].durable = sim_blob_new(bytes.ptr, bytes.len, bytes.len);
    state->inodes[inode].cached = sim_blob_share(state->inodes[inode].durable);
}
