// Open, the engine's thread, stop.
#include "service/inside.h"

#include "cairn/cairn.h"
#include "temporal/host.h"

#include <stdlib.h>
#include <string.h>

enum { CLOCK_MS = 1 };       // how soon a player's clock that has moved is seen
enum { KEEP_WAIT_MS = 250 }; // of the engine thread, for results that are elsewhere
enum { POLL_MS = 50, TICK_MS = 25, WAIT_SLOTS = 4096, CALLS_MAX = 10000, STARTS_MAX = 1000 };

// ---- what the engine reports

static void on_event(void *context, const struct engine_event *event)
{
    struct service *service = context;
    if (service->waits.count > 0) waits_event(service, event);
    admission_event(service, event);
    alerts_event(service, event);
    count_event(service, event);
    if (event->moment->kind == MOMENT_EVENT_AWAITED) incoming_awaited(service);
    if (service->host) temporal_host_event(service->host, event);
    if (service->hooks.event) service->hooks.event(service->hooks.context, event);
}

static void on_decision(void *context, const struct engine_decision *decision)
{
    waits_decision(context, decision);
    incoming_decision(context, decision);
}

static void on_refused(void *context, const struct engine_refusal *refusal)
{
    slots_stored(context, refusal->tenant, refusal->run, false);
    queues_refused(&((struct service *)context)->queues, refusal->tenant, refusal->run);
    waits_refused(context, refusal->tenant, refusal->run, refusal->why);
}

static void on_left(void *context, const struct run *run)
{
    struct service *service = context;
    queues_remove(&service->queues, run->ids.tenant, run->ids.run);
    count_left(service, run);
    if (service->host) temporal_host_left(service->host, run->ids.tenant, run->ids.run);
}

static void on_appended(void *context, enum code rc, int64_t micros, size_t events)
{
    struct service *service = context;
    health_stored(service, rc);
    if (rc == OK) projecting_stored(service, events, os_now().mono_ms);
    count_append(service, rc, micros, events);
}

static void on_outbox(void *context, const struct engine_outbox *news)
{
    alerts_outbox(context, news);
}

// ---- the thread

// What waits is a list of at most one turn: it is walked only where a limit per tenant was asked for.
static bool tenant_is_greedy(struct service *service, struct str tenant)
{
    uint32_t count = 0, max = service->settings.calls_per_tenant;
    if (max == 0 || service->posted_count < max) return false;
    for (const struct call *call = service->posted; call; call = call->next) count += str_eq(call->who.tenant, tenant);
    return count >= max;
}

static size_t starts_max(const struct service *service)
{
    return service->settings.starts_max ? service->settings.starts_max : STARTS_MAX;
}

bool service_is_full(const struct service *service)
{
    return __atomic_load_n(&service->posted_starts, __ATOMIC_RELAXED) >= starts_max(service);
}

bool service_post(struct call *call, bool (*work)(struct call *call))
{
    struct service *service = call->service;
    uint32_t max = service->settings.calls_max ? service->settings.calls_max : CALLS_MAX;
    call->work = work;
    call->next = NULL;
    pthread_mutex_lock(&service->mutex);
    bool stopping = service->stopping || service->failed;
    bool full = service->posted_count >= max || (call->makes_run && service->posted_starts >= starts_max(service));
    bool greedy = !full && tenant_is_greedy(service, call->who.tenant);
    if (!stopping && !full && !greedy) {
        *service->posted_last = call;
        service->posted_last = &call->next;
        service->posted_count++;
        if (call->makes_run) __atomic_store_n(&service->posted_starts, service->posted_starts + 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&service->mutex);
    if (!stopping && !full && !greedy) {
        engine_wake(service->engine);
        return true;
    }
    call->answer.retry_after_ms = 1000;
    call->answer.retryable = true;
    if (stopping) return call_problem(call, 503, "SHUTTING_DOWN", "the service is stopping");
    if (greedy)
        return call_problem(call, 429, "TENANT_OVERLOADED", "%u calls of this tenant wait for the engine",
                            service->settings.calls_per_tenant);
    return call_problem(call, 429, "OVERLOADED", "as many calls wait for the engine as may");
}

static struct call *take_posted(struct service *service)
{
    LOCKED(&service->mutex);
    struct call *calls = service->posted;
    service->posted = NULL;
    service->posted_last = &service->posted;
    service->posted_count = 0;
    __atomic_store_n(&service->posted_starts, 0, __ATOMIC_RELAXED);
    return calls;
}

static bool work_posted(struct service *service)
{
    struct call *calls = take_posted(service);
    bool any = calls != NULL;
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        call->next = NULL;
        call->work(call);
    }
    return any;
}

