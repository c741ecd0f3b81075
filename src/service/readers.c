// Threads that read: lists, explanations, logs, and everything else that may take its time. Each has a store handle of its own.
#include "service/inside.h"

struct store *service_reader(struct service *service)
{
    struct store *store = NULL;
    struct error err = {0};
    struct store_options options = {.mode = STORE_READ, .contract = service->contract, .keep = service->settings.keep};
    if (store_open(service->settings.store, &options, &store, &err)) {
        os_log(LOG_ERROR, "store not readable why=\"%s\"", err.message);
        return NULL;
    }
    return store;
}

enum { READS_MAX = 2000 };

void service_read(struct call *call, void (*read)(struct call *call, struct store *store))
{
    struct readers *readers = &call->service->readers;
    size_t max = call->service->settings.reads_max ? call->service->settings.reads_max : READS_MAX;
    call->read = read;
    call->next = NULL;
    pthread_mutex_lock(&readers->mutex);
    bool stopped = readers->stop, full = readers->waiting >= max;
    if (!stopped && !full) {
        readers->waiting++;
        *readers->last = call;
        readers->last = &call->next;
        pthread_cond_signal(&readers->arrived);
    }
    pthread_mutex_unlock(&readers->mutex);
    if (!stopped && !full) return;
    call->answer.retryable = true;
    call->answer.retry_after_ms = 1000;
    if (stopped)
        call_problem(call, 503, "SHUTTING_DOWN", "the service is stopping");
    else
        call_problem(call, 429, "OVERLOADED", "as many calls wait to read as may");
}

static struct call *take(struct readers *readers)
{
    pthread_mutex_lock(&readers->mutex);
    while (!readers->first && !readers->stop) pthread_cond_wait(&readers->arrived, &readers->mutex);
    struct call *call = readers->first;
    if (call) {
        readers->waiting--;
        readers->first = call->next;
        if (!readers->first) readers->last = &readers->first;
    }
    pthread_mutex_unlock(&readers->mutex);
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
