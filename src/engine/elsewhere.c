// Results that a playbook wants in another place than the store of the run (store/keep.h).
//
//   result --queue--> set aside --note is durable--> keeper: bytes are put and acknowledged --mailbox--> queue --> events
//
// The engine's thread never waits for that place. An engine that dies on the way has left a note and perhaps an object, and the attempt
// runs again; the object of the second time takes the place of the first. What cannot be put goes into the store of the run instead, and
// result.stored says why: what a task has done is not done again because of where its result was to be kept.
//
// Inputs about which nothing can be decided, because a result that is elsewhere cannot be read now, wait here, too.
#include "engine/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AUTO_MIN = 1 << 20, AUTO_MAX = 10 << 20 }; // bytes of a result that goes to an object store of itself
enum { WAIT_MS = 250, WAITS_MAX = 4 };            // doubled so often

struct aside {
    struct aside *next;     // of the engine
    struct aside *next_put; // of the keeper
    struct engine *engine;
    struct queued queued; // resident NULL: its run is gone
    bool busy;            // noted or put just now: others hold on to it
    int64_t due_mono;     // !busy: when it goes back into the queue
    enum code rc;         // what came of the put, with `why`
    struct error why;
};

struct keeper { // shared: mutex
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    pthread_t thread;
    struct keep *keep;
    struct mailbox *mailbox;
    struct aside *first, **last;
    bool stop;
};

// ---- the thread

