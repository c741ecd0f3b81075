// Bodies of plans that are kept apart (C-38): one that is gone is fetched again from where its run says that it was, and compared.
#include "service/inside.h"

#include <stdlib.h>
#include <string.h>

enum { FORGET_MS = 5000, TRY_AGAIN_MS = 2000 };

struct missed_run {
    struct missed_run *next;
    char tenant[129], run[129];
};

static bool failed_lately(struct plan_memory *memory, const struct digest *sha256)
{
    bool found = false;
    int64_t now_ms = os_now().mono_ms;
    pthread_mutex_lock(&memory->mutex);
    for (size_t i = 0; i < ARRAY_COUNT(memory->sha256); i++)
        found = found || (memory->until_ms[i] > now_ms && digest_eq(&memory->sha256[i], sha256));
    pthread_mutex_unlock(&memory->mutex);
    return found;
}

static void remember_failed(struct plan_memory *memory, const struct digest *sha256)
{
    pthread_mutex_lock(&memory->mutex);
    memory->sha256[memory->next] = *sha256;
    memory->until_ms[memory->next] = os_now().mono_ms + FORGET_MS;
    memory->next = (memory->next + 1) % ARRAY_COUNT(memory->sha256);
    pthread_mutex_unlock(&memory->mutex);
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
    if (!service->settings.fetch) return error_set(err, E_NOT_FOUND, "the body of the plan is not here");
    if (failed_lately(&service->plan_memory, sha256))
        return error_set(err, E_UNREACHABLE, "the body of the plan is not here, and a moment ago was not to be had from %.*s",
                         STR_ARG(uri));
    enum code rc = fetch_plan(service->settings.fetch, &ref, arena, out, &trip, &why);
    if (!rc) os_log(LOG_INFO, "plan fetched again sha256=%s uri=%.*s", hex, STR_ARG(uri));
    if (!rc || rc == E_NOMEM) return rc;
    remember_failed(&service->plan_memory, sha256);
    if (rc == E_CORRUPT) raise_alarm(service, tenant, uri);
    return error_set(err, rc == E_CORRUPT ? E_CORRUPT : E_UNREACHABLE,
                     "the body of the plan is not here, and %.*s does not give it: %s", STR_ARG(uri), why.message);
}

void plans_open(struct service *service)
{
    pthread_mutex_init(&service->plan_memory.mutex, NULL);
    service->plan_source = (struct plan_source){.context = service, .fetch = fetch_again};
}

void plans_close(struct service *service)
{
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
    struct arena arena = arena_of(4096, (size_t)16 << 20);
    enum code rc = store_head(service->store, str_from(one->tenant), str_from(one->run), &arena, &head, &err);
    if (!rc && !head.terminal) rc = engine_adopt_listed(service->engine, &head, &err);
    if (!rc && !head.terminal) {
        os_log(LOG_WARN, "run taken up after all run=%s", one->run); // it ends a warning
        count_adopted(service, &head);
        admission_found(service, &head);
    }
    if (rc == E_UNREACHABLE || rc == E_CORRUPT) plans_missed(service, &head);
    arena_release(&arena);
}

void plans_tick(struct service *service, int64_t now_ms)
{
    if (!service->missed || now_ms < service->missed_next_ms) return;
    service->missed_next_ms = now_ms + TRY_AGAIN_MS;
    struct missed_run *list = service->missed;
    service->missed = NULL;
    for (struct missed_run *one = list, *next; one; one = next) {
        next = one->next;
        try_again(service, one);
        free(one);
    }
}
