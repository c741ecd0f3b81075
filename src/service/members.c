// This engine among the others of its store (S17, ADR 0021): it joins, renews, takes its share of the shards and takes up their runs,
// gives up what is too much, and begins anew when it was taken for dead.
//
// The clerk is a thread of its own: closing sinks waits for notes that the engine's thread stores.
#include "service/inside.h"

#include "temporal/host.h"

enum {
    LEASE_MS = 10000,
    LOOK_MS = 1000,
    RELOAD_MS = 2000,
    SHARDLESS_MS = 30000,
    ADOPT_PAGE = 256,
    POLL_WAITING_MS = 50,
    AWAY_MS = 200
};
#define SHARD_OF_DUTY UINT64_C(1)

static int64_t lease_of(const struct service *service)
{
    return service->settings.engine_lease_ms ? service->settings.engine_lease_ms : LEASE_MS;
}

// ---- the clerk

static void change_sinks(struct service *service, bool wants)
{
    struct error err = {0};
    sinks_close(service);
    if (sinks_open(service, !wants, &err)) os_log(LOG_ERROR, "sinks not opened why=\"%s\"", err.message);
}

static void *clerk_thread(void *context)
{
    struct service *service = context;
    struct members *members = &service->members;
    struct store *reader = NULL; // of what others carry
    pthread_mutex_lock(&members->mutex);
    while (!members->stop) {
        bool wants = members->wants_sinks, changes = wants != members->has_sinks;
        pthread_mutex_unlock(&members->mutex);
        if (changes)
            change_sinks(service, wants);
        else if (!wants && service->settings.sinks && (reader || (reader = service_reader(service))))
            sinks_look(service, reader);
        pthread_mutex_lock(&members->mutex);
        members->has_sinks = wants;
        if (!members->stop && members->wants_sinks == wants)
            os_wait_until(&members->changed, &members->mutex, os_now().mono_ms + RELOAD_MS);
    }
    pthread_mutex_unlock(&members->mutex);
    if (reader) store_close(reader);
    return NULL;
}

static void want_sinks(struct members *members, bool wants)
{
    LOCKED(&members->mutex);
    members->wants_sinks = wants;
    pthread_cond_signal(&members->changed);
}

static bool has_sinks(struct members *members)
{
    LOCKED(&members->mutex);
    return members->has_sinks;
}

enum code members_start(struct service *service, struct error *err)
{
    struct members *members = &service->members;
    // What is wrong with the settings is reported now, not when the duty comes to us.
    enum code rc = sinks_open(service, true, err);
    if (rc) return rc;
    if (pthread_create(&members->clerk, NULL, clerk_thread, service)) return error_set(err, E_LIMIT, "no thread");
    members->clerk_runs = true;
    return OK;
}

void members_stop(struct service *service)
{
    struct members *members = &service->members;
    if (!members->clerk_runs) return;
    pthread_mutex_lock(&members->mutex);
    members->stop = true;
    pthread_cond_signal(&members->changed);
    pthread_mutex_unlock(&members->mutex);
    pthread_join(members->clerk, NULL);
    members->clerk_runs = false;
}

// ---- shards

bool service_several(const struct service *service)
{
    return service->members.several;
}

bool members_may_start(void *context)
{
    const struct service *service = context;
    const struct members *members = &service->members;
    return !members->several || os_now().mono_ms < __atomic_load_n(&members->safe_until_ms, __ATOMIC_RELAXED);
}

bool members_have_duty(const struct service *service)
{
    const struct members *members = &service->members;
    return !members->several || (__atomic_load_n(&members->mine, __ATOMIC_RELAXED) & SHARD_OF_DUTY);
}

bool members_are_adopting(const struct service *service)
{
    const struct members *members = &service->members;
    return members->several && (members->adopting || members->shardless);
}

static uint64_t lowest(uint64_t bits, uint32_t count)
{
    uint64_t some = 0;
    for (; count > 0 && bits; count--) {
        some |= bits & -bits;
        bits &= bits - 1;
    }
    return some;
}

