// Lists walk the index from its end: 40 bytes tell whether a run may match, and only those that may are read.
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 256 };

struct walk {
    struct files_store *files;
    const struct run_filter *filter;
    uint32_t tenant, plan;
    struct disk_index chunk[CHUNK];
    uint64_t first, count; // positions of chunk
};

// Readers look at the disk; the writer has all entries.
static enum code entry_at(struct walk *walk, uint64_t position, struct disk_index *out, struct error *err)
{
    if (walk->files->writer) {
        *out = walk->files->entries[position - 1].index;
        return OK;
    }
    if (position < walk->first || position >= walk->first + walk->count) {
        walk->first = position > CHUNK ? position - CHUNK + 1 : 1;
        walk->count = CHUNK;
        enum code rc = files_read_index(walk->files, walk->first - 1, walk->chunk, CHUNK, err);
        if (rc != OK) return rc;
    }
    *out = walk->chunk[position - walk->first];
    return OK;
}

static bool may_match(const struct walk *walk, const struct disk_index *index)
{
    const struct run_filter *filter = walk->filter;
    if (!index_valid(index)) return true;
    if (index->flags & SLOT_REMOVED) return false;
    if ((filter->tenant.len && index->tenant != walk->tenant) || (filter->plan.len && index->plan != walk->plan))
        return false;
    if (filter->status_mask && !(filter->status_mask >> (index->status & 31) & 1)) return false;
    if ((filter->unfinished && (index->flags & SLOT_TERMINAL)) || (filter->roots && (index->flags & SLOT_CHILD)))
        return false;
    if ((filter->since_ms && index->created_ms < filter->since_ms) ||
        (filter->until_ms && index->created_ms > filter->until_ms))
        return false;
    size_t len = filter->run_prefix.len < sizeof(index->run) ? filter->run_prefix.len : sizeof(index->run);
    return len == 0 || memcmp(index->run, filter->run_prefix.ptr, len) == 0;
}

// A run whose slot cannot be read is listed by its place, so that it is not overlooked.
static bool make_unreadable(struct walk *walk, uint64_t position, struct arena *arena, struct run_head *out)
{
    INVARIANT(position >= 1);
    char name[48];
    snprintf(name, sizeof(name), "unreadable-%llu", (unsigned long long)position);
    *out = (struct run_head){
        .position = position,
        .vocabulary = VOCABULARY_RUN,
        .terminal = true, // no engine goes on with it
        .unreadable = true,
        .summary = {.status = RUN_STATUS_FAILED, .substatus = "UNREADABLE", .cause = "its slot is damaged"},
    };
    out->ids.run = arena_copy(arena, str_from(name));
    out->ids.tenant = arena_copy(arena, walk->filter->tenant.len ? walk->filter->tenant : STR("default"));
    return out->ids.run.ptr && out->ids.tenant.ptr;
}

static enum code read_head(struct walk *walk, uint64_t position, struct arena *arena, struct run_head *out,
                           bool *matches, struct error *err)
{
    struct disk_slot slot;
    struct error told = {.code = OK};
    enum code rc = files_read_slot(walk->files, position, &slot, &told);
    if (rc == OK && (slot.flags & SLOT_REMOVED)) return OK;
    if (rc == OK) rc = files_decode_slot(walk->files, &slot, arena, out, &told);
    if (rc == E_CORRUPT) {
        if (!make_unreadable(walk, position, arena, out)) return error_nomem(err);
        *matches = run_filter_matches(walk->filter, out);
        return OK;
    }
    if (rc != OK) return error_set(err, rc, "%s", told.message);
    *matches = run_filter_matches(walk->filter, out);
    if (*matches) files_tell_owner(walk->files, out);
    return OK;
}

static enum code last_position(struct files_store *files, uint64_t *out, struct error *err)
{
    uint64_t size = 0;
    if (files->writer) {
        *out = files->run_count;
        return OK;
    }
    enum code rc = files->disk->ops->size(files->runs, &size, err);
    *out = size / SLOT_SIZE;
    return rc;
}