static enum code look_into_inbox(struct service *service, int64_t mono_ms, struct error *err)
{
    if (mono_ms < service->next_poll_ms) return OK;
    service->next_poll_ms = mono_ms + (service->settings.clock ? 0 : POLL_MS);
    if (engine_away(service->engine)) return OK;
    enum code rc = engine_poll(service->engine, err);
    if (rc == E_CONFLICT && store_fenced(service->store)) rc = OK; // the next look at the shards says what to do
    if (rc != E_FULL && rc != E_LOCKED && rc != E_NOMEM && rc != E_AWAY) return rc;
    os_log(LOG_WARN, "inbox not read why=\"%s\"", err->message);
    *err = (struct error){0};
    return OK;
}

static bool should_end(struct service *service, int64_t mono_ms)
{
    pthread_mutex_lock(&service->mutex);
    bool stopping = service->stopping, draining = service->draining;
    int64_t at = service->stop_at_ms;
    pthread_mutex_unlock(&service->mutex);
    if (!draining) return stopping;
    engine_hold(service->engine); // nothing new is given to tools
    bool drained = mono_ms >= at || engine_activity(service->engine).in_flight == 0;
    pthread_mutex_lock(&service->mutex);
    service->drained = drained;
    pthread_mutex_unlock(&service->mutex);
    return stopping;
}

static enum code serve(struct service *service, struct error *err)
{
    const struct service_clock *clock = service->settings.clock;
    for (;;) {
        bool worked;
        bool asked = work_posted(service);
        struct moment_in_time now = os_now(), engines = clock ? clock->now(clock->context) : now; // what is posted comes after its moment
        enum code rc = audit_flush(service, err);
        health_turned(service, now.mono_ms);
        if (!rc) rc = engine_turn(service->engine, engines, &worked, err);
        if (!rc) rc = look_into_inbox(service, now.mono_ms, err);
        if (!rc) rc = members_tick(service, now.mono_ms, err);
        if (!rc && service->audit.broken) rc = (*err = service->audit.why).code;
        if (rc) return rc;
        bool away = engine_away(service->engine);
        if (!service_draining(service) && !away) admission_turned(service, now.mono_ms);
        alerts_flush(service);
        if (worked) sinks_moved(service);
        if ((worked || asked) && service->hooks.turned) service->hooks.turned(service->hooks.context);
        if (now.mono_ms >= service->next_tick_ms) {
            service->next_tick_ms = now.mono_ms + TICK_MS;
            waits_tick(service, now.mono_ms);
            if (!away) plans_tick(service, now.mono_ms);
            if (!away) schedules_tick(service, now);
            if (!away) incoming_tick(service, now);
            health_tick(service, now.mono_ms);
            projecting_tick(service, now.mono_ms);
            alerts_tick(service);
            if (should_end(service, now.mono_ms)) return OK;
        }
        bool rest = !worked && !asked && (away || !members_are_adopting(service));
        if (clock) clock->passed(clock->context, rest, service->engine);
        if (!rest) continue;
        int64_t until = clock ? now.mono_ms + CLOCK_MS : engine_deadline(service->engine);
        if (until > service->next_poll_ms) until = service->next_poll_ms;
        if (until > service->next_tick_ms) until = service->next_tick_ms;
        if (service->members.several && until > service->members.next_look_ms) until = service->members.next_look_ms;
        engine_wait(service->engine, until);
    }
}

