// The store of a world, seen through a commit of our own that shows every batch to the checker and may let it fail. Files
// and SQLite stand on a simulated disk: there the process dies at the n-th change of the disk, a sync fails, space runs out.
#include "trial/disk.h"
#include "sim/vfs.h"
#include "sim/world.h"

#include <stdio.h>

const char *sim_store_name(enum sim_store store)
{
    switch (store) {
    case SIM_MEMORY:
        return "memory";
    case SIM_FILES:
        return "files";
    case SIM_SQLITE:
        return "sqlite";
    case SIM_SHARDS:
        return "shards";
    }
    return "";
}

enum sim_store sim_store_parse(struct str text)
{
    for (int i = SIM_MEMORY; i <= SIM_SHARDS; i++)
        if (str_is(text, sim_store_name((enum sim_store)i))) return (enum sim_store)i;
    return (enum sim_store)0;
}

// ---- faults of a commit

enum commit_fault {
    COMMIT_GOES = 0,
    COMMIT_DIES_BEFORE,
    COMMIT_DIES_AFTER,
    COMMIT_FULL,
    DISK_STOPS,
    DISK_SYNC_FAILS,
    DISK_FULL
};

static enum commit_fault draw_fault(struct world *w)
{
    static const enum commit_fault memory[] = {COMMIT_DIES_BEFORE, COMMIT_DIES_AFTER, COMMIT_FULL};
    static const enum commit_fault disk[] = {DISK_STOPS,      COMMIT_DIES_AFTER, DISK_STOPS, DISK_STOPS,
                                             DISK_SYNC_FAILS, DISK_FULL,         COMMIT_FULL};
    bool calm = w->options.calm;
    if (w->options.store == SIM_MEMORY || w->options.store == SIM_SHARDS)
        return memory[choice_pick(w->choice, STREAM_DISK, calm ? 2 : ARRAY_COUNT(memory))];
    return disk[choice_pick(w->choice, STREAM_DISK, calm ? 2 : ARRAY_COUNT(disk))];
}

static enum commit_fault pick_fault(struct world *w)
{
    if (w->zombie_acts) return COMMIT_GOES;
    if (w->full_left > 0) {
        w->full_left--;
        return COMMIT_FULL;
    }
    if (w->healing || (w->options.calm && w->crashes_left == 0) ||
        !choice_once_in(w->choice, STREAM_DISK, w->commit_fault_rate))
        return COMMIT_GOES;
    enum commit_fault fault = draw_fault(w);
    if (fault == COMMIT_FULL) w->full_left = choice_pick(w->choice, STREAM_DISK, 3);
    if (fault == COMMIT_FULL || fault == DISK_FULL) return fault;
    if (w->crashes_left == 0) return COMMIT_GOES;
    w->crashes_left--;
    return fault;
}

static void arm(struct world *w, enum commit_fault fault)
{
    uint32_t n;
    switch (fault) {
    case DISK_STOPS:
        n = choice_pick(w->choice, STREAM_DISK, w->options.store == SIM_SQLITE ? 24 : 14);
        world_trace(w, "commit: the disk stops after %u changes", n);
        sim_disk_stop_after(w->disk, n);
        break;
    case DISK_SYNC_FAILS:
        world_trace(w, "commit: a sync fails");
        sim_disk_fault(w->disk, (struct sim_fault){.call = SIM_SYNC, .at = 1, .count = 1, .code = E_IO});
        break;
    case DISK_FULL:
        n = choice_pick(w->choice, STREAM_DISK, 6);
        world_trace(w, "commit: no space from write %u on", n + 1);
        sim_disk_fault(w->disk, (struct sim_fault){.call = SIM_WRITE,
                                                   .at = n + 1,
                                                   .count = 1 + choice_pick(w->choice, STREAM_DISK, 4),
                                                   .code = E_FULL});
        break;
    case COMMIT_GOES:
    case COMMIT_DIES_BEFORE:
    case COMMIT_DIES_AFTER:
    case COMMIT_FULL:
        break;
    }
}

static enum code die(struct world *w, const char *when, struct error *err)
{
    world_trace(w, "commit: dies %s it", when);
    checker_unknown(&w->checker);
    w->died = true;
    return error_set(err, E_IO, "the machine died");
}

