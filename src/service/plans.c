// Bodies of plans that are kept apart (C-38): one that is gone is fetched again from where its run says that it was, and compared.
// A reader fetches what it needs itself. What the engine needs is fetched by a thread, and the run waits until it has come (ADR 0037).
#include "service/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORGET_MS = 5000, TRY_AGAIN_MS = 2000 };

struct missed_run {
    struct missed_run *next;
    char tenant[129], run[129];
};

struct wanted_plan {
    struct wanted_plan *next;
    struct digest sha256;
    char tenant[129];
    char uri[];
};

// The newest that is known of it; NULL: nothing. With the mutex.
static size_t find_failed(const struct plan_memory *memory, const struct digest *sha256)
{
    for (size_t i = 1; i <= ARRAY_COUNT(memory->sha256); i++) {
        size_t at = (memory->next + ARRAY_COUNT(memory->sha256) - i) % ARRAY_COUNT(memory->sha256);
        if (memory->until_ms[at] && digest_eq(&memory->sha256[at], sha256)) return at;
    }
    return SIZE_MAX;
}

static bool failed_lately(struct plan_memory *memory, const struct digest *sha256, char why[256])
{
    LOCKED(&memory->mutex);
    size_t at = find_failed(memory, sha256);
    bool found = at != SIZE_MAX && memory->until_ms[at] > os_now().mono_ms;
    if (found) memcpy(why, memory->why[at], sizeof(memory->why[at]));
    return found;
}

static void remember_failed(struct plan_memory *memory, const struct digest *sha256, const char *why)
{
    LOCKED(&memory->mutex);
    size_t at = find_failed(memory, sha256);
    if (at == SIZE_MAX) {
        at = memory->next;
        memory->next = (memory->next + 1) % ARRAY_COUNT(memory->sha256);
    }
    memory->sha256[at] = *sha256;
    memory->until_ms[at] = os_now().mono_ms + FORGET_MS;
    snprintf(memory->why[at], sizeof(memory->why[at]), "%.255s", why);
}

static void forget_failed(struct plan_memory *memory, const struct digest *sha256)
{
    LOCKED(&memory->mutex);
    size_t at = find_failed(memory, sha256);
    if (at != SIZE_MAX) memory->until_ms[at] = 0;
}

bool plans_waiting(struct service *service, const struct digest *sha256, char *out, size_t size)
{
    struct plan_memory *memory = &service->plan_memory;
    LOCKED(&memory->mutex);
    size_t at = find_failed(memory, sha256);
    bool waits = at != SIZE_MAX;
    if (waits) snprintf(out, size, "%s", memory->why[at]);
    for (const struct wanted_plan *one = service->plan_fetcher.first; one && !waits; one = one->next) {
        waits = digest_eq(&one->sha256, sha256);
        if (waits) snprintf(out, size, "the body of its plan is fetched again from %s", one->uri);
    }
    return waits;
}

static void raise_alarm(struct service *service, struct str tenant, struct str uri)
{
    struct alert_fact fact = {.name = ALERT_PLAN_INTEGRITY_VALIDATION_FAILED,
                              .tenant = tenant,
                              .subject = uri,
                              .text = STR("a plan is not what its run was started with"),
                              .at_ms = os_now().wall_ms};
    service_alert(service, &fact);
}

static enum code fetch_again(void *context, struct str tenant, struct str uri, const struct digest *sha256,
                             struct arena *arena, struct str *out, struct error *err)
{
    struct service *service = context;
    struct error why = {0};
    char hex[SHA256_HEX + 1];
    digest_hex(sha256, hex);
    struct plan_ref ref = {.uri = uri, .sha256 = str_from(hex)};
    struct plan_trip trip;
    char told[256];
    if (!service->settings.fetch) return error_set(err, E_NOT_FOUND, "the body of the plan is not here");
    if (failed_lately(&service->plan_memory, sha256, told)) return error_set(err, E_UNREACHABLE, "%s", told);
    enum code rc = fetch_plan(service->settings.fetch, &ref, arena, out, &trip, &why);
    if (!rc) os_log(LOG_INFO, "plan fetched again sha256=%s uri=%.*s", hex, STR_ARG(uri));
    if (!rc) forget_failed(&service->plan_memory, sha256);
    if (!rc || rc == E_NOMEM) return rc;
    rc = error_set(err, rc == E_CORRUPT ? E_CORRUPT : E_UNREACHABLE,
                   "the body of its plan is not here, and %.*s does not give it: %s", STR_ARG(uri), why.message);
    remember_failed(&service->plan_memory, sha256, err->message);
    if (rc == E_CORRUPT) raise_alarm(service, tenant, uri);
    return rc;
}

// ---- for the engine: the thread that fetches