static void *engine_thread(void *context)
{
    struct service *service = context;
    struct error err = {0};
    enum code rc = serve(service, &err);
    if (rc) os_log(LOG_ERROR, "the engine has ended why=\"%s\"", err.message);
    pthread_mutex_lock(&service->mutex);
    service->failed = rc;
    service->failure = err;
    service->stopping = true;
    pthread_mutex_unlock(&service->mutex);
    waits_end(service);
    for (struct call *call = take_posted(service); call;) {
        struct call *next = call->next;
        call_problem(call, 503, "SHUTTING_DOWN", "the service is stopping");
        call = next;
    }
    if (service->hooks.turned) service->hooks.turned(service->hooks.context);
    return NULL;
}

// ---- open and close

static enum code claim_page(struct service *service, const struct run_heads *heads, struct arena *arena,
                            struct error *err)
{
    struct run_name *names = ARENA_ARRAY(arena, heads->count + 1, struct run_name);
    if (!names) return error_nomem(err);
    for (size_t i = 0; i < heads->count; i++)
        names[i] = (struct run_name){heads->items[i].ids.tenant, heads->items[i].ids.run};
    return store_claim_ahead(service->store, names, heads->count, err);
}

enum code adopt_page(struct service *service, struct run_filter *filter, size_t *taken, size_t *left, struct error *err)
{
    struct run_heads heads;
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, (size_t)1 << 30);
    enum code rc = store_list(service->store, filter, &arena, &heads, err);
    if (!rc) rc = claim_page(service, &heads, &arena, err);
    for (size_t i = 0; !rc && i < heads.count; i++) {
        struct error local = {0};
        if (service->members.several && heads.items[i].shard == 0 && heads.items[i].owned) continue;
        enum code one = engine_adopt_listed(service->engine, &heads.items[i], &local);
        if (one == OK) {
            ++*taken;
            count_adopted(service, &heads.items[i]);
            admission_found(service, &heads.items[i]);
            if (service->host) temporal_host_adopted(service->host, heads.items[i].ids.tenant, heads.items[i].ids.run);
        } else if (one == E_CONFLICT && store_fenced(service->store)) {
            break; // all of it is another engine's now
        } else if (one != E_TERMINAL && one != E_EXISTS) {
            ++*left;
            if (one == E_UNREACHABLE || one == E_AWAY || one == E_CORRUPT) plans_missed(service, &heads.items[i]);
            os_log(LOG_WARN, "run not taken up run=%.*s why=\"%s\"", STR_ARG(heads.items[i].ids.run), local.message);
            if (one == E_NOMEM || one == E_IO) rc = error_set(err, one, "%s", local.message);
        }
    }
    if (!rc) rc = store_claim_ahead(service->store, NULL, 0, err);
    filter->before = rc ? 0 : heads.next;
    return rc;
}

static enum code take_up_all(struct service *service, struct error *err)
{
    struct run_filter filter = {.unfinished = true, .roots = false, .limit = 500};
    size_t taken = 0, left = 0;
    enum code rc;
    do rc = adopt_page(service, &filter, &taken, &left, err);
    while (!rc && filter.before);
    if (taken + left > 0) os_log(LOG_INFO, "runs taken up count=%zu left=%zu", taken, left);
    return rc;
}

