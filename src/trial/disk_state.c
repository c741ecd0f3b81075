#include "trial/disk_state.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

void *sim_must(void *memory)
{
    INVARIANT(memory != NULL);
    return memory;
}

// ---- blobs

struct sim_blob *sim_blob_new(const void *bytes, size_t len, size_t capacity)
{
    struct sim_blob *blob = sim_must(malloc(sizeof(*blob) + capacity + 1));
    *blob = (struct sim_blob){.refs = 1, .len = len, .capacity = capacity};
    if (len > 0) memcpy(blob->bytes, bytes, len);
    blob->bytes[len] = '\0';
    return blob;
}

struct sim_blob *sim_blob_text(const char *text)
{
    return sim_blob_new(text, strlen(text), strlen(text));
}

struct sim_blob *sim_blob_share(struct sim_blob *blob)
{
    if (blob) blob->refs++;
    return blob;
}

void sim_blob_drop(struct sim_blob *blob)
{
    if (blob && --blob->refs == 0) free(blob);
}

// Makes *blob the only owner of room for `size` bytes.
static void blob_own(struct sim_blob **blob, size_t size)
{
    if ((*blob)->refs == 1 && (*blob)->capacity >= size) return;
    size_t capacity = size > (*blob)->len ? size + size / 2 : (*blob)->len;
    struct sim_blob *copy = sim_blob_new((*blob)->bytes, (*blob)->len, capacity);
    sim_blob_drop(*blob);
    *blob = copy;
}

void sim_blob_write(struct sim_blob **blob, uint64_t offset, const void *bytes, size_t size)
{
    size_t end = (size_t)offset + size;
    if (size == 0) return;
    blob_own(blob, end);
    if (offset > (*blob)->len) memset((*blob)->bytes + (*blob)->len, 0, (size_t)offset - (*blob)->len);
    memcpy((*blob)->bytes + offset, bytes, size);
    if (end > (*blob)->len) (*blob)->len = end;
}

void sim_blob_resize(struct sim_blob **blob, uint64_t size)
{
    blob_own(blob, (size_t)size);
    if (size > (*blob)->len) memset((*blob)->bytes + (*blob)->len, 0, (size_t)size - (*blob)->len);
    (*blob)->len = (size_t)size;
}

// ---- names

static size_t names_place(const struct sim_names *names, const char *path, bool *found)
{
    size_t low = 0, high = names->count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(names->items[middle].path->bytes, path);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct sim_entry *sim_names_find(const struct sim_names *names, const char *path)
{
    bool found;
    size_t at = names_place(names, path, &found);
    return found ? &names->items[at] : NULL;
}

static void names_put(struct sim_names *names, struct sim_blob *path, uint32_t inode)
{
    bool found;
    size_t at = names_place(names, path->bytes, &found);
    if (found) {
        INVARIANT(names->items);
        names->items[at].inode = inode;
        return;
    }
    INVARIANT(LIST_ROOM(names->items, names->count, &names->capacity));
    memmove(names->items + at + 1, names->items + at, (names->count - at) * sizeof(*names->items));
    names->items[at] = (struct sim_entry){sim_blob_share(path), inode};
    names->count++;
}

void sim_names_drop(struct sim_names *names, const char *path)
{
    bool found;
    size_t at = names_place(names, path, &found);
    if (!found) return;
    sim_blob_drop(names->items[at].path);
    memmove(names->items + at, names->items + at + 1, (names->count - at - 1) * sizeof(*names->items));
    names->count--;
}

void sim_names_release(struct sim_names *names)
{
    for (size_t i = 0; i < names->count; i++) sim_blob_drop(names->items[i].path);
    free(names->items);
    *names = (struct sim_names){0};
}

void sim_names_copy(struct sim_names *to, const struct sim_names *from)
{
    *to = (struct sim_names){0};
    if (from->count == 0) return;
    to->items = sim_must(malloc(from->count * sizeof(*to->items)));
    to->count = to->capacity = from->count;
    for (size_t i = 0; i < from->count; i++)
        to->items[i] = (struct sim_entry){sim_blob_share(from->items[i].path), from->items[i].inode};
}

bool sim_in_dir(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len == 0) return strchr(path, '/') == NULL;
    return strncmp(path, dir, len) == 0 && path[len] == '/' && strchr(path + len + 1, '/') == NULL;
}