// The last shards of ours leave, each in a moment when nothing of it is in flight; new runs go to the others.
static uint64_t plan_gives(struct service *service, const struct shard_map *map, const struct shard_plan *plan)
{
    struct members *members = &service->members;
    uint32_t have = (uint32_t)__builtin_popcountll(map->mine);
    uint64_t keep = lowest(map->mine, have - plan->surplus_count);
    members->leaving = map->mine & ~keep;
    store_place(service->store, keep);
    if (members->leaving == 0) return 0;
    uint64_t give = members->leaving & ~engine_busy(service->engine) & ~members->adopting;
    if (give & SHARD_OF_DUTY) {
        want_sinks(members, false);
        if (has_sinks(members)) give &= ~SHARD_OF_DUTY; // it is on its way
    }
    return give;
}

static void set_map(struct members *members, const struct shard_map *map)
{
    LOCKED(&members->mutex);
    members->map = *map;
}

struct shard_map members_map(struct members *members)
{
    LOCKED(&members->mutex);
    return members->map;
}

static void told(struct service *service, const struct shard_map *map, int64_t asked_ms)
{
    struct members *members = &service->members;
    uint64_t came = map->mine & ~members->mine, left = members->mine & ~map->mine;
    if (members->self != map->self)
        os_log(LOG_INFO, "engine joined number=%llu engines=%u", (unsigned long long)map->self, map->members);
    if (came || left)
        os_log(LOG_INFO, "shards taken=%d given=%d have=%d engines=%u", __builtin_popcountll(came),
               __builtin_popcountll(left), __builtin_popcountll(map->mine), map->members);
    set_map(members, map);
    if (left) engine_let_go(service->engine, left); // none, unless the store thinks otherwise than we do
    __atomic_store_n(&members->self, map->self, __ATOMIC_RELAXED);
    __atomic_store_n(&members->count, map->members, __ATOMIC_RELAXED);
    __atomic_store_n(&members->carrier, map->free & SHARD_OF_DUTY ? 0 : map->owner[0], __ATOMIC_RELAXED);
    __atomic_store_n(&members->mine, map->mine, __ATOMIC_RELAXED);
    // Others count from when the store heard of us, which was not before we asked.
    __atomic_store_n(&members->safe_until_ms, asked_ms + lease_of(service) * 4 / 5, __ATOMIC_RELAXED);
    if (service->host) temporal_host_serve(service->host, map->mine, map->mine & SHARD_OF_DUTY);
    members->adopting = (members->adopting & map->mine) | came;
    if (came) members->before = 0;
    if (came & SHARD_OF_DUTY) members->shardless = true;
    if (!(members->leaving & SHARD_OF_DUTY)) want_sinks(members, map->mine & SHARD_OF_DUTY);
}

// Taken for dead: others have, or will have, all that was ours.
static void begin_anew(struct service *service)
{
    struct members *members = &service->members;
    os_log(LOG_WARN, "engine fenced, joins again number=%llu shards=%d why=\"it was silent for longer than its lease\"",
           (unsigned long long)members->self, __builtin_popcountll(members->mine));
    engine_let_go(service->engine, UINT64_MAX);
    want_sinks(members, false);
    members->leaving = members->adopting = 0;
    members->shardless = false;
    __atomic_store_n(&members->mine, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&members->safe_until_ms, 0, __ATOMIC_RELAXED);
    store_place(service->store, 0);
    if (service->host) temporal_host_serve(service->host, 0, false);
}