static void *keeper_main(void *context)
{
    struct keeper *keeper = context;
    pthread_mutex_lock(&keeper->mutex);
    for (;;) {
        while (!keeper->first && !keeper->stop) pthread_cond_wait(&keeper->arrived, &keeper->mutex);
        struct aside *aside = keeper->first;
        if (keeper->stop) break;
        keeper->first = aside->next_put;
        if (!keeper->first) keeper->last = &keeper->first;
        pthread_mutex_unlock(&keeper->mutex);
        const struct append_blob *blob = &aside->queued.blobs[0];
        aside->why = (struct error){0};
        aside->rc = keeper->keep->ops->put(keeper->keep, &blob->sha256, blob->bytes, &aside->why);
        mailbox_aside(keeper->mailbox, aside);
        pthread_mutex_lock(&keeper->mutex);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

static struct keeper *keeper_of(struct engine *engine)
{
    if (engine->keeper) return engine->keeper;
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    if (!keeper) return NULL;
    keeper->keep = store_keep(engine->store);
    keeper->mailbox = &engine->mailbox;
    keeper->last = &keeper->first;
    INVARIANT(pthread_mutex_init(&keeper->mutex, NULL) == 0 && pthread_cond_init(&keeper->arrived, NULL) == 0);
    if (pthread_create(&keeper->thread, NULL, keeper_main, keeper) != 0) {
        pthread_cond_destroy(&keeper->arrived);
        pthread_mutex_destroy(&keeper->mutex);
        free(keeper);
        return NULL;
    }
    return engine->keeper = keeper;
}

void keeper_close(struct engine *engine)
{
    struct keeper *keeper = engine->keeper;
    for (struct aside *aside = engine->asides; aside; aside = aside->next) aside->queued.resident = NULL;
    if (!keeper) return;
    pthread_mutex_lock(&keeper->mutex);
    keeper->stop = true;
    pthread_cond_signal(&keeper->arrived);
    pthread_mutex_unlock(&keeper->mutex);
    pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->arrived);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
    engine->keeper = NULL;
}

// ---- aside

static void aside_free(struct engine *engine, struct aside *aside)
{
    struct aside **at = &engine->asides;
    while (*at && *at != aside) at = &(*at)->next;
    if (*at) *at = aside->next;
    queued_release(&aside->queued);
    free(aside);
}

static struct aside *aside_take(struct engine *engine, struct queued *queued)
{
    INVARIANT(queued->resident && !queued->resident->gone);
    struct aside *aside = calloc(1, sizeof(*aside));
    if (!aside) return NULL;
    aside->engine = engine;
    aside->queued = *queued;
    aside->next = engine->asides;
    engine->asides = aside;
    memset(queued, 0, sizeof(*queued));
    return aside;
}

const struct queued *aside_next(const struct engine *engine, const struct aside **at)
{
    *at = *at ? (*at)->next : engine->asides;
    return *at ? &(*at)->queued : NULL;
}

bool aside_of(const struct engine *engine, const struct resident *resident)
{
    const struct aside *at = engine->asides;
    while (at && at->queued.resident != resident) at = at->next;
    return at != NULL;
}

// It goes on as it is: in the store of the run, with the reason.
static void stay_here(struct queued *queued, const char *why)
{
    INVARIANT(queued->arena && queued->blob_count == 1); // what is stored here instead
    char text[sizeof(((struct error *)0)->message) + 32];
    snprintf(text, sizeof(text), "not in nats_object: %s", why);
    queued->wanted = false;
    queued->input.elsewhere = arena_copy(queued->arena, str_from(text));
    if (!queued->input.elsewhere.ptr) queued->input.elsewhere = STR("not in nats_object");
    os_log(LOG_WARN, "result kept in the store of the run run=%.*s why=\"%s\"", STR_ARG(queued->resident->ids.run),
           text);
}

void want_elsewhere(struct engine *engine, struct queued *queued, const struct net_task *task)
{
    uint64_t size = queued->input.blob_size;
    bool fits = task->store == NET_STORE_AUTO && size > AUTO_MIN && size <= AUTO_MAX;
    if (task->store != NET_STORE_OBJECT && !fits) return;
    if (store_keep(engine->store))
        queued->wanted = true;
    else if (task->store == NET_STORE_OBJECT)
        stay_here(queued, "no object store is configured (--results)");
}

// ---- the way there

static void back(struct aside *aside)
{
    aside->busy = false;
    aside->due_mono = 0;
}

// On the engine's thread, at the end of the turn that stored the note, or when it never will be.
static void noted(void *context, enum code rc, const struct error *why)
{
    struct aside *aside = context;
    struct engine *engine = aside->engine;
    struct keeper *keeper = !rc && aside->queued.resident ? keeper_of(engine) : NULL;
    if (keeper) {
        LOCKED(&keeper->mutex);
        aside->next_put = NULL;
        *keeper->last = aside;
        keeper->last = &aside->next_put;
        pthread_cond_signal(&keeper->arrived);
        return;
    }
    back(aside);
    if (aside->queued.resident) stay_here(&aside->queued, rc ? why->message : "out of memory");
}

bool aside_put(struct engine *engine, struct queued *queued)
{
    struct note_put note;
    struct error err = {0};
    struct aside *aside = NULL;
    const struct keep *keep = store_keep(engine->store);
    if (store_kept_note(keep, &queued->input.blob, queued->input.blob_size, &engine->turn, &note))
        aside = aside_take(engine, queued);
    if (!aside) {
        stay_here(queued, "out of memory");
        return false;
    }
    aside->busy = true;
    aside->queued.wanted = false;
    if (engine_put(engine, &note, 1, noted, aside, &err)) noted(aside, err.code, &err);
    return true;
}

void aside_arrived(struct engine *engine, struct aside *aside)
{
    struct queued *queued = &aside->queued;
    if (!queued->resident) { // its run is gone; the engine that clears up finds the note
        aside_free(engine, aside);
        return;
    }
    back(aside);
    if (aside->rc) {
        stay_here(queued, aside->why.message);
        return;
    }
    queued->elsewhere = true;
    INVARIANT(result_store_parse(str_from(store_keep(engine->store)->ops->name), &queued->input.store));
}

bool aside_wait(struct engine *engine, struct queued *queued, const char *why)
{
    uint32_t waits = queued->waits < WAITS_MAX ? queued->waits : WAITS_MAX;
    if (queued->waits == 0)
        os_log(LOG_WARN, "run waits for a result run=%.*s why=\"%s\"", STR_ARG(queued->resident->ids.run), why);
    struct resident *resident = queued->resident;
    if (is_recovery(queued) && resident->needs_recover) { // another is on its way
        queued_release(queued);
        return true;
    }
    struct aside *aside = aside_take(engine, queued);
    if (!aside) return false;
    if (is_recovery(&aside->queued)) resident->needs_recover = true;
    aside->queued.waits++;
    aside->due_mono = engine->now.mono_ms + ((int64_t)WAIT_MS << waits);
    return true;
}

// ---- the way back

enum code asides_due(struct engine *engine, struct error *err)
{
    for (struct aside *aside = engine->asides, *next; aside; aside = next) {
        next = aside->next;
        if (aside->busy || aside->due_mono > engine->now.mono_ms) continue;
        if (aside->queued.resident) {
            struct queued *queued = queue_add(engine, aside->queued.resident, aside->queued.input.kind);
            if (!queued) return error_nomem(err);
            *queued = aside->queued;
            queued->since_mono = engine->now.mono_ms; // from here on it waits for the store
            memset(&aside->queued, 0, sizeof(aside->queued));
        }
        aside_free(engine, aside);
    }
    return OK;
}

int64_t asides_deadline(const struct engine *engine)
{
    int64_t first = INT64_MAX;
    for (const struct aside *aside = engine->asides; aside; aside = aside->next)
        if (!aside->busy && aside->due_mono < first) first = aside->due_mono;
    return first;
}

void asides_bury(struct engine *engine)
{
    for (struct aside *aside = engine->asides, *next; aside; aside = next) {
        next = aside->next;
        if (!aside->queued.resident || !aside->queued.resident->gone) continue;
        aside->queued.resident = NULL;
        if (!aside->busy) aside_free(engine, aside);
    }
}

void asides_free(struct engine *engine)
{
    while (engine->asides) aside_free(engine, engine->asides);
}
