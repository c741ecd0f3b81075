// Threads that go behind the engine along the feed: how they rest and end, and where they were.
#include "service/inside.h"

void behind_init(struct behind *behind, struct service *service, const char *space, const char *key)
{
    pthread_condattr_t attributes;
    *behind = (struct behind){.service = service, .space = space, .key = key};
    pthread_mutex_init(&behind->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&behind->woken, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool behind_stopped(struct behind *behind)
{
    pthread_mutex_lock(&behind->mutex);
    bool stop = behind->stop;
    pthread_mutex_unlock(&behind->mutex);
    return stop;
}

void behind_rest(struct behind *behind, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&behind->mutex);
    if (!behind->stop && !behind->wanted) pthread_cond_timedwait(&behind->woken, &behind->mutex, &until);
    behind->wanted = false;
    pthread_mutex_unlock(&behind->mutex);
}

void behind_wake(struct behind *behind)
{
    pthread_mutex_lock(&behind->mutex);
    behind->wanted = true;
    pthread_cond_signal(&behind->woken);
    pthread_mutex_unlock(&behind->mutex);
}

enum code behind_start(struct behind *behind, void *(*run)(void *context), void *context, struct error *err)
{
    if (pthread_create(&behind->thread, NULL, run, context)) return error_set(err, E_LIMIT, "no thread");
    behind->running = true;
    return OK;
}

void behind_end(struct behind *behind)
{
    pthread_mutex_lock(&behind->mutex);
    behind->stop = true;
    pthread_cond_signal(&behind->woken);
    pthread_mutex_unlock(&behind->mutex);
    if (behind->running) pthread_join(behind->thread, NULL);
    behind->running = false;
}

void behind_release(struct behind *behind)
{
    pthread_mutex_destroy(&behind->mutex);
    pthread_cond_destroy(&behind->woken);
}

// ---- where it was

enum code behind_begin(struct behind *behind, uint64_t *position, struct error *err)
{
    struct service *service = behind->service;
    struct note note;
    int64_t kept = 0;
    enum code rc =
        store_note(service->store, str_from(behind->space), str_from(behind->key), &service->arena, &note, err);
    if (rc == E_NOT_FOUND) {
        *err = (struct error){0};
        behind->kept = UINT64_MAX; // from now on it is known here, wherever it stops
        return store_feed_end(service->store, position, err);
    }
    if (!rc && (!str_int64(note.value, &kept) || kept < 0))
        rc = error_set(err, E_CORRUPT, "the position of %s is no number", behind->space);
    *position = behind->kept = (uint64_t)kept;
    return rc;
}

void behind_again(struct behind *behind, struct store *store, uint64_t *position)
{
    struct arena arena;
    struct note note;
    struct error err = {0};
    int64_t kept = 0;
    arena_init(&arena, 1024, 64 * 1024);
    enum code rc = store_note(store, str_from(behind->space), str_from(behind->key), &arena, &note, &err);
    if (!rc && str_int64(note.value, &kept) && kept > 0) *position = behind->kept = (uint64_t)kept;
    arena_release(&arena);
}

void behind_keep(struct behind *behind, uint64_t position)
{
    char text[24];
    struct buf value;
    if (behind->kept == position || !members_have_duty(behind->service)) return;
    buf_init(&value, sizeof(text));
    buf_printf(&value, "%llu", (unsigned long long)position);
    struct note_put put = {
        .space = str_from(behind->space), .key = str_from(behind->key), .value = buf_str(&value), .expect = NOTE_ANY};
    if (buf_ok(&value)) service_put(behind->service, &put, 1, NULL, NULL);
    behind->kept = position;
    buf_release(&value);
}
