// The projector of the service: a thread that follows the feed on a handle of its own (reading/follow.c) and turns what it finds
// into alerts and metrics. Nobody waits for it: it runs at low priority, and what it cannot read it tries again later.
#include "service/inside.h"

#include "reading/reading.h"

#include <sys/resource.h>

// A page is read at most every GATHER_MS, so that runs that move fast are projected in few steps; others than this process
// write to the store too, hence LOOK_MS.
enum { GATHER_MS = 100, LOOK_MS = 1000, KEEP_MS = 5000, BACKOFF_MS = 100, BACKOFF_MAX_MS = 10000, NICE = 10 };

struct projecting {
    struct feed_thread thread;
    struct follower *follower;   // its thread
    int64_t wait_ms, kept_ms;    // its thread
    struct follower_state state; // shared: thread.mutex
    int64_t moved_ms;            // monotonic. shared: thread.mutex
    bool late;                   // reported as late. Engine thread
};

// ---- what waits. Engine thread writes, any thread reads

void projecting_stored(struct service *service, size_t events, int64_t mono_ms)
{
    struct backlog *backlog = &service->backlog;
    if (events == 0 || !service->projecting) return;
    __atomic_add_fetch(&backlog->stored, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&backlog->since_ms, __ATOMIC_SEQ_CST)) return;
    __atomic_store_n(&backlog->since_ms, mono_ms, __ATOMIC_SEQ_CST);
    feed_thread_wake(&service->projecting->thread);
}

static int64_t lag_of(const struct service *service, int64_t mono_ms)
{
    int64_t since = __atomic_load_n(&service->backlog.since_ms, __ATOMIC_SEQ_CST);
    return since && mono_ms > since ? mono_ms - since : 0;
}

// What a projector reports is a line on stderr, with the name of the alert that it opens or closes. Those that close are lines, too: who
// was woken by the first one wants to see the second.
static void raise_report(struct service *service, const struct project_report *report)
{
    enum alert_name alert = alert_of_report(report->kind);
    bool closes = report->kind == PROJECT_LAG_NORMAL || report->kind == PROJECT_GAP_CLOSED;
    const char *kind = project_report_name(report->kind);
    struct str tenant = report->ids->tenant, run = report->ids->run;
    if (alert)
        os_log(LOG_WARN, "projector report=%s alert=%s state=%s tenant=%.*s run=%.*s why=\"%s\"", kind,
               alert_name_text(alert), closes ? "closed" : "open", STR_ARG(tenant), STR_ARG(run), report->text);
    else
        os_log(LOG_WARN, "projector report=%s tenant=%.*s run=%.*s why=\"%s\"", kind, STR_ARG(tenant), STR_ARG(run),
               report->text);
    LOCKED(&service->alarm.mutex);
    alerts_projector(&service->alarm.alerts, report);
}

// A projector that hangs cannot say so itself; the late pages of one that does not are reported by tenant.
void projecting_tick(struct service *service, int64_t mono_ms)
{
    struct projecting *projecting = service->projecting;
    if (!projecting) return;
    int64_t lag = lag_of(service, mono_ms);
    enum project_lag class = project_lag_class(lag);
    struct run_ids nobody = {0};
    struct project_report report = {.ids = &nobody, .lag_ms = lag, .at_ms = os_now().wall_ms};
    if (class == PROJECT_LAG_BAD && !projecting->late) {
        report.kind = PROJECT_LAG_HIGH;
        report.text = "events wait to be projected for more than 5 s";
    } else if (class == PROJECT_LAG_OK && projecting->late) {
        report.kind = PROJECT_LAG_NORMAL;
        report.text = "the projection has caught up";
    } else {
        return;
    }
    projecting->late = report.kind == PROJECT_LAG_HIGH;
    raise_report(service, &report);
}

// ---- its thread

static void on_report(void *context, const struct project_report *report)
{
    struct projecting *projecting = context;
    struct service *service = projecting->thread.service;
    raise_report(service, report);
}

static bool on_stopped(void *context)
{
    return feed_thread_stopped(&((struct projecting *)context)->thread);
}

static void publish_state(struct projecting *projecting)
{
    struct follower_state state = follower_state(projecting->follower);
    uint64_t events = state.events - projecting->state.events;
    if (events > 0) metric_add(projecting->thread.service->metrics, METRIC_PROJECTED, NULL, (int64_t)events);
    LOCKED(&projecting->thread.mutex);
    if (state.position != projecting->state.position) projecting->moved_ms = os_now().mono_ms;
    projecting->state = state;
}

