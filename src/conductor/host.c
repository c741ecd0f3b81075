#include "conductor/inside.h"

#include <stdlib.h>

enum { SETTLE_MS = 5000 };

static bool start_thread(struct conductor *host, void *(*body)(void *), void *context)
{
    bool made = os_thread(&host->threads[host->thread_count], NULL, body, context) == 0;
    host->thread_count += made;
    return made;
}

static bool start_threads(struct conductor *host)
{
    bool ok = true;
    for (int i = 0; ok && i < CONDUCTOR_LINKS; i++) ok = start_thread(host, carry_main, host);
    host->pollers[0] = (struct poller){host, CONDUCTOR_ATTEMPT};
    host->pollers[1] = (struct poller){host, CONDUCTOR_REPORT};
    ok = ok && start_thread(host, poll_main, &host->pollers[0]);
    if (host->options.type_count > 0) ok = ok && start_thread(host, poll_main, &host->pollers[1]);
    return ok && start_thread(host, sweep_main, host) && start_thread(host, runs_main, host);
}

enum code conductor_open(const struct conductor_options *options, struct conductor **out, struct error *err)
{
    struct conductor *host = calloc(1, sizeof(*host));
    if (!host) return error_nomem(err);
    host->options = *options;
    struct conductor_options *set = &host->options;
    if (set->patience_ms == 0) set->patience_ms = CONDUCTOR_PATIENCE_MS;
    if (set->picture_ms == 0) set->picture_ms = 1000;
    if (set->site.len == 0) set->site = set->worker.link.url;
    if (set->silent_ms == 0) set->silent_ms = 60000;
    host->carrier = (struct worker_carrier){.context = host, .taken = host_taken, .over = host_over};
    set->worker.carrier = &host->carrier;
    host->last_job = &host->jobs;
    entropy_uuid(os_entropy(), host->id);
    INVARIANT(pthread_mutex_init(&host->mutex, NULL) == 0);
    os_condition(&host->jobs_changed);
    os_condition(&host->expects);
    host->by_slot =
        calloc(WORKER_SLOTS_MAX, sizeof(struct order *)); // a worker may have more slots than it was asked for
    struct line probe = {0};
    enum code rc = host->by_slot ? line_open(host, &probe, err) : error_nomem(err); // both URLs can be read
    line_close(&probe);
    // No thread looks at the worker before it gets an attempt, but for a Conductor that is away.
    struct worker *worker = NULL;
    if (!rc) rc = worker_open(&set->worker, &worker, err);
    pthread_mutex_lock(&host->mutex);
    host->worker = worker;
    pthread_mutex_unlock(&host->mutex);
    host->away = true;
    host->away_ms = os_now().mono_ms;
    if (!rc) worker_hold(worker, true);
    if (!rc && !start_threads(host)) rc = error_set(err, E_LIMIT, "no thread can be made");
    if (rc)
        conductor_close(host);
    else
        *out = host;
    return rc;
}

struct worker *conductor_worker(struct conductor *host)
{
    return host->worker;
}

void conductor_settle(struct conductor *host)
{
    int64_t until = os_now().mono_ms + SETTLE_MS;
    LOCKED(&host->mutex);
    while (host->to_tell > 0 && os_now().mono_ms < until)
        os_wait_until(&host->expects, &host->mutex, os_now().mono_ms + 20);
}

// Workflows of attempts that were at hand say so; what cannot be said in time is seen by another host.
static void tell_ended(struct conductor *host)
{
    struct line line = {0};
    struct error err = {0};
    bool here = line_open(host, &line, &err) == OK;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct order *order = host->buckets[i], *next; order; order = next) {
            next = order->next;
            bool open = order->state == ORDER_STARTED || order->state == ORDER_BEGUN;
            if (here && open && order->workflow[0])
                here = workflow_end(&line, order->workflow, OURS "its host has ended; it was given back", &err) == OK;
            order_drop(host, order);
        }
    line_close(&line);
}

void conductor_close(struct conductor *host)
{
    if (!host) return;
    pthread_mutex_lock(&host->mutex);
    host->stopping = true;
    pthread_cond_broadcast(&host->jobs_changed);
    pthread_cond_broadcast(&host->expects);
    pthread_mutex_unlock(&host->mutex);
    for (size_t i = 0; i < host->thread_count; i++) pthread_join(host->threads[i], NULL);
    bool away = host->away;
    if (host->worker) worker_close(host->worker);
    host->worker = NULL;
    host->stopping = away; // of one that is away nobody waits
    for (struct order *order = host->jobs, *next; order; order = next) {
        next = order->job_next;
        order->queued = false;
        if (order->gone) order->busy = false, order_drop(host, order);
    }
    host->jobs = NULL;
    host->last_job = &host->jobs;
    if (host->by_slot) tell_ended(host);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct hosted *run = host->runs[i], *next; run; run = next) {
            next = run->next;
            free(run);
        }
    pthread_cond_destroy(&host->jobs_changed);
    pthread_cond_destroy(&host->expects);
    pthread_mutex_destroy(&host->mutex);
    free(host->by_slot);
    free(host);
}