// The table of operations is part of the world.
static struct world *world_of(const struct store *store)
{
    return (struct world *)((uintptr_t)store->ops - offsetof(struct world, ops));
}

// A holder that lost its leases may still say what it thinks of runs that have ended; nothing else.
static void check_fenced(struct world *w, const struct commit *commit)
{
    if (w->options.store == SIM_SHARDS) checker_fail(&w->checker, "S17", "stored by an engine that was taken for dead");
    for (size_t i = 0; i < commit->head_count; i++) {
        struct model_run *run = checker_run(&w->checker, commit->heads[i].log->ids.run);
        if (run && commit->heads[i].create) run->of_zombie = true;
        if (!run || (!run->terminal && !run->of_zombie))
            checker_fail(&w->checker, "S6", "%.*s: stored by an engine that had lost it",
                         STR_ARG(commit->heads[i].log->ids.run));
    }
}

static enum code commit_watched(struct store *store, struct commit *commit, struct arena *turn, struct error *err)
{
    struct world *w = world_of(store);
    if (w->died) return error_set(err, E_IO, "dead");
    enum commit_fault fault = pick_fault(w);
    w->result.commits++;
    if (fault == COMMIT_FULL) {
        world_trace(w, "commit: no space");
        return error_set(err, E_FULL, "no space left");
    }
    checker_offer(&w->checker, commit);
    if (fault == COMMIT_DIES_BEFORE) return die(w, "before", err);
    arm(w, fault);
    enum code rc = w->real_ops->log.commit(store, commit, turn, err);
    if (fault == DISK_FULL || fault == DISK_SYNC_FAILS) sim_disk_heal(w->disk);
    if (rc == OK && fault == COMMIT_DIES_AFTER) return die(w, "after", err);
    if (rc == OK && w->zombie_acts) check_fenced(w, commit);
    if (rc == OK) {
        checker_acked(&w->checker);
        checker_feed(&w->checker, store);
    } else if (rc == E_IO)
        checker_unknown(&w->checker);
    else
        checker_refused(&w->checker);
    if (rc == E_IO) w->died = true;
    return rc;
}

// Both processes of a world see their commits watched.
static void watch(struct world *w)
{
    w->real_ops = w->store->ops;
    w->ops = *w->real_ops;
    w->ops.log.commit = commit_watched;
    w->store->ops = &w->ops;
}

static void close_one(struct world *w, struct store **store)
{
    if (!*store) return;
    if (w->died) (*store)->dead = true;
    (*store)->ops = w->real_ops;
    store_close(*store);
    *store = NULL;
}

// ---- opening

static void make_disks(struct world *w)
{
    if (!w->outbox) w->outbox = sim_disk_new();
    INVARIANT(w->outbox);
    if (w->options.store == SIM_MEMORY || w->options.store == SIM_SHARDS || w->disk) return;
    w->disk = sim_disk_new();
    w->image = sim_disk_new();
    INVARIANT(w->disk && w->image);
    if (w->options.store != SIM_SQLITE) return;
    w->vfs = sim_vfs_new("cairn-sim", sim_disk_ops(w->disk));
    w->image_vfs = sim_vfs_new("cairn-image", sim_disk_ops(w->image));
    INVARIANT(w->vfs && w->image_vfs);
}

static enum code open_on(struct world *w, struct sim_disk *disk, const char *vfs, struct entropy *entropy,
                         struct store **out, struct error *err)
{
    struct store_options options = {.mode = STORE_WRITE,
                                    .create = true,
                                    .contract = w->contract,
                                    .entropy = entropy,
                                    .artifacts = "/proc/self/none", // nothing is made, nothing is there to be copied
                                    .journal_size = w->journal_size};
    if (w->options.store == SIM_MEMORY) return store_open(STR("memory:"), &options, out, err);
    if (w->options.store == SIM_SHARDS) return store_open(STR("memory:world"), &options, out, err);
    if (w->options.store == SIM_FILES) {
        options.disk = sim_disk_ops(disk);
        return store_open(STR("files:store"), &options, out, err);
    }
    options.vfs = vfs;
    options.disk = sim_disk_ops(disk);
    return store_open(STR("sqlite:store.db"), &options, out, err);
}