bool sim_parent_exists(const struct sim_names *names, const struct sim_state *state, const char *path)
{
    const char *slash = strrchr(path, '/');
    char parent[1024];
    if (!slash) return true;
    if (slash == path || (size_t)(slash - path) >= sizeof(parent)) return false;
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    const struct sim_entry *entry = sim_names_find(names, parent);
    return entry && state->inodes[entry->inode].directory;
}

// ---- state

void sim_op_release(struct sim_op *op)
{
    sim_blob_drop(op->data);
    sim_blob_drop(op->path);
    sim_blob_drop(op->from);
}

void sim_state_release(struct sim_state *state)
{
    for (size_t i = 0; i < state->inode_count; i++) {
        sim_blob_drop(state->inodes[i].durable);
        sim_blob_drop(state->inodes[i].cached);
    }
    for (size_t i = 0; i < state->op_count; i++) sim_op_release(&state->ops[i]);
    free(state->inodes);
    free(state->ops);
    sim_names_release(&state->durable);
    sim_names_release(&state->cached);
    *state = (struct sim_state){0};
}

void sim_state_copy(struct sim_state *to, const struct sim_state *from)
{
    *to = (struct sim_state){0};
    to->inodes = from->inode_count ? sim_must(malloc(from->inode_count * sizeof(*to->inodes))) : NULL;
    to->inode_count = to->inode_capacity = from->inode_count;
    for (size_t i = 0; i < from->inode_count; i++)
        to->inodes[i] = (struct sim_inode){from->inodes[i].directory, sim_blob_share(from->inodes[i].durable),
                                           sim_blob_share(from->inodes[i].cached)};
    to->ops = from->op_count ? sim_must(malloc(from->op_count * sizeof(*to->ops))) : NULL;
    to->op_count = to->op_capacity = from->op_count;
    for (size_t i = 0; i < from->op_count; i++) {
        to->ops[i] = from->ops[i];
        sim_blob_share(to->ops[i].data);
        sim_blob_share(to->ops[i].path);
        sim_blob_share(to->ops[i].from);
    }
    sim_names_copy(&to->durable, &from->durable);
    sim_names_copy(&to->cached, &from->cached);
}

uint32_t sim_inode_new(struct sim_state *state, bool directory)
{
    INVARIANT(LIST_ROOM(state->inodes, state->inode_count, &state->inode_capacity));
    state->inodes[state->inode_count] =
        (struct sim_inode){.directory = directory, .durable = sim_blob_new("", 0, 0), .cached = sim_blob_new("", 0, 0)};
    return (uint32_t)state->inode_count++;
}

void sim_add_op(struct sim_state *state, struct sim_op op)
{
    INVARIANT(LIST_ROOM(state->ops, state->op_count, &state->op_capacity));
    state->ops[state->op_count++] = op;
}

void sim_apply_name(struct sim_names *names, const struct sim_op *op)
{
    const struct sim_entry *entry;
    switch (op->kind) {
    case OP_PUT:
        names_put(names, op->path, op->inode);
        break;
    case OP_RENAME:
        entry = sim_names_find(names, op->from->bytes);
        if (entry && entry->inode == op->inode) sim_names_drop(names, op->from->bytes);
        names_put(names, op->path, op->inode);
        break;
    case OP_DROP:
        entry = sim_names_find(names, op->path->bytes);
        if (entry && entry->inode == op->inode) sim_names_drop(names, op->path->bytes);
        break;
    case OP_WRITE:
    case OP_CUT:
        break;
    }
}

bool sim_is_name(const struct sim_op *op)
{
    return op->kind != OP_WRITE && op->kind != OP_CUT;
}

void sim_make_durable(struct sim_state *state, const struct sim_op *op)
{
    if (op->kind == OP_WRITE)
        sim_blob_write(&state->inodes[op->inode].durable, op->offset, op->data->bytes, op->data->len);
    else if (op->kind == OP_CUT)
        sim_blob_resize(&state->inodes[op->inode].durable, op->offset);
    else
        sim_apply_name(&state->durable, op);
}

void sim_settle(struct sim_state *state, const uint32_t *inode, const char *dir, bool keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->op_count; i++) {
        struct sim_op *op = &state->ops[i];
        bool mine = true;
        if (inode) mine = !sim_is_name(op) && op->inode == *inode;
        if (dir) mine = sim_is_name(op) && sim_in_dir(op->path->bytes, dir);
        if (sim_is_name(op) && !keep) mine = false;
        if (!mine) {
            state->ops[kept++] = *op;
            continue;
        }
        if (keep) sim_make_durable(state, op);
        sim_op_release(op);
    }
    state->op_count = kept;
}
