// Threads that read the feed behind the engine: how they rest and end, and where they were.
#include "service/inside.h"

void feed_thread_init(struct feed_thread *thread, struct service *service, const char *space, const char *key)
{
    *thread = (struct feed_thread){.service = service, .space = space, .key = key};
    pthread_mutex_init(&thread->mutex, NULL);
    os_condition(&thread->woken);
}

bool feed_thread_stopped(struct feed_thread *thread)
{
    LOCKED(&thread->mutex);
    return thread->stop;
}

void feed_thread_rest(struct feed_thread *thread, int64_t ms)
{
    int64_t until = os_now().mono_ms + ms;
    LOCKED(&thread->mutex);
    if (!thread->stop && !thread->wanted) os_wait_until(&thread->woken, &thread->mutex, until);
    thread->wanted = false;
}

void feed_thread_wake(struct feed_thread *thread)
{
    LOCKED(&thread->mutex);
    thread->wanted = true;
    pthread_cond_signal(&thread->woken);
}

enum code feed_thread_start(struct feed_thread *thread, void *(*run)(void *context), void *context, struct error *err)
{
    if (pthread_create(&thread->thread, NULL, run, context)) return error_set(err, E_LIMIT, "no thread");
    thread->running = true;
    return OK;
}

void feed_thread_end(struct feed_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    thread->stop = true;
    pthread_cond_signal(&thread->woken);
    pthread_mutex_unlock(&thread->mutex);
    if (thread->running) pthread_join(thread->thread, NULL);
    thread->running = false;
}

void feed_thread_release(struct feed_thread *thread)
{
    pthread_mutex_destroy(&thread->mutex);
    pthread_cond_destroy(&thread->woken);
}

// ---- where it was

enum code feed_thread_begin(struct feed_thread *thread, uint64_t *position, struct error *err)
{
    struct service *service = thread->service;
    struct note note;
    int64_t kept = 0;
    enum code rc =
        store_note(service->store, str_from(thread->space), str_from(thread->key), &service->arena, &note, err);
    if (rc == E_NOT_FOUND) {
        *err = (struct error){0};
        thread->kept = UINT64_MAX; // from now on it is known here, wherever it stops
        return store_feed_end(service->store, position, err);
    }
    if (!rc && (!str_int64(note.value, &kept) || kept < 0))
        rc = error_set(err, E_CORRUPT, "the position of %s is no number", thread->space);
    *position = thread->kept = (uint64_t)kept;
    return rc;
}

void feed_thread_again(struct feed_thread *thread, struct store *store, uint64_t *position)
{
    struct note note;
    struct error err = {0};
    int64_t kept = 0;
    struct arena arena SCOPED(arena_release) = arena_of(1024, 64 * 1024);
    enum code rc = store_note(store, str_from(thread->space), str_from(thread->key), &arena, &note, &err);
    if (!rc && str_int64(note.value, &kept) && kept > 0) *position = thread->kept = (uint64_t)kept;
}

void feed_thread_keep(struct feed_thread *thread, uint64_t position)
{
    char text[24];
    if (thread->kept == position || !members_have_duty(thread->service)) return;
    struct buf value SCOPED(buf_release) = buf_of(sizeof(text));
    buf_printf(&value, "%llu", (unsigned long long)position);
    struct note_put put = {
        .space = str_from(thread->space), .key = str_from(thread->key), .value = buf_str(&value), .expect = NOTE_ANY};
    if (buf_ok(&value)) service_put(thread->service, &put, 1, NULL, NULL);
    thread->kept = position;
}