enum code files_list(struct store *base, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                     struct error *err)
{
    struct walk walk = {.files = files_of(base),
                        .filter = filter,
                        .tenant = text_hash(filter->tenant),
                        .plan = text_hash(filter->plan)};
    size_t capacity = 0;
    uint64_t position;
    enum code rc = last_position(walk.files, &position, err);
    if (filter->before && filter->before - 1 < position) position = filter->before - 1;
    for (; rc == OK && position > 0; position--) {
        struct disk_index index;
        struct run_head head;
        bool matches = false;
        rc = entry_at(&walk, position, &index, err);
        if (rc != OK || !may_match(&walk, &index)) continue;
        rc = read_head(&walk, position, arena, &head, &matches, err);
        if (rc != OK || !matches) continue;
        if (out->count == filter->limit) {
            out->next = out->items[out->count - 1].position;
            return OK;
        }
        if (!ARENA_ROOM(arena, out->items, out->count, &capacity)) return error_nomem(err);
        out->items[out->count++] = head;
    }
    return rc;
}

// ---- runs that are gone

struct strangers {
    struct files_store *files;
    struct str tenant; // of the directory that is looked at
    stranger_visit visit;
    void *context;
};

static enum code see_directory(void *context, struct str name, bool directory)
{
    const struct strangers *walk = context;
    if (!directory || name.ptr[0] == '.') return OK;
    if (name.ptr[0] != '@' || !str_is(walk->tenant, "default"))
        return files_knows(walk->files, walk->tenant, name) ? OK : walk->visit(walk->context, walk->tenant, name);
    char path[PATH_SIZE];
    if (name.len >= sizeof(path)) return OK;
    snprintf(path, sizeof(path), "%.*s", STR_ARG(name));
    struct strangers below = *walk;
    below.tenant = str_slice(str_from(path), 1, name.len);
    enum code rc = walk->files->disk->ops->list(walk->files->disk, path, see_directory, &below, NULL);
    return rc == E_NOT_FOUND ? OK : rc;
}

enum code files_each_stranger(struct files_store *files, stranger_visit visit, void *context, struct error *err)
{
    struct strangers walk = {.files = files, .tenant = STR("default"), .visit = visit, .context = context};
    return files->disk->ops->list(files->disk, "", see_directory, &walk, err);
}

struct search {
    struct files_store *files;
    struct arena *arena;
    struct faults *out;
    uint64_t found;
};

static enum code see_stranger(void *context, struct str tenant, struct str run)
{
    struct search *search = context;
    const struct disk_ops *ops = search->files->disk->ops;
    char path[PATH_SIZE];
    struct file *file;
    uint64_t size = 0;
    if (files_run_path(tenant, run, "events.jsonl", path, NULL) != OK ||
        ops->open(search->files->disk, path, OPEN_READ, &file, NULL) != OK)
        return OK;
    (void)!ops->size(file, &size, NULL);
    ops->close(file);
    if (size == 0) return OK;
    struct verify_fault one = {.run = run, .what = STR("its slot is missing, and its events are there")};
    search->found++;
    return fault_add(search->out, search->arena, &one) ? OK : E_NOMEM;
}

enum code files_speak_of(struct files_store *files, bool all, uint64_t *runs, struct error *err)
{
    uint64_t size = 0;
    enum code rc = files->index ? files->disk->ops->size(files->index, &size, err) : OK;
    *runs = size / sizeof(struct disk_index);
    return rc == OK ? feed_speaks_of(files, all, runs, err) : rc;
}

// The feed and the index have the number of runs: both are written after the slots. Then the directories: while no process writes,
// one with events belongs to a run.
enum code files_missing(struct store *base, struct arena *arena, struct faults *out, struct error *err)
{
    struct files_store *files = files_of(base);
    struct search search = {.files = files, .arena = arena, .out = out};
    uint64_t told = 0, size = 0;
    enum code rc = files_speak_of(files, true, &told, err);
    if (rc == OK) rc = files->disk->ops->size(files->runs, &size, err);
    if (rc == OK) rc = files_refresh(files, err);
    if (rc != OK) return rc;
    bool at_work = files->writer || files_is_locked(files);
    if (!at_work) rc = files_each_stranger(files, see_stranger, &search, err);
    uint64_t there = size / SLOT_SIZE;
    if (rc != OK || (told <= there + search.found && size % SLOT_SIZE == 0)) return rc;
    char name[48], what[120];
    snprintf(name, sizeof(name), "position-%" PRIu64, there + 1);
    snprintf(what, sizeof(what), "its slot is missing: .cairn/runs ends after %" PRIu64 " of %" PRIu64 " runs", there,
             told > there ? told : there + 1);
    struct verify_fault one = {.run = str_from(name), .what = str_from(what)};
    return fault_add(out, arena, &one) ? OK : error_nomem(err);
}