bool world_store_open(struct world *w)
{
    struct error err = {0};
    make_disks(w);
    if (w->options.store == SIM_MEMORY && w->store) {
        w->store->dead = false; // the same memory, found by the next process
        return true;
    }
    // The process may die again while it puts the store in order.
    if (w->disk && !w->healing && w->crashes_left > 0 && !w->options.calm &&
        choice_once_in(w->choice, STREAM_DISK, w->commit_fault_rate)) {
        w->crashes_left--;
        uint32_t n = choice_pick(w->choice, STREAM_DISK, 24);
        world_trace(w, "open: the disk stops after %u changes", n);
        sim_disk_stop_after(w->disk, n);
    }
    enum code rc = open_on(w, w->disk, "cairn-sim", &w->entropy, &w->store, &err);
    if (!rc && w->options.store == SIM_SHARDS && !w->keeper) rc = open_on(w, NULL, NULL, &w->entropy, &w->keeper, &err);
    if (rc && w->disk && sim_disk_stopped(w->disk)) return false;
    if (rc) {
        checker_fail(&w->checker, "S2", "the store cannot be opened: %s", err.message);
        return false;
    }
    if (w->disk) sim_disk_stop_after(w->disk, UINT64_MAX); // it stops while the store is opened, not while the checker reads it
    watch(w);
    return w->options.store != SIM_SHARDS || world_store_take(w, w->store);
}

bool world_store_take(struct world *w, struct store *store)
{
    enum { LEASE_MS = 1000 };
    const int64_t later = INT64_MAX / 2; // a lease has run out when somebody says so
    struct shard_map map;
    struct error err = {0};
    enum code rc = store_shards(store, LEASE_MS, w->wall_ms, &map, &err);
    if (!rc) rc = store_shards_move(store, UINT64_MAX, 0, later, &map, &err);
    if (rc || map.mine != UINT64_MAX) {
        checker_fail(&w->checker, "S17", "shards not taken: %s", rc ? err.message : "not all of them");
        return false;
    }
    store_place(store, 1 + choice_pick(w->choice, STREAM_WORLD, 7));
    return true;
}

void world_store_close(struct world *w)
{
    if (!w->store || w->options.store == SIM_MEMORY) return;
    if (w->died && w->disk)
        sim_disk_stop_after(w->disk, 0); // a dead process writes nothing, also not while it is taken apart
    close_one(w, &w->zombie_store);
    close_one(w, &w->store);
}

// Memory and files stand for one process with two engines: of those stores only one process at a time can have the lease.
bool world_store_second(struct world *w)
{
    if (w->options.store != SIM_SQLITE && w->options.store != SIM_SHARDS) return true;
    struct store *first = w->store;
    struct error err = {0};
    enum code rc = open_on(w, w->disk, "cairn-sim", &w->entropy, &w->store, &err);
    if (rc) {
        w->store = first;
        w->died = w->disk && sim_disk_stopped(w->disk);
        if (!w->died) checker_fail(&w->checker, "S6", "the store cannot be opened a second time: %s", err.message);
        return false;
    }
    w->zombie_store = first;
    watch(w);
    return w->options.store != SIM_SHARDS || world_store_take(w, w->store);
}

void world_store_zombie_gone(struct world *w)
{
    close_one(w, &w->zombie_store);
}

static uint32_t lose(void *context, uint32_t n)
{
    (void)context;
    return n > 1 ? 1 : 0;
}

static uint32_t pick_fate(void *context, uint32_t n)
{
    struct world *w = context;
    return choice_pick(w->choice, STREAM_DISK, n);
}

// To walk all crashes there must not be too many: what is older than the last two changes (SQLite: than the last) is kept or
// lost as a whole.
struct few_fates {
    struct world *w;
    uint64_t left; // changes that have not been asked about
    bool lost;     // the older ones
    bool torn;     // the next question is how far
};

static uint32_t pick_few(void *context, uint32_t n)
{
    enum { LOST = 1, TORN = 2 };
    struct few_fates *few = context;
    uint64_t free = few->w->options.store == SIM_SQLITE ? 1 : 2;
    if (few->torn) {
        few->torn = false;
        return choice_pick(few->w->choice, STREAM_DISK, n);
    }
    if (few->left > 0) few->left--;
    if (few->left >= free) return few->lost ? LOST : 0;
    uint32_t fate = choice_pick(few->w->choice, STREAM_DISK, n);
    few->torn = fate == TORN && n > TORN;
    return fate;
}