static enum code look(struct service *service, struct error *err)
{
    struct shard_map map;
    struct moment_in_time asked = os_now();
    if (store_fenced(service->store)) begin_anew(service);
    enum code rc = store_shards(service->store, lease_of(service), asked.wall_ms, &map, err);
    if (!rc) {
        told(service, &map, asked.mono_ms);
        struct shard_plan plan = shard_plan(&map, entropy_number(os_entropy()));
        uint64_t give = plan_gives(service, &map, &plan);
        if (give) engine_let_go(service->engine, give);
        if (give || plan.take) {
            rc = store_shards_move(service->store, plan.take, give, asked.wall_ms, &map, err);
            if (!rc) told(service, &map, asked.mono_ms);
            if (!rc) store_place(service->store, map.mine & ~service->members.leaving);
        }
    }
    if (rc != E_CONFLICT || !store_fenced(service->store)) return rc;
    *err = (struct error){0};
    begin_anew(service);
    service->members.next_look_ms = 0;
    return OK;
}

enum code members_join(struct service *service, struct error *err)
{
    struct shard_map map;
    enum code rc = store_shards(service->store, lease_of(service), os_now().wall_ms, &map, err);
    service->members.several = rc != E_UNSUPPORTED;
    if (rc == E_UNSUPPORTED) {
        *err = (struct error){0};
        return OK;
    }
    return rc ? rc : look(service, err);
}

// ---- in each round of the engine's thread

// A page at a time, so that the lease is renewed in between.
static enum code adopt_some(struct service *service, struct error *err)
{
    struct members *members = &service->members;
    struct run_filter filter = {.unfinished = true,
                                .shards = members->adopting,
                                .shardless = members->shardless,
                                .before = members->before,
                                .limit = ADOPT_PAGE};
    size_t taken = 0, left = 0;
    enum code rc = adopt_page(service, &filter, &taken, &left, err);
    members->before = filter.before;
    if (taken + left > 0) os_log(LOG_INFO, "runs taken up count=%zu left=%zu", taken, left);
    if (rc || filter.before) return rc;
    members->adopting = 0;
    members->shardless = false;
    return OK;
}

static enum code reload(struct service *service, struct error *err)
{
    service_reload(service, NULL, NULL); // tokens: what is revoked elsewhere ends here, too
    enum code rc = definitions_reload(service, err);
    return rc ? rc : admission_reload(service, err);
}

// Runs of processes that are no engine among others (`cairn run`), and died: who has the duty takes them up.
static void look_for_shardless(struct members *members, int64_t mono_ms)
{
    if (mono_ms < members->next_shardless_ms) return;
    members->next_shardless_ms = mono_ms + SHARDLESS_MS;
    if (members->mine & SHARD_OF_DUTY) members->shardless = true;
}

static enum code tick(struct service *service, int64_t mono_ms, struct error *err)
{
    struct members *members = &service->members;
    enum code rc = OK;
    if (mono_ms >= members->next_look_ms || store_fenced(service->store)) {
        int64_t pause = lease_of(service) / 5;
        members->next_look_ms = mono_ms + (pause < LOOK_MS ? pause : LOOK_MS);
        rc = look(service, err);
    }
    look_for_shardless(members, mono_ms);
    if (!rc && members_are_adopting(service)) rc = adopt_some(service, err);
    if (rc == E_CONFLICT && store_fenced(service->store)) { // the next look begins anew
        *err = (struct error){0};
        return OK;
    }
    if (!rc && service->waits.count > 0 && mono_ms >= members->next_poll_ms) {
        members->next_poll_ms = mono_ms + POLL_WAITING_MS;
        waits_elsewhere(service);
    }
    if (!rc && mono_ms >= members->next_reload_ms) {
        members->next_reload_ms = mono_ms + RELOAD_MS;
        rc = reload(service, err);
    }
    return rc;
}

enum code members_tick(struct service *service, int64_t mono_ms, struct error *err)
{
    if (!service->members.several) return OK;
    bool away = engine_away(service->engine);
    enum code rc = away ? OK : tick(service, mono_ms, err);
    if (!away && rc != E_AWAY) return rc;
    service->members.next_look_ms = mono_ms + AWAY_MS; // others that share the store see as little of it
    *err = (struct error){0};
    return OK;
}