static enum code fetch_later(void *context, struct str tenant, struct str uri, const struct digest *sha256,
                             struct arena *arena, struct str *out, struct error *err)
{
    struct service *service = context;
    struct plan_fetcher *fetcher = &service->plan_fetcher;
    char told[256];
    (void)arena;
    (void)out;
    if (!service->settings.fetch)
        return error_set(err, E_UNREACHABLE, "the body of its plan is not here, and nothing may be fetched (serve.fetch)");
    if (failed_lately(&service->plan_memory, sha256, told)) return error_set(err, E_UNREACHABLE, "%s", told);
    struct wanted_plan *made = calloc(1, sizeof(*made) + uri.len + 1), *known;
    if (!made || tenant.len >= sizeof(made->tenant)) {
        free(made);
        return error_nomem(err);
    }
    made->sha256 = *sha256;
    memcpy(made->tenant, tenant.ptr, tenant.len);
    memcpy(made->uri, uri.ptr, uri.len);
    pthread_mutex_lock(&service->plan_memory.mutex);
    for (known = fetcher->first; known && !digest_eq(&known->sha256, sha256);) known = known->next;
    if (!known) {
        made->next = fetcher->first;
        fetcher->first = made;
        pthread_cond_signal(&fetcher->woken);
    }
    pthread_mutex_unlock(&service->plan_memory.mutex);
    if (known) free(made);
    return error_set(err, E_UNREACHABLE, "the body of its plan is fetched again from %.*s", STR_ARG(uri));
}

static void fetch_one(struct service *service, const struct wanted_plan *one)
{
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, 2 * STORE_PLAN_MAX);
    struct str bytes;
    struct error err = {0};
    enum code rc = fetch_again(service, str_from(one->tenant), str_from(one->uri), &one->sha256, &arena, &bytes, &err);
    if (!rc) rc = store_plan_keep(service->store, &one->sha256, bytes, &err);
    if (rc) os_log(LOG_WARN, "plan not fetched again why=\"%s\"", err.message);
}

// What is fetched stays in the list until it is done, so that it is asked for once and status can say so.
static void *fetching_thread(void *context)
{
    struct service *service = context;
    struct plan_fetcher *fetcher = &service->plan_fetcher;
    pthread_mutex_lock(&service->plan_memory.mutex);
    while (!fetcher->stop) {
        struct wanted_plan *one = fetcher->first;
        if (!one) {
            pthread_cond_wait(&fetcher->woken, &service->plan_memory.mutex);
            continue;
        }
        pthread_mutex_unlock(&service->plan_memory.mutex);
        fetch_one(service, one);
        pthread_mutex_lock(&service->plan_memory.mutex);
        struct wanted_plan **at = &fetcher->first;
        while (*at != one) at = &(*at)->next;
        *at = one->next;
        free(one);
        fetcher->came = true;
    }
    pthread_mutex_unlock(&service->plan_memory.mutex);
    return NULL;
}

void plans_open(struct service *service)
{
    pthread_mutex_init(&service->plan_memory.mutex, NULL);
    os_condition(&service->plan_fetcher.woken);
    service->plan_source = (struct plan_source){.context = service, .fetch = fetch_again};
    service->plan_later = (struct plan_source){.context = service, .fetch = fetch_later};
}

enum code plans_start(struct service *service, struct error *err)
{
    struct plan_fetcher *fetcher = &service->plan_fetcher;
    if (pthread_create(&fetcher->thread, NULL, fetching_thread, service)) return error_set(err, E_LIMIT, "no thread");
    fetcher->running = true;
    return OK;
}

void plans_end(struct service *service)
{
    struct plan_fetcher *fetcher = &service->plan_fetcher;
    pthread_mutex_lock(&service->plan_memory.mutex);
    fetcher->stop = true;
    pthread_cond_signal(&fetcher->woken);
    pthread_mutex_unlock(&service->plan_memory.mutex);
    if (fetcher->running) pthread_join(fetcher->thread, NULL);
    fetcher->running = false;
}

void plans_close(struct service *service)
{
    for (struct wanted_plan *one = service->plan_fetcher.first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    pthread_cond_destroy(&service->plan_fetcher.woken);
    for (struct missed_run *one = service->missed, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    pthread_mutex_destroy(&service->plan_memory.mutex);
}

void plans_missed(struct service *service, const struct run_head *head)
{
    struct missed_run *one = calloc(1, sizeof(*one));
    struct str tenant = head->ids.tenant, run = head->ids.run;
    if (!one || tenant.len >= sizeof(one->tenant) || run.len >= sizeof(one->run)) {
        free(one);
        return;
    }
    memcpy(one->tenant, tenant.ptr, tenant.len);
    memcpy(one->run, run.ptr, run.len);
    one->next = service->missed;
    service->missed = one;
}

static void try_again(struct service *service, const struct missed_run *one)
{
    struct error err = {0};
    struct run_head head;
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)16 << 20);
    enum code rc = store_head(service->store, str_from(one->tenant), str_from(one->run), &arena, &head, &err);
    if (!rc && !head.terminal) rc = engine_adopt_listed(service->engine, &head, &err);
    if (!rc) forget_failed(&service->plan_memory, &head.document); // it is here
    if (!rc && !head.terminal) {
        os_log(LOG_WARN, "run taken up after all run=%s", one->run); // it ends a warning
        count_adopted(service, &head);
        admission_found(service, &head);
    }
    if (rc == E_UNREACHABLE || rc == E_AWAY || rc == E_CORRUPT) plans_missed(service, &head);
}

void plans_tick(struct service *service, int64_t now_ms)
{
    pthread_mutex_lock(&service->plan_memory.mutex);
    bool came = service->plan_fetcher.came;
    service->plan_fetcher.came = false;
    pthread_mutex_unlock(&service->plan_memory.mutex);
    if (!service->missed || (!came && now_ms < service->missed_next_ms)) return;
    service->missed_next_ms = now_ms + TRY_AGAIN_MS;
    struct missed_run *list = service->missed;
    service->missed = NULL;
    for (struct missed_run *one = list, *next; one; one = next) {
        next = one->next;
        try_again(service, one);
        free(one);
    }
}