static void cut_calm(struct world *w)
{
    struct few_fates few = {
        .w = w, .left = sim_disk_unsynced(w->disk), .lost = choice_pick(w->choice, STREAM_DISK, 2) == 1};
    sim_disk_crash(w->disk, (struct sim_choice){pick_few, &few}, SIM_LOSE | SIM_TEAR | SIM_LOSE_NAMES);
}

void world_power_cut(struct world *w)
{
    static const unsigned flags[] = {0, SIM_LOSE | SIM_LOSE_NAMES, SIM_CRASH_ALL,
                                     SIM_LOSE | SIM_TEAR | SIM_TEAR_BYTES | SIM_LOSE_NAMES};
    // The outbox loses everything that was not synced, torn or not, and nothing else.
    sim_disk_crash(w->outbox, (struct sim_choice){lose, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
    if (!w->disk) return;
    sim_disk_heal(w->disk);
    uint32_t how = w->options.calm ? 3 : choice_pick(w->choice, STREAM_DISK, ARRAY_COUNT(flags));
    world_trace(w, how ? "power cut, %llu changes at stake" : "killed, %llu changes in the cache",
                (unsigned long long)sim_disk_unsynced(w->disk));
    if (how == 0)
        sim_disk_kill(w->disk);
    else if (w->options.calm)
        cut_calm(w);
    else
        sim_disk_crash(w->disk, (struct sim_choice){pick_fate, w}, flags[how]);
    sim_disk_stop_after(w->disk, UINT64_MAX);
}

void world_store_forget(struct world *w)
{
    close_one(w, &w->zombie_store);
    close_one(w, &w->store);
    store_close(w->keeper);
    if (w->vfs) sim_vfs_free(w->vfs);
    if (w->image_vfs) sim_vfs_free(w->image_vfs);
    if (w->disk) sim_disk_free(w->disk);
    if (w->image) sim_disk_free(w->image);
    if (w->outbox) sim_disk_free(w->outbox);
}

// ---- the platter

static void no_entropy(struct entropy *entropy, void *bytes, size_t size)
{
    (void)entropy;
    for (size_t i = 0; i < size; i++) ((uint8_t *)bytes)[i] = (uint8_t)i;
}

void world_check_platter(struct world *w, const struct tool_request *request)
{
    const struct model_run *run = checker_run(&w->checker, request->run);
    const struct model_step *step = run ? model_step(run, request->step) : NULL;
    if (!w->disk || !step || w->died || w->checker.failed || run->outbox_count > 0) return;
    struct sim_snapshot *snapshot = sim_disk_snapshot(w->disk);
    sim_disk_restore(w->image, snapshot);
    sim_snapshot_free(snapshot);
    sim_disk_crash(w->image, (struct sim_choice){lose, NULL}, SIM_LOSE | SIM_LOSE_NAMES);
    struct entropy entropy = {.fill = no_entropy};
    struct store *store = NULL;
    struct records found = {0};
    struct error err = {0};
    struct arena arena;
    arena_init(&arena, 16 * 1024, (size_t)64 << 20);
    enum code rc = open_on(w, w->image, "cairn-image", &entropy, &store, &err);
    struct record_range range = {
        .tenant = run->ids.tenant, .run = run->ids.run, .after = step->ordered_seq - 1, .limit = 1};
    if (!rc) rc = store_read(store, &range, &arena, &found, &err);
    const struct model_record *record = &run->events.items[step->ordered_seq - 1];
    if (rc || found.count != 1 || !str_eq(found.items[0].bytes, record->bytes))
        checker_fail(&w->checker, "E1", "%.*s: event %llu, which orders %.*s %u.%u, is not on the platter: %s",
                     STR_ARG(run->ids.run), (unsigned long long)step->ordered_seq, STR_ARG(request->step),
                     request->logical, request->engine, rc ? err.message : "other bytes, or none");
    store_close(store);
    arena_release(&arena);
    w->checker.checks++;
}
