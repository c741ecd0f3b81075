// Threads that read: lists, explanations, logs, and everything else that may take its time. Each has a store handle of its own.
#include "service/inside.h"

#include <stdio.h>
#include <stdlib.h>

struct store *service_reader(struct service *service)
{
    struct store *store = NULL;
    struct error err = {0};
    struct store_options options = {.mode = STORE_READ, .contract = service->contract, .keep = service->settings.keep,
                                    .own_files = true, .plans = &service->plan_source};
    if (store_open(service->settings.store, &options, &store, &err)) {
        os_log(LOG_ERROR, "store not readable why=\"%s\"", err.message);
        return NULL;
    }
    return store;
}

enum { READS_MAX = 2000 };

static struct reading_tenant *find(const struct readers *readers, struct str name)
{
    struct reading_tenant *tenant = readers->first;
    while (tenant && !str_is(name, tenant->name)) tenant = tenant->next;
    return tenant;
}

static void to_the_end(struct readers *readers, struct reading_tenant *tenant)
{
    tenant->next = NULL;
    if (readers->last)
        readers->last->next = tenant;
    else
        readers->first = tenant;
    readers->last = tenant;
}

// NULL: no memory.
static struct reading_tenant *come(struct readers *readers, struct str name)
{
    struct reading_tenant *tenant = find(readers, name);
    if (tenant || !(tenant = calloc(1, sizeof(*tenant)))) return tenant;
    snprintf(tenant->name, sizeof(tenant->name), "%.*s", STR_ARG(name));
    tenant->last = &tenant->first;
    to_the_end(readers, tenant);
    return tenant;
}

// Why the call may not wait, or NULL. A tenant has at most half of the places.
static const char *refused(struct readers *readers, struct call *call, size_t max, const char **code)
{
    *code = "OVERLOADED";
    if (readers->waiting >= max) return "as many calls wait to read as may";
    struct reading_tenant *tenant = come(readers, call->who.tenant);
    if (!tenant) return "out of memory";
    *code = "TENANT_OVERLOADED";
    if (tenant->waiting >= max / 2) return "as many calls of this tenant wait to read as may";
    *tenant->last = call;
    tenant->last = &call->next;
    tenant->waiting++;
    readers->waiting++;
    return NULL;
}

bool service_read(struct call *call, bool (*read)(struct call *call, struct store *store))
{
    struct readers *readers = &call->service->readers;
    size_t max = call->service->settings.reads_max ? call->service->settings.reads_max : READS_MAX;
    const char *why = "the service is stopping", *code = "SHUTTING_DOWN";
    call->read = read;
    call->next = NULL;
    pthread_mutex_lock(&readers->mutex);
    bool stopped = readers->stop;
    if (!stopped) why = refused(readers, call, max, &code);
    if (!why) pthread_cond_signal(&readers->arrived);
    pthread_mutex_unlock(&readers->mutex);
    if (!why) return true;
    call->answer.retryable = true;
    call->answer.retry_after_ms = 1000;
    return call_problem(call, stopped ? 503 : 429, code, "%s", why);
}

static struct call *take(struct readers *readers)
{
    LOCKED(&readers->mutex);
    while (!readers->first && !readers->stop) pthread_cond_wait(&readers->arrived, &readers->mutex);
    struct reading_tenant *tenant = readers->first;
    struct call *call = NULL;
    if (tenant) {
        call = tenant->first;
        readers->waiting--;
        tenant->waiting--;
        tenant->first = call->next;
        readers->first = tenant->next;
        if (!readers->first) readers->last = NULL;
        if (tenant->first)
            to_the_end(readers, tenant);
        else
            free(tenant);
    }
    return call;
}

static void *reader_thread(void *context)
{
    struct service *service = context;
    struct store *store = NULL;
    for (struct call *call; (call = take(&service->readers));) {
        call->next = NULL;
        if (!store) store = service_reader(service);
        if (store)
            call->read(call, store);
        else
            call_problem(call, 503, "STORE_FAILED", "the store cannot be read");
    }
    if (store) store_close(store);
    return NULL;
}

enum code readers_start(struct service *service, struct error *err)
{
    struct readers *readers = &service->readers;
    uint32_t count = service->settings.readers ? service->settings.readers : 2;
    if (count > ARRAY_COUNT(readers->threads)) count = ARRAY_COUNT(readers->threads);
    for (readers->count = 0; readers->count < count; readers->count++)
        if (pthread_create(&readers->threads[readers->count], NULL, reader_thread, service))
            return error_set(err, E_LIMIT, "no thread for reading");
    return OK;
}

// Calls that wait are still answered.
void readers_stop(struct service *service)
{
    struct readers *readers = &service->readers;
    pthread_mutex_lock(&readers->mutex);
    readers->stop = true;
    pthread_cond_broadcast(&readers->arrived);
    pthread_mutex_unlock(&readers->mutex);
    for (uint32_t i = 0; i < readers->count; i++) pthread_join(readers->threads[i], NULL);
    readers->count = 0;
}