// A key of this installation (of the tokens of tasks, of cursors): the same after a restart, so that old ones differ from
// forged ones.
static enum code key_note(struct service *service, struct str name, struct task_key *out, struct error *err)
{
    struct note note;
    enum code rc = store_note(service->store, STR("key"), name, &service->arena, &note, err);
    if (rc == OK && note.value.len != sizeof(*out)) return error_set(err, E_CORRUPT, "a key is damaged");
    if (rc == OK) memcpy(out, note.value.ptr, sizeof(*out));
    if (rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    os_entropy()->fill(os_entropy(), out, sizeof(*out));
    struct note_put put = {.space = STR("key"), .key = name, .value = {(const char *)out, sizeof(*out)}};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    rc = store_append(service->store, &batch, os_now().wall_ms, &service->arena, err);
    if (rc != E_CONFLICT) return rc;
    *err = (struct error){0}; // another engine that starts just now was faster
    return key_note(service, name, out, err);
}

// The life of the store has a name from its first service on, so that a backup is not taken for another store (I46).
static enum code name_life(struct service *service, struct error *err)
{
    struct store_lives lives, none = {0};
    struct note_put put;
    enum code rc = store_lives(service->store, &service->arena, &lives, err);
    if (rc || lives.id[0]) return rc;
    rc = life_next(&none, 0, os_now().wall_ms, os_entropy(), &service->arena, &put, err);
    put.expect = 0;
    struct store_batch batch = {.notes = &put, .note_count = 1};
    if (!rc) rc = store_append(service->store, &batch, os_now().wall_ms, &service->arena, err);
    if (rc != E_CONFLICT) return rc;
    *err = (struct error){0}; // another engine has named it
    return OK;
}

static enum code open_remote(struct service *service, struct error *err)
{
    struct remote_options options = {.lease_ms = service->settings.lease_ms, .metrics = service->metrics};
    enum code rc = key_note(service, STR("task"), &options.key, err);
    return rc ? rc : remote_open(&options, &service->remote, err);
}

// Attempts are activities of a Temporal server instead, whatever pool they are for.
static enum code open_host(struct service *service, struct error *err)
{
    const struct service_settings *settings = &service->settings;
    if (!settings->temporal) return OK;
    struct adapters *adapters = &service->settings.adapters; // what runs say of who runs them
    if (!adapters->usual) adapters->usual = PROVIDER_TEMPORAL;
    if (adapters->space.len == 0)
        adapters->space = settings->temporal->namespace.len ? settings->temporal->namespace : STR(TEMPORAL_NAMESPACE);
    struct temporal_host_options options = {
        .settings = *settings->temporal, .store = settings->store, .contract = service->contract};
    return temporal_host_open(&options, &service->host, err);
}

// Of the tasks of playbooks that run here. Without a word nothing may be fetched.
static enum code task_options(struct service *service, struct error *err)
{
    const struct service_settings *settings = &service->settings;
    struct fetch_policy *policy = settings->fetch;
    enum code rc = policy ? OK : fetch_policy_parse(NULL, &service->arena, &policy, err);
    service->task = (struct task_options){.policy = policy,
                                          .plugins = settings->tools_dir.len ? settings->tools_dir.ptr : NULL,
                                          .credentials = settings->credentials,
                                          .containers = settings->containers,
                                          .self = settings->self,
                                          .sql_bytes = settings->sql_bytes};
    return rc;
}

static enum code open_engine(struct service *service, struct error *err)
{
    struct store_options store = {.mode = STORE_WRITE,
                                  .create = true,
                                  .contract = service->contract,
                                  .entropy = os_entropy(),
                                  .keep = service->settings.keep,
                                  .keep_wait_ms = KEEP_WAIT_MS,
                                  .own_files = true,
                                  .plans = &service->plan_later};
    enum code rc = store_open(service->settings.store, &store, &service->store, err);
    if (!rc) rc = lock_made(service, err);
    if (!rc) rc = open_remote(service, err);
    if (!rc) rc = open_host(service, err);
    if (!rc) rc = task_options(service, err);
    if (rc) return rc;
    const struct service_settings *settings = &service->settings;
    struct engine_options options = {
        .adapters = settings->adapters,
        .store = service->store,
        .plans_apart = !settings->plans_stored,
        .confinement = settings->confinement,
        .secrets = settings->secrets,
        .task = &service->task,
        .pools = service->host ? temporal_host_tools(service->host) : remote_tools(service->remote),
        .pools_apart = service->host != NULL,
        .routes = {.at = settings->routes,
                   .count = settings->route_count,
                   .only_pools = !settings->local_steps || service->host},
        .contract = service->contract,
        .entropy = os_entropy(),
        .limits = engine_limits_default,
        .may_start = members_may_start,
        .may_start_context = service,
        .ending = slots_ending,
        .ending_context = service,
        .private_files = true,
        .retention = settings->retention,
        .observer = {.context = service,
                     .event = on_event,
                     .decision = on_decision,
                     .refused = on_refused,
                     .left = on_left,
                     .appended = on_appended,
                     .outbox = on_outbox}};
    if (settings->processes) options.limits.process_max = settings->processes;
    options.limits.steps_max = settings->steps_max;
    const struct engine_limits *limits = &settings->limits;
    options.limits.events_per_run_max = limits->events_per_run_max;
    options.limits.bytes_per_run_max = limits->bytes_per_run_max;
    options.limits.segment_events_max = limits->segment_events_max;
    options.limits.segment_bytes_max = limits->segment_bytes_max;
    options.limits.segments_max = limits->segments_max;
    options.limits.iterations_max = limits->iterations_max;
    options.limits.children_max = limits->children_max;
    if (!limits->children_max && service->settings.resident_max > 1) options.limits.children_max = service->settings.resident_max / 2;
    if (service->settings.events_keep_ms == 0) service->settings.events_keep_ms = (int64_t)7 * 86400 * 1000;
    if (service->settings.events_max == 0) service->settings.events_max = 10000;
    if (limits->write_budget_ms == 0) rc = engine_write_budget_parse(NULL, &service->settings.limits, err); // nothing was said of it
    if (rc) return rc;
    options.limits.write_budget_ms = limits->write_budget_ms;
    options.limits.starts_fail_open = limits->starts_fail_open;
    options.drain_timeout_ms = settings->drain_timeout_ms;
    options.cancel_on_pause = settings->cancel_on_pause;
    options.no_files = true; // what a run may read was sent with it
    rc = engine_open(&options, &service->engine, err);
    if (rc) return rc;
    remote_attach(service->remote, service->engine);
    return service->host ? temporal_host_attach(service->host, service->engine, err) : OK;
}

static enum code open_parts(struct service *service, struct error *err)
{
    service->metrics = metrics_open(&service->arena);
    if (!service->metrics) return error_nomem(err);
    struct str version = STR(CAIRN_VERSION);
    metric_set(service->metrics, METRIC_BUILD_INFO, &version, 1);
    enum code rc = contract_open(&service->arena, &service->contract, err);
    if (!rc) rc = auth_open((struct str){0}, &service->arena, &service->auth, err);
    if (!rc) rc = lock_take(service, err);
    if (!rc) rc = open_engine(service, err);
    if (!rc) rc = alerts_open(service, err);
    if (!rc) rc = name_life(service, err);
    if (!rc) rc = audit_load(service, err);
    if (!rc) rc = key_note(service, STR("cursor"), &service->cursor_key, err);
    struct task_key session_key;
    if (!rc) rc = key_note(service, STR("session"), &session_key, err);
    if (!rc) rc = sessions_open(service, &session_key, err);
    if (!rc) rc = keys_open(service, err);
    if (!rc) rc = definitions_open(service, err);
    if (!rc) rc = tokens_load(service, service->store, err);
    if (!rc) rc = tokens_first(service, err);
    if (!rc) rc = admission_load(service, err);
    if (!rc) rc = members_join(service, err);
    if (!rc && !service->members.several && service->host) temporal_host_serve(service->host, 0, true);
    if (!rc && !service->members.several) rc = take_up_all(service, err);
    if (!rc) rc = otlp_open(service, err);
    if (!rc) rc = oidc_open(service, err);
    if (!rc) rc = projecting_open(service, err);
    if (!rc) rc = readers_start(service, err);
    if (rc) return rc;
    if (pthread_create(&service->thread, NULL, engine_thread, service)) return error_set(err, E_LIMIT, "no thread");
    service->running = true;
    rc = service->members.several ? members_start(service, err) : sinks_open(service, false, err);
    if (!rc) rc = projecting_start(service, err);
    if (!rc) rc = plans_start(service, err);
    if (!rc) rc = expiring_start(service, err);
    return rc ? rc : otlp_start(service, err);
}

uint32_t service_scale(const struct service *service)
{
    return program_scale(service->settings.steps_max);
}

enum code service_open(const struct service_settings *settings, const struct service_hooks *hooks, struct service **out,
                       struct error *err)
{
    struct service *service = calloc(1, sizeof(*service));
    *out = NULL;
    if (!service) return error_nomem(err);
    service->settings = *settings;
    service->lock.database = -1;
    if (hooks) service->hooks = *hooks;
    arena_init(&service->arena, 64 * 1024, (size_t)64 << 20);
    service->settings.store = arena_copy(&service->arena, settings->store);
    service->settings.token_file = arena_copy(&service->arena, settings->token_file);
    pthread_mutex_init(&service->mutex, NULL);
    pthread_mutex_init(&service->alarm.mutex, NULL);
    pthread_mutex_init(&service->members.mutex, NULL);
    os_condition(&service->members.changed);
    pthread_rwlock_init(&service->bus_lock, NULL);
    pthread_mutex_init(&service->readers.mutex, NULL);
    pthread_cond_init(&service->readers.arrived, NULL);
    pthread_mutex_init(&service->documents.mutex, NULL);
    pthread_mutex_init(&service->headline_mutex, NULL);
    pthread_rwlock_init(&service->tokens.lock, NULL);
    pthread_rwlock_init(&service->approvals.lock, NULL);
    plans_open(service);
    schedules_open(service);
    service->posted_last = &service->posted;
    service->started_ms = os_now().wall_ms;
    health_start(service);
    service->waits.size = WAIT_SLOTS;
    service->waits.slots = calloc(WAIT_SLOTS, sizeof(*service->waits.slots));
    enum code rc = service->waits.slots && service->settings.store.ptr ? open_parts(service, err) : error_nomem(err);
    if (rc) {
        service_close(service);
        return rc;
    }
    *out = service;
    return OK;
}

void service_drain(struct service *service, int64_t drain_ms)
{
    if (service->remote) remote_drain(service->remote);
    pthread_mutex_lock(&service->mutex);
    service->draining = true;
    service->stop_at_ms = os_now().mono_ms + drain_ms;
    pthread_mutex_unlock(&service->mutex);
    if (service->running) engine_wake(service->engine);
}

bool service_draining(struct service *service)
{
    LOCKED(&service->mutex);
    return service->draining;
}

bool service_drained(struct service *service)
{
    LOCKED(&service->mutex);
    return service->drained;
}

void service_stop(struct service *service)
{
    otlp_close(service);
    expiring_end(service);
    plans_end(service);
    oidc_stop(service);
    projecting_end(service);
    members_stop(service);
    sinks_close(service); // while their last cursors can still be stored
    pthread_mutex_lock(&service->mutex);
    service->stopping = true;
    pthread_mutex_unlock(&service->mutex);
    if (service->running) {
        engine_wake(service->engine);
        pthread_join(service->thread, NULL);
        service->running = false;
    }
    readers_stop(service);
    if (service->remote) remote_shut(service->remote); // while its callers can still be answered
    if (service->host) temporal_host_shut(service->host);
}

void service_close(struct service *service)
{
    if (!service) return;
    service_stop(service);
    if (service->remote) remote_mute(service->remote);
    if (service->engine) engine_close(service->engine);
    projecting_close(service);
    remote_free(service->remote);
    temporal_host_free(service->host);
    if (service->store) store_close(service->store);
    lock_release(service);
    documents_release(&service->documents);
    headlines_release(&service->headlines);
    sessions_close(service);
    tokens_release(&service->tokens);
    oidc_close(service);
    definitions_close(service);
    keys_close(service);
    pthread_rwlock_destroy(&service->approvals.lock);
    plans_close(service);
    schedules_close(service);
    incoming_close(service);
    audit_release(&service->audit);
    count_release(service);
    admission_release(service);
    pthread_rwlock_destroy(&service->tokens.lock);
    pthread_mutex_destroy(&service->documents.mutex);
    pthread_mutex_destroy(&service->headline_mutex);
    pthread_mutex_destroy(&service->readers.mutex);
    pthread_mutex_destroy(&service->alarm.mutex);
    pthread_mutex_destroy(&service->members.mutex);
    pthread_cond_destroy(&service->members.changed);
    pthread_rwlock_destroy(&service->bus_lock);
    pthread_cond_destroy(&service->readers.arrived);
    pthread_mutex_destroy(&service->mutex);
    free(service->waits.slots);
    arena_release(&service->arena);
    free(service);
}

enum code service_failed(struct service *service, struct error *err)
{
    LOCKED(&service->mutex);
    enum code rc = service->failed;
    if (rc && err) *err = service->failure;
    return rc;
}

int64_t service_started_ms(const struct service *service)
{
    return service->started_ms;
}

struct metrics *service_metrics(struct service *service)
{
    return service->metrics;
}

struct remote *service_remote(struct service *service)
{
    return service->remote;
}

const struct auth *service_auth(const struct service *service)
{
    return service->auth;
}

const struct contract *service_contract(const struct service *service)
{
    return service->contract;
}
