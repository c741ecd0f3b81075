// Reading what is kept elsewhere (store/keep.h) by a handle that must not wait long: a thread reads, and the handle waits a moment for
// it. What has not come by then is E_UNREACHABLE and goes on being read; a caller that asks again finds it. While the place answers
// nothing the handle does not wait at all.
#include "store/backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_MAX = 16 }; // that no caller has come back for

struct reading {
    struct reading *next;
    struct digest sha256;
    char *place;
    bool done;
    bool waited; // for as long as it may be waited for
    enum code rc;
    struct error why;
    struct arena arena; // of the bytes
    struct str bytes;
};

struct patience { // shared: mutex
    pthread_mutex_t mutex;
    pthread_cond_t asked, answered;
    pthread_t thread;
    struct keep *keep;
    struct reading *readings; // oldest first
    bool stop;
};

static void reading_free(struct reading *reading)
{
    arena_release(&reading->arena);
    free(reading->place);
    free(reading);
}

static struct reading *next_reading(struct patience *patience)
{
    struct reading *reading = patience->readings;
    while (reading && reading->done) reading = reading->next;
    return reading;
}

// A reading that is not done is the thread's: no other thread frees it.
static void *patience_main(void *context)
{
    struct patience *patience = context;
    pthread_mutex_lock(&patience->mutex);
    while (!patience->stop) {
        struct reading *reading = next_reading(patience);
        if (!reading) {
            pthread_cond_wait(&patience->asked, &patience->mutex);
            continue;
        }
        pthread_mutex_unlock(&patience->mutex);
        struct keep *keep = patience->keep;
        reading->rc = keep->ops->get(keep, str_from(reading->place), &reading->sha256, &reading->arena, &reading->bytes,
                                     &reading->why);
        pthread_mutex_lock(&patience->mutex);
        reading->done = true;
        pthread_cond_broadcast(&patience->answered);
    }
    pthread_mutex_unlock(&patience->mutex);
    return NULL;
}

static struct patience *patience_of(struct store *store)
{
    if (store->patience) return store->patience;
    struct patience *patience = calloc(1, sizeof(*patience));
    if (!patience) return NULL;
    patience->keep = store->options.keep;
    INVARIANT(pthread_mutex_init(&patience->mutex, NULL) == 0 && pthread_cond_init(&patience->asked, NULL) == 0);
    os_condition(&patience->answered);
    if (pthread_create(&patience->thread, NULL, patience_main, patience) == 0) return store->patience = patience;
    pthread_cond_destroy(&patience->answered);
    pthread_cond_destroy(&patience->asked);
    pthread_mutex_destroy(&patience->mutex);
    free(patience);
    return NULL;
}

void store_patience_close(struct store *store)
{
    struct patience *patience = store->patience;
    if (!patience) return;
    pthread_mutex_lock(&patience->mutex);
    patience->stop = true;
    pthread_cond_signal(&patience->asked);
    pthread_mutex_unlock(&patience->mutex);
    pthread_join(patience->thread, NULL);
    while (patience->readings) {
        struct reading *reading = patience->readings;
        patience->readings = reading->next;
        reading_free(reading);
    }
    pthread_cond_destroy(&patience->answered);
    pthread_cond_destroy(&patience->asked);
    pthread_mutex_destroy(&patience->mutex);
    free(patience);
    store->patience = NULL;
}

// ---- under the mutex

static struct reading *find(struct patience *patience, const struct digest *sha256)
{
    struct reading *reading = patience->readings;
    while (reading && !digest_eq(&reading->sha256, sha256)) reading = reading->next;
    return reading;
}

static void take_out(struct patience *patience, struct reading *reading)
{
    struct reading **at = &patience->readings;
    while (*at != reading) at = &(*at)->next;
    *at = reading->next;
    reading_free(reading);
}

static void forget_oldest(struct patience *patience)
{
    size_t answers = 0;
    struct reading *oldest = NULL;
    for (struct reading *reading = patience->readings; reading; reading = reading->next) {
        if (!reading->done) continue;
        if (!oldest) oldest = reading;
        answers++;
    }
    if (answers > ANSWERS_MAX) take_out(patience, oldest);
}

static struct reading *ask(struct patience *patience, struct str place, const struct digest *sha256)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    char *kept = reading ? strndup(place.ptr, place.len) : NULL;
    if (!kept) {
        free(reading);
        return NULL;
    }
    *reading = (struct reading){.sha256 = *sha256, .place = kept};
    arena_init(&reading->arena, 4096, SIZE_MAX);
    struct reading **last = &patience->readings;
    for (; *last; last = &(*last)->next)
        if ((*last)->waited && !(*last)->done) reading->waited = true; // the place does not answer just now
    *last = reading;
    forget_oldest(patience);
    pthread_cond_signal(&patience->asked);
    return reading;
}

static void wait_for(struct patience *patience, struct reading *reading, int64_t wait_ms)
{
    int64_t until = os_now().mono_ms + wait_ms;
    while (!reading->done && !reading->waited)
        reading->waited = !os_wait_until(&patience->answered, &patience->mutex, until);
}

enum code store_keep_get(struct store *store, struct str place, const struct digest *sha256, struct arena *arena,
                         struct str *out, struct error *err)
{
    struct keep *keep = store->options.keep;
    if (keep->ops->have && keep->ops->have(keep, sha256, arena, out)) return OK;
    if (store->options.keep_wait_ms == 0) return keep->ops->get(keep, place, sha256, arena, out, err);
    struct patience *patience = patience_of(store);
    if (!patience) return error_nomem(err);
    LOCKED(&patience->mutex);
    struct reading *reading = find(patience, sha256);
    if (!reading) reading = ask(patience, place, sha256);
    enum code rc = E_NOMEM;
    if (reading) {
        wait_for(patience, reading, store->options.keep_wait_ms);
        rc = reading->done ? reading->rc : E_UNREACHABLE;
    }
    if (reading && !reading->done) {
        rc = error_set(err, rc, "it has not come yet");
    } else if (reading) {
        if (rc)
            rc = error_set(err, rc, "%s", reading->why.message);
        else if (!(*out = arena_copy(arena, reading->bytes)).ptr)
            rc = error_nomem(err);
        take_out(patience, reading);
    } else {
        rc = error_nomem(err);
    }
    return rc;
}