// To the end of the feed. What is stored while the last page is read may have been too late for it.
static enum code catch_up(struct projecting *projecting, struct store *store, struct error *err)
{
    struct backlog *backlog = &projecting->thread.service->backlog;
    if (!members_have_duty(projecting->thread.service)) { // another engine does it for the whole store
        __atomic_store_n(&backlog->since_ms, 0, __ATOMIC_SEQ_CST);
        return OK;
    }
    bool more = true;
    uint64_t seen = 0;
    while (more && !feed_thread_stopped(&projecting->thread)) {
        seen = __atomic_load_n(&backlog->stored, __ATOMIC_SEQ_CST);
        enum code rc = follower_round(projecting->follower, store, os_now().wall_ms, &more, err);
        publish_state(projecting);
        if (rc) return rc;
    }
    if (more) return OK;
    int64_t now = os_now().mono_ms;
    __atomic_store_n(&backlog->since_ms, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&backlog->stored, __ATOMIC_SEQ_CST) != seen)
        __atomic_store_n(&backlog->since_ms, now, __ATOMIC_SEQ_CST);
    return OK;
}

static void keep_position(struct projecting *projecting, bool now)
{
    int64_t mono_ms = os_now().mono_ms;
    if (!now && mono_ms - projecting->kept_ms < KEEP_MS) return;
    projecting->kept_ms = mono_ms;
    feed_thread_keep(&projecting->thread, follower_state(projecting->follower).position);
}

static void failed(struct projecting *projecting, const struct error *why)
{
    struct str component = STR("projector");
    metric_add(projecting->thread.service->metrics, METRIC_SYSTEM_ERRORS, &component, 1);
    os_log(LOG_WARN, "projector failed, tried again later why=\"%s\"", why->message);
    feed_thread_rest(&projecting->thread, projecting->wait_ms);
    projecting->wait_ms = projecting->wait_ms * 2 < BACKOFF_MAX_MS ? projecting->wait_ms * 2 : BACKOFF_MAX_MS;
}

static void *projecting_thread(void *context)
{
    struct projecting *projecting = context;
    struct service *service = projecting->thread.service;
    struct store *store = NULL;
    pthread_setname_np(pthread_self(), "cairn-projector");
    if (getpriority(PRIO_PROCESS, 0) < NICE) setpriority(PRIO_PROCESS, 0, NICE); // of this thread alone
    keep_position(projecting, true);
    while (!feed_thread_stopped(&projecting->thread)) {
        struct error err = {0};
        enum code rc = E_IO;
        if (!store) store = service_reader(service);
        if (store)
            rc = catch_up(projecting, store, &err);
        else
            error_set(&err, E_IO, "the store cannot be read");
        if (rc == E_CANCELLED) break;
        if (rc) {
            if (store) store_close(store); // a new handle may find what this one does not
            store = NULL;
            failed(projecting, &err);
            continue;
        }
        projecting->wait_ms = BACKOFF_MS;
        keep_position(projecting, false);
        if (!__atomic_load_n(&service->backlog.since_ms, __ATOMIC_SEQ_CST))
            feed_thread_rest(&projecting->thread, LOOK_MS);
        feed_thread_rest(&projecting->thread, GATHER_MS);
    }
    keep_position(projecting, true);
    if (store) store_close(store);
    return NULL;
}

// ---- open and close

enum code projecting_open(struct service *service, struct error *err)
{
    struct projecting *projecting = ARENA_NEW(&service->arena, struct projecting);
    struct follower_options options = {.sink = {projecting, NULL, on_report}, .stopped = on_stopped};
    if (!projecting) return error_nomem(err);
    *projecting = (struct projecting){.wait_ms = BACKOFF_MS, .moved_ms = os_now().mono_ms};
    feed_thread_init(&projecting->thread, service, "projector", "position");
    service->projecting = projecting;
    enum code rc = feed_thread_begin(&projecting->thread, &options.position, err);
    if (rc) return rc;
    projecting->state.position = options.position;
    projecting->follower = follower_open(&options, os_now().wall_ms);
    return projecting->follower ? OK : error_nomem(err);
}

enum code projecting_start(struct service *service, struct error *err)
{
    return feed_thread_start(&service->projecting->thread, projecting_thread, service->projecting, err);
}

void projecting_end(struct service *service)
{
    if (service->projecting) feed_thread_end(&service->projecting->thread);
}

void projecting_close(struct service *service)
{
    struct projecting *projecting = service->projecting;
    if (!projecting) return;
    follower_close(projecting->follower);
    feed_thread_release(&projecting->thread);
}

struct service_projection service_projection(struct service *service)
{
    struct projecting *projecting = service->projecting;
    struct service_projection out = {0};
    int64_t now = os_now().mono_ms;
    out.lag_ms = lag_of(service, now);
    pthread_mutex_lock(&projecting->thread.mutex);
    out.waiting = projecting->state.waiting;
    out.runs = projecting->state.runs;
    out.stale = projecting->state.stale;
    int64_t still = now - projecting->moved_ms;
    pthread_mutex_unlock(&projecting->thread.mutex);
    if (out.lag_ms > 0) out.age_ms = still < out.lag_ms ? still : out.lag_ms;
    return out;
}
