// Artifacts whose time is over are removed while the service serves: a thread of its own looks for them every so often.
#include "service/inside.h"

#include "archive/archive.h"

enum { USUAL_MS = 3600 * 1000, PAGE_REST_MS = 20 };

struct expiring_thread {
    struct feed_thread thread; // for its rest and its end; it keeps no position
};

static bool rest(void *context)
{
    struct feed_thread *thread = context;
    feed_thread_rest(thread, PAGE_REST_MS);
    return !feed_thread_stopped(thread);
}

static void *expiring_thread(void *context)
{
    struct feed_thread *thread = context;
    struct service *service = thread->service;
    struct store *store = service_reader(service);
    int64_t every_ms = service->settings.sweep_ms ? service->settings.sweep_ms : USUAL_MS;
    while (store && !feed_thread_stopped(thread)) {
        struct expiry how = {.now_ms = os_now().wall_ms, .rest = rest, .context = thread};
        struct expiry_report report;
        struct error err = {0};
        if (archive_expire(store, &how, &report, &err))
            os_log(LOG_ERROR, "expired artifacts not looked for why=\"%s\"", err.message);
        if (report.file_count)
            os_log(LOG_INFO, "expired artifacts removed files=%llu bytes=%llu runs=%llu", (unsigned long long)report.file_count,
                   (unsigned long long)report.file_bytes, (unsigned long long)report.run_count);
        feed_thread_rest(thread, every_ms);
    }
    if (store) store_close(store);
    return NULL;
}

enum code expiring_start(struct service *service, struct error *err)
{
    if (service->settings.retention.count == 0) return OK;
    service->expiring = ARENA_NEW(&service->arena, struct expiring_thread);
    if (!service->expiring) return error_nomem(err);
    feed_thread_init(&service->expiring->thread, service, "", "");
    return feed_thread_start(&service->expiring->thread, expiring_thread, &service->expiring->thread, err);
}

void expiring_end(struct service *service)
{
    if (!service->expiring) return;
    feed_thread_end(&service->expiring->thread);
    feed_thread_release(&service->expiring->thread);
    service->expiring = NULL;
}
